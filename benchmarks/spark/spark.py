"""Measure `lsh.spark` in `local[2]`: time, shuffle and memory by stage, beside the command and Spark ML's MinHashLSH.

`spark.py` deduplicates 1,000,000 generated documents; `--count 5000000 --update` adds one row to the stored result, and
a row that is there is measured again. For each size the documents are written as Parquet files, `lsh dedup` and Spark
read the same files, and both must remove the same documents with the same witnesses and similarities. Each step runs in
its own process. CPU time is that of all processes of the job: the driver, Java and the Python workers.

`--minhashlsh` measures Spark ML's `MinHashLSH.approxSimilarityJoin` instead, on sizes that end in a few minutes, beside
`lsh.spark.find_pairs`; all pairs of the documents are known from `truth.py`.

Needs pyspark, pyarrow, pandas and Java. 20 million documents need about 30 GB of disk in `--temporary`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import corpora
import harness
import truth

N, THRESHOLD = 5, 0.8
MASTER = "local[2]"
DRIVER_MEMORY = "3g"
JAVA = "-XX:TieredStopAtLevel=1"  # docs/spark.md says why
FILE_DOCUMENTS = 250_000  # in a Parquet file
PARTITION_DOCUMENTS = 125_000  # the number of shuffle partitions is chosen by this
MIN_PARTITIONS = 16
SAMPLING_SECONDS = 0.2  # between two looks at the memory of the processes
CORPORA = {"reviews": corpora.reviews, "stories": corpora.stories}
TABLES = 3  # hash tables of MinHashLSH: a pair at 0.8 is found with a probability of 1 - 0.2 ** 3 = 0.992
FEATURES = 1 << 20  # of HashingTF
JOIN_SIZES = (1000, 2000, 5000, 10_000, 20_000, 50_000)
JOIN_SECONDS = 60.0  # no larger size after a join that takes longer
TICKS = os.sysconf("SC_CLK_TCK")


# ---- the processes of a job ----


def processes() -> dict[tuple[int, str], tuple[str, float]]:
    """Return name and CPU seconds of this process and of all that it started, by number and time of the start."""
    known: dict[int, tuple[int, str, str, float]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = Path(f"/proc/{entry}/stat").read_text(encoding="utf-8", errors="replace")
            except OSError:  # it has ended
                continue
            name, _, rest = text.partition("(")[2].rpartition(")")
            fields = rest.split()
            known[int(entry)] = int(fields[1]), fields[19], name, sum(map(int, fields[11:13])) / TICKS
    mine = {os.getpid()}
    while more := {one for one, (parent, *_) in known.items() if parent in mine} - mine:
        mine |= more
    return {(one, known[one][1]): known[one][2:] for one in mine}


class Watch:
    """CPU time and anonymous memory of the processes of a job, looked at several times a second.

    The CPU time of a process that has ended is that of the last look at it.
    """

    def __init__(self) -> None:
        self.java = self.worker = 0  # bytes at the peak: of Java, and of the largest Python worker
        self._seconds: dict[tuple[int, str], float] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._watch, daemon=True).start()

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of all processes so far."""
        with self._lock:
            self._seconds |= {one: seconds for one, (_, seconds) in processes().items()}
            return sum(self._seconds.values())

    def _watch(self) -> None:
        while True:
            self.cpu_seconds()
            for (one, _), (name, _) in processes().items():
                if one != os.getpid():
                    self._see(one, name)
            time.sleep(SAMPLING_SECONDS)

    def _see(self, one: int, name: str) -> None:
        try:
            lines = Path(f"/proc/{one}/status").read_text(encoding="utf-8").splitlines()
        except OSError:  # it has ended
            return
        size = sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))
        if name == "java":
            self.java = max(self.java, size)
        else:
            self.worker = max(self.worker, size)


# ---- a Spark session, and what it did ----


def session(folder: Path, count: int) -> Any:
    """Start Spark; its temporary files are in a folder."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.driver.extraJavaOptions": JAVA,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(max(MIN_PARTITIONS, -(-count // PARTITION_DOCUMENTS))),
        "spark.local.dir": str(folder / "shuffle"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master(MASTER).appName("benchmark of lsh.spark")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


class Stages:
    """The stages of a job as the library names them: seconds, and what Spark's own stages did in each."""

    def __init__(self, spark: Any, watch: Watch) -> None:
        self._watch = watch
        self._url = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}/stages"
        self._seen: set[int] = set()
        self._looking = {"wall_seconds": 0.0, "cpu_seconds": 0.0}  # that this class took to ask Spark
        self.found: dict[str, dict[str, Any]] = {}

    def _clock(self) -> dict[str, float]:
        return {"wall_seconds": time.perf_counter(), "cpu_seconds": self._watch.cpu_seconds()}

    def _new(self) -> list[dict[str, Any]]:
        time.sleep(0.5)  # Spark records the end of a stage later
        with urllib.request.urlopen(self._url) as answer:
            every = json.load(answer)
        new = [one for one in every if one["stageId"] not in self._seen and one["status"] == "COMPLETE"]
        self._seen |= {one["stageId"] for one in new}
        return new

    def _longest(self, stage: dict[str, Any]) -> float:
        """Return the run time of the longest task of a stage of Spark."""
        url = f"{self._url}/{stage['stageId']}/{stage['attemptId']}/taskSummary?quantiles=1.0"
        with urllib.request.urlopen(url) as answer:
            return float(json.load(answer)["executorRunTime"][0]) / 1000

    @contextmanager
    def measured(self, name: str) -> Iterator[None]:
        """Measure one stage; what is measured within it is not counted again."""
        started = self._clock()
        others = {key: value + sum(one[key] for one in self.found.values()) for key, value in self._looking.items()}
        yield
        ended, own = self._clock(), dict[str, float]()
        for key, value in self._looking.items():
            within = value + sum(one[key] for one in self.found.values()) - others[key]
            own[key] = ended[key] - started[key] - within
        done = self._new()
        totals = {
            "task_seconds": sum(one["executorRunTime"] for one in done) / 1000,
            "shuffle_bytes": sum(one["shuffleWriteBytes"] for one in done),
            "shuffle_rows": sum(one["shuffleWriteRecords"] for one in done),
            "spilled_bytes": sum(one["diskBytesSpilled"] for one in done),
            "tasks": sum(one["numTasks"] for one in done),
            "longest_task_seconds": max(map(self._longest, done), default=0.0),
        }
        self.found[name] = {**own, **totals}
        for key, value in self._clock().items():
            self._looking[key] += value - ended[key]
        print(f"  {name}: {own['wall_seconds']:.1f} s", file=sys.stderr, flush=True)

    def wrapped(self, name: str, work: Callable[..., Any], kept: dict[str, Any] | None = None) -> Callable[..., Any]:
        """Return a function that is measured; its result is put into `kept`."""

        def call(*args: Any, **options: Any) -> Any:
            with self.measured(name):
                result = work(*args, **options)
            if kept is not None:
                kept[name] = result
            return result

        return call


# ---- the steps, each in its own process ----


def in_spark(folder: Path, count: int) -> dict[str, Any]:
    """Deduplicate the Parquet files: write the removed documents and the kept rows."""
    import pyspark

    import lsh
    import lsh.spark
    from lsh.spark import _stages

    watch, started = Watch(), time.perf_counter()
    spark = session(folder, count)
    starting = time.perf_counter() - started
    stages, kept = Stages(spark, watch), dict[str, Any]()
    for name, function in (
        ("look at the workers", "check_workers"),
        ("keys and links", "links"),
        ("components", "components"),
        ("filter of members", "member_filter"),
    ):
        setattr(_stages, function, stages.wrapped(name, getattr(_stages, function), kept))
    documents = spark.read.parquet(str(folder / "documents"))
    with stages.measured("number of documents"):
        gone = lsh.spark.removed(documents, threshold=THRESHOLD, shingles=lsh.Shingles(N, "byte"))
    with stages.measured("members and decisions"):
        gone.write.parquet(str(folder / "removed"))
    gone = spark.read.parquet(str(folder / "removed"))
    with stages.measured("kept rows"):
        documents.join(gone.select("id"), "id", "left_anti").write.parquet(str(folder / "kept"))
    found = {
        "starting_seconds": starting,
        "stages": dict(stages.found),
        "worker_peak_bytes": watch.worker,
        "java_peak_bytes": watch.java,
        "links": kept["keys and links"][1],
        "nodes": kept["components"].count(),
        "kept": spark.read.parquet(str(folder / "kept")).count(),
        "partitions": int(spark.conf.get("spark.sql.shuffle.partitions")),
        "versions": {"pyspark": pyspark.__version__, "java": spark._jvm.System.getProperty("java.version")},
    }
    # More removed ids than Spark sends to each executor: the join shuffles all rows.
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    with stages.measured("kept rows, all shuffled"):
        documents.join(gone.select("id"), "id", "left_anti").write.mode("overwrite").parquet(str(folder / "kept"))
    alone = {"kept_shuffled": stages.found["kept rows, all shuffled"]}
    return {**found, **alone, "star": by_stars(stages, kept, _stages)}


def by_stars(stages: Stages, kept: dict[str, Any], _stages: Any) -> dict[str, Any]:
    """Find the components again by the star algorithm, as if there were too many nodes for one task; compare them."""
    from pyspark.sql import functions as f

    if not kept["keys and links"][1]:
        return {}
    with stages.measured("star algorithm"):
        found = _stages._stars(kept["keys and links"][0])
        found = found.selectExpr("b as node", "a as component").localCheckpoint()
    whole = f.bit_xor(f.xxhash64("node", "component"))
    one, other = (frame.agg(f.count("node"), whole).first() for frame in (kept["components"], found))
    harness.must(one == other, f"the star algorithm finds other components: {one} and {other}")
    return stages.found["star algorithm"]


def by_command(folder: Path, count: int) -> dict[str, Any]:
    """Deduplicate the same files, which have `count` documents, by `lsh dedup` in two threads."""
    options = ["--removed", folder / "removed.tsv", "--id-field", "id", "--field", "text", "--json", "-q"]
    options += ["--ngram", N, "--unit", "byte", "--threshold", THRESHOLD, "--num-threads", 2, "--temp-dir", folder]
    command = [sys.executable, "-m", "lsh", "dedup", folder / "documents", "--format", "parquet"]
    started = time.perf_counter()
    run = subprocess.run(
        [*map(str, command), "-o", f"{folder / 'output'}/", *map(str, options)], stdout=subprocess.PIPE, check=True
    )
    wall, used = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "wall_seconds": wall,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "peak_bytes": used.ru_maxrss * 1024,
        "counts": json.loads(run.stdout),
    }


def by_minhashlsh(folder: Path, count: int) -> dict[str, Any]:
    """Find the similar pairs by Spark ML and by `lsh.spark`, and compare both with all pairs."""
    import pyarrow.parquet
    from pyspark.ml.feature import HashingTF, MinHashLSH, NGram, RegexTokenizer
    from pyspark.sql import functions as f

    import lsh
    import lsh.spark

    watch, spark = Watch(), session(folder, count)
    documents = spark.read.parquet(str(folder / "documents"))
    texts = pyarrow.parquet.read_table(folder / "documents").sort_by("id")["text"].to_pylist()
    expected = {(i, j): similarity for i, j, similarity in truth.join([text.encode() for text in texts], THRESHOLD)}
    lsh.spark.find_pairs(documents.limit(10)).collect()  # Java and the workers are started
    found: dict[str, Any] = {"documents": count, "pairs": len(expected)}

    def measured(name: str, work: Callable[[], list[Any]]) -> None:
        started, at = time.perf_counter(), watch.cpu_seconds()
        rows = work()
        seconds = {"wall_seconds": time.perf_counter() - started, "cpu_seconds": watch.cpu_seconds() - at}
        pairs = {(min(row[0], row[1]), max(row[0], row[1])) for row in rows}
        right = len(pairs & expected.keys())
        found[name] = {**seconds, "found": len(pairs), "recall": right / len(expected)}
        found[name]["precision"] = right / len(pairs) if pairs else None

    def ours() -> list[Any]:
        found = lsh.spark.find_pairs(documents, threshold=THRESHOLD, shingles=lsh.Shingles(N, "byte"))
        return list(found.select("id1", "id2").collect())

    def theirs() -> list[Any]:
        letters = RegexTokenizer(inputCol="text", outputCol="letters", pattern="", toLowercase=False, minTokenLength=1)
        grams = NGram(n=N, inputCol="letters", outputCol="grams")
        counts = HashingTF(inputCol="grams", outputCol="features", numFeatures=FEATURES, binary=True)
        vectors = counts.transform(grams.transform(letters.transform(documents))).select("id", "features").cache()
        model = MinHashLSH(inputCol="features", outputCol="hashes", numHashTables=TABLES, seed=0).fit(vectors)
        joined = model.approxSimilarityJoin(vectors, vectors, 1 - THRESHOLD + 1e-9)
        pairs = joined.select(f.col("datasetA.id").alias("a"), f.col("datasetB.id").alias("b"))
        return list(pairs.where("a < b").collect())

    measured("lsh.spark", ours)
    measured("MinHashLSH", theirs)
    return found


# ---- one row ----


def write_documents(corpus: corpora.Synthetic, folder: Path) -> int:
    """Write the documents as Parquet files with a number as id; return the bytes of text."""
    import pyarrow
    import pyarrow.parquet

    folder.mkdir()
    size = 0
    for start in range(0, len(corpus), FILE_DOCUMENTS):
        texts = list(corpus.texts(start, start + FILE_DOCUMENTS))
        size += sum(map(len, texts))
        column = pyarrow.array(texts, pyarrow.binary()).cast(pyarrow.string())
        table = pyarrow.table({"id": pyarrow.array(np.arange(start, start + len(texts))), "text": column})
        pyarrow.parquet.write_table(table, folder / f"part-{start:012}.parquet")
    return size


def in_process(step: str, folder: Path, count: int) -> dict[str, Any]:
    """Run a step in a new process, whose Python is that of the workers.

    It starts in that folder: in the repository, Python would import the sources in place of the installed package.
    """
    folder = folder.absolute()
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--step", step, "--temporary", folder, "--count", count]
    run = subprocess.run(list(map(str, command)), cwd=folder, stdout=subprocess.PIPE, check=True, env=environment)
    return dict(json.loads(run.stdout.splitlines()[-1]))


def same_rows(folder: Path) -> int:
    """Check that the command and Spark removed the same documents for the same reasons; return how many."""
    import pyarrow.csv
    import pyarrow.parquet

    names = ["id", "kept_id", "similarity"]
    read = pyarrow.csv.ReadOptions(autogenerate_column_names=True)  # after these columns come those of the files
    parse = pyarrow.csv.ParseOptions(delimiter="\t")
    every = pyarrow.csv.read_csv(folder / "removed.tsv", read_options=read, parse_options=parse)
    one = every.select(range(3)).rename_columns(names).sort_by("id")
    other = pyarrow.parquet.read_table(folder / "removed", columns=names).sort_by("id")
    for name in names:
        equal = np.array_equal(one[name].to_numpy(), other[name].to_numpy())
        harness.must(equal, f"column {name} of the removed documents differs from that of lsh dedup")
    return len(one)


def row(name: str, count: int, folder: Path) -> dict[str, Any]:
    """Measure one size: the command, then Spark, on the same files; compare what they removed."""
    load = os.getloadavg()[0]
    size = write_documents(CORPORA[name](count), folder / "documents")
    alone = in_process("command", folder, count)
    shutil.rmtree(folder / "output")
    found = in_process("spark", folder, count)
    removed = same_rows(folder)
    harness.must(found["kept"] + removed == count, f"{found['kept']} rows kept and {removed} removed of {count}")
    loads = {"load_before": load, "load_after": os.getloadavg()[0]}
    about = {"corpus": name, "documents": count, "bytes": size, "removed": removed, "machine": harness.machine()}
    about["java_options"] = JAVA
    return {**about, **loads, "command": alone, "spark": found}


def joins(folder: Path) -> list[dict[str, Any]]:
    """Measure MinHashLSH at growing sizes until one takes too long."""
    found = []
    for count in JOIN_SIZES:
        print(f"MinHashLSH, {count:,} documents ...", flush=True)
        write_documents(corpora.reviews(count), folder / "documents")
        load = os.getloadavg()[0]
        found.append({**in_process("minhashlsh", folder, count), "load": load, "machine": harness.machine()})
        shutil.rmtree(folder / "documents")
        if found[-1]["MinHashLSH"]["wall_seconds"] > JOIN_SECONDS:
            break
    return found


def lacking() -> str | None:
    """Return what is missing to run Spark."""
    for package in ("pyspark", "pyarrow", "pandas"):
        try:
            __import__(package)
        except ImportError:
            return package
    return None if shutil.which("java") or os.environ.get("JAVA_HOME") else "Java"


def stored(folder: Path) -> dict[str, Any]:
    """Return the result that is in a folder, without the machine."""
    path = folder / "spark.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {"rows": found.get("rows", {}), "joins": found.get("joins", [])}


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--count", type=int, default=1_000_000, help="number of documents (default: %(default)s)")
    parser.add_argument("--corpus", choices=CORPORA, default="reviews", help="kind of documents (default: reviews)")
    parser.add_argument("--minhashlsh", action="store_true", help="measure the join of Spark ML; keep the rest")
    parser.add_argument("--update", action="store_true", help="put the row into the result that is there")
    parser.add_argument(
        "--temporary", type=Path, metavar="FOLDER", help="folder for temporary files (default: the system's)"
    )
    parser.add_argument("--step", choices=("spark", "command", "minhashlsh"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if missing := lacking():
        print(f"spark.py: not run, because {missing} is missing; install lsh-dedup[spark] and Java 17")
        return
    if options.step:
        steps = {"spark": in_spark, "command": by_command, "minhashlsh": by_minhashlsh}
        print(json.dumps(steps[options.step](options.temporary, options.count)))
        return
    result = stored(options.folder)
    with tempfile.TemporaryDirectory(dir=options.temporary) as name:
        if options.minhashlsh:
            result["joins"] = joins(Path(name))
        else:
            key = f"{options.corpus}_{options.count}"
            print(f"{key} ...", flush=True)
            measured = row(options.corpus, options.count, Path(name))
            rows = {**(result["rows"] if options.update else {}), key: measured}
            result["rows"] = dict(sorted(rows.items(), key=lambda item: (item[1]["corpus"], item[1]["documents"])))
    about = f"5 bytes, threshold {THRESHOLD}, defaults otherwise; {MASTER}, {DRIVER_MEMORY} for the driver"
    data = {key: sum(one[key] for one in result["rows"].values()) for key in ("documents", "bytes")}
    harness.write("spark", {"about": about, "data": data, **result}, options.folder)


if __name__ == "__main__":
    main()
