"""Queries: which documents share a bucket, how similar they are, and the matches that a caller gets."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache
from heapq import heapify, heappop, heapreplace
from itertools import pairwise, repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsh.base import checks, errors
from lsh.base.arrays import Array
from lsh.engine.matching import MIN_INDEX_RECALL
from lsh.segments.manifest import COLLISIONS, Parameters
from lsh.sketch import sketch_filter
from lsh.sketch.planning import Plan
from lsh.sketch.rows import CONFIDENCE, wilson_interval
from lsh.store.matches import Match, Matches, as_match
from lsh.store.view import Hits, StoredPlace, View, as_bytes
from lsh.text.shingling import shingle_sets
from lsh.typing import DocId, Lookup

MAX_TOP = 2**62  # the most matches that are counted

FEW = 32  # candidates for which loops are faster than arrays
TEXTS_STEP = 1024  # texts that are compared at once


class Estimator:
    """The estimated similarity of two documents by the number of their equal components. Immutable.

    Different components have the same low 8 bits with probability c = 1/256. If e of k components are equal there, the
    estimate is ``(e/k - c) / (1 - c)``, at least 0, and the bounds of Wilson's interval for e/k are corrected likewise
    (b-bit minwise hashing, Li and Konig 2010). With whole components, c is 0.
    """

    def __init__(self, components: int, collisions: float) -> None:
        self._components, self._collisions = components, collisions
        self.similarities = sketch_filter.estimates(components, collisions)
        self.interval = lru_cache(maxsize=None)(self._interval)

    def _interval(self, equal: int) -> tuple[float, float]:
        """Return the interval for a number of equal components."""
        bounds = wilson_interval(equal / self._components, self._components, CONFIDENCE)
        low, high = sketch_filter.corrected(np.array(bounds), self._collisions).tolist()
        return low, high

    def min_equal(self, similarity: float) -> int:
        """Return the least number of equal components whose estimate is `similarity` or more."""
        return int(np.searchsorted(self.similarities, similarity))


def estimator_of(parameters: Parameters) -> Estimator:
    """Return the estimator for the sketches of an index."""
    return Estimator(parameters.layout.components, 0.0 if parameters.sketch == "full" else COLLISIONS)


@lru_cache(maxsize=64)
def filter_min_equal(parameters: Parameters, similarity: float) -> int:
    """Return how many components must be equal for a document of this similarity to be compared exactly."""
    plan, k = parameters.plan, parameters.hasher.num_seeds
    if not plan.loss:
        return 0
    if parameters.sketch == "full":  # no collisions: the share of equal components is the similarity
        similarity = max((similarity - COLLISIONS) / (1.0 - COLLISIONS), 0.0)
    return sketch_filter.min_equal(k, similarity, plan.loss)


def bands_recall(
    parameters: Parameters, similarity: float, verified: bool, min_similarity: float | None = None
) -> float:
    """Return the probability that a document of this similarity is a candidate: that it is compared, or estimated.

    That is in a query for `min_similarity`, or for its similarity.
    """
    found = parameters.plan.probability(similarity)
    if not verified or not parameters.plan.loss:
        return found
    min_equal = filter_min_equal(parameters, similarity if min_similarity is None else min_similarity)
    return found * _passing(parameters, min_equal, similarity)


@lru_cache(maxsize=64)
def recall_at(parameters: Parameters, similarity: float, verified: bool, min_similarity: float | None = None) -> float:
    """Return the probability that a query for `min_similarity` finds a document of this similarity.

    Without `min_similarity`, the query is for the similarity of the document. Without texts the estimate must reach it.
    Documents that share a band have a higher estimate than others, so that this is a lower bound.
    """
    min_similarity = similarity if min_similarity is None else min_similarity
    found = bands_recall(parameters, similarity, verified, min_similarity)
    if verified:
        return found if similarity >= min_similarity else 0.0
    collisions = COLLISIONS if parameters.sketch == "8bit" else 0.0
    return found * sketch_filter.reaching(parameters.hasher.num_seeds, similarity, min_similarity, collisions)


def recalls(parameters: Parameters, similarity: float, verify: str | None) -> tuple[float, float]:
    """Return the probabilities that a pair of this similarity is a candidate, and that it is one and found."""
    reached = bands_recall(parameters, similarity, verify == "exact")
    return reached, reached if verify is None else recall_at(parameters, similarity, verify == "exact")


def _passing(parameters: Parameters, min_equal: int, similarity: float) -> float:
    """Return the probability that a document of this similarity has at least `min_equal` equal components."""
    passing = sketch_filter.passing if parameters.sketch == "8bit" else sketch_filter.passing_whole
    return passing(parameters.hasher.num_seeds, min_equal, similarity)


def check_recall(name: str, similarity: float, recall: float, plan: Plan, remedy: errors.Words) -> None:
    """Raise an error if the bands of an index find less than half of the documents of a similarity."""
    if recall < MIN_INDEX_RECALL:
        reason = f"has a recall of {recall:.2g} with the bands of this index, which are for {plan.threshold:g}; "
        raise errors.bad_value(errors.Parameter(name, similarity), reason + errors.message(remedy))


def warn_without_texts(parameters: Parameters) -> None:
    """Warn of what an index without texts does not do, from a function that a caller calls."""
    threshold, recall = parameters.plan.threshold, recall_at(parameters, parameters.plan.threshold, False)
    warnings.warn(
        f"texts=None: without texts, similarities are estimated, so a query finds a document at the threshold of "
        f"{threshold:g} with a probability of {recall:.2g} only, and deduplicate and find_pairs need verify='sketch' "
        "for this index; use texts='stored', or a function that returns the text of an id",
        UserWarning,
        stacklevel=3,
    )


class QueryBatch(NamedTuple):
    """Queries: their keys (bands, q), sketches, texts to compare, and the places of those that are stored."""

    keys: NDArray[np.uint64]
    sketches: Array
    texts: Sequence[bytes | None]
    own: StoredPlace | None = None


class Search:
    """A query for a similarity, of one or of many texts. Immutable.

    Parameters
    ----------
    parameters : Parameters
        Of the index.
    min_similarity : float or None
        The least similarity of a match; ``None`` stands for the threshold of the plan.
    top : int or None
        The most matches of a query.
    lookup : callable or None
        Returns the text of an id.
    """

    def __init__(
        self, parameters: Parameters, estimator: Estimator, min_similarity: object, top: object, lookup: Lookup | None
    ) -> None:
        self.parameters, self.estimator, self.lookup = parameters, estimator, lookup
        plan: Plan = parameters.plan
        self.min_similarity = plan.threshold
        if min_similarity is not None:
            self.min_similarity = checks.fraction("min_similarity", min_similarity, zero=True)
        self.top = None if top is None else min(checks.whole_number("top", top, 1), MAX_TOP)
        self.verifies = parameters.texts or lookup is not None
        self.recall = recall_at(parameters, self.min_similarity, self.verifies)
        reached = bands_recall(parameters, self.min_similarity, self.verifies)
        remedy = "create an index with " + errors.Parameter("threshold", self.min_similarity) + " for it"
        check_recall("min_similarity", self.min_similarity, reached, plan, remedy)
        self.none = Matches((), self.recall, self.min_similarity)
        self._min_estimated = estimator.min_equal(self.min_similarity)
        self._min_equal = filter_min_equal(parameters, self.min_similarity) if self.verifies else self._min_estimated

    def found(self, view: View, asked: QueryBatch, recent: bool) -> list[Hits]:
        """Search one kind of parts for candidates."""
        max_matches = None if self.top is None or self.verifies else self.top + (asked.own is not None)
        return view.search(asked.keys, asked.sketches, self._min_equal, max_matches, recent)

    def matches(self, view: View, asked: QueryBatch, found: list[Hits]) -> list[Matches]:
        """Return the matches of each query from what was found, the parts in order."""
        results = [self.none] * len(asked.texts)
        if not found:
            return results
        if not self.verifies or (asked.own is not None and asked.texts[0] is None):
            self._estimate(view, asked.own, found, results)
            return results
        hits: dict[int, list[tuple[Hits, int, int]]] = {}
        for one in found:
            bounds = one.bounds.tolist()
            for i in np.flatnonzero(one.bounds[1:] > one.bounds[:-1]).tolist():
                hits.setdefault(i, []).append((one, bounds[i], bounds[i + 1]))
        for i, spans in hits.items():
            if matches := self._verified(view, spans, asked.own, asked.texts[i] or b""):
                results[i] = Matches(matches, self.recall, self.min_similarity)
        return results

    def _estimate(self, view: View, own: StoredPlace | None, found: list[Hits], results: list[Matches]) -> None:
        """Fill in the matches of each query by the estimates."""
        if len(results) == 1 and sum(len(one.numbers) for one in found) <= FEW:
            results[0] = self._estimate_few(view, own, found)
            return
        count = np.arange(len(results))
        queries = np.concatenate([np.repeat(count, np.diff(one.bounds)) for one in found])
        parts = np.repeat(np.arange(len(found)), [len(one.numbers) for one in found])
        numbers = np.concatenate([one.numbers for one in found])
        equal = np.concatenate([one.equal.astype(np.int64) for one in found])
        chosen = equal >= self._min_estimated
        if own is not None:
            chosen &= ~((numbers == own.number) & np.array([one.part == own.part for one in found])[parts])
        ranked = (queries << 16) - equal  # equal ones in order of arrival
        if len(found) > 1:
            order = np.lexsort((np.concatenate([view.arrivals_of(one.part, one.numbers) for one in found]), ranked))
        else:
            order = np.argsort(ranked, kind="stable")
        order = order[chosen[order]]
        if self.top is not None:
            ranks = np.arange(len(order)) - np.searchsorted(queries[order], queries[order])
            order = order[ranks < self.top]
        queries, parts, numbers, equal = queries[order], parts[order], numbers[order], equal[order]
        ids: list[DocId] = [0] * len(order)
        for at, one in enumerate(found):
            places = np.flatnonzero(parts == at)
            for place, doc_id in zip(places.tolist(), view.ids(one.part, numbers[places])):
                ids[place] = doc_id
        similarities = self.estimator.similarities[equal].tolist()
        intervals = map(self.estimator.interval, equal.tolist())
        made = list(map(as_match, zip(ids, similarities, intervals, repeat(False))))
        starts = np.flatnonzero(np.diff(queries, prepend=-1))
        for i, (start, stop) in zip(queries[starts].tolist(), pairwise([*starts.tolist(), len(made)])):
            results[i] = Matches(made[start:stop], self.recall, self.min_similarity)

    def _estimate_few(self, view: View, own: StoredPlace | None, found: list[Hits]) -> Matches:
        """Return the same for one query with few candidates, faster."""
        ranked = []
        for at, one in enumerate(found):
            equal = one.equal.tolist()
            arrivals = one.numbers if len(found) == 1 else view.arrivals_of(one.part, one.numbers)
            for number, same, arrival in zip(one.numbers.tolist(), equal, arrivals.tolist()):
                if same >= self._min_estimated and own != (one.part, number):
                    ranked.append((-same, arrival, at, number))
        ranked.sort()
        similarities, interval = self.estimator.similarities, self.estimator.interval
        made = [
            Match(view.id(found[at].part, number), float(similarities[-same]), interval(-same), False)
            for same, _, at, number in ranked[: self.top]
        ]
        return Matches(made, self.recall, self.min_similarity) if made else self.none

    def _verified(
        self, view: View, spans: list[tuple[Hits, int, int]], own: StoredPlace | None, text: bytes
    ) -> list[Match]:
        """Return the matches among candidates by the exact similarity of the texts, where they are known."""
        scored: list[tuple[float, int, int, int, int]] = []  # (-similarity, arrival, part, number, equal; -1: exact)
        known: dict[bytes, float] = {}
        perfect = list[int]()  # the first arrivals with a similarity of 1, as many as are returned at most
        heads = [(self._arrival(view, one, start), at, start) for at, (one, start, _) in enumerate(spans)]
        heapify(heads)
        while heads:
            arrival, at, first = heads[0]
            if self.top is not None and len(perfect) == self.top and perfect[-1] < arrival:
                break
            one, _, stop = spans[at]
            last = min(first + TEXTS_STEP, stop)
            if last < stop:
                heapreplace(heads, (self._arrival(view, one, last), at, last))
            else:
                heappop(heads)
            numbers = one.numbers[first:last]
            equal = one.equal[first:last].tolist()
            arrivals = view.arrivals_of(one.part, numbers).tolist()
            exact = self._exact(text, self._texts(view, one.part, numbers), known)
            for number, same, similarity, arrival in zip(numbers.tolist(), equal, exact, arrivals):
                found = float(self.estimator.similarities[same]) if similarity is None else similarity
                if found >= self.min_similarity and own != (one.part, number):
                    scored.append((-found, arrival, one.part, number, same if similarity is None else -1))
                    if found == 1.0:
                        perfect.append(arrival)
            if self.top is not None:
                perfect = sorted(perfect)[: self.top]
                if len(scored) > 2 * self.top + TEXTS_STEP:
                    scored = sorted(scored)[: self.top]
        return self._best(view, scored)

    def _arrival(self, view: View, one: Hits, at: int) -> int:
        """Return the number of arrival of a document that was found."""
        return int(view.arrivals_of(one.part, one.numbers[at : at + 1])[0])

    def _best(self, view: View, scored: list[tuple[float, int, int, int, int]]) -> list[Match]:
        """Return the most similar matches."""
        ranked = sorted(scored)[: self.top]
        ids: dict[tuple[int, int], DocId] = {}
        for part in {part for _, _, part, _, _ in ranked}:
            numbers = [number for _, _, own, number, _ in ranked if own == part]
            ids.update(zip(((part, number) for number in numbers), view.ids(part, np.array(numbers))))
        return [
            Match(
                ids[part, number],
                -negative,
                self.estimator.interval(same) if same >= 0 else (-negative, -negative),
                same < 0,
            )
            for negative, _, part, number, same in ranked
        ]

    def _texts(self, view: View, part: int, numbers: Array) -> list[bytes | None]:
        if self.lookup is None:
            return list(view.texts(part, numbers))
        return [self.looked_up(doc_id) for doc_id in view.ids(part, numbers)]

    def looked_up(self, doc_id: DocId) -> bytes | None:
        """Return the text of a document from the function that knows it."""
        return None if self.lookup is None else as_bytes(doc_id, self.lookup(doc_id))

    def _exact(self, text: bytes, others: list[bytes | None], known: dict[bytes, float]) -> list[float | None]:
        """Return the exact similarity of a text and others, many of which may be equal; `known` keeps it for more."""
        if len(known) > TEXTS_STEP:
            known.clear()
        new = [other for other in dict.fromkeys(others) if other is not None and other not in known]
        if new:
            sets = shingle_sets(self.parameters.hasher.shingles, [text, *new])
            known.update(zip(new, sets.matrix(1, 1)[0].tolist()))
        return [None if other is None else known[other] for other in others]
