"""Byte order marks, and bytes that are not UTF-8 in files that should be."""

from __future__ import annotations

import codecs

from lsh.base.errors import Parameter, Words
from lsh.files.records import InputError, ReadCounts

MARKS = {"utf-32-le": codecs.BOM_UTF32_LE, "utf-32-be": codecs.BOM_UTF32_BE}  # before utf-16, which begins alike
MARKS |= {"utf-8": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
BY_MARK = ("utf-16", "utf-32")  # encodings whose byte order a mark at the beginning tells
CHECKED_BYTES = 1 << 20  # that are decoded at once


def mark_of(start: bytes, encodings: str = "utf") -> str | None:
    r"""Return the encoding whose byte order mark begins a file, of those whose names begin alike.

    Examples
    --------
    >>> mark_of("a".encode("utf-16-le")), mark_of("\ufeffa".encode("utf-16-le"))
    (None, 'utf-16-le')
    """
    return next((name for name in MARKS if name.startswith(encodings) and start.startswith(MARKS[name])), None)


def check_mark(start: bytes, name: str) -> None:
    """Refuse a file that begins with the mark of another encoding than UTF-8, where no encoding is named."""
    found = mark_of(start)
    if found not in (None, "utf-8"):
        encoding = str(found)[: len("utf-16")]
        raise InputError(
            name, f"it begins with a byte order mark of {encoding}; use " + Parameter("encoding", encoding)
        )


def note_bytes(counts: ReadCounts, data: bytes, name: str, line: int = 1) -> None:
    """Note the first byte that is not UTF-8, in data that begins with a line of a file."""
    if counts.looks_for_bytes:
        note = not_utf8(data, name, line)
        counts.note(note)
        counts.looks_for_bytes = not note


def not_utf8(data: bytes, name: str, line: int) -> Words:
    r"""Return a note on the first byte that is not UTF-8, an empty one where there is none.

    Examples
    --------
    >>> str(not_utf8(b"one\ncaf\xe9", "in.txt", 1))
    'in.txt, line 2: byte 0xe9 is not UTF-8; if the file has another encoding, name it with encoding'
    """
    if data.isascii():
        return ""
    decoder = codecs.getincrementaldecoder("utf-8")()
    pieces = range(0, len(data), CHECKED_BYTES)
    at = 0
    try:
        for at in pieces:
            decoder.decode(data[at : at + CHECKED_BYTES], at + CHECKED_BYTES >= len(data))
    except UnicodeDecodeError as error:
        # the decoder may hold the first bytes of a character of the piece before
        place = at + error.start - (len(error.object) - len(data[at : at + CHECKED_BYTES]))
        where = f"{name}, line {line + data.count(10, 0, max(place, 0))}"
        problem = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
        return f"{where}: {problem}; if the file has another encoding, name it with " + Parameter("encoding")
    return ""
