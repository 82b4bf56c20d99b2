"""`lsh dedup --against-index`, the same as --against with the documents of the index, but for their ids.

And `lsh index dedup` and `lsh index pairs`: what they print and remove, compared with the library.
"""

import json
import os
import shutil
from pathlib import Path

import pytest
from running import SAMPLE, done, json_lines, lsh, rows

import lsh as package
from lsh.store.index import Index


@pytest.fixture
def folder(tmp_path):
    """The sample in two files, and the first one as an index."""
    lines = SAMPLE.read_bytes().splitlines(keepends=True)
    (tmp_path / "old.tsv").write_bytes(b"".join(lines[::2]))
    (tmp_path / "new.tsv").write_bytes(b"".join(lines[1::2]))
    done(tmp_path, "index", "create", "a.index", "--texts", "stored", "-q")
    done(tmp_path, "index", "add", "a.index", "old.tsv", "-q")
    return tmp_path


def test_counts_report_and_recall(folder):
    ran = lsh(folder, "dedup", "new.tsv", "--against-index", "a.index", "--dry-run", "--json", "--report", "r.html")
    counts, index = json.loads(ran.stdout), Index.open(folder / "a.index")
    new = [line.split(b"\t", 1)[1] for line in (folder / "new.tsv").read_bytes().splitlines()]
    expected = package.deduplicate(new, against=index).summary()
    names = ("documents", "old", "kept", "removed", "for_old", "identical", "clusters", "missing")
    assert [counts[name] for name in names] == [expected[name] for name in names]
    assert counts["removed"] > counts["for_old"] > 0
    assert counts["bytes"] == sum(map(len, new))
    assert (counts["old"], counts["threshold"], counts["bands"]) == (len(index), 0.8, index.bands.to_string())
    assert b"reference documents" in ran.stderr
    assert b"recall" not in ran.stderr
    assert b"a.index" in (folder / "r.html").read_bytes()
    ran = lsh(folder, "dedup", "new.tsv", "--against-index", "a.index", "--dry-run", "--threshold", "0.7")
    recall = index.recall_at(0.7, min_similarity=0.7)
    assert f"--threshold 0.7: recall {recall:.4g} with the bands of the index" in ran.stderr.decode()


def test_ids_of_each_kind_and_no_texts(folder):
    """Without texts the estimates decide; the ids are a whole number, bytes and a text."""
    texts = [line.split("\t", 1)[1] for line in (folder / "new.tsv").read_text(encoding="utf-8").splitlines()[:3]]
    with Index.create(folder / "b.index", texts=None) as index:
        index.add_docs(texts, [17, b"\xff\x01", "a b"])
    options = ["--against-index", "b.index", "--removed", "removed.tsv", "--verify", "sketch", "-q"]
    done(folder, "dedup", "new.tsv", "-o", "out.tsv", *options)
    removed = [row[1:] for row in rows((folder / "removed.tsv").read_bytes()) if row[2:] == [b"1.0", b"old"]]
    assert removed[:3] == [[kept, b"1.0", b"old"] for kept in (b"17", b"\xff\x01", b"a b")]
    done(folder, "dedup", "old.tsv", "new.tsv", "-o", "out.tsv", *options)
    sources = {row[5] for row in rows((folder / "removed.tsv").read_bytes()) if row[3] == b"old"}
    assert sources == {os.fsencode(folder / "b.index")}


# `lsh index dedup` and `lsh index pairs`: within an index.


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
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
def test_duplicates_and_pairs_are_those_of_the_library(indexes, tmp_path, options, arguments):
    found = json_lines(done(indexes, "index", "dedup", "a.index", *options))
    with Index.open(indexes / "a.index") as index:
        assert found == [duplicate._asdict() for duplicate in index.deduplicate(**arguments)]
        assert len(found) > 30
        assert len(index) == 200
        if "keep" not in arguments:
            done(indexes, "index", "pairs", "a.index", *options, "-o", tmp_path / "pairs.jsonl")
            written = json_lines((tmp_path / "pairs.jsonl").read_bytes())
            assert [tuple(line.values()) for line in written] == list(index.find_pairs(**arguments))
            assert len(written) > 30
            assert list(written[0]) == ["a", "b", "similarity"]


def test_duplicates_are_removed(indexes, tmp_path):
    """If the output cannot be written, none is."""
    own = Path(shutil.copytree(indexes, tmp_path / "own"))
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
