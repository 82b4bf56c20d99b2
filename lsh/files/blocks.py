"""The lines of a file, one at a time or in blocks of whole lines.

A line ends at a newline. In encodings with wide characters a newline has several bytes, and begins at a multiple of
their number. The content of a line does not matter here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BytesIO
from typing import IO

from lsh.base import file_io
from lsh.files import compression
from lsh.files._fields import count_lines

READ_SIZE = 1 << 20  # bytes that are read at once
PROBE_SIZE = 1 << 14  # bytes in which the end of a line is searched first


class Stream:
    """The lines of a file, read one at a time or in blocks.

    Parameters
    ----------
    blocks : iterator of bytes
        Whole lines.
    newline : bytes
        The bytes that end a line.
    number, offset : int
        The number of the line before the first, and the bytes of the file before it.

    Attributes
    ----------
    number : int
        The number of the line that was read last.
    offset : int
        The bytes of the file before the next line.
    """

    def __init__(self, blocks: Iterator[bytes], newline: bytes, number: int = 0, offset: int = 0) -> None:
        self._blocks, self._newline = blocks, newline
        self._waiting: list[bytes] = []  # lines, the next one last
        self._back = b""
        self.number, self.offset = number, offset

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> bytes:
        if not self._waiting:
            block = self._next_block()
            if not block:
                raise StopIteration
            self._waiting = self.split(block)[::-1]
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

    def count(self, block: bytes) -> int:
        """Return the number of lines of a block; the last one may have no end."""
        return count_lines(block) if self._newline == b"\n" else len(self.split(block))

    def again(self, block: bytes) -> Stream:
        """Return the lines of the block that was read last as a stream with the same line numbers and offsets."""
        return Stream(iter([block]), self._newline, self.number - self.count(block), self.offset - len(block))

    def split(self, block: bytes) -> list[bytes]:
        """Return the lines of a block, with their ends."""
        if self._newline == b"\n":
            return BytesIO(block).readlines()
        lines, begin = [], 0
        while begin < len(block):
            stop = _line_end(block, self._newline, begin) or len(block)
            lines.append(block[begin:stop])
            begin = stop
        return lines


def descriptor(file: IO[bytes]) -> int | None:
    """Return the descriptor of a file of the system, ``None`` for another one, such as a compressed file."""
    try:
        return file.fileno()
    except OSError:
        return None


def read_at(file: int, begin: int, size: int) -> bytes:
    """Return bytes of a file, by its descriptor, and put its position behind them; fewer at the end of the file."""
    data = file_io.read_at(file, size, begin)
    while data and len(data) < size and (more := file_io.read_at(file, size - len(data), begin + len(data))):
        data += more  # a system reads at most about 2 GB at once
    os.lseek(file, begin + len(data), os.SEEK_SET)
    return data


def file_blocks(file: int, newline: bytes, begin: int) -> Iterator[bytes]:
    """Yield blocks of whole lines of a file, by its descriptor, from `begin` on; the last line may have no end.

    The end of the last line of a block is searched before the block is read, so that no bytes are copied.
    """
    at = begin
    while True:
        probe, stop = at + max(READ_SIZE - PROBE_SIZE, 0), 0
        while not stop and (data := read_at(file, probe, PROBE_SIZE)):
            found = _last_end(data, newline, probe - begin)
            stop = probe + found if found else 0
            probe += PROBE_SIZE
        block = read_at(file, at, (stop or probe + PROBE_SIZE) - at)
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
