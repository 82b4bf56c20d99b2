"""The parts of a report other than charts and pairs: header, alarm, clusters, sources, parameters.

Each function returns HTML; the figures come from `lsh.report.measures`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from lsh.base.arrays import Array
from lsh.base.errors import bad_type
from lsh.base.version import __version__
from lsh.base.wording import counted, size
from lsh.links.linking import LIMIT
from lsh.report.choice import Choice
from lsh.report.lookup import MAX_NAME_LENGTH, beginning, decoded, shortened, shown_source, source_cell
from lsh.report.measures import (
    ALARMING_LOSS,
    MIN_PAIRS,
    DeduplicationRun,
    PairGroup,
    ShownCluster,
    SourceCount,
    clusters_by_size,
    shown_clusters,
)
from lsh.report.page import Cell, Html, bar, count, element, joined, section, table
from lsh.report.recall import MeasuredRecall, confidence_interval

MAX_ALARMS = 5  # sources that are named
MAX_SOURCES = 200  # in the table; the smaller sources share one row
EXCERPT_LENGTH = 240  # characters
MAX_VALUES, MAX_VALUE_LENGTH = 100, 500  # of parameters

VERIFIED_BY = {
    "exact": "exact Jaccard similarity",
    "sketch": "similarity estimated from fingerprints",
    None: "a shared band",
}


def percent(share: float) -> str:
    """Return a share in per cent, rounded to 0 or 100 only if it is exact."""
    if 0.0 < share < 0.0005:
        return "under 0.1 %"
    return f"{min(100 * share, 99.9) if share < 1.0 else 100.0:.1f} %"


def share_of(part: int, whole: int, shown: Callable[[int], str] = "{:,}".format) -> str:
    """Return a part in per cent of a whole, and the whole."""
    return f"{percent(part / max(whole, 1))} of {shown(whole)}"


# ---- header ----


def header(run: DeduplicationRun, measured: MeasuredRecall | None, group: PairGroup | None) -> Html:
    """Show what the run removed, and its figures."""
    counts = run.result.summary()
    old = f", also compared with {counted(counts['old'], 'old document')}" if counts["old"] else ""
    how = f"at a Jaccard similarity of {run.threshold:g}" if run.verify else "by shared bands, without verification"
    verb = " is a duplicate" if counts["removed"] == 1 else " are duplicates"
    accent = element("span", f"{counts['removed']:,} of {counted(counts['documents'], 'document')}", class_="accent")
    tiles = (*_removal_tiles(run), *_recall_tiles(run, measured, group), *_pair_tiles(run))
    return titled(f"Deduplication {how}{old}", accent, verb, tiles, _about_pairs(run))


Tile = tuple[str, str, str]  # name, figure and explanation; there are eight, which fill rows of two and of four


def titled(over: str, accent: Html, title: str, tiles: Iterable[Tile], note: str) -> Html:
    """Return the header of a page: a line, the title, which begins with `accent`, the tiles and a note."""
    cells = [
        element("div", element("dt", name), element("dd", figure, class_="figure"), element("dd", more, class_="more"))
        for name, figure, more in tiles
    ]
    return element(
        "header",
        element("p", over, class_="over"),
        element("h1", accent, title),
        element("dl", *cells, class_="tiles"),
        element("p", note, class_="note"),
    )


def _removal_tiles(run: DeduplicationRun) -> Iterator[Tile]:
    counts = run.result.summary()
    saved, whole = int(run.sizes[run.result.removed["document"]].sum()), int(run.sizes.sum())
    yield "Documents kept", f"{counts['kept']:,}", share_of(counts["kept"], counts["documents"])
    yield "Text removed", size(saved), share_of(saved, whole, size)
    yield "Identical copies", f"{counts['identical']:,}", "identical to the kept document"
    if counts["old"]:
        yield "Duplicates of old documents", f"{counts['for_old']:,}", f"of {counts['removed']:,} removed"
    else:
        yield "Clusters", f"{counts['clusters']:,}", "of two or more documents"


def _recall_tiles(run: DeduplicationRun, measured: MeasuredRecall | None, group: PairGroup | None) -> Iterator[Tile]:
    if run.left_out:
        yield "Comparisons left out", f"{run.left_out:,}", f"the recall of {run.promised_recall:.3f} does not hold"
    else:
        yield "Recall promised", f"{run.promised_recall:.3f}", "for a pair at the threshold"
    if measured is None or measured.pairs < MIN_PAIRS:
        pairs = counted(measured.pairs if measured else 0, "sampled pair")
        yield "Recall measured", "not measured", f"{pairs}, {MIN_PAIRS} needed"
        return
    low, high = confidence_interval(measured.found, measured.pairs)
    more = f"{measured.pairs:,} pairs, 95 %: {low:.3f} to {high:.3f}"
    if group:
        more = f"{measured.pairs:,} pairs, {group.pairs:,} in one cluster"
    yield "Recall measured", f"{measured.found / measured.pairs:.3f}", more


def _pair_tiles(run: DeduplicationRun) -> Iterator[Tile]:
    counts = run.result.summary()
    yield "Candidate pairs", f"{counts['candidates']:,}", "share a band; once for each"
    if run.verify == "exact":
        yield "Compared exactly", f"{counts['compared']:,}", "passed the sketch filter"
    else:
        yield "Estimated", f"{counts['compared']:,}", "from fingerprints"


def _about_pairs(run: DeduplicationRun) -> str:
    """Explain the counts of pairs."""
    candidates = "A candidate pair is two documents that share a band, without identical copies. "
    if run.verify != "exact":
        return f"{candidates}The similarity of pairs is estimated from the fingerprints."
    also = ", and each removed document is compared with the kept one" if run.clusters == "components" else ""
    return (
        f"{candidates}The sketch filter drops the pairs whose fingerprints differ too much. The others are compared "
        f"exactly, unless one of the two was removed before{also}."
    )


def left_out(run: DeduplicationRun, measured: MeasuredRecall | None) -> Html:
    """Warn that the run left out comparisons, and say what the recall is then."""
    if not run.left_out:
        return Html()
    words = (
        f"The run left out {counted(run.left_out, 'comparison')} in buckets of more than {LIMIT:,} documents. The "
        f"planned recall of {run.promised_recall:.3f} does not hold there: similar documents may remain. "
    )
    if measured is None or measured.pairs < MIN_PAIRS:
        pairs = counted(measured.pairs if measured else 0, "similar pair")
        words += f"How many is not measured: the sample has {pairs}, and {MIN_PAIRS} are needed."
    else:
        low, high = confidence_interval(measured.found, measured.pairs)
        words += (
            f"Measured: of {measured.pairs:,} similar pairs of random documents the run found {measured.found:,}, "
            f"{percent(measured.found / measured.pairs)} (95 %: {percent(low)} to {percent(high)})."
        )
    return element("div", words, class_="panel alarm", id="left-out", role="note")


# ---- clusters ----


def clusters(run: DeduplicationRun, choice: Choice) -> Html:
    """Show the sizes of the clusters, and the largest ones."""
    if not choice.clusters:
        return section("Clusters", element("p", "No duplicates among the new documents."))
    classes = clusters_by_size(run.result)
    number, shown = sum(one.clusters for one in classes), len(choice.clusters)
    size_rows = [
        (
            Cell(one.name, one.low, right=False),
            count(one.clusters),
            count(one.documents),
            Cell(bar(one.share, percent(one.share)), one.share, right=False),
        )
        for one in classes
    ]
    rows = [_cluster_row(run, cluster) for cluster in shown_clusters(run.result, choice.clusters)]
    heads = ("documents", "lowest similarity", "kept document", "start of its text")
    return section(
        "Clusters",
        element("p", f"{counted(number, 'cluster')}: a kept document and those removed as its duplicates."),
        table(("cluster size", "clusters", "documents", "share of the documents in clusters"), size_rows, name="sizes"),
        element("h3", f"The {shown} largest of {number:,} clusters" if shown < number else "All clusters"),
        table(heads, rows, name="clusters"),
    )


def _cluster_row(run: DeduplicationRun, cluster: ShownCluster) -> tuple[Cell, ...]:
    return (
        count(cluster.size),
        Cell(f"{cluster.lowest:.3f}", cluster.lowest),
        Cell(run.new.shown_id(cluster.kept)),
        Cell(beginning(run.new.readable(cluster.kept), EXCERPT_LENGTH)),
    )


# ---- sources ----


def alarm(sources: Sequence[SourceCount]) -> Html:
    """Warn of sources that lose more than ALARMING_LOSS."""
    alarming = [source for source in sources if source.alarming]
    if not alarming:
        return Html()
    named = [
        joined([element("bdi", shown_source(one.name)), f" ({percent(one.loss)})"]) for one in alarming[:MAX_ALARMS]
    ]
    rest = f" and {len(alarming) - MAX_ALARMS:,} more" if len(alarming) > MAX_ALARMS else ""
    verb = "loses" if len(alarming) == 1 else "lose"
    words = f"{len(alarming):,} of {counted(len(sources), 'source')} {verb} more than {100 * ALARMING_LOSS:.0f} %"
    return element("div", f"{words}: ", joined(named, ", "), f"{rest}.", class_="panel alarm", id="alarm", role="note")


def survival(sources: Sequence[SourceCount]) -> Html:
    """Show how many documents of each source are kept."""
    largest = set(sorted(sources, key=lambda source: -source.documents)[:MAX_SOURCES])
    rest = [source for source in sources if source not in largest]
    rows = [_source_row(source) for source in sources if source in largest]
    foot: tuple[object, ...] = ()
    if rest:
        together = SourceCount(
            f"{len(rest):,} smaller sources",
            sum(source.documents for source in rest),
            sum(source.removed for source in rest),
        )
        numbers = (f"{number:,}" for number in (together.documents, together.kept, together.removed))
        foot = (together.name, *numbers, bar(together.loss, percent(together.loss)))
    heads = ("source", "documents", "kept", "removed", "lost")
    words = (
        f"Documents kept and removed in {counted(len(sources), 'source')}. "
        f"▲ marks a loss of more than {100 * ALARMING_LOSS:.0f} %."
    )
    return section("Sources", element("p", words), table(heads, rows, foot=foot, name="survival"))


def _source_row(source: SourceCount) -> tuple[Cell, ...]:
    alarming = source.alarming
    loss = element("span", "▲ " if alarming else "", percent(source.loss), class_="alarm" if alarming else None)
    return (
        source_cell(source.name),
        *map(count, (source.documents, source.kept, source.removed)),
        Cell(bar(source.loss, loss, alarming), source.loss, right=False),
    )


def source_table(
    title: str,
    name: str,
    words: str,
    most: str,
    names: Sequence[str],
    order: Array,
    columns: Mapping[str, Array],
    shares: Mapping[str, Array],
) -> Html:
    """Show counts, and shares as bars, of the first sources of an order; `most` says which these are."""
    chosen = order[:MAX_SOURCES].tolist()
    rows = []
    for code in chosen:
        cells = [source_cell(names[code]), *(count(int(values[code])) for values in columns.values())]
        for share in (float(values[code]) for values in shares.values()):
            cells.append(Cell(bar(share, percent(share)), share, right=False))
        rows.append(cells)
    words += f" These are the {len(chosen)} {most}." if len(chosen) < len(names) else ""
    return section(title, element("p", words), table(("source", *columns, *shares), rows, name=name))


# ---- parameters ----


def what_was_run(run: DeduplicationRun, parameters: Mapping[str, object]) -> Html:
    """Show the parameters of the result, and those that were given for the report."""
    name = "planned recall" if run.left_out else "promised recall"
    own = {
        "threshold": f"{run.threshold:g}",
        name: f"{run.promised_recall:.6f} at the threshold{', not kept in large buckets' if run.left_out else ''}",
        "verified by": VERIFIED_BY[run.verify],
        "shingles": repr(run.hasher.shingles),
        "fingerprints": repr(run.hasher),
        "bands": str(run.bands).partition("\n")[0],
    }
    counts = run.result.summary()
    left = {
        "documents without shingles, kept": counts["without_shingles"],
        "missing texts, kept": counts["missing"],
        f"comparisons left out, in buckets of more than {LIMIT:,}": counts["capped"],
    }
    return parameter_table(own, parameters, left)


def checked_values(parameters: object) -> Mapping[str, object]:
    """Return the names and values that a caller adds to the table of parameters, checked."""
    if parameters is not None and not isinstance(parameters, Mapping):
        raise bad_type("parameters", f"must be a dict, got {type(parameters).__name__}")
    return parameters or {}


def parameter_table(own: Mapping[str, str], given: Mapping[str, object], counts: Mapping[str, int]) -> Html:
    """Show the version, the parameters of a result, those that were given for the report, and counts other than 0."""
    values = [
        ("version", f"lsh-dedup {__version__}"),
        *own.items(),
        *((str(name), decoded(value)) for name, value in list(given.items())[:MAX_VALUES]),
        *((name, f"{count:,}") for name, count in counts.items() if count),
    ]
    rows = [
        element(
            "tr",
            element("td", shortened(name, MAX_NAME_LENGTH)),
            element("td", element("bdi", shortened(value, MAX_VALUE_LENGTH))),
        )
        for name, value in values
    ]
    content = element("table", element("tbody", *rows), class_="run", id="run")
    return section("Parameters", element("div", content, class_="scroll"))
