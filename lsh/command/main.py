"""The command line: ``lsh COMMAND``, and its first command, ``lsh dedup INPUT -o OUTPUT``.

It reads and writes by `lsh.files` and leaves the work to `lsh.deduplicate`; the other commands are in
`lsh.command.commands`. Data goes to files or standard output, words for people to standard error. Exit codes: 0 done;
2 bad usage or bad input, or a file that cannot be read or written; 130 interrupted; 141 the reader of standard output
went away; 143 terminated.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

import lsh
from lsh import files, presets
from lsh._words import counted
from lsh.command import commands, console, options
from lsh.dedup import CAP

REPORTED = (
    "output",
    "removed",
    "clusters",
    "dry_run",
    "preset",
    "recall",
    "keep",
    "clusters_mode",
    "field",
    "id_field",
    "source_field",
    "missing",
    "on_bad_line",
)

LSH = f"""\
example:
  lsh dedup news.tsv.gz -o unique.tsv

"lsh COMMAND --help" tells the rest, with an example of each.

{console.EXITS}"""

DEDUP = f"""\
examples:
  lsh dedup news.tsv.gz -o unique.tsv --threshold 0.8 --ngram 5 --unit byte --removed removed.tsv
  lsh dedup 'part-*.jsonl.gz' -o unique.jsonl.gz --report report.html --max-memory 4GB

{options.FORMATS}Kept documents go out as they came in, in their order: lines byte for byte.

tables, tab-separated:
  --removed   removed id, kept id, similarity; with --against also new or old: where the kept one is
  --clusters  number of the cluster, id; one line a document, the kept one of each cluster first

{console.EXITS}"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        console.end_on_signals()
        parser = _parser()
        chosen, unknown = parser.parse_known_args(arguments)
        if unknown:
            chosen.usage_error(_unknown(unknown[0], chosen.known))
        if chosen.version:
            console.write_data(f"lsh-dedup {lsh.__version__}\n")
            return console.EXIT_OK
        if chosen.command is None:
            parser.print_help(sys.stderr)
            return console.EXIT_BAD
        code: int = chosen.run(chosen)
        return code
    except BrokenPipeError:
        return console.EXIT_PIPE  # what is written goes through a descriptor of its own, so nothing is left to flush
    except console.TerminatedError:
        return console.fail("terminated", console.EXIT_TERMINATED)
    except KeyboardInterrupt:
        return console.fail("interrupted", console.EXIT_INTERRUPTED)
    except MemoryError:
        return console.fail("there is not enough memory; see --max-memory", console.EXIT_BAD)
    except (ValueError, OSError, ImportError) as error:
        return console.fail(error, console.EXIT_BAD)


def _unknown(argument: str, known: Sequence[str]) -> str:
    """Say that nobody knows an argument, and which option may be meant."""
    name = argument.partition("=")[0]
    near = difflib.get_close_matches(name, known, 1) if name.startswith("--") else []
    return f"{name} is no option of it{f', {near[0]} is' if near else ''}" if name[:1] == "-" else f"what is {name!r}?"


def _parser() -> argparse.ArgumentParser:
    parser = console.Parser(
        prog="lsh",
        description="Find near-duplicate documents.",
        epilog=LSH,
    )
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    added = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=console.Parser)
    _add_dedup(added)
    commands.add(added)
    for one in (parser, *added.choices.values()):
        known = [option for action in one._actions for option in action.option_strings]
        one.set_defaults(usage_error=one.error, known=known)
    return parser


def _add_dedup(added: Any) -> None:
    parser = added.add_parser(
        "dedup",
        help="write the documents of a file that are no near duplicates of a kept one",
        description="Write the documents of INPUT to OUTPUT, without those that are near duplicates of a kept one: "
        "whose shingle sets have a Jaccard similarity of at least the threshold.",
        epilog=DEDUP,
    )
    parser.add_argument(
        "input", metavar="INPUT", nargs="+", help="files of documents of one format, or a folder; - for standard input"
    )
    parser.add_argument(
        "-o", "--output", metavar="OUTPUT", help="the file to write, or a new folder; - for standard output"
    )
    parser.add_argument("--removed", metavar="FILE", help="write here what is removed, and for which document")
    parser.add_argument("--clusters", metavar="FILE", help="write here the clusters of two or more documents")
    parser.add_argument("--rejects", metavar="FILE", help="write here the lines that --on-bad-line skip passes over")
    parser.add_argument("--report", metavar="FILE", help="write here a page of HTML to look at")
    parser.add_argument("--source-field", metavar="FIELD", help="the column of sources, for --report (default: files)")
    parser.add_argument("--json", action="store_true", help="write the counts of the run to standard output")
    parser.add_argument(
        "--dry-run", action="store_true", help="write no file but --report, only tell how many would be removed"
    )
    options.add_finding(parser)
    parser.add_argument(
        "--preset",
        choices=presets.NAMES,
        help="do as FineWeb, BigCode or NeMo Curator did; it settles what near duplicates are, and the clusters",
    )
    group = parser.add_argument_group("what is kept")
    group.add_argument("--against", metavar="OLD", nargs="+", action="extend", help="files of documents that all stay")
    group.add_argument(
        "--keep",
        choices=("first", "last", "longest"),
        default="first",
        help="which document stands for those like it (default first)",
    )
    group.add_argument(
        "--clusters-mode",
        choices=("representative", "components"),
        help="remove what is like a kept one, or what is connected with it through similar pairs "
        "(default representative)",
    )
    options.add_reading(parser)
    options.add_running(parser)
    parser.set_defaults(run=dedup)


def dedup(chosen: argparse.Namespace) -> int:
    """Run ``lsh dedup``."""
    started = time.perf_counter()
    if chosen.output is None and not chosen.dry_run:
        chosen.usage_error("give -o OUTPUT, or --dry-run to write nothing")
    _check_streams(chosen)
    if chosen.source_field is not None and chosen.report is None:
        raise ValueError("--source-field is for --report; give that, too")
    if chosen.preset is None:
        parameters, bands = options.finding(chosen)
        parameters["clusters"] = options.value(chosen, "clusters_mode")
    else:
        parameters, bands = options.by_preset(chosen)
    old = [] if chosen.against is None else chosen.against
    _check_files(chosen, old)
    if chosen.verbose:
        console.say(f"{parameters['hasher']!r}\n{bands}")
    with ExitStack() as opened:
        rejects = (
            None if chosen.rejects is None or chosen.dry_run else opened.enter_context(files.Target(chosen.rejects))
        )
        source = opened.enter_context(options.source(chosen, chosen.input, rejects, chosen.source_field))
        _check_form(source, chosen.output)
        output = None if chosen.dry_run else files.target(source, chosen.output)  # says now where it cannot be
        others = [opened.enter_context(options.source(chosen, path)) for path in old]
        shown = chosen.report is not None
        with_ids = shown or chosen.removed is not None or chosen.clusters is not None
        texts = options.TextStream([source], with_ids, with_sizes=shown, with_names=shown)
        against = options.TextStream(others, with_ids)
        result = lsh.deduplicate(
            texts,
            **parameters,
            against=against if others else None,
            keep=chosen.keep,
            progress=console.progress(chosen.quiet, files.STANDARD if chosen.json else chosen.output),
        )
        report = None
        if shown:
            report = opened.enter_context(files.Target(chosen.report))
            report.write(_report(chosen, result, texts, against).encode())
        if output is not None:
            _write(chosen, source, result, texts.ids, against.ids, output)
        for complete in filter(None, (rejects, report)):
            complete.commit()
    counts = result.summary()
    counts["bytes"] = texts.num_bytes + against.num_bytes
    counts["skipped"], counts["hidden"] = texts.skipped, texts.hidden
    counts["seconds"]["total"] = time.perf_counter() - started
    _tell(chosen, counts, parameters["threshold"], bands)
    return console.EXIT_OK


def _check_streams(chosen: argparse.Namespace) -> None:
    """Check that --json has standard output for itself."""
    taken = {"--report": chosen.report}
    if not chosen.dry_run:
        taken |= {"OUTPUT": chosen.output, "--removed": chosen.removed, "--clusters": chosen.clusters}
        taken["--rejects"] = chosen.rejects
    for name, path in taken.items():
        if chosen.json and path == files.STANDARD:
            raise ValueError(f"--json and {name} both take standard output; name a file as {name}")


def _check_files(chosen: argparse.Namespace, old: list[str]) -> None:
    written = [("OUTPUT", chosen.output), ("--removed", chosen.removed), ("--clusters", chosen.clusters)]
    written += [("--rejects", chosen.rejects), ("--report", chosen.report)]
    read = [("INPUT", path) for path in chosen.input] + [("--against", path) for path in old]
    options.check_files(read, written)


def _check_form(source: files.Documents, output: str | None) -> None:
    """Check that the name of OUTPUT does not promise another format than that of INPUT."""
    ending = None if output is None else files.Format.of_path(output)
    if ending is not None and source.format.name not in (ending.name, files.FOLDER):
        raise ValueError(
            f"OUTPUT gets the documents of INPUT as they are, .{source.format.name}; got the name {output}"
        )


def _write(
    chosen: argparse.Namespace,
    source: files.Documents,
    result: lsh.Deduplication,
    ids: options.Ids,
    old: options.Ids,
    output: files.Target | files.FolderTarget,
) -> None:
    """Write every file that is asked for, and put them in their places when all are complete."""
    with ExitStack() as opened:
        opened.enter_context(output)
        files.write_kept(source, result.keep.tolist(), output)
        tables = []
        if chosen.removed is not None:
            tables.append(opened.enter_context(files.Target(chosen.removed)))
            files.write_removed(ids, result.removed, tables[-1], old)
        if chosen.clusters is not None:
            tables.append(opened.enter_context(files.Target(chosen.clusters)))
            for number, members in enumerate(result.clusters(), 1):
                for document in members.tolist():
                    tables[-1].write(files.table_row(b"%d" % number, ids[document]))
        for table in [*tables, output]:
            table.commit()


def _report(
    chosen: argparse.Namespace, result: lsh.Deduplication, texts: options.TextStream, against: options.TextStream
) -> str:
    """Return the page of the run; of the texts those that it shows are read once more."""
    from lsh import report

    sizes = np.maximum(np.frombuffer(texts.sizes, np.int64), 0)
    new, old = report.positions(result, sizes=sizes)
    several = chosen.source_field is not None or len(texts.names.distinct) > 1
    return report.html(
        result,
        texts=dict(texts.at(new)).__getitem__,
        parameters=_named_options(chosen),
        ids=texts.ids,
        sizes=sizes,
        sources=texts.names if several else None,
        against=dict(against.at(old)).__getitem__,
        against_ids=against.ids,
    )


def _named_options(chosen: argparse.Namespace) -> dict[str, str]:
    """Return what else a report says of the run: what was given, but for what leaves the result alone."""
    given = {
        "INPUT": " ".join(chosen.input),
        "--against": " ".join(chosen.against or []),
        **{f"--{name.replace('_', '-')}": getattr(chosen, name) for name in REPORTED},
    }
    return {name: "yes" if value is True else str(value) for name, value in given.items() if value}


def _tell(chosen: argparse.Namespace, counts: dict[str, Any], threshold: float, bands: lsh.Bands | lsh.Plan) -> None:
    """Say what came of the run: to machines, and to people."""
    if chosen.json:
        shape = (bands.bands if isinstance(bands, lsh.Plan) else bands).to_string()
        run = {"threshold": threshold, "bands": shape, "peak_memory": console.peak_memory()}
        console.write_data(json.dumps({**counts, **run}) + "\n")
    if chosen.verbose:
        stages = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in counts["seconds"].items())
        console.say(
            f"{counts['candidates']:,} candidate pairs, {counts['compared']:,} of them compared\n"
            f"{counts['identical']:,} removed for the same bytes, {counts['without_shingles']:,} without shingles\n"
            f"seconds: {stages}"
        )
    if chosen.quiet:
        return
    parts = [counted(counts["documents"], "document")]
    parts += [f"against {counts['old']:,}"] if chosen.against is not None else []
    for_old = f", {counts['for_old']:,} of them for an old one" if chosen.against is not None else ""
    parts += [f"{counts['removed']:,} removed{for_old}", counted(counts["clusters"], "cluster")]
    parts += [f"{counts['missing']:,} missing"] if counts["missing"] else []
    parts += [f"{counted(counts['skipped'], 'bad line')} skipped"] if counts["skipped"] else []
    parts += [f"{counted(counts['hidden'], 'hidden file')} passed over"] if counts["hidden"] else []
    parts += console.cost(counts["seconds"]["total"], counts["bytes"])
    if counts["capped"]:
        parts.append(f"{counted(counts['capped'], 'comparison')} left out, in buckets of more than {CAP:,}")
    console.say(", ".join(parts))
