"""The stages of a Spark job, as DataFrames: keys, links, components, members, and rows for the decisions.

`lsh.stages.tasks` has what the tasks compute. The tables of links and of components are stored (checkpoints). All
others are computed from them when the result is used. Nothing that grows with the corpus is collected.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from lsh.base import checks
from lsh.base.wording import counted
from lsh.engine.matching import Matching
from lsh.links.linking import LIMIT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


MIN_SPARK = (4, 0)
MIN_PYARROW = (18, 0)
MIN_PANDAS = (2, 2)  # pyspark requires it for `mapInArrow`
MAX_FILTER = 1 << 26  # bytes of the filter of members
ROUND_LINKS = 1 << 20  # links in a task of the first round
TASK_BYTES = 1 << 23  # of keys in a task, unless the configured number of partitions has larger ones
FAN_IN = 4  # tasks of a round for a task of the next one
MIN_RANGE_BITS = 11  # so that a row of keys has about 8 KB
DEFAULT_PARTITIONS = 200  # where the engine chooses their number ("auto")
MAX_SHOWN = 60  # characters of an id in a message
MAX_ROUNDS = 100  # of the star algorithm, which needs about 2 log2(n)
DIRECTION = re.compile(r" (ASC|DESC)( NULLS (FIRST|LAST))?'?>?$", re.IGNORECASE)
KEEP_WORDS = ("first", "last", "longest")  # of `lsh.deduplicate`, too
LOWEST_KEPT = "the highest value is kept; for the lowest use -col, for the oldest of a timestamp -unix_micros(col)"

PACKED, LINKS = "range int, data binary, count long", "a long, b long"
COLLATED = "collate"  # in a type: different strings may be equal, but their hashes differ


class SourceFrame(NamedTuple):
    """A DataFrame and its columns of texts and ids."""

    name: str
    frame: DataFrame
    text: str
    id: str

    @property
    def id_type(self) -> Any:
        """The type of the ids."""
        return self.frame.schema[self.id].dataType

    @property
    def node(self) -> Column:
        """The node of each text: a hash of its bytes."""
        from pyspark.sql import functions as f

        text, kind = column(self.text), self.frame.schema[self.text].dataType.simpleString()
        return f.xxhash64(text.cast("binary") if COLLATED in kind else text).alias("node")

    @property
    def id_hash(self) -> Column:
        """A hash of each id, which differs for sources of other names; null for null."""
        from pyspark.sql import functions as f

        return f.when(column(self.id).isNotNull(), f.xxhash64(column(self.id), f.lit(self.name))).alias("id")


def column(name: str) -> Column:
    """Return the column with exactly this name, which may have dots."""
    from pyspark.sql import functions

    return functions.col("`" + name.replace("`", "``") + "`")


# ---- checks before the job ----


def check_driver() -> None:
    """Raise ImportError if pyspark or pyarrow is missing or too old."""
    for package, least in (("pyspark", MIN_SPARK), ("pyarrow", MIN_PYARROW), ("pandas", MIN_PANDAS)):
        try:
            version = __import__(package).__version__
        except ImportError as error:
            raise ImportError(f"lsh.spark requires {package}: pip install 'lsh-dedup[spark]'") from error
        if _numbers(version) < least:
            wanted = ".".join(map(str, least))
            raise ImportError(f"lsh.spark requires {package} {wanted} or newer, got {version}; upgrade it")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


def checked_source(name: str, frame: object, text: object, id: object) -> SourceFrame:
    """Return a DataFrame and its columns, checked."""
    from pyspark.sql import DataFrame, types

    if not isinstance(frame, DataFrame):
        package, got = type(frame).__module__.partition(".")[0], type(frame).__name__
        got = got if package == "builtins" else f"{package}.{got}"
        raise TypeError(
            f"{name} must be a Spark DataFrame, got {got}; make one with spark.read or spark.createDataFrame"
        )
    if frame.isStreaming:
        raise TypeError(f"{name} must not be a stream; read it as a batch")
    for parameter, value in (("text", text), ("id", id)):
        checks.instance(parameter, value, str, "the name of a column")
        _check_column(name, frame, parameter, str(value))
    _warn_of_random_values(name, frame)
    source = SourceFrame(name, frame, str(text), str(id))
    kind = frame.schema[source.text].dataType
    if not isinstance(kind, (types.StringType, types.BinaryType)):
        raise TypeError(
            f"{name}[{text!r}] must be a column of type string or binary, got {kind.simpleString()}; cast it"
        )
    if not _is_ordered(source.id_type):
        got = source.id_type.simpleString()
        kinds = "a type with an order that pyspark can convert to Arrow, such as string, bigint or timestamp"
        raise TypeError(f"{name}[{id!r}] must be a column of {kinds}, got {got}; make one of such a type")
    return source


def _warn_of_random_values(name: str, frame: DataFrame) -> None:
    """Warn if a DataFrame may have other rows each time it is read; Spark Connect does not say it."""
    plan = getattr(frame, "_jdf", None)
    if plan is not None and not plan.queryExecution().analyzed().deterministic():
        warnings.warn(
            f"{name} has expressions such as rand(), uuid() or monotonically_increasing_id(), and is read several "
            "times: if they have other values each time, the result is wrong; write it to a table first",
            stacklevel=6,  # the caller of a function of lsh.spark, each of which is wrapped once
        )


def _is_ordered(kind: Any) -> bool:
    """Return whether values of a type have an order, and pyspark can convert them to Arrow."""
    from pyspark.sql import types

    if isinstance(kind, types.ArrayType):
        return _is_ordered(kind.elementType)
    if isinstance(kind, types.StructType):
        return len({*kind.names}) == len(kind) and all(_is_ordered(field.dataType) for field in kind.fields)
    unknown = isinstance(kind, types.YearMonthIntervalType) or kind.simpleString().startswith(("variant", "geo"))
    return isinstance(kind, types.AtomicType) and not unknown


def _check_column(name: str, frame: DataFrame, parameter: str, value: str) -> None:
    if value not in frame.columns:
        remedy = _remedy(name, frame.columns, parameter, value)
        raise ValueError(f"{name} has no column {value!r}; it has {', '.join(frame.columns) or 'none'}; {remedy}")
    same = columns_named(frame, value)
    if len(same) > 1:
        raise ValueError(f"{name} has several columns {value!r} ({', '.join(same)}); rename or drop all but one")


def columns_named(frame: DataFrame, name: str) -> list[str]:
    """Return the columns that Spark finds by a name, which may differ from it by case."""
    exact = frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    return [one for one in frame.columns if one == name or (not exact and one.lower() == name.lower())]


def _remedy(name: str, columns: list[str], parameter: str, value: str) -> str:
    """Say what to pass instead of the name of a column that does not exist."""
    close = [one for one in columns if one.lower() == value.strip("`").lower()]
    if close:
        return f"did you mean {close[0]!r}?"
    if parameter == "keep" and DIRECTION.search(value):
        return f"keep has no direction: {LOWEST_KEPT}"
    if parameter == "keep":
        words = ", ".join(map(repr, KEEP_WORDS))
        return f"keep must be {words}, a column, or an expression as a Column: functions.expr({value!r})"
    if value.partition(".")[0] in columns:
        added = f"{name}.withColumn({value.replace('.', '_')!r}, functions.col({value!r}))"
        return f"make a field of a struct a column of its own: {added}"
    return f"name another one as {parameter}"


def check_same_types(new: SourceFrame, old: SourceFrame) -> None:
    """Raise TypeError if the texts or ids of two sources have different types."""
    for what, one, other in (("texts", new.text, old.text), ("ids", new.id, old.id)):
        kinds = [source.frame.schema[name].dataType.simpleString() for source, name in ((new, one), (old, other))]
        if kinds[0] != kinds[1]:
            raise TypeError(
                f"the {what} of {old.name} must have type {kinds[0]}, as those of df, got {kinds[1]}; cast them"
            )


def checked_keep(source: SourceFrame, keep: object) -> Column:
    """Return the column or expression whose highest value is kept, checked; a null where ids alone decide."""
    from pyspark.sql import Column, functions

    if isinstance(keep, str) and keep in KEEP_WORDS:
        if keep == "first":
            return functions.lit(None).cast("int")
        return column(source.id) if keep == "last" else functions.octet_length(column(source.text))
    if isinstance(keep, str):
        _check_column("df", source.frame, "keep", keep)
        keep = column(keep)
    elif not isinstance(keep, Column):
        words = ", ".join(map(repr, KEEP_WORDS))
        raise TypeError(f"keep must be {words}, the name of a column or a Column, got {type(keep).__name__}")
    elif DIRECTION.search(str(keep)):
        raise ValueError(f"keep must be a value without asc() or desc(), got {keep}: {LOWEST_KEPT}")
    return _checked_priority(source, keep)


def _checked_priority(source: SourceFrame, keep: Column) -> Column:
    """Return an expression over the columns of a source, checked; NaN becomes a null, which comes last."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions, types

    try:
        # refuses aggregates, explode(), which would repeat rows, and types without an order
        rows = source.frame.select(column(source.id).alias("id"), functions.coalesce(keep).alias("keep"))
        kind = rows.sort(functions.col("keep")).schema["keep"].dataType
    except AnalysisException as error:
        reason = str(error).splitlines()[0]
        wanted = "an expression over the columns of df with one value for each row, of a type with an order"
        remedy = f": {LOWEST_KEPT}" if "negative" in reason else ""
        raise ValueError(f"keep must be {wanted}, got {keep}: {reason}{remedy}") from error
    _refuse_random(source.frame, keep)
    if isinstance(kind, (types.StringType, types.BinaryType)):
        raise TypeError(
            f"keep must be numbers or dates, got {keep} of type {kind.simpleString()}; convert it, such as by "
            "functions.to_timestamp(name) or functions.col(name).cast('double')"
        )
    if isinstance(kind, types.YearMonthIntervalType):
        raise ValueError(f"keep must not be of type {kind.simpleString()}, got {keep}; cast it to int")
    is_float = isinstance(kind, (types.FloatType, types.DoubleType))
    return functions.nanvl(keep, functions.lit(None).cast(kind)) if is_float else keep


def _refuse_random(frame: DataFrame, keep: Column) -> None:
    """Raise ValueError if an expression may have another value each time, such as rand()."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions

    try:
        _ = frame.agg(functions.max(keep)).schema  # other errors are of values that only an aggregate refuses
    except AnalysisException as error:
        if error.getCondition() == "AGGREGATE_FUNCTION_WITH_NONDETERMINISTIC_EXPRESSION":
            raise ValueError(
                f"keep must have the same values each time it is computed, got {keep}; write it to a table with the "
                "documents first"
            ) from error


def check_ids(source: SourceFrame) -> None:
    """Raise ValueError if an id is null or not unique."""
    from pyspark.sql import functions

    counts = source.frame.groupBy(column(source.id).alias("id")).agg(functions.count(functions.lit(1)).alias("rows"))
    wrong = counts.where("id is null or rows > 1").limit(3).collect()
    for row in wrong:
        if row["id"] is None:
            raise ValueError(
                f"{source.name}[{source.id!r}] must not be null, got {counted(row['rows'], 'null')}; drop these rows"
            )
    if wrong:
        ids = ", ".join(f"{_shown(row['id'])} ({row['rows']:,} rows)" for row in wrong)
        raise ValueError(f"{source.name}[{source.id!r}] must be unique, got several rows of {ids}; drop all but one")


def _shown(id: object) -> str:
    text = repr(id)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def _describe() -> Callable[[int], str]:
    """Return a function that describes the Python of a task: it is sent by value, as a worker may lack this package."""

    def describe(_: int) -> str:
        import json
        import socket
        import sys
        import unicodedata

        found = {"python": sys.executable, "host": socket.gethostname(), "unicode": unicodedata.unidata_version}
        for package in ("numpy", "pyarrow", "lsh"):
            try:
                found[package] = __import__(package).__version__
            except ImportError as error:
                found[package], found[f"{package} error"] = "", str(error)
        return json.dumps(found, sort_keys=True)

    return describe


_checked: set[str] = set()  # applications whose workers were checked


def check_workers(spark: SparkSession) -> None:
    """Run a small job that checks the versions of this package and of pyarrow in the Python of the executors.

    Raises ImportError if one of them is missing there, too old, or another version than here.
    """
    from pyspark.sql import functions

    from lsh.base.version import __version__

    application = spark.conf.get("spark.app.id", "")
    if application in _checked:
        return
    describe = functions.udf(_describe(), "string", useArrow=False)
    rows = spark.range(1 << 8).select(describe("id").alias("found")).collect()
    workers = [json.loads(found) for found in sorted({row["found"] for row in rows})]
    remedy = (
        f"install lsh-dedup[spark]=={__version__} there, or set PYSPARK_PYTHON (with spark-submit also "
        "spark.pyspark.python) to a Python that has it"
    )
    for worker in workers:
        where = f"the Python of the executors ({worker['python']} on {worker['host']})"
        for package in ("numpy", "pyarrow", "lsh"):
            if not worker[package]:
                raise ImportError(f"{where} cannot import {package}: {worker[f'{package} error']}; {remedy}")
        if worker["lsh"] != __version__:
            raise ImportError(f"{where} has lsh-dedup {worker['lsh']}, the driver {__version__}; {remedy}")
        if _numbers(worker["pyarrow"]) < MIN_PYARROW:
            wanted = ".".join(map(str, MIN_PYARROW))
            raise ImportError(f"{where} has pyarrow {worker['pyarrow']}, but {wanted} is required; {remedy}")
    versions = {worker["unicode"] for worker in workers}
    if len(versions) > 1:
        raise ImportError(
            f"the executors have Pythons with different Unicode versions ({', '.join(sorted(versions))}), which may "
            "split or normalize a text differently; use one version of Python"
        )
    if application:
        _checked.add(application)


# ---- tables ----


def saved(frame: DataFrame) -> DataFrame:
    """Compute a table and store it: in the folder for checkpoints if one is set, else on the disks of the executors."""
    if _checkpoint_folder(frame.sparkSession):
        return frame.checkpoint()
    return frame.localCheckpoint()


def _checkpoint_folder(spark: SparkSession) -> object:
    try:
        return spark.sparkContext.getCheckpointDir()
    except Exception:  # Spark Connect has no SparkContext
        return spark.conf.get("spark.checkpoint.dir", None)


def _sorted(frame: DataFrame, partitions: int | None, by: str, *then: str) -> DataFrame:
    """Return a table with equal values of `by` in one partition, and each partition in order."""
    placed = frame.repartition(by) if partitions is None else frame.repartition(partitions, by)
    return placed.sortWithinPartitions(*(then or (by,)))


def num_partitions(spark: SparkSession) -> int:
    configured = str(spark.conf.get("spark.sql.shuffle.partitions"))
    return int(configured) if configured.isdigit() else DEFAULT_PARTITIONS


def links(sources: list[SourceFrame], matching: Matching, documents: int) -> tuple[DataFrame, int]:
    """Return the links of nodes that share a bucket, and their number; check the ids on the way.

    The tasks are chosen by the number of documents: the engine would put small partitions together, into few tasks.
    """
    from pyspark.sql import functions as f

    from lsh.stages import tasks

    spark = sources[0].frame.sparkSession
    bits = min(max(MIN_RANGE_BITS, (4 * num_partitions(spark) - 1).bit_length()), 16)
    texts = [source.frame.select(column(source.text).alias("text"), source.node, source.id_hash) for source in sources]
    every = texts[0] if len(texts) == 1 else texts[0].unionAll(texts[1])
    keys = every.mapInArrow(partial(tasks.fingerprint, matching, bits), "range int, data binary")
    size = documents * matching.bands.num_bands * 8 * (2 + tasks.num_words(matching))
    num_tasks = max(min(num_partitions(spark), -(-size // TASK_BYTES)), 1)
    link: Callable[..., Any] = partial(tasks.link, matching, bits, part_bits(documents))
    table = saved(_sorted(keys, num_tasks, "range").mapInArrow(link, PACKED))
    kinds = ("range >= 0", *(f"range = {kind}" for kind in (tasks.NULLS, tasks.LEFT_OUT, tasks.DOUBTFUL)))
    (counts,) = table.agg(*(f.sum(f.expr(f"if({kind}, count, 0)")) for kind in kinds)).collect()
    num_links, nulls, left_out, doubtful = (count or 0 for count in counts)
    for source in sources:
        if doubtful or COLLATED in source.id_type.simpleString():
            check_ids(source)
    if matching.missing == "error" and nulls:
        _refuse_nulls(sources, nulls)
    if left_out:
        warnings.warn(
            f"{counted(left_out, 'comparison')} left out in buckets of more than {LIMIT:,} texts: similar documents "
            "may remain there, and the recall that was asked does not hold; use longer shingles or a higher threshold "
            "to separate texts of one template",
            RuntimeWarning,
            stacklevel=6,
        )
    return table.where("range >= 0"), num_links


def _refuse_nulls(sources: list[SourceFrame], count: int) -> None:
    for source in sources:
        rows = source.frame.where(column(source.text).isNull()).select(column(source.id)).limit(3).collect()
        if rows:
            ids = ", ".join(_shown(row[0]) for row in rows)
            raise ValueError(
                f"{source.name}[{source.text!r}] must not be null, got {counted(count, 'null text')} (ids {ids}); drop "
                "these rows, or pass missing='empty' to keep them as empty texts"
            )


def part_bits(documents: int) -> int:
    """Return how many bits choose the parts of the links, which are a few for each task of the first round."""
    return min((documents // (ROUND_LINKS // 4)).bit_length(), 16)


def components(table: DataFrame, num_links: int, documents: int, max_nodes: int) -> DataFrame:
    """Return (node, component) for the nodes of the links, with the least node as the number of a component."""
    from pyspark.sql import functions as f

    from lsh.stages import tasks

    is_large = num_links > max_nodes
    if is_large:  # the same node may be in links of several tasks
        pairs = table.mapInArrow(tasks.unpack, LINKS)
        is_large = pairs.agg(f.approx_count_distinct("b", 0.02)).collect()[0][0] > max_nodes
    if is_large:
        found = _stars(table)
    else:
        partitions = min(num_partitions(table.sparkSession), -(-num_links // ROUND_LINKS))
        while partitions > 1:
            connect: Callable[..., Any] = partial(tasks.connect, part_bits(documents))
            table = table.repartition(partitions, "range").mapInArrow(connect, PACKED)
            partitions = -(-partitions // FAN_IN)
        found = table.repartition(1).mapInArrow(partial(tasks.connect, None), LINKS)
    return saved(found.selectExpr("b as node", "a as component"))


def _stars(table: DataFrame) -> DataFrame:
    """Reduce links by large stars and small stars in turn until nothing changes; see `lsh.stages.tasks`."""
    from pyspark.sql import functions as f

    from lsh.stages import tasks

    pairs = table.mapInArrow(tasks.unpack, LINKS)
    edges, before = pairs.where("a < b"), None
    for _ in range(MAX_ROUNDS):
        both = edges.selectExpr("a as u", "b as v").unionAll(edges.selectExpr("b as u", "a as v"))
        larger = _sorted(both, None, "u", "u", "v").mapInArrow(tasks.large_star, LINKS)
        smaller = larger.selectExpr("greatest(a, b) as u", "least(a, b) as v")
        edges = saved(_sorted(smaller, None, "u", "u", "v").mapInArrow(tasks.small_star, LINKS).distinct())
        now = edges.agg(f.count("a"), f.bit_xor(f.xxhash64("a", "b"))).collect()
        if now == before:
            every = edges.unionAll(pairs.where("a = b"))
            return every.groupBy("b").agg(f.min("a").alias("a"))
        before = now
    raise RuntimeError(f"components were not found in {MAX_ROUNDS} rounds; this is a defect of lsh.spark, report it")


def member_filter(table: DataFrame) -> tuple[DataFrame, str]:
    """Return a Bloom filter of the nodes of a table of components, as one row, and the condition of a member."""
    from lsh.stages import tasks

    words = tasks.filter_words(table.count(), MAX_FILTER)
    parts = table.select("node").coalesce(8).mapInArrow(partial(tasks.fill_filter, words), "data binary")
    joined = parts.repartition(1).mapInArrow(partial(tasks.join_filters, words), "words array<long>")
    return saved(joined), tasks.filter_condition(words)


def members(sources: list[SourceFrame], keep: Column, table: DataFrame) -> tuple[DataFrame, list[Column]]:
    """Return (component, old, id, text, node, keep) of the members, and the columns of their order of priority.

    A node whose text is not found again has a row of nulls. Most texts of other documents are told apart by a filter,
    before the join would move all texts between the machines.
    """
    from pyspark.sql import functions as f

    rows: list[DataFrame] = []
    for number, source in enumerate(sources):
        named = {"text": source.text, "id": source.id}
        columns = [column(name).alias(alias) for alias, name in named.items()]
        value = keep if number == 0 else f.lit(None).cast(rows[0].schema["keep"].dataType)
        rows.append(source.frame.select(*columns, value.alias("keep"), f.lit(number == 1).alias("old"), source.node))
    every = rows[0] if len(rows) == 1 else rows[0].unionAll(rows[1])
    filter_, condition = member_filter(table)
    near = every.join(f.broadcast(filter_), f.expr(condition)).drop("words")
    return near.join(table, "node", "right"), [f.col("old").desc(), f.col("keep").desc_nulls_last(), f.col("id")]
