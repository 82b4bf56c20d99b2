"""The verbs of ``lsh index`` that search: ``query``; ``dedup`` and ``pairs``, for near duplicates in an index."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from lsh import files
from lsh.base import checks
from lsh.base.wording import counted
from lsh.engine.matching import MIN_INDEX_RECALL
from lsh.terminal import console, indexing, options
from lsh.terminal.indexing import NewDocuments
from lsh.terminal.options import RunOptions

if TYPE_CHECKING:
    from lsh.store.index import Index
    from lsh.store.matches import Matches
    from lsh.typing import DocId

    Answer = tuple[DocId | None, Matches]
    Lines = Callable[[Index, dict[str, Any]], Iterator[dict[str, Any]]]

QUERY = f"""\
examples:
  lsh index query news.index new.jsonl -o found.jsonl
  lsh index query news.index --text "the ferry left at nine" --min-similarity 0.7
  lsh index query news.index --id s195 --top 3

Each line is a JSON object: the id of the document that was asked for, and its matches, the most similar first. A match
has the id of a stored document, the similarity, its 95 % confidence interval, and verified: true if the texts were
compared, so that the similarity is exact.

{options.FORMATS}
"""
DEDUP = """\
examples:
  lsh index dedup news.index -o duplicates.jsonl
  lsh index dedup news.index --remove -o removed.jsonl

Each line is a JSON object: the id of a near duplicate, kept (the id of the document that it is similar to, which is not
listed itself), their similarity, and whether the texts are identical. With --remove the listed documents are removed
from the index, all of them or, after an error or an interrupt, none.
"""
PAIRS = """\
example:
  lsh index pairs news.index --threshold 0.9 -o pairs.jsonl

Each line is a JSON object: the ids of two documents, a and b, and their similarity. Lines are in the order of
lsh index list.
"""


# ---- query ----


def add_query(parser: console.Parser) -> None:
    """Add the arguments of ``lsh index query``."""
    options.add_input(parser, nargs="*")
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
    indexing.add_running(parser)
    options.add_reading(parser)
    parser.set_defaults(time_field=None, id_prefix=None)  # options of lsh index add


def query(namespace: argparse.Namespace) -> None:
    """Run ``lsh index query``."""
    started = time.perf_counter()
    options.num_threads(namespace)  # checked before anything is opened
    given = [name for name in ("input", "text", "id") if getattr(namespace, name) not in (None, [])]
    if len(given) != 1:
        namespace.parser.error("give one of INPUT, --text and --id")
    if namespace.top is not None:
        checks.whole_number("top", namespace.top, 1)
    if namespace.min_similarity is not None:
        checks.fraction("min_similarity", namespace.min_similarity, zero=True)
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
    documents = indexing.new_documents(namespace, needs_ids=False)
    index = _opened(namespace, opened)
    opened.enter_context(documents)
    return _of_files(
        namespace, index, documents, console.progress(namespace.quiet, namespace.output, [documents], namespace.verbose)
    )


def _opened(namespace: argparse.Namespace, opened: ExitStack) -> Index:
    """Open the index, and print the recall of --min-similarity."""
    index = opened.enter_context(indexing.opened(namespace.index))
    wanted = namespace.min_similarity
    if wanted is not None and wanted != index.threshold and not namespace.quiet:
        reached, recall = index._recalls(wanted, "exact" if index._verifies else "sketch")
        if reached >= MIN_INDEX_RECALL:  # else the query is an error
            console.say(f"--min-similarity {wanted:g}: recall {recall:.4g} with the bands of the index")
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
    for batch in documents.read():
        found = index.query_docs(
            batch.texts,
            top=namespace.top,
            min_similarity=namespace.min_similarity,
            missing="empty",
            num_threads=namespace.num_threads,
        )
        yield from zip(batch.ids, found)
        meter.reading("asking")
    meter.reading("asking")


# ---- dedup and pairs ----


def add_dedup(parser: console.Parser) -> None:
    """Add the arguments of ``lsh index dedup``."""
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


def add_pairs(parser: console.Parser) -> None:
    """Add the arguments of ``lsh index pairs``."""
    _add_comparison(parser)
    options.add_running(parser)
    parser.set_defaults(remove=False)


def _add_comparison(parser: argparse.ArgumentParser) -> None:
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


def dedup(namespace: argparse.Namespace) -> None:
    """Run ``lsh index dedup``."""

    def lines(index: Index, how: dict[str, Any]) -> Iterator[dict[str, Any]]:
        found = index.deduplicate(keep=namespace.keep, clusters=namespace.clusters_mode, **how)
        for doc_id, kept, similarity, identical in found:
            shown = {"id": indexing.shown_id(doc_id), "kept": indexing.shown_id(kept)}
            yield {**shown, "similarity": similarity, "identical": identical}
        if namespace.remove:
            index.remove_ids(duplicate.id for duplicate in found)

    _run(namespace, lines, "near duplicate")


def pairs(namespace: argparse.Namespace) -> None:
    """Run ``lsh index pairs``."""

    def lines(index: Index, how: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for a, b, similarity in index.find_pairs(**how):
            yield {"a": indexing.shown_id(a), "b": indexing.shown_id(b), "similarity": similarity}

    _run(namespace, lines, "pair")


def _run(namespace: argparse.Namespace, lines: Lines, what: str) -> None:
    """Write the lines, and then commit the removals: a run whose output fails removes nothing."""
    started, running = time.perf_counter(), options.running(namespace)
    indexing.check_output(namespace)
    count = 0
    with ExitStack() as opened:
        index = opened.enter_context(indexing.opened(namespace.index, "a" if namespace.remove else "r"))
        how = _comparison(namespace, index, running)
        target = opened.enter_context(files.Target(namespace.output, folder=running.temp_dir))
        before = len(index)
        for line in lines(index, how):
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


def _comparison(namespace: argparse.Namespace, index: Index, running: RunOptions) -> dict[str, Any]:
    """Return the parameters that `Index.deduplicate` and `Index.find_pairs` have both, checked."""
    threshold = index.threshold if namespace.threshold is None else options.threshold(namespace)
    verify = None if namespace.verify == "none" else namespace.verify
    options.check_comparison(index, files.shown(namespace.index), threshold, verify)
    if running.verbose:
        console.say(f"{index.hasher!r}\n{index.bands}")
    if not running.quiet:
        indexing.say_recall(index, threshold, verify)
    meter = console.progress(running.quiet, namespace.output, verbose=running.verbose)
    return {"threshold": threshold, "verify": verify, **running.limits(), "progress": meter}
