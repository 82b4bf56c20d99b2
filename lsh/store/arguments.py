"""The arguments of `Index`, checked: where texts are, hasher and plan, folders, lists of ids, and times."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsh.base import checks, errors
from lsh.sketch.bands import Bands
from lsh.sketch.hasher import MinHasher
from lsh.sketch.planning import Plan, chosen_hasher, chosen_plan
from lsh.store import file_format, manifest
from lsh.store.file_format import NO_TIME
from lsh.store.manifest import SKETCHES, Parameters
from lsh.store.query import recall_at
from lsh.text.batch import Batch
from lsh.text.collections import allows_missing, pieces
from lsh.text.ids import in_order
from lsh.text.shingling import Shingles
from lsh.typing import DocId, Lookup, Missing, Text, Texts, Time

DAY = 86400.0  # seconds
PIECE = 1 << 13  # documents that are added, or asked, at once
MAX_COMPONENTS = 2**16 - 1  # of a fingerprint: the number of equal ones is uint16
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")  # longer than the letter of a drive
YEARS = range(1, 10000)  # of times
_NONE_LEFT = object()
FIRST, LAST = -62_135_596_800, 253_402_300_800  # seconds from 1970 to the begin of the first year, the end of the last


def chosen_parameters(
    hasher: MinHasher | None,
    bands: Bands | Plan | None,
    threshold: float | None,
    recall: float | None,
    shingles: Shingles | None,
    num_seeds: int | None,
    random_state: int | None,
    sketch: object,
    texts: object,
    period: object,
) -> tuple[Parameters, Lookup | None]:
    """Return the parameters of a new index, and the function that returns its texts."""
    stored, lookup = where_texts_are(texts)
    chosen = chosen_hasher(hasher, shingles, num_seeds, random_state, bands)
    parameters = Parameters(
        chosen,
        chosen_plan(chosen, bands, threshold, recall, filtered=True),
        checks.choice("sketch", sketch, SKETCHES),
        stored,
        manifest.microseconds("period", period),
    )
    if chosen.num_seeds > MAX_COMPONENTS:
        raise errors.bad_value("num_seeds", f"must be at most {MAX_COMPONENTS} for an index, got {chosen.num_seeds}")
    if parameters.sketch == "none" and texts is None:
        raise ValueError("sketch='none' requires texts='stored', or a function that returns the text of an id")
    return parameters, lookup


def warn_without_texts(parameters: Parameters) -> None:
    """Warn of what an index without texts does not do, from a function that a caller calls."""
    threshold, recall = parameters.plan.threshold, recall_at(parameters, parameters.plan.threshold, False)
    warnings.warn(
        f"texts=None: without texts, similarities are estimated, so a query finds a document at the threshold of "
        f"{threshold:g} with a probability of {recall:.2g} only, and deduplicate and find_pairs need verify='sketch' "
        "for this index; use texts='stored', or a function that returns the text of an id",
        UserWarning,
        stacklevel=3,
    )


def where_texts_are(texts: object) -> tuple[bool, Lookup | None]:
    """Return whether texts are stored, and the function that returns them."""
    if texts is None or texts == "stored":
        return texts == "stored", None
    if not callable(texts):
        raise TypeError(f"texts must be None, 'stored' or a function id -> text, got {texts!r:.80}")
    return False, texts


def checked_lookup(texts: object, parameters: Parameters) -> Lookup | None:
    if texts is None:
        return None
    if not callable(texts):
        raise TypeError(f"texts must be a function id -> text, got {type(texts).__name__}")
    if parameters.texts:
        raise ValueError("texts must not be given: the index stores its texts")
    return texts


def check_same(own: Parameters, other: Parameters) -> None:
    """Check that another index has the same parameters, so that it can be merged."""
    for name in ("hasher", "plan", "sketch", "texts"):
        if getattr(own, name) != getattr(other, name):
            shown = [_shown(one, name) for one in (other, own)]
            raise errors.bad_value("other", f"must have the same {name}, got {shown[0]}, this index has {shown[1]}")


def _shown(parameters: Parameters, name: str) -> str:
    """Return a parameter for a message."""
    if name == "texts":
        return "stored texts" if parameters.texts else "no texts"
    plan = parameters.plan
    if name == "plan":
        return f"threshold {plan.threshold:g}, recall {plan.recall:g}, bands {plan.bands.to_string()}"
    return repr(getattr(parameters, name))


def folder_of(path: str | os.PathLike[str]) -> str:
    """Return the folder of an index as an absolute path."""
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise TypeError(f"path must be a str or a path, got {type(path).__name__}") from None
    if not name:
        raise ValueError("path must be the folder of an index, got an empty path")
    if URL.match(name):  # which may have a password
        raise ValueError("path must be a folder on this machine, got a URL; copy the index and give its path")
    return os.path.abspath(name)


def made_folders(folder: str) -> list[str]:
    """Make the folder of a new index, and return the folders in which one was made.

    An error if it has other files than those of an index that was not finished.
    """
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise FileExistsError(f"{folder} is a file; create the index in a new folder")
    parents, missing = [], folder
    while not os.path.isdir(missing) and os.path.dirname(missing) != missing:
        missing = os.path.dirname(missing)
        parents.append(missing)
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        if name == file_format.MANIFEST:
            raise FileExistsError(f"there is an index in {folder}; use Index.open, or another folder")
        if name not in (file_format.LOCK, file_format.NEW_MANIFEST) and not _is_new_log(folder, name):
            raise FileExistsError(f"{folder} is not empty; create the index in a new folder")
    return parents


def _is_new_log(folder: str, name: str) -> bool:
    """Tell whether a file is the log of an index that was not finished: a header, or what a crash left of it.

    A writer deletes files with such names. Others may be log files of another program, such as log-20240229, or belong
    to an index that has lost its manifest.
    """
    if file_format.file_number("log", name) is None:
        return False
    path, size = os.path.join(folder, name), file_format.LOG_HEADER.itemsize
    if not os.path.isfile(path) or os.path.getsize(path) > size:
        return False
    with open(path, "rb") as file:
        return file_format.LOG_MAGIC.startswith(file.read(len(file_format.LOG_MAGIC)).rstrip(b"\0"))


def single(text: Text, id: object, time: Time | None) -> tuple[list[bytes], NDArray[np.int64], Batch]:
    """Return the id, the time and the text of one new document in the form of `pieces`."""
    codes, times = [file_format.encoded_id("id", id)], np.array([as_time("time", time)], np.int64)
    return codes, times, Batch([checks.text("text", text)])


def documents_in_pieces(
    texts: Texts, ids: Iterable[DocId], times: Iterable[Time | None] | None, missing: Missing
) -> Iterator[tuple[list[bytes], NDArray[np.int64], Batch]]:
    """Yield encoded ids, times and texts of new documents.

    All are checked before the first ones are returned, unless `texts` has no length, such as an iterator. Of several
    pieces all are made once to check them, and each once more to return it, so that they are not all in memory.
    """
    found = _pieces(texts, ids, times, missing)
    if not hasattr(type(texts), "__len__"):
        return found
    if not all(
        one is None or hasattr(type(one), "__getitem__") for one in (texts, ids, times)
    ):  # may be read once only
        return iter(list(found))
    first = list(islice(found, 1))
    return _pieces(texts, ids, times, missing) if sum(1 for _ in found) else iter(first)


def _pieces(
    texts: Texts, ids: Iterable[DocId], times: Iterable[Time | None] | None, missing: Missing
) -> Iterator[tuple[list[bytes], NDArray[np.int64], Batch]]:
    allowed = allows_missing(missing)
    next_ids, next_times = in_order("ids", ids), None if times is None else in_order("times", times)
    found, first = pieces("texts", texts, PIECE), 0
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
