"""Strings in lines of JSON: where one is, and a line in which runs of its text are left out.

A line is valid JSON, as it was read before. What stays of a string stays as it is written, with its escapes.
"""

from __future__ import annotations

import json
import re

import numpy as np

from lsh.base.arrays import Array
from lsh.text.cuts import without

_OPENING = re.compile(rb'[ \t\r]*:[ \t\r]*"')
_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*')
_PAIR = rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # of surrogates: one character
_ESCAPE = re.compile(_PAIR + rb"|\\u[0-9a-fA-F]{4}|\\.")
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)  # numbers of any length


def shortened(line: bytes, field: str, cuts: Array) -> bytes:
    """Return a line with the string of a field without some runs of its text; see `lsh.text.cuts.without`.

    The field is given by its name, or by dots.
    """
    start, end = _plain_place(line, field) or _place(line, field)
    string = line[start:end]
    return line[:start] + without(string, _written_places(string, cuts)) + line[end:]


def _plain_place(line: bytes, field: str) -> tuple[int, int] | None:
    """Return where the string of a field is that is plainly the only one of its name, in little time; else ``None``."""
    name = b'"%b"' % field.encode("utf-8", "surrogatepass")
    at = line.find(name)
    before = line[: max(at, 0)]
    if at < 0 or line.find(name, at + 1) >= 0 or b"\\" in before or b"[" in before or before.count(b"{") != 1:
        return None
    opening = _OPENING.match(line, at + len(name))
    if opening is None:
        return None
    start = opening.end()
    end = line.find(b'"', start)
    if b"\\" in line[start:end]:
        string = _STRING.match(line, start)
        end = len(line) if string is None else string.end()
    return None if b"\\" in line[end:] else (start, end)  # with escapes, the name may come once more


def _place(line: bytes, field: str) -> tuple[int, int]:
    """Return where the string of a field is."""
    text = line.decode("utf-8")
    places = _member_places(text, 0)
    if field in places:
        place = places[field]
    else:
        first, *rest = field.split(".")
        place = places[first]
        for part in rest:
            place = _member_places(text, place[0])[part]
    start, end = (len(text[:at].encode("utf-8")) for at in place)
    return start + 1, end - 1


def _member_places(line: str, at: int) -> dict[str, tuple[int, int]]:
    """Return where the values of an object start and end; of equal names the last counts."""
    places = dict[str, tuple[int, int]]()
    at = _after_space(line, _after_space(line, at) + 1)
    while line[at] != "}":
        name, at = _DECODER.raw_decode(line, at)
        start = _after_space(line, _after_space(line, at) + 1)
        _, at = _DECODER.raw_decode(line, start)
        places[name] = start, at
        at = _after_space(line, at)
        at = _after_space(line, at + 1) if line[at] == "," else at
    return places


def _after_space(line: str, at: int) -> int:
    """Return the first place from `at` on that has no white space of JSON."""
    match = _SPACE.match(line, at)
    assert match is not None  # it may be empty
    return match.end()


def _written_places(string: bytes, places: Array) -> Array:
    """Return where places in the UTF-8 of a text are in the string as it is written, without its quotes."""
    if b"\\" not in string:
        return places
    found = [(match.start(), match.group()) for match in _ESCAPE.finditer(string)]
    begins = np.array([begin for begin, _ in found])
    more = np.cumsum([0, *(len(escape) - _size(escape) for _, escape in found)])  # bytes that the escapes before add
    escapes_before = np.searchsorted(begins - more[:-1], places.reshape(-1))
    written: Array = places + more[escapes_before].reshape(places.shape)
    return written


def _size(escape: bytes) -> int:
    """Return how many bytes of UTF-8 an escape stands for."""
    if len(escape) == 2:
        return 1
    if len(escape) == 12:
        return 4
    code = int(escape[2:], 16)
    return 1 if code < 0x80 else 2 if code < 0x800 else 3
