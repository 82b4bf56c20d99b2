"""``lsh stats``: the lengths of documents, their numbers of shingles, and how many are exact duplicates."""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

import lsh
from lsh import files
from lsh.base.budget import Column
from lsh.base.wording import counted
from lsh.command import console, inputs, options
from lsh.command.options import Reading, Running
from lsh.sketch.hasher import batch_fingerprints
from lsh.text.batch import Batch
from lsh.text.shingling import MAX_UNITS

MAX_SHINGLED_TEXTS = 10_000  # texts whose shingles are counted
MAX_SHINGLED_BYTES = 1_000_000  # of such a text, since a shingle needs about 100 bytes as an object
QUARTILES = ("min", "q25", "median", "q75", "max")
COUNTS = ("exact duplicates", "empty", "without shingles", "missing")  # always in the table
WHOLE_TEXT = lsh.Shingles(MAX_UNITS, unit="byte")  # a whole text is one shingle, so only equal texts are similar

EPILOG = f"""\
example:
  lsh stats news.tsv.gz --ngram 5 --unit word

{options.FORMATS}
{console.EXITS}"""

Numbers = np.ndarray[Any, np.dtype[np.int64]]


def add_parser(commands: argparse._SubParsersAction[console.Parser]) -> None:
    """Add the command to the parsers of the command line."""
    parser = commands.add_parser(
        "stats",
        help="print lengths and numbers of shingles of documents",
        description="Print how long documents are, how many shingles they have, and how many are exact duplicates, "
        "empty or missing.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "input", metavar="FILE", nargs="+", help="files of documents of one format, or folders; - for standard input"
    )
    options.add_shingles(parser)
    options.add(parser, "--json")
    options.add_reading(parser, missing="empty")
    options.add_running(parser)
    parser.set_defaults(run=run)


def run(namespace: argparse.Namespace) -> None:
    """Run ``lsh stats``."""
    console.check_standard_output()
    started = time.perf_counter()
    shingles, reading, running = options.shingles(namespace), options.reading(namespace), options.running(namespace)
    places = files.expanded(namespace.input)
    inputs.check_files(inputs.named("FILE", places), [], reading)
    figures = _figures(inputs.find(reading, places, running.quiet), shingles, reading, running)
    console.write_data(json.dumps(figures) + "\n" if namespace.json else _table(figures, shingles))
    if running.verbose:
        console.say(", ".join(console.cost(time.perf_counter() - started, figures["bytes"])))


def _figures(sources: files.Sources, shingles: lsh.Shingles, reading: Reading, running: Running) -> dict[str, Any]:
    """Return the figures of the table: `lengths` are in bytes, `shingles` are of `shingled` texts."""
    spill = inputs.own_spill(running)
    with inputs.open_documents(reading, sources, spill=spill) as documents:
        notes = None if running.quiet else ""
        texts = inputs.TextStream([documents], with_ids=False, with_sizes=True, notes=notes, spill=spill)
        meter = console.progress(running.quiet, files.STANDARD, [texts], running.verbose)
        copies = lsh.deduplicate(
            texts,
            1.0,
            shingles=WHOLE_TEXT,
            num_seeds=1,
            missing="empty",
            max_memory=running.max_memory,
            temp_dir=running.temp_dir,
            num_threads=running.num_threads,
            progress=meter,
        ).summary()["removed"]
        shingled = _shingle_counts(texts, shingles, meter)
        lengths = _counts_of(part for _, part in texts.sizes.parts())
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


def _sample(sizes: Column) -> Numbers:
    """Return the positions of texts that are not huge; of many of them, an even sample."""

    def positions() -> Iterator[Numbers]:
        for first, part in sizes.parts():
            yield first + np.flatnonzero((part >= 0) & (part <= MAX_SHINGLED_BYTES))

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
    unit = {"char": "character", "byte": "byte", "word": "word"}[shingles.unit]
    shingled = counted(figures["shingled"], "text")
    lines.append(f"Lengths are in bytes; shingles are the distinct ones of {counted(shingles.n, unit)}, of {shingled}.")
    return "\n".join(lines) + "\n"
