"""``lsh dedup``: write the documents of files that are not near duplicates of a kept document.

`lsh.deduplicate` decides which documents are kept. This module opens the files and writes the kept documents, the
tables and the report.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import lsh
from lsh import files
from lsh.base.wording import counted
from lsh.command import console, indexing, inputs, options
from lsh.command.inputs import TextStream
from lsh.command.options import RunOptions
from lsh.command.rows import IndexDocuments, added_values, cluster_rows, is_new, removed_rows, same_id
from lsh.engine import dedup
from lsh.engine.index_source import IndexSnapshot
from lsh.engine.linking import LIMIT
from lsh.engine.matching import Matching
from lsh.files import ReadOptions
from lsh.sketch.bands import Bands
from lsh.sketch.planning import Plan
from lsh.storage import compression
from lsh.typing import Keep

if TYPE_CHECKING:  # most runs do not need it
    from lsh.store.index import Index

BY_VALUE = ("highest", "lowest")  # values of --keep with --keep-field
# The time of the stages after the decisions, relative to that of the fingerprints; that of writing by compression.
# Estimated from runs on JSON lines of 250 to 570 MB; xz took longer than was measured.
REPORT_SHARE, WRITING_SHARES = 0.05, {"": 0.8, "zst": 1.0, "gz": 4.0, "bz2": 8.0, "xz": 30.0}
HTML = (".html", ".htm")  # endings of a report
OPTIONS_OF_REPORT = (  # listed in a report if they have a value
    "output",
    "removed",
    "clusters",
    "dry_run",
    "mark",
    "preset",
    "recall",
    "keep",
    "keep_field",
    "clusters_mode",
    "field",
    "id_field",
    "source_field",
    "missing",
    "on_bad_line",
)

EPILOG = f"""\
examples:
  lsh dedup news.tsv.gz -o unique.tsv --threshold 0.8 --ngram 5 --unit byte --removed removed.tsv
  lsh dedup 'part-*.jsonl.gz' -o unique.jsonl.gz --report report.html --max-memory 4GB
  lsh dedup 'part-*.jsonl.gz' -o unique/
  lsh dedup today.jsonl --against-index news.index -o new.jsonl --removed removed.tsv

{options.FORMATS}Kept documents are written unchanged and in their order, lines byte for byte.

tables, tab-separated, without a header line:
  --removed   id of the removed document, id of the kept one, their similarity; with --against also where the kept one
              is: new (INPUT) or old (OLD or INDEX); with several files also the file of each, and identical or similar
              texts
  --clusters  number of the cluster, id; one line per document, the kept document of each cluster first

{console.EXITS}"""


@dataclass(frozen=True)
class Outputs:
    """The files to write, ``None`` for one that is not wanted; a dry run writes all but the documents."""

    output: str | None
    removed: str | None
    removed_documents: str | None
    clusters: str | None
    rejects: str | None
    report: str | None
    json: bool
    dry_run: bool
    mark: bool

    def named(self) -> list[tuple[str, str | None]]:
        """Return the files with their names in the help."""
        return [
            ("OUTPUT", self.output),
            ("--removed", self.removed),
            ("--removed-documents", self.removed_documents),
            ("--clusters", self.clusters),
            ("--rejects", self.rejects),
            ("--report", self.report),
        ]

    def written(self) -> list[str | None]:
        """Return the files that the run writes: a dry run all but the documents."""
        return [path for name, path in self.named() if name != "OUTPUT" or not self.dry_run]

    @property
    def with_ids(self) -> bool:
        """Whether a file contains ids of documents."""
        return self.mark or any(path is not None for path in (self.removed, self.clusters, self.report))


@dataclass(frozen=True)
class Request:
    """A run of ``lsh dedup``: what it reads, how it decides, and what it writes.

    Attributes
    ----------
    sources : files.Sources
        The files of INPUT.
    references : sequence of files.Sources
        The files of each --against.
    index : Index or None
        The index of --against-index.
    given : dict of str to str
        The options that the report lists.
    """

    sources: files.Sources
    references: Sequence[files.Sources]
    index: Index | None
    keep: Literal["first", "last", "longest", "highest", "lowest"]
    matching: Matching
    reading: ReadOptions
    running: RunOptions
    outputs: Outputs
    given: dict[str, str]


# ---- options ----


def add_parser(commands: argparse._SubParsersAction[console.Parser]) -> None:
    """Add the command to the parsers of the command line."""
    parser = commands.add_parser(
        "dedup",
        help="remove near-duplicate documents",
        description="Write the documents of INPUT to OUTPUT, except near duplicates of a kept document. Documents are "
        "near duplicates if the Jaccard similarity of their shingle sets is at least the threshold.",
        epilog=EPILOG,
    )
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
    parser.add_argument(
        "--removed", metavar="FILE", help="write the ids of removed documents, with those of the kept ones"
    )
    parser.add_argument(
        "--removed-documents",
        metavar="FILE",
        help="write the removed documents themselves, as OUTPUT has the kept ones",
    )
    parser.add_argument(
        "--mark",
        action="store_true",
        help="write all records, with two more fields: kept_id, the id of the kept document, and similarity; with "
        "--against also side. They are null or empty for a kept document",
    )
    parser.add_argument("--clusters", metavar="FILE", help="write the clusters of two or more documents")
    parser.add_argument("--rejects", metavar="FILE", help="write the lines that --on-bad-line skip leaves out")
    parser.add_argument("--report", metavar="FILE", help="write a report, a page of HTML")
    parser.add_argument(
        "--source-field",
        action=options.Once,
        metavar="FIELD",
        help="column that names the source of a document in --report (default: its file)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the counts of the run to standard output, as one JSON object"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="do not write OUTPUT; print how many documents would be removed. Tables and the report are written",
    )
    options.add_matching(parser)
    parser.add_argument(
        "--preset",
        choices=options.PRESETS,
        help="the settings of FineWeb, BigCode or NeMo Curator: sets shingles, bands, threshold and clustering",
    )
    _add_keeping(parser)
    options.add_reading(parser)
    options.add_running(parser)
    parser.set_defaults(run=run)


def _add_keeping(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is kept")
    group.add_argument(
        "--against",
        metavar="OLD",
        nargs="+",
        action="extend",
        help="reference files: never written; documents like them are removed",
    )
    group.add_argument(
        "--against-index",
        action=options.Once,
        metavar="INDEX",
        help="the folder of an index: documents like those in it are removed. Its shingles, bands and threshold are "
        "used; without stored texts it requires --verify sketch",
    )
    group.add_argument(
        "--keep",
        choices=("first", "last", "longest", *BY_VALUE),
        help="which of several similar documents is kept; highest and lowest are by --keep-field (default first, or "
        "highest with --keep-field)",
    )
    group.add_argument(
        "--keep-field",
        action=options.Once,
        metavar="FIELD",
        help="column of numbers or of ISO 8601 dates: the document with the highest value, such as the newest one, is "
        "kept; of equal values the first",
    )
    group.add_argument(
        "--clusters-mode",
        choices=("representative", "components"),
        help="remove documents similar to a kept one, or keep one document of each connected component of similar "
        "pairs (default representative)",
    )


def run(namespace: argparse.Namespace) -> None:
    """Run ``lsh dedup``."""
    watch = _Stopwatch()
    request = _request(namespace)
    if request.index is not None and not request.running.quiet:
        indexing.say_recall(request.index, request.matching.threshold, request.matching.verify)
    inputs.note_memory(request.outputs.written(), request.running.quiet)
    counts, parameters = _deduplicate(request, watch)
    watch.stage("writing")  # and closing
    counts["seconds"] = {**watch.seconds, "total": sum(watch.seconds.values())}
    _print_counts(request, counts, parameters)


def _request(namespace: argparse.Namespace) -> Request:
    """Return the checked request."""
    if namespace.input is None:  # --against takes all names that follow it, and the last one of them is INPUT
        if len(namespace.against or ()) < 2:
            namespace.parser.error("the following arguments are required: INPUT")
        namespace.input = [namespace.against.pop()]
    outputs = _outputs(namespace)
    _check_combinations(namespace, outputs)
    index = _opened_index(namespace, outputs)
    keep = _keep(namespace)
    matching = _matching(namespace, index, "first" if keep in BY_VALUE else keep)
    reading, running = options.reading(namespace), options.running(namespace)
    sources, references = _sources(namespace, outputs, index, reading, running)
    given = _given(namespace)
    return Request(sources, references, index, keep, matching, reading, running, outputs, given)


def _outputs(namespace: argparse.Namespace) -> Outputs:
    """Return the files to write, at most one of which is standard output."""
    if namespace.output is None and not namespace.dry_run:
        namespace.parser.error("give -o OUTPUT, or --dry-run to write no documents, only tables such as --removed")
    outputs = Outputs(**{field.name: getattr(namespace, field.name) for field in fields(Outputs)})
    for name, path in outputs.named():
        written = name != "OUTPUT" or not outputs.dry_run
        if outputs.json and written and path == files.STANDARD:
            raise ValueError(f"--json and {name} both write to standard output; name a file as {name}")
        if outputs.json or (written and path == files.STANDARD):
            console.check_standard_output()
    return outputs


def _check_combinations(namespace: argparse.Namespace, outputs: Outputs) -> None:
    """Check options that require or exclude each other."""
    if namespace.source_field is not None and outputs.report is None:
        raise ValueError("--source-field requires --report")
    if namespace.keep_field is not None and namespace.keep not in (None, *BY_VALUE):
        raise ValueError(f"--keep {namespace.keep} cannot be combined with --keep-field; use highest or lowest")
    if namespace.keep_field is None and namespace.keep in BY_VALUE:
        raise ValueError(f"--keep {namespace.keep} requires --keep-field, the column of the values")
    if outputs.rejects is not None and namespace.on_bad_line != "skip":
        raise ValueError("--rejects requires --on-bad-line skip")


def _sources(
    namespace: argparse.Namespace, outputs: Outputs, index: Index | None, reading: ReadOptions, running: RunOptions
) -> tuple[files.Sources, list[files.Sources]]:
    """Return the files of INPUT and of each --against, which differ from each other and from the outputs."""
    places = files.expanded(namespace.input)
    if index is not None:
        indexing.check_apart(index.path, places)
    references = [files.expanded([path]) for path in namespace.against or ()]
    read = inputs.named("INPUT", places) + [pair for one in references for pair in inputs.named("--against", one)]
    inputs.check_files(read, outputs.named(), reading, into_folder=True, makes_folders=True)
    inputs.check_table("--removed", outputs.removed)
    inputs.check_table("--clusters", outputs.clusters)
    _check_report(outputs.report)
    sources = inputs.find(reading, places, running.quiet)
    others = [inputs.find(reading, one, running.quiet) for one in references]
    for one in others:
        if (shared := inputs.shared_file(sources, one)) is not None:
            problem = "a file compared with itself loses every document; name other reference files"
            raise ValueError(f"{shared} is INPUT and --against: {problem}")
    return sources, others


def _keep(namespace: argparse.Namespace) -> Any:
    """Return which document is kept, by default the first or, with --keep-field, that of the highest value."""
    return namespace.keep or ("first" if namespace.keep_field is None else "highest")


def _opened_index(namespace: argparse.Namespace, outputs: Outputs) -> Index | None:
    """Open the index of --against-index, if it is given."""
    path = namespace.against_index
    if path is None:
        return None
    if namespace.against:
        raise ValueError("--against-index cannot be combined with --against; add those documents to the index")
    folder = indexing.folder_of(path)
    for name, output in outputs.named():
        if output is not None and files.lies_in(output, folder):
            raise ValueError(f"{name} must not lie in the index {files.shown(path)}; write to another place")
    return indexing.opened(path)


def _matching(namespace: argparse.Namespace, index: Index | None, keep: Keep) -> Matching:
    """Return which documents are near duplicates, of each other and of those of an index."""
    if index is None:
        return options.matching(namespace, keep)
    name = files.shown(namespace.against_index)
    matching = options.matching_of_index(namespace, index, name, keep)
    if namespace.report is not None and not index.info()["texts"]:
        raise ValueError(f"--report shows texts, and {name} stores none; leave --report out")
    return matching


def _check_report(path: str | None) -> None:
    """Check that the name of the report ends in .html or .htm, also before .gz, or has no ending."""
    if path is None or path == files.STANDARD or files.is_stream(path):
        return
    name, packed = path.lower(), compression.of_path(path)
    ending = os.path.splitext(name.removesuffix(f".{packed}"))[1]
    if ending and ending not in HTML:
        raise ValueError(f"--report is a page of HTML; its name must end in .html, got {path}")


def _given(namespace: argparse.Namespace) -> dict[str, str]:
    """Return the options that a report lists: those that change the result or name files."""
    values = {**vars(namespace), "keep": _keep(namespace)}
    given = {
        "INPUT": " ".join(map(files.shown, namespace.input)),
        "--against": " ".join(map(files.shown, namespace.against or ())),
        "--against-index": files.shown(namespace.against_index or ""),
        **{f"--{name.replace('_', '-')}": values[name] for name in OPTIONS_OF_REPORT},
    }
    return {name: "yes" if value is True else files.shown(str(value)) for name, value in given.items() if value}


# ---- the run ----


class _Stopwatch:
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


def _deduplicate(request: Request, watch: _Stopwatch) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read, decide and write; return the counts of the run, and its parameters."""
    reading, outputs, budget = request.reading, request.outputs, inputs.own_budget(request.running)
    with ExitStack() as opened:
        opened.enter_context(inputs.made_folders(outputs.written()))
        rejects = None
        if outputs.rejects is not None:
            rejects = opened.enter_context(files.Target(outputs.rejects, folder=request.running.temp_dir))
        everything = [request.sources, *request.references]
        documents = opened.enter_context(
            inputs.open_documents(reading, request.sources, rejects, everything, budget, added=_added(request))
        )
        _check_format(outputs, documents)
        target = None
        if outputs.output is not None and not outputs.dry_run:
            target = files.target(documents, outputs.output)  # so that a bad place is an error before the work
        others = replace(reading, source_field=None, keep_field=None)
        references = [
            opened.enter_context(inputs.open_documents(others, one, others=everything, budget=budget))
            for one in request.references
        ]
        with_report = outputs.report is not None
        notes = None if request.running.quiet else ""
        ranked = None if reading.keep_field is None else inputs.Priorities(budget, request.keep == "lowest")
        texts = TextStream([documents], outputs.with_ids, with_report, with_report, ranked, notes, budget)
        old = TextStream(references, outputs.with_ids, notes=None if notes is None else "--against: ", budget=budget)
        shown_output = files.STANDARD if outputs.json else outputs.output
        streams, running = [texts, old] if references else [texts], request.running
        meter = console.progress(
            running.quiet, shown_output, streams, running.verbose, _later(outputs, documents, target)
        )
        watch.stage("preparing")
        stored = None if request.index is None else request.index._snapshot()
        result = _decide(request, texts, old if references else stored, ranked, meter)
        against = old if request.index is None else IndexDocuments(request.index, result.old_ids or ())
        watch.stage("preparing", result.summary()["seconds"])
        if request.index is not None and notes is not None:
            _note_same_id(same_id(result, texts, against))
        report = None
        if outputs.report is not None:
            report = opened.enter_context(files.Target(outputs.report, folder=request.running.temp_dir))
            report.write(_report(request, result, texts, against, meter).encode())
            watch.stage("report")
        _write(outputs, documents, result, texts, against, target, meter)
        for complete in filter(None, (rejects, report)):
            complete.commit()
        watch.stage("writing")
    counts = result.summary()
    counts["bytes"] = texts.num_bytes + against.num_bytes
    counts["skipped"], counts["hidden"] = texts.skipped, texts.hidden
    return counts, result.parameters


def _check_format(outputs: Outputs, documents: files.Documents) -> None:
    """Check that the outputs suit the format of INPUT."""
    inputs.check_output(documents, outputs.output)
    if outputs.removed_documents is not None and documents.format.name == files.FOLDER:
        raise ValueError("--removed-documents writes one file, and INPUT is a folder of texts; use --removed")
    inputs.check_output(documents, outputs.removed_documents)
    if outputs.mark and documents.format.name in (files.FOLDER, "txt"):
        raise ValueError("--mark adds fields to records, and INPUT has none; use --removed")


def _note_same_id(identity: bytes | None) -> None:
    """Say that documents were removed for one of the index with the same id, if there is one."""
    if identity is not None:
        shown = identity[: inputs.MAX_SHOWN_ID].decode("utf-8", "replace")
        console.say(
            f"documents that the index has under the same id, such as {shown!r}, were removed: if INPUT was added to "
            "the index before, OUTPUT lacks what was new then"
        )


def _added(request: Request) -> list[str]:
    """Return the names of the fields of --mark."""
    has_old = bool(request.references) or request.index is not None
    return ["kept_id", "similarity", *(["side"] if has_old else [])] if request.outputs.mark else []


def _later(
    outputs: Outputs, documents: files.Documents, target: files.Target | files.FolderTarget | None
) -> dict[str, float]:
    """Return the stages after the decisions, with their time relative to that of the fingerprints."""
    later = {} if outputs.report is None else {"report": REPORT_SHARE}
    if target is not None:
        is_folder = isinstance(target, files.FolderTarget)
        packed = documents.format.compression if is_folder else compression.of_path(str(outputs.output))
        later["writing"] = WRITING_SHARES[packed]
    return later


def _decide(
    request: Request,
    texts: TextStream,
    against: TextStream | IndexSnapshot | None,
    priorities: inputs.Priorities | None,
    meter: console.Meter,
) -> lsh.Deduplication:
    run = dedup.Running.checked(**request.running.limits(), progress=meter)
    return dedup.decide(request.matching, texts, against, run, None if priorities is None else priorities.values)


def _report(
    request: Request,
    result: lsh.Deduplication,
    texts: TextStream,
    against: TextStream | IndexDocuments,
    meter: console.Meter,
) -> str:
    """Return the report; the texts that it shows are read again."""
    from lsh import report

    sizes = texts.sizes.read()
    np.maximum(sizes, 0, out=sizes)
    choice = report.choose(result, sizes=sizes)

    def show() -> None:
        meter.reading("report")

    several = request.reading.source_field is not None or len(texts.sources.distinct) > 1
    removed = result.removed[np.isin(result.removed["document"], choice.positions)]  # with the names of the kept ones
    new_kept = is_new(removed)
    new = dict(texts.at({*choice.positions, *removed["kept"][new_kept].tolist()}, show))
    old = dict(against.at({*choice.against_positions, *removed["kept"][~new_kept].tolist()}, show))
    return report.html(
        result,
        texts={position: record.text for position, record in new.items()},
        choice=choice,
        parameters=request.given,
        ids={position: record.id for position, record in new.items()},
        sizes=sizes,
        sources=texts.sources if several else None,
        against={position: record.text for position, record in old.items()},
        against_ids={position: record.id for position, record in old.items()},
    )


def _write(
    outputs: Outputs,
    documents: files.Documents,
    result: lsh.Deduplication,
    texts: TextStream,
    against: TextStream | IndexDocuments,
    target: files.Target | files.FolderTarget | None,
    meter: console.Meter,
) -> None:
    """Write the kept documents, if they have a target, and the tables; put all in place when they are complete."""
    with ExitStack() as opened:
        if target is not None:
            opened.enter_context(target)
            size = documents.size
            values = added_values(result, texts, against) if outputs.mark else None
            written = np.ones_like(result.keep) if outputs.mark else result.keep
            files.write_kept(
                documents, written, target, lambda position: meter.bytes("writing", position, size), values
            )
            meter.bytes("writing", size, size)
        tables: list[files.Target | files.FolderTarget] = []
        if outputs.removed_documents is not None:
            removed = files.target(documents, outputs.removed_documents)
            opened.enter_context(removed)
            tables.append(removed)
            files.write_kept(documents, ~result.keep, removed)
        for path, rows_of in ((outputs.removed, removed_rows), (outputs.clusters, cluster_rows)):
            if path is not None:
                table = opened.enter_context(files.Target(path, folder=documents.temporary))
                tables.append(table)
                for row in rows_of(result, texts, against):
                    table.write(files.table_row(*row))
        targets = [*tables, *([] if target is None else [target])]
        for each in targets:
            each.complete()
        for each in targets:  # the documents last: with them the output is complete
            each.commit()


# ---- counts ----


def _print_counts(request: Request, counts: dict[str, Any], parameters: dict[str, Any]) -> None:
    """Print the counts: as JSON to standard output, as a summary line to standard error."""
    if request.outputs.json:
        run = {
            "threshold": parameters["threshold"],
            "bands": parameters["bands"].to_string(),
            "num_seeds": parameters["hasher"].num_seeds,
            "recall": None if counts["capped"] else _recall(parameters),
            "random_state": parameters["hasher"].random_state,
            "peak_memory": console.peak_memory(),
        }
        console.write_data(json.dumps({**counts, **run}) + "\n")
    if request.running.verbose:
        stages = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in counts["seconds"].items())
        console.say(
            f"{parameters['hasher']!r}\n{parameters['plan'] or parameters['bands']}\n"
            f"{counts['candidates']:,} pairs in a shared bucket, {counts['connected']:,} texts connected by low bits, "
            f"{counts['compared']:,} pairs compared\n"
            f"{counts['identical']:,} removed as identical copies, {counts['without_shingles']:,} without shingles\n"
            f"seconds: {stages}"
        )
    if not request.running.quiet:
        if counts["capped"]:
            console.say(_left_out(counts, parameters))
        console.say(_summary(counts, with_references=bool(request.references) or request.index is not None))


def _summary(counts: dict[str, Any], with_references: bool) -> str:
    parts = [counted(counts["documents"], "document")]
    parts += [f"{counted(counts['old'], 'reference document')}"] if with_references else []
    for_old = f", {counts['for_old']:,} of them for a reference document" if with_references else ""
    parts += [f"{counts['removed']:,} removed{for_old}", counted(counts["clusters"], "cluster")]
    parts += [f"{counts['missing']:,} missing"] if counts["missing"] else []
    empty = counts["without_shingles"] - counts["missing"]
    parts += [f"{empty:,} without shingles"] if empty > 0 else []
    parts += console.left_out(counts["skipped"], counts["hidden"])
    seconds = counts["seconds"]
    left_out = [stage for stage in ("report", "writing") if stage in seconds]
    deciding = seconds["total"] - sum(seconds[stage] for stage in left_out)
    cost = console.cost(seconds["total"], counts["bytes"], deciding, f" of text without {' and '.join(left_out)}")
    parts += [f"{cost[0]} ({', '.join(f'{stage} {seconds[stage]:.1f}' for stage in left_out)})", *cost[1:]]
    return ", ".join(parts)


def _left_out(counts: dict[str, Any], parameters: dict[str, Any]) -> str:
    """Return what was left out of the comparisons, and what that means."""
    return (
        f"{counted(counts['capped'], 'comparison')} left out in buckets of more than {LIMIT:,} documents: similar "
        f"documents may remain there, and the recall of {_recall(parameters):.3f} does not hold; use longer shingles "
        "or a higher threshold to separate texts of one template"
    )


def _recall(parameters: dict[str, Any]) -> float:
    """Return the planned recall of a pair at the threshold."""
    plan: Plan | None = parameters["plan"]
    bands: Bands = parameters["bands"]
    threshold: float = parameters["threshold"]
    return plan.recall_at(threshold) if plan and parameters["verify"] == "exact" else bands.probability(threshold)
