"""Near duplicates of a Spark DataFrame: `deduplicate`, `removed` and `find_pairs`.

The result is that of `lsh.deduplicate` and `lsh.find_pairs` for all texts in one machine, row for row. A document is
compared only with documents that share a bucket with it, so the decision depends on its connected component alone. The
job finds the components, collects the documents of each component in one partition, and calls the library for them;
large components are decided in rounds (`_rounds`).

Requires the extra ``spark`` (pyspark 4 and pyarrow) on the driver and in the Python of the executors.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec

from lsh.base import checks
from lsh.base.budget import memory_size
from lsh.base.version import __version__
from lsh.engine.matching import Matching
from lsh.sketch.bands import Bands
from lsh.sketch.hasher import MinHasher
from lsh.sketch.planning import Plan
from lsh.spark import _rounds, _stages
from lsh.text.shingling import Shingles
from lsh.typing import Clusters, Verify

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lsh.typing import Missing

__all__ = ["deduplicate", "find_pairs", "removed"]

MAX_NODES = 50_000_000
MOST_NODES = 2_000_000_000  # less than 2**31 - 1, as their number is known to 2 % only
REMOVED_ID = "__lsh_removed_id"
COPIES = "copies"


Params = ParamSpec("Params")


def _names_keep(function: Callable[Params, DataFrame]) -> Callable[Params, DataFrame]:
    """Make the error for `order`, a parameter of 1.0.0rc1, name `keep`, which has the other direction."""

    @wraps(function)
    def checked(*args: Params.args, **kwargs: Params.kwargs) -> DataFrame:
        _stages.check_driver()
        if "order" in kwargs:
            raise TypeError(
                "order is now keep (of lsh.spark.deduplicate and removed), in the reverse direction: order kept the "
                "lowest value, a column that is passed as keep keeps the highest; order=-col('stars') is keep='stars'"
            )
        return function(*args, **kwargs)

    return checked


@_names_keep
def deduplicate(
    df: DataFrame,
    text: str = "text",
    id: str = "id",
    *,
    threshold: float | None = None,
    recall: float | None = None,
    bands: Bands | Plan | None = None,
    shingles: Shingles | None = None,
    hasher: MinHasher | None = None,
    num_seeds: int | None = None,
    random_state: int | None = 0,
    keep: str | Column = "first",
    against: DataFrame | None = None,
    clusters: Clusters = "representative",
    verify: Verify = "exact",
    missing: Missing = "error",
    max_memory: int | str | None = None,
    max_nodes: int = MAX_NODES,
    add_copies: bool = False,
) -> DataFrame:
    """Return the rows of a DataFrame without near duplicates.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        The documents. It is read several times and must have the same rows each time: a DataFrame that is not (one of
        ``rand()``, or of files that change) has to be written to a table first.
    text : str, optional
        The column of the texts, of type string or binary.
    id : str, optional
        The column of the ids, of any type that has an order. An id must not be null, and no two rows may have the same.
    threshold, recall, bands, shingles, hasher, num_seeds, random_state, clusters, verify
        As for `lsh.deduplicate`.
    keep : {"first", "last", "longest"}, str or Column, optional
        Which one of several near duplicates to keep, as for `lsh.deduplicate`. The rows of a DataFrame have no
        position, so their order is that of the ids: ``"first"`` is the one with the lowest id, ``"last"`` the one with
        the highest. ``"longest"``: the one with the most UTF-8 bytes. Else the name of a column of numbers or dates,
        or an expression over the columns: the one with the highest value, so of dates and timestamps the newest. Nulls
        and NaN come last, and of documents with the same value the one with the lowest id is kept. A column that is
        named as one of the three words is passed as ``col("first")``.
    against : pyspark.sql.DataFrame, optional
        Old documents, with columns of the same names and types as `text` and `id`; see `lsh.deduplicate`. They come
        first, in order of their ids.
    missing : {"error", "empty"}, optional
        What to do with a null text: raise a ValueError, or treat it as an empty text, which is kept.
    max_memory : int or str, optional
        Limit of memory for the data of the documents that a task decides, as for `lsh.deduplicate`. A task decides a
        whole component, and its texts beyond 128 MB are in a temporary file in any case. Default: no limit.
    max_nodes : int, optional
        The largest number of different texts that share a bucket for which one task finds the components, which takes
        about 30 bytes of memory for each. Beyond it the star algorithm finds them, in more rounds and in all tasks.
    add_copies : bool, optional
        Add the column ``copies``: for how many rows of `df` each kept one stands, itself included.

    Returns
    -------
    pyspark.sql.DataFrame
        The rows that are kept, with all their columns. The column of the ids has the parameters of the run in its
        metadata, as JSON under ``"lsh"``, which Parquet files keep. The order of the rows is undefined.

    Raises
    ------
    TypeError, ValueError
        If a column or a parameter is wrong, an id is null or not unique, or a text is null.
    ImportError
        If a package is missing or too old, on the driver or in the Python of the executors.

    See Also
    --------
    removed : The documents to remove, each with its witness.

    Notes
    -----
    The components are found when this is called, and those of more than 20,000 texts are decided. The rest of the work
    is done when the DataFrame is used, and again at each use unless it is cached. To have both the kept rows and the
    removed documents, call `removed`, write its result, and use a left anti join on the ids.

    Tables between the stages are written to the folder for checkpoints if one is set
    (``SparkContext.setCheckpointDir``), else to the disks of the executors, where they are lost with an executor.
    """
    matching = Matching(
        threshold,
        recall=recall,
        bands=bands,
        shingles=shingles,
        hasher=hasher,
        num_seeds=num_seeds,
        random_state=random_state,
        verify=verify,
        clusters=clusters,
        missing=missing,
    )
    run = _started(matching, df, text, id, keep, max_memory, max_nodes, "against", against)
    if add_copies and (taken := _stages.columns_named(df, COPIES)):
        raise ValueError(f"df has a column {taken[0]!r}, but add_copies=True adds a column {COPIES!r}; rename yours")
    name = REMOVED_ID + "_" * max(map(len, df.columns))  # no column of df has it
    removed = run.removed()
    gone = removed.select(_stages.column("id").alias(name))
    kept = df.join(gone, _stages.column(id) == _stages.column(name), "left_anti")
    return run.described(_with_copies(kept, removed, id, name) if add_copies else kept, id)


def _with_copies(kept: DataFrame, removed: DataFrame, id: str, name: str) -> DataFrame:
    """Return kept rows with the number of rows that each stands for; no column has the name `name`."""
    from pyspark.sql import functions as f

    own = removed.where("side = 'new'") if "side" in removed.columns else removed
    counts = own.groupBy(_stages.column("kept_id").alias(name)).agg(f.count("kept_id").alias(COPIES))
    joined = kept.join(counts, _stages.column(id) == _stages.column(name), "left").drop(name)
    return joined.withColumn(COPIES, f.coalesce(COPIES, f.lit(0)) + f.lit(1))


@_names_keep
def removed(
    df: DataFrame,
    text: str = "text",
    id: str = "id",
    *,
    threshold: float | None = None,
    recall: float | None = None,
    bands: Bands | Plan | None = None,
    shingles: Shingles | None = None,
    hasher: MinHasher | None = None,
    num_seeds: int | None = None,
    random_state: int | None = 0,
    keep: str | Column = "first",
    against: DataFrame | None = None,
    clusters: Clusters = "representative",
    verify: Verify = "exact",
    missing: Missing = "error",
    max_memory: int | str | None = None,
    max_nodes: int = MAX_NODES,
) -> DataFrame:
    """Return the documents of a DataFrame to remove, each with its witness.

    Parameters
    ----------
    df, text, id, threshold, recall, bands, shingles, hasher, num_seeds, random_state, keep, against, clusters
        As for `lsh.spark.deduplicate`.
    verify, missing, max_memory, max_nodes
        As for `lsh.spark.deduplicate`.

    Returns
    -------
    pyspark.sql.DataFrame
        ``id`` of the removed document, ``kept_id`` of its witness, their ``similarity``, and whether their texts are
        ``identical``. With `against` also ``side``, ``"new"`` or ``"old"``: the DataFrame that has ``kept_id``. The
        order of the rows is undefined.

    Raises
    ------
    TypeError, ValueError, ImportError
        As for `lsh.spark.deduplicate`.
    """
    matching = Matching(
        threshold,
        recall=recall,
        bands=bands,
        shingles=shingles,
        hasher=hasher,
        num_seeds=num_seeds,
        random_state=random_state,
        verify=verify,
        clusters=clusters,
        missing=missing,
    )
    run = _started(matching, df, text, id, keep, max_memory, max_nodes, "against", against)
    return run.described(run.removed(), "id")


@_names_keep
def find_pairs(
    df: DataFrame,
    text: str = "text",
    id: str = "id",
    *,
    threshold: float | None = None,
    others: DataFrame | None = None,
    recall: float | None = None,
    bands: Bands | Plan | None = None,
    shingles: Shingles | None = None,
    hasher: MinHasher | None = None,
    num_seeds: int | None = None,
    random_state: int | None = 0,
    verify: Verify = "exact",
    missing: Missing = "error",
    max_memory: int | str | None = None,
    max_nodes: int = MAX_NODES,
) -> DataFrame:
    """Return the pairs of near-duplicate documents, in one DataFrame or between two.

    Parameters
    ----------
    df, text, id, threshold, recall, bands, shingles, hasher, num_seeds, random_state, verify, missing
        As for `lsh.spark.deduplicate`.
    others : pyspark.sql.DataFrame, optional
        A second collection, with columns of the same names and types as `text` and `id`: return pairs of one document
        of `df` and one of `others`, and no other pairs.
    max_memory, max_nodes
        As for `lsh.spark.deduplicate`.

    Returns
    -------
    pyspark.sql.DataFrame
        ``id1``, ``id2`` and ``similarity``; ``id1 < id2``, or ``id2`` is an id of `others`. The number of pairs is not
        limited: a thousand copies of a text are half a million pairs.

    Raises
    ------
    TypeError, ValueError, ImportError
        As for `lsh.spark.deduplicate`.
    """
    matching = Matching(
        threshold,
        recall=recall,
        bands=bands,
        shingles=shingles,
        hasher=hasher,
        num_seeds=num_seeds,
        random_state=random_state,
        verify=verify,
        missing=missing,
    )
    run = _started(matching, df, text, id, "first", max_memory, max_nodes, "others", others)
    return run.described(run.pairs(), "id1")


class _Run(NamedTuple):
    """A run whose parameters and columns are checked, and whose components are known."""

    sources: list[_stages.SourceFrame]
    keep: Column
    matching: Matching
    documents: int
    max_memory: int | str | None
    max_nodes: int

    def _decided(self, task: Any, schema: Any, in_rounds: bool = False) -> DataFrame:
        """Return the rows that a task makes of the documents of each component, or those of `_rounds.removed`."""
        table, num_links = _stages.links(self.sources, self.matching, self.documents)
        if not num_links:
            return self.sources[0].frame.sparkSession.createDataFrame([], schema)
        found = _stages.components(table, num_links, self.documents, self.max_nodes)
        large = _rounds.large_components(found) if in_rounds and self.matching.clusters == "representative" else []
        rows, order = _stages.members(self.sources, self.keep, found)
        common = self.matching, self.max_memory, len(self.sources) == 2
        small = rows.where(~_stages.column("component").isin(large)) if large else rows
        placed = small.repartition("component").sortWithinPartitions("component", *order)
        decided = placed.select("component", "old", "id", "text").mapInArrow(partial(task, *common), schema)
        if not large:
            return decided
        members = rows.where(_stages.column("component").isin(large)).orderBy(*order)
        return decided.unionAll(_rounds.removed(members.select("node", "old", "id", "text"), *common))

    def removed(self) -> DataFrame:
        """Return the removed documents."""
        from pyspark.sql.types import BooleanType, DoubleType, StringType, StructType

        from lsh.stages import tasks

        kind = self.sources[0].id_type
        schema = StructType().add("id", kind).add("kept_id", kind)
        schema = schema.add("similarity", DoubleType()).add("identical", BooleanType())
        schema = schema.add("side", StringType()) if len(self.sources) == 2 else schema
        return self._decided(tasks.decide, schema, in_rounds=True)

    def pairs(self) -> DataFrame:
        """Return the pairs."""
        from pyspark.sql.types import DoubleType, StructType

        from lsh.stages import tasks

        kind = self.sources[0].id_type
        schema = StructType().add("id1", kind).add("id2", kind).add("similarity", DoubleType())
        return self._decided(tasks.pair, schema)

    def described(self, frame: DataFrame, id: str) -> DataFrame:
        """Return a DataFrame with the parameters in the metadata of a column."""
        matching = self.matching
        values = {
            "version": __version__,
            "threshold": matching.threshold,
            "recall": None if matching.plan is None else matching.plan.recall,
            "bands": matching.bands.to_dict(),
            "hasher": matching.hasher.to_dict(),
            "verify": matching.verify,
            "clusters": matching.clusters,
        }
        metadata = {**frame.schema[id].metadata, "lsh": json.dumps(values)}
        if type(frame).__module__.startswith("pyspark.sql.connect") and "." not in id:  # withColumn loses them there
            return frame.withMetadata(id, metadata)
        return frame.withColumn(id, _stages.column(id).alias(id, metadata=metadata))


def _started(
    matching: Matching,
    df: object,
    text: object,
    id: object,
    keep: object,
    max_memory: int | str | None,
    max_nodes: object,
    name: str,
    second: object,
) -> _Run:
    """Check the DataFrames and their columns, the ids, and the Python of the executors; `second` may be ``None``."""
    limit = checks.whole_number("max_nodes", max_nodes, 1, MOST_NODES)
    memory_size(max_memory)
    sources = [_stages.checked_source("df", df, text, id)]
    if second is not None:
        sources.append(_stages.checked_source(name, second, text, id))
        _stages.check_same_types(*sources)
    priority = _stages.checked_keep(sources[0], keep)
    _stages.check_workers(sources[0].frame.sparkSession)
    documents = sum(source.frame.count() for source in sources)
    return _Run(sources, priority, matching.for_documents(max(documents, 1)), documents, max_memory, limit)
