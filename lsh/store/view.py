"""What an index holds at one moment: segments without their removed documents, and the recent documents.

A place of a document is the position of its segment and its number there. The order of the documents is that of their
arrival; the recent documents come after those of all segments.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsh.store import arrival, file_format
from lsh.store.file_format import IN_LOG, NO_TIME, Array, IndexDamagedError
from lsh.store.log import Change, LogReader
from lsh.store.manifest import Entry, Manifest, read_manifest, read_removed
from lsh.store.memtable import Recent
from lsh.store.searching import Searcher, search_all
from lsh.store.segment import Segment
from lsh.typing import DocId

STEP = 1 << 12  # documents that are listed at once


Value = TypeVar("Value")


class Place(NamedTuple):
    """Where a document is: the position of the segment (`IN_LOG` for a recent document), and its number there."""

    part: int
    number: int


class Found(NamedTuple):
    """What a search found in one part: query i has the documents ``numbers[bounds[i] : bounds[i + 1]]``."""

    part: int
    bounds: NDArray[np.int64]
    numbers: NDArray[np.uint32]
    equal: NDArray[np.uint16] | None


class Held:
    """A segment, and which of its documents are removed.

    `removed` is a bitmap, the lowest bit of a byte first. It is changed in place: the owner holds a
    lock, or has a copy.
    """

    def __init__(self, segment: Segment, removed: Array | None, count: int, entry: Entry) -> None:
        self.segment = segment
        self.removed = removed
        self.removed_count = count
        self.entry = entry  # of the manifest; it does not know what was removed since
        self._searcher: Searcher | None = None

    @classmethod
    def opened(cls, folder: str, entry: Entry, manifest: Manifest) -> Held:
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

    def copy(self) -> Held:
        """Return a copy that can be changed."""
        bitmap = None if self.removed is None else self.removed.copy()
        return Held(self.segment, bitmap, self.removed_count, self.entry)

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
        mask = self.removed_mask()
        return None if mask is None else ~mask

    def removed_mask(self) -> NDArray[np.bool_] | None:
        """Return for each document whether it is removed, ``None`` if none is."""
        if self.removed is None or not self.removed_count:
            return None
        return np.unpackbits(self.removed, count=self.segment.documents, bitorder="little").view(bool)

    def alive(self) -> NDArray[np.int64]:
        """Return the numbers of the documents that are not removed."""
        mask = self.removed_mask()
        return np.arange(self.segment.documents) if mask is None else np.flatnonzero(~mask)

    def find(self, codes: list[bytes], hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the number of the document of each encoded id, -1 where there is none that is not removed."""
        numbers = self.segment.find(codes, hashes)
        for i in np.flatnonzero(numbers >= 0).tolist():
            if not self.is_alive(int(numbers[i])):
                numbers[i] = -1
        return numbers


class View:
    """The documents of an index at one moment."""

    def __init__(self, manifest: Manifest, held: list[Held]) -> None:
        self.manifest = manifest
        self.held = held
        self.recent = Recent(manifest.parameters.layout, manifest.arrived)

    def __len__(self) -> int:
        return sum(map(len, self.held)) + len(self.recent)

    # ---- changes ----

    def apply(self, changes: list[Change], log: LogReader) -> None:
        """Make the changes of a log."""
        for change in changes:
            for part, number in change.removed.tolist():
                if not self.is_alive(Place(part, number)):
                    raise log.damage("it removes a document that does not exist")
                self.remove(Place(part, number))
            if change.added is not None:
                if any(code in self.recent.numbers for code in change.added.codes):
                    raise log.damage("it adds a document that exists")
                self.recent.add(change.added)

    def is_alive(self, place: Place) -> bool:
        """Tell whether there is a document."""
        if place.part == IN_LOG:
            return self.recent.is_alive(place.number)
        return place.part < len(self.held) and self.held[place.part].is_alive(place.number)

    def remove(self, place: Place) -> None:
        """Remove a document."""
        if place.part == IN_LOG:
            self.recent.remove(place.number)
        else:
            self.held[place.part].remove(place.number)

    # ---- single documents ----

    def find(self, codes: list[bytes]) -> list[Place | None]:
        """Return where the document of each encoded id is."""
        numbers = self.recent.numbers
        places: list[Place | None] = [None] * len(codes)
        if not numbers.keys().isdisjoint(codes):  # much faster than the loop, and mostly true while documents are added
            places = [Place(IN_LOG, numbers[code]) if code in numbers else None for code in codes]
        if self.held:
            hashes = file_format.hashed_ids(codes)
            for part, held in enumerate(self.held):
                found = held.find(codes, hashes)
                for i in np.flatnonzero(found >= 0).tolist():
                    places[i] = Place(part, int(found[i]))
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

    def time(self, place: Place) -> int | None:
        """Return the time of a document in microseconds, ``None`` if it has none."""
        if place.part == IN_LOG:
            time = self.recent.time(place.number)
        else:
            time = int(self.held[place.part].segment.times(place.number, place.number + 1)[0])
        return None if time == NO_TIME else time

    def keys_and_sketch(self, place: Place) -> tuple[NDArray[np.uint64] | None, Array]:
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
        for pieces in arrival.steps(segments, kept, STEP):
            yield from arrival.listed(pieces, read)
        alive = self.recent.alive()
        for start in range(0, len(alive), STEP):
            yield from read(IN_LOG, alive[start : start + STEP])

    # ---- search ----

    def search(
        self, keys: NDArray[np.uint64], rows: Array | None, least_equal: int, top: int | None, recent: bool
    ) -> list[Found]:
        """Find the documents that share a bucket with queries; only the recent ones, or only those of segments."""
        if recent:
            return [Found(IN_LOG, *self.recent.search(keys, rows, least_equal, top))] if len(self.recent) else []
        found = search_all([held.searcher for held in self.held], keys, rows, least_equal, top)
        return [Found(*one) for one in found]

    def verify(self) -> None:
        """Check all segments; an IndexDamagedError names the file."""
        for held in self.held:
            held.segment.verify()
        segments = [held.segment for held in self.held]
        for pieces in arrival.steps(segments, [None] * len(segments), STEP):
            arrivals = arrival.items_of(pieces, lambda part, start, stop: segments[part].arrivals(start, stop))
            if (arrivals[1:] <= arrivals[:-1]).any():
                raise segments[pieces[0].segment].damage("another segment has a document with the same arrival")


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
    view = View(manifest, [Held.opened(folder, entry, manifest) for entry in manifest.entries])
    log = LogReader(folder, manifest.log, manifest.parameters.layout)
    view.apply(log.read(log_limit), log)
    return view, log
