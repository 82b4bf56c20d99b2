"""The operations that `Cache` and `Index` have in common: one body of tests over both, and equal answers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

import lsh

HASHER = lsh.MinHasher(64, scheme="fss", shingles=lsh.Shingles(3))
PLAN = lsh.plan(0.6, 0.95, 64)
WORDS = ["ferry", "outer", "islands", "late", "monday", "because", "seal", "fallen", "asleep", "slipway", "soup"]


class Store:
    """A cache or an index by the same names."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.all: Any
        if kind == "cache":
            self.all = lsh.Cache(HASHER, bands=PLAN.bands)
        else:
            self.all = lsh.Index.create(folder, HASHER, bands=PLAN, sketch="full", texts=None)
        self.kind, self.add, self.remove = kind, self.all.add, self.all.remove

    def move(self) -> None:
        """Move the documents of an index into the log, or into a segment."""
        if self.kind == "log":
            self.all.commit()
        elif self.kind == "segment":
            self.all.compact()


@pytest.fixture(params=["cache", "memory", "log", "segment"])
def store(request, tmp_path):
    made = Store(request.param, tmp_path / "index")
    yield made
    if made.kind != "cache":
        made.all.close()


def sentence(seed: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=12))


def test_adding_and_removing(store):
    store.add(sentence(1), "a")
    store.all.add_docs([sentence(2), sentence(3), sentence(1)], ["b", 3, b"c"])
    store.move()
    assert list(store.all) == ["a", "b", 3, b"c"]
    assert len(store.all) == 4
    assert 3 in store.all
    assert "3" not in store.all
    assert [match.id for match in store.all.query(sentence(1), min_similarity=0.99)] == ["a", b"c"]
    assert [match.id for match in store.all.query(id="a", min_similarity=0.99)] == [b"c"]
    store.remove("a")
    with pytest.raises(KeyError):
        store.remove("a")
    store.move()
    assert [match.id for match in store.all.query(sentence(1), min_similarity=0.99)] == [b"c"]
    store.add(sentence(4), 3)  # in place of the stored one
    store.move()
    assert sorted(map(str, store.all)) == ["3", "b", "b'c'"]
    assert len(store.all.query(sentence(3), min_similarity=0.99)) == 0
    assert [match.id for match in store.all.query(sentence(4), min_similarity=0.99)] == [3]


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
    with pytest.raises(ValueError, match="None"):
        store.all.query_docs(["a", None])


@pytest.mark.parametrize("num_threads", [1, 3])
def test_the_result_does_not_depend_on_threads(store, num_threads):
    texts = [sentence(i % 5) for i in range(12)]
    store.all.add_docs(texts, range(12), num_threads=num_threads)
    store.move()
    assert store.all.query_docs(texts, num_threads=num_threads) == store.all.query_docs(texts)
    for call in (
        lambda: store.all.add_docs(["a"], ["x"], num_threads=0),
        lambda: store.all.query_docs(["a"], num_threads=0),
    ):
        with pytest.raises(ValueError, match="num_threads must be"):
            call()
    assert len(store.all) == 12


def test_wrong_arguments(store):
    for call in (
        lambda: store.add(None, "a"),
        lambda: store.add("text", None),
        lambda: store.all.add_docs(["a", None], ["x", "y"]),
        lambda: store.all.add_docs(["a"], ["x", "y"]),
        lambda: store.all.add_docs("text", ["x"]),
        lambda: store.all.query(),
        lambda: store.all.query("text", id="a"),
        lambda: store.all.query(5),
        lambda: store.all.query("text", top=0),
        lambda: store.all.query_docs(["text"], top=0),
        lambda: store.all.query_docs("text"),
        lambda: store.all.query("text", min_similarity=2),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()
    assert len(store.all) == 0
    for call in (lambda: store.all.query(id="who"), lambda: store.remove("who")):
        with pytest.raises(KeyError, match=r"^'who'$"):
            call()


def test_the_parameters_have_the_same_names(store):
    store.all.add(text=sentence(1), id="a")
    store.all.add_docs(texts=[sentence(2)], ids=["b"])
    assert store.all.query(text=sentence(1))[0].id == "a"
    assert [match.id for match in store.all.query_docs(texts=[sentence(2)], top=1)[0]] == ["b"]
    assert {type(match) for match in store.all.query(text=sentence(1))} == {lsh.Match}
    store.all.remove(id="a")
    assert list(store.all) == ["b"]


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
