"""Measure time and peak memory of `lsh dedup` on a large file, by format, its overhead, and the gain of reading ahead.

The overhead is the CPU and the wall time of the command, from an unread file to a written one, divided by those of
`lsh.deduplicate` on the same texts in memory; each runs in a process of its own, in turn with the other. The file was
read from the disk once, so that the disk is not measured. What copying the file costs is measured, too: it is read and
written, with packing, or by pyarrow.

The file holds the stories of corpora.py as JSON lines or as Parquet in row groups of 50,000. The command runs in its
own process, with `--max-memory 500MB` and without a bound. Its output is compared with `lsh.deduplicate` on the same
texts. Reading ahead is measured with files of every format.

    python benchmarks/files/files.py [FOLDER] [--gigabytes 5]
    python benchmarks/files/files.py [FOLDER] --formats [--gigabytes 5]
    python benchmarks/files/files.py [FOLDER] --ahead
    python benchmarks/files/files.py [FOLDER] --overhead [--gigabytes 1]
"""

from __future__ import annotations

import csv
import filecmp
import io as streams
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

import lsh
from lsh import files
from lsh.text.batch import Batch
from lsh.typing import Pieces

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import corpora
import harness

N, THRESHOLD, BOUND = 5, 0.8, "500MB"
GROUP = 50_000  # rows
MEAN = 1400  # bytes of a story, approximately
AHEAD = 100_000  # documents of the files for reading ahead
FORMS = ("jsonl", "jsonl.zst", "parquet")
READ = ("jsonl", "csv", "tsv", "txt", "jsonl.zst", "parquet")
ROUNDS, OVERHEAD_ROUNDS = 7, 3
IN_MEMORY = """
import json, os, sys, time
import lsh
from lsh import files
path, n, threshold = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
with files.Documents(path) as documents:
    texts = [text for block in documents.blocks() for text in block.texts.tolist()]
cpu, wall = time.process_time(), time.perf_counter()
lsh.deduplicate(texts, threshold, shingles=lsh.Shingles(n, "byte"))
print(json.dumps({"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}))
"""
COPY = """
import json, sys, time
from contextlib import closing
import pyarrow.parquet
from lsh.storage import compression, inputs, targets

path, out = sys.argv[1:]
cpu, wall = time.process_time(), time.perf_counter()
if path.endswith(".parquet"):
    file = pyarrow.parquet.ParquetFile(path)
    with pyarrow.parquet.ParquetWriter(out, file.schema_arrow, compression="zstd") as writer:
        for number in range(file.num_row_groups):
            group = file.read_row_group(number, use_threads=False)
            writer.write_table(group, len(group))
else:
    with closing(inputs.Input(path, compression.of_path(path))) as file, file.opened() as source:
        with targets.Target(out) as target:
            while piece := source.read(1 << 18):
                target.write(piece)
            target.commit()
print(json.dumps({"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}))
"""


def write(corpus: corpora.Synthetic, path: Path) -> None:
    """Write the texts with id, source and year; formats without these columns get id and text, or the text alone."""
    if path.suffix == ".parquet":
        _write_parquet(corpus, path)
        return
    with files.Target(str(path)) as target:
        if path.suffix == ".csv":
            target.write(b"id,source,year,text\n")
        for i, text in enumerate(corpus.texts()):
            target.write(_line(path.name.split(".")[1], record(i, text)).encode() + b"\n")
        target.commit()


def _line(form: str, fields: dict[str, Any]) -> str:
    if form == "jsonl":
        return json.dumps(fields)
    if form == "csv":
        line = streams.StringIO()
        csv.writer(line, lineterminator="").writerow(fields.values())
        return line.getvalue()
    text = " ".join(fields["text"].split())
    return text if form == "txt" else f"{fields['id']}\t{text}"


def _write_parquet(corpus: corpora.Synthetic, path: Path) -> None:
    schema = pyarrow.schema([("id", "string"), ("source", "string"), ("year", "int64"), ("text", "string")])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for start in range(0, len(corpus), GROUP):
            texts = enumerate(corpus.texts(start, start + GROUP), start)
            rows = [record(i, text) for i, text in texts]
            writer.write_table(pyarrow.Table.from_pylist(rows, schema), GROUP)


def record(number: int, text: bytes) -> dict[str, Any]:
    return {"id": f"story-{number}", "source": f"wire {number % 7}", "year": 1987, "text": text.decode()}


def texts_of(path: Path) -> Iterator[bytes]:
    with files.Documents(str(path)) as source:
        for one in source.records():
            yield one.text or b""


def command(corpus: corpora.Synthetic, keep: Any, path: Path, folder: Path) -> dict[str, Any]:
    """Run the command under the bound and without it, and check that both write exactly the kept texts."""
    form = path.name.partition(".")[2]
    outputs = [folder / f"{name}.{form}" for name in ("bounded", "unbounded")]
    options = ["--ngram", N, "--unit", "byte", "--threshold", THRESHOLD, "--json", "-q"]
    found = []
    for out, bound in zip(outputs, (["--max-memory", BOUND], []), strict=True):
        arguments = [sys.executable, "-m", "lsh", "dedup", path, "-o", out, *options, *bound]
        run = subprocess.run(list(map(str, arguments)), cwd=folder, stdout=subprocess.PIPE, check=True)
        found.append(json.loads(run.stdout))
    counts, unbounded = found
    harness.must(counts["removed"] == int((~keep).sum()), f"{path.name}: {counts['removed']} removed")
    for written, text in zip(texts_of(outputs[0]), compress(corpus.texts(), keep), strict=True):
        harness.must(written == text, f"{path.name}: the output differs from the kept texts")
    harness.must(filecmp.cmp(*outputs, shallow=False), f"{path.name}: the output without a bound differs")
    size = path.stat().st_size
    for out in outputs:
        out.unlink()
    return {
        "file_bytes": size,
        "text_bytes": counts["bytes"],
        "documents": counts["documents"],
        "removed": counts["removed"],
        "seconds": counts["seconds"],
        "mb_per_second": counts["bytes"] / counts["seconds"]["total"] / 1e6,
        "peak_bytes": counts["peak_memory"],
        "unbounded_seconds": unbounded["seconds"],
        "unbounded_peak_bytes": unbounded["peak_memory"],
    }


def cost(arguments: Sequence[object], folder: Path) -> dict[str, float]:
    """Return the CPU and the wall time of a program in seconds, or those that it prints as JSON.

    Its bytecode is in a folder, as that of an installed package is.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    before, started = os.times(), time.perf_counter()
    # In another folder than the repository, where Python would import the sources in place of the installed package.
    run = subprocess.run(list(map(str, arguments)), cwd=folder, stdout=subprocess.PIPE, check=True, env=environment)
    elapsed, after = time.perf_counter() - started, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return dict(json.loads(run.stdout)) if run.stdout else {"cpu": cpu, "wall": elapsed}


def overhead(path: Path, folder: Path) -> dict[str, Any]:
    """Compare the command with `lsh.deduplicate` on the texts of the file in memory.

    Returns the medians, their ratios, and the load of the machine in the last minute: if it is more than two, other
    programs ran, and the wall times are too long.
    """
    out = folder / f"out.{path.name.partition('.')[2]}"
    options = ["--ngram", N, "--unit", "byte", "--threshold", THRESHOLD, "-q"]
    ways: dict[str, Sequence[object]] = {
        "memory": [sys.executable, "-c", IN_MEMORY, path, N, THRESHOLD],
        "command": [sys.executable, "-m", "lsh", "dedup", path, "-o", out, *options],
        "copy": [sys.executable, "-c", COPY, path, out],
    }
    drop(path)
    cost(ways["command"], folder)  # writes the bytecode, and reads the file from the disk
    found: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for _ in range(OVERHEAD_ROUNDS):
        for name, arguments in ways.items():
            found[name].append(cost(arguments, folder))
            out.unlink(missing_ok=True)
    medians = {
        name: {clock: statistics.median(one[clock] for one in runs) for clock in ("cpu", "wall")}
        for name, runs in found.items()
    }
    ratios = {clock: medians["command"][clock] / medians["memory"][clock] for clock in ("cpu", "wall")}
    return {**medians, "ratio": ratios, "load": os.getloadavg()[0]}


def drop(path: Path) -> None:
    """Remove a file from the page cache, so that its pages are as a reading from the disk leaves them."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def by_form(measured: Callable[[Path], Any], corpus: corpora.Synthetic, forms: Iterable[str], folder: Path) -> Any:
    """Measure a file of each format."""
    found = {}
    for form in forms:
        path = folder / f"in.{form}"
        print(f"{form}, {measured.__name__} ...", flush=True)
        write(corpus, path)
        found[form] = measured(path)
        path.unlink()
    return found


def wall(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def reading_ahead(path: Path) -> dict[str, float]:
    """Measure reading, hashing by one thread, one after the other, and both at once as in the command.

    Hashing computes fingerprints and keys. Rates are medians, in MB of text per second of wall time.
    """
    shingles = lsh.Shingles(N, "byte")

    def hashed(texts: Callable[[], Iterator[Any]]) -> float:
        result = lsh.deduplicate(lambda: Pieces(texts()), THRESHOLD, shingles=shingles, num_threads=1)
        harness.must(np.array_equal(result.keep, keep), f"{path.name}: keeps other texts")
        return float(result.summary()["seconds"]["fingerprints"])

    with files.Documents(str(path)) as source:
        held = [block.texts for block in source.blocks()]
        size = sum(int(texts.sizes().sum()) for texts in held) / 1e6
        keep = lsh.deduplicate(Batch.join(held), THRESHOLD, shingles=shingles).keep

        def read() -> Iterator[Any]:
            return (block.texts for block in source.blocks())

        ways: dict[str, Callable[[], float]] = {
            "reading": lambda: wall(lambda: deque(read(), 0)),
            "hashing": lambda: hashed(lambda: iter(held)),
            "in turn": lambda: hashed(read),
            "ahead": lambda: hashed(lambda: files.prefetched(read())),
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, measured in ways.items():
                seconds[name].append(measured())
        return {name: size / statistics.median(taken) for name, taken in seconds.items()}


def parts(corpus: corpora.Synthetic, forms: Iterable[str]) -> dict[str, Callable[[Path], dict[str, Any]]]:
    """Return the parts of the result that can be measured alone."""

    def formats(folder: Path) -> dict[str, Any]:
        shingles, found = lsh.Shingles(N, "byte"), {}
        keep = lsh.deduplicate(corpus.texts, THRESHOLD, shingles=shingles, max_memory=BOUND).keep
        for form in [form for form in FORMS if form in forms]:
            path = folder / f"in.{form}"
            print(f"{form} ...", flush=True)
            write(corpus, path)
            found[form] = command(corpus, keep, path, folder)
            path.unlink()
        size = next((one["text_bytes"] for one in found.values()), 0)
        data = {"documents": len(corpus), "bytes": size, "row_group": GROUP}
        about = f"lsh dedup, 5 bytes, threshold {THRESHOLD}, --max-memory {BOUND} and without, every core"
        return {"about": about, "data": data, "formats": found}

    def ahead(folder: Path) -> dict[str, Any]:
        return {"reading_ahead": by_form(reading_ahead, corpora.stories(AHEAD), forms, folder)}

    def of_command(folder: Path) -> dict[str, Any]:
        def overheads(path: Path) -> dict[str, Any]:
            return overhead(path, folder)

        found = by_form(overheads, corpus, forms, folder)
        return {"overhead": {"documents": len(corpus), "simd": lsh.simd_level(), "formats": found}}

    return {"formats": formats, "ahead": ahead, "overhead": of_command}


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="approximate size of the text (default: 1)")
    parser.add_argument("--only", choices=READ, action="append", help="measure this format; write no result")
    for name, what in (("formats", "the command"), ("ahead", "reading ahead"), ("overhead", "the overhead")):
        parser.add_argument(f"--{name}", action="store_true", help=f"measure {what} only; keep the rest of the result")
    options = parser.parse_args()
    corpus = corpora.stories(round(options.gigabytes * 1e9 / MEAN))
    known = parts(corpus, options.only or READ)
    chosen = [part for name, part in known.items() if getattr(options, name)]
    result = {}
    if chosen and not options.only:
        result = json.loads((options.folder / "files.json").read_text())
        del result["machine"]
    with tempfile.TemporaryDirectory() as name:
        for part in chosen or known.values():
            result |= part(Path(name))
    if options.only:
        print(json.dumps(result, indent=1))
    else:
        harness.write("files", result, options.folder)


if __name__ == "__main__":
    main()
