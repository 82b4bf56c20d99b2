"""The command line: ``lsh dedup INPUT -o OUTPUT``.

It reads and writes by `lsh.io` and leaves the work to `lsh.deduplicate`. Data goes to files or standard output, words
for people to standard error. Exit codes: 0 done; 2 bad usage or bad input, or a file that cannot be read or written;
130 interrupted; 141 the reader of standard output went away.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress

import lsh
from lsh import checks, io
from lsh.dedup import DEFAULT_SEEDS
from lsh.planning import DEFAULT_RECALL
from lsh.shingling import UNITS

EXIT_OK, EXIT_BAD, EXIT_INTERRUPTED, EXIT_PIPE = 0, 2, 130, 141
REDRAW = 0.1  # seconds between two states of the progress line

EXAMPLE = """\
example:
  lsh dedup news.tsv.gz -o unique.tsv --threshold 0.8 --ngram 5 --unit byte --removed removed.tsv

formats (the ending of INPUT, or --format; each also with .gz):
  .jsonl  one JSON object per line: the text in the field "text" (--field), the id in "id"
  .tsv    no header; one column is the text; with more, the first is the id and the second the text
  .txt    one document per line
Without an id the line number is the id. Kept lines are written byte for byte, in their order.

exit codes: 0 done; 2 bad usage, bad input, or a file that cannot be read or written; 130 interrupted
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help(sys.stderr)
        return EXIT_BAD
    try:
        return dedup(options)
    except BrokenPipeError:
        return EXIT_PIPE  # what is written goes through a descriptor of its own, so nothing is left to flush
    except KeyboardInterrupt:
        return _fail("interrupted", EXIT_INTERRUPTED)
    except (ValueError, OSError) as error:
        return _fail(_message(error), EXIT_BAD)


def _fail(message: str, code: int) -> int:
    printable = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in message)
    _say(f"lsh: error: {printable}")
    return code


def _say(line: str) -> None:
    """Write a line for people, over the progress line where there is one."""
    with suppress(OSError):  # words that cannot be said are no reason to fail
        if sys.stderr is None:
            return
        print("\r\x1b[K" + line if sys.stderr.isatty() else line, file=sys.stderr)


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lsh", description="Find near-duplicate documents.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"lsh-dedup {lsh.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    command = commands.add_parser(
        "dedup",
        allow_abbrev=False,
        help="write the documents of a file that are no near duplicates of a kept one",
        description="Write the documents of INPUT to OUTPUT, without those that are near duplicates of a kept one: "
        "whose shingle sets have a Jaccard similarity of at least the threshold.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("input", metavar="INPUT", help="the file of documents; - for standard input")
    command.add_argument(
        "-o", "--output", metavar="OUTPUT", required=True, help="the file to write; - for standard output"
    )
    command.add_argument(
        "--threshold", type=float, default=0.8, help="least similarity of near duplicates (default 0.8)"
    )
    command.add_argument("--ngram", type=int, default=8, help="units per shingle (default 8)")
    command.add_argument("--unit", choices=UNITS, default="char", help="what is shingled (default char)")
    command.add_argument(
        "--num-seeds", type=int, default=DEFAULT_SEEDS, help=f"components per fingerprint (default {DEFAULT_SEEDS})"
    )
    command.add_argument(
        "--recall",
        type=float,
        help=f"least probability to find a pair just at the threshold (default {DEFAULT_RECALL})",
    )
    command.add_argument("--bands", help="bands x width, such as 20x6 or 2x7+14x8, in place of --recall")
    command.add_argument("--field", help="the field of a JSON record that holds the text (default text)")
    command.add_argument("--format", help="jsonl, tsv or txt, with .gz if compressed; for - or another ending of INPUT")
    command.add_argument("--removed", metavar="FILE", help="write removed id, kept id, similarity here, tab-separated")
    return parser


def dedup(options: argparse.Namespace) -> int:
    """Run ``lsh dedup``."""
    started = time.perf_counter()
    threshold = checks.fraction("--threshold", options.threshold, zero=False)
    shingles = lsh.Shingles(checks.whole_number("--ngram", options.ngram, 1), options.unit)
    seeds = checks.whole_number("--num-seeds", options.num_seeds, 1)
    bands = None if options.bands is None else lsh.Bands.from_string(options.bands)
    if bands is not None and options.recall is not None:
        raise ValueError("--recall and --bands both say which pairs are found; give one of them")
    form = _checked_files(options)
    lsh.deduplicate(
        [], threshold, recall=options.recall, bands=bands, shingles=shingles, num_seeds=seeds
    )  # bad parameters show before any work
    with io.Source(options.input, form, options.field) as source:
        ids: list[bytes] = []
        texts: list[str | bytes] = []
        for record in source.records():
            ids.append(record.id)
            texts.append(record.text)
        result = lsh.deduplicate(
            texts,
            threshold,
            recall=options.recall,
            bands=bands,
            shingles=shingles,
            num_seeds=seeds,
            progress=_progress(),
        )
        with ExitStack() as opened:
            output = opened.enter_context(_target(options.output))
            io.write_kept(source, result.keep.tolist(), output)
            if options.removed is not None:
                removed = opened.enter_context(_target(options.removed))
                io.write_removed(ids, result.removed, removed)
                removed.commit()
            output.commit()
    counts = result.summary()
    parts = [_counted(counts["documents"], "document"), f"{counts['removed']} removed"]
    parts += [_counted(counts["clusters"], "cluster"), f"{time.perf_counter() - started:.1f} seconds"]
    _say(", ".join(parts))
    return EXIT_OK


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _target(path: str) -> io.Target:
    return io.Target(path, path.lower().endswith(".gz"))


def _checked_files(options: argparse.Namespace) -> io.Format | None:
    """Return the format that is asked for, after checking that the files do not get in each other's way."""
    form = None
    if options.format is not None:
        form = io.Format.from_string(options.format)
        if form is None:
            known = ", ".join(f"{name}[.gz]" for name in io.FORMATS)
            raise ValueError(f"--format must be one of {known}, got {options.format!r}")
    written = {"OUTPUT": options.output, "--removed": options.removed}
    named = {name: path for name, path in written.items() if path is not None}
    for name, path in named.items():
        if io.same_file(options.input, path):
            raise ValueError(f"{name} must not be INPUT ({path}); write to another file")
        if path != io.STANDARD and os.path.isdir(path):
            raise ValueError(f"{name} must be a file, got the folder {path}")
        folder = os.path.dirname(os.path.realpath(path))
        if path != io.STANDARD and not path.startswith("/dev/"):
            if not os.path.isdir(folder):
                raise ValueError(f"{name} must be in a folder that exists, got {path}")
            if not os.access(folder, os.W_OK):
                raise ValueError(f"{name} must be in a folder that can be written to, got {path}")
    if len(named) == 2 and (io.same_file(*named.values()) or options.output == options.removed):
        raise ValueError(f"--removed must not be OUTPUT ({options.removed}); write to another file")
    if options.input != io.STANDARD and os.path.isdir(options.input):
        raise ValueError(f"INPUT must be a file, got the folder {options.input}")
    read, ending = form or io.Format.of_path(options.input), io.Format.of_path(options.output)
    if read is not None and ending is not None and ending.name != read.name:
        raise ValueError(f"OUTPUT gets the lines of INPUT as they are, .{read.name}; got the name {options.output}")
    return form


def _progress() -> _Progress | None:
    return _Progress() if sys.stderr is not None and sys.stderr.isatty() else None


class _Progress:
    """A line on the terminal that says how far the work is; the next line for people replaces it."""

    def __init__(self) -> None:
        self._drawn = 0.0

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        now = time.perf_counter()
        if now - self._drawn >= REDRAW:
            self._drawn = now
            of = "" if total is None else f" of {total:,}"
            print(f"\r\x1b[K{stage}: {done:,}{of} documents", end="", file=sys.stderr, flush=True)
