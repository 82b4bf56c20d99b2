"""``lsh passages``: write documents without the passages that occur elsewhere.

`lsh.find_passages` decides what is cut. This module opens the files and writes the shortened documents, the table of
passages and the report.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, get_args

import lsh
from lsh import files
from lsh.base.wording import counted, size
from lsh.engine.dedup import Running
from lsh.passages.finding import STAGE_SHARES, Cutting, find
from lsh.passages.result import Passages
from lsh.terminal import console, inputs, options, outputs, shortening
from lsh.terminal.outputs import Stopwatch
from lsh.terminal.rows import span_rows
from lsh.typing import PassageUnit

OPTIONS_OF_REPORT = (  # listed in a report if they have a value
    "output",
    "spans",
    "dry_run",
    "mark",
    "lowercase",
    "strip_punctuation",
    "collapse_whitespace",
    "normalize",
    "keep",
    "keep_field",
)

EPILOG = f"""\
examples:
  lsh passages news.tsv.gz -o clean.tsv.gz --report passages.html
  lsh passages 'part-*.jsonl.gz' -o clean/ --min-bytes 300 --max-memory 4GB
  lsh passages train.jsonl -o clean.jsonl --unit line --lowercase --spans spans.tsv

{options.FORMATS}
A document without repeated passages is written unchanged, others with a shorter text; all other
bytes of a record stay. A document of which nothing is left is not written, unless it was empty before.

table, tab-separated, without a header line:
  --spans  id of the document, where the passage starts and ends in its text, id of the document that keeps an equal
           passage, and where it starts there; with --against also whether that document is new (INPUT) or old (OLD).
           Positions count bytes of the text as UTF-8, from 0

{console.EXITS}"""


@dataclass(frozen=True)
class Request(outputs.Request):
    """A run of ``lsh passages``: also what it cuts.

    Attributes
    ----------
    mark : str or None
        The field of --mark.
    """

    cutting: Cutting
    mark: str | None


# ---- options ----


def add_parser(commands: argparse._SubParsersAction[console.Parser]) -> None:
    """Add the command to the parsers of the command line."""
    parser = commands.add_parser(
        "passages",
        help="cut repeated passages out of documents",
        description="Write the documents of INPUT to OUTPUT without the passages that occur elsewhere in INPUT. One of "
        "several equal passages is kept.",
        epilog=EPILOG,
    )
    outputs.add_outputs(parser, "do not write OUTPUT; print how much would be cut. --spans and the report are written")
    parser.add_argument("--spans", metavar="FILE", help="write where the passages are, and where each is kept")
    shortening.add_mark(parser)
    group = parser.add_argument_group("passages")
    group.add_argument(
        "--min-bytes",
        type=options.whole,
        metavar="N",
        default=200,
        help="minimum length of a passage in bytes of UTF-8, 8 or more, or 1 with lines and paragraphs (default 200)",
    )
    group.add_argument(
        "--unit",
        choices=get_args(PassageUnit),
        default="bytes",
        help="what is compared: every run of text, whole lines, or whole paragraphs, which blank lines separate "
        "(default bytes)",
    )
    group = parser.add_argument_group(
        "how lines and paragraphs are normalised", "With --unit line or --unit paragraph."
    )
    options.add(group, "--lowercase", "--strip-punctuation", "--collapse-whitespace", "--normalize")
    outputs.add_keeping(
        parser.add_argument_group("what is kept"),
        "reference files: never written; passages that occur in them are cut from INPUT",
        "the order of the documents, behind those of --against: a passage is kept in the first one that has it",
    )
    options.add_reading(parser, several=False)
    options.add_running(parser)
    parser.set_defaults(run=run)


def run(namespace: argparse.Namespace) -> None:
    """Run ``lsh passages``."""
    watch = Stopwatch()
    request = _request(namespace)
    inputs.note_memory(request.outputs.written(), request.running.quiet)
    counts = _cut(request, watch)
    counts["seconds"] = watch.ended()
    _print_counts(request, counts)


def _request(namespace: argparse.Namespace) -> Request:
    """Return the checked request."""
    outputs.take_input(namespace)
    mark = shortening.checked_mark(namespace)
    written = outputs.checked_outputs(namespace, "--spans")
    keep = outputs.checked_keep(namespace)
    shingles = None
    normalised = {name: getattr(namespace, name) for name in options.SHINGLE_OPTIONS if name not in ("ngram", "unit")}
    if any(normalised.values()):
        shingles = lsh.Shingles(**{name: value for name, value in normalised.items() if value is not None})
    if shingles is not None and namespace.unit == "bytes":
        options.refuse(namespace, normalised, "{0} requires --unit line or --unit paragraph")
    by_position: Any = "first" if keep in outputs.BY_VALUE else keep
    cutting = Cutting(namespace.min_bytes, namespace.unit, by_position, shingles, namespace.missing)
    reading, running = options.reading(namespace), options.running(namespace)
    shortening.check_column(reading)
    sources, references = outputs.find_sources(namespace, written, reading, running.quiet, ["--spans"])
    given = outputs.given_options(namespace, OPTIONS_OF_REPORT, keep=keep)
    return Request(sources, references, keep, reading, running, written, given, cutting, mark)


# ---- the run ----


def _cut(request: Request, watch: Stopwatch) -> dict[str, Any]:
    """Read, decide and write; return the counts of the run."""
    written, running = request.outputs, request.running

    def check(documents: files.Documents) -> None:
        shortening.check_documents(documents, written, request.mark, "--spans")

    with ExitStack() as opened:
        added = [] if request.mark is None else [files.Added(request.mark, "spans")]
        with_ids = written.tables["--spans"] is not None or written.report is not None
        run = outputs.open_run(opened, request, check, added, with_ids, STAGE_SHARES)
        texts, old, meter = run.texts, run.old, run.meter
        watch.stage("preparing")
        limits = Running.checked(**running.limits(), progress=meter)
        found = find(request.cutting, texts, old if request.references else None, limits, run.priorities)
        watch.stage("preparing", found.summary()["seconds"])
        outputs.write_report(opened, request, run, watch, lambda: _report(request, found, run))
        _write(request, found, run)
        watch.stage("writing")
    counts = found.summary()
    counts["read"] = texts.num_bytes + old.num_bytes
    counts["skipped"], counts["hidden"] = texts.skipped, texts.hidden
    return counts


def _report(request: Request, found: Passages, run: outputs.OpenRun) -> str:
    """Return the report; the texts that it shows are read again."""
    from lsh import report

    choice = report.choose_passages(found)
    values = outputs.report_values(request, run, run.old, choice.positions, choice.against_positions)
    return report.passages(found, choice=choice, sizes=outputs.sizes_of(run.texts), **values)


def _write(request: Request, found: Passages, run: outputs.OpenRun) -> None:
    """Write the documents, if they have a target, and the table; put all files in place when they are complete."""
    with ExitStack() as opened:
        shortening.write_documents(opened, run, found.cuts, found.emptied, request.mark)
        spans = request.outputs.tables["--spans"]
        outputs.write_table(opened, run, spans, lambda: span_rows(found, run.texts, run.old))
        outputs.put_in_place(run)


# ---- counts ----


def _print_counts(request: Request, counts: dict[str, Any]) -> None:
    """Print the counts: as JSON to standard output, as a summary line to standard error."""
    cutting = request.cutting
    normalised = "" if cutting.shingles is None else f", normalised by {cutting.shingles!r}"
    described = f"passages of {cutting.min_bytes:,} bytes or more, unit {cutting.unit}, keep {request.keep}{normalised}"
    parameters = {"min_bytes": cutting.min_bytes, "unit": cutting.unit}
    outputs.print_counts(request, counts, parameters, described, _summary(request, counts))


def _summary(request: Request, counts: dict[str, Any]) -> str:
    parts = [counted(counts["documents"], "document")]
    parts += [counted(counts["old"], "reference document")] if request.references else []
    share = f" ({counts['cut_bytes'] / counts['bytes']:.2%})" if counts["bytes"] else ""
    is_cut = "would be cut" if request.outputs.dry_run or request.mark is not None else "cut"
    cut = f"{counted(counts['spans'], 'passage')} {is_cut} from {counted(counts['cut_documents'], 'document')}"
    parts += [f"{cut}, {size(counts['cut_bytes'])}{share}"]
    parts += [f"{counts['emptied']:,} emptied"] if counts["emptied"] else []
    parts += [f"{counts['missing']:,} missing"] if counts["missing"] else []
    parts += console.left_out(counts["skipped"], counts["hidden"])
    return ", ".join(parts + outputs.cost(counts["seconds"], counts["read"]))
