"""The documents that are in no segment yet: those of the log, and those of a writer that are not committed.

They are in memory, numbered in order of addition, and their buckets are hash tables. The caller holds a lock.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsh.base.arrays import Array
from lsh.links.grouping import BucketTables
from lsh.segments.file_format import NO_TIME
from lsh.segments.segment import DocumentBatch, SegmentLayout

SMALLEST = 16  # documents for which memory is allocated at first
CANDIDATES = 1 << 13  # documents that are compared at once
DOCUMENT_BYTES = 200  # of memory that a document takes beside its keys, sketch, id and text
_NONE = np.empty(0, np.int64), np.empty(0, np.uint32), np.empty(0, np.uint16)


class MemTable:
    """Documents in memory, by number; a removed one keeps its number."""

    def __init__(self, layout: SegmentLayout, first: int, capacity: int = 0) -> None:
        self.layout = layout
        self.first = first  # the number of arrival of document 0; the others follow it
        self.numbers: dict[bytes, int] = {}  # of the documents that are not removed
        self.codes: list[bytes] = []
        self.texts: list[bytes] = []
        self.size = 0  # bytes of keys, sketches, ids and texts
        self._keys = np.empty((capacity, layout.bands), np.uint64, "F")  # the keys of a band are together
        self._keyed = np.empty(capacity, bool)
        self._sketches = np.empty((capacity, layout.components), layout.dtype)
        self._times = np.empty(capacity, np.int64)
        self._alive = np.empty(capacity, bool)
        self._tables = BucketTables(layout.bands)
        self._entered = 0  # documents that are in the tables

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def capacity(self) -> int:
        """The number of documents for which there is memory."""
        return len(self._alive)

    @property
    def count(self) -> int:
        """The number of documents with the removed ones."""
        return len(self.codes)

    @property
    def next_arrival(self) -> int:
        """The number of arrival of the next document."""
        return self.first + len(self.codes)

    def add(self, documents: DocumentBatch) -> None:
        """Add documents, whose ids differ from each other and from those that are stored."""
        first, stop = self.count, self.count + len(documents)
        if stop > self.capacity:
            self._grow(max(stop, 2 * self.capacity, SMALLEST))
        self._keys[first:stop] = documents.keys
        self._keyed[first:stop] = documents.keyed
        self._sketches[first:stop] = documents.sketches
        self._times[first:stop] = documents.times
        self._alive[first:stop] = True
        self.size += documents.keys.nbytes + documents.sketches.nbytes + DOCUMENT_BYTES * len(documents)
        if documents.texts is not None:
            self.size += sum(map(len, documents.texts))
            self.texts += documents.texts
        self.codes += documents.codes
        self.numbers.update(zip(documents.codes, range(first, stop)))

    def _grow(self, size: int) -> None:
        count = self.count
        for name in ("_keys", "_keyed", "_sketches", "_times", "_alive"):
            old: Array = getattr(self, name)
            grown = np.empty((size, *old.shape[1:]), old.dtype, "F" if name == "_keys" else "C")
            grown[:count] = old[:count]
            setattr(self, name, grown)

    def remove(self, number: int) -> None:
        """Remove a document that is stored."""
        del self.numbers[self.codes[number]]
        self._alive[number] = False
        if number < self._entered and self._keyed[number]:
            self._tables.remove(self._keys[number][:, None].copy(), np.array([number], np.uint32))

    def is_alive(self, number: int) -> bool:
        """Tell whether there is a document of this number that is not removed."""
        return 0 <= number < self.count and bool(self._alive[number])

    def documents(self) -> DocumentBatch:
        """Return the documents that are not removed, in order of addition."""
        n = self.count
        texts = self.texts if self.layout.texts else None
        stored = DocumentBatch(self.codes, self._keys[:n], self._keyed[:n], self._sketches[:n], self._times[:n], texts)
        return stored if len(self) == n else stored.take(self._alive[:n])

    def arrivals(self) -> NDArray[np.int64]:
        """Return the numbers of arrival of the documents that are not removed."""
        return self.alive() + self.first

    def alive(self) -> NDArray[np.int64]:
        """Return the numbers of the documents that are not removed."""
        return np.flatnonzero(self._alive[: self.count])

    def keys_of(self, number: int) -> NDArray[np.uint64] | None:
        """Return the keys of a document, ``None`` if it has none."""
        return self._keys[number].copy() if self._keyed[number] else None

    def sketch(self, number: int) -> Array:
        """Return the sketch of a document."""
        sketch: Array = self._sketches[number].copy()
        return sketch

    def time(self, number: int) -> int:
        """Return the time of a document."""
        return int(self._times[number])

    def before(self, time: int) -> NDArray[np.int64]:
        """Return the numbers of the documents with a time before the given one."""
        times = self._times[: self.count]
        return np.flatnonzero(self._alive[: self.count] & (times != NO_TIME) & (times < time))

    def forget_tables(self) -> None:
        """Make new tables at the next search: in a forked process, another thread may have been changing these."""
        self._tables, self._entered = BucketTables(self.layout.bands), 0

    def _enter(self) -> None:
        """Put the documents that were added since the last search into the buckets."""
        count = self.count
        if self._entered < count:
            chosen = self._entered + np.flatnonzero((self._keyed & self._alive)[self._entered : count])
            self._tables.reserve(count, len(self))
            self._tables.insert(np.ascontiguousarray(self._keys[chosen].T), chosen.astype(np.uint32))
            self._entered = count

    def search(
        self, keys: NDArray[np.uint64], rows: Array, min_equal: int, top: int | None
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint16]]:
        """Find the documents that share a bucket; the same as `lsh.segments.searching.Searcher.search`."""
        self._enter()
        pieces, first = list[tuple[Array, Array, Array]](), 0
        while first < keys.shape[1]:
            bounds, numbers = self._tables.candidates(keys, first, CANDIDATES)
            own = rows[first : first + len(bounds) - 1]
            pieces.append(self._compared(bounds, numbers, own, min_equal, top))
            first += len(bounds) - 1
        sizes, numbers, equal = pieces[0] if len(pieces) == 1 else map(np.concatenate, zip(_NONE, *pieces))
        bounds = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=bounds[1:])
        return bounds, numbers, equal

    def _compared(
        self, bounds: Array, numbers: Array, rows: Array, min_equal: int, top: int | None
    ) -> tuple[Array, Array, Array]:
        """Return how many candidates of each query match, these candidates, and their equal components."""
        sizes, same = bounds[1:] - bounds[:-1], np.zeros(len(numbers), np.uint16)
        if not len(numbers):
            return sizes, numbers, same
        queries = np.repeat(np.arange(len(sizes)), sizes)
        same[:] = np.count_nonzero(self._sketches[numbers] == rows[queries], axis=1)
        chosen = same >= min_equal
        if top is not None:
            best = np.lexsort((-same.astype(np.int64), queries))  # stable: in order of the numbers
            chosen[best[np.arange(len(best)) - bounds[queries] >= top]] = False
        return np.bincount(queries[chosen], minlength=len(sizes)), numbers[chosen], same[chosen]
