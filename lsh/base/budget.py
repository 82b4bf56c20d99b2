"""Arrays and columns within a limit of memory; data beyond the limit is in temporary files that have no name.

Data is appended to a `SpilledColumn` and read in order. Beyond the limit, a column is written and read with system
calls, and only one buffer of it is in memory. An array has random access. Beyond the limit, it is mapped from a file;
its space is allocated when it is created, so that a full disk is an error here, not a SIGBUS later. A file without a
name disappears with the process, however the process ends.
"""

from __future__ import annotations

import contextlib
import errno
import io
import mmap
import os
import re
import threading
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from lsh.base import checks, errors, file_io, threads
from lsh.base.arrays import Array

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

MAX_DOCUMENTS = 2**31 - 1  # of a run: their numbers are int32
LEAST_BYTES = 24  # per document of a run: state, a part of the keys of a band, and documents in a link
PURPOSE = errors.Parameter("max_memory")  # of temporary files
MIN_MEMORY = 100_000  # bytes; a smaller limit is most likely a size without its unit
MIN_FILE = 1 << 18  # bytes; smaller arrays are not put into files
CHUNK = 1 << 19  # bytes of a column that are written or read at once
MAX_CHUNK = 1 << 23  # bytes; without a bound the chunks of a column grow with it, if its size is not known
MIN_ROWS = 1 << 10  # rows of the first chunk of a column
MAX_COLUMN_FILES = 64  # more columns share files
WATCH_SECONDS = 0.003  # between two releases; threads can load 50 MB of mapped files in this time
IDLE_SECONDS = 0.05  # the same, while there are no mapped files
WRITTEN = 1 << 16  # bytes of a mapped file that are written at once: later, one access loads this many, not 2 MB
MIN_HUGE_PAGES = 1 << 22  # bytes; larger arrays ask for huge pages, which are allocated faster
_UNITS = {"": 1, "B": 1}
_UNITS |= {unit + end: 1000**power for power, unit in enumerate("KMGT", 1) for end in ("", "B")}
_UNITS |= {unit + end: 1024**power for power, unit in enumerate("KMGT", 1) for end in ("I", "IB")}
_SIZE = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([A-Za-z]{0,3})\s*")


def memory_size(value: object) -> int | None:
    """Return `max_memory` in bytes, given as a number or as text such as ``"2GB"``; ``None`` stays ``None``."""
    if value is None:
        return None
    if isinstance(value, str):
        match = _SIZE.fullmatch(value)
        if match is None or match[2].upper() not in _UNITS:
            reason = f"must be a number of bytes, or look like '2GB' or '500MiB', got {value!r}"
            raise errors.bad_value("max_memory", reason)
        number = int(float(match[1]) * _UNITS[match[2].upper()])
    else:
        number = checks.whole_number("max_memory", value, None)
    if number < MIN_MEMORY:
        least = size_argument(MIN_MEMORY)
        reason = f"must be {least} or more, got {value!r}; give a size such as '500MB' or '2GB'"
        raise errors.bad_value("max_memory", reason)
    return number


def temporary_folder(value: object) -> str | None:
    """Return `temp_dir` as `str`, checked; ``None`` stays ``None``, and then TMPDIR is checked."""
    if value is not None and not isinstance(value, (str, os.PathLike)):
        raise errors.bad_type("temp_dir", f"must be the path of a folder, got {type(value).__name__}")
    folder = None if value is None else os.fsdecode(os.fspath(value))
    check_temporary_folder(folder)
    return folder


def bounded(max_memory: object, temp_dir: object) -> MemoryBudget:
    """Return the budget for a limit of memory and a folder, both checked. Without a limit, TMPDIR is not checked."""
    size = memory_size(max_memory)
    return MemoryBudget(size, None if size is temp_dir is None else temporary_folder(temp_dir))


def size_argument(number: int) -> str:
    """Return a size in a form that `memory_size` reads, rounded up: in megabytes, or kilobytes below one megabyte."""
    unit, name = (10**6, "MB") if number >= 10**6 else (1000, "KB")
    return f"{-(-number // unit)}{name}"


def bound_error(bound: int, count: int, each: int, expected: int | None, growing: bool) -> ValueError:
    """Return the error for a bound that is too small for `count` documents, of which there may be more if `growing`."""
    documents = f"{count:,} documents"
    documents = f"{f'the {documents} read so far' if growing else documents}, {each} bytes each"
    if growing and expected is not None and expected > count:
        documents += f", and about {size_argument(expected * each)} for all"
    problem = f"must be {size_argument(count * each)} or more for {documents}"
    return errors.bad_value("max_memory", f"{problem}, got {bound:,} bytes")


def check_temporary_folder(folder: str | None) -> None:
    """Raise OSError if `folder`, or else TMPDIR, is set and cannot be written to: `tempfile` would use another one."""
    name = "temp_dir"
    if folder is None:
        folder, name = os.environ.get("TMPDIR"), "TMPDIR"
    if folder == "" and name != "TMPDIR":
        raise errors.bad_value(name, "must be the path of a folder, got an empty text")
    if folder and not (os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)):
        code = errno.EACCES if os.path.isdir(folder) else errno.ENOTDIR if os.path.exists(folder) else errno.ENOENT
        remedy = "correct it or unset it" if name == "TMPDIR" else "name another folder"
        if folder.startswith("~") and code == errno.ENOENT:
            remedy = f"write {os.path.expanduser(folder)}, as ~ is not replaced"
        problem = errors.Parameter(name) + f" must name a folder that can be written to; {remedy}"
        raise errors.saying(OSError(code, str(problem), folder), problem)


@contextlib.contextmanager
def temporary_errors(purpose: errors.Words, num_bytes: int | None = None, folder: str | None = None) -> Iterator[None]:
    """Put the folder of temporary files, their purpose and the remedy into errors of the system.

    Parameters
    ----------
    purpose : str, Parameter or Message
        What the files are for, such as a parameter.
    num_bytes : int, optional
        Of the files, where it is known.
    folder : str, optional
        The folder. Default: TMPDIR, or the folder of the system.
    """
    check_temporary_folder(folder)
    try:
        yield
    except OSError as error:
        import tempfile

        needed = "temporary files" if num_bytes is None else f"{num_bytes:,} bytes of temporary files"
        setting = errors.message("TMPDIR") if folder is None else errors.message(errors.Parameter("temp_dir"))
        place = "set " + setting + " to another folder"
        if error.errno in (errno.EMFILE, errno.ENFILE):
            place = errors.message("close files, or raise their limit (ulimit -n)")
        elif error.errno == errno.EFBIG:
            place = errors.message("raise the limit of their size (ulimit -f)")
        problem = errors.message(purpose) + f" needs {needed}: {error.strerror}; " + place
        failed = OSError(error.errno, str(problem), tempfile.tempdir if folder is None else folder)
        try:
            raise errors.saying(failed, problem) from error
        finally:
            del failed  # else its traceback, with all arrays and files of the run, would be in a cycle


class MemoryBudget:
    """Creates arrays and columns, in memory or in temporary files.

    Those in memory take at most half of the bound, and less if other data needs more than the other half (`reserve`).

    Parameters
    ----------
    bound : int or None
        Bytes; ``None``: no bound.
    folder : str or None
        For temporary files; ``None``: TMPDIR, or the folder of the system.
    """

    def __init__(self, bound: int | None = None, folder: str | None = None) -> None:
        self.bound, self.folder = bound, folder
        self._most = None if bound is None else bound // 2
        self._reserved = 0
        self._held = _Maps()
        self._files = _Maps()
        self._columns: list[weakref.ref[SpilledColumn]] = []
        self._column_files: list[weakref.ref[_File]] = []
        self._num_column_files = 0
        self._lock = threading.RLock()  # of the lists; columns may be appended to in threads, each in one

    @property
    def is_bounded(self) -> bool:
        """Whether there is a bound."""
        return self._most is not None

    @property
    def has_files(self) -> bool:
        """Whether an array is mapped from a file."""
        return bool(self._files.alive())

    def array(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an uninitialized array.

        Raises
        ------
        OSError
            If the folder for temporary files is full.
        """
        dtype = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return np.empty(shape, dtype) if size < MIN_FILE else self._map(size)[0].view(dtype).reshape(shape)

    def bytes_to_fill(self, size: int) -> tuple[Array, Callable[[int, Array], object]]:
        """Return an uninitialized array of bytes, and a function that writes bytes to it from a place on.

        In a file this is faster than writing to the array, which loads each page.
        """
        array, file = self._map(size) if size >= MIN_FILE else (np.empty(size, np.uint8), None)

        def write(at: int, data: Array) -> None:
            if file is None:
                array[at : at + len(data)] = data
                return
            for start in range(0, len(data), WRITTEN):
                file.write(at + start, data[start : start + WRITTEN])

        return array, write

    def _map(self, size: int) -> tuple[Array, _File | None]:
        """Return an array of bytes that is mapped, and its file if it is not in memory."""
        file = None
        if self.has_room(size):
            mapped = _anonymous(size)
            if self.is_bounded:
                self._held.add(mapped)
        else:
            file = _File(self.folder)
            mapped = file.mapped(size)
            self._files.add(mapped)
        return np.frombuffer(mapped, np.uint8), file

    def column(
        self, dtype: DTypeLike, width: int | None = None, expected: int | None = None, chunk: int = CHUNK
    ) -> SpilledColumn:
        """Return an empty column of numbers, or of rows of `width` numbers; see `SpilledColumn`."""
        column = SpilledColumn(self, dtype, width, expected, min(chunk, CHUNK))
        with self._lock:
            self._columns = [known for known in self._columns if known() is not None]
            self._columns.append(weakref.ref(column))
        return column

    def has_room(self, size: int) -> bool:
        """Return whether an array or a column can take `size` more bytes of memory."""
        return self._most is None or size + self.held <= self._most

    @property
    def held(self) -> int:
        """The bytes that arrays and columns take in memory; 0 without a bound, where they are not counted."""
        if self._most is None:
            return 0
        with self._lock:
            columns = [known() for known in self._columns]
        return sum(map(len, self._held.alive())) + sum(column.held for column in columns if column is not None)

    def check_space(self, size: int) -> None:
        """Raise OSError if the folder has too little free space for columns of `size` bytes in all.

        The part of them that fits into memory is not counted.
        """
        if self._most is None or size <= self._most:
            return
        import shutil
        import tempfile

        folder = tempfile.gettempdir() if self.folder is None else self.folder
        needed = size - self._most
        with temporary_errors(PURPOSE, needed, self.folder):
            free = shutil.disk_usage(folder).free
            if free < needed:
                raise OSError(errno.ENOSPC, f"{free:,} bytes are free")

    @property
    def free(self) -> int:
        """The bytes that arrays and columns can still take in memory under the bound; at least 0."""
        return max((self._most or 0) - self.held, 0)

    @property
    def room(self) -> int:
        """The bytes of the bound that are neither held by arrays and columns nor reserved; at least 0."""
        return max((self.bound or 0) - self.held - self._reserved, 0)

    def trim(self) -> None:
        """Under a bound, return free memory of the heap to the system, if the C library can (glibc).

        The heap keeps memory that was freed, up to the largest amount that was used before.
        """
        if self.is_bounded:
            import ctypes

            with contextlib.suppress(AttributeError, OSError):
                ctypes.CDLL(None).malloc_trim(0)

    def release_columns(self) -> None:
        """Write all columns to files."""
        for column in [known() for known in self._columns]:
            if column is not None:
                column.evict()

    def reserve(self, size: int) -> None:
        """Keep `size` bytes of the bound free for other data; columns move to files where necessary."""
        if self.bound is None:
            return
        self._reserved = size
        self._most = max(min(self.bound // 2, self.bound - size), 0)
        for column in [known() for known in self._columns]:
            if self.held <= self._most:
                break
            if column is not None:
                column.evict()

    @contextlib.contextmanager
    def reserved(self, size: int) -> Iterator[None]:
        """Keep `size` bytes more free within the block."""
        self.reserve(self._reserved + size)
        try:
            yield
        finally:
            self.reserve(self._reserved - size)

    def column_file(self) -> _File:
        """Return a file for a column: a new one, or one of other columns if there are many."""
        with self._lock:
            self._column_files = [known for known in self._column_files if known() is not None]
            if len(self._column_files) < MAX_COLUMN_FILES:
                file = _File(self.folder)
                self._column_files.append(weakref.ref(file))
                return file
            self._num_column_files += 1
            shared = self._column_files[self._num_column_files % MAX_COLUMN_FILES]()
        return _File(self.folder) if shared is None else shared

    def release(self) -> None:
        """Release the memory of mapped files if they take much of the bound; used pages are read again."""
        mapped, rest = _resident() if self.bound is not None and self.has_files else (0, 0)
        if self.bound is not None and mapped > max(self.bound // 8, (self.bound - rest) // 2):
            for one in self._files.alive():
                _advise(one, "MADV_DONTNEED")

    @contextlib.contextmanager
    def released(self) -> Iterator[None]:
        """Within the block, release the memory of mapped files from time to time, in a thread."""
        done = threading.Event()

        def watch() -> None:
            while not done.wait(WATCH_SECONDS if self.has_files else IDLE_SECONDS):
                self.release()

        watching = None
        try:
            if self.is_bounded:
                watching = threads.started(watch, daemon=True)
            yield
        finally:
            done.set()
            if watching is not None:
                watching.join()


class _Open(io.FileIO):
    """A file that is closed when nothing refers to it. An interrupt in a `__del__` written in Python would be lost."""

    __del__ = io.FileIO.close


class _File:
    """A temporary file that is appended to; columns may share it, also in threads."""

    def __init__(self, folder: str | None) -> None:
        import tempfile  # slow to import

        self._folder, self._size, self._lock = folder, 0, threading.Lock()
        with temporary_errors(PURPOSE, None, folder), tempfile.TemporaryFile(prefix="lsh-", dir=folder) as file:
            self._file = _Open(os.dup(file.fileno()), "rb+")

    def append(self, rows: Array) -> int:
        """Write contiguous rows at the end; return where they begin."""
        with self._lock:
            offset = self._size
            self._size += rows.nbytes
        self.write(offset, rows)
        return offset

    def write(self, at: int, rows: Array) -> None:
        """Write contiguous rows."""
        left, number = rows.reshape(-1).view(np.uint8), self._file.fileno()
        with temporary_errors(PURPOSE, None, self._folder):  # how much will be needed is not known
            while len(left):
                written = file_io.write_at(number, left.data, at)
                left, at = left[written:], at + written

    def mapped(self, size: int) -> mmap.mmap:
        """Make the file as large as `size`, and return it mapped."""
        number = self._file.fileno()
        with temporary_errors(PURPOSE, size, self._folder):
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(number, 0, size)
            else:
                os.ftruncate(number, size)
            mapped = mmap.mmap(number, size)
        _advise(mapped, "MADV_RANDOM")  # else an access loads up to 2 MB
        return mapped

    def read(self, offset: int, rows: Array) -> None:
        """Fill contiguous rows with the bytes from `offset` on."""
        left, number = rows.reshape(-1).view(np.uint8), self._file.fileno()
        while len(left):
            with temporary_errors(PURPOSE, None, self._folder):
                found = file_io.read_into(number, left.data, offset)
            if found == 0:
                raise OSError(errno.EIO, "another process has truncated a temporary file", self._folder)
            left, offset = left[found:], offset + found


class SpilledColumn:
    """An append-only column of numbers, or of rows of numbers, that is read forward or backwards.

    The rows are divided into chunks. A chunk is in memory if the bound allows it, else in a temporary file. A column
    with a file takes one buffer of memory, and each reader takes another one. Several threads may read a column at the
    same time, but not while rows are appended. Use `MemoryBudget.column` to make a column.

    Parameters
    ----------
    budget : MemoryBudget
        Has the bound.
    dtype : data type
        Of the numbers.
    width : int, optional
        The numbers in a row. Default: a row is a number.
    expected : int, optional
        How many rows there will be, if that is known.
    chunk : int, optional
        The bytes that are written at once; less than `CHUNK` where there are very many columns.

    Attributes
    ----------
    row_size : int
        The bytes of a row.
    held : int
        The bytes that the column takes of the bound.
    """

    def __init__(
        self,
        budget: MemoryBudget,
        dtype: DTypeLike,
        width: int | None = None,
        expected: int | None = None,
        chunk: int = CHUNK,
    ) -> None:
        self.dtype, self._row_shape = np.dtype(dtype), () if width is None else (width,)
        self.row_size = self.dtype.itemsize * (1 if width is None else width)
        self._budget, self._expected, self._chunk_size = budget, expected or 0, chunk
        self.free()

    def free(self) -> None:
        """Remove all rows. A file is closed when all columns that share it are freed."""
        self._file: _File | None = None
        self._chunks: list[Array | int] = []  # full ones: the rows, or where they begin in the file
        self._starts: list[int] = []  # the position of the first row of each
        self._ends = 0  # the position after the last row of the full chunks
        self._buffer, self._filled, self._is_held = self.rows(0), 0, False
        self.held = 0

    def __len__(self) -> int:
        return self._ends + self._filled

    def expect(self, count: int) -> None:
        """Note how many rows there will be, approximately, so that the next chunks are as large as that needs."""
        self._expected = count

    def rows(self, count: int) -> Array:
        """Return an uninitialized array of rows."""
        return np.empty((count, *self._row_shape), self.dtype)

    def append(self, rows: Array) -> None:
        """Append an array of rows."""
        while len(rows):
            end = self._filled + len(rows)
            if end <= len(self._buffer):
                self._buffer[self._filled : end] = rows
                self._filled = end
                return
            more = len(self._buffer) - self._filled
            self._buffer[self._filled :], self._filled = rows[:more], len(self._buffer)
            rows = rows[more:]
            self._store()
            if rows.nbytes >= self._chunk_size and not self._budget.has_room(rows.nbytes):
                self._put(self._write(np.ascontiguousarray(rows, self.dtype)), len(rows))
                return
            self._begin()

    def _begin(self) -> None:
        """Make a buffer for the next chunk."""
        size, wanted = self._chunk_size, max(self._expected - len(self), len(self), MIN_ROWS)
        if not self._budget.is_bounded:
            known, grown = self._expected - len(self), (len(self) >> 3) * self.row_size
            size = max(size, known * self.row_size if known > 0 else min(grown, MAX_CHUNK))
        count = max(1, min(wanted, size // self.row_size))
        size = count * self.row_size
        self._is_held = self._budget.has_room(size)
        if self._is_held:
            if size < MIN_FILE:
                self._buffer = self.rows(count)
            else:
                self._buffer = np.frombuffer(_anonymous(size), self.dtype).reshape(count, *self._row_shape)
            self.held += size
        elif len(self._buffer) != count:
            self._buffer = self.rows(count)

    def _store(self) -> None:
        """Put the buffer into the list of chunks, or write it to the file."""
        if self._filled:
            rows, self._filled = self._buffer[: self._filled], 0
            self._put(rows if self._is_held else self._write(rows), len(rows))
        if self._is_held:
            self._buffer = self.rows(0)

    def _put(self, chunk: Array | int, count: int) -> None:
        """Add a chunk of `count` rows to the list."""
        self._chunks.append(chunk)
        self._starts.append(self._ends)
        self._ends += count

    def _write(self, rows: Array) -> int:
        if self._file is None:
            self._file = self._budget.column_file()
        return self._file.append(rows)

    def evict(self) -> None:
        """Write all rows that are held to the file."""
        if self.held:
            self._store()
            self._chunks = [chunk if isinstance(chunk, int) else self._write(chunk) for chunk in self._chunks]
            self._buffer, self._is_held, self.held = self.rows(0), False, 0

    def chunks(self, start: int = 0, stop: int | None = None, backwards: bool = False) -> Iterator[tuple[int, Array]]:
        """Yield rows start to stop - 1 in chunks: the position of the first row of a chunk, and the rows.

        A chunk has at most `CHUNK` bytes. It is read-only and valid until the next one; it may be a buffer. With
        `backwards` the last chunk comes first; within a chunk, rows are always in order of position.
        """
        stop = len(self) if stop is None else min(stop, len(self))
        step = max(1, CHUNK // self.row_size)
        bounds = [*self._starts, self._ends] if self._filled else self._starts
        first = max(bisect_right(bounds, start) - 1, 0)
        last = bisect_right(bounds, stop - 1)
        buffer = self.rows(min(step, stop - start)) if self._file is not None and start < stop else self.rows(0)
        for number in reversed(range(first, last)) if backwards else range(first, last):
            begin, end = bounds[number], bounds[number + 1] if number + 1 < len(bounds) else len(self)
            origin, begin, end = begin, max(begin, start), min(end, stop)
            chunk = self._chunks[number] if number < len(self._chunks) else self._buffer
            starts = range(begin, end, step)
            for at in reversed(starts) if backwards else starts:
                size = min(step, end - at)
                if isinstance(chunk, int):
                    rows = buffer[:size]
                    self._read(chunk + (at - origin) * self.row_size, rows)
                else:
                    rows = chunk[at - origin : at - origin + size]
                yield at, _read_only(rows)

    def _read(self, offset: int, rows: Array) -> None:
        assert self._file is not None
        self._file.read(offset, rows)

    def read(self, start: int = 0, stop: int | None = None, out: Array | None = None) -> Array:
        """Return a copy of rows start to stop - 1, in `out` if it is given."""
        stop = len(self) if stop is None else min(stop, len(self))
        rows = self.rows(max(stop - start, 0)) if out is None else out
        for at, chunk in self.chunks(start, stop):
            rows[at - start : at - start + len(chunk)] = chunk
        return rows

    def in_one_piece(self) -> Array | None:
        """Return all rows if they lie side by side and there is no bound; they stay valid when the column is freed."""
        pieces = [*self._chunks, *([self._buffer[: self._filled]] if self._filled else [])]
        whole = pieces[0] if len(pieces) == 1 and not self._budget.is_bounded else None
        return None if isinstance(whole, int) else whole

    def take(self, positions: Array) -> Array:
        """Return the rows at some positions, which must ascend."""
        rows = self.rows(len(positions))
        bounds, done = [*self._starts, self._ends, len(self)], 0
        while done < len(positions):  # chunks without any of them are not read
            at = int(positions[done])
            end = np.array(bounds[bisect_right(bounds, at)], positions.dtype)
            some = positions[done : done + int(np.searchsorted(positions[done:], end))]
            for first, chunk in self.chunks(at, int(some[-1]) + 1):
                here = slice(*np.searchsorted(some, np.array([first, first + len(chunk)], positions.dtype)).tolist())
                rows[done + here.start : done + here.stop] = chunk[some[here] - first]
            done += len(some)
        return rows


class _Maps:
    """Weak references to maps, without callbacks: an exception of a signal would be lost in a callback."""

    def __init__(self) -> None:
        self._known: list[weakref.ref[mmap.mmap]] = []

    def add(self, mapped: mmap.mmap) -> None:
        self._known = [known for known in self._known if known() is not None]
        self._known.append(weakref.ref(mapped))

    def alive(self) -> list[mmap.mmap]:
        return [mapped for known in self._known if (mapped := known()) is not None]


def _read_only(rows: Array) -> Array:
    rows = rows.view()
    rows.flags.writeable = False
    return rows


def _anonymous(size: int) -> mmap.mmap:
    """Return memory that is returned to the system when it is freed; memory of the heap might be kept."""
    flags = {"flags": mmap.MAP_PRIVATE} if hasattr(mmap, "MAP_PRIVATE") else {}  # Windows: memory of the paging file
    try:
        mapped = mmap.mmap(-1, size, **flags)
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        raise MemoryError(f"{size:,} bytes of memory are needed and not available") from error
    if size >= MIN_HUGE_PAGES:
        _advise(mapped, "MADV_HUGEPAGE")
    return mapped


def _resident() -> tuple[float, float]:
    """Return the bytes of mapped files in memory, and of other memory; infinity if the system does not report them."""
    with contextlib.suppress(OSError), open("/proc/self/statm", "rb") as state:  # Linux
        resident, shared = map(int, state.read().split()[1:3])
        return shared * mmap.PAGESIZE, (resident - shared) * mmap.PAGESIZE
    return float("inf"), float("inf")


def _advise(mapped: mmap.mmap, advice: str) -> None:
    """Call madvise; ignored where unsupported."""
    with contextlib.suppress(OSError, AttributeError):
        mapped.madvise(getattr(mmap, advice))
