"""MinHasher: fingerprints equal to the reference's and to upstream's, and functions of fingerprints.

The bits are compared with reference.py, those of "murmur3" also with vectors of a build of mattilyra/LSH. test_fss.py
has what only the scheme "fss" has; test_values.py tests that a hasher is a value.
"""

import array
import collections
import random
import sys
import unicodedata

import numpy
import pytest
import reference
import strategies
from corpus import KINDS, make_hasher
from hypothesis import given
from hypothesis import strategies as st

from lsh import MinHasher, Shingles

HASHBYTES = {"murmur3_32": 4, "murmur3_64": 8, "fss": None}
seed_lists = st.lists(st.sampled_from([0, 1, 2**32 - 1]) | st.integers(0, 2**32 - 1), min_size=1, max_size=6)
component_counts = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 63, 64, 65, 100, 128]) | st.integers(1, 300)
both_sizes = pytest.mark.parametrize("hashbytes", [4, 8])
every_kind = pytest.mark.parametrize("kind", KINDS)


def made(kind: str, k: int, n: int = 3, unit: str = "byte") -> MinHasher:
    return make_hasher(kind, k, 0, Shingles(n, unit))


# Fingerprints.


def twin(kind: str, text: str | bytes, seeds: list[int], k: int, **shingling) -> list[int]:
    """The fingerprint by reference.py; murmur3 has a component for each seed, fss has k of the first seed."""
    return reference.sketch(text, (k, seeds[0]) if kind == "fss" else seeds, HASHBYTES[kind], **shingling)


def of_seeds(kind: str, seeds: list[int], k: int, shingles: Shingles) -> MinHasher:
    if kind == "fss":
        return MinHasher(k, scheme="fss", random_state=seeds[0], shingles=shingles)
    return MinHasher(seeds, hashbytes=HASHBYTES[kind], shingles=shingles)


@strategies.examples(230)
@given(
    batch=st.lists(strategies.texts, max_size=8),
    n=strategies.shingle_sizes,
    unit=strategies.units,
    seeds=seed_lists,
    k=component_counts,
    kind=st.sampled_from(KINDS),
    options=strategies.normalisations,
)
def test_fingerprints_against_twin(batch, n, unit, seeds, k, kind, options):
    hasher = of_seeds(kind, seeds, k, Shingles(n, unit, **options))
    rows = hasher.fingerprints(batch)
    assert (rows.shape, rows.dtype) == ((len(batch), hasher.num_seeds), hasher.dtype)
    assert rows.tolist() == [twin(kind, text, seeds, k, n=n, unit=unit, **options) for text in batch]
    for text, row in zip(batch[:3], rows):
        assert numpy.array_equal(hasher.fingerprint(text), row)


@pytest.mark.few(6)
@every_kind
@pytest.mark.parametrize("n", [*range(1, 20), 31, 32, 33, 40, pytest.param(64, marks=pytest.mark.slow)])
def test_every_length_around_n(n, kind):
    """Random bytes of every length up to more than 2 n: each tail of the hash, and every end of the text."""
    data, seeds = random.Random(n).randbytes(200), [0, 2**32 - 1, 12345]
    texts = [data[start : start + length] for length in range(2 * n + 4) for start in (0, 1)]
    for unit, k in (("byte", 24), ("char", 7)):
        rows = of_seeds(kind, seeds, k, Shingles(n, unit)).fingerprints(texts)
        assert rows.tolist() == [twin(kind, text, seeds, k, n=n, unit=unit) for text in texts]


@both_sizes
def test_every_number_of_seeds(hashbytes):
    """Component i depends on seed i alone, whatever vector or remainder of the kernel computes it."""
    text = "She sells sea-shells, \x00 she does."
    seeds = random.Random(1).sample(range(2**32), 300)
    whole = reference.fingerprint(text, seeds, hashbytes=hashbytes, n=6, unit="byte")
    for k in range(1, 301):
        assert MinHasher(seeds[:k], 6, hashbytes=hashbytes).fingerprint(text).tolist() == whole[:k]
    hasher = MinHasher(seeds, 6, hashbytes=hashbytes)
    for long, short in (("a" * 10**6 + "b", "aaaaaab"), ("b" + "a" * 10**6, "baaaaaa")):  # each end of a text counts
        assert numpy.array_equal(hasher.fingerprint(long), hasher.fingerprint(short))


def test_upstream_vectors(upstream_vectors):
    """Each component equals upstream's, except where upstream's cap replaced the value."""
    seeds = upstream_vectors["seeds"]
    assert MinHasher(100).seed_values[:8].tolist() == upstream_vectors["random_state_0_first_8_of_100"]
    assert MinHasher(16, random_state=42).seed_values.tolist() == seeds
    checked = {4: 0, 8: 0}
    for case in upstream_vectors["cases"]:
        text, n = bytes.fromhex(case["text_hex"]), case["char_ngram"]
        capped = {4: 2**32 - 1, 8: 2**63 - 1}
        theirs = {4: case["fingerprint_4"], 8: [int(value, 16) for value in case["fingerprint_8"]]}
        for hashbytes in (4, 8):
            ours = MinHasher(len(seeds), n, random_state=42, hashbytes=hashbytes).fingerprint(text).tolist()
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


# Seeds and parameters.


def test_default_parameters():
    hasher = MinHasher(100)
    assert hasher.seeds == hasher.num_seeds == 100
    assert hasher.hashbytes == 8
    assert hasher.scheme == "murmur3"
    assert hasher.shingles == Shingles(8, "byte")
    assert hasher.seed_values.tolist() == reference.seed_values(100, 0)
    assert hasher == MinHasher(100, 8, 0, 8)
    assert MinHasher(100, char_ngram=5).char_ngram == 5
    fss = MinHasher(10, scheme="fss")
    assert (fss.seeds, fss.num_seeds, fss.scheme, fss.hashbytes, fss.random_state) == (10, 10, "fss", 4, 0)
    assert (fss.shingles, fss.seed_values.tolist()) == (Shingles(8, "byte"), [0])
    assert repr(fss) == "MinHasher(10, random_state=0, scheme='fss', shingles=Shingles(8, unit='byte'))"


def test_seeds_are_drawn_as_by_upstream():
    """5,000 draws from a million repeat about a dozen seeds, which are kept; 0 and 999,999 are drawn, too."""
    values = MinHasher(5000, random_state=3).seed_values
    assert values.tolist() == reference.seed_values(5000, 3)
    assert len(set(values.tolist())) < 5000
    assert values.dtype == numpy.uint32
    for random_state, place, seed in ((339, 16, 0), (4328, 162, 999_999)):
        values = MinHasher(200, random_state=random_state).seed_values.tolist()
        assert values == reference.seed_values(200, random_state)
        assert values[place] == seed


@every_kind
def test_results_are_read_only(kind):
    hasher = made(kind, 4)
    row = hasher.fingerprint("some text")
    chunks = [rows for _, rows in hasher.chunks(["a", "b"])]
    for result in (row, hasher.seed_values, hasher.empty, hasher.merge(row, row), hasher.fingerprints(["a"]), *chunks):
        with pytest.raises(ValueError, match="read-only"):
            result[0] = 0
    for shared in (hasher.seed_values, hasher.empty):
        with pytest.raises(ValueError, match="WRITEABLE"):
            shared.setflags(write=True)
    seeds = numpy.array([1, 2, 3], numpy.uint32)
    hasher = MinHasher(seeds)
    seeds[:] = 9
    assert hasher.seed_values.tolist() == [1, 2, 3]


def test_a_subclass_is_an_error():
    """The library would not call its methods, and pickle would lose its type."""
    message = "MinHasher cannot be subclassed, got the subclass Louder; let the class hold a MinHasher"
    with pytest.raises(TypeError, match=message):
        type("Louder", (MinHasher,), {})
    assert getattr(MinHasher, "__final__", sys.version_info < (3, 11))  # for type checkers


# Similarity, interval, union.


@given(draws=st.integers(0, 2**32 - 1), count=st.integers(0, 5), k=st.integers(1, 140), kind=st.sampled_from(KINDS))
def test_similarities_and_unions_against_twin(draws, count, k, kind):
    """Rows of few values, at the ends of their range and of the signed one, and rows of a text without shingles."""
    hasher, hashbytes, draw = made(kind, k), HASHBYTES[kind], numpy.random.RandomState(draws)
    top = numpy.iinfo(hasher.dtype).max
    values = numpy.array([0, 1, top // 2, top // 2 + 1, top], hasher.dtype)
    a, b = (values[draw.randint(0, 5, (count, k))] for _ in "ab")
    a[count // 2 : count // 2 + 1] = hasher.empty
    expected = [[reference.similarity(x, y, hashbytes) for y in b.tolist()] for x in a.tolist()]
    assert hasher.similarities(a, b).shape == hasher.similarities(a).shape == (count, count)
    assert hasher.similarities(a, b).tolist() == expected
    assert hasher.similarities(b, a).tolist() == [list(column) for column in zip(*expected)]
    assert hasher.similarities(a[::2], b[::-1]).tolist() == [line[::-1] for line in expected[::2]]
    assert hasher.similarities(a).tolist() == hasher.similarities(a, a).tolist()
    for x, y, similarity in zip(a, b, numpy.diagonal(expected) if count else ()):
        assert hasher.jaccard(x, y) == hasher.jaccard(y, x) == float(hasher.similarities(x, y)) == similarity
        assert hasher.merge(x, y).tolist() == reference.merge(x.tolist(), y.tolist(), hashbytes)


@every_kind
def test_empty_texts(kind):
    hasher, words = made(kind, 4), made(kind, 4, 1, "word")
    assert hasher.empty.tolist() == reference.empty(4, HASHBYTES[kind])
    assert hasher.empty.dtype == hasher.dtype
    for row in (hasher.fingerprint(""), hasher.fingerprint(b""), hasher.fingerprints([""])[0], words.fingerprint("!?")):
        assert numpy.array_equal(row, hasher.empty)
    assert numpy.array_equal(hasher.fingerprints([None], missing="empty")[0], hasher.empty)
    text = hasher.fingerprint("x")
    for a, b in ((hasher.empty, hasher.empty), (text, ""), ("", text), ("", "")):
        assert hasher.jaccard(a, b) == 0.0
        assert tuple(hasher.interval(a, b)) == (0.0, 0.0)
    half = hasher.empty.copy()
    half[:2] = 5  # of a text with shingles, two of whose components are the largest values
    rows = numpy.stack([hasher.empty, text, half])
    assert hasher.similarities(rows).tolist() == [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    assert hasher.is_empty(rows).tolist() == hasher.is_empty(rows.tolist()).tolist() == [True, False, False]
    assert hasher.is_empty(rows[0]).tolist() is True
    with pytest.raises(ValueError, match="components per fingerprint"):
        hasher.is_empty(rows[None])


@both_sizes
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
def test_interval_against_twin(confidence, hashbytes):
    hasher = MinHasher(64, 3, hashbytes=hashbytes)
    a = numpy.arange(64, dtype=hasher.dtype)
    for equal in (0, 1, 5, 32, 63, 64):
        b = a.copy()
        b[equal:] += 1000
        low, high = found = hasher.interval(a, b, confidence=confidence)
        assert found == pytest.approx(reference.wilson(equal, 64, confidence), abs=1e-9)
        assert 0 <= low <= equal / 64 + 1e-12
        assert equal / 64 - 1e-12 <= high <= 1
        if confidence == 0.95:
            assert hasher.interval(a, b) == found


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
    big = [*range(15), 2**64 - 1]
    assert hasher.jaccard(big, numpy.array(big, numpy.uint64)) == 1.0


# Bad input: the type of the error, and its message.


def test_what_has_no_order_is_no_fingerprint():
    """Two sets that agree in 99 of 100 components would be compared in the order of Python's hashes."""
    hasher = MinHasher(100, 3)
    row = hasher.fingerprint("a text of some length")
    of_set = "; a set does not keep the order of the components"
    for bad, why in ((set(row.tolist()), of_set), (dict.fromkeys(row.tolist()), ""), (iter(row.tolist()), "")):
        message = f"must be an array or a sequence in order, got {type(bad).__name__}{why}; pass the array that"
        for call in (hasher.jaccard, hasher.interval, hasher.merge):
            for arguments, name in (((bad, row), "a"), ((row, bad), "b"), (("a text", bad), "b")):
                with pytest.raises(TypeError, match=f"^{name} {message}"):
                    call(*arguments)
        for arguments, name in (((bad,), "A"), ((row, bad), "B"), ((row, [row, bad]), r"B\[1\]")):
            with pytest.raises(TypeError, match=f"^{name} {message}"):
                hasher.similarities(*arguments)


def test_the_unicode_version_of_a_stored_hasher():
    assert MinHasher(3).to_dict()["unicode"] is None
    values = MinHasher(3, shingles=Shingles(2, "word")).to_dict()
    assert values["unicode"] == unicodedata.unidata_version
    with pytest.warns(UserWarning, match=r"Unicode 1\.1"):
        assert MinHasher.from_dict({**values, "unicode": "1.1"}) == MinHasher.from_dict(values)
    for bad in (15, True, ["15.0.0"]):
        with pytest.raises(TypeError, match=f"^unicode must be a str or None, got {type(bad).__name__}$"):
            MinHasher.from_dict({**values, "unicode": bad})


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (["a text", ""], TypeError, r"must be .*fingerprints, got texts \(list of str\)"),
        (numpy.array(["a text"]), TypeError, r"must be .*fingerprints, got texts \(ndarray of str_\)"),
        ("a text", TypeError, "must be .*fingerprints, got str; compute them with fingerprints"),
        (numpy.zeros((2, 4), numpy.uint64), ValueError, r"must have 3 components per fingerprint, got shape \(2, 4\)"),
        (numpy.uint64(3), ValueError, r"must have 3 components per fingerprint, got shape \(\)"),
        (numpy.zeros((2, 3), numpy.uint32), TypeError, "must hold uint64 components, as this hasher makes, got uint32"),
        (numpy.zeros((2, 3)), TypeError, "must hold uint64 components, got float64"),
        ([[1, 2, 2**64]], ValueError, "must hold uint64 components, got values out of their range"),
        (None, TypeError, "must be .*fingerprints, got NoneType"),
    ],
)
def test_bad_fingerprints(rows, error, message):
    hasher = MinHasher(3)
    with pytest.raises(error, match=f"^fingerprints {message}"):
        hasher.is_empty(rows)
    with pytest.raises(error, match=f"^A {message}"):
        hasher.similarities(rows)


@every_kind
def test_a_bad_fingerprint_in_place_of_one(kind):
    hasher = made(kind, 4)
    row = hasher.fingerprint("some text")
    other = numpy.zeros(4, numpy.uint64 if hasher.dtype == numpy.uint32 else numpy.uint32)
    for call in (hasher.jaccard, hasher.interval, hasher.merge):
        for bad, error, message in (
            (row[:3], ValueError, r"must have 4 components per fingerprint, got shape \(3,\)"),
            (other, TypeError, f"must hold {hasher.dtype} components, as this hasher makes, got {other.dtype}"),
            (numpy.stack([row, row]), ValueError, "must be one text or fingerprint"),
        ):
            with pytest.raises(error, match=f"^b {message}"):
                call(row, bad)
            with pytest.raises(error, match=f"^a {message}"):
                call(bad, row)


def test_bad_confidence():
    for bad in (0, 1, -0.5, float("nan"), 0.9999999999999999):
        with pytest.raises(ValueError, match="confidence must be"):
            MinHasher(4).interval("a", "b", confidence=bad)
