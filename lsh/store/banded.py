"""The banded store of a cache: its documents by number, their buckets, and the read-only views of them.

`BandedDocuments` keeps ids, fingerprints and buckets consistent; `BandedStore` locks them, and answers which documents
share a bucket. The buckets are tables of the compiled module `lsh.links.grouping`. `lsh.store.cache` has the rest of
`lsh.Cache`.
"""

from __future__ import annotations

import os
import threading
import weakref
from abc import abstractmethod
from collections.abc import Hashable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from contextlib import contextmanager
from itertools import pairwise
from operator import index, itemgetter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsh.base import checks
from lsh.links.grouping import BucketSets, BucketTables
from lsh.sketch.bands import Bands, equal_bands
from lsh.sketch.hasher import MinHasher, checked_fingerprint, checked_hasher
from lsh.sketch.planning import (
    DEFAULT_RECALL,
    DEFAULT_THRESHOLD,
    Plan,
    check_plan,
    checked_bands,
    plan_for,
    plan_of,
)
from lsh.text.ids import checked_id, pairs_of_ids
from lsh.typing import Array, Fingerprint, FoundId, Text

Key = TypeVar("Key")
Value = TypeVar("Value", covariant=True)
GONE = object()  # in place of the id of a removed document

_caches: weakref.WeakSet[BandedStore] = weakref.WeakSet()


def _renew_locks() -> None:
    """Make new locks in a forked process, where a lock may be held by a thread that does not exist."""
    for cache in list(_caches):
        cache._renew_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


class BandedDocuments:
    """The documents of a cache, numbered in order of addition: their ids, fingerprints and buckets.

    `numbers` and `rows` decide what is stored; everything else can be rebuilt from them. A change takes effect in one
    step, on `numbers`. `needs_repair` is true from before that step until everything else agrees with it. The caller
    holds the lock.
    """

    def __init__(self, hasher: MinHasher, bands: Bands) -> None:
        self.hasher = hasher
        self.bands = bands
        self.tables = BucketTables(bands.num_bands)
        self.rows: Array = np.empty((0, hasher.num_seeds), hasher.dtype)  # by number
        self.ids: list[FoundId] = []  # by number; GONE where the document was removed
        self.numbers: dict[Hashable, int] = {}
        self.needs_repair = False

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
        self.needs_repair = True
        self.numbers.update(update)
        self._forget(replaced)
        self.tables.insert(keys, numbers[binned])
        self.ids += doc_ids
        self.needs_repair = False

    def _reserve(self, documents: int) -> None:
        """Allocate the memory for so many numbers first, so that a change does not fail half way."""
        self.tables.reserve(documents, len(self.numbers) + documents - len(self.ids))
        if documents > len(self.rows):
            grown = np.empty((max(documents, len(self.rows) * 3 // 2, 16), self.hasher.num_seeds), self.hasher.dtype)
            grown[: len(self.ids)] = self.rows[: len(self.ids)]
            self.rows = grown

    def remove(self, doc_id: Hashable) -> None:
        """Remove a stored document."""
        self.needs_repair = True
        number = self.numbers.pop(doc_id)
        self._forget([number])
        self.needs_repair = False

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


class BandedStore:
    """Documents in buckets: what is stored, and which documents share a bucket."""

    def __init__(self, hasher: MinHasher, num_bands: int | None = None, *, bands: Bands | Plan | None = None) -> None:
        self._hasher = checked_hasher(hasher)
        _check_how_to_band(num_bands, bands)
        if bands is None:
            bands = _default_bands(hasher) if num_bands is None else equal_bands(num_bands, hasher.num_seeds)
        elif isinstance(bands, Plan):
            check_plan(bands, hasher, num_seeds=hasher.num_seeds, shingles=hasher.shingles)
        self._plan = bands if isinstance(bands, Plan) else None
        self._bands = checked_bands(bands, hasher.num_seeds)
        self._version = 0  # the number of changes, so that an iteration detects one
        self._stored = BandedDocuments(hasher, self._bands)
        self._renew_lock()

    def _renew_lock(self) -> None:
        """Make a new lock, which no thread holds."""
        self._lock = threading.RLock()
        _caches.add(self)

    def _store(self, ids: list[FoundId], rows: Array) -> None:
        """Replace the store by a new one with these documents, whose ids differ from each other."""
        stored = BandedDocuments(self._hasher, self._bands)
        stored.add(ids, rows)
        self._stored = stored

    @contextmanager
    def _changing(self) -> Iterator[BandedDocuments]:
        """Hold the lock for a change. If it is interrupted (a signal, a fork), the next use of the store repairs it."""
        with self._reading() as stored:
            self._version += 1
            yield stored

    @contextmanager
    def _reading(self) -> Iterator[BandedDocuments]:
        """Hold the lock for reading."""
        with self._lock:
            if self._stored.needs_repair:
                self._pack()
            yield self._stored

    def _pack(self) -> None:
        """Replace the store by a new one without removed documents."""
        self._store(*self._stored.content())

    # ---- what it is ----

    @property
    def hasher(self) -> MinHasher:
        """The hasher that computes the fingerprints."""
        return self._hasher

    @property
    def bands(self) -> Bands:
        """The bands."""
        return self._bands

    @property
    def plan(self) -> Plan:
        """The bands, and the threshold and recall for which they were chosen.

        Of bands that were given without a threshold: the least threshold, in hundredths, at which their recall is 0.99.
        """
        return plan_of(self._bands, self._hasher.num_seeds) if self._plan is None else self._plan

    @property
    def num_bands(self) -> int:
        """The number of bands."""
        return self._bands.num_bands

    @property
    def band_width(self) -> int | tuple[int, ...]:
        """The number of components of a band; a tuple of all widths if they differ."""
        return self._bands.band_width

    @property
    def bins(self) -> tuple[Mapping[int, KeysView[FoundId]], ...]:
        """A read-only view of the buckets: for each band a mapping from key to the set of ids, in order of addition.

        To read all buckets, iterate over ``items()`` or ``values()`` of a band; access by key is several times slower.
        """
        return tuple(BandBins(self, band) for band in range(self.num_bands))

    @property
    def fingerprints(self) -> Mapping[FoundId, Array]:
        """A read-only view of the fingerprints: a mapping from id to fingerprint.

        If other threads may change the cache, make a dict with ``dict(cache.fingerprints.items())``, which reads all
        documents at once. ``dict(cache.fingerprints)`` reads them one by one, and raises a KeyError for a document that
        was removed meanwhile.
        """
        return FingerprintView(self)

    def bins_(self, fingerprint: Text | Fingerprint) -> Iterator[tuple[int, Array]]:
        """Yield the number of each band and its components, of a fingerprint or of that of a text.

        Parameters
        ----------
        fingerprint : text or fingerprint
            The document.

        Yields
        ------
        tuple
            The number of a band, from 0 on, and its components, shape ``(width,)``, `MinHasher.dtype`.

        Raises
        ------
        TypeError, ValueError
            If the argument is neither a text nor a fingerprint with this hasher's shape and dtype.
        """
        row = checked_fingerprint(self._hasher, "fingerprint", fingerprint)
        bounds = self._bands.bounds.tolist()
        yield from enumerate(row[start:stop] for start, stop in pairwise(bounds))

    def __len__(self) -> int:
        with self._reading() as stored:
            return len(stored.numbers)

    def __contains__(self, doc_id: object) -> bool:
        with self._reading() as stored:
            return doc_id in stored.numbers

    def __iter__(self) -> Iterator[FoundId]:
        """Iterate over the ids in order of addition."""
        with self._reading() as stored:
            version, ids = self._version, stored.current_ids()
        for doc_id in ids:
            yield doc_id
            self._check_version(version)

    def _check_version(self, version: int) -> None:
        """Raise an error if the cache has changed since this version."""
        with self._lock:
            if version != self._version:
                raise RuntimeError("the cache was changed while it was iterated over")

    def __repr__(self) -> str:
        return f"<Cache of {len(self)} documents, {self._bands!r}, {self._hasher!r}>"

    # ---- which documents share a bucket ----

    def get_duplicates_of(
        self, doc: Text | None = None, doc_id: Hashable | None = None, min_jaccard: float | None = None
    ) -> set[FoundId]:
        """Find the stored documents that share a bucket with a document.

        Parameters
        ----------
        doc : str, bytes, bytearray or memoryview, optional
            The text. A ``str`` is always a text here; pass an id as `doc_id`.
        doc_id : hashable, optional
            The id of a stored document, to find documents that are similar to it. If the id is unknown, `doc` is used,
            if it is given.
        min_jaccard : float, optional
            Return only documents with this estimated similarity or a higher one, 0 to 1. The estimate of a document of
            just this similarity is lower in about half of the cases, so use a somewhat lower value, or compare the
            texts.

        Returns
        -------
        set
            The ids; with `doc_id`, the id of the document itself is among them.

        Raises
        ------
        TypeError, ValueError
            If a parameter has a wrong type or is out of range, or there is neither a document nor a known id.
        """
        min_similarity = checks.optional_fraction("min_jaccard", min_jaccard)
        with self._reading() as stored:
            row = self._asked(stored, doc, doc_id)
            numbers = stored.find(row)
            if min_similarity is not None:
                numbers = numbers[self._hasher.similarities(row, stored.rows[numbers]) >= min_similarity]
            return {stored.ids[number] for number in numbers.tolist()}

    def _asked(self, stored: BandedDocuments, doc: Text | None, doc_id: Hashable | None) -> Array:
        """Return the fingerprint of a query: that of the stored document if its id is known, else that of the text."""
        if doc is not None:
            checks.text("doc", doc)
        if doc_id is not None and checked_id("doc_id", doc_id) in stored.numbers:
            row: Array = stored.rows[stored.numbers[doc_id]]
            return row
        if doc is not None:
            return self._hasher.fingerprint(doc)
        if doc_id is None:
            raise ValueError("doc or doc_id must be given, got neither")
        raise ValueError(f"no document is stored under the doc_id {doc_id!r}; give doc, or the id of a stored document")

    def is_duplicate(self, doc: Text | None = None, doc_id: Hashable | None = None) -> bool:
        """Tell whether `get_duplicates_of` finds any document.

        A stored document is a duplicate of itself, as in mattilyra/LSH: with its id or its text the answer is True,
        unless it has no shingles. To find other documents that are similar to it, use ``query(id=...)``, which
        leaves it out.

        Parameters
        ----------
        doc : str, bytes, bytearray or memoryview, optional
            The text.
        doc_id : hashable, optional
            The id of a stored document. If the id is unknown, `doc` is used, if it is given.

        Returns
        -------
        bool
            Whether a stored document shares a bucket with the given one.

        Raises
        ------
        TypeError, ValueError
            If a parameter has a wrong type, or there is neither a document nor a known id.
        """
        return bool(self.get_duplicates_of(doc, doc_id))

    def get_all_duplicates(self, min_jaccard: float | None = None) -> set[tuple[FoundId, FoundId]]:
        """Find all pairs of stored documents that share a bucket.

        Parameters
        ----------
        min_jaccard : float, optional
            Return only pairs with this estimated similarity or a higher one, 0 to 1. The estimate of a pair of just
            this similarity is lower in about half of the cases, so use a somewhat lower value, or compare the texts.

        Returns
        -------
        set of tuple
            Pairs of ids, each pair once, the id that was added earlier first.

        Raises
        ------
        TypeError, ValueError
            If `min_jaccard` is no number from 0 to 1.

        Examples
        --------
        >>> import lsh
        >>> cache = lsh.Cache(lsh.MinHasher(100))
        >>> texts = ["A cat sat on the mat.", "A dog ran in the park.", "A cat sat on the mat!"]
        >>> cache.add_docs(texts, ["a", "b", "c"])
        >>> cache.get_all_duplicates()
        {('a', 'c')}
        """
        return set(self.iter_duplicates(min_jaccard))

    def iter_duplicates(self, min_jaccard: float | None = None) -> Iterator[tuple[FoundId, FoundId]]:
        """Yield the pairs of `get_all_duplicates` one by one, without holding all of them in memory.

        Parameters
        ----------
        min_jaccard : float, optional
            As for `get_all_duplicates`.

        Yields
        ------
        tuple
            Two ids, that of the document that was added earlier first.

        Raises
        ------
        RuntimeError
            If the cache is changed before the iteration ends.
        """
        return self._pairs(checks.optional_fraction("min_jaccard", min_jaccard))

    def _pairs(self, min_similarity: float | None) -> Iterator[tuple[FoundId, FoundId]]:
        with self._lock:
            version = self._version
        for band in range(self.num_bands):
            with self._reading() as stored:
                self._check_version(version)
                _, documents, bounds = stored.tables.bins(band)
            shared = np.flatnonzero(np.diff(bounds) > 1)  # buckets of two documents or more
            for start, stop in zip(bounds[shared].tolist(), bounds[shared + 1].tolist()):
                numbers = documents[start:stop]
                with self._reading() as stored:
                    self._check_version(version)
                    rows, ids = stored.rows[numbers], [stored.ids[number] for number in numbers]
                earlier_keys = self._bands.keys(rows)[:band]
                for i in range(len(numbers) - 1):
                    # a pair is yielded in the first band that it shares
                    fresh = ~(earlier_keys[:, i + 1 :] == earlier_keys[:, i, None]).any(axis=0)
                    if min_similarity is not None:
                        fresh &= self._hasher.similarities(rows[i], rows[i + 1 :]) >= min_similarity
                    for j in np.flatnonzero(fresh).tolist():
                        yield ids[i], ids[i + 1 + j]
                        self._check_version(version)

    def filter_candidates(
        self, pairs: Iterable[tuple[FoundId, FoundId]], min_jaccard: float
    ) -> set[tuple[FoundId, FoundId]]:
        """Return the given pairs of stored ids whose estimated similarity is at least `min_jaccard`.

        Parameters
        ----------
        pairs : iterable of tuple
            Pairs of ids of stored documents.
        min_jaccard : float
            Estimated similarity, 0 to 1.

        Returns
        -------
        set of tuple
            Those of the pairs.

        Raises
        ------
        KeyError
            If an id is unknown.
        TypeError
            If an element of `pairs` is not a pair of ids.
        """
        min_similarity = checks.fraction("min_jaccard", min_jaccard, zero=True)
        with self._reading() as stored:
            return {
                (a, b)
                for a, b in pairs_of_ids(pairs)
                if self._hasher.similarities(stored.rows[stored.numbers[a]], stored.rows[stored.numbers[b]])
                >= min_similarity
            }

    # ---- copying ----

    def __getstate__(self) -> dict[str, Any]:
        with self._reading() as stored:
            own = {name: value for name, value in self.__dict__.items() if name not in _OWN_STATE}
            return {"attributes": own, "documents": stored.content()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state["attributes"])
        self._version = 0
        self._store(*state["documents"])
        self._renew_lock()


_OWN_STATE = frozenset({"_lock", "_version", "_stored"})


def _default_bands(hasher: MinHasher) -> Bands | Plan:
    """Return a plan, or bands of one component, which find the most, if there are too few seeds for a plan."""
    if 1 - (1 - DEFAULT_THRESHOLD) ** hasher.num_seeds < DEFAULT_RECALL:
        return Bands(hasher.num_seeds, 1)
    return plan_for(hasher, DEFAULT_THRESHOLD, DEFAULT_RECALL, filtered=False)


def _check_how_to_band(num_bands: object, bands: object) -> None:
    """Raise an error if both are given, or one is given in place of the other."""
    if num_bands is not None and bands is not None:
        raise ValueError("num_bands and bands cannot be combined; give one of them")
    if isinstance(num_bands, (Bands, Plan)):
        got = type(num_bands).__name__
        raise TypeError(f"num_bands must be a whole number, got {got}; pass it by name, as bands=")
    if isinstance(bands, (int, np.integer)) and not isinstance(bands, bool):
        got = type(bands).__name__
        raise TypeError(
            f"bands must be a Bands or a Plan, got {got}; write num_bands={bands}, or bands=lsh.Bands({bands}, width)"
        )


# ---- the views of a cache ----


class _View(Mapping[Key, Value]):
    """A mapping whose items and values are read in one pass, as they are when an iteration begins."""

    def __init__(self, cache: BandedStore) -> None:
        self._cache = cache

    @abstractmethod
    def content(self) -> Iterator[tuple[Key, Value]]:
        """Return the items as they are at this moment."""

    def items(self) -> ItemsView[Key, Value]:
        return _Items(self)

    def values(self) -> ValuesView[Value]:
        return _Values(self)


class _Items(ItemsView[Key, Value]):
    _mapping: _View[Key, Value]

    def __iter__(self) -> Iterator[tuple[Key, Value]]:
        return self._mapping.content()


class _Values(ValuesView[Value]):
    _mapping: _View[Any, Value]

    def __iter__(self) -> Iterator[Value]:
        return map(itemgetter(1), self._mapping.content())


class BandBins(_View[int, KeysView[FoundId]]):
    """The buckets of one band, an element of `Cache.bins`: a mapping from key to a set of ids, as in mattilyra/LSH."""

    def __init__(self, cache: BandedStore, band: int) -> None:
        super().__init__(cache)
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

    def content(self) -> Iterator[tuple[int, KeysView[FoundId]]]:
        """Return the keys of all buckets and their sets, as they are at this moment."""
        with self._cache._reading() as stored:
            keys, documents, bounds = stored.tables.bins(self._band)
            return zip(keys.tolist(), BucketSets(stored.ids, documents, bounds))

    def __len__(self) -> int:
        with self._cache._reading() as stored:
            return stored.tables.num_bins(self._band)

    def __repr__(self) -> str:
        return f"<{len(self)} buckets of band {self._band}>"


class FingerprintView(_View[FoundId, Array]):
    """The fingerprints of a cache by id."""

    def __getitem__(self, doc_id: FoundId) -> Array:
        with self._cache._reading() as stored:
            return _read_only(stored.rows[stored.numbers[doc_id]])

    def __iter__(self) -> Iterator[FoundId]:
        return iter(self._cache)

    def content(self) -> Iterator[tuple[FoundId, Array]]:
        """Return the ids and fingerprints as they are at this moment, in order of addition."""
        with self._cache._reading() as stored:
            rows, ids = stored.rows, stored.ids.copy()  # the row of a number never changes
        return ((doc_id, _read_only(rows[number])) for number, doc_id in enumerate(ids) if doc_id is not GONE)

    def __len__(self) -> int:
        return len(self._cache)

    def __repr__(self) -> str:
        return f"<{len(self)} fingerprints>"


def _read_only(row: Array) -> Array:
    """Return a copy that is read-only."""
    row = row.copy()
    row.flags.writeable = False
    return row
