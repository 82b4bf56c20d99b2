"""Folders: which files are read, as texts or as shards, in which order, and where kept files are written."""

import gzip
import os
import re
import shutil
import socket
from pathlib import Path

import pytest
from reading import BOM, DOCUMENTS, HEADS, TEXTS, kept, pack, read, refusal, texts
from running import lsh

from lsh import files

FILES = files.Format("files", "")


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
    """Hidden files are counted; a pattern that begins with a dot reads them."""
    (tmp_path / "in" / ".git").mkdir(parents=True)
    for name in ("a.txt", "..txt", ".git/config.txt", ".git/b.bin"):
        (tmp_path / "in" / name).write_bytes(name.encode())
    with files.Documents(str(tmp_path / "in"), pattern="*.txt") as documents:
        for _ in range(2):
            assert [record.id for record in documents.records()] == [b"a.txt"]
            assert documents.counts.hidden == 2
    assert "unknown ending .bin" in refusal(str(tmp_path / "in"), pattern=".*")
    hidden = read(str(tmp_path / "in"), FILES, pattern=".*")
    assert [identity for identity, _ in hidden] == [b"..txt", b".git/b.bin", b".git/config.txt"]


@pytest.mark.parametrize("format", [None, FILES, files.Format("jsonl", "")])
def test_a_folder_without_files(tmp_path, format):
    """This is an error: most likely the name is wrong, or nothing is mounted there."""
    empty = tmp_path / "empty"
    (empty / "deep").mkdir(parents=True)
    assert refusal(str(empty), format) == f"{empty}: the folder has no file; name another"
    for name in (".a.txt", "deep/.b.txt"):
        (empty / name).write_bytes(b"one")
    message = "the folder has no file but 2 hidden files; read them with --pattern '.*', or name another folder"
    assert refusal(str(empty), format) == f"{empty}: {message}"


def test_kept_files_go_into_a_new_folder(corpus, tmp_path):
    """An empty one stays: a mount point cannot be replaced, and it may be the current folder of a shell."""
    before = tree(corpus)
    (tmp_path / "empty").mkdir()
    number = (tmp_path / "empty").stat().st_ino
    for place in [tmp_path / "out", tmp_path / "empty"]:
        with files.Documents(str(corpus)) as documents, files.target(documents, str(place)) as target:
            files.write_kept(documents, [False, True, True, False], target)
            assert not place.exists() or all(re.match(r"\.lsh-\w+\.part/", name) for name in tree(place))
            target.commit()
        assert tree(place) == {name: before[name] for name in ["b.txt", "deep/c.txt.gz"]}
    assert tree(corpus) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "in", "out"]
    assert (tmp_path / "empty").stat().st_ino == number


def test_places_where_a_folder_cannot_go(corpus, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_bytes(b"")
    with files.Documents(str(corpus)) as documents:
        for place in [tmp_path / "full", tmp_path / "full" / "file", corpus / "out", corpus, files.STANDARD]:
            with pytest.raises(ValueError, match="output must"):
                files.target(documents, str(place))
        with files.Target(str(tmp_path / "file")) as target, pytest.raises(TypeError, match="FolderTarget"):
            files.write_kept(documents, [True] * 4, target)


def test_bad_files_of_a_folder(corpus, tmp_path):
    (corpus / "bad.txt").write_bytes(b"\x81")
    (corpus / "bad.gz").write_bytes(b"nonsense")
    (corpus / "marked.txt").write_bytes("one".encode("utf-16"))
    assert "marked.txt: it begins with a byte order mark of utf-16" in refusal(str(corpus), pattern="*.txt")
    (corpus / "marked.txt").unlink()
    assert "corrupt gzip" in refusal(str(corpus), encoding="cp1252")
    rejects = files.Target(str(tmp_path / "rejects"))
    with rejects, files.Documents(str(corpus), encoding="cp1252", on_bad_line="skip", rejects=rejects) as documents:
        for _ in range(2):
            ids = [record.id for record in documents.records()]
            assert ids == [b"a.md", b"b.txt", b"deep/c.txt.gz", b"deep/er/d e.txt"]
            assert documents.counts.skipped == 2
        with files.target(documents, str(tmp_path / "out")) as target:
            files.write_kept(documents, [True, False, False, True], target)
            target.commit()
        rejects.commit()
    assert set(tree(tmp_path / "out")) == {"a.md", "deep/er/d e.txt"}
    assert (tmp_path / "rejects").read_bytes() == b"bad.gz\nbad.txt\n"


@pytest.fixture
def linked(tmp_path):
    """A folder ``in``; ``outside`` has files and folders that it may link to."""
    for name in ("in/a.txt", "outside/b.txt", "outside/deep/c.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path / "in"


def ids(folder: Path, **options: object) -> list[str]:
    return [identity.decode() for identity, _ in read(str(folder), FILES, **options)]


def test_linked_files_and_folders_are_read(linked, tmp_path):
    (linked / "file.txt").symlink_to("../outside/b.txt")
    (linked / "more").symlink_to("../outside")
    assert ids(linked) == ["a.txt", "file.txt", "more/b.txt", "more/deep/c.txt"]
    (tmp_path / "link").symlink_to("in")
    assert ids(tmp_path / "link") == ids(linked)
    with files.Documents(str(linked)) as documents, files.target(documents, str(tmp_path / "out")) as target:
        files.write_kept(documents, [False, True, False, True], target)
        target.commit()
    assert tree(tmp_path / "out") == {"file.txt": b"outside/b.txt", "more/deep/c.txt": b"outside/deep/c.txt"}
    assert not (tmp_path / "out" / "file.txt").is_symlink()


@pytest.mark.parametrize("target", [".", "..", "../in"])
def test_links_that_lead_around_in_circles(linked, target):
    (linked / "around").symlink_to(target)
    (linked.parent / "outside" / "deep" / "back").symlink_to("../../in")
    expected = ["a.txt", "around/outside/b.txt", "around/outside/deep/c.txt"] if target == ".." else ["a.txt"]
    assert ids(linked) == expected


def test_a_folder_with_several_links_is_read_once(linked):
    """By its own path if there is one; else by the link whose path comes first. Folders that link each other end."""
    (linked / "deep").mkdir()
    (linked / "deep" / "d.txt").write_text("d")
    (linked / "b").symlink_to("deep")
    for name in ("d", "c"):
        (linked / name).symlink_to("../outside")
    folders = [linked.parent / "outside" / f"{number}" for number in range(12)]
    for folder in folders:
        folder.mkdir()
        (folder / "x.txt").write_text("x")
        for other in folders:
            (folder / f"to{other.name}").symlink_to(other)
    others = sorted(f"c/{number}/x.txt" for number in range(12))
    assert ids(linked) == ["a.txt", *others, "c/b.txt", "c/deep/c.txt", "deep/d.txt"]


@pytest.mark.parametrize("name", ["b.jsonl", "deep/b.jsonl"])
@pytest.mark.parametrize(("to", "words"), [("gone.jsonl", "No such file"), ("b.jsonl", "symbolic links")])
def test_a_link_that_leads_nowhere(shards, name, to, words):
    """It is the same error as by its name or a pattern; of a hidden file, or one that is not wanted, it is none."""
    folder = Path(shards(a_jsonl=b'{"text": "a"}\n', deep__c_jsonl=b'{"text": "c"}\n'))
    (folder / name).symlink_to(to)
    for named in (folder, folder / "**" / "*.jsonl", folder / name):
        with pytest.raises(OSError, match=words) as caught:
            texts(str(named))
        assert caught.value.filename == str(folder / name)
    assert texts(str(folder), pattern="[ac].jsonl") == [b"a", b"c"]
    (folder / name).rename((folder / name).with_name(".#a.jsonl"))
    assert texts(str(folder)) == [b"a", b"c"]


def test_pipes_and_sockets_of_a_folder_are_counted_in_a_note(shards, tmp_path, monkeypatch):
    folder = Path(shards(a_jsonl=b'{"text": "a"}\n'))
    os.mkfifo(folder / "b.jsonl")
    os.mkfifo(folder / ".c.jsonl")
    monkeypatch.chdir(folder)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("d.jsonl")
        result = lsh(tmp_path, "dedup", folder, "--dry-run")
    note, columns, counts = result.stderr.decode().splitlines()
    assert note == "2 special files not read: pipes, sockets or devices"
    assert columns.startswith("text: field 'text'")
    assert counts.startswith("1 document, 0 removed")
    assert "1 hidden file not read" in counts


@pytest.fixture
def shards(tmp_path):
    """A function that writes a folder of files by their names."""

    def make(**contents: bytes) -> str:
        folder = tmp_path / "shards"
        for name, data in contents.items():
            path = folder / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return str(folder)

    return make


@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv"])
def test_data_files_of_a_folder_are_shards(tmp_path, format, packed):
    """They are read like files that are named one by one, in the order of their paths; hidden files are counted."""
    data = HEADS.get(format, b"") + b"".join(DOCUMENTS[format]) + b"\n"
    folder = tmp_path / "shards"
    (folder / "deep").mkdir(parents=True)
    ending = f"{format}.{packed}".rstrip(".")
    names = [f"a.{ending}", f"b.{format}", f"deep/c.{ending}"]
    for name in names:
        (folder / name).write_bytes(data if name == names[1] else pack(data, packed))
    (folder / f".d.{format}").write_bytes(data)
    named = [str(folder / name) for name in names]
    assert read(str(folder)) == read(named)
    assert texts(str(folder)) == TEXTS[format] * 3
    with files.Documents([str(folder), named[1]]) as documents:  # the second is in the first, and is read once
        assert [file.path for file in documents.inputs] == named
        records = list(documents.records())
        assert [record.source for record in records] == [path.encode() for path in named for _ in TEXTS[format]]
        assert documents.counts.hidden == 1
    keep = [i % 2 > 0 for i in range(3 * len(TEXTS[format]))]
    place = tmp_path / f"out.{format}"
    assert kept(str(folder), keep, place) == kept(named, keep, place)


def test_no_shard_is_read_twice(shards):
    """A pattern may match a folder and files in it."""
    folder = shards(a_jsonl=b'{"text": "a"}\n', deep__b_jsonl=b'{"text": "b"}\n', deep__er__c_jsonl=b'{"text": "c"}\n')
    for pattern in ("", "/", "/**", "/*", "/**/*", "/**/*.jsonl", "*", "*/"):
        assert sorted(texts(folder + pattern)) == [b"a", b"b", b"c"]
    assert texts(f"{folder}/*/*") == [b"b", b"c"]
    assert texts(f"{folder}/*.jsonl") == [b"a"]


@pytest.mark.parametrize("other", ["b_md", "b_png"])
def test_kinds_that_are_mixed(shards, other):
    folder = shards(a_jsonl_gz=gzip.compress(b'{"text": "a"}\n'), **{other: b"x"})
    assert "shards: it contains files of several kinds: " in refusal(folder)
    assert texts(folder, pattern="*.jsonl.gz") == [b"a"]
    assert len(read(folder, FILES)) == 2


def test_files_of_spark_are_no_shards(shards):
    """Names that begin with an underscore are hidden beside data files, and documents among texts."""
    marked = {"_SUCCESS": b"", "_delta_log/0.json": b"{}"}
    folder = shards(a_jsonl=b'{"text": "a"}\n')
    for name, data in marked.items():
        (Path(folder) / name).parent.mkdir(exist_ok=True)
        (Path(folder) / name).write_bytes(data)
    with files.Documents(folder) as documents:
        assert [record.text for record in documents.records()] == [b"a"]
        assert documents.counts.hidden == 2
    assert len(read(folder, FILES)) == 3
    (Path(folder) / "a.jsonl").rename(Path(folder) / "a.txt")
    assert [identity for identity, _ in read(folder, FILES)] == [b"_SUCCESS", b"_delta_log/0.json", b"a.txt"]
    assert [identity for identity, _ in read(folder, pattern="*[ST]")] == [b"_SUCCESS"]


def test_texts_of_a_folder(shards):
    """Each file is a document: with endings of texts, numbers or no ending."""
    names = ["NEWS", "a_md", "b_html_gz", "c_py", "d_1", "e_TXT"]
    folder = shards(**{name: gzip.compress(b"x") if name.endswith("gz") else b"x" for name in names})
    assert [identity.decode() for identity, _ in read(folder)] == [name.replace("_", ".") for name in names]


def test_a_format_is_for_the_files_of_a_folder(shards):
    """The given format is used for unknown endings, and never makes each file a document."""
    folder = shards(in__a_dat=b"one\ntwo\n", in__b_dat=b"three\n") + "/in"
    message = "the ending of 'a.dat' does not say its format; give --format, such as --format jsonl, or use --format"
    assert message in refusal(folder)
    assert read(folder, FILES) == [(b"a.dat", b"one\ntwo\n"), (b"b.dat", b"three\n")]
    assert texts(folder, files.Format("txt", "")) == [b"one", b"two", b"three"]
    shutil.rmtree(folder)
    tsv = files.Format("tsv", "")
    folder = shards(part_0=b"a\tone\n", part_1_gz=gzip.compress(b"b\ttwo\n"), rest_tsv=b"c\tthree\n", more=b"d\tfour\n")
    assert read(folder, tsv) == [(b"d", b"four"), (b"a", b"one"), (b"b", b"two"), (b"c", b"three")]
    (Path(folder) / "notes.md").write_bytes(b"x\n")
    assert "'notes.md' (a text)" in refusal(folder, tsv)
    assert read(folder, files.Format("txt", ""), pattern="*.md") == [(b"1", b"x")]
    assert "'notes.md' in it is not tsv; choose files with --pattern" in refusal(folder, tsv, pattern="*.md")
