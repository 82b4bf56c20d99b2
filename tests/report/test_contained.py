"""The report of items within texts: its figures are counted again here; test_passages.py shows it in Chromium."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import numpy as np
import pytest
from pages import Page

import lsh
from lsh import report

QUESTION = "how far is <b>the &amp; größer</b> harbour 😀 from the old town, and who built it"
ITEMS = [QUESTION, "which ships of the line are in the harbour on sundays", "too short", "never asked by anyone at all"]
TEXTS = [
    f"Page {i}. {'x ' * i}{QUESTION.upper() if i % 2 else ''} ... {ITEMS[1][: 30 + i] if i % 5 == 0 else ''} end"
    for i in range(40)
]
SOURCES = [f"<site {i % 3}>" for i in range(40)]
FOUND = lsh.find_contained(ITEMS, TEXTS, 0.6)


def whole(page: Page, table: str, column: int) -> list[int]:
    return [int(cell.replace(",", "")) for cell in page.column(table, column)]


def test_figures():
    source = report.contained(FOUND, ITEMS, TEXTS, sources=SOURCES, item_sources=["a", "b", "b", "b"])
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
    marks = [unescape(re.sub("<[^>]*>", "", mark)) for mark in re.findall("<mark>(.*?)</mark>", source, re.DOTALL)]
    common = ["how far is", "the", "harbour 😀 from the old town, and who built it"]
    assert marks == [*common, "How far IS the harbour from the old town, and who built it"]


def test_only_what_is_chosen_is_read():
    choice = report.choose_contained(FOUND)
    assert choice.item_positions == [0, 1, 2]
    texts: dict[int, Any] = {position: TEXTS[position].encode() for position in choice.positions}
    assert len(texts) < len(TEXTS)
    page = report.contained(FOUND, {position: ITEMS[position] for position in (0, 1, 2)}, texts, choice=choice)
    assert page == report.contained(FOUND, lambda: iter(ITEMS), lambda: iter(TEXTS))
    with pytest.raises(TypeError, match="found must be a Contained"):
        report.choose_contained(TEXTS)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="items must have one value for each document"):
        report.contained(FOUND, ITEMS[:2], TEXTS)


@pytest.mark.parametrize("given", [{}, {"min_shared": 2, "max_share": 0.1, "window": float("inf")}], ids=str)
def test_nothing_is_found(given):
    items = [*ITEMS, None]
    found = lsh.find_contained(items, ["", None], missing="empty", **given)
    assert "No text contains an item" in report.contained(found, items, ["", None])
    assert "0 of 0 items" in unescape(re.sub("<[^>]*>", "", report.contained(lsh.find_contained([], []), [], [])))
