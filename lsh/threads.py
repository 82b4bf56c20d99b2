"""How many threads to use, and using them: work shared out, or a map whose results come back in order.

The work itself releases the GIL on the floor below. Threads live for one call only, so a process may fork
between calls.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from lsh import checks

Item = TypeVar("Item")
Result = TypeVar("Result")

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


def number_of(num_threads: Any) -> int:
    """Return how many threads a caller's `num_threads` asks for; ``None`` means every available core."""
    return available_cores() if num_threads is None else checks.whole_number("num_threads", num_threads, 1)


def share(function: Callable[[Item], object], items: Sequence[Item], num_threads: int) -> None:
    """Call `function` with each item, in threads of which the caller's is one; each takes the next when it is free.

    After an exception no further item is taken. The one raised is that of the first item that failed, which does not
    depend on the threads, but for an interrupt.
    """
    taking = threading.Lock()
    failures: dict[int, Exception] = {}
    taken = 0

    def work() -> None:
        nonlocal taken
        while True:
            with taking:
                number = taken
                if failures or number >= len(items):
                    return
                taken += 1
            try:
                function(items[number])
            except Exception as error:
                failures[number] = error

    others: list[threading.Thread] = []
    try:
        for _ in range(num_threads - 1):
            thread = threading.Thread(target=work)
            thread.start()
            others.append(thread)
        work()
    finally:
        taken = len(items)
        for thread in others:
            thread.join()
    if failures:
        raise failures[min(failures)]


def map_in_order(function: Callable[[Item], Result], items: Iterable[Item], num_threads: int) -> Iterator[Result]:
    """Apply `function` to each item in threads and yield the results in the order of the items.

    Items are taken as results are wanted, at most two a thread ahead. An exception is raised where its result would
    have come.
    """
    if num_threads == 1:
        yield from map(function, items)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(num_threads) as pool:
        waiting: deque[Any] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * num_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
