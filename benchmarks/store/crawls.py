"""Measure dumps of a crawl one after another: `lsh dedup --against-index`, then `lsh index add` of what is kept.

Each dump is the next part of one corpus of stories (`corpora.stories`), as a file of JSON lines. Each command runs in a
process of its own, whose CPU time, wall time and peak of memory are those that the system reports for it. The second
and the last dump are measured again by turns, each with a copy of the index as it was, so that other load on the
machine affects both. At the end all dumps are deduplicated in one run with the bands of the index. The kept documents
must be the same bytes, and the removed documents, their witnesses and the counts of `--copies`, added up over the
dumps, must be the same.

Before each dump, only what it reads is in the memory of the system: else that would be full of the files of all dumps,
and each command would take time to make room.

    python benchmarks/store/crawls.py [FOLDER] [--dumps 12] [--documents 200000]    # six minutes, 15 GB of disk
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lsh

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import corpora
import harness

DUMPS, DOCUMENTS = 12, 200_000
RUNS = 3  # of the second and the last dump, by turns
Row = list[str]


def run(folder: Path, *arguments: object) -> dict[str, float]:
    """Run a command; return its CPU and wall seconds and its peak of memory."""
    line = [sys.executable, "-m", "lsh", *map(str, arguments), "-q"]
    started = time.perf_counter()
    process = subprocess.Popen(line, cwd=folder, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    harness.must(status == 0, f"lsh {' '.join(map(str, arguments))} failed")
    return {"cpu_seconds": used.ru_utime + used.ru_stime, "wall_seconds": wall, "peak_bytes": used.ru_maxrss << 10}


def write_dump(path: Path, corpus: corpora.Synthetic, start: int, stop: int) -> int:
    """Write a part of the corpus; return the bytes of its texts."""
    size = 0
    with path.open("w", encoding="utf-8") as file:
        for number, text in enumerate(corpus.texts(start, stop), start):
            file.write(json.dumps({"id": f"story-{number:09}", "text": text.decode("utf-8", "replace")}) + "\n")
            size += len(text)
    return size


def settle(folder: Path, *needed: str) -> None:
    """Write all files to the disk, and let the system forget them, but for those that are needed."""
    os.sync()
    for path in filter(Path.is_file, folder.rglob("*")):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    for name in needed:
        for path in filter(Path.is_file, [folder / name, *(folder / name).glob("*")]):
            with path.open("rb") as file:
                while file.read(1 << 24):
                    pass


def month(folder: Path, name: str, index: str, prefix: str = "") -> dict[str, Any]:
    """Deduplicate a dump against an index and add what is kept; return the cost of both."""
    new, tables = f"{prefix}new-{name}.jsonl", [f"{prefix}removed-{name}.tsv", f"{prefix}copies-{name}.tsv"]
    settle(folder, index, f"{name}.jsonl")
    options = ["--against-index", index, "-o", new, "--removed", tables[0], "--copies", tables[1]]
    return {"dedup": run(folder, "dedup", f"{name}.jsonl", *options), "add": run(folder, "index", "add", index, new)}


def by_turns(folder: Path, names: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Measure some dumps again, each with a copy of the index as it was before."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(RUNS):
        for name in names:
            shutil.rmtree(folder / "trial.index", ignore_errors=True)
            shutil.copytree(folder / f"before-{name}.index", folder / "trial.index")
            found[name].append(month(folder, name, "trial.index", "again-"))
    return found


def rows(paths: list[Path]) -> Iterator[Row]:
    """Yield the rows of tables."""
    for path in paths:
        with path.open(encoding="utf-8") as file:
            yield from (line.rstrip("\n").split("\t") for line in file)


def check(folder: Path, dumps: list[str], documents: int) -> None:
    """Compare the dumps with the run of all at once."""

    def named(name: str) -> list[Path]:
        return [folder / name.replace("*", dump) for dump in dumps]

    with (folder / "all.jsonl").open("rb") as together:
        for path in named("new-*.jsonl"):
            with path.open("rb") as part:
                while block := part.read(1 << 24):
                    harness.must(together.read(len(block)) == block, f"{path.name} has other documents")
        harness.must(not together.read(1), "all dumps together have more documents")
    expected = {row[0]: row for row in rows([folder / "all-removed.tsv"])}
    for document, kept, similarity, _ in rows(named("removed-*.tsv")):
        harness.must([kept, similarity] == expected.pop(document)[1:3], f"{document} has another witness")
    harness.must(not expected, "all dumps together have more removed documents")
    counts = Counter[str]({row[0]: int(row[1]) for row in rows([folder / "all-copies.tsv"])})
    summed = Counter[str]()
    for identity, number, _ in rows(named("copies-*.tsv")):
        summed[identity] += int(number)
    harness.must(summed == counts and summed.total() == documents, "the counts differ")


def crawls_table(result: dict[str, Any]) -> str:
    """Return what each dump costs, the second and the last one by turns, and all at once."""
    count, dumps, rows = result["documents"], result["dumps"], []

    def costs(one: dict[str, Any]) -> list[float]:
        each = [1e6 * one[step]["cpu_seconds"] / count for step in ("dedup", "add")]
        return [*each, sum(each), 1e6 * (one["dedup"]["wall_seconds"] + one["add"]["wall_seconds"]) / count]

    for number, one in enumerate(dumps, 1):
        index, peak = one["index"], f"{one['dedup']['peak_bytes'] / 1e9:.2f}"
        cells = [f"{index['documents']:,}", str(index["segments"]), f"{index['bytes'] / 1e9:.2f}"]
        rows.append([str(number), *(f"{value:.1f}" for value in costs(one)), peak, *cells])
    medians = {name: list(map(statistics.median, zip(*map(costs, found)))) for name, found in result["again"].items()}
    for name, found in medians.items():
        rows.append([f"{int(name)}, again by turns", *(f"{value:.1f}" for value in found), "", "", "", ""])
    together, total = result["together"], result["data"]["documents"]
    times = [f"{1e6 * together[clock] / total:.1f}" for clock in ("cpu_seconds", "wall_seconds")]
    rows.append(["all at once", times[0], "", *times, f"{together['peak_bytes'] / 1e9:.2f}", "", "", ""])
    head = ["dump", "CPU us a document: `lsh dedup`", "`lsh index add`", "both", "us on the wall"]
    head += ["GB at the peak of `lsh dedup`", "documents in the index", "segments", "GB"]
    second, last = (found[2] for found in medians.values())
    about = (
        f"{harness.where(result)}. {len(dumps)} dumps of {count:,} stories, {result['data']['bytes'] / total:,.0f} "
        f"bytes each. By turns (medians of {RUNS}), the last dump takes {last / second:.2f} times the CPU time of the "
        f"second; all dumps take {statistics.mean(costs(one)[2] for one in dumps):.1f} microseconds a document on "
        f"average. The same documents are removed as all at once, with the same witnesses."
    )
    return f"{about}\n\n{harness.table(head, rows)}"


TABLES = {"crawls": crawls_table}


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--dumps", type=int, default=DUMPS, help=f"default: {DUMPS}")
    parser.add_argument("--documents", type=int, default=DOCUMENTS, help=f"documents of a dump; default: {DOCUMENTS}")
    options = parser.parse_args()
    count, total = options.documents, options.dumps * options.documents
    corpus, names, steps, size = corpora.stories(total), [f"{n:02}" for n in range(1, options.dumps + 1)], [], 0
    with tempfile.TemporaryDirectory() as temp:
        folder = Path(temp)
        run(folder, "index", "create", "known.index")
        for number, name in enumerate(names):
            size += write_dump(folder / f"{name}.jsonl", corpus, number * count, (number + 1) * count)
            if name in (names[1], names[-1]):
                shutil.copytree(folder / "known.index", folder / f"before-{name}.index")
            steps.append(month(folder, name, "known.index"))
            with lsh.Index.open(folder / "known.index") as index:
                facts, bands = index.info(), index.bands.to_string()
            steps[-1]["index"] = {key: facts[key] for key in ("documents", "segments", "bytes")}
            print(name, json.dumps(harness.rounded(steps[-1])), flush=True)
        again = by_turns(folder, [names[1], names[-1]])
        every = [f"{name}.jsonl" for name in names]
        tables = ["--removed", "all-removed.tsv", "--copies", "all-copies.tsv"]
        together = run(folder, "dedup", *every, "-o", "all.jsonl", "--bands", bands, *tables)
        check(folder, names, total)
    data = {"name": "stories", "documents": total, "bytes": size}
    content = {"data": data, "documents": count, "dumps": steps, "again": again, "together": together}
    harness.write("crawls", content, options.folder)


if __name__ == "__main__":
    main()
