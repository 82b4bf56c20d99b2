"""Progress of a long run on standard error: a tqdm bar for each stage, or a plain line where tqdm is not installed.

On a terminal the line is redrawn; a file or a pipe gets one line per stage, when the stage is done, or a line from time
to time.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from lsh._words import counted, duration, size
from lsh.typing import Progress

REDRAW = 0.1  # seconds between two updates of the line
UNITS = {"grouping": "band"}  # of stages that do not count documents
BYTE = "byte"
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


def drawing() -> Drawing:
    """Return bars where tqdm is installed, else a line."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return Line()
    return Bars(tqdm)


class Drawing:
    """Progress on standard error. If writing fails, the run goes on and no more progress is shown."""

    def close(self) -> None:
        """Draw no more, so that what is written next stays below; for a run that ends early."""

    _given_up = False

    def __call__(self, stage: str, done: int, total: int | None, unit: str | None = None) -> None:
        """Show how much of a stage is done."""
        if self._given_up:
            return
        try:
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

    def __init__(self, tqdm: Any) -> None:
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
    """

    def __init__(self, interval: float | None = None) -> None:
        self._stage = self._unit = ""
        self._interval = interval
        self._started, self._drawn = 0.0, time.perf_counter() if interval else 0.0
        self._done, self._is_open = 0, False

    def _draw(self, stage: str, done: int, total: int | None, unit: str) -> None:
        """Redraw the line, but not too often; end it with its stage."""
        now = time.perf_counter()
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
        return f"{text}, {speed} a second{left}"


def _terminal_size() -> dict[str, int]:
    """Return the size of a terminal that does not tell it; otherwise nothing, and tqdm finds it out."""
    try:
        return {} if os.get_terminal_size(sys.stderr.fileno()).columns else UNKNOWN_SIZE
    except (AttributeError, OSError, ValueError):  # no terminal
        return {}


def _is_terminal() -> bool:
    isatty = getattr(sys.stderr, "isatty", None)
    return isatty is not None and bool(isatty())
