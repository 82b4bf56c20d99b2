"""Read and write files at given places, by their descriptors, from several threads; also on Windows.

Windows has no ``pread`` and no ``pwrite``. There a lock is held while the position of a file is moved and used.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

LOCKED = 1 << 40  # the place of the byte that Windows locks: after the content, which others may read

_lock = threading.Lock()


def read_at(descriptor: int, size: int, place: int) -> bytes:
    """Return bytes of a file, fewer than `size` only at its end; its position moves behind them."""
    data = _read_some(descriptor, size, place)
    while data and len(data) < size and (more := _read_some(descriptor, size - len(data), place + len(data))):
        data += more  # a system reads at most about 2 GB at once
    return data


def _read_some(descriptor: int, size: int, place: int) -> bytes:
    if hasattr(os, "pread"):
        data = os.pread(descriptor, size, place)
        os.lseek(descriptor, place + len(data), os.SEEK_SET)
        return data
    with _lock:
        os.lseek(descriptor, place, os.SEEK_SET)
        return os.read(descriptor, size)


def read_into(descriptor: int, buffer: memoryview, place: int) -> int:
    """Read bytes of a file into a buffer; return how many were read, 0 at the end of the file."""
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [buffer], place)
    data = read_at(descriptor, len(buffer), place)
    buffer[: len(data)] = data
    return len(data)


def write_at(descriptor: int, data: Any, place: int) -> int:
    """Write bytes to a file; return how many were written."""
    if hasattr(os, "pwrite"):
        return os.pwrite(descriptor, data, place)
    with _lock:
        os.lseek(descriptor, place, os.SEEK_SET)
        return os.write(descriptor, data)


def try_lock(descriptor: int) -> bool:
    """Lock a file until it is closed or the process ends; return False if another one has locked it."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, LOCKED, os.SEEK_SET)
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
