"""Parts of the decisions on their own: links of pairs, buckets, and tasks; test_dedup.py tests the results."""

from __future__ import annotations

import functools

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsh.base import threads
from lsh.engine import parts
from lsh.engine.deciding import Components, Decisions, write_links

in_threads = functools.partial(threads.map_in_order, num_threads=3)


def test_links_and_components_of_renumbered_pairs():
    pairs, numbers = numpy.array([[5, 3], [4, 5]], numpy.int32), numpy.array([9, 9, 9, 0, 2, 1], numpy.int32)
    links, components = numpy.full(4, -1, numpy.int32), Components(4)
    write_links(pairs, numbers, links)
    components.connect(pairs, numbers)
    assert links.tolist() == [-1, 0, 1, -1]
    assert components.order()[1].tolist() == [0, 3, 4]


@given(keys=st.lists(st.lists(st.integers(0, 3), min_size=30, max_size=30), min_size=1, max_size=3))
def test_buckets_may_be_made_in_any_order(keys):
    """The bands of `Decisions` are made by calls of a function that may make them in threads."""
    latest = [[max((j for j in range(i) if row[j] == row[i]), default=-1) for i in range(30)] for row in keys]
    links, values = numpy.array(latest, numpy.int32), (numpy.arange(30), 0, 0.5, 10, None, 128, 0, 0, 0.0)
    found = []
    for several in (map, lambda function, bands: [function(band) for band in reversed(bands)], in_threads):
        made = links.copy()
        Decisions(made, numpy.zeros_like(made), *values, several)
        found.append(made.tolist())
    assert found[0] == found[1] == found[2]
    links[-1, 3] = 29
    with pytest.raises(ValueError, match="links must lead to earlier documents"):
        Decisions(links, numpy.zeros_like(links), *values, in_threads)


@pytest.mark.parametrize("sizes", [[], [1], [3, 1, 600, 1, 1], [600], [2] * 700, [300, 300, 2, 511, 2]])
def test_tasks_are_whole_components(sizes):
    starts = numpy.concatenate([[0], numpy.cumsum(sizes, dtype=numpy.int64)]).astype(numpy.int64)
    tasks = list(parts._tasks(starts))
    assert [document for task in tasks for document in range(task.start, task.stop)] == list(range(sum(sizes)))
    for task in tasks:
        assert task.start == task.at
        assert task.start in starts
        assert task.stop in starts
        assert task.stop - task.start <= parts.TASK or task.stop - task.start in sizes
