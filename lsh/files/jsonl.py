"""JSON lines: a JSON object (RFC 8259) a line, of which some fields are read. A blank line is no record.

The compiled reader reads blocks in which every line is plain and has the fields. Python's `json` reads all other lines,
and so decides what is accepted: NaN, Infinity and lone surrogates, too. A field is a key of the object or, with dots in
its name, a key of an object within it; Python alone reads such names. Ids, sources and ranks that are numbers keep
their digits as they are written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from lsh.base.errors import Parameter, Words, message, saying
from lsh.files._fields import json_fields
from lsh.files.lines import FieldColumns, Fields, RawRecord, Reader, joined
from lsh.files.records import (
    FIELD,
    ID_COLUMN,
    ID_FIELD,
    KEEP_FIELD,
    SKIP,
    SOURCE_FIELD,
    InputError,
    ReadOptions,
    Values,
    columns_note,
    decoded,
    default_column,
    listed,
    utf8,
)
from lsh.text.batch import Batch

TEXT_REMEDY = "name the text's field with " + FIELD  # where a record lacks the field
SKIP_REMEDY = "use " + Parameter("missing", "empty") + " or " + SKIP  # where others have it

# Objects and lists within each other. Python's own limit depends on the depth of its calls; with this one, each reading
# of a file accepts the same lines.
MAX_DEPTH = 500
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
        names = "|".join(map(re.escape, options.added))
        self._clashing = re.compile(rf'"(?:{names})"|\\u[^"]*"\s*:'.encode())  # what may be the key of an added field
        self._nulls = self._fields_of(["null"] * len(options.added))

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
            raise record.error(problem)
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
        is_number = None if values is None or self._id_name is None else self._first_id(raw)
        if (values is not None and is_number is None) or self._clashing.search(raw):
            fields = _DECODER.decode(raw.decode())
            if problem := self.options.clash(fields):
                raise saying(ValueError(str(problem)), problem)
            own = None if self._id_name is None else _value(fields, self._id_name)[1]
            is_number = own is None or isinstance(own, _Number)
        comma = b"" if raw[:-end].rstrip().endswith(b"{") else b", "
        if values is None:
            return comma + self._nulls, end
        identity, similarity, *others = map(decoded, values)
        shown = identity if is_number and _NUMBER.fullmatch(identity) else json.dumps(identity)
        return comma + self._fields_of((shown, similarity, *map(json.dumps, others))), end

    def _fields_of(self, values: Iterable[str]) -> bytes:
        """Return added fields, given their values in JSON."""
        return ", ".join(f'"{name}": {value}' for name, value in zip(self.options.added, values)).encode()

    def _first_id(self, raw: bytes) -> bool | None:
        """Tell whether the id of a line is a number, ``None`` if it is not plainly the first field."""
        name = b'"%b"' % str(self._id_name).encode("utf-8", "surrogatepass")
        match = _FIRST_FIELD.match(raw)
        return match[2] != b'"' if match is not None and match[1] == name and raw.count(name) == 1 else None

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
