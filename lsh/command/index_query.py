"""``lsh index query``: the documents of an index that are similar to those of files, to a text, or to stored ones."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from lsh import files
from lsh.base import checks
from lsh.base.wording import counted
from lsh.command import console, indexing, new_documents, options
from lsh.command.new_documents import NewDocuments
from lsh.engine.matching import MIN_INDEX_RECALL

if TYPE_CHECKING:
    from lsh.store.index import Index
    from lsh.store.matches import Matches
    from lsh.typing import DocId

    Answer = tuple[DocId | None, Matches]

EPILOG = f"""\
examples:
  lsh index query news.index new.jsonl -o found.jsonl
  lsh index query news.index --text "the ferry left at nine" --min-similarity 0.7
  lsh index query news.index --id s195 --top 3

Each line is a JSON object: the id of the document that was asked for, and its matches, the most similar first. A match
has the id of a stored document, the similarity, its 95 % confidence interval, and verified: true if the texts were
compared, so that the similarity is exact.

{options.FORMATS}
{console.EXITS}"""


def add_parser(commands: argparse._SubParsersAction[console.Parser]) -> None:
    """Add the command to the parsers of ``lsh index``."""
    parser = commands.add_parser(
        "query",
        help="find the stored documents that are similar to others",
        description="Find the documents of an index that are similar to the documents of files, to a text, or to other "
        "documents of the index.",
        epilog=EPILOG,
    )
    indexing.add_index(parser)
    parser.add_argument(
        "input", metavar="INPUT", nargs="*", help="files of documents of one format, or a folder; - for standard input"
    )
    parser.add_argument("--text", action=options.Once, help="a text, in place of INPUT")
    parser.add_argument(
        "--id",
        metavar="ID",
        nargs="+",
        action="extend",
        help="ids of documents of the index, in place of INPUT; a document is not among its own matches",
    )
    options.add_output(parser)
    parser.add_argument(
        "--top", type=options.whole, metavar="N", help="maximum number of matches of a document (default: all)"
    )
    parser.add_argument(
        "--min-similarity",
        type=float,
        metavar="S",
        help="minimum similarity of a match (default: the threshold of the index)",
    )
    indexing.add_loudness(parser)
    options.add(parser.add_argument_group("running"), "--num-threads")
    options.add_reading(parser)
    parser.set_defaults(run=run)


def run(namespace: argparse.Namespace) -> None:
    """Run ``lsh index query``."""
    started = time.perf_counter()
    options.num_threads(namespace)  # checked before anything is opened
    given = [name for name in ("input", "text", "id") if getattr(namespace, name) not in (None, [])]
    if len(given) != 1:
        namespace.parser.error("give one of INPUT, --text and --id")
    if namespace.top is not None:
        checks.whole_number("--top", namespace.top, 1)
    if namespace.min_similarity is not None:
        checks.fraction("--min-similarity", namespace.min_similarity, zero=True)
    namespace.time_field = namespace.id_prefix = None
    indexing.check_output(namespace)
    asked = found = matched = 0
    with ExitStack() as opened:
        answers = _answers(namespace, opened)
        target = opened.enter_context(files.Target(namespace.output))
        for identity, matches in answers:
            asked, found, matched = asked + 1, found + len(matches), matched + bool(matches)
            target.write(indexing.line(identity, matches))
        target.commit()
    if not namespace.quiet and namespace.text is None:
        matches_in_all = "1 match" if found == 1 else f"{found:,} matches"
        parts = [f"{counted(asked, 'document')} asked", f"{matched:,} with matches", f"{matches_in_all} in all"]
        console.say(", ".join([*parts, f"{time.perf_counter() - started:.1f} seconds"]))


def _answers(namespace: argparse.Namespace, opened: ExitStack) -> Iterator[Answer]:
    """Return the matches of each document, and its id; a text has none."""
    if not namespace.input:
        if reading := options.reading_given(namespace):
            raise ValueError(f"{reading[0]} is for INPUT, and there is none; leave it out")
        return _of_stored(namespace, _opened(namespace, opened))
    documents = new_documents.from_options(namespace, needs_ids=False)
    index = _opened(namespace, opened)
    opened.enter_context(documents)
    return _of_files(
        namespace, index, documents, console.progress(namespace.quiet, namespace.output, [documents], namespace.verbose)
    )


def _opened(namespace: argparse.Namespace, opened: ExitStack) -> Index:
    """Open the index, and print the recall of --min-similarity."""
    index, least = opened.enter_context(indexing.opened(namespace.index)), namespace.min_similarity
    if least is not None and least != index.threshold and not namespace.quiet:
        reached, recall = index._recalls(least, "exact" if index._verifies else "sketch")
        if reached >= MIN_INDEX_RECALL:  # else the query is an error
            console.say(f"--min-similarity {least:g}: recall {recall:.4g} with the bands of the index")
    return index


def _of_stored(namespace: argparse.Namespace, index: Index) -> Iterator[Answer]:
    """Yield the matches of a text, or of documents of the index."""
    wanted = {"top": namespace.top, "min_similarity": namespace.min_similarity}
    if namespace.text is not None:
        yield None, index.query(os.fsencode(namespace.text), **wanted)
        return
    for identity in indexing.found_ids(index, namespace.id):
        yield identity, index.query(id=identity, **wanted)


def _of_files(
    namespace: argparse.Namespace, index: Index, documents: NewDocuments, meter: console.Meter
) -> Iterator[Answer]:
    """Yield the matches of the documents of files."""
    for part in documents.read():
        found = index.query_docs(
            part.texts,
            top=namespace.top,
            min_similarity=namespace.min_similarity,
            missing="empty",
            num_threads=namespace.num_threads,
        )
        yield from zip(part.ids, found)
        meter.reading("asking")
    meter.reading("asking")
