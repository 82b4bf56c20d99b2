"""`lsh dedup` on a large file: time and the most memory that it had, by format; and what reading ahead is worth.

The file holds the stories of corpora.py as JSON lines or as Parquet in row groups of 50,000. The command runs in a
process of its own with a bound of 500 MB, and what it writes is held against `lsh.deduplicate` over the same texts.

    python benchmarks/files.py [FOLDER] [--gigabytes 5]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import compress
from pathlib import Path
from typing import Any

import corpora
import harness
import pyarrow
from pyarrow import parquet

import lsh
from lsh import io

N, THRESHOLD, BOUND = 5, 0.8, "500MB"
GROUP = 50_000  # rows
MEAN = 1400  # bytes of a story, about
AHEAD = 100_000  # documents with which reading ahead is measured
FORMS = ("jsonl", "parquet")


def write(corpus: corpora.Synthetic, path: Path) -> None:
    """Write the texts with ids, dates and sources, as a corpus has them."""
    if path.suffix != ".parquet":
        with io.Target(str(path)) as target:
            for i, text in enumerate(corpus.texts()):
                target.write(json.dumps(record(i, text)).encode() + b"\n")
            target.commit()
        return
    schema = pyarrow.schema([("id", "string"), ("source", "string"), ("year", "int64"), ("text", "string")])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for start in range(0, len(corpus), GROUP):
            texts = enumerate(corpus.texts(start, start + GROUP), start)
            rows = [record(i, text) for i, text in texts]
            writer.write_table(pyarrow.Table.from_pylist(rows, schema), GROUP)


def record(number: int, text: bytes) -> dict[str, Any]:
    return {"id": f"story-{number}", "source": f"wire {number % 7}", "year": 1987, "text": text.decode()}


def texts_of(path: Path) -> Iterator[bytes]:
    with io.Source(str(path)) as source:
        for one in source.records():
            yield one.text if isinstance(one.text, bytes) else str(one.text).encode()


def command(corpus: corpora.Synthetic, keep: Any, path: Path, folder: Path) -> dict[str, Any]:
    """Run the command, and check that the texts it writes are the ones to keep."""
    out = folder / f"out.{path.name.partition('.')[2]}"
    options = ["--ngram", N, "--unit", "byte", "--threshold", THRESHOLD, "--max-memory", BOUND, "--json", "-q"]
    arguments = [sys.executable, "-m", "lsh", "dedup", path, "-o", out, *options]
    run = subprocess.run(list(map(str, arguments)), cwd=folder, stdout=subprocess.PIPE, check=True)
    counts = json.loads(run.stdout)
    harness.must(counts["removed"] == int((~keep).sum()), f"{path.name}: {counts['removed']} removed")
    for written, text in zip(texts_of(out), compress(corpus.texts(), keep), strict=True):
        harness.must(written == text, f"{path.name}: other texts are written than are to be kept")
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
    """Measure reading, hashing by one thread, and both in turn and side by side; in MB of text a second."""
    hasher = lsh.MinHasher(128, scheme="fss", shingles=lsh.Shingles(N, "byte"))

    def hashed(texts: Any) -> None:
        for _ in hasher.chunks(texts, num_threads=1):
            pass

    with io.Source(str(path)) as source:
        texts = [one.text for one in source.records()]
        size = sum(len(text or b"") for text in texts) / 1e6
        ways = {
            "reading": lambda: [None for _ in source.records()],
            "hashing": lambda: hashed(texts),
            "in turn": lambda: hashed(one.text for one in source.records()),
            "ahead": lambda: hashed(one.text for one in io.ahead(source.records())),
        }
        return {name: size / min(wall(work) for _ in range(3)) for name, work in ways.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="where the result goes (default results/)")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of text, about (default 1)")
    parser.add_argument("--only", choices=FORMS, action="append", help="this format, and no result is written")
    options = parser.parse_args()
    corpus = corpora.stories(round(options.gigabytes * 1e9 / MEAN))
    shingles = lsh.Shingles(N, "byte")
    keep = lsh.deduplicate(corpus.texts, THRESHOLD, shingles=shingles, max_memory=BOUND).keep
    found, ahead = {}, {}
    for form in options.only or FORMS:
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / f"in.{form}"
            print(f"{form} ...", flush=True)
            write(corpus, path)
            found[form] = command(corpus, keep, path, Path(name))
            path.unlink()
            write(corpora.stories(min(len(corpus), AHEAD)), path)
            ahead[form] = reading_ahead(path)
    if options.only:
        print(json.dumps({"formats": found, "reading_ahead": ahead}, indent=1))
        return
    about = f"lsh dedup, 5 bytes, threshold {THRESHOLD}, --max-memory {BOUND}, every core"
    data = {"documents": len(corpus), "bytes": found[FORMS[0]]["text_bytes"], "row_group": GROUP}
    harness.write("files", {"about": about, "data": data, "formats": found, "reading_ahead": ahead}, options.folder)


if __name__ == "__main__":
    main()
