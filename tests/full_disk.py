"""A simulated disk that is full after a given number of bytes, for tests of safe writing."""

import errno
import io
import os
from typing import Any

import pytest

from lsh.storage import disk


class Full:
    """A file whose writes fail with ENOSPC after a given number of bytes."""

    def __init__(self, file: Any, room: int) -> None:
        self._file, self._room = file, room

    def write(self, data: Any) -> int:
        self._room -= len(data)
        if self._room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._file.write(data)

    def fileno(self) -> int:
        raise io.UnsupportedOperation  # else the kernel would copy to the file itself

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def full_disk(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Make the disk full after `room` bytes of a target."""

    def opened(path: Any, mode: str = "r", *more: Any, **named: Any) -> Any:
        file = open(path, mode, *more, **named)  # noqa: SIM115 - closed by the caller
        return Full(file, room) if "x" in mode else file

    monkeypatch.setattr(disk, "open", opened, raising=False)
