"""Jobs of a user of an index: many removals, new times, equal texts, wrong arguments, another index in its place."""

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import indexing
import pytest
from indexing import SETTINGS, contents, patch_read_manifest, reopened, text

import lsh
from lsh.segments import manifest
from lsh.store import query
from lsh.store.index import Index, IndexDamagedError, IndexReplacedError


@pytest.mark.parametrize("settings", [{"texts": "stored"}, {"texts": None, "sketch": "full"}, {"texts": None}], ids=str)
def test_a_time_is_changed_alone(folder, settings):
    with Index.create(folder, **{**SETTINGS, **settings}) as index:
        index.add_docs([text(1), text(2), ""], ["a", "b", "empty"], times=[100, None, 100])
        before = index.query(text(1)), index.query(id="a")
        assert [match.id for match in before[0]] == ["a"]
        for move in (None, index.commit, index.compact):
            if move is not None:
                move()
            index.set_time("a", 300)
            index.set_time("b", 300)
            index.set_time("empty", None)
            assert [index.time_of(doc_id) for doc_id in ("a", "b", "empty")] == [300.0, 300.0, None]
            assert (index.query(text(1)), index.query(id="a")) == before
            assert list(index) == ["a", "b", "empty"]
        with pytest.raises(KeyError, match="nothing"):
            index.set_time("nothing", 1)
    with Index.open(folder, "a") as index:
        assert index.expire(200) == 0
        assert index.expire(400) == 2
        assert list(index) == ["empty"]
        if settings["texts"]:
            assert index.text_of("empty") == b""


def test_the_first_of_equal_texts(folder, monkeypatch):
    """A query with `top` ends at the first ones, wherever they are."""
    monkeypatch.setattr(query, "TEXTS_STEP", 7)
    base = " ".join(map(str, range(60)))
    with Index.create(folder, texts="stored") as index:
        index.add_docs([base + "a", *[base] * 50, base + "b"], range(52))
        index.add_docs([base] * 3, ["x", "y", "z"])
        for _ in range(2):
            everything = index.query(base)
            assert [match.similarity for match in everything[:53]] == [1.0] * 53
            assert [match.id for match in everything] == [*range(1, 51), "x", "y", "z", 0, 51]
            for top in (1, 2, 9, 53, 54):
                assert index.query(base, top=top) == everything[:top]
            assert [match.id for match in index.query(id=1, top=2)] == [2, 3]
            assert index.query(base + "c", top=2)[0].similarity < 1.0
            index.compact()


def test_paths_that_are_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for opens in (Index.create, Index.open, lsh.Screen.create, lsh.Screen.open):
        with pytest.raises(ValueError, match="path must be a folder on this machine, got a URL") as raised:
            opens("s3://key:secret@bucket/index")
        assert "secret" not in str(raised.value)
    assert os.listdir(tmp_path) == []
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileExistsError, match="file is a file; create the index in a new folder"):
        Index.create(tmp_path / "file")
    for mode in ("r", "a"):
        with pytest.raises(NotADirectoryError, match="file is a file, not the folder of an index"):
            Index.open(tmp_path / "file", mode)
    assert (tmp_path / "file").read_text() == "x"


# Another index in the place of an index.


def swap(link: Path, target: Path) -> None:
    """Make a link lead to another folder, in one step."""
    os.symlink(target, f"{link}.new")
    os.replace(f"{link}.new", link)


def replaced(tmp_path: Path, by_link: bool) -> tuple[Path, Callable[[], None]]:
    """The path of an index, and a function that puts another one in its place: by a link, or by renaming.

    Both have the same parameters, with files of the same names and different documents.
    """
    one, two = tmp_path / "one", tmp_path / "two"
    for path, first in ((one, 0), (two, 1000)):
        with Index.create(path, **SETTINGS) as index:
            index.add_docs([text(first + i) for i in range(30)], [f"{path.name}{i}" for i in range(30)])
            index.compact()
            index.add(text(first + 40), f"{path.name}40")
    if by_link:
        swap(tmp_path / "current", one)
        return tmp_path / "current", lambda: swap(tmp_path / "current", two)

    def rename() -> None:
        os.rename(one, tmp_path / "old")
        os.rename(two, one)

    return one, rename


LINKS = pytest.mark.parametrize(
    "by_link", [pytest.param(True, marks=pytest.mark.skipif(os.name == "nt", reason="needs a privilege")), False]
)


@LINKS
@pytest.mark.parametrize("moment", [1, 2])
def test_files_of_two_indexes_are_not_mixed(tmp_path, monkeypatch, by_link, moment):
    """The folder is replaced after the manifest was read, or after all files were opened."""
    path, replace = replaced(tmp_path, by_link)
    real, calls = manifest.read_manifest, []

    def read(folder, known=None):
        calls.append(folder)
        found = real(folder, known)
        if len(calls) == moment:
            replace()
        return found

    patch_read_manifest(monkeypatch, read)
    with Index.open(path) as reader:
        assert {doc_id[:3] for doc_id in reader} == {"two" if moment == 1 and not by_link else "one"}
        assert len(reader) == 31


@LINKS
def test_a_log_of_another_index_is_not_read(tmp_path, monkeypatch, by_link):
    """A reader goes on with what it had, also if its files were deleted."""
    path, replace = replaced(tmp_path, by_link)
    with Index.open(tmp_path / "two", "a") as index:
        index.add(text(9), "later")
    with Index.open(path) as reader:
        kept = contents(reader)
        real = manifest.read_manifest

        def read(folder, known=None):
            patch_read_manifest(monkeypatch, real)
            found = real(folder, known)
            replace()
            return found

        patch_read_manifest(monkeypatch, read)
        for check in (reader.refresh, reader.refresh, reader.verify):
            with pytest.raises(IndexReplacedError, match="was replaced by another one; open it again"):
                check()
        if os.name != "nt":
            shutil.rmtree(tmp_path / ("one" if by_link else "old"))
        assert contents(reader) == kept


def test_a_backup_while_a_writer_runs(tmp_path, monkeypatch):
    """As docs/lasting-index.md says: the manifest first, then the other files: one commit, or an error with a file."""
    indexing.small_limits(monkeypatch)
    rng, commits, outcomes = random.Random(5), [set()], Counter[str]()

    def change() -> None:
        doc_id = rng.randrange(60)
        index.add(text(doc_id), doc_id)
        if rng.random() < 0.3:
            index.remove(rng.choice(list(index)))
        if rng.random() < 0.1:
            index.compact()
        index.commit()
        commits.append(set(index))

    with Index.create(tmp_path / "index", **SETTINGS) as index:
        for i in range(20):
            copy = tmp_path / f"copy{i}"
            copy.mkdir()
            shutil.copy(tmp_path / "index" / "manifest", copy)
            first = len(commits) - 1
            for name in sorted(set(os.listdir(tmp_path / "index")) - {"manifest"}):
                if rng.random() < 0.2:
                    change()
                if (tmp_path / "index" / name).exists():
                    shutil.copy(tmp_path / "index" / name, copy)
            change()
            try:
                assert set(reopened(copy)) in commits[first:]
                outcomes["whole"] += 1
            except IndexDamagedError as error:
                outcomes["missing" if "it is missing, and the manifest names it" in str(error) else str(error)] += 1
    assert set(outcomes) == {"whole", "missing"}
    assert min(outcomes.values()) >= 3
