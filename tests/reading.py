"""Helpers of the tests of files: documents in every format, packing, and functions that read, write and catch errors.

The expected bytes are written by hand, or by the reference library of a format.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from lsh import files
from lsh.terminal.console import worded

BOM = b"\xef\xbb\xbf"
COMPRESSIONS = ["", "gz", "bz2", "xz", "zst"]
DOCUMENTS = {
    "txt": [b"one\r\n", b"\n", "zwei, drü\n".encode(), b"\xff\xfe odd\n", b"one"],
    "tsv": [b"a\tone\tmore\r\n", b"a\ttwo\n", b"\t\n", b"d\t\xff\n", b"e\tfive"],
    "csv": [b'a,"one, ""1"""\r\n', b'"b","two\nlines, ""\r\n"\n', b"c,\n", b"d,\xff\n", b'a,"five"'],
    "jsonl": [b'{"id": "a", "text": "one"}\r\n', b' { "text" : "\\u00e9" } \n', b'{"text": ""}\n', b'{"text": "4"}'],
}
HEADS = {"csv": b"id,text\r\n"}
RECORDS = {  # a record with a text
    "txt": "{}\n",
    "tsv": "a\t{}\r\n",
    "csv": 'a,"{}"\n',
    "jsonl": '{{"id": "a", "text": "{}"}}\n',
}
TEXTS = {
    "txt": [b"one", b"", "zwei, drü".encode(), b"\xff\xfe odd", b"one"],
    "tsv": [b"one", b"two", b"", b"\xff", b"five"],
    "csv": [b'one, "1"', b'two\nlines, "\r\n', b"", b"\xff", b"five"],
    "jsonl": [b"one", "é".encode(), b"", b"4"],
}
IDS = {
    "txt": [b"1", b"2", b"3", b"4", b"5"],
    "tsv": [b"a", b"a", b"3", b"d", b"e"],
    "csv": [b"a", b"b", b"c", b"d", b"a"],
    "jsonl": [b"a", b"2", b"3", b"4"],
}


def pack(data: bytes, packed: str) -> bytes:
    if packed == "zst":
        zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
        return zstandard.ZstdCompressor().compress(data)
    if packed == "xz":
        return lzma.compress(data, preset=0)  # the fastest
    return {"": bytes, "gz": gzip.compress, "bz2": bz2.compress}[packed](data)


def unpack(data: bytes, packed: str) -> bytes:
    if packed == "zst":
        zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
        return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read()
    return {"": bytes, "gz": gzip.decompress, "bz2": bz2.decompress, "xz": lzma.decompress}[packed](data)


def write_table(path: Path, table: Any, group: int = 1000) -> None:
    """Write a table of pyarrow in the format that the name says."""
    from pyarrow import feather, parquet

    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=group)
    else:
        feather.write_feather(table, str(path), compression="uncompressed", chunksize=group)


def read_table(path: Path) -> Any:
    from pyarrow import feather, parquet

    return (parquet.read_table if path.suffix == ".parquet" else feather.read_table)(str(path))


def write_records(path: Path, rows: list[dict[str, Any]], *, header: bool = True, group: int = 1000) -> str:
    """Write records in the format that the name says, perhaps packed; return the name."""
    form, _, packed = path.name.partition(".")[2].partition(".")
    if form in ("parquet", "arrow"):
        pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        write_table(path, pyarrow.Table.from_pylist(rows), group)
        return path.name
    target = io.StringIO()
    if form == "jsonl":
        target.writelines(json.dumps(row) + "\n" for row in rows)
    else:
        writer = csv.DictWriter(target, list(rows[0]), delimiter="\t" if form == "tsv" else ",", lineterminator="\n")
        writer.writerows([dict(zip(rows[0], rows[0])), *rows] if header else rows)
    path.write_bytes(pack(target.getvalue().encode(), packed))
    return path.name


def read(path: Any, format: files.Format | None = None, **options: Any) -> list[tuple[bytes, bytes | None]]:
    """The ids and texts of some documents, which must be equal when the source is read again."""
    with files.Documents(path, format=format, **options) as documents:
        records = [record[:2] for record in documents.records()]
        assert [record[:2] for record in documents.records()] == records
    return records


def texts(path: Any, format: files.Format | None = None, **options: Any) -> list[bytes | None]:
    return [text for _, text in read(path, format, **options)]


def kept(path: Any, keep: list[bool], place: Path, **options: Any) -> bytes:
    """The bytes written for the records to keep."""
    with files.Documents(path, **options) as documents, files.target(documents, str(place)) as target:
        files.write_kept(documents, keep, target)
        target.commit()
    return place.read_bytes()


def refusal(path: Any, format: files.Format | None = None, **options: Any) -> str:
    with pytest.raises(files.InputError) as caught, files.Documents(path, format=format, **options) as documents:
        list(documents.records())
    assert "\n" not in str(caught.value)
    assert "--" not in str(caught.value).replace(str(path), "")  # the library does not know the options of the command
    return worded(caught.value.message)


def file_of(folder: Path, name: str, data: bytes) -> str:
    (folder / name).write_bytes(data)
    return str(folder / name)
