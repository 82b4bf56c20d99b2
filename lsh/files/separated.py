"""CSV (RFC 4180), tab-separated lines and plain lines: records of cells.

A header names the columns. Without a header a single column is the text; of several columns, as many as the first
record has, the first is the id and the second the text. A first line that looks like an unexpected header, or has
another delimiter, is an error. The compiled readers read blocks of plain records; Python's `csv` reads all other
records of CSV. Quotes have no meaning outside CSV.
"""

from __future__ import annotations

import csv
import sys
import threading
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import ClassVar, NamedTuple

from lsh.base.errors import Parameter, Words, saying
from lsh.base.wording import counted
from lsh.files._fields import csv_cells, line_cells
from lsh.files.blocks import Stream
from lsh.files.lines import FieldColumns, Fields, RawRecord, Reader, Spans, joined
from lsh.files.records import (
    FIELD,
    ID_COLUMN,
    ID_FIELD,
    KEEP_FIELD,
    SKIP,
    SOURCE_FIELD,
    TEXT_COLUMNS,
    ReadOptions,
    Values,
    columns_note,
    decoded,
    escaped,
    listed,
    named_columns,
    no_column,
    place_of,
    undecodable,
    without_surrogates,
)
from lsh.text.batch import Batch

MAX_CELL_LENGTH = 1 << 30  # characters of a cell of CSV: a limit if a quote is never closed
MAX_CELLS = sys.maxsize  # of a record without a header: any number
DELIMITERS = (",", ";", "\t", "|")  # that are recognised
HEADER_NAMES = {ID_COLUMN, *TEXT_COLUMNS, "title", "headline", "url"}  # by which a header is recognised

_CSV_PROBLEMS = {  # by the first word of the message of `csv`
    "new-line": "a carriage return outside quotes",
    "unexpected": "a quote is not closed",
}


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
        found = line_cells(block, b"\n", (0,), 1, 1)
        return None if found is None else FieldColumns(len(block), found[1], found[0][0])


class _Layout(NamedTuple):
    """The places of the text, the id, the source and the rank in a record, and how many cells a record has."""

    texts: tuple[int, ...]
    identity: int | None
    source: int | None
    rank: int | None
    min_cells: int
    max_cells: int
    line: int  # the line of the header, or of the first record
    header: Sequence[bytes] = ()

    def places(self) -> tuple[int, ...]:
        """Return the places of the cells to read: the text's, then those of the other fields, if there are any."""
        return (*self.texts, *(place for place in (self.identity, self.source, self.rank) if place is not None))

    def columns(self, size: int, spans: Spans, cells: Sequence[Batch]) -> tuple[FieldColumns, Batch | None]:
        """Return the fields without the ranks, and the cells of these, given the cells at `places`."""
        columns: dict[int | None, Batch] = dict(zip(self.places(), cells))
        texts = [columns[place] for place in self.texts]
        fields = FieldColumns(size, spans, joined(texts), columns.get(self.identity), columns.get(self.source))
        return fields, columns.get(self.rank)

    def note(self, options: ReadOptions) -> Words:
        """Return which columns hold the text and the id."""
        names = _names(self.header)

        def shown(place: int) -> str:
            return f"column {place + 1}" + (f" {listed([names[place]])}" if names else "")

        identity = None if self.identity is None else shown(self.identity)
        return columns_note(list(map(shown, self.texts)), identity, names if options.default_id() else ())

    def mismatch(self, count: int) -> str:
        """Return the error message for a record of another number of cells."""
        if self.header:
            return f"expected {counted(self.min_cells, 'column')}, as in the header, got {count}"
        more = " or more" if self.max_cells > self.min_cells else ""
        return f"expected {counted(self.min_cells, 'column')}{more}, as in line {self.line}, got {count}"


class _Separated(Reader):
    """Reads records of cells; the header or, without one, the first record shows the layout of all."""

    DELIMITER: ClassVar[str]  # if none is given

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self._layout: _Layout | None = None
        self._delimiter = self.DELIMITER if options.delimiter is None else options.delimiter

    @property
    def is_ready(self) -> bool:
        """Whether the layout is known."""
        return self._layout is not None

    def note(self) -> Words:
        """Return which columns hold the text and the id."""
        return "" if self._layout is None else self._layout.note(self.options)

    def start_problem(self, line: str) -> Words:
        """Return the error message if the first line has another delimiter, or looks like an unexpected header."""
        other = self._other_delimiter(line) if self.options.delimiter is None else None
        if other is not None:
            found, default = (Parameter("delimiter", one) for one in (other, self._delimiter))
            remedy = "use " + found + ", or " + default + " if that is wrong"
            return f"the columns seem to be separated by {_typed(other)}; " + remedy
        cells = line.split(self._delimiter)
        if self.options.header is None and not self.has_header and _is_header(cells):
            yes, no = (Parameter("header", value) for value in (True, False))
            return f"the first line looks like a header: {listed(cells)}; use " + yes + ", or " + no + " if it is data"
        return ""

    def added_names(self, header: bytes) -> tuple[bytes, int]:
        """Return the cells of the names of the added columns, and the size of the line end after them."""
        return self._ended(header, [name.encode() for name in self.options.added])

    def added_values(self, raw: bytes, values: Values | None) -> tuple[bytes, int]:
        """Return the added cells, empty ones for ``None``, and the size of the line end after them."""
        return self._ended(raw, [b""] * len(self.options.added) if values is None else values)

    def _ended(self, raw: bytes, cells: Values) -> tuple[bytes, int]:
        """Return more cells of a record, and the size of its line end."""
        end = len(raw) - len(raw.removesuffix(b"\n").removesuffix(b"\r"))
        return self._delimiter.encode().join([b"", *map(self._written, cells)]), end

    def _written(self, cell: bytes) -> bytes:
        """Return a cell as it is written."""
        found = escaped(cell)
        if self._delimiter.encode() in found:
            cause = f"the id of the kept document, {decoded(cell)!r}, has the delimiter {self._delimiter!r} in it"
            remedy = "use " + Parameter("removed") + " in place of " + Parameter("added")
            problem = f"{cause}, which such a file cannot hold; " + remedy
            raise saying(ValueError(str(problem)), problem)
        return found

    @abstractmethod
    def _other_delimiter(self, line: str) -> str | None: ...

    @abstractmethod
    def _cells(self, record: RawRecord) -> Sequence[bytes]: ...

    def take_header(self, header: RawRecord) -> None:
        """Find the columns by their names."""
        cells = self._cells(header)
        if problem := self.options.clash(_names(cells)):
            raise header.error(problem)
        if self._layout is None:
            self._layout = _named_layout(header, cells, self.options)
        elif self._layout.header != cells:
            expected, got = listed(_names(self._layout.header)), listed(_names(cells))
            raise header.error(f"expected the columns of the first file, {expected}, got {got}; make them alike")

    def one(self, record: RawRecord) -> Fields:
        """Read a record."""
        cells = self._cells(record)
        if self._layout is None:
            self._layout = _numbered_layout(record, len(cells), self.options)
        layout = self._layout
        if not layout.min_cells <= len(cells) <= layout.max_cells:
            raise record.bad(layout.mismatch(len(cells)))
        identity = None if layout.identity is None else cells[layout.identity]
        source = None if layout.source is None else cells[layout.source]
        rank = None if layout.rank is None else self.rank(record, cells[layout.rank])
        return Fields(identity, b" ".join([cells[place] for place in layout.texts]), source, rank)


class Tsv(_Separated):
    """Reads lines of cells with tabs between, or another delimiter."""

    format = "tsv"
    DELIMITER = "\t"

    def _other_delimiter(self, line: str) -> str | None:
        if self._delimiter in line:
            return None
        return next((other for other in DELIMITERS if other in line and _is_header(line.split(other))), None)

    def _cells(self, record: RawRecord) -> Sequence[bytes]:
        return record.cells[0].split(self._delimiter.encode())

    def many(self, block: bytes) -> FieldColumns | None:
        """Read whole lines."""
        layout = self._layout
        if layout is None:
            return None
        found = line_cells(block, self._delimiter.encode(), layout.places(), layout.min_cells, layout.max_cells)
        return None if found is None else self.ranked(*layout.columns(len(block), found[1], found[0]))


class Csv(_Separated):
    """Reads records of CSV, in which a quoted cell may hold newlines; an empty line is no record."""

    format = "csv"
    spans_lines = has_header = True
    DELIMITER = ","

    def _other_delimiter(self, line: str) -> str | None:
        """Return the delimiter by which the first cell ends first, ``None`` if it is the expected one."""
        found = {delimiter: _first_cell(line, delimiter) for delimiter in DELIMITERS}
        first = found.pop(self._delimiter)
        ends = {delimiter: len(cell) for delimiter, cell in found.items() if cell is not None}
        other = min(ends, key=ends.__getitem__, default=None)
        return other if other is not None and (first is None or ends[other] < len(first)) else None

    def _cells(self, record: RawRecord) -> Sequence[bytes]:
        return record.cells

    def _written(self, cell: bytes) -> bytes:
        cell = without_surrogates(cell)
        is_plain = not any(one in cell for one in (self._delimiter.encode(), b'"', b"\r", b"\n"))
        return cell if is_plain else b'"%b"' % cell.replace(b'"', b'""')

    def records(self, lines: Stream, name: str, encoding: str) -> Iterator[RawRecord]:
        """Cut a file into records."""
        is_utf8 = encoding == "utf-8"
        read: list[bytes] = []  # the lines of the current record

        def decoded(line: bytes) -> str:
            read.append(line)
            return line.decode(encoding, "surrogateescape" if is_utf8 else "strict")

        reader = csv.reader(map(decoded, lines), delimiter=self._delimiter, strict=True)
        while True:
            read.clear()
            number, problem = lines.number + 1, ""
            cells: Sequence[bytes] = ()
            try:
                with _cell_limit:
                    row = next(reader)
                cells = [cell.encode("utf-8", "surrogateescape" if is_utf8 else "surrogatepass") for cell in row]
            except StopIteration:
                return
            except UnicodeError as error:
                number, problem = lines.number, undecodable(encoding, error)
            except csv.Error as error:
                problem = f"not CSV ({_CSV_PROBLEMS.get(str(error).partition(' ')[0], str(error))})"
            if cells or problem:  # else an empty line
                yield RawRecord(b"".join(read), cells, name, number, problem)

    def many(self, block: bytes) -> FieldColumns | None:
        """Read the whole records of a block."""
        if self._layout is None:
            return None
        layout = self._layout
        found = csv_cells(block, self._delimiter.encode(), layout.places(), layout.min_cells, layout.max_cells)
        if found is None:
            return None
        cells, spans, size = found
        return self.ranked(*layout.columns(size, spans, cells))


def _named_layout(header: RawRecord, cells: Sequence[bytes], options: ReadOptions) -> _Layout:
    """Return the layout that a header shows."""
    names = _names(cells)
    fields, identity = named_columns(names, options, header.error)

    def place(column: str, option: Parameter) -> int:
        found = place_of(names, column)
        if found is None:
            raise header.error(no_column(names, column, option), None if column in names else option.name)
        return found

    texts = tuple(place(field, FIELD) for field in fields)
    id_place = None if identity is None else place(identity, ID_FIELD)
    source = None if options.source_field is None else place(options.source_field, SOURCE_FIELD)
    rank = None if options.keep_field is None else place(options.keep_field, KEEP_FIELD)
    return _Layout(texts, id_place, source, rank, len(names), len(names), header.number, cells)


def _numbered_layout(first: RawRecord, count: int, options: ReadOptions) -> _Layout:
    """Return the layout by the first record, without a header; columns are named by their numbers."""
    names = [str(number + 1) for number in range(count)]

    def place(column: str, option: Parameter) -> int:
        found = place_of(names, column)
        if found is None:
            problem = option + f" is {column}, and the line has {counted(count, 'column')}"
            raise first.error(problem + "; name another column or use " + SKIP)
        return found

    named_id = options.named_id()
    identity = None if named_id is None else place(named_id, ID_FIELD)
    fields = options.text_fields()
    if fields is not None:
        texts = tuple(place(field, FIELD) for field in fields)
    else:
        others = [number for number in range(count) if number != identity]
        if not others or (identity == 1 and len(others) > 1):
            problem = ID_FIELD + f" is {named_id}, and it is not known which column is the text; give "
            raise first.error(problem + FIELD)
        texts = (others[0] if len(others) == 1 else 1,)
    if options.id_field is None and count > 1 and 0 not in texts:
        identity = 0
    source = None if options.source_field is None else place(options.source_field, SOURCE_FIELD)
    rank = None if options.keep_field is None else place(options.keep_field, KEEP_FIELD)
    places = [*texts, *(found for found in (identity, source, rank) if found is not None)]
    return _Layout(texts, identity, source, rank, max(places) + 1, 1 if count == 1 else MAX_CELLS, first.number)


def _names(header: Sequence[bytes]) -> list[str]:
    return [cell.decode("utf-8", "replace") for cell in header]


def _is_header(cells: Sequence[str]) -> bool:
    return any(cell.strip(' "').lower() in HEADER_NAMES for cell in cells)


def _first_cell(line: str, delimiter: str) -> str | None:
    """Return the first of several cells of a line of CSV, ``None`` if there is one only or the line is malformed."""
    with suppress(csv.Error, StopIteration):
        row = next(csv.reader([line], delimiter=delimiter, strict=True))
        return row[0] if len(row) > 1 else None
    return None


def _typed(delimiter: str) -> str:
    """Return a delimiter as it is typed in a shell."""
    return "tab" if delimiter == "\t" else f"'{delimiter}'"
