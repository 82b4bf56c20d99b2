"""What the tasks of many machines compute: functions from Arrow batches to Arrow batches, as for Spark's `mapInArrow`.

A *node* is a 64-bit hash of the bytes of a text, with a fixed key, so identical texts are one node. Two texts with the
same node by chance only join two components, which does not change the result: documents are decided by their texts.
A *link* is a pair of nodes (a, b) that belong to one component.

Every function returns the same rows for the same rows of input, so a task that is repeated changes nothing. This module
does not import pyspark.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from lsh.base.arrays import Array
from lsh.base.budget import MAX_DOCUMENTS, MemoryBudget
from lsh.engine import dedup
from lsh.engine.matching import Matching
from lsh.links.comparing import keep_similar
from lsh.links.grouping import Components, pack_low_bits, rows_by_range
from lsh.links.linking import LIMIT, buckets_of
from lsh.sketch import sketch_filter
from lsh.sketch.hasher import batch_extents, batch_fingerprints
from lsh.text.batch import Batch, content_keys
from lsh.text.collections import each_piece

KEY = b"lsh.spark nodes."  # of the hash of texts: 16 bytes
CHUNK = 1 << 20  # links that are sorted at once
CHUNK_BYTES = 1 << 26  # of keys that are brought into the order of their ranges at once
MOST_BYTES = 1 << 30  # of keys in a batch, whose offsets have 32 bits
MAX_BATCH = 1 << 10  # texts in a batch
BATCH_FACTOR = 4  # as in `lsh.engine.corpus`
OUT = 1 << 16  # rows in a batch of output
RECORD_BYTES = 1 << 14  # of keys or links in a record
LINK_BYTES = 1 << 26  # of links that a task holds in memory; more are in a temporary file
SEGMENT_BYTES = 1 << 25  # of documents that are decided at once, if they are more than one component
HELD_BYTES = 1 << 27  # of documents that are held in memory; more are in a temporary file
NULLS, LEFT_OUT, DOUBTFUL = -1, -2, -3  # ranges of counts: null texts, comparisons left out, and ids to look at
MIXER = np.uint64(0x9E3779B97F4A7C15)
PROBES = 4  # bits of a member in a word of the filter
WORD = 64  # bits of a word of the filter
CHANGED = (
    "the input had other texts when it was read again, so the result would be wrong; write it to a table first, and do "
    "not change that before the result is written"
)

Batches = Iterator[pa.RecordBatch]


def temporary_folder() -> str | None:
    """Return the folder for temporary files that Spark names, else ``None`` for that of the system."""
    folder = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return folder if folder and os.access(folder, os.W_OK) else None


def running(max_memory: int | str | None) -> dedup.Running:
    """Return the memory and the one thread of a task, which needs no pairs that are only nearly similar."""
    folder = None if max_memory is None else temporary_folder()
    return dedup.Running.checked(max_memory, folder, num_threads=1)._replace(with_near=False)


# ---- links ----


def forest(a: Array, b: Array) -> tuple[Array, Array]:
    """Reduce links to one for each node: return the least node of the component of each node, and the nodes."""
    nodes = np.unique(np.concatenate([a, b]))
    return nodes[least_numbers(nodes, [(a, b)])], nodes


def distinct_numbers(parts: Iterable[Array]) -> Array:
    """Return the distinct numbers of some arrays of int64, ascending; this takes 18 bytes of memory for each."""
    found, held, size = np.empty(0, np.int64), list[Array](), 0
    for part in chain(parts, [None]):
        if part is not None:
            held.append(part)
            size += len(part)
        if part is None or size > max(len(found) >> 3, CHUNK):
            found = np.concatenate([found, *held])
            found.sort()
            is_new = np.ones(len(found), np.bool_)
            np.not_equal(found[1:], found[:-1], out=is_new[1:])
            found, held, size = found[is_new], [], 0
    return found


def least_numbers(nodes: Array, links: Iterable[tuple[Array, Array]]) -> Array:
    """Return for each of some nodes, which ascend, the index of the least node of its component: int32."""
    components, numbers = Components(len(nodes)), np.arange(len(nodes), dtype=np.int32)
    for pair in links:
        components.connect(np.stack([np.searchsorted(nodes, one) for one in pair], axis=1).astype(np.int32), numbers)
    return components.firsts()


def _links_of_buckets(rows: Array, low_bits: tuple[int, int]) -> tuple[Array, Array, int]:
    """Return links (a, b) of nodes for rows of a key, a node and low bits: uint64, shape ``(n, 2 + words)``.

    All rows of a key are there. A node links to itself if there are several rows with its key. Returns also how many
    comparisons of a node with a group were left out.
    """
    members, ends = buckets_of(rows[:, 0])
    bits, most = low_bits
    low = np.ascontiguousarray(rows[:, 2:])
    links, _, left_out = keep_similar(members, ends, low, members, bits, most, MAX_DOCUMENTS, False, LIMIT)
    nodes = rows[:, 1].view(np.int64)
    return nodes[links[:, 1]], nodes[links[:, 0]], left_out


def _records(rows: Array, ends: Array, first: int) -> Batches:
    """Yield records of rows of uint64, which come range by range: the number of a range, and some of its rows.

    A record has at most `RECORD_BYTES`, since Spark sends thousands of records at once to a task.
    """
    step = max(RECORD_BYTES // rows[0].nbytes, 1)
    bounds = np.unique(np.concatenate([ends, np.arange(0, len(rows), step)]))  # the last one is len(rows)
    numbers = np.searchsorted(ends, bounds[:-1], side="right").astype(np.int32) + np.int32(first)
    most = MOST_BYTES // (step * rows[0].nbytes)
    for start in range(0, len(numbers), most):
        own = bounds[start : start + most + 1]
        offsets = ((own - own[0]) * rows[0].nbytes).astype(np.int32)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(rows[own[0] : own[-1]])]
        data = pa.Array.from_buffers(pa.binary(), len(own) - 1, buffers)
        yield pa.RecordBatch.from_arrays([pa.array(numbers[start : start + most]), data], names=["range", "data"])


def batches_of(texts: pa.Array, matching: Matching) -> Iterator[Batch]:
    """Yield the texts of an Arrow column in batches; null is an empty text."""
    for piece in each_piece("texts", texts):
        for start, stop in batch_extents(matching.hasher, piece, MAX_BATCH, BATCH_FACTOR):
            yield Batch(piece, 0, True, None, "texts", start, stop)


def num_words(matching: Matching) -> int:
    """Return how many words the low bits of a text have."""
    return sketch_filter.num_words(matching.hasher.num_seeds, matching.low_bits[0])


def nodes_of(batch: Batch) -> Array:
    """Return the nodes of texts."""
    nodes = np.empty(len(batch), np.uint64)
    content_keys(batch, KEY, nodes)
    return nodes.view(np.int64)


def nodes_of_column(texts: pa.Array, matching: Matching) -> Array:
    """Return the nodes of an Arrow column of texts."""
    return np.concatenate([np.empty(0, np.int64), *map(nodes_of, batches_of(texts, matching))])


def fingerprint(matching: Matching, bits: int, batches: Batches) -> Batches:
    """Compute the band keys of texts, given rows of a text and its node, and return (range, data).

    Ranges from 0 have rows of a key, a node and the low bits of its fingerprint. Ranges from ``2**bits`` have links, of
    the nodes of several texts of a million of keys, whose rows are there once. Where the rows have a third column, the
    hash of an id or null, ranges from ``2 * 2**bits`` have each hash twice. Range `NULLS` has the numbers of null texts
    and of null ids.
    """
    held: list[tuple[Array, Array, Array]] = []  # nodes, keys and low bits
    ids: list[Array] = []
    bands, low_bits = matching.bands, matching.low_bits[0]

    def combined() -> Batches:
        nodes, keys, low = (np.concatenate(parts, axis=axis) for parts, axis in zip(zip(*held), (0, 1, 0)))
        held.clear()
        distinct, first, counts = np.unique(nodes, return_index=True, return_counts=True)
        yield from rows(keys, nodes, low, first, 0)
        for number, values in enumerate([distinct[counts > 1], *(np.concatenate(one) for one in [ids] if one)], 1):
            no_bits = np.empty((len(values), 0), np.uint64)
            yield from rows(values[None], values, no_bits, np.arange(len(values)), number << bits)
        ids.clear()

    def rows(keys: Array, numbers: Array, low: Array, chosen: Array, first: int) -> Batches:
        if len(chosen):
            yield from _records(*rows_by_range(keys, numbers, low, chosen, bits), first)

    total, nulls = 0, np.zeros(2, np.int64)
    for records in batches:
        texts, nodes, *hashes = records.columns
        nulls += texts.null_count, sum(one.null_count for one in hashes)
        ids += (one.drop_null().to_numpy().view(np.uint64) for one in hashes)
        start = 0
        for batch in batches_of(texts, matching):
            fingerprints = batch_fingerprints(matching.hasher, batch)
            keyed = ~matching.hasher.is_empty(fingerprints)
            low = np.empty((len(batch), 0), np.uint64)
            if low_bits:
                low = pack_low_bits(fingerprints.astype(np.uint8), low_bits)
            own = nodes[start : start + len(batch)].to_numpy().view(np.uint64)
            start += len(batch)
            held.append((own[keyed], bands.keys(fingerprints).compress(keyed, axis=1), low[keyed]))
            total += held[-1][1].size * 8 * (2 + low.shape[1])
            if total >= CHUNK_BYTES:
                yield from combined()
                total = 0
    if held:
        yield from combined()
    if nulls.any():
        data = pa.array([nulls.tobytes()], pa.binary())
        yield pa.RecordBatch.from_arrays([pa.array([NULLS], pa.int32()), data], names=["range", "data"])


def link(matching: Matching, bits: int, part_bits: int, batches: Batches) -> Batches:
    """Return the links of rows (range, data), which come in order of the range, as rows (range, data, count).

    Ranges from 0 to ``2**part_bits - 1`` have links (a, b); all of an a are in one of them. Others are counts: `NULLS`,
    `LEFT_OUT` of comparisons, and `DOUBTFUL` if an id is null or the hashes of two ids are equal.
    """
    links: list[tuple[Array, Array]] = []
    held, low_bits, counts = 0, matching.low_bits, dict.fromkeys((NULLS, LEFT_OUT, DOUBTFUL), 0)
    for number, rows in _ranges(bits, 2 + num_words(matching), batches):
        if number == NULLS:
            nulls, null_ids = rows.sum(axis=0).tolist()
            counts[NULLS] += nulls
            counts[DOUBTFUL] += null_ids
            continue
        if number >> bits == 2:
            counts[DOUBTFUL] += len(rows) - len(np.unique(rows[:, 0]))
            continue
        if number < 1 << bits:
            *found, left_out = _links_of_buckets(rows, low_bits)
            links.append((found[0], found[1]))
            counts[LEFT_OUT] += left_out
        else:
            links.append((rows[:, 0].view(np.int64), rows[:, 1].view(np.int64)))
        held += len(links[-1][0])
        if held >= CHUNK:
            yield from _packed_links(*forest(*map(np.concatenate, zip(*links))), part_bits)
            links, held = [], 0
    if held:
        yield from _packed_links(*forest(*map(np.concatenate, zip(*links))), part_bits)
    for number, count in counts.items():
        if count:
            arrays = [pa.array([number], pa.int32()), pa.nulls(1, pa.binary()), pa.array([count])]
            yield pa.RecordBatch.from_arrays(arrays, names=["range", "data", "count"])


def _packed_links(a: Array, b: Array, part_bits: int) -> Batches:
    """Yield links as rows (range, data, count), with all of an a in one of ``2**part_bits`` ranges."""
    parts = ((a.view(np.uint64) * MIXER) >> np.uint64(32) >> np.uint64(32 - part_bits)).astype(np.intp)
    rows = np.stack([a, b], axis=1)[np.argsort(parts, kind="stable")]
    for records in _records(rows, np.cumsum(np.bincount(parts, minlength=1 << part_bits)), 0) if len(rows) else ():
        counts = pa.compute.divide(pa.compute.binary_length(records.column(1)), rows[0].nbytes).cast(pa.int64())
        yield pa.RecordBatch.from_arrays([*records.columns, counts], names=["range", "data", "count"])


def links_in(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Array, Array]]:
    """Yield the links (a, b) of rows of `link`."""
    for rows in batches:
        for value in rows.column(1).drop_null():
            pairs = np.frombuffer(value.as_buffer(), np.int64).reshape(-1, 2)
            yield pairs[:, 0], pairs[:, 1]


def unpack(batches: Batches) -> Batches:
    """Return the links of rows of `link` as rows (a, b)."""
    for a, b in links_in(batches):
        yield from _written(a, b)


def _ranges(bits: int, width: int, batches: Batches) -> Iterator[tuple[int, Array]]:
    """Yield the number of each range, and its rows: uint64, of `width` numbers or of 2 for links.

    A range of keys or ids comes as a whole, one of links in parts, as it may have most links of a large component.
    """

    def joined(number: int, parts: list[Array]) -> Array:
        return np.concatenate(parts).reshape(-1, width if 0 <= number < 1 << bits else 2)

    current, parts = 0, [np.empty(0, np.uint64)]
    for records in batches:
        if not len(records):
            continue
        numbers, data = records.column(0).to_numpy(), records.column(1).cast(pa.large_binary())
        offsets = np.frombuffer(data.buffers()[1], np.int64)[data.offset : data.offset + len(data) + 1]
        starts = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(numbers)]):
            if numbers[start] != current:
                yield current, joined(current, parts)
                current, parts = int(numbers[start]), []
            elif current >> bits == 1:
                yield current, joined(current, parts)
                parts = []
            count = int(offsets[stop] - offsets[start]) // 8
            parts.append(np.frombuffer(data.buffers()[2], np.uint64, count, int(offsets[start])))
    yield current, joined(current, parts)


def _written(a: Array, b: Array) -> Batches:
    """Yield links in batches."""
    for start in range(0, len(a), OUT):
        arrays = [pa.array(values[start : start + OUT]) for values in (a, b)]
        yield pa.RecordBatch.from_arrays(arrays, names=["a", "b"])


def connect(part_bits: int | None, batches: Batches) -> Batches:
    """Reduce the links of rows of `link` to one for each node: from the least node of its component.

    Every node must be the b of a link. This takes about 32 bytes of memory for each node. Links beyond `LINK_BYTES` are
    in a temporary file. Returns rows as those of `link`, or (a, b) if `part_bits` is None.
    """
    links = MemoryBudget(LINK_BYTES, temporary_folder()).column(np.int64, 2)

    def seconds() -> Iterator[Array]:
        for pair in links_in(batches):
            links.append(np.stack(pair, axis=1))
            yield pair[1]

    nodes = distinct_numbers(seconds())
    if len(nodes) > MAX_DOCUMENTS:
        raise ValueError(
            f"more than {MAX_DOCUMENTS:,} texts share a bucket, too many for one task; call lsh.spark with a smaller "
            "max_nodes, so that all tasks find the components"
        )
    least = least_numbers(nodes, ((chunk[:, 0], chunk[:, 1]) for _, chunk in links.chunks()))
    for start in range(0, len(nodes), CHUNK):
        a, b = nodes[least[start : start + CHUNK]], nodes[start : start + CHUNK]
        yield from _written(a, b) if part_bits is None else _packed_links(a, b, part_bits)


# ---- the star algorithm: Kiveris et al. 2014, Connected Components in MapReduce and Beyond ----


def _neighbours(batches: Batches) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Yield distinct rows (u, v), which come in order, with the first v of each u, and whether a row is this one."""
    last: tuple[int, int, int] | None = None  # u, v and the first v of the row before
    for rows in batches:
        u, v = (rows.column(i).to_numpy() for i in (0, 1))
        if not len(u):
            continue
        begins = np.concatenate([[last is None or u[0] != last[0]], u[1:] != u[:-1]])
        same = ~begins & np.concatenate([[last is not None and v[0] == last[1]], v[1:] == v[:-1]])
        groups = np.cumsum(begins) - int(begins[0])
        firsts = v[begins] if begins[0] or last is None else np.append(np.int64(last[2]), v[begins])
        first = firsts[groups]
        last = int(u[-1]), int(v[-1]), int(first[-1])
        yield u[~same], v[~same], first[~same], begins[~same]


def large_star(batches: Batches) -> Batches:
    """Link the larger neighbours v of each node u, in rows (u, v) in order, to the least one of all and u itself."""
    for u, v, first, _ in _neighbours(batches):
        larger = v > u
        yield from _written(np.minimum(u, first)[larger], v[larger])


def small_star(batches: Batches) -> Batches:
    """Link each node u and its smaller neighbours v, in rows (u, v) in order, to the least one of these."""
    for u, v, first, begins in _neighbours(batches):
        a, b = np.concatenate([first, first[begins]]), np.concatenate([v, u[begins]])
        yield from _written(a[a != b], b[a != b])


# ---- members: the nodes that share a bucket with another text ----


def filter_words(members: int, most_bytes: int) -> int:
    """Return the number of words of a filter for some members: a power of two."""
    wanted = max(members * 16 // WORD, 1 << 10)
    return 1 << min(wanted.bit_length(), (most_bytes // 8).bit_length() - 1)


def _probes(nodes: Array, words: int) -> tuple[Array, Array]:
    """Return the word of each node in the filter, and its bits there."""
    hashes = nodes.view(np.uint64)
    bits = np.zeros(len(nodes), np.uint64)
    for i in range(PROBES):
        bits |= np.uint64(1) << (hashes >> np.uint64(6 * i) & np.uint64(WORD - 1))
    return (hashes >> np.uint64(6 * PROBES) & np.uint64(words - 1)).astype(np.intp), bits


def fill_filter(words: int, batches: Batches) -> Batches:
    """Return a Bloom filter of nodes, as one row of bytes."""
    data = np.zeros(words, np.uint64)
    for rows in batches:
        places, bits = _probes(rows.column(0).to_numpy(), words)
        np.bitwise_or.at(data, places, bits)
    yield pa.RecordBatch.from_arrays([pa.array([data.tobytes()], pa.binary())], names=["data"])


def join_filters(words: int, batches: Batches) -> Batches:
    """Return the union of filters, as one row with an array of int64."""
    data = np.zeros(words, np.uint64)
    for rows in batches:
        for value in rows.column(0):
            data |= np.frombuffer(value.as_buffer(), np.uint64)
    array = pa.ListArray.from_arrays(pa.array([0, words], pa.int32()), pa.array(data.view(np.int64)))
    yield pa.RecordBatch.from_arrays([array], names=["words"])


def filter_condition(words: int) -> str:
    """Return the condition of SQL that is true of each `node` in the filter, an array `words` of this length."""
    bits = " | ".join(f"shiftleft(1L, cast(shiftright(node, {6 * i}) & {WORD - 1} as int))" for i in range(PROBES))
    word = f"cast(shiftrightunsigned(node, {6 * PROBES}) & {words - 1} as int)"
    return f"get(words, {word}) & ({bits}) = ({bits})"


# ---- decisions ----


class TaskDocuments:
    """Rows (id, text) in memory, or in a temporary file if they are many."""

    def __init__(self) -> None:
        self._rows: list[pa.RecordBatch] = []
        self._file: Any = None
        self._writer: Any = None
        self.size = 0  # bytes

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows."""
        if not len(rows):
            return
        self._rows.append(rows)
        self.size += rows.nbytes
        if self.size > HELD_BYTES:
            if self._writer is None:
                self._file = tempfile.TemporaryFile(dir=temporary_folder())  # noqa: SIM115 - mapped until the end
                self._writer = pa.ipc.new_file(pa.PythonFile(self._file, "w"), rows.schema)
            for one in self._rows:
                self._writer.write_batch(one)
            self._rows.clear()

    def columns(self, schema: pa.Schema) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
        """Return the ids and the texts; those of a file are mapped. No rows can be added then."""
        if self._writer is not None:
            self._writer.close()
            self._file.flush()
            mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
            self._file.close()
            table = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(mapped))).read_all()
        else:
            table = pa.Table.from_batches(self._rows, schema)
        return table.column(0), table.column(1)


@dataclass
class TaskSegment:
    """Documents of whole components: those of the corpus, and old ones."""

    new: TaskDocuments
    old: TaskDocuments
    last: int | None = None  # the component of the last one
    count: int = 0

    @property
    def is_full(self) -> bool:
        """Whether another component should not be added."""
        return self.new.size + self.old.size >= SEGMENT_BYTES

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows (component, old, id, text)."""
        if not len(rows):
            return
        if rows.column(1).null_count:
            raise ValueError(CHANGED)
        self.count += len(rows)
        if self.count > MAX_DOCUMENTS:
            raise ValueError(
                f"a component has more than {MAX_DOCUMENTS:,} documents, too many to decide; use longer shingles, a "
                "higher threshold, or more seeds (num_seeds=512)"
            )
        old, documents = rows.column(1), rows.select([2, 3])
        if old.true_count:
            self.old.add(documents.filter(old))
            documents = documents.filter(pa.array(~old.to_numpy(zero_copy_only=False)))
        self.new.add(documents)
        self.last = rows.column(0)[-1].as_py()


def segments(batches: Batches) -> Iterator[tuple[TaskSegment, pa.Schema]]:
    """Divide rows (component, old, id, text), which come in order of the component, into segments."""
    segment, schema = TaskSegment(TaskDocuments(), TaskDocuments()), None
    for rows in batches:
        if not len(rows):
            continue
        schema = rows.select([2, 3]).schema
        if segment.is_full:
            others = np.flatnonzero(rows.column(0).to_numpy() != segment.last)
            first = int(others[0]) if len(others) else len(rows)
            segment.add(rows.slice(0, first))
            rows = rows.slice(first)
            if len(rows):
                yield segment, schema
                segment = TaskSegment(TaskDocuments(), TaskDocuments())
        segment.add(rows)
    if schema is not None:
        yield segment, schema


def _taken(values: pa.ChunkedArray, positions: Array) -> pa.Array:
    """Return the values at some positions, as an array."""
    return pa.concat_arrays(values.take(pa.array(positions)).chunks)


def decide(matching: Matching, max_memory: int | str | None, has_old: bool, batches: Batches) -> Batches:
    """Decide the documents of whole components, in rows (component, old, id, text) in order of priority.

    Returns rows (id, kept_id, similarity, identical), with the side if there may be old documents.
    """
    for segment, schema in segments(batches):
        ids, texts = segment.new.columns(schema)
        old_ids, old_texts = segment.old.columns(schema)
        if not len(texts):
            continue
        against = old_texts if has_old else None
        found = dedup.decide(matching.nulls_as_empty(), texts, against, running(max_memory)).removed
        all_ids = pa.chunked_array([*ids.chunks, *old_ids.chunks], ids.type)
        for start in range(0, len(found), OUT):
            part = found[start : start + OUT]
            kept = part["kept"] + np.where(part["side"] == "old", len(ids), 0) if has_old else part["kept"]
            columns = {
                "id": _taken(ids, part["document"]),
                "kept_id": _taken(all_ids, kept),
                "similarity": pa.array(np.ascontiguousarray(part["similarity"])),
                "identical": pa.array(np.ascontiguousarray(part["identical"])),
            }
            if has_old:
                columns["side"] = pa.array(part["side"].tolist(), pa.string())
            yield pa.RecordBatch.from_pydict(columns)


# ---- rounds: see `lsh.spark._rounds` ----


def _packed(**columns: pa.Array) -> pa.Array:
    """Return columns as one row of bytes."""
    batch, sink = pa.RecordBatch.from_pydict(columns), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pa.array([sink.getvalue().to_pybytes()], pa.binary())


def _unpacked(data: bytes) -> list[pa.Array]:
    columns: list[pa.Array] = pa.ipc.open_stream(data).read_next_batch().columns
    return columns


def decide_batch(matching: Matching, max_memory: int | str | None, batches: Batches) -> Batches:
    """Decide the documents of a batch, rows (rank, old, text) in order; old ones come first, and are kept.

    Returns one row, if there are any: the last rank, (rank, text) of those that are kept, and (rank, kept, similarity,
    identical) of the others.
    """
    rows = [batch for batch in batches if len(batch)]
    if not rows:
        return
    ranks, is_old, texts = pa.Table.from_batches(rows).columns
    ranks, is_old = ranks.to_numpy(), is_old.to_numpy()
    new, old = np.flatnonzero(~is_old), np.flatnonzero(is_old)
    given = _taken(texts, new), _taken(texts, old)
    found = dedup.decide(matching.nulls_as_empty(), *given, running(max_memory)).removed
    witnesses = np.concatenate([new, old])[found["kept"] + np.where(found["side"] == "old", len(new), 0)]
    gone = new[found["document"]]
    stays = np.ones(len(ranks), np.bool_)
    stays[gone] = False
    values = {name: pa.array(np.ascontiguousarray(found[name])) for name in ("similarity", "identical")}
    columns = {
        "last": pa.array(ranks[-1:]),
        "kept": _packed(rank=pa.array(ranks[stays]), text=_taken(texts, np.flatnonzero(stays))),
        "removed": _packed(rank=pa.array(ranks[gone]), kept=pa.array(ranks[witnesses]), **values),
    }
    yield pa.RecordBatch.from_pydict(columns)


def compare_batch(
    matching: Matching, max_memory: int | str | None, kept: bytes, removed: bytes, batches: Batches
) -> Batches:
    """Compare documents with those that are kept of a batch, which come before them; `decide_batch` returned the two.

    The documents are rows (rank, old, text, kept, similarity, identical), the last three null where none was similar
    yet. Returns the rows without the documents that are kept.
    """
    references, reference_texts = _unpacked(kept)
    references, (gone, *gone_found) = references.to_numpy(), (one.to_numpy(False) for one in _unpacked(removed))
    for rows in _of_size(batches):
        rows = rows.filter(pa.array(~np.isin(rows.column(0).to_numpy(), references)))
        ranks = rows.column(0).to_numpy()
        columns = [column.fill_null(-1).to_numpy().copy() for column in rows.columns[3:5]]
        columns.append(rows.column(5).fill_null(False).to_numpy().copy())
        _, here, at = np.intersect1d(ranks, gone, assume_unique=True, return_indices=True)
        for column, values in zip(columns, gone_found):
            column[here] = values[at]
        is_new = ~rows.column(1).to_numpy()
        compared = np.setdiff1d(np.flatnonzero(is_new & (ranks > references[0])), here)
        every = np.concatenate([references, ranks[compared]])
        order = np.argsort(every)
        places = np.concatenate([np.arange(len(references)), len(references) + compared])[order]
        texts = _taken(pa.chunked_array([reference_texts, *rows.column(2).chunks]), places)
        flags = order < len(references)
        found = dedup.decide(matching.nulls_as_empty(), texts, None, running(max_memory), references=flags).removed
        del texts
        documents = compared[order[found["document"]] - len(references)]
        better = found["similarity"] > columns[1][documents]
        documents, found = documents[better], found[better]
        for column, values in zip(columns, (every[order[found["kept"]]], found["similarity"], found["identical"])):
            column[documents] = values
        is_null = columns[0] < 0
        found_here = [pa.array(column, mask=is_null) for column in columns]
        arrays = [*rows.columns[:3], *found_here]
        yield from pa.Table.from_arrays(arrays, rows.schema.names).to_batches(max_chunksize=OUT)


def _of_size(batches: Batches) -> Iterator[pa.Table]:
    """Join batches to tables of about `HELD_BYTES`."""
    held, size = list[pa.RecordBatch](), 0
    for rows in batches:
        held.append(rows)
        size += rows.nbytes
        del rows
        if size > HELD_BYTES:
            table, size = [pa.Table.from_batches(held)], 0
            held.clear()
            yield table.pop()  # this holds none of its rows any more
    if held:
        yield pa.Table.from_batches(held)


def pair(matching: Matching, max_memory: int | str | None, two: bool, batches: Batches) -> Batches:
    """Find the pairs among the documents of whole components, in rows as for `decide`: (id1, id2, similarity)."""
    for segment, schema in segments(batches):
        ids, texts = segment.new.columns(schema)
        other_ids, other_texts = segment.old.columns(schema)
        found = dedup.pairs(matching.nulls_as_empty(), texts, other_texts if two else None, running(max_memory))
        seconds = other_ids if two else ids
        while some := list(islice(found, OUT)):
            i, j, similarity = (np.array(values) for values in zip(*some))
            arrays = [_taken(ids, i), _taken(seconds, j), pa.array(similarity)]
            yield pa.RecordBatch.from_arrays(arrays, names=["id1", "id2", "similarity"])
