"""The recall of a run, measured on a corpus: the share of its similar pairs of which the run left at most one document.

Two samples are compared. Runs of neighbours, all pairs of them by `lsh.jaccard_matrix`, because duplicates are often
close together; and random documents, of which some are compared with all by `lsh.find_pairs`, with other hash functions
and more bands than the run, because a run that leaves out comparisons in large buckets leaves out those of documents
that are far apart. Both are chosen by position, whether the run finds their pairs or not. The confidence interval holds
for independent pairs only: pairs of texts from one template are found or missed together.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, isqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsh.engine.dedup import find_pairs
from lsh.sketch.bands import Bands
from lsh.sketch.hasher import MinHasher, wilson_interval
from lsh.text.shingling import jaccard_matrix
from lsh.typing import Text

SAMPLE_PAIRS = 500_000
MAX_SAMPLE_PAIRS = 20_000_000
MAX_SAMPLE_DOCUMENTS = 10_000
MAX_COMPARED_BYTES = 2_000_000_000  # in all comparisons: each text counts once for each other text of its run
MAX_TEXT_SIZE = 100_000  # bytes of a sampled text
RUN_LENGTH = 50  # minimum number of documents in a run, unless there are fewer
MAX_RANDOM_DOCUMENTS, MAX_RANDOM_BYTES = 10_000, 50_000_000  # of the random documents
MAX_SEARCHED = 1_000  # random documents that are compared with all others
SEARCHED_SHARE = 20  # times the pairs of the other sample may be compared, at most; mostly a few of them are
SEARCH_RECALL, SEARCH_SEEDS = 0.999, 128  # of the search for their similar pairs
SEARCH_AGREEING = 8  # components that agree on average at the threshold, at least; a low threshold needs more seeds
SEED = 1  # of the random documents, and of the hash functions of the search: not that of `lsh.deduplicate`
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
        The number of these that share a band.
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
    """How many similar pairs of a sample the run found.

    Attributes
    ----------
    documents : int
        The documents of the runs of neighbours.
    compared : int
        The pairs of them that were compared.
    intervals : list of SimilarityInterval
        These pairs by similarity.
    positions : numpy.ndarray
        The positions of the documents of the similar pairs of both samples, at the threshold or above: int64, shape
        ``(pairs, 2)``.
    is_found : numpy.ndarray
        Whether the run found each of them: bool, shape ``(pairs,)``.
    searched : int
        The random documents of which all similar pairs were searched.
    among : int
        The random documents among which they were searched.
    """

    documents: int
    compared: int
    intervals: list[SimilarityInterval]
    positions: NDArray[np.int64]
    is_found: NDArray[np.bool_]
    searched: int
    among: int

    @property
    def pairs(self) -> int:
        """The number of similar pairs."""
        return len(self.is_found)

    @property
    def found(self) -> int:
        """How many of them the run found."""
        return int(np.count_nonzero(self.is_found))


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
    positions = _eligible(sizes, skipped)
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


def choose_random(sizes: NDArray[np.int64], skipped: NDArray[np.int64], max_pairs: int) -> NDArray[np.int64]:
    """Choose random documents, always the same for the same sizes.

    Parameters
    ----------
    sizes, skipped, max_pairs
        As for `choose_sample`.

    Returns
    -------
    numpy.ndarray
        Positions, int64, in random order; `measure` compares the first ones with all.

    Examples
    --------
    >>> import numpy as np
    >>> from lsh.report.recall import choose_random
    >>> sorted(choose_random(np.full(5, 100), np.array([2]), 6).tolist())
    [0, 1, 3, 4]
    """
    if max_pairs < 1:
        return np.empty(0, np.int64)
    positions = _eligible(sizes, skipped)
    np.random.RandomState(SEED).shuffle(positions)  # gives the same order in every version of numpy
    chosen = positions[:MAX_RANDOM_DOCUMENTS]
    return chosen[: int(np.searchsorted(np.cumsum(sizes[chosen]), MAX_RANDOM_BYTES, "right"))]


def _eligible(sizes: NDArray[np.int64], skipped: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of the documents that a sample may have."""
    eligible = sizes <= MAX_TEXT_SIZE
    eligible[skipped] = False
    return np.flatnonzero(eligible)


def measure(
    sample: NDArray[np.int64],
    spread: NDArray[np.int64],
    text: Callable[[int], Text],
    is_found: Callable[[NDArray[np.int64]], NDArray[np.bool_]],
    threshold: float,
    hasher: MinHasher,
    bands: Bands,
    with_neighbours: bool = True,
) -> MeasuredRecall | None:
    """Find the similar pairs of both samples, and count those that the run found.

    Parameters
    ----------
    sample : numpy.ndarray
        Positions, shape ``(runs, length)``, as `choose_sample` returns them.
    spread : numpy.ndarray
        Positions, as `choose_random` returns them; may be empty.
    text : callable
        Returns the text of a position, str or bytes.
    is_found : callable
        Returns for pairs of positions, shape ``(pairs, 2)``, whether the run found each.
    threshold, hasher, bands
        As the documents were deduplicated.
    with_neighbours : bool, optional
        Whether similar pairs of the runs of neighbours count. They must not where a run left out comparisons of
        documents that are far apart.

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
    >>> hasher, sizes = lsh.MinHasher(100, char_ngram=4), np.array([len(text) for text in texts])
    >>> result = lsh.deduplicate(texts, 0.6, hasher=hasher)
    >>> def is_found(pairs):
    ...     return ~result.keep[pairs].all(axis=1)
    >>> sample = recall.choose_sample(sizes, np.array([], int), 1000)
    >>> nothing = np.array([], int)
    >>> found = recall.measure(sample, nothing, texts.__getitem__, is_found, 0.6, hasher, lsh.Bands(25, 4))
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
        first, second = np.nonzero(np.triu(exact < 1.0, 1))
        similarities = exact[first, second]
        high = similarities >= threshold
        pairs = positions[with_shingles][np.column_stack([first[high], second[high]])]
        parts.append((similarities, shared[first, second], pairs if with_neighbours else pairs[:0]))
    if not any(len(part[0]) for part in parts):
        return None
    similarities, shares, near = map(np.concatenate, zip(*parts))
    searched = min(len(spread), MAX_SEARCHED, SEARCHED_SHARE * SAMPLE_PAIRS // max(len(spread), 1))
    far = _similar_pairs(spread, searched, text, threshold, hasher)
    found = np.unique(np.concatenate([near, far]), axis=0)
    intervals = _intervals(bands, similarities, shares)
    return MeasuredRecall(documents, len(similarities), intervals, found, is_found(found), searched, len(spread))


def _similar_pairs(
    spread: NDArray[np.int64], searched: int, text: Callable[[int], Text], threshold: float, hasher: MinHasher
) -> NDArray[np.int64]:
    """Return the pairs of the first random documents and any of them, each in ascending order of positions."""
    texts = [text(position) for position in spread.tolist()]
    num_seeds = max(SEARCH_SEEDS, ceil(SEARCH_AGREEING / threshold))
    other = MinHasher(num_seeds, scheme="fss", shingles=hasher.shingles, random_state=SEED)
    found = find_pairs(texts[:searched], threshold, others=texts, recall=SEARCH_RECALL, hasher=other)
    pairs = np.array([(i, j) for i, j, similarity in found if similarity < 1.0], np.int64).reshape(-1, 2)
    return np.sort(spread[pairs], axis=1)


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
