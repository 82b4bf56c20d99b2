"""Writing in a thread, a few pieces behind."""

import gc
import sys
import threading

import pytest

from lsh.base import threads
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


def written():
    writer = behind.WriteBehind(len)
    try:
        for _ in range(6):
            writer.write(bytes(behind.PIECE))
        writer.finish()
    finally:
        writer.stop()


# at a lock of Python's own, which would stay held; in the callback of a weak reference, which ignores interrupts
UNINTERRUPTED = {"__enter__", "__exit__", "_remove", "setprofile"}
WORK = [written, lambda: list(prefetched(range(6))), lambda: list(threads.map_in_order(str, range(6), 3))]


def is_interrupted(work, number):
    """Interrupt work where a function is called or ends for the numberth time; whether it came so far, and ended so."""
    left = number

    def count(frame, event, called):
        nonlocal left
        left -= not {frame.f_code.co_name, getattr(called, "__name__", "")} & UNINTERRUPTED
        if left == 0:
            sys.setprofile(None)
            raise KeyboardInterrupt

    gc.disable()  # which calls back, too
    sys.setprofile(count)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
        gc.enable()
    assert left > 0, "the interrupt was lost"
    return False


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # of Python's start of a thread
@pytest.mark.parametrize("work", WORK, ids=["write", "read", "map"])
def test_an_interrupt_at_any_call_is_raised(work):
    number, before = 1, threading.enumerate()
    while is_interrupted(work, number):
        number += 1
    assert number > 100
    for thread in filter(threading.Thread.is_alive, set(threading.enumerate()).difference(before)):
        thread.join(0.05)  # a few do not end: an interrupt came while they were being told to
