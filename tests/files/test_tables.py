"""Parquet and Arrow IPC: rows are documents, and kept rows are written whole."""

import errno
from pathlib import Path
from typing import Any

import pytest
from full_disk import full_disk
from reading import kept, read, refusal, texts

from lsh import files

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from pyarrow import ipc, parquet  # noqa: E402

from lsh.files import tables  # noqa: E402


def table_of(rows: int = 10_000, **more: Any) -> Any:
    columns = {
        "id": [f"n{i}" for i in range(rows)],
        "text": [f"text {i}, été" for i in range(rows)],
        "meta": [{"title": f"title {i}", "tags": ["a", str(i)]} if i % 3 else None for i in range(rows)],
        "price": [None if i % 7 == 0 else i / 2 for i in range(rows)],
        **more,
    }
    return pyarrow.table(columns).replace_schema_metadata({"origin": "here", "pandas": "{}"})


ENDINGS = {"parquet": "parquet", "file": "feather", "stream": "arrow"}


class Form:
    """Files of a format in a folder."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.{ENDINGS[self.name]}"

    def write(self, table: Any, name: str = "in") -> str:
        path = self.path(name)
        if self.name == "parquet":
            codecs = {"id": "zstd", "text": "gzip"}
            parquet.write_table(table, path, row_group_size=3000, compression={**codecs, "price": "none"})
            return str(path)
        make = ipc.new_file if self.name == "file" else ipc.new_stream
        with path.open("wb") as file, make(file, table.schema) as writer:
            writer.write_table(table, 3000)
        return str(path)

    def read(self, path: Path | str) -> Any:
        if self.name == "parquet":
            return parquet.read_table(path)
        return (ipc.open_file if self.name == "file" else ipc.open_stream)(Path(path).read_bytes()).read_all()


@pytest.fixture(params=ENDINGS)
def form(request, tmp_path):
    return Form(request.param, tmp_path)


def test_rows_of_a_table(form):
    table = table_of()
    path = form.write(table)
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
    for option in ("id_field", "source_field"):
        assert "must hold strings or numbers, got struct" in refusal(path, **{option: "meta"})
    with files.Documents(path, source_field="meta.title") as documents:
        assert [record.source for record in documents.records()][:3] == [b"", b"title 1", b"title 2"]
    with files.Documents(path, field="meta.title", missing="empty") as documents:
        assert [record.text for record in documents.records()][:4] == [None, b"title 1", b"title 2", None]
        assert documents.counts.missing == 3334


def test_kept_rows_go_out_whole(form):
    """Columns, schema, metadata, row groups and compression stay the same."""
    table = table_of()
    path = form.write(table)
    keep = [i % 5 != 0 and i < 9000 for i in range(10_000)]
    place = form.path("out")
    first = kept(path, keep, place)
    assert kept(path, keep, place) == first
    expected = form.read(path).filter(pyarrow.array(keep))
    assert form.read(place).equals(expected, check_metadata=True)
    assert {b"origin": b"here"}.items() <= expected.schema.metadata.items()
    if form.name == "parquet":
        metadata = parquet.read_metadata(place)
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        assert [group.num_rows for group in groups] == [2400, 2400, 2400]
        columns = [groups[0].column(i) for i in range(metadata.num_columns)]
        codecs = {column.path_in_schema: column.compression for column in columns}
        assert codecs["id"] == "ZSTD"
        assert codecs["text"] == "GZIP"
        assert codecs["price"] == "UNCOMPRESSED"


def test_columns_by_their_numbers(form):
    table = pyarrow.table({"id": [7], "more": ["a"], "text": ["b"], "2": ["c"]})
    path = form.write(table)
    found = {"2": b"c", "3": b"b", "4": b"c", "3, more": b"b a"}
    assert {field: texts(path, field=field)[0] for field in found} == found
    assert read(path, id_field="4") == [(b"c", b"b")]
    assert read(path, id_field="none") == [(b"1", b"b")]
    assert "no column '5' among" in refusal(path, field="5")
    with files.Documents(path, id_field="1") as documents:
        list(documents.records())
        assert list(map(str, documents.counts.notes)) == ["text: column 3 'text'; id: column 1 'id'"]


@pytest.mark.parametrize("keep", [[], [False], [True]])
def test_tables_of_no_row_and_one(form, keep):
    table = table_of(1).slice(0, len(keep))
    path = form.write(table)
    assert len(read(path)) == len(keep)
    place = form.path("out")
    kept(path, keep, place)
    expected = form.read(path).slice(0, sum(keep))
    assert form.read(place).equals(expected, check_metadata=True)


def test_kinds_of_columns(form):
    """Large strings, bytes and dictionaries are texts, in files and streams."""
    words = ["one", "two", "one", None]
    for kind in [pyarrow.large_string(), pyarrow.binary(), pyarrow.dictionary(pyarrow.int32(), pyarrow.string())]:
        table = pyarrow.table({"text": pyarrow.array(words, pyarrow.string()).cast(kind), "id": [5, None, 7, 8]})
        path = form.write(table)
        found = read(path, missing="empty")
        assert [identity for identity, _ in found] == [b"5", b"2", b"7", b"8"]
        assert [t.decode() if isinstance(t, bytes) else t for _, t in found] == ["one", "two", "one", None]
        place = form.path("out")
        kept(path, [True, False, True, True], place)
        assert form.read(place).to_pylist() == [table.to_pylist()[i] for i in (0, 2, 3)]


def test_views(form):
    """Strings of views, as Polars writes them, also within lists and structs; no bytes of rows that are left out."""
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
    path = form.write(table)
    assert texts(path, missing="empty") == [text if text is None else text.encode() for text in (secret, *words)]
    place = form.path("out")
    kept(path, [False, True, True, True], place)
    found = form.read(place)
    assert found.to_pylist() == rows[1:]
    assert found.schema.equals(form.read(path).schema, check_metadata=True)
    assert secret.encode() not in place.read_bytes()


def test_several_tables(form):
    table = table_of(100)
    paths = [form.write(table, str(i)) for i in range(2)]
    assert len(read(paths)) == 200
    place = form.path("out")
    kept(paths, [True] * 200, place)
    same = form.read(paths[0])
    assert form.read(place).equals(pyarrow.concat_tables([same, same]), check_metadata=True)
    other = form.write(table.drop_columns(["price"]), "3")
    assert "columns of the first file" in refusal([*paths, other])


def test_truncated_table(form):
    path = Path(form.write(table_of(300)))
    data = path.read_bytes()
    for size in [*range(20), *range(20, len(data), max(len(data) // 60, 1)), *range(len(data) - 12, len(data))]:
        path.write_bytes(data[:size])
        message = refusal(str(path))
        assert "corrupt" in message
        assert "in." in message


@pytest.mark.few(4)
@pytest.mark.parametrize("room", [0, 500, 60_000])
def test_full_disk_for_a_table(tmp_path, monkeypatch, form, room):
    path = form.write(table_of())
    place = form.path("out")
    place.write_bytes(b"yesterday\n")
    full_disk(monkeypatch, room)
    with pytest.raises(OSError, match=r".") as caught:
        kept(path, [True] * 10_000, place)
    assert caught.value.errno == errno.ENOSPC
    assert place.read_bytes() == b"yesterday\n"
    assert len(list(tmp_path.iterdir())) == 2


def test_large_row_groups_are_written_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MAX_GATHERED", 100_000)
    table = pyarrow.table({"text": ["words " * 10 + str(i) for i in range(20_000)]})
    parquet.write_table(table, tmp_path / "in.parquet")
    kept(str(tmp_path / "in.parquet"), [True] * 20_000, tmp_path / "out.parquet")
    assert parquet.read_metadata(tmp_path / "out.parquet").num_row_groups == 5
    assert parquet.read_table(tmp_path / "out.parquet").equals(table)


def test_odd_columns(form):
    """Two columns of the same name are refused; nulls are missing texts, an empty id is the number of the row."""
    twice = pyarrow.table([pyarrow.array(["a"]), pyarrow.array(["b"])], names=["text", "text"])
    assert "it has several columns 'text'; rename them" in refusal(form.write(twice))
    nulls = form.write(pyarrow.table({"text": pyarrow.nulls(2), "id": ["x", ""]}))
    assert "row 1" in refusal(nulls)
    assert read(nulls, missing="empty") == [(b"x", None), (b"2", None)]
    assert "no columns at all" in refusal(form.write(pyarrow.table({})))
