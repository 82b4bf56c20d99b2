"""A bound of memory is kept, or an error names the least one; temporary files are in the folder that is named."""

import errno
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections import namedtuple
from functools import partial
from pathlib import Path

import pytest
from reading import write_records
from running import done, environment, refused

import lsh
import lsh.base.budget
import lsh.engine.corpus
from lsh import deduplicate, find_pairs
from lsh.base.budget import LEAST_BYTES
from lsh.engine.corpus import LEAST_ORDERED_BYTES

BESIDE = 120_000_000  # bytes beside the bound, for the interpreter, numpy and the texts that are being read
TEXTS = [f"text number {i} of many, {i * i}" for i in range(20_000)]


def printed(program: str, folder: Path, *arguments: object) -> list[int]:
    """The numbers that a program prints, run in a process of its own. It may call `state` for a line of /proc."""
    state = """
def state(name):
    with open("/proc/self/status") as status:
        return 1024 * int(next(line for line in status if line.startswith(name)).split()[1])
"""
    command = [sys.executable, "-c", state + textwrap.dedent(program), *map(str, arguments)]
    ran = subprocess.run(command, check=True, capture_output=True, cwd=folder, env=environment())
    return list(map(int, ran.stdout.split()))


WITHOUT_SANITIZER = pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="a sanitizer takes memory of its own")


@WITHOUT_SANITIZER
@pytest.mark.skipif(sys.platform != "linux", reason="the peak memory is read from /proc")
@pytest.mark.few(1)
@pytest.mark.parametrize("keep", ["longest", "first", "pairs"])
def test_the_peak_of_a_process(keep, tmp_path):
    """Keys and sketches of 500,000 texts take 150 MB; the bound is 20 MB."""
    program = """
        import hashlib, sys
        import lsh
        def texts():
            for i in range(500_000):
                yield hashlib.sha256(b"%d" % (i % 490_000)).hexdigest()
        running = {"max_memory": "20MB", "temp_dir": sys.argv[1], "num_threads": 2}
        if sys.argv[2] == "pairs":
            found = sum(1 for _ in lsh.find_pairs(texts, **running))
        else:
            found = lsh.deduplicate(texts, keep=sys.argv[2], **running).summary()["removed"]
        print(found, state("VmHWM"))
    """
    found, peak = printed(program, tmp_path, tmp_path, keep)
    assert found >= 10_000
    assert peak <= 20_000_000 + BESIDE
    assert list(tmp_path.iterdir()) == []


@WITHOUT_SANITIZER
@pytest.mark.skipif(sys.platform != "linux", reason="the peak memory is read from /proc")
@pytest.mark.slow
@pytest.mark.parametrize(("find", "copies"), [("deduplicate", False), ("deduplicate", True), ("find_pairs", True)])
def test_the_peak_of_long_texts(find, copies, tmp_path):
    """1,500 texts of 100 KB from a callable: 150 MB, of which a few megabytes are in memory at a time."""
    program = """
        import random, sys
        import lsh
        def texts():
            for i in range(1500):
                text = random.Random(i - (sys.argv[3] == "True" and i % 3 == 2)).randbytes(50_000).hex()
                yield text[:99_000] + f"{i:01000}"
        found = getattr(lsh, sys.argv[2])(texts, max_memory="2MB", temp_dir=sys.argv[1], num_threads=2)
        count = found.summary()["removed"] if sys.argv[2] == "deduplicate" else len(list(found))
        print(count, state("VmHWM"))
    """
    count, peak = printed(program, tmp_path, tmp_path, find, copies)
    assert count == 500 * copies
    assert peak <= 2_000_000 + BESIDE


@pytest.mark.slow
@WITHOUT_SANITIZER
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc has malloc_trim")
def test_free_memory_goes_back_to_the_system(tmp_path):
    program = """
        import numpy
        from lsh.base.budget import MemoryBudget
        held = [numpy.ones(10_000) for _ in range(1000)]
        del held[:-1]  # the last one is behind them on the heap
        free = state("VmRSS")
        MemoryBudget().trim()
        without_bound = state("VmRSS")
        MemoryBudget(10**6).trim()
        print(free, without_bound, state("VmRSS"))
    """
    free, without_bound, trimmed = printed(program, tmp_path)
    assert without_bound > trimmed + 60_000_000
    assert abs(free - without_bound) < 10_000_000


@pytest.mark.slow
@WITHOUT_SANITIZER
@pytest.mark.skipif(sys.platform != "linux", reason="the resident memory is read from /proc")
def test_mapped_files_take_little_memory(tmp_path):
    """An access at one place does not load its surroundings; what is loaded is released from time to time."""
    program = """
        import sys, time
        import numpy
        from lsh.base.budget import MemoryBudget, _resident
        budget = MemoryBudget(20_000_000, sys.argv[1])
        array, before = budget.array(1 << 27, numpy.uint8), _resident()[0]
        with budget.released():
            array[:] = 1
            until = time.monotonic() + 60
            while _resident()[0] > before + 20_000_000 and time.monotonic() < until:
                time.sleep(0.01)
        written = _resident()[0] - before
        array[:: 1 << 22].sum()
        print(written, _resident()[0] - before - written)
    """
    written, loaded = printed(program, tmp_path, tmp_path)
    assert written <= 20_000_000
    assert loaded <= 32 * (1 << 17)


SO_FAR = "documents read so far, 24 bytes each"
ENOUGH = "^max_memory must be 480KB or more for"


@pytest.mark.few(1)
@pytest.mark.parametrize("options", [{}, {"keep": "last"}, {"keep": "longest"}, {"keep": range(20_000)}])
def test_the_bound_that_an_error_names_is_enough(options):
    enough = 20_000 * (LEAST_ORDERED_BYTES if options.get("keep", "last") not in ("first", "last") else LEAST_BYTES)
    with pytest.raises(ValueError, match=f"must be {enough // 1000}KB or more for 20,000 documents, .* 100,000 bytes"):
        deduplicate(TEXTS, max_memory=100_000, **options)
    bounded = deduplicate(TEXTS, max_memory=enough, **options)
    assert bounded.keep.tolist() == deduplicate(TEXTS, **options).keep.tolist()
    with pytest.raises(ValueError, match="max_memory must be"):
        deduplicate(TEXTS, max_memory=enough - 1, **options)


def test_a_bound_that_is_too_small_is_an_error_before_the_work():
    """Where the number of texts is known; an element of them is not looked at."""
    for find in (deduplicate, lambda *texts, **options: list(find_pairs(*texts, **options))):
        with pytest.raises(ValueError, match=f"{ENOUGH} 20,000 documents, 24 bytes each, got 100,000 bytes"):
            find([object()] * 20_000, max_memory="100KB")
    with pytest.raises(ValueError, match=r"for 20,000 documents"):  # old documents count
        deduplicate([object()] * 5000, against=[object()] * 15_000, max_memory="100KB")


def test_a_stream_that_grows_past_a_bound(monkeypatch):
    """The error comes as soon as there are too many documents, not at the end of the stream."""
    monkeypatch.setattr(lsh.engine.corpus, "DOCUMENTS_STEP", 1000)
    given = []

    def texts():
        for i in range(10**9):
            given.append(i)
            yield f"text {i}"

    with pytest.raises(ValueError, match=f"^max_memory must be [0-9]+KB or more for the [0-9,]+ {SO_FAR}, got"):
        deduplicate(texts, max_memory="240KB", num_threads=1)
    assert 10_000 < len(given) < 20_000
    for step, documents in ((1000, f"the 20,000 {SO_FAR}"), (1 << 16, "20,000 documents, 24 bytes each")):
        monkeypatch.setattr(lsh.engine.corpus, "DOCUMENTS_STEP", step)
        with pytest.raises(ValueError, match=f"{ENOUGH} {documents}, got 479,999 bytes$"):
            deduplicate(lambda: iter(TEXTS), max_memory=479_999)


@pytest.mark.slow
@pytest.mark.parametrize(("keep", "each"), [("longest", 19), ("first", 11)])
def test_documents_that_may_have_a_near_duplicate_need_memory(monkeypatch, keep, each):
    """How many have a link is known after grouping, and how many are in one component after that."""
    texts = [f"{text}." for text in TEXTS] + TEXTS
    find = partial(deduplicate, texts, 0.5, keep=keep, num_threads=2)
    assert len(find(max_memory="1500KB")) == 40_000
    monkeypatch.setattr(lsh.engine.corpus, "MOST_OVER", 0)
    message, bound = "must be ([0-9,]+)MB or more for 40,000 documents, and ([0-9,]+) of them may have a near", "1500KB"
    for more in (" duplicate", " duplicate, ([0-9,]+) in one component"):
        with pytest.raises(ValueError, match=rf"^max_memory {message}{more}, got [0-9,]+ bytes$") as caught:
            find(max_memory=bound)
        found = re.search(message + more, str(caught.value)).groups()
        enough, sharing, *together = (int(number.replace(",", "")) for number in found)
        assert 35_000 < sharing <= 40_000
        assert enough == -(-(each * 40_000 + 40 * sharing + (16 + 2 * 80) * sum(together)) // 10**6)
        bound = f"{enough}MB"
    assert 2 <= together[0] <= sharing
    assert len(find(max_memory=bound)) == 40_000


@pytest.fixture
def small(monkeypatch) -> list[str | None]:
    """Write columns in small chunks; the folder of each temporary file that is made."""
    monkeypatch.setattr(lsh.base.budget, "CHUNK", 1 << 14)
    folders: list[str | None] = []
    make = tempfile.TemporaryFile

    def noted(*given, dir=None, **named):
        if named.get("prefix") == "lsh-":
            folders.append(dir)
        return make(*given, dir=dir, **named)

    monkeypatch.setattr(tempfile, "TemporaryFile", noted)
    return folders


def test_temporary_files_are_in_the_folder_that_is_named(small, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))  # does not count
    texts = TEXTS + TEXTS[:100]
    expected = deduplicate(texts)
    found = deduplicate(texts, max_memory="1MB", temp_dir=tmp_path)
    assert found.keep.tolist() == expected.keep.tolist()
    assert set(small) == {str(tmp_path)}
    small.clear()
    pairs = list(find_pairs(texts, max_memory="1MB", temp_dir=str(tmp_path)))
    assert pairs == list(find_pairs(texts))
    assert set(small) == {str(tmp_path)}
    assert list(tmp_path.iterdir()) == []
    small.clear()
    assert deduplicate(texts, temp_dir=tmp_path).keep.tolist() == expected.keep.tolist()
    assert small == []  # without a bound there are no files


def test_a_folder_that_is_none(tmp_path):
    def read():
        raise AssertionError("the texts are read")

    (tmp_path / "file").touch()
    for find in (deduplicate, find_pairs):
        for place, kind in (("nowhere", FileNotFoundError), ("file", NotADirectoryError)):
            with pytest.raises(kind, match="temp_dir must name a folder that can be written to") as caught:
                find(read, max_memory="1GB", temp_dir=tmp_path / place)
            assert caught.value.filename == str(tmp_path / place)
        for wrong in (3, b"/tmp", ["/tmp"]):
            with pytest.raises(TypeError, match="temp_dir must be the path of a folder, got"):
                find(read, max_memory="1GB", temp_dir=wrong)


def test_too_little_space(monkeypatch, tmp_path):
    """An error before the work; of a stream, when documents have been linked."""
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(10**9, 10**9 - 1000, 1000))
    with pytest.raises(OSError, match=r"needs 4,560,000 bytes of temporary files: 1,000 bytes are free") as caught:
        deduplicate([object()] * 20_000, max_memory="1MB", temp_dir=tmp_path)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path))
    assert str(caught.value.strerror).endswith("set temp_dir to another folder")
    assert len(deduplicate(TEXTS, max_memory="1GB", temp_dir=tmp_path)) == 20_000  # fits into memory
    texts, stages = [*TEXTS, *(f"{text}." for text in TEXTS[:5000])], set()
    bound = {"max_memory": "1MB", "temp_dir": tmp_path, "progress": lambda *call: stages.add(call[0])}
    with pytest.raises(OSError, match=r"needs [0-9,]+ bytes of temporary files: 1,000 bytes are free"):
        deduplicate(lambda: iter(texts), **bound)
    assert stages == {"fingerprints", "grouping"}


@pytest.mark.parametrize(("name", "after"), [("pwrite", 0), ("pwrite", 3), ("pwrite", 20), ("posix_fallocate", 0)])
def test_a_disk_that_fills_up_in_the_middle(small, monkeypatch, tmp_path, name, after):
    written, write = [], os.pwrite

    def full(number, data, offset):
        written.append(offset)
        if len(written) > after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(number, data[: len(data) // 2 + 1], offset)  # a write may write a part only

    monkeypatch.setattr(os, name, full)
    monkeypatch.setattr(lsh.base.budget, "MIN_FILE", 1)
    texts = [*TEXTS, *(f"{text}." for text in TEXTS[:5000])]
    message = r"max_memory needs ([0-9,]+ bytes of )?temporary files: No space left"
    with pytest.raises(OSError, match=message) as caught:
        deduplicate(texts, max_memory="1MB", temp_dir=tmp_path)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path))
    assert len(written) == after + 1
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_the_command(small, tmp_path):
    (tmp_path / "in.txt").write_bytes(b"".join(b"%s\n" % text.encode() for text in TEXTS + TEXTS[:9]))
    folder = tmp_path / "temporary"
    folder.mkdir()
    done(tmp_path, "pairs", "in.txt", "-o", "pairs.tsv", "--max-memory", "1MB", "--temp-dir", "temporary")
    assert set(small) == {"temporary"}
    assert list(folder.iterdir()) == []
    problem = refused(tmp_path, "dedup", "in.txt", "--dry-run", "--temp-dir", "nowhere")
    assert "nowhere: --temp-dir must name a folder that can be written to; name another folder" in problem
    problem = refused(tmp_path, "dedup", "in.txt", "--dry-run", "--max-memory", "300KB")
    assert "--max-memory must be 481KB or more for 20,009 documents, 24 bytes each, got 300,000 bytes" in problem


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["dedup", "--dry-run", "--source-field", "site", "--report", "-"], ["stats", "--json"]]
)
def test_what_the_command_notes_of_each_document_is_in_files(small, tmp_path, command):
    """Sizes and sources, for a report and for the figures of `lsh stats`."""
    texts = [f"{text}{'.' * (i % 7)}" for i, text in enumerate(TEXTS)] + TEXTS[:9]
    write_records(tmp_path / "in.jsonl", [{"text": text, "site": f"site {i % 3}"} for i, text in enumerate(texts)])
    bound = ["--max-memory", "1MB", "--temp-dir", "temporary"]
    (tmp_path / "temporary").mkdir()
    pages = [done(tmp_path, *command, "in.jsonl", *options).decode() for options in ([], bound)]
    expected, found = (re.sub("<tr><th>--(max-memory|temp-dir)</th>.*?</tr>", "", page) for page in pages)
    assert found == expected
    assert set(small) == {"temporary"}
    assert list((tmp_path / "temporary").iterdir()) == []
