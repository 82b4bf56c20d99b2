"""What `find_passages` returns: a `Passages`, with positions in bytes or in characters, and the shortened texts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lsh.base import checks, errors
from lsh.base.arrays import Array
from lsh.base.wording import counted
from lsh.engine.result import Immutable
from lsh.text.batch import Batch
from lsh.text.collections import each_piece
from lsh.text.columns import Column
from lsh.text.cuts import encoded, in_characters, without
from lsh.typing import Text, TextsOrCallable

__all__ = ["Passages"]

CUT = np.dtype([("document", np.int64), ("start", np.int64), ("end", np.int64)])


class SearchResult(Immutable):
    """A result about `size` texts: two arrays, which become read-only, and the counts and parameters of the run."""

    _arrays: ClassVar[tuple[str, str]]  # their names
    _size: int
    _counts: dict[str, Any]
    _parameters: dict[str, Any]

    def __init__(
        self, first: Array, second: Array, size: int, counts: dict[str, Any], parameters: dict[str, Any]
    ) -> None:
        for name, array in zip(self._arrays, (first, second)):
            array.flags.writeable = False
            self.__dict__[name] = array
        self.__dict__.update(_size=size, _counts=counts, _parameters=parameters)

    def __reduce__(self) -> tuple[object, ...]:
        arrays = [getattr(self, name) for name in self._arrays]
        return type(self), (*arrays, self._size, self._counts, self._parameters)


class Passages(SearchResult):
    """The result of `find_passages`. Immutable.

    Attributes
    ----------
    spans : numpy.ndarray
        The passages that are cut, in order, as a structured array of int64: ``document`` (its position), ``start`` and
        ``end`` of the passage in the UTF-8 of its text, in bytes; ``kept`` (the position of the document in which an
        equal one is kept) and ``kept_start`` (where it begins there). Passages of a document may overlap; what is cut
        is their union, `cuts`. With `against` also ``side``, ``"new"`` or ``"old"``: whether ``kept`` is a position in
        `texts` or in `against`.
    emptied : numpy.ndarray
        int64: the positions of the documents of which nothing is left, ascending.
    """

    spans: NDArray[np.void]
    emptied: NDArray[np.int64]
    _arrays = ("spans", "emptied")

    def __repr__(self) -> str:
        documents = counted(self._size, "document")
        cut = f"{counted(len(self.spans), 'passage')} cut from {self._counts['cut_documents']:,} of {documents}"
        return f"<Passages: {cut}>"

    def __len__(self) -> int:
        """Return the number of passages that are cut."""
        return len(self.spans)

    @cached_property
    def cuts(self) -> NDArray[np.void]:
        """What is cut, in order: ``document``, ``start`` and ``end`` of runs that do not touch, in bytes of UTF-8."""
        cuts = cuts_of(self.spans)
        cuts.flags.writeable = False
        return cuts

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that were used, as a new dict: ``min_bytes``, ``unit`` and ``shingles``."""
        return dict(self._parameters)

    def summary(self) -> dict[str, Any]:
        """Return the counts of the run.

        Returns
        -------
        dict
            ``documents``: the documents of `texts`; ``old``: those of `against`; ``missing``: those that are ``None``.
            ``bytes``: of all texts of `texts` as UTF-8.
            ``spans``: passages that are cut.
            ``cut_documents``: documents from which something is cut; of these, ``emptied`` have nothing left.
            ``cut_bytes``: the bytes that are cut.
            ``seconds``: for each stage.
        """
        return {**self._counts, "seconds": dict(self._counts["seconds"])}

    def cut(self, texts: TextsOrCallable) -> Iterator[Text | None]:
        """Yield the texts without what is cut, each of the type that it has.

        Parameters
        ----------
        texts : iterable of str or bytes, numpy array, Arrow column, or callable
            The same texts as for `find_passages`, in the same order.

        Yields
        ------
        str, bytes, bytearray, memoryview or None
            Elements of an Arrow column are ``str``, of a column of bytes ``bytes``. A text from which nothing is cut is
            yielded as it is.

        Raises
        ------
        ValueError
            If these are other texts, as far as their number and their lengths tell.
        """
        return cut_texts(self.cuts, texts, self._size)

    def text_spans(self, document: int, text: str) -> NDArray[np.void]:
        """Return the passages of a document with positions in its text as a ``str``.

        Parameters
        ----------
        document : int
            The position of the document.
        text : str
            Its text.

        Returns
        -------
        numpy.ndarray
            The rows of `spans` for this document; ``start`` and ``end`` count characters, so that
            ``text[start:end]`` is the passage. ``kept_start`` is in bytes, as in `spans`.

        Raises
        ------
        IndexError
            If there is no such document.
        ValueError
            If it is not its text, as far as its length tells.
        """
        return in_text(self.spans, "document", document, text, self._size)


def in_text(rows: NDArray[np.void], name: str, number: int, text: str, size: int) -> NDArray[np.void]:
    """Return the rows of one of `size` texts, whose numbers the field `name` has, with positions in characters."""
    number = checks.whole_number(name, number, None)
    if not 0 <= number < size:
        raise IndexError(f"{name} must be from 0 to {size - 1}, got {number}")
    data = encoded(checks.instance("text", text, str, "a str"))
    first, last = np.searchsorted(rows[name], [number, number + 1])
    found = rows[first:last].copy()
    _check_length(found, data, "text")
    found["start"], found["end"] = in_characters(data, np.stack([found["start"], found["end"]]))
    return np.asarray(found)


def cut_texts(cuts: NDArray[np.void], texts: TextsOrCallable, size: int) -> Iterator[Text | None]:
    """Yield `size` texts without some runs, which are in order."""
    number = at = 0
    documents = cuts["document"]
    for piece in each_piece("texts", texts() if callable(texts) else texts, 1 << 12):
        ends = np.searchsorted(documents, np.arange(number, number + len(piece) + 1))
        for text, end in zip(_texts_of(piece), ends[1:].tolist()):
            if number >= size:
                break
            yield text if at == end else _without(text, cuts[at:end], number)
            number, at = number + 1, end
        else:
            continue
        number += 1
        break
    if number != size:
        more = "more" if number > size else f"{number:,}"
        raise errors.bad_value("texts", f"must be the {size:,} texts that were searched, got {more}")


def cuts_of(spans: NDArray[np.void]) -> NDArray[np.void]:
    """Return the runs that spans cover; spans are in order, and so are their ends within a document."""
    documents, starts, ends = (spans[name] for name in ("document", "start", "end"))
    is_first = np.ones(len(spans), np.bool_)
    is_first[1:] = (documents[1:] != documents[:-1]) | (starts[1:] > ends[:-1])
    first = np.flatnonzero(is_first)
    last = np.concatenate([first[1:], [len(spans)]])[: len(first)] - 1
    cuts = np.empty(len(first), CUT)
    cuts["document"], cuts["start"], cuts["end"] = documents[first], starts[first], ends[last]
    return cuts


def _texts_of(piece: Any) -> Iterator[Any]:
    """Yield the texts of a piece, of their types."""
    if isinstance(piece, tuple):
        yield from piece
        return
    as_bytes = isinstance(piece, Column) and piece.is_bytes
    for start in range(0, len(piece), 1 << 12):
        for text in Batch(piece, missing=True, start=start, stop=min(start + (1 << 12), len(piece))).tolist():
            yield text if text is None or as_bytes else text.decode("utf-8", "surrogatepass")


def _check_length(rows: NDArray[np.void], data: bytes, name: str) -> None:
    if len(rows) and int(rows["end"].max()) > len(data):
        reason = f"must be the text that was searched; it has {counted(len(data), 'byte')} as UTF-8, fewer than where "
        raise errors.bad_value(name, reason + f"a passage ends, {int(rows['end'].max()):,}")


def _without(text: Any, cuts: NDArray[np.void], number: int) -> Any:
    """Return a text without some runs, of the same type."""
    if not isinstance(text, checks.TEXT_TYPES):
        raise errors.bad_type(f"texts[{number}]", f"must be the text that was searched, got {type(text).__name__}")
    data = encoded(text)
    _check_length(cuts, data, f"texts[{number}]")
    left = without(data, np.stack([cuts["start"], cuts["end"]], 1))
    if isinstance(text, str):
        return left.decode("utf-8", "surrogatepass")
    return memoryview(left) if isinstance(text, memoryview) else type(text)(left)
