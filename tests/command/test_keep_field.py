"""`lsh dedup --keep-field`: of similar documents, the one with the highest or lowest number or date is kept.

And the values by which documents are ranked: dates in microseconds, and many values read as one by one.
"""

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from reading import read_table, write_records, write_table
from running import done, refused

from lsh.base.budget import MemoryBudget
from lsh.files.records import Ranking, as_ranks
from lsh.terminal.inputs import Priorities

TEXTS = [
    "the ferry left the harbour at nine with two hundred passengers",
    "growers in the valley expect a poor year for pears",
]
GROUP = [0, 1, 0, 0, 1, 0]  # the text of each record
VALUES: dict[str, list[Any]] = {
    "whole": [5, 2, -9, 9007199254740993, 2, 9007199254740992],
    "numbers": [0.5, "1e3", -3, "7.25", 1000, ".5"],
    "dates": [
        "2024-02-29",
        "2023-01-01T10:00Z",
        "2024-02-29T00:00:00.5",
        "2024-02-28T23:00:00-05:00",
        "2023-01-01",
        "1999-12-31",
    ],
    "equal": [3] * 6,
}
HIGHEST = {"whole": [1, 3], "numbers": [1, 3], "dates": [1, 3], "equal": [0, 1]}  # the kept records
LOWEST = {"whole": [1, 2], "numbers": [1, 2], "dates": [4, 5], "equal": [0, 1]}


def written(folder: Path, format: str, values: list[Any]) -> str:
    """Write the records to a file; returns its name."""
    if format == "parquet" and not all(isinstance(value, int) for value in values):
        values = list(map(str, values))
    rows = [{"id": f"d{i}", "text": TEXTS[GROUP[i]], "when": value} for i, value in enumerate(values)]
    return write_records(folder / f"in.{format}", rows)


def kept(folder: Path, name: str, *options: str) -> list[int]:
    """Run the command; returns the numbers of the kept records, by the table of removals."""
    header = ["--header"] if name.endswith(".tsv") else []
    done(folder, "dedup", name, *header, "-o", f"out.{name}", "--removed", "gone.tsv", "-q", *options)
    gone = {line.split("\t")[0] for line in (folder / "gone.tsv").read_text().splitlines()}
    return [i for i in range(len(GROUP)) if f"d{i}" not in gone]


@pytest.mark.few(2)
@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv", "parquet"])
def test_the_highest_or_the_lowest_is_kept(tmp_path, format):
    """Of equal values, the first."""
    for kind, values in VALUES.items():
        name = written(tmp_path, format, values)
        assert kept(tmp_path, name, "--keep-field", "when") == HIGHEST[kind]
        assert kept(tmp_path, name, "--keep-field", "when", "--keep", "lowest", "--max-memory", "50MB") == LOWEST[kind]


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_a_bad_value_is_a_bad_line(tmp_path, format):
    for value, problem in {
        None: "expected a number or a date such as|got no value",
        "soon": "expected a number or a date such as|got 'soon'",
        "2024-02-30": "got '2024-02-30'",
        "2024-01-01T00:00+99:00": "+99:00",
        17: "expected a date, as in the first document, got '17'",
    }.items():
        name = written(tmp_path, format, ["2024-01-01", "2024-01-02", value, "2024-01-03", "2024-01-04", "2024-01-05"])
        run = ["dedup", name, "--format", format, "--keep-field", "when", "-o"]
        error = refused(tmp_path, *run, "out")
        assert f"{name}, line {4 if format == 'csv' else 3}: --keep-field when: " in error
        assert all(part in error for part in problem.split("|"))
        assert "--on-bad-line skip" in error
        done(tmp_path, *run, "o", "--on-bad-line", "skip", "--rejects", "bad", "-q")
        output = (tmp_path / "o").read_text()
        assert all((f'"{one}"' if format == "jsonl" else f"\n{one},") in output for one in ("d4", "d5"))
        assert "d2" in (tmp_path / "bad").read_text()


def test_rows_of_a_table(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    for number, (column, expected) in enumerate(
        [
            (pyarrow.array([datetime(2024, 1, day, tzinfo=timezone.utc) for day in (1, 2, 3)]), [2]),
            (pyarrow.array([date(2024, 1, 3), date(2024, 1, 2), date(2024, 1, 1)]), [0]),
            (pyarrow.array([1, 2**64 - 1, 2], "uint64"), [1]),
            (pyarrow.array(["0.5", "2", "1"]), [1]),
            (pyarrow.array(["9223372036854775806", "9223372036854775807", "-9223372036854775808"]), [1]),
            (pyarrow.array([3, 9, 7]).dictionary_encode(), [1]),
            (pyarrow.array([Decimal("1.5"), Decimal("3.2"), Decimal("2.7")]), [1]),
            (pyarrow.array([0, 2**30, 1], pyarrow.date32()), "when: expected a number or a date within 290,000 years"),
            (pyarrow.array([1.0, None, 2.0]), "row 2: --keep-field when: expected a number or a date, got no value"),
            (pyarrow.array([1.0, 2.0, float("nan")]), "row 3: --keep-field when: expected a number or a date, got nan"),
            (pyarrow.array(["1", "2", "x"]), "row 3: --keep-field when: expected a number or a date such as"),
            (pyarrow.array([True, False, True]), "column 'when' must hold strings, numbers or dates, got bool"),
        ]
    ):
        name = f"{number}.{'arrow' if number % 2 else 'parquet'}"
        table = pyarrow.table({"text": [TEXTS[0]] * 3, "when": column})
        write_table(tmp_path / name, table)
        if isinstance(expected, str):
            assert expected in refused(tmp_path, "dedup", name, "-o", f"x-{name}", "--keep-field", "when")
        else:
            done(tmp_path, "dedup", name, "-o", f"out-{name}", "--keep-field", "when", "-q")
            assert read_table(tmp_path / f"out-{name}").to_pydict() == table.take(expected).to_pydict()


WHOLE = st.integers(-(2**63) + 1, 2**63 - 1)


@given(
    st.lists(st.lists(WHOLE | st.floats(allow_nan=False, allow_infinity=False), max_size=4), max_size=4), st.booleans()
)
@strategies.examples(60)
def test_numbers_have_their_order(parts, reverse):
    """Whole numbers keep their order exactly; beside a number with a fraction they are floats."""
    priorities = Priorities(MemoryBudget(), reverse)
    for part in parts:
        priorities.extend(as_ranks([Ranking("n").one(repr(value)) for value in part]))
    values = [value for part in parts for value in part]
    exact = all(isinstance(value, int) for value in values)
    expected = [Fraction(value if exact else float(value)) * (-1 if reverse else 1) for value in values]
    found = priorities.values().tolist()
    order = range(len(values))
    assert sorted(order, key=expected.__getitem__) == sorted(order, key=found.__getitem__)


TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.none() | st.just(timezone.utc))


@given(st.lists(TIMES, min_size=1, max_size=5), st.integers(-14 * 60, 14 * 60))
@strategies.examples(60)
def test_dates_are_microseconds(times, minutes):
    """Both ways to read dates give the microseconds since 1970, in any zone."""
    start = datetime(1970, 1, 1, tzinfo=timezone.utc)
    expected = [(time.replace(tzinfo=timezone.utc) - start) // timedelta(microseconds=1) for time in times]
    written = [time.isoformat().replace("+00:00", "Z") for time in times]
    assert [Ranking("d").one(text) for text in written] == expected
    found = Ranking("d").many([text.encode() for text in written])
    assert found is not None
    assert found.tolist() == expected
    zone = timezone(timedelta(minutes=minutes))
    moved = [time.replace(tzinfo=timezone.utc).astimezone(zone).isoformat(" ") for time in times]
    assert [Ranking("d").one(text) for text in moved] == expected


@given(
    st.lists(st.sampled_from([b"1", b"-02", b"+3", b"", b"1\n2", b"1_0", b"x", b"2024-01-01", b"2024-13-01", b"\xff"]))
)
@strategies.examples(60)
def test_many_values_are_those_of_one(values):
    one, many = Ranking("d"), Ranking("d")
    found = many.many(values)
    if found is not None:
        assert found.tolist() == [one.one(value) for value in values]
