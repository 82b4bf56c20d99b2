"""The progress of a command: in bytes of its files on disk (compressed), from the first to the last stage."""

import io

import pytest
from reading import COMPRESSIONS, pack
from running import done

from lsh.base.progress import Line
from lsh.terminal import console

LINES = b"".join(b"line %d of many, and as long as a line of a file should be, %d\n" % (i, i**5) for i in range(40_000))


class Drawn(list):
    """Records the calls that would draw on a terminal."""

    def __call__(self, stage: str, done: int, total: int | None, unit: str | None = None) -> None:
        self.append((stage, done, total, unit))

    def of(self, stage: str) -> list[int]:
        found = [(done, total, unit) for name, done, total, unit in self if name == stage]
        assert {(total, unit) for _, total, unit in found} == {(found[0][1], "byte")}
        return [done for done, _, _ in found]


@pytest.fixture
def drawn(monkeypatch):
    """The calls of a run with a terminal."""
    shown = Drawn()
    monkeypatch.setattr(
        console, "progress", lambda quiet, output, streams, verbose, later, shares: console.Meter(shown, streams)
    )
    return shown


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "packed", [pytest.param(one, marks=() if one in ("", "gz") else pytest.mark.slow) for one in COMPRESSIONS]
)
def test_stages_of_a_run(tmp_path, drawn, packed):
    """Each stage that reads files ends at their size on disk; its positions before that ascend."""
    names = [f"{number}.txt.{packed}".rstrip(".") for number in range(2)]
    for name in names:
        (tmp_path / name).write_bytes(pack(LINES, packed))
    (tmp_path / "old.txt").write_bytes(LINES[:1000])
    size = sum((tmp_path / name).stat().st_size for name in names)
    options = ["--against", "old.txt", "--report", "report.html", "--threshold", "0.99", "-o", "out.txt"]
    done(tmp_path, "dedup", *names, *options)
    stages = list(dict.fromkeys(stage for stage, _, _, _ in drawn))
    assert stages == ["fingerprints", "grouping", "texts", "comparing", "report", "writing"]
    for stage, most in [("fingerprints", size + 1000), ("texts", size + 1000), ("writing", size)]:
        places = drawn.of(stage)
        assert places == sorted(set(places))
        assert places[-1] == most
        assert len(places) >= 4
    assert drawn.of("report")[-1] <= size + 1000
    assert {unit for stage, _, _, unit in drawn if stage in ("grouping", "comparing")} == {None}


def test_a_log_gets_a_line_from_time_to_time(monkeypatch):
    """Where standard error is no terminal, a verbose run prints a plain line each 30 seconds, and none at the end."""
    times = iter([0.0, 1.0, 29.0, 31.0, 60.0, 62.0, 100.0, 200.0, 201.0])
    monkeypatch.setattr("lsh.base.progress.time.perf_counter", lambda: next(times))
    monkeypatch.setattr("sys.stderr", log := io.StringIO())
    meter = console.progress(False, "out.tsv", [], verbose=True)
    for place in (0, 1, 2, 3, 4):
        meter.bytes("writing", place * 1_000_000, 10_000_000)
    meter("comparing", 5, 10)
    meter("comparing", 10, 10)
    assert log.getvalue().splitlines() == [
        "writing: 2 MB of 10 MB, 66.7 KB a second, 2:00 left",
        "writing: 4 MB of 10 MB, 65.6 KB a second, 1:32 left",
        "comparing: 5 of 10 documents",
    ]
    Line()("writing", 4_000_000, 4_000_000, "byte")  # without an interval: a line when a stage is done
    assert log.getvalue().endswith("\nwriting: 4 MB\n")


@pytest.mark.parametrize(("quiet", "verbose"), [(False, False), (True, False)])
def test_a_log_gets_no_progress_otherwise(monkeypatch, quiet, verbose):
    monkeypatch.setattr(console, "LOG_INTERVAL", 0.0)
    monkeypatch.setattr("sys.stderr", log := io.StringIO())
    meter = console.progress(quiet, "out.tsv", [], verbose)
    for place in range(5):
        meter("fingerprints", place, None)
        meter.bytes("writing", place, 4)
        meter.reading("report")
    assert log.getvalue() == ""
