"""A folder of texts: each file is a document, and its path within the folder is the id.

`finding` tells which files are read. A file whose name ends in .gz, .bz2, .xz or .zst is unpacked. Kept files are
copied unchanged.
"""

from __future__ import annotations

import codecs
import io
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from lsh.base.arrays import Array
from lsh.base.errors import InputError, Parameter
from lsh.files.blocks import check_mark, note_bytes
from lsh.files.finding import list_folder
from lsh.files.places import Flags
from lsh.files.records import SKIP, Block, ReadCounts, ReadOptions, Record, gathered, undecodable, utf8
from lsh.storage import compression, disk, remote, urls
from lsh.storage.locations import contents, location
from lsh.storage.targets import FolderTarget
from lsh.text.cuts import without

State = disk.LocalState | remote.RemoteState


class Folder:
    """The documents of a folder, in the order of their paths.

    Parameters
    ----------
    path : str
        The folder.
    pattern : str, optional
        Which files are read: their names, or their paths within the folder, match it as in a shell.
    options : ReadOptions
        How the documents are read.
    counts : ReadCounts
        Receives the counts and the paths of skipped files.
    """

    def __init__(self, path: str, pattern: str | None, options: ReadOptions, counts: ReadCounts) -> None:
        self._path, self._pattern = path, pattern
        self._place, self._shown = location(path), location(urls.shown(path))  # the second for messages
        self._options, self._counts = options, counts
        self._files: dict[str, State] | None = None
        self._known: list[str] | None = None  # the paths of all documents, after a reading
        self._found_paths: list[str] = []  # those of the first reading, while it goes on
        self._num_read = self._num_taken = 0  # files of the first reading, and paths that `taken` returned
        self._is_begun = False  # whether `blocks` goes on with the first reading
        self.position = 0  # bytes of the files that have been read since they were listed last

    @property
    def size(self) -> int:
        """The bytes of all files."""
        found = self._found() if self._files is None else self._files
        return sum(state.size or 0 for state in found.values())

    def states(self) -> dict[str, tuple[Any, ...] | None]:
        """Return by the path of each file what another run compares to tell whether it changed."""
        self._check_unchanged()
        return {self._place.within(name): tuple(state)[:2] for name, state in (self._files or {}).items()}

    def blocks(self) -> Iterator[Block]:
        """Yield the documents; after `restore`, the next ones."""
        return gathered(self._records())

    def _records(self) -> Iterator[Record]:
        if not self._is_begun:
            self._counts.start()
        yield from self._documents(self._counts)

    def _documents(self, counts: ReadCounts) -> Iterator[Record]:
        first, self._is_begun = self._num_read if self._is_begun else 0, False
        self._found_paths = self._found_paths if first else []
        for number, (relative, text) in enumerate(self._texts(self._listing(first), first, counts), first + 1):
            self._num_read = number
            if isinstance(text, InputError):
                counts.skip(os.fsencode(relative) + b"\n")
            else:
                self._found_paths.append(relative)
                yield _document(relative, text)
        self._known = self._found_paths

    def taken(self) -> tuple[Any, list[Array]]:
        """Return what `restore` needs of the first reading, as far as it has come: what is new since the last call."""
        paths, self._num_taken = self._found_paths[self._num_taken :], len(self._found_paths)
        return {"paths": paths, "read": self._num_read}, []

    def restore(self, state: Any, arrays: Sequence[Array], ended: bool) -> None:
        """Add to the first reading what `taken` returned, call by call; `blocks` goes on there, unless it has ended."""
        self._found_paths += state["paths"]
        self._num_read, self._num_taken, self._is_begun = state["read"], len(self._found_paths), not ended
        self._known = self._found_paths if ended else None

    def _paths(self) -> list[str]:
        """Return the paths of all documents; they are read if that has not been done."""
        if self._known is None and self._is_begun:
            return self._found_paths
        if self._known is None:
            deque(self._documents(ReadCounts()), 0)
        return self._known or []

    @property
    def count(self) -> int:
        """The number of documents."""
        return len(self._paths())

    def at(self, positions: Array) -> Iterator[Block]:
        """Yield the documents at some positions, which ascend."""
        paths = self._paths()
        self._check_unchanged()
        some, counts = [paths[position] for position in positions.tolist()], ReadCounts()
        found = zip(self._passed(some), self._contents(some))
        return gathered(_document(relative, self._text(relative, content, counts)) for relative, content in found)

    def _contents(self, paths: Iterable[str]) -> Iterator[bytes]:
        return contents([self._place.within(relative) for relative in paths])

    def write_kept(
        self, keep: Flags, target: FolderTarget, report: Callable[[], object], cuts: Iterator[Array | None] | None
    ) -> None:
        """Copy the files that are kept, or write them with shortened texts; call `report` between files."""
        paths = self._paths()
        self._check_unchanged()
        for relative, stays in zip(self._passed(paths), keep.tolist()):
            own = next(cuts) if stays and cuts is not None else None
            if own is not None:
                with target.file(relative, compression.of_path(relative)) as file:
                    file.write(self._shortened(relative, own))
            elif stays:
                target.copy(self._place.within(relative), relative)
            report()
        self._check_unchanged()

    def _texts(
        self, listing: Iterator[str], first: int, counts: ReadCounts
    ) -> Iterator[tuple[str, bytes | InputError]]:
        """Yield each file from one on with its text, or with the error of a file that is to be skipped."""
        for relative, content in zip(listing, self._contents(list(self._files or ())[first:])):
            text: bytes | InputError
            try:
                text = self._text(relative, content, counts)
            except InputError as error:
                if not self._options.skip_bad:
                    raise
                text = error
            yield relative, text

    def _shortened(self, relative: str, cuts: Array) -> bytes:
        """Return the content of a file, unpacked and in its encoding, with its text without some runs."""
        content, encoding = self._unpacked(relative, next(self._contents([relative]))), self._options.codec
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

    def _text(self, relative: str, content: bytes, counts: ReadCounts) -> bytes:
        """Return the text of a file of some bytes."""
        path, content = self._shown.within(relative), self._unpacked(relative, content)
        encoding = self._options.codec
        if encoding == "utf-8":
            if self._options.encoding is None:
                check_mark(content, path)
            note_bytes(counts, content, path)
            return content.removeprefix(codecs.BOM_UTF8)
        try:
            return utf8(content.decode(encoding).removeprefix("\ufeff"))
        except UnicodeError as error:
            remedy = "give the right " + Parameter("encoding") + ", or use " + SKIP
            raise InputError(path, f"{undecodable(encoding, error)}; " + remedy) from None

    def _listing(self, first: int) -> Iterator[str]:
        """Return the paths within the folder, from one on; the files must not have changed since the first listing."""
        self._check_unchanged()
        return self._passed(list(self._files or ())[first:])

    def _check_unchanged(self) -> None:
        found = self._found()
        if self._files not in (None, found):
            raise InputError(
                self._shown.path, "the folder changed while it was read; run again when nothing writes to it"
            )
        self._files = found

    def _passed(self, paths: Iterable[str]) -> Iterator[str]:
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


def _document(relative: str, text: bytes) -> Record:
    return Record(os.fsencode(relative), text, os.fsencode(os.path.dirname(relative)))
