"""The sketch filter: how many components must be equal for a candidate pair to be compared exactly.

The sketch of a document is 8 bits of each component of its fingerprint, so that two documents are compared in a few
instructions. A pair of Jaccard similarity s has the same 8 bits in a component with probability ``s + (1 - s) / 256``,
because two different components have the same 8 bits in one case of 256 (b-bit minwise hashing, Li and Konig 2010). For
independent components the number of equal ones is binomial; its lower tail at the threshold is the share of the pairs
that the filter loses. `engine.corpus` makes the sketches, and `links.comparing` compares them. The same distribution
says how often an estimate reaches a similarity, for `Cache` and `Index`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BITS = 8  # bits of each component that are compared
LOSS = 0.001  # share of the pairs at the threshold that the filter may lose where there is no plan that says it
NEEDLESS = 1e-4  # share of the pairs of similarity `UNRELATED` that may pass a comparison of fewer bits
UNRELATED = 0.25  # similarity; documents that share a bucket by chance are mostly less similar
LOSS_SHARE = 0.2  # the part of what a planned recall may miss that the filter may lose; the bands may miss the rest
MOST_SHORT_KEYS = 1 << 28  # documents, of which one in 16 shares a bucket by chance where 4 bytes of a key are kept


def loss_of(recall: float) -> float:
    """Return the share of the pairs at the threshold that the filter may lose under a planned recall."""
    return (1.0 - recall) * LOSS_SHARE


def min_equal(num_seeds: int, threshold: float, loss: float) -> int:
    """Return how many components of a pair must be equal, so that few pairs at the threshold are lost.

    Parameters
    ----------
    num_seeds : int
        The number k of components of a fingerprint.
    threshold : float
        The Jaccard similarity of the pairs, 0 to 1.
    loss : float
        The largest share of these pairs that may be lost, 0 or more and less than 1.

    Returns
    -------
    int
        The largest m with ``P(Binomial(k, p) < m) <= loss``, where p is ``threshold + (1 - threshold) / 256``; 0 to k.

    Examples
    --------
    >>> from lsh.sketch.sketch_filter import min_equal
    >>> min_equal(128, 0.8, 0.002)
    89
    >>> min_equal(128, 1.0, 0.002)
    128
    """
    lost = np.cumsum(_equal_components(num_seeds, threshold))[:-1]  # P(at most j), for j below k
    return int(np.searchsorted(lost, loss, side="right")) if loss > 0.0 or threshold == 1.0 else 0


def num_low_bits(num_seeds: int, min_equal: int) -> int:
    """Return how many bits of each component tell most pairs with fewer than `min_equal` equal components apart.

    Equal components have equal low bits, so no comparison of some low bits loses a pair. It is 1, 2, 4 or 8; 0 if all
    pairs have enough.
    """
    if min_equal == 0:
        return 0
    few = (bits for bits in (1, 2, 4) if passing(num_seeds, min_equal, UNRELATED, bits) <= NEEDLESS)
    return next(few, BITS)


def num_words(num_seeds: int, bits: int) -> int:
    """Return how many words of 64 bits so many low bits of each component take."""
    return bits * -(-num_seeds // 64)


def key_bytes(documents: int, low_bits: int) -> int:
    """Return how many bytes of a band key are kept: fewer let more documents share a bucket by chance.

    Where low bits of the components are compared, these tell such documents apart.
    """
    return 4 if low_bits and documents <= MOST_SHORT_KEYS else 8


def passing(num_seeds: int, min_equal: int, similarity: float, bits: int = BITS) -> float:
    """Return the probability that a pair of this similarity has the same low bits in at least `least` components."""
    return min(float(_equal_components(num_seeds, similarity, bits)[min_equal:].sum()), 1.0)


def passing_whole(num_seeds: int, min_equal: int, similarity: float) -> float:
    """Return the same where whole components are compared, none of which is equal by chance."""
    chance = 0.5**BITS
    return passing(num_seeds, min_equal, max((similarity - chance) / (1.0 - chance), 0.0))


def estimates(num_seeds: int, collisions: float) -> NDArray[np.float64]:
    """Return the estimated similarity for 0, 1, ..., k equal components."""
    return corrected(np.arange(num_seeds + 1) / max(num_seeds, 1), collisions)


def corrected(shares: NDArray[np.float64], collisions: float) -> NDArray[np.float64]:
    """Return similarities from shares of equal components; different ones are equal with probability `collisions`."""
    similarities: NDArray[np.float64] = np.clip((shares - collisions) / (1.0 - collisions), 0.0, 1.0)
    return similarities


def reaching(num_seeds: int, similarity: float, estimate: float, collisions: float) -> float:
    """Return the probability that a pair of this similarity has at least this estimate."""
    min_equal = int(np.searchsorted(estimates(num_seeds, collisions), estimate))
    return (passing if collisions else passing_whole)(num_seeds, min_equal, similarity)


def _equal_components(num_seeds: int, similarity: float, bits: int = BITS) -> NDArray[np.float64]:
    """Return the probabilities of 0, 1, ..., k components with the same low bits."""
    differ = (1.0 - similarity) * (1.0 - 0.5**bits)
    equal = np.arange(num_seeds + 1.0)
    if differ == 0.0:
        return np.array(equal == num_seeds, np.float64)
    steps = np.log((num_seeds - equal[:-1]) / equal[1:])  # from one binomial coefficient to the next
    ways = np.concatenate([[0.0], np.cumsum(steps)])
    chances: NDArray[np.float64] = np.exp(ways + equal * np.log1p(-differ) + (num_seeds - equal) * np.log(differ))
    chances /= chances.sum()  # sums of many logarithms have the same rounding error in all of them
    return chances
