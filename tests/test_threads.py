"""Threads: work that is shared out, and maps in order, give what one thread gives, errors included."""

import gc
import os
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import weakref

import numpy as np
import pytest

import lsh
from lsh import MinHasher, _threads
from lsh._batch import Batch, extent
from lsh.minhash import MAX_BATCH

WORKERS = (1, 2, 3, 8)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_each_item_once(count, workers):
    seen = []
    _threads.share(seen.append, range(count), workers)
    assert sorted(seen) == list(range(count))


def test_the_caller_works_too():
    together = threading.Barrier(3, timeout=60)
    names = []

    def work(_):
        names.append(threading.current_thread())
        together.wait()

    _threads.share(work, range(3), 3)
    assert len(set(names)) == 3
    assert threading.current_thread() in names


@pytest.mark.parametrize("workers", WORKERS)
def test_the_first_failure_is_raised(workers):
    late = threading.Event()

    def work(number):
        if number == 3:
            late.wait(0.2)  # others fail meanwhile
            raise ValueError("item 3")
        if number > 3:
            late.set()
            raise ValueError(f"item {number}")

    with pytest.raises(ValueError, match=r"^item 3$"):
        _threads.share(work, range(50), workers)


@pytest.mark.parametrize("workers", WORKERS)
def test_nothing_is_begun_after_a_failure(workers):
    begun = []

    def work(number):
        begun.append(number)
        raise ValueError("every one fails")

    with pytest.raises(ValueError, match="every one fails"):
        _threads.share(work, range(1000), workers)
    assert len(begun) <= workers


def test_an_interrupt_stops_the_others():
    caller = threading.current_thread()
    others = threading.Event()
    begun = []

    def work(number):
        begun.append(number)
        if threading.current_thread() is not caller:
            others.set()
            time.sleep(0.01)
            return
        others.wait(60)
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        _threads.share(work, range(100_000), 2)
    assert len(begun) < 100_000
    time.sleep(0.05)
    assert threading.active_count() == before


@pytest.mark.parametrize("workers", WORKERS)
def test_maps_keep_the_order(workers):
    assert list(_threads.map_in_order(lambda number: number * number, iter(range(200)), workers)) == [
        number * number for number in range(200)
    ]


@pytest.mark.parametrize("scheme", ["fss", "murmur3"])
@pytest.mark.parametrize("sizes", [(0, 1, 5), (100,), (3, 30_000), (600_000, 2)])
def test_fingerprints_do_not_depend_on_threads(scheme, sizes):
    hasher = MinHasher(16, scheme=scheme)
    texts = [
        (b"%d " % i * (size // 2 + 1))[:size]
        for i in range(40 if max(sizes) > 1000 else 2 * MAX_BATCH)
        for size in sizes
    ]
    expected = hasher.fingerprints(texts, num_threads=1)
    for workers in WORKERS[1:]:
        assert (hasher.fingerprints(texts, num_threads=workers) == expected).all()


@pytest.mark.parametrize("workers", WORKERS)
def test_the_first_wrong_text_is_named(workers):
    texts = ["a text of some length"] * 60_000
    texts[30_001] = texts[50_000] = 5
    with pytest.raises(TypeError, match=r"^texts\[30001\] must be str"):
        MinHasher(16, scheme="fss").fingerprints(texts, num_threads=workers)


def test_free_threaded_python_stays_free():
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("this Python has a GIL")
    script = "import sys, lsh.lsh, lsh.command.main; sys.exit(sys._is_gil_enabled())"
    assert subprocess.run([sys.executable, "-W", "error", "-c", script], check=False).returncode == 0


# ---- what is shared out ----


@pytest.mark.parametrize(
    "texts",
    [
        [b"%d" % i for i in range(64)] + [b"long " * 4000] * 400,
        [None] * 64 + ["long " * 4000] * 400,
        [bytearray(b"long " * 4000)] * 400,
        [memoryview(b"long " * 4000)] * 400,
        list(np.array(["long " * 1000] * 1000)),
        ["long " * 4000 + "\u2014"] * 400,
    ],
    ids=["short ones first", "none first", "bytearray", "memoryview", "numpy str", "beyond ASCII"],
)
def test_work_is_cut_by_its_size(texts, monkeypatch):
    cuts = []
    share = _threads.share

    def watched(function, items, num_threads):
        cuts.extend(items)
        return share(function, cuts, num_threads)

    monkeypatch.setattr(_threads, "share", watched)
    hasher = MinHasher(16, scheme="fss")
    rows = hasher.fingerprints(texts, missing="empty", num_threads=2)
    assert [stop for _, stop in cuts[:-1]] == [start for start, _ in cuts[1:]]
    assert (cuts[0][0], cuts[-1][1]) == (0, len(texts))
    assert len(cuts) > 15  # 8 MB or more, at most a quarter of one at a time
    assert (rows[-1] == hasher.fingerprint(texts[-1])).all()


def test_many_short_texts_behind_long_ones_stay_together():
    texts = ("long " * 4000,) * 10 + ("short",) * 100_000
    starts = [0]
    while starts[-1] < len(texts):
        starts.append(extent(texts, starts[-1], min(starts[-1] + MAX_BATCH, len(texts)), 1 << 18))
    assert len(starts) < 20


@pytest.mark.parametrize("make", [tuple, Batch], ids=["tuple", "batch"])
def test_extents(make):
    texts = make((b"12345", b"", b"1234567890", b"1", b"2"))
    assert [extent(texts, 0, 5, size) for size in (0, 1, 5, 6, 10, 100)] == [1, 1, 1, 2, 3, 5]
    assert extent(texts, 2, 5, 1) == 3
    with pytest.raises(ValueError, match="start and stop must lie within the 5 texts"):
        extent(texts, 3, 6, 1)


def test_a_failure_holds_nothing():
    gc.collect()
    gc.disable()
    try:

        class Held(str):
            pass

        texts = [Held("a text"), 5]
        gone = weakref.ref(texts[0])
        with pytest.raises(TypeError):
            MinHasher(16).fingerprints(texts, num_threads=2)
        del texts
        assert gone() is None
    finally:
        gc.enable()


def test_an_exit_in_a_thread_is_not_lost():
    def leave(number):
        if number == 5:
            raise SystemExit(3)

    for _ in range(20):
        with pytest.raises(SystemExit):
            _threads.share(leave, range(20), 4)


def test_no_more_threads_to_be_had(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    seen = []
    _threads.share(seen.append, range(10), 4)
    assert seen == list(range(10))


def test_an_interrupt_while_waiting_for_the_others():
    caller = threading.current_thread()
    begun = threading.Event()

    def work(_):
        if threading.current_thread() is caller:
            begun.wait(60)
            return
        begun.set()
        time.sleep(0.1)  # the caller has nothing more to take, and waits
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        done.append(True)

    done = []
    before = threading.active_count()
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            _threads.share(work, range(2), 2)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert done
    for _ in range(100):  # what is computed has ended; the thread itself may take a moment
        if threading.active_count() == before:
            return
        time.sleep(0.01)
    pytest.fail("a thread was left")


@pytest.mark.parametrize("workers", WORKERS)
def test_items_that_fail_come_behind_their_results(workers):
    def items():
        yield from range(5)
        raise KeyError("no more")

    results = _threads.map_in_order(lambda number: number, items(), workers)
    assert [next(results) for _ in range(5)] == list(range(5))
    with pytest.raises(KeyError, match="no more"):
        next(results)


def test_a_long_matrix_can_be_interrupted():
    texts = [f"{i} " + "the quick brown fox jumps over the lazy dog " * 20 for i in range(4000)]  # minutes of work
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    started = time.monotonic()
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            lsh.jaccard_matrix(texts, shingles=lsh.Shingles(5))
    finally:
        timer.join()
        signal.signal(signal.SIGINT, handler)
    assert time.monotonic() - started < 20
