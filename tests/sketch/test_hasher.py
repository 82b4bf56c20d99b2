"""MinHasher: fingerprints equal to the reference's and to upstream's, the value, and functions of fingerprints.

The scheme under test is "murmur3". Its bits are tested in three ways: by reference.py, by vectors of a build of
mattilyra/LSH, and by one checksum that holds without any other file.
"""

from __future__ import annotations

import array
import collections
import copy
import functools
import hashlib
import pickle
import random
import sys
from collections.abc import Set
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st

import lsh
from lsh import MinHasher, Shingles
from lsh._minhash import count_equal

DTYPES = {4: numpy.uint32, 8: numpy.uint64}
hash_sizes = st.sampled_from([4, 8])
seed_lists = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=6)
both_sizes = pytest.mark.parametrize("hashbytes", [4, 8])


def as_ints(rows: numpy.ndarray) -> list:
    return numpy.asarray(rows).tolist()


# Fingerprints.


@strategies.examples(135)
@given(
    text=strategies.texts,
    n=strategies.shingle_sizes,
    unit=strategies.units,
    seeds=seed_lists,
    hashbytes=hash_sizes,
    options=strategies.normalisations,
)
def test_fingerprint_against_twin(text, n, unit, seeds, hashbytes, options):
    hasher = MinHasher(seeds, hashbytes=hashbytes, shingles=Shingles(n, unit, **options))
    row = hasher.fingerprint(text)
    assert (row.shape, row.dtype) == ((len(seeds),), DTYPES[hashbytes])
    assert as_ints(row) == reference.fingerprint(text, seeds, hashbytes=hashbytes, n=n, unit=unit, **options)


@given(
    batch=st.lists(strategies.texts, max_size=12),
    n=strategies.shingle_sizes,
    unit=strategies.units,
    seeds=seed_lists,
    hashbytes=hash_sizes,
    options=strategies.normalisations,
)
def test_fingerprints_against_twin(batch, n, unit, seeds, hashbytes, options):
    rows = MinHasher(seeds, hashbytes=hashbytes, shingles=Shingles(n, unit, **options)).fingerprints(batch)
    assert (rows.shape, rows.dtype) == ((len(batch), len(seeds)), DTYPES[hashbytes])
    assert as_ints(rows) == [
        reference.fingerprint(text, seeds, hashbytes=hashbytes, n=n, unit=unit, **options) for text in batch
    ]


@pytest.mark.few(9)
@both_sizes
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 31, 32, 33, pytest.param(64, marks=pytest.mark.slow)])
def test_every_length_around_n(n, hashbytes):
    """Random bytes of every length up to more than 2 n: each tail of the hash, and every end of the text."""
    data = random.Random(n).randbytes(200)
    seeds = [0, 2**32 - 1, 12345]
    for unit in ("byte", "char"):
        hasher = MinHasher(seeds, hashbytes=hashbytes, shingles=Shingles(n, unit))
        texts = [data[start : start + length] for length in range(2 * n + 4) for start in (0, 1)]
        assert as_ints(hasher.fingerprints(texts)) == [
            reference.fingerprint(text, seeds, hashbytes=hashbytes, n=n, unit=unit) for text in texts
        ]


@pytest.mark.few(7)
@both_sizes
@pytest.mark.parametrize("length", [255, 256, 257, 263, 264, 511, 520, 1000, 2047, 3000])
def test_long_random_texts(length, hashbytes):
    text = random.Random(length).randbytes(length)
    for unit, n in (("byte", 8), ("char", 5), ("word", 2)):
        found = MinHasher([7, 8], hashbytes=hashbytes, shingles=Shingles(n, unit)).fingerprint(text)
        assert as_ints(found) == reference.fingerprint(text, [7, 8], hashbytes=hashbytes, n=n, unit=unit)


@both_sizes
def test_every_number_of_seeds(hashbytes):
    """Component i depends on seed i alone, whatever vector or remainder of the kernel computes it."""
    text = "She sells sea-shells, \x00 she does."
    seeds = random.Random(1).sample(range(2**32), 300)
    whole = reference.fingerprint(text, seeds, hashbytes=hashbytes, n=6, unit="byte")
    for k in range(1, 301):
        assert as_ints(MinHasher(seeds[:k], 6, hashbytes=hashbytes).fingerprint(text)) == whole[:k]


@both_sizes
@pytest.mark.parametrize("unit", ["byte", "char", "word"])
def test_unicode_text(unit, hashbytes):
    text = "Grüße, 漢字と仮名。 Ελληνικά Σ — \U0001f469\u200d\U0001f680 e\u0301 नमस्ते " * 3
    seeds = reference.seed_values(20, 1)
    for n in (1, 2, 4, 7):
        found = MinHasher(20, random_state=1, hashbytes=hashbytes, shingles=Shingles(n, unit)).fingerprint(text)
        assert as_ints(found) == reference.fingerprint(text, seeds, hashbytes=hashbytes, n=n, unit=unit)


@both_sizes
def test_batch_is_its_texts(hashbytes):
    """For every type of collection and every split into batches, a row is the fingerprint of its text."""
    draw = random.Random(9)
    texts = ["".join(draw.choices("abcd é漢", k=draw.randrange(40))) for _ in range(3000)]
    hasher = MinHasher(9, 4, hashbytes=hashbytes)
    rows = hasher.fingerprints(texts)
    single = [as_ints(hasher.fingerprint(text)) for text in texts]
    assert as_ints(rows) == single
    encoded = [text.encode() for text in texts]
    for same in (
        tuple(texts),
        iter(texts),
        (text for text in texts),
        numpy.array(texts, dtype=object),
        encoded,
        [bytearray(text) for text in encoded],
        [memoryview(text) for text in encoded],
    ):
        assert numpy.array_equal(hasher.fingerprints(same), rows)
    assert numpy.array_equal(hasher.fingerprints(numpy.array(texts)), rows)
    halves = [hasher.fingerprints(texts[:1234]), hasher.fingerprints(texts[1234:])]
    assert numpy.array_equal(numpy.concatenate(halves), rows)


def test_arrow_column():
    pyarrow = pytest.importorskip("pyarrow")
    texts = ["", "one text", "漢字", "another text, longer than the first"]
    hasher = MinHasher(5, 4)
    rows = hasher.fingerprints(texts)
    for kind in (pyarrow.string(), pyarrow.large_string(), pyarrow.binary()):
        column = pyarrow.array([t.encode() for t in texts]).cast(kind)
        assert numpy.array_equal(hasher.fingerprints(column), rows)
        assert numpy.array_equal(hasher.fingerprints(column[1:]), rows[1:])
        assert numpy.array_equal(
            hasher.fingerprints(pyarrow.chunked_array([column, column])), numpy.concatenate([rows, rows])
        )


@both_sizes
def test_threads_share_a_hasher(hashbytes):
    hasher = MinHasher(16, 5, hashbytes=hashbytes)
    draw = random.Random(2)
    batches = [[draw.randbytes(300) for _ in range(20)] for _ in range(32)]
    alone = [as_ints(hasher.fingerprints(batch)) for batch in batches]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda batch: as_ints(hasher.fingerprints(batch)), batches)) == alone


# The same bits as before.


def test_upstream_vectors(upstream_vectors):
    """Each component equals upstream's, except where upstream's cap replaced the value."""
    seeds = upstream_vectors["seeds"]
    checked = {4: 0, 8: 0}
    for case in upstream_vectors["cases"]:
        text, n = bytes.fromhex(case["text_hex"]), case["char_ngram"]
        capped = {4: 2**32 - 1, 8: 2**63 - 1}
        theirs = {4: case["fingerprint_4"], 8: [int(value, 16) for value in case["fingerprint_8"]]}
        for hashbytes in (4, 8):
            ours = as_ints(MinHasher(len(seeds), n, random_state=42, hashbytes=hashbytes).fingerprint(text))
            if len(text) < n:  # upstream has no shingle, this library has one
                assert set(theirs[hashbytes]) == {capped[hashbytes]}
                continue
            for mine, upstream in zip(ours, theirs[hashbytes], strict=True):
                if upstream != capped[hashbytes]:
                    assert mine == upstream
                    checked[hashbytes] += 1
                elif hashbytes == 4:
                    assert mine < 2**31 or mine == 2**32 - 1
                else:
                    assert mine >= 2**63 - 1
    assert min(checked.values()) > 10_000


def test_upstream_seeds(upstream_vectors):
    hasher = MinHasher(100)
    assert as_ints(hasher.seed_values[:8]) == upstream_vectors["random_state_0_first_8_of_100"]
    assert as_ints(MinHasher(16, random_state=42).seed_values) == upstream_vectors["seeds"]


# Fingerprints by reference.py of the texts below, packed little-endian.
@pytest.mark.parametrize(
    ("hashbytes", "expected"),
    [
        (4, "d1920aa821153bd94a07595f036352238712cf6a04b1494c3425123786395780"),
        (8, "20ed0db25a46f56b10e32142144ec150ba9ce849d3c2f7c98b323c53191e4c3c"),
    ],
)
def test_checksum_of_the_scheme(hashbytes, expected):
    texts = [
        "",
        "a",
        "abcdefgh",
        "The quick brown fox jumps over the lazy dog.",
        "漢字 é",
        b"\xff\x00\xfe" * 9,
        "\ud800",
        "x" * 100,
    ]
    total = hashlib.sha256()
    for n, unit in ((8, "byte"), (8, "char"), (2, "word"), (1, "byte")):
        rows = MinHasher(40, hashbytes=hashbytes, shingles=Shingles(n, unit)).fingerprints(texts)
        total.update(rows.astype(f"<u{hashbytes}").tobytes())
    assert total.hexdigest() == expected


# Seeds and parameters.


def test_default_parameters():
    hasher = MinHasher(100)
    assert hasher.seeds == hasher.num_seeds == 100
    assert hasher.hashbytes == 8
    assert hasher.scheme == "murmur3"
    assert hasher.shingles == Shingles(8, "byte")
    assert as_ints(hasher.seed_values) == reference.seed_values(100, 0)
    assert hasher == MinHasher(100, 8, 0, 8)
    assert MinHasher(100, char_ngram=5).shingles == Shingles(5, "byte")
    assert MinHasher(3, shingles=Shingles(2, "word")).shingles == Shingles(2, "word")


def test_seed_values_keep_their_repeats():
    """5,000 draws from a million repeat about a dozen seeds. These are kept, as in mattilyra/LSH."""
    values = MinHasher(5000, random_state=3).seed_values
    assert as_ints(values) == reference.seed_values(5000, 3)
    assert len(set(as_ints(values))) < 5000
    assert values.dtype == numpy.uint32


def test_seed_values_reach_from_zero_to_a_million():
    """Both ends of the range are drawn: the seeds 0 and 999,999."""
    for random_state, place, seed in ((339, 16, 0), (4328, 162, 999_999)):
        values = as_ints(MinHasher(200, random_state=random_state).seed_values)
        assert values == reference.seed_values(200, random_state)
        assert values[place] == seed


@pytest.mark.parametrize("kind", [list, tuple, lambda s: numpy.array(s, numpy.uint32), lambda s: numpy.array(s)])
def test_a_sequence_of_seeds(kind):
    seeds = [5, 0, 2**32 - 1, 5]
    hasher = MinHasher(kind(seeds), 3)
    assert hasher.seeds == hasher.num_seeds == 4
    assert as_ints(hasher.seed_values) == seeds
    assert as_ints(hasher.fingerprint("abcdef")) == reference.fingerprint(
        "abcdef", seeds, hashbytes=8, n=3, unit="byte"
    )


def test_drawn_and_given_seeds_are_equal():
    drawn = MinHasher(9, random_state=4)
    given_seeds = MinHasher(reference.seed_values(9, 4))
    assert drawn == given_seeds
    assert hash(drawn) == hash(given_seeds)


SEEDS_OF_4 = reference.seed_values(9, 4)
SAME = {
    "drawn": [
        MinHasher(9, random_state=4),
        MinHasher(SEEDS_OF_4),
        MinHasher(SEEDS_OF_4, random_state=7),
        MinHasher(SEEDS_OF_4, random_state=None),
        MinHasher(numpy.array(SEEDS_OF_4, numpy.uint32), 8),
        MinHasher(numpy.int64(9), numpy.int64(8), numpy.int64(4), numpy.int8(8)),
        MinHasher(
            9, random_state=4, shingles=Shingles(numpy.int64(8), numpy.str_("byte"), lowercase=numpy.bool_(False))
        ),
        MinHasher.from_dict(MinHasher(9, random_state=4).to_dict()),
    ],
    "drawn by a large number": [
        MinHasher(3, random_state=2**32 - 1),
        MinHasher(reference.seed_values(3, 2**32 - 1)),
        MinHasher.from_dict(MinHasher(3, random_state=2**32 - 1).to_dict()),
    ],
    "given": [MinHasher([1, 2, 3]), MinHasher((1, 2, 3), random_state=5), MinHasher(range(1, 4))],
    "fss": [
        MinHasher(9, random_state=4, scheme="fss"),
        MinHasher(numpy.int8(9), random_state=numpy.int8(4), scheme=numpy.str_("fss")),
        MinHasher.from_dict(MinHasher(9, random_state=4, scheme="fss").to_dict()),
    ],
}


@pytest.mark.parametrize("same", SAME.values(), ids=SAME)
def test_equal_hashers_behave_alike(same):
    """Equal hashers have the same repr, pickle and properties."""
    first, *others = same
    for other in others:
        assert other == first
        assert hash(other) == hash(first)
        assert repr(other) == repr(first)
        assert pickle.dumps(other) == pickle.dumps(first)
        assert other.to_dict() == first.to_dict()
        for name, value in vars(MinHasher).items():
            if isinstance(value, property):
                assert as_ints(getattr(other, name)) == as_ints(getattr(first, name))
                assert type(getattr(other, name)) is type(getattr(first, name))
    evaluated = eval(repr(first), {"MinHasher": MinHasher, "Shingles": Shingles})
    assert evaluated == first


def test_random_state_of_a_hasher():
    """A random state below 1,000 is found from the seeds; otherwise the seeds themselves are printed."""
    for random_state in (0, 1, 42, 999):
        for seeds in (1, 2, 100):
            found = MinHasher(reference.seed_values(seeds, random_state)).random_state
            assert reference.seed_values(seeds, found) == reference.seed_values(seeds, random_state)
        assert MinHasher(100, random_state=random_state).random_state == random_state
        assert repr(MinHasher(100, random_state=random_state)).startswith(
            f"MinHasher(100, random_state={random_state}, "
        )
    assert MinHasher(100, random_state=1000).random_state is None
    assert (
        repr(MinHasher([5, 0])) == "MinHasher([5, 0], hashbytes=8, scheme='murmur3', shingles=Shingles(8, unit='byte'))"
    )
    assert MinHasher([5, 0]).random_state is None
    assert MinHasher([*reference.seed_values(99, 7), 5]).random_state is None


def test_seeds_are_copied():
    seeds = numpy.array([1, 2, 3], numpy.uint32)
    hasher = MinHasher(seeds, 3)
    before = hasher.fingerprint("some text")
    seeds[:] = 9
    assert as_ints(hasher.seed_values) == [1, 2, 3]
    assert numpy.array_equal(hasher.fingerprint("some text"), before)


def test_random_state_none_draws_once():
    a, b = MinHasher(20, random_state=None), MinHasher(20, random_state=None)
    assert as_ints(a.seed_values) != as_ints(b.seed_values)
    assert a != b
    assert as_ints(a.seed_values) == as_ints(a.seed_values)
    for twin in (pickle.loads(pickle.dumps(a)), MinHasher.from_dict(a.to_dict()), eval(repr(a), vars(lsh) | globals())):
        assert twin == a
        assert as_ints(twin.seed_values) == as_ints(a.seed_values)


def test_numpy_integers_are_integers():
    assert MinHasher(numpy.int64(10), numpy.int32(5), numpy.int64(1), numpy.int8(4)) == MinHasher(10, 5, 1, 4)


# The value.

VALUES = [
    MinHasher(10),
    MinHasher(11),
    MinHasher(10, 5),
    MinHasher(10, random_state=1),
    MinHasher(10, hashbytes=4),
    MinHasher([1, 2, 3]),
    MinHasher([3, 2, 1]),
    MinHasher(10, shingles=Shingles(8, "char")),
    MinHasher(10, shingles=Shingles(2, "word", lowercase=True)),
    MinHasher(10, shingles=Shingles(8, "byte", normalize="NFC")),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_value(value):
    evaluated = eval(repr(value), {"lsh": lsh, "MinHasher": MinHasher, "Shingles": Shingles})
    for twin in (
        evaluated,
        pickle.loads(pickle.dumps(value)),
        copy.deepcopy(value),
        MinHasher.from_dict(value.to_dict()),
    ):
        assert twin == value
        assert (twin != value) is False
        assert hash(twin) == hash(value)
        assert twin.to_dict() == value.to_dict()
        assert repr(twin) == repr(value)
        assert pickle.dumps(twin) == pickle.dumps(value)
        assert twin.random_state == value.random_state
        assert numpy.array_equal(twin.fingerprint("a text of some length"), value.fingerprint("a text of some length"))
    assert value != "MinHasher(10)"
    assert value != value.to_dict()


def test_values_differ_in_every_parameter():
    assert len(set(VALUES)) == len(VALUES)
    assert all(a != b for i, a in enumerate(VALUES) for b in VALUES[:i])


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_to_dict_is_plain(value):
    import json

    assert MinHasher.from_dict(json.loads(json.dumps(value.to_dict()))) == value


@pytest.mark.parametrize("name", ["seeds", "num_seeds", "seed_values", "hashbytes", "shingles", "scheme", "empty"])
def test_immutable(name):
    value = MinHasher(4)
    with pytest.raises(AttributeError):
        setattr(value, name, 3)
    assert value == MinHasher(4)


@both_sizes
def test_results_are_read_only(hashbytes):
    hasher = MinHasher(4, 3, hashbytes=hashbytes)
    row = hasher.fingerprint("some text")
    for result in (row, hasher.seed_values, hasher.empty, hasher.merge(row, row)):
        with pytest.raises(ValueError, match="read-only"):
            result[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        hasher.fingerprints(["some text"])[0, 0] = 0
    assert as_ints(hasher.fingerprint("some text")) == as_ints(row)


@pytest.mark.parametrize("name", ["seed_values", "empty"])
def test_shared_arrays_cannot_be_made_writable(name):
    """A caller cannot make shared arrays writable."""
    hasher = MinHasher(4, 3)
    with pytest.raises(ValueError, match="WRITEABLE"):
        getattr(hasher, name).setflags(write=True)


# Similarity, interval, union.


@given(pair=strategies.alike(), seeds=seed_lists, hashbytes=hash_sizes)
def test_jaccard_of_texts_and_fingerprints(pair, seeds, hashbytes):
    hasher = MinHasher(seeds, hashbytes=hashbytes, shingles=Shingles(2))
    rows = [hasher.fingerprint(text) for text in pair]
    expected = reference.similarity(*map(as_ints, rows), hashbytes)
    for a in (pair[0], rows[0]):
        for b in (pair[1], rows[1]):
            assert hasher.jaccard(a, b) == hasher.jaccard(b, a) == expected


@both_sizes
def test_jaccard_compares_by_position(hashbytes):
    """Equal values at different positions do not count, and a fingerprint agrees with itself everywhere."""
    hasher = MinHasher(4, 3, hashbytes=hashbytes)
    a = numpy.array([1, 2, 3, 4], DTYPES[hashbytes])
    assert hasher.jaccard(a, a[::-1].copy()) == 0.0
    assert hasher.jaccard(a, a[::-1]) == 0.0
    assert hasher.jaccard(a, numpy.array([1, 3, 3, 1], DTYPES[hashbytes])) == 0.5
    assert hasher.jaccard(a, a) == 1.0


@both_sizes
def test_empty_texts(hashbytes):
    hasher = MinHasher(4, 3, hashbytes=hashbytes)
    words = MinHasher(4, hashbytes=hashbytes, shingles=Shingles(1, "word"))
    assert as_ints(hasher.empty) == reference.empty(4, hashbytes)
    assert hasher.empty.dtype == DTYPES[hashbytes]
    for row in (hasher.fingerprint(""), hasher.fingerprint(b""), hasher.fingerprints([""])[0], words.fingerprint("!?")):
        assert numpy.array_equal(row, hasher.empty)
    text = hasher.fingerprint("x")
    assert not numpy.array_equal(text, hasher.empty)
    for a, b in ((hasher.empty, hasher.empty), (text, ""), ("", text), ("", "")):
        assert hasher.jaccard(a, b) == 0.0
    half = hasher.empty.copy()
    half[:2] = 5  # of a text with shingles, two of whose components are the largest values
    found = hasher.similarities(numpy.stack([hasher.empty, text, half]))
    assert as_ints(found) == [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    assert hasher.jaccard(half, "") == hasher.jaccard("", half) == 0.0
    for union in (hasher.merge(hasher.empty, text), hasher.merge(text, hasher.empty)):
        assert numpy.array_equal(union, text)
    assert numpy.array_equal(hasher.merge(hasher.empty, hasher.empty), hasher.empty)


def test_short_texts_differ():
    """A text shorter than the shingle is one shingle, itself, and not the text without shingles."""
    hasher = MinHasher(50, 8)
    rows = hasher.fingerprints(["abc", "xyz", "abc"])
    assert hasher.jaccard("abc", "xyz") == 0.0
    assert hasher.jaccard("abc", "abc") == 1.0
    assert as_ints(rows[0]) == [reference.murmur3_x64_128(b"abc", seed)[0] for seed in reference.seed_values(50, 0)]
    assert numpy.array_equal(rows[0], rows[2])


@given(data=st.data(), seeds=seed_lists, hashbytes=hash_sizes)
def test_similarities_against_twin(data, seeds, hashbytes):
    hasher = MinHasher(seeds, hashbytes=hashbytes, shingles=Shingles(2))
    a, b = (
        hasher.fingerprints([text for pair in data.draw(st.lists(strategies.alike(), max_size=3)) for text in pair])
        for _ in "ab"
    )
    for others in (None, a, b):
        found = hasher.similarities(a) if others is None else hasher.similarities(a, others)
        expected = [
            [reference.similarity(as_ints(x), as_ints(y), hashbytes) for y in (a if others is None else others)]
            for x in a
        ]
        assert found.shape == (len(a), len(a if others is None else others))
        assert as_ints(found) == expected


@both_sizes
def test_similarities_of_one_and_of_strided_rows(hashbytes):
    hasher = MinHasher(30, 2, hashbytes=hashbytes)
    texts = ["the cat sat on the mat", "the red cat sat on the mat", "", "the mat", "no such thing", "thecat"]
    rows = hasher.fingerprints(texts)
    whole = as_ints(hasher.similarities(rows))
    assert whole == [[hasher.jaccard(a, b) for b in texts] for a in texts]
    assert 0.6 < whole[0][1] < 1
    assert numpy.ravel(hasher.similarities(rows[0], rows)).tolist() == whole[0]
    assert as_ints(hasher.similarities(rows[::2], rows[::-1])) == [line[::-1] for line in whole[::2]]


def test_exact_and_estimated_matrices_side_by_side():
    """100 seeds: each estimate within five standard errors of the given exact similarity."""
    texts = ["a rose is a rose", "a rose is a rose is a rose", "is a rose a rose", "nothing alike", "a nose is a rose"]
    shingles = Shingles(3)
    exact = lsh.jaccard_matrix(texts, shingles=shingles)
    hasher = MinHasher(100, shingles=shingles)
    estimate = hasher.similarities(hasher.fingerprints(texts))
    assert (numpy.diag(exact) == 1).all()
    assert (numpy.diag(estimate) == 1).all()
    assert (abs(estimate - exact) <= 5 * numpy.sqrt(exact * (1 - exact) / 100)).all()
    assert (estimate == estimate.T).all()


@both_sizes
@pytest.mark.parametrize("equal", [0, 1, 5, 32, 63, 64])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
def test_interval_against_twin(equal, confidence, hashbytes):
    hasher = MinHasher(64, 3, hashbytes=hashbytes)
    a = numpy.arange(64, dtype=DTYPES[hashbytes])
    b = a.copy()
    b[equal:] += 1000
    found = hasher.interval(a, b, confidence=confidence)
    low, high = found
    assert (low, high) == pytest.approx(reference.wilson(equal, 64, confidence), abs=1e-9)
    assert 0 <= low <= equal / 64 + 1e-12
    assert equal / 64 - 1e-12 <= high <= 1
    if confidence == 0.95:
        assert tuple(hasher.interval(a, b)) == tuple(found)


def test_interval_of_texts():
    """Texts and fingerprints in any combination; the interval is (0, 0) if a text has no shingles."""
    hasher = MinHasher(100, 4)
    a, b = "what's the flight time from Berlin to Helsinki?", "what's the flight time from Berlin to Oulu?"
    rows = hasher.fingerprints([a, b])
    equal = int((rows[0] == rows[1]).sum())
    for x in (a, rows[0]):
        for y in (b, rows[1]):
            assert tuple(hasher.interval(x, y)) == pytest.approx(reference.wilson(equal, 100, 0.95), abs=1e-9)
    assert 50 < equal < 100
    assert tuple(hasher.interval(a, "")) == tuple(hasher.interval("", "")) == (0.0, 0.0)


@given(a=strategies.texts, b=strategies.texts, seeds=seed_lists, hashbytes=hash_sizes, unit=strategies.units)
def test_merge_is_the_fingerprint_of_the_union(a, b, seeds, hashbytes, unit):
    hasher = MinHasher(seeds, hashbytes=hashbytes, shingles=Shingles(3, unit))
    rows = [hasher.fingerprint(text) for text in (a, b)]
    found = hasher.merge(*rows)
    assert (found.shape, found.dtype) == ((len(seeds),), DTYPES[hashbytes])
    union = {*reference.shingles(a, 3, unit), *reference.shingles(b, 3, unit)}
    hashed = [
        [
            reference.murmur3_x86_32(s, seed) if hashbytes == 4 else reference.murmur3_x64_128(s, seed)[0]
            for seed in seeds
        ]
        for s in union
    ]
    key = reference.signed32 if hashbytes == 4 else None
    expected = [min(column, key=key) for column in zip(*hashed)] or reference.empty(len(seeds), hashbytes)
    assert as_ints(found) == expected
    assert numpy.array_equal(hasher.merge(*rows[::-1]), found)


def test_merge_is_signed_for_four_bytes():
    hasher = MinHasher(3, 3, hashbytes=4)
    a = numpy.array([0, 2**31, 2**31 - 1], numpy.uint32)
    b = numpy.array([2**32 - 1, 2**32 - 1, 5], numpy.uint32)
    assert as_ints(hasher.merge(a, b)) == [2**32 - 1, 2**31, 5]
    wide = MinHasher(3, 3, hashbytes=8)
    assert as_ints(wide.merge(a.astype(numpy.uint64), b.astype(numpy.uint64))) == [0, 2**31, 5]


# Extreme sizes.


@both_sizes
def test_ten_megabytes_of_one_letter(hashbytes):
    hasher = MinHasher(2, 8, hashbytes=hashbytes)
    assert numpy.array_equal(hasher.fingerprint("a" * 10_000_000), hasher.fingerprint("a" * 8))


@both_sizes
def test_the_whole_text_counts(hashbytes):
    """The last shingle of a long text is hashed like the first."""
    hasher = MinHasher(64, 8, hashbytes=hashbytes)
    row = hasher.fingerprint("a" * 1_000_000)
    for longer in ("a" * 1_000_000 + "b", "b" + "a" * 1_000_000):
        short = longer.replace("a" * 1_000_000, "a" * 8)
        assert numpy.array_equal(hasher.fingerprint(longer), hasher.fingerprint(short))
        assert not numpy.array_equal(hasher.fingerprint(longer), row)


@both_sizes
def test_nul_bytes_and_lone_surrogates(hashbytes):
    hasher = MinHasher(4, hashbytes=hashbytes, shingles=Shingles(2))
    texts = ["\0", "\0\0", "\0\0\0", "a\0b", "a", "\ud800", "\udfff\ud800", "a\ud800b"]
    rows = as_ints(hasher.fingerprints(texts))
    assert rows == [
        reference.fingerprint(text, as_ints(hasher.seed_values), hashbytes=hashbytes, n=2, unit="char")
        for text in texts
    ]
    assert rows[1] == rows[2]
    assert len({tuple(row) for row in rows}) == len(texts) - 1
    assert rows == as_ints(hasher.fingerprints([strategies.encode(text) for text in texts]))


@both_sizes
def test_no_texts(hashbytes):
    hasher = MinHasher(6, 3, hashbytes=hashbytes)
    for nothing in ([], (), iter([]), numpy.array([], dtype=object)):
        rows = hasher.fingerprints(nothing)
        assert (rows.shape, rows.dtype) == ((0, 6), DTYPES[hashbytes])
    assert hasher.similarities(rows, rows).shape == (0, 0)


def test_fingerprints_as_a_column_of_arrays():
    """One array for each element, in a list or an array of objects, as in a column of a table."""
    hasher = MinHasher(16, shingles=Shingles(3))
    rows = hasher.fingerprints(["one text", "another text", "one more text"])
    column = numpy.empty(3, dtype=object)
    column[:] = list(rows)
    for found in (list(rows), column):
        assert numpy.array_equal(hasher.similarities(found), hasher.similarities(rows))
    column[1] = rows[1][:5]
    with pytest.raises(TypeError, match="must hold uint64 components"):
        hasher.similarities(column)


@pytest.mark.parametrize("hashbytes", [4, 8])
def test_a_bool_is_no_component(hashbytes):
    hasher = MinHasher(3, hashbytes=hashbytes)
    column = numpy.array([True, False, True], dtype=object)
    for bad in ([True] * 3, (1, 2, False), [numpy.True_] * 3, column, numpy.ones(3, bool), [1, 2, numpy.False_]):
        with pytest.raises(TypeError, match=f"^a must hold uint{8 * hashbytes} components"):
            hasher.jaccard(bad, "a text")
        with pytest.raises(TypeError, match=r"^B must hold"):
            hasher.similarities([[1, 2, 3]], [[1, 2, 3], bad])


def test_a_subclass_is_an_error():
    """The library would not call its methods, and pickle would lose its type."""
    with pytest.raises(
        TypeError, match="MinHasher cannot be subclassed, got the subclass Louder; let the class hold a MinHasher"
    ):
        type("Louder", (MinHasher,), {})
    assert getattr(MinHasher, "__final__", sys.version_info < (3, 11))  # for type checkers
    assert [type(twin(MinHasher(3))) for twin in (copy.copy, copy.deepcopy)] == [MinHasher] * 2


def test_any_sequence_in_order_is_a_fingerprint():
    hasher = MinHasher(16, shingles=Shingles(3))
    row = hasher.fingerprint("one text")
    values = row.tolist()
    for same in (row, values, tuple(values), array.array("Q", values), collections.deque(values), list(row)):
        assert hasher.jaccard(same, "one text") == 1.0
        assert hasher.interval("one text", same) == hasher.interval(row, row)
        assert numpy.array_equal(hasher.merge(same, same), row)
        assert hasher.similarities(same, [same, same]).tolist() == [1.0, 1.0]
    assert hasher.jaccard(range(16), list(range(16))) == 1.0


def test_tables_of_pandas_are_fingerprints():
    pandas = pytest.importorskip("pandas")
    hasher = MinHasher(3, shingles=Shingles(3))
    rows = hasher.fingerprints(["one text", "another text", "one more text"])
    expected = as_ints(hasher.similarities(rows))
    frame = pandas.DataFrame({"text": list("abc")})
    frame["fingerprint"] = list(rows)
    assert as_ints(hasher.similarities(frame["fingerprint"])) == expected
    assert as_ints(hasher.similarities(pandas.DataFrame(rows))) == expected  # its rows, not the names of its columns
    for one in (pandas.Series(rows[0]), pandas.Series(rows[0].tolist(), dtype="UInt64")):
        assert hasher.similarities(one, rows).tolist() == expected[0]


# Bad input: the type of the error, and its message.


def without_order(values: list[int]) -> dict[str, object]:
    """Containers of the components of a fingerprint that are not an array or a sequence."""
    by_value = dict.fromkeys(values)
    return {
        "set": set(values),
        "frozenset": frozenset(values),
        "dict": by_value,
        "OrderedDict": collections.OrderedDict(by_value),
        "Counter": collections.Counter(values),
        "dict_keys": by_value.keys(),
        "dict_values": dict(enumerate(values)).values(),
        "dict_items": dict(enumerate(values)).items(),
        "list_iterator": iter(values),
        "generator": (value for value in values),
        "map": map(int, values),
    }


@both_sizes
@pytest.mark.parametrize("kind", without_order([]))
def test_what_has_no_order_is_no_fingerprint(kind, hashbytes):
    """Two sets that agree in 99 of 100 components would be compared in the order of Python's hashes."""
    hasher = MinHasher(100, 3, hashbytes=hashbytes)
    row = hasher.fingerprint("a text of some length")
    bad, other = without_order(row.tolist())[kind], without_order(row.tolist())[kind]
    why = "; a set does not keep the order of the components" if isinstance(bad, Set) else ""
    message = f"must be an array or a sequence in order, got {kind}{why}; pass the array that fingerprint returns"
    for call in (hasher.jaccard, hasher.interval, hasher.merge):
        for arguments, name in (((bad, row), "a"), ((row, bad), "b"), ((bad, other), "a"), (("a text", bad), "b")):
            with pytest.raises(TypeError, match=f"^{name} {message}$"):
                call(*arguments)
    for arguments, name in (
        ((bad,), "A"),
        ((row, bad), "B"),
        (([bad, other],), r"A\[0\]"),
        ((row, [row, bad]), r"B\[1\]"),
    ):
        with pytest.raises(TypeError, match=f"^{name} {message}$"):
            hasher.similarities(*arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"seeds": 0}, ValueError, r"seeds.*got 0"),
        ({"seeds": -1}, ValueError, r"seeds.*got -1"),
        ({"seeds": []}, ValueError, r"seeds"),
        ({"seeds": [1, -1]}, ValueError, r"seeds\[1\].*-1"),
        ({"seeds": [2**32]}, ValueError, r"seeds\[0\].*4294967296"),
        ({"seeds": [1.5]}, (TypeError, ValueError), r"seeds.*(1\.5|float)"),
        ({"seeds": 2.0}, TypeError, r"seeds.*float"),
        ({"seeds": float("nan")}, TypeError, r"seeds.*float"),
        ({"seeds": None}, TypeError, r"seeds.*NoneType"),
        ({"seeds": "12"}, TypeError, r"seeds.*str"),
        ({"seeds": {1, 2}}, TypeError, r"seeds must be .*sequence of uint32, got set"),
        ({"seeds": {1: 2}}, TypeError, r"seeds must be .*sequence of uint32, got dict"),
        ({"seeds": numpy.ones((2, 2), numpy.uint32)}, (TypeError, ValueError), r"seeds"),
        ({"char_ngram": 0}, ValueError, r"got 0"),
        ({"char_ngram": -1}, ValueError, r"got -1"),
        ({"char_ngram": 2.5}, TypeError, r"float"),
        ({"char_ngram": float("nan")}, TypeError, r"float"),
        ({"hashbytes": 5}, ValueError, r"hashbytes must be 4 or 8, got 5"),
        ({"hashbytes": "8"}, TypeError, r"hashbytes must be .*str"),
        ({"random_state": -1}, ValueError, r"random_state"),
        ({"random_state": 2**32}, ValueError, r"random_state"),
        ({"random_state": 1.5}, TypeError, r"random_state.*float"),
        ({"random_state": "x"}, TypeError, r"random_state.*str"),
        ({"scheme": "sha1"}, ValueError, r"scheme.*'sha1'"),
        ({"shingles": 5}, TypeError, r"shingles.*int"),
        ({"char_ngram": 5, "shingles": Shingles(5, "byte")}, ValueError, r"char_ngram.*shingles"),
    ],
)
def test_bad_parameters(arguments, error, message):
    with pytest.raises(error, match=message):
        MinHasher(**{"seeds": 10, **arguments})


@pytest.mark.parametrize("bad", [None, 5, 1.5, object()])
def test_fingerprint_of_no_text(bad):
    with pytest.raises(TypeError, match=type(bad).__name__):
        MinHasher(3).fingerprint(bad)


@pytest.mark.parametrize("position", [0, 2, 5000])
@pytest.mark.parametrize("kind", [list, iter])
def test_a_bad_text_in_a_batch_is_named(kind, position):
    texts = ["text"] * position
    with pytest.raises(TypeError, match=rf"texts\[{position}\] .*int"):
        MinHasher(3).fingerprints(kind([*texts, 7, "x"]))
    with pytest.raises(ValueError, match=rf"texts\[{position}\] is None.*missing="):
        MinHasher(3).fingerprints(kind([*texts, None, "x"]))


@pytest.mark.parametrize("num_threads", [1, 2, 7])
def test_results_do_not_depend_on_threads(num_threads):
    texts = [f"text number {i}" for i in range(2000)]
    hasher = MinHasher(5, 4)
    rows = hasher.fingerprints(texts, num_threads=num_threads)
    assert as_ints(rows) == [as_ints(hasher.fingerprint(text)) for text in texts]
    with pytest.raises(TypeError, match=r"texts\[1234\]"):
        hasher.fingerprints([*texts[:1234], 5, *texts], num_threads=num_threads)


@pytest.mark.parametrize(("bad", "error"), [(0, ValueError), (-1, ValueError), (1.0, TypeError), ("2", TypeError)])
def test_bad_num_threads(bad, error):
    with pytest.raises(error, match="num_threads"):
        MinHasher(3).fingerprints(["a"], num_threads=bad)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scheme": "other"}, "scheme other"),
        ({"version": 99}, "version 99"),
        ({"hashbytes": 3}, "hashbytes"),
        ({"seed_values": [-1]}, "seeds"),
        ({"num_seeds": 4}, "num_seeds must be 3"),
    ],
)
def test_from_dict_refuses_what_it_does_not_know(change, message):
    with pytest.raises(ValueError, match=message):
        MinHasher.from_dict({**MinHasher(3).to_dict(), **change})


@pytest.mark.parametrize("bad", [15, 15.1, True, ["15.0.0"], b"15.0.0"])
def test_from_dict_refuses_a_unicode_version_that_is_no_str(bad):
    for shingles in (Shingles(2, "word"), Shingles(8, "byte")):
        values = MinHasher(3, shingles=shingles).to_dict()
        with pytest.raises(TypeError, match=f"^unicode must be a str or None, got {type(bad).__name__}$"):
            MinHasher.from_dict({**values, "unicode": bad})


def test_from_dict_names_what_is_missing():
    values = MinHasher(3).to_dict()
    del values["seed_values"]
    with pytest.raises(ValueError, match="seed_values"):
        MinHasher.from_dict(values)


def test_another_unicode_version_is_a_warning():
    values = MinHasher(3, shingles=Shingles(2, "word")).to_dict()
    with pytest.warns(UserWarning, match=r"Unicode 1\.1"):
        assert MinHasher.from_dict({**values, "unicode": "1.1"}) == MinHasher.from_dict(values)
    assert MinHasher(3).to_dict()["unicode"] is None


def test_missing_texts_count_as_empty_where_asked():
    hasher = MinHasher(3)
    assert numpy.array_equal(hasher.fingerprints(["a", None], missing="empty"), hasher.fingerprints(["a", ""]))
    with pytest.raises(ValueError, match="missing"):
        hasher.fingerprints(["a"], missing="skip")


def test_rows_are_read_only():
    hasher = MinHasher(3)
    for rows in (hasher.fingerprint("a"), hasher.fingerprints(["a"]), *(rows for _, rows in hasher.chunks(["a", "b"]))):
        assert not rows.flags.writeable


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (["a text", ""], TypeError, r"must be .*fingerprints, got texts \(list of str\)"),
        (numpy.zeros((2, 4), numpy.uint64), ValueError, r"must have 3 components per fingerprint, got shape \(2, 4\)"),
        (numpy.zeros((2, 3), numpy.uint32), TypeError, "must hold uint64 components, as this hasher makes, got uint32"),
        (numpy.uint64(3), ValueError, r"must have 3 components per fingerprint, got shape \(\)"),
        (None, TypeError, "must be .*fingerprints, got NoneType"),
    ],
)
def test_what_is_empty_are_fingerprints(rows, error, message):
    with pytest.raises(error, match=f"^fingerprints {message}"):
        MinHasher(3).is_empty(rows)
    with pytest.raises(error, match=f"^A {message}"):
        MinHasher(3).similarities(rows)


def test_a_list_of_fingerprints_may_be_empty():
    hasher = MinHasher(3)
    rows = hasher.fingerprints(["a text", ""])
    assert hasher.is_empty(rows.tolist()).tolist() == hasher.is_empty(rows).tolist() == [False, True]
    assert hasher.is_empty(rows[1]).tolist() is True


@pytest.mark.parametrize("bad", ["a text", b"a text"])
def test_a_text_is_no_batch(bad):
    with pytest.raises(TypeError, match=type(bad).__name__):
        MinHasher(3).fingerprints(bad)


@pytest.mark.parametrize("bad", [None, {"a", "b"}, {"a": 1}])
def test_no_batch(bad):
    with pytest.raises(TypeError, match=type(bad).__name__):
        MinHasher(3).fingerprints(bad)


@pytest.mark.parametrize("number", [5, 0.8])
def test_a_number_is_no_batch(number):
    with pytest.raises(TypeError, match=f"texts must be a collection of texts, got the number {number}"):
        MinHasher(3).fingerprints(number)


def test_a_function_must_be_called():
    """`deduplicate` and `find_pairs` call it; everything else says so."""
    hasher = MinHasher(16)

    def read():
        return ["some text"]

    for wrong, kind in ((read, "function"), (lambda: ["some text"], "function"), (functools.partial(read), "partial")):
        message = f"must be a collection of texts, got a {kind}; call it, and pass what it returns$"
        for call in (
            hasher.fingerprints,
            hasher.chunks,
            lsh.jaccard_matrix,
            lsh.Cache(hasher).query_docs,
            lambda texts: lsh.Cache(hasher).add_docs(texts, [1]),
        ):
            with pytest.raises(TypeError, match=f"^texts {message}"):
                call(wrong)
        with pytest.raises(TypeError, match=f"^background {message}"):
            lsh.plan(background=wrong)
    with pytest.raises(TypeError, match="got a type; call it"):
        hasher.fingerprints(list)


@both_sizes
def test_bad_fingerprints(hashbytes):
    hasher = MinHasher(4, 3, hashbytes=hashbytes)
    row = hasher.fingerprint("some text")
    other = numpy.zeros(4, DTYPES[12 - hashbytes])
    for call in (hasher.jaccard, hasher.interval, hasher.merge, hasher.similarities):
        with pytest.raises(ValueError, match=r"4.*(3|\(3,\))"):
            call(row, row[:3])
        with pytest.raises((TypeError, ValueError), match=other.dtype.name):
            call(row, other)
        with pytest.raises((TypeError, ValueError), match="float64"):
            call(row.astype(float), row)
        with pytest.raises((TypeError, ValueError), match=r"components|one text or fingerprint"):
            call(row, numpy.zeros((2, 2, 4), DTYPES[hashbytes]))
    for call in (hasher.jaccard, hasher.interval, hasher.merge):
        for bad, kind in ((5, "int"), (None, "NoneType"), (object(), "object"), (lambda: row, "function")):
            with pytest.raises(TypeError, match=f"^b must be a text or a fingerprint, got {kind}$"):
                call(row, bad)
        with pytest.raises(TypeError, match=r"^a must be a text or a fingerprint, got texts \(list of str\); compute"):
            call(["some text"], row)
        with pytest.raises(ValueError, match="b must be one text or fingerprint"):
            call(row, numpy.stack([row, row]))
    for bad, got in (
        ("some text", "str; compute them with fingerprints"),
        (["some text", "another"], r"texts \(list of str\); compute them with fingerprints"),
        (numpy.array(["some text"]), r"texts \(ndarray of str_\); compute them with fingerprints"),
        ((b"bytes",), r"texts \(tuple of bytes\); compute them with fingerprints"),
        (5, "int"),
    ):
        with pytest.raises(TypeError, match=f"^A must be fingerprints, got {got}$"):
            hasher.similarities(bad)
        with pytest.raises(TypeError, match=f"^B must be fingerprints, got {got}$"):
            hasher.similarities(row, bad)


@pytest.mark.parametrize("bad", [0, 1, -0.5, 2, float("nan")])
def test_bad_confidence(bad):
    hasher = MinHasher(4, 3)
    with pytest.raises(ValueError, match="confidence"):
        hasher.interval("a", "b", confidence=bad)


def test_nothing_is_half_done_after_an_error():
    hasher = MinHasher(3, 3)
    before = hasher.fingerprints(["one", "two"])
    for _ in range(3):
        with pytest.raises(TypeError):
            hasher.fingerprints(["one", 2])
    assert numpy.array_equal(hasher.fingerprints(["one", "two"]), before)
    assert hasher == MinHasher(3, 3)


def test_a_fingerprint_may_be_a_list_of_any_uint64():
    hasher = MinHasher(4)
    row = [1, 2**63 + 1, 0, 2**64 - 1]
    assert hasher.jaccard(row, numpy.array(row, numpy.uint64)) == 1.0
    with pytest.raises(ValueError, match="out of their range"):
        hasher.jaccard([1, 2, 3, 2**64], row)


def test_rows_of_unequal_length_are_not_counted():
    with pytest.raises(ValueError, match="same number of components"):
        count_equal(numpy.zeros((1, 3), numpy.uint32), numpy.zeros((1, 2), numpy.uint32))


def test_a_confidence_next_to_one_is_refused():
    with pytest.raises(ValueError, match="confidence must be less than 1"):
        MinHasher(4).interval("a", "b", 0.9999999999999999)
