"""Large components, decided by all tasks in rounds.

A document is removed for a kept one before it, so the first documents that are undecided can be decided by one task, a
batch of them at a time. What is kept of a batch is sent to all tasks, which compare it with every document after it:
one that is similar is removed, and has the most similar kept document before it as its witness once all have been seen
(prefixes of a greedy walk: Blelloch, Fineman, Shun 2012). The result is that of one task, and a batch is a small part
of the work: comparing n documents with each other in batches of m takes m / n of it in one task at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from lsh.spark import _stages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lsh.engine.matching import Matching

LARGE = 20_000  # nodes; a component of more is decided in rounds, in batches and tasks of so many documents or more,
FEW_ROUNDS = 5  # and of up to twice as many where it has more than so many of these: each task reads each batch
MOST_ROUNDS = 40  # of batches of documents that are all kept
BATCH_BYTES = 1 << 26  # of the texts of a batch, which pass through the driver
FOUND = "kept long, similarity double, identical boolean"  # of the witness, null where there is none yet


def large_components(table: DataFrame) -> list[int]:
    """Return the components of a table (node, component) that have many nodes."""
    rows = table.groupBy("component").count().where(f"count > {LARGE}").select("component").collect()
    return sorted(row[0] for row in rows)


def removed(members: DataFrame, matching: Matching, max_memory: int | str | None, has_old: bool) -> DataFrame:
    """Return the removed documents of large components, as rows of `lsh.stages.tasks.decide`.

    Parameters
    ----------
    members : pyspark.sql.DataFrame
        (node, old, id, text) of all members of the components, in order of the walk.
    matching, max_memory, has_old
        As for `lsh.stages.tasks.decide`.
    """
    from pyspark.sql import functions as f

    from lsh.stages import tasks

    known = _stages.saved(members.withColumn("rank", f.monotonically_increasing_id()))  # ascends in this order
    if known.where("old is null").limit(1).count():
        raise ValueError(tasks.CHANGED)
    unknown = [f.lit(None).cast(kind).alias(name) for name, kind in map(str.split, FOUND.split(", "))]
    found = _in_rounds(known.select("rank", "old", "text", *unknown), matching, max_memory)
    return _named(known, found, has_old)


def _in_rounds(state: DataFrame, matching: Matching, max_memory: int | str | None) -> DataFrame:
    """Decide the documents; return (rank, kept, similarity, identical), with nulls for those that are not removed."""
    from pyspark.sql import functions as f

    from lsh.stages import tasks

    schema = f"rank long, old boolean, text {state.schema['text'].dataType.simpleString()}, {FOUND}"
    (counted,) = state.agg(f.count("rank"), f.avg(f.octet_length("text"))).collect()
    size = min(max(LARGE, counted[0] // FEW_ROUNDS), 2 * LARGE)
    num_tasks = min(_stages.num_partitions(state.sparkSession), -(-counted[0] // size))
    state = _stages.saved(state.repartition(max(num_tasks, 1), "rank"))
    size = max(size, counted[0] // MOST_ROUNDS)
    size = max(min(size, int(BATCH_BYTES / max(counted[1] or 1.0, 1.0))), 1)
    done: list[DataFrame] = []
    decide: Callable[..., Any] = partial(tasks.decide_batch, matching, max_memory)
    while True:
        batch = state.where("kept is null").orderBy("rank").limit(size).select("rank", "old", "text").coalesce(1)
        decided = batch.mapInArrow(decide, "last long, kept binary, removed binary").collect()
        if not decided:
            break
        ((last, kept, gone),) = decided
        compare: Callable[..., Any] = partial(tasks.compare_batch, matching, max_memory, bytes(kept), bytes(gone))
        state = _stages.saved(state.mapInArrow(compare, schema))
        is_done = f"rank <= {last} or similarity <=> 1"  # nothing before it is kept later, or nothing more similar
        done.append(state.where(is_done))
        state = state.where(f"not ({is_done})")
    found = state
    for part in done:
        found = found.unionAll(part)
    return found.drop("old", "text")


def _named(known: DataFrame, found: DataFrame, has_old: bool) -> DataFrame:
    """Return the rows of the removed documents, with ids; `known` has (rank, old, id)."""
    from pyspark.sql import functions as f

    removed = found.where("kept is not null").join(known.select("rank", "id"), "rank")
    kept = known.select(f.col("rank").alias("kept"), f.col("id").alias("kept_id"), f.col("old").alias("kept_old"))
    columns = ["id", "kept_id", "similarity", "identical"]
    side = [f.when(f.col("kept_old"), "old").otherwise("new").alias("side")] if has_old else []
    return removed.join(kept, "kept").select(*columns, *side)
