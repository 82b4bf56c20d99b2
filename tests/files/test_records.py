"""The values by which documents are ranked: dates in microseconds, and many values read as one by one."""

from datetime import datetime, timedelta, timezone

import strategies
from hypothesis import given
from hypothesis import strategies as st

from lsh.files.records import Ranking

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
