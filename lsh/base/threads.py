"""How many threads to use, and a map over items in threads whose results come back in order.

The compiled modules release the GIL while they work. The calling thread works, too: where the system cannot start more
threads, the work goes on with those that run, down to the calling thread alone. A helper thread ends as soon as no call
is left for it, so none waits while a caller uses the results. In a forked process, which has no helper threads, the
calls that they were making are made again.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from lsh.base import checks

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_THREADS = 1024  # more than any machine has cores
WORTH_THREADS = 1 << 19  # items; starting threads takes about as long as 1 << 16
CGROUP_LIMIT = "/sys/fs/cgroup/cpu.max"  # version 2: "quota period" in microseconds, or "max period"


_stops = threading.local()


class Stopped(BaseException):
    """The results of this thread are not needed any more."""


def stop_when(ask: Callable[[], bool]) -> None:
    """Make the compiled functions raise `Stopped` in this thread as soon as ``ask()`` returns true.

    Python handles signals in the main thread only. Helper threads call `ask` several times a second instead.
    """
    _stops.ask = ask


def end_if_stopped() -> None:
    """Raise `Stopped` if the results of this thread are not needed any more; see `stop_when`."""
    ask = getattr(_stops, "ask", None)
    if ask is not None and ask():
        raise Stopped()


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
    return available_cores() if num_threads is None else checks.whole_number("num_threads", num_threads, 1, MAX_THREADS)


def worth(num_threads: int, items: int) -> int:
    """Return the number of threads for work of a few nanoseconds an item: 1 where starting more takes longer."""
    return num_threads if items >= WORTH_THREADS else 1


def started(target: Callable[..., object], *arguments: object, daemon: bool = False) -> threading.Thread | None:
    """Start a thread; ``None`` where the system starts no more of them, as under a limit on processes."""
    thread = threading.Thread(target=target, args=arguments, daemon=daemon)
    handled = sys.exc_info()[1]
    try:
        thread.start()
    except RuntimeError as error:  # can't start new thread
        if error.__context__ in (None, handled):
            return None
        raise error.__context__ from None  # an interrupt, after which Python releases a lock that it does not hold
    return thread


class Done:
    """Whether something is done, for which one thread waits, through any interrupt.

    An interrupt within `threading.Event` can turn into another error, or leave its lock held.
    """

    __slots__ = ("_undone", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        self._undone = threading.Lock()
        self._undone.acquire()

    def set(self) -> None:
        """Say once that it is done."""
        self.is_set = True
        self._undone.release()

    def wait(self) -> None:
        """Wait until it is done."""
        while not self.is_set:
            self._undone.acquire()


class Idle(Generic[Item]):
    """Objects that threads use one after the other, each by one thread at a time.

    Parameters
    ----------
    make : callable
        Returns a new object, where all others are in use.

    Attributes
    ----------
    items : list
        Those that no thread uses; append and pop are atomic.
    """

    def __init__(self, make: Callable[[], Item]) -> None:
        self._make = make
        self.items: list[Item] = []

    def take(self) -> Item:
        """Return an object, which the caller appends to `items` afterwards."""
        try:
            return self.items.pop()
        except IndexError:
            return self._make()

    @contextmanager
    def one(self) -> Iterator[Item]:
        """Give an object for the block."""
        found = self.take()
        yield found
        self.items.append(found)


def map_in_order(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    num_threads: int,
    size_of: Callable[[Item], int] | None = None,
    most: int = 0,
) -> Iterator[Result]:
    """Call `function` with each item in threads, of which the caller's is one; yield the results in order of the items.

    The caller's thread reads the items when results are asked for, at most two items ahead for each thread. With
    `size_of`, it does not read another item while those that are ahead have more than `most` bytes together. If a call
    raises an exception, it is raised in place of the result; if the items raise one, after the results of the items
    before it. After an exception no further call begins. The iteration does not end before all calls that have begun
    are done.
    """
    if num_threads == 1:
        yield from map(function, items)
        return
    calls = _Calls(function, num_threads - 1)
    failures: list[Exception] = []
    sizes: deque[int] = deque()  # of the unread calls
    total = 0
    try:
        for item in _until_failure(items, failures):
            sizes.append(0 if size_of is None else size_of(item))
            total += sizes[-1]
            calls.add(item)
            del item
            while len(calls.unread) > 2 * num_threads or total > most > 0:
                total -= sizes.popleft()
                yield calls.next_result()
        while calls.unread:
            yield calls.next_result()
    finally:
        calls.stop()
    try:
        if failures:
            raise failures[0]
    finally:
        failures.clear()  # or the exception would hold this frame, and the frame the exception and the items


def _until_failure(items: Iterable[Item], failures: list[Exception]) -> Iterator[Item]:
    """Yield items; an exception of theirs ends them and is put into `failures`."""
    try:
        yield from items
    except Exception as error:
        failures.append(error)


class _Call(Generic[Item, Result]):
    """The call of a function with one item, and its outcome once it is done."""

    __slots__ = ("done", "error", "item", "result")
    item: Item
    result: Result

    def __init__(self, item: Item) -> None:
        self.item = item
        self.done = Done()
        self.error: BaseException | None = None


class _Calls(Generic[Item, Result]):
    """Calls that begin in order, in the caller's thread and in helper threads.

    A call that no helper begins is made by the caller, so nothing depends on a helper that cannot be started.
    """

    def __init__(self, function: Callable[[Item], Result], max_helpers: int) -> None:
        self.function = function
        self.max_helpers = max_helpers
        self.process = os.getpid()
        self.unread: deque[_Call[Item, Result]] = deque()  # in order: calls whose results were not asked for yet
        self.waiting: deque[_Call[Item, Result]] = deque()  # in order: calls that have not begun
        self.helpers: list[threading.Thread] = []
        self.ends: list[Done] = []  # of the helpers that have begun to work
        self.stopped = False
        self.abandoned = False  # whether no more results will be asked for
        self.lock = threading.RLock()  # of `waiting`, `ends`, `stopped`; the garbage collector may call `stop` anywhere

    def add(self, item: Item) -> None:
        """Add a call, and start a helper if more calls wait than the caller's thread can begin."""
        self.check_fork()
        call: _Call[Item, Result] = _Call(item)
        self.unread.append(call)
        with self.lock:
            self.waiting.append(call)
            self.ends = [end for end in self.ends if not end.is_set]
        self.helpers = [thread for thread in self.helpers if thread.is_alive()]
        if len(self.waiting) > 1 and len(self.helpers) < self.max_helpers:
            helper = started(self._help)
            if helper is None:
                self.max_helpers = len(self.helpers)
            else:
                self.helpers.append(helper)

    def next_result(self) -> Result:
        """Return the result of the next call in order; the caller's thread makes calls until that one is done."""
        self.check_fork()
        call = self.unread.popleft()
        while not call.done.is_set:
            if not self._make_call():
                call.done.wait()
        if call.error is None:
            return call.result
        try:
            raise call.error
        finally:
            call.error = None  # or the exception would hold this frame, and the frame the exception

    def _make_call(self, in_helper: bool = False) -> bool:
        """Make the first call that has not begun; return whether there was one.

        In the caller's thread an interrupt is raised at once. A helper's exception is raised in place of its result.
        """
        with self.lock:
            if self.stopped or not self.waiting:
                return False
            call = self.waiting.popleft()
        try:
            call.result = self.function(call.item)
        except BaseException as error:
            self.stopped = True
            call.error = error
            if not in_helper and not isinstance(error, Exception):
                raise
        del call.item
        call.done.set()
        return True

    def _help(self) -> None:
        """Make calls until none is left, in a thread of its own."""
        stop_when(lambda: self.abandoned)
        end = Done()
        with self.lock:
            if self.stopped:
                return
            self.ends.append(end)
        while self._make_call(in_helper=True):
            pass
        end.set()

    def check_fork(self) -> None:
        """In a forked process, let the calls wait that helpers had begun: the helpers exist in the parent only."""
        if self.process == os.getpid():
            return
        self.process, self.lock, self.helpers, self.ends = os.getpid(), threading.RLock(), [], []
        for call in self.unread:
            call.done = Done()  # of the old one, a helper may hold the lock
            if not hasattr(call, "item"):
                call.done.set()
        self.waiting = deque(call for call in self.unread if not call.done.is_set)
        self.stopped = self.abandoned

    def stop(self) -> None:
        """Begin no more calls, and wait until the helpers have ended; the calls that they are making may end early."""
        self.check_fork()
        self.abandoned = True
        with self.lock:
            self.stopped = True
            self.waiting.clear()
        if threading.current_thread() in self.helpers:
            return
        _wait(self.ends)
        for thread in self.helpers:
            thread.join()


def _wait(ends: Iterable[Done]) -> None:
    """Wait for events through interrupts, of which the last is raised then.

    Helpers are not waited for by `join`: before Python 3.13 a `join` that is interrupted marks the thread as ended.
    """
    interrupt: KeyboardInterrupt | None = None
    for end in ends:
        while not end.is_set:
            try:
                end.wait()
            except KeyboardInterrupt as error:
                interrupt = error
    if interrupt is not None:
        raise interrupt
