"""Near-duplicate documents of a whole corpus: `deduplicate` and `find_pairs`.

The path: texts, fingerprints, band keys, chains of documents that share a bucket, exact similarities, a decision for
each document. This module says what is kept and why; the arrows are on the floors below. Every removed document names a
kept one, its witness, that is at least `threshold` similar by the exact Jaccard similarity.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from lsh import checks, edge, threads
from lsh._batch import Batch
from lsh._grouping import Pairs, Walk, first_copies
from lsh.bands import Bands
from lsh.edge import Texts
from lsh.minhash import MOST_SKETCH, MinHasher
from lsh.planning import chosen_bands
from lsh.shingling import Shingles, checked_shingles

CAP = 1000  # kept members of a bucket that a document is compared with, the latest ones
STEP = 1024  # documents decided between two reports of progress
DEFAULT_SEEDS = 128

REMOVED = np.dtype([("document", np.int64), ("kept", np.int64), ("similarity", np.float64), ("identical", np.bool_)])

Array = np.ndarray[Any, Any]
Progress = Callable[[str, int, int], object]


class Deduplication:
    """What `deduplicate` found. Immutable; made by it alone.

    Attributes
    ----------
    keep : numpy.ndarray
        bool, shape ``(n,)``: the documents that stay.
    labels : numpy.ndarray
        int64, shape ``(n,)``: the position of the kept document that stands for each, a kept one's own.
    removed : numpy.ndarray
        Structured: ``document`` and its witness ``kept`` (positions), their ``similarity``, and whether their bytes are
        ``identical``; by document.
    """

    keep: Array
    labels: Array
    removed: Array
    _counts: dict[str, Any]

    def __init__(self, keep: Array, labels: Array, removed: Array, counts: dict[str, Any]) -> None:
        for array in (keep, labels, removed):
            array.flags.writeable = False
        for name, value in (("keep", keep), ("labels", labels), ("removed", removed), ("_counts", counts)):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Deduplication is immutable; copy {name} instead of setting it")

    def clusters(self) -> list[Array]:
        """Return the clusters of two or more documents: arrays of positions, the kept one first, then ascending."""
        order = np.argsort(self.removed["kept"], kind="stable")
        kept, starts = np.unique(self.removed["kept"][order], return_index=True)
        members = np.split(self.removed["document"][order], starts[1:])
        return [np.concatenate([[first], rest]) for first, rest in zip(kept, members)] if len(kept) else []

    def summary(self) -> dict[str, Any]:
        """Return the counts of the run.

        Returns
        -------
        dict
            ``documents``, ``kept``, ``removed``, ``identical`` (of the removed, those with a witness of the same
            bytes), ``clusters``, ``without_shingles`` and ``missing`` (both kept), ``compared`` (exact comparisons),
            ``capped`` (bucket members passed over because a bucket held more than 1,000 kept ones), ``seconds`` (a dict
            by stage).
        """
        return {**self._counts, "seconds": dict(self._counts["seconds"])}

    def __repr__(self) -> str:
        counts = self._counts
        return f"<Deduplication: {counts['documents']} documents, {counts['kept']} kept, {counts['removed']} removed>"


def deduplicate(
    texts: Texts,
    threshold: float = 0.8,
    *,
    recall: float | None = None,
    bands: Bands | None = None,
    shingles: Shingles | None = None,
    hasher: MinHasher | None = None,
    num_seeds: int | None = None,
    random_state: int | None = 0,
    keep: str | Iterable[float] = "first",
    missing: str = "error",
    num_threads: int | None = None,
    progress: Progress | None = None,
) -> Deduplication:
    """Find which documents of a corpus to keep.

    Parameters
    ----------
    texts : iterable of str or bytes, numpy array, or Arrow column
        ``n`` documents, as for `MinHasher.fingerprints`.
    threshold : float, optional
        Least Jaccard similarity of near duplicates, more than 0 and at most 1.
    recall : float, optional
        Least probability that a pair just at the threshold is found, more than 0 and less than 1; more similar ones are
        found more often. Default 0.99, where `bands` is not given.
    bands : Bands, optional
        Default: ``plan(threshold, recall, num_seeds)``, the cheapest that find so many.
    shingles : Shingles, optional
        Default: the hasher's, else ``Shingles(8)``.
    hasher : MinHasher, optional
        Default: ``MinHasher(num_seeds, random_state=random_state, scheme="fss", shingles=shingles)``.
    num_seeds : int, optional
        Default 128, where `hasher` is not given.
    random_state : int or None, optional
        Draws the seeds where `hasher` is not given.
    keep : {"first", "last", "longest"} or array_like, optional
        Which documents come first: those at the start, at the end, with the most UTF-8 bytes, or with the highest of
        ``n`` finite numbers. Ties go by position.
    missing : {"error", "empty"}, optional
        What ``None`` is: an error, or an empty text.
    num_threads : int, optional
        Threads for fingerprints; default: every core that this process may use. The result does not depend on it.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.

    Returns
    -------
    Deduplication
        What is kept, what is removed, and by which witness.

    Raises
    ------
    TypeError, ValueError
        If a text or a parameter is bad; the message says which, and what to do.

    Notes
    -----
    Documents are walked in the order of `keep`. One is removed if an earlier kept document shares a bucket in any band
    with it and has an exact Jaccard similarity of at least `threshold`; the most similar such document is its witness,
    the earliest on a tie. Of byte-identical texts the earliest stands for all. Texts without shingles are kept. In a
    bucket the latest 1,000 kept documents are compared with; `Deduplication.summary` counts what was passed over.

    Examples
    --------
    >>> import lsh
    >>> texts = ["A cat sat on the mat today.", "A dog ran in the park.", "A cat sat on the mat today!"]
    >>> result = lsh.deduplicate(texts, threshold=0.8, shingles=lsh.Shingles(4))
    >>> result.keep
    array([ True,  True, False])
    >>> result.removed["kept"], result.removed["similarity"]
    (array([0]), array([0.92]))
    """
    seconds: dict[str, float] = {}
    threshold = checks.fraction("threshold", threshold, zero=False)
    hasher, bands = _hasher_and_bands(hasher, bands, shingles, num_seeds, random_state, recall, threshold)
    report = _progress(progress)
    raw = edge.whole("texts", texts, _allowed(missing))
    priority = _priority(keep, len(raw))

    started = time.perf_counter()
    corpus = _Corpus(raw, hasher, bands, num_threads, report)
    seconds["fingerprints"], started = time.perf_counter() - started, time.perf_counter()

    order = _by_priority(priority, corpus.raw)
    order = order[corpus.has_shingles[order]]
    firsts = first_copies(corpus.raw, order)
    distinct = order[firsts[order] == order]
    walk = Walk(hasher.shingles.sets(corpus.batch), corpus.keys, distinct, threshold, CAP)
    corpus.keys = None
    seconds["grouping"], started = time.perf_counter() - started, time.perf_counter()

    for start in range(0, len(distinct), STEP):
        stop = min(start + STEP, len(distinct))
        walk.run(start, stop)
        report("comparing", stop, len(distinct))
    seconds["comparing"] = time.perf_counter() - started
    return _result(corpus, walk, order, firsts, seconds)


def find_pairs(
    a: Texts,
    b: Texts | None = None,
    *,
    threshold: float = 0.8,
    recall: float | None = None,
    bands: Bands | None = None,
    shingles: Shingles | None = None,
    hasher: MinHasher | None = None,
    num_seeds: int | None = None,
    random_state: int | None = 0,
    missing: str = "error",
    num_threads: int | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[int, int, float]]:
    """Find the pairs of documents that are near duplicates, in one collection or between two.

    Parameters
    ----------
    a : iterable of str or bytes, numpy array, or Arrow column
        The documents, as for `MinHasher.fingerprints`.
    b : iterable of str or bytes, numpy array, or Arrow column, optional
        Others; pairs are then of one of `a` and one of `b`.
    threshold, recall, bands, shingles, hasher, num_seeds, random_state, missing, num_threads, progress
        As for `deduplicate`.

    Returns
    -------
    iterator of tuple
        ``(i, j, similarity)`` in ascending order: positions in `a` with i < j, or i in `a` and j in `b`; each pair that
        shares a bucket and has an exact Jaccard similarity of at least `threshold`, once, copies included.

    Examples
    --------
    >>> import lsh
    >>> texts = ["A cat sat on the mat today.", "A dog ran in the park.", "A cat sat on the mat today!"]
    >>> list(lsh.find_pairs(texts, threshold=0.8, shingles=lsh.Shingles(4)))
    [(0, 2, 0.92)]
    """
    threshold = checks.fraction("threshold", threshold, zero=False)
    hasher, bands = _hasher_and_bands(hasher, bands, shingles, num_seeds, random_state, recall, threshold)
    report = _progress(progress)
    allowed = _allowed(missing)
    threads.number_of(num_threads)
    raw = edge.whole("a", a, allowed)
    rows = len(raw)
    if b is not None:
        raw = Batch.join([raw, edge.whole("b", b, allowed)])
    return _pairs(raw, rows, b is not None, threshold, hasher, bands, num_threads, report)


def _pairs(
    raw: Batch,
    rows: int,
    two: bool,
    threshold: float,
    hasher: MinHasher,
    bands: Bands,
    num_threads: int | None,
    report: Progress,
) -> Iterator[tuple[int, int, float]]:
    """Yield the pairs; chains lead from a document to later ones, or, with two collections, to those of the second."""
    corpus = _Corpus(raw, hasher, bands, num_threads, report)
    positions = np.flatnonzero(corpus.has_shingles).astype(np.int32)
    firsts = first_copies(corpus.raw, positions)
    backwards = positions[::-1].copy()
    partners = int((backwards >= rows).sum()) if two else len(backwards)
    pairs = Pairs(hasher.shingles.sets(corpus.batch), corpus.keys, backwards, partners, firsts, threshold)
    corpus.keys = None
    offset = rows if two else 0
    document = 0
    while document < rows:
        document, found, similarities = pairs.next(document, min(document + STEP, rows))
        for partner, similarity in zip(found.tolist(), similarities.tolist()):
            yield document, partner - offset, similarity
        document += len(found) > 0
        report("comparing", document, rows)


class _Corpus:
    """The texts of a run, their band keys, and which of them have shingles."""

    def __init__(
        self,
        raw: Batch,
        hasher: MinHasher,
        bands: Bands,
        num_threads: int | None,
        report: Progress,
    ) -> None:
        total = len(raw)
        if total >= 2**31:
            raise ValueError(f"a corpus can have at most 2,147,483,647 documents, got {total}")
        self.raw = raw
        self.batch = hasher.shingles.batch(raw)
        self.keys: Any = np.empty((bands.num_bands, total), np.uint64)
        self.has_shingles = np.empty(total, np.bool_)
        for first, rows in hasher.chunks(raw, num_threads=num_threads):
            stop = first + len(rows)
            self.keys[:, first:stop] = bands.keys(rows)
            self.has_shingles[first:stop] = ~hasher.is_empty(rows)
            report("fingerprints", stop, total)


def _hasher_and_bands(
    hasher: Any, bands: Any, shingles: Any, num_seeds: Any, random_state: Any, recall: Any, threshold: float
) -> tuple[MinHasher, Bands]:
    """Settle what makes the fingerprints and how they are banded."""
    if hasher is None:
        count = DEFAULT_SEEDS if num_seeds is None else checks.whole_number("num_seeds", num_seeds, 1, MOST_SKETCH)
        hasher = MinHasher(count, random_state=random_state, scheme="fss", shingles=checked_shingles(shingles))
    elif not isinstance(hasher, MinHasher):
        raise TypeError(f"hasher must be a MinHasher, got {type(hasher).__name__}")
    elif num_seeds is not None:
        raise ValueError("num_seeds and hasher both say how many seeds there are; give one of them")
    elif random_state != 0:
        raise ValueError("random_state and hasher both say what the seeds are; give one of them")
    elif shingles is not None and checked_shingles(shingles) != hasher.shingles:
        raise ValueError(f"shingles must be the hasher's ({hasher.shingles!r}) or left out, got {shingles!r}")
    return hasher, chosen_bands(bands, recall, threshold, hasher.num_seeds, filtered=True)


def _allowed(missing: Any) -> bool:
    """Tell whether `missing` lets a text be ``None``."""
    return bool(checks.choice("missing", missing, ("error", "empty")) == "empty")


def _progress(progress: Any) -> Progress:
    if progress is None:
        return lambda stage, done, total: None
    if not callable(progress):
        raise TypeError(f"progress must be callable as progress(stage, done, total), got {type(progress).__name__}")
    return progress  # type: ignore[no-any-return]


def _priority(keep: Any, total: int) -> Any:
    """Return `keep` checked: one of its names, or an array of finite numbers."""
    if isinstance(keep, str):
        return checks.choice("keep", keep, ("first", "last", "longest"))
    try:
        priority = np.asarray(keep)
        if keep is None or priority.dtype.kind in "cSUmM":
            raise TypeError
        if priority.dtype.kind not in "iu":
            priority = priority.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            f"keep must be 'first', 'last', 'longest' or an array of numbers, got {type(keep).__name__}"
        ) from None
    if priority.shape != (total,):
        raise ValueError(f"keep must hold one number a text ({total}), got shape {priority.shape}")
    if not np.isfinite(priority).all():
        raise ValueError(f"keep must hold finite numbers, got {priority[~np.isfinite(priority)][0]} among them")
    return priority


def _by_priority(priority: Any, raw: Batch) -> Array:
    """Return the positions in the order in which the documents are walked, int32."""
    if isinstance(priority, str) and priority == "first":
        return np.arange(len(raw), dtype=np.int32)
    if isinstance(priority, str) and priority == "last":
        return np.arange(len(raw) - 1, -1, -1, dtype=np.int32)
    values: Array = raw.sizes() if isinstance(priority, str) else priority
    ascending = np.argsort(values[::-1], kind="stable")  # of the reversed array, so that ties end up by position
    order: Array = (len(values) - 1 - ascending[::-1]).astype(np.int32)
    return order


def _result(corpus: _Corpus, walk: Walk, order: Array, firsts: Array, seconds: dict[str, float]) -> Deduplication:
    """Put together what the walk decided; a copy goes with the first of its bytes."""
    total = len(firsts)
    kept, witness, similarity = walk.outcome()
    witness = witness.astype(np.int64)
    copies = order[firsts[order] != order]
    first = firsts[copies]
    stays = kept[first]
    witness[copies] = np.where(stays, first, witness[first])
    similarity[copies] = np.where(stays, 1.0, similarity[first])

    documents = np.flatnonzero(witness >= 0)
    removed = np.empty(len(documents), REMOVED)
    removed["document"], removed["kept"] = documents, witness[documents]
    removed["similarity"] = similarity[documents]
    removed["identical"] = firsts[documents] == witness[documents]
    keep = witness < 0
    labels = np.where(keep, np.arange(total), witness)
    counts = {
        "documents": total,
        "kept": int(keep.sum()),
        "removed": len(removed),
        "identical": int(removed["identical"].sum()),
        "clusters": len(np.unique(removed["kept"])),
        "without_shingles": int((~corpus.has_shingles).sum()),
        "missing": corpus.raw.num_missing,
        "compared": walk.compared,
        "capped": walk.capped,
        "seconds": seconds,
    }
    return Deduplication(keep, labels, removed, counts)
