"""Sources and targets of every format and compression: what is read, and that what is kept goes out as it came in.

The expected bytes are written by hand, or by the libraries that own a format. What the command makes of them is in
test_io.py.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import io as streams
import lzma
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from running import environment  # noqa: F401 - the folder of the tests is on the path

from lsh import files
from lsh.files import compression, storage, tables

BOM = b"\xef\xbb\xbf"
COMPRESSIONS = ["", "gz", "bz2", "xz", "zst"]
DOCUMENTS = {
    "txt": [b"one\r\n", b"\n", "zwei, drü\n".encode(), b"\xff\xfe odd\n", b"one"],
    "tsv": [b"a\tone\tmore\r\n", b"a\ttwo\n", b"\t\n", b"d\t\xff\n", b"e\tfive"],
    "csv": [b'a,"one, ""1"""\r\n', b'"b","two\nlines, ""\r\n"\n', b"c,\n", b"d,\xff\n", b'a,"five"'],
    "jsonl": [b'{"id": "a", "text": "one"}\r\n', b' { "text" : "\\u00e9" } \n', b'{"text": ""}\n', b'{"text": "4"}'],
}
HEADS = {"csv": b"id,text\r\n"}
TEXTS = {
    "txt": [b"one", b"", "zwei, drü".encode(), b"\xff\xfe odd", b"one"],
    "tsv": [b"one", b"two", b"", b"\xff", b"five"],
    "csv": [b'one, "1"', b'two\nlines, "\r\n', b"", b"\xff", b"five"],
    "jsonl": [b"one", "é".encode(), b"", b"4"],
}
IDS = {
    "txt": [b"1", b"2", b"3", b"4", b"5"],
    "tsv": [b"a", b"a", b"", b"d", b"e"],
    "csv": [b"a", b"b", b"c", b"d", b"a"],
    "jsonl": [b"a", b"2", b"3", b"4"],
}


@pytest.fixture(params=COMPRESSIONS)
def packed(request):
    if request.param == "zst":
        pytest.importorskip("zstandard", reason="zstandard is not installed")
    return request.param


def pack(data: bytes, packed: str) -> bytes:
    if packed == "zst":
        zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
        return zstandard.ZstdCompressor().compress(data)
    return {"": bytes, "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[packed](data)


def unpack(data: bytes, packed: str) -> bytes:
    if packed == "zst":
        zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
        return zstandard.ZstdDecompressor().stream_reader(streams.BytesIO(data)).read()
    return {"": bytes, "gz": gzip.decompress, "bz2": bz2.decompress, "xz": lzma.decompress}[packed](data)


def read(path: Any, *arguments: Any, **options: Any) -> list[tuple[bytes, bytes | None]]:
    """The ids and texts of a source, which must be the same when it is read again."""
    with files.Documents(path, *arguments, **options) as source:
        records = [record[:2] for record in source.records()]
        assert [record[:2] for record in source.records()] == records
    return records


def texts(path: Any, *arguments: Any, **options: Any) -> list[bytes | None]:
    return [text for _, text in read(path, *arguments, **options)]


def kept(path: Any, keep: list[bool], place: Path, **options: Any) -> bytes:
    """What is written of the records to keep."""
    with files.Documents(path, **options) as source, files.target(source, str(place)) as target:
        files.write_kept(source, keep, target)
        target.commit()
    return place.read_bytes()


def refusal(path: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(files.InputError) as caught, files.Documents(path, *arguments, **options) as source:
        list(source.records())
    assert "\n" not in str(caught.value)
    return str(caught.value)


def file_of(folder: Path, name: str, data: bytes) -> str:
    (folder / name).write_bytes(data)
    return str(folder / name)


# Round trips.


@pytest.mark.parametrize("form", DOCUMENTS)
@pytest.mark.parametrize("mark", [b"", BOM])
def test_texts_and_ids(tmp_path, form, mark, packed):
    data = mark + HEADS.get(form, b"") + b"".join(DOCUMENTS[form])
    path = file_of(tmp_path, f"in.{form}.{packed}".rstrip("."), pack(data, packed))
    assert read(path) == list(zip(IDS[form], TEXTS[form], strict=True))


@pytest.mark.parametrize("form", DOCUMENTS)
@pytest.mark.parametrize("mark", [b"", BOM])
def test_kept_records_go_out_as_they_came_in(tmp_path, form, mark, packed):
    """The mark and the header go out whatever is kept; the last record has no newline where it had none."""
    lines = DOCUMENTS[form]
    head = mark + HEADS.get(form, b"")
    path = file_of(tmp_path, f"in.{form}", head + b"".join(lines))
    for number in range(2 ** len(lines)):
        keep = [bool(number >> i & 1) for i in range(len(lines))]
        place = tmp_path / f"out.{form}.{packed}".rstrip(".")
        expected = head + b"".join(line for line, stays in zip(lines, keep, strict=True) if stays)
        assert unpack(kept(path, keep, place), packed) == expected


@pytest.mark.parametrize("form", DOCUMENTS)
@pytest.mark.parametrize("head", ["", "mark", "header"])
def test_no_document_and_one(tmp_path, form, head, packed):
    start = {"": b"", "mark": BOM, "header": HEADS.get(form, b"")}[head]
    path = file_of(tmp_path, f"in.{form}.{packed}".rstrip("."), pack(start, packed))
    assert read(path) == []
    assert kept(path, [], tmp_path / f"out.{form}") == start
    data = start + (HEADS.get(form, b"") if head != "header" else b"") + DOCUMENTS[form][0]
    path = file_of(tmp_path, f"in.{form}.{packed}".rstrip("."), pack(data, packed))
    assert texts(path) == TEXTS[form][:1]
    assert kept(path, [True], tmp_path / f"out.{form}") == data


def test_the_same_bytes_each_time(tmp_path, packed):
    path = file_of(tmp_path, "in.txt", b"one\ntwo\n" * 1000)
    place = tmp_path / f"out.txt.{packed}".rstrip(".")
    first = kept(path, [True] * 2000, place)
    assert kept(path, [True] * 2000, place) == first


@pytest.mark.parametrize("form", DOCUMENTS)
def test_long_document(tmp_path, form, packed):
    """Longer than every buffer, and than what csv takes by default."""
    long = b"".join(b"%d " % (i * i) for i in range(100_000))
    line = {"txt": b"%s\n", "tsv": b"a\t%s\n", "csv": b'a,"%s"\n', "jsonl": b'{"text": "%s"}\n'}[form] % long
    data = HEADS.get(form, b"") + line + line
    path = file_of(tmp_path, f"in.{form}.{packed}".rstrip("."), pack(data, packed))
    assert texts(path) == [long] * 2
    assert kept(path, [False, True], tmp_path / f"out.{form}") == HEADS.get(form, b"") + line


@pytest.mark.parametrize("form", DOCUMENTS)
def test_line_of_100_megabytes(tmp_path, form):
    long = b"%099d " % 7 * 1_000_000
    line = {"txt": b"%s\n", "tsv": b"a\t%s\n", "csv": b'a,"%s"\n', "jsonl": b'{"text": "%s"}\n'}[form] % long
    path = file_of(tmp_path, f"in.{form}", HEADS.get(form, b"") + line)
    with files.Documents(path) as source:
        (record,) = source.records()
    assert record.text == long
    assert kept(path, [True], tmp_path / f"out.{form}") == HEADS.get(form, b"") + line
    for name in ["in", "out"]:
        (tmp_path / f"{name}.{form}").unlink()


def test_keeping_needs_a_flag_for_each_record(tmp_path):
    path = file_of(tmp_path, "in.txt", b"one\ntwo\n")
    for flags, word in [([True], "grew"), ([True] * 3, "shrank")]:
        with pytest.raises(files.InputError, match=word):
            kept(path, flags, tmp_path / "out.txt")
    assert not (tmp_path / "out.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_a_file_that_changes_is_refused(tmp_path):
    path = file_of(tmp_path, "in.txt", b"one\n")
    with files.Documents(path) as source:
        list(source.records())
        file_of(tmp_path, "in.txt", b"one\ntwo\n")
        with pytest.raises(files.InputError, match="changed"):
            list(source.records())


# Compression.


@pytest.mark.parametrize("form", ["gz", "bz2", "xz", "zst"])
def test_truncated_anywhere(tmp_path, form):
    data = pack(b"".join(b"%d and %d\n" % (i, i * i) for i in range(2000)), form)
    for size in [*range(40), *range(40, len(data) - 40, 97), *range(len(data) - 40, len(data))]:
        message = refusal(file_of(tmp_path, f"in.txt.{form}", data[:size]))
        assert f"damaged {compression.NAMES[form]}" in message


@pytest.mark.parametrize("form", ["gz", "bz2", "xz", "zst"])
def test_several_streams_are_one_file(tmp_path, form):
    path = file_of(tmp_path, f"in.txt.{form}", pack(b"one\ntw", form) + pack(b"", form) + pack(b"o\n", form))
    assert texts(path) == [b"one", b"two"]


@pytest.mark.parametrize("form", ["gz", "bz2", "xz", "zst"])
@pytest.mark.parametrize("tail", [b"and more", b"B", b"\x1f"])
def test_what_follows_a_stream_is_an_error(tmp_path, form, tail):
    assert "damaged" in refusal(file_of(tmp_path, f"in.txt.{form}", pack(b"one\n", form) + tail))


@pytest.mark.parametrize("form", ["gz", "xz"])
def test_padding_is_allowed(tmp_path, form):
    path = file_of(tmp_path, f"in.txt.{form}", pack(b"one\n", form) + bytes(200_000) + pack(b"two\n", form) + bytes(8))
    assert texts(path) == [b"one", b"two"]


@pytest.mark.parametrize("form", ["gz", "bz2", "xz", "zst"])
def test_compressed_without_saying_so(tmp_path, form):
    assert f"--format txt.{form}" in refusal(file_of(tmp_path, "in.txt", pack(b"one\n", form)))


@pytest.mark.parametrize("form", ["gz", "bz2", "xz", "zst"])
def test_little_is_unpacked_at_once(tmp_path, form):
    """64 MB of nothing, packed into some KB, comes in pieces."""
    packed = streams.BytesIO(pack(bytes(1 << 26), form))
    file = compression.unpacked(packed, form)
    assert file.read(1 << 16) == bytes(1 << 16)
    assert packed.tell() <= compression.PACKED
    assert len(file.read()) == (1 << 26) - (1 << 16)


def test_without_zstandard_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = file_of(tmp_path, "in.txt.zst", b"")
    with pytest.raises(ImportError, match=r"lsh-dedup\[io\]"):
        files.Documents(path)
    with pytest.raises(ImportError, match=r"lsh-dedup\[io\]"):
        files.Target(str(tmp_path / "out.txt.zst"))


# Columns.


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (b"headline", 0),
        (b"id,headline", 1),
        (b"headline,id", 0),
        (b"title,text", 1),
        (b"title,content,date", 1),
        (b"body,date", 0),
        (b"body,content,text", 2),
        (b'"text","a ""b"""', 0),
    ],
)
def test_default_column(tmp_path, header, found):
    row = [b"a", b"b", b"c"][: header.count(b",") + 1]
    path = file_of(tmp_path, "in.csv", header + b"\n" + b",".join(row) + b"\n")
    assert texts(path) == [row[found]]


@pytest.mark.parametrize("header", ["title,summary", "id,title,summary", "Text,Body", "id"])
def test_no_default_column(tmp_path, header):
    message = refusal(file_of(tmp_path, "in.csv", header.encode() + b"\n1,2\n"))
    assert "--field" in message
    assert all(repr(name) in message for name in header.split(","))


def test_named_columns(tmp_path):
    data = b"key,title,text,date\nk1,One,first,5\nk2,Two,second,6\n"
    comma = file_of(tmp_path, "in.csv", data)
    tab = file_of(tmp_path, "in.tsv", data.replace(b",", b"\t"))
    for path, options in [(comma, {}), (tab, {"header": True})]:
        assert read(path, **options) == [(b"1", b"first"), (b"2", b"second")]
        assert read(path, field="title", id_field="key", **options) == [(b"k1", b"One"), (b"k2", b"Two")]
        assert texts(path, field="title, text", **options) == [b"One first", b"Two second"]
        assert "'absent'" in refusal(path, field="absent", **options)
        assert "'date'" in refusal(path, id_field="absent", **options)
        assert kept(path, [False, True], tmp_path / "out", **options) == b"".join(
            Path(path).read_bytes().splitlines(True)[::2]
        )


def test_csv_without_header(tmp_path):
    two = file_of(tmp_path, "two.csv", b'a,"one, 1",x\nb,two,y\n')
    assert read(two, header=False) == [(b"a", b"one, 1"), (b"b", b"two")]
    assert kept(two, [False, True], tmp_path / "out.csv", header=False) == b"b,two,y\n"
    one = file_of(tmp_path, "one.csv", b'"one, 1"\ntwo\n')
    assert read(one, header=False) == [(b"1", b"one, 1"), (b"2", b"two")]
    assert "leave --field out" in refusal(one, header=False, field="text")


def test_a_column_that_is_there_twice(tmp_path):
    path = file_of(tmp_path, "in.csv", b"text,text,id\na,b,c\n")
    assert "'text'" in refusal(path)
    assert "'text'" in refusal(path, field="text")


def test_empty_lines_of_csv_are_no_records(tmp_path):
    path = file_of(tmp_path, "in.csv", b'\ntext\n\n\r\none\n""\n\n')
    assert texts(path) == [b"one", b""]
    assert kept(path, [False, True], tmp_path / "out.csv") == b'text\n""\n'


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"id,text\na,one\nb\nc,three\n", 3),
        (b"id,text\na,one\nb,two,2\n", 3),
        (b'id,text\na,"one\n\n"\nb,"two"2\nc,three\n', 5),
        (b"id,text\na,one\nb,two\rtwo\n", 3),
        (b'id,text\na,one\nb,"two\nc,three\n', 3),
    ],
)
def test_bad_csv(tmp_path, data, line):
    assert f"in.csv, line {line}: " in refusal(file_of(tmp_path, "in.csv", data))


def test_carriage_returns_do_not_end_records(tmp_path):
    assert "carriage return" in refusal(file_of(tmp_path, "in.csv", b"id,text\ra,one\r"))


def test_nested_fields(tmp_path):
    lines = [
        b'{"meta": {"title": "One", "key": 7}, "text": "first"}\n',
        b'{"meta.title": "Two", "meta": {"title": "no", "key": "k"}, "text": "second"}\n',
    ]
    path = file_of(tmp_path, "in.jsonl", b"".join(lines))
    assert read(path, field="meta.title", id_field="meta.key") == [(b"7", b"One"), (b"k", b"Two")]
    assert texts(path, field="meta.title,text") == [b"One first", b"Two second"]
    assert "'meta.body'" in refusal(path, field="meta.body")
    assert "'text.more'" in refusal(path, field="text.more")
    assert "--id-field" in refusal(path, id_field="key")


def test_default_field_of_json(tmp_path):
    for name in ["text", "content", "body", "headline"]:
        path = file_of(
            tmp_path, "in.jsonl", b'{"id": 1, "%s": "one"}\n{"%s": "two", "x": 1}\n' % ((name.encode(),) * 2)
        )
        assert read(path) == [(b"1", b"one"), (b"2", b"two")]
    message = refusal(file_of(tmp_path, "in.jsonl", b'{"title": "a", "date": "b"}\n'))
    assert "--field" in message
    assert "'title', 'date'" in message


def test_missing_texts(tmp_path):
    data = b'{"id": 0}\n{"text": "a", "note": ""}\n{"text": null}\n{"note": "b"}\n'
    path = file_of(tmp_path, "in.jsonl", data)
    with files.Documents(path, missing="empty") as source:
        assert [record.text for record in source.records()] == [None, b"a", None, None]
        assert source.missing == 3
    assert texts(path, field="text,note", missing="empty") == [None, b"a ", None, b"b"]
    assert "line 1" in refusal(path)
    assert "line 2: field 'text' must be a string, got null" in refusal(file_of(tmp_path, "in.jsonl", data[10:]))
    data = data[10:].replace(b'"text": null', b'"x": 1')
    assert "line 2: expected a field 'text', got 'x'" in refusal(file_of(tmp_path, "in.jsonl", data))


# Encodings.


@pytest.mark.parametrize("form", DOCUMENTS)
@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-be", "utf-32", "utf-8-sig", "cp037"])
def test_encodings(tmp_path, form, encoding):
    """Lines are found where a newline is one by itself, not half of another character."""
    words = ["naïve", "ʊĊਊ" if encoding.startswith("utf") else "Ê", "last"]
    pattern = {"txt": "{}\n", "tsv": "a\t{}\r\n", "csv": 'a,"{}"\n', "jsonl": '{{"id": "a", "text": "{}"}}\n'}[form]
    lines = [pattern.format(word).encode(encoding) for word in words]
    head = HEADS.get(form, b"").decode()
    marked = "".join([head, *map(pattern.format, words)]).encode(encoding)
    path = file_of(tmp_path, f"in.{form}", marked)
    assert texts(path, encoding=encoding) == [word.encode() for word in words]
    out = kept(path, [False, True, False], tmp_path / f"out.{form}", encoding=encoding)
    assert out == (head + pattern.format(words[1])).encode(encoding)
    assert lines[1].removeprefix("".encode(encoding)) in out


def test_text_that_is_not_of_the_encoding(tmp_path):
    path = file_of(tmp_path, "in.txt", b"one\ntwo \x81\nthree\n")
    message = refusal(path, encoding="cp1252")
    assert "line 2: expected cp1252, got byte 0x81" in message
    assert texts(path, encoding="cp1252", on_bad_line="skip") == [b"one", b"three"]


@pytest.mark.parametrize("encoding", ["klingon", "base64", "rot13", ""])
def test_unknown_encoding(tmp_path, encoding):
    with pytest.raises(ValueError, match="encoding"):
        files.Documents(file_of(tmp_path, "in.txt", b""), encoding=encoding)


# Bad lines.


@pytest.mark.parametrize(
    ("form", "data", "good", "bad"),
    [
        ("jsonl", b'nonsense\n{"text": "one"}\n{"text": 5}\n\xff\n{"text": "two"}\n{"text', [1, 4], [0, 2, 3, 5]),
        ("tsv", b"a\tone\nbad\nb\ttwo\n", [0, 2], [1]),
        ("csv", b'id,text\na,one\nb\n"b"b\nc,two\n"d,', [0, 1, 4], [2, 3, 5]),
    ],
)
def test_bad_lines_are_skipped_and_kept_aside(tmp_path, form, data, good, bad):
    """However often the source is read, the rejects hold each bad line once."""
    lines = data.splitlines(True)
    path = file_of(tmp_path, f"in.{form}", data)
    assert "line" in refusal(path)
    rejects = files.Target(str(tmp_path / "rejects"))
    with rejects, files.Documents(path, on_bad_line="skip", rejects=rejects) as source:
        next(source.records())
        for _ in range(2):
            found = [record.text for record in source.records()]
            assert [t if isinstance(t, str) else t.decode() for t in found] == ["one", "two"]
            assert source.skipped == len(bad)
        with files.target(source, str(tmp_path / "out")) as target:
            files.write_kept(source, [True, True], target)
            target.commit()
        rejects.commit()
    assert (tmp_path / "out").read_bytes() == b"".join(lines[i] for i in good)
    assert (tmp_path / "rejects").read_bytes() == b"".join(lines[i].rstrip(b"\n") + b"\n" for i in bad)


def test_truncated_text_is_read_to_its_end_or_refused(tmp_path):
    for form in ["jsonl", "csv"]:
        data = HEADS.get(form, b"") + b"".join(DOCUMENTS[form])
        for size in range(len(data)):
            path = file_of(tmp_path, f"in.{form}", data[:size])
            try:
                found = texts(path)
            except files.InputError as error:
                assert "line" in str(error)  # noqa: PT017 - a whole number of lines is no error
            else:
                whole = [len(found), max(len(found) - 1, 0)]
                assert any(found[:count] == TEXTS[form][:count] for count in whole)


# Several files.


@pytest.mark.parametrize("form", DOCUMENTS)
def test_several_files_are_one_source(tmp_path, form):
    """A last line without newline gets one where another file follows; marks and headers are those of the first."""
    lines, head = DOCUMENTS[form], HEADS.get(form, b"")
    names = [f"b.{form}", f"a.{form}.gz", f"c.{form}.xz"]
    paths = [
        file_of(tmp_path, names[0], head + b"".join(lines)),
        file_of(tmp_path, names[1], pack(BOM + head + lines[0] + lines[-1], "gz")),
        file_of(tmp_path, names[2], pack(head, "xz")),
    ]
    assert texts(paths) == [*TEXTS[form], TEXTS[form][0], TEXTS[form][-1]]
    expected = head + b"".join(lines) + b"\n" + lines[0] + lines[-1]
    assert kept(paths, [True] * (len(lines) + 2), tmp_path / f"out.{form}") == expected
    (tmp_path / f"out.{form}").unlink()
    assert texts(str(tmp_path / f"*.{form}*")) == [TEXTS[form][0], TEXTS[form][-1], *TEXTS[form]]


def test_a_document_that_looks_like_a_mark(tmp_path):
    """It is one, and gets its newline where another follows."""
    for name, data, encoding in [("a.txt", b"\xff\xfe", "latin-1"), ("b.txt", b"one\n" + BOM, "utf-8")]:
        paths = [file_of(tmp_path, name, data), file_of(tmp_path, "c.txt", b"x\n")]
        count = len(texts(paths, encoding=encoding))
        assert kept(paths, [True] * count, tmp_path / "out.txt", encoding=encoding) == data + b"\nx\n"
        flags = [False] * (count - 2) + [True] * 2
        assert kept(paths, flags, tmp_path / "out.txt", encoding=encoding) == data.split(b"\n")[-1] + b"\nx\n"


def test_a_header_without_newline_gets_one(tmp_path):
    paths = [file_of(tmp_path, "a.csv", b"id,text"), file_of(tmp_path, "b.csv", b"id,text\na,b\n")]
    assert kept(paths, [True], tmp_path / "out.csv") == b"id,text\na,b\n"


def test_what_is_wrong_before_the_damage_is_said_first(tmp_path, packed):
    if not packed:
        pytest.skip("a file that is not compressed cannot be damaged")
    good = b'{"text": "%d"}\n'
    data = pack(b"".join(good % i if i != 5 else b"bad\n" for i in range(30_000)), packed)
    path = file_of(tmp_path, f"in.jsonl.{packed}", data[:-20])
    message = refusal(path)
    if packed == "bz2":  # which unpacks nothing before the end of its only block
        assert "damaged bzip2" in message
    else:
        assert "line 6: expected a JSON object" in message


def test_running_numbers_go_on(tmp_path):
    paths = [file_of(tmp_path, name, b"one\ntwo\n") for name in ["a.txt", "b.txt"]]
    assert [identity for identity, _ in read(paths)] == [b"1", b"2", b"3", b"4"]


def test_files_that_do_not_go_together(tmp_path):
    text = file_of(tmp_path, "a.txt", b"one\n")
    table = file_of(tmp_path, "b.csv", b"id,text\n")
    other = file_of(tmp_path, "c.csv", b"id,body\n")
    assert "one format" in refusal([text, table])
    message = refusal([table, other])
    assert "c.csv" in message
    assert "'body'" in message
    assert "one folder" in refusal([str(tmp_path), str(tmp_path)])
    assert "one format" in refusal([str(tmp_path), text])
    assert "no file matches" in refusal(str(tmp_path / "*.jsonl"))
    with pytest.raises(ValueError, match="none"):
        files.Documents([])
    little, big = (file_of(tmp_path, f"{e}.txt", "\ufeffa\n".encode(f"utf-16-{e}")) for e in ["le", "be"])
    assert "utf-16-be" in refusal([little, big], encoding="utf-16")


def test_options_that_a_format_has_no_use_for(tmp_path):
    path = file_of(tmp_path, "in.txt", b"one\n")
    assert "leave --field out" in refusal(path, field="text")
    assert "header" in refusal(path, header=True)
    for options in [{"on_bad_line": "ignore"}, {"missing": "none"}]:
        with pytest.raises(ValueError, match="must be one of"):
            files.Documents(path, **options)


# Folders.


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
    with files.Documents(str(tmp_path / "in"), pattern="*.txt") as source:
        for _ in range(2):
            assert [record.id for record in source.records()] == [b"a.txt"]
            assert source.hidden == 2
    hidden = read(str(tmp_path / "in"), pattern=".*")
    assert [identity for identity, _ in hidden] == [b"..txt", b".git/b.bin", b".git/config.txt"]


def test_a_pattern_that_nothing_matches(corpus, tmp_path):
    assert "no file matches the pattern '*.html'; correct --pattern" in refusal(str(corpus), pattern="*.html")
    (tmp_path / "empty").mkdir()
    assert read(str(tmp_path / "empty")) == []


def test_a_field_that_no_record_has(tmp_path):
    """What is missing everywhere is a wrong name, even where a missing text is none."""
    path = file_of(tmp_path, "in.jsonl", b'{"id": "a", "text": "one"}\n{"id": "b", "text": "two"}\n')
    message = refusal(path, field="body", missing="empty")
    assert "line 1: expected a field 'body', got 'id', 'text'; name the text's field with --field" in message
    file_of(tmp_path, "in.jsonl", b'{"id": "a", "text": "one"}\n{"id": "b", "body": null}\n')
    assert read(path, field="body", missing="empty") == [(b"a", None), (b"b", None)]


def test_kept_files_go_into_a_new_folder(corpus, tmp_path):
    before = tree(corpus)
    (tmp_path / "empty").mkdir()
    for place in [tmp_path / "out", tmp_path / "empty"]:
        with files.Documents(str(corpus)) as source, files.target(source, str(place)) as target:
            files.write_kept(source, [False, True, True, False], target)
            assert not place.exists() or tree(place) == {}
            target.commit()
        assert tree(place) == {name: before[name] for name in ["b.txt", "deep/c.txt.gz"]}
    assert tree(corpus) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "in", "out"]


def test_an_interrupted_folder_leaves_nothing(corpus, tmp_path):
    with files.Documents(str(corpus)) as source:
        target = files.target(source, str(tmp_path / "out"))
        with pytest.raises(files.InputError, match="grew"), target:
            files.write_kept(source, [True, True], target)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_places_where_a_folder_cannot_go(corpus, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_bytes(b"")
    with files.Documents(str(corpus)) as source:
        for place in [tmp_path / "full", tmp_path / "full" / "file", corpus / "out", corpus, files.STANDARD]:
            with pytest.raises(ValueError, match="OUTPUT"):
                files.target(source, str(place))
        with files.Target(str(tmp_path / "file")) as target, pytest.raises(TypeError, match="FolderTarget"):
            files.write_kept(source, [True] * 4, target)


def test_a_folder_that_changes_is_refused(corpus):
    with files.Documents(str(corpus)) as source:
        list(source.records())
        (corpus / "new.txt").write_bytes(b"new")
        with pytest.raises(files.InputError, match="changed"):
            list(source.records())


def test_bad_files_of_a_folder(corpus, tmp_path):
    (corpus / "bad.txt").write_bytes(b"\x81")
    (corpus / "bad.gz").write_bytes(b"nonsense")
    assert "damaged gzip" in refusal(str(corpus), encoding="cp1252")
    rejects = files.Target(str(tmp_path / "rejects"))
    with rejects, files.Documents(str(corpus), encoding="cp1252", on_bad_line="skip", rejects=rejects) as source:
        for _ in range(2):
            assert [record.id for record in source.records()] == [
                b"a.md",
                b"b.txt",
                b"deep/c.txt.gz",
                b"deep/er/d e.txt",
            ]
            assert source.skipped == 2
        with files.target(source, str(tmp_path / "out")) as target:
            files.write_kept(source, [True, False, False, True], target)
            target.commit()
        rejects.commit()
    assert set(tree(tmp_path / "out")) == {"a.md", "deep/er/d e.txt"}
    assert (tmp_path / "rejects").read_bytes() == b"bad.gz\nbad.txt\n"


# Safe writing.


class Full:
    """A file on a disk that is full after some bytes."""

    def __init__(self, file: Any, room: int) -> None:
        self._file, self._room = file, room

    def write(self, data: Any) -> int:
        self._room -= len(data)
        if self._room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def full_disk(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Let what is written beside a target end after `room` bytes."""

    def opened(path: Any, mode: str = "r", *more: Any, **named: Any) -> Any:
        file = open(path, mode, *more, **named)  # noqa: SIM115 - whoever asks for it closes it
        return Full(file, room) if "x" in mode else file

    monkeypatch.setattr(storage, "open", opened, raising=False)


@pytest.mark.parametrize("room", [0, 1, 10, 2000])
def test_full_disk(tmp_path, monkeypatch, packed, room):
    """The message names the file, what was there stays, and nothing is left beside it."""
    data = b"".join(os.urandom(30).hex().encode() + b"\n" for _ in range(2000))
    path = file_of(tmp_path, "in.txt", data)
    place = tmp_path / f"out.txt.{packed}".rstrip(".")
    place.write_bytes(b"yesterday\n")
    full_disk(monkeypatch, room)
    with pytest.raises(OSError, match=r".") as caught:
        kept(path, [True] * 2000, place)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(place)
    assert place.read_bytes() == b"yesterday\n"
    assert {path.name for path in tmp_path.iterdir()} == {"in.txt", place.name}


# Tables.


def table_of(pyarrow: Any, rows: int = 10_000, **more: Any) -> Any:
    columns = {
        "id": [f"n{i}" for i in range(rows)],
        "text": [f"text {i}, été" for i in range(rows)],
        "meta": [{"title": f"title {i}", "tags": ["a", str(i)]} if i % 3 else None for i in range(rows)],
        "price": [None if i % 7 == 0 else i / 2 for i in range(rows)],
        **more,
    }
    return pyarrow.table(columns).replace_schema_metadata({"origin": "here", "pandas": "{}"})


def write_table(table: Any, path: Path, form: str) -> str:
    from pyarrow import ipc, parquet

    if form == "parquet":
        codecs = {"id": "zstd", "text": "gzip"}
        parquet.write_table(table, path, row_group_size=3000, compression={**codecs, "price": "none"})
        return str(path)
    make = ipc.new_file if form == "arrow" else ipc.new_stream
    with path.open("wb") as file, make(file, table.schema) as writer:
        writer.write_table(table, 3000)
    return str(path)


def read_table(path: Path, form: str) -> Any:
    from pyarrow import ipc, parquet

    if form == "parquet":
        return parquet.read_table(path)
    return (ipc.open_file if form == "arrow" else ipc.open_stream)(path.read_bytes()).read_all()


@pytest.fixture(params=["parquet", "arrow", "stream"])
def table_form(request):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    return request.param


def ending(form: str) -> str:
    return "parquet" if form == "parquet" else "feather" if form == "arrow" else "arrow"


def test_rows_of_a_table(tmp_path, table_form):
    import pyarrow

    table = table_of(pyarrow)
    path = write_table(table, tmp_path / f"in.{ending(table_form)}", table_form)
    assert read(path) == [(f"n{i}".encode(), f"text {i}, été".encode()) for i in range(10_000)]
    titles = texts(path, field="meta.title, text", missing="empty")
    assert titles[:2] == ["text 0, été".encode(), "title 1 text 1, été".encode()]
    assert read(path, id_field="price", field="id")[:2] == [(b"1", b"n0"), (b"0.5", b"n1")]
    assert "row 1" in refusal(path, field="meta.title")
    assert "row 1: column 'meta.title'" in refusal(path, field="text,meta.title")
    assert "'meta'" in refusal(path, field="meta")
    assert "'meta.more'" in refusal(path, field="meta.more")
    for field in ["more.title", "meta.more.title", "."]:
        assert f"expected one column '{field}', got 'id'" in refusal(path, field=field)
        assert "--id-field" in refusal(path, id_field=field)
    assert "strings or numbers" in refusal(path, id_field="meta")
    with files.Documents(path, field="meta.title", missing="empty") as source:
        assert [record.text for record in source.records()][:4] == [None, b"title 1", b"title 2", None]
        assert source.missing == 3334


def test_kept_rows_go_out_whole(tmp_path, table_form):
    """With the schema, its metadata, every column, and row groups and compression as they were."""
    import pyarrow
    from pyarrow import parquet

    table = table_of(pyarrow)
    path = write_table(table, tmp_path / f"in.{ending(table_form)}", table_form)
    keep = [i % 5 != 0 and i < 9000 for i in range(10_000)]
    place = tmp_path / f"out.{ending(table_form)}"
    first = kept(path, keep, place)
    assert kept(path, keep, place) == first
    expected = read_table(Path(path), table_form).filter(pyarrow.array(keep))
    assert read_table(place, table_form).equals(expected, check_metadata=True)
    assert {b"origin": b"here"}.items() <= expected.schema.metadata.items()
    if table_form == "parquet":
        metadata = parquet.read_metadata(place)
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        assert [group.num_rows for group in groups] == [2400, 2400, 2400]
        columns = [groups[0].column(i) for i in range(metadata.num_columns)]
        codecs = {column.path_in_schema: column.compression for column in columns}
        assert codecs["id"] == "ZSTD"
        assert codecs["text"] == "GZIP"
        assert codecs["price"] == "UNCOMPRESSED"


@pytest.mark.parametrize("keep", [[], [False], [True]])
def test_tables_of_no_row_and_one(tmp_path, table_form, keep):
    import pyarrow

    table = table_of(pyarrow, 1).slice(0, len(keep))
    path = write_table(table, tmp_path / f"in.{ending(table_form)}", table_form)
    assert len(read(path)) == len(keep)
    place = tmp_path / f"out.{ending(table_form)}"
    kept(path, keep, place)
    expected = read_table(Path(path), table_form).slice(0, sum(keep))
    assert read_table(place, table_form).equals(expected, check_metadata=True)


def test_kinds_of_columns(tmp_path, table_form):
    """Large strings, bytes and dictionaries are texts; a stream and a file have room for them all."""
    import pyarrow

    words = ["one", "two", "one", None]
    for kind in [pyarrow.large_string(), pyarrow.binary(), pyarrow.dictionary(pyarrow.int32(), pyarrow.string())]:
        table = pyarrow.table({"text": pyarrow.array(words, pyarrow.string()).cast(kind), "id": [5, None, 7, 8]})
        path = write_table(table, tmp_path / f"in.{ending(table_form)}", table_form)
        found = read(path, missing="empty")
        assert [identity for identity, _ in found] == [b"5", b"2", b"7", b"8"]
        assert [t.decode() if isinstance(t, bytes) else t for _, t in found] == ["one", "two", "one", None]
        place = tmp_path / f"out.{ending(table_form)}"
        kept(path, [True, False, True, True], place)
        assert read_table(place, table_form).to_pylist() == [table.to_pylist()[i] for i in (0, 2, 3)]


def test_several_tables(tmp_path, table_form):
    import pyarrow

    table = table_of(pyarrow, 100)
    paths = [write_table(table, tmp_path / f"{i}.{ending(table_form)}", table_form) for i in range(2)]
    assert len(read(paths)) == 200
    place = tmp_path / f"out.{ending(table_form)}"
    kept(paths, [True] * 200, place)
    same = read_table(Path(paths[0]), table_form)
    assert read_table(place, table_form).equals(pyarrow.concat_tables([same, same]), check_metadata=True)
    other = write_table(table.drop_columns(["price"]), tmp_path / f"3.{ending(table_form)}", table_form)
    assert "columns of the first file" in refusal([*paths, other])


def test_truncated_table(tmp_path, table_form):
    import pyarrow

    path = Path(write_table(table_of(pyarrow, 300), tmp_path / f"in.{ending(table_form)}", table_form))
    data = path.read_bytes()
    for size in [*range(20), *range(20, len(data), max(len(data) // 60, 1)), *range(len(data) - 12, len(data))]:
        path.write_bytes(data[:size])
        message = refusal(str(path))
        assert "damaged" in message
        assert "in." in message


@pytest.mark.parametrize("room", [0, 500, 60_000])
def test_full_disk_for_a_table(tmp_path, monkeypatch, table_form, room):
    import pyarrow

    path = write_table(table_of(pyarrow), tmp_path / f"in.{ending(table_form)}", table_form)
    place = tmp_path / f"out.{ending(table_form)}"
    place.write_bytes(b"yesterday\n")
    full_disk(monkeypatch, room)
    with pytest.raises(OSError, match=r".") as caught:
        kept(path, [True] * 10_000, place)
    assert caught.value.errno == errno.ENOSPC
    assert place.read_bytes() == b"yesterday\n"
    assert len(list(tmp_path.iterdir())) == 2


def test_large_row_groups_are_written_in_parts(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    monkeypatch.setattr(tables, "MAX_GATHERED", 100_000)
    table = pyarrow.table({"text": ["words " * 10 + str(i) for i in range(20_000)]})
    parquet.write_table(table, tmp_path / "in.parquet")
    kept(str(tmp_path / "in.parquet"), [True] * 20_000, tmp_path / "out.parquet")
    assert parquet.read_metadata(tmp_path / "out.parquet").num_row_groups == 5
    assert parquet.read_table(tmp_path / "out.parquet").equals(table)


def test_options_of_text_are_not_for_tables(tmp_path, table_form):
    import pyarrow

    path = write_table(table_of(pyarrow, 1), tmp_path / f"in.{ending(table_form)}", table_form)
    assert "header" in refusal(path, header=True)
    assert "--on-bad-line" in refusal(path, on_bad_line="skip")
    assert "--field" in refusal(path, field="absent")


def test_odd_columns(tmp_path, table_form):
    """A name that is there twice is refused; a column of nulls has missing texts."""
    import pyarrow

    path = tmp_path / f"in.{ending(table_form)}"
    twice = pyarrow.table([pyarrow.array(["a"]), pyarrow.array(["b"])], names=["text", "text"])
    assert "one column 'text'" in refusal(write_table(twice, path, table_form))
    nulls = write_table(pyarrow.table({"text": pyarrow.nulls(2), "id": ["x", "y"]}), path, table_form)
    assert "row 1" in refusal(nulls)
    assert read(nulls, missing="empty") == [(b"x", None), (b"y", None)]
    assert "no column at all" in refusal(write_table(pyarrow.table({}), path, table_form))


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for name in ["in.parquet", "in.arrow", "in.feather"]:
        with pytest.raises(ImportError, match=r"lsh-dedup\[io\]"):
            files.Documents(file_of(tmp_path, name, b""))
