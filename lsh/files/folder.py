"""A folder of texts: each file is a document, and its path within the folder is the id.

`finding` tells which files are read. A file whose name ends in .gz, .bz2, .xz or .zst is unpacked. Kept files are
copied unchanged.
"""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Callable, Iterator

from lsh.files import compression, urls
from lsh.files.finding import list_folder
from lsh.files.marks import check_mark, note_bytes
from lsh.files.records import Block, InputError, ReadCounts, ReadOptions, Record, gathered, undecodable, utf8
from lsh.files.storage import FolderTarget, contents, within

State = tuple[int | None, int | str]  # size in bytes, time of the last change or what else tells a change


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
        self._path, self._name, self._pattern = path, urls.shown(path), pattern
        self._options, self._counts = options, counts
        self._files: dict[str, State] | None = None
        self.position = 0  # bytes of the files that have been read since they were listed last

    @property
    def size(self) -> int:
        """The bytes of all files."""
        found = self._found() if self._files is None else self._files
        return sum(size or 0 for size, _ in found.values())

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
                target.copy(within(self._path, relative), relative)

    def _texts(self, listing: Iterator[str]) -> Iterator[tuple[str, bytes | InputError]]:
        """Yield each file with its text, or with the error of a file that is to be skipped."""
        whole = contents([within(self._path, relative) for relative in self._files or ()])
        for relative, content in zip(listing, whole):
            text: bytes | InputError
            try:
                text = self._text(relative, content)
            except InputError as error:
                if not self._options.skip_bad:
                    raise
                text = error
            yield relative, text

    def _text(self, relative: str, content: bytes) -> bytes:
        """Return the text of a file of some bytes."""
        path = within(self._name, relative)
        packed = compression.of_path(relative)
        if packed:
            try:
                content = compression.unpacked(io.BytesIO(content), packed).read()
            except compression.DamagedError as error:
                raise InputError(path, f"{compression.corrupt(packed, error)}; create it anew") from error
        encoding = self._options.encoding
        if encoding == "utf-8":
            if not self._options.encoding_given:
                check_mark(content, path)
            note_bytes(self._counts, content, path)
            return content.removeprefix(codecs.BOM_UTF8)
        try:
            return utf8(content.decode(encoding).removeprefix("\ufeff"))
        except UnicodeError as error:
            remedy = "give the right --encoding, or use --on-bad-line skip"
            raise InputError(path, f"{undecodable(encoding, error)}; {remedy}") from None

    def _listing(self) -> Iterator[str]:
        """Return the paths within the folder; the files must not have changed since they were listed first."""
        found = self._found()
        if self._files not in (None, found):
            raise InputError(self._name, "the folder changed while it was read; run again when nothing writes to it")
        self._files, self.position = found, 0
        return self._passed(found)

    def _passed(self, found: dict[str, State]) -> Iterator[str]:
        """Yield the paths, and count the bytes of the files that have been read."""
        for relative, (size, _) in found.items():
            yield relative
            self.position += size or 0

    def _found(self) -> dict[str, State]:
        found, self._counts.hidden = list_folder(self._path, self._pattern)
        return {name: self._state(name) if state is None else state for name, state in found.items()}

    def _state(self, relative: str) -> State:
        state = os.stat(os.path.join(self._path, relative))
        return state.st_size, state.st_mtime_ns
