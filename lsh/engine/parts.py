"""Deciding documents component by component, in threads.

What is decided about a document depends on its component only, so threads decide components at the same time, many
small ones in one call. A large component is decided in windows: threads score the documents of a window against those
that are kept before it, then one thread decides the window in order. Where most documents are kept, those of a window
are scored against each other, too, as if all were kept. The result does not depend on the threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from lsh.base.arrays import Array
from lsh.base.threads import map_in_order, worth
from lsh.engine.comparing import Pairs
from lsh.engine.deciding import MAX_NEAR, Decisions, Scores, Walk
from lsh.engine.layout import Part

LARGE = 256  # documents of a component; a larger one is decided in windows
TASK = 512  # documents that a thread decides in one call
STEP = 1024  # documents of a large component between two reports in one thread
SMALLEST_WINDOW = 64  # documents
GROWTH = 16  # a window has at most this fraction of the documents before it: it compares its own one by one
WORTH_THREADS = 512  # scores
MOSTLY_KEPT = 0.9  # share of the last window; then the documents of the next one are scored as if all are kept
CHUNKS = 4  # of a window, for each thread
MOST_PAIRS = 1 << 16  # candidates of the documents whose pairs a thread finds in one call; one may have more


class Rule(NamedTuple):
    """How documents are decided; see `Decisions`."""

    settled: int
    threshold: float
    cap: int
    components: bool


class Decided(NamedTuple):
    """What was decided about documents.

    Attributes
    ----------
    documents, witnesses, similarities : numpy.ndarray
        The documents that are removed and their witnesses (int32), and the similarity of the two (float64).
    near_documents, near_others, near_similarities : numpy.ndarray
        The most similar pairs below the threshold, the most similar first, then in the order of the walk.
    near_ranks : numpy.ndarray
        int32: the places of `near_documents` in the order of the walk.
    candidates, compared, capped : int
        See `Deduplication.summary`.
    """

    documents: Array
    witnesses: Array
    similarities: Array
    near_documents: Array
    near_others: Array
    near_similarities: Array
    near_ranks: Array
    candidates: int
    compared: int
    capped: int


def decide(
    parts: Iterable[Part],
    rule: Rule,
    make_members: Callable[[tuple[int, ...]], Array],
    num_threads: int,
    report: Callable[[int], object],
    most_scores: int,
) -> Decided:
    """Decide all documents of some parts.

    Parameters
    ----------
    parts : iterable of Part
        The documents. A part is not used any more when the next one is asked for.
    rule : Rule
        How they are decided.
    make_members : callable
        Returns an uninitialized array of int32 of a shape.
    num_threads : int
        1 or more; the result does not depend on it.
    report : callable
        Called with the number of documents that have been decided, from time to time.
    most_scores : int
        A window of a large component ends where its documents have more scores.
    """
    found, floor, done = list[Decided](), 0.0, 0
    for part in parts:
        threads = worth(num_threads, part.links.size)
        in_threads = partial(map_in_order, num_threads=threads)
        decisions = Decisions(part.links, make_members(part.links.shape), part.ranks, *rule, floor, in_threads)
        work = _Work(part, decisions, rule.components, num_threads, most_scores)
        for decided in work.run():
            done += decided
            report(done)
        found.append(work.outcome())
        floor = decisions.floor
        del part, decisions, work  # before the next part is read
    return _joined(found)


def _joined(found: list[Decided]) -> Decided:
    """Return what was decided about all parts."""
    none, no_values = np.empty(0, np.int32), np.empty(0)
    columns = zip((none, none, no_values, none, none, no_values, none), *(one[:7] for one in found))
    documents, witnesses, similarities, *near = map(np.concatenate, columns)
    first = np.lexsort((near[3], -near[2]))[:MAX_NEAR]  # pairs of the same document come from one part
    near = [column[first] for column in near]
    counts = [sum(counted) for counted in zip((0, 0, 0), *(one[7:] for one in found))]
    return Decided(documents, witnesses, similarities, near[0], near[1], near[2], near[3], *counts)


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

    def __init__(self, part: Part, decisions: Decisions, components: bool, num_threads: int, most_scores: int) -> None:
        self.part, self.decisions = part, decisions
        self.components, self.num_threads, self.most_scores = components, num_threads, most_scores
        self.walks: list[Walk] = []
        self.idle: list[Walk] = []  # walks that no thread uses at the moment; append and pop are atomic

    def run(self) -> Iterator[int]:
        """Decide all documents; yield how many have been decided since the last time."""
        starts = self.part.starts
        large = np.flatnonzero(np.diff(starts) > LARGE)
        left = list(zip(starts[large].tolist(), starts[large].tolist(), starts[large + 1].tolist()))
        for start, at, stop in map_in_order(self.decide, _tasks(starts), self.num_threads):
            yield at - start
            if at < stop:
                left.append((start, at, stop))
        for start, at, stop in left:
            yield from self.decide_in_windows(start, at, stop)

    def walk(self) -> Walk:
        """Return a walk that no other thread uses; the caller appends it to `idle` afterwards."""
        try:
            return self.idle.pop()
        except IndexError:
            walk = Walk(self.part.make_similarity(), self.decisions)
            self.walks.append(walk)
            return walk

    def decide(self, documents: tuple[int, int]) -> tuple[int, int, int]:
        """Decide some components; return the first document, the one to continue with, and the one after the last.

        Of few but long texts, some are left after a certain amount of work.
        """
        start, stop = documents
        walk = self.walk()
        at = walk.run(start, stop)
        if self.components and at == stop:
            walk.attach(start, stop)
        self.idle.append(walk)
        return start, at, stop

    def decide_in_windows(self, first: int, start: int, stop: int) -> Iterator[int]:
        """Decide the documents of components from `start` on; those from `first` on have been decided.

        Yields how many documents have been decided since the last time.
        """
        at, as_kept = start, False
        while at < stop:
            end = min(stop, at + (STEP if self.num_threads == 1 else max(SMALLEST_WINDOW, (at - first) // GROWTH)))
            chunks: list[tuple[int, int, Scores | None]] = [(at, end, None)]
            if self.num_threads > 1 and at > first:
                chunks = self._scored(at, end, as_kept)
            if not self.walks:
                self.idle.append(self.walk())
            walk = self.walks[0]  # always the same: the pairs that it remembers save comparisons; no thread uses it now
            before = walk.kept
            for begin, last, scores in chunks:
                while begin < last:
                    decided = walk.run(begin, last, scores)
                    yield decided - begin
                    begin = decided
            as_kept = walk.kept - before >= MOSTLY_KEPT * (chunks[-1][1] - at)
            at = chunks[-1][1]
        if self.components:
            steps = [(begin, min(begin + TASK, stop)) for begin in range(first, stop, TASK)]
            for _ in map_in_order(self._attach, steps, self.num_threads):
                yield 0

    def _scored(self, start: int, stop: int, as_kept: bool) -> list[tuple[int, int, Scores | None]]:
        """Begin a window, and score its documents in threads; returns the ranges of documents and their scores."""
        most = self.decisions.begin_window(start, stop, self.most_scores, as_kept)
        ends = np.cumsum(most)
        if ends[-1] < WORTH_THREADS:
            return [(start, start + len(most), None)]
        wanted = np.arange(1, CHUNKS * self.num_threads) * ends[-1] // (CHUNKS * self.num_threads)
        bounds = np.unique(np.concatenate([[0], np.searchsorted(ends, wanted) + 1, [len(most)]])) + start
        return list(map_in_order(self._score, zip(bounds.tolist(), bounds[1:].tolist()), self.num_threads))

    def _score(self, documents: tuple[int, int]) -> tuple[int, int, Scores]:
        walk = self.walk()
        scores = walk.score(*documents)
        self.idle.append(walk)
        return (*documents, scores)

    def _attach(self, documents: tuple[int, int]) -> None:
        walk = self.walk()
        walk.attach(*documents)
        self.idle.append(walk)

    def outcome(self) -> Decided:
        """Return what was decided."""
        first, ranks = self.part.first, self.part.ranks
        witness, similarity = self.decisions.outcome()
        removed = np.flatnonzero(witness >= 0).astype(np.int32)
        near = [walk.near() for walk in self.walks]
        documents, others, similarities = map(
            np.concatenate, zip((np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0)), *near)
        )
        return Decided(
            removed + np.int32(first),
            witness[removed] + np.int32(first),
            similarity[removed],
            documents + np.int32(first),
            others + np.int32(first),
            similarities,
            ranks[documents],
            sum(walk.candidates for walk in self.walks),
            sum(walk.compared for walk in self.walks),
            sum(walk.capped for walk in self.walks),
        )


def pairs(
    make_pairs: Callable[[], Pairs],
    first: int,
    stop: int,
    num_threads: int,
    report: Callable[[int], object],
    step: int = STEP,
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
    step : int, optional
        The documents of a task of a thread.

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

    ranges = ((document, max(document - step, stop)) for document in range(first, stop, -step))
    for at, last, found in map_in_order(run, ranges, num_threads):
        yield found
        while at > last:
            at, last, found = run((at, last))
            yield found
        report(at)
