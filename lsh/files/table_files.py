"""Open files of Parquet and Arrow IPC: their rows in batches, also from a row on, and writers of files like them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, chain
from typing import IO, Any

from pyarrow import ipc

MAX_BATCH_ROWS, BATCH_BYTES = 1 << 12, 1 << 21  # rows, and approximate bytes, that are read at once
BUFFER = 1 << 20  # bytes of a column that are read at once
ARROW_FILE = b"ARROW1"  # the first bytes of a file, but not of a stream
ARROW_END = b"\xff\xff\xff\xff\0\0\0\0"  # the last bytes of a stream

Group = tuple[int, Callable[[], Iterator[Any]]]


class ParquetTable:
    """An open Parquet file."""

    def __init__(self, file: IO[bytes]) -> None:
        from pyarrow import parquet

        self._file = parquet.ParquetFile(file, buffer_size=BUFFER, pre_buffer=False)  # else the whole file piles up
        self.schema = self._file.schema_arrow

    def share(self, row: int) -> float | None:
        """Return which share of the file its first rows are, as columns are not read from the start to the end."""
        return row / max(int(self._file.metadata.num_rows), 1)

    def rows(self, names: list[str], first: int) -> Iterator[Any]:
        """Yield batches of some columns, from a row on; a name with dots is one column of a nested one."""
        metadata = self._file.metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        size = sum(group.total_byte_size for group in groups) // max(metadata.num_rows, 1)
        rows = min(max(BATCH_BYTES // max(size, 1), 1), MAX_BATCH_ROWS)
        ends = list(accumulate(group.num_rows for group in groups))
        whole = bisect_right(ends, first) if first else 0  # groups that are not needed
        others = list(range(whole, len(groups)))
        batches = self._file.iter_batches(rows, others, columns=names, use_threads=False)
        yield from _from_row(batches, first - (ends[whole - 1] if whole else 0))

    def groups(self, names: list[str] | None = None) -> Iterator[Group]:
        """Yield the row groups: how many rows each has, and a function that reads some or all columns in batches."""
        for number in range(self._file.num_row_groups):
            size = self._file.metadata.row_group(number).num_rows
            yield size, partial(self._file.iter_batches, MAX_BATCH_ROWS, [number], names, use_threads=False)

    def writer(self, sink: Any, schema: Any) -> Any:
        """Return a writer of files like this one, with a schema that may have more columns."""
        from pyarrow import parquet

        metadata = self._file.metadata
        numbers = range(metadata.num_columns if metadata.num_row_groups else 0)
        columns = [metadata.row_group(0).column(number) for number in numbers]
        codecs = {column.path_in_schema: column.compression.replace("UNCOMPRESSED", "NONE") for column in columns}
        codecs |= {name: "SNAPPY" for name in schema.names[len(self.schema.names) :] if codecs}
        return parquet.ParquetWriter(sink, schema, compression=codecs or "snappy")


class ArrowTable:
    """An open file, or stream, of Arrow IPC."""

    def __init__(self, file: IO[bytes]) -> None:
        self._is_file = file.read(len(ARROW_FILE)) == ARROW_FILE
        if not self._is_file:
            file.seek(-min(len(ARROW_END), file.seek(0, 2)), 2)
            if file.read() != ARROW_END:
                raise EOFError("the end-of-stream marker is missing")
        file.seek(0)
        self._reader = ipc.open_file(file) if self._is_file else ipc.open_stream(file)
        self.schema = self._reader.schema

    def share(self, row: int) -> None:
        """Return ``None``: the position in the file says how much of it is read."""

    def rows(self, names: list[str], first: int) -> Iterator[Any]:
        """Yield batches of the rows from one on, with all columns."""
        for batch in _from_row(chain.from_iterable(batches() for _, batches in self.groups()), first):
            yield from (batch.slice(start, MAX_BATCH_ROWS) for start in range(0, len(batch), MAX_BATCH_ROWS))

    def groups(self, names: list[str] | None = None) -> Iterator[Group]:
        """Yield the batches of the file as `ParquetTable.groups` yields row groups, with all columns."""
        reader = self._reader
        batches = map(reader.get_batch, range(reader.num_record_batches)) if self._is_file else reader
        return ((len(batch), partial(iter, [batch])) for batch in batches)

    def writer(self, sink: Any, schema: Any) -> Any:
        """Return a writer of files, or of streams, like this one."""
        return ipc.new_file(sink, schema) if self._is_file else ipc.new_stream(sink, schema)


def _from_row(batches: Iterator[Any], first: int) -> Iterator[Any]:
    """Yield batches from a row on."""
    for batch in batches:
        if len(batch) > first:
            yield batch.slice(first)
        first = max(first - len(batch), 0)
