"""The indexes of released format versions: every release answers from them as the first one did, and can write them."""

import json
import shutil
from pathlib import Path

import pytest
from indexing import text
from store import make_golden

import lsh.store.writer
from lsh.store.index import Index

GOLDEN = Path(__file__).parent / "golden"
KINDS = ["texts", "8bit", "full"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", ["2"])
def test_old_indexes_are_read_and_written(tmp_path, version, kind):
    folder = tmp_path / kind
    shutil.copytree(GOLDEN / version / kind, folder)
    expected = json.loads((GOLDEN / version / "expected.json").read_text(encoding="utf-8"))[kind]
    with Index.open(folder) as index:
        index.verify()
        assert make_golden.answers(index) == expected
    with Index.open(folder, "a") as index:
        assert make_golden.answers(index) == expected
        index.add(text(1), "new")
        index.compact()
        assert list(map(repr, index)) == [*expected["ids"], "'new'"]
        index.remove("new")
        index.verify()
        compacted = make_golden.answers(index)
    assert compacted == expected


@pytest.mark.parametrize("kind", ["8bit", "full"])  # the bytes of compressed texts depend on zlib
def test_the_bytes_of_version_2_are_the_same(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(lsh.store.writer, "new_identity", lambda: make_golden.IDENTITY)
    make_golden.write(tmp_path / kind, kind)
    names = sorted(path.name for path in (GOLDEN / "2" / kind).iterdir())
    assert names == sorted(path.name for path in (tmp_path / kind).iterdir() if path.name != "lock")
    for name in names:
        assert (tmp_path / kind / name).read_bytes() == (GOLDEN / "2" / kind / name).read_bytes(), name
