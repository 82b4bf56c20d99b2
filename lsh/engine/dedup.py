"""Near-duplicate documents of a whole corpus: `deduplicate` and `find_pairs`.

The steps: texts, fingerprints, band keys, chains of documents in the same bucket, the sketch filter, exact
similarities, and a decision for each document. This module defines what is kept and why; `engine.corpus` and the
compiled modules do the steps. Every removed document has a witness: a kept document whose exact Jaccard similarity to
it is at least `threshold`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from functools import cached_property, partial
from numbers import Number
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, get_args

import numpy as np
from numpy.typing import NDArray

from lsh.base import checks, threads
from lsh.base.budget import Array, Spill, bounded
from lsh.base.progress import checked_progress
from lsh.engine import parts, tables
from lsh.engine.comparing import Pairs
from lsh.engine.corpus import STEP, Collection, CollisionError, Corpus
from lsh.engine.layout import Layout, Part
from lsh.engine.linking import Order, positions_of
from lsh.engine.placing import merged
from lsh.engine.stored import Members, Snapshot, Stored
from lsh.sketch import sketch_filter
from lsh.sketch.bands import Bands
from lsh.sketch.hasher import MinHasher
from lsh.sketch.planning import DEFAULT_THRESHOLD, Plan, chosen_bands, chosen_hasher
from lsh.text.collections import allows_missing
from lsh.text.shingling import Shingles, checked_shingles
from lsh.typing import (
    Clusters,
    FoundId,
    Indexed,
    Keep,
    Missing,
    Progress,
    SupportsArray,
    Table,
    TextsOrCallable,
    Verify,
)

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["Deduplication", "Duplicate", "deduplicate", "find_pairs"]

MIN_RECALL = 0.5  # of an index at a similarity; less is an error
CAP = 1000  # a document is compared with at most so many members of a bucket, the latest ones


NUMBER, DATETIME64 = "number", "datetime64"  # kinds of elements of `keep`; the others are types of `datetime`

SIDES = np.array(["new", "old"])

REMOVED = [("document", np.int64), ("kept", np.int64), ("similarity", np.float64), ("identical", np.bool_)]
NEAR = [("i", np.int64), ("j", np.int64), ("similarity", np.float64)]
SIDE = ("side", SIDES.dtype)
PAIR = np.dtype([("document", np.int32), ("partner", np.int32), ("similarity", np.float64)])


class Deduplication:
    """The result of `deduplicate`. Immutable.

    Attributes
    ----------
    keep : numpy.ndarray
        bool, shape ``(n,)``: True for each document that is kept.
    labels : numpy.ndarray
        int64, shape ``(n,)``: for a removed document the position of its witness, for a kept one its own position; -1
        if the witness is one of the documents of `against`.
    removed : numpy.ndarray
        The removed documents in order, as a structured array: ``document`` (its position), ``kept`` (the position of
        its witness), their ``similarity``, and ``identical`` (whether they have the same bytes). With `against` also
        ``side``, ``"new"`` or ``"old"``: whether ``kept`` is a position in `texts` or in `against`.
    near : numpy.ndarray
        The pairs just below the threshold, as a structured array: ``i``, ``j`` and ``similarity`` of the 100 most
        similar of the compared pairs that are below it, the most similar first. With `against` also ``side``, for
        ``j``.
    old_ids : tuple or None
        Where `against` is an `Index`, the ids of the old documents that `removed` and `near` name: there ``kept`` and
        ``j`` are positions in this tuple. Else ``None``.
    """

    keep: NDArray[np.bool_]
    removed: NDArray[np.void]
    near: NDArray[np.void]
    old_ids: tuple[FoundId, ...] | None
    _counts: dict[str, Any]
    _parameters: dict[str, Any]

    def __init__(
        self,
        keep: NDArray[np.bool_],
        removed: NDArray[np.void],
        near: NDArray[np.void],
        counts: dict[str, Any],
        parameters: dict[str, Any],
        old_ids: tuple[FoundId, ...] | None = None,
    ) -> None:
        for array in (keep, removed, near):
            array.flags.writeable = False
        self.__dict__.update(keep=keep, removed=removed, near=near, old_ids=old_ids)
        self.__dict__.update(_counts=counts, _parameters=parameters)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Deduplication is immutable; copy {name} instead of setting it")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Deduplication is immutable; {name} cannot be deleted")

    def __reduce__(self) -> tuple[object, ...]:
        values = (self.keep, self.removed, self.near, self._counts, self._parameters, self.old_ids)
        return Deduplication, values  # which makes the arrays read-only again

    def __len__(self) -> int:
        """Return the number of documents, kept or not."""
        return len(self.keep)

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """The labels of all documents; see the class. They are made at the first use, as they take 8 bytes each."""
        removed, labels = self.removed, np.arange(len(self.keep), dtype=np.int64)
        kept = removed["kept"]
        if "side" in (removed.dtype.names or ()):
            kept = np.where(removed["side"] == "new", kept, -1)
        labels[removed["document"]] = kept
        labels.flags.writeable = False
        return labels

    @property
    def kept(self) -> NDArray[np.int64]:
        """The positions of the documents that are kept: int64, ascending."""
        return np.flatnonzero(self.keep).astype(np.int64)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that were used, as a new dict.

        ``threshold``, ``hasher``, ``bands``, ``plan`` (``None`` if the bands were given without a plan), ``verify`` and
        ``clusters``. Where `against` is an `Index` also ``recall``, the least probability with which a pair at the
        threshold is found.
        """
        return dict(self._parameters)

    def clusters(self) -> list[NDArray[np.int64]]:
        """Return the clusters of two or more documents of `texts`.

        Returns
        -------
        list of numpy.ndarray
            int64: the positions of the documents of a cluster, the kept one first, then ascending.

        Examples
        --------
        >>> import lsh
        >>> lsh.deduplicate(["A cat sat.", "A dog ran.", "A cat sat."]).clusters()
        [array([0, 2])]
        """
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
            ``documents``: the documents of `texts`; ``old``: those of `against`.
            ``kept`` and ``removed``; of the removed, ``for_old`` have a witness in `against`, and ``identical`` have a
            witness with the same bytes.
            ``clusters``: clusters of two or more documents of `texts`.
            ``without_shingles`` and ``missing``: documents without shingles, and those that are ``None``; all are kept.
            ``candidates``: pairs that share a bucket; ``compared``: those that passed the sketch filter.
            ``capped``: comparisons that were left out because a bucket had more than 1,000 members.
            ``seconds``: the time of each stage, a dict.

        Examples
        --------
        >>> import lsh
        >>> summary = lsh.deduplicate(["A cat sat.", "A dog ran.", "A cat sat."]).summary()
        >>> summary["documents"], summary["removed"], summary["identical"]
        (3, 1, 1)
        """
        return {**self._counts, "seconds": dict(self._counts["seconds"])}

    def to_pandas(
        self,
        table: Table = "removed",
        *,
        ids: Indexed | None = None,
        texts: Indexed | None = None,
        old_ids: Indexed | None = None,
        old_texts: Indexed | None = None,
    ) -> pandas.DataFrame:
        """Return a table as a pandas DataFrame. Requires pandas.

        Parameters
        ----------
        table : {"removed", "near", "clusters", "documents"}, optional
            `removed`, `near`, the clusters of two or more documents, or all documents. The table of clusters has a row
            for each document: ``cluster``, ``document``, and ``kept``, the position of the kept document of its
            cluster. Clusters are numbered from 0, in the order of `clusters`; the file of ``lsh dedup --clusters``
            numbers them from 1. The table of documents has a row for every document in order: ``id`` (its position
            without `ids`), ``kept_id`` and ``similarity``, which are null for a kept document, and with `against`
            ``side``.
        ids : list, numpy.ndarray or column, optional
            The ids of the documents: the columns of positions become ids. Default: positions.
        texts : list, numpy.ndarray or column, optional
            The texts of the documents: adds ``text``, in the table of removals also ``kept_text``, in that of pairs
            ``text_i`` and ``text_j``.
        old_ids, old_texts : list, numpy.ndarray or column, optional
            Ids and texts of the documents of `against`. The ids are required with `ids`, except where `against` is an
            `Index`, which has them. Default for the texts: unknown, null.

        Returns
        -------
        pandas.DataFrame
            A row for each removed document, each pair, each document of a cluster, or each document.

        Raises
        ------
        ImportError
            If pandas is not installed.
        TypeError, ValueError
            If ids or texts are not a sequence with one value for each document.

        Examples
        --------
        >>> import lsh
        >>> result = lsh.deduplicate(["A cat sat.", "A dog ran.", "A cat sat."])
        >>> result.to_pandas(ids=["a", "b", "c"])
          document kept  similarity  identical
        0        c    a         1.0       True
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_pandas requires pandas: pip install pandas") from error
        frame = pandas.DataFrame(self._columns(table, ids, texts, old_ids, old_texts))
        if table == "documents" and ids is None:
            frame["kept_id"] = frame["kept_id"].astype("Int64")
        return frame

    def to_arrow(
        self,
        table: Table = "removed",
        *,
        ids: Indexed | None = None,
        texts: Indexed | None = None,
        old_ids: Indexed | None = None,
        old_texts: Indexed | None = None,
    ) -> pyarrow.Table:
        """Return a table as an Arrow table. Requires pyarrow.

        Parameters
        ----------
        table : {"removed", "near", "clusters", "documents"}, optional
            As for `to_pandas`.
        ids, texts, old_ids, old_texts : list, numpy.ndarray or column, optional
            As for `to_pandas`.

        Returns
        -------
        pyarrow.Table
            With the columns of `to_pandas`.

        Raises
        ------
        ImportError
            If pyarrow is not installed.
        TypeError, ValueError
            As for `to_pandas`, and if a column has values of several types, such as ids.
        """
        try:
            import pyarrow
        except ImportError as error:
            raise ImportError('to_arrow requires pyarrow: run pip install "lsh-dedup[io]"') from error
        columns = self._columns(table, ids, texts, old_ids, old_texts)
        made = {}
        for name, column in columns.items():
            try:
                made[name] = pyarrow.array(column, from_pandas=True)
            except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
                kinds = ", ".join(sorted({type(value).__name__ for value in column if value is not None}))
                raise TypeError(
                    f"column {name!r} has values of types that an Arrow column cannot hold together ({kinds}); give "
                    "ids and texts of one type, or use to_pandas"
                ) from error
        if table == "documents" and ids is None and not len(self.removed):
            made["kept_id"] = made["kept_id"].cast(pyarrow.int64())
        return pyarrow.table(made)

    def _columns(self, table: object, ids: object, texts: object, old_ids: object, old_texts: object) -> dict[str, Any]:
        name = checks.choice("table", table, get_args(Table))
        new, old = len(self), self._counts["old"] if self.old_ids is None else len(self.old_ids)
        given = {"ids": (ids, new), "texts": (texts, new), "old_ids": (old_ids, old), "old_texts": (old_texts, old)}
        for parameter, (values, number) in given.items():
            if values is not None:
                tables.checked(parameter, values, number)
        for needed, values, other, others in (
            ("ids", ids, "old_ids", old_ids),
            ("texts", texts, "old_texts", old_texts),
        ):
            if values is None and others is not None:
                raise ValueError(f"{other} requires {needed}")
        has_old = "side" in (self.removed.dtype.names or ())
        if ids is not None and has_old and old_ids is None and self.old_ids is None:
            raise ValueError("ids requires old_ids, the ids of the documents of against")
        ids = None if ids is None else tables.Named(ids, self.old_ids if old_ids is None else old_ids)
        texts = None if texts is None else tables.Named(texts, old_texts)
        return tables.columns(name, self, ids, texts)

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "a Deduplication is not iterable; use result.removed for the removed documents and result.kept for the "
            "positions of the kept ones"
        )

    def __repr__(self) -> str:
        counts = self._counts
        documents = "1 document" if counts["documents"] == 1 else f"{counts['documents']} documents"
        return f"<Deduplication: {documents}, {counts['kept']} kept, {counts['removed']} removed>"


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
    against: TextsOrCallable | Stored | None = None,
    keep: Keep | Sequence[float] | Sequence[date] | SupportsArray = "first",
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
        call. It is called twice, and only the texts that are compared are held in memory.
    threshold : float, optional
        Documents with this Jaccard similarity or a higher one are near duplicates; more than 0 and at most 1. Default:
        that of the index where `against` is one, else 0.8.
    recall : float, optional
        The least probability with which a pair at the threshold is found, more than 0 and less than 1; more similar
        pairs are found with a higher probability. Default 0.99, if `bands` is not given. With scheme ``"fss"``, which
        is the default, up to 1.5 % may be missed in place of 1 % where two texts together have 2 to 5 different
        shingles; see `Plan.recall_at`.
    bands : Bands or Plan, optional
        The bands to use, in place of `recall`. A plan must have the same threshold and number of seeds, and the same
        shingles if it has any; to use its bands with other values, pass ``plan.bands``. Default: the bands of
        ``lsh.plan(threshold, recall, num_seeds)``.
    shingles : Shingles, optional
        How a text becomes a set of shingles. Default: the shingles of `hasher`, else those of a plan that is given as
        `bands`, else ``Shingles(8)``.
    hasher : MinHasher, optional
        Default: ``MinHasher(num_seeds, random_state=random_state, scheme="fss", shingles=shingles)``.
    num_seeds : int, optional
        The number of components of a fingerprint. Default: that of a plan that is given as `bands`, else 128. An error
        if `hasher` is given.
    random_state : int or None, optional
        Determines the seeds of the hash functions; ``None`` draws new ones. An error if `hasher` is given.
    against : iterable of str or bytes, numpy array, Arrow column, callable, or Index, optional
        Old documents, such as a test set that must not be in a training set. They are all kept, they come before all of
        `texts`, and they are not compared with each other. The documents of `texts` are compared with each other, too.
        To compare them with old documents only, use ``{i for i, j, similarity in find_pairs(texts, others=against)}``.
        An `Index` is searched, not read; see Notes.
    keep : {"first", "last", "longest"} or array_like, optional
        Which one of several near duplicates to keep: the first, the last, the one with the most UTF-8 bytes, or the one
        with the highest priority, if one priority is given for each text: finite numbers, or dates of one type
        (datetime64, or a class of `datetime`). Of documents with the same priority the first is kept.
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
    equally similar ones, the earliest. Of identical texts only the first one can be kept: it is the witness of its
    copies, or, if it is removed, its witness is theirs. Texts without shingles are kept. In each bucket, a document is
    compared with the latest 1,000 kept documents only; ``capped`` in `Deduplication.summary` counts the comparisons
    that were left out.

    With ``clusters="components"`` the earliest document of each connected component is kept and is the witness of the
    others. In each bucket, a document is compared with the 1,000 documents before it, unless it is connected with them
    already. Even so it passes over each of them, so this is many times slower than ``"representative"`` where thousands
    of documents share a bucket, as texts of one template do.

    With ``verify="exact"``, a candidate pair is compared exactly only if it passes the sketch filter: enough components
    of the two fingerprints must have the same lowest 8 bits. Of the pairs at the threshold, the filter loses at
    most a fifth of those that `recall` allows to be missed. With a plan as `bands` it loses at most the share
    ``plan.loss``; with bands that are given without a plan, or a plan whose ``loss`` is 0, one pair in a thousand.

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
    seconds: dict[str, float] = {}
    started = time.perf_counter()
    given = {"recall": recall, "bands": bands, "shingles": shingles, "hasher": hasher, "num_seeds": num_seeds}
    matching, snapshot = _matching_of("against", against, threshold, verify, given, random_state)
    clusters = checks.choice("clusters", clusters, get_args(Clusters))
    report = checked_progress(progress)
    workers = threads.number_of(num_threads)
    spill = bounded("max_memory", max_memory, "temp_dir", temp_dir)
    collections = _collections({"texts": texts, "against": None if isinstance(against, Stored) else against}, missing)
    size = collections[0].size
    priority = None if size is None else _priority(keep, size)  # wrong priorities are an error before any work

    more = None if snapshot is None else Members(snapshot, matching.verify == "exact")
    ordered = not (isinstance(keep, str) and keep in ("first", "last"))
    exact = matching.verify == "exact"
    corpus = Corpus(collections, matching.hasher, matching.bands, not exact, spill, workers, report, ordered, more)
    seconds["fingerprints"] = time.perf_counter() - started
    order = _by_priority(_priority(keep, corpus.offsets[1]) if priority is None else priority, corpus)
    return _result(corpus, order, matching, clusters, against is not None, seconds, more)


def _result(
    corpus: Corpus,
    order: Order,
    matching: _Matching,
    clusters: Clusters,
    sides: bool,
    seconds: dict[str, float],
    old: Members | None = None,
) -> Deduplication:
    """Decide all documents of a corpus, and return the result.

    `sides` says whether there are old documents, and `old` has those of an index, which are named by their ids.
    """
    started, new = time.perf_counter(), corpus.offsets[1]
    while True:
        layout = Layout(corpus, order)
        seconds["grouping"], started = time.perf_counter() - started, time.perf_counter()
        try:
            decided = _decided(corpus, layout, matching, clusters == "components")
            break
        except CollisionError:
            corpus.read()
    corpus.spill.trim()
    keeps = np.ones(new, np.bool_)
    removed, near = _removed(layout, decided, keeps, sides), _near(layout, decided, new, sides)
    for table in (removed, near):
        table["similarity"] = matching.corrected(table["similarity"])
    counts, old_ids = _counts(corpus, removed, decided, seconds), None
    parameters = {**matching.parameters(), "clusters": clusters}
    if old is not None:
        counts["old"], old_ids = len(old.snapshot), _named(old, removed, near)
        parameters["recall"] = matching.recall
    seconds["comparing"] = time.perf_counter() - started
    return Deduplication(keeps, removed, near, counts, parameters, old_ids)


class Duplicate(NamedTuple):
    """A document of an index that is a near duplicate of another one; see `Index.deduplicate`.

    Attributes
    ----------
    id : str, bytes or int
        The document to remove.
    kept : str, bytes or int
        Its witness: a document that is kept.
    similarity : float
        Their similarity.
    identical : bool
        Whether their texts have the same bytes; False if a text is unknown.
    """

    id: FoundId
    kept: FoundId
    similarity: float
    identical: bool


def duplicates_in(
    stored: Stored,
    threshold: float | None,
    keep: Literal["first", "last"],
    clusters: Clusters,
    verify: Verify,
    max_memory: int | str | None,
    temp_dir: str | os.PathLike[str] | None,
    num_threads: int | None,
    progress: Progress | bool | None,
) -> list[Duplicate]:
    """Return the documents of an index to remove, in its order; see `Index.deduplicate`."""
    matching, snapshot = _matching_in("it", stored, threshold, verify)
    clusters = checks.choice("clusters", clusters, get_args(Clusters))
    keep = checks.choice("keep", keep, ("first", "last"))
    report, workers = checked_progress(progress), threads.number_of(num_threads)
    spill = bounded("max_memory", max_memory, "temp_dir", temp_dir)
    estimated = matching.verify != "exact"
    more = Members(snapshot, not estimated)
    corpus = Corpus([], matching.hasher, matching.bands, estimated, spill, workers, report, more=more)
    removed = _result(corpus, _by_priority(keep, corpus), matching, clusters, False, {}).removed
    ids, kept = more.ids(removed["document"]), more.ids(removed["kept"])
    values = removed["similarity"].tolist(), removed["identical"].tolist()
    return list(map(Duplicate._make, zip(ids, kept, *values)))


def pairs_in(
    stored: Stored,
    threshold: float | None,
    verify: Verify,
    max_memory: int | str | None,
    temp_dir: str | os.PathLike[str] | None,
    num_threads: int | None,
    progress: Progress | bool | None,
) -> Iterator[tuple[FoundId, FoundId, float]]:
    """Return the pairs of near duplicates in an index; see `Index.find_pairs`."""
    matching, snapshot = _matching_in("it", stored, threshold, verify)
    report, workers = checked_progress(progress), threads.number_of(num_threads)
    spill = bounded("max_memory", max_memory, "temp_dir", temp_dir)
    return _pairs([], matching, spill, workers, report, Members(snapshot, matching.verify == "exact"))


def find_pairs(
    texts: TextsOrCallable,
    threshold: float | None = None,
    *,
    others: TextsOrCallable | Stored | None = None,
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
    given = {"recall": recall, "bands": bands, "shingles": shingles, "hasher": hasher, "num_seeds": num_seeds}
    matching, snapshot = _matching_of("others", others, threshold, verify, given, random_state)
    report = checked_progress(progress)
    workers = threads.number_of(num_threads)
    spill = bounded("max_memory", max_memory, "temp_dir", temp_dir)
    collections = _collections({"texts": texts, "others": None if isinstance(others, Stored) else others}, missing)
    more = None if snapshot is None else Members(snapshot, matching.verify == "exact")
    return _pairs(collections, matching, spill, workers, report, more)


def _pairs(
    collections: list[Collection],
    matching: _Matching,
    spill: Spill,
    num_threads: int,
    report: Progress,
    more: Members | None,
) -> Iterator[tuple[Any, Any, float]]:
    """Yield the pairs; links lead from a document to later ones, or with two collections to those of the second."""
    two = len(collections) + (more is not None) == 2
    estimated = matching.verify != "exact"
    corpus = Corpus(collections, matching.hasher, matching.bands, estimated, spill, num_threads, report, more=more)
    rows, total = corpus.offsets[1], corpus.total
    order = Order([(rows, total, True), (0, rows, True)], entered=1 if two else 2)
    while True:
        layout = Layout(corpus, order, in_order=True)
        try:
            with spill.released():
                found = _found(corpus, layout, matching, num_threads, rows if two else None)
            break
        except CollisionError:
            corpus.read()
    try:
        with spill.released():
            for documents, partners, values in found:
                ids = documents.tolist() if two or more is None else more.ids(documents)
                others = partners.tolist() if more is None else more.ids(partners)
                yield from zip(ids, others, matching.corrected(values).tolist())
    finally:  # closed by the caller, CPython 3.10 leaves a cycle of this frame and the error; it holds no files then
        del corpus, layout, found


def _found(
    corpus: Corpus, layout: Layout, matching: _Matching, num_threads: int, second: int | None
) -> Iterator[tuple[Array, Array, Array]]:
    """Return the pairs: their documents in ascending order, their partners, the similarities.

    Those of several parts are stored, each part in order, and merged at the end. `second` is where the second of two
    collections begins: pairs are between the two.
    """
    spill, offset, done = corpus.spill, second or 0, 0
    total = len(layout.documents) - layout.settled

    def pairs_of(part: Part) -> Iterator[tuple[Array, Array, Array]]:
        documents, last = part.documents, len(part.documents) - 1
        firsts = (last - np.searchsorted(documents[::-1], layout.firsts[documents])).astype(np.int32)
        stop = -1 if second is None else int(np.count_nonzero(documents >= second)) - 1

        def told(document: int) -> None:
            corpus.report("comparing", done + last - document, total)

        make_pairs = partial(_make_pairs, part, firsts, matching.least)
        for numbers, partners, values in parts.pairs(make_pairs, last, stop, num_threads, told, parts.STEP):
            yield documents[numbers], documents[partners] - np.int32(offset), values

    stored, bounds = spill.column(PAIR), [0]
    for part in layout.parts(matching.least_equal):
        found = pairs_of(part)
        if len(part.documents) == len(layout.documents):
            return found
        for some in found:
            pairs = np.empty(len(some[0]), PAIR)
            for name, values in zip(PAIR.names or (), some):
                pairs[name] = values
            stored.append(pairs)
        bounds.append(len(stored))
        done += len(part.documents) if second is None else int(np.count_nonzero(part.documents < second))
        del part, found
    ordered = merged(stored, bounds, "document", spill.free // 4)
    return ((pairs["document"], pairs["partner"], pairs["similarity"]) for pairs in ordered)


def _make_pairs(part: Part, firsts: Array, least: float) -> Pairs:
    return Pairs(part.make_similarity(), part.links, firsts, least)


class _Matching(NamedTuple):
    """The checked parameters that define near duplicates."""

    hasher: MinHasher
    threshold: float
    verify: Verify
    bands: Bands
    plan: Plan | None
    least_equal: int | None  # components that must be equal to pass the filter; ``None`` without a filter
    collisions: float = 0.0  # probability that a component of two documents is equal although the fingerprints differ
    recall: float | None = None  # of an index at the threshold

    @property
    def least(self) -> float:
        """The least similarity of a near duplicate, exact or the share of equal components."""
        if self.verify is None or not self.collisions:
            return 0.0 if self.verify is None else self.threshold
        shares = np.arange(self.hasher.num_seeds + 1) / self.hasher.num_seeds
        return float(shares[np.searchsorted(self.corrected(shares), self.threshold)])

    def corrected(self, similarities: Array) -> Array:
        """Return estimates of the similarity for shares of equal components (b-bit minwise hashing)."""
        if not self.collisions:
            return similarities
        corrected: Array = np.clip((similarities - self.collisions) / (1.0 - self.collisions), 0.0, 1.0)
        return corrected

    def parameters(self) -> dict[str, Any]:
        """Return these parameters for `Deduplication.parameters`."""
        return {name: getattr(self, name) for name in ("threshold", "hasher", "bands", "plan", "verify")}


def _matching_of(
    second: str, stored: object, threshold: object, verify: object, given: dict[str, Any], random_state: int | None
) -> tuple[_Matching, Snapshot | None]:
    """Return the parameters that define near duplicates, checked, and the documents of the index if there is one.

    `second` is the parameter for a second collection, and `stored` its value.
    """
    if not isinstance(stored, Stored):
        least = _threshold(DEFAULT_THRESHOLD if threshold is None else threshold, second)
        own, shingles, num_seeds = given["hasher"], given["shingles"], given["num_seeds"]
        hasher = chosen_hasher(own, shingles, num_seeds, random_state, given["bands"])
        return _matching(hasher, least, verify, given["recall"], given["bands"]), None
    _check_same(second, stored, given, random_state)
    return _matching_in(second, stored, threshold, verify)


def _matching_in(name: str, stored: Stored, threshold: object, verify: object) -> tuple[_Matching, Snapshot]:
    """Return the same for an index; `name` is its name in messages."""
    least = _threshold(stored.plan.threshold if threshold is None else threshold, name)
    matching = _matching(stored.hasher, least, verify, None, stored.bands)
    reached, recall = stored._recalls(least, matching.verify)
    if reached < MIN_RECALL:
        raise ValueError(
            f"threshold={least:g} has a recall of {reached:.2g} with the bands of the index, which are for "
            f"{stored.plan.threshold:g}; create an index with threshold={least:g} for it"
        )
    snapshot = stored._snapshot()
    if not snapshot.has_texts and matching.verify == "exact":
        raise ValueError(
            "verify='exact' compares texts, and the index stores none: open it with texts=, a function id -> text, "
            "or pass verify='sketch' to compare estimates"
        )
    collisions = 0.0 if matching.verify == "exact" else snapshot.collisions
    return matching._replace(plan=stored.plan, collisions=collisions, recall=recall), snapshot


def _check_same(second: str, stored: Stored, given: dict[str, Any], random_state: int | None) -> None:
    """Check that the parameters that are given are those of an index."""
    if random_state != 0:
        raise ValueError(f"random_state and {second}, an index, cannot be combined; the index has its hasher")
    own = {
        "recall": stored.plan.recall,
        "bands": stored.plan if isinstance(given["bands"], Plan) else stored.bands,
        "shingles": stored.hasher.shingles,
        "hasher": stored.hasher,
        "num_seeds": stored.hasher.num_seeds,
    }
    for name, value in given.items():
        if name == "shingles" and value is not None:
            value = checked_shingles(value)
        if value is not None and value != own[name]:
            raise ValueError(
                f"{name} must be that of the index given as {second} ({own[name]!r}) or left out, got {value!r}"
            )


def _matching(hasher: MinHasher, threshold: float, verify: object, recall: object, bands: object) -> _Matching:
    """Return the parameters that define near duplicates, checked."""
    checked: Verify = checks.choice("verify", verify, get_args(Verify))
    exact = checked == "exact"
    chosen, plan = chosen_bands(bands, recall, threshold, hasher, filtered=exact)
    loss = sketch_filter.LOSS if plan is None else plan.loss or sketch_filter.LOSS
    least_equal = sketch_filter.least_equal(hasher.num_seeds, threshold, loss) if exact else None
    return _Matching(hasher, threshold, checked, chosen, plan, least_equal)


def _threshold(threshold: object, second: str) -> float:
    """Return the threshold, checked; `second` is the parameter for a second collection."""
    if not isinstance(threshold, str) and (isinstance(threshold, Iterable) or callable(threshold)):
        raise TypeError(
            f"threshold must be a number (more than 0 and at most 1), got {type(threshold).__name__}; "
            f"pass a second collection as {second}="
        )
    return checks.fraction("threshold", threshold, zero=False)


def _refuse_other_arguments(name: str, value: Any) -> None:
    """Raise an error for a number or a path in place of a collection; most likely a threshold or an index is meant."""
    if name != "texts" and isinstance(value, (str, os.PathLike)):
        raise TypeError(
            f"{name} must be a collection of texts, got one {type(value).__name__}; put it in a list, "
            "or pass lsh.Index.open(path) for an index"
        )
    if not isinstance(value, bool) and isinstance(value, Number):
        raise TypeError(
            f"{name} must be a collection of texts, got the number {value}; "
            f"if it is a threshold, write threshold={value}"
        )


def _collections(given: dict[str, TextsOrCallable | None], missing: object) -> list[Collection]:
    """Return the given collections, with the names of their parameters."""
    allowed = allows_missing(missing)
    second = list(given)[1]
    texts: object = given["texts"]
    if isinstance(texts, Stored):
        method = "deduplicate" if second == "against" else "find_pairs"
        raise TypeError(f"texts must be a collection of texts, got an index; use its method {method}")
    for name, value in given.items():
        _refuse_other_arguments(name, value)
    if texts is given[second] and isinstance(texts, Iterator):
        raise ValueError(
            f"texts and {second} must not be the same {type(texts).__name__}, which yields each text only once; "
            "pass a list, or a callable that returns a new iterator"
        )
    return [Collection(name, one, allowed) for name, one in given.items() if one is not None or name == "texts"]


def _priority(keep: object, total: int) -> Keep | Array:
    """Return `keep`, checked: one of its names, or an array of numbers; the highest number has priority."""
    wanted = f"{', '.join(map(repr, get_args(Keep)))} or an array of numbers or dates"
    if isinstance(keep, str):
        if keep not in get_args(Keep):
            raise ValueError(f"keep must be {wanted}, got {keep!r}")
        return checks.choice("keep", keep, get_args(Keep))
    checks.unmasked("keep", keep)
    dtype = f" of {keep.dtype}" if hasattr(keep, "dtype") else ""
    unfit = TypeError(f"keep must be {wanted}, got {type(keep).__name__}{dtype}")
    try:
        values = np.asarray(keep)
    except (TypeError, ValueError):
        raise unfit from None
    if values.ndim == 0 or values.dtype.kind in "cmV":
        raise unfit
    if values.shape != (total,):
        raise ValueError(f"keep must have one number or date for each text ({total}), got shape {values.shape}")
    elements: list[object] = []
    kind = NUMBER
    if values.dtype.kind in "OSUT":
        elements = list(keep) if isinstance(keep, (list, tuple)) else values.tolist()
        kind = _kind_of_all(elements)
    if values.dtype.kind == "M" or kind == DATETIME64:
        return _ranks_of_times(values.astype("M8") if values.dtype.kind == "O" else values)
    if kind != NUMBER:
        return _ranks(elements)
    try:
        numbers = _numbers(values, keep)
    except (TypeError, ValueError, OverflowError):
        raise unfit from None
    unfinite = np.flatnonzero(~np.isfinite(numbers))
    if len(unfinite):
        raise ValueError(f"keep[{unfinite[0]}] must be a finite number, got {numbers[unfinite[0]]}")
    return numbers


def _kind_of(value: object) -> str:
    """Return the kind of an element of `keep`, for comparisons and messages."""
    if isinstance(value, datetime):
        return f"datetime {'without' if value.utcoffset() is None else 'with'} a time zone"
    if isinstance(value, (date, np.datetime64)):
        return "date" if isinstance(value, date) else DATETIME64
    is_number = hasattr(value, "__float__") and not isinstance(value, (complex, np.complexfloating, np.timedelta64))
    return NUMBER if is_number else type(value).__name__


def _kind_of_all(elements: list[object]) -> str:
    """Return the kind of all elements of `keep`: numbers, or dates of one kind; a missing one is an error."""
    firsts: dict[str, int] = {}  # the first position of each kind
    for i, value in enumerate(elements):
        if not checks.is_missing(value):
            firsts.setdefault(_kind_of(value), i)
    for i in firsts.values():
        value, kind = elements[i], _kind_of(elements[i])
        if isinstance(value, checks.TEXT_TYPES):
            raise TypeError(
                f"keep[{i}] is a {kind} {repr(value)[:40]}; convert dates by np.array(keep, 'datetime64[D]') and "
                "numbers by np.array(keep, float)"
            )
        if kind not in (NUMBER, DATETIME64) and not isinstance(value, date):
            raise TypeError(f"keep[{i}] must be a number or a date, got {kind} {repr(value)[:40]}")
    if len(firsts) > 1:
        (one, i), (other, j) = list(firsts.items())[:2]
        raise TypeError(f"keep[{j}] is a {other}, keep[{i}] a {one}; give numbers, or dates of one kind")
    kind = next(iter(firsts), "number or a date")
    for i, value in enumerate(elements):
        if checks.is_missing(value):
            what = kind if kind.startswith(NUMBER) else "date"
            raise ValueError(f"keep[{i}] must be a {what}, got {value}; give one for each text")
    return kind


def _ranks(values: Array | list[object]) -> Array:
    ranks: Array = np.unique(np.asarray(values), return_inverse=True)[1]
    return ranks


def _ranks_of_times(times: Array) -> Array:
    """Return the ranks of datetime64 values; NaT is an error."""
    if np.isnat(times).any():
        raise ValueError(f"keep[{np.flatnonzero(np.isnat(times))[0]}] must be a date, got NaT; give one for each text")
    return _ranks(times)


def _numbers(values: Array, keep: Any) -> Array:
    """Return the numbers of `keep` as integers or floats; as ranks if floats would not be exact."""
    if values.dtype.kind in "iu":
        return values
    numbers = values.astype(np.float64)
    if np.isfinite(numbers).all() and (np.abs(numbers) >= 2**53).any():
        exact = np.empty(len(values), object)
        exact[:] = list(keep) if isinstance(keep, (list, tuple)) else values.tolist()
        numbers = _ranks(exact).astype(np.float64)
    return numbers


def _by_priority(priority: Keep | Array, corpus: Corpus) -> Order:
    """Return the order in which documents are decided: old documents first, then by priority."""
    new, total = corpus.offsets[1], corpus.total
    if isinstance(priority, str) and priority in ("first", "last"):
        return Order([(new, total, False), (0, new, priority == "last")])
    values: Array = corpus.sizes.read(0, new) if isinstance(priority, str) else priority
    ascending = np.argsort(values[::-1], kind="stable")  # reversed, so that ties are in order of position
    del values
    order = np.empty(total, np.int32)
    order[: total - new] = np.arange(new, total, dtype=np.int32)
    np.subtract(new - 1, ascending[::-1], out=order[total - new :], casting="unsafe")
    return Order([(0, total, False)], order)


def _decided(corpus: Corpus, layout: Layout, matching: _Matching, components: bool) -> parts.Decided:
    """Decide the documents of a layout."""
    total = len(layout.documents)
    with corpus.spill.released():
        return parts.decide(
            layout.parts(matching.least_equal),
            parts.Rule(layout.settled, matching.least, CAP, components),
            lambda shape: corpus.spill.array(shape, np.int32),
            corpus.num_threads,
            lambda done: corpus.report("comparing", done, total),
            corpus.most_scores,
        )


def _removed(layout: Layout, decided: parts.Decided, keeps: NDArray[np.bool_], with_sides: bool) -> Array:
    """Return the table of removed documents, and set their flags in `keeps`, which has those of the new documents.

    A copy gets the decision of the first copy. Apart from the table, this takes about 8 bytes a removed document.
    """
    first, distinct, copies = layout.firsts, layout.documents, layout.copies(len(keeps))
    for at in range(0, len(decided.documents), STEP):
        keeps[distinct[decided.documents[at : at + STEP]]] = False
    keeps[copies] = False
    places = positions_of(~keeps)
    removed = np.empty(len(places), [*REMOVED, SIDE] if with_sides else REMOVED)
    removed["document"] = places
    for at in range(0, len(decided.documents), STEP):
        some = slice(at, at + STEP)
        rows = np.searchsorted(places, distinct[decided.documents[some]])
        removed["kept"][rows] = distinct[decided.witnesses[some]]
        removed["similarity"][rows] = decided.similarities[some]
    for at in range(0, len(copies), STEP):
        own = copies[at : at + STEP]
        originals = first[own]
        rows, source = np.searchsorted(places, own), np.searchsorted(places, originals)
        source = np.minimum(source, len(places) - 1)
        is_removed = places[source] == originals
        removed["kept"][rows] = np.where(is_removed, removed["kept"][source], originals)
        removed["similarity"][rows] = np.where(is_removed, removed["similarity"][source], 1.0)
    for at in range(0, len(removed), STEP):
        part = removed[at : at + STEP]
        part["identical"] = first[part["document"]] == first[part["kept"]]
        _set_position(part, "kept", part["kept"], len(keeps))
    return removed


def _named(members: Members, removed: Array, near: Array) -> tuple[FoundId, ...]:
    """Return the ids of the old documents of two tables, and replace their numbers there by positions among these."""
    places = [np.flatnonzero(table["side"] == "old") for table in (removed, near)]
    numbers = [table[name][old] for table, name, old in zip((removed, near), ("kept", "j"), places)]
    named, positions = np.unique(np.concatenate(numbers), return_inverse=True)
    removed["kept"][places[0]] = positions[: len(places[0])]
    near["j"][places[1]] = positions[len(places[0]) :]
    return tuple(members.ids(named))


def _counts(corpus: Corpus, removed: Array, decided: parts.Decided, seconds: dict[str, float]) -> dict[str, Any]:
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
        "candidates": decided.candidates,
        "compared": decided.compared,
        "capped": decided.capped,
        "seconds": seconds,
    }


def _near(layout: Layout, decided: parts.Decided, new: int, with_sides: bool) -> Array:
    """Return the table of pairs just below the threshold."""
    i, j = (layout.documents[numbers].astype(np.int64) for numbers in (decided.near_documents, decided.near_others))
    similarities = decided.near_similarities
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
