"""`lsh screen`: verdicts as lines of JSON, what is added, thresholds, and errors."""

import json
from pathlib import Path
from unittest.mock import Mock

import pytest
import reference
from reading import write_records
from running import done, json_lines, lsh

from lsh import Index, Screen
from lsh.command import screen as command

TEXTS = {
    "a": "the harbour of the northern town was closed for a week because of ice and strong wind from the east",
    "b": "the harbour of the northern town was closed for a week because of ice and strong wind from the west",
    "c": "because of ice and strong wind the harbour of the northern town was closed for a week and a day",
    "d": "bees find their way home by the light of the sky even when clouds hide the sun from them",
}


def verdicts(data: bytes) -> dict[str, tuple[str, list[str]]]:
    found = json_lines(data)
    return {one["id"]: (one["decision"], [match["id"] for match in one["matches"]]) for one in found}


def exact(a: str, b: str) -> float:
    return reference.jaccard(TEXTS[a].lower(), TEXTS[b].lower(), 3, "word")


@pytest.fixture
def folder(tmp_path):
    """A folder with an empty index for screening, and documents."""
    done(tmp_path, "index", "create", "x.index", "--screen", "--texts", "stored", "--reject", "0.8", "-q")
    write_records(tmp_path / "new.jsonl", [{"id": doc_id, "text": text} for doc_id, text in TEXTS.items()])
    return tmp_path


def test_documents_are_screened_and_added(folder):
    assert exact("a", "b") >= 0.8 > exact("a", "c") >= 0.5
    result = lsh(folder, "screen", "x.index", "new.jsonl")
    expected = {"a": ("accept", []), "b": ("reject", ["a"]), "c": ("similar", ["a"]), "d": ("accept", [])}
    assert verdicts(result.stdout) == expected
    assert b"4 documents, 2 accepted, 1 similar, 1 rejected, " in result.stderr
    assert list(Index.open(folder / "x.index")) == ["a", "c", "d"]
    line = json.loads(result.stdout.splitlines()[1])
    similarity = exact("a", "b")
    match = {"id": "a", "similarity": similarity, "interval": [similarity] * 2, "verified": True}
    assert line == {"id": "b", "decision": "reject", "matches": [match]}
    again = lsh(folder, "screen", "x.index", "new.jsonl")
    assert verdicts(again.stdout)["b"] == ("reject", ["a", "c"])
    assert b"in place of others" not in result.stderr
    assert b", 1 rejected, 3 in place of others with the same ids, " in again.stderr
    assert list(Index.open(folder / "x.index"))[:3] == ["a", "c", "d"]


def test_checking_adds_nothing(folder):
    found = verdicts(done(folder, "screen", "x.index", "new.jsonl", "--check"))
    assert {decision for decision, _ in found.values()} == {"accept"}
    assert len(Index.open(folder / "x.index")) == 0
    done(folder, "screen", "x.index", "new.jsonl", "-o", "out.jsonl", "-q")
    with Index.open(folder / "x.index", "a"):  # a check needs no lock
        found = verdicts(done(folder, "screen", "x.index", "new.jsonl", "--check", "--top", 1))
    assert found == {"a": ("reject", ["a"]), "b": ("reject", ["a"]), "c": ("reject", ["c"]), "d": ("reject", ["d"])}
    assert list(verdicts((folder / "out.jsonl").read_bytes())) == list(TEXTS)
    (folder / "x.csv").write_text("text,at\none text of words,5\nanother one with words,2024-01-01\n", encoding="utf-8")
    done(folder, "index", "create", "y.index", "--screen", "-q")
    done(folder, "screen", "y.index", "x.csv", "--time-field", "at", "--field", "text")
    with Index.open(folder / "y.index") as index:
        assert {doc_id: index.time_of(doc_id) for doc_id in index} == {"x.csv:1": 5.0, "x.csv:2": 1704067200.0}


def test_thresholds_can_be_given_and_changed(folder):
    """Changed alone, or with the documents in one commit; other runs do not change them."""

    def stored() -> tuple[float, float]:
        with Screen.open(folder / "x.index") as screen:
            return screen.reject, screen.recommend

    result = lsh(folder, "screen", "x.index", "--store", "--reject", 0.7, "--recommend", 0.6)
    assert (result.returncode, result.stdout) == (0, b"")
    assert result.stderr == b"x.index: rejects from 0.7, recommends from 0.6\n"
    assert stored() == (0.7, 0.6)
    done(folder, "screen", "x.index", "-q", "--reject", 0.65, "new.jsonl")
    assert stored() == (0.7, 0.6)
    assert list(Index.open(folder / "x.index")) == ["a", "c", "d"]
    done(folder, "screen", "x.index", "new.jsonl", "--reject", 1, "--store", "-q")
    assert stored() == (1.0, 0.6)
    assert sorted(map(str, Index.open(folder / "x.index"))) == list(TEXTS)
    assert b"rejects from 1, recommends from 0.6" in done(folder, "index", "info", "x.index")
    found = verdicts(done(folder, "screen", "x.index", "new.jsonl", "--check", "--reject", 0.5, "--recommend", 0.5))
    assert {decision for decision, _ in found.values()} == {"reject"}


@pytest.mark.parametrize("output", ["out.jsonl", "/dev/full"])
def test_a_run_that_fails_adds_nothing(folder, monkeypatch, output):
    """Interrupted, or with an output that cannot be written."""
    if output == "out.jsonl":
        monkeypatch.setattr(command.indexing, "line", Mock(side_effect=KeyboardInterrupt))
    elif not Path(output).exists():
        pytest.skip("requires /dev/full")
    result = lsh(folder, "screen", "x.index", "new.jsonl", "-o", output)
    assert (result.returncode, result.stdout) == (130 if output == "out.jsonl" else 2, b"")
    assert len(Index.open(folder / "x.index")) == 0
    assert not (folder / "out.jsonl").exists()
