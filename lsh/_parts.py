"""Deciding documents component by component, in threads.

What is decided about a document depends on its component only, so threads decide components at the same time, many
small ones in one call. A large component is decided in windows: threads score the documents of a window against those
that are kept before it, then one thread decides the window in order. Where most documents are kept, those of a window
are scored against each other, too, as if all were kept. The result does not depend on the threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from lsh import _threads
from lsh._comparing import Pairs, Similarity
from lsh._deciding import Decisions, Scores, Walk
from lsh._spill import Array

LARGE = 256  # documents of a component; a larger one is decided in windows
TASK = 512  # documents that a thread decides in one call
STEP = 1024  # documents of a large component between two reports in one thread
SMALLEST_WINDOW = 64  # documents
GROWTH = 16  # a window has at most this fraction of the documents before it: it compares its own one by one
MOST_SCORES = 1 << 21  # of a window, each takes 12 bytes
WORTH_THREADS = 512  # scores
MOSTLY_KEPT = 0.9  # share of the last window; then the documents of the next one are scored as if all are kept
CHUNKS = 4  # of a window, for each thread
MAX_NEAR = 100
MOST_PAIRS = 1 << 16  # candidates of the documents whose pairs a thread finds in one call; one may have more


class Decided(NamedTuple):
    """What was decided about the documents of some components, numbered from 0.

    Attributes
    ----------
    witness, similarity : numpy.ndarray
        By document: its witness (int32, -1 of a kept one) and the similarity to it (float64).
    near : tuple of numpy.ndarray
        The most similar pairs below the threshold, the most similar first: document, the other one, similarity.
    candidates, compared, capped : int
        See `Deduplication.summary`.
    """

    witness: Array
    similarity: Array
    near: tuple[Array, Array, Array]
    candidates: int
    compared: int
    capped: int


def decide(
    decisions: Decisions,
    starts: Array,
    ranks: Array,
    make_similarity: Callable[[], Similarity],
    components: bool,
    num_threads: int,
    report: Callable[[int], object],
) -> Decided:
    """Decide all documents.

    Parameters
    ----------
    decisions : Decisions
        The documents, of which nothing has been decided.
    starts : numpy.ndarray
        int64: the first document of each component, and the number of documents.
    ranks : numpy.ndarray
        int32: the place of each document in the order of the walk over all components.
    make_similarity : callable
        Returns a new similarity of the documents; each thread has its own.
    components : bool
        Whether `decisions` are those of the walk over components.
    num_threads : int
        1 or more; the result does not depend on it.
    report : callable
        Called with the number of documents that have been decided, from time to time.
    """
    work = _Work(decisions, make_similarity, components, num_threads)
    done = 0
    for decided in _threads.map_in_order(work.decide, _tasks(starts), num_threads):
        done += decided
        report(done)
    sizes = np.diff(starts)
    for number in np.flatnonzero(sizes > LARGE).tolist():
        for decided in work.decide_large(int(starts[number]), int(starts[number + 1])):
            done += decided
            report(done)
    return work.outcome(ranks)


def _tasks(starts: Array) -> Iterator[tuple[int, int]]:
    """Yield ranges of documents, each of one or more whole components that are not large."""
    large = np.flatnonzero(np.diff(starts) > LARGE).tolist()
    for first, last in zip([0, *(number + 1 for number in large)], [*large, len(starts) - 1]):
        while first < last:  # components first to last - 1 are not large
            stop = int(np.searchsorted(starts, starts[first] + TASK, side="right")) - 1
            stop = min(max(stop, first + 1), last)
            yield int(starts[first]), int(starts[stop])
            first = stop


class _Work:
    """The walks of all threads."""

    def __init__(
        self, decisions: Decisions, make_similarity: Callable[[], Similarity], components: bool, num_threads: int
    ) -> None:
        self.decisions, self.make_similarity = decisions, make_similarity
        self.components, self.num_threads = components, num_threads
        self.walks: list[Walk] = []
        self.idle: list[Walk] = []  # walks that no thread uses at the moment; append and pop are atomic

    def walk(self) -> Walk:
        """Return a walk that no other thread uses; the caller appends it to `idle` afterwards."""
        try:
            return self.idle.pop()
        except IndexError:
            walk = Walk(self.make_similarity(), self.decisions)
            self.walks.append(walk)
            return walk

    def decide(self, documents: tuple[int, int]) -> int:
        """Decide some components; return the number of their documents."""
        start, stop = documents
        walk, at = self.walk(), start
        while at < stop:
            at = walk.run(at, stop)
        if self.components:
            walk.attach(start, stop)
        self.idle.append(walk)
        return stop - start

    def decide_large(self, start: int, stop: int) -> Iterator[int]:
        """Decide one component; yield how many documents have been decided since the last time."""
        at, as_kept = start, False
        while at < stop:
            end = min(stop, at + (STEP if self.num_threads == 1 else max(SMALLEST_WINDOW, (at - start) // GROWTH)))
            chunks: list[tuple[int, int, Scores | None]] = [(at, end, None)]
            if self.num_threads > 1 and at > start:
                chunks = self._scored(at, end, as_kept)
            walk = self.walk()
            before = walk.kept
            for first, last, scores in chunks:
                while first < last:
                    decided = walk.run(first, last, scores)
                    yield decided - first
                    first = decided
            self.idle.append(walk)
            as_kept = walk.kept - before >= MOSTLY_KEPT * (chunks[-1][1] - at)
            at = chunks[-1][1]
        if self.components:
            steps = [(first, min(first + TASK, stop)) for first in range(start, stop, TASK)]
            for _ in _threads.map_in_order(self._attach, steps, self.num_threads):
                yield 0

    def _scored(self, start: int, stop: int, as_kept: bool) -> list[tuple[int, int, Scores | None]]:
        """Begin a window, and score its documents in threads; returns the ranges of documents and their scores."""
        most = self.decisions.begin_window(start, stop, MOST_SCORES, as_kept)
        ends = np.cumsum(most)
        if ends[-1] < WORTH_THREADS:
            return [(start, start + len(most), None)]
        wanted = np.arange(1, CHUNKS * self.num_threads) * ends[-1] // (CHUNKS * self.num_threads)
        bounds = np.unique(np.concatenate([[0], np.searchsorted(ends, wanted) + 1, [len(most)]])) + start
        return list(_threads.map_in_order(self._score, zip(bounds.tolist(), bounds[1:].tolist()), self.num_threads))

    def _score(self, documents: tuple[int, int]) -> tuple[int, int, Scores]:
        walk = self.walk()
        scores = walk.score(*documents)
        self.idle.append(walk)
        return (*documents, scores)

    def _attach(self, documents: tuple[int, int]) -> None:
        walk = self.walk()
        walk.attach(*documents)
        self.idle.append(walk)

    def outcome(self, ranks: Array) -> Decided:
        """Return what was decided; near pairs in descending order of similarity, then in the order of the walk."""
        found = [walk.near() for walk in self.walks]
        documents, others, similarities = map(
            np.concatenate, zip((np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0)), *found)
        )
        first = np.lexsort((ranks[documents], -similarities))[:MAX_NEAR]
        return Decided(
            *self.decisions.outcome(),
            (documents[first], others[first], similarities[first]),
            sum(walk.candidates for walk in self.walks),
            sum(walk.compared for walk in self.walks),
            sum(walk.capped for walk in self.walks),
        )


def pairs(
    make_pairs: Callable[[], Pairs], first: int, stop: int, num_threads: int, report: Callable[[int], object]
) -> Iterator[tuple[Array, Array, Array]]:
    """Yield the pairs of the documents from `first` downwards, but not of `stop`, in that order.

    Parameters
    ----------
    make_pairs : callable
        Returns a new object that finds the pairs; each thread has its own.
    first, stop, num_threads : int
        The documents, and the number of threads.
    report : callable
        Called with the next document, from time to time.

    Yields
    ------
    tuple of numpy.ndarray
        The documents, their partners (int32) and the similarities (float64).
    """
    idle: list[Pairs] = []  # that no thread uses at the moment; append and pop are atomic

    def run(documents: tuple[int, int]) -> tuple[int, int, tuple[Array, Array, Array]]:
        """Find pairs of some documents; returns the documents that are left, and the pairs."""
        try:
            finder = idle.pop()
        except IndexError:
            finder = make_pairs()
        at, numbers, partners, similarities = finder.run(*documents, MOST_PAIRS)
        idle.append(finder)
        return at, documents[1], (numbers, partners, similarities)

    ranges = ((document, max(document - STEP, stop)) for document in range(first, stop, -STEP))
    for at, last, found in _threads.map_in_order(run, ranges, num_threads):
        yield found
        while at > last:
            at, last, found = run((at, last))
            yield found
        report(at)
