"""Measure time and peak memory of `lsh dedup` on a large file, by format, and the gain of reading ahead.

The file holds the stories of corpora.py as JSON lines or as Parquet in row groups of 50,000. The command runs in its
own process with `--max-memory 500MB`. Its output is compared with `lsh.deduplicate` on the same texts. Reading ahead is
measured with files of every format.

    python benchmarks/files.py [FOLDER] [--gigabytes 5]
    python benchmarks/files.py [FOLDER] --ahead
"""

from __future__ import annotations

import argparse
import csv
import io as streams
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import compress
from pathlib import Path
from typing import Any

import corpora
import harness
import numpy as np
import pyarrow
from pyarrow import parquet

import lsh
from lsh import files
from lsh._batch import Batch
from lsh._texts import Pieces

N, THRESHOLD, BOUND = 5, 0.8, "500MB"
GROUP = 50_000  # rows
MEAN = 1400  # bytes of a story, approximately
AHEAD = 100_000  # documents of the files for reading ahead
FORMS = ("jsonl", "parquet")
READ = ("jsonl", "csv", "tsv", "txt", "jsonl.zst", "parquet")
ROUNDS = 7


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
    """Run the command and check that it writes exactly the kept texts."""
    out = folder / f"out.{path.name.partition('.')[2]}"
    options = ["--ngram", N, "--unit", "byte", "--threshold", THRESHOLD, "--max-memory", BOUND, "--json", "-q"]
    arguments = [sys.executable, "-m", "lsh", "dedup", path, "-o", out, *options]
    run = subprocess.run(list(map(str, arguments)), cwd=folder, stdout=subprocess.PIPE, check=True)
    counts = json.loads(run.stdout)
    harness.must(counts["removed"] == int((~keep).sum()), f"{path.name}: {counts['removed']} removed")
    for written, text in zip(texts_of(out), compress(corpus.texts(), keep), strict=True):
        harness.must(written == text, f"{path.name}: the output differs from the kept texts")
    size = path.stat().st_size
    out.unlink()
    return {
        "file_bytes": size,
        "text_bytes": counts["bytes"],
        "documents": counts["documents"],
        "removed": counts["removed"],
        "seconds": counts["seconds"],
        "mb_per_second": counts["bytes"] / counts["seconds"]["total"] / 1e6,
        "peak_bytes": counts["peak_memory"],
    }


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


def ahead_by_form(forms: Iterable[str], folder: Path) -> dict[str, dict[str, float]]:
    found = {}
    for form in forms:
        path = folder / f"in.{form}"
        print(f"{form}, read ahead ...", flush=True)
        write(corpora.stories(AHEAD), path)
        found[form] = reading_ahead(path)
        path.unlink()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="write the result here (default: results/)")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="approximate size of the text (default: 1)")
    parser.add_argument("--only", choices=READ, action="append", help="measure this format; write no result")
    parser.add_argument("--ahead", action="store_true", help="measure reading ahead only; keep the rest of the result")
    options = parser.parse_args()
    if options.ahead:
        with tempfile.TemporaryDirectory() as name:
            result = json.loads(((options.folder or harness.RESULTS) / "files.json").read_text())
            del result["machine"]
            harness.write(
                "files", {**result, "reading_ahead": ahead_by_form(READ, Path(name))}, options.folder or harness.RESULTS
            )
        return
    corpus = corpora.stories(round(options.gigabytes * 1e9 / MEAN))
    shingles = lsh.Shingles(N, "byte")
    keep = lsh.deduplicate(corpus.texts, THRESHOLD, shingles=shingles, max_memory=BOUND).keep
    found = {}
    with tempfile.TemporaryDirectory() as name:
        for form in [form for form in FORMS if form in (options.only or FORMS)]:
            path = Path(name) / f"in.{form}"
            print(f"{form} ...", flush=True)
            write(corpus, path)
            found[form] = command(corpus, keep, path, Path(name))
            path.unlink()
        ahead = ahead_by_form(options.only or READ, Path(name))
    if options.only:
        print(json.dumps({"formats": found, "reading_ahead": ahead}, indent=1))
        return
    about = f"lsh dedup, 5 bytes, threshold {THRESHOLD}, --max-memory {BOUND}, every core"
    data = {"documents": len(corpus), "bytes": found[FORMS[0]]["text_bytes"], "row_group": GROUP}
    harness.write(
        "files",
        {"about": about, "data": data, "formats": found, "reading_ahead": ahead},
        options.folder or harness.RESULTS,
    )


if __name__ == "__main__":
    main()
