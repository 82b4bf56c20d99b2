"""Results and files are the same without the functions and flags that Windows lacks; the tests remove them.

The tests show that each of these has a replacement, and that the replacement works. They do not show that the package
runs on Windows: it was not run there.
"""

import errno
import mmap
import os

import numpy as np
import pytest
from sharing import together

import lsh
from lsh.base import budget, file_io
from lsh.segments import disk

MISSING = ("pread", "preadv", "pwrite", "posix_fallocate", "fchmod", "sched_getaffinity", "register_at_fork")
MISSING += ("O_NONBLOCK", "O_CLOEXEC")


@pytest.fixture
def lacking(monkeypatch):
    """Remove what Windows lacks from the modules of Python; the package looks for it when it needs it."""
    for name in MISSING:
        monkeypatch.delattr(os, name, raising=False)
    monkeypatch.delattr(mmap, "MAP_PRIVATE")
    monkeypatch.delattr(mmap, "MADV_RANDOM", raising=False)


@pytest.fixture
def opened(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(10_000, dtype="<u4").tobytes())
    descriptor = os.open(path, os.O_RDWR)
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize("where", ["everywhere", "lacking"])
def test_places_of_a_file(opened, request, where):
    if where == "lacking":
        request.getfixturevalue("lacking")
    assert file_io.read_at(opened, 8, 400) == np.array([100, 101], "<u4").tobytes()
    assert file_io.read_at(opened, 8, 40_000) == b""
    buffer = np.zeros(4, "<u4")
    assert file_io.read_into(opened, memoryview(buffer).cast("B"), 39_992) == 8
    assert buffer.tolist() == [9998, 9999, 0, 0]
    assert file_io.write_at(opened, np.array([7], "<u4").data.cast("B"), 404) == 4
    assert file_io.read_at(opened, 8, 400) == np.array([100, 7], "<u4").tobytes()


@pytest.mark.usefixtures("lacking")
def test_threads_that_read_one_file(opened):
    wrong = []

    def read(seed):
        for place in np.random.default_rng(seed).integers(0, 10_000, 300).tolist():
            if file_io.read_at(opened, 4, 4 * place) != place.to_bytes(4, "little"):
                wrong.append(place)

    together([lambda seed=seed: read(seed) for seed in range(4)])
    assert wrong == []


@pytest.mark.usefixtures("lacking")
@pytest.mark.parametrize("max_memory", [None, 100_000])
def test_duplicates_are_the_same(corpus, monkeypatch, max_memory):
    texts = corpus[:500]
    monkeypatch.setattr(budget, "MIN_FILE", 1)
    bounded = lsh.deduplicate(texts, max_memory=max_memory)
    monkeypatch.undo()
    wanted = lsh.deduplicate(texts)
    assert 0 < len(wanted.removed) < len(texts)
    assert bounded.keep.tolist() == wanted.keep.tolist()
    assert bounded.labels.tolist() == wanted.labels.tolist()


@pytest.mark.usefixtures("lacking")
def test_an_index(corpus, tmp_path):
    with lsh.Index.create(tmp_path / "index", threshold=0.8) as index:
        index.add_docs(corpus[:400], range(400))
    with lsh.Index.open(tmp_path / "index", "a") as index:
        index.add_docs(corpus[400:500], range(400, 500))
        index.commit()
    with lsh.Index.open(tmp_path / "index") as index:
        assert list(index.find_pairs()) == list(lsh.find_pairs(corpus[:500], 0.8)) != []


@pytest.mark.parametrize(("refusals", "waits"), [(2, 3), (1, 0), (3, 2)])
def test_a_renaming_is_tried_again(tmp_path, monkeypatch, refusals, waits):
    refused = [PermissionError(errno.EACCES, "in use")] * refusals
    replace = os.replace

    def refusing(source, target):
        if refused:
            raise refused.pop()
        replace(source, target)

    monkeypatch.setattr(disk, "RENAME_WAITS", (0.0,) * waits)
    monkeypatch.setattr(os, "replace", refusing)
    names = [tmp_path / name for name in ("new", "old")]
    for name in names:
        name.write_text(name.name)
    if refusals > waits:
        with pytest.raises(PermissionError):
            disk.Disk().rename(*map(str, names))
        return
    disk.Disk().rename(*map(str, names))
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("old", "new")]
