"""Names of files: local paths, URLs, and ``-`` for a standard stream.

`location` is the one place that tells them apart. Each kind has a class with the same methods: what the name stands
for, how it compares with others of its kind, and how it is read and written.

A `Source` is read: its methods are `opened`, `check_unchanged` and `close`, and it has a `size`. A `Sink` is written:
`open`, writing to its `file`, `complete`, which does all that can be done before the file appears, `commit`, which lets
it appear, and in any case `discard`. Its `has_folder` tells whether a full disk is that of the folder of the file.
"""

from __future__ import annotations

import errno
import glob
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from lsh.base.errors import InputError, Parameter
from lsh.storage import disk, remote, urls
from lsh.storage.disk import STANDARD
from lsh.storage.remote import Place, RemoteState

INPUT = Parameter("input")  # in messages

Source = disk.LocalFile | disk.Copy | remote.RemoteFile
Sink = disk.Direct | disk.Replacement | remote.Upload | remote.Spooled


class Local:
    """A path of this computer."""

    def __init__(self, path: str) -> None:
        self.path = path

    def is_folder(self) -> bool:
        """Tell whether it is a folder."""
        return os.path.isdir(self.path)

    def has_files(self) -> bool:
        """Tell whether there is a file, or a folder that is not empty, beside what a run left that was killed."""
        path = self.path.rstrip(f"/{os.sep}") or self.path  # with a slash at its end the name of a file leads nowhere
        return os.path.lexists(path) and not (self.is_folder() and all(map(disk.is_hidden, os.listdir(path))))

    def key(self) -> object:
        """Return a value that is equal for two names that lead to the same file, by links too."""
        try:
            found = os.stat(self.path)
        except OSError:  # it does not exist yet
            return os.path.realpath(self.path)
        return found.st_dev, found.st_ino

    def contains(self, other: Local) -> bool:
        """Tell whether this is a folder into which the other path leads, or to it; links are resolved."""
        if not self.is_folder():
            return False
        outer = os.path.realpath(self.path)
        return os.path.commonpath([os.path.realpath(other.path), outer]) == outer

    def absolute(self) -> str:
        """Return the absolute path."""
        return os.path.abspath(self.path)

    def within(self, relative: str) -> str:
        """Return the path of a file in this folder."""
        return os.path.join(self.path, relative)

    def is_pattern(self) -> bool:
        """Tell whether it stands for the files that match it; a file that has this name comes first."""
        return glob.has_magic(self.path) and not os.path.lexists(self.path)

    def matches(self) -> list[Place]:
        """Return what matches the pattern, in the order of the paths."""
        return [Local(path).found() for path in sorted(glob.glob(self.path, recursive=True))]

    def found(self) -> Place:
        """Return the file or the folder; whether there is one is not checked."""
        return Place(self.path, self.is_folder())

    def files(self) -> Iterator[tuple[str, RemoteState | None]]:
        """Yield what is in this folder and in the folders in it, by its path within it, with ``/``; no folders.

        Links are followed. A folder that links lead to is read once, by its own path if it lies within this one; a
        folder with a hidden path, whose files may not be wanted, does not count.
        """
        seen: set[tuple[int, int, bool]] = set()
        waiting = [self.path]
        while waiting:
            linked: list[str] = []
            for inner, folders, names in chain.from_iterable(os.walk(top, onerror=_fail) for top in waiting):
                found, inside = os.stat(inner), _slashed(os.path.relpath(inner, self.path))
                key = found.st_dev, found.st_ino, "/." in f"/{inside}"
                if key in seen:
                    folders.clear()
                    continue
                seen.add(key)
                linked += [path for name in folders if os.path.islink(path := os.path.join(inner, name))]
                yield from ((f"{inside}{name}", None) for name in names)
            waiting = sorted(linked)

    def is_file(self, relative: str) -> bool:
        """Tell whether what `files` found is a file, not a pipe, a socket or a device; a broken link is an error."""
        return stat.S_ISREG(os.stat(self.within(relative)).st_mode)

    def source(self, state: RemoteState | None, folder: str | None) -> Source:
        """Return the file for reading, of a pipe or a device a temporary copy in a folder."""
        if not os.path.exists(self.path) or os.path.isfile(self.path):
            return disk.LocalFile(self.path)
        with open(self.path, "rb") as pipe:
            return disk.Copy(pipe.read, self.path, folder)

    def sink(self, folder: str | None) -> Sink:
        """Return the file for writing; a stream or a device is not replaced by a file."""
        is_device = os.path.exists(self.path) and not os.path.isfile(self.path)
        return disk.Direct(self.path) if is_stream(self.path) or is_device else disk.Replacement(self.path)


class Standard(Local):
    """Standard input, or standard output."""

    def is_folder(self) -> bool:
        """Return False."""
        return False

    def key(self) -> object:
        """Return a value that no other one is equal to: input and output are two streams."""
        return object()

    def source(self, state: RemoteState | None, folder: str | None) -> Source:
        """Return a temporary copy of standard input."""
        if sys.stdin is None:
            raise InputError("standard input", "it is closed; redirect it from a file, or name a file as " + INPUT)
        return disk.Copy(sys.stdin.buffer.read, "standard input", folder)

    def sink(self, folder: str | None) -> Sink:
        """Return standard output."""
        return disk.Direct(STANDARD)


class Url:
    """A URL of a filesystem that fsspec knows."""

    def __init__(self, path: str) -> None:
        self.path, self._is_web = path, urls.scheme(path) in urls.WEB

    def _find(self) -> Place | None:
        """Return the file or the folder, ``None`` if there is neither. A folder of the web ends in a slash."""
        filesystem, name = remote.located(self.path)
        if self._is_web and self.path.endswith("/"):
            return Place(self.path, True, RemoteState(None, ""))
        try:
            with remote.explained(self.path):
                return _place(self.path, filesystem.info(name))
        except FileNotFoundError:
            return None

    def key(self) -> tuple[Any, str]:
        """Return a value that is equal for two URLs of the same file, without a request."""
        filesystem, name = remote.located(self.path)
        return filesystem, name.rstrip("/")

    def is_folder(self) -> bool:
        """Tell whether it is a folder."""
        found = self._find()
        return found is not None and found.is_folder

    def has_files(self) -> bool:
        """Tell whether there is a file, or a folder that is not empty."""
        found = self._find()
        return found is not None and (not found.is_folder or any(self.files()))

    def contains(self, other: Url) -> bool:
        """Tell whether the other URL lies in this one, or is the same."""
        (place, name), (outer, start) = other.key(), self.key()
        return place == outer and f"{name}/".startswith(f"{start}/")

    def absolute(self) -> str:
        """Return what serves as an absolute path.

        Examples
        --------
        >>> Url("s3://bucket/a.txt").absolute(), Url("https://host/a.txt?raw=1").absolute()
        ('/s3/bucket/a.txt', '/https/host/a.txt')
        """
        scheme, _, name = urls.file_name(self.path).partition("://")
        return os.path.normpath(f"/{scheme}/{name}")

    def within(self, relative: str) -> str:
        """Return the URL of a file in this folder."""
        return f"{self.path.rstrip('/')}/{relative}"

    def is_pattern(self) -> bool:
        """Tell whether it stands for the files that match it."""
        return urls.has_magic(self.path)

    def matches(self) -> list[Place]:
        """Return what matches the pattern, in the order of the names."""
        filesystem, name = remote.located(self.path)
        with remote.explained(self.path):
            found = filesystem.glob(name, detail=True)
            return [_place(filesystem.unstrip_protocol(one), found[one]) for one in sorted(found)]

    def found(self) -> Place:
        """Return the file or the folder; raise FileNotFoundError if there is neither."""
        found = self._find()
        if found is None:
            remote.check_bucket(self.path)
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), urls.shown(self.path))
        return found

    def files(self) -> Iterator[tuple[str, RemoteState | None]]:
        """Yield the files of this folder and of the folders in it, by their paths within it."""
        filesystem, name = remote.located(self.path)
        start = name.rstrip("/") + "/"
        with remote.explained(self.path):
            found = filesystem.find(start if self._is_web else name, detail=True)
        for one, info in found.items():
            if one.startswith(start) and info.get("type") == "file":
                yield one.removeprefix(start), remote.state_of(info)

    def is_file(self, relative: str) -> bool:
        """Return True: `files` finds files only."""
        return True

    def source(self, state: RemoteState | None, folder: str | None) -> Source:
        """Return the file for reading; it is copied to a folder if the server does not send parts of it."""
        return remote.RemoteFile(self.path, state, folder)

    def sink(self, folder: str | None) -> Sink:
        """Return the file for writing; `folder` is for temporary files."""
        return remote.sink(self.path, folder)


def _place(url: str, info: dict[str, Any]) -> Place:
    return Place(url, info["type"] == "directory", remote.state_of(info))


def location(path: str) -> Local | Url:
    """Return the location that a name stands for.

    Examples
    --------
    >>> [type(location(name)).__name__ for name in ("-", "news.tsv", "file:///news.tsv", "s3://bucket/news.tsv")]
    ['Standard', 'Local', 'Local', 'Url']
    """
    path = urls.local(path)
    return Url(path) if urls.is_url(path) else Standard(path) if path == STANDARD else Local(path)


def _fail(error: OSError) -> None:
    raise error


def _slashed(folder: str) -> str:
    """Return the path of a folder within another one as the beginning of the paths of its files, with ``/``."""
    return "" if folder == os.curdir else f"{folder.replace(os.sep, '/')}/"


def is_stream(path: str) -> bool:
    """Tell whether a path is an open stream of this process, which cannot be replaced by a file."""
    return path in ("/dev/stdout", "/dev/stderr") or path.startswith(("/dev/fd/", "/proc/self/fd/"))


def names_folder(path: str) -> bool:
    """Tell whether a path can only be that of a folder: it ends in a slash or a dot."""
    return path.endswith((os.sep, os.altsep or os.sep)) or os.path.basename(path) in (os.curdir, os.pardir)


def is_folder(path: str) -> bool:
    """Tell whether a path is that of a folder; standard input and output are none."""
    return location(path).is_folder()


def has_files(path: str) -> bool:
    """Tell whether there is a file, or a folder that is not empty."""
    return location(path).has_files()


def identity(path: str, written: bool = False) -> object:
    """Return a value that is equal for two names of one file, by links too, or for two URLs of one.

    ``-`` is standard input or, `written`, standard output: the file or the pipe that it is redirected to.
    """
    if path != STANDARD or not written:
        return location(path).key()
    try:
        found = os.fstat(sys.stdout.fileno())
    except (AttributeError, OSError, ValueError):  # a stream of this process only
        return STANDARD
    is_file = stat.S_ISREG(found.st_mode) or stat.S_ISFIFO(found.st_mode)
    return (found.st_dev, found.st_ino) if is_file else STANDARD


def pipe_of(path: str) -> tuple[int, int] | None:
    """Return what identifies the pipe or socket that a name for reading leads to; ``None`` for any other file."""
    try:
        found = os.fstat(sys.stdin.fileno()) if path == STANDARD else os.stat(path)
    except (AttributeError, OSError, ValueError):  # a stream of this process only, a URL, or no file
        return None
    is_pipe = stat.S_ISFIFO(found.st_mode) or stat.S_ISSOCK(found.st_mode)
    return (found.st_dev, found.st_ino) if is_pipe else None


def lies_in(path: str, folder: str) -> bool:
    """Tell whether a path leads into a folder, or to it; links are resolved."""
    inner, outer = location(path), location(folder)
    return type(inner) is type(outer) and outer.contains(inner)  # type: ignore[arg-type]


def contents(paths: Sequence[str]) -> Iterator[bytes]:
    """Yield the bytes of some files of this computer, or of some URLs."""
    if paths and isinstance(location(paths[0]), Url):
        yield from remote.contents(paths)
        return
    for path in paths:
        with disk.open_file(path) as file:
            yield file.read()
