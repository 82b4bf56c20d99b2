"""What bands find of a corpus, measured: a sample of it in which all pairs are compared exactly.

The similarities are those of `lsh.jaccard_matrix`, the bands those of `lsh.Bands.keys`; here it is only chosen what is
compared, and counted what comes of it. The pairs are chosen by where their documents stand, whether the bands find them
or not, so the shares that are found are not flattered.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from lsh.bands import Bands
from lsh.minhash import MinHasher, wilson_interval
from lsh.shingling import jaccard_matrix

PAIRS = 500_000
MOST_PAIRS = 20_000_000
DOCUMENTS = 10_000  # at most
LEAST_RUN = 50  # documents, unless there are fewer
BYTES = 2_000_000_000  # of text that are gone through, each text once for each other one
LONGEST = 100_000  # bytes of a text
STEPS = 20  # intervals of similarity in which pairs are counted

Array = np.ndarray[Any, Any]


class Step(NamedTuple):
    """The sampled pairs of an interval of similarity."""

    low: float
    high: float
    similarity: float  # the mean
    pairs: int
    found: int
    expected: float  # share of the pairs that the bands should find


class Measured(NamedTuple):
    """What the sample says of the bands."""

    documents: int
    compared: int  # pairs
    steps: list[Step]
    pairs: int  # at the threshold or above
    found: int
    left: int  # of those, with both documents kept


def runs(sizes: Array, skipped: Array, pairs: int) -> Array:
    """Choose the documents of a sample: runs of neighbours, because duplicates often stand close together.

    Parameters
    ----------
    sizes : numpy.ndarray
        Bytes of each document, shape ``(n,)``; those of more than 100,000 are left out.
    skipped : numpy.ndarray
        Positions of documents to leave out, such as those that are the same as others byte for byte.
    pairs : int
        How many pairs there may be at most; fewer where texts are long.

    Returns
    -------
    numpy.ndarray
        Positions, int64, shape ``(runs, length)``; in a run each document is to be compared with each.

    Examples
    --------
    >>> import numpy as np
    >>> from lsh.recall import runs
    >>> runs(np.full(8, 100), np.array([2]), 6)
    array([[0, 1, 3]])
    """
    eligible = sizes <= LONGEST
    eligible[skipped] = False
    positions = np.flatnonzero(eligible)
    number = len(positions)
    if number < 2 or pairs < 1:
        return np.empty((0, 0), np.int64)
    cells = max(int(min(2 * pairs, BYTES / max(sizes[positions].mean(), 1))), 4)
    length = max(cells // min(number, DOCUMENTS), min(LEAST_RUN, isqrt(cells)))
    length = min(length, number, isqrt(cells))
    number_of_runs = max(min(cells // length**2, number // length), 1)
    starts = np.linspace(0, number - length, number_of_runs).astype(np.int64)
    chosen: Array = positions[starts[:, None] + np.arange(length)]
    return chosen


def measured(
    runs: Array,
    text: Callable[[int], Any],
    keep: Array,
    threshold: float,
    hasher: MinHasher,
    bands: Bands,
) -> Measured | None:
    """Compare all pairs of each run exactly, and count which of them share a band.

    Parameters
    ----------
    runs : numpy.ndarray
        Positions, shape ``(runs, length)``.
    text : callable
        Gives the text of a position, str or bytes.
    keep : numpy.ndarray
        bool, shape ``(n,)``: the documents that were kept.
    threshold, hasher, bands
        As the documents were deduplicated with.

    Returns
    -------
    Measured or None
        ``None`` where there are no two documents with shingles. Pairs of equal shingle sets, which are always found,
        are not counted.
    """
    documents, parts = 0, []
    for positions in runs:
        texts = [text(position) for position in positions.tolist()]
        fingerprints = hasher.fingerprints(texts)
        some = np.flatnonzero(~hasher.is_empty(fingerprints))
        documents += len(some)
        exact = jaccard_matrix([texts[i] for i in some.tolist()], shingles=hasher.shingles)
        shared = np.zeros(exact.shape, np.bool_)
        for band in bands.keys(fingerprints[some]):
            shared |= band[:, None] == band
        stays = keep[positions[some]]
        upper = np.triu(exact < 1.0, 1)
        parts.append((exact[upper], shared[upper], np.outer(stays, stays)[upper]))
    if not any(len(part[0]) for part in parts):
        return None
    similarities, found, left = map(np.concatenate, zip(*parts))
    high = similarities >= threshold
    numbers = (int(high.sum()), int(found[high].sum()), int(left[high].sum()))
    return Measured(documents, len(similarities), _steps(bands, similarities, found), *numbers)


def _steps(bands: Bands, similarities: Array, found: Array) -> list[Step]:
    """Count the pairs by their similarity."""
    steps = []
    cell = np.minimum((similarities * STEPS + 1e-9).astype(np.int64), STEPS - 1)
    for step in np.unique(cell).tolist():
        inside = cell == step
        values = similarities[inside]
        expected = float(bands.probability(values).mean())
        low, high, mean = step / STEPS, (step + 1) / STEPS, float(values.mean())
        steps.append(Step(low, high, mean, len(values), int(found[inside].sum()), expected))
    return steps


def interval(found: int, total: int) -> tuple[float, float]:
    """Return Wilson's interval of 95 % of a share (Wilson 1927), as of independent pairs.

    Examples
    --------
    >>> from lsh.recall import interval
    >>> [round(bound, 4) for bound in interval(8, 10)]
    [0.4902, 0.9433]
    """
    return wilson_interval(found / total, total, 0.95)
