"""Band keys, sketches and texts of a corpus.

Each text is read once to compute its band keys, its sketch (its fingerprint, if pairs are not verified exactly) and a
hash of its content. A text that shares a bucket with another one is needed again: it is read in place, or, if the
collection is a callable, that is called again and the text copied. A `TextSource` reads these texts alone. Other texts
are not held here.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice

import numpy as np

from lsh.base import errors
from lsh.base.arrays import Array
from lsh.base.budget import LEAST_BYTES, MAX_DOCUMENTS, MemoryBudget, SpilledColumn, bound_error, size_argument
from lsh.base.threads import map_in_order, worth
from lsh.engine.collection import Collection, between, expected_documents
from lsh.engine.matching import Matching
from lsh.engine.saving import Rows, SavedRows
from lsh.links.comparing import Similarity
from lsh.links.grouping import write_links
from lsh.links.linking import BandLinks, Links, LowBits, Order, positions_of
from lsh.sketch.hasher import batch_extents, batch_fingerprints
from lsh.sketch.sketch_filter import key_bytes, num_words
from lsh.text.batch import Batch, content_keys, num_bytes, same_texts
from lsh.text.sets import MAX_CACHED, MAX_SPLIT
from lsh.text.shingling import sets_maker
from lsh.typing import Piece, Progress

DOCUMENTS_STEP = 1 << 16  # documents in a step, and between two checks of the bound
MAX_BUFFERS = 1 << 24  # bytes of the buffers of all columns of keys
MIN_FAMILIES = 1 << 26  # bytes of the families of all threads under a bound: see `lsh.links.families.Family`
FAMILY_BYTES = 4096  # per document of the largest component, for its family, where that is more
FAMILY_SHARE = 4  # which takes at most this fraction of the bound
UNBOUNDED = 1 << 62  # bytes
SMALL_SHARE = 16  # the cache of sets, and the families, take at most this fraction of the bound each
STATE_BYTES = 11  # per document, always in memory: flags, first copies, and numbers of components
SHARING_BYTES = 41  # per document in a link: position, component and decision; without links and texts
TOGETHER_BYTES = 16  # per document of a component while it is decided; without links, sketch and text
THREAD_BYTES = 80  # per document of a component and thread
MOST_OVER = 50_000_000  # bytes by which these may exceed the bound: the peak may be 120 MB above it
ORDER_BYTES = 8  # per document, if the documents are in another order than by position, or the reverse
LEAST_ORDERED_BYTES = 36  # per document, the smallest bound if they are in another order
ENCODED = 1 << 24  # bytes of texts of a list that are read again at once
MAX_PIECE = 1 << 12  # texts in a piece of an iterator
SPLIT_UNDER_BOUND = 1 << 19  # shingles of a long text, 16 bytes each, for each of the two that a thread compares
MAX_READ = 1 << 25  # bytes of streamed texts that are read ahead under a bound
MAX_BATCH = 1 << 11  # texts in a batch for a thread
BATCH_FACTOR = 4  # times the bytes of a batch in `MinHasher.fingerprints`, because more is computed for each text here


class CollisionError(Exception):
    """Two texts have the same content key, but not the same bytes."""


class CandidateSource(ABC):
    """Documents whose keys and sketches are known; those that share a bucket come after the texts of a corpus."""

    low_bytes: bool  # whether of their fingerprints only the low bytes of the components are known
    is_held, batches_remain = False, True  # as for a `Collection`

    @abstractmethod
    def find(self, corpus: Corpus, keyed: Array) -> None:
        """Find the documents that share a bucket with a text; `keyed` says of each text whether it has shingles."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many were found."""

    @abstractmethod
    def append(self, corpus: Corpus) -> None:
        """Append their keys, sketches, content keys and sizes to the columns of the corpus.

        A document that has no copy may have any content key that no other one has, and size 0.
        """

    @abstractmethod
    def needed_texts(
        self, needed: Array, content_of: Callable[[Array], Array], secret: bytes, report: Progress
    ) -> Iterator[tuple[Array, Batch]]:
        """Yield texts as `Collection.needed_texts` does; the batches stay valid."""


@dataclass(eq=False)
class Corpus:
    """Band keys and sketches of all documents; positions run through all collections in turn.

    Parameters
    ----------
    collections : list of Collection
        The texts.
    given : Matching
        The parameters, as the caller gave them.
    budget : MemoryBudget
        Allocates the arrays.
    num_threads, report
        The number of threads, and the callable for progress, as for `deduplicate`.
    saved : SavedRows, optional
        Receives the rows of the documents, and has those that a run computed that was killed.
    with_near : bool
        Whether the most similar pairs below the threshold are looked for.
    is_ordered : bool
        Whether documents are decided in another order than that of their positions, or its reverse.
    more : CandidateSource, optional
        Documents that come after those of the collections.

    Attributes
    ----------
    matching : Matching
        The parameters with the plan for the number of documents.
    hasher, bands
        Compute fingerprints and band keys.
    is_exact : bool
        Whether pairs are compared by their texts, after sketches; else fingerprints are stored, and compared.
    sources : list of Collection or CandidateSource
        The collections, and the further documents.
    offsets : list of int
        The position of the first text of each of these, and the number of all texts.
    has_shingles : numpy.ndarray
        bool, shape ``(n,)``: whether a text has shingles.
    keys : list of SpilledColumn
        The keys of each band; of each key the lower half where that is enough.
    low_bits : LowBits
        What is compared before documents are connected.
    sketches, content, sizes : SpilledColumn
        Sketches or fingerprints, content keys, and the length of the text in bytes of UTF-8.
    num_missing : int
        The number of texts that are ``None`` or null.
    family_bytes : int
        The bytes that families of documents may take.
    """

    collections: list[Collection]
    given: Matching
    budget: MemoryBudget
    num_threads: int
    report: Progress
    saved: SavedRows | None = None
    with_near: bool = True
    is_ordered: bool = False
    more: CandidateSource | None = None

    def __post_init__(self) -> None:
        self.sources: list[Collection | CandidateSource] = [*self.collections]
        self.sources += [] if self.more is None else [self.more]
        self._low_bytes = self.more is not None and self.more.low_bytes
        if self.saved is None or not self._read_on(self.saved):
            self.read()

    def read(self) -> None:
        """Read every collection, after a collision of content keys once more: with another secret.

        Where the number of documents decides about the plan and is not known, it is estimated from what was read
        first. Where that leads to another plan than the number that is found, everything is read again; a plain
        callable as soon as it has given too many texts.
        """
        readings = [collection.pieces() for collection in self.collections]
        expected = self._expected()
        if expected is None and self.given.wanted is not None:
            readings = [chain(list(islice(reading, 1)), reading) for reading in readings]
            expected = self._expected()
        self._plan_for(expected or 0)
        while self._read(readings):
            readings = [collection.pieces() for collection in self.collections]

    def _read_on(self, saved: SavedRows) -> bool:
        """Read every collection from where a run was killed; return whether all is known then."""
        self._plan_for(saved.planned or 0)
        if not saved.suits(self._rows_name()):
            return False
        return not self._read([], saved.rows(sum(collection.num_known for collection in self.collections)))

    def _plan_for(self, documents: int) -> None:
        self._planned = documents
        self.matching = self.given.for_documents(max(documents, 1))
        self.hasher, self.bands, self.is_exact = self.matching.hasher, self.matching.bands, self.matching.is_exact

    def _rows_name(self) -> str:
        """Return a name of what computes the rows of the documents."""
        return f"{self.hasher!r} {self.bands!r} {self.matching.low_bits} {self.is_exact or self._low_bytes}"

    def _is_outgrown(self, documents: int) -> bool:
        """Choose the plan for so many documents; return whether it is another one."""
        before = self.bands
        self._plan_for(documents)
        return self.bands != before

    def _read(self, readings: list[Iterator[tuple[int, Piece]]], known: Iterator[Rows] | None = None) -> bool:
        """Read every collection; return whether that has to be done again, with another plan.

        With `known`, the rows of the first documents, their texts are not read, and there are no `readings` yet.
        """
        self.offsets, self.num_missing = [0], 0
        saved = self.saved
        if saved is not None and known is not None:
            self.secret = saved.secret
        else:
            self.secret = os.urandom(16)  # so that texts with equal content keys cannot be constructed
            if saved is not None:
                saved.begin(self._planned, self.secret, self._rows_name())
        hasher, bands, budget = self.hasher, self.bands, self.budget
        sizes = [collection.size for collection in self.collections]
        total = None if None in sizes else sum(filter(None, sizes))
        stops_early = total is None and not any(collection.tells_progress for collection in self.collections)
        dtype = hasher.dtype if not self.is_exact else np.dtype(np.uint8)
        buffer = MAX_BUFFERS // bands.num_bands
        bits, most = self.matching.low_bits
        key_size = key_bytes(max(self._planned, total or 0), bits) if self.more is None else 8
        self.keys = [budget.column(f"u{key_size}", None, total, buffer) for _ in range(bands.num_bands)]
        self.sketches = budget.column(dtype, hasher.num_seeds, total)
        low_bits = None if bits == 0 else budget.column(np.uint64, num_words(hasher.num_seeds, bits), total)
        self.low_bits = LowBits(low_bits, bits, most)
        self.content, self.sizes = budget.column(np.uint64, None, total), budget.column(np.int64, None, total)
        flags = budget.column(np.bool_, None, total)
        columns = [self.sketches, *([] if low_bits is None else [low_bits]), self.content, self.sizes, flags]
        self._check_bound(total or 0)
        budget.check_space((total or 0) * sum(column.row_size for column in [*self.keys, *columns]))

        def batches() -> Iterator[tuple[int, Callable[[], Batch], int]]:
            """Yield of each batch the position after its last text, a function that makes it, and its size.

            The size is that of the texts in bytes, if they are in memory only until they are processed.
            """
            for collection, reading in zip(self.collections, readings):
                counted = budget.is_bounded and not collection.is_held
                for first, piece in reading:
                    for start, stop in batch_extents(hasher, piece, MAX_BATCH, BATCH_FACTOR):
                        make_batch = partial(collection.batch, first, piece, start, stop)
                        size = num_bytes(piece, start, stop) if counted else 0
                        yield self.offsets[-1] + first + stop, make_batch, size
                self.offsets.append(self.offsets[-1] + (collection.size or 0))

        def size_of(batch: tuple[int, Callable[[], Batch], int]) -> int:
            return batch[2]

        def arrays_of(batch: tuple[int, Callable[[], Batch], int]) -> Rows:
            """Return the position after the last text, the arrays for these texts, and how many are missing."""
            stop, make_batch, _ = batch
            raw = make_batch()
            rows = batch_fingerprints(hasher, raw)
            content = np.empty(len(raw), np.uint64)
            content_keys(raw, self.secret, content)
            sketches = rows.astype(np.uint8) if self._low_bytes or self.is_exact else rows
            packed = [] if low_bits is None else [self.low_bits.of(sketches)]
            found = [bands.keys(rows), sketches, *packed, content, raw.sizes(), ~hasher.is_empty(rows)]
            return stop, found, raw.num_missing

        done = 0
        for stop, found, missing in known or ():
            self._append(columns, found, missing)
            done = stop
        if known is not None:
            for collection in self.collections:
                readings.append(collection.pieces(min(done, collection.num_known)))
                done -= min(done, collection.num_known)
        for stop, found, missing in map_in_order(arrays_of, batches(), self.num_threads, size_of, MAX_READ):
            if saved is not None:
                saved.append((stop, found, missing))
            if total is None and stop // DOCUMENTS_STEP > len(flags) // DOCUMENTS_STEP:
                self._check_bound(stop, growing=True)
                expected = self._expected() or 0
                for column in [*self.keys, *columns]:
                    column.expect(expected)
                if stops_early and stop > self._planned and self._is_outgrown(stop):
                    return True
            self._append(columns, found, missing)
            self.report("fingerprints", stop, total)
        self.has_shingles = flags.read()
        flags.free()
        if self.more is not None:
            self._read_more(self.more)
        self.total = self.offsets[-1]
        self._check_bound(self.total)
        budget.trim()
        return self._is_outgrown(self.total)

    def _append(self, columns: list[SpilledColumn], found: list[Array], missing: int) -> None:
        """Append the rows of some documents: their keys, and those of other columns."""
        keys, *rows = found
        for column, more in chain(zip(self.keys, keys), zip(columns, rows)):
            column.append(more)
        self.num_missing += missing

    def append_sketches(self, rows: Array) -> None:
        """Append the sketches or fingerprints of some documents."""
        self.sketches.append(rows)
        if isinstance(self.low_bits.rows, SpilledColumn):
            self.low_bits.rows.append(self.low_bits.of(rows))

    def _read_more(self, more: CandidateSource) -> None:
        """Append the further documents."""
        more.find(self, self.has_shingles)
        total = self.offsets[-1] + len(more)
        self._check_bound(total)
        more.append(self)
        self.has_shingles = np.concatenate([self.has_shingles, np.ones(len(more), np.bool_)])
        self.offsets.append(total)

    def _check_bound(self, count: int, growing: bool = False) -> None:
        """Raise ValueError if `count` documents are too many, or the bound is too small for them; reserve their memory.

        With `growing` there may be more documents.
        """
        if count > MAX_DOCUMENTS:
            raise ValueError(f"a corpus can have at most {MAX_DOCUMENTS:,} documents")
        each = LEAST_ORDERED_BYTES if self.is_ordered else LEAST_BYTES
        if self.budget.bound is not None and count * each > self.budget.bound:
            raise bound_error(self.budget.bound, count, each, self._expected(), growing)
        self.budget.reserve(count * each)

    def _expected(self) -> int | None:
        return expected_documents(self.collections)

    def reserve(self, sharing: int = 0, together: int = 0) -> None:
        """Keep memory free for arrays of all documents, and of the `sharing` documents in a link.

        The largest component has `together` documents. These numbers are known after grouping only; raises ValueError
        if they are too large for the bound.
        """
        each = STATE_BYTES + (ORDER_BYTES if self.is_ordered else 0)
        needed, bound = each * self.total + SHARING_BYTES * sharing, self.budget.bound
        needed += (TOGETHER_BYTES + THREAD_BYTES * self.num_threads) * together
        if bound is not None and needed > bound + MOST_OVER:
            documents = f"{self.total:,} documents, and {sharing:,} of them may have a near duplicate"
            documents += f", {together:,} in one component" if together else ""
            raise errors.bad_value(
                "max_memory",
                f"must be {size_argument(needed - MOST_OVER)} or more for {documents}, got {bound:,} bytes",
            )
        self.family_bytes = UNBOUNDED
        if bound is not None:
            self.family_bytes = max(self._at_most(MIN_FAMILIES), min(FAMILY_BYTES * together, bound // FAMILY_SHARE))
            needed += self.family_bytes
        self.budget.reserve(needed + self._at_most(MAX_CACHED))

    def _at_most(self, size: int) -> int:
        """Return `size`, the bytes of a cache or of work in progress, or less if there is a small bound."""
        return size if self.budget.bound is None else min(size, self.budget.bound // SMALL_SHARE)

    def links(self, found: list[BandLinks], numbers: Array, count: int) -> Array:
        """Return the links of `count` documents as int32 of shape ``(bands, count)``; their columns are freed.

        `numbers` has the number of each document by position.
        """
        links = self.budget.array((len(found), count), np.int32)

        def write(band: int) -> None:
            links[band].fill(-1)
            for _, pairs in found[band].pairs.chunks():
                write_links(pairs, numbers, links[band])
            found[band].pairs.free()

        threads = 1 if self.budget.is_bounded else worth(self.num_threads, links.size)
        for _ in map_in_order(write, range(len(found)), threads):
            self.budget.release()
        found.clear()
        return links

    def linked(self, order: Order, copies: bool) -> tuple[Array, list[BandLinks], Array]:
        """Find identical texts, and link the documents with shingles that may be similar.

        Returns
        -------
        firsts : numpy.ndarray
            int32: by position the first document with the same bytes; -1 of one that takes no part.
        found : list of BandLinks
            The links of each band. With `copies`, copies of a text are linked, too.
        shares : numpy.ndarray
            bool: by position, whether it is in a link.
        """
        self.reserve()
        links = Links(self.budget, order, self.has_shingles, 1)
        with self.budget.reserved(links.num_bytes):
            firsts = links.firsts(self.content)
        del links
        self.budget.trim()
        found = self._links(order, self.has_shingles if copies else firsts == np.arange(self.total, dtype=np.int32))
        if copies and any(band.left_out for band in found):  # then copies may be in several groups of every bucket
            found.append(self._copies(order, firsts))
        self.budget.trim()
        shares = np.zeros(self.total, np.bool_)
        for band in found:
            for _, pairs in band.pairs.chunks():
                shares[pairs] = True
        return firsts, found, shares

    def _copies(self, order: Order, firsts: Array) -> BandLinks:
        """Return links of all copies of a text."""
        column = self.budget.column(np.uint64, expected=len(firsts))
        column.append(firsts.astype(np.uint64))
        return Links(self.budget, order, self.has_shingles, 1, LowBits(None, 0, 0)).of_band(column)

    def _links(self, order: Order, chosen: Array) -> list[BandLinks]:
        """Return the links of the chosen documents, of each band."""
        links = Links(self.budget, order, chosen, self.num_threads, self.low_bits, self.keys)
        all_found, bands = list[BandLinks](), range(self.bands.num_bands)
        with self.budget.reserved(links.num_bytes):
            for found in map_in_order(lambda band: links.of_band(self.keys[band]), bands, links.num_threads):
                all_found.append(found)
                self.report("grouping", len(all_found), len(bands))
        if isinstance(self.low_bits.rows, SpilledColumn):
            self.low_bits.rows.free()
        return all_found

    def needed_texts(self, members: Array) -> Iterator[tuple[Array, Batch]]:
        """Yield the texts at some positions, which ascend, in batches with their positions."""
        for collection, offset, end in zip(self.sources, self.offsets, self.offsets[1:]):
            here = members[between(members, offset, end)]
            for positions, batch in self._needed_of(collection, offset, here - np.int32(offset)):
                yield positions + np.int32(offset), batch

    def _needed_of(
        self, collection: Collection | CandidateSource, offset: int, needed: Array
    ) -> Iterator[tuple[Array, Batch]]:
        if not len(needed):
            return iter(())

        def content_of(positions: Array) -> Array:
            return self.content.take(positions + np.int32(offset))

        return collection.needed_texts(needed, content_of, self.secret, self.report)

    def texts(self, firsts: Array, compared: Array) -> tuple[Array, Array, Batch]:
        """Return the texts of the documents that are compared, and of copies of the same texts; see `members`.

        Returns
        -------
        members : numpy.ndarray
            int32: the positions of these documents, ascending.
        places : numpy.ndarray
            int32: for each the index in the batch of a text with the same bytes.
        batch : Batch
            One of several identical texts of a collection.

        Raises
        ------
        CollisionError
            If two texts have the same content key but not the same bytes.
        """
        members = self.members(firsts, compared)
        distinct = members[firsts[members] == members]
        codes, count = np.searchsorted(distinct, firsts[members]).astype(np.int32), len(distinct)
        places, text_of = np.empty(len(members), np.int32), np.empty(count, np.int32)
        stands, known = np.empty(count, np.int32), np.full(count, -1, np.int32)
        batches: list[Batch] = []
        at = 0
        for collection, offset, end in zip(self.sources, self.offsets, self.offsets[1:]):
            inside = between(members, offset, end)
            here, code = members[inside], codes[inside]
            if not len(here):
                continue
            stands[code[::-1]] = here[::-1]  # the last assignment remains: the first text of several identical ones
            own = stands[code]
            batches.append(self._one_of_each(collection, offset, here, own))
            kept = code[own == here]
            text_of[kept] = np.arange(at, at + len(kept), dtype=np.int32)
            places[inside] = text_of[code]
            at += len(kept)
            joined = Batch.join(batches)
            copies = kept[known[kept] >= 0]
            if not same_texts(joined, known[copies], joined, text_of[copies]):
                raise CollisionError
            known[kept] = text_of[kept]
        return members, places, Batch.join(batches)

    def members(self, firsts: Array, compared: Array) -> Array:
        """Return the positions of the documents whose texts are needed: int32, ascending.

        They are those that are compared, for which `compared` is true, and copies of other texts with these texts,
        because only the bytes tell copies apart.
        """
        needed = np.zeros(self.total, np.bool_)  # by the first document with a content
        starts = range(0, self.total, DOCUMENTS_STEP)
        chunks = [slice(start, min(start + DOCUMENTS_STEP, self.total)) for start in starts]
        for chunk in chunks:
            some = firsts[chunk]
            wanted = compared[chunk] | (some != np.arange(chunk.start, chunk.stop, dtype=np.int32))
            needed[some[wanted & (some >= 0)]] = True
        for chunk in chunks:  # the flags of first documents, which are read here, do not change
            some = firsts[chunk]
            needed[chunk] = (some >= 0) & needed[some]
        return positions_of(needed)

    def free_texts(self) -> None:
        """Free the columns that are used to read texts again."""
        self.content.free()
        self.sizes.free()

    def _one_of_each(self, collection: Collection | CandidateSource, offset: int, here: Array, stands: Array) -> Batch:
        """Return one of several identical texts of `here`, those in `stands`; copy batches that do not remain."""
        own = here[stands == here]
        found = self._needed_of(collection, offset, here - np.int32(offset))
        if collection.batches_remain:
            batch = Batch.join([batch for _, batch in found])
            copies = np.flatnonzero(stands != here)
            if not same_texts(batch, np.searchsorted(here, stands[copies]), batch, copies):
                raise CollisionError
            return batch.take(np.flatnonzero(stands == here))
        ends = np.concatenate([[0], np.cumsum(self.sizes.take(own))])
        kept = self.budget.array(int(ends[-1]), np.uint8)
        texts = Batch.of_bytes(kept, ends)
        for positions, batch in found:
            positions = positions + np.int32(offset)
            new = own[between(own, int(positions[0]), int(positions[-1]) + 1)]
            if len(new):
                first = int(np.searchsorted(own, new[0]))
                batch.take(np.searchsorted(positions, new)).write(kept[ends[first] : ends[first + len(new)]])
            stands_here = stands[np.searchsorted(here, positions)]
            copies = np.flatnonzero(stands_here != positions)
            if not same_texts(texts, np.searchsorted(own, stands_here[copies]), batch, copies):
                raise CollisionError
            self.budget.release()
        return texts

    def take_sketches(self, numbers: Array, count: int) -> Array:
        """Return the sketches of `count` documents, each in the row with its number; all others are freed."""
        sketches = self.budget.array((count, self.hasher.num_seeds), self.sketches.dtype)

        def take(chunk: tuple[int, Array]) -> None:
            start, rows = chunk
            places = numbers[start : start + len(rows)]
            chosen = np.flatnonzero(places >= 0)
            sketches[places.take(chosen)] = rows.take(chosen, axis=0)

        threads = 1 if self.budget.is_bounded else worth(self.num_threads, sketches.size)
        for _ in map_in_order(take, self.sketches.chunks(), threads):
            self.budget.release()
        self.sketches.free()
        return sketches

    def similarity(self, sketches: Array, batch: Batch, texts: Array, min_equal: int) -> Callable[[], Similarity]:
        """Return a function that makes a `Similarity`: of sets, or of fingerprints.

        Each thread needs its own. `texts` has the index in `batch` of the text of each document.
        """
        if not self.is_exact:
            return partial(Similarity, sketches, None, None, min_equal)
        cached, split = MAX_CACHED, MAX_SPLIT
        if self.budget.is_bounded:
            cached, split = self._at_most(MAX_CACHED) // self.num_threads, SPLIT_UNDER_BOUND
        make_sets = sets_maker(self.hasher.shingles, batch, cached, split)
        return lambda: Similarity(sketches, make_sets(), texts, min_equal)
