"""deduplicate and find_pairs: equal to the twin on small corpora of near duplicates, and sound on large ones.

The twin is reference.py: over the same buckets for any bands, and by brute force where the bands miss no pair. Separate
tests below cover the properties of the result, the cap, priorities, copies, edge cases and bad input.
"""

import copy
import errno
import gc
import io
import itertools
import math
import pickle
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st
from results import near_of, removed_of

import lsh
import lsh.engine.dedup
import lsh.engine.partitions
import lsh.links.linking
import lsh.sketch.sketch_filter
import lsh.text.shingling
from lsh import Bands, MinHasher, Shingles, deduplicate, find_pairs
from lsh.base.progress import Bars, Line
from lsh.engine.dedup import Running
from lsh.engine.matching import Matching
from lsh.text.batch import Batch
from lsh.text.collections import TextSource
from lsh.text.sets import ShingleSets

EVERY_PAIR = Bands(128, 1)  # a pair of similarity .3 is missed with probability .7^128, which is 1e-20
WORDS = Shingles(1, "word")  # texts as sets of words: their similarities are easy to count


@pytest.fixture(scope="module", autouse=True)
def remembered_hashes():
    """Cache the hashes of the twin for all tests of this file."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("murmur3_x86_32", "murmur3_x64_128"):
            patch.setattr(reference, name, lru_cache(maxsize=300_000)(getattr(reference, name)))
        yield


def check_whole(result, total: int) -> None:
    """Check that the parts of a result are consistent."""
    removed = removed_of(result)
    assert result.keep.dtype == bool
    assert result.keep.shape == result.labels.shape == (total,)
    assert result.labels.dtype == result.removed["document"].dtype == result.removed["kept"].dtype == numpy.int64
    assert result.removed["document"].tolist() == sorted(removed)
    assert len(removed) == len(result.removed)
    assert numpy.flatnonzero(~result.keep).tolist() == sorted(removed)
    assert all(kept >= total or result.keep[kept] for kept, _, _ in removed.values())
    labels = [removed[i][0] if i in removed else i for i in range(total)]
    assert result.labels.tolist() == [label if label < total else -1 for label in labels]
    counts = Counter(labels)
    assert result.copies.tolist() == [counts[i] for i in range(total)]
    assert result.old_copies.tolist() == sorted((i - total, number) for i, number in counts.items() if i >= total)
    assert result.copies.sum() + result.old_copies["copies"].sum() == total
    members: dict[int, list[int]] = {}
    for document in sorted(removed):
        if removed[document][0] < total:
            members.setdefault(removed[document][0], []).append(document)
    clusters = result.clusters()
    assert [cluster.tolist() for cluster in clusters] == [[kept, *members[kept]] for kept in sorted(members)]
    assert all(cluster.dtype == numpy.int64 for cluster in clusters)
    counts = result.summary()
    names = "documents old kept removed for_old identical clusters without_shingles missing candidates connected "
    assert set(counts) == {*names.split(), "compared", "capped", "seconds"}
    assert (counts["documents"], counts["kept"], counts["removed"]) == (total, total - len(removed), len(removed))
    assert counts["identical"] == sum(identical for _, _, identical in removed.values())
    assert counts["clusters"] == len(clusters)
    assert counts["compared"] <= counts["candidates"] + counts["removed"]
    similarities = result.near["similarity"].tolist()
    assert similarities == sorted(similarities, reverse=True)
    assert len(similarities) <= 100


def same_as(result, expected: reference.Deduplicated) -> None:
    assert removed_of(result) == expected.removed
    assert result.keep.tolist() == expected.kept
    assert result.summary()["capped"] == expected.capped
    check_whole(result, len(expected.kept))


# Small corpora in which most texts have a near duplicate.


@st.composite
def corpora(draw) -> list[str | bytes]:
    """Each text is new, a copy of an earlier one, or an earlier one with a piece inserted, removed or moved."""
    texts: list[str | bytes] = []
    for _ in range(draw(st.integers(0, 12))):
        kind = draw(st.integers(0, 7)) if texts else 7
        if kind == 7:
            texts.append(draw(st.one_of(st.text("ab", max_size=14), st.text("ab c", max_size=24), strategies.texts)))
            continue
        old = draw(st.sampled_from(texts))
        at, end = sorted((draw(st.integers(0, len(old))), draw(st.integers(0, len(old)))))
        piece = draw(st.sampled_from(["a", "b", " ", "ab"]))
        new = piece if isinstance(old, str) else piece.encode()
        texts.append(
            {
                0: old,
                1: old + old,  # almost the same set for most texts
                2: old[:at] + new + old[at:],
                3: old[:at] + old[end:],
                4: old + new,
                5: old[end:] + old[:end],
                6: reference.as_bytes(old) if isinstance(old, str) else old,
            }[kind]
        )
    return texts


modes = st.sampled_from(["representative", "components"])
verifications = st.sampled_from(["exact", "exact", "sketch", None])
thresholds = st.one_of(st.sampled_from([0.3, 0.5, 2 / 3, 0.75, 0.8, 0.9, 1.0]), st.floats(0.3, 1.0))
shinglings = st.builds(  # the arguments of `Shingles`, and of the functions of the twin
    lambda n, unit, options: {"n": n, "unit": unit, **options},
    st.one_of(st.integers(1, 4), st.just(8)),
    strategies.units,
    strategies.normalisations,
)


def priorities(total: int):
    numbers = st.integers(-2, 2), st.floats(allow_nan=False, allow_infinity=False)
    lists = [st.lists(one, min_size=total, max_size=total) for one in numbers]
    return st.one_of(st.sampled_from(["first", "last", "longest"]), *lists)


@strategies.examples(80)
@given(
    data=st.data(),
    texts=corpora(),
    threshold=thresholds,
    cut=shinglings,
    clusters=modes,
)
def test_deduplicate_against_brute_force(data, texts, threshold, cut, clusters):
    """With bands that miss no pair, and without a filter, the result equals that of comparing all pairs."""
    count = data.draw(st.integers(0, len(texts)))
    new, old = texts[count:], texts[:count]
    keep = data.draw(priorities(len(new)))
    walked = {"keep": keep, "clusters": clusters, "against": old}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lsh.sketch.sketch_filter, "LOSS", 0.0)
        result = deduplicate(new, threshold, bands=EVERY_PAIR, shingles=Shingles(**cut), **walked)
    same_as(result, reference.deduplicate_exact(new, threshold, **walked, **cut))
    assert result.summary()["old"] == len(old)
    assert result.summary()["for_old"] == int((result.removed["side"] == "old").sum())
    assert result.parameters["bands"].num_components <= result.parameters["hasher"].num_seeds


@strategies.examples(120)
@given(
    data=st.data(),
    texts=corpora(),
    threshold=st.floats(0.001, 1.0),
    cut=shinglings,
    seeds=st.lists(st.integers(0, 2**32 - 1), min_size=6, max_size=8),
    widths=st.sampled_from([(1, 1), (1,) * 6, (2, 2, 2), (3, 3), (1, 2, 3), (6,)]),
    hashbytes=st.sampled_from([4, 8]),
    limits=st.tuples(st.sampled_from([1, 2, 3, 1000]), st.sampled_from([1, 2, 1000])),
    clusters=modes,
    verify=verifications,
    loss=st.sampled_from([0.001, 0.2, 0.7]),
    parts=st.fixed_dictionaries({"TASK": st.sampled_from([1, 3, 512]), "DOCUMENTS_STEP": st.sampled_from([1, 1024])}),
    family=st.sampled_from([1, 2, 128]),
    num_threads=st.integers(1, 3),
)
def test_deduplicate_against_twin(
    data, texts, threshold, cut, seeds, widths, hashbytes, limits, clusters, verify, loss, parts, family, num_threads
):
    """Few bands that miss pairs, limits that are reached, a filter with losses: the twin uses the same buckets.

    Tasks have all sizes, and documents are compared one by one, or with all that are kept.
    """
    keep = data.draw(priorities(len(texts)))
    against = data.draw(st.lists(st.sampled_from(texts), max_size=3)) if texts else []
    hasher = MinHasher(seeds, hashbytes=hashbytes, shingles=Shingles(**cut))
    walked = {"keep": keep, "clusters": clusters, "verify": verify, "against": against}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lsh.engine.dedup, "LIMIT", limits[0])
        patch.setattr(lsh.links.linking, "LIMIT", limits[1])
        patch.setattr(lsh.sketch.sketch_filter, "LOSS", loss)
        low_bits_of = Matching(threshold, bands=Bands(widths=widths), hasher=hasher, verify=verify).low_bits
        plain = deduplicate(texts, threshold, bands=Bands(widths=widths), hasher=hasher, num_threads=1, **walked)
        for name, value in parts.items():
            patch.setattr(lsh.engine.partitions, name, value)
        if limits[0] == 1000:  # a family has no limit
            patch.setattr(lsh.engine.partitions, "FAMILY", family)
        walked_in_parts = {**walked, "num_threads": num_threads}
        result = deduplicate(texts, threshold, bands=Bands(widths=widths), hasher=hasher, **walked_in_parts)
    assert result.removed.tolist() == plain.removed.tolist()
    assert result.near.tolist() == plain.near.tolist()
    ignored = {"seconds": {}, "compared": 0}  # a family counts pairs that its bounds tell apart
    assert {**result.summary(), **ignored} == {**plain.summary(), **ignored}
    buckets = {"widths": widths, "seeds": seeds, "hashbytes": hashbytes, "limit": limits[0], "link_limit": limits[1]}
    buckets |= {"low_bits_of": low_bits_of, "loss": loss}
    expected = reference.deduplicate(texts, threshold, **buckets, **walked, **cut)
    same_as(plain, expected)
    if clusters == "representative":
        assert len(expected.near) <= 100  # of more, the choice among equally similar pairs is not defined
        pairs = [(frozenset((i, j)), value) for i, j, value in expected.near]
        assert near_of(plain) == sorted(pairs, key=lambda pair: (-pair[1], sorted(pair[0])))


@given(
    texts=corpora(),
    threshold=st.floats(0.001, 1.0),
    cut=shinglings,
    widths=st.sampled_from([(1,) * 6, (2, 2, 2), (1, 5)]),
)
def test_nothing_is_dropped_without_a_witness(texts, threshold, cut, widths):
    """Each removed document has a similar kept one, by the definition of similarity alone."""
    hasher = MinHasher(6, shingles=Shingles(**cut))
    result = deduplicate(texts, threshold, hasher=hasher, bands=Bands(widths=widths))
    for document, kept, similarity, identical in result.removed:
        assert result.keep[kept]
        assert kept != document
        assert similarity == reference.jaccard(texts[document], texts[kept], **cut)
        assert similarity >= threshold
        assert identical == (reference.as_bytes(texts[document]) == reference.as_bytes(texts[kept]))
    assert result.keep.sum() + len(set(result.removed["document"].tolist())) == len(texts)


@strategies.examples(85)
@given(
    texts=corpora(),
    threshold=st.one_of(thresholds, st.floats(0.001, 1)),
    cut=shinglings,
    seeds=st.lists(st.integers(0, 2**32 - 1), min_size=6, max_size=8),
    widths=st.sampled_from([(1,) * 6, (2, 2, 2), (1, 2, 3)]),
    hashbytes=st.sampled_from([4, 8]),
    split=st.one_of(st.none(), st.integers(0, 12)),
    verify=verifications,
    step=st.sampled_from([1, 3, 1024]),
    most=st.sampled_from([0, 2, 1 << 16]),
    num_threads=st.integers(1, 3),
)
def test_find_pairs_against_twin(
    texts, threshold, cut, seeds, widths, hashbytes, split, verify, step, most, num_threads
):
    """One collection, or two: the texts before and after a place. Calls of all sizes, in threads."""
    hasher = MinHasher(seeds, hashbytes=hashbytes, shingles=Shingles(**cut))
    a, b = (texts, None) if split is None else (texts[:split], texts[split:])
    how = {"others": b, "bands": Bands(widths=widths), "hasher": hasher, "verify": verify, "num_threads": num_threads}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lsh.engine.partitions, "DOCUMENTS_STEP", step)
        patch.setattr(lsh.engine.partitions, "MOST_PAIRS", most)
        found = list(find_pairs(a, threshold, **how))
    num_references = {"widths": widths, "seeds": seeds, "hashbytes": hashbytes, "verify": verify}
    assert found == reference.find_pairs(a, b, threshold=threshold, **num_references, **cut)
    assert all((type(i), type(j), type(s)) == (int, int, float) for i, j, s in found)


# Single cases.


def by_words(texts: list, threshold: float, **options):
    return deduplicate(texts, threshold, bands=EVERY_PAIR, shingles=WORDS, **options)


CHAIN = ["a b c d", "b c d e", "c d e f", "d e f g"]  # similarity 3/5 to the next text, 2/6 to the one after


def test_missing_texts():
    texts = ["one text of some length", None, "one text of some length", None, ""]
    result = deduplicate(texts, missing="empty")
    assert result.keep.tolist() == [True, True, False, True, True]
    assert (result.summary()["missing"], result.summary()["without_shingles"]) == (2, 3)
    assert list(find_pairs(texts, missing="empty")) == [(0, 2, 1.0)]
    assert list(find_pairs(texts[:2], others=texts, missing="empty")) == [(0, 0, 1.0), (0, 2, 1.0)]
    for shingles in (Shingles(8), Shingles(8, lowercase=True)):
        with pytest.raises(ValueError, match=r"texts\[1\] is None; drop it, or .* missing='empty'"):
            deduplicate(texts, shingles=shingles)
        with pytest.raises(ValueError, match=r"^texts\[1\] is None; .*missing='empty'"):
            list(find_pairs(texts, shingles=shingles))
        with pytest.raises(ValueError, match=r"^others\[3\] is None; .*missing='empty'"):
            list(find_pairs(["a"], others=["b", "c", "d", None], shingles=shingles))
        with pytest.raises(ValueError, match=r"^against\[1\] is None; .*missing='empty'"):
            deduplicate(["a"], against=["b", None], shingles=shingles)


@strategies.examples(25)
@given(shared=st.integers(1, 30), only=st.integers(0, 30), unit=st.sampled_from(["word", "char"]))
def test_threshold_is_one_division(shared, only, unit):
    """A pair with x shared shingles of y is found at the threshold x / y, and not at the next float."""
    parts = [chr(0x4E00 + i) for i in range(shared + only)]
    whole, part = " ".join(parts), " ".join(parts[:shared])
    if unit == "char":
        whole, part = whole.replace(" ", ""), part.replace(" ", "")
    share = shared / (shared + only)
    # Enough bands of one component to miss the pair with probability 1e-15.
    bands = Bands(1 if only == 0 else math.ceil(math.log(1e-15) / math.log1p(-share)), 1)
    options = {"bands": bands, "num_seeds": bands.num_components, "shingles": Shingles(1, unit)}
    assert removed_of(deduplicate([whole, part], share, **options)) == {1: (0, share, only == 0)}
    assert list(find_pairs([whole, part], threshold=share, **options)) == [(0, 1, share)]
    if only:
        above = math.nextafter(share, 1)
        assert deduplicate([whole, part], above, **options).keep.all()
        assert list(find_pairs([whole, part], threshold=above, **options)) == []


DAYS = [date(2024, 2, 29), date(2024, 12, 1), date(1969, 7, 20)]
TIMES = [datetime(*day.timetuple()[:3], 12, microsecond=5) for day in DAYS]
PRIORITIES = [  # the second has the highest priority
    (1.0, 3.0, 2.0),
    numpy.array([-3, -1, -2], numpy.float32),
    [False, True, False],
    range(1, 3),
    [2**60, 2**60 + 1],  # times in nanoseconds differ beyond the digits of a float
    numpy.array([2**63, 2**63 + 1, 1], numpy.uint64),
    numpy.array([2**62, 2**62 + 5], numpy.int64),
    numpy.array(DAYS, "M8[D]"),  # the newest; dates before 1970 are older than all others
    numpy.array(TIMES, ">M8[s]"),
    [numpy.datetime64(day) for day in DAYS],
    numpy.array(["2024-01-01T00:00:00.000000001", "2024-01-01T00:00:00.000000002"], "M8[ns]"),
]


@pytest.mark.parametrize("keep", PRIORITIES, ids=str)
def test_keep_by_numbers_and_dates(keep):
    others = {*range(len(keep))} - {1}
    assert removed_of(by_words(["a b"] * len(keep), 1, keep=keep)) == dict.fromkeys(others, (1, 1.0, True))
    if len(keep) == 3:
        assert removed_of(by_words(CHAIN[:3], 0.6, keep=keep)) == dict.fromkeys((0, 2), (1, 0.6, False))


def test_keep_by_columns_of_dates():
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    for column in (
        pandas.Series(TIMES),
        pandas.to_datetime(TIMES),
        pyarrow.chunked_array([DAYS[:1], DAYS[1:]]),
        pyarrow.array(TIMES, pyarrow.timestamp("ms", "UTC")),
    ):
        assert removed_of(by_words(["a b"] * 3, 1, keep=column)) == {0: (1, 1.0, True), 2: (1, 1.0, True)}
    for column in (pandas.Series([TIMES[0], None, TIMES[1]]), pyarrow.array([TIMES[0], None, TIMES[1]])):
        with pytest.raises(ValueError, match=r"keep\[1\] must be a date, got NaT"):
            by_words(["a b"] * 3, 1, keep=column)


def letters(rng: random.Random, size: int) -> str:
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz ", k=size))


def templates(count: int, threshold: float, rng: random.Random) -> tuple[list[str], list[str]]:
    """Return texts of one template, unrelated and .03 below the threshold, and a copy of each tenth, .03 above it."""
    low, high, form = threshold - 0.03, threshold + 0.03, letters(rng, 1000)
    own = round(1000 * (1 / low - 1) / 2)
    kept = round((high * (1000 + 2 * own) - 1000) / (1 + high))
    texts = [form + letters(rng, own) for _ in range(count)]
    return texts, [text[: 1000 + kept] + letters(rng, own - kept) for text in texts[: count // 10]]


@pytest.mark.few(1)
@pytest.mark.parametrize("threshold", [0.8, 0.5, 0.6, 0.7, 0.9])
def test_copies_within_a_template_are_found(threshold):
    """The recall that was asked is kept in any order: where the originals come first, last, or in between."""
    rng, shingles = random.Random(7), Shingles(5, "byte")
    texts, copies = templates(1500, threshold, rng)
    least = len(copies) * 0.99 - 4 * math.sqrt(len(copies) * 0.99 * 0.01)
    mixed = [*texts, *copies]
    rng.shuffle(mixed)
    for one in ([*texts, *copies], [*copies, *texts], mixed):
        result = deduplicate(one, threshold, shingles=shingles)
        assert least <= len(result.removed) <= len(copies)
        assert result.summary()["capped"] == 0
        for document, kept, similarity, _ in result.removed[:20].tolist():
            assert reference.jaccard(one[document], one[kept], 5, "byte") == similarity >= threshold


@pytest.mark.parametrize("bound", [None, "100KB"])
def test_copies_are_paired_where_comparisons_are_left_out(monkeypatch, bound):
    """Copies of a text may be in several groups of a bucket then, and are found all the same."""
    monkeypatch.setattr(lsh.links.linking, "LIMIT", 1)
    texts = ["".join(random.Random(i // 3).choices("abcdefgh", k=400)) for i in range(90)]
    others = [*texts[::-1], *texts]
    rows = find_pairs(texts, others=others, bands=Bands(4, 1), max_memory=bound)
    found = {(i, j) for i, j, similarity in rows if similarity == 1.0}
    assert found == {(i, j) for i, text in enumerate(texts) for j, other in enumerate(others) if text == other}


@pytest.mark.slow
def test_a_family_has_a_quarter_of_the_bound():
    """A family that is given up counts other comparisons, and takes ten times as long."""
    texts, copies = templates(1500, 0.8, random.Random(7))
    found = [
        deduplicate([*texts, *copies], 0.8, shingles=Shingles(5, "byte"), max_memory=bound, num_threads=1).summary()
        for bound in (None, "20MB", "2MB")
    ]
    assert found[0]["compared"] == found[1]["compared"] > found[2]["compared"]


@pytest.mark.few(1)
@pytest.mark.parametrize("family", [1, 10**9])
def test_a_family_changes_no_result(monkeypatch, family):
    """Documents are compared one by one, or with all that are kept; a family without enough memory is given up."""
    texts, copies = templates(150, 0.8, random.Random(8))
    long = "".join(random.Random(9).choices("abcdefgh", k=560_000))  # its shingles are not all in memory
    corpus_ = [*texts, long, *copies, long[:-60_000]]
    expected = deduplicate(corpus_, 0.8, shingles=Shingles(9))
    assert len(expected.removed) >= 0.9 * len(copies)
    monkeypatch.setattr(lsh.engine.partitions, "FAMILY", family)
    for more in ({"max_memory": "300KB"}, {"num_threads": 3}, {}):
        if not more:  # the shingles of no text are all in memory
            monkeypatch.setattr(lsh.text.shingling, "ShingleSets", partial(ShingleSets, max_shingles=1024))
        result = deduplicate(corpus_, 0.8, shingles=Shingles(9), **more)
        assert numpy.array_equal(result.removed, expected.removed)
        assert numpy.array_equal(result.near, expected.near)


def test_a_family_finds_texts_that_share_what_many_have():
    """Each twentieth text has the same ending. Two are short enough to be similar by it, or by a few more letters."""
    rng = random.Random(12)
    form, also = letters(rng, 1000), letters(rng, 40)
    begins = [form + ending for ending in (letters(rng, 60) for _ in range(75))]
    short, others = [also + begin for begin in begins], [begin + letters(rng, 230) for begin in begins * 19]
    texts = [text + letters(rng, 80) for text in short]
    longer = [text[: 1100 + (i + 1) % 2 * 20] + letters(rng, 130) for i, text in enumerate(texts)]
    result = deduplicate([*texts, *others, *longer], 0.8, shingles=Shingles(5))
    assert result.removed[["document", "kept"]].tolist() == [(1500 + i, i) for i in range(75)]


@pytest.mark.parametrize("most", [10**6, 1024])
def test_a_family_finds_shorter_texts(monkeypatch, most):
    """Texts of other sizes are blocks of a family; the shingles of the short ones alone may be in memory."""
    monkeypatch.setattr(lsh.text.shingling, "ShingleSets", partial(ShingleSets, max_shingles=most))
    rng = random.Random(1)
    form = letters(rng, 870)
    texts = [form + letters(rng, 160 + i % 60) for i in range(300)] + [form + letters(rng, 40) for _ in range(20)]
    assert deduplicate(texts, 0.8, shingles=Shingles(5)).removed["document"].tolist() == list(range(300, 320))


def test_low_bits_tell_documents_of_one_short_key_apart(monkeypatch):
    rng = random.Random(5)
    texts = [letters(rng, 400) for _ in range(500)]
    texts += [text[:390] + letters(rng, 10) for text in texts[:50]]
    expected = deduplicate(texts)
    monkeypatch.setattr(lsh.engine.corpus, "key_bytes", lambda *_: 1)
    for bound in (None, "100KB"):
        result = deduplicate(texts, max_memory=bound)
        assert numpy.array_equal(result.removed, expected.removed)
        assert result.summary()["candidates"] > 10_000 > expected.summary()["candidates"]


@pytest.mark.parametrize("family", [2, 10**9])
def test_the_limit_counts_what_it_leaves_out(monkeypatch, family):
    """Nine texts of a template share each bucket and are not similar; each is compared with the first four at most."""
    assert (lsh.engine.dedup.LIMIT, lsh.links.linking.LIMIT) == (1 << 18, 1 << 16)
    monkeypatch.setattr(lsh.engine.dedup, "LIMIT", 4)
    monkeypatch.setattr(lsh.engine.partitions, "FAMILY", family)
    hasher = MinHasher(1, shingles=WORDS)
    least = min((f"w{i}" for i in range(3000)), key=lambda word: int(hasher.fingerprint(word)[0]))
    texts = [f"{least} {i}" for i in range(9)]
    same = MinHasher(hasher.seed_values.tolist() * 3, shingles=WORDS)
    result = deduplicate(texts, 0.9, hasher=same, bands=Bands(3, 1))
    assert result.keep.all()
    assert result.summary()["capped"] == (1 + 2 + 3 + 4) * (1 if family == 2 else 3)
    assert result.summary()["candidates"] == 3 * 9 * 8 // 2


# Large buckets.

MANY = 20_000
LIMIT = 20.0  # seconds of processor time; a test takes less than one, or minutes if it compares all pairs


def test_twenty_thousand_copies():
    text = "The same text again, word for word, as often as one likes. "
    started = time.process_time()
    result, last = (deduplicate([text] * MANY, keep=keep) for keep in ("first", "last"))
    assert time.process_time() - started < LIMIT
    assert result.keep.tolist() == last.keep.tolist()[::-1] == [True] + [False] * (MANY - 1)
    assert (set(result.labels.tolist()), set(last.labels.tolist())) == ({0}, {MANY - 1})
    assert result.removed["identical"].all()
    assert result.summary()["compared"] == result.summary()["capped"] == 0


def test_twenty_thousand_texts_of_one_set():
    """The same nine words in different orders: no two identical, all equal as sets."""
    orders = itertools.islice(itertools.permutations([f"word{i}" for i in range(9)]), MANY)
    texts = [" ".join(order) for order in orders]
    started = time.process_time()
    result = deduplicate(texts, 1, shingles=WORDS)
    assert time.process_time() - started < LIMIT
    assert result.keep.tolist() == [True] + [False] * (MANY - 1)
    assert (result.removed["similarity"] == 1).all()
    assert not result.removed["identical"].any()
    assert result.summary()["compared"] == MANY - 1  # each with the kept text, once for all 20 bands


def test_twenty_thousand_near_copies_of_a_removed_text():
    """The chain of a bucket skips removed documents."""
    words = [f"word{i}" for i in range(18)]
    texts = [" ".join(words)] + [" ".join([*words, f"tail{i}"]) for i in range(MANY // 2)]
    texts += [" ".join(words[::-1]) for _ in range(MANY // 2)]
    started = time.process_time()
    result = deduplicate(texts, 0.9, shingles=WORDS)
    assert time.process_time() - started < LIMIT
    removed = removed_of(result)
    share = 18 / 19
    assert all(removed[i][1:] == ((share if i <= MANY // 2 else 1.0), False) for i in removed)
    assert len(removed) > 0.99 * MANY


@pytest.mark.parametrize("family", [1, 128])
@pytest.mark.parametrize("keep", ["first", "last", "longest"])
def test_copies_of_a_removed_text(monkeypatch, keep, family):
    """What is kept after the first copy may be more similar to a later one than the witness of the first."""
    monkeypatch.setattr(lsh.engine.partitions, "FAMILY", family)
    rng, texts = random.Random(1), [" ".join("abcdefghijklmnop")]
    for _ in range(300):
        words = rng.choice(texts).split()
        for _ in range(rng.choice([0, 0, 1, 2, 3])):
            words[rng.randrange(len(words))] = rng.choice("qrstuvwxyz") * rng.randint(1, 3)
        texts.append(" ".join(words))
    result = deduplicate(texts, 0.6, bands=EVERY_PAIR, shingles=WORDS, keep=keep)
    same_as(result, reference.deduplicate_exact(texts, 0.6, keep=keep, n=WORDS.n, unit="word"))
    pairs = {(texts[document], texts[kept]) for document, kept, *_ in result.removed if texts[document] != texts[kept]}
    assert len(pairs) > len({text for text, _ in pairs})  # copies of one text have several witnesses


# Runs of thousands of documents.


@pytest.fixture(scope="module")
def num_references(corpus) -> SimpleNamespace:
    return SimpleNamespace(result=deduplicate(corpus, 0.7), pairs=list(find_pairs(corpus, threshold=0.7)))


def test_a_result_is_whole(corpus, num_references):
    result = num_references.result
    check_whole(result, 3000)
    kept = int(result.keep.sum())
    assert 1000 <= kept < 1500
    assert (len(result), repr(result)) == (3000, f"<Deduplication: 3000 documents, {kept} kept, {3000 - kept} removed>")
    assert result.kept.tolist() == [i for i, keeps in enumerate(result.keep.tolist()) if keeps]
    seconds = result.summary()["seconds"]
    assert set(seconds) == {"fingerprints", "grouping", "comparing"}
    assert all(0 <= value < 60 for value in seconds.values())


@pytest.mark.parametrize(
    "same", [lambda result: result, copy.deepcopy, lambda result: pickle.loads(pickle.dumps(result))]
)
def test_a_result_and_its_copies_are_immutable(num_references, same):
    result = same(num_references.result)
    for name in ("keep", "labels", "removed", "near"):
        array = getattr(result, name)
        assert array.tolist() == getattr(num_references.result, name).tolist()
        assert not array.flags.writeable
        for change in (delattr, lambda result, name: setattr(result, name, None)):
            with pytest.raises(AttributeError, match=f"a Deduplication is immutable; .*{name}"):
                change(result, name)
    result.summary().clear()
    result.summary()["seconds"].clear()
    result.clusters()[0][:] = -1
    result.kept[:] = -1
    check_whole(result, 3000)
    assert result.summary() == num_references.result.summary()
    assert result.parameters == num_references.result.parameters


def test_find_pairs_is_an_iterator_and_arguments_stay(corpus, num_references):
    texts, priority = list(corpus), numpy.arange(3000.0)
    deduplicate(texts, keep=priority)
    list(find_pairs(texts[:100], others=texts))
    assert texts == corpus
    assert priority.tolist() == list(range(3000))
    found = find_pairs(texts, threshold=0.7)
    assert isinstance(found, Iterator)
    texts.clear()  # it reads the texts as they were at the call
    assert [next(found), next(found)] == num_references.pairs[:2]
    assert list(found) == num_references.pairs[2:]


def test_progress(corpus):
    for run in (lambda p: deduplicate(corpus, progress=p), lambda p: list(find_pairs(corpus, progress=p))):
        calls: list[tuple[str, int, int]] = []
        run(lambda *call, calls=calls: calls.append(call))
        stages = [stage for stage, _ in itertools.groupby(call[0] for call in calls)]
        assert stages == ["fingerprints", "grouping", "comparing"]
        for stage in stages:
            done = [call[1] for call in calls if call[0] == stage]
            totals = {call[2] for call in calls if call[0] == stage}
            assert len(done) > 1
            assert done == sorted(done)
            assert totals == {done[-1]}
        assert calls[0][2] == 3000


class Screen(io.StringIO):
    """Standard error, on a terminal or not."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize("terminal", [False, True])
def test_a_plain_line_without_tqdm(corpus, monkeypatch, terminal):
    """One line for each stage; on a terminal the line is redrawn during the stage."""
    screen = Screen(terminal)
    for name in ("tqdm", "tqdm.auto"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr("lsh.base.progress.REDRAW", 0.0)
    deduplicate(corpus, progress=True)
    deduplicate(lambda: iter(corpus), progress=True)
    shown = screen.getvalue()
    assert shown.endswith("\n")
    lines = [line.rpartition("\x1b[K")[2] for line in shown.split("\n")[:-1]]
    said = [re.sub(r", [\d,]+ a second$", "", line) for line in lines]
    stages = ["fingerprints: 3,000 documents", "grouping: 19 bands"]
    assert said[:2] == said[3:5] == stages
    assert said[5] == "texts: 3,000 documents"
    assert re.fullmatch(r"comparing: [\d,]+ documents", said[2])
    assert said[6:] == said[2:3]
    if terminal:
        assert re.search(r"\r\x1b\[Kgrouping: \d+ of 19 bands, [\d,]+ a second, 0:00 left\r", shown)
    else:
        assert "\r" not in shown
        assert "\x1b" not in shown


class Broken(Screen):
    def write(self, text):
        raise OSError(errno.EBADF, "Bad file descriptor")


STREAMS = {"none": lambda: None, "closed by its number": lambda: Broken(True), "no stream": lambda: object()}


@pytest.mark.few(3)
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("bars", [False, True])
@pytest.mark.parametrize("name", STREAMS)
def test_progress_that_cannot_be_shown(monkeypatch, name, bars):
    """With and without tqdm, and with any standard error, the result is the same and no bar remains open."""
    progress = Bars(pytest.importorskip("tqdm", reason="the bars are tqdm's").tqdm) if bars else Line()
    stream = STREAMS[name]()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        patch.setattr("lsh.base.progress.REDRAW", 0.0)
        if not bars:
            patch.setitem(sys.modules, "tqdm.auto", None)
        assert deduplicate(["one", "two"], progress=True).keep.all()
        assert deduplicate(lambda: iter(["one", "two"]), progress=progress).keep.all()
        del progress
        gc.collect()


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, StopIteration])
@pytest.mark.parametrize("stage", ["fingerprints", "grouping", "comparing"])
@pytest.mark.parametrize("run", [deduplicate, lambda *texts, **named: list(find_pairs(*texts, **named))])
def test_an_error_of_ones_own_progress_is_passed_on(stage, run, error):
    """StopIteration, which would silently end the generators that it passes through, as a RuntimeError."""

    def bad(current, done, total):
        if current == stage:
            raise error("mine")

    expected = {StopIteration: (RuntimeError, "^progress raised StopIteration$")}.get(error, (error, "mine"))
    with pytest.raises(expected[0], match=expected[1]):
        run(["A cat sat on the mat today.", "A cat sat on the mat today!"], 0.5, progress=bad)


def test_one_iterator_in_place_of_two_collections():
    """An iterator would yield each text to only one of the two; a list or a callable may be passed twice."""
    texts = ["one and the same text", "another text of some words"]
    for run, name in ((deduplicate, "against"), (lambda *given, **named: list(find_pairs(*given, **named)), "others")):
        for once in (iter(texts), (text for text in texts), map(str, texts)):
            message = f"^texts and {name} must not be the same {type(once).__name__}, .*; pass a list, or a"
            with pytest.raises(ValueError, match=message):
                run(once, **{name: once})
            assert list(once) == texts  # no text was consumed
    for twice in (texts, numpy.array(texts), lambda: iter(texts)):
        assert list(find_pairs(twice, others=twice)) == [(0, 0, 1.0), (1, 1, 1.0)]
        assert not deduplicate(twice, against=twice).keep.any()


# Bad input.

TEN = ["text number one", "text number two"] * 5


def test_a_path_or_a_collection_in_a_wrong_place():
    for wrong, message in (
        ({"against": "old.index"}, r"^against must be .*, got one str; .* or pass lsh\.Index\.open\(path\) for"),
        ({"threshold": lambda: TEN}, r"^threshold must be a number .*, got function; pass a second .* as against=$"),
        ({"treshold": 0.8}, "treshold"),
    ):
        with pytest.raises(TypeError, match=message):
            deduplicate(TEN, **wrong)
    with pytest.raises(TypeError, match=r"^texts must be .*, got a path \(\w+Path\); open the file, and"):
        deduplicate(Path("news.txt"))
    with pytest.raises(TypeError, match=r"^threshold must be a number .*, got list; pass a second .* as others=$"):
        find_pairs(TEN, TEN)


class Noted(TextSource):
    """Texts whose positions are noted when they are read again."""

    def __init__(self, texts):
        self.texts, self.again = texts, []

    def __call__(self):
        return list(self.texts)

    def changed(self, position):
        raise AssertionError(f"text {position} has not changed")

    def take(self, positions):
        self.again += positions.tolist()
        yield Batch([self.texts[i] for i in positions.tolist()])


@pytest.mark.parametrize("max_memory", [None, "120KB"])
def test_only_texts_that_are_compared_are_read_again(max_memory):
    draw = random.Random(1)
    texts = [" ".join(draw.choices([f"w{i}" for i in range(300)], k=40)) for _ in range(400)]
    texts[50], texts[300] = texts[20] + " end", texts[299]
    source = Noted(texts)
    bands = Bands(128, 1)  # nearly all share a bucket
    result = deduplicate(source, 0.8, bands=bands, max_memory=max_memory)
    assert result.summary()["candidates"] > 10 * len(texts)
    assert [tuple(row)[:2] for row in result.removed.tolist()] == [(50, 20), (300, 299)]
    assert {20, 50, 299, 300} <= set(source.again)
    assert len(source.again) < 20
    assert result.summary()["connected"] == 2  # and 299 and 300 have the same hash
    in_memory = deduplicate(texts, 0.8, bands=bands)
    assert numpy.array_equal(result.removed, in_memory.removed)
    assert numpy.array_equal(result.near, in_memory.near)


@given(st.data(), st.sampled_from([1, 128]), st.sampled_from([None, "120KB"]))
def test_documents_that_are_compared_with_references_only(data, family, max_memory):
    """One is removed for the most similar reference before it, the earliest on a tie; references are kept."""
    words = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6, unique=True)
    sets = data.draw(st.lists(words.map(frozenset), min_size=1, max_size=30, unique=True))
    is_reference = numpy.array([data.draw(st.booleans()) for _ in sets])
    texts = [" ".join(sorted(one)) for one in sets]
    matching = Matching(0.5, bands=EVERY_PAIR, shingles=WORDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lsh.engine.partitions, "FAMILY", family)
        run = Running.checked(max_memory)
        result = lsh.engine.dedup.decide(matching, texts, None, run, references=is_reference)
    expected = {}
    for i, own in enumerate(sets):
        found = [(-len(own & sets[j]) / len(own | sets[j]), j) for j in numpy.flatnonzero(is_reference[:i]).tolist()]
        if not is_reference[i] and found and min(found)[0] <= -0.5:
            expected[i] = min(found)[1], -min(found)[0], False
    assert removed_of(result) == expected
