"""A snapshot of an index for `lsh.deduplicate` and `lsh.find_pairs`: later changes leave it as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsh.engine.stored import Snapshot
from lsh.store import arrival, file_format
from lsh.store.file_format import Array
from lsh.store.query import COLLISIONS, as_bytes
from lsh.store.searching import SortedKeys, sorted_keys
from lsh.store.segment import Documents, Segment
from lsh.store.view import Held, View
from lsh.typing import DocId, Lookup

PIECE = 1 << 20  # documents of buckets that are listed at once


class _SegmentPart:
    """A segment, without the documents that are removed at this moment."""

    def __init__(self, held: Held) -> None:
        self.segment: Segment = held.segment
        self.count = self.segment.documents
        self.removed = held.removed_mask()
        self.ids, self.texts, self.sketches = self.segment.ids, self.segment.texts, self.segment.sketches_of
        self.places_of, self.numbers_of = self.segment.arrivals_of, self.segment.numbers_of

    def band(self, band: int) -> SortedKeys:
        return self.segment.bands[band]

    def numbers_at(self, band: int, places: Array) -> Array:
        return self.segment.numbers_at(band, places)

    def all_keys(self, band: int) -> tuple[Array, Array]:
        return self.segment.all_keys(band)


class _RecentPart:
    """The recent documents; their numbers are positions among those that are not removed."""

    removed = None

    def __init__(self, documents: Documents, arrivals: Array) -> None:
        self.count, self._arrivals = len(documents), arrivals
        self._numbers = np.flatnonzero(documents.keyed).astype(np.uint32)
        self._keys, self._sketches = documents.keys[self._numbers].T.copy(), documents.sketches.copy()
        self._codes, self._texts = documents.codes[: self.count], (documents.texts or [])[: self.count]
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

    def places_of(self, numbers: Array) -> Array:
        places: Array = self._arrivals[numbers]
        return places

    def numbers_of(self, places: Array) -> Array:
        numbers = np.minimum(np.searchsorted(self._arrivals, places), self.count - 1)
        return np.where(self._arrivals[numbers] == places, numbers, -1)

    def sketches(self, numbers: Array) -> Array:
        rows: Array = self._sketches[numbers]
        return rows

    def ids(self, numbers: Array) -> list[DocId]:
        return [file_format.decoded_id(self._codes[number]) for number in numbers.tolist()]

    def texts(self, numbers: Array) -> list[bytes]:
        return [self._texts[number] for number in numbers.tolist()]


class IndexSnapshot(Snapshot):
    """The documents of a view. The place of a document is its number of arrival."""

    def __init__(self, view: View, lookup: Lookup | None) -> None:
        parameters = view.manifest.parameters
        self.has_texts = parameters.texts or lookup is not None
        self.has_sketches = parameters.sketch != "none"
        self.collisions = COLLISIONS if parameters.sketch == "8bit" else 0.0
        self._lookup = lookup
        self._count = len(view)
        self._layout = parameters.layout
        self._parts: list[_SegmentPart | _RecentPart] = [_SegmentPart(held) for held in view.held]
        if len(view.recent):
            self._parts.append(_RecentPart(view.recent.documents(), view.recent.arrivals()))
        self._held, self._recent = [(held.segment, held.kept_mask()) for held in view.held], view.recent.arrivals()

    def __len__(self) -> int:
        return self._count

    def all_places(self, step: int) -> Iterator[Array]:
        """Yield the places of all documents in order, about `step` at once."""
        segments, kept = [one for one, _ in self._held], [mask for _, mask in self._held]
        for pieces in arrival.steps(segments, kept, step):
            yield arrival.items_of(pieces, lambda part, start, stop: segments[part].arrivals(start, stop))
        for start in range(0, len(self._recent), step):
            yield self._recent[start : start + step]

    def buckets(self, band: int, keys: Array) -> tuple[Array, Array]:
        """Return the documents whose key in a band is one of some keys: their keys and places."""
        found = [(np.empty(0, np.uint64), np.empty(0, np.int64))]
        keys = np.sort(keys) if len(self._parts) > 1 else np.ascontiguousarray(keys)  # lookups in order are faster
        for part in self._parts:
            starts, stops = part.band(band).find(keys)
            hits = np.flatnonzero(stops > starts)
            if len(hits):
                runs, once = np.unique(starts[hits], return_index=True)
                hits = hits[once]
                found += self._members(part, band, keys[hits], runs, stops[hits] - runs)
        return _joined(found)

    def _members(
        self, part: _SegmentPart | _RecentPart, band: int, keys: Array, starts: Array, sizes: Array
    ) -> Iterator[tuple[Array, Array]]:
        """Yield the keys and places of the documents of some buckets, in pieces."""
        ends = np.cumsum(sizes)
        before = starts - (ends - sizes)  # from the position in the list of all members to the place in the band
        for begin in range(0, int(ends[-1]), PIECE):
            listed = np.arange(begin, min(begin + PIECE, int(ends[-1])))
            bucket = np.searchsorted(ends, listed, side="right")
            yield self._alive(part, keys[bucket], part.numbers_at(band, before[bucket] + listed))

    def _alive(self, part: _SegmentPart | _RecentPart, keys: Array, numbers: Array) -> tuple[Array, NDArray[np.int64]]:
        """Return keys and places without those of removed documents."""
        if part.removed is not None:
            alive = ~part.removed[numbers]
            keys, numbers = keys[alive], numbers[alive]
        return keys, part.places_of(numbers)

    def shared(self, band: int) -> tuple[Array, Array]:
        """Return the documents whose key in a band is that of another one: their keys and places."""
        found = [(np.empty(0, np.uint64), np.empty(0, np.int64))]
        for part in self._parts:
            found.append(self._alive(part, *part.all_keys(band)))
        keys, places = _joined(found)
        order = np.argsort(keys, kind="stable")
        equal = keys[order[1:]] == keys[order[:-1]]
        both = np.concatenate([[False], equal]) | np.concatenate([equal, [False]])
        chosen = order[both[: len(order)]]
        return keys[chosen], places[chosen]

    def _each(self, places: Array) -> Iterator[tuple[_SegmentPart | _RecentPart, Array, Array]]:
        """Yield each part that has some of the places, with the positions of these, and its numbers of documents."""
        left = len(places)
        for part in self._parts:
            numbers = part.numbers_of(places)
            positions = np.flatnonzero(numbers >= 0)
            left -= len(positions)
            if len(positions):
                yield part, positions, numbers[positions]
        if left:
            raise self._held[0][0].damage("another segment has a document with the same arrival")

    def _listed(self, places: Array, read: Callable[[_SegmentPart | _RecentPart, Array], Iterable[Any]]) -> list[Any]:
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
            rows[positions] = part.sketches(numbers)
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
