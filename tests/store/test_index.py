"""What an index does, without failures: adding, removing, asking, times, commits, readers, threads and forks."""

import math
import os
import pickle
import re
from datetime import datetime, timezone

import indexing
import numpy as np
import pytest
import running
import sharing
from estimates import WORDS, pairs_of_texts
from indexing import FERRY, FERRY_LESS, HASHER, SETTINGS, contents, reopened, text

import lsh
import lsh.store.arguments
from lsh.store import query
from lsh.store.index import Index, IndexLockedError


@pytest.mark.parametrize("kind", ["chunks", "values"])
def test_nothing_is_added_of_several_pieces(folder, kind, monkeypatch):
    """A collection with a length is checked as a whole before the first document is added."""

    def made(texts):
        return pyarrow.chunked_array([[one] for one in texts]) if kind == "chunks" else dict(enumerate(texts)).values()

    if kind == "chunks":
        pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    else:
        monkeypatch.setattr(lsh.store.arguments, "BATCH", 2)
    texts = [text(i) for i in range(5)]
    with lsh.Screen.create(folder, hasher=HASHER, texts="stored") as screen:
        for add in (screen.index.add_docs, screen.submit_docs):
            for given, ids, times, message in (
                ([*texts[:4], None], range(5), None, r"texts\[4\] is None"),
                (texts, [0, 1, 2, 3, 4.5], None, r"ids\[4\] must be str, bytes or a whole number, got float"),
                (texts, [*range(5), None], None, r"ids must have one element for each text \(5\), got more"),
                (texts, range(5), [1, 2, 3, 4, "5"], r"times\[4\] must be"),
            ):
                with pytest.raises((TypeError, ValueError), match=message):
                    add(made(given), ids, times=times)
            assert len(screen.index) == 0
        screen.index.add_docs(made(texts), range(5), times=[1, None, np.datetime64("NaT", "s"), 4, 5])
        assert contents(screen.index) == {i: (text(i), [1.0, None, None, 4.0, 5.0][i]) for i in range(5)}


def test_iterators_are_added_in_pieces(folder, monkeypatch):
    monkeypatch.setattr(lsh.store.arguments, "BATCH", 7)
    texts = [text(i) for i in range(60)]
    with Index.create(folder, **SETTINGS) as index:
        index.add_docs(iter(texts[:50]), iter(range(50)), times=(i for i in range(50)))
        assert contents(index) == {i: (texts[i], float(i)) for i in range(50)}
        with pytest.raises(ValueError, match=r"ids must have one element for each text \(56\), got 53"):
            index.add_docs(iter(texts), iter(range(53)))
        with pytest.raises(ValueError, match=r"ids must have one element for each text \(5\), got more"):
            index.add_docs(iter(texts[:5]), iter(range(53)))


def test_times(folder):
    times = {
        0: 0.0,
        1.5: 1.5,
        -1: -1.0,
        np.float32(0.25): 0.25,
        np.float16(60000): 60000.0,
        np.uint32(1_709_210_000): 1_709_210_000.0,
        np.int8(-3): -3.0,
        np.datetime64("1970-01-02"): 86400.0,
        np.datetime64("NaT", "s"): None,
        datetime(1970, 1, 1, 0, 1, tzinfo=timezone.utc): 60.0,
        None: None,
        253_402_300_799: 253_402_300_799.0,  # the last second of the year 9999
        **{np.datetime64("9999", unit): 253_370_764_800.0 for unit in ("Y", "D", "us")},
    }
    with Index.create(folder, **SETTINGS, period=10.0) as index:
        for i, time in enumerate(times):
            index.add(text(i), i, time=time)
        for _ in range(2):
            assert [index.time_of(i) for i in range(len(times))] == list(times.values())
            index.compact()
        with pytest.raises(KeyError):
            index.time_of("b")
        pa = pytest.importorskip("pyarrow")
        for stamps in (pa.array([1, None, 3], pa.timestamp("s", tz="UTC")), pa.array([1, None, 3.0])):
            index.add_docs([text(1), text(2), text(3)], list("abc"), times=stamps)
            assert [index.time_of(doc_id) for doc_id in "abc"] == [1.0, None, 3.0]


def test_segments_are_merged(folder, monkeypatch):
    indexing.small_limits(monkeypatch)
    with Index.create(folder, **SETTINGS) as index:
        for i in range(200):
            index.add(text(i), i)
            if i % 10 == 9:
                index.commit()
        assert 2 <= index.info()["segments"] <= 9
        assert list(index) == list(range(200))
        for i in range(190):
            index.remove(i)
        index.commit()
        assert index.info()["removed"] <= 10
        (folder / "segment-999999").write_bytes(b"left over")
        (folder / "notes.txt").write_text("of the user")
    assert reopened(folder) == {i: (text(i), None) for i in range(190, 200)}
    with Index.open(folder, "a") as index:  # removes files that belong to nothing
        named = index._writer.view.manifest.files()
        assert set(os.listdir(folder)) == named | {"manifest", "lock", "notes.txt"}


def test_an_index_of_other_parameters_is_not_merged(tmp_path):
    with Index.create(tmp_path / "a", **SETTINGS) as index:
        index.add(text(1), 1)
        others = [
            ({"threshold": 0.7}, "the same hasher, got MinHasher"),
            ({**SETTINGS, "texts": None}, "the same texts, got no texts, this index has stored texts"),
            ({**SETTINGS, "threshold": 0.9}, r"the same plan, got threshold 0.9, recall 0.9, bands 2x\d\+"),
        ]
        for i, (settings, message) in enumerate(others):
            with Index.create(tmp_path / f"other{i}", **settings) as other, pytest.raises(ValueError, match=message):
                index.merge(other)
    assert reopened(tmp_path / "a") == {1: (text(1), None)}


@pytest.mark.parametrize("in_process", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_second_writer_is_refused(folder, in_process):
    own = r"this process, or one that was forked from it, has the index .* open for writing already; use that Index, "
    script = (
        "import sys, lsh.index\n"
        "try: lsh.index.Index.open(sys.argv[1], 'a')\n"
        "except lsh.index.IndexLockedError as error: print(error)"
    )
    with Index.create(folder, **SETTINGS) as index:
        if in_process:
            with pytest.raises(IndexLockedError, match=own):
                Index.open(folder, "a")
        else:
            printed = running.process(folder.parent, python=["-c", script, folder]).stdout.decode()
            assert re.search(rf"process {os.getpid()} on .* since 20.*open it for reading", printed)
        index.add(text(1), 1)
        for content in (b"", b"[]", b"[" * 4000, b"{}", b"\xff", b'{"process": 1}'):
            (folder / "lock").write_bytes(content)
            with pytest.raises(IndexLockedError, match="its process is not known; wait until it has closed the index"):
                Index.open(folder, "a")
    Index.open(folder, "a").close()
    with Index.open(folder) as index:
        for change in (lambda: index.add("a", 1), index.commit, index.rollback, index.compact, lambda: index.expire(1)):
            with pytest.raises(ValueError, match=r"open for reading; open it with Index.open\(path, 'a'\)"):
                change()
    if os.name != "nt":
        (folder / "lock").unlink()  # a link is not followed: the file to which it leads would be overwritten
        (folder / "lock").symlink_to(folder / "manifest")
        with pytest.raises(OSError, match="lock"):
            Index.open(folder, "a")
        assert list(reopened(folder)) == [1]


def test_the_folder_does_not_depend_on_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Index.create("index", **SETTINGS) as index, Index.open(b"index") as reader:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir("elsewhere")
        index.add_docs([text(1), text(2)], [1, 2])
        index.compact()
        assert reader.refresh()
        assert sorted(pickle.loads(pickle.dumps(reader))) == [1, 2]
        with pytest.raises(TypeError, match="open for writing cannot be pickled"):
            pickle.dumps(index)
        assert index.path == str(tmp_path / "index")


def test_create_refuses_folders_in_use(folder, tmp_path):
    """Also those with files that are named as those of an index, which a writer deletes if no manifest names them."""
    Index.create(folder, **SETTINGS).close()
    with pytest.raises(FileExistsError, match=r"use Index.open"):
        Index.create(folder, **SETTINGS)
    with pytest.raises(FileExistsError, match="is not empty"):
        Index.create(tmp_path, **SETTINGS)
    for path, mode in ((tmp_path / "nothing", "r"), (tmp_path, "a")):
        with pytest.raises(FileNotFoundError, match=r"no index at .*; correct the path, or make an index with create"):
            Index.open(path, mode)
    assert os.listdir(tmp_path) == ["index"]
    for name in ("log-20240229", "segment-000001", "removed-000002", "log-000001"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_bytes(b"GET /index.html 200\n")
        with pytest.raises(FileExistsError, match="is not empty; create the index in a new folder"):
            Index.create(tmp_path / name, **SETTINGS)
        assert os.listdir(tmp_path / name) == [name]
    with Index.open(folder, "a") as index:
        index.add(text(1), 1)
    for _ in range(2):  # one whose manifest is lost, with a log and with a segment
        manifest = (folder / "manifest").read_bytes()
        (folder / "manifest").unlink()
        with pytest.raises(FileExistsError, match="is not empty"):
            Index.create(folder, **SETTINGS)
        (folder / "manifest").write_bytes(manifest)
        with Index.open(folder, "a") as index:
            assert len(index) == 1
            index.compact()


def test_threads_share_an_index(tmp_path, monkeypatch):
    """With many segments and merges."""
    indexing.small_limits(monkeypatch)
    sharing.change_index(sharing.make_texts(4, 20), 3, 8, tmp_path)  # compares what is stored, found and read
    assert len(Index.open(tmp_path / "shared")) == 3 * 8 * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="requires fork")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # of Python, if another library has threads
def test_a_forked_process_reads_and_does_not_write(folder):
    with Index.create(folder, **SETTINGS) as index:
        index.add(text(1), 1)
        index.commit()
        index.add(text(2), 2)
        child = os.fork()
        if not child:
            code = 1
            try:
                assert [match.id for match in index.query(text(2))] == [2]
                with pytest.raises(RuntimeError, match="before a fork"):
                    index.add(text(3), 3)
                index.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert contents(Index.open(folder)) == {1: (text(1), None)}
        index.add(text(4), 4)
    assert sorted(reopened(folder)) == [1, 2, 4]


def test_texts_are_looked_up(folder):
    known = {"a": FERRY, "b": FERRY_LESS.encode()}
    with Index.create(folder, texts=known.get) as index:
        index.add_docs([FERRY, FERRY_LESS, FERRY], ["a", "b", "c"])
        matches = index.query(FERRY)
        assert [(match.id, match.verified) for match in matches] == [("a", True), ("c", False), ("b", True)]
        assert [match.id for match in index.query(FERRY, top=2)] == ["a", "c"]
        assert [match.id for match in index.query(id="a")] == ["c", "b"]
        assert len(index.query(id="c")) == 2
    with Index.open(folder) as index:
        assert [match.verified for match in index.query(FERRY)] == [False] * 3


def test_texts_are_stored_unless_none_is_given(folder):
    with Index.create(folder / "a") as index:
        index.add_docs([FERRY, FERRY_LESS], ["a", "b"])
        assert index.recall_at(0.8) > 0.98
        assert [(one.id, one.kept) for one in index.deduplicate()] == [("b", "a")]
    message = r"texts=None: .* with a probability of 0\.51 only, and deduplicate and find_pairs need verify='sketch' "
    with pytest.warns(UserWarning, match=message) as caught:
        index = Index.create(folder / "b", texts=None)
    assert caught[0].filename == __file__
    with index:
        index.add_docs([FERRY, FERRY_LESS], ["a", "b"])
        assert 0.5 < index.recall_at(0.8) < 0.52
        assert [one.id for one in index.deduplicate(verify="sketch")] == ["b"]


def test_bands_and_a_threshold(tmp_path):
    """The plan has the recall that the bands reach, less what the filter may lose, as for `deduplicate`."""
    for named in ({"sketch": "4bit"}, {"texts": "some"}, {"period": 0}):
        with pytest.raises((TypeError, ValueError), match=f"^{next(iter(named))} must be"):
            Index.create(tmp_path / "a", **named)
    assert os.listdir(tmp_path) == []
    bands = lsh.Bands(20, 6)
    with Index.create(tmp_path / "a", bands=bands, threshold=0.8, texts="stored") as index:
        assert (index.bands, index.threshold, index.plan.loss) == (bands, 0.8, 0.001)
        assert index.recall == bands.probability(0.8) * 0.999 < index.recall_at(0.8) < bands.probability(0.8)
    with Index.open(tmp_path / "a") as index:
        assert (index.bands, index.threshold) == (bands, 0.8)
    plan = lsh.plan(0.7, 0.9, 64, shingles=lsh.Shingles(3), background=["one text", "another text"])
    with Index.create(tmp_path / "b", bands=plan, threshold=0.7) as index:
        assert (index.plan, index.hasher.num_seeds, index.hasher.shingles) == (plan, 64, lsh.Shingles(3))
        assert Index.open(tmp_path / "b").plan == plan


def test_the_estimate_of_8_bits_is_unbiased():
    """Alpha 0.001: the mean of 400 estimates, whose standard deviation is known, at three similarities."""
    rng = np.random.default_rng(5)
    k, pairs = 128, 400
    for collisions in (0.0, 1 / 256):
        estimator = query.Estimator(k, collisions)
        for equal in range(k + 1):
            low, high = estimator.interval(equal)
            expected = max((equal / k - collisions) / (1 - collisions), 0)
            assert estimator.similarities[equal] == pytest.approx(expected)
            assert 0 <= low <= estimator.similarities[equal] <= high <= 1
            assert estimator.similarities[estimator.min_equal(expected)] >= expected - 1e-15
        assert estimator.interval(k)[1] == estimator.similarities[k] == 1.0
    for similarity in (0.3, 0.5, 0.8):
        same = rng.random((pairs, k)) < similarity
        a, b = (rng.integers(0, 2**32, (pairs, k), dtype=np.uint32) for _ in range(2))
        b = np.where(same, a, b)
        equal = (a.astype(np.uint8) == b.astype(np.uint8)).sum(axis=1)
        p = similarity + (1 - similarity) / 256
        deviation = math.sqrt(p * (1 - p) / k / pairs) / (1 - 1 / 256)
        mean = np.mean([estimator.similarities[e] for e in equal])
        assert abs(mean - similarity) < 3.29 * deviation
        inside = [low <= similarity <= high for low, high in map(estimator.interval, equal.tolist())]
        assert np.mean(inside) > 0.95 - 3.29 * math.sqrt(0.95 * 0.05 / pairs)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("sketch", "texts"),
    [("8bit", "stored"), ("full", None), ("full", "stored"), ("8bit", None)],
)
def test_recall_at_the_threshold(folder, sketch, texts):
    """800 pairs of similarity 0.8: with a recall of 0.99, more than 20 misses have a probability below 0.0001.

    Without texts, and where estimates are asked for, the share that is found is the recall that is promised.
    """
    pairs = pairs_of_texts(80, 100, 800)
    stored, asked = pairs[::2], pairs[1::2]
    assert lsh.jaccard(stored[0], asked[0], shingles=WORDS) == 0.8
    with Index.create(folder, shingles=WORDS, threshold=0.8, recall=0.99, sketch=sketch, texts=texts) as index:
        index.add_docs(stored, range(800))
        index.compact()
        answers = index.query_docs(asked)
        missed = sum(i not in [match.id for match in matches] for i, matches in enumerate(answers))
        assert answers[0].recall == index.recall_at(0.8)
        if texts:
            assert missed <= 20
            assert all(match.similarity == 0.8 for matches in answers for match in matches)
            assert answers[0].recall >= 0.99
        else:
            assert abs(missed / 800 - 1 + index.recall_at(0.8)) < 0.071  # four standard errors
        estimated = lsh.find_pairs(asked, others=index, verify="sketch")
        recall = lsh.deduplicate([], against=index, verify="sketch").parameters["recall"]
        assert abs(sum(i == j for i, j, _ in estimated) / 800 - recall) < 0.071
        assert recall < 0.6
