"""Deciding documents component by component, in threads.

What is decided about a document depends on its component only, so threads decide components at the same time, many
small ones in one call. The result does not depend on the threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from lsh.base.arrays import Array
from lsh.base.threads import Idle, map_in_order, worth
from lsh.engine.deciding import MAX_NEAR, ClusterState, GreedyClusterer
from lsh.engine.layout import Partition
from lsh.links.comparing import Pairs

TASK = 512  # documents that a thread decides in one call; a component that has more is decided alone
FAMILY = 128  # documents; one that meets most of so many that are kept, or more, is compared with all of these at once
DOCUMENTS_STEP = 1024  # documents whose pairs a thread finds in one call
MOST_PAIRS = 1 << 16  # candidates of the documents whose pairs a thread finds in one call; one may have more


class ClusterOptions(NamedTuple):
    """How documents are decided; see `ClusterState`."""

    num_references: int
    threshold: float
    limit: int
    components: bool
    bits: int
    family_bytes: int
    floor: float
    references: Array | None = None  # bool, by position
    copied: Array | None = None  # bool, by document; None if none has copies, or for components


class Compared(NamedTuple):
    """Pairs of documents: the first ones and the others (int32), and the similarity of the two (float64)."""

    documents: Array
    others: Array
    similarities: Array

    @classmethod
    def joined(cls, found: Iterable[tuple[Array, Array, Array]], first: int | np.int32 = 0) -> Compared:
        """Join pairs whose documents are numbers from `first` on."""
        none = np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0)
        documents, others, similarities = map(np.concatenate, zip(none, *found))
        documents += np.int32(first)
        others += np.int32(first)
        return cls(documents, others, similarities)


class ClusterResult(NamedTuple):
    """What was decided about documents.

    Attributes
    ----------
    removed : Compared
        The documents that are removed, and their witnesses.
    better : Compared
        Better witnesses for later copies of removed documents; see `GreedyClusterer.better`.
    near : Compared
        The most similar pairs below the threshold, the most similar first, then in the order of the walk.
    near_ranks : numpy.ndarray
        int32: the places of the first documents of `near` in the order of the walk.
    compared, left_out : int
        How many pairs were compared, and how many comparisons the limit left out.
    """

    removed: Compared
    better: Compared
    near: Compared
    near_ranks: Array
    compared: int
    left_out: int


def decide(
    partitions: Iterable[Partition],
    options: ClusterOptions,
    make_members: Callable[[tuple[int, ...]], Array],
    num_threads: int,
    report: Callable[[int], object],
) -> ClusterResult:
    """Decide all documents of some partitions.

    Parameters
    ----------
    partitions : iterable of Partition
        The documents. A partition is not used any more when the next one is asked for.
    options : ClusterOptions
        How they are decided.
    make_members : callable
        Returns an uninitialized array of int32 of a shape.
    num_threads : int
        1 or more; the result does not depend on it.
    report : callable
        Called with the number of documents that have been decided, from time to time.
    """
    found, floor, done = list[ClusterResult](), options.floor, 0
    for partition in partitions:
        shape, threads = partition.links.shape, worth(num_threads, partition.links.size)
        in_threads = partial(map_in_order, num_threads=threads)
        runs = make_members(shape) if options.components else None
        family = FAMILY, options.bits, options.family_bytes // num_threads
        references = None if options.references is None else options.references[partition.documents].astype(np.int32)
        last = partition.first + len(partition.documents)
        copied = None if options.copied is None else options.copied[partition.first : last]
        values = partition.ranks, options.num_references, options.threshold, options.limit, runs, *family
        state = ClusterState(partition.links, make_members(shape), *values, floor, in_threads, references, copied)
        work = _Clustering(partition, state, options.components, num_threads)
        for decided in work.run():
            done += decided
            report(done)
        found.append(work.outcome())
        floor = state.floor
        del partition, runs, values, state, work  # before the next partition is read
    return _joined(found)


def _joined(found: list[ClusterResult]) -> ClusterResult:
    """Return what was decided about all partitions."""
    near = Compared.joined(one.near for one in found)
    ranks = np.concatenate([np.empty(0, np.int32), *(one.near_ranks for one in found)])
    first = np.lexsort((ranks, -near.similarities))[:MAX_NEAR]  # pairs of the same document come from one partition
    return ClusterResult(
        Compared.joined(one.removed for one in found),
        Compared.joined(one.better for one in found),
        Compared(*(column[first] for column in near)),
        ranks[first],
        sum(one.compared for one in found),
        sum(one.left_out for one in found),
    )


class _Task(NamedTuple):
    """Documents `start` to `stop` - 1, whole components, decided up to `at`, by `clusterer` if it was begun.

    Then they are looked at `again`, up to `at`.
    """

    start: int
    at: int
    stop: int
    clusterer: GreedyClusterer | None = None
    again: bool = False


def _tasks(starts: Array) -> Iterator[_Task]:
    """Yield tasks of one or more whole components."""
    first = 0
    while first < len(starts) - 1:
        stop = int(np.searchsorted(starts, starts[first] + TASK, side="right")) - 1
        stop = max(stop, first + 1)
        yield _Task(int(starts[first]), int(starts[first]), int(starts[stop]))
        first = stop


class _Clustering:
    """The clusterers of all threads."""

    def __init__(self, partition: Partition, state: ClusterState, components: bool, num_threads: int) -> None:
        self.partition, self.state, self.components, self.num_threads = partition, state, components, num_threads
        self.idle = Idle(lambda: GreedyClusterer(partition.make_similarity(), state))  # without `self`: freed at once

    def run(self) -> Iterator[int]:
        """Decide all documents; yield how many have been decided since the last time.

        Tasks that are not done, those of a large component or of long texts, go on before others begin: each holds the
        memory of a clusterer.
        """
        more, left = _tasks(self.partition.starts), deque[_Task]()
        while True:
            tasks = iter(lambda: left.popleft() if left else next(more, None), None)
            for number, task in map_in_order(self.decide, tasks, self.num_threads):
                yield number
                if task.at < task.stop:
                    left.append(task)
            if not left:
                return

    def decide(self, task: _Task) -> tuple[int, _Task]:
        """Go on with a task for a certain amount of work; return how many documents were decided, and what is left."""
        clusterer = self.idle.take() if task.clusterer is None else task.clusterer
        task, decided = task._replace(clusterer=clusterer), 0
        if not task.again:
            at = clusterer.run(task.at, task.stop)
            task, decided = task._replace(at=at), at - task.at
            if at < task.stop:
                return decided, task
            if self.components:
                clusterer.attach(task.start, task.stop)
            task = task._replace(at=task.start, again=True)
        task = task._replace(at=clusterer.look_again(task.at, task.stop))
        if task.at == task.stop:
            self.idle.items.append(clusterer)
        return decided, task

    def outcome(self) -> ClusterResult:
        """Return what was decided."""
        first = np.int32(self.partition.first)
        witness, similarity = self.state.outcome()
        removed = np.flatnonzero(witness >= 0).astype(np.int32)
        clusterers = self.idle.items  # all of them, as no task is left
        near = Compared.joined((clusterer.near() for clusterer in clusterers), first)
        return ClusterResult(
            Compared(removed + first, witness[removed] + first, similarity[removed]),
            Compared.joined((clusterer.better() for clusterer in clusterers), first),
            near,
            self.partition.ranks[near.documents - first],
            sum(clusterer.compared for clusterer in clusterers),
            sum(clusterer.left_out for clusterer in clusterers),
        )


def pairs(
    make_pairs: Callable[[], Pairs],
    first: int,
    stop: int,
    num_threads: int,
    report: Callable[[int], object],
    step: int = DOCUMENTS_STEP,
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
    idle = Idle(make_pairs)

    def run(documents: tuple[int, int]) -> tuple[int, int, tuple[Array, Array, Array]]:
        """Find pairs of some documents; returns the documents that are left, and the pairs."""
        with idle.one() as finder:
            at, numbers, partners, similarities = finder.run(*documents, MOST_PAIRS)
        return at, documents[1], (numbers, partners, similarities)

    ranges = ((document, max(document - step, stop)) for document in range(first, stop, -step))
    for at, last, found in map_in_order(run, ranges, num_threads):
        yield found
        while at > last:
            at, last, found = run((at, last))
            yield found
        report(at)
