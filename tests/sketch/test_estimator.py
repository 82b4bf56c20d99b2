"""The estimate is unbiased, with the variance J (1 - J) / k.

Every expected value comes from theory: k components with ideal hash functions agree in a binomial number of
places with parameter J, the exact Jaccard similarity. Texts and seeds are drawn by a fixed generator, so each run gives
the same result. ALPHA is the probability that an ideal hash function would fail a test. A shingle is one word.
"""

import math

import pytest
import reference
from estimates import binomial_test, make_hasher, pairs_of_texts, variance_test

ALPHA = 1e-4

# (shared, all) shingles of a pair: unions of 2 to 1,000.
SIZES = [
    (1, 2),
    (2, 5),
    (5, 10),
    (9, 10),
    (50, 100),
    (80, 100),
    (300, 1000),
    (800, 1000),
    (990, 1000),
]


@pytest.mark.few(5)
@pytest.mark.parametrize("hashbytes", [4, 8])
@pytest.mark.parametrize(("shared", "union"), SIZES)
def test_unbiased_and_binomial_variance(shared, union, hashbytes):
    k, count = (200, 60) if union == 1000 else (200, 300)
    rows = make_hasher(k, hashbytes).fingerprints(pairs_of_texts(shared, union, count))
    found = (rows[::2] == rows[1::2]).sum(axis=1)
    assert binomial_test(int(found.sum()), k * count, shared / union) > ALPHA
    assert variance_test(found, k, shared / union) > ALPHA


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
