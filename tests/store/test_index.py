"""What an index does, without failures: adding, removing, asking, times, commits, readers, threads and forks."""

from __future__ import annotations

import math
import os
import pickle
import random
import re
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

import indexing
import numpy as np
import pytest
import running
from indexing import HASHER, SETTINGS, contents, reopened, text

import lsh
import lsh.segments.manifest
import lsh.store.arguments
import lsh.store.writer
from lsh.segments import file_format, log
from lsh.store import query
from lsh.store.index import Index, IndexLockedError

FERRY = (
    "The ferry to the outer islands was two hours late on Monday because a seal had fallen asleep on the slipway "
    "and the harbour master would not have it woken. Passengers were served soup."
)
FERRY_LESS = FERRY.replace("outer ", "")
IDS = ["a", b"a", 1, "1", -1, 2**63 - 1, -(2**63), "", b"", "\ud800", "é", b"\xff", "x" * 1000]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "index"


@pytest.mark.parametrize("texts", ["stored", None])
@pytest.mark.parametrize("sketch", ["8bit", "full"])
@pytest.mark.parametrize("place", ["memory", "log", "segment"])
def test_similar_documents_are_found(folder, sketch, texts, place):
    with Index.create(folder, sketch=sketch, texts=texts) as index:
        index.add_docs([FERRY, FERRY_LESS, "ONIONS DEAR THIS WEEK " * 3], ["ferry", b"less", 3])
        if place == "log":
            index.commit()
        if place == "segment":
            index.compact()
        matches = index.query(FERRY + "!")
        assert [match.id for match in matches] == ["ferry", b"less"]
        assert all(match.verified == (texts == "stored") for match in matches)
        exact = [lsh.jaccard(FERRY + "!", other) for other in (FERRY, FERRY_LESS)]
        if texts:
            assert [match.similarity for match in matches] == exact
            assert [match.interval for match in matches] == [(s, s) for s in exact]
        else:
            assert all(low <= s <= high for s, (low, high) in zip(exact, [match.interval for match in matches]))
        assert index.query(FERRY + "!", top=1) == matches[:1]
        assert [match.id for match in index.query(id="ferry")] == [b"less"]
        assert index.query(id=3) == ()
        assert index.query(FERRY, min_similarity=0.99)[0].id == "ferry"
        assert len(index.query(FERRY, min_similarity=0.99)) == 1
        assert index.query_docs([FERRY + "!", "", "nothing like it"]) == [matches, (), ()]
        assert matches.recall == index.recall_at(0.8)
        assert matches.recall >= 0.99 if texts else 0.45 < matches.recall < 0.6  # the estimate must reach 0.8, too
        assert matches.min_similarity == index.threshold == 0.8
        assert pickle.loads(pickle.dumps(matches)).recall == matches.recall


def test_columns_of_arrow_are_ids_and_times(folder):
    pa = pytest.importorskip("pyarrow")
    stamps = pa.array([1, None, 3], pa.timestamp("s", tz="UTC"))
    with Index.create(folder, **SETTINGS) as index:
        index.add_docs(pa.array([text(1), text(2), text(3)]), pa.chunked_array([["a", "b"], ["c"]]), times=stamps)
        assert contents(index) == {"a": (text(1), 1.0), "b": (text(2), None), "c": (text(3), 3.0)}
        index.add_docs([text(4), text(5)], pa.array([4, 5]), times=pa.array([1, 2.5]))
        assert [index.time_of(doc_id) for doc_id in (4, 5)] == [1.0, 2.5]
        with pytest.raises(TypeError, match=r"ids\[1\] must be str, bytes or a whole number, got NoneType"):
            index.add_docs([text(6), text(7)], pa.array(["x", None]))


class Codes(list):
    """A list to which there are weak references."""


def test_pieces_are_not_held(folder, monkeypatch):
    """The encoded ids of a column in chunks are not all in memory at a time."""
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    encoded, made, alive = file_format.encoded_ids, [], []

    def noted(*arguments):
        codes = Codes(encoded(*arguments))
        made.append(weakref.ref(codes))
        alive.append(sum(one() is not None for one in made))
        return codes

    monkeypatch.setattr(file_format, "encoded_ids", noted)
    chunks = [[text(10 * i + j) for j in range(10)] for i in range(20)]
    with lsh.Index.create(folder, HASHER) as index:
        ids = [[*range(10 * i, 10 * i + 10)] for i in range(20)]
        index.add_docs(pyarrow.chunked_array(chunks), pyarrow.chunked_array(ids))
        assert len(index) == 200
    assert max(alive) <= 3


class Once:
    """A collection with a length that can be read once, such as a generator in a progress bar."""

    def __init__(self, values):
        self.values, self.size = iter(values), len(values)

    def __len__(self):
        return self.size

    def __iter__(self):
        return self.values


def test_collections_that_are_read_once(folder, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    monkeypatch.setattr(lsh.store.arguments, "PIECE", 2)
    texts = [text(i) for i in range(5)]
    with lsh.Index.create(folder, HASHER) as index:
        index.add_docs(pyarrow.chunked_array([[one] for one in texts]), Once(range(5)))
        index.add_docs(Once(texts), range(5, 10))
        assert len(index) == 10


@pytest.mark.parametrize("kind", ["chunks", "values"])
def test_nothing_is_added_of_several_pieces(folder, kind, monkeypatch):
    """A collection with a length is checked as a whole before the first document is added."""
    if kind == "chunks":
        pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

        def made(texts):
            return pyarrow.chunked_array([[one] for one in texts])
    else:
        monkeypatch.setattr(lsh.store.arguments, "PIECE", 2)

        def made(texts):
            return dict(enumerate(texts)).values()

    texts = [text(i) for i in range(5)]
    with lsh.Screen.create(folder, hasher=HASHER, texts="stored") as screen:
        for add in (screen.index.add_docs, screen.submit_docs):
            with pytest.raises(ValueError, match=r"texts\[4\] is None"):
                add(made([*texts[:4], None]), range(5))
            with pytest.raises(TypeError, match=r"ids\[4\] must be str, bytes or a whole number, got float"):
                add(made(texts), [0, 1, 2, 3, 4.5])
            with pytest.raises(ValueError, match=r"ids must have one element for each text \(5\), got more"):
                add(made(texts), [*range(5), None])
            with pytest.raises(TypeError, match=r"times\[4\] must be"):
                add(made(texts), range(5), times=[1, 2, 3, 4, "5"])
            assert len(screen.index) == 0
        screen.index.add_docs(made(texts), range(5), times=[1, None, np.datetime64("NaT", "s"), 4, 5])
        assert contents(screen.index) == {i: (text(i), [1.0, None, None, 4.0, 5.0][i]) for i in range(5)}


def test_iterators_are_added_in_pieces(folder, monkeypatch):
    monkeypatch.setattr(lsh.store.arguments, "PIECE", 7)
    with Index.create(folder, **SETTINGS) as index:
        index.add_docs((text(i) for i in range(50)), iter(range(50)), times=(i for i in range(50)))
        assert contents(index) == {i: (text(i), float(i)) for i in range(50)}
        with pytest.raises(ValueError, match=r"ids must have one element for each text \(56\), got 53"):
            index.add_docs((text(i) for i in range(60)), iter(range(53)))
        with pytest.raises(ValueError, match=r"ids must have one element for each text \(5\), got more"):
            index.add_docs((text(i) for i in range(5)), iter(range(53)))


# Times.


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        (0, 0.0),
        (1.5, 1.5),
        (-1, -1.0),
        (np.float32(0.25), 0.25),
        (np.float16(60000), 60000.0),
        (np.uint32(1_709_210_000), 1_709_210_000.0),
        (np.int8(-3), -3.0),
        (np.datetime64("1970-01-02"), 86400.0),
        (np.datetime64("NaT", "s"), None),
        (datetime(1970, 1, 1, 0, 1, tzinfo=timezone.utc), 60.0),
        (None, None),
    ],
)
def test_times(folder, time, seconds):
    with Index.create(folder, **SETTINGS) as index:
        index.add(FERRY, "a", time=time)
        assert index.time_of("a") == seconds
        index.compact()
        assert index.time_of("a") == seconds
        with pytest.raises(KeyError):
            index.time_of("b")


@pytest.mark.few(1)
@pytest.mark.parametrize("flushed", [False, True])
def test_expire_removes_what_is_older(folder, monkeypatch, flushed):
    indexing.small_limits(monkeypatch)
    with Index.create(folder, **SETTINGS, period=10.0) as index:
        index.add_docs(
            [text(i) for i in range(100)], range(100), times=[float(i) if i % 9 else None for i in range(100)]
        )
        if flushed:
            index.compact()
        for before in (0.0, 35.0, 35.5, 70.0, 1000.0):
            index.expire(before)
            expected = {i: (text(i), float(i) if i % 9 else None) for i in range(100) if i % 9 == 0 or i >= before}
            assert contents(index) == expected
            index.commit()
            assert reopened(folder) == expected


def test_expire_drops_whole_files(folder):
    with Index.create(folder, **SETTINGS, period=10.0) as index:
        index.add_docs([text(i) for i in range(100)], range(100), times=[float(i) for i in range(100)])
        index.compact()
        before = set(os.listdir(folder))
        assert index.info()["segments"] == 10
        assert index.expire(50.0) == 50
        index.commit()
        after = set(os.listdir(folder))
        assert len([name for name in before & after if name.startswith("segment")]) == 5
        assert not [name for name in after - before if name.startswith("segment")]


def test_similar_segments_are_merged_by_a_commit(folder, monkeypatch):
    monkeypatch.setattr(lsh.store.writer, "MAX_RECENT", 10)
    with Index.create(folder, **SETTINGS) as index:

        def segments(batches: int) -> int:
            for start in range(len(index), len(index) + 10 * batches, 10):
                index.add_docs([text(i) for i in range(start, start + 10)], range(start, start + 10))
            return index.info()["segments"]

        assert segments(16) == 16
        assert segments(1) == 1  # more than 16 are merged without a commit, too
        assert segments(4) == 5
        index.commit()
        assert index.info()["segments"] == 1
        assert segments(3) == 4
        index.commit()
        assert index.info()["segments"] == 4
        assert contents(index) == reopened(folder) == {i: (text(i), None) for i in range(240)}


def test_long_times_have_a_bounded_number_of_files(folder, monkeypatch):
    monkeypatch.setattr(lsh.store.writer, "MAX_SEGMENTS", 10)
    with Index.create(folder, **SETTINGS, period=1.0) as index:
        for i in range(60):
            index.add_docs([text(i), text(100 + i)], [i, 100 + i], times=[float(i), None])
            index._writer._state.needs_manifest = True
            index.commit()
            assert index.info()["segments"] <= 11
        index.compact()
        assert 4 <= index.info()["segments"] <= 10
        index.expire(30.0)
        expected = {i: (text(i), float(i)) for i in range(30, 60)} | {100 + i: (text(100 + i), None) for i in range(60)}
        assert contents(index) == expected
    assert reopened(folder) == expected


# Commits and readers.


@pytest.mark.parametrize("steps", [50, pytest.param(300, marks=pytest.mark.slow)])
def test_readers_see_commits_after_refresh(folder, monkeypatch, steps):
    indexing.small_limits(monkeypatch)
    rng = random.Random(1)
    committed: dict = {}
    with Index.create(folder, **SETTINGS) as index, Index.open(folder) as reader:
        pending: dict = {}
        seen: dict = {}
        for step in range(steps):
            what = rng.choice(["add", "add", "add", "remove", "commit", "refresh"])
            if what == "add":
                doc_id = rng.randrange(30)
                index.add(text(step), doc_id)
                pending[doc_id] = (text(step), None)
            elif what == "remove" and pending:
                doc_id = rng.choice(sorted(pending))
                index.remove(doc_id)
                del pending[doc_id]
            elif what == "commit":
                index.commit()
                committed = dict(pending)
            elif what == "refresh":
                assert reader.refresh() or seen == committed
                seen = committed
            assert contents(reader) == seen
            assert contents(index) == pending


def test_rollback(folder, monkeypatch):
    indexing.small_limits(monkeypatch)
    with Index.create(folder, **SETTINGS) as index:
        index.add_docs([text(i) for i in range(20)], range(20))
        index.commit()
        expected = contents(index)
        for count in (1, 30):
            index.remove(3)
            index.add_docs([text(100 + i) for i in range(count)], range(count))
            index.rollback()
            assert contents(index) == expected
        index.add(text(50), 50)
    assert reopened(folder) == expected | {50: (text(50), None)}


def test_an_exception_drops_what_is_pending(folder):
    with Index.create(folder, **SETTINGS) as index:
        index.add(text(1), 1)
    with pytest.raises(TypeError), Index.open(folder, "a") as index:  # noqa: PT012 - one block that ends by it
        index.add(text(2), 2)
        index.add(text(3), None)
    assert reopened(folder) == {1: (text(1), None)}
    index.close()
    with pytest.raises(ValueError, match="the index is closed; open it again"):
        index.query(FERRY)


def test_a_reader_that_is_not_refreshed(folder, monkeypatch):
    """Its files are removed by the writer, and it still answers from them."""
    indexing.small_limits(monkeypatch)
    with Index.create(folder, **SETTINGS) as index:
        index.add_docs([text(i) for i in range(20)], range(20))
        index.commit()
        reader = Index.open(folder)
        index.add_docs([text(i) for i in range(10, 40)], range(10, 40))
        index.remove(3)
        index.compact()
        assert contents(reader) == {i: (text(i), None) for i in range(20)}
        assert reader.info()["documents"] == 20
        reader.verify()  # the newest commit
        assert reader.refresh()
        assert contents(reader) == {i: (text(i), None) for i in range(40) if i != 3}
        assert not reader.refresh()


def test_files_that_belong_to_nothing_are_removed(folder, monkeypatch):
    indexing.small_limits(monkeypatch)
    with Index.create(folder, **SETTINGS) as index:
        for i in range(100):
            index.add(text(i), i % 30)
            index.commit()
        (folder / "segment-999999").write_bytes(b"left over")
        (folder / "notes.txt").write_text("of the user")
    with Index.open(folder, "a") as index:
        named = index._writer.view.manifest.files()
        assert set(os.listdir(folder)) == named | {"manifest", "lock", "notes.txt"}
        assert len(index.info()["hasher"]) > 3
        assert index.info()["documents"] == 30


def test_segments_are_merged(folder, monkeypatch):
    indexing.small_limits(monkeypatch)
    with Index.create(folder, **SETTINGS) as index:
        for i in range(400):
            index.add(text(i), i)
            if i % 10 == 9:
                index.commit()
        assert 2 <= index.info()["segments"] <= 9
        assert list(index) == list(range(400))
        for i in range(390):
            index.remove(i)
        index.commit()
        assert index.info()["removed"] <= 10
    assert reopened(folder) == {i: (text(i), None) for i in range(390, 400)}


def test_many_removals_are_not_kept_for_the_log(folder, monkeypatch):
    with Index.create(folder, **SETTINGS) as index:
        index.add_docs([text(i) for i in range(30)], range(30))
        index.compact()
        indexing.small_limits(monkeypatch)
        for i in range(14):
            index.remove(i)
        assert len(index._writer._state.changes) == 0
        index.rollback()
        assert len(index) == 30
        for i in range(6):
            index.remove(i)
        index.commit()
        assert index.info()["generation"] == 2
        index.remove(6)
        index.commit()
        assert index.info()["generation"] == 3
    assert sorted(reopened(folder)) == list(range(7, 30))


def test_merge_adds_another_index(tmp_path, monkeypatch):
    indexing.small_limits(monkeypatch)
    with Index.create(tmp_path / "a", **SETTINGS) as first, Index.create(tmp_path / "b", **SETTINGS) as second:
        first.add_docs([text(i) for i in range(30)], range(30))
        second.add_docs([text(100 + i) for i in range(20, 50)], range(20, 50))
        second.remove(49)
        first.merge(second)
        expected = {i: (text(i), None) for i in range(20)} | {i: (text(100 + i), None) for i in range(20, 49)}
        assert contents(first) == expected
        others = [
            ({"threshold": 0.7}, "the same hasher, got MinHasher"),
            ({**SETTINGS, "texts": None}, "the same texts, got no texts, this index has stored texts"),
            ({**SETTINGS, "threshold": 0.9}, r"the same plan, got threshold 0.9, recall 0.9, bands 2x\d\+"),
        ]
        for i, (settings, message) in enumerate(others):
            with Index.create(tmp_path / f"other{i}", **settings) as other, pytest.raises(ValueError, match=message):
                first.merge(other)
    assert reopened(tmp_path / "a") == expected


def test_a_second_writer_is_refused(folder):
    with Index.create(folder, **SETTINGS) as index:
        own = (
            r"this process, or one that was forked from it, has the index .* open for writing already; use that Index, "
        )
        with pytest.raises(IndexLockedError, match=own):
            Index.open(folder, "a")
        script = (
            "import sys, lsh.index\n"
            "try: lsh.index.Index.open(sys.argv[1], 'a')\n"
            "except lsh.index.IndexLockedError as error: print(error)"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, str(folder)],
            capture_output=True,
            cwd=folder.parent,
            env=running.environment(),
            text=True,
        )
        assert re.search(rf"process {os.getpid()} on .* since 20.*open it for reading", done.stdout)
        index.add(text(1), 1)
    Index.open(folder, "a").close()


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege")
def test_a_lock_that_is_a_link_is_not_followed(folder, tmp_path):
    """As in an index from someone else: the file to which it leads would be overwritten."""
    Index.create(folder, **SETTINGS).close()
    (tmp_path / "letter").write_text("of the user")
    (folder / "lock").unlink()
    (folder / "lock").symlink_to(tmp_path / "letter")
    with pytest.raises(OSError, match="lock"):
        Index.open(folder, "a")
    assert (tmp_path / "letter").read_text() == "of the user"
    assert reopened(folder) == {}


@pytest.mark.parametrize("content", [b"", b"[]", b"[" * 4000, b"{}", b"\xff", b'{"process": 1}'])
def test_a_lock_with_other_content_is_a_lock(folder, content):
    with Index.create(folder, **SETTINGS):
        (folder / "lock").write_bytes(content)
        with pytest.raises(IndexLockedError, match="its process is not known; wait until it has closed the index"):
            Index.open(folder, "a")


def test_a_reader_cannot_write(folder):
    Index.create(folder, **SETTINGS).close()
    with Index.open(folder) as index:
        for change in (lambda: index.add("a", 1), index.commit, index.rollback, index.compact, lambda: index.expire(1)):
            with pytest.raises(ValueError, match=r"open for reading; open it with Index.open\(path, 'a'\)"):
                change()


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


def test_create_refuses_folders_in_use(tmp_path):
    Index.create(tmp_path / "index", **SETTINGS).close()
    with pytest.raises(FileExistsError, match=r"use Index.open"):
        Index.create(tmp_path / "index", **SETTINGS)
    with pytest.raises(FileExistsError, match="is not empty"):
        Index.create(tmp_path, **SETTINGS)
    with pytest.raises(FileNotFoundError, match=r"no index at .*; correct the path, or make an index with create"):
        Index.open(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match=r"no index at .*; correct the path, or make an index with create"):
        Index.open(tmp_path, "a")
    assert os.listdir(tmp_path) == ["index"]


@pytest.mark.parametrize("name", ["log-20240229", "segment-000001", "removed-000002", "log-000001"])
def test_create_deletes_no_file_of_others(folder, name):
    """They have names as the files of an index, which a writer deletes if no manifest names them."""
    folder.mkdir()
    (folder / name).write_bytes(b"GET /index.html 200\n")
    with pytest.raises(FileExistsError, match="is not empty; create the index in a new folder"):
        Index.create(folder, **SETTINGS)
    assert os.listdir(folder) == [name]


def test_an_index_without_its_manifest_is_not_replaced(folder):
    with Index.create(folder, **SETTINGS) as index:
        index.add_docs([text(1), text(2)], [1, 2])
    for state in ("log", "segment"):
        manifest = (folder / "manifest").read_bytes()
        (folder / "manifest").unlink()
        with pytest.raises(FileExistsError, match="is not empty"):
            Index.create(folder, **SETTINGS)
        (folder / "manifest").write_bytes(manifest)
        with Index.open(folder, "a") as index:
            assert (len(index), index.info()["segments"]) == (2, int(state == "segment"))
            index.compact()


@pytest.mark.parametrize("left", [b"", bytes(64), b"lsh-w", log.header(1), log.header(1)[:20] + bytes(44)])
def test_create_goes_on_after_a_crash(folder, left):
    folder.mkdir()
    (folder / "log-000001").write_bytes(left)
    (folder / "manifest.new").write_bytes(b"lsh-mani")
    Index.create(folder, **SETTINGS).close()
    assert reopened(folder) == {}
    assert len(os.listdir(folder)) == 3


def test_threads_share_an_index(folder, monkeypatch):
    indexing.small_limits(monkeypatch)
    with Index.create(folder, **SETTINGS) as index, Index.open(folder) as reader:
        failures = []

        def write(first):
            for i in range(first, first + 25):
                index.add(text(i), i)
                if i % 5 == 0:
                    index.commit()

        def read(one):
            while not stop.is_set():
                one.refresh()
                ids = list(one)
                if len(set(ids)) != len(ids):
                    failures.append(ids)
                for doc_id in ids[:3]:
                    if [match.id for match in one.query(text(doc_id))] != [doc_id]:
                        failures.append(doc_id)

        stop = threading.Event()
        readers = [threading.Thread(target=read, args=(one,)) for one in (index, reader)]
        for thread in readers:
            thread.start()
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(write, [0, 100, 200]))
        stop.set()
        for thread in readers:
            thread.join()
        assert failures == []
        assert sorted(index) == [*range(25), *range(100, 125), *range(200, 225)]


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


# Verification and estimates.


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
    with Index.open(folder, texts=lambda doc_id: 5) as index, pytest.raises(TypeError, match="texts must return"):
        index.query(FERRY)


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
        assert lsh.deduplicate([FERRY], against=index, verify="sketch").keep.tolist() == [False]
        with pytest.raises(ValueError, match="texts"):
            index.deduplicate()


def test_an_index_without_sketches_verifies_everything(folder):
    with pytest.raises(ValueError, match="sketch='none' requires texts"):
        Index.create(folder, sketch="none", texts=None)
    with Index.create(folder, sketch="none", texts="stored") as index:
        index.add_docs([FERRY, FERRY_LESS], ["a", "b"])
        assert [match.id for match in index.query(FERRY)] == ["a", "b"]
        index.compact()
        assert [match.id for match in index.query(FERRY, top=1)] == ["a"]
        assert [match.id for match in index.query(id="b")] == ["a"]
    with Index.create(folder / "b", sketch="none", texts={}.get) as index:
        index.add_docs([FERRY], ["a"])
    with Index.open(folder / "b") as index, pytest.raises(ValueError, match="neither sketches nor texts"):
        index.query(FERRY)


def test_a_query_below_the_bands_is_refused(folder):
    with Index.create(folder, threshold=0.8) as index:
        assert index.query(FERRY, min_similarity=0.7).recall == index.recall_at(0.7, min_similarity=0.7) < 0.9
        with pytest.raises(ValueError, match=r"min_similarity=0.3 has a recall of 0.0.* threshold=0.3"):
            index.query(FERRY, min_similarity=0.3)


def test_parameters_that_clash(folder):
    hasher, plan = lsh.MinHasher(64), lsh.plan(0.8, 0.9, 64)
    for named, message in [
        ({"sketch": "4bit"}, "sketch must be one of"),
        ({"texts": "some"}, "texts must be"),
        ({"period": 0}, "period must be"),
        ({"period": np.timedelta64(1, "D")}, "period must be a number of seconds, got timedelta64"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            Index.create(folder, **named)
    assert not folder.exists()
    with Index.create(folder, hasher, bands=plan) as index:
        assert (index.hasher, index.plan, index.bands) == (hasher, plan, plan.bands)
        assert Index.open(folder).plan == plan
        assert "open for writing" in repr(index)


def test_bands_and_a_threshold(tmp_path):
    """The plan has the recall that the bands reach, less what the filter may lose, as for `deduplicate`."""
    bands = lsh.Bands(20, 6)
    with Index.create(tmp_path / "a", bands=bands, threshold=0.8, texts="stored") as index:
        assert (index.bands, index.threshold, index.plan.loss) == (bands, 0.8, 0.001)
        assert index.recall == bands.probability(0.8) * 0.999 < index.recall_at(0.8) < bands.probability(0.8)
        index.add(FERRY, 1)
        assert [match.id for match in index.query(FERRY)] == [1]
    with Index.open(tmp_path / "a") as index:
        assert (index.bands, index.threshold) == (bands, 0.8)
    plan = lsh.plan(0.7, 0.9, 64, shingles=lsh.Shingles(3), background=["one text", "another text"])
    with Index.create(tmp_path / "b", bands=plan, threshold=0.7) as index:
        assert (index.plan, index.hasher.num_seeds, index.hasher.shingles) == (plan, 64, lsh.Shingles(3))


def test_the_estimate_of_8_bits_is_unbiased():
    """Alpha 0.001: the mean of 400 estimates, whose standard deviation is known, at three similarities."""
    rng = np.random.default_rng(5)
    k, pairs = 128, 400
    estimator = query.Estimator(k, 1 / 256)
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


@pytest.mark.parametrize("collisions", [0.0, 1 / 256])
def test_estimates_by_the_formula(collisions):
    estimator = query.Estimator(64, collisions)
    for equal in range(65):
        low, high = estimator.interval(equal)
        expected = max((equal / 64 - collisions) / (1 - collisions), 0)
        assert estimator.similarities[equal] == pytest.approx(expected)
        assert 0 <= low <= estimator.similarities[equal] <= high <= 1
        assert estimator.similarities[estimator.min_equal(expected)] >= expected - 1e-15
    assert estimator.interval(64)[1] == 1.0
    assert estimator.similarities[64] == 1.0


def test_top_matches_are_the_best_of_all(folder, monkeypatch):
    indexing.small_limits(monkeypatch)
    base = " ".join(str(i) for i in range(200))
    texts = [base + " " + "x" * i for i in range(0, 60, 2)]
    random.Random(3).shuffle(texts)
    for stored in ("stored", None):
        with Index.create(folder / str(stored), texts=stored, threshold=0.8) as index:
            index.add_docs(texts, range(len(texts)))
            everything = index.query(base)
            assert len(everything) == len(texts)
            assert list(everything) == sorted(everything, key=lambda match: -match.similarity)
            for top in (1, 2, 7, 29, 100):
                assert index.query(base, top=top) == everything[:top]


def test_codes_of_ids_round_trip():
    codes = file_format.encoded_ids("ids", IDS)
    assert [file_format.decoded_id(code) for code in codes] == IDS
    assert codes == [file_format.encoded_id("id", doc_id) for doc_id in IDS]
    hashes = file_format.hashed_ids(codes)
    assert hashes.tolist() == [file_format.checksum(code) for code in codes]
    assert len(set(hashes.tolist())) == len(IDS)
    assert HASHER.num_seeds == 16


@pytest.mark.few(1)
@pytest.mark.parametrize("sketch", ["8bit", "full", "none"])
def test_recall_at_the_threshold(folder, sketch):
    """800 pairs of similarity 0.8: with a recall of 0.99, more than 20 misses have a probability below 0.0001."""
    rng = random.Random(8)
    pairs = []
    for _ in range(800):
        words = [f"w{number}" for number in rng.sample(range(10**6), 100)]
        pairs.append((" ".join(words[:90]), " ".join(words[:80] + words[90:])))  # 80 of 100 words are shared
    shingles = lsh.Shingles(1, unit="word")
    assert lsh.jaccard(*pairs[0], shingles=shingles) == 0.8
    with Index.create(folder, shingles=shingles, threshold=0.8, recall=0.99, sketch=sketch, texts="stored") as index:
        index.add_docs([stored for stored, _ in pairs], range(800))
        index.compact()
        answers = index.query_docs([asked for _, asked in pairs])
    missed = sum(i not in [match.id for match in matches] for i, matches in enumerate(answers))
    assert missed <= 20
    assert all(match.similarity == 0.8 for matches in answers for match in matches)
    assert answers[0].recall >= 0.99


def no_space(*_: object) -> None:
    raise OSError("no space")


def test_a_note_is_committed_with_the_changes(tmp_path, monkeypatch):
    """It is pending after a commit that failed, and gone after a rollback; another commit leaves it as it is."""
    first, second = {"use": {"value": 1}}, {"use": {"value": 2}, "other": {"text": "a"}}
    with Index.create(tmp_path / "x", **SETTINGS) as index:
        index.add(text(1), 1)
        index._commit(first)
        reader = Index.open(tmp_path / "x")
        assert (list(reader), reader._note) == ([1], first)
        generation = index.info()["generation"]
        index.add(text(2), 2)
        index._commit(first)
        assert index.info()["generation"] == generation  # the same note: the commit is in the log
        index.add(text(3), 3)
        with monkeypatch.context() as patch:
            patch.setattr(lsh.store.writer, "write_new_manifest", no_space)
            with pytest.raises(OSError, match="no space"):
                index._commit(second)
        assert index._note == first
        reader.refresh()
        assert (list(reader), reader._note) == ([1, 2], first)
        index.commit()
        reader.refresh()
        assert (list(reader), reader._note) == ([1, 2, 3], second)
        with monkeypatch.context() as patch:
            patch.setattr(lsh.store.writer, "write_new_manifest", no_space)
            with pytest.raises(OSError, match="no space"):
                index._commit(first)
        index.rollback()
        index.compact()
        index.add(text(4), 4)
    reader.refresh()
    assert (list(reader), reader._note) == ([1, 2, 3, 4], second)


def test_no_index_is_made_by_its_class(tmp_path):
    with pytest.raises(TypeError, match=r"use Index\.open\(path\), or Index\.create\(path\)"):
        lsh.Index(tmp_path)
    with pytest.raises(TypeError, match=r"^index must be an Index, got str; for a path, use Screen\.open$"):
        lsh.Screen(str(tmp_path))


@pytest.mark.parametrize("made", [lsh.Index, lsh.Screen])
def test_random_state_means_what_it_means_elsewhere(made, tmp_path):
    """0 by default, ``None`` draws a new seed, which is stored, and it is an error beside a hasher."""

    def hasher(name, **settings):
        with made.create(tmp_path / name, **settings) as opened:
            return (opened if made is lsh.Index else opened.index).hasher

    assert hasher("default").random_state == hasher("0", random_state=0).random_state == 0
    drawn = {hasher(f"drawn {i}", random_state=None).random_state for i in range(3)}
    assert len(drawn) == 3
    with lsh.Index.open(tmp_path / "drawn 0") as index:
        assert index.hasher.random_state in drawn
    for state in (None, 5):
        with pytest.raises(ValueError, match=r"^random_state and hasher cannot be combined; give one of them$"):
            hasher("both", hasher=lsh.MinHasher(400), random_state=state)
