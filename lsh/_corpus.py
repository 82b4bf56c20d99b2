"""A corpus on its way through the house: what is kept of each text, and the texts that are needed again.

Every text is read once for its band keys, its sketch and a hash of its content. A text that shares a bucket with
another one is looked at again: where it lies, or, of a source that is read anew, in a file where such texts are kept
aside. The rest of the texts is never held here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lsh import _threads
from lsh._batch import Batch
from lsh._comparing import Similarity, content_keys, first_copies, same_texts
from lsh._grouping import Linker
from lsh._spill import Spill
from lsh._texts import Piece, pieces
from lsh.bands import Bands
from lsh.minhash import MinHasher, batch_fingerprints, work_shares
from lsh.shingling import shingle_sets

MAX_DOCUMENTS = 2**31 - 1  # documents
SMALL_BLOCK, BLOCK = 1 << 10, 1 << 16  # documents whose arrays lie together while a corpus is read
PIECE = 1 << 12  # texts that are taken from an iterator at once
SHARE = 1 << 10  # most texts of a thread's share
WORTH = (
    4  # times the bytes of a share where only fingerprints are computed: more is done here to each, some of it in turn
)

_GIVEN_BACK = np.empty(0, np.uint64)

Array = np.ndarray[Any, Any]
Progress = Callable[[str, int, "int | None"], object]


def _between(ascending: Array, start: int, stop: int) -> slice:
    """Return where the values from start to stop - 1 are."""
    bounds = np.array([start, stop], ascending.dtype)  # of another type numpy would convert the array, not the bounds
    return slice(*np.searchsorted(ascending, bounds).tolist())


class Wanted(NamedTuple):
    """Which texts of a source are wanted again, and what is known of all of them."""

    positions: Array  # int32: ascending
    stands: Array  # int32: for each the first position that has its content key
    content: Array  # uint64: the content keys of all texts as they were when the source was read first
    secret: bytes  # under which they were computed
    sizes: Array  # int64: the bytes of all texts

    def within(self, first: int, count: int) -> Array:
        """Return those of `count` positions from `first` on."""
        return self.positions[_between(self.positions, first, first + count)]


class Collection:
    """A collection of texts that can be read twice: one that is held, or a callable that gives it anew each time.

    Parameters
    ----------
    name : str
        What the caller calls it, for messages.
    collection : object
        What `edge.pieces` takes, or a callable that returns it.
    missing : bool
        Whether a text may be ``None``.
    """

    def __init__(self, name: str, collection: Any, missing: bool) -> None:
        self.name, self.missing = name, missing
        self._again = collection if callable(collection) else None
        self._held: list[Piece] = []
        self.size: int | None = None  # known from the start, or once it was read
        if self._again is None:
            taken = pieces(name, collection, PIECE)
            self._held = list(taken) if isinstance(taken, Iterator) else [taken]
            self.size = sum(map(len, self._held))

    def pieces(self) -> Iterator[tuple[int, Piece]]:
        """Yield the position of each piece and the piece."""
        first = 0
        for piece in self._read():
            yield first, piece
            first += len(piece)
        if self.size is None:
            self.size = first
        elif self.size != first:
            raise ValueError(
                f"{self.name} gave {self.size:,} texts when it was read first and {first:,} the second time; a "
                "callable has to give the same texts each time"
            )

    def _read(self) -> Iterator[Piece]:
        if self._again is None:
            yield from self._held
            return
        taken = pieces(self.name, self._again(), PIECE)
        if isinstance(taken, Iterator):
            yield from taken
        else:
            yield taken

    def batch(self, first: int, piece: Piece, start: int, stop: int) -> Batch:
        """Return texts start to stop - 1 of the piece at `first`."""
        return Batch(piece, first, self.missing, None, self.name, start, stop)

    def gather(self, wanted: Wanted, spill: Spill, report: Progress) -> Batch | None:
        """Return one text of each content, in the order of their positions.

        ``None`` if texts of one content key are not the same bytes.
        """
        if self._again is not None:
            return self._gather_again(wanted, spill, report)
        batches = []
        for first, piece in self.pieces():
            chosen = wanted.within(first, len(piece)) - first
            if len(chosen) and isinstance(piece, tuple):
                texts = [piece[i] for i in chosen.tolist()]
                batches.append(Batch(texts, first, self.missing, None, self.name))
            elif len(chosen):
                batches.append(self.batch(first, piece, 0, len(piece)).take(chosen))
        batch = Batch.join(batches)
        copies = np.flatnonzero(wanted.stands != wanted.positions)
        stands = np.searchsorted(wanted.positions, wanted.stands[copies])
        if not same_texts(batch, stands, batch, copies):
            return None
        return batch.take(np.flatnonzero(wanted.stands == wanted.positions))

    def _gather_again(self, wanted: Wanted, spill: Spill, report: Progress) -> Batch | None:
        """Read the source anew, and keep aside what is asked for."""
        own = wanted.positions[wanted.stands == wanted.positions]
        ends = np.concatenate([[0], np.cumsum(wanted.sizes[own])])
        kept = spill.array(int(ends[-1]), np.uint8)
        texts = Batch.of_bytes(kept, ends)
        for first, piece in self.pieces():
            batch = self.batch(first, piece, 0, len(piece))
            found = np.empty(len(batch), np.uint64)
            content_keys(batch, wanted.secret, found)
            expected = wanted.content[first : first + len(batch)]
            changed = np.flatnonzero(found[: len(expected)] != expected)
            if len(changed):
                raise ValueError(
                    f"{self.name}[{first + changed[0]}] changed since it was read first; a callable has to give the "
                    "same texts each time"
                )
            here = _between(own, first, first + len(batch))
            if here.start < here.stop:
                batch.take(own[here] - first).write(kept[ends[here.start] : ends[here.stop]])
            chosen = wanted.within(first, len(batch))
            stands = wanted.stands[np.searchsorted(wanted.positions, chosen)]
            copies = stands != chosen
            if not same_texts(texts, np.searchsorted(own, stands[copies]), batch, chosen[copies] - first):
                return None
            spill.release()
            report("texts", first + len(batch), self.size)
        return texts


class DocumentArrays:
    """What is kept of some documents, in order of position."""

    def __init__(self, room: int, bands: int, k: int, dtype: Any, spill: Spill) -> None:
        self.room, self.count = room, 0
        self.keys = spill.rows(bands, room, np.uint64)
        self.sketches = spill.array((room, k), dtype)
        self.content = spill.array(room, np.uint64)
        self.sizes = spill.array(room, np.int64)
        self.has_shingles = np.empty(room, np.bool_)

    def append(self, keys: Array, *columns: Array) -> int:
        """Take as many documents as there is room for; returns how many."""
        more = min(keys.shape[1], self.room - self.count)
        here = slice(self.count, self.count + more)
        for kept, row in zip(self.keys, keys):
            kept[here] = row[:more]
        for kept, row in zip((self.sketches, self.content, self.sizes, self.has_shingles), columns):
            kept[here] = row[:more]
        self.count += more
        return int(more)


class Groups(NamedTuple):
    """Documents that share a bucket, and their texts."""

    documents: Array  # int32: the positions of those that share a bucket, in the order that was asked for
    partners: int  # so many of them, the first ones, are led to
    links: Array  # int32, shape (bands, documents): the latest earlier one of the same bucket, a place in `documents`
    firsts: Array  # int32: by position the first document with the same bytes; -1 of what is not in the order
    batch: Batch
    texts: Array  # int32: the place in `batch` of a text with the bytes of each document


class Corpus:
    """Keys and sketches of all documents, by position over all sources in turn.

    Parameters
    ----------
    sources : list of Collection
        The texts.
    hasher, bands
        What makes their fingerprints and keys.
    whole : bool
        Keep whole fingerprints as sketches, and not the low bytes of the components.
    spill : Spill
        Where the arrays lie.
    num_threads, report
        Threads, and what is called with stage, done and total, as for `deduplicate`.

    Attributes
    ----------
    offsets : list of int
        The position of each source's first text, and behind the last one's last.
    has_shingles, sizes : numpy.ndarray
        bool and int64, shape ``(n,)``: whether there are any, and the bytes of UTF-8.
    num_missing : int
        Texts that are ``None`` or null.
    """

    def __init__(
        self,
        sources: list[Collection],
        hasher: MinHasher,
        bands: Bands,
        whole: bool,
        spill: Spill,
        num_threads: int,
        report: Progress,
    ) -> None:
        self.sources, self.hasher, self.bands, self.spill = sources, hasher, bands, spill
        self.whole, self.num_threads, self.report = whole, num_threads, report
        self._read()

    def _read(self) -> None:
        """Read every source."""
        self.blocks: list[DocumentArrays] = []
        self.secret = os.urandom(16)  # nobody can choose texts whose content keys are equal
        self.offsets, self.num_missing = [0], 0
        hasher, bands, spill = self.hasher, self.bands, self.spill
        known = [source.size for source in self.sources]
        total = None if None in known else sum(filter(None, known))
        dtype = hasher.dtype if self.whole else np.uint8

        def cuts() -> Iterator[tuple[int, Collection, int, Piece, int, int]]:
            for source in self.sources:
                for first, piece in source.pieces():
                    for start, stop in work_shares(hasher, piece, SHARE, WORTH):
                        yield self.offsets[-1], source, first, piece, start, stop
                self.offsets.append(self.offsets[-1] + (source.size or 0))

        def look(cut: tuple[int, Collection, int, Piece, int, int]) -> tuple[int, list[Array], int]:
            """Return where some texts end, what is kept of them, and how many are missing."""
            offset, source, first, piece, start, stop = cut
            raw = source.batch(first, piece, start, stop)
            rows = batch_fingerprints(hasher, raw)
            content = np.empty(len(raw), np.uint64)
            content_keys(raw, self.secret, content)
            sketches = rows if self.whole else rows.astype(np.uint8)
            found = [bands.keys(rows), sketches, content, raw.sizes(), ~hasher.is_empty(rows)]
            return offset + first + stop, found, raw.num_missing

        for stop, (keys, *columns), missing in _threads.map_in_order(look, cuts(), self.num_threads):
            if stop > MAX_DOCUMENTS:
                raise ValueError(f"a corpus can have at most {MAX_DOCUMENTS:,} documents")
            taken = 0
            while taken < keys.shape[1]:
                if not self.blocks or self.blocks[-1].count == self.blocks[-1].room:
                    spill.release()
                    seen = stop - keys.shape[1] + taken
                    room = max(SMALL_BLOCK, seen) if total is None else total - seen
                    self.blocks.append(
                        DocumentArrays(min(room, BLOCK), bands.num_bands, hasher.num_seeds, dtype, spill)
                    )
                taken += self.blocks[-1].append(keys[:, taken:], *(column[taken:] for column in columns))
            self.num_missing += missing
            self.report("fingerprints", stop, total)
        self.total = self.offsets[-1]
        self.has_shingles = self._whole("has_shingles", np.bool_)
        self.sizes = self._whole("sizes", np.int64)
        self.content = self._whole("content", np.uint64)

    def _whole(self, name: str, dtype: Any) -> Array:
        """Put a column together, by position."""
        column, at = self.spill.array(self.total, dtype), 0
        for block in self.blocks:
            column[at : at + block.count] = getattr(block, name)[: block.count]
            setattr(block, name, None)
            at += block.count
        self.spill.release()
        return column

    def _band(self, band: int, keys: Array) -> None:
        """Put the keys of a band together, and give them back."""
        at = 0
        for block in self.blocks:
            keys[at : at + block.count] = block.keys[band][: block.count]
            block.keys[band] = _GIVEN_BACK
            at += block.count

    def group(self, order: Array, partners: int | None = None) -> Groups:
        """Find the copies among the documents of `order`, and link those that share a bucket.

        Parameters
        ----------
        order : numpy.ndarray
            int32: positions.
        partners : int, optional
            Copies take part, too, and links lead to the first `partners` documents only; default: distinct documents
            take part, and links lead to all of them.
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
            self._read()  # two texts of one content key: it may happen, once in the life of a star
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
        """Return by position the first document of `order` with the same content key, -1 of those not in it."""
        links = self.spill.array(self.total, np.int32)
        Linker(self.total, order, len(order)).link(self.content, links)
        self.spill.release()
        firsts = self.spill.keep(first_copies(links, order))
        self.spill.release()
        return firsts

    def _links(self, documents: Array, entered: int) -> list[Array]:
        """Return by band, int32 of shape (2, n): the documents that follow another one in its bucket, and that one."""
        linker = Linker(self.total, documents, entered)
        idle: list[tuple[Array, Array]] = []  # scratch of no thread at the moment

        def link(band: int) -> Array:
            try:
                keys, links = idle.pop()
            except IndexError:
                keys, links = np.empty(self.total, np.uint64), np.empty(self.total, np.int32)
            self._band(band, keys)
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
        """Return the texts of the documents that share a bucket: by position a place in a batch, and the batch.

        Of byte-identical texts there is one a source. ``None`` if those of one content key are not.
        """
        numbers = np.arange(self.total, dtype=np.int32)
        wanted = np.zeros(self.total, np.bool_)
        wanted[firsts[shares]] = True
        wanted[firsts[(firsts >= 0) & (firsts != numbers)]] = True
        members = numbers[(firsts >= 0) & wanted[firsts]]
        stands, places = np.empty(self.total, np.int32), np.empty(self.total, np.int32)
        known = np.full(self.total, -1, np.int32)  # by the first document of a content: the place of its text
        batches: list[Batch] = []
        at = 0
        for source, offset, end in zip(self.sources, self.offsets, self.offsets[1:]):
            here = members[_between(members, offset, end)]
            if not len(here):
                continue
            stands[firsts[here][::-1]] = here[::-1]  # the last one that is assigned stays: the first of a content
            own = stands[firsts[here]]
            known_of = self.content[offset:end], self.secret, self.sizes[offset:end]
            batch = source.gather(Wanted(here - offset, own - offset, *known_of), self.spill, self.report)
            if batch is None:
                return None
            kept = here[own == here]
            places[kept] = np.arange(at, at + len(kept), dtype=np.int32)
            places[here] = places[own]
            batches.append(batch)
            at += len(kept)
            joined = Batch.join(batches)
            again = kept[known[firsts[kept]] >= 0]
            if not same_texts(joined, known[firsts[again]], joined, places[again]):
                return None
            known[firsts[kept]] = places[kept]
        return places, Batch.join(batches)

    def similarity(self, groups: Groups, least_equal: int | None) -> Similarity:
        """Return how alike documents are that share a bucket: by sets, or by fingerprints where there is no filter.

        Of the other documents nothing is kept any more.
        """
        chosen = np.argsort(groups.documents, kind="stable").astype(np.int32)
        positions = groups.documents[chosen]
        rows = np.empty(len(chosen), np.int32)
        rows[chosen] = np.arange(len(chosen), dtype=np.int32)
        dtype = self.hasher.dtype if self.whole else np.uint8
        sketches = self.spill.array((len(chosen), self.hasher.num_seeds), dtype)
        at = 0
        for block in self.blocks:
            here = _between(positions, at, at + block.count)
            sketches[here] = block.sketches[positions[here] - at]
            block.sketches = np.empty(0, dtype)
            at += block.count
            self.spill.release()
        self.blocks = []
        self.spill.expect_leaps()  # from here on texts are looked up where a bucket leads
        if least_equal is None:
            return Similarity(sketches, rows, None, None, 0)
        sets = shingle_sets(self.hasher.shingles, groups.batch)
        return Similarity(sketches, rows, sets, groups.texts, least_equal)
