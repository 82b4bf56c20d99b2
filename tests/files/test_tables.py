"""Parquet and Arrow IPC: rows are documents, and kept rows are written whole."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import Any

import pytest
from full_disk import full_disk
from reading import file_of, kept, read, refusal, texts

from lsh import files
from lsh.files import tables


def table_of(pyarrow: Any, rows: int = 10_000, **more: Any) -> Any:
    columns = {
        "id": [f"n{i}" for i in range(rows)],
        "text": [f"text {i}, été" for i in range(rows)],
        "meta": [{"title": f"title {i}", "tags": ["a", str(i)]} if i % 3 else None for i in range(rows)],
        "price": [None if i % 7 == 0 else i / 2 for i in range(rows)],
        **more,
    }
    return pyarrow.table(columns).replace_schema_metadata({"origin": "here", "pandas": "{}"})


def write_table(table: Any, path: Path, format: str) -> str:
    from pyarrow import ipc, parquet

    if format == "parquet":
        codecs = {"id": "zstd", "text": "gzip"}
        parquet.write_table(table, path, row_group_size=3000, compression={**codecs, "price": "none"})
        return str(path)
    make = ipc.new_file if format == "arrow" else ipc.new_stream
    with path.open("wb") as file, make(file, table.schema) as writer:
        writer.write_table(table, 3000)
    return str(path)


def read_table(path: Path, format: str) -> Any:
    from pyarrow import ipc, parquet

    if format == "parquet":
        return parquet.read_table(path)
    return (ipc.open_file if format == "arrow" else ipc.open_stream)(path.read_bytes()).read_all()


@pytest.fixture(params=["parquet", "arrow", "stream"])
def table_format(request):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    return request.param


def ending(format: str) -> str:
    return "parquet" if format == "parquet" else "feather" if format == "arrow" else "arrow"


def test_rows_of_a_table(tmp_path, table_format):
    import pyarrow

    table = table_of(pyarrow)
    path = write_table(table, tmp_path / f"in.{ending(table_format)}", table_format)
    assert read(path) == [(f"n{i}".encode(), f"text {i}, été".encode()) for i in range(10_000)]
    titles = texts(path, field="meta.title, text", missing="empty")
    assert titles[:2] == ["text 0, été".encode(), "title 1 text 1, été".encode()]
    assert read(path, id_field="price", field="id")[:2] == [(b"1", b"n0"), (b"0.5", b"n1")]
    assert "row 1" in refusal(path, field="meta.title")
    assert "row 1: column 'meta.title'" in refusal(path, field="text,meta.title")
    assert "'meta'" in refusal(path, field="meta")
    assert "'meta.more'" in refusal(path, field="meta.more")
    for field in ["more.title", "meta.more.title", "."]:
        assert f"no column '{field}' among 'id'" in refusal(path, field=field)
        assert "--id-field" in refusal(path, id_field=field)
    assert "strings or numbers" in refusal(path, id_field="meta")
    with files.Documents(path, field="meta.title", missing="empty") as documents:
        assert [record.text for record in documents.records()][:4] == [None, b"title 1", b"title 2", None]
        assert documents.missing == 3334


def test_kept_rows_go_out_whole(tmp_path, table_format):
    """Columns, schema, metadata, row groups and compression stay the same."""
    import pyarrow
    from pyarrow import parquet

    table = table_of(pyarrow)
    path = write_table(table, tmp_path / f"in.{ending(table_format)}", table_format)
    keep = [i % 5 != 0 and i < 9000 for i in range(10_000)]
    place = tmp_path / f"out.{ending(table_format)}"
    first = kept(path, keep, place)
    assert kept(path, keep, place) == first
    expected = read_table(Path(path), table_format).filter(pyarrow.array(keep))
    assert read_table(place, table_format).equals(expected, check_metadata=True)
    assert {b"origin": b"here"}.items() <= expected.schema.metadata.items()
    if table_format == "parquet":
        metadata = parquet.read_metadata(place)
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        assert [group.num_rows for group in groups] == [2400, 2400, 2400]
        columns = [groups[0].column(i) for i in range(metadata.num_columns)]
        codecs = {column.path_in_schema: column.compression for column in columns}
        assert codecs["id"] == "ZSTD"
        assert codecs["text"] == "GZIP"
        assert codecs["price"] == "UNCOMPRESSED"


def test_columns_by_their_numbers(tmp_path, table_format):
    import pyarrow

    table = pyarrow.table({"id": [7], "more": ["a"], "text": ["b"], "2": ["c"]})
    path = write_table(table, tmp_path / f"in.{ending(table_format)}", table_format)
    found = {"2": b"c", "3": b"b", "4": b"c", "3, more": b"b a"}
    assert {field: texts(path, field=field)[0] for field in found} == found
    assert read(path, id_field="4") == [(b"c", b"b")]
    assert read(path, id_field="none") == [(b"1", b"b")]
    assert "no column '5' among" in refusal(path, field="5")
    with files.Documents(path, id_field="1") as documents:
        list(documents.records())
        assert list(map(str, documents.notes)) == ["text: column 3 'text'; id: column 1 'id'"]


@pytest.mark.parametrize("keep", [[], [False], [True]])
def test_tables_of_no_row_and_one(tmp_path, table_format, keep):
    import pyarrow

    table = table_of(pyarrow, 1).slice(0, len(keep))
    path = write_table(table, tmp_path / f"in.{ending(table_format)}", table_format)
    assert len(read(path)) == len(keep)
    place = tmp_path / f"out.{ending(table_format)}"
    kept(path, keep, place)
    expected = read_table(Path(path), table_format).slice(0, sum(keep))
    assert read_table(place, table_format).equals(expected, check_metadata=True)


def test_kinds_of_columns(tmp_path, table_format):
    """Large strings, bytes and dictionaries are texts, in files and streams."""
    import pyarrow

    words = ["one", "two", "one", None]
    for kind in [pyarrow.large_string(), pyarrow.binary(), pyarrow.dictionary(pyarrow.int32(), pyarrow.string())]:
        table = pyarrow.table({"text": pyarrow.array(words, pyarrow.string()).cast(kind), "id": [5, None, 7, 8]})
        path = write_table(table, tmp_path / f"in.{ending(table_format)}", table_format)
        found = read(path, missing="empty")
        assert [identity for identity, _ in found] == [b"5", b"2", b"7", b"8"]
        assert [t.decode() if isinstance(t, bytes) else t for _, t in found] == ["one", "two", "one", None]
        place = tmp_path / f"out.{ending(table_format)}"
        kept(path, [True, False, True, True], place)
        assert read_table(place, table_format).to_pylist() == [table.to_pylist()[i] for i in (0, 2, 3)]


def test_views(tmp_path, table_format):
    """Strings of views, as Polars writes them, also within lists and structs; no bytes of rows that are left out."""
    import pyarrow

    secret, words = "a secret text that is left out", ["one", None, "a text that is longer than a view"]
    view, plain = pyarrow.string_view(), pyarrow.string()
    kinds = {"text": view, "tags": pyarrow.list_(view), "meta": pyarrow.struct([("a", pyarrow.large_list(view))])}
    rows = [{"text": text, "tags": [text, "x"], "meta": {"a": [text]}} for text in (secret, *words)]
    usual = [("text", plain), ("tags", pyarrow.list_(plain)), ("meta", pyarrow.struct([("a", pyarrow.list_(plain))]))]
    table = pyarrow.Table.from_pylist(rows, pyarrow.schema(usual, {"origin": "here"}))
    try:
        table = table.cast(pyarrow.schema(kinds, table.schema.metadata))
    except pyarrow.ArrowNotImplementedError:
        pytest.skip("this pyarrow does not convert to views")
    path = write_table(table, tmp_path / f"in.{ending(table_format)}", table_format)
    assert texts(path, missing="empty") == [text if text is None else text.encode() for text in (secret, *words)]
    place = tmp_path / f"out.{ending(table_format)}"
    kept(path, [False, True, True, True], place)
    found = read_table(place, table_format)
    assert found.to_pylist() == rows[1:]
    assert found.schema.equals(read_table(Path(path), table_format).schema, check_metadata=True)
    assert secret.encode() not in place.read_bytes()


def test_several_tables(tmp_path, table_format):
    import pyarrow

    table = table_of(pyarrow, 100)
    paths = [write_table(table, tmp_path / f"{i}.{ending(table_format)}", table_format) for i in range(2)]
    assert len(read(paths)) == 200
    place = tmp_path / f"out.{ending(table_format)}"
    kept(paths, [True] * 200, place)
    same = read_table(Path(paths[0]), table_format)
    assert read_table(place, table_format).equals(pyarrow.concat_tables([same, same]), check_metadata=True)
    other = write_table(table.drop_columns(["price"]), tmp_path / f"3.{ending(table_format)}", table_format)
    assert "columns of the first file" in refusal([*paths, other])


def test_truncated_table(tmp_path, table_format):
    import pyarrow

    path = Path(write_table(table_of(pyarrow, 300), tmp_path / f"in.{ending(table_format)}", table_format))
    data = path.read_bytes()
    for size in [*range(20), *range(20, len(data), max(len(data) // 60, 1)), *range(len(data) - 12, len(data))]:
        path.write_bytes(data[:size])
        message = refusal(str(path))
        assert "corrupt" in message
        assert "in." in message


@pytest.mark.few(4)
@pytest.mark.parametrize("room", [0, 500, 60_000])
def test_full_disk_for_a_table(tmp_path, monkeypatch, table_format, room):
    import pyarrow

    path = write_table(table_of(pyarrow), tmp_path / f"in.{ending(table_format)}", table_format)
    place = tmp_path / f"out.{ending(table_format)}"
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


def test_options_of_text_are_not_for_tables(tmp_path, table_format):
    import pyarrow

    path = write_table(table_of(pyarrow, 1), tmp_path / f"in.{ending(table_format)}", table_format)
    assert "header" in refusal(path, header=True)
    assert "--on-bad-line skip is for files of text" in refusal(path, on_bad_line="skip")
    assert "--encoding is for files of text" in refusal(path, encoding="utf-8")
    assert "--delimiter is for .csv and .tsv" in refusal(path, delimiter=";")
    assert "--field" in refusal(path, field="absent")


def test_odd_columns(tmp_path, table_format):
    """Two columns of the same name are refused; a column of nulls has missing texts."""
    import pyarrow

    path = tmp_path / f"in.{ending(table_format)}"
    twice = pyarrow.table([pyarrow.array(["a"]), pyarrow.array(["b"])], names=["text", "text"])
    assert "it has several columns 'text'; rename them" in refusal(write_table(twice, path, table_format))
    nulls = write_table(pyarrow.table({"text": pyarrow.nulls(2), "id": ["x", "y"]}), path, table_format)
    assert "row 1" in refusal(nulls)
    assert read(nulls, missing="empty") == [(b"x", None), (b"y", None)]
    assert "no columns at all" in refusal(write_table(pyarrow.table({}), path, table_format))


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for name in ["in.parquet", "in.arrow", "in.feather"]:
        with pytest.raises(ImportError, match=r"lsh-dedup\[io\]"):
            files.Documents(file_of(tmp_path, name, b""))
