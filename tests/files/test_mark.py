"""Fields that `lsh dedup` adds: --mark, the kept document and the similarity; --add-copies, how many it stands for."""

import csv
import gzip
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from reading import read_table, write_records
from running import done, json_lines, refused

A = "the ferry left the harbour at nine with two hundred passengers and a brass band on board"
B = "growers in the valley expect a poor year for pears since the frost came late in the spring"
TEXTS = [A, B, A, A + "!", B, "a text of its own"]
KEPT = [None, None, 0, 0, 1, None]


def marked(folder: Path, name: str, *options: str) -> bytes:
    done(folder, "dedup", name, "-o", f"out.{name}", "--mark", "-q", *options)
    return (folder / f"out.{name}").read_bytes()


@pytest.mark.parametrize("ids", [[f"d\u00e9{i}" for i in range(6)], [10 * i for i in range(6)], None])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_of_json(tmp_path, ids, end):
    """Without the added fields, each line has the bytes that it had; an id keeps its type."""
    records = [{"text": text} if ids is None else {"id": ids[i], "text": text} for i, text in enumerate(TEXTS)]
    lines = [json.dumps(record, ensure_ascii=False) + (" " if i % 2 else "") for i, record in enumerate(records)]
    data = end.join(lines).encode()
    (tmp_path / "a.jsonl").write_bytes(data)
    written = marked(tmp_path, "a.jsonl", "--max-memory", "50MB")
    found = [json.loads(line) for line in written.splitlines()]
    names = list(range(1, 7)) if ids is None else ids
    assert [one["kept_id"] for one in found] == [None if kept is None else names[kept] for kept in KEPT]
    assert [one["similarity"] for one in found] == [None, None, 1.0, pytest.approx(81 / 82), 1.0, None]
    for one in found:
        value = json.dumps(one["kept_id"], ensure_ascii=True)
        added = f', "kept_id": {value}, "similarity": {json.dumps(one["similarity"])}'.encode()
        assert written.count(added) >= 1
        written = written.replace(added, b"", 1)
    assert written == data


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_columns(tmp_path, form, encoding):
    target = io.StringIO()
    writer = csv.writer(target, delimiter="," if form == "csv" else "\t")
    writer.writerow(["id", "text"])
    names = [f"d,{i}" if form == "csv" else f"d{i}" for i in range(6)]
    writer.writerows([names[i], text + (' "so"\nto say' if form == "csv" else "")] for i, text in enumerate(TEXTS))
    (tmp_path / f"a.{form}").write_bytes(target.getvalue().encode(encoding))
    options = [*(["--header"] if form == "tsv" else []), *(["--encoding", encoding] if encoding != "utf-8" else [])]
    written = marked(tmp_path, f"a.{form}", *options).decode(encoding)
    rows = list(csv.reader(io.StringIO(written, newline=""), delimiter="," if form == "csv" else "\t"))
    before = list(csv.reader(io.StringIO(target.getvalue(), newline=""), delimiter="," if form == "csv" else "\t"))
    assert [row[:2] for row in rows] == before
    assert rows[0][2:] == ["kept_id", "similarity"]
    assert [row[2] for row in rows[1:]] == ["" if kept is None else names[kept] for kept in KEPT]
    assert [bool(row[3]) for row in rows[1:]] == [kept is not None for kept in KEPT]
    assert written.count("\r\n") == target.getvalue().count("\r\n")


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize("ids", [[f"d{i}" for i in range(6)], [10 * i for i in range(6)], None])
def test_rows(tmp_path, form, ids):
    rows = [{"text": text} if ids is None else {"id": ids[i], "text": text} for i, text in enumerate(TEXTS)]
    write_records(tmp_path / f"a.{form}", rows, group=2)
    marked(tmp_path, f"a.{form}")
    found = read_table(tmp_path / f"out.a.{form}")
    names = list(range(1, 7)) if ids is None else ids
    assert found.select(list(rows[0])).to_pylist() == rows
    assert found["kept_id"].to_pylist() == [None if kept is None else names[kept] for kept in KEPT]
    assert found["similarity"].null_count == 3


def test_a_folder_of_shards_and_references(tmp_path):
    """Each input has an output; `side` says where the kept document is. Bad lines are left out."""
    (tmp_path / "in").mkdir()
    (tmp_path / "old.jsonl").write_text(json.dumps({"id": "o", "text": B}) + "\n")
    for number in range(2):
        lines = [json.dumps({"id": f"{number}-{i}", "text": text}) for i, text in enumerate(TEXTS[:2])]
        (tmp_path / "in" / f"{number}.jsonl.gz").write_bytes(gzip.compress("\n".join([*lines, "bad", ""]).encode()))
    options = ["--mark", "--against", "old.jsonl", "--on-bad-line", "skip", "-q", "--removed", "removed.tsv"]
    done(tmp_path, "dedup", "in", "-o", "out/", *options)
    found = [record for number in range(2) for record in records_of(tmp_path / "out" / f"{number}.jsonl.gz")]
    assert [(one["id"], one["kept_id"], one["side"]) for one in found] == [
        ("0-0", None, None),
        ("0-1", "o", "old"),
        ("1-0", "0-0", "new"),
        ("1-1", "o", "old"),
    ]
    assert len((tmp_path / "removed.tsv").read_text().splitlines()) == 3


def records_of(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return read_table(path).to_pylist()
    if path.suffix == ".csv":
        return list(csv.DictReader(io.StringIO(path.read_text())))
    return json_lines(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_copies(tmp_path, form):
    """Kept records say for how many they stand, alone or after the other fields; no record changes otherwise."""
    write_records(tmp_path / f"a.{form}", [{"id": i, "text": text} for i, text in enumerate(TEXTS)])
    done(tmp_path, "dedup", f"a.{form}", "-o", f"plain.{form}", "-q")
    done(tmp_path, "dedup", f"a.{form}", "-o", f"out.{form}", "--add-copies", "-q")
    marked(tmp_path, f"a.{form}", "--add-copies")
    found = [records_of(tmp_path / f"{name}.{form}") for name in ("out", "out.a")]
    copies = [3, 2, None, None, None, 1]
    if form == "csv":
        copies = ["" if one is None else str(one) for one in copies]
    assert [one["copies"] for one in found[0]] == [one for one in copies if one]
    assert [one["copies"] for one in found[1]] == copies
    assert list(found[1][0]) == ["id", "text", "kept_id", "similarity", "copies"]
    if form == "jsonl":
        added, plain = ((tmp_path / f"{name}.jsonl").read_bytes() for name in ("out", "plain"))
        assert re.sub(rb', "copies": \d', b"", added) == plain


def test_what_has_no_place_for_fields_and_bytes_of_other_encodings(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n{"text": "\\"kept_id\\""}\n{"text": "b", "kept_id": 1}\n')
    error = refused(tmp_path, "dedup", "a.jsonl", "-o", "b.jsonl", "--mark", "--field", "text")
    assert "a.jsonl: record 3: it has a field 'kept_id'" in error
    text = "a text of some length"
    (tmp_path / "n.csv").write_bytes(f"id,text\n\u20ac,{text}\n2,{text}\n".encode("cp1252"))
    assert b"2,a text of some length,\x80,1.0" in marked(tmp_path, "n.csv", "--encoding", "cp1252")
    # Bytes of one character in two ways, as in cp932, stay as they are.
    text = A.encode() + b"\x87\x90\xfa\x54"
    (tmp_path / "a.csv").write_bytes(b"id,text\r\n1,%b\r\n2,%b" % (text, text))
    expected = b"id,text,kept_id,similarity\r\n1,%b,,\r\n2,%b,1,1.0" % (text, text)
    assert marked(tmp_path, "a.csv", "--encoding", "cp932") == expected


def test_ids_that_the_format_cannot_hold(tmp_path):
    (tmp_path / "old.jsonl").write_text(json.dumps({"id": "a;\ud800", "text": A}) + "\n")
    (tmp_path / "a.tsv").write_text(f"1;{A}\n")
    options = ("--against", "old.jsonl", "--delimiter", ";")
    error = refused(tmp_path, "dedup", "a.tsv", "-o", "b.tsv", "--mark", *options)
    assert "the kept document, 'a;\\ud800', has the delimiter ';' in it" in error
    (tmp_path / "a.csv").write_text(f"id;text\n1;{A}\n")
    assert rb';"a;\ud800";1.0;old' in marked(tmp_path, "a.csv", *options)


@pytest.mark.parametrize(
    ("fields", "is_number"),
    [
        ('"id": 8, "text": "%s"', True),
        ('"id": "8", "text": "%s"', False),
        ('"text": "%s", "id": -8', True),
        ('"id": {"id": 8}, "text": "%s"', None),
        ('"meta": {"id": "8"}, "text": "%s"', True),
        ('"id": 8, "text": "%s", "id": "9"', False),
        ('"\\u0069d": "8", "text": "%s"', False),
        ('"id": null, "text": "%s"', True),
    ],
)
def test_the_type_of_an_id_is_that_of_the_record(tmp_path, fields, is_number):
    (tmp_path / "a.jsonl").write_text(f'{{"id": 7, "text": "{A}"}}\n {{ {fields % A} }} \n')
    if is_number is None:
        assert "field 'id' must be a string or a number" in refused(tmp_path, "dedup", "a.jsonl", "-o", "b", "--mark")
    else:
        found = json.loads(marked(tmp_path, "a.jsonl").splitlines()[1])
        assert found["kept_id"] == (7 if is_number else "7")


def test_ids_of_other_types(tmp_path):
    """Ids that are not UTF-8, and references with other ids, are written."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"id": pyarrow.array([b"\xff1", b"b"]), "text": [A, A]}), tmp_path / "a.parquet")
    marked(tmp_path, "a.parquet")
    assert parquet.read_table(tmp_path / "out.a.parquet")["kept_id"].to_pylist() == [None, b"\xff1"]
    for kind in (pyarrow.int8(), pyarrow.null()):  # the ids are the numbers of the rows
        ids = pyarrow.array([None] * 200, kind)
        parquet.write_table(pyarrow.table({"id": ids, "text": [B] * 199 + [A]}), tmp_path / "n.parquet")
        parquet.write_table(pyarrow.table({"id": ids[:1], "text": [A]}), tmp_path / "n2.parquet")
        done(tmp_path, "dedup", "n.parquet", "n2.parquet", "-o", "out.n.parquet", "--mark", "-q")
        assert parquet.read_table(tmp_path / "out.n.parquet")["kept_id"].to_pylist()[-2:] == [None, 200]
    parquet.write_table(pyarrow.table({"id": [1, 2], "text": [A, B]}), tmp_path / "a.parquet")
    parquet.write_table(pyarrow.table({"id": ["old"], "text": [A]}), tmp_path / "old.parquet")
    (tmp_path / "out.a.parquet").unlink()
    marked(tmp_path, "a.parquet", "--against", "old.parquet")
    assert parquet.read_table(tmp_path / "out.a.parquet")["kept_id"].to_pylist() == ["old", None]


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl"])
def test_a_column_that_exists_is_an_error_before_the_work(tmp_path, name):
    write_records(tmp_path / name, [{"text": A, "similarity" if name.endswith("csv") else "kept_id": 1}])
    if name.endswith("jsonl"):
        (tmp_path / name).write_text('{"text": "a text", "kept\\u005fid": 1}\n')
    error = refused(tmp_path, "dedup", name, "--dry-run", "--mark", "--add-copies", "--field", "text")
    field = "similarity" if name.endswith("csv") else "kept_id"
    assert f"it has a field '{field}', which --mark adds; rename it" in error
    if name.endswith("jsonl"):
        (tmp_path / name).write_text('bad\n{"text": "a text", "copies": 1}\n')
        error = refused(tmp_path, "dedup", name, "--dry-run", "--add-copies", "--on-bad-line", "skip")
        assert "line 2: it has a field 'copies', which --add-copies adds; rename it" in error
