"""`lsh index dedup` and `lsh index pairs`: what they print and remove, compared with the library; errors."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from running import done, lsh

from lsh.store.index import Index

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sample.tsv"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with an index of the sample, and one without texts; tests do not change it."""
    made = tmp_path_factory.mktemp("indexes")
    done(made, "index", "create", "a.index", "--texts", "stored", "-q")
    done(made, "index", "create", "b.index", "--texts", "none", "-q")
    for name in ("a.index", "b.index"):
        done(made, "index", "add", name, SAMPLE, "-q")
    return made


@pytest.fixture
def own_folder(folder, tmp_path):
    """A copy of the folder."""
    return Path(shutil.copytree(folder, tmp_path / "own"))


def lines(data: bytes) -> list[dict]:
    return [json.loads(line) for line in data.splitlines()]


def ids(folder: Path, name: str = "a.index") -> list[object]:
    with Index.open(folder / name) as index:
        return list(index)


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {}),
        (["--threshold", "0.7"], {"threshold": 0.7}),
        (["--keep", "last", "--clusters-mode", "components"], {"keep": "last", "clusters": "components"}),
        (["--verify", "sketch"], {"verify": "sketch"}),
        (["--verify", "none", "--max-memory", "10MB"], {"verify": None}),
    ],
)
def test_duplicates_are_those_of_the_library(folder, options, arguments):
    found = lines(done(folder, "index", "dedup", "a.index", *options))
    with Index.open(folder / "a.index") as index:
        assert found == [duplicate._asdict() for duplicate in index.deduplicate(**arguments)]
    assert len(found) > 60
    assert len(ids(folder)) == 200


@pytest.mark.parametrize(("options", "arguments"), [([], {}), (["--threshold", "0.9", "--verify", "sketch"], None)])
def test_pairs_are_those_of_the_library(folder, tmp_path, options, arguments):
    done(folder, "index", "pairs", "a.index", *options, "-o", tmp_path / "pairs.jsonl")
    written = lines((tmp_path / "pairs.jsonl").read_bytes())
    found = [tuple(line.values()) for line in written]
    with Index.open(folder / "a.index") as index:
        expected = list(
            index.find_pairs(**({"threshold": 0.9, "verify": "sketch"} if arguments is None else arguments))
        )
    assert found == expected
    assert len(found) > 50
    assert list(written[0]) == ["a", "b", "similarity"]


def test_duplicates_are_removed(own_folder):
    before = ids(own_folder)
    result = lsh(own_folder, "index", "dedup", "a.index", "--remove", "-o", "removed.jsonl")
    assert result.stderr.startswith(b"200 documents, 72 near duplicates, 72 removed, 128 in the index, ")
    removed = [line["id"] for line in lines((own_folder / "removed.jsonl").read_bytes())]
    assert len(removed) == 72
    assert ids(own_folder) == [doc_id for doc_id in before if doc_id not in removed]
    assert {line["kept"] for line in lines((own_folder / "removed.jsonl").read_bytes())} <= set(ids(own_folder))
    assert done(own_folder, "index", "dedup", "a.index", "--remove") == b""
    assert len(ids(own_folder)) == 128


def test_a_run_whose_output_fails_removes_nothing(own_folder):
    result = lsh(own_folder, "index", "dedup", "a.index", "--remove", "-o", "/dev/full")
    assert (result.returncode, len(ids(own_folder))) == (2, 200)
    assert b"No space left on device" in result.stderr


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


def test_a_folder_with_a_manifest_of_another_kind_is_read(tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "manifest").write_text("not an index")
    (tmp_path / "texts" / "a.txt").write_text("a text")
    assert done(tmp_path, "stats", "texts").startswith(b"documents")
