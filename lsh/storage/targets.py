"""Files, and folders of files, that appear only when they are complete.

A `Target` is packed and written. A folder is filled for a folder of texts, or with a file for each input. Where files
are, and how they are written there, is the matter of `locations`.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from lsh.base import signals
from lsh.base.errors import Parameter, bad_value
from lsh.storage import compression, disk, remote, urls
from lsh.storage.behind import WriteBehind
from lsh.storage.disk import STANDARD, beside, mode, named_errors
from lsh.storage.inputs import Input
from lsh.storage.locations import INPUT, Local, Url, contents, location


class Target:
    """A file that appears only when it is complete.

    Use it as a context manager and call `commit` at the end; without `commit` no file is left. Standard output, pipes
    and devices are written to directly.

    Parameters
    ----------
    path : str
        The file, its URL, or ``"-"``.
    packed : str, optional
        The compression: a key of `compression.NAMES`, or ``""`` for none. Default: by the ending of the path. The same
        content gives the same bytes.
    name : str, optional
        The name of the file in messages. Default: `path`.
    folder : str, optional
        For temporary files, which some URLs need. Default: TMPDIR, or the folder of the system.
    run : str, optional
        The name of a run that may be killed, with which hidden names of this computer begin; see `disk.beside`.
    """

    def __init__(
        self,
        path: str,
        packed: str | None = None,
        name: str | None = None,
        folder: str | None = None,
        run: str = "",
    ) -> None:
        path = urls.local(path)
        self._name = "standard output" if path == STANDARD else name or urls.shown(path)
        self._packed = compression.of_path(path) if packed is None else packed
        compression.check_available(self._packed)
        self._sink = location(path).sink(folder)
        if isinstance(self._sink, disk.Replacement):
            self._sink.run = run
        self._is_complete = False
        self._packing: Any = None
        self._behind: WriteBehind | None = None
        self._write: Any = None

    def __enter__(self) -> Target:
        try:
            self._open()
        except BaseException:  # an interrupt, too
            self.__exit__()
            raise
        return self

    def _open(self) -> None:
        with self._errors():
            self._sink.open()
        if self._packed:
            self._packing = compression.Packing(self._sink.file, self._packed)
        self._write = (self._packing or self._sink.file).write
        if isinstance(self._sink, disk.Replacement):  # what goes to a pipe appears at once; URLs have threads already
            self._behind = WriteBehind(self._write)
            self._write = self._behind.write

    def _errors(self) -> AbstractContextManager[None]:
        return disk.named_errors(self._name, self._sink.has_folder)

    @contextmanager
    def part(self, number: int) -> Iterator[Target]:
        """Give the target of the kept records of an input: this file for every input."""
        yield self

    def write(self, data: bytes) -> None:
        """Write bytes."""
        with self._errors():
            self._write(data)

    def complete(self) -> None:
        """Write all that is buffered, so that `commit` has only to let the file appear."""
        with self._errors():
            if self._behind is not None:
                self._behind.finish()
            if self._packing is not None:
                self._packing.finish()
            self._sink.complete()
        self._is_complete = True

    def commit(self, *, synced: bool = True) -> None:
        """Let the file appear, unless a signal has asked the command to end; `synced`: when it is on the disk."""
        signals.check_ended()
        if not self._is_complete:
            if isinstance(self._sink, disk.Replacement):
                self._sink.is_synced = synced
            self.complete()
        with self._errors():
            self._sink.commit()

    def __exit__(self, *error: object) -> None:
        try:
            if self._behind is not None:
                self._behind.stop()
        finally:  # after an interrupt, too
            self._sink.discard()


class FolderTarget:
    """A folder whose files appear only when all are complete.

    Use it as a context manager and call `commit` at the end; without `commit` no file is left.

    Parameters
    ----------
    path : str
        The folder, or its URL. It must not exist, or be empty.
    temporary : str, optional
        The folder for temporary files, which some URLs need. Default: TMPDIR, or the folder of the system.
    run : str, optional
        The name of a run; see `Target`.

    Raises
    ------
    ValueError
        If the folder has files.
    PermissionError
        If nothing can be written to the folder, or to the one in which it is to be created.
    """

    def __init__(self, path: str, temporary: str | None = None, run: str = "") -> None:
        place = location(path)
        self._name = urls.shown(place.path)
        if place.has_files():
            reason = f"must be a new or an empty folder, got {self._name}; remove it or name another"
            raise bad_value("output", reason)
        self._folder = _RemoteFolder(place, temporary) if isinstance(place, Url) else _LocalFolder(place, run)

    def __enter__(self) -> FolderTarget:
        try:
            self._folder.open()
        except BaseException:  # an interrupt, too
            self._folder.close()
            raise
        return self

    def copy(self, path: str, relative: str) -> None:
        """Copy a file into the folder, to a relative path."""
        self._folder.copy(path, relative)

    def file(self, relative: str, packed: str) -> AbstractContextManager[Target]:
        """Give a new file in the folder, and complete it at the end of the context."""
        return self._folder.part(relative, packed)

    def complete(self) -> None:
        """Wait until the files are on the disk; see `Target.complete`."""
        self._folder.complete()

    def commit(self) -> None:
        """Put the folder, or its files, in place, unless a signal has asked the command to end."""
        signals.check_ended()
        self._folder.complete()
        self._folder.commit()

    def __exit__(self, *error: object) -> None:
        self._folder.close()


class _LocalFolder:
    """A folder that is filled under a temporary name.

    A new folder is then renamed. Into a folder that exists, such as a mounted one, the files are moved. While it is
    filled, only its owner can enter it.
    """

    def __init__(self, folder: Local, run: str) -> None:
        self._name, self._place, self._run = folder.path, os.path.realpath(folder.path), run
        self._exists = os.path.isdir(self._place)
        holder = self._place if self._exists else os.path.dirname(self._place)
        if not os.access(holder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), holder)
        self._beside: str | None = None
        self._copies: dict[str, str] = {}  # files of URLs to copy, by their paths in the folder
        self._unsynced: list[str] = []  # files that the system may still have in memory only, by these paths

    def open(self) -> None:
        """Create the folder."""
        self._beside = beside(os.path.join(self._place, "file") if self._exists else self._place, self._run)
        os.mkdir(self._beside, 0o700)

    def copy(self, path: str, relative: str) -> None:
        """Copy a file into the folder."""
        if isinstance(location(path), Url):
            self._copies[relative] = path  # in `commit`, several at the same time
            return
        with named_errors(os.path.join(self._name, relative), True):
            shutil.copy(path, self._made(relative))

    @contextmanager
    def part(self, relative: str, packed: str) -> Iterator[Target]:
        """Give a new file in the folder, and complete it at the end of the context."""
        with Target(self._made(relative), packed, os.path.join(self._name, relative)) as target:
            yield target
            self._unsynced.append(relative)
            target.commit(synced=False)

    def complete(self) -> None:
        """Wait until the files are on the disk; the system has written most of them while others were made."""
        while self._unsynced:
            relative = self._unsynced.pop()
            with named_errors(os.path.join(self._name, relative), True):
                disk.sync(os.path.join(str(self._beside), relative))

    def _made(self, relative: str) -> str:
        """Return the place of a file, after creating its folder."""
        place = os.path.join(str(self._beside), relative)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        return place

    def commit(self) -> None:
        """Put the folder, or its files, in place."""
        filled = str(self._beside)
        for relative, data in zip(self._copies, contents(list(self._copies.values()))):
            with named_errors(os.path.join(self._name, relative), True), open(self._made(relative), "wb") as file:
                file.write(data)
        if self._exists:
            self._move(filled)
            os.rmdir(filled)
        else:
            os.chmod(filled, mode(self._place, 0o777))
            try:
                os.rename(filled, self._place)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                reason = f"must be a new or an empty folder, and {self._name} got files during the run; name another"
                raise bad_value("output", reason) from None
        self._beside = None

    def _move(self, filled: str) -> None:
        """Move all files and folders into the existing folder, or none."""
        moved = []
        try:
            for name in sorted(os.listdir(filled)):
                place = os.path.join(self._place, name)
                if os.path.lexists(place):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), place)
                moved.append(name)  # before: an interrupt may come right after the file was moved
                os.rename(os.path.join(filled, name), place)
        except BaseException:
            for name in moved:
                if not os.path.lexists(os.path.join(filled, name)):
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

    def __init__(self, folder: Url, temporary: str | None) -> None:
        self._place, self._temporary = folder, temporary
        self._targets: dict[str, Target] = {}  # complete ones, by URL
        self._copies: dict[str, str] = {}  # files to copy, by URL
        self._open = ExitStack()
        self._begun: list[str] = []  # URLs of files that may be there

    def open(self) -> None:
        """Do nothing: there are no folders."""

    def copy(self, path: str, relative: str) -> None:
        """Note a file; `commit` copies it."""
        self._copies[self._place.within(relative)] = path

    @contextmanager
    def part(self, relative: str, packed: str) -> Iterator[Target]:
        """Give a new file in the folder, and complete it at the end of the context."""
        url = self._place.within(relative)
        target = self._open.enter_context(Target(url, packed, folder=self._temporary))
        yield target
        target.complete()
        self._targets[url] = target
        if not remote.has_parts(url):  # its data would stay on disk
            self._show()

    def complete(self) -> None:
        """Do nothing: the files are complete."""

    def commit(self) -> None:
        """Let the files appear."""
        self._show()
        self._begun += self._copies
        remote.copy(contents(list(self._copies.values())), list(self._copies))
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
            remote.remove(url)


class ShardTarget(FolderTarget):
    """A new folder with a file for each input, which has the name and the compression of the input.

    Parameters
    ----------
    path : str
        The folder, or its URL. It must not exist, or be empty.
    inputs : sequence of Input
        The files.
    named : sequence of tuple
        The files and folders in which the inputs were found, each with whether it is a folder. Each output has the path
        of its input within the deepest folder that holds all of them; a single folder is that folder itself.
    temporary, run : str, optional
        See `FolderTarget`.

    Raises
    ------
    ValueError
        If standard input is among the inputs, or a file is there twice.
    """

    def __init__(
        self,
        path: str,
        inputs: Sequence[Input],
        named: Iterable[tuple[str, bool]],
        temporary: str | None = None,
        run: str = "",
    ) -> None:
        super().__init__(path, temporary, run)
        self._inputs = inputs
        places = [(location(place).absolute(), is_folder) for place, is_folder in named]
        common = os.path.commonpath([place if is_folder else os.path.dirname(place) for place, is_folder in places])
        self._names = _names_within(common, [file.path for file in inputs])

    def part(self, number: int) -> AbstractContextManager[Target]:
        """Give the target of the kept records of an input, and complete it at the end of the context."""
        return self.file(self._names[number], self._inputs[number].packed)


def _names_within(folder: str, paths: Sequence[str]) -> list[str]:
    """Return the paths of files within a folder.

    Examples
    --------
    >>> _names_within("/all", ["/all/a/1.txt", "/all/2.txt"])
    ['a/1.txt', '2.txt']
    """
    if STANDARD in paths:
        reason = "must be a file where " + INPUT + " is standard input, got a folder; name a file"
        raise bad_value("output", reason)
    names: dict[str, None] = {}
    for path in paths:
        name = os.path.relpath(location(path).absolute(), folder).replace(os.sep, "/")
        if name in names:
            shown = urls.shown(path)
            reason = "must name each file once where " + Parameter("output") + f" is a folder, got {shown} twice"
            raise bad_value("input", reason)
        names[name] = None
    return list(names)
