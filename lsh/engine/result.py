"""What `deduplicate` returns: a `Deduplication`, and its tables, with positions or with ids and texts of the caller."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, get_args

import numpy as np
from numpy.typing import NDArray

from lsh.base import checks, errors
from lsh.base.arrays import Array
from lsh.typing import FoundId, Indexed, Table

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["Deduplication", "Duplicate"]


class Immutable:
    """A result whose attributes are set once, by its constructor."""

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} is immutable; copy {name} instead of setting it")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} is immutable; {name} cannot be deleted")


class Deduplication(Immutable):
    """The result of `deduplicate`. Immutable.

    Attributes
    ----------
    keep : numpy.ndarray
        bool, shape ``(n,)``: True for each document that is kept.
    labels : numpy.ndarray
        int64, shape ``(n,)``: for a removed document the position of its witness, for a kept one its own position; -1
        if the witness is one of the documents of `against`.
    copies : numpy.ndarray
        int64, shape ``(n,)``: how many documents of `texts` a kept one stands for, itself included; 0 for a removed
        one. With those of `old_copies` they add up to ``n``.
    old_copies : numpy.ndarray
        The documents of `against` that are witnesses, in order, as a structured array: ``kept`` (the position in
        `against`, or in `old_ids`), and ``copies``, how many documents of `texts` were removed for it.
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

    @cached_property
    def copies(self) -> NDArray[np.int64]:
        """For how many documents of `texts` each stands; see the class. It is made at the first use, as `labels` is."""
        labels = self.labels
        copies = np.bincount(labels[labels >= 0], minlength=len(labels)).astype(np.int64, copy=False)
        copies.flags.writeable = False
        return copies

    @cached_property
    def old_copies(self) -> NDArray[np.void]:
        """For how many documents of `texts` each old one stands; see the class. It is made at the first use."""
        removed = self.removed
        has_old = "side" in (removed.dtype.names or ())
        kept, copies = np.unique(removed["kept"][removed["side"] == "old"] if has_old else [], return_counts=True)
        counted = np.empty(len(kept), [("kept", np.int64), ("copies", np.int64)])
        counted["kept"], counted["copies"] = kept, copies
        counted.flags.writeable = False
        return counted

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
            ``candidates``: pairs that share a bucket, counted in each bucket that they share, without identical copies;
            ``connected``: different texts that share a bucket, and enough low bits, with another one. Only these are
            compared; they and copies are read again where texts are not in memory.
            ``compared``: pairs whose shingles were compared, or whose fingerprints with another `verify`; a document
            that meets most of many kept ones is compared with all of them, if there is memory for that.
            ``capped``: comparisons that were left out in buckets of more than 65,536 documents; 0 almost always.
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
        with errors.needing("to_pandas requires pandas: pip install pandas"):
            import pandas
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
        with errors.needing('to_arrow requires pyarrow: run pip install "lsh-dedup[io]"'):
            import pyarrow
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
                checked_values(parameter, values, number)
        for needed, values, other, others in (
            ("ids", ids, "old_ids", old_ids),
            ("texts", texts, "old_texts", old_texts),
        ):
            if values is None and others is not None:
                raise errors.bad_value(other, f"requires {needed}")
        has_old = "side" in (self.removed.dtype.names or ())
        if ids is not None and has_old and old_ids is None and self.old_ids is None:
            raise errors.bad_value("ids", "requires old_ids, the ids of the documents of against")
        ids = None if ids is None else Named(ids, self.old_ids if old_ids is None else old_ids)
        texts = None if texts is None else Named(texts, old_texts)
        return columns_of(name, self, ids, texts)

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "a Deduplication is not iterable; use result.removed for the removed documents and result.kept for the "
            "positions of the kept ones"
        )

    def __repr__(self) -> str:
        counts = self._counts
        documents = "1 document" if counts["documents"] == 1 else f"{counts['documents']} documents"
        return f"<Deduplication: {documents}, {counts['kept']} kept, {counts['removed']} removed>"


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


class Named(NamedTuple):
    """Values of the new and of the old documents, such as ids; ``None`` where they are unknown."""

    new: Any
    old: Any

    def at(self, positions: Array, is_old: Array) -> Array | list[Any]:
        """Return the values of documents; ``None`` for old ones that are unknown."""
        if not is_old.any():
            return _values_at(self.new, positions)
        new = iter(_values_at(self.new, positions[~is_old]))
        places = positions[is_old]
        old = iter([None] * len(places) if self.old is None else _values_at(self.old, places))
        return [next(old) if one else next(new) for one in is_old.tolist()]


def checked_values(name: str, values: Any, number: int) -> Any:
    """Return a sequence with one value for each document, checked."""
    kinds = (*checks.TEXT_TYPES, Mapping, set, frozenset)
    if isinstance(values, kinds) or not (hasattr(values, "__len__") and hasattr(values, "__getitem__")):
        reason = f"must be a list, an array or a column with one value for each document, got {type(values).__name__}"
        raise errors.bad_type(name, reason)
    if len(values) != number:
        raise errors.bad_value(name, f"must have one value for each document ({number}), got {len(values)}")
    return values


def _values_at(values: Any, positions: Array) -> Array | list[Any]:
    """Return the values at positions, in the type of an array, else as a list."""
    if hasattr(values, "iloc"):  # pandas, whose columns have labels
        values = values.to_numpy()
    if isinstance(values, np.ndarray):
        found: Array = values[positions]
        return found
    if hasattr(values, "to_pylist"):  # Arrow
        return list(values.take(positions).to_pylist())
    return [values[position] for position in positions.tolist()]


def columns_of(table: str, result: Any, ids: Named | None, texts: Named | None) -> dict[str, Array | list[Any]]:
    """Return the columns of a table of a `Deduplication`."""
    if table == "documents":
        return _documents(result, ids, texts)
    found: dict[str, Array | list[Any]] = {}
    names = {"removed": ("document", "kept"), "near": ("i", "j"), "clusters": ("document", "kept")}[table]
    source = _clusters(result) if table == "clusters" else _fields(getattr(result, table))
    none = np.zeros(len(source[names[0]]), np.bool_)
    is_old = {names[0]: none, names[1]: source["side"] == "old" if "side" in source else none}
    for name, column in source.items():
        found[name] = column if ids is None or name not in is_old else ids.at(column, is_old[name])
    if texts is not None:
        titles = {"removed": ("text", "kept_text"), "near": ("text_i", "text_j"), "clusters": ("text",)}[table]
        for title, name in zip(titles, names):
            found[title] = texts.at(source[name], is_old[name])
    return found


def _fields(array: Array) -> dict[str, Array]:
    return {name: np.ascontiguousarray(array[name]) for name in array.dtype.names or ()}


def _clusters(result: Any) -> dict[str, Array]:
    clusters = result.clusters()
    sizes = np.array([len(members) for members in clusters], np.int64)
    return {
        "cluster": np.repeat(np.arange(len(clusters)), sizes),
        "document": np.concatenate([np.empty(0, np.int64), *clusters]),
        "kept": np.repeat(np.array([members[0] for members in clusters], np.int64), sizes),
    }


def _documents(result: Any, ids: Named | None, texts: Named | None) -> dict[str, Array | list[Any]]:
    """Return a row for every document: what is kept in its place, ``None`` and NaN for a kept one."""
    removed, number = _fields(result.removed), len(result)
    places, every, none = removed["document"], np.arange(number, dtype=np.int64), np.zeros(number, np.bool_)
    is_old = removed["side"] == "old" if "side" in removed else np.zeros(len(places), np.bool_)
    kept, similarity = np.full(number, None, object), np.full(number, np.nan)
    kept[places] = _objects(removed["kept"] if ids is None else ids.at(removed["kept"], is_old))
    similarity[places] = removed["similarity"]
    found: dict[str, Array | list[Any]] = {"id": every if ids is None else ids.at(every, none)}
    found |= {"kept_id": kept, "similarity": similarity}
    if "side" in removed:
        side = np.full(number, None, object)
        side[places] = removed["side"].astype(object)
        found["side"] = side
    return found if texts is None else {**found, "text": texts.at(every, none)}


def _objects(values: Array | list[Any]) -> Array:
    """Return values as an array of objects of one dimension, whatever they are."""
    made = np.empty(len(values), object)
    for i, value in enumerate(values):
        made[i] = value.item() if isinstance(value, np.integer) else value
    return made
