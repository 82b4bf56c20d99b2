"""The recipes of docs/decontamination.md find the test texts that were put into longer documents."""

from __future__ import annotations

import doctest
import gzip
import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lsh

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs/decontamination.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    """Return what the page imports and defines; `tests/test_docs.py` runs its examples."""
    names: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(PAGE):
        if example.source.startswith(("import ", "def ", "WORDS", "PHRASES")):
            exec(example.source, names)
    return names


def test_windows_cover_a_text(recipe):
    """All words are in a window, and each window has the size, if the text is as long as that."""
    for count in (0, 1, 7, 8, 9, 10, 31, 32, 33, 500):
        words = [str(number) for number in range(count)]
        for size in (8, 32):
            cut = [window.split() for window in recipe["windows"](" ".join(words), size)]
            assert {word for window in cut for word in window} == set(words)
            assert all(len(window) == min(size, count) for window in cut)


@pytest.mark.few(3)
@pytest.mark.parametrize("length", [*range(8, 65), 90, 91, 128, 181, 182])
def test_an_unchanged_copy_has_a_similar_window(recipe, length):
    """The bound of the page, 0.65, for a text of any length at any position of a document."""
    size = recipe["size_of"](" ".join(["word"] * length))
    copied = " ".join(f"c{number}" for number in range(length))
    for before in range(size):
        document = " ".join([*(f"b{i}" for i in range(before)), copied, *(f"a{i}" for i in range(2 * size))])
        cut = recipe["windows"](document, size)
        assert lsh.jaccard_matrix(cut, [copied], shingles=recipe["WORDS"]).max() >= 0.65


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
EDITED = "every tenth word changed"


@pytest.mark.slow
@pytest.mark.parametrize("edit", [pytest.param(edit, marks=[pytest.mark.full] * (edit != EDITED)) for edit in EDITS])
def test_the_table_of_the_page(recipe, data_folder, edit):
    lines = gzip.decompress((data_folder / "reuters21578.tsv.gz").read_bytes()).decode().split("\n")[:-1]
    train, test = planted([line.split("\t")[1] for line in lines], EDITS[edit])
    ways = [set(recipe["contained"](train, test, threshold)) for threshold in (0.5, 0.4, 0.3)]
    ways.append(pairs_with_shared_phrases(recipe["PHRASES"], train, test))
    ways.append({(i, j) for i, j, _ in lsh.find_pairs(train, 0.5, others=test, shingles=recipe["WORDS"])})
    put = {(number, number) for number in range(300)}
    (row,) = [line for line in PAGE.splitlines() if line.startswith("| ") and edit in line]
    assert row.split("|")[2:-1] == [f" {len(pairs & put)} + {len(pairs - put)} " for pairs in ways]


def pairs_with_shared_phrases(phrases: lsh.Shingles, train: list[str], test: list[str]) -> set[tuple[int, int]]:
    having = defaultdict(set)
    for j, text in enumerate(test):
        for phrase in phrases.of(text):
            having[phrase].add(j)
    return {
        (i, j) for i, text in enumerate(train) for phrase in phrases.of(text) & having.keys() for j in having[phrase]
    }
