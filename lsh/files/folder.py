"""A folder of texts: each file is a document, and its path within the folder is the id.

`finding` tells which files are read. A file whose name ends in .gz, .bz2, .xz or .zst is unpacked. Kept files are
copied unchanged.
"""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lsh.base.arrays import Array
from lsh.base.errors import InputError, Parameter
from lsh.files.blocks import check_mark, note_bytes
from lsh.files.finding import list_folder
from lsh.files.places import Flags
from lsh.files.reached import Reached, ReadingPass
from lsh.files.records import SKIP, Block, Edits, ReadCounts, ReadOptions, Record, gathered, undecodable, utf8
from lsh.storage import compression, disk, remote, urls
from lsh.storage.locations import contents, location
from lsh.storage.targets import FolderTarget
from lsh.text.cuts import without

State = disk.LocalState | remote.RemoteState


class Folder:
    """The files of a folder, in the order of their paths; they must not change.

    Parameters
    ----------
    path : str
        The folder.
    pattern : str, optional
        Which files are read: their names, or their paths within the folder, match it as in a shell.
    options : ReadOptions
        How the documents are read.
    counts : ReadCounts
        Receives the number of hidden files.

    Attributes
    ----------
    position : int
        Bytes of the files that have been read since they were listed last.
    """

    def __init__(self, path: str, pattern: str | None, options: ReadOptions, counts: ReadCounts) -> None:
        self._path, self._pattern = path, pattern
        self._place, self._shown = location(path), location(urls.shown(path))  # the second for messages
        self.options, self._counts = options, counts
        self._files: dict[str, State] | None = None
        self.position = 0

    def within(self, relative: str) -> str:
        """Return the path of a file."""
        return self._place.within(relative)

    @property
    def size(self) -> int:
        """The bytes of all files."""
        found = self._found() if self._files is None else self._files
        return sum(state.size or 0 for state in found.values())

    def states(self) -> dict[str, tuple[Any, ...] | None]:
        """Return by the path of each file what another run compares to tell whether it changed."""
        self.check_unchanged()
        return {self._place.within(name): tuple(state)[:2] for name, state in (self._files or {}).items()}

    def contents(self, paths: Iterable[str]) -> Iterator[bytes]:
        """Yield the content of each file."""
        return contents([self._place.within(relative) for relative in paths])

    def paths(self) -> list[str]:
        """Return the paths of all files within the folder, which must not have changed since it was listed first."""
        self.check_unchanged()
        return list(self._files or ())

    def shortened(self, relative: str, cuts: Array) -> bytes:
        """Return the content of a file, unpacked and in its encoding, with its text without some runs."""
        content, encoding = self._unpacked(relative, next(self.contents([relative]))), self.options.codec
        if encoding == "utf-8":
            mark = content[: len(content) - len(content.removeprefix(codecs.BOM_UTF8))]
            return mark + without(content[len(mark) :], cuts)
        text = content.decode(encoding)
        start = text[: text.startswith("\ufeff")]
        return (start + without(utf8(text[len(start) :]), cuts).decode("utf-8", "surrogatepass")).encode(encoding)

    def _unpacked(self, relative: str, content: bytes) -> bytes:
        """Return the content of a file, unpacked."""
        packed = compression.of_path(relative)
        if not packed:
            return content
        try:
            return compression.unpacked(io.BytesIO(content), packed).read()
        except compression.DamagedError as error:
            problem = f"{compression.corrupt(packed, error)}; create it anew"
            raise InputError(self._shown.within(relative), problem) from error

    def text(self, relative: str, content: bytes, counts: ReadCounts) -> bytes:
        """Return the text of a file of some bytes."""
        path, content = self._shown.within(relative), self._unpacked(relative, content)
        encoding = self.options.codec
        if encoding == "utf-8":
            if self.options.encoding is None:
                check_mark(content, path)
            note_bytes(counts, content, path)
            return content.removeprefix(codecs.BOM_UTF8)
        try:
            return utf8(content.decode(encoding).removeprefix("\ufeff"))
        except UnicodeError as error:
            remedy = "give the right " + Parameter("encoding") + ", or use " + SKIP
            raise InputError(path, f"{undecodable(encoding, error)}; " + remedy) from None

    def check_unchanged(self) -> None:
        """Raise InputError if a file changed since the folder was listed first."""
        found = self._found()
        if self._files not in (None, found):
            raise InputError(
                self._shown.path, "the folder changed while it was read; run again when nothing writes to it"
            )
        self._files = found

    def passed(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield the paths, and count the bytes of the files that have been read."""
        self.position = 0
        for relative in paths:
            yield relative
            self.position += (self._files or {})[relative].size or 0

    def _found(self) -> dict[str, State]:
        found, self._counts.hidden, _ = list_folder(self._path, self._pattern)
        return {name: self._state(name) if state is None else state for name, state in found.items()}

    def _state(self, relative: str) -> State:
        return disk.LocalState.of(os.stat(self._place.within(relative)))


@dataclass
class _FolderReached(Reached):
    paths: list[str] = field(default_factory=list)  # of the documents
    num_read: int = 0  # files


class FolderPass(ReadingPass):
    """One pass over a folder of texts: each file that is not skipped is a document.

    Parameters
    ----------
    folder : Folder
        The folder.
    counts : ReadCounts
        Receives the counts and the paths of skipped files.
    """

    starts: ClassVar[list[int]] = [0]  # of each file that holds documents, as `LinePass` has it

    def __init__(self, folder: Folder, counts: ReadCounts) -> None:
        self._folder, self._counts = folder, counts
        self.reached: _FolderReached = _FolderReached()

    def blocks(self) -> Iterator[Block]:
        """Yield the documents; after `restore`, the next ones."""
        return gathered(self._records())

    def _records(self) -> Iterator[Record]:
        folder = self._folder
        paths = folder.paths()[self.reached.num_read :]
        for relative, content in zip(folder.passed(paths), folder.contents(paths)):
            self.reached.num_read += 1
            try:
                text = folder.text(relative, content, self._counts)
            except InputError:
                if not folder.options.skip_bad:
                    raise
                self._counts.skip(os.fsencode(relative) + b"\n")
            else:
                self.reached.paths.append(relative)
                yield _document(relative, text)

    @property
    def count(self) -> int:
        """The number of documents."""
        return len(self.reached.paths)

    def at(self, positions: Array) -> Iterator[Block]:
        """Yield the documents at some positions, which ascend."""
        folder = self._folder
        folder.check_unchanged()
        some, counts = [self.reached.paths[position] for position in positions.tolist()], ReadCounts()
        found = zip(folder.passed(some), folder.contents(some))
        return gathered(_document(relative, folder.text(relative, content, counts)) for relative, content in found)

    def write_kept(self, keep: Flags, target: FolderTarget, report: Callable[[], object], edits: Edits) -> None:
        """Copy the files that are kept, or write them with shortened texts; call `report` between files."""
        folder = self._folder
        folder.check_unchanged()
        for relative, stays in zip(folder.passed(self.reached.paths), keep.tolist()):
            own = next(edits.cuts) if stays and edits.cuts is not None else None
            if own is not None:
                with target.file(relative, compression.of_path(relative)) as file:
                    file.write(folder.shortened(relative, own))
            elif stays:
                target.copy(folder.within(relative), relative)
            report()
        folder.check_unchanged()


def _document(relative: str, text: bytes) -> Record:
    return Record(os.fsencode(relative), text, os.fsencode(os.path.dirname(relative)))
