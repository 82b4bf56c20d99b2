"""The files that a command reads: checking them against those it writes, opening them, and their texts as a stream.

What a command does with its documents is not known here.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from lsh import files
from lsh._batch import Batch
from lsh._texts import Pieces
from lsh.command.options import Reading

NO_TEXT = -1  # the size of a text that is missing


def check_files(
    read: Sequence[tuple[str, str]],
    written: Sequence[tuple[str, str | None]],
    folders: bool = True,
    into_folder: bool = False,
) -> None:
    """Check that no file is both read and written, or written twice, and that each can be written.

    Parameters
    ----------
    read, written : sequence of tuple
        What the help calls a file, and its path; ``None`` for one that is not asked for.
    folders : bool, optional
        Whether a folder can be read.
    into_folder : bool, optional
        Whether OUTPUT can be a folder, with a file for each INPUT: if it ends in a slash, or there are several.
    """
    read = [(name, one) for name, path in read for one in files.expanded([path])]
    if sum(path == files.STANDARD for _, path in read) > 1:
        raise ValueError("standard input can be read once; give - for one of the files only")
    targets = [(name, path) for name, path in written if path is not None]
    from_folder = any(path != files.STANDARD and os.path.isdir(path) for name, path in read if name == "INPUT")
    several = sum(name == "INPUT" for name, _ in read) > 1
    for number, (name, path) in enumerate(targets):
        for other, source in read:
            if files.same_file(source, path):
                raise ValueError(f"{name} must not be {other} ({path}); write to another file")
        shards = into_folder and (path.endswith(os.sep) or (several and path != files.STANDARD and os.path.isdir(path)))
        _check_target(name, path, new_folder=name == "OUTPUT" and (from_folder or shards))
        for other, target in targets[:number]:
            if files.same_file(target, path) or target == path:
                raise ValueError(f"{name} must not be {other} ({path}); write to another file")
    for name, path in () if folders else read:
        if path != files.STANDARD and os.path.isdir(path):
            raise ValueError(f"{name} must be a file, got the folder {path}")


def _check_target(name: str, path: str, new_folder: bool) -> None:
    if path == files.STANDARD or (new_folder and os.path.isdir(path) and not os.listdir(path)):
        return  # an empty folder will do
    if new_folder and os.path.lexists(path):
        raise ValueError(f"{name} must be a new or an empty folder, got {path}; name another")
    if not path:
        raise ValueError(f"{name} must name a file, got an empty name")
    if os.path.isdir(path) or (path.endswith(os.sep) and not new_folder):
        raise ValueError(f"{name} must be a file, got the folder {path}")
    folder = os.path.dirname(os.path.realpath(path))
    if not files.is_stream(path):
        if not os.path.isdir(folder):
            raise ValueError(f"{name} must be in a folder that exists, got {path}")
        if not os.access(folder, os.W_OK):
            raise ValueError(f"{name} must be in a folder that can be written to, got {path}")


def open_documents(
    reading: Reading, paths: str | Sequence[str], rejects: files.Target | None = None
) -> files.Documents:
    """Return the documents of some files, to be closed by the caller."""
    return files.Documents(paths, rejects=rejects, **vars(reading))


class Ids(Sequence[bytes]):
    """The ids of many documents, in little more memory than their bytes."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._ends = array("q", [0])

    def extend(self, identities: Iterable[bytes]) -> None:
        """Add ids."""
        for identity in identities:
            self._bytes += identity
            self._ends.append(len(self._bytes))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, position: Any) -> Any:
        if not 0 <= position < len(self):
            raise IndexError(f"there are {len(self)} ids, got position {position}")
        return bytes(self._bytes[self._ends[position] : self._ends[position + 1]])


class Names(Sequence[bytes]):
    """A name for each of many documents, of which many have the same one, such as that of their source.

    Attributes
    ----------
    distinct : list of bytes
        The names, in the order of their first documents.
    """

    def __init__(self) -> None:
        self.distinct: list[bytes] = []
        self._number_of: dict[bytes, int] = {}
        self._numbers = array("i")

    def extend(self, names: Iterable[bytes]) -> None:
        """Add names."""
        for name in names:
            number = self._number_of.get(name)
            if number is None:
                number = self._number_of[name] = len(self.distinct)
                self.distinct.append(name)
            self._numbers.append(number)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, position: Any) -> Any:
        return self.distinct[self._numbers[position]]


class TextStream:
    """The texts of some files, read anew at each call; their ids, sizes and counts are noted at the first one.

    Parameters
    ----------
    documents : sequence of Documents
        The files, one after the other.
    with_ids, with_sizes, with_sources : bool
        Whether to note the ids, the size of each text, and where each is from.

    Attributes
    ----------
    ids : Ids
        By position; empty without `with_ids`.
    sizes : array of int
        The bytes of each text as UTF-8, -1 of a missing one; empty without `with_sizes`.
    sources : Names
        Where each text is from; empty without `with_sources`.
    count, num_bytes : int
        How many texts there are, and their bytes together.
    num_passes, position : int
        How often the files were opened, and how many of their bytes, packed where they are, were read since then.
    skipped, hidden : int
        How many lines or files were skipped, and hidden files passed over.
    """

    def __init__(
        self,
        documents: Sequence[files.Documents],
        with_ids: bool = True,
        with_sizes: bool = False,
        with_sources: bool = False,
    ) -> None:
        self._documents, self._is_noted = documents, False
        self._with_ids, self._with_sizes, self._with_sources = with_ids, with_sizes, with_sources
        self.ids, self.sizes, self.sources = Ids(), array("q"), Names()
        self.count = self.num_bytes = self.skipped = self.hidden = 0
        self.num_passes = self.position = 0
        self._size: int | None = None

    def __call__(self) -> Pieces:
        first_time, self._is_noted = not self._is_noted, True
        self._begin()
        return Pieces(files.prefetched(self._batches(first_time)))

    @property
    def size(self) -> int:
        """The bytes of the files, packed where they are."""
        if self._size is None:
            self._size = sum(documents.size for documents in self._documents)
        return self._size

    def _begin(self) -> None:
        self.num_passes, self.position = self.num_passes + 1, 0

    def _batches(self, first_time: bool) -> Iterator[Batch]:
        for block in self._blocks():
            if first_time:
                self._note(block)
            yield block.texts
        self.position = self.size
        if first_time:
            self.skipped = sum(documents.skipped for documents in self._documents)
            self.hidden = sum(documents.hidden for documents in self._documents)

    def _blocks(self) -> Iterator[files.Block]:
        before = 0
        for documents in self._documents:
            for block in documents.blocks():
                self.position = before + documents.position
                yield block
            before += documents.size

    def _note(self, block: files.Block) -> None:
        self.count += len(block.texts)
        self.num_bytes += int(block.texts.sizes().sum())
        if self._with_ids:
            self.ids.extend(block.ids())
        if self._with_sizes:
            self.sizes.frombytes(block.texts.sizes(NO_TEXT).tobytes())
        if self._with_sources:
            self.sources.extend(block.sources())

    def at(
        self, positions: Iterable[int], report: Callable[[], object] = lambda: None
    ) -> Iterator[tuple[int, bytes | None]]:
        """Yield some positions and the texts there, in ascending order; `report` is called between blocks."""
        wanted, first = sorted(set(positions), reverse=True), 0
        self._begin()
        for block in self._blocks() if wanted else ():
            report()
            stop = first + len(block.texts)
            while wanted and wanted[-1] < stop:
                position = wanted.pop()
                yield position, block.texts.tolist(position - first, position - first + 1)[0]
            if not wanted:
                return
            first = stop
