"""Files that someone has made, with right checksums: each use ends with an answer or with an error that names a file.

What is changed at random is the content of a segment, of a log, of a file of removed documents, or the values of the
manifest; then all checksums are made right again.
"""

import contextlib
import random
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import indexing
import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from indexing import SETTINGS, seal_manifest, text

import lsh.segments.log
from lsh.segments import file_format
from lsh.segments.file_format import BLOCK, FOOTER, LOG_HEADER, RECORD, SECTION
from lsh.store.index import Index, IndexDamagedError


def make(folder: Path) -> Path:
    """Make an index with two segments, removed documents, a log, times, texts and a note; return its folder."""
    with Index.create(folder, **SETTINGS, period=10.0) as index:
        index.add_docs([text(i) for i in range(8)], range(8), times=[float(i) for i in range(8)])
        index.compact()
        index.add_docs([text(i) for i in range(8, 14)], [f"text {i}" for i in range(8, 14)])
        index.remove(2)
        index._commit({"screen": {"reject": 0.9}})
        index.add(text(20), 20)
        index.remove("text 9")
        index.commit()
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """An index, whose files the functions that seal leave as they are."""
    folder = make(tmp_path_factory.mktemp("hostile") / "index")
    for kind, seal in (("segment-*", seal_segment), ("log-*", seal_log)):
        for path in folder.glob(kind):
            data = bytearray(path.read_bytes())
            seal(data)
            assert bytes(data) == path.read_bytes()
    before = indexing.reopened(folder)
    seal_manifest(folder, lambda values: None)
    assert indexing.reopened(folder) == before
    return folder


@contextlib.contextmanager
def copied(folder: Path) -> Iterator[Path]:
    """Make a copy of a folder for the time of one example."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as temp:
        yield Path(shutil.copytree(folder, Path(temp) / "index"))


def use(folder: Path) -> None:
    """Use everything; an error other than an IndexDamagedError fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of another Unicode version
        try:
            index = Index.open(folder, "a")
        except (IndexDamagedError, FileNotFoundError):
            return
    actions = [
        lambda: list(index),
        lambda: index.query_docs([text(i) for i in range(22)]),
        lambda: [index.query(text(i), top=2) for i in range(22)],
        lambda: [index.query(id=doc_id) for doc_id in list(index)[:5]],
        lambda: [(index.time_of(doc_id), index.text_of(doc_id)) for doc_id in index],
        index.info,
        index.deduplicate,
        index.verify,
        lambda: index.expire(5.0),
        lambda: index.add(text(5), "text 8"),
        index.compact,
        lambda: list(index),
    ]
    try:
        for action in actions:
            with contextlib.suppress(KeyError):  # two documents have the same id, or an id has another hash
                try:
                    action()
                except IndexDamagedError as error:
                    if str(folder) not in str(error):
                        raise
    finally:
        index._release()


def seal_segment(data: bytearray) -> None:
    """Make the checksums of a segment right."""
    end = len(data)
    sums = int.from_bytes(data[end - 32 : end - 24], "little")
    if sums <= end:
        values = [file_format.checksum(data[at : min(at + BLOCK, sums)]) for at in range(0, sums, BLOCK)]
        content = np.array(values, "<u8").tobytes()
        if sums + len(content) <= end - 8:
            data[sums : sums + len(content)] = content
    data[-8:] = file_format.checksum(bytes(data[min(sums, end - 8) : -8])).to_bytes(8, "little")


def seal_log(data: bytearray) -> None:
    """Make the checksums of the records of a log right, as far as they can be followed."""
    number = int.from_bytes(data[16:24], "little")
    data[24:32] = file_format.checksum(bytes(data[:24])).to_bytes(8, "little")
    at = LOG_HEADER.itemsize
    while at + RECORD.itemsize <= len(data):
        size = int.from_bytes(data[at : at + 8], "little")
        end = at + RECORD.itemsize + size
        if end > len(data):
            return
        payload = bytes(data[at + RECORD.itemsize : end])
        checksum = lsh.segments.log._record_checksum(number, at, bytes(data[at : at + 16]), payload)
        data[at + 16 : at + 24] = checksum.to_bytes(8, "little")
        at = end


def mutate(data: bytearray, rng: random.Random, first: int) -> None:
    """Change a few bytes or a number after `first`."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(first, len(data))
        how = rng.randrange(4)
        if how == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
        else:
            at -= at % (size := 4 * how - 4 or 4)
            value = rng.choice([0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, len(data), rng.randrange(300)])
            data[at : at + size] = value.to_bytes(8, "little")[:size]


def damage(folder: Path, kind: str, rng: random.Random) -> None:
    """Change a file at random, and make its checksums right, also the one in the manifest."""
    path = rng.choice(sorted(folder.glob(f"{kind.split()[0]}-*")))
    data = bytearray(path.read_bytes())
    sums = int.from_bytes(data[-32:-24], "little")
    first = {
        "segment": rng.choice([64, rng.randrange(64, max(sums, 65))]),
        "segment footer": min(rng.choice([sums + 8, len(data) - FOOTER.itemsize]), len(data) - SECTION.itemsize),
        "log": 0 if rng.random() < 0.1 else 64,
        "removed": 0,
    }
    mutate(data, rng, first[kind])
    if kind == "log":
        seal_log(data)
    elif kind == "removed":
        data[-8:] = file_format.checksum(bytes(data[:-8])).to_bytes(8, "little")
    else:
        seal_segment(data)
    path.write_bytes(data)

    def change(values: Any) -> None:
        for one in values["segments"]:
            checksum = f"{int.from_bytes(data[-8:], 'little'):016x}"
            if one["name"] == path.name:
                one["checksum"] = checksum
            elif one["removed"] and kind == "removed":
                one["removed"][2] = checksum

    seal_manifest(folder, change)


VALUES = [None, True, 0, 1, -1, 2**31, 2**63, 2**64, 1.5, float("nan"), [], [1], {}]
VALUES += ["", "a", "../x", "segment-000001", "f" * 16]


def places(value: Any, at: tuple = ()) -> list[tuple]:
    """The paths to all values of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(*at, key) for key, _ in items] + [place for key, one in items for place in places(one, (*at, key))]


def damage_manifest(folder: Path, kind: str, rng: random.Random) -> None:
    def change(values: Any) -> None:
        *path, last = rng.choice(places(values))
        for key in path:
            values = values[key]
        if rng.random() < 0.2:
            del values[last]
        else:
            values[last] = rng.choice(VALUES)

    seal_manifest(folder, change)


KINDS = ["segment", "segment footer", "log", "removed", "manifest"]


def use_damaged(made: Path, kind: str, rng: random.Random) -> None:
    """Change a file of a kind in a copy of an index, and use the copy; also for tests/fuzz/readers.py."""
    with copied(made) as folder:
        (damage_manifest if kind == "manifest" else damage)(folder, kind, rng)
        use(folder)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32))
@strategies.examples(80)
def test_files_with_right_checksums(made, kind, seed):
    use_damaged(made, kind, random.Random(seed))


def test_another_format_is_named(made):
    with copied(made) as folder:
        path = folder / "manifest"
        data = path.read_bytes()[:-8]
        for version, remedy in ((file_format.VERSION + 1, "use a newer release"), (1, "create the index again")):
            other = data[:8] + version.to_bytes(4, "little") + data[12:]
            path.write_bytes(other + file_format.checksum(other).to_bytes(8, "little"))
            with pytest.raises(IndexDamagedError, match=f"format version {version}, this release reads .*; {remedy}"):
                Index.open(folder)


def test_segments_with_equal_arrivals(made):
    """Each use ends with an error that names a file, or with an answer."""

    def change(values: Any) -> None:
        for one in values["segments"]:
            one["arrivals"] = [0, one["documents"] - 1]

    with copied(made) as folder:
        seal_manifest(folder, change)
        use(folder)
        with Index.open(folder) as index:
            for check in (index.verify, index.deduplicate):
                with pytest.raises(IndexDamagedError, match=r"segment-.* another segment has a"):
                    check()
