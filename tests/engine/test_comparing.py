"""The bindings that compare candidates validate their indices; test_dedup.py tests their results."""

from __future__ import annotations

import numpy
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st

from lsh._minhash import UNIT_CODES
from lsh.engine.comparing import Pairs, Similarity, content_keys, first_copies, passing, same_texts
from lsh.text.batch import Batch
from lsh.text.sets import ShingleSets

SKETCHES = numpy.zeros((9, 4), numpy.uint8)
LINKS = numpy.array([[-1, 0]], numpy.int32)


def two_sets() -> ShingleSets:
    return ShingleSets(Batch(["a", "b"]), UNIT_CODES["byte"], 1)


@pytest.mark.parametrize(
    ("rows", "texts"), [([0, 9], [0, 1]), ([-1, 0], [0, 1]), ([0, 1], [0, 2]), ([0, 1], [-2, 0]), ([0, 1], [0])]
)
def test_bad_rows_and_texts(rows, texts):
    with pytest.raises(ValueError, match="must be 2 numbers from"):
        Similarity(SKETCHES, rows, two_sets(), texts, 0)


@pytest.mark.parametrize(
    ("sketches", "sets"), [(SKETCHES, None), (SKETCHES.astype(numpy.uint32), two_sets()), (SKETCHES[:, :3], two_sets())]
)
def test_bad_sketches(sketches, sets):
    with pytest.raises(ValueError, match="matrix must be C-contiguous"):
        Similarity(sketches, [0, 1], sets, [0, 1], 0)


def test_bad_arguments_of_pairs():
    similarity = Similarity(SKETCHES, [0, 1], two_sets(), [0, 1], 0)
    for firsts in ([0, 7], [-3, 0], [0]):
        with pytest.raises(ValueError, match="firsts must be 2 numbers"):
            Pairs(similarity, LINKS, firsts, 0.5)
    for document, stop in ((2, 0), (0, -2), (0, 1)):
        with pytest.raises(ValueError, match="document and stop"):
            Pairs(similarity, LINKS, [0, 1], 0.5).run(document, stop, 100)


@pytest.mark.parametrize("places", [[0, 2], [0, -1], [0]])
def test_bad_places(places):
    batch = Batch(["a", "b"])
    with pytest.raises(ValueError, match=r"places_[ab] must be"):
        same_texts(batch, [0, 1], batch, places)
    with pytest.raises(ValueError, match=r"places_[ab] must be"):
        same_texts(batch, places, batch, [0, 1])


def test_bad_links_to_first_copies():
    links = LINKS[0]
    for order, wrong in (([0, 1], links + 1), ([1, 0], links), ([1], links), ([0, 1], links - 1)):
        with pytest.raises(ValueError, match="links must lead"):
            first_copies(wrong, order)
    for order in ([0, 2], [-1]):
        with pytest.raises(ValueError, match="order must be"):
            first_copies(links, order)


@pytest.mark.parametrize(("secret", "room"), [(bytes(16), 3), (bytes(15), 2)])
def test_bad_arguments_of_content_keys(secret, room):
    with pytest.raises(ValueError, match="a number a text, and secret 16 bytes"):
        content_keys(Batch(["a", "b"]), secret, numpy.zeros(room, numpy.uint64))


@strategies.examples(100)
@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.lists(st.integers(0, 2), min_size=3, max_size=3), st.booleans()), max_size=40
    ),
    st.integers(0, 4),
    st.integers(1, 9),
)
def test_passing_against_twin(documents, least_equal, most):
    links = reference.link([key for key, _, _ in documents], range(len(documents)), len(documents))
    sketches, settled = [sketch for _, sketch, _ in documents], [one for _, _, one in documents]
    found = passing(
        numpy.array(links, numpy.int32),
        numpy.array(sketches, numpy.uint8).reshape(-1, 3),
        numpy.array(settled, numpy.uint8),
        least_equal,
        most,
    )
    assert found.tolist() == reference.passing(links, sketches, settled, least_equal, most)


def test_bad_arguments_of_passing():
    for link in (0, 1, 2, -2):
        with pytest.raises(ValueError, match="links must lead to earlier documents"):
            passing(numpy.array([link, 0], numpy.int32), SKETCHES[:2], numpy.zeros(2, numpy.uint8), 1, 9)
    for rows, flags in ((3, 2), (2, 3)):
        with pytest.raises(ValueError, match=f"sketches and settled must be of 2 documents, got {rows}, {flags}"):
            passing(LINKS[0], SKETCHES[:rows], numpy.zeros(flags, numpy.uint8), 1, 9)
