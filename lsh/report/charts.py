"""The charts of a report, as SVG: removals by similarity, and the S-curve of the bands with the measured recall.

Each chart has a caption and a table of its figures. `lsh.report.measures` and `lsh.report.recall` count them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import NamedTuple

import numpy as np

from lsh.base.wording import counted
from lsh.report import page
from lsh.report.drawing import percent
from lsh.report.measures import MIN_PAIRS, DeduplicationRun, PairGroup, SimilarityHistogram, similarity_histogram
from lsh.report.page import Cell, Html, element, joined, table, text
from lsh.report.recall import MeasuredRecall, confidence_interval

WIDTH, HEIGHT = 400, 236  # of a chart, in units that are pixels on a phone, so that labels stay readable there
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 18, 40  # margins of a chart

Labels = Iterable[tuple[float, str]]  # values of an axis and their labels


class Frame(NamedTuple):
    """The axes of a chart: from `left` to `right`, and from 0 to `top`."""

    left: float
    right: float
    top: float

    def x(self, value: float) -> float:
        """Return the distance of a value from the left."""
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - self.left) / (self.right - self.left)

    def y(self, value: float) -> float:
        """Return the distance of a value from the top."""
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / self.top

    def drawn(self, name: str, marks: Iterable[object], ticks: Labels, levels: Labels, across: str, up: str) -> Html:
        """Return the chart: marks over a grid."""
        bottom, end = self.y(0), WIDTH - RIGHT
        parts: list[object] = [element("title", name)]
        for value, label in levels:
            y = f"{self.y(value):.1f}"
            parts.append(element("line", x1=LEFT, x2=end, y1=y, y2=y, class_="axis" if value == 0 else "grid"))
            parts.append(label_at(LEFT - 6, self.y(value) + 4, label, "end"))
        for value, label in ticks:
            parts.append(label_at(self.x(value), bottom + 16, label))
        parts.append(label_at((LEFT + end) / 2, HEIGHT - 5, across, class_="name"))
        parts.append(label_at(LEFT, TOP - 8, up, "start", class_="name"))
        return element("svg", *parts, *marks, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", class_="chart")


def label_at(x: float, y: float, words: object, anchor: str = "middle", class_: str | None = None) -> Html:
    """Return words in a chart."""
    return element("text", words, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_=class_)


def path(points: Iterable[tuple[float, float]], class_: str) -> Html:
    """Return a line through points."""
    return element("path", d="M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points), class_=class_)


def round_levels(most: int) -> list[int]:
    """Return three to six round numbers from 0 to `most` or a little more, as the levels of a chart.

    Examples
    --------
    >>> from lsh.report.charts import round_levels
    >>> round_levels(3), round_levels(740)
    ([0, 1, 2, 3], [0, 200, 400, 600, 800])
    """
    step = next(step for power in count() for step in (10**power, 2 * 10**power, 5 * 10**power) if most <= 5 * step)
    return list(range(0, max(-(-most // step), 2) * step + 1, step))


def _with_figures(title: str, chart: Html, caption: object, figures: Html | None) -> Html:
    """Return a chart with its caption and the table of its figures."""
    parts = [element("h3", title), chart, element("figcaption", caption)]
    if figures is not None:
        parts.append(element("details", element("summary", "Figures"), figures))
    return element("figure", *parts)


# ---- removals by similarity ----


def removals(run: DeduplicationRun) -> Html:
    """Show the similarities of the removed documents to the kept ones."""
    histogram = similarity_histogram(run)
    rows = [
        (Cell(name, low, right=False), page.count(number))
        for name, low, number in zip(histogram.names, histogram.edges, histogram.counts)
    ]
    rows.append((Cell("identical", 2.0, right=False), page.count(histogram.identical)))
    what = "Exact similarity" if run.verify == "exact" else "Estimated similarity"
    cut = f", and is drawn shorter than its value ({histogram.identical:,})" if histogram.cut_short else ""
    below = int((run.result.removed["similarity"] < run.threshold).sum())
    less = f" {counted(below, 'removal')} below {run.threshold:g}." if below else ""
    caption = (
        f"{what} of each removed document to the document kept in its place. The coloured column counts byte-identical "
        f"copies{cut}.{less}"
    )
    figures = table(("similarity", "documents"), rows, name="similarities")
    return _with_figures("How similar the removals are", _columns(histogram), caption, figures)


def _columns(histogram: SimilarityHistogram) -> Html:
    """Draw the histogram."""
    low, step, identical = histogram.edges[0], histogram.step, histogram.identical
    levels = round_levels(max(histogram.counts) if histogram.cut_short else max(*histogram.counts, identical))
    frame = Frame(low, 1 + 2.5 * step, levels[-1])
    width = frame.x(low + step) - frame.x(low)
    marks = [
        _column(frame, edge, width, number, f"{name}: {counted(number, 'document')}")
        for edge, number, name in zip(histogram.edges, histogram.counts, histogram.names)
    ]
    height = frame.top if histogram.cut_short else identical
    marks.append(_column(frame, 1 + step, width, height, f"identical: {counted(identical, 'document')}", "same"))
    middle, y = frame.x(1 + 1.5 * step), frame.y(0.86 * frame.top)
    if histogram.cut_short:
        points = [(middle - width, y + 4), (middle - 2, y - 3), (middle + 2, y + 4), (middle + width, y - 3)]
        marks.append(path(points, "torn"))
    if identical:
        marks.append(label_at(middle, frame.y(height) - 4, f"{identical:,}", class_="loud"))
    every = max(1, -(-len(histogram.counts) // 5))
    ticks = [(edge, f"{edge:g}") for edge in histogram.edges[::every] if edge < 1 - 1.5 * step] + [(1.0, "1")]
    up = [(level, f"{level:,}") for level in levels]
    return frame.drawn("Similarities of removals", marks, ticks, up, "similarity to the kept document", "documents")


def _column(frame: Frame, value: float, width: float, height: float, title: str, class_: str | None = None) -> Html:
    y = frame.y(height)
    size = {"x": f"{frame.x(value) + 1:.1f}", "y": f"{y:.1f}", "width": f"{max(width - 2, 1):.1f}"}
    return element("rect", element("title", title), **size, height=f"{frame.y(0) - y:.1f}", rx=1, class_=class_)


# ---- what the bands find ----


def s_curve(run: DeduplicationRun, measured: MeasuredRecall | None, group: PairGroup | None) -> Html:
    """Show the planned and the measured share of pairs that the bands find, by similarity."""
    figures = None
    if measured:
        heads = ("similarity", "pairs", "share a band", "share", "expected")
        rows = [
            (
                Cell(f"{interval.low:.2f} to {interval.high:.2f}", interval.low, right=False),
                page.count(interval.pairs),
                page.count(interval.found),
                Cell(f"{interval.found / interval.pairs:.3f}", interval.found / interval.pairs),
                Cell(f"{interval.expected:.3f}", interval.expected),
            )
            for interval in measured.intervals
        ]
        figures = table(heads, rows, name="recall")
    return _with_figures("What the bands find", _curve(run, measured), _sample_caption(run, measured, group), figures)


def _curve(run: DeduplicationRun, measured: MeasuredRecall | None) -> Html:
    """Draw the curve, the threshold, and a dot for each interval of similarity."""
    frame = Frame(0, 1, 1)
    grid = np.linspace(0, 1, 101)
    points = [(frame.x(s), frame.y(p)) for s, p in zip(grid.tolist(), run.bands.probability(grid).tolist())]
    at = frame.x(run.threshold)
    left = run.threshold > 0.5
    marks = [
        path([(at, frame.y(0)), (at, frame.y(1))], "mark"),
        label_at(at - 5 if left else at + 5, frame.y(0.06), f"threshold {run.threshold:g}", "end" if left else "start"),
        path(points, "curve"),
    ]
    for interval in measured.intervals if measured else ():
        x, share = frame.x(interval.mean), interval.found / interval.pairs
        low, high = confidence_interval(interval.found, interval.pairs)
        title = f"similarity {interval.mean:.3f}: {interval.found:,} of {counted(interval.pairs, 'pair')} share a band"
        marks.append(path([(x, frame.y(low)), (x, frame.y(high))], "whisker"))
        marks.append(element("circle", element("title", title), cx=f"{x:.1f}", cy=f"{frame.y(share):.1f}", r=3.2))
    ticks = [(tenth / 10, f"{tenth / 10:g}") for tenth in range(0, 11, 2)]
    levels = [(tenth / 10, f"{10 * tenth} %") for tenth in range(0, 11, 2)]
    return frame.drawn("S-curve of the bands", marks, ticks, levels, "similarity of a pair", "share a band")


def _sample_caption(run: DeduplicationRun, measured: MeasuredRecall | None, group: PairGroup | None) -> Html:
    planned = "The line is planned: how likely a pair of each similarity shares a band."
    if measured is None:
        return text(f"{planned} Nothing was measured: there is no sample of two documents with shingles.")
    dots = (
        f"The dots are measured, by exact comparison of {counted(measured.compared, 'pair')} among "
        f"{measured.documents:,} sampled documents, whether they share a band or not. The bars are 95 % "
        "confidence intervals."
    )
    words = f"{planned} {dots} {_found_pairs(run, measured)}"
    return text(words) if group is None else joined([words, element("p", _pairs_of_group(measured, group))])


def _pairs_of_group(measured: MeasuredRecall, group: PairGroup) -> str:
    """Explain that one group has most of the pairs."""
    others, found = measured.pairs - group.pairs, measured.found - group.found
    outside = f" Of the {counted(others, 'pair')} outside that cluster the run finds {found:,}." if others else ""
    return (
        f"{group.pairs:,} of these pairs ({percent(group.pairs / measured.pairs)}) are in one cluster of similar "
        "texts, for instance from one template. Such pairs are found or missed together, so the measured recall may be "
        f"far from the promised one, and says little about other texts.{outside}"
    )


def _found_pairs(run: DeduplicationRun, measured: MeasuredRecall) -> str:
    """Return how many of the similar pairs the run found, and why the recall is not measured."""
    sample = "" if run.left_out and measured.among else "among them"
    if measured.among:
        random = f"between {measured.searched:,} random documents and {measured.among:,}"
        sample = f"{sample} or {random}" if sample else random
    more = "make the report in Python, by lsh.report.html with more sample_pairs"
    few = f" The recall is not measured because there are fewer than {MIN_PAIRS} such pairs"
    if run.left_out:
        too_few = f"{few}; to measure it, {more}."
    else:
        too_few = (
            f"{few}; neighbouring documents are sampled most, so if the corpus is shuffled, sort it "
            f"(for instance by source or date), or {more}."
        )
    too_few = too_few if measured.pairs < MIN_PAIRS else ""
    if not measured.pairs:
        return f"No two different texts {sample} reach the threshold.{too_few}"
    missed = measured.pairs - measured.found
    reach = "reaches" if measured.pairs == 1 else "reach"
    how = "are in one cluster" if run.clusters == "components" else "are not both kept"
    return (
        f"{counted(measured.pairs, 'pair')} of different texts {sample} {reach} the threshold: the run found "
        f"{measured.found:,} (they {how}) and missed {f'{missed:,}' if missed else 'none'}.{too_few}"
    )
