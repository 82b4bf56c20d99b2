"""How many threads to use, and using them: work shared out, or a map whose results come back in order.

The work itself, in the compiled modules, releases the GIL. Threads live for one call only, so a process may fork
between calls.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from lsh import _checks

if TYPE_CHECKING:
    from concurrent.futures import Future

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_THREADS = 1024  # threads: more than any machine has cores for
CGROUP_LIMIT = "/sys/fs/cgroup/cpu.max"  # version 2: "quota period" in microseconds, or "max period"


def available_cores() -> int:
    """Return the number of cores that this process may use: its affinity, bounded by its cgroup."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        cores = os.cpu_count() or 1
    try:
        with open(CGROUP_LIMIT, encoding="ascii") as limit:
            quota, period = limit.read().split()
        cores = min(cores, -(-int(quota) // int(period)))
    except (OSError, ValueError):  # no such cgroup, or no limit
        pass
    return max(cores, 1)


def number_of(num_threads: object) -> int:
    """Return how many threads a caller's `num_threads` asks for; ``None`` means every available core."""
    return (
        available_cores() if num_threads is None else _checks.whole_number("num_threads", num_threads, 1, MAX_THREADS)
    )


def share(function: Callable[[Item], object], items: Iterable[Item], num_threads: int) -> None:
    """Call `function` with each item, in threads of which the caller's is one; each takes the next when it is free.

    After an exception no further item is taken. The one raised is that of the first item that failed, which does not
    depend on the threads; with an interrupt it is raised when the items begun are done.
    """
    waiting = enumerate(items)
    taking = threading.Lock()
    failures: dict[int, BaseException] = {}
    ends: list[threading.Event] = []
    stopped = False

    def work() -> None:
        while True:
            with taking:
                numbered = None if failures or stopped else next(waiting, None)
            if numbered is None:
                return
            number, item = numbered
            try:
                function(item)
            except BaseException as error:
                failures[number] = error

    def helper() -> None:
        end = threading.Event()
        with taking:
            if stopped:
                return
            ends.append(end)
        work()
        end.set()

    others = [threading.Thread(target=helper) for _ in range(num_threads - 1)]
    try:
        for thread in others:
            try:
                thread.start()
            except RuntimeError:  # no more threads to be had: those there are will do
                break
        work()
    finally:
        with taking:
            stopped = True
        _wait(ends)
    for thread in others:
        if thread.ident is not None:
            thread.join()
    try:
        if failures:
            raise failures[min(failures)]
    finally:
        failures.clear()  # or they would hold this frame, and it them, with all that the items need


def _wait(ends: Iterable[threading.Event]) -> None:
    """Wait for helpers to end, through interrupts, of which the last is raised then.

    Not by `join`: before Python 3.13 an interrupted one takes the thread for ended.
    """
    interrupt: KeyboardInterrupt | None = None
    for end in ends:
        while not end.is_set():
            try:
                end.wait()
            except KeyboardInterrupt as error:
                interrupt = error
    if interrupt is not None:
        raise interrupt


def map_in_order(function: Callable[[Item], Result], items: Iterable[Item], num_threads: int) -> Iterator[Result]:
    """Apply `function` to each item in threads and yield the results in the order of the items.

    Items are taken as results are wanted, at most two a thread ahead. An exception is raised where its result would
    have come, one of the items themselves behind the results of those before it.
    """
    if num_threads == 1:
        yield from map(function, items)
        return
    from concurrent.futures import ThreadPoolExecutor

    failures: list[Exception] = []
    with ThreadPoolExecutor(num_threads) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in _until_failure(items, failures):
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * num_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
    try:
        if failures:
            raise failures[0]
    finally:
        failures.clear()


def _until_failure(items: Iterable[Item], failures: list[Exception]) -> Iterator[Item]:
    """Yield items; an exception of theirs ends them and is put into `failures`."""
    try:
        yield from items
    except Exception as error:
        failures.append(error)
