"""What the reader of each format of text does: the records of a file, their fields, and what is added to a record.

`lines` runs the readers over files, `text_formats` has one for each format.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from lsh.base.arrays import Array
from lsh.base.errors import InputError, Words, message, words_of
from lsh.files.blocks import LineStream
from lsh.files.records import SKIP, Rank, Ranking, Ranks, ReadOptions, Values, undecodable, utf8
from lsh.text.batch import Batch

BLANK = b" \t\r"  # characters of a blank line

Spans = np.ndarray[Any, np.dtype[np.int64]]


class RawRecord(NamedTuple):
    """A line, or a record of CSV, as it is in its file."""

    raw: bytes  # in the encoding of its file, with its line end
    cells: Sequence[bytes]  # in UTF-8, without the line end; a line is one cell
    file: str
    number: int  # the number of its first line
    problem: str = ""  # why it has no cells

    def error(self, problem: Words, lacks: str | None = None) -> InputError:
        """Return the error that names the file and the line."""
        return InputError(self.file, problem, self.number, lacks)

    def bad(self, problem: Words) -> InputError:
        """Return the error of a malformed line, which can be skipped."""
        return self.error(message(problem) + "; fix the line or use " + SKIP)


class Fields(NamedTuple):
    """The fields of a record; ``None`` for one that it does not have."""

    identity: bytes | None
    text: bytes | None
    source: bytes | None = None
    rank: Rank | None = None


class FieldColumns(NamedTuple):
    """The fields of the records of a block, as columns; ``None`` for a field that no record has.

    Each record has a text.
    """

    size: int  # how many bytes of the block are whole records
    spans: Spans  # where each record begins in the block, and its length
    texts: Batch
    identities: Batch | None = None
    sources: Batch | None = None
    ranks: Ranks | None = None


class Reader(ABC):
    """Reads the records of one format, once from the first file to the last; it remembers the columns of the first one.

    Attributes
    ----------
    format : str
        The name of the format.
    has_blanks : bool
        Whether there are blank lines, which are no records.
    checks_utf8 : bool
        Whether a line that is not UTF-8 is malformed.
    has_header : bool
        Whether the first record names the columns where `ReadOptions.header` does not say it.
    """

    format: ClassVar[str]
    has_blanks: ClassVar[bool] = False
    checks_utf8: ClassVar[bool] = False
    has_header: ClassVar[bool] = False

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self._ranking = None if options.keep_field is None else Ranking(options.keep_field)

    @property
    @abstractmethod
    def is_ready(self) -> bool:
        """Whether `many` can be called: the columns of texts and ids are known. `one` finds them."""

    def note(self) -> Words:
        """Return which columns hold the text and the id, once that is known; empty in formats without columns."""
        return ""

    def start_problem(self, line: str) -> Words:
        """Return the error message if the first line shows that other options are needed, else an empty string."""
        return ""

    def take_header(self, header: RawRecord) -> None:
        """Find the columns by the first record of a file, in formats that have a header."""
        raise NotImplementedError

    def records(self, lines: LineStream, name: str, encoding: str) -> Iterator[RawRecord]:
        """Cut a file into records."""
        for record in line_records(lines, name, encoding):
            if not (self.has_blanks and record.cells and is_blank(record.cells[0])):
                yield record

    @abstractmethod
    def one(self, record: RawRecord) -> Fields:
        """Read a record; raise InputError if it is malformed."""

    @abstractmethod
    def many(self, block: bytes) -> FieldColumns | None:
        """Read the records of a block of UTF-8; ``None`` if any of them is not plain."""

    def added_names(self, header: bytes) -> tuple[bytes, int]:
        """Return what names the added fields in a header line in UTF-8, and how many bytes are after it.

        The format has columns.
        """
        raise NotImplementedError

    def added_values(self, raw: bytes, values: Values | None) -> tuple[bytes, int]:
        """Return the added fields of a record in UTF-8, null ones for ``None``, and how many bytes are after them.

        Raises
        ------
        ValueError
            If the record has one of these fields.
        """
        raise NotImplementedError

    def shortened(self, raw: bytes, cuts: Array) -> bytes:
        """Return a record in UTF-8 with its text without some runs; see `lsh.text.cuts`."""
        raise NotImplementedError

    def rank(self, record: RawRecord, value: bytes | None) -> Rank | None:
        """Read the value by which a record is ranked, ``None`` if no column is named for it."""
        try:
            return None if self._ranking is None else self._ranking.one(value)
        except ValueError as error:
            raise record.bad(words_of(error)) from None

    def ranked(self, columns: FieldColumns, values: Batch | None) -> FieldColumns | None:
        """Return the fields with the values by which records are ranked; ``None`` if one of these is not plain."""
        if self._ranking is None:
            return columns
        ranks = None if values is None else self._ranking.many(cast(list[bytes], values.tolist()))
        return None if ranks is None else columns._replace(ranks=ranks)

    def flags(self) -> tuple[bool, ...]:
        """Return what it knows of all records so far, beside what the first one shows; for `set_flags`."""
        return ()

    def set_flags(self, flags: Sequence[bool]) -> None:  # noqa: B027 - most readers have none
        """Go on with what another reader knows."""

    def problem_at_end(self) -> InputError | None:
        """Return the error that is known only at the end of the last file, if there is one."""
        return None


def recoded(raw: bytes, encoding: str) -> bytes:
    """Return a line in UTF-8.

    Raises
    ------
    UnicodeError
        If it cannot be decoded, or has a line feed within it.
    """
    if encoding == "utf-8":
        return raw
    line = utf8(raw.decode(encoding))
    if b"\n" in line[:-1]:
        raise UnicodeError("a line feed within a line")
    return line


def line_records(lines: LineStream, name: str, encoding: str) -> Iterator[RawRecord]:
    """Return the lines of a file as records of one cell."""
    for raw in lines:
        try:
            line = recoded(raw, encoding)
        except UnicodeError as error:
            yield RawRecord(raw, (), name, lines.number, undecodable(encoding, error))
        else:
            yield RawRecord(raw, (line.removesuffix(b"\n").removesuffix(b"\r"),), name, lines.number)


def is_blank(line: bytes) -> bool:
    """Tell whether a line, without its end, has nothing but spaces."""
    return not line.strip(BLANK)


def joined(texts: Sequence[Batch]) -> Batch:
    """Return the texts of several fields with a space between."""
    return texts[0] if len(texts) == 1 else Batch([b" ".join(row) for row in zip(*[one.tolist() for one in texts])])
