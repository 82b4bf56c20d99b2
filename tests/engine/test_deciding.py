"""The bindings that decide documents check their arguments; test_dedup.py and test_grouping.py test their results."""

from __future__ import annotations

import functools

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsh._minhash import UNIT_CODES
from lsh.base import threads
from lsh.engine import parts
from lsh.engine.comparing import Similarity
from lsh.engine.deciding import Components, Decisions, Walk, write_links
from lsh.text.batch import Batch
from lsh.text.sets import ShingleSets

SKETCHES = numpy.zeros((9, 4), numpy.uint8)
in_threads = functools.partial(threads.map_in_order, num_threads=3)
LINKS = numpy.array([[-1, 0]], numpy.int32)


def similarity(texts=(0, 1)) -> Similarity:
    sets = ShingleSets(Batch(["a", "b"]), UNIT_CODES["byte"], 1)
    return Similarity(SKETCHES, [0, 1], sets, texts, 0)


def decisions(links=LINKS, settled=0, components=False, cap=10) -> Decisions:
    links = numpy.array(links, numpy.int32)
    return Decisions(links, numpy.zeros_like(links), numpy.arange(links.shape[1]), settled, 0.5, cap, components)


def test_bad_arguments_of_decisions():
    for wrong in ([[0, 0]], [[-1, 1]], [[-1, 5]], [[-2, 0]]):
        with pytest.raises(ValueError, match="links must lead to earlier documents"):
            decisions(wrong)
    with pytest.raises(ValueError, match="members must be as large as links"):
        Decisions(LINKS.copy(), numpy.zeros((1, 1), numpy.int32), [0, 1], 0, 0.5, 10, False)
    with pytest.raises(ValueError, match="ranks must be of 2 documents, got 3"):
        Decisions(LINKS.copy(), LINKS.copy(), [0, 1, 2], 0, 0.5, 10, False)
    for settled, cap in ((-1, 10), (0, -1)):
        with pytest.raises(ValueError, match="settled and cap"):
            decisions(settled=settled, cap=cap)


def test_bad_arguments_of_a_walk():
    with pytest.raises(ValueError, match="of the same documents"):
        Walk(similarity(), decisions([[-1, 0, 1]]))
    walk = Walk(similarity(), decisions())
    for start, stop in ((-1, 1), (0, 3), (2, 1)):
        with pytest.raises(ValueError, match="start and stop must lie within the documents"):
            walk.run(start, stop)
    with pytest.raises(ValueError, match="attach is for the walk over components"):
        walk.attach(0, 1)


def test_a_walk_over_a_document_without_a_text():
    with pytest.raises(ValueError, match="one of them has no text"):
        Walk(similarity([0, -1]), decisions()).run(0, 2)


@pytest.mark.parametrize(("start", "stop"), [(-1, 1), (0, 3), (1, 1), (2, 1)])
def test_bad_windows(start, stop):
    with pytest.raises(ValueError, match="start and stop must lie within the documents"):
        decisions().begin_window(start, stop, 100, False)


def test_scores_are_of_one_window():
    of = decisions()
    walk = Walk(similarity(), of)
    with pytest.raises(ValueError, match="within the window"):
        walk.score(0, 1)
    assert walk.run(0, 1) == 1
    assert of.begin_window(1, 2, 100, False).tolist() == [1]
    scores = walk.score(1, 2)
    with pytest.raises(ValueError, match="scores must be of these documents"):
        walk.run(0, 2, scores)
    with pytest.raises(ValueError, match="scores must be of these documents"):
        Walk(similarity(), decisions()).run(1, 2, scores)
    of.begin_window(0, 1, 100, False)
    with pytest.raises(ValueError, match="scores must be of the present window"):
        walk.run(1, 2, scores)
    of.begin_window(1, 2, 100, False)
    assert walk.run(1, 2, scores) == 2
    assert (walk.kept, walk.candidates, walk.compared) == (2, 1, 1)
    with pytest.raises(ValueError, match="within the window"):
        walk.score(0, 2)


def test_bad_arguments_of_components():
    for count in (-1, 2**31):
        with pytest.raises(ValueError, match="count must be 0 to"):
            Components(count)
    components, links = Components(2), numpy.full(2, -1, numpy.int32)
    numbers = numpy.array([0, 1, 2, -1, 2**31 - 1], numpy.int32)
    for wrong in (2, 3, 4, 5, -1, 2**31 - 1):  # the last three have no number
        for pair in ([0, wrong], [wrong, 0]):
            with pytest.raises(ValueError, match="documents must be from 0 to 1"):
                components.connect(numpy.array([pair], numpy.int32), numbers)
            with pytest.raises(ValueError, match="documents must be from 0 to 1"):
                write_links(numpy.array([pair], numpy.int32), numbers, links)
    for function in (components.connect, lambda pairs, numbers: write_links(pairs, numbers, links)):
        with pytest.raises(ValueError, match="pairs must have two columns, got 3"):
            function(numpy.zeros((1, 3), numpy.int32), numbers)
    assert links.tolist() == [-1, -1]
    assert components.order()[1].tolist() == [0, 1, 2]


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
    links = numpy.array(latest, numpy.int32)
    found = []
    for several in (map, lambda function, bands: [function(band) for band in reversed(bands)], in_threads):
        made = links.copy()
        Decisions(made, numpy.zeros_like(made), numpy.arange(30), 0, 0.5, 10, False, 0.0, several)
        found.append(made.tolist())
    assert found[0] == found[1] == found[2]
    links[-1, 3] = 29
    with pytest.raises(ValueError, match="links must lead to earlier documents"):
        Decisions(links, numpy.zeros_like(links), numpy.arange(30), 0, 0.5, 10, False, 0.0, in_threads)


@pytest.mark.parametrize("sizes", [[], [1], [3, 1, 600, 1, 1], [600], [2] * 700, [300, 300, 2, 511, 2]])
def test_tasks_are_whole_components_that_are_not_large(sizes):
    starts = numpy.concatenate([[0], numpy.cumsum(sizes, dtype=numpy.int64)]).astype(numpy.int64)
    tasks = list(parts._tasks(starts))
    covered = [document for start, stop in tasks for document in range(start, stop)]
    expected = [i for start, size in zip(starts, sizes) if size <= parts.LARGE for i in range(start, start + size)]
    assert covered == expected
    assert all(start in starts and stop in starts and start < stop <= start + parts.TASK for start, stop in tasks)
