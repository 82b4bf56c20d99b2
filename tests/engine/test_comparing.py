"""The low bits of fingerprints, and the groups into which they divide a bucket, against slow reference code."""

from __future__ import annotations

import numpy
import pytest
import reference
import strategies
from estimates import binomial_tail, pairs_of_texts
from hypothesis import given
from hypothesis import strategies as st

from lsh import Shingles, jaccard
from lsh.engine.comparing import keep_similar
from lsh.engine.grouping import pack_low_bits
from lsh.engine.matching import Matching


@strategies.examples(100)
@given(k=st.sampled_from([1, 5, 63, 64, 65, 128, 200]), bits=st.integers(1, 8), seed=st.integers(0, 2**32 - 1))
def test_low_bits_tell_how_many_components_differ(k, bits, seed):
    rows = numpy.random.default_rng(seed).integers(0, 256, (2, k)).astype(numpy.uint8)
    rows[1, ::2] = rows[0, ::2]
    packed = pack_low_bits(rows, bits)
    assert packed.shape == (2, bits * -(-k // 64))
    own, other = (reference.low_bits(row, bits) for row in rows.tolist())
    expected = sum(a != b for a, b in zip(own, other))
    for most in (expected - 1, expected):
        if most >= 0:
            links = numpy.array([-1, 0], numpy.int32)
            assert keep_similar(links, packed, bits, most, 0, 2, 9) == (1, 0)
            assert links.tolist() == [-1, 0 if most == expected else -1]


@strategies.examples(300)
@given(
    documents=st.lists(
        st.tuples(st.integers(0, 2), st.lists(st.integers(0, 3), min_size=4, max_size=4)), min_size=0, max_size=30
    ),
    bits=st.sampled_from([0, 1, 2]),
    most=st.integers(0, 3),
    settled=st.integers(0, 30),
    two=st.booleans(),
    limit=st.sampled_from([1, 2, 5, 1000]),
)
def test_groups_against_twin(documents, bits, most, settled, two, limit):
    """Each bucket is divided into groups; with `two` the first documents are compared with the later ones only."""
    count = len(documents)
    settled = min(settled, count)
    entered = settled if two else count
    before = reference.link([key for key, _ in documents], range(count), count)
    sketches = numpy.array([row for _, row in documents], numpy.uint8).reshape(-1, 4)
    packed = pack_low_bits(sketches, bits) if bits else numpy.empty((count, 0), numpy.uint64)
    links = numpy.array(before, numpy.int32)
    counts = keep_similar(links, packed, bits, most, settled, entered, limit)
    rows = [reference.low_bits(row, bits) for row in sketches.tolist()]
    expected = reference.keep_similar(before, rows, most if bits else None, settled, entered, limit)
    if bits:
        assert (links.tolist(), *counts) == expected
    else:
        assert (links.tolist(), counts) == (before, expected[1:])


@pytest.mark.parametrize("kind", ["one group", "no group"])
def test_a_large_bucket(kind):
    """A bucket of one group costs a comparison a document; of the others, `limit` comparisons."""
    count, limit = 3000, 100
    rows = numpy.zeros((count, 64), numpy.uint8)
    if kind == "no group":
        rows[:] = numpy.random.default_rng(3).integers(0, 256, rows.shape)
    links = numpy.arange(-1, count - 1, dtype=numpy.int32)
    shared, left_out = keep_similar(links, pack_low_bits(rows, 8), 8, 9, 0, count, limit)
    assert shared == count * (count - 1) // 2
    if kind == "one group":
        assert (links.tolist(), left_out) == (list(range(-1, count - 1)), 0)
    else:
        assert (links == -1).all()
        assert left_out == sum(range(1, count - limit))


@pytest.mark.parametrize("seeds", [128, 256])
@pytest.mark.parametrize(("shared", "threshold"), [(50, 0.5), (60, 0.6), (80, 0.8), (90, 0.9)])
def test_pairs_at_the_threshold_that_no_link_connects(shared, threshold, seeds):
    """Of pairs exactly at the threshold that share a bucket, the filter of links loses what the plan allows at most."""
    count = 4000
    matching = Matching(threshold, num_seeds=seeds, shingles=Shingles(1, "word"))
    texts = pairs_of_texts(shared, 100, count)
    assert jaccard(texts[0], texts[1], shingles=matching.hasher.shingles) == threshold
    sketches = matching.hasher.fingerprints(texts).astype(numpy.uint8)
    bits, most = matching.low_bits
    links = numpy.array([-1, 0] * count, numpy.int32) + numpy.arange(2 * count, dtype=numpy.int32) // 2 * 2
    links[::2] = -1
    assert keep_similar(links, pack_low_bits(sketches, bits), bits, most, 0, 2 * count, 1 << 16) == (count, 0)
    lost = int(numpy.count_nonzero(links[1::2] < 0))
    assert binomial_tail(lost, count, matching.plan.loss) > 1e-4
    assert lost <= numpy.count_nonzero((sketches[::2] == sketches[1::2]).sum(axis=1) < matching.min_equal)
