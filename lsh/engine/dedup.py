"""Near-duplicate documents of a whole corpus: `deduplicate` and `find_pairs`.

The steps: texts, fingerprints, band keys, chains of documents in the same bucket, the sketch filter, exact
similarities, and a decision for each document. This module defines what is kept and why; `engine.corpus` and the
compiled modules do the steps. Every removed document has a witness: a kept document whose exact Jaccard similarity to
it is at least `threshold`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsh.base import checks, errors, threads
from lsh.base.arrays import Array
from lsh.base.budget import MemoryBudget, bounded
from lsh.base.progress import checked_progress
from lsh.engine import partitions
from lsh.engine.collection import Collection
from lsh.engine.corpus import DOCUMENTS_STEP, CollisionError, Corpus
from lsh.engine.index_candidates import IndexCandidates
from lsh.engine.index_source import IndexSnapshot, IndexSource
from lsh.engine.layout import Layout, Partition
from lsh.engine.matching import Matching, check_length, rank_by_priority, refuse_other_arguments
from lsh.engine.placing import merged
from lsh.engine.result import Deduplication, Duplicate
from lsh.engine.saving import SavedRows
from lsh.links.comparing import Pairs
from lsh.links.linking import Order, positions_of
from lsh.sketch.bands import Bands
from lsh.sketch.hasher import MinHasher
from lsh.sketch.planning import Plan
from lsh.text.shingling import Shingles
from lsh.typing import Clusters, FoundId, Keep, Missing, Progress, SupportsArray, TextsOrCallable, Verify

__all__ = ["deduplicate", "find_pairs"]

LIMIT = 1 << 18  # a document is compared with at most so many members of a bucket, the first ones

SIDES = np.array(["new", "old"])

REMOVED = [("document", np.int64), ("kept", np.int64), ("similarity", np.float64), ("identical", np.bool_)]
NEAR = [("i", np.int64), ("j", np.int64), ("similarity", np.float64)]
SIDE = ("side", SIDES.dtype)
PAIR = np.dtype([("document", np.int32), ("partner", np.int32), ("similarity", np.float64)])


class Running(NamedTuple):
    """Memory, threads and progress of a run, and whether it finds `Deduplication.near`; the rest is the same."""

    budget: MemoryBudget
    num_threads: int
    report: Progress
    saved: SavedRows | None = None
    with_near: bool = True

    @classmethod
    def checked(
        cls,
        max_memory: int | str | None = None,
        temp_dir: str | os.PathLike[str] | None = None,
        num_threads: int | None = None,
        progress: Progress | bool | None = None,
        saved: SavedRows | None = None,
    ) -> Running:
        """Return the values of these parameters of `deduplicate`, and what a run saves that can be killed."""
        report, workers = checked_progress(progress), threads.number_of(num_threads)
        return cls(bounded(max_memory, temp_dir), workers, report, saved)


def deduplicate(
    texts: TextsOrCallable,
    threshold: float | None = None,
    *,
    recall: float | None = None,
    bands: Bands | Plan | None = None,
    shingles: Shingles | None = None,
    hasher: MinHasher | None = None,
    num_seeds: int | None = None,
    random_state: int | None = 0,
    against: TextsOrCallable | IndexSource | None = None,
    keep: Keep | Sequence[float] | SupportsArray = "first",
    clusters: Clusters = "representative",
    verify: Verify = "exact",
    missing: Missing = "error",
    max_memory: int | str | None = None,
    temp_dir: str | os.PathLike[str] | None = None,
    num_threads: int | None = None,
    progress: Progress | bool | None = None,
) -> Deduplication:
    """Find the near duplicates in a corpus, and decide which documents to keep.

    Documents whose fingerprints agree in at least one band share a bucket, and only such documents are compared. Each
    removed document has a witness: a kept document that is similar to it.

    Parameters
    ----------
    texts : iterable of str or bytes, numpy array, Arrow column, or callable
        ``n`` documents, as for `MinHasher.fingerprints`. A callable must return an iterable of the same texts at each
        call. It is called twice, or once more where a plan for more documents turns out to be needed, and only the
        texts that are compared are held in memory.
    threshold : float, optional
        Documents with this Jaccard similarity or a higher one are near duplicates; more than 0 and at most 1. Default:
        that of the index where `against` is one, else 0.8.
    recall : float, optional
        The least probability with which a pair at the threshold is found, more than 0 and less than 1; more similar
        pairs are found with a higher probability. Default 0.99, if `bands` is not given. With scheme ``"fss"``, which
        is the default, up to 1.5 % may be missed in place of 1 % where two texts together have 2 to 5 different
        shingles, or up to 10 with more than 128 components; see `Plan.recall_at`.
    bands : Bands or Plan, optional
        The bands to use, in place of `recall`. A plan must have the same threshold and number of seeds, and the same
        shingles if it has any; to use its bands with other values, pass ``plan.bands``. Default: the bands of
        ``lsh.plan(threshold, recall, num_seeds, documents=n)``, n being the number of all documents.
    shingles : Shingles, optional
        How a text becomes a set of shingles. Default: the shingles of `hasher`, else those of a plan that is given as
        `bands`, else ``Shingles(8)``.
    hasher : MinHasher, optional
        Default: ``MinHasher(num_seeds, random_state=random_state, scheme="fss", shingles=shingles)``.
    num_seeds : int, optional
        The number of components of a fingerprint. Default: that of a plan that is given as `bands`, else 128 up to
        65,536 documents, and for more of them 128 to 1,024, as `plan` says. An error if `hasher` is given.
    random_state : int or None, optional
        Determines the seeds of the hash functions; ``None`` draws new ones. An error if `hasher` is given.
    against : iterable of str or bytes, numpy array, Arrow column, callable, or Index, optional
        Old documents, such as a test set that must not be in a training set. They are all kept, they come before all of
        `texts`, and they are not compared with each other. The documents of `texts` are compared with each other, too.
        To compare them with old documents only, use ``{i for i, j, similarity in find_pairs(texts, others=against)}``.
        An `Index` is searched, not read; see Notes.
    keep : {"first", "last", "longest"} or array_like, optional
        Which one of several near duplicates to keep: the first, the last, the one with the most UTF-8 bytes, or the one
        with the highest priority, if one priority is given for each text: finite numbers, or datetime64 (``numpy.array(
        dates, "datetime64[us]")`` converts other dates). Of documents with the same priority the first is kept.
    clusters : {"representative", "components"}, optional
        ``"representative"``: a document is removed if it is similar to a kept one. ``"components"``: it is removed if
        similar pairs connect it with a kept one, as in other tools; the two may be less similar than `threshold`.
    verify : {"exact", "sketch", None}, optional
        When a candidate pair, two documents that share a bucket, is a near duplicate. ``"exact"``: if its exact Jaccard
        similarity is at least `threshold`. ``"sketch"``: if the similarity that is estimated from the fingerprints is.
        ``None``: always. The similarities in the result are estimates except with ``"exact"``.
    missing : {"error", "empty"}, optional
        What to do with ``None``: raise a ValueError, or treat it as an empty text.
    max_memory : int or str, optional
        Limit of memory in bytes for the data of the documents, or text such as ``"2GB"``; at least 100 KB, and 24 bytes
        for each document (36, if `keep` is ``"longest"`` or an array), and more if very many documents share a bucket:
        an error names the number. Data beyond the limit is in temporary files. Not counted are texts that the caller
        holds, the result, and up to 120 MB for the interpreter, numpy and the texts that are being read (more for a
        text of more than 8 MB, which has to be in memory while it is read and compared). Default: no limit.
    temp_dir : str or os.PathLike, optional
        The folder for temporary files, which have no name and disappear with the process. Default: the folder that
        the environment variable TMPDIR names, or else that of the system.
    num_threads : int, optional
        Number of threads. Default: one for each core that this process may use. Fewer are used where the system does
        not start so many. The result does not depend on it.
    progress : callable or bool, optional
        Called as ``progress(stage, done, total)``. The stages are ``"fingerprints"``, counted in texts (``total`` is
        ``None`` while their number is unknown); ``"grouping"``, in bands; ``"texts"``, if the texts are read again; and
        ``"comparing"``, in documents that share a bucket. ``True`` shows a bar for each stage if tqdm is installed,
        else a line on standard error.

    Returns
    -------
    Deduplication
        The documents to keep, and each removed document with its witness.

    Raises
    ------
    TypeError, ValueError
        If a text or a parameter is wrong; the message names it. If `max_memory` is too small for the number of
        documents, the message has the least one, of a stream the least for the documents that were read so far.
    OSError
        If the folder for temporary files cannot be written to, or has too little space.

    Notes
    -----
    Documents are decided in the order of `keep`. A document is removed if an earlier kept document shares a bucket with
    it in any band and has an exact Jaccard similarity of at least `threshold`. The most similar one is its witness; of
    equally similar ones, the earliest, but a copy with the same bytes in `against` first. Of identical texts only the
    first one can be kept. Texts without shingles are kept.

    With ``clusters="components"`` the earliest document of each connected component is kept and is the witness of the
    others. A document is compared with all that share a bucket with it, unless they are connected already. This is many
    times slower than ``"representative"`` where thousands of documents share a bucket and are not similar enough, as
    texts of one template may be.

    Comparisons are left out in buckets of very many documents only: a document is compared with at most 65,536 others
    of a bucket to find out which of them it may be similar to, and then with the first 262,144 of these that are kept.
    ``capped`` in `Deduplication.summary` counts the comparisons that were left out; it is 0 almost always.

    With ``verify="exact"``, a candidate pair is compared exactly only if it passes the sketch filter: enough components
    of the two fingerprints must have the same lowest 8 bits. Of the pairs at the threshold, the filter loses at
    most a fifth of those that `recall` allows to be missed. With a plan as `bands` it loses at most the share
    ``plan.loss``; with bands that are given without a plan, or a plan whose ``loss`` is 0, one pair in a thousand, or
    up to nine where two texts together have 2 to 5 different shingles.

    Where `against` is an `Index`, the hasher and the bands are those of the index; a parameter that differs is an
    error, and so is a threshold at which the bands find fewer than half of the pairs. The result is that of the texts
    of the index as a list in its order with ``hasher=index.hasher, bands=index.bands``, except that old documents are
    named by `Deduplication.old_ids`. Its texts are read only where two documents are compared by them, or may be
    identical. If the index cannot return texts, ``verify="exact"`` is an error. With another `verify`, an index that
    stores 8 bits of each component gives estimates from these bits for all pairs, and ``identical`` is False for an old
    document whose text is unknown.

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
    _refuse_collection(threshold, "against")
    given: dict[str, Any] = {"recall": recall, "bands": bands, "shingles": shingles, "hasher": hasher}
    given |= {"num_seeds": num_seeds, "random_state": random_state}
    given |= {"verify": verify, "clusters": clusters, "keep": keep, "missing": missing}
    old = against._snapshot() if isinstance(against, IndexSource) else against
    matching = _matching("against", old, threshold, given)
    return decide(matching, texts, old, Running.checked(max_memory, temp_dir, num_threads, progress))


def decide(
    matching: Matching,
    texts: TextsOrCallable,
    against: TextsOrCallable | IndexSnapshot | None,
    run: Running,
    priorities: Callable[[], Array] | None = None,
    references: Array | None = None,
) -> Deduplication:
    """Do the work of `deduplicate`, whose parameters are checked; the documents of an index have its `Matching`.

    `priorities` returns the priority of each document once the texts were read, in place of the `keep` of `matching`.
    `references` has a flag for each text: those that are kept. Then the others are compared with these only.
    """
    seconds: dict[str, float] = {}
    started = time.perf_counter()
    collections = collections_of(
        {"texts": texts, "against": None if isinstance(against, IndexSnapshot) else against}, matching.missing
    )
    size = collections[0].size
    if size is not None:
        check_length(matching.keep, size)  # an error before any work
    members = None
    if isinstance(against, IndexSnapshot):
        matching, members = _members(matching, against)
    by_position = priorities is None and isinstance(matching.keep, str) and matching.keep in ("first", "last")
    corpus = Corpus(collections, matching, *run, not by_position, members)
    seconds["fingerprints"] = time.perf_counter() - started
    keep = matching.keep if priorities is None else priorities()
    check_length(keep, corpus.offsets[1])
    order = _by_priority(keep, corpus)
    return _result(corpus, order, against is not None, seconds, members, references)


def _matching(
    name: str, second: TextsOrCallable | IndexSnapshot | None, threshold: object, given: dict[str, Any]
) -> Matching:
    """Return the parameters that are given; `second` is the value of the parameter `name`."""
    if isinstance(second, IndexSnapshot):
        return Matching.of_index(name, second, threshold, **given)
    return Matching(threshold, **given)


def _members(matching: Matching, snapshot: IndexSnapshot) -> tuple[Matching, IndexCandidates]:
    """Return the members of the corpus that an index has, and the parameters with the collisions of its sketches."""
    if not snapshot.has_texts and matching.is_exact:
        reason = "compares texts, and the index stores none: open it with texts=, a function id -> text, or pass "
        remedy = errors.Parameter("verify", "sketch") + " to compare estimates"
        raise errors.bad_value(errors.Parameter("verify", "exact"), reason + remedy)
    return matching.with_collisions(snapshot.collisions), IndexCandidates(snapshot, matching.is_exact)


def _result(
    corpus: Corpus,
    order: Order,
    sides: bool,
    seconds: dict[str, float],
    old: IndexCandidates | None = None,
    references: Array | None = None,
) -> Deduplication:
    """Decide all documents of a corpus, and return the result.

    `sides` says whether there are old documents, and `old` has those of an index, which are named by their ids.
    """
    started, new, matching = time.perf_counter(), corpus.offsets[1], corpus.matching
    while True:
        layout = Layout(corpus, order, copies=references is not None)
        seconds["grouping"], started = time.perf_counter() - started, time.perf_counter()
        try:
            decided = _decided(corpus, layout, matching, references)
            break
        except CollisionError:
            corpus.read()
    corpus.budget.trim()
    keeps = np.ones(new, np.bool_)
    removed, near = _removed(layout, decided, keeps, sides), _near(layout, decided, new, sides)
    for table in (removed, near):
        table["similarity"] = matching.corrected(table["similarity"])
    counts, old_ids = _counts(corpus, layout, removed, decided, seconds), None
    parameters = matching.parameters()
    if old is not None:
        counts["old"], old_ids = len(old.snapshot), _named(old, removed, near)
        parameters["recall"] = matching.recall
    seconds["comparing"] = time.perf_counter() - started
    return Deduplication(keeps, removed, near, counts, parameters, old_ids)


def duplicates_in(
    stored: IndexSnapshot,
    threshold: float | None,
    keep: Literal["first", "last"],
    clusters: Clusters,
    verify: Verify,
    run: Running,
) -> list[Duplicate]:
    """Return the documents of an index to remove, in its order; see `Index.deduplicate`."""
    _refuse_collection(threshold, "it")
    keep = checks.choice("keep", keep, ("first", "last"))
    matching = Matching.of_index("it", stored, threshold, verify=verify, clusters=clusters, keep=keep)
    matching, members = _members(matching, stored)
    corpus = Corpus([], matching, *run._replace(with_near=False), False, members)
    removed = _result(corpus, _by_priority(keep, corpus), False, {}).removed
    ids, kept = members.ids(removed["document"]), members.ids(removed["kept"])
    values = removed["similarity"].tolist(), removed["identical"].tolist()
    return list(map(Duplicate._make, zip(ids, kept, *values)))


def pairs_in(
    stored: IndexSnapshot, threshold: float | None, verify: Verify, run: Running
) -> Iterator[tuple[FoundId, FoundId, float]]:
    """Return the pairs of near duplicates in an index; see `Index.find_pairs`."""
    _refuse_collection(threshold, "it")
    matching = Matching.of_index("it", stored, threshold, verify=verify)
    matching, members = _members(matching, stored)
    return _pairs([], matching, run, members)


def find_pairs(
    texts: TextsOrCallable,
    threshold: float | None = None,
    *,
    others: TextsOrCallable | IndexSource | None = None,
    recall: float | None = None,
    bands: Bands | Plan | None = None,
    shingles: Shingles | None = None,
    hasher: MinHasher | None = None,
    num_seeds: int | None = None,
    random_state: int | None = 0,
    verify: Verify = "exact",
    missing: Missing = "error",
    max_memory: int | str | None = None,
    temp_dir: str | os.PathLike[str] | None = None,
    num_threads: int | None = None,
    progress: Progress | bool | None = None,
) -> Iterator[tuple[int, Any, float]]:
    """Find the pairs of near-duplicate documents, in one collection or between two.

    Documents whose fingerprints agree in at least one band share a bucket, and only such documents are compared.

    Parameters
    ----------
    texts : iterable of str or bytes, numpy array, Arrow column, or callable
        The documents, as for `deduplicate`.
    threshold : float, optional
        The least Jaccard similarity of a pair, more than 0 and at most 1. Default: that of the index where `others` is
        one, else 0.8.
    others : iterable of str or bytes, numpy array, Arrow column, callable, or Index, optional
        A second collection: find pairs of one document of `texts` and one of `others`, and no other pairs. An `Index`
        is searched, not read, as in `deduplicate`.
    recall, bands, shingles, hasher, num_seeds, random_state, verify, missing
        As for `deduplicate`.
    max_memory, temp_dir, num_threads, progress
        As for `deduplicate`.

    Returns
    -------
    iterator of tuple
        ``(i, j, similarity)`` in ascending order, each pair once: i and j are positions in `texts` with i < j, or i is
        a position in `texts` and j one in `others`, or the id of a document where `others` is an `Index`, whose order
        counts then. These are all pairs that share a bucket and have an exact Jaccard
        similarity of at least `threshold` (see `verify`), identical texts included. Their number is not limited.

    Raises
    ------
    TypeError, ValueError
        If a text or a parameter is wrong, or `max_memory` is too small for the number of documents.
    OSError
        If the folder for temporary files cannot be written to, or has too little space.

    Examples
    --------
    >>> import lsh
    >>> texts = ["A cat sat on the mat today.", "A dog ran in the park.", "A cat sat on the mat today!"]
    >>> list(lsh.find_pairs(texts, threshold=0.8, shingles=lsh.Shingles(4)))
    [(0, 2, 0.92)]
    """
    _refuse_collection(threshold, "others")
    given: dict[str, Any] = {"recall": recall, "bands": bands, "shingles": shingles, "hasher": hasher}
    given |= {"num_seeds": num_seeds, "random_state": random_state, "verify": verify, "missing": missing}
    second = others._snapshot() if isinstance(others, IndexSource) else others
    matching = _matching("others", second, threshold, given)
    return pairs(matching, texts, second, Running.checked(max_memory, temp_dir, num_threads, progress))


def pairs(
    matching: Matching, texts: TextsOrCallable, others: TextsOrCallable | IndexSnapshot | None, run: Running
) -> Iterator[tuple[int, Any, float]]:
    """Do the work of `find_pairs`, whose parameters are checked; the documents of an index have its `Matching`."""
    collections = collections_of(
        {"texts": texts, "others": None if isinstance(others, IndexSnapshot) else others}, matching.missing
    )
    members = None
    if isinstance(others, IndexSnapshot):
        matching, members = _members(matching, others)
    return _pairs(collections, matching, run, members)


def _pairs(
    collections: list[Collection], matching: Matching, run: Running, more: IndexCandidates | None
) -> Iterator[tuple[Any, Any, float]]:
    """Yield the pairs; links lead from a document to later ones, or with two collections to those of the second."""
    two = len(collections) + (more is not None) == 2
    corpus, budget = Corpus(collections, matching, *run, False, more), run.budget
    matching = corpus.matching
    rows, total = corpus.offsets[1], corpus.total
    order = Order([(rows, total, True), (0, rows, True)], entered=1 if two else 2, old_from=rows)
    while True:
        layout = Layout(corpus, order, in_order=True, copies=True)
        try:
            with budget.released():
                found = _found(corpus, layout, matching, run.num_threads, rows if two else None)
            break
        except CollisionError:
            corpus.read()
    try:
        with budget.released():
            for documents, partners, values in found:
                ids = documents.tolist() if two or more is None else more.ids(documents)
                others = partners.tolist() if more is None else more.ids(partners)
                yield from zip(ids, others, matching.corrected(values).tolist())
    finally:  # closed by the caller, CPython 3.10 leaves a cycle of this frame and the error; it holds no files then
        del corpus, layout, found


def _found(
    corpus: Corpus, layout: Layout, matching: Matching, num_threads: int, second: int | None
) -> Iterator[tuple[Array, Array, Array]]:
    """Return the pairs: their documents in ascending order, their partners, the similarities.

    Those of several partitions are stored, each partition in order, and merged at the end. `second` is where the second
    of two collections begins: pairs are between the two.
    """
    budget, offset, done = corpus.budget, second or 0, 0
    total = len(layout.documents) - layout.num_references

    def pairs_of(partition: Partition) -> Iterator[tuple[Array, Array, Array]]:
        documents, last = partition.documents, len(partition.documents) - 1
        firsts = (last - np.searchsorted(documents[::-1], layout.firsts[documents])).astype(np.int32)
        stop = -1 if second is None else int(np.count_nonzero(documents >= second)) - 1

        def told(document: int) -> None:
            corpus.report("comparing", done + last - document, total)

        make_pairs = partial(_make_pairs, partition, firsts, matching.min_similarity)
        step = partitions.DOCUMENTS_STEP
        for numbers, partners, values in partitions.pairs(make_pairs, last, stop, num_threads, told, step):
            yield documents[numbers], documents[partners] - np.int32(offset), values

    stored, bounds = budget.column(PAIR), [0]
    for partition in layout.partitions(matching.min_equal):
        found = pairs_of(partition)
        if len(partition.documents) == len(layout.documents):
            return found
        for some in found:
            pairs = np.empty(len(some[0]), PAIR)
            for name, values in zip(PAIR.names or (), some):
                pairs[name] = values
            stored.append(pairs)
        bounds.append(len(stored))
        done += len(partition.documents) if second is None else int(np.count_nonzero(partition.documents < second))
        del partition, found
    ordered = merged(stored, bounds, "document", budget.free // 4)
    return ((pairs["document"], pairs["partner"], pairs["similarity"]) for pairs in ordered)


def _make_pairs(partition: Partition, firsts: Array, min_similarity: float) -> Pairs:
    return Pairs(partition.make_similarity(), partition.links, firsts, min_similarity)


def _refuse_collection(threshold: object, second: str) -> None:
    """Raise an error for a collection in place of the threshold; `second` is the parameter for a second collection."""
    if not isinstance(threshold, str) and (isinstance(threshold, Iterable) or callable(threshold)):
        reason = f"must be a number (more than 0 and at most 1), got {type(threshold).__name__}; pass a second "
        raise errors.bad_type("threshold", f"{reason}collection as {second}=")


def collections_of(
    given: dict[str, TextsOrCallable | None], missing: Missing, number: str = "threshold"
) -> list[Collection]:
    """Return the given collections, with the names of their parameters; of two, the second may be ``None``.

    `number` is the parameter that is meant where a number is given.
    """
    allowed = missing == "empty"
    second = list(given)[1]
    texts: object = given["texts"]
    if isinstance(texts, IndexSource):
        method = "deduplicate" if second == "against" else "find_pairs"
        raise errors.bad_type("texts", f"must be a collection of texts, got an index; use its method {method}")
    for name, value in given.items():
        refuse_other_arguments(name, value, number)
    if texts is given[second] and isinstance(texts, Iterator):
        reason = f"must not be the same {type(texts).__name__}, which yields each text only once; pass a list, or a "
        raise errors.bad_value("texts", f"and {second} {reason}callable that returns a new iterator")
    return [Collection(name, one, allowed) for name, one in given.items() if one is not None or name == "texts"]


def _by_priority(priority: Keep | Array, corpus: Corpus) -> Order:
    """Return the order in which documents are decided: old documents first, then by priority."""
    new, total = corpus.offsets[1], corpus.total
    if isinstance(priority, str) and priority in ("first", "last"):
        return Order([(new, total, False), (0, new, priority == "last")], old_from=new)
    order = np.empty(total, np.int32)
    order[: total - new] = np.arange(new, total, dtype=np.int32)
    values = corpus.sizes.read(0, new) if isinstance(priority, str) else priority
    rank_by_priority(values, order[total - new :])
    return Order([(0, total, False)], order, old_from=new)


def _decided(corpus: Corpus, layout: Layout, matching: Matching, references: Array | None) -> partitions.ClusterResult:
    """Decide the documents of a layout."""
    total, components = len(layout.documents), matching.clusters == "components"
    with corpus.budget.released():
        return partitions.decide(
            layout.partitions(matching.min_equal),
            partitions.ClusterOptions(
                layout.num_references,
                matching.min_similarity,
                LIMIT,
                components,
                corpus.low_bits.bits,
                corpus.family_bytes,
                0.0 if corpus.with_near else 1.0,
                references,
                None if components else layout.copied(),
            ),
            lambda shape: corpus.budget.array(shape, np.int32),
            corpus.num_threads,
            lambda done: corpus.report("comparing", done, total),
        )


def _removed(layout: Layout, decided: partitions.ClusterResult, keeps: NDArray[np.bool_], with_sides: bool) -> Array:
    """Return the table of removed documents, and clear their flags in `keeps`, which has a flag for each new document.

    A copy has the first copy as its witness if that is kept, else the most similar document that is kept before the
    copy. Besides the table, this takes about 8 bytes for each removed document.
    """
    first, distinct, copies = layout.firsts, layout.documents, layout.copies(len(keeps))
    for at in range(0, len(decided.removed.documents), DOCUMENTS_STEP):
        keeps[distinct[decided.removed.documents[at : at + DOCUMENTS_STEP]]] = False
    keeps[copies] = False
    places = positions_of(~keeps)
    removed = np.empty(len(places), [*REMOVED, SIDE] if with_sides else REMOVED)
    removed["document"] = places
    for at in range(0, len(decided.removed.documents), DOCUMENTS_STEP):
        some = slice(at, at + DOCUMENTS_STEP)
        rows = np.searchsorted(places, distinct[decided.removed.documents[some]])
        removed["kept"][rows] = distinct[decided.removed.others[some]]
        removed["similarity"][rows] = decided.removed.similarities[some]
    for at in range(0, len(copies), DOCUMENTS_STEP):
        own = copies[at : at + DOCUMENTS_STEP]
        originals = first[own]
        rows, source = np.searchsorted(places, own), np.searchsorted(places, originals)
        source = np.minimum(source, len(places) - 1)
        is_removed = places[source] == originals
        removed["kept"][rows] = np.where(is_removed, removed["kept"][source], originals)
        removed["similarity"][rows] = np.where(is_removed, removed["similarity"][source], 1.0)
    _set_better(removed, layout, decided, copies)
    for at in range(0, len(removed), DOCUMENTS_STEP):
        part = removed[at : at + DOCUMENTS_STEP]
        part["identical"] = first[part["document"]] == first[part["kept"]]
        _set_position(part, "kept", part["kept"], len(keeps))
    return removed


def _set_better(removed: Array, layout: Layout, decided: partitions.ClusterResult, copies: Array) -> None:
    """Set the witnesses of copies for which a better one is kept after the first copy; see `GreedyClusterer.better`."""
    better = decided.better
    if not len(better.documents):
        return
    documents, kept = layout.documents[better.documents], layout.documents[better.others]
    parts = (copies[at : at + DOCUMENTS_STEP] for at in range(0, len(copies), DOCUMENTS_STEP))
    own = np.concatenate([part[np.isin(layout.firsts[part], documents)] for part in parts])
    ranks = layout.ranks_of(np.concatenate([kept, own]))
    ascending = np.lexsort((ranks[: len(kept)], documents))
    found = documents[ascending].astype(np.int64) * (len(ranks) + 1) + ranks[: len(kept)][ascending]
    wanted = layout.firsts[own].astype(np.int64) * (len(ranks) + 1) + ranks[len(kept) :]
    last = np.searchsorted(found, wanted) - 1  # the last one that is kept before the copy, if it is of this text
    is_better = (last >= 0) & (documents[ascending[last]] == layout.firsts[own])
    rows, chosen = np.searchsorted(removed["document"], own[is_better]), ascending[last[is_better]]
    removed["kept"][rows], removed["similarity"][rows] = kept[chosen], better.similarities[chosen]


def _named(members: IndexCandidates, removed: Array, near: Array) -> tuple[FoundId, ...]:
    """Return the ids of the old documents of two tables, and replace their numbers there by positions among these."""
    places = [np.flatnonzero(table["side"] == "old") for table in (removed, near)]
    numbers = [table[name][old] for table, name, old in zip((removed, near), ("kept", "j"), places)]
    named, positions = np.unique(np.concatenate(numbers), return_inverse=True)
    removed["kept"][places[0]] = positions[: len(places[0])]
    near["j"][places[1]] = positions[len(places[0]) :]
    return tuple(members.ids(named))


def _counts(
    corpus: Corpus, layout: Layout, removed: Array, decided: partitions.ClusterResult, seconds: dict[str, float]
) -> dict[str, Any]:
    """Return the counts for `Deduplication.summary`."""
    new = corpus.offsets[1]
    kept, for_old, clusters = removed["kept"], 0, np.zeros(new, np.bool_)  # documents that are kept in place of others
    if "side" in (removed.dtype.names or ()):
        kept, for_old = kept[removed["side"] == "new"], int((removed["side"] == "old").sum())
    clusters[kept] = True
    return {
        "documents": new,
        "old": corpus.total - new,
        "kept": new - len(removed),
        "removed": len(removed),
        "for_old": for_old,
        "identical": int(removed["identical"].sum()),
        "clusters": int(np.count_nonzero(clusters)),
        "without_shingles": new - int(np.count_nonzero(corpus.has_shingles[:new])),
        "missing": corpus.num_missing,
        "candidates": layout.shared,
        "connected": len(layout.documents),
        "compared": decided.compared,
        "capped": layout.left_out + decided.left_out,
        "seconds": seconds,
    }


def _near(layout: Layout, decided: partitions.ClusterResult, new: int, with_sides: bool) -> Array:
    """Return the table of pairs just below the threshold."""
    i, j = (layout.documents[numbers].astype(np.int64) for numbers in decided.near[:2])
    similarities = decided.near.similarities
    swap = (j < i) & (j < new)
    i[swap], j[swap] = j[swap], i[swap]
    chosen = np.lexsort((j, i, -similarities))
    near = np.empty(len(chosen), [*NEAR, SIDE] if with_sides else NEAR)
    near["i"], near["similarity"] = i[chosen], similarities[chosen]
    _set_position(near, "j", j[chosen], new)
    return near


def _set_position(table: Array, name: str, positions: Array, new: int) -> None:
    """Set a field to positions in `texts` or `against`, from positions among all documents, and the side of each."""
    old = positions >= new
    table[name] = np.where(old, positions - new, positions)
    if "side" in (table.dtype.names or ()):
        table["side"] = SIDES[old.astype(np.intp)]
