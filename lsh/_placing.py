"""Distribute rows and texts of documents to parts, and read each part as a whole.

Rows arrive in order of position, but are needed part by part, for instance by components. They are collected in a
buffer; a full buffer is sorted by part and appended to a column. So everything is written once and in order. A part is
read with one read for each buffer; its rows are in the order in which they arrived.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from lsh._batch import Batch
from lsh._spill import Array, Column, Spill

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

BUFFER = 1 << 22  # bytes that are sorted at once; a copy of them takes as much


def _bounds(ascending: Array, num_parts: int) -> Array:
    """Return where each part begins among ascending part numbers, and how many there are."""
    return np.searchsorted(ascending, np.arange(num_parts + 1, dtype=ascending.dtype))


def _read(column: Column, ranges: list[tuple[int, int]]) -> Array:
    """Return several ranges of a column, one after the other."""
    rows = column.rows(sum(stop - start for start, stop in ranges))
    at = 0
    for start, stop in ranges:
        column.read(start, stop, out=rows[at : at + stop - start])
        at += stop - start
    return rows


class PlacedRows:
    """Numbers, or rows of numbers, in parts. Several threads may read parts after `finish`.

    Parameters
    ----------
    spill : Spill
        Has the bound.
    num_parts : int
        How many parts there are.
    dtype : data type
        Of the numbers.
    width : int, optional
        The numbers in a row. Default: a row is a number.
    buffer : int, optional
        The bytes that are sorted at once.
    """

    def __init__(
        self, spill: Spill, num_parts: int, dtype: DTypeLike, width: int | None = None, buffer: int = BUFFER
    ) -> None:
        self._spill, self._column = spill, spill.column(dtype, width)
        self._num_parts, self._buffer = num_parts, min(buffer, BUFFER)
        self._numbers: list[Array] = []  # of the buffer: the part of each row
        self._rows: list[Array] = []
        self._size = 0
        self._bounds: list[Array] = []  # for each buffer that was sorted, where its parts begin in the column

    def append(self, parts: Array, rows: Array) -> None:
        """Append rows; `parts` has the part of each."""
        self._numbers.append(np.array(parts))
        self._rows.append(np.array(rows, self._column.dtype))
        self._size += self._rows[-1].nbytes
        if self._size >= self._buffer:
            self.finish()

    def finish(self) -> None:
        """Sort the buffer; to be called after the last row."""
        if self._numbers:
            numbers, rows = np.concatenate(self._numbers), np.concatenate(self._rows)
            self._numbers, self._rows, self._size = [], [], 0
            order = np.argsort(numbers, kind="stable")
            self._bounds.append(len(self._column) + _bounds(numbers[order], self._num_parts))
            self._column.append(rows[order])
            del numbers, rows, order
            self._spill.trim()

    def read(self, part: int) -> Array:
        """Return the rows of a part in the order in which they came."""
        self.finish()
        return _read(self._column, [(int(bounds[part]), int(bounds[part + 1])) for bounds in self._bounds])


class PlacedTexts:
    """Texts in parts. Several threads may read parts after `finish`.

    Parameters
    ----------
    spill : Spill
        Has the bound.
    num_parts : int
        How many parts there are.
    buffer : int, optional
        The bytes that are sorted at once.
    """

    def __init__(self, spill: Spill, num_parts: int, buffer: int = BUFFER) -> None:
        self._spill, self._column = spill, spill.column(np.uint8)
        self._sizes = PlacedRows(spill, num_parts, np.int64, None, buffer)
        self._num_parts, self._buffer = num_parts, min(buffer, BUFFER)
        self._numbers: list[Array] = []
        self._texts: list[Batch] = []
        self._size = 0
        self._bounds: list[Array] = []  # for each buffer that was sorted, where the bytes of its parts begin
        self._places: list[Array] = []  # and where the texts of its parts begin

    def append(self, parts: Array, texts: Batch) -> None:
        """Append texts, of which copies are made; `parts` has the part of each."""
        sizes = texts.sizes()
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        copied = np.empty(int(ends[-1]), np.uint8)
        texts.write(copied)
        self._numbers.append(np.array(parts))
        self._texts.append(Batch.of_bytes(copied, ends))
        self._sizes.append(parts, sizes)
        self._size += len(copied) + ends.nbytes
        if self._size >= self._buffer:
            self.finish()

    def finish(self) -> None:
        """Sort the buffer; to be called after the last text."""
        self._sizes.finish()
        if self._numbers:
            numbers, texts = np.concatenate(self._numbers), Batch.join(self._texts)
            self._numbers, self._texts, self._size = [], [], 0
            order = np.argsort(numbers, kind="stable")
            texts = texts.take(order)
            ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(texts.sizes())])
            sorted_texts = np.empty(int(ends[-1]), np.uint8)
            texts.write(sorted_texts)
            places = _bounds(numbers[order], self._num_parts)
            self._places.append(places)
            self._bounds.append(len(self._column) + ends[places])
            self._column.append(sorted_texts)
            del numbers, texts, order, sorted_texts
            self._spill.trim()

    def sizes(self, part: int) -> Array:
        """Return the bytes of each text of a part, int64."""
        return self._sizes.read(part)

    def read(self, part: int) -> Iterator[Batch]:
        """Yield the texts of a part in the order in which they came; each batch is what one buffer had."""
        self.finish()
        sizes, first = self._sizes.read(part), 0
        for bounds, places in zip(self._bounds, self._places):
            count = int(places[part + 1] - places[part])
            if count:
                ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[first : first + count])])
                yield Batch.of_bytes(self._column.read(int(bounds[part]), int(bounds[part + 1])), ends)
            first += count
