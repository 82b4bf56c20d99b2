"""Behaviour that all text formats share: kept records, bad lines, encodings, several files, options; the command."""

import re
from pathlib import Path
from typing import Any

import pytest
from reading import BOM, DOCUMENTS, HEADS, IDS, RECORDS, TEXTS, file_of, kept, pack, read, refusal, texts
from running import done, refused

from lsh import files


@pytest.mark.parametrize("format", DOCUMENTS)
@pytest.mark.parametrize("mark", [b"", BOM])
def test_texts_and_ids(tmp_path, format, mark, packed):
    data = mark + HEADS.get(format, b"") + b"".join(DOCUMENTS[format])
    path = file_of(tmp_path, f"in.{format}.{packed}".rstrip("."), pack(data, packed))
    assert read(path) == list(zip(IDS[format], TEXTS[format], strict=True))


def test_compressed_json_is_lines_of_json(tmp_path):
    """A plain file of JSON is mostly one value."""
    path = file_of(tmp_path, "in.json.gz", pack(b"".join(DOCUMENTS["jsonl"]), "gz"))
    assert read(path) == list(zip(IDS["jsonl"], TEXTS["jsonl"]))
    assert "the ending of its name must say its format" in refusal(file_of(tmp_path, "in.json", b"[]"))


@pytest.mark.few(4)
@pytest.mark.parametrize("format", DOCUMENTS)
@pytest.mark.parametrize("count", [15_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_long_document(tmp_path, format, packed, count):
    """The document is longer than every buffer, and than the default field limit of csv."""
    long = b"".join(b"%d " % (i * i) for i in range(count))
    line = RECORDS[format].format(long.decode()).encode()
    data = HEADS.get(format, b"") + line + line
    path = file_of(tmp_path, f"in.{format}.{packed}".rstrip("."), pack(data, packed))
    assert texts(path) == [long] * 2
    assert kept(path, [False, True], tmp_path / f"out.{format}") == HEADS.get(format, b"") + line


@pytest.mark.parametrize("format", DOCUMENTS)
@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-be", "utf-32", "utf-8-sig", "cp037"])
@pytest.mark.parametrize("size", [4, 5, 1 << 20])
def test_encodings(tmp_path, monkeypatch, format, encoding, size):
    """A line ends at a newline, not at a byte of a newline within another character, in blocks of any size."""
    monkeypatch.setattr(files.blocks, "READ_SIZE", size)
    words = ["naïve", "ĊĀਊĀ" if encoding.startswith("utf") else "Ê", "", "last"]
    pattern = RECORDS[format]
    lines = [pattern.format(word).encode(encoding) for word in words]
    head = HEADS.get(format, b"").decode()
    marked = "".join([head, *map(pattern.format, words)]).removesuffix("\n").encode(encoding)
    path = file_of(tmp_path, f"in.{format}", marked)
    assert texts(path, encoding=encoding) == [word.encode() for word in words]
    out = kept(path, [False, True, False, False], tmp_path / f"out.{format}", encoding=encoding)
    assert out == (head + pattern.format(words[1])).encode(encoding)
    assert lines[1].removeprefix("".encode(encoding)) in out


def test_text_that_is_not_of_the_encoding_and_unknown_encodings(tmp_path):
    path = file_of(tmp_path, "in.txt", b"one\ntwo \x81\nthree\n")
    message = refusal(path, encoding="cp1252")
    assert "line 2: not cp1252: byte 0x81; fix the line or use --on-bad-line skip" in message
    assert texts(path, encoding="cp1252", on_bad_line="skip") == [b"one", b"three"]
    for encoding in ("klingon", "base64", "rot13", ""):
        with pytest.raises(ValueError, match="encoding"):
            files.Documents(path, encoding=encoding)


@pytest.mark.parametrize(
    ("format", "data", "good", "bad"),
    [
        ("jsonl", b'nonsense\n{"text": "one"}\n{"text": 5}\n\xff\n{"text": "two"}\n{"text', [1, 4], [0, 2, 3, 5]),
        ("tsv", b"a\tone\nbad\nb\ttwo\n", [0, 2], [1]),
        ("csv", b'id,text\na,one\nb\n"b"b\nc,two\n"d,', [0, 1, 4], [2, 3, 5]),
    ],
)
def test_bad_lines_are_skipped_and_kept_aside(tmp_path, format, data, good, bad):
    """The rejects file holds each bad line once, even if the source is read several times."""
    lines = data.splitlines(True)
    path = file_of(tmp_path, f"in.{format}", data)
    assert "line" in refusal(path)
    rejects = files.Target(str(tmp_path / "rejects"))
    with rejects, files.Documents(path, on_bad_line="skip", rejects=rejects) as documents:
        next(documents.records())
        for _ in range(2):
            found = [record.text for record in documents.records()]
            assert [t if isinstance(t, str) else t.decode() for t in found] == ["one", "two"]
            assert documents.counts.skipped == len(bad)
        with files.target(documents, str(tmp_path / "out")) as target:
            files.write_kept(documents, [True, True], target)
            target.commit()
        rejects.commit()
    assert (tmp_path / "out").read_bytes() == b"".join(lines[i] for i in good)
    assert (tmp_path / "rejects").read_bytes() == b"".join(lines[i].rstrip(b"\n") + b"\n" for i in bad)


def test_truncated_text_is_read_to_its_end_or_refused(tmp_path):
    for format in ["jsonl", "csv"]:
        data = HEADS.get(format, b"") + b"".join(DOCUMENTS[format])
        for size in range(len(data)):
            path = file_of(tmp_path, f"in.{format}", data[:size])
            try:
                found = texts(path)
            except files.InputError as error:
                assert "line" in str(error)  # noqa: PT017 - a whole number of lines is no error
            else:
                whole = [len(found), max(len(found) - 1, 0)]
                assert any(found[:count] == TEXTS[format][:count] for count in whole)


@pytest.mark.parametrize("format", DOCUMENTS)
def test_several_files_are_one_source(tmp_path, format):
    """A last line without newline gets one if another file follows; mark and header are those of the first with any."""
    lines, head = DOCUMENTS[format], HEADS.get(format, b"")
    contents = {
        f"0.{format}": b"",
        f"b.{format}": head + b"".join(lines),
        f"a.{format}.gz": pack(BOM + head + lines[0] + lines[-1], "gz"),
        f"c.{format}.xz": pack(head, "xz"),
    }
    paths = [file_of(tmp_path, name, data) for name, data in contents.items()]
    expected = head + b"".join(lines) + b"\n" + lines[0] + lines[-1]
    for some in (paths, paths[1:], [*paths[1:], paths[0]]):
        assert texts(some) == [*TEXTS[format], TEXTS[format][0], TEXTS[format][-1]]
        assert kept(some, [True] * (len(lines) + 2), tmp_path / f"out.{format}") == expected
        (tmp_path / f"out.{format}").unlink()
    assert texts(str(tmp_path / f"*.{format}*")) == [TEXTS[format][0], TEXTS[format][-1], *TEXTS[format]]


def test_a_document_that_looks_like_a_mark(tmp_path):
    """It is a document, and gets a newline if another one follows."""
    for name, data, encoding in [("a.txt", b"\xff\xfe", "latin-1"), ("b.txt", b"one\n" + BOM, "utf-8")]:
        paths = [file_of(tmp_path, name, data), file_of(tmp_path, "c.txt", b"x\n")]
        count = len(texts(paths, encoding=encoding))
        assert kept(paths, [True] * count, tmp_path / "out.txt", encoding=encoding) == data + b"\nx\n"
        flags = [False] * (count - 2) + [True] * 2
        assert kept(paths, flags, tmp_path / "out.txt", encoding=encoding) == data.split(b"\n")[-1] + b"\nx\n"


def test_files_that_do_not_go_together(tmp_path):
    text = file_of(tmp_path, "a.txt", b"one\n")
    table = file_of(tmp_path, "b.csv", b"id,text\n")
    other = file_of(tmp_path, "c.csv", b"id,body\n")
    assert "one format" in refusal([text, table])
    message = refusal([table, other])
    assert "c.csv" in message
    assert "'body'" in message
    (tmp_path / "texts").mkdir()
    file_of(tmp_path / "texts", "a.md", b"one\n")
    assert "name this folder only" in refusal([str(tmp_path / "texts"), str(tmp_path / "texts")])
    assert "a.txt: it is txt, and" in refusal([str(tmp_path / "texts"), text])
    assert "no file matches" in refusal(str(tmp_path / "*.jsonl"))
    with pytest.raises(ValueError, match="none"):
        files.Documents([])
    little, big = (file_of(tmp_path, f"{e}.txt", "\ufeffa\n".encode(f"utf-16-{e}")) for e in ["le", "be"])
    assert "utf-16-be" in refusal([little, big], encoding="utf-16")


def test_a_message_is_one_printable_line(tmp_path):
    """Lines and names of files cannot add newlines or terminal commands to the message."""
    file_of(tmp_path, "in.jsonl", b'{"text": 5, "\x1b[31m": 1}\n')
    assert refused(tmp_path, "dedup", "in.jsonl", "-o", "new.jsonl").startswith("lsh: error: in.jsonl, line 1: ")
    file_of(tmp_path, "in\n\x1b[31m.jsonl", b"nonsense\n")
    assert "\x1b" not in refused(tmp_path, "dedup", "in\n\x1b[31m.jsonl", "-o", "new.jsonl")


def test_the_format_of_the_page_is_a_format(tmp_path, monkeypatch):
    """docs/extending.md has the class of a whole format, and names the tables that it has to be entered into."""
    page = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(source, names)
    reader = names["BarSeparated"]
    monkeypatch.setitem(files.documents.READERS, reader.format, reader)
    monkeypatch.setitem(files.records.LINES, reader.format, reader.format)
    monkeypatch.setattr(files.records, "FORMATS", (*files.records.FORMATS, reader.format))
    path = file_of(tmp_path, "in.bars.gz", pack("1|one\n2|drü|x\n3\n".encode(), "gz"))
    with pytest.raises(files.InputError, match="line 3: expected a bar between the id and the text; fix the line"):
        read(path)
    assert read(path, on_bad_line="skip") == [(b"1", b"one"), (b"2", "drü|x".encode())]
    done(tmp_path, "dedup", path, "-o", "out.bars", "--on-bad-line", "skip", "--encoding", "latin-1")
    assert (tmp_path / "out.bars").read_bytes() == "1|one\n2|drü|x\n".encode()


ROWS = {
    "txt": "a line",
    "tsv": "7\ta line",
    "csv": '7,"a\nline"',
    "jsonl": '{"text": "a line"}',
    "json": '{"text": "\\u0061"}',
}


@pytest.mark.parametrize("ends", [[], ["\r\n"], ["\n"], ["\r\n", "\n"]], ids=repr)
@pytest.mark.parametrize("form", ROWS)
def test_a_missing_end_of_line_is_that_of_the_line_before(tmp_path, form, ends):
    row, format = ROWS[form], "jsonl" if form == "json" else form
    head = HEADS.get(format, b"").decode()
    first = head + "".join(row + end for end in ends) + row
    paths = [
        file_of(tmp_path, f"{name}.{format}", data.encode()) for name, data in (("a", first), ("b", f"{head}{row}\r\n"))
    ]
    end = ends[-1] if ends else "\r\n" if head else "\n"
    assert kept(paths, [True] * (len(ends) + 2), tmp_path / "out").decode() == f"{first}{end}{row}\r\n"
