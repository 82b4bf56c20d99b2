"""Text files of many documents: JSON lines, CSV, tab-separated and plain lines.

A file is cut into units: lines, or records of CSV (RFC 4180), which may hold quoted newlines. A unit keeps its bytes,
so that it can go out as it came in. Lines end at a newline only. UTF-8 is not checked where nothing has to understand
it; other encodings are decoded. What a column means is in `formats`.
"""

from __future__ import annotations

import codecs
import csv
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from typing import IO, Any, NamedTuple

from lsh._batch import Batch
from lsh.files import compression
from lsh.files._fields import csv_cells, json_fields, line_cells
from lsh.files.blocks import Stream, blocks, chunks
from lsh.files.records import (
    ID_COLUMN,
    Block,
    InputError,
    Options,
    Record,
    Tally,
    default_column,
    gathered,
    listed,
    utf8,
)
from lsh.files.storage import Input, Target


def _decoded_by_python(line: bytes | str) -> Any:
    return json.loads(line.decode("utf-8") if isinstance(line, bytes) else line)


_decode: Callable[[bytes | str], Any] = _decoded_by_python
with suppress(ImportError):  # of the extra io; it reads JSON faster than Python
    import msgspec

    _decode = msgspec.json.decode

LONGEST_FIELD = 1 << 30  # characters of a field of CSV; a quote that nothing closes shall not fill the memory
MOST_RECORD = 1 << 29  # bytes of a record of CSV that is still looked for in whole blocks
MARKS = {"utf-8": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
MARKS |= {"utf-32-le": codecs.BOM_UTF32_LE, "utf-32-be": codecs.BOM_UTF32_BE}
BY_MARK = ("utf-16", "utf-32")  # encodings that a mark at the beginning makes definite

ANY = sys.maxsize  # cells

Line = bytes | str


class _Unit(NamedTuple):
    """A line or a record: its bytes in the file, what it says, and where it begins."""

    raw: bytes
    content: Any  # bytes or str without the line end, or a list of fields; an InputError where that cannot be told
    number: int  # of its first line


class _Columns(NamedTuple):
    """Where the text and the id are, by position in a record."""

    texts: list[int]
    identity: int | None
    source: int | None
    width: int


class _Found(NamedTuple):
    """What a unit says; ``None`` for what it does not say."""

    identity: Line | None
    text: Line | None
    source: Line | None = None


class _FoundMany(NamedTuple):
    """What many units say: each has a text; ``None`` for what none of them says."""

    texts: Batch
    identities: Batch | None
    sources: Batch | None


class Lines:
    """The documents of text files of one format, in order.

    Parameters
    ----------
    inputs : sequence of Input
        The files; what heads them is the same in all.
    form : str
        A name of `formats.FORMATS`.
    options : Options
        How they are read.
    rejects : Target, optional
        Receives the lines that are skipped, once, however often the documents are read.
    """

    def __init__(self, inputs: Sequence[Input], form: str, options: Options, rejects: Target | None) -> None:
        self._inputs, self._form, self._options, self._rejects = inputs, form, options, rejects
        self._rejected = 0
        self.tally = Tally()

    def blocks(self) -> Iterator[Block]:
        """Yield the documents."""
        self.tally = Tally()
        return _Reading(self._inputs, self._form, self._options, self.tally, self._reject).blocks()

    def write_kept(self, flags: Callable[[], bool], target: Target) -> None:
        """Write the head and the units whose flag is true, as they are in the files."""
        reading = _Reading(self._inputs, self._form, self._options, Tally(), lambda raw: None)
        complete = True
        for raw, is_mark in reading.kept(flags):
            if not complete:
                target.write(reading.newline)
            target.write(raw)
            complete = is_mark or raw.endswith(reading.newline)

    def _reject(self, raw: bytes) -> None:
        self.tally.skipped += 1
        if self._rejects is not None and self.tally.skipped > self._rejected:
            self._rejects.write(raw)
            self._rejected = self.tally.skipped


class _Reading:
    """One reading of the files from beginning to end: which columns are read is settled at its start.

    Lines are read in blocks. A block without anything odd is read as a whole, by the floors below; else each of its
    lines is read by itself, so that the one to blame is found. Both ways say the same.
    """

    def __init__(
        self,
        inputs: Sequence[Input],
        form: str,
        options: Options,
        tally: Tally,
        reject: Callable[[bytes], None],
    ) -> None:
        self._inputs, self._form, self._options = inputs, form, options
        self._tally, self._reject = tally, reject
        self._header: list[Line] | None = None
        self._columns: _Columns | None = None
        self._fields: list[str] | None = options.fields()
        self._never_found: InputError | None = None  # what is said where no record has the field that is named
        self._found_any = False
        self._id_name = ID_COLUMN if options.id_field is None else options.id_field
        self._has_ids: bool | None = None
        self._first = 0  # the line of the first file by which it was settled whether there are ids
        self._running = 0  # documents
        self._encoding = options.encoding
        self.newline = b"\n"

    def blocks(self) -> Iterator[Block]:
        """Yield the documents."""
        for number, file in enumerate(self._inputs):
            with self._opened(file, number == 0) as (_, _, lines):
                yield from self._blocks_of(file, lines)
        if self._options.field is not None and self._never_found is not None and not self._found_any:
            raise self._never_found

    def kept(self, flags: Callable[[], bool]) -> Iterator[tuple[bytes, bool]]:
        """Yield mark and header of the first file, and the units of all whose flag is true; True with the mark."""
        for number, file in enumerate(self._inputs):
            with self._opened(file, number == 0) as (mark, header, lines):
                if number == 0 and mark:
                    yield mark, True
                if number == 0 and header:
                    yield header, False
                if self._options.skip:
                    yield from ((unit.raw, False) for unit, _ in self._documents(file, lines) if flags())
                elif self._form == "csv":
                    yield from ((unit.raw, False) for unit in self._units(file.name, lines) if flags())
                else:
                    while block := lines.block():
                        if chosen := b"".join([line for line in lines.split(block) if flags()]):
                            yield chosen, False

    # From bytes to lines.

    @contextmanager
    def _opened(self, file: Input, first: bool) -> Iterator[tuple[bytes, bytes, Stream]]:
        """Open a file; gives its byte order mark and its header, where it has them, and the lines behind."""
        try:
            with file.opened() as opened:
                mark, lines = self._marked(file, opened, first)
                header = next(self._units(file.name, lines), None) if self._options.header else None
                if header is not None:
                    self._take_header(file.name, header)
                yield mark, b"" if header is None else header.raw, lines
        except compression.DamagedError as error:
            raise file.damaged(error, _complete_lines(file)) from error

    def _marked(self, file: Input, opened: IO[bytes], first: bool) -> tuple[bytes, Stream]:
        """Return the byte order mark, maybe of no bytes, and the lines."""
        encoding = self._options.encoding
        read = chunks(opened)
        start = next(read, b"")
        file.check_plain(start, self._form)
        if encoding in BY_MARK:
            found = next((name for name in MARKS if name.startswith(encoding) and start.startswith(MARKS[name])), None)
            encoding = found or f"{encoding}-le"
        mark = MARKS.get(encoding, b"")
        mark = mark if start.startswith(mark) else b""
        if not first and encoding != self._encoding:
            raise InputError(file.name, f"expected {self._encoding}, as in the first file, got {encoding}; convert it")
        self._encoding, self.newline = encoding, "\n".encode(encoding)
        return mark, Stream(blocks(chain([start[len(mark) :]], read), self.newline), self.newline)

    # From lines to units.

    def _units(self, name: str, lines: Stream) -> Iterator[_Unit]:
        return self._csv_units(name, lines) if self._form == "csv" else self._line_units(name, lines)

    def _line_units(self, name: str, lines: Stream) -> Iterator[_Unit]:
        for raw in lines:
            content: Any
            if self._encoding == "utf-8":
                content = raw.removesuffix(b"\n").removesuffix(b"\r")
            else:
                try:
                    content = raw.decode(self._encoding).removesuffix("\n").removesuffix("\r")
                except UnicodeError as error:
                    content = self._undecoded(name, error, lines.number)
            yield _Unit(raw, content, lines.number)

    def _csv_units(self, name: str, lines: Stream) -> Iterator[_Unit]:
        csv.field_size_limit(LONGEST_FIELD)
        plain = self._encoding == "utf-8"
        feed = _Feed(lines, self._encoding, "surrogateescape" if plain else "strict")
        reader = csv.reader(feed, strict=True)
        while True:
            line = lines.number + 1
            content: Any
            try:
                content = next(reader)
            except StopIteration:
                return
            except UnicodeError as error:
                content = self._undecoded(name, error, lines.number)
            except csv.Error as error:
                problem = "a carriage return outside quotes" if "new-line" in str(error) else str(error)
                content = InputError(name, f"expected a record of CSV, got {problem}; correct it", line)
            raw = feed.taken()
            if content == []:
                continue  # an empty line is no record
            if plain and isinstance(content, list):
                content = [field.encode("utf-8", "surrogateescape") for field in content]
            yield _Unit(raw, content, line)

    def _undecoded(self, name: str, error: UnicodeError, line: int) -> InputError:
        got = f"byte 0x{error.object[error.start]:02x}" if isinstance(error, UnicodeDecodeError) else f"({error})"
        return InputError(name, f"expected {self._encoding}, got {got}; correct it or the encoding", line)

    # From units to documents, one by one.

    def _documents(self, file: Input, lines: Stream) -> Iterator[tuple[_Unit, Record]]:
        """Yield the units that are documents, with their records."""
        read = {"jsonl": self._jsonl, "csv": self._row, "tsv": self._tsv, "txt": self._txt}[self._form]
        name = os.fsencode(file.name)
        for unit in self._units(file.name, lines):
            self._running += 1
            try:
                if isinstance(unit.content, InputError):
                    raise unit.content
                found = read(file.name, unit)
            except InputError:
                if not self._options.skip:
                    file.check_unchanged()
                    raise
                self._reject(unit.raw if unit.raw.endswith(self.newline) else unit.raw + self.newline)
                continue
            identity = b"%d" % self._running if found.identity is None else utf8(found.identity)
            text = None if found.text is None else utf8(found.text)
            yield unit, Record(identity, text, name if found.source is None else utf8(found.source))

    def _one_by_one(self, file: Input, lines: Stream) -> Iterator[Block]:
        """Yield the documents of lines of which some may be odd."""
        return gathered(record for _, record in self._documents(file, lines))

    def _take_header(self, name: str, unit: _Unit) -> None:
        """Find the columns by their names."""
        if isinstance(unit.content, InputError):
            raise unit.content
        header = unit.content if isinstance(unit.content, list) else _cells(unit.content)
        names = [_shown(column) for column in header]
        if self._header is None:
            self._header = header
        elif self._header != header:
            expected = listed([_shown(column) for column in self._header])
            problem = f"expected the columns of the first file, {expected}, got {listed(names)}; make them alike"
            raise InputError(name, problem, unit.number)
        options, identity = self._options, None
        if self._fields is None:
            found = default_column(names, options)
            if found is None:
                raise InputError(name, f"which column is the text? name it with --field: {listed(names)}", unit.number)
            self._fields = [found]
        asked = [(column, "--field") for column in self._fields]
        for column, option in [*asked, (options.id_field, "--id-field"), (options.source_field, "--source-field")]:
            if column is not None and names.count(column) != 1:
                problem = f"expected one column {column!r}, got {listed(names)}"
                raise InputError(name, f"{problem}; name the right one with {option}", unit.number)
        if options.id_field is not None:
            identity = names.index(options.id_field)
        elif ID_COLUMN in names and ID_COLUMN not in self._fields:
            identity = names.index(ID_COLUMN)
        source = None if options.source_field is None else names.index(options.source_field)
        self._columns = _Columns([names.index(column) for column in self._fields], identity, source, len(names))

    def _txt(self, name: str, unit: _Unit) -> _Found:
        return _Found(None, unit.content)

    def _tsv(self, name: str, unit: _Unit) -> _Found:
        if self._columns is None:
            cells = _cells(unit.content, 2)
            return self._unnamed(name, unit.number, cells, "an id, a tab and a text", "no tab")
        return self._row(name, unit._replace(content=_cells(unit.content)))

    def _row(self, name: str, unit: _Unit) -> _Found:
        fields, columns = unit.content, self._columns
        if columns is None:
            return self._unnamed(name, unit.number, fields, "an id and a text", "one column")
        if len(fields) != columns.width:
            problem = f"expected {columns.width} columns, as in the header, got {len(fields)}; correct the line"
            raise InputError(name, problem, unit.number)
        identity = None if columns.identity is None else fields[columns.identity]
        source = None if columns.source is None else fields[columns.source]
        return _Found(identity, b" ".join([utf8(fields[column]) for column in columns.texts]), source)

    def _unnamed(self, name: str, line: int, fields: Sequence[Line], two: str, one: str) -> _Found:
        """Take a lone column as the text, else the first as the id and the second as the text."""
        if self._has_ids is None:
            self._has_ids, self._first = len(fields) > 1, line
        if self._has_ids != (len(fields) > 1):
            expected, got = (two, one) if self._has_ids else (one, two)
            problem = f"expected {expected}, as in line {self._first}, got {got}; correct the line"
            raise InputError(name, problem, line)
        return _Found(fields[0], fields[1]) if self._has_ids else _Found(None, fields[0])

    def _jsonl(self, name: str, unit: _Unit) -> _Found:
        line = unit.content
        try:
            record = _decoded(line)
        except UnicodeDecodeError as error:
            raise InputError(
                name, f"expected UTF-8, got byte 0x{line[error.start]:02x}; correct it", unit.number
            ) from None
        except (ValueError, RecursionError) as error:
            got = f"({error})" if line.strip() else "an empty line"
            raise InputError(name, f"expected a JSON object, got {got}; correct the line", unit.number) from None
        if not isinstance(record, dict):
            raise InputError(name, f"expected a JSON object, got {_kind(record)}; correct the line", unit.number)
        options, text = self._options, None
        if self._fields is None:
            found = default_column(record, options)
            if found is not None:
                self._fields = [found]
            elif not options.missing or len(record) > 1:
                raise self._absent(name, unit.number, "text", record)
        if self._fields is None:
            self._tally.missing += 1  # an id alone, or nothing; a later record tells what the field is
        else:
            text = record.get(self._fields[0]) if len(self._fields) == 1 else None
            if isinstance(text, str):
                self._found_any = True
            else:
                text = self._json_text(name, unit.number, record, self._fields)
        identity = record.get(self._id_name)
        if not isinstance(identity, str):
            wanted = "--id-field" if options.id_field is not None else ""
            identity = self._json_name(name, unit.number, record, self._id_name, wanted)
        if options.source_field is None:
            return _Found(identity, text)
        source = self._json_name(name, unit.number, record, options.source_field, "--source-field")
        return _Found(identity, text, source or "")

    def _json_text(self, name: str, line: int, record: dict[str, Any], fields: list[str]) -> str | None:
        texts = []
        for field in fields:
            found, text = _value(record, field)
            self._found_any |= found
            if self._options.missing and text is None:
                if self._never_found is None and not self._found_any:
                    self._never_found = self._absent(name, line, field, record)
                continue
            if not found:
                raise self._absent(name, line, field, record)
            if not isinstance(text, str):
                raise InputError(name, f"field {field!r} must be a string, got {_kind(text)}", line)
            texts.append(text)
        self._tally.missing += not texts
        return " ".join(texts) if texts else None

    def _json_name(self, name: str, line: int, record: dict[str, Any], field: str, option: str) -> str | None:
        """Return an id or a source; a field that no option asks for may be missing."""
        found, value = _value(record, field)
        if not found and option:
            problem = f"expected a field {field!r}, got {listed(list(record)) or 'no field at all'}"
            raise InputError(name, f"{problem}; name the right one with {option}", line)
        if isinstance(value, (dict, list, bool)):
            raise InputError(name, f"field {field!r} must be a string or a number, got {_kind(value)}", line)
        return value if value is None or isinstance(value, str) else json.dumps(value)

    def _absent(self, name: str, line: int, field: str, record: dict[str, Any]) -> InputError:
        fields = listed(list(record)) or "no field at all"
        problem = f"expected a field {field!r}, got {fields}; name the text's field with --field"
        return InputError(name, problem, line)

    # From blocks to documents, many at once.

    def _blocks_of(self, file: Input, lines: Stream) -> Iterator[Block]:
        """Yield the documents of a file."""
        if self._encoding != "utf-8":
            yield from self._one_by_one(file, lines)
            return
        name = os.fsencode(file.name)
        while True:
            if not self._is_settled:
                yield from gathered(record for _, record in islice(self._documents(file, lines), 1))
            block = lines.block()
            if not block:
                return
            if self._form == "csv":
                found = self._many_csv(block, lines)
            else:
                found = self._many_jsonl(block) if self._form == "jsonl" else self._many_lines(block)
            if found is not None:
                yield self._block(found, name)
            else:  # of CSV to the end, as a record may go on behind the block
                yield from self._one_by_one(file, lines if self._form == "csv" else lines.again(block))

    @property
    def _is_settled(self) -> bool:
        """Whether it is known which columns, or which field, the texts and ids are; the first document shows it."""
        if self._form == "jsonl":
            return self._fields is not None
        return self._form == "txt" or self._columns is not None or self._has_ids is not None

    def _block(self, found: _FoundMany, name: bytes) -> Block:
        """Return the next documents."""
        texts, identities, sources = found
        count, first = len(texts), self._running + 1
        self._running += count

        def ids() -> list[Any]:
            numbers = range(first, first + count)
            return [b"%d" % number for number in numbers] if identities is None else identities.tolist()

        def named() -> list[Any]:
            return [name] * count if sources is None else sources.tolist()

        return Block(texts, ids, named)

    def _many_jsonl(self, block: bytes) -> _FoundMany | None:
        source = self._options.source_field
        names = [self._id_name] if source is None else [self._id_name, source]
        if self._fields is None or len({*self._fields, *names}) < len(self._fields) + len(names):
            return None
        found = json_fields(block, tuple(map(utf8, self._fields)), tuple(map(utf8, names)))
        if found is None:
            return None
        texts, (identities, *sources) = found[: len(self._fields)], found[len(self._fields) :]
        if sources == [None] or (identities is None and self._options.id_field is not None):
            return None
        self._found_any = True
        return _FoundMany(_joined(texts), identities, sources[0] if sources else None)

    def _many_lines(self, block: bytes) -> _FoundMany | None:
        places, least, most = self._cells_wanted()
        return self._many(line_cells(block, b"\t" if self._form == "tsv" else b"\n", places, least, most))

    def _many_csv(self, block: bytes, lines: Stream) -> _FoundMany | None:
        """Find records; one that goes on behind the block is left to the next. A block that is odd is given back."""
        places, least, most = self._cells_wanted()
        found = csv_cells(block, places, least, most)
        while found is not None:
            cells, used = found
            if used:
                lines.give_back(block[used:])
                return self._many(cells)
            more, size = [block], 0
            while size < len(block) <= MOST_RECORD and (one := lines.block()):  # as much again
                more.append(one)
                size += len(one)
            block = b"".join(more)
            found = csv_cells(block, places, least, most) if size else None
        lines.give_back(block)
        return None

    def _cells_wanted(self) -> tuple[tuple[int, ...], int, int]:
        """Return the places of the text, and of the id and the source, where there are any; and how many cells are."""
        columns = self._columns
        if columns is None:
            return ((1, 0), 2, ANY) if self._has_ids else ((0,), 1, 1)
        others = (place for place in (columns.identity, columns.source) if place is not None)
        return (*columns.texts, *others), columns.width, columns.width

    def _many(self, cells: list[Batch] | None) -> _FoundMany | None:
        if cells is None:
            return None
        columns = self._columns
        if columns is None:
            return _FoundMany(cells[0], cells[1] if self._has_ids else None, None)
        texts, others = cells[: len(columns.texts)], iter(cells[len(columns.texts) :])
        identities = None if columns.identity is None else next(others)
        return _FoundMany(_joined(texts), identities, None if columns.source is None else next(others))


class _Feed:
    """Decoded lines for a reader of CSV, and the bytes of those that it has taken."""

    def __init__(self, lines: Iterator[bytes], encoding: str, errors: str) -> None:
        self._lines, self._encoding, self._errors = lines, encoding, errors
        self._taken: list[bytes] = []

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        raw = next(self._lines)
        self._taken.append(raw)
        return raw.decode(self._encoding, self._errors)

    def taken(self) -> bytes:
        """Return the bytes that were taken since this was called last."""
        raw = b"".join(self._taken)
        self._taken.clear()
        return raw


def _complete_lines(file: Input) -> int:
    """Return how many lines of a damaged file can be read."""
    count = 0
    with suppress(compression.DamagedError), file.opened() as opened:
        for _ in opened:
            count += 1
    return count


def _decoded(line: Line) -> Any:
    """Return what a line of JSON says; what `_decode` does not take, Python's reader, which takes more, judges."""
    try:
        return _decode(line)
    except (ValueError, RecursionError):
        return _decoded_by_python(line)


def _value(record: dict[str, Any], field: str) -> tuple[bool, Any]:
    """Return whether a record has a field, by its name or by dots, and its value."""
    if field in record:
        return True, record[field]
    value: Any = record
    for part in field.split("."):
        if not isinstance(value, dict) or part not in value:
            return False, None
        value = value[part]
    return True, value


def _joined(texts: list[Any]) -> Batch:
    """Return the texts of several fields with a space between."""
    return texts[0] if len(texts) == 1 else Batch([b" ".join(row) for row in zip(*[one.tolist() for one in texts])])


def _cells(line: Any, most: int = -1) -> list[Any]:
    """Return the cells of a line of a table, cut at `most` tabs."""
    cells: list[Any] = line.split(b"\t" if isinstance(line, bytes) else "\t", most)
    return cells


def _shown(column: Line) -> str:
    return column if isinstance(column, str) else column.decode("utf-8", "replace")


def _kind(value: Any) -> str:
    """Return what JSON calls a value of this type."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
