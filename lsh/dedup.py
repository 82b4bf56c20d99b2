"""Near-duplicate documents of a whole corpus: `deduplicate` and `find_pairs`.

The path: texts, fingerprints, band keys, chains of documents that share a bucket, a filter, exact similarities, a
decision for each document. This module says what is kept and why; the arrows are on the floors below. Every removed
document names a kept one, its witness, that is at least `threshold` similar by the exact Jaccard similarity.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lsh import _checks, _sketch_filter, _threads
from lsh._comparing import Pairs, Walk
from lsh._corpus import Collection, Corpus, Progress
from lsh._spill import Spill, memory_size
from lsh.bands import Bands
from lsh.minhash import MAX_FSS_SEEDS, MinHasher
from lsh.planning import Plan, chosen_bands
from lsh.shingling import Shingles, checked_shingles

CAP = 1000  # members of a bucket that a document is compared with, the latest ones
STEP = 1024  # documents decided between two reports of progress
DEFAULT_SEEDS = 128

VERIFY = ("exact", "sketch", None)
CLUSTERS = ("representative", "components")
SIDES = np.array(["new", "old"])

REMOVED = [("document", np.int64), ("kept", np.int64), ("similarity", np.float64), ("identical", np.bool_)]
NEAR = [("i", np.int64), ("j", np.int64), ("similarity", np.float64)]
SIDE = ("side", SIDES.dtype)

Array = np.ndarray[Any, Any]


class Deduplication:
    """What `deduplicate` found. Immutable; made by it alone.

    Attributes
    ----------
    keep : numpy.ndarray
        bool, shape ``(n,)``: the documents that stay.
    labels : numpy.ndarray
        int64, shape ``(n,)``: the position of the kept document that stands for each, a kept one's own; -1 where it is
        an old one.
    removed : numpy.ndarray
        Structured: ``document`` and its witness ``kept`` (positions), their ``similarity``, and whether their bytes are
        ``identical``; by document. With old documents also ``side``, ``"new"`` or ``"old"``: where `kept` is.
    near : numpy.ndarray
        Structured: ``i``, ``j``, ``similarity``: the 100 pairs that came nearest to the threshold from below, of those
        that were compared; the nearest first. With old documents also ``side``: where ``j`` is.
    """

    keep: Array
    labels: Array
    removed: Array
    near: Array
    _counts: dict[str, Any]
    _parameters: dict[str, Any]

    def __init__(
        self,
        keep: Array,
        labels: Array,
        removed: Array,
        near: Array,
        counts: dict[str, Any],
        parameters: dict[str, Any],
    ) -> None:
        values = {"keep": keep, "labels": labels, "removed": removed, "near": near}
        for name, array in values.items():
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        object.__setattr__(self, "_counts", counts)
        object.__setattr__(self, "_parameters", parameters)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Deduplication is immutable; copy {name} instead of setting it")

    @property
    def parameters(self) -> dict[str, Any]:
        """What it was made with, as a new dict.

        ``threshold``, ``hasher``, ``bands``, ``plan`` (``None`` where plain bands were given), ``verify`` and
        ``clusters``.
        """
        return dict(self._parameters)

    def clusters(self) -> list[Array]:
        """Return the clusters of two or more documents: arrays of positions, the kept one first, then ascending."""
        removed = self.removed
        if "side" in (removed.dtype.names or ()):
            removed = removed[removed["side"] == "new"]
        order = np.argsort(removed["kept"], kind="stable")
        kept, starts = np.unique(removed["kept"][order], return_index=True)
        members = np.split(removed["document"][order], starts[1:])
        return [np.concatenate([[first], rest]) for first, rest in zip(kept, members)] if len(kept) else []

    def summary(self) -> dict[str, Any]:
        """Return the counts of the run.

        Returns
        -------
        dict
            ``documents``, ``old`` (documents of `against`), ``kept``, ``removed``, ``for_old`` (of the removed, those
            whose witness is an old one), ``identical`` (those whose witness has the same bytes), ``clusters`` (of new
            documents), ``without_shingles`` and ``missing`` (both kept),
            ``candidates`` (pairs that share a bucket), ``compared`` (those that got past the filter), ``capped``
            (bucket members passed over because a bucket held more than 1,000), ``seconds`` (a dict by stage).
        """
        return {**self._counts, "seconds": dict(self._counts["seconds"])}

    def to_pandas(self, table: str = "removed") -> Any:
        """Return `removed` or `near` as a pandas DataFrame; needs pandas."""
        import pandas

        return pandas.DataFrame(dict(self._columns(table)))

    def to_arrow(self, table: str = "removed") -> Any:
        """Return `removed` or `near` as an Arrow table; needs pyarrow."""
        import pyarrow

        return pyarrow.table(dict(self._columns(table)))

    def _columns(self, table: str) -> Iterator[tuple[str, Array]]:
        array: Array = getattr(self, _checks.choice("table", table, ("removed", "near")))
        return ((name, np.ascontiguousarray(array[name])) for name in array.dtype.names or ())

    def __repr__(self) -> str:
        counts = self._counts
        return f"<Deduplication: {counts['documents']} documents, {counts['kept']} kept, {counts['removed']} removed>"


def deduplicate(
    texts: Any,
    threshold: float = 0.8,
    *,
    recall: float | None = None,
    bands: Bands | Plan | None = None,
    shingles: Shingles | None = None,
    hasher: MinHasher | None = None,
    num_seeds: int | None = None,
    random_state: int | None = 0,
    against: Any = None,
    keep: str | Sequence[float] | Array = "first",
    clusters: str = "representative",
    verify: str | None = "exact",
    missing: str = "error",
    max_memory: int | str | None = None,
    num_threads: int | None = None,
    progress: Progress | bool | None = None,
) -> Deduplication:
    """Find which documents of a corpus to keep.

    Parameters
    ----------
    texts : iterable of str or bytes, numpy array, Arrow column, or callable
        ``n`` documents, as for `MinHasher.fingerprints`. A callable gives an iterable of the texts each time it is
        called: it is called twice, and no text is held but those that are compared.
    threshold : float, optional
        Least Jaccard similarity of near duplicates, more than 0 and at most 1.
    recall : float, optional
        Least probability that a pair just at the threshold is found, more than 0 and less than 1; more similar ones are
        found more often. Default 0.99, where `bands` is not given.
    bands : Bands or Plan, optional
        In place of `recall`. A plan must be for the same threshold and number of seeds. Default:
        ``plan(threshold, recall, num_seeds)``, the cheapest bands that find so many.
    shingles : Shingles, optional
        Default: the hasher's, else ``Shingles(8)``.
    hasher : MinHasher, optional
        Default: ``MinHasher(num_seeds, random_state=random_state, scheme="fss", shingles=shingles)``.
    num_seeds : int, optional
        Default: that of a plan given as `bands`, else 128. An error where `hasher` is given.
    random_state : int or None, optional
        Draws the seeds where `hasher` is not given.
    against : iterable of str or bytes, numpy array, Arrow column, or callable, optional
        Old documents, such as a test set that must not be in a training set: all of them are kept, come before every
        new one, and are not compared with each other. New documents are compared with each other, too; what is like an
        old one, and nothing else, is ``{i for i, j, similarity in find_pairs(texts, against)}``.
    keep : {"first", "last", "longest"} or array_like, optional
        Which documents come first: those at the start, at the end, with the most UTF-8 bytes, or with the highest of
        ``n`` finite numbers. Ties go by position.
    clusters : {"representative", "components"}, optional
        Whether a document is removed for a kept one that is similar to it, or for being connected with one through
        similar pairs, as other tools do.
    verify : {"exact", "sketch", None}, optional
        What makes a candidate pair a duplicate: an exact Jaccard similarity of at least `threshold`, an estimate of at
        least `threshold` by the fingerprints, or sharing a bucket. The similarities of the latter two are estimates.
    missing : {"error", "empty"}, optional
        What ``None`` is: an error, or an empty text.
    max_memory : int or str, optional
        Bytes of memory, such as ``"2GB"``. Keys and sketches take half of it at most, and the rest of them goes to
        temporary files; bands are grouped one by one then, which takes 32 bytes a document. Texts that you hold are
        not counted.
    num_threads : int, optional
        Threads; default: every core that this process may use. The result does not depend on it.
    progress : callable or bool, optional
        Called as ``progress(stage, done, total)``: ``"fingerprints"`` by texts (total is ``None`` where their number is
        not known yet), ``"grouping"`` by bands, ``"texts"`` where they are read again, ``"comparing"`` by documents
        that share a bucket. ``True`` draws a bar by stage, with tqdm of the extra ``io``.

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

    With ``clusters="components"`` the earliest document of each connected component is kept, and the similarity of a
    removed one to it may be below `threshold`; a document is compared with at most the 1,000 before it in a bucket.

    Candidates whose fingerprints differ too much, by eight bits of each component, are not compared exactly. That loses
    a fifth at most of what `recall` may lose; with a plan given as `bands`, what the plan says. With plain bands, or a
    plan without a filter, it loses at most one in a thousand of the pairs at the threshold.

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
    started = time.perf_counter()
    threshold = _checks.fraction("threshold", threshold, zero=False)
    hasher = _hasher(hasher, shingles, num_seeds, random_state, bands)
    matching = _matching(hasher, threshold, verify, recall, bands)
    _checks.choice("clusters", clusters, CLUSTERS)
    report = _progress(progress)
    workers = _threads.number_of(num_threads)
    spill = Spill(memory_size("max_memory", max_memory))
    allowed = _allowed(missing)
    sources = [Collection("texts", texts, allowed)]
    if sources[0].size is not None:
        _priority(keep, sources[0].size)  # bad priorities show before any work
    if against is not None:
        sources.append(Collection("against", against, allowed))

    corpus = Corpus(sources, hasher, matching.bands, verify != "exact", spill, workers, report)
    new, total = corpus.offsets[1], corpus.total
    seconds["fingerprints"], started = time.perf_counter() - started, time.perf_counter()

    order = _by_priority(_priority(keep, new), corpus.sizes[:new])
    order = np.concatenate([np.arange(new, total, dtype=np.int32), order])
    order = spill.keep(order[corpus.has_shingles[order]])
    groups = corpus.group(order)
    distinct = groups.documents
    seconds["grouping"], started = time.perf_counter() - started, time.perf_counter()

    similarity = corpus.similarity(groups, matching.least_equal)
    depth = spill.array(groups.links.shape, np.int32)
    num_old = int((distinct >= new).sum())
    walk = Walk(similarity, groups.links, depth, num_old, matching.least, CAP, clusters == "components")
    done, step = 0, STEP
    while done < len(distinct):
        done = walk.run(done, min(done + step, len(distinct)))
        step = spill.paced(step, STEP)
        report("comparing", done, len(distinct))
    witness, value = walk.outcome()
    seconds["comparing"] = time.perf_counter() - started

    first = np.where(corpus.has_shingles, groups.firsts, np.arange(total, dtype=np.int32))
    removed = _removed(distinct, witness, value, order, first, new)
    near = _near(*walk.near(), distinct, new)
    keeps = np.ones(new, np.bool_)
    keeps[removed["document"]] = False
    labels = np.arange(new)
    labels[removed["document"]] = np.where(removed["side"] == "new", removed["kept"], -1)
    counts = {
        "documents": new,
        "old": total - new,
        "kept": int(keeps.sum()),
        "removed": len(removed),
        "for_old": int((removed["side"] == "old").sum()),
        "identical": int(removed["identical"].sum()),
        "clusters": len(np.unique(removed["kept"][removed["side"] == "new"])),
        "without_shingles": int((~corpus.has_shingles[:new]).sum()),
        "missing": corpus.num_missing,
        "candidates": walk.candidates,
        "compared": similarity.compared,
        "capped": walk.capped,
        "seconds": seconds,
    }
    if against is None:
        removed, near = removed[[name for name, _ in REMOVED]], near[[name for name, _ in NEAR]]
        removed, near = removed.astype(REMOVED), near.astype(NEAR)  # without the gap that a view has
    parameters = {**matching.parameters(), "clusters": clusters}
    return Deduplication(keeps, labels, removed, near, counts, parameters)


def find_pairs(
    a: Any,
    b: Any = None,
    *,
    threshold: float = 0.8,
    recall: float | None = None,
    bands: Bands | Plan | None = None,
    shingles: Shingles | None = None,
    hasher: MinHasher | None = None,
    num_seeds: int | None = None,
    random_state: int | None = 0,
    verify: str | None = "exact",
    missing: str = "error",
    max_memory: int | str | None = None,
    num_threads: int | None = None,
    progress: Progress | bool | None = None,
) -> Iterator[tuple[int, int, float]]:
    """Find the pairs of documents that are near duplicates, in one collection or between two.

    Parameters
    ----------
    a : iterable of str or bytes, numpy array, Arrow column, or callable
        The documents, as for `deduplicate`.
    b : iterable of str or bytes, numpy array, Arrow column, or callable, optional
        Others; pairs are then of one of `a` and one of `b`.
    threshold, recall, bands, shingles, hasher, num_seeds, random_state, verify, missing, max_memory
        As for `deduplicate`.
    num_threads, progress
        As for `deduplicate`.

    Returns
    -------
    iterator of tuple
        ``(i, j, similarity)`` in ascending order: positions in `a` with i < j, or i in `a` and j in `b`; each pair that
        shares a bucket and has an exact Jaccard similarity of at least `threshold`, once, copies included, however many
        there are. `verify` may say otherwise.

    Examples
    --------
    >>> import lsh
    >>> texts = ["A cat sat on the mat today.", "A dog ran in the park.", "A cat sat on the mat today!"]
    >>> list(lsh.find_pairs(texts, threshold=0.8, shingles=lsh.Shingles(4)))
    [(0, 2, 0.92)]
    """
    threshold = _checks.fraction("threshold", threshold, zero=False)
    hasher = _hasher(hasher, shingles, num_seeds, random_state, bands)
    matching = _matching(hasher, threshold, verify, recall, bands)
    report = _progress(progress)
    workers = _threads.number_of(num_threads)
    spill = Spill(memory_size("max_memory", max_memory))
    allowed = _allowed(missing)
    sources = [Collection("a", a, allowed)]
    if b is not None:
        sources.append(Collection("b", b, allowed))
    return _pairs(sources, matching, spill, workers, report)


def _pairs(
    sources: list[Collection], matching: _Matching, spill: Spill, num_threads: int, report: Progress
) -> Iterator[tuple[int, int, float]]:
    """Yield the pairs; chains lead from a document to later ones, or, with two collections, to those of the second."""
    two = len(sources) == 2
    whole = matching.verify != "exact"
    corpus = Corpus(sources, matching.hasher, matching.bands, whole, spill, num_threads, report)
    rows = corpus.offsets[1]
    documents = np.flatnonzero(corpus.has_shingles).astype(np.int32)[::-1].copy()
    entered = int((documents >= rows).sum()) if two else len(documents)
    groups = corpus.group(documents, entered)
    documents = groups.documents
    similarity = corpus.similarity(groups, matching.least_equal)
    places = np.full(corpus.total, -1, np.int32)
    places[documents] = np.arange(len(documents), dtype=np.int32)
    firsts = places[groups.firsts[documents]]  # whose bucket is the same, so that they are among the documents, too
    pairs = Pairs(similarity, groups.links, firsts, matching.least)
    place, offset, step = len(documents) - 1, rows if two else 0, STEP
    stop = groups.partners - 1 if two else -1
    while place > stop:
        place, found, values = pairs.next(place, max(place - step, stop))
        for partner, value in zip(documents[found].tolist(), values.tolist()):
            yield int(documents[place]), partner - offset, value
        place -= len(found) > 0
        step = spill.paced(step, STEP)
        report("comparing", len(documents) - 1 - place, len(documents) - 1 - stop)


class _Matching(NamedTuple):
    """What makes two documents near duplicates, checked."""

    hasher: MinHasher
    threshold: float
    verify: str | None
    bands: Bands
    plan: Plan | None
    least_equal: int | None  # components that the filter wants equal; ``None`` where no filter follows

    @property
    def least(self) -> float:
        """The least similarity of a duplicate, exact or estimated."""
        return 0.0 if self.verify is None else self.threshold

    def parameters(self) -> dict[str, Any]:
        """Return what `Deduplication.parameters` says of it."""
        return {name: getattr(self, name) for name in ("threshold", "hasher", "bands", "plan", "verify")}


def _matching(hasher: MinHasher, threshold: float, verify: object, recall: object, bands: object) -> _Matching:
    """Return the parameters that say what near duplicates are, checked."""
    checked: str | None = _checks.choice("verify", verify, VERIFY)
    exact = checked == "exact"
    chosen, plan = chosen_bands(bands, recall, threshold, hasher, filtered=exact)
    loss = _sketch_filter.LOSS if plan is None else plan.loss or _sketch_filter.LOSS
    least_equal = _sketch_filter.least_equal(hasher.num_seeds, threshold, loss) if exact else None
    return _Matching(hasher, threshold, checked, chosen, plan, least_equal)


def _hasher(hasher: object, shingles: object, num_seeds: object, random_state: int | None, bands: object) -> MinHasher:
    """Return the hasher that was given, or one of what was given in its place."""
    if hasher is None:
        if num_seeds is None:
            num_seeds = bands.num_seeds if isinstance(bands, Plan) else DEFAULT_SEEDS
        count = _checks.whole_number("num_seeds", num_seeds, 1, MAX_FSS_SEEDS)
        return MinHasher(count, random_state=random_state, scheme="fss", shingles=checked_shingles(shingles))
    if not isinstance(hasher, MinHasher):
        raise TypeError(f"hasher must be a MinHasher, got {type(hasher).__name__}")
    if num_seeds is not None:
        raise ValueError("num_seeds and hasher both say how many seeds there are; give one of them")
    if random_state != 0:
        raise ValueError("random_state and hasher both say what the seeds are; give one of them")
    if shingles is not None and checked_shingles(shingles) != hasher.shingles:
        raise ValueError(f"shingles must be the hasher's ({hasher.shingles!r}) or left out, got {shingles!r}")
    return hasher


def _allowed(missing: Any) -> bool:
    """Tell whether `missing` lets a text be ``None``."""
    return bool(_checks.choice("missing", missing, ("error", "empty")) == "empty")


def _progress(progress: Any) -> Progress:
    if progress is None or progress is False:
        return lambda stage, done, total: None
    if progress is True:
        return _Bars()
    if not callable(progress):
        raise TypeError(
            f"progress must be True, or callable as progress(stage, done, total), got {type(progress).__name__}"
        )
    return progress  # type: ignore[no-any-return]


class _Bars:
    """A bar of tqdm for each stage."""

    def __init__(self) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise ImportError(
                "progress=True needs tqdm: install lsh-dedup[io], or pass a callable as progress"
            ) from error
        self._tqdm = tqdm
        self._stage: str | None = None
        self._bar: Any = None

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if stage != self._stage:
            if self._bar is not None:
                self._bar.close()
            unit = " bands" if stage == "grouping" else " documents"
            self._stage, self._bar = stage, self._tqdm(desc=stage, total=total, unit=unit, unit_scale=True)
        self._bar.update(done - self._bar.n)
        if done == total:
            self._bar.close()


def _priority(keep: Any, total: int) -> Any:
    """Return `keep` checked: one of its names, or an array of finite numbers."""
    if isinstance(keep, str):
        return _checks.choice("keep", keep, ("first", "last", "longest"))
    try:
        priority = np.asarray(keep)
        if keep is None or priority.dtype.kind in "cSUTmM":
            raise TypeError
        if priority.dtype.kind not in "iu":
            priority = _numbers(priority, keep)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            f"keep must be 'first', 'last', 'longest' or an array of numbers, got {type(keep).__name__}{_of(keep)}"
        ) from None
    if priority.shape != (total,):
        raise ValueError(f"keep must hold one number a text ({total}), got shape {priority.shape}")
    if not np.isfinite(priority).all():
        raise ValueError(f"keep must hold finite numbers, got {priority[~np.isfinite(priority)][0]} among them")
    return priority


def _numbers(priority: Array, given: Any) -> Array:
    """Return priorities as floats, or as their ranks where whole numbers are too large for those."""
    if priority.dtype.kind == "O" and any(isinstance(value, _checks.TEXT_TYPES) for value in priority.ravel()):
        raise TypeError
    numbers = priority.astype(np.float64)
    if priority.ndim == 1 and np.isfinite(numbers).all() and (np.abs(numbers) >= 2**53).any():
        exact = np.empty(len(priority), object)
        exact[:] = list(given)
        return np.unique(exact, return_inverse=True)[1].astype(np.float64)
    return numbers


def _of(values: Any) -> str:
    dtype = getattr(values, "dtype", None)
    return "" if dtype is None else f" of {dtype}"


def _by_priority(priority: Any, sizes: Array) -> Array:
    """Return the positions in the order in which the documents are walked, int32."""
    if isinstance(priority, str) and priority == "first":
        return np.arange(len(sizes), dtype=np.int32)
    if isinstance(priority, str) and priority == "last":
        return np.arange(len(sizes) - 1, -1, -1, dtype=np.int32)
    values: Array = sizes if isinstance(priority, str) else priority
    ascending = np.argsort(values[::-1], kind="stable")  # of the reversed array, so that ties end up by position
    order: Array = (len(values) - 1 - ascending[::-1]).astype(np.int32)
    return order


def _removed(distinct: Array, witness: Array, value: Array, order: Array, first: Array, new: int) -> Array:
    """Put together what the walk decided; a copy goes with the first of its bytes."""
    total = len(first)
    by, similarity = np.full(total, -1, np.int32), np.zeros(total)
    decided = witness >= 0
    by[distinct[decided]] = distinct[witness[decided]]
    similarity[distinct[decided]] = value[decided]
    copies = order[(first[order] != order) & (order < new)]
    originals = first[copies]
    stays = by[originals] < 0
    by[copies] = np.where(stays, originals, by[originals])
    similarity[copies] = np.where(stays, 1.0, similarity[originals])

    documents = np.flatnonzero(by[:new] >= 0)
    removed = np.empty(len(documents), [*REMOVED, SIDE])
    removed["document"], removed["similarity"] = documents, similarity[documents]
    removed["identical"] = first[documents] == first[by[documents]]
    removed["kept"], removed["side"] = _sided(by[documents], new)
    return removed


def _near(documents: Array, others: Array, similarities: Array, distinct: Array, new: int) -> Array:
    """Put together the pairs just below the threshold; the walk met `documents` later."""
    i, j = distinct[documents].astype(np.int64), distinct[others].astype(np.int64)
    swap = (j < i) & (j < new)
    i[swap], j[swap] = j[swap], i[swap]
    chosen = np.lexsort((j, i, -similarities))
    near = np.empty(len(chosen), [*NEAR, SIDE])
    near["i"], near["similarity"] = i[chosen], similarities[chosen]
    near["j"], near["side"] = _sided(j[chosen], new)
    return near


def _sided(positions: Array, new: int) -> tuple[Array, Array]:
    """Return positions among all documents as positions on their side, and which side that is."""
    old = positions >= new
    return np.where(old, positions - new, positions), SIDES[old.astype(np.intp)]
