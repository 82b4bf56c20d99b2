"""The banded cache: documents kept in bins, so that the similar ones are found without comparing all.

`Cache` says what the operations mean: which documents a query finds, what an id is, what replaces what. The bins
themselves are tables on the floor below.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Iterator, KeysView, Mapping
from itertools import pairwise
from operator import index
from typing import Any

import numpy as np

from lsh import checks
from lsh._grouping import BinTables
from lsh.bands import Bands, checked_bands, equal_bands
from lsh.minhash import MinHasher

__all__ = ["Cache"]

SPARE = 1024  # removed documents a cache may carry before it is packed anew, besides as many as it holds

Array = np.ndarray[Any, Any]
_GONE = object()


class Cache:
    """Documents in bins by the bands of their fingerprints. Safe to share between threads: every method locks.

    Parameters
    ----------
    hasher : MinHasher
        Makes the fingerprints.
    num_bands : int, optional
        Bands of equal width; must divide the number of seeds. Default 10, where `bands` is not given.
    bands : Bands, optional
        Bands of any widths that fit.

    Raises
    ------
    BandError
        If the bands do not suit the number of seeds; it is a ValueError (and an AssertionError).

    Notes
    -----
    A document's id is any hashable; adding an id again replaces the document, which then counts as added last. A text
    without shingles is stored, but it is in no bin: it is never found and finds nothing.

    Examples
    --------
    >>> import lsh
    >>> cache = lsh.Cache(lsh.MinHasher(seeds=100, char_ngram=4), num_bands=20)
    >>> cache.add_doc("The quick brown fox jumps over the lazy dog, and runs away.", "a")
    >>> cache.add_doc("The quick brown fox jumps over the lazy cat, and runs away.", "b")
    >>> cache.get_all_duplicates()
    {('a', 'b')}
    >>> cache.is_duplicate("A quick brown fox jumps over the lazy dog, and runs away.")
    True
    """

    def __init__(self, hasher: MinHasher, num_bands: int | None = None, *, bands: Bands | None = None) -> None:
        if not isinstance(hasher, MinHasher):
            raise TypeError(f"hasher must be a MinHasher, got {type(hasher).__name__}")
        if bands is None:
            bands = equal_bands(10 if num_bands is None else num_bands, hasher.num_seeds)
        elif num_bands is not None:
            raise ValueError("num_bands and bands both say how to band; give one of them")
        self._hasher = hasher
        self._bands = checked_bands(bands, hasher.num_seeds)
        self._lock = threading.RLock()
        self._version = 0  # counts the changes, so that an iteration notices one
        self._reset()

    def _reset(self) -> None:
        """Hold nothing."""
        self._tables = BinTables(self._bands.num_bands)
        self._rows = np.empty((0, self._hasher.num_seeds), self._hasher.dtype)  # a fingerprint a number
        self._ids: list[Any] = []  # an id a number, in order of addition; _GONE where it was removed
        self._numbers: dict[Hashable, int] = {}
        self._unbinned: dict[Hashable, None] = {}  # ids of texts without shingles

    # ---- what it is ----

    @property
    def hasher(self) -> MinHasher:
        """The hasher that makes the fingerprints."""
        return self._hasher

    @property
    def bands(self) -> Bands:
        """The bands."""
        return self._bands

    @property
    def num_bands(self) -> int:
        """The number of bands."""
        return self._bands.num_bands

    @property
    def band_width(self) -> int | tuple[int, ...]:
        """The width of a band; all widths where they differ."""
        return self._bands.band_width

    @property
    def bins(self) -> tuple[Mapping[int, KeysView[Any]], ...]:
        """A read-only view of the bins: for each band a mapping from key to the set of ids, in order of addition."""
        return tuple(_Bins(self, band) for band in range(self.num_bands))

    @property
    def fingerprints(self) -> Mapping[Any, Array]:
        """A read-only view of the fingerprints: a mapping from id to fingerprint."""
        return _Fingerprints(self)

    def bins_(self, fingerprint: Any) -> Iterator[tuple[int, Array]]:
        """Yield the number of each band and the components of the fingerprint that it covers."""
        row = self._hasher.as_fingerprint("fingerprint", fingerprint)
        bounds = self._bands.bounds.tolist()
        yield from enumerate(row[start:stop] for start, stop in pairwise(bounds))

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self._numbers

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the ids in order of addition."""
        version = self._version
        for doc_id in self._numbers:
            yield doc_id
            self._check_version(version)

    def _check_version(self, version: int) -> None:
        if version != self._version:
            raise RuntimeError("the cache was changed while it was iterated over")

    def __repr__(self) -> str:
        return f"<Cache of {len(self)} documents, {self._bands!r}, {self._hasher!r}>"

    # ---- adding and removing ----

    def add_doc(self, doc: Any, doc_id: Hashable) -> None:
        """Add a document under an id; one that is stored under it is replaced.

        Parameters
        ----------
        doc : str, bytes, bytearray or memoryview
            The text.
        doc_id : hashable
            Its id.
        """
        row = self._hasher.fingerprint(checks.text("doc", doc))
        self._add(row[None], [doc_id])

    def add_fingerprint(self, fingerprint: Any, doc_id: Hashable) -> None:
        """Add a document by its fingerprint; see `add_doc`."""
        row = self._hasher.as_fingerprint("fingerprint", _not_a_text("fingerprint", fingerprint))
        self._add(row[None], [doc_id])

    def add_docs(self, docs: Iterable[Any], doc_ids: Iterable[Hashable]) -> None:
        """Add many documents at once: all of them, or none if one is bad.

        Parameters
        ----------
        docs : iterable of str or bytes
            The texts.
        doc_ids : iterable of hashable
            As many ids; of a repeated one the last document stays.
        """
        self._add(self._hasher.fingerprints(docs), list(doc_ids))

    def add_fingerprints(self, fingerprints: Any, doc_ids: Iterable[Hashable]) -> None:
        """Add many documents by their fingerprints, shape ``(n, num_seeds)``; see `add_docs`."""
        rows = np.asarray(fingerprints)
        if rows.size or rows.ndim == 2:
            rows = self._hasher.as_fingerprints("fingerprints", fingerprints)
        else:
            rows = self._hasher.fingerprints([])
        self._add(rows, list(doc_ids))

    def _add(self, rows: Array, doc_ids: list[Hashable]) -> None:
        """Add fingerprints (n, k) under n ids, replacing what is there."""
        if len(rows) != len(doc_ids):
            raise ValueError(f"documents and ids must be as many, got {len(rows)} documents and {len(doc_ids)} ids")
        last = {doc_id: i for i, doc_id in enumerate(doc_ids)}  # a TypeError here if an id is not hashable
        if len(last) < len(doc_ids):
            chosen = sorted(last.values())
            rows, doc_ids = rows[chosen], [doc_ids[i] for i in chosen]
        empty = self._hasher.is_empty(rows)
        keys = self._bands.keys(rows[~empty])
        with self._lock:
            self._reserve(len(self._ids) + len(rows))
            for doc_id in doc_ids:
                if doc_id in self._numbers:
                    self._remove(doc_id)
            first = len(self._ids)
            numbers = np.arange(first, first + len(rows), dtype=np.uint32)
            self._rows[first : first + len(rows)] = rows
            self._tables.insert(keys, numbers[~empty])
            self._ids += doc_ids
            self._numbers.update(zip(doc_ids, range(first, first + len(rows))))
            self._unbinned.update((doc_ids[i], None) for i in np.flatnonzero(empty))
            self._version += 1
            self._pack()

    def _reserve(self, documents: int) -> None:
        """Make room, so that what follows does not fail half way."""
        self._tables.reserve(documents, len(self._numbers) + documents - len(self._ids))
        if documents > len(self._rows):
            grown = np.empty((max(documents, len(self._rows) * 3 // 2, 16), self._hasher.num_seeds), self._hasher.dtype)
            grown[: len(self._ids)] = self._rows[: len(self._ids)]
            self._rows = grown

    def _remove(self, doc_id: Hashable) -> None:
        """Remove a stored document; the caller holds the lock."""
        number = self._numbers.pop(doc_id)
        self._ids[number] = _GONE
        self._version += 1
        if doc_id in self._unbinned:
            del self._unbinned[doc_id]
        else:
            keys = self._bands.keys(self._rows[number : number + 1])
            self._tables.remove(keys, np.array([number], np.uint32))

    def _pack(self) -> None:
        """Give the documents new numbers without gaps once more than half of the numbers are gaps."""
        if len(self._ids) <= 2 * len(self._numbers) + SPARE:
            return
        ids = list(self._numbers)
        rows = self._rows[list(self._numbers.values())]
        self._reset()
        self._add(rows, ids)

    def remove_id(self, doc_id: Hashable) -> None:
        """Remove the document with this id.

        Raises
        ------
        KeyError
            If there is none.
        """
        with self._lock:
            if doc_id not in self._numbers:
                raise KeyError(doc_id)
            self._remove(doc_id)
            self._pack()

    def remove_doc(self, doc: Any) -> None:
        """Remove every document that has the fingerprint of this text; none is no error."""
        row = self._hasher.fingerprint(checks.text("doc", doc))
        with self._lock:
            found = list(self._unbinned) if self._hasher.is_empty(row) else self._same_fingerprint(row)
            for doc_id in found:
                self._remove(doc_id)
            self._pack()

    def _same_fingerprint(self, row: Array) -> list[Any]:
        key = int(self._bands.keys(row[None])[0, 0])
        numbers = self._tables.members(0, key)
        return [self._ids[number] for number in numbers[(self._rows[numbers] == row).all(axis=1)]]

    def clear(self) -> None:
        """Remove every document."""
        with self._lock:
            self._reset()
            self._version += 1

    # ---- asking ----

    def get_duplicates_of(
        self, doc: Any = None, doc_id: Hashable | None = None, min_jaccard: float | None = None
    ) -> set[Any]:
        """Find the stored documents that share a bin with a document.

        Parameters
        ----------
        doc : str, bytes, bytearray or memoryview, optional
            The text.
        doc_id : hashable, optional
            The id of a stored document, which then is the one asked about; an unknown one is passed over if `doc` is
            given.
        min_jaccard : float, optional
            Leave out documents whose estimated similarity is less, 0 to 1.

        Returns
        -------
        set
            Ids; a stored document finds itself.

        Raises
        ------
        ValueError
            If there is neither a document nor a known id.
        """
        least = _min_jaccard(min_jaccard)
        with self._lock:
            if doc_id is not None and doc_id in self._numbers:
                row = self._rows[self._numbers[doc_id]]
            elif doc is not None:
                row = self._hasher.fingerprint(checks.text("doc", doc))
            else:
                got = "neither" if doc_id is None else f"the unknown id {doc_id!r}"
                raise ValueError(f"give a document or the id of a stored one, got {got}")
            return {self._ids[number] for number in self._find(row, least)}

    def _find(self, row: Array, least: float | None) -> Array:
        """Return the numbers of the documents that share a bin with a fingerprint, ascending."""
        if self._hasher.is_empty(row):
            return np.empty(0, np.uint32)
        keys = self._bands.keys(row[None])[:, 0].tolist()
        numbers = np.unique(np.concatenate([self._tables.members(band, key) for band, key in enumerate(keys)]))
        if least is not None:
            numbers = numbers[self._hasher.similarities(row, self._rows[numbers]) >= least]
        return numbers

    def is_duplicate(self, doc: Any, doc_id: Hashable | None = None) -> bool:
        """Tell whether `get_duplicates_of` finds anything."""
        return bool(self.get_duplicates_of(doc, doc_id))

    def get_all_duplicates(self, min_jaccard: float | None = None) -> set[tuple[Any, Any]]:
        """Find all pairs of stored documents that share a bin.

        Parameters
        ----------
        min_jaccard : float, optional
            Leave out pairs whose estimated similarity is less, 0 to 1.

        Returns
        -------
        set of tuple
            Pairs of ids, each once, the one added earlier first.
        """
        return set(self.iter_duplicates(min_jaccard))

    def iter_duplicates(self, min_jaccard: float | None = None) -> Iterator[tuple[Any, Any]]:
        """Yield what `get_all_duplicates` returns, one pair after the other, without holding them all.

        Raises
        ------
        RuntimeError
            If the cache is changed before the iteration ends.
        """
        return self._pairs(_min_jaccard(min_jaccard))

    def _pairs(self, least: float | None) -> Iterator[tuple[Any, Any]]:
        version = self._version
        for band in range(self.num_bands):
            with self._lock:
                self._check_version(version)
                keys = self._tables.bins(band)[0].tolist()
            for key in keys:
                with self._lock:
                    self._check_version(version)
                    numbers = self._tables.members(band, key)
                    if len(numbers) < 2:
                        continue
                    rows, ids = self._rows[numbers], [self._ids[number] for number in numbers]
                earlier_keys = self._bands.keys(rows)[:band]
                for i in range(len(numbers) - 1):
                    # a pair is yielded in the first band that it shares
                    fresh = ~(earlier_keys[:, i + 1 :] == earlier_keys[:, i, None]).any(axis=0)
                    if least is not None:
                        fresh &= self._hasher.similarities(rows[i], rows[i + 1 :]) >= least
                    for j in np.flatnonzero(fresh).tolist():
                        yield ids[i], ids[i + 1 + j]
                        self._check_version(version)

    def filter_candidates(self, pairs: Iterable[tuple[Any, Any]], min_jaccard: float) -> set[tuple[Any, Any]]:
        """Return those pairs of stored ids whose estimated similarity is at least `min_jaccard`.

        Raises
        ------
        KeyError
            If an id is unknown.
        """
        least = checks.fraction("min_jaccard", min_jaccard, zero=True)
        with self._lock:
            return {
                (a, b)
                for a, b in pairs
                if self._hasher.similarities(self._rows[self._numbers[a]], self._rows[self._numbers[b]]) >= least
            }

    # ---- copying ----

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            rows = self._rows[list(self._numbers.values())]
            state = {name: value for name, value in self.__dict__.items() if name not in _OWN_STATE}
            return {**state, "_hasher": self._hasher, "_bands": self._bands, "ids": list(self._numbers), "rows": rows}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        ids, rows = state.pop("ids"), state.pop("rows")
        self.__dict__.update(state)
        self._lock = threading.RLock()
        self._version = 0
        self._reset()
        self._add(rows, ids)


_OWN_STATE = frozenset({"_lock", "_version", "_tables", "_rows", "_ids", "_numbers", "_unbinned"})


class _Bins(Mapping[int, KeysView[Any]]):
    """The bins of one band, as upstream shapes them: key to a set of ids."""

    def __init__(self, cache: Cache, band: int) -> None:
        self._cache = cache
        self._band = band

    def __getitem__(self, key: int) -> KeysView[Any]:
        with self._cache._lock:
            number = index(key) if hasattr(key, "__index__") else -1
            known = 0 <= number < 2**64
            numbers = self._cache._tables.members(self._band, number) if known else ()
            if not len(numbers):
                raise KeyError(key)
            return dict.fromkeys(self._cache._ids[number] for number in numbers).keys()

    def __iter__(self) -> Iterator[int]:
        with self._cache._lock:
            return iter(self._cache._tables.bins(self._band)[0].tolist())

    def __len__(self) -> int:
        with self._cache._lock:
            return self._cache._tables.num_bins(self._band)

    def __repr__(self) -> str:
        return f"<{len(self)} bins of band {self._band}>"


class _Fingerprints(Mapping[Any, Array]):
    """The fingerprints of a cache by id."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def __getitem__(self, doc_id: Any) -> Array:
        with self._cache._lock:
            row: Array = self._cache._rows[self._cache._numbers[doc_id]].copy()
        row.flags.writeable = False
        return row

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cache)

    def __len__(self) -> int:
        return len(self._cache)

    def __repr__(self) -> str:
        return f"<{len(self)} fingerprints>"


def _not_a_text(name: str, value: Any) -> Any:
    if isinstance(value, checks.TEXT_TYPES):
        raise TypeError(f"{name} must be a fingerprint, got {type(value).__name__}; use add_doc for a text")
    return value


def _min_jaccard(value: Any) -> float | None:
    return None if value is None else checks.fraction("min_jaccard", value, zero=True)
