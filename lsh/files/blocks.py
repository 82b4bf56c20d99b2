"""The lines of a file, one at a time or in blocks of whole lines; byte order marks; bytes that are not UTF-8.

A line ends at a newline. In encodings with wide characters a newline has several bytes, and begins at a multiple of
their number. The content of a line does not matter here.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from io import BytesIO
from typing import IO

from lsh.base.errors import InputError, Parameter, Words
from lsh.base.file_io import read_at
from lsh.files._fields import count_lines
from lsh.files.records import ReadCounts
from lsh.storage import compression

READ_SIZE = 1 << 20  # bytes that are read at once
PROBE_SIZE = 1 << 14  # bytes in which the end of a line is searched first


class LineStream:
    """The lines of a file, read one at a time or in blocks.

    Parameters
    ----------
    blocks : iterator of bytes
        Whole lines.
    newline : bytes
        The bytes that end a line.
    offset : int, optional
        The bytes of the file before the first line.

    Attributes
    ----------
    number : int
        The number of the line that was read last.
    offset : int
        The bytes of the file before the next line.
    """

    def __init__(self, blocks: Iterator[bytes], newline: bytes, offset: int = 0) -> None:
        self._blocks, self._newline = blocks, newline
        self._waiting: list[bytes] = []  # lines, the next one last
        self._back = b""
        self.number, self.offset = 0, offset

    def __iter__(self) -> LineStream:
        return self

    def __next__(self) -> bytes:
        if not self._waiting:
            block = self._next_block()
            if not block:
                raise StopIteration
            self._waiting = split(block, self._newline)[::-1]
        self.number += 1
        line = self._waiting.pop()
        self.offset += len(line)
        return line

    def _next_block(self) -> bytes:
        if self._back:
            block, self._back = self._back, b""
            return block
        return next(self._blocks, b"")

    def block(self) -> bytes:
        """Read the next block of lines; it is empty at the end."""
        block = b"".join(reversed(self._waiting)) or self._next_block()
        self._waiting = []
        self.number += self.count(block)
        self.offset += len(block)
        return block

    def give_back(self, block: bytes) -> None:
        """Put back the lines that were read last: they are read again."""
        self._back = block + self._back
        self.number -= self.count(block)
        self.offset -= len(block)

    def skip_to(self, offset: int) -> None:
        """Read on to an offset of the file, where a line begins."""
        while self.offset < offset and (block := self.block()):
            if self.offset > offset:
                self.give_back(block[len(block) - (self.offset - offset) :])

    def count(self, block: bytes) -> int:
        """Return the number of lines of a block; the last one may have no end."""
        return count_lines(block) if self._newline == b"\n" else len(split(block, self._newline))


def split(block: bytes, newline: bytes) -> list[bytes]:
    """Return the lines of a block, with their ends."""
    if newline == b"\n":
        return BytesIO(block).readlines()
    lines, begin = [], 0
    while begin < len(block):
        stop = _line_end(block, newline, begin) or len(block)
        lines.append(block[begin:stop])
        begin = stop
    return lines


def without_end(line: bytes) -> bytes:
    """Return a line without its line end."""
    return line.removesuffix(b"\n").removesuffix(b"\r")


def file_blocks(file: int, newline: bytes, begin: int) -> Iterator[bytes]:
    """Yield blocks of whole lines of a file, by its descriptor, from `begin` on; the last line may have no end.

    The end of the last line of a block is searched before the block is read, so that no bytes are copied.
    """
    at = begin
    while True:
        probe, stop = at + max(READ_SIZE - PROBE_SIZE, 0), 0
        while not stop and (data := read_at(file, PROBE_SIZE, probe)):
            found = _last_end(data, newline, probe - begin)
            stop = probe + found if found else 0
            probe += PROBE_SIZE
        block = read_at(file, (stop or probe + PROBE_SIZE) - at, at)
        if not block:
            return
        yield block
        at += len(block)


def chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a file in pieces; those that can be read of a corrupt file come before the error."""
    while True:
        held: list[bytes] = []
        size = 0
        try:
            while size < READ_SIZE and (piece := file.read1(READ_SIZE - size)):  # type: ignore[attr-defined]
                held.append(piece)
                size += len(piece)
        except compression.DamagedError:
            yield b"".join(held)
            raise
        if not held:
            return
        yield b"".join(held)


def blocks(chunks: Iterator[bytes], newline: bytes) -> Iterator[bytes]:
    """Yield blocks of whole lines; the last line may have no end."""
    held: list[memoryview] = []
    for chunk in chunks:
        stop = _last_end(chunk, newline, sum(map(len, held)))
        if stop:
            held.append(memoryview(chunk)[:stop])
            yield _emptied(held)
        held.append(memoryview(chunk)[stop:])
    if any(held):
        yield _emptied(held)


def _emptied(held: list[memoryview]) -> bytes:
    """Join the pieces, and empty the list at once: a line may need nearly all the memory."""
    joined = b"".join(held)
    held.clear()
    return joined


def _last_end(data: bytes, newline: bytes, offset: int) -> int:
    """Return where the last whole line ends, 0 if there is none; see the module on newlines of several bytes."""
    at = data.rfind(newline)
    while at >= 0 and (offset + at) % len(newline):
        at = data.rfind(newline, 0, at + len(newline) - 1)
    return at + len(newline) if at >= 0 else 0


def _line_end(data: bytes, newline: bytes, begin: int) -> int:
    """Return where the line that begins at `begin` ends, 0 if its end is not in the data."""
    at = data.find(newline, begin)
    while at >= 0 and at % len(newline):
        at = data.find(newline, at + 1)
    return at + len(newline) if at >= 0 else 0


# ---- marks ----


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
