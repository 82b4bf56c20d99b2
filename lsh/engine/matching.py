"""Which documents are near duplicates, and which of them stay: the value that `deduplicate` and `find_pairs` work by.

`Matching` is checked once, when it is made: by the functions of the library, by the command, by Spark, and for the
documents of an index. What is below it gets its values and checks nothing again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Number
from typing import Any, get_args

import numpy as np

from lsh.base import checks, errors
from lsh.base.arrays import Array
from lsh.engine.index_source import IndexSnapshot
from lsh.sketch import sketch_filter
from lsh.sketch.bands import Bands
from lsh.sketch.hasher import MinHasher
from lsh.sketch.planning import (
    DEFAULT_THRESHOLD,
    Plan,
    chosen_bands,
    chosen_hasher,
    plan_for_size,
    size_step,
)
from lsh.text.shingling import checked_shingles
from lsh.typing import Clusters, Keep, Missing, Verify

MIN_INDEX_RECALL = 0.5  # of an index at a similarity; less is an error


@dataclass(frozen=True, init=False, eq=False)
class Matching:
    """The parameters that define near duplicates and which of them are kept. Immutable.

    Parameters
    ----------
    threshold, recall, bands, shingles, hasher, num_seeds, random_state, verify, clusters, keep, missing
        As for `lsh.deduplicate`.

    Attributes
    ----------
    threshold : float
        The least similarity of near duplicates.
    hasher : MinHasher
        Computes the fingerprints.
    bands : Bands
        Find the candidate pairs.
    plan : Plan or None
        What the bands were planned for; ``None`` if they were given without a plan.
    verify, clusters, missing
        The parameters.
    keep : str or numpy.ndarray
        Its name, or the priority of each document, shape ``(n,)``: finite numbers, or datetime64.
    collisions : float
        The probability that a component of two documents is equal although their fingerprints differ there; of an index
        that stores a part of each component.
    recall : float or None
        The probability that a pair at the threshold is found, if it is not that of the plan: of an index.
    wanted : float or None
        The recall for which `for_documents` plans; ``None`` where the caller chose bands, seeds or a hasher.
    """

    threshold: float
    hasher: MinHasher
    bands: Bands
    plan: Plan | None
    verify: Verify
    clusters: Clusters
    keep: Keep | Array
    missing: Missing
    collisions: float
    recall: float | None
    wanted: float | None

    def __init__(
        self,
        threshold: object = None,
        *,
        recall: object = None,
        bands: object = None,
        shingles: object = None,
        hasher: object = None,
        num_seeds: object = None,
        random_state: int | None = 0,
        verify: object = "exact",
        clusters: object = "representative",
        keep: object = "first",
        missing: object = "error",
    ) -> None:
        checked = checks.fraction("threshold", DEFAULT_THRESHOLD if threshold is None else threshold, zero=False)
        chosen = chosen_hasher(hasher, shingles, num_seeds, random_state, bands)
        verify = checks.choice("verify", verify, get_args(Verify))
        own, plan = chosen_bands(bands, recall, checked, chosen, filtered=verify == "exact")
        self._set(
            threshold=checked,
            hasher=chosen,
            bands=own,
            plan=plan,
            verify=verify,
            clusters=checks.choice("clusters", clusters, get_args(Clusters)),
            keep=checked_keep(keep),
            missing=checks.choice("missing", missing, get_args(Missing)),
            collisions=0.0,
            recall=None,
            wanted=plan.recall if plan is not None and bands is hasher is num_seeds is None else None,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Matching):
            return NotImplemented
        own, others = ({**vars(one), "keep": None} for one in (self, other))
        return own == others and type(self.keep) is type(other.keep) and np.array_equal(self.keep, other.keep)

    def __hash__(self) -> int:
        return hash((self.threshold, self.hasher, self.bands, self.verify, self.clusters))

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of_index(cls, name: str, index: IndexSnapshot, threshold: object, **given: Any) -> Matching:
        """Return the parameters for the documents of an index; those that are given must be those of the index.

        Parameters
        ----------
        name : str
            The parameter that has the index, for messages.
        index : IndexSnapshot
            The documents of the index.
        threshold : float or None
            Default: that of the index.
        **given
            The other parameters of the class.
        """
        decided = ("recall", "bands", "shingles", "hasher", "num_seeds")  # by the index
        _check_same(name, index, {one: given.pop(one, None) for one in decided}, given.pop("random_state", 0))
        threshold = index.plan.threshold if threshold is None else threshold
        matching = cls(threshold, hasher=index.hasher, bands=index.plan.bands, **given)
        reached, recall = index.recalls(matching.threshold, matching.verify)
        if reached < MIN_INDEX_RECALL:
            asked = errors.Parameter("threshold", matching.threshold)
            reason = f"has a recall of {reached:.2g} with the bands of the index, which are for "
            reason += f"{index.plan.threshold:g}; create an index with "
            raise errors.bad_value(asked, reason + asked + " for it")
        matching._set(plan=index.plan, recall=recall)
        return matching

    def for_documents(self, documents: int) -> Matching:
        """Return the same parameters with the plan for a corpus of this size, where the caller chose none."""
        if self.wanted is None or size_step(documents) == size_step(1):
            return self._with(wanted=None)
        plan = plan_for_size(self.threshold, self.wanted, documents, filtered=self.is_exact)
        hasher = self.hasher
        if plan.num_seeds != hasher.num_seeds:
            random_state, shingles = hasher.random_state, hasher.shingles
            hasher = MinHasher(plan.num_seeds, random_state=random_state, scheme=hasher.scheme, shingles=shingles)
        return self._with(hasher=hasher, bands=plan.bands, plan=plan, wanted=None)

    def with_collisions(self, collisions: float) -> Matching:
        """Return the same parameters for sketches of this probability of collisions."""
        return self._with(collisions=0.0 if self.is_exact else collisions)

    def nulls_as_empty(self) -> Matching:
        """Return the same parameters with missing texts as empty ones, for texts whose nulls were checked before."""
        return self._with(missing="empty")

    def _with(self, **values: object) -> Matching:
        made = object.__new__(Matching)
        made._set(**self.__dict__)
        made._set(**values)
        return made

    @property
    def is_exact(self) -> bool:
        """Whether pairs are compared by their texts."""
        return self.verify == "exact"

    @property
    def min_equal(self) -> int:
        """How many components must be equal, of those that are known, for a pair to be compared further.

        So many equal low bits connect two documents. A pair that is found has so many, but for the loss of the plan.
        """
        if self.verify is None:
            return 0
        k = self.hasher.num_seeds
        loss = 0.0 if self.plan is None or self.recall is not None else self.plan.loss
        minimum = sketch_filter.min_equal(k, self.threshold, loss or sketch_filter.LOSS)
        if self.is_exact:
            return minimum
        return min(minimum, int(np.searchsorted(np.arange(k + 1) / k, self.min_similarity)))

    @property
    def low_bits(self) -> tuple[int, int]:
        """How many low bits of each component are compared before documents are connected, and how many may differ.

        For an index they are twice as many: its texts are read one by one, which takes longer than to compare more.
        """
        k, min_equal = self.hasher.num_seeds, self.min_equal
        bits = sketch_filter.num_low_bits(k, min_equal)
        return bits if self.recall is None else min(2 * bits, sketch_filter.BITS), k - min_equal

    @property
    def min_similarity(self) -> float:
        """The least similarity of a near duplicate, exact or the share of equal components."""
        if self.verify is None or not self.collisions:
            return 0.0 if self.verify is None else self.threshold
        shares = np.arange(self.hasher.num_seeds + 1) / self.hasher.num_seeds
        return float(shares[np.searchsorted(self.corrected(shares), self.threshold)])

    def corrected(self, similarities: Array) -> Array:
        """Return estimates of the similarity for shares of equal components (b-bit minwise hashing)."""
        return sketch_filter.corrected(similarities, self.collisions) if self.collisions else similarities

    def parameters(self) -> dict[str, Any]:
        """Return the values for `Deduplication.parameters`."""
        return {name: getattr(self, name) for name in ("threshold", "hasher", "bands", "plan", "verify", "clusters")}


def _check_same(name: str, index: IndexSnapshot, given: Mapping[str, Any], random_state: object) -> None:
    """Check that the parameters that are given are those of an index."""
    if random_state != 0:
        reason = "and " + errors.Parameter(name) + ", an index, cannot be combined; the index has its hasher"
        raise errors.bad_value("random_state", reason)
    own = {
        "recall": index.plan.recall,
        "bands": index.plan if isinstance(given["bands"], Plan) else index.plan.bands,
        "shingles": index.hasher.shingles,
        "hasher": index.hasher,
        "num_seeds": index.hasher.num_seeds,
    }
    for parameter, value in given.items():
        if parameter == "shingles" and value is not None:
            value = checked_shingles(value)
        if value is not None and value != own[parameter]:
            reason = "must be that of the index given as " + errors.Parameter(name)
            raise errors.bad_value(parameter, reason + f" ({own[parameter]!r}) or left out, got {value!r}")


# ---- keep ----


def checked_keep(keep: object) -> Keep | Array:
    """Return `keep`, checked: one of its names, or an array of priorities."""
    wanted = f"{', '.join(map(repr, get_args(Keep)))} or an array of numbers or datetime64"
    if isinstance(keep, str):
        if keep not in get_args(Keep):
            raise errors.bad_value("keep", f"must be {wanted}, got {keep!r}")
        return checks.choice("keep", keep, get_args(Keep))
    checks.unmasked("keep", keep)
    try:
        values = np.asarray(keep)
    except (TypeError, ValueError):
        raise errors.bad_type("keep", f"must be {wanted}, got {type(keep).__name__}") from None
    if values.ndim != 1 or values.dtype.kind not in "biufM":
        dtype = f" of {keep.dtype}" if hasattr(keep, "dtype") else _kinds(values)
        reason = f"must be {wanted}, one value for each text, got {type(keep).__name__}{dtype}; convert dates by "
        raise errors.bad_type("keep", reason + "np.array(keep, 'datetime64[us]') and numbers by np.array(keep, float)")
    unknown = np.flatnonzero(np.isnat(values) if values.dtype.kind == "M" else ~np.isfinite(values))
    if len(unknown):
        what = "a date" if values.dtype.kind == "M" else "a finite number"
        raise errors.bad_value(
            f"keep[{unknown[0]}]", f"must be {what}, got {values[unknown[0]]}; give one for each text"
        )
    return values


def _kinds(values: Array) -> str:
    """Return the types of the elements of an array, for a message."""
    kinds = sorted({type(value).__name__ for value in values.ravel().tolist()}) if values.ndim else []
    return f" of {', '.join(kinds)}" if kinds else ""


def check_length(keep: Keep | Array, documents: int) -> None:
    """Raise an error if there is not one priority for each document."""
    if not isinstance(keep, str) and len(keep) != documents:
        raise errors.bad_value("keep", f"must have one number or date for each text ({documents}), got {len(keep)}")


def rank_by_priority(priorities: Array, out: Array) -> None:
    """Set `out` to the positions of the documents, those of high priority first, of equal ones the first."""
    ascending = np.argsort(priorities[::-1], kind="stable")  # reversed, so that ties are in order of position
    np.subtract(len(out) - 1, ascending[::-1], out=out, casting="unsafe")


# ---- arguments ----


def refuse_other_arguments(name: str, value: Any, number: str) -> None:
    """Raise an error for a number or a path in place of a collection; most likely `number` or an index is meant."""
    if name not in ("items", "texts") and isinstance(value, (str, os.PathLike)):
        reason = f"must be a collection of texts, got one {type(value).__name__}; put it in a list, or pass "
        raise errors.bad_type(name, f"{reason}lsh.Index.open(path) for an index")
    if not isinstance(value, bool) and isinstance(value, Number):
        reason = f"must be a collection of texts, got the number {value}; to set {number}, write {number}={value}"
        raise errors.bad_type(name, reason)
