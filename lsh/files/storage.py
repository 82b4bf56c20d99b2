"""Files that are read more than once, and files that appear only when they are complete.

An input that changed since it was opened first is an error; standard input and pipes are copied to a temporary file.
`Ranges` reads and copies parts of an input; a compressed input is unpacked again. A target is written beside its place
and then renamed, so an interrupted run leaves the old file.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from functools import partial
from typing import IO, Any, cast

import numpy as np

from lsh._spill import temporary_errors
from lsh.files import compression, remote, uploads, urls
from lsh.files._fields import copy_ranges, read_ranges
from lsh.files.blocks import descriptor, read_at
from lsh.files.places import Array
from lsh.files.prefetch import prefetched
from lsh.files.records import InputError

BUFFER = 1 << 20  # bytes that are read at once; each read releases the GIL and has to get it back
RANGES_SIZE = 1 << 18  # bytes of ranges that are read at once: they stay in the cache of a core
STANDARD = "-"  # the name of standard input and output
FULL = (errno.ENOSPC, errno.EDQUOT)  # errors of a disk, or a share of it, that is full


class Input:
    """A file that can be opened more than once, and must not change meanwhile; close it at the end.

    Parameters
    ----------
    path : str
        The file, its URL, or ``"-"``.
    packed : str
        Its compression, ``""`` for none.
    state : remote.State, optional
        The state of the file of a URL when it was found.
    folder : str, optional
        For the copy of a pipe. Default: TMPDIR, or the folder of the system.

    Attributes
    ----------
    path, packed : str
        As they are given.
    name : str
        The path, or ``"standard input"``; a URL without what may be secret.
    remote : remote.File or None
        The file, if it is read from a URL by ranges.
    """

    def __init__(self, path: str, packed: str, state: remote.State | None = None, folder: str | None = None) -> None:
        self.name, self._folder = "standard input" if path == STANDARD else urls.shown(path), folder
        self.path, self.packed = path, packed
        compression.check_available(packed)
        self._copy: IO[bytes] | None = None
        self._state: tuple[int, int] | None = None
        self._file: IO[bytes] | None = None  # while it is read
        self.share_read: float | None = None  # for a format that is not read from the start to the end
        self.remote = remote.File(path, state) if urls.is_url(path) else None
        if path == STANDARD:
            if sys.stdin is None:
                raise InputError(self.name, "it is closed; redirect it from a file, or name a file as INPUT")
            self._copy = _copied(sys.stdin.buffer, self.name, folder)
        elif self.remote is None and os.path.exists(path) and not os.path.isfile(path):
            with open(path, "rb") as pipe:
                self._copy = _copied(pipe, self.name, folder)

    def close(self) -> None:
        """Close the copy of a pipe."""
        if self._copy is not None:
            self._copy.close()

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Open the file, unpacked; reading it may raise `compression.DamagedError`; see `damaged`."""
        with self._plain() as file:
            self._file, self.share_read = file, None
            try:
                yield compression.unpacked(file, self.packed) if self.packed else file
            finally:
                self._file = None

    @contextmanager
    def _plain(self) -> Iterator[IO[bytes]]:
        """Open the file as it is."""
        self._copy_stream()
        if self.remote is not None:
            with self.remote.opened() as file:
                yield file
            return
        with open(self.path, "rb", BUFFER) if self._copy is None else nullcontext(self._copy) as file:
            file.seek(0)
            self._check_state(file)
            yield file
            self._check_state(file)

    def _copy_stream(self) -> None:
        """Copy a file whose server does not send parts of it."""
        if self.remote is not None and not self.remote.has_ranges():
            with self.remote.stream() as file:
                self._copy = _copied(file, self.name, self._folder)
            self.remote = None

    @contextmanager
    def ranges(self) -> Iterator[Ranges]:
        """Open the file to read ranges of its bytes, unpacked."""
        with self.opened() as file:
            try:
                yield Ranges(self, file)
            except compression.DamagedError as error:
                raise self.damaged(error) from error

    @property
    def size(self) -> int:
        """The size of the file in bytes, as it is on disk."""
        if self.remote is not None and (size := self.remote.size) is not None:
            return size
        self._copy_stream()
        if self._state is not None:
            return self._state[0]
        return os.stat(self.path).st_size if self._copy is None else os.fstat(self._copy.fileno()).st_size

    @property
    def position(self) -> int | None:
        """How many bytes of the file have been read, ``None`` while it is not open; for the thread that reads."""
        if self._file is None:
            return None
        return self._file.tell() if self.share_read is None else int(self.size * self.share_read)

    def _check_state(self, file: IO[bytes]) -> None:
        """Refuse a file that changed since it was opened first."""
        state = os.fstat(file.fileno())
        if self._state not in (None, (state.st_size, state.st_mtime_ns)):
            raise self.changed()
        self._state = (state.st_size, state.st_mtime_ns)

    def changed(self) -> InputError:
        """Return the error for a file that changed."""
        return InputError(self.name, "it changed while it was read; run again when nothing writes to it")

    def check_unchanged(self) -> None:
        """Refuse a file that changed since it was opened, before an error about one of its lines."""
        if self.remote is not None:
            with suppress(FileNotFoundError):
                self.remote.check_unchanged()
        elif self._copy is None:
            with suppress(FileNotFoundError), open(self.path, "rb") as file:
                self._check_state(file)

    def check_plain(self, start: bytes, format: str) -> None:
        """Refuse a file whose first bytes show that it is compressed, where none is expected."""
        found = None if self.packed else compression.recognised(start)
        if found is not None:
            raise InputError(self.name, f"it is compressed; give --format {format}.{found}")

    def damaged(self, error: compression.DamagedError, line: int = 0) -> InputError:
        """Return the error for a corrupt compressed file, of which the lines up to `line` can be read."""
        after = f", line {line} is the last that can be read" if line else ""
        return InputError(self.name, f"{compression.corrupt(self.packed, error)}{after}; create it anew")


class Ranges:
    """Reads ranges of the unpacked bytes of an open file, each of them behind the one before."""

    def __init__(self, file: Input, opened: IO[bytes]) -> None:
        self._input, self._opened = file, opened
        self._descriptor = descriptor(opened)
        self._buffer = np.empty(RANGES_SIZE, np.uint8)
        self._at = 0  # of a packed file: the unpacked bytes that were read

    def read(self, begin: int, end: int) -> bytes:
        """Return bytes `begin` to `end` - 1."""
        if self._descriptor is not None:
            data = read_at(self._descriptor, begin, end - begin)
        else:
            self._skip(begin)
            data = self._opened.read(end - begin)
            self._at = begin + len(data)
        if len(data) < end - begin:
            raise self._input.changed()
        return data

    def _skip(self, begin: int) -> None:
        """Go forward in a file without a descriptor."""
        if not self._input.packed:
            self._opened.seek(begin)
            self._at = begin
        while self._at < begin and (data := self._opened.read(min(begin - self._at, BUFFER))):
            self._at += len(data)

    def joined(self, begins: Array, ends: Array) -> bytes:
        """Return the bytes of ranges, one after the other."""
        if self._descriptor is None:
            return b"".join(map(self.read, begins.tolist(), ends.tolist()))
        data = read_ranges(self._descriptor, begins, ends, self._buffer)
        os.lseek(self._descriptor, int(ends[-1]), os.SEEK_SET)  # the position is shown as progress
        if len(data) < int((ends - begins).sum()):
            raise self._input.changed()
        return data

    def copy(self, parts: Iterator[tuple[Array, Array]], target: Target, report: Callable[[], object]) -> None:
        """Write ranges of bytes, by parts of some that ascend, to a target; call `report` after each part."""
        if self._descriptor is None:  # a part is unpacked while the one before it is packed
            for data in prefetched(self.joined(*part) for part in parts):
                target.write(data)
                report()
            return
        for begins, ends in parts:
            done = target.copy_ranges(self._descriptor, begins, ends, self._buffer)
            if done < int((ends - begins).sum()):
                target.write(self.joined(begins, ends)[done:])
            os.lseek(self._descriptor, int(ends[-1]), os.SEEK_SET)  # the position is shown as progress
            report()


def content(path: str) -> bytes:
    """Return the bytes of a file, unpacked by the ending of its name, or of standard input.

    Raises
    ------
    InputError
        If its compression is corrupt, or its name does not say that it is compressed.
    """
    named = urls.file_name(path)
    file = Input(urls.local(path), compression.of_path(named))
    with closing(file), file.opened() as opened:
        try:
            data = opened.read()
        except compression.DamagedError as error:
            raise file.damaged(error) from error
    packed = compression.recognised(data) if compression.of_path(named) == "" else None
    if packed is not None:
        raise InputError(file.name, f"it is compressed by {compression.NAMES[packed]}; unpack it or name it *.{packed}")
    return data


def contents(paths: Sequence[str]) -> Iterator[bytes]:
    """Yield the bytes of some files of one folder."""
    if paths and urls.is_url(paths[0]):
        yield from remote.contents(paths)
        return
    for path in paths:
        with open(path, "rb") as file:
            yield file.read()


def _copied(file: IO[bytes], name: str, folder: str | None = None) -> IO[bytes]:
    """Copy the rest of `file` to a temporary file."""
    import tempfile  # slow to import

    errors = partial(temporary_errors, f"a copy of {name}", folder=folder)
    with errors():
        copy = tempfile.TemporaryFile(prefix="lsh-", buffering=BUFFER, dir=folder)  # noqa: SIM115 - as long as the source
    try:
        while chunk := file.read(BUFFER):
            with errors():
                copy.write(chunk)
        with errors():
            copy.flush()
    except BaseException:  # an interrupt, too
        with suppress(OSError):
            copy.close()
        raise
    return copy


class _Packed:
    """The file that a compressor writes to. Once `file` is ``None``, further data is discarded.

    A compressor writes once more when it is finalized, even if an earlier write failed.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file: IO[bytes] | None = file

    def write(self, data: bytes) -> int:
        return len(data) if self.file is None else self.file.write(data)

    def flush(self) -> None:
        if self.file is not None:
            self.file.flush()


class Target:
    """A file that appears only when it is complete: written under a temporary name in its folder, then renamed.

    Use it as a context manager and call `commit` at the end; without `commit` no file is left. Standard output, pipes
    and devices are written to directly. While the file is written, only its owner can read it; then it gets the
    permissions of the file that it replaces, or those that the umask gives a new file.

    Parameters
    ----------
    path : str
        The file, or ``"-"``.
    packed : str, optional
        The compression: a key of `compression.NAMES`, or ``""`` for none. Default: by the ending of the path. The same
        content gives the same bytes.
    name : str, optional
        The name of the file in messages. Default: `path`.
    """

    def __init__(self, path: str, packed: str | None = None, name: str | None = None) -> None:
        path = urls.local(path)
        self._name = "standard output" if path == STANDARD else name or urls.shown(path)
        self._place: str | None = None
        if path != STANDARD:  # the name of a stream is not resolved, as a pipe has no other name
            self._place = path if is_stream(path) or urls.is_url(path) else os.path.realpath(path)
        self._packed = compression.of_path(path) if packed is None else packed
        compression.check_available(self._packed)
        self._beside: str | None = None
        self._upload: uploads.Upload | uploads.Spooled | None = None
        self._is_complete = False
        self._file: Any = None
        self._sink: _Packed | None = None
        self._writer: Any = None

    def __enter__(self) -> Target:
        try:
            self._open()
        except BaseException:  # an interrupt, too
            self.__exit__()
            raise
        return self

    def _open(self) -> None:
        if self._place is None:
            if sys.stdout is None:
                raise OSError("standard output is closed; redirect it to a file")
            self._file = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        elif urls.is_url(self._place):
            self._file = self._upload = uploads.sink(self._place)
        elif is_stream(self._place) or (os.path.exists(self._place) and not os.path.isfile(self._place)):
            self._file = open(self._place, "ab" if os.path.isfile(self._place) else "wb")  # noqa: SIM115
        else:
            self._beside = _beside(self._place)
            self._file = open(self._beside, "xb", opener=_private)  # noqa: SIM115 - as long as the target
        self._writer = self._file
        if self._packed:
            self._sink = _Packed(self._file)
            with _named_errors(self._name, self._place is not None):
                self._writer = compression.packing(
                    cast(IO[bytes], self._sink), self._packed
                )  # writes a header, in some formats

    @contextmanager
    def part(self, number: int) -> Iterator[Target]:
        """Give the target of the kept records of an input: this file for every input."""
        yield self

    def write(self, data: bytes) -> None:
        """Write bytes."""
        with _named_errors(self._name, self._place is not None):
            self._writer.write(data)

    def copy_ranges(self, source: int, begins: Array, ends: Array, buffer: Array) -> int:
        """Write ranges of an open file, by its descriptor; return how many bytes are written, maybe none or not all."""
        with _named_errors(self._name, self._place is not None):
            file = None if self._packed else descriptor(self._file)
            if file is None:
                return 0
            self._file.flush()
            return copy_ranges(source, file, begins, ends, buffer)

    def complete(self) -> None:
        """Write all that is buffered, so that `commit` has only to put the file in its place."""
        with _named_errors(self._name, self._place is not None):
            if self._packed:
                self._writer.close()
            self._file.flush()
            if self._upload is not None:
                self._upload.close()
            if self._beside is not None and self._place is not None:
                os.fchmod(self._file.fileno(), _mode(self._place, 0o666))
                os.fsync(self._file.fileno())
                self._file.close()
        self._is_complete = True

    def commit(self) -> None:
        """Put the file in its place."""
        if not self._is_complete:
            self.complete()
        if self._beside is not None and self._place is not None:
            with _named_errors(self._name, True):
                os.replace(self._beside, self._place)
            self._beside = None
        if self._upload is not None:
            self._upload.commit()
            self._upload = None

    def __exit__(self, *error: object) -> None:
        if self._sink is not None:
            self._sink.file = None
        if self._upload is not None:
            self._upload.discard()
            self._upload = None
        for opened in (self._writer, self._file):
            with suppress(OSError, ValueError):  # data that cannot be flushed is not wanted
                if opened is not None:
                    opened.close()
        if self._beside is not None:
            with suppress(FileNotFoundError):  # an interrupt may come right after the renaming
                os.unlink(self._beside)


class FolderTarget:
    """A folder whose files appear only when all are complete.

    Use it as a context manager and call `commit` at the end; without `commit` no file is left.

    Parameters
    ----------
    path : str
        The folder, or its URL. It must not exist, or be empty.

    Raises
    ------
    ValueError
        If the folder has files.
    PermissionError
        If nothing can be written to the folder, or to the one in which it is to be created.
    """

    def __init__(self, path: str) -> None:
        path = urls.local(path)
        self._path = urls.shown(path)
        if has_files(path):
            raise ValueError(f"OUTPUT must be a new or an empty folder, got {self._path}; remove it or name another")
        self._folder = _RemoteFolder(path) if urls.is_url(path) else _LocalFolder(path)

    def __enter__(self) -> FolderTarget:
        try:
            self._folder.open()
        except BaseException:  # an interrupt, too
            self._folder.close()
            raise
        return self

    def copy(self, path: str, relative: str) -> None:
        """Copy a file into the folder, to a relative path."""
        with _named_errors(within(self._path, relative), True):
            self._folder.copy(path, relative)

    def complete(self) -> None:
        """Do nothing: the files are complete; see `Target.complete`."""

    def commit(self) -> None:
        """Put the folder, or its files, in place."""
        self._folder.commit()

    def __exit__(self, *error: object) -> None:
        self._folder.close()


class _LocalFolder:
    """A folder that is filled under a temporary name.

    A new folder is then renamed. Into a folder that exists, such as a mounted one, the files are moved. While it is
    filled, only its owner can enter it.
    """

    def __init__(self, path: str) -> None:
        self._path, self._place = path, os.path.realpath(path)
        self._exists = os.path.isdir(self._place)
        folder = self._place if self._exists else os.path.dirname(self._place)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)
        self._beside: str | None = None

    def open(self) -> None:
        """Create the folder."""
        self._beside = _beside(os.path.join(self._place, "file") if self._exists else self._place)
        os.mkdir(self._beside, 0o700)

    def copy(self, path: str, relative: str) -> None:
        """Copy a file into the folder."""
        place = self._made(relative)
        if not urls.is_url(path):
            shutil.copy(path, place)
            return
        with open(place, "wb") as file:
            file.writelines(remote.contents([path]))

    @contextmanager
    def part(self, relative: str, packed: str) -> Iterator[Target]:
        """Give a new file in the folder, and complete it at the end of the context."""
        with Target(self._made(relative), packed, os.path.join(self._path, relative)) as target:
            yield target
            target.commit()

    def _made(self, relative: str) -> str:
        """Return the place of a file, after creating its folder."""
        place = os.path.join(str(self._beside), relative)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        return place

    def commit(self) -> None:
        """Put the folder, or its files, in place."""
        filled = str(self._beside)
        if self._exists:
            self._move(filled)
            os.rmdir(filled)
        else:
            os.chmod(filled, _mode(self._place, 0o777))
            os.rename(filled, self._place)
        self._beside = None

    def _move(self, filled: str) -> None:
        """Move all files and folders into the existing folder, or none."""
        moved = []
        try:
            for name in sorted(os.listdir(filled)):
                place = os.path.join(self._place, name)
                if os.path.lexists(place):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), place)
                os.rename(os.path.join(filled, name), place)
                moved.append(name)
        except BaseException:  # an interrupt, too
            for name in moved:
                os.rename(os.path.join(self._place, name), os.path.join(filled, name))
            raise

    def close(self) -> None:
        """Remove the folder, unless it is in its place."""
        if self._beside is not None:
            shutil.rmtree(self._beside, ignore_errors=True)


class _RemoteFolder:
    """A folder of a URL; without `commit` its files are removed.

    Objects of S3 appear one after the other in `commit`, other files when they are complete.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._targets: dict[str, Target] = {}  # complete ones, by URL
        self._copies: dict[str, str] = {}  # files to copy, by URL
        self._open = ExitStack()
        self._begun: list[str] = []  # URLs of files that may be there

    def open(self) -> None:
        """Do nothing: there are no folders."""

    def copy(self, path: str, relative: str) -> None:
        """Note a file; `commit` copies it."""
        self._copies[urls.join(self._url, relative)] = path

    @contextmanager
    def part(self, relative: str, packed: str) -> Iterator[Target]:
        """Give a new file in the folder, and complete it at the end of the context."""
        url = urls.join(self._url, relative)
        target = self._open.enter_context(Target(url, packed))
        yield target
        target.complete()
        self._targets[url] = target
        if not uploads.has_parts(url):  # its data would stay on disk
            self._show()

    def commit(self) -> None:
        """Let the files appear."""
        self._show()
        self._begun += self._copies
        uploads.copy(contents(list(self._copies.values())), list(self._copies))
        self._begun = []

    def _show(self) -> None:
        """Let the complete files appear."""
        self._begun += self._targets
        while self._targets:
            self._targets.pop(next(iter(self._targets))).commit()

    def close(self) -> None:
        """Remove the files, unless all of them are in place."""
        self._open.close()
        for url in self._begun:
            uploads.remove(url)


class ShardTarget(FolderTarget):
    """A new folder with a file for each input, which has the name and the compression of the input.

    Parameters
    ----------
    path : str
        The folder. It must not exist, or be empty.
    inputs : sequence of Input
        The files.
    named : sequence of tuple
        The files and folders in which the inputs were found, each with whether it is a folder. Each output has the path
        of its input within the deepest folder that holds all of them; a single folder is that folder itself.

    Raises
    ------
    ValueError
        If standard input is among the inputs, or a file is there twice.
    """

    def __init__(self, path: str, inputs: Sequence[Input], named: Iterable[tuple[str, bool]]) -> None:
        super().__init__(path)
        self._inputs = inputs
        places = [(_absolute(place), is_folder) for place, is_folder in named]
        common = os.path.commonpath([place if is_folder else os.path.dirname(place) for place, is_folder in places])
        self._names = _names_within(common, [file.path for file in inputs])

    def part(self, number: int) -> AbstractContextManager[Target]:
        """Give the target of the kept records of an input, and complete it at the end of the context."""
        return self._folder.part(self._names[number], self._inputs[number].packed)


def _absolute(path: str) -> str:
    """Return the absolute path of a file or, of a URL, what serves as one.

    Examples
    --------
    >>> _absolute("s3://bucket/a.txt"), _absolute("https://host/a.txt?raw=1")
    ('/s3/bucket/a.txt', '/https/host/a.txt')
    """
    if not urls.is_url(path):
        return os.path.abspath(path)
    scheme, _, name = urls.file_name(path).partition("://")
    return os.path.normpath(f"/{scheme}/{name}")


def _names_within(folder: str, paths: Sequence[str]) -> list[str]:
    """Return the paths of files within a folder.

    Examples
    --------
    >>> _names_within("/all", ["/all/a/1.txt", "/all/2.txt"])
    ['a/1.txt', '2.txt']
    """
    if STANDARD in paths:
        raise ValueError("OUTPUT must be a file where INPUT is standard input, got a folder; name a file")
    names: dict[str, None] = {}
    for path in paths:
        name = os.path.relpath(_absolute(path), folder)
        if name in names:
            shown = urls.shown(path)
            raise ValueError(f"INPUT must name each file once where OUTPUT is a folder, got {shown} twice")
        names[name] = None
    return list(names)


def _beside(place: str) -> str:
    """Return a new, hidden name in the folder of a file; hidden files of a folder are not read."""
    return os.path.join(os.path.dirname(place), f".lsh-{os.urandom(8).hex()}.part")


@contextmanager
def _named_errors(name: str, has_folder: bool) -> Iterator[None]:
    """Put the name of the file that is written into errors of the system; if the disk is full, its folder, too."""
    try:
        yield
    except OSError as error:
        if has_folder and error.errno in FULL:
            folder = os.path.dirname(os.path.realpath(name))
            error.filename, error.filename2 = name, None
            error.strerror = f"{os.strerror(error.errno)} in the folder {folder}; free space or write to another folder"
        elif error.filename is None:
            error.filename = name
        raise


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner can read; for the `opener` of `open`."""
    return os.open(path, flags, 0o600)


def _mode(place: str, default: int) -> int:
    """Return the permissions of an existing file or folder, else `default` under the umask."""
    with suppress(FileNotFoundError):
        return stat.S_IMODE(os.stat(place).st_mode)
    umask = os.umask(0o077)  # files that another thread creates meanwhile are private
    os.umask(umask)
    return default & ~umask


def is_stream(path: str) -> bool:
    """Tell whether a path is an open stream of this process, which cannot be replaced by a file."""
    return path in ("/dev/stdout", "/dev/stderr") or path.startswith(("/dev/fd/", "/proc/self/fd/"))


def same_file(a: str, b: str) -> bool:
    """Tell whether two paths lead to the same file, by links too, or two URLs."""
    a, b = urls.local(a), urls.local(b)
    if urls.is_url(a) or urls.is_url(b):
        names = {path.rstrip("/").rpartition("/")[2] for path in (a, b)}
        return urls.is_url(a) and urls.is_url(b) and len(names) == 1 and remote.key(a) == remote.key(b)
    if STANDARD in (a, b):
        return False
    try:
        return os.path.samefile(a, b)
    except OSError:  # one of them does not exist yet
        return os.path.realpath(a) == os.path.realpath(b)


def is_folder(path: str) -> bool:
    """Tell whether a path is that of a folder; standard input and output are none."""
    path = urls.local(path)
    if urls.is_url(path):
        found = remote.find(path)
        return found is not None and found.is_folder
    return path != STANDARD and os.path.isdir(path)


def has_files(path: str) -> bool:
    """Tell whether there is a file, or a folder that is not empty."""
    path = urls.local(path)
    if urls.is_url(path):
        found = remote.find(path)
        return found is not None and (not found.is_folder or bool(remote.list_folder(path)))
    return os.path.lexists(path) and not (os.path.isdir(path) and not os.listdir(path))


def names_folder(path: str) -> bool:
    """Tell whether a path can only be that of a folder: it ends in a slash or a dot."""
    return path.endswith(os.sep) or os.path.basename(path) in (os.curdir, os.pardir)


def lies_in(path: str, folder: str) -> bool:
    """Tell whether a path leads into a folder, or to it; links are resolved."""
    path, folder = urls.local(path), urls.local(folder)
    if urls.is_url(path) != urls.is_url(folder):
        return False
    if urls.is_url(path):
        (place, name), (outer, start) = remote.key(path), remote.key(folder)
        return place == outer and f"{name}/".startswith(f"{start}/")
    if STANDARD in (path, folder) or not os.path.isdir(folder):
        return False
    inner, outside = os.path.realpath(path), os.path.realpath(folder)
    return os.path.commonpath([inner, outside]) == outside


def within(folder: str, relative: str) -> str:
    """Return the path, or the URL, of a file in a folder."""
    return urls.join(folder, relative) if urls.is_url(folder) else os.path.join(folder, relative)
