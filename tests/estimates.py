"""Pairs of texts of known similarity, and tests of binomial counts, for the tests of accuracy."""

import itertools
import math
import random
from statistics import NormalDist

import numpy

import lsh

WORDS = lsh.Shingles(1, "word")


def make_hasher(k: int, hashbytes: int) -> lsh.MinHasher:
    """A hasher with k distinct seeds drawn from all of uint32."""
    return lsh.MinHasher(random.Random(k).sample(range(2**32), k), hashbytes=hashbytes, shingles=WORDS)


def pairs_of_texts(shared: int, union: int, count: int) -> list[str]:
    """2 `count` texts: texts 2i and 2i + 1 are `shared / union` similar, no other pair shares a word."""
    names = itertools.count(random.Random(f"{shared} of {union}").randrange(36**6))
    texts = []
    for _ in range(count):
        words = [f"w{next(names)}" for _ in range(union)]
        both, rest = words[:shared], words[shared:]
        half = len(rest) // 2
        texts += [" ".join(both + rest[:half]), " ".join(both + rest[half:])]
    return texts


def binomial_tail(found: int, trials: int, p: float) -> float:
    """P(X >= found), summed term by term."""
    if p in (0, 1):  # p was rounded
        return float(found <= trials * p)

    def term(x: int) -> float:
        ways = math.lgamma(trials + 1) - math.lgamma(x + 1) - math.lgamma(trials - x + 1)
        return math.exp(ways + x * math.log(p) + (trials - x) * math.log1p(-p))

    return math.fsum(map(term, range(found, trials + 1)))


def binomial_test(found: int, trials: int, p: float) -> float:
    """Two-sided exact p-value."""
    return min(1.0, 2 * min(binomial_tail(found, trials, p), binomial_tail(trials - found, trials, 1 - p)))


def variance_test(found: numpy.ndarray, trials: int, p: float) -> float:
    """Two-sided p-value of the spread of binomial counts around their known mean.

    The sum of the squared standard scores has the mean n and the variance n (2 + excess kurtosis of the binomial);
    it is a sum of n independent terms, so its cube root is close to normal (Wilson and Hilferty 1931) with
    this variance instead of that of chi-square.
    """
    n = len(found)
    one = trials * p * (1 - p)
    total = float(((found - trials * p) ** 2 / one).sum())
    spread = (2 + (1 - 6 * p * (1 - p)) / one) / (9 * n)
    z = ((total / n) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return 2 * NormalDist().cdf(-abs(z))
