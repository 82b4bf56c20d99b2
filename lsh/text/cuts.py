"""Texts as UTF-8, in which runs of text have their positions, and without some of these runs."""

from __future__ import annotations

import numpy as np

from lsh.base.arrays import Array
from lsh.typing import Text


def encoded(text: Text) -> bytes:
    """Return a text as UTF-8."""
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)


def in_characters(data: bytes, places: Array) -> Array:
    """Return places in the UTF-8 of a text as numbers of characters; a byte that is not UTF-8 is one."""
    if not len(places):
        return places
    try:
        data.decode("utf-8", "surrogatepass")
        begins = np.frombuffer(data, np.uint8) & 0xC0 != 0x80
    except UnicodeDecodeError:
        sizes = [len(one.encode("utf-8", "surrogateescape")) for one in data.decode("utf-8", "surrogateescape")]
        begins = np.zeros(len(data), np.bool_)
        begins[np.cumsum(sizes) - sizes] = True
    return np.concatenate([[0], np.cumsum(begins)])[places]


def without(data: bytes, cuts: Array) -> bytes:
    """Return bytes without some runs.

    Parameters
    ----------
    data : bytes
        The UTF-8 of a text.
    cuts : numpy.ndarray
        int64, shape ``(c, 2)``: where each run starts and ends; ascending, without overlaps.

    Raises
    ------
    ValueError
        If a run ends behind the text.
    """
    bounds = [0, *cuts.reshape(-1).tolist(), len(data)]
    if bounds[-2] > len(data):
        raise ValueError(f"the text has {len(data):,} bytes, fewer than where a passage ends, {bounds[-2]:,}")
    return b"".join([data[start:stop] for start, stop in zip(bounds[::2], bounds[1::2])])
