"""The banded cache: documents kept in bins, so that the similar ones are found without comparing all.

`Cache` says what the operations mean: which documents a query finds, what an id is, what replaces what. The bins
themselves are tables of a compiled module, `lsh._grouping`.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Hashable, Iterable, Iterator, KeysView, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from lsh import _checks
from lsh._cache_store import BandBins, DocId, FingerprintView, StoredDocuments
from lsh._fingerprints import CONFIDENCE, Array, Fingerprint, Fingerprints, many_fingerprints, wilson_interval
from lsh._ids import checked_id, in_order, listed_ids, new_id, pairs_of_ids
from lsh._texts import Missing, Text, Texts
from lsh.bands import Bands, equal_bands
from lsh.minhash import MinHasher, checked_fingerprint
from lsh.planning import DEFAULT_RECALL, Plan, check_plan, checked_bands, plan_for

__all__ = ["Cache", "Match"]

DEFAULT_THRESHOLD = 0.8  # for which bands are planned where nothing else is asked for
SPARE = 1024  # removed documents a cache may carry before it is packed anew, besides as many as it holds

_caches: weakref.WeakSet[Cache] = weakref.WeakSet()


def _renew_locks() -> None:
    """In a process that was forked: a lock may be held by a thread that is not there."""
    for cache in list(_caches):
        cache._renew_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


class Match(NamedTuple):
    """A stored document that `Cache.query` found.

    Attributes
    ----------
    id : hashable
        The id of the document.
    similarity : float
        The estimated Jaccard similarity.
    interval : tuple of float
        Wilson's interval of 95 % for it.
    """

    id: DocId
    similarity: float
    interval: tuple[float, float]


class Cache:
    """Documents in bins by the bands of their fingerprints.

    Parameters
    ----------
    hasher : MinHasher
        Makes the fingerprints.
    num_bands : int, optional
        Bands of equal width; must divide the number of seeds.
    bands : Bands or Plan, optional
        Bands of any widths that fit, or those of a plan. Default, where `num_bands` is not given either: those of
        `plan`; of one component each for 1 or 2 seeds, which are too few for a plan.

    Raises
    ------
    BandError
        If the bands do not suit the number of seeds; it is a ValueError (and an AssertionError).

    Notes
    -----
    A document's id is any hashable but ``None``, which as a `doc_id` says that no id is given, here as in
    mattilyra/LSH; such a document could be stored but not asked about. Adding an id again replaces the document, which
    then counts as added last. A text without shingles is stored, but it is in no bin: it is never found and finds
    nothing.

    A cache is safe to share between threads. Every method, operator and view takes one lock while it looks at the
    documents or changes them, so each call sees all of another call's change or none of it. Two calls in a row are two
    steps, between which another thread may change the cache. ``iter(cache)`` and `iter_duplicates` take the lock for
    each step, and raise a RuntimeError once the cache has changed; a pass over a band of `bins`, or over ``items()``
    or ``values()`` of `fingerprints`, shows the moment at which it began. What never changes is read without the lock:
    `hasher`, `bands`, `num_bands`, `band_width`, `bins_`.

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
    >>> [(match.id, match.similarity) for match in cache.query(doc_id="a")]
    [('b', 0.72)]
    """

    def __init__(self, hasher: MinHasher, num_bands: int | None = None, *, bands: Bands | Plan | None = None) -> None:
        self._hasher = _checks.instance("hasher", hasher, MinHasher, "a MinHasher")
        _check_how_to_band(num_bands, bands)
        if bands is None:
            bands = _default_bands(hasher) if num_bands is None else equal_bands(num_bands, hasher.num_seeds)
        elif isinstance(bands, Plan):
            check_plan(bands, hasher, shingles=hasher.shingles)
        self._bands = checked_bands(bands, hasher.num_seeds)
        self._version = 0  # counts the changes, so that an iteration notices one
        self._stored = StoredDocuments(hasher, self._bands)
        self._renew_lock()

    @classmethod
    def plan(cls, hasher: MinHasher, threshold: float = DEFAULT_THRESHOLD, recall: float = DEFAULT_RECALL) -> Cache:
        """Make a cache whose bins find similar documents with a given probability.

        Parameters
        ----------
        hasher : MinHasher
            Makes the fingerprints.
        threshold : float, optional
            Jaccard similarity of the documents that are wanted, more than 0 and at most 1.
        recall : float, optional
            Least probability that a document of just that similarity shares a bin, more than 0 and less than 1.

        Returns
        -------
        Cache
            Empty, with the cheapest bands for it; see `plan` of the package, of which this is the banding alone.

        Raises
        ------
        TypeError, ValueError
            If a parameter is bad, or no bands of so many components keep the promise.

        Examples
        --------
        >>> import lsh
        >>> cache = lsh.Cache.plan(lsh.MinHasher(seeds=128, char_ngram=5), threshold=0.8, recall=0.95)
        >>> cache.num_bands, round(cache.bands.probability(0.8), 3)
        (16, 0.952)
        """
        _checks.instance("hasher", hasher, MinHasher, "a MinHasher")
        return cls(hasher=hasher, bands=plan_for(hasher, threshold, recall, filtered=False))

    def _renew_lock(self) -> None:
        """Make a lock of this process that no thread holds."""
        self._lock = threading.RLock()
        _caches.add(self)

    def _store(self, ids: list[DocId], rows: Array) -> None:
        """Put documents with these ids, all different, into a new store, which takes the place of the old one."""
        stored = StoredDocuments(self._hasher, self._bands)
        stored.add(ids, rows)
        self._stored = stored

    @contextmanager
    def _changing(self) -> Iterator[StoredDocuments]:
        """Hold the lock for a change. One that was broken off (an interrupt, a fork) is mended by the next."""
        with self._reading() as stored:
            self._version += 1
            yield stored

    @contextmanager
    def _reading(self) -> Iterator[StoredDocuments]:
        """Hold the lock for a look."""
        with self._lock:
            if self._stored.torn:
                self._pack()
            yield self._stored

    def _pack(self) -> None:
        """Put the documents into a new store without gaps."""
        self._store(*self._stored.content())

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
    def bins(self) -> tuple[Mapping[int, KeysView[DocId]], ...]:
        """A read-only view of the bins: for each band a mapping from key to the set of ids, in order of addition.

        To walk all bins, use ``items()`` or ``values()`` of a band; a look-up by key costs several times as much.
        """
        return tuple(BandBins(self, band) for band in range(self.num_bands))

    @property
    def fingerprints(self) -> Mapping[DocId, Array]:
        """A read-only view of the fingerprints: a mapping from id to fingerprint.

        For a dict of them while other threads change the cache, write ``dict(cache.fingerprints.items())``, which is of
        one moment; ``dict(cache.fingerprints)`` looks up one id after the other, and raises a KeyError for one that has
        been removed.
        """
        return FingerprintView(self)

    def bins_(self, fingerprint: Text | Fingerprint) -> Iterator[tuple[int, Array]]:
        """Yield the number of each band and the components of the fingerprint that it covers."""
        row = checked_fingerprint(self._hasher, "fingerprint", fingerprint)
        bounds = self._bands.bounds.tolist()
        yield from enumerate(row[start:stop] for start, stop in pairwise(bounds))

    def __len__(self) -> int:
        with self._reading() as stored:
            return len(stored.numbers)

    def __contains__(self, doc_id: object) -> bool:
        with self._reading() as stored:
            return doc_id in stored.numbers

    def __iter__(self) -> Iterator[DocId]:
        """Iterate over the ids in order of addition."""
        with self._reading() as stored:
            version, ids = self._version, stored.current_ids()
        for doc_id in ids:
            yield doc_id
            self._check_version(version)

    def _check_version(self, version: int) -> None:
        """Raise an error if the cache was changed since it had this version."""
        with self._lock:
            if version != self._version:
                raise RuntimeError("the cache was changed while it was iterated over")

    def __repr__(self) -> str:
        return f"<Cache of {len(self)} documents, {self._bands!r}, {self._hasher!r}>"

    # ---- adding and removing ----

    def add_doc(self, doc: Text, doc_id: Hashable) -> None:
        """Add a document under an id; one that is stored under it is replaced.

        Parameters
        ----------
        doc : str, bytes, bytearray or memoryview
            The text.
        doc_id : hashable
            Its id; not ``None``.

        Raises
        ------
        TypeError
            If the text is none, or the id is ``None`` or not hashable.
        """
        row = self._hasher.fingerprint(_checks.text("doc", doc))
        self._add(row[None], [new_id("doc_id", doc_id)])

    def add_fingerprint(self, fingerprint: Fingerprint, doc_id: Hashable) -> None:
        """Add a document by its fingerprint, an array or a sequence in order; see `add_doc`."""
        if isinstance(fingerprint, _checks.TEXT_TYPES):
            got = type(fingerprint).__name__
            raise TypeError(f"fingerprint must be a fingerprint, got {got}; use add_doc for a text")
        self._add(checked_fingerprint(self._hasher, "fingerprint", fingerprint)[None], [new_id("doc_id", doc_id)])

    def add_docs(self, docs: Texts, doc_ids: Iterable[Hashable], *, missing: Missing = "error") -> None:
        """Add many documents at once: all of them, or none if one is bad.

        Parameters
        ----------
        docs : iterable of str or bytes, numpy array, or Arrow column
            The texts, as for `MinHasher.fingerprints`.
        doc_ids : iterable of hashable
            As many ids, in the order of the texts, none of them ``None``; of a repeated one the last document stays.
        missing : {"error", "empty"}, optional
            Whether ``None`` or a null is a ValueError, or counts as an empty text.

        Raises
        ------
        TypeError, ValueError
            If a text or an id is bad, or there are not as many ids as texts.
        """
        ids = in_order(doc_ids)
        rows = self._hasher.fingerprints(docs, missing=missing)
        self._add(rows, listed_ids(ids, doc_ids, len(rows)))

    def add_fingerprints(self, fingerprints: Fingerprints, doc_ids: Iterable[Hashable]) -> None:
        """Add many documents by their fingerprints, shape ``(n, num_seeds)``; see `add_docs`."""
        ids = in_order(doc_ids)
        rows = many_fingerprints("fingerprints", fingerprints, self._hasher.num_seeds, self._hasher.dtype)
        self._add(rows, listed_ids(ids, doc_ids, len(rows)))

    def _add(self, rows: Array, doc_ids: list[Hashable]) -> None:
        """Add fingerprints (n, k) under n ids, replacing what is there."""
        last = {doc_id: i for i, doc_id in enumerate(doc_ids)}
        if len(last) < len(doc_ids):
            chosen = sorted(last.values())
            rows, doc_ids = rows[chosen], [doc_ids[i] for i in chosen]
        with self._changing() as stored:
            stored.add(doc_ids, rows)
            self._pack_if_sparse()

    def _pack_if_sparse(self) -> None:
        """Pack once more than half of the numbers are those of removed documents."""
        if len(self._stored.ids) > 2 * len(self._stored.numbers) + SPARE:
            self._pack()

    def remove_id(self, doc_id: Hashable) -> None:
        """Remove the document with this id.

        Raises
        ------
        KeyError
            If there is none.
        """
        checked_id("doc_id", doc_id)
        with self._changing() as stored:
            if doc_id not in stored.numbers:
                raise KeyError(doc_id)
            stored.remove(doc_id)
            self._pack_if_sparse()

    def remove_doc(self, doc: Text) -> None:
        """Remove every document that has the fingerprint of this text; none is no error."""
        row = self._hasher.fingerprint(_checks.text("doc", doc))
        with self._changing() as stored:
            for doc_id in stored.same_fingerprint(row):
                stored.remove(doc_id)
            self._pack_if_sparse()

    def clear(self) -> None:
        """Remove every document."""
        empty = StoredDocuments(self._hasher, self._bands)
        with self._changing():
            self._stored = empty

    # ---- asking ----

    def query(
        self,
        doc: Text | None = None,
        *,
        doc_id: Hashable | None = None,
        top: int | None = None,
        min_similarity: float | None = None,
    ) -> list[Match]:
        """Find the stored documents that share a bin with a document, the most similar ones first.

        Parameters
        ----------
        doc : str, bytes, bytearray or memoryview, optional
            The text. An id is not looked up here: a str is taken as a text, which then finds nothing. Give ids as
            `doc_id`.
        doc_id : hashable, optional
            The id of a stored document, which then is the one asked about, and is not among the matches; an unknown one
            is passed over if `doc` is given.
        top : int, optional
            At most so many matches, 1 or more. Default: all.
        min_similarity : float, optional
            Leave out documents whose estimated similarity is less, 0 to 1. Of those that are just so similar the
            estimate leaves out half: ask for somewhat less, or compare the texts.

        Returns
        -------
        list of Match
            ``(id, similarity, interval)``, by descending similarity; equally similar ones in order of addition.

        Raises
        ------
        TypeError, ValueError
            If a parameter is of a wrong type or out of its range, or there is neither a document nor a known id.

        Examples
        --------
        >>> import lsh
        >>> cache = lsh.Cache(lsh.MinHasher(seeds=100, char_ngram=4))
        >>> cache.add_docs(["The quick brown fox jumps.", "A quick brown fox jumps.", "A slow red hen."], "abc")
        >>> for match in cache.query("The quick brown fox jumps!"):
        ...     print(match.id, match.similarity, [round(bound, 2) for bound in match.interval])
        a 0.92 [0.85, 0.96]
        b 0.73 [0.64, 0.81]
        """
        most = None if top is None else _checks.whole_number("top", top, 1)
        least = _checks.optional_fraction("min_similarity", min_similarity)
        with self._reading() as stored:
            row, own = self._asked(stored, doc, doc_id)
            numbers = stored.find(row)
            if own is not None:
                numbers = numbers[numbers != own]
            estimates = self._hasher.similarities(row, stored.rows[numbers])
            best = np.argsort(-estimates, kind="stable")  # numbers ascend in order of addition
            if least is not None:
                best = best[estimates[best] >= least]
            best = best[:most]
            ids = [stored.ids[number] for number in numbers[best].tolist()]
        k, similarities = self._hasher.num_seeds, estimates[best].tolist()
        intervals = {similarity: wilson_interval(similarity, k, CONFIDENCE) for similarity in set(similarities)}
        return [Match(doc_id, similarity, intervals[similarity]) for doc_id, similarity in zip(ids, similarities)]

    def get_duplicates_of(
        self, doc: Text | None = None, doc_id: Hashable | None = None, min_jaccard: float | None = None
    ) -> set[DocId]:
        """Find the stored documents that share a bin with a document.

        Parameters
        ----------
        doc : str, bytes, bytearray or memoryview, optional
            The text. An id is not looked up here: a str is taken as a text, which then finds nothing. Give ids as
            `doc_id`.
        doc_id : hashable, optional
            The id of a stored document, which then is the one asked about; an unknown one is passed over if `doc` is
            given.
        min_jaccard : float, optional
            Leave out documents whose estimated similarity is less, 0 to 1. Of those that are just so similar the
            estimate leaves out half: ask for somewhat less, or compare the texts.

        Returns
        -------
        set
            Ids; a stored document finds itself.

        Raises
        ------
        TypeError, ValueError
            If a parameter is of a wrong type or out of its range, or there is neither a document nor a known id.
        """
        least = _checks.optional_fraction("min_jaccard", min_jaccard)
        with self._reading() as stored:
            row, _ = self._asked(stored, doc, doc_id)
            numbers = stored.find(row)
            if least is not None:
                numbers = numbers[self._hasher.similarities(row, stored.rows[numbers]) >= least]
            return {stored.ids[number] for number in numbers.tolist()}

    def _asked(self, stored: StoredDocuments, doc: Text | None, doc_id: Hashable | None) -> tuple[Array, int | None]:
        """Return the fingerprint that is asked about, and the number of its document if it is a stored one."""
        if doc is not None:
            _checks.text("doc", doc)
        if doc_id is not None and checked_id("doc_id", doc_id) in stored.numbers:
            number = stored.numbers[doc_id]
            return stored.rows[number], number
        if doc is not None:
            return self._hasher.fingerprint(doc), None
        got = "neither" if doc_id is None else f"the unknown id {doc_id!r}"
        raise ValueError(f"give a document or the id of a stored one, got {got}")

    def is_duplicate(self, doc: Text | None, doc_id: Hashable | None = None) -> bool:
        """Tell whether `get_duplicates_of` finds anything."""
        return bool(self.get_duplicates_of(doc, doc_id))

    def get_all_duplicates(self, min_jaccard: float | None = None) -> set[tuple[DocId, DocId]]:
        """Find all pairs of stored documents that share a bin.

        Parameters
        ----------
        min_jaccard : float, optional
            Leave out pairs whose estimated similarity is less, 0 to 1. Of those that are just so similar the estimate
            leaves out half: ask for somewhat less, or compare the texts.

        Returns
        -------
        set of tuple
            Pairs of ids, each once, the one added earlier first.
        """
        return set(self.iter_duplicates(min_jaccard))

    def iter_duplicates(self, min_jaccard: float | None = None) -> Iterator[tuple[DocId, DocId]]:
        """Yield what `get_all_duplicates` returns, one pair after the other, without holding them all.

        Raises
        ------
        RuntimeError
            If the cache is changed before the iteration ends.
        """
        return self._pairs(_checks.optional_fraction("min_jaccard", min_jaccard))

    def _pairs(self, least: float | None) -> Iterator[tuple[DocId, DocId]]:
        with self._lock:
            version = self._version
        for band in range(self.num_bands):
            with self._reading() as stored:
                self._check_version(version)
                _, documents, bounds = stored.tables.bins(band)
            shared = np.flatnonzero(np.diff(bounds) > 1)  # bins of two documents or more
            for start, stop in zip(bounds[shared].tolist(), bounds[shared + 1].tolist()):
                numbers = documents[start:stop]
                with self._reading() as stored:
                    self._check_version(version)
                    rows, ids = stored.rows[numbers], [stored.ids[number] for number in numbers]
                earlier_keys = self._bands.keys(rows)[:band]
                for i in range(len(numbers) - 1):
                    # a pair is yielded in the first band that it shares
                    fresh = ~(earlier_keys[:, i + 1 :] == earlier_keys[:, i, None]).any(axis=0)
                    if least is not None:
                        fresh &= self._hasher.similarities(rows[i], rows[i + 1 :]) >= least
                    for j in np.flatnonzero(fresh).tolist():
                        yield ids[i], ids[i + 1 + j]
                        self._check_version(version)

    def filter_candidates(self, pairs: Iterable[tuple[DocId, DocId]], min_jaccard: float) -> set[tuple[DocId, DocId]]:
        """Return those pairs of stored ids whose estimated similarity is at least `min_jaccard`.

        Raises
        ------
        KeyError
            If an id is unknown.
        TypeError
            If `pairs` holds something that is not a pair of ids.
        """
        least = _checks.fraction("min_jaccard", min_jaccard, zero=True)
        with self._reading() as stored:
            return {
                (a, b)
                for a, b in pairs_of_ids(pairs)
                if self._hasher.similarities(stored.rows[stored.numbers[a]], stored.rows[stored.numbers[b]]) >= least
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


def _default_bands(hasher: MinHasher) -> Bands:
    """Return planned bands, or, where there are too few seeds for a plan, those that find the most."""
    if 1 - (1 - DEFAULT_THRESHOLD) ** hasher.num_seeds < DEFAULT_RECALL:
        return Bands(hasher.num_seeds, 1)
    return plan_for(hasher, DEFAULT_THRESHOLD, DEFAULT_RECALL, filtered=False).bands


def _check_how_to_band(num_bands: object, bands: object) -> None:
    """Raise an error where both are given, or one is what the other should be."""
    if num_bands is not None and bands is not None:
        raise ValueError("num_bands and bands both say how to band; give one of them")
    if isinstance(num_bands, (Bands, Plan)):
        got = type(num_bands).__name__
        raise TypeError(f"num_bands must be a whole number, got {got}; pass it by name, as bands=")
    if isinstance(bands, (int, np.integer)) and not isinstance(bands, bool):
        got = type(bands).__name__
        raise TypeError(
            f"bands must be a Bands or a Plan, got {got}; write num_bands={bands}, or bands=lsh.Bands({bands}, width)"
        )
