"""JSON means the same with msgspec, of the extra io, and without: what it takes, Python's reader takes alike."""

from __future__ import annotations

import json
from typing import Any

import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("msgspec", reason="without msgspec there is but one reader")

from lsh.files import lines


def by_python(line: bytes) -> Any:
    """What Python's reader makes of a line, or that it takes none of it; with the types of numbers."""
    try:
        return repr(json.loads(line.decode()))
    except (ValueError, RecursionError):
        return ValueError


def by_lsh(line: bytes) -> Any:
    try:
        return repr(lines._decoded(line))
    except (ValueError, RecursionError):
        return ValueError


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats(allow_nan=True).map(json.dumps),
    st.from_regex(r"-?[0-9]{1,30}(\.[0-9]{0,25})?([eE][+-]?[0-9]{1,4})?", fullmatch=True),
)
STRINGS = st.one_of(
    st.text(st.characters(codec=None)).map(json.dumps),
    st.text().map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.from_regex(r'"(\\[u"/bfnrtx][0-9a-fA-F]{0,4}|[^"\\])*"', fullmatch=True),
)
VALUES = st.recursive(
    st.one_of(NUMBERS, STRINGS, st.sampled_from(["null", "true", "false", "NaN", "-Infinity", "nul", ""])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda values: f"[{','.join(values)}]"),
        st.lists(st.tuples(STRINGS, inner), max_size=4).map(
            lambda pairs: "{" + ",".join(f"{name}:{value}" for name, value in pairs) + "}"
        ),
    ),
    max_leaves=10,
)


@given(VALUES, st.sampled_from(["", " ", "\t", "\n", "\r", "\x0b", "\xa0", "\ufeff"]), st.integers(0, 99))
@strategies.examples(340)
def test_json_means_the_same_by_both_readers(value, around, cut):
    line = f"{around}{value}{around}".encode("utf-8", "surrogatepass")
    assert by_lsh(line) == by_python(line)
    assert by_lsh(line[: len(line) * cut // 99]) == by_python(line[: len(line) * cut // 99])


ODD = [b'{"a": 1, "a": 2}', b'{"a": "\\ud800"}', b'"\xed\xa0\x80"', b'"\xff"', b"[" * 100_000, b"1e400", b"-0", b"-0.0"]
ODD += [
    b'"a\x01"',
    b'"\x7f"',
    b"01",
    b"1.",
    b".5",
    b"+1",
    b"18446744073709551616",
    b'"\\/"',
    b"[1,]",
    b"{} {}",
    b"\x00",
]


@pytest.mark.parametrize("line", ODD, ids=lambda line: repr(line[:20]))
def test_odd_json_means_the_same_by_both_readers(line):
    assert by_lsh(line) == by_python(line)
    assert by_lsh(b'{"text": "a", "id": ' + line + b"}") == by_python(b'{"text": "a", "id": ' + line + b"}")
