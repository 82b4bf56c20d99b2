"""A journal: a file of records that a run appends, and that its next start reads if the run was killed.

A record is a JSON value, which may also have bytes, with arrays. Each has a checksum, which covers the records before
it and the name of the journal, too: what follows the last whole record, or is of another journal, is ignored, and the
next record is written over it. A record survives the end of the process at once, and a loss of power after the next
`SYNCED` bytes.
"""

from __future__ import annotations

import errno
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lsh.base import file_io
from lsh.base.arrays import Array
from lsh.storage.disk import named_errors

HEAD = np.dtype([("value", "<u8"), ("arrays", "<u8"), ("checksum", "<u8")])  # sizes of both parts, and a CRC-32
BYTES = "bytes in latin-1"  # the only key of an object that stands for bytes
SYNCED = 1 << 26  # bytes after which the system writes the file to the disk

Record = tuple[Any, list[Array]]


class Journal:
    """A file of records, which one process uses at a time; close it at the end.

    Parameters
    ----------
    path : str
        The file, which is created if it does not exist.
    name : str, optional
        What tells the journal from others; records of one with another name are ignored.

    Raises
    ------
    OSError
        If it cannot be opened, or another process uses it.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "journal")
    >>> with Journal(path) as journal:
    ...     journal.append({"first": 1}, [np.arange(3)])
    ...     journal.append("second")
    >>> with Journal(path) as journal:
    ...     list(journal.records())
    [({'first': 1}, [array([0, 1, 2])]), ('second', [])]
    >>> folder.cleanup()
    """

    def __init__(self, path: str, name: str = "") -> None:
        self._path = path
        self._first = self._checksum = zlib.crc32(name.encode())  # the second: of all records before `_end`
        self._end = self._unsynced = 0  # where the next record begins, and bytes since the last synchronization
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        with named_errors(path, True):
            self._file = os.open(path, flags, 0o600)
        if not file_io.try_lock(self._file):
            os.close(self._file)
            raise BlockingIOError(errno.EAGAIN, "another process uses it; wait until that one has ended", path)
        self._size = os.fstat(self._file).st_size

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._file)

    def records(self) -> Iterator[Record]:
        """Yield the whole records from the first on.

        The next `append` writes after the last one for which the iteration went on.
        """
        self._end, self._checksum = 0, self._first
        while (found := self._next_record()) is not None:
            record, size, checksum = found
            yield record
            self._end, self._checksum = self._end + size, checksum

    def append(self, value: Any, arrays: Sequence[Array] = ()) -> None:
        """Append a record.

        Raises
        ------
        OSError
            If it cannot be written, as on a full disk; the message names the file.
        """
        shapes = [(array.dtype.str, array.shape) for array in arrays]
        described = json.dumps([value, shapes], default=_of_bytes).encode()
        data = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
        sizes = np.array([(len(described), len(data), 0)], HEAD).tobytes()[:16]
        checksum = _checksum(self._checksum, sizes, described, data)
        with named_errors(self._path, True):
            if self._size > self._end:
                os.ftruncate(self._file, self._end)
            left, at = memoryview(b"".join([sizes, checksum.to_bytes(8, "little"), described, data])), self._end
            while left:
                written = file_io.write_at(self._file, left, at)
                left, at = left[written:], at + written
            self._unsynced += at - self._end
            self._size, self._end, self._checksum = at, at, checksum
            if self._unsynced > SYNCED:
                os.fsync(self._file)
                self._unsynced = 0

    def clear(self) -> None:
        """Remove all records."""
        with named_errors(self._path, True):
            os.ftruncate(self._file, 0)
        self._size, self._end, self._checksum = 0, 0, self._first

    def _next_record(self) -> tuple[Record, int, int] | None:
        """Return the next record, its size and its checksum; ``None`` where no whole one is."""
        place = self._end
        head = file_io.read_at(self._file, HEAD.itemsize, place)
        if len(head) < HEAD.itemsize:
            return None
        ((first, second, checksum),) = np.frombuffer(head, HEAD).tolist()
        if first + second > self._size - place - HEAD.itemsize:
            return None
        described = file_io.read_at(self._file, first, place + HEAD.itemsize)
        data = file_io.read_at(self._file, second, place + HEAD.itemsize + first)
        if checksum != _checksum(self._checksum, head[:16], described, data):
            return None
        value, shapes = json.loads(described, object_hook=_with_bytes)
        arrays, at = [], 0
        for kind, shape in shapes:
            count = int(np.prod(shape, dtype=np.int64))
            arrays.append(np.frombuffer(data, kind, count, at).reshape(shape))
            at += arrays[-1].nbytes
        return (value, arrays), HEAD.itemsize + first + second, checksum


def _of_bytes(value: bytes) -> dict[str, str]:
    return {BYTES: value.decode("latin-1")}


def _with_bytes(value: dict[str, Any]) -> Any:
    return value[BYTES].encode("latin-1") if BYTES in value else value


def _checksum(found: int, *parts: bytes) -> int:
    for part in parts:
        found = zlib.crc32(part, found)
    return found
