"""Reading ahead: the items in their order, a few at a time, an error in its place, and a thread that ends."""

import threading
import time

import pytest

from lsh.base import threads
from lsh.base.prefetch import WAITING, prefetched

MOST = WAITING + 2  # largest distance from the last item returned to the last item read


@pytest.fixture(params=[True, False])
def starting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread can be started, or none."""
    if not request.param:
        monkeypatch.setattr(threads, "started", lambda *_, **__: None)


@pytest.mark.usefixtures("starting")
@pytest.mark.parametrize("count", [0, 1, WAITING, 10 * MOST])
def test_items_come_in_their_order_and_an_error_in_its_place(count):
    def items():
        yield from range(count)
        raise ValueError("no more")

    before = threading.active_count()
    assert list(prefetched(range(count))) == list(range(count))
    assert threading.active_count() == before
    taken = iter(prefetched(items()))
    assert [next(taken) for _ in range(count)] == list(range(count))
    with pytest.raises(ValueError, match="no more"):
        next(taken)
    assert threading.active_count() == before


def test_no_more_than_a_few_items_wait():
    reached = 0

    def items():
        nonlocal reached
        for number in range(100 * MOST):
            reached = number
            yield number

    taken = prefetched(items())
    for asked in range(3 * MOST):
        assert next(taken) == asked
        assert reached - asked <= MOST
    time.sleep(0.05)
    assert reached - asked <= MOST
    taken.close()


@pytest.mark.usefixtures("starting")
@pytest.mark.parametrize("asked", [1, 2, MOST])
def test_closing_ends_the_thread_and_what_it_reads(asked):
    closed = threading.Event()

    def items():
        try:
            yield from range(1_000_000)
        finally:
            closed.set()

    before, taken = threading.active_count(), prefetched(items())
    assert [next(taken) for _ in range(asked)] == list(range(asked))
    taken.close()
    assert closed.is_set()
    assert threading.active_count() == before


def test_what_fails_to_close_is_an_error_and_no_endless_wait():
    class Items:
        def __iter__(self) -> "Items":
            return self

        def __next__(self) -> int:
            raise StopIteration

        def close(self) -> None:
            raise ValueError("it does not close")

    with pytest.raises(ValueError, match="it does not close"):
        list(prefetched(Items()))
