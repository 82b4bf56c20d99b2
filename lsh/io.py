"""Files of documents: records in, kept lines out.

A source is read twice: once for ids and texts, once for the lines to keep, which go out byte for byte. Three formats,
each plain or with gzip: ``.jsonl``, ``.tsv`` (one column: the text; more: the id, then the text), ``.txt`` (a document
a line). Lines end at a newline only. Nothing here hashes, groups or compares.
"""

from __future__ import annotations

import gzip
import json
import os
import secrets
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import IO, Any, NamedTuple, cast

FORMATS = ("jsonl", "tsv", "txt")
NAMED = 10  # fields of a record that a message lists
STANDARD = "-"  # the name of standard input and output
GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class InputError(ValueError):
    """Bad input; the message names the file, and the line where one is to blame."""

    def __init__(self, name: str, problem: str, line: int | None = None) -> None:
        where = f"{name}, line {line}" if line else name
        super().__init__(f"{where}: {problem}")


class Format(NamedTuple):
    """The form of a file: its name in `FORMATS`, and whether it is compressed."""

    name: str
    gzipped: bool

    @classmethod
    def from_string(cls, text: str) -> Format | None:
        """Read ``"tsv"`` or ``"tsv.gz"``; ``None`` for anything else."""
        name = text.removesuffix(".gz")
        return cls(name, name != text) if name in FORMATS else None

    @classmethod
    def of_path(cls, path: str) -> Format | None:
        """Tell the format by the ending of a file's name; ``None`` for another ending."""
        parts = os.path.basename(path).lower().split(".")[1:]
        return cls.from_string(".".join(parts[-2:])) or cls.from_string(".".join(parts[-1:]))


class Record(NamedTuple):
    """A document: its id and its text, as bytes or str, as the file has it."""

    id: bytes
    text: str | bytes


class Source:
    """A file of documents that can be read more than once; standard input or a pipe is copied to a temporary file.

    Use it as a context manager: at the end the copy is gone.

    Parameters
    ----------
    path : str
        The file, or ``"-"``.
    format : Format, optional
        Default: by the ending of the path.
    field : str, optional
        The field of a JSON record that holds the text. Default ``"text"``.

    Raises
    ------
    InputError
        If the format cannot be told, or `field` is given for another format than ``jsonl``.
    """

    def __init__(self, path: str, format: Format | None = None, field: str | None = None) -> None:
        self.name = "standard input" if path == STANDARD else path
        self.path = path
        if format is None and path == STANDARD:
            raise InputError(self.name, f"its format cannot be told; give --format {', '.join(FORMATS)}")
        found = format or Format.of_path(path)
        if found is None:
            endings = ", ".join(f".{name}[.gz]" for name in FORMATS)
            raise InputError(path, f"the name must end in one of {endings}; rename it or give --format")
        if field is not None and found.name != "jsonl":
            raise InputError(path, f"a field is for .jsonl, this is .{found.name}; leave --field out")
        self.format = found
        self.field = "text" if field is None else field
        self._copy: IO[bytes] | None = None
        self._state: tuple[int, int] | None = None
        if path == STANDARD:
            if sys.stdin is None:
                raise InputError(self.name, "it is closed; give it a file, or name one as INPUT")
            self._copy = _copied(sys.stdin.buffer)
        elif os.path.exists(path) and not os.path.isfile(path):
            with open(path, "rb") as pipe:
                self._copy = _copied(pipe)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *error: object) -> None:
        if self._copy is not None:
            self._copy.close()

    def lines(self) -> Iterator[bytes]:
        """Yield the lines as they are, each with its newline."""
        if self._copy is not None:
            self._copy.seek(0)
        number = 0
        try:
            with ExitStack() as opened:
                file: IO[bytes] = self._copy or opened.enter_context(open(self.path, "rb"))
                self._check_state(os.fstat(file.fileno()))
                if self.format.gzipped:
                    file = cast(IO[bytes], opened.enter_context(gzip.GzipFile(fileobj=file)))
                for line in file:
                    number += 1
                    if number == 1 and line.startswith(GZIP_MAGIC) and not self.format.gzipped:
                        raise InputError(self.name, f"it is compressed; give --format {self.format.name}.gz")
                    yield line
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            after = f" after line {number}" if number else ""
            raise InputError(self.name, f"damaged gzip{after} ({error}); create it anew") from error

    def _check_state(self, state: os.stat_result) -> None:
        """Refuse a file that is not as it was when it was read first, and a compressed one without a byte."""
        if self._state not in (None, (state.st_size, state.st_mtime_ns)):
            raise InputError(self.name, "it changed while it was read; run again when nothing writes to it")
        self._state = (state.st_size, state.st_mtime_ns)
        if self.format.gzipped and state.st_size == 0:
            raise InputError(self.name, "damaged gzip: the file is empty; create it anew")

    def records(self) -> Iterator[Record]:
        """Yield the documents.

        Raises
        ------
        InputError
            If a line is not of the format; the message has its number.
        """
        read = {"jsonl": self._jsonl, "tsv": self._tsv, "txt": self._txt}[self.format.name]
        for number, line in enumerate(self.lines(), 1):
            body = line.removesuffix(b"\n").removesuffix(b"\r")
            yield read(number, body.removeprefix(BYTE_ORDER_MARK) if number == 1 else body)

    def _txt(self, number: int, line: bytes) -> Record:
        return Record(b"%d" % number, line)

    def _tsv(self, number: int, line: bytes) -> Record:
        columns = line.split(b"\t", 2)
        if number == 1:
            self._has_ids = len(columns) > 1
        if self._has_ids != (len(columns) > 1):
            expected, got = ("an id, a tab and a text", "no tab") if self._has_ids else ("no tab", "one")
            raise InputError(self.name, f"expected {expected}, as in line 1, got {got}; correct the line", number)
        return Record(columns[0], columns[1]) if self._has_ids else Record(b"%d" % number, line)

    def _jsonl(self, number: int, line: bytes) -> Record:
        try:
            record = json.loads(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise InputError(
                self.name, f"expected UTF-8, got byte 0x{line[error.start]:02x}; correct it", number
            ) from None
        except (ValueError, RecursionError) as error:
            got = f"({error})" if line.strip() else "an empty line"
            raise InputError(self.name, f"expected a JSON object, got {got}; correct the line", number) from None
        if not isinstance(record, dict):
            raise InputError(self.name, f"expected a JSON object, got {_kind(record)}; correct the line", number)
        if self.field not in record:
            fields = ", ".join(map(repr, list(record)[:NAMED])) or "no field at all"
            fields += f" and {len(record) - NAMED} more" if len(record) > NAMED else ""
            problem = f"expected a field {self.field!r}, got {fields}; name the text's field with --field"
            raise InputError(self.name, problem, number)
        text, identity = record[self.field], record.get("id")
        if not isinstance(text, str):
            raise InputError(self.name, f"field {self.field!r} must be a string, got {_kind(text)}", number)
        if isinstance(identity, (dict, list, bool)):
            raise InputError(self.name, f"field 'id' must be a string or a number, got {_kind(identity)}", number)
        if identity is None:
            return Record(b"%d" % number, text)
        written = identity if isinstance(identity, str) else json.dumps(identity)
        return Record(written.encode("utf-8", "surrogatepass"), text)


def _copied(file: IO[bytes]) -> IO[bytes]:
    """Return a temporary file with the rest of `file`."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the source
    shutil.copyfileobj(file, copy)
    return copy


def _kind(value: Any) -> str:
    """Return what JSON calls a value of this type."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


class Target:
    """A file that appears only when it is complete: written beside its place, then renamed.

    Use it as a context manager and call `commit` at the end; without that nothing is left. What is no regular file
    (standard output, a pipe, a device) is written to directly.

    Parameters
    ----------
    path : str
        The file, or ``"-"``.
    gzipped : bool
        Compress what is written; the same content gives the same bytes.
    """

    def __init__(self, path: str, gzipped: bool) -> None:
        self._name = "standard output" if path == STANDARD else path
        self._place: str | None = None
        if path != STANDARD:  # what stands for a stream is not resolved: a pipe has no other name
            self._place = path if path.startswith("/dev/") else os.path.realpath(path)
        self._gzipped = gzipped
        self._beside: str | None = None

    def __enter__(self) -> Target:
        self._file: Any
        if self._place is None:
            if sys.stdout is None:
                raise OSError("standard output is closed; give it a place, or name a file as OUTPUT")
            self._file = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        elif self._place.startswith("/dev/") or (os.path.exists(self._place) and not os.path.isfile(self._place)):
            self._file = open(self._place, "ab" if os.path.isfile(self._place) else "wb")
        else:
            self._beside = os.path.join(os.path.dirname(self._place), f".lsh-{secrets.token_hex(8)}.part")
            self._file = open(self._beside, "xb")
        self._writer: Any = self._file
        if self._gzipped:
            self._writer = gzip.GzipFile("", "wb", fileobj=self._file, mtime=0)
        return self

    def write(self, data: bytes) -> None:
        """Write bytes."""
        with self._named_errors():
            self._writer.write(data)

    def commit(self) -> None:
        """Put the file in its place."""
        with self._named_errors():
            self._commit()

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Let an error of the system, such as a full disk, name the file."""
        try:
            yield
        except OSError as error:
            if error.filename is None:
                error.filename = self._name
            raise

    def _commit(self) -> None:
        if self._gzipped:
            self._writer.close()
        self._file.flush()
        if self._beside is None or self._place is None:
            return
        os.fsync(self._file.fileno())
        self._file.close()
        if os.path.exists(self._place):
            shutil.copymode(self._place, self._beside)
        os.replace(self._beside, self._place)
        self._beside = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for opened in (self._writer, self._file):
            with suppress(OSError, ValueError):  # what could not be flushed is not wanted either
                opened.close()
        if self._beside is not None:
            with suppress(FileNotFoundError):  # an interrupt may come between the renaming and the note of it
                os.unlink(self._beside)


def same_file(a: str, b: str) -> bool:
    """Tell whether two paths lead to the same file, by links too."""
    if STANDARD in (a, b):
        return False
    try:
        return os.path.samefile(a, b)
    except OSError:  # one of them does not exist yet
        return os.path.realpath(a) == os.path.realpath(b)


def write_kept(source: Source, keep: Iterable[bool], target: Target) -> None:
    """Write the lines of the documents that are kept, byte for byte.

    Raises
    ------
    InputError
        If the source has another number of lines than when it was read first.
    """
    flags = iter(keep)
    for line in source.lines():
        flag = next(flags, None)
        if flag is None:
            raise InputError(source.name, "it grew while it was read; run again when nothing writes to it")
        if flag:
            target.write(line)
    if next(flags, None) is not None:
        raise InputError(source.name, "it shrank while it was read; run again when nothing writes to it")


def write_removed(ids: list[bytes], removed: Any, target: Target) -> None:
    """Write removed id, kept id and similarity, tab-separated, one removed document per line."""
    for document, kept, similarity, _ in removed.tolist():
        target.write(b"%s\t%s\t%s\n" % (_cell(ids[document]), _cell(ids[kept]), repr(similarity).encode()))


def _cell(identity: bytes) -> bytes:
    """Return an id as one cell of a table: a tab or a line end in it is written as an escape."""
    for raw, escaped in ((b"\t", rb"\t"), (b"\n", rb"\n"), (b"\r", rb"\r")):
        identity = identity.replace(raw, escaped)
    return identity
