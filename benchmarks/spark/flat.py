"""Measure how even the tasks of `lsh.spark` are: the longest one, and all tasks of a document, as corpora grow.

Each case runs in a process of its own in `local[2]` with 32 partitions and adaptive execution, and its removals are
compared with those of `lsh.deduplicate`, row for row. The time of a task is what Spark reports as its run time. A small
job runs before, so that the tasks that are measured neither load the classes of Java nor start Python.

    python benchmarks/spark/flat.py             # all cases; writes results/flat.json
    python benchmarks/spark/flat.py --only copies 1000000 0.8 [--update]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import corpora
import harness

N = 5  # bytes of a shingle
PARTITIONS = 32
CASES = [
    ("stories", 100_000, 0.6),
    ("stories", 800_000, 0.6),
    ("copies", 100_000, 0.8),
    ("copies", 1_000_000, 0.8),
    ("near", 50_000, 0.8),
    ("near", 200_000, 0.8),
    ("chain", 200_000, 0.8),
]
FILES = 40  # a file is read by one task


def chain(count: int) -> Iterator[bytes]:
    """Yield texts of 40 numbers, each with one number other than the one before it: about .85 alike."""
    for i in range(count):
        yield b" ".join(b"%06d" % (i + k) for k in range(40))


def texts_of(name: str, count: int) -> list[bytes]:
    """Return the texts of a corpus."""
    if name == "chain":
        return list(chain(count))
    make = {"stories": corpora.stories, "copies": corpora.edited_copies, "near": corpora.near_misses}[name]
    return list(make(count).texts())


def tasks(spark: Any) -> list[dict[str, Any]]:
    """Return the tasks of all stages so far."""
    time.sleep(1.0)  # Spark records the end of a stage later
    url = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}/stages"
    with urllib.request.urlopen(url) as answer:
        stages = json.load(answer)
    found = []
    for stage in stages:
        if stage["status"] == "COMPLETE":
            with urllib.request.urlopen(
                f"{url}/{stage['stageId']}/{stage['attemptId']}/taskList?length=100000"
            ) as answer:
                found += [{"stage": stage["stageId"], **task} for task in json.load(answer)]
    return found


def measured(name: str, count: int, threshold: float) -> dict[str, Any]:
    """Measure one case."""
    import pyarrow
    import pyarrow.parquet
    from pyspark.sql import SparkSession

    import lsh
    import lsh.spark
    from lsh.spark import _rounds

    shingles = lsh.Shingles(N, "byte")
    texts = texts_of(name, count)
    started = time.process_time()
    expected = lsh.deduplicate(texts, threshold, shingles=shingles)
    alone = time.process_time() - started
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, count, -(-count // FILES)):
            some = texts[start : start + -(-count // FILES)]
            table = pyarrow.table(
                {"id": pyarrow.array(np.arange(start, start + len(some))), "text": pyarrow.array(some)}
            )
            Path(folder, "in").mkdir(exist_ok=True)
            pyarrow.parquet.write_table(table, f"{folder}/in/{start:09}.parquet")
        builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", str(PARTITIONS))
        for key, value in {
            "spark.driver.memory": "6g",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": f"{folder}/shuffle",
            "spark.sql.files.maxPartitionBytes": "8m",
            "spark.ui.retainedTasks": "1000000",
            "spark.ui.retainedStages": "100000",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
        }.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        small = spark.read.parquet(f"{folder}/in").limit(1000)
        lsh.spark.removed(small, threshold=threshold, shingles=shingles).collect()
        known = {task["taskId"] for task in tasks(spark)}
        rounds = []
        decide = _rounds._in_rounds
        _rounds._in_rounds = lambda *given: (rounds.append(1), decide(*given))[1]  # type: ignore[assignment,func-returns-value]
        began = time.perf_counter()
        found = lsh.spark.removed(spark.read.parquet(f"{folder}/in"), threshold=threshold, shingles=shingles)
        rows = sorted(map(tuple, found.collect()))
        wall = time.perf_counter() - began
        done = [task for task in tasks(spark) if task["taskId"] not in known]
        spark.stop()
    wanted = [tuple(row) for row in expected.removed[["document", "kept", "similarity", "identical"]].tolist()]
    harness.must(rows == wanted, f"{len(rows)} rows of Spark, {len(wanted)} of deduplicate")
    seconds = np.array([task["taskMetrics"]["executorRunTime"] for task in done]) / 1000
    for number in sorted({task["stage"] for task in done}):
        own = [task["taskMetrics"]["executorRunTime"] / 1000 for task in done if task["stage"] == number]
        print(f"  stage {number}: {len(own)} tasks, {sum(own):.1f} s, longest {max(own):.1f}", file=sys.stderr)
    longest = done[int(np.argmax(seconds))]
    stage = seconds[[task["stage"] == longest["stage"] for task in done]]
    return {
        "corpus": name,
        "documents": count,
        "threshold": threshold,
        "bytes": sum(map(len, texts)),
        "removed": len(rows),
        "tasks": len(seconds),
        "task_us": float(seconds.sum()) / count * 1e6,
        "longest_seconds": float(seconds.max()),
        "longest_share": float(seconds.max() / seconds.sum()),
        "tasks_of_its_stage": len(stage),
        "median_of_its_stage": float(np.median(stage)),
        "in_rounds": bool(rounds),
        "wall_seconds": wall,
        "deduplicate_us": alone / count * 1e6,
    }


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--only", nargs=3, metavar=("CORPUS", "DOCUMENTS", "THRESHOLD"), help="print one case")
    parser.add_argument("--update", action="store_true", help="put what runs into the result that is there")
    options = parser.parse_args()
    one = None if options.only is None else (options.only[0], int(options.only[1]), float(options.only[2]))
    if one is not None and not options.update:
        print(json.dumps(harness.rounded(measured(*one))))
        return
    stored = json.loads((options.folder / "flat.json").read_text(encoding="utf-8"))["cases"] if options.update else []
    known = {(row["corpus"], row["documents"], row["threshold"]): row for row in stored}
    for case in CASES if one is None else [one]:
        command = [sys.executable, __file__, "--only", *map(str, case)]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        known[case] = json.loads(printed.splitlines()[-1])
        print(json.dumps(known[case]), flush=True)
    rows = list(known.values())
    harness.write("flat", {"data": {"bytes": max(row["bytes"] for row in rows)}, "cases": rows}, options.folder)


if __name__ == "__main__":
    main()
