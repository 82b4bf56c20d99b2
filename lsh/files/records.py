"""What all formats share: documents, options, counts, columns of the text and the id, and values that rank documents.

A document is ranked by a number, or a date as ISO 8601 writes it. A date becomes microseconds since 1970, without what
it has beyond them; one without a zone is UTC. Whole numbers of 64 bits are exact, unless one of the column is larger or
has a fraction: then all are floats. All values of a column are of one kind, which the first one shows.

This module opens no file.
"""

from __future__ import annotations

import codecs
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from lsh.base import checks
from lsh.base.arrays import Array
from lsh.base.errors import InputError, Message, Parameter, Words, bad_value, message, saying
from lsh.storage import compression
from lsh.text.batch import Batch
from lsh.typing import Missing

FORMATS = ("jsonl", "csv", "tsv", "txt")  # of lines of text, each plain or compressed
LINES = {**{name: name for name in FORMATS}, "ndjson": "jsonl", "json": "jsonl"}  # by ending
UNCLEAR = "json"  # an ending of lines only if it is compressed, as crawls have it; a plain file is mostly one value
TABLES = {"parquet": "parquet", "pq": "parquet", "arrow": "arrow", "feather": "arrow"}  # by ending; not compressed
FOLDER = "files"  # the format of a folder in which each file is a document
KNOWN = f"{', '.join(FORMATS)} (each also with .{', .'.join(compression.NAMES)}), parquet or arrow"
TEXT_COLUMNS = ("text", "content", "body")  # where no field is named, in this order
ID_COLUMN = "id"
_LIKE_AN_ID = re.compile(r"(?i:(\S+[_.-])?(id|uuid|guid))|\S*[a-z](Id|ID)")  # names such as doc_id, docId and uuid
NO_ID = "none"  # instead of a column: the numbers of the records are the ids
MAX_PLACE_DIGITS = 9  # of a column's number
BLOCK_BYTES, BLOCK_DOCUMENTS = 1 << 19, 1 << 12  # at which a block of documents is complete
MAX_LISTED, MAX_NAME_LENGTH = 10, 40  # columns in a message, and characters of each
FIELD, ID_FIELD, SOURCE_FIELD = Parameter("field"), Parameter("id_field"), Parameter("source_field")  # in messages
KEEP_FIELD, SKIP = Parameter("keep_field"), Parameter("on_bad_line", "skip")

MICROSECONDS = "M8[us]"
MAX_SHOWN = 60  # characters of a value in a message
MAX_WHOLE = 2**63 - 1
_WHOLE = rb"[+-]?\d{1,18}"
_DATE = rb"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?"
_WHOLES, _DATES = re.compile(rb"(?:%b\n)*" % _WHOLE), re.compile(rb"(?:%bZ?\n)*" % _DATE)  # many, a line each
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_ONE_DATE = re.compile(rf"({_DATE.decode()})(?:[Zz]|([+-])([01]\d|2[0-3]):?([0-5]\d)?)?", re.ASCII)

Ranks = np.ndarray[Any, Any]  # int64 or float64
Rank = int | float
Values = Sequence[bytes | None]  # of the added fields of a record: text of their kind, None for null


class AddedFieldError(InputError):
    """A record has a field that is to be added; such a record is not skipped as a bad one."""


class Added(NamedTuple):
    """A field that is added to each record.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"id", "number", "count", "text", "spans"}
        What its values are: ids, which have the type of the ids of the records; floats; whole numbers; text; lists of
        pairs of numbers, as JSON.
    parameter : str, optional
        The parameter that asks for it, as `lsh.base.errors.Parameter` has it.
    """

    name: str
    kind: str
    parameter: str = "added"


class Edits(NamedTuple):
    """What changes in the records that are kept, one after the other: one of the two, or nothing.

    Attributes
    ----------
    values : iterator, optional
        The values of the fields that are added to each, ``None`` where all are null; not for a folder, nor for lines
        without columns.
    cuts : iterator, optional
        The runs of its text that are left out, as for `lsh.text.cuts.without`; ``None`` for none. The text is that of
        one column. All other bytes of a record stay.
    """

    values: Iterator[Values | None] | None = None
    cuts: Iterator[Array | None] | None = None


class Format(NamedTuple):
    """The format of a file: its name, and how the file is compressed, ``""`` for not at all.

    Examples
    --------
    >>> Format.from_string("tsv.gz")
    Format(name='tsv', compression='gz')
    >>> Format.of_path("corpus/part-7.feather"), Format.of_path("part-8.json.zstd"), Format.of_path("part-9.json")
    (Format(name='arrow', compression=''), Format(name='jsonl', compression='zst'), None)
    """

    name: str
    compression: str

    @classmethod
    def from_string(cls, text: str) -> Format | None:
        """Read ``"tsv"``, ``"tsv.gz"``, ``"parquet"`` or ``"files"``; ``None`` for anything else."""
        return cls(FOLDER, "") if text == FOLDER else cls._of_ending(text)

    @classmethod
    def _of_ending(cls, text: str) -> Format | None:
        if text in TABLES:
            return cls(TABLES[text], "")
        name, dot, packed = text.partition(".")
        known = name in LINES and (packed in compression.ENDINGS if dot else name != UNCLEAR)
        return cls(LINES[name], compression.ENDINGS.get(packed, "")) if known else None

    @classmethod
    def of_path(cls, path: str) -> Format | None:
        """Return the format by the ending of a file's name; ``None`` for an unknown ending."""
        parts = os.path.basename(path).lower().split(".")[1:]
        return cls._of_ending(".".join(parts[-2:])) or cls._of_ending(".".join(parts[-1:]))

    def endings(self) -> list[str]:
        """Return the endings of the files that can be written in this format.

        Examples
        --------
        >>> Format("tsv", "").endings(), Format("parquet", "").endings()
        (['.tsv', '.tsv.gz', '.tsv.bz2', '.tsv.xz', '.tsv.zst'], ['.parquet'])
        """
        packings = compression.NAMES if self.name in FORMATS else ()
        return [f".{self.name}", *(f".{self.name}.{packed}" for packed in packings)]


class Record(NamedTuple):
    """A document: its id, its text in UTF-8 or ``None`` for none, and its source.

    The source is the value of the source's column or, if none is named, the file; in a folder of texts, the folder
    within it. The rank is the value of the column by which documents are ranked, if one is named.
    """

    id: bytes
    text: bytes | None
    source: bytes
    rank: Rank | None = None


class Block(NamedTuple):
    """Documents that follow one another, as columns, which is faster than one document at a time."""

    texts: Batch
    ids: Callable[[], Batch]
    sources: Callable[[], Sequence[bytes]]
    ranks: Ranks | None = None

    def chosen(self, indices: Array) -> Block:
        """Return some of the documents."""

        def sources() -> Sequence[bytes]:
            own = self.sources()
            return [own[index] for index in indices.tolist()]

        ranks = None if self.ranks is None else self.ranks[indices]
        return Block(self.texts.take(indices), lambda: self.ids().take(indices), sources, ranks)

    def records(self) -> Iterator[Record]:
        """Yield the documents one by one."""
        return map(Record, self.ids().tolist(), self.texts.tolist(), self.sources())  # type: ignore[arg-type]


def gathered(records: Iterable[Record]) -> Iterator[Block]:
    """Gather documents that are read one by one into blocks."""
    held: list[Record] = []
    size = 0
    for record in records:
        held.append(record)
        size += len(record.text or b"")
        if size >= BLOCK_BYTES or len(held) == BLOCK_DOCUMENTS:
            yield block_of(held)
            held, size = [], 0
    if held:
        yield block_of(held)


def block_of(records: Sequence[Record]) -> Block:
    """Return documents that were read one by one as a block."""
    ids, texts, sources, values = zip(*records)
    ranks = None if None in values else as_ranks(values)
    return Block(Batch(texts, missing=True), lambda: Batch(ids), lambda: sources, ranks)


def numbered(ids: Batch, numbers: Iterable[int]) -> Batch:
    """Return ids with the number of the record in place of each empty one."""
    if ids.sizes().all():
        return ids
    return Batch([identity or b"%d" % number for identity, number in zip(ids.tolist(), numbers)])


class Ids:
    """The ids of some documents, by position.

    Parameters
    ----------
    positions : numpy.ndarray
        Int64, ascending.
    blocks : iterable of Block
        The documents at these positions.
    """

    def __init__(self, positions: Array, blocks: Iterable[Block]) -> None:
        parts, sizes = [np.empty(0, np.uint8)], [np.zeros(1, np.int64)]
        for block in blocks:
            ids = block.ids()
            sizes.append(ids.sizes())
            parts.append(np.empty(int(sizes[-1].sum()), np.uint8))  # a copy, as the ids lie within their records
            ids.write(parts[-1])
        self._positions = positions
        self._ids = Batch.of_bytes(np.concatenate(parts), np.cumsum(np.concatenate(sizes)))

    def of(self, positions: Array) -> list[bytes]:
        """Return the ids of some of the documents."""
        return cast(list[bytes], self._ids.take(np.searchsorted(self._positions, positions)).tolist())


@dataclass(frozen=True)
class ReadOptions:
    """How documents are read, checked.

    Parameters
    ----------
    format : Format, optional
        The format of every file; ``Format("files", "")`` makes a document of each file of a folder. Default: by the
        ending of each path.
    field : str, optional
        The column, or field of a JSON record, that holds the text. Dots lead into nested fields; the texts of several
        fields, with commas between their names, are joined by a space. A column may be given by its number, from 1.
        Default: the only column beside the id, or ``text``, ``content``, ``body``.
    id_field : str, optional
        The column that holds the id. Default: ``id``, if there is one. Without an id, and with ``"none"``, the number
        of the record is the id.
    source_field : str, optional
        The column that holds the source of a document. Default: the file is the source.
    keep_field : str, optional
        The column by which documents are ranked: numbers or dates. A value that is neither is a malformed line.
    header : bool, optional
        Whether the first record names the columns. Default: in ``csv``, not in ``tsv``, where a first line that looks
        like a header is an error. Without a header a single column is the text; of several columns the first is the
        id and the second the text.
    delimiter : str, optional
        The character between the columns of ``csv`` and ``tsv``. Default: a comma, and a tab.
    encoding : str, optional
        The encoding of text files. Default: UTF-8; bytes that are not UTF-8 are read as they are, except in JSON.
    on_bad_line : {"error", "skip"}, optional
        What to do with a malformed line, or a file of a folder that cannot be decoded: raise an error, or skip it and
        count it.
    missing : {"error", "empty"}, optional
        What to do with a record whose text is missing or null: raise an error, or read its text as ``None`` and count
        it.
    pattern : str, optional
        Which files of a folder are read, such as ``"*.txt"``. Hidden files are read if it begins with a dot, else
        they are counted.
    null_ids : bool, optional
        Whether a record whose id is null or empty has its number as id (default), or an empty one.
    added : tuple of Added, optional
        The fields that `write_kept` adds; a header or a table that has one of these names is an error.
    """

    format: Format | None = None
    field: str | None = None
    id_field: str | None = None
    source_field: str | None = None
    keep_field: str | None = None
    header: bool | None = None
    delimiter: str | None = None
    encoding: str | None = None
    on_bad_line: str = "error"
    missing: Missing = "error"
    pattern: str | None = None
    null_ids: bool = True
    added: tuple[Added, ...] = ()

    def __post_init__(self) -> None:
        if self.delimiter is not None:
            object.__setattr__(self, "delimiter", checked_delimiter(self.delimiter))
        _ = self.codec  # checked
        checks.choice("on_bad_line", self.on_bad_line, ("error", "skip"))
        checks.choice("missing", self.missing, ("error", "empty"))

    @cached_property
    def codec(self) -> str:
        """Python's name of the encoding."""
        return checked_encoding("utf-8" if self.encoding is None else self.encoding)

    @cached_property
    def skip_bad(self) -> bool:
        """Whether malformed lines are skipped."""
        return self.on_bad_line == "skip"

    @cached_property
    def allow_missing(self) -> bool:
        """Whether a record may have no text."""
        return self.missing == "empty"

    def text_fields(self) -> tuple[str, ...] | None:
        """Return the names of the fields of the text; ``None`` if none is named."""
        return None if self.field is None else tuple(name.strip() for name in self.field.split(","))

    def named_id(self) -> str | None:
        """Return the named field of the id; ``None`` if none is named, or record numbers are the ids."""
        return None if self.id_field == NO_ID else self.id_field

    @cached_property
    def adds_ids(self) -> bool:
        """Whether an id is added."""
        return any(field.kind == "id" for field in self.added)

    def clash(self, names: Iterable[str]) -> Message | None:
        """Return the error message if one of the names is that of an added field."""
        added = {field.name: field.parameter for field in self.added}
        found = next((name for name in names if name in added), None)
        if found is None:
            return None
        return f"it has a field {found!r}, which " + Parameter(added[found]) + " adds; rename it"

    def default_id(self) -> str | None:
        """Return the field of the id that need not exist; ``None`` if one is named, or record numbers are the ids."""
        return ID_COLUMN if self.id_field is None else None


@dataclass(frozen=True)
class ColumnsNote(Message):
    """The note that says where the text and the id are, and whether there is a column of the id."""

    has_id: bool


class ReadCounts:
    """Counts of the last reading: skipped lines or files, missing texts, hidden files; and notes on all readings.

    Parameters
    ----------
    write_reject : callable, optional
        Receives each skipped line or file once, however often the documents are read.

    Attributes
    ----------
    skipped, missing : int
        Bad lines or files, and documents without a text, of the last reading.
    hidden : int
        Hidden files of folders that are not read.
    notes : list of str or Message
        What the user should know about how the documents are read, such as which column is the text, each note once.
    has_numbers : bool
        Whether the numbers of the records are known to be the ids.
    looks_for_bytes : bool
        Whether to look for bytes that are not UTF-8: in the first reading, until one is found.
    is_journaled : bool
        Whether `taken` is called, also that of `Documents`: it is set before the first reading.
    """

    def __init__(self, write_reject: Callable[[bytes], None] | None = None) -> None:
        self._write_reject, self._num_written = write_reject, 0
        self._rejected: list[bytes] = []  # what was written since `taken`
        self.hidden = self.skipped = self.missing = 0
        self.notes: list[Words] = []
        self.has_numbers = False
        self.looks_for_bytes = True
        self._is_read = self.is_journaled = False

    def start(self) -> None:
        """Begin a reading: count from zero."""
        self.skipped = self.missing = 0
        self.looks_for_bytes = self.looks_for_bytes and not self._is_read
        self._is_read = True

    def skip(self, rejected: bytes) -> None:
        """Count a skipped line or file, and write it if that has not been done."""
        self.skipped += 1
        if self._write_reject is not None and self.skipped > self._num_written:
            self._write_reject(rejected)
            self._num_written = self.skipped
            if self.is_journaled:
                self._rejected.append(rejected)

    def taken(self) -> tuple[list[Any], Array]:
        """Return what `restore` needs of other counts: numbers, and the lines that were skipped since the last call."""
        rejected, self._rejected = b"".join(self._rejected), []
        numbers = [self.skipped, self.missing, self.has_numbers]
        return numbers, np.frombuffer(rejected, np.uint8)

    def restore(self, numbers: Sequence[Any], rejected: Array) -> None:
        """Set the counts to those of `taken`, and write the lines that were skipped then."""
        self.skipped, self.missing, self.has_numbers = numbers
        self._num_written, self._is_read = self.skipped, True
        if self._write_reject is not None:
            self._write_reject(rejected.tobytes())

    def note(self, note: Words) -> None:
        """Add a note."""
        if note and note not in self.notes:
            self.notes.append(note)
            self.has_numbers |= isinstance(note, ColumnsNote) and not note.has_id


# ---- columns ----


def place_of(names: Sequence[str], wanted: str) -> int | None:
    """Return the place of a column by its name or, if no column has that name, by its number from 1.

    Examples
    --------
    >>> place_of(["id", "text"], "text"), place_of(["id", "text"], "2"), place_of(["2", "text"], "2")
    (1, 1, 0)
    >>> place_of(["id", "text"], "3") is None
    True
    """
    if wanted in names:
        return names.index(wanted) if names.count(wanted) == 1 else None
    number = int(wanted) if is_number(wanted) else 0
    return number - 1 if 0 < number <= len(names) else None


def no_column(names: Sequence[str], wanted: str, option: Parameter) -> Message:
    """Return the problem with a column that `place_of` does not find.

    Examples
    --------
    >>> str(no_column(["id", "text", "text"], "text", Parameter("field")))
    "columns 2 and 3 are both 'text'; choose one by its number, such as field='2'"
    """
    places = [number for number, name in enumerate(names, 1) if name == wanted]
    if places:
        numbers = f"{', '.join(map(str, places[:-1]))} and {places[-1]}"
        both = "both" if len(places) == 2 else "all"
        first = Parameter(option.name, str(places[0]))
        return f"columns {numbers} are {both} {wanted!r}; choose one by its number, such as " + first
    return f"no column {wanted!r} among {listed(names)}; name the right one with " + option


def is_number(wanted: str) -> bool:
    """Tell whether a string can be the number of a column."""
    return wanted.isascii() and wanted.isdigit() and len(wanted) <= MAX_PLACE_DIGITS


def default_column(names: Iterable[str], identity: str | None = None) -> str | None:
    """Return the column of the text if none is named: the only one beside the id, or ``text``, ``content``, ``body``.

    Examples
    --------
    >>> default_column(["id", "headline"]), default_column(["id", "title", "body"])
    ('headline', 'body')
    >>> default_column(["title", "summary"]) is None
    True
    """
    others = [name for name in names if name != (ID_COLUMN if identity is None else identity)]
    return others[0] if len(others) == 1 else next((name for name in TEXT_COLUMNS if name in others), None)


def named_columns(
    names: Sequence[str], options: ReadOptions, error: Callable[[Words], InputError]
) -> tuple[Sequence[str], str | None]:
    """Return the columns of the text and of the id, as they are named in the options or by default.

    Raises
    ------
    InputError
        Made by `error`, if no field is named and several columns may be the text.
    """
    fields, identity = options.text_fields(), options.named_id()
    if fields is None:
        place = None if identity is None else place_of(names, identity)
        default = default_column(names, identity if place is None else names[place])
        if default is None:
            others = listed([name for name in names if name != identity]) or "no columns at all"
            beside = "" if identity is None else " beside " + Parameter("id_field", identity)
            raise error(f"no text column found among {others}" + message(beside) + "; name it with " + FIELD)
        fields = (default,)
    if options.default_id() in names and ID_COLUMN not in fields:
        identity = ID_COLUMN
    return fields, identity


def columns_note(texts: Sequence[str], identity: str | None, others: Iterable[str] = ()) -> ColumnsNote:
    """Return the note that says where the text and the id are; of `others`, it names one that may be the id.

    Examples
    --------
    >>> str(columns_note(["column 3 'text'"], None))
    "text: column 3 'text'; id: record number"
    >>> str(columns_note(["column 3 'text'"], None, ["paid", "doc_id", "text"]))
    "text: column 3 'text'; id: record number; if 'doc_id' is the id, give id_field='doc_id'"
    """
    similar = next(filter(_LIKE_AN_ID.fullmatch, others), None) if identity is None else None
    remedy = "" if similar is None else f"; if {similar!r} is the id, give " + Parameter("id_field", similar)
    note = message(f"text: {' + '.join(texts)}; id: {identity or 'record number'}") + remedy
    return ColumnsNote(note.parts, identity is not None)


def listed(names: Sequence[str]) -> str:
    """Return the first names for a message.

    Examples
    --------
    >>> listed(["title", "date"])
    "'title', 'date'"
    """
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    cut = (name if len(name) <= MAX_NAME_LENGTH else name[: MAX_NAME_LENGTH - 3] + "..." for name in names[:MAX_LISTED])
    return ", ".join(map(repr, cut)) + more


def utf8(text: str | bytes) -> bytes:
    """Return a text, an id or a source as bytes."""
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


def undecodable(encoding: str, error: UnicodeError) -> str:
    """Return the message about a text that cannot be decoded."""
    got = f"byte 0x{error.object[error.start]:02x}" if isinstance(error, UnicodeDecodeError) else str(error)
    return f"not {encoding}: {got}"


def checked_encoding(encoding: str) -> str:
    """Return Python's name of an encoding of text.

    Raises
    ------
    ValueError
        If Python does not know it.

    Examples
    --------
    >>> checked_encoding("Latin1"), checked_encoding("UTF-8")
    ('iso8859-1', 'utf-8')
    """
    try:
        name = codecs.lookup(encoding).name
        "".encode(name)  # some codecs are not of text
    except (LookupError, ValueError, TypeError):
        reason = f"must be one that Python knows, such as utf-8 or cp1252, got {encoding!r}"
        raise bad_value("encoding", reason) from None
    return "utf-8" if name == "utf-8-sig" else name


def checked_delimiter(delimiter: str, name: str = "delimiter") -> str:
    r"""Return a delimiter; ``"tab"`` and ``"\t"`` stand for a tab.

    Raises
    ------
    ValueError
        If it is not one ASCII character, or a quote, a line end or NUL.

    Examples
    --------
    >>> checked_delimiter("tab"), checked_delimiter(";")
    ('\t', ';')
    """
    found = "\t" if delimiter in ("tab", r"\t") else delimiter
    if len(found) != 1 or not found.isascii() or found in '"\r\n\0':
        raise bad_value(name, f"must be one ASCII character, such as ; or |, or tab, got {delimiter!r}")
    return found


def escaped(identity: bytes) -> bytes:
    r"""Return an id as one cell of a table, with tabs and line ends as escapes.

    A lone surrogate of JSON, which UTF-8 cannot hold, is written as JSON writes it, such as ``\ud800``.
    """
    for raw, escaped in ((b"\t", rb"\t"), (b"\n", rb"\n"), (b"\r", rb"\r")):
        identity = identity.replace(raw, escaped)
    return without_surrogates(identity)


def without_surrogates(identity: bytes) -> bytes:
    """Return an id with lone surrogates as JSON writes them; other bytes that are not UTF-8 stay."""
    if b"\xed" in identity:
        with suppress(UnicodeDecodeError):
            return identity.decode("utf-8", "surrogatepass").encode("utf-8", "backslashreplace")
    return identity


def decoded(identity: bytes) -> str:
    """Return an id as text: lone surrogates of JSON stay, other bytes that are not UTF-8 become lone surrogates."""
    try:
        return identity.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return identity.decode("utf-8", "surrogateescape")


# ---- ranks ----


class Ranking:
    """Reads the values of a column.

    Parameters
    ----------
    name : str
        The name of the column, for messages.

    Examples
    --------
    >>> ranking = Ranking("date")
    >>> ranking.one("1970-01-02T01:00+01:00"), ranking.many([b"1970-01-01", b"1969-12-31T23:59:59.5Z"]).tolist()
    (86400000000, [0, -500000])
    >>> Ranking("score").one("3"), Ranking("score").one("-0.5e3")
    (3, -500.0)
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._kind = ""

    def one(self, value: bytes | str | None) -> Rank:
        """Read a value.

        Raises
        ------
        ValueError
            If there is none, or it is neither a number nor a date, or of another kind than the first.
        """
        text = (value.decode("utf-8", "replace") if isinstance(value, bytes) else value or "").strip()
        got = repr(text[:MAX_SHOWN]) if text else "no value"
        kind = "number" if _NUMBER.fullmatch(text) else "date"
        found = _number(text) if kind == "number" else microseconds(text)
        if found is None:
            example = "a number or a date such as 2024-02-29 or 2024-02-29T12:30:00Z"
            raise self._error(example, got)
        if self._kind and kind != self._kind:
            raise self._error(f"a {self._kind}, as in the first document", got)
        self._kind = kind
        return found

    def _error(self, expected: str, got: str) -> ValueError:
        problem = Parameter("keep_field", self._name) + f": expected {expected}, got {got}"
        return saying(ValueError(str(problem)), problem)

    def many(self, values: Sequence[bytes]) -> Ranks | None:
        """Read many values; ``None`` if they are not of one plain form, for `one`."""
        joined = b"\n".join([*values, b""])
        if joined.count(b"\n") > len(values):
            return None
        if self._kind != "date" and _WHOLES.fullmatch(joined):
            self._kind = "number" if values else self._kind
            return np.array(list(map(int, joined.split())), np.int64)
        if self._kind != "number" and _DATES.fullmatch(joined):
            with suppress(ValueError):  # such as a month 13
                found = np.array(joined.replace(b"Z", b"").split(b"\n")[:-1]).astype(MICROSECONDS).astype(np.int64)
                self._kind = "date"
                return found
        return None


def as_ranks(values: Sequence[Rank]) -> Ranks:
    """Return values as an array of whole numbers or, if one has a fraction, of floats."""
    return np.array(values, np.int64 if all(isinstance(value, int) for value in values) else np.float64)


def _number(text: str) -> Rank | None:
    """Read a number; a whole one beyond 64 bits becomes a float, and one beyond floats is none."""
    with suppress(ValueError):
        whole = int(text)
        if -MAX_WHOLE - 1 <= whole <= MAX_WHOLE:
            return whole
    found = float(text)
    return found if math.isfinite(found) else None


def microseconds(text: str) -> int | None:
    """Return the microseconds from 1970 to a date as ISO 8601 writes it, ``None`` if it is none.

    Without a zone it is UTC; what is beyond microseconds is left out.

    Examples
    --------
    >>> microseconds("1970-01-02"), microseconds("1970-01-01T01:00:00.5+01:00"), microseconds("soon")
    (86400000000, 500000, None)
    """
    match = _ONE_DATE.fullmatch(text)
    if match is None:
        return None
    date, sign, hours, minutes = match.groups()
    try:
        local = int(np.datetime64(date, "us").astype(np.int64))
    except ValueError:
        return None
    offset = (int(hours or 0) * 60 + int(minutes or 0)) * 60_000_000
    return local + offset if sign == "-" else local - offset
