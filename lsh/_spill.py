"""Arrays within a limit of memory: arrays beyond it are mapped from temporary files that have no name.

A file without a name disappears with the process, however the process ends. Its space is allocated when it is created,
so that a full disk is an error here, not a SIGBUS later.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import re
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from lsh import _checks
from lsh._words import size

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

Array = np.ndarray[Any, Any]

MIN_MEMORY = 100_000  # bytes; a smaller limit is most likely a size without its unit
MIN_FILE = 1 << 18  # bytes; smaller arrays are not put into files
MIN_HUGE_PAGES = 1 << 22  # bytes; larger arrays ask for huge pages, which are allocated faster
_UNITS = {"": 1, "B": 1}
_UNITS |= {unit + end: 1000**power for power, unit in enumerate("KMGT", 1) for end in ("", "B")}
_UNITS |= {unit + end: 1024**power for power, unit in enumerate("KMGT", 1) for end in ("I", "IB")}
_SIZE = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([A-Za-z]{0,3})\s*")


def memory_size(name: str, value: object) -> int | None:
    """Return a limit of memory in bytes, given as a number or as text such as ``"2GB"``; ``None`` stays ``None``.

    Where there is a limit, TMPDIR is checked, so that a bad folder is an error before the work.
    """
    if value is None:
        return None
    if isinstance(value, str):
        match = _SIZE.fullmatch(value)
        if match is None or match[2].upper() not in _UNITS:
            raise ValueError(f"{name} must be a number of bytes, or look like '2GB' or '500MiB', got {value!r}")
        number = int(float(match[1]) * _UNITS[match[2].upper()])
    else:
        number = _checks.whole_number(name, value, 1)
    if number < MIN_MEMORY:
        raise ValueError(
            f"{name} must be {size(MIN_MEMORY)} or more, got {value!r}; give a size such as '500MB' or '2GB'"
        )
    check_temporary_folder()
    return number


def check_temporary_folder() -> None:
    """Raise OSError if TMPDIR is set and no folder that can be written to: `tempfile` would use another folder."""
    folder = os.environ.get("TMPDIR")
    if folder and not (os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)):
        code = errno.EACCES if os.path.isdir(folder) else errno.ENOENT
        raise OSError(code, "TMPDIR must name a folder that can be written to; correct it or unset it", folder)


@contextlib.contextmanager
def temporary_errors(purpose: str, num_bytes: int | None = None) -> Iterator[None]:
    """Put the folder of temporary files, their purpose and TMPDIR into errors of the system.

    Parameters
    ----------
    purpose : str
        What the files are for.
    num_bytes : int, optional
        Of the files, where it is known.
    """
    check_temporary_folder()
    try:
        yield
    except OSError as error:
        import tempfile

        needed = "temporary files" if num_bytes is None else f"{num_bytes:,} bytes of temporary files"
        remedy = "close files" if error.errno in (errno.EMFILE, errno.ENFILE) else "set TMPDIR to another folder"
        problem = f"{purpose} needs {needed}: {error.strerror}; {remedy}"
        raise OSError(error.errno, problem, tempfile.tempdir) from error


class Spill:
    """Creates arrays: in memory while together they take less than half of a bound, else in files.

    The other half of the bound is for work on them.

    Parameters
    ----------
    bound : int or None
        Bytes; ``None``: no bound.
    """

    def __init__(self, bound: int | None = None) -> None:
        self._most = None if bound is None else bound // 2
        self._held = _Maps()
        self._files = _Maps()

    @property
    def is_bounded(self) -> bool:
        """Whether there is a bound."""
        return self._most is not None

    def array(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an uninitialized array.

        Raises
        ------
        OSError
            If the folder for temporary files is full.
        """
        dtype = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if size < MIN_FILE:
            return np.empty(shape, dtype)
        if self._has_room(size):
            mapped = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE)  # the heap would not return freed memory to the system
            if size >= MIN_HUGE_PAGES:
                _advise(mapped, "MADV_HUGEPAGE")
            if self.is_bounded:
                self._held.add(mapped)
        else:
            mapped = self.file(size)
            self._files.add(mapped)
        return np.frombuffer(mapped, dtype).reshape(shape)

    def keep(self, array: Array) -> Array:
        """Return the array, or under a bound a copy of it from `array`."""
        if not self.is_bounded:
            return array
        kept = self.array(array.shape, array.dtype)
        kept[...] = array
        return kept

    def _has_room(self, size: int) -> bool:
        return self._most is None or size + sum(map(len, self._held.alive())) <= self._most

    def rows(self, count: int, length: int, dtype: DTypeLike) -> list[Array]:
        """Return `count` arrays; while they are in memory, each can be freed by itself."""
        size = count * length * np.dtype(dtype).itemsize
        if not self._has_room(size):
            return list(self.array((count, length), dtype))  # one file
        return [self.array(length, dtype) for _ in range(count)]

    @staticmethod
    def file(size: int) -> mmap.mmap:
        """Return a temporary file of `size` bytes, mapped."""
        import tempfile  # slow to import

        with temporary_errors("max_memory", size), tempfile.TemporaryFile(prefix="lsh-") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
            return mmap.mmap(file.fileno(), size)

    def expect_leaps(self) -> None:
        """Prepare files for random access: the system then reads single pages, without read-ahead."""
        for mapped in self._files.alive():
            _advise(mapped, "MADV_RANDOM")

    def release(self) -> float:
        """Release the memory of mapped files if they take much of it; pages are read again when they are used.

        Returns
        -------
        float
            The bytes that mapped files took.
        """
        if self._most is None:
            return 0.0
        size = _mapped_memory()
        if size > self._most // 4:
            for mapped in self._files.alive():
                _advise(mapped, "MADV_DONTNEED")
        return size

    def paced(self, step: int, most: int) -> int:
        """Release memory, and return the next step: half of `step` if files took much memory, else twice as much.

        A page that is looked up brings its neighbours into memory, so that a thousand lookups may load a whole file.
        """
        much = self._most is not None and self.release() > self._most // 2
        return max(step // 2, most // 16) if much else min(2 * step, most)


class _Maps:
    """Weak references to maps, without callbacks: an exception of a signal would be lost in a callback."""

    def __init__(self) -> None:
        self._known: list[weakref.ref[mmap.mmap]] = []

    def add(self, mapped: mmap.mmap) -> None:
        self._known = [known for known in self._known if known() is not None]
        self._known.append(weakref.ref(mapped))

    def alive(self) -> list[mmap.mmap]:
        return [mapped for known in self._known if (mapped := known()) is not None]


def _mapped_memory() -> float:
    """Return the bytes of mapped files in memory; infinity where the system does not report them."""
    with contextlib.suppress(OSError), open("/proc/self/statm", "rb") as state:  # Linux
        return int(state.read().split()[2]) * mmap.PAGESIZE
    return float("inf")


def _advise(mapped: mmap.mmap, advice: str) -> None:
    """Call madvise; ignored where unsupported."""
    with contextlib.suppress(OSError, AttributeError):
        mapped.madvise(getattr(mmap, advice))
