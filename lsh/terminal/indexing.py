"""What the commands of an index share: opening it, checks, ids, times, matches as JSON, new documents from files."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np

import lsh
from lsh import files
from lsh.base.errors import Parameter
from lsh.files import ReadOptions
from lsh.terminal import console, inputs, options
from lsh.text.batch import Batch

if TYPE_CHECKING:  # other commands do not need it
    from lsh.store.index import Index
    from lsh.store.matches import Matches
    from lsh.typing import DocId, Time

DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([smhdw])", re.ASCII)
MAX_DIGITS = 40  # of an id that may be a number, with zeros before it
WHOLE_NUMBER = re.compile(rb"0|-?[1-9][0-9]*")  # as it is printed
SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
FIRST_TIME = -62135596800.0  # the begin of the year 1, in seconds from 1970
MAX_SECONDS = 253402300799.0  # the end of the year 9999; more are milliseconds
MAX_DURATION = 365_000 * 86400.0  # about 1,000 years
COMPACT_DATE = re.compile(r"(19|20)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])")
FORMATS = f"""\
{options.FORMATS_AND_FIELDS}
Without one, in .txt files, and with --id-field none, the id is the name of the file and the number of the record, such
as news.txt:17.
"""


# ---- the index ----


def folder_of(path: str) -> str:
    """Return the folder of an index; an error if it is a URL."""
    folder = files.local(path)
    if files.is_url(folder):
        raise ValueError(
            f"an index must be a folder on this machine, got {files.shown(path)}; name a local folder, or copy "
            "the index to one first"
        )
    if not folder:
        raise ValueError("the name of the index is empty; name its folder")
    return folder


def opened(path: str, mode: Literal["r", "a"] = "r") -> Index:
    """Open an index."""
    folder = folder_of(path)
    try:
        return lsh.Index.open(folder, mode)
    except FileNotFoundError:
        if os.path.lexists(folder):
            raise ValueError(f"{folder} is not an index; name the folder of one") from None
        raise ValueError(f"no index at {folder}; create one with: lsh index create {folder}") from None
    except lsh.index.IndexLockedError as error:  # its remedy is for programs
        raise ValueError(f"{error.reason}; run this again when it has ended") from None


def say_recall(index: Index, threshold: float, verify: str | None) -> None:
    """Print the recall, unless it is the one that the index was created for."""
    if threshold != index.threshold or verify == "sketch":
        recall, estimates = index._recalls(threshold, verify)[1], " and estimates" if verify == "sketch" else ""
        console.say(f"--threshold {threshold:g}: recall {recall:.4g} with the bands of the index{estimates}")


def add_index(parser: argparse.ArgumentParser) -> None:
    """Add the argument of the index."""
    parser.add_argument("index", metavar="INDEX", help="the folder of the index")


def add_quiet(parser: argparse._ActionsContainer) -> None:
    """Add the option that leaves only errors."""
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")


def add_running(parser: argparse._ActionsContainer) -> None:
    """Add the options that leave only errors, or print progress in logs, and --num-threads."""
    loudness = parser.add_mutually_exclusive_group()
    add_quiet(loudness)
    loudness.add_argument("-v", "--verbose", action="store_true", help="print progress in logs, too")
    options.add(parser.add_argument_group("running"), "--num-threads")


def check_apart(index: str, places: Sequence[files.Place], output: str | None = None) -> None:
    """Check that the index, the files that are read and the output do not lie in each other."""
    folder = folder_of(index)
    for place in places:
        if files.lies_in(place.path, folder) or (place.is_folder and files.lies_in(folder, place.path)):
            raise ValueError(f"INPUT must not lie in INDEX or hold it, got {files.shown(place.path)}; move one of them")
    if output is not None and files.lies_in(output, folder):
        raise ValueError(f"OUTPUT must not lie in INDEX, got {files.shown(output)}; write to another place")


# ---- ids ----


def stored_ids(index: Index, given: Iterable[bytes]) -> dict[bytes, list[DocId]]:
    """Return the ids of the stored documents that are printed like each given one: that text, the number, the bytes."""
    found: dict[bytes, list[DocId]] = {one: [] for one in given}
    for read in (files.decoded, _whole_number, bytes):
        wanted = [(one, doc_id) for one in found if (doc_id := read(one)) is not None]
        for (one, doc_id), is_stored in zip(wanted, index._are_stored([doc_id for _, doc_id in wanted])):
            if is_stored:
                found[one].append(doc_id)
    return found


def _whole_number(given: bytes) -> int | None:
    """Return a number of 64 bits, ``None`` if it is none."""
    number = int(given) if WHOLE_NUMBER.fullmatch(given) and len(given) <= MAX_DIGITS else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def found_ids(index: Index, texts: Sequence[str]) -> list[DocId]:
    """Return one id of a stored document for each of the command line; an error if there is none."""
    found = stored_ids(index, map(os.fsencode, texts))
    for text in texts:
        if not found[os.fsencode(text)]:
            raise ValueError(f"no document of the index has the id {text!r}")
    return [found[os.fsencode(text)][0] for text in texts]


def shown_id(identity: DocId) -> str | int:
    """Return an id as a value of JSON; bytes as text."""
    return files.decoded(identity) if isinstance(identity, bytes) else identity


# ---- output ----


def line(identity: DocId | None, matches: Matches, **more: object) -> bytes:
    """Return a line of JSON: an id, more values, and the matches of a document."""
    shown = [{**match._asdict(), "id": shown_id(match.id)} for match in matches]
    own = {} if identity is None else {"id": shown_id(identity)}
    return json.dumps({**own, **more, "matches": shown}).encode() + b"\n"


def check_output(namespace: argparse.Namespace) -> None:
    """Check the output, which is lines of JSON: its name does not end in another format, and it is not in the index."""
    output = namespace.output
    if output == files.STANDARD:
        console.check_standard_output()
    inputs.check_table("-o", output, "the output is")
    inputs.check_files([], [("OUTPUT", output)])
    check_apart(namespace.index, [], output)


# ---- times ----


def parsed_time(text: str) -> Time:
    """Parse a time: seconds since 1970, or ISO 8601, where a time without a zone is UTC.

    Examples
    --------
    >>> parsed_time("1700000000.5")
    1700000000.5
    >>> str(parsed_time("2024-02-29T12:30:00+02:00"))
    '2024-02-29T10:30:00.000000'
    """
    if COMPACT_DATE.fullmatch(text):
        raise ValueError(
            f"{text} may be a date or seconds since 1970; write dates as {text[:4]}-{text[4:6]}-{text[6:]}"
        )
    with suppress(ValueError):
        seconds = float(text)
        if abs(seconds) <= MAX_SECONDS:
            return seconds
    if text.isdecimal():
        raise ValueError(f"the time {text} is after the year 9999; times are in seconds, divide milliseconds by 1000")
    found = files.microseconds(text)
    if found is None or not FIRST_TIME <= found / 1e6 < MAX_SECONDS + 1:
        raise ValueError(
            f"a time must be seconds since 1970 or ISO 8601, such as 2024-02-29T12:30:00Z, got {text!r:.60}"
        )
    return np.datetime64(found, "us")


def duration(option: str, text: str, min_seconds: float = 0.0) -> float:
    """Parse a duration such as ``"30d"``, in seconds.

    Examples
    --------
    >>> duration("--period", "36h"), duration("--period", "1.5d")
    (129600.0, 129600.0)
    """
    found = DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{option} must be a number and a unit (s, m, h, d or w), such as 30d, got {text!r}")
    seconds = float(found[1]) * SECONDS[found[2]]
    if not min_seconds <= seconds <= MAX_DURATION:
        raise ValueError(f"{option} must be {min_seconds:g}s to {MAX_DURATION / SECONDS['d']:,.0f}d, got {text!r}")
    return seconds


def shown_time(seconds: float) -> str:
    """Return a time in UTC, as ISO 8601; seconds where the calendar ends."""
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g} seconds"


# ---- new documents ----


@contextmanager
def _own_options() -> Iterator[None]:
    """Put the options of these commands into the errors of reading."""
    with inputs.named_as({"source_field": "time_field"}):
        try:
            yield
        except files.InputError as error:
            if error.lacks == "id_field":
                error.message += ", or use " + Parameter("id_field", "none")
            raise


class InputBatch(NamedTuple):
    """Some documents, and where they end: in which file, and after how many of its documents."""

    texts: Batch
    ids: list[str]
    times: list[Time | None] | None
    file: int
    end: int


class NewDocuments:
    """The documents of some files, with ids that differ from file to file, and with their times.

    Parameters
    ----------
    sources : files.Sources
        The files.
    reading : ReadOptions
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
        reading: ReadOptions,
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
        self._notes = inputs.Notes("" if notes else None)
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

    def read(self, file: int = 0, count: int = 0) -> Iterator[InputBatch]:
        """Yield the documents, from a file on and without the first `count` documents of that file."""
        self.position = sum(documents.size for documents in self._opened[:file])
        for number in range(file, len(self._opened)):
            yield from self._file(number, count if number == file else 0)

    def _file(self, number: int, left_out: int) -> Iterator[InputBatch]:
        """Yield the documents of a file, without the first ones."""
        documents, before, done = self._opened[number], self.position, 0
        for place, block in files.prefetched(self._blocks(documents)):
            self.position = before + place
            self._notes.say(documents)
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
            yield InputBatch(texts, ids, times, number, done)
        self._notes.say(documents)
        self.position = before + documents.size
        self.skipped, self._num_bad = self.skipped + documents.counts.skipped + self._num_bad, 0

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
        return without or documents.counts.has_numbers

    def _checked(
        self, ids: Sequence[str], values: Sequence[bytes] | None, first: int, skip: str
    ) -> tuple[dict[int, str], list[Time | None] | None]:
        """Return what is wrong with the id or the time of documents, by their place, and all times.

        An empty time is ``None``; `first` is the number of the first document in its file, `skip` ends each message.
        """
        problems = {}
        for i, identity in enumerate(ids if self._needs_ids and "" in ids else ()):
            if not identity:
                place = f"the id of document {first + i}"
                problems[i] = f"{place} is null or empty; give it one, or use --id-field none{skip}"
        times: list[Time | None] = []
        for i, value in enumerate(values or ()):
            time = None
            try:
                time = parsed_time(value.decode("utf-8", "replace").strip()) if value.strip() else None
            except ValueError as error:
                problems.setdefault(i, f"document {ids[i]!r}: {error}{skip}")
            times.append(time)
        return dict(sorted(problems.items())), None if values is None else times

    def name(self, file: int) -> str:
        """Return the name of a file."""
        return self._opened[file].name

    def state(self) -> list[object] | None:
        """Return values that are equal in a later run if files and options are the same; ``None`` if unknown."""
        found = [each for one in self._opened for each in one.states().items()]
        states = [[path, *state] for path, state in found if state is not None]
        return [states, repr(self._reading), self._prefix] if len(states) == len(found) else None


def add_documents(parser: argparse.ArgumentParser, nargs: str = "+") -> None:
    """Add the options of `NewDocuments`; `nargs` is ``"*"`` if INPUT may be left out."""
    options.add_input(parser, nargs)
    parser.add_argument(
        "--time-field", action=options.Once, metavar="FIELD", help="column of the time: seconds since 1970, or ISO 8601"
    )
    parser.add_argument(
        "--id-prefix",
        action=options.Once,
        metavar="TEXT",
        help="text before a record number as id (default: the name of the file and a colon)",
    )


def new_documents(namespace: argparse.Namespace, needs_ids: bool = True) -> NewDocuments:
    """Return the documents that the options name."""
    reading = options.reading(namespace)
    places = files.expanded(namespace.input)
    output = getattr(namespace, "output", None)
    inputs.check_files(inputs.named("INPUT", places), [] if output is None else [("OUTPUT", output)], reading)
    check_apart(namespace.index, places, output)
    sources = inputs.find(reading, places, namespace.quiet)
    return NewDocuments(sources, reading, namespace.time_field, namespace.id_prefix, not namespace.quiet, needs_ids)
