"""Documents as they are: ``lsh show`` (two of them, by their ids), ``lsh compare`` (two texts), ``lsh stats`` (all).

In ``lsh show``, common text far from a difference is left out. Long texts are compared window by window, and at most
MAX_WINDOWS that differ, which bounds time and memory; after a difference longer than a window, and after the last
window that is compared, more words than necessary may be marked.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, compress, count
from typing import Any, NamedTuple, cast

import numpy as np

import lsh
from lsh import files
from lsh.base import checks
from lsh.base.budget import SpilledColumn
from lsh.base.wording import counted
from lsh.files import ReadOptions
from lsh.sketch.hasher import batch_fingerprints
from lsh.terminal import console, inputs, options
from lsh.terminal.options import RunOptions
from lsh.text.batch import Batch
from lsh.text.shingling import MAX_UNITS

CONTEXT = 80  # characters of common text that are shown before and after a difference
MAX_CHANGE = 1000  # characters of a difference that are shown
WINDOW = 10_000  # words of each text that are compared at once
MAX_WINDOWS = 100  # that are compared, equal ones not counted: a few seconds
MAX_COUNTED_BYTES = 10_000_000  # of both texts together: a shingle takes a hundred bytes as an object
LAYOUT = "\n\t"  # control characters of a text that are printed as they are
RED, GREEN, PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[0m"
SIDES = {"a": "first", "b": "second"}

MAX_SHINGLED_TEXTS = 10_000  # texts whose shingles are counted
MAX_SHINGLED_BYTES = 1_000_000  # of such a text, since a shingle needs about 100 bytes as an object
QUARTILES = ("min", "q25", "median", "q75", "max")
COUNTS = ("exact duplicates", "empty", "without shingles", "missing")  # always in the table
WHOLE_TEXT = lsh.Shingles(MAX_UNITS, unit="byte")  # a whole text is one shingle, so only equal texts are similar

SHOW = f"""\
examples:
  lsh show news.tsv.gz s195 s197
  lsh show train.jsonl s100 s120 --against test.jsonl --ngram 5 --json

Words that only the first text has are marked [-like this-], words that only the second has {{+like this+}}; on a
terminal they are red and green, unless NO_COLOR is set.

{options.FORMATS}
{console.EXITS}"""
COMPARE = f"""\
examples:
  lsh compare monday.txt tuesday.txt --ngram 5
  lsh compare --texts "the ferry left at nine" "the ferry left at ten" --ngram 4

{console.EXITS}"""
STATS = f"""\
example:
  lsh stats news.tsv.gz --ngram 5 --unit word

{options.FORMATS}
{console.EXITS}"""

Numbers = np.ndarray[Any, np.dtype[np.int64]]


# ---- lsh show ----


class Document(NamedTuple):
    """A document that was asked for."""

    id: bytes
    source: bytes
    text: bytes


class Change(NamedTuple):
    """A piece of both texts: common text, then text of the first (`removed`) or the second (`added`) alone."""

    common: str
    removed: str
    added: str


def add_show(commands: argparse._SubParsersAction[console.Parser]) -> None:
    """Add the command to the parsers of the command line."""
    parser = commands.add_parser(
        "show",
        help="show how two documents of a file differ",
        description="Show the exact similarity of two documents, the number of shingles that they have in common, and "
        "the words in which they differ; for instance, to see why lsh dedup removed one of them.",
        epilog=SHOW,
    )
    parser.add_argument("input", metavar="INPUT", nargs="+", help="files of documents, as for lsh dedup")
    parser.add_argument("first", metavar="ID", help="the id of a document, as --removed of lsh dedup names it")
    parser.add_argument(
        "second", metavar="ID", help="the id of the other document; if it is the same id, the next document that has it"
    )
    parser.add_argument(
        "--against", metavar="OLD", nargs="+", action="extend", help="look for the second ID in these files"
    )
    options.add(parser, "--json")
    options.add_shingles(parser.add_argument_group("shingles"))
    options.add_reading(parser, missing="empty")
    parser.set_defaults(run=show)


def show(namespace: argparse.Namespace) -> None:
    """Run ``lsh show``."""
    console.check_standard_output()
    shingles, reading = options.shingles(namespace), options.reading(namespace)
    ids = [os.fsencode(namespace.first), os.fsencode(namespace.second)]
    places = files.expanded(namespace.input)
    others = files.expanded(namespace.against) if namespace.against else []
    inputs.check_files(inputs.named("INPUT", places) + inputs.named("--against", others), [], reading)
    if others:
        first, second = _found(reading, places, ids[:1]) + _found(reading, others, ids[1:])
    else:
        first, second = _found(reading, places, ids)
    figures = _figures(first, second, shingles)
    changes = _changes(*(one.text.decode("utf-8", "replace") for one in (first, second)))
    if namespace.json:
        figures["differences"] = [{"a": one.removed, "b": one.added} for one in changes if one.removed or one.added]
        console.write_data(json.dumps(figures) + "\n")
    else:
        console.write_data(_page(figures, changes, shingles))


def _found(reading: ReadOptions, places: Sequence[files.Place], ids: Sequence[bytes]) -> list[Document]:
    """Return the documents of some ids; of an id that is asked for twice the first two."""
    found: list[Document | None] = [None] * len(ids)
    escaped: list[Document | None] = [None] * len(ids)  # the first with an id that looks like the wanted one in a table
    with ExitStack() as opened:
        documents = opened.enter_context(inputs.open_documents(reading, inputs.find(reading, places)))
        for block in documents.blocks():
            for place, identity in enumerate(cast(list[bytes], block.ids().tolist())):
                for kept, is_one in ((found, bytes.__eq__), (escaped, _is_written_as)):
                    number = next((i for i, one in enumerate(ids) if not kept[i] and is_one(identity, one)), None)
                    if number is not None:
                        text = block.texts.tolist(place, place + 1)[0]
                        kept[number] = Document(identity, block.sources()[place], text or b"")
            if None not in found:
                break
    found = [exact or other for exact, other in zip(found, escaped)]
    if None not in found:
        return [document for document in found if document is not None]
    missing = ids[found.index(None)]
    again = "another" if missing in ids[: found.index(None)] else "a"
    raise files.InputError(
        documents.name,
        f"expected {again} document with the id {files.decoded(missing)!r}, got none; ids are those of the id column "
        "(see --id-field), or without one the numbers of the documents, from 1 on",
    )


def _is_written_as(identity: bytes, wanted: bytes) -> bool:
    """Tell whether a table has an id with escapes in this way."""
    return b"\\" in wanted and identity != wanted and files.table_row(identity) == wanted + b"\n"


def _figures(first: Document, second: Document, shingles: lsh.Shingles) -> dict[str, Any]:
    """Return the figures of two documents; `common` and `union` are numbers of shingles."""
    sides: list[dict[str, Any]] = [
        {
            "id": files.decoded(one.id),
            "source": files.decoded(one.source),
            "bytes": len(one.text),
            "num_shingles": None,
        }
        for one in (first, second)
    ]
    common = union = None
    if len(first.text) + len(second.text) <= MAX_COUNTED_BYTES:
        a, b = shingles.of(first.text), shingles.of(second.text)
        common, union = len(a & b), len(a | b)
        sides[0]["num_shingles"], sides[1]["num_shingles"] = len(a), len(b)
    exact = lsh.jaccard(first.text, second.text, shingles=shingles)
    return {
        "a": sides[0],
        "b": sides[1],
        "similarity": exact,
        "identical": first.text == second.text,
        "common": common,
        "union": union,
        "shingles": shingles.to_dict(),
    }


def _changes(a: str, b: str) -> list[Change]:
    """Return the changes from one text to the other, in order; the last one has only common text.

    Changes with only white space and punctuation between them are joined.
    """
    from lsh.report.pairs import WORD  # late, as other commands do not need it

    first, second = WORD.findall(a), WORD.findall(b)
    changes: list[tuple[list[str], list[str], list[str]]] = []
    common: list[str] = []
    i = j = 0
    for at, to in chain(_common_places(first, second), [(len(first), len(second))]):
        if at > i or to > j:
            removed, added = first[i:at], second[j:to]
            if changes and not any(re.search(r"\w", word) for word in common):
                changes[-1][1].extend(common + removed)
                changes[-1][2].extend(common + added)
            else:
                changes.append((common, removed, added))
            common = []
        common += first[at : at + 1]
        i, j = at + 1, to + 1
    return [Change(*map("".join, change)) for change in [*changes, (common, [], [])]]


def _common_places(first: Sequence[str], second: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the places of words that both texts have in the same order, window by window."""
    from lsh.report.pairs import common_words

    i = j = windows = 0
    while i < len(first) and j < len(second) and windows < MAX_WINDOWS:
        window, other = first[i : i + WINDOW], second[j : j + WINDOW]
        if window == other:
            yield from ((i + at, j + at) for at in range(len(window)))
            i, j = i + WINDOW, j + WINDOW
            continue
        windows += 1
        flags = common_words(window, other)
        is_last = i + WINDOW >= len(first) and j + WINDOW >= len(second)
        places = list(zip(*(compress(count(), are_common) for are_common in flags)))
        if not is_last:  # the second half is compared again, with what follows it
            places = [place for place in places if max(place) < WINDOW // 2]
        yield from ((i + at, j + to) for at, to in places)
        at, to = places[-1] if places else (WINDOW // 2, WINDOW // 2)
        i, j = (len(first), len(second)) if is_last else (i + at + 1, j + to + 1)


def _page(figures: dict[str, Any], changes: Sequence[Change], shingles: lsh.Shingles) -> str:
    """Return the figures and the differences as text."""
    lines = [f"similarity  {figures['similarity']:.6f}, exact, by shingles of {options.length(shingles)}"]
    if figures["common"] is not None:
        alone = [
            f"{figures[side]['num_shingles'] - figures['common']:,} only in the {name}" for side, name in SIDES.items()
        ]
        numbers = [f"{figures['common']:,} in both", *alone, f"{figures['union']:,} in all"]
        lines.append(f"shingles    {', '.join(numbers)}")
    for side, name in SIDES.items():
        one = figures[side]
        source = f" ({console.visible(one['source'])})" if one["source"] else ""  # none at the top of a folder of texts
        lines.append(f"{name:<12}{console.visible(one['id'])}{source}, {counted(one['bytes'], 'byte')}")
    if figures["identical"]:
        return "\n".join([*lines, "", "The texts are identical."]) + "\n"
    return "\n".join([*lines, "", _drawn(changes, _has_colours())]) + "\n"


def _drawn(changes: Sequence[Change], colours: bool) -> str:
    """Return the differences, marked, with common text around them."""
    red, green, plain = (RED, GREEN, PLAIN) if colours else ("", "", "")
    parts = []
    for number, change in enumerate(changes):
        is_last = number == len(changes) - 1
        parts.append(_cut(change.common, CONTEXT if number else 0, 0 if is_last else CONTEXT))
        if change.removed:
            parts.append(f"{red}[-{_cut(change.removed, MAX_CHANGE // 2, MAX_CHANGE // 2)}-]{plain}")
        if change.added:
            parts.append(f"{green}{{+{_cut(change.added, MAX_CHANGE // 2, MAX_CHANGE // 2)}+}}{plain}")
    return "".join(parts).rstrip("\n")


def _cut(text: str, first: int, last: int) -> str:
    """Return a text for printing; of a long one only the first and last characters."""
    left_out = len(text) - first - last
    if left_out <= CONTEXT:
        return console.visible(text, LAYOUT)
    gap = f"[... {counted(left_out, 'character')} ...]"
    return "\n".join(
        filter(None, [console.visible(text[:first], LAYOUT), gap, console.visible(text[len(text) - last :], LAYOUT)])
    )


def _has_colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


# ---- lsh compare ----


def add_compare(commands: argparse._SubParsersAction[console.Parser]) -> None:
    """Add the command to the parsers of the command line."""
    parser = commands.add_parser(
        "compare",
        help="print the similarity of two texts",
        description="Print the Jaccard similarity of two files, each of which is one document, or of two texts: the "
        "exact value, and the estimate from fingerprints with its confidence interval.",
        epilog=COMPARE,
    )
    parser.add_argument("a", metavar="A", help="a file, which may be compressed, or - for standard input")
    parser.add_argument("b", metavar="B", help="the other file")
    parser.add_argument("--texts", action="store_true", help="A and B are texts, not files")
    options.add_shingles(parser)
    options.add(parser, "--num-seeds", "--random-state")
    parser.add_argument(
        "--confidence", type=float, default=0.95, help="confidence level of the interval (default 0.95)"
    )
    options.add(parser, "--json")
    parser.set_defaults(run=compare)


def compare(namespace: argparse.Namespace) -> None:
    """Run ``lsh compare``."""
    console.check_standard_output()
    hasher = options.hasher(namespace)
    confidence = checks.fraction("confidence", namespace.confidence, zero=False, one=False)
    if namespace.texts:
        a, b = (text.encode("utf-8", "surrogateescape") for text in (namespace.a, namespace.b))
    else:
        paths = {"A": namespace.a, "B": namespace.b}
        read = [pair for name, path in paths.items() for pair in inputs.named(name, files.expanded([path]))]
        inputs.check_files(read, [], folders=False)
        a, b = map(_content, paths.values())
    console.write_data(_compared(a, b, hasher, confidence, namespace.json))


def _compared(a: bytes, b: bytes, hasher: lsh.MinHasher, confidence: float, as_json: bool) -> str:
    first, second = hasher.fingerprint(a), hasher.fingerprint(b)
    exact = lsh.jaccard(a, b, shingles=hasher.shingles)
    estimate = hasher.jaccard(first, second)
    low, high = hasher.interval(first, second, confidence)
    if as_json:
        similarities = {"similarity": exact, "estimate": estimate, "interval": [low, high], "confidence": confidence}
        parameters = {"num_seeds": hasher.num_seeds, "random_state": hasher.random_state}
        return json.dumps({**similarities, **parameters, "shingles": hasher.shingles.to_dict()}) + "\n"
    return (
        f"exact     {exact:.6f}\n"
        f"estimate  {estimate:.6f}, from {counted(hasher.num_seeds, 'component')}\n"
        f"interval  {low:.6f} to {high:.6f}, at confidence {confidence:g}\n"
    )


def _content(path: str) -> bytes:
    """Return the bytes of a file, unpacked, or of standard input."""
    path = files.local(path)
    if path != files.STANDARD and not files.is_url(path) and not os.path.lexists(path):
        raise ValueError(f"{path}: no such file; to compare two texts, use --texts")
    return files.content(path)


# ---- lsh stats ----


def add_stats(commands: argparse._SubParsersAction[console.Parser]) -> None:
    """Add the command to the parsers of the command line."""
    parser = commands.add_parser(
        "stats",
        help="print lengths and numbers of shingles of documents",
        description="Print how long documents are, how many shingles they have, and how many are exact duplicates, "
        "empty or missing.",
        epilog=STATS,
    )
    parser.add_argument(
        "input", metavar="FILE", nargs="+", help="files of documents of one format, or folders; - for standard input"
    )
    options.add_shingles(parser)
    options.add(parser, "--json")
    options.add_reading(parser, missing="empty")
    options.add_running(parser)
    parser.set_defaults(run=stats)


def stats(namespace: argparse.Namespace) -> None:
    """Run ``lsh stats``."""
    console.check_standard_output()
    started = time.perf_counter()
    shingles, reading, running = options.shingles(namespace), options.reading(namespace), options.running(namespace)
    places = files.expanded(namespace.input)
    inputs.check_files(inputs.named("FILE", places), [], reading)
    figures = _statistics(inputs.find(reading, places, running.quiet), shingles, reading, running)
    console.write_data(json.dumps(figures) + "\n" if namespace.json else _table(figures, shingles))
    if running.verbose:
        console.say(", ".join(console.cost(time.perf_counter() - started, figures["bytes"])))


def _statistics(
    sources: files.Sources, shingles: lsh.Shingles, reading: ReadOptions, running: RunOptions
) -> dict[str, Any]:
    """Return the figures of the table: `lengths` are in bytes, `shingles` are of `shingled` texts."""
    budget = inputs.own_budget(running)
    with inputs.open_documents(reading, sources, budget=budget) as documents:
        notes = None if running.quiet else ""
        texts = inputs.TextStream([documents], with_ids=False, with_sizes=True, notes=notes, budget=budget)
        meter = console.progress(running.quiet, files.STANDARD, [texts], running.verbose)
        copies = lsh.deduplicate(
            texts,
            1.0,
            shingles=WHOLE_TEXT,
            num_seeds=1,
            missing="empty",
            **running.limits(),
            progress=meter,
        ).summary()["removed"]
        shingled = _shingle_counts(texts, shingles, meter)
        lengths = _counts_of(chunk for _, chunk in texts.sizes.chunks())
        missing, empty = lengths.pop(inputs.NO_TEXT, 0), lengths.get(0, 0)
        without = empty
        if shingles.depends_on_unicode:  # by word, for instance, texts that are not empty may have no shingles
            without = _without_shingles(texts, shingles) - missing
    return {
        "documents": texts.count,
        "bytes": texts.num_bytes,
        "lengths": _spread(lengths),
        "shingles": _spread(_counts_of([shingled])),
        "shingled": len(shingled),
        "without_shingles": without,
        "exact_duplicates": copies + max(empty - 1, 0),  # texts without shingles are never removed
        "empty": empty,
        "missing": missing,
        "skipped": texts.skipped,
        "hidden": texts.hidden,
    }


def _shingle_counts(texts: inputs.TextStream, shingles: lsh.Shingles, meter: console.Meter) -> Numbers:
    """Return the number of distinct shingles of texts that are not huge; of many texts, of an even sample."""
    found = texts.at(_sample(texts.sizes).tolist(), lambda: meter.reading("shingles"))
    return np.array([len(shingles.of(record.text or b"")) for _, record in found], np.int64)


def _sample(sizes: SpilledColumn) -> Numbers:
    """Return the positions of texts that are not huge; of many of them, an even sample."""

    def positions() -> Iterator[Numbers]:
        for first, chunk in sizes.chunks():
            yield first + np.flatnonzero((chunk >= 0) & (chunk <= MAX_SHINGLED_BYTES))

    count = sum(map(len, positions()))
    number = min(count, MAX_SHINGLED_TEXTS)
    wanted, before, found = np.arange(number) * count // max(number, 1), 0, [np.empty(0, np.int64)]
    for some in positions():
        found.append(some[wanted[slice(*np.searchsorted(wanted, [before, before + len(some)]))] - before])
        before += len(some)
    return np.concatenate(found)


def _without_shingles(texts: inputs.TextStream, shingles: lsh.Shingles) -> int:
    """Count the texts without shingles, including missing texts."""
    hasher = lsh.MinHasher(1, scheme="fss", shingles=shingles)
    found = (batch_fingerprints(hasher, Batch(piece, missing=True)) for piece in texts().pieces)
    return sum(int(hasher.is_empty(rows).sum()) for rows in found)


def _counts_of(parts: Iterable[Numbers]) -> Counter[int]:
    """Count how often each number occurs."""
    found = Counter[int]()
    for part in parts:
        numbers, counts = np.unique(part, return_counts=True)
        found.update(dict(zip(numbers.tolist(), counts.tolist())))
    return found


def _spread(counts: Counter[int]) -> dict[str, float] | None:
    """Return mean and quartiles of numbers that are counted, ``None`` if there are none."""
    total = counts.total()
    if not total:
        return None
    numbers = sorted(counts)
    ends = np.cumsum([counts[number] for number in numbers])
    ranks = [max(-(-total * part // 4), 1) for part in range(len(QUARTILES))]  # from 1
    quartiles = [numbers[place] for place in np.searchsorted(ends, ranks)]
    mean = sum(number * count for number, count in counts.items()) / total
    return {"mean": mean, **dict(zip(QUARTILES, quartiles))}


def _table(figures: dict[str, Any], shingles: lsh.Shingles) -> str:
    """Return the figures as a table."""
    rows = {"documents": figures["documents"], "bytes of text": figures["bytes"]}
    for name in ("lengths", "shingles"):
        rows |= {f"{name}: {part}": number for part, number in (figures[name] or {}).items()}
    rows |= {name: figures[name.replace(" ", "_")] for name in COUNTS}
    rows |= {"bad lines skipped": figures["skipped"]} if figures["skipped"] else {}
    rows |= {"hidden files not read": figures["hidden"]} if figures["hidden"] else {}
    numbers = [f"{number:,.0f}" for number in rows.values()]
    width, number_width = max(map(len, rows)), max(map(len, numbers))
    lines = [f"{name:<{width}}  {number:>{number_width}}" for name, number in zip(rows, numbers)]
    shingled = counted(figures["shingled"], "text")
    lines.append(f"Lengths are in bytes; shingles are the distinct ones of {options.length(shingles)}, of {shingled}.")
    return "\n".join(lines) + "\n"
