"""The exact sets of shingles behind `lsh.jaccard`: thresholds, cache, parts of large texts, hashes that collide.

None of these may change a similarity, so the expected values are always those of reference.py.
"""

import math
import random
import struct

import numpy
import pytest
import reference
import strategies
from hypothesis import example, given
from hypothesis import strategies as st

from lsh import Shingles
from lsh._minhash import UNIT_CODES
from lsh.links.comparing import Pairs, Similarity
from lsh.text.batch import Batch, content_keys
from lsh.text.sets import ShingleSets
from lsh.text.shingling import ascii_flags, normalizer

WEAK = bytes(128)  # all long hashes collide; a short shingle is its own token, with top bits 0
ONE_BIT = bytes(40) + b"\x5a" * 80 + struct.pack("<Q", 1)
SECRETS = [None, WEAK, ONE_BIT, b"\x01" * 128, bytes(range(120)) + b"\xff" * 8]


def sets(texts, shingles: Shingles, **options) -> ShingleSets:
    batch = Batch(texts, transform=normalizer(shingles))
    return ShingleSets(batch, UNIT_CODES[shingles.unit], shingles.n, ascii_flags(shingles), **options)


def similarities(found: ShingleSets, asked, least: float = 0.0) -> list[float]:
    """The similarities of pairs of texts, asked for in their order, 0.0 where `Pairs` finds them below `least`.

    The pairs are documents two by two from the last one down, as `Pairs` goes; no filter comes before the sets.
    """
    texts = numpy.array(asked, numpy.int32).reshape(-1)[::-1].copy()
    links = numpy.arange(-1, len(texts) - 1, dtype=numpy.int32).reshape(1, -1)
    links[0, ::2] = -1
    similarity = Similarity(numpy.zeros((len(texts), 1), numpy.uint8), found, texts, 0)
    pairs = Pairs(similarity, links, numpy.arange(len(texts), dtype=numpy.int32), least)
    values, document = [0.0] * len(asked), len(texts) - 1
    while document >= 0:
        document, *found = pairs.run(document, -1, 1000)
        for of, partner, value in zip(*(array.tolist() for array in found)):
            assert partner == of - 1
            values[(len(texts) - of) // 2] = value
    return values


def all_pairs(found: ShingleSets, count: int, least: float = 0.0) -> list[float]:
    return similarities(found, [(i, j) for i in range(count) for j in range(count)], least)


def expected_pairs(texts, shingles: Shingles) -> list[float]:
    made = [set(reference.shingles(text, **shingles.to_dict())) for text in texts]
    return [len(a & b) / len(a | b) if a and b else 0.0 for a in made for b in made]


batches = st.lists(strategies.alike(), min_size=1, max_size=3).map(
    lambda pairs: [text for pair in pairs for text in pair]
)


@strategies.examples(100)
@given(
    texts=batches,
    n=strategies.shingle_sizes,
    unit=strategies.units,
    options=strategies.normalisations,
    secret=st.sampled_from(SECRETS),
    max_cached=st.sampled_from([0, 300, 1000, 1 << 20]),
    least=st.floats(0.01, 1),
)
@example(["abcdefgh", "abcdefghé", "éabcdefgh", "abcdefgh" * 2], 8, "char", {}, WEAK, 1000, 0.01)
@example([b"\0\0", b"\0", b"\0\0\0\0\0\0\0\0\0"], 8, "byte", {}, WEAK, 0, 1.0)
@example(["\0", "\0\0", "\0 \0é", "é\0"], 1, "char", {}, WEAK, 0, 0.5)
def test_similarities_against_twin(texts, n, unit, options, secret, max_cached, least):
    shingles = Shingles(n, unit, **options)
    found = sets(texts, shingles, secret=secret, max_cached=max_cached)
    expected = expected_pairs(texts, shingles)
    for threshold in (0.0, least, 0.0, least):
        assert all_pairs(found, len(texts), threshold) == [value if value >= threshold else 0.0 for value in expected]


def words_like(draw: random.Random, count: int) -> bytes:
    return b" ".join(b"w%d" % draw.randrange(count) for _ in range(count))


@pytest.mark.few(1)
@pytest.mark.parametrize("secret", SECRETS[::4])
@pytest.mark.parametrize(("n", "unit"), [(3, "byte"), (1, "word"), (8, "char"), (12, "byte"), (5, "char"), (3, "word")])
def test_large_texts_are_compared_in_parts(n, unit, secret):
    """Small and large texts in one batch, each in as many parts as needed, with and without a cache."""
    draw = random.Random(n)
    long = words_like(draw, 6000)
    beyond_ascii = (long[:9000].decode() + "é" + long[9000:18_000].decode()).encode()
    texts = [long, long[:20_000], long[9000:], long[:500], b"", beyond_ascii, b"x", long[::-1], b"w1 w2 w3 " * 3000]
    shingles = Shingles(n, unit)
    expected = expected_pairs(texts, shingles)
    for max_cached in (0, 40_000, 1 << 24):
        found = sets(texts, shingles, max_shingles=1024, max_cached=max_cached, secret=secret)
        assert all_pairs(found, len(texts)) == expected
        assert all_pairs(found, len(texts), 0.4) == [value if value >= 0.4 else 0.0 for value in expected]
    for most in (1024, 1 << 20):
        found = sets(texts, shingles, max_shingles=most, secret=secret)
        assert found.matrix(len(texts), 0).ravel().tolist() == expected
        assert found.matrix(4, 1).ravel().tolist() == numpy.reshape(expected, (len(texts), -1))[:4, 1:].ravel().tolist()


@pytest.mark.few(2)
@pytest.mark.parametrize("shingles", [Shingles(4), Shingles(2, "word"), Shingles(11, "byte"), Shingles(7, "byte")])
def test_a_cache_of_any_size_changes_nothing(shingles):
    """Texts are requested in an order that evicts the oldest ones at every position of the rings."""
    draw = random.Random(5)
    texts = [words_like(draw, draw.randrange(1, 60)) for _ in range(40)]
    chosen = [draw.randrange(40) for _ in range(250)]
    asked = [(i, draw.randrange(40)) for i in chosen for _ in range(12)]
    expected = similarities(sets(texts, shingles), asked)
    for max_cached in (0, 100, 999, 3000, 10_007, 50_000):
        found = sets(texts, shingles, max_cached=max_cached)
        for least in (0.0, 0.1, 0.2):
            assert similarities(found, asked, least) == [value if value >= least else 0.0 for value in expected]


@pytest.mark.few(2)
@pytest.mark.parametrize(("n", "unit"), [(5, "byte"), (5, "char"), (12, "byte"), (2, "word")])
def test_every_threshold_of_texts_from_a_template(n, unit):
    """Texts of many sizes, each compared with all others: most are pruned by their bitmaps, whose sizes differ."""
    draw = random.Random(n)
    parts = [words_like(draw, 8) for _ in range(40)]
    texts = []
    for i in range(24):
        kept = [
            words_like(draw, 8) if draw.random() < 0.1 * (i % 4) else part for part in parts[: 1 + draw.randrange(40)]
        ]
        texts.append(b" ".join(kept))
    shingles = Shingles(n, unit)
    found, expected = sets(texts, shingles), expected_pairs(texts, shingles)
    for value in [0.0, *sorted(set(expected))[::9]]:
        for least in (value, math.nextafter(value, 2)):
            assert all_pairs(found, len(texts), least) == [x if x >= least else 0.0 for x in expected]


def test_a_token_of_zero_is_a_shingle_like_others():
    """The token of a short shingle is 0 if the shingle equals the first word of the secret."""
    texts = ["abcdefgh", "xabcdefghx", "abcdefgé", "zzzzzzzzz", "aabcdefgh"]
    for n, unit in ((8, "byte"), (8, "char"), (3, "char"), (1, "word")):
        shingles = Shingles(n, unit)
        first = reference.as_bytes("abcdefgh")[: 8 if unit == "word" else n]
        secret = first.ljust(8, b"\0") + b"\x07" * 112 + b"\xff" * 8
        found, expected = sets(texts, shingles, secret=secret), expected_pairs(texts, shingles)
        for least in (0.0, 0.1, 0.3):
            assert all_pairs(found, len(texts), least) == [value if value >= least else 0.0 for value in expected]


@pytest.mark.parametrize(("n", "least"), [(2, 0), (5, 0), (9, 0), (8, 252)])
def test_buckets_overflow(n, least):
    """Tokens of short shingles of low bytes fill the first buckets and the next ones, those of high bytes the last."""
    draw = random.Random(2)
    texts = [bytes(draw.choices(range(least, 256), k=size)) for size in (300, 700, 1500)]
    texts += [texts[2][400:] + texts[0], texts[1] * 2]
    shingles = Shingles(n, "byte")
    assert all_pairs(sets(texts, shingles, secret=WEAK), len(texts)) == expected_pairs(texts, shingles)


@strategies.examples(100)
@given(
    texts=st.lists(strategies.alike(), max_size=8).map(lambda pairs: [text for pair in pairs for text in pair]),
    n=strategies.shingle_sizes,
    unit=strategies.units,
    options=strategies.normalisations,
    secret=st.sampled_from(SECRETS),
    rows=st.integers(0, 16),
    first=st.integers(0, 16),
)
@example(["\0", "\0\0", "\0 \0é", "é\0"] * 4, 1, "char", {}, WEAK, 16, 0)
@example(["abcdefghij", "xabcdefghijx", "é", ""] * 4, 9, "byte", {}, WEAK, 5, 7)
def test_matrix_against_twin(texts, n, unit, options, secret, rows, first):
    """With 1,024 shingles in memory, an index has 8 texts at most."""
    shingles = Shingles(n, unit, **options)
    rows, first, count = min(rows, len(texts)), min(first, len(texts)), len(texts)
    expected = numpy.reshape(expected_pairs(texts, shingles), (count, count))
    found = sets(texts, shingles, secret=secret, max_shingles=1024)
    assert numpy.array_equal(found.matrix(rows, first), expected[:rows, first:])
    assert numpy.array_equal(found.matrix(count, 0), expected)


@pytest.mark.few(3)
@pytest.mark.parametrize("n", [5, 9])
@pytest.mark.parametrize("size", [1, 255, 256, 257, 511, 512, 513, 1024, 1025])
def test_a_matrix_is_the_same_in_blocks_of_any_size(size, n):
    """An index ends at 8 texts, 1,024 distinct shingles or 2,048 with repeats; a larger text has one of its own."""
    draw = random.Random(size)
    texts = [draw.randbytes(size + n - 1) for _ in range(5)]
    texts = [texts[i % 5] if i % 3 else draw.randbytes(n - 1) + texts[i % 5][n - 1 :] for i in range(17)]
    shingles = Shingles(n, "byte")
    expected = numpy.reshape(expected_pairs(texts, shingles), (17, 17))
    for count in (7, 8, 9, 16, 17):
        few = expected[:count, :count]
        for max_cached in (0, 1 << 20):
            found = sets(texts[:count], shingles, max_shingles=1024, max_cached=max_cached)
            for rows, first in ((count, 0), (3, 1), (count, 2), (count, count - 1), (1, 0)):
                assert numpy.array_equal(found.matrix(rows, first), few[:rows, first:])


def test_keys_of_contents_against_twin():
    assert reference.siphash(bytes(range(15)), 0x0706050403020100, 0x0F0E0D0C0B0A0908, 2, 4) == 0xA129CA6149BE45E5
    texts = [random.Random(n).randbytes(n) for n in [*range(66), *range(500, 550), *range(1010, 1060)]]
    content_keys(Batch(texts), texts[16], keys := numpy.empty(len(texts), numpy.uint64))
    assert keys.tolist() == [reference.content_key(text, texts[16]) for text in texts]
