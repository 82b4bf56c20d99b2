"""The commands beside ``lsh dedup``: ``pairs``, ``compare``, ``plan``, ``stats`` and ``version``.

Each is a function of its options that leaves the work to the library and writes what came of it: tables and figures to
standard output, words for people to standard error. Nothing here hashes, bands, compares or groups.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import sys
import time
from contextlib import ExitStack
from io import BytesIO
from typing import Any

import numpy as np

import lsh
from lsh import _checks, files, text_plot
from lsh._background import SAMPLE_TEXTS
from lsh._corpus import MAX_DOCUMENTS
from lsh._words import counted
from lsh.command import console, options
from lsh.planning import DEFAULT_RECALL
from lsh.shingling import MAX_UNITS

MOST_SHINGLED = 10_000  # texts of which `lsh stats` counts the shingles
MOST_BYTES = 1_000_000  # of such a text: a shingle takes a hundred bytes as an object
PLOTS = (".svg", ".png")
QUARTILES = ("min", "q25", "median", "q75", "max")
SAME = lsh.Shingles(MAX_UNITS, unit="byte")  # a whole text is one shingle, so that only equal texts are similar

PAIRS = f"""\
examples:
  lsh pairs news.tsv.gz --threshold 0.7
  lsh pairs train.jsonl test.jsonl -o shared.tsv

A line is: id, id, similarity, tab-separated; a tab or a line end in an id is written as an escape. Lines come in the
order of the documents.

{options.FORMATS}
{console.EXITS}"""

COMPARE = f"""\
examples:
  lsh compare monday.txt tuesday.txt --ngram 5
  lsh compare --texts "the ferry left at nine" "the ferry left at ten" --ngram 4

{console.EXITS}"""

PLAN = f"""\
examples:
  lsh plan --threshold 0.7 --recall 0.95
  lsh plan --corpus news.tsv.gz --documents 1000000 --plot curve.svg

{options.FORMATS}
{console.EXITS}"""

STATS = f"""\
example:
  lsh stats news.tsv.gz --ngram 5 --unit word

{options.FORMATS}
{console.EXITS}"""

VERSION = f"""\
example:
  lsh version --json

{console.EXITS}"""


def add(added: Any) -> None:
    """Add the commands to the parsers of the command line."""
    _add_pairs(added)
    _add_compare(added)
    _add_plan(added)
    _add_stats(added)
    parser = added.add_parser(
        "version",
        help="tell the versions of lsh, numpy and Python, and the level of the CPU",
        description="Tell the versions of lsh, numpy and Python, and which instruction set the kernels use.",
        epilog=VERSION,
    )
    _add_json(parser)
    parser.set_defaults(run=version)


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="write one JSON object")


# ---- pairs ----


def _add_pairs(added: Any) -> None:
    parser = added.add_parser(
        "pairs",
        help="write the pairs of documents that are near duplicates",
        description="Write each pair of documents whose shingle sets have a Jaccard similarity of at least the "
        "threshold: of one file, or one document of each of two files.",
        epilog=PAIRS,
    )
    parser.add_argument("input", metavar="INPUT", help="the file of documents; - for standard input")
    parser.add_argument("other", metavar="INPUT2", nargs="?", help="a second one: only pairs between the two")
    parser.add_argument(
        "-o", "--output", metavar="OUTPUT", default=files.STANDARD, help="the file to write (default: standard output)"
    )
    parser.add_argument("--json", action="store_true", help="write a line of JSON for each pair: a, b, similarity")
    options.add_finding(parser)
    options.add_reading(parser)
    options.add_running(parser)
    parser.set_defaults(run=pairs)


def pairs(chosen: argparse.Namespace) -> int:
    """Run ``lsh pairs``."""
    started = time.perf_counter()
    parameters, bands = options.finding(chosen)
    read = [("INPUT", chosen.input)] + ([("INPUT2", chosen.other)] if chosen.other is not None else [])
    options.check_files(read, [("OUTPUT", chosen.output)])
    if chosen.verbose:
        console.say(f"{parameters['hasher']!r}\n{bands}")
    with ExitStack() as opened:
        sides = [options.TextStream([opened.enter_context(options.source(chosen, path))]) for _, path in read]
        others = sides[1] if len(sides) == 2 else None
        progress = console.progress(chosen.quiet, chosen.output)
        found = lsh.find_pairs(sides[0], others=others, **parameters, progress=progress)
        output = opened.enter_context(files.Target(chosen.output))
        first, second = sides[0].ids, sides[-1].ids
        number = 0
        for i, j, similarity in found:
            number += 1
            output.write((_json_pair if chosen.json else _pair)(first[i], second[j], similarity))
        output.commit()
    if not chosen.quiet:
        documents = " and ".join(counted(side.count, "document") for side in sides)
        cost = console.cost(time.perf_counter() - started, sum(side.num_bytes for side in sides))
        skipped = sum(side.skipped for side in sides)
        bad = [f"{counted(skipped, 'bad line')} skipped"] if skipped else []
        console.say(", ".join([documents, counted(number, "pair"), *bad, *cost]))
    return console.EXIT_OK


def _pair(a: bytes, b: bytes, similarity: float) -> bytes:
    return files.table_row(a, b, repr(similarity).encode())


def _json_pair(a: bytes, b: bytes, similarity: float) -> bytes:
    first, second = map(_decoded, (a, b))
    return json.dumps({"a": first, "b": second, "similarity": similarity}).encode() + b"\n"


def _decoded(identity: bytes) -> str:
    """Return an id as text: surrogates as they came in JSON, other bytes that are no UTF-8 as Python has them."""
    try:
        return identity.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return identity.decode("utf-8", "surrogateescape")


# ---- compare ----


def _add_compare(added: Any) -> None:
    parser = added.add_parser(
        "compare",
        help="tell how similar two texts are",
        description="Tell the Jaccard similarity of two files, each as it is one document, or of two texts: exactly, "
        "and as fingerprints estimate it.",
        epilog=COMPARE,
    )
    parser.add_argument("a", metavar="A", help="a file, or - for standard input")
    parser.add_argument("b", metavar="B", help="another one")
    parser.add_argument("--texts", action="store_true", help="A and B are the texts themselves")
    options.add_shingles(parser)
    options.add_num_seeds(parser)
    parser.add_argument(
        "--confidence", type=float, default=0.95, help="probability of the interval of the estimate (default 0.95)"
    )
    _add_json(parser)
    parser.set_defaults(run=compare)


def compare(chosen: argparse.Namespace) -> int:
    """Run ``lsh compare``."""
    hasher = options.hasher(chosen)
    confidence = _checks.fraction("--confidence", chosen.confidence, zero=False, one=False)
    if chosen.texts:
        a, b = chosen.a.encode("utf-8", "surrogateescape"), chosen.b.encode("utf-8", "surrogateescape")
    else:
        options.check_files([("A", chosen.a), ("B", chosen.b)], [], folders=False)
        a, b = _document(chosen.a), _document(chosen.b)
    first, second = hasher.fingerprint(a), hasher.fingerprint(b)
    exact = lsh.jaccard(a, b, shingles=hasher.shingles)
    estimate = hasher.jaccard(first, second)
    low, high = hasher.interval(first, second, confidence)
    if chosen.json:
        values = {"exact": exact, "estimate": estimate, "interval": [low, high], "confidence": confidence}
        more = {"num_seeds": hasher.num_seeds, "shingles": hasher.shingles.to_dict()}
        console.write_data(json.dumps({**values, **more}) + "\n")
    else:
        console.write_data(
            f"exact     {exact:.6f}\n"
            f"estimate  {estimate:.6f}, of {counted(hasher.num_seeds, 'component')}\n"
            f"interval  {low:.6f} to {high:.6f}, with a confidence of {confidence:g}\n"
        )
    return console.EXIT_OK


def _document(path: str) -> bytes:
    """Return a file as it is."""
    if path != files.STANDARD:
        if not os.path.lexists(path):
            raise ValueError(f"{path}: there is no such file; to compare the words themselves give --texts")
        with open(path, "rb") as file:
            return file.read()
    if sys.stdin is None:
        raise OSError("standard input is closed; name a file as A and B")
    return sys.stdin.buffer.read()


# ---- plan ----


def _add_plan(added: Any) -> None:
    parser = added.add_parser(
        "plan",
        help="choose bands, and tell what they find",
        description="Print the cheapest bands that find a pair at the threshold with the recall, what they find at "
        "other similarities, and what that costs.",
        epilog=PLAN,
    )
    options.add_threshold(parser)
    options.add_recall(parser)
    options.add_num_seeds(parser)
    parser.add_argument(
        "--documents", type=int, metavar="N", help="size of the corpus (default: that of --corpus, if it is given)"
    )
    parser.add_argument(
        "--corpus", metavar="FILE", help="a file of documents: expect pairs as similar as random pairs of it"
    )
    parser.add_argument("--plot", metavar="FILE", help="draw the curve to a .svg or .png file (extra plot)")
    _add_json(parser)
    options.add_reading(parser)
    parser.set_defaults(run=plan)


def plan(chosen: argparse.Namespace) -> int:
    """Run ``lsh plan``."""
    threshold, seeds = options.threshold(chosen), options.num_seeds(chosen)
    recall = DEFAULT_RECALL if chosen.recall is None else chosen.recall
    recall = _checks.fraction("--recall", recall, zero=False, one=False)
    documents, background = chosen.documents, None
    if documents is not None:
        documents = _checks.whole_number("--documents", documents, 1, MAX_DOCUMENTS)
        if chosen.corpus is None:
            raise ValueError("--documents requires --corpus")
    planned = lsh.plan(threshold, recall, seeds)  # bad parameters show before any work
    read = [] if chosen.corpus is None else [("--corpus", chosen.corpus)]
    options.check_files(read, [("--plot", chosen.plot)])
    _check_plot(chosen.plot)
    if chosen.corpus is not None:
        count, background = _sample(chosen)
        if not count:
            raise ValueError(f"--corpus must have documents, {chosen.corpus} has none")
        documents = documents or count
        planned = lsh.plan(threshold, recall, seeds, background=background, documents=documents)
    if chosen.json:
        console.write_data(json.dumps(_described(planned)) + "\n")
    else:
        encoding = (sys.stdout.encoding or "" if sys.stdout is not None else "").lower()
        drawn = text_plot.curve(planned, ascii_only=not encoding.startswith("utf"))
        console.write_data(f"{planned}\n\n{drawn}\n")
    if chosen.plot is not None:
        _draw(planned, threshold, chosen.plot)
    return console.EXIT_OK


def _check_plot(path: str | None) -> None:
    """Check that a plot can be drawn, before any work."""
    if path is None:
        return
    if os.path.splitext(path)[1].lower() not in PLOTS:
        raise ValueError(f"--plot must be a file with the ending {' or '.join(PLOTS)}, got {path}")
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError("--plot needs matplotlib: install lsh-dedup[plot]")


def _draw(bands: lsh.Plan, threshold: float, path: str) -> None:
    """Draw the curve of the bands to a file; the same one gives the same bytes."""
    import matplotlib
    from matplotlib.figure import Figure

    from lsh import plot

    with matplotlib.rc_context(), files.Target(path, "") as target:
        matplotlib.rcdefaults()  # whatever a file of settings says
        matplotlib.rcParams["svg.hashsalt"] = "lsh"
        figure = Figure()
        plot.s_curve(bands, threshold=threshold, ax=figure.subplots())
        drawn = BytesIO()
        form = os.path.splitext(path)[1][1:].lower()
        figure.savefig(drawn, format=form, metadata={"Date": None} if form == "svg" else None)
        target.write(drawn.getvalue())
        target.commit()


def _sample(chosen: argparse.Namespace) -> tuple[int, list[Any]]:
    """Return how many texts a corpus has, and of many ones as many as a plan looks at, the same each time."""
    with options.source(chosen, chosen.corpus) as source:
        texts = options.TextStream([source], with_ids=False)
        count = sum(map(len, texts().pieces))
        wanted = np.random.RandomState(0).permutation(count)[:SAMPLE_TEXTS]
        return count, [text for _, text in texts.at(wanted.tolist())]


def _described(planned: lsh.Plan) -> dict[str, Any]:
    """Return what the table of a plan says, for machines."""
    similarities = [s / 10 for s in range(3, 11)]
    return {
        "threshold": planned.threshold,
        "recall": planned.recall,
        "num_seeds": planned.num_seeds,
        **planned.bands.to_dict(),
        "num_components": planned.bands.num_components,
        "found": {f"{s:.1f}": planned.probability(s) for s in similarities},
        "half_found_at": planned.similarity_at(0.5),
        "most_found_at": planned.similarity_at(0.95),
        "key_bytes": 8 * planned.bands.num_bands,
        "found_at_threshold": planned.probability(planned.threshold),
        "verified_at_threshold": planned.recall_at(planned.threshold),
        "background": planned.background,
        "false_candidates": planned.false_candidates,
        "documents": planned.documents,
    }


# ---- stats ----


def _add_stats(added: Any) -> None:
    parser = added.add_parser(
        "stats",
        help="tell what kind of documents a file has",
        description="Tell how long the documents of FILE are, how many shingles they have, and how many are exact "
        "duplicates, empty or missing.",
        epilog=STATS,
    )
    parser.add_argument("input", metavar="FILE", help="the file of documents; - for standard input")
    options.add_shingles(parser)
    _add_json(parser)
    options.add_reading(parser, missing="empty")
    options.add_running(parser, max_memory=False)
    parser.set_defaults(run=stats)


def stats(chosen: argparse.Namespace) -> int:
    """Run ``lsh stats``."""
    started = time.perf_counter()
    shingles = options.shingles(chosen)
    threads = options.num_threads(chosen)
    options.check_files([("FILE", chosen.input)], [])
    with options.source(chosen, chosen.input) as source:
        texts = options.TextStream([source], with_ids=False, with_sizes=True)
        progress = console.progress(chosen.quiet, files.STANDARD)
        same = lsh.deduplicate(
            texts, 1.0, shingles=SAME, num_seeds=1, missing="empty", num_threads=threads, progress=progress
        ).summary()
        sizes = np.frombuffer(texts.sizes, np.int64)
        counts = _shingle_counts(texts, shingles, sizes)
    empty, missing = int((sizes == 0).sum()), int((sizes < 0).sum())
    figures = {
        "documents": len(sizes),
        "bytes": texts.num_bytes,
        "lengths": _spread(sizes[sizes >= 0]),
        "shingles": _spread(counts),
        "shingled": len(counts),
        "without_shingles": int((counts == 0).sum()),
        "exact_duplicates": same["removed"] + max(empty - 1, 0),
        "empty": empty,
        "missing": missing,
        "skipped": texts.skipped,
        "hidden": texts.hidden,
    }
    console.write_data(json.dumps(figures) + "\n" if chosen.json else _table(figures, shingles))
    if chosen.verbose:
        console.say(", ".join(console.cost(time.perf_counter() - started, texts.num_bytes)))
    return console.EXIT_OK


def _shingle_counts(texts: options.TextStream, shingles: lsh.Shingles, sizes: Any) -> Any:
    """Return how many distinct shingles texts have: all texts but huge ones, or some of many at even distances."""
    positions = np.flatnonzero((sizes >= 0) & (sizes <= MOST_BYTES))
    if len(positions) > MOST_SHINGLED:
        positions = positions[np.arange(MOST_SHINGLED) * len(positions) // MOST_SHINGLED]
    return np.array([len(shingles.of(text or b"")) for _, text in texts.at(positions.tolist())], np.int64)


def _spread(numbers: Any) -> dict[str, Any] | None:
    """Return mean and quartiles, ``None`` of nothing."""
    if not len(numbers):
        return None
    quartiles = np.percentile(numbers, [0, 25, 50, 75, 100], method="inverted_cdf").tolist()
    return {"mean": float(numbers.mean()), **{name: int(value) for name, value in zip(QUARTILES, quartiles)}}


def _table(figures: dict[str, Any], shingles: lsh.Shingles) -> str:
    """Return the figures as a table to read."""
    rows = [("documents", f"{figures['documents']:,}"), ("bytes of text", f"{figures['bytes']:,}")]
    for name in ("lengths", "shingles"):
        spread = figures[name]
        if spread is not None:
            rows += [(f"{name}: {part}", f"{number:,.0f}") for part, number in spread.items()]
    rows += [("exact duplicates", f"{figures['exact_duplicates']:,}"), ("empty", f"{figures['empty']:,}")]
    rows += [("without shingles", f"{figures['without_shingles']:,}"), ("missing", f"{figures['missing']:,}")]
    rows += [("bad lines skipped", f"{figures['skipped']:,}")] if figures["skipped"] else []
    rows += [("hidden files passed over", f"{figures['hidden']:,}")] if figures["hidden"] else []
    width, room = max(len(name) for name, _ in rows), max(len(number) for _, number in rows)
    lines = [f"{name:<{width}}  {number:>{room}}" for name, number in rows]
    unit = {"char": "character", "byte": "byte", "word": "word"}[shingles.unit]
    shingled = counted(figures["shingled"], "text")
    lines.append(f"Lengths are in bytes; shingles are the distinct ones of {counted(shingles.n, unit)}, of {shingled}.")
    return "\n".join(lines) + "\n"


# ---- version ----


def version(chosen: argparse.Namespace) -> int:
    """Run ``lsh version``."""
    parts = {
        "lsh-dedup": lsh.__version__,
        "level": lsh.simd_level(),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "system": f"{sys.platform} {platform.machine()}",
    }
    table = "".join(f"{name:<10}  {value}\n" for name, value in parts.items())
    console.write_data(json.dumps(parts) + "\n" if chosen.json else table)
    return console.EXIT_OK
