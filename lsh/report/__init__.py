"""A report of a deduplication for people to read: one page of HTML with nothing outside it.

The figures are those of a `lsh.Deduplication`; what its bands are worth on the corpus at hand is measured by
`lsh.recall`. Nothing depends on the clock or the machine, so the same run gives the same bytes. How a page is made is
the matter of `lsh.report.page`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import numpy as np

import lsh
from lsh import _checks, recall
from lsh._sketch_filter import LOSS
from lsh._words import counted, size
from lsh.recall import Measured, interval
from lsh.report.page import Cell, Frame, Html, bar, document, element, joined, label_at, path, round_levels, table

LEAST_PAIRS = 20  # of which a share says something
ALARM = 0.3  # of a source's documents: who loses more is named

PAIRS = 12  # shown on each side of the threshold
PAIR_LENGTH = 700  # characters of each text
CONTEXT = 120  # characters before the first difference
CLUSTERS, CLUSTER_LENGTH = 20, 240
SOURCES = 200
SIZES = (2, 3, 4, 5, 10, 20, 50, 100, 1000, 10_000, 100_000)  # of clusters: where classes begin
NAME_LENGTH = 120  # of an id or a source
VALUE_LENGTH, MOST_VALUES = 500, 100

# A word, a character of a script that is written without spaces, white space, or any other character.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+|\s+|.")

Array = np.ndarray[Any, Any]
Text = str | bytes | bytearray | memoryview | None
Texts = Sequence[Text] | Callable[[int], Text]


def html(
    result: lsh.Deduplication,
    *,
    texts: Texts,
    parameters: Mapping[str, object] | None = None,
    ids: Sequence[object] | None = None,
    sizes: Sequence[int] | Array | None = None,
    sources: Sequence[object] | None = None,
    against: Texts | None = None,
    against_ids: Sequence[object] | None = None,
    sample_pairs: int = recall.PAIRS,
) -> str:
    """Return the report of a deduplication as one page of HTML, well under 2 MB.

    Parameters
    ----------
    result : Deduplication
        What `lsh.deduplicate` returned.
    texts : sequence of str or bytes, Arrow array, or callable
        The ``n`` documents that were given to it, by position; a callable is called with a position and returns the
        text there. Some hundred texts are read, and those of the sample; without `sizes` each is read once.
    parameters : mapping of str to object, optional
        What else to say of the run, such as the names of the files, in this order.
    ids : sequence, optional
        What each document is called, str, bytes or anything that prints. Default: its position.
    sizes : array_like of int, optional
        UTF-8 bytes of each document. Default: measured.
    sources : sequence, optional
        Where each document is from, to tell what is left of each source.
    against, against_ids : optional
        The old documents and their ids, as `texts` and `ids`; needed where one of them is a witness.
    sample_pairs : int, optional
        Pairs of documents to compare exactly, about, at most 20,000,000; 0 measures nothing. Default 500,000.

    Returns
    -------
    str
        The page, to be written as UTF-8. It asks for nothing from elsewhere, and what is in a text stays text.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of a wrong type or length, or old documents are missing.

    Notes
    -----
    What the bands find is measured by `lsh.recall`, on pairs that are chosen whether the bands find them or not.

    Examples
    --------
    >>> import lsh
    >>> from lsh import report
    >>> texts = ["A cat sat on the mat today.", "A dog ran in the park.", "A cat sat on the mat today!"]
    >>> result = lsh.deduplicate(texts, 0.8, shingles=lsh.Shingles(4))
    >>> page = report.html(result, texts=texts)
    >>> "1 of 3 documents" in page
    True
    """
    _checked_result(result)
    number = len(result.keep)
    new = _Documents("texts", texts, "ids", ids, number)
    old = None if against is None else _Documents("against", against, "against_ids", against_ids, None)
    if old is None and ((_sides(result.removed) == "old").any() or (_sides(result.near) == "old").any()):
        raise ValueError("against must be given where the result names old documents; pass what deduplicate had")
    labels = None if sources is None else _of_length("sources", sources, number)
    lengths = _lengths(new, number) if sizes is None else _checked_sizes(sizes, number)
    if parameters is not None and not isinstance(parameters, Mapping):
        raise TypeError(f"parameters must be a dict, got {type(parameters).__name__}")
    run = _Run(result, new, old, lengths)
    shown = _chosen(result, lengths, sample_pairs)
    measured = recall.measured(shown.runs, new.given, result.keep, run.threshold, run.hasher, run.bands)
    parts = [
        _head(run, measured),
        _alarm(run, labels),
        element("div", _histogram(run), _curve(run, measured), class_="columns"),
        _clusters(run, shown),
        *([] if labels is None else [_survival(run, labels)]),
        _nearest(run, shown),
        _what_was_run(run, parameters or {}),
        element("footer", f"Made by lsh {lsh.__version__}. All that is shown here is in this file."),
    ]
    return document("Deduplication report", joined(parts))


def positions(
    result: lsh.Deduplication, *, sizes: Sequence[int] | Array, sample_pairs: int = recall.PAIRS
) -> tuple[list[int], list[int]]:
    """Return which texts `html` reads where it is given `sizes`, so that nobody has to hold the others.

    Parameters
    ----------
    result, sizes, sample_pairs
        As for `html`.

    Returns
    -------
    tuple of list of int
        Positions of new documents, and of old ones; ascending.

    Examples
    --------
    >>> import lsh
    >>> from lsh import report
    >>> result = lsh.deduplicate(["a cat sat here", "", "a cat sat here", "rain"], 0.8)
    >>> report.positions(result, sizes=[14, 0, 14, 4])
    ([0, 1, 3], [])
    """
    _checked_result(result)
    lengths = _checked_sizes(sizes, len(result.keep))
    shown = _chosen(result, lengths, sample_pairs)
    read: dict[str, set[int]] = {"new": set(shown.runs.ravel().tolist()), "old": set()}
    read["new"].update(int(cluster[0]) for cluster in shown.clusters)
    for pairs, first, second in ((shown.above, "document", "kept"), (shown.below, "i", "j")):
        for row, side in pairs:
            read["new"].add(int(row[first]))
            read[side].add(int(row[second]))
    return sorted(read["new"]), sorted(read["old"])


# ---- what it is made from ----


class _Shown(NamedTuple):
    """Which documents the page is about."""

    sizes: Array  # of all clusters
    clusters: list[Array]  # the largest
    above: list[tuple[Any, str]]  # the removals nearest to the threshold, and the side of the kept document
    below: list[tuple[Any, str]]
    runs: Array  # the sample


def _chosen(result: lsh.Deduplication, lengths: Array, sample_pairs: int) -> _Shown:
    """Choose what is shown."""
    threshold = result.parameters["threshold"]
    limit = _checks.whole_number("sample_pairs", sample_pairs, 0, recall.MOST_PAIRS)
    clusters, removed = result.clusters(), result.removed
    sizes = np.array([len(cluster) for cluster in clusters], np.int64)
    largest = [clusters[i] for i in np.argsort(-sizes, kind="stable")[:CLUSTERS].tolist()]
    order = np.lexsort((removed["document"], np.abs(removed["similarity"] - threshold)))
    closest = removed[order[~removed["identical"][order]]]
    above, below = _varied(closest, "document", "kept"), _varied(result.near, "i", "j")
    runs = recall.runs(lengths, removed["document"][removed["identical"]], limit)
    return _Shown(sizes, largest, above, below, runs)


def _varied(pairs: Array, first: str, second: str) -> list[tuple[Any, str]]:
    """Return the first pairs, and the side of their second document, so that each document is shown once."""
    chosen: list[tuple[Any, str]] = []
    seen: set[tuple[str, int]] = set()
    for row, side in zip(pairs, _sides(pairs).tolist()):
        names = {("new", int(row[first])), (side, int(row[second]))}
        if not names & seen:
            chosen.append((row, side))
            seen |= names
        if len(chosen) == PAIRS:
            break
    return chosen


class _Documents:
    """Documents that are looked up one by one, with their names."""

    def __init__(self, name: str, texts: Any, ids_name: str, ids: Any, number: int | None) -> None:
        if not callable(texts):
            if isinstance(texts, (*_checks.TEXT_TYPES, Mapping)) or not hasattr(texts, "__getitem__"):
                raise TypeError(f"{name} must be a sequence of texts or callable, got {type(texts).__name__}")
            if number is not None:
                _of_length(name, texts, number)
            texts = _by_position(texts).__getitem__
        self._text, self._ids = texts, None if ids is None else _by_position(ids)
        if ids is not None and number is not None:
            _of_length(ids_name, ids, number)

    def given(self, position: int) -> Any:
        """Return a text as it is, a missing one as empty."""
        value = self._text(position)
        if hasattr(value, "as_py"):  # of an Arrow array
            value = value.as_py()
        return "" if value is None else value

    def text(self, position: int) -> str:
        """Return a text as str, to be read by people."""
        return _decoded(self.given(position))

    def size(self, position: int) -> int:
        """Return how many bytes of UTF-8 a text has."""
        value = self.given(position)
        if isinstance(value, str) and not value.isascii():
            return len(value.encode("utf-8", "surrogatepass"))
        return memoryview(value).nbytes if isinstance(value, memoryview) else len(value)

    def name(self, position: int) -> Html:
        """Return the id of a document."""
        shown = f"{position}" if self._ids is None else _cut(_decoded(self._ids[position]), NAME_LENGTH)
        return element("bdi", shown, class_="id")


class _Run(NamedTuple):
    """What was run, and on what."""

    result: lsh.Deduplication
    new: _Documents
    old: _Documents | None
    sizes: Array

    @property
    def threshold(self) -> float:
        """The least similarity of near duplicates."""
        return float(self.result.parameters["threshold"])

    @property
    def hasher(self) -> lsh.MinHasher:
        """What made the fingerprints."""
        made_by: lsh.MinHasher = self.result.parameters["hasher"]
        return made_by

    @property
    def bands(self) -> lsh.Bands:
        """The bands."""
        bands: lsh.Bands = self.result.parameters["bands"]
        return bands

    @property
    def verify(self) -> str | None:
        """What made a candidate a duplicate."""
        verify: str | None = self.result.parameters["verify"]
        return verify

    def side(self, name: str) -> _Documents:
        """Return the new or the old documents."""
        return self.old if name == "old" and self.old is not None else self.new

    @property
    def promised(self) -> float:
        """The probability that a pair just at the threshold is found and, where that is done, passes the filter."""
        found = self.bands.probability(self.threshold)
        if self.verify != "exact":
            return found
        plan: lsh.Plan | None = self.result.parameters["plan"]
        return plan.recall_at(self.threshold) if plan is not None and plan.loss else found * (1.0 - LOSS)


def _by_position(values: Any) -> Any:
    """Return what is looked up by position: a column of pandas goes by its labels else."""
    return getattr(values, "iloc", values)


def _of_length(name: str, values: Any, number: int) -> Any:
    if isinstance(values, (*_checks.TEXT_TYPES, Mapping)) or not hasattr(values, "__len__"):
        raise TypeError(f"{name} must be a sequence with one value a document, got {type(values).__name__}")
    if len(values) != number:
        raise ValueError(f"{name} must have one value a document ({number}), got {len(values)}")
    return values


def _checked_result(result: Any) -> None:
    if not isinstance(result, lsh.Deduplication):
        raise TypeError(f"result must be what lsh.deduplicate returns, got {type(result).__name__}")


def _checked_sizes(sizes: Any, number: int) -> Array:
    array = np.asarray(_of_length("sizes", sizes, number))
    if array.ndim != 1 or (number and array.dtype.kind not in "iu") or (array < 0).any():
        raise ValueError("sizes must be whole numbers of 0 or more, one a document")
    return array.astype(np.int64)


def _lengths(documents: _Documents, number: int) -> Array:
    return np.fromiter((documents.size(position) for position in range(number)), np.int64, number)


def _sides(pairs: Array) -> Array:
    """Return on which side the second of each pair is."""
    return pairs["side"] if "side" in (pairs.dtype.names or ()) else np.full(len(pairs), "new")


def _decoded(value: object) -> str:
    return bytes(value).decode("utf-8", "replace") if isinstance(value, _checks.TEXT_TYPES[1:]) else str(value)


def _cut(value: str, length: int) -> str:
    return value if len(value) <= length else f"{value[: length - 1]}…"


def _percent(share: float) -> str:
    """Return a share in per cent, never rounded to nothing or to everything."""
    if 0.0 < share < 0.0005:
        return "under 0.1 %"
    return f"{min(100 * share, 99.9) if share < 1.0 else 100.0:.1f} %"


# ---- the parts of the page ----


def _head(run: _Run, measured: Measured | None) -> Html:
    counts, removed = run.result.summary(), run.result.removed
    total, gone = counts["documents"], counts["removed"]
    saved, whole = int(run.sizes[removed["document"]].sum()), int(run.sizes.sum())
    old = f", compared with {counted(counts['old'], 'old document')}, too" if counts["old"] else ""
    how = f"at a Jaccard similarity of {run.threshold:g}" if run.verify else "by shared bands, without verification"
    about = f"Deduplication {how}{old}"
    verb = " is a duplicate" if gone == 1 else " are duplicates"
    title = joined([element("span", f"{gone:,} of {counted(total, 'document')}", class_="accent"), verb])
    tiles = [
        ("Documents kept", f"{counts['kept']:,}", f"{_percent(counts['kept'] / max(total, 1))} of {total:,}"),
        ("Text saved", size(saved), f"{_percent(saved / max(whole, 1))} of {size(whole)}"),
        ("Identical copies", f"{counts['identical']:,}", f"of {gone:,} removed"),
        *([("For old documents", f"{counts['for_old']:,}", f"of {gone:,} removed")] if counts["old"] else []),
        ("Clusters", f"{counts['clusters']:,}", f"kept {'new ' if counts['old'] else ''}documents with duplicates"),
        ("Recall promised", f"{run.promised:.3f}", "of pairs just at the threshold"),
        ("Recall measured", *_recall_said(run, measured)),
        ("Pairs found", f"{counts['candidates']:,}", "that share a band"),
        ("Pairs compared", f"{counts['compared']:,}", "exactly" if run.verify == "exact" else "by their fingerprints"),
    ]
    cells = [
        element(
            "div",
            element("dt", name),
            element("dd", figure, class_="figure"),
            element("dd", more, class_="more"),
        )
        for name, figure, more in tiles
    ]
    return element(
        "header", element("p", about, class_="over"), element("h1", title), element("dl", *cells, class_="tiles")
    )


def _recall_said(run: _Run, measured: Measured | None) -> tuple[str, str]:
    if measured is None:
        return "not measured", "there is no sample"
    if measured.pairs < LEAST_PAIRS:
        pairs = counted(measured.pairs, "such pair") if measured.pairs else "no such pair"
        return "not measured", f"{pairs} in the sample{', too few to tell' if measured.pairs else ''}"
    low, high = interval(measured.found, measured.pairs)
    pairs = counted(measured.pairs, "pair")
    return f"{measured.found / measured.pairs:.3f}", f"of the bands on {pairs}: {low:.3f} to {high:.3f}"


class _Histogram(NamedTuple):
    """Removed documents by similarity; those that are the same byte for byte apart."""

    edges: list[float]
    counts: list[int]
    same: int

    @property
    def step(self) -> float:
        """The width of an interval."""
        return (self.edges[-1] - self.edges[0]) / len(self.counts)

    @property
    def names(self) -> list[str]:
        """What to call the intervals."""
        return [f"{low:g} to {high:g}" for low, high in zip(self.edges, self.edges[1:])]

    @property
    def torn(self) -> bool:
        """Whether there are so many identical ones that their column is cut short."""
        return self.same > 1.6 * max(*self.counts, 1)


def _by_similarity(run: _Run) -> _Histogram:
    """Count the removed documents by their similarity to the kept one."""
    removed = run.result.removed
    values = removed["similarity"][~removed["identical"]]
    low = min(run.threshold, 0.95, float(values.min(initial=1.0)))
    step = next(step for step in (0.005, 0.01, 0.02, 0.05) if (1 - low) / step <= 25)
    edges = np.round(np.arange(int(low / step + 1e-9), round(1 / step) + 1) * step, 10)
    return _Histogram(edges.tolist(), np.histogram(values, edges)[0].tolist(), int(removed["identical"].sum()))


def _histogram(run: _Run) -> Html:
    """Show how similar the removed documents are to their witnesses."""
    histogram = _by_similarity(run)
    rows = [
        (Cell(name, low, right=False), Cell(f"{count:,}", count))
        for name, low, count in zip(histogram.names, histogram.edges, histogram.counts)
    ]
    rows.append((Cell("identical", 2.0, right=False), Cell(f"{histogram.same:,}", histogram.same)))
    what = "Exact similarity" if run.verify == "exact" else "Estimated similarity"
    cut = " Their column is cut short." if histogram.torn else ""
    below = int((run.result.removed["similarity"] < run.threshold).sum())
    less = f" {counted(below, 'removal')} below {run.threshold:g}." if below else ""
    said = (
        f"{what} of each removed document to the one that is kept for it; in colour those that are the same byte for "
        f"byte.{cut}{less}"
    )
    return element(
        "figure",
        element("h3", "How similar the removals are"),
        _columns(histogram),
        element("figcaption", said),
        _figures(table(("similarity", "documents"), rows, name="similarities")),
    )


def _columns(histogram: _Histogram) -> Html:
    """Draw the histogram."""
    low, step, same = histogram.edges[0], histogram.step, histogram.same
    levels = round_levels(max(histogram.counts) if histogram.torn else max(*histogram.counts, same))
    frame = Frame(low, 1 + 2.5 * step, levels[-1])
    width = frame.x(low + step) - frame.x(low)
    marks = [
        _column(frame, edge, width, count, f"{name}: {counted(count, 'document')}")
        for edge, count, name in zip(histogram.edges, histogram.counts, histogram.names)
    ]
    shown = frame.top if histogram.torn else same
    marks.append(_column(frame, 1 + step, width, shown, f"identical: {counted(same, 'document')}", "same"))
    middle, y = frame.x(1 + 1.5 * step), frame.y(0.86 * frame.top)
    if histogram.torn:
        points = [(middle - width, y + 4), (middle - 2, y - 3), (middle + 2, y + 4), (middle + width, y - 3)]
        marks.append(path(points, "torn"))
    if same:
        marks.append(label_at(middle, frame.y(shown) - 4, f"{same:,}", class_="loud"))
    every = max(1, -(-len(histogram.counts) // 5))
    ticks = [(edge, f"{edge:g}") for edge in histogram.edges[::every] if edge < 1 - 1.5 * step] + [(1.0, "1")]
    up = [(level, f"{level:,}") for level in levels]
    return frame.drawn("Similarities of removals", marks, ticks, up, "similarity to the kept document", "documents")


def _column(frame: Frame, value: float, width: float, height: float, said: str, class_: str | None = None) -> Html:
    y = frame.y(height)
    size = {"x": f"{frame.x(value) + 1:.1f}", "y": f"{y:.1f}", "width": f"{max(width - 2, 1):.1f}"}
    return element("rect", element("title", said), **size, height=f"{frame.y(0) - y:.1f}", rx=1, class_=class_)


def _figures(content: Html) -> Html:
    return element("details", element("summary", "Figures"), content)


def _curve(run: _Run, measured: Measured | None) -> Html:
    """Draw what the bands should find by similarity, and what they found in the sample."""
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
    for step in measured.steps if measured else ():
        x, share = frame.x(step.similarity), step.found / step.pairs
        low, high = interval(step.found, step.pairs)
        said = f"similarity {step.similarity:.3f}: {step.found:,} of {counted(step.pairs, 'pair')} found"
        marks.append(path([(x, frame.y(low)), (x, frame.y(high))], "whisker"))
        marks.append(element("circle", element("title", said), cx=f"{x:.1f}", cy=f"{frame.y(share):.1f}", r=3.2))
    ticks = [(tenth / 10, f"{tenth / 10:g}") for tenth in range(0, 11, 2)]
    levels = [(tenth / 10, f"{10 * tenth} %") for tenth in range(0, 11, 2)]
    chart = frame.drawn("S-curve of the bands", marks, ticks, levels, "similarity of a pair", "found by the bands")
    parts = [element("h3", "What the bands find"), chart, element("figcaption", _sample_said(run, measured))]
    if measured:
        heads = ("similarity", "pairs", "found", "share", "expected")
        rows = [
            (
                Cell(f"{step.low:.2f} to {step.high:.2f}", step.low, right=False),
                Cell(f"{step.pairs:,}", step.pairs),
                Cell(f"{step.found:,}", step.found),
                Cell(f"{step.found / step.pairs:.3f}", step.found / step.pairs),
                Cell(f"{step.expected:.3f}", step.expected),
            )
            for step in measured.steps
        ]
        parts.append(_figures(table(heads, rows, name="recall")))
    return element("figure", *parts)


def _sample_said(run: _Run, measured: Measured | None) -> str:
    drawn = "The curve is the probability that a pair shares a band."
    if measured is None:
        return f"{drawn} Nothing was measured: there is no sample of two documents with shingles."
    said = (
        f"{drawn} The dots are measured on this corpus: {counted(measured.compared, 'pair')} among "
        f"{measured.documents:,} documents, in runs of neighbours spread evenly over the corpus, compared exactly. "
        "Lines are intervals of 95\u00a0% for independent pairs, too short where many texts share a template."
    )
    if not measured.pairs:
        return f"{said} No two of them are similar enough to be removed and yet different."
    pairs, found, left = measured.pairs, measured.found, measured.left
    return (
        f"{said} {counted(pairs, 'pair')} reached the threshold and differed: {found:,} shared a band, "
        f"{left or 'none'} had both documents kept."
    )


def _clusters(run: _Run, shown: _Shown) -> Html:
    if not shown.clusters:
        return joined([element("h2", "Clusters"), element("p", "No two new documents belong together.")])
    number, size_rows = len(shown.sizes), _size_rows(shown.sizes)
    least = dict.fromkeys((int(cluster[0]) for cluster in shown.clusters), 1.0)
    removed = run.result.removed[_sides(run.result.removed) == "new"]
    removed = removed[np.isin(removed["kept"], list(least))]
    for kept, similarity in zip(removed["kept"].tolist(), removed["similarity"].tolist()):
        least[kept] = min(least[kept], similarity)
    rows = []
    for cluster in shown.clusters:
        kept = int(cluster[0])
        begin = " ".join(run.new.text(kept)[: 4 * CLUSTER_LENGTH].split())
        excerpt = element("bdi", _cut(begin, CLUSTER_LENGTH), class_="excerpt", dir="auto")
        size, similarity = len(cluster), least[kept]
        rows.append(
            (Cell(f"{size:,}", size), Cell(f"{similarity:.3f}", similarity), Cell(run.new.name(kept)), Cell(excerpt))
        )
    heads = ("documents", "least similarity", "kept", "how the kept one begins")
    heading = f"The {len(rows)} largest of {number:,}" if len(rows) < number else "All of them"
    return joined(
        [
            element("h2", "Clusters"),
            element("p", f"{counted(number, 'cluster')} of one kept document and what is removed for it."),
            table(("documents in it", "clusters", "documents", "share of the documents"), size_rows, name="sizes"),
            element("h3", heading),
            table(heads, rows, name="clusters"),
        ]
    )


def _size_rows(sizes: Array) -> list[tuple[Cell, ...]]:
    """Count clusters by their size, in classes."""
    rows: list[tuple[Cell, ...]] = []
    for low, high in zip(SIZES, (*SIZES[1:], int(sizes.max()) + SIZES[-1])):
        inside = sizes[(sizes >= low) & (sizes < high)]
        if len(inside):
            name = f"{low:,}" if high == low + 1 else f"{low:,} to {high - 1:,}"
            name = name if low < SIZES[-1] else f"{low:,} or more"
            share = float(inside.sum() / sizes.sum())
            documents = int(inside.sum())
            rows.append(
                (
                    Cell(name, low, right=False),
                    Cell(f"{len(inside):,}", len(inside)),
                    Cell(f"{documents:,}", documents),
                    Cell(bar(share, _percent(share)), share, right=False),
                )
            )
    return rows


# ---- sources ----


class _Left(NamedTuple):
    """What is left of a source."""

    name: str
    documents: int
    removed: int

    @property
    def lost(self) -> float:
        """The share that is removed."""
        return self.removed / self.documents


def _by_source(run: _Run, labels: Sequence[object]) -> list[_Left]:
    """Return the sources in the order of what they lose, the most first."""
    counts: dict[str, list[int]] = {}
    for label, keeps in zip(labels, run.result.keep.tolist()):
        count = counts.setdefault("" if label is None else _decoded(label), [0, 0])
        count[0] += 1
        count[1] += not keeps
    sources = [_Left(name, *count) for name, count in counts.items()]
    return sorted(sources, key=lambda source: (-source.lost, -source.documents, source.name))


def _alarm(run: _Run, labels: Sequence[object] | None) -> Html:
    """Warn of sources that lose much."""
    sources = [] if labels is None else _by_source(run, labels)
    alarming = [source for source in sources if source.lost > ALARM]
    if not alarming:
        return Html()
    named: list[object] = [
        joined([element("bdi", _name(source)), f" ({_percent(source.lost)})"]) for source in alarming[:5]
    ]
    rest = f" and {len(alarming) - 5:,} more" if len(alarming) > 5 else ""
    verb = "loses" if len(alarming) == 1 else "lose"
    said = f"{len(alarming):,} of {counted(len(sources), 'source')} {verb} more than {ALARM:.0%}".replace("%", " %")
    return element("div", f"{said}: ", joined(named, ", "), f"{rest}.", class_="panel alarm", id="alarm", role="note")


def _name(source: _Left) -> str:
    return _cut(source.name, NAME_LENGTH) or "(no source)"


def _survival(run: _Run, labels: Sequence[object]) -> Html:
    sources = _by_source(run, labels)
    largest = set(sorted(sources, key=lambda source: -source.documents)[:SOURCES])
    rest = [source for source in sources if source not in largest]
    rows = []
    for source in (source for source in sources if source in largest):
        loud = source.lost > ALARM
        kept = source.documents - source.removed
        lost = element("span", "▲ " if loud else "", _percent(source.lost), class_="alarm" if loud else None)
        rows.append(
            (
                Cell(element("bdi", _name(source), class_="id")),
                Cell(f"{source.documents:,}", source.documents),
                Cell(f"{kept:,}", kept),
                Cell(f"{source.removed:,}", source.removed),
                Cell(bar(source.lost, lost, loud), source.lost, right=False),
            )
        )
    foot: tuple[object, ...] = ()
    if rest:
        number, gone = sum(source.documents for source in rest), sum(source.removed for source in rest)
        numbers = (f"{each:,}" for each in (number, number - gone, gone))
        foot = (f"{len(rest):,} smaller ones", *numbers, bar(gone / number, _percent(gone / number)))
    heads = ("source", "documents", "kept", "removed", "lost")
    words = f"What is left of {counted(len(sources), 'source')}; ▲ marks a loss of more than {ALARM:.0%}."
    return joined(
        [
            element("h2", "Sources"),
            element("p", words.replace("%", " %")),
            table(heads, rows, foot=foot, name="survival"),
        ]
    )


# ---- pairs ----


def _nearest(run: _Run, shown: _Shown) -> Html:
    above = [
        _pair(run, float(row["similarity"]), (side, int(row["kept"]), "kept"), ("new", int(row["document"]), "removed"))
        for row, side in shown.above
    ]
    below = [
        _pair(run, float(row["similarity"]), ("new", int(row["i"]), ""), (side, int(row["j"]), ""))
        for row, side in shown.below
    ]
    none = element("p", "None.", class_="note")
    from_where = "from a little before their first difference, each document once. Words that differ are marked."
    if run.verify is None:
        said = f"Nothing is verified here. The removals nearest to {run.threshold:g}, {from_where}"
        return joined(
            [element("h2", "Some removals"), element("p", said), element("div", *(above or [none]), id="above")]
        )
    said = f"Where the line is drawn: the pairs nearest to {run.threshold:g} on both sides, {from_where}"
    return joined(
        [
            element("h2", "Around the threshold"),
            element("p", said),
            element("h3", "Nearest from above: removed"),
            element("div", *(above or [none]), id="above"),
            element("h3", "Nearest from below: no reason to remove"),
            element("div", *(below or [none]), id="below"),
        ]
    )


def _pair(run: _Run, similarity: float, first: tuple[str, int, str], second: tuple[str, int, str]) -> Html:
    """Show two documents side by side; each is a side, a position and what became of it."""
    documents = [run.side(side) for side, _, _ in (first, second)]
    texts = [of.text(position) for of, (_, position, _) in zip(documents, (first, second))]
    sides = []
    for of, (side, position, fate), words in zip(documents, (first, second), _marked(*texts)):
        said = ", ".join(filter(None, ["old" if side == "old" else "", fate]))
        who = element("span", of.name(position), f" {said}" if said else "", class_="who")
        sides.append(element("div", who, element("bdi", words, class_="words", dir="auto")))
    return element(
        "article",
        element("header", element("span", "similarity ", element("b", f"{similarity:.4f}"))),
        element("div", *sides, class_="sides"),
        class_="pair",
    )


def _marked(a: str, b: str) -> tuple[Html, Html]:
    """Return excerpts of two texts from a little before their first difference on, with what differs marked."""
    same = bisect_left(range(1, min(len(a), len(b)) + 1), True, key=lambda length: a[:length] != b[:length])
    start = max(same - CONTEXT, 0)
    while 0 < start < same and not a[start - 1].isspace() and start > same - CONTEXT - 20:
        start -= 1
    first, second = (_WORD.findall(text[start : start + PAIR_LENGTH]) for text in (a, b))
    codes = SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
    shown = []
    for words, text, right in ((first, a, False), (second, b, True)):
        parts: list[object] = ["… "] if start else []
        for tag, i, i_end, j, j_end in codes:
            piece = "".join(words[j:j_end] if right else words[i:i_end])
            parts += [piece] if tag == "equal" else _mark(piece)
        more = len(text) - start - PAIR_LENGTH
        parts.append(element("span", f" … {counted(more, 'character')} more", class_="note") if more > 0 else "")
        shown.append(joined(parts))
    return shown[0], shown[1]


def _mark(piece: str) -> list[object]:
    """Mark what differs, without the white space around it, unless that is all."""
    words = piece.strip() or piece
    before, _, after = piece.partition(words) if words else ("", "", "")
    return [before, element("mark", words), after] if words else []


def _what_was_run(run: _Run, parameters: Mapping[str, object]) -> Html:
    rows = [
        element("tr", element("td", _cut(name, NAME_LENGTH)), element("td", element("bdi", _cut(value, VALUE_LENGTH))))
        for name, value in _values(run, parameters)
    ]
    content = element("table", element("tbody", *rows), class_="run", id="run")
    return joined([element("h2", "What was run"), element("div", content, class_="scroll")])


def _values(run: _Run, parameters: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield what is said of the run."""
    counts = run.result.summary()
    verified = {"exact": "exact Jaccard similarity", "sketch": "estimate by the fingerprints", None: "a shared band"}
    yield "version", f"lsh-dedup {lsh.__version__}"
    yield "threshold", f"{run.threshold:g}"
    yield "promised recall", f"{run.promised:.6f} at the threshold"
    yield "verified by", verified[run.verify]
    yield "shingles", repr(run.hasher.shingles)
    yield "fingerprints", repr(run.hasher)
    yield "bands", str(run.bands).partition("\n")[0]
    for name, value in list(parameters.items())[:MOST_VALUES]:
        yield str(name), _decoded(value)
    for name, said in (
        ("without_shingles", "documents without shingles, kept"),
        ("missing", "missing texts, kept"),
        ("capped", "members of huge buckets passed over"),
    ):
        if counts[name]:
            yield said, f"{counts[name]:,}"
