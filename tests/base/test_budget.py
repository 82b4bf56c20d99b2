"""Corpora beyond memory: collections that are read twice, and arrays in files, neither of which may change a result."""

import errno
import itertools
import mmap
import os
import signal
import sys
import textwrap

import numpy
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from results import near_of, removed_of
from running import process

import lsh
import lsh.base.budget
import lsh.engine.corpus
import lsh.engine.layout
import lsh.engine.placing
from lsh import Shingles, deduplicate, find_pairs
from lsh.base.budget import MemoryBudget, _File, memory_size
from lsh.text.batch import content_keys

SHINGLES = Shingles(2, "word")


def same(one, other) -> None:
    assert removed_of(one) == removed_of(other)
    assert near_of(one) == near_of(other)
    assert one.keep.tolist() == other.keep.tolist()
    for name in ("candidates", "connected", "compared", "capped", "without_shingles", "missing"):
        assert one.summary()[name] == other.summary()[name]


def streamed(texts):
    return lambda: (text for text in texts)


# Sources.


def test_a_callable_is_read_twice_and_gives_the_same(corpus):
    calls = 0

    def texts():
        nonlocal calls
        calls += 1
        yield from corpus

    held = deduplicate(corpus, 0.7, shingles=SHINGLES)
    same(deduplicate(texts, 0.7, shingles=SHINGLES), held)
    assert calls == 2
    assert len(held.removed) > 1000
    same(deduplicate(lambda: corpus, 0.7, shingles=SHINGLES), held)
    for options in ({"keep": "longest"}, {"clusters": "components"}, {"verify": "sketch"}):
        expected = deduplicate(corpus, 0.7, shingles=SHINGLES, **options)
        same(deduplicate(streamed(corpus), 0.7, shingles=SHINGLES, **options), expected)
    pairs = list(find_pairs(corpus, threshold=0.7, shingles=SHINGLES))
    assert list(find_pairs(streamed(corpus), threshold=0.7, shingles=SHINGLES)) == pairs
    new, old = corpus[:1200], corpus[1200:]
    expected = deduplicate(new, 0.7, shingles=SHINGLES, against=old)
    pairs = list(find_pairs(new, 0.7, others=old, shingles=SHINGLES))
    for a, b in ((streamed(new), old), (new, streamed(old)), (streamed(new), streamed(old))):
        same(deduplicate(a, 0.7, shingles=SHINGLES, against=b), expected)
        assert list(find_pairs(a, 0.7, others=b, shingles=SHINGLES)) == pairs


GAVE = "texts gave 3,000 texts at the first call and"


def test_a_callable_that_changes_its_mind(corpus):
    def changing(change):
        texts = list(corpus)

        def give():
            given = list(texts)
            change(texts)
            return iter(given)

        return give

    def edit(texts):
        texts[1234] += "!"

    with pytest.raises(ValueError, match=r"^texts\[1234\] differs between the first and the second call"):
        deduplicate(changing(edit), 0.7)
    for change in (lambda texts: texts.pop(), lambda texts: texts.append("one more")):
        with pytest.raises(ValueError, match=rf"{GAVE} (2,999|more) at the second"):
            deduplicate(changing(change), 0.7)
    calls = iter([corpus, itertools.cycle(corpus)])  # the second time without end
    with pytest.raises(ValueError, match=f"{GAVE} more at the second"):
        deduplicate(lambda: iter(next(calls)), 0.7)
    for one in (lambda: "one text", lambda: ""):  # what is wrong is what the call returns
        with pytest.raises(TypeError, match=r"^texts\(\) must be a collection of texts, got one str"):
            deduplicate(one)
    with pytest.raises(ValueError, match=r"^texts\[1\] is None"):
        deduplicate(lambda: iter(["a", None]))
    assert deduplicate(lambda: iter(["a", None]), missing="empty").summary()["missing"] == 1
    with pytest.raises(ValueError, match="keep must have one number or date for each text"):
        deduplicate(streamed(corpus), keep=[1, 2])
    with pytest.raises(ZeroDivisionError):
        deduplicate(lambda: (1 // 0 for _ in "a"))


def test_texts_of_one_content_key_are_told_apart(corpus, monkeypatch):
    """A hash of the content finds possible copies; a comparison of the bytes decides."""
    texts, new, old = corpus[:300], corpus[:150], corpus[100:250]
    expected = deduplicate(texts, 0.7, shingles=SHINGLES)
    pairs = list(find_pairs(texts, threshold=0.7, shingles=SHINGLES))
    against = deduplicate(new, 0.7, shingles=SHINGLES, against=old)

    secrets = []

    def weak(batch, secret, out):
        if secret not in secrets:
            secrets.append(secret)
        content_keys(batch, secret, out)
        if len(secrets) == 1:
            out %= 2

    def read_again() -> bool:
        """Whether the texts were read with two secrets since the last question."""
        count = len(secrets)
        secrets.clear()
        return count == 2

    for module in (lsh.engine.corpus, lsh.engine.collection):
        monkeypatch.setattr(module, "content_keys", weak)
    for form in (list, streamed):
        for running in ({}, {"max_memory": "100KB"}):
            same(deduplicate(form(texts), 0.7, shingles=SHINGLES, **running), expected)
            assert read_again()
            assert list(find_pairs(form(texts), threshold=0.7, shingles=SHINGLES, **running)) == pairs
            assert read_again()
        same(deduplicate(form(new), 0.7, shingles=SHINGLES, against=form(old)), against)
        assert read_again()


def test_copies_of_a_stream_are_not_held(monkeypatch):
    """Of several identical texts only one is held in memory, wherever it is in the order."""
    texts = [f"{'a text that comes again and again ' * 40}{i % 7}" for i in range(2000)]
    expected = [deduplicate(texts, keep=keep) for keep in ("first", "last")]
    held = []
    array = MemoryBudget.array

    def noted(budget, shape, dtype):
        held.append((shape, numpy.dtype(dtype)))
        return array(budget, shape, dtype)

    monkeypatch.setattr(MemoryBudget, "array", noted)
    for keep, result in zip(("first", "last"), expected):
        held.clear()
        same(deduplicate(streamed(texts), keep=keep), result)
        sizes = [shape for shape, dtype in held if dtype == numpy.uint8 and isinstance(shape, int)]
        assert sizes == [7 * len(texts[0])]


# Arrays.


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "options",
    [{"keep": "longest"}, {}, {"keep": "last"}, {"clusters": "components"}, {"verify": None}, {"against": slice(50)}],
)
def test_files_change_nothing(corpus, files, monkeypatch, options):
    monkeypatch.setattr(lsh.base.budget, "MIN_FILE", 1)  # every array that can be in a file is in one
    monkeypatch.setattr(lsh.base.budget, "CHUNK", 1 << 12)
    if "against" in options:
        options = {"against": corpus[options["against"]]}
    expected = deduplicate(corpus, 0.7, shingles=SHINGLES, **options)
    assert files == []
    for texts in (corpus, streamed(corpus)):
        same(deduplicate(texts, 0.7, shingles=SHINGLES, max_memory=120_000, **options), expected)
    assert len(files) >= 4
    if not options:
        pairs = list(find_pairs(corpus, threshold=0.7, shingles=SHINGLES))
        files.clear()
        assert list(find_pairs(corpus, threshold=0.7, shingles=SHINGLES, max_memory="100 kB")) == pairs
        assert files


@given(
    texts=st.lists(st.text("ab", max_size=8), max_size=25),
    cut=st.one_of(st.none(), st.integers(0, 25)),
    least=st.sampled_from([1, 300, 5000]),
    rows=st.sampled_from([1, 256]),
    num_threads=st.integers(1, 2),
)
@strategies.examples(50)
def test_pairs_of_many_parts_are_in_order(texts, cut, least, rows, num_threads):
    """Parts of one component or more, whose pairs are merged."""
    a, b = (texts, None) if cut is None else (texts[:cut], texts[cut:])
    options = {"others": b, "shingles": Shingles(2), "threshold": 0.5, "num_threads": num_threads}
    expected = list(find_pairs(a, **options))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lsh.base.budget, "MIN_MEMORY", 1)
        patch.setattr(lsh.engine.layout, "SMALLEST_PARTITION", least)
        patch.setattr(lsh.engine.placing, "MIN_MERGED", rows)
        found = list(find_pairs(a, **options, max_memory=max(len(texts) * lsh.base.budget.LEAST_BYTES, 1)))
    assert found == expected == sorted(expected)


@pytest.mark.skipif(sys.platform != "linux", reason="open files are counted in /proc")
@pytest.mark.parametrize("taken", [0, 1, 50])
def test_an_iterator_of_pairs_that_is_closed_leaves_no_file(corpus, tmp_path, taken):
    before = len(os.listdir("/proc/self/fd"))
    pairs = find_pairs(corpus, 0.7, shingles=SHINGLES, max_memory="100KB", temp_dir=tmp_path)
    assert len(list(itertools.islice(pairs, taken))) == taken
    assert (len(os.listdir("/proc/self/fd")) > before) == (taken > 0)
    pairs.close()
    assert len(os.listdir("/proc/self/fd")) == before
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def files(monkeypatch) -> list[int]:
    """The size in bytes of each file that was created."""
    sizes: list[int] = []
    make = _File.mapped

    def noted(file: _File, size: int) -> mmap.mmap:
        sizes.append(size)
        return make(file, size)

    monkeypatch.setattr(_File, "mapped", noted)
    return sizes


# Columns.


def small_chunks(monkeypatch):
    monkeypatch.setattr(lsh.base.budget, "CHUNK", 64)
    monkeypatch.setattr(lsh.base.budget, "MIN_ROWS", 2)


@pytest.mark.few(2)
@pytest.mark.parametrize("bound", [None, 0, 1000])
@pytest.mark.parametrize("width", [None, 3])
@given(data=st.data())
@strategies.examples(60)
def test_a_column_against_an_array(bound, width, data):
    """Whatever is in memory and whatever in a file, each way of reading gives the rows that were appended."""
    with pytest.MonkeyPatch.context() as patch:
        small_chunks(patch)
        sizes = data.draw(st.lists(st.integers(0, 40), max_size=30))
        evicted = data.draw(st.integers(0, 30))
        column = MemoryBudget(bound).column(numpy.int32, width)
        expected = numpy.arange(sum(sizes) * (width or 1), dtype=numpy.int32)
        expected = expected if width is None else expected.reshape(-1, width)
        for number, rows in enumerate(numpy.split(expected, numpy.cumsum(sizes))):
            column.append(rows)
            if number == evicted:
                column.evict()
        start, stop = sorted(data.draw(st.lists(st.integers(0, sum(sizes)), min_size=2, max_size=2)))
        chosen = numpy.flatnonzero(data.draw(st.lists(st.booleans(), min_size=len(expected), max_size=len(expected))))
        parts = [(at, rows.copy()) for at, rows in column.chunks(start, stop)]
        backwards = [(at, rows.copy()) for at, rows in column.chunks(start, stop, backwards=True)]
        assert len(column) == len(expected)
        assert column.read().tolist() == expected.tolist()
        assert column.read(start, stop).tolist() == expected[start:stop].tolist()
        assert column.take(chosen).tolist() == expected[chosen].tolist()
        for found in (parts, backwards[::-1]):
            ends = [at + len(rows) for at, rows in found]
            assert [at for at, _ in found] == [start, *ends][: len(found)]
            assert [row for _, rows in found for row in rows.tolist()] == expected[start:stop].tolist()


def test_a_file_that_another_process_cuts(monkeypatch, tmp_path):
    small_chunks(monkeypatch)
    column = MemoryBudget(0, str(tmp_path)).column(numpy.int64)
    column.append(numpy.arange(100))
    os.ftruncate(column._file._file.fileno(), 100)
    with pytest.raises(OSError, match="another process has truncated a temporary file") as caught:
        column.read()
    assert caught.value.filename == str(tmp_path)


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (None, None),
        (500_000, 500_000),
        ("500000", 500_000),
        ("2GB", 2 * 10**9),
        (" 150.5 kb ", 150_500),
        ("500MiB", 500 * 2**20),
        ("1 TiB", 2**40),
        (numpy.int64(700_000), 700_000),
    ],
)
def test_sizes_of_memory(value, size):
    assert memory_size(value) == size


# Errors, and the files that they leave.


@pytest.mark.few(1)
@pytest.mark.parametrize("stage", ["fingerprints", "grouping", "comparing"])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupt_leaves_no_file(tmp_path, how, stage):
    """Not even SIGKILL, which cannot be caught, leaves files."""
    program = textwrap.dedent(
        """
        import os, signal, sys
        import lsh, lsh.base.budget
        lsh.base.budget.MIN_FILE, lsh.base.budget.CHUNK = 1, 1 << 12
        signal.signal(signal.SIGINT, signal.default_int_handler)
        def stop(stage, done, total):
            if stage == sys.argv[2]:
                if sys.platform == "linux":
                    open_files = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
                    assert any(name.startswith(os.environ["TMPDIR"]) for name in open_files), open_files
                os.kill(os.getpid(), int(sys.argv[1]))
        texts = [f"text {i % 500} of many that are alike but for their number" for i in range(3000)]
        lsh.deduplicate(lambda: iter(texts), max_memory=100_000, progress=stop)
        """
    )
    folder, start = tmp_path / "temporary", tmp_path / "start"
    folder.mkdir()
    start.mkdir()
    ran = process(start, python=("-c", program, int(how), stage), env={"TMPDIR": str(folder)})
    assert ran.returncode == -how, ran.stderr
    if how == signal.SIGINT:
        assert ran.stderr.strip().endswith(b"KeyboardInterrupt")
    assert list(folder.iterdir()) == []


def test_memory_that_the_system_does_not_give_is_a_memory_error(monkeypatch):
    def refuse(*given: object, **flags: object) -> object:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    column = MemoryBudget().column(numpy.uint64, expected=10**6)
    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(MemoryError, match="8,000,000 bytes of memory are needed and not available"):
        column.append(numpy.zeros(1, numpy.uint64))
