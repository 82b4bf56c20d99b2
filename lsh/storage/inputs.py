"""Files that are read more than once, and must not change meanwhile.

An `Input` that changed since it was opened first is an error. Parts of it are read by their places; a compressed input
is unpacked again. Where files are, and how they are read there, is the matter of `locations`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import pairwise
from typing import IO, Any

import numpy as np

from lsh.base.arrays import Array
from lsh.base.errors import InputError, Parameter, message
from lsh.base.file_io import read_at
from lsh.base.prefetch import prefetched
from lsh.storage import compression, disk, remote, urls
from lsh.storage.disk import BUFFER, STANDARD, descriptor
from lsh.storage.locations import location
from lsh.storage.remote import Part

COMPRESSED_START = 16  # bytes: enough to recognise each compression
MAX_GAP, MAX_READ = 1 << 12, 1 << 23  # bytes between two ranges that are read together, and of all of these

Report = Callable[["Input", "int | None"], object]  # is told how many bytes of a file have been read


class Input:
    """A file that can be opened more than once, and must not change meanwhile; close it at the end.

    Parameters
    ----------
    path : str
        The file, its URL, or ``"-"``.
    packed : str
        Its compression, ``""`` for none.
    state : remote.RemoteState, optional
        The state of the file of a URL when it was found.
    folder : str, optional
        For the copy of a file that can be read only once. Default: TMPDIR, or the folder of the system.
    format : str, optional
        The name of its format, for messages.

    Attributes
    ----------
    path, packed : str
        As they are given.
    name : str
        The path, or ``"standard input"``; a URL without what may be secret.
    """

    def __init__(
        self,
        path: str,
        packed: str,
        state: remote.RemoteState | None = None,
        folder: str | None = None,
        format: str = "",
    ) -> None:
        self.name = "standard input" if path == STANDARD else urls.shown(path)
        self.path, self.packed, self._format = path, packed, format
        compression.check_available(packed)
        self._source = source = location(path).source(state, folder)
        self._remote = source if isinstance(source, remote.RemoteFile) and not packed else None
        self._file: IO[bytes] | None = None  # while it is read
        self.share_read: float | None = None  # for a format that is not read from the start to the end

    def close(self) -> None:
        """Delete a temporary copy."""
        self._source.close()

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Open the file, unpacked; reading it may raise `compression.DamagedError`; see `damaged`."""
        with self._source.opened() as file:
            self._file, self.share_read = file, None
            try:
                yield compression.unpacked(file, self.packed) if self.packed else file
            finally:
                self._file = None

    def parts(self, parts: Iterable[Part]) -> Iterator[bytes]:
        """Yield the bytes of each part, unpacked; all ranges ascend. Neighbours are read together."""
        with self.opened() as file:
            try:
                number = descriptor(file)
                if self._remote is not None and number is None:
                    for end, data in self._remote.parts(parts):
                        file.seek(end)  # the position is shown as progress
                        yield data
                    return
                read = _skipping(file) if number is None else partial(read_at, number)
                for begins, ends in parts:
                    yield joined(read, begins, ends)
            except EOFError:
                raise self.changed() from None
            except compression.DamagedError as error:
                raise self.damaged(error) from error

    def copy(self, parts: Iterable[Part], write: Callable[[bytes], object], report: Report) -> None:
        """Give the bytes of each part to `write`; call `report` after each part."""
        read = ((self.position, data) for data in self.parts(parts))
        for position, data in prefetched(read):  # a part is read while the one before is written
            write(data)
            report(self, position)

    @property
    def size(self) -> int:
        """The size of the file in bytes, as it is on disk."""
        return self._source.size

    def state(self) -> tuple[Any, ...] | None:
        """Return what another run compares to tell whether the file changed; ``None`` if it cannot be read again."""
        return self._source.state()

    @property
    def position(self) -> int | None:
        """How many bytes of the file have been read, ``None`` while it is not open; for the thread that reads."""
        if self._file is None:
            return None
        return self._file.tell() if self.share_read is None else int(self.size * self.share_read)

    def changed(self) -> InputError:
        """Return the error for a file that changed."""
        return disk.changed(self.name)

    def check_unchanged(self) -> None:
        """Refuse a file that changed since it was opened, before an error about one of its lines."""
        with suppress(FileNotFoundError):
            self._source.check_unchanged()

    def check_plain(self, start: bytes) -> None:
        """Refuse a file whose first bytes show that it is compressed, where none is expected."""
        found = None if self.packed else compression.recognised(start)
        if found is not None:
            raise InputError(self.name, "it is compressed; give " + Parameter("format", f"{self._format}.{found}"))

    def _is_plain(self) -> bool:
        """Tell whether the first bytes of the file are those of no compressed file."""
        with suppress(OSError), self._source.opened() as file:
            start = file.read(COMPRESSED_START)
            return len(start) == COMPRESSED_START and compression.recognised(start) is None
        return False

    def damaged(self, error: compression.DamagedError, line: int = 0) -> InputError:
        """Return the error for a corrupt compressed file, of which the lines up to `line` can be read."""
        if not line and not error.at and self._is_plain():
            remedy = "give " + Parameter("format", self._format) if self._format else message("rename it")
            return InputError(self.name, "it is not compressed, in spite of its name; " + remedy)
        after = f", line {line} is the last that can be read" if line else ""
        return InputError(self.name, f"{compression.corrupt(self.packed, error)}{after}; create it anew")


def joined(read: Callable[[int, int], bytes], begins: Array, ends: Array) -> bytes:
    """Return the bytes of ranges, one after the other; `read` returns bytes by their number and place.

    Ranges with `MAX_GAP` bytes or fewer between them are read together, if they begin in the same `MAX_READ` bytes.

    Raises
    ------
    EOFError
        If the file ends before the ranges do.
    """
    pieces: list[bytes] = []
    is_apart = (begins[1:] - ends[:-1] > MAX_GAP) | (begins[1:] // MAX_READ > begins[:-1] // MAX_READ)
    for first, stop in pairwise([0, *(np.flatnonzero(is_apart) + 1).tolist(), len(begins)]):
        begin = int(begins[first])
        data = read(int(ends[stop - 1]) - begin, begin)
        if len(data) < ends[stop - 1] - begin:
            raise EOFError
        if stop - first == 1:
            pieces.append(data)
        else:
            bounds = map(slice, (begins[first:stop] - begin).tolist(), (ends[first:stop] - begin).tolist())
            pieces += map(data.__getitem__, bounds)
    return b"".join(pieces)


def _skipping(file: IO[bytes]) -> Callable[[int, int], bytes]:
    """Return a function that reads bytes of an unpacked file by their number and place; the places ascend."""
    at = 0

    def read(size: int, begin: int) -> bytes:
        nonlocal at
        while at < begin and (skipped := file.read(min(begin - at, BUFFER))):
            at += len(skipped)
        data = file.read(size)
        at += len(data)
        return data

    return read


def content(path: str) -> bytes:
    """Return the bytes of a file, unpacked by the ending of its name, or of standard input.

    Raises
    ------
    InputError
        If its compression is corrupt, or its name does not say that it is compressed.
    """
    named = urls.file_name(path)
    file = Input(urls.local(path), compression.of_path(named))
    with closing(file), file.opened() as opened:
        try:
            data = opened.read()
        except compression.DamagedError as error:
            raise file.damaged(error) from error
    packed = compression.recognised(data) if compression.of_path(named) == "" else None
    if packed is not None:
        raise InputError(file.name, f"it is compressed by {compression.NAMES[packed]}; unpack it or name it *.{packed}")
    return data
