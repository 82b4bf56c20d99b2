"""Threads: work that is shared out, and maps in order, give what one thread gives, errors included."""

import subprocess
import sys
import sysconfig
import threading
import time

import pytest

from lsh import MinHasher, threads
from lsh.minhash import MOST_CHUNK

WORKERS = (1, 2, 3, 8)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_each_item_once(count, workers):
    seen = []
    threads.share(seen.append, range(count), workers)
    assert sorted(seen) == list(range(count))


def test_the_caller_works_too():
    together = threading.Barrier(3, timeout=60)
    names = []

    def work(_):
        names.append(threading.current_thread())
        together.wait()

    threads.share(work, range(3), 3)
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
        threads.share(work, range(50), workers)


@pytest.mark.parametrize("workers", WORKERS)
def test_nothing_is_begun_after_a_failure(workers):
    begun = []

    def work(number):
        begun.append(number)
        raise ValueError("every one fails")

    with pytest.raises(ValueError, match="every one fails"):
        threads.share(work, range(1000), workers)
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
        threads.share(work, range(100_000), 2)
    assert threading.active_count() == before
    assert len(begun) < 100_000


@pytest.mark.parametrize("workers", WORKERS)
def test_maps_keep_the_order(workers):
    assert list(threads.map_in_order(lambda number: number * number, iter(range(200)), workers)) == [
        number * number for number in range(200)
    ]


@pytest.mark.parametrize("scheme", ["fss", "murmur3"])
@pytest.mark.parametrize("sizes", [(0, 1, 5), (100,), (3, 30_000), (600_000, 2)])
def test_fingerprints_do_not_depend_on_threads(scheme, sizes):
    hasher = MinHasher(16, scheme=scheme)
    texts = [
        (b"%d " % i * (size // 2 + 1))[:size]
        for i in range(40 if max(sizes) > 1000 else 2 * MOST_CHUNK)
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
    script = "import sys, lsh.lsh, lsh.cli; sys.exit(sys._is_gil_enabled())"
    assert subprocess.run([sys.executable, "-W", "error", "-c", script], check=False).returncode == 0
