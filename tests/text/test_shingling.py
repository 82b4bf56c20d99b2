"""Shingles as a value and as sets, normalisation, and the exact Jaccard similarity.

The numbers are those of the documents that the library reproduces; every other expected value is that of reference.py.
"""

from __future__ import annotations

import copy
import enum
import json
import pickle

import numpy
import pytest
import reference
import strategies
from hypothesis import example, given
from hypothesis import strategies as st

import lsh
from lsh import Shingles

OPTIONS = {"normalize": None, "lowercase": False, "strip_punctuation": False, "collapse_whitespace": False}


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
    ("unit", "expected"),
    [
        ("byte", {b"\xc3\xa9", b"\xa9a", b"a\xe6", b"\xe6\xbc", b"\xbc\xa2"}),
        ("char", {"éa".encode(), "a漢".encode()}),
        ("word", {"éa漢".encode()}),
    ],
)
def test_units(unit, expected):
    assert as_bytes(Shingles(2, unit).of("éa漢")) == sorted(expected)


def test_words():
    assert as_bytes(Shingles(2, "word").of("It's 3 o'clock_now,  ça va?")) == sorted(
        x.encode() for x in ["It s", "s 3", "3 o", "o clock_now", "clock_now ça", "ça va"]
    )
    assert as_bytes(Shingles(3, "word").of("two words")) == [b"two words"]
    assert as_bytes(Shingles(2, "word").of(b"a\xffb \xe6c")) == [b"a b", b"b c"]
    assert as_bytes(Shingles(1, "word").of("!? ... \u3000 —")) == []


@pytest.mark.parametrize("unit", ["byte", "char", "word"])
@pytest.mark.parametrize("n", [1, 2, 8, 1000])
def test_a_short_text_is_one_shingle_and_an_empty_one_none(unit, n):
    assert as_bytes(Shingles(n, unit).of("")) == as_bytes(Shingles(n, unit).of(b"")) == []
    assert as_bytes(Shingles(n, unit).of("x")) == [b"x"]
    if n == 8:
        assert as_bytes(Shingles(n, unit).of("abcdefg")) == [b"abcdefg"]


def test_shingles_longer_than_any_text():
    """The largest n is not added to a length or a position, which would overflow."""
    for n in (2**31, 2**32, 2**61):
        for unit in ("byte", "char", "word"):
            assert as_bytes(Shingles(n, unit).of("two words")) == [b"two words"]
            assert lsh.jaccard("two words", "two words", shingles=Shingles(n, unit)) == 1.0


def test_lone_surrogates_and_damage_are_single_characters():
    assert as_bytes(Shingles(1).of("a\ud800b")) == [b"a", b"b", b"\xed\xa0\x80"]
    assert as_bytes(Shingles(1).of(b"a\xed\xa0\x80b")) == [b"a", b"b", b"\xed\xa0\x80"]
    assert as_bytes(Shingles(1).of(b"\xe6\xbc\xc0\x80")) == [b"\x80", b"\xbc", b"\xc0", b"\xe6"]
    assert as_bytes(Shingles(2).of(b"\xf4\x90\x80z")) == [b"\x80z", b"\x90\x80", b"\xf4\x90"]


def test_str_and_bytes_agree():
    text = "Zürich, \u2028 naïve \ud83d café\x00!"
    for unit in ("byte", "char", "word"):
        for n in (1, 2, 5):
            shingles = Shingles(n, unit, lowercase=True, normalize="NFKC")
            assert as_bytes(shingles.of(text)) == as_bytes(shingles.of(strategies.encode(text)))


def test_default_is_eight_characters():
    assert Shingles() == Shingles(8, "char", **OPTIONS)
    assert as_bytes(Shingles().of("123456789")) == [b"12345678", b"23456789"]


# Normalisation.

WHOLE = Shingles(10**6)  # a text is one shingle: its normal form can be read


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
    ],
)
def test_normal_forms(text, options, expected):
    shingles = Shingles(WHOLE.n, "char", **options)
    assert as_bytes(shingles.of(text)) == [expected.encode()]
    assert as_bytes(shingles.of(text.encode())) == [expected.encode()]


def test_undecodable_bytes_part_the_text():
    """An undecodable byte ends a run of white space, and each part is lower-cased by itself."""
    shingles = Shingles(WHOLE.n, lowercase=True, collapse_whitespace=True)
    assert as_bytes(shingles.of(b"A \xff \t B")) == [b"a \xff b"]
    assert as_bytes(shingles.of("ΑΣ".encode() + b"\xff" + "Α".encode())) == ["ας".encode() + b"\xff" + "α".encode()]


# The value.

VALUES = [
    Shingles(),
    Shingles(5),
    Shingles(5, "byte"),
    Shingles(2, "word"),
    Shingles(8, lowercase=True),
    Shingles(8, collapse_whitespace=True),
    Shingles(8, strip_punctuation=True),
    Shingles(8, normalize="NFC"),
    Shingles(8, normalize="NFKC"),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_value(value):
    same = eval(repr(value), {"Shingles": Shingles, "lsh": lsh})
    for twin in (same, pickle.loads(pickle.dumps(value)), copy.deepcopy(value), Shingles(**value.to_dict())):
        assert twin == value
        assert (twin != value) is False
        assert hash(twin) == hash(value)
        assert twin.to_dict() == value.to_dict()
        assert repr(twin) == repr(value)
        assert pickle.dumps(twin) == pickle.dumps(value)
    assert Shingles.from_dict(value.to_dict()) == value
    assert {value, same} == {value}
    assert value != value.to_dict()
    assert value != "Shingles()"


def test_values_differ_in_every_parameter():
    assert len(set(VALUES)) == len(VALUES)
    assert all(a != b for i, a in enumerate(VALUES) for b in VALUES[:i])


def test_to_dict_is_plain():
    value = Shingles(3, "word", normalize="NFC", lowercase=True)
    assert value.to_dict() == {**OPTIONS, "n": 3, "unit": "word", "normalize": "NFC", "lowercase": True}


@pytest.mark.parametrize("name", ["n", "unit", "normalize", "lowercase", "strip_punctuation", "collapse_whitespace"])
def test_immutable(name):
    value = Shingles(5)
    before = getattr(value, name)
    with pytest.raises(AttributeError):
        setattr(value, name, 3)
    with pytest.raises(AttributeError):
        delattr(value, name)
    assert getattr(value, name) == before


class Word(str, enum.Enum):
    UNIT = "word"
    FORM = "NFKC"


class Number(enum.IntEnum):
    FIVE = 5


@pytest.mark.parametrize(
    "same",
    [
        Shingles(numpy.int64(5), numpy.str_("word"), numpy.bool_(True), normalize=numpy.str_("NFKC")),
        Shingles(numpy.uint8(5), Word.UNIT, True, numpy.False_, normalize=Word.FORM),
        Shingles(
            Number.FIVE, "wo" + "rd"[:2], strip_punctuation=numpy.bool_(False), lowercase=True, normalize=Word.FORM
        ),
    ],
)
def test_equal_shingles_behave_alike(same):
    """Numbers, bools and words of other types become those of Python."""
    value = Shingles(5, "word", lowercase=True, normalize="NFKC")
    assert same == value
    assert hash(same) == hash(value)
    assert repr(same) == repr(value) == "Shingles(5, unit='word', lowercase=True, normalize='NFKC')"
    assert pickle.dumps(same) == pickle.dumps(value)
    assert same.to_dict() == value.to_dict()
    assert [type(part) for part in same.to_dict().values()] == [int, str, bool, bool, bool, str]
    assert json.loads(json.dumps(same.to_dict())) == value.to_dict()


# Exact Jaccard similarity.


@strategies.examples(135)
@given(pair=strategies.alike(), n=strategies.shingle_sizes, unit=strategies.units, options=strategies.normalisations)
@example(("", ""), 3, "char", {})
@example(("abc", "abc"), 5, "byte", {})
@example(("\0\0", "\0"), 1, "byte", {})
def test_jaccard_against_twin(pair, n, unit, options):
    a, b = pair
    shingles = Shingles(n, unit, **options)
    expected = reference.jaccard(a, b, n, unit, **options)
    assert lsh.jaccard(a, b, shingles=shingles) == expected
    assert lsh.jaccard(b, a, shingles=shingles) == expected


@given(data=st.data(), n=strategies.shingle_sizes, unit=strategies.units, options=strategies.normalisations)
def test_jaccard_matrix_against_twin(data, n, unit, options):
    rows = [text for pair in data.draw(st.lists(strategies.alike(), max_size=3)) for text in pair]
    columns = rows[1:] + data.draw(st.lists(strategies.texts, max_size=2))
    shingles = Shingles(n, unit, **options)
    for others in (None, columns):
        found = lsh.jaccard_matrix(rows, others, shingles=shingles)
        expected = [
            [reference.jaccard(a, b, n, unit, **options) for b in (rows if others is None else others)] for a in rows
        ]
        assert found.shape == (len(rows), len(rows if others is None else others))
        assert found.dtype == numpy.float64
        assert found.tolist() == expected


def test_jaccard_matrix_of_many_sizes():
    """Sets of 0 to 20,000 shingles in one batch, large beside small in both orders."""
    draw = numpy.random.RandomState(3)
    long = draw.bytes(20_000)
    texts = [long, b"", long[:9000], b"x", long[5000:], draw.bytes(3000), long[:7], long[::-1], b"ab" * 5000, b"ba"]
    found = lsh.jaccard_matrix(texts, shingles=Shingles(3, "byte"))
    sets = [set(reference.shingles(text, 3, "byte")) for text in texts]
    assert found.tolist() == [[len(a & b) / len(a | b) if a and b else 0.0 for b in sets] for a in sets]
    assert found[0, 2] > 0.4
    assert found[0, 4] > 0.4


def test_jaccard_of_empty_texts_is_zero():
    assert lsh.jaccard("", "") == lsh.jaccard("", "a") == lsh.jaccard("a", b"") == 0.0
    assert lsh.jaccard("!", "!", shingles=Shingles(1, "word")) == 0.0
    assert lsh.jaccard("a", "a") == 1.0


def test_defaults_are_eight_characters():
    a, b = "naïve café, morning", "naïve cafés, morning"
    assert lsh.jaccard(a, b) == reference.jaccard(a, b, 8, "char") != reference.jaccard(a, b, 8, "byte")
    assert lsh.jaccard_matrix([a], [b]).tolist() == [[lsh.jaccard(a, b)]]


def test_jaccard_takes_other_buffers():
    shingles = Shingles(2)
    for kind in (bytearray, memoryview):
        assert lsh.jaccard(kind(b"abcd"), "abce", shingles=shingles) == 0.5


def test_empty_matrix():
    assert lsh.jaccard_matrix([]).shape == (0, 0)
    assert lsh.jaccard_matrix([], ["a", "b"]).shape == (0, 2)
    assert lsh.jaccard_matrix(["a", "b", "c"], []).shape == (3, 0)


def test_a_matrix_that_is_too_large():
    texts = numpy.zeros(5_000_000, "S1")
    with pytest.raises(MemoryError, match=r"not enough memory for 5,000,000 x 5,000,000 .*, 200,000.0 GB; compare few"):
        lsh.jaccard_matrix(texts)


def test_ten_megabytes_of_one_letter():
    assert lsh.jaccard("a" * 10_000_000, "a" * 8 + "b") == 0.5


# Published numbers.


def test_the_cat():
    a, b = "The cat sat on the mat.", "The red cat sat on the mat."
    assert round(lsh.jaccard(a, b, shingles=Shingles(2)), 2) == 0.81
    assert round(lsh.jaccard(a, b, shingles=Shingles(5)), 2) == 0.62


def test_flights():
    a = "what's the flight time from Berlin to Helsinki?"
    assert (
        lsh.jaccard(a, "how long does it take to fly from Berlin to Helsinki?", shingles=Shingles(4))
        == 0.30985915492957744
    )
    assert lsh.jaccard(a, "what's the flight time from Berlin to Oulu?", shingles=Shingles(4)) == 0.7142857142857143


def test_lorem_ipsum_without_the_last_shingles():
    """The published figure leaves out the last shingle of each text; with all of them it is 22 of 47."""
    a, b = "Lorem Ipsum dolor sit amet", "Lorem Ipsum dolor sit amet is how dummy text starts"
    assert lsh.jaccard(a[:-1], b[:-1], shingles=Shingles(5)) == 0.45652173913043476
    assert lsh.jaccard(a, b, shingles=Shingles(5)) == 22 / 47


TUTORIAL = Shingles(10, lowercase=True, collapse_whitespace=True)


def test_pizza():
    """Every 10-shingle of the lower-cased text, whose 14 line ends make one space."""
    found = TUTORIAL.of("I love pizza Margherita! xd 1111@" + 14 * "\n")
    whole = "i love pizza margherita! xd 1111@ "
    assert as_bytes(found) == sorted(whole[i : i + 10].encode() for i in range(25))
    assert len(found) == 25
    assert {b"i love piz", b"e pizza ma", b" xd 1111@ "} < set(as_bytes(found))


LOREM = (
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore "
    "magna aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo "
    "consequat. Duis aute irure dolor in reprehenderit in voluptate velit esse cillum dolore eu fugiat nulla "
    "pariatur. Excepteur sint occaecat cupidatat non proident"
)


def test_two_lorem_ipsum_texts():
    a = LOREM + ", sunt in culpa qui officia deserunt mollit anim id est laborum."
    b = LOREM + " bla bla bla."
    assert lsh.jaccard(a, b, shingles=TUTORIAL) == 0.8285077951002228


# Bad input: the type, and what the message says of it.


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n": 0}, ValueError, r"n must be .*got 0"),
        ({"n": -3}, ValueError, r"n must be .*got -3"),
        ({"n": 2.0}, TypeError, r"n must be .*float"),
        ({"n": float("nan")}, TypeError, r"n must be .*float"),
        ({"n": "5"}, TypeError, r"n must be .*str"),
        ({"n": None}, TypeError, r"n must be .*NoneType"),
        ({"unit": "chars"}, ValueError, r"unit must be .*'chars'"),
        ({"unit": None}, (TypeError, ValueError), r"unit must be .*None"),
        ({"normalize": "NFX"}, ValueError, r"normalize must be .*'NFX'"),
        ({"normalize": "nfc"}, ValueError, r"normalize must be .*'nfc'"),
        ({"normalize": True}, (TypeError, ValueError), r"normalize must be .*(True|bool)"),
    ],
)
def test_bad_parameters(arguments, error, message):
    with pytest.raises(error, match=message):
        Shingles(**arguments)


@pytest.mark.parametrize("bad", [None, 5, 1.5, ["a"]])
def test_texts_of_a_wrong_type(bad):
    kind = type(bad).__name__
    with pytest.raises(TypeError, match=kind):
        Shingles().of(bad)
    for pair in ((bad, "a"), ("a", bad)):
        with pytest.raises(TypeError, match=kind):
            lsh.jaccard(*pair)


def test_a_bad_text_in_a_matrix_is_named():
    with pytest.raises(TypeError, match=r"texts\[2\].*int"):
        lsh.jaccard_matrix(["a", "b", 3])
    with pytest.raises(TypeError, match=r"others\[1\].*float"):
        lsh.jaccard_matrix(["a", "b"], ["a", 3.0])
    with pytest.raises(ValueError, match=r"texts\[1\].*None"):
        lsh.jaccard_matrix(["a", None])


@pytest.mark.parametrize("bad", [5, "char", {"n": 5}])
def test_shingles_of_a_wrong_type(bad):
    with pytest.raises(TypeError, match="Shingles"):
        lsh.jaccard("a", "b", shingles=bad)
    with pytest.raises(TypeError, match="Shingles"):
        lsh.jaccard_matrix(["a"], shingles=bad)


def test_many_undecodable_bytes_are_normalised_in_linear_memory():
    text = b"\xff" * 300_000 + b"AB" + b"\xff" * 10
    assert lsh.Shingles(3, lowercase=True).apply(text) == text.replace(b"AB", b"ab")
    for other in (bytearray(text), memoryview(text)):
        assert lsh.Shingles(3, lowercase=True).apply(other) == text.replace(b"AB", b"ab")
    with pytest.raises(TypeError, match=r"^text must be str, .* or memoryview, got NoneType"):
        lsh.Shingles(3).apply(None)
