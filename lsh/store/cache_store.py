"""The documents of a cache by number, and the read-only views of them that a cache returns.

`StoredDocuments` keeps ids, fingerprints and buckets consistent. `lsh.cache` decides what an id means, and locks.
"""

from __future__ import annotations

from collections.abc import Hashable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from contextlib import AbstractContextManager
from operator import index
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lsh.engine.grouping import BinSets, BinTables
from lsh.sketch.bands import Bands
from lsh.sketch.hasher import MinHasher
from lsh.typing import Array, FoundId

GONE = object()  # in place of the id of a removed document


class StoredDocuments:
    """The documents of a cache, numbered in order of addition: their ids, fingerprints and buckets.

    `numbers` and `rows` decide what is stored; everything else can be rebuilt from them. A change takes effect in one
    step, on `numbers`. `torn` is true from before that step until everything else agrees with it. The caller holds the
    lock.
    """

    def __init__(self, hasher: MinHasher, bands: Bands) -> None:
        self.hasher = hasher
        self.bands = bands
        self.tables = BinTables(bands.num_bands)
        self.rows: Array = np.empty((0, hasher.num_seeds), hasher.dtype)  # by number
        self.ids: list[FoundId] = []  # by number; GONE where the document was removed
        self.numbers: dict[Hashable, int] = {}
        self.torn = False

    def content(self) -> tuple[list[FoundId], Array]:
        """Return the ids in order of addition, and their fingerprints."""
        ids = sorted(self.numbers, key=self.numbers.__getitem__)
        return ids, self.rows[[self.numbers[doc_id] for doc_id in ids]]

    def current_ids(self) -> list[FoundId]:
        """Return the ids in order of addition."""
        return [doc_id for doc_id in self.ids if doc_id is not GONE]

    def add(self, doc_ids: list[FoundId], rows: Array) -> None:
        """Add documents, whose ids differ from each other; documents that are stored under these ids are replaced."""
        replaced = [self.numbers[doc_id] for doc_id in doc_ids if doc_id in self.numbers]
        first = len(self.ids)
        stop = first + len(doc_ids)
        binned = ~self.hasher.is_empty(rows)
        keys = self.bands.keys(rows[binned])
        numbers = np.arange(first, stop, dtype=np.uint32)
        update = dict(zip(doc_ids, range(first, stop)))
        self._reserve(stop)
        self.rows[first:stop] = rows
        self.torn = True
        self.numbers.update(update)
        self._forget(replaced)
        self.tables.insert(keys, numbers[binned])
        self.ids += doc_ids
        self.torn = False

    def _reserve(self, documents: int) -> None:
        """Allocate the memory for so many numbers first, so that a change does not fail half way."""
        self.tables.reserve(documents, len(self.numbers) + documents - len(self.ids))
        if documents > len(self.rows):
            grown = np.empty((max(documents, len(self.rows) * 3 // 2, 16), self.hasher.num_seeds), self.hasher.dtype)
            grown[: len(self.ids)] = self.rows[: len(self.ids)]
            self.rows = grown

    def remove(self, doc_id: Hashable) -> None:
        """Remove a stored document."""
        self.torn = True
        number = self.numbers.pop(doc_id)
        self._forget([number])
        self.torn = False

    def _forget(self, numbers: list[int]) -> None:
        """Remove numbers from the buckets and the list of ids."""
        if numbers:
            rows = self.rows[numbers]
            binned = ~self.hasher.is_empty(rows)
            self.tables.remove(self.bands.keys(rows[binned]), np.array(numbers, np.uint32)[binned])
            for number in numbers:
                self.ids[number] = GONE

    def find(self, row: Array) -> NDArray[np.uint32]:
        """Return the numbers of the documents that share a bucket with a fingerprint, ascending."""
        if self.hasher.is_empty(row):
            return np.empty(0, np.uint32)
        return self.tables.candidates(self.bands.keys(row[None]))[1]

    def same_fingerprint(self, row: Array) -> list[FoundId]:
        """Return the ids of the documents with this fingerprint."""
        if self.hasher.is_empty(row):  # such documents are in no bucket, so every document is checked
            return [doc_id for doc_id, number in self.numbers.items() if self.hasher.is_empty(self.rows[number])]
        numbers = self.tables.members(0, int(self.bands.keys(row[None])[0, 0]))
        return [self.ids[number] for number in numbers[(self.rows[numbers] == row).all(axis=1)]]


class Readable(Protocol):
    """The part of a cache that a view uses; used in annotations only."""

    def _reading(self) -> AbstractContextManager[StoredDocuments]: ...

    def __iter__(self) -> Iterator[FoundId]: ...

    def __len__(self) -> int: ...


class BandBins(Mapping[int, KeysView[FoundId]]):
    """The buckets of one band, an element of `Cache.bins`: a mapping from key to a set of ids, as in mattilyra/LSH."""

    def __init__(self, cache: Readable, band: int) -> None:
        self._cache = cache
        self._band = band

    def __getitem__(self, key: int) -> KeysView[FoundId]:
        number = index(key) if hasattr(key, "__index__") else -1
        with self._cache._reading() as stored:
            numbers = stored.tables.members(self._band, number).tolist() if 0 <= number < 2**64 else []
            if not numbers:
                raise KeyError(key)
            return dict.fromkeys(stored.ids[number] for number in numbers).keys()

    def __iter__(self) -> Iterator[int]:
        with self._cache._reading() as stored:
            return iter(stored.tables.bins(self._band)[0].tolist())

    def items(self) -> ItemsView[int, KeysView[FoundId]]:
        return _BinItems(self)

    def values(self) -> ValuesView[KeysView[FoundId]]:
        return _BinSets(self)

    def content(self) -> tuple[list[int], Iterator[KeysView[FoundId]]]:
        """Return the keys of all buckets and their sets, as they are at this moment."""
        with self._cache._reading() as stored:
            keys, documents, bounds = stored.tables.bins(self._band)
            return keys.tolist(), BinSets(stored.ids, documents, bounds)

    def __len__(self) -> int:
        with self._cache._reading() as stored:
            return stored.tables.num_bins(self._band)

    def __repr__(self) -> str:
        return f"<{len(self)} buckets of band {self._band}>"


class _BinItems(ItemsView[int, KeysView[FoundId]]):
    """The keys and sets of the buckets of a band, read in one pass."""

    _mapping: BandBins

    def __iter__(self) -> Iterator[tuple[int, KeysView[FoundId]]]:
        return zip(*self._mapping.content())


class _BinSets(ValuesView[KeysView[FoundId]]):
    """The sets of the buckets of a band, read in one pass."""

    _mapping: BandBins

    def __iter__(self) -> Iterator[KeysView[FoundId]]:
        return self._mapping.content()[1]


class FingerprintView(Mapping[FoundId, Array]):
    """The fingerprints of a cache by id."""

    def __init__(self, cache: Readable) -> None:
        self._cache = cache

    def __getitem__(self, doc_id: FoundId) -> Array:
        with self._cache._reading() as stored:
            return _read_only(stored.rows[stored.numbers[doc_id]])

    def __iter__(self) -> Iterator[FoundId]:
        return iter(self._cache)

    def items(self) -> ItemsView[FoundId, Array]:
        return _FingerprintItems(self)

    def values(self) -> ValuesView[Array]:
        return _FingerprintValues(self)

    def content(self) -> Iterator[tuple[FoundId, Array]]:
        """Return the ids and fingerprints as they are at this moment, in order of addition."""
        with self._cache._reading() as stored:
            rows, ids = stored.rows, stored.ids.copy()  # the row of a number never changes
        return ((doc_id, _read_only(rows[number])) for number, doc_id in enumerate(ids) if doc_id is not GONE)

    def __len__(self) -> int:
        return len(self._cache)

    def __repr__(self) -> str:
        return f"<{len(self)} fingerprints>"


class _FingerprintItems(ItemsView[FoundId, Array]):
    """The ids and fingerprints of a cache, as they are when an iteration begins."""

    _mapping: FingerprintView

    def __iter__(self) -> Iterator[tuple[FoundId, Array]]:
        return self._mapping.content()


class _FingerprintValues(ValuesView[Array]):
    """The fingerprints of a cache, as they are when an iteration begins."""

    _mapping: FingerprintView

    def __iter__(self) -> Iterator[Array]:
        return (row for _, row in self._mapping.content())


def _read_only(row: Array) -> Array:
    """Return a copy that is read-only."""
    row = row.copy()
    row.flags.writeable = False
    return row
