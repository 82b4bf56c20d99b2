"""The types of the public functions: `mypy --strict` accepts correct programs and rejects wrong ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lsh

pytestmark = pytest.mark.slow

GOOD = """
import datetime
from collections.abc import Iterator

import numpy as np

import lsh

texts = ["one text", "another text"]


def stream() -> Iterator[str]:
    yield from texts


result = lsh.deduplicate(texts)
result = lsh.deduplicate(texts, 0.8, recall=0.95, against=texts, keep="longest", clusters="components", verify=None)
result = lsh.deduplicate(stream, 0.8, max_memory="2GB", missing="empty", progress=True)
result = lsh.deduplicate(np.array(texts), keep=np.array(["2024-01-01", "2024-01-02"], "M8[D]"))
result = lsh.deduplicate([b"bytes", "str", None], missing="empty", keep=[3, 1.5, 2])
result = lsh.deduplicate(iter(texts), keep=[datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 2)])
result = lsh.deduplicate(stream(), progress=lambda stage, done, total: print(stage, done, total))
number: int = len(result)
kept = [texts[i] for i in result.kept.tolist()]
frame, table = result.to_pandas("clusters"), result.to_arrow("near")
plan: lsh.Plan = lsh.plan(0.8, 0.99, background=texts, shingles=lsh.Shingles(5), documents=10**6)
plan = lsh.plan(background=[0.1, 0.2])
plan = lsh.plan(background=np.array([0.1, 0.2]))
share: float = plan.recall_at(0.8) + plan.probability(0.8) + plan.bands.probability(0.8)
curve = (plan.recall_at([0.1, 0.2]) + lsh.Bands(20, 5).probability(np.linspace(0, 1, 2))).round(3)
result = lsh.deduplicate(texts, bands=plan)
result = lsh.deduplicate(texts, bands=lsh.Bands(20, 6), verify="sketch", hasher=lsh.MinHasher(128, char_ngram=5))
for i, j, similarity in lsh.find_pairs(texts, 0.8, others=stream, shingles=lsh.Shingles(2, unit="word")):
    print(i + j, similarity + 0.5)
cache = lsh.Cache(lsh.MinHasher(100), bands=plan)
matrix = lsh.jaccard_matrix(texts, np.array(texts))
keys = plan.bands.keys(lsh.MinHasher(128, hashbytes=4).fingerprints(texts)) >> np.uint64(1)
"""

BAD = """
import lsh

texts = ["one text", "another text"]
lsh.deduplicate(texts, keep="newest")
lsh.deduplicate(5)
lsh.deduplicate(0.8)
lsh.deduplicate([1, 2])
lsh.deduplicate(texts, texts)
lsh.deduplicate(texts, "0.8")
lsh.deduplicate(texts, clusters="chains")
lsh.deduplicate(texts, verify="hash")
lsh.deduplicate(texts, missing=None)
lsh.deduplicate(texts, against=0.8)
lsh.deduplicate(texts, bands="20x6")
lsh.deduplicate(texts, progress=5)
lsh.deduplicate(texts).to_pandas("kept")
lsh.find_pairs(texts, texts)
lsh.find_pairs(texts, others=0.8)
lsh.find_pairs(texts, verify=True)
lsh.jaccard_matrix(0.8)
lsh.plan("0.8")
lsh.plan(shingles=5)
lsh.plan().probability(["0.5"])
lsh.plan().bands.keys([[1, 2]])
lsh.plan().threshold = 0.5
lsh.Bands(20, 5).recall_at(0.8)
lsh.Bands(widths=5)
"""


def test_programs_against_the_types(tmp_path, monkeypatch):
    """One run of mypy over both programs: no line of the good one is an error, and each line of the bad one is."""
    api = pytest.importorskip("mypy.api", reason="mypy is not installed")
    (tmp_path / "good.py").write_text(GOOD, encoding="utf-8")
    (tmp_path / "bad.py").write_text(BAD, encoding="utf-8")
    place = Path(lsh.__file__).parent.parent
    if place.name not in ("site-packages", "dist-packages"):
        monkeypatch.setenv("MYPYPATH", str(place))
    monkeypatch.chdir(tmp_path)
    options = [
        "--strict",
        "--ignore-missing-imports",
        "--follow-imports=silent",
        "--config-file=",
        "--hide-error-context",
    ]
    said, problems, _ = api.run([*options, "good.py", "bad.py"])
    assert problems == ""
    wrong = {(name, int(line)) for name, line in re.findall(r"^(good|bad)\.py:(\d+): error:", said, re.MULTILINE)}
    calls = {number for number, line in enumerate(BAD.split("\n"), 1) if line.startswith("lsh.")}
    assert wrong == {("bad", number) for number in calls}, said
