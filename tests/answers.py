"""Corpora and their pairs in files, and the texts that keep-first removes; the module does not import `lsh`."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path

Row = list[bytes]


def read_table(path: Path) -> list[Row]:
    """The rows of a .tsv.gz file."""
    lines = gzip.decompress(path.read_bytes()).split(b"\n")
    assert lines.pop() == b""
    return [line.split(b"\t") for line in lines]


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
