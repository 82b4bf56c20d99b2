"""The line of progress: a transcript of the rates of bytes."""

from __future__ import annotations

import io
import re

from lsh.base.progress import Line


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
