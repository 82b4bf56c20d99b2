"""Planning: the cheapest bands that keep a promised recall, as a `Plan`.

A pair is verified if it shares a band and then passes the sketch filter, so a plan says how much of the recall each of
the two may lose. Of all bands of one width, or of two that differ by one, those are chosen that make the fewest false
candidates. What a set of bands finds is computed in `lsh.bands`, what the filter loses in `lsh._sketch_filter`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from math import ceil, floor, log, log1p, log10
from typing import Any, overload

import numpy as np

from lsh import _checks, _sketch_filter
from lsh._background import Array, PairsBelow, evenly_spread, pairs_below
from lsh._texts import Texts
from lsh._words import counted
from lsh.bands import MAX_BANDS, BandError, Bands, Floats, Numbers
from lsh.minhash import MAX_FSS_SEEDS, MinHasher
from lsh.shingling import Shingles, checked_shingles

DEFAULT_RECALL = 0.99
COST_TOLERANCE = 1e-9  # costs that differ by this fraction count as equal
LOSS_TOLERANCE = 1e-12  # the bands may lose more than they should by this fraction, for rounding
MIN_RECALL = 1e-9  # a plan for a smaller recall is made for this one
MAX_TRIED = 4096  # numbers of bands; where there are more components, of those beyond it as many are tried
RARE = 1e-15  # a smaller share of the pairs is printed as less than this


@dataclass(frozen=True, repr=False)
class Plan:
    """Bands, and the recall that they were chosen for. Immutable; made by `plan`.

    Parameters
    ----------
    bands : Bands
        The bands.
    threshold : float
        Jaccard similarity of the pairs that are wanted, more than 0 and at most 1.
    recall : float
        Least probability that such a pair is found and verified, more than 0 and less than 1.
    num_seeds : int
        Components of the fingerprints.
    loss : float, optional
        Share of the pairs at the threshold that the sketch filter may lose; 0 where no filter follows, as in a `Cache`.
    background : str, optional
        Which pairs below the threshold `false_candidates` is about; ``None`` where none were given.
    false_candidates : float, optional
        Share of those pairs that are candidates, and compared in vain.
    shingles : Shingles, optional
        How the texts of the background were cut; `deduplicate` and `find_pairs` cut theirs so, too.
    documents : int, optional
        Size of the corpus.

    Raises
    ------
    TypeError, ValueError
        If a value is of a wrong type or out of its range, or the bands do not keep the recall.

    Examples
    --------
    >>> import lsh
    >>> plan = lsh.plan(0.8, 0.95, 64)
    >>> plan.bands
    Bands(widths=(5, 5, 6, 6, 6, 6, 6, 6, 6, 6))
    >>> plan.recall_at(0.8) >= 0.95
    True
    """

    bands: Bands
    threshold: float
    recall: float
    num_seeds: int
    loss: float = field(default=0.0, kw_only=True)
    background: str | None = field(default=None, kw_only=True)
    false_candidates: float | None = field(default=None, kw_only=True)
    shingles: Shingles | None = field(default=None, kw_only=True)
    documents: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        threshold, recall, num_seeds = _checked(self.threshold, self.recall, self.num_seeds)
        loss = _checks.fraction("loss", self.loss, zero=True, one=False)
        _checks.instance("bands of a Plan", self.bands, Bands, "a Bands")
        found = checked_bands(self.bands, num_seeds).probability(threshold) * (1.0 - loss)
        if found < recall - MIN_RECALL:
            raise ValueError(
                f"bands must keep the recall, {_below_one(recall, 'g')} at {threshold:g}, got {found:.4g} by "
                f"{self.bands.to_string()}; use lsh.plan, which finds such bands"
            )
        checked = {"threshold": threshold, "recall": recall, "num_seeds": num_seeds, "loss": loss}
        if self.background is None:
            for name in ("false_candidates", "shingles", "documents"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} requires background, the pairs that it is about")
        else:
            _checks.instance("background of a Plan", self.background, str, "a str")
            checked_shingles(self.shingles)
            checked["false_candidates"] = _checks.fraction("false_candidates", self.false_candidates, zero=True)
        if self.documents is not None:
            checked["documents"] = _checks.whole_number("documents", self.documents, 1, 2**63)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @overload
    def probability(self, similarity: float) -> float: ...

    @overload
    def probability(self, similarity: Numbers) -> Floats: ...

    def probability(self, similarity: float | Numbers) -> float | Floats:
        """Return the probability that a pair of this similarity shares a band; see `Bands.probability`."""
        return self.bands.probability(similarity)

    def similarity_at(self, probability: float) -> float:
        """Return the similarity at which a pair shares a band with this probability."""
        return self.bands.similarity_at(probability)

    @overload
    def recall_at(self, similarity: float) -> float: ...

    @overload
    def recall_at(self, similarity: Numbers) -> Floats: ...

    def recall_at(self, similarity: float | Numbers) -> float | Floats:
        """Return the probability that a pair of this similarity shares a band and passes the sketch filter.

        Parameters
        ----------
        similarity : float or array_like
            Jaccard similarities, 0 to 1.

        Returns
        -------
        float or numpy.ndarray
            `probability` times that of the filter as `deduplicate` and `find_pairs` set it for this plan; where the
            plan has no filter, `probability`.

        Examples
        --------
        >>> import lsh
        >>> plan = lsh.plan(0.8, 0.99)
        >>> round(plan.probability(0.8), 4), round(plan.recall_at(0.8), 4)
        (0.9924, 0.9908)
        """
        found = self.probability(similarity)
        if not self.loss:
            return found
        least = _sketch_filter.least_equal(self.num_seeds, self.threshold, self.loss)
        s = np.asarray(similarity, np.float64)
        passed = [_sketch_filter.passing(self.num_seeds, least, one) for one in s.ravel().tolist()]
        return found * np.reshape(passed, s.shape) if s.ndim else float(found * passed[0])

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as a dict of plain values, for `from_dict`."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        shingles = None if self.shingles is None else self.shingles.to_dict()
        return {**values, "bands": self.bands.to_dict(), "shingles": shingles}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Plan:
        """Make the plan that `to_dict` described."""
        given = _checks.keys("plan", values, {one.name for one in fields(cls)})
        shingles = None if given["shingles"] is None else Shingles.from_dict(given["shingles"])
        return cls(**{**given, "bands": Bands.from_dict(given["bands"]), "shingles": shingles})

    def __repr__(self) -> str:
        parts = []
        for one in fields(self):
            value = getattr(self, one.name)
            if value != one.default:
                parts.append(f"{one.name}={value!r}" if one.kw_only else repr(value))
        return f"Plan({', '.join(parts)})"

    def __str__(self) -> str:
        threshold = _below_one(self.threshold, "g")
        at = f"a pair at {threshold} shares a band with probability {_below_one(self.probability(self.threshold))}"
        passed = f" and is found and verified with {_below_one(self.recall_at(self.threshold))}" if self.loss else ""
        seeds = "1 seed" if self.num_seeds == 1 else f"{self.num_seeds} seeds"
        lines = [
            str(self.bands),
            f"planned for threshold {threshold}, recall {_below_one(self.recall, 'g')} and {seeds}",
            at + passed,
        ]
        if self.false_candidates is not None:
            cut = "" if self.shingles is None else f", {self.shingles!r}"
            lines.append(f"{_one_pair_in(self.false_candidates)} is compared in vain ({self.background}{cut})")
        if self.false_candidates is not None and self.documents is not None:
            number = self.false_candidates * (self.documents - 1)
            shown = f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
            others = f"{shown} {'other' if shown == '1' else 'others'}"
            lines.append(f"with {counted(self.documents, 'document')} each is compared in vain with {others}")
        return "\n".join(lines)


def _below_one(value: float, form: str = ".4f") -> str:
    """Return a fraction in digits, as many as show that it is less than 1."""
    shown = format(value, form)
    if float(shown) < 1.0 or value >= 1.0:
        return shown
    return f"{value:.{ceil(-log10(1.0 - value))}f}".rstrip("0")


def _one_pair_in(share: float) -> str:
    """Return a share of the pairs in words."""
    if share < RARE:
        return f"fewer than 1 pair in 10^{-log10(RARE):.0f}"
    return f"1 pair in {float(f'{1 / share:.3g}'):,.16g}"


def plan(
    threshold: float = 0.8,
    recall: float = DEFAULT_RECALL,
    num_seeds: int = 128,
    *,
    shingles: Shingles | None = None,
    background: Texts | Numbers | None = None,
    documents: int | None = None,
) -> Plan:
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
        How the texts of `background` are cut; an error without such texts. Default: ``Shingles(8)``.
    background : array_like or collection of texts, optional
        Similarities of random pairs, 0 to 1; or the corpus, or a part of it, of which 20,000 random pairs are taken; a
        text that is ``None`` counts as empty, as with ``missing="empty"``, and empty texts are left out.
        Default: similarities spread evenly from 0 to the threshold, of which the plan then says nothing.
    documents : int, optional
        Size of the corpus, to print the false candidates that are expected for a document; an error without
        `background`.

    Returns
    -------
    Plan
        With bands of one width, or of two that differ by one, so that hardly a component is left over. Of all that keep
        the recall they have the least probability that a background pair below the threshold is a candidate; on a tie
        the least probability for pairs spread evenly, then the fewest bands.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of a wrong type or out of its range.
    ValueError
        If no bands of `num_seeds` components keep the recall; the message says what would be possible.

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
    >>> print(lsh.plan(0.8, 0.99, 128))
    19 bands, 6x6+13x7 components, 127 in all
    similarity  0.3    0.4    0.5    0.6    0.7    0.8    0.9    1.0
    found       0.007  0.045  0.178  0.481  0.846  0.992  1.000  1.000
    half of the pairs are found at 0.605, 95 % at 0.749
    keys take 152 bytes a document
    planned for threshold 0.8, recall 0.99 and 128 seeds
    a pair at 0.8 shares a band with probability 0.9924 and is found and verified with 0.9908
    """
    asked = _checked(threshold, recall, num_seeds)
    if documents is not None:
        documents = _checks.whole_number("documents", documents, 1, 2**63)
    if background is None:
        if shingles is not None:
            raise ValueError("shingles requires background, the texts to cut")
        if documents is not None:
            raise ValueError("documents requires background: without it nothing is known of the pairs of a corpus")
        return _planned(*asked, True, MAX_BANDS)
    planned = _cheapest(*asked, True, MAX_BANDS, pairs_below(asked[0], background, shingles))
    return replace(planned, documents=documents)


def plan_for(hasher: MinHasher, threshold: object, recall: object, *, filtered: bool) -> Plan:
    """Return the plan for the fingerprints of a hasher; where no filter follows, the bands may lose all that may be."""
    most = MAX_FSS_SEEDS if hasher.scheme == "fss" else MAX_BANDS
    return _planned(*_checked(threshold, recall, hasher.num_seeds), filtered, most)


def checked_bands(bands: object, num_seeds: int) -> Bands:
    """Return bands, or those of a plan, if they fit a fingerprint of `num_seeds` components."""
    if isinstance(bands, Plan):
        bands = bands.bands
    remedy = "; use lsh.Bands(num_bands, width) or lsh.plan()"
    bands = _checks.instance("bands", bands, Bands, "a Bands or a Plan", remedy)
    if bands.num_components > num_seeds:
        width = min(max(bands.widths), num_seeds)
        raise BandError(
            f"bands take {bands.num_components} components, a fingerprint has {num_seeds}; use fewer or narrower bands "
            f"than {bands.to_string()}, such as {num_seeds // width}x{width}, or more seeds"
        )
    return bands


def chosen_bands(
    bands: object, recall: object, threshold: float, hasher: MinHasher, *, filtered: bool
) -> tuple[Bands, Plan | None]:
    """Return the bands to use, and the plan that they are from; of `bands` and `recall` at most one is given."""
    if bands is None:
        planned = plan_for(hasher, threshold, DEFAULT_RECALL if recall is None else recall, filtered=filtered)
        return planned.bands, planned
    if recall is not None:
        raise ValueError("recall and bands both say which pairs are found; give one of them")
    if not isinstance(bands, Plan):
        return checked_bands(bands, hasher.num_seeds), None
    check_plan(bands, hasher, threshold=threshold, num_seeds=hasher.num_seeds, shingles=hasher.shingles)
    return bands.bands, bands


def check_plan(plan: Plan, hasher: MinHasher, **asked: object) -> None:
    """Raise an error where a plan was made for other values of some parameters."""
    fits = plan.bands.num_components <= hasher.num_seeds
    remedy = "make a plan for it" + (", or pass bands=plan.bands to use the bands as they are" if fits else "")
    for name, value in asked.items():
        planned_for = getattr(plan, name)
        if planned_for != value and planned_for is not None:
            raise ValueError(f"bands are planned for {name}={planned_for}, got {name}={value}; {remedy}")


def _checked(threshold: object, recall: object, num_seeds: object) -> tuple[float, float, int]:
    return (
        _checks.fraction("threshold", threshold, zero=False),
        _checks.fraction("recall", recall, zero=False, one=False),
        _checks.whole_number("num_seeds", num_seeds, 1, MAX_BANDS),
    )


@lru_cache(maxsize=64)
def _planned(threshold: float, recall: float, count: int, filtered: bool, most: int) -> Plan:
    """Return a plan without a background; `most` is the number of seeds beyond which none are advised."""
    return _cheapest(threshold, recall, count, filtered, most, None)


# ---- the search ----


def _cheapest(
    threshold: float, recall: float, count: int, filtered: bool, most: int, background: PairsBelow | None
) -> Plan:
    """Return the best bands, by the background, or by pairs that are spread evenly."""
    loss = _sketch_filter.loss_of(recall) if filtered else 0.0
    if threshold == 1.0:
        best = np.array([count, 1, 0])  # identical sets share whatever band there is, others the widest least
    else:
        missed = log((1.0 - recall - loss) / (1.0 - loss))  # of the bands: recall / (1 - loss) is found
        shapes = _candidates(threshold, min(missed, -MIN_RECALL), count)
        if not len(shapes):
            raise ValueError(_impossible(threshold, recall, missed, loss, count, most))
        best = _best(shapes, threshold, background)
    width, narrow, wide = best.tolist()
    bands = Bands(widths=(width,) * narrow + (width + 1,) * wide)
    planned = Plan(bands, threshold, recall, count, loss=loss)
    if background is None:
        return planned
    share = min(float(_shares(best[None], background)[0]), 1.0)
    return replace(planned, background=background.name, false_candidates=share, shingles=background.shingles)


def _candidates(threshold: float, missed: float, count: int) -> Array:
    """Return the best bands of each number, as rows of a width, how many bands have it and how many are one wider.

    A wider band is shared by fewer pairs, whatever their similarity, so of bands of one number the widest are the
    cheapest: as wide as the promise, ``n log(1 - T^r) <= missed``, and the components allow.
    """
    goal = missed + LOSS_TOLERANCE
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


def _best(shapes: Array, threshold: float, background: PairsBelow | None) -> Array:
    """Return the shape with the least share of the background pairs, then of even ones, then with the fewest bands."""
    even = evenly_spread(threshold)
    for pairs in (even,) if background is None else (background, even):
        shares = _shares(shapes, pairs)
        shapes = shapes[shares <= shares.min() * (1 + COST_TOLERANCE)]
    best: Array = shapes[np.argmin(shapes[:, 1] + shapes[:, 2])]
    return best


def _shares(shapes: Array, pairs: PairsBelow) -> Array:
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
