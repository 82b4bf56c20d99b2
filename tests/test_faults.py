"""Faults that were found by attack, each with the smallest case that showed it."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import sys
import threading

import numpy
import pytest

import lsh
from lsh import Bands, Cache, MinHasher
from lsh._batch import Batch
from lsh._comparing import Pairs, Similarity, Walk, content_keys, first_copies, same_texts
from lsh._grouping import BinTables, Linker, band_keys
from lsh._minhash import UNIT_CODES, count_equal
from lsh._sets import ShingleSets


class LongBytes(bytes):
    def __len__(self) -> int:
        return 2**62


class LongText(str):
    def __len__(self) -> int:
        return 2**62

    def isascii(self) -> bool:
        return True

    def encode(self, *_: object) -> bytes:
        return LongBytes(b"x")


class LongArray(bytearray):
    def __bytes__(self) -> bytes:
        return LongBytes(b"x")


@pytest.mark.parametrize("text", [LongBytes(b"abc"), LongText("abc"), LongText("äöü"), LongArray(b"abc")])
def test_a_text_is_as_long_as_it_is_whatever_its_class_says(text):
    plain = bytes(memoryview(text)) if not isinstance(text, str) else str.encode(text)
    assert Batch([text]).sizes().tolist() == [memoryview(plain).nbytes]
    numpy.testing.assert_array_equal(MinHasher(4).fingerprint(text), MinHasher(4).fingerprint(plain))


@pytest.mark.parametrize("rows", [numpy.zeros(4, numpy.uint32), [], numpy.zeros((3, 1), numpy.uint32)])
def test_band_keys_take_a_matrix_of_enough_components(rows):
    with pytest.raises(ValueError, match=r"fingerprints must have shape \(n, k\)"):
        Bands(1, 2).keys(rows)


def test_bands_have_a_bound():
    for arguments in [(1, 2**63), (2**40, 1)]:
        with pytest.raises(ValueError, match="must be at most 1048576"):
            Bands(*arguments)
    with pytest.raises(ValueError, match="must be at most 1048576"):
        Bands(widths=(2**62, 2**62))


def test_the_bindings_check_what_they_index_with():
    sets = ShingleSets(Batch(["a", "b"]), UNIT_CODES["byte"], 1)
    keys = numpy.zeros((1, 2), numpy.uint64)
    for order in ([5], [-1], [0, 0]):
        with pytest.raises(ValueError, match="order must name documents"):
            Linker(2, order, 0)
    for entered in (-1, 3, 2**62):
        with pytest.raises(ValueError, match="entered"):
            Linker(2, [0, 1], entered)
    sketches, links = numpy.zeros((9, 4), numpy.uint8), numpy.array([[-1, 0]], numpy.int32)
    for rows, texts in (([0, 9], [0, 1]), ([-1, 0], [0, 1]), ([0, 1], [0, 2]), ([0, 1], [-2, 0]), ([0, 1], [0])):
        with pytest.raises(ValueError, match="must be 2 numbers from"):
            Similarity(sketches, rows, sets, texts, 0)
    for wrong, beside in ((sketches, None), (sketches.astype(numpy.uint32), sets), (sketches[:, :3], sets)):
        with pytest.raises(ValueError, match="matrix must be C-contiguous"):
            Similarity(wrong, [0, 1], beside, [0, 1], 0)
    similarity = Similarity(sketches, [0, 1], sets, [0, 1], 0)
    depth = numpy.zeros((1, 2), numpy.int32)
    for wrong in ([[0, 0]], [[-1, 1]], [[-1, 5]], [[-2, 0]]):
        with pytest.raises(ValueError, match="links must lead to earlier documents"):
            Walk(similarity, numpy.array(wrong, numpy.int32), depth, 0, 0.5, 10, False)
    with pytest.raises(ValueError, match="depth must be as large as links"):
        Walk(similarity, links.copy(), depth[:, :1].copy(), 0, 0.5, 10, False)
    for settled in (-1, 3):
        with pytest.raises(ValueError, match="of the same documents"):
            Walk(similarity, links.copy(), depth, settled, 0.5, 10, False)
    walk = Walk(similarity, links.copy(), depth, 0, 0.5, 10, False)
    for start, stop in ((-1, 1), (0, 3), (2, 1)):
        with pytest.raises(ValueError, match="start and stop"):
            walk.run(start, stop)
    for firsts in ([0, 7], [-3, 0], [0]):
        with pytest.raises(ValueError, match="firsts must be 2 numbers"):
            Pairs(similarity, links, firsts, 0.5)
    for document, stop in ((2, 0), (0, -2), (0, 1)):
        with pytest.raises(ValueError, match="document and stop"):
            Pairs(similarity, links, [0, 1], 0.5).next(document, stop)
    silent = Similarity(sketches, [0, 1], sets, [0, -1], 0)
    with pytest.raises(ValueError, match="one of them has no text"):
        Walk(silent, links.copy(), depth, 0, 0.5, 10, False).run(0, 2)
    batch = Batch(["a", "b"])
    for places in ([0, 2], [0, -1], [0]):
        with pytest.raises(ValueError, match=r"places_[ab] must be"):
            same_texts(batch, [0, 1], batch, places)
        with pytest.raises(ValueError, match=r"places_[ab] must be"):
            same_texts(batch, places, batch, [0, 1])
    for order, wrong in (([0, 1], links[0] + 1), ([1, 0], links[0]), ([1], links[0]), ([0, 1], links[0] - 1)):
        with pytest.raises(ValueError, match="links must lead"):
            first_copies(wrong, order)
    for order in ([0, 2], [-1]):
        with pytest.raises(ValueError, match="order must be"):
            first_copies(links[0], order)
    for secret, room in ((bytes(16), 3), (bytes(15), 2)):
        with pytest.raises(ValueError, match="a number a text, and secret 16 bytes"):
            content_keys(batch, secret, numpy.zeros(room, numpy.uint64))
    data = numpy.zeros(4, numpy.uint8)
    for offsets in ([], [-1, 2], [0, 5], [0, 3, 2, 4]):
        with pytest.raises(ValueError, match="offsets must"):
            Batch.of_bytes(data, numpy.array(offsets, numpy.int64))
    for room in (1, 3):
        with pytest.raises(ValueError, match="the texts take"):
            batch.write(numpy.zeros(room, numpy.uint8))
    for positions in ([2], [-1], [0, 5]):
        with pytest.raises(IndexError, match="positions must be from 0 to 1"):
            batch.take(positions)
    for bounds in ([0, 2**63 + 5], [1, 0], [0]):
        with pytest.raises(ValueError, match=r"bounds|out"):
            band_keys(numpy.zeros((2, 4), numpy.uint32), numpy.array(bounds, numpy.uintp), keys)
    with pytest.raises(ValueError, match="same number of components"):
        count_equal(numpy.zeros((1, 3), numpy.uint32), numpy.zeros((1, 2), numpy.uint32))


def test_bins_stay_in_memory_when_the_caller_is_wrong():
    tables = BinTables(1)
    tables.reserve(8, 8)
    one, two = numpy.array([[1]], numpy.uint64), numpy.array([[2]], numpy.uint64)
    zero, three = numpy.array([0], numpy.uint32), numpy.array([3], numpy.uint32)
    tables.insert(one, zero)
    tables.insert(one, zero)
    tables.insert(two, zero)
    assert tables.members(0, 1).tolist() == [0]
    assert tables.members(0, 2).tolist() == []
    tables.insert(two, three)
    tables.remove(one, three)
    with contextlib.suppress(ValueError):  # it may say that the bin is broken
        assert len(tables.members(0, 2)) <= 8


def test_the_first_form_is_a_module_of_its_own():
    from lsh import lsh as first

    assert first is importlib.import_module("lsh.lsh")
    assert first is not lsh
    assert len(first.Cache(bands=4, hasher=MinHasher(16))) == 0


class Wayward:
    """An id that cannot be compared."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.armed = False

    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        if self.armed:
            raise ZeroDivisionError("no comparing")
        return self is other


def test_an_id_that_cannot_be_compared_changes_nothing():
    cache = Cache(MinHasher(16), num_bands=4)
    ids = [Wayward(i) for i in range(5)]
    cache.add_docs([f"a text about number {i}" for i in range(5)], ids)
    ids[3].armed = True
    with pytest.raises(ZeroDivisionError):
        cache.add_docs(["another", "text"], [Wayward(9), Wayward(10)])
    ids[3].armed = False
    assert list(cache) == ids
    assert all(cache.get_duplicates_of(doc_id=doc_id) >= {doc_id} for doc_id in ids)


@pytest.mark.parametrize("step", ["keys", "insert", "remove"])
@pytest.mark.parametrize("call", [0, 1, 2])
def test_a_change_that_is_broken_off_is_mended(monkeypatch, step, call):
    """Whatever step of a change fails, no document is lost but by a removal, and none comes back."""
    cache = Cache(MinHasher(16), num_bands=4)
    texts = {i: f"text number {i} is about {i * i} things" for i in range(40)}
    cache.add_docs(texts.values(), texts)
    stored = cache._stored
    calls = iter(range(100))

    class Failing:
        def __init__(self, inner: object) -> None:
            self.inner = inner

        def __getattr__(self, name: str):
            if name == step and next(calls) == call:
                raise KeyboardInterrupt
            return getattr(self.inner, name)

    stored.bands, stored.tables = Failing(stored.bands), Failing(stored.tables)
    gone = set()
    for doc_id in (3, 5, 8):
        try:
            cache.remove_id(doc_id)
            gone.add(doc_id)
        except KeyboardInterrupt:
            gone.add(doc_id) if doc_id not in cache else None
        with contextlib.suppress(KeyboardInterrupt):
            cache.add_doc(texts[doc_id + 20], doc_id + 20)
    stored.bands = cache.bands
    cache.add_doc("a last one", "last")
    expected = (set(texts) - gone) | {"last"}
    assert set(cache) == expected == set(cache._stored.numbers)
    for doc_id in expected - {"last"}:
        assert doc_id in cache.get_duplicates_of(texts[doc_id]) <= expected
    for band in cache.bins:
        assert set().union(*(set(band[key]) for key in band)) == expected


def _ask(cache: Cache, answer: object) -> None:
    answer.put(cache.is_duplicate("a text that is stored"))  # type: ignore[attr-defined]


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_while_a_lock_is_held_does_not_hang():
    cache = Cache(MinHasher(16), num_bands=4)
    cache.add_doc("a text that is stored", 1)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with cache._lock:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    context = multiprocessing.get_context("fork")
    answer = context.Queue()
    child = context.Process(target=_ask, args=(cache, answer))
    child.start()
    try:
        assert answer.get(timeout=30) is True
    finally:
        child.kill()
        child.join()
        done.set()
        thread.join()


def test_a_fingerprint_may_be_a_list_of_any_uint64():
    hasher = MinHasher(4)
    row = [1, 2**63 + 1, 0, 2**64 - 1]
    assert hasher.jaccard(row, numpy.array(row, numpy.uint64)) == 1.0
    with pytest.raises(ValueError, match="out of their range"):
        hasher.jaccard([1, 2, 3, 2**64], row)


def test_numbers_beyond_float_are_refused_in_words():
    with pytest.raises(TypeError, match="threshold must be a number"):
        lsh.deduplicate(["a"], 10**400)
    with pytest.raises(TypeError, match="keep must be"):
        lsh.deduplicate(["a", "b"], keep=[10**400, 1])
    with pytest.raises(ValueError, match="confidence must be less than 1"):
        MinHasher(4).interval("a", "b", 0.9999999999999999)


def test_many_undecodable_bytes_are_normalised_in_linear_memory():
    text = b"\xff" * 300_000 + b"AB" + b"\xff" * 10
    assert lsh.Shingles(3, lowercase=True).apply(text) == text.replace(b"AB", b"ab")
