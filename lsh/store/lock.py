"""The lock of the writer: a lock of the operating system on a file, which ends with the process."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from typing import Any

from lsh.store import file_format

OFFSET = 1 << 30  # of the byte that Windows locks: after the content, which others may read


class IndexLockedError(OSError):
    """Another writer has the index open. The message names its process."""

    __module__ = "lsh.index"  # where it is public
    reason = ""  # the message without its remedy, which is for programs


def _try_lock(descriptor: int) -> bool:
    """Lock the file; return False if another one has locked it."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, OFFSET, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class WriterLock:
    """The lock of an index, held until it is released or the process ends."""

    def __init__(self, folder: str) -> None:
        self._path = path = os.path.join(folder, file_format.LOCK)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        flags |= getattr(os, "O_NOFOLLOW", 0)  # the file is overwritten: not that to which a link leads
        self._descriptor = os.open(path, flags, 0o666)
        try:
            if not _try_lock(self._descriptor):
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
