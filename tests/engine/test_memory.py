"""Hostile arguments for the compiled modules: they raise an error or do no harm, and never access other memory.

Wrong sizes, arrays that change after they were checked, objects that answer differently each time, and objects that
threads must not share. `.ci/run` runs this file in a build with sanitizers, which end the process at the first access
outside an array.
"""

from __future__ import annotations

import contextlib
import copy
import pickle
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
import producer
import pytest

from lsh._minhash import NORMALISATIONS, SCHEME_CODES, UNIT_CODES, Fingerprinter, band_keys, count_equal, shingles
from lsh.engine.comparing import Pairs, Similarity, content_keys, first_copies, same_texts
from lsh.engine.deciding import Components, Decisions, Walk
from lsh.engine.grouping import BucketSets, BucketTables, KeyTable, Linker
from lsh.files._fields import count_lines, csv_cells, json_fields, line_cells
from lsh.text.batch import Batch, extent
from lsh.text.columns import Column, Columns, fixed_width
from lsh.text.sets import ShingleSets

LARGEST = sys.maxsize
BYTE, CHAR, WORD = UNIT_CODES["byte"], UNIT_CODES["char"], UNIT_CODES["word"]
SKETCHES = numpy.zeros((9, 4), numpy.uint8)


class Liar(int):
    """A number that claims to be less than any other."""

    def __lt__(self, other: object) -> bool:
        return True

    __le__ = __lt__

    def __gt__(self, other: object) -> bool:
        return False

    __ge__ = __gt__


class Claims(list):  # type: ignore[type-arg]
    """A list that claims another length."""

    claimed = 0

    def __len__(self) -> int:
        return self.claimed


class Array(numpy.ndarray):  # type: ignore[type-arg]
    """An array that claims another shape, another type and other extremes."""

    shape = property(lambda self: (1000, 1000))  # type: ignore[assignment]
    dtype = property(lambda self: numpy.dtype(numpy.uint8))  # type: ignore[assignment]
    itemsize = property(lambda self: 1)  # type: ignore[assignment]
    ndim = property(lambda self: 2)  # type: ignore[assignment]

    def max(self, *_: Any, **__: Any) -> Any:
        return numpy.int64(0)

    def min(self, *_: Any, **__: Any) -> Any:
        return numpy.int64(0)

    def __len__(self) -> int:
        return 1000


def unaligned(array: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """A copy whose elements are at unaligned addresses."""
    memory = numpy.zeros(array.nbytes + 1, numpy.uint8)
    moved = memory[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    assert not moved.flags.aligned
    return moved


def refused(function: Callable[..., object], *arguments: object, **options: object) -> None:
    """Check that a call raises one of the errors for bad arguments."""
    with pytest.raises((TypeError, ValueError, OverflowError, IndexError, MemoryError, RuntimeError, BufferError)):
        function(*arguments, **options)


def answers(function: Callable[[], object], words: str) -> bool:
    """Tell whether a call returns, or raises a ValueError with these words."""
    try:
        function()
    except ValueError as error:
        return words in str(error)
    return True


# Fields.


def test_json_fields_of_equal_names():
    block = b'{"a": "' + b"\\u0041" * 100_000 + b'"}\n'
    refused(json_fields, block, (b"a",) * 16, ())
    refused(json_fields, block, (b"a",), (b"a",))
    refused(json_fields, block, (), (b"a",) * 1000)


def test_json_fields_of_names_that_are_no_bytes():
    class Name(bytes):
        def __eq__(self, other: object) -> bool:
            return self is other

        def __hash__(self) -> int:
            return id(self)

    for name in (Name(b"a"), "a", bytearray(b"a"), None, 5):
        refused(json_fields, b'{"a": "b"}', (name,) * 2, ())
        refused(json_fields, b'{"a": "b"}', (name,), ())
    refused(json_fields, None, (b"a",), ())
    refused(json_fields, bytearray(b"{}"), (b"a",), ())
    refused(json_fields, b"{}", [b"a"], ())
    assert json_fields(b"", (b"a",), ()) is not None
    found = json_fields(b'{"a": 1}\n', (), ())
    assert found is not None
    assert (found[:2], found[2].tolist()) == (([], []), [[0, 9]])


def test_keys_and_texts_of_escapes_fit_where_they_are_decoded():
    """Keys with escapes are decoded into the buffer that holds the texts of earlier records."""
    record = b'{"\\u0061": "' + b"\\u00e9" * 50 + b'", "' + b"\\u0062" * 60 + b'": "\\n"}\n'
    found = json_fields(record * 200, (b"a", b"b" * 60), (b"c",))
    assert found is not None
    assert found[0][0].tolist() == ["é".encode() * 50] * 200
    assert found[0][1].tolist() == [b"\n"] * 200


@pytest.mark.parametrize("place", [Liar(10**6), Liar(-1), LARGEST, -1, 1, 2**64, None, 0.5])
def test_cells_at_places_that_no_row_has(place):
    block = b"a\nb\n" * 50
    refused(line_cells, block, b"\t", (place,), 1, 9)
    refused(csv_cells, block, b",", (place,), 1, 9)


def test_cells_of_other_arguments():
    for separator in (b"", b"ab", None, "\t", 9):
        refused(line_cells, b"a\n", separator, (0,), 1, 1)
        refused(csv_cells, b"a\n", separator, (0,), 1, 1)
    refused(line_cells, b"a\n", b"\t", [0], 1, 1)
    refused(line_cells, b"a\n", b"\t", (0,), 0, 1)
    refused(line_cells, b"a\n", b"\t", (0,), -1, 1)
    lines = line_cells(b"a\nb\tc\n", b"\t", (), 0, 2)
    assert lines is not None
    assert (lines[0], lines[1].tolist()) == ([], [[0, 2], [2, 4]])
    lines = line_cells(b"a\n", b"\t", (0,) * 50, 1, 1)
    assert lines is not None
    assert [column.tolist() for column in lines[0]] == [[b"a"]] * 50
    found = csv_cells(b'"a""b"\n' * 99, b",", (0,) * 50, 1, 1)
    assert found is not None
    assert found[0][49].tolist() == [b'a"b'] * 99
    refused(count_lines, None)
    refused(count_lines, memoryview(b"a"))


# Batches and columns.


def test_a_column_of_more_texts_than_there_is_memory():
    """2**60 texts share one byte: the size of their pointers does not fit into a word."""
    for count in (2**60, 2**61, 2**62):
        column = fixed_width(numpy.broadcast_to(numpy.array([b"a"]), count))
        assert len(column) == count
        refused(Batch, column)
        refused(Batch, column, start=1)
        assert Batch(column, start=count - 2, stop=count).tolist() == [b"a", b"a"]
        assert extent(column, 0, count, 1000) == 1000


def test_arrays_of_fixed_width():
    texts = numpy.array([b"a", b"bc", b""])
    assert Batch(fixed_width(texts[::-1])).tolist() == [b"", b"bc", b"a"]
    for wrong in (texts.reshape(1, 3), numpy.array(["a"]), numpy.array(b"a"), numpy.arange(3), None):
        refused(fixed_width, wrong)
    assert Batch(fixed_width(numpy.array([], "S3"))).tolist() == []


def test_batches_of_wrong_bounds():
    for texts in (("a", "b"), fixed_width(numpy.array([b"a", b"b"])), Batch(("a", "b"))):
        for start, stop in ((-1, 1), (0, 3), (2, 1), (LARGEST, LARGEST), (0, -1), (-LARGEST - 1, None)):
            refused(Batch, texts, start=start, stop=stop)
        for start, stop in ((-1, 1), (0, 3), (1, 1), (2, 3), (LARGEST, LARGEST)):
            refused(extent, texts, start, stop, 10)
    for first in (-1, LARGEST, 2**63):
        refused(Batch, ("a", 5), first)
    refused(Batch, {"a": 1})
    refused(Batch, None)
    refused(extent, ["a"], 0, 1, 10)
    batch = Batch(("a", "b"))
    for start, stop in ((-1, 1), (0, 3), (2, 1), (LARGEST, None)):
        refused(batch.tolist, start, stop)
    for positions in ([2], [-1], [LARGEST], [2**64], ["a"], None, [[0], [1, 2]]):
        refused(batch.take, positions)
    assert batch.take(numpy.zeros((0,))).tolist() == []


def test_a_tuple_of_another_length_than_it_has():
    class Texts(tuple):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 1000

        def __getitem__(self, _: Any) -> Any:
            return "x" * 10

    texts = Texts(("a", "é"))
    assert Batch(texts).tolist() == [b"a", "é".encode()]
    assert extent(texts, 0, 2, 100) == 2
    refused(extent, texts, 0, 1000, 100)
    claims = Claims(["a", "b"])
    claims.claimed = 1000
    assert len(Batch(claims)) == 2


def test_texts_that_run_code():
    """A float whose comparison makes it a null; a view that is released."""

    class Number(float):
        def __ne__(self, other: object) -> bool:
            texts.clear()
            return True

    texts: list[Any] = ["a" * 1000, Number(1), "b" * 1000]
    assert Batch(texts, missing=True).tolist() == [b"a" * 1000, None, b"b" * 1000]
    view = memoryview(b"abc")
    view.release()
    refused(Batch, (view,))
    refused(extent, (view,), 0, 1, 10)
    for transform in (lambda text: 5, lambda text: None, lambda text: "é", lambda text: bytearray(b"a"), 5):
        refused(Batch, ("é",), transform=transform)


def test_offsets_that_lie():
    data = numpy.frombuffer(b"abcdef", numpy.uint8)
    for offsets in ([], [-1, 2], [0, 7], [0, 3, 2], [0, 100, 6], [5, 4], [0, LARGEST], [-LARGEST - 1, 0], [0, -1, 6]):
        refused(Batch.of_bytes, data, numpy.array(offsets, numpy.int64))
    refused(Batch.of_bytes, data, numpy.array([0, 1], numpy.int32))
    refused(Batch.of_bytes, data[::2], numpy.array([0, 1], numpy.int64))
    refused(Batch.of_bytes, None, numpy.array([0, 1], numpy.int64))
    assert Batch.of_bytes(data[:0], numpy.array([0, 0], numpy.int64)).sizes().tolist() == [0]


def test_texts_written_over_themselves():
    memory = numpy.array([b"abcd", b"efgh"])
    batch = Batch(fixed_width(memory))
    batch.write(memory.view(numpy.uint8))
    assert memory.tolist() == [b"abcd", b"efgh"]
    whole = numpy.frombuffer(b"xabcdefg", numpy.uint8).copy()
    Batch.of_bytes(whole, numpy.array([0, 7], numpy.int64)).write(whole[1:])
    assert whole.tobytes() == b"xxabcdef"
    for size in (0, 7, 9):
        refused(batch.write, numpy.zeros(size, numpy.uint8))
    refused(batch.write, numpy.zeros(16, numpy.uint8)[::2])
    refused(batch.write, b"12345678")


def test_joined_batches():
    refused(Batch.join, [Batch(("a",)), None])
    refused(Batch.join, (Batch(("a",)),))
    claims = Claims([Batch(("a",)), Batch(("b",))])
    claims.claimed = 1
    refused(Batch.join, claims)
    assert Batch.join([]).tolist() == []


def test_nothing_is_made_without_its_parts():
    assert len(Column()) == 0
    assert Batch(Column()).tolist() == []
    for made in (Batch(("a",)), Column(), BucketTables(2), fingerprinter(), ShingleSets(Batch(("a",)), BYTE, 1)):
        for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
            refused(duplicate, made)
    for kind in (
        Batch,
        Columns,
        Fingerprinter,
        Similarity,
        Components,
        Decisions,
        Walk,
        Pairs,
        Linker,
        BucketTables,
        BucketSets,
        ShingleSets,
    ):
        refused(kind.__new__, kind)


def test_an_arrow_pair_that_makes_its_capsules_anew():
    class Pair(tuple):  # type: ignore[type-arg]
        def __getitem__(self, place: Any) -> Any:
            return made.array_capsules()[place]

    class Source:
        def __arrow_c_array__(self, _: object = None) -> Any:
            return Pair(made.array_capsules())

    made = producer.Producer(producer.node("u", [b"abc", b"defgh"]))
    assert Batch(next(Columns(Source()))).tolist() == [b"abc", b"defgh"]


# Fingerprints.


def fingerprinter(scheme: str = "fss", unit: int = BYTE, n: int = 3, k: int = 16, flags: int = 0) -> Fingerprinter:
    return Fingerprinter(
        SCHEME_CODES[scheme], unit, n, numpy.zeros(1 if scheme == "fss" else k, numpy.uint32), k, flags
    )


OUT = {"murmur3_32": numpy.int32, "murmur3_64": numpy.uint64, "fss": numpy.uint32}


@pytest.mark.parametrize("scheme", SCHEME_CODES)
def test_where_fingerprints_are_written(scheme):
    made, batch, dtype = fingerprinter(scheme), Batch(("abcdef", "bcdefg", "é" * 200)), OUT[scheme]
    expected = numpy.zeros((3, 16), dtype)
    made.fill(batch, expected)
    for out in (
        numpy.zeros((2, 16), dtype),
        numpy.zeros((3, 15), dtype),
        numpy.zeros((3, 17), dtype)[:, :16],
        numpy.zeros((16, 3), dtype).T,
        numpy.zeros(48, dtype),
        numpy.zeros((3, 16), numpy.float64),
        numpy.zeros((3, 16), dtype).astype(numpy.dtype(dtype).newbyteorder()),
        numpy.broadcast_to(numpy.zeros(16, dtype), (3, 16)),
        unaligned(numpy.zeros((3, 16), dtype)),
        numpy.zeros((0, 0), dtype).view(Array),
        None,
    ):
        refused(made.fill, batch, out)
    made.fill(Batch(()), numpy.zeros((0, 16), dtype))
    refused(made.fill, None, expected)
    refused(made.one, None)
    refused(made.one, 5)


@pytest.mark.parametrize("scheme", SCHEME_CODES)
def test_fingerprints_written_over_their_texts(scheme):
    """The texts change while they are read: any fingerprints are accepted, and every write stays inside the array."""
    width = 16 * numpy.dtype(OUT[scheme]).itemsize
    for unit in (BYTE, CHAR, WORD):
        memory = numpy.frombuffer(bytearray("aé b".encode() * (width // 5) * 8 + bytes(width * 8)), numpy.uint8)
        memory = memory[: width * 8].copy()
        texts = Batch(fixed_width(memory.view(f"S{width}")))
        fingerprinter(scheme, unit, 2, flags=NORMALISATIONS["lowercase"]).fill(
            texts, memory.view(OUT[scheme]).reshape(8, 16)
        )


def test_fingerprinters_of_wrong_parameters(monkeypatch):
    one = numpy.zeros(1, numpy.uint32)
    monkeypatch.setitem(UNIT_CODES, "page", 7)
    monkeypatch.setitem(SCHEME_CODES, "other", 7)
    for scheme, unit, n, seeds, k in (
        (2, 7, 1, one, 1),
        (7, BYTE, 1, one, 1),
        (-1, BYTE, 1, one, 1),
        (2, -1, 1, one, 1),
        (2, BYTE, 0, one, 1),
        (2, BYTE, -1, one, 1),
        (2, BYTE, 2**64 - 1, one, 1),
        (2, BYTE, 2**64, one, 1),
        (2, BYTE, 1, one, 0),
        (2, BYTE, 1, one, 4097),
        (2, BYTE, 1, one, 2**64 - 1),
        (0, BYTE, 1, one, 2),
        (1, BYTE, 1, one, 2**64 - 1),
        (1, BYTE, 1, numpy.zeros(0, numpy.uint32), 0),
        (2, BYTE, 1, numpy.zeros(2, numpy.uint32), 2),
        (2, BYTE, 1, None, 1),
        (2, BYTE, 1, numpy.zeros(1, numpy.int32), 1),
        (2, BYTE, 1, numpy.zeros((1, 1), numpy.uint32), 1),
    ):
        refused(Fingerprinter, scheme, unit, n, seeds, k)
    for unit, n in ((7, 1), (-1, 1), (BYTE, 0), (BYTE, 2**64 - 1)):
        refused(shingles, Batch(("a",)), unit, n)
        refused(ShingleSets, Batch(("a",)), unit, n)


@pytest.mark.few(1)
@pytest.mark.parametrize("unit", [BYTE, CHAR, WORD])
def test_shingles_longer_than_any_text(unit):
    text = "é b, " * 3000
    for n in (10_000, 2**31, LARGEST):
        whole = shingles(Batch((text,)), unit, n)[0]
        assert len(whole) == 1 or n == 10_000
        for scheme in SCHEME_CODES:
            once, again = (fingerprinter(scheme, unit, n).one(text) for _ in range(2))
            assert numpy.array_equal(once, again)
        assert ShingleSets(Batch((text, text)), unit, n).matrix(1, 1)[0, 0] == 1.0


def test_rows_of_components_to_count():
    rows = numpy.zeros((2, 4), numpy.uint32)
    for a, b in (
        (rows, rows[:, :3]),
        (rows, rows.astype(numpy.uint64)),
        (rows[:, ::2], rows[:, ::2]),
        (rows[0], rows),
        (rows, None),
        (rows[:, :0], rows[:, :0]),
        (unaligned(rows), rows),
        (rows, unaligned(rows)),
        (rows.astype(numpy.uint8), rows.astype(numpy.uint8)),
        (rows.view(Array), rows),
    ):
        refused(count_equal, a, b)
    assert count_equal(rows[:0], rows).shape == (0, 2)


# Band keys, links, bins.


def test_band_keys_of_wrong_arrays():
    rows, bounds, out = (
        numpy.zeros((3, 8), numpy.uint32),
        numpy.array([0, 4, 8], numpy.uintp),
        numpy.zeros((2, 3), numpy.uint64),
    )
    band_keys(rows, bounds, out)
    for wrong in ([0, 4, 9], [0, 8, 4], [0], [], [0, 4], [0, 4, 8, 8], [0, 4, 2**64 - 1]):
        refused(band_keys, rows, numpy.array(wrong, numpy.uintp), out)
    for wrong_rows in (
        rows[:2],
        rows[:, ::2],
        rows[::-1],
        rows.T.copy().T,
        rows.astype(numpy.uint8),
        numpy.broadcast_to(rows[0], (3, 8)),
        numpy.lib.stride_tricks.as_strided(rows, (3, 8), (4, 4)),
        unaligned(rows),
        rows[0],
        None,
    ):
        refused(band_keys, wrong_rows, bounds, out)
    for wrong_out in (out[:1], out[:, :2], out.astype(numpy.int64), unaligned(out), out.T, None):
        refused(band_keys, rows, bounds, wrong_out)
    band_keys(rows[:0], bounds, out[:, :0].copy())


def test_band_keys_written_over_their_bounds():
    memory = numpy.zeros((2, 40), numpy.uint64)
    bounds = memory.reshape(-1)[:3].view(numpy.uintp)
    bounds[:] = [0, 4, 8]
    rows = numpy.arange(40 * 8, dtype=numpy.uint32).reshape(40, 8)
    expected = numpy.zeros((2, 40), numpy.uint64)
    band_keys(rows, bounds.copy(), expected)
    band_keys(rows, bounds, memory)
    assert numpy.array_equal(memory, expected)


def test_links_of_wrong_arrays():
    for count, order, entered in ((3, [3], 1), (3, [-1], 1), (3, [0, 0], 1), (3, [0], 2), (3, [0], -1), (-1, [], 0)):
        if (count, order) != (-1, []):
            refused(Linker, count, numpy.array(order), entered)
    linker = Linker(3, numpy.array([2, 0, 1]), 3)
    keys, links = numpy.zeros(3, numpy.uint64), numpy.zeros(3, numpy.int32)
    for wrong in (
        keys[:2],
        keys.astype(numpy.int64),
        keys.reshape(1, 3),
        numpy.zeros(6, numpy.uint64)[::2],
        unaligned(keys),
        None,
    ):
        refused(linker.link, wrong, links)
    for wrong in (links[:2], links.astype(numpy.int64), unaligned(links), None):
        refused(linker.link, keys, wrong)
    linker.link(keys, links)
    assert links.tolist() == [2, 0, -1]


def test_links_of_keys_that_change():
    """Another thread writes to the keys while they are linked without the GIL: an error, or links of either keys."""
    count = 200_000
    keys, links = numpy.zeros(count, numpy.uint64), numpy.zeros(count, numpy.int32)
    linker, done = Linker(count, numpy.arange(count), count), threading.Event()
    values = numpy.arange(count, dtype=numpy.uint64)

    def change() -> None:
        while not done.is_set():
            numpy.multiply(values, numpy.uint64(0x9E3779B97F4A7C15), out=keys)
            numpy.copyto(keys, numpy.uint64(5))

    other = threading.Thread(target=change)
    other.start()
    try:
        for _ in range(20):
            links.fill(-1)
            assert answers(lambda: linker.link(keys, links), "must not change")
            assert -1 <= links.min() <= links.max() < count
    finally:
        done.set()
        other.join()


def test_a_table_of_keys_of_wrong_arrays():
    table, keys, chosen = KeyTable(3), numpy.zeros(3, numpy.uint64), numpy.ones(3, numpy.uint8)
    pairs = numpy.zeros((3, 2), numpy.int32)
    for wrong in (keys[:2], keys.astype(numpy.int64), numpy.zeros(6, numpy.uint64)[::2], unaligned(keys), None):
        refused(table.link, wrong, chosen, 0, pairs)
    for wrong in (chosen[:2], chosen.astype(numpy.int8), None):
        refused(table.link, keys, wrong, 0, pairs)
    for wrong in (pairs[:2], pairs.astype(numpy.int64), pairs.reshape(-1), unaligned(pairs), None):
        refused(table.link, keys, chosen, 0, wrong)
    for first in (-1, 2**31 - 2, 2**63 - 1):
        refused(table.link, keys, chosen, first, pairs)
    refused(KeyTable, 2**62)
    assert table.link(keys, chosen, 0, pairs) == 2
    assert table.link(keys[:0], chosen[:0], 0, pairs[:0]) == 0


def test_a_table_of_keys_that_change():
    """Another thread writes to keys and flags while they are linked without the GIL: pairs of some of the documents."""
    count = 100_000
    keys, chosen = numpy.zeros(count, numpy.uint64), numpy.ones(count, numpy.uint8)
    values, done = numpy.arange(count, dtype=numpy.uint64), threading.Event()

    def change() -> None:
        while not done.is_set():
            numpy.multiply(values, numpy.uint64(0x9E3779B97F4A7C15), out=keys)
            chosen[::3] = 0
            numpy.copyto(keys, numpy.uint64(5))
            chosen[:] = 1

    other = threading.Thread(target=change)
    other.start()
    try:
        for _ in range(20):
            table, pairs = KeyTable(1), numpy.zeros((count, 2), numpy.int32)
            found = pairs[: table.link(keys, chosen, 7, pairs)]
            assert ((found >= 7) & (found < count + 7)).all()
    finally:
        done.set()
        other.join()


def test_bins_of_wrong_arguments():
    tables = BucketTables(2)
    keys, documents = numpy.zeros((2, 3), numpy.uint64), numpy.arange(3, dtype=numpy.uint32)
    for call in (tables.insert, tables.remove):
        refused(call, keys, documents)  # nothing reserved
    tables.reserve(3, 3)
    for call in (tables.insert, tables.remove):
        for wrong in (keys[:1], keys[:, :2], keys.astype(numpy.int64), keys.T, unaligned(keys), None):
            refused(call, wrong, documents)
        for wrong in (documents + 1000, documents[:2], documents.astype(numpy.int64), None):
            refused(call, keys, wrong)
    for _ in range(3):  # repeatedly, with other keys, and more often than they were inserted
        tables.insert(keys, documents)
        tables.remove(keys + numpy.uint64(1), documents)
        tables.remove(keys, documents[::-1].copy())
        tables.insert(keys + numpy.uint64(7), documents)
    for band in (-1, 2, LARGEST, 2**63):
        refused(tables.members, band, 0)
        refused(tables.bins, band)
        refused(tables.num_bins, band)
    refused(tables.members, 0, -1)
    refused(tables.members, 0, 2**64)
    for wrong in (keys[:1], keys.astype(numpy.int64), keys.T, unaligned(keys), None):
        refused(tables.candidates, wrong)
    for first in (-1, 4, LARGEST, 2**63):
        refused(tables.candidates, keys, first)
    refused(tables.candidates, keys, 0, -1)
    for size in (2**32 - 1, 2**63, 2**64 - 1, -1):
        refused(tables.reserve, size, size)
    for bands in (0, -1, 2**59, 2**62):
        refused(BucketTables, bands)
    for band in range(2):
        assert answers(partial(tables.bins, band), "the bin is broken")
        assert answers(partial(tables.members, band, 7), "the bin is broken")
    assert answers(partial(tables.candidates, keys + numpy.uint64(7)), "the bin is broken")


def test_sets_of_arrays_that_change():
    documents, bounds = numpy.zeros(4, numpy.uint32), numpy.array([0, 2, 4], numpy.intp)
    for change in (lambda: documents.fill(10**6), lambda: bounds.fill(10**6), lambda: bounds.fill(-5)):
        documents[:], bounds[:] = 0, [0, 2, 4]
        found = BucketSets(["a"], documents, bounds)
        assert list(next(found)) == ["a"]
        change()
        for _ in range(2):
            try:
                next(found)
            except (ValueError, StopIteration):
                continue
    refused(BucketSets, ["a"], numpy.array([5], numpy.uint32).view(Array), bounds)
    refused(BucketSets, ["a"], documents, numpy.array([0, 9], numpy.intp))
    refused(BucketSets, ["a"], documents, bounds[:0])
    refused(BucketSets, ("a",), documents, bounds)


# Comparing.


def two_texts() -> ShingleSets:
    return ShingleSets(Batch(("abc", "abd")), BYTE, 1)


def similarity(sets: ShingleSets | None = None) -> Similarity:
    return Similarity(SKETCHES, [0, 1], sets or two_texts(), [0, 1], 0)


@pytest.mark.parametrize(
    "matrix",
    [
        SKETCHES.view(Array),
        unaligned(numpy.zeros((9, 4), numpy.uint32)),
        SKETCHES.T,
        SKETCHES[0],
        None,
        SKETCHES.tolist(),
    ],
)
def test_matrices_that_claim_what_they_are_not(matrix):
    sets = two_texts() if getattr(matrix, "dtype", None) == numpy.uint8 else None
    try:
        found = Similarity(matrix, [0, 8], sets, [0, 1] if sets else None, 0)
    except (TypeError, ValueError):
        return
    assert found.count == 2  # a subclass is read by numpy's own record of it


def test_places_that_claim_another_length():
    long, short = Claims([0] * 3), Claims([0] * 1000)
    long.claimed, short.claimed = 1000, 3
    batch = Batch(("a", "b"))
    for a in (long, short, [0] * 3, [0] * 1000):
        for b in (long, short, [0] * 3, [0] * 1000):
            try:
                assert same_texts(batch, a, batch, b) is True
            except ValueError:
                continue
    refused(Similarity, SKETCHES, long, None, None, 0)
    refused(Similarity, SKETCHES, [0], two_texts(), None, 0)
    refused(first_copies, numpy.full(3, -1, numpy.int32), long)
    refused(first_copies, numpy.full(3, 10**6, numpy.int32), [0, 1])
    refused(content_keys, batch, bytes(16), numpy.zeros(3, numpy.uint64))
    refused(content_keys, batch, bytes(16), unaligned(numpy.zeros(2, numpy.uint64)))
    refused(content_keys, batch, None, numpy.zeros(2, numpy.uint64))


@pytest.mark.parametrize("wrong", [10**6, -(10**6), 1, 2])
@pytest.mark.parametrize("components", [False, True])
def test_links_that_change_before_the_walk(wrong, components):
    links, depth = numpy.array([[-1, 0], [-1, 0]], numpy.int32), numpy.zeros((2, 2), numpy.int32)
    decisions = Decisions(links, depth, [0, 1], 0, 0.5, 10, components)
    walk = Walk(similarity(), decisions)
    links[:] = wrong
    depth[:] = wrong
    assert walk.run(0, 2) == 2
    assert walk.run(0, 2) == 2  # documents that are decided
    for as_kept in (False, True):
        for start in (0, 1):
            links[:], depth[:] = wrong, wrong
            decisions.begin_window(start, 2, 10, as_kept)
            links[:], depth[:] = wrong, wrong
            walk.run(start, 2, walk.score(start, 2))
    if components:
        walk.attach(0, 2)
    decisions.outcome()
    same = numpy.array([[-1, 0]], numpy.int32)
    refused(Decisions, same, same, [0, 1], 0, 0.5, LARGEST, components)


def test_walks_in_threads_over_the_same_documents():
    """An error of the caller: the result is wrong then, the memory is not."""
    count, bands = 400, 3
    links = numpy.tile(numpy.arange(-1, count - 1, dtype=numpy.int32), (bands, 1))
    decisions = Decisions(links, numpy.zeros_like(links), numpy.arange(count), 0, 0.5, 50, False)
    rows = numpy.zeros((count, 4), numpy.uint32)
    rows[:] = numpy.arange(count)[:, None]

    def walk() -> None:
        mine = Walk(Similarity(rows, numpy.arange(count), None, None, 0), decisions)
        for start in range(0, count, 20):
            decisions.begin_window(start, min(start + 40, count), 10**6, start % 40 == 0)
            with contextlib.suppress(ValueError):  # another thread has begun another window
                mine.run(start, start + 20, mine.score(start, start + 20))
            mine.run(start, start + 20)

    threads = [threading.Thread(target=walk) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert decisions.outcome()[0].max() < count


@pytest.mark.parametrize("wrong", [10**6, -(10**6), 1])
def test_links_that_change_before_the_pairs(wrong):
    links = numpy.array([[-1, 0]], numpy.int32)
    pairs = Pairs(similarity(), links, [0, 1], 0.5)
    links[:] = wrong
    assert answers(lambda: pairs.run(1, -1, 100), "lead back")


def test_arguments_of_walks_and_pairs():
    links, depth = numpy.array([[-1, 0]], numpy.int32), numpy.zeros((1, 2), numpy.int32)
    for wrong in (
        links.astype(numpy.int64),
        links[0],
        links[:, ::-1],
        unaligned(links),
        None,
        numpy.zeros((1, 3), numpy.int32),
    ):
        refused(Decisions, wrong, depth, [0, 1], 0, 0.5, 10, False)
        refused(Pairs, similarity(), wrong, [0, 1], 0.5)
    for cap in (-1, -LARGEST - 1, 2**63):
        refused(Decisions, links.copy(), depth, [0, 1], 0, 0.5, cap, False)
    read_only = links.copy()
    read_only.flags.writeable = False
    refused(Decisions, read_only, depth, [0, 1], 0, 0.5, 10, False)
    refused(Decisions, links.copy(), depth, Claims([0] * 3), 0, 0.5, 10, False)
    refused(Walk, None, Decisions(links.copy(), depth, [0, 1], 0, 0.5, 10, False))
    refused(Walk, similarity(), None)
    empty = numpy.zeros((0, 2), numpy.int32)
    assert Walk(similarity(), Decisions(empty, empty.copy(), [0, 1], 0, 0.5, 10, False)).run(0, 2) == 2
    refused(Pairs, similarity(), empty, [0, 1], 0.5)


def test_sets_are_used_by_one_thread_at_a_time():
    """Several threads that use the same object get a result or an error."""
    text = "".join(chr(97 + i * i % 26) for i in range(3000))
    sets = ShingleSets(Batch([text[i:] + text[:i] for i in range(0, 300, 10)]), BYTE, 8)
    expected = sets.matrix(30, 0)
    busy: list[BaseException] = []
    answers: list[numpy.ndarray[Any, Any]] = []

    def ask() -> None:
        for _ in range(30):
            try:
                answers.append(sets.matrix(30, 0))
            except RuntimeError as error:
                busy.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(busy) + len(answers) == 120
    assert answers
    assert all(numpy.array_equal(answer, expected) for answer in answers)
    assert all("in use" in str(error) for error in busy)


@pytest.mark.parametrize("unit", [BYTE, CHAR, WORD])
@pytest.mark.parametrize("n", [2, 12])
def test_texts_that_change_while_they_are_read(unit, n):
    """Another thread writes to an array of texts: any result is accepted, but only bytes of the array are read."""
    forms = [
        numpy.array(["é b".encode() * 60, b"a" * 240]),
        numpy.array([b"\xf0\x9f\x98\x80 ," * 40, b"ab cd ef" * 30]),
    ]
    memory = numpy.zeros(2, "S240")
    done = threading.Event()

    def change() -> None:
        while not done.is_set():
            for form in forms:
                memory.view(numpy.uint8)[:] = numpy.resize(form.view(numpy.uint8), 480)

    other = threading.Thread(target=change)
    other.start()
    flags = sum(NORMALISATIONS.values())
    try:
        out = {scheme: numpy.zeros((2, 16), dtype) for scheme, dtype in OUT.items()}
        for _ in range(150):
            batch = Batch(fixed_width(memory))
            ShingleSets(batch, unit, n, flags).matrix(2, 0)
            shingles(batch, unit, n, flags)
            for scheme, rows in out.items():
                fingerprinter(scheme, unit, n, 16, flags).fill(batch, rows)
    finally:
        done.set()
        other.join()


@pytest.mark.parametrize(("rows", "first"), [(LARGEST, 0), (0, LARGEST), (-LARGEST - 1, 0), (3, 0), (0, 3), (2**63, 0)])
def test_matrices_beyond_the_batch(rows, first):
    refused(two_texts().matrix, rows, first)
