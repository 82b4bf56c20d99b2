"""CSV (RFC 4180), tab-separated lines and plain lines: records of cells.

A header names the cells. Without one a lone cell is the text; of two or more the first is the id and the second the
text, and the first record shows which of the two it is. The compiled readers take blocks in which every record has
the cells that are expected; Python's `csv` judges every other record of CSV. A quote has no meaning outside CSV.
"""

from __future__ import annotations

import csv
import sys
import threading
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

from lsh._batch import Batch
from lsh.files._fields import csv_cells, line_cells
from lsh.files.blocks import Stream
from lsh.files.lines import FieldColumns, Fields, Line, RawRecord, Reader, joined
from lsh.files.records import ReadOptions, listed, named_columns, undecodable, utf8

MAX_CELL_LENGTH = 1 << 30  # characters of a cell of CSV: a quote that is never closed must not fill the memory
MAX_CELLS = sys.maxsize  # of a record without a header


class _CellLimit:
    """Raises the limit of `csv`, which the whole process shares, while a record is read, in any thread."""

    def __init__(self) -> None:
        self._lock, self._users, self._before = threading.Lock(), 0, 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._before = csv.field_size_limit(MAX_CELL_LENGTH)
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                csv.field_size_limit(self._before)


_cell_limit = _CellLimit()


class PlainText(Reader):
    """Reads plain lines: each is a text."""

    format = "txt"
    is_ready = True

    def one(self, record: RawRecord) -> Fields:
        """Read a line."""
        return Fields(None, record.cells[0])

    def many(self, block: bytes) -> FieldColumns | None:
        """Read whole lines."""
        columns = line_cells(block, b"\n", (0,), 1, 1)
        return None if columns is None else FieldColumns(len(block), columns[0])


class _Layout(NamedTuple):
    """Where the text, the id and the source are in a record, and how many cells it has."""

    texts: tuple[int, ...]
    identity: int | None
    source: int | None
    min_cells: int
    max_cells: int
    line: int  # of the record that shows it
    header: Sequence[Line] = ()

    def places(self) -> tuple[int, ...]:
        """Return the cells to read: those of the text, then those of the id and the source, where there are any."""
        return (*self.texts, *(place for place in (self.identity, self.source) if place is not None))

    def columns(self, size: int, cells: Sequence[Batch]) -> FieldColumns:
        """Return what the cells at `places` say."""
        columns: dict[int | None, Batch] = dict(zip(self.places(), cells))
        texts = [columns[place] for place in self.texts]
        return FieldColumns(size, joined(texts), columns.get(self.identity), columns.get(self.source))


class _Separated(Reader):
    """Reads records of cells; the header, or else the first record, shows the layout of all."""

    LONE: ClassVar[str]  # what a record of one cell is called in a message without a header
    PAIR: ClassVar[str]  # what a record of two is

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self._layout: _Layout | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the layout is known."""
        return self._layout is not None

    @abstractmethod
    def _cells(self, record: RawRecord) -> Sequence[Line]: ...

    def take_header(self, header: RawRecord) -> None:
        """Find the columns by their names."""
        cells = self._cells(header)
        if self._layout is None:
            self._layout = _named_layout(header, cells, self.options)
        elif self._layout.header != cells:
            expected, got = listed(_names(self._layout.header)), listed(_names(cells))
            raise header.error(f"expected the columns of the first file, {expected}, got {got}; make them alike")

    def one(self, record: RawRecord) -> Fields:
        """Read a record."""
        cells = self._cells(record)
        if self._layout is None:
            pair = _Layout((1,), 0, None, 2, MAX_CELLS, record.number)
            lone = _Layout((0,), None, None, 1, 1, record.number)
            self._layout = pair if len(cells) > 1 else lone
        layout = self._layout
        if not layout.min_cells <= len(cells) <= layout.max_cells:
            raise record.error(self._mismatch(layout, len(cells)))
        identity = None if layout.identity is None else cells[layout.identity]
        source = None if layout.source is None else cells[layout.source]
        return Fields(identity, b" ".join([utf8(cells[place]) for place in layout.texts]), source)

    def _mismatch(self, layout: _Layout, count: int) -> str:
        if layout.header:
            return f"expected {layout.min_cells} columns, as in the header, got {count}; correct the line"
        expected, got = (self.PAIR, self.LONE) if count == 1 else (self.LONE, self.PAIR)
        return f"expected {expected}, as in line {layout.line}, got {got}; correct the line"


class Tsv(_Separated):
    """Reads lines of cells with tabs between."""

    format = "tsv"
    LONE, PAIR = "no tab", "an id, a tab and a text"

    def _cells(self, record: RawRecord) -> Sequence[Line]:
        (line,) = record.cells
        return line.split(b"\t") if isinstance(line, bytes) else line.split("\t")

    def many(self, block: bytes) -> FieldColumns | None:
        """Read whole lines."""
        if self._layout is None:
            return None
        cells = line_cells(block, b"\t", self._layout.places(), self._layout.min_cells, self._layout.max_cells)
        return None if cells is None else self._layout.columns(len(block), cells)


class Csv(_Separated):
    """Reads records of CSV, in which a quoted cell may hold newlines; an empty line is no record."""

    format = "csv"
    spans_lines = True
    LONE, PAIR = "one column", "an id and a text"

    def _cells(self, record: RawRecord) -> Sequence[Line]:
        return record.cells

    def records(self, lines: Stream, name: str, encoding: str) -> Iterator[RawRecord]:
        """Cut a file into records."""
        is_utf8 = encoding == "utf-8"
        read: list[bytes] = []  # the lines of the record

        def decoded(line: bytes) -> str:
            read.append(line)
            return line.decode(encoding, "surrogateescape" if is_utf8 else "strict")

        reader = csv.reader(map(decoded, lines), strict=True)
        while True:
            read.clear()
            number, problem = lines.number + 1, ""
            cells: Sequence[Line] = ()
            try:
                with _cell_limit:
                    row = next(reader)
                cells = [cell.encode("utf-8", "surrogateescape") for cell in row] if is_utf8 else row
            except StopIteration:
                return
            except UnicodeError as error:
                number, problem = lines.number, undecodable(encoding, error)
            except csv.Error as error:
                got = "a carriage return outside quotes" if "new-line" in str(error) else str(error)
                problem = f"expected a record of CSV, got {got}; correct it"
            if cells or problem:  # else an empty line
                yield RawRecord(b"".join(read), cells, name, number, problem)

    def many(self, block: bytes) -> FieldColumns | None:
        """Read the whole records of a block."""
        if self._layout is None:
            return None
        found = csv_cells(block, self._layout.places(), self._layout.min_cells, self._layout.max_cells)
        if found is None:
            return None
        cells, size = found
        return self._layout.columns(size, cells)


def _named_layout(header: RawRecord, cells: Sequence[Line], options: ReadOptions) -> _Layout:
    """Return the layout that a header shows."""
    names = _names(cells)
    fields, identity = named_columns(names, options, header.error)
    named = [(field, "--field") for field in fields]
    for column, option in [*named, (options.id_field, "--id-field"), (options.source_field, "--source-field")]:
        if column is not None and names.count(column) != 1:
            raise header.error(f"expected one column {column!r}, got {listed(names)}; name the right one with {option}")
    return _Layout(
        tuple(names.index(field) for field in fields),
        None if identity is None else names.index(identity),
        None if options.source_field is None else names.index(options.source_field),
        len(names),
        len(names),
        header.number,
        cells,
    )


def _names(header: Sequence[Line]) -> list[str]:
    return [cell if isinstance(cell, str) else cell.decode("utf-8", "replace") for cell in header]
