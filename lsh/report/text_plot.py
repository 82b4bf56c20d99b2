"""The S-curve of bands as text, for a terminal: the probability that a pair is found, by its similarity.

It draws `lsh.Bands.probability`; `lsh.plot` draws it with matplotlib. A character of Unicode's Braille patterns (U+2800
to U+28FF) has two by four dots; in ASCII an asterisk is one dot.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

from lsh.base import checks
from lsh.sketch.bands import Bands
from lsh.sketch.planning import Plan, checked_bands

__all__ = ["s_curve"]

MIN_WIDTH, MIN_HEIGHT = 40, 4  # in less, labels would overlap
MAX_SIZE = 1000  # characters or lines
GUTTER = 5  # characters before the plot: a label and the axis

_BRAILLE = 0x2800  # the pattern without dots
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # by column, from the top


class _Style(NamedTuple):
    """The characters of a plot."""

    across: int  # dots of a character, horizontally
    down: int  # dots of a character, vertically
    mark: str  # of the threshold
    axis: str
    tick: str
    corner: str
    floor: str
    notch: str


_UNICODE = _Style(2, 4, "┊", "│", "┤", "└", "─", "┴")
_ASCII = _Style(1, 1, ":", "|", "+", "+", "-", "+")


def s_curve(
    bands: Bands | Plan, *, width: int = 60, height: int = 12, threshold: float | None = None, ascii_only: bool = False
) -> str:
    """Draw the probability that a pair is found over its similarity.

    Parameters
    ----------
    bands : Bands or Plan
        The bands.
    width : int, optional
        Maximum number of characters in a line, 40 or more.
    height : int, optional
        Lines of the curve, 4 or more; labels take four more.
    threshold : float, optional
        The similarity to mark. Default: the threshold of a plan, else the similarity at which half of the pairs are
        found.
    ascii_only : bool, optional
        Draw with ASCII characters only.

    Returns
    -------
    str
        Lines without trailing spaces, joined by ``"\\n"``, without a final newline.

    Raises
    ------
    TypeError, ValueError
        If a parameter has a wrong type or is out of range.

    Examples
    --------
    >>> import lsh
    >>> from lsh.report import text_plot
    >>> print(text_plot.s_curve(lsh.plan(0.8, 0.99), width=50, height=8, ascii_only=True))
    found
    1.0 +                                 ************
        |                              ***  :
        |                             *     :
    0.5 +                           **      :
        |                         **        :
        |                       **          :
        |                   ****            :
    0.0 +*******************                :
        ++--------+--------+-------+--------+--------+
        0.0      0.2      0.4     0.6      0.8     1.0
         : similarity 0.8: found 0.992
    """
    marked = bands.threshold if isinstance(bands, Plan) else None
    bands = checked_bands(bands, sys.maxsize)
    width = checks.whole_number("width", width, MIN_WIDTH, MAX_SIZE)
    height = checks.whole_number("height", height, MIN_HEIGHT, MAX_SIZE)
    if threshold is not None:
        marked = checks.fraction("threshold", threshold, zero=True)
    elif marked is None:
        marked = bands.similarity_at(0.5)
    style = _ASCII if ascii_only else _UNICODE
    columns = width - GUTTER
    cells = _cells(bands, columns, height, style)
    at = _place(marked, columns, style.across)
    for row in cells:
        if row[at] == " ":
            row[at] = style.mark
    labels = {_height(p, height * style.down) // style.down: f"{p:.1f} {style.tick}" for p in (0.0, 0.5, 1.0)}
    lines = ["found"]
    lines += [labels.get(i, f"    {style.axis}") + "".join(row) for i, row in enumerate(cells)]
    lines += _similarities(columns, style)
    found = f"{style.mark} similarity {marked:.3g}: found {bands.probability(marked):.3f}"
    lines.append(" " * GUTTER + found)
    return "\n".join(line.rstrip() for line in lines)


def _cells(bands: Bands, columns: int, height: int, style: _Style) -> list[list[str]]:
    """Return the characters of the curve, by row (from the top) and column."""
    cells = [[0] * columns for _ in range(height)]
    for x, y in _points(bands, columns * style.across, height * style.down):
        cells[y // style.down][x // style.across] |= _DOTS[x % style.across][y % style.down]
    characters = {0: " ", 1: "*"} if style is _ASCII else {0: " "}
    return [[characters.get(dots) or chr(_BRAILLE + dots) for dots in row] for row in cells]


def _points(bands: Bands, across: int, down: int) -> Iterator[tuple[int, int]]:
    """Yield the dots of the curve, y from the top; where the curve is steep, all dots between two heights."""
    before = None
    for x in range(across):
        y = _height(bands.probability(x / (across - 1)), down)
        for between in range(y, y + 1 if before is None else max(y + 1, before)):
            yield x, between
        before = y


def _height(probability: float, down: int) -> int:
    """Return the row of dots of a probability, from the top: 1 is in the first row, 0 in the last."""
    return down - 1 - int(probability * (down - 1) + 0.5)


def _place(similarity: float, columns: int, across: int) -> int:
    """Return the column of a similarity."""
    return int(similarity * (columns * across - 1) + 0.5) // across


def _similarities(columns: int, style: _Style) -> list[str]:
    """Return the horizontal axis and its labels."""
    places = {tenth: _place(tenth / 10, columns, style.across) for tenth in range(0, 11, 1 if columns >= 50 else 2)}
    axis, labels = [style.floor] * columns, [" "] * (GUTTER + columns)
    for tenth, at in places.items():
        axis[at] = style.notch
        start = min(GUTTER + at - 1, GUTTER + columns - 3)
        labels[start : start + 3] = f"{tenth / 10:.1f}"
    return ["    " + style.corner + "".join(axis), "".join(labels)]
