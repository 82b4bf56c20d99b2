"""MurmurHash3 in its three forms: published vectors, and the slow reference code.

The verification values are the strictest vectors: one number covers 256 lengths and seeds. They and
the algorithm are Austin Appleby's (SMHasher, github.com/aappleby/smhasher, ``src/main.cpp``).
"""

import random
import struct

import numpy
import pytest
import reference

from lsh._minhash import murmur3_x64_128, murmur3_x86_32, murmur3_x86_128

HASHES = {"x86_32": murmur3_x86_32, "x86_128": murmur3_x86_128, "x64_128": murmur3_x64_128}
SEEDS = [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x9747B28C]


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


@pytest.mark.parametrize("form", HASHES)
def test_every_length_against_twin(form):
    """Also in memory of every alignment: the address of the first byte is a multiple of 64."""
    twin = getattr(reference, f"murmur3_{form}")
    random_bytes = numpy.frombuffer(bytearray(random.Random(320).randbytes(384)), dtype=numpy.uint8)
    room = memoryview(random_bytes)[-random_bytes.ctypes.data % 64 :][:320]
    for length in range(300):
        seed, view = SEEDS[length % len(SEEDS)], room[length % 16 :][:length]
        value = HASHES[form](view, seed)
        assert value == twin(bytes(view), seed)
        assert all(type(part) is int for part in (value if isinstance(value, tuple) else (value,)))
    for kind in (bytearray, memoryview, lambda data: numpy.frombuffer(data, numpy.uint8)):
        assert HASHES[form](kind(room), 7) == twin(bytes(room), 7)
