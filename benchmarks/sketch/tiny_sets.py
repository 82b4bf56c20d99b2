"""How many pairs of tiny shingle sets are missed just at the threshold, beside what the recall allows.

A plan is made for independent components; those of fss depend on each other in a set of a few shingles. A pair of sets
is drawn at random, with a given number of shingles in the union and in common; the threshold is its Jaccard similarity.
A pair is found if it shares a band and passes the sketch filter. Both are computed by the parts that `find_pairs` uses,
so that the share of the bands is known; that the result is the same is checked first.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import lsh
from lsh.sketch import sketch_filter

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import harness

PAIRS = 40_000
UNIONS = range(2, 11)
LEAST, MOST = Fraction(1, 5), Fraction(3, 4)  # similarity of a pair
NUM_SEEDS = (64, 128, 256, 512, 1024)
RECALLS = (0.95, 0.99, 0.999)
CHECKED = 4000  # pairs of a cell for which `find_pairs` must give the same, with its defaults
WORDS = lsh.Shingles(1, "word")


def draw_texts(union: int, common: int, pairs: int) -> tuple[list[str], list[str]]:
    """The texts of both sides: so many words in all, of which the first ones are common."""
    draw = np.random.default_rng([union, common])
    words = [list(map(str, row)) for row in draw.integers(0, 2**63, (pairs, union)).tolist()]
    own = (union + common + 1) // 2  # words of the first text
    return [" ".join(row[:own]) for row in words], [" ".join(row[:common] + row[own:]) for row in words]


def found(plan: lsh.Plan, rows: list[Any]) -> tuple[Any, Any]:
    """Which pairs share a band, and which of them pass the sketch filter."""
    first, second = (plan.bands.keys(one) for one in rows)
    shared = (first == second).any(axis=0)
    equal = (rows[0].astype(np.uint8) == rows[1].astype(np.uint8)).sum(axis=1)
    return shared, shared & (equal >= sketch_filter.min_equal(plan.num_seeds, plan.threshold, plan.loss))


def check(threshold: float, texts: tuple[list[str], list[str]]) -> None:
    """Stop where `find_pairs` finds other pairs than are computed here."""
    first, second = (side[:CHECKED] for side in texts)
    answer = [(i, j) for i, j, _ in lsh.find_pairs(first, threshold, others=second, shingles=WORDS)]
    hasher = lsh.MinHasher(128, scheme="fss", shingles=WORDS)
    _, passed = found(lsh.plan(threshold), [hasher.fingerprints(side) for side in (first, second)])
    harness.must(answer == [(i, i) for i in np.flatnonzero(passed).tolist()], f"other pairs at {threshold}")


def cells(union: int, common: int, pairs: int) -> list[dict[str, Any]]:
    """What is missed of pairs with this union and intersection, by components and recall."""
    texts, measured = draw_texts(union, common, pairs), []
    check(common / union, texts)
    for num_seeds in NUM_SEEDS:
        hasher = lsh.MinHasher(num_seeds, scheme="fss", shingles=WORDS)
        rows = [hasher.fingerprints(side) for side in texts]
        for recall in RECALLS:
            plan = lsh.plan(common / union, recall, num_seeds)
            shared, passed = found(plan, rows)
            measured.append(
                {
                    "union": union,
                    "common": common,
                    "num_seeds": num_seeds,
                    "recall": recall,
                    "missed": 1.0 - float(passed.mean()),
                    "missed_by_bands": 1.0 - float(shared.mean()),
                }
            )
    return measured


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("pairs", nargs="?", type=int, default=PAIRS, help="pairs of a cell (default: %(default)s)")
    options = parser.parse_args()
    shapes = [(u, i) for u in UNIONS for i in range(1, u) if LEAST <= Fraction(i, u) <= MOST]
    measured = [cell for shape in shapes for cell in cells(*shape, options.pairs)]
    hundred = sum(len(text) for shape in shapes for side in draw_texts(*shape, 100) for text in side)
    data = {"name": "random sets of words", "pairs_of_a_cell": options.pairs, "bytes": hundred * options.pairs // 100}
    harness.write("tiny_sets", {"data": data, "cells": measured}, options.folder)


if __name__ == "__main__":
    main()
