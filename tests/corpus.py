"""Texts and parameters that exercise every part of the kernels, and the checksums of the results.

Run as a script, it prints a JSON object: the level in use, and a checksum for each part of the work. The environment
variable LSH_SIMD chooses the level; test_levels runs the script once per level and compares. All data is drawn by fixed
generators. Only the words depend on Unicode tables, and every version of Unicode has their letters.
"""

import hashlib
import json
import random
from collections.abc import Iterator

import lsh
from lsh import MinHasher, Shingles
from lsh.passages.repeats import passage_keys
from lsh.text.batch import Batch

KINDS = ("murmur3_32", "murmur3_64", "fss")
UNITS = ("byte", "char", "word")
LETTERS = "eeeeetttaaooiinnsshhrrdlu  ,.\n\0Zé漢\U0001f600\ud800"
# Shingles of 4 to 16 bytes whose second hash word under seed 42 ends its range; see test_fss.
ENDS = ["73f2352965", "d9b12f3c65", "574b78fd65666768", "a7e43b9b65666768696a6b6c", "a2c23cac4ca314675adac824265b1056"]


def make_hasher(kind: str, k: int, seed: int, shingles: Shingles) -> MinHasher:
    if kind == "fss":
        return MinHasher(k, scheme="fss", random_state=seed, shingles=shingles)
    return MinHasher(k, random_state=seed, hashbytes=int(kind[-2:]) // 8, shingles=shingles)


def make_text(draw: random.Random, length: int) -> bytes:
    """About `length` bytes: text-like, random, repetitive, or with new shingles only at the end."""
    kind = draw.randrange(5)
    if kind <= 1:
        return "".join(draw.choices(LETTERS, k=length)).encode("utf-8", "surrogatepass")[:length]
    if kind == 2:
        return draw.randbytes(length)
    period = draw.randbytes(draw.choice([1, 2, 7, 40]))
    tail = min(length, 30) if kind == 4 else 0
    return (period * (length // len(period) + 1))[: length - tail] + draw.randbytes(tail)


def short(draw: random.Random) -> Iterator[tuple[list[bytes], int, int, str]]:
    """Every length up to 64, every n up to 20, and each k up to 300 or near a multiple of the vector size."""
    for n in range(1, 21):
        texts = [make_text(draw, length) for length in range(65)]
        yield texts, n, draw.randint(1, 300), draw.choice(UNITS)
        yield texts, n, draw.choice([1, 2, 3, 15, 16, 17, 48, 64, 100, 128]), "byte"


def long(draw: random.Random) -> Iterator[tuple[list[bytes], int, int, str]]:
    """Texts longer than a tile, than the joins of tables, and than the buffer of stored hashes."""
    for n in (1, 3, 4, 5, 7, 8, 9, 12, 15, 16, 20):
        texts = [make_text(draw, draw.choice([300, 511, 512, 2047, 2060, 4096, 4111, 5000])) for _ in range(4)]
        yield texts, n, draw.randint(1, 300), "byte"
        yield [make_text(draw, 1500)], n, draw.randint(1, 130), draw.choice(UNITS)
    for _ in range(8):
        yield [make_text(draw, draw.randint(9000, 20_000))], draw.randint(1, 15), draw.randint(1, 140), "byte"


def extreme(draw: random.Random) -> Iterator[tuple[list[bytes], int, int, str]]:
    """Shingles longer than most texts, the maximum number of components, and hashes at the limits of their range."""
    for n in (100, 5000, 10_000):
        texts = [make_text(draw, length) for length in (n - 1, n, n + 1, n + 5, 40)]
        yield texts, n, draw.randint(1, 20), "byte"
        yield texts[:3], n, 3, "char"
        yield texts[:3], n, 5, "word"
    yield [make_text(draw, 90), b"x"], 5, 4096, "byte"
    for end in map(bytes.fromhex, ENDS):
        yield [end, end * 40], len(end), 20, "byte"


def long_sketches(draw: random.Random) -> Iterator[tuple[list[bytes], int, int, str]]:
    """Work that would take too long with the other schemes."""
    for n in (2, 5, 8, 13):
        for k in (1, 2, 100, 300, 4096):
            yield [make_text(draw, draw.randint(4000, 20_000)) for _ in range(3)], n, k, "byte"
            yield [make_text(draw, 6000)], n, k, draw.choice(UNITS)


def checksum(kind: str, cases: Iterator[tuple[list[bytes], int, int, str]]) -> str:
    total = hashlib.sha256()
    for texts, n, k, unit in cases:
        hasher = make_hasher(kind, k, 42, Shingles(n, unit))
        rows = hasher.fingerprints(texts)
        total.update(rows.astype(rows.dtype.newbyteorder("<")).tobytes())
        total.update(hasher.similarities(rows).astype("<f8").tobytes())
    return total.hexdigest()


def checksums() -> dict[str, str]:
    found = {
        f"{kind}, {portion.__name__}": checksum(kind, portion(random.Random(portion.__name__)))
        for kind in KINDS
        for portion in (short, long, extreme)
    }
    texts = [text for cases in (short, long) for own, *_ in cases(random.Random("anchors")) for text in own]
    anchors = hashlib.sha256()
    for window in (8, 30, 200):
        keys, counts = passage_keys(Batch(texts), window, bytes(range(16)))
        anchors.update(keys.astype("<u8").tobytes() + counts.astype("<i8").tobytes())
    found["anchors"] = anchors.hexdigest()
    found["fss, long_sketches"] = checksum("fss", long_sketches(random.Random(0)))
    return found


if __name__ == "__main__":
    print(json.dumps({"level": lsh.simd_level(), **checksums()}))
