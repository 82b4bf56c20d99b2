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
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import IO, Any, NamedTuple

from lsh import compression
from lsh.files import Input, Target
from lsh.formats import (
    ID_COLUMN,
    InputError,
    Options,
    Record,
    Tally,
    default_column,
    identity_bytes,
    joined,
    listed,
)

_fast_decode: Callable[[Line], Any] | None = None
with suppress(ImportError):  # of the extra io; it reads JSON faster than Python
    import msgspec

    _fast_decode = msgspec.json.decode

LONGEST_FIELD = 1 << 30  # characters of a field of CSV; a quote that nothing closes shall not fill the memory
CHUNK = 1 << 20  # bytes that are read at once where lines are not Python's
MARKS = {"utf-8": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
MARKS |= {"utf-32-le": codecs.BOM_UTF32_LE, "utf-32-be": codecs.BOM_UTF32_BE}
BY_MARK = ("utf-16", "utf-32")  # encodings that a mark at the beginning makes definite

Line = bytes | str


class _Unit(NamedTuple):
    """A line or a record: its bytes in the file, what it says, and where it begins; the head of a file is none."""

    raw: bytes
    content: Any  # bytes or str without the line end, or a list of fields; an InputError where that cannot be told
    number: int  # of its first line
    head: bool = False


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

    def records(self) -> Iterator[Record]:
        """Yield the documents."""
        self.tally = Tally()
        for _, record in _Reading(self._inputs, self._form, self._options, self.tally, self._reject).documents():
            if record is not None:
                yield record

    def write_kept(self, flags: Callable[[], bool], target: Target) -> None:
        """Write the head and the units whose flag is true, as they are in the files."""
        reading = _Reading(self._inputs, self._form, self._options, Tally(), lambda raw: None)
        documents = reading.documents() if self._options.skip else reading.units()
        complete = True
        for unit, _ in documents:
            if unit.head or flags():
                if not complete:
                    target.write(reading.newline)
                target.write(unit.raw)
                complete = unit.head or unit.raw.endswith(reading.newline)

    def _reject(self, raw: bytes) -> None:
        self.tally.skipped += 1
        if self._rejects is not None and self.tally.skipped > self._rejected:
            self._rejects.write(raw)
            self._rejected = self.tally.skipped


class _Reading:
    """One reading of the files from beginning to end: which columns are read is settled at its start."""

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
        self._encoding = options.encoding
        self.newline = b"\n"

    def units(self) -> Iterator[tuple[_Unit, None]]:
        """Yield the head of the first file, and each unit of all; the heads of the others must be the same."""
        for number, file in enumerate(self._inputs):
            for unit in self._units_of(file, number == 0):
                if not unit.head or number == 0:
                    yield unit, None

    def documents(self) -> Iterator[tuple[_Unit, Record | None]]:
        """Yield the head of the first file with None, and the units that are documents with their records."""
        read = {"jsonl": self._jsonl, "csv": self._row, "tsv": self._tsv, "txt": self._txt}[self._form]
        running = 0
        for number, file in enumerate(self._inputs):
            name = os.fsencode(file.name)
            for unit in self._units_of(file, number == 0):
                if unit.head:
                    if number == 0:
                        yield unit, None
                    continue
                running += 1
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
                identity = b"%d" % running if found.identity is None else identity_bytes(found.identity)
                yield unit, Record(identity, found.text, name if found.source is None else identity_bytes(found.source))
        if self._options.field is not None and self._never_found is not None and not self._found_any:
            raise self._never_found

    # From bytes to units.

    def _units_of(self, file: Input, first: bool) -> Iterator[_Unit]:
        """Yield the byte order mark and the header as the head, then the units."""
        line = 0
        try:
            with file.opened() as opened:
                lines = self._marked(file, opened, first)
                mark = next(lines)
                if mark:
                    yield _Unit(mark, None, 0, True)
                units = self._csv_units(file.name, lines) if self._form == "csv" else self._line_units(file.name, lines)
                if self._options.header:
                    header = next(units, None)
                    if header is not None:
                        self._take_header(file.name, header)
                        yield header._replace(head=True)
                for unit in units:
                    line = unit.number
                    yield unit
        except compression.DamagedError as error:
            raise file.damaged(error, line) from error

    def _marked(self, file: Input, opened: IO[bytes], first: bool) -> Iterator[bytes]:
        """Yield the byte order mark, maybe of no bytes, and then the lines with their line ends."""
        encoding = self._options.encoding
        plain = "\n".encode(encoding) == b"\n"
        start = opened.readline() if plain else opened.read(4)
        file.check_plain(start, self._form)
        if encoding in BY_MARK:
            found = next((name for name in MARKS if name.startswith(encoding) and start.startswith(MARKS[name])), None)
            encoding = found or f"{encoding}-le"
        mark = MARKS.get(encoding, b"")
        mark = mark if start.startswith(mark) else b""
        if not first and encoding != self._encoding:
            raise InputError(file.name, f"expected {self._encoding}, as in the first file, got {encoding}; convert it")
        self._encoding, self.newline = encoding, "\n".encode(encoding)
        yield mark
        rest = start[len(mark) :]
        if not plain:
            yield from _split(rest, opened, self.newline)
            return
        if rest:
            yield rest
        yield from opened

    def _line_units(self, name: str, lines: Iterator[bytes]) -> Iterator[_Unit]:
        decoded = self._encoding != "utf-8"
        for number, raw in enumerate(lines, 1):
            content: Any
            if not decoded:
                content = raw.removesuffix(b"\n").removesuffix(b"\r")
            else:
                try:
                    content = raw.decode(self._encoding).removesuffix("\n").removesuffix("\r")
                except UnicodeError as error:
                    content = self._undecoded(name, error, number)
            if number == 1 and self._options.header and not isinstance(content, InputError):
                content = content.split(b"\t" if isinstance(content, bytes) else "\t")
            yield _Unit(raw, content, number)

    def _csv_units(self, name: str, lines: Iterator[bytes]) -> Iterator[_Unit]:
        csv.field_size_limit(LONGEST_FIELD)
        utf8 = self._encoding == "utf-8"
        feed = _Feed(lines, self._encoding, "surrogateescape" if utf8 else "strict")
        reader = csv.reader(feed, strict=True)
        while True:
            line = feed.number + 1
            content: Any
            try:
                content = next(reader)
            except StopIteration:
                return
            except UnicodeError as error:
                content = self._undecoded(name, error, feed.number)
            except csv.Error as error:
                problem = "a carriage return outside quotes" if "new-line" in str(error) else str(error)
                content = InputError(name, f"expected a record of CSV, got {problem}; correct it", line)
            raw = feed.taken()
            if content == []:
                continue  # an empty line is no record
            if utf8 and isinstance(content, list):
                content = [field.encode("utf-8", "surrogateescape") for field in content]
            yield _Unit(raw, content, line)

    def _undecoded(self, name: str, error: UnicodeError, line: int) -> InputError:
        got = f"byte 0x{error.object[error.start]:02x}" if isinstance(error, UnicodeDecodeError) else f"({error})"
        return InputError(name, f"expected {self._encoding}, got {got}; correct it or the encoding", line)

    # From units to records.

    def _take_header(self, name: str, unit: _Unit) -> None:
        """Find the columns by their names."""
        if isinstance(unit.content, InputError):
            raise unit.content
        names = [_shown(column) for column in unit.content]
        if self._header is None:
            self._header = unit.content
        elif self._header != unit.content:
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
        line: Any = unit.content
        tab: Any = b"\t" if isinstance(line, bytes) else "\t"
        if self._columns is None:
            return self._unnamed(name, unit.number, line.split(tab, 2), line, "an id, a tab and a text", "no tab")
        return self._row(name, unit._replace(content=line.split(tab)))

    def _row(self, name: str, unit: _Unit) -> _Found:
        fields, columns = unit.content, self._columns
        if columns is None:
            return self._unnamed(name, unit.number, fields, fields[0], "an id and a text", "one column")
        if len(fields) != columns.width:
            problem = f"expected {columns.width} columns, as in the header, got {len(fields)}; correct the line"
            raise InputError(name, problem, unit.number)
        identity = None if columns.identity is None else fields[columns.identity]
        source = None if columns.source is None else fields[columns.source]
        return _Found(identity, joined([fields[column] for column in columns.texts]), source)

    def _unnamed(self, name: str, line: int, fields: Sequence[Line], whole: Line, two: str, one: str) -> _Found:
        """Take a lone column as the text, else the first as the id and the second as the text."""
        if self._has_ids is None:
            self._has_ids, self._first = len(fields) > 1, line
        if self._has_ids != (len(fields) > 1):
            expected, got = (two, one) if self._has_ids else (one, two)
            problem = f"expected {expected}, as in line {self._first}, got {got}; correct the line"
            raise InputError(name, problem, line)
        return _Found(fields[0], fields[1]) if self._has_ids else _Found(None, whole)

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


class _Feed:
    """Decoded lines for a reader of CSV, and the bytes of those that it has taken."""

    def __init__(self, lines: Iterator[bytes], encoding: str, errors: str) -> None:
        self._lines, self._encoding, self._errors = lines, encoding, errors
        self._taken: list[bytes] = []
        self.number = 0

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        raw = next(self._lines)
        self.number += 1
        self._taken.append(raw)
        return raw.decode(self._encoding, self._errors)

    def taken(self) -> bytes:
        """Return the bytes that were taken since this was called last."""
        raw = b"".join(self._taken)
        self._taken.clear()
        return raw


def _split(start: bytes, file: IO[bytes], newline: bytes) -> Iterator[bytes]:
    """Yield lines whose end is several bytes, or another one than a newline's; it counts where a character begins."""
    width = len(newline)
    held = bytearray(start)
    searched = 0
    while True:
        begin = 0
        end = held.find(newline, searched)
        while end >= 0:
            if end % width:
                end = held.find(newline, end + 1)
                continue
            yield bytes(held[begin : end + width])
            begin = end + width
            end = held.find(newline, begin)
        del held[:begin]
        searched = max(len(held) - len(held) % width - width, 0)
        chunk = file.read(CHUNK)
        if not chunk:
            break
        held += chunk
    if held:
        yield bytes(held)


def _decoded(line: Line) -> Any:
    """Return what a line of JSON says; what msgspec does not take, Python's reader, which takes more, has to judge."""
    if _fast_decode is not None:
        try:
            return _fast_decode(line)
        except (ValueError, RecursionError):
            pass
    return json.loads(line.decode("utf-8") if isinstance(line, bytes) else line)


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


def _shown(column: Line) -> str:
    return column if isinstance(column, str) else column.decode("utf-8", "replace")


def _kind(value: Any) -> str:
    """Return what JSON calls a value of this type."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
