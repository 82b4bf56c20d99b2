"""Shingles as sets, normalisation, and the exact Jaccard similarity.

Expected values are those of reference.py, or written by hand.
test_values.py tests that `Shingles` is a value.
"""

import numpy
import pytest
import reference
import strategies
from hypothesis import example, given
from hypothesis import strategies as st

import lsh
from lsh import Shingles


def as_bytes(shingles) -> list[bytes]:
    """The shingles of a set, sorted; a set of str and bytes is compared by its UTF-8."""
    assert isinstance(shingles, (set, frozenset))
    encoded = sorted(reference.as_bytes(shingle) for shingle in shingles)
    assert len(set(encoded)) == len(encoded)
    return encoded


# Sets of shingles.


@strategies.examples(135)
@given(text=strategies.texts, n=strategies.shingle_sizes, unit=strategies.units, options=strategies.normalisations)
def test_of_against_twin(text, n, unit, options):
    found = as_bytes(Shingles(n, unit, **options).of(text))
    assert found == sorted(set(reference.shingles(text, n, unit, **options)))


@pytest.mark.parametrize(
    ("n", "unit", "text", "expected"),
    [
        (2, "byte", "éa漢", [b"\xa9a", b"\xbc\xa2", b"\xc3\xa9", b"a\xe6", b"\xe6\xbc"]),
        (2, "char", "éa漢", ["éa", "a漢"]),
        (2, "word", "éa漢", ["éa漢"]),
        (2, "word", "It's 3 o'clock_now,  ça va?", ["It s", "s 3", "3 o", "o clock_now", "clock_now ça", "ça va"]),
        (3, "word", "two words", ["two words"]),
        (2, "word", b"a\xffb \xe6c", ["a b", "b c"]),
        (1, "word", "!? ... \u3000 —", []),
        (8, "char", "123456789", ["12345678", "23456789"]),
        (8, "char", "1234567", ["1234567"]),
        (8, "char", "", []),
        (1, "char", b"a\xed\xa0\x80b", ["a", "b", "\ud800"]),  # a lone surrogate
        (1, "char", b"\xe6\xbc\xc0\x80", [b"\x80", b"\xbc", b"\xc0", b"\xe6"]),  # damaged UTF-8
        (2, "char", b"\xf4\x90\x80z", [b"\x80z", b"\x90\x80", b"\xf4\x90"]),
    ],
)
def test_shingles_of(n, unit, text, expected):
    expected = sorted(map(reference.as_bytes, expected))
    assert as_bytes(Shingles(n, unit).of(text)) == expected
    if isinstance(text, str):
        assert as_bytes(Shingles(n, unit).of(text.encode())) == expected


def test_shingles_longer_than_any_text():
    """The largest n is not added to a length or a position, which would overflow."""
    for n in (2**31, 2**32, 2**61):
        for unit in ("byte", "char", "word"):
            assert as_bytes(Shingles(n, unit).of("two words")) == [b"two words"]
            assert lsh.jaccard("two words", "two words", shingles=Shingles(n, unit)) == 1.0


# Normalisation.

WHOLE = 10**6  # a text is one shingle: its normal form can be read


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("ÅΣ İ", {"lowercase": True}, "åς i\u0307"),
        ("ẞ", {"lowercase": True}, "ß"),
        ("e\u0301ﬁ①", {"normalize": "NFC"}, "éﬁ①"),
        ("e\u0301ﬁ①", {"normalize": "NFKC"}, "éfi1"),
        ("\u212b", {"normalize": "NFC", "lowercase": True}, "å"),
        ("¿Qué? — «No»: $5+5_", {"strip_punctuation": True}, "Qué  No $5+5"),
        ("  a\t\n b\u3000\x85\x1cc ", {"collapse_whitespace": True}, " a b c "),
        ("a - b", {"strip_punctuation": True, "collapse_whitespace": True}, "a b"),
        ("e!\u0301", {"strip_punctuation": True, "normalize": "NFC"}, "e\u0301"),
        ("\u2024A", {"normalize": "NFKC", "strip_punctuation": True, "lowercase": True}, "a"),
        # an undecodable byte ends a run of white space, and each part is lower-cased by itself
        (b"A \xff \t B", {"lowercase": True, "collapse_whitespace": True}, b"a \xff b"),
        ("ΑΣ".encode() + b"\xff" + "Α".encode(), {"lowercase": True}, "ας".encode() + b"\xff" + "α".encode()),
    ],
)
def test_normal_forms(text, options, expected):
    shingles = Shingles(WHOLE, "char", **options)
    assert as_bytes(shingles.of(text)) == as_bytes(shingles.of(reference.as_bytes(text)))
    assert as_bytes(shingles.of(text)) == [reference.as_bytes(expected)]


def test_many_undecodable_bytes_are_normalised_in_linear_memory():
    text = b"\xff" * 100_000 + b"AB" + b"\xff" * 10
    for same in (text, bytearray(text), memoryview(text)):
        assert Shingles(3, lowercase=True).apply(same) == text.replace(b"AB", b"ab")
    with pytest.raises(TypeError, match=r"^text must be str, .* or memoryview, got NoneType"):
        Shingles(3).apply(None)


# Exact Jaccard similarity.


@strategies.examples(135)
@given(
    pairs=st.lists(strategies.alike(), max_size=3),
    n=strategies.shingle_sizes,
    unit=strategies.units,
    options=strategies.normalisations,
)
@example([("", ""), ("abc", "abc")], 5, "byte", {})
@example([("\0\0", "\0")], 1, "byte", {})
def test_jaccard_against_twin(pairs, n, unit, options):
    rows = [text for pair in pairs for text in pair]
    shingles = Shingles(n, unit, **options)
    expected = [[reference.jaccard(a, b, n, unit, **options) for b in rows] for a in rows]
    found = lsh.jaccard_matrix(rows, shingles=shingles)
    assert (found.shape, found.dtype) == ((len(rows), len(rows)), numpy.float64)
    assert found.tolist() == expected
    assert lsh.jaccard_matrix(rows, rows[1:], shingles=shingles).tolist() == [line[1:] for line in expected]
    for a, b in pairs[:1]:
        assert lsh.jaccard(a, b, shingles=shingles) == lsh.jaccard(b, a, shingles=shingles) == expected[0][1]


def test_jaccard_of_other_buffers_and_by_default():
    for kind in (bytearray, memoryview):
        assert lsh.jaccard(kind(b"abcd"), "abce", shingles=Shingles(2)) == 0.5
    a, b = "naïve café, morning", "naïve cafés, morning"
    none = dict.fromkeys(("lowercase", "strip_punctuation", "collapse_whitespace"), False)
    assert Shingles() == Shingles(8, "char", normalize=None, **none)
    assert lsh.jaccard(a, b) == reference.jaccard(a, b, 8, "char") != reference.jaccard(a, b, 8, "byte")
    assert lsh.jaccard_matrix([a], [b]).tolist() == [[lsh.jaccard(a, b)]]


def test_the_size_of_a_matrix():
    assert lsh.jaccard_matrix([], ["a", "b"]).shape == (0, 2)
    assert lsh.jaccard_matrix(["a", "b", "c"], []).shape == (3, 0)
    texts = numpy.zeros(5_000_000, "S1")
    with pytest.raises(MemoryError, match=r"not enough memory for 5,000,000 x 5,000,000 .*, 200,000.0 GB; compare few"):
        lsh.jaccard_matrix(texts)


@pytest.mark.parametrize("bad", [None, 5, ["a"]])
def test_texts_of_a_wrong_type(bad):
    for call in (Shingles().of, lambda text: lsh.jaccard(text, "a"), lambda text: lsh.jaccard("a", text)):
        with pytest.raises(TypeError, match=type(bad).__name__):
            call(bad)
    with pytest.raises(TypeError, match=r"texts\[2\].*int"):
        lsh.jaccard_matrix(["a", "b", 3])
    with pytest.raises(TypeError, match=r"others\[1\].*float"):
        lsh.jaccard_matrix(["a", "b"], ["a", 3.0])
