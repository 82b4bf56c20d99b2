"""Plots with matplotlib: the S-curve of bands, and similarities as a histogram or a matrix.

Each function draws values that `lsh` computed into the given Axes, or into those of a new figure, and returns the Axes;
titles, limits and files are left to matplotlib. Needs the extra ``plot``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsh.base import checks, errors
from lsh.sketch.bands import Bands
from lsh.sketch.planning import Plan, below_one, checked_bands

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["s_curve", "similarity_histogram", "similarity_matrix"]

POINTS = 201  # of a curve: one each .005
MAX_COLUMNS = 4  # of a legend
MAX_ROOM = 0.8  # share of the Axes that a legend takes at most
MAX_BINS = 10_000


def s_curve(*bands: Bands | Plan, threshold: float | None = None, ax: Axes | None = None) -> Axes:
    """Draw the probability that a pair is found over its similarity, a line for each set of bands.

    Parameters
    ----------
    *bands : Bands or Plan
        One or more; the legend names them by bands x width. A plan has a second, dashed line: the probability that a
        pair shares a band and passes the sketch filter, `Plan.recall_at`.
    threshold : float, optional
        A similarity to mark by a vertical line. The legend has the recall of each plan at this similarity.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Its lines: one for each of `bands`, in order, then a dashed one for each plan, then the threshold. The legend is
        above them.

    Raises
    ------
    TypeError, ValueError
        If there are no bands, or a parameter is wrong.
    ImportError
        If matplotlib is missing.

    Examples
    --------
    >>> import lsh
    >>> from lsh import plot
    >>> ax = plot.s_curve(lsh.Bands(20, 5), lsh.plan(0.8, 0.99), threshold=0.8)
    >>> [line.get_label() for line in ax.lines]
    ['20x5', '6x6+13x7', '6x6+13x7 and sketch filter: 0.9908', 'threshold 0.8']
    """
    if not bands:
        raise ValueError("s_curve needs one Bands or Plan at least, got none; pass lsh.Bands(20, 5) or lsh.plan(0.8)")
    curves = [checked_bands(one, sys.maxsize) for one in bands]
    marked = checks.optional_fraction("threshold", threshold)
    ax = _axes(ax)
    similarity = np.arange(POINTS) / (POINTS - 1)
    for one in curves:
        ax.plot(similarity, one.probability(similarity), label=one.to_string())
    for plan, line in zip(bands, ax.lines[-len(curves) :]):
        if isinstance(plan, Plan) and plan.loss:
            recall = "" if marked is None else f": {below_one(plan.recall_at(marked))}"
            label = f"{line.get_label()} and sketch filter{recall}"
            ax.plot(similarity, plan.recall_at(similarity), "--", color=line.get_color(), label=label)
    mark = _mark(ax, marked)
    ax.set(xlabel="Jaccard similarity", ylabel="probability that a pair is found", xlim=(0, 1), ylim=(0, 1.02))
    ax.set_yticks(np.arange(6) / 5)
    _add_legend(ax, mark, "bands x width")
    return ax


def similarity_histogram(
    similarities: ArrayLike, *, threshold: float | None = None, bins: int = 50, ax: Axes | None = None
) -> Axes:
    """Draw a histogram of similarities.

    Parameters
    ----------
    similarities : array_like
        Similarities of pairs, 0 to 1, for instance ``result.removed["similarity"]`` of a `Deduplication`.
    threshold : float, optional
        A similarity to mark by a vertical line.
    bins : int, optional
        Number of intervals of equal width from 0 to 1; a value on an edge belongs to the interval above it, 1 to the
        last one.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        With a bar for each interval, also for empty ones.

    Raises
    ------
    TypeError, ValueError
        If a similarity is no number from 0 to 1, or a parameter is wrong.
    ImportError
        If matplotlib is missing.

    Examples
    --------
    >>> from lsh import plot
    >>> ax = plot.similarity_histogram([0.8, 0.84, 0.95, 1.0], bins=10, threshold=0.8)
    >>> [int(bar.get_height()) for bar in ax.patches]
    [0, 0, 0, 0, 0, 0, 0, 0, 2, 2]
    """
    values = _similarities(similarities, 1)
    number = checks.whole_number("bins", bins, 1, MAX_BINS)
    marked = checks.optional_fraction("threshold", threshold)
    ax = _axes(ax)
    ax.hist(values, bins=(np.arange(number + 1) / number).tolist())
    mark = _mark(ax, marked)
    ax.set(xlabel="Jaccard similarity", ylabel="pairs", xlim=(0, 1))
    if mark is not None:
        _add_legend(ax, mark)
    return ax


def similarity_matrix(similarities: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Draw a matrix of similarities as colours.

    Parameters
    ----------
    similarities : array_like
        Shape ``(n, m)``, 0 to 1, as `lsh.jaccard_matrix` and `lsh.MinHasher.similarities` return them.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        With one image, the first row on top. The colours always range from 0 to 1, so that matrices can be compared.
        The colour bar is in Axes of its own.

    Raises
    ------
    TypeError, ValueError
        If a similarity is no number from 0 to 1, or the array has not two dimensions.
    ImportError
        If matplotlib is missing.

    Examples
    --------
    >>> import lsh
    >>> from lsh import plot
    >>> texts = ["The cat sat on the mat.", "The red cat sat on the mat.", "A dog ran in the park."]
    >>> ax = plot.similarity_matrix(lsh.jaccard_matrix(texts, shingles=lsh.Shingles(3)))
    >>> ax.images[0].get_array().shape
    (3, 3)
    """
    values = _similarities(similarities, 2)
    ax = _axes(ax)
    image = ax.imshow(values, vmin=0, vmax=1, interpolation="nearest")
    ax.figure.colorbar(image, ax=ax, label="Jaccard similarity")
    ax.set(xlabel="document", ylabel="document")
    return ax


def _axes(ax: Axes | None) -> Axes:
    """Return the Axes to draw into."""
    with errors.needing('lsh.plot needs matplotlib: run pip install "lsh-dedup[plot]"'):
        from matplotlib import pyplot
        from matplotlib.axes import Axes
    if ax is None:
        return pyplot.subplots()[1]
    return checks.instance("ax", ax, Axes, "matplotlib Axes", "; pass those of pyplot.subplots()")


def _mark(ax: Axes, threshold: float | None) -> Line2D | None:
    """Draw a vertical line at the threshold."""
    if threshold is None:
        return None
    return ax.axvline(threshold, color="0.4", linestyle=":", linewidth=1, label=f"threshold {threshold:g}")


def _add_legend(ax: Axes, mark: Line2D | None, title: str | None = None) -> None:
    """Add the legend at the top of the Axes, which are extended upwards so that it covers nothing."""
    axes = ax.get_window_extent()
    names = len(ax.get_legend_handles_labels()[1])
    for columns in range(min(names, MAX_COLUMNS), 0, -1):
        extent = ax.legend(title=title, loc="upper center", ncols=columns).get_window_extent()
        if extent.width <= 0.95 * axes.width:
            break
    below = 1.0 - min((axes.y1 - extent.y0) / axes.height, MAX_ROOM)
    low, high = ax.get_ylim()
    ax.set_ylim(low, low + (high - low) / below)
    if mark is not None:
        mark.set_ydata([0.0, below * (1.0 - 1e-9)])  # rounding must not move its end into the legend


def _similarities(value: ArrayLike, dimensions: int) -> NDArray[np.float64]:
    """Return similarities as an array of floats, checked."""
    shape = "n" if dimensions == 1 else "n, m"
    try:
        values = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise errors.bad_type(
            "similarities", f"must be numbers from 0 to 1, shape ({shape}), got {type(value).__name__}"
        ) from None
    if values.ndim != dimensions:
        raise errors.bad_value("similarities", f"must have shape ({shape}), got {values.shape}")
    if dimensions == 2 and not values.size:
        raise errors.bad_value("similarities", f"must hold one similarity or more, got shape {values.shape}")
    good = (values >= 0) & (values <= 1)
    if not good.all():
        raise errors.bad_value("similarities", f"must be from 0 to 1, got {values[~good][0]} among them")
    return values
