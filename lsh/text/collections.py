"""Collections of texts, of every supported type, as pieces from which `lsh.text.batch` makes batches.

A piece is a tuple of objects, a column (an Arrow array or fixed-width bytes of numpy) or a batch. A stream or a
generator, which may be huge, is read piece by piece; it may yield texts, or Arrow columns of texts, as the readers of
files do. A list is copied at once, so that other threads may change it.
Arrow data is read through the PyCapsule interface, also that of a column of a Hugging Face dataset, and other
collections by iteration; no package is imported for this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, get_args

import numpy as np

from lsh.base import checks, errors
from lsh.text.batch import Batch, extent, gather, num_bytes
from lsh.text.columns import Column, Columns, fixed_width, is_arrow
from lsh.typing import Missing, Piece, Pieces


class TextSource(ABC):
    """A callable that returns all texts, and reads some of them again without the others."""

    num_known = 0  # texts that were read by a run that was killed; a first reading need not begin with them

    @abstractmethod
    def __call__(self, start: int = 0) -> Pieces:
        """Return all texts from one on, the same at each call; `start` is 0, or at the first call up to `num_known`."""

    @abstractmethod
    def take(self, positions: np.ndarray[Any, Any]) -> Iterator[Batch]:
        """Yield the texts at some positions, which ascend."""

    @abstractmethod
    def changed(self, position: int) -> Exception:
        """Return the error for a text that was another one, or not there, when it was read again."""

    def progress(self) -> tuple[int, int, int] | None:
        """Return how many texts were read first, from how many bytes, and the bytes of all; ``None`` if unknown."""
        return None


MAX_DATASET_BATCH = 1 << 12  # texts of a dataset that are copied at once
PIECE_BYTES = 1 << 22  # a piece of an iterator ends with the text that makes it so large
OBJECTS = ("object", "Object")  # the dtypes of Python objects in pandas and in polars


def allows_missing(missing: object) -> bool:
    """Return whether ``None`` is an empty text, for a caller's `missing`, checked."""
    return bool(checks.choice("missing", missing, get_args(Missing)) == "empty")


def pieces(name: str, texts: Any, size: int | None = None) -> Piece | Iterator[Piece]:
    """Return a collection of texts as one piece, or as an iterator over pieces.

    Parameters
    ----------
    name : str
        The parameter that the collection was passed as, for messages.
    texts : object
        The collection, of a type that `MinHasher.fingerprints` lists.
    size : int, optional
        The largest number of texts in a piece of an iterator, which ends at about `PIECE_BYTES`, too. Default: no
        limits.

    Raises
    ------
    TypeError
        If `texts` is not a collection of texts. Its elements are checked later, when a batch is made.
    ValueError
        If an array has more than one dimension, or an Arrow column is damaged.
    """
    if isinstance(texts, Batch):
        return texts
    if isinstance(texts, Pieces):
        return texts.pieces
    if is_arrow(texts) and not _holds_objects(name, texts):
        try:
            return _joined(Columns(texts, name))
        except ImportError:  # pandas has the interface only where pyarrow is installed
            pass
    if _is_dataset_column(texts):
        return _of_dataset(name, texts)
    if type(texts).__name__ == "DuckDBPyConnection":  # what con.execute(...) returns
        raise errors.bad_type(
            name,
            'must be a collection of texts, got a DuckDB connection; pass a relation: con.sql("select text from ...")',
        )
    checks.collection(name, texts)
    if isinstance(texts, np.ndarray):
        return fixed_width(texts) if texts.dtype.kind == "S" and type(texts) is np.ndarray else _from_array(texts)
    if hasattr(texts, "isna"):
        return tuple(None if missing else text for text, missing in zip(texts, texts.isna()))
    if isinstance(texts, (list, tuple)) and not (texts and is_arrow(texts[0])):
        return tuple(texts)
    return _from_iterator(name, iter(texts), size)


def each_piece(name: str, texts: Any, size: int | None = None) -> Iterator[Piece]:
    """Yield the pieces of a collection of texts; see `pieces`."""
    found = pieces(name, texts, size)
    return found if isinstance(found, Iterator) else iter((found,))


def as_batch(name: str, texts: Any, missing: bool = False) -> Batch:
    """Return a collection of texts as one batch; with `missing`, ``None`` is an empty text."""
    if isinstance(texts, Batch):
        return texts
    batches, first = [], 0
    for piece in each_piece(name, texts):
        batches.append(Batch(piece, first, missing, name=name))
        first += len(piece)
    return batches[0] if len(batches) == 1 else Batch.join(batches)


def is_selection(texts: Any) -> bool:
    """Tell whether a collection is a column of selected rows of a dataset: they are copied whenever they are read."""
    return _is_dataset_column(texts) and getattr(texts.source, "_indices", None) is not None


def _is_dataset_column(texts: Any) -> bool:
    """Tell whether a collection is a column of a ``datasets.Dataset`` whose texts are those of its Arrow table."""
    source = getattr(texts, "source", None)
    kind: Any = getattr(source, "format", None)  # a nested column, and one of a stream, has none
    if not (isinstance(kind, dict) and hasattr(source, "select_columns") and hasattr(texts, "column_name")):
        return False
    return bool(kind.get("type") != "custom")  # a transform may change the texts


def _of_dataset(name: str, texts: Any) -> Piece | Iterator[Piece]:
    """Return the Arrow data of a column of a dataset: in place, or by batches where rows are selected."""
    table = texts.source.select_columns([texts.column_name]).with_format("arrow")
    if getattr(texts.source, "_indices", table) is None:  # else the whole table would be copied
        return _joined(Columns(table[:][texts.column_name], name))
    ranges = _row_ranges(name, table, texts.column_name)
    columns = (table[start:stop][texts.column_name].combine_chunks() for start, stop in ranges)  # each row is a chunk
    return chain.from_iterable(Columns(column, name) for column in columns)


def _row_ranges(name: str, table: Any, column_name: str) -> Iterator[tuple[int, int]]:
    """Yield ranges of the rows that are selected of a dataset, of at most about `PIECE_BYTES` where they have more."""
    chunks, rows = table.data.column(column_name), table._indices.column(0)
    ends = np.cumsum([len(chunk) for chunk in chunks.iterchunks()])
    for first in range(0, len(rows), MAX_DATASET_BATCH):
        numbers = np.asarray(rows.slice(first, MAX_DATASET_BATCH), np.int64)
        sizes, owners = np.empty(len(numbers), np.int64), np.searchsorted(ends, numbers, side="right")
        for owner in np.unique(owners).tolist():
            (column,), begin = Columns(chunks.chunk(owner), name), int(ends[owner - 1]) if owner else 0
            for i in np.flatnonzero(owners == owner).tolist():
                at = int(numbers[i]) - begin
                sizes[i] = num_bytes(column, at, at + 1)
        totals, start = np.cumsum(sizes), 0
        while start < len(sizes):
            before = totals[start - 1] if start else 0
            stop = max(int(np.searchsorted(totals, before + PIECE_BYTES, side="right")), start + 1)
            yield first + start, first + stop
            start = stop


def extents(piece: Piece, max_texts: int, size: int) -> Iterator[tuple[int, int]]:
    """Divide a piece: yield where each part starts and stops, of at most `max_texts` texts and about `size` bytes."""
    start, total = 0, len(piece)
    while start < total:
        stop = extent(piece, start, min(start + max_texts, total), size)
        yield start, stop
        start = stop


def _holds_objects(name: str, texts: Any) -> bool:
    """Tell whether a column holds Python objects, which are read by iteration and not as Arrow data."""
    types = getattr(texts, "dtypes", None)
    if isinstance(types, list) and "Object" in map(str, types):  # polars would export their addresses
        raise errors.bad_type(name, "must be a column of texts, got a table of Python objects; pick a column")
    return str(getattr(texts, "dtype", None)) in OBJECTS


def _joined(columns: Columns) -> Piece | Iterator[Piece]:
    """Return the column of a stream that has one only, else an iterator over all of them."""
    head: list[Column] = list(islice(columns, 2))
    if len(head) > 1:
        return chain(head, columns)
    return head[0] if head else ()


def _from_iterator(name: str, texts: Iterator[Any], size: int | None) -> Iterator[Piece]:
    """Yield pieces of the texts of an iterator, or of the Arrow columns that it yields."""
    head = tuple(islice(texts, 1))
    texts = chain(head, texts)
    if head and is_arrow(head[0]):
        for column in texts:
            yield from each_piece(name, column)
    else:
        yield from [tuple(texts)] if size is None else iter(lambda: gather(texts, size, PIECE_BYTES), ())


def _from_array(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    """Return the texts of an array; a missing value of a StringDType becomes ``None``."""
    absent = getattr(array.dtype, "na_object", None)
    return tuple(None if text is absent else text for text in array.tolist())
