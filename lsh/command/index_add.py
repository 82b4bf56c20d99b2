"""``lsh index add``: add the documents of files to an index.

The documents are committed in steps, and each step notes how far it came. The same command continues from there after
an interrupt.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import time
from typing import TYPE_CHECKING, Any

from lsh import files
from lsh.base.wording import counted
from lsh.command import console, indexing, new_documents, options
from lsh.command.new_documents import NewDocuments

if TYPE_CHECKING:
    from lsh.store.index import Index

COMMIT_DOCUMENTS = 1 << 16  # after which there is a commit
COMMIT_SECONDS = 30.0
NOTE = "add"  # begins the key of the place in the note of the index
MAX_NOTES = 16  # commands that were interrupted whose places are kept

EPILOG = f"""\
examples:
  lsh index add news.index 'news-*.jsonl.gz' --time-field published
  lsh index add news.index archive.tsv

A document whose id is in the index replaces the stored one. The documents are committed after each 65,536 of them, or
each 30 seconds. After an interrupt the same command continues after the last commit, if the files have not changed.

{new_documents.FORMATS}
{console.EXITS}"""


def add_parser(commands: argparse._SubParsersAction[console.Parser]) -> None:
    """Add the command to the parsers of ``lsh index``."""
    parser = commands.add_parser(
        "add",
        help="add the documents of files",
        description="Add the documents of files to an index, in place of those with the same ids.",
        epilog=EPILOG,
    )
    indexing.add_index(parser)
    new_documents.add_options(parser)
    options.add(parser, "--json")
    indexing.add_loudness(parser)
    options.add(parser.add_argument_group("running"), "--num-threads")
    options.add_reading(parser)
    parser.set_defaults(run=run)


def run(namespace: argparse.Namespace) -> None:
    """Run ``lsh index add``."""
    if namespace.json:
        console.check_standard_output()
    started, workers = time.perf_counter(), options.num_threads(namespace)
    documents = new_documents.from_options(namespace)
    with indexing.opened(namespace.index, "a") as index, documents:
        before = len(index)
        output = files.STANDARD if namespace.json else None
        _add(index, documents, console.progress(namespace.quiet, output, [documents], namespace.verbose), workers)
        after = len(index)
    counts = {
        "documents": documents.count,
        "replaced": before + documents.count - after,
        "stored": after,
        "bytes": documents.num_bytes,
        "skipped": documents.skipped,
        "hidden": documents.hidden,
    }
    if namespace.json:
        console.write_data(json.dumps(counts) + "\n")
    elif not namespace.quiet:
        console.say(_summary(counts, time.perf_counter() - started))


def _add(index: Index, documents: NewDocuments, meter: console.Meter, num_threads: int | None) -> None:
    """Add the documents, in steps that are committed with the place where the next one begins."""
    state = documents.state()
    own = "" if state is None else f"{NOTE} {hashlib.sha256(json.dumps(state).encode()).hexdigest()}"
    others = _other_notes(index._note, own)
    noted = index._note.get(own, {})
    file, count = _place(noted)
    if count:
        console.say(f"continuing after an interrupt: after {counted(count, 'document')} of {documents.name(file)}")
        if noted.get("state", index._additions) != index._additions:
            console.say("the index has changed since then: what was removed or replaced is not added again")
    added, committed, kept = 0, time.monotonic(), 0
    try:
        for part in documents.read(file, count):
            index.add_docs(part.texts, part.ids, times=part.times, missing="empty", num_threads=num_threads)
            added += len(part.ids)
            meter.reading("adding")
            if added >= COMMIT_DOCUMENTS or time.monotonic() - committed >= COMMIT_SECONDS:
                place = {"file": part.file, "count": part.end, "time": int(time.time()), "state": index._additions}
                index._commit({**others, own: place} if own else others)
                added, committed, kept = 0, time.monotonic(), kept + added
    except KeyboardInterrupt:
        if kept and own:
            console.say(f"{counted(kept, 'document')} committed; the same command continues after them")
        raise
    meter.reading("adding")
    index._commit(others)


def _other_notes(note: dict[str, dict[str, Any]], own: str) -> dict[str, dict[str, Any]]:
    """Return the note without that of this command, and with those of the latest interrupted commands only."""

    def age(name: str) -> float:
        written = note[name].get("time")
        return -written if isinstance(written, int) else math.inf

    places = sorted((name for name in note if name.partition(" ")[0] == NOTE and name != own), key=age)
    left_out = {own, *places[MAX_NOTES:]}
    return {name: value for name, value in note.items() if name not in left_out}


def _place(noted: dict[str, Any]) -> tuple[int, int]:
    """Return where to begin: after the documents that an interrupted run of the same command has committed."""
    file, count = noted.get("file"), noted.get("count")
    if not isinstance(file, int) or not isinstance(count, int):
        return 0, 0
    return max(file, 0), max(count, 0)


def _summary(counts: dict[str, int], seconds: float) -> str:
    parts = [f"{counted(counts['documents'], 'document')} added"]
    if counts["replaced"]:
        parts.append(f"{counts['replaced']:,} of them in place of others")
    parts.append(f"{counts['stored']:,} in the index")
    parts += [f"{counted(counts['skipped'], 'bad line')} skipped"] if counts["skipped"] else []
    parts += [f"{counted(counts['hidden'], 'hidden file')} not read"] if counts["hidden"] else []
    return ", ".join([*parts, *console.cost(seconds, counts["bytes"])])
