"""Files of this computer: read more than once, copied to temporary files, and written so that they appear complete.

A new file is written under a hidden name in its folder and then renamed, so an interrupted run leaves the old file.
`remote` has the same classes for URLs; `locations` chooses among them.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import IO, Any, NamedTuple

from lsh.base.budget import temporary_errors
from lsh.base.errors import InputError

BUFFER = 1 << 20  # bytes that are read at once; each read releases the GIL and has to get it back
WRITTEN = 1 << 18  # bytes that are written at once: small writes leave small pages in memory, which are slow to read
FULL = (errno.ENOSPC, errno.EDQUOT)  # errors of a disk, or a share of it, that is full
STANDARD = "-"  # the name of standard input and output


def changed(name: str) -> InputError:
    """Return the error for a file that changed."""
    return InputError(name, "it changed while it was read; run again when nothing writes to it")


# ---- reading ----


class LocalState(NamedTuple):
    """What tells that a file changed: a new file of the same size and `modified` has another `changed`.

    Programs set `modified` (``cp -p``, ``rsync -t``), but not `changed`. Numbers of inodes are not compared: FUSE may
    give a file a new one at any time.
    """

    size: int
    modified: int  # nanoseconds, when the content was written
    changed: int  # nanoseconds, when the content, the name, the permissions, the times or the links were changed

    @classmethod
    def of(cls, found: os.stat_result) -> LocalState:
        """Return the state of a file by what `os.stat` returns."""
        return cls(found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    def error(self, name: str, before: LocalState) -> InputError:
        """Return the error for a file that had another state before."""
        if self[:2] != before[:2]:
            return changed(name)
        what = "its content, name, permissions, times or links changed while it was read"
        return InputError(name, f"{what}; run again when nothing changes them")


def open_file(path: str) -> IO[bytes]:
    """Open a file for reading; a pipe in its place is an error, and not waited for."""
    file = open(path, "rb", BUFFER, opener=_at_once)  # noqa: SIM115 - the caller closes it
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise changed(path)
    return file


def _at_once(path: str, flags: int) -> int:
    """Open a file, or a pipe without waiting for a program that writes to it; for the `opener` of `open`."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def descriptor(file: IO[bytes]) -> int | None:
    """Return the descriptor of a file of the system, ``None`` for another one, such as a compressed file."""
    try:
        return file.fileno()
    except OSError:
        return None


class LocalFile:
    """A file that must not change while it is used."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._state: LocalState | None = None  # since it was opened first

    @property
    def size(self) -> int:
        """The size in bytes."""
        return os.stat(self._path).st_size if self._state is None else self._state.size

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Open the file."""
        with open_file(self._path) as file:
            self._check_state(file)
            yield file
            self._check_state(file)

    def state(self) -> tuple[Any, ...] | None:
        """Return what another run compares to tell whether the file changed; it must not change from now on."""
        if self._state is None:
            self._state = LocalState.of(os.stat(self._path))
        return self._state[:2]

    def check_unchanged(self) -> None:
        """Raise InputError if the file changed since it was opened first."""
        with open_file(self._path) as file:
            self._check_state(file)

    def _check_state(self, file: IO[bytes]) -> None:
        state = LocalState.of(os.fstat(file.fileno()))
        if self._state not in (None, state):
            raise state.error(self._path, self._state)
        self._state = state

    def close(self) -> None:
        """Do nothing: the file is closed after each reading."""


class Copy:
    """A temporary copy of a stream that can be read only once.

    Parameters
    ----------
    read : callable
        Returns the next bytes of the stream, at most as many as it is given, and none at its end.
    name : str
        Its name, for messages.
    folder : str, optional
        For the copy. Default: TMPDIR, or the folder of the system.
    """

    def __init__(self, read: Callable[[int], bytes], name: str, folder: str | None = None) -> None:
        import tempfile  # slow to import

        errors = partial(temporary_errors, f"a copy of {name}", folder=folder)
        with errors():
            self._file = tempfile.TemporaryFile(prefix="lsh-", buffering=BUFFER, dir=folder)  # noqa: SIM115
        try:
            while chunk := read(BUFFER):
                with errors():
                    self._file.write(chunk)
            with errors():
                self._file.flush()
        except BaseException as error:  # an interrupt, too
            if isinstance(error, OSError) and error.filename is None:  # of the stream
                error.filename = name
            with suppress(OSError):
                self.close()
            raise

    @property
    def size(self) -> int:
        """The size in bytes."""
        return os.fstat(self._file.fileno()).st_size

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Give the copy, at its start."""
        self._file.seek(0)
        yield self._file

    def state(self) -> tuple[Any, ...] | None:
        """Return ``None``: another run cannot read the stream."""
        return None

    def check_unchanged(self) -> None:
        """Do nothing: no other process writes to the copy."""

    def close(self) -> None:
        """Delete the copy."""
        self._file.close()


# ---- writing ----


class Direct:
    """Standard output, a pipe or a device: what is written appears at once."""

    has_folder = False
    file: Any = None

    def __init__(self, path: str) -> None:
        self._path = path

    def open(self) -> None:
        """Open it; a file, such as that of a redirected standard output, is appended to."""
        if self._path != STANDARD:
            self.file = open(self._path, "ab" if os.path.isfile(self._path) else "wb")  # noqa: SIM115
        elif sys.stdout is None:
            raise OSError("standard output is closed; redirect it to a file")
        else:
            sys.stdout.flush()  # what was printed before comes before
            self.file = os.fdopen(os.dup(sys.stdout.fileno()), "wb")

    def complete(self) -> None:
        """Write what is buffered."""
        self.file.flush()

    def commit(self) -> None:
        """Do nothing: the data are there."""

    def discard(self) -> None:
        """Close it."""
        _close(self.file)


class Replacement:
    """A file under a temporary name, which `commit` changes into its own.

    While the file is written, only its owner can read it; then it gets the permissions of the file that it replaces, or
    those that the umask gives a new file.
    """

    has_folder = True
    file: Any = None
    is_synced = True  # whether `complete` waits until the data are on the disk
    run = ""  # see `beside`

    def __init__(self, path: str) -> None:
        self._place = os.path.realpath(path)
        self._beside: str | None = None

    def open(self) -> None:
        """Create the file."""
        self._beside = beside(self._place, self.run)
        self.file = open(self._beside, "xb", WRITTEN, opener=_private)  # noqa: SIM115 - open until it is complete

    def complete(self) -> None:
        """Write all data, to the disk."""
        self.file.flush()
        if hasattr(os, "fchmod"):  # not on Windows before Python 3.13
            os.fchmod(self.file.fileno(), mode(self._place, 0o666))
        if self.is_synced:
            os.fsync(self.file.fileno())
        self.file.close()

    def commit(self) -> None:
        """Rename the file."""
        if self._beside is not None:
            os.replace(self._beside, self._place)
            self._beside = None

    def discard(self) -> None:
        """Remove the file, unless it has its name."""
        _close(self.file)
        if self._beside is not None:
            with suppress(FileNotFoundError):  # an interrupt may come right after the renaming
                os.unlink(self._beside)


def sync(place: str) -> None:
    """Wait until the data of a file are on the disk."""
    with open(place, "rb+") as file:
        os.fsync(file.fileno())


def _close(file: IO[bytes] | None) -> None:
    """Close a file; data that cannot be written then are not needed."""
    if file is not None:
        with suppress(OSError, ValueError):
            file.close()


def beside(place: str, run: str) -> str:
    """Return a new, hidden name in the folder of a file, which begins with that of a run, or with no name.

    Hidden files of a folder are not read.
    """
    return os.path.join(os.path.dirname(place), f".lsh-{run}{os.urandom(8).hex()}.part")


def remove_hidden(run: str, folders: Iterable[str]) -> None:
    """Remove the hidden files and folders that a run, which has a name, left in some folders when it was killed."""
    for folder in folders:
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name.startswith(f".lsh-{run}") and is_hidden(name):
                path = os.path.join(folder, name)
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


def is_hidden(name: object) -> bool:
    """Tell whether a file has a name of `beside`."""
    base = os.path.basename(name) if isinstance(name, str) else ""
    return base.startswith(".lsh-") and base.endswith(".part")


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner can read; for the `opener` of `open`."""
    return os.open(path, flags, 0o600)


def mode(place: str, default: int) -> int:
    """Return the permissions of an existing file or folder, else `default` under the umask."""
    with suppress(FileNotFoundError):
        return stat.S_IMODE(os.stat(place).st_mode)
    umask = os.umask(0o077)  # files that another thread creates meanwhile are private
    os.umask(umask)
    return default & ~umask


@contextmanager
def named_errors(name: str, has_folder: bool) -> Iterator[None]:
    """Put the name of the file that is written into errors of the system; if the disk is full, its folder, too."""
    try:
        yield
    except OSError as error:
        if has_folder and error.errno in FULL:
            folder = os.path.dirname(os.path.realpath(name))
            error.filename, error.filename2 = name, None
            error.strerror = f"{os.strerror(error.errno)} in the folder {folder}; free space or write to another folder"
        elif error.filename is None or is_hidden(error.filename):
            error.filename, error.filename2 = name, None
        raise
