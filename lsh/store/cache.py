"""The banded cache: documents that may be similar share a bucket, so a query does not compare all documents.

`Cache` defines the operations: which documents a query finds, what an id is, which document is replaced, and how a
cache is saved as an index.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable
from functools import lru_cache

import numpy as np

from lsh.base import checks
from lsh.sketch import sketch_filter
from lsh.sketch.bands import Bands
from lsh.sketch.hasher import MinHasher
from lsh.sketch.planning import (
    Plan,
    chosen_hasher,
    chosen_plan,
)
from lsh.sketch.rows import CONFIDENCE, many_fingerprints, one_fingerprint, wilson_interval
from lsh.store.banded import BandedDocuments, BandedStore
from lsh.store.matches import Matches, as_match
from lsh.text.ids import checked_id, in_order, listed_ids, new_id, several
from lsh.text.shingling import Shingles
from lsh.typing import Array, Fingerprint, Fingerprints, Missing, Text, Texts

__all__ = ["Cache"]

SPARE = 1024  # a cache is packed if it has so many more removed documents than stored ones


class Cache(BandedStore):
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
        empty = BandedDocuments(self._hasher, self._bands)
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
        return _recall_at(self._bands, self._hasher.num_seeds, asked, _min_similarity_of(min_similarity))

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
        limits = self._limits(top, min_similarity)
        checks.text_or_id(text, id)
        row = None if text is None else self._hasher.fingerprint(checks.text("text", text))
        with self._reading() as stored:
            if row is not None:
                return self._matches(stored, row, None, *limits)
            own = stored.numbers[checked_id("id", id)]
            return self._matches(stored, stored.rows[own], own, *limits)

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
        limits = self._limits(top, min_similarity)
        rows = self._hasher.fingerprints(texts, missing=missing, num_threads=num_threads)
        with self._reading() as stored:
            return [self._matches(stored, row, None, *limits) for row in rows]

    def _limits(self, top: object, min_similarity: object) -> tuple[int | None, float, float]:
        """Return the most matches of a query and their least similarity, checked, and the recall at this similarity."""
        max_matches = None if top is None else checks.whole_number("top", top, 1)
        bound = _min_similarity_of(min_similarity)
        return max_matches, bound, _recall_at(self._bands, self._hasher.num_seeds, bound, bound)

    def _matches(
        self,
        stored: BandedDocuments,
        row: Array,
        own: int | None,
        top: int | None,
        min_similarity: float,
        recall: float,
    ) -> Matches:
        """Return the matches of a fingerprint, but not the document with the number `own`."""
        numbers = stored.find(row)
        if own is not None:
            numbers = numbers[numbers != own]
        estimates = self._hasher.similarities(row, stored.rows[numbers])
        best = np.argsort(-estimates, kind="stable")  # numbers ascend in order of addition
        best = best[estimates[best] >= min_similarity][:top]
        ids = [stored.ids[number] for number in numbers[best].tolist()]
        k, similarities = self._hasher.num_seeds, estimates[best].tolist()
        intervals = {similarity: wilson_interval(similarity, k, CONFIDENCE) for similarity in set(similarities)}
        found = [as_match((doc_id, one, intervals[one], False)) for doc_id, one in zip(ids, similarities)]
        return Matches(found, recall, min_similarity)

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
        from lsh.store import saved_cache  # slow to import

        with self._reading() as stored:
            ids, rows = stored.content()
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


@lru_cache(maxsize=64)
def _recall_at(bands: Bands, num_seeds: int, similarity: float, min_similarity: float) -> float:
    """Return the probability to share a band and to have an estimate that is high enough; see `Cache.recall_at`."""
    return bands.probability(similarity) * sketch_filter.reaching(num_seeds, similarity, min_similarity, 0.0)


def _min_similarity_of(min_similarity: object) -> float:
    """Return the least similarity of a query of a cache, checked."""
    return 0.0 if min_similarity is None else checks.fraction("min_similarity", min_similarity, zero=True)
