"""Writing in a thread, a few pieces behind."""

import gc
import signal
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from itertools import count

import pytest

from lsh.base.prefetch import prefetched
from lsh.storage import behind


@pytest.mark.parametrize("sizes", [(), (5, 7), (behind.PIECE,) * 9, (3, 8 * behind.PIECE, 1)])
def test_all_bytes_in_order(sizes):
    found, data = [], [bytes([number]) * size for number, size in enumerate(sizes)]
    writer = behind.WriteBehind(found.append)
    for piece in data:
        changed = bytearray(piece)
        writer.write(changed)
        changed[:] = b"x" * len(changed)
    writer.finish()
    assert b"".join(found) == b"".join(data)
    assert [len(one) for one in found if len(one) > behind.PIECE] == [one for one in sizes if one > behind.PIECE]


def test_an_error_is_raised_once_more_and_ends_writing():
    calls = []

    def write(data):
        calls.append(len(data))
        raise OSError(28, "full")

    writer, before = behind.WriteBehind(write), threading.active_count()
    with pytest.raises(OSError, match="full"):
        list(map(writer.write, [bytes(behind.PIECE)] * 99))
    with pytest.raises(OSError, match="full"):
        writer.finish()
    writer.stop()
    assert calls == [behind.PIECE]
    assert threading.active_count() == before


def write_on():
    writer = behind.WriteBehind(len)
    try:
        while True:
            writer.write(bytes(behind.PIECE))
    finally:
        writer.stop()


def read_on():
    deque(prefetched(count()), 0)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no such timer")
@pytest.mark.skipif("free-threading" in sys.version, reason="an interrupt may leave a lock of Python's own held")
@pytest.mark.parametrize("work", [write_on, read_on])
def test_an_interrupt_at_any_moment_does_not_hang(work):
    previous, before = signal.signal(signal.SIGALRM, signal.default_int_handler), threading.active_count()
    gc.disable()  # a collection calls back weak references to threads, and Python ignores an interrupt in a callback
    try:
        for number in range(300):
            gc.collect(0)  # the threads of the round before
            started = time.monotonic()
            with suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 1e-3 + number * 1e-6, 20)  # the second one ends what hangs
                work()
            assert time.monotonic() - started < 15
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        gc.enable()
    while threading.active_count() > before and time.monotonic() - started < 5:  # a start was interrupted
        time.sleep(0.01)
