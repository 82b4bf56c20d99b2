"""Bands: the class, its S-curve against closed forms, and the band keys against the twin's.

These tests check the computations of `Bands`. test_values.py checks that it is a value, test_planning.py and
test_fss.py that pairs are found as the S-curve predicts.
"""

import math

import numpy
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

import lsh
from lsh import Bands

some_widths = st.lists(st.integers(1, 12), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("bands", "widths", "band_width", "bounds", "printed"),
    [
        (Bands(20, 5), (5,) * 20, 5, list(range(0, 101, 5)), "Bands(20, 5)"),
        (Bands(numpy.int64(4), numpy.uint8(2)), (2,) * 4, 2, [0, 2, 4, 6, 8], "Bands(4, 2)"),
        (Bands(widths=iter([7, 7, 8])), (7, 7, 8), (7, 7, 8), [0, 7, 14, 22], "Bands(widths=(7, 7, 8))"),
        (Bands(widths=numpy.array([4])), (4,), 4, [0, 4], "Bands(1, 4)"),
    ],
)
def test_properties(bands, widths, band_width, bounds, printed):
    assert bands == Bands(widths=widths)
    assert (bands.widths, bands.band_width, bands.num_bands) == (widths, band_width, len(widths))
    assert (bands.bounds.tolist(), bands.num_components) == (bounds, bounds[-1])
    assert bands.to_dict() == {"widths": list(widths)}
    assert {type(width) for width in bands.widths} == {int}
    assert repr(bands) == printed


@pytest.mark.parametrize(
    ("text", "widths"),
    [
        ("3x2+1x5+3x2", (2, 2, 2, 5, 2, 2, 2)),
        ("20X6", (6,) * 20),
        (" 2 x 7 + 1 x 8 ", (7, 7, 8)),
    ],
)
def test_from_string(text, widths):
    assert Bands.from_string(text).widths == widths


@given(widths=some_widths)
def test_from_string_reads_to_string(widths):
    bands = Bands(widths=widths)
    assert Bands.from_string(bands.to_string()) == bands


@pytest.mark.parametrize(
    "text",
    ["", "20", "20x", "x6", "0x6", "20x0", "-2x6", "2.0x6", "20x6x2", "20x6+", "+20x6", "20x6,2x7", "2000000x1"],
)
def test_from_string_refuses(text):
    with pytest.raises(ValueError, match="bands must look like 20x6 or 2x7\\+14x8") as caught:
        Bands.from_string(text)
    assert repr(text) in str(caught.value)


@given(widths=some_widths, s=st.floats(0, 1))
def test_probability_is_one_minus_the_product_of_failures(widths, s):
    bands = Bands(widths=widths)
    found = bands.probability(s)
    assert isinstance(found, float)
    assert found == pytest.approx(1 - math.prod(1 - s**width for width in widths), rel=1e-12, abs=1e-14)
    several = bands.probability([[0, s, 1]])
    assert several.shape == (1, 3)
    assert several.ravel().tolist() == pytest.approx([0, found, 1], rel=1e-12, abs=1e-15)


@given(widths=some_widths, wanted=st.floats(0.001, 0.999))
def test_similarity_at_undoes_probability(widths, wanted):
    bands = Bands(widths=widths)
    assert bands.probability(bands.similarity_at(wanted)) == pytest.approx(wanted, rel=1e-9)


def test_similarity_at_the_ends():
    assert Bands(20, 5).similarity_at(0) == pytest.approx(0, abs=1e-15)
    assert Bands(1, 1).similarity_at(1) == pytest.approx(1, abs=1e-15)
    assert 0.9 < Bands(20, 5).similarity_at(1) <= 1  # the curve rounds to 1 there


@pytest.mark.few(5)
@pytest.mark.parametrize("dtype", [numpy.uint32, numpy.uint64])
@pytest.mark.parametrize(
    "widths",
    [[4, 2, 7, 1, 8, 5, *range(9, 16)], [6] * 20, [1] * 40, [2] * 300, [17, 16, 16, 600], [256, 257, 1], [300, 3, 3]],
)
def test_keys_against_twin(dtype, widths):
    """Of values from end to end, of any number of rows, and in every layout in memory."""
    used, random = sum(widths), numpy.random.default_rng(len(widths))
    top = numpy.iinfo(dtype).max
    wide = random.integers(0, top, (130, used + 5), dtype=dtype, endpoint=True)
    wide[:9] = random.choice(numpy.array([0, 1, top // 2, top // 2 + 1, top], dtype), (9, used + 5))
    layouts = [wide, wide[:, 3 : 3 + used], wide[::2, :used], wide[64:128], wide[::-1], numpy.asfortranarray(wide)]
    for rows in (*layouts, wide[:1, :used], wide[:2], wide[:5], wide[:0]):
        keys = Bands(widths=widths).keys(rows)
        assert (keys.shape, keys.dtype) == ((len(widths), len(rows)), numpy.uint64)
        assert keys.T.tolist() == [reference.band_keys(row, widths) for row in rows.tolist()]


@pytest.mark.parametrize("door", [Bands(20, 5).probability, lsh.plan().recall_at])
def test_probability_needs_a_similarity(door):
    for bad in (-0.1, 1.1, float("nan"), [0.5, 2], 10**400, [0.5, 10**400]):
        with pytest.raises(ValueError, match="similarity must be 0 to 1, got"):
            door(bad)
    for bad in ("0.5", bytearray(b"1"), True, [0.5, [0.5]], 1j, {0.5}, None, [0.5, None], numpy.array(["0.5"], object)):
        with pytest.raises(TypeError, match=r"^similarity must be a number \(0 to 1\)( or several)?, got "):
            door(bad)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (numpy.zeros(4, numpy.uint32), ValueError, r"must have shape \(n, k\)"),
        (numpy.array(4, numpy.uint64), ValueError, r"must have shape \(n, k\)"),
        (numpy.zeros((3, 1), numpy.uint32), ValueError, r"must have shape \(n, k\)"),
        (numpy.zeros((0, 1), numpy.uint64), ValueError, r"must have shape \(n, k\)"),
        ([[1, 2]], TypeError, "must be an array of uint32 or uint64, .*, got list$"),
        (numpy.zeros((3, 2), int), TypeError, "must be an array of uint32 or uint64, .*, got ndarray of int64$"),
    ],
)
def test_keys_take_a_matrix_of_enough_components(rows, error, message):
    with pytest.raises(error, match=f"^fingerprints {message}"):
        Bands(1, 2).keys(rows)
