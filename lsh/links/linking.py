"""Find documents with equal keys, such as band keys or content keys, within a limit of memory.

Documents have an order, in which they are decided. A link is a pair: a document, and the latest document before it in
this order that has the same key. If there is enough memory, all documents are linked at once, several bands at the same
time. Otherwise the keys are divided into parts by their hashes, and each part takes one pass over the column of keys.

A shared bucket is only a suspicion. Before it connects two documents, low bits of the components of their fingerprints
are compared (`LowBits`): a bucket is divided into groups, and a link leads to the latest document before in the same
group. A pair that is compared exactly later has so many equal components that it is in one group, so nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lsh.base.arrays import Array
from lsh.base.budget import MAX_DOCUMENTS, MemoryBudget, SpilledColumn
from lsh.base.threads import Idle
from lsh.links.comparing import keep_similar
from lsh.links.grouping import BucketFinder, pack_low_bits, select_part

ORDER_BYTES = 16  # per document, for `BucketFinder`: the order, a copy of it, and a check of both
FINDER_BYTES = 36  # per document and thread, for `BucketFinder`: key, record and table
PART_BYTES = 72  # per document of a part of the keys: key and number, twice, and what `BucketFinder` takes
MEMBER_BYTES = 72  # per document that shares a bucket of a band, for its groups; without its low bits
SHARE = 16  # documents that are put into groups at once, under a bound: one in so many of all, if no bucket has more
SAMPLED = (512, 8)  # keys of a band that are looked at to know that: at so many places, so many each
RARE = 64  # the most frequent of them is at most one in so many, a quarter of that, to be certain
MAX_PARTS = 1 << 12
FEW_PARTS = 4  # for one thread; several threads read the keys more often, which takes longest where parts are many
LIMIT = 1 << 16  # a document is compared with so many others of a bucket at most, to find its group
CHUNK = 1 << 16  # pairs that are made at once


def positions_of(flags: Array, start: int = 0) -> Array:
    """Return the places where `flags` is true, numbered from `start`: int32, ascending. Takes no other memory."""
    found, filled = np.empty(np.count_nonzero(flags), np.int32), 0
    for begin in range(0, len(flags), CHUNK):
        here = np.flatnonzero(flags[begin : begin + CHUNK])
        found[filled : filled + len(here)] = here + (start + begin)
        filled += len(here)
    return found


@dataclass(frozen=True, eq=False)
class Order:
    """The order in which documents are decided.

    Attributes
    ----------
    runs : list of tuple
        Ranges of documents: start, stop, and whether the range is in descending order.
    given : numpy.ndarray or None
        int32: all documents in an order that is not made of such ranges. Then `runs` is one range of all documents.
    entered : int
        A link leads to a document of the first `entered` runs.
    old_from : int
        Documents from this position on come first, and are not compared with each other.
    """

    runs: list[tuple[int, int, bool]]
    given: Array | None = None
    entered: int = 2
    old_from: int = MAX_DOCUMENTS

    def documents(self, chosen: Array) -> Array:
        """Return the documents for which `chosen` is true in this order, int32."""
        if self.given is not None:
            return self.given[chosen[self.given]]
        found = list[Array]()
        for start, stop, backwards in self.runs:
            run = positions_of(chosen[start:stop], start)
            found.append(run[::-1] if backwards else run)
        return np.ascontiguousarray(found[-1]) if len(found[0]) == 0 else np.concatenate(found)

    def num_entered(self, chosen: Array) -> int:
        """Return to how many of the chosen documents links can lead."""
        return sum(int(np.count_nonzero(chosen[start:stop])) for start, stop, _ in self.runs[: self.entered])


class LowBits(NamedTuple):
    """Low bits of the components of the fingerprint of each document.

    Attributes
    ----------
    rows : SpilledColumn, numpy.ndarray or None
        uint64: of each document; see `lsh.links.grouping.pack_low_bits`. ``None`` for 0 bits.
    bits : int
        How many of each component; 0: all documents of a bucket are one group.
    max_different : int
        A pair is in one group if at most so many components differ in these bits.
    """

    rows: SpilledColumn | Array | None
    bits: int
    max_different: int

    @property
    def row_size(self) -> int:
        """The bytes of a row."""
        return self.rows.row_size if isinstance(self.rows, SpilledColumn) else 0

    def of(self, sketches: Array) -> Array:
        """Return the rows for some sketches or fingerprints."""
        return pack_low_bits(sketches.astype(np.uint8, copy=False), self.bits)

    def take(self, documents: Array) -> tuple[Array, Array]:
        """Return rows in which those of some documents are, and the place of the row of each: int32."""
        if self.rows is None:
            return np.empty((0, 0), np.uint64), documents
        if isinstance(self.rows, np.ndarray):
            return self.rows, documents
        order = np.argsort(documents)
        places = np.empty(len(documents), np.int32)
        places[order] = np.arange(len(documents), dtype=np.int32)
        return self.rows.take(documents[order]), places


class BandLinks(NamedTuple):
    """The links of a band.

    Attributes
    ----------
    pairs : SpilledColumn
        int32: a document, and the latest one before it in its group; in no particular order.
    shared : int
        How many pairs of documents share a bucket.
    left_out : int
        How many comparisons of a document with a group were left out, in buckets of more than `LIMIT` documents.
    """

    pairs: SpilledColumn
    shared: int
    left_out: int


class Links:
    """Finds the links of documents.

    Parameters
    ----------
    budget : MemoryBudget
        Has the bound, and makes columns.
    order : Order
        The order of the documents.
    chosen : numpy.ndarray
        bool: which of all documents are linked.
    num_threads : int
        How many bands to link at the same time, at most.
    low_bits : LowBits, optional
        Of all documents, for `of_band`.
    keys : sequence of SpilledColumn, optional
        Of all bands, to find out whether a bucket may be large.

    Attributes
    ----------
    num_threads : int
        How many bands can be linked at the same time within the bound.
    num_bytes : int
        The memory that this takes, without arrays and columns of the budget.
    """

    def __init__(
        self,
        budget: MemoryBudget,
        order: Order,
        chosen: Array,
        num_threads: int,
        low_bits: LowBits | None = None,
        keys: Sequence[SpilledColumn] = (),
    ) -> None:
        self._budget, self._order, self._chosen, self._low_bits = budget, order, chosen, low_bits
        self._finder: BucketFinder | None = None  # of all documents at once, if the bound allows it
        self._part_finder: BucketFinder | None = None  # else of one part of the keys
        self._parts = 0
        self._member_bytes, self._most_members = 0, len(chosen)
        if low_bits is not None:
            self._member_bytes = MEMBER_BYTES + low_bits.row_size
        if budget.is_bounded and keys and not self._may_be_large(keys):
            self._member_bytes //= SHARE
            self._most_members //= SHARE
        if low_bits is not None and isinstance(low_bits.rows, SpilledColumn) and not budget.is_bounded:
            rows = low_bits.rows.in_one_piece()
            self._low_bits = low_bits._replace(rows=low_bits.rows.read() if rows is None else rows)
            low_bits.rows.free()
        self.num_threads = self._threads_at_once(num_threads)
        if self.num_threads:
            self._documents = order.documents(chosen)
            self._finder = BucketFinder(len(chosen), self._documents, order.num_entered(chosen))
            self.num_bytes = (ORDER_BYTES + self._each * self.num_threads) * len(chosen)
        else:
            self.num_threads = num_threads
            self._prepare_parts()
        self._idle = Idle(lambda: np.empty(len(chosen), np.uint64))  # arrays for keys

    def _may_be_large(self, keys: Sequence[SpilledColumn]) -> bool:
        """Return whether a bucket may have more than one in `SHARE` of all documents."""
        places, length = SAMPLED
        if len(self._chosen) <= RARE * places * length:
            return True
        starts = np.sort(np.random.RandomState(0).randint(0, len(self._chosen) - length, places)).tolist()
        is_used = np.concatenate([self._chosen[start : start + length] for start in starts])
        for column in keys:
            sampled = np.concatenate([column.read(start, start + length) for start in starts])
            _, counts = np.unique(sampled[is_used], return_counts=True)
            if counts.max(initial=0) > places * length // RARE:
                return True
        return False

    @property
    def _each(self) -> int:
        """The bytes per document and thread to link all documents at once."""
        return FINDER_BYTES + self._member_bytes

    def _threads_at_once(self, num_threads: int) -> int:
        """Return how many threads can link all documents at once within the bound; 0 if none can."""
        if not self._budget.is_bounded:
            return num_threads
        count = len(self._chosen)
        room = max(self._budget.room - ORDER_BYTES * count, 0)
        return min(num_threads, room // max(self._each * count, 1))

    def _prepare_parts(self) -> None:
        """Choose into how many parts the keys are divided, so that what each thread holds fits into the bound."""
        self._budget.release_columns()
        self._keys = max(int(np.count_nonzero(self._chosen)), 1)
        needed, room = (PART_BYTES + self._member_bytes) * self._keys, max(self._budget.room, 1)
        if needed > FEW_PARTS * room:
            self.num_threads = 1
        needed *= self.num_threads
        self._parts = min(-(-needed // room), MAX_PARTS)
        self.num_bytes = needed // self._parts
        given = self._order.given
        if given is not None:
            self._ranks = np.empty(len(self._chosen), np.uint32)
            self._ranks[given] = np.arange(len(given), dtype=np.uint32)

    def firsts(self, keys: SpilledColumn) -> Array:
        """Return for each document the first one with the same key, int32; -1 for a document that is not chosen."""
        firsts = np.where(self._chosen, np.arange(len(self._chosen), dtype=np.int32), np.int32(-1))
        if self._finder is not None:
            members, ends = self._buckets(keys, self._idle.take())
            firsts[members] = _firsts_of(members, ends)
            return firsts
        for part in range(self._parts):
            held: list[tuple[Array, Array]] = []
            count, room = 0, max(self._keys // self._parts, CHUNK)
            for own, numbers, _ in self._rows(keys, part):
                held.append((own, numbers))
                count += len(own)
                if count > room:  # a key may have any number of documents, of which one is needed
                    held = [self._firsts_of(held, firsts)]
                    count, room = len(held[0][0]), max(room, 2 * len(held[0][0]))
            self._firsts_of(held, firsts)
        changed = self._order.given is not None  # then an earlier document may have come later
        while changed:
            changed = False
            for start in range(0, len(firsts), CHUNK):
                some = firsts[start : start + CHUNK]
                earlier = np.where(some >= 0, firsts[some], np.int32(-1))
                changed |= not np.array_equal(earlier, some)
                some[:] = earlier
        return firsts

    def _firsts_of(self, rows: list[tuple[Array, Array]], firsts: Array) -> tuple[Array, Array]:
        """Write the first document with the same key for keys and documents; return those that are the first ones."""
        own, numbers = self._in_order(rows)
        members, ends = buckets_of(own)
        first = _firsts_of(members, ends)
        firsts[numbers[members]] = numbers[first]
        is_first = np.ones(len(own), np.bool_)
        is_first[members[members != first]] = False
        return own[is_first], numbers[is_first]

    def of_band(self, keys: SpilledColumn) -> BandLinks:
        """Return the links of a band; the keys are freed."""
        found, shared, left_out = self._budget.column(np.int32, 2), 0, 0
        buckets: Iterator[tuple[Array, Array]]
        own = None
        if self._finder is None:
            buckets = (self._of_part(keys, part) for part in range(self._parts))
        else:
            own = self._idle.take()
            buckets = iter([self._buckets(keys, own)])
            keys.free()
        for members, ends in _at_once(buckets, self._most_members):
            more = self._grouped(members, ends, found)
            shared, left_out = shared + more[0], left_out + more[1]
        keys.free()
        if own is not None:
            self._idle.items.append(own)
        return BandLinks(found, shared, left_out)

    def _of_part(self, keys: SpilledColumn, part: int) -> tuple[Array, Array]:
        """Return the buckets of one part of the keys, which are those of a range of their hashes."""
        rows, entered = list[tuple[Array, Array]](), 0
        for own, numbers, enters in self._rows(keys, part):
            rows.append((own, numbers))
            entered += len(own) if enters else 0
        own, numbers = self._in_order(rows)
        del rows
        finder = self._part_finder
        if finder is None or finder.count < len(own):
            self._part_finder = finder = BucketFinder(len(own), None, len(own))
        members, ends = finder.find(*_for_finder(own, entered))
        return numbers[members], ends

    def _rows(self, keys: SpilledColumn, part: int) -> Iterator[tuple[Array, Array, bool]]:
        """Yield the keys of a part, their documents, and whether links can lead to these."""
        kind = np.uint32 if keys.row_size <= 4 else np.uint64
        for number, (start, stop, backwards) in enumerate(self._order.runs):
            for at, rows in keys.chunks(start, stop, backwards):
                chosen = self._chosen[at : at + len(rows)].view(np.uint8)
                own, numbers = select_part(rows.astype(kind, copy=False), chosen, part, self._parts)
                numbers += np.int32(at)
                step = -1 if backwards else 1
                yield own[::step], numbers[::step], number < self._order.entered

    def _in_order(self, rows: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        """Return keys and documents in the order of the documents."""
        own = np.concatenate([own for own, _ in rows] or [np.empty(0, np.uint64)])
        numbers = np.concatenate([np.empty(0, np.int32), *(numbers for _, numbers in rows)])
        if self._order.given is None:
            return own, numbers
        by_rank = np.argsort(self._ranks[numbers])
        return own[by_rank], numbers[by_rank]

    def _grouped(self, members: Array, ends: Array, found: SpilledColumn) -> tuple[int, int]:
        """Append the links within groups to `found`; return `shared` and `left_out`."""
        assert self._low_bits is not None
        _, bits, max_different = self._low_bits
        old_from, only_old = self._order.old_from, self._order.entered == 1
        rows = self._low_bits.take(members)
        links, shared, left_out = keep_similar(members, ends, *rows, bits, max_different, old_from, only_old, LIMIT)
        found.append(links)
        return shared, left_out

    def _buckets(self, keys: SpilledColumn, own: Array) -> tuple[Array, Array]:
        """Return the buckets of all keys of a column; they are read into `own`, where their buckets lie then."""
        assert self._finder is not None
        short = keys.row_size <= 4
        keys.read(out=own.view(np.uint32)[: len(own)] if short else own)
        return self._finder.find(own, short=short)


def _at_once(buckets: Iterator[tuple[Array, Array]], max_members: int) -> Iterator[tuple[Array, Array]]:
    """Divide or join buckets, so that `max_members` members come at once, or fewer; a larger bucket comes alone."""
    held, count = list[tuple[Array, Array]](), 0
    for members, ends in buckets:
        begin = first = 0
        while first < len(ends):
            stop = int(np.searchsorted(ends, begin + max_members - count, side="right"))
            if stop > first or not held:
                stop = max(stop, first + 1)
                end = int(ends[stop - 1])
                held.append((members[begin:end], ends[first:stop] - np.uint32(begin)))
                begin, first, count = end, stop, count + end - begin
            if first < len(ends):
                yield _joined(held)
                held, count = [], 0
    if held:
        yield _joined(held)


def _joined(buckets: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the buckets of several lists as one list."""
    if len(buckets) == 1:
        return buckets[0]
    starts = np.cumsum([0, *(len(members) for members, _ in buckets[:-1])]).astype(np.uint32)
    ends = [ends + start for (_, ends), start in zip(buckets, starts)]
    return np.concatenate([members for members, _ in buckets]), np.concatenate(ends)


def buckets_of(keys: Array) -> tuple[Array, Array]:
    """Return the buckets of documents with these keys, uint32 or uint64, by their places here."""
    return BucketFinder(len(keys), None, len(keys)).find(*_for_finder(keys, len(keys)))


def _for_finder(keys: Array, entered: int) -> tuple[Array, int, bool]:
    """Return the arguments of `BucketFinder.find`: a copy of keys, which it overwrites, and whether they are uint32."""
    memory = np.empty(len(keys), np.uint64)
    memory.view(keys.dtype)[: len(keys)] = keys
    return memory, entered, keys.itemsize == 4


def _firsts_of(members: Array, ends: Array) -> Array:
    """Return for each member of the buckets the first one of its bucket."""
    starts = np.concatenate([np.zeros(1, np.uint32), ends])
    return np.repeat(members[starts[:-1]], np.diff(starts))
