#!/usr/bin/env python3
"""Check docs/decontamination.md: the commands of its walk-through, its tables, and the figures of its text.

`python tools/check_decontamination.py`; it needs the corpora. `tests/test_docs.py` runs the examples of the page, and
`tests/command/test_page.py` those commands that need none. A table that is not the measured one is printed.
"""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

import checks

import lsh
from lsh import presets

EXAMPLES = checks.ROOT / "examples"
PAGE = (checks.ROOT / "docs" / "decontamination.md").read_text(encoding="utf-8")
WALK = re.compile(r"^```shell-session\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CORPORA = ("articles2500.tsv.gz", "win32docs.tsv.gz")
SHARES = (0, 0.03, 0.06, 0.1)  # of the words that are changed
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
WORDS = lsh.Shingles(3, "word", lowercase=True, strip_punctuation=True)

plant = checks.script(EXAMPLES / "plant.py")
QUESTIONS = [row[1] for row in plant.rows(EXAMPLES / "questions.tsv")]


@cache
def documents() -> list[str]:
    """Return the texts of the walk-through, before questions are planted."""
    return [row[1] for name in CORPORA for row in plant.rows(checks.data_folder() / name)]


@cache
def training_set(share: float) -> tuple[list[str], set[tuple[int, int]]]:
    """Return the texts with all questions, each word changed with a probability, and which text has which question."""
    texts, places = plant.planted(documents(), QUESTIONS, [plant.with_changes(share)], seed=1)
    return texts, set(zip(places, range(len(QUESTIONS))))


def counts(found: lsh.Contained, put: set[tuple[int, int]]) -> tuple[int, int]:
    """Return how many of the planted questions are found, and how many other hits there are."""
    hits = set(zip(found["text"].tolist(), found["item"].tolist()))
    return len(hits & put), len(hits - put)


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def check_the_walk_through() -> None:
    """The commands print what the page says."""
    with tempfile.TemporaryDirectory() as temp:
        for path in (*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.tsv"), *map(checks.data_folder().joinpath, CORPORA)):
            shutil.copy(path, temp)
        command = Path(temp, "lsh")
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m lsh "$@"\n')
        command.chmod(0o755)
        places = [temp, str(Path(sys.executable).parent), os.environ["PATH"]]
        variables = os.environ | {"PATH": os.pathsep.join(places)}
        for block in WALK.findall(PAGE):
            for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                line, _, printed = step.partition("\n")
                done = subprocess.run(
                    ["sh", "-c", line], cwd=temp, env=variables, capture_output=True, text=True, check=True
                )
                got = done.stdout + done.stderr
                assert doctest.OutputChecker().check_output(printed, got, doctest.ELLIPSIS), f"$ {line}\n{got}"


def check_what_the_walk_through_finds() -> None:
    """The figures between the commands."""
    items = QUESTIONS[::5]
    texts, places = plant.leaked(documents(), items)
    position = {place: number for number, place in enumerate(places)}
    rows = []
    for threshold, max_share in ((0.5, None), (0.5, 0.001), (0.6, None), (0.8, None)):
        found = lsh.find_contained(QUESTIONS, texts, threshold, max_share=max_share)
        hits = list(zip(found["text"].tolist(), found["item"].tolist()))
        planted = Counter(position[text] % 3 for text, item in hits if position.get(text, -1) * 5 == item)
        option = "" if max_share is None else f", `--max-share {max_share}`"
        cells = [f"{threshold}{option}", *(f"{planted[edit]}" for edit in range(3)), f"{len(hits) - planted.total()}"]
        rows.append(" | ".join(cells))
    checks.compare_table(PAGE, "walk", rows)


def check_the_table_of_thresholds() -> None:
    rows = []
    for share in SHARES:
        texts, put = training_set(share)
        found = [counts(lsh.find_contained(QUESTIONS, texts, threshold), put) for threshold in THRESHOLDS]
        rows.append(" | ".join([percent(share), *(f"{planted} + {other}" for planted, other in found)]))
    texts, put = training_set(0.03)
    for max_share in (0.001, 0.0003):
        found = [
            counts(lsh.find_contained(QUESTIONS, texts, threshold, max_share=max_share), put)
            for threshold in THRESHOLDS
        ]
        cells = [f"3 %, `max_share={max_share}`", *(f"{planted} + {other}" for planted, other in found)]
        rows.append(" | ".join(cells))
    checks.compare_table(PAGE, "thresholds", rows)


def check_the_table_of_rules() -> None:
    rows = []
    for name in (None, *presets.RULES):
        given = {} if name is None else presets.rule(name).options()
        cells, skipped = [], 0
        for share in SHARES:
            texts, put = training_set(share)
            found = lsh.find_contained(QUESTIONS, texts, **given)
            skipped = len(found.skipped)
            planted, other = counts(found, put)
            cells.append(f"{planted} + {other}")
        rows.append(" | ".join(["the default" if name is None else f"`{name}`", f"{skipped}", *cells]))
    checks.compare_table(PAGE, "rules", rows)


def check_whole_documents_miss_them() -> None:
    texts, _ = training_set(0)
    (stated,) = re.findall(r"`find_pairs` at 0\.5 finds (\d+) of the 300 unchanged questions", PAGE)
    assert len({j for _, j, _ in lsh.find_pairs(texts, 0.5, others=QUESTIONS, shingles=WORDS)}) == int(stated)


if __name__ == "__main__":
    sys.exit(checks.main(globals()))
