"""The order of arrival, in which the documents of several segments are listed and merged.

Each document has a number of arrival, which ascends within a segment. Segments may be interleaved: documents of other
periods are in other segments. So several segments are read together, in steps, each up to the same number of arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsh.store.file_format import Array
from lsh.store.segment import Segment

LEAST_STEP = 1 << 8  # documents of each segment that are read at once

Kept = Sequence[NDArray[np.bool_] | None]  # which documents of each segment are kept; None for all
Value = TypeVar("Value")


class Piece(NamedTuple):
    """Documents start to stop - 1 of a segment, and where each one that is kept is in the order of its step."""

    segment: int
    start: int
    stop: int
    chosen: NDArray[np.bool_] | None  # which of them are kept; None for all
    positions: NDArray[np.int64]

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The numbers of the documents that are kept."""
        return np.arange(self.start, self.stop) if self.chosen is None else self.start + np.flatnonzero(self.chosen)


def steps(segments: Sequence[Segment], kept: Kept, step: int) -> Iterator[list[Piece]]:
    """Yield the documents that are kept, in order of arrival: each time the pieces of about `step` of them."""
    at, step = [0] * len(segments), max(step // max(len(segments), 1), LEAST_STEP)
    left = list(range(len(segments)))
    while left:
        ends = [min(at[i] + step, segments[i].documents) for i in left]
        limit = min(segments[i].arrival(end - 1) for i, end in zip(left, ends))
        found = list[tuple[int, int, int, NDArray[np.bool_] | None]]()
        for i, end in zip(left, ends):
            if segments[i].arrival(at[i]) <= limit:
                start = at[i]
                at[i] += int(np.searchsorted(segments[i].arrivals(start, end), limit, side="right"))
                keep = kept[i]
                chosen = None if keep is None or keep[start : at[i]].all() else keep[start : at[i]]
                if chosen is None or chosen.any():
                    found.append((i, start, at[i], chosen))
        if found:
            yield _positioned(segments, found)
        left = [i for i in left if at[i] < segments[i].documents]


def _positioned(
    segments: Sequence[Segment], found: list[tuple[int, int, int, NDArray[np.bool_] | None]]
) -> list[Piece]:
    """Return pieces with the positions of their documents."""
    none = np.empty(0, np.int64)
    pieces = [Piece(*one, none) for one in found]
    arrivals = [_cut(segments[one.segment].arrivals(one.start, one.stop), one.chosen) for one in pieces]
    positions = np.arange(sum(map(len, arrivals)))
    if len(pieces) > 1:
        positions[np.argsort(np.concatenate(arrivals), kind="stable")] = np.arange(len(positions))
    ends = np.cumsum([len(own) for own in arrivals])
    return [one._replace(positions=own) for one, own in zip(pieces, np.split(positions, ends[:-1]))]


def _cut(items: Array, chosen: NDArray[np.bool_] | None) -> Array:
    return items if chosen is None else items[chosen]


def items_of(pieces: list[Piece], read: Callable[[int, int, int], Array]) -> Array:
    """Return the items of the documents of a step in order; `read` returns those of a range of a segment."""
    items = [_cut(read(one.segment, one.start, one.stop), one.chosen) for one in pieces]
    if len(items) == 1:
        return items[0]
    ordered: Array = np.empty((sum(map(len, items)), *items[0].shape[1:]), items[0].dtype)
    for one, own in zip(pieces, items):
        ordered[one.positions] = own
    return ordered


def listed(pieces: list[Piece], read: Callable[[int, NDArray[np.int64]], Iterable[Value]]) -> list[Value]:
    """Return the values of the documents of a step in order; `read` returns those of some documents of a segment."""
    values: list[Any] = [None] * sum(len(one.positions) for one in pieces)
    for one in pieces:
        for position, value in zip(one.positions.tolist(), read(one.segment, one.numbers)):
            values[position] = value
    return values


def ranks(segments: Sequence[Segment], kept: Kept, dtype: Any, step: int) -> list[Array | range]:
    """Return for each document of each segment how many that are kept arrived before it; a range where that is one.

    The rank of a document that is not kept is the greatest number of the type.
    """
    counts = [one.documents if keep is None else int(keep.sum()) for one, keep in zip(segments, kept)]
    spans = [one.written.arrivals for one in segments]
    result: list[Array | range] = []
    for i, (segment, (first, last)) in enumerate(zip(segments, spans)):
        if kept[i] is None and all(j == i or own[1] < first or own[0] > last for j, own in enumerate(spans)):
            before = sum(count for count, own in zip(counts, spans) if own[1] < first)
            result.append(range(before, before + segment.documents))
        else:
            result.append(np.full(segment.documents, np.iinfo(dtype).max, dtype))
    first = 0
    for pieces in steps(segments, kept, step) if not all(isinstance(one, range) for one in result) else ():
        for one in pieces:
            if not isinstance(own := result[one.segment], range):
                own[one.numbers] = first + one.positions
        first += sum(len(one.positions) for one in pieces)
    return result
