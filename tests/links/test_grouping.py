"""Buckets and components against slow reference code: documents that share a band key, and their components."""

import itertools

import numpy
import pytest
import reference
from hypothesis import example, given
from hypothesis import strategies as st

from lsh.engine.deciding import ClusterState, GreedyClusterer
from lsh.links.comparing import Similarity
from lsh.links.grouping import BucketFinder, Components

UNDO = pow(0x9E3779B97F4A7C15, -1, 2**64)  # kernels/grouping.c: a partition has the top bits of a product
UNDO_32 = pow(0x9E3779B1, -1, 2**32)  # the same for keys of 4 bytes


def linked(keys, order, entered):
    """The latest document before each one in its bucket that is among the first `entered`, by document."""
    memory = numpy.empty(len(keys), numpy.uint64)
    memory.view(keys.dtype)[: len(keys)] = keys
    members, ends = BucketFinder(len(keys), order, entered).find(memory, short=keys.dtype == numpy.uint32)
    ranks = {document: rank for rank, document in enumerate(order)}
    links, start = {}, 0
    for end in ends.tolist():
        bucket, latest = members[start:end].tolist(), None
        assert len(bucket) > 1
        assert ranks[bucket[0]] < entered
        for document in bucket:
            assert document not in links
            links[document] = latest
            latest = document if ranks[document] < entered else latest
        start = end
    assert start == len(members)
    return {document: other for document, other in links.items() if other is not None}


def keys_of_kind(kind, count, random):
    """Keys of documents, of which many are too many for one partition."""
    if kind == "equal":
        return numpy.full(count, 12345, numpy.uint32)
    if kind == "distinct":
        return random.permutation(count).astype(numpy.uint32)
    if kind == "short":  # the product has the top bits in common
        return random.integers(0, count, count).astype(numpy.uint32) * numpy.uint32(UNDO_32)
    if kind in ("one partition", "one slot"):  # a chain of keys, as the product differs in its last bits only
        return random.integers(0, 200 if kind == "one slot" else count, count).astype(numpy.uint64) * numpy.uint64(UNDO)
    if kind == "high":  # keys that differ in few bits only
        return random.integers(0, 20, count).astype(numpy.uint64) << numpy.uint64(54)
    if kind == "product":
        return random.integers(0, 20, count).astype(numpy.uint64) * numpy.uint64((UNDO << 40) % 2**64)
    keys = random.integers(0, 2**64, count, dtype=numpy.uint64)
    keys[random.random(count) < {"few": 1.0, "giant": 0.7, "near": 0.3}[kind]] = keys[0]
    return keys if kind != "few" else random.choice(keys[:1] + numpy.arange(5, dtype=numpy.uint64), count)


KINDS = ["equal", "distinct", "high", "product", "few", "giant", "near", "one slot", "one partition", "short"]
COUNTS = [1, 2, 3, 40, 2047, 2049, 4097, 50_000]  # a partition has 2048 on average
MANY = [
    pytest.param(kind, count, marks=pytest.mark.slow if (kind, count) == ("one partition", 50_000) else ())
    for count, kind in itertools.product(COUNTS, KINDS)
]


@pytest.mark.few(40)
@pytest.mark.parametrize(("kind", "count"), MANY)
def test_buckets_against_twin(kind, count):
    random = numpy.random.default_rng(count)
    keys = keys_of_kind(kind, count, random)
    for order, entered in (
        (numpy.arange(count), count),
        (random.permutation(count), count),
        (random.permutation(count)[: count // 2], count // 3),
        (random.permutation(count), 0),
        (numpy.arange(count)[::-1], count // 2),
    ):
        expected = enumerate(reference.link(keys.tolist(), order.tolist(), entered))
        assert linked(keys, order.tolist(), entered) == {document: other for document, other in expected if other >= 0}


# Components. All documents are alike, so every link connects two of them.


def connected(count, pairs, step=7):
    """The smallest member of each component as the walk finds it, in steps of a few documents.

    In each band a document is linked to one earlier document and compared with that document only.
    """
    others = [[] for _ in range(count)]
    for a, b in pairs:
        others[max(a, b)].append(min(a, b))
    others = [[other for other in linked_to if other != i] for i, linked_to in enumerate(others)]
    links = numpy.full((max(map(len, others), default=0), count), -1, numpy.int32)
    for document, linked_to in enumerate(others):
        links[: len(linked_to), document] = linked_to
    similarity = Similarity(numpy.zeros((count, 1), numpy.uint32), None, None, 0)
    runs = numpy.empty_like(links)
    decisions = ClusterState(links, numpy.empty_like(links), numpy.arange(count), 0, 1.0, 1, runs, 128, 0, 0)
    walk = GreedyClusterer(similarity, decisions)
    for start in range(0, count, step):
        assert walk.run(start, min(start + step, count)) == min(start + step, count)
    for start in range(0, count, step):
        walk.attach(start, min(start + step, count))
    roots, values = decisions.outcome()
    assert (roots.dtype, values.tolist()) == (numpy.int32, (roots >= 0).astype(float).tolist())
    return numpy.where(roots < 0, numpy.arange(count), roots).tolist()


@st.composite
def documents_and_pairs(draw):
    count = draw(st.integers(1, 40))
    document = st.integers(0, count - 1)
    return count, draw(st.lists(st.tuples(document, document), max_size=60))


@given(case=documents_and_pairs())
@example(case=(0, []))
def test_components_against_twin(case):
    assert connected(*case) == reference.components(*case)


@given(case=documents_and_pairs())
@example(case=(0, []))
def test_order_by_component(case):
    count, pairs = case
    roots = reference.components(count, pairs)
    components = Components(count)
    for some in (pairs[::2], pairs[1::2]):
        components.connect(numpy.array(some, numpy.int32).reshape(-1, 2), numpy.arange(count, dtype=numpy.int32))
    documents, starts = components.order()
    assert (documents.dtype, starts.dtype) == (numpy.int32, numpy.int64)
    assert documents.tolist() == sorted(range(count), key=lambda document: (roots[document], document))
    found = [documents[start:stop].tolist() for start, stop in itertools.pairwise(starts)]
    assert found == [[i for i in range(count) if roots[i] == root] for root in sorted(set(roots))]


def test_long_chains_against_twin():
    count, random = 8_000, numpy.random.default_rng(3)
    for pairs in (
        [(i, i + 1) for i in range(count - 1)],
        [(i, count - 1 - i) for i in range(count)],
        random.integers(0, count, (count // 2, 2)).tolist(),
        [(i, i - 1 if i % 2 else random.integers(i)) for i in range(1, count)],
        [(i, 0) for i in range(1, count)],
    ):
        assert connected(count, pairs, count) == reference.components(count, pairs)
