"""``lsh compare``: the Jaccard similarity of two texts, exact and estimated from fingerprints."""

from __future__ import annotations

import argparse
import json
import os

import lsh
from lsh import files
from lsh.base import checks
from lsh.base.wording import counted
from lsh.command import console, inputs, options

EPILOG = f"""\
examples:
  lsh compare monday.txt tuesday.txt --ngram 5
  lsh compare --texts "the ferry left at nine" "the ferry left at ten" --ngram 4

{console.EXITS}"""


def add_parser(commands: argparse._SubParsersAction[console.Parser]) -> None:
    """Add the command to the parsers of the command line."""
    parser = commands.add_parser(
        "compare",
        help="print the similarity of two texts",
        description="Print the Jaccard similarity of two files, each of which is one document, or of two texts: the "
        "exact value, and the estimate from fingerprints with its confidence interval.",
        epilog=EPILOG,
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
    parser.set_defaults(run=run)


def run(namespace: argparse.Namespace) -> None:
    """Run ``lsh compare``."""
    console.check_standard_output()
    hasher = options.hasher(namespace)
    confidence = checks.fraction("--confidence", namespace.confidence, zero=False, one=False)
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
