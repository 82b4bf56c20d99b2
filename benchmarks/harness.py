"""Shared code of the benchmarks: the corpora, the clock, the format of a result and its tables.

A benchmark checks its answer before it measures and stops if the answer is wrong. Times are CPU seconds of this process
(`time.process_time`). Compared candidates run alternately, so that other load on the machine affects all of them
equally. Each run uses other documents, so that neither caches nor branch predictors learn them. A result is one JSON
file that contains every run.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy

import lsh

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "benchmarks" / "results"


@dataclass(frozen=True)
class Corpus:
    """A named corpus: documents in order, with ids and, where known, the similar pairs."""

    name: str
    ids: list[str]
    texts: list[bytes]
    pairs: list[tuple[int, int, float]] | None  # positions i < j, exact Jaccard of 5-byte shingles >= 0.5

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "documents": len(self.texts), "bytes": sum(map(len, self.texts))}


def data_folder() -> Path | None:
    """Return the folder of corpora: LSH_DATA, else shared/data beside the repository; None if it does not exist."""
    folder = Path(os.environ.get("LSH_DATA") or REPOSITORY.parent / "shared" / "data")
    return folder if folder.is_dir() else None


def rows(path: Path) -> list[list[bytes]]:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        return [line.rstrip(b"\n").split(b"\t") for line in file]


def news() -> Corpus:
    """Return Reuters-21578 with its similar pairs, or the sample of the repository if there is no folder of corpora."""
    folder = data_folder()
    name = "reuters21578.tsv.gz" if folder else "examples/sample.tsv (Reuters-21578 was not at hand)"
    table = rows(folder / "reuters21578.tsv.gz" if folder else REPOSITORY / "examples" / "sample.tsv")
    ids = [row[0].decode() for row in table]
    pairs = None
    if folder:
        place = {doc_id: i for i, doc_id in enumerate(ids)}
        found = [(place[a.decode()], place[b.decode()], float(j)) for a, b, j in rows(folder / "reuters_pairs.tsv.gz")]
        pairs = sorted((min(a, b), max(a, b), j) for a, b, j in found)
    return Corpus(name, ids, [row[1] for row in table], pairs)


def pages() -> Corpus | None:
    """Return English reference pages, or None if there is no folder of corpora."""
    folder = data_folder()
    if folder is None:
        return None
    table = rows(folder / "win32docs.tsv.gz")
    return Corpus("win32docs.tsv.gz", [row[0].decode() for row in table], [row[1] for row in table], None)


def corpus(name: str) -> Corpus | None:
    """Return the corpus of a file, texts as UTF-8 and without pairs; None if the file does not exist."""
    folder = data_folder()
    if folder is None or not (folder / name).exists():
        return None
    if ".jsonl" in name:
        with gzip.open(folder / name) as file:
            records = [json.loads(line) for line in file]
        ids = [record["id"] for record in records]
        return Corpus(name, ids, [record["text"].encode("utf-8", "surrogatepass") for record in records], None)
    table = rows(folder / name)
    return Corpus(name, [row[0].decode() for row in table], [row[1] for row in table], None)


def licences() -> Corpus | None:
    """Return the licence texts that every Debian system has, prose that needs no corpus; None on other systems."""
    files = [file for file in sorted(Path("/usr/share/common-licenses").glob("*")) if not file.is_symlink()]
    texts = [b" ".join(file.read_bytes().split()) for file in files]
    return Corpus("Debian's licences", [file.name for file in files], texts, None) if files else None


def reference() -> ModuleType:
    """Import tests/reference.py, which has a slow version of each operation."""
    sys.path.append(str(REPOSITORY / "tests"))
    return importlib.import_module("reference")


def rotating(texts: Sequence[bytes], count: int, run: int) -> list[bytes]:
    """Return the next `count` documents of the corpus for a run; start again after the last one."""
    return [texts[(run * count + i) % len(texts)] for i in range(count)]


def in_turns(candidates: dict[str, Callable[[int], int]], runs: int) -> dict[str, dict[str, Any]]:
    """Measure candidates alternately.

    Each is called with the number of the run and returns the number of bytes it processed. The first call of each is
    not counted.
    """
    measured: dict[str, list[dict[str, Any]]] = {name: [] for name in candidates}
    for run in range(runs + 1):
        for name, work in candidates.items():
            started = time.process_time()
            size = work(run)
            seconds = time.process_time() - started
            if run:
                measured[name].append({"bytes": size, "seconds": seconds, "mb_per_second": size / seconds / 1e6})
    return {
        name: {"median_mb_per_second": statistics.median(one["mb_per_second"] for one in found), "runs": found}
        for name, found in measured.items()
    }


def in_slices(
    candidates: dict[str, Callable[[list[bytes]], Any]],
    texts: Sequence[bytes],
    seconds: float = 0.4,
    clock: Callable[[], float] = time.process_time,
    slice_seconds: float = 0.004,
) -> dict[str, dict[str, float]]:
    """Measure candidates alternately, in many short slices, each on the next texts.

    A process on the other hardware thread of the core can slow vector code by a third for seconds at a time. Some short
    slices run without it: the best slice shows the speed of the machine, the median the speed under its current load.

    Parameters
    ----------
    candidates : dict
        Functions by name; each is called with the texts of a slice.
    texts : sequence of bytes
        Each slice takes the next ones; after the last text comes the first.
    seconds : float, optional
        Time for each candidate; at least five slices are measured.
    clock : callable, optional
        CPU time of the process, or wall time for candidates with several threads.
    slice_seconds : float, optional
        Approximate length of a slice.

    Returns
    -------
    dict
        By candidate: megabytes and documents per second of the best slice, megabytes per second of the median slice,
        and the number of slices.
    """
    counts, at = {}, 0
    for name, work in candidates.items():
        count, taken = 1, 0.0
        while taken < slice_seconds and count < len(texts):
            count *= 2
            started = clock()
            work([texts[i % len(texts)] for i in range(count)])
            taken = clock() - started
        counts[name] = max(1, round(count * min(slice_seconds / max(taken, 1e-9), 1)))
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in candidates}
    spent = dict.fromkeys(candidates, 0.0)
    while min(spent.values()) < seconds or min(map(len, rates.values())) < 5:
        for name, work in candidates.items():
            if spent[name] >= seconds and len(rates[name]) >= 5:
                continue
            chosen = [texts[(at + i) % len(texts)] for i in range(counts[name])]
            at += counts[name]
            started = clock()
            work(chosen)
            taken = clock() - started
            spent[name] += taken
            rates[name].append((sum(map(len, chosen)) / taken / 1e6, len(chosen) / taken))
    return {
        name: {
            "best_mb_per_second": max(found)[0],
            "best_documents_per_second": max(found)[1],
            "median_mb_per_second": statistics.median(rate for rate, _ in found),
            "slices": len(found),
        }
        for name, found in rates.items()
    }


def pieces(texts: Sequence[bytes], size: int, most: int = 8_000_000) -> list[bytes]:
    """Join the texts by spaces and cut them into pieces of `size` bytes, at most `most` bytes in total."""
    joined = b" ".join(texts)
    joined *= -(-size * 8 // len(joined))  # repeat a small corpus
    return [joined[start : start + size] for start in range(0, min(len(joined), most) - size + 1, size)]


def timed(work: Callable[[], Any], runs: int) -> tuple[Any, dict[str, Any]]:
    """Call `work` `runs` times; return its result, and the CPU and wall times."""
    cpu, wall = [], []
    for _ in range(runs):
        started = time.process_time(), time.perf_counter()
        result = work()
        cpu.append(time.process_time() - started[0])
        wall.append(time.perf_counter() - started[1])
    times = {"median_cpu_seconds": statistics.median(cpu), "median_wall_seconds": statistics.median(wall)}
    return result, {**times, "cpu_seconds": cpu, "wall_seconds": wall}


def machine() -> dict[str, Any]:
    """Describe the machine, its compiler and the versions."""
    model = platform.processor() or platform.machine()
    try:
        info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        model = next(line.partition(":")[2].strip() for line in info.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):  # not Linux, or no model name
        pass
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")[0]
    try:
        banner = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        banner = "unknown"
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "lsh": lsh.__version__,
        "compiler": banner.splitlines()[0],
        "simd": lsh.simd_level(),
    }


def rounded(value: Any) -> Any:
    """Round all floats of a value to six significant digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def figure(value: float) -> str:
    """Format a value: no decimals from 100 on, one from 10 on, else two."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def where(result: dict[str, Any]) -> str:
    """Describe the machine and the versions that a result was measured with."""
    machine = result["machine"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores; Python {machine['python']}, numpy {machine['numpy']}, "
        f"lsh {machine['lsh']}, {machine['compiler']}"
    )


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    """Return a Markdown table; the first column is text, the others are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def must(holds: bool, what: str) -> None:
    """Stop the benchmark with a message unless `holds`."""
    if not holds:
        raise SystemExit(f"wrong answer, benchmark stopped: {what}")


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return the parser of a script; `description` is its docstring, the argument `folder` is for the result."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument(
        "folder", nargs="?", type=Path, default=RESULTS, help="write the result here (default: benchmarks/results)"
    )
    return made


def write(name: str, content: dict[str, Any], folder: Path) -> None:
    """Write a result to the folder, and print its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(rounded({"machine": machine(), **content}), indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path}")
