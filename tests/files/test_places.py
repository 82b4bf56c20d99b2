"""Records that are read again by their places: the places, the ranges that are read, and files of every format."""

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from reading import BOM, DOCUMENTS, HEADS, file_of, kept, pack, unpack

from lsh import files
from lsh.base import budget
from lsh.base.budget import MemoryBudget
from lsh.files import blocks, lines, places
from lsh.files.places import Places
from lsh.storage import disk, inputs

STEPS = st.tuples(st.sampled_from(["record", "skipped"]), st.integers(0, 40), st.integers(1, 40))


@given(st.lists(st.lists(STEPS, max_size=30), max_size=4), st.sampled_from([2, 4, 30]), st.booleans(), st.data())
@strategies.examples(100)
def test_places(made, bits, one_by_one, data):
    """Every record is found with its number, by chunks of any size; lengths may be longer than an entry."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "BITS", bits)
        patch.setattr(places, "MAX_LENGTH", (1 << bits) - 1)
        patch.setattr(places, "MAX_WAITING", 3)
        patch.setattr(budget, "CHUNK", data.draw(st.sampled_from([32, 1 << 16])))
        patch.setattr(places, "MAX_CHUNK", data.draw(st.sampled_from([3, 1 << 16])))
        found, expected, number = Places(MemoryBudget(data.draw(st.sampled_from([None, 1])))), [], 0
        for steps in made:
            found.begin_file()
            at, rows = 0, []
            for kind, gap, size in steps:
                number += 1
                at += gap
                if kind == "skipped" or one_by_one:
                    found.add_one(at, at + size, kind == "record")
                else:
                    found.add(np.array([at]), np.array([at + size]))
                rows += [(at, at + size, number)] if kind == "record" else []
                at += size
            expected.append(rows)
        assert found.count == sum(map(len, expected))
        for file, rows in enumerate(expected):
            first = sum(map(len, expected[:file]))
            assert found.extent(file) == (first, first + len(rows))
            parts = list(found.located(file))
            assert [row for _, part in parts for row in zip(*(column.tolist() for column in part))] == rows
            assert all(rows[at - first][0] == part.begins[0] for at, part in parts if len(part.begins))
            which = sorted(data.draw(st.sets(st.integers(0, max(len(rows) - 1, 0)), max_size=len(rows))))
            some = [row for part in found.find(file, np.array(which, np.int64) + first) for row in zip(*part)]
            assert some == [rows[index] for index in which]


@given(st.lists(st.tuples(st.integers(0, 9000), st.integers(1, 9000)), min_size=1, max_size=30), st.integers(0, 40_000))
def test_ranges_of_a_file(made, size):
    """Neighbours are read together; the file may end before them."""
    data = np.random.RandomState(0).bytes(size)
    steps = np.cumsum(np.array(made, np.int64).ravel())
    begins, ends = steps[::2].copy(), steps[1::2].copy()
    reads = []

    def read(count: int, begin: int) -> bytes:
        reads.append((begin, begin + count))
        return data[begin : begin + count]

    if ends[-1] > size:
        with pytest.raises(EOFError):
            inputs.joined(read, begins, ends)
        return
    whole = b"".join(data[begin:end] for begin, end in zip(begins.tolist(), ends.tolist()))
    assert inputs.joined(read, begins, ends) == whole
    assert all(after - before > inputs.MAX_GAP for (_, before), (after, _) in pairwise(reads))  # all of one MAX_READ


@pytest.fixture(params=[True, False], ids=["small", "usual"])
def sizes(request, monkeypatch):
    """Blocks and reads that are small, and those of a program."""
    if request.param:
        for module, name, size in [
            (blocks, "READ_SIZE", 40),
            (blocks, "PROBE_SIZE", 8),
            (inputs, "BUFFER", 16),
            (lines, "READ_SIZE", 30),
        ]:
            monkeypatch.setattr(module, name, size)


def at(documents: files.Documents, positions: Sequence[int]) -> list[tuple[Any, ...]]:
    return [record for block in documents.at(np.array(positions, np.int64)) for record in block.records()]


VARIANTS = {  # what makes lines differ: blank lines, ends, numbers as ids, fields that only Python reads, bad lines
    "blank.jsonl": b'\n{"id": 5, "text": "one"}\r\n \t\n{"text": "t\\u00e9o"}\n{"text": "three", "id": null}\n\n',
    "lone.jsonl": b'{"text": "one", "id": "a"}\n{"text": "\\ud800"}\n{"id": "c", "text": "three"}',
    "bad.jsonl": b'nonsense\n{"text": "one"}\n{"text": 5}\n\xff\n{"text": "two"}\n{"text',
    "bad.tsv": b"a\tone\nbad\nb\ttwo\n\nc\tthree",
    "bad.csv": b'id,text\na,one\nb\n"b"b\nc,"t\nwo"\n\n\r\ne,"th""ree"\n"d,',
    "nul.csv": b'id,text\na,one\nb,"a\0b"\n\nc,"x\ny"',
    "lines.txt": b"one\n\n\r\nfour\r\nfi\rve",
    "none.txt": b"",
    "head.csv": b"id,text",
}


@pytest.mark.few(6)
@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("how", ["", "gz", "utf-16"])
def test_documents_at_positions(tmp_path, name, how):
    """They are those of the whole reading, in any selection, also of several files; ids are numbers of all records."""
    data, options = VARIANTS[name], {"on_bad_line": "skip"} if "csv" in name or "bad" in name else {}
    if how == "utf-16":
        data, options = data.decode("utf-8", "replace").encode("utf-16"), {**options, "encoding": "utf-16"}
    path = file_of(tmp_path, f"1{name}.{how}" if how == "gz" else f"1{name}", pack(data, "gz" if how == "gz" else ""))
    other = file_of(tmp_path, f"2{name}", data)
    for paths in ([path], [path, other], [path, path]):
        with files.Documents(paths, **options) as documents:
            found = list(documents.records())
            assert documents.count == len(found)
            skipped, missing = documents.counts.skipped, documents.counts.missing
            for step in (1, 2, 3, 5):
                assert at(documents, range(0, len(found), step)) == found[::step]
            assert at(documents, []) == []
            assert (documents.counts.skipped, documents.counts.missing) == (skipped, missing)
        with files.Documents(paths, **options) as documents:  # not read before
            assert at(documents, range(len(found))) == found


@pytest.mark.few(10)
@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("format", DOCUMENTS)
@pytest.mark.parametrize("mark", [b"", BOM])
def test_kept_records_go_out_as_they_came_in(tmp_path, format, mark, packed):
    """Runs, single ones, none and all; the mark and the header stay, and so does a last record without a newline."""
    whole = [line if line.endswith(b"\n") else line + b"\n" for line in DOCUMENTS[format]]
    lines, head = whole * 29 + DOCUMENTS[format], mark + HEADS.get(format, b"")
    data, end = head + b"".join(lines), f".{packed}".rstrip(".")
    paths = [file_of(tmp_path, f"in.{format}{end}", pack(data, packed)), file_of(tmp_path, f"plain.{format}", data)]
    choose = np.random.RandomState(7)
    for share in (0.0, 0.05, 0.5, 0.95, 1.0):
        keep = (choose.rand(len(lines)) < share).tolist()
        expected = head + b"".join(line for line, stays in zip(lines, keep, strict=True) if stays)
        assert kept(paths[0], keep, tmp_path / f"out.{format}") == expected
        for path in paths:
            assert unpack(kept(path, keep, tmp_path / f"out.{format}{end}"), packed) == expected


@pytest.mark.parametrize("new", [b'{"text": "on', b'[1, 2, "one"]\n', b'\n\n\n{"text": "1"}\n'])
def test_other_content_of_the_same_size_and_time(tmp_path, monkeypatch, new):
    """What is no record at its place is refused, also on a filesystem where the file looks unchanged."""
    monkeypatch.setattr(disk.LocalState, "of", classmethod(lambda cls, found: cls(found.st_size, found.st_mtime_ns, 0)))
    path = file_of(tmp_path, "in.jsonl", b'{"text": "one"}\n{"text": "two"}\n')
    with files.Documents(path) as documents:
        assert documents.count == 2
        state = os.stat(path)
        (tmp_path / "in.jsonl").write_bytes(new.ljust(state.st_size, b"\n"))
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
        with pytest.raises(files.InputError, match="changed"):
            at(documents, [0, 1])


def test_a_file_that_is_cut_while_it_is_copied(tmp_path):
    path = file_of(tmp_path, "in.txt", b"a line\n" * 1000)
    parts = inputs.Input(path, "").parts((np.array([at]), np.array([at + 7])) for at in (0, 98))
    assert next(parts) == b"a line\n"
    os.truncate(path, 100)
    with pytest.raises(files.InputError, match="changed"):
        next(parts)
