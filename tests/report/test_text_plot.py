"""The curve in characters: its values are read back from the lines and compared with the formula of the bands.

The reader below uses only what is visible: where the axes begin, their labels, and which dots are set. It
takes the curve's height in each column of dots and compares it with the probability there, to the nearest dot.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsh
from lsh.report import text_plot

# Dots of a Braille character by column, from the top, as Unicode numbers them: 1 2 3 7 and 4 5 6 8.
BRAILLE = ([1, 2, 3, 7], [4, 5, 6, 8])


def found(widths: tuple[int, ...], similarity: float) -> float:
    """The probability to share at least one band, multiplied band by band."""
    missed = 1.0
    for width in widths:
        missed *= 1 - similarity**width
    return 1 - missed


def dots(rows: list[str], ascii_only: bool) -> set[tuple[int, int]]:
    """The dots that are set, counted from the left and from the top."""
    marks = set()
    for y, row in enumerate(rows):
        for x, character in enumerate(row):
            if ascii_only:
                assert character in " *:"
                marks |= {(x, y)} if character == "*" else set()
            else:
                assert character in " ┊" or 0x2800 < ord(character) <= 0x28FF
                bits = ord(character) - 0x2800 if character not in " ┊" else 0
                for column in (0, 1):
                    marks |= {
                        (2 * x + column, 4 * y + line) for line in range(4) if bits >> BRAILLE[column][line] - 1 & 1
                    }
    return marks


def parts(drawing: str, height: int) -> tuple[list[str], list[str], list[str]]:
    """The five characters left of the plot, the plot, and the three lines below; the first line says `found`."""
    lines = drawing.split("\n")
    assert lines[0] == "found"
    assert len(lines) == height + 4
    return [line[:5] for line in lines[1 : height + 1]], [line[5:] for line in lines[1 : height + 1]], lines[-3:]


widths = st.lists(st.integers(1, 40), min_size=1, max_size=30).map(tuple)


@given(widths, st.integers(40, 120), st.integers(4, 30), st.booleans())
def test_every_dot_is_that_of_the_formula(widths, width, height, ascii_only):
    drawing = text_plot.s_curve(lsh.Bands(widths=widths), width=width, height=height, ascii_only=ascii_only)
    lines = drawing.split("\n")
    assert max(map(len, lines)) <= width
    assert lines == [line.rstrip() for line in lines]
    assert drawing.isascii() == ascii_only
    left, rows, _ = parts(drawing, height)
    across, down = ((width - 5), height) if ascii_only else (2 * (width - 5), 4 * height)
    marks = dots(rows, ascii_only)
    columns = [sorted(y for x, y in marks if x == column) for column in range(across)]
    previous = None
    for x, ys in enumerate(columns):
        height_there = found(widths, x / (across - 1)) * (down - 1)
        assert abs((down - 1 - ys[0]) - height_there) <= 0.5 + 1e-9
        assert ys == list(range(ys[0], ys[-1] + 1))
        if previous is not None:  # the curve has no gaps: a column reaches down to the previous dot
            assert ys[-1] == max(ys[0], previous - 1)
        previous = ys[0]
    assert columns[0] == [down - 1]
    assert columns[-1][0] == 0
    assert left[0] == ("1.0 +" if ascii_only else "1.0 ┤")
    assert left[-1] == ("0.0 +" if ascii_only else "0.0 ┤")


@pytest.mark.parametrize(("height", "middle"), [(4, 1), (8, 3), (12, 5), (13, 6)])
def test_the_middle_label_is_where_half_is_found(height, middle):
    """A straight line, found = similarity, passes the middle similarity at the label 0.5."""
    left, rows, _ = parts(text_plot.s_curve(lsh.Bands(1, 1), width=46, height=height), height)
    assert [i for i, label in enumerate(left) if label == "0.5 ┤"] == [middle]
    assert sum(label.endswith("│") for label in left) == height - 3
    assert {y // 4 for x, y in dots(rows, False) if x in (40, 41)} & {middle}


@pytest.mark.parametrize(("width", "step"), [(40, 2), (54, 2), (55, 1), (60, 1), (200, 1)])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_similarities_are_labelled(width, step, ascii_only):
    _, _, below = parts(text_plot.s_curve(lsh.Bands(20, 5), width=width, ascii_only=ascii_only), 12)
    tenths = range(0, 11, step)
    assert below[1].split() == [f"{tenth / 10:.1f}" for tenth in tenths]
    notches = [i - 5 for i, character in enumerate(below[0]) if character in "+┴" and i >= 5]
    assert [round(at / (width - 6) * 10, 0) for at in notches] == list(tenths)
    assert all(abs(at / (width - 6) - tenth / 10) <= 1 / (width - 6) for at, tenth in zip(notches, tenths))
    for at, tenth in zip(notches, tenths):  # a label is centred below its notch
        assert below[1][at + 4 : at + 7].strip() in f"{tenth / 10:.1f}" or tenth == 10


@pytest.mark.parametrize(
    ("bands", "threshold", "said"),
    [
        (lsh.plan(0.8, 0.99), None, "similarity 0.8: found 0.992"),
        (lsh.plan(0.5, 0.9), None, "similarity 0.5: found 0.9"),
        (lsh.Bands(20, 5), None, "similarity 0.509: found 0.500"),
        (lsh.Bands(9, 13), 0.8, "similarity 0.8: found 0.399"),
        (lsh.plan(0.8, 0.99), 0.6, "similarity 0.6: found 0.481"),
        (lsh.Bands(20, 5), 0.0, "similarity 0: found 0.000"),
        (lsh.Bands(20, 5), 1.0, "similarity 1: found 1.000"),
    ],
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_the_threshold_is_marked(bands, threshold, said, ascii_only):
    mark = ":" if ascii_only else "┊"
    _, rows, below = parts(text_plot.s_curve(bands, threshold=threshold, ascii_only=ascii_only), 12)
    assert below[2].startswith(f"     {mark} {said}")
    places = {x for row in rows for x, character in enumerate(row) if character == mark}
    assert len(places) == 1
    marked = float(said.split()[1].rstrip(":"))
    assert abs(places.pop() / 54 - marked) <= 1 / 54
    free = sum(character == mark for row in rows for character in row)
    assert free >= 10 or (threshold == 1.0 and free >= 9)  # all lines except those that the curve uses
