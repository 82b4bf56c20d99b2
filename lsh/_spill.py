"""Arrays within a bound of memory: what does not fit lies in mapped temporary files, which no longer have a name.

A file that has no name is gone with the process, however that ends. Its space is taken at once, so that a full disk is
an error here and not a signal in the middle of the work.
"""

from __future__ import annotations

import contextlib
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

MIN_FILE = 1 << 18  # bytes of an array that is worth a file
MIN_HUGE_PAGES = 1 << 22  # bytes of an array for which large pages are asked: to hand out small ones takes a while
_UNITS = {"": 1, "B": 1}
_UNITS |= {unit + end: 1000**power for power, unit in enumerate("KMGT", 1) for end in ("", "B")}
_UNITS |= {unit + end: 1024**power for power, unit in enumerate("KMGT", 1) for end in ("I", "IB")}
_SIZE = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([A-Za-z]{0,3})\s*")


def memory_size(name: str, value: object, least: int = 1) -> int | None:
    """Return a number of bytes: a whole number, or text such as ``"2GB"`` or ``"500 MiB"``; ``None`` stays."""
    if value is None:
        return None
    if isinstance(value, str):
        match = _SIZE.fullmatch(value)
        if match is None or match[2].upper() not in _UNITS:
            raise ValueError(f"{name} must be a number of bytes, or look like '2GB' or '500MiB', got {value!r}")
        number = int(float(match[1]) * _UNITS[match[2].upper()])
        if number < least:
            bound = "1 byte" if least == 1 else size(least)
            raise ValueError(f"{name} must be {bound} or more, got {value!r}; give a size such as '500MB' or '2GB'")
        return number
    return _checks.whole_number(name, value, least)


@contextlib.contextmanager
def temporary_errors(purpose: str, num_bytes: int | None = None) -> Iterator[None]:
    """Let an error of temporary files name their folder, what they are for, and what moves them.

    Parameters
    ----------
    purpose : str
        What needs the files.
    num_bytes : int, optional
        Of the files, where it is known.
    """
    try:
        yield
    except OSError as error:
        import tempfile

        needed = "temporary files" if num_bytes is None else f"{num_bytes:,} bytes of temporary files"
        problem = f"{purpose} needs {needed}: {error.strerror}; set TMPDIR to another folder"
        raise OSError(error.errno, problem, tempfile.tempdir) from error


class Spill:
    """Gives arrays, in memory as long as they take less than half of a bound together: the rest is for work on them.

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
        """Return an array whose content may be anything.

        Raises
        ------
        OSError
            If there is no room in the folder for temporary files.
        """
        dtype = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if size < MIN_FILE:
            return np.empty(shape, dtype)
        if self._has_room(size):
            mapped = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE)  # a heap would keep what is given back
            if size >= MIN_HUGE_PAGES:
                _advise(mapped, "MADV_HUGEPAGE")
            if self.is_bounded:
                self._held.add(mapped)
        else:
            mapped = self.file(size)
            self._files.add(mapped)
        return np.frombuffer(mapped, dtype).reshape(shape)

    def keep(self, array: Array) -> Array:
        """Return an array of the same content, which lies in a file where there is no room for it."""
        if not self.is_bounded:
            return array
        kept = self.array(array.shape, array.dtype)
        kept[...] = array
        return kept

    def _has_room(self, size: int) -> bool:
        return self._most is None or size + sum(map(len, self._held.alive())) <= self._most

    def rows(self, count: int, length: int, dtype: DTypeLike) -> list[Array]:
        """Return `count` arrays, of which each can be given back by itself as long as they are in memory."""
        size = count * length * np.dtype(dtype).itemsize
        if not self._has_room(size):
            return list(self.array((count, length), dtype))  # one file
        return [self.array(length, dtype) for _ in range(count)]

    @staticmethod
    def file(size: int) -> mmap.mmap:
        """Return a temporary file of `size` bytes, mapped."""
        import tempfile  # with what it imports a tenth of the time that `import lsh` would take

        with temporary_errors("max_memory", size), tempfile.TemporaryFile(prefix="lsh-") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
            return mmap.mmap(file.fileno(), size)

    def expect_leaps(self) -> None:
        """Prepare what lies in files for being read here and there: a page at a time, not its neighbours with it."""
        for mapped in self._files.alive():
            _advise(mapped, "MADV_RANDOM")

    def release(self) -> float:
        """Let the system take back the memory of what lies in files, where it is much; it is read again when used.

        Returns
        -------
        float
            The bytes that it was.
        """
        if self._most is None:
            return 0.0
        size = _mapped_memory()
        if size > self._most // 4:
            for mapped in self._files.alive():
                _advise(mapped, "MADV_DONTNEED")
        return size

    def paced(self, step: int, most: int) -> int:
        """Release, and return how much to do before the next time: half of `step` where that touched much of the files.

        A page that is looked up brings its neighbours into memory, so that a thousand lookups may bring all.
        """
        much = self._most is not None and self.release() > self._most // 2
        return max(step // 2, most // 16) if much else min(2 * step, most)


class _Maps:
    """Maps, as long as something else holds them: no callback, in which an interrupt would get lost."""

    def __init__(self) -> None:
        self._known: list[weakref.ref[mmap.mmap]] = []

    def add(self, mapped: mmap.mmap) -> None:
        self._known = [known for known in self._known if known() is not None]
        self._known.append(weakref.ref(mapped))

    def alive(self) -> list[mmap.mmap]:
        return [mapped for known in self._known if (mapped := known()) is not None]


def _mapped_memory() -> float:
    """Return the bytes of files that are in the memory of the process; infinity where the system does not tell."""
    with contextlib.suppress(OSError), open("/proc/self/statm", "rb") as state:  # Linux
        return int(state.read().split()[2]) * mmap.PAGESIZE
    return float("inf")


def _advise(mapped: mmap.mmap, advice: str) -> None:
    """Call madvise; ignored where unsupported."""
    with contextlib.suppress(OSError, AttributeError):
        mapped.madvise(getattr(mmap, advice))
