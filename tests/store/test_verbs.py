"""One protocol of what a store does, run over every kind of store, and one table of bad values for every door.

A store is a `Cache` or an `Index`, in memory or after a move: pickled, saved, committed, compacted, reopened.
"""

import itertools
import math
import pickle
import random
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st

import lsh
import lsh.store.memtable
import lsh.store.writer

HASHER = lsh.MinHasher(64, scheme="fss", shingles=lsh.Shingles(3))
PLAN = lsh.plan(0.6, 0.95, 64)
WORDS = ["ferry", "outer", "islands", "late", "monday", "because", "seal", "fallen", "asleep", "slipway", "soup"]
IDS = ["a", b"a", 1, "1", -1, 2**63 - 1, -(2**63), "", b"", "\ud800", "é", b"\xff", "x" * 1000]
CACHES = ["cache", "pickled", "saved"]
INDEXES = ["memory", "log", "segment", "segments", "reopened"]


class Store:
    """A cache or an index by the same names; `move` changes where its documents are."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.all: Any
        self.kind, self.folder, self.moves = kind, folder, 0
        if kind in CACHES:
            self.all = lsh.Cache(HASHER, bands=PLAN.bands)
        else:
            self.all = lsh.Index.create(folder, HASHER, bands=PLAN, sketch="full", texts=None)

    def move(self) -> None:
        self.moves += 1
        if self.kind == "pickled":
            self.all = pickle.loads(pickle.dumps(self.all))
        elif self.kind == "saved":
            self.all.save(self.folder / str(self.moves))
            self.all = lsh.Cache.load(self.folder / str(self.moves))
        elif self.kind == "segment":
            self.all.compact()
        elif self.kind in ("log", "segments", "reopened"):
            self.all.commit()
        if self.kind == "reopened":
            self.all.close()
            self.all = lsh.Index.open(self.folder, "a")

    def found(self, text: str | None = None, **named: Any) -> list[object]:
        """The ids of the nearly equal documents."""
        return [match.id for match in self.all.query(text, min_similarity=0.99, **named)]


@pytest.fixture(params=[*CACHES, *INDEXES])
def store(request, tmp_path, monkeypatch):
    if request.param == "segments":
        monkeypatch.setattr(lsh.store.writer, "MAX_LOGGED", 1)  # each commit writes a segment
    made = Store(request.param, tmp_path / "store")
    yield made
    if made.kind in INDEXES:
        made.all.verify() if made.moves else None
        made.all.close()


def sentence(seed: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=12))


# ---- the protocol ----


def test_adding_and_removing(store):
    store.all.add(sentence(1), "a")
    store.all.add_docs([sentence(2), sentence(3), sentence(1)], ["b", 3, b"c"])
    store.move()
    assert list(store.all) == ["a", "b", 3, b"c"]
    assert len(store.all) == 4
    assert 3 in store.all
    assert "3" not in store.all
    assert store.found(sentence(1)) == ["a", b"c"]
    assert store.found(id="a") == [b"c"]
    store.all.remove("a")
    with pytest.raises(KeyError):
        store.all.remove("a")
    store.move()
    assert store.found(sentence(1)) == [b"c"]
    store.all.add(sentence(4), 3)  # in place of the stored one, and now the last
    store.move()
    assert list(store.all) == ["b", b"c", 3]
    assert store.found(sentence(3)) == []
    assert store.found(sentence(4)) == [3]


def test_ids_and_texts_of_all_kinds_are_different(store):
    texts: list[Any] = [
        "\ud800 lone",
        "a\0b\0c",
        b"\xff\xfe\x00",
        "\u6f22\u5b57" * 3,
        bytearray(b"bytes"),
        memoryview(b"view"),
    ]
    texts += map(sentence, range(len(texts), len(IDS)))
    store.all.add_docs(texts, IDS)
    store.move()
    assert list(store.all) == IDS
    assert [type(doc_id) for doc_id in store.all] == [type(doc_id) for doc_id in IDS]
    for text, doc_id in zip(texts, IDS):
        assert store.found(text) == [doc_id]
        store.all.remove(doc_id)
        assert doc_id not in store.all
    store.move()
    assert list(store.all) == []
    assert store.all.query(sentence(1)) == ()


def test_the_last_of_repeated_ids_is_stored(store):
    store.all.add_docs([], [])
    store.all.add_docs(map(sentence, range(4)), ["a", "b", "a", "c"])
    store.move()
    assert list(store.all) == ["b", "a", "c"]
    assert [store.found(sentence(i)) for i in range(4)] == [[], ["b"], ["a"], ["c"]]


def test_texts_without_shingles_are_stored_and_not_found(store):
    store.all.add_docs(["", sentence(1), None], ["empty", "one", "missing"], missing="empty")
    for _ in range(2):
        assert list(store.all) == ["empty", "one", "missing"]
        assert store.all.query("") == store.all.query(id="empty") == store.all.query(id="missing") == ()
        assert store.found(sentence(1)) == ["one"]
        store.move()
    store.all.add("", "one")  # an empty text is replaced by another text, and the other way round
    store.all.add(sentence(2), "empty")
    store.move()
    assert store.found(sentence(1)) == []
    assert store.found(sentence(2)) == ["empty"]


def test_ids_of_collections(store):
    """Whatever collection they come in, ids are values of Python."""
    for ids in (["x", "y"], np.array(["x", "y"]), np.array(["x", "y"], object), iter("xy"), {"x": 1, "y": 2}):
        store.all.add_docs([sentence(1)] * 2, ids)
        assert store.found(sentence(1)) == ["x", "y"]
        assert {type(one) for one in store.found(sentence(1))} == {str}
    store.all.add_docs([sentence(2)] * 2, np.array([6, 7], np.uint8))
    assert store.found(sentence(2)) == [6, 7]
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    store.all.add_docs(pa.array([sentence(3)] * 3), pa.chunked_array([["x", "y"], ["z"]]))
    store.all.add_docs([sentence(3)], pa.array([8]))
    store.all.remove_ids(pa.array(["y"]))
    store.move()
    assert store.found(sentence(3)) == ["x", "z", 8]


def test_missing_ids_of_pandas(store):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    for ids in (["a", None, None], [pandas.NA, "a", "b"], [pandas.NaT, "a", "b"]):
        with pytest.raises((TypeError, ValueError), match=r"ids\[[01]\] must (be |not be None)"):
            store.all.add_docs([sentence(1)] * 3, pandas.Series(ids))
    with pytest.raises(TypeError, match="ids must be one column, got a whole DataFrame"):
        store.all.add_docs([sentence(1)], pandas.DataFrame({"id": ["a"]}))
    assert len(store.all) == 0


def test_many_are_removed_or_none(store):
    store.all.add_docs([sentence(1)] * 4, range(4))
    store.move()
    for wrong, error, message in [
        ([1, 9], KeyError, "9"),
        *(
            (one, TypeError, f"ids must be a collection of ids, got {type(one).__name__}; use remove for one document")
            for one in ("12", b"12", 5, None, np.array(1))
        ),
        ([1, []], TypeError, r"ids\[1\] must be .*, got list"),
    ]:
        with pytest.raises(error, match=message):
            store.all.remove_ids(wrong)
        assert len(store.all) == 4
    store.all.remove_ids(i for i in (1, 3, 1))
    store.all.remove_ids([])
    store.move()
    assert store.found(sentence(1)) == [0, 2]


def test_the_best_come_first(store):
    """Equally similar ones in order of addition; the estimates and intervals are those of the formula."""
    half, less = sentence(1)[:45], sentence(1)[5:]
    store.all.add_docs([sentence(9), half, sentence(1), less, sentence(1)], ["other", "half", "same", "less", "copy"])
    store.move()
    found = store.all.query(sentence(1), min_similarity=0.5)
    assert [match.id for match in found] == ["same", "copy", "less", "half"]
    row = HASHER.fingerprint(sentence(1))
    for match in found:
        other = HASHER.fingerprint({"half": half, "less": less}.get(match.id, sentence(1)))
        equal = int((row == other).sum())
        assert match == lsh.Match(match.id, equal / 64, match.interval, False)
        assert match.interval == pytest.approx(reference.wilson(equal, 64, 0.95), abs=1e-9)
        assert [type(value) for value in (match.similarity, *match.interval)] == [float] * 3
    for top in (1, 2, 3, 4, 100, np.int64(2)):
        assert list(store.all.query(sentence(1), min_similarity=0.5, top=top)) == list(found[:top])
    assert [match.id for match in store.all.query(id="same", min_similarity=0.5, top=2)] == ["copy", "less"]
    exact = found[3].similarity
    assert [match.id for match in store.all.query(sentence(1), min_similarity=exact)][-1] == "half"
    assert [match.id for match in store.all.query(sentence(1), min_similarity=math.nextafter(exact, 1))][-1] == "less"
    store.all.add(sentence(1), "same")  # moves to the end
    store.move()
    assert store.found(sentence(1)) == ["copy", "same"]


def test_matches_say_what_was_asked(store):
    store.all.add_docs([sentence(1), sentence(1)[5:], sentence(2)], list("abc"))
    store.move()
    found = store.all.query(sentence(1), min_similarity=0.7)
    assert isinstance(found, lsh.Matches)
    assert (found.min_similarity, found.recall) == (0.7, store.all.recall_at(0.7, min_similarity=0.7))
    for one in [*store.all.query_docs([sentence(1), ""], min_similarity=0.7), store.all.query("", min_similarity=0.7)]:
        assert (one.min_similarity, one.recall) == (found.min_similarity, found.recall)
    default = store.all.query(sentence(1)).min_similarity
    assert default == (0.0 if store.kind in CACHES else 0.6)
    copied = pickle.loads(pickle.dumps(found))
    assert (copied, copied.recall, copied.min_similarity) == (found, found.recall, 0.7)
    assert repr(found) == f"Matches({list(found)!r}, recall={found.recall:.4g}, min_similarity=0.7)"
    rebuilt = eval(repr(found), vars(lsh))
    assert rebuilt == found == tuple(found)


def test_many_queries(store):
    """In any threads, each answer of `query_docs` is that of `query`, also for a text without shingles."""
    store.all.add_docs([sentence(i % 5) for i in range(12)], range(12), num_threads=3)
    store.move()
    texts = [*map(sentence, range(7)), ""]
    for named in ({}, {"top": 2, "num_threads": 1}, {"min_similarity": 0.9}, {"top": 1, "num_threads": 3}):
        found = store.all.query_docs(iter(texts), **named)
        named.pop("num_threads", None)
        assert [list(matches) for matches in found] == [list(store.all.query(text, **named)) for text in texts]
    found = store.all.query_docs([None, sentence(1)], missing="empty", min_similarity=0.99)
    assert [len(matches) for matches in found] == [0, 3]
    assert store.all.query_docs([]) == []


@pytest.mark.parametrize("candidates", [2, 1 << 13])
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 12)), min_size=1, max_size=20), st.data()
)
@strategies.examples(30)
def test_an_index_answers_as_a_cache(tmp_path_factory, candidates, documents, data):
    """The same matches, estimates and intervals, from whole fingerprints in any place, compared in any parts."""
    cache = lsh.Cache(HASHER, bands=PLAN.bands)
    folder = tmp_path_factory.mktemp("verbs") / "index"
    with (
        pytest.MonkeyPatch.context() as patch,
        lsh.Index.create(folder, HASHER, bands=PLAN, sketch="full", texts=None) as index,
    ):
        patch.setattr(lsh.store.memtable, "CANDIDATES", candidates)
        for doc_id, seed, cut in documents:
            for store in (cache, index):
                store.add(sentence(seed)[cut:], doc_id)
            step = data.draw(st.integers(0, 5))
            if step == 0:
                data.draw(st.sampled_from([index.commit, index.compact]))()
            elif step == 1:
                for store in (cache, index):
                    store.remove(doc_id)
            elif step == 2:
                index.query("")  # enters what was added
        asked = [*map(sentence, range(10)), ""]
        top = data.draw(st.one_of(st.none(), st.integers(1, 5)))
        answers = index.query_docs(asked, top=top, min_similarity=0.6)
        assert [index.query(text, top=top, min_similarity=0.6) for text in asked] == answers
        for found, wanted in zip(answers, cache.query_docs(asked, min_similarity=0.6), strict=True):
            assert list(found) == list(wanted)[:top]


# ---- bad values ----

ROW = np.zeros(64, HASHER.dtype)
DELTA = np.timedelta64(5, "s")
TWO = [sentence(1), sentence(2)]


def failing() -> Iterator[str]:
    yield sentence(1)
    raise ZeroDivisionError("the source broke")


SIMILARITIES = [(value, "must be .*0 to 1") for value in (-0.1, 1.01, math.nan, math.inf, "0.5", True, [0.5, 0.6])]
NO_ID = (1.5, None, True, 2**63, -(2**63) - 1, (1,), ["a"], bytearray(b"a"), memoryview(b"a"), np.array(5), np.bool_(1))
IN_ORDER = "ids must have one element for each document, in order, got "
# The bad values of each parameter, and the messages. A value that is a function is called for each use.
BAD: dict[str, list[tuple[Any, str]]] = {
    "text": [(one, "must be str, bytes, bytearray or memoryview, got ") for one in (5, [sentence(1)], ROW)],
    "texts": [
        (sentence(1), "texts must be a collection of texts, got one str"),
        ([sentence(1), None], r"texts\[1\] is None"),
        (failing, "the source broke"),
    ],
    "ids": [
        ("ab", f"{IN_ORDER}str; pass a list"),
        ({1, 2}, f"{IN_ORDER}set; pass a list"),
        ([1], r"ids must have one (id|element) for each (document|text) \(2\), got 1"),
        ([1, 2, 3], r"ids must have one (id|element) for each (document|text) \(2\), got (3|more)"),
        (itertools.count, r"ids must have one (id|element) for each (document|text) \(2\), got more"),
        (failing, "the source broke|must be"),
        (np.array([1.0, np.nan]), r"ids\[[01]\] must be "),
    ],
    "fingerprint": [
        (ROW[1:], r"fingerprint must have 64 components per fingerprint, got shape \(63,\)"),
        (np.array([ROW, ROW]), r"must be one .*, got an array of shape \(2, 64\)"),
    ],
    "fingerprints": [
        (ROW, "fingerprints must be a matrix of fingerprints"),
        ([set(range(64))], r"fingerprints\[0\] must be an array or a .* got set"),
    ],
    "id of a cache": [
        ([1], "must be hashable, got list"),
        ((1, [2]), r"must be hashable, got tuple \(unhashable type: 'list'\)"),
        (None, "must not be None: in a query, "),
        (math.nan, "must be an id, got a missing value"),
    ],
    "id of a index": [(one, "must be ") for one in NO_ID],
    "id of a screen": [(one, "must be ") for one in NO_ID],
    "time": [(one, "must ") for one in (datetime(2026, 1, 1), "2026-01-01", math.nan, math.inf, True, 10**30, DELTA)]
    + [(np.datetime64(year, unit), "of the years 1 to 9999") for year in ("10000", "-1") for unit in ("Y", "D", "us")]
    + [(one, "; divide milliseconds by 1,000") for one in (1709210000000, 253_402_300_800, -62_135_596_801)],
    "times": [
        ([1], "times must have one"),
        ([1, "2"], r"times\[1\] must be seconds"),
        (3.0, "times must have one element for each document, in order, got float"),
    ],
    "top": [(value, "top must be") for value in (0, -1, 1.0, "2", True)],
    "min_similarity": SIMILARITIES,
    "min_jaccard": SIMILARITIES,
    "num_threads": [(value, "num_threads must be") for value in (0, -1, 1.5, "2")],
    "missing": [(value, "missing must be one of") for value in ("skip", None, 5)],
}
# What is given to each method, and which parameters of it are tested with bad values.
ADDED, NEW = {"text": TWO[0], "id": "x"}, {"texts": TWO, "ids": ["x", "y"]}
GIVEN: dict[str, dict[str, Any]] = {
    "add": ADDED,
    "submit": ADDED,
    "add_docs": NEW,
    "submit_docs": NEW,
    "query": {"text": TWO[0]},
    "check": {"text": TWO[0]},
    "query_docs": {"texts": TWO},
    "check_docs": {"texts": TWO},
    "add_doc": {"doc": TWO[0], "doc_id": "x"},
    "add_fingerprint": {"fingerprint": ROW, "doc_id": "x"},
    "add_fingerprints": {"fingerprints": [ROW, ROW], "ids": ["x", "y"]},
    "get_duplicates_of": {"doc": TWO[0], "doc_id": "a"},
    "is_duplicate": {"doc": TWO[0]},
    "remove_doc": {"doc": TWO[0]},
    "filter_candidates": {"pairs": [("a", "b")]},
    "set_time": {"id": "a"},
}
ASKING = {"query": "text top min_similarity", "query_docs": "texts top min_similarity num_threads missing"}
DOORS: dict[str, dict[str, str]] = {
    "cache": ASKING
    | {
        "add": "text id",
        "add_doc": "doc doc_id",
        "add_docs": "texts ids id num_threads missing",
        "add_fingerprint": "fingerprint doc_id",
        "add_fingerprints": "fingerprints ids id",
        "get_duplicates_of": "doc min_jaccard",
        "is_duplicate": "doc",
        "remove_doc": "doc",
        "get_all_duplicates": "min_jaccard",
        "iter_duplicates": "min_jaccard",  # the call raises, not the first iteration
        "filter_candidates": "min_jaccard",
    },
    "index": ASKING
    | {
        "add": "text id time",
        "add_docs": "texts ids id times num_threads missing",
        "set_time": "time",
        "expire": "before",
    },
    "screen": {
        "check": "text",
        "check_docs": "texts num_threads missing",
        "submit": "text id time",
        "submit_docs": "texts ids id times num_threads missing",
    },
}


def a_store(kind: str, folder: Path) -> tuple[Any, Any]:
    """A cache, an index or a screen, and what has its documents."""
    if kind == "cache":
        cache = lsh.Cache(HASHER, bands=PLAN.bands)
        return cache, cache
    if kind == "index":
        index = lsh.Index.create(folder, HASHER, bands=PLAN)
        return index, index
    screen = lsh.Screen.create(folder, hasher=HASHER, bands=lsh.plan(0.5, 0.9, 64))
    return screen, screen.index


@pytest.mark.parametrize(("kind", "door"), [(kind, door) for kind, doors in DOORS.items() for door in doors])
def test_bad_values_are_refused_and_change_nothing(tmp_path, kind, door):
    store, documents = a_store(kind, tmp_path / "store")
    documents.add_docs(TWO, ["a", "b"])
    for name in DOORS[kind][door].split():
        named = {"doc": "text", "doc_id": "id", "before": "time"}.get(name, name)
        for bad, message in BAD[f"id of a {kind}" if named == "id" else named]:
            value = bad() if callable(bad) else bad
            given = {**GIVEN.get(door, {}), name: value}
            if name == "id" and "ids" in given:  # one of several
                given.pop("id")
                given |= {next(iter(given)): next(iter(given.values()))[:1], "ids": [value]}
            elif name == "texts" and "ids" in given:
                given["ids"] = range(len(value) if hasattr(value, "__len__") else 2)
            with pytest.raises((TypeError, ValueError, ZeroDivisionError), match=message) as raised:
                getattr(store, door)(**given)
            if named == "text":
                assert str(raised.value).startswith(f"{name} must be ")
            if named in ("top", "min_similarity", "num_threads", "missing"):
                assert raised.value.parameter == name
            assert list(documents) == ["a", "b"]
    assert documents.query(TWO[0])[0].id == "a"  # it still works
    if kind != "cache":
        documents.close()


@pytest.mark.parametrize("kind", ["cache", "index"])
def test_other_bad_questions(tmp_path, kind):
    store, _ = a_store(kind, tmp_path / "store")
    store.add(text=TWO[0], id="a")
    for both, got in (({}, "neither"), ({"text": TWO[0], "id": "a"}, "both"), ({"text": "x", "id": "who"}, "both")):
        with pytest.raises(ValueError, match=f"^text or id must be given, got {got}$"):
            store.query(**both)
    for call in (lambda: store.query(id="who"), lambda: store.remove(id="who"), lambda: store.remove_ids(["who"])):
        with pytest.raises(KeyError, match=r"^'who'$"):
            call()
    assert store.query(TWO[0], top=1, min_similarity=1) == store.query(TWO[0], min_similarity=np.array(0.9))
    for wrong in (True, 1.0, np.True_):  # they equal 1, which was given before
        with pytest.raises(TypeError, match="top must be a whole number"):
            store.query(TWO[0], top=wrong)


# What a new cache or index refuses. An error names the parameter.
CREATED: list[tuple[dict[str, Any], str]] = [
    ({"bands": lsh.Bands(20, 5)}, "^threshold must be given with bands, because .*; or pass a Plan as bands$"),
    ({"bands": lsh.Bands(1, 100), "threshold": 1e-9}, "threshold=1e-09 is too low for 1x100, which find no"),
    ({"bands": lsh.plan(0.7, num_seeds=100), "threshold": 0.8}, "planned for threshold=0.7, got threshold=0.8"),
    ({"hasher": HASHER, "bands": lsh.plan(0.7)}, "bands are planned for num_seeds=128, got num_seeds=64"),
]


@pytest.mark.parametrize(("arguments", "message"), CREATED)
@pytest.mark.parametrize("kind", ["cache", "index"])
def test_bad_parameters_of_a_new_store(tmp_path, kind, arguments, message):
    create = lsh.Cache.create if kind == "cache" else partial(lsh.Index.create, tmp_path / "store")
    with pytest.raises((TypeError, ValueError), match=message):
        create(**arguments)
    assert list(tmp_path.iterdir()) == []
