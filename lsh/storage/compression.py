"""Compressed files: gzip, bzip2, xz and zstd, unpacked as they are read and packed as they are written.

A file may hold several compressed streams, one after another. A file that ends too early, or has other data after a
stream, is an error: a document that is not read would look like a removed one. The same content always gives the same
compressed bytes. Zstandard needs the package zstandard, of the extra ``io``.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any, NamedTuple, cast

from lsh.base.errors import needing

PACKED = 1 << 16  # bytes that are read from a compressed file at once
PACKED_ZSTD = 1 << 13  # fewer: zstandard has no limit of its output, and four bytes may stand for 128 KB
UNPACKED = 1 << 20  # most bytes that are unpacked at once, where the library has such a limit
GZIP_LEVEL = 6  # the default of gzip, as the others have those of their programs; 9 is far slower for 0.5 % fewer bytes
LONGEST_WINDOW = 1 << 31  # bytes that zstd may refer back to; `zstd --long=31` writes such files

NAMES = {"gz": "gzip", "bz2": "bzip2", "xz": "xz", "zst": "zstd"}
ENDINGS = {**{name: name for name in NAMES}, "zstd": "zst"}  # of a file's name
PADDED = ("gz", "xz")  # that may have zeros between and after the streams
GZIP_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"  # deflate; no name and no time; level and system unknown
# The first bytes of a stream.
MAGIC = re.compile(rb"(?P<gz>\x1f\x8b\x08)|(?P<bz2>BZh[1-9]1AY&SY)|(?P<xz>\xfd7zXZ\x00)|(?P<zst>\x28\xb5\x2f\xfd)")


class DamagedError(Exception):
    """The data of a compressed file are corrupt.

    Attributes
    ----------
    at : int
        How many bytes of the compressed file were read without an error.
    """

    def __init__(self, problem: str, at: int) -> None:
        super().__init__(problem)
        self.at = at


def corrupt(compression: str, error: DamagedError) -> str:
    """Return what is wrong with a compressed file.

    Examples
    --------
    >>> corrupt("gz", DamagedError("invalid block type", 65536))
    'corrupt gzip data after byte 65,536 (invalid block type)'
    """
    return f"corrupt {NAMES[compression]} data after byte {error.at:,} ({error})"


class _Method(NamedTuple):
    """How files are compressed and unpacked."""

    unpacker: Callable[[], Any]  # for one stream
    error: type[Exception]  # that the unpacker raises
    packer: Callable[[], Any]  # for one stream
    packed: int = PACKED  # bytes that the unpacker is given at once
    limit: tuple[int, ...] = ()  # on the bytes that it returns at once, where it has one


def of_path(path: str) -> str:
    """Return the compression by the ending of a file's name, ``""`` for none.

    Examples
    --------
    >>> of_path("news.tsv.GZ"), of_path("news.tsv.zstd"), of_path("news.tsv")
    ('gz', 'zst', '')
    """
    ending = path.lower().rpartition(".")[2]
    return ENDINGS.get(ending, "") if ending != path.lower() else ""


def recognised(start: bytes) -> str | None:
    """Return how a file is compressed, by its first bytes; ``None`` if it does not look compressed.

    Examples
    --------
    >>> import gzip
    >>> recognised(gzip.compress(b"words")), recognised(b"words")
    ('gz', None)
    """
    found = MAGIC.match(start)
    return None if found is None else found.lastgroup


def unpacked(file: IO[bytes], compression: str) -> IO[bytes]:
    """Return a file of the content of `file`; reading it raises `DamagedError`."""
    return cast(IO[bytes], io.BufferedReader(_Unpacked(_chunks(file, compression)), UNPACKED))


class Packing:
    """Compresses what is written to it into a file, which stays open.

    It writes to the file in `write` and `finish` only. Those of the standard library (`gzip.GzipFile` and others) also
    do so when they are garbage-collected: after an error they would write to a file that is closed or full.
    """

    def __init__(self, file: IO[bytes], compression: str) -> None:
        self._file = file
        self._stream = _method(compression).packer()

    def write(self, data: Any) -> None:
        """Compress bytes."""
        if packed := self._stream.compress(data):
            self._file.write(packed)

    def finish(self) -> None:
        """Write the end of the compressed stream."""
        self._file.write(self._stream.flush())


def check_available(compression: str) -> None:
    """Raise ImportError where a compression needs a package that is not installed."""
    if compression == "zst":
        _zstandard()


def _zstandard() -> Any:
    with needing('files that end in .zst need zstandard: run pip install "lsh-dedup[io]", or use .gz or .xz'):
        import zstandard
    return zstandard


def _method(compression: str) -> _Method:
    if compression == "gz":
        # 31: a gzip header, the largest window
        return _Method(lambda: zlib.decompressobj(31), zlib.error, _GzipPacker)
    if compression == "bz2":
        import bz2

        return _Method(bz2.BZ2Decompressor, OSError, bz2.BZ2Compressor, limit=(UNPACKED,))
    if compression == "xz":
        import lzma

        unpacker = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ)
        return _Method(unpacker, lzma.LZMAError, lzma.LZMACompressor, limit=(UNPACKED,))
    zstandard = _zstandard()
    unpacker = zstandard.ZstdDecompressor(max_window_size=LONGEST_WINDOW).decompressobj
    packer = zstandard.ZstdCompressor(write_checksum=True).compressobj
    return _Method(unpacker, zstandard.ZstdError, packer, PACKED_ZSTD)


class _GzipPacker:
    """Compresses one stream to the bytes that `gzip.GzipFile` writes, which do not depend on the system."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(GZIP_LEVEL, wbits=-15)  # without a header, the largest window
        self._waiting = GZIP_HEADER
        self._checksum = self._size = 0

    def compress(self, data: Any) -> bytes:
        self._checksum = zlib.crc32(data, self._checksum)
        self._size += memoryview(data).nbytes
        packed, self._waiting = self._waiting + self._deflate.compress(data), b""
        return packed

    def flush(self) -> bytes:
        trailer = struct.pack("<II", self._checksum, self._size % (1 << 32))
        return self._waiting + self._deflate.flush() + trailer


def _chunks(file: IO[bytes], compression: str) -> Iterator[bytes]:
    """Yield the content, stream by stream."""
    method = _method(compression)
    waiting, num_read = file.read(method.packed), 0
    if not waiting:
        raise DamagedError("the file is empty", 0)
    while waiting:
        stream = method.unpacker()
        while not stream.eof:
            if not waiting and getattr(stream, "needs_input", True):
                waiting = file.read(method.packed)
                if not waiting:
                    raise DamagedError("it ends too early", num_read)
            try:
                chunk = stream.decompress(waiting, *method.limit)
            except method.error as error:
                raise DamagedError(str(error), num_read) from error
            num_read += len(waiting)
            waiting = b""
            yield chunk
        num_read -= len(stream.unused_data)
        waiting = stream.unused_data or file.read(method.packed)
        while waiting and compression in PADDED and not (rest := waiting.lstrip(b"\0")):
            num_read += len(waiting)
            waiting = file.read(method.packed)
        if waiting and compression in PADDED:
            num_read += len(waiting) - len(rest)
            waiting = rest


class _Unpacked(io.RawIOBase):
    """A file over chunks of bytes."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._ready = memoryview(chunk)
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count
