"""Planning: the cheapest bands that keep a promised recall, and the promise that goes with them.

A pair is verified if it shares a band and then passes the sketch filter, so the promise is shared out between the two.
Of all bands of one width, or of two that differ by one, those are taken that make the fewest false candidates. What a
set of bands finds is computed in `lsh.bands`, what the filter loses in `lsh._sketch_filter`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, floor, log, log1p
from typing import Any, NamedTuple

import numpy as np

from lsh import _checks, _sketch_filter, _texts
from lsh._batch import Batch
from lsh._texts import Texts
from lsh.bands import MAX_BANDS, Bands, Promise, checked_bands, for_documents, promised
from lsh.minhash import MAX_FSS_SEEDS, MinHasher
from lsh.shingling import Shingles, checked_shingles

DEFAULT_RECALL = 0.99
NODES = 96  # of Gauss and Legendre: exact for up to 191 components, and close together where the curve is steep
SAME = 1e-9  # costs that differ by this fraction count as equal
REACHED = 1e-12  # a promise that is missed by this fraction of what may be lost counts as kept
LEAST_PROMISE = 1e-9  # a smaller recall is taken for this one
MAX_TRIED = 4096  # numbers of bands; where there are more components, of those beyond it as many are tried

SAMPLE_TEXTS = 4000  # of a corpus that stands for its random pairs
SAMPLE_PAIRS = 20_000
SAMPLE_SEEDS = 512  # an estimated similarity is off by 0.02 at most, mostly
PAIRS_AT_ONCE = 2000  # pairs that are compared at once
CELLS = 1000  # of [0, 1], in which similarities are put together

Array = np.ndarray[Any, Any]


class _Pairs(NamedTuple):
    """Pairs below the threshold: similarities, their weights, and what they are."""

    similarities: Array
    weights: Array
    name: str


def plan(
    threshold: float = 0.8,
    recall: float = DEFAULT_RECALL,
    num_seeds: int = 128,
    *,
    shingles: Shingles | None = None,
    background: Any = None,
    documents: int | None = None,
) -> Bands:
    """Choose the cheapest bands with which `deduplicate` and `find_pairs` keep a promised recall.

    Parameters
    ----------
    threshold : float, optional
        Jaccard similarity of the pairs that are wanted, more than 0 and at most 1.
    recall : float, optional
        Least probability that a pair of just that similarity is found and verified, more than 0 and less than 1.
    num_seeds : int, optional
        Components of a fingerprint: the bands take at most that many.
    shingles : Shingles, optional
        How the texts of `background` are cut. Default: ``Shingles(8)``.
    background : array_like or collection of texts, optional
        Similarities of random pairs, 0 to 1; or the corpus, or a part of it, of which 20,000 random pairs are taken.
        Default: similarities spread evenly from 0 to the threshold.
    documents : int, optional
        Size of the corpus, to print the false candidates that are expected for a document.

    Returns
    -------
    Bands
        Bands of one width, or of two that differ by one, so that hardly a component is left over. Of all that keep the
        promise they have the least probability that a background pair below the threshold is a candidate; on a tie the
        least probability for pairs spread evenly, then the fewest bands. Printed, they say what they promise.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of a wrong type or out of its range.
    ValueError
        If no bands of `num_seeds` components keep the promise; the message says what would be possible.

    Notes
    -----
    The bands find a pair at the threshold T with the probability ``1 - (1 - T^r)^b (1 - T^(r + 1))^c``, for b bands of
    r and c of r + 1 components, and the sketch filter may lose (1 - recall)/5 of what they find. So that probability is
    at least ``recall / (1 - (1 - recall)/5)``. A pair that shares a band passes the filter more often than another, so
    the product of the two is a lower bound. All this is for independent components, as those of murmur3 are; those of
    fss vary less, which makes the curve steeper, but for sets of one to four shingles: there many components hang on
    one hash, and what is lost may be half as much again at a recall of .99, and ten times as much at .999. More
    similar pairs are found more often.

    Examples
    --------
    >>> import lsh
    >>> bands = lsh.plan(0.8, 0.99, 128)
    >>> print(bands)
    19 bands, 6x6+13x7 components, 127 in all
    similarity  0.3    0.4    0.5    0.6    0.7    0.8    0.9    1.0
    found       0.007  0.045  0.178  0.481  0.846  0.992  1.000  1.000
    half of the pairs are found at 0.605, 95 % at 0.749
    keys take 152 bytes a document
    planned for 0.8: a pair there is found with probability 0.9924, found and verified with 0.9908
    one in 3.9 pairs, spread evenly from 0 to 0.8, is a false candidate
    >>> bands.recall_at(0.8) >= 0.99
    True
    """
    threshold, recall, count = _checked(threshold, recall, num_seeds)
    if documents is not None:
        documents = _checks.whole_number("documents", documents, 1, 2**63)
    if background is None:
        bands = _planned(threshold, recall, count, True, MAX_BANDS)
    else:
        bands = _cheapest(
            threshold, recall, count, True, MAX_BANDS, _below(threshold, *_similarities(background, shingles))
        )
    return bands if documents is None else for_documents(bands, documents)


def planned(threshold: Any, recall: Any, num_seeds: Any, *, filtered: bool, most: int = MAX_BANDS) -> Bands:
    """Return what `plan` does, or, where no filter follows, bands that may lose all that may be lost.

    `most` is the number of seeds beyond which none are advised.
    """
    return _planned(*_checked(threshold, recall, num_seeds), filtered, most)


def planned_for(hasher: MinHasher, threshold: Any, recall: Any, *, filtered: bool) -> Bands:
    """Return the bands that are planned for the fingerprints of a hasher."""
    most = MAX_FSS_SEEDS if hasher.scheme == "fss" else MAX_BANDS
    return planned(threshold, recall, hasher.num_seeds, filtered=filtered, most=most)


def chosen_bands(bands: Any, recall: Any, threshold: float, hasher: MinHasher, *, filtered: bool) -> Bands:
    """Return the bands that were given, or planned ones; of `bands` and `recall` at most one is not ``None``."""
    if bands is None:
        return planned_for(hasher, threshold, DEFAULT_RECALL if recall is None else recall, filtered=filtered)
    if recall is not None:
        raise ValueError("recall and bands both say which pairs are found; give one of them")
    return checked_bands(bands, hasher.num_seeds)


def _checked(threshold: Any, recall: Any, num_seeds: Any) -> tuple[float, float, int]:
    threshold = _checks.fraction("threshold", threshold, zero=False)
    promise = _checks.fraction("recall", recall, zero=False, one=False)
    return threshold, promise, _checks.whole_number("num_seeds", num_seeds, 1, MAX_BANDS)


@lru_cache(maxsize=64)
def _planned(threshold: float, recall: float, count: int, filtered: bool, most: int) -> Bands:
    return _cheapest(threshold, recall, count, filtered, most, _even(threshold))


# ---- the search ----


def _cheapest(threshold: float, recall: float, count: int, filtered: bool, most: int, pairs: _Pairs) -> Bands:
    """Return the best bands, with their promise."""
    loss = _sketch_filter.loss_of(recall) if filtered else 0.0
    if threshold == 1.0:
        best = np.array([count, 1, 0])  # identical sets share whatever band there is, others the widest least
    else:
        missed = log((1.0 - recall - loss) / (1.0 - loss))  # of the bands: recall / (1 - loss) is found
        shapes = _candidates(threshold, min(missed, -LEAST_PROMISE), count)
        if not len(shapes):
            raise ValueError(_impossible(threshold, recall, missed, loss, count, most))
        best = _best(shapes, threshold, pairs)
    width, narrow, wide = best.tolist()
    share = float(_shares(best[None], pairs)[0])
    promise = Promise(threshold, recall, count, loss, share, pairs.name, None)
    return promised((width,) * narrow + (width + 1,) * wide, promise)


def _candidates(threshold: float, missed: float, count: int) -> Array:
    """Return the best bands of each number, as rows of a width, how many bands have it and how many are one wider.

    A wider band is shared by fewer pairs, whatever their similarity, so of bands of one number the widest are the
    cheapest: as wide as the promise, ``n log(1 - T^r) <= missed``, and the components allow.
    """
    goal = missed + REACHED
    number = np.arange(1, min(count, MAX_TRIED) + 1)
    if count > MAX_TRIED:
        number = np.unique(np.concatenate([number, np.geomspace(MAX_TRIED, count, MAX_TRIED).astype(np.int64)]))
    width = np.floor(np.clip(np.log(-np.expm1(goal / number)) / log(threshold), 0, count - 1)).astype(np.int64)
    width += number * _log_missed(threshold, width + 1) <= goal  # where the division was rounded
    width -= number * _log_missed(threshold, width) > goal
    number, width = number[width > 0], width[width > 0]
    one, other = _log_missed(threshold, width), _log_missed(threshold, width + 1)
    wider = np.clip(np.floor((goal - number * one) / (other - one)), 0, number - 1).astype(np.int64)
    wider -= (number - wider) * one + wider * other > goal
    components = np.minimum(number * width + np.maximum(wider, 0), count)
    width, wider = components // number, components % number
    shapes: Array = np.stack([width, number - wider, wider], axis=1)[width > 0]
    return shapes


def _log_missed(threshold: float, width: Array) -> Array:
    """Return the logarithm of the probability that a pair at the threshold does not share a band of each width."""
    with np.errstate(divide="ignore"):
        logarithms: Array = np.log1p(-(threshold**width))
    return logarithms


def _best(shapes: Array, threshold: float, pairs: _Pairs) -> Array:
    """Return the shape with the least share of the pairs, then of even ones, then with the fewest bands."""
    even = _even(threshold)
    for measure in (pairs,) if pairs is even else (pairs, even):
        shares = _shares(shapes, measure)
        shapes = shapes[shares <= shares.min() * (1 + SAME)]
    best: Array = shapes[np.argmin(shapes[:, 1] + shapes[:, 2])]
    return best


def _shares(shapes: Array, pairs: _Pairs) -> Array:
    """Return which weight of the pairs shares a band, for each shape."""
    widths, at = np.unique(shapes[:, 0], return_inverse=True)
    one, other = (np.log1p(-(pairs.similarities ** (widths[:, None] + more))) for more in (0, 1))
    missed = shapes[:, 1:2] * one[at] + shapes[:, 2:] * other[at]
    shares: Array = np.abs(np.expm1(missed) @ pairs.weights)
    return shares


def _impossible(threshold: float, recall: float, missed: float, loss: float, count: int, most: int) -> str:
    """Say why no bands keep a promise, and what would: the most is found by bands of one component each."""
    found = -np.expm1(count * log1p(-threshold))
    kept = (1.0 - _sketch_filter.LOSS_SHARE) * found / (1.0 - _sketch_filter.LOSS_SHARE * found) if loss else found
    seeds = missed / log1p(-threshold) if threshold > 1e-300 else np.inf
    ways = [f"num_seeds={ceil(seeds)} or more"] if seeds <= most else []
    ways.append(f"threshold={max(ceil(-np.expm1(missed / count) * 1000), 1) / 1000:g} or more")
    ways += [f"recall={floor(kept * 1000) / 1000:g} or less"] if kept >= 0.001 else []
    return (
        f"num_seeds={count} is too few to find pairs of similarity {threshold:g} with a recall of {recall}; "
        f"possible: {', or '.join(ways)}"
    )


# ---- pairs that are not wanted ----


@lru_cache(maxsize=64)
def _even(threshold: float) -> _Pairs:
    """Return nodes and weights for pairs that are spread evenly below the threshold."""
    nodes, weights = _gauss_legendre()
    return _Pairs((nodes + 1) / 2 * threshold, weights / 2, f"spread evenly from 0 to {threshold:g}")


@lru_cache(maxsize=1)
def _gauss_legendre() -> tuple[Array, Array]:
    return np.polynomial.legendre.leggauss(NODES)


def _below(threshold: float, similarities: Array, name: str) -> _Pairs:
    """Return those of a sample that are below the threshold, in cells, each with its mean."""
    below = similarities[similarities < threshold]
    cells = (below * CELLS).astype(np.int64)
    number, total = np.bincount(cells), np.bincount(cells, below)
    used = number > 0
    means = np.minimum(total[used] / number[used], np.nextafter(threshold, 0))
    return _Pairs(means, number[used] / len(similarities), name)


def _similarities(background: Any, shingles: Shingles | None) -> tuple[Array, str]:
    """Return the similarities that were given, checked, or those of random pairs of the texts, and what they are."""
    if isinstance(background, _checks.TEXT_TYPES):
        raise TypeError(f"background must be similarities or texts, got one {type(background).__name__}")
    if _are_texts(background):
        return _of_random_pairs(background, shingles), f"like {SAMPLE_PAIRS:,} random ones of the texts"
    try:
        sample = np.asarray(background, np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"background must be similarities from 0 to 1 or a collection of texts, got {type(background).__name__}"
        ) from None
    if sample.ndim == 0:
        raise TypeError(f"background must be similarities or texts, got one {type(background).__name__}")
    if sample.ndim != 1 or not sample.size:
        raise ValueError(f"background must be one or more similarities, or texts, got shape {sample.shape}")
    good = (sample >= 0) & (sample <= 1)
    if not good.all():
        raise ValueError(f"background must be similarities from 0 to 1, got {sample[~good][0]} among them")
    return sample, f"like the {len(sample):,} of the background"


def _are_texts(background: Any) -> bool:
    """Tell texts from numbers, by the dtype or the first element."""
    if hasattr(background, "to_numpy"):
        background = background.to_numpy()
    kind = getattr(getattr(background, "dtype", None), "kind", "O")
    if kind != "O":
        return kind not in "biufc"
    if isinstance(background, (list, tuple, np.ndarray)):
        first = next((value for value in background if value is not None), 0.0)
        return isinstance(first, _checks.TEXT_TYPES)
    return not isinstance(background, (bool, int, float, complex))


def _of_random_pairs(texts: Any, shingles: Shingles | None) -> Array:
    """Estimate the similarities of random pairs of a corpus, the same ones for the same corpus."""
    draw = np.random.RandomState(0)
    hasher = MinHasher(SAMPLE_SEEDS, scheme="fss", shingles=checked_shingles(shingles))
    rows = hasher.fingerprints(_sampled(texts, draw))
    rows = rows[~hasher.is_empty(rows)]
    if len(rows) < 2:
        raise ValueError(f"background must have two or more texts with shingles, got {len(rows)}")
    first = draw.randint(0, len(rows), SAMPLE_PAIRS)
    second = (first + draw.randint(1, len(rows), SAMPLE_PAIRS)) % len(rows)
    chunks = [slice(start, start + PAIRS_AT_ONCE) for start in range(0, SAMPLE_PAIRS, PAIRS_AT_ONCE)]
    return np.concatenate([(rows[first[at]] == rows[second[at]]).mean(axis=1) for at in chunks])


def _sampled(texts: Texts, draw: np.random.RandomState) -> Batch:
    """Return the texts, or some where they are many; a missing one counts as empty."""
    taken: Any = texts if isinstance(texts, Sequence) else _texts.whole("background", texts, True)
    if len(taken) > SAMPLE_TEXTS:
        chosen = np.sort(draw.permutation(len(taken))[:SAMPLE_TEXTS]).tolist()
        if isinstance(taken, Batch):
            return Batch.join([Batch(taken, start=i, stop=i + 1) for i in chosen])
        taken = [taken[i] for i in chosen]
    return _texts.whole("background", taken, True)
