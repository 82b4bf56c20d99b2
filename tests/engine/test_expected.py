"""Results stay the same, bit for bit: the checksums of `expected.json`, with threads and under a bound of memory."""

import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import expected
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import harness

import lsh

EXPECTED: dict[str, dict[str, str]] = json.loads(expected.FILE.read_text(encoding="utf-8"))
WAYS = {
    "one thread": {"num_threads": 1},
    "three threads": {"num_threads": 3},
    "under a bound": {"max_memory": "2MB", "num_threads": 2},
}
SLOW = {("copies", "pairs 0.5"), ("copies", "pairs 0.8")}  # take seconds
GENERATED = [
    pytest.param(name, case, marks=pytest.mark.slow if (name, case) in SLOW else ())
    for name in expected.GENERATED
    for case in EXPECTED[name]
]
FILES = [(name, case) for name in expected.FILES for case in EXPECTED[name]]


@cache
def of_file(name: str) -> dict[str, Callable[..., str]]:
    corpus = harness.corpus(name)
    if corpus is None:
        pytest.skip(f"{name} is not here: set LSH_DATA to the folder of corpora")
    return dict(expected.cases(corpus.texts))


@cache
def of_generated(name: str) -> dict[str, Callable[..., str]]:
    return dict(expected.generated(name))


@pytest.mark.few(16)
@pytest.mark.parametrize("way", [pytest.param("one thread", marks=pytest.mark.slow), "three threads", "under a bound"])
@pytest.mark.parametrize(("name", "case"), GENERATED)
def test_generated(name, case, way):
    assert of_generated(name)[case](**WAYS[way]) == EXPECTED[name][case]


@pytest.mark.few(6)
@pytest.mark.parametrize(("name", "case"), [one for one in GENERATED if "pairs" not in one.values[1]])
def test_generated_in_many_parts(name, case, monkeypatch):
    monkeypatch.setattr(lsh.base.budget.MemoryBudget, "has_room", lambda self, size: size < 50_000)
    monkeypatch.setattr(lsh.engine.layout, "SMALLEST_PARTITION", 20_000)
    assert of_generated(name)[case](max_memory="120KB", num_threads=2) == EXPECTED[name][case]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "case"), FILES)
def test_files(name, case, way):
    assert of_file(name)[case](**WAYS[way]) == EXPECTED[name][case]


def test_no_case_is_left_out():
    assert set(EXPECTED) == {*expected.GENERATED, *expected.FILES}
    for name in expected.GENERATED:
        assert set(EXPECTED[name]) == set(of_generated(name))
