"""What the commands of an index share: opening it, checks, ids, times, and matches as JSON."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Literal

import lsh
from lsh import files
from lsh.command import console, inputs
from lsh.engine.dedup import MIN_RECALL

if TYPE_CHECKING:  # other commands do not need it
    from lsh.store.index import Index
    from lsh.store.matches import Matches
    from lsh.typing import DocId

DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([smhdw])", re.ASCII)
MAX_DIGITS = 40  # of an id that may be a number, with zeros before it
WHOLE_NUMBER = re.compile(rb"0|-?[1-9][0-9]*")  # as it is printed
SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
MAX_SECONDS = 253402300799.0  # the end of the year 9999; more are milliseconds
MAX_DURATION = 365_000 * 86400.0  # about 1,000 years
COMPACT_DATE = re.compile(r"(19|20)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])")


# ---- the index ----


def folder_of(path: str) -> str:
    """Return the folder of an index; an error if it is a URL."""
    folder = files.local(path)
    if files.is_url(folder):
        raise ValueError(
            f"an index must be a folder on this machine, got {files.shown(path)}; name a local folder, or copy "
            "the index to one first"
        )
    if not folder:
        raise ValueError("the name of the index is empty; name its folder")
    return folder


def opened(path: str, mode: Literal["r", "a"] = "r") -> Index:
    """Open an index."""
    folder = folder_of(path)
    try:
        return lsh.Index.open(folder, mode)
    except FileNotFoundError:
        if os.path.lexists(folder):
            raise ValueError(f"{folder} is not an index; name the folder of one") from None
        raise ValueError(f"no index at {folder}; create one with: lsh index create {folder}") from None
    except lsh.index.IndexLockedError as error:  # its remedy is for programs
        raise ValueError(f"{error.reason}; run this again when it has ended") from None


def check_comparison(index: Index, name: str, threshold: float, verify: str | None) -> None:
    """Check that the documents of an index can be compared: from this similarity, and by their texts for "exact"."""
    recall = index._recalls(threshold, verify)[0]
    if recall < MIN_RECALL:
        raise ValueError(
            f"--threshold {threshold:g} has a recall of {recall:.2g} with the bands of {name}, which "
            f"are for {index.threshold:g}; create an index with --threshold {threshold:g}"
        )
    if verify == "exact" and not index.info()["texts"]:
        raise ValueError(
            f"{name} stores no texts to compare; give --verify sketch to compare estimates, or create an "
            "index with the texts (without --texts none)"
        )


def say_recall(index: Index, threshold: float, verify: str | None) -> None:
    """Print the recall, unless it is the one that the index was created for."""
    if threshold != index.threshold or verify == "sketch":
        recall, estimates = index._recalls(threshold, verify)[1], " and estimates" if verify == "sketch" else ""
        console.say(f"--threshold {threshold:g}: recall {recall:.4g} with the bands of the index{estimates}")


def add_index(parser: argparse.ArgumentParser) -> None:
    """Add the argument of the index."""
    parser.add_argument("index", metavar="INDEX", help="the folder of the index")


def add_quiet(parser: argparse._ActionsContainer) -> None:
    """Add the option that leaves only errors."""
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")


def add_loudness(parser: argparse._ActionsContainer) -> None:
    """Add the options that leave only errors, or print progress in logs."""
    loudness = parser.add_mutually_exclusive_group()
    add_quiet(loudness)
    loudness.add_argument("-v", "--verbose", action="store_true", help="print progress in logs, too")


def check_apart(index: str, places: Sequence[files.Place], output: str | None = None) -> None:
    """Check that the index, the files that are read and the output do not lie in each other."""
    folder = folder_of(index)
    for place in places:
        if files.lies_in(place.path, folder) or (place.is_folder and files.lies_in(folder, place.path)):
            raise ValueError(f"INPUT must not lie in INDEX or hold it, got {files.shown(place.path)}; move one of them")
    if output is not None and files.lies_in(output, folder):
        raise ValueError(f"OUTPUT must not lie in INDEX, got {files.shown(output)}; write to another place")


# ---- ids ----


def stored_ids(index: Index, given: Iterable[bytes]) -> dict[bytes, list[DocId]]:
    """Return the ids of the stored documents that are printed like each given one: that text, the number, the bytes."""
    found: dict[bytes, list[DocId]] = {one: [] for one in given}
    for read in (files.decoded, _whole_number, bytes):
        wanted = [(one, doc_id) for one in found if (doc_id := read(one)) is not None]
        for (one, doc_id), is_stored in zip(wanted, index._are_stored([doc_id for _, doc_id in wanted])):
            if is_stored:
                found[one].append(doc_id)
    return found


def _whole_number(given: bytes) -> int | None:
    """Return a number of 64 bits, ``None`` if it is none."""
    number = int(given) if WHOLE_NUMBER.fullmatch(given) and len(given) <= MAX_DIGITS else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def found_ids(index: Index, texts: Sequence[str]) -> list[DocId]:
    """Return one id of a stored document for each of the command line; an error if there is none."""
    found = stored_ids(index, map(os.fsencode, texts))
    for text in texts:
        if not found[os.fsencode(text)]:
            raise ValueError(f"no document of the index has the id {text!r}")
    return [found[os.fsencode(text)][0] for text in texts]


def shown_id(identity: DocId) -> str | int:
    """Return an id as a value of JSON; bytes as text."""
    return files.decoded(identity) if isinstance(identity, bytes) else identity


# ---- output ----


def line(identity: DocId | None, matches: Matches, **more: object) -> bytes:
    """Return a line of JSON: an id, more values, and the matches of a document."""
    shown = [
        {
            "id": shown_id(match.id),
            "similarity": match.similarity,
            "interval": list(match.interval),
            "verified": match.verified,
        }
        for match in matches
    ]
    own = {} if identity is None else {"id": shown_id(identity)}
    return json.dumps({**own, **more, "matches": shown}).encode() + b"\n"


def check_output(namespace: argparse.Namespace) -> None:
    """Check the output, which is lines of JSON: its name does not end in another format, and it is not in the index."""
    output, ending = namespace.output, files.Format.of_path(namespace.output)
    if output == files.STANDARD:
        console.check_standard_output()
    if ending is not None and ending.name not in ("jsonl", "txt"):
        raise ValueError(f"-o: the output is lines of JSON, got the name {output}; give it a name that ends in .jsonl")
    inputs.check_files([], [("OUTPUT", output)])
    check_apart(namespace.index, [], output)


# ---- times ----


def parsed_time(text: str) -> float | datetime:
    """Parse a time: seconds since 1970, or ISO 8601, where a time without a zone is UTC.

    Examples
    --------
    >>> parsed_time("1700000000.5")
    1700000000.5
    >>> parsed_time("2024-02-29").isoformat(), parsed_time("2024-02-29T12:30:00+02:00").isoformat()
    ('2024-02-29T00:00:00+00:00', '2024-02-29T12:30:00+02:00')
    """
    if COMPACT_DATE.fullmatch(text):
        raise ValueError(
            f"{text} may be a date or seconds since 1970; write dates as {text[:4]}-{text[4:6]}-{text[6:]}"
        )
    with suppress(ValueError):
        seconds = float(text)
        if abs(seconds) <= MAX_SECONDS:
            return seconds
    if text.isdecimal():
        raise ValueError(f"the time {text} is after the year 9999; times are in seconds, divide milliseconds by 1000")
    if text[-1:] in ("Z", "z"):
        text = text[:-1] + "+00:00"
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"a time must be seconds since 1970 or ISO 8601, such as 2024-02-29T12:30:00Z, got {text!r:.60}"
        ) from None
    return time if time.tzinfo is not None else time.replace(tzinfo=timezone.utc)


def duration(option: str, text: str, least: float = 0.0) -> float:
    """Parse a duration such as ``"30d"``, in seconds.

    Examples
    --------
    >>> duration("--period", "36h"), duration("--period", "1.5d")
    (129600.0, 129600.0)
    """
    found = DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{option} must be a number and a unit (s, m, h, d or w), such as 30d, got {text!r}")
    seconds = float(found[1]) * SECONDS[found[2]]
    if not least <= seconds <= MAX_DURATION:
        raise ValueError(f"{option} must be {least:g}s to {MAX_DURATION / SECONDS['d']:,.0f}d, got {text!r}")
    return seconds


def shown_time(seconds: float) -> str:
    """Return a time in UTC, as ISO 8601; seconds where the calendar ends."""
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g} seconds"
