"""`lsh index dedup` and `lsh index pairs`: what they print and remove, compared with the library; errors."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from running import SAMPLE, done, json_lines, lsh

from lsh.store.index import Index


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with an index of the sample, and one without texts; tests do not change it."""
    made = tmp_path_factory.mktemp("indexes")
    for name, texts in (("a.index", "stored"), ("b.index", "none")):
        done(made, "index", "create", name, "--texts", texts, "-q")
        done(made, "index", "add", name, SAMPLE, "-q")
    return made


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        (["--threshold", "0.7"], {"threshold": 0.7}),
        (["--keep", "last", "--clusters-mode", "components"], {"keep": "last", "clusters": "components"}),
        (["--verify", "sketch", "--threshold", "0.9"], {"verify": "sketch", "threshold": 0.9}),
        (["--verify", "none", "--max-memory", "10MB"], {"verify": None}),
    ],
)
def test_duplicates_and_pairs_are_those_of_the_library(folder, tmp_path, options, arguments):
    found = json_lines(done(folder, "index", "dedup", "a.index", *options))
    with Index.open(folder / "a.index") as index:
        assert found == [duplicate._asdict() for duplicate in index.deduplicate(**arguments)]
        assert len(found) > 30
        assert len(index) == 200
        if "keep" not in arguments:
            done(folder, "index", "pairs", "a.index", *options, "-o", tmp_path / "pairs.jsonl")
            written = json_lines((tmp_path / "pairs.jsonl").read_bytes())
            assert [tuple(line.values()) for line in written] == list(index.find_pairs(**arguments))
            assert len(written) > 30
            assert list(written[0]) == ["a", "b", "similarity"]


def test_duplicates_are_removed(folder, tmp_path):
    """If the output cannot be written, none is."""
    own = Path(shutil.copytree(folder, tmp_path / "own"))
    result = lsh(own, "index", "dedup", "a.index", "--remove", "-o", "/dev/full")
    assert (result.returncode, len(Index.open(own / "a.index"))) == (2, 200)
    assert b"No space left on device" in result.stderr
    before = list(Index.open(own / "a.index"))
    result = lsh(own, "index", "dedup", "a.index", "--remove", "-o", "removed.jsonl")
    assert result.stderr.startswith(b"200 documents, 72 near duplicates, 72 removed, 128 in the index, ")
    written = json_lines((own / "removed.jsonl").read_bytes())
    removed, left = [line["id"] for line in written], list(Index.open(own / "a.index"))
    assert (len(removed), left) == (72, [doc_id for doc_id in before if doc_id not in removed])
    assert {line["kept"] for line in written} <= set(left)
    assert done(own, "index", "dedup", "a.index", "--remove") == b""
    assert len(Index.open(own / "a.index")) == 128


def test_the_recall_is_printed_where_it_is_another_one(folder):
    assert b"recall" not in lsh(folder, "index", "pairs", "a.index").stderr
    with Index.open(folder / "a.index") as index:
        expected = (
            f"--threshold 0.7: recall {index.recall_at(0.7, min_similarity=0.7):.4g} with the bands of the index\n"
        )
    assert lsh(folder, "index", "pairs", "a.index", "--threshold", "0.7").stderr.decode().startswith(expected)
    with Index.open(folder / "b.index") as index:
        expected = f"--threshold 0.8: recall {index.recall_at(0.8):.4g} with the bands of the index and estimates\n"
    for name in ("a.index", "b.index"):
        result = lsh(folder, "index", "dedup", name, "--verify", "sketch")
        assert result.stderr.decode().startswith(expected)
        assert result.stderr.count(b"\n") == 2
    assert lsh(folder, "index", "dedup", "a.index", "--verify", "sketch", "-q").stderr == b""
