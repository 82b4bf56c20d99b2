"""Readers of the formats of text: plain lines, tab-separated lines and CSV (RFC 4180), and JSON lines (RFC 8259).

Of cells, a header names the columns. Without a header a single column is the text; of several columns, as many as the
first record has, the first is the id and the second the text. A first line that looks like an unexpected header, or has
another delimiter, is an error. Quotes have no meaning outside CSV.

JSON lines are an object a line, of which some fields are read; a blank line is no record. A field is a key of the
object or, with dots in its name, a key of an object within it. Ids, sources and ranks that are numbers keep their
digits as they are written.

The compiled readers read blocks of plain records. Python's `csv` and `json` read all other records, and so decide what
is accepted, such as NaN, Infinity and lone surrogates in JSON.
"""

from __future__ import annotations

import csv
import json
import re
import sys
import threading
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import ClassVar, NamedTuple

from lsh.base.arrays import Array
from lsh.base.errors import InputError, Parameter, Words, message, saying
from lsh.base.wording import counted
from lsh.files._fields import delimited_cells, json_fields
from lsh.files.blocks import LineStream, without_end
from lsh.files.json_strings import shortened
from lsh.files.readers import FieldColumns, Fields, RawRecord, Reader, Spans, joined, recoded
from lsh.files.records import (
    FIELD,
    ID_COLUMN,
    ID_FIELD,
    KEEP_FIELD,
    SKIP,
    SOURCE_FIELD,
    TEXT_COLUMNS,
    AddedFieldError,
    ReadOptions,
    Values,
    columns_note,
    decoded,
    default_column,
    escaped,
    listed,
    named_columns,
    no_column,
    place_of,
    undecodable,
    utf8,
    without_surrogates,
)
from lsh.text.batch import Batch
from lsh.text.cuts import without

MAX_CELL_LENGTH = 1 << 30  # characters of a cell of CSV: a limit if a quote is never closed
MAX_CELLS = sys.maxsize  # of a record without a header: any number
DELIMITERS = (",", ";", "\t", "|")  # that are recognised
HEADER_NAMES = {ID_COLUMN, *TEXT_COLUMNS, "title", "headline", "url"}  # by which a header is recognised

_CSV_PROBLEMS = {  # by the first word of the message of `csv`
    "new-line": "a carriage return outside quotes",
    "unexpected": "a quote is not closed",
}


_QUOTED = re.compile(rb'"(?:[^"]|"")*"')

_limit = threading.Lock()


@contextmanager
def _large_cells() -> Iterator[None]:
    """Raise the limit of `csv`, which the whole process shares; one thread at a time."""
    with _limit:
        before = csv.field_size_limit(MAX_CELL_LENGTH)
        try:
            yield
        finally:
            csv.field_size_limit(before)


class PlainText(Reader):
    """Reads plain lines: each is a text."""

    format = "txt"
    is_ready = True

    def one(self, record: RawRecord) -> Fields:
        """Read a line."""
        return Fields(None, record.cells[0])

    def many(self, block: bytes) -> FieldColumns | None:
        """Read whole lines."""
        found = delimited_cells(block, b"\n", (0,), 1, 1, quotes=False)
        return None if found is None else FieldColumns(found[2], found[1], found[0][0])

    def shortened(self, raw: bytes, cuts: Array) -> bytes:
        """Return a line without some runs of its text."""
        text = without_end(raw)
        return without(text, cuts) + raw[len(text) :]


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

    def columns(self, cells: Sequence[Batch], spans: Spans, size: int) -> tuple[FieldColumns, Batch | None]:
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
    HAS_QUOTES: ClassVar[bool]  # around cells that hold delimiters or newlines

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
        return self._ended(header, [field.name.encode() for field in self.options.added])

    def added_values(self, raw: bytes, values: Values | None) -> tuple[bytes, int]:
        """Return the added cells, empty ones for ``None``, and the size of the line end after them."""
        return self._ended(raw, [value or b"" for value in values or [None] * len(self.options.added)])

    def _ended(self, raw: bytes, cells: Sequence[bytes]) -> tuple[bytes, int]:
        """Return more cells of a record, and the size of its line end."""
        end = len(raw) - len(without_end(raw))
        return self._delimiter.encode().join([b"", *map(self._written, cells)]), end

    def _written(self, cell: bytes) -> bytes:
        """Return a cell as it is written."""
        found = escaped(cell)
        if self._delimiter.encode() in found:
            what, remedy = "the added value", "leave out " + Parameter("added")
            if self.options.adds_ids:
                what, remedy = "the id of the kept document", "use " + Parameter("removed")
                remedy += " in place of " + Parameter("added")
            cause = f"{what}, {decoded(cell)!r}, has the delimiter {self._delimiter!r} in it"
            problem = f"{cause}, which such a file cannot hold; " + remedy
            raise saying(ValueError(str(problem)), problem)
        return found

    def shortened(self, raw: bytes, cuts: Array) -> bytes:
        """Return a record with the cell of its text without some runs; all other bytes stay."""
        assert self._layout is not None
        start, size = 0, len(without_end(raw))
        for _ in range(self._layout.texts[0]):
            start = self._cell_end(raw, start, size) + len(self._delimiter.encode())
        end = self._cell_end(raw, start, size)
        return raw[:start] + self._shortened(raw[start:end], cuts) + raw[end:]

    def _cell_end(self, raw: bytes, start: int, size: int) -> int:
        """Return where the cell that begins at a place ends; the record ends at `size`."""
        end = raw.find(self._delimiter.encode(), start, size)
        return size if end < 0 else end

    def _shortened(self, cell: bytes, cuts: Array) -> bytes:
        """Return a cell as it is written, without some runs of its text."""
        return without(cell, cuts)

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

    def many(self, block: bytes) -> FieldColumns | None:
        """Read the whole records of a block."""
        layout = self._layout
        if layout is None:
            return None
        by = self._delimiter.encode()
        found = delimited_cells(block, by, layout.places(), layout.min_cells, layout.max_cells, self.HAS_QUOTES)
        return None if found is None else self.ranked(*layout.columns(*found))


class Tsv(_Separated):
    """Reads lines of cells with tabs between, or another delimiter."""

    format = "tsv"
    DELIMITER, HAS_QUOTES = "\t", False

    def _other_delimiter(self, line: str) -> str | None:
        if self._delimiter in line:
            return None
        return next((other for other in DELIMITERS if other in line and _is_header(line.split(other))), None)

    def _cells(self, record: RawRecord) -> Sequence[bytes]:
        return record.cells[0].split(self._delimiter.encode())


class Csv(_Separated):
    """Reads records of CSV, in which a quoted cell may hold newlines; an empty line is no record."""

    format = "csv"
    has_header = True
    DELIMITER, HAS_QUOTES = ",", True

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

    def _cell_end(self, raw: bytes, start: int, size: int) -> int:
        quoted = _QUOTED.match(raw, start, size)
        return super()._cell_end(raw, start, size) if quoted is None else quoted.end()

    def _shortened(self, cell: bytes, cuts: Array) -> bytes:
        if not cell.startswith(b'"'):
            return without(cell, cuts)
        return b'"%b"' % without(cell[1:-1].replace(b'""', b'"'), cuts).replace(b'"', b'""')

    def records(self, lines: LineStream, name: str, encoding: str) -> Iterator[RawRecord]:
        """Cut a file into records."""
        read: list[bytes] = []  # the lines of the current record

        def decoded(line: bytes) -> str:
            read.append(line)
            return recoded(line, encoding).decode("utf-8", "surrogateescape")

        reader = csv.reader(map(decoded, lines), delimiter=self._delimiter, strict=True)
        while True:
            read.clear()
            number, problem = lines.number + 1, ""
            cells: Sequence[bytes] = ()
            try:
                with _large_cells():
                    row = next(reader, None)
                if row is None:
                    return
                cells = [cell.encode("utf-8", "surrogateescape") for cell in row]
            except UnicodeError as error:
                number, problem = lines.number, undecodable(encoding, error)
            except csv.Error as error:
                problem = f"not CSV ({_CSV_PROBLEMS.get(str(error).partition(' ')[0], str(error))})"
            if cells or problem:  # else an empty line
                yield RawRecord(b"".join(read), cells, name, number, problem)


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


# ---- JSON lines ----


TEXT_REMEDY = "name the text's field with " + FIELD  # where a record lacks the field
SKIP_REMEDY = "use " + Parameter("missing", "empty") + " or " + SKIP  # where others have it

# Objects and lists within each other. Python's own limit depends on the depth of its calls; with this one, each reading
# of a file accepts the same lines.
MAX_DEPTH = 500
_STRING = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?', re.DOTALL)  # of JSON; a key has a colon behind it
_FIRST_FIELD = re.compile(rb'\s*\{\s*("[^"\\.]*")\s*:\s*(["0-9-])')  # its name, and the first byte of its value
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"?|([\[{])|([\]}])', re.DOTALL)  # or a string, whose brackets do not count

_ARRAY, _ARRAY_OF_OBJECTS = re.compile(r"\s*\["), re.compile(r"\s*\[\s*(\{|$)")  # at the start of a file

JsonObject = Mapping[str, object]


class _Number(str):
    """A number as it is written: ids keep their digits."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_int=_Number, parse_float=_Number, parse_constant=_Number)


class JsonLines(Reader):
    """Reads JSON lines; where no field is named, the first record with a text shows which field holds the text."""

    format = "jsonl"
    has_blanks = checks_utf8 = True

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self._fields = options.text_fields()
        self._id_name = ID_COLUMN if options.id_field is None else options.named_id()
        self._is_found = options.field is None  # whether any record has the field that is named
        self._absent: InputError | None = None  # the error if none has
        self._names: list[str] = []  # of the fields of the first record
        self._has_ids = False  # whether any record has the field of the id
        names = "|".join(re.escape(field.name) for field in options.added)
        self._clashing = re.compile(rf'"(?:{names})"'.encode())
        self._nulls = self._fields_of([None] * len(options.added), False)

    @property
    def is_ready(self) -> bool:
        """Whether it is known which field holds the text, and that the first record has no field that is added."""
        return self._fields is not None and bool(self._names or not self.options.added)

    def note(self) -> Words:
        """Return which fields hold the text and the id; it changes when a later block is the first with ids."""
        if self._fields is None:
            return ""
        texts, identity = [f"field {field!r}" for field in self._fields], None
        if self._id_name is not None and (self._has_ids or self.options.id_field is not None):
            identity = f"field {self._id_name!r}"
            identity += ", or the record number where a record has none" if self.options.id_field is None else ""
        return columns_note(texts, identity, self._names if self.options.default_id() else ())

    def start_problem(self, line: str) -> Words:
        """Return the error message if the file is a JSON array, else an empty string.

        Where malformed lines are skipped, a line such as ``[1]`` is one; an array of objects, or of several lines, is a
        file of another format.
        """
        is_file = _ARRAY_OF_OBJECTS.match(line) is not None
        if not is_file and (self.options.skip_bad or not _ARRAY.match(line)):
            return ""
        skip = "" if is_file else ", or use " + SKIP + " if the other lines are objects"
        return message("a JSON array, not JSON lines; write one object a line, such as with jq -c '.[]'") + skip

    def one(self, record: RawRecord) -> Fields:
        """Read a line."""
        found, options = _object(record), self.options
        if problem := options.clash(found):
            raise AddedFieldError(record.file, problem, record.number)
        self._names = self._names or list(found)
        if self._fields is None:
            default = default_column(found, self._id_name)
            if default is not None:
                self._fields = (default,)
            elif not options.allow_missing or len(found) > 1:
                fields = listed(list(found)) or "no fields at all"
                raise record.error(f"no text field found among {fields}; name it with " + FIELD)
        text = None if self._fields is None else self._text(record, found, self._fields)
        identity = None
        if self._id_name is not None:
            identity = _name(record, found, self._id_name, None if options.id_field is None else ID_FIELD)
            self._has_ids |= identity is not None
            identity = b"" if identity is None and not options.null_ids else identity
        source = rank = None
        if options.source_field is not None:
            source = _name(record, found, options.source_field, SOURCE_FIELD) or b""
        if options.keep_field is not None:
            rank = self.rank(record, _name(record, found, options.keep_field, KEEP_FIELD, ", or use " + SKIP))
        return Fields(identity, None if text is None else utf8(text), source, rank)

    def _text(self, record: RawRecord, found: JsonObject, fields: Sequence[str]) -> str | None:
        texts = []
        for field in fields:
            exists, text = _value(found, field)
            self._is_found |= exists
            if text is None and self.options.allow_missing:
                if self._absent is None and not self._is_found:
                    self._absent = _absent(record, field, found, TEXT_REMEDY)
                continue
            if not exists:
                raise _absent(record, field, found, TEXT_REMEDY + ", or " + SKIP_REMEDY)
            if text is None:
                raise record.error(f"field {field!r} is null; " + SKIP_REMEDY)
            if not isinstance(text, str) or isinstance(text, _Number):
                raise record.bad(f"field {field!r} must be a string, got {_type_name(text)}")
            texts.append(text)
        return " ".join(texts) if texts else None

    def many(self, block: bytes) -> FieldColumns | None:
        """Read whole lines."""
        options, texts = self.options, self._fields
        if texts is None:
            return None
        others = (self._id_name, options.source_field, options.keep_field)
        names = tuple(name for name in others if name is not None)
        wanted = (*texts, *names)
        if len(set(wanted)) < len(wanted) or any("." in name for name in wanted):
            return None
        found = json_fields(block, tuple(map(utf8, texts)), tuple(map(utf8, names)))
        if found is None:
            return None
        columns, named, spans = found
        by_name: dict[str | None, Batch | None] = dict(zip(names, named))
        if any(name is not None and by_name[name] is None for name in (options.named_id(), *others[1:])):
            return None
        self._is_found = True
        identities, sources = by_name.get(self._id_name), by_name.get(options.source_field)
        self._has_ids |= identities is not None
        if not self._names and len(spans):
            begin, size = spans[0].tolist()
            self._names = list(_DECODER.decode(block[begin : begin + size].decode()))
        fields = FieldColumns(len(block), spans, joined(columns), identities, sources)
        return self.ranked(fields, by_name.get(options.keep_field))

    def added_values(self, raw: bytes, values: Values | None) -> tuple[bytes, int]:
        """Return the added fields, which are before the closing brace, and the number of bytes from that on.

        An added id is a number if it reads as one and the id of the record is a number, such as that of the record.
        """
        end = len(raw) - len(raw.rstrip(b" \t\r\n")) + 1
        has_id = values is not None and self.options.adds_ids
        is_number = self._first_id(raw) if has_id and self._id_name is not None else None
        if (has_id and is_number is None) or self._may_clash(raw):
            fields = _DECODER.decode(raw.decode())
            if problem := self.options.clash(fields):
                raise saying(ValueError(str(problem)), problem)
            own = None if self._id_name is None else _value(fields, self._id_name)[1]
            is_number = own is None or isinstance(own, _Number)
        comma = b"" if raw[:-end].rstrip().endswith(b"{") else b", "
        if values is None:
            return comma + self._nulls, end
        return comma + self._fields_of(values, bool(is_number)), end

    def _may_clash(self, raw: bytes) -> bool:
        """Tell whether a line may have a key that is the name of an added field, plain or with escapes."""
        if self._clashing.search(raw):
            return True
        return b"\\u" in raw and any(b"\\u" in match[1] for match in _STRING.finditer(raw) if match[2])

    def shortened(self, raw: bytes, cuts: Array) -> bytes:
        """Return a line with the string of its text without some runs; all other bytes stay."""
        assert self._fields is not None
        return shortened(raw, self._fields[0], cuts)

    def _fields_of(self, values: Values, has_numbers: bool) -> bytes:
        """Return added fields, with ids that are numbers if these are."""
        parts = []
        for field, value in zip(self.options.added, values):
            shown = "null" if value is None else decoded(value)
            is_text = field.kind == "text" or (field.kind == "id" and not (has_numbers and _NUMBER.fullmatch(shown)))
            parts.append(f'"{field.name}": {json.dumps(shown) if is_text and value is not None else shown}')
        return ", ".join(parts).encode()

    def _first_id(self, raw: bytes) -> bool | None:
        """Tell whether the id of a line is a number, ``None`` if it is not plainly the first field."""
        name = b'"%b"' % str(self._id_name).encode("utf-8", "surrogatepass")
        match = _FIRST_FIELD.match(raw)
        return match[2] != b'"' if match is not None and match[1] == name and raw.count(name) == 1 else None

    def flags(self) -> tuple[bool, ...]:
        """Return whether any record has the field that is named, and whether any has the field of the id."""
        return self._is_found, self._has_ids

    def set_flags(self, flags: Sequence[bool]) -> None:
        """Go on with what another reader knows."""
        self._is_found, self._has_ids = flags

    def problem_at_end(self) -> InputError | None:
        """Return the error if no record has the field that is named: some texts may be missing, but not all."""
        return None if self._is_found else self._absent


def _object(record: RawRecord) -> JsonObject:
    """Return the object of a line."""
    (line,) = record.cells
    try:
        text = line.decode("utf-8")
        if _is_too_deep(text):
            raise record.bad(f"objects and lists are nested more than {MAX_DEPTH} deep")
        found = _DECODER.decode(text)
    except UnicodeDecodeError as error:
        raise record.bad(f"byte 0x{error.object[error.start]:02x} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise record.bad(f"not JSON ({error.msg} at character {error.pos + 1})") from None
    if not isinstance(found, dict):
        raise record.bad(f"not a JSON object but {_type_name(found)}")
    return found


def _is_too_deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth = 0
    for match in _BRACKET.finditer(text):
        depth += match.lastindex == 1
        depth -= match.lastindex == 2
        if depth > MAX_DEPTH:
            return True
    return False


def _value(found: JsonObject, field: str) -> tuple[bool, object]:
    """Return whether an object has a field, by its name or by dots, and its value."""
    if field in found:
        return True, found[field]
    value: object = found
    for part in field.split("."):
        if not isinstance(value, dict) or part not in value:
            return False, None
        value = value[part]
    return True, value


def _name(record: RawRecord, found: JsonObject, field: str, option: Parameter | None, more: Words = "") -> bytes | None:
    """Return an id, a source or a rank, a number as it is written; a field that no option names may be missing."""
    exists, value = _value(found, field)
    if not exists and option is not None:
        raise _absent(record, field, found, "name the right one with " + option + more, option)
    if isinstance(value, (dict, list, bool)):
        raise record.bad(f"field {field!r} must be a string or a number, got {_type_name(value)}")
    return utf8(value) if isinstance(value, str) else None


def _absent(record: RawRecord, field: str, found: JsonObject, remedy: Words, option: Parameter = FIELD) -> InputError:
    fields = listed(list(found)) or "no fields at all"
    return record.error(f"no field {field!r} among {fields}; " + message(remedy), option.name)


def _type_name(value: object) -> str:
    """Return the type of a value in the words of JSON."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
