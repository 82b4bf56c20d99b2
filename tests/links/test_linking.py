"""Links of documents with equal keys: at once, or part by part of the keys, against slow reference code."""

import numpy
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st

import lsh.base.budget
import lsh.links.linking
from lsh.base.budget import MemoryBudget, SpilledColumn
from lsh.links.grouping import pack_low_bits
from lsh.links.linking import PART_BYTES, Links, LowBits, Order


def column(budget, keys, kind=numpy.uint64) -> SpilledColumn:
    made = budget.column(kind)
    made.append(numpy.array(keys, kind))
    return made


@st.composite
def cases(draw):
    """Keys of documents, which of them take part, an order, its documents, and how many can be predecessors."""
    count = draw(st.integers(0, 60))
    keys = draw(st.lists(st.integers(0, draw(st.sampled_from([0, 2, 10, 10**9]))), min_size=count, max_size=count))
    chosen = numpy.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), numpy.bool_)
    split = draw(st.integers(0, count))
    kind = draw(st.sampled_from(["first", "last", "pairs", "two", "given"]))
    old, new = list(range(split, count)), list(range(split))
    if kind == "given":
        positions = draw(st.permutations(range(count)))
        order = Order([(0, count, False)], numpy.array(positions, numpy.int32))  # no document is an old one
    elif kind in ("first", "last"):
        positions = old + (new if kind == "first" else new[::-1])
        order = Order([(split, count, False), (0, split, kind == "last")], old_from=split)
    else:
        positions = old[::-1] + new[::-1]
        order = Order([(split, count, True), (0, split, True)], entered=1 if kind == "two" else 2, old_from=split)
    taking_part = [document for document in positions if chosen[document]]
    entered = sum(document >= split for document in taking_part) if kind == "two" else len(taking_part)
    return keys, chosen, order, taking_part, entered


@given(
    case=cases(),
    parts=st.integers(0, 7),
    chunk=st.sampled_from([8, 40, 1 << 19]),
    most=st.integers(0, 4),
    share=st.sampled_from([None, 1, 4, 100]),
    kind=st.sampled_from([numpy.uint32, numpy.uint64]),
)
@strategies.examples(200)
def test_links_in_parts_against_twin(case, parts, chunk, most, share, kind):
    """0 parts: all at once. The number of parts, where they are in files, and the chunks change no link.

    4 of 4 components may differ: all documents of a bucket are one group. Where buckets are small, one in `share`
    documents is put into groups at once, or a bucket.
    """
    keys, chosen, order, taking_part, entered = case
    rows = numpy.random.default_rng(len(keys)).integers(0, 4, (len(keys), 4)).astype(numpy.uint8)
    num_old = sum(document >= order.old_from for document in taking_part)
    number = {document: place for place, document in enumerate(taking_part)}
    before = [number.get(one, -1) for one in map(reference.link(keys, taking_part, entered).__getitem__, taking_part)]
    sketches = [rows[document].tolist() for document in taking_part]
    expected = reference.keep_similar(before, sketches, most, num_old, entered, 10**9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lsh.base.budget, "CHUNK", chunk)
        patch.setattr(lsh.base.budget, "MIN_ROWS", 2)
        patch.setattr(lsh.links.linking, "CHUNK", 3)
        patch.setattr(lsh.links.linking, "SAMPLED", (3, 1))
        patch.setattr(lsh.links.linking, "RARE", 1)  # a bucket is never taken to be large
        patch.setattr(lsh.links.linking, "SHARE", share or 1)
        budget = MemoryBudget(PART_BYTES * max(len(taking_part), 1) // parts if parts else None)
        low_bits = budget.column(numpy.uint64, 2)
        low_bits.append(pack_low_bits(rows, 2))
        own = column(budget, keys, kind)
        band = Links(budget, order, chosen, 1, LowBits(low_bits, 2, most), [own] if share else ()).of_band(own)
        pairs = band.pairs.read()
    found = dict(pairs.tolist())
    assert len(found) == len(pairs)
    assert [number.get(found.get(document, -1), -1) for document in taking_part] == expected[0]
    assert (band.shared, band.left_out) == expected[1:]
    assert order.documents(chosen).tolist() == taking_part
    assert order.num_entered(chosen) == entered


@given(case=cases(), parts=st.integers(0, 5), chunk=st.sampled_from([8, 40, 1 << 19]))
@strategies.examples(200)
def test_first_documents_against_twin(case, parts, chunk):
    """A key may have more documents than a part has keys on average; they are taken together in between."""
    keys, chosen, order, taking_part, _ = case
    order = Order(order.runs, order.given)
    firsts: dict[int, int] = {}
    expected = [-1] * len(keys)
    for document in taking_part:
        expected[document] = firsts.setdefault(keys[document], document)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lsh.base.budget, "CHUNK", chunk)
        patch.setattr(lsh.base.budget, "MIN_ROWS", 2)
        patch.setattr(lsh.links.linking, "CHUNK", 3)
        budget = MemoryBudget(PART_BYTES * max(len(taking_part), 1) // parts if parts else None)
        assert Links(budget, order, chosen, 1).firsts(column(budget, keys)).tolist() == expected


@pytest.mark.parametrize("places", [slice(0, 300_000, 16), slice(100_000, 118_750), None])
def test_a_large_bucket_of_any_band_is_expected(places):
    """One in sixteen documents, far apart or side by side; then the memory for groups is that of all documents."""
    count = 300_000
    budget, order, chosen = MemoryBudget(50_000_000), Order([(0, count, False)]), numpy.ones(count, numpy.bool_)
    keys = numpy.arange(2 * count).reshape(2, count)
    if places is not None:
        keys[1, places] = 0
    bands = [column(budget, row) for row in keys]
    sizes = [Links(budget, order, chosen, 1, LowBits(None, 0, 0), some).num_bytes for some in (bands, bands[:1])]
    assert (sizes[0] > sizes[1]) == (places is not None)


def test_parts_are_as_many_as_the_bound_needs():
    count = 10_000
    order, chosen = Order([(0, count, False)]), numpy.ones(count, numpy.bool_)
    for bound, threads, parts in ((None, 2, 0), (10**6, 2, 0), (240_000, 1, 3), (240_000, 2, 6), (24_000, 3, 30)):
        links = Links(MemoryBudget(bound), order, chosen, threads)
        assert (0 if links._finder is not None else links._parts) == parts
        assert links.num_threads == (2 if threads == 2 else 1)
    budget = MemoryBudget(10**6)
    budget.reserve(500_000)  # memory for one thread is left, not for two
    links = Links(budget, order, chosen, 2)
    assert links._finder is None or links.num_threads < 2
