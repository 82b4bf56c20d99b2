"""Threads: a map in any number of threads gives what one thread gives, errors included."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import running
import sharing

import lsh
import lsh.sketch.hasher
from lsh import MinHasher
from lsh.base import threads

WORKERS = (1, 2, 3, 8)


FAILING_STARTS = {
    "none": lambda number: False,
    "all": lambda number: True,
    "the first": lambda number: number == 0,
    "all from the second on": lambda number: number > 0,
}


@pytest.fixture(params=FAILING_STARTS)
def starts(request, monkeypatch):
    """Make some starts of threads fail, by their number from 0; the threads of all starts."""
    started, start = [], threading.Thread.start

    def counted(thread):
        started.append(thread)
        if FAILING_STARTS[request.param](len(started) - 1):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", counted)
    return started


@pytest.fixture
def no_thread_left():
    """The threads of the test end with it."""
    before = threading.active_count()
    yield
    assert threading.active_count() == before


@pytest.mark.usefixtures("starts", "no_thread_left")
@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("kind", [ValueError, SystemExit])
def test_the_first_failure_is_raised(workers, kind):
    late = threading.Event()

    def work(number):
        if number == 3:
            late.wait(0.02)  # other items fail first
            raise kind("item 3")
        if number > 3:
            late.set()
            raise kind(f"item {number}")

    with pytest.raises(kind, match=r"^item 3$" if kind is ValueError else "^item"):  # of exits, any
        list(threads.map_in_order(work, range(50), workers))


@pytest.mark.usefixtures("no_thread_left")
@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("count", [0, 1, 2, 200])
def test_maps_keep_the_order(count, workers, starts):
    called = []
    results = threads.map_in_order(lambda number: called.append(number) or number * number, iter(range(count)), workers)
    assert list(results) == [number * number for number in range(count)]
    assert sorted(called) == list(range(count))
    assert (len(starts) > 0) == (workers > 1 and count > 1)


@pytest.mark.parametrize("kind", [list, iter])
@pytest.mark.parametrize("workers", [1, 3])
def test_the_first_wrong_text_is_named(workers, kind):
    texts = ["a text of some length"] * 60_000
    texts[30_001] = texts[50_000] = 5
    with pytest.raises(TypeError, match=r"^texts\[30001\] must be str"):
        MinHasher(16, scheme="fss").fingerprints(kind(texts), num_threads=workers)


@pytest.mark.parametrize("make", [sharing.hashing_jobs, sharing.corpus_jobs, sharing.store_jobs])
def test_threads_that_share_objects_get_what_one_thread_gets(make, tmp_path):
    texts = sharing.make_texts(3, 40)
    jobs = make(texts, tmp_path) if make is sharing.store_jobs else make(texts)
    sharing.compare(jobs, 3, 1, 3)


def test_threads_change_one_cache():
    sharing.change_cache(sharing.make_texts(4, 20), 3, 6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_many_threads_are_the_first_users_of_a_process(tmp_path, seed):
    script = Path(__file__).parents[1] / "sharing.py"
    ran = running.process(tmp_path, python=(str(script), "8", "1", str(seed)))
    assert (ran.returncode, ran.stdout) == (0, b"equal\n"), ran.stderr.decode()


@pytest.mark.usefixtures("no_thread_left")
def test_an_interrupt_while_waiting_for_the_others():
    caller = threading.current_thread()
    begun = threading.Event()

    def work(_):
        if threading.current_thread() is caller:
            begun.wait(60)
            return
        begun.set()
        time.sleep(0.1)  # the caller has no more items, and waits
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        done.append(True)

    done = []
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            list(threads.map_in_order(work, range(2), 2))
    finally:
        signal.signal(signal.SIGINT, handler)
    assert done
    time.sleep(0.05)  # the work has ended; the thread may need a moment to exit


@pytest.mark.usefixtures("starts", "no_thread_left")
@pytest.mark.parametrize("workers", WORKERS)
def test_items_that_fail_come_behind_their_results(workers):
    def items():
        yield from range(5)
        raise KeyError("no more")

    results = threads.map_in_order(lambda number: number, items(), workers)
    assert [next(results) for _ in range(5)] == list(range(5))
    with pytest.raises(KeyError, match="no more"):
        next(results)


@pytest.mark.parametrize("workers", WORKERS)
def test_items_are_read_only_a_little_ahead(workers):
    read = []

    def items():
        for number in range(1000):
            read.append(number)
            yield number

    results = threads.map_in_order(lambda number: number, items(), workers)
    for number in range(50):
        assert next(results) == number
        assert len(read) <= number + 1 + 2 * workers
    results.close()


@pytest.mark.few(2)
def test_an_answer_does_not_depend_on_the_threads_that_start(starts, monkeypatch):
    texts = [f"document {i % 150} of a corpus, and {i % 150 * 7} more words in it" for i in range(3000)]
    hasher = MinHasher(16, scheme="fss")
    monkeypatch.setitem(lsh.sketch.hasher._BATCH_BYTES, "fss", 1 << 10)  # enough batches for every thread
    answers = []
    for num_threads in (1, 4):
        before = len(starts)
        result = lsh.deduplicate(texts, num_threads=num_threads)
        pairs = list(lsh.find_pairs(texts[:400], num_threads=num_threads))
        rows = hasher.fingerprints(texts, num_threads=num_threads)
        parts = [part for _, part in hasher.chunks(iter(texts), num_threads=num_threads)]
        answers.append((result.removed.tolist(), pairs, rows.tolist(), np.concatenate(parts).tolist()))
        assert (len(starts) - before >= 4) == (num_threads > 1)
    assert answers[0] == answers[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("ending", ["read", "closed"])
def test_a_fork_while_a_helper_works(ending):
    """The forked process makes the call of the helper, which it does not have, again; or gives the calls up."""
    begun, go_on, parent = threading.Event(), threading.Event(), os.getpid()

    def work(item):
        if os.getpid() != parent:
            return item
        if threading.current_thread() is threading.main_thread():
            assert begun.wait(60)
        elif item:
            begun.set()
            assert go_on.wait(60)
        return item

    results = threads.map_in_order(work, range(8), 2)
    found = [next(results)]
    assert begun.is_set()
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # in place of a hang
        if ending == "closed":
            results.close()
        os._exit(int([*found, *results] != ([0] if ending == "closed" else list(range(8)))))
    go_on.set()
    assert os.waitpid(child, 0)[1] == 0
    assert [*found, *results] == list(range(8))
