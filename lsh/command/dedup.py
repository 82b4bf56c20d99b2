"""``lsh dedup``: write the documents of files that are not near duplicates of a kept document.

`lsh.deduplicate` decides which documents are kept. This module opens the files and writes the kept documents, the
tables and the report.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import lsh
from lsh import files
from lsh.base.wording import counted
from lsh.engine import dedup
from lsh.engine.index_source import IndexSnapshot
from lsh.engine.matching import Matching
from lsh.links.linking import LIMIT
from lsh.passages.contained import Containing
from lsh.passages.removing import remove
from lsh.sketch.bands import Bands
from lsh.sketch.planning import Plan
from lsh.terminal import console, indexing, inputs, options, outputs, resuming
from lsh.terminal.inputs import TextStream
from lsh.terminal.outputs import Outputs, Stopwatch
from lsh.terminal.resuming import Resumption
from lsh.terminal.rows import (
    IndexDocuments,
    added_values,
    cluster_rows,
    copies_rows,
    is_new,
    removed_rows,
    same_id,
    with_copies,
)
from lsh.typing import Keep

if TYPE_CHECKING:  # most runs do not need it
    from lsh.store.index import Index

# What only the comparison of whole documents has.
NOT_OF_CONTAINMENT = (
    *("recall", "bands", "num_seeds", "random_state", "verify", "clusters_mode", "preset"),
    *("against", "against_index", "report", "max_memory", "resume"),
)

TABLES = ("--removed", "--clusters", "--copies")

OPTIONS_OF_REPORT = (  # listed in a report if they have a value
    "against_index",
    "output",
    "removed",
    "clusters",
    "copies",
    "dry_run",
    "mark",
    "add_copies",
    "preset",
    "recall",
    "keep",
    "keep_field",
    "clusters_mode",
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
  --copies    id of the kept document, the number of documents of INPUT that it stands for, and its file, with
              --source-field its source; the documents of OLD or INDEX that others were removed for come last

{console.EXITS}"""


@dataclass(frozen=True)
class Request(outputs.Request):
    """A run of ``lsh dedup``: also how it decides.

    Attributes
    ----------
    index : Index or None
        The index of --against-index.
    mark : bool
        Whether all documents are written, with the kept one of each.
    add_copies : bool
        Whether the kept documents get the number of documents that they stand for.
    resumption : Resumption or None
        The state of the run, with --resume.
    """

    index: Index | None
    matching: Matching | Containing
    mark: bool
    add_copies: bool
    resumption: Resumption | None

    @property
    def marks(self) -> list[files.Added]:
        """The fields of --mark."""
        has_old = bool(self.references) or self.index is not None
        fields = [files.Added("kept_id", "id"), files.Added("similarity", "number")]
        return [*fields, *([files.Added("side", "text")] if has_old else [])] if self.mark else []

    @property
    def with_ids(self) -> bool:
        """Whether a file contains ids of documents."""
        tables = self.outputs.tables
        files_with_ids = *(tables[name] for name in TABLES), self.outputs.report
        return self.mark or any(path is not None for path in files_with_ids)


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
    outputs.add_outputs(
        parser,
        "do not write OUTPUT; print how many documents would be removed. Tables and the report are written",
        "--report and --copies",
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
    parser.add_argument(
        "--add-copies",
        action="store_true",
        help="write kept records with one more field, copies: the number of documents of INPUT that the record stands "
        "for, itself included",
    )
    parser.add_argument("--clusters", metavar="FILE", help="write the clusters of two or more documents")
    parser.add_argument(
        "--copies",
        metavar="FILE",
        help="write the id of each kept document, the number of documents of INPUT that it stands for, and its file or "
        "source; the numbers add up to the documents of INPUT",
    )
    options.add_matching(parser)
    parser.add_argument(
        "--measure",
        choices=("jaccard", "containment"),
        default="jaccard",
        help="jaccard: two documents are compared as wholes. containment: a document is removed if a window of another "
        "one, at most twice as long as the document, has the threshold of its shingles (words by default), and the "
        "other one comes first in the order of --keep (then longest by default). All texts are held in memory then "
        "(default jaccard)",
    )
    parser.add_argument(
        "--preset",
        choices=options.PRESETS,
        help="the settings of FineWeb, BigCode or NeMo Curator: sets shingles, bands, threshold and clustering",
    )
    _add_keeping(parser)
    options.add_reading(parser)
    options.add_running(parser).add_argument(
        "--resume",
        action="store_true",
        default=None,  # so that `refuse` knows whether it is given
        help="keep what was read and computed in the folder OUTPUT.resume, which is deleted at the end: if the run is "
        "killed, the same command goes on from there. It takes about 500 bytes of disk a document",
    )
    parser.set_defaults(run=run)


def _add_keeping(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is kept")
    outputs.add_keeping(
        group,
        "reference files: never written; documents like them are removed",
        "which of several similar documents is kept",
    )
    group.add_argument(
        "--against-index",
        action=options.Once,
        metavar="INDEX",
        help="the folder of an index: documents like those in it are removed. Its shingles, bands and threshold are "
        "used; without stored texts it requires --verify sketch",
    )
    group.add_argument(
        "--clusters-mode",
        choices=("representative", "components"),
        help="remove documents similar to a kept one, or keep one document of each connected component of similar "
        "pairs (default representative)",
    )


def run(namespace: argparse.Namespace) -> None:
    """Run ``lsh dedup``."""
    watch = Stopwatch()
    outputs.take_input(namespace)
    resumption = resuming.checked(namespace)
    if resumption is not None and resumption.is_placed():
        resumption.end()
        if not namespace.quiet:
            console.say(f"{files.shown(namespace.output)} is complete: the run was killed after it had been written")
        return
    request = _request(namespace, resumption)
    if request.index is not None and isinstance(request.matching, Matching) and not request.running.quiet:
        indexing.say_recall(request.index, request.matching.threshold, request.matching.verify)
    inputs.note_memory(request.outputs.written(), request.running.quiet)
    try:
        counts, parameters = _deduplicate(request, watch)
    except BaseException:  # an interrupt, too
        if resumption is not None and not request.running.quiet:
            resumption.say_kept()
        raise
    counts["seconds"] = watch.ended()
    _print_counts(request, counts, parameters)


def _request(namespace: argparse.Namespace, resumption: Resumption | None) -> Request:
    """Return the checked request."""
    written = outputs.checked_outputs(namespace, *TABLES, "--removed-documents")
    contained = namespace.measure == "containment"
    keep = outputs.checked_keep(namespace, "longest" if contained else "first")
    index = _opened_index(namespace, written)
    by_position: Any = "first" if keep in outputs.BY_VALUE else keep
    matching = _containing(namespace) if contained else _matching(namespace, index, by_position)
    reading, running = options.reading(namespace), options.running(namespace)
    if index is not None:
        indexing.check_apart(index.path, files.expanded(namespace.input))
    sources, references = outputs.find_sources(namespace, written, reading, running.quiet, TABLES)
    given = outputs.given_options(namespace, OPTIONS_OF_REPORT, keep=keep)
    return Request(
        sources,
        references,
        keep,
        reading,
        running,
        written,
        given,
        index,
        matching,
        namespace.mark,
        namespace.add_copies,
        resumption,
    )


def _opened_index(namespace: argparse.Namespace, written: Outputs) -> Index | None:
    """Open the index of --against-index, if it is given."""
    path = namespace.against_index
    if path is None:
        return None
    if namespace.against:
        raise ValueError("--against-index cannot be combined with --against; add those documents to the index")
    folder = indexing.folder_of(path)
    for name, output in written.named():
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


def _containing(namespace: argparse.Namespace) -> Containing:
    """Return when a document contains another one."""
    problem = "{0} cannot be combined with --measure containment; leave it out"
    options.refuse(namespace, NOT_OF_CONTAINMENT, problem)
    return Containing(options.threshold(namespace), options.shingles_of_items(namespace), missing=namespace.missing)


# ---- the run ----


def _deduplicate(request: Request, watch: Stopwatch) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read, decide and write; return the counts of the run, and its parameters."""
    with ExitStack() as opened:
        added, with_ids = request.marks, request.with_ids
        added += [files.Added("copies", "count", "copies")] if request.add_copies else []
        resumption = request.resumption
        run = outputs.open_run(
            opened, request, lambda found: _check_format(request, found), added, with_ids, resumption=resumption
        )
        texts, old = run.texts, run.old
        watch.stage("preparing")
        stored = None if request.index is None else request.index._snapshot()
        result = _decide(request, run, old if request.references else stored)
        against = old if request.index is None else IndexDocuments(request.index, result.old_ids or ())
        watch.stage("preparing", result.summary()["seconds"])
        if request.index is not None and not request.running.quiet:
            _note_same_id(same_id(result, texts, against))
        outputs.write_report(opened, request, run, watch, lambda: _report(request, result, run, against))
        _write(request, result, run, against)
        watch.stage("writing")
    if resumption is not None:
        resumption.end()
    counts = result.summary()
    counts["bytes"] = texts.num_bytes + against.num_bytes
    counts["skipped"], counts["hidden"] = texts.skipped, texts.hidden
    return counts, result.parameters


def _check_format(request: Request, documents: files.Documents) -> None:
    """Check that the outputs suit the format of INPUT."""
    written = request.outputs
    removed = written.tables["--removed-documents"]
    inputs.check_output(documents, written.output)
    if removed is not None and documents.format.name == files.FOLDER:
        raise ValueError("--removed-documents writes one file, and INPUT is a folder of texts; use --removed")
    inputs.check_output(documents, removed)
    for name, remedy in (("mark", "use --removed"), ("add_copies", "use --clusters")):
        if getattr(request, name) and documents.format.name in (files.FOLDER, "txt"):
            raise ValueError(f"{options.typed(name)} adds fields to records, and INPUT has none; {remedy}")


def _note_same_id(identity: bytes | None) -> None:
    """Say that documents were removed for one of the index with the same id, if there is one."""
    if identity is not None:
        shown = identity[: inputs.MAX_SHOWN_ID].decode("utf-8", "replace")
        console.say(
            f"documents that the index has under the same id, such as {shown!r}, were removed: if INPUT was added to "
            "the index before, OUTPUT lacks what was new then"
        )


def _decide(request: Request, run: outputs.OpenRun, against: TextStream | IndexSnapshot | None) -> lsh.Deduplication:
    saved = None if request.resumption is None else request.resumption.rows
    running = dedup.Running.checked(**request.running.limits(), progress=run.meter, saved=saved)
    running = running._replace(with_near=request.outputs.report is not None)
    if isinstance(request.matching, Matching):
        return dedup.decide(request.matching, run.texts, against, running, run.priorities)
    keep: Any = request.keep
    return remove(request.matching, run.texts, run.priorities or (lambda: keep), running.num_threads, running.report)


def _report(
    request: Request, result: lsh.Deduplication, run: outputs.OpenRun, against: TextStream | IndexDocuments
) -> str:
    """Return the report; the texts that it shows are read again."""
    from lsh import report

    sizes = outputs.sizes_of(run.texts)
    choice = report.choose(result, sizes=sizes)
    removed = result.removed[np.isin(result.removed["document"], choice.positions)]  # with the names of the kept ones
    new_kept = is_new(removed)
    new = {*choice.positions, *removed["kept"][new_kept].tolist()}
    old = {*choice.against_positions, *removed["kept"][~new_kept].tolist()}
    values = outputs.report_values(request, run, against, new, old)
    return report.html(result, choice=choice, sizes=sizes, **values)


def _write(
    request: Request, result: lsh.Deduplication, run: outputs.OpenRun, against: TextStream | IndexDocuments
) -> None:
    """Write the kept documents, if they have a target, and the tables; put all in place when they are complete."""
    own = request.outputs.tables
    documents, texts = run.documents, run.texts
    removed_documents = own["--removed-documents"]
    with ExitStack() as opened:
        values: Any = added_values(result, texts, against) if request.mark else None
        if request.add_copies:
            values = with_copies(result, values, len(request.marks))
        written = np.ones_like(result.keep) if request.mark else result.keep
        outputs.write_documents(opened, run, written, files.Edits(values))
        if removed_documents is not None:
            removed = files.target(documents, removed_documents, run.name)
            opened.enter_context(removed)
            run.others.append(removed)
            files.write_kept(documents, ~result.keep, removed)
        counts = partial(copies_rows, has_sources=request.reading.source_field is not None)
        makers: tuple[Callable[..., Iterator[Iterable[bytes]]], ...] = (removed_rows, cluster_rows, counts)
        for name, rows_of in zip(TABLES, makers):
            rows = partial(rows_of, result, texts, against)
            outputs.write_table(opened, run, own[name], rows)
        outputs.put_in_place(run)


# ---- counts ----


def _print_counts(request: Request, counts: dict[str, Any], parameters: dict[str, Any]) -> None:
    """Print the counts: as JSON to standard output, as a summary line to standard error."""
    described = f"{counts['identical']:,} removed as identical copies, {counts['without_shingles']:,} without shingles"
    if isinstance(request.matching, Matching):
        described = (
            f"{parameters['hasher']!r}\n{parameters['plan'] or parameters['bands']}\n"
            f"{counts['candidates']:,} pairs in a shared bucket, {counts['connected']:,} texts connected by low "
            f"bits, {counts['compared']:,} pairs compared\n{described}"
        )
    else:
        pairs = f"{counts['candidates']:,} pairs of which one contains the other"
        described = f"{parameters['shingles']!r}\n{pairs}\n{described}"
    messages = [_left_out(counts, parameters)] if counts["capped"] else []
    messages.append(_summary(counts, with_references=bool(request.references) or request.index is not None))
    outputs.print_counts(request, counts, _shown_parameters(counts, parameters), described, *messages)


def _shown_parameters(counts: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of --json."""
    if "hasher" not in parameters:
        return {"measure": "containment", "threshold": parameters["threshold"], "window": parameters["window"]}
    return {
        "threshold": parameters["threshold"],
        "bands": parameters["bands"].to_string(),
        "num_seeds": parameters["hasher"].num_seeds,
        "recall": None if counts["capped"] else _recall(parameters),
        "random_state": parameters["hasher"].random_state,
    }


def _summary(counts: dict[str, Any], with_references: bool) -> str:
    parts = [counted(counts["documents"], "document")]
    parts += [f"{counted(counts['old'], 'reference document')}"] if with_references else []
    for_old = f", {counts['for_old']:,} of them for a reference document" if with_references else ""
    parts += [f"{counts['removed']:,} removed{for_old}", counted(counts["clusters"], "cluster")]
    parts += [f"{counts['missing']:,} missing"] if counts["missing"] else []
    empty = counts["without_shingles"] - counts["missing"]
    parts += [f"{empty:,} without shingles"] if empty > 0 else []
    parts += console.left_out(counts["skipped"], counts["hidden"])
    parts += outputs.cost(counts["seconds"], counts["bytes"])
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
