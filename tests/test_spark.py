"""`lsh.spark`: its results are those of `lsh.deduplicate` and `lsh.find_pairs`, row for row.

Needs pyspark 4, pandas, pyarrow and Java. All quick tests share one Spark session. Tests of the tasks need no Spark.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import environment

import lsh

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("pandas")
pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed; install the extra spark")
if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
    pytest.skip("Java is not installed; install openjdk-17-jre-headless", allow_module_level=True)

from pyspark import cloudpickle  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql import functions as f  # noqa: E402

import lsh.spark  # noqa: E402
from lsh.spark import _stages, _tasks  # noqa: E402

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


def session(master: str = "local[2, 4]", **settings: str) -> SparkSession:
    """A session in which a task may fail three times."""
    builder = SparkSession.builder.master(master).appName("tests of lsh.spark")
    for name, value in {**SETTINGS, **settings}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        if "PYTHONPATH" in environment():
            patch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
        found = session()
        cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers cannot import this file
        yield found
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
        found.stop()


# Corpora.


def words(draw: random.Random, count: int) -> str:
    return " ".join(f"{draw.randrange(600):x}{draw.choice('aeiou')}{draw.randrange(40)}" for _ in range(count))


def edited(draw: random.Random, text: str, changes: int) -> str:
    parts = text.split(" ")
    for _ in range(changes):
        parts[draw.randrange(len(parts))] = words(draw, 1)
    return " ".join(parts)


def corpus(count: int = 700, seed: int = 0) -> list[str]:
    """Chains of edits, stars around one text, copies, texts of a template, short and empty texts, and others."""
    draw = random.Random(seed)
    texts = ["", "", "a", "a", "ab", "\N{CAT FACE} cat", "\N{CAT FACE} cat"]
    chain, star, copied = words(draw, 40), words(draw, 60), words(draw, 30)
    template = words(draw, 50)
    while len(texts) < count:
        kind = draw.randrange(8)
        if kind == 0:
            chain = edited(draw, chain, 2)
            texts.append(chain)
        elif kind == 1:
            texts.append(edited(draw, star, draw.randrange(1, 5)))
        elif kind == 2:
            texts.append(copied)
        elif kind == 3:
            texts.append(f"{template} {draw.randrange(100)} {words(draw, 3)}")
        elif kind == 4:
            texts.append(edited(draw, draw.choice(texts), draw.randrange(3)))
        else:
            texts.append(words(draw, draw.randrange(20, 60)))
    draw.shuffle(texts)
    return texts


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


TEXTS = corpus()


# Equal to the library.


def test_removed(spark):
    frame = frame_of(spark, TEXTS)
    found = collected(lsh.spark.removed(frame))
    assert found == rows_of(TEXTS)
    assert len(found) > 200
    assert any(row[3] for row in found)


def test_kept_rows_have_all_their_columns(spark, tmp_path):
    frame = frame_of(spark, TEXTS).withColumn("a.b", f.col("id") * 2).withColumnRenamed("id", "the id")
    kept = lsh.spark.deduplicate(frame, id="the id", threshold=0.7, shingles=lsh.Shingles(5), num_seeds=64)
    assert kept.columns == ["the id", "text", "a.b"]
    expected = lsh.deduplicate(TEXTS, 0.7, shingles=lsh.Shingles(5), num_seeds=64)
    assert collected(kept) == [(i, TEXTS[i], 2 * i) for i in expected.kept.tolist()]
    kept.write.parquet(str(tmp_path / "kept"))
    stored = spark.read.parquet(str(tmp_path / "kept")).schema["the id"].metadata["lsh"]
    values = json.loads(stored)
    assert values["threshold"] == 0.7
    assert values["recall"] == 0.99
    assert values["version"] == lsh.__version__
    assert lsh.MinHasher.from_dict(values["hasher"]) == expected.parameters["hasher"]
    assert lsh.Bands.from_dict(values["bands"]) == expected.parameters["bands"]


@pytest.mark.parametrize(
    "partitions",
    [
        pytest.param(1, marks=pytest.mark.slow),
        pytest.param(2, marks=pytest.mark.slow),
        7,
        pytest.param(40, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("adaptive", [pytest.param("true", marks=pytest.mark.slow), "false"])
def test_partitions(spark, partitions, adaptive):
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    try:
        assert collected(lsh.spark.removed(frame_of(spark, TEXTS, partitions))) == rows_of(TEXTS)
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "true")
        spark.conf.set("spark.sql.shuffle.partitions", SETTINGS["spark.sql.shuffle.partitions"])


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"clusters": "components"}, marks=pytest.mark.slow),
        pytest.param({"verify": "sketch", "threshold": 0.6}, marks=pytest.mark.slow),
        pytest.param({"verify": None}, marks=pytest.mark.slow),
        pytest.param({"bands": lsh.Bands(10, 5), "random_state": 7}, marks=pytest.mark.slow),
        pytest.param({"shingles": lsh.Shingles(3, unit="word", lowercase=True)}, marks=pytest.mark.slow),
        pytest.param({"hasher": lsh.MinHasher(100, 5, hashbytes=4)}, marks=pytest.mark.slow),
        pytest.param({"threshold": 0.5, "recall": 0.9, "max_memory": "10MB"}, marks=pytest.mark.slow),
    ],
    ids=lambda options: "-".join(options),
)
def test_options(spark, options):
    found = collected(lsh.spark.removed(frame_of(spark, TEXTS), **options))
    assert found == rows_of(TEXTS, **options)
    assert found


def test_stars(spark):
    """With a small limit, the star algorithm finds the components."""
    assert collected(lsh.spark.removed(frame_of(spark, TEXTS), max_nodes=1)) == rows_of(TEXTS)


def test_pairs(spark):
    found = collected(lsh.spark.find_pairs(frame_of(spark, TEXTS[:300]), threshold=0.7))
    assert found == list(lsh.find_pairs(TEXTS[:300], 0.7))
    assert found


def halves(spark: SparkSession) -> tuple[Any, Any, list[str], list[str]]:
    """New documents with ids from 1,000, and old ones."""
    new, old = TEXTS[::2], TEXTS[1::2]
    frame = spark.createDataFrame([(1000 + i, text) for i, text in enumerate(new)], "id long, text string")
    return frame, frame_of(spark, old), new, old


def test_against(spark):
    new_frame, old_frame, new, old = halves(spark)
    found = collected(lsh.spark.removed(new_frame, against=old_frame))
    removed = lsh.deduplicate(new, against=old).removed
    places = {"new": 1000, "old": 0}
    expected = [(1000 + i, places[side] + kept, *rest, side) for i, kept, *rest, side in removed.tolist()]
    assert found == expected
    assert {row[-1] for row in found} == {"new", "old"}


@pytest.mark.slow
def test_pairs_between_two(spark):
    new_frame, old_frame, new, old = halves(spark)
    found = collected(lsh.spark.find_pairs(new_frame, others=old_frame))
    assert found == [(1000 + i, j, similarity) for i, j, similarity in lsh.find_pairs(new, others=old)]
    assert found


def moment(i: int) -> datetime:
    return datetime(2020, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=i)


KINDS = {
    "string": lambda i: f"doc {i:05}",
    "int": int,
    "timestamp": lambda i: moment(i).replace(tzinfo=None),
    "decimal(30, 3)": lambda i: Decimal(i) / 1000 + 10**20,
    "date": lambda i: (moment(0) + timedelta(days=i)).date(),
    "binary": lambda i: i.to_bytes(4, "big"),
}


@pytest.mark.parametrize(
    "kind", ["timestamp", *(pytest.param(one, marks=pytest.mark.slow) for one in KINDS if one != "timestamp")]
)
def test_ids_of_every_type(spark, kind):
    texts, id_of = TEXTS[:200], KINDS[kind]
    rows = [(id_of(i), text) for i, text in enumerate(texts)]
    frame = spark.createDataFrame(rows[::-1], f"id {kind}, text string")
    found = lsh.spark.removed(frame)
    assert found.schema["kept_id"].dataType == frame.schema["id"].dataType
    assert [tuple(row) for row in found.orderBy("id").collect()] == [
        (id_of(i), id_of(j), *rest) for i, j, *rest in rows_of(texts)
    ]


@pytest.mark.slow
def test_order(spark):
    """By an expression, ties by id, nulls last."""
    values = [None if i % 50 == 0 else random.Random(i).randrange(20) for i in range(len(TEXTS))]
    rows = [(i, text, value) for i, (text, value) in enumerate(zip(TEXTS, values))]
    frame = spark.createDataFrame(rows, "id long, text string, likes int")
    order = sorted(range(len(TEXTS)), key=lambda i: (values[i] is None, -(values[i] or 0), i))
    expected = [(order[i], order[j], *rest) for i, j, *rest in rows_of([TEXTS[i] for i in order])]
    assert collected(lsh.spark.removed(frame, order=-f.col("likes"))) == sorted(expected)


def test_missing_texts(spark):
    texts: list[Any] = [*TEXTS[:100], None, None]
    frame = frame_of(spark, texts)
    with pytest.raises(ValueError, match=r"df\['text'\] must not be null, got 2 null texts \(ids 10[01], 10[01]\)"):
        lsh.spark.removed(frame)
    kept = lsh.spark.deduplicate(frame, missing="empty")
    expected = lsh.deduplicate(texts, missing="empty").kept.tolist()
    assert [row[0] for row in collected(kept.select("id"))] == expected
    assert {100, 101} <= set(expected)


@pytest.mark.parametrize("texts", [[], [""] * 5, ["one text of a corpus"], ["a text", "another one, not alike"]])
def test_nothing_to_remove(spark, texts):
    frame = frame_of(spark, texts)
    assert collected(lsh.spark.removed(frame)) == []
    if not texts:
        assert collected(lsh.spark.deduplicate(frame)) == []
        assert collected(lsh.spark.find_pairs(frame)) == []


def test_binary_texts(spark):
    texts = [text.encode() for text in TEXTS[:200]] + [b"\xff\xfe not utf-8", b"\xff\xfe not utf-8"]
    frame = spark.createDataFrame([(i, bytearray(text)) for i, text in enumerate(texts)], "id long, text binary")
    assert collected(lsh.spark.removed(frame)) == rows_of(texts)


@pytest.mark.slow
def test_large_strings_and_small_batches(spark):
    settings = {
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        assert collected(lsh.spark.removed(frame_of(spark, TEXTS))) == rows_of(TEXTS)
        assert collected(lsh.spark.removed(frame_of(spark, TEXTS), max_nodes=1)) == rows_of(TEXTS)
    finally:
        for name in settings:
            spark.conf.unset(name)


# Errors before the job.


@pytest.mark.parametrize(
    ("error", "match", "make"),
    [
        (TypeError, "df must be a Spark DataFrame, got list", lambda df: lsh.spark.removed([])),
        (
            ValueError,
            "df has no column 'body'; it has id, text; name another one as text",
            lambda df: lsh.spark.removed(df, "body"),
        ),
        (ValueError, "name another one as id", lambda df: lsh.spark.removed(df, id="doc")),
        (ValueError, "unlike_any", lambda df: lsh.spark.removed(df, order=f.col("unlike_any") + 1)),
        (ValueError, "name another one as order", lambda df: lsh.spark.removed(df, order="likes")),
        (
            ValueError,
            "order must be an expression .* with one value for each row",
            lambda df: lsh.spark.removed(df, order=f.explode(f.array("id", "id"))),
        ),
        (ValueError, "with one value for each row", lambda df: lsh.spark.removed(df, order=f.max("id"))),
        (
            ValueError,
            "of a type with an order, got",
            lambda df: lsh.spark.removed(df.withColumn("m", f.create_map("id", "id")), order="m"),
        ),
        (
            ValueError,
            r"df has several columns 'id' \(id, ID\); rename or drop",
            lambda df: lsh.spark.removed(df.select("*", f.col("text").alias("ID"))),
        ),
        (
            TypeError,
            r"df\['id'\] must be a column of type string or binary, got bigint",
            lambda df: lsh.spark.removed(df, text="id"),
        ),
        (TypeError, "cast it", lambda df: lsh.spark.removed(df.withColumn("id", f.array("id")))),
        (ValueError, "threshold must be", lambda df: lsh.spark.removed(df, threshold=1.5)),
        (ValueError, "max_nodes must be 1 or more", lambda df: lsh.spark.removed(df, max_nodes=0)),
        (
            ValueError,
            r"without asc\(\) or desc\(\), got .*; for the greatest",
            lambda df: lsh.spark.removed(df, order=f.col("id").desc()),
        ),
        (TypeError, "order must be the name of a column or a Column", lambda df: lsh.spark.removed(df, order=3)),
        (
            TypeError,
            "the ids of against must have type bigint, as those of df, got string",
            lambda df: lsh.spark.removed(df, against=df.withColumn("id", f.col("id").cast("string"))),
        ),
        (
            ValueError,
            "must be unique, got several rows of 1 .2 rows., 2 .2 rows.",
            lambda df: lsh.spark.removed(df.unionAll(df).orderBy("id").coalesce(1)),
        ),
        (
            ValueError,
            "must not be null, got 2 nulls",
            lambda df: lsh.spark.removed(df.withColumn("id", f.lit(None).cast("int"))),
        ),
    ],
)
def test_errors(spark, error, match, make):
    frame = spark.createDataFrame([(1, "a text"), (2, "another text")], "id long, text string")
    with pytest.raises(error, match=match):
        make(frame)


LACKING = """\
import sys
from pyspark.sql import SparkSession
import lsh.spark
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
lsh.spark.removed(spark.createDataFrame([(1, "a")], "id int, text string"))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "source", "message"),
    [
        ("lsh", "raise ImportError('no lsh here')", "cannot import lsh: no lsh here; install lsh-dedup"),
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
    variables = {**environment(), "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": sys.executable}
    result = subprocess.run(
        [sys.executable, "-c", LACKING], env=variables, cwd=tmp_path.parent, capture_output=True, text=True
    )
    assert result.returncode == 1
    assert message in result.stderr.splitlines()[-1]


def test_a_worker_that_lacks_several_packages(monkeypatch):
    """Each package has its own reason."""
    for module in ("pyarrow", "lsh"):
        monkeypatch.setitem(sys.modules, module, None)
    found = json.loads(_stages._describe()(0))
    assert (found["pyarrow"], found["lsh"], found["numpy"]) == ("", "", np.__version__)
    assert "pyarrow" in found["pyarrow error"]
    assert "lsh" in found["lsh error"]


# Failures.


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


@pytest.mark.parametrize("kill", [pytest.param(False, marks=pytest.mark.slow), True], ids=["error", "kill"])
def test_retried_tasks(spark, monkeypatch, tmp_path, kill):
    """Each task of each stage fails at its first attempt."""
    names = ("fingerprint", "link", "connect", "choose_members", "decide")
    for name in names:
        monkeypatch.setattr(_tasks, name, partial(failing_once, getattr(_tasks, name), str(tmp_path), kill))
    assert collected(lsh.spark.removed(frame_of(spark, TEXTS))) == rows_of(TEXTS)
    assert {path.name.split()[0] for path in tmp_path.iterdir()} == set(names)


@pytest.mark.slow
def test_retried_tasks_of_the_star_algorithm(spark, monkeypatch, tmp_path):
    names = ("large_star", "small_star")
    for name in names:
        monkeypatch.setattr(_tasks, name, partial(failing_once, getattr(_tasks, name), str(tmp_path), True))
    assert collected(lsh.spark.removed(frame_of(spark, TEXTS), max_nodes=1)) == rows_of(TEXTS)
    assert {path.name.split()[0] for path in tmp_path.iterdir()} == set(names)


# The tasks, without Spark.


def batches(columns: dict[str, Any], size: int) -> Iterator[Any]:
    table = pa.table(columns)
    return iter(table.to_batches(max_chunksize=size) if len(table) else [])


def pairs_of(found: Iterator[Any]) -> list[tuple[int, int]]:
    return [pair for batch in found for pair in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist())]


def components(links: list[tuple[int, int]]) -> dict[int, int]:
    """The least node of the component of each node, the slow way."""
    least = {node: node for pair in links for node in pair}
    changed = True
    while changed:
        changed = False
        for a, b in links:
            low = min(least[a], least[b])
            changed |= least[a] != low or least[b] != low
            least[a] = least[b] = low
    return least


def random_links(seed: int, nodes: int, count: int) -> list[tuple[int, int]]:
    draw = random.Random(seed)
    names = [draw.randrange(-(2**63), 2**63) for _ in range(nodes)]
    return [(draw.choice(names), draw.choice(names)) for _ in range(count)]


@pytest.mark.parametrize("held", [1, _tasks.LINK_BYTES])
@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(("nodes", "count"), [(1, 1), (5, 3), (60, 30), (60, 100)])
def test_connect(monkeypatch, held, size, nodes, count):
    monkeypatch.setattr(_tasks, "LINK_BYTES", held)
    links = random_links(nodes + count, nodes, count)
    expected = components(links)
    a, b = _tasks.forest(*(np.array(values, np.int64) for values in zip(*links)))
    assert dict(zip(b.tolist(), a.tolist())) == expected
    ordered = sorted([*links, *((node, node) for node in expected)], key=lambda pair: pair[::-1])
    found = pairs_of(_tasks.connect(batches(dict(zip("ab", map(list, zip(*ordered)))), size)))
    assert [(b, a) for a, b in found] == sorted(expected.items())


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(("nodes", "count"), [(2, 1), (60, 40), (60, 100), (200, 190)])
def test_star_steps(size, nodes, count):
    """Large and small stars in turn end in stars with the least node of each component in the middle."""
    edges = {(min(pair), max(pair)) for pair in random_links(nodes * count, nodes, count) if pair[0] != pair[1]}
    expected = {(a, b) for b, a in components(list(edges)).items() if a != b}

    def step(task: Any, rows: list[tuple[int, int]]) -> set[tuple[int, int]]:
        return set(pairs_of(task(batches({"u": [u for u, _ in rows], "v": [v for _, v in rows]}, size))))

    for _ in range(40):
        before = edges
        both = sorted([*edges, *((b, a) for a, b in edges), *edges])  # some rows twice
        edges = step(_tasks.large_star, both)
        edges = step(_tasks.small_star, sorted((max(pair), min(pair)) for pair in edges))
        if edges == before:
            break
    assert edges == expected


def matching(**options: Any) -> _tasks.Matching:
    used = lsh.deduplicate([], **options).parameters
    return _tasks.Matching(
        used["hasher"], used["plan"] or used["bands"], used["threshold"], "exact", "representative", None
    )


@pytest.mark.parametrize("chunk", [50, 1000, 1 << 20])
def test_links_connect_what_shares_a_bucket(monkeypatch, chunk):
    """Of three tasks, with chunks of a few keys, as of the whole corpus."""
    monkeypatch.setattr(_tasks, "CHUNK", chunk)
    used, bits = matching(), 4
    parts = [TEXTS[i::3] for i in range(3)]
    rows = [row for part in parts for row in _tasks.fingerprint(used, bits, batches({"text": part}, 40))]
    table = pa.Table.from_batches(rows).sort_by("range")
    links = pairs_of(_tasks.link(bits, iter(table.to_batches(max_chunksize=5))))
    hasher, bands = used.hasher, used.bands.bands
    fingerprints = hasher.fingerprints(TEXTS)
    nodes = np.concatenate([_tasks.nodes_of(batch) for batch in _tasks.batches_of(pa.array(TEXTS), used)])
    shared = []
    for keys in bands.keys(fingerprints):
        firsts: dict[int, int] = {}
        for i in np.flatnonzero(~hasher.is_empty(fingerprints)).tolist():
            first = firsts.setdefault(int(keys[i]), i)
            if first != i:
                shared.append((int(nodes[first]), int(nodes[i])))
    assert components(links) == components(shared)


def test_a_large_bucket_is_few_rows():
    """Keys that are equal within a task leave it once, so a bucket of any size has few rows in the next stage."""
    used, text = matching(), words(random.Random(0), 30)
    rows = list(_tasks.fingerprint(used, 11, batches({"text": [text] * 20_000}, 1000)))
    assert sum(len(value.as_py()) for batch in rows for value in batch.column(1)) == 16 * (
        used.bands.bands.num_bands + 1
    )


def test_filter():
    draw = np.random.default_rng(0)
    nodes = draw.integers(-(2**63), 2**63, 20_000)
    count = _tasks.filter_words(len(nodes), _stages.MAX_FILTER)
    halves = [pa.array(part) for part in np.array_split(nodes, 2)]
    parts = [next(_tasks.fill_filter(count, iter([pa.RecordBatch.from_arrays([part], ["node"])]))) for part in halves]
    (joined,) = _tasks.join_filters(count, iter(parts))
    data = np.frombuffer(joined.column(0)[0].as_py(), np.uint64)
    assert len(data) == count

    def passing(values: Any) -> Any:
        places, bits = _tasks._probes(values, len(data))
        return data[places] & bits == bits

    assert passing(nodes).all()
    assert passing(draw.integers(-(2**63), 2**63, 100_000)).mean() < 0.01
    assert _tasks.filter_words(10**12, _stages.MAX_FILTER) * 8 == _stages.MAX_FILTER


@pytest.mark.parametrize(("segment", "held"), [(1, 1), (1, 1 << 30), (2000, 3000), (1 << 30, 1), (1 << 30, 1 << 30)])
@pytest.mark.parametrize("with_old", [False, True])
def test_segments(monkeypatch, segment, held, with_old):
    """Components that are decided together or alone, in memory or from a file, give the same rows."""
    monkeypatch.setattr(_tasks, "SEGMENT_BYTES", segment)
    monkeypatch.setattr(_tasks, "HELD_BYTES", held)
    used = matching()
    rows = []
    for component in range(20):
        draw = random.Random(component)
        base = words(draw, 40)
        some = [
            (component, with_old and draw.random() < 0.3, edited(draw, base, 1)) for _ in range(draw.randrange(2, 30))
        ]
        rows += sorted(some, key=lambda row: not row[1])
    columns = dict(zip(("component", "old", "text"), map(list, zip(*rows))))
    table = {**columns, "id": [f"{i:04}" for i in range(len(rows))]}
    given = {name: table[name] for name in ("component", "old", "id", "text")}
    found = [
        tuple(row.values()) for batch in _tasks.decide(used, with_old, batches(given, 7)) for row in batch.to_pylist()
    ]
    new = [i for i, row in enumerate(rows) if not row[1]]
    old = [i for i, row in enumerate(rows) if row[1]]
    result = lsh.deduplicate([rows[i][2] for i in new], against=[rows[i][2] for i in old] if with_old else None)
    expected = []
    for row in result.removed:
        places = old if with_old and row["side"] == "old" else new
        named = (f"{new[row['document']]:04}", f"{places[row['kept']]:04}", row["similarity"].item())
        expected.append((*named, bool(row["identical"]), *([str(row["side"])] if with_old else [])))
    assert sorted(found) == sorted(expected)
    assert found


# Real texts, and skew.


def read_texts(path: Path) -> list[str]:
    """The texts of a corpus: the last column."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n").rpartition("\t")[2] for line in file]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["reuters21578", "ads_rome_it", "articles2500"])
def test_real_texts(spark, data_folder, name):
    texts = read_texts(data_folder / f"{name}.tsv.gz")
    found = collected(lsh.spark.removed(frame_of(spark, texts, 4)))
    assert found == rows_of(texts)
    assert len(found) > 100


def measured(task: Any, folder: str, *arguments: Any) -> Any:
    """A task that writes the peak of the memory of its process, without mapped files, to a file."""
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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_of_the_workers(spark, monkeypatch, tmp_path):
    """160 MB of texts in one component, most of them copies or from one template, pass in workers of 250 MB."""
    draw, base = random.Random(0), words(random.Random(1), 250)
    copies = [base] * 40_000
    similar = [edited(draw, base, draw.randrange(1, 4)) for _ in range(40_000)]
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    for part in range(4):
        texts = copies[part::4] + similar[part::4]
        ids = range(part, 4 * len(texts), 4)
        table = pa.table({"id": list(ids), "text": texts}, schema)
        parquet.write_table(table, tmp_path / f"{part}.parquet", row_group_size=2000)
    folder = tmp_path / "peaks"
    folder.mkdir()
    monkeypatch.setattr(_tasks, "HELD_BYTES", 1 << 24)
    for name in ("fingerprint", "link", "connect", "choose_members", "decide"):
        monkeypatch.setattr(_tasks, name, partial(measured, getattr(_tasks, name), str(folder)))
    frame = spark.read.parquet(*(str(tmp_path / f"{part}.parquet") for part in range(4)))
    found = lsh.spark.removed(frame, max_memory="40MB")
    assert found.count() == len(lsh.deduplicate(copies + similar).removed)
    peaks = {path.name: int(path.read_text()) for path in folder.iterdir()}
    assert {name.split()[0] for name in peaks} >= {"fingerprint", "link", "connect", "choose_members", "decide"}
    assert max(peaks.values()) < 250, peaks
