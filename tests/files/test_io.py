"""What the command reads and writes, byte for byte: formats, line ends, marks, compression, bad lines, safe writing.

Lines end at \\n only, kept lines are written as they came, a bad line is named by its number, and an output is there
complete or not at all. The texts that the command saw show in which lines it calls equal.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import stat
import zlib
from pathlib import Path

import pytest
from running import contents, done, lsh, refused

FORMATS = ["txt", "tsv", "jsonl"]
A = b"the old observatory dome turns once more after nineteen years"
B = b"bakers walked out on wednesday and the shelves stayed empty"
C = b"a llama trotted six kilometres along the ring road on friday"
BOM = b"\xef\xbb\xbf"


def line_of(form: str, doc_id: object, text: bytes) -> bytes:
    if form == "txt":
        return text
    if form == "tsv":
        return str(doc_id).encode() + b"\t" + text
    return json.dumps({"id": doc_id, "text": text.decode()}).encode()


def dedup(folder: Path, data: bytes, form: str, *options: object) -> tuple[bytes, list[list[bytes]]]:
    """What is kept of `data` and the fields of the removed lines."""
    (folder / f"in.{form}").write_bytes(data)
    done(folder, "dedup", f"in.{form}", "-o", f"out.{form}", "--removed", "removed.tsv", *options)
    removed = (folder / "removed.tsv").read_bytes().split(b"\n")
    assert removed.pop() == b""
    return (folder / f"out.{form}").read_bytes(), [line.split(b"\t") for line in removed]


def bad_line(folder: Path, data: bytes, form: str, line: int, *options: object) -> str:
    """The message about line `line` of `data`, after its beginning."""
    (folder / f"in.{form}").write_bytes(data)
    (folder / f"out.{form}").write_bytes(b"yesterday\n")
    message = refused(folder, "dedup", f"in.{form}", "-o", f"out.{form}", *options)
    start = f"lsh: error: in.{form}, line {line}: "
    assert message.startswith(start), message
    return message[len(start) :]


# Formats.


@pytest.mark.parametrize("form", FORMATS)
def test_copies_are_removed(tmp_path, form):
    lines = [line_of(form, i, text) + b"\n" for i, text in enumerate([A, B, A, C, B], 11)]
    kept, removed = dedup(tmp_path, b"".join(lines), form)
    assert kept == lines[0] + lines[1] + lines[3]
    ids = [b"3", b"1", b"5", b"2"] if form == "txt" else [b"13", b"11", b"15", b"12"]
    assert removed == [[ids[0], ids[1], b"1.0"], [ids[2], ids[3], b"1.0"]]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("in.{}", "out.{}"),
        ("in.{}.gz", "out.{}"),
        ("in.{}", "out.{}.gz"),
        ("in.{}.gz", "out.{}.gz"),
        ("in.{}", "out"),
        ("in.{}.gz", "out.gz"),
        ("in.{}", "out.part"),
    ],
)
def test_names_decide_about_compression(tmp_path, form, source, target):
    source, target = source.format(form), target.format(form)
    lines = [line_of(form, i, text) + b"\n" for i, text in enumerate([A, B, A])]
    data = b"".join(lines)
    (tmp_path / source).write_bytes(gzip.compress(data) if source.endswith(".gz") else data)
    done(tmp_path, "dedup", source, "-o", target)
    written = (tmp_path / target).read_bytes()
    if target.endswith(".gz"):
        assert written[:3] == b"\x1f\x8b\x08"
        assert written[3] == 0
        assert written[4:8] == bytes(4)
        written = gzip.decompress(written)
    assert written == lines[0] + lines[1]


@pytest.mark.parametrize("form", FORMATS)
def test_format_wins_over_the_name(tmp_path, form):
    lines = [line_of(form, i, text) + b"\n" for i, text in enumerate([A, B, A])]
    other = "tsv" if form == "txt" else "txt"
    for name in ["in.dat", "in", f"in.{other}", "in.gz"]:
        (tmp_path / name).write_bytes(b"".join(lines))
        done(tmp_path, "dedup", name, "-o", f"out.{form}", "--format", form)
        assert (tmp_path / f"out.{form}").read_bytes() == lines[0] + lines[1]
    (tmp_path / "in.dat").write_bytes(gzip.compress(b"".join(lines)))
    done(tmp_path, "dedup", "in.dat", "-o", f"out.{form}.gz", "--format", f"{form}.gz")
    assert gzip.decompress((tmp_path / f"out.{form}.gz").read_bytes()) == lines[0] + lines[1]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_empty_file(tmp_path, form, suffix):
    (tmp_path / f"in.{form}{suffix}").write_bytes(gzip.compress(b"") if suffix else b"")
    done(tmp_path, "dedup", f"in.{form}{suffix}", "-o", f"out.{form}", "--removed", "removed.tsv")
    assert (tmp_path / f"out.{form}").read_bytes() == b""
    assert (tmp_path / "removed.tsv").read_bytes() == b""


def test_file_in_several_compressed_parts(tmp_path):
    (tmp_path / "in.txt.gz").write_bytes(gzip.compress(A + b"\n" + B) + gzip.compress(b"\n" + A + b"\n"))
    done(tmp_path, "dedup", "in.txt.gz", "-o", "out.txt")
    assert (tmp_path / "out.txt").read_bytes() == A + b"\n" + B + b"\n"


@pytest.mark.parametrize("damage", ["truncated", "garbage", "changed", "plain", "tail"])
def test_damaged_gzip(tmp_path, damage):
    data = bytearray(gzip.compress(b"".join(b"line %d of many\n" % i for i in range(5000)), mtime=0))
    if damage == "truncated":
        del data[-2000:]
    elif damage == "garbage":
        data[500:520] = bytes(20)
    elif damage == "changed":
        data[-6] ^= 1  # the checksum
    elif damage == "plain":
        data = bytearray(b"a text that nobody compressed\n")
    else:
        data += b"and more"
    (tmp_path / "in.txt.gz").write_bytes(data)
    (tmp_path / "out.txt").write_bytes(b"yesterday\n")
    message = refused(tmp_path, "dedup", "in.txt.gz", "-o", "out.txt")
    assert "in.txt.gz" in message
    assert "gzip" in message


# Lines, byte for byte.


@pytest.mark.parametrize("form", FORMATS)
def test_carriage_return_is_no_part_of_the_text(tmp_path, form):
    lines = [line_of(form, 1, A) + b"\r\n", line_of(form, 2, B) + b"\r\n", line_of(form, 3, A) + b"\n"]
    kept, removed = dedup(tmp_path, b"".join(lines), form)
    assert kept == lines[0] + lines[1]
    assert removed == [[b"3", b"1", b"1.0"]]


@pytest.mark.parametrize("form", FORMATS)
def test_last_line_without_newline(tmp_path, form):
    lines = [line_of(form, 1, A) + b"\n", line_of(form, 2, A) + b"\n", line_of(form, 3, B)]
    assert dedup(tmp_path, b"".join(lines), form)[0] == lines[0] + lines[2]
    lines = [line_of(form, 1, A) + b"\n", line_of(form, 2, B) + b"\n", line_of(form, 3, A)]
    assert dedup(tmp_path, b"".join(lines), form)[0] == lines[0] + lines[1]


@pytest.mark.parametrize("form", FORMATS)
def test_byte_order_mark_is_no_part_of_the_text(tmp_path, form):
    lines = [BOM + line_of(form, 1, A) + b"\n", line_of(form, 2, B) + b"\n", line_of(form, 3, A) + b"\n"]
    kept, removed = dedup(tmp_path, b"".join(lines), form)
    assert kept == lines[0] + lines[1]
    assert removed == [[b"3", b"1", b"1.0"]]


def test_byte_order_mark_elsewhere_is_text(tmp_path):
    kept, _ = dedup(tmp_path, A + b"\n" + BOM + A + b"\n", "txt", "--threshold", "1")
    assert kept == A + b"\n" + BOM + A + b"\n"


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r", "\0"])
def test_only_newline_ends_a_line(tmp_path, odd):
    text = f"one half of it{odd}the other half of it".encode()
    kept, removed = dedup(tmp_path, text + b"\n" + text + b"\n" + A + b"\n", "txt")
    assert kept == text + b"\n" + A + b"\n"
    assert removed == [[b"2", b"1", b"1.0"]]
    kept, removed = dedup(tmp_path, b"x\t" + text + b"\ny\t" + text + b"\n", "tsv")
    assert kept == b"x\t" + text + b"\n"
    assert removed == [[b"y", b"x", b"1.0"]]


def test_bytes_that_are_not_utf8(tmp_path):
    lines = [b"\xff\xfe caf\xe9 " + A + b"\n", A + b" \xed\xa0\x80\n", bytes(range(128, 256)) + b"\n"]
    kept, removed = dedup(tmp_path, b"".join([*lines, lines[2]]), "txt", "--threshold", "1")
    assert kept == b"".join(lines)
    assert removed == [[b"4", b"3", b"1.0"]]
    kept, removed = dedup(tmp_path, b"\xe9\t\xff" + A + b"\n\xe8\t\xff" + A + b"\n", "tsv")
    assert kept == b"\xe9\t\xff" + A + b"\n"
    assert removed == [[b"\xe8", b"\xe9", b"1.0"]]


def test_empty_documents_are_kept(tmp_path):
    data = b"\n\n" + A + b"\n\n\r\n" + A + b"\n\n"
    kept, removed = dedup(tmp_path, data, "txt")
    assert kept == b"\n\n" + A + b"\n\n\r\n\n"
    assert removed == [[b"6", b"3", b"1.0"]]
    data = b"1\t\n2\t\n3\t\n"
    assert dedup(tmp_path, data, "tsv") == (data, [])
    data = b'{"text": ""}\n{"text": ""}\n'
    assert dedup(tmp_path, data, "jsonl") == (data, [])


def test_texts_shorter_than_the_shingle(tmp_path):
    assert dedup(tmp_path, b"yes\nno\nyes\n", "txt") == (b"yes\nno\n", [[b"3", b"1", b"1.0"]])


def test_long_lines(tmp_path):
    long = b"".join(b"%d " % (i * i) for i in range(100_000))
    kept, removed = dedup(tmp_path, long + b"\n" + A + b"\n" + long[:-100] + b"\n", "txt")
    assert kept == long + b"\n" + A + b"\n"
    assert removed[0][:2] == [b"3", b"1"]
    assert 0.99 < float(removed[0][2]) < 1


# Columns.


def test_one_column(tmp_path):
    kept, removed = dedup(tmp_path, A + b"\n" + B + b"\n\n" + A + b"\n", "tsv")
    assert kept == A + b"\n" + B + b"\n\n"
    assert removed == [[b"4", b"1", b"1.0"]]


def test_further_columns_are_ignored_and_kept(tmp_path):
    lines = [b"a\t" + A + b"\tRome\t450\n", b"b\t" + B + b"\n", b"c\t" + A + b"\t\t\t\n"]
    kept, removed = dedup(tmp_path, b"".join(lines), "tsv")
    assert kept == lines[0] + lines[1]
    assert removed == [[b"c", b"a", b"1.0"]]


def test_quotes_mean_nothing(tmp_path):
    lines = [b'1\t"' + A + b"\n", b"2\t" + B + b'"\n', b'3\t"' + A + b"\n"]
    assert dedup(tmp_path, b"".join(lines), "tsv")[0] == lines[0] + lines[1]


def test_equal_and_empty_ids(tmp_path):
    lines = [b"same\t" + A + b"\n", b"same\t" + B + b"\n", b"\t" + A + b"\n"]
    kept, removed = dedup(tmp_path, b"".join(lines), "tsv")
    assert kept == lines[0] + lines[1]
    assert removed == [[b"", b"same", b"1.0"]]


def test_line_without_a_tab(tmp_path):
    assert "tab" in bad_line(tmp_path, b"1\t" + A + b"\n2\t" + B + b"\n" + C + b"\n", "tsv", 3)
    assert "tab" in bad_line(tmp_path, b"1\t" + A + b"\n\n", "tsv", 2)


def test_line_with_a_tab_in_a_file_of_one_column(tmp_path):
    assert "tab" in bad_line(tmp_path, A + b"\n" + B + b"\n3\t" + C + b"\n", "tsv", 3)


# JSON lines.


def test_field(tmp_path):
    lines = [b'{"body": "%s", "text": 5}\n' % A, b'{"body": "%s"}\n' % B, b'{"id": "x", "body": "%s"}\n' % A]
    kept, removed = dedup(tmp_path, b"".join(lines), "jsonl", "--field", "body")
    assert kept == lines[0] + lines[1]
    assert removed == [[b"x", b"1", b"1.0"]]


@pytest.mark.parametrize(
    ("doc_id", "written"),
    [
        (b'"a-7"', b"a-7"),
        (b"7", b"7"),
        (b"-7", b"-7"),
        (b'""', b""),
        ('"été"'.encode(), "été".encode()),
        (b'"\\u00e9"', "é".encode()),
        (b"12345678901234567890123", b"12345678901234567890123"),
        (b"0.5", b"0.5"),
    ],
)
def test_json_ids(tmp_path, doc_id, written):
    lines = [b'{"text": "%s"}\n' % A, b'{"id": %s, "text": "%s"}\n' % (doc_id, A)]
    assert dedup(tmp_path, b"".join(lines), "jsonl") == (lines[0], [[written, b"1", b"1.0"]])


def test_json_text_is_what_the_string_means(tmp_path):
    """Escapes are undone; layout, order of keys and white space do not count."""
    lines = [
        b'{"id": 1, "text": "caf\\u00e9 \\ud83d\\ude00 ' + A + b'"}\n',
        '  { "more": [1, {"text": null}], "text" : "café 😀 '.encode() + A + b'", "id" : 2 }  \r\n',
    ]
    assert dedup(tmp_path, b"".join(lines), "jsonl") == (lines[0], [[b"2", b"1", b"1.0"]])


def test_json_text_with_newlines_nul_and_lone_surrogates(tmp_path):
    for inside in [b"\\n", b"\\u0000", b"\\ud800", b"\\t", b"\\u2028", b"\xe2\x80\xa8", b"\\r"]:
        lines = [b'{"text": "%s%s%s"}\n' % (A, inside, B)] * 2
        assert dedup(tmp_path, b"".join(lines), "jsonl") == (lines[0], [[b"2", b"1", b"1.0"]])


GOOD = b'{"id": 1, "text": "good"}\n'


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"", []),
        (b"   ", []),
        (b"plain words", []),
        (b"{", []),
        (b'{"text": "a"} {"text": "b"}', []),
        (b'{"text": "a",}', []),
        (b"{'text': 'a'}", []),
        (b'{"text": "a\tb"}', []),
        (b'["text"]', ["object"]),
        (b'"text"', ["object"]),
        (b"null", ["object"]),
        (b"5", ["object"]),
        (b"{}", ["text"]),
        (b'{"Text": "a"}', ["text"]),
        (b'{"body": "a"}', ["text"]),
        (b'{"text": null}', ["text", "string"]),
        (b'{"text": 5}', ["text", "string"]),
        (b'{"text": ["a"]}', ["text", "string"]),
        (b'{"text": true}', ["text", "string"]),
        (b'{"id": [1], "text": "a"}', ["id"]),
        (b'{"id": {}, "text": "a"}', ["id"]),
        (b'{"id": true, "text": "a"}', ["id"]),
        (b'{"text": "caf\xe9"}', ["UTF-8"]),
        (b'{"text": "\xed\xa0\x80"}', ["UTF-8"]),
        (b"\xff", ["UTF-8"]),
        (b'\xff\xfe{\0"\0', ["UTF-8"]),
        (b'{"text": "a", "deep": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", []),
        (b'{"text": "a", "deep": ' + b'{"a":' * 200_000 + b"1" + b"}" * 200_000 + b"}", []),
        (b'{"text": "a", "id": ' + b"9" * 10_000 + b"}", []),
        (b'{"text": "a', []),
        (b"\0", []),
        (BOM + b'{"text": "a"}', []),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_bad_json(tmp_path, line, words):
    message = bad_line(tmp_path, GOOD + GOOD + line + b"\n" + GOOD, "jsonl", 3)
    for word in words:
        assert word in message
    assert len(message) < 500


def test_missing_field_names_the_field(tmp_path):
    message = bad_line(tmp_path, b'{"body": "a"}\n', "jsonl", 1, "--field", "content")
    assert "content" in message
    assert "--field" in message


def test_message_about_many_fields_is_short(tmp_path):
    record = {f"field number {i}": i for i in range(5000)}
    assert len(bad_line(tmp_path, json.dumps(record).encode() + b"\n", "jsonl", 1)) < 1000


def test_utf16_is_refused(tmp_path):
    bad_line(tmp_path, '{"text": "a"}\n'.encode("utf-16"), "jsonl", 1)


def test_message_is_one_printable_line(tmp_path):
    """Neither what a line holds nor a name may add lines or terminal commands to the message."""
    bad_line(tmp_path, b'{"text": 5, "\x1b[31m": 1}\n', "jsonl", 1)
    (tmp_path / "in\n\x1b[31m.jsonl").write_bytes(b"nonsense\n")
    message = refused(tmp_path, "dedup", "in\n\x1b[31m.jsonl", "-o", "new.jsonl")
    assert "\x1b" not in message


# Safe writing.


def test_existing_output_is_replaced(tmp_path):
    (tmp_path / "out.txt").write_bytes(b"yesterday, and longer than today\n" * 100)
    (tmp_path / "removed.tsv").write_bytes(b"yesterday, and longer than today\n" * 100)
    assert dedup(tmp_path, A + b"\n" + A + b"\n", "txt") == (A + b"\n", [[b"2", b"1", b"1.0"]])
    assert set(contents(tmp_path)) == {"in.txt", "out.txt", "removed.tsv"}


def test_permissions_of_a_new_file_are_the_usual_ones(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    dedup(tmp_path, A + b"\n", "txt")
    usual = stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    assert stat.S_IMODE((tmp_path / "out.txt").stat().st_mode) == usual
    assert stat.S_IMODE((tmp_path / "removed.tsv").stat().st_mode) == usual


def test_output_into_another_folder(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "in.txt").write_bytes(A + b"\n")
    done(tmp_path, "dedup", "in.txt", "-o", "results/out.txt", "--removed", tmp_path / "results" / "removed.tsv")
    assert contents(tmp_path / "results") == {"out.txt": A + b"\n", "removed.tsv": b""}


def test_named_pipe_as_output_is_not_replaced(tmp_path):
    """A device or pipe given as output is written to or refused; it stays what it is."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        (tmp_path / "in.txt").write_bytes(A + b"\n")
        result = lsh(tmp_path, "dedup", "in.txt", "-o", "pipe")
        assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
        if result.returncode == 0:
            assert os.read(reader, 1000) == A + b"\n"
        else:
            assert result.returncode == 2
    finally:
        os.close(reader)


def test_compressed_output_is_ordinary_gzip(tmp_path):
    (tmp_path / "in.txt").write_bytes(A + b"\n" + B + b"\n")
    done(tmp_path, "dedup", "in.txt", "-o", "out.txt.gz")
    data = (tmp_path / "out.txt.gz").read_bytes()
    unzip = zlib.decompressobj(wbits=31)
    assert unzip.decompress(data) == A + b"\n" + B + b"\n"
    assert unzip.eof
    assert unzip.unused_data == b""


# Every format by the command.


@pytest.mark.parametrize("packed", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_csv_of_every_compression(tmp_path, packed):
    if packed == ".zst":
        zst = pytest.importorskip("zstandard", reason="zstandard is not installed")
    pack = {
        "": bytes,
        ".gz": gzip.compress,
        ".bz2": bz2.compress,
        ".xz": lzma.compress,
        ".zst": lambda data: zst.ZstdCompressor().compress(data),
    }[packed]
    head, rows = b"key,body\r\n", [b'"a\n1","%s\n%s"\r\n' % (A, B), b"b,%s\r\n" % C, b'c,"%s\n%s"\r\n' % (A, B)]
    (tmp_path / f"in.csv{packed}").write_bytes(pack(head + b"".join(rows)))
    done(tmp_path, "dedup", f"in.csv{packed}", "-o", "out.csv", "--field", "body", "--removed", "removed.tsv")
    assert (tmp_path / "out.csv").read_bytes() == head + rows[0] + rows[1]
    assert (tmp_path / "removed.tsv").read_bytes() == b"3\t1\t1.0\n"


@pytest.mark.parametrize("name", ["in.parquet", "in.feather"])
def test_tables_by_the_command(tmp_path, name):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import feather, parquet

    read = parquet.read_table if name == "in.parquet" else feather.read_table
    write = parquet.write_table if name == "in.parquet" else feather.write_feather
    table = pyarrow.table({"text": [A.decode(), B.decode(), A.decode()], "id": [7, 8, 9], "more": [None, [1], [2, 3]]})
    write(table, str(tmp_path / name))
    place = name.replace("in", "out")
    done(tmp_path, "dedup", name, "-o", place, "--removed", "removed.tsv")
    assert read(str(tmp_path / place)).to_pylist() == table.to_pylist()[:2]
    assert (tmp_path / "removed.tsv").read_bytes() == b"9\t7\t1.0\n"


def test_mixed_quotes_of_csv_are_a_bad_line(tmp_path):
    assert "CSV" in bad_line(tmp_path, b'text\n"a" b\n', "csv", 2)
