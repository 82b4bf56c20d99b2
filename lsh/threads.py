"""How many threads to use, and using them: a map over batches whose results come back in order.

The work itself releases the GIL on the floor below. Threads live for one call only, so a process may fork
between calls.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
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
