"""The report of items within texts: one page of HTML that needs no other file.

`choose_contained` selects what the page shows, and `contained` writes the page. Of the pairs of an item and a text that
contains it, it shows those with the lowest containment, by which a threshold can be judged, and others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsh.base import checks
from lsh.base.wording import counted, size
from lsh.passages.contained_result import Contained
from lsh.passages.reasons import in_words
from lsh.report.drawing import Tile, checked_values, parameter_table, percent, share_of, source_table, titled
from lsh.report.lookup import MAX_NAME_LENGTH, TextLookup, beginning, coded, decoded, shortened
from lsh.report.page import Cell, Html, count, document, element, joined, section, table
from lsh.report.pairs import common_marked, decoded_part, in_groups, side_by_side, surrounded
from lsh.text.cuts import encoded
from lsh.typing import Indexed, TextsByPosition, TextStream

MAX_ROWS = 25  # of a table
SHOWN = 5  # pairs side by side of each kind
STEP = 0.05  # between the containments that are counted
ROUNDING = 1e-9  # of a step
SEED = 0  # of the random pairs

Hits = NDArray[np.void]
Positions = NDArray[np.int64]


class ContainedChoice(NamedTuple):
    """What a report of items within texts shows; see `choose_contained`.

    Attributes
    ----------
    items, texts : list of int
        The items that most texts contain, and the texts that contain most items.
    lowest, highest, random : list of int
        Numbers of rows of `Contained.hits`, for the pairs side by side: each item once.
    skipped : list of int
        Numbers of rows of `Contained.skipped`.
    item_positions, positions : list of int
        The items and the texts that are needed, ascending.
    """

    items: list[int]
    texts: list[int]
    lowest: list[int]
    highest: list[int]
    random: list[int]
    skipped: list[int]
    item_positions: list[int]
    positions: list[int]


def choose_contained(found: Contained) -> ContainedChoice:
    """Choose what a report shows: pairs of low, high and any containment, and what has most of them.

    Parameters
    ----------
    found : Contained
        As `lsh.find_contained` returned it.

    Returns
    -------
    ContainedChoice
        Its ``item_positions`` and ``positions`` tell which items and texts `contained` needs.

    Raises
    ------
    TypeError
        If `found` is something else.

    Examples
    --------
    >>> import lsh
    >>> found = lsh.find_contained(["how far is the harbour"], ["Quiz", "1. How far is the harbour?"])
    >>> lsh.report.choose_contained(found).positions
    [1]
    """
    found = checks.instance("found", found, Contained, "a Contained, which lsh.find_contained returns")
    hits = found.hits
    items, texts = _most(hits["item"]), _most(hits["text"])
    lowest = _each_once(hits, np.lexsort([hits["item"], hits["containment"]]))
    highest = _each_once(hits, np.lexsort([hits["item"], -hits["containment"]]), lowest)
    drawn = np.random.RandomState(SEED).permutation(len(hits))
    others = _each_once(hits, drawn, [*lowest, *highest])
    chosen = hits[[*lowest, *highest, *others]]
    skipped = list(range(min(len(found.skipped), MAX_ROWS)))
    item_positions = {*items, *chosen["item"].tolist(), *found.skipped["item"][skipped].tolist()}
    positions = {*texts, *chosen["text"].tolist()}
    return ContainedChoice(items, texts, lowest, highest, others, skipped, sorted(item_positions), sorted(positions))


def _most(positions: Positions) -> list[int]:
    """Return the positions that are there most often, of equally many the first."""
    distinct, times = np.unique(positions, return_counts=True)
    return [int(one) for one in distinct[np.argsort(-times, kind="stable")[:MAX_ROWS]]]


def _each_once(hits: Hits, order: Positions, before: Sequence[int] = ()) -> list[int]:
    """Return the first hits in an order, each item once, and none of those before."""
    _, first = np.unique(hits["item"][order], return_index=True)
    items = set(hits["item"][list(before)].tolist())
    numbers = (int(number) for number in order[np.sort(first)])
    return [number for number in numbers if int(hits["item"][number]) not in items][:SHOWN]


class _Run(NamedTuple):
    """What was found, what of it is shown, and the texts."""

    found: Contained
    choice: ContainedChoice
    items: TextLookup
    texts: TextLookup
    files: Indexed | None  # of the items

    def item(self, position: int) -> Html:
        """Return the name of an item."""
        file = "" if self.files is None else f" in {shortened(decoded(self.files[position]), MAX_NAME_LENGTH)}"
        return joined([self.items.shown_id(position), file])


def contained(
    found: Contained,
    items: TextsByPosition | TextStream,
    texts: TextsByPosition | TextStream,
    *,
    choice: ContainedChoice | None = None,
    parameters: Mapping[str, object] | None = None,
    item_ids: TextsByPosition | None = None,
    ids: TextsByPosition | None = None,
    item_sources: Indexed | None = None,
    sources: Indexed | None = None,
) -> str:
    """Return the report of items within texts as one page of HTML, well under 2 MB.

    Parameters
    ----------
    found : Contained
        As `lsh.find_contained` returned it.
    items, texts : sequence of str or bytes, Arrow array, mapping of int to str or bytes, or callable
        Those that were given to it. Only the items at ``choice.item_positions`` and the texts at ``choice.positions``
        are read, and a dict ``{position: text}`` needs no others.
    choice : ContainedChoice, optional
        What to show, as `choose_contained` returned it for this result.
    parameters : mapping of str to object, optional
        Names and values to add to the table of parameters, such as the names of the files.
    item_ids, ids : sequence or mapping, optional
        Ids of the items and of the texts. Default: their positions.
    item_sources : sequence, optional
        Source of each item, such as its file. With it the page has a table of what is found of each source.
    sources : sequence, optional
        Source of each text. With it the page has a table of the texts of each source that contain items.

    Returns
    -------
    str
        The page, to be written as UTF-8. It makes no requests, and markup in texts, ids and sources is escaped.

    Raises
    ------
    TypeError, ValueError
        If a parameter has a wrong type or length.

    Examples
    --------
    >>> import lsh
    >>> items, texts = ["how far is the harbour"], ["Quiz", "1. How far is the harbour?"]
    >>> page = lsh.report.contained(lsh.find_contained(items, texts), items, texts)
    >>> "in 1 of 2 texts" in page
    True
    """
    chosen = choose_contained(found) if choice is None else choice
    checks.instance("found", found, Contained, "a Contained, which lsh.find_contained returns")
    choice = checks.instance("choice", chosen, ContainedChoice, "what lsh.report.choose_contained returns")
    counts, given = found.summary(), checked_values(parameters)
    own = TextLookup("items", items, "item_ids", item_ids, counts["items"])
    others = TextLookup("texts", texts, "ids", ids, counts["texts"])
    own.read(choice.item_positions)
    others.read(choice.positions)
    run = _Run(found, choice, own, others, item_sources)
    parts = [
        _header(found),
        _side_by_side(run),
        _at_thresholds(found),
        _most_table(run, "Items most often found", "item", "text", "often"),
        _most_table(run, "Texts with most items", "text", "item", "most"),
        _by_source(found, "item_sources", item_sources, "item"),
        _by_source(found, "sources", sources, "text"),
        _skipped_table(run),
        _parameter_table(found, given),
    ]
    return document("Report of items within texts", joined(parts))


def _header(found: Contained) -> Html:
    """Show what was found, and figures."""
    counts, given, shares = found.summary(), found.parameters, found.hits["containment"]
    whole = len(np.unique(found.hits["item"][shares == 1.0]))
    items, texts, total = max(counts["items"], 1), max(counts["texts"], 1), max(counts["bytes"], 1)
    tiles: tuple[Tile, ...] = (
        ("Items found", f"{counts['found_items']:,}", share_of(counts["found_items"], items)),
        ("Found whole", f"{whole:,}", "with all of their shingles"),
        ("Items not looked for", f"{counts['skipped']:,}", "too short, or too common"),
        ("Hits", f"{counts['hits']:,}", "pairs of an item and a text"),
        ("Texts with items", f"{counts['found_texts']:,}", share_of(counts["found_texts"], texts)),
        ("Size of these", size(counts["found_bytes"]), share_of(counts["found_bytes"], total, size)),
        ("Size of the windows", size(counts["window_bytes"]), f"{percent(counts['window_bytes'] / total)} of the text"),
        ("Median containment", f"{np.median(shares) if len(shares) else 0:.3f}", "of a hit"),
    )
    accent = element("span", f"{counts['found_items']:,} of {counted(counts['items'], 'item')}", class_="accent")
    words = f" found in {counts['found_texts']:,} of {counted(counts['texts'], 'text')}"
    about = (
        "The containment of an item is the share of its shingles that a window of the text has. Texts with items are "
    )
    about += "what would be left out, and windows what would be cut. Positions are bytes of the texts as UTF-8."
    return titled(f"Items within texts, by {_least(given)}", accent, words, tiles, about)


def _least(given: Mapping[str, Any]) -> str:
    """Return what a window needs, in words."""
    if given["min_shared"] is not None:
        return f"{counted(given['min_shared'], 'shared shingle')} or more"
    return f"a containment of {given['threshold']:g} or more"


# ---- side by side ----


def _side_by_side(run: _Run) -> Html:
    """Show items beside the texts that contain them."""
    groups = {
        title: (name, [_pair(run, run.found.hits[number]) for number in numbers])
        for name, title, numbers in (
            ("lowest", "Lowest containment", run.choice.lowest),
            ("highest", "Highest containment", run.choice.highest),
            ("random", "Others, drawn at random", run.choice.random),
        )
    }
    words = "The item on the left, the window of a text that contains it on the right, with the text around it. Words "
    words += "are marked that both have in the same order. Each item is shown once."
    shown = in_groups(words, groups)
    return shown or section("Side by side", element("p", "No text contains an item."))


def _pair(run: _Run, hit: Any) -> Html:
    item, text, start, end = (int(hit[name]) for name in ("item", "text", "start", "end"))
    data, share, shared = encoded(run.texts.text(text)), float(hit["containment"]), int(hit["shared"])
    left, right = common_marked(run.items.readable(item), decoded_part(data[start:end]))
    about = element(
        "span",
        "containment ",
        element("b", f"{share:.4f}"),
        f", {shared:,} of {counted(round(shared / share), 'shingle')}",
    )
    return side_by_side(
        about,
        [
            (element("span", run.item(item), class_="who"), left),
            (
                element("span", run.texts.shown_id(text), f" bytes {start:,} to {end:,}", class_="who"),
                surrounded(data, start, end, right),
            ),
        ],
    )


# ---- tables ----


def _at_thresholds(found: Contained) -> Html:
    """Show how much is found at higher thresholds."""
    hits, counts = found.hits, found.summary()
    if not len(hits):
        return Html()
    lowest = float(hits["containment"].min())
    steps = [step * STEP for step in range(1, round(1 / STEP) + 1)]
    rows = []
    for least in [lowest, *(step for step in steps if step > lowest + ROUNDING)]:
        own = hits[hits["containment"] >= least - ROUNDING]
        texts = len(np.unique(own["text"]))
        share = texts / counts["texts"]
        cells = [Cell(f"{least:.4f}" if least == lowest else f"{least:.2f}", least)]
        cells += [count(number) for number in (len(own), len(np.unique(own["item"])), texts)]
        rows.append([*cells, Cell(percent(share), share)])
    words = "What is found at this containment and above. The first row is the lowest containment of this run."
    heads = ("containment", "hits", "items", "texts", "share of the texts")
    return section("Higher thresholds", element("p", words), table(heads, rows, name="thresholds"))


def _share(containment: float) -> Cell:
    return Cell(f"{containment:.3f}", float(containment))


def _most_table(run: _Run, title: str, what: str, other: str, name: str) -> Html:
    """Show the items that most texts contain, or the texts that contain most items."""
    is_item = what == "item"
    positions, lookup = (run.choice.items, run.items) if is_item else (run.choice.texts, run.texts)
    rows = []
    for position in positions:
        own = run.found.hits["containment"][run.found.hits[what] == position]
        text = beginning(lookup.readable(position))
        shown = run.item(position) if is_item else lookup.shown_id(position)
        rows.append((count(len(own)), _share(own.max()), _share(own.min()), Cell(shown), Cell(text)))
    if not rows:
        return Html()
    total = run.found.summary()[f"found_{what}s"]
    words = f"{counted(total, what)} with a hit, with the highest and the lowest containment."
    words += f" These are the first {len(rows)}." if len(rows) < total else ""
    heads = (f"{other}s", "highest", "lowest", what, f"start of the {what}")
    return section(title, element("p", words), table(heads, rows, name=name))


def _by_source(found: Contained, name: str, sources: Indexed | None, what: str) -> Html:
    """Show for each source how many of its items or texts have hits; `name` is that of the parameter."""
    if sources is None:
        return Html()
    names, codes = coded(name, sources, found.summary()[f"{what}s"])
    hits, total = found.hits[what], len(names)
    whole, with_hits, all_hits, skipped = (
        np.bincount(one, minlength=total)
        for one in (codes, codes[np.unique(hits)], codes[hits], codes[found.skipped["item"] if what == "item" else []])
    )
    columns = {f"{what}s": whole, **({"not looked for": skipped} if what == "item" else {})}
    columns |= {"hits": all_hits, "with a hit": with_hits}
    order = np.lexsort((-whole, -with_hits))
    words = f"How many {what}s of {counted(total, 'source')} have a hit."
    shares = {"share with a hit": with_hits / whole}
    title, most = f"Sources of the {what}s", "with most of them"
    return source_table(title, f"{what}s-sources", words, most, names, order, columns, shares)


def _skipped_table(run: _Run) -> Html:
    """Show items that were not looked for, and why."""
    skipped, words = run.found.skipped, in_words(run.found.parameters)
    if not len(skipped):
        return Html()
    reasons, times = np.unique(skipped["reason"], return_counts=True)
    listed = ", ".join(f"{number:,} {words[reason]}" for reason, number in zip(reasons.tolist(), times.tolist()))
    rows = []
    for position, reason in skipped[run.choice.skipped].tolist():
        text = beginning(run.items.readable(position))
        rows.append((Cell(run.item(position)), Cell(words[reason]), Cell(text)))
    more = f" These are the first {len(rows)}." if len(rows) < len(skipped) else ""
    about = element("p", f"{counted(len(skipped), 'item')}: {listed}.{more}")
    return section("Items not looked for", about, table(("item", "reason", "start of the item"), rows, name="skipped"))


def _parameter_table(found: Contained, parameters: Mapping[str, object]) -> Html:
    """Show the parameters of the result, and those that were given for the report."""
    given, counts = found.parameters, found.summary()
    own = {
        "a text contains an item with": _least(given),
        "longest window": f"{given['window']:g} times the length of the item",
        "shingles": repr(given["shingles"]),
    }
    if given["max_share"] is not None:
        own["shingles that count"] = f"those of at most {100 * given['max_share']:g} % of the texts"
        own["shingles that do not"] = f"{counts['common']:,}"
    return parameter_table(own, parameters, {"missing texts": counts["missing"]})
