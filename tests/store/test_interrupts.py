"""Signals and errors in the middle of a change, and folders that are replaced: all of a change is made, or none."""

import contextlib
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import indexing
import pytest
from indexing import SETTINGS, contents, reopened, text
from sharing import together

import lsh
import lsh.store.view
import lsh.store.writer
from lsh.segments import disk, log
from lsh.store import memtable
from lsh.store.index import Index


def interrupted_once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, *, after: bool) -> None:
    """Let a function raise KeyboardInterrupt at its next call, before or after its work."""
    real: Callable[..., Any] = getattr(owner, name)

    def interrupted(*values: Any, **named: Any) -> Any:
        monkeypatch.setattr(owner, name, real)
        if after:
            real(*values, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, interrupted)


MOMENTS = [
    (disk.DiskFile, "write"),
    (disk.DiskFile, "sync"),
    (disk.DiskFile, "overwrite"),
    (log.LogWriter, "commit"),
    (log.LogWriter, "note_size"),
    (log.LogWriter, "__init__"),
    (disk.Disk, "rename"),
    (disk.Disk, "sync_folder"),
    (lsh.store.writer.Writer, "_committed_manifest"),
    (lsh.store.writer, "write_new_manifest"),
]


@pytest.mark.few(8)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment[1])
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("then", ["commit", "rollback", "exit", "end"])
def test_an_interrupted_commit_is_whole_or_nothing(folder, monkeypatch, moment, after, large, then):
    before, attempted = {1: (text(1), None)}, {1: (text(1), None), 2: (text(2), None)}
    index = Index.create(folder, **SETTINGS)
    index.add(text(1), 1)
    index.commit()
    index.add(text(2), 2)
    index._writer._state.needs_manifest = large
    interrupted_once(monkeypatch, *moment, after=after)
    with contextlib.suppress(KeyboardInterrupt):  # some operations are only of a log, some only of a manifest
        index.commit()
    monkeypatch.undo()
    left = reopened(folder)
    assert left in (before, attempted)
    if then == "exit":
        with pytest.raises(KeyboardInterrupt), index:
            raise KeyboardInterrupt
        assert reopened(folder) == left  # what the header of the log names is not cut off
    if then == "commit":
        index.commit()
        assert reopened(folder) == attempted
    if then == "rollback":
        index.rollback()
        before = contents(index)
        assert before in ({1: (text(1), None)}, attempted)
        attempted = before
        index.add(text(3), 3)
        index.commit()
        assert reopened(folder) == before | {3: (text(3), None)}
        index.remove(3)
        index.commit()
    index._release()
    with Index.open(folder, "a") as index:
        assert (found := contents(index)) in (before, attempted)
        index.add(text(4), 4)
    assert reopened(folder) == found | {4: (text(4), None)}


def filled(folder: Path, first: int, stop: int) -> Index:
    index = Index.create(folder, **SETTINGS)
    index.add_docs([f"{first} {text(i)}" for i in range(first, stop)], range(first, stop))
    index.compact()
    return index


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_merge_that_fails_changes_nothing(tmp_path, monkeypatch, error):
    own, other = filled(tmp_path / "a", 0, 10), filled(tmp_path / "b", 5, 15)
    before, files = contents(own), sorted(os.listdir(tmp_path / "a"))

    with monkeypatch.context() as patched:
        patched.setattr(lsh.store.writer, "merge_segments", Mock(side_effect=error))
        with pytest.raises(type(error)):
            own.merge(other)
    assert contents(own) == before
    assert sorted(os.listdir(tmp_path / "a")) == files
    own.commit()
    assert reopened(tmp_path / "a") == before
    own.merge(other)
    assert contents(own) == before | contents(other)
    own.close()
    other.close()


def test_a_full_disk_keeps_no_files_of_failed_commits(folder, monkeypatch):
    indexing.small_limits(monkeypatch)
    index = Index.create(folder, **SETTINGS)
    index.add_docs([text(i) for i in range(9)], range(9))
    files = sorted(os.listdir(folder))

    def full(self: disk.DiskFile, data: Any) -> None:
        self.size += self._write_at(bytes(data)[:100], self.size)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(disk.DiskFile, "write", full)
        for _ in range(3):
            with pytest.raises(OSError, match="No space"):
                index.commit()
            assert sorted(os.listdir(folder)) == files
    now = contents(index)
    index.close()
    assert reopened(folder) == now


@pytest.mark.parametrize(("owner", "name"), [(disk.WriterLock, "release"), (lsh.store.writer.Writer, "close")])
def test_an_interrupted_close_is_completed_by_the_next_one(folder, monkeypatch, owner, name):
    index = Index.create(folder, **SETTINGS)
    index.add(text(1), 1)
    index.commit()
    interrupted_once(monkeypatch, owner, name, after=False)
    with pytest.raises(KeyboardInterrupt):
        index.close()
    index.close()
    Index.open(folder, "a").close()
    assert list(Index.open(folder)) == [1]


@pytest.mark.few(3)
@pytest.mark.skipif(os.name == "nt", reason="the folder of an open index cannot be removed")
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("change", ["removed", "moved", "lock", "replaced", "file", "link"])
def test_a_writer_does_not_write_into_another_index(folder, monkeypatch, change, large):
    index = filled(folder.with_name("one") if change == "link" else folder, 0, 10)
    if change == "link":
        index.close()
        folder.symlink_to(folder.with_name("one"))
        index = Index.open(folder, "a")
        folder.unlink()
        filled(folder.with_name("two"), 20, 30).close()
        folder.symlink_to(folder.with_name("two"))
    index.add(text(77), 77)
    if change == "lock":
        (folder / "lock").unlink()
        second = Index.open(folder, "a")
        second.add(text(5), "second")
        second.close()
    elif change == "moved":
        folder.rename(folder.with_name("moved"))
    elif change != "link":
        shutil.rmtree(folder)
    if change == "replaced":
        filled(folder, 20, 30).close()
    if change == "file":
        folder.write_text("a file")
    there = {path: path.read_bytes() for path in folder.glob("*")}
    for write in (index.compact if large else index.commit, index.rollback, index.close):
        with pytest.raises(OSError, match=r"was removed, moved or replaced while .* open the index again"):
            write()
    if large:
        indexing.small_limits(monkeypatch)
        with pytest.raises(OSError, match="was removed, moved or replaced"):
            index.add_docs([text(i) for i in range(20)], range(20))
    assert {path: path.read_bytes() for path in folder.glob("*")} == there
    index._release()


def test_a_reader_notices_a_log_that_lost_commits(folder, tmp_path):
    """As after a backup was restored in place."""
    with Index.create(folder, **SETTINGS) as index:
        index.add(text(1), 1)
    shutil.copytree(folder, tmp_path / "backup")
    with Index.open(folder, "a") as index:
        index.add(text(2), 2)
    with Index.open(folder) as reader:
        shutil.copy(tmp_path / "backup" / "log-000001", folder / "log-000001")
        with pytest.raises(lsh.index.IndexDamagedError, match="were committed"):
            reader.refresh()


READING = [
    (log.LogReader, "read"),
    (lsh.store.view.View, "apply"),
    (memtable.MemTable, "add"),
    (lsh.store.index, "read_manifest"),
    (lsh.store.index, "open_view"),
]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("owner", "name"), READING, ids=lambda one: one if isinstance(one, str) else "")
def test_an_interrupted_refresh_loses_no_commit(folder, monkeypatch, owner, name, after):
    with Index.create(folder, **SETTINGS) as index, Index.open(folder) as reader:
        index.add_docs([text(1), text(2)], [1, 2])
        index.commit()
        assert reader.refresh()
        index.remove(1)
        index.add(text(3), 3)
        if name == "open_view":
            index.compact()
        index.commit()
        interrupted_once(monkeypatch, owner, name, after=after)
        with pytest.raises(KeyboardInterrupt):
            reader.refresh()
        if reader._needs_refresh:
            with pytest.raises(RuntimeError, match=r"a refresh of the index was interrupted; call refresh\(\) again"):
                list(reader)
        else:
            assert list(reader) == [1, 2]
        assert reader.refresh()
        assert contents(reader) == contents(index)
        index.add(text(4), 4)
        index.commit()
        assert reader.refresh()
        assert contents(reader) == contents(index)


def test_two_indexes_are_merged_into_each_other_by_threads(tmp_path, monkeypatch):
    indexing.small_limits(monkeypatch)
    own, other = filled(tmp_path / "a", 0, 10), filled(tmp_path / "b", 10, 20)
    meet = threading.Barrier(2)

    def merge(first: Index, second: Index) -> None:
        for _ in range(8):
            meet.wait(20)
            first.merge(second)

    together([lambda: merge(own, other), lambda: merge(other, own)])
    assert contents(own) == contents(other)
    own.close()
    other.close()


def test_the_place_of_a_stored_document_is_that_of_the_search(folder, monkeypatch):
    """Another change comes between: without the lock, the place of "b" would be that of another document."""
    near = "The ferry to the outer islands was two hours late on Monday."
    with Index.create(folder, shingles=lsh.Shingles(4)) as index:
        index.add_docs([near + "!", near, near + "?"], ["a", "b", "c"])
        index.compact()
        place = Index._place

        def change() -> None:
            index.remove("a")
            index.compact()

        def then_changed(self: Index, *values: Any) -> Any:
            monkeypatch.undo()
            result = place(self, *values)
            thread.start()
            thread.join(0.3)  # it waits for the lock
            return result

        thread = threading.Thread(target=change)
        monkeypatch.setattr(Index, "_place", then_changed)
        assert {match.id for match in index.query(id="b")} == {"a", "c"}
        thread.join()
        assert {match.id for match in index.query(id="b")} == {"c"}
