"""The exact answers for a corpus: its similar pairs by brute force, and the texts that keep-first removes.

The module does not import `lsh`. A posting list for each byte shingle gives the number of shingles two texts share.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path

import numpy as np

Row = list[bytes]


def read_table(path: Path) -> list[Row]:
    """The rows of a .tsv.gz file."""
    lines = gzip.decompress(path.read_bytes()).split(b"\n")
    assert lines.pop() == b""
    return [line.split(b"\t") for line in lines]


def exact_pairs(texts: list[bytes], threshold: float, n: int) -> dict[tuple[int, int], float]:
    """All pairs i < j whose sets of n-byte shingles have a Jaccard similarity of at least `threshold`."""
    numbers: dict[bytes, int] = {}
    sets = []
    for text in texts:
        found = {text[i : i + n] for i in range(len(text) - n + 1)}
        sets.append(np.array([numbers.setdefault(shingle, len(numbers)) for shingle in found], np.int64))
    sizes = np.array([len(one) for one in sets])
    members: list[list[int]] = [[] for _ in numbers]
    for i, one in enumerate(sets):
        for number in one.tolist():
            members[number].append(i)
    postings = [np.array(documents) for documents in members]
    pairs = {}
    for i, one in enumerate(sets):
        shared = np.bincount(np.concatenate([postings[number] for number in one.tolist()]), minlength=len(sets))
        similarity = shared / (sizes[i] + sizes - shared)
        for j in np.flatnonzero(similarity >= threshold).tolist():
            if j > i:
                pairs[i, j] = float(similarity[j])
    return pairs


def removals(ids: Iterable[bytes], pairs: Iterable[tuple[bytes, bytes]]) -> set[bytes]:
    """Apply keep-first deduplication to all pairs at or above the threshold."""
    ids = list(ids)
    place = {doc_id: i for i, doc_id in enumerate(ids)}
    earlier: dict[bytes, list[bytes]] = {}
    for pair in pairs:
        first, second = sorted(pair, key=place.__getitem__)
        earlier.setdefault(second, []).append(first)
    removed: set[bytes] = set()
    for doc_id in ids:
        if any(other not in removed for other in earlier.get(doc_id, ())):
            removed.add(doc_id)
    return removed
