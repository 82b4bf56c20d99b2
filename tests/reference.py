"""Slow, simple twins of the functions of the library, in plain Python.

Each function states a definition in the fewest words: MurmurHash3 as Austin Appleby published it, shingles
and MinHash after Broder (1997), banding after Indyk and Motwani (1998), the interval after Wilson (1927), the scheme
fss as docs/schemes.md defines it.
The module does not import the library. The tests compare the two, so a fault passes only if both have it.
numpy is used in `seed_values` only, which is defined by numpy's generator.
"""

import csv
import json
import math
import re
import struct
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import accumulate, groupby
from statistics import NormalDist
from typing import Any, Literal

import numpy

M32 = 2**32 - 1
M64 = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio, odd


# MurmurHash3. Integers are read little-endian; every product and sum wraps at 32 or 64 bits.


def rotl32(x: int, r: int) -> int:
    return (x << r | x >> (32 - r)) & M32


def rotl64(x: int, r: int) -> int:
    return (x << r | x >> (64 - r)) & M64


def fmix32(h: int) -> int:
    h = (h ^ h >> 16) * 0x85EBCA6B & M32
    h = (h ^ h >> 13) * 0xC2B2AE35 & M32
    return h ^ h >> 16


def fmix64(h: int) -> int:
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & M64
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & M64
    return h ^ h >> 33


def words(data: bytes, size: int) -> list[int]:
    """The integers of `size` bytes in `data`; its length is a multiple of `size`."""
    return [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]


def split(data: bytes, block: int) -> tuple[bytes, bytes]:
    """The whole blocks of `data`, and the remainder padded with zeros to one block."""
    whole = len(data) // block * block
    return data[:whole], data[whole:].ljust(block, b"\0")


def murmur3_x86_32(data: bytes, seed: int) -> int:
    """MurmurHash3_x86_32."""

    def scramble(k: int) -> int:
        return rotl32(k * 0xCC9E2D51 & M32, 15) * 0x1B873593 & M32

    body, tail = split(data, 4)
    h = seed
    for k in words(body, 4):
        h = (rotl32(h ^ scramble(k), 13) * 5 + 0xE6546B64) & M32
    h ^= scramble(words(tail, 4)[0])
    return fmix32(h ^ len(data))


def murmur3_x86_128(data: bytes, seed: int) -> tuple[int, int, int, int]:
    """MurmurHash3_x86_128 as four 32-bit integers."""
    c = [0x239B961B, 0xAB0E9789, 0x38B34AE5, 0xA1E38B93]
    spin = [15, 16, 17, 18]
    turn = [19, 17, 15, 13]
    add = [0x561CCD1B, 0x0BCAA747, 0x96CD1C35, 0x32AC3B17]

    def scramble(i: int, k: int) -> int:
        return rotl32(k * c[i] & M32, spin[i]) * c[(i + 1) % 4] & M32

    body, tail = split(data, 16)
    h = [seed] * 4
    for place, k in enumerate(words(body, 4)):
        i = place % 4
        h[i] = rotl32(h[i] ^ scramble(i, k), turn[i])
        h[i] = ((h[i] + h[(i + 1) % 4]) * 5 + add[i]) & M32
    h = [h[i] ^ scramble(i, k) ^ len(data) for i, k in enumerate(words(tail, 4))]

    def stir() -> None:
        h[0] = sum(h) & M32
        h[1:] = [(x + h[0]) & M32 for x in h[1:]]

    stir()
    h[:] = map(fmix32, h)
    stir()
    return h[0], h[1], h[2], h[3]


def murmur3_x64_128(data: bytes, seed: int) -> tuple[int, int]:
    """MurmurHash3_x64_128 as two 64-bit integers."""
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F

    def scramble1(k: int) -> int:
        return rotl64(k * c1 & M64, 31) * c2 & M64

    def scramble2(k: int) -> int:
        return rotl64(k * c2 & M64, 33) * c1 & M64

    body, tail = split(data, 16)
    h1 = h2 = seed
    blocks = words(body, 8)
    for k1, k2 in zip(blocks[::2], blocks[1::2]):
        h1 = ((rotl64(h1 ^ scramble1(k1), 27) + h2) * 5 + 0x52DCE729) & M64
        h2 = ((rotl64(h2 ^ scramble2(k2), 31) + h1) * 5 + 0x38495AB5) & M64
    k1, k2 = words(tail, 8)
    h1 ^= scramble1(k1) ^ len(data)
    h2 ^= scramble2(k2) ^ len(data)
    h1 = (h1 + h2) & M64
    h2 = (h2 + h1) & M64
    h1, h2 = fmix64(h1), fmix64(h2)
    h1 = (h1 + h2) & M64
    h2 = (h2 + h1) & M64
    return h1, h2


def siphash(data: bytes, k0: int, k1: int, rounds: int = 1, last_rounds: int = 3) -> int:
    """SipHash after Aumasson and Bernstein (2012): 2 and 4 rounds in its vectors, 1 and 3 in hash tables."""
    a, b, c, d = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573
    padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) % 256])

    def stir(times: int) -> None:
        nonlocal a, b, c, d
        for _ in range(times):
            a, c = (a + b) & M64, (c + d) & M64
            b, d = rotl64(b, 13) ^ a, rotl64(d, 16) ^ c
            a = rotl64(a, 32)
            a, c = (a + d) & M64, (c + b) & M64
            b, d = rotl64(b, 17) ^ c, rotl64(d, 21) ^ a
            c = rotl64(c, 32)

    for block in words(padded, 8):
        d ^= block
        stir(rounds)
        a ^= block
    c ^= 0xFF
    stir(last_rounds)
    return a ^ b ^ c ^ d


def content_key(text: bytes, secret: bytes) -> int:
    """NH of Black et al. (UMAC, 1999) for each 512 bytes, in a chain of SipHash; SipHash of fewer than 16 bytes."""
    key, found = words(secret, 8), len(text)
    if len(text) < 16:
        return siphash(text, *key)
    keys = [siphash(struct.pack("<Q", i), *key) for i in range(64)]
    for block in range(0, len(text), 512):
        units = [words(text[min(i, len(text) - 16) :][:16], 8) for i in range(block, min(block + 512, len(text)), 16)]
        total = sum(((a + k) & M64) * ((b + m) & M64) for (a, b), k, m in zip(units, keys[::2], keys[1::2]))
        found = siphash(struct.pack("<QQQ", found, total & M64, total >> 64 & M64), *key)
    return found


# Texts and shingles.


def as_bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)


def decode(data: bytes) -> str | None:
    """`data` as UTF-8 with surrogates, or None if it is not valid."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None


def characters(data: bytes) -> list[bytes]:
    """The characters from the left: each is a valid UTF-8 sequence or a single byte."""
    found = []
    start = 0
    while start < len(data):
        pieces = (data[start : start + length] for length in (1, 2, 3, 4))
        found.append(next((piece for piece in pieces if decode(piece) is not None), data[start : start + 1]))
        start += len(found[-1])
    return found


def segments(data: bytes) -> list[bytes]:
    """`data` cut into maximal runs of decodable and of undecodable characters."""
    runs = groupby([data] if decode(data) else characters(data), key=lambda c: decode(c) is None)
    return [b"".join(run) for _, run in runs]


def normalise(
    text: str | bytes,
    *,
    normalize: Literal["NFC", "NFKC"] | None = None,
    lowercase: bool = False,
    strip_punctuation: bool = False,
    collapse_whitespace: bool = False,
) -> bytes:
    """Normalise each decodable segment separately; keep undecodable bytes unchanged."""
    parts = []
    for segment in segments(as_bytes(text)):
        s = decode(segment)
        if s is None:
            parts.append(segment)
            continue
        if normalize is not None:
            s = unicodedata.normalize(normalize, s)
        if lowercase:
            s = s.lower()
        if strip_punctuation:
            s = "".join(c for c in s if not unicodedata.category(c).startswith("P"))
        if collapse_whitespace:
            s = re.sub(r"\s+", " ", s)
        parts.append(as_bytes(s))
    return b"".join(parts)


def shingles(text: str | bytes, n: int, unit: str, **normalisation: Any) -> list[bytes]:
    """The shingles in order, with repeats; a text of fewer than `n` units is one shingle."""
    data = normalise(text, **normalisation)
    if unit == "word":
        units = [as_bytes(w) for s in segments(data) for w in re.findall(r"\w+", decode(s) or "")]
        joint = b" "
    else:
        units = characters(data) if unit == "char" else [data[i : i + 1] for i in range(len(data))]
        joint = b""
    if not units:
        return []
    return [joint.join(units[i : i + n]) for i in range(max(1, len(units) - n + 1))]


def jaccard(a: str | bytes, b: str | bytes, n: int, unit: str, **normalisation: Any) -> float:
    """Size of the intersection divided by the size of the union; 0.0 if either set is empty."""
    x, y = (set(shingles(text, n, unit, **normalisation)) for text in (a, b))
    return len(x & y) / len(x | y) if x and y else 0.0


# Fingerprints of the scheme "murmur3".


def seed_values(count: int, random_state: int) -> list[int]:
    """The seeds for an integer `random_state`; repeats are possible."""
    return [int(seed) for seed in numpy.random.RandomState(random_state).randint(0, 10**6, count)]


def lower(a: int, b: int, hashbytes: int | None) -> int:
    """The smaller component: compared as int32 for 4 bytes, else as it is."""
    return min(a, b, key=lambda value: (value + 2**31) % 2**32) if hashbytes == 4 else min(a, b)


def empty(num_seeds: int, hashbytes: int | None) -> list[int]:
    """The fingerprint of a text without shingles: the largest value in each component."""
    return [{4: 0x7FFFFFFF, 8: M64, None: M32}[hashbytes]] * num_seeds


def merge(a: Sequence[int], b: Sequence[int], hashbytes: int | None) -> list[int]:
    """The fingerprint of the union of two shingle sets."""
    return [lower(x, y, hashbytes) for x, y in zip(a, b, strict=True)]


def fingerprint(
    text: str | bytes, seeds: Sequence[int], *, hashbytes: int, n: int, unit: str, **normalisation: Any
) -> list[int]:
    """Component i is the minimum over the shingles of MurmurHash3 with seed i."""
    row = empty(len(seeds), hashbytes)
    for shingle in set(shingles(text, n, unit, **normalisation)):
        if hashbytes == 4:
            hashes = [murmur3_x86_32(shingle, seed) for seed in seeds]
        else:
            hashes = [murmur3_x64_128(shingle, seed)[0] for seed in seeds]
        row = merge(row, hashes, hashbytes)
    return row


def similarity(a: Sequence[int], b: Sequence[int], hashbytes: int) -> float:
    """The fraction of equal components; 0.0 if a text had no shingles."""
    if empty(len(a), hashbytes) in (list(a), list(b)):
        return 0.0
    return sum(x == y for x, y in zip(a, b, strict=True)) / len(a)


def wilson(matches: int, trials: int, confidence: float) -> tuple[float, float]:
    """The Wilson score interval of a binomial proportion."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    p = matches / trials
    centre = p + z * z / (2 * trials)
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


# Sketches of the scheme "fss".


def splitmix64(start: int) -> Iterator[int]:
    """The generator of Steele, Lea and Flood (2014), started from the state `start`."""
    state = start
    while True:
        state = (state + GOLDEN) & M64
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & M64
        z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
        yield z ^ z >> 31


def fss_bits(k: int) -> int:
    """Bits of a rank: enough to number k components, and at least one."""
    return max(1, (k - 1).bit_length())


@cache
def fss_ranks(k: int) -> tuple[int, ...]:
    """The fixed permutation of 0 .. 2**bits - 1: a Fisher-Yates shuffle from the top, driven by splitmix64."""
    s = list(range(2 ** fss_bits(k)))
    numbers = splitmix64(0)
    for j in range(len(s) - 1, 0, -1):
        other = (next(numbers) >> 32) * (j + 1) >> 32
        s[j], s[other] = s[other], s[j]
    return tuple(s)


def fss_shingles(text: str | bytes, seed: int, n: int, unit: str, **normalisation: Any) -> list[bytes]:
    """The bytes that are hashed for each shingle: its own bytes, or, for words, the 8-byte hashes of its words."""
    if unit != "word":
        return shingles(text, n, unit, **normalisation)
    hashes = [struct.pack("<2I", *murmur3_x86_128(w, seed)[:2]) for w in shingles(text, 1, "word", **normalisation)]
    return [b"".join(hashes[i : i + n]) for i in range(max(1, len(hashes) - n + 1))] if hashes else []


def fss_values(h1: int, h2: int, k: int) -> list[int]:
    """The value that one shingle with these hashes gives to each of the k components."""
    bits, ranks = fss_bits(k), fss_ranks(k)
    factor = (h2 | 1) << (32 - bits)
    offers = [(factor * ranks[j] + rotl32(h1, 16) & M32) >> 1 | 2**31 for j in range(k)]
    if h2 != M32:
        offers[(h1 >> 16) * k >> 16] = h2 >> 1
    return offers


def fss(text: str | bytes, num_seeds: int, seed: int, *, n: int, unit: str, **normalisation: Any) -> list[int]:
    """Component i is the minimum of the values of all shingles; without shingles, the largest value."""
    row = [M32] * num_seeds
    for shingle in set(fss_shingles(text, seed, n, unit, **normalisation)):
        row = merge(row, fss_values(*murmur3_x86_128(shingle, seed)[:2], num_seeds), None)
    return row


def sketch(text: str | bytes, seeds: Sequence[int], hashbytes: int | None, **shingling: Any) -> list[int]:
    """The fingerprint of either scheme: fss with (num_seeds, seed) if hashbytes is None, else murmur3."""
    if hashbytes is None:
        return fss(text, *seeds, **shingling)
    return fingerprint(text, seeds, hashbytes=hashbytes, **shingling)


# Bands and pairs.


def band_keys(fingerprint: Sequence[int], widths: Sequence[int]) -> list[int]:
    """One 64-bit key per band; bands are adjacent and begin at component 0."""
    keys = []
    start = 0
    for band, width in enumerate(widths):
        total = fmix64((band + 1) * GOLDEN & M64)
        for c in range(start, start + width):
            total += fmix64(fingerprint[c] ^ ((c + 1) * GOLDEN & M64))
        keys.append(fmix64(total & M64))
        start += width
    return keys


def buckets(fingerprint: Sequence[int], widths: Sequence[int], hashbytes: int | None) -> list[tuple[int, int]]:
    """The (band, key) buckets of a document; a document without shingles has none."""
    if list(fingerprint) == empty(len(fingerprint), hashbytes):
        return []
    return list(enumerate(band_keys(fingerprint, widths)))


def link(keys: Sequence[int], order: Sequence[int], entered: int) -> list[int]:
    """For each document, the latest earlier one in `order` with its key, among the first `entered`; -1 for none."""
    links = [-1] * len(keys)
    latest: dict[int, int] = {}
    for place, document in enumerate(order):
        links[document] = latest.get(keys[document], -1)
        if place < entered:
            latest[keys[document]] = document
    return links


def components(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """For each of `count` documents, the smallest document connected with it, found by breadth-first search."""
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for i, j in pairs:
        neighbours[i].append(j)
        neighbours[j].append(i)
    labels = [-1] * count
    for root in range(count):
        reached = [root] if labels[root] < 0 else []
        while reached:
            for i in reached:
                labels[i] = root
            reached = list({j for i in reached for j in neighbours[i] if labels[j] < 0})
    return labels


def candidate_pairs(
    fingerprints: Sequence[Sequence[int]], widths: Sequence[int], hashbytes: int | None
) -> set[tuple[int, int]]:
    """Every (i, j), i < j, that shares a bucket in at least one band."""
    places = [set(buckets(row, widths, hashbytes)) for row in fingerprints]
    return {(i, j) for j in range(len(places)) for i in range(j) if places[i] & places[j]}


# The filter of candidates, and the similarity of a pair.


def min_equal(num_seeds: int, threshold: float, loss: float) -> int:
    """The largest number of equal low bytes that at most `loss` of the pairs at the threshold do not reach."""
    return max(equal for equal in range(num_seeds + 1) if fewer_equal(num_seeds, equal, threshold) <= loss)


class Similarity:
    """The similarity of a pair of texts; None if the filter rejects it; `verify` as for deduplicate."""

    def __init__(
        self,
        texts: Sequence[str | bytes],
        rows: Sequence[Sequence[int]],
        threshold: float,
        verify: str | None,
        loss: float,
        n: int,
        unit: str,
        **normalisation: Any,
    ) -> None:
        self.sets = [set(shingles(text, n, unit, **normalisation)) for text in texts]
        self.rows, self.verify = rows, verify
        self.min_equal = min_equal(len(rows[0]), threshold, loss) if rows and loss and verify else 0
        while verify == "sketch" and self.min_equal and (self.min_equal - 1) / len(rows[0]) >= threshold:
            self.min_equal -= 1

    def exact(self, i: int, j: int) -> float:
        if self.verify != "exact":
            return sum(x == y for x, y in zip(self.rows[i], self.rows[j])) / len(self.rows[i])
        return len(self.sets[i] & self.sets[j]) / len(self.sets[i] | self.sets[j])

    def __call__(self, i: int, j: int) -> float | None:
        if self.min_equal:
            known = 256 if self.verify == "exact" else 2**64
            if sum(x % known == y % known for x, y in zip(self.rows[i], self.rows[j])) < self.min_equal:
                return None
        return self.exact(i, j)


def low_bits(sketch: Sequence[int], bits: int) -> list[int]:
    """The low bits of each component."""
    return [value % 2**bits for value in sketch]


def differing(a: Sequence[int], b: Sequence[int]) -> int:
    """How many components differ."""
    return sum(x != y for x, y in zip(a, b))


def join(groups: list[list[int]], is_similar: Callable[[int], bool], limit: int) -> tuple[list[int] | None, int]:
    """Merge the groups that a document is similar to into the earliest; return it, and what the limit left out.

    The first members of all groups are looked at first, and then the others of those that are not merged.
    """
    left, joined, i, left_out = limit, None, 0, 0
    while i < len(groups) and left:
        left -= 1
        if not is_similar(groups[i][0]):
            i += 1
        elif joined is None:
            joined, i = i, i + 1
        else:
            groups[joined] += groups.pop(i)
    left_out, seen, i = len(groups) - i, i, 0
    while i < seen:
        others = groups[i][1:] if i != joined else []
        looked_at = others[:left]
        place = next((place for place, j in enumerate(looked_at) if is_similar(j)), None)
        left -= len(looked_at) if place is None else place + 1
        if place is None:
            left_out += len(others) > len(looked_at)
            i += 1
        elif joined is None:
            joined, i = i, i + 1
        else:
            first, last = sorted((i, joined))
            groups[first] += groups.pop(last)
            seen, i = seen - 1, i + (i < joined)
            joined = first
    return None if joined is None else groups[joined], left_out


def keep_similar(
    links: Sequence[int],
    rows: Sequence[Sequence[int]],
    most: int | None,
    num_references: int,
    entered: int,
    limit: int,
) -> tuple[list[int], int, int]:
    """Links within groups, the pairs that share a bucket, and for how many groups a comparison was left out.

    Pairs that differ in at most `most` places connect the documents of a bucket; all of them do if it is ``None``. Two
    documents are compared if the later one is not among the first `num_references`, and the earlier one among the first
    `entered`.
    """
    buckets: list[list[int]] = []
    bucket_of: list[list[int]] = []
    for i, previous in enumerate(links):
        bucket_of.append(bucket_of[previous] if previous >= 0 else [])
        if previous < 0:
            buckets.append(bucket_of[i])
        bucket_of[i].append(i)
    found, shared, left_out = [-1] * len(links), 0, 0
    for bucket in buckets:
        group_of = {i: {i} for i in bucket}
        compared: list[list[int]] = []  # the documents of each group that others are compared with
        for i in bucket:
            shared += sum(j < i and j < entered and i >= num_references for j in bucket)
            joined = None
            if i >= num_references and most is not None:
                joined, more = join(compared, lambda j, i=i: differing(rows[i], rows[j]) <= most, limit)
                left_out += more
            if joined is not None:
                together = {i}.union(*(group_of[j] for j in joined))
                group_of.update(dict.fromkeys(together, together))
            if i < entered and joined is None:
                compared.append([i])
            elif i < entered:
                joined.append(i)
        for i in bucket:
            together = set(bucket) if most is None else group_of[i]
            found[i] = max((j for j in together if j < i and j < entered), default=-1)
    return found, shared, left_out


def find_pairs(
    a: Sequence[str | bytes],
    b: Sequence[str | bytes] | None = None,
    *,
    threshold: float,
    widths: Sequence[int],
    seeds: Sequence[int],
    hashbytes: int | None,
    n: int,
    unit: str,
    verify: str | None = "exact",
    loss: float = 0.001,
    **normalisation: Any,
) -> list[tuple[int, int, float]]:
    """Every pair in a shared bucket that passes the filter and reaches `threshold`: (i, j, similarity), sorted."""
    texts = [*a, *(b or [])]
    rows = [sketch(t, seeds, hashbytes, n=n, unit=unit, **normalisation) for t in texts]
    worth = Similarity(texts, rows, threshold, verify, loss, n, unit, **normalisation)
    pairs = []
    for i, j in sorted(candidate_pairs(rows, widths, hashbytes)):
        similar = worth(i, j)
        if similar is None or (verify is not None and similar < threshold):
            continue
        if b is None:
            pairs.append((i, j, similar))
        elif i < len(a) <= j:
            pairs.append((i, j - len(a), similar))
    return pairs


# Planning. A shape (r, b, c) has b bands of r components and c bands of r + 1.


def shapes(components: int) -> Iterator[tuple[int, int, int]]:
    """Every shape that uses at most the given number of components."""
    for r in range(1, components + 1):
        for b in range(components // r + 1):
            for c in range((components - b * r) // (r + 1) + 1):
                if b + c:
                    yield r, b, c


def shape_misses(s: float, shape: tuple[int, int, int]) -> float:
    """The probability that a pair of similarity s shares no band."""
    r, b, c = shape
    return (1 - s**r) ** b * (1 - s ** (r + 1)) ** c


def even_cost(threshold: Fraction, shape: tuple[int, int, int]) -> Fraction:
    """The mean of the polynomial 1 - (1 - s^r)^b (1 - s^(r + 1))^c over s from 0 to the threshold, exactly."""
    r, b, c = shape
    mean = Fraction(0)
    for i in range(b + 1):
        for j in range(c + 1):
            power = r * i + (r + 1) * j
            mean += (-1) ** (i + j) * math.comb(b, i) * math.comb(c, j) * threshold**power / (power + 1)
    return 1 - mean


def cheapest_shapes(
    threshold: float, recall: float, components: int, filtered: bool, background: Sequence[float] | None = None
) -> list[tuple[float, int, tuple[int, int, int]]]:
    """Every shape that reaches the recall, as (cost, number of bands, shape), the cheapest first.

    The filter may lose a fifth of the allowed loss. A recall that is too low by a rounding error only is accepted.
    """
    loss = (1 - recall) / 5 if filtered else 0
    most_missed = 1 - recall / (1 - loss)
    found = []
    for shape in shapes(components):
        if shape_misses(threshold, shape) > most_missed * (1 + 1e-12):
            continue
        if background is None:
            cost = float(even_cost(Fraction(threshold), shape))
        else:
            cost = sum(1 - shape_misses(s, shape) for s in background if s < threshold) / len(background)
        found.append((cost, shape[1] + shape[2], shape))
    return sorted(found)


def fewer_equal(components: int, least: int, similarity: float) -> Fraction:
    """P(fewer than `least` of the given number of components agree in 8 bits), exactly."""
    p = Fraction(similarity) + (1 - Fraction(similarity)) / 256
    return sum((math.comb(components, j) * p**j * (1 - p) ** (components - j) for j in range(least)), start=Fraction(0))


# Deduplication.


@dataclass
class Deduplicated:
    """The kept documents; removed maps a document to (kept document, similarity, identical)."""

    kept: list[bool]
    removed: dict[int, tuple[int, float, bool]]
    capped: int
    near: list[tuple[int, int, float]]


def priority(texts: Sequence[str | bytes], keep: str | Sequence[float]) -> list[int]:
    """The positions in processing order."""
    rank: Sequence[float]
    if keep == "first":
        rank = [0] * len(texts)
    elif keep == "last":
        rank = range(len(texts))
    elif keep == "longest":
        rank = [len(as_bytes(text)) for text in texts]
    elif isinstance(keep, str):
        raise ValueError(keep)
    else:
        rank = keep
    return sorted(range(len(texts)), key=lambda i: (-rank[i], i))


def grouped(
    order: list[int],
    places: Sequence[Sequence[object]],
    rows: Sequence[Sequence[int]],
    bits: int,
    most: int,
    new: int,
    limit: int,
) -> tuple[list[list[object]], int]:
    """Divide the buckets into groups of similar sketches; return the new places and what the limit left out."""
    found: list[list[object]] = [[] for _ in places]
    sketches, left_out = [low_bits(rows[i], bits) for i in order], 0
    for band in range(len(places[order[0]]) if order else 0):
        before = link([places[i][band] for i in order], range(len(order)), len(order))
        num_references = sum(i >= new for i in order)
        links, _, more = keep_similar(before, sketches, most, num_references, len(order), limit)
        left_out += more
        group: list[int] = []
        for number, previous in enumerate(links):
            group.append(number if previous < 0 else group[previous])
            found[order[number]].append((band, group[number]))
    return found, left_out


def decide(
    order: list[int],
    places: Sequence[Sequence[object]],
    threshold: float,
    similarity: Similarity,
    limit: int,
    references: set[int],
    clusters: str,
    copied: set[int],
) -> tuple[Deduplicated, dict[int, list[tuple[int, float, bool]]]]:
    """Keep a document unless an earlier kept document in one of its buckets `places` is similar.

    With "components", keep the earliest document of each connected component of similar pairs. References are kept.
    Return also, for removed documents that are `copied`, more similar ones that are kept later, in order.
    """
    result = Deduplicated([], {}, 0, [])
    members: dict[object, list[int]] = defaultdict(list)  # the documents of each bucket that later ones may meet
    when = {i: time for time, i in enumerate(order)}
    pairs = []
    for i in order:
        met = set()
        for place in places[i] if i not in references else ():
            met.update(members[place][:limit])
            result.capped += max(0, len(members[place]) - limit)
        values = {j: value for j in met if (value := similarity(i, j)) is not None}
        result.near += [(i, j, value) for j, value in values.items() if value < threshold]
        similar = [j for j in values if values[j] >= threshold]
        pairs += [(when[i], when[j]) for j in similar]
        if similar and clusters == "representative":
            witness = min(similar, key=lambda j: (-values[j], when[j]))
            result.removed[i] = witness, values[witness], False
        else:
            for place in places[i]:
                members[place].append(i)
    for i, time in zip(order, components(len(order), pairs)) if clusters == "components" else ():
        if order[time] != i and i not in references:
            result.removed[i] = order[time], similarity.exact(i, order[time]), False
    better: dict[int, list[tuple[int, float, bool]]] = {i: [row] for i, row in result.removed.items() if i in copied}
    members.clear()
    for i in order if clusters == "representative" else ():
        met = {j for place in places[i] for j in members[place][:limit]} if i not in result.removed else set()
        result.capped += sum(max(0, len(members[place]) - limit) for place in places[i] if i not in result.removed)
        for j in met:
            if (similarity(i, j) or 0.0) > better[j][-1][1]:
                better[j].append((i, similarity.exact(i, j), False))
        for place in places[i] if i in better else ():
            members[place].append(i)
    return result, better


def deduplicate(
    texts: Sequence[str | bytes],
    threshold: float,
    *,
    widths: Sequence[int] | None,
    seeds: Sequence[int] = (),
    hashbytes: int | None = None,
    n: int,
    unit: str,
    keep: str | Sequence[float] = "first",
    limit: int = 10**9,
    against: Sequence[str | bytes] = (),
    clusters: str = "representative",
    verify: str | None = "exact",
    loss: float = 0.001,
    low_bits_of: tuple[int, int] = (0, 0),
    link_limit: int = 10**9,
    **normalisation: Any,
) -> Deduplicated:
    """Deduplicate over the buckets of the banded fingerprints, or without `widths` over one of all documents.

    The texts of `against` are always kept. `low_bits_of` is how many low bits of each component are compared before
    texts share a bucket, and how many components may differ.
    """
    new, texts = len(texts), [*texts, *against]
    rows: list[list[int]] = []
    places: Sequence[Sequence[object]] = [["all"]] * len(texts)
    if widths is not None:
        rows = [sketch(t, seeds, hashbytes, n=n, unit=unit, **normalisation) for t in texts]
        places = [buckets(row, widths, hashbytes) for row in rows]
    similarity = Similarity(texts, rows, threshold, verify, loss, n, unit, **normalisation)
    order = [*range(new, len(texts)), *priority(texts[:new], keep)]
    order = [i for i in order if similarity.sets[i]]
    leader: dict[bytes, int] = {}  # the earliest copy of each text
    for i in order:
        leader.setdefault(as_bytes(texts[i]), i)
    least = threshold if verify is not None else 0.0
    leaders, left_out = list(leader.values()), 0
    if places and low_bits_of[0]:
        places, left_out = grouped(leaders, places, rows, *low_bits_of, new, link_limit)
    copied = {leader[as_bytes(texts[i])] for i in order if leader[as_bytes(texts[i])] != i}
    references = set(range(new, len(texts)))
    result, better = decide(leaders, places, least, similarity, limit, references, clusters, copied)
    result.capped += left_out

    when = {i: time for time, i in enumerate(order)}
    for i in order:
        first = leader[as_bytes(texts[i])]
        if i != first and i < new:
            rows = [row for row in better.get(first, [(first, 1.0, True)]) if when[row[0]] < when[i]]
            result.removed[i] = rows[-1]
    result.kept = [i not in result.removed for i in range(new)]
    return result


def deduplicate_exact(texts: Sequence[str | bytes], threshold: float, **options: Any) -> Deduplicated:
    """Deduplicate as if all documents shared one bucket: the exact result, which no banding can exceed."""
    return deduplicate(texts, threshold, widths=None, **options)


# ---- fields of records ----


def json_fields(block: bytes, names: Sequence[str]) -> list[list[Any]] | None:
    """The named fields of JSON objects, one object per line, parsed by Python; numbers keep their spelling.

    It is ``None`` if a line is not an object; blank lines are skipped.
    If a record has no field of a name, the parts of the name between dots select nested fields.
    """
    rows = []
    for line in block.split(b"\n")[: -1 if block.endswith(b"\n") or not block else None]:
        try:
            if not line.strip(b" \t\r"):
                continue
            record = json.loads(line.decode(), parse_int=str, parse_float=str)
        except (ValueError, RecursionError):
            return None
        if not isinstance(record, dict):
            return None
        rows.append([json_field(record, name) for name in names])
    return rows


def json_field(record: dict[str, Any], name: str) -> Any:
    """A field of an object or of a nested object; ``None`` if there is no such field."""
    if name in record:
        return record[name]
    value: Any = record
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def line_cells(block: bytes, separator: bytes) -> list[list[bytes]]:
    """The cells of lines that end with a newline or with a carriage return and a newline."""
    lines = block.split(b"\n")[: -1 if block.endswith(b"\n") or not block else None]
    return [line.removesuffix(b"\r").split(separator) for line in lines]


def csv_cells(block: bytes, separator: bytes = b",") -> list[list[bytes]] | None:
    """The cells of CSV as Python's reader returns them; ``None`` if the data is not CSV."""
    lines = block.decode("utf-8", "surrogateescape").split("\n")
    lines = [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    try:
        rows = list(csv.reader(lines, delimiter=separator.decode(), strict=True))
    except csv.Error:
        return None
    return [[cell.encode("utf-8", "surrogateescape") for cell in row] for row in rows if row]


# The sorted keys of an index's segment.


def block_sums(data: bytes, block: int = 1 << 16) -> list[int]:
    """The checksum of each block of a file."""
    return [murmur3_x64_128(data[i : i + block], 0)[0] for i in range(0, len(data), block)]


def search(
    bands: Sequence[Sequence[tuple[int, int]]],
    keys: Sequence[int],
    equal: Callable[[int], int],
    removed: set[int],
    least: int,
    top: int | None,
) -> list[tuple[int, int]]:
    """The documents that have the key of a band, with their equal components, by number; the best `top` of them."""
    sharing = {number for band, key in zip(bands, keys, strict=True) for other, number in band if other == key}
    found = [(number, equal(number)) for number in sharing - removed if equal(number) >= least]
    return sorted(sorted(found, key=lambda match: (-match[1], match[0]))[:top])


def merged(
    parts: Sequence[Sequence[tuple[int, int]]], renumbered: Sequence[Sequence[int | None]]
) -> list[tuple[int, int]]:
    """The pairs of all parts under new document numbers; None of a document that is dropped."""
    return sorted(
        (key, new[number])
        for part, new in zip(parts, renumbered, strict=True)
        for key, number in part
        if new[number] is not None
    )


# Repeated passages.


def passages(texts: Sequence[bytes], window: int, old: int = 0) -> list[bytes]:
    """For each byte of each text 1 if it is cut, else 0; nothing is cut from the first `old` texts."""
    kept: list[bytes] = []
    cut: list[bytearray] = []
    for text in texts:
        begins = {i for i, byte in enumerate(text) if byte & 0xC0 != 0x80}
        cut.append(bytearray(len(text)))
        for start in sorted(begins) if len(cut) > old else []:
            end = start + window
            while end < min(len(text), start + window + 3) and end not in begins:
                end += 1
            if end <= len(text) and any(text[start:end] in run for run in kept + runs_left(text[:start], cut[-1])):
                cut[-1][start:end] = b"\1" * (end - start)
        kept += runs_left(text, cut[-1])
    return list(map(bytes, cut))


def runs_left(text: bytes, cut: bytearray) -> list[bytes]:
    """The runs of a text that are not cut."""
    return [text[run.start() : run.end()] for run in re.finditer(b"\0+", cut[: len(text)])]


def passages_of_ascii(texts: Sequence[bytes], window: int) -> list[bytes]:
    """The same for longer texts of one byte a character; windows are equal if their hashes are."""
    kept: set[int] = set()
    cut: list[bytes] = []
    for text in texts:
        hashes = [hash(text[i : i + window]) for i in range(len(text) - window + 1)]
        marks, own, to_enter = bytearray(len(text)), set[int](), 0
        for start, value in enumerate(hashes):
            while to_enter <= start - window:  # windows that end before this one begins
                if not marks.count(1, to_enter, to_enter + window):
                    own.add(hashes[to_enter])
                to_enter += 1
            if value in kept or value in own:
                marks[start : start + window] = b"\1" * window
        kept |= {value for i, value in enumerate(hashes) if not marks.count(1, i, i + window)}
        cut.append(bytes(marks))
    return cut


def repeated_units(
    texts: Sequence[str], paragraphs: bool, least: int, normal: Callable[[str], str]
) -> list[list[tuple[int, int, int, int]]]:
    """Where the units of each text that were kept before start and end, the text that has it and where, in bytes."""
    kept: dict[str, tuple[int, int]] = {}
    found: list[list[tuple[int, int, int, int]]] = []
    for number, text in enumerate(texts):
        at, rows = 0, []
        for unit, behind in units(text, paragraphs):
            start, at = at, at + len((unit + behind).encode())
            content = unit.removesuffix("\n").removesuffix("\r")
            if content and len(content.encode()) >= least:
                place = kept.setdefault(normal(content), (number, start))
                rows += [(start, at, *place)] if place != (number, start) else []
        found.append(rows)
    return found


def units(text: str, paragraphs: bool) -> list[tuple[str, str]]:
    """The lines of a text, or its paragraphs, each with the blank lines behind it."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    if not paragraphs:
        return [(line, "") for line in lines]
    groups = [
        (is_blank, "".join(group)) for is_blank, group in groupby(lines, lambda line: not line.strip(" \t\n\v\f\r"))
    ]
    first = [("", group) for is_blank, group in groups[:1] if is_blank]
    rest = groups[len(first) :]
    return first + [(rest[i][1], rest[i + 1][1] if i + 1 < len(rest) else "") for i in range(0, len(rest), 2)]


# Contained texts.


def contained(
    items: Sequence[str | bytes],
    texts: Sequence[str | bytes],
    threshold: float,
    *,
    n: int,
    unit: str,
    window: float = 2.0,
    min_shared: int | None = None,
    max_share: float | None = None,
    **normalisation: Any,
) -> tuple[list[tuple[int, int, float, int, int, int]], dict[int, str]]:
    """Hits (item, text, containment, start, end, shared), by text and item, and why other items are skipped."""
    places = [shingles(text, 1, unit, **normalisation) for text in texts]
    wanted = [shingles(item, 1, unit, **normalisation) for item in items]
    sets = [set(runs(units, n)) for units in wanted]
    common: set[Run] = set()
    if max_share is not None:
        held = [set(runs(units, n)) for units in places]
        common = {run for own in sets for run in own if sum(run in one for one in held) / len(texts) > max_share}
    skipped: dict[int, str] = {}
    for i, own in enumerate(sets):
        least = max(min_shared or 1, 1)
        if len(own - common) < least:
            skipped[i] = "short" if len(wanted[i]) < n else "few" if len(own) < least else "common"
    hits = []
    for number, (text, units) in enumerate(zip(texts, places)):
        there = runs(units, n)
        for i, own in enumerate(sets):
            if i in skipped or own.isdisjoint(there):
                continue
            longest = max(size for size in range(len(units) + 1) if size / len(wanted[i]) <= max(window, 1.0))
            best = max(
                (len((own - common).intersection(there[start : end - n + 1])), start - end, -start)
                for start in range(len(units) - n + 1)
                for end in range(start + n, min(start + longest, len(units)) + 1)
            )
            share = best[0] / len(own - common)
            if best[0] and (share >= threshold if min_shared is None else best[0] >= min_shared):
                span = original_span(text, -best[2], -best[2] - best[1], unit, **normalisation)
                hits.append((i, number, share, *span, best[0]))
    return hits, skipped


Run = tuple[bytes, ...]


def runs(units: Sequence[bytes], n: int) -> list[Run]:
    """The shingles of a text that has `n` units or more."""
    return [tuple(units[i : i + n]) for i in range(len(units) - n + 1)]


def original_span(text: str | bytes, first: int, last: int, unit: str, **normalisation: Any) -> tuple[int, int]:
    """Where units first to last - 1 begin and end in a text that is not normalised, in bytes of UTF-8.

    They begin where the first beginning of the text ends that has more than `first` units, before its last character,
    and end where the first beginning ends that has all of them as they are.
    """
    ends, own = beginnings(as_bytes(text), unit, **normalisation)
    begin = next(i for i, units in enumerate(own) if len(units) > first)
    end = next(i for i, units in enumerate(own) if units[:last] == own[-1][:last])
    return ends[begin - 1], ends[end]


@lru_cache(1)
def beginnings(text: bytes, unit: str, **normalisation: Any) -> tuple[list[int], list[list[bytes]]]:
    """Where each beginning of a text of whole characters ends, and its units."""
    ends = [0, *accumulate(map(len, characters(text)))]
    return ends, [shingles(text[:end], 1, unit, **normalisation) for end in ends]
