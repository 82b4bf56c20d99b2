"""The documents that share a bucket, by component, with the links, sketches and texts that decisions need.

Without a bound, or where all of it fits, there is one partition. Else the components are divided into partitions that
fit, and the links, sketches and texts of each are read together: they are written in files partition by partition, and
each is read once. A component that is larger than the bound is a partition of its own, in mapped files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lsh.base.arrays import Array
from lsh.engine.corpus import THREAD_BYTES, TOGETHER_BYTES, CollisionError, Corpus
from lsh.engine.placing import BUFFER, PartitionedRows, PartitionedTexts, ends_of
from lsh.links.comparing import Similarity
from lsh.links.grouping import Components
from lsh.links.linking import Order
from lsh.text.batch import Batch, same_texts

DOCUMENTS_STEP = 1 << 16  # documents at once
SMALLEST_PARTITION = 1 << 20  # bytes


class Partition(NamedTuple):
    """Whole components, with their links, sketches and texts; documents are numbers from 0.

    Attributes
    ----------
    first : int
        The number of the first document among those of all partitions.
    starts : numpy.ndarray
        int64: the first document of each component, and the number of documents.
    ranks : numpy.ndarray
        int32: the place of each document in the order of the walk, among those of all partitions.
    documents : numpy.ndarray
        int32: the position of each document.
    links : numpy.ndarray
        int32, shape ``(bands, documents)``: for each document the last one before it in the same bucket, or -1.
    make_similarity : callable
        Returns a new similarity of the documents; each thread needs its own.
    """

    first: int
    starts: Array
    ranks: Array
    documents: Array
    links: Array
    make_similarity: Callable[[], Similarity]


class Layout:
    """The documents that share a bucket, component by component.

    Parameters
    ----------
    corpus : Corpus
        All documents.
    order : Order
        The order in which they are decided.
    in_order : bool, optional
        Put the documents of each partition into this order, and not component by component. Without a bound there is
        one partition then, and no components are made.
    copies : bool, optional
        Link copies of a text, too, so that each is a document of its own.

    Attributes
    ----------
    documents : numpy.ndarray
        int32: the positions, partition by partition.
    num_references : int
        How many of them are not of the first collection. They come first in the order, and are all kept.
    ranks, starts : numpy.ndarray
        int32 and int64: the place of each in the order of the walk; where each component begins.
    firsts : numpy.ndarray
        int32: by position the first document with the same bytes; -1 if it takes no part.
    """

    def __init__(self, corpus: Corpus, order: Order, in_order: bool = False, copies: bool = False) -> None:
        self._corpus, self._order, self._in_order, self._with_copies = corpus, order, in_order, copies
        self.firsts, self._found, shares = corpus.linked(order, copies)
        self.shared = sum(band.shared for band in self._found)
        self.left_out = sum(band.left_out for band in self._found)
        self.num_rows = len(self._found)  # of the links
        self.documents = order.documents(shares)
        del shares
        corpus.budget.trim()
        count = len(self.documents)
        self.num_references = int(np.count_nonzero(self.documents >= corpus.offsets[1]))
        corpus.reserve(count)
        self._numbers = np.full(corpus.total, -1, np.int32)  # by position
        self._set_numbers()
        if in_order and not corpus.budget.is_bounded:
            self.ranks, self.starts = np.arange(count, dtype=np.int32), np.array([0, count], np.int64)
            return
        components = Components(count)
        for band in self._found:
            for _, pairs in band.pairs.chunks():
                components.connect(pairs, self._numbers)
        self.ranks, self.starts = components.order()
        del components
        corpus.reserve(count, int(np.diff(self.starts).max(initial=0)))
        self.documents = self.documents[self.ranks]
        self._set_numbers()
        corpus.budget.trim()

    def copies(self, stop: int) -> Array:
        """Return the positions below `stop` of documents that their first copy stands for, int32."""
        return np.concatenate([np.empty(0, np.int32), *self._copies(stop)])

    def _copies(self, stop: int) -> Iterator[Array]:
        for start in range(0, 0 if self._with_copies else stop, DOCUMENTS_STEP):
            some = self.firsts[start : min(start + DOCUMENTS_STEP, stop)]
            is_copy = (some >= 0) & (some != np.arange(start, start + len(some), dtype=np.int32))
            yield np.flatnonzero(is_copy).astype(np.int32) + np.int32(start)

    def copied(self) -> Array | None:
        """Return which documents stand for copies, bool; ``None`` if none does."""
        flags = np.zeros(len(self.documents), np.bool_)
        for copies in self._copies(self._corpus.total):
            numbers = self._numbers[self.firsts[copies]]
            flags[numbers[numbers >= 0]] = True
        return flags if flags.any() else None

    def ranks_of(self, positions: Array) -> Array:
        """Return numbers that ascend as some positions do in the order of the walk."""
        chosen = np.zeros(self._corpus.total, np.bool_)
        chosen[positions] = True
        walked = self._order.documents(chosen)
        order = np.argsort(walked)
        return order[np.searchsorted(walked, positions, sorter=order)]

    def _set_numbers(self) -> None:
        for start in range(0, len(self.documents), DOCUMENTS_STEP):
            some = self.documents[start : start + DOCUMENTS_STEP]
            self._numbers[some] = np.arange(start, start + len(some), dtype=np.int32)

    def partitions(self, min_equal: int) -> Iterator[Partition]:
        """Yield the partitions in order.

        Parameters
        ----------
        min_equal : int
            The components that are equal in a pair that is compared further; see `Similarity`.

        Raises
        ------
        CollisionError
            If texts are not identical although their content keys are.
        """
        corpus, budget = self._corpus, self._corpus.budget
        if budget.is_bounded:
            ends = self._ends()
            if not budget.has_room(int(ends[-1])):
                yield from self._placed_partitions(ends, min_equal)
                return
        if self._in_order:
            self._put_in_order(np.array([0, len(self.documents)]))
        links = corpus.links(self._found, self._numbers, len(self.documents))
        sketches = corpus.take_sketches(self._numbers, len(self.documents))
        members, places, batch = corpus.texts(self.firsts, self._compared())
        corpus.free_texts()
        texts, numbers = np.full(len(self.documents), -1, np.int32), self._numbers[members]
        texts[numbers[numbers >= 0]] = places[numbers >= 0]
        del members, places, numbers
        self._numbers = np.empty(0, np.int32)
        make_similarity = corpus.similarity(sketches, batch, texts, min_equal)
        yield Partition(0, self.starts, self.ranks, self.documents, links, make_similarity)

    def _compared(self) -> Array:
        """Return by position whether the text of a document is needed to compare it, bool."""
        return self._numbers >= 0 if self._corpus.is_exact else np.zeros(self._corpus.total, np.bool_)

    def _put_in_order(self, bounds: Array) -> None:
        """Put the documents of each partition into the order of the walk; `bounds` has where they begin and the end."""
        for begin, end in pairwise(bounds.tolist()):
            order = np.argsort(self.ranks[begin:end], kind="stable")
            self.ranks[begin:end] = self.ranks[begin:end][order]
            self.documents[begin:end] = self.documents[begin:end][order]
        self._set_numbers()

    def _ends(self) -> Array:
        """Return the bytes that the documents before each component take, and those of all, int64."""
        corpus = self._corpus
        ends = np.empty(len(self.documents) + 1, np.int64)
        ends[0] = 0
        for start, sizes in corpus.sizes.chunks():
            numbers = self._numbers[start : start + len(sizes)]
            ends[numbers[numbers >= 0] + 1] = sizes[numbers >= 0]
        ends[1:] += corpus.sketches.row_size + 8 * len(self._found)
        ends[1:] += TOGETHER_BYTES + THREAD_BYTES * corpus.num_threads
        np.cumsum(ends, out=ends)
        return ends[self.starts]

    # ---- several partitions ----

    def _placed_partitions(self, ends: Array, min_equal: int) -> Iterator[Partition]:
        """Yield partitions that fit into memory."""
        corpus, budget = self._corpus, self._corpus.budget
        budget.check_space(int(ends[-1]))
        budget.release_columns()
        max_bytes = max(budget.free // 3, SMALLEST_PARTITION)
        bounds = _divided(ends, max_bytes)  # the first component of each partition, and their number
        firsts = self.starts[bounds]  # the first document of each partition, and their number
        if self._in_order:
            self._put_in_order(firsts)
        placed = _PartitionedDocuments(self, firsts)
        with budget.reserved(max_bytes + placed.buffers):  # so that there is memory for a partition when they are read
            placed.distribute()
        members = corpus.members(self.firsts, self._compared())
        alone = members[(self.firsts[members] == members) & (self._numbers[members] < 0)]  # they share no bucket
        checks = alone[_divided(ends_of(corpus.sizes.take(alone)), max_bytes)[:-1]]
        with budget.reserved(max_bytes + placed.buffers):
            placed.distribute_texts(members, checks)
        del members, alone
        self._numbers = np.empty(0, np.int32)
        budget.trim()
        for number, (begin, end) in enumerate(pairwise(firsts.tolist())):
            starts = self.starts[bounds[number] : bounds[number + 1] + 1] - begin
            if self._in_order:
                starts = starts[[0, -1]]
            links = placed.links_of(number, end - begin)
            sketches = placed.sketches_of(number, begin, end)
            batch, texts = placed.texts_of(number, self.documents[begin:end], corpus.is_exact)
            make_similarity = corpus.similarity(sketches, batch, texts, min_equal)
            yield Partition(begin, starts, self.ranks[begin:end], self.documents[begin:end], links, make_similarity)
            del links, sketches, batch, texts, make_similarity
            budget.trim()
        for number in range(len(bounds) - 1, len(bounds) - 1 + len(checks)):
            placed.texts_of(number, np.empty(0, np.int32), False)


def _divided(ends: Array, max_bytes: int) -> list[int]:
    """Divide items into ranges of at most `max_bytes` bytes or of one item; return where each begins, and their number.

    `ends` has the bytes before each item, and those of all.
    """
    bounds = [0]
    while bounds[-1] < len(ends) - 1:
        within = int(np.searchsorted(ends, ends[bounds[-1]] + max_bytes, side="right")) - 1
        bounds.append(max(within, bounds[-1] + 1))
    return bounds


class _PartitionedDocuments:
    """Links, sketches and texts, distributed to the partitions."""

    def __init__(self, layout: Layout, firsts: Array) -> None:
        self._layout, self._corpus = layout, layout._corpus
        self._first_numbers = firsts[:-1].astype(np.int32)
        budget, num_partitions = self._corpus.budget, len(firsts) - 1
        self._buffer = min(BUFFER, budget.free // 16)
        sketches = self._corpus.sketches
        self._links = PartitionedRows(budget, num_partitions, np.int32, 3, self._buffer)
        self._sketches = PartitionedRows(
            budget, num_partitions, sketches.dtype, self._corpus.hasher.num_seeds, self._buffer
        )
        self.buffers = 3 * self._buffer  # bytes that are in memory at the same time

    def distribute(self) -> None:
        """Distribute links and sketches; their columns are freed."""
        layout, corpus = self._layout, self._corpus
        for band, links in enumerate(layout._found):
            for _, pairs in links.pairs.chunks():
                numbers = layout._numbers[pairs]  # of documents of one partition
                partitions = self._partition_of_numbers(numbers[:, 0])
                numbers -= self._first_numbers[partitions][:, None]
                self._links.append(partitions, np.column_stack([np.full(len(numbers), band, np.int32), numbers]))
            links.pairs.free()
        layout._found.clear()
        self._links.finish()
        for at, rows in corpus.sketches.chunks():
            numbers = layout._numbers[at : at + len(rows)]
            chosen = numbers >= 0
            self._sketches.append(self._partition_of_numbers(numbers[chosen]), rows[chosen])
        corpus.sketches.free()
        self._sketches.finish()

    def distribute_texts(self, members: Array, checks: Array) -> None:
        """Distribute the texts of `members`; those that share no bucket go to partitions that begin at `checks`."""
        layout, corpus = self._layout, self._corpus
        self._first_checks = checks
        num_partitions = len(self._first_numbers) + len(checks)
        self._positions = PartitionedRows(corpus.budget, num_partitions, np.int32, None, self._buffer)
        self._texts = PartitionedTexts(corpus.budget, num_partitions, self._buffer)
        for positions, batch in corpus.needed_texts(members):
            partitions = self._partition_of(layout.firsts[positions])
            self._positions.append(partitions, positions)
            self._texts.append(partitions, batch)
        self._positions.finish()
        self._texts.finish()
        corpus.free_texts()

    def _partition_of_numbers(self, numbers: Array) -> Array:
        """Return the partition of each document that shares a bucket."""
        return np.searchsorted(self._first_numbers, numbers, side="right") - 1

    def _partition_of(self, firsts: Array) -> Array:
        """Return the partition of each first copy."""
        numbers = self._layout._numbers[firsts]
        checks = len(self._first_numbers) - 1 + np.searchsorted(self._first_checks, firsts, side="right")
        return np.where(numbers >= 0, self._partition_of_numbers(numbers), checks)

    def links_of(self, partition: int, count: int) -> Array:
        """Return the links of a partition with `count` documents."""
        links = self._corpus.budget.array((self._layout.num_rows, count), np.int32)
        links.fill(-1)
        for rows in self._links.read(partition):
            links[rows[:, 0], rows[:, 1]] = rows[:, 2]
            self._corpus.budget.release()
        return links

    def sketches_of(self, partition: int, begin: int, end: int) -> Array:
        """Return the sketches of a partition, which has the documents with numbers from `begin` to `end` - 1."""
        sketches = self._corpus.budget.array((end - begin, self._corpus.hasher.num_seeds), self._corpus.sketches.dtype)
        order, at = np.argsort(self._layout.documents[begin:end], kind="stable"), 0
        for rows in self._sketches.read(partition):  # in order of position
            sketches[order[at : at + len(rows)]] = rows
            at += len(rows)
            self._corpus.budget.release()
        return sketches

    def texts_of(self, partition: int, documents: Array, compared: bool) -> tuple[Batch, Array]:
        """Return one of each identical text of a partition, and the index of the text of each of some documents.

        The index is -1 for a document whose text is not there; all are there if they are `compared`.

        Raises
        ------
        CollisionError
            If texts are not identical although their content keys are.
        """
        positions = np.concatenate([np.empty(0, np.int32), *self._positions.read(partition)])
        keys, stands, groups = np.unique(self._layout.firsts[positions], return_index=True, return_inverse=True)
        is_stand = np.zeros(len(positions), np.bool_)
        is_stand[stands] = True
        index = np.cumsum(is_stand) - 1  # in `texts`
        sizes = self._texts.sizes(partition)
        ends = ends_of(sizes[is_stand])
        kept, write = self._corpus.budget.bytes_to_fill(int(ends[-1]))
        texts = Batch.of_bytes(kept, ends)
        at = 0
        for batch in self._texts.read(partition):
            here = slice(at, at + len(batch))
            own = np.flatnonzero(is_stand[here])
            if len(own):
                first = int(index[at + own[0]])
                chosen = np.empty(int(ends[first + len(own)] - ends[first]), np.uint8)
                batch.take(own).write(chosen)
                write(int(ends[first]), chosen)
            copies = np.flatnonzero(~is_stand[here])
            if not same_texts(texts, index[stands[groups[at + copies]]], batch, copies):
                raise CollisionError
            at += len(batch)
            self._corpus.budget.release()
        firsts = self._layout.firsts[documents]
        is_there = np.isin(firsts, keys)
        if compared and not is_there.all():  # only if they are of another partition, so that they are not copies
            raise CollisionError
        places = np.full(len(documents), -1, np.int32)
        places[is_there] = index[stands[np.searchsorted(keys, firsts[is_there])]]
        return texts, places
