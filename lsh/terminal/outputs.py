"""What the commands that write documents have in common: the files they read and write, and the time of each stage."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from lsh import files
from lsh.base.arrays import Array
from lsh.base.progress import SHARES
from lsh.files import ReadOptions
from lsh.storage import compression
from lsh.storage.journal import Journal
from lsh.terminal import console, inputs, noted, options
from lsh.terminal.inputs import TextStream
from lsh.terminal.options import RunOptions
from lsh.terminal.resuming import Resumption
from lsh.terminal.rows import MAX_ROWS, IndexDocuments

AnyTarget = files.Target | files.FolderTarget
Keep = Literal["first", "last", "longest", "highest", "lowest"]
BY_VALUE = ("highest", "lowest")  # values of --keep with --keep-field
# The time of the stages after the decisions, relative to that of the first one; that of writing by compression.
# Estimated from runs on JSON lines of 250 to 570 MB; xz took longer than was measured.
REPORT_SHARE, WRITING_SHARES = 0.05, {"": 0.8, "zst": 1.0, "gz": 4.0, "bz2": 8.0, "xz": 30.0}
HTML = (".html", ".htm")  # endings of a report
READ_BY = ("field", "id_field", "source_field", "missing", "on_bad_line")  # options that every report lists last


@dataclass(frozen=True)
class Outputs:
    """The files to write, ``None`` for one that is not wanted; a dry run writes all but the documents.

    Attributes
    ----------
    output : str or None
        The documents.
    tables : dict of str to str or None
        Other files of the command, by their options.
    rejects, report : str or None
        The skipped lines, and the report.
    json, dry_run : bool
        Whether counts go to standard output, and whether documents are not written.
    """

    output: str | None
    tables: Mapping[str, str | None]
    rejects: str | None
    report: str | None
    json: bool
    dry_run: bool

    def named(self) -> list[tuple[str, str | None]]:
        """Return the files with their names in the help."""
        last = [("--rejects", self.rejects), ("--report", self.report)]
        return [("OUTPUT", self.output), *self.tables.items(), *last]

    def written(self) -> list[str | None]:
        """Return the files that the run writes: a dry run all but the documents."""
        return [path for name, path in self.named() if name != "OUTPUT" or not self.dry_run]


@dataclass(frozen=True)
class Request:
    """A run of a command that writes documents: what it reads, and what it writes.

    Attributes
    ----------
    sources : files.Sources
        The files of INPUT.
    references : sequence of files.Sources
        The files of each --against.
    keep : str
        Which documents come first: ``"first"``, ``"last"``, ``"longest"``, or ``"highest"`` or ``"lowest"`` by a field.
    given : dict of str to str
        The options that the report lists.
    is_streamed : bool
        Whether the memory of the command must not grow with INPUT.
    """

    is_streamed: ClassVar[bool] = False

    sources: files.Sources
    references: Sequence[files.Sources]
    keep: Keep
    reading: ReadOptions
    running: RunOptions
    outputs: Outputs
    given: dict[str, str]


@dataclass(frozen=True)
class OpenRun:
    """The open files of a run.

    Attributes
    ----------
    documents : files.Documents
        Those of INPUT.
    texts, old : TextStream
        The texts of INPUT and of --against.
    priorities : callable or None
        Returns the values of --keep-field.
    target : files.Target, files.FolderTarget or None
        Where the documents are written.
    others : list of files.Target
        The other files that are written.
    meter : console.Meter
        Shows the progress.
    name : str
        The name of a run that may be killed; see `files.Target`.
    placing : callable
        Returns the context in which the files are put in their places.
    """

    documents: files.Documents
    texts: TextStream
    old: TextStream
    priorities: Callable[[], Array] | None
    target: AnyTarget | None
    others: list[AnyTarget]
    meter: console.Meter
    name: str
    placing: Callable[[], AbstractContextManager[None]]


class Reference(NamedTuple):
    """Files that INPUT is compared with, which are read and not written."""

    option: str
    path: str
    reading: ReadOptions
    problem: str = "a file compared with itself loses everything; name other reference files"  # if it is INPUT, too


# ---- options ----


def add_outputs(parser: argparse.ArgumentParser, dry_run: str, with_sources: str = "--report") -> None:
    """Add the argument INPUT and the options of `checked_outputs`, without the tables of the command."""
    options.add_input(parser).required = False  # as it may be the last name after --against
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUTPUT",
        help="file to write (missing folders are made), or - for standard output; name/ makes a new folder "
        "with a file for each file of INPUT, at its path within INPUT, "
        "or of several INPUTs within the deepest folder that holds them; for a folder of texts, "
        "a new folder with the kept files",
    )
    parser.add_argument("--rejects", metavar="FILE", help="write the lines that --on-bad-line skip leaves out")
    parser.add_argument("--report", metavar="FILE", help="write a report, a page of HTML")
    parser.add_argument(
        "--source-field",
        action=options.Once,
        metavar="FIELD",
        help=f"column that names the source of a document in {with_sources} (default: its file)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the counts of the run to standard output, as one JSON object"
    )
    parser.add_argument("--dry-run", action="store_true", help=dry_run)


def add_keeping(group: argparse._ActionsContainer, against: str, of_several: str) -> None:
    """Add the options of what is kept; two of their help texts differ."""
    group.add_argument("--against", metavar="OLD", nargs="+", action="extend", help=against)
    group.add_argument(
        "--keep",
        choices=("first", "last", "longest", *BY_VALUE),
        help=f"{of_several}; highest and lowest are by --keep-field (default first, or highest with --keep-field)",
    )
    group.add_argument(
        "--keep-field",
        action=options.Once,
        metavar="FIELD",
        help="column of numbers or of ISO 8601 dates: the document with the highest value, such as the newest one, is "
        "kept; of equal values the first",
    )


# ---- typed values ----


def take_input(namespace: argparse.Namespace) -> None:
    """Set INPUT: --against takes all names that follow it, and the last one of them is INPUT."""
    if namespace.input is None:
        if len(namespace.against or ()) < 2:
            namespace.parser.error("the following arguments are required: INPUT")
        namespace.input = [namespace.against.pop()]


def checked_outputs(namespace: argparse.Namespace, *tables: str) -> Outputs:
    """Return the files to write, at most one of which is standard output; `tables` are options of the command."""
    if namespace.output is None and not namespace.dry_run:
        named = f", only tables such as {tables[0]}" if tables else ""
        namespace.parser.error(f"give -o OUTPUT, or --dry-run to write no documents{named}")
    own = {name: getattr(namespace, name.removeprefix("--").replace("-", "_")) for name in tables}
    found = Outputs(namespace.output, own, namespace.rejects, namespace.report, namespace.json, namespace.dry_run)
    for name, path in found.named():
        written = name != "OUTPUT" or not found.dry_run
        if found.json and written and path == files.STANDARD:
            raise ValueError(f"--json and {name} both write to standard output; name a file as {name}")
        if found.json or (written and path == files.STANDARD):
            console.check_standard_output()
    with_sources = {"--report": found.report} | {name: path for name, path in own.items() if name == "--copies"}
    if namespace.source_field is not None and not any(with_sources.values()):
        raise ValueError(f"--source-field requires {' or '.join(with_sources)}")
    if found.rejects is not None and namespace.on_bad_line != "skip":
        raise ValueError("--rejects requires --on-bad-line skip")
    return found


def checked_keep(namespace: argparse.Namespace, default: Keep = "first") -> Keep:
    """Return which document is kept; with --keep-field, by default that of the highest value."""
    if namespace.keep_field is not None and namespace.keep not in (None, *BY_VALUE):
        raise ValueError(f"--keep {namespace.keep} cannot be combined with --keep-field; use highest or lowest")
    if namespace.keep_field is None and namespace.keep in BY_VALUE:
        raise ValueError(f"--keep {namespace.keep} requires --keep-field, the column of the values")
    chosen: Keep | None = namespace.keep
    return chosen or (default if namespace.keep_field is None else "highest")


def find_sources(
    namespace: argparse.Namespace,
    written: Outputs,
    reading: ReadOptions,
    quiet: bool,
    tables: Sequence[str],
    references: Sequence[Reference] | None = None,
) -> tuple[files.Sources, list[files.Sources]]:
    """Return the files of INPUT and of each reference, which differ from each other and from the outputs.

    `tables` are the options whose files are tables. The default for `references` is what --against names.
    """
    if references is None:
        references = [Reference("--against", path, reading) for path in namespace.against or ()]
    places = files.expanded(namespace.input)
    named = [(one, files.expanded([one.path])) for one in references]
    read = inputs.named("INPUT", places) + [pair for one, own in named for pair in inputs.named(one.option, own)]
    inputs.check_files(read, written.named(), reading, makes_folders=True)
    for name in tables:
        inputs.check_table(name, written.tables[name])
    _check_report(written.report)
    found = inputs.find(reading, places, quiet)
    others = [inputs.find(one.reading, own, quiet) for one, own in named]
    for one, other in zip(references, others):
        if (shared := inputs.shared_file(found, other)) is not None:
            raise ValueError(f"{shared} is INPUT and {one.option}: {one.problem}")
    return found, others


def _check_report(path: str | None) -> None:
    """Check that the name of the report ends in .html or .htm, also before .gz, or has no ending."""
    if path is None or path == files.STANDARD or files.is_stream(path):
        return
    name, packed = path.lower(), compression.of_path(path)
    ending = os.path.splitext(name.removesuffix(f".{packed}"))[1]
    if ending and ending not in HTML:
        raise ValueError(f"--report is a page of HTML; its name must end in .html, got {path}")


def given_options(namespace: argparse.Namespace, names: Sequence[str], **values: object) -> dict[str, str]:
    """Return the options that a report lists: files, and those of `names` that have a value."""
    own = {**vars(namespace), **values}
    found = {
        "INPUT": " ".join(map(files.shown, namespace.input)),
        "--against": " ".join(map(files.shown, namespace.against or ())),
        **{options.typed(name): own[name] for name in (*names, *READ_BY)},
    }
    return {name: "yes" if value is True else files.shown(str(value)) for name, value in found.items() if value}


# ---- the run ----


class Stopwatch:
    """Measures the seconds of each stage of a run, without gaps between stages."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._started = time.perf_counter()

    def stage(self, name: str, parts: dict[str, float] | None = None) -> None:
        """End a stage; some of its time may be known as stages of their own, `parts`."""
        now = time.perf_counter()
        parts = parts or {}
        self.seconds |= parts
        self.seconds[name] = self.seconds.get(name, 0.0) + max(now - self._started - sum(parts.values()), 0.0)
        self._started = now

    def ended(self) -> dict[str, float]:
        """End the last stage, that of writing and closing; return all stages and their total."""
        self.stage("writing")
        return {**self.seconds, "total": sum(self.seconds.values())}


def open_run(
    opened: ExitStack,
    request: Request,
    check: Callable[[files.Documents], None],
    added: Sequence[files.Added],
    with_ids: bool,
    shares: Mapping[str, float] = SHARES,
    open_old: Callable[[files.Target | None], TextStream] | None = None,
    with_sizes: bool = False,
    resumption: Resumption | None = None,
) -> OpenRun:
    """Open the files of a run, which `opened` closes.

    Parameters
    ----------
    opened : ExitStack
        Receives what is to be closed.
    request : Request
        The run.
    check : callable
        Checks that the outputs suit the documents of INPUT.
    added : sequence of Added
        The fields that are added to each document.
    with_ids : bool
        Whether ids of documents are used.
    shares : mapping of str to float, optional
        The stages of the library, for the progress; see `console.progress`.
    open_old : callable, optional
        Opens the references, which are read first, with the target of lines that are left out. Default: they are
        opened as --against.
    with_sizes : bool, optional
        Whether sizes of texts are used beside the report.
    resumption : Resumption, optional
        The state of a run that may be killed. Default: none is kept.
    """
    reading, written, running = request.reading, request.outputs, request.running
    budget = inputs.own_budget(running, request.is_streamed)
    opened.enter_context(inputs.made_folders(written.written()))
    name = ""
    placing: Callable[[], AbstractContextManager[None]] = nullcontext
    if resumption is not None:
        local = [files.local(path) for path in written.written() if path is not None and not files.is_url(path)]
        resumption.begin(opened, {os.path.dirname(os.path.realpath(one)) for one in local if one != files.STANDARD})
        name, placing = resumption.name, resumption.placing
    rejects = None
    if written.rejects is not None:
        rejects = opened.enter_context(files.Target(written.rejects, folder=running.temp_dir, run=name))
    targets: list[AnyTarget] = [] if rejects is None else [rejects]
    old = None if open_old is None else open_old(rejects)
    everything = [request.sources, *request.references]
    documents = opened.enter_context(
        inputs.open_documents(reading, request.sources, rejects, everything, budget, added=added)
    )
    check(documents)
    target = None
    if written.output is not None and not written.dry_run:
        target = files.target(documents, written.output, name)  # so that a bad place is an error before the work
    with_report = written.report is not None
    notes = None if running.quiet else ""
    ranked = None if reading.keep_field is None else noted.Priorities(budget, request.keep == "lowest")
    others = replace(reading, source_field=None, keep_field=None)
    references = [
        opened.enter_context(inputs.open_documents(others, one, others=everything, budget=budget))
        for one in (request.references if old is None else ())
    ]
    journals: list[Journal | None] = [None, None]
    if resumption is not None:
        states = [one.states() for one in (documents, *references)]
        resumption.open(opened, {name: state for one in states for name, state in one.items()})
        journals = [resumption.input, resumption.against]
    sizes = with_report or with_sizes
    texts = TextStream([documents], with_ids, sizes, with_report, ranked, notes, budget, journals[0])
    streams = [texts]
    if resumption is not None and not texts.is_noted:
        resumption.against.clear()  # it is read after INPUT, of which a loss of power took what had been noted
    if old is None:
        prefix = None if notes is None else "--against: "
        old = TextStream(references, with_ids, notes=prefix, budget=budget, journal=journals[1])
        streams += [old] if references else []
    if resumption is not None and not running.quiet:
        resumption.say(texts.num_known + old.num_known)
    shown_output = files.STANDARD if written.json else written.output
    stages = later(written, documents, target)
    meter = console.progress(running.quiet, shown_output, streams, running.verbose, stages, shares)
    return OpenRun(
        documents, texts, old, None if ranked is None else ranked.values, target, targets, meter, name, placing
    )


def report_values(
    request: Request,
    run: OpenRun,
    against: TextStream | IndexDocuments,
    positions: Iterable[int],
    against_positions: Iterable[int],
) -> dict[str, Any]:
    """Return the parameters of a report that tell of documents; the texts at some positions are read again for it."""

    def show() -> None:
        run.meter.reading("report")

    texts = run.texts
    new, old = dict(texts.at(positions, show)), dict(against.at(against_positions, show))
    several = request.reading.source_field is not None or len(texts.sources.distinct) > 1
    return {
        "texts": {position: record.text for position, record in new.items()},
        "ids": {position: record.id for position, record in new.items()},
        "sources": texts.sources if several else None,
        "against": {position: record.text for position, record in old.items()},
        "against_ids": {position: record.id for position, record in old.items()},
        "parameters": request.given,
    }


def sizes_of(texts: TextStream) -> Array:
    """Return the bytes of each text, 0 for a missing one."""
    sizes = texts.sizes.read()
    return np.maximum(sizes, 0, out=sizes)


def write_documents(opened: ExitStack, run: OpenRun, keep: Array, edits: files.Edits) -> None:
    """Write documents, if they have a target, which `opened` closes; see `files.write_kept`."""
    if run.target is not None:
        opened.enter_context(run.target)
        size, meter = run.documents.size, run.meter
        files.write_kept(
            run.documents, keep, run.target, lambda position: meter.bytes("writing", position, size), edits
        )
        meter.bytes("writing", size, size)


def write_report(opened: ExitStack, request: Request, run: OpenRun, watch: Stopwatch, page: Callable[[], str]) -> None:
    """Write the report, if it is wanted, to a target that `opened` closes."""
    if request.outputs.report is not None:
        folder = request.running.temp_dir
        report = opened.enter_context(files.Target(request.outputs.report, folder=folder, run=run.name))
        report.write(page().encode())
        watch.stage("report")
        run.others.append(report)


def write_table(
    opened: ExitStack, run: OpenRun, path: str | None, rows: Callable[[], Iterable[Iterable[bytes]]]
) -> None:
    """Write a table, if it is wanted, to a target that `opened` closes."""
    if path is not None:
        table = opened.enter_context(files.Target(path, folder=run.documents.temporary, run=run.name))
        left = iter(rows())
        while some := b"".join(files.table_row(*row) for row in islice(left, MAX_ROWS)):
            table.write(some)
        run.others.append(table)


def put_in_place(run: OpenRun) -> None:
    """Complete all files before the first of them is put in its place; with the documents, the last, all are there."""
    targets = run.others if run.target is None else [*run.others, run.target]
    for each in targets:
        each.complete()
    with run.placing():
        for each in targets:
            each.commit()


def print_counts(
    request: Request, counts: dict[str, Any], parameters: dict[str, Any], described: str, *messages: str
) -> None:
    """Print the counts of a run: as JSON with its parameters, described for --verbose, and by messages."""
    if request.outputs.json:
        shown = {name: value for name, value in counts.items() if name != "read"} | parameters
        console.write_data(json.dumps({**shown, "peak_memory": console.peak_memory()}) + "\n")
    if request.running.verbose:
        stages = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in counts["seconds"].items())
        console.say(f"{described}\nseconds: {stages}")
    for words in () if request.running.quiet else messages:
        console.say(words)


def later(written: Outputs, documents: files.Documents, target: AnyTarget | None) -> dict[str, float]:
    """Return the stages after the decisions, with their time relative to that of the first one."""
    stages = {} if written.report is None else {"report": REPORT_SHARE}
    if target is not None:
        is_folder = isinstance(target, files.FolderTarget)
        packed = documents.format.compression if is_folder else compression.of_path(str(written.output))
        stages["writing"] = WRITING_SHARES[packed]
    return stages


def cost(seconds: Mapping[str, float], num_bytes: int) -> list[str]:
    """Return time, speed and peak memory for the summary line of a run."""
    left_out = [stage for stage in ("report", "writing") if stage in seconds]
    deciding = seconds["total"] - sum(seconds[stage] for stage in left_out)
    parts = console.cost(seconds["total"], num_bytes, deciding, f" of text without {' and '.join(left_out)}")
    return [f"{parts[0]} ({', '.join(f'{stage} {seconds[stage]:.1f}' for stage in left_out)})", *parts[1:]]
