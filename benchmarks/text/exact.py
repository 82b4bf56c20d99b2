"""Measure the exact Jaccard similarity in pairs per second, called from Python in one thread, against Python sets.

There are two kinds of comparison, by size of the text and by shingles. "raw": the shingle sets of both texts must be
computed. "prepared": both sets exist, from earlier comparisons. The texts are neighbours in a corpus, cut to one size.
The results are first compared with those of Python sets.
"""

from __future__ import annotations

import ctypes
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import lsh
from lsh.text.shingling import shingle_sets

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import harness

SIZES = (100, 2000, 20_000)
SHINGLES = (
    lsh.Shingles(5, "byte"),
    lsh.Shingles(8, "byte"),
    lsh.Shingles(12, "byte"),
    lsh.Shingles(5, "word"),
)
COUNTS = (250, 500, 1000, 2000)  # texts of a matrix of all pairs
LONG = (10, 20, 40, 80, 100, 200)  # megabytes of each of two texts
LONG_ROUNDS = 3
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of mallopt in glibc's malloc.h
SIDE = 30  # texts of a matrix, which compares each text with each
MATRICES = 8  # used in rotation, so that the branch predictor cannot learn one


def plain_set(text: bytes, shingles: lsh.Shingles) -> set[bytes]:
    n = shingles.n
    if shingles.unit == "word":
        words = "".join(c if c.isalnum() or c == "_" else " " for c in text.decode("utf-8", "replace")).split()
        return {" ".join(words[i : i + n]).encode() for i in range(max(len(words) - n + 1, 1))} if words else set()
    return {text[i : i + n] for i in range(max(len(text) - n + 1, 1))} if text else set()


def plain(a: set[bytes], b: set[bytes]) -> float:
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared) if a and b else 0.0


def raw(pairs: list[bytes], shingles: lsh.Shingles) -> np.ndarray:
    """Return the similarity of the two halves of each text."""
    halves = [(pair[: len(pair) // 2], pair[len(pair) // 2 :]) for pair in pairs]
    return np.array([lsh.jaccard(a, b, shingles=shingles) for a, b in halves])


def plain_raw(pairs: list[bytes], shingles: lsh.Shingles) -> list[float]:
    halves = [(pair[: len(pair) // 2], pair[len(pair) // 2 :]) for pair in pairs]
    return [plain(plain_set(a, shingles), plain_set(b, shingles)) for a, b in halves]


def prepared(texts: list[bytes], shingles: lsh.Shingles) -> dict[str, dict[str, float]]:
    """Measure pairs per second of matrices whose sets exist, for the library and for Python sets."""
    groups = [texts[i * SIDE : (i + 1) * SIDE] for i in range(min(MATRICES, len(texts) // SIDE))]
    made = [shingle_sets(shingles, group) for group in groups]
    sets = [[plain_set(text, shingles) for text in group] for group in groups]
    for one, few in zip(made, sets):
        harness.must(one.matrix(SIDE, 0).tolist() == [[plain(a, b) for b in few] for a in few], f"{shingles!r} differs")
        one.matrix(SIDE, 0)  # a set is cached when it is used a second time
    candidates = {
        "lsh": lambda some: [made[i[0]].matrix(SIDE, 0) for i in some],
        "sets of Python": lambda some: [[plain(a, b) for a in sets[i[0]] for b in sets[i[0]]] for i in some],
    }
    found = harness.in_slices(candidates, [bytes([i]) for i in range(len(groups))], 0.5)
    return {
        name: {"best_pairs_per_second": rates["best_documents_per_second"] * SIDE**2} for name, rates in found.items()
    }


def measured(corpus: harness.Corpus) -> list[dict[str, Any]]:
    found = []
    for size in SIZES:
        ascii_texts = [text.decode("ascii", "replace").encode("ascii", "replace") for text in corpus.texts]
        texts, pairs = harness.pieces(ascii_texts, size), harness.pieces(ascii_texts, 2 * size)
        for shingles in SHINGLES:
            some = pairs[:20]
            harness.must(raw(some, shingles).tolist() == plain_raw(some, shingles), f"{shingles!r} differs")
            rates = harness.in_slices(
                {
                    "lsh": lambda some, shingles=shingles: raw(some, shingles),
                    "sets of Python": lambda some, shingles=shingles: plain_raw(some, shingles),
                },
                pairs,
                0.5,
            )
            ways = {
                "raw": {
                    name: {"best_pairs_per_second": one["best_documents_per_second"]} for name, one in rates.items()
                },
                "prepared": prepared(texts, shingles),
            }
            found.append({"size": size, "n": shingles.n, "unit": shingles.unit, **ways})
            told = ", ".join(
                f"{way} {ways[way]['lsh']['best_pairs_per_second']:,.0f} "
                f"(Python {ways[way]['sets of Python']['best_pairs_per_second']:,.0f})"
                for way in ways
            )
            print(f"{size:6,} bytes, {shingles!r}: pairs per second: {told}", flush=True)
    return found


def matrices() -> list[dict[str, Any]]:
    """Measure `lsh.jaccard_matrix` of all pairs of the first advertisements, by their number."""
    ads, found = harness.corpus("ads_rome_it.tsv.gz").texts, []
    shingles = lsh.Shingles(8, "byte")
    few = [plain_set(ad, shingles) for ad in ads[:50]]
    expected = [[plain(a, b) for b in few] for a in few]
    harness.must(lsh.jaccard_matrix(ads[:50], shingles=shingles).tolist() == expected, "the matrix differs")
    for count in COUNTS:
        seconds = []
        for _ in range(3):
            started = time.process_time()
            lsh.jaccard_matrix(ads[:count], shingles=shingles)
            seconds.append(time.process_time() - started)
        found.append({"texts": count, "best_seconds": min(seconds)})
        print(f"matrix of {count:,} advertisements: {min(seconds):.3f} s", flush=True)
    return found


def long_texts() -> list[dict[str, Any]]:
    """Measure `lsh.jaccard` of two texts of random digits, by their size: the first and the least of `LONG_ROUNDS`.

    The process keeps the memory that it frees, so that only the first round has what the system takes to give it.
    """
    if hasattr(ctypes.CDLL(None), "mallopt"):  # glibc
        for option, value in ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, -1)):
            ctypes.CDLL(None).mallopt(option, value)
    found = []
    for megabytes in LONG:
        a, b = (random.Random(seed).randbytes(megabytes * 500_000).hex() for seed in (1, 2))
        seconds = []
        for _ in range(LONG_ROUNDS):
            started = time.process_time()
            lsh.jaccard(a, b)
            seconds.append(time.process_time() - started)
        found.append({"megabytes": megabytes, "seconds": min(seconds), "first_seconds": seconds[0]})
        print(f"two texts of {megabytes} MB: {min(seconds):.2f} s, at first {seconds[0]:.2f} s", flush=True)
    return found


def main() -> None:
    options = harness.parser(__doc__).parse_args()
    corpus = harness.news()
    about = "exact Jaccard similarity, pairs a second by size of text and shingles; single thread, CPU time"
    harness.write(
        "exact",
        {
            "about": about,
            "data": corpus.describe(),
            "pairs": measured(corpus),
            "matrices": matrices(),
            "long": long_texts(),
        },
        options.folder,
    )


if __name__ == "__main__":
    main()
