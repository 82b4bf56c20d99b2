"""Reading ahead: a thread takes items from an iterator while what it took before is worked on.

Files are read, unpacked and parsed while fingerprints are computed, which lets go of Python's lock. No more than a few
bundles wait at a time, so that memory stays flat. The items come in their order; an error comes in its place.

A bundle is what is taken within some milliseconds, be it one text or thousands: who waits for the lock may wait as long
as that (`sys.getswitchinterval`), so small bundles would cost more than reading ahead is worth.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

BUNDLE, SECONDS = 4096, 0.005  # a bundle is that many items, or what is taken in that time
WAITING = 4  # bundles; room for the last ones when nobody takes them any more

Item = TypeVar("Item")


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items while a thread takes the next ones.

    Closing the generator ends the thread; where that is forgotten it ends with the program.

    Examples
    --------
    >>> list(ahead(range(3)))
    [0, 1, 2]
    """
    bundles: queue.Queue[list[Item] | BaseException | None] = queue.Queue(WAITING)
    stopped = threading.Event()
    thread = threading.Thread(target=_take, args=(iter(items), bundles, stopped), daemon=True)
    thread.start()
    try:
        while (bundle := bundles.get()) is not None:
            if isinstance(bundle, BaseException):
                raise bundle
            yield from bundle
    finally:
        stopped.set()
        while not bundles.empty():  # what waits for room shall see that none is wanted
            bundles.get()
        thread.join()


def _take(
    items: Iterator[Item], bundles: queue.Queue[list[Item] | BaseException | None], stopped: threading.Event
) -> None:
    """Hand over bundles, then None or the error that came; and close what was read from."""
    bundle: list[Item] = []
    try:
        end = time.perf_counter() + SECONDS
        for item in items:
            bundle.append(item)
            if len(bundle) == BUNDLE or time.perf_counter() >= end:
                bundles.put(bundle)
                bundle = []
                if stopped.is_set():
                    return
                end = time.perf_counter() + SECONDS
        bundles.put(bundle)
        bundles.put(None)
    except BaseException as error:
        bundles.put(bundle)
        bundles.put(error)
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()
