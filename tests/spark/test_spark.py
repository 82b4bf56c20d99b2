"""`lsh.spark`: its results are those of `lsh.deduplicate` and `lsh.find_pairs`, row for row.

Needs pyspark 4, pandas, pyarrow and Java. All tests share one Spark session, and one of each kind is
fast. test_tasks.py tests what the tasks compute, without Spark.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import environment
from spark_texts import TEXTS, edited, words

import lsh

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("pandas")
pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed; install the extra spark")
if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
    pytest.skip("Java is not installed; install openjdk-17-jre-headless", allow_module_level=True)

from pyspark import cloudpickle  # noqa: E402
from pyspark.errors import PythonException  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql import functions as f  # noqa: E402

import lsh.spark  # noqa: E402
from lsh.spark import _rounds, _stages  # noqa: E402
from lsh.stages import tasks  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"
)

SETTINGS = {
    "spark.sql.shuffle.partitions": "3",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session with two tasks at a time, each of which may fail three times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
        builder = SparkSession.builder.master("local[2, 4]").appName("tests of lsh.spark")
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        found = builder.getOrCreate()
        cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers cannot import this file
        yield found
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
        found.stop()


def rows_of(texts: list[str], **options: Any) -> list[tuple[Any, ...]]:
    """The removed documents of the library, with positions as ids."""
    removed = lsh.deduplicate(texts, **options).removed
    return [tuple(row) for row in removed[["document", "kept", "similarity", "identical"]].tolist()]


def collected(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()))


def frame_of(spark: SparkSession, texts: list[Any], partitions: int = 2) -> Any:
    order = list(enumerate(texts))
    random.Random(partitions).shuffle(order)
    return spark.createDataFrame(order, "id long, text string").repartition(partitions)


# Equal to the library.


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("partitions", "adaptive", "links"), [(7, "false", None), (7, "false", 10), (1, "true", 10), (40, "true", 10)]
)
def test_partitions(spark, monkeypatch, partitions, adaptive, links):
    """With few links in a round, components are found in several rounds."""
    monkeypatch.setattr(_stages, "ROUND_LINKS", links or _stages.ROUND_LINKS)
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    try:
        found = collected(lsh.spark.removed(frame_of(spark, TEXTS, partitions)))
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "true")
        spark.conf.set("spark.sql.shuffle.partitions", SETTINGS["spark.sql.shuffle.partitions"])
    assert found == rows_of(TEXTS)
    assert len(found) > 200
    assert any(row[3] for row in found)


def test_kept_rows_have_all_their_columns(spark, tmp_path):
    frame = frame_of(spark, TEXTS).withColumn("a.b", f.col("id") * 2).withColumnRenamed("id", "the.id")
    frame = frame.withColumn(lsh.spark.REMOVED_ID, f.lit(0))
    options = {"threshold": 0.7, "shingles": lsh.Shingles(5), "num_seeds": 64}
    kept = lsh.spark.deduplicate(frame, id="the.id", **options, add_copies=True)
    assert kept.columns == ["the.id", "text", "a.b", lsh.spark.REMOVED_ID, "copies"]
    expected = lsh.deduplicate(TEXTS, **options)
    copies = expected.copies.tolist()
    assert collected(kept) == [(i, TEXTS[i], 2 * i, 0, copies[i]) for i in expected.kept.tolist()]
    with pytest.raises(ValueError, match="df has a column 'Copies', but add_copies=True adds a column 'copies'"):
        lsh.spark.deduplicate(kept.withColumnRenamed("copies", "Copies"), id="the.id", add_copies=True)
    kept.write.parquet(str(tmp_path / "kept"))
    stored = spark.read.parquet(str(tmp_path / "kept")).schema["the.id"].metadata["lsh"]
    values = json.loads(stored)
    assert values["threshold"] == 0.7
    assert values["recall"] == 0.99
    assert values["version"] == lsh.__version__
    assert lsh.MinHasher.from_dict(values["hasher"]) == expected.parameters["hasher"]
    assert lsh.Bands.from_dict(values["bands"]) == expected.parameters["bands"]


OPTIONS = [
    {"clusters": "components"},
    {"verify": "sketch", "threshold": 0.6},
    {"verify": None},
    {"bands": lsh.Bands(10, 5), "random_state": 7},
    {"shingles": lsh.Shingles(3, unit="word", lowercase=True)},
    {"hasher": lsh.MinHasher(100, 5, hashbytes=4)},
    {"threshold": 0.5, "recall": 0.9, "max_memory": "10MB"},
    {"keep": "last"},
    {"keep": "longest"},
]


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options))
def test_options(spark, options):
    found = collected(lsh.spark.removed(frame_of(spark, TEXTS), **options))
    assert found == rows_of(TEXTS, **options)
    assert found


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"useLargeVarTypes": "true", "maxRecordsPerBatch": "7"}])
def test_stars_and_small_batches(spark, settings):
    """With a small limit, the star algorithm finds the components; tasks get large strings, in batches of 7."""
    for name, value in settings.items():
        spark.conf.set(f"spark.sql.execution.arrow.{name}", value)
    try:
        assert collected(lsh.spark.removed(frame_of(spark, TEXTS), max_nodes=1)) == rows_of(TEXTS)
        assert not settings or collected(lsh.spark.removed(frame_of(spark, TEXTS))) == rows_of(TEXTS)
    finally:
        for name in settings:
            spark.conf.unset(f"spark.sql.execution.arrow.{name}")


def test_pairs(spark):
    found = collected(lsh.spark.find_pairs(frame_of(spark, TEXTS[:300]), threshold=0.7))
    assert found == list(lsh.find_pairs(TEXTS[:300], 0.7))
    assert found


def check_against(spark: SparkSession, new: list[str], old: list[str], **options: Any) -> tuple[Any, Any, Any]:
    """Compare the removed documents with those of the library; return the result of that one, and both frames."""
    new_frame = spark.createDataFrame([(1000 + i, text) for i, text in enumerate(new)], "id long, text string")
    old_frame = frame_of(spark, old)
    found = collected(lsh.spark.removed(new_frame, against=old_frame, **options))
    result, places = lsh.deduplicate(new, against=old, **options), {"new": 1000, "old": 0}
    removed = result.removed.tolist()
    assert found == [(1000 + i, places[side] + kept, *rest, side) for i, kept, *rest, side in removed]
    assert {row[-1] for row in found} == {"new", "old"}
    return result, new_frame, old_frame


@pytest.mark.slow
@pytest.mark.parametrize("keep", ["first", "last", "longest"])
def test_against(spark, keep):
    """Old documents come first in any case, in order of their ids."""
    new, old = TEXTS[::2], TEXTS[1::2]
    result, new_frame, old_frame = check_against(spark, new, old, keep=keep)
    if keep == "first":
        kept = lsh.spark.deduplicate(new_frame, against=old_frame, add_copies=True).collect()
        assert {row["id"]: row["copies"] for row in kept} == {1000 + i: result.copies[i] for i in result.kept.tolist()}
        pairs = collected(lsh.spark.find_pairs(new_frame, others=old_frame))
        assert pairs == [(1000 + i, j, similarity) for i, j, similarity in lsh.find_pairs(new, others=old)] != []


def growing(count: int) -> list[str]:
    """Texts of which each is similar to the next ones only, with copies of some: one component."""
    texts = [" ".join(f"{i + k:04}" for k in range(20)) for i in range(count)]
    return texts + texts[::9]


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 0.5},
        pytest.param({"threshold": 0.5, "keep": "last"}, marks=pytest.mark.slow),
        pytest.param({"threshold": 0.4, "keep": "longest", "max_memory": "10MB"}, marks=pytest.mark.slow),
        pytest.param({"threshold": 0.6, "verify": "sketch"}, marks=pytest.mark.slow),
    ],
)
def test_large_components_are_decided_in_rounds(spark, monkeypatch, options):
    """Also where each batch decides a few documents of the next one, and with copies of texts."""
    monkeypatch.setattr(_rounds, "LARGE", 10)
    monkeypatch.setattr(_rounds, "MOST_ROUNDS", 4)
    texts = TEXTS + growing(100)
    found = collected(lsh.spark.removed(frame_of(spark, texts), **options))
    assert found == rows_of(texts, **options)


@pytest.mark.slow
def test_large_components_with_old_documents(spark, monkeypatch):
    """Old ones are kept, more of them than a batch has; copies have the first old copy, or a new one, as witness."""
    monkeypatch.setattr(_rounds, "LARGE", 10)
    check_against(spark, [*growing(80)[20:], *TEXTS], growing(60), threshold=0.5)


def moment(i: int) -> datetime:
    return datetime(2020, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=i)


KINDS = {
    "string": lambda i: f"doc {i:05}",
    "int": int,
    "timestamp": lambda i: moment(i).replace(tzinfo=None),
    "decimal(30, 3)": lambda i: Decimal(i) / 1000 + 10**20,
    "date": lambda i: (moment(0) + timedelta(days=i)).date(),
    "binary": lambda i: i.to_bytes(4, "big"),
    "struct<day: date, place: array<int>>": lambda i: ((moment(0) + timedelta(days=i // 9)).date(), [i % 9, 0]),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_ids_of_every_type(spark, kind):
    texts, id_of = TEXTS[:200], KINDS[kind]
    rows = [(id_of(i), text) for i, text in enumerate(texts)]
    frame = spark.createDataFrame(rows[::-1], f"id {kind}, text string")
    found = lsh.spark.removed(frame)
    assert found.schema["kept_id"].dataType == frame.schema["id"].dataType
    expected = [(id_of(i), id_of(j), *rest) for i, j, *rest in rows_of(texts)]
    assert [tuple(row) for row in found.orderBy("id").collect()] == expected


DAY, SECOND = np.datetime64("2020-01-01", "D"), np.datetime64("2020-01-01", "us")
KEEP_VALUES = {  # the expression over an int, and the element of `keep` of the library
    "likes": (lambda name: name, int),
    "date": (lambda name: f.date_add(f.lit("2020-01-01").cast("date"), f.col(name)), lambda i: DAY + i),
    "timestamp": (lambda name: f.timestamp_seconds(name), lambda i: SECOND + i),
    "float": (lambda name: -f.col(name).cast("double"), lambda i: -float(i)),
    "nulls": (  # last, as NaN, which Spark sorts as the highest number
        lambda name: f.when(f.col(name) > 9, f.col(name)).otherwise(f.when(f.col(name) > 4, f.lit(float("nan")))),
        lambda i: i if i > 9 else -1,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KEEP_VALUES)
def test_keep_the_highest_value(spark, kind):
    """Of a column, or of an expression as a Column; ties by id."""
    values = [random.Random(i).randrange(20) for i in range(len(TEXTS))]
    frame = spark.createDataFrame(list(zip(range(len(TEXTS)), TEXTS, values)), "id long, text string, likes int")
    of_spark, of_library = KEEP_VALUES[kind]
    found = collected(lsh.spark.removed(frame, keep=of_spark("likes")))
    assert found == rows_of(TEXTS, keep=[of_library(value) for value in values])


@pytest.mark.slow
@pytest.mark.parametrize("texts", [[], [""] * 5, ["a text", "another one, not alike"]])
def test_nothing_to_remove(spark, texts):
    frame = frame_of(spark, texts)
    assert collected(lsh.spark.removed(frame)) == []
    if not texts:
        assert collected(lsh.spark.deduplicate(frame)) == collected(lsh.spark.find_pairs(frame)) == []


@pytest.mark.slow
def test_binary_texts(spark):
    texts = [text.encode() for text in TEXTS[:200]] + [b"\xff\xfe not utf-8", b"\xff\xfe not utf-8"]
    frame = spark.createDataFrame([(i, bytearray(text)) for i, text in enumerate(texts)], "id long, text binary")
    assert collected(lsh.spark.removed(frame)) == rows_of(texts)


@pytest.mark.slow
def test_missing_texts(spark):
    texts: list[Any] = [*TEXTS[:100], None, None]
    frame = frame_of(spark, texts)
    with pytest.raises(ValueError, match=r"df\['text'\] must not be null, got 2 null texts \(ids 10[01], 10[01]\)"):
        lsh.spark.removed(frame)
    kept = lsh.spark.deduplicate(frame, missing="empty")
    expected = lsh.deduplicate(texts, missing="empty").kept.tolist()
    assert [row[0] for row in collected(kept.select("id"))] == expected
    assert {100, 101} <= set(expected)


# Errors before the job.


def by(**options: Any) -> Any:
    """A call for the DataFrame with these options; `keep` is an expression of SQL."""
    return lambda df: lsh.spark.removed(df, **{k: f.expr(v) if k == "keep" else v for k, v in options.items()})


def of(*expressions: str, **options: Any) -> Any:
    """A call for other columns."""
    return lambda df: lsh.spark.removed(df.selectExpr(*expressions), **options)


removed = lsh.spark.removed
ERRORS = [
    (TypeError, "df must be a Spark DataFrame, got list", lambda df: removed([])),
    (ValueError, "df has no column 'body'; it has id, text; name another one as text", by(text="body")),
    (ValueError, r"df has several columns 'id' \(id, ID\); rename or drop", of("*", "1 ID")),
    (TypeError, r"df\['id'\] must be a column of type string or binary, got bigint", by(text="id")),
    (TypeError, "got struct<m:map<bigint,bigint>>", of("struct(map(id, id) m) id", "text")),
    (TypeError, "can convert to Arrow, .*, got struct<a", of("named_struct('a', id, 'a', id) id", "text")),
    (TypeError, "got interval year", of("make_ym_interval(1) id", "text")),
    (ValueError, "unique, got several rows of 1 .2 rows., 2 .2 r", lambda df: removed(df.unionAll(df).coalesce(1))),
    (ValueError, "be unique, got several rows of '[aA]'", of("if(id = 1, 'a', 'A') collate utf8_lcase id", "text")),
    (ValueError, "must be unique, got several rows of -?0.0", of("if(id = 1, 0d, -0d) id", "text")),
    (ValueError, "must not be null, got 2 nulls", of("cast(null as int) id", "text")),
    (ValueError, "threshold must be", by(threshold=1.5)),
    (ValueError, "max_nodes must be at most 2000000000", by(max_nodes=2**31)),
    (ValueError, "keep must be 'first', 'last', 'longest', a col", lambda df: removed(df, keep="likes")),
    (TypeError, "'longest', the name of a column or a Column, got int", lambda df: removed(df, keep=3)),
    (TypeError, "numbers or dates, got .* such as by functions.to_timestamp", lambda df: removed(df, keep="text")),
    (ValueError, "keep must have the same values each time", by(keep="rand()")),
    (ValueError, "keep must be an expression .* with one value for each row", by(keep="explode(array(id, id))")),
    (ValueError, "with one value for each row", by(keep="max(id)")),
    (ValueError, "of a type with an order, got", by(keep="map(id, id)")),
    (ValueError, "keep must not be of type interval year", by(keep="make_ym_interval(1)")),
    (ValueError, r"desc\(\), got .*: the highest .* lowest use -col", lambda df: removed(df, keep=f.desc("id"))),
    (ValueError, r"without asc\(\) or desc\(\), got ", by(keep="-id desc nulls last")),
    (TypeError, "order is now keep .* reverse direction", lambda df: removed(df, order="id")),
    (TypeError, "ids of against must have type big", lambda df: removed(df, against=df.selectExpr("'1' id", "text"))),
]


@pytest.mark.few(8)
@pytest.mark.parametrize(("error", "match", "make"), ERRORS)
def test_errors(spark, error, match, make):
    frame = spark.createDataFrame([(1, "a text"), (2, "another text")], "id long, text string")
    with pytest.raises(error, match=match):
        make(frame)


@pytest.mark.slow
def test_random_values_are_a_warning(spark):
    """Such a DataFrame may have other rows each time it is read."""
    frame = spark.createDataFrame([("a text",)] * 3, "text string")
    with pytest.warns(UserWarning, match=r"df has expressions such as rand\(\), .*; write it to a table") as caught:
        lsh.spark.removed(frame.withColumn("id", f.expr("uuid()")))
    assert __file__ in [one.filename for one in caught]
    one = frame.limit(1)
    with pytest.warns(UserWarning, match="others has expressions"):
        lsh.spark.find_pairs(one.withColumn("id", f.lit("a")), others=one.withColumn("id", f.expr("uuid()")))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "df has")
        lsh.spark.removed(frame_of(spark, TEXTS[:3]))


def test_filter_of_members(spark):
    """It has all nodes of a table in several partitions, and few others; its size has a limit."""
    nodes = spark.range(0, 20_000, 1, 4).select("id", f.xxhash64("id").alias("node"))
    filter_, condition = _stages.member_filter(nodes.where("id % 10 = 0"))
    assert filter_.rdd.getNumPartitions() == filter_.count() == 1
    found = nodes.join(f.broadcast(filter_), f.expr(condition)).select("id").collect()
    assert len([row for row in found if row[0] % 10 == 0]) == 2000
    assert len(found) < 2000 + 180
    assert tasks.filter_words(10**12, _stages.MAX_FILTER) * 8 == _stages.MAX_FILTER


@pytest.mark.slow
def test_texts_that_change_are_an_error(spark, tmp_path):
    """A text that shared a bucket when the corpus was read first, and is not there when it is read again."""
    path = tmp_path / "corpus.jsonl"

    def write(texts: list[str]) -> None:
        path.write_text("".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(texts)))

    write(TEXTS)
    frame = spark.read.schema("id long, text string").json(str(path))
    removed, pairs = lsh.spark.removed(frame), lsh.spark.find_pairs(frame)
    assert removed.count() > 200
    write([text.upper() for text in TEXTS])
    for found in (removed, pairs):
        with pytest.raises(PythonException, match="the input had other texts when it was read again"):
            found.count()


LACKING = """\
import sys
from pyspark.sql import SparkSession
import lsh.spark
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
lsh.spark.removed(spark.createDataFrame([(1, "a")], "id int, text string"))
"""


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize(
    ("module", "source", "message"),
    [
        ("lsh", "raise ImportError('no lsh here')", "cannot import lsh: no lsh here; install lsh-dedup[spark]"),
        ("lsh", "__version__ = '0.0.1'", f"has lsh-dedup 0.0.1, the driver {lsh.__version__}; install"),
        ("pyarrow", "raise ImportError('no pyarrow here')", "cannot import pyarrow: no pyarrow here; install"),
        ("pyarrow", "__version__ = '3.0.0'", "has pyarrow 3.0.0, but 18.0 is required; install"),
    ],
)
def test_what_a_worker_lacks(tmp_path, module, source, message):
    """The Python of the executors is a script that finds another package first."""
    (tmp_path / f"{module}.py").write_text(source)
    python = tmp_path / "python"
    path = environment().get("PYTHONPATH", "")
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH:{path}" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    env = {**environment(), "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": sys.executable}
    command = [sys.executable, "-c", LACKING]
    run = subprocess.run(command, env=env, cwd=tmp_path.parent, capture_output=True, text=True)
    assert run.returncode == 1
    assert message in run.stderr.splitlines()[-1]
    assert "set PYSPARK_PYTHON" in run.stderr.splitlines()[-1]


# Failures.

TASKS = ("fingerprint", "link", "connect", "fill_filter", "decide")
IN_ROUNDS = ("decide_batch", "compare_batch")  # of components of more than 20,000 different texts


def failing_once(task: Any, folder: str, kill: bool, *arguments: Any) -> Any:
    """A task that fails at its first attempt after its first batch: by an error, or as its process is killed."""
    from pyspark import TaskContext

    context = TaskContext.get()
    first = context.attemptNumber() == 0
    for batch in task(*arguments):
        yield batch
        if first:
            Path(folder, f"{task.__name__} {context.partitionId()} {time.time_ns()}").touch()
            if kill:
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("a planned failure")


@pytest.mark.slow
@pytest.mark.parametrize("kill", [False, True], ids=["error", "kill"])
def test_retried_tasks(spark, monkeypatch, tmp_path, kill):
    """Each task of each stage, and of the star algorithm, fails at its first attempt."""
    stars = ("large_star", "small_star")
    for name in (*TASKS, *stars):
        monkeypatch.setattr(tasks, name, partial(failing_once, getattr(tasks, name), str(tmp_path), kill))
    assert collected(lsh.spark.removed(frame_of(spark, TEXTS))) == rows_of(TEXTS)
    assert {path.name.split()[0] for path in tmp_path.iterdir()} == set(TASKS)
    if kill:
        assert collected(lsh.spark.removed(frame_of(spark, TEXTS), max_nodes=1)) == rows_of(TEXTS)
        assert {path.name.split()[0] for path in tmp_path.iterdir()} == {*TASKS, *stars}


def leaving_out(task: Any, *arguments: Any) -> Any:
    """A task that has left out five comparisons."""
    yield from task(*arguments)
    number = pa.array([tasks.LEFT_OUT], "int32")
    yield pa.RecordBatch.from_pydict({"range": number, "data": pa.nulls(1, "binary"), "count": [5]})


def test_comparisons_that_are_left_out_are_a_warning(spark, monkeypatch):
    """Its line is that of the caller."""
    monkeypatch.setattr(tasks, "link", partial(leaving_out, tasks.link))
    with pytest.warns(RuntimeWarning, match="comparisons left out in buckets of more than 65,536 texts") as found:
        assert collected(lsh.spark.removed(frame_of(spark, TEXTS[:50]))) == rows_of(TEXTS[:50])
    assert found[0].filename == __file__


# Real texts, and skew.


def measured(task: Any, folder: str, *arguments: Any) -> Any:
    """A task that writes the peak of the memory of its process, without mapped files, to a file."""
    from lsh.stages import tasks as installed  # in the worker

    installed.HELD_BYTES = 1 << 24
    peak, done = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.01):
            status = Path("/proc/self/status").read_text()
            peak = max(peak, int(status.split("RssAnon:")[1].split()[0]) // 1024)

    thread = threading.Thread(target=watch)
    thread.start()
    yield from task(*arguments)
    done.set()
    thread.join()
    Path(folder, f"{task.__name__} {os.getpid()} {time.time_ns()}").write_text(str(peak))


@pytest.fixture
def peaks(monkeypatch, tmp_path):
    """A function that returns the peaks of the tasks so far, in MB, by the name of the task."""
    folder = tmp_path / "peaks"
    folder.mkdir()
    for name in (*TASKS, *IN_ROUNDS):
        monkeypatch.setattr(tasks, name, partial(measured, getattr(tasks, name), str(folder)))

    def found() -> dict[str, int]:
        values = [(path.name.split()[0], int(path.read_text())) for path in folder.iterdir()]
        names = {name for name, _ in values}
        assert names >= set(TASKS[:3])
        assert names & {"decide", "decide_batch"}
        return {name: max(peak for one, peak in values if one == name) for name in names}

    return found


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_of_the_workers(spark, peaks, tmp_path):
    """A component of 160 MB of texts, half of them copies, passes in workers of 280 MB, of which 170 are the packages
    and the buffers of the first stage."""
    draw, base = random.Random(0), words(random.Random(1), 250)
    copies = [base] * 40_000
    similar = [edited(draw, base, draw.randrange(1, 4)) for _ in range(40_000)]
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    for part in range(4):
        texts = copies[part::4] + similar[part::4]
        ids = range(part, 4 * len(texts), 4)
        table = pa.table({"id": list(ids), "text": texts}, schema)
        parquet.write_table(table, tmp_path / f"{part}.parquet", row_group_size=2000)
    frame = spark.read.parquet(*(str(tmp_path / f"{part}.parquet") for part in range(4)))
    found = lsh.spark.removed(frame, max_memory="40MB")
    assert found.count() == len(lsh.deduplicate(copies + similar).removed)
    assert max(peaks().values()) < 280, peaks()


WORD = "hex(hash({}, 1))"
SKEWED = {  # the number of texts, a text by its id, and the bound of a worker in MB
    "copies": (10_000_000, "'one text with a few words'", 1300),
    "chain": (1_000_000, f"concat_ws(' ', transform(sequence(id, id + 30), i -> {WORD.format('i')}))", 500),
    "one text": (
        1_000_000,
        f"concat_ws(' ', transform(sequence(0, 60), i -> if(i = id % 61, {WORD.format('id')}, {WORD.format('i')})))",
        500,
    ),
}


@pytest.mark.slow
@pytest.mark.skipif("LSH_TEST_FULL" not in os.environ, reason="takes minutes: LSH_TEST_FULL=1 runs it")
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", SKEWED)
def test_memory_of_large_components(spark, peaks, tmp_path, name):
    """A bucket of ten million copies, a chain of a million texts, and a million near duplicates of one text.

    A worker may use 170 MB as above, `max_memory`, and for the result 75 bytes a document.
    """
    count, text, bound = SKEWED[name]
    path = str(tmp_path / "texts")
    spark.range(count).selectExpr("id", f"{text} as text").repartition(16).write.parquet(path)
    found = lsh.spark.removed(spark.read.parquet(path), max_memory="250MB")
    found.write.parquet(str(tmp_path / "removed"))
    used = peaks()
    expected = lsh.deduplicate(parquet.read_table(path).sort_by("id")["text"]).removed
    table = parquet.read_table(tmp_path / "removed").sort_by("id")
    for column, field in {"id": "document", "kept_id": "kept", "similarity": "similarity"}.items():
        assert np.array_equal(table[column].to_numpy(), expected[field])
    assert len(table) > count / 3
    assert max(used.values()) < bound, used
