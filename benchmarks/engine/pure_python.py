"""Compare the library with the same definitions in plain Python; measure time and recall of `deduplicate`.

The plain version is tests/reference.py, which the tests compare the library with. It is written for readability, not
speed. It drops repeated shingles before it hashes; the library does not. Both compute fingerprints of 128 components
over 5-byte shingles, in one thread.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import lsh

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import harness

SEEDS = 128
N = 5
THRESHOLD = 0.8
RUNS = 5
DOCUMENTS = {"pure": 3, "lsh": 3000}  # per run; takes seconds in pure Python, one second in lsh


def fingerprints(corpus: harness.Corpus, plain: ModuleType, hashbytes: int | None) -> dict[str, Any]:
    """Measure MB of text per second of both, for murmur3, or for fss if `hashbytes` is None; compare results first."""
    scheme = "murmur3" if hashbytes else "fss"
    hasher = lsh.MinHasher(SEEDS, char_ngram=N, hashbytes=hashbytes, scheme=scheme)
    seeds = hasher.seed_values.tolist() if hashbytes else (SEEDS, int(hasher.seed_values[0]))

    def pure(run: int) -> int:
        texts = harness.rotating(corpus.texts, DOCUMENTS["pure"], run)
        for text in texts:
            plain.sketch(text, seeds, hashbytes, n=N, unit="byte")
        return sum(map(len, texts))

    def compiled(run: int) -> int:
        texts = harness.rotating(corpus.texts, DOCUMENTS["lsh"], run)
        hasher.fingerprints(texts, num_threads=1)
        return sum(map(len, texts))

    sample = harness.rotating(corpus.texts, DOCUMENTS["pure"], 0)
    expected = [plain.sketch(text, seeds, hashbytes, n=N, unit="byte") for text in sample]
    harness.must(hasher.fingerprints(sample).tolist() == expected, f"fingerprints of {hasher!r} differ")

    measured = harness.in_turns({"pure_python": pure, "lsh": compiled}, RUNS)
    ratio = measured["lsh"]["median_mb_per_second"] / measured["pure_python"]["median_mb_per_second"]
    parameters = {
        "scheme": scheme,
        "hashbytes": hasher.hashbytes,
        "seeds": SEEDS,
        "shingles": f"{N} bytes",
        "threads": 1,
    }
    print(f"fingerprints of {scheme}, {hasher.hashbytes} bytes a component: {ratio:,.0f} times faster")
    return {"parameters": parameters, "documents_a_run": DOCUMENTS, "ratio": ratio, **measured}


def exact_removals(corpus: harness.Corpus, plain: ModuleType) -> set[int]:
    """Return the documents that have an earlier kept one at or above the threshold, by exact similarity."""
    if corpus.pairs is None:
        return set(plain.deduplicate_exact(corpus.texts, THRESHOLD, n=N, unit="byte").removed)
    earlier: dict[int, list[int]] = {}
    for i, j, similarity in corpus.pairs:
        if similarity >= THRESHOLD:
            earlier.setdefault(j, []).append(i)
    removed: set[int] = set()
    for j in sorted(earlier):
        if not removed.issuperset(earlier[j]):
            removed.add(j)
    return removed


def deduplication(corpus: harness.Corpus, plain: ModuleType) -> dict[str, Any]:
    """Measure the time of `deduplicate`, and its recall against the exact answer."""
    shingles = lsh.Shingles(N, "byte")

    def run() -> Any:
        return lsh.deduplicate(corpus.texts, THRESHOLD, shingles=shingles, num_seeds=SEEDS)

    result = run()
    for document, kept in zip(result.removed["document"].tolist(), result.removed["kept"].tolist()):
        similarity = plain.jaccard(corpus.texts[document], corpus.texts[kept], N, "byte")
        harness.must(similarity >= THRESHOLD and result.keep[kept], f"{document} was removed for {kept}")
    expected, removed = exact_removals(corpus, plain), set(result.removed["document"].tolist())
    recall = len(expected & removed) / len(expected)
    _, times = harness.timed(run, RUNS)
    parameters = {
        "threshold": THRESHOLD,
        "bands": str(lsh.plan(THRESHOLD, num_seeds=SEEDS)).partition("\n")[0],  # of the default
        "seeds": SEEDS,
        "shingles": f"{N} bytes",
    }
    print(f"deduplicate: recall {recall:.4f} of {len(expected)} removals, {times['median_wall_seconds']:.2f} seconds")
    return {
        "parameters": {**parameters, "threads": lsh.base.threads.available_cores()},
        "removals": {"exact": len(expected), "made": len(removed), "recall": recall, "others": len(removed - expected)},
        "without_witness": 0,  # checked above for every removal
        "mb_per_cpu_second": sum(map(len, corpus.texts)) / times["median_cpu_seconds"] / 1e6,
        **times,
    }


def main() -> None:
    options = harness.parser(__doc__).parse_args()
    corpus, plain = harness.news(), harness.reference()
    content = {
        "about": "fingerprints against tests/reference.py, and deduplicate against the exact answer",
        "data": corpus.describe(),
        "fingerprints": [fingerprints(corpus, plain, hashbytes) for hashbytes in (4, 8, None)],
        "deduplicate": deduplication(corpus, plain),
    }
    harness.write("pure_python", content, options.folder)


if __name__ == "__main__":
    main()
