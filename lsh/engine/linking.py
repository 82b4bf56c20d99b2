"""Find documents with equal keys, such as band keys or content keys, within a limit of memory.

Documents have an order, in which they are decided. A link is a pair: a document, and the latest document before it in
this order that has the same key. If there is enough memory, all documents are linked at once (`Linker`), several bands
at the same time. Otherwise the keys are divided into parts, and each part takes one pass over the column of keys
(`KeyTable`). Both ways find the same links.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lsh.base.arrays import Array
from lsh.base.budget import MemoryBudget, SpilledColumn
from lsh.engine.comparing import first_copies
from lsh.engine.grouping import KeyTable, Linker

ORDER_BYTES = 16  # per document, for `Linker`: the order, a copy of it, and a check of both
LINKER_BYTES = 36  # per document and thread, for `Linker`: key, link, record and table
TABLE_BYTES = 24  # per key, for `KeyTable`
MAX_PARTS = 1 << 12
PIECE = 1 << 16  # pairs that are made at once
RANK_BITS, RANK = np.uint64(32), np.uint64(2**32 - 1)


def positions_of(flags: Array, start: int = 0) -> Array:
    """Return the places where `flags` is true, numbered from `start`: int32, ascending. Takes no other memory."""
    found, filled = np.empty(np.count_nonzero(flags), np.int32), 0
    for begin in range(0, len(flags), PIECE):
        here = np.flatnonzero(flags[begin : begin + PIECE])
        found[filled : filled + len(here)] = here + (start + begin)
        filled += len(here)
    return found


@dataclass(frozen=True, eq=False)
class Order:
    """The order in which documents are decided.

    Attributes
    ----------
    runs : list of tuple
        Ranges of documents: start, stop, and whether the range is in descending order.
    given : numpy.ndarray or None
        int32: all documents in an order that is not made of such ranges. Then `runs` is one range of all documents.
    entered : int
        A link leads to a document of the first `entered` runs.
    """

    runs: list[tuple[int, int, bool]]
    given: Array | None = None
    entered: int = 2

    def documents(self, chosen: Array) -> Array:
        """Return the documents for which `chosen` is true in this order, int32."""
        if self.given is not None:
            return self.given[chosen[self.given]]
        found = list[Array]()
        for start, stop, backwards in self.runs:
            run = positions_of(chosen[start:stop], start)
            found.append(run[::-1] if backwards else run)
        return np.ascontiguousarray(found[-1]) if len(found[0]) == 0 else np.concatenate(found)

    def num_entered(self, chosen: Array) -> int:
        """Return to how many of the chosen documents links can lead."""
        return sum(int(np.count_nonzero(chosen[start:stop])) for start, stop, _ in self.runs[: self.entered])


class Links:
    """Finds the links of documents.

    Parameters
    ----------
    spill : MemoryBudget
        Has the bound, and makes columns.
    order : Order
        The order of the documents.
    chosen : numpy.ndarray
        bool: which of all documents are linked.
    num_threads : int
        How many bands to link at the same time, at most.

    Attributes
    ----------
    num_threads : int
        How many bands can be linked at the same time within the bound.
    num_bytes : int
        The memory that this takes, without arrays and columns of the spill.
    """

    def __init__(self, spill: MemoryBudget, order: Order, chosen: Array, num_threads: int) -> None:
        self._spill, self._order, self._chosen = spill, order, chosen
        self._linker: Linker | None = None
        self.num_threads = self._threads_at_once(num_threads)
        if self.num_threads:
            self._documents = order.documents(chosen)
            self._linker = Linker(len(chosen), self._documents, order.num_entered(chosen))
            self.num_bytes = (ORDER_BYTES + LINKER_BYTES * self.num_threads) * len(chosen)
        else:
            self.num_threads = num_threads
            self._prepare_parts()
        self._idle: list[tuple[Array, Array]] = []  # scratch of threads that are done; pop and append are atomic

    def _threads_at_once(self, num_threads: int) -> int:
        """Return how many threads can link all documents at once within the bound; 0 if none can."""
        if not self._spill.is_bounded:
            return num_threads
        count = len(self._chosen)
        room = max(self._spill.room - ORDER_BYTES * count, 0)
        return min(num_threads, room // max(LINKER_BYTES * count, 1))

    def _prepare_parts(self) -> None:
        """Choose into how many parts the keys are divided, so that the table of each thread fits into the bound."""
        self._spill.release_columns()
        self._keys = max(int(np.count_nonzero(self._chosen)), 1)
        needed = TABLE_BYTES * self._keys * self.num_threads
        self._parts = min(-(-needed // max(self._spill.room, 1)), MAX_PARTS)
        self.num_bytes = needed // self._parts
        given = self._order.given
        if given is not None:
            self._ranks = np.empty(len(self._chosen), np.uint32)
            self._ranks[given] = np.arange(len(given), dtype=np.uint32)

    def firsts(self, keys: SpilledColumn) -> Array:
        """Return for each document the first one with the same key, int32; -1 for a document that is not chosen."""
        if self._linker is not None:
            return first_copies(self._all_links(keys)[1], self._documents)
        if self._order.given is None:
            numbers = np.arange(len(self._chosen), dtype=np.int32)
            firsts = np.where(self._chosen, numbers, np.int32(-1))
            for pairs in self._in_parts(keys, replace=False):
                firsts[pairs[:, 0]] = pairs[:, 1]
            return firsts
        links = np.full(len(self._chosen), -1, np.int32)
        for pairs in self._in_parts(keys):
            links[pairs[:, 0]] = pairs[:, 1]
        return first_copies(links, self._order.documents(self._chosen))

    def of_band(self, keys: SpilledColumn) -> SpilledColumn:
        """Return the links as pairs in no particular order, int32 of shape (n, 2); the keys are freed."""
        found = self._spill.column(np.int32, 2)
        if self._linker is None:
            for pairs in self._in_parts(keys):
                found.append(pairs)
            keys.free()
            return found
        scratch = self._all_links(keys)
        keys.free()
        links = scratch[1]
        linked = np.flatnonzero(links >= 0)
        for start in range(0, len(linked), PIECE):
            piece = linked[start : start + PIECE]
            found.append(np.stack([piece.astype(np.int32), links[piece]], axis=1))
        self._idle.append(scratch)
        return found

    def _all_links(self, column: SpilledColumn) -> tuple[Array, Array]:
        """Link all documents at once; return the keys and the links."""
        assert self._linker is not None
        try:
            keys, links = self._idle.pop()
        except IndexError:
            keys, links = np.empty(len(column), np.uint64), np.empty(len(column), np.int32)
        self._linker.link(column.read(out=keys), links)
        return keys, links

    def _in_parts(self, keys: SpilledColumn, replace: bool = True) -> Iterator[Array]:
        """Yield pairs: links, or without `replace` each document and the first one with its key.

        Where another order is given, a part of the keys is linked in order of position first.
        """
        table = KeyTable(-(-self._keys // self._parts))
        for part in range(self._parts):
            table.start(part, self._parts)
            if self._order.given is None:
                yield from self._passed(keys, table, replace)
            else:
                yield from self._ranked(self._passed(keys, table, replace=False), self._order.given)

    def _passed(self, keys: SpilledColumn, table: KeyTable, replace: bool) -> Iterator[Array]:
        """Yield the pairs of one pass over the keys, in the order of its runs; each is valid until the next one."""
        pairs, chosen = np.empty((0, 2), np.int32), self._chosen.view(np.uint8)
        for number, (start, stop, backwards) in enumerate(self._order.runs):
            enter = number < self._order.entered
            for at, rows in keys.parts(start, stop, backwards):
                if len(pairs) < len(rows):
                    pairs = np.empty((len(rows), 2), np.int32)
                count = table.link(rows, chosen[at : at + len(rows)], at, pairs, backwards, enter, replace)
                yield pairs[:count]

    def _ranked(self, passed: Iterator[Array], given: Array) -> Iterator[Array]:
        """Yield links in another order for pairs of a document and the first one with its key.

        Documents with the same key are put in order by sorting numbers of 64 bits, which have the first one, and the
        rank of a document.
        """
        codes = self._spill.column(np.uint64)
        for pairs in passed:
            firsts = np.unique(pairs[:, 1])
            codes.append(pairs[:, 1].astype(np.uint64) << RANK_BITS | self._ranks[pairs[:, 0]])
            codes.append(firsts.astype(np.uint64) << RANK_BITS | self._ranks[firsts])
        ordered = codes.read()
        codes.free()
        ordered.sort()
        for start in range(0, len(ordered) - 1, PIECE):
            piece = ordered[start : start + PIECE + 1]
            linked = piece[1:] >> RANK_BITS == piece[:-1] >> RANK_BITS
            linked &= piece[1:] != piece[:-1]  # a first document may be there more than once
            yield given[np.stack([piece[1:][linked], piece[:-1][linked]], axis=1) & RANK]
