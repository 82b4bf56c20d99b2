"""The rows that commands write about removed documents, clusters, passages and items: ids in place of positions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import lsh
from lsh import files
from lsh.base.arrays import Array
from lsh.passages.reasons import in_words
from lsh.terminal.inputs import TextStream
from lsh.typing import DocId

if TYPE_CHECKING:  # most runs do not need it
    from lsh.store.index import Index

Removed = np.ndarray[Any, Any]
Positions = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

Item = TypeVar("Item")

MAX_ROWS = 1 << 12  # that are written at once
NONE = np.empty(0, np.int64)


class IndexDocuments:
    """The documents of an index that a result names, with the methods of `TextStream` that outputs use."""

    num_bytes, num_files = 0, 1

    def __init__(self, index: Index, ids: Sequence[DocId]) -> None:
        self._index, self._ids = index, ids

    def ids(self, positions: Positions) -> IndexDocuments:
        """Return the ids: this object has them all."""
        return self

    def of(self, positions: Positions) -> list[bytes]:
        """Return the ids at some positions."""
        return [self._shown(position) for position in positions.tolist()]

    def _shown(self, position: int) -> bytes:
        identity = self._ids[position]
        return identity if isinstance(identity, bytes) else str(identity).encode("utf-8", "surrogatepass")

    def files_of(self, positions: Positions) -> list[bytes]:
        """Return the name of the index for each position."""
        return [os.fsencode(self._index.path)] * len(positions)

    def at(self, positions: Iterable[int], report: Callable[[], object]) -> Iterator[tuple[int, files.Record]]:
        """Yield some positions and the documents there; `report` is called between them."""
        for position in sorted(set(positions)):
            report()
            yield position, files.Record(self._shown(position), self._index.text_of(self._ids[position]), b"")


def removed_rows(
    result: lsh.Deduplication, texts: TextStream, against: TextStream | IndexDocuments
) -> Iterator[Iterable[bytes]]:
    """Yield removed id, kept id and similarity; with reference documents, also where the kept one is, new or old.

    With several files the row ends with both files, as ids may repeat, and tells identical texts from similar ones.
    """
    for rows, ids, cells in _kept_cells(result, texts, against, result.removed["document"]):
        if max(texts.num_files, against.num_files) > 1:
            cells += [texts.files_of(rows["document"]), _of_kept(rows, texts.files_of, against.files_of)]
            cells.append([b"identical" if same else b"similar" for same in rows["identical"].tolist()])
        yield from zip(ids.of(rows["document"]), *cells)


def added_values(
    result: lsh.Deduplication, texts: TextStream, against: TextStream | IndexDocuments
) -> Iterator[files.Values | None]:
    """Return kept id, similarity and, with reference documents, side for every document, ``None`` for a kept one."""
    found = (zip(rows["document"].tolist(), zip(*cells)) for rows, _, cells in _kept_cells(result, texts, against))
    return of_each(len(result), chain.from_iterable(found))


def of_each(count: int, found: Iterable[tuple[int, Item]]) -> Iterator[Item | None]:
    """Yield for each of so many documents what is found of it, ``None`` for nothing; the documents ascend."""
    position = 0
    for document, item in found:
        yield from repeat(None, document - position)
        yield item
        position = document + 1
    yield from repeat(None, count - position)


def with_copies(
    result: lsh.Deduplication, values: Iterator[files.Values | None] | None, num_values: int
) -> Iterator[files.Values]:
    """Yield for how many documents each kept one stands, after the other values of all documents if there are any."""
    copies = result.copies if values is not None else result.copies[result.keep]
    others = repeat(None) if values is None else values
    for part in parts(copies):
        for number, row in zip(part.tolist(), others):
            yield *(row or [None] * num_values), str(number).encode() if number else None


def _kept_cells(
    result: lsh.Deduplication, texts: TextStream, against: TextStream | IndexDocuments, others: Positions = NONE
) -> Iterator[tuple[Removed, files.Ids, list[list[bytes]]]]:
    """Yield some removals, and for them the kept ids, the similarities and, with reference documents, the sides.

    With them come the ids of the kept documents of INPUT and of `others`, which are read together.
    """
    table = result.removed
    new = is_new(table)
    ids, old = texts.ids(np.concatenate([others, table["kept"][new]])), against.ids(table["kept"][~new])
    for rows in parts(table):
        cells = [_of_kept(rows, ids.of, old.of), [repr(one).encode() for one in rows["similarity"].tolist()]]
        yield rows, ids, cells + _sides(rows)


def _of_kept(
    rows: Removed, of_new: Callable[[Removed], list[bytes]], of_old: Callable[[Removed], list[bytes]]
) -> list[bytes]:
    """Return something of the kept document of each row, new or old."""
    found = np.empty(len(rows), np.object_)
    new = is_new(rows)
    found[new], found[~new] = of_new(rows["kept"][new]), of_old(rows["kept"][~new])
    return list(found)


def parts(table: Array) -> Iterator[Array]:
    """Yield the rows of a table, not too many at once."""
    return (table[first : first + MAX_ROWS] for first in range(0, len(table), MAX_ROWS))


def is_new(rows: Removed) -> Flags:
    """Return for each removed document, or each passage, whether the kept one is in INPUT, not in --against."""
    return rows["side"] == "new" if "side" in (rows.dtype.names or ()) else np.ones(len(rows), np.bool_)


def same_id(result: lsh.Deduplication, texts: TextStream, against: TextStream | IndexDocuments) -> bytes | None:
    """Return the id of a document that was removed for a reference document with this id, of the first `MAX_ROWS`."""
    rows = result.removed[~is_new(result.removed)][:MAX_ROWS]
    ids, old = texts.ids(rows["document"]).of(rows["document"]), against.ids(rows["kept"]).of(rows["kept"])
    return next((one for one, other in zip(ids, old) if one == other), None)


def cluster_rows(
    result: lsh.Deduplication, texts: TextStream, against: TextStream | IndexDocuments
) -> Iterator[Iterable[bytes]]:
    """Yield the number of the cluster and the id of each document that is in one."""
    clusters = result.clusters()
    ids = texts.ids(np.concatenate([np.empty(0, np.int64), *clusters]))
    for number, members in enumerate(clusters, 1):
        yield from ((b"%d" % number, identity) for identity in ids.of(members))


def copies_rows(
    result: lsh.Deduplication, texts: TextStream, against: TextStream | IndexDocuments, has_sources: bool
) -> Iterator[Iterable[bytes]]:
    """Yield the id of each kept document, the number of documents that it stands for, and where it was seen first.

    The documents of INPUT come first, then the old ones that others were removed for. Where a document was seen is its
    file or, if INPUT `has_sources`, its source.
    """
    kept, at = result.kept, 0
    for ids, sources in texts.named(kept):
        positions = kept[at : at + len(ids)]
        at += len(ids)
        seen = sources if has_sources else texts.files_of(positions)
        yield from zip(ids, (b"%d" % number for number in result.copies[positions].tolist()), seen)
    table = result.old_copies
    old = against.ids(table["kept"])
    for rows in parts(table):
        numbers = (b"%d" % number for number in rows["copies"].tolist())
        yield from zip(old.of(rows["kept"]), numbers, against.files_of(rows["kept"]))


def span_rows(found: lsh.Passages, texts: TextStream, old: TextStream) -> Iterator[Iterable[bytes]]:
    """Yield the id of the document, start and end, the kept id, and start; with reference documents also the side."""
    table = found.spans
    new = is_new(table)
    ids, others = texts.ids(np.concatenate([table["document"], table["kept"][new]])), old.ids(table["kept"][~new])
    for rows in parts(table):
        start, end, kept_start = ([b"%d" % at for at in rows[name].tolist()] for name in ("start", "end", "kept_start"))
        cells = [ids.of(rows["document"]), start, end, _of_kept(rows, ids.of, others.of), kept_start]
        yield from zip(*cells, *_sides(rows))


def hit_rows(found: lsh.Contained, texts: TextStream, items: TextStream) -> Iterator[Iterable[bytes]]:
    """Yield the id of the text, of several files that of the item, its id, containment, start, end, shared shingles."""
    hits = found.hits
    ids, others = texts.ids(hits["text"]), items.ids(hits["item"])
    for rows in parts(hits):
        cells = [ids.of(rows["text"]), *_items(rows["item"], items, others)]
        cells.append([repr(one).encode() for one in rows["containment"].tolist()])
        yield from zip(*cells, *([b"%d" % at for at in rows[name].tolist()] for name in ("start", "end", "shared")))


def skipped_rows(found: lsh.Contained, items: TextStream) -> Iterator[Iterable[bytes]]:
    """Yield, of several files that of the item, its id, and why it was not looked for."""
    rows, words = found.skipped, in_words(found.parameters)
    reasons = [words[reason].encode() for reason in rows["reason"].tolist()]
    yield from zip(*_items(rows["item"], items, items.ids(rows["item"])), reasons)


def _items(positions: Positions, items: TextStream, ids: files.Ids) -> list[list[bytes]]:
    """Return the columns that name items: the file, if there are several, and the id."""
    return [*([items.files_of(positions)] if items.num_files > 1 else []), ids.of(positions)]


def _sides(rows: Removed) -> list[list[bytes]]:
    """Return the column that tells new kept documents from old ones, if there are old ones."""
    return [[side.encode() for side in rows["side"].tolist()]] if "side" in (rows.dtype.names or ()) else []
