"""One protocol of what a store does, run over every kind of store, and one table of bad values for every door.

A store is a `Cache` or an `Index`, in memory or after a move: pickled, saved, committed, compacted, reopened.
"""

from __future__ import annotations

import itertools
import math
import pickle
import random
from collections.abc import Callable, Iterator
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


def test_ids_of_all_kinds_are_different(store):
    store.all.add_docs([sentence(i) for i in range(len(IDS))], IDS)
    store.move()
    assert list(store.all) == IDS
    assert [type(doc_id) for doc_id in store.all] == [type(doc_id) for doc_id in IDS]
    for i, doc_id in enumerate(IDS):
        assert store.found(sentence(i)) == [doc_id]
        store.all.remove(doc_id)
        assert doc_id not in store.all
    store.move()
    assert list(store.all) == []


def test_the_last_of_repeated_ids_is_stored(store):
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


def test_any_text_can_be_stored(store):
    texts = ["\ud800 lone", "a\0b\0c", b"\xff\xfe\x00", "漢字と仮名" * 3, bytearray(b"bytes"), memoryview(b"view")]
    store.all.add_docs(texts, range(6))
    store.move()
    assert [store.found(text) for text in texts] == [[i] for i in range(6)]


def test_ids_of_collections(store):
    """Whatever collection they come in, ids are values of Python."""
    for ids in (["x", "y"], np.array(["x", "y"]), np.array(["x", "y"], object), iter("xy"), {"x": 1, "y": 2}):
        store.all.add_docs([sentence(1)] * 2, ids)
        assert store.found(sentence(1)) == ["x", "y"]
        assert {type(one) for one in store.found(sentence(1))} == {str}
    store.all.add_docs([sentence(2)] * 2, np.array([6, 7], np.uint8))
    assert store.found(sentence(2)) == [6, 7]


def test_ids_of_an_arrow_column(store):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    store.all.add_docs(pa.array([sentence(1), sentence(1), sentence(1)]), pa.chunked_array([["x", "y"], ["z"]]))
    store.all.add_docs([sentence(1)], pa.array([7]))
    store.all.remove_ids(pa.array(["y"]))
    store.move()
    assert store.found(sentence(1)) == ["x", "z", 7]


def test_missing_ids_of_pandas(store):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    for ids in (["a", None, None], [pandas.NA, "a", "b"], [pandas.NaT, "a", "b"]):
        with pytest.raises((TypeError, ValueError), match=r"ids\[[01]\] must (be |not be None)"):
            store.all.add_docs([sentence(1)] * 3, pandas.Series(ids))
    with pytest.raises(TypeError, match="ids must be one column, got a whole DataFrame"):
        store.all.add_docs([sentence(1)], pandas.DataFrame({"id": ["a"]}))
    with pytest.raises(TypeError, match="ids must be one column, got a whole DataFrame"):
        store.all.remove_ids(pandas.DataFrame({"id": ["a"]}))
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
    assert repr(rebuilt) == repr(found)
    assert repr(lsh.Matches([], 0.99999, 0.8)) == "Matches([], recall=0.99999, min_similarity=0.8)"


def test_many_queries(store):
    """Each answer of `query_docs` is that of `query`, also for a text without shingles and a missing one."""
    store.all.add_docs([sentence(i % 5) for i in range(12)], range(12))
    store.move()
    texts = [*map(sentence, range(7)), ""]
    for named in ({}, {"top": 2}, {"min_similarity": 0.9}, {"top": 1, "min_similarity": 0.7}):
        found = store.all.query_docs(iter(texts), **named)
        assert [list(matches) for matches in found] == [list(store.all.query(text, **named)) for text in texts]
    found = store.all.query_docs([None, sentence(1)], missing="empty", min_similarity=0.99)
    assert [len(matches) for matches in found] == [0, 3]
    assert store.all.query_docs([]) == []


def test_nothing_is_added_and_nothing_asked(store):
    store.all.add_docs([], [])
    store.all.remove_ids([])
    store.move()
    assert (len(store.all), list(store.all), store.all.query(sentence(1))) == (0, [], ())


@pytest.mark.parametrize("num_threads", [1, 3])
def test_the_result_does_not_depend_on_threads(store, num_threads):
    texts = [sentence(i % 5) for i in range(12)]
    store.all.add_docs(texts, range(12), num_threads=num_threads)
    store.move()
    assert store.all.query_docs(texts, num_threads=num_threads) == store.all.query_docs(texts)


def test_the_parameters_have_the_same_names(store):
    store.all.add(text=sentence(1), id="a")
    store.all.add_docs(texts=[sentence(2)], ids=["b"])
    assert store.all.query(text=sentence(1))[0].id == "a"
    assert [match.id for match in store.all.query_docs(texts=[sentence(2)], top=1)[0]] == ["b"]
    assert {type(match) for match in store.all.query(text=sentence(1))} == {lsh.Match}
    store.all.remove(id="a")
    assert list(store.all) == ["b"]
    with pytest.raises(TypeError, match="positional"):
        store.all.query(sentence(1), 0.8)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 14), st.integers(0, 12)), min_size=1, max_size=20), st.data()
)
@strategies.examples(60)
def test_an_index_answers_as_a_cache(tmp_path_factory, documents, data):
    """The same matches, estimates and intervals, from whole fingerprints in any place."""
    cache = lsh.Cache(HASHER, bands=PLAN.bands)
    with lsh.Index.create(
        tmp_path_factory.mktemp("verbs") / "index", HASHER, bands=PLAN, sketch="full", texts=None
    ) as index:
        for doc_id, seed, cut in documents:
            doc = sentence(seed)[cut:]
            for add in (cache.add_doc, index.add):
                add(doc, doc_id)
            if data.draw(st.integers(0, 3)) == 0:
                data.draw(st.sampled_from([index.commit, index.compact]))()
        for seed in range(15):
            top = data.draw(st.one_of(st.none(), st.integers(1, 5)))
            found = index.query(sentence(seed), top=top, min_similarity=0.6)
            wanted = cache.query(sentence(seed), min_similarity=0.6)
            assert [match.similarity for match in found] == [match.similarity for match in wanted][:top]
            assert set(found) <= set(wanted)
            assert len(found) == min(len(wanted), top or len(wanted))


# ---- bad values ----

ROW = np.zeros(64, HASHER.dtype)
TWO = [sentence(1), sentence(2)]


class Table:
    """An object with columns, as a DataFrame."""

    columns = ("a", "b")

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)


def failing() -> Iterator[str]:
    yield sentence(1)
    raise ZeroDivisionError("the source broke")


SIMILARITIES = [(value, "must be .*0 to 1") for value in (-0.1, 1.01, math.nan, math.inf, "0.5", True, [0.5, 0.6])]
IN_ORDER = "ids must have one element for each document, in order, got "
# The bad values of each parameter, and the messages. A value that is a function is called for each use.
BAD: dict[str, list[tuple[Any, str]]] = {
    "text": [(one, "must be str, bytes, bytearray or memoryview, got ") for one in (5, [sentence(1)], ROW)],
    "texts": [
        (sentence(1), "texts must be a collection of texts, got one str"),
        ({sentence(1), "b"}, "texts must be in a definite order, got set"),
        (5, "texts must be .*, got the number 5"),
        ([sentence(1), None], r"texts\[1\] is None"),
        ([sentence(1), 5], r"texts\[1\] must be str, .* got int"),
        (["x"] * 700 + [5], r"texts\[700\] must be"),
        (failing, "the source broke"),
    ],
    "ids": [
        ("ab", f"{IN_ORDER}str; pass a list"),
        (b"ab", f"{IN_ORDER}bytes; pass a list"),
        ({1, 2}, f"{IN_ORDER}set; pass a list"),
        (5, f"{IN_ORDER}int; pass a list"),
        (None, f"{IN_ORDER}NoneType"),
        (np.array(1), f"{IN_ORDER}ndarray"),
        (Table(), r"ids must be one column, got a whole Table; pass table\['ids'\]"),
        ([1], r"ids must have one (id|element) for each (document|text) \(2\), got 1"),
        (lambda: iter([1]), r"ids must have one (id|element) for each (document|text) \(2\), got 1"),
        ([1, 2, 3], r"ids must have one (id|element) for each (document|text) \(2\), got (3|more)"),
        (itertools.count, r"ids must have one (id|element) for each (document|text) \(2\), got more"),
        (failing, "the source broke|must be"),
        ([1, {}], r"ids\[1\] must be .*, got dict"),
        ([1, None], r"ids\[1\] must "),
        (np.array([1.0, np.nan]), r"ids\[[01]\] must be "),
    ],
    "id of a cache": [
        ([1], "must be hashable, got list"),
        ((1, [2]), r"must be hashable, got tuple \(unhashable type: 'list'\)"),
        (None, "must not be None: in a query, "),
        (math.nan, "must be an id, got a missing value"),
    ],
    "id of an index": [
        (one, "must be ")
        for one in (
            *(1.5, None, True, 2**63, -(2**63) - 1, (1,), ["a"]),
            *(bytearray(b"a"), memoryview(b"a"), np.array(5), np.bool_(True)),
        )
    ],
    "time": [
        (one, "must ")
        for one in (datetime(2026, 1, 1), "2026-01-01", math.nan, math.inf, True, 10**30, np.timedelta64(5, "s"))
    ],
    "times": [
        ([1], "times must have one"),
        ([1, "2"], r"times\[1\] must be seconds"),
        ([1, 2, 3], "times must have"),
        (3.0, "times must have one element for each document, in order, got float"),
    ],
    "top": [(value, "top must be") for value in (0, -1, 1.0, "2", True)],
    "min_similarity": SIMILARITIES,
    "min_jaccard": SIMILARITIES,
    "num_threads": [(value, "num_threads must be") for value in (0, -1, 1.5, "2")],
    "missing": [(value, "missing must be one of") for value in ("skip", None, 5)],
}
Calls = dict[str, dict[str, Callable[[Any, Any], object]]]
MANY: Calls = {
    "texts": {
        "add_docs": lambda s, v: s.add_docs(v, range(len(v) if hasattr(v, "__len__") else 2)),
        "query_docs": lambda s, v: s.query_docs(v),
    },
    "ids": {"add_docs": lambda s, v: s.add_docs(TWO, v)},
    "text": {"add": lambda s, v: s.add(v, "x"), "query": lambda s, v: s.query(v)},
    "top": {"query": lambda s, v: s.query(TWO[0], top=v), "query_docs": lambda s, v: s.query_docs(TWO, top=v)},
    "min_similarity": {
        "query": lambda s, v: s.query(TWO[0], min_similarity=v),
        "query_docs": lambda s, v: s.query_docs(TWO, min_similarity=v),
    },
    "num_threads": {
        "add_docs": lambda s, v: s.add_docs(TWO, ["x", "y"], num_threads=v),
        "query_docs": lambda s, v: s.query_docs(TWO, num_threads=v),
    },
    "missing": {
        "add_docs": lambda s, v: s.add_docs(TWO, ["x", "y"], missing=v),
        "query_docs": lambda s, v: s.query_docs(TWO, missing=v),
    },
}
DOORS: dict[str, Calls] = {
    "cache": MANY
    | {
        "doc": {
            "add_doc": lambda s, v: s.add_doc(v, "x"),
            "get_duplicates_of": lambda s, v: s.get_duplicates_of(v, "a"),
            "is_duplicate": lambda s, v: s.is_duplicate(v),
            "remove_doc": lambda s, v: s.remove_doc(v),
        },
        "id of a cache": {
            "add": lambda s, v: s.add(TWO[0], v),
            "add_doc": lambda s, v: s.add_doc(TWO[0], v),
            "add_docs": lambda s, v: s.add_docs(TWO[:1], [v]),
            "add_fingerprint": lambda s, v: s.add_fingerprint(ROW, v),
            "add_fingerprints": lambda s, v: s.add_fingerprints([ROW], [v]),
        },
        "min_jaccard": {
            "get_duplicates_of": lambda s, v: s.get_duplicates_of(TWO[0], min_jaccard=v),
            "get_all_duplicates": lambda s, v: s.get_all_duplicates(v),
            "iter_duplicates": lambda s, v: s.iter_duplicates(v),  # the call raises, not the first iteration
            "filter_candidates": lambda s, v: s.filter_candidates([("a", "b")], v),
        },
    },
    "index": MANY
    | {
        "id of an index": {
            "add": lambda s, v: s.add(TWO[0], v),
            "add_docs": lambda s, v: s.add_docs(TWO[:1], [v]),
        },
        "time": {
            "add": lambda s, v: s.add(TWO[0], "x", time=v),
            "set_time": lambda s, v: s.set_time("a", v),
            "expire": lambda s, v: s.expire(v),
        },
        "times": {"add_docs": lambda s, v: s.add_docs(TWO, ["x", "y"], times=v)},
    },
    "screen": {
        "text": {"check": lambda s, v: s.check(v), "submit": lambda s, v: s.submit(v, "x")},
        "texts": {
            "check_docs": lambda s, v: s.check_docs(v),
            "submit_docs": lambda s, v: s.submit_docs(v, range(len(v) if hasattr(v, "__len__") else 2)),
        },
        "ids": {"submit_docs": lambda s, v: s.submit_docs(TWO, v)},
        "id of an index": {"submit": lambda s, v: s.submit(TWO[0], v)},
        "time": {"submit": lambda s, v: s.submit(TWO[0], "x", time=v)},
        "times": {"submit_docs": lambda s, v: s.submit_docs(TWO, ["x", "y"], times=v)},
        "num_threads": {
            "check_docs": lambda s, v: s.check_docs(TWO, num_threads=v),
            "submit_docs": lambda s, v: s.submit_docs(TWO, ["x", "y"], num_threads=v),
        },
        "missing": {
            "check_docs": lambda s, v: s.check_docs(TWO, missing=v),
            "submit_docs": lambda s, v: s.submit_docs(TWO, ["x", "y"], missing=v),
        },
    },
}
ROWS = [(kind, name, door) for kind, calls in DOORS.items() for name, doors in calls.items() for door in doors]


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


@pytest.mark.parametrize(("kind", "name", "door"), ROWS, ids=["-".join(row).replace(" ", "_") for row in ROWS])
def test_bad_values_are_refused_and_change_nothing(tmp_path, kind, name, door):
    store, documents = a_store(kind, tmp_path / "store")
    documents.add_docs(TWO, ["a", "b"])
    named = {"doc": "text"}.get(name, name)
    call = DOORS[kind][name][door]
    for bad, message in BAD[named]:
        own = bad() if callable(bad) else bad
        with pytest.raises((TypeError, ValueError, ZeroDivisionError), match=message) as raised:
            call(store, own)
        if name in ("doc", "text"):
            assert str(raised.value).startswith(f"{name} must be ")
        assert list(documents) == ["a", "b"]
    assert documents.query(TWO[0])[0].id == "a"  # it still works
    if kind != "cache":
        documents.close()


@pytest.mark.parametrize("kind", ["cache", "index"])
def test_other_bad_questions(tmp_path, kind):
    store, _ = a_store(kind, tmp_path / "store")
    store.add(TWO[0], "a")
    for both, got in (({}, "neither"), ({"text": TWO[0], "id": "a"}, "both"), ({"text": "x", "id": "who"}, "both")):
        with pytest.raises(ValueError, match=f"^text or id must be given, got {got}$"):
            store.query(**both)
    for call in (lambda: store.query(id="who"), lambda: store.remove("who"), lambda: store.remove_ids(["who"])):
        with pytest.raises(KeyError, match=r"^'who'$"):
            call()
    for call in (lambda: store.add_docs(lambda: TWO, [1]), lambda: store.query_docs(lambda: TWO)):
        with pytest.raises(
            TypeError, match=r"^texts must be a collection of texts, got a function; call it, and pass "
        ):
            call()
    assert store.query(TWO[0], min_similarity=np.array(0.9))[0].id == "a"


# What a new cache or index refuses. An error names the parameter.
CREATED: list[tuple[dict[str, Any], str]] = [
    ({"recall": 1}, "recall must be more than 0 and less than 1, got 1"),
    ({"recall": 0}, "recall must be more than 0 and less than 1, got 0"),
    ({"threshold": 0}, "threshold must be more than 0 and at most 1, got 0"),
    ({"threshold": 2}, "threshold must be more than 0 and at most 1, got 2"),
    ({"threshold": math.nan}, "threshold must be more than 0 and at most 1, got nan"),
    (
        {"threshold": 0.01},
        r"num_seeds=(459|481) or more, or threshold=0\.03[68] or more, or recall=0\.(723|676) or less",
    ),
    ({"hasher": 128}, "hasher must be a MinHasher, got int"),
    ({"bands": 20}, "bands must be a Bands or a Plan, got int"),
    ({"bands": lsh.Bands(20, 5)}, "^threshold must be given with bands, because .*; or pass a Plan as bands$"),
    ({"bands": lsh.Bands(20, 5), "threshold": 0.8, "recall": 0.9}, "recall and bands cannot be combined"),
    ({"bands": lsh.Bands(1, 100), "threshold": 1e-9}, "threshold=1e-09 is too low for 1x100, which find no"),
    ({"bands": lsh.Bands(20, 7), "threshold": 0.8}, "bands take 140 components, a fingerprint has 128"),
    ({"bands": lsh.plan(0.7, num_seeds=100), "threshold": 0.8}, "planned for threshold=0.7, got threshold=0.8"),
    ({"bands": lsh.plan(0.7, num_seeds=100), "recall": 0.5}, "recall and bands cannot be combined"),
    ({"hasher": HASHER, "bands": lsh.plan(0.7)}, "bands are planned for num_seeds=128, got num_seeds=64"),
    ({"hasher": HASHER, "num_seeds": 64}, "num_seeds and hasher cannot be combined"),
    ({"hasher": HASHER, "random_state": None}, "random_state and hasher cannot be combined"),
    ({"hasher": HASHER, "shingles": lsh.Shingles(5)}, "shingles must be the hasher's"),
]


@pytest.mark.parametrize(("arguments", "message"), CREATED)
@pytest.mark.parametrize("kind", ["cache", "index"])
def test_bad_parameters_of_a_new_store(tmp_path, kind, arguments, message):
    create = lsh.Cache.create if kind == "cache" else partial(lsh.Index.create, tmp_path / "store")
    with pytest.raises((TypeError, ValueError), match=message):
        create(**arguments)
    assert list(tmp_path.iterdir()) == []
