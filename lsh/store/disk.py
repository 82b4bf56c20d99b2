"""The operations by which an index changes files: create, append, write, sync, rename, remove.

All writing of an index passes through a `Disk`. The tests replace it by one whose operations fail, or which forgets
what was not synced. Reading does not pass through it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from lsh.base import file_io

# Seconds between the attempts to rename a file. Elsewhere than on Windows a rejected renaming is final.
RENAME_WAITS = (0.01, 0.03, 0.1, 0.3, 1.0) if os.name == "nt" else ()
FULL = errno.ENOSPC, errno.EDQUOT  # errors of a disk, or a share of it, that is full


class DiskFile:
    """An open file of a `Disk`; it is written at its end, or at a given offset."""

    def __init__(self, descriptor: int, size: int, path: str) -> None:
        self._descriptor, self.size, self._path = descriptor, size, path

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Name the file in errors; the functions of the system know only its descriptor."""
        try:
            yield
        except OSError as error:
            error.filename = self._path
            if error.errno in FULL:
                error.strerror = f"{os.strerror(error.errno)}; free space and try again"
            raise

    def write(self, data: Any) -> None:
        """Append all of the data."""
        self.size += self._write_at(data, self.size)

    def overwrite(self, data: Any, offset: int) -> None:
        """Write the data at an offset."""
        self._write_at(data, offset)

    def _write_at(self, data: Any, offset: int) -> int:
        view = memoryview(data).cast("B") if memoryview(data).nbytes else memoryview(b"")
        done = 0
        with self._named():
            while done < len(view):
                done += self._write_some(view[done:], offset + done)
        return done

    def _write_some(self, data: memoryview, offset: int) -> int:
        """Write some of the data, and return how many bytes were written."""
        return file_io.write_at(self._descriptor, data, offset)

    def cut(self, size: int) -> None:
        """Reduce the file to a size."""
        with self._named():
            os.ftruncate(self._descriptor, size)
        self.size = size

    def sync(self) -> None:
        """Return when the content of the file is on the disk."""
        if sys.platform == "darwin":
            import fcntl

            with contextlib.suppress(OSError):  # not every file system has it
                fcntl.fcntl(self._descriptor, fcntl.F_FULLFSYNC)
                return
        with self._named():
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file; it may be closed already."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class Disk:
    """The file system as an index uses it for writing."""

    def create(self, path: str) -> DiskFile:
        """Create a file; an error if it exists."""
        return self._opened(path, os.O_CREAT | os.O_EXCL)

    def open(self, path: str) -> DiskFile:
        """Open a file to write at its end."""
        return self._opened(path, 0)

    def _opened(self, path: str, flags: int) -> DiskFile:
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | flags, 0o666)
        return DiskFile(descriptor, os.fstat(descriptor).st_size, path)

    def rename(self, source: str, target: str) -> None:
        """Rename a file, in place of any file that has the new name."""
        for wait in RENAME_WAITS:
            with contextlib.suppress(PermissionError):  # Windows, while another process reads the old file
                os.replace(source, target)
                return
            time.sleep(wait)
        os.replace(source, target)

    def remove(self, path: str) -> None:
        """Remove a file."""
        os.remove(path)

    def sync_folder(self, path: str) -> None:
        """Return when the names in a folder are on the disk."""
        if os.name == "nt":  # cannot open folders
            return
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_file(disk: Disk, path: str, data: Any) -> None:
    """Create a file with this content, and sync it; a file that cannot be completed is removed."""
    file = disk.create(path)
    try:
        file.write(data)
        file.sync()
    except BaseException:
        file.close()
        with contextlib.suppress(OSError):
            disk.remove(path)
        raise
    file.close()
