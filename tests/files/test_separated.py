"""CSV, tab-separated lines and plain lines: columns, headers, quotes and line ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from reading import BOM, file_of, kept, read, refusal, texts


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


# Lines: only a newline ends them, and bytes that are not UTF-8 stay as they are.


@pytest.mark.parametrize(
    "inside", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r", "\0", "\ufeff"]
)
def test_only_a_newline_ends_a_line(tmp_path, inside):
    text = f"one half{inside}the other half".encode()
    path = file_of(tmp_path, "in.txt", text + b"\n" + text)
    assert texts(path) == [text, text]
    assert kept(path, [True, False], tmp_path / "out.txt") == text + b"\n"
    path = file_of(tmp_path, "in.tsv", b"x\t" + text + b"\ny\t" + text + b"\r\n")
    assert read(path) == [(b"x", text), (b"y", text)]


def test_bytes_that_are_not_utf8(tmp_path):
    lines = [b"\xff\xfe caf\xe9", b"a \xed\xa0\x80", bytes(range(128, 256))]
    assert texts(file_of(tmp_path, "in.txt", b"\n".join(lines))) == lines
    assert read(file_of(tmp_path, "in.tsv", b"\xe9\t\xff\n\xe8\t\xff\n")) == [(b"\xe9", b"\xff"), (b"\xe8", b"\xff")]


def test_a_byte_order_mark_counts_at_the_start_only(tmp_path):
    path = file_of(tmp_path, "in.txt", BOM + b"one\n" + BOM + b"two\n")
    assert texts(path) == [b"one", BOM + b"two"]


# Tab-separated lines without a header.


def test_one_column_of_tsv(tmp_path):
    path = file_of(tmp_path, "in.tsv", b"one\ntwo\n\none\n")
    assert read(path) == [(b"1", b"one"), (b"2", b"two"), (b"3", b""), (b"4", b"one")]


def test_further_columns_of_tsv_are_ignored_and_kept(tmp_path):
    lines = [b"a\tone\tRome\t450\n", b"b\ttwo\n", b"c\tthree\t\t\t\n"]
    path = file_of(tmp_path, "in.tsv", b"".join(lines))
    assert read(path) == [(b"a", b"one"), (b"b", b"two"), (b"c", b"three")]
    assert kept(path, [True, False, True], tmp_path / "out.tsv") == lines[0] + lines[2]


def test_quotes_mean_nothing_in_tsv(tmp_path):
    path = file_of(tmp_path, "in.tsv", b'1\t"one\n2\ttwo"\n"3"\t"\n')
    assert read(path) == [(b"1", b'"one'), (b"2", b'two"'), (b'"3"', b'"')]


def test_equal_and_empty_ids(tmp_path):
    path = file_of(tmp_path, "in.tsv", b"same\tone\nsame\ttwo\n\tthree\n")
    assert [identity for identity, _ in read(path)] == [b"same", b"same", b""]


@pytest.mark.parametrize(
    ("data", "line", "problem"),
    [
        (b"1\tone\n2\ttwo\nthree\n", 3, "expected an id, a tab and a text, as in line 1, got no tab"),
        (b"1\tone\n\n", 2, "expected an id, a tab and a text, as in line 1, got no tab"),
        (b"one\ntwo\n3\tthree\n", 3, "expected no tab, as in line 1, got an id, a tab and a text"),
    ],
)
def test_bad_tsv(tmp_path, data, line, problem):
    assert f"in.tsv, line {line}: {problem}; correct the line" in refusal(file_of(tmp_path, "in.tsv", data))
