"""Planning: the search against a brute-force twin, the promise on synthetic and real pairs, the sketch filter's tails.

What bands find is tested in test_bands.py and test_estimator.py; here stands which are chosen, and that what they
promise is kept. ALPHA is the probability that a test of recall fails where the promise is just kept; texts and seeds
are fixed.
"""

from __future__ import annotations

import copy
import gzip
import math
import pickle
import re
from collections import Counter
from fractions import Fraction

import numpy
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st
from test_estimator import WORDS, binomial_tail, make_hasher, pairs_of_texts

import lsh
from lsh import Bands, MinHasher, Shingles
from lsh._sketch_filter import least_equal, loss_of, passing
from lsh.planning import planned

ALPHA = 1e-4
some_thresholds = st.integers(1, 99).map(lambda percent: percent / 100)
some_recalls = st.one_of(
    st.integers(1, 99).map(lambda percent: percent / 100), st.sampled_from([0.995, 0.999, 0.99999])
)


def needed(recall: float, filtered: bool) -> float:
    """What the bands have to find at the threshold."""
    return recall / (1 - (1 - recall) / 5) if filtered else recall


def shape_of(bands: Bands) -> tuple[int, int, int]:
    narrow = min(bands.widths)
    return narrow, bands.widths.count(narrow), bands.widths.count(narrow + 1)


# The search.


@pytest.mark.parametrize(
    ("num_seeds", "threshold", "text"),
    [
        (128, 0.7, "5x5+17x6"),
        (128, 0.8, "2x7+14x8"),
        (128, 0.9, "2x12+8x13"),
        (256, 0.8, "6x9+19x10"),
        (512, 0.8, "1x11+41x12"),
    ],
)
def test_bands_for_a_recall_of_95_percent(num_seeds, threshold, text):
    assert planned(threshold, 0.95, num_seeds, filtered=False) == Bands.from_string(text)


def test_the_default():
    assert lsh.plan() == lsh.plan(0.8, 0.99, 128) == Bands.from_string("6x6+13x7")


@strategies.examples(60)
@given(threshold=some_thresholds, recall=some_recalls, num_seeds=st.integers(1, 14), filtered=st.booleans())
def test_search_against_twin(threshold, recall, num_seeds, filtered):
    expected = reference.cheapest_shapes(threshold, recall, num_seeds, filtered)
    if not expected:
        with pytest.raises(ValueError, match="is too few"):
            planned(threshold, recall, num_seeds, filtered=filtered)
        return
    least = expected[0][0]
    number, shape = min((number, shape) for cost, number, shape in expected if cost <= least * (1 + 1e-9))
    found = shape_of(planned(threshold, recall, num_seeds, filtered=filtered))
    assert float(reference.even_cost(Fraction(threshold), found)) == pytest.approx(least, rel=1e-9)
    assert (found[1] + found[2], reference.shape_misses(0.5, found)) == (number, reference.shape_misses(0.5, shape))


@strategies.examples(60)
@given(
    threshold=some_thresholds,
    recall=some_recalls,
    num_seeds=st.integers(1, 30),
    background=st.lists(st.integers(0, 1000).map(lambda x: x / 1000), min_size=1, max_size=6),
)
def test_search_over_a_background_against_twin(threshold, recall, num_seeds, background):
    expected = reference.cheapest_shapes(threshold, recall, num_seeds, True, background)
    if not expected:
        with pytest.raises(ValueError, match="is too few"):
            lsh.plan(threshold, recall, num_seeds, background=background)
        return
    found = shape_of(lsh.plan(threshold, recall, num_seeds, background=background))
    cost = next(cost for cost, _, shape in expected if same_shape(shape, found))
    assert cost == pytest.approx(expected[0][0], rel=1e-6, abs=1e-12)


def same_shape(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    return widths_of(a) == widths_of(b)


def widths_of(shape: tuple[int, int, int]) -> Counter[int]:
    width, narrow, wide = shape
    return +Counter({width: narrow, width + 1: wide})


@given(
    threshold=st.floats(0.01, 0.9999),
    recall=st.floats(0.01, 0.9999),
    num_seeds=st.integers(1, 5000),
    filtered=st.booleans(),
)
def test_what_planned_bands_are(threshold, recall, num_seeds, filtered):
    """They fit and keep the promise; none could be wider, unless no component is left."""
    try:
        bands = planned(threshold, recall, num_seeds, filtered=filtered)
    except ValueError:
        assert 1 - (1 - threshold) ** num_seeds < needed(recall, filtered) * (1 + 1e-9)
        return
    assert bands.num_components <= num_seeds
    assert bands.widths == tuple(sorted(bands.widths))
    assert bands.widths[-1] - bands.widths[0] <= 1
    assert bands.probability(threshold) >= needed(recall, filtered) - 1e-12
    assert bands.recall_at(threshold) >= recall - 1e-12
    if bands.num_components < num_seeds:
        first = bands.widths.index(max(bands.widths))
        at = first - 1 if first else 0  # the widest of the narrower bands
        wider = [width + (i == at) for i, width in enumerate(bands.widths)]
        assert Bands(widths=wider).probability(threshold) <= needed(recall, filtered) + 1e-12


@given(threshold=some_thresholds, num_seeds=st.integers(8, 600))
def test_more_seeds_and_less_recall_are_cheaper(threshold, num_seeds):
    def cost(recall: float, seeds: int) -> float:
        return float(integral(lsh.plan(threshold, recall, seeds), threshold))

    if 1 - (1 - threshold) ** num_seeds > 0.95:
        assert cost(0.5, num_seeds) <= cost(0.9, num_seeds) * (1 + 1e-9)
        assert cost(0.9, 2 * num_seeds) <= cost(0.9, num_seeds) * (1 + 1e-9)


def integral(bands: Bands, threshold: float) -> float:
    """The mean probability below the threshold, by the trapezoidal rule."""
    curve = bands.probability(numpy.linspace(0, threshold, 4001))
    return float((curve.sum() - curve[0] / 2 - curve[-1] / 2) / 4000)


@pytest.mark.parametrize(("threshold", "num_seeds"), [(0.5, 128), (0.8, 128), (0.8, 4096), (0.95, 1000)])
def test_the_share_is_the_integral(threshold, num_seeds):
    bands = lsh.plan(threshold, 0.99, num_seeds)
    said = re.search(r"one in ([.,0-9]+) pairs, spread evenly from 0 to [.0-9]+, is a false candidate", str(bands))
    assert 1 / float(said[1].replace(",", "")) == pytest.approx(integral(bands, threshold), rel=6e-3)  # three digits


@pytest.mark.parametrize("num_seeds", [1, 2, 128, 4096, 2**20])
@pytest.mark.parametrize("recall", [1e-300, 0.01, 0.99, 1 - 2**-53])
def test_identical_sets(num_seeds, recall):
    """Whatever band there is finds them, so there is one, of all components."""
    bands = lsh.plan(1.0, recall, num_seeds)
    assert bands == lsh.plan(1, recall, num_seeds) == Bands(1, num_seeds)
    assert bands.recall_at(1.0) == 1.0


@pytest.mark.parametrize("num_seeds", [1, 128, 4096, pytest.param(2**20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("threshold", [5e-324, 1e-300, 1e-9, 0.01, 0.5, 0.999, 1 - 2**-53])
@pytest.mark.parametrize("recall", [5e-324, 1e-300, 1e-9, 0.5, 0.99, 1 - 2**-53])
def test_the_ends_of_the_parameters(threshold, recall, num_seeds):
    """Bands that keep the promise, or a message; never anything else."""
    for filtered in (True, False):
        try:
            bands = planned(threshold, recall, num_seeds, filtered=filtered)
        except ValueError:
            assert -math.expm1(num_seeds * math.log1p(-threshold)) <= needed(recall, filtered) + 1e-12
        else:
            assert bands.num_components <= num_seeds
            assert bands.recall_at(threshold) >= recall - 1e-11


# What is not to be had.


@pytest.mark.parametrize(
    ("threshold", "recall", "num_seeds"),
    [(0.01, 0.99, 128), (0.8, 0.99, 1), (0.5, 0.99, 5), (0.05, 0.5, 10), (0.3, 0.99999, 20), (0.001, 0.9, 100)],
)
@pytest.mark.parametrize("filtered", [True, False])
def test_what_is_said_to_be_possible_is(threshold, recall, num_seeds, filtered):
    """Each of the three ways works as it is said, and nothing less does."""

    def works(threshold: float, recall: float, num_seeds: int) -> bool:
        try:
            return bool(planned(threshold, recall, num_seeds, filtered=filtered))
        except ValueError:
            return False

    with pytest.raises(ValueError, match=f"num_seeds={num_seeds} is too few to find pairs of") as caught:
        planned(threshold, recall, num_seeds, filtered=filtered)
    words = r"possible: num_seeds=(\d+) or more, or threshold=([.0-9]+) or more(?:, or recall=([.0-9]+) or less)?$"
    seeds, similarity, less = re.search(words, str(caught.value)).groups()
    assert works(threshold, recall, int(seeds))
    assert not works(threshold, recall, int(seeds) - 1)
    assert works(float(similarity), recall, num_seeds)
    assert not works(float(similarity) - 0.001, recall, num_seeds)
    if less is not None:
        assert works(threshold, float(less), num_seeds)
    assert not works(threshold, float(less or 0) + 0.001, num_seeds)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"threshold": 0}, ValueError, "threshold must be more than 0 and at most 1, got 0"),
        ({"threshold": -0.5}, ValueError, "threshold must be more than 0 and at most 1, got -0.5"),
        ({"threshold": 1.5}, ValueError, "threshold must be more than 0 and at most 1, got 1.5"),
        ({"threshold": math.nan}, ValueError, "threshold must be more than 0 and at most 1, got nan"),
        ({"threshold": "0.8"}, TypeError, "threshold must be a number .* got str"),
        ({"threshold": None}, TypeError, "threshold must be a number .* got NoneType"),
        ({"threshold": [0.8]}, TypeError, "threshold must be a number .* got list"),
        ({"recall": 0}, ValueError, "recall must be more than 0 and less than 1, got 0"),
        ({"recall": 1}, ValueError, "recall must be more than 0 and less than 1, got 1"),
        ({"recall": 1, "threshold": 1}, ValueError, "recall must be more than 0 and less than 1, got 1"),
        ({"recall": 1.5}, ValueError, "recall must be more than 0 and less than 1, got 1.5"),
        ({"recall": -0.1}, ValueError, "recall must be more than 0 and less than 1, got -0.1"),
        ({"recall": math.nan}, ValueError, "recall must be more than 0 and less than 1, got nan"),
        ({"recall": "99%"}, TypeError, "recall must be a number .* got str"),
        ({"recall": True}, TypeError, "recall must be a number .* got bool"),
        ({"num_seeds": 0}, ValueError, "num_seeds must be 1 or more, got 0"),
        ({"num_seeds": -1}, ValueError, "num_seeds must be 1 or more, got -1"),
        ({"num_seeds": 2**20 + 1}, ValueError, "num_seeds must be at most 1048576, got 1048577"),
        ({"num_seeds": 128.0}, TypeError, "num_seeds must be a whole number, got float"),
        ({"num_seeds": "128"}, TypeError, "num_seeds must be a whole number, got str"),
        ({"documents": 0}, ValueError, "documents must be 1 or more, got 0"),
        ({"documents": 1e6}, TypeError, "documents must be a whole number, got float"),
        ({"background": []}, ValueError, r"background must be one or more similarities, or texts, got shape \(0,\)"),
        ({"background": numpy.empty(0)}, ValueError, r"background must be one or more .*, got shape \(0,\)"),
        ({"background": [[0.1, 0.2]]}, ValueError, r"background must be one or more .* got shape \(1, 2\)"),
        ({"background": numpy.zeros((2, 2))}, ValueError, r"background must be one or more .* got shape \(2, 2\)"),
        ({"background": [0.1, 1.1]}, ValueError, "background must be similarities from 0 to 1, got 1.1 among them"),
        ({"background": [0.1, -0.1]}, ValueError, "background must be similarities from 0 to 1, got -0.1 among them"),
        ({"background": [0.1, math.nan]}, ValueError, "background must be similarities from 0 to 1, got nan among"),
        ({"background": [0.1, None]}, ValueError, "background must be similarities from 0 to 1, got nan among them"),
        ({"background": 0.5}, TypeError, "background must be similarities or texts, got one float"),
        ({"background": "one text"}, TypeError, "background must be similarities or texts, got one str"),
        ({"background": b"one text"}, TypeError, "background must be similarities or texts, got one bytes"),
        ({"background": [0.1, 1j]}, TypeError, "background must be similarities from 0 to 1 or .* texts, got list"),
        ({"background": [0.1, "x"]}, TypeError, "background must be similarities from 0 to 1 or .* texts, got list"),
        ({"background": ["x", 0.1]}, TypeError, r"background\[1\] must be str, bytes, .* got float"),
        ({"background": ["one text"]}, ValueError, "background must have two or more texts with shingles, got 1"),
        ({"background": ["a text", "", None]}, ValueError, "background must have two or more texts .*, got 1"),
        ({"background": {"a": 1}}, TypeError, "background must be in a definite order, got dict"),
        ({"background": object()}, TypeError, "background must be a collection of texts, got object"),
    ],
)
def test_bad_parameters(arguments, error, message):
    with pytest.raises(error, match=f"^{message}"):
        lsh.plan(**arguments)


def test_what_comes_after_the_seeds_is_by_name():
    with pytest.raises(TypeError, match="positional argument"):
        lsh.plan(0.8, 0.99, 128, [0.1])


# Backgrounds.


def test_a_background_that_tells_nothing():
    """Where no pair is below the threshold or shares anything, all bands cost the same: the even ones decide."""
    for background in ([0.0] * 50, [0.9, 1.0], numpy.zeros(3, numpy.float32), [0], (True, False)):
        assert lsh.plan(0.8, 0.99, background=background) == lsh.plan(0.8, 0.99)


def test_a_background_by_another_name():
    sample = [0.1, 0.5, 0.25, 0.9]
    expected = str(lsh.plan(background=sample))
    assert " pairs, like the 4 of the background, is a false candidate" in expected
    for same in (tuple(sample), numpy.array(sample), numpy.array(sample, object), iter(sample) and sample[::-1]):
        assert str(lsh.plan(background=same)) == expected


def test_false_candidates_are_those_of_the_background():
    sample = numpy.random.RandomState(3).beta(1, 8, 5000)
    bands = lsh.plan(0.8, background=sample, documents=2_000_001)
    share = float(numpy.where(sample < 0.8, bands.probability(sample), 0).mean())
    lines = str(bands).splitlines()
    said = re.fullmatch("one in ([.,0-9]+) pairs, like the 5,000 of the background, is a false candidate", lines[-2])
    assert 1 / float(said[1].replace(",", "")) == pytest.approx(share, rel=0.01)  # the cells are 1/1000 wide
    said = re.fullmatch("among 2,000,001 documents of such pairs ([,0-9]+) false candidates for each", lines[-1])
    assert float(said[1].replace(",", "")) == pytest.approx(2_000_000 * share, rel=0.01)


def make_corpus(count: int) -> list[str]:
    """Texts of 30 words of 60."""
    draw = numpy.random.RandomState(8)
    return [" ".join(f"word{number}" for number in draw.permutation(60)[:30]) for _ in range(count)]


def test_a_corpus_as_background():
    """The pairs of a corpus, estimated, cost what their exact similarities cost."""
    texts = make_corpus(150)
    exact = lsh.jaccard_matrix(texts)[numpy.triu_indices(150, 1)]
    by_texts, by_similarities = (str(lsh.plan(0.5, 0.9, background=given)) for given in (texts, exact))
    assert " pairs, like 20,000 random ones of the texts, is a false candidate" in by_texts
    one_in = [float(printed.splitlines()[-1].split()[2].replace(",", "")) for printed in (by_texts, by_similarities)]
    assert one_in[0] == pytest.approx(one_in[1], rel=0.15)  # of 20,000 pairs, with estimates of 512 components


def test_a_corpus_in_every_form():
    texts = make_corpus(40)
    expected = str(lsh.plan(0.5, background=texts))
    forms = [tuple(texts), [t.encode() for t in texts], numpy.array(texts), numpy.array(texts, object), iter(texts)]
    for form in [*forms, numpy.array([t.encode() for t in texts])]:
        assert str(lsh.plan(0.5, background=form)) == expected
    assert str(lsh.plan(0.5, background=[None, *texts, ""])) == expected


def test_a_large_corpus_is_sampled_the_same_way_in_every_form():
    texts = make_corpus(60) * 100
    expected = str(lsh.plan(0.5, background=texts))
    assert str(lsh.plan(0.5, background=iter(texts))) == expected
    assert str(lsh.plan(0.5, background=numpy.array(texts))) == expected
    assert expected != str(lsh.plan(0.5, background=texts[:60]))


# The promise stays with the bands, and is no part of their value.


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda bands: pickle.loads(pickle.dumps(bands))], ids=["copy", "deep", "pickle"]
)
def test_promise_is_kept_by_copies(again):
    for bands in (
        lsh.plan(0.7, 0.9, 200, background=[0.1, 0.2], documents=500),
        planned(0.7, 0.9, 200, filtered=False),
    ):
        other = again(bands)
        assert other == bands
        assert str(other) == str(bands)
        assert other.recall_at(0.7) == bands.recall_at(0.7)


def test_promise_is_no_part_of_the_value():
    bands = lsh.plan(0.8, 0.99, 128)
    given = Bands(widths=bands.widths)
    assert bands == given
    assert hash(bands) == hash(given)
    assert bands == planned(0.8, 0.99, 128, filtered=True) == lsh.plan(0.8, 0.99, 128, documents=7)
    assert bands.to_dict() == given.to_dict()
    assert repr(bands) == repr(given)
    for other in (given, eval(repr(bands), {"Bands": Bands}), Bands.from_dict(bands.to_dict())):
        assert "planned" not in str(other)
        assert other.recall_at(0.8) == 0.999 * other.probability(0.8) != bands.recall_at(0.8)


def test_printed_promise():
    bands = lsh.plan(0.8, 0.99, 128, documents=1000)
    lines = str(bands).splitlines()
    assert lines[0] == "19 bands, 6x6+13x7 components, 127 in all"
    assert lines[4] == "keys take 152 bytes a document"
    found, verified = 1 - (1 - 0.8**6) ** 6 * (1 - 0.8**7) ** 13, bands.recall_at(0.8)
    assert lines[5] == (
        f"planned for 0.8: a pair there is found with probability {found:.4f}, found and verified with {verified:.4f}"
    )
    assert lines[7] == f"among 1,000 documents of such pairs {999 * integral(bands, 0.8):.0f} false candidates for each"
    assert len(lines) == 8
    assert "verified" not in str(planned(0.8, 0.99, 128, filtered=False))


# The filter.


@given(
    num_seeds=st.integers(1, 60),
    threshold=st.integers(1, 100).map(lambda percent: percent / 100),
    loss=st.one_of(st.sampled_from([0.001, 0.002]), st.floats(1e-6, 0.5)),
)
def test_least_equal_against_twin(num_seeds, threshold, loss):
    least = least_equal(num_seeds, threshold, loss)
    lost = reference.fewer_equal(num_seeds, least, threshold)
    assert lost <= loss * (1 + 1e-12)
    assert reference.fewer_equal(num_seeds, least + 1, threshold) > loss * (1 - 1e-12)
    for similarity in (0.0, threshold / 2, threshold, 1.0):
        passed = 1 - reference.fewer_equal(num_seeds, least, similarity)
        assert passing(num_seeds, least, similarity) == pytest.approx(float(passed), rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("num_seeds", [1000, 4096])
@pytest.mark.parametrize("threshold", [0.01, 0.5, 0.8, 0.999])
def test_least_equal_of_many(num_seeds, threshold):
    """Against sums of Python's floats: the terms are small, and none is rounded away."""
    p = threshold + (1 - threshold) / 256
    for loss in (1e-9, 0.002, 0.2):
        least = least_equal(num_seeds, threshold, loss)
        assert 1 - binomial_tail(least, num_seeds, p) <= loss * (1 + 1e-6)
        assert binomial_tail(num_seeds - least, num_seeds, 1 - p) > loss  # P(at most `least`)


@pytest.mark.parametrize("num_seeds", [1, 2, 128, 4096])
def test_identical_texts_pass(num_seeds):
    """At a threshold of 1 all components must agree; at any threshold those of equal texts are enough."""
    for loss in (0.0, 1e-9, 0.002, 0.999):
        assert least_equal(num_seeds, 1.0, loss) == num_seeds
        assert least_equal(num_seeds, 0.8, loss) <= num_seeds
    assert passing(num_seeds, num_seeds, 1.0) == 1.0


def test_nothing_to_lose():
    assert least_equal(128, 0.8, 0.0) == 0
    assert passing(128, 0, 0.3) == pytest.approx(1.0, abs=1e-12)


@given(threshold=some_thresholds.map(lambda t: max(t, 0.05)), recall=some_recalls, s=st.floats(0, 1))
def test_recall_is_that_of_bands_and_filter(threshold, recall, s):
    bands = lsh.plan(threshold, recall, 700)
    least = least_equal(700, threshold, loss_of(recall))
    passed = passing(700, least, s)
    assert bands.recall_at(s) == pytest.approx(bands.probability(s) * passed, rel=1e-12, abs=1e-300)
    assert isinstance(bands.recall_at(s), float)
    several = bands.recall_at([[s, threshold]])
    assert several.shape == (1, 2)
    assert several.ravel().tolist() == pytest.approx([bands.recall_at(s), bands.recall_at(threshold)], rel=1e-9)
    assert passing(700, least, threshold) >= 1 - (1 - recall) / 5 - 1e-12


# The promise is kept.


@pytest.mark.parametrize("scheme", ["murmur3", "fss"])
@pytest.mark.parametrize("recall", [0.9, 0.99])
@pytest.mark.parametrize("shared", [50, 80, 90])
def test_recall_of_pairs_at_the_threshold(shared, recall, scheme):
    """Of 1,000 independent pairs of sets of words that are just at the threshold."""
    count, threshold = 1000, shared / 100
    texts = pairs_of_texts(shared, 100, count)
    hasher = make_hasher(128, 8) if scheme == "murmur3" else MinHasher(128, scheme="fss", shingles=WORDS)
    pairs = list(lsh.find_pairs(texts, threshold=threshold, recall=recall, hasher=hasher))
    assert {(i, j, similarity) for i, j, similarity in pairs} <= {(2 * i, 2 * i + 1, threshold) for i in range(count)}
    missed = count - len(pairs)
    assert binomial_tail(missed, count, 1 - recall) > ALPHA  # so many or more
    if scheme == "murmur3":  # and no more is found than the bands can
        found = lsh.plan(threshold, recall, 128).probability(threshold)
        assert binomial_tail(len(pairs), count, found) > ALPHA


def test_recall_is_what_is_planned_with(monkeypatch):
    """The pairs that are missed tell the bands apart; with the filter of the plan, that of given bands loses less."""
    texts = pairs_of_texts(80, 100, 1000)

    def kept(**options) -> list[bool]:
        pairs = list(lsh.find_pairs(texts, threshold=0.8, shingles=WORDS, **options))
        result = lsh.deduplicate(texts, 0.8, shingles=WORDS, **options)
        assert result.removed["document"].tolist() == [j for _, j, _ in pairs]
        return result.keep.tolist()

    default = kept()
    assert default == kept(recall=0.99)
    assert default != kept(bands=Bands(20, 6))
    for recall, count in ((0.99, 128), (0.9, 100)):
        planned = kept(recall=recall, num_seeds=count)
        given = kept(bands=lsh.plan(0.8, recall, count), num_seeds=count)
        with monkeypatch.context() as patch:
            patch.setattr(lsh._sketch_filter, "LOSS", lsh._sketch_filter.loss_of(recall))
            assert kept(bands=lsh.plan(0.8, recall, count), num_seeds=count) == planned
        assert sum(given) <= sum(planned)
    assert planned != default


def test_a_recall_that_is_not_kept_is_seen():
    """Bands for half of the pairs fail the test of nine in ten."""
    texts = pairs_of_texts(80, 100, 1000)
    hasher = make_hasher(128, 8)
    pairs = list(lsh.find_pairs(texts, threshold=0.8, recall=0.5, hasher=hasher))
    assert binomial_tail(1000 - len(pairs), 1000, 1 - 0.9) < ALPHA


@pytest.mark.parametrize("recall", [0.9, 0.99])
def test_recall_on_reuters(data_folder, recall):
    """All pairs at .8 or more, over 20 random states; those of stories that are in no such pair are left out."""
    with gzip.open(data_folder / "reuters_pairs.tsv.gz", "rt") as file:
        rows = [line.split() for line in file]
    near = [(first, second) for first, second, similarity in rows if float(similarity) >= 0.8001]
    wanted = {story for pair in near for story in pair}
    with gzip.open(data_folder / "reuters21578.tsv.gz", "rt", encoding="utf-8", newline="\n") as file:
        stories = dict(line.rstrip("\n").split("\t") for line in file)
    ids = sorted(wanted)
    texts = [stories[story] for story in ids]
    expected = {frozenset(pair) for pair in near}
    assert len(expected) > 700
    found = 0
    for random_state in range(20):
        pairs = lsh.find_pairs(
            texts, threshold=0.8, recall=recall, shingles=Shingles(5, "byte"), random_state=random_state
        )
        found += len({frozenset((ids[i], ids[j])) for i, j, _ in pairs} & expected)
    assert found >= recall * 20 * len(expected)
