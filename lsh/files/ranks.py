"""The values of a column by which documents are ranked: numbers, or dates as ISO 8601 writes them.

A date becomes microseconds since 1970, without what it has beyond them; one without a zone is UTC. Whole numbers of 64
bits are exact, unless one of the column is larger or has a fraction: then all are floats. All values of a column are of
one kind, which the first one shows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from lsh.base.errors import Parameter, saying

Ranks = np.ndarray[Any, Any]  # int64 or float64
Rank = int | float

MICROSECONDS = "M8[us]"
MAX_SHOWN = 60  # characters of a value in a message
MAX_WHOLE = 2**63 - 1
_WHOLE = rb"[+-]?\d{1,18}"
_DATE = rb"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?"
_WHOLES, _DATES = re.compile(rb"(?:%b\n)*" % _WHOLE), re.compile(rb"(?:%bZ?\n)*" % _DATE)  # many, a line each
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_ONE_DATE = re.compile(rf"({_DATE.decode()})(?:[Zz]|([+-])([01]\d|2[0-3]):?([0-5]\d)?)?", re.ASCII)


class Ranking:
    """Reads the values of a column.

    Parameters
    ----------
    name : str
        The name of the column, for messages.

    Examples
    --------
    >>> ranking = Ranking("date")
    >>> ranking.one("1970-01-02T01:00+01:00"), ranking.many([b"1970-01-01", b"1969-12-31T23:59:59.5Z"]).tolist()
    (86400000000, [0, -500000])
    >>> Ranking("score").one("3"), Ranking("score").one("-0.5e3")
    (3, -500.0)
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._kind = ""

    def one(self, value: bytes | str | None) -> Rank:
        """Read a value.

        Raises
        ------
        ValueError
            If there is none, or it is neither a number nor a date, or of another kind than the first.
        """
        text = (value.decode("utf-8", "replace") if isinstance(value, bytes) else value or "").strip()
        got = repr(text[:MAX_SHOWN]) if text else "no value"
        kind = "number" if _NUMBER.fullmatch(text) else "date"
        found = _number(text) if kind == "number" else microseconds(text)
        if found is None:
            example = "a number or a date such as 2024-02-29 or 2024-02-29T12:30:00Z"
            raise self._error(example, got)
        if self._kind and kind != self._kind:
            raise self._error(f"a {self._kind}, as in the first document", got)
        self._kind = kind
        return found

    def _error(self, expected: str, got: str) -> ValueError:
        problem = Parameter("keep_field", self._name) + f": expected {expected}, got {got}"
        return saying(ValueError(str(problem)), problem)

    def many(self, values: Sequence[bytes]) -> Ranks | None:
        """Read many values; ``None`` if they are not of one plain form, for `one`."""
        joined = b"\n".join([*values, b""])
        if joined.count(b"\n") > len(values):
            return None
        if self._kind != "date" and _WHOLES.fullmatch(joined):
            self._kind = "number" if values else self._kind
            return np.array(list(map(int, joined.split())), np.int64)
        if self._kind != "number" and _DATES.fullmatch(joined):
            with suppress(ValueError):  # such as a month 13
                found = np.array(joined.replace(b"Z", b"").split(b"\n")[:-1]).astype(MICROSECONDS).astype(np.int64)
                self._kind = "date"
                return found
        return None


def as_ranks(values: Sequence[Rank]) -> Ranks:
    """Return values as an array of whole numbers or, if one has a fraction, of floats."""
    return np.array(values, np.int64 if all(isinstance(value, int) for value in values) else np.float64)


def _number(text: str) -> Rank | None:
    """Read a number; a whole one beyond 64 bits becomes a float, and one beyond floats is none."""
    with suppress(ValueError):
        whole = int(text)
        if -MAX_WHOLE - 1 <= whole <= MAX_WHOLE:
            return whole
    found = float(text)
    return found if math.isfinite(found) else None


def microseconds(text: str) -> int | None:
    """Return the microseconds from 1970 to a date as ISO 8601 writes it, ``None`` if it is none.

    Without a zone it is UTC; what is beyond microseconds is left out.

    Examples
    --------
    >>> microseconds("1970-01-02"), microseconds("1970-01-01T01:00:00.5+01:00"), microseconds("soon")
    (86400000000, 500000, None)
    """
    match = _ONE_DATE.fullmatch(text)
    if match is None:
        return None
    date, sign, hours, minutes = match.groups()
    try:
        local = int(np.datetime64(date, "us").astype(np.int64))
    except ValueError:
        return None
    offset = (int(hours or 0) * 60 + int(minutes or 0)) * 60_000_000
    return local + offset if sign == "-" else local - offset
