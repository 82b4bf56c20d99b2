"""What an index holds at one moment: segments without their removed documents, and the recent documents.

A place of a document is the position of its segment and its number there. The order of the documents is that of their
arrival; the recent documents come after those of all segments. `ViewSnapshot` gives the documents of a view to
`lsh.deduplicate` and `lsh.find_pairs`; later changes leave it as it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsh.base.arrays import Array
from lsh.engine.index_source import IndexSnapshot, Recalls
from lsh.segments import file_format
from lsh.segments.file_format import IN_LOG, NO_TIME, IndexDamagedError
from lsh.segments.log import LogChange, LogReader
from lsh.segments.manifest import COLLISIONS, Manifest, ManifestEntry, read_manifest, read_removed
from lsh.segments.searching import Searcher, SortedKeys, search_all, sorted_keys
from lsh.segments.segment import DocumentBatch, Segment, arrival_steps, items_in_order, values_in_order
from lsh.store.memtable import MemTable
from lsh.typing import DocId, Lookup

DOCUMENTS_STEP = 1 << 12  # documents that are listed at once


Value = TypeVar("Value")


class StoredPlace(NamedTuple):
    """Where a document is: the position of the segment (`IN_LOG` for a recent document), and its number there."""

    part: int
    number: int


class Hits(NamedTuple):
    """What a search found in one part: query i has the documents ``numbers[bounds[i] : bounds[i + 1]]``."""

    part: int
    bounds: NDArray[np.int64]
    numbers: NDArray[np.uint32]
    equal: NDArray[np.uint16]


class OpenSegment:
    """A segment, and which of its documents are removed.

    `removed` is a bitmap, the lowest bit of a byte first. It is changed in place: the owner holds a
    lock, or has a copy.
    """

    def __init__(self, segment: Segment, removed: Array | None, count: int, entry: ManifestEntry) -> None:
        self.segment = segment
        self.removed = removed
        self.removed_count = count
        self.entry = entry  # of the manifest; it does not know what was removed since
        self._searcher: Searcher | None = None

    @classmethod
    def opened(cls, folder: str, entry: ManifestEntry, manifest: Manifest) -> OpenSegment:
        """Open the segment of a manifest."""
        segment = Segment(folder, entry.written, manifest.parameters.layout)
        if entry.removed is None:
            return cls(segment, None, 0, entry)
        bitmap = read_removed(folder, entry.removed, segment.documents)
        return cls(segment, bitmap, entry.removed.count, entry)

    def __len__(self) -> int:
        return self.segment.documents - self.removed_count

    @property
    def searcher(self) -> Searcher:
        """The compiled search."""
        if self._searcher is None:
            one = self.segment
            self._searcher = Searcher(one.bands, one.documents, one.sketches, self.removed)
        return self._searcher

    def copy(self) -> OpenSegment:
        """Return a copy that can be changed."""
        bitmap = None if self.removed is None else self.removed.copy()
        return OpenSegment(self.segment, bitmap, self.removed_count, self.entry)

    def is_alive(self, number: int) -> bool:
        """Tell whether there is a document of this number that is not removed."""
        if not 0 <= number < self.segment.documents:
            return False
        return self.removed is None or not self.removed[number >> 3] >> (number & 7) & 1

    def remove(self, number: int) -> None:
        """Remove a document that is not removed."""
        if self.removed is None:
            self.removed = np.zeros((self.segment.documents + 7) // 8, np.uint8)
            self._searcher = None
        self.removed[number >> 3] |= 1 << (number & 7)
        self.removed_count += 1

    def remove_many(self, numbers: NDArray[np.int64]) -> None:
        """Remove documents, all different, that are not removed."""
        mask = np.zeros(self.segment.documents, bool)
        mask[numbers] = True
        self.remove(int(numbers[0]))  # makes the bitmap
        if self.removed is not None:
            self.removed |= np.packbits(mask, bitorder="little")
        self.removed_count += len(numbers) - 1

    def kept_mask(self) -> NDArray[np.bool_] | None:
        """Return for each document whether it is not removed, ``None`` if none is."""
        if self.removed is None or not self.removed_count:
            return None
        kept: NDArray[np.bool_] = np.unpackbits(self.removed, count=self.segment.documents, bitorder="little") == 0
        return kept

    def alive(self) -> NDArray[np.int64]:
        """Return the numbers of the documents that are not removed."""
        mask = self.kept_mask()
        return np.arange(self.segment.documents) if mask is None else np.flatnonzero(mask)

    def find(self, codes: list[bytes], hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the number of the document of each encoded id, -1 where there is none that is not removed."""
        numbers = self.segment.find(codes, hashes)
        for i in np.flatnonzero(numbers >= 0).tolist():
            if not self.is_alive(int(numbers[i])):
                numbers[i] = -1
        return numbers


class View:
    """The documents of an index at one moment."""

    def __init__(self, manifest: Manifest, held: list[OpenSegment]) -> None:
        self.manifest = manifest
        self.held = held
        self.recent = MemTable(manifest.parameters.layout, manifest.arrived)

    def __len__(self) -> int:
        return sum(map(len, self.held)) + len(self.recent)

    # ---- changes ----

    def apply(self, changes: list[LogChange], log: LogReader) -> None:
        """Make the changes of a log."""
        for change in changes:
            for part, number in change.removed.tolist():
                if not self.is_alive(StoredPlace(part, number)):
                    raise log.damage("it removes a document that does not exist")
                self.remove(StoredPlace(part, number))
            if change.added is not None:
                if any(code in self.recent.numbers for code in change.added.codes):
                    raise log.damage("it adds a document that exists")
                self.recent.add(change.added)

    def is_alive(self, place: StoredPlace) -> bool:
        """Tell whether there is a document."""
        if place.part == IN_LOG:
            return self.recent.is_alive(place.number)
        return place.part < len(self.held) and self.held[place.part].is_alive(place.number)

    def remove(self, place: StoredPlace) -> None:
        """Remove a document."""
        if place.part == IN_LOG:
            self.recent.remove(place.number)
        else:
            self.held[place.part].remove(place.number)

    # ---- single documents ----

    def find(self, codes: list[bytes]) -> list[StoredPlace | None]:
        """Return where the document of each encoded id is."""
        numbers = self.recent.numbers
        places: list[StoredPlace | None] = [None] * len(codes)
        if not numbers.keys().isdisjoint(codes):  # much faster than the loop, and mostly true while documents are added
            places = [StoredPlace(IN_LOG, numbers[code]) if code in numbers else None for code in codes]
        if self.held:
            hashes = file_format.hashed_ids(codes)
            for part, held in enumerate(self.held):
                found = held.find(codes, hashes)
                for i in np.flatnonzero(found >= 0).tolist():
                    places[i] = StoredPlace(part, int(found[i]))
        return places

    def ids(self, part: int, numbers: Array) -> list[DocId]:
        """Return the ids of documents of one part."""
        if part == IN_LOG:
            return [file_format.decoded_id(self.recent.codes[number]) for number in numbers.tolist()]
        return self.held[part].segment.ids(numbers)

    def id(self, part: int, number: int) -> DocId:
        """Return the id of a document."""
        return (
            file_format.decoded_id(self.recent.codes[number]) if part == IN_LOG else self.held[part].segment.id(number)
        )

    def texts(self, part: int, numbers: Array) -> list[bytes]:
        """Return the stored texts of documents of one part."""
        if part == IN_LOG:
            return [self.recent.texts[number] for number in numbers.tolist()]
        return self.held[part].segment.texts(numbers)

    def time(self, place: StoredPlace) -> int | None:
        """Return the time of a document in microseconds, ``None`` if it has none."""
        if place.part == IN_LOG:
            time = self.recent.time(place.number)
        else:
            time = int(self.held[place.part].segment.times(place.number, place.number + 1)[0])
        return None if time == NO_TIME else time

    def keys_and_sketch(self, place: StoredPlace) -> tuple[NDArray[np.uint64] | None, Array]:
        """Return the keys of a document, ``None`` if it has none, and its sketch."""
        if place.part == IN_LOG:
            return self.recent.keys_of(place.number), self.recent.sketch(place.number)
        segment = self.held[place.part].segment
        return segment.keys_of(place.number), segment.sketch(place.number)

    def arrivals_of(self, part: int, numbers: Array) -> NDArray[np.int64]:
        """Return the numbers of arrival of documents of one part."""
        if part == IN_LOG:
            return numbers.astype(np.int64) + self.recent.first
        return self.held[part].segment.arrivals_of(numbers)

    def in_order(self, read: Callable[[int, NDArray[np.int64]], Iterable[Value]]) -> Iterator[Value]:
        """Yield values of all documents in order; `read` returns those of documents of one part."""
        segments, kept = [held.segment for held in self.held], [held.kept_mask() for held in self.held]
        for chunks in arrival_steps(segments, kept, DOCUMENTS_STEP):
            yield from values_in_order(chunks, read)
        alive = self.recent.alive()
        for start in range(0, len(alive), DOCUMENTS_STEP):
            yield from read(IN_LOG, alive[start : start + DOCUMENTS_STEP])

    # ---- search ----

    def search(
        self, keys: NDArray[np.uint64], rows: Array, min_equal: int, top: int | None, recent: bool
    ) -> list[Hits]:
        """Find the documents that share a bucket with queries; only the recent ones, or only those of segments."""
        if recent:
            return [Hits(IN_LOG, *self.recent.search(keys, rows, min_equal, top))] if len(self.recent) else []
        found = search_all([held.searcher for held in self.held], keys, rows, min_equal, top)
        return [Hits(*one) for one in found]

    def verify(self) -> None:
        """Check all segments; an IndexDamagedError names the file."""
        for held in self.held:
            held.segment.verify()
        segments = [held.segment for held in self.held]
        for chunks in arrival_steps(segments, [None] * len(segments), DOCUMENTS_STEP):
            arrivals = items_in_order(chunks, lambda part, start, stop: segments[part].arrivals(start, stop))
            if (arrivals[1:] <= arrivals[:-1]).any():
                raise segments[chunks[0].segment].damage("another segment has a document with the same arrival")


def open_view(folder: str) -> tuple[View, LogReader]:
    """Return the last commit of a folder, and the reader of its log.

    All files are those of one index, also if a link to the folder or the folder itself is replaced meanwhile.
    """
    while True:
        real = os.path.realpath(folder)
        manifest = read_manifest(real)
        try:
            found = open_manifest(real, manifest)
        except (FileNotFoundError, IndexDamagedError) as error:
            if read_manifest(real, manifest) is manifest:
                if isinstance(error, IndexDamagedError):
                    raise
                raise file_format.damaged(error.filename, "it is missing, and the manifest names it") from None
        else:
            if read_manifest(real, manifest).identity == manifest.identity:
                return found


def open_manifest(folder: str, manifest: Manifest, log_limit: int | None = None) -> tuple[View, LogReader]:
    """Return what a manifest names, and the reader of its log."""
    view = View(manifest, [OpenSegment.opened(folder, entry, manifest) for entry in manifest.entries])
    log = LogReader(folder, manifest.log, manifest.parameters.layout)
    view.apply(log.read(log_limit), log)
    return view, log


# ---- snapshots, for lsh.deduplicate and lsh.find_pairs ----

KEYS_STEP = 1 << 20  # documents of buckets that are listed at once


class _RecentPart:
    """The recent documents, as a segment; their numbers are positions among those that are not removed."""

    def __init__(self, documents: DocumentBatch, arrivals: Array) -> None:
        self._count, self._arrivals = len(documents), arrivals
        self._numbers = np.flatnonzero(documents.keyed).astype(np.uint32)
        self._keys, self._sketches = documents.keys[self._numbers].T.copy(), documents.sketches.copy()
        self._codes, self._texts = documents.codes[: self._count], (documents.texts or [])[: self._count]
        self._sorted: dict[int, tuple[SortedKeys, Array]] = {}

    def band(self, band: int) -> SortedKeys:
        if band not in self._sorted:
            pair = sorted_keys(self._keys[band], self._numbers)
            self._sorted[band] = SortedKeys(*pair), pair[1]
        return self._sorted[band][0]

    def numbers_at(self, band: int, places: Array) -> Array:
        return self._sorted[band][1][places]

    def all_keys(self, band: int) -> tuple[Array, Array]:
        return self._keys[band], self._numbers

    def arrivals_of(self, numbers: Array) -> Array:
        arrivals: Array = self._arrivals[numbers]
        return arrivals

    def numbers_of(self, places: Array) -> Array:
        numbers = np.minimum(np.searchsorted(self._arrivals, places), self._count - 1)
        return np.where(self._arrivals[numbers] == places, numbers, -1)

    def sketches_of(self, numbers: Array) -> Array:
        rows: Array = self._sketches[numbers]
        return rows

    def ids(self, numbers: Array) -> list[DocId]:
        return [file_format.decoded_id(self._codes[number]) for number in numbers.tolist()]

    def texts(self, numbers: Array) -> list[bytes]:
        return [self._texts[number] for number in numbers.tolist()]


_Part = tuple[Segment | _RecentPart, NDArray[np.bool_] | None]


class ViewSnapshot(IndexSnapshot):
    """The documents of a view. The place of a document is its number of arrival."""

    def __init__(self, view: View, lookup: Lookup | None, recalls: Recalls) -> None:
        parameters = view.manifest.parameters
        self.hasher, self.plan, self.recalls = parameters.hasher, parameters.plan, recalls
        self.has_texts = parameters.texts or lookup is not None
        self.collisions = COLLISIONS if parameters.sketch == "8bit" else 0.0
        self._lookup = lookup
        self._count = len(view)
        self._layout = parameters.layout
        self._segments, self._recent = [held.segment for held in view.held], view.recent.arrivals()
        self._kept = [held.kept_mask() for held in view.held]
        self._parts: list[_Part] = list(zip(self._segments, self._kept))  # with the documents that are not removed
        if len(view.recent):
            self._parts.append((_RecentPart(view.recent.documents(), self._recent), None))

    def __len__(self) -> int:
        return self._count

    def all_places(self, step: int) -> Iterator[Array]:
        """Yield the places of all documents in order, about `step` at once."""
        for chunks in arrival_steps(self._segments, self._kept, step):
            yield items_in_order(chunks, lambda part, start, stop: self._segments[part].arrivals(start, stop))
        for start in range(0, len(self._recent), step):
            yield self._recent[start : start + step]

    def buckets(self, band: int, keys: Array) -> tuple[Array, Array]:
        """Return the documents whose key in a band is one of some keys: their keys and places."""
        found = [(np.empty(0, np.uint64), np.empty(0, np.int64))]
        keys = np.sort(keys) if len(self._parts) > 1 else np.ascontiguousarray(keys)  # lookups in order are faster
        for part in self._parts:
            starts, stops = part[0].band(band).find(keys)
            hits = np.flatnonzero(stops > starts)
            if len(hits):
                runs, once = np.unique(starts[hits], return_index=True)
                hits = hits[once]
                found += self._members(part, band, keys[hits], runs, stops[hits] - runs)
        return _joined(found)

    def _members(
        self, part: _Part, band: int, keys: Array, starts: Array, sizes: Array
    ) -> Iterator[tuple[Array, Array]]:
        """Yield the keys and places of the documents of some buckets, in chunks."""
        ends = np.cumsum(sizes)
        before = starts - (ends - sizes)  # from the position in the list of all members to the place in the band
        for begin in range(0, int(ends[-1]), KEYS_STEP):
            listed = np.arange(begin, min(begin + KEYS_STEP, int(ends[-1])))
            bucket = np.searchsorted(ends, listed, side="right")
            yield self._alive(part, keys[bucket], part[0].numbers_at(band, before[bucket] + listed))

    def _alive(self, part: _Part, keys: Array, numbers: Array) -> tuple[Array, NDArray[np.int64]]:
        """Return keys and places without those of removed documents."""
        documents, kept = part
        if kept is not None:
            keys, numbers = keys[kept[numbers]], numbers[kept[numbers]]
        return keys, documents.arrivals_of(numbers)

    def shared(self, band: int) -> tuple[Array, Array]:
        """Return the documents whose key in a band is that of another one: their keys and places."""
        found = [(np.empty(0, np.uint64), np.empty(0, np.int64))]
        for part in self._parts:
            found.append(self._alive(part, *part[0].all_keys(band)))
        keys, places = _joined(found)
        order = np.argsort(keys, kind="stable")
        equal = keys[order[1:]] == keys[order[:-1]]
        both = np.concatenate([[False], equal]) | np.concatenate([equal, [False]])
        chosen = order[both[: len(order)]]
        return keys[chosen], places[chosen]

    def _each(self, places: Array) -> Iterator[tuple[Segment | _RecentPart, Array, Array]]:
        """Yield each part that has some of the places, with the positions of these, and its numbers of documents."""
        left = len(places)
        for part, _ in self._parts:
            numbers = part.numbers_of(places)
            positions = np.flatnonzero(numbers >= 0)
            left -= len(positions)
            if len(positions):
                yield part, positions, numbers[positions]
        if left:
            raise self._segments[0].damage("another segment has a document with the same arrival")

    def _listed(self, places: Array, read: Callable[[Segment | _RecentPart, Array], Iterable[Any]]) -> list[Any]:
        """Return values of the documents at some places; `read` returns those of some documents of a part."""
        values: list[Any] = [None] * len(places)
        for part, positions, numbers in self._each(places):
            for position, value in zip(positions.tolist(), read(part, numbers)):
                values[position] = value
        return values

    def sketches(self, places: Array) -> Array:
        """Return the sketches of the documents at some places, which ascend, as rows."""
        rows = np.empty((len(places), self._layout.components), self._layout.dtype)
        for part, positions, numbers in self._each(places):
            rows[positions] = part.sketches_of(numbers)
        return rows

    def texts(self, places: Array) -> list[bytes | None]:
        """Return the texts of the documents at some places, which ascend; ``None`` where it is unknown."""
        if self._lookup is not None:
            lookup = self._lookup
            return [as_bytes(doc_id, lookup(doc_id)) for doc_id in self.ids(places)]
        return self._listed(places, lambda part, numbers: part.texts(numbers))

    def ids(self, places: Array) -> list[DocId]:
        """Return the ids of the documents at some places, which ascend."""
        return self._listed(places, lambda part, numbers: part.ids(numbers))


def _joined(found: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    return np.concatenate([keys for keys, _ in found]), np.concatenate([places for _, places in found])


def as_bytes(doc_id: DocId, text: object) -> bytes | None:
    """Return what `texts` returned as bytes."""
    if text is None:
        return None
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise TypeError(f"texts must return a text or None, got {type(text).__name__} for id {doc_id!r}")
