"""The recall of bands, measured on a corpus: the share of its similar pairs that share a band.

`lsh.jaccard_matrix` compares all pairs of a sample exactly, and `lsh.Bands.keys` tells which of them share a band. The
sample is chosen by position, whether the bands find its pairs or not, so that the measured recall is unbiased. Its
confidence interval holds for independent pairs only: pairs of texts from one template are found or missed together.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsh.bands import Bands
from lsh.minhash import MinHasher, wilson_interval
from lsh.shingling import jaccard_matrix
from lsh.typing import Text

__all__ = ["MeasuredRecall", "SimilarityInterval", "choose_sample", "confidence_interval", "measure"]

SAMPLE_PAIRS = 500_000
MAX_SAMPLE_PAIRS = 20_000_000
MAX_SAMPLE_DOCUMENTS = 10_000
MAX_COMPARED_BYTES = 2_000_000_000  # in all comparisons: each text counts once for each other text of its run
MAX_TEXT_SIZE = 100_000  # bytes of a sampled text
RUN_LENGTH = 50  # minimum number of documents in a run, unless there are fewer
NUM_INTERVALS = 20  # intervals of similarity in which pairs are counted


class SimilarityInterval(NamedTuple):
    """The sampled pairs of an interval of similarity.

    Attributes
    ----------
    low, high : float
        The ends of the interval.
    mean : float
        The mean similarity of the pairs.
    pairs : int
        Their number.
    found : int
        The number of pairs that share a band.
    expected : float
        The share of the pairs that the bands find on average.
    """

    low: float
    high: float
    mean: float
    pairs: int
    found: int
    expected: float


class MeasuredRecall(NamedTuple):
    """How many pairs of a sample the bands find.

    Attributes
    ----------
    documents : int
        The documents of the sample.
    compared : int
        The pairs that were compared.
    intervals : list of SimilarityInterval
        The pairs by similarity.
    pairs : int
        The pairs at the threshold or above.
    found : int
        The number of `pairs` that share a band.
    both_kept : int
        The number of `pairs` whose documents were both kept.
    positions : numpy.ndarray
        The positions of the documents of `pairs`: int64, shape ``(pairs, 2)``.
    shares_band : numpy.ndarray
        Whether each of `pairs` shares a band: bool, shape ``(pairs,)``.
    """

    documents: int
    compared: int
    intervals: list[SimilarityInterval]
    pairs: int
    found: int
    both_kept: int
    positions: NDArray[np.int64]
    shares_band: NDArray[np.bool_]


def choose_sample(sizes: NDArray[np.int64], skipped: NDArray[np.int64], max_pairs: int) -> NDArray[np.int64]:
    """Choose the documents of a sample: runs of neighbours, because duplicates are often close together.

    Parameters
    ----------
    sizes : numpy.ndarray
        Bytes of each document, shape ``(n,)``; documents of more than 100,000 bytes are excluded.
    skipped : numpy.ndarray
        Positions of documents to exclude, such as byte-identical copies.
    max_pairs : int
        Maximum number of pairs in the sample; there are fewer if texts are long.

    Returns
    -------
    numpy.ndarray
        Positions, int64, shape ``(runs, length)``; the pairs of the sample are all pairs within each run.

    Examples
    --------
    >>> import numpy as np
    >>> from lsh.report.recall import choose_sample
    >>> choose_sample(np.full(8, 100), np.array([2]), 6)
    array([[0, 1, 3]])
    """
    eligible = sizes <= MAX_TEXT_SIZE
    eligible[skipped] = False
    positions = np.flatnonzero(eligible)
    number = len(positions)
    if number < 2 or max_pairs < 1:
        return np.empty((0, 0), np.int64)
    cells = max(int(min(2 * max_pairs, MAX_COMPARED_BYTES / max(sizes[positions].mean(), 1))), 4)
    length = max(cells // min(number, MAX_SAMPLE_DOCUMENTS), min(RUN_LENGTH, isqrt(cells)))
    length = min(length, number, isqrt(cells))
    number_of_runs = max(min(cells // length**2, number // length), 1)
    starts = np.linspace(0, number - length, number_of_runs).astype(np.int64)
    chosen: NDArray[np.int64] = positions[starts[:, None] + np.arange(length)]
    return chosen


def measure(
    sample: NDArray[np.int64],
    text: Callable[[int], Text],
    keep: NDArray[np.bool_],
    threshold: float,
    hasher: MinHasher,
    bands: Bands,
) -> MeasuredRecall | None:
    """Compare all pairs of each run of a sample exactly, and count which of them share a band.

    Parameters
    ----------
    sample : numpy.ndarray
        Positions, shape ``(runs, length)``, as `choose_sample` returns them.
    text : callable
        Returns the text of a position, str or bytes.
    keep : numpy.ndarray
        bool, shape ``(n,)``: the documents that were kept.
    threshold, hasher, bands
        As the documents were deduplicated.

    Returns
    -------
    MeasuredRecall or None
        ``None`` if no two documents have shingles. Pairs with equal shingle sets are not counted, because they are
        always found.

    Examples
    --------
    >>> import lsh
    >>> import numpy as np
    >>> from lsh.report import recall
    >>> texts = ["The cat sat on the mat.", "The red cat sat on the mat.", "The cats sat on the mat."]
    >>> hasher = lsh.MinHasher(100, char_ngram=4)
    >>> sample = recall.choose_sample(np.array([len(text) for text in texts]), np.array([], int), 1000)
    >>> found = recall.measure(sample, texts.__getitem__, np.full(3, True), 0.6, hasher, lsh.Bands(25, 4))
    >>> found.compared, found.pairs, found.found
    (3, 2, 2)
    """
    documents, parts = 0, []
    for positions in sample:
        texts = [text(position) for position in positions.tolist()]
        fingerprints = hasher.fingerprints(texts)
        with_shingles = np.flatnonzero(~hasher.is_empty(fingerprints))
        documents += len(with_shingles)
        exact = jaccard_matrix([texts[i] for i in with_shingles.tolist()], shingles=hasher.shingles)
        shared = np.zeros(exact.shape, np.bool_)
        for band in bands.keys(fingerprints[with_shingles]):
            shared |= band[:, None] == band
        kept = keep[positions[with_shingles]]
        first, second = np.nonzero(np.triu(exact < 1.0, 1))
        similarities, found = exact[first, second], shared[first, second]
        high = similarities >= threshold
        pairs = np.column_stack([first[high], second[high]])
        parts.append((similarities, found, positions[with_shingles][pairs], found[high], kept[pairs].all(axis=1)))
    if not any(len(part[0]) for part in parts):
        return None
    similarities, found, pairs, found_high, both_kept = map(np.concatenate, zip(*parts))
    intervals = _intervals(bands, similarities, found)
    counts = len(pairs), int(found_high.sum()), int(both_kept.sum())
    return MeasuredRecall(documents, len(similarities), intervals, *counts, pairs, found_high)


def _intervals(bands: Bands, similarities: NDArray[np.float64], found: NDArray[np.bool_]) -> list[SimilarityInterval]:
    """Count the pairs by their similarity."""
    intervals = []
    cell = np.minimum((similarities * NUM_INTERVALS + 1e-9).astype(np.int64), NUM_INTERVALS - 1)
    for number in np.unique(cell).tolist():
        inside = cell == number
        values = similarities[inside]
        expected = float(bands.probability(values).mean())
        low, high, mean = number / NUM_INTERVALS, (number + 1) / NUM_INTERVALS, float(values.mean())
        intervals.append(SimilarityInterval(low, high, mean, len(values), int(found[inside].sum()), expected))
    return intervals


def confidence_interval(found: int, total: int) -> tuple[float, float]:
    """Return Wilson's 95 % confidence interval of a share (Wilson 1927), for independent pairs.

    Parameters
    ----------
    found, total : int
        So many pairs of so many; `total` is 1 or more.

    Returns
    -------
    tuple of float
        Lower and upper bound of the share.

    Examples
    --------
    >>> from lsh.report.recall import confidence_interval
    >>> [round(bound, 4) for bound in confidence_interval(8, 10)]
    [0.4902, 0.9433]
    """
    return wilson_interval(found / total, total, 0.95)
