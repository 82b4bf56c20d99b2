"""Texts and ids of documents, looked up by position in a list, an array, a column or a dict.

Only texts that are shown are looked up, so that neither a file nor a column has to be loaded. This module also checks
the parameters that have one value for each document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from lsh.base import checks, errors
from lsh.report.page import Cell, Html, element
from lsh.text.batch import Batch
from lsh.text.collections import each_piece
from lsh.typing import Indexed, Text, TextsByPosition, TextStream

MAX_NAME_LENGTH = 120  # characters that are shown of an id or a source
EXCERPT_LENGTH = 160  # characters of a text in a table
MAX_PIECE = 1 << 10  # texts of a stream that are held at once


class TextLookup:
    """The texts and the ids of some documents, by position.

    Parameters
    ----------
    name, ids_name : str
        The names of both parameters, for messages.
    texts : sequence of str or bytes, Arrow array, mapping, or callable
        The texts; a mapping has them by position. Those of a callable are read by `sizes` and `read` only.
    ids : sequence, mapping or None
        The ids, as the texts. ``None``: the positions.
    number : int or None
        How many documents there must be; ``None``: any number.
    """

    def __init__(
        self,
        name: str,
        texts: TextsByPosition | TextStream,
        ids_name: str,
        ids: TextsByPosition | None,
        number: int | None,
    ) -> None:
        self._name = name
        self._stream = texts if callable(texts) and not hasattr(texts, "__getitem__") else None
        texts = cast(TextsByPosition, texts if self._stream is None else {})
        if isinstance(texts, checks.TEXT_TYPES) or not hasattr(texts, "__getitem__"):
            raise errors.bad_type(
                name,
                f"must be a sequence of texts, a dict {{position: text}}, or a function that returns the texts, "
                f"got {type(texts).__name__}; lsh.report.choose tells the positions that are read",
            )
        if number is not None and not isinstance(texts, Mapping):
            checked_length(name, texts, number)
        self._texts, self._ids_name = _by_position(texts), ids_name
        self._ids = None if ids is None else _by_position(ids)
        if ids is not None and number is not None and not isinstance(ids, Mapping):
            checked_length(ids_name, ids, number)
        if isinstance(ids, checks.TEXT_TYPES) or (ids is not None and not hasattr(ids, "__getitem__")):
            raise TypeError(
                f"{ids_name} must be a sequence of ids, or a dict {{position: id}}, got {type(ids).__name__}"
            )

    def text(self, position: int) -> Text:
        """Return a text as it was given; a missing text is empty."""
        try:
            value = self._texts[position]
        except (KeyError, IndexError):
            raise ValueError(f"{self._name} must have a text at position {position:,}, and has none") from None
        return self._checked(position, value)

    def _checked(self, position: int, value: object) -> Text:
        if hasattr(value, "as_py"):  # of an Arrow array
            value = value.as_py()
        return checks.text(f"{self._name}[{position}]", "" if value is None else value)

    def readable(self, position: int) -> str:
        """Return a text as str, to be shown."""
        return decoded(self.text(position))

    def read(self, positions: Sequence[int]) -> None:
        """Read the texts at some positions if they are those of a callable, which is called once."""
        wanted = set(positions)
        if self._stream is not None:
            self._texts = {position: value for position, value in enumerate(self._streamed()) if position in wanted}

    def sizes(self, number: int) -> NDArray[np.int64]:
        """Return the size of each text in bytes of UTF-8, int64, shape ``(number,)``."""
        values: Iterator[Text] = map(self.text, range(number))
        if self._stream is not None:
            values = (self._checked(position, value) for position, value in enumerate(self._streamed()))
        found = np.fromiter(map(_size, values), np.int64)
        if len(found) != number:
            raise ValueError(f"{self._name} must give one text for each document ({number:,}), gave {len(found):,}")
        return found

    def _streamed(self) -> Iterator[object]:
        """Yield the texts of the callable, which may be those of Arrow columns."""
        for piece in () if self._stream is None else each_piece(self._name, self._stream(), MAX_PIECE):
            yield from piece if isinstance(piece, tuple) else Batch(piece, 0, True).tolist()

    def shown_id(self, position: int) -> Html:
        """Return the id of a document, as an element."""
        name = f"{position}" if self._ids is None else shortened(decoded(self._id(position)), MAX_NAME_LENGTH)
        return element("bdi", name, class_="id")

    def _id(self, position: int) -> object:
        try:
            return None if self._ids is None else self._ids[position]
        except (KeyError, IndexError):
            raise ValueError(f"{self._ids_name} must have an id at position {position:,}, and has none") from None


def _size(text: Text) -> int:
    """Return the size of a text in bytes of UTF-8."""
    if isinstance(text, str) and not text.isascii():
        return len(text.encode("utf-8", "surrogatepass"))
    return memoryview(text).nbytes if isinstance(text, memoryview) else len(text)


def _by_position(values: TextsByPosition) -> TextsByPosition:
    """Return `values` to be looked up by position: a column of pandas itself is looked up by its labels."""
    return getattr(values, "iloc", values)


def checked_length(name: str, values: Indexed, number: int) -> None:
    """Check that there is one value for each document, or for each item."""
    each = "item" if name.startswith("item") else "document"
    kinds = (*checks.TEXT_TYPES, Mapping, set, frozenset)
    if isinstance(values, kinds) or not (hasattr(values, "__len__") and hasattr(values, "__iter__")):
        raise errors.bad_type(name, f"must be a sequence with one value for each {each}, got {type(values).__name__}")
    if len(values) != number:
        raise errors.bad_value(name, f"must have one value for each {each} ({number}), got {len(values)}")


def decoded(value: object) -> str:
    """Return bytes decoded as UTF-8, and other objects as `str` converts them."""
    return bytes(value).decode("utf-8", "replace") if isinstance(value, checks.TEXT_TYPES[1:]) else str(value)


def shortened(value: str, length: int) -> str:
    """Return the first characters of a text."""
    return value if len(value) <= length else f"{value[: length - 1]}…"


def beginning(value: str, length: int = EXCERPT_LENGTH) -> Html:
    """Return the first characters of a text on one line, as an element."""
    return element("bdi", shortened(" ".join(value[: 8 * length].split()), length), class_="excerpt", dir="auto")


def coded(name: str, values: Indexed, number: int) -> tuple[list[str], NDArray[np.int64]]:
    """Return the distinct values, such as sources, and for each document the number of its own; errors have `name`."""
    checked_length(name, values, number)
    numbers: dict[str, int] = {}
    codes = np.fromiter(
        (numbers.setdefault("" if one is None else decoded(one), len(numbers)) for one in values), np.int64
    )
    return list(numbers), codes


def shown_source(name: str) -> str:
    """Return the name of a source as it is shown."""
    return shortened(name, MAX_NAME_LENGTH) or "(no source)"


def source_cell(name: str) -> Cell:
    """Return the cell of a table with the name of a source."""
    return Cell(element("bdi", shown_source(name), class_="id"))
