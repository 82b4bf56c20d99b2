"""The files that a command reads: checking them against those it writes, opening them, and streaming their texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from typing import TypeVar, cast

import numpy as np

from lsh import files
from lsh.base import signals
from lsh.base.arrays import Array
from lsh.base.budget import MemoryBudget
from lsh.base.errors import InputError, Words, message
from lsh.files import ReadOptions
from lsh.storage.journal import Journal
from lsh.terminal import console
from lsh.terminal.noted import NO_KEYS, Names, Priorities, first_repeated
from lsh.terminal.options import RunOptions
from lsh.text.batch import Batch, content_keys
from lsh.text.collections import TextSource
from lsh.typing import Pieces

INDEX_MAGIC = b"lsh-mani"  # begins the manifest of an index; lsh.segments.file_format, which has it, is slow to import
NO_TEXT = -1  # the size of a missing text
MAX_SHOWN_ID = 40  # bytes of an id in a message
MAX_OWN = 1 << 26  # bytes of memory for the places of records and the hashes of ids under --max-memory
MALLOPT = (-1, -3)  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc's malloc.h
MAX_KEPT = 1 << 24  # bytes of freed memory that a thread keeps, more than the blocks that wait


# Options of reading the items of lsh contained.
OF_ITEMS = {"field": "item_field", "id_field": "item_id_field", "delimiter": "item_delimiter"}
NO_NAMES = np.empty(0, np.int32)

Item = TypeVar("Item")


def check_files(
    read: Sequence[tuple[str, files.Place]],
    written: Sequence[tuple[str, str | None]],
    reading: ReadOptions | None = None,
    folders: bool = True,
    makes_folders: bool = False,
) -> None:
    """Check that no file is both read and written, or written twice, and that each can be written.

    Parameters
    ----------
    read : sequence of tuple
        The name of a file in the help, and the file; see `files.expanded`.
    written : sequence of tuple
        The name of a file in the help, and its path or URL; ``None`` for a file that is not written.
    reading : ReadOptions, optional
        How files are read: its pattern needs a folder.
    folders : bool, optional
        Whether a folder can be read.
    makes_folders : bool, optional
        Whether missing folders are made (see `made_folders`), and OUTPUT can be a folder, with a file for each INPUT:
        if it ends in a slash, or there are several.
    """
    _check_read(read, reading, folders)
    targets = [(name, path) for name, path in written if path is not None]
    with_urls = any(files.is_url(path) for _, path in targets)
    named = [(name, place.path) for name, place in read if with_urls or not files.is_url(place.path)]
    owners = {files.identity(path): (name, path) for name, path in reversed(named)}  # of several the first
    first = [place for name, place in read if name == "INPUT"]
    output = next((path for name, path in targets if name == "OUTPUT"), None)
    for name, path in targets:
        shown, key = files.shown(path), files.identity(path, written=True)
        other, source = owners.setdefault(key, (name, path))
        if path == files.STANDARD != source and (other, source) not in targets:
            raise ValueError(
                f"standard output must not be {other} ({files.shown(source)}); redirect it to another file"
            )
        if other != name:
            raise ValueError(f"{name} must not be {other} ({shown}); write to another file")
        for other, place in read:
            if place.is_folder and files.lies_in(path, place.path):
                inside = files.shown(place.path)
                raise ValueError(f"{name} must not lie in {other} ({inside}), got {shown}; name a place elsewhere")
        new_folder = makes_folders and name == "OUTPUT" and files.becomes_folder(first, path)
        if output is not None and not new_folder:
            _check_outside(name, path, output)
        _check_target(name, files.local(path), new_folder, makes_folders)


def _check_read(read: Sequence[tuple[str, files.Place]], reading: ReadOptions | None, folders: bool) -> None:
    """Check files by themselves that are read."""
    if reading is not None and reading.pattern is not None and not any(place.is_folder for _, place in read):
        raise ValueError("--pattern chooses files of a folder, and no folder is read; leave it out")
    if sum(place.path == files.STANDARD for _, place in read) > 1:
        raise ValueError("standard input can be read only once; give - for one of the files only")
    pipes = [pipe for _, place in read if (pipe := files.pipe_of(place.path)) is not None]
    if len(set(pipes)) < len(pipes):
        raise ValueError("a pipe can be read only once; name it, or - for standard input, for one of the files only")
    for name, place in () if folders else read:
        if place.is_folder:
            raise ValueError(f"{name} must be a file, got the folder {files.shown(place.path)}")


def _check_outside(name: str, path: str, output: str) -> None:
    """Check that a local file does not lie in OUTPUT, if that is a folder which does not exist yet."""
    folder = os.path.realpath(files.local(output))
    is_within = os.path.realpath(files.local(path)).startswith(folder + os.sep)
    if is_within and not files.is_url(path) and not os.path.lexists(folder):
        problem = f"lies in OUTPUT, a folder that appears when it is complete, got {path}"
        raise ValueError(f"{name} {problem}; make the folder first (mkdir {output}), or name a place elsewhere")


def _check_target(name: str, path: str, new_folder: bool, makes_folders: bool) -> None:
    shown = files.shown(path)
    if path == files.STANDARD:
        return
    if not path:
        raise ValueError(f"{name} must name a file, got an empty name")
    if new_folder and files.has_files(path):
        raise ValueError(f"{name} must be a new or an empty folder, got {shown}; name another")
    if files.is_url(path):
        _check_upload(path, new_folder)
    if new_folder and files.is_folder(path):
        return  # an empty folder is allowed
    if not new_folder and (files.names_folder(path) or files.is_folder(path)):
        raise ValueError(f"{name} must be a file, got the folder {shown}")
    folder = os.path.dirname(os.path.realpath(path))
    if not files.is_stream(path) and not files.is_url(path):
        while makes_folders and not os.path.lexists(folder):
            folder = os.path.dirname(folder)
        if not os.path.isdir(folder):
            wanted = os.path.dirname(os.path.normpath(path))
            raise ValueError(f"{name} must be in a folder that exists, got {path}; make it first (mkdir -p {wanted})")
        if not os.access(folder, os.W_OK):
            raise ValueError(f"{name} must be in a folder that can be written to, got {path}")


@contextmanager
def made_folders(paths: Iterable[str | None]) -> Iterator[None]:
    """Make the missing folders of local files to write; after an error those that are empty are removed again."""
    made: list[str] = []
    try:
        for path in filter(None, paths):
            missing, folder = [], os.path.dirname(os.path.realpath(files.local(path)))
            if path == files.STANDARD or files.is_url(files.local(path)):
                continue
            while not os.path.lexists(folder):
                missing.append(folder)
                folder = os.path.dirname(folder)
            for one in reversed(missing):
                with suppress(FileExistsError):  # another process makes it, too
                    os.mkdir(one)
                    made.append(one)
        yield
    except BaseException:  # an interrupt, too
        for one in reversed(made):
            with suppress(OSError):
                os.rmdir(one)
        raise


def _check_upload(url: str, new_folder: bool) -> None:
    """Check that a URL can be written to, also a folder: with the name of a file in it."""
    try:
        files.check_target(url if not new_folder else f"{url.rstrip('/')}/file")
    except OSError as error:
        error.filename = files.shown(url)
        raise


def note_memory(written: Iterable[str | None], quiet: bool) -> None:
    """Print a note if a file is written to the memory of this process, with which it disappears."""
    for path in written:
        if path is not None and not quiet and path.lower().startswith("memory://"):
            console.say(f"{path} is in the memory of this process and disappears with it: for tests and notebooks")
            return


def check_table(name: str, path: str | None, lines_of_json: str | None = None) -> None:
    """Check that the name of a table does not end in another format; or of what is said to be lines of JSON."""
    ending, wanted = None if path is None else files.Format.of_path(path), "jsonl" if lines_of_json else "tsv"
    content = f"{lines_of_json} lines of JSON" if lines_of_json else "tables are tab-separated"
    if ending is not None and ending.name not in (wanted, "txt"):
        raise ValueError(f"{name}: {content}, got the name {path}; give it a name that ends in .{wanted}")


def check_output(documents: files.Documents, output: str | None) -> None:
    """Check that the name of OUTPUT suits the format of INPUT."""
    if output is None or output == files.STANDARD or files.names_folder(output) or files.is_folder(output):
        return
    shown, format = files.shown(output), documents.format
    if format.name == files.FOLDER:
        if files.has_ending_of_files(output):
            folder, name = os.path.split(output)
            remedy = os.path.join(folder, name.partition(".")[0] or "out", "")
            raise ValueError(f"{shown}: INPUT is a folder of texts, so OUTPUT is a new folder; write -o {remedy}")
        return
    endings, given = format.endings(), files.Format.of_path(output)
    if given is not None and given.name != format.name:
        packed = f".{format.name}.{given.compression}"
        wanted = packed if packed in endings else endings[0]
        problem = f"the output has the format of the input, .{format.name}; give it a name that ends in {wanted}"
        raise ValueError(f"{shown}: {problem}")
    if given is None and not files.is_stream(output):
        _check_ending(documents, output)


def _check_ending(documents: files.Documents, output: str) -> None:
    """Check the name of OUTPUT, a file whose name does not say its format."""
    shown, endings, ending = files.shown(output), documents.format.endings(), files.unknown_ending(output)
    packings = [known.removeprefix(endings[0]) for known in endings]
    if ending not in (*packings, *(files.unknown_ending(file.path) for file in documents.inputs)):
        wanted = " or ".join([", ".join(endings[:-1]), endings[-1]] if len(endings) > 1 else endings)
        raise ValueError(f"{shown}: no file is written as {ending}; give it a name that ends in {wanted}")
    has_folder = any(place.is_folder for place in documents.named)
    if has_folder and not os.path.splitext(output)[1] and not os.path.lexists(files.local(output)):
        remedy = f"-o {shown}/ for as many files, or -o {shown}{endings[0]} for one"
        raise ValueError(f"{shown}: INPUT is a folder of files; write {remedy}")


def find(reading: ReadOptions, places: Sequence[files.Place], quiet: bool = False) -> files.Sources:
    """Return the files of a collection; a pattern is for folders. A note says which file is named twice."""
    for place in places:
        if place.is_folder and is_index(place.path):
            raise ValueError(
                f"{files.shown(place.path)} is an index, not a folder of documents; use lsh index merge, query, dedup "
                "or pairs, or --against-index"
            )
    pattern = reading.pattern if any(place.is_folder for place in places) else None
    sources = files.find_sources(places, reading.format, pattern)
    if sources.repeated and not quiet:
        more = f", and {len(sources.repeated) - 1:,} more" if len(sources.repeated) > 1 else ""
        console.say(f"{files.shown(sources.repeated[0])}{more}: named twice, read once")
    return sources


def shared_file(first: files.Sources, second: files.Sources) -> str | None:
    """Return the name of a file that is in both collections, ``None`` if there is none."""
    known = {files.identity(source.path) for source in first.found if source.path != files.STANDARD}
    return next((files.shown(one.path) for one in second.found if files.identity(one.path) in known), None)


def is_index(folder: str) -> bool:
    """Tell whether a folder holds an index; one at a URL does not."""
    with suppress(OSError), open(os.path.join(files.local(folder), "manifest"), "rb") as file:
        return file.read(len(INDEX_MAGIC)) == INDEX_MAGIC
    return False


def named(name: str, places: Sequence[files.Place]) -> list[tuple[str, files.Place]]:
    """Return files with their name in the help, for `check_files`."""
    return [(name, place) for place in places]


def own_budget(running: RunOptions, bounded: bool = False) -> MemoryBudget:
    """Return the budget of what a command holds of the documents, in addition to `lsh.deduplicate`.

    Without --max-memory it has a bound if it is `bounded`.
    """
    if running.max_memory is None:
        _keep_freed_memory()
        return MemoryBudget(MAX_OWN if bounded else None, running.temp_dir)
    return MemoryBudget(min(running.max_memory // 8, MAX_OWN), running.temp_dir)


def _keep_freed_memory() -> None:
    """Let the C library use the memory of blocks again; else it returns that of a thread to the system each time."""
    import ctypes

    with suppress(AttributeError, OSError, TypeError):  # glibc only
        for option in MALLOPT:
            ctypes.CDLL(None).mallopt(option, MAX_KEPT)


def open_documents(
    reading: ReadOptions,
    sources: files.Sources,
    rejects: files.Target | None = None,
    others: Sequence[files.Sources] = (),
    budget: MemoryBudget | None = None,
    null_ids: bool = True,
    added: Sequence[files.Added] = (),
) -> files.Documents:
    """Open documents, which the caller closes.

    An option counts for the files that have a use for it: a pattern for folders, others by the format. It is an error
    if neither these files nor `others`, the other files of the command, have a use for it.
    """
    formats = [other.found[0].format.name for other in others]
    own = replace(reading, null_ids=null_ids, added=tuple(added))
    return files.Documents(sources, own, rejects=rejects, others=formats, budget=budget)


class Notes:
    """Prints the notes on how documents are read, each once and after the prefix; ``None``: it prints none."""

    def __init__(self, prefix: str | None) -> None:
        self._prefix, self._printed = prefix, set[Words]()

    def say(self, documents: files.Documents) -> None:
        """Print the notes that have not been printed."""
        for note in documents.counts.notes if self._prefix is not None else ():
            if note not in self._printed:
                self._printed.add(note)
                console.say(message(self._prefix or "") + note)


class TextStream(TextSource):
    """The texts of some files, which are parsed at the first call; sizes, sources and counts are noted then.

    Later, texts and ids are read by their positions, and the other documents are not parsed.

    Parameters
    ----------
    documents : sequence of Documents
        The files, in order.
    with_ids, with_sizes, with_sources : bool
        Whether ids are used, and whether to note the size and the source of each text.
    priorities : Priorities, optional
        Receives the value of each document by which it is ranked.
    notes : str, optional
        Print notes on the reading (which column is the text, ids that repeat) to standard error, each after this
        prefix. Default: print none.
    budget : MemoryBudget, optional
        Allocates the memory that grows with the number of documents. Default: without a bound.
    journal : Journal, optional
        Has what a run that was killed has noted, and receives what this one notes.

    Attributes
    ----------
    sizes : SpilledColumn
        The bytes of each text as UTF-8, int64, -1 of a missing one; empty without `with_sizes`.
    sources : Names
        The source of each text; empty without `with_sources`.
    is_noted : bool
        Whether all that is noted is known, from a run that was killed or because the texts were read.
    count, num_bytes : int
        How many texts there are, and the sum of their sizes.
    num_passes, position : int
        How often the files were opened, and how many of their bytes, packed where they are, were read since then.
    skipped, hidden : int
        How many malformed lines or files were skipped, and how many hidden files were not read.
    """

    id_option = "--id-field"
    of_files = False  # whether an id is that of a file, and may occur in others

    def __init__(
        self,
        documents: Sequence[files.Documents],
        with_ids: bool = True,
        with_sizes: bool = False,
        with_sources: bool = False,
        priorities: Priorities | None = None,
        notes: str | None = None,
        budget: MemoryBudget | None = None,
        journal: Journal | None = None,
    ) -> None:
        self._documents, self.is_noted = documents, False
        self._prefix, self._notes = notes, Notes(notes)
        self._with_sizes, self._with_sources, self._priorities = with_sizes, with_sources, priorities
        budget = MemoryBudget() if budget is None else budget
        self._id_keys = budget.column(np.uint64)
        with_ids = with_ids and not (self.of_files and self.num_files > 1)
        are_compared = with_ids and (notes is not None or journal is not None)  # for a note, also of the next run
        self._secret = os.urandom(16) if are_compared else None
        self._is_called, self._num_names = False, 0  # names that the journal has
        self._journal, self._num_ended = journal, 0  # the second: collections of which all was noted
        self.sizes, self.sources = budget.column(np.int64), Names(budget)
        self.count = self.num_bytes = self.skipped = self.hidden = 0
        self.num_passes = self.position = 0
        self._size: int | None = None
        if journal is not None:
            self._restore(journal)

    def __call__(self, start: int = 0) -> Pieces:
        """Read all texts from one on."""
        is_first, self._is_called = not self._is_called, True
        first_time, self.is_noted = not self.is_noted, True
        parts: list[Iterator[Batch]] = []
        if first_time or start:
            known = np.arange(start, self.num_known)
            parts += [self.take(known)] if len(known) else []
        if first_time or not start:
            parts.append(self._shown(files.prefetched(self._batches(first_time))))
        batches = chain.from_iterable(parts)
        if is_first:
            self.count = start
            return Pieces(self._counted(batches))
        return Pieces(batches)

    def take(self, positions: Array) -> Iterator[Batch]:
        """Read the texts at some positions, which ascend."""
        blocks = self._blocks(positions.astype(np.int64))
        return self._shown(files.prefetched((place, block.texts) for place, block in blocks))

    def ids(self, positions: Array) -> files.Ids:
        """Read the ids at some positions."""
        wanted = np.unique(positions).astype(np.int64)
        return files.Ids(wanted, (block for _, block in self._blocks(wanted)))

    def named(self, positions: Array) -> Iterator[tuple[list[bytes], Sequence[bytes]]]:
        """Yield the ids and the sources of the documents at some positions, which ascend, by blocks."""
        for block in self._shown(files.prefetched(self._blocks(positions.astype(np.int64)))):
            yield cast(list[bytes], block.ids().tolist()), block.sources()

    def changed(self, position: int) -> Exception:
        """Return the error for a text that was another one when it was read again."""
        return files.changed(os.fsdecode(self.files_of(np.array([position]))[0]))

    def progress(self) -> tuple[int, int, int]:
        """Return how many texts were read first, from how many bytes of the files, and the size of the files."""
        return self.count, self.position, self.size

    @property
    def num_files(self) -> int:
        """The number of files; a folder of texts counts as one."""
        return sum(max(len(documents.inputs), 1) for documents in self._documents)

    def files_of(self, positions: Array) -> list[bytes]:
        """Return the name of the file that holds the document at each position."""
        names, first = np.empty(len(positions), np.object_), 0
        for documents in self._documents:
            here = (first <= positions) & (positions < first + documents.count)
            names[here] = documents.files_of(positions[here] - first)
            first += documents.count
        return list(map(os.fsencode, names))

    def at(
        self, positions: Iterable[int], report: Callable[[], object] = lambda: None
    ) -> Iterator[tuple[int, files.Record]]:
        """Yield some positions and the documents there, in ascending order; `report` is called between blocks."""
        wanted = np.unique(np.fromiter(positions, np.int64))
        done = 0
        for block in self._shown(self._blocks(wanted)):
            report()
            yield from zip(wanted[done : done + len(block.texts)].tolist(), block.records())
            done += len(block.texts)

    @property
    def size(self) -> int:
        """The bytes of the files, packed where they are."""
        if self._size is None:
            self._size = sum(documents.size for documents in self._documents)
        return self._size

    def _shown(self, read: Iterator[tuple[int, Item]]) -> Iterator[Item]:
        """Yield what is read; the position is the one that came with it, even if a thread has read more."""
        self.num_passes, self.position = self.num_passes + 1, 0
        for self.position, item in read:
            signals.check_ended()
            yield item
        self.position = self.size

    def _counted(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Count the texts here, as a thread is ahead of their position: see `progress`."""
        for batch in batches:
            self.count += len(batch)
            yield batch

    def _batches(self, first_time: bool) -> Iterator[tuple[int, Batch]]:
        for place, block in self._blocks(first_time=first_time):
            if first_time:
                self._note(block)
            yield place, block.texts
        if first_time:
            self._say_noted()

    def _blocks(self, positions: Array | None = None, first_time: bool = False) -> Iterator[tuple[int, files.Block]]:
        """Yield the documents at some positions, which ascend, ``None`` for all, and how many bytes were read then.

        In the first reading, `first_time`, they are those that were not noted before.
        """
        if positions is not None and not len(positions):
            return
        first = before = 0  # documents and bytes before those of the current collection
        for number, documents in enumerate(self._documents):
            if first_time and number < self._num_ended:
                blocks: Iterator[files.Block] = iter(())
            elif positions is None:
                blocks = documents.blocks()
            elif first > positions[-1]:  # a collection that was not read yet would be read now
                return
            else:
                stop = first + documents.count
                here = positions[slice(*np.searchsorted(positions, [first, stop]).tolist())]
                blocks, first = documents.at(here - first), stop
            for block in blocks:
                self._notes.say(documents)
                yield before + documents.position, block
            before += documents.size
            if first_time and self._journal is not None and number == self._num_ended:
                self._num_ended += 1
                self._write_journal(self._journal, documents, 0, [])

    def _restore(self, journal: Journal) -> None:
        """Go on from what a run noted that was killed; without one, begin the journal."""
        for documents in self._documents:
            documents.counts.is_journaled = True
        records = journal.records()
        secret, _ = next(records, (None, None))
        if secret is None:
            journal.append(self._secret or b"")
        elif self._secret is not None:
            self._secret = secret
        for (ended, count, size, names, reading), arrays in records:
            keys, sizes, numbers, ranks, *others = arrays
            self._documents[self._num_ended].restore(reading, others, ended > self._num_ended)
            self._num_ended = ended
            self.num_known += count
            self.num_bytes += size
            self._id_keys.append(keys)
            self.sizes.append(sizes)
            self.sources.add(numbers, names)
            self._num_names = len(self.sources.distinct)
            if self._priorities is not None and len(ranks):
                self._priorities.extend(ranks)
        if self._num_ended == len(self._documents) and self._documents:
            self.is_noted = True
            self._say_noted()

    def _write_journal(self, journal: Journal, documents: files.Documents, size: int, arrays: Sequence[Array]) -> None:
        """Write what was noted of a block, or that all documents of a collection were noted."""
        reading, others = documents.taken()
        keys, sizes, numbers, ranks = arrays or [NO_KEYS] * 4
        names = self.sources.distinct[self._num_names :]
        self._num_names = len(self.sources.distinct)
        value = [self._num_ended, len(sizes), size, names, reading]
        journal.append(value, [keys, sizes if self._with_sizes else NO_KEYS, numbers, ranks, *others])

    def _say_noted(self) -> None:
        """Count what was left out, and print a note if ids repeat, unless no notes are printed."""
        self.skipped = sum(documents.counts.skipped for documents in self._documents)
        self.hidden = sum(documents.counts.hidden for documents in self._documents)
        if self._prefix is not None:
            self._say_repeated()
        self._id_keys.free()

    def _say_repeated(self) -> None:
        """Print a note if ids repeat."""
        found = first_repeated(self._id_keys, lambda positions: self.ids(positions).of(positions))
        if found is not None:
            names = [f" ({os.fsdecode(name)})" if self.num_files > 1 else "" for name in self.files_of(np.array(found))]
            first, second = (f"{position + 1:,}{name}" for position, name in zip(found, names))
            identity = self.ids(np.array(found[:1])).of(np.array(found[:1]))[0]
            shown = identity[:MAX_SHOWN_ID].decode("utf-8", "replace")
            remedy = f"use {self.id_option} none for record numbers as ids"
            if len(self._documents) > 1:  # each has record numbers of its own
                remedy = "name the files by one pattern or folder, and use record numbers as ids"
            console.say(f"{self._prefix}ids repeat: records {first} and {second} have the id {shown!r}; {remedy}")

    def _note(self, block: files.Block) -> None:
        size, sizes = int(block.texts.sizes().sum()), block.texts.sizes(NO_TEXT)
        keys, numbers, ranks = NO_KEYS, NO_NAMES, NO_KEYS
        self.num_bytes += size
        if self._secret is not None:
            ids = block.ids()
            keys = np.empty(len(ids), np.uint64)
            content_keys(ids, self._secret, keys)
            self._id_keys.append(keys)
        if self._with_sizes:
            self.sizes.append(sizes)
        if self._with_sources:
            numbers = self.sources.extend(block.sources())
        if self._priorities is not None and block.ranks is not None:
            ranks = block.ranks
            self._priorities.extend(ranks)
        if self._journal is not None:
            self._write_journal(self._journal, self._documents[self._num_ended], size, [keys, sizes, numbers, ranks])


class ItemStream(TextStream):
    """The items of ``lsh contained``: errors name their own options, and each file has ids of its own."""

    id_option = "--item-id-field"
    of_files = True

    def _blocks(self, positions: Array | None = None, first_time: bool = False) -> Iterator[tuple[int, files.Block]]:
        with named_as(OF_ITEMS):
            yield from super()._blocks(positions, first_time)


@contextmanager
def named_as(names: Mapping[str, str]) -> Iterator[None]:
    """Let errors name options of a command in place of those of reading."""
    try:
        yield
    except InputError as error:
        for name, other in names.items():
            error.message = error.message.renamed(name, other)
        raise
