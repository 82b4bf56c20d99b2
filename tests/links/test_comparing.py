"""The low bits of fingerprints, and the groups into which they divide a bucket, against slow reference code."""

import numpy
import pytest
import reference
import strategies
from estimates import binomial_tail, pairs_of_texts
from hypothesis import given
from hypothesis import strategies as st

from lsh import Shingles, jaccard
from lsh.engine.matching import Matching
from lsh.links.comparing import keep_similar
from lsh.links.grouping import pack_low_bits


def similar(keys, packed, bits, most, *, rows=None, old_from=2**31 - 1, only_old=False, limit=1 << 16):
    """The links of documents with these keys, by document, and the counts of `keep_similar`."""
    buckets = {}
    for document, key in enumerate(keys):
        buckets.setdefault(key, []).append(document)
    shared = [bucket for bucket in buckets.values() if len(bucket) > 1]
    members = numpy.array([document for bucket in shared for document in bucket], numpy.int32)
    ends = numpy.cumsum([len(bucket) for bucket in shared]).astype(numpy.uint32)
    rows = members if rows is None else rows[members]
    links, *counts = keep_similar(members, ends, packed, rows, bits, most, old_from, only_old, limit)
    found = [-1] * len(keys)
    for document, other in links.tolist():
        found[document] = other
    assert len(links) == sum(other >= 0 for other in found)
    return found, *counts


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
            assert similar([7, 7], packed, bits, most) == ([-1, 0 if most == expected else -1], 1, 0)


@strategies.examples(300)
@given(
    documents=st.lists(
        st.tuples(st.integers(0, 2), st.lists(st.integers(0, 3), min_size=4, max_size=4)), min_size=0, max_size=30
    ),
    bits=st.sampled_from([0, 1, 2]),
    most=st.integers(0, 3),
    limit=st.sampled_from([1, 2, 5, 1000]),
    gathered=st.booleans(),
)
def test_groups_against_twin(documents, bits, most, limit, gathered):
    """Each bucket is divided into groups. Rows may lie in any order; those of 2**13 words are gathered at once."""
    count, words = len(documents), 1 if gathered else 1 << 12
    keys = [key for key, _ in documents]
    before = reference.link(keys, range(count), count)
    sketches = numpy.array([row for _, row in documents], numpy.uint8).reshape(-1, 4)
    packed, rows = numpy.empty((count, 0), numpy.uint64), numpy.random.default_rng(count).permutation(count)
    if bits:
        packed = numpy.zeros((count, bits * words), numpy.uint64)
        packed[rows, :bits] = pack_low_bits(sketches, bits)
    low = [reference.low_bits(row, bits) for row in sketches.tolist()]
    expected = reference.keep_similar(before, low, most if bits else None, 0, count, limit)
    assert similar(keys, packed, bits, most, rows=rows.astype(numpy.int32), limit=limit) == expected


@pytest.mark.parametrize("kind", ["one group", "no group"])
def test_a_large_bucket(kind):
    """A bucket of one group costs a comparison a document; of the others, `limit` comparisons."""
    count, limit = 3000, 100
    rows = numpy.zeros((count, 64), numpy.uint8)
    if kind == "no group":
        rows[:] = numpy.random.default_rng(3).integers(0, 256, rows.shape)
    links, shared, left_out = similar([1] * count, pack_low_bits(rows, 8), 8, 9, limit=limit)
    assert shared == count * (count - 1) // 2
    if kind == "one group":
        assert (links, left_out) == (list(range(-1, count - 1)), 0)
    else:
        assert links == [-1] * count
        assert left_out == sum(range(1, count - limit))


@pytest.mark.few(3)
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
    links, *counts = similar([i // 2 for i in range(2 * count)], pack_low_bits(sketches, bits), bits, most)
    assert counts == [count, 0]
    lost = links[1::2].count(-1)
    assert binomial_tail(lost, count, matching.plan.loss) > 1e-4
    assert lost <= numpy.count_nonzero((sketches[::2] == sketches[1::2]).sum(axis=1) < matching.min_equal)
