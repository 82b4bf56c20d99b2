"""Prefetching: a thread reads the next items of an iterator while the last ones are used.

So files are read, unpacked and parsed while fingerprints are computed, which releases the GIL. No more than a few items
wait at a time, so that memory stays bounded. Items keep their order; an error is raised in its place among them.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

from lsh import _threads

WAITING = 4  # items, such as blocks of documents; room for the last one and the end when no more are wanted

Item = TypeVar("Item")
Prefetched = tuple[Item] | BaseException | None  # an item, the error that ended them, or their end


def prefetched(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items while a thread reads the next ones.

    Closing the generator ends the thread; where that is forgotten it ends with the program. Where the system starts no
    more threads, each item is read when it is asked for.

    Examples
    --------
    >>> list(prefetched(range(3)))
    [0, 1, 2]
    """
    waiting: queue.Queue[Prefetched[Item]] = queue.Queue(WAITING)
    stopped = threading.Event()
    thread = _threads.started(_fill, waiting, iter(items), stopped, daemon=True)
    if thread is None:
        yield from items
        return
    try:
        while (one := waiting.get()) is not None:
            if isinstance(one, BaseException):
                raise one
            yield one[0]
    finally:
        stopped.set()
        while not waiting.empty():  # so that the thread does not wait for room
            waiting.get()
        thread.join()


def _fill(waiting: queue.Queue[Prefetched[Item]], items: Iterator[Item], stopped: threading.Event) -> None:
    """Hand over the items, then None or the error that was raised; and close what was read from."""
    last: BaseException | None = None
    try:
        try:
            for item in items:
                waiting.put((item,))
                if stopped.is_set():
                    return
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()
    except BaseException as error:
        last = error
    finally:
        waiting.put(last)
