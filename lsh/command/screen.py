"""``lsh screen``: decide about new documents by an index, and add those that are not rejected."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from contextlib import ExitStack

import lsh
from lsh import files
from lsh.base import checks
from lsh.base.wording import counted
from lsh.terminal import console, indexing, options
from lsh.terminal.indexing import NewDocuments

EPILOG = f"""\
examples:
  lsh index create papers.index --screen
  lsh screen papers.index today.jsonl -o verdicts.jsonl
  lsh screen papers.index drafts/ --check
  lsh screen papers.index --store --reject 0.85

Each line is a JSON object: the id of the document, the decision, and the documents of the index that are similar to it,
the most similar first. The decision is reject if one of them is as similar as --reject, similar if one is as similar as
--recommend, else accept. Each document is also compared with those of INPUT that were added before it. An interrupted
run adds nothing.

{indexing.FORMATS}
{console.EXITS}"""


def add_parser(commands: argparse._SubParsersAction[console.Parser]) -> None:
    """Add the command to the parsers of the command line."""
    parser = commands.add_parser(
        "screen",
        help="decide about new documents: accept, similar or reject",
        description="Compare each document of INPUT with those of an index, print the decision, and add the document "
        "to the index unless it is rejected.",
        epilog=EPILOG,
    )
    indexing.add_index(parser)
    indexing.add_documents(parser, nargs="*")
    options.add_output(parser)
    change = parser.add_mutually_exclusive_group()
    change.add_argument("--check", action="store_true", help="decide only: add no document")
    change.add_argument(
        "--store",
        action="store_true",
        help="store --reject and --recommend with the index, for later runs; then INPUT may be left out",
    )
    stored = "default: as stored with the index, else"
    parser.add_argument("--reject", type=float, metavar="S", help=f"reject from this similarity ({stored} 0.9)")
    parser.add_argument(
        "--recommend", type=float, metavar="S", help=f"list documents from this similarity ({stored} 0.5)"
    )
    parser.add_argument(
        "--top",
        type=options.whole,
        metavar="N",
        default=10,
        help="maximum number of matches of a document (default 10)",
    )
    indexing.add_running(parser)
    options.add_reading(parser)
    parser.set_defaults(run=run, parser=parser)


def run(namespace: argparse.Namespace) -> None:
    """Run ``lsh screen``."""
    started, workers = time.perf_counter(), options.num_threads(namespace)
    checks.whole_number("top", namespace.top, 1)
    for name in ("reject", "recommend"):
        if (value := getattr(namespace, name)) is not None:
            checks.fraction(name, value, zero=False)
    if not namespace.input:
        _store(namespace)
        return
    indexing.check_output(namespace)
    documents = indexing.new_documents(namespace)
    decisions: Counter[str] = Counter()
    with ExitStack() as opened:
        index = opened.enter_context(indexing.opened(namespace.index, "r" if namespace.check else "a"))
        screen, before = lsh.Screen(index, namespace.reject, namespace.recommend, top=namespace.top), len(index)
        opened.enter_context(documents)
        meter = console.progress(namespace.quiet, namespace.output, [documents], namespace.verbose)
        target = opened.enter_context(files.Target(namespace.output))
        for batch in documents.read():
            if namespace.check:
                verdicts = screen.check_docs(batch.texts, missing="empty", num_threads=workers)
            else:
                verdicts = screen.submit_docs(
                    batch.texts, batch.ids, times=batch.times, missing="empty", num_threads=workers
                )
            for identity, (decision, matches) in zip(batch.ids, verdicts):
                decisions[decision] += 1
                target.write(indexing.line(identity, matches, decision=decision))
            meter.reading("screening")
        meter.reading("screening")
        replaced = 0 if namespace.check else before + documents.count - decisions["reject"] - len(index)
        target.commit()  # before the index: a run whose output fails adds nothing
        if namespace.store:
            screen.store_thresholds()
        elif not namespace.check:
            screen.commit()
    if not namespace.quiet:
        console.say(_summary(decisions, replaced, documents, time.perf_counter() - started))


def _store(namespace: argparse.Namespace) -> None:
    """Store the thresholds with the index."""
    if not namespace.store:
        namespace.parser.error("the following arguments are required: INPUT")
    if reading := options.reading_given(namespace):
        raise ValueError(f"{reading[0]} is for INPUT, and there is none; leave it out")
    with indexing.opened(namespace.index, "a") as index:
        screen = lsh.Screen(index, namespace.reject, namespace.recommend)
        screen.store_thresholds()
    if not namespace.quiet:
        console.say(f"{namespace.index}: rejects from {screen.reject:g}, recommends from {screen.recommend:g}")


def _summary(decisions: Counter[str], replaced: int, documents: NewDocuments, seconds: float) -> str:
    parts = [counted(documents.count, "document")]
    parts += [
        f"{decisions['accept']:,} accepted",
        f"{decisions['similar']:,} similar",
        f"{decisions['reject']:,} rejected",
    ]
    parts += [f"{replaced:,} in place of others with the same ids"] if replaced else []
    return ", ".join([*parts, *console.left_out(documents.skipped), *console.cost(seconds, documents.num_bytes)])
