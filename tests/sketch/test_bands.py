"""Bands: the class, its S-curve against closed forms, and the band keys against the twin's.

These tests check the computations of `Bands`. test_estimator.py checks that pairs are found as the S-curve predicts.
"""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import random

import numpy
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

import lsh
from lsh import Bands

DTYPES = {4: numpy.uint32, 8: numpy.uint64}
# The pieces and sizes of 100 hashes.
PIECES = [(2, 50), (5, 20), (10, 10), (20, 5), (50, 2)]
# The similarities at which the five curves reach one half, from the closed form (1 - 2^(-1/b))^(1/r), to four decimals.
HALVES = {(2, 50): 0.9757, (5, 20): 0.9028, (10, 10): 0.7631, (20, 5): 0.5087, (50, 2): 0.1173}
some_widths = st.lists(st.integers(1, 12), min_size=1, max_size=12)


# The value.


def test_two_ways_to_say_the_same():
    assert Bands(20, 5) == Bands(widths=[5] * 20) == Bands(num_bands=20, width=5)
    assert hash(Bands(20, 5)) == hash(Bands(widths=(5,) * 20))
    assert Bands(20, 5) != Bands(5, 20)
    assert Bands(widths=(2, 3)) != Bands(widths=(3, 2))
    assert Bands(1, 1) != (1,)
    assert len({Bands(2, 3), Bands(widths=(3, 3)), Bands(3, 2)}) == 2


def test_what_equal_bands_say_of_themselves():
    bands = Bands(20, 5)
    assert bands.num_bands == 20
    assert bands.band_width == 5
    assert bands.widths == (5,) * 20
    assert bands.num_components == 100
    assert bands.bounds.tolist() == list(range(0, 101, 5))


def test_what_mixed_bands_say_of_themselves():
    bands = Bands(widths=iter([7, 7, 8]))
    assert bands.num_bands == 3
    assert bands.band_width == bands.widths == (7, 7, 8)
    assert bands.num_components == 22
    assert bands.bounds.tolist() == [0, 7, 14, 22]


@given(widths=some_widths)
def test_value_survives_every_form(widths):
    bands = Bands(widths=widths)
    assert eval(repr(bands), {"Bands": Bands}) == bands
    assert Bands.from_dict(bands.to_dict()) == bands
    assert pickle.loads(pickle.dumps(bands)) == bands
    assert copy.copy(bands) == copy.deepcopy(bands) == bands
    assert Bands.from_string("+".join(f"1x{width}" for width in widths)) == bands


def test_numpy_integers_are_integers():
    bands = Bands(numpy.int64(4), numpy.uint8(2))
    assert bands == Bands(4, 2)
    assert bands.to_dict() == {"widths": [2, 2, 2, 2]}
    assert {type(width) for width in bands.widths} == {int}
    assert Bands(widths=numpy.array([3, 4])) == Bands(widths=(3, 4))


def test_repr():
    assert repr(Bands(20, 5)) == "Bands(20, 5)"
    assert repr(Bands(widths=(4,))) == "Bands(1, 4)"
    assert repr(Bands(widths=(7, 7, 8))) == "Bands(widths=(7, 7, 8))"


def test_immutable():
    bands = Bands(20, 5)
    with pytest.raises(AttributeError, match=r"immutable.*num_bands"):
        bands.num_bands = 3
    with pytest.raises(AttributeError, match="immutable"):
        bands.anything = 3
    bands.bounds[0] = 7  # a fresh array each time
    bands.to_dict()["widths"].clear()
    assert bands == Bands(20, 5)
    assert bands.bounds[0] == 0


# The notation of the command line.


@pytest.mark.parametrize(
    ("text", "widths"),
    [
        ("20x6", (6,) * 20),
        ("1x1", (1,)),
        ("2x7+14x8", (7,) * 2 + (8,) * 14),
        ("3x2+1x5+3x2", (2, 2, 2, 5, 2, 2, 2)),
        ("20X6", (6,) * 20),
        (" 2 x 7 + 1 x 8 ", (7, 7, 8)),
    ],
)
def test_from_string(text, widths):
    assert Bands.from_string(text).widths == widths


@pytest.mark.parametrize(
    "text",
    [
        "",
        "20",
        "x",
        "20x",
        "x6",
        "0x6",
        "20x0",
        "-2x6",
        "2x-6",
        "2.0x6",
        "20*6",
        "20x6x2",
        "20x6+",
        "+20x6",
        "20x6,2x7",
        "20 6",
        "1e1x2",
        "2000000x1",
    ],
)
def test_from_string_refuses(text):
    with pytest.raises(ValueError, match="bands must look like 20x6 or 2x7\\+14x8") as caught:
        Bands.from_string(text)
    assert repr(text) in str(caught.value)


def test_bands_have_a_bound():
    for arguments in [(1, 2**63), (2**40, 1)]:
        with pytest.raises(ValueError, match="must be at most 1048576"):
            Bands(*arguments)
    with pytest.raises(ValueError, match="must be at most 1048576"):
        Bands(widths=(2**62, 2**62))


# The S-curve.


@pytest.mark.parametrize(("pieces", "size"), PIECES)
def test_five_curves_of_100_hashes(pieces, size):
    bands = Bands(pieces, size)
    assert bands.num_components == 100
    s = numpy.linspace(0, 1, 200)
    numpy.testing.assert_allclose(bands.probability(s), 1 - (1 - s**size) ** pieces, rtol=1e-12, atol=1e-15)
    assert bands.similarity_at(0.5) == pytest.approx(HALVES[pieces, size], abs=5e-5)


def test_curves_of_100_hashes_lie_in_order():
    """More bands of the same components find more pairs, at every similarity between 0 and 1."""
    curves = [Bands(pieces, size).probability(numpy.linspace(0.05, 0.95, 19)) for pieces, size in PIECES]
    for fewer, more in itertools.pairwise(curves):
        assert (fewer <= more).all()
        assert (fewer < more).sum() >= 15  # near 0 and 1 both round to 0 or 1


def test_two_pieces_of_fifty():
    """.95^50 is .0769 and .8^50 is 1.4e-5: few pairs are found at .95, almost none at .8."""
    bands = Bands(2, 50)
    assert bands.probability(0.95) == pytest.approx(0.14797, abs=5e-6)
    assert bands.probability(0.8) == pytest.approx(2 * 0.8**50, rel=1e-4)
    assert bands.similarity_at(0.8) > 0.98


def test_threshold_of_25_bands_of_4():
    """(1/b)^(1/r) is .447; there a band agrees with probability 1/25."""
    assert "(1/b)^(1/r) is 0.447" in str(Bands(25, 4))
    assert Bands(25, 4).probability((1 / 25) ** (1 / 4)) == pytest.approx(1 - (24 / 25) ** 25, rel=1e-12)


@given(widths=some_widths, s=st.floats(0, 1))
def test_probability_is_one_minus_the_product_of_failures(widths, s):
    expected = 1 - math.prod(1 - s**width for width in widths)
    found = Bands(widths=widths).probability(s)
    assert isinstance(found, float)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-14)


@given(widths=some_widths)
def test_probability_of_an_array(widths):
    bands = Bands(widths=widths)
    s = numpy.linspace(0, 1, 12).reshape(3, 4)
    found = bands.probability(s)
    assert found.shape == (3, 4)
    assert found.ravel().tolist() == pytest.approx([bands.probability(x) for x in s.ravel()], rel=1e-12, abs=1e-15)
    assert bands.probability([0, 1]).tolist() == [0, 1]
    assert (numpy.diff(found.ravel()) >= 0).all()


@given(number=st.integers(1, 60), width=st.integers(1, 30), wanted=st.floats(0.01, 0.99))
def test_similarity_at_is_the_closed_form(number, width, wanted):
    """Equal widths: s = (1 - (1 - p)^(1/b))^(1/r)."""
    expected = -math.expm1(math.log1p(-wanted) / number)
    assert Bands(number, width).similarity_at(wanted) == pytest.approx(expected ** (1 / width), rel=1e-9)


@given(widths=some_widths, wanted=st.floats(0.001, 0.999))
def test_similarity_at_undoes_probability(widths, wanted):
    bands = Bands(widths=widths)
    assert bands.probability(bands.similarity_at(wanted)) == pytest.approx(wanted, rel=1e-9)


def test_similarity_at_the_ends():
    assert Bands(20, 5).similarity_at(0) == pytest.approx(0, abs=1e-15)
    assert Bands(1, 1).similarity_at(1) == pytest.approx(1, abs=1e-15)
    assert 0.9 < Bands(20, 5).similarity_at(1) <= 1  # the curve rounds to 1 there


# The printed form.


def test_printed_form_of_equal_bands():
    lines = str(Bands(25, 4)).split("\n")
    assert len(lines) == 5
    assert lines[0] == "25 bands of 4 components, 100 in all"
    assert lines[1].split() == ["similarity", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1.0"]
    assert lines[2].split() == ["found"] + [f"{1 - (1 - (s / 10) ** 4) ** 25:.3f}" for s in range(3, 11)]
    half, most = ((1 - (1 - p) ** (1 / 25)) ** 0.25 for p in (0.5, 0.95))
    assert lines[3] == f"half of the pairs are found at {half:.3f}, 95 % at {most:.3f}; (1/b)^(1/r) is 0.447"
    assert lines[4] == "keys take 200 bytes a document"


def test_printed_form_of_one_band():
    assert str(Bands(1, 1)).startswith("1 band of 1 component, 1 in all\n")
    assert str(Bands(1, 2)).startswith("1 band of 2 components, 2 in all\n")
    assert str(Bands(2, 1)).startswith("2 bands of 1 component, 2 in all\n")


def test_printed_form_of_mixed_bands():
    """The printed form omits (1/b)^(1/r), which requires a single r."""
    lines = str(Bands(widths=(2, 3, 3))).split("\n")
    assert lines[0] == "3 bands, 1x2+2x3 components, 8 in all"
    found = [1 - (1 - (s / 10) ** 2) * (1 - (s / 10) ** 3) ** 2 for s in range(3, 11)]
    assert lines[2].split()[1:] == [f"{p:.3f}" for p in found]
    assert lines[3].startswith("half of the pairs are found at 0.")
    assert "(1/b)" not in lines[3]
    assert lines[4:] == ["keys take 24 bytes a document"]


# Keys.


@st.composite
def banded_rows(draw) -> tuple[list[list[int]], list[int], int]:
    """Fingerprints with few distinct values, so that bands agree; valid widths; the bytes of a component."""
    widths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    hashbytes = draw(st.sampled_from([4, 8]))
    top = 2 ** (8 * hashbytes) - 1
    value = st.one_of(st.sampled_from([0, 1, top // 2, top // 2 + 1, top]), st.integers(0, top))
    length = sum(widths) + draw(st.integers(0, 3))
    rows = draw(st.lists(st.lists(value, min_size=length, max_size=length), min_size=0, max_size=6))
    return rows, widths, hashbytes


@given(case=banded_rows())
def test_keys_against_twin(case):
    rows, widths, hashbytes = case
    length = len(rows[0]) if rows else sum(widths)
    array = numpy.array(rows, DTYPES[hashbytes]).reshape(len(rows), length)
    keys = Bands(widths=widths).keys(array)
    assert (keys.shape, keys.dtype) == ((len(widths), len(rows)), numpy.uint64)
    assert keys.T.tolist() == [reference.band_keys(row, widths) for row in rows]


@pytest.mark.parametrize("hashbytes", [4, 8])
@pytest.mark.parametrize("text", ["20x5", "1x100", "100x1", "3x7+5x8+1x39", "33x3"])
def test_keys_of_fingerprints_against_twin(text, hashbytes):
    bands = Bands.from_string(text)
    rows = lsh.MinHasher(100, 4, hashbytes=hashbytes).fingerprints(["one text", "one text more", "", "x" * 50])
    assert bands.keys(rows).T.tolist() == [reference.band_keys(row, bands.widths) for row in rows.tolist()]


def test_keys_do_not_depend_on_how_the_rows_lie_in_memory():
    rows = numpy.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]], numpy.uint32)
    bands = Bands(2, 2)
    keys = bands.keys(rows)
    assert bands.keys(numpy.asfortranarray(rows)).tolist() == keys.tolist()
    assert bands.keys(numpy.repeat(rows, 2, axis=0)[::2]).tolist() == keys.tolist()
    assert bands.keys(rows[::-1]).tolist() == keys[:, ::-1].tolist()
    frozen = rows.copy()
    frozen.flags.writeable = False
    assert bands.keys(frozen).tolist() == keys.tolist()


def test_keys_are_the_same_for_equal_values_of_both_widths():
    """A component is hashed as a 64-bit value for every dtype."""
    rows = numpy.array([[0, 2**31, 2**32 - 1, 7]], numpy.uint32)
    assert Bands(2, 2).keys(rows).tolist() == Bands(2, 2).keys(rows.astype(numpy.uint64)).tolist()


def test_keys_know_band_component_and_order():
    """The same values in another band, component or order give a different key; unused components have no effect."""
    keys = Bands(4, 2).keys(numpy.array([[1, 2] * 4, [2, 1] * 4], numpy.uint64))
    assert len(set(keys.ravel().tolist())) == 8
    assert Bands(2, 2).keys(numpy.array([[1, 2] * 4], numpy.uint64)).ravel().tolist() == keys[:2, 0].tolist()


@pytest.mark.parametrize("dtype", [numpy.uint32, numpy.uint64])
def test_one_changed_component_changes_its_key_alone(dtype):
    draw = random.Random(5)
    bands = Bands(widths=(1, 2, 3, 4, 5))
    row = numpy.array([[draw.randrange(2**32) for _ in range(17)]], dtype)
    before = bands.keys(row).ravel()
    for component in range(17):
        changed = row.copy()
        changed[0, component] ^= dtype(1)
        hit = [band for band in range(5) if bands.bounds[band] <= component < bands.bounds[band + 1]]
        assert numpy.flatnonzero(bands.keys(changed).ravel() != before).tolist() == hit


def test_keys_need_enough_components():
    with pytest.raises(ValueError):
        Bands(3, 2).keys(numpy.zeros((4, 5), numpy.uint32))
    with pytest.raises(ValueError):
        Bands(3, 2).keys(numpy.zeros((0, 5), numpy.uint64))


# Bad input.


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, r"give num_bands and width, such as Bands\(20, 5\), or widths"),
        ({"num_bands": 3}, ValueError, "give num_bands and width"),
        ({"width": 3}, ValueError, "give num_bands and width"),
        ({"num_bands": 3, "widths": (1, 2)}, ValueError, "give either num_bands and width, or widths"),
        ({"width": 3, "widths": (1, 2)}, ValueError, "give either num_bands and width, or widths"),
        ({"num_bands": 0, "width": 3}, ValueError, "num_bands must be 1 or more, got 0"),
        ({"num_bands": 3, "width": 0}, ValueError, "width must be 1 or more, got 0"),
        ({"num_bands": -1, "width": 3}, ValueError, "num_bands must be 1 or more, got -1"),
        ({"num_bands": 3, "width": -2}, ValueError, "width must be 1 or more, got -2"),
        ({"num_bands": 2.0, "width": 3}, TypeError, "num_bands must be a whole number, got float"),
        ({"num_bands": 2, "width": "3"}, TypeError, "width must be a whole number, got str"),
        ({"num_bands": True, "width": 3}, TypeError, "num_bands must be a whole number, got bool"),
        ({"widths": ()}, ValueError, "widths must have one element or more, got none"),
        ({"widths": (3, 0)}, ValueError, r"widths\[1\] must be 1 or more, got 0"),
        ({"widths": (3, 2.5)}, TypeError, r"widths\[1\] must be a whole number, got float"),
        ({"widths": (None,)}, TypeError, r"widths\[0\] must be a whole number, got NoneType"),
        ({"widths": "20x5"}, TypeError, "widths must be a sequence of whole numbers, got str"),
        ({"widths": 5}, TypeError, "widths must be a sequence of whole numbers, got int"),
    ],
)
def test_bad_bands(arguments, error, message):
    with pytest.raises(error, match=f"^{message}"):
        Bands(**arguments)


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan"), float("inf"), [0.5, 2], 10**400, [0.5, 10**400]])
def test_probability_needs_a_similarity(bad):
    with pytest.raises(ValueError, match="similarity must be 0 to 1, got"):
        Bands(20, 5).probability(bad)


@pytest.mark.parametrize(
    "bad",
    [
        "0.5",
        b"0.5",
        True,
        ["a"],
        [0.5, [0.5]],
        1j,
        {0.5},
        object(),
        None,
        [0.5, None],
        numpy.array(["0.5"], object),
        bytearray(b"1"),
    ],
)
def test_probability_needs_a_number(bad):
    with pytest.raises(TypeError, match=r"^similarity must be a number \(0 to 1\)( or several)?, got "):
        Bands(20, 5).probability(bad)
    with pytest.raises(TypeError, match=r"^similarity must be a number \(0 to 1\)( or several)?, got "):
        lsh.plan().recall_at(bad)


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (-0.1, ValueError),
        (1.1, ValueError),
        (float("nan"), ValueError),
        ("0.5", TypeError),
        (None, TypeError),
        (True, TypeError),
        ([0.5, 0.6], TypeError),
    ],
)
def test_similarity_at_needs_a_probability(bad, error):
    with pytest.raises(error, match=r"probability must be .*0 to 1.*, got"):
        Bands(20, 5).similarity_at(bad)


@pytest.mark.parametrize("rows", [numpy.zeros(4, numpy.uint32), numpy.uint64(4), numpy.zeros((3, 1), numpy.uint32)])
def test_band_keys_take_a_matrix_of_enough_components(rows):
    with pytest.raises(ValueError, match=r"fingerprints must have shape \(n, k\)"):
        Bands(1, 2).keys(numpy.asarray(rows))


@pytest.mark.parametrize(
    ("rows", "got"), [([[1, 2]], "list"), (numpy.zeros((3, 2), int), "ndarray of int64"), (None, "NoneType")]
)
def test_band_keys_take_an_array_of_a_hasher(rows, got):
    with pytest.raises(TypeError, match=f"^fingerprints must be an array of uint32 or uint64, .*, got {got}$"):
        Bands(1, 2).keys(rows)
