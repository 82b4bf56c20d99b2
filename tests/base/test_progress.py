"""The line of progress: rates, and the time that is left of a whole run."""

from __future__ import annotations

import io
import re

import pytest

from lsh.base.progress import Line, Remaining


def test_a_line_of_bytes(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    times = iter([0.0, 2.0, 4.0])
    monkeypatch.setattr("lsh.base.progress.time.perf_counter", lambda: next(times))
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    line = Line()
    line("writing", 0, 4_000_000, "byte")
    line("writing", 1_000_000, 4_000_000, "byte")
    line("writing", 4_000_000, 4_000_000, "byte")
    shown = re.split(r"\r\x1b\[K", terminal.getvalue())
    assert shown[-2:] == ["writing: 1 MB of 4 MB, 500 KB a second, 0:06 left", "writing: 4 MB, 1 MB a second\n"]


@pytest.mark.parametrize("slower", [1.0, 3.0])
def test_the_time_left_of_the_whole_run(slower):
    """It is right if each stage takes its share; a stage that takes longer than that counts by its own rate."""
    shares = {"fingerprints": 1.0, "grouping": 0.15, "texts": 0.5, "comparing": 0.5, "writing": 4.0}
    remaining, seconds = Remaining(shares), {name: 100.0 * share for name, share in shares.items()}
    seconds["texts"] *= slower
    now, end = 0.0, sum(seconds.values())
    assert remaining("fingerprints", 0, 100, now) is None
    for stage in list(shares)[:-1]:
        for percent in range(20, 101, 20):
            left = remaining(stage, percent, 100, now + seconds[stage] * percent / 100)
            expected = end - now - seconds[stage] * percent / 100
            assert left is not None
            if slower == 1.0:
                assert left == pytest.approx(expected)
            elif stage == "texts":
                assert left >= seconds[stage] * (100 - percent) / 100 + 450.0
        now += seconds[stage]
    assert remaining("texts", 0, 100, now) is None  # an earlier stage again, as for each part of a bounded run
    assert remaining("writing", 50, 100, now + 1.0) is None
    assert remaining("screening", 50, 100, now + 1.0) is None
