#!/usr/bin/env python3
"""Check the tests of accuracy in tests/sketch: they accept ideal sketches and fail for defective ones."""

from __future__ import annotations

import sys
from typing import Any

import checks
import numpy
import pytest

SKETCH = checks.ROOT / "tests" / "sketch"
sys.path[:0] = [str(checks.ROOT / "tests")]

import reference  # noqa: E402
from estimates import WORDS, binomial_tail, binomial_test, make_hasher, variance_test  # noqa: E402
from estimates import pairs_of_texts as word_pairs  # noqa: E402

import lsh  # noqa: E402

fss = checks.script(SKETCH / "test_fss.py")
ALPHA = 1e-4
PERMUTATIONS = {  # of 128 components, and whether bands of adjacent and of distant components follow the S-curve
    "ours": (reference.fss_ranks(128), True, True),
    "identity": (range(128), False, False),
    "bits reversed": ([int(f"{j:07b}"[::-1], 2) for j in range(128)], False, False),
    "triangular": ([j * (j + 1) // 2 % 128 for j in range(128)], True, False),
}


def simulated(k: int, pair: tuple[int, int, int], trials: int, ranks: Any, seed: int) -> Any:
    """`agreement` of sketches of random hashes with another permutation."""
    rng = numpy.random.default_rng(seed)
    both, a, b = ([rng.integers(0, 2**32, (2, trials), dtype=numpy.uint32) for _ in range(size)] for size in pair)
    rows = []
    for hashes in (both + a, both + b):
        row = numpy.full((trials, k), fss.M32, numpy.uint32)
        for h1, h2 in hashes:
            numpy.minimum(row, fss.offers(h1, h2, k, ranks), out=row)
        rows.append(row)
    return numpy.packbits((rows[0] == rows[1]).T, axis=1)


def check_the_bands_tell_a_bad_permutation() -> None:
    """Sorted or badly scrambled ranks pass the tests of bias and variance and fail those of the bands."""
    pair = (9, 1, 1)
    for name, (ranks, contiguous, strided) in PERMUTATIONS.items():
        bits = simulated(128, pair, 24_000, list(ranks), seed=2)
        assert fss.bias_test(bits, fss.jaccard(*pair)) > ALPHA, name
        assert fss.variance_ratio(bits, fss.jaccard(*pair)) <= 0.70, name
        for expected, is_strided in ((contiguous, False), (strided, True)):
            gap, _ = fss.recall_gap(bits, fss.jaccard(*pair), is_strided)
            assert (gap <= fss.LIMIT) is expected, name


def check_the_tests_of_bias_and_variance_tell_a_fault() -> None:
    bits = fss.agreement(128, 9, 1, 1, fss.TRIALS)
    assert fss.bias_test(bits, 9 / 11 + 0.001) < ALPHA  # an error of .001 in all components
    one = bits.copy()
    one[77, : one.shape[1] // 20] = 0  # one component never agrees in a twentieth of the pairs
    assert fss.component_test(one, 9 / 11) < ALPHA
    rng = numpy.random.default_rng(3)
    independent = numpy.packbits(rng.binomial(1, 9 / 11, (128, fss.TRIALS)).astype(numpy.uint8), axis=1)
    assert fss.bias_test(independent, 9 / 11) > ALPHA
    assert fss.component_test(independent, 9 / 11) > ALPHA
    assert 0.97 < fss.variance_ratio(independent, 9 / 11) < 1.03
    assert fss.recall_gap(independent, 9 / 11, strided=False)[0] < 0.01
    copied = independent.copy()
    copied[64:80] = copied[:16]  # an eighth of the components are copies of others
    assert fss.variance_ratio(copied, 9 / 11) > 1.05


def check_the_p_values_of_binomial_counts() -> None:
    """They agree with known values, and are small if the hypothesis is false."""
    assert binomial_tail(2, 3, 0.5) == pytest.approx(0.5)
    assert binomial_tail(0, 50, 0.3) == pytest.approx(1)
    assert binomial_test(10, 10, 0.5) == pytest.approx(2 / 1024)
    rng = numpy.random.RandomState(5)
    assert binomial_test(int(rng.binomial(20_000, 0.5)), 20_000, 0.52) < ALPHA
    for p in (0.1, 0.5, 0.95):
        p_values = numpy.array([variance_test(rng.binomial(200, p, size=200), 200, p) for _ in range(2000)])
        for level in (0.01, 0.1, 0.5):
            assert binomial_test(int((p_values < level).sum()), 2000, level) > ALPHA
    assert variance_test(2 * rng.binomial(100, 0.5, size=300), 200, 0.5) < ALPHA
    assert variance_test(numpy.full(300, 100), 200, 0.5) < ALPHA


def check_a_recall_that_is_too_low_is_seen() -> None:
    """Bands that find half of the pairs fail the test for a recall of 0.9."""
    hasher = make_hasher(128, 8)
    assert hasher.shingles == WORDS
    pairs = list(lsh.find_pairs(word_pairs(80, 100, 1000), threshold=0.8, recall=0.5, hasher=hasher))
    assert binomial_tail(1000 - len(pairs), 1000, 1 - 0.9) < ALPHA


if __name__ == "__main__":
    sys.exit(checks.main(globals()))
