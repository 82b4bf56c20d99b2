"""The files of an index: all writing of them, and the lock of the writer.

An index creates, appends, writes, syncs, renames and removes files through a `Disk` only. The tests replace it by one
whose operations fail, or which forgets what was not synced. Reading does not pass through it. The lock is a lock of the
operating system on a file, which ends with the process.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

from lsh.base import file_io
from lsh.segments import file_format

# Seconds between the attempts to rename a file. Elsewhere than on Windows a rejected renaming is final.
RENAME_WAITS = (0.01, 0.03, 0.1, 0.3, 1.0) if os.name == "nt" else ()
FULL = errno.ENOSPC, errno.EDQUOT  # errors of a disk, or a share of it, that is full

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")  # longer than the letter of a drive


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


# ---- the lock of the writer ----


class IndexLockedError(OSError):
    """Another writer has the index open. The message names its process."""

    __module__ = "lsh.index"  # where it is public
    reason = ""  # the message without its remedy, which is for programs


class WriterLock:
    """The lock of an index, held until it is released or the process ends."""

    def __init__(self, folder: str) -> None:
        self._path = path = os.path.join(folder, file_format.LOCK)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        flags |= getattr(os, "O_NOFOLLOW", 0)  # the file is overwritten: not that to which a link leads
        self._descriptor = os.open(path, flags, 0o666)
        try:
            if not file_io.try_lock(self._descriptor):
                raise self._locked(folder)
            with contextlib.suppress(OSError):  # such as a full disk: only the message of a second writer needs it
                self._write_holder()
        except BaseException:
            self.release()
            raise

    def _locked(self, folder: str) -> IndexLockedError:
        """Return the error that says who holds the lock, as far as it is known, and what to do."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        try:
            holder: dict[str, Any] = json.loads(os.read(self._descriptor, 4096))
            process, host, since = holder["process"], holder["host"], holder["since"]
            who = f"process {process} on {host} since {since} ({holder['command']})"
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            process, host, who = None, None, "its process is not known"
        if (process, host) == (os.getpid(), socket.gethostname()):
            reason = f"this process, or one that was forked from it, has the index {folder} open for writing already"
            remedy = "use that Index, close it first, or end the other process"
        else:
            reason = f"another writer has the index {folder} open: {who}"
            remedy = "wait until it has closed the index, or open it for reading"
        error = IndexLockedError(f"{reason}; {remedy}")
        error.reason = reason
        return error

    def _write_holder(self) -> None:
        holder = {
            "process": os.getpid(),
            "host": socket.gethostname(),
            "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "command": " ".join(getattr(sys, "argv", None) or ["python"])[:1000],
        }
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.write(self._descriptor, json.dumps(holder).encode())

    def is_in_place(self) -> bool:
        """Tell whether the file is still that of the folder: else another index may be there, with its own writer."""
        try:
            found = os.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        own = os.fstat(self._descriptor)
        return (own.st_dev, own.st_ino) == (found.st_dev, found.st_ino)

    def release(self) -> None:
        """Release the lock; in a forked process this only closes its copy."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


# ---- the folder of an index ----


def folder_of(path: str | os.PathLike[str]) -> str:
    """Return the folder of an index as an absolute path."""
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise TypeError(f"path must be a str or a path, got {type(path).__name__}") from None
    if not name:
        raise ValueError("path must be the folder of an index, got an empty path")
    if URL.match(name):  # which may have a password
        raise ValueError("path must be a folder on this machine, got a URL; copy the index and give its path")
    return os.path.abspath(name)


def made_folders(folder: str) -> list[str]:
    """Make the folder of a new index, and return the folders in which one was made.

    An error if it has other files than those of an index that was not finished.
    """
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise FileExistsError(f"{folder} is a file; create the index in a new folder")
    parents, missing = [], folder
    while not os.path.isdir(missing) and os.path.dirname(missing) != missing:
        missing = os.path.dirname(missing)
        parents.append(missing)
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        if name == file_format.MANIFEST:
            raise FileExistsError(f"there is an index in {folder}; use Index.open, or another folder")
        if name not in (file_format.LOCK, file_format.NEW_MANIFEST) and not _is_new_log(folder, name):
            raise FileExistsError(f"{folder} is not empty; create the index in a new folder")
    return parents


def _is_new_log(folder: str, name: str) -> bool:
    """Tell whether a file is the log of an index that was not finished: a header, or what a crash left of it.

    A writer deletes files with such names. Others may be log files of another program, such as log-20240229, or belong
    to an index that has lost its manifest.
    """
    if file_format.file_number("log", name) is None:
        return False
    path, size = os.path.join(folder, name), file_format.LOG_HEADER.itemsize
    if not os.path.isfile(path) or os.path.getsize(path) > size:
        return False
    with open(path, "rb") as file:
        return file_format.LOG_MAGIC.startswith(file.read(len(file_format.LOG_MAGIC)).rstrip(b"\0"))
