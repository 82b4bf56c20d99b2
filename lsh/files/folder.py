"""A folder of text files: each file is a document, and its path within the folder is the id.

Folders within are read, too; what is hidden, by a dot at the start of its name or of a folder's, is passed over, and
counted, unless the pattern begins with a dot. A file that is compressed, by the ending of its name, is read unpacked.
Kept files are copied as they are. What the texts are for is not known here.
"""

from __future__ import annotations

import codecs
import fnmatch
import os
from collections.abc import Callable, Iterator

from lsh.files import compression
from lsh.files.records import Block, InputError, ReadCounts, ReadOptions, Record, gathered, undecodable, utf8
from lsh.files.storage import FolderTarget

EVERY = "*"  # the pattern of a folder where none is given
State = tuple[int, int]  # bytes, nanoseconds of the last change


class Folder:
    """The documents of a folder, in the order of their paths.

    Parameters
    ----------
    path : str
        The folder.
    pattern : str
        Which files are read: their names, or their paths within the folder, match it as in a shell.
    options : ReadOptions
        How they are read.
    counts : ReadCounts
        Receives what is counted, and the paths of the files that are skipped.
    """

    def __init__(self, path: str, pattern: str, options: ReadOptions, counts: ReadCounts) -> None:
        self._path, self._pattern, self._options, self._counts = path, pattern, options, counts
        self._files: dict[str, State] | None = None
        self.position = 0  # bytes of the files that have been read since they were listed last

    @property
    def size(self) -> int:
        """The bytes of all files."""
        found = self._found() if self._files is None else self._files
        return sum(size for size, _ in found.values())

    def blocks(self) -> Iterator[Block]:
        """Yield the documents."""
        return gathered(self._records())

    def _records(self) -> Iterator[Record]:
        self._counts.start()
        for relative, text in self._texts(self._listing()):
            if isinstance(text, InputError):
                self._counts.skip(os.fsencode(relative) + b"\n")
            else:
                yield Record(os.fsencode(relative), text, os.fsencode(os.path.dirname(relative)))

    def write_kept(self, is_kept: Callable[[], bool], target: FolderTarget) -> None:
        """Copy the files that are kept; `is_kept` is called once for each document."""
        documents = self._listing()
        if self._options.skip_bad:
            documents = (path for path, text in self._texts(documents) if not isinstance(text, InputError))
        for relative in documents:
            if is_kept():
                target.copy(os.path.join(self._path, relative), relative)

    def _texts(self, listing: Iterator[str]) -> Iterator[tuple[str, bytes | InputError]]:
        """Yield each file with its text, or with what is wrong with it where that is to be skipped."""
        for relative in listing:
            text: bytes | InputError
            try:
                text = self._text(relative)
            except InputError as error:
                if not self._options.skip_bad:
                    raise
                text = error
            yield relative, text

    def _text(self, relative: str) -> bytes:
        path = os.path.join(self._path, relative)
        packed = compression.of_path(relative)
        with open(path, "rb") as file:
            try:
                content = (compression.unpacked(file, packed) if packed else file).read()
            except compression.DamagedError as error:
                problem = f"damaged {compression.NAMES[packed]} ({error}); create it anew"
                raise InputError(path, problem) from error
        if self._options.encoding == "utf-8":
            return content.removeprefix(codecs.BOM_UTF8)
        try:
            return utf8(content.decode(self._options.encoding).removeprefix("\ufeff"))
        except UnicodeError as error:
            raise InputError(path, undecodable(self._options.encoding, error)) from None

    def _listing(self) -> Iterator[str]:
        """Return the paths within the folder; the files must be as they were when they were listed first."""
        found = self._found()
        if self._files not in (None, found):
            raise InputError(self._path, "it changed while it was read; run again when nothing writes to it")
        self._files, self.position = found, 0
        return self._passed(found)

    def _passed(self, found: dict[str, State]) -> Iterator[str]:
        """Yield the paths, and count the bytes of the files that are done with."""
        for relative, (size, _) in found.items():
            yield relative
            self.position += size

    def _found(self) -> dict[str, State]:
        names = []
        hidden = 0
        for folder, _, files in os.walk(self._path, onerror=_fail):
            within = os.path.relpath(folder, self._path)
            for name in files:
                relative = name if within == os.curdir else f"{within}{os.sep}{name}".replace(os.sep, "/")
                matches = fnmatch.fnmatchcase(relative, self._pattern) or fnmatch.fnmatchcase(name, self._pattern)
                if not matches or not os.path.isfile(os.path.join(folder, name)):
                    continue
                if "/." in f"/{relative}" and not self._pattern.startswith("."):
                    hidden += 1
                else:
                    names.append(relative)
        self._counts.hidden = hidden
        if not names and self._pattern != EVERY:
            raise InputError(self._path, f"no file matches the pattern {self._pattern!r}; correct --pattern")
        states = {}
        for relative in sorted(names):
            state = os.stat(os.path.join(self._path, relative))
            states[relative] = (state.st_size, state.st_mtime_ns)
        return states


def _fail(error: OSError) -> None:
    raise error
