"""The bindings that decide documents check their arguments; test_dedup.py and test_grouping.py test their results."""

from __future__ import annotations

import numpy
import pytest

from lsh import _parts
from lsh._batch import Batch
from lsh._comparing import Similarity
from lsh._deciding import Components, Decisions, Walk
from lsh._minhash import UNIT_CODES
from lsh._sets import ShingleSets

SKETCHES = numpy.zeros((9, 4), numpy.uint8)
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
    components = Components(2)
    for wrong in (2, -1, 2**31 - 1):
        with pytest.raises(ValueError, match="documents must be from 0 to 1"):
            components.connect(numpy.array([0], numpy.int32), numpy.array([wrong], numpy.int32))
    with pytest.raises(ValueError, match="the same length, got 1 and 2"):
        components.connect(LINKS[0][:1], LINKS[0])


@pytest.mark.parametrize("sizes", [[], [1], [3, 1, 600, 1, 1], [600], [2] * 700, [300, 300, 2, 511, 2]])
def test_tasks_are_whole_components_that_are_not_large(sizes):
    starts = numpy.concatenate([[0], numpy.cumsum(sizes, dtype=numpy.int64)]).astype(numpy.int64)
    tasks = list(_parts._tasks(starts))
    covered = [document for start, stop in tasks for document in range(start, stop)]
    expected = [i for start, size in zip(starts, sizes) if size <= _parts.LARGE for i in range(start, start + size)]
    assert covered == expected
    assert all(start in starts and stop in starts and start < stop <= start + _parts.TASK for start, stop in tasks)
