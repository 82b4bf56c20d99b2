"""Files that are read more than once, files that appear only when they are complete, and which names are one file."""

import errno
import os
import stat

import numpy as np
import pytest
from full_disk import full_disk
from reading import file_of, kept, pack
from running import contents

from lsh import files
from lsh.storage import disk, targets


@pytest.mark.parametrize("room", [0, 1, 10, 2000])
def test_full_disk(tmp_path, monkeypatch, packed, room):
    """The message names the file, the old file is kept, and no other file is left."""
    data = b"".join(os.urandom(30).hex().encode() + b"\n" for _ in range(2000))
    path = file_of(tmp_path, "in.txt", data)
    place = tmp_path / f"out.txt.{packed}".rstrip(".")
    place.write_bytes(b"yesterday\n")
    full_disk(monkeypatch, room)
    with pytest.raises(OSError, match=r".") as caught:
        kept(path, [True] * 2000, place)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(place)
    assert caught.value.strerror.startswith(f"No space left on device in the folder {tmp_path}; ")
    assert place.read_bytes() == b"yesterday\n"
    assert {path.name for path in tmp_path.iterdir()} == {"in.txt", place.name}


def edited(path):
    state = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def replaced(path):
    state, new = path.stat(), path.with_name("new")
    new.write_bytes(path.read_bytes()[::-1])
    os.utime(new, ns=(state.st_atime_ns, state.st_mtime_ns))
    os.replace(new, path)


CHANGES = {
    "content": edited,
    "file": replaced,
    "size": lambda path: path.write_bytes(path.read_bytes() * 2),
    "permissions": lambda path: path.chmod(0o600),
    "links": lambda path: os.link(path, path.parents[1] / "backup"),
    "pipe": lambda path: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("form", ["file", "gz", "folder"])
def test_a_file_that_changes_is_refused(tmp_path, change, form):
    """Also if size and time stay, as by ``cp -p``, ``rsync -t`` or ``tar x``; a pipe in its place is not waited for.

    The change is seen before a later reading, at the end of the same one, and when records are read by their place.
    """
    path = tmp_path / "in" / ("a.txt.gz" if form == "gz" else "a.txt")
    path.parent.mkdir()
    path.write_bytes(pack(b"one\ntwo\n", "gz" if form == "gz" else ""))
    message = "changed while it was read"
    if change == "pipe" and form == "folder":
        message = "the folder has no file"
    elif change in ("content", "permissions", "links") and form != "folder":
        message = f"^{path}: its content, name, permissions, times or links changed while it was read; run again when"
    with files.Documents(str(path.parent if form == "folder" else path)) as documents:
        keep = [True] * len(list(documents.records()))
        clock = tmp_path / "clock"  # wait for its next tick, so that the change has another time
        clock.touch()
        before = clock.stat().st_ctime_ns
        while clock.stat().st_ctime_ns == before:
            clock.chmod(0o600)
        clock.unlink()
        with files.target(documents, str(tmp_path / "out")) as target:
            CHANGES[change](path)
            with pytest.raises(files.InputError, match=message):
                files.write_kept(documents, keep, target)
        with pytest.raises(files.InputError, match=message):
            list(documents.records())
        if form != "folder":
            with pytest.raises(files.InputError, match=message):
                list(documents.at(np.array([0])))
    assert set(contents(tmp_path)) - {"backup"} == {"in", os.path.join("in", path.name)}


def test_a_file_of_a_folder_that_changes_while_files_are_copied(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / "in" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_bytes(b"one\n")
    with files.Documents(str(tmp_path / "in")) as documents:
        assert documents.count == 2
        with (
            pytest.raises(files.InputError, match="in: the folder changed while it was read"),
            files.target(documents, str(tmp_path / "out")) as target,
        ):
            files.write_kept(documents, [True, False], target, lambda _: file_of(tmp_path, "in/a.txt", b"other\n"))


def test_keeping_needs_a_flag_for_each_record(tmp_path):
    path = file_of(tmp_path, "in.txt", b"one\ntwo\n")
    for flags, word in [([True], "grew"), ([True] * 3, "shrank")]:
        with pytest.raises(files.InputError, match=word):
            kept(path, flags, tmp_path / "out.txt")
    assert not (tmp_path / "out.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


@pytest.mark.parametrize("before", [None, 0o700, 0o750, 0o600])
@pytest.mark.parametrize(
    ("kind", "private", "usual"), [(files.Target, 0o600, 0o644), (files.FolderTarget, 0o700, 0o755)]
)
def test_an_output_is_private_while_it_is_written(tmp_path, kind, private, usual, before):
    """From its first byte. At the end it has the permissions of what it replaces, or the default ones."""
    source, place = file_of(tmp_path, "in.txt", b"one\n"), tmp_path / "out"
    umask = os.umask(0o022)
    if before is not None:
        place.touch() if kind is files.Target else place.mkdir()
        place.chmod(before)
    with kind(str(place)) as target:
        (part,) = tmp_path.rglob(".lsh-*.part")
        assert stat.S_IMODE(part.stat().st_mode) == private
        target.write(b"one\n") if kind is files.Target else target.copy(source, "in.txt")
        target.complete()
        assert place.exists() == (before is not None)  # not in place yet
        target.commit()
    assert stat.S_IMODE(place.stat().st_mode) == (before or usual)
    assert os.umask(umask) == 0o022


def test_a_full_disk_for_a_folder(tmp_path, monkeypatch):
    """The file in the new folder is named, not the one that is copied."""

    def full(source, target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), source, None, target)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(targets.shutil, "copy", full)
    with pytest.raises(OSError, match="No space left") as caught, files.FolderTarget("out") as target:
        target.copy("in/a.txt", "a.txt")
    assert (caught.value.filename, caught.value.filename2) == (os.path.join("out", "a.txt"), None)
    assert caught.value.strerror.startswith(f"No space left on device in the folder {tmp_path / 'out'}; ")
    assert contents(tmp_path) == {}


def test_the_files_of_a_folder_are_on_the_disk_before_it_appears(tmp_path, monkeypatch):
    out, fsync, seen = tmp_path / "out", os.fsync, list[bool]()
    monkeypatch.setattr(disk.os, "fsync", lambda number: (seen.append(out.exists()), fsync(number)))
    with files.FolderTarget(str(out)) as folder:
        for name in ("a.txt", "b/c.txt"):
            with folder.file(name, "") as file:
                file.write(b"one\n")
        assert seen == []  # not one after the other: the disk writes while the next one is made
        folder.commit()
    assert seen == [False, False]
    assert contents(out)["b/c.txt"] == b"one\n"


def test_a_named_pipe_is_written_to_and_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with files.Target(str(tmp_path / "pipe")) as target:
            target.write(b"one\n")
            target.commit()
        assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
        assert os.read(reader, 1000) == b"one\n"
        assert set(contents(tmp_path)) == {"pipe"}
    finally:
        os.close(reader)


def test_all_files_are_moved_into_an_existing_folder_or_none(tmp_path, monkeypatch):
    place = tmp_path / "out"
    place.mkdir()
    with files.FolderTarget(str(place)) as folder:
        for source in (tmp_path / name for name in ("a.txt", "b.txt", "c.txt")):
            source.write_bytes(b"one\n")
            folder.copy(str(source), source.name)
        with monkeypatch.context() as patch:  # an interrupt right after a file was moved
            patch.setattr(os, "rename", lambda *names, rename=os.rename: rename(*names) or 1 // 0)
            with pytest.raises(ZeroDivisionError):
                folder.commit()
        (place / "b.txt").write_bytes(b"of another program")
        with pytest.raises(FileExistsError):
            folder.commit()
    assert contents(place) == {"b.txt": b"of another program"}


@pytest.mark.parametrize("exists", [True, False])
def test_a_folder_that_cannot_be_written_to_is_refused_at_once(tmp_path, exists, monkeypatch):
    place = tmp_path / "out"
    if exists:
        place.mkdir()
    denied = str(place if exists else tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: path != denied)
    with pytest.raises(PermissionError) as caught:
        files.FolderTarget(str(place))
    assert caught.value.filename == denied


def test_standard_streams_are_no_files(tmp_path, monkeypatch):
    """Also where a folder is named ``-``, which is ``./-``."""
    monkeypatch.chdir(tmp_path)
    os.mkdir("-")
    assert not files.is_folder("-")
    assert files.identity("-") != files.identity("-")
    assert files.identity("-") != files.identity("./-")
    assert not files.lies_in("./-/a.tsv", "-")
    assert files.is_folder("./-")
    assert files.lies_in("./-/a.tsv", "./-")


def test_links_lead_to_the_same_file(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.tsv").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "in")
    assert files.identity(str(tmp_path / "link" / "a.tsv")) == files.identity(f"file://{tmp_path}/in/a.tsv")
    assert files.identity(str(tmp_path / "link" / "new.tsv")) == files.identity(str(tmp_path / "in" / "new.tsv"))
    assert files.lies_in(str(tmp_path / "link" / "new.tsv"), str(tmp_path / "in"))
    assert not files.lies_in(str(tmp_path / "inside"), str(tmp_path / "in"))
