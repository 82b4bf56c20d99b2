"""The banded cache: a comparison with a simple model, and tests of the faults of mattilyra/LSH.

The model is a dict of fingerprints and sets of (band, key), both computed by reference.py. The name of a test about a
fault of mattilyra/LSH states the correct behaviour.
"""

import contextlib
import copy
import itertools
import math
import os
import pickle
import tempfile
import threading
import tracemalloc
from collections.abc import Hashable, Set
from concurrent.futures import ThreadPoolExecutor
from functools import cache as memoise
from functools import partial

import numpy
import pytest
import reference
import strategies
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from indexing import FERRY, FERRY_LESS

import lsh
import lsh.store.cache
from lsh import Bands, Cache, MinHasher
from lsh import lsh as older
from lsh.sketch.planning import plan_for

MARKET = (
    "ONIONS DEAR THIS WEEK STOP GROWERS BLAME WET FIELDS STOP TRADERS AT QUILL STREET BLAME GROWERS STOP SACK "
    "NOW NINE CROWNS STOP WAS SIX IN MAY STOP"
)
BRIDGE = (
    "Hopan silta suljettiin keskipäivällä, koska sen kolmas pultti osoittautui maalatuksi puuksi; pyöräilijät "
    "saavat taluttaa pyöränsä yli yksitellen."
)  # few shared shingles even with n = 2


def filled() -> Cache:
    """A cache of three stories; 1 and 3 differ by one word."""
    cache = Cache(MinHasher(200, char_ngram=4), num_bands=20)
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


# Faults of mattilyra/LSH that are fixed here.


@pytest.mark.parametrize("hashbytes", [4, 8])
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


def test_fingerprints_are_copied_in_and_read_only_out():
    cache = Cache(MinHasher(200, char_ngram=4))
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


# The properties of a cache.


def test_face():
    hasher = MinHasher(100, 5)
    cache = Cache(hasher, 10)
    assert (cache.num_bands, cache.band_width, cache.bands) == (10, 10, Bands(10, 10))
    assert cache.hasher is hasher
    assert Cache(hasher, 20).band_width == Cache(hasher=hasher, num_bands=20).band_width == 5
    mixed = Cache(hasher, bands=Bands(widths=(40, 7, 8)))
    assert (mixed.num_bands, mixed.band_width) == (3, (40, 7, 8))
    row = hasher.fingerprint(FERRY).tolist()
    pieces = [(band, piece.tolist()) for band, piece in mixed.bins_(hasher.fingerprint(FERRY))]
    assert pieces == [(0, row[:40]), (1, row[40:47]), (2, row[47:55])]
    cache.add_doc(FERRY, 1)
    assert (len(cache), 1 in cache, 2 in cache) == (1, True, False)


@pytest.mark.parametrize("scheme", ["murmur3", "fss"])
def test_the_plan_of_bands(scheme):
    """Planned bands reach the recall without a filter; given ones have the least threshold at which it is .99."""
    cache = Cache.create(MinHasher(128, 5, scheme=scheme), threshold=0.8, recall=0.95)
    assert cache.plan == lsh.Plan(Bands(widths=[7] * 2 + [8] * 14), 0.8, 0.95, 128)
    for seeds in (3, 7, 100, 1009):
        hasher = MinHasher(seeds, 4, scheme=scheme)
        for cache in (
            Cache(hasher),
            *(Cache.create(hasher, **same) for same in ({}, {"threshold": 0.8}, {"recall": 0.99})),
        ):
            assert cache.hasher is hasher
            assert cache.plan == plan_for(hasher, 0.8, 0.99, filtered=False) == lsh.Plan(cache.bands, 0.8, 0.99, seeds)
            assert cache.bands.probability(0.8) >= 0.99
    for cache in (Cache(hasher, bands=Bands(20, 5)), *(Cache(MinHasher(seeds, scheme=scheme)) for seeds in (1, 2))):
        plan = cache.plan
        assert (plan.bands, plan.recall, plan.num_seeds) == (cache.bands, 0.99, cache.hasher.num_seeds)
        assert cache.bands.probability(plan.threshold) >= 0.99 > cache.bands.probability(plan.threshold - 0.01)
    assert cache.bands == Bands(2, 1)  # none of two seeds reach .99: those with the highest recall
    with pytest.raises(ValueError, match="too few"):
        Cache.create(cache.hasher)
    planned = lsh.plan(0.7, 0.9, 100)
    assert Cache(MinHasher(100, scheme=scheme), bands=planned).plan == planned


def test_created_without_a_hasher_or_with_bands():
    """With the defaults of `Index.create`."""
    words = lsh.Shingles(2, "word")
    assert Cache.create().hasher == MinHasher(128, scheme="fss", shingles=lsh.Shingles(8))
    cache = Cache.create(shingles=words, num_seeds=64, random_state=5)
    assert cache.hasher == MinHasher(64, random_state=5, scheme="fss", shingles=words)
    assert Cache.create(random_state=None).hasher.random_state != 0
    planned = lsh.plan(0.7, 0.9, 64, shingles=words, background=["red green blue", "red green white"])
    cache = Cache.create(bands=planned)
    assert (cache.hasher.num_seeds, cache.hasher.shingles, cache.plan) == (64, words, planned)
    bands = Bands(20, 5)
    cache = Cache.create(MinHasher(100), bands=bands, threshold=0.7)
    assert (cache.bands, cache.plan) == (bands, lsh.Plan(bands, 0.7, bands.probability(0.7), 100))
    assert Cache.create(MinHasher(100), bands=bands, threshold=1.0).plan.threshold == 1


def test_bins_are_shaped_as_upstreams():
    """A sequence that has, for each band, a read-only mapping from keys to sets of ids."""
    cache = filled()
    bins = cache.bins
    assert len(bins) == 20
    for band in bins:
        for key in band:
            assert isinstance(key, int)
            assert isinstance(band[key], Set)
            assert len(band[key]) == len(list(band[key]))
        for absent in (0, -1, 2**64, "key", None, 1.5):
            assert absent not in band
            assert band.get(absent) is None
    key = next(iter(bins[0]))
    with pytest.raises(TypeError):
        bins[0] = {}
    with pytest.raises(TypeError):
        bins[0][key] = {9}
    held = bins[0][key]
    cache.clear()
    assert len(bins[0]) == 0  # the view changes, a set read from it earlier does not
    assert key not in bins[0]
    assert len(held) >= 1


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


# The model.

SEEDS = 12
WIDTHS = (1, 2, 3, 2)
TEXTS: list[str | bytes] = ["", "a", "aa", "ab", "abc", "abcd", "abcde", "abcdef", "bcdef", "abcdefg", "xyz", "xy"]
TEXTS += ["abab", "ababab", "abcabc", b"abc", b"\xff\xfe", "漢字"]
IDS: list[Hashable] = [0, 1, 2, 3, "0", "x", math.inf, (0, "x"), (), frozenset({1}), 1.5, b"x"]
COPIES = [copy.copy, copy.deepcopy]
COPIES += [partial(lambda protocol, one: pickle.loads(pickle.dumps(one, protocol)), i) for i in (2, 3, 4, 5)]


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

    @rule(how=st.sampled_from(COPIES))
    def copied(self, how):
        """A copy is equal, and apart: what is added to the other one is not in it."""
        before, self.cache = self.cache, how(self.cache)
        assert (type(self.cache), self.cache.hasher, self.cache.bands) == (Cache, before.hasher, before.bands)
        before.add_doc("abc", "another")

    # The queries.

    @rule(text=texts, doc_id=ids | st.none(), least=st.sampled_from([None, 0, 0.25, 0.5, 1]))
    def query(self, text, doc_id, least):
        row = row_of(text, self.hashbytes)
        assert self.cache.get_duplicates_of(text, min_jaccard=least) == self.found(row, least)
        assert self.cache.is_duplicate(text) == bool(self.found(row))
        known = doc_id in self.rows
        asked = self.rows[doc_id] if known else row
        assert self.cache.is_duplicate(text, doc_id) == bool(self.found(asked))
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
        assert self.cache.get_all_duplicates(least) == set(self.cache.iter_duplicates(least)) == candidates
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


@pytest.mark.parametrize("documents", [4_000, pytest.param(30_000, marks=pytest.mark.slow)])
def test_a_stream_of_removals_needs_no_more_room(documents):
    """Many documents pass through a cache of at most 1,000; removed ones take no memory, and are in no pickle."""
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
    cache.add_fingerprints(rows, range(1000))
    for doc_id in range(999):
        cache.remove_id(doc_id)
    single = Cache(cache.hasher)
    single.add_fingerprint(rows[999], 999)
    assert len(pickle.dumps(cache)) == len(pickle.dumps(single))


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


OF_WORDS = lsh.plan(num_seeds=100, background=["red green", "blue white"], shingles=lsh.Shingles(2, "word"))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_bands": 7}, AssertionError, r"num_bands must divide the number of seeds \(100\), got 7; use 5 or 10"),
        ({"num_bands": 0}, ValueError, "num_bands must be 1 or more, got 0"),
        ({"num_bands": Bands(10, 10)}, TypeError, "a whole number, got Bands; pass it by name, as bands=$"),
        ({"bands": 10}, TypeError, r"got int; write num_bands=10, or bands=lsh.Bands\(10, width\)$"),
        ({"bands": Bands(11, 10)}, AssertionError, "bands take 110 components, a fingerprint has 100; use fewer or"),
        ({"bands": Bands(10, 10), "num_bands": 10}, ValueError, "num_bands and bands cannot be combined"),
        ({"bands": lsh.plan()}, ValueError, "planned for num_seeds=128, got num_seeds=100; make a plan for it$"),
        ({"bands": lsh.plan(num_seeds=101)}, ValueError, "got num_seeds=100; .*, or pass bands=plan.bands to use"),
        ({"bands": OF_WORDS}, ValueError, r"for shingles=Shingles\(2, unit='word'\), got shingles=Shingles\(8"),
    ],
)
def test_bad_cache(arguments, error, message):
    with pytest.raises(error, match=message):
        Cache(**{"hasher": MinHasher(100)} | arguments)


def test_bad_questions():
    cache = filled()
    unknown = r"^no document is stored under the doc_id 'who'; give doc, or the id of a stored document$"
    for ask in (cache.get_duplicates_of, cache.is_duplicate):
        with pytest.raises(ValueError, match=unknown):
            ask(doc_id="who")
        with pytest.raises(ValueError, match=r"^doc or doc_id must be given, got neither$"):
            ask()
        with pytest.raises(TypeError, match=r"^doc_id must be hashable, got list$"):
            ask(FERRY, [1])
    with pytest.raises(KeyError, match=r"^'who'$"):
        cache.fingerprints["who"]
    with pytest.raises(ValueError, match="fingerprint must have 200 components"):
        list(cache.bins_(numpy.zeros(3, numpy.uint64)))
    assert contents(cache) == contents(filled())


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (5, TypeError, "^pairs must be an iterable of pairs of ids, got int$"),
        ([(1, 3), 5], TypeError, r"^pairs\[1\] must be a pair of ids, got 5$"),
        ([(1, [3])], TypeError, "^each id in pairs must be hashable, got list$"),
        ([(1, 3), (1, "who")], KeyError, "who"),
    ],
)
def test_bad_pairs(bad, error, message):
    with pytest.raises(error, match=message):
        filled().filter_candidates(bad, 0.5)


CHANGES = {
    "add": lambda cache: cache.add_doc("something else", "new"),
    "add many": lambda cache: cache.add_docs(["something else"], ["new"]),
    "add again": lambda cache: cache.add_doc(FERRY, 0),
    "remove by id": lambda cache: cache.remove_id(2),
    "remove by text": lambda cache: cache.remove_doc(BRIDGE),
    "clear": lambda cache: cache.clear(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_ends_an_iteration(change):
    """Questions do not, and a change never passes for the last pair."""
    for look in (Cache.iter_duplicates, lambda cache: cache.iter_duplicates(0.5), iter, lambda c: iter(c.fingerprints)):
        for last in (False, True):
            cache = filled()
            cache.add_docs([FERRY, MARKET, FERRY], [4, 5, 6])
            running = look(cache)
            next(running)
            assert cache.filter_candidates(cache.iter_duplicates(), 0) == cache.get_all_duplicates()
            assert 3 in cache.get_duplicates_of(doc_id=1)
            for _ in range(len(list(look(cache))) - 1 if last else 0):
                next(running)
            change(cache)
            with pytest.raises(RuntimeError, match="change"):
                next(running)


def test_older_form():
    hasher = MinHasher(100, 5, hashbytes=4)
    cache = older.Cache(bands=20, hasher=hasher)
    assert isinstance(cache, Cache)
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
    assert type(other) is older.Cache is not Cache
    assert contents(other) == contents(cache)
    cache.update(list(values))  # a list of the same values is the same key
    assert len(cache) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
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
    child = os.fork()
    if not child:
        threading.Timer(30, os._exit, [2]).start()
        os._exit(0 if cache.is_duplicate("a text that is stored") else 1)
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


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


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_every_method_waits_for_a_change_to_end(ask, monkeypatch):
    """It acquires the lock, which a change holds."""
    cache, acquired = filled(), []
    lock = cache._lock
    with ThreadPoolExecutor(1) as pool, cache._changing():
        assert not pool.submit(lock.acquire, False).result()

    class Told:
        """The lock; it notes that it is acquired."""

        def __enter__(self):
            acquired.append(True)
            return lock.__enter__()

        def __exit__(self, *error):
            return lock.__exit__(*error)

    monkeypatch.setattr(cache, "_lock", Told())
    ask(cache)
    assert acquired
