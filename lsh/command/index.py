"""``lsh index``: an index of documents in a folder. `VERBS` lists what it can do; `index_search` has the searches."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import time
import warnings
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import lsh
from lsh import files
from lsh._minhash import NORMALISATIONS
from lsh.base import checks
from lsh.base.errors import words_of
from lsh.base.wording import counted, size
from lsh.command import index_search
from lsh.terminal import console, indexing, inputs, options
from lsh.terminal.indexing import SECONDS, NewDocuments
from lsh.text.shingling import Shingles

if TYPE_CHECKING:  # other commands do not need it
    from lsh.store.index import Index

MAX_SHOWN_IDS = 5  # in a message
COMMIT_DOCUMENTS = 1 << 16  # that are added, after which there is a commit
COMMIT_SECONDS = 30.0
NOTE = "add"  # begins the key of the place of an interrupted ``add`` in the note of the index
MAX_NOTES = 16  # commands that were interrupted whose places are kept

EPILOG = f"""\
examples:
  lsh index create news.index
  lsh index add news.index 'news-*.jsonl.gz'
  lsh index query news.index new.jsonl

"lsh index COMMAND --help" describes a command, with examples.

{console.EXITS}"""
ADD = f"""\
examples:
  lsh index add news.index 'news-*.jsonl.gz' --time-field published
  lsh index add news.index archive.tsv

A document whose id is in the index replaces the stored one. The documents are committed after each 65,536 of them, or
each 30 seconds. After an interrupt the same command continues after the last commit, if the files have not changed.

{indexing.FORMATS}
"""
CREATE = """\
examples:
  lsh index create news.index --threshold 0.7
  lsh index create papers.index --screen --reject 0.85

Matches are verified by the exact similarity of the texts. With --texts none the index is smaller, but similarities are
estimated: a query finds only about half of the documents at the threshold, and dedup and pairs need --verify sketch.
"""

REMOVE = """\
examples:
  lsh index remove news.index s003 s004
  lsh index remove news.index --ids withdrawn.txt --unknown skip
"""
EXPIRE = """\
examples:
  lsh index expire news.index --older-than 30d
  lsh index expire news.index --before 2024-02-29

Documents without a time are not removed.
"""
LIST = """\
examples:
  lsh index list news.index s003 --texts
  lsh index list news.index --texts -o news.jsonl

Each line is a JSON object: the id of a document, its time in seconds since 1970 (null if it has none), and with --texts
its text. To add the documents to an index with other parameters: lsh index add INDEX news.jsonl --time-field time.
"""
INFO = """\
example:
  lsh index info news.index --json
"""
VERIFY = """\
example:
  lsh index verify news.index

A file that is damaged is an error that names it.
"""
COMPACT = """\
example:
  lsh index compact news.index

Files of similar size are also merged as they are written; until then, removed documents take space on disk.
"""
MERGE = """\
example:
  lsh index merge all.index part-1.index part-2.index
"""


class Verb(NamedTuple):
    """A verb of ``lsh index``; its description is by default its help as a sentence."""

    name: str
    help: str
    arguments: Callable[[console.Parser], None]
    run: Callable[[argparse.Namespace], None]
    epilog: str
    description: str = ""


def add_parser(commands: argparse._SubParsersAction[console.Parser]) -> None:
    """Add the command to the parsers of the command line."""
    parser = commands.add_parser(
        "index",
        help="keep documents in an index on disk, and find similar ones",
        description="Keep documents in a folder, and find those that are similar to new ones. One process at a time "
        "can change an index; any number can read it.",
        epilog=EPILOG,
    )
    actions = parser.add_subparsers(dest="action", metavar="COMMAND", parser_class=console.Parser, required=True)
    for verb in VERBS:
        described = verb.description or f"{verb.help[0].upper()}{verb.help[1:]}."
        epilog = f"{verb.epilog}\n{console.EXITS}"
        one = actions.add_parser(verb.name, help=verb.help, description=described, epilog=epilog)
        indexing.add_index(one)
        verb.arguments(one)
        one.set_defaults(parser=one, run=verb.run)


# ---- create ----


def _add_create(parser: console.Parser) -> None:
    parser.add_argument(
        "--texts",
        choices=("stored", "none"),
        default="stored",
        help="stored: keep the texts, compressed, to verify matches; none: estimate similarities (default stored)",
    )
    parser.add_argument(
        "--sketch",
        choices=("8bit", "full"),
        default="8bit",
        help="the part of a fingerprint that is stored to estimate similarities: 8 bits of each component, or the full "
        "components (default 8bit)",
    )
    parser.add_argument(
        "--period",
        metavar="TIME",
        default="1d",
        help="documents of different periods are in different files, if they have times (default 1d)",
    )
    group = parser.add_argument_group("near duplicates")
    options.add(group, "--threshold", "--num-seeds", "--random-state", "--recall", "--bands")
    options.add_shingles(parser.add_argument_group("shingles"))
    group = parser.add_argument_group("screening")
    group.add_argument(
        "--screen",
        action="store_true",
        help="an index for lsh screen: shingles of 3 words in lower case, 400 components, and bands for --recommend "
        "with a recall of 0.95, unless other options are given",
    )
    group.add_argument(
        "--reject", type=float, metavar="S", help="lsh screen rejects from this similarity (default 0.9)"
    )
    group.add_argument(
        "--recommend", type=float, metavar="S", help="lsh screen lists documents from this similarity (default 0.5)"
    )
    indexing.add_quiet(parser)


def _create(namespace: argparse.Namespace) -> None:
    folder = indexing.folder_of(namespace.index)
    texts = "stored" if namespace.texts == "stored" else None
    kept: dict[str, Any] = {
        "sketch": namespace.sketch,
        "texts": texts,
        "period": indexing.duration("--period", namespace.period, 1.0),
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a note says what an index without texts lacks
            index = _created_screen(namespace, folder, kept) if namespace.screen else _created(namespace, folder, kept)
    except FileExistsError as error:
        if not os.path.isdir(folder):
            raise ValueError(f"{folder} is a file; name a new folder") from None
        if not inputs.is_index(folder):
            raise ValueError(str(error)) from None
        place = os.path.abspath(folder)
        raise ValueError(
            f"there is an index in {place}; name another folder, or add to it with lsh index add"
        ) from None
    with index:
        if not namespace.quiet:
            bands, recall = index.bands, index.recall_at(index.threshold)
            kind = f"{counted(bands.num_bands, 'band')}, {bands.to_string()}"
            seed = f"; --random-state {index.hasher.random_state}" if index.hasher.random_state else ""
            console.say(f"{folder}: {kind}, find documents at {index.threshold:g} with probability {recall:.4f}{seed}")
            if not index._verifies:
                console.say(
                    "--texts none: similarities are estimated, which lowers this; lsh index dedup, lsh index "
                    "pairs and --against-index need --verify sketch"
                )


def _created(namespace: argparse.Namespace, folder: str, kept: dict[str, Any]) -> Index:
    options.refuse(namespace, ("reject", "recommend"), "{0} requires --screen")
    threshold, bands = options.threshold(namespace), options.bands(namespace)
    hasher = options.hasher(namespace)
    return lsh.Index.create(folder, hasher, bands=bands, threshold=threshold, recall=namespace.recall, **kept)


def _created_screen(namespace: argparse.Namespace, folder: str, kept: dict[str, Any]) -> Index:
    """Create an index for a screen; options that are not given have the defaults of a screen."""
    from lsh.store import screen as screening

    options.refuse(namespace, ["threshold"], "{0} cannot be combined with --screen; use --reject and --recommend")
    thresholds: list[float] = []
    for name, default in (("reject", screening.REJECT), ("recommend", screening.RECOMMEND)):
        value = getattr(namespace, name)
        thresholds.append(checks.fraction(name, default if value is None else value, zero=False))
    return screening.Screen.create(
        folder,
        *thresholds,
        shingles=options.shingles_or(namespace, screening.SHINGLES),
        bands=options.bands(namespace),
        num_seeds=namespace.num_seeds,
        random_state=namespace.random_state or 0,
        recall=namespace.recall,
        **kept,
    ).index


# ---- add ----


def _add_add(parser: console.Parser) -> None:
    indexing.add_documents(parser)
    options.add(parser, "--json")
    indexing.add_running(parser)
    options.add_reading(parser)


def _add(namespace: argparse.Namespace) -> None:
    if namespace.json:
        console.check_standard_output()
    started, workers = time.perf_counter(), options.num_threads(namespace)
    documents = indexing.new_documents(namespace)
    with indexing.opened(namespace.index, "a") as index, documents:
        before = len(index)
        output = files.STANDARD if namespace.json else None
        _add_documents(
            index, documents, console.progress(namespace.quiet, output, [documents], namespace.verbose), workers
        )
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
        console.say(_added(counts, time.perf_counter() - started))


def _add_documents(index: Index, documents: NewDocuments, meter: console.Meter, num_threads: int | None) -> None:
    """Add the documents, in steps that are committed with the place where the next one begins.

    The same command continues there after an interrupt.
    """
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
        for batch in documents.read(file, count):
            index.add_docs(batch.texts, batch.ids, times=batch.times, missing="empty", num_threads=num_threads)
            added += len(batch.ids)
            meter.reading("adding")
            if added >= COMMIT_DOCUMENTS or time.monotonic() - committed >= COMMIT_SECONDS:
                place = {"file": batch.file, "count": batch.end, "time": int(time.time()), "state": index._additions}
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


def _added(counts: dict[str, int], seconds: float) -> str:
    parts = [f"{counted(counts['documents'], 'document')} added"]
    if counts["replaced"]:
        parts.append(f"{counts['replaced']:,} of them in place of others")
    parts.append(f"{counts['stored']:,} in the index")
    parts += console.left_out(counts["skipped"], counts["hidden"])
    return ", ".join([*parts, *console.cost(seconds, counts["bytes"])])


# ---- remove and expire ----


def _add_remove(parser: console.Parser) -> None:
    parser.add_argument("id", metavar="ID", nargs="*", help="the id of a document; write -- before one like -x7")
    parser.add_argument(
        "--ids", action=options.Once, metavar="FILE", help="a file with an id on each line, - for standard input"
    )
    parser.add_argument(
        "--unknown",
        choices=("error", "skip"),
        default="error",
        help="what to do with an id that is not in the index: remove nothing, or skip it (default error)",
    )
    indexing.add_quiet(parser)


def _add_expire(parser: console.Parser) -> None:
    limit = parser.add_mutually_exclusive_group(required=True)
    limit.add_argument(
        "--before",
        metavar="TIME",
        help="seconds since 1970, or ISO 8601 such as 2024-02-29, which is UTC without a zone",
    )
    limit.add_argument("--older-than", metavar="AGE", help="an age such as 30d or 12h, from now")
    indexing.add_quiet(parser)


def _remove(namespace: argparse.Namespace) -> None:
    wanted = list(map(os.fsencode, namespace.id))
    if namespace.ids is not None:
        wanted += [one.removesuffix(b"\r") for one in files.content(namespace.ids).split(b"\n") if one.strip()]
    if not wanted:
        namespace.parser.error("give an ID, or --ids FILE")
    with indexing.opened(namespace.index, "a") as index:
        found = indexing.stored_ids(index, wanted)
        unknown = [one for one, ids in found.items() if not ids]
        if unknown and namespace.unknown == "error":
            shown = ", ".join(repr(files.decoded(one)) for one in unknown[:MAX_SHOWN_IDS])
            shown += ", ..." if len(unknown) > MAX_SHOWN_IDS else ""
            what = f"{counted(len(unknown), 'id')} not in the index: {shown}"
            remedy = ", use --unknown skip to remove the others" if len(unknown) < len(found) else ""
            raise ValueError(f"{what}; nothing was removed{remedy}")
        before = len(index)
        index.remove_ids(list(dict.fromkeys(chain.from_iterable(found.values()))))
        left = len(index)
    removed = before - left
    skipped = [f"{counted(len(unknown), 'unknown id')} skipped"] if unknown else []
    _say(namespace, f"{counted(removed, 'document')} removed", *skipped, f"{left:,} in the index")


def _expire(namespace: argparse.Namespace) -> None:
    if namespace.before is not None:
        before = indexing.parsed_time(namespace.before)
    else:
        before = time.time() - indexing.duration("--older-than", namespace.older_than)
    with indexing.opened(namespace.index, "a") as index:
        removed = index.expire(before)
        left, facts = len(index), index.info()
    untimed = ["none of them with a time (--time-field of lsh index add)"] if left and facts["earliest"] is None else []
    _say(namespace, f"{counted(removed, 'document')} removed", f"{left:,} in the index", *untimed)


# ---- upkeep ----


def _add_merge(parser: console.Parser) -> None:
    parser.add_argument("other", metavar="OTHER", nargs="+", help="an index that was created with the same options")
    indexing.add_quiet(parser)


def _verify(namespace: argparse.Namespace) -> None:
    with indexing.opened(namespace.index) as index:
        index.verify()
        facts = index.info()
    _say(namespace, f"{counted(facts['documents'], 'document')}, {size(facts['bytes'])}: no damage")


def _compact(namespace: argparse.Namespace) -> None:
    with indexing.opened(namespace.index, "a") as index:
        before = index.info()
        index.compact()
        after = index.info()
    parts = [f"{size(one['bytes'])} in {counted(one['segments'], 'segment')}" for one in (before, after)]
    _say(namespace, f"{parts[0]} before", f"{parts[1]} after")


def _merge(namespace: argparse.Namespace) -> None:
    own = files.identity(indexing.folder_of(namespace.index))
    with indexing.opened(namespace.index, "a") as index:
        before, added = len(index), 0
        for path in namespace.other:
            if files.identity(indexing.folder_of(path)) == own:
                raise ValueError(f"OTHER must not be INDEX ({path}); name another index")
            with indexing.opened(path) as other:
                added += len(other)
                try:
                    index.merge(other)
                except ValueError as error:
                    raise ValueError(f"{files.shown(path)}: {console.worded(words_of(error))}") from None
        left = len(index)
    replaced = before + added - left
    more = [f"{replaced:,} of them in place of others"] if replaced else []
    _say(namespace, f"{counted(added, 'document')} added", *more, f"{left:,} in the index")


def _say(namespace: argparse.Namespace, *parts: str) -> None:
    if not namespace.quiet:
        console.say(", ".join(parts))


# ---- list and info ----


def _add_list(parser: console.Parser) -> None:
    parser.add_argument("id", metavar="ID", nargs="*", help="the id of a document (default: all)")
    parser.add_argument("--texts", action="store_true", help="also print the stored texts")
    options.add_output(parser)


def _add_info(parser: console.Parser) -> None:
    options.add(parser, "--json")


def _list(namespace: argparse.Namespace) -> None:
    indexing.check_output(namespace)
    with indexing.opened(namespace.index) as index:
        if namespace.texts and not index.info()["texts"]:
            raise ValueError(f"{files.shown(namespace.index)} stores no texts; leave --texts out")
        ids = indexing.found_ids(index, namespace.id) if namespace.id else None
        with files.Target(namespace.output) as target:
            for identity, seconds, text in index._records(ids, namespace.texts):
                line: dict[str, object] = {"id": indexing.shown_id(identity), "time": seconds}
                line |= {} if text is None else {"text": files.decoded(text)}
                target.write(json.dumps(line).encode() + b"\n")
            target.commit()


def _info(namespace: argparse.Namespace) -> None:
    from lsh.store.screen import NOTE  # late, as other commands do not need it

    console.check_standard_output()
    with indexing.opened(namespace.index) as index:
        facts = index.info()
        estimated = "" if index._verifies else f", {index.recall_at(index.threshold):.2g} with estimates"
        facts["screen"] = index._note.get(NOTE)
        shingles = index.hasher.shingles
    console.write_data(json.dumps(facts) + "\n" if namespace.json else _table(facts, shingles, estimated))


def _table(facts: dict[str, Any], shingles: Shingles, estimated: str) -> str:
    """Return the facts as a table."""
    documents, screen = facts["documents"], facts["screen"]
    removed = f", and {facts['removed']:,} removed that lsh index compact deletes" if facts["removed"] else ""
    each = f", {size(round(facts['bytes'] / documents))} a document" if documents else ""
    parts = f"{counted(facts['segments'], 'segment')}, {counted(facts['in_log'], 'document')} in the log"
    kept = {"8bit": "8 bits of each are stored", "full": "stored"}[facts["sketch"]]
    rows = {
        "documents": f"{documents:,}{removed}",
        "on disk": f"{size(facts['bytes'])}{each}; {parts}",
        "threshold": f"{facts['threshold']:g}, recall {facts['recall']:g}{estimated}",
        "bands": facts["bands"],
        "shingles": _shingles(shingles),
        "components": f"{facts['hasher']['num_seeds']:,}, {kept}",
        "texts": "stored: matches are exact" if facts["texts"] else "not stored: similarities are estimated",
    }
    if facts["earliest"] is not None:
        rows["times"] = f"{indexing.shown_time(facts['earliest'])} to {indexing.shown_time(facts['latest'])}"
        days = facts["period"] / SECONDS["d"]
        rows["periods"] = f"of {days:g} {'day' if days == 1 else 'days'}"
    if screen is not None:
        rows["screen"] = f"rejects from {screen['reject']:g}, recommends from {screen['recommend']:g}"
    rows["format"] = f"version {facts['format']}"
    return "".join(f"{name:<12}{value}\n" for name, value in rows.items())


def _shingles(shingles: Shingles) -> str:
    """Describe the shingles."""
    own = shingles.to_dict()
    changes = [name.replace("_", " ") for name in NORMALISATIONS if own[name]]
    return ", ".join([options.length(shingles), *changes, *filter(None, [own["normalize"]])])


VERBS = (
    Verb("create", "create an empty index in a new folder", _add_create, _create, CREATE),
    Verb(
        "add",
        "add the documents of files",
        _add_add,
        _add,
        ADD,
        "Add the documents of files to an index, in place of those with the same ids.",
    ),
    Verb(
        "query",
        "find the stored documents that are similar to others",
        index_search.add_query,
        index_search.query,
        index_search.QUERY,
        "Find the documents of an index that are similar to the documents of files, to a text, or to other documents "
        "of the index.",
    ),
    Verb(
        "dedup",
        "list or remove the near duplicates in an index",
        index_search.add_dedup,
        index_search.dedup,
        index_search.DEDUP,
        "Find the documents of an index that are near duplicates of a document that is kept; list them and, with "
        "--remove, remove them from the index.",
    ),
    Verb(
        "pairs",
        "list the pairs of near duplicates in an index",
        index_search.add_pairs,
        index_search.pairs,
        index_search.PAIRS,
        "Write each pair of documents of an index whose shingle sets have a Jaccard similarity of at least the "
        "threshold.",
    ),
    Verb("remove", "remove documents by their ids", _add_remove, _remove, REMOVE),
    Verb("expire", "remove the documents that are older than a time", _add_expire, _expire, EXPIRE),
    Verb("list", "print the ids of the documents, their times and texts", _add_list, _list, LIST),
    Verb("info", "print the size of an index, and its parameters", _add_info, _info, INFO),
    Verb("verify", "read all files of an index, and check them", indexing.add_quiet, _verify, VERIFY),
    Verb("compact", "merge the files of an index, without removed documents", indexing.add_quiet, _compact, COMPACT),
    Verb(
        "merge",
        "add the documents of other indexes, in place of those with the same ids",
        _add_merge,
        _merge,
        MERGE,
    ),
)
