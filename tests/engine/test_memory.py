"""Hostile texts of callers for the compiled modules: an error or no harm, and never an access to other memory.

Classes lie or run code, and another thread changes an array of texts. `.ci/run` runs this file in a build with
sanitizers, which end the process at the first access outside an array.
"""

import threading
from typing import Any

import numpy
import producer
import pytest

from lsh._minhash import NORMALISATIONS, SCHEME_CODES, UNIT_CODES, Fingerprinter, shingles
from lsh.text.batch import Batch, extent
from lsh.text.columns import Columns, fixed_width
from lsh.text.sets import ShingleSets

REFUSED = (TypeError, ValueError, OverflowError, IndexError, MemoryError, RuntimeError)
BYTE, CHAR, WORD = UNIT_CODES["byte"], UNIT_CODES["char"], UNIT_CODES["word"]
OUT = {"murmur3_32": numpy.int32, "murmur3_64": numpy.uint64, "fss": numpy.uint32}


def test_a_column_of_more_texts_than_there_is_memory():
    """2**60 texts share one byte: the size of their pointers does not fit into a word."""
    for count in (2**60, 2**61, 2**62):
        column = fixed_width(numpy.broadcast_to(numpy.array([b"a"]), count))
        for start in (0, 1):
            with pytest.raises(REFUSED):
                Batch(column, start=start)
        assert Batch(column, start=count - 2, stop=count).tolist() == [b"a", b"a"]
        assert extent(column, 0, count, 1000) == 1000


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


@pytest.mark.few(3)
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
                seeds = numpy.zeros(1 if scheme == "fss" else 16, numpy.uint32)
                hasher = Fingerprinter(SCHEME_CODES[scheme], unit, n, seeds, 16, flags)
                hasher.fill(batch, numpy.zeros((2, 16), dtype))
    finally:
        done.set()
        other.join()
