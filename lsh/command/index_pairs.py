"""``lsh index dedup`` and ``lsh index pairs``: the near duplicates among the documents of an index."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lsh import files
from lsh.base.wording import counted
from lsh.command import console, indexing, options
from lsh.command.options import Running

if TYPE_CHECKING:
    from lsh.store.index import Index

DEDUP = f"""\
examples:
  lsh index dedup news.index -o duplicates.jsonl
  lsh index dedup news.index --remove -o removed.jsonl

Each line is a JSON object: the id of a near duplicate, kept (the id of the document that it is similar to, which is not
listed itself), their similarity, and whether the texts are identical. With --remove the listed documents are removed
from the index, all of them or, after an error or an interrupt, none.

{console.EXITS}"""

PAIRS = f"""\
example:
  lsh index pairs news.index --threshold 0.9 -o pairs.jsonl

Each line is a JSON object: the ids of two documents, a and b, and their similarity. Lines are in the order of
lsh index list.

{console.EXITS}"""


@dataclass(frozen=True)
class Comparison:
    """The documents that are compared, and how."""

    index: Index
    threshold: float
    verify: Any
    running: Running
    meter: console.Meter


def add_parsers(actions: argparse._SubParsersAction[console.Parser]) -> None:
    """Add both commands to the parsers of ``lsh index``."""
    parser = actions.add_parser(
        "dedup",
        help="list or remove the near duplicates in an index",
        description="Find the documents of an index that are near duplicates of a document that is kept; list them "
        "and, with --remove, remove them from the index.",
        epilog=DEDUP,
    )
    _add_comparison(parser)
    parser.add_argument("--remove", action="store_true", help="remove the listed documents from the index")
    parser.add_argument(
        "--keep",
        choices=("first", "last"),
        default="first",
        help="which of several similar documents is kept, in the order of lsh index list (default first)",
    )
    parser.add_argument(
        "--clusters-mode",
        choices=("representative", "components"),
        default="representative",
        help="documents similar to a kept one, or all but one of each connected component of similar pairs (default "
        "representative)",
    )
    options.add_running(parser)
    parser.set_defaults(run=run_dedup)
    parser = actions.add_parser(
        "pairs",
        help="list the pairs of near duplicates in an index",
        description="Write each pair of documents of an index whose shingle sets have a Jaccard similarity of at least "
        "the threshold.",
        epilog=PAIRS,
    )
    _add_comparison(parser)
    options.add_running(parser)
    parser.set_defaults(run=run_pairs, remove=False)


def _add_comparison(parser: argparse.ArgumentParser) -> None:
    indexing.add_index(parser)
    options.add_output(parser)
    parser.add_argument(
        "--threshold", type=float, help="minimum similarity of near duplicates (default: that of the index)"
    )
    parser.add_argument(
        "--verify",
        choices=("exact", "sketch", "none"),
        default="exact",
        help="how candidate pairs are verified: by their exact similarity, which needs stored texts, by its estimate, "
        "or not at all (default exact)",
    )


def run_dedup(namespace: argparse.Namespace) -> None:
    """Run ``lsh index dedup``."""

    def lines(given: Comparison) -> Iterator[dict[str, Any]]:
        found = given.index.deduplicate(
            given.threshold,
            keep=namespace.keep,
            clusters=namespace.clusters_mode,
            verify=given.verify,
            max_memory=given.running.max_memory,
            temp_dir=given.running.temp_dir,
            num_threads=given.running.num_threads,
            progress=given.meter,
        )
        for doc_id, kept, similarity, identical in found:
            shown = {"id": indexing.shown_id(doc_id), "kept": indexing.shown_id(kept)}
            yield {**shown, "similarity": similarity, "identical": identical}
        if namespace.remove:
            given.index.remove_ids(duplicate.id for duplicate in found)

    _run(namespace, lines, "near duplicate")


def run_pairs(namespace: argparse.Namespace) -> None:
    """Run ``lsh index pairs``."""

    def lines(given: Comparison) -> Iterator[dict[str, Any]]:
        found = given.index.find_pairs(
            given.threshold,
            verify=given.verify,
            max_memory=given.running.max_memory,
            temp_dir=given.running.temp_dir,
            num_threads=given.running.num_threads,
            progress=given.meter,
        )
        for a, b, similarity in found:
            yield {"a": indexing.shown_id(a), "b": indexing.shown_id(b), "similarity": similarity}

    _run(namespace, lines, "pair")


def _run(namespace: argparse.Namespace, lines: Callable[[Comparison], Iterator[dict[str, Any]]], what: str) -> None:
    """Write the lines, and then commit the removals: a run whose output fails removes nothing."""
    started, running = time.perf_counter(), options.running(namespace)
    indexing.check_output(namespace)
    count = 0
    with ExitStack() as opened:
        index = opened.enter_context(indexing.opened(namespace.index, "a" if namespace.remove else "r"))
        given = _comparison(namespace, index, running)
        target = opened.enter_context(files.Target(namespace.output, folder=running.temp_dir))
        before = len(index)
        for line in lines(given):
            target.write(json.dumps(line).encode() + b"\n")
            count += 1
        target.commit()
        if namespace.remove:
            index.commit()
        left = len(index)
    if not running.quiet:
        parts = [counted(before, "document"), counted(count, what)]
        parts += [f"{before - left:,} removed, {left:,} in the index"] if namespace.remove else []
        seconds, *memory = console.cost(time.perf_counter() - started, 0, 0.0)
        console.say(", ".join([*parts, seconds, *memory]))


def _comparison(namespace: argparse.Namespace, index: Index, running: Running) -> Comparison:
    """Return the comparison, checked."""
    threshold = index.threshold if namespace.threshold is None else options.threshold(namespace)
    verify = None if namespace.verify == "none" else namespace.verify
    indexing.check_comparison(index, files.shown(namespace.index), threshold, verify)
    if running.verbose:
        console.say(f"{index.hasher!r}\n{index.bands}")
    if not running.quiet:
        indexing.say_recall(index, threshold, verify)
    meter = console.progress(running.quiet, namespace.output, verbose=running.verbose)
    return Comparison(index, threshold, verify, running, meter)
