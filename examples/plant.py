#!/usr/bin/env python3
"""Plant questions in documents: a training set in which a test set has leaked, and what leaked is known.

`python plant.py questions.tsv INPUT.tsv.gz... -o train.tsv` writes the documents of INPUT (id, tab, text), and puts
every fifth question into one of them: of three such questions one as it is, one with a changed word, and one with a
quarter of its words changed. `docs/decontamination.md` finds them.
"""

from __future__ import annotations

import argparse
import gzip
import random
from collections.abc import Callable, Sequence
from pathlib import Path

EDITS = ("whole", "a word changed", "a quarter changed")


def rows(path: str | Path) -> list[list[str]]:
    """Return the columns of each line of a table, which may be compressed."""
    data = Path(path).read_bytes()
    text = (gzip.decompress(data) if str(path).endswith(".gz") else data).decode("utf-8")
    return [line.split("\t") for line in text.split("\n")[:-1]]


def changed(words: list[str], count: int, draw: random.Random) -> list[str]:
    """Replace `count` of the words by others."""
    places = set(draw.sample(range(len(words)), min(count, len(words))))
    return [f"{word}x" if place in places else word for place, word in enumerate(words)]


def with_changes(share: float) -> Callable[[list[str], random.Random], list[str]]:
    """Return an edit that replaces each word with a probability."""
    return lambda words, draw: [f"{word}x" if draw.random() < share else word for word in words]


def planted(
    texts: Sequence[str],
    items: Sequence[str],
    edits: Sequence[Callable[[list[str], random.Random], list[str]]],
    seed: int = 0,
) -> tuple[list[str], list[int]]:
    """Put each item somewhere into a text of its own; return the texts, and the position of the text of each item."""
    draw, new = random.Random(seed), list(texts)
    places = draw.sample(range(len(texts)), len(items))
    for number, (place, item) in enumerate(zip(places, items)):
        words = new[place].split(" ")
        cut = draw.randrange(len(words) + 1)
        edit = edits[number % len(edits)]
        new[place] = " ".join([*words[:cut], *edit(item.split(), draw), *words[cut:]])
    return new, places


def leaked(texts: Sequence[str], questions: Sequence[str]) -> tuple[list[str], list[int]]:
    """Plant questions as the program does."""
    edits = [
        lambda words, draw: words,
        lambda words, draw: changed(words, 1, draw),
        lambda words, draw: changed(words, -(-len(words) // 4), draw),
    ]
    return planted(texts, questions, edits)


def main() -> None:
    """Write the training set, and print what leaked."""
    parser = argparse.ArgumentParser(description="Plant questions in documents.")
    parser.add_argument("questions")
    parser.add_argument("inputs", nargs="+")
    parser.add_argument("-o", "--output", required=True)
    arguments = parser.parse_args()
    questions = [row[1] for row in rows(arguments.questions)][::5]
    documents = [row for path in arguments.inputs for row in rows(path)]
    texts, _ = leaked([row[1] for row in documents], questions)
    with Path(arguments.output).open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{row[0]}\t{text}\n" for row, text in zip(documents, texts))
    print(f"{len(documents):,} documents, {len(questions)} questions planted")


if __name__ == "__main__":
    main()
