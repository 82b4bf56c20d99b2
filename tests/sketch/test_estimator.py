"""The estimate is unbiased, with the variance J (1 - J) / k, and bands find pairs on the S-curve.

Every expected value comes from theory: k components with ideal hash functions agree in a binomial number of
places with parameter J, the exact Jaccard similarity, and b bands of r components share a bucket with probability
1 - (1 - J^r)^b. Texts and seeds are drawn by a fixed generator, so each run gives the same result.
ALPHA is the probability that an ideal hash function would fail a test. A shingle is one word.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy
import pytest
import reference
from estimates import binomial_test, make_hasher, pairs_of_texts, variance_test

import lsh

ALPHA = 1e-4

# (shared, all) shingles of a pair: unions of 1, 2, 5, 10, 100 and 1,000.
SIZES = [
    (1, 2),
    (1, 5),
    (2, 5),
    (4, 5),
    (1, 10),
    (5, 10),
    (9, 10),
    (10, 100),
    (50, 100),
    (80, 100),
    (95, 100),
    (300, 1000),
    (800, 1000),
    (990, 1000),
]
# The pieces and sizes of 100 hashes.
BANDINGS = [(2, 50), (5, 20), (10, 10), (20, 5), (50, 2)]


def matches(hasher: lsh.MinHasher, texts: list[str]) -> numpy.ndarray:
    """The numbers of equal components of texts 2i and 2i + 1."""
    rows = numpy.asarray(hasher.fingerprints(texts))
    return (rows[::2] == rows[1::2]).sum(axis=1)


@pytest.mark.few(5)
@pytest.mark.parametrize("hashbytes", [4, 8])
@pytest.mark.parametrize(("shared", "union"), SIZES)
def test_unbiased_and_binomial_variance(shared, union, hashbytes):
    k, count = (200, 60) if union == 1000 else (200, 300)
    found = matches(make_hasher(k, hashbytes), pairs_of_texts(shared, union, count))
    assert binomial_test(int(found.sum()), k * count, shared / union) > ALPHA
    assert variance_test(found, k, shared / union) > ALPHA


@pytest.mark.parametrize("hashbytes", [4, 8])
def test_each_shingle_is_the_minimum_equally_often(hashbytes):
    """Chi-square over the 20 shingles of a set: position, length and spelling do not change the probability."""
    words = ["a", "b", "bb", "abcd", "abcde", "abcdefgh", "ä", "漢字", "1", "2", "12", "zzzzzzz", "_", "the", "of"]
    words += ["and", "x" * 15, "x" * 16, "x" * 17, "y" * 40]
    k = 20_000
    hasher = make_hasher(k, hashbytes)
    whole = hasher.fingerprint(" ".join(words))
    counts = [int((hasher.fingerprint(word) == whole).sum()) for word in words]
    assert sum(counts) == k
    freedom = len(words) - 1
    chi_square = sum((count - k / 20) ** 2 / (k / 20) for count in counts)
    z = ((chi_square / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
    assert 1 - NormalDist().cdf(z) > ALPHA


@pytest.mark.parametrize("hashbytes", [4, 8])
@pytest.mark.parametrize(
    "shared", [14, *(pytest.param(shared, marks=pytest.mark.slow) for shared in (6, 10, 16, 18, 19))]
)
def test_bands_follow_the_s_curve(shared, hashbytes):
    """For the five ways to cut 100 hashes into bands, over sets of 20 shingles."""
    count = 400
    rows = make_hasher(100, hashbytes).fingerprints(pairs_of_texts(shared, 20, count))
    for num_bands, width in BANDINGS:
        probability = 1 - (1 - (shared / 20) ** width) ** num_bands
        keys = lsh.Bands(num_bands, width).keys(rows)
        found = int((keys[:, ::2] == keys[:, 1::2]).any(axis=0).sum())
        assert binomial_test(found, count, probability) > ALPHA
        assert not (keys[:, 1:-1:2] == keys[:, 2::2]).any()  # texts of different pairs share no word


@pytest.mark.parametrize("hashbytes", [4, 8])
@pytest.mark.parametrize("shared", [1, 5, 9])
def test_interval_covers_as_often_as_it_should(shared, hashbytes):
    """How often the interval holds J is a sum of binomial probabilities, near but not exactly its confidence."""
    k, count, similarity = 64, 1000, shared / 10
    inside = []
    for m in range(k + 1):
        low, high = reference.wilson(m, k, 0.95)
        inside.append(low <= similarity <= high)
    coverage = sum(math.comb(k, m) * similarity**m * (1 - similarity) ** (k - m) for m in range(k + 1) if inside[m])
    assert 0.92 < coverage < 0.98
    hasher = make_hasher(k, hashbytes)
    rows = hasher.fingerprints(pairs_of_texts(shared, 10, count))
    intervals = [hasher.interval(rows[2 * i], rows[2 * i + 1]) for i in range(count)]
    covered = sum(low <= similarity <= high for low, high in intervals)
    assert binomial_test(covered, count, coverage) > ALPHA
