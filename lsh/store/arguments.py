"""The documents that a caller gives: their texts, ids and times, checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsh.base import checks
from lsh.segments import file_format
from lsh.segments.file_format import NO_TIME
from lsh.text.batch import Batch
from lsh.text.collections import allows_missing, pieces
from lsh.text.ids import in_order
from lsh.typing import DocId, Missing, Text, Texts, Time

BATCH = 1 << 13  # documents that are added, or asked, at once
YEARS = range(1, 10000)  # of times
_NONE_LEFT = object()
FIRST, LAST = -62_135_596_800, 253_402_300_800  # seconds from 1970 to the begin of the first year, the end of the last


def single(text: Text, id: object, time: Time | None) -> tuple[list[bytes], NDArray[np.int64], Batch]:
    """Return the id, the time and the text of one new document in the form of `document_batches`."""
    codes, times = [file_format.encoded_id("id", id)], np.array([as_time("time", time)], np.int64)
    return codes, times, Batch([checks.text("text", text)])


def document_batches(
    texts: Texts, ids: Iterable[DocId], times: Iterable[Time | None] | None, missing: Missing
) -> Iterator[tuple[list[bytes], NDArray[np.int64], Batch]]:
    """Yield encoded ids, times and texts of new documents.

    All are checked before the first ones are returned, unless `texts` has no length, such as an iterator. Of several
    batches all are made once to check them, and each once more to return it, so that they are not all in memory.
    """
    found = _batches(texts, ids, times, missing)
    if not hasattr(type(texts), "__len__"):
        return found
    if not all(
        one is None or hasattr(type(one), "__getitem__") for one in (texts, ids, times)
    ):  # may be read once only
        return iter(list(found))
    first = list(islice(found, 1))
    return _batches(texts, ids, times, missing) if sum(1 for _ in found) else iter(first)


def _batches(
    texts: Texts, ids: Iterable[DocId], times: Iterable[Time | None] | None, missing: Missing
) -> Iterator[tuple[list[bytes], NDArray[np.int64], Batch]]:
    allowed = allows_missing(missing)
    next_ids, next_times = in_order("ids", ids), None if times is None else in_order("times", times)
    found, first = pieces("texts", texts, BATCH), 0
    more = isinstance(found, Iterator)
    for piece in found if isinstance(found, Iterator) else (found,):
        batch, count = Batch(piece, first, allowed), len(piece)
        codes = file_format.encoded_ids("ids", listed("ids", next_ids, count, first, more), first)
        values = None if next_times is None else listed("times", next_times, count, first, more)
        yield codes, as_times(values, count, first), batch
        first += count
    for name, rest in (("ids", next_ids), ("times", next_times)):
        if rest is not None and more and next(rest, _NONE_LEFT) is not _NONE_LEFT:
            raise ValueError(f"{name} must have one element for each text ({first}), got more")


def listed(name: str, values: Iterator[Any], count: int, first: int, more: bool) -> list[Any]:
    """Return the next elements, one for each of `count` texts; if there are no more texts, these must be all."""
    listed = list(islice(values, count if more else count + 1))
    if len(listed) != count:
        found = f"{first + len(listed)}" if len(listed) < count else "more"
        raise ValueError(f"{name} must have one element for each text ({first + count}), got {found}")
    return listed


def as_times(values: list[Any] | None, count: int, first: int) -> NDArray[np.int64]:
    """Return the times of `count` documents, of which the first one has the position `first`."""
    if values is None:
        return np.full(count, NO_TIME, np.int64)
    return np.array([as_time(f"times[{i}]", value) for i, value in enumerate(values, first)], np.int64)


def as_time(name: str, value: Any) -> int:
    """Return a time as microseconds since 1970; NO_TIME for None, and for the missing values of numpy and pandas."""
    if not isinstance(value, float) and checks.is_missing(value):
        return NO_TIME
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{name} must have a time zone, got {value!r}; use value.replace(tzinfo=...)")
        microseconds = round(value.timestamp() * 1e6)
    elif isinstance(value, np.datetime64):
        if np.isnat(value):
            return NO_TIME
        if 1970 + int(value.astype("datetime64[Y]").astype(np.int64)) not in YEARS:  # else it could overflow below
            raise ValueError(f"{name} must be a time of the years 1 to 9999, got {value}")
        microseconds = int(value.astype("datetime64[us]").astype(np.int64))
    elif isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, (bool, np.timedelta64)):
        seconds = float(value) if isinstance(value, (float, np.floating)) else int(value)  # numpy's may overflow below
        if not FIRST <= seconds < LAST:  # also NaN
            raise ValueError(
                f"{name} must be seconds since 1970, of the years 1 to 9999, got {value}; divide milliseconds by 1,000"
            )
        microseconds = round(seconds * 1_000_000)
    else:
        raise TypeError(f"{name} must be seconds, a datetime or a numpy.datetime64, got {type(value).__name__}")
    return int(microseconds)
