"""Where the records of text files lie, in their order: four bytes each.

The first reading adds each record by its place in the unpacked bytes of its file. Later, the records that are needed
are found by their positions. An entry is a length with its kind in the highest bits, so that records which follow one
another need no offsets.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from lsh.base.arrays import Array
from lsh.base.budget import MemoryBudget
from lsh.files.reached import Reached

BITS = 30  # of the length of an entry
MAX_LENGTH = (1 << BITS) - 1
RECORD, GAP, SKIPPED, CONTINUED = range(4)  # kinds; the next entry continues a record that is longer than MAX_LENGTH
MAX_WAITING, MAX_CHUNK = 1 << 12, 1 << 16  # entries

Flags = np.ndarray[Any, np.dtype[np.bool_]]


class Located(NamedTuple):
    """Records of a file: where they begin and end in its unpacked bytes, and their numbers in all files from 1 on."""

    begins: Array
    ends: Array
    numbers: Array

    def chosen(self, which: Array | slice) -> Located:
        """Return some of the records, by a mask or by indices."""
        return Located(self.begins[which], self.ends[which], self.numbers[which])

    def runs(self) -> tuple[Array, Array]:
        """Return where bytes of records begin and end, with neighbours joined."""
        apart = self.begins[1:] != self.ends[:-1]
        return self.begins[np.append(True, apart)], self.ends[np.append(apart, True)]

    def blocks(self, size: int) -> Iterator[Located]:
        """Yield the records in blocks of about `size` bytes."""
        sizes = np.cumsum(self.ends - self.begins)
        bounds = np.searchsorted(sizes, np.arange(size, int(sizes[-1]), size)) + 1
        for first, stop in pairwise(dict.fromkeys([0, *bounds.tolist(), len(sizes)])):  # each once
            yield self.chosen(slice(first, stop))


@dataclass
class _PlacesReached(Reached):
    # of each file: the position of its first record, its first entry, and the records before it, with skipped ones
    positions: list[int] = field(default_factory=list)
    entries: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    end: int = 0  # of the last record in its file
    number: int = 0  # of records, with skipped ones
    count: int = 0  # of records


class Places:
    """The places of all records, added in order.

    Parameters
    ----------
    budget : MemoryBudget
        Allocates the memory.

    Examples
    --------
    >>> places = Places(MemoryBudget())
    >>> places.begin_file()
    >>> places.add(np.array([3, 9]), np.array([7, 12]))
    >>> [(first, found.begins.tolist(), found.ends.tolist()) for first, found in places.located(0)]
    [(0, [3, 9], [7, 12])]
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self.news: list[Array] | None = None  # entries that were added since `taken`, if these are wanted
        self._entries = budget.column(np.uint32)
        self._waiting = array("I")  # entries that were added one by one
        self._reached = _PlacesReached()

    @property
    def count(self) -> int:
        """The number of records, without skipped ones."""
        return self._reached.count

    def begin_file(self) -> None:
        """Begin the next file."""
        self._store()
        reached = self._reached
        reached.positions.append(reached.count)
        reached.entries.append(len(self._entries))
        reached.numbers.append(reached.number)
        reached.end = 0

    def add(self, begins: Array, ends: Array) -> None:
        """Add records of the current file by the bytes where they begin and end."""
        if not len(begins):
            return
        reached, begin, end = self._reached, int(begins[0]), int(ends[-1])
        if end - reached.end > MAX_LENGTH:  # an entry might be too long
            for one in zip(begins.tolist(), ends.tolist()):
                self.add_one(*one)
            return
        self._store()
        entries = sizes = ends - begins
        if begin != reached.end or end - begin != int(sizes.sum()):
            gaps = begins - np.concatenate([[reached.end], ends[:-1]])
            where = np.flatnonzero(gaps)
            entries = np.insert(sizes, where, gaps[where] | GAP << BITS)
        self._append(entries.astype(np.uint32))
        reached.end = end
        reached.count += len(begins)
        reached.number += len(begins)

    def add_one(self, begin: int, end: int, is_document: bool = True) -> None:
        """Add a record of the current file; one that is no document counts in the numbers only."""
        reached = self._reached
        self._put(begin - reached.end, GAP, GAP)
        self._put(end - begin, *((CONTINUED, RECORD) if is_document else (GAP, SKIPPED)))
        reached.end = end
        reached.count += is_document
        reached.number += 1
        if len(self._waiting) >= MAX_WAITING:
            self._store()

    def _put(self, size: int, kind: int, last: int) -> None:
        """Add entries of a size; all but the last are of another kind."""
        while size > MAX_LENGTH:
            self._waiting.append(MAX_LENGTH | kind << BITS)
            size -= MAX_LENGTH
        if size or last != GAP:
            self._waiting.append(size | last << BITS)

    def _store(self) -> None:
        if self._waiting:
            self._append(np.frombuffer(self._waiting, np.uint32))
            self._waiting = array("I")

    def _append(self, entries: Array) -> None:
        self._entries.append(entries)
        if self.news is not None:
            self.news.append(entries)

    def taken(self) -> tuple[Any, Array]:
        """Return what `restore` needs of other places: what is new since the last call."""
        self._store()
        entries, self.news = np.concatenate([np.empty(0, np.uint32), *(self.news or ())]), []
        return self._reached.taken(), entries

    def restore(self, state: Any, entries: Array) -> None:
        """Add what `taken` returned, call by call."""
        self._reached.restore(state)
        self._entries.append(entries)

    def extent(self, file: int) -> tuple[int, int]:
        """Return the position of the first record of a file, and that after the last."""
        first, stop = (*self._reached.positions[file : file + 2], self._reached.count)[:2]
        return first, stop

    def located(self, file: int) -> Iterator[tuple[int, Located]]:
        """Yield the records of a file in chunks, each with the position of its first record."""
        self._store()
        position, number = self._reached.positions[file], self._reached.numbers[file]
        start, stop = (*self._reached.entries[file : file + 2], len(self._entries))[:2]
        offset, begun = 0, np.empty(0, np.int64)  # of a record that the next chunk continues
        for entries in self._chunks(start, stop):
            kinds, ends = entries >> BITS, np.cumsum(entries & MAX_LENGTH, dtype=np.int64)
            begins, ends = np.concatenate([[0], ends[:-1]]) + offset, ends + offset
            offset = int(ends[-1])
            numbers = np.cumsum((kinds & 1) == 0, dtype=np.int64) + number
            number = int(numbers[-1])
            if kinds.any():
                is_part = (kinds == RECORD) | (kinds == CONTINUED)
                follows = np.append(len(begun) > 0, kinds[:-1] == CONTINUED)
                begins = np.append(begun, begins[is_part & ~follows])
                begins, begun = np.split(begins, [int((kinds == RECORD).sum())])
                ends, numbers = ends[kinds == RECORD], numbers[kinds == RECORD]
            elif len(begun):
                begins[0], begun = begun[0], begun[:0]
            yield position, Located(begins, ends, numbers)
            position += len(ends)

    def _chunks(self, start: int, stop: int) -> Iterator[Array]:
        """Yield some entries, not too many at once."""
        for _, entries in self._entries.chunks(start, stop) if start < stop else ():
            yield from (entries[at : at + MAX_CHUNK] for at in range(0, len(entries), MAX_CHUNK))

    def find(self, file: int, positions: Array) -> Iterator[Located]:
        """Yield the records of a file at some positions, which ascend."""
        done = 0
        for first, records in self.located(file):
            if done == len(positions):
                return
            stop = int(np.searchsorted(positions, first + len(records.begins)))
            if stop > done:
                yield records.chosen(positions[done:stop] - first)
            done = stop
