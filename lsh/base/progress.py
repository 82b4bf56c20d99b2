"""Progress of a long run on standard error: a tqdm bar for each stage, or a plain line where tqdm is not installed.

On a terminal the line is redrawn; a file or a pipe gets one line per stage, when the stage is done, or a line from time
to time.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from lsh.base.wording import counted, duration, size

#: A function that is called with the stage, what is done, and the total if it is known.
Progress = Callable[[str, int, "int | None"], object]

REDRAW = 0.1  # seconds between two updates of the line
UNITS = {"grouping": "band", "deciding": "run", "items": "item"}  # of stages that do not count documents
BYTE = "byte"
# The time of each stage of `lsh.deduplicate` relative to the first, about as benchmarks/results/files.json has it.
SHARES = {"fingerprints": 1.0, "grouping": 0.15, "texts": 0.5, "comparing": 0.5}
MIN_ELAPSED = 5.0  # seconds of a run before the time left of the whole run is estimated
UNKNOWN_SIZE = {"ncols": 80, "nrows": 24}  # of a terminal that gives its width as 0, as those of `docker exec -t` do


def checked_progress(progress: object) -> Progress:
    """Return the function for the parameter `progress`, to be called with stage, done and total."""
    if progress is None or progress is False:
        return lambda stage, done, total: None
    if progress is True:
        return drawing()
    if not callable(progress):
        raise TypeError(
            f"progress must be True, or callable as progress(stage, done, total), got {type(progress).__name__}"
        )
    report = progress

    def called(stage: str, done: int, total: int | None) -> None:
        try:
            report(stage, done, total)
        except StopIteration as error:  # which would end a generator that calls it
            raise RuntimeError("progress raised StopIteration") from error

    return called


def drawing(shares: Mapping[str, float] = SHARES) -> Drawing:
    """Return bars where tqdm is installed, else a line; `shares` is for `Remaining`."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return Line(shares=shares)
    return Bars(tqdm, shares)


class Remaining:
    """Estimates the seconds left of a run of several stages.

    The stage that runs goes on at its own rate. The later ones take their share of the time that a share has taken.

    Parameters
    ----------
    shares : mapping of str to float
        The relative time of each stage, in order.

    Examples
    --------
    >>> remaining = Remaining({"reading": 1.0, "comparing": 0.5, "writing": 0.5})
    >>> [remaining("reading", done, 100, now) for done, now in ((0, 0.0), (50, 10.0), (100, 20.0))]
    [None, 30.0, 20.0]
    >>> remaining("comparing", 5, 10, 30.0)  # twice as slow as expected
    22.0
    >>> remaining("writing", 5, 10, 50.0) is None  # the last one: its own time left says it
    True
    """

    def __init__(self, shares: Mapping[str, float]) -> None:
        self._shares, self._order = shares, list(shares)
        self._stage, self._begun, self._last = -1, 0.0, 0.0  # the stage that runs, its begin, and the call before
        self._started: float | None = None

    def __call__(self, stage: str, done: int, total: int | None, now: float) -> float | None:
        """Return the seconds left at a time, ``None`` while they are unknown and in the last stage."""
        if self._started is None:
            self._started = self._last = now
        number = self._order.index(stage) if stage in self._shares else -1
        if number > self._stage:
            self._stage, self._begun = number, self._last
        self._last = now
        if number < self._stage or number in (-1, len(self._order) - 1) or not total:
            return None
        elapsed, fraction, share = now - self._started, min(done / total, 1.0), self._shares[stage]
        finished = sum(self._shares[name] for name in self._order[:number]) + share * fraction
        if elapsed < MIN_ELAPSED or not finished:
            return None
        second = elapsed / finished  # of a share
        own = (now - self._begun) * (1.0 - fraction) / fraction if fraction else share * second
        return own + second * sum(self._shares[name] for name in self._order[number + 1 :])


class Drawing:
    """Progress on standard error. If writing fails, the run goes on and no more progress is shown.

    Parameters
    ----------
    shares : mapping of str to float
        The stages, for `Remaining`.
    """

    def __init__(self, shares: Mapping[str, float]) -> None:
        self._remaining = Remaining(shares)
        self._now = 0.0
        self._left: float | None = None  # seconds of the whole run

    def close(self) -> None:
        """Draw no more, so that what is written next stays below; for a run that ends early."""

    _given_up = False

    def __call__(self, stage: str, done: int, total: int | None, unit: str | None = None) -> None:
        """Show how much of a stage is done."""
        if self._given_up:
            return
        try:
            self._now = time.perf_counter()
            self._left = self._remaining(stage, done, total, self._now)
            self._draw(stage, done, total, unit or UNITS.get(stage, "document"))
        except Exception:  # a closed or full stream, or an object that is no stream
            self._given_up = True
            self._give_up()

    def _draw(self, stage: str, done: int, total: int | None, unit: str) -> None:
        raise NotImplementedError

    def _give_up(self) -> None:
        """Show nothing more, not even at exit."""


class Bars(Drawing):
    """A bar of tqdm for each stage."""

    def __init__(self, tqdm: Any, shares: Mapping[str, float] = SHARES) -> None:
        super().__init__(shares)
        self._tqdm = tqdm
        self._stage = ""
        self._bar: Any = None

    def _draw(self, stage: str, done: int, total: int | None, unit: str) -> None:
        if stage != self._stage or done < self._bar.n:  # another collection may begin the same stage again
            if self._bar is not None:
                self._bar.close()
            self._stage = stage
            shown = "B" if unit == BYTE else f" {unit}s"
            self._bar = self._tqdm(desc=stage, total=total, unit=shown, unit_scale=True, **_terminal_size())
        self._bar.set_postfix_str(_of_run(self._left), refresh=False)
        self._bar.update(done - self._bar.n)
        if done == total:
            self._bar.close()

    def close(self) -> None:
        """End the bar of the current stage."""
        if self._bar is not None and not self._given_up:
            self._bar.close()

    def _give_up(self) -> None:
        if self._bar is not None:
            self._bar.disable = True  # it would be drawn when it is deleted


class Line(Drawing):
    """A plain line on standard error.

    Parameters
    ----------
    interval : float, optional
        Off a terminal, write a line each time so many seconds have passed. Default: one when a stage is done.
    shares : mapping of str to float, optional
        The stages, for `Remaining`.
    """

    def __init__(self, interval: float | None = None, shares: Mapping[str, float] = SHARES) -> None:
        super().__init__(shares)
        self._stage = self._unit = ""
        self._interval = interval
        self._started, self._drawn = 0.0, time.perf_counter() if interval else 0.0
        self._done, self._is_open = 0, False

    def _draw(self, stage: str, done: int, total: int | None, unit: str) -> None:
        """Redraw the line, but not too often; end it with its stage."""
        now = self._now
        if stage != self._stage or done < self._done:
            self._end(now)
            self._stage, self._unit, self._started = stage, unit, now
        self._done, self._is_open = done, True
        if done == total:
            self._end(now)
        elif _is_terminal():
            if now - self._drawn >= REDRAW:
                self._drawn = now
                self._write(self._text(total, now), "")
        elif self._interval is not None and now - self._drawn >= self._interval:
            self._drawn = now
            self._write(self._text(total, now), "\n")

    def _end(self, now: float) -> None:
        """Write the final state of the stage and end the line."""
        if self._is_open and (self._interval is None or _is_terminal()):
            self._write(self._text(None, now), "\n")
        self._is_open = False

    def _write(self, text: str, end: str) -> None:
        if sys.stderr is not None:  # print would use standard output
            print(f"\r\x1b[K{text}" if _is_terminal() else text, end=end, file=sys.stderr, flush=True)

    def _text(self, total: int | None, now: float) -> str:
        if self._unit == BYTE:
            done = size(self._done) if total is None else f"{size(self._done)} of {size(total)}"
        else:
            done = counted(self._done, self._unit)
            done = done if total is None else f"{self._done:,} of {counted(total, self._unit)}"
        text = f"{self._stage}: {done}"
        if not self._done or now == self._started:
            return text
        rate = self._done / (now - self._started)
        left = "" if total is None else f", {duration((total - self._done) / rate)} left"
        speed = size(round(rate)) if self._unit == BYTE else f"{rate:,.0f}"
        run = "" if total is None or self._left is None else f"; {_of_run(self._left)}"
        return f"{text}, {speed} a second{left}{run}"


def _of_run(left: float | None) -> str:
    """Return the time left of the whole run in words; empty if it is unknown."""
    return "" if left is None else f"whole run about {duration(left)} left"


def _terminal_size() -> dict[str, int]:
    """Return the size of a terminal that does not tell it; otherwise nothing, and tqdm finds it out."""
    try:
        return {} if os.get_terminal_size(sys.stderr.fileno()).columns else UNKNOWN_SIZE
    except (AttributeError, OSError, ValueError):  # no terminal
        return {}


def _is_terminal() -> bool:
    isatty = getattr(sys.stderr, "isatty", None)
    return isatty is not None and bool(isatty())
