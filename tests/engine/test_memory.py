"""Hostile arguments for the compiled modules: they raise an error or do no harm, and never access other memory.

Texts whose classes lie or run code, and arrays of texts that another thread changes, reach them from callers. Wrong
indices come only from code of the package. `.ci/run` runs this file in a build with sanitizers, which end the process
at the first access outside an array.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
import producer
import pytest

from lsh._minhash import NORMALISATIONS, SCHEME_CODES, UNIT_CODES, Fingerprinter, band_keys, count_equal, shingles
from lsh.engine.comparing import Pairs, Similarity, keep_similar
from lsh.engine.deciding import Components, Decisions, Walk, write_links
from lsh.engine.families import Family
from lsh.engine.grouping import BucketFinder, BucketTables, pack_low_bits
from lsh.files._fields import delimited_cells, json_fields
from lsh.text.batch import Batch, content_keys, extent, same_texts
from lsh.text.columns import Columns, fixed_width
from lsh.text.sets import ShingleSets

REFUSED = (TypeError, ValueError, OverflowError, IndexError, MemoryError, RuntimeError)
BYTE, CHAR, WORD = UNIT_CODES["byte"], UNIT_CODES["char"], UNIT_CODES["word"]
OUT = {"murmur3_32": numpy.int32, "murmur3_64": numpy.uint64, "fss": numpy.uint32}


def fingerprinter(scheme: str = "fss", unit: int = BYTE, n: int = 3, flags: int = 0) -> Fingerprinter:
    seeds = numpy.zeros(1 if scheme == "fss" else 16, numpy.uint32)
    return Fingerprinter(SCHEME_CODES[scheme], unit, n, seeds, 16, flags)


# Texts of callers.


def test_keys_and_texts_of_escapes_fit_where_they_are_decoded():
    """Keys with escapes are decoded into the buffer that holds the texts of earlier records."""
    record = b'{"\\u0061": "' + b"\\u00e9" * 50 + b'", "' + b"\\u0062" * 60 + b'": "\\n"}\n'
    found = json_fields(record * 200, (b"a", b"b" * 60), (b"c",))
    assert found is not None
    assert found[0][0].tolist() == ["é".encode() * 50] * 200
    assert found[0][1].tolist() == [b"\n"] * 200


def test_a_column_of_more_texts_than_there_is_memory():
    """2**60 texts share one byte: the size of their pointers does not fit into a word."""
    for count in (2**60, 2**61, 2**62):
        column = fixed_width(numpy.broadcast_to(numpy.array([b"a"]), count))
        for start in (0, 1):
            with pytest.raises(REFUSED):
                Batch(column, start=start)
        assert Batch(column, start=count - 2, stop=count).tolist() == [b"a", b"a"]
        assert extent(column, 0, count, 1000) == 1000


def test_collections_of_another_length_than_they_have():
    class Texts(tuple):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 1000

        def __getitem__(self, _: Any) -> Any:
            return "x" * 10

    class Claims(list):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 1000

    texts = Texts(("a", "é"))
    assert Batch(texts).tolist() == [b"a", "é".encode()]
    assert extent(texts, 0, 2, 100) == 2
    assert len(Batch(Claims(["a", "b"]))) == 2


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
    for read in (lambda: Batch((view,)), lambda: extent((view,), 0, 1, 10)):
        with pytest.raises(REFUSED):
            read()


def test_an_arrow_pair_that_makes_its_capsules_anew():
    class Pair(tuple):  # type: ignore[type-arg]
        def __getitem__(self, place: Any) -> Any:
            return made.array_capsules()[place]

    class Source:
        def __arrow_c_array__(self, _: object = None) -> Any:
            return Pair(made.array_capsules())

    made = producer.Producer(producer.node("u", [b"abc", b"defgh"]))
    assert Batch(next(Columns(Source()))).tolist() == [b"abc", b"defgh"]


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
        for _ in range(150):
            batch = Batch(fixed_width(memory))
            ShingleSets(batch, unit, n, flags).matrix(2, 0)
            shingles(batch, unit, n, flags)
            for scheme, dtype in OUT.items():
                fingerprinter(scheme, unit, n, flags).fill(batch, numpy.zeros((2, 16), dtype))
    finally:
        done.set()
        other.join()


# Indices of the package: each function checks those that it reads or writes memory by.

TWO = Batch(("abc", "abd"))
SKETCHES, ROWS = numpy.zeros((9, 4), numpy.uint8), numpy.zeros((3, 8), numpy.uint32)
KEYS, FLAGS = numpy.zeros((2, 3), numpy.uint64), numpy.ones(3, numpy.uint8)
DOCUMENTS = numpy.arange(3, dtype=numpy.uint32)


def links(*rows: list[int]) -> numpy.ndarray[Any, Any]:
    return numpy.array(rows, numpy.int32)


def kept(ends: Any = (2,), rows: Any = (0, 1), width: int = 1, bits: int = 1) -> object:
    ends, rows = numpy.array(ends, numpy.uint32), numpy.array(rows, numpy.int32)
    return keep_similar(links([0, 1])[0], ends, empty((2, width), numpy.uint64), rows, bits, 1, 9, False, 9)


def similarity(texts: Any = (0, 1), matrix: Any = SKETCHES[:2]) -> Similarity:
    return Similarity(matrix, ShingleSets(TWO, BYTE, 1), texts, 0)


def decisions(*given: list[int], ranks: Any = (0, 1), settled: int = 0, limit: int = 10, runs: Any = None) -> Decisions:
    made = links(*(given or ([-1, 0],)))
    return Decisions(made, numpy.zeros_like(made), ranks, settled, 0.5, limit, runs, 128, 2, 1 << 20)


def tables(reserved: int = 3) -> BucketTables:
    made = BucketTables(2)
    made.reserve(reserved, reserved)
    return made


def empty(shape: Any = 3, dtype: Any = numpy.int32) -> numpy.ndarray[Any, Any]:
    return numpy.zeros(shape, dtype)


WRONG: dict[str, list[Callable[[], object]]] = {
    "cells": [partial(delimited_cells, b"a\n", b"\t", (place,), 1, 1, False) for place in (-1, 1, sys.maxsize)],
    "batch": [
        lambda: Batch(TWO, start=0, stop=3),
        lambda: Batch(TWO, start=-1),
        lambda: TWO.take([2]),
        lambda: TWO.tolist(0, 3),
        lambda: Batch.of_bytes(empty(6, numpy.uint8), numpy.array([0, 7], numpy.int64)),
        lambda: Batch.of_bytes(empty(6, numpy.uint8), numpy.array([0, 3, 2], numpy.int64)),
        lambda: TWO.write(empty(5, numpy.uint8)),
        lambda: Batch.join([TWO, None]),
        lambda: Batch(("é",), transform=lambda text: "é"),
    ],
    "fingerprints": [
        lambda: fingerprinter().fill(TWO, empty((2, 15), numpy.uint32)),
        lambda: fingerprinter().fill(TWO, empty((1, 16), numpy.uint32)),
        lambda: fingerprinter().fill(TWO, empty((2, 16), numpy.uint64)),
        lambda: fingerprinter(unit=7),
        lambda: fingerprinter(n=0),
        lambda: shingles(TWO, 7, 1),
        lambda: count_equal(ROWS, ROWS[:, :3]),
        lambda: count_equal(ROWS[:, ::2], ROWS[:, ::2]),
    ],
    "band keys": [
        lambda: band_keys(ROWS, numpy.array([0, 4, 9], numpy.uintp), KEYS.copy()),
        lambda: band_keys(ROWS, numpy.array([0, 8, 4], numpy.uintp), KEYS.copy()),
        lambda: band_keys(ROWS[:2], numpy.array([0, 4, 8], numpy.uintp), KEYS.copy()),
        lambda: band_keys(ROWS[::-1], numpy.array([0, 4, 8], numpy.uintp), KEYS.copy()),
        lambda: band_keys(ROWS[:, ::2], numpy.array([0, 2, 4], numpy.uintp), KEYS.copy()),
    ],
    "buckets": [
        lambda: BucketFinder(3, [3], 0),
        lambda: BucketFinder(3, [1, 1], 0),
        lambda: BucketFinder(3, [0, 1, 2], 4),
        lambda: BucketFinder(3, [0, 1, 2], 3).find(KEYS[0, :2].copy()),
        lambda: kept(ends=[2, 1]),
        lambda: kept(ends=[3]),
        lambda: kept(rows=[0, 2]),
        lambda: kept(rows=[0]),
        lambda: kept(width=3, bits=2),
    ],
    "bins": [
        lambda: tables(0).insert(KEYS, DOCUMENTS),
        lambda: tables().insert(KEYS, DOCUMENTS + 1000),
        lambda: tables().insert(KEYS[:1], DOCUMENTS),
        lambda: tables().remove(KEYS, DOCUMENTS + 1000),
        lambda: tables().members(2, 0),
        lambda: tables().bins(2),
        lambda: tables().candidates(KEYS[:1]),
        lambda: tables().candidates(KEYS, 4),
        lambda: tables().reserve(2**63, 2**63),
    ],
    "comparing": [
        lambda: similarity(texts=[0, 2]),
        lambda: similarity(texts=[0]),
        lambda: similarity(matrix=SKETCHES[:2, :3]),
        lambda: Similarity(SKETCHES.view(numpy.int8), None, None, 0),
        lambda: Pairs(similarity(), links([-1, 0]), [0, 7], 0.5),
        lambda: Pairs(similarity(), links([-1, 0]), [0, 1], 0.5).run(2, 0, 100),
        lambda: Pairs(similarity(), links([1, 0]), [0, 1], 0.5).run(1, -1, 100),
        lambda: same_texts(TWO, [0, 1], TWO, [0, 2]),
        lambda: same_texts(TWO, [0], TWO, [0, 1]),
        lambda: content_keys(TWO, bytes(16), empty(3, numpy.uint64)),
        lambda: content_keys(TWO, bytes(15), empty(2, numpy.uint64)),
        lambda: pack_low_bits(SKETCHES, 9),
        lambda: ShingleSets(TWO, BYTE, 1).matrix(3, 0),
    ],
    "decisions": [
        lambda: decisions([-1, 5]),
        lambda: decisions([-2, 0]),
        lambda: decisions([0, -1]),
        lambda: decisions(ranks=[0, 1, 2]),
        lambda: decisions(settled=-1),
        lambda: decisions(limit=-1),
        lambda: decisions(runs=empty((1, 1))),
        lambda: Decisions(links([-1, 0]), empty((1, 1)), [0, 1], 0, 0.5, 10, None, 128, 2, 1 << 20),
        lambda: Walk(similarity(), decisions([-1, 0, 1], ranks=[0, 1, 2])),
        lambda: Walk(similarity(), decisions()).run(0, 3),
        lambda: Walk(similarity(), decisions()).attach(0, 1),
        lambda: Walk(similarity(texts=[0, -1]), decisions()).run(0, 2),
        lambda: Family(similarity(), 0, 3, 2, 1 << 20),
        lambda: Family(Similarity(ROWS, None, None, 0), 0, 2, 2, 1 << 20),
        lambda: Family(similarity(), 0, 2, 9, 1 << 20),
    ],
    "components": [
        lambda: Components(2**31),
        lambda: Components(2).connect(links([0, 2]), links([0, 1, 2])[0]),
        lambda: Components(2).connect(links([0, 3]), links([0, 1, 1])[0]),
        lambda: Components(2).connect(links([0, 1]), links([0, 5])[0]),
        lambda: Components(2).connect(empty((1, 3)), empty()),
        lambda: write_links(links([0, 1]), links([0, 5])[0], empty(2)),
    ],
}


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, calls in WRONG.items() for call in calls])
def test_wrong_indices_are_refused(call):
    with pytest.raises(REFUSED):
        call()
