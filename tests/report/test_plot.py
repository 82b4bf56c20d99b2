"""Plots, read back from matplotlib's objects: lines, bars, images, labels; no picture is compared.

Tests that draw are skipped, with the reason, if matplotlib is missing.
"""

import dataclasses
import sys

import numpy as np
import pytest

import lsh
from lsh import plot

FUNCTIONS = {  # each with valid arguments
    plot.s_curve: (lsh.Bands(20, 5),),
    plot.similarity_histogram: ([0.8, 0.9],),
    plot.similarity_matrix: ([[1.0, 0.5], [0.5, 1.0]],),
}


@pytest.fixture
def pyplot(monkeypatch):
    """Pyplot without a screen, and without figures before and after."""
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra `test` has it")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.close("all")
    yield pyplot
    pyplot.close("all")


def heights(ax) -> list[float]:
    return [bar.get_height() for bar in ax.patches]


@pytest.mark.parametrize("draw", FUNCTIONS, ids=lambda function: function.__name__)
def test_axes_are_new_or_those_given(pyplot, draw):
    before = dict(pyplot.matplotlib.rcParams)
    first = draw(*FUNCTIONS[draw])
    assert pyplot.get_fignums() == [1]
    assert first.figure.number == 1
    _, axes = pyplot.subplots(ncols=2)
    assert draw(*FUNCTIONS[draw], ax=axes[0]) is axes[0]
    assert pyplot.get_fignums() == [1, 2]
    assert axes[0].has_data()
    assert not axes[1].has_data()
    assert dict(pyplot.matplotlib.rcParams) == before
    assert first.get_xlabel()
    assert first.get_ylabel()
    with pytest.raises(TypeError, match=r"ax must be matplotlib Axes, got Figure; pass those of pyplot\.subplots\(\)"):
        draw(*FUNCTIONS[draw], ax=pyplot.figure())


def test_a_planned_curve_and_its_threshold(pyplot):
    """The recall at the threshold is the one that a plan prints, for bands and sketch filter together."""
    bands = lsh.plan(0.8, 0.99)
    ax = plot.s_curve(bands, threshold=0.8)
    curve, filtered, mark = ax.lines
    x, y = curve.get_data()
    assert np.array_equal(y, bands.probability(x))
    assert np.array_equal(filtered.get_data(), [x, bands.recall_at(x)])
    assert filtered.get_color() == curve.get_color()
    assert (curve.get_linestyle(), filtered.get_linestyle()) == ("-", "--")
    assert list(mark.get_xdata()) == [0.8, 0.8]
    ax = plot.s_curve(dataclasses.replace(bands, loss=0.0), lsh.Bands(20, 5), bands)  # the first one has no filter
    names = ["6x6+13x7", "20x5", "6x6+13x7", "6x6+13x7 and sketch filter"]
    assert [line.get_label() for line in ax.lines] == names
    assert ax.lines[3].get_color() == ax.lines[2].get_color()


@pytest.mark.parametrize("bins", [1, 7, 20, 50, pytest.param(1000, marks=pytest.mark.slow)])
def test_values_on_an_edge_belong_to_the_part_above(pyplot, bins):
    """Each edge and each middle once: two values in each part, and 1.0 is in the last one as well."""
    edges = [i / bins for i in range(bins)]
    ax = plot.similarity_histogram([*edges, *[(i + 0.5) / bins for i in range(bins)], 1.0], bins=bins)
    assert heights(ax) == [2] * (bins - 1) + [3]
    assert [bar.get_x() for bar in ax.patches] == pytest.approx(edges, abs=1e-12)
    assert heights(plot.similarity_histogram([], bins=bins)) == [0] * bins
    assert plot.similarity_histogram([]).get_legend() is None


def test_a_matrix_of_two_collections_and_its_scale(pyplot):
    values = np.array([[0.25, 0.3, 0.9], [0.5, 0.75, 0.125]])
    ax = plot.similarity_matrix(values)
    assert np.array_equal(ax.images[0].get_array(), values)
    assert ax.get_ylim() == (1.5, -0.5)  # the first row on top
    assert ax.images[0].get_clim() == (0, 1)  # so that colours of two matrices mean the same
    scale = [other for other in ax.figure.axes if other is not ax]
    assert [other.get_ylabel() for other in scale] == ["Jaccard similarity"]
    assert [other.get_ylim() for other in scale] == [(0, 1)]


@pytest.mark.parametrize(
    ("draw", "arguments", "options", "error", "message"),
    [
        (plot.s_curve, ((20, 5),), {}, TypeError, "bands must be a Bands or a Plan, got tuple"),
        (plot.similarity_histogram, ([0.5, 1.01],), {}, ValueError, "similarities must be from 0 to 1, got 1.01"),
        (plot.similarity_histogram, ([0.5],), {"bins": 0}, ValueError, "bins must be 1 or more, got 0"),
        (plot.similarity_matrix, ([0.5],), {}, ValueError, r"shape \(n, m\), got \(1,\)"),
    ],
)
def test_bad_values(monkeypatch, draw, arguments, options, error, message):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # these checks come first and do not need matplotlib
    with pytest.raises(error, match=message):
        draw(*arguments, **options)


@pytest.mark.parametrize("draw", FUNCTIONS, ids=lambda function: function.__name__)
def test_the_extra_is_named(monkeypatch, draw):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'lsh\.plot needs matplotlib: run pip install "lsh-dedup\[plot\]"'):
        draw(*FUNCTIONS[draw])
