"""The reports of repeated passages and of items within texts: figures counted again, and pages in Chromium."""

import random
import re
import time
from html import unescape
from typing import Any

import numpy as np
import pytest
from pages import Page, dumped

import lsh
from lsh import report
from lsh.passages.result import Passages

NOTE = "This notice <b>&amp; 'more'</b> größer 😀 is at the end of every page of the site, in all of its parts. "
NOTE += "It ends with a sentence that is long enough to be a passage of its own, as this one is. "
TEXTS = [
    f"Page {i * 7919}, {'x' * i}. {NOTE if i % 2 else ''}{NOTE[:60] if i % 5 == 0 else ''}end {i}" for i in range(40)
]
SOURCES = [f"<site {i % 3}>" for i in range(40)]


def whole(page: Page, table: str, column: int) -> list[int]:
    return [int(cell.replace(",", "")) for cell in page.column(table, column)]


def marks_of(source: str) -> list[str]:
    return [unescape(re.sub("<[^>]*>", "", mark)) for mark in re.findall("<mark>(.*?)</mark>", source, re.DOTALL)]


def page_of(texts: list[str], found: Passages, **options: object) -> str:
    return report.passages(found, texts=texts, **options)  # type: ignore[arg-type]


def test_figures():
    found = lsh.find_passages(TEXTS, 50)
    page = Page(page_of(TEXTS, found, sources=SOURCES, sizes=[len(text.encode()) for text in TEXTS]))
    counts = found.summary()
    figures = [f"{counts['spans']:,}", f"{counts['cut_documents']:,}", f"{counts['emptied']:,}"]
    assert [page.figures[name][0] for name in ("Passages cut", "Documents shortened", "Documents emptied")] == figures
    times = whole(page, "often", 0)
    assert sum(times) == len(found)
    assert times == sorted(times, reverse=True)
    assert sum(whole(page, "most", 1)) == counts["cut_bytes"]
    cut = dict.fromkeys(SOURCES, 0)
    for one in found.cuts:
        cut[SOURCES[one["document"]]] += int(one["end"] - one["start"])
    assert {row[0]: int(row[4].replace(",", "")) for row in page.rows["sources"][1:]} == cut


def test_both_sides_are_marked():
    found = lsh.find_passages(TEXTS, 50)
    source = page_of(TEXTS, found)
    assert "<b>&amp;" not in source.replace("<b>1", "")
    marks = marks_of(source)
    assert len(marks) == 2 * source.count('class="pair"')
    assert marks[::2] == marks[1::2]
    assert any(NOTE[70:].strip() in mark for mark in marks)


def test_only_the_texts_of_the_choice_are_read():
    found = lsh.find_passages(TEXTS, 50, against=[NOTE + "old"])
    choice = report.choose_passages(found)
    assert (choice.against_positions, len(choice.positions) < len(TEXTS)) == ([0], True)
    texts = {position: TEXTS[position] for position in choice.positions}
    page = page_of(texts, found, choice=choice, against={0: NOTE + "old"})  # type: ignore[arg-type]
    assert "also compared with 1 old document" in page
    with pytest.raises(ValueError, match="against must be given"):
        page_of(TEXTS, found)
    with pytest.raises(TypeError, match="found must be a Passages"):
        report.choose_passages(TEXTS)  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", ["bytes", "line", "paragraph"])
def test_nothing_and_units(unit):
    assert "No passage is repeated" in page_of([], lsh.find_passages([], 50, unit=unit))
    texts: list[object] = ["One line here\n\nAnother line here", b"ONE line here\n\nanother \xff line", None]
    shingles = None if unit == "bytes" else lsh.Shingles(lowercase=True)
    found = lsh.find_passages(texts, 8, unit=unit, shingles=shingles, missing="empty")
    assert f"{len(found)} passage" in page_of(texts, found).replace("</span>", "")


def test_many_spans():
    """Overlapping kept runs are one kept passage; many spans take little time, and the page is small."""
    draw = np.random.RandomState(0)
    found = lsh.find_passages(TEXTS, 50)
    spans = np.zeros(200_000, found.spans.dtype)
    spans["document"] = np.sort(draw.randint(1, 40, len(spans)))
    spans["kept_start"], lengths = draw.randint(0, 2 * 10**8, len(spans)), draw.randint(50, 90, len(spans))
    spans["end"] = lengths
    many = Passages(spans, found.emptied, len(TEXTS), found.summary(), found.parameters)
    started = time.process_time()
    choice = report.choose_passages(many)
    source = page_of(TEXTS, many, choice=choice)
    assert time.process_time() - started < 5
    assert len(source) < 2_000_000
    starts = np.sort(spans["kept_start"])
    order = np.argsort(spans["kept_start"], kind="stable")
    ends = np.maximum.accumulate(spans["kept_start"][order] + lengths[order])
    assert choice.total == 1 + int((starts[1:] >= ends[:-1]).sum())


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["passages", "contained"])
def test_a_browser_shows_it(tmp_path, width, scheme, kind):
    """Nothing is wider than the window, and the colours of the scheme are used."""
    draw = random.Random(0)
    texts = [*TEXTS, *("".join(draw.choices("abc", k=3000)) * 2 for _ in range(3))]
    sources = ["a/very-long-name" * 5] * len(texts)
    source = page_of(texts, lsh.find_passages(texts, 50), sources=sources)
    if kind == "contained":
        items = [NOTE, "x" * 900, *texts[:9]]
        names = [f"{'a/long-file-name' * 5}{i % 2}" for i in range(11)]
        found = lsh.find_contained(items, texts, 0.5)
        source = report.contained(found, items, texts, item_ids=names, item_sources=names, sources=sources)
    script = "document.title = [document.documentElement.scrollWidth, getComputedStyle(document.body).backgroundColor]"
    frame = f'<iframe id="f" src="page.html" style="width:{width}px; height:900px; border:0"></iframe>'
    copy = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", source).replace(
        "</body>", f"<script>{script}; parent.postMessage(document.title, '*')</script></body>"
    )
    listen = "onmessage = event => { document.title = event.data }"
    (tmp_path / "page.html").write_text(copy)
    (tmp_path / "frame.html").write_text(f"<!doctype html><title>none</title><script>{listen}</script>{frame}")
    options = ["--virtual-time-budget=5000", "--window-size=1400,1000", "--allow-file-access-from-files"]
    options += [f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}"]
    shown = dumped(tmp_path, "frame.html", *options)
    title = re.search("<title>(.*?)</title>", shown)
    assert title is not None
    found_width, colour = title[1].split(",", 1)
    assert int(found_width) <= width
    assert colour == {"light": "rgb(251, 250, 248)", "dark": "rgb(22, 24, 28)"}[scheme]


QUESTION = "how far is <b>the &amp; größer</b> harbour 😀 from the old town, and who built it"
ITEMS = [QUESTION, "which ships of the line are in the harbour on sundays", "too short", "never asked by anyone at all"]
ASKED = [
    f"Page {i}. {'x ' * i}{QUESTION.upper() if i % 2 else ''} ... {ITEMS[1][: 30 + i] if i % 5 == 0 else ''} end"
    for i in range(40)
]
FOUND = lsh.find_contained(ITEMS, ASKED, 0.6)


def test_figures_of_items():
    source = report.contained(FOUND, ITEMS, ASKED, sources=SOURCES, item_sources=["a", "b", "b", "b"])
    assert "<b>the" not in source
    page, counts, hits = Page(source), FOUND.summary(), FOUND.hits
    for tile, name in (("Items found", "found_items"), ("Texts with items", "found_texts"), ("Hits", "hits")):
        assert page.figures[tile][0] == f"{counts[name]:,}"
    assert counts["found_items"] == 2
    assert whole(page, "often", 0) == sorted(np.bincount(hits["item"], minlength=2).tolist(), reverse=True)
    assert sum(whole(page, "most", 0)) <= len(hits)
    for row in page.rows["thresholds"][2:]:
        own = hits[hits["containment"] >= float(row[0]) - 1e-9]
        assert row[1:4] == [str(len(own)), str(len(np.unique(own["item"]))), str(len(np.unique(own["text"])))]
    with_hits = {name: len({t for t in hits["text"].tolist() if SOURCES[t] == name}) for name in SOURCES}
    assert {row[0]: int(row[3]) for row in page.rows["texts-sources"][1:]} == with_hits
    assert sorted(row[:5] for row in page.rows["items-sources"][1:]) == [
        ["a", "1", "0", str((hits["item"] == 0).sum()), "1"],
        ["b", "3", "1", str((hits["item"] == 1).sum()), "1"],
    ]
    assert page.rows["skipped"][1] == ["2 in b", "shorter than a shingle of 3 words", "too short"]


def test_words_that_both_have_are_marked():
    text = f"{'é ' * 200}How far IS the harbour from the old town, and who built it?"
    source = report.contained(lsh.find_contained([QUESTION], [text], 0.3), [QUESTION], {0: text})
    common = ["how far is", "the", "harbour 😀 from the old town, and who built it"]
    assert marks_of(source) == [*common, "How far IS the harbour from the old town, and who built it"]


def test_only_the_texts_and_items_of_the_choice_are_read():
    choice = report.choose_contained(FOUND)
    assert choice.item_positions == [0, 1, 2]
    texts: dict[int, Any] = {position: ASKED[position].encode() for position in choice.positions}
    assert len(texts) < len(ASKED)
    page = report.contained(FOUND, {position: ITEMS[position] for position in (0, 1, 2)}, texts, choice=choice)
    assert page == report.contained(FOUND, lambda: iter(ITEMS), lambda: iter(ASKED))
    with pytest.raises(TypeError, match="found must be a Contained"):
        report.choose_contained(ASKED)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="items must have one value for each item"):
        report.contained(FOUND, ITEMS[:2], ASKED)


@pytest.mark.parametrize("given", [{}, {"min_shared": 2, "max_share": 0.1, "window": float("inf")}], ids=str)
def test_no_item_is_found(given):
    items = [*ITEMS, None]
    found = lsh.find_contained(items, ["", None], missing="empty", **given)
    assert "No text contains an item" in report.contained(found, items, ["", None])
    assert "0 of 0 items" in unescape(re.sub("<[^>]*>", "", report.contained(lsh.find_contained([], []), [], [])))
