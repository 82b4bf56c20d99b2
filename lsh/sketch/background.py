"""Background pairs: pairs below the threshold, which bands should not make candidates.

A plan computes the share of these pairs that are false candidates: they share a band, and are compared in vain. Their
similarities are given, or estimated for all pairs of a sample of a corpus, or evenly spread. The same corpus gives the
same sample each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lsh.base import checks, errors
from lsh.base.arrays import Array
from lsh.sketch.hasher import MinHasher
from lsh.text.batch import Batch
from lsh.text.collections import OBJECTS, as_batch
from lsh.text.columns import is_arrow
from lsh.text.shingling import Shingles, checked_shingles
from lsh.typing import Texts

GAUSS_NODES = 96  # nodes of Gauss-Legendre quadrature: exact for polynomials of degree up to 191
SAMPLE_TEXTS = 1000  # texts of a corpus whose pairs are used
SAMPLE_SEEDS = 512  # the standard error of an estimated similarity is at most 0.022
UNRELATED = 0.06  # the similarity of two texts of which nothing is known
CELLS = 1000  # equal parts of [0, 1]; the similarities within one are replaced by their mean


class PairsBelow(NamedTuple):
    """Pairs below the threshold: their similarities and weights, a description, and the shingles of their texts."""

    similarities: Array
    weights: Array
    name: str
    shingles: Shingles | None = None


@lru_cache(maxsize=64)
def evenly_spread(threshold: float) -> PairsBelow:
    """Return nodes and weights for pairs that are spread evenly below the threshold."""
    nodes, weights = _gauss_legendre()
    return PairsBelow((nodes + 1) / 2 * threshold, weights / 2, f"spread evenly from 0 to {threshold:g}")


@lru_cache(maxsize=64)
def unrelated(threshold: float) -> PairsBelow:
    """Return pairs of texts of which nothing is known, as most pairs of a corpus."""
    similarity = min(UNRELATED, float(np.nextafter(threshold, 0.0)))
    return PairsBelow(np.array([similarity]), np.ones(1), f"unrelated texts of similarity {similarity:g}")


@lru_cache(maxsize=1)
def _gauss_legendre() -> tuple[Array, Array]:
    return np.polynomial.legendre.leggauss(GAUSS_NODES)


def pairs_below(threshold: float, background: object, shingles: Shingles | None) -> PairsBelow:
    """Return the background pairs below the threshold, one weighted similarity for each cell.

    `background` is similarities, or texts, of which `shingles` makes shingle sets.
    """
    if isinstance(background, checks.TEXT_TYPES):
        raise errors.bad_type("background", f"must be similarities or texts, got one {type(background).__name__}")
    checks.not_called("background", background)
    texts = _texts_of(background)
    if texts is not None:
        shingles = checked_shingles(shingles)
        similarities, name = _sampled_pairs(texts, shingles)
    elif shingles is not None:
        raise errors.bad_value("shingles", "requires texts as background, got similarities; leave shingles out")
    else:
        similarities = _given_similarities(background)
        name = "1 given similarity" if len(similarities) == 1 else f"{len(similarities):,} given similarities"
    below = similarities[similarities < threshold]
    cells = (below * CELLS).astype(np.int64)
    number, total = np.bincount(cells), np.bincount(cells, below)
    used = number > 0
    means = np.minimum(total[used] / number[used], np.nextafter(threshold, 0))
    return PairsBelow(means, number[used] / len(similarities), name, shingles)


def _given_similarities(background: Any) -> Array:
    """Return the given similarities, checked."""
    checks.unmasked("background", background)
    try:
        values, given = np.asarray(background), np.asarray(background, np.float64)
    except (TypeError, ValueError):
        raise errors.bad_type(
            "background", f"must be similarities from 0 to 1 or a collection of texts, got {type(background).__name__}"
        ) from None
    objects = values.ravel().tolist() if values.dtype.kind == "O" else []
    if values.dtype.kind == "b" or any(isinstance(value, (bool, np.bool_)) for value in objects):
        raise errors.bad_type("background", "must be similarities from 0 to 1 or a collection of texts, got bool")
    if given.ndim == 0:
        raise errors.bad_type("background", f"must be similarities or texts, got one {type(background).__name__}")
    if given.ndim != 1 or not given.size:
        raise errors.bad_value("background", f"must be one or more similarities, or texts, got shape {given.shape}")
    good = (given >= 0) & (given <= 1)
    if not good.all():
        raise errors.bad_value("background", f"must be similarities from 0 to 1, got {given[~good][0]} among them")
    return given


def _texts_of(background: Any) -> Texts | None:
    """Return `background` if it is texts, by its dtype, first element or Arrow type; ``None`` if it is numbers."""
    kind = getattr(getattr(background, "dtype", None), "kind", "O")
    if kind != "O":
        return None if kind in "biufc" else background
    if isinstance(background, (list, tuple, np.ndarray)) or str(getattr(background, "dtype", None)) in OBJECTS:
        first = next((value for value in background if not checks.is_missing(value)), 0.0)
        return background if isinstance(first, checks.TEXT_TYPES) else None
    if not is_arrow(background):
        return None if isinstance(background, (bool, int, float, complex)) else background
    try:
        return as_batch("background", background, True)
    except TypeError:
        if hasattr(type(background), "columns"):
            raise errors.bad_type(
                "background",
                f"must be one column of texts or of similarities, got a whole {type(background).__name__}; "
                "pick a column, such as table['text']",
            ) from None
        return None


def _sampled_pairs(texts: Any, shingles: Shingles) -> tuple[Array, str]:
    """Estimate the similarities of all pairs of a sample of a corpus, the same one each time; return a name, too."""
    hasher = MinHasher(SAMPLE_SEEDS, scheme="fss", shingles=shingles)
    rows = hasher.fingerprints(_some_texts(texts, np.random.RandomState(0)))
    rows = rows[~hasher.is_empty(rows)]
    if len(rows) < 2:
        raise errors.bad_value("background", f"must have two or more texts with shingles, got {len(rows)}")
    shares = [(rows[i + 1 :] == row).mean(axis=1) for i, row in enumerate(rows[:-1])]
    return np.concatenate(shares), f"all pairs of {len(rows):,} of the texts"


def _some_texts(texts: Texts, draw: np.random.RandomState) -> Batch:
    """Return the texts, or a random sample if there are many; a missing one counts as empty."""
    held = texts if isinstance(texts, Sequence) else as_batch("background", texts, True)
    if len(held) > SAMPLE_TEXTS:
        chosen = np.sort(draw.permutation(len(held))[:SAMPLE_TEXTS])
        held = held.take(chosen) if isinstance(held, Batch) else [held[i] for i in chosen.tolist()]
    return as_batch("background", held, True)
