"""MurmurHash3 in its three forms: published vectors, the mmh3 package, and the slow reference code.

The verification values are the strictest vectors: one number covers 256 lengths and seeds. They and
the algorithm are Austin Appleby's (SMHasher, github.com/aappleby/smhasher, ``src/main.cpp``).
"""

from __future__ import annotations

import random
import struct

import numpy
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from lsh._minhash import murmur3_x64_128, murmur3_x86_32, murmur3_x86_128

HASHES = {"x86_32": murmur3_x86_32, "x86_128": murmur3_x86_128, "x64_128": murmur3_x64_128}
TWINS = {
    "x86_32": reference.murmur3_x86_32,
    "x86_128": reference.murmur3_x86_128,
    "x64_128": reference.murmur3_x64_128,
}
SEEDS = [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x9747B28C]
seeds = st.integers(0, 2**32 - 1)


def digest(form: str, data: bytes | memoryview, seed: int) -> bytes:
    """The hash as the bytes that the published code writes on a little-endian machine."""
    value = HASHES[form](data, seed)
    if form == "x86_32":
        return struct.pack("<I", value)
    return struct.pack("<4I" if form == "x86_128" else "<2Q", *value)


# SMHasher's main.cpp, column "verification" of its table of hashes.
@pytest.mark.parametrize(
    ("form", "expected"), [("x86_32", 0xB0F57EE3), ("x86_128", 0xB3ECE62A), ("x64_128", 0x6384BA69)]
)
def test_smhasher_verification_value(form, expected):
    """Hash the bytes 0 .. i-1 with seed 256 - i for i = 0 .. 255, and then all these hashes with seed 0."""
    hashes = b"".join(digest(form, bytes(range(i)), 256 - i) for i in range(256))
    assert digest(form, hashes, 0)[:4] == struct.pack("<I", expected)


# The test vectors of the article "MurmurHash" of the English Wikipedia.
@pytest.mark.parametrize(
    ("data", "seed", "expected"),
    [
        (b"", 0x00000000, 0x00000000),
        (b"", 0x00000001, 0x514E28B7),
        (b"", 0xFFFFFFFF, 0x81F16F39),
        (b"test", 0x00000000, 0xBA6BD213),
        (b"test", 0x9747B28C, 0x704B81DC),
        (b"Hello, world!", 0x00000000, 0xC0363E43),
        (b"Hello, world!", 0x9747B28C, 0x24884CBA),
        (b"The quick brown fox jumps over the lazy dog", 0x00000000, 0x2E4FF723),
        (b"The quick brown fox jumps over the lazy dog", 0x9747B28C, 0x2FA826CD),
    ],
)
def test_x86_32_published(data, seed, expected):
    assert murmur3_x86_32(data, seed) == expected


# Guava's Murmur3Hash128Test (github.com/google/guava), "known values": lazy dog and lazy cog, seed 0.
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"The quick brown fox jumps over the lazy dog", (0xE34BBC7BBC071B6C, 0x7A433CA9C49A9347)),
        (b"The quick brown fox jumps over the lazy cog", (0x658CA970FF85269A, 0x43FEE3EAA68E5C3E)),
    ],
)
def test_x64_128_published(data, expected):
    assert murmur3_x64_128(data, 0) == expected


def test_upstream_first_half(upstream_vectors):
    """One shingle, hashes below upstream's cap: mattilyra/LSH stored the first half of x64_128 unchanged."""
    checked = 0
    for case in upstream_vectors["cases"]:
        data = bytes.fromhex(case["text_hex"])
        if len(data) != case["char_ngram"]:
            continue
        for seed, value in zip(upstream_vectors["seeds"], case["fingerprint_8"], strict=True):
            if value != "7fffffffffffffff":
                assert murmur3_x64_128(data, seed)[0] == int(value, 16)
                checked += 1
    assert checked > 100


def aligned(size: int) -> memoryview:
    """Random bytes in memory whose address is a multiple of 64."""
    room = numpy.frombuffer(bytearray(random.Random(size).randbytes(size + 64)), dtype=numpy.uint8)
    start = -room.ctypes.data % 64
    return memoryview(room)[start : start + size]


@pytest.mark.parametrize("alignment", range(16))
def test_mmh3_at_every_length_and_alignment(alignment):
    mmh3 = pytest.importorskip("mmh3")
    room = aligned(16 + 64)
    for length in range(65):
        view = room[alignment : alignment + length]
        data = bytes(view)
        for seed in SEEDS:
            assert murmur3_x86_32(view, seed) == mmh3.hash(data, seed, signed=False)
            assert digest("x86_128", view, seed) == mmh3.hash128(data, seed, x64arch=False).to_bytes(16, "little")
            assert digest("x64_128", view, seed) == mmh3.hash128(data, seed, x64arch=True).to_bytes(16, "little")


@pytest.mark.parametrize("form", HASHES)
def test_every_length_against_twin(form):
    room = bytes(aligned(300))
    for length in range(300):
        seed = SEEDS[length % len(SEEDS)]
        assert HASHES[form](room[:length], seed) == TWINS[form](room[:length], seed)


@pytest.mark.parametrize("form", HASHES)
@given(data=st.binary(max_size=200), seed=seeds)
def test_against_twin(form, data, seed):
    assert HASHES[form](data, seed) == TWINS[form](data, seed)


@pytest.mark.parametrize("form", HASHES)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda b: numpy.frombuffer(b, numpy.uint8)])
def test_any_contiguous_buffer(form, kind):
    data = b"one buffer or another, \x00 included"
    assert HASHES[form](kind(data), 7) == TWINS[form](data, 7)


@pytest.mark.parametrize("form", HASHES)
def test_results_are_python_ints(form):
    value = HASHES[form](b"abc", 1)
    parts = (value,) if form == "x86_32" else value
    assert len(parts) == {"x86_32": 1, "x86_128": 4, "x64_128": 2}[form]
    assert all(type(part) is int for part in parts)


@pytest.mark.parametrize("form", HASHES)
@pytest.mark.parametrize("data", ["a str", None, 5, [1, 2]])
def test_data_must_be_bytes_like(form, data):
    with pytest.raises(TypeError):
        HASHES[form](data, 0)


@pytest.mark.parametrize("form", HASHES)
@pytest.mark.parametrize("seed", [-1, 2**32, 2**64])
def test_seed_must_be_uint32(form, seed):
    with pytest.raises((ValueError, OverflowError)):
        HASHES[form](b"abc", seed)


@pytest.mark.parametrize("form", HASHES)
def test_scattered_memory_is_refused(form):
    with pytest.raises((BufferError, ValueError)):
        HASHES[form](memoryview(b"abcdef")[::2], 0)
