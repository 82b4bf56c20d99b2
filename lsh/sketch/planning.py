"""Planning: the cheapest bands that reach a given recall, as a `Plan`.

A pair is found if it agrees in a band and then passes the sketch filter, so a plan says how many pairs each of the two
may miss. Bands have one width, or two widths that differ by one; of all such bands that reach the recall, those with
the fewest false candidates are chosen. `sketch.bands` computes what bands find, `sketch.sketch_filter` what the
filter loses.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from math import ceil, floor, log, log1p, log10, nextafter
from typing import Any, overload

import numpy as np

from lsh.base import checks, errors
from lsh.base.arrays import Array
from lsh.base.wording import counted
from lsh.sketch import sketch_filter
from lsh.sketch.background import PairsBelow, evenly_spread, pairs_below, unrelated
from lsh.sketch.bands import MAX_BANDS, BandError, Bands
from lsh.sketch.costs import Cost, cost_of, seconds_of_bands
from lsh.sketch.hasher import MAX_FSS_SEEDS, MinHasher, checked_hasher
from lsh.text.shingling import Shingles, checked_shingles
from lsh.typing import Floats, Numbers, Texts

__all__ = ["Cost", "Plan", "plan"]

DEFAULT_THRESHOLD, DEFAULT_RECALL, DEFAULT_SEEDS = 0.8, 0.99, 128
SIZED_SEEDS = (DEFAULT_SEEDS, 256, 512, 1024)  # numbers of components of which a plan for a size has one
FEW_DOCUMENTS = 4**8  # up to so many, all corpora have the same plan
COST_TOLERANCE = 1e-9  # costs whose relative difference is less count as equal
LOSS_TOLERANCE = 1e-12  # rounding error allowed in the logarithm of the share that the bands may miss
RECALL_EPSILON = 1e-9  # used in place of any smaller recall
MAX_TRIED = 4096  # every number of bands up to this one is tried, and as many larger ones if there are more components
RARE = 1e-15  # a smaller share of the pairs is printed as "fewer than" this
UNRELATED, COSTLY = 0.1, 0.001  # if more of the pairs at this similarity share a band, a plan says so
FEW = 0.001  # a smaller number of false candidates of a document is printed as "fewer than" this


@dataclass(frozen=True, repr=False)
class Plan:
    """Bands, and the threshold and recall for which they were chosen. Immutable; use `lsh.plan` to make one.

    Parameters
    ----------
    bands : Bands
        The bands.
    threshold : float
        The Jaccard similarity from which pairs should be found, more than 0 and at most 1.
    recall : float
        The probability with which a pair at the threshold is found, or a higher one; more than 0 and less than 1.
    num_seeds : int
        The number of components of the fingerprints.
    loss : float, optional
        The largest share of the pairs at the threshold that the sketch filter may lose. 0, the default, means that no
        filter is used, as in a `Cache`.
    background : str, optional
        A description of the pairs below the threshold for which `false_candidates` is computed. Default: none.
    false_candidates : float, optional
        The share of these pairs that are false candidates: they share a band but are below the threshold.
    shingles : Shingles, optional
        The shingles of the texts from which the background pairs are; `deduplicate` and `find_pairs` use them, too.
    documents : int, optional
        The number of documents of the corpus.

    Raises
    ------
    TypeError, ValueError
        If a value has a wrong type or is out of range, or the bands do not reach the recall.

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
        loss = checks.fraction("loss", self.loss, zero=True, one=False)
        checks.instance("bands of a Plan", self.bands, Bands, "a Bands")
        found = checked_bands(self.bands, num_seeds).probability(threshold) * (1.0 - loss)
        if found < recall - RECALL_EPSILON:
            raise errors.bad_value(
                "bands",
                f"must reach a recall of {below_one(recall, 'g')} at {threshold:g}, got {found:.4g} with "
                f"{self.bands.to_string()}; use lsh.plan to find bands",
            )
        checked = {"threshold": threshold, "recall": recall, "num_seeds": num_seeds, "loss": loss}
        if self.background is None:
            for name in ("false_candidates", "shingles", "documents"):
                if getattr(self, name) is not None:
                    raise errors.bad_value(name, "requires background, a description of the pairs")
        else:
            checks.instance("background of a Plan", self.background, str, "a str")
            checked_shingles(self.shingles)
            checked["false_candidates"] = checks.fraction("false_candidates", self.false_candidates, zero=True)
        if self.documents is not None:
            checked["documents"] = checks.whole_number("documents", self.documents, 1, 2**63)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @overload
    def probability(self, similarity: float) -> float: ...

    @overload
    def probability(self, similarity: Numbers) -> Floats: ...

    def probability(self, similarity: float | Numbers) -> float | Floats:
        """Return the probability that a pair of this similarity agrees in at least one band.

        Parameters
        ----------
        similarity : float or array_like
            Jaccard similarity of the pair, 0 to 1, or several.

        Returns
        -------
        float or numpy.ndarray
            That of the `bands`; see `Bands.probability`.

        Raises
        ------
        TypeError, ValueError
            If a similarity is no number from 0 to 1.
        """
        return self.bands.probability(similarity)

    def similarity_at(self, probability: float) -> float:
        """Return the similarity of pairs that agree in at least one band with this probability.

        Parameters
        ----------
        probability : float
            From 0 to 1.

        Returns
        -------
        float
            The inverse of `probability`; see `Bands.similarity_at`.

        Raises
        ------
        TypeError, ValueError
            If the probability is no number from 0 to 1.
        """
        return self.bands.similarity_at(probability)

    @overload
    def recall_at(self, similarity: float) -> float: ...

    @overload
    def recall_at(self, similarity: Numbers) -> Floats: ...

    def recall_at(self, similarity: float | Numbers) -> float | Floats:
        """Return the recall: the probability that a pair of this similarity is found.

        Parameters
        ----------
        similarity : float or array_like
            Jaccard similarity of the pair, 0 to 1, or several.

        Returns
        -------
        float or numpy.ndarray
            `probability` times the probability that the pair passes the sketch filter which `deduplicate` and
            `find_pairs` use with this plan; just `probability` if `loss` is 0.

        Raises
        ------
        TypeError, ValueError
            If a similarity is no number from 0 to 1.

        Notes
        -----
        This holds for independent components, such as those of scheme ``"murmur3"``. With ``"fss"`` the number of equal
        components varies less, which makes the recall at the threshold higher, except for tiny texts: if two texts
        together have 2 to 6 different shingles (up to 10 with 512 components and more), it may be lower. With a planned
        recall of 0.99, up to 1.8 % of such pairs were missed where 1 % was allowed (with 128 components up to 1.5 %,
        and from 6 shingles on less than 1 %). With 0.999, up to 1 % were missed where 0.1 % was allowed. With 0.95, no
        more were missed than allowed. Most of them are lost by the sketch filter. Measured by
        ``benchmarks/sketch/tiny_sets.py`` at thresholds from 0.2 to 0.75, with 64 to 1,024 components and 40,000 pairs
        each.

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
        min_equal = sketch_filter.min_equal(self.num_seeds, self.threshold, self.loss)
        s = np.asarray(similarity, np.float64)
        passed = [sketch_filter.passing(self.num_seeds, min_equal, one) for one in s.ravel().tolist()]
        return found * np.reshape(passed, s.shape) if s.ndim else float(found * passed[0])

    def cost(self, documents: int | None = None, *, text_bytes: int) -> Cost:
        """Estimate what a run with these bands costs, on one machine and on Spark.

        Parameters
        ----------
        documents : int, optional
            The number of documents. Default: that of the plan.
        text_bytes : int
            The size of a text in bytes of UTF-8, on average.

        Returns
        -------
        Cost
            Memory, temporary files, hours, and false candidates if the plan has a background. It prints itself.

        Raises
        ------
        TypeError, ValueError
            If a number is missing or out of range.

        Notes
        -----
        The costs grow in proportion to the documents, as measured with shingles of bytes on two cores of an AMD EPYC.
        Shingles of words, normalisation and compressed files take longer. Not in the figures for Spark: thousands of
        documents that are nearly alike; the disks of the shuffles; and transfers to and from a store of objects.

        Examples
        --------
        >>> import lsh
        >>> print(lsh.plan(0.8).cost(100_000_000, text_bytes=1200))
        100,000,000 documents of 1,200 bytes, 120 GB of text
        one machine       max_memory 2400MB or more
                          26 GB of temporary files
                          0.58 core hours
        Spark             1.4 core hours, 201 GB shuffled
        false candidates  not counted: they may cost more than all else; plan with a sample of the texts
        extrapolated from two cores and shingles of bytes; words take up to three times as long where texts are
        short: run a hundredth of the corpus first
        """
        if documents is None and self.documents is None:
            raise errors.bad_type("documents", "must be given, as the plan has none")
        count = checks.whole_number("documents", self.documents if documents is None else documents, 1, 2**63)
        size = checks.whole_number("text_bytes", text_bytes, 0, 2**63)
        min_equal = sketch_filter.min_equal(self.num_seeds, self.threshold, self.loss or sketch_filter.LOSS)
        low_bytes = 8 * sketch_filter.num_words(self.num_seeds, sketch_filter.num_low_bits(self.num_seeds, min_equal))
        return cost_of(count, size, self.bands.num_bands, self.num_seeds, low_bytes, self.false_candidates)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as a dict of plain values, which `from_dict` reads.

        Returns
        -------
        dict
            All attributes, with `bands` and `shingles` as dicts.
        """
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        shingles = None if self.shingles is None else self.shingles.to_dict()
        return {**values, "bands": self.bands.to_dict(), "shingles": shingles}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Plan:
        """Make a plan from what `to_dict` returned.

        Parameters
        ----------
        values : dict
            What `to_dict` returned, such as from a JSON file.

        Returns
        -------
        Plan
            Equal to the one that was described.

        Raises
        ------
        TypeError, ValueError
            If a key is missing or unknown, or a value is wrong.
        """
        given = checks.keys("plan", values, {one.name for one in fields(cls)})
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
        threshold = below_one(self.threshold, "g")
        at = f"a pair at {threshold} shares a band with probability {below_one(self.probability(self.threshold))}"
        passed = f" and is found and verified with {below_one(self.recall_at(self.threshold))}" if self.loss else ""
        seeds = "1 seed" if self.num_seeds == 1 else f"{self.num_seeds} seeds"
        lines = [
            str(self.bands),
            f"planned for threshold {threshold}, recall {below_one(self.recall, 'g')} and {seeds}",
            at + passed,
        ]
        if self.false_candidates is not None:
            cut = "" if self.shingles is None else f", {self.shingles!r}"
            share = f"{_one_pair_in(self.false_candidates)} is compared in vain"
            lines += [
                f"{share}: a false candidate, which shares a band but is below the threshold",
                f"computed from {self.background}{cut}",
            ]
        if self.false_candidates is not None and self.documents is not None:
            number = _false_candidates(self.false_candidates * (self.documents - 1))
            lines.append(f"with {counted(self.documents, 'document')}, each has {number}")
        if self.false_candidates is None and (shared := float(self.probability(UNRELATED))) > COSTLY:
            lines.append(
                f"costly if unrelated texts have a similarity of {UNRELATED}: {_one_pair_in(shared)} shares a band; a "
                "lower recall, more seeds, a higher threshold or longer shingles cost less"
            )
        return "\n".join(lines)


def below_one(value: float, form: str = ".4f") -> str:
    """Return a fraction as text, with enough digits to show that it is less than 1."""
    shown = format(value, form)
    if float(shown) < 1.0 or value >= 1.0:
        return shown
    return f"{value:.{ceil(-log10(1.0 - value))}f}".rstrip("0")


def _one_pair_in(share: float) -> str:
    """Return a share of the pairs as text, such as ``"1 pair in 3,900"``."""
    if share < RARE:
        return f"fewer than 1 pair in 10^{-log10(RARE):.0f}"
    return f"1 pair in {float(f'{1 / share:.3g}'):,.15g}"


def _false_candidates(number: float) -> str:
    """Return an expected number of false candidates as text."""
    if 0 < number < FEW:
        return f"fewer than {FEW:g} false candidates"
    shown = f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
    return f"{shown} false candidate" if shown == "1" else f"{shown} false candidates"


def plan(
    threshold: float = 0.8,
    recall: float = DEFAULT_RECALL,
    num_seeds: int | None = None,
    *,
    shingles: Shingles | None = None,
    background: Texts | Numbers | None = None,
    documents: int | None = None,
) -> Plan:
    """Choose the cheapest bands with which `deduplicate` and `find_pairs` reach a given recall.

    Parameters
    ----------
    threshold : float, optional
        The Jaccard similarity from which pairs should be found, more than 0 and at most 1.
    recall : float, optional
        The least probability with which a pair at the threshold is found, more than 0 and less than 1. More similar
        pairs are found with a higher probability.
    num_seeds : int, optional
        The number of components of a fingerprint; the bands use at most so many. Default: 128, or with `documents` the
        number that costs least for so many.
    shingles : Shingles, optional
        The shingles of the texts of `background`. Default: ``Shingles(8)``. An error if `background` is not texts.
    background : array_like or collection of texts, optional
        Pairs for which the bands should make few candidates: the similarities of random pairs, 0 to 1; or the corpus or
        a sample of it, of which all pairs of 1,000 texts are used. ``None`` counts as an empty text, and empty texts
        are not used. Default: similarities spread evenly from 0 to the threshold; then the plan has no
        `false_candidates`, except with `documents`.
    documents : int, optional
        The number of documents of the corpus. The plan then prints how many false candidates to expect for each, and
        without `num_seeds` it is the plan for a corpus of this size; see Notes.

    Returns
    -------
    Plan
        Its bands have one width, or two widths that differ by one, so that almost every component is used. Of all such
        bands that reach the recall, they have the lowest probability that a background pair below the threshold is a
        candidate; then the lowest probability for evenly spread pairs; then the fewest bands.

    Raises
    ------
    TypeError, ValueError
        If a parameter has a wrong type or is out of range.
    ValueError
        If no bands of `num_seeds` components reach the recall; the message says what would be possible.

    Notes
    -----
    With b bands of r components and c bands of r + 1, a pair at the threshold T agrees in a band with the probability
    ``1 - (1 - T^r)^b (1 - T^(r + 1))^c``. The sketch filter may lose (1 - recall) / 5 of these pairs, so that
    probability is at least ``recall / (1 - (1 - recall) / 5)``. A pair that agrees in a band is more likely to pass the
    filter than another one, so the product of the two probabilities is a lower bound. This is for independent
    components; see `Plan.recall_at` for tiny texts with scheme ``"fss"``.

    Each document shares buckets with more others by chance the more documents there are. More components in wider bands
    cost a little more for each document, and separate more of these. For a given number of documents, 128, 256, 512 or
    1,024 components are used: the number with which a document costs least time. That number is rounded up to 65,536
    times a power of four, so one document more seldom changes a plan; up to 65,536 documents there are 128 components.
    Without `background`, two texts are taken to have a similarity of 0.06, as unrelated English texts have with
    shingles of five bytes. `deduplicate` and `find_pairs` use this plan where none of bands, seeds and hasher is given.

    Examples
    --------
    >>> import lsh
    >>> lsh.plan(0.6, documents=10_000_000).num_seeds
    512
    >>> print(lsh.plan(0.8, 0.99, 128))
    19 bands, 6x6+13x7 components, 127 in all
    similarity  0.3    0.4    0.5    0.6    0.7    0.8    0.9    1.0
    found       0.007  0.045  0.178  0.481  0.846  0.992  1.000  1.000
    half of the pairs are found at 0.605, 95 % at 0.749
    keys take 152 bytes a document
    planned for threshold 0.8, recall 0.99 and 128 seeds
    a pair at 0.8 shares a band with probability 0.9924 and is found and verified with 0.9908
    """
    pairs = None
    if background is not None:
        pairs = pairs_below(_checked(threshold, recall, num_seeds)[0], background, shingles)
    elif shingles is not None:
        raise errors.bad_value("shingles", "requires texts as background")
    if documents is None:
        asked = _checked(threshold, recall, num_seeds)
        return _planned(*asked, True, MAX_BANDS) if pairs is None else _cheapest(*asked, True, MAX_BANDS, pairs)
    count = checks.whole_number("documents", documents, 1, 2**63)
    if num_seeds is None:
        return plan_for_size(threshold, recall, count, pairs)
    planned = _cheapest(*_checked(threshold, recall, num_seeds), True, MAX_BANDS, pairs)
    return _for_documents(planned, count, pairs)


def plan_for_size(
    threshold: object, recall: object, documents: int, pairs: PairsBelow | None = None, *, filtered: bool = True
) -> Plan:
    """Return the plan with which a document of a corpus of this size costs least.

    `pairs` are pairs of the corpus, or `unrelated` ones, and `filtered` says whether the sketch filter is used.
    """
    least, wanted, _ = _checked(threshold, recall, None)
    asked = least, wanted, filtered, size_step(documents)
    return _for_documents(_of_standard_size(*asked) if pairs is None else _of_size(*asked, pairs), documents, pairs)


def size_step(documents: int) -> int:
    """Return the largest number of documents that have the same plan: a power of four, 65,536 or more."""
    return max(FEW_DOCUMENTS, 1 << (((documents - 1).bit_length() + 1) // 2 * 2))


@lru_cache(maxsize=64)
def _of_standard_size(threshold: float, recall: float, filtered: bool, documents: int) -> Plan:
    return _of_size(threshold, recall, filtered, documents, None)


def _of_size(threshold: float, recall: float, filtered: bool, documents: int, pairs: PairsBelow | None) -> Plan:
    """Return the plan with the number of components with which a document costs least."""
    plans = list[Plan]()
    for num_seeds in SIZED_SEEDS[:1] if documents == FEW_DOCUMENTS else SIZED_SEEDS:
        try:
            plans.append(_cheapest(threshold, recall, num_seeds, filtered, MAX_FSS_SEEDS, pairs))
        except ValueError:  # these are too few to reach the recall
            if num_seeds == SIZED_SEEDS[-1] or documents == FEW_DOCUMENTS:
                raise
    met = unrelated(threshold) if pairs is None else pairs
    return min(plans, key=lambda one: seconds_of_bands(one.bands.widths, one.num_seeds, documents, met))


def _for_documents(planned: Plan, documents: int, pairs: PairsBelow | None) -> Plan:
    """Return a plan with the number of documents, and the false candidates that they have."""
    if pairs is None:
        planned = _with_background(planned, unrelated(planned.threshold))
    return replace(planned, documents=documents)


def _with_background(planned: Plan, pairs: PairsBelow) -> Plan:
    """Return a plan with the share of some pairs that are false candidates."""
    widths = planned.bands.widths
    shape = widths[0], widths.count(widths[0]), len(widths) - widths.count(widths[0])
    share = min(float(_shares(np.array([shape]), pairs)[0]), 1.0)
    return replace(planned, background=pairs.name, false_candidates=share, shingles=pairs.shingles)


def plan_for(hasher: MinHasher, threshold: object, recall: object, *, filtered: bool) -> Plan:
    """Return the plan for the fingerprints of a hasher; `filtered` says whether the sketch filter is used."""
    most = MAX_FSS_SEEDS if hasher.scheme == "fss" else MAX_BANDS
    return _planned(*_checked(threshold, recall, hasher.num_seeds), filtered, most)


def checked_bands(bands: object, num_seeds: int) -> Bands:
    """Return bands, or those of a plan, if they fit a fingerprint of `num_seeds` components."""
    if isinstance(bands, Plan):
        bands = bands.bands
    remedy = "; use lsh.Bands(num_bands, width) or lsh.plan()"
    bands = checks.instance("bands", bands, Bands, "a Bands or a Plan", remedy)
    if bands.num_components > num_seeds:
        width = min(max(bands.widths), num_seeds)
        problem = f"take {bands.num_components} components, a fingerprint has {num_seeds}; use fewer or narrower bands "
        problem += f"than {bands.to_string()}, such as {num_seeds // width}x{width}, or more seeds"
        raise errors.bad_value("bands", problem, BandError)
    return bands


def chosen_hasher(
    hasher: object, shingles: object, num_seeds: object, random_state: int | None, bands: object
) -> MinHasher:
    """Return the given hasher, or make one of scheme "fss" from the other parameters, or from a plan as `bands`."""
    if hasher is None:
        if num_seeds is None:
            num_seeds = bands.num_seeds if isinstance(bands, Plan) else DEFAULT_SEEDS
        count = checks.whole_number("num_seeds", num_seeds, 1, MAX_FSS_SEEDS)
        if shingles is None and isinstance(bands, Plan):
            shingles = bands.shingles
        return MinHasher(count, random_state=random_state, scheme="fss", shingles=checked_shingles(shingles))
    hasher = checked_hasher(hasher)
    if num_seeds is not None:
        raise ValueError("num_seeds and hasher cannot be combined; give one of them")
    if random_state != 0:
        raise ValueError("random_state and hasher cannot be combined; give one of them")
    if shingles is not None and checked_shingles(shingles) != hasher.shingles:
        raise errors.bad_value("shingles", f"must be the hasher's ({hasher.shingles!r}) or left out, got {shingles!r}")
    return hasher


def chosen_plan(hasher: MinHasher, bands: object, threshold: object, recall: object, *, filtered: bool) -> Plan:
    """Return the plan of a new cache or index; at most one of `bands` and `recall` is given."""
    if bands is None:
        least = DEFAULT_THRESHOLD if threshold is None else threshold
        return plan_for(hasher, least, DEFAULT_RECALL if recall is None else recall, filtered=filtered)
    if recall is not None:
        raise ValueError("recall and bands cannot be combined; give one of them")
    if isinstance(bands, Plan):
        asked = {} if threshold is None else {"threshold": threshold}
        check_plan(bands, hasher, **asked, num_seeds=hasher.num_seeds, shingles=hasher.shingles)
        return bands
    checked = checked_bands(bands, hasher.num_seeds)
    if threshold is None:
        raise errors.bad_value(
            "threshold",
            "must be given with bands, because bands do not say from which similarity documents are "
            "found; or pass a Plan as bands",
        )
    return plan_with(checked, threshold, hasher.num_seeds, loss=sketch_filter.LOSS if filtered else 0.0)


def plan_with(bands: Bands, threshold: object, num_seeds: int, *, loss: float = 0.0) -> Plan:
    """Return the plan that has these bands and a threshold; its recall is what the bands reach there."""
    least = checks.fraction("threshold", threshold, zero=False)
    recall = bands.probability(least) * (1.0 - loss)
    if recall == 0.0:
        problem = (
            f"is too low for {bands.to_string()}, which find no pairs there; use a higher threshold, or more bands"
        )
        raise errors.bad_value(errors.Parameter("threshold", least), problem)
    return Plan(bands, least, min(recall, nextafter(1.0, 0.0)), num_seeds, loss=loss)


def plan_of(bands: Bands, num_seeds: int) -> Plan:
    """Return the plan that has these bands and the default recall, for the least threshold, in hundredths."""
    threshold = next(number / 100 for number in range(1, 101) if bands.probability(number / 100) >= DEFAULT_RECALL)
    return Plan(bands, threshold, DEFAULT_RECALL, num_seeds)


def chosen_bands(
    bands: object, recall: object, threshold: float, hasher: MinHasher, *, filtered: bool
) -> tuple[Bands, Plan | None]:
    """Return the bands to use, and their plan if there is one; at most one of `bands` and `recall` is given."""
    if bands is None:
        planned = plan_for(hasher, threshold, DEFAULT_RECALL if recall is None else recall, filtered=filtered)
        return planned.bands, planned
    if recall is not None:
        raise ValueError("recall and bands cannot be combined; give one of them")
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
            raise errors.bad_value("bands", f"are planned for {name}={planned_for}, got {name}={value}; {remedy}")


def _checked(threshold: object, recall: object, num_seeds: object) -> tuple[float, float, int]:
    return (
        checks.fraction("threshold", threshold, zero=False),
        checks.fraction("recall", recall, zero=False, one=False),
        checks.whole_number("num_seeds", DEFAULT_SEEDS if num_seeds is None else num_seeds, 1, MAX_BANDS),
    )


@lru_cache(maxsize=64)
def _planned(threshold: float, recall: float, count: int, filtered: bool, most: int) -> Plan:
    """Return a plan without a background; an error message advises at most `most` seeds."""
    return _cheapest(threshold, recall, count, filtered, most, None)


# ---- the search ----


def _cheapest(
    threshold: float, recall: float, count: int, filtered: bool, most: int, background: PairsBelow | None
) -> Plan:
    """Return the plan with the fewest candidates among the background pairs, or among evenly spread ones."""
    loss = sketch_filter.loss_of(recall) if filtered else 0.0
    if threshold == 1.0:
        best = np.array([count, 1, 0])  # identical sets agree in any band, and others least often in the widest
    else:
        missed = log((1.0 - recall - loss) / (1.0 - loss))  # logarithm of the share that the bands may miss
        shapes = _candidates(threshold, min(missed, -RECALL_EPSILON), count)
        if not len(shapes):
            raise _impossible(threshold, recall, missed, loss, count, most)
        best = _best(shapes, threshold, background)
    width, narrow, wide = best.tolist()
    bands = Bands(widths=(width,) * narrow + (width + 1,) * wide)
    planned = Plan(bands, threshold, recall, count, loss=loss)
    return planned if background is None else _with_background(planned, background)


def _candidates(threshold: float, missed: float, count: int) -> Array:
    """Return the cheapest bands for each number of bands, as rows: width r, bands of width r, bands of width r + 1.

    Fewer pairs agree in a wider band, whatever their similarity, so the widest bands are the cheapest ones: as wide as
    the recall allows, ``n log(1 - T^r) <= missed``, and the number of components.
    """
    goal = missed + LOSS_TOLERANCE
    number = np.arange(1, min(count, MAX_TRIED) + 1)
    if count > MAX_TRIED:
        number = np.unique(np.concatenate([number, np.geomspace(MAX_TRIED, count, MAX_TRIED).astype(np.int64)]))
    width = np.floor(np.clip(np.log(-np.expm1(goal / number)) / log(threshold), 0, count - 1)).astype(np.int64)
    width += number * _log_missed(threshold, width + 1) <= goal  # corrects the rounding of the division
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
    """Return for each width the logarithm of the probability that a pair at the threshold differs in such a band."""
    with np.errstate(divide="ignore"):
        logarithms: Array = np.log1p(-(threshold**width))
    return logarithms


def _best(shapes: Array, threshold: float, background: PairsBelow | None) -> Array:
    """Return the shape that finds the fewest background pairs, then evenly spread ones, then has the fewest bands."""
    even = evenly_spread(threshold)
    for pairs in (even,) if background is None else (background, even):
        shares = _shares(shapes, pairs)
        shapes = shapes[shares <= shares.min() * (1 + COST_TOLERANCE)]
    best: Array = shapes[np.argmin(shapes[:, 1] + shapes[:, 2])]
    return best


def _shares(shapes: Array, pairs: PairsBelow) -> Array:
    """Return for each shape the total weight of the pairs that agree in a band."""
    widths, at = np.unique(shapes[:, 0], return_inverse=True)
    one, other = (np.log1p(-(pairs.similarities ** (widths[:, None] + more))) for more in (0, 1))
    missed = shapes[:, 1:2] * one[at] + shapes[:, 2:] * other[at]
    shares: Array = np.abs(np.expm1(missed) @ pairs.weights)
    return shares


def _impossible(threshold: float, recall: float, missed: float, loss: float, count: int, most: int) -> ValueError:
    """Return the error that no bands reach the recall, with what would; bands of width 1 find the most pairs."""
    found = -np.expm1(count * log1p(-threshold))
    kept = (1.0 - sketch_filter.LOSS_SHARE) * found / (1.0 - sketch_filter.LOSS_SHARE * found) if loss else found
    seeds = missed / log1p(-threshold) if threshold > 1e-300 else np.inf
    reason = f"is too few to find pairs of similarity {threshold:g} with a recall of {recall}; possible: "
    ways = errors.message(reason)
    if seeds <= most:
        ways += errors.Parameter("num_seeds", ceil(seeds)) + " or more, or "
    ways += errors.Parameter("threshold", max(ceil(-np.expm1(missed / count) * 1000), 1) / 1000) + " or more"
    if kept >= 0.001:
        ways += ", or " + errors.Parameter("recall", floor(kept * 1000) / 1000) + " or less"
    return errors.bad_value(errors.Parameter("num_seeds", count), ways)
