"""Reading ahead: a thread takes items from an iterator while what it took before is worked on.

Files are read, unpacked and parsed while fingerprints are computed, which lets go of Python's lock. No more than a few
items wait at a time, so that memory stays flat. They come in their order; an error comes in its place.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

WAITING = 4  # items, such as blocks of documents; room for the last one and the end when nobody takes them any more

Item = TypeVar("Item")


def prefetched(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items while a thread takes the next ones.

    Closing the generator ends the thread; where that is forgotten it ends with the program.

    Examples
    --------
    >>> list(prefetched(range(3)))
    [0, 1, 2]
    """
    taken: queue.Queue[tuple[Item] | BaseException | None] = queue.Queue(WAITING)
    stopped = threading.Event()
    thread = threading.Thread(target=_take, args=(iter(items), taken, stopped), daemon=True)
    thread.start()
    try:
        while (one := taken.get()) is not None:
            if isinstance(one, BaseException):
                raise one
            yield one[0]
    finally:
        stopped.set()
        while not taken.empty():  # what waits for room shall see that none is wanted
            taken.get()
        thread.join()


def _take(
    items: Iterator[Item], taken: queue.Queue[tuple[Item] | BaseException | None], stopped: threading.Event
) -> None:
    """Hand over the items, then None or the error that came; and close what was read from."""
    last: BaseException | None = None
    try:
        try:
            for item in items:
                taken.put((item,))
                if stopped.is_set():
                    return
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()
    except BaseException as error:
        last = error
    finally:
        taken.put(last)
