"""Measure the CPU time from a million fingerprints to band keys and to buckets, in one thread.

No text is hashed and no pair is verified. The fingerprints are random; 3 in 10 documents are near duplicates of an
earlier one. Two more cases: documents in random order, and documents that are all equal, so that each bucket holds all
of them. Each step writes to memory that is already mapped, so that page faults are not measured. On a small case both
steps are first compared with tests/reference.py.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import lsh
from lsh._minhash import band_keys
from lsh.links.grouping import BucketFinder

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import harness

DOCUMENTS, BANDS, WIDTH = 1_000_000, 20, 6
NEAR, KEPT = 0.3, 0.85  # share of near duplicates, and of the components that each copies from an earlier row
RUNS = 7
BLOCK = 20_000


def fingerprints(count: int) -> np.ndarray[Any, Any]:
    """Return random rows; each near duplicate has most components of an earlier row."""
    random = np.random.default_rng(1)
    rows = random.integers(0, 2**32, (count, BANDS * WIDTH), dtype=np.uint32)
    near = 1 + np.nonzero(random.random(count - 1) < NEAR)[0]
    other = (random.random(len(near)) * near).astype(np.int64)
    for start in range(0, len(near), BLOCK):
        these, those = near[start : start + BLOCK], other[start : start + BLOCK]
        kept = random.random((len(these), rows.shape[1])) < KEPT
        rows[these] = np.where(kept, rows[those], rows[these])
    return rows


class Steps:
    """Both steps on some fingerprints, with the memory they write to."""

    def __init__(self, rows: np.ndarray[Any, Any], order: np.ndarray[Any, Any]) -> None:
        self.rows, self.bounds = rows, lsh.Bands(BANDS, WIDTH).bounds
        self.keys = np.zeros((BANDS, len(rows)), np.uint64)
        self.scratch = np.zeros(len(rows), np.uint64)
        self.finder = BucketFinder(len(rows), order, len(order))

    def make_keys(self) -> None:
        band_keys(self.rows, self.bounds, self.keys)

    def find(self) -> None:
        self.sharing = 0
        for members, _ in self.buckets():
            self.sharing += len(members)

    def buckets(self) -> Iterator[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
        """Yield the members and the ends of the buckets of each band, valid until the next one."""
        for keys in self.keys:
            self.scratch.view(np.uint32)[: len(keys)] = keys  # the lower halves, as the engine keeps them
            yield self.finder.find(self.scratch, short=True)


def check(rows: np.ndarray[Any, Any], order: np.ndarray[Any, Any]) -> None:
    """Compare both steps with tests/reference.py."""
    reference, steps = harness.reference(), Steps(rows, order)
    steps.make_keys()
    keys = [reference.band_keys(row, [WIDTH] * BANDS) for row in rows.tolist()]
    harness.must(steps.keys.T.tolist() == keys, "band keys differ")
    for (members, ends), band in zip(steps.buckets(), zip(*keys, strict=True), strict=True):
        links = np.full(len(rows), -1)
        links[members[1:]] = members[:-1]
        links[members[np.concatenate([[0], ends[:-1]]).astype(int)]] = -1
        short = [key % 2**32 for key in band]
        harness.must(links.tolist() == reference.link(short, order.tolist(), len(order)), "buckets differ")


def best(work: Callable[[], None]) -> dict[str, float]:
    """Return the best and the median time of RUNS runs, after one that is not counted."""
    work()
    seconds = []
    for _ in range(RUNS):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return {"seconds": min(seconds), "median_seconds": float(np.median(seconds))}


def measure(rows: np.ndarray[Any, Any], order: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Measure each step, in seconds and in nanoseconds per document and band."""
    steps = Steps(rows, order)
    found = {"keys": best(steps.make_keys), "buckets": best(steps.find)}
    for times in found.values():
        times["ns_per_document_and_band"] = times["seconds"] * 1e9 / len(rows) / BANDS
    return {"steps": found, "sharing": steps.sharing / steps.keys.size}


def main() -> None:
    options = harness.parser(__doc__).parse_args()
    random, rows = np.random.default_rng(2), fingerprints(DOCUMENTS)
    in_turn = np.arange(DOCUMENTS, dtype=np.int32)
    small = fingerprints(3000)
    for order in (in_turn[:3000], random.permutation(3000).astype(np.int32)):
        check(small, order)
        check(np.broadcast_to(small[:1], small.shape).copy(), order)
    cases = {"near-duplicates": measure(rows, in_turn)}
    cases["in a random order"] = measure(rows, random.permutation(DOCUMENTS).astype(np.int32))
    rows[:] = rows[0]
    cases["all equal"] = measure(rows, in_turn)
    data = {"documents": DOCUMENTS, "bytes": rows.nbytes, "bands": BANDS, "width": WIDTH, "near": NEAR, "kept": KEPT}
    about = "fingerprints to band keys and buckets; single thread, CPU time, best of the runs"
    harness.write("grouping", {"about": about, "data": data, "cases": cases}, options.folder)


if __name__ == "__main__":
    main()
