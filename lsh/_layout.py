"""The documents that share a bucket, in order of their components, and what is needed to decide them.

Without a bound, or where all of it fits, there is one part. Else the components are divided into parts that fit, and
the links, sketches and texts of each are read together: they are written in files part by part, and each part is read
once. A component that is larger than the bound is a part of its own, in mapped files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lsh._batch import Batch
from lsh._comparing import Similarity, same_texts
from lsh._corpus import CollisionError, Corpus
from lsh._deciding import Components
from lsh._linking import Order
from lsh._placing import PlacedRows, PlacedTexts
from lsh._spill import Array

STEP = 1 << 16  # documents that are distributed at once
DOCUMENT_BYTES = 64  # a document of a part takes, besides links, sketch and text
SMALLEST_PART = 1 << 20  # bytes


class Part(NamedTuple):
    """Whole components, with what is needed to decide them; documents are numbers from 0.

    Attributes
    ----------
    first : int
        The number of the first document among those of all parts.
    starts : numpy.ndarray
        int64: the first document of each component, and the number of documents.
    ranks : numpy.ndarray
        int32: the place of each document in the order of the walk, among those of all parts.
    links : numpy.ndarray
        int32, shape ``(bands, documents)``: for each document the last one before it in the same bucket, or -1.
    make_similarity : callable
        Returns a new similarity of the documents; each thread needs its own.
    """

    first: int
    starts: Array
    ranks: Array
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

    Attributes
    ----------
    documents : numpy.ndarray
        int32: the positions, component by component.
    ranks, starts : numpy.ndarray
        int32 and int64: the place of each in the order of the walk; where each component begins.
    firsts : numpy.ndarray
        int32: by position the first document with the same bytes; -1 if it takes no part.
    """

    def __init__(self, corpus: Corpus, order: Order) -> None:
        self._corpus = corpus
        self.firsts, self._found, shares = corpus.linked(order, copies=False)
        documents = order.documents(shares)
        corpus.reserve(len(documents))
        self._numbers = np.full(corpus.total, -1, np.int32)  # by position
        self._numbers[documents] = np.arange(len(documents), dtype=np.int32)
        components = Components(len(documents))
        for column in self._found:
            for _, pairs in column.parts():
                components.connect(pairs, self._numbers)
        self.ranks, self.starts = components.order()
        self.documents = documents[self.ranks]
        self._numbers[self.documents] = np.arange(len(documents), dtype=np.int32)

    def parts(self, least_equal: int | None) -> Iterator[Part]:
        """Yield the parts in order.

        Parameters
        ----------
        least_equal : int or None
            The components of a sketch that are equal in a pair that is compared by sets. ``None``: fingerprints are
            compared.

        Raises
        ------
        CollisionError
            If texts are not identical although their content keys are.
        """
        corpus, spill = self._corpus, self._corpus.spill
        if spill.is_bounded:
            ends = self._ends()
            if not spill.has_room(int(ends[-1])):
                yield from self._placed_parts(ends, least_equal)
                return
        members, places, batch = corpus.texts(self.firsts, self._numbers >= 0)
        positions, order = self._by_position()
        texts = np.empty(len(order), np.int32)
        texts[order] = places[np.searchsorted(members, positions)]
        links = corpus.links(self._found, self._numbers, len(order))
        sketches = corpus.take_sketches(positions, order)
        make_similarity = corpus.similarity(sketches, batch, texts, least_equal)
        yield Part(0, self.starts, self.ranks, links, make_similarity)

    def _by_position(self) -> tuple[Array, Array]:
        """Return the positions of the documents in ascending order, and the number of each."""
        positions = np.flatnonzero(self._numbers >= 0).astype(np.int32)
        return positions, self._numbers[positions]

    def _ends(self) -> Array:
        """Return the bytes that the documents before each component take, and those of all, int64."""
        corpus = self._corpus
        positions, order = self._by_position()
        sizes = np.empty(len(order), np.int64)
        sizes[order] = corpus.sizes.take(positions)
        sizes += corpus.sketches.row_size + 8 * len(self._found) + DOCUMENT_BYTES
        np.cumsum(sizes, out=sizes)
        return np.concatenate([np.zeros(1, np.int64), sizes])[self.starts]

    # ---- several parts ----

    def _placed_parts(self, ends: Array, least_equal: int | None) -> Iterator[Part]:
        """Yield parts that fit into memory."""
        spill = self._corpus.spill
        spill.check_space(int(ends[-1]))
        spill.release_columns()
        most = max(spill.free // 3, SMALLEST_PART)
        bounds = [0]  # the first component of each part, and their number
        while bounds[-1] < len(ends) - 1:
            within = int(np.searchsorted(ends, ends[bounds[-1]] + most, side="right")) - 1
            bounds.append(max(within, bounds[-1] + 1))
        firsts = self.starts[bounds]  # the first document of each part, and their number
        members, checks = self._members(most)
        placed = _Placed(self, firsts, checks)
        placed.distribute(members)
        for number, (start, stop) in enumerate(pairwise(bounds)):
            begin, end = int(firsts[number]), int(firsts[number + 1])
            links = placed.links_of(number, end - begin)
            sketches = placed.sketches_of(number, begin, end)
            batch, texts = placed.texts_of(number, self.documents[begin:end])
            make_similarity = self._corpus.similarity(sketches, batch, texts, least_equal)
            yield Part(begin, self.starts[start : stop + 1] - begin, self.ranks[begin:end], links, make_similarity)
            del links, sketches, batch, texts, make_similarity
            spill.trim()
        for number in range(len(bounds) - 1, len(bounds) - 1 + len(checks)):
            placed.texts_of(number, np.empty(0, np.int32))

    def _members(self, most: int) -> tuple[Array, Array]:
        """Return the documents whose texts are needed, and parts for those that share no bucket and have copies.

        Returns
        -------
        members : numpy.ndarray
            int32: positions, ascending.
        checks : numpy.ndarray
            int32: the position at which each part begins of first copies that share no bucket.
        """
        corpus, firsts = self._corpus, self.firsts
        has_copies = np.zeros(corpus.total, np.bool_)
        for start in range(0, corpus.total, STEP):
            some = firsts[start : start + STEP]
            has_copies[some[(some >= 0) & (some != np.arange(start, start + len(some), dtype=np.int32))]] = True
        members, checks, size = [np.empty(0, np.int32)], list[int](), most
        for start in range(0, corpus.total, STEP):
            some = firsts[start : start + STEP]
            needed = (some >= 0) & (has_copies[some] | (self._numbers[some] >= 0))
            members.append((start + np.flatnonzero(needed)).astype(np.int32))
            here = start + np.flatnonzero(has_copies[start : start + STEP] & (self._numbers[start : start + STEP] < 0))
            for position, bytes_of in zip(here.tolist(), corpus.sizes.take(here).tolist()):
                if size + bytes_of > most:
                    checks.append(position)
                    size = 0
                size += bytes_of
        return np.concatenate(members), np.array(checks, np.int32)


class _Placed:
    """What the parts need, distributed to them."""

    def __init__(self, layout: Layout, firsts: Array, checks: Array) -> None:
        self._layout, self._corpus = layout, layout._corpus
        self._first_numbers, self._first_checks = firsts[:-1].astype(np.int32), checks
        spill, num_parts = self._corpus.spill, len(firsts) - 1
        buffer = spill.free // 8
        sketches = self._corpus.sketches
        self._links = PlacedRows(spill, num_parts, np.int32, 3, buffer)
        self._sketches = PlacedRows(spill, num_parts, sketches.dtype, self._corpus.hasher.num_seeds, buffer)
        self._positions = PlacedRows(spill, num_parts + len(checks), np.int32, None, buffer)
        self._texts = PlacedTexts(spill, num_parts + len(checks), buffer)

    def distribute(self, members: Array) -> None:
        """Distribute links, sketches and texts; their columns are freed."""
        layout, corpus = self._layout, self._corpus
        for band, column in enumerate(layout._found):
            for _, pairs in column.parts():
                numbers = layout._numbers[pairs]
                parts = self._part_of_numbers(numbers[:, 0])
                numbers -= self._first_numbers[parts][:, None]
                self._links.append(parts, np.column_stack([np.full(len(numbers), band, np.int32), numbers]))
            column.free()
        layout._found.clear()
        self._links.finish()
        for at, rows in corpus.sketches.parts():
            numbers = layout._numbers[at : at + len(rows)]
            chosen = numbers >= 0
            self._sketches.append(self._part_of_numbers(numbers[chosen]), rows[chosen])
        corpus.sketches.free()
        self._sketches.finish()
        for positions, batch in corpus.needed_texts(members):
            parts = self._part_of(layout.firsts[positions])
            self._positions.append(parts, positions)
            self._texts.append(parts, batch)
        self._positions.finish()
        self._texts.finish()

    def _part_of_numbers(self, numbers: Array) -> Array:
        """Return the part of each document that shares a bucket."""
        return np.searchsorted(self._first_numbers, numbers, side="right") - 1

    def _part_of(self, firsts: Array) -> Array:
        """Return the part of each first copy."""
        numbers = self._layout._numbers[firsts]
        checks = len(self._first_numbers) - 1 + np.searchsorted(self._first_checks, firsts, side="right")
        return np.where(numbers >= 0, self._part_of_numbers(numbers), checks)

    def links_of(self, part: int, count: int) -> Array:
        """Return the links of a part with `count` documents."""
        links = self._corpus.spill.array((self._corpus.bands.num_bands, count), np.int32)
        links.fill(-1)
        rows = self._links.read(part)
        links[rows[:, 0], rows[:, 1]] = rows[:, 2]
        return links

    def sketches_of(self, part: int, begin: int, end: int) -> Array:
        """Return the sketches of a part, which has the documents with numbers from `begin` to `end` - 1."""
        rows = self._sketches.read(part)  # in order of position
        sketches = self._corpus.spill.array(rows.shape, rows.dtype)
        sketches[np.argsort(self._layout.documents[begin:end], kind="stable")] = rows
        return sketches

    def texts_of(self, part: int, documents: Array) -> tuple[Batch, Array]:
        """Return one of each identical text of a part, and the index of the text of each of some documents.

        Raises
        ------
        CollisionError
            If texts are not identical although their content keys are.
        """
        positions = self._positions.read(part)
        keys, stands, groups = np.unique(self._layout.firsts[positions], return_index=True, return_inverse=True)
        is_stand = np.zeros(len(positions), np.bool_)
        is_stand[stands] = True
        index = np.cumsum(is_stand) - 1  # among the texts that stand for others
        sizes = self._texts.sizes(part)
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[is_stand])])
        kept = self._corpus.spill.array(int(ends[-1]), np.uint8)
        texts = Batch.of_bytes(kept, ends)
        at = 0
        for batch in self._texts.read(part):
            here = slice(at, at + len(batch))
            own = np.flatnonzero(is_stand[here])
            if len(own):
                first = int(index[at + own[0]])
                batch.take(own).write(kept[ends[first] : ends[first + len(own)]])
            copies = np.flatnonzero(~is_stand[here])
            if not same_texts(texts, index[stands[groups[at + copies]]], batch, copies):
                raise CollisionError
            at += len(batch)
        return texts, index[stands[np.searchsorted(keys, documents)]].astype(np.int32)
