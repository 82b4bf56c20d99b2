"""How long texts take that are made to collide: they share every band and every sketch, but are not similar.

The seed of the scheme fss is public by default, so a prefix can be chosen whose shingles have the smallest hashes of
all components. Each text is this prefix and 20 KB of random letters. SECURITY.md describes the attack, with figures.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import lsh

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import harness

K, N, THRESHOLD = 128, 8, 0.8
CANDIDATES = 16_000_000  # shingles from which the prefix is chosen; noise has a smaller hash in few of the components
PART = 200_000
NOISE = 20_000  # bytes
COUNTS = (1000, 4000)
MAX_BEYOND_ASCII = 1000  # documents
HASHER = lsh.MinHasher(K, scheme="fss", shingles=lsh.Shingles(N))


def random_letters(draw: np.random.Generator, count: int) -> bytes:
    """Return random letters."""
    return draw.integers(97, 123, count, dtype=np.uint8).tobytes()


def prefix() -> bytes:
    """Return a text of one shingle per component that has a very small hash there."""
    draw = np.random.default_rng(0)
    smallest = np.full(K, 2**32 - 1, np.uint32)
    chosen = np.zeros(K, f"S{N}")
    for _ in range(CANDIDATES // PART):
        shingles = np.frombuffer(random_letters(draw, PART * N), f"S{N}")
        rows = HASHER.fingerprints(shingles)
        best = rows.argmin(axis=0)
        values = rows[best, np.arange(K)]
        better = values < smallest
        smallest[better], chosen[better] = values[better], shingles[best[better]]
    return b"".join(chosen.tolist())


def texts(count: int, extra: str) -> list[bytes]:
    """Return texts that all share their fingerprint; `extra` is put between prefix and noise."""
    draw = np.random.default_rng(1)
    start = prefix() + extra.encode()
    wanted = HASHER.fingerprint(start)
    found: list[bytes] = []
    while len(found) < count:
        tried = [start + random_letters(draw, NOISE) for _ in range(1000)]
        same = (HASHER.fingerprints(tried) == wanted).all(axis=1)
        found += [text for text, is_same in zip(tried, same.tolist()) if is_same]
    return found[:count]


def measure(count: int, extra: str) -> dict[str, Any]:
    """Return the CPU seconds of `deduplicate` and `find_pairs` with one thread, both of which must find nothing."""
    corpus = texts(count, extra)
    result, dedup = harness.timed(lambda: lsh.deduplicate(corpus, THRESHOLD, num_threads=1), 1)
    harness.must(len(result.removed) == 0, "a text was removed")
    pairs, finding = harness.timed(lambda: list(lsh.find_pairs(corpus, THRESHOLD, num_threads=1)), 1)
    harness.must(not pairs, "a pair was found")
    summary = result.summary()
    harness.must(summary["compared"] >= min(count, 1000) * (min(count, 1000) - 1) // 2, "not every pair was compared")
    return {
        "documents": count,
        "extra": extra,
        "compared": summary["compared"],
        "deduplicate": dedup,
        "find_pairs": finding,
    }


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("counts", nargs="*", type=int, default=COUNTS, help="numbers of documents")
    options = parser.parse_args()
    cases = [
        measure(count, extra)
        for count in options.counts
        for extra in (("", "é") if count <= MAX_BEYOND_ASCII else ("",))
    ]
    data = {"name": "texts made to collide", "bytes": max(options.counts) * (NOISE + K * N)}
    harness.write("planted", {"threshold": THRESHOLD, "data": data, "cases": cases}, options.folder)
    for case in cases:
        seconds = [case[name]["median_cpu_seconds"] for name in ("deduplicate", "find_pairs")]
        print(case["documents"], case["extra"] or "ASCII", case["compared"], *(f"{each:.1f} s" for each in seconds))


if __name__ == "__main__":
    main()
