"""Rows and texts that are distributed to parts: each part has what was appended to it, in order."""

import numpy
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

import lsh.base.budget
import lsh.engine.placing
from lsh.base.budget import MemoryBudget
from lsh.engine.placing import PartitionedRows, PartitionedTexts, merged
from lsh.text.batch import Batch

PARTS = 4


@given(
    pieces=st.lists(st.lists(st.tuples(st.integers(0, PARTS - 1), st.binary(max_size=12)), max_size=12), max_size=8),
    buffer=st.sampled_from([1, 64, 1 << 23]),
    bound=st.sampled_from([None, 0, 500]),
)
@strategies.examples(100)
def test_parts_against_lists(pieces, buffer, bound):
    """Whatever is sorted at once, and whatever is in memory, each part has its rows and its texts in order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lsh.base.budget, "CHUNK", 64)
        patch.setattr(lsh.base.budget, "MIN_ROWS", 2)
        budget = MemoryBudget(bound)
        texts, rows, numbers = (
            PartitionedTexts(budget, PARTS, buffer),
            PartitionedRows(budget, PARTS, numpy.uint8, 2, buffer),
            PartitionedRows(budget, PARTS, numpy.int64, None, buffer),
        )
        expected = [[] for _ in range(PARTS)]
        for piece in pieces:
            parts = numpy.array([part for part, _ in piece], numpy.int32)
            here = [text for _, text in piece]
            texts.append(parts, Batch(here))
            sizes = numpy.array([len(text) for text in here], numpy.int64)
            numbers.append(parts, sizes)
            rows.append(parts, numpy.stack([sizes, sizes + 1], axis=1).astype(numpy.uint8))
            for part, text in piece:
                expected[part].append(text)
        for part in (2, 0, 3, 1, 2):
            assert [text for batch in texts.read(part) for text in batch.tolist()] == expected[part]
            assert texts.sizes(part).tolist() == [len(text) for text in expected[part]]
            assert [size for some in numbers.read(part) for size in some.tolist()] == list(map(len, expected[part]))
            both = [row for some in rows.read(part) for row in some.tolist()]
            assert both == [[len(text), len(text) + 1] for text in expected[part]]


@given(
    ranges=st.lists(st.dictionaries(st.integers(0, 400), st.integers(1, 5), max_size=20), max_size=6),
    least=st.sampled_from([1, 3, 256]),
    bound=st.sampled_from([None, 0]),
)
@strategies.examples(100)
def test_merged_against_sorting(ranges, least, bound):
    """A value of the field is in one range; its records stay in order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lsh.base.budget, "CHUNK", 64)
        patch.setattr(lsh.engine.placing, "MIN_MERGED", least)
        column = MemoryBudget(bound).column(numpy.dtype([("key", numpy.int32), ("value", numpy.float64)]))
        bounds, records = [0], []
        for number, counts in enumerate(ranges):
            keys = sorted(key * len(ranges) + number for key, count in counts.items() for _ in range(count))
            here = [(key, float(len(records) + place)) for place, key in enumerate(keys)]
            column.append(numpy.array(here, column.dtype))
            records += here
            bounds.append(len(records))
        found = list(merged(column, bounds, "key", 0))
    assert all(map(len, found))
    assert [row for some in found for row in some.tolist()] == sorted(records)
