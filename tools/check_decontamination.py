#!/usr/bin/env python3
"""Check that the recipes of docs/decontamination.md find the test texts that were put into longer documents.

`python tools/check_decontamination.py`; `tests/test_docs.py` runs the examples of the page.
"""

from __future__ import annotations

import doctest
import gzip
import random
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import checks

import lsh

PAGE = (checks.ROOT / "docs" / "decontamination.md").read_text(encoding="utf-8")
RECIPE: dict[str, Any] = {}  # what the page imports and defines
for example in doctest.DocTestParser().get_examples(PAGE):
    if example.source.startswith(("import ", "def ", "WORDS", "PHRASES")):
        exec(example.source, RECIPE)


def check_windows_cover_a_text() -> None:
    """All words are in a window, and each window has the size, if the text is as long as that."""
    for count in (0, 1, 7, 8, 9, 10, 31, 32, 33, 500):
        words = [str(number) for number in range(count)]
        for size in (8, 32):
            cut = [window.split() for window in RECIPE["windows"](" ".join(words), size)]
            assert {word for window in cut for word in window} == set(words)
            assert all(len(window) == min(size, count) for window in cut)


def check_an_unchanged_copy_has_a_similar_window() -> None:
    """The bound of the page, 0.65, for a text of any length at any position of a document."""
    for length in (*range(8, 65), 90, 91, 128, 181, 182):
        size = RECIPE["size_of"](" ".join(["word"] * length))
        copied = " ".join(f"c{number}" for number in range(length))
        for before in range(size):
            document = " ".join([*(f"b{i}" for i in range(before)), copied, *(f"a{i}" for i in range(2 * size))])
            cut = RECIPE["windows"](document, size)
            assert lsh.jaccard_matrix(cut, [copied], shingles=RECIPE["WORDS"]).max() >= 0.65, (length, before)


def changed(words: list[str], every: int) -> list[str]:
    """Replace each `every`-th word, the first of them in the middle between two."""
    return [f"{word}x" if number % every == every // 2 else word for number, word in enumerate(words)]


def planted(texts: list[str], edit: Callable[[list[str]], list[str]], pages: int = 2000) -> tuple[list[str], list[str]]:
    """Return pages of four news texts, and 300 test texts of 12 to 200 words; page i has test text i."""
    draw = random.Random(0)
    test = [text for text in texts[:3000] if 12 <= len(text.split()) <= 200][:300]
    train = []
    for number in range(pages):
        parts = draw.sample(texts[8000:14000], 4)
        words = parts[1].split()
        cut = draw.randrange(len(words) + 1)
        if number < len(test):
            words[cut:cut] = edit(test[number].split())
        train.append(" ".join([parts[0], *words, parts[2], parts[3]]))
    return train, test


EDITS = {
    "an unchanged copy": lambda words: words,
    "every twentieth word changed": lambda words: changed(words, 20),
    "every tenth word changed": lambda words: changed(words, 10),
}


def check_the_table_of_the_page() -> None:
    lines = gzip.decompress((checks.data_folder() / "reuters21578.tsv.gz").read_bytes()).decode().split("\n")[:-1]
    texts = [line.split("\t")[1] for line in lines]
    put = {(number, number) for number in range(300)}
    for name, edit in EDITS.items():
        train, test = planted(texts, edit)
        ways = [set(RECIPE["contained"](train, test, threshold)) for threshold in (0.5, 0.4, 0.3)]
        ways.append(pairs_with_shared_phrases(RECIPE["PHRASES"], train, test))
        ways.append({(i, j) for i, j, _ in lsh.find_pairs(train, 0.5, others=test, shingles=RECIPE["WORDS"])})
        (row,) = [line for line in PAGE.splitlines() if line.startswith("| ") and name in line]
        assert row.split("|")[2:-1] == [f" {len(pairs & put)} + {len(pairs - put)} " for pairs in ways], name


def pairs_with_shared_phrases(phrases: lsh.Shingles, train: list[str], test: list[str]) -> set[tuple[int, int]]:
    having = defaultdict(set)
    for j, text in enumerate(test):
        for phrase in phrases.of(text):
            having[phrase].add(j)
    return {
        (i, j) for i, text in enumerate(train) for phrase in phrases.of(text) & having.keys() for j in having[phrase]
    }


if __name__ == "__main__":
    sys.exit(checks.main(globals()))
