"""The formats by name, what a document of any of them is, and which of its columns hold the text and the id.

Errors of input and the options of reading are here too, since every format shares them. Nothing here opens a file.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from lsh._batch import Batch
from lsh.files import compression

FORMATS = ("jsonl", "csv", "tsv", "txt")  # of lines of text, each plain or compressed
LINES = {**{name: name for name in FORMATS}, "ndjson": "jsonl"}  # by ending
TABLES = {"parquet": "parquet", "pq": "parquet", "arrow": "arrow", "feather": "arrow"}  # by ending; not compressed
FOLDER = "files"  # a folder in which each file is a document
KNOWN = f"{', '.join(FORMATS)} (each also with .{', .'.join(compression.NAMES)}), parquet or arrow"
TEXT_COLUMNS = ("text", "content", "body")  # where no field is named, in this order
ID_COLUMN = "id"
NO_ID = "none"  # in place of the name of a column: the ids are the numbers of the records
MAX_PLACE_DIGITS = 9  # of the number of a column
BLOCK_BYTES, BLOCK_DOCUMENTS = 1 << 19, 1 << 12  # bytes and documents of a block that is gathered
MAX_LISTED, MAX_NAME_LENGTH = 10, 40  # columns that a message lists, and characters of each


class InputError(ValueError):
    """Bad input; the message names the file, and the line where one is to blame."""

    def __init__(self, name: str, problem: str, line: int | None = None) -> None:
        where = f"{name}, line {line}" if line else name
        super().__init__(f"{where}: {problem}")


class Format(NamedTuple):
    """The format of a file: its name, and how the file is compressed, ``""`` for not at all.

    Examples
    --------
    >>> Format.from_string("tsv.gz")
    Format(name='tsv', compression='gz')
    >>> Format.of_path("corpus/part-7.feather"), Format.of_path("part-8.ndjson.zstd")
    (Format(name='arrow', compression=''), Format(name='jsonl', compression='zst'))
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
        known = name in LINES and (packed in compression.ENDINGS if dot else True)
        return cls(LINES[name], compression.ENDINGS.get(packed, "")) if known else None

    @classmethod
    def of_path(cls, path: str) -> Format | None:
        """Tell the format by the ending of a file's name; ``None`` for another ending."""
        parts = os.path.basename(path).lower().split(".")[1:]
        return cls._of_ending(".".join(parts[-2:])) or cls._of_ending(".".join(parts[-1:]))


class Record(NamedTuple):
    """A document: its id, its text in UTF-8 or ``None`` for none, and where it is from.

    That is what the column of the source says, or, where none is named, the file; of a folder, the folder within it.
    """

    id: bytes
    text: bytes | None
    source: bytes


class Block(NamedTuple):
    """Some documents, one after another, as columns: faster to hand over than one document at a time."""

    texts: Batch
    ids: Callable[[], Sequence[bytes]]
    sources: Callable[[], Sequence[bytes]]

    def records(self) -> Iterator[Record]:
        """Yield the documents one by one."""
        return map(Record, self.ids(), self.texts.tolist(), self.sources())


def gathered(records: Iterable[Record]) -> Iterator[Block]:
    """Yield documents that are read one by one in blocks."""
    held: list[Record] = []
    size = 0
    for record in records:
        held.append(record)
        size += len(record.text or b"")
        if size >= BLOCK_BYTES or len(held) == BLOCK_DOCUMENTS:
            yield _block(held)
            held, size = [], 0
    if held:
        yield _block(held)


def _block(records: Sequence[Record]) -> Block:
    ids, texts, sources = zip(*records)
    return Block(Batch(texts, missing=True), lambda: ids, lambda: sources)


class ReadOptions(NamedTuple):
    """How documents are read; `Documents` says what each option means."""

    field: str | None = None
    id_field: str | None = None
    source_field: str | None = None
    header: bool | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"
    encoding_given: bool = False
    skip_bad: bool = False
    allow_missing: bool = False

    def text_fields(self) -> tuple[str, ...] | None:
        """Return the names of the fields that make the text; ``None`` where none is named."""
        return None if self.field is None else tuple(name.strip() for name in self.field.split(","))

    def named_id(self) -> str | None:
        """Return the field of the id that was named; ``None`` where none was, or the ids are numbers."""
        return None if self.id_field == NO_ID else self.id_field

    def default_id(self) -> str | None:
        """Return the field of the id where there is one of that name; ``None`` where another was named."""
        return ID_COLUMN if self.id_field is None else None


class ReadCounts:
    """What was counted while the documents were read the last time: bad lines or files, missing texts, hidden files.

    Parameters
    ----------
    write_reject : callable, optional
        Receives what is skipped, once, however often the documents are read.

    Attributes
    ----------
    notes : list of str
        What a person should know of how the documents are read; each only once.
    looks_for_bytes : bool
        Whether bytes that are not UTF-8 are still looked for: until the first one, when the documents are read first.
    """

    def __init__(self, write_reject: Callable[[bytes], None] | None = None) -> None:
        self._write_reject, self._num_written = write_reject, 0
        self.hidden = self.skipped = self.missing = 0
        self.notes: list[str] = []
        self.looks_for_bytes = True
        self._is_read = False

    def start(self) -> None:
        """Count from zero: the documents are read anew."""
        self.skipped = self.missing = 0
        self.looks_for_bytes = self.looks_for_bytes and not self._is_read
        self._is_read = True

    def skip(self, rejected: bytes) -> None:
        """Count what is skipped, and write it where that has not been done."""
        self.skipped += 1
        if self._write_reject is not None and self.skipped > self._num_written:
            self._write_reject(rejected)
            self._num_written = self.skipped

    def note(self, note: str) -> None:
        """Add a note."""
        if note and note not in self.notes:
            self.notes.append(note)


# ---- columns ----


def place_of(names: Sequence[str], wanted: str) -> int | None:
    """Return the place of a column by its name, or by its number from 1 where no column has that name.

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


def is_number(wanted: str) -> bool:
    """Tell whether a column is named by its number."""
    return wanted.isascii() and wanted.isdigit() and len(wanted) <= MAX_PLACE_DIGITS


def default_column(names: Iterable[str], identity: str | None = None) -> str | None:
    """Return the column that holds the text where none is named: the only one but the id, or one of the usual names.

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
    names: Sequence[str], options: ReadOptions, error: Callable[[str], InputError]
) -> tuple[Sequence[str], str | None]:
    """Return the columns of the text and of the id as they are named, or as they are where nothing is named.

    Raises
    ------
    InputError
        What `error` makes of the problem, if no field is named and it cannot be told which column is the text.
    """
    fields, identity = options.text_fields(), options.named_id()
    if fields is None:
        place = None if identity is None else place_of(names, identity)
        default = default_column(names, identity if place is None else names[place])
        if default is None:
            others = listed([name for name in names if name != identity]) or "no columns at all"
            beside = "" if identity is None else f" beside --id-field {identity}"
            raise error(f"no text column found among {others}{beside}; name it with --field")
        fields = (default,)
    if options.default_id() in names and ID_COLUMN not in fields:
        identity = ID_COLUMN
    return fields, identity


def columns_note(texts: Sequence[str], identity: str | None) -> str:
    """Return the note that says where the text and the id are.

    Examples
    --------
    >>> columns_note(["column 3 'text'"], None)
    "text: column 3 'text'; id: record number"
    """
    return f"text: {' + '.join(texts)}; id: {identity or 'record number'}"


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
    """Return a text, an id or the name of a source as bytes."""
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


def undecodable(encoding: str, error: UnicodeError) -> str:
    """Return what is wrong with a text that cannot be decoded."""
    got = f"byte 0x{error.object[error.start]:02x}" if isinstance(error, UnicodeDecodeError) else str(error)
    return f"not {encoding}: {got}"


def checked_encoding(encoding: str) -> str:
    """Return the name that Python has for an encoding of text.

    Raises
    ------
    ValueError
        If it has none.

    Examples
    --------
    >>> checked_encoding("Latin1"), checked_encoding("UTF-8")
    ('iso8859-1', 'utf-8')
    """
    try:
        name = codecs.lookup(encoding).name
        "".encode(name)  # some codecs are not of text
    except (LookupError, ValueError, TypeError):
        raise ValueError(
            f"--encoding must be one that Python knows, such as utf-8 or cp1252, got {encoding!r}"
        ) from None
    return "utf-8" if name == "utf-8-sig" else name


def checked_delimiter(delimiter: str) -> str:
    r"""Return a delimiter; ``"tab"`` and ``"\t"`` stand for a tab.

    Raises
    ------
    ValueError
        If it is none that can be told from quotes and line ends.

    Examples
    --------
    >>> checked_delimiter("tab"), checked_delimiter(";")
    ('\t', ';')
    """
    found = "\t" if delimiter in ("tab", r"\t") else delimiter
    if len(found) != 1 or not found.isascii() or found in '"\r\n\0':
        raise ValueError(f"--delimiter must be one ASCII character, such as ; or |, or tab, got {delimiter!r}")
    return found
