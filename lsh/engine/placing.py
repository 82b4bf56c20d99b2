"""Distribute rows and texts of documents to partitions, and read each partition as a whole.

Rows arrive in order of position, but are needed partition by partition, for instance by components. They are collected
in a buffer; a full buffer is sorted by partition and appended to a column. So everything is written once and in order.
A partition is read with one read for each buffer; its rows are in the order in which they arrived.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from lsh.base.arrays import Array
from lsh.base.budget import MemoryBudget, SpilledColumn
from lsh.text.batch import Batch

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

MIN_MERGED = 256  # rows of a range that are read at once
BUFFER = 1 << 21  # bytes that are sorted at once; a copy of them takes as much

Rows = TypeVar("Rows", Array, Batch)


def ends_of(sizes: Array) -> Array:
    """Return where each text begins if they lie one after the other, and where the last one ends: int64."""
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    return ends


class PartitionWriter(ABC, Generic[Rows]):
    """Rows or texts, distributed to partitions. Several threads may read partitions after `finish`."""

    def __init__(self, budget: MemoryBudget, num_partitions: int, column: SpilledColumn, buffer: int) -> None:
        self._column = column
        self._num_partitions, self._most = num_partitions, min(buffer, BUFFER)
        self._partitions: list[Array] = []  # of the buffer: the partition of each row
        self._rows: list[Rows] = []
        self._size = 0  # of the buffer in bytes
        self._bounds: list[Array] = []  # for each buffer that was sorted, where its partitions begin in the column

    def _add(self, partitions: Array, rows: Rows, size: int) -> None:
        """Put rows, of `size` bytes, into the buffer."""
        self._partitions.append(np.array(partitions))
        self._rows.append(rows)
        self._size += size
        if self._size >= self._most:
            self.finish()

    def finish(self) -> None:
        """Sort the buffer; to be called after the last row."""
        if self._partitions:
            partitions, rows = np.concatenate(self._partitions), self._rows
            self._partitions, self._rows, self._size = [], [], 0
            order, first = np.argsort(partitions, kind="stable"), len(self._column)
            numbers = np.arange(self._num_partitions + 1, dtype=partitions.dtype)
            self._bounds.append(first + self._store(rows, order, np.searchsorted(partitions[order], numbers)))

    @abstractmethod
    def _store(self, rows: list[Rows], order: Array, places: Array) -> Array:
        """Append rows to the column in another order; return where each partition begins among them.

        `places` has the first row of each partition in this order.
        """

    def _ranges(self, partition: int) -> list[tuple[int, int]]:
        """Return where the rows of a partition are in the column, for each buffer that was sorted."""
        self.finish()
        return [(int(bounds[partition]), int(bounds[partition + 1])) for bounds in self._bounds]


class PartitionedRows(PartitionWriter[Array]):
    """Numbers, or rows of numbers, in partitions. Several threads may read partitions after `finish`.

    Parameters
    ----------
    budget : MemoryBudget
        Has the bound.
    num_partitions : int
        How many partitions there are.
    dtype : data type
        Of the numbers.
    width : int, optional
        The numbers in a row. Default: a row is a number.
    buffer : int, optional
        The bytes that are sorted at once.
    """

    def __init__(
        self,
        budget: MemoryBudget,
        num_partitions: int,
        dtype: DTypeLike,
        width: int | None = None,
        buffer: int = BUFFER,
    ) -> None:
        super().__init__(budget, num_partitions, budget.column(dtype, width), buffer)

    def append(self, partitions: Array, rows: Array) -> None:
        """Append rows, of which a copy is made; `partitions` has the partition of each."""
        copied = np.array(rows, self._column.dtype)
        self._add(partitions, copied, copied.nbytes)

    def _store(self, rows: list[Array], order: Array, places: Array) -> Array:
        self._column.append(np.concatenate(rows)[order])
        return places

    def read(self, partition: int) -> Iterator[Array]:
        """Yield the rows of a partition in the order in which they were appended."""
        for start, stop in self._ranges(partition):
            if start < stop:
                yield self._column.read(start, stop)


class PartitionedTexts(PartitionWriter[Batch]):
    """Texts in partitions. Several threads may read partitions after `finish`.

    Parameters
    ----------
    budget : MemoryBudget
        Has the bound.
    num_partitions : int
        How many partitions there are.
    buffer : int, optional
        The bytes that are sorted at once.
    """

    def __init__(self, budget: MemoryBudget, num_partitions: int, buffer: int = BUFFER) -> None:
        super().__init__(budget, num_partitions, budget.column(np.uint8), buffer)
        self._sizes = budget.column(np.int64)
        self._places: list[Array] = []  # for each buffer that was sorted, where its partitions begin in `_sizes`

    def append(self, partitions: Array, texts: Batch) -> None:
        """Append texts, of which copies are made; `partitions` has the partition of each."""
        ends = ends_of(texts.sizes())
        copied = np.empty(int(ends[-1]), np.uint8)
        texts.write(copied)
        self._add(partitions, Batch.of_bytes(copied, ends), len(copied) + ends.nbytes)

    def _store(self, rows: list[Batch], order: Array, places: Array) -> Array:
        texts = Batch.join(rows).take(order)
        self._places.append(len(self._sizes) + places)
        self._sizes.append(texts.sizes())
        ends = ends_of(texts.sizes())
        in_order = np.empty(int(ends[-1]), np.uint8)
        texts.write(in_order)
        self._column.append(in_order)
        return ends[places]

    def sizes(self, partition: int) -> Array:
        """Return the bytes of each text of a partition, int64."""
        self.finish()
        found = [self._sizes.read(int(places[partition]), int(places[partition + 1])) for places in self._places]
        return np.concatenate([np.empty(0, np.int64), *found])

    def read(self, partition: int) -> Iterator[Batch]:
        """Yield the texts of a partition in the order in which they were appended; a batch is from one buffer."""
        for (start, stop), places in zip(self._ranges(partition), self._places):
            first, last = int(places[partition]), int(places[partition + 1])
            if first < last:
                yield Batch.of_bytes(self._column.read(start, stop), ends_of(self._sizes.read(first, last)))


def merged(rows: SpilledColumn, bounds: list[int], field: str, memory: int) -> Iterator[Array]:
    """Merge ranges of a column of records; a value of the field is in one range only.

    Parameters
    ----------
    rows : SpilledColumn
        In each range, the records ascend by the field.
    bounds : list of int
        Where each range begins, and the end of the last one.
    field : str
        The name of the field.
    memory : int
        Bytes for records of all ranges.

    Yields
    ------
    numpy.ndarray
        All records in ascending order by the field; those of one value in the order of the column.
    """
    at, ends = bounds[:-1], bounds[1:]
    count = max(memory // (rows.row_size * max(len(at), 1)), MIN_MERGED)
    held = [rows.rows(0)] * len(at)
    while True:
        for number in [number for number, some in enumerate(held) if not len(some)]:
            stop = min(at[number] + count, ends[number])
            held[number], at[number] = rows.read(at[number], stop), stop
        last = min((some[field][-1] for some, here, end in zip(held, at, ends) if here < end), default=None)
        counts = [len(some) if last is None else np.searchsorted(some[field], last, "right") for some in held]
        found = np.concatenate([rows.rows(0), *(some[:number] for some, number in zip(held, counts))])
        if not len(found):
            return
        yield found[np.argsort(found[field], kind="stable")]
        held = [some[number:] for some, number in zip(held, counts)]
