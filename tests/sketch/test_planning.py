"""Planning: the search against brute force, the recall on synthetic and real pairs, the sketch filter's tails.

test_bands.py tests the keys of bands. This file tests the choice of bands, and their recall. ALPHA is the probability
that a test of recall fails if the true recall equals the promised one. Texts and seeds are fixed.
"""

import gzip
import math
import re
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy
import pytest
import reference
import strategies
from estimates import WORDS, binomial_tail, make_hasher, pairs_of_texts
from hypothesis import given
from hypothesis import strategies as st

import lsh
from lsh import Bands, MinHasher, Plan, Shingles
from lsh.sketch import costs
from lsh.sketch.planning import plan_for
from lsh.sketch.sketch_filter import key_bytes, loss_of, min_equal, passing

ALPHA = 1e-4
some_thresholds = st.integers(1, 99).map(lambda percent: percent / 100)
some_recalls = st.one_of(
    st.integers(1, 99).map(lambda percent: percent / 100), st.sampled_from([0.995, 0.999, 0.99999])
)


def needed(recall: float, filtered: bool) -> float:
    """The share of the pairs at the threshold that the bands must find."""
    return recall / (1 - (1 - recall) / 5) if filtered else recall


def made(threshold: float, recall: float, num_seeds: int, *, filtered: bool) -> Plan:
    """The plans of `lsh.plan` and `Cache.create`, for a hasher with this number of seeds."""
    return plan_for(SimpleNamespace(num_seeds=num_seeds, scheme="murmur3"), threshold, recall, filtered=filtered)


def shape_of(bands: Bands) -> tuple[int, int, int]:
    narrow = min(bands.widths)
    return narrow, bands.widths.count(narrow), bands.widths.count(narrow + 1)


def test_the_default():
    plan = lsh.plan()
    assert plan == lsh.plan(0.8, 0.99, 128) == made(0.8, 0.99, 128, filtered=True)
    assert plan.bands == Bands.from_string("6x6+13x7")
    assert (plan.threshold, plan.recall, plan.num_seeds, plan.loss) == (0.8, 0.99, 128, (1 - 0.99) / 5)
    assert plan.background is plan.false_candidates is plan.shingles is plan.documents is None
    assert made(0.8, 0.99, 128, filtered=False).loss == 0


@strategies.examples(60)
@given(threshold=some_thresholds, recall=some_recalls, num_seeds=st.integers(1, 14), filtered=st.booleans())
def test_search_against_twin(threshold, recall, num_seeds, filtered):
    expected = reference.cheapest_shapes(threshold, recall, num_seeds, filtered)
    if not expected:
        with pytest.raises(ValueError, match="is too few"):
            made(threshold, recall, num_seeds, filtered=filtered)
        return
    least = expected[0][0]
    number, shape = min((number, shape) for cost, number, shape in expected if cost <= least * (1 + 1e-9))
    found = shape_of(made(threshold, recall, num_seeds, filtered=filtered).bands)
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
    found = lsh.plan(threshold, recall, num_seeds, background=background).bands
    cost = next(cost for cost, _, shape in expected if shape == shape_of(found))
    assert cost == pytest.approx(expected[0][0], rel=1e-6, abs=1e-12)


extremes = st.sampled_from([5e-324, 1e-300, 1e-9, 0.01, 0.5, 0.99, 0.999, 1 - 2**-53])
any_share = st.floats(0.01, 0.9999) | extremes


@strategies.examples(150)
@given(
    threshold=any_share,
    recall=any_share,
    num_seeds=st.integers(1, 5000) | st.sampled_from([1, 2, 128, 4096]),
    filtered=st.booleans(),
)
def test_what_planned_bands_are(threshold, recall, num_seeds, filtered):
    """The bands fit and reach the recall; a wider band would miss it or need more components."""
    try:
        plan = made(threshold, recall, num_seeds, filtered=filtered)
    except ValueError:
        assert -math.expm1(num_seeds * math.log1p(-threshold)) <= needed(recall, filtered) + 1e-12
        return
    bands = plan.bands
    assert bands.num_components <= num_seeds
    assert bands.widths == tuple(sorted(bands.widths))
    assert bands.widths[-1] - bands.widths[0] <= 1
    assert bands.probability(threshold) >= needed(recall, filtered) - 1.1e-12  # LOSS_TOLERANCE, and rounding
    assert plan.recall_at(threshold) >= recall - 1e-11
    if bands.num_components < num_seeds and recall >= 0.01:
        first = bands.widths.index(max(bands.widths))
        at = first - 1 if first else 0  # the widest of the narrower bands
        wider = [width + (i == at) for i, width in enumerate(bands.widths)]
        assert Bands(widths=wider).probability(threshold) <= needed(recall, filtered) + 1e-12


@pytest.mark.parametrize("num_seeds", [1, 128, 2**20])
@pytest.mark.parametrize("recall", [1e-300, 0.99, 1 - 2**-53])
def test_identical_sets(num_seeds, recall):
    """Any band finds identical sets, so one band with all components is chosen."""
    plan = lsh.plan(1, recall, num_seeds)
    assert plan == lsh.plan(1.0, recall, num_seeds)
    assert plan.bands == Bands(1, num_seeds)
    assert plan.recall_at(1.0) == 1.0


# Backgrounds.

IN_VAIN = "is compared in vain: a false candidate, which shares a band but is below the threshold"


def test_a_background_that_tells_nothing():
    """If no background pair can be a false candidate, evenly spread pairs are used instead."""
    for background in ([0.0] * 50, [0.9, 1.0], numpy.zeros(3, numpy.float32), [0], (1, 0)):
        plan = lsh.plan(0.8, 0.99, background=background)
        assert plan.bands == lsh.plan(0.8, 0.99).bands
        assert plan.false_candidates == 0
        given = "1 given similarity" if len(background) == 1 else f"{len(background)} given similarities"
        assert str(plan).splitlines()[-2:] == [f"fewer than 1 pair in 10^15 {IN_VAIN}", f"computed from {given}"]


def test_false_candidates_are_those_of_the_background():
    sample = numpy.random.RandomState(3).beta(1, 8, 5000)
    plan = lsh.plan(0.8, background=sample)
    share = float(numpy.where(sample < 0.8, plan.probability(sample), 0).mean())
    assert plan.false_candidates == pytest.approx(share, rel=0.01)  # the cells are 1/1000 wide
    assert str(plan).splitlines()[-1] == "computed from 5,000 given similarities"


def test_the_cost_of_a_run():
    """In proportion to the documents; more bands and false candidates cost more."""
    plan = lsh.plan(0.8, num_seeds=128, background=[0.1, 0.7], documents=10**6)
    one, ten = plan.cost(text_bytes=1200), plan.cost(10**7, text_bytes=1200)
    each = 4 * plan.bands.num_bands + 128 + 32 + 24  # keys, sketches, low bits, and what is known of the text
    assert (one.documents, one.max_memory, one.temporary_bytes) == (10**6, 24 * 10**6, each * 10**6)
    assert (ten.max_memory, ten.temporary_bytes) == (10 * one.max_memory, 10 * one.temporary_bytes)
    assert one.false_candidates == pytest.approx(plan.false_candidates * (10**12 - 10**6) / 2)
    assert ten.false_candidates == pytest.approx(100 * one.false_candidates, rel=1e-5)
    assert one.false_candidates * 2 / 10**6 > 10_000
    assert "takes much of the time: longer shingles" in str(one)
    assert "longer" not in str(plan.cost(2, text_bytes=1200)).partition("extrapolated")[0]
    without = lsh.plan(0.8).cost(10**6, text_bytes=1200)
    assert (without.false_candidates, "not counted" in str(without)) == (None, True)
    assert without.core_hours < one.core_hours < ten.core_hours / 10
    wide = lsh.plan(0.8, num_seeds=512).cost(10**6, text_bytes=1200)
    assert without.spark_core_hours < wide.spark_core_hours
    assert without.spark_shuffled_bytes < wide.spark_shuffled_bytes
    most = lsh.plan().cost(2**31, text_bytes=0)
    assert (most.max_memory, most.temporary_bytes) == (None, (8 * 19 + 128 + 32 + 24) * 2**31)
    assert key_bytes(1, 0) == 8  # nothing tells documents apart that share half of a key
    with pytest.raises(TypeError, match="documents must be given"):
        lsh.plan().cost(text_bytes=5)
    with pytest.raises(ValueError, match="text_bytes must be 0 or more"):
        lsh.plan().cost(5, text_bytes=-1)


def make_corpus(count: int) -> list[str]:
    """Texts of 30 words, drawn from 60 words."""
    draw = numpy.random.RandomState(8)
    return [" ".join(f"word{number}" for number in draw.permutation(60)[:30]) for _ in range(count)]


def test_a_corpus_as_background():
    """Estimated similarities of a corpus give the same cost as its exact similarities."""
    texts = make_corpus(150)
    exact = lsh.jaccard_matrix(texts)[numpy.triu_indices(150, 1)]
    by_texts, by_similarities = (lsh.plan(0.5, 0.9, background=given) for given in (texts, exact))
    assert by_texts.background == "all pairs of 150 of the texts"
    assert str(by_texts).endswith("\ncomputed from all pairs of 150 of the texts, Shingles(8, unit='char')")
    costs = [plan.false_candidates for plan in (by_texts, by_similarities)]
    assert costs[0] == pytest.approx(costs[1], rel=0.15)  # estimates from 512 components


def test_a_corpus_is_cut_as_it_is_told():
    """Words with different endings: their sets of words differ, their sets of characters are similar."""
    texts = [" ".join(f"{word}{i}" for word in ("alpha", "bravo", "charlie", "delta")) for i in range(60)]
    words, characters = (lsh.plan(0.9, background=texts, shingles=Shingles(*cut)) for cut in ((1, "word"), (3, "char")))
    assert (words.shingles, characters.shingles) == (Shingles(1, "word"), Shingles(3))
    assert words.false_candidates < 1e-6 < characters.false_candidates
    assert lsh.plan(0.9, background=texts) == lsh.plan(0.9, background=texts, shingles=Shingles(8))


def test_a_background_in_every_form():
    texts, numbers = make_corpus(20), [0.125, 0.5, 0.25]
    expected = lsh.plan(0.5, background=texts)
    forms = [tuple(texts), [t.encode() for t in texts], numpy.array(texts), numpy.array([t.encode() for t in texts])]
    for missing in (None, math.nan, ""):
        forms += [[missing, *texts], numpy.array([missing, *texts], object), iter([missing, *texts])]
    for form in forms:
        assert lsh.plan(0.5, background=form) == expected
    for same in (tuple(numbers), numpy.array(numbers), numpy.array(numbers, object), numpy.float32(numbers)):
        assert lsh.plan(background=same) == lsh.plan(background=numbers)
    texts = make_corpus(60) * 100  # a large corpus is sampled
    expected = lsh.plan(0.5, background=texts)
    assert lsh.plan(0.5, background=iter(texts)) == lsh.plan(0.5, background=numpy.array(texts)) == expected
    assert expected != lsh.plan(0.5, background=texts[:60])


def test_printed_plan():
    """The first seven lines are those of the docstring of `lsh.plan`."""
    plan = lsh.plan(0.8, 0.99, 128, background=[0.1, 0.36], documents=1000)
    share = (plan.probability(0.1) + plan.probability(0.36)) / 2
    assert str(plan).splitlines()[7:] == [
        f"1 pair in {float(f'{1 / share:.3g}'):g} {IN_VAIN}",
        "computed from 2 given similarities",
        f"with 1,000 documents, each has {999 * share:.0f} false candidates",
    ]
    one = str(lsh.plan(0.8, 0.5, 1, background=[0.1])).splitlines()
    assert one[0] == "1 band of 1 component, 1 in all"
    assert one[5] == "planned for threshold 0.8, recall 0.5 and 1 seed"
    unfiltered = made(0.8, 0.99, 128, filtered=False)
    assert str(unfiltered).splitlines()[-1].endswith(f"with probability {unfiltered.probability(0.8):.4f}")


SHORT_TEXTS = ["red green blue white", "red green blue black", "one two three four"]


@pytest.mark.parametrize("find", [lsh.deduplicate, lsh.find_pairs])
def test_a_plan_settles_threshold_recall_and_shingles(find):
    plan = lsh.plan(0.6, 0.9, background=SHORT_TEXTS, shingles=WORDS)
    for options, message in (
        ({"threshold": 0.7}, "bands are planned for threshold=0.6, got threshold=0.7; make a plan for it, or pass"),
        ({"num_seeds": 100}, "bands are planned for num_seeds=128, got num_seeds=100; make a plan for it"),
        ({"shingles": Shingles(8)}, re.escape(f"bands are planned for shingles={WORDS!r}, got shingles=Shingles(8")),
        ({"recall": 0.9}, "recall and bands cannot be combined"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            find(SHORT_TEXTS, bands=plan, **({"threshold": 0.6} | options))
    for options in ({}, {"shingles": WORDS}, {"hasher": MinHasher(128, scheme="fss", shingles=WORDS)}):
        assert lsh.deduplicate(SHORT_TEXTS, 0.6, bands=plan, **options).parameters["hasher"].shingles == WORDS
        assert list(lsh.find_pairs(SHORT_TEXTS, 0.6, bands=plan, **options)) == [(0, 1, 0.6)]
    by_similarities = lsh.plan(0.6, 0.9, background=[0.1])
    assert lsh.deduplicate(SHORT_TEXTS, 0.6, bands=by_similarities).parameters["hasher"].shingles == Shingles(8)


@given(
    num_seeds=st.integers(1, 60),
    threshold=st.integers(1, 100).map(lambda percent: percent / 100),
    loss=st.one_of(st.sampled_from([0.0, 0.001, 0.002]), st.floats(1e-6, 0.5)),
)
def test_least_equal_against_twin(num_seeds, threshold, loss):
    least = min_equal(num_seeds, threshold, loss)
    lost = reference.fewer_equal(num_seeds, least, threshold)
    assert lost <= loss * (1 + 1e-12)
    assert reference.fewer_equal(num_seeds, least + 1, threshold) > loss * (1 - 1e-12)
    for similarity in (0.0, threshold / 2, threshold, 1.0):
        passed = 1 - reference.fewer_equal(num_seeds, least, similarity)
        assert passing(num_seeds, least, similarity) == pytest.approx(float(passed), rel=1e-10, abs=1e-300)


@pytest.mark.parametrize(("num_seeds", "threshold"), [(1000, 0.01), (4096, 0.5), (4096, 0.8), (1000, 0.999)])
def test_least_equal_of_many(num_seeds, threshold):
    """Compared with sums of Python's floats, which are exact enough: no small term is lost by rounding."""
    p = threshold + (1 - threshold) / 256
    for loss in (1e-9, 0.002, 0.2):
        least = min_equal(num_seeds, threshold, loss)
        assert 1 - binomial_tail(least, num_seeds, p) <= loss * (1 + 1e-6)
        assert binomial_tail(num_seeds - least, num_seeds, 1 - p) > loss  # P(at most `least`)


@given(threshold=some_thresholds.map(lambda t: max(t, 0.05)), recall=some_recalls, s=st.floats(0, 1))
def test_recall_is_that_of_bands_and_filter(threshold, recall, s):
    plan = lsh.plan(threshold, recall, 700)
    least = min_equal(700, threshold, loss_of(recall))
    passed = passing(700, least, s)
    assert plan.recall_at(s) == pytest.approx(plan.bands.probability(s) * passed, rel=1e-12, abs=1e-300)
    assert isinstance(plan.recall_at(s), float)
    several = plan.recall_at([[s, threshold]])
    assert several.shape == (1, 2)
    assert several.ravel().tolist() == pytest.approx([plan.recall_at(s), plan.recall_at(threshold)], rel=1e-9)
    assert passing(700, least, threshold) >= 1 - (1 - recall) / 5 - 1e-12


@pytest.mark.few(2)
@pytest.mark.parametrize("scheme", ["murmur3", "fss"])
@pytest.mark.parametrize("recall", [0.9, 0.99])
@pytest.mark.parametrize("shared", [50, 80, 90])
def test_recall_of_pairs_at_the_threshold(shared, recall, scheme):
    """Measured on 1,000 independent pairs of sets of words just at the threshold."""
    count, threshold = 1000, shared / 100
    texts = pairs_of_texts(shared, 100, count)
    hasher = make_hasher(128, 8) if scheme == "murmur3" else MinHasher(128, scheme="fss", shingles=WORDS)
    pairs = list(lsh.find_pairs(texts, threshold=threshold, recall=recall, hasher=hasher))
    assert {(i, j, similarity) for i, j, similarity in pairs} <= {(2 * i, 2 * i + 1, threshold) for i in range(count)}
    missed = count - len(pairs)
    assert binomial_tail(missed, count, 1 - recall) > ALPHA  # this many misses or more
    if scheme == "murmur3":  # and the bands find no more pairs than planned
        found = lsh.plan(threshold, recall, 128).probability(threshold)
        assert binomial_tail(len(pairs), count, found) > ALPHA


@pytest.mark.few(1)
@pytest.mark.parametrize("recall", [0.9, 0.99])
def test_recall_on_reuters(data_folder, recall):
    """All pairs at .8 or more, over 20 random states. Stories that are in no such pair are left out."""
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


def cost(plan: Plan, documents: int, similarities: list[float]) -> float:
    """What a document costs with a plan, in seconds: by its components, its bands, and the pairs in each bucket."""
    shared = sum(similarity**width for similarity in similarities for width in plan.bands.widths) / len(similarities)
    seconds = plan.num_seeds * math.log(plan.num_seeds) * costs.SEED_SECONDS
    seconds += plan.bands.num_bands * costs.BAND_SECONDS
    return seconds + shared * (documents - 1) / 2 * costs.SHARED_SECONDS


@given(
    st.integers(1, 10**11),
    st.sampled_from([0.5, 0.6, 0.7, 0.8, 0.9]),
    st.none() | st.lists(st.floats(0.0, 0.4), min_size=1, max_size=3),
)
def test_the_plan_for_a_size_costs_least(documents, threshold, similarities):
    """Of those with 128 to 1,024 seeds; one for each power of four, from 65,536 documents on."""
    planned = lsh.plan(threshold, documents=documents, background=similarities)
    size = 4**8
    while size < documents:
        size *= 4
    assert replace(lsh.plan(threshold, documents=size, background=similarities), documents=documents) == planned
    every = [lsh.plan(threshold, num_seeds=seeds, background=similarities) for seeds in (128, 256, 512, 1024)]
    chosen = every[: 1 if size == 4**8 else 4]
    assert planned.bands in [one.bands for one in chosen]
    least = min(cost(one, size, similarities or [0.06]) for one in chosen)
    assert cost(planned, size, similarities or [0.06]) == pytest.approx(least, rel=0.01)  # similarities are rounded
    assert planned.recall_at(threshold) >= 0.99


def test_a_low_threshold_needs_more_seeds_for_many_documents():
    assert lsh.plan(0.03, documents=10**6).num_seeds == 256
    with pytest.raises(ValueError, match=r"num_seeds=128 is too few to find pairs of similarity 0\.03"):
        lsh.plan(0.03, documents=10)
    with pytest.raises(ValueError, match="num_seeds=1024 is too few"):
        lsh.plan(0.003, documents=10**6)
