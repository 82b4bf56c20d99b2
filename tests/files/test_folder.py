"""Folders of text files: which files are read, in which order, and where kept ones are written."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from reading import BOM, read, refusal, texts

from lsh import files


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "in" / "deep" / "er").mkdir(parents=True)
    (tmp_path / "in" / ".hidden").mkdir()
    (tmp_path / "in" / "void").mkdir()
    for name, data in {
        "b.txt": b"two\r\nlines\n",
        "a.md": BOM + b"one",
        "deep/c.txt.gz": gzip.compress(b"three\n", mtime=0),
        "deep/er/d e.txt": b"",
        ".hidden/no.txt": b"no",
        "deep/.no.txt": b"no",
    }.items():
        (tmp_path / "in" / name).write_bytes(data)
    return tmp_path / "in"


def test_folder(corpus):
    everything = [(b"a.md", b"one"), (b"b.txt", b"two\r\nlines\n"), (b"deep/c.txt.gz", b"three\n")]
    everything.append((b"deep/er/d e.txt", b""))
    assert read(str(corpus)) == everything
    assert read(str(corpus), pattern="*.txt") == [everything[1], everything[3]]
    assert read(str(corpus), pattern="deep/*") == everything[2:]
    assert texts(str(corpus), encoding="utf-8-sig") == [text for _, text in everything]


def test_hidden_files_are_counted_or_asked_for(tmp_path):
    """What is passed over is said; a pattern that begins with a dot reads it."""
    (tmp_path / "in" / ".git").mkdir(parents=True)
    for name in ("a.txt", "..txt", ".git/config.txt", ".git/b.bin"):
        (tmp_path / "in" / name).write_bytes(name.encode())
    with files.Documents(str(tmp_path / "in"), pattern="*.txt") as documents:
        for _ in range(2):
            assert [record.id for record in documents.records()] == [b"a.txt"]
            assert documents.hidden == 2
    hidden = read(str(tmp_path / "in"), pattern=".*")
    assert [identity for identity, _ in hidden] == [b"..txt", b".git/b.bin", b".git/config.txt"]


def test_a_pattern_that_nothing_matches(corpus, tmp_path):
    assert "no file matches the pattern '*.html'; correct --pattern" in refusal(str(corpus), pattern="*.html")
    (tmp_path / "empty").mkdir()
    assert read(str(tmp_path / "empty")) == []


def test_kept_files_go_into_a_new_folder(corpus, tmp_path):
    before = tree(corpus)
    (tmp_path / "empty").mkdir()
    for place in [tmp_path / "out", tmp_path / "empty"]:
        with files.Documents(str(corpus)) as documents, files.target(documents, str(place)) as target:
            files.write_kept(documents, [False, True, True, False], target)
            assert not place.exists() or tree(place) == {}
            target.commit()
        assert tree(place) == {name: before[name] for name in ["b.txt", "deep/c.txt.gz"]}
    assert tree(corpus) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "in", "out"]


def test_an_interrupted_folder_leaves_nothing(corpus, tmp_path):
    with files.Documents(str(corpus)) as documents:
        target = files.target(documents, str(tmp_path / "out"))
        with pytest.raises(files.InputError, match="grew"), target:
            files.write_kept(documents, [True, True], target)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_places_where_a_folder_cannot_go(corpus, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_bytes(b"")
    with files.Documents(str(corpus)) as documents:
        for place in [tmp_path / "full", tmp_path / "full" / "file", corpus / "out", corpus, files.STANDARD]:
            with pytest.raises(ValueError, match="OUTPUT"):
                files.target(documents, str(place))
        with files.Target(str(tmp_path / "file")) as target, pytest.raises(TypeError, match="FolderTarget"):
            files.write_kept(documents, [True] * 4, target)


def test_a_folder_that_changes_is_refused(corpus):
    with files.Documents(str(corpus)) as documents:
        list(documents.records())
        (corpus / "new.txt").write_bytes(b"new")
        with pytest.raises(files.InputError, match="changed"):
            list(documents.records())


def test_bad_files_of_a_folder(corpus, tmp_path):
    (corpus / "bad.txt").write_bytes(b"\x81")
    (corpus / "bad.gz").write_bytes(b"nonsense")
    assert "damaged gzip" in refusal(str(corpus), encoding="cp1252")
    rejects = files.Target(str(tmp_path / "rejects"))
    with rejects, files.Documents(str(corpus), encoding="cp1252", on_bad_line="skip", rejects=rejects) as documents:
        for _ in range(2):
            assert [record.id for record in documents.records()] == [
                b"a.md",
                b"b.txt",
                b"deep/c.txt.gz",
                b"deep/er/d e.txt",
            ]
            assert documents.skipped == 2
        with files.target(documents, str(tmp_path / "out")) as target:
            files.write_kept(documents, [True, False, False, True], target)
            target.commit()
        rejects.commit()
    assert set(tree(tmp_path / "out")) == {"a.md", "deep/er/d e.txt"}
    assert (tmp_path / "rejects").read_bytes() == b"bad.gz\nbad.txt\n"
