"""The banded cache: documents that may be similar share a bucket, so a query does not compare all documents.

`Cache` defines the operations: which documents a query finds, what an id is, which document is replaced. The buckets
are tables of the compiled module `lsh.engine.grouping`.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, KeysView, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from lsh.base import checks
from lsh.sketch import sketch_filter
from lsh.sketch.bands import Bands, equal_bands
from lsh.sketch.hasher import MinHasher, checked_fingerprint, checked_hasher
from lsh.sketch.planning import (
    DEFAULT_RECALL,
    DEFAULT_THRESHOLD,
    Plan,
    check_plan,
    checked_bands,
    chosen_hasher,
    chosen_plan,
    plan_for,
    plan_of,
)
from lsh.sketch.rows import CONFIDENCE, many_fingerprints, one_fingerprint, wilson_interval
from lsh.store.cache_store import BandBins, FingerprintView, StoredDocuments
from lsh.store.matches import Match, Matches, matches_with
from lsh.text.ids import checked_id, in_order, listed_ids, new_id, pairs_of_ids, several
from lsh.text.shingling import Shingles
from lsh.typing import Array, Fingerprint, Fingerprints, FoundId, Missing, Text, Texts

__all__ = ["Cache"]

SPARE = 1024  # a cache is packed if it has so many more removed documents than stored ones

_caches: weakref.WeakSet[Cache] = weakref.WeakSet()


def _renew_locks() -> None:
    """Make new locks in a forked process, where a lock may be held by a thread that does not exist."""
    for cache in list(_caches):
        cache._renew_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


class Cache:
    """A store of documents that finds those which are similar to a given one.

    In each band, the documents that agree in all components of the band are in the same bucket. A query finds the
    documents that share a bucket, of any band, with the given one.

    Parameters
    ----------
    hasher : MinHasher
        Computes the fingerprints.
    num_bands : int, optional
        The number of bands, all of the same width; it must divide the number of seeds.
    bands : Bands or Plan, optional
        Bands of any widths, in place of `num_bands`, or a plan for the hasher's seeds and shingles. Default, if
        `num_bands` is not given: as for `create`, or bands of one component if there are too few seeds for a plan.

    Raises
    ------
    BandError
        If the bands do not fit the number of seeds. It is a ValueError, and also an AssertionError.
    TypeError, ValueError
        If a parameter has a wrong type, both `num_bands` and `bands` are given, or the plan is for other shingles.

    Notes
    -----
    The id of a document is any hashable object except ``None``. If a document is added under an id that is in use, it
    replaces the stored one and counts as added last. A text without shingles is stored but is in no bucket: no query
    finds it, and a query with it finds nothing.

    Threads may share a cache. Every method, operator and view locks the cache while it reads or changes documents, so
    another thread sees all of a change or none of it. Between two calls, another thread may change the cache.
    ``iter(cache)`` and `iter_duplicates` lock the cache for each step and raise a RuntimeError after a change. An
    iteration over a band of `bins`, or over ``fingerprints.items()`` or ``fingerprints.values()``, gives the content at
    its beginning. What never changes is read without the lock: `hasher`, `plan`, `bands`, `num_bands`, `band_width`,
    `bins_`, `recall_at`.

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
    >>> [(match.id, match.similarity) for match in cache.query(id="a")]
    [('b', 0.72)]
    """

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
        self._stored = StoredDocuments(hasher, self._bands)
        self._renew_lock()

    @classmethod
    def create(
        cls,
        hasher: MinHasher | None = None,
        *,
        bands: Bands | Plan | None = None,
        threshold: float | None = None,
        recall: float | None = None,
        shingles: Shingles | None = None,
        num_seeds: int | None = None,
        random_state: int | None = 0,
    ) -> Cache:
        """Create a cache that finds similar documents with a given probability.

        Parameters
        ----------
        hasher : MinHasher, optional
            Computes the fingerprints. Default: scheme ``"fss"`` with `num_seeds`, `random_state` and `shingles`.
        bands : Bands or Plan, optional
            The bands to use, in place of `recall`. `Bands` require a `threshold`. A plan must have the same number of
            seeds, and the same shingles and threshold if they are given. Default: planned for `threshold` and `recall`.
        threshold : float, optional
            The Jaccard similarity from which documents should be found, more than 0 and at most 1. Default: that of a
            plan that is given as `bands`, else 0.8.
        recall : float, optional
            The least probability with which a document at the threshold is found, more than 0 and less than 1; more
            similar ones are found with a higher probability. Default 0.99.
        shingles : Shingles, optional
            How a text becomes a set of shingles. Default: the shingles of `hasher`, else those of a plan that is given
            as `bands`, else ``Shingles(8)``.
        num_seeds : int, optional
            The number of components of a fingerprint. Default: that of a plan that is given as `bands`, else 128. An
            error if `hasher` is given.
        random_state : int or None, optional
            The seed of the hasher; ``None`` draws a new one. An error if `hasher` is given.

        Returns
        -------
        Cache
            Empty. Planned bands are the cheapest ones that reach the recall. They differ from those of `lsh.plan`,
            which are for bands followed by a sketch filter; a cache has no filter.

        Raises
        ------
        TypeError, ValueError
            If a parameter is wrong, or no bands of so many components reach the recall.

        Examples
        --------
        >>> import lsh
        >>> cache = lsh.Cache.create(lsh.MinHasher(seeds=128, char_ngram=5), threshold=0.8, recall=0.95)
        >>> cache.num_bands, round(cache.bands.probability(0.8), 3)
        (16, 0.952)
        """
        hasher = chosen_hasher(hasher, shingles, num_seeds, random_state, bands)
        return cls(hasher=hasher, bands=chosen_plan(hasher, bands, threshold, recall, filtered=False))

    def _renew_lock(self) -> None:
        """Make a new lock, which no thread holds."""
        self._lock = threading.RLock()
        _caches.add(self)

    def _store(self, ids: list[FoundId], rows: Array) -> None:
        """Replace the store by a new one with these documents, whose ids differ from each other."""
        stored = StoredDocuments(self._hasher, self._bands)
        stored.add(ids, rows)
        self._stored = stored

    @contextmanager
    def _changing(self) -> Iterator[StoredDocuments]:
        """Hold the lock for a change. If it is interrupted (a signal, a fork), the next use of the store repairs it."""
        with self._reading() as stored:
            self._version += 1
            yield stored

    @contextmanager
    def _reading(self) -> Iterator[StoredDocuments]:
        """Hold the lock for reading."""
        with self._lock:
            if self._stored.torn:
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

    # ---- adding and removing ----

    def add_doc(self, doc: Text, doc_id: Hashable) -> None:
        """Add a document under an id, in place of any document that is stored under this id.

        Parameters
        ----------
        doc : str, bytes, bytearray or memoryview
            The text.
        doc_id : hashable
            Its id; not ``None``.

        Raises
        ------
        TypeError
            If `doc` is not a text, or the id is ``None`` or not hashable.
        """
        self._add_text("doc", doc, "doc_id", doc_id)

    def add(self, text: Text, id: Hashable) -> None:
        """Add a document; the same as `add_doc`, by the names that `Index` has for it.

        Parameters
        ----------
        text : str, bytes, bytearray or memoryview
            The text.
        id : hashable
            Its id; not ``None``.

        Raises
        ------
        TypeError, ValueError
            If the text is no text, or the id is ``None``, NaN or not hashable.
        """
        self._add_text("text", text, "id", id)

    def add_fingerprint(self, fingerprint: Fingerprint, doc_id: Hashable) -> None:
        """Add a document by its fingerprint; see `add_doc`.

        Parameters
        ----------
        fingerprint : numpy.ndarray or sequence of int
            Shape ``(num_seeds,)``; the values fit the dtype of the hasher.
        doc_id : hashable
            Its id; not ``None``.

        Raises
        ------
        TypeError, ValueError
            If the fingerprint has another shape or other values, or the id is ``None`` or not hashable.
        """
        if isinstance(fingerprint, checks.TEXT_TYPES):
            got = type(fingerprint).__name__
            raise TypeError(f"fingerprint must be an array or a sequence, got {got}; use add_doc for a text")
        row = one_fingerprint("fingerprint", fingerprint, self._hasher.num_seeds, self._hasher.dtype)
        self._add(row[None], [new_id("doc_id", doc_id)])

    def add_docs(
        self, texts: Texts, ids: Iterable[Hashable], *, missing: Missing = "error", num_threads: int | None = None
    ) -> None:
        """Add many documents at once; if there is an error, none of them is added.

        Parameters
        ----------
        texts : iterable of str or bytes, numpy array, or Arrow column
            ``n`` documents, as for `MinHasher.fingerprints`.
        ids : iterable of hashable
            One id for each text, in the same order, not ``None``. If an id is repeated, its last text is stored.
        missing : {"error", "empty"}, optional
            What to do with ``None`` or a null in `texts`: raise a ValueError, or treat it as an empty text.
        num_threads : int, optional
            Number of threads, as for `MinHasher.fingerprints`. The result does not depend on it.

        Raises
        ------
        TypeError, ValueError
            If a text or an id is wrong, or the number of ids is not that of texts.

        Examples
        --------
        >>> import lsh
        >>> cache = lsh.Cache(lsh.MinHasher(100))
        >>> cache.add_docs(["A cat sat on the mat.", "A dog ran in the park."], ["cat", "dog"])
        >>> len(cache), "cat" in cache
        (2, True)
        """
        given = in_order("ids", ids)
        rows = self._hasher.fingerprints(texts, missing=missing, num_threads=num_threads)
        self._add(rows, listed_ids(given, ids, len(rows)))

    def add_fingerprints(self, fingerprints: Fingerprints, ids: Iterable[Hashable]) -> None:
        """Add many documents by their fingerprints; see `add_docs`.

        Parameters
        ----------
        fingerprints : numpy.ndarray or sequence of fingerprints
            Shape ``(n, num_seeds)``.
        ids : iterable of hashable
            One id for each fingerprint, as for `add_docs`.

        Raises
        ------
        TypeError, ValueError
            If a fingerprint or an id is wrong, or their numbers differ.

        Examples
        --------
        >>> import lsh
        >>> hasher = lsh.MinHasher(100)
        >>> cache = lsh.Cache(hasher)
        >>> cache.add_fingerprints(hasher.fingerprints(["A cat sat.", "A dog ran."]), ["cat", "dog"])
        >>> cache.get_duplicates_of("A cat sat.")
        {'cat'}
        """
        given = in_order("ids", ids)
        rows = many_fingerprints("fingerprints", fingerprints, self._hasher.num_seeds, self._hasher.dtype)
        self._add(rows, listed_ids(given, ids, len(rows)))

    def _add_text(self, name: str, text: Text, id_name: str, doc_id: Hashable) -> None:
        """Add a document; the names are those of the parameters, for messages."""
        row = self._hasher.fingerprint(checks.text(name, text))
        self._add(row[None], [new_id(id_name, doc_id)])

    def _add(self, rows: Array, doc_ids: list[Hashable]) -> None:
        """Add fingerprints, shape (n, k), under n ids."""
        last = {doc_id: i for i, doc_id in enumerate(doc_ids)}
        if len(last) < len(doc_ids):
            chosen = sorted(last.values())
            rows, doc_ids = rows[chosen], [doc_ids[i] for i in chosen]
        with self._changing() as stored:
            stored.add(doc_ids, rows)
            self._pack_if_sparse()

    def _pack_if_sparse(self) -> None:
        """Pack the store if there are many more removed documents than stored ones."""
        if len(self._stored.ids) > 2 * len(self._stored.numbers) + SPARE:
            self._pack()

    def remove_id(self, doc_id: Hashable) -> None:
        """Remove the document with this id.

        Parameters
        ----------
        doc_id : hashable
            The id.

        Raises
        ------
        KeyError
            If there is no such document.
        """
        self._remove(checked_id("doc_id", doc_id))

    def remove(self, id: Hashable) -> None:
        """Remove a document; the same as `remove_id`, by the names that `Index` has for it.

        Parameters
        ----------
        id : hashable
            The id.

        Raises
        ------
        KeyError
            If there is no such document.
        """
        self._remove(checked_id("id", id))

    def remove_ids(self, ids: Iterable[Hashable]) -> None:
        """Remove the documents with these ids; if one of them is unknown, none is removed.

        Parameters
        ----------
        ids : iterable of hashable
            The ids. One that is repeated counts once.

        Raises
        ------
        KeyError
            If there is no document with one of the ids.
        TypeError
            If `ids` is no collection, or one of them is not hashable.
        """
        listed = dict.fromkeys(checked_id("ids", one, i) for i, one in enumerate(several(ids)))
        with self._changing() as stored:
            for doc_id in listed:
                if doc_id not in stored.numbers:
                    raise KeyError(doc_id)
            for doc_id in listed:
                stored.remove(doc_id)
            self._pack_if_sparse()

    def _remove(self, doc_id: Hashable) -> None:
        self.remove_ids([doc_id])

    def remove_doc(self, doc: Text) -> None:
        """Remove every document with the fingerprint of this text; it is not an error if there is none.

        Parameters
        ----------
        doc : str, bytes, bytearray or memoryview
            The text.

        Raises
        ------
        TypeError
            If `doc` is no text.
        """
        row = self._hasher.fingerprint(checks.text("doc", doc))
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

    def recall_at(self, similarity: float, *, min_similarity: float | None = None) -> float:
        """Return the probability that a query finds a document of this similarity.

        Parameters
        ----------
        similarity : float
            Jaccard similarity, 0 to 1.
        min_similarity : float, optional
            That of the query. Default: none, so that the probability is that to share a band,
            ``bands.probability(similarity)``.

        Returns
        -------
        float
            The probability to share a band, times that of an estimate of `min_similarity` or more, which is about one
            half for a document of just this similarity: to find nearly all documents of a similarity, ask for a
            `min_similarity` below it.

        Raises
        ------
        TypeError, ValueError
            If a similarity is no number from 0 to 1.
        """
        asked = checks.fraction("similarity", similarity, zero=True)
        return _recall_at(self._bands, self._hasher.num_seeds, asked, _least(min_similarity))

    def query(
        self,
        text: Text | None = None,
        *,
        id: Hashable | None = None,
        top: int | None = None,
        min_similarity: float | None = None,
    ) -> Matches:
        """Find the stored documents that share a bucket with a text, or with a stored document, the most similar first.

        Parameters
        ----------
        text : str, bytes, bytearray or memoryview, optional
            The text. A ``str`` is always a text here; pass an id as `id`.
        id : hashable, optional
            In place of `text`: the id of a stored document, which is not among the matches.
        top : int, optional
            Return at most so many matches, 1 or more. Default: all.
        min_similarity : float, optional
            Return only documents with this estimated similarity or a higher one, 0 to 1. The estimate of a document of
            just this similarity is lower in about half of the cases, so use a somewhat lower value, or compare the
            texts. Default: all that share a bucket, as with 0.

        Returns
        -------
        Matches
            A tuple of `Match`, the most similar first; equally similar ones in order of addition. It also has the
            `recall` of the query.

        Raises
        ------
        KeyError
            If there is no document with this id.
        TypeError, ValueError
            If a parameter has a wrong type or is out of range.

        Examples
        --------
        >>> import lsh
        >>> cache = lsh.Cache(lsh.MinHasher(seeds=100, char_ngram=4))
        >>> texts = ["The quick brown fox jumps.", "A quick brown fox jumps.", "A slow red hen."]
        >>> cache.add_docs(texts, ["a", "b", "c"])
        >>> for match in cache.query("The quick brown fox jumps!"):
        ...     print(match.id, match.similarity, [round(bound, 2) for bound in match.interval])
        a 0.92 [0.85, 0.96]
        b 0.73 [0.64, 0.81]
        """
        most, least, made = self._limits(top, min_similarity)
        checks.one_of("text", text, "id", id)
        row = None if text is None else self._hasher.fingerprint(checks.text("text", text))
        with self._reading() as stored:
            if row is not None:
                return made(self._matches(stored, row, None, most, least))
            own = stored.numbers[checked_id("id", id)]
            return made(self._matches(stored, stored.rows[own], own, most, least))

    def query_docs(
        self,
        texts: Texts,
        *,
        top: int | None = None,
        min_similarity: float | None = None,
        missing: Missing = "error",
        num_threads: int | None = None,
    ) -> list[Matches]:
        """Find the stored documents that share a bucket with each of many documents; see `query`.

        Parameters
        ----------
        texts : iterable of str or bytes, numpy array, or Arrow column
            ``n`` documents, as for `MinHasher.fingerprints`.
        top, min_similarity : optional
            As for `query`.
        missing : {"error", "empty"}, optional
            What to do with ``None`` or a null in `texts`: raise a ValueError, or treat it as an empty text.
        num_threads : int, optional
            Number of threads, as for `MinHasher.fingerprints`. The result does not depend on it.

        Returns
        -------
        list of Matches
            One for each text, all of the same moment.

        Raises
        ------
        TypeError, ValueError
            If a text or a parameter is wrong, as for `query`.
        """
        most, least, made = self._limits(top, min_similarity)
        rows = self._hasher.fingerprints(texts, missing=missing, num_threads=num_threads)
        with self._reading() as stored:
            return [made(self._matches(stored, row, None, most, least)) for row in rows]

    def _limits(self, top: object, min_similarity: object) -> tuple[int | None, float, Callable[..., Matches]]:
        """Return the parameters of a query that leave out matches, checked, and what makes its `Matches`."""
        most = None if top is None else checks.whole_number("top", top, 1)
        least = _least(min_similarity)
        recall = _recall_at(self._bands, self._hasher.num_seeds, least, least)
        return most, least, partial(tuple.__new__, matches_with(recall, least))

    def _matches(
        self, stored: StoredDocuments, row: Array, own: int | None, top: int | None, least: float
    ) -> Iterator[Match]:
        """Yield the matches of a fingerprint, but not the document with the number `own`."""
        numbers = stored.find(row)
        if own is not None:
            numbers = numbers[numbers != own]
        estimates = self._hasher.similarities(row, stored.rows[numbers])
        best = np.argsort(-estimates, kind="stable")  # numbers ascend in order of addition
        best = best[estimates[best] >= least][:top]
        ids = [stored.ids[number] for number in numbers[best].tolist()]
        k, similarities = self._hasher.num_seeds, estimates[best].tolist()
        intervals = {similarity: wilson_interval(similarity, k, CONFIDENCE) for similarity in set(similarities)}
        for doc_id, similarity in zip(ids, similarities):
            yield Match(doc_id, similarity, intervals[similarity], False)

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
        least = checks.optional_fraction("min_jaccard", min_jaccard)
        with self._reading() as stored:
            row = self._asked(stored, doc, doc_id)
            numbers = stored.find(row)
            if least is not None:
                numbers = numbers[self._hasher.similarities(row, stored.rows[numbers]) >= least]
            return {stored.ids[number] for number in numbers.tolist()}

    def _asked(self, stored: StoredDocuments, doc: Text | None, doc_id: Hashable | None) -> Array:
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

    def _pairs(self, least: float | None) -> Iterator[tuple[FoundId, FoundId]]:
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
                    if least is not None:
                        fresh &= self._hasher.similarities(rows[i], rows[i + 1 :]) >= least
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
        least = checks.fraction("min_jaccard", min_jaccard, zero=True)
        with self._reading() as stored:
            return {
                (a, b)
                for a, b in pairs_of_ids(pairs)
                if self._hasher.similarities(stored.rows[stored.numbers[a]], stored.rows[stored.numbers[b]]) >= least
            }

    # ---- copying ----

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the cache in a new folder, as an index: `Cache.load` loads it, and `Index.open` opens it.

        Parameters
        ----------
        path : str or path
            The folder. It must not exist, or be empty.

        Raises
        ------
        FileExistsError
            If there is an index, or the folder has other files.
        TypeError, ValueError
            If an id is not a str, bytes or a whole number of 64 bits.

        Examples
        --------
        >>> import lsh, tempfile
        >>> cache = lsh.Cache.create(threshold=0.7)
        >>> cache.add_doc("The quick brown fox jumps over the lazy dog, and runs away.", "a")
        >>> folder = f"{tempfile.mkdtemp()}/stories"
        >>> cache.save(folder)
        >>> loaded = lsh.Cache.load(folder)
        >>> list(loaded), loaded.plan == cache.plan
        (['a'], True)
        """
        with self._reading() as stored:
            ids, rows = stored.content()
        from lsh.store import saved_cache  # slow to import

        saved_cache.save(os.fspath(path), self._hasher, self.plan, ids, rows)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Cache:
        """Load a cache that `save` wrote, or the documents of an index that was created with ``sketch="full"``.

        Parameters
        ----------
        path : str or path
            The folder.

        Returns
        -------
        Cache
            The hasher, the plan and the documents are those of the index, in its order.

        Raises
        ------
        FileNotFoundError
            If there is no index.
        ValueError
            If the index has no whole fingerprints, or a file is damaged.
        """
        from lsh.store import saved_cache  # slow to import

        hasher, plan, ids, rows = saved_cache.load(os.fspath(path))
        cache = cls(hasher=hasher, bands=plan)
        cache._store(ids, rows)
        return cache

    def __getstate__(self) -> dict[str, Any]:
        with self._reading() as stored:
            own = {name: value for name, value in self.__dict__.items() if name not in _OWN_STATE}
            return {"attributes": own, "documents": stored.content()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state["attributes"])
        self._version = 0
        self._store(*state["documents"])
        self._renew_lock()


@lru_cache(maxsize=64)
def _recall_at(bands: Bands, num_seeds: int, similarity: float, least: float) -> float:
    """Return the probability to share a band and to have an estimate of `least` or more; see `Cache.recall_at`."""
    return bands.probability(similarity) * sketch_filter.reaching(num_seeds, similarity, least, 0.0)


def _least(min_similarity: object) -> float:
    """Return the least similarity of a query of a cache, checked."""
    return 0.0 if min_similarity is None else checks.fraction("min_similarity", min_similarity, zero=True)


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
