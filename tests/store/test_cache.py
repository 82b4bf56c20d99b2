"""The banded cache: the tests of mattilyra/LSH, tests of its faults, and a comparison with a simple model.

The model is a dict of fingerprints and sets of (band, key), both computed by reference.py. The name of a test about a
fault of mattilyra/LSH states the correct behaviour.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import gc
import importlib
import itertools
import math
import multiprocessing
import pickle
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Hashable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from functools import cache as memoise

import numpy
import pytest
import reference
import running
import strategies
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import lsh
import lsh.lsh
import lsh.store.cache
from lsh import Bands, Cache, MinHasher
from lsh.engine.grouping import BucketSets, BucketTables
from lsh.sketch.planning import plan_for
from lsh.store.banded import BandedStore

both_sizes = pytest.mark.parametrize("hashbytes", [4, 8])

FERRY = (
    "The ferry to the outer islands was two hours late on Monday because a seal had fallen asleep on the slipway "
    "and the harbour master would not have it woken. Passengers were served soup."
)
FERRY_LESS = FERRY.replace("outer ", "")  # one word removed
MARKET = (
    "ONIONS DEAR THIS WEEK STOP GROWERS BLAME WET FIELDS STOP TRADERS AT QUILL STREET BLAME GROWERS STOP SACK "
    "NOW NINE CROWNS STOP WAS SIX IN MAY STOP"
)
BRIDGE = (
    "Hopan silta suljettiin keskipäivällä, koska sen kolmas pultti osoittautui maalatuksi puuksi; pyöräilijät "
    "saavat taluttaa pyöränsä yli yksitellen."
)  # few shared shingles even with n = 2


def make(hashbytes: int = 8, n: int = 4, num_bands: int = 20, seeds: int = 200) -> Cache:
    return Cache(MinHasher(seeds, char_ngram=n, hashbytes=hashbytes), num_bands=num_bands)


def filled(hashbytes: int = 8, n: int = 4, num_bands: int = 20) -> Cache:
    """A cache of three stories; 1 and 3 differ by one word."""
    cache = make(hashbytes, n, num_bands)
    for doc_id, text in enumerate([MARKET, FERRY, BRIDGE, FERRY_LESS]):
        cache.add_doc(text, doc_id)
    return cache


def contents(cache: Cache) -> tuple:
    """The whole content of a cache, as plain values."""
    return (
        list(cache),
        {doc_id: row.tolist() for doc_id, row in cache.fingerprints.items()},
        [{key: list(ids) for key, ids in band.items()} for band in cache.bins],
        cache.get_all_duplicates(),
    )


# The tests of mattilyra/LSH with 200 seeds, at four settings of bands, bytes and widths.

SETTINGS = [(4, 2, 20), (8, 3, 40), (4, 6, 50), (8, 4, 20)]  # bytes, length of a shingle, bands
for_all_settings = pytest.mark.parametrize(("hashbytes", "n", "num_bands"), SETTINGS)


@for_all_settings
def test_stored_document_is_found_by_text_and_by_id(hashbytes, n, num_bands):
    cache = filled(hashbytes, n, num_bands)
    for doc_id, text in enumerate([MARKET, FERRY, BRIDGE, FERRY_LESS]):
        assert cache.is_duplicate(text)
        assert cache.is_duplicate(text, doc_id)
        assert doc_id in cache.get_duplicates_of(text)
        assert doc_id in cache.get_duplicates_of(doc_id=doc_id)


@for_all_settings
def test_document_with_one_word_removed_is_found(hashbytes, n, num_bands):
    cache = make(hashbytes, n, num_bands)
    cache.add_doc(MARKET, 0)
    cache.add_doc(FERRY, 1)
    assert cache.is_duplicate(FERRY_LESS)
    assert cache.get_duplicates_of(FERRY_LESS) == {1}


@for_all_settings
def test_all_duplicates_grow_as_copies_are_added(hashbytes, n, num_bands):
    cache = filled(hashbytes, n, num_bands)
    assert cache.get_all_duplicates() == {(1, 3)}
    cache.add_doc(FERRY, 4)
    assert cache.get_all_duplicates() == {(1, 3), (1, 4), (3, 4)}


@for_all_settings
def test_removed_documents_are_gone(hashbytes, n, num_bands):
    cache = filled(hashbytes, n, num_bands)
    cache.add_doc(FERRY, 4)
    cache.remove_id(3)
    assert cache.get_all_duplicates() == {(1, 4)}
    assert list(cache) == [0, 1, 2, 4]
    cache.remove_doc(FERRY)  # both copies
    assert cache.get_all_duplicates() == set()
    assert not cache.is_duplicate(FERRY)
    assert list(cache) == [0, 2]
    assert cache.is_duplicate(MARKET)
    assert cache.is_duplicate(BRIDGE)


@for_all_settings
def test_clear_empties(hashbytes, n, num_bands):
    cache = filled(hashbytes, n, num_bands)
    cache.clear()
    assert len(cache) == 0
    assert not cache.is_duplicate(FERRY)
    assert cache.get_all_duplicates() == set()
    assert all(len(band) == 0 for band in cache.bins)
    cache.add_doc(FERRY, 1)
    assert cache.get_duplicates_of(FERRY_LESS) == {1}


@both_sizes
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_more_bands_never_find_fewer(hashbytes, n):
    """This holds if each band of the larger number is part of a band of the smaller one, as for 20 and 40."""
    texts = [
        FERRY,
        FERRY_LESS,
        FERRY[:90] + MARKET[:40],
        MARKET,
        MARKET[30:] + BRIDGE[:60],
        BRIDGE,
        BRIDGE[:70] + FERRY,
    ]
    found = []
    for num_bands in (5, 10, 20, 40, 200):
        cache = make(hashbytes, n, num_bands)
        cache.add_docs(texts, range(len(texts)))
        found.append(cache.get_all_duplicates())
    for fewer, more in itertools.pairwise(found):
        assert fewer <= more
    assert len(found[0]) < len(found[-1])


@for_all_settings
def test_min_jaccard_keeps_the_identical_pair(hashbytes, n, num_bands):
    cache = make(hashbytes, n, num_bands)
    cache.add_docs(["0123456789" * 3, FERRY, "ABCDEFGHIJKLM" * 2, FERRY, "+-*/%#@&" * 4], range(5))
    for least in numpy.linspace(0.1, 0.9, 9):
        assert cache.get_all_duplicates(min_jaccard=least) == {(1, 3)}
        assert cache.get_duplicates_of(doc_id=1, min_jaccard=least) == {1, 3}
        assert cache.filter_candidates([(0, 1), (1, 3), (2, 4)], least) == {(1, 3)}


@pytest.mark.parametrize("num_bands", [3, 7, 199, 201, 400])
def test_band_count_that_does_not_divide_the_seeds(num_bands):
    hasher = MinHasher(200)
    for error in (AssertionError, ValueError):
        with pytest.raises(error, match=rf"num_bands must divide the number of seeds \(200\), got {num_bands}; use "):
            Cache(hasher, num_bands=num_bands)


# Faults of mattilyra/LSH that are fixed here.


def pair_of_known_similarity() -> tuple[Cache, float]:
    """A cache of ids "a" and "b" that share a bin, and their similarity as estimated by the reference."""
    cache = make(4, 5, 50)
    cache.add_doc(FERRY, "a")
    cache.add_doc(FERRY[:110], "b")
    rows = [row.tolist() for row in cache.fingerprints.values()]
    return cache, reference.similarity(*rows, 4)


def test_min_jaccard_filters():
    cache, estimate = pair_of_known_similarity()
    assert 0.3 < estimate < 0.9
    assert cache.get_all_duplicates() == {("a", "b")}
    assert cache.get_all_duplicates(min_jaccard=0.95) == set()
    assert cache.get_duplicates_of(doc_id="a", min_jaccard=0.95) == {"a"}
    assert cache.get_duplicates_of(FERRY, min_jaccard=0.95) == {"a"}
    assert list(cache.iter_duplicates(min_jaccard=0.95)) == []
    assert cache.filter_candidates({("a", "b"), ("a", "a")}, 0.95) == {("a", "a")}


def test_min_jaccard_is_of_the_positional_estimate_and_includes_it():
    """The pair is found at the estimate and not at the next float; the overlap of the value sets is smaller."""
    cache, estimate = pair_of_known_similarity()
    a, b = (set(row.tolist()) for row in cache.fingerprints.values())
    assert len(a & b) / len(a | b) < estimate
    above = math.nextafter(estimate, 1)
    assert cache.get_all_duplicates(estimate) == {("a", "b")}
    assert cache.get_all_duplicates(above) == set()
    assert cache.get_duplicates_of(doc_id="b", min_jaccard=estimate) == {"a", "b"}
    assert cache.get_duplicates_of(doc_id="b", min_jaccard=above) == {"b"}
    assert cache.filter_candidates([("b", "a")], estimate) == {("b", "a")}
    assert cache.filter_candidates([("b", "a")], above) == set()


@both_sizes
def test_short_documents_are_their_own_shingle(hashbytes):
    """Texts that are shorter than the shingle are not duplicates of each other, and are removed one by one."""
    cache = make(hashbytes, 8)
    cache.add_docs(["abc", "xyz", "q", "abc"], range(4))
    assert cache.get_all_duplicates() == {(0, 3)}
    assert cache.get_duplicates_of("xyz") == {1}
    assert not cache.is_duplicate("qq")
    cache.remove_doc("q")
    assert list(cache) == [0, 1, 3]


@both_sizes
def test_texts_without_shingles_are_in_no_bin(hashbytes):
    cache = make(hashbytes)
    cache.add_docs(["", FERRY, b""], ["e", "f", "g"])
    assert list(cache) == ["e", "f", "g"]
    assert all(set(itertools.chain.from_iterable(band.values())) == {"f"} for band in cache.bins)
    assert cache.get_all_duplicates() == set()
    assert not cache.is_duplicate("")
    assert cache.get_duplicates_of(doc_id="e") == set()
    assert cache.get_duplicates_of("", min_jaccard=0) == set()
    assert cache.filter_candidates([("e", "g"), ("e", "e"), ("f", "f")], 0.1) == {("f", "f")}
    assert cache.fingerprints["e"].tolist() == cache.hasher.empty.tolist()
    cache.remove_id("e")
    assert list(cache) == ["f", "g"]
    cache.add_doc("", "e")
    cache.add_doc(MARKET, "g")  # an empty text is replaced by another text, and vice versa
    cache.add_doc("", "f")
    assert cache.get_duplicates_of(MARKET) == {"g"}
    assert not cache.is_duplicate(FERRY)
    cache.remove_doc("")
    assert list(cache) == ["g"]


@both_sizes
def test_an_empty_text_finds_nothing_even_in_a_bin_of_largest_values(hashbytes):
    """A fingerprint that agrees with the empty one in some bands is not a duplicate of an empty text."""
    cache = Cache(MinHasher(20, 4, hashbytes=hashbytes))
    row = cache.hasher.empty.copy()
    row[0] -= row.dtype.type(1)
    cache.add_fingerprint(row, "nearly")
    cache.add_doc("", "empty")
    assert cache.get_duplicates_of(doc_id="nearly") == {"nearly"}
    assert cache.get_duplicates_of(doc_id="empty") == cache.get_duplicates_of("") == set()
    assert cache.get_all_duplicates() == set()
    cache.remove_doc("")
    assert list(cache) == ["nearly"]


def test_nothing_is_held_on_to():
    """A text is freed when its caller deletes it, because the cache stores fingerprints only."""

    class Text(bytes):
        alive = 0

        def __init__(self, *_):
            Text.alive += 1

        def __del__(self):
            Text.alive -= 1

    cache = make()
    cache.add_doc(Text(FERRY.encode()), 1)
    cache.add_docs([Text(b"one"), Text(b"two")], [2, 3])
    assert cache.is_duplicate(Text(FERRY.encode()))
    gc.collect()
    assert Text.alive == 0


def test_fingerprints_are_copied_in_and_read_only_out():
    cache = make()
    row = cache.hasher.fingerprint(FERRY).copy()
    kept = row.tolist()
    cache.add_fingerprint(row, "f")
    row[:] = 0
    assert cache.fingerprints["f"].tolist() == kept
    out = cache.fingerprints["f"]
    assert not out.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        out[0] = 1
    rows = numpy.array([kept, kept], numpy.uint64)
    cache.add_fingerprints(rows, ["g", "h"])
    rows[:] = 0
    assert cache.get_all_duplicates(1.0) == {("f", "g"), ("f", "h"), ("g", "h")}


UNKNOWN = "no document is stored under the doc_id 'who'; give doc, or the id of a stored document"


def test_unknown_ids():
    cache = filled()
    before = contents(cache)
    with pytest.raises(KeyError) as caught:
        cache.remove_id("who")
    assert caught.value.args == ("who",)
    with pytest.raises(ValueError, match=f"^{re.escape(UNKNOWN)}$"):
        cache.get_duplicates_of(doc_id="who")
    with pytest.raises(ValueError, match=r"^doc or doc_id must be given, got neither$"):
        cache.get_duplicates_of()
    with pytest.raises(KeyError):
        cache.filter_candidates([(1, "who")], 0.5)
    with pytest.raises(KeyError):
        cache.fingerprints["who"]
    assert cache.get_duplicates_of(FERRY, "who") == {1, 3}  # with an unknown id, the document is used
    assert cache.is_duplicate(FERRY, "who")
    assert not cache.is_duplicate("none of these", "who")
    with pytest.raises(ValueError, match=f"^{re.escape(UNKNOWN)}$"):
        cache.is_duplicate(doc_id="who")
    with pytest.raises(ValueError, match=r"^doc or doc_id must be given, got neither$"):
        cache.is_duplicate()
    assert cache.get_duplicates_of("none of these", 1) == {1, 3}  # a known id takes precedence over the document
    assert contents(cache) == before


def test_remove_doc_compares_whole_fingerprints():
    """Documents that agree in the first band, or in all components but one, are not removed."""
    cache = Cache(MinHasher(20, 4), bands=Bands(4, 4))
    row = cache.hasher.fingerprint(FERRY)
    last, unused = row.copy(), row.copy()
    last[15] += numpy.uint64(1)
    unused[19] += numpy.uint64(1)
    cache.add_fingerprints(numpy.array([row, last, unused, row]), range(4))
    cache.remove_doc(FERRY)
    assert list(cache) == [1, 2]
    cache.remove_doc(FERRY)  # removing a missing document is not an error
    assert list(cache) == [1, 2]


def test_every_pair_comes_once_the_earlier_first():
    cache = make()
    ids = ["z", 5, ("t", 1), "a", -3]
    cache.add_docs([FERRY] * 5, ids)
    pairs = list(cache.iter_duplicates())
    assert len(pairs) == 10
    assert set(pairs) == set(itertools.combinations(ids, 2)) == cache.get_all_duplicates()


def test_a_stored_document_finds_itself():
    cache = filled()
    assert cache.get_duplicates_of(doc_id=0) == {0}
    assert cache.get_duplicates_of(MARKET) == {0}
    assert cache.is_duplicate(MARKET, doc_id=0)
    assert cache.is_duplicate(doc_id=0) is cache.is_duplicate(None, 0) is True
    assert cache.query(id=0) == ()  # without itself


def test_two_processes_agree(tmp_path):
    """Including the keys: default seeds are fixed, and no key depends on Python's hash."""
    script = (
        "import lsh, sys; c = lsh.Cache(lsh.MinHasher(100, 5), 20); c.add_doc(sys.argv[1], 'x');"
        "print([list(band) for band in c.bins])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", script, FERRY],
            check=True,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=running.environment(PYTHONHASHSEED=seed),
        ).stdout
        for seed in ("1", "2")
    }
    cache = Cache(MinHasher(100, 5), 20)
    cache.add_doc(FERRY, "x")
    assert printed == {f"{[list(band) for band in cache.bins]}\n"}


@both_sizes
def test_keys_are_those_of_the_reference(hashbytes):
    for bands in (Bands(20, 5), Bands(widths=(1, 30, 2, 60))):
        cache = Cache(MinHasher(100, 5, hashbytes=hashbytes), bands=bands)
        cache.add_doc(FERRY, "x")
        row = reference.fingerprint(FERRY, reference.seed_values(100, 0), hashbytes=hashbytes, n=5, unit="byte")
        assert [list(band) for band in cache.bins] == [[key] for key in reference.band_keys(row, bands.widths)]


# The properties of a cache.


def test_face():
    hasher = MinHasher(100, 5)
    cache = Cache(hasher, 10)
    assert (cache.num_bands, cache.band_width, cache.bands) == (10, 10, Bands(10, 10))
    assert cache.hasher is hasher
    assert Cache(hasher, 20).band_width == Cache(hasher=hasher, num_bands=20).band_width == 5
    mixed = Cache(hasher, bands=Bands(widths=(40, 7, 8)))
    assert (mixed.num_bands, mixed.band_width) == (3, (40, 7, 8))
    cache.add_doc(FERRY, 1)
    assert repr(cache) == f"<Cache of 1 documents, Bands(10, 10), {hasher!r}>"
    assert (len(cache), 1 in cache, 2 in cache) == (1, True, False)


@pytest.mark.parametrize("scheme", ["murmur3", "fss"])
@pytest.mark.parametrize("seeds", [1, 2, 3, 4, 7, 10, 31, 97, 100, 101, 128, 1009])
def test_without_bands_they_are_planned(seeds, scheme):
    """For any number of seeds: bands for .8 at .99, or, if none reach .99, those with the highest recall."""
    hasher = MinHasher(seeds, 4, scheme=scheme)
    cache = Cache(hasher)
    if seeds < 3:
        assert cache.bands == Bands(seeds, 1)
        with pytest.raises(ValueError, match="too few"):
            Cache.create(hasher)
    else:
        assert cache.bands == Cache.create(hasher).bands
        assert cache.bands.probability(0.8) >= 0.99
    cache.add_docs([FERRY, FERRY], list("ab"))
    assert cache.get_all_duplicates() == {("a", "b")}


@pytest.mark.parametrize("scheme", ["murmur3", "fss"])
def test_planned(scheme):
    """The bands alone reach the recall, because no filter follows them."""
    hasher = MinHasher(128, 5, scheme=scheme)
    cache = Cache.create(hasher, threshold=0.8, recall=0.95)
    assert cache.hasher is hasher
    assert cache.plan == lsh.Plan(cache.bands, 0.8, 0.95, 128)
    assert cache.bands == Bands(widths=[7] * 2 + [8] * 14)
    assert cache.bands.probability(0.8) >= 0.95
    for same in ({}, {"threshold": 0.8}, {"recall": 0.99}, {"threshold": 0.8, "recall": 0.99}):
        assert Cache.create(hasher, **same).plan == plan_for(hasher, 0.8, 0.99, filtered=False)
    assert 0.99 <= Cache.create(hasher).bands.probability(0.8) < 0.993
    cache.add_docs([FERRY, FERRY + "!"], list("ab"))
    assert cache.get_duplicates_of(doc_id="a") == {"a", "b"}
    assert copy.deepcopy(cache).bands == cache.bands


def test_created_without_a_hasher():
    """With the defaults of `Index.create`."""
    words = lsh.Shingles(2, "word")
    assert Cache.create().hasher == MinHasher(128, scheme="fss", shingles=lsh.Shingles(8))
    cache = Cache.create(shingles=words, num_seeds=64, random_state=5)
    assert cache.hasher == MinHasher(64, random_state=5, scheme="fss", shingles=words)
    assert Cache.create(random_state=None).hasher.random_state != 0
    planned = lsh.plan(0.7, 0.9, 64, shingles=words, background=["red green blue", "red green white"])
    cache = Cache.create(bands=planned)
    assert (cache.hasher.num_seeds, cache.hasher.shingles, cache.plan) == (64, words, planned)


def test_created_with_bands():
    bands = Bands(20, 5)
    cache = Cache.create(MinHasher(100), bands=bands, threshold=0.7)
    assert cache.bands == bands
    assert cache.plan == lsh.Plan(bands, 0.7, bands.probability(0.7), 100)
    assert Cache.create(MinHasher(100), bands=bands, threshold=1.0).plan.threshold == 1


@pytest.mark.parametrize("scheme", ["murmur3", "fss"])
def test_the_plan_of_bands(scheme):
    """For bands without a threshold: the least one, in hundredths, at which the recall is 0.99."""
    hasher = MinHasher(100, scheme=scheme)
    for cache in (Cache(hasher, 20), Cache(hasher, bands=Bands(20, 5)), Cache(MinHasher(2, scheme=scheme))):
        plan = cache.plan
        assert (plan.bands, plan.recall, plan.num_seeds) == (cache.bands, 0.99, cache.hasher.num_seeds)
        assert cache.bands.probability(plan.threshold) >= 0.99 > cache.bands.probability(plan.threshold - 0.01)
    assert Cache(hasher).plan == Cache.create(hasher).plan == lsh.Plan(Cache(hasher).bands, 0.8, 0.99, 100)
    planned = lsh.plan(0.7, 0.9, 100)
    assert Cache(hasher, bands=planned).plan == planned


def test_the_first_form_is_a_module_of_its_own():
    from lsh import lsh as first

    assert first is importlib.import_module("lsh.lsh")
    assert first is not lsh
    assert len(first.Cache(bands=4, hasher=MinHasher(16))) == 0


def test_bins_are_shaped_as_upstreams():
    """A sequence that has, for each band, a mapping from keys to sets of ids."""
    cache = filled()
    assert len(cache.bins) == 20
    for band, bins in enumerate(cache.bins):
        assert isinstance(bins, Mapping)
        assert cache.bins[band] == bins
        assert len(bins) == len(list(bins)) == len(set(bins))
        for key in bins:
            assert isinstance(key, int)
            assert 0 <= key < 2**64
            assert key in bins
            assert isinstance(bins[key], Set)
            assert bins[key] == set(bins[key])
            assert len(bins[key]) == len(list(bins[key]))
        assert sorted(itertools.chain.from_iterable(bins.values())) == [0, 1, 2, 3]
        for absent in (0, -1, 2**64, "key", None, 1.5):
            assert absent not in bins
            assert bins.get(absent) is None
    assert {1, 3} in [set(ids) for band in cache.bins for ids in band.values()]


def test_a_pass_over_the_bins_shows_one_moment():
    """An iteration gives one state of the cache, and a change does not end it."""
    cache = filled()
    before = [[(key, list(ids)) for key, ids in band.items()] for band in cache.bins]
    for band, expected in zip(cache.bins, before):
        running, sets = iter(band.items()), iter(band.values())
        seen = [next(running)]
        cache.add_doc(FERRY, "more")
        cache.remove_id(0)
        seen += running
        assert [(key, list(ids)) for key, ids in seen] == expected
        cache.clear()
        cache.add_docs([MARKET, FERRY, BRIDGE, FERRY_LESS], range(4))
        assert [list(ids) for ids in sets] == [ids for _, ids in expected]


def test_bins_of_the_tables():
    """Keys ordered by first document, members in order of insertion, bounds, and rejected arguments."""
    tables = BucketTables(2)
    assert [array.tolist() for array in tables.bins(1)] == [[], [], [0]]
    tables.reserve(8, 8)
    keys = numpy.array([[7, 5, 7, 9, 5, 7], [1, 2, 3, 4, 5, 6]], numpy.uint64)
    tables.insert(keys, numpy.array([4, 2, 0, 3, 1, 5], numpy.uint32))
    found = tables.bins(0)
    assert [array.dtype for array in found] == [numpy.uint64, numpy.uint32, numpy.intp]
    assert [array.tolist() for array in found] == [[5, 9, 7], [2, 1, 3, 4, 0, 5], [0, 2, 3, 6]]
    assert [list(ids) for ids in BucketSets(list("abcdefgh"), *found[1:])] == [["c", "b"], ["d"], ["e", "a", "f"]]
    assert [array.tolist() for array in tables.bins(1)] == [[3, 5, 2, 4, 1, 6], [0, 1, 2, 3, 4, 5], list(range(7))]
    for band in (-1, 2):
        with pytest.raises(IndexError, match=f"band {band} of 2"):
            tables.bins(band)
    queries = numpy.array([[7, 5, 0, 9], [0, 2, 9, 1]], numpy.uint64)
    expected = [[0, 4, 5], [1, 2], [], [3, 4]]
    for first in range(5):
        for enough in (1, 3, 4, 100):
            bounds, documents = tables.candidates(queries, first, enough)
            assert (bounds.dtype, documents.dtype) == (numpy.int64, numpy.uint32)
            found = [own.tolist() for own in numpy.split(documents, bounds[1:-1])] if len(bounds) > 1 else []
            assert found == expected[first : first + len(found)]
            assert sum(map(len, found[:-1])) < enough
            assert len(documents) >= enough or len(found) == len(expected) - first
    for wrong in (queries[:1], numpy.zeros((3, 1), numpy.uint64)):
        with pytest.raises(ValueError, match=r"keys must have shape \(2, queries\)"):
            tables.candidates(wrong)
    for first in (-1, 5):
        with pytest.raises(ValueError, match="first must be at most the queries"):
            tables.candidates(queries, first)
    documents = numpy.array([0, 1], numpy.uint32)
    for bounds in ([], [0, 3], [-1, 1], [0, 2, 1]):
        with pytest.raises(ValueError, match="bounds must ascend from 0 to at most 2"):
            BucketSets(["a", "b"], documents, numpy.array(bounds, numpy.intp))
    with pytest.raises(ValueError, match="documents must be less than 1, got 1"):
        BucketSets(["a"], documents, numpy.array([0, 2], numpy.intp))
    objects = ["a", "b"]
    sets = BucketSets(objects, documents, numpy.array([0, 2], numpy.intp))
    objects.clear()  # the sets hold their own list
    assert [list(ids) for ids in sets] == [["a", "b"]]
    assert list(sets) == []


def test_bins_are_read_only_and_up_to_date():
    cache = filled()
    bins = cache.bins
    key = next(iter(bins[0]))
    with pytest.raises(TypeError):
        bins[0] = {}
    with pytest.raises(TypeError):
        bins[0][key] = {9}
    with pytest.raises(TypeError):
        del bins[0][key]
    assert not hasattr(bins[0], "clear")
    assert not hasattr(bins[0][key], "add")
    with pytest.raises(KeyError) as caught:
        bins[0][12345]
    assert caught.value.args == (12345,)
    held = bins[0][key]
    cache.clear()
    assert len(bins[0]) == 0  # the view changes, a set read from it earlier does not
    assert key not in bins[0]
    assert len(held) >= 1


def test_fingerprints_are_a_read_only_mapping():
    cache = filled()
    view = cache.fingerprints
    assert isinstance(view, Mapping)
    assert list(view) == [0, 1, 2, 3]
    assert len(view) == 4
    assert numpy.array_equal(view[1], cache.hasher.fingerprint(FERRY))
    with pytest.raises(TypeError):
        view[1] = view[2]
    cache.remove_id(1)
    assert 1 not in view


def test_a_pass_over_the_fingerprints_shows_one_moment():
    cache = filled()
    cache.remove_id(0)
    before = {doc_id: row.tolist() for doc_id, row in zip(cache, map(cache.fingerprints.get, cache))}
    items, values = iter(cache.fingerprints.items()), iter(cache.fingerprints.values())
    found = [next(items)]
    cache.remove_id(2)
    cache.add_doc(MARKET, 1)
    cache.add_docs([f"text {i}" for i in range(100)], range(10, 110))
    found += items
    cache.clear()
    assert [doc_id for doc_id, _ in found] == [1, 2, 3]
    assert {doc_id: row.tolist() for doc_id, row in found} == before
    assert [row.tolist() for row in values] == list(before.values())
    assert not any(row.flags.writeable for _, row in found)
    assert dict(cache.fingerprints.items()) == dict(cache.fingerprints) == {}


def test_fingerprints_are_passed_over_while_another_thread_removes():
    cache = Cache(MinHasher(4, 4), bands=Bands(1, 4))
    rows = cache.hasher.fingerprints([f"a story of number {i}" for i in range(200)])
    cache.add_fingerprints(rows, range(200))
    done = threading.Event()

    def write():
        for _ in range(30):
            for doc_id in range(0, 200, 2):
                cache.remove_id(doc_id)
            cache.add_fingerprints(rows[::2], range(0, 200, 2))
        done.set()

    def read():
        while not done.is_set():
            found = dict(cache.fingerprints.items())
            assert set(range(1, 200, 2)) <= found.keys()
            assert all((found[doc_id] == rows[doc_id]).all() for doc_id in found)
            assert 100 <= len(list(cache.fingerprints.values())) <= 200

    run_together(write, read)


@both_sizes
def test_bins_of_a_fingerprint(hashbytes):
    cache = Cache(MinHasher(20, 4, hashbytes=hashbytes), bands=Bands(widths=(3, 1, 5)))
    row = cache.hasher.fingerprint(FERRY)
    pieces = list(cache.bins_(row))
    assert [band for band, _ in pieces] == [0, 1, 2]
    assert [piece.tolist() for _, piece in pieces] == [row[:3].tolist(), row[3:4].tolist(), row[4:9].tolist()]


def test_many_at_once_is_one_by_one():
    texts = [FERRY, MARKET, "", FERRY_LESS, "short", BRIDGE, MARKET]
    for hashbytes in (4, 8):
        single, batch, rows, one_row = (make(hashbytes) for _ in range(4))
        for doc_id, text in enumerate(texts):
            single.add_doc(text, doc_id)
            one_row.add_fingerprint(one_row.hasher.fingerprint(text), doc_id)
        batch.add_docs(iter(texts), iter(range(7)))
        rows.add_fingerprints(rows.hasher.fingerprints(texts), range(7))
        assert contents(single) == contents(batch) == contents(rows) == contents(one_row)
        assert single.get_all_duplicates() == {(0, 3), (1, 6)}


def test_ids_of_any_hashable():
    ids = [1, "1", (1, "1"), math.inf, frozenset({1}), 2.5, b"1", (), int, numpy.int64(77)]
    cache = make()
    cache.add_docs([FERRY] * len(ids), ids)
    assert list(cache) == ids
    assert all(doc_id in cache for doc_id in ids)
    assert cache.get_duplicates_of(FERRY_LESS) == set(ids)
    assert cache.get_all_duplicates() == set(itertools.combinations(ids, 2))
    for doc_id in ids[1:]:
        cache.remove_id(doc_id)
    assert list(cache) == [1]


def test_equal_ids_are_one():
    cache = make()
    cache.add_doc(FERRY, 1)
    cache.add_doc(MARKET, 1.0)
    cache.add_doc(BRIDGE, True)
    assert len(cache) == 1
    assert cache.get_duplicates_of(doc_id=numpy.int64(1)) == {1}
    assert cache.is_duplicate(BRIDGE)
    assert not cache.is_duplicate(FERRY)


# Queries.


def test_recall_at():
    """The exact probability for independent components: to share a band, times an estimate that is high enough."""
    cache = Cache(MinHasher(8), bands=Bands(4, 2))
    for similarity in (0.1, 0.5, 0.75, 0.76, 1.0):
        shared = cache.bands.probability(similarity)
        assert math.isclose(cache.recall_at(similarity), shared)
        for least in (0.0, 0.1, 0.5, 0.75, 0.76, 1.0):
            enough = range(math.ceil(least * 8), 9)
            estimated = sum(math.comb(8, e) * similarity**e * (1 - similarity) ** (8 - e) for e in enough)
            assert math.isclose(cache.recall_at(similarity, min_similarity=least), shared * estimated)
    assert cache.recall_at(0) == 0
    for wrong in ({"similarity": 1.5}, {"similarity": 0.5, "min_similarity": 1.5}):
        with pytest.raises(ValueError, match=r"similarity must be 0 to 1, got 1\.5"):
            cache.recall_at(**wrong)


# The model.

SEEDS = 12
WIDTHS = (1, 2, 3, 2)
TEXTS = [
    "",
    "a",
    "aa",
    "ab",
    "abc",
    "abcd",
    "abcde",
    "abcdef",
    "bcdef",
    "abcdefg",
    "xyz",
    "xy",
    "abab",
    "ababab",
    "abcabc",
    b"abc",
    b"\xff\xfe",
    "漢字",
]
IDS: list[Hashable] = [0, 1, 2, 3, "0", "x", math.inf, (0, "x"), (), frozenset({1}), 1.5, b"x"]


@memoise
def row_of(text: str | bytes, hashbytes: int) -> tuple[int, ...]:
    seeds = reference.seed_values(SEEDS, 3)
    return tuple(reference.fingerprint(text, seeds, hashbytes=hashbytes, n=2, unit="byte"))


class CacheMachine(RuleBasedStateMachine):
    """A cache and a dict of fingerprints; each check computes the expected results from the dict."""

    texts = st.sampled_from(TEXTS)
    ids = st.sampled_from(IDS)
    batches = st.lists(st.tuples(texts, ids), max_size=8)

    @initialize(hashbytes=st.sampled_from([4, 8]), spare=st.sampled_from([0, 2, 1000]))
    def start(self, hashbytes, spare):
        self.hashbytes = hashbytes
        self.spare, lsh.store.cache.SPARE = lsh.store.cache.SPARE, spare
        self.cache = Cache(MinHasher(SEEDS, 2, random_state=3, hashbytes=hashbytes), bands=Bands(widths=WIDTHS))
        self.rows: dict[Hashable, tuple[int, ...]] = {}

    def teardown(self):
        if hasattr(self, "spare"):
            lsh.store.cache.SPARE = self.spare

    # The model.

    def put(self, doc_id, row):
        self.rows.pop(doc_id, None)
        self.rows[doc_id] = row

    def places(self, row) -> set:
        return set(reference.buckets(row, WIDTHS, self.hashbytes))

    def similar(self, a, b) -> float:
        return reference.similarity(a, b, self.hashbytes)

    def found(self, row, least=None) -> set:
        return {
            doc_id
            for doc_id, other in self.rows.items()
            if self.places(row) & self.places(other) and (least is None or self.similar(row, other) >= least)
        }

    # The changes.

    @rule(text=texts, doc_id=ids)
    def add_doc(self, text, doc_id):
        self.cache.add_doc(text, doc_id)
        self.put(doc_id, row_of(text, self.hashbytes))

    @rule(text=texts, doc_id=ids)
    def add_fingerprint(self, text, doc_id):
        row = row_of(text, self.hashbytes)
        self.cache.add_fingerprint(numpy.array(row, self.cache.hasher.dtype), doc_id)
        self.put(doc_id, row)

    @rule(batch=batches, as_rows=st.booleans())
    def add_many(self, batch, as_rows):
        texts, ids = [text for text, _ in batch], [doc_id for _, doc_id in batch]
        if as_rows:
            self.cache.add_fingerprints(self.cache.hasher.fingerprints(texts), ids)
        else:
            self.cache.add_docs(texts, ids)
        last = {doc_id: at for at, doc_id in enumerate(ids)}
        for at in sorted(last.values()):
            self.put(ids[at], row_of(texts[at], self.hashbytes))

    @rule(batch=batches, bad=st.sampled_from([5, None, ["text"]]), at=st.integers(0, 8))
    def add_many_with_a_bad_text(self, batch, bad, at):
        texts, ids = [text for text, _ in batch], [doc_id for _, doc_id in batch]
        texts.insert(at, bad)
        with pytest.raises((TypeError, ValueError), match=rf"texts\[{min(at, len(batch))}\]"):
            self.cache.add_docs(texts, [*ids, "more"])

    @rule(doc_id=ids)
    def remove_id(self, doc_id):
        if doc_id in self.rows:
            self.cache.remove_id(doc_id)
            del self.rows[doc_id]
        else:
            with pytest.raises(KeyError):
                self.cache.remove_id(doc_id)

    @rule(text=texts)
    def remove_doc(self, text):
        self.cache.remove_doc(text)
        row = row_of(text, self.hashbytes)
        self.rows = {doc_id: other for doc_id, other in self.rows.items() if other != row}

    @precondition(lambda self: len(self.rows) > 6)
    @rule()
    def clear(self):
        self.cache.clear()
        self.rows.clear()

    @rule(twice=st.booleans())
    def pickle(self, twice):
        self.cache = pickle.loads(pickle.dumps(self.cache)) if twice else copy.copy(self.cache)

    # The queries.

    @rule(text=texts, doc_id=ids | st.none(), least=st.sampled_from([None, 0, 0.25, 0.5, 1]))
    def query(self, text, doc_id, least):
        row = row_of(text, self.hashbytes)
        assert self.cache.get_duplicates_of(text, min_jaccard=least) == self.found(row, least)
        assert self.cache.is_duplicate(text) == bool(self.found(row))
        known = doc_id in self.rows
        asked = self.rows[doc_id] if known else row
        found = self.found(asked, least)
        assert self.cache.get_duplicates_of(text, doc_id, least) == found
        similar = {other: self.similar(asked, self.rows[other]) for other in self.rows if other in found}
        if known:
            similar.pop(doc_id, None)
        best = sorted(similar.items(), key=lambda item: -item[1])  # stable, so in order of addition
        for top in (None, 1, 3):
            asks = {"id": doc_id} if known else {"text": text}
            matches = self.cache.query(**asks, top=top, min_similarity=least)
            assert [(match.id, match.similarity) for match in matches] == best[:top]
        if known:
            assert self.cache.get_duplicates_of(doc_id=doc_id, min_jaccard=least) == found
        else:
            problem = "got neither" if doc_id is None else "no document is stored under the doc_id "
            with pytest.raises(ValueError, match=problem):
                self.cache.get_duplicates_of(doc_id=doc_id)

    @rule(least=st.sampled_from([0, 0.25, 0.5, 1]))
    def filtered_pairs(self, least):
        rows = self.rows
        pairs = {(a, b) for a, b in itertools.combinations(rows, 2) if self.similar(rows[a], rows[b]) >= least}
        candidates = {(a, b) for a, b in pairs if self.places(rows[a]) & self.places(rows[b])}
        assert self.cache.get_all_duplicates(least) == candidates
        assert self.cache.filter_candidates(itertools.combinations(rows, 2), least) == pairs

    # The invariants.

    @invariant()
    def same_documents(self):
        if not hasattr(self, "rows"):
            return
        assert len(self.cache) == len(self.rows)
        assert list(self.cache) == list(self.rows)
        assert [doc_id in self.cache for doc_id in IDS] == [doc_id in self.rows for doc_id in IDS]
        assert {doc_id: tuple(row.tolist()) for doc_id, row in self.cache.fingerprints.items()} == self.rows

    @invariant()
    def same_bins(self):
        if not hasattr(self, "rows"):
            return
        bins: list[dict[int, list]] = [{} for _ in WIDTHS]
        for doc_id, row in self.rows.items():
            for band, key in reference.buckets(row, WIDTHS, self.hashbytes):
                bins[band].setdefault(key, []).append(doc_id)
        assert [{key: list(ids) for key, ids in band.items()} for band in self.cache.bins] == bins
        assert [list(band) for band in self.cache.bins] == [list(band) for band in bins]  # ordered by first document
        assert [len(band) for band in self.cache.bins] == [len(band) for band in bins]

    @invariant()
    def same_pairs(self):
        if not hasattr(self, "rows"):
            return
        ids = list(self.rows)
        expected = reference.candidate_pairs(list(self.rows.values()), WIDTHS, self.hashbytes)
        pairs = list(self.cache.iter_duplicates())
        assert sorted((ids.index(a), ids.index(b)) for a, b in pairs) == sorted(expected)
        assert self.cache.get_all_duplicates() == set(pairs)


CacheMachine.TestCase.settings = strategies.examples(25, stateful_step_count=30)
test_cache_against_a_model = CacheMachine.TestCase


@given(
    texts=st.lists(st.text("ab", max_size=6), max_size=12),
    hashbytes=st.sampled_from([4, 8]),
    widths=st.lists(st.integers(1, 3), min_size=1, max_size=5),
)
def test_all_duplicates_are_the_candidate_pairs(texts, hashbytes, widths):
    seeds = reference.seed_values(sum(widths) + 1, 5)
    rows = [reference.fingerprint(text, seeds, hashbytes=hashbytes, n=2, unit="byte") for text in texts]
    cache = Cache(MinHasher(len(seeds), 2, random_state=5, hashbytes=hashbytes), bands=Bands(widths=widths))
    cache.add_docs(texts, range(len(texts)))
    expected = reference.candidate_pairs(rows, widths, hashbytes)
    assert cache.get_all_duplicates() == expected
    assert sorted(cache.iter_duplicates()) == sorted(expected)


def test_packing_changes_nothing(monkeypatch):
    """A stream in which each document is removed later, long enough for the cache to be compacted many times."""
    monkeypatch.setattr(lsh.store.cache, "SPARE", 20)
    cache = Cache(MinHasher(20, 3, hashbytes=4))
    draw = random.Random(4)
    held = collections.deque()
    for step in range(1500):
        text = f"story {draw.randrange(60)} of the day"
        cache.add_doc(text, step)
        held.append((step, text))
        if len(held) > draw.randrange(5, 40):
            cache.remove_id(held.popleft()[0])
    assert list(cache) == [step for step, _ in held]
    assert cache.get_all_duplicates(1.0) == {(a, b) for (a, x), (b, y) in itertools.combinations(held, 2) if x == y}
    fresh = Cache(cache.hasher)
    fresh.add_docs([text for _, text in held], [step for step, _ in held])
    assert contents(fresh) == contents(cache)


@pytest.mark.parametrize("documents", [7_000, pytest.param(30_000, marks=pytest.mark.slow)])
def test_a_stream_of_removals_needs_no_more_room(documents):
    """Many documents pass through a cache of at most 1,000; removed ones take no memory."""
    cache = Cache(MinHasher(10, 3, hashbytes=4))
    rows = cache.hasher.fingerprints([f"{i:05}" for i in range(1000)])
    tracemalloc.start()
    try:
        for first in range(0, documents, 1000):
            ids = range(first, first + 1000)
            cache.add_fingerprints(rows, ids)
            for doc_id in ids:
                cache.remove_id(doc_id)
            if first == 2_000:
                early, _ = tracemalloc.get_traced_memory()
        late, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(cache) == 0
    assert late < 1.5 * early + 100_000


# All or nothing.


def bad_fingerprints() -> dict[str, tuple[type, str, object]]:
    """Fingerprints that `add_fingerprint` refuses, and the errors; test_verbs has the other bad values."""
    row = make().hasher.fingerprint(FERRY)
    in_order = "fingerprint must be an array or a sequence in order, got "
    return {
        "bools": (TypeError, "fingerprint must hold uint64 components", [True] * 200),
        "a text": (TypeError, "an array or a sequence, got str; use add_doc for a text", FERRY),
        "bytes": (TypeError, "an array or a sequence, got bytes; use add_doc", b"text"),
        "short": (ValueError, r"must have 200 components per fingerprint, got shape \(199,\)", row[1:]),
        "floats": (TypeError, "must hold uint64 components, got float64", row.astype(float)),
        "of other width": (TypeError, "must hold uint64 components, .* got uint32", row.astype(numpy.uint32)),
        "None": (TypeError, "^fingerprint must be an array or a sequence, got NoneType$", None),
        "two": (ValueError, r"must be one .*, got an array of shape \(2, 200\)", numpy.array([row, row])),
        **{type(kind).__name__: (TypeError, in_order, kind) for kind in (set(), {}, {}.keys(), iter(()))},
        "its values": (TypeError, "got set; a set does not keep the order of the components", set(row.tolist())),
    }


def bad_matrices() -> dict[str, tuple[type, str, object, object]]:
    """Fingerprints and ids that `add_fingerprints` refuses."""
    row = make().hasher.fingerprint(FERRY)
    ids = "ids must have one "
    return {
        "bools": (TypeError, "fingerprints must hold uint64 components", [[1] * 199 + [False]], [1]),
        "one": (ValueError, "fingerprints must be a matrix of fingerprints", row, range(200)),
        "narrow": (ValueError, r"200 components per .*, got shape \(2, 3\)", numpy.zeros((2, 3), numpy.uint64), [1, 2]),
        "sets": (TypeError, r"fingerprints\[0\] must be an array or a .* got set", [set(row.tolist())], [1]),
        "a set": (TypeError, "fingerprints must be an array or a .* got set", {tuple(row.tolist())}, [1]),
        "a generator": (TypeError, "in order, got generator; pass the array", (row for _ in range(1)), [1]),
        "endless ids": (ValueError, rf"{ids}id for each document \(1\), got more", [row], itertools.count()),
        "ids of no dimension": (TypeError, f"{ids}element for each .*, got ndarray", [row], numpy.array(1)),
        "a set of ids": (TypeError, f"{ids}element .* got frozenset; pass a list", [row], frozenset([1])),
        "more ids": (ValueError, rf"{ids}id for each document \(1\), got 2$", [row], [1, 2]),
    }


@pytest.mark.parametrize("name", list(bad_fingerprints()))
def test_after_a_bad_fingerprint_nothing_has_changed(name):
    error, message, bad = bad_fingerprints()[name]
    cache = filled()
    before = contents(cache)
    with pytest.raises(error, match=message):
        cache.add_fingerprint(bad, 1)
    assert contents(cache) == before


@pytest.mark.parametrize("name", list(bad_matrices()))
def test_after_bad_fingerprints_nothing_has_changed(name):
    error, message, bad, ids = bad_matrices()[name]
    cache = filled()
    before = contents(cache)
    with pytest.raises(error, match=message):
        cache.add_fingerprints(bad, ids)
    assert contents(cache) == before


class Wayward:
    """An id that cannot be compared."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.armed = False

    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        if self.armed:
            raise ZeroDivisionError("no comparing")
        return self is other


def test_an_id_that_cannot_be_compared_changes_nothing():
    cache = Cache(MinHasher(16), num_bands=4)
    ids = [Wayward(i) for i in range(5)]
    cache.add_docs([f"a text about number {i}" for i in range(5)], ids)
    ids[3].armed = True
    with pytest.raises(ZeroDivisionError):
        cache.add_docs(["another", "text"], [Wayward(9), Wayward(10)])
    ids[3].armed = False
    assert list(cache) == ids
    assert all(cache.get_duplicates_of(doc_id=doc_id) >= {doc_id} for doc_id in ids)


@pytest.mark.parametrize("step", ["keys", "insert", "remove"])
@pytest.mark.parametrize("call", [0, 1, 2])
def test_a_change_that_is_broken_off_is_mended(monkeypatch, step, call):
    """Whichever step of a change fails, only a removal removes a document, and no removed document returns."""
    cache = Cache(MinHasher(16), num_bands=4)
    texts = {i: f"text number {i} is about {i * i} things" for i in range(40)}
    cache.add_docs(texts.values(), texts)
    stored = cache._stored
    calls = iter(range(100))

    class Failing:
        def __init__(self, inner: object) -> None:
            self.inner = inner

        def __getattr__(self, name: str):
            if name == step and next(calls) == call:
                raise KeyboardInterrupt
            return getattr(self.inner, name)

    stored.bands, stored.tables = Failing(stored.bands), Failing(stored.tables)
    gone = set()
    for doc_id in (3, 5, 8):
        try:
            cache.remove_id(doc_id)
            gone.add(doc_id)
        except KeyboardInterrupt:
            gone.add(doc_id) if doc_id not in cache else None
        with contextlib.suppress(KeyboardInterrupt):
            cache.add_doc(texts[doc_id + 20], doc_id + 20)
    stored.bands = cache.bands
    cache.add_doc("a last one", "last")
    expected = (set(texts) - gone) | {"last"}
    assert set(cache) == expected == set(cache._stored.numbers)
    for doc_id in expected - {"last"}:
        assert doc_id in cache.get_duplicates_of(texts[doc_id]) <= expected
    for band in cache.bins:
        assert set().union(*(set(band[key]) for key in band)) == expected


# Other bad input.


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_bands": 7}, ValueError, r"num_bands must divide the number of seeds \(100\), got 7; use 5 or 10"),
        ({"num_bands": 101}, ValueError, r"num_bands must divide the number of seeds \(100\), got 101; use .*100"),
        ({"num_bands": 0}, ValueError, "num_bands must be 1 or more, got 0"),
        ({"num_bands": -5}, ValueError, "num_bands must be 1 or more, got -5"),
        ({"num_bands": "10"}, TypeError, "num_bands must be a whole number, got str"),
        ({"num_bands": 10.0}, TypeError, "num_bands must be a whole number, got float"),
        ({"num_bands": True}, TypeError, "num_bands must be a whole number, got bool"),
        (
            {"num_bands": Bands(10, 10)},
            TypeError,
            "num_bands must be a whole number, got Bands; pass it by name, as bands=$",
        ),
        (
            {"num_bands": lsh.plan(0.8, 0.9, 100)},
            TypeError,
            "num_bands must be .*, got Plan; pass it by name, as bands=",
        ),
        (
            {"bands": 10},
            TypeError,
            r"bands must be a Bands or a Plan, got int; write num_bands=10, or bands=lsh.Bands\(10, width\)$",
        ),
        ({"bands": numpy.int32(5)}, TypeError, "got int32; write num_bands=5, or"),
        ({"bands": "10"}, TypeError, r"bands must be a Bands or a Plan, got str; use lsh.Bands\(num_bands, width\)"),
        ({"bands": True}, TypeError, r"bands must be a Bands or a Plan, got bool; use lsh.Bands"),
        (
            {"bands": Bands(11, 10)},
            ValueError,
            "bands take 110 components, a fingerprint has 100; use fewer or narrower",
        ),
        ({"bands": Bands(1, 101)}, AssertionError, "bands take 101 components"),
        ({"bands": Bands(10, 10), "num_bands": 10}, ValueError, "num_bands and bands cannot be combined"),
        *(
            ({"hasher": bad}, TypeError, rf"a MinHasher, got {type(bad).__name__}; use lsh.MinHasher\(seeds\)")
            for bad in (None, 100, MinHasher)
        ),
    ],
)
def test_bad_cache(arguments, error, message):
    with pytest.raises(error, match=message):
        Cache(**{"hasher": MinHasher(100)} | arguments)


def test_bad_questions():
    cache = filled()
    with pytest.raises(TypeError, match="doc must be str"):
        cache.remove_doc(None)
    for ask in (
        lambda: cache.get_duplicates_of(doc_id=[1]),
        lambda: cache.is_duplicate(FERRY, [1]),
        lambda: cache.remove_id([1]),
    ):
        with pytest.raises(TypeError, match=r"^doc_id must be hashable, got list$"):
            ask()
    with pytest.raises(TypeError, match="unhashable"):
        assert [1] in cache
    for ask in (cache.get_duplicates_of, cache.is_duplicate):
        with pytest.raises(TypeError, match=r"doc must be str, .* got int"):
            ask(5, 1)  # even with a known id
    with pytest.raises(ValueError, match="fingerprint must have 200 components"):
        list(cache.bins_(numpy.zeros(3, numpy.uint64)))
    with pytest.raises(TypeError, match="fingerprint must be an array or a sequence in order, got set"):
        list(cache.bins_(set(cache.fingerprints[1].tolist())))
    assert contents(cache) == contents(filled())


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (5, TypeError, "^pairs must be an iterable of pairs of ids, got int$"),
        (None, TypeError, "^pairs must be an iterable of pairs of ids, got NoneType$"),
        ([(1, 3), 5], TypeError, r"^pairs\[1\] must be a pair of ids, got 5$"),
        ([(1, 2, 3)], TypeError, r"^pairs\[0\] must be a pair of ids, got \(1, 2, 3\)$"),
        ([(1,)], TypeError, r"^pairs\[0\] must be a pair of ids, got \(1,\)$"),
        ([[1] * 1000], TypeError, r"^pairs\[0\] must be a pair of ids, got [\[1, ]{80}$"),
        ([(1, [3])], TypeError, "^each id in pairs must be hashable, got list$"),
        ([(1, 3), (1, "who")], KeyError, "who"),
    ],
)
def test_bad_pairs(bad, error, message):
    with pytest.raises(error, match=message):
        filled().filter_candidates(bad, 0.5)


def test_no_more_ids_are_taken_than_needed():
    ids = iter(range(10))
    with pytest.raises(ValueError, match=r"one id for each document \(2\), got more than 2$"):
        make().add_docs([FERRY, MARKET], ids)
    assert next(ids) == 3
    with pytest.raises(TypeError, match="ids must have one element for each document"):
        make().add_docs(iter(lambda: pytest.fail("a text was read"), None), 5)


# Changes during iteration.

CHANGES = {
    "add": lambda cache: cache.add_doc("something else", "new"),
    "add many": lambda cache: cache.add_docs(["something else"], ["new"]),
    "add again": lambda cache: cache.add_doc(FERRY, 0),
    "remove by id": lambda cache: cache.remove_id(2),
    "remove by text": lambda cache: cache.remove_doc(BRIDGE),
    "clear": lambda cache: cache.clear(),
}


def copies() -> Cache:
    cache = filled()
    cache.add_docs([FERRY, MARKET, FERRY], [4, 5, 6])
    return cache


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize(
    "look",
    [lambda c: c.iter_duplicates(), lambda c: c.iter_duplicates(0.5), iter, lambda c: iter(c.fingerprints)],
    ids=["iter_duplicates", "iter_duplicates at .5", "ids", "fingerprints"],
)
def test_a_change_ends_an_iteration(look, change):
    cache = copies()
    running = look(cache)
    next(running)
    change(cache)
    with pytest.raises(RuntimeError, match="change"):
        next(running)


def test_a_change_never_passes_for_the_last_pair():
    cache = copies()
    complete = list(cache.iter_duplicates())
    assert len(complete) == 7
    for stop in range(1, 7):
        running = cache.iter_duplicates()
        assert list(itertools.islice(running, stop)) == complete[:stop]
        cache.add_doc("x", "new")
        with pytest.raises(RuntimeError, match="changed while it was iterated over"):
            list(running)
        cache.remove_id("new")
        assert list(cache.iter_duplicates()) == complete


def test_questions_do_not_disturb_an_iteration():
    cache = copies()
    seen = []
    for pair in cache.iter_duplicates():
        seen.append(pair)
        assert set(pair) <= cache.get_duplicates_of(doc_id=pair[0])
        assert cache.filter_candidates([pair], 0.5) == {pair}
    assert set(seen) == cache.get_all_duplicates()
    assert cache.filter_candidates(cache.iter_duplicates(), 0) == set(seen)


# Copies.

COPIES = [
    copy.copy,
    copy.deepcopy,
    *(
        lambda cache, protocol=protocol: pickle.loads(pickle.dumps(cache, protocol))
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
    ),
]


@pytest.mark.parametrize("duplicate", COPIES)
@both_sizes
def test_copies_are_equal_and_apart(hashbytes, duplicate):
    cache = filled(hashbytes)
    cache.add_doc("", "empty")
    cache.add_doc(BRIDGE, 0)
    cache.remove_id(2)
    other = duplicate(cache)
    assert type(other) is Cache
    assert other.hasher == cache.hasher
    assert other.bands == cache.bands
    assert contents(other) == contents(cache)
    before = contents(cache)
    other.add_doc(FERRY, "more")
    other.remove_id(1)
    assert contents(cache) == before
    assert other.get_duplicates_of(FERRY) == {3, "more"}
    cache.clear()
    assert len(other) == 4


def test_a_pickle_holds_what_is_stored_and_no_more():
    cache = make()
    cache.add_docs([f"text {i}" for i in range(500)], range(500))
    for doc_id in range(499):
        cache.remove_id(doc_id)
    single = make()
    single.add_doc("text 499", 499)
    assert len(pickle.dumps(cache)) == len(pickle.dumps(single))


def test_older_form():
    hasher = MinHasher(100, 5, hashbytes=4)
    cache = lsh.lsh.Cache(bands=20, hasher=hasher)
    row = hasher.fingerprint(FERRY)
    cache.update(row)
    cache.update(row, meta=(7, "x"))
    cache.update(hasher.fingerprint(MARKET), (8, "y"))
    cache.update(row)  # a repeated update moves the document to the end
    values = tuple(row.tolist())
    assert list(cache) == [(values, (7, "x")), (tuple(hasher.fingerprint(MARKET).tolist()), (8, "y")), (values, None)]
    assert cache.get_all_duplicates() == {((values, (7, "x")), (values, None))}
    for band in cache.bins:
        assert {(values, (7, "x")), (values, None)} in [set(ids) for ids in band.values()]
    other = pickle.loads(pickle.dumps(cache))
    assert type(other) is lsh.lsh.Cache
    assert contents(other) == contents(cache)
    with pytest.raises(TypeError, match="unhashable"):
        cache.update(row, meta=[1])
    for kind in (set, frozenset, iter):
        with pytest.raises(TypeError, match="fingerprint must be an array or a sequence in order, got "):
            cache.update(kind(values), meta="set")
    cache.update(list(values))  # a list of the same values is the same key
    assert len(cache) == 3
    with pytest.raises(AssertionError, match="num_bands must divide"):
        lsh.lsh.Cache(bands=7, hasher=hasher)


# Threads.


def run_together(*jobs: Callable[[], object]) -> list:
    """Run each job in a thread, all started at the same time; raise the first error."""
    gate = threading.Barrier(len(jobs))

    def run(job):
        gate.wait()
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [future.result() for future in [pool.submit(run, job) for job in jobs]]


def test_threads_add_query_and_remove_at_once():
    """In every order all documents are stored at the end; a query sees complete documents only."""
    cache = Cache(MinHasher(40, 4, hashbytes=4))
    texts = [f"{word} and {word} of the {word}s" for word in ("otter", "heron", "badger", "weasel", "plover", "stoat")]
    rounds = 150

    def writer(which):
        for turn in range(rounds):
            cache.add_doc(texts[which], (which, turn))
            if turn % 3 == 2:
                cache.remove_id((which, turn))
            if turn % 10 == 5:
                cache.add_docs([texts[which]] * 3, [(which, turn, i) for i in range(3)])

    def reader(which):
        sizes = []
        for _ in range(rounds):
            found = cache.get_duplicates_of(texts[which], min_jaccard=1.0)
            assert {first for first, *_ in found} <= {which}
            sizes.append(len(found))
            cache.is_duplicate(texts[which])
            assert sum(len(ids) for ids in cache.bins[0].values()) <= 6 * rounds * 2
        return sizes[-1]

    jobs = [lambda which=which: writer(which) for which in range(4)]
    jobs += [lambda which=which: reader(which) for which in range(4)]
    run_together(*jobs)
    expected = {(w, t) for w in range(4) for t in range(rounds) if t % 3 != 2}
    expected |= {(w, t, i) for w in range(4) for t in range(5, rounds, 10) for i in range(3)}
    assert set(cache) == expected
    fresh = Cache(cache.hasher)
    fresh.add_docs([texts[doc_id[0]] for doc_id in cache], cache)
    assert contents(fresh) == contents(cache)


def without_lock() -> set[str]:
    """The names that the docstring of the class lists as read without the lock."""
    sentence = lsh.Cache.__doc__.split("is read without the lock:")[1].split(".\n")[0]
    return set(re.findall(r"`(\w+)`", sentence))


QUESTIONS = {
    "__len__": len,
    "__contains__": lambda c: 1 in c,
    "__iter__": list,
    "__repr__": repr,
    "__getstate__": pickle.dumps,
    "__setstate__": lambda c: c.__setstate__(c.__getstate__()),
    "add": lambda c: c.add(FERRY, "new"),
    "add_doc": lambda c: c.add_doc(FERRY, "new"),
    "add_docs": lambda c: c.add_docs([FERRY], ["new"]),
    "add_fingerprint": lambda c: c.add_fingerprint(list(range(200)), "new"),
    "add_fingerprints": lambda c: c.add_fingerprints([list(range(200))], ["new"]),
    "remove": lambda c: c.remove(1),
    "remove_id": lambda c: c.remove_id(1),
    "remove_ids": lambda c: c.remove_ids([1]),
    "remove_doc": lambda c: c.remove_doc(FERRY),
    "clear": lambda c: c.clear(),
    "query": lambda c: c.query(FERRY),
    "query_docs": lambda c: c.query_docs([FERRY]),
    "save": lambda c: c.save(tempfile.mkdtemp()),
    "get_duplicates_of": lambda c: c.get_duplicates_of(FERRY),
    "is_duplicate": lambda c: c.is_duplicate(FERRY),
    "get_all_duplicates": lambda c: c.get_all_duplicates(),
    "iter_duplicates": lambda c: next(c.iter_duplicates()),
    "filter_candidates": lambda c: c.filter_candidates([(1, 3)], 0.5),
}
VIEWS = {
    "len of a band": lambda c: len(c.bins[0]),
    "keys": lambda c: list(c.bins[0]),
    "a key": lambda c: 5 in c.bins[0],
    "items": lambda c: list(c.bins[0].items()),
    "values": lambda c: list(c.bins[0].values()),
    "repr of a band": lambda c: repr(c.bins[0]),
    "len of the fingerprints": lambda c: len(c.fingerprints),
    "ids of the fingerprints": lambda c: list(c.fingerprints),
    "a fingerprint": lambda c: c.fingerprints[1],
    "items of the fingerprints": lambda c: list(c.fingerprints.items()),
    "values of the fingerprints": lambda c: list(c.fingerprints.values()),
    "repr of the fingerprints": lambda c: repr(c.fingerprints),
}


def test_every_method_is_tried_below():
    """Every member of the class is tested in another thread, except constant members and views."""
    members = vars(BandedStore) | vars(Cache)
    own = {name for name, value in members.items() if callable(value) or isinstance(value, (property, classmethod))}
    own = {name for name in own if not name.startswith("_") or name.endswith("__")}
    assert own == set(QUESTIONS) | without_lock() | {"__init__", "create", "load", "bins", "fingerprints"}
    assert without_lock() == {"hasher", "plan", "bands", "num_bands", "band_width", "bins_", "recall_at"}


@pytest.mark.parametrize("ask", [*QUESTIONS.values(), *VIEWS.values()], ids=[*QUESTIONS, *VIEWS])
def test_every_method_waits_for_a_change_to_end(ask, monkeypatch):
    """While another thread makes a change, a query waits until the change is complete."""
    cache = filled()
    asked, in_change, go_on = (threading.Event() for _ in range(3))
    changed, looked, problems = [], [], []

    class Told:
        """The lock; it reports when the querying thread is about to acquire it."""

        def __init__(self, lock):
            self.lock = lock

        def __enter__(self):
            if threading.current_thread() is asking:
                asked.set()
            return self.lock.__enter__()

        def __exit__(self, *error):
            return self.lock.__exit__(*error)

    def change():
        with cache._changing():
            in_change.set()
            go_on.wait(60)
            changed.append(not looked)

    def question():
        in_change.wait(60)
        try:
            ask(cache)
        except Exception as error:
            problems.append(error)
        looked.append(True)

    changing, asking = threading.Thread(target=change), threading.Thread(target=question)
    monkeypatch.setattr(cache, "_lock", Told(cache._lock))
    changing.start()
    asking.start()
    took_the_lock = asked.wait(10)
    go_on.set()
    changing.join()
    asking.join()
    assert took_the_lock
    assert (changed, looked, problems) == ([True], [True], [])


@pytest.mark.parametrize("ask", [lambda c: c.bands, lambda c: c.num_bands, lambda c: c.band_width, lambda c: c.hasher])
def test_what_never_changes_does_not_wait(ask):
    cache = filled()
    with cache._changing(), ThreadPoolExecutor(1) as pool:
        pool.submit(ask, cache).result(60)
        assert len(pool.submit(list, cache.bins_(MARKET)).result(60)) == 20


def test_threads_count_whole_changes_only():
    """A thread adds and removes ten documents at a time: other threads never see only some of them."""
    cache = Cache(MinHasher(12, 4, hashbytes=4))
    rows = cache.hasher.fingerprints([f"a story of number {i}" for i in range(10)])
    cache.add_fingerprints(rows, range(10))
    done = threading.Event()

    def write():
        for turn in range(300):
            if turn % 3 == 2:
                cache.clear()
            cache.add_fingerprints(rows, range(10 * (turn % 3), 10 * (turn % 3) + 10))
        done.set()

    def read():
        seen = 0
        while not done.is_set():
            assert len(cache) % 10 == 0
            assert len(cache.fingerprints) % 10 == 0
            assert sum(map(len, cache.bins[0].values())) % 10 == 0
            assert len(cache.query(id=None, text="a story of number 3")) <= 30
            try:
                assert len(list(cache)) % 10 == 0
            except RuntimeError as error:  # the cache was changed while it was iterated over
                if "changed" not in str(error):
                    raise
            seen += 1
        return seen

    _, *rounds = run_together(write, read, read)
    assert min(rounds) >= 1


LOOK_AND_ADD = """
import itertools, sys, threading, numpy
from lsh import Bands, Cache, MinHasher

documents, rounds = map(int, sys.argv[1:])
hasher = MinHasher(4, 4, hashbytes=4)
rows = numpy.random.RandomState(8).randint(0, 2**32, (documents, 4), numpy.uint32)
cache = Cache(hasher, bands=Bands(1, 4))
done = threading.Event()
problems = []

def look():
    while not done.is_set():
        try:
            for a, b in itertools.islice(cache.iter_duplicates(), 20):
                if b != a + 1_000_000:
                    problems.append((a, b))
        except RuntimeError as error:
            if "changed" not in str(error):
                problems.append(error)

readers = [threading.Thread(target=look) for _ in range(2)]
for reader in readers:
    reader.start()
for _ in range(rounds):
    cache.clear()
    cache.add_fingerprints(rows, range(len(rows)))
    cache.add_fingerprints(rows[:50], range(1_000_000, 1_000_050))
done.set()
for reader in readers:
    reader.join()
assert not problems, problems[:5]
assert cache.get_all_duplicates() == {(i, i + 1_000_000) for i in range(50)}
"""


@pytest.mark.parametrize(("documents", "rounds"), [(100_000, 4), pytest.param(300_000, 16, marks=pytest.mark.slow)])
def test_threads_look_through_pairs_while_another_adds(tmp_path, documents, rounds):
    """Complete pairs or a RuntimeError. Runs in a new process, because a fault would corrupt memory."""
    done = subprocess.run(
        [sys.executable, "-c", LOOK_AND_ADD, str(documents), str(rounds)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=running.environment(),
    )
    assert done.returncode == 0, done.stderr[-2000:]


def _ask(cache: Cache, answer: object) -> None:
    answer.put(cache.is_duplicate("a text that is stored"))  # type: ignore[attr-defined]


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_while_a_lock_is_held_does_not_hang():
    cache = Cache(MinHasher(16), num_bands=4)
    cache.add_doc("a text that is stored", 1)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with cache._lock:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    context = multiprocessing.get_context("fork")
    answer = context.Queue()
    child = context.Process(target=_ask, args=(cache, answer))
    child.start()
    try:
        assert answer.get(timeout=30) is True
    finally:
        child.kill()
        child.join()
        done.set()
        thread.join()


# Many copies.


@pytest.mark.parametrize("copies", [2_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_many_copies_in_a_bin(copies):
    """One bin per band holds all documents: additions, queries and removals take the usual time.

    The limits are about ten times the measured time. A step that scans the bin for each of 20,000 documents takes
    minutes.
    """
    cache = Cache(MinHasher(100, 5, hashbytes=4), num_bands=20)
    rows = numpy.repeat(cache.hasher.fingerprints([FERRY]), copies, axis=0)
    tracemalloc.start()
    try:
        started = time.process_time()
        cache.add_fingerprints(rows, range(copies))
        assert cache.is_duplicate(FERRY_LESS)
        assert cache.get_duplicates_of(FERRY_LESS) == set(range(copies))
        assert [len(band) for band in cache.bins] == [1] * 20
        first = list(itertools.islice(cache.iter_duplicates(), copies))
        assert first == [(0, i) for i in range(1, copies)] + [(1, 2)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    for doc_id in range(0, copies, 2):
        cache.remove_id(doc_id)
    for doc_id in range(0, copies, 2):
        cache.add_fingerprint(rows[0], doc_id)
    assert cache.get_duplicates_of(FERRY) == set(range(copies))
    cache.remove_doc(FERRY)
    assert time.process_time() - started < 15
    assert peak < 100_000_000  # the set of the pairs of 20,000 would take gigabytes
    assert len(cache) == 0
    assert not cache.is_duplicate(FERRY)
    assert [len(band) for band in cache.bins] == [0] * 20
