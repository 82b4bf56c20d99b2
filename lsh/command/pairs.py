"""``lsh pairs``: the pairs of documents that are near duplicates, within one corpus or between two."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice

import numpy as np

from lsh import files
from lsh.base.wording import counted
from lsh.engine import dedup
from lsh.engine.matching import Matching
from lsh.files import ReadOptions
from lsh.terminal import console, inputs, options
from lsh.terminal.options import RunOptions

MIN_PAIRS, MAX_PAIRS = 1 << 10, 1 << 18  # whose ids are read from the files at once, first a few

EPILOG = f"""\
examples:
  lsh pairs news.tsv.gz --threshold 0.7
  lsh pairs train.jsonl test.jsonl -o shared.tsv
  lsh pairs --within train.jsonl test.jsonl -o all.tsv

Each line has two ids and the similarity, tab-separated; there is no header line. A tab or a line end in an id is
written as an escape. Lines are in the order of the documents.

{options.FORMATS}
{console.EXITS}"""


def add_parser(commands: argparse._SubParsersAction[console.Parser]) -> None:
    """Add the command to the parsers of the command line."""
    parser = commands.add_parser(
        "pairs",
        help="write the pairs of documents that are near duplicates",
        description="Write each pair of documents whose shingle sets have a Jaccard similarity of at least the "
        "threshold: both of one INPUT, or one of each of two.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "input",
        metavar="INPUT",
        nargs="+",
        help="a file of documents, a folder or a quoted pattern, - for standard input; with a second INPUT, the pairs "
        "between the two only",
    )
    parser.add_argument(
        "--within", action="store_true", help="read all INPUTs as one corpus: the pairs within and between them"
    )
    options.add_output(parser)
    parser.add_argument("--json", action="store_true", help="write a line of JSON for each pair: a, b, similarity")
    options.add_matching(parser)
    options.add_reading(parser)
    options.add_running(parser)
    parser.set_defaults(run=run)


def run(namespace: argparse.Namespace) -> None:
    """Run ``lsh pairs``."""
    started = time.perf_counter()
    matching, reading, running = options.matching(namespace), options.reading(namespace), options.running(namespace)
    paths = namespace.input
    if len(paths) > 2 and not namespace.within:
        raise ValueError(f"two INPUTs can be compared, got {len(paths)}; use --within for the pairs of all of them")
    places = [files.expanded(paths)] if namespace.within else [files.expanded([path]) for path in paths]
    read = [pair for one in places for pair in inputs.named("INPUT", one)]
    inputs.check_files(read, [("OUTPUT", namespace.output)], reading)
    inputs.check_table("-o", namespace.output, "the pairs are" if namespace.json else None)
    if namespace.output == files.STANDARD:
        console.check_standard_output()
    inputs.note_memory([namespace.output], running.quiet)
    collections = [inputs.find(reading, one, running.quiet) for one in places]
    if len(collections) == 2 and (shared := inputs.shared_file(*collections)) is not None:
        problem = "each of its documents would be found as similar to itself"
        raise ValueError(
            f"{shared} is in both INPUTs: {problem}; name it once for the pairs within it, or use --within"
        )
    number, sides = _write_pairs(collections, namespace.output, namespace.json, matching, reading, running)
    if running.verbose:
        used = matching.for_documents(max(sum(side.count for side in sides), 1))
        console.say(f"{used.hasher!r}\n{used.plan or used.bands}")
    if not running.quiet:
        console.say(_summary(number, sides, time.perf_counter() - started))


def _write_pairs(
    collections: Sequence[files.Sources],
    output: str,
    as_json: bool,
    matching: Matching,
    reading: ReadOptions,
    running: RunOptions,
) -> tuple[int, list[inputs.TextStream]]:
    """Write the pairs; return their number and the documents of each collection."""
    with ExitStack() as opened:
        budget = inputs.own_budget(running)
        documents = [
            opened.enter_context(inputs.open_documents(reading, one, others=collections, budget=budget))
            for one in collections
        ]
        names = [""] if len(documents) == 1 else [f"{one.name}: " for one in documents]
        sides = [
            inputs.TextStream([one], notes=None if running.quiet else name, budget=budget)
            for one, name in zip(documents, names)
        ]
        meter = console.progress(running.quiet, output, sides, running.verbose)
        run = dedup.Running.checked(**running.limits(), progress=meter)
        found = dedup.pairs(matching, sides[0], sides[1] if len(sides) == 2 else None, run)
        target = opened.enter_context(files.Target(output, folder=running.temp_dir))
        number, max_pairs = 0, MIN_PAIRS
        while some := list(islice(found, max_pairs)):
            number, max_pairs = number + len(some), min(2 * max_pairs, MAX_PAIRS)
            places = np.array([pair[:2] for pair in some])
            ids = [side.ids(own).of(own) for side, own in zip((sides[0], sides[-1]), places.T)]
            for a, b, (_, _, similarity) in zip(*ids, some):
                target.write(_line(a, b, similarity, as_json))
        target.commit()
    return number, sides


def _line(a: bytes, b: bytes, similarity: float, as_json: bool) -> bytes:
    if as_json:
        return json.dumps({"a": files.decoded(a), "b": files.decoded(b), "similarity": similarity}).encode() + b"\n"
    return files.table_row(a, b, repr(similarity).encode())


def _summary(number: int, sides: Sequence[inputs.TextStream], seconds: float) -> str:
    documents = " and ".join(counted(side.count, "document") for side in sides)
    bad = console.left_out(sum(side.skipped for side in sides))
    cost = console.cost(seconds, sum(side.num_bytes for side in sides))
    return ", ".join([documents, counted(number, "pair"), *bad, *cost])
