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
from lsh.files.records import Block, InputError, ReadCounts, ReadOptions, Record, gathered, utf8
from lsh.files.storage import FolderTarget, Target

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
    rejects : Target, optional
        Receives the paths of the files that are skipped, once, however often the documents are read.
    """

    def __init__(self, path: str, pattern: str, options: ReadOptions, rejects: Target | None) -> None:
        self._path, self._pattern, self._options, self._rejects = path, pattern, options, rejects
        self._files: dict[str, State] | None = None
        self._rejected = self._hidden = 0
        self.counts = ReadCounts()

    def blocks(self) -> Iterator[Block]:
        """Yield the documents."""
        return gathered(self._records())

    def _records(self) -> Iterator[Record]:
        self.counts = counts = ReadCounts()
        listing = self._listing()
        counts.hidden = self._hidden
        for relative, text in self._texts(listing):
            if not isinstance(text, InputError):
                yield Record(os.fsencode(relative), text, os.fsencode(os.path.dirname(relative)))
                continue
            counts.skipped += 1
            if self._rejects is not None and counts.skipped > self._rejected:
                self._rejects.write(os.fsencode(relative) + b"\n")
                self._rejected = counts.skipped

    def write_kept(self, flags: Callable[[], bool], target: FolderTarget) -> None:
        """Copy the files whose flag is true."""
        if not self._options.skip_bad:
            kept = (relative for relative in self._listing() if flags())
        else:
            texts = self._texts(self._listing())
            kept = (relative for relative, text in texts if not isinstance(text, InputError) and flags())
        for relative in kept:
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
        except UnicodeDecodeError as error:
            expected, byte = self._options.encoding, content[error.start]
            raise InputError(path, f"expected {expected}, got byte 0x{byte:02x}; correct it or the encoding") from None

    def _listing(self) -> Iterator[str]:
        """Return the paths within the folder; the files must be as they were when they were listed first."""
        found = self._found()
        if self._files not in (None, found):
            raise InputError(self._path, "it changed while it was read; run again when nothing writes to it")
        self._files = found
        return iter(found)

    def _found(self) -> dict[str, State]:
        names = []
        self._hidden = 0
        for folder, _, files in os.walk(self._path, onerror=_fail):
            within = os.path.relpath(folder, self._path)
            for name in files:
                relative = name if within == os.curdir else f"{within}{os.sep}{name}".replace(os.sep, "/")
                matches = fnmatch.fnmatchcase(relative, self._pattern) or fnmatch.fnmatchcase(name, self._pattern)
                if not matches or not os.path.isfile(os.path.join(folder, name)):
                    continue
                if "/." in f"/{relative}" and not self._pattern.startswith("."):
                    self._hidden += 1
                else:
                    names.append(relative)
        if not names and self._pattern != EVERY:
            raise InputError(self._path, f"no file matches the pattern {self._pattern!r}; correct --pattern")
        states = {}
        for relative in sorted(names):
            state = os.stat(os.path.join(self._path, relative))
            states[relative] = (state.st_size, state.st_mtime_ns)
        return states


def _fail(error: OSError) -> None:
    raise error
