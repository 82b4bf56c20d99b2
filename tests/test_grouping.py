"""Links and components against their plain twins: documents that share a band key, and what they connect."""

from __future__ import annotations

import contextlib

import numpy
import pytest
import reference
from hypothesis import example, given
from hypothesis import strategies as st

from lsh import _threads
from lsh._components import Components
from lsh._grouping import BinTables, Linker, band_keys

M64 = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15  # of kernels/grouping.c, which deals keys out by the top bits of their product with it
UNDO = pow(GOLDEN, -1, 2**64)
SCALES = (1, 2**32, 2**54, UNDO, (1 << 40) * UNDO & M64)  # keys that differ in few bits, also in few of the product


@st.composite
def keys_in_order(draw):
    """Keys of documents, an order of some of them, and how many of these enter."""
    count = draw(st.integers(0, 40))
    scale, values = draw(st.sampled_from(SCALES)), draw(st.sampled_from([0, 1, 3, 20, M64]))
    keys = [value * scale & M64 for value in draw(st.lists(st.integers(0, values), min_size=count, max_size=count))]
    order = draw(st.permutations(range(count)))[: draw(st.integers(0, count))]
    return keys, order, draw(st.integers(0, len(order)))


def linked(keys, order, entered):
    links = numpy.empty(len(keys), numpy.int32)
    Linker(len(keys), order, entered).link(numpy.array(keys, numpy.uint64), links)
    return links.tolist()


@given(case=keys_in_order())
@example(case=([], [], 0))
@example(case=([7], [0], 1))
@example(case=([7, 7], [1, 0], 1))
@example(case=([7, 7], [1, 0], 0))
def test_links_against_twin(case):
    assert linked(*case) == reference.link(*case)


def keys_of_kind(kind, count, random):
    """Keys of many documents, more than one partition holds."""
    if kind == "equal":
        return numpy.full(count, 12345, numpy.uint64)
    if kind == "distinct":
        return random.permutation(count).astype(numpy.uint64)
    if kind == "one partition":  # the product has the top bits in common
        return random.integers(0, count, count).astype(numpy.uint64) * numpy.uint64(UNDO)
    if kind == "one slot":  # a chain of keys, as the product differs in its last bits only
        return random.integers(0, 200, count).astype(numpy.uint64) * numpy.uint64(UNDO)
    keys = random.integers(0, 2**64, count, dtype=numpy.uint64)
    keys[random.random(count) < {"few": 1.0, "giant": 0.7, "near": 0.3}[kind]] = keys[0]
    return keys if kind != "few" else random.choice(keys[:1] + numpy.arange(5, dtype=numpy.uint64), count)


KINDS = ["equal", "distinct", "one partition", "one slot", "few", "giant", "near"]
COUNTS = [2047, 2049, 4097, 50_000]  # a partition has 2048 on average
MANY = [
    pytest.param(kind, count, marks=pytest.mark.slow if (kind, count) == ("one partition", 50_000) else ())
    for count in COUNTS
    for kind in KINDS
]


@pytest.mark.parametrize(("kind", "count"), MANY)
def test_many_documents_against_twin(kind, count):
    random = numpy.random.default_rng(count)
    keys = keys_of_kind(kind, count, random)
    for order, entered in (
        (numpy.arange(count), count),
        (random.permutation(count), count),
        (random.permutation(count)[: count // 2], count // 3),
        (numpy.arange(count)[::-1], count // 2),
    ):
        assert linked(keys, order, entered) == reference.link(keys.tolist(), order.tolist(), entered)


def test_bands_are_linked_one_by_one_in_any_number_of_threads():
    random = numpy.random.default_rng(5)
    keys = random.integers(0, 3000, (12, 5000)).astype(numpy.uint64)
    order = random.permutation(5000).astype(numpy.int32)
    expected = [reference.link(row, order.tolist(), 4000) for row in keys.tolist()]
    linker = Linker(5000, order, 4000)
    for num_threads in (1, 2, 5):
        links = numpy.empty(keys.shape, numpy.int32)
        _threads.share(lambda band, links=links: linker.link(keys[band], links[band]), range(12), num_threads)
        assert links.tolist() == expected


def test_a_linker_forgets_what_it_linked():
    linker = Linker(3, numpy.arange(3, dtype=numpy.int32), 3)
    for keys, expected in (([1, 1, 1], [-1, 0, 1]), ([1, 2, 3], [-1, -1, -1]), ([2, 1, 2], [-1, -1, 0])):
        links = numpy.full(3, 9, numpy.int32)
        linker.link(numpy.array(keys, numpy.uint64), links)
        assert links.tolist() == expected


def test_bad_arguments_of_links():
    order = numpy.arange(3, dtype=numpy.int32)
    for entered in (-1, 4):
        with pytest.raises(ValueError, match="entered must be at most"):
            Linker(3, order, entered)
    for wrong in ([3], [-1], [1, 1]):
        with pytest.raises(ValueError, match="order must name documents from 0 to 2"):
            Linker(3, numpy.array(wrong, numpy.int32), 0)
    linker = Linker(3, order, 3)
    for keys, links in ((2, 3), (3, 2), (4, 4)):
        with pytest.raises(ValueError, match=f"of 3 documents, got {keys} and {links}"):
            linker.link(numpy.zeros(keys, numpy.uint64), numpy.zeros(links, numpy.int32))
    with pytest.raises(ValueError, match=r"[Bb]uffer"):
        linker.link(numpy.zeros(3, numpy.int64), numpy.zeros(3, numpy.int32))
    with pytest.raises(ValueError, match="contiguous"):
        linker.link(numpy.zeros(6, numpy.uint64)[::2], numpy.zeros(3, numpy.int32))
    with pytest.raises(TypeError):
        linker.link(None, numpy.zeros(3, numpy.int32))
    frozen = numpy.zeros(3, numpy.int32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        linker.link(numpy.zeros(3, numpy.uint64), frozen)


def test_a_linker_checks_what_it_indexes_with():
    for order in ([5], [-1], [0, 0]):
        with pytest.raises(ValueError, match="order must name documents"):
            Linker(2, order, 0)
    for entered in (-1, 3, 2**62):
        with pytest.raises(ValueError, match="entered"):
            Linker(2, [0, 1], entered)


# Band keys of rows that lie apart.


@pytest.mark.parametrize("dtype", [numpy.uint32, numpy.uint64])
@pytest.mark.parametrize(
    "widths", [[6] * 20, [1] * 40, [300, 3, 3], [0, 2, 0], [17, 16, 16, 600], [256, 257, 1], [2] * 300]
)
def test_keys_of_many_rows_against_twin(dtype, widths):
    used, random = sum(widths), numpy.random.default_rng(len(widths))
    wide = random.integers(0, numpy.iinfo(dtype).max, (130, used + 5), dtype=dtype, endpoint=True)
    bounds = numpy.cumsum([0, *widths]).astype(numpy.uintp)
    for rows in (wide[:, :used], wide[:, 3 : 3 + used], wide[::2, :used], wide[:1, :used], wide[64:128], wide[:0]):
        out = numpy.zeros((len(widths), len(rows)), numpy.uint64)
        band_keys(rows, bounds, out)
        assert out.T.tolist() == [reference.band_keys(row, widths) for row in rows.tolist()]


def test_rows_that_the_kernel_cannot_walk_are_refused():
    rows, out = numpy.zeros((4, 8), numpy.uint32), numpy.zeros((2, 4), numpy.uint64)
    bounds = numpy.array([0, 2, 4], numpy.uintp)
    for wrong in (rows[::-1], numpy.broadcast_to(rows[:1], (4, 8))):
        with pytest.raises(ValueError, match="rows must lie 8 components or more apart"):
            band_keys(wrong, bounds, out)
    for wrong in (rows[:, ::2], rows[:, ::-1]):
        with pytest.raises(ValueError, match=r"side by side|apart"):
            band_keys(wrong, bounds, out)


def test_bad_bounds_of_keys():
    keys = numpy.zeros((1, 2), numpy.uint64)
    for bounds in ([0, 2**63 + 5], [1, 0], [0]):
        with pytest.raises(ValueError, match=r"bounds|out"):
            band_keys(numpy.zeros((2, 4), numpy.uint32), numpy.array(bounds, numpy.uintp), keys)


# Components.


@st.composite
def documents_and_pairs(draw):
    count = draw(st.integers(1, 40))
    document = st.integers(0, count - 1)
    return count, draw(st.lists(st.tuples(document, document), max_size=60))


def pair_arrays(pairs):
    return numpy.array(pairs, numpy.int32).reshape(-1, 2).T.copy()


@given(case=documents_and_pairs(), cut=st.integers(0, 60))
def test_components_of_pairs_against_twin(case, cut):
    count, pairs = case
    components = Components(count)
    joined = [components.add_pairs(*pair_arrays(some)) for some in (pairs[:cut], pairs[cut:])]
    expected = reference.components(count, pairs)
    labels = components.labels()
    assert (labels.dtype, labels.tolist()) == (numpy.int32, expected)
    assert count - sum(joined) == len(set(expected))
    assert components.labels().tolist() == expected
    assert components.add_pairs(*pair_arrays(list(enumerate(expected)))) == 0


@given(case=keys_in_order(), others=st.lists(st.integers(0, 3), min_size=40, max_size=40))
def test_components_of_links_against_twin(case, others):
    keys, order, entered = case
    components, pairs = Components(len(keys)), []
    for row in (keys, others[: len(keys)]):
        links = linked(row, order, entered)
        components.add_links(numpy.array(links, numpy.int32))
        pairs += [(document, other) for document, other in enumerate(links) if other >= 0]
    assert components.labels().tolist() == reference.components(len(keys), pairs)


def test_long_chains_against_twin():
    count, random = 20_000, numpy.random.default_rng(3)
    for pairs in (
        [(i, i + 1) for i in range(count - 1)],
        [(i, i + 1) for i in reversed(range(count - 1))],
        [(i, count - 1 - i) for i in range(count)],
        random.integers(0, count, (count // 2, 2)).tolist(),
        [(count - 1, i) for i in random.permutation(count).tolist()],
    ):
        components = Components(count)
        components.add_pairs(*pair_arrays(pairs))
        assert components.labels().tolist() == reference.components(count, pairs)


def test_components_grow_in_any_number_of_threads():
    count, random = 3000, numpy.random.default_rng(4)
    links = random.integers(-count, count, (30, count)).astype(numpy.int32)
    links[:, random.random(count) < 0.9] = -1
    pairs = [(i, other) for row in links.tolist() for i, other in enumerate(row) if other >= 0]
    for num_threads in (1, 4):
        components = Components(count)
        _threads.share(components.add_links, links, num_threads)
        assert components.labels().tolist() == reference.components(count, pairs)


def test_bad_arguments_of_components():
    for count in (-1, 2**31):
        with pytest.raises(ValueError, match="count must be 0 to 2147483647"):
            Components(count)
    empty, components = numpy.empty(0, numpy.int32), Components(3)
    assert (components.count, Components(0).labels().tolist()) == (3, [])
    with pytest.raises(ValueError, match="links must be of 3 documents, got 0"):
        components.add_links(empty)
    with pytest.raises(IndexError, match="document 1 is linked to 3 of 3"):
        components.add_links(numpy.array([-1, 3, 0], numpy.int32))
    with pytest.raises(ValueError, match="same length, got 0 and 1"):
        components.add_pairs(empty, numpy.zeros(1, numpy.int32))
    for pair in ((0, 3), (-1, 0)):
        with pytest.raises(IndexError, match=r"pair 0 is \(-?\d, \d\) of 3 documents"):
            components.add_pairs(*pair_arrays([pair]))
    assert components.labels().tolist() == [0, 1, 2]


# The tables of a cache.


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
