"""Prefetching: a thread reads the next items of an iterator while the current one is used.

Files are read, unpacked and parsed while fingerprints are computed, which releases the GIL. Only a few items wait at a
time, so memory stays bounded. Items keep their order, and an error is raised after the items before it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

from lsh.base import threads

WAITING = 4  # items, such as blocks of documents, that wait at most

Item = TypeVar("Item")
Prefetched = tuple[Item] | BaseException | None  # an item, the error that ended them, or their end


def prefetched(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items while a thread reads the next ones; without that thread where none can be started.

    Closing the generator ends the thread; otherwise it ends with the program.

    Examples
    --------
    >>> list(prefetched(range(3)))
    [0, 1, 2]
    """
    # An interrupt within queue.Queue can leave its lock held, or its reader asleep; not within a SimpleQueue.
    waiting: queue.SimpleQueue[Prefetched[Item]] = queue.SimpleQueue()
    places: queue.SimpleQueue[None] = queue.SimpleQueue()  # for items; each takes one until it is used
    for _ in range(WAITING):
        places.put(None)
    stopped = threading.Event()
    thread = None
    try:
        thread = threads.started(_fill, waiting, places, iter(items), stopped, daemon=True)
        if thread is None:
            yield from items
            return
        while (one := waiting.get()) is not None:
            places.put(None)
            if isinstance(one, BaseException):
                raise one
            yield one[0]
    finally:
        stopped.set()
        places.put(None)  # so that the thread sees it, also one whose start was interrupted
        if thread is not None:
            thread.join()
        while not waiting.empty():  # what holds this frame shall not hold items
            waiting.get()


def _fill(
    waiting: queue.SimpleQueue[Prefetched[Item]],
    places: queue.SimpleQueue[None],
    items: Iterator[Item],
    stopped: threading.Event,
) -> None:
    """Put the items into the queue, then None or the error that was raised; close the iterator."""
    last: BaseException | None = None
    try:
        try:
            for item in items:
                places.get()
                if stopped.is_set():
                    return
                waiting.put((item,))
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()
    except BaseException as error:
        last = error
    finally:
        waiting.put(last)
