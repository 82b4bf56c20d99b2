"""Measure time and memory of `deduplicate` from raw text to the result, on corpora of many sizes and kinds.

Every case runs in its own process. The answer is checked: every removed document has a kept witness, and their exact
Jaccard similarity, computed here with Python sets, equals the reported one (for all removals, or a sample of about a
thousand). The share of planted copies above the threshold that are removed is reported. A streamed corpus is generated
again each time it is read, which takes longer than `deduplicate` itself; the time for this is measured separately.

`engine.py` runs the cases that take minutes, `engine.py --all` the longer ones, too. `engine.py --only reviews --count
140000000 --max-memory 6GB` runs one case at any size and prints the result; with `--update` it is put into the stored
result, so that the cases can be measured one by one. Under a bound, `bound_kept` tells whether the peak memory of the
whole process is at most `max_memory` and 120 MB. `engine.py --threads` compares two threads with one on the wall, in
turns; use it with `--update` on a machine without other work.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import lsh
from lsh.base.budget import LEAST_BYTES, memory_size

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import corpora
import harness

N, THRESHOLD = 5, 0.8
SAMPLE = 1000
BESIDE = 120_000_000  # bytes that a process may take beside max_memory: interpreter, numpy, texts that are being read


class Case(NamedTuple):
    """A corpus, and how it is deduplicated."""

    make: Callable[..., corpora.Synthetic]
    streamed: bool = False  # else a list in memory
    threads: int = 1
    runs: int = 1
    long: bool = False
    sample: int = SAMPLE


CASES = {
    "news": Case(corpora.news_and_articles, runs=5),
    "short": Case(corpora.short_texts, runs=5),
    "template": Case(corpora.one_template),
    "near": Case(corpora.near_misses),
    "copies": Case(corpora.edited_copies, streamed=True),
    "stories": Case(corpora.stories, threads=2),
    "reviews": Case(corpora.reviews, streamed=True, threads=2, long=True),
    "long": Case(corpora.long_texts, streamed=True, threads=2, sample=50),
}
# Documents of the cases that are compared on one thread and on two.
IN_THREADS = {"stories": 806_791, "copies": 300_000}
ROUNDS = 5
BOUNDS = ("500MB", "1GB", "2GB")
# The documents and the bounds of a case that has several: those that are above the smallest bound.
SEVERAL = {
    "reviews": [
        (count, bound)
        for count in (1_000_000, 10_000_000, 40_000_000)
        for bound in BOUNDS
        if LEAST_BYTES * count <= (memory_size(bound) or 0)
    ],
    "long": [(3000, "20MB")],
}


def peak() -> int:
    """Return the peak memory of the process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def jaccard(a: bytes, b: bytes) -> float:
    """Compute the exact Jaccard similarity from its definition."""
    one, other = ({text[i : i + N] for i in range(max(1, len(text) - N + 1))} for text in (a, b))
    return len(one & other) / len(one | other)


def check(corpus: corpora.Synthetic, result: lsh.Deduplication, sample: int) -> dict[str, Any]:
    """Compare removals with the definition; return the share of planted copies that are removed."""
    removed = result.removed
    chosen = removed[:: max(1, len(removed) // sample)]
    documents, kept = corpus.at(chosen["document"].tolist()), corpus.at(chosen["kept"].tolist())
    for row, document, witness in zip(chosen, documents, kept, strict=True):
        exact = jaccard(document, witness)
        harness.must(result.keep[row["kept"]] and exact == row["similarity"] >= THRESHOLD, f"{row} has no witness")
    planted = corpus.planted(0, min(len(corpus), 1_000_000))
    planted = planted[:: max(1, len(planted) // sample)]
    pairs = zip(corpus.at(planted[:, 0].tolist()), corpus.at(planted[:, 1].tolist()), strict=True)
    similar = np.array([jaccard(a, b) >= THRESHOLD for a, b in pairs], np.bool_)
    copies = planted[similar]
    found = float(1.0 - (result.keep[copies.max(axis=1)]).mean()) if len(copies) else None
    return {"checked_removals": len(chosen), "planted_at_threshold": len(copies), "planted_found": found}


def run(name: str, count: int | None, max_memory: str | None) -> dict[str, Any]:
    """Run one case in this process."""
    case = CASES[name]
    corpus = case.make(count) if count else case.make()
    started = time.process_time()
    size = sum(map(len, corpus.texts()))
    reading = time.process_time() - started
    texts: Any = corpus.texts if case.streamed else list(corpus.texts())
    before, cpu, wall = peak(), [], []
    for _ in range(case.runs):
        started, at = time.process_time(), time.perf_counter()
        result = lsh.deduplicate(
            texts,
            THRESHOLD,
            shingles=lsh.Shingles(N, "byte"),
            num_threads=case.threads,
            max_memory=max_memory,
        )
        cpu.append(time.process_time() - started)
        wall.append(time.perf_counter() - at)
    more = peak() - before
    found = {
        "documents": len(corpus),
        "megabytes": size / 1e6,
        "streamed": case.streamed,
        "threads": case.threads,
        "max_memory": max_memory,
        "first_cpu_seconds": cpu[0],
        "best_cpu_seconds": min(cpu),
        "best_wall_seconds": min(wall),
        "cpu_seconds_of_reading": 2 * reading if case.streamed else 0.0,
        "more_memory_bytes": more,
        "peak_bytes": before + more,
        "summary": result.summary(),
    }
    most = memory_size(max_memory)
    if most is not None:
        found["least_max_memory_bytes"] = LEAST_BYTES * len(corpus)
        found["bound_kept"] = before + more <= most + BESIDE
    found["cpu_us_per_document"] = 1e6 * (min(cpu) - found["cpu_seconds_of_reading"]) / len(corpus)
    return {**found, **check(corpus, result, case.sample), "machine": harness.machine()}


def compare_threads(name: str) -> dict[str, Any]:
    """Measure seconds of one thread and of two, in turns, on texts in memory; the results have to be equal."""
    texts = list(CASES[name].make(IN_THREADS[name]).texts())
    seconds: dict[str, list[float]] = {f"{stage}_{count}": [] for stage in ("comparing", "all") for count in (1, 2)}
    keep = None
    for _ in range(ROUNDS):
        for count in (1, 2):
            result = lsh.deduplicate(texts, THRESHOLD, shingles=lsh.Shingles(N, "byte"), num_threads=count)
            took = result.summary()["seconds"]
            seconds[f"comparing_{count}"].append(took["comparing"])
            seconds[f"all_{count}"].append(sum(took.values()))
            harness.must(keep is None or np.array_equal(keep, result.keep), f"{count} threads keep other documents")
            keep = result.keep
    return {"documents": len(texts), **{key: min(measured) for key, measured in seconds.items()}}


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--all", action="store_true", help="run the longer cases, too")
    parser.add_argument("--only", choices=CASES, help="run one case and print its result")
    parser.add_argument("--count", type=int, help="number of documents of that case")
    parser.add_argument("--update", action="store_true", help="put what runs into the result that is there")
    parser.add_argument("--threads", action="store_true", help="compare two threads with one; runs no case")
    parser.add_argument("--max-memory", metavar="SIZE", help="its bound, such as 500MB")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(run(options.case, options.count, options.max_memory)))
        return
    stored = json.loads((options.folder / "engine.json").read_text(encoding="utf-8")) if options.update else {}
    in_threads = stored.get("threads", {})
    if options.threads:
        in_threads = {name: compare_threads(name) for name in IN_THREADS}
    found = {}
    for name, case in CASES.items():
        if options.threads or (name != options.only and (options.only or (case.long and not options.all))):
            continue
        several = (
            [(options.count, options.max_memory)] if options.count else SEVERAL.get(name, [(None, options.max_memory)])
        )
        for count, bound in several:
            if options.max_memory not in (None, bound):
                continue
            key = "_".join(map(str, filter(None, (name, count, bound))))
            print(f"{key} ...", flush=True)
            command = [sys.executable, __file__, "--case", name, *(["--count", str(count)] if count else [])]
            command += ["--max-memory", bound] if bound else []
            with tempfile.TemporaryFile("w+") as out:
                # idle threads of numpy's matrix library spin, which would count as CPU time of lsh
                subprocess.run(command, stdout=out, check=True, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})
                out.seek(0)
                found[key] = json.loads(out.read())
    if (options.only or options.threads) and not options.update:
        print(json.dumps(found or in_threads, indent=1))
        return
    found = {**stored.get("cases", {}), **found}
    about = "deduplicate from raw text to the result, 5 bytes, threshold 0.8, defaults otherwise; CPU time"
    data = {
        "documents": sum(case["documents"] for case in found.values()),
        "bytes": round(sum(case["megabytes"] for case in found.values()) * 1e6),
    }
    content = {"about": about, "data": data, "cases": found, "threads": in_threads}
    if options.update:
        content["machine"] = stored["machine"]  # of the rows that are not measured now; those name their own
    harness.write("engine", content, options.folder)


if __name__ == "__main__":
    main()
