"""Compute the exact answers for quality.py: all similar pairs of a corpus, and the exact result of `deduplicate`.

No code of the library is used: the sets of 5-byte shingles, the join and the removals are written again in numpy and
plain Python, so that an error in one is found by the other. The join is exact, without sampling or hashing. A length
filter and the prefix filter of AllPairs (Bayardo, Ma, Srikant 2007) over shingles ordered by rarity choose candidates;
the intersection of every candidate pair is counted. `--check` compares the join with a comparison of all pairs.

The pairs of a corpus are cached in a folder outside the repository (`--cache`), under a checksum of the texts. Only
positions and similarities are stored.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness
import numpy as np

N = 5  # bytes of a shingle
THRESHOLD = 0.8
METHOD = 1  # increase after a change that could change the cached pairs
# Pairs at THRESHOLD, from the README of the corpora, counted by other code.
EXPECTED = {
    "reuters21578.tsv.gz": 784,
    "articles2500.tsv.gz": 20,
    "ads_rome_it.tsv.gz": 10_526,
    "win32docs.tsv.gz": 1_118,
    "multilingual.jsonl.gz": 1_591,
}
CACHE = Path(tempfile.gettempdir()) / "lsh-benchmark-truth"
CODE_BITS = 8 * N + 3  # the bytes of a shingle, and the length of a text shorter than N
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ShingleSets:
    """The shingle sets of all documents with shingles, each as ascending numbers; the rarest shingle has number 0."""

    documents: Array  # the document of each set
    numbers: Array  # int32, one set after another
    bounds: Array  # set s is numbers[bounds[s] : bounds[s + 1]]
    distinct: int

    @property
    def sizes(self) -> Array:
        return np.diff(self.bounds)


@dataclass(frozen=True)
class Removal:
    """The reason of a removal: the kept document, the exact similarity, and whether both have the same bytes."""

    kept: int
    similarity: float
    identical: bool


def shingle_sets(texts: Sequence[bytes]) -> ShingleSets:
    """Compute the set of N-byte shingles of each text; a shorter text is one shingle, an empty one has none."""
    owners = np.arange(len(texts), dtype=np.uint64) << np.uint64(CODE_BITS)
    if len(texts) >= 2 ** (64 - CODE_BITS):
        raise ValueError(f"the number of texts must be at most {2 ** (64 - CODE_BITS) - 1:,}, got {len(texts):,}")
    sizes = np.array([len(text) for text in texts], np.int64)
    joined = np.frombuffer(b"".join(texts) + bytes(N), np.uint8)
    keys = np.zeros(len(joined) - N, np.uint64)
    for k in range(N):
        keys <<= np.uint64(8)
        keys |= joined[k : k + len(keys)]
    keys |= np.repeat(owners, sizes)
    inside = np.ones(len(keys), bool)  # exclude windows that extend past the end of their text
    ends = np.cumsum(sizes)
    for k in range(1, N):
        inside[ends[sizes >= k] - k] = False
    keys = keys[inside]
    short = [
        int(owners[i]) | len(texts[i]) << 8 * N | int.from_bytes(texts[i], "big")
        for i in np.flatnonzero((sizes > 0) & (sizes < N)).tolist()
    ]
    keys = np.unique(np.concatenate([keys, np.array(short, np.uint64)]))
    return ranked((keys >> np.uint64(CODE_BITS)).astype(np.int64), keys & np.uint64(2**CODE_BITS - 1))


def ranked(owner: Array, keys: Array) -> ShingleSets:
    """Return the sets of shingles that are given by number, each once, with the documents that have them, ascending."""
    values, number, frequency = np.unique(keys, return_inverse=True, return_counts=True)
    rank = np.empty(len(values), np.int64)
    rank[np.argsort(frequency, kind="stable")] = np.arange(len(values))
    ordered = owner << 32 | rank[number]
    ordered.sort()
    documents, starts = np.unique(owner, return_index=True)
    bounds = np.append(starts, len(owner)).astype(np.int64)
    return ShingleSets(documents, (ordered & (2**32 - 1)).astype(np.int32), bounds, len(values))


def ranges(starts: Array, counts: Array) -> Array:
    """Return the numbers starts[0], starts[0] + 1, ... of each range, one range after another."""
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))


def intersections(sets: ShingleSets, marked: Array, others: Array) -> Array:
    """Count the marked shingles of each of the other sets."""
    starts, sizes = sets.bounds[others], sets.sizes[others]
    return np.add.reduceat(marked[sets.numbers[ranges(starts, sizes)]], np.cumsum(sizes) - sizes, dtype=np.int64)


def least_overlap(sizes: Array, threshold: float) -> Array:
    """Return the minimum overlap for each set size: the smallest o with o / size >= threshold in floating point.

    The union is no smaller than the set and division rounds monotonically, so a pair that passes
    `intersection / union >= threshold` passes this too.
    """
    least: Array = np.maximum(np.floor(threshold * sizes).astype(np.int64) - 1, 1)
    while (low := least / sizes < threshold).any():
        least[low] += 1
    return least


def candidates(sets: ShingleSets, threshold: float) -> Iterator[tuple[int, Array]]:
    """Generate each set with the smaller sets (the earlier sets, if equal in size) that could be similar to it.

    Two sets that share `least_overlap` shingles share one of the rarest `size - least_overlap + 1` shingles of each.
    """
    sizes = sets.sizes
    order = np.argsort(sizes, kind="stable")
    ascending = sizes[order]
    prefix = ascending - least_overlap(ascending, threshold) + 1
    place = np.repeat(np.arange(len(order)), prefix)
    number = sets.numbers[ranges(sets.bounds[order], prefix)].astype(np.int64)
    by_number = np.argsort(number << 32 | place)
    posting_place, posting_number = place[by_number], number[by_number]
    stop = np.empty(len(by_number), np.int64)  # for each entry of a prefix, its position in the list of its shingle
    stop[by_number] = np.arange(len(by_number))
    start = np.searchsorted(posting_number, posting_number)[stop]
    bounds = np.append(0, np.cumsum(prefix))
    smallest = np.searchsorted(ascending, least_overlap(ascending, threshold))
    for x in range(len(order)):
        mine = slice(bounds[x], bounds[x + 1])
        met = posting_place[ranges(start[mine], stop[mine] - start[mine])]
        met = np.unique(met[met >= smallest[x]])
        if len(met):
            yield int(order[x]), order[met]


def join(texts: Sequence[bytes], threshold: float = THRESHOLD) -> list[tuple[int, int, float]]:
    """Return all pairs (i, j, similarity), i < j, with an exact Jaccard similarity >= `threshold`, ascending."""
    return similar(shingle_sets(texts), threshold)


def similar(sets: ShingleSets, threshold: float) -> list[tuple[int, int, float]]:
    """Return all pairs of documents whose sets have an exact Jaccard similarity >= `threshold`, as `join` does."""
    if not len(sets.documents):
        return []
    return decided(sets, candidates(sets, threshold), threshold)


def all_pairs(texts: Sequence[bytes], threshold: float = THRESHOLD) -> list[tuple[int, int, float]]:
    """Return the same as `join`, by comparing all pairs."""
    sets = shingle_sets(texts)
    return decided(sets, ((x, np.arange(x)) for x in range(1, len(sets.documents))), threshold)


def decided(sets: ShingleSets, met: Iterator[tuple[int, Array]], threshold: float) -> list[tuple[int, int, float]]:
    """Compare each set with its candidates; return the similar pairs of documents."""
    marked, sizes, found = np.zeros(sets.distinct, bool), sets.sizes, []
    for x, others in met:
        mine = sets.numbers[sets.bounds[x] : sets.bounds[x + 1]]
        marked[mine] = True
        common = intersections(sets, marked, others)
        marked[mine] = False
        similarity = common / (sizes[x] + sizes[others] - common)
        for place in np.flatnonzero(similarity >= threshold).tolist():
            i, j = sorted((int(sets.documents[x]), int(sets.documents[others[place]])))
            found.append((i, j, float(similarity[place])))
    return sorted(found)


def checksum(texts: Sequence[bytes]) -> str:
    """Return a checksum of the texts and their lengths."""
    total = hashlib.sha256()
    for text in texts:
        total.update(len(text).to_bytes(8, "little"))
        total.update(text)
    return total.hexdigest()


def pairs(corpus: harness.Corpus, cache: Path = CACHE, threshold: float = THRESHOLD) -> list[tuple[int, int, float]]:
    """Return the pairs of a corpus, from the cache if they are there; check their number against EXPECTED."""
    path = cache / f"pairs-{METHOD}-{N}-{threshold}-{checksum(corpus.texts)}.npz"
    if not path.exists():
        found = join(corpus.texts, threshold)
        i, j, similarity = zip(*found) if found else ((), (), ())
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=cache, suffix=".part", delete=False) as file:
            np.savez(
                file,
                i=np.array(i, np.int32),
                j=np.array(j, np.int32),
                similarity=np.array(similarity, np.float64),
            )
        os.replace(file.name, path)
    with np.load(path, allow_pickle=False) as kept:
        result = list(zip(kept["i"].tolist(), kept["j"].tolist(), kept["similarity"].tolist()))
    if threshold == THRESHOLD and corpus.name in EXPECTED:
        expected = EXPECTED[corpus.name]
        harness.must(len(result) == expected, f"{corpus.name} has {expected} pairs, {len(result)} were found")
    return result


def removals(texts: Sequence[bytes], pairs: Sequence[tuple[int, int, float]]) -> dict[int, Removal]:
    """Return the exact removals of `deduplicate`, when no pair is missed and the first documents have priority.

    Documents are processed in order. A document is removed if an earlier kept one is similar; its witness is the most
    similar one, the earliest on a tie. The witness of an identical copy is the first document with the same bytes, or
    the witness of that document if it was removed.
    """
    earlier: dict[int, list[tuple[int, float]]] = {}
    for i, j, similarity in pairs:
        earlier.setdefault(j, []).append((i, similarity))
    first: dict[bytes, int] = {}
    removed: dict[int, Removal] = {}
    for j, text in enumerate(texts):
        if not text:
            continue
        leader = first.setdefault(text, j)
        if leader != j:
            removed[j] = removed.get(leader, Removal(leader, 1.0, True))
            continue
        kept = [(-similarity, i) for i, similarity in earlier.get(j, ()) if i not in removed]
        if kept:
            opposite, witness = min(kept)
            removed[j] = Removal(witness, -opposite, False)
    return removed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--cache", type=Path, default=CACHE, metavar="FOLDER", help="cache of the pairs (default: %(default)s)"
    )
    parser.add_argument("--only", default=",".join(EXPECTED), metavar="NAMES", help="corpora, separated by commas")
    parser.add_argument(
        "--check", type=int, default=0, metavar="COUNT", help="also compare all pairs of the first COUNT documents"
    )
    options = parser.parse_args()
    for name in options.only.split(","):
        corpus = harness.corpus(name)
        if corpus is None:
            raise SystemExit(f"no file {name}; set LSH_DATA to the folder that holds it")
        started = time.perf_counter()
        found = pairs(corpus, options.cache)
        seconds = time.perf_counter() - started
        removed = removals(corpus.texts, found)
        print(f"{name}: {len(found):,} pairs, {len(removed):,} removals, {seconds:.1f} s", flush=True)
        if name == "reuters21578.tsv.gz":
            known = [(i, j, f"{similarity:.6f}") for i, j, similarity in harness.news().pairs or ()]
            known = [pair for pair in known if float(pair[2]) >= THRESHOLD]
            harness.must(
                known == [(i, j, f"{s:.6f}") for i, j, s in found], "the pairs differ from reuters_pairs.tsv.gz"
            )
        if options.check:
            started = time.perf_counter()
            among = [pair for pair in found if pair[1] < options.check]
            harness.must(all_pairs(corpus.texts[: options.check]) == among, f"{name}: the join is wrong")
            count, seconds = min(options.check, len(corpus.texts)), time.perf_counter() - started
            print(f"  checked all pairs of the first {count:,} documents: {len(among):,} similar, {seconds:.1f} s")


if __name__ == "__main__":
    main()
