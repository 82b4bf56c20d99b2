"""CSV, tab-separated lines and plain lines: columns, headers, quotes and line ends."""

import csv
from pathlib import Path

import pytest
from reading import BOM, file_of, kept, read, refusal, texts


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (b"headline", 0),
        (b"id,headline", 1),
        (b"title,content,date", 1),
        (b"body,content,text", 2),
        (b'"text","a ""b"""', 0),
    ],
)
def test_default_column(tmp_path, header, found):
    row = [b"a", b"b", b"c"][: header.count(b",") + 1]
    path = file_of(tmp_path, "in.csv", header + b"\n" + b",".join(row) + b"\n")
    assert texts(path) == [row[found]]


def test_no_default_column(tmp_path):
    for header in ("title,summary", "id,title,summary", "Text,Body", "id"):
        message = refusal(file_of(tmp_path, "in.csv", header.encode() + b"\n1,2\n"))
        assert all(name in message for name in ("--field", *map(repr, header.split(","))))


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
        lines = Path(path).read_bytes().splitlines(True)
        assert kept(path, [False, True], tmp_path / "out", **options) == lines[0] + lines[2]


def test_csv_without_header_and_with_empty_lines(tmp_path):
    two = file_of(tmp_path, "two.csv", b'a,"one, 1",x\nb,two,y\n')
    assert read(two, header=False) == [(b"a", b"one, 1"), (b"b", b"two")]
    assert kept(two, [False, True], tmp_path / "out.csv", header=False) == b"b,two,y\n"
    one = file_of(tmp_path, "one.csv", b'"one, 1"\ntwo\n')
    assert read(one, header=False) == [(b"1", b"one, 1"), (b"2", b"two")]
    assert "there is no header; use --header, or the number of a column" in refusal(one, header=False, field="text")
    path = file_of(tmp_path, "in.csv", b'\ntext\n\n\r\none\n""\n\n')
    assert texts(path) == [b"one", b""]
    assert kept(path, [False, True], tmp_path / "out.csv") == b'text\n""\n'


@pytest.mark.parametrize(
    ("name", "data", "line", "problem"),
    [
        ("in.csv", b"id,text\na,one\nb,two,2\n", 3, ""),
        ("in.csv", b'id,text\na,"one\n\n"\nb,"two"2\nc,three\n', 5, ""),
        ("in.csv", b"id,text\na,one\nb,two\rtwo\n", 3, ""),
        ("in.csv", b'id,text\na,one\nb,"two\nc,three\n', 3, "not CSV (a quote is not closed)"),
        ("in.tsv", b"1\tone\n2\ttwo\nthree\n", 3, "expected 2 columns or more, as in line 1, got 1"),
        ("in.tsv", b"one\ntwo\n3\tthree\n", 3, "expected 1 column, as in line 1, got 2"),
    ],
)
def test_the_line_of_a_bad_row_is_named(tmp_path, name, data, line, problem):
    limit = csv.field_size_limit()
    message = refusal(file_of(tmp_path, name, data))
    assert csv.field_size_limit() == limit
    assert f"{name}, line {line}: {problem}" in message
    assert message.endswith("; fix the line or use --on-bad-line skip")


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
    path = file_of(tmp_path, "in.txt", b"\n".join(lines))
    assert texts(path, encoding="utf-8") == lines
    assert "begins with a byte order mark of utf-16; use --encoding utf-16" in refusal(path)
    assert read(file_of(tmp_path, "in.tsv", b"\xe9\t\xff\n\xe8\t\xff\n")) == [(b"\xe9", b"\xff"), (b"\xe8", b"\xff")]
    assert texts(file_of(tmp_path, "in.txt", BOM + b"one\n" + BOM + b"two\n")) == [b"one", BOM + b"two"]


# The text column: by its number, with another delimiter, and by the first line.


def test_columns_by_their_numbers(tmp_path):
    data = b"7\tnews\tfirst\tx\n8\tnews\tsecond\n"
    path = file_of(tmp_path, "in.tsv", data)
    assert read(path, field="3") == [(b"7", b"first"), (b"8", b"second")]
    assert read(path, field="3,2", id_field="none") == [(b"1", b"first news"), (b"2", b"second news")]
    assert read(path, field="1") == [(b"1", b"7"), (b"2", b"8")]
    assert read(path, id_field="3") == [(b"first", b"news"), (b"second", b"news")]
    assert read(path, id_field="none") == [(b"1", b"news"), (b"2", b"news")]
    message = "in.tsv, line 2: expected 4 columns or more, as in line 1, got 3; fix the line or use --on-bad-line skip"
    assert message in refusal(path, field="4")
    assert texts(path, field="4", on_bad_line="skip") == [b"x"]
    assert "line 1: --field is 5, and the line has 4 columns" in refusal(path, field="5")
    one = file_of(tmp_path, "one.tsv", b"first\nsecond\n")
    assert read(one, field="1") == read(one, id_field="none") == [(b"1", b"first"), (b"2", b"second")]
    assert "give --field" in refusal(one, id_field="1")
    two = file_of(tmp_path, "two.csv", b"first,1\nsecond,2\n")
    assert read(two, header=False, id_field="2") == [(b"1", b"first"), (b"2", b"second")]


def test_columns_of_a_header_by_their_numbers(tmp_path):
    """A name wins over a number; columns with equal or empty names have numbers."""
    path = file_of(tmp_path, "in.csv", b"id,section,text,text,,3\na,b,c,d,e,f\n")
    found = {"1": b"a", "2": b"b", "4": b"d", "5": b"e", "3": b"f", "6": b"f", "section, 4": b"b d"}
    for field, text in found.items():
        assert texts(path, field=field) == [text]
    assert read(path, field="section", id_field="5") == [(b"e", b"b")]
    assert read(path, field="section", id_field="none") == [(b"1", b"b")]
    for field in ("7", "0", "9" * 5000, "\u00b2", "absent"):
        assert "no column" in refusal(path, field=field)
    expected = "columns 3 and 4 are both 'text'; choose one by its number, such as --field 3"
    for field in (None, "text"):
        assert expected in refusal(path, field=field)
    two = file_of(tmp_path, "two.csv", b"key,words\na,b\n")
    assert read(two, id_field="1") == [(b"a", b"b")]


@pytest.mark.parametrize("by", [";", "|", "\t", "a", " ", "\x01"])
def test_delimiters(tmp_path, by):
    rows = [["id", "text"], ["7", 'one, "1";'], ["8", "two\r\nlines"]]
    mark = by.encode()
    lines = [mark.join([b'"%s"' % cell.replace('"', '""').encode() for cell in row]) + b"\n" for row in rows]
    path = file_of(tmp_path, "in.csv", b"".join(lines))
    options = {"delimiter": by, "field": "2", "id_field": "1"}
    assert read(path, **options) == [(b"7", b'one, "1";'), (b"8", b"two\r\nlines")]
    assert kept(path, [False, True], tmp_path / "out.csv", **options) == lines[0] + lines[2]
    path = file_of(tmp_path, "in.tsv", b'7%s"1,"2\n8%s9"\n"6"%s"\n' % (mark, mark, mark))
    assert read(path, delimiter=by) == [(b"7", b'"1,"2'), (b"8", b'9"'), (b'"6"', b'"')]  # quotes mean nothing
    path = file_of(tmp_path, "u.tsv", f"7{by}Ċ\n".encode("utf-16"))
    assert read(path, delimiter=by, encoding="utf-16") == [(b"7", "Ċ".encode())]


@pytest.mark.parametrize("given", ["", "ab", "é", '"', "\n", "\r", "\0", r"\x"])
def test_delimiters_that_are_none(tmp_path, given):
    with pytest.raises(ValueError, match=r"^delimiter must be one ASCII character"):
        texts(file_of(tmp_path, "in.csv", b"text\na\n"), delimiter=given)


@pytest.mark.parametrize(
    ("name", "line", "typed"),
    [
        ("in.csv", b"id;section;text\n1;a;b\n", "';'"),
        ("in.csv", b"id;title, subtitle;text\n1;a, b;c\n", "';'"),
        ("in.csv", b'"id";"text, long"\n"1";"a, b"\n', "';'"),
        ("in.csv", b"\n\r\nid\ttext\n1\ta\n", "tab"),
        ("in.tsv", b"id,text\n1,a\n", "','"),
        ("in.tsv", b"section;TEXT\n1;a\n", "';'"),
    ],
)
def test_another_delimiter_is_seen(tmp_path, name, line, typed):
    path = file_of(tmp_path, name, line)
    for options in ({}, {"on_bad_line": "skip"}, {"encoding": "latin-1"}, {"header": True}):
        assert f"separated by {typed}; use --delimiter {typed}, or " in refusal(path, **options)
    own = "," if name == "in.csv" else "\t"
    assert len(texts(path, delimiter=own, header=False, field="1", on_bad_line="skip")) <= 2
    other = typed.strip("'")
    assert len(texts(path, delimiter=other, header=True, field="2")) == 1


def test_no_other_delimiter(tmp_path):
    """Delimiters in a quoted cell, and in cells after the first, are text."""
    for data in (b'"a; b"\nc\n', b'1,"a; b"\n2,c\n', b"1,a; b | c\n2,d\n", b'"a\nb; c"\n"d"\n'):
        assert len(texts(file_of(tmp_path, "in.csv", data), header=False)) == 2
    assert len(texts(file_of(tmp_path, "in.tsv", b"a; b, c | d\ne\n"))) == 2


@pytest.mark.parametrize("header", [b"id\tsection\ttext", b"Text", b'"ID"\t"words"', b"\turl", b"a\t title \tb"])
def test_a_header_is_seen(tmp_path, header):
    path = file_of(
        tmp_path, "in.tsv", BOM + header + b"\r\n" + b"\t".join([b"7", b"a", b"b"][: 1 + header.count(b"\t")])
    )
    for options in ({}, {"on_bad_line": "skip"}, {"field": "1"}):
        message = refusal(path, **options)
        assert "in.tsv, line 1: the first line looks like a header: " in message
        assert message.endswith("; use --header, or --no-header if it is data")
    assert len(texts(path, header=False)) == 2
    assert len(texts(path, header=True, field="1")) == 1
    with_it = file_of(tmp_path, "a.tsv", b"7\ta\n")
    assert "in.tsv, line 1: the first line looks like" in refusal([with_it, path])
