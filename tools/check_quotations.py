#!/usr/bin/env python3
"""Check the table of docs/quotations.md: copied sentences of student answers, by the level of copying.

`python tools/check_quotations.py`; it needs the corpora. `tests/test_docs.py` runs the examples of the page.
"""

from __future__ import annotations

import doctest
import gzip
import json
import statistics
import sys
from collections import Counter
from typing import Any

import checks

import lsh

PAGE = (checks.ROOT / "docs" / "quotations.md").read_text(encoding="utf-8")
sys.path.insert(0, str(checks.ROOT / "examples"))
RECIPE: dict[str, Any] = {}  # what the page imports and defines
for example in doctest.DocTestParser().get_examples(PAGE):
    if example.source.startswith(("import ", "def ")):
        exec(example.source, RECIPE)
LEVELS = {"cut": "copied", "light": "light revision", "heavy": "heavy revision", "non": "without the source"}
WORDS = {"lowercase": True, "strip_punctuation": True}


def measured(records: list[dict[str, str]], n: int, threshold: float) -> dict[str, list[float]]:
    """Return, by level of copying, the share of the words of each answer that are in sentences found in a source."""
    sources = [record["text"] for record in records if record["category"] == "orig"]
    answers = [record for record in records if record["category"] != "orig"]
    rows = [(number, one) for number, answer in enumerate(answers) for one in RECIPE["sentences"](answer["text"])]
    shingles = lsh.Shingles(n, "word", **WORDS)
    found = lsh.find_contained([one for _, one in rows], sources, threshold, shingles=shingles)
    all_words, copied = Counter[int](), Counter[int]()
    for number, one in rows:
        all_words[number] += len(one.split())
    for row in set(found["item"].tolist()):
        copied[rows[row][0]] += len(rows[row][1].split())
    shares: dict[str, list[float]] = {level: [] for level in LEVELS}
    for number, answer in enumerate(answers):
        shares[answer["category"]].append(copied[number] / max(all_words[number], 1))
    return shares


def check_the_table_of_levels() -> None:
    data = gzip.decompress((checks.data_folder() / "plagiarised_answers.jsonl.gz").read_bytes())
    records = [json.loads(line) for line in data.decode("utf-8").split("\n")[:-1]]
    rows = []
    for n in (3, 2, 5):
        for threshold in (0.8, 0.5, 0.4) if n == 3 else (0.5,):
            shares = measured(records, n, threshold)
            cells = [f"{n} words, {threshold}"]
            for level in LEVELS:
                own = shares[level]
                found = f"{sum(share > 0 for share in own)} of {len(own)}"
                cells.append(f"{found}, {100 * statistics.median(own):.0f} %" if level != "non" else found)
            rows.append(" | ".join(cells))
    checks.compare_table(PAGE, "levels", rows)


if __name__ == "__main__":
    sys.exit(checks.main(globals()))
