"""The documents in memory, searched as a segment of the same documents is."""

from __future__ import annotations

import numpy
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

from lsh.segments.searching import Searcher, SortedKeys, sorted_keys
from lsh.segments.segment import DocumentBatch, SegmentLayout
from lsh.store import memtable


@pytest.mark.parametrize("candidates", [1, 3, 1 << 13])
@given(data=st.data())
@strategies.examples(40)
def test_recent_documents_are_found_as_those_of_a_segment(data, candidates):
    count, queries, bands, k = (data.draw(st.integers(low, 8)) for low in (1, 0, 1, 1))
    random = numpy.random.default_rng(data.draw(st.integers(0, 999)))
    keys, asked = (random.integers(0, 3, (n, bands), numpy.uint64) for n in (count, queries))
    sketches, rows = (random.integers(0, 2, (n, k), numpy.uint8) for n in (count, queries))
    keyed, removed = (random.random((2, count)) < 0.8) ^ [[False], [True]]
    recent = memtable.MemTable(
        SegmentLayout(bands, k, numpy.dtype(numpy.uint8), False), 0, data.draw(st.integers(0, 3))
    )
    codes, times = [b"b%d" % i for i in range(count)], numpy.zeros(count, numpy.int64)
    half = count // 2
    for part in (slice(0, half), slice(half, count)):
        recent.add(DocumentBatch(codes[part], keys[part], keyed[part], sketches[part], times[part], None))
        recent.search(asked.T.copy(), None, 0, None)  # which enters them
    for number in numpy.flatnonzero(removed).tolist():
        recent.remove(number)
    numbers = numpy.flatnonzero(keyed).astype(numpy.uint32)
    sorted_bands = [SortedKeys(*sorted_keys(keys[numbers, band].copy(), numbers)) for band in range(bands)]
    searcher = Searcher(sorted_bands, count, sketches, numpy.packbits(removed, bitorder="little"))
    least, top = data.draw(st.integers(0, k)), data.draw(st.none() | st.integers(1, 4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memtable, "CANDIDATES", candidates)
        for arguments in ((rows, least, top), (None, 0, None)):
            found = recent.search(asked.T.copy(), *arguments)
            expected = searcher.search(asked.T.copy(), *arguments)
            for array, other in zip(found, expected):
                assert (array is None) == (other is None)
                if array is not None:
                    assert (array.dtype, array.tolist()) == (other.dtype, other.tolist())
