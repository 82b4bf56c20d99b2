"""Band keys, sketches and texts of a corpus.

Each text is read once to compute its band keys, its sketch (its fingerprint, if pairs are not verified exactly) and a
hash of its content. A text that shares a bucket with another one is needed again: it is read in place, or, if the
collection is a callable, that is called again and the text copied. A `TextSource` reads these texts alone. Other texts
are not held here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh import _threads
from lsh._batch import Batch
from lsh._comparing import Similarity, content_keys, first_copies, same_texts
from lsh._grouping import Linker
from lsh._progress import Progress
from lsh._spill import Array, Spill
from lsh._texts import Piece, Pieces, Texts, TextsOrCallable, TextSource, each_piece
from lsh.bands import Bands
from lsh.minhash import MinHasher, batch_fingerprints, work_shares
from lsh.shingling import shingle_sets

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

MAX_DOCUMENTS = 2**31 - 1  # documents
MIN_CAPACITY, MAX_CAPACITY = 1 << 10, 1 << 16  # documents in one `DocumentArrays`
MAX_PIECE = 1 << 12  # texts in a piece of an iterator
MAX_SHARE = 1 << 10  # texts in a share of work for a thread
SHARE_FACTOR = 4  # times the bytes of a share in `MinHasher.fingerprints`, because more is computed for each text here

_FREED = np.empty(0, np.uint64)


def _between(ascending: Array, start: int, stop: int) -> slice:
    """Return the slice of the values from start to stop - 1."""
    bounds = np.array([start, stop], ascending.dtype)  # with another dtype numpy would convert the whole array
    return slice(*np.searchsorted(ascending, bounds).tolist())


class NeededTexts(NamedTuple):
    """The texts of a collection that are needed again, and the content keys and sizes of all its texts."""

    positions: Array  # int32: ascending
    stands: Array  # int32: for each the first position with the same content key
    content: Array  # uint64: the content keys of all texts from the first reading
    secret: bytes  # the key of the hash that computed them
    sizes: Array  # int64: the bytes of all texts

    def within(self, first: int, count: int) -> Array:
        """Return the needed positions among `count` positions from `first` on."""
        return self.positions[_between(self.positions, first, first + count)]


class Collection:
    """A collection of texts that can be read twice: one in memory, or a callable that returns it again at each call.

    Parameters
    ----------
    name : str
        The parameter that it was passed as, for messages.
    collection : object
        A collection that `lsh._texts.pieces` accepts, or a callable that returns one.
    missing : bool
        Whether a text may be ``None``.
    """

    def __init__(self, name: str, collection: TextsOrCallable | None, missing: bool) -> None:
        self.name, self.missing = name, missing
        self._again: Callable[[], Texts | Pieces] | None = None
        self._held: list[Piece] = []
        self.size: int | None = None  # known from the start, or after the first reading
        if callable(collection):
            self._again = collection
        else:
            self._held = list(each_piece(name, collection, MAX_PIECE))
            self.size = sum(map(len, self._held))

    def pieces(self) -> Iterator[tuple[int, Piece]]:
        """Yield the position of each piece and the piece."""
        first = 0
        for piece in self._held if self._again is None else each_piece(self.name, self._again(), MAX_PIECE):
            yield first, piece
            first += len(piece)
        if self.size is None:
            self.size = first
        elif self.size != first:
            raise ValueError(
                f"{self.name} gave {self.size:,} texts at the first call and {first:,} at the second; a callable must "
                "give the same texts at each call"
            )

    def batch(self, first: int, piece: Piece, start: int, stop: int) -> Batch:
        """Return texts start to stop - 1 of the piece that begins at position `first`."""
        return Batch(piece, first, self.missing, None, self.name, start, stop)

    def read_again(self, needed: NeededTexts, spill: Spill, report: Progress) -> Batch | None:
        """Return the needed texts, one for each content key, in the order of their positions.

        ``None`` if two texts have the same content key but not the same bytes.
        """
        if self._again is not None:
            return self._copied(needed, spill, report)
        batches = []
        for first, piece in self.pieces():
            chosen = needed.within(first, len(piece)) - first
            if len(chosen) and isinstance(piece, tuple):
                texts = [piece[i] for i in chosen.tolist()]
                batches.append(Batch(texts, first, self.missing, None, self.name))
            elif len(chosen):
                batches.append(self.batch(first, piece, 0, len(piece)).take(chosen))
        batch = Batch.join(batches)
        copies = np.flatnonzero(needed.stands != needed.positions)
        stands = np.searchsorted(needed.positions, needed.stands[copies])
        if not same_texts(batch, stands, batch, copies):
            return None
        return batch.take(np.flatnonzero(needed.stands == needed.positions))

    def _copied(self, needed: NeededTexts, spill: Spill, report: Progress) -> Batch | None:
        """Read the needed texts of a callable again, check that they are the same, and copy them."""
        own = needed.positions[needed.stands == needed.positions]
        ends = np.concatenate([[0], np.cumsum(needed.sizes[own])])
        kept = spill.array(int(ends[-1]), np.uint8)
        texts = Batch.of_bytes(kept, ends)
        for positions, batch in self._again_at(needed.positions):
            found = np.empty(len(batch), np.uint64)
            content_keys(batch, needed.secret, found)
            changed = np.flatnonzero(found != needed.content[positions])
            if len(changed):
                raise ValueError(
                    f"{self.name}[{positions[changed[0]]}] differs between the first and the second call; a callable "
                    "must give the same texts at each call"
                )
            here = _between(own, int(positions[0]), int(positions[-1]) + 1)
            if here.start < here.stop:
                chosen = np.searchsorted(positions, own[here])
                batch.take(chosen).write(kept[ends[here.start] : ends[here.stop]])
            at = _between(needed.positions, int(positions[0]), int(positions[-1]) + 1)
            chosen, stands = needed.positions[at], needed.stands[at]
            copies = stands != chosen
            firsts = np.searchsorted(own, stands[copies])
            if not same_texts(texts, firsts, batch, np.searchsorted(positions, chosen[copies])):
                return None
            spill.release()
            report("texts", int(positions[-1]) + 1, self.size)
        if isinstance(self._again, TextSource):  # all of it is read now
            report("texts", self.size or 0, self.size)
        return texts

    def _again_at(self, needed: Array) -> Iterator[tuple[Array, Batch]]:
        """Yield texts of the callable in batches, with their positions: those at `needed`, or all."""
        if isinstance(self._again, TextSource):
            done = 0
            for batch in self._again.take(needed):
                positions = needed[done : done + len(batch)]
                done += len(batch)
                yield positions, batch
            if done < len(needed):
                raise ValueError(f"{self.name} gave {done:,} of the {len(needed):,} texts that were asked for")
            return
        for first, piece in self.pieces():
            count = min(len(piece), (self.size or 0) - first)  # more texts are an error at the end
            if count > 0:
                yield np.arange(first, first + count, dtype=needed.dtype), self.batch(first, piece, 0, count)


class DocumentArrays:
    """Band keys, sketches, content keys and sizes of up to `capacity` documents, in order of position."""

    def __init__(self, capacity: int, bands: int, k: int, dtype: DTypeLike, spill: Spill) -> None:
        self.capacity, self.count = capacity, 0
        self.keys = spill.rows(bands, capacity, np.uint64)
        self.sketches = spill.array((capacity, k), dtype)
        self.content = spill.array(capacity, np.uint64)
        self.sizes = spill.array(capacity, np.int64)
        self.has_shingles = np.empty(capacity, np.bool_)

    def append(self, keys: Array, *columns: Array) -> int:
        """Copy as many documents as fit; return how many."""
        more = min(keys.shape[1], self.capacity - self.count)
        here = slice(self.count, self.count + more)
        for kept, row in zip(self.keys, keys):
            kept[here] = row[:more]
        for kept, row in zip((self.sketches, self.content, self.sizes, self.has_shingles), columns):
            kept[here] = row[:more]
        self.count += more
        return int(more)


class Groups(NamedTuple):
    """The documents that share a bucket with another one, and their texts."""

    documents: Array  # int32: their positions, in the given order
    partners: int  # links lead to so many of them, the first ones
    links: Array  # int32, shape (bands, documents): index in `documents` of the last earlier one in the same bucket
    firsts: Array  # int32: by position the first document with the same bytes; -1 if not in the given order
    batch: Batch
    texts: Array  # int32: for each document the index in `batch` of a text with the same bytes


@dataclass(eq=False)
class Corpus:
    """Band keys and sketches of all documents; positions run through all collections in turn.

    Parameters
    ----------
    collections : list of Collection
        The texts.
    hasher, bands
        Compute fingerprints and band keys.
    keep_fingerprints : bool
        Whether to store fingerprints in place of sketches.
    spill : Spill
        Allocates the arrays.
    num_threads, report
        The number of threads, and the callable for progress, as for `deduplicate`.

    Attributes
    ----------
    offsets : list of int
        The position of the first text of each collection, and the number of all texts.
    has_shingles, sizes : numpy.ndarray
        bool and int64, shape ``(n,)``: whether a text has shingles, and its length in bytes of UTF-8.
    num_missing : int
        The number of texts that are ``None`` or null.
    """

    collections: list[Collection]
    hasher: MinHasher
    bands: Bands
    keep_fingerprints: bool
    spill: Spill
    num_threads: int
    report: Progress

    def __post_init__(self) -> None:
        self._read()

    def _read(self) -> None:
        """Read every collection."""
        self.arrays: list[DocumentArrays] = []
        self.secret = os.urandom(16)  # so that texts with equal content keys cannot be constructed
        self.offsets, self.num_missing = [0], 0
        hasher, bands, spill = self.hasher, self.bands, self.spill
        known = [collection.size for collection in self.collections]
        total = None if None in known else sum(filter(None, known))
        dtype = hasher.dtype if self.keep_fingerprints else np.uint8

        def shares() -> Iterator[tuple[int, Callable[[], Batch]]]:
            """Yield the position after the last text of each share of work, and a function that makes its batch."""
            for collection in self.collections:
                for first, piece in collection.pieces():
                    for start, stop in work_shares(hasher, piece, MAX_SHARE, SHARE_FACTOR):
                        yield self.offsets[-1] + first + stop, partial(collection.batch, first, piece, start, stop)
                self.offsets.append(self.offsets[-1] + (collection.size or 0))

        def arrays_of(share: tuple[int, Callable[[], Batch]]) -> tuple[int, list[Array], int]:
            """Return the position after the last text, the arrays for these texts, and how many are missing."""
            stop, make_batch = share
            raw = make_batch()
            rows = batch_fingerprints(hasher, raw)
            content = np.empty(len(raw), np.uint64)
            content_keys(raw, self.secret, content)
            sketches = rows if self.keep_fingerprints else rows.astype(np.uint8)
            found = [bands.keys(rows), sketches, content, raw.sizes(), ~hasher.is_empty(rows)]
            return stop, found, raw.num_missing

        for stop, (keys, *columns), missing in _threads.map_in_order(arrays_of, shares(), self.num_threads):
            if stop > MAX_DOCUMENTS:
                raise ValueError(f"a corpus can have at most {MAX_DOCUMENTS:,} documents")
            copied = 0
            while copied < keys.shape[1]:
                if not self.arrays or self.arrays[-1].count == self.arrays[-1].capacity:
                    spill.release()
                    seen = stop - keys.shape[1] + copied
                    capacity = min(max(MIN_CAPACITY, seen) if total is None else total - seen, MAX_CAPACITY)
                    self.arrays.append(DocumentArrays(capacity, bands.num_bands, hasher.num_seeds, dtype, spill))
                copied += self.arrays[-1].append(keys[:, copied:], *(column[copied:] for column in columns))
            self.num_missing += missing
            self.report("fingerprints", stop, total)
        self.total = self.offsets[-1]
        self.has_shingles = self._column("has_shingles", np.bool_)
        self.sizes = self._column("sizes", np.int64)
        self.content = self._column("content", np.uint64)

    def _column(self, name: str, dtype: DTypeLike) -> Array:
        """Join one column of all `DocumentArrays`."""
        column, at = self.spill.array(self.total, dtype), 0
        for arrays in self.arrays:
            column[at : at + arrays.count] = getattr(arrays, name)[: arrays.count]
            setattr(arrays, name, None)
            at += arrays.count
        self.spill.release()
        return column

    def _take_keys(self, band: int, keys: Array) -> None:
        """Join the keys of a band into `keys`, and free their parts."""
        at = 0
        for arrays in self.arrays:
            keys[at : at + arrays.count] = arrays.keys[band][: arrays.count]
            arrays.keys[band] = _FREED
            at += arrays.count

    def group(self, order: Array, partners: int | None = None) -> Groups:
        """Find identical texts among the documents of `order`, and link the documents that share a bucket.

        Parameters
        ----------
        order : numpy.ndarray
            int32: positions.
        partners : int, optional
            If given, copies of a text are linked, too, and links lead to the first `partners` documents only. Default:
            the first copy of each text is linked, and links lead to all of them.
        """
        while True:
            firsts = self._firsts(order)
            documents = self.spill.keep(order[firsts[order] == order]) if partners is None else order
            entered = len(documents) if partners is None else partners
            found = self._links(documents, entered)
            shares = np.zeros(self.total, np.bool_)
            for pairs in found:
                shares[pairs[0]] = shares[pairs[1]] = True
            texts = self._texts(firsts, shares)
            if texts is not None:
                break
            self._read()  # a collision of 64-bit keys: read again with a new secret
        places, batch = texts
        self.content = np.empty(0, np.uint64)
        entered = int(shares[documents[:entered]].sum())
        documents = documents[shares[documents]]
        numbers = np.empty(self.total, np.int32)
        numbers[documents] = np.arange(len(documents), dtype=np.int32)
        links = self.spill.array((len(found), len(documents)), np.int32)
        for row in links[::-1]:
            at, to = found.pop()
            row.fill(-1)
            row[numbers[at]] = numbers[to]
        return Groups(documents, entered, links, firsts, batch, places[documents])

    def _firsts(self, order: Array) -> Array:
        """Return by position the first document of `order` with the same content key; -1 if it is not in `order`."""
        links = self.spill.array(self.total, np.int32)
        Linker(self.total, order, len(order)).link(self.content, links)
        self.spill.release()
        firsts = self.spill.keep(first_copies(links, order))
        self.spill.release()
        return firsts

    def _links(self, documents: Array, entered: int) -> list[Array]:
        """Return for each band an int32 array (2, n): documents, and for each the one before it in the same bucket."""
        linker = Linker(self.total, documents, entered)
        idle: list[tuple[Array, Array]] = []  # scratch arrays that no thread uses at the moment

        def link(band: int) -> Array:
            try:
                keys, links = idle.pop()
            except IndexError:
                keys, links = np.empty(self.total, np.uint64), np.empty(self.total, np.int32)
            self._take_keys(band, keys)
            linker.link(keys, links)
            linked = np.flatnonzero(links >= 0)
            found = self.spill.array((2, len(linked)), np.int32)
            found[0], found[1] = linked, links[linked]
            self.spill.release()
            idle.append((keys, links))
            return found

        bands = range(self.bands.num_bands)
        all_found = []
        for found in _threads.map_in_order(link, bands, 1 if self.spill.is_bounded else self.num_threads):
            all_found.append(found)
            self.report("grouping", len(all_found), len(bands))
        return all_found

    def _texts(self, firsts: Array, shares: Array) -> tuple[Array, Batch] | None:
        """Return the texts of the documents that share a bucket: by position an index of a batch, and the batch.

        The batch has one of several identical texts of a collection. ``None`` if two texts have the same content key
        but not the same bytes.
        """
        numbers = np.arange(self.total, dtype=np.int32)
        needed = np.zeros(self.total, np.bool_)
        needed[firsts[shares]] = True
        needed[firsts[(firsts >= 0) & (firsts != numbers)]] = True
        members = numbers[(firsts >= 0) & needed[firsts]]
        stands, places = np.empty(self.total, np.int32), np.empty(self.total, np.int32)
        known = np.full(self.total, -1, np.int32)  # by the first document with a content: the index of its text
        batches: list[Batch] = []
        at = 0
        for collection, offset, end in zip(self.collections, self.offsets, self.offsets[1:]):
            here = members[_between(members, offset, end)]
            if not len(here):
                continue
            stands[firsts[here][::-1]] = here[::-1]  # the last assignment remains: the first text with a content
            own = stands[firsts[here]]
            known_of = self.content[offset:end], self.secret, self.sizes[offset:end]
            again = NeededTexts(here - offset, own - offset, *known_of)
            batch = collection.read_again(again, self.spill, self.report)
            if batch is None:
                return None
            kept = here[own == here]
            places[kept] = np.arange(at, at + len(kept), dtype=np.int32)
            places[here] = places[own]
            batches.append(batch)
            at += len(kept)
            joined = Batch.join(batches)
            copies = kept[known[firsts[kept]] >= 0]
            if not same_texts(joined, known[firsts[copies]], joined, places[copies]):
                return None
            known[firsts[kept]] = places[kept]
        return places, Batch.join(batches)

    def similarity(self, groups: Groups, least_equal: int | None) -> Similarity:
        """Return what compares documents that share a bucket: by sets, or by fingerprints if there is no filter.

        The arrays of all other documents are freed.
        """
        chosen = np.argsort(groups.documents, kind="stable").astype(np.int32)
        positions = groups.documents[chosen]
        rows = np.empty(len(chosen), np.int32)
        rows[chosen] = np.arange(len(chosen), dtype=np.int32)
        dtype = self.hasher.dtype if self.keep_fingerprints else np.uint8
        sketches = self.spill.array((len(chosen), self.hasher.num_seeds), dtype)
        at = 0
        for arrays in self.arrays:
            here = _between(positions, at, at + arrays.count)
            sketches[here] = arrays.sketches[positions[here] - at]
            arrays.sketches = np.empty(0, dtype)
            at += arrays.count
            self.spill.release()
        self.arrays = []
        self.spill.expect_leaps()  # from here on, texts are read in no particular order
        if least_equal is None:
            return Similarity(sketches, rows, None, None, 0)
        sets = shingle_sets(self.hasher.shingles, groups.batch)
        return Similarity(sketches, rows, sets, groups.texts, least_equal)
