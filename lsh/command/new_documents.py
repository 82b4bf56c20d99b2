"""New documents for an index: read from files, with ids that differ from file to file, and with times."""

from __future__ import annotations

import argparse
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, cast

import numpy as np

from lsh import files
from lsh.base.errors import Parameter, Words
from lsh.command import console, indexing, inputs, options
from lsh.command.options import Reading
from lsh.text.batch import Batch

FORMATS = f"""\
{options.FORMATS_AND_FIELDS}
Without one, in .txt files, and with --id-field none, the id is the name of the file and the number of the record, such
as news.txt:17.
"""


@contextmanager
def _own_options() -> Iterator[None]:
    """Put the options of these commands into the errors of reading."""
    try:
        yield
    except files.InputError as error:
        error.message = error.message.renamed("source_field", "time_field")
        if error.lacks == "id_field":
            error.message += ", or use " + Parameter("id_field", "none")
        raise


class Part(NamedTuple):
    """Some documents, and where they end: in which file, and after how many of its documents."""

    texts: Batch
    ids: list[str]
    times: list[float | datetime | None] | None
    file: int
    end: int


class NewDocuments:
    """The documents of some files, with ids that differ from file to file, and with their times.

    Parameters
    ----------
    sources : files.Sources
        The files.
    reading : Reading
        How they are read.
    time_field : str or None
        The column of the time.
    id_prefix : str or None
        The text before record numbers as ids. Default: the name of the file and a colon.
    notes : bool
        Whether to print notes on the reading.
    needs_ids : bool
        Whether ids must differ from file to file. Otherwise they are those of other commands.

    Attributes
    ----------
    count, num_bytes, skipped, hidden : int
        How many documents and bytes of text were read, how many were skipped for a bad line, id or time, and how
        many hidden files were not read.
    num_passes, position, size : int
        For `console.Meter`.
    """

    num_passes = 1

    def __init__(
        self,
        sources: files.Sources,
        reading: Reading,
        time_field: str | None,
        id_prefix: str | None,
        notes: bool,
        needs_ids: bool = True,
    ) -> None:
        if not needs_ids and len(sources.found) == 1:
            id_prefix = ""
        if needs_ids and sources.found[0].format.name == "jsonl" and reading.id_field is None:
            reading = replace(reading, id_field="id")  # else a record without an id would get its number
        self._sources, self._reading = sources, replace(reading, source_field=time_field)
        self._needs_ids = needs_ids
        self._has_times, self._prefix = time_field is not None, id_prefix
        self._notes: set[Words] | None = set() if notes else None
        self._opened: list[files.Documents] = []
        self.count = self.num_bytes = self.skipped = self._num_bad = 0
        self.hidden = sources.hidden
        self.position = self.size = 0

    def __enter__(self) -> NewDocuments:
        try:
            for source in self._sources.found:
                one = files.Sources([source], 0, self._named(source), self._sources.pattern, 0)
                with _own_options():
                    self._opened.append(inputs.open_documents(self._reading, one, null_ids=not self._needs_ids))
                self.size += self._opened[-1].size
        except BaseException:  # an interrupt, too
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for documents in self._opened:
            documents.__exit__(*error)

    def _named(self, source: Any) -> list[files.Place]:
        is_folder = source.format.name == files.FOLDER
        return self._sources.named if is_folder else [files.Place(source.path, False, source.state)]

    def read(self, file: int = 0, count: int = 0) -> Iterator[Part]:
        """Yield the documents, from a file on and without the first `count` documents of that file."""
        self.position = sum(documents.size for documents in self._opened[:file])
        for number in range(file, len(self._opened)):
            yield from self._file(number, count if number == file else 0)

    def _file(self, number: int, left_out: int) -> Iterator[Part]:
        """Yield the documents of a file, without the first ones."""
        documents, before, done = self._opened[number], self.position, 0
        for place, block in files.prefetched(self._blocks(documents)):
            self.position = before + place
            self._say_notes(documents)
            done += len(block.texts)
            fresh = min(done - left_out, len(block.texts))
            if fresh <= 0:
                continue
            start = len(block.texts) - fresh
            ids = self._ids(documents, cast(list[bytes], block.ids().tolist())[start:])
            skip = "" if documents.format.name in ("parquet", "arrow") else ", or --on-bad-line skip"
            values = block.sources()[start:] if self._has_times else None
            problems, times = self._checked(ids, values, done - fresh + 1, skip)
            if problems and self._reading.on_bad_line == "error":
                raise files.InputError(documents.name, next(iter(problems.values())))
            texts = Batch(block.texts, missing=True, start=start)
            if problems:
                good = [i for i in range(fresh) if i not in problems]
                self._num_bad += len(problems)
                texts, ids = Batch(texts.take(np.array(good, np.int64)), missing=True), [ids[i] for i in good]
                times = None if times is None else [times[i] for i in good]
            self.count, self.num_bytes = self.count + len(ids), self.num_bytes + int(texts.sizes().sum())
            yield Part(texts, ids, times, number, done)
        self._say_notes(documents)
        self.position = before + documents.size
        self.skipped, self._num_bad = self.skipped + documents.skipped + self._num_bad, 0

    def _blocks(self, documents: files.Documents) -> Iterator[tuple[int, files.Block]]:
        """Yield the blocks of a file, each with how many of its bytes were read then."""
        with _own_options():
            for block in documents.blocks():
                yield documents.position, block

    def _ids(self, documents: files.Documents, ids: Iterable[bytes]) -> list[str]:
        """Return the ids of documents of a file, which differ from those of other files."""
        decoded, prefix = list(map(files.decoded, ids)), self._prefix
        if not self._are_numbers(documents):
            if prefix:
                raise files.InputError(
                    documents.name, "its documents have ids, and --id-prefix is for record numbers; leave it out"
                )
            return decoded
        if prefix is None and documents.path == files.STANDARD:
            raise files.InputError(
                documents.name, "its documents have no ids; name their column with --id-field, or give --id-prefix"
            )
        prefix = f"{files.shown(documents.path)}:" if prefix is None else prefix
        return [prefix + number for number in decoded]

    def _are_numbers(self, documents: files.Documents) -> bool:
        """Tell whether the numbers of the records are the ids."""
        if documents.format.name == files.FOLDER:
            return False
        without = documents.format.name == "txt" or self._reading.id_field == "none"
        return without or documents.has_numbers

    def _checked(
        self, ids: Sequence[str], values: Sequence[bytes] | None, first: int, skip: str
    ) -> tuple[dict[int, str], list[float | datetime | None] | None]:
        """Return what is wrong with the id or the time of documents, by their place, and all times.

        An empty time is ``None``; `first` is the number of the first document in its file, `skip` ends each message.
        """
        problems = {}
        for i, identity in enumerate(ids if self._needs_ids and "" in ids else ()):
            if not identity:
                place = f"the id of document {first + i}"
                problems[i] = f"{place} is null or empty; give it one, or use --id-field none{skip}"
        times: list[float | datetime | None] = []
        for i, value in enumerate(values or ()):
            time = None
            try:
                time = indexing.parsed_time(value.decode("utf-8", "replace").strip()) if value.strip() else None
            except ValueError as error:
                problems.setdefault(i, f"document {ids[i]!r}: {error}{skip}")
            times.append(time)
        return dict(sorted(problems.items())), None if values is None else times

    def _say_notes(self, documents: files.Documents) -> None:
        """Print the notes that have not been printed."""
        for note in documents.notes if self._notes is not None else ():
            if self._notes is not None and note not in self._notes:
                self._notes.add(note)
                console.say(note)

    def name(self, file: int) -> str:
        """Return the name of a file."""
        return self._opened[file].name

    def state(self) -> list[object] | None:
        """Return values that are equal in a later run if files and options are the same; ``None`` if unknown."""
        states = [_state(source) for source in self._sources.found]
        options = {name: str(value) for name, value in vars(self._reading).items()}
        return None if None in states else [states, options, self._prefix]


def _state(source: Any) -> list[object] | None:
    """Return the name of a file or a folder, its size and time; ``None`` for a pipe or a folder at a URL."""
    if source.state is not None:
        return [source.path, *source.state]
    if source.path == files.STANDARD or not os.path.exists(source.path):
        return None
    if source.format.name != files.FOLDER:
        found = os.stat(source.path)
        return [source.path, found.st_size, found.st_mtime_ns] if stat.S_ISREG(found.st_mode) else None
    inside = sorted(os.path.join(folder, name) for folder, _, names in os.walk(source.path) for name in names)
    states = [(path, os.stat(path)) for path in inside if os.path.isfile(path)]
    return [source.path, *([path, one.st_size, one.st_mtime_ns] for path, one in states)]


def add_options(parser: argparse.ArgumentParser, inputs: str = "+") -> None:
    """Add the options of `NewDocuments`; `inputs` is ``"*"`` if INPUT may be left out."""
    parser.add_argument(
        "input",
        metavar="INPUT",
        nargs=inputs,
        help="files of documents of one format, or a folder; - for standard input",
    )
    parser.add_argument(
        "--time-field", action=options.Once, metavar="FIELD", help="column of the time: seconds since 1970, or ISO 8601"
    )
    parser.add_argument(
        "--id-prefix",
        action=options.Once,
        metavar="TEXT",
        help="text before a record number as id (default: the name of the file and a colon)",
    )


def from_options(namespace: argparse.Namespace, needs_ids: bool = True) -> NewDocuments:
    """Return the documents that the options name."""
    reading = options.reading(namespace)
    places = files.expanded(namespace.input)
    output = getattr(namespace, "output", None)
    inputs.check_files(inputs.named("INPUT", places), [] if output is None else [("OUTPUT", output)], reading)
    indexing.check_apart(namespace.index, places, output)
    sources = inputs.find(reading, places, namespace.quiet)
    return NewDocuments(sources, reading, namespace.time_field, namespace.id_prefix, not namespace.quiet, needs_ids)
