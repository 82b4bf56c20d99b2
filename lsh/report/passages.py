"""The report of repeated passages: one page of HTML that needs no other file.

`choose_passages` selects what the page shows, and `passages` writes the page. A kept passage is a run of text in which
all passages lie that are kept in place of others there; the page counts how often, and how much of it, was cut
elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsh.base import checks, errors
from lsh.base.wording import counted, size
from lsh.passages.result import Passages
from lsh.report.choice import checked_sizes, sides
from lsh.report.drawing import checked_values, parameter_table, share_of, source_table, titled
from lsh.report.lookup import EXCERPT_LENGTH, TextLookup, beginning, coded
from lsh.report.page import Cell, Html, count, document, element, joined, section, table
from lsh.report.pairs import decoded_part, in_groups, side_by_side, surrounded
from lsh.text.cuts import encoded
from lsh.typing import Indexed, TextsByPosition, TextStream

MAX_ROWS = 25  # kept passages in a table
SHOWN = 5  # pairs side by side of each kind
MAX_PASSAGE = 700  # characters of a passage that are shown, those in the middle are left out
SEED = 0  # of the random passages

Kept = np.dtype(
    [(name, np.int64) for name in ("old", "document", "start", "end", "times", "bytes", "sample", "longest")]
)


class PassageChoice(NamedTuple):
    """What a report of passages shows; see `choose_passages`.

    Attributes
    ----------
    kept : numpy.ndarray
        The kept passages that are shown, as a structured array: whether the document is an ``old`` one, the
        ``document``, where the passage starts and ends there in bytes, how many ``times`` and how many ``bytes`` of it
        were cut elsewhere, and a ``sample``, the number of a row of `Passages.spans`.
    total : int
        How many kept passages there are.
    frequent, heaviest, longest, random : list of int
        Their numbers, for the parts of the page.
    positions, against_positions : list of int
        The documents whose texts are needed, ascending.
    """

    kept: NDArray[np.void]
    total: int
    frequent: list[int]
    heaviest: list[int]
    longest: list[int]
    random: list[int]
    positions: list[int]
    against_positions: list[int]


def choose_passages(found: Passages) -> PassageChoice:
    """Choose the passages that a report shows: those that are cut most often, those that cut most, and others.

    Parameters
    ----------
    found : Passages
        As `lsh.find_passages` returned it.

    Returns
    -------
    PassageChoice
        Its ``positions`` tell which texts `passages` needs.

    Raises
    ------
    TypeError
        If `found` is something else.

    Examples
    --------
    >>> import lsh
    >>> texts = ["One. This is at the end of every page.", "Two! This is at the end of every page. More."]
    >>> lsh.report.choose_passages(lsh.find_passages(texts, min_bytes=20)).positions
    [0, 1]
    """
    found = checks.instance("found", found, Passages, "a Passages, which lsh.find_passages returns")
    kept = _kept_passages(found)
    frequent = _first(kept, ("times", "bytes"))
    heaviest = _first(kept, ("bytes", "times"))
    longest = _first(kept, ("longest", "times"))
    chosen = np.unique(np.concatenate([frequent, heaviest, longest[:SHOWN]]))
    others = np.setdiff1d(np.arange(len(kept)), np.concatenate([frequent[:SHOWN], heaviest[:SHOWN], longest[:SHOWN]]))
    drawn = np.sort(np.random.RandomState(SEED).permutation(len(others))[:SHOWN])
    chosen = np.union1d(chosen, others[drawn])
    parts = frequent, heaviest, longest[:SHOWN], others[drawn]
    numbers: list[list[int]] = [np.searchsorted(chosen, part).tolist() for part in parts]
    shown = kept[chosen]
    is_old = shown["old"] == 1
    samples = found.spans["document"][shown["sample"]]
    positions = np.union1d(shown["document"][~is_old], samples).tolist()
    old = np.unique(shown["document"][is_old]).tolist()
    return PassageChoice(shown, len(kept), numbers[0], numbers[1], numbers[2], numbers[3], positions, old)


def _kept_passages(found: Passages) -> NDArray[np.void]:
    """Return the runs of kept text that spans refer to: overlapping ones are one run, and a unit is one by itself."""
    spans, count = found.spans, len(found.spans)
    old = sides(spans) == "old"
    order = np.lexsort((spans["kept_start"], spans["kept"], old))
    old, document, start = old[order], spans["kept"][order], spans["kept_start"][order]
    lengths = (spans["end"] - spans["start"])[order]
    begins = spans["start"].copy()  # bytes that two spans of a document share count for the first one
    same = spans["document"][1:] == spans["document"][:-1]
    begins[1:] = np.where(same, np.maximum(begins[1:], spans["end"][:-1]), begins[1:])
    cut = (spans["end"] - begins)[order]
    is_first = np.ones(count, np.bool_)
    is_first[1:] = (document[1:] != document[:-1]) | (old[1:] != old[:-1])
    end = start + lengths
    base = np.cumsum(is_first) * (int(end.max(initial=0)) + 1)  # so that the largest end before is of one document
    last = np.maximum.accumulate(end + base) - base
    if found.parameters["unit"] == "bytes":
        is_first[1:] |= start[1:] >= last[:-1]
    else:
        is_first[1:] |= start[1:] != start[:-1]
    first = np.flatnonzero(is_first)
    kept = np.zeros(len(first), Kept)
    if len(first):
        ends = np.concatenate([first[1:], [count]])
        kept["old"], kept["document"], kept["start"] = old[first], document[first], start[first]
        kept["end"], kept["times"] = np.maximum.reduceat(end, first), ends - first
        kept["bytes"] = np.add.reduceat(cut, first)
        kept["longest"] = np.maximum.reduceat(lengths, first)
        is_longest = lengths == np.repeat(kept["longest"], ends - first)  # the first of these is the sample
        places = np.where(is_longest, np.arange(count), count)
        kept["sample"] = order[np.minimum.reduceat(places, first)]
    return kept


def _first(kept: NDArray[np.void], names: tuple[str, str]) -> NDArray[np.int64]:
    """Return the numbers of the kept passages that have the largest values."""
    return np.lexsort([-kept[name] for name in reversed(names)])[:MAX_ROWS]


class _Run(NamedTuple):
    """The passages that are shown, and their texts."""

    found: Passages
    choice: PassageChoice
    new: TextLookup
    old: TextLookup | None

    def side(self, is_old: bool) -> TextLookup:
        return self.old if is_old and self.old is not None else self.new


def passages(
    found: Passages,
    *,
    texts: TextsByPosition | TextStream,
    choice: PassageChoice | None = None,
    parameters: Mapping[str, object] | None = None,
    ids: TextsByPosition | None = None,
    sizes: Indexed | None = None,
    sources: Indexed | None = None,
    against: TextsByPosition | TextStream | None = None,
    against_ids: TextsByPosition | None = None,
) -> str:
    """Return the report of repeated passages as one page of HTML, well under 2 MB.

    Parameters
    ----------
    found : Passages
        As `lsh.find_passages` returned it.
    texts : sequence of str or bytes, Arrow array, mapping of int to str or bytes, or callable
        The ``n`` documents that were given to it. Only those at ``choice.positions`` are read, and a dict
        ``{position: text}`` needs no others.
    choice : PassageChoice, optional
        What to show, as `choose_passages` returned it for this result.
    parameters : mapping of str to object, optional
        Names and values to add to the table of parameters, such as the names of the files.
    ids : sequence or mapping, optional
        Id of each document. Default: its position.
    sizes : array_like of int, optional
        UTF-8 bytes of each document, for the table of sources.
    sources : sequence, optional
        Source of each document. With it the page has a table of what is cut from each source.
    against, against_ids : optional
        The old documents and their ids, as `texts` and `ids`. Required if the result names old documents.

    Returns
    -------
    str
        The page, to be written as UTF-8. It makes no requests, and markup in texts, ids and sources is escaped.

    Raises
    ------
    TypeError, ValueError
        If a parameter has a wrong type or length, or old documents are missing.

    Examples
    --------
    >>> import lsh
    >>> texts = ["One. This is at the end of every page.", "Two! This is at the end of every page. More."]
    >>> page = lsh.report.passages(lsh.find_passages(texts, min_bytes=20), texts=texts)
    >>> "cut from 1 of 2 documents" in page
    True
    """
    chosen = choose_passages(found) if choice is None else choice
    checks.instance("found", found, Passages, "a Passages, which lsh.find_passages returns")
    choice = checks.instance("choice", chosen, PassageChoice, "what lsh.report.choose_passages returns")
    number = found.summary()["documents"]
    if choice.against_positions and against is None:
        reason = "must be given, because the result names old documents; pass the one of find_passages"
        raise errors.bad_value("against", reason)
    values = checked_values(parameters)
    new = TextLookup("texts", texts, "ids", ids, number)
    old = None if against is None else TextLookup("against", against, "against_ids", against_ids, None)
    new.read(choice.positions)
    if old is not None:
        old.read(choice.against_positions)
    run = _Run(found, choice, new, old)
    lengths = None if sizes is None else checked_sizes(sizes, number)
    parts = [
        _header(found, choice.total),
        _kept_table(run, "Cut most often", choice.frequent, "often"),
        _kept_table(run, "Most bytes cut", choice.heaviest, "most"),
        _side_by_side(run),
        Html() if sources is None else _by_source(found, sources, lengths),
        _parameter_table(found, values),
    ]
    return document("Report of passages", joined(parts))


def _header(found: Passages, num_kept: int) -> Html:
    """Show what the run cut, and its figures."""
    counts, given = found.summary(), found.parameters
    unit = {"bytes": "passages", "line": "lines", "paragraph": "paragraphs"}[given["unit"]]
    old = f", also compared with {counted(counts['old'], 'old document')}" if counts["old"] else ""
    lengths = found.spans["end"] - found.spans["start"]
    cut, num_old = counts["cut_documents"], np.count_nonzero(sides(found.spans) == "old")
    tiles = (
        ("Passages cut", f"{counts['spans']:,}", f"of {given['min_bytes']:,} bytes or more"),
        ("Text cut", size(counts["cut_bytes"]), share_of(counts["cut_bytes"], counts["bytes"], size)),
        ("Documents shortened", f"{cut:,}", share_of(cut, counts["documents"])),
        ("Documents emptied", f"{counts['emptied']:,}", "nothing of them is left"),
        ("Kept passages", f"{num_kept:,}", "in place of those that are cut"),
        ("Median length", f"{int(np.median(lengths)) if len(lengths) else 0:,}", "bytes of a passage that is cut"),
        ("Longest", f"{int(lengths.max(initial=0)):,}", "bytes"),
        *([("For old documents", f"{num_old:,}", f"of {counts['old']:,} old documents")] if counts["old"] else []),
    )
    accent = element("span", counted(counts["spans"], "passage"), class_="accent")
    words = f" cut from {cut:,} of {counted(counts['documents'], 'document')}"
    about = "Of several equal passages one is kept. Lengths and positions are bytes of the texts as UTF-8."
    return titled(f"Repeated {unit}{old}", accent, words, tiles, about)


# ---- kept passages ----


def _kept_table(run: _Run, title: str, numbers: Iterable[int], name: str) -> Html:
    """Show kept passages, how often and how much of them was cut elsewhere."""
    rows = [_kept_row(run, run.choice.kept[number]) for number in numbers]
    if not rows:
        return section(title, element("p", "No passage is repeated.")) if name == "often" else Html()
    words = f"{counted(run.choice.total, 'passage')} kept in place of others. "
    words += "Where kept passages of one document overlap, they are one row. Bytes of a document that were cut for two "
    words += "kept passages count for one of them."
    if len(rows) < run.choice.total:
        words += f" These are the first {len(rows)}."
    heads = ("times cut", "bytes cut", "bytes kept", "kept in", "start of the passage")
    return section(title, element("p", words), table(heads, rows, name=name))


def _kept_row(run: _Run, kept: Any) -> tuple[Cell, ...]:
    lookup = run.side(bool(kept["old"]))
    document = int(kept["document"])
    data = encoded(lookup.text(document))[int(kept["start"]) : int(kept["end"])]
    excerpt = beginning(decoded_part(data[: 8 * EXCERPT_LENGTH]))
    place = joined([lookup.shown_id(document), " old" if kept["old"] else ""])
    return (
        *(count(int(value)) for value in (kept["times"], kept["bytes"], kept["end"] - kept["start"])),
        Cell(place),
        Cell(excerpt),
    )


# ---- side by side ----


def _side_by_side(run: _Run) -> Html:
    """Show passages that were cut beside the kept ones, with their surroundings."""
    choice = run.choice
    groups, seen = dict[str, tuple[str, list[Html]]](), set[int]()
    for name, title, numbers in (
        ("often", "Cut most often", choice.frequent),
        ("most", "Most bytes cut", choice.heaviest),
        ("longest", "Longest", choice.longest),
        ("random", "Others, drawn at random", choice.random),
    ):
        new = [number for number in numbers if number not in seen][:SHOWN]
        seen.update(new)
        groups[title] = name, [_pair(run, choice.kept[number]) for number in new]
    words = (
        "The kept passage on the left, one that was cut for it on the right, both marked, with the text around them."
    )
    return in_groups(words, groups)


def _pair(run: _Run, kept: Any) -> Html:
    row = run.found.spans[kept["sample"]]
    length = int(row["end"] - row["start"])
    is_old, start = bool(kept["old"]), int(row["kept_start"])
    left = run.side(is_old)
    kept_words, cut_words = (
        _around(encoded(lookup.text(document)), begin, begin + length)
        for lookup, document, begin in (
            (left, int(row["kept"]), start),
            (run.new, int(row["document"]), int(row["start"])),
        )
    )
    sides = (
        (left.shown_id(int(row["kept"])), " old, kept" if is_old else " kept", start, kept_words),
        (run.new.shown_id(int(row["document"])), " cut", int(row["start"]), cut_words),
    )
    columns = [
        (element("span", name, f"{what}, from byte {begin:,}", class_="who"), words)
        for name, what, begin, words in sides
    ]
    about = element(
        "span",
        element("b", f"{length:,}"),
        " bytes, one of ",
        element("b", counted(int(kept["times"]), "passage")),
        f" that were cut for bytes {int(kept['start']):,} to {int(kept['end']):,}",
    )
    return side_by_side(about, columns)


def _around(data: bytes, start: int, end: int) -> Html:
    """Return a passage, marked, with the text around it."""
    passage = decoded_part(data[start:end])
    parts: list[object] = [element("mark", passage)]
    if len(passage) > MAX_PASSAGE:
        half = MAX_PASSAGE // 2
        note = f" … {counted(len(passage) - 2 * half, 'character')} more … "
        parts = [
            element("mark", passage[:half]),
            element("span", note, class_="note"),
            element("mark", passage[-half:]),
        ]
    return surrounded(data, start, end, joined(parts))


# ---- sources and parameters ----


def _by_source(found: Passages, sources: Indexed, sizes: NDArray[np.int64] | None) -> Html:
    """Show what is cut from each source."""
    names, codes = coded("sources", sources, found.summary()["documents"])
    cuts, total = found.cuts, len(names)
    documents = np.bincount(codes, minlength=total)
    owners = codes[cuts["document"]]
    cut = np.bincount(owners, weights=(cuts["end"] - cuts["start"]).astype(float), minlength=total)
    shortened_documents = np.bincount(codes[np.unique(cuts["document"])], minlength=total)
    emptied = np.bincount(codes[found.emptied], minlength=total)
    whole = None if sizes is None else np.bincount(codes, weights=sizes.astype(float), minlength=total)
    columns = {"documents": documents, "shortened": shortened_documents, "emptied": emptied, "bytes cut": cut}
    shares = {} if whole is None else {"share of its text": cut / np.maximum(whole, 1)}
    order, words = np.lexsort((-documents, -cut)), f"What is cut from {counted(total, 'source')}."
    return source_table("Sources", "sources", words, "from which most is cut", names, order, columns, shares)


def _parameter_table(found: Passages, parameters: Mapping[str, object]) -> Html:
    """Show the parameters of the result, and those that were given for the report."""
    given = found.parameters
    own = {"minimum length": f"{given['min_bytes']:,} bytes", "unit": given["unit"]}
    own |= {} if given["shingles"] is None else {"normalised by": repr(given["shingles"])}
    return parameter_table(own, parameters, {"missing texts": found.summary()["missing"]})
