"""Where the records of text files lie, in their order: four bytes each.

The first reading adds each record by its place in the unpacked bytes of its file. Later, the records that are needed
are found by their positions. An entry is a length with its kind in the highest bits, so that records which follow one
another need no offsets.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from lsh.base.arrays import Array
from lsh.base.budget import MemoryBudget

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


class _FileStart(NamedTuple):
    position: int  # of its first record
    entry: int
    number: int  # of records before it, with skipped ones


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
        self._files: list[_FileStart] = []
        self._end = self._number = 0
        self.count = self._num_taken = 0

    def begin_file(self) -> None:
        """Begin the next file."""
        self._store()
        self._files.append(_FileStart(self.count, len(self._entries), self._number))
        self._end = 0

    def add(self, begins: Array, ends: Array) -> None:
        """Add records of the current file by the bytes where they begin and end."""
        if not len(begins):
            return
        begin, end = int(begins[0]), int(ends[-1])
        if end - self._end > MAX_LENGTH:  # an entry might be too long
            for one in zip(begins.tolist(), ends.tolist()):
                self.add_one(*one)
            return
        self._store()
        entries = sizes = ends - begins
        if begin != self._end or end - begin != int(sizes.sum()):
            gaps = begins - np.concatenate([[self._end], ends[:-1]])
            where = np.flatnonzero(gaps)
            entries = np.insert(sizes, where, gaps[where] | GAP << BITS)
        self._append(entries.astype(np.uint32))
        self._end = end
        self.count += len(begins)
        self._number += len(begins)

    def add_one(self, begin: int, end: int, is_document: bool = True) -> None:
        """Add a record of the current file; one that is no document counts in the numbers only."""
        self._put(begin - self._end, GAP, GAP)
        self._put(end - begin, *((CONTINUED, RECORD) if is_document else (GAP, SKIPPED)))
        self._end = end
        self.count += is_document
        self._number += 1
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

    def taken(self) -> tuple[list[Any], Array]:
        """Return what `restore` needs of other places: numbers, and what was added since the last call."""
        self._store()
        entries, self.news = np.concatenate([np.empty(0, np.uint32), *(self.news or ())]), []
        starts, self._num_taken = self._files[self._num_taken :], len(self._files)
        return [starts, self._end, self._number, self.count], entries

    def restore(self, numbers: Sequence[Any], entries: Array) -> None:
        """Add what `taken` returned, call by call."""
        starts, self._end, self._number, self.count = numbers
        self._files += [_FileStart(*start) for start in starts]
        self._num_taken = len(self._files)
        self._entries.append(entries)

    def extent(self, file: int) -> tuple[int, int]:
        """Return the position of the first record of a file, and that after the last."""
        ended = self._files[file + 1].position if file + 1 < len(self._files) else self.count
        return self._files[file].position, ended

    def located(self, file: int) -> Iterator[tuple[int, Located]]:
        """Yield the records of a file in chunks, each with the position of its first record."""
        self._store()
        position, start, number = self._files[file]
        stop = self._files[file + 1].entry if file + 1 < len(self._files) else len(self._entries)
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
