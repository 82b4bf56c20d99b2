"""What is left after failures: each operation of the disk failing, losses of power, kills, a full disk, damaged files.

After each of them, what `commit` returned for is there, nothing is half there, or an error names the file.
"""

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import indexing
import pytest
import running
import strategies
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from indexing import SETTINGS, contents, reopened, text
from losing_disk import CrashError, LosingDisk

import lsh.store.index
from lsh.segments.disk import Disk
from lsh.store.index import Index, IndexDamagedError

Contents = dict


def use_disk(monkeypatch: pytest.MonkeyPatch, disk: Disk) -> None:
    monkeypatch.setattr(lsh.store.index, "Disk", lambda: disk)


class Story:
    """The same changes each time; `committed` and `pending` say what must be there, and what may be."""

    def __init__(self) -> None:
        self.committed: Contents | None = None  # None: there is no index yet
        self.attempted: Contents | None = None  # what a commit that has not returned would make
        self.pending: Contents = {}
        self.index: Index | None = None

    def commit(self, index: Index) -> None:
        self.attempted = dict(self.pending)
        index.commit()
        self.committed, self.attempted = self.attempted, None

    def create(self, folder: Path) -> Index:
        self.attempted = {}
        self.index = Index.create(folder, **SETTINGS, period=40.0)
        self.committed, self.attempted = {}, None
        return self.index

    def add(self, index: Index, first: int, count: int) -> None:
        numbers = range(first, first + count)
        index.add_docs([text(i) for i in numbers], [i % 40 for i in numbers], times=[float(i) for i in numbers])
        self.pending.update({i % 40: (text(i), float(i)) for i in numbers})

    def run(self, index: Index) -> None:
        """Small commits, large ones, removals from all parts, merges, expiry."""
        self.add(index, 0, 2)
        self.commit(index)
        self.add(index, 2, 3)
        index.remove(1)
        del self.pending[1]
        self.commit(index)
        self.add(index, 10, 15)
        self.commit(index)
        for first in (30, 42, 50, 55):
            self.add(index, first, 6)
            index.remove(first % 40)
            del self.pending[first % 40]
            self.commit(index)
        index.expire(45.0)
        self.pending = {i: one for i, one in self.pending.items() if one[1] >= 45.0}
        self.commit(index)
        self.attempted = dict(self.pending)
        index.compact()
        self.committed, self.attempted = self.attempted, None
        self.add(index, 80, 2)
        self.commit(index)

    def tell(self, folder: Path) -> BaseException | None:
        """Create the index and run; return the error that ended it."""
        try:
            self.run(self.create(folder))
        except (OSError, CrashError) as error:
            return error
        return None

    def possible(self) -> list[Contents | None]:
        """What may be there."""
        return [self.committed, *([] if self.attempted is None else [self.attempted])]


def stored(folder: Path) -> Contents | None:
    """What is there: `None` if no index."""
    if not (folder / "manifest").exists():
        with pytest.raises(FileNotFoundError, match="no index at"):
            Index.open(folder)
        return None
    return reopened(folder)


def number_of_steps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    disk = LosingDisk()
    use_disk(monkeypatch, disk)
    story = Story()
    with story.create(folder) as index:
        story.run(index)
    assert stored(folder) == story.committed
    assert {"create", "write", "sync", "rename", "remove", "open", "sync folder"} <= {
        step.rpartition(" ")[0] for step in disk.steps
    }
    return disk.count


def chosen_steps(count: int, some: bool) -> range:
    """All steps, or about twelve of them."""
    return range(1, count + 1) if not some else range(1 + count % 7, count + 1, max(count // 12, 1))


COMPLETE = [
    pytest.mark.slow,
    pytest.mark.skipif("LSH_TEST_FULL" not in os.environ, reason="takes minutes: LSH_TEST_FULL=1 runs it"),
]
few_or_all = pytest.mark.parametrize("some", [True, pytest.param(False, marks=COMPLETE)])


@pytest.mark.few(1)
@few_or_all
@pytest.mark.parametrize("afterwards", ["retry", "rollback", "reopen", "close"])
@pytest.mark.parametrize("number", [errno.EIO, pytest.param(errno.ENOSPC, marks=pytest.mark.slow)])
def test_each_operation_fails(tmp_path, monkeypatch, afterwards, number, some):
    indexing.small_limits(monkeypatch)
    failures = 0
    for step in chosen_steps(number_of_steps(tmp_path / "whole", monkeypatch), some):
        folder = tmp_path / str(step)
        use_disk(monkeypatch, LosingDisk(fails_at=step, number=number))
        story = Story()
        error = story.tell(folder)
        index = story.index
        assert error is None or getattr(error, "errno", None) == number
        failures += error is not None
        assert stored(folder) in story.possible(), step
        if index is None:
            index = Index.create(folder, **SETTINGS) if not (folder / "manifest").exists() else Index.open(folder, "a")
            story.committed, story.attempted = {}, None
            index.close()
        elif afterwards == "retry":  # documents that were added before the failure are still pending
            now = contents(index)
            index.commit()
            assert stored(folder) == now
        elif afterwards == "rollback":
            index.rollback()
            assert contents(index) == story.committed
            index.add(text(1), "more")
            index.commit()
            assert stored(folder) == story.committed | {"more": (text(1), None)}
        elif afterwards == "close":
            with pytest.raises(ZeroDivisionError), index:
                raise ZeroDivisionError
        if afterwards != "retry" and index is not None:
            index._release()
            left = stored(folder)
            with Index.open(folder, "a") as index:
                assert contents(index) == left
                index.add(text(5), "last")
            assert stored(folder) == left | {"last": (text(5), None)}
        else:
            index._release()
        shutil.rmtree(folder)
    assert failures > 10


def lose_again(monkeypatch: pytest.MonkeyPatch, folder: Path, found: Contents, rng: random.Random) -> None:
    """Open what is left after a loss of power, and commit; in half of the cases, the power is lost again."""
    disk, after = LosingDisk(ends_at=rng.choice([0, rng.randint(1, 12)])), folder.with_name(f"{folder.name} again")
    disk.know(folder)
    use_disk(monkeypatch, disk)
    index, possible = None, [found | {"last": (text(7), None)}]
    try:
        index = Index.open(folder, "a")
        index.add(text(7), "last")
        index.commit()
    except CrashError:
        possible.append(found)
    if index is not None:
        index._release()
    disk.survivors(after, rng)
    use_disk(monkeypatch, LosingDisk())
    assert stored(after) in possible


@few_or_all
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_power_is_lost_at_each_operation(tmp_path, monkeypatch, seed, some):
    indexing.small_limits(monkeypatch)
    steps = chosen_steps(number_of_steps(tmp_path / "whole", monkeypatch), some)
    for step in steps:
        folder, left = tmp_path / "before" / str(step), tmp_path / "after" / str(step)
        left.parent.mkdir(exist_ok=True)
        disk = LosingDisk(ends_at=step)
        use_disk(monkeypatch, disk)
        story = Story()
        assert isinstance(story.tell(folder), CrashError)
        if story.index is not None:
            story.index._release()
        assert stored(folder) in story.possible(), step  # the process was killed
        rng = random.Random(1000 * seed + step)
        for attempt in range(2 if some else 3):  # the power was lost
            survived = left / str(attempt)
            left.mkdir(exist_ok=True)
            disk.survivors(survived, rng)
            use_disk(monkeypatch, LosingDisk())
            found = stored(survived)
            assert found in story.possible(), (step, disk.steps[-3:])
            if found is not None:
                lose_again(monkeypatch, survived, found, rng)
            else:  # what is left of a new index is in the way of no other one
                Index.create(survived, **SETTINGS).close()
                assert reopened(survived) == {}
        shutil.rmtree(folder)
        shutil.rmtree(left)


LIMITED = """
import sys
import indexing, random
from lsh.store.index import Index
from lsh.store import writer
for name, value in indexing.LIMITS.items():
    setattr(writer, name, value)
"""
KILLED = """
rng = random.Random(int(sys.argv[2]))
with Index.open(sys.argv[1], "a") as index:
    print("opened", flush=True)
    for batch in range(10**9):
        first = len(index)
        count = rng.choice([1, 2, 5, 20])
        index.add_docs([indexing.text(i) for i in range(first, first + count)], range(first, first + count))
        index.commit()
        print(first + count, flush=True)
"""


def started(script: str, folder: Path, *more: object, **streams: Any) -> subprocess.Popen:
    """Start a writer of an index with small limits."""
    command = [sys.executable, "-c", LIMITED + script, str(folder), *map(str, more)]
    environment = running.environment(PYTHONPATH=os.pathsep.join(sys.path))
    return subprocess.Popen(command, env=environment, cwd=folder.parent, **streams)


def killed_once(folder: Path, rng: random.Random) -> int:
    """Run a writer and kill it at a random moment; return how many documents it had committed, 0 if none."""
    process = started(KILLED, folder, rng.randrange(2**31), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    committed = 0
    assert process.stdout.readline() == "opened\n"
    for _ in range(rng.randint(0, 12)):
        committed = int(process.stdout.readline())
    for _ in range(rng.randint(0, 2000)):  # a short time, of another length each time
        pass
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read().split("\n")[:-1]  # only whole lines
    process.wait()
    process.stdout.close()
    return int(rest[-1]) if rest else committed


@pytest.mark.skipif(os.name == "nt", reason="requires SIGKILL")
@pytest.mark.parametrize(
    ("seed", "times"),
    [
        (0, 2),
        pytest.param(1, 100, marks=pytest.mark.slow),
        *(pytest.param(i, 100, marks=COMPLETE) for i in range(2, 11)),
    ],
)
def test_a_killed_writer(tmp_path, seed, times):
    """A hundred kills in the slow tests, a thousand with LSH_TEST_FULL."""
    rng = random.Random(seed)
    folder = tmp_path / "0"
    Index.create(folder, **SETTINGS).close()
    before = 0
    for kill in range(times):
        committed = max(killed_once(folder, rng), before)
        found = reopened(folder)
        before = len(found)
        assert before - committed in (0, 1, 2, 5, 20), kill
        assert found == {i: (text(i), None) for i in range(before)}
        if before > 100:
            folder, before = tmp_path / str(kill + 1), 0
            Index.create(folder, **SETTINGS).close()


@pytest.fixture(scope="module")
def small_index(tmp_path_factory) -> tuple[Path, Contents]:
    """An index with segments, removed documents and a log of several commits."""
    folder = tmp_path_factory.mktemp("damage") / "index"
    with pytest.MonkeyPatch.context() as patch:
        indexing.small_limits(patch)
        with Index.create(folder, **SETTINGS, period=10.0) as index:
            index.add_docs([text(i) for i in range(6)], range(6), times=[float(3 * i) for i in range(6)])
            index.add_docs([text(i) for i in range(6, 14)], [f"text {i}" for i in range(6, 14)])
            index.commit()
            index.remove(2)
            index._writer._state.needs_manifest = True
            index.commit()
            index.add(text(20), 20)
            index.commit()
            index.remove("text 9")
            index.add(text(21), 3, time=5)
            index.commit()
            expected = contents(index)
    kinds = {name.partition("-")[0] for name in os.listdir(folder)}
    assert kinds == {"manifest", "lock", "segment", "removed", "log"}
    return folder, expected


def damaged(folder: Path, name: str, data: bytes, expected: Contents) -> bool:
    """Open the index with other data in a file; return whether an error named it. The answers must be right else."""
    path = folder / name
    whole = path.read_bytes()
    path.write_bytes(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of another Unicode version
            assert reopened(folder) == expected, name
        message = ""
    except (IndexDamagedError, FileNotFoundError) as error:
        message = str(error)
    finally:
        path.unlink()
        path.write_bytes(whole)
    assert not message or name in message or "manifest" in message
    return bool(message)


def files_of(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name != "lock")


@few_or_all
def test_each_byte_is_flipped(small_index, some):
    folder, expected = small_index
    rng = random.Random(3)
    for name in files_of(folder):
        data = (folder / name).read_bytes()
        places = range(len(data)) if not some else sorted(rng.sample(range(len(data)), min(25, len(data))))
        found = 0
        for place in places:
            flipped = bytearray(data)
            flipped[place] ^= 1 << rng.randrange(8)
            found += damaged(folder, name, bytes(flipped), expected)
        assert found > 0.6 * len(places), name  # the others are in unused bytes
    assert reopened(folder) == expected


@few_or_all
def test_a_file_that_is_cut_missing_or_another_one_is_named(small_index, tmp_path, some):
    folder, expected = small_index
    rng = random.Random(4)
    with Index.create(tmp_path / "other", **SETTINGS) as index:
        index.add(text(1), 1)
        index.compact()
    for name in files_of(folder):
        data, kind = (folder / name).read_bytes(), name.partition("-")[0]
        for size in range(len(data)) if not some else sorted(rng.sample(range(len(data)), min(20, len(data)))):
            assert damaged(folder, name, data[:size], expected), (name, size)
        more = damaged(folder, name, data + bytes(8), expected)
        assert more or kind == "log"  # what follows the last commit of a log was never committed
        (folder / name).rename(folder / "elsewhere")
        with pytest.raises((IndexDamagedError, FileNotFoundError), match=name):
            Index.open(folder)
        (folder / "elsewhere").rename(folder / name)
        others = {*folder.glob(f"{kind}-*"), *(tmp_path / "other").glob(f"{kind}-*")} - {folder / name}
        for other in others:  # whole, but not the one that the manifest names
            assert damaged(folder, name, other.read_bytes(), expected)


class IndexMachine(RuleBasedStateMachine):
    """An index beside dicts: what is pending, what is committed, and what a second reader has seen."""

    @initialize()
    def create(self):
        self.patch = pytest.MonkeyPatch()
        indexing.small_limits(self.patch)
        self.root = Path(running.tempfile.mkdtemp())
        self.count = 0
        self.rng = random.Random(0)
        self.folder = self.root / "0"
        self.disk = LosingDisk()
        use_disk(self.patch, self.disk)
        self.index = Index.create(self.folder, **SETTINGS, period=5.0)
        self.reader = Index.open(self.folder)
        self.pending: Contents = {}
        self.committed: Contents = {}
        self.seen: Contents = {}

    @rule(doc_id=st.integers(0, 12), number=st.integers(0, 30), time=st.one_of(st.none(), st.integers(0, 20)))
    def add(self, doc_id, number, time):
        self.index.add(text(number), doc_id, time=time)
        self.pending.pop(doc_id, None)
        self.pending[doc_id] = (text(number), None if time is None else float(time))

    @rule(first=st.integers(0, 30), count=st.integers(1, 30))
    def add_many(self, first, count):
        numbers = range(first, first + count)
        ids = [f"id {i}" if i % 3 else i for i in numbers]
        self.index.add_docs([text(i) for i in numbers], ids)
        for doc_id, i in zip(ids, numbers):
            self.pending.pop(doc_id, None)
            self.pending[doc_id] = (text(i), None)

    @precondition(lambda self: self.pending)
    @rule(data=st.data(), time=st.integers(0, 20))
    def set_time(self, data, time):
        """The document is then the last one."""
        doc_id = data.draw(st.sampled_from(sorted(self.pending, key=repr)))
        self.index.set_time(doc_id, time)
        self.pending[doc_id] = (self.pending.pop(doc_id)[0], float(time))

    @rule(
        first=st.integers(0, 30),
        times=st.lists(st.integers(0, 20), max_size=30),
        is_compact=st.booleans(),
        data=st.data(),
    )
    def merge(self, first, times, is_compact, data):
        """Another index, whose documents are in several segments and the log, follows in its order."""
        self.count += 1
        merged: Contents = {}
        use_disk(self.patch, Disk())  # a LosingDisk knows the files of one folder
        with Index.create(self.root / f"other {self.count}", **SETTINGS, period=5.0) as other:
            for i, time in enumerate(times, first):
                doc_id = f"id {i}" if i % 3 else i
                other.add(text(i), doc_id, time=time)
                merged[doc_id] = (text(i), float(time))
            if is_compact:
                other.compact()
            for doc_id in data.draw(st.lists(st.sampled_from(sorted(merged, key=repr)), unique=True)) if merged else ():
                other.remove(doc_id)
                del merged[doc_id]
            self.index.merge(other)
        use_disk(self.patch, self.disk)
        for doc_id, value in merged.items():
            self.pending.pop(doc_id, None)
            self.pending[doc_id] = value

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def remove(self, data):
        doc_id = data.draw(st.sampled_from(sorted(self.pending, key=repr)))
        self.index.remove(doc_id)
        del self.pending[doc_id]

    @rule(before=st.integers(0, 22))
    def expire(self, before):
        expired = [i for i, (_, time) in self.pending.items() if time is not None and time < before]
        assert self.index.expire(before) == len(expired)
        for doc_id in expired:
            del self.pending[doc_id]

    @rule(how=st.sampled_from(["commit", "commit", "compact"]))
    def commit(self, how):
        getattr(self.index, how)()
        self.committed = dict(self.pending)

    @rule()
    def rollback(self):
        self.index.rollback()
        self.pending = dict(self.committed)

    @rule()
    def refresh(self):
        changed = self.reader.refresh()
        assert changed or self.seen == self.committed
        self.seen = dict(self.committed)

    @rule(mode=st.sampled_from(["close", "drop"]))
    def reopen(self, mode):
        if mode == "close":
            self.index.close()
            self.committed = dict(self.pending)
        else:
            self.index._release()
            self.pending = dict(self.committed)
        self.index = Index.open(self.folder, "a")

    @rule(steps=st.integers(1, 25), seed=st.integers(0, 9))
    def lose_power(self, steps, seed):
        """The power is lost during a commit; then the index is that before it, or after it."""
        self.disk.ends_at = self.disk.count + steps
        crashed = False
        try:
            self.index.commit()
            self.committed = dict(self.pending)
            self.index.compact()
        except CrashError:
            crashed = True
        self.disk.ends_at = 0
        if crashed:
            self.index._release()
            self.reader._release()
            self.count += 1
            self.folder = self.root / str(self.count)
            self.disk.survivors(self.folder, random.Random(seed))
            found = stored(self.folder)
            assert list(found.items()) in [list(one.items()) for one in (self.committed, self.pending)]
            self.disk = LosingDisk()
            self.disk.know(self.folder)
            use_disk(self.patch, self.disk)
            self.index, self.reader = Index.open(self.folder, "a"), Index.open(self.folder)
            self.committed, self.pending, self.seen = found, dict(found), found

    @invariant()
    def agrees(self):
        if hasattr(self, "index"):
            assert list(contents(self.index).items()) == list(self.pending.items())
            assert list(contents(self.reader).items()) == list(self.seen.items())

    def teardown(self):
        if hasattr(self, "index"):
            self.index._release()
            self.reader._release()
            self.patch.undo()
            shutil.rmtree(self.root)


IndexMachine.TestCase.settings = strategies.examples(15, stateful_step_count=30)
TestIndexMachine = IndexMachine.TestCase
