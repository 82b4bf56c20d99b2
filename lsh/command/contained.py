"""``lsh contained``: find items, such as the questions of a test set, within the texts of documents.

`lsh.find_contained` decides what contains what. This module opens the files and writes the tables, the report, and the
documents that contain no item, or without what they contain.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, get_args

import numpy as np

from lsh import files
from lsh.base.arrays import Array
from lsh.base.threads import number_of
from lsh.base.wording import counted, size
from lsh.files import ReadOptions
from lsh.files.records import NO_ID, checked_delimiter, is_number
from lsh.passages.contained import Containing, find
from lsh.passages.contained_result import Contained
from lsh.passages.rules import rule
from lsh.terminal import console, inputs, options, outputs, shortening
from lsh.terminal.inputs import ItemStream
from lsh.terminal.outputs import Reference, Stopwatch
from lsh.terminal.rows import hit_rows, skipped_rows
from lsh.typing import RuleName

OPTIONS_OF_REPORT = (  # listed in a report if they have a value
    "output",
    "cut",
    "mark",
    "hits",
    "skipped",
    "dry_run",
    "preset",
    "item_field",
    "item_id_field",
    "item_delimiter",
)
OF_ITEMS = "each item would be found in its own text; name other files"  # a file that is INPUT and ITEMS
STAGE_SHARES = {"items": 0.02, "counting": 0.7, "searching": 1.0}
COUNTS = ["items", "skipped", "found_items", "texts", "found_texts", "hits", "missing", "common"]
COUNTS += ["bytes", "found_bytes", "window_bytes"]
COLUMNS = ".jsonl, .csv, .tsv, .parquet and .arrow"  # formats with columns

EPILOG = f"""\
examples:
  lsh contained questions.jsonl 'part-*.jsonl.gz' --dry-run --report found.html --hits hits.tsv
  lsh contained questions.jsonl 'part-*.jsonl.gz' -o clean/
  lsh contained questions.jsonl corpus.jsonl -o clean.jsonl --preset gpt3 --max-share 0.001
  lsh contained gsm8k.tsv --items mmlu.csv corpus.jsonl -o clean.jsonl --cut --max-share 0.001

The containment of an item is the share of its shingles that a window of a text has. A text contains the item if this is
--threshold or more. Run it with --dry-run first, look at the report, and then write OUTPUT.

{options.FORMATS}
ITEMS are held in memory, INPUT is streamed: read once, and twice with --max-share. Their formats may differ; --format
is for names that do not say one.

tables, tab-separated, without a header line:
  --hits     id of the text, of several files of items the file of the item, id of the item, containment, where the
             window starts and ends in the text, and the number of shared shingles. Positions count bytes of the text as
             UTF-8, from 0
  --skipped  of several files of items the file of the item, id of the item, and why it was not looked for

{console.EXITS}"""


@dataclass(frozen=True)
class Request(outputs.Request):
    """A run of ``lsh contained``: also when a text contains an item.

    Attributes
    ----------
    item_readings : sequence of ReadOptions
        How each of the files of items, which are the `references`, is read.
    cut : bool
        Whether windows are cut, not documents left out.
    mark : str or None
        The field of --mark.
    """

    is_streamed: ClassVar[bool] = True
    item_readings: Sequence[ReadOptions]
    containing: Containing
    cut: bool
    mark: str | None


# ---- options ----


def add_parser(commands: argparse._SubParsersAction[console.Parser]) -> None:
    """Add the command to the parsers of the command line."""
    parser = commands.add_parser(
        "contained",
        help="find items, such as the questions of a test set, within documents",
        description="Find the texts of ITEMS, such as the questions of a test set, within the longer texts of INPUT, "
        "whole or changed. Write the documents that contain none to OUTPUT, or with --cut all without what they "
        "contain.",
        epilog=EPILOG,
    )
    parser.add_argument("items", metavar="ITEMS", help="a file of items, a folder or a quoted pattern")
    outputs.add_outputs(parser, "do not write OUTPUT; print how much would go. Tables and the report are written")
    parser.add_argument("--items", dest="more_items", metavar="FILE", action="append", help="more items; repeatable")
    parser.add_argument("--hits", metavar="FILE", help="write which text contains which item, and where")
    parser.add_argument("--skipped", metavar="FILE", help="write which items were not looked for, and why")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--cut", action="store_true", help="write the documents without the windows in which items were found"
    )
    shortening.add_mark(how)
    _add_matching(parser)
    options.add_reading(parser)
    group = parser.add_argument_group("reading the items", "The other options of reading are for ITEMS, too.")
    group.add_argument(
        "--item-field", action=options.Once, metavar="FIELD", help="column of the item (default: as --field)"
    )
    group.add_argument(
        "--item-id-field", action=options.Once, metavar="FIELD", help="column of its id (default: as --id-field)"
    )
    group.add_argument(
        "--item-delimiter", action=options.Once, help="character between the columns (default: as --delimiter)"
    )
    options.add_running(parser, max_memory=False)
    parser.set_defaults(run=run, against=None)


def _add_matching(parser: console.Parser) -> None:
    """Add the options of when a text contains an item."""
    group = parser.add_argument_group("what is found")
    least = group.add_mutually_exclusive_group()
    least.add_argument("--threshold", type=float, help="minimum share of an item's shingles in a window (default 0.8)")
    least.add_argument(
        "--min-shared",
        type=options.whole,
        metavar="N",
        help="minimum number of an item's shingles in a window, in place of --threshold",
    )
    group.add_argument(
        "--window",
        type=float,
        metavar="X",
        help="length of the longest window, as a multiple of the item's length; inf: the whole text (default 2)",
    )
    group.add_argument(
        "--max-share",
        type=float,
        metavar="S",
        help="ignore shingles that more than this share of the texts have, such as 0.001; INPUT is read twice "
        "(default: ignore none)",
    )
    group.add_argument(
        "--preset",
        choices=get_args(RuleName),
        help="a published rule of decontamination: sets shingles, --threshold or --min-shared, and --window",
    )
    described = "The default is three words, in lower case and without punctuation."
    options.add_words(parser.add_argument_group("shingles", described))


def run(namespace: argparse.Namespace) -> None:
    """Run ``lsh contained``."""
    watch = Stopwatch()
    request = _request(namespace)
    inputs.note_memory(request.outputs.written(), request.running.quiet)
    counts = _find(request, watch)
    counts["seconds"] = watch.ended()
    _print_counts(request, counts)


def _request(namespace: argparse.Namespace) -> Request:
    """Return the checked request."""
    outputs.take_input(namespace)
    mark = shortening.checked_mark(namespace)
    written = outputs.checked_outputs(namespace, "--hits", "--skipped")
    containing = _containing(namespace)
    reading, running = options.reading(namespace), options.running(namespace)
    if namespace.cut or mark is not None:
        shortening.check_column(reading)
    references = [
        Reference(name, path, replace(reading, format=None if files.Format.of_path(path) else reading.format), OF_ITEMS)
        for name, paths in (("ITEMS", [namespace.items]), ("--items", namespace.more_items or ()))
        for path in paths
    ]
    sources, items = outputs.find_sources(
        namespace, written, reading, running.quiet, ["--hits", "--skipped"], references
    )
    _check_items(namespace, items)
    shown = {"ITEMS": " ".join(files.shown(one.path) for one in references)}
    given = {**shown, **outputs.given_options(namespace, OPTIONS_OF_REPORT)}
    readings = [_item_reading(namespace, one, reading) for one in items]
    cut = namespace.cut
    return Request(sources, items, "first", reading, running, written, given, readings, containing, cut, mark)


def _containing(namespace: argparse.Namespace) -> Containing:
    """Return when a text contains an item, from the options or a preset."""
    others = {"max_share": namespace.max_share, "missing": namespace.missing}
    names = ("threshold", "window", "min_shared")
    if namespace.preset is not None:
        options.refuse(namespace, (*names, *options.SHINGLE_OPTIONS), "{0} cannot be combined with --preset")
        return Containing(**rule(namespace.preset).options(), **others)
    given = {name: getattr(namespace, name) for name in names if getattr(namespace, name) is not None}
    return Containing(shingles=options.shingles_of_items(namespace), **given, **others)


def _item_reading(namespace: argparse.Namespace, items: files.Sources, reading: ReadOptions) -> ReadOptions:
    """Return how a file of items is read: its own columns, or else those of INPUT if its format can have them."""
    format = items.found[0].format.name
    numbered, has_header = format in ("csv", "tsv"), format == "csv" if reading.header is None else reading.header
    named = has_header if numbered else format not in ("txt", files.FOLDER)
    fields = {}
    for name in ("field", "id_field"):
        own, other = getattr(namespace, f"item_{name}"), getattr(reading, name)
        by_number = other is not None and all(is_number(one.strip()) for one in other.split(","))
        fields[name] = other if own is None and (numbered if by_number else named or other == NO_ID) else own
    if namespace.item_delimiter is not None:
        fields["delimiter"] = checked_delimiter(namespace.item_delimiter, "item_delimiter")
    return replace(reading, source_field=None, **fields)


def _check_items(namespace: argparse.Namespace, items: Sequence[files.Sources]) -> None:
    """Check that no file of items is given twice, and that there are columns if the columns of items are named."""
    for position, one in enumerate(items):
        for other in items[:position]:
            if (shared := inputs.shared_file(one, other)) is not None:
                raise ValueError(f"{shared} is given twice: its items would be counted twice; name it once")
    formats = [one.found[0].format.name for one in items]
    if all(format in ("txt", files.FOLDER) for format in formats):
        shown = "a folder of texts" if formats[0] == files.FOLDER else f".{formats[0]}"
        problem = f"{{0}} is for {COLUMNS}, and ITEMS is {shown}; leave it out"
        options.refuse(namespace, ("item_field", "item_id_field", "item_delimiter"), problem)


# ---- the run ----


def _find(request: Request, watch: Stopwatch) -> dict[str, Any]:
    """Read, find and write; return the counts of the run."""
    written, running = request.outputs, request.running
    shares = {name: share for name, share in STAGE_SHARES.items() if name != "counting" or request.containing.max_share}

    def check(documents: files.Documents) -> None:
        if written.output is not None:
            shortening.check_documents(documents, written, request.mark, "--hits")

    with ExitStack() as opened:
        added = [] if request.mark is None else [files.Added(request.mark, "spans")]
        with_ids = written.tables["--hits"] is not None or written.report is not None
        open_items = partial(_opened_items, opened, request)
        run = outputs.open_run(opened, request, check, added, with_ids, shares, open_items, request.cut)
        watch.stage("preparing")
        found = find(request.containing, run.old, run.texts, number_of(running.num_threads), run.meter)
        watch.stage("preparing", found.summary()["seconds"])
        outputs.write_report(opened, request, run, watch, lambda: _report(request, found, run))
        if found.summary()["items"] == 0:
            skipped = f" but {counted(run.old.skipped, 'bad line')}" if run.old.skipped else ""
            problem = f"ITEMS has no items{skipped}: nothing would be found"
            raise ValueError(f"{problem}; name a file with a text in each record, and its column by --item-field")
        emptied = _emptied(found, run) if request.cut else np.empty(0, np.int64)
        _write(request, found, run, emptied)
        watch.stage("writing")
    summary = found.summary()
    counts = {name: summary[name] for name in COUNTS}
    counts["emptied"] = len(emptied)
    counts["read"] = run.texts.num_bytes + run.old.num_bytes
    counts["bad_lines"] = run.texts.skipped + run.old.skipped
    counts["hidden"] = run.texts.hidden + run.old.hidden
    return counts


def _opened_items(opened: ExitStack, request: Request, rejects: files.Target | None) -> ItemStream:
    """Open the files of items, which `opened` closes."""
    everything, documents = [request.sources, *request.references], list[files.Documents]()
    with inputs.named_as(inputs.OF_ITEMS):
        for one, reading in zip(request.references, request.item_readings):
            documents.append(opened.enter_context(inputs.open_documents(reading, one, rejects, everything)))
    with_sources, notes = request.outputs.report is not None, None if request.running.quiet else "ITEMS: "
    return ItemStream(documents, with_sources=with_sources, notes=notes)


def _emptied(found: Contained, run: outputs.OpenRun) -> Array:
    """Return the documents of which nothing is left."""
    cuts = found.cuts
    is_whole = cuts["end"] - cuts["start"] == run.texts.sizes.read()[cuts["document"]]
    return np.asarray(cuts["document"][is_whole])


def _report(request: Request, found: Contained, run: outputs.OpenRun) -> str:
    """Return the report; the texts that it shows are read again."""
    from lsh import report

    choice, of_items = report.choose_contained(found), run.old.sources
    values = outputs.report_values(request, run, run.old, choice.positions, choice.item_positions)
    items, values["item_ids"] = values.pop("against"), values.pop("against_ids")
    values["item_sources"] = of_items if len(of_items.distinct) > 1 else None
    return report.contained(found, items, choice=choice, **values)


def _write(request: Request, found: Contained, run: outputs.OpenRun, emptied: Array) -> None:
    """Write the documents, if they have a target, and the tables; put all files in place when they are complete."""
    paths = request.outputs.tables
    with ExitStack() as opened:
        if request.cut or request.mark is not None:
            shortening.write_documents(opened, run, found.cuts, emptied, request.mark)
        else:
            keep = np.ones(run.texts.count, np.bool_)
            keep[found.hits["text"]] = False
            outputs.write_documents(opened, run, keep, files.Edits())
        outputs.write_table(opened, run, paths["--hits"], lambda: hit_rows(found, run.texts, run.old))
        outputs.write_table(opened, run, paths["--skipped"], lambda: skipped_rows(found, run.old))
        outputs.put_in_place(run)


# ---- counts ----


def _print_counts(request: Request, counts: dict[str, Any]) -> None:
    """Print the counts: as JSON to standard output, as a summary line to standard error."""
    containing = request.containing
    parameters = {
        "threshold": None if containing.min_shared else containing.threshold,
        "window": None if math.isinf(containing.window) else containing.window,
        "min_shared": containing.min_shared,
        "max_share": containing.max_share,
    }
    least = f"containment {containing.threshold:g} or more"
    if containing.min_shared is not None:
        least = f"{counted(containing.min_shared, 'shared shingle')} or more"
    described = f"{least}, window {containing.window:g}, {containing.own_shingles!r}"
    outputs.print_counts(request, counts, parameters, described, _summary(request, counts))


def _summary(request: Request, counts: dict[str, Any]) -> str:
    parts = [counted(counts["items"], "item")]
    parts += [f"{counts['skipped']:,} not looked for"] if counts["skipped"] else []
    found = f"{counted(counts['found_items'], 'item')} in {counted(counts['found_texts'], 'document')}"
    parts += [counted(counts["texts"], "document"), f"{counted(counts['hits'], 'hit')}: {found}"]
    cuts = request.cut or request.mark is not None
    num_bytes = counts["window_bytes" if cuts else "found_bytes"]
    share = f" ({num_bytes / counts['bytes']:.2%})" if counts["bytes"] else ""
    done = "would be " if request.outputs.dry_run or request.mark is not None else ""
    parts += [f"{size(num_bytes)}{share} {done}{'cut' if cuts else 'removed'}"]
    parts += [f"{counts['emptied']:,} emptied"] if counts["emptied"] else []
    parts += [f"{counts['missing']:,} missing"] if counts["missing"] else []
    parts += console.left_out(counts["bad_lines"], counts["hidden"])
    return ", ".join(parts + outputs.cost(counts["seconds"], counts["read"]))
