"""Screening: verdicts by exact and by estimated similarity, submissions one by one, in batches and by threads."""

import inspect
import random
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import indexing
import numpy as np
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st

import lsh
from lsh.store.index import Index, IndexDamagedError
from lsh.store.screen import COMPONENTS, DECISIONS, RECALL, SHINGLES, Screen, Verdict

WORDS = [f"word{number}" for number in range(400)]


def text(number: int, changed: int = 0, length: int = 60) -> str:
    """A text of words; of two texts of the same number, one has `changed` last words replaced."""
    rng = random.Random(number)
    words = [rng.choice(WORDS) for _ in range(length)]
    return " ".join([*words[: length - changed], *(f"other{changed}x{i}" for i in range(changed))])


def exact(a: str, b: str) -> float:
    """The similarity of two texts by three words."""
    return reference.jaccard(a.lower(), b.lower(), 3, "word")


def test_the_defaults(folder):
    with pytest.warns(UserWarning, match="texts=None: .* the threshold of 0.5 with a probability of 0.49 only"):
        made = Screen.create(folder / "estimates", texts=None)
    with made as screen:
        assert screen.index._recalls(0.9, None)[0] > 0.99 > 0.6 > screen.index.recall_at(0.9, min_similarity=0.9) > 0.45
    folder = folder / "texts"
    with Screen.create(folder) as screen:
        assert screen.index.info()["texts"]
        assert (screen.reject, screen.recommend, screen.top) == (0.9, 0.5, 10)
        assert screen.index.hasher.shingles == SHINGLES == lsh.Shingles(3, "word", lowercase=True)
        assert screen.index.hasher.num_seeds == COMPONENTS == 400
        assert screen.index.threshold == screen.recommend
        assert screen.index.recall == RECALL == 0.95
        assert screen.index.path == str(folder)


def test_verdicts_by_estimates(folder):
    """Far from the thresholds, they decide as exact similarities do."""
    expected = [(0, "reject"), (2, "reject"), (12, "similar"), (18, "similar"), (50, "accept")]
    with Screen.create(folder, texts=None) as screen:
        screen.index.add(text(1), "old")
        for changed, verdict in expected:
            new = text(1, changed)
            found = screen.check(new)
            assert found.decision == verdict
            assert (found.decision == "accept") == (found.matches == ())
            for match in found.matches:
                assert not match.verified
                assert match.interval[0] <= exact(text(1), new) <= match.interval[1]
        found = screen.check_docs([text(1, changed) for changed, _ in expected])
        assert [one.decision for one in found] == [verdict for _, verdict in expected]
        assert len(screen.index) == 1


def test_a_similarity_of_just_the_threshold_counts(folder):
    with Screen.create(folder, reject=exact(text(1), text(1, 5)), texts="stored") as screen:
        screen.index.add(text(1), "old")
        assert screen.check(text(1, 5)).decision == "reject"
        assert screen.check(text(1, 6)).decision == "similar"


def test_a_document_is_not_compared_with_itself(folder):
    """An id that is submitted again is a new version of its document."""
    with Screen.create(folder, texts="stored", top=1) as screen:
        assert screen.submit(text(1), "a") == Verdict("accept", ())
        assert screen.submit(text(1, 1), "a") == Verdict("accept", ())
        assert screen.index.text_of("a").decode() == text(1, 1)
        screen.submit(text(1, 12), "b", time=86400)
        verdict, matches = screen.submit(text(1, 13), "b")
        assert (verdict, [match.id for match in matches]) == ("similar", ["a"])  # not by the one with its own id
        assert screen.submit(text(1, 2), "b", time=5).decision == "reject"
        assert screen.index.text_of("b").decode() == text(1, 13)
        assert [screen.submit("", doc_id).decision for doc_id in ("empty", "another")] == ["accept"] * 2
        screen.submit(text(2), 3, time=86400)
    with Index.open(folder) as index:
        assert list(index) == ["a", "b", "empty", "another", 3]
        assert [index.time_of(doc_id) for doc_id in ("a", "b", 3)] == [None, None, 86400]
        for changed in (16, 10, 14, 12, 18):
            with Screen.open(folder, "a") as screen:
                screen.index.add(text(4, changed), changed)
        index.refresh()
        matches = Screen(index, top=3).check(text(4)).matches
        assert [match.id for match in matches] == [10, 12, 14]
        assert (matches.min_similarity, matches.recall >= 0.95) == (0.5, True)


def test_the_thresholds_are_stored_and_can_be_changed(folder):
    """A screen stores its own ones; a reader sees them when it opens the index, and other notes stay."""
    Screen.create(folder, 0.75, 0.5).close()
    note = b'"next":2,"note":{"screen":{"recommend":0.5,"reject":0.75}},"parameters":'
    assert note in (folder / "manifest").read_bytes()
    folder = folder.with_name("other")
    with Screen.create(folder, 0.8, 0.6) as screen:
        screen.index._commit({**screen.index._note, "other": {"value": 1}})
        screen.submit(text(1), 1)
        Screen(screen.index, reject=0.95).store_thresholds()
        assert (screen.reject, screen.recommend) == (0.8, 0.6)
        assert list(Index.open(folder)) == [1]
        with Screen.open(folder, top=2) as reader:
            assert (reader.reject, reader.recommend, reader.top) == (0.95, 0.6, 2)
            with pytest.raises(ValueError, match="open for reading"):
                reader.store_thresholds()
        Screen(screen.index, 0.7, 0.7).store_thresholds()
    with Screen.open(folder, "a") as reader:
        assert (reader.reject, reader.recommend) == (0.7, 0.7)
        assert reader.index._note["other"] == {"value": 1}
    with Index.create(folder.with_name("plain"), threshold=0.5) as index:
        screen = Screen(index)  # any index can be screened
        assert (screen.reject, screen.recommend) == (0.9, 0.5)
        assert [screen.submit("the same text", doc_id).decision for doc_id in "ab"] == ["accept", "reject"]
        screen.commit()
        assert list(Index.open(folder.with_name("plain"))) == ["a"]


def test_a_screen_has_the_settings_of_an_index(folder):
    of_index, own = (inspect.signature(made.create).parameters for made in (Index, Screen))
    assert {**own, "threshold": of_index["threshold"]}.keys() - {"reject", "recommend", "top"} == of_index.keys()
    assert {name: own[name].default for name in own.keys() & of_index} == {
        name: of_index[name].default for name in own.keys() & of_index
    }
    plan = lsh.plan(0.5, 0.9, 64, shingles=lsh.Shingles(2, "word"), background=["red green blue", "red green white"])
    with Screen.create(folder / "a", bands=plan, sketch="full", period=5.0) as screen:
        assert (screen.index.plan, screen.index.info()["sketch"], screen.index.info()["period"]) == (plan, "full", 5.0)


def test_batches_decide_as_single_submissions(tmp_path):
    rng = random.Random(4)
    texts = [text(rng.randrange(12), rng.choice([0, 1, 3, 12, 20, 50])) for _ in range(150)]
    ids = [rng.randrange(60) for _ in texts]
    times = [float(rng.randrange(100)) for _ in texts]
    with (
        Screen.create(tmp_path / "one", texts="stored") as one,
        Screen.create(tmp_path / "many", texts="stored") as many,
    ):
        single = [one.submit(*each, time=time) for *each, time in zip(texts, ids, times)]
        assert many.submit_docs(iter(texts), iter(ids), times=times) == single
        assert indexing.contents(one.index) == indexing.contents(many.index)
        assert {verdict.decision for verdict in single} == set(DECISIONS)
        assert many.check_docs(np.array([each.encode() for each in texts])) == [one.check(each) for each in texts]
        (found,) = many.submit_docs([None], ["missing"], missing="empty")
        assert found.decision == "accept"
        assert many.submit_docs([], []) == many.check_docs([]) == []
    with pytest.raises(ZeroDivisionError), Screen.open(tmp_path / "many", "a") as many:  # noqa: PT012 - it ends by it
        many.submit("another text", "another")
        raise ZeroDivisionError
    with Index.open(tmp_path / "many") as index:
        assert "missing" in index
        assert "another" not in index


@given(data=st.data())
@strategies.examples(30)
def test_verdicts_are_those_of_all_pairs(data, tmp_path_factory):
    """Against brute force by exact similarities; the bands miss next to nothing."""
    submitted = data.draw(
        st.lists(
            st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 2, 5, 10, 15, 25]), st.integers(0, 9)), max_size=25
        )
    )
    known: dict[int, str] = {}
    hasher = lsh.MinHasher(256, scheme="fss", shingles=SHINGLES)
    with Screen.create(
        tmp_path_factory.mktemp("x") / "index", hasher=hasher, recall=0.999999, texts="stored"
    ) as screen:
        for number, changed, doc_id in submitted:
            new = text(number, changed, 40)
            expected = {other: exact(new, known[other]) for other in known if other != doc_id}
            similar = sorted((-score, other) for other, score in expected.items() if score >= 0.5)
            verdict, matches = screen.submit(new, doc_id)
            assert sorted((-match.similarity, match.id) for match in matches) == similar
            best = -similar[0][0] if similar else 0.0
            assert verdict == ("reject" if best >= 0.9 else "similar" if similar else "accept")
            if verdict != "reject":
                known[doc_id] = new
        assert {doc_id: screen.index.text_of(doc_id).decode() for doc_id in screen.index} == known


def test_misuse_is_refused(folder):
    planned = lsh.plan(0.9, 0.99, num_seeds=COMPONENTS)
    for options, message in [
        ({"reject": 1.5}, "reject must be more than 0 and at most 1"),
        ({"reject": 0.5, "recommend": 0.6}, r"recommend=0.6 must be at most reject=0.5; give both"),
        ({"recommend": 0.3, "bands": planned}, "recommend=0.3 has a recall of"),
    ]:
        with pytest.raises(ValueError, match=message):
            Screen.create(folder, **options)
        assert not folder.exists()
        if "bands" not in options:
            with Screen.create(folder, 0.9, 0.3) as screen, pytest.raises(ValueError, match=message):
                Screen(screen.index, **options)
            shutil.rmtree(folder)
    with Screen.create(folder) as screen:
        screen.submit(text(1), 1)
    with Screen.open(folder) as screen:
        with pytest.raises(ValueError, match="open for reading"):
            screen.submit(text(2), 2)
        assert screen.check(text(1)).decision == "reject"


def test_threads_add_one_of_equal_documents(folder):
    rounds, threads = 10, 8
    barrier = threading.Barrier(threads)

    def submit(thread: int) -> list[str]:
        barrier.wait()
        return [screen.submit(text(number), f"{number} of {thread}").decision for number in range(rounds)]

    with Screen.create(folder) as screen, ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(submit, range(threads)))
        assert all(sorted(verdicts) == ["accept", *["reject"] * (threads - 1)] for verdicts in zip(*found))
        assert len(screen.index) == rounds


def test_a_hostile_note_is_refused(folder):
    """The checksum is right."""
    Screen.create(folder).close()
    for note in ([], {"a": 1}, {"screen": {"reject": []}}, {"screen": {"reject": {}}}, 1, "x"):
        indexing.seal_manifest(folder, lambda values, note=note: values.update(note=note))
        with pytest.raises(IndexDamagedError, match="manifest is damaged: "):
            Screen.open(folder)
