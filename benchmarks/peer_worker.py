"""Measure one library, in an environment that has it, and print JSON: `peer_worker.py NAME CORPUS PAIRS`.

Each line of CORPUS has id, tab, text. Each line of PAIRS has two positions and their exact Jaccard similarity of 5-byte
shingles. The worker computes fingerprints of 128 components from raw text in one thread, in the way users of the
library do. It compares estimates with the exact similarities. It searches for documents that have a near duplicate
with an index of 16 bands of 8. It uses the standard library, numpy and the measured library only, and
tests/reference.py for plain Python.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Pair = tuple[int, int, float]
K, N, BANDS, WIDTH, THRESHOLD = 128, 5, 16, 8, 0.8


class Way:
    """One way to use a library: fingerprints, the estimate of two, and the documents that have a near duplicate."""

    package = ""
    shingles = "5 characters"
    documents: int | None = None  # number of documents to measure, for slow libraries
    indexed = "every pair of a bucket whose estimate is 0.8 or more"
    largest_error: float | None = 0.05  # mean error of the estimates beyond which nothing is measured

    def fingerprints(self, texts: list[bytes]) -> Any:
        raise NotImplementedError

    def estimate(self, a: Any, b: Any) -> float:
        return float(np.mean(np.asarray(a) == np.asarray(b)))

    def near(self, texts: list[bytes]) -> set[int] | None:
        """Return the positions of the texts that have a near duplicate; None if the library has no index."""
        return None

    def pairs(self, texts: list[bytes], pairs: list[Pair]) -> list[Pair]:
        """Return the near-duplicate pairs by the shingles of this class; `pairs` are those by 5-byte shingles."""
        return [(i, j, similarity) for i, j, similarity in pairs if max(i, j) < len(texts)]


def joined(sets: Sequence[set[Any]]) -> list[Pair]:
    """Return the pairs of sets with a similarity of THRESHOLD or more, by an exact join.

    Two such sets share an element among the rarest n - ceil(THRESHOLD * n) + 1 of each.
    """
    counts = Counter(element for elements in sets for element in elements)
    containing: dict[Any, list[int]] = defaultdict(list)
    found = []
    for i, elements in enumerate(sets):
        rarest = sorted(elements, key=lambda element: (counts[element], element))
        prefix = rarest[: len(rarest) - math.ceil(THRESHOLD * len(rarest) - 1e-9) + 1]
        for j in sorted({j for element in prefix for j in containing[element]}):
            shared = len(elements & sets[j])
            if shared >= THRESHOLD * (len(elements) + len(sets[j]) - shared):
                found.append((j, i, shared / (len(elements) + len(sets[j]) - shared)))
        for element in prefix:
            containing[element].append(i)
    return found


def characters(text: bytes) -> list[str]:
    decoded = text.decode("utf-8")
    return [decoded[i : i + N] for i in range(len(decoded) - N + 1)]


def hashed(texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Hash all 5-byte shingles of all texts to 64 bits in numpy; return hashes and the offset of each text."""
    values = np.frombuffer(b"".join(texts), np.uint8).astype(np.uint64)
    grams = values[: len(values) - N + 1].copy()
    for i in range(1, N):
        grams |= values[i : len(values) - N + 1 + i] << np.uint64(8 * i)
    grams *= np.uint64(0x9E3779B97F4A7C15)
    grams ^= grams >> np.uint64(32)
    grams *= np.uint64(0xD6E8FEB86659FD93)
    sizes = np.array([len(text) for text in texts])
    ends = np.cumsum(sizes)
    within = np.ones(len(grams), bool)
    for i in range(1, N):  # exclude windows that extend into the next text
        last = ends[:-1] - i
        within[last[(last >= 0) & (last < len(grams))]] = False
    offsets = np.concatenate([[0], np.cumsum(np.maximum(sizes - N + 1, 0))])
    return grams[within], offsets.astype(np.uint64)


def parts(texts: list[bytes]) -> Iterator[list[bytes]]:
    """Generate lists of 1,000 texts, so that numpy's arrays for them fit in the cache."""
    for start in range(0, len(texts), 1000):
        yield texts[start : start + 1000]


def members(buckets: list[list[int]], rows: Any) -> set[int]:
    """Return the rows that have another candidate whose estimate reaches the threshold."""
    found: set[int] = set()
    for i, candidates in enumerate(buckets):
        others = np.array([j for j in candidates if j != i], np.int64)
        if len(others) and (np.mean(rows[others] == rows[i], axis=1) >= THRESHOLD).any():
            found.add(i)
    return found


class Lsh(Way):
    package = "lsh-dedup"
    shingles = "5 bytes"
    indexed = "find_pairs: exact similarity 0.8 or more"

    def __init__(self) -> None:
        import lsh

        self.lsh = lsh
        self.hasher = lsh.MinHasher(K, scheme="fss", shingles=lsh.Shingles(N, "byte"))

    def fingerprints(self, texts: list[bytes]) -> Any:
        return self.hasher.fingerprints(texts, num_threads=1)

    def near(self, texts: list[bytes]) -> set[int]:
        bands = self.lsh.Bands(BANDS, WIDTH)
        pairs = self.lsh.find_pairs(texts, threshold=THRESHOLD, hasher=self.hasher, bands=bands, num_threads=1)
        return {document for i, j, _ in pairs for document in (i, j)}


class LshMurmur(Lsh):
    def __init__(self) -> None:
        super().__init__()
        self.hasher = self.lsh.MinHasher(K, char_ngram=N, hashbytes=4)


class LshWords(Lsh):
    shingles = "5 words"

    def __init__(self) -> None:
        super().__init__()
        self.hasher = self.lsh.MinHasher(K, scheme="fss", shingles=self.lsh.Shingles(N, "word", lowercase=True))

    def pairs(self, texts: list[bytes], pairs: list[Pair]) -> list[Pair]:
        return joined([self.hasher.shingles.of(text) for text in texts])


class RensaReadme(Way):
    package = "rensa"

    def __init__(self) -> None:
        import rensa

        self.rensa = rensa

    def fingerprints(self, texts: list[bytes]) -> Any:
        tokens = [characters(text) for text in texts]
        return self.rensa.RMinHash.digest_matrix_from_token_sets(tokens, K, 42)

    def rows(self, texts: list[bytes]) -> Any:
        return np.array(self.fingerprints(texts).to_rows())

    def near(self, texts: list[bytes]) -> set[int]:
        index = self.rensa.RMinHashLSH(THRESHOLD, K, BANDS)
        made = self.rensa.RMinHash.from_token_sets([characters(text) for text in texts], K, 42)
        index.insert_many(made)
        found = set()
        for i, candidates in enumerate(index.query_all(made)):
            if any(j != i and made[i].jaccard(made[j]) >= THRESHOLD for j in candidates):
                found.add(i)
        return found


class RensaFlat(RensaReadme):
    shingles = "5 bytes, hashed in numpy"
    indexed = "flags of its index, without a check"

    def fingerprints(self, texts: list[bytes]) -> Any:
        tokens, offsets = hashed(texts)
        return self.rensa.RMinHash.digest_matrix_from_flat_token_hashes(tokens, offsets, K, 42)

    def near(self, texts: list[bytes]) -> set[int]:
        index = self.rensa.RMinHashLSH(THRESHOLD, K, BANDS)
        made, at = [self.fingerprints(part) for part in parts(texts)], 0
        for one in made:
            index.insert_matrix(one, at)
            at += one.len()
        flags = [flag for one in made for flag in index.query_duplicate_flags_matrix(one)]
        return {i for i, flag in enumerate(flags) if flag}


class RensaRho(RensaFlat):
    """The mode of rensa's own benchmark, which hashes a sample of the tokens of a long text: not comparable."""

    shingles = "a sample of 5 bytes, hashed in numpy"
    largest_error = None

    def fingerprints(self, texts: list[bytes]) -> Any:
        tokens, offsets = hashed(texts)
        return self.rensa.RMinHash.digest_matrix_from_flat_token_hashes_rho(tokens, offsets, K, 42)


class FastSketchReadme(Way):
    package = "FastSketchLSH"

    def __init__(self) -> None:
        import FastSketchLSH

        self.library = FastSketchLSH
        self.sketcher = FastSketchLSH.FastSimilaritySketch(K, 42)

    def fingerprints(self, texts: list[bytes]) -> Any:
        return np.asarray(self.sketcher.batch([characters(text) for text in texts], num_threads=1))

    def near(self, texts: list[bytes]) -> set[int]:
        rows = np.concatenate([self.fingerprints(part) for part in parts(texts)])
        index = self.library.LSH(K, BANDS, num_threads=1)
        index.insert(rows)
        flat, ends = index.query(rows, format="csr")
        flat, ends = np.asarray(flat), np.asarray(ends)
        return members([flat[ends[i] : ends[i + 1]].tolist() for i in range(len(rows))], rows)


class FastSketchFlat(FastSketchReadme):
    shingles = "5 bytes, hashed in numpy"

    def fingerprints(self, texts: list[bytes]) -> Any:
        tokens, offsets = hashed(texts)
        return self.sketcher.batch_csr(tokens, offsets, prehashed=True, num_threads=1)


class Datasketch(Way):
    package = "datasketch"

    def __init__(self) -> None:
        import datasketch

        self.library = datasketch

    def fingerprints(self, texts: list[bytes]) -> Any:
        sets = [[token.encode("utf-8") for token in set(characters(text))] for text in texts]
        return self.library.MinHash.bulk(sets, num_perm=K)

    def estimate(self, a: Any, b: Any) -> float:
        return a.jaccard(b)

    def near(self, texts: list[bytes]) -> set[int]:
        index = self.library.MinHashLSH(threshold=THRESHOLD, num_perm=K, params=(BANDS, WIDTH))
        made = self.fingerprints(texts)
        for i, one in enumerate(made):
            index.insert(i, one)
        found = set()
        for i, one in enumerate(made):
            if any(j != i and one.jaccard(made[j]) >= THRESHOLD for j in index.query(one)):
                found.add(i)
        return found


class Gaoya(Way):
    package = "gaoya"
    indexed = "query of its index, which checks by estimate"

    def index(self) -> Any:
        from gaoya.minhash import MinHashStringIndex

        return MinHashStringIndex(32, THRESHOLD, BANDS, WIDTH, None, "char", False, (N, N))

    def __init__(self) -> None:
        self.empty = self.index()

    def fingerprints(self, texts: list[bytes]) -> Any:  # a query of an empty index computes one
        for text in texts:
            self.empty.query(text.decode("utf-8"))
        return None

    def near(self, texts: list[bytes]) -> set[int]:
        index, decoded = self.index(), [text.decode("utf-8") for text in texts]
        for i, text in enumerate(decoded):
            index.insert_document(i, text)
        return {i for i, text in enumerate(decoded) if any(j != i for j in index.query(text))}


class TextDedup(Way):
    """The steps of its command, on texts in memory: fingerprints, a table per band, union-find; no verification.

    It has word shingles only, so the true pairs are those of its own shingles, found here by an exact join.
    """

    package = "text-dedup"
    shingles = "5 words"
    indexed = "clusters of shared bands, without a check"

    def __init__(self) -> None:
        from text_dedup import minhash

        self.module = minhash
        random = np.random.RandomState(42)
        prime = np.uint32((1 << 32) - 5)
        self.options = {
            "num_perm": K,
            "ngram_size": N,
            "min_length": 0,
            "hashranges": [(i * WIDTH, (i + 1) * WIDTH) for i in range(BANDS)],
            "permutations": (
                random.randint(1, prime, size=(K,), dtype=np.uint32),
                random.randint(0, prime, size=(K,), dtype=np.uint32),
            ),
            "hash_func": minhash.xxh3_32hash,
            "dtype": np.uint32,
            "max_hash": np.uint32((1 << 32) - 1),
            "modulo_prime": prime,
        }

    def bands(self, texts: list[bytes]) -> list[list[bytes]]:
        key = self.module.SIGNATURE_COLUMN
        return [self.module.embed_func(text.decode("utf-8"), i, **self.options)[key] for i, text in enumerate(texts)]

    def fingerprints(self, texts: list[bytes]) -> Any:
        return [np.frombuffer(b"".join(bands), np.uint32) for bands in self.bands(texts)]

    def near(self, texts: list[bytes]) -> set[int]:
        tables: list[dict[bytes, set[int]]] = [defaultdict(set) for _ in range(BANDS)]
        for i, bands in enumerate(self.bands(texts)):
            for table, key in zip(tables, bands):
                table[key].add(i)
        clusters = self.module.UnionFind()
        for table in tables:
            for cluster in table.values():
                for i in cluster if len(cluster) > 1 else ():
                    clusters.union(i, min(cluster))
        members = Counter(map(clusters.find, clusters.parent))
        return {i for i in clusters.parent if members[clusters.find(i)] > 1}

    def pairs(self, texts: list[bytes], pairs: list[Pair]) -> list[Pair]:
        sets = []
        for text in texts:
            words = self.module.NON_ALPHA.split(text.decode("utf-8").lower())
            sets.append({" ".join(shingle).lower() for shingle in self.module.ngrams(words, N, 0)})
        return joined(sets)


class Datatrove(Way):
    """Its first three steps, with files in a temporary folder: signatures, pairs of each bucket, clusters.

    It has word shingles only, of normalised text, so the true pairs are those of its own shingles.
    """

    package = "datatrove"
    shingles = "5 words"
    indexed = "clusters of shared bands, without a check"
    largest_error = None  # the estimates are not part of its results

    def __init__(self) -> None:
        from datatrove.data import Document
        from datatrove.pipeline.dedup import minhash

        self.document, self.module = Document, minhash
        self.config = minhash.MinhashConfig(n_grams=N, num_buckets=BANDS, hashes_per_bucket=WIDTH)
        self.folder = tempfile.TemporaryDirectory()
        self.step = self.signatures("unused")

    def signatures(self, name: str) -> Any:
        return self.module.MinhashDedupSignature(f"{self.folder.name}/{name}", self.config)

    def fingerprints(self, texts: list[bytes]) -> Any:
        made = [self.step.get_shingles(text.decode("utf-8")) for text in texts]
        return [self.step.get_signature(shingles) if len(shingles) else None for shingles in made]

    def near(self, texts: list[bytes]) -> set[int]:
        folders = [f"{self.folder.name}/{name}" for name in ("signatures", "pairs", "clusters")]
        documents = (self.document(text=text.decode("utf-8"), id=str(i)) for i, text in enumerate(texts))
        self.signatures("signatures").run(documents)
        of_buckets = self.module.MinhashDedupBuckets(folders[0], folders[1], config=self.config)
        for bucket in range(BANDS):
            of_buckets.run(rank=bucket, world_size=BANDS)
        self.module.MinhashDedupCluster(folders[1], folders[2], self.config, save_cluster_id=True).run()
        written = Path(folders[2], "000000.clusters").read_bytes()
        return set(np.frombuffer(written, "<u4")[::2].tolist())

    def pairs(self, texts: list[bytes], pairs: list[Pair]) -> list[Pair]:
        return joined([set(self.step.get_shingles(text.decode("utf-8")).ravel().tolist()) for text in texts])


class PlainPython(Way):
    package = "numpy"
    shingles = "5 bytes"
    documents = 40

    def __init__(self) -> None:
        sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
        import reference

        self.reference = reference

    def fingerprints(self, texts: list[bytes]) -> Any:
        return [self.reference.sketch(text, (K, 0), None, n=N, unit="byte") for text in texts]


WAYS: dict[str, type[Way]] = {
    "lsh, fss": Lsh,
    "lsh, murmur3": LshMurmur,
    "lsh, fss, by word": LshWords,
    "rensa, flat": RensaFlat,
    "FastSketchLSH, CSR": FastSketchFlat,
    "gaoya": Gaoya,
    "rensa, rho": RensaRho,
    "rensa, README": RensaReadme,
    "FastSketchLSH, README": FastSketchReadme,
    "datasketch": Datasketch,
    "text-dedup": TextDedup,
    "datatrove": Datatrove,
    "plain Python, fss": PlainPython,
}


def slices(way: Way, texts: list[bytes], seconds: float) -> dict[str, float]:
    """Measure MB of raw text per CPU second in slices of about 20 ms, each on the next texts: best and median."""
    started = time.process_time()
    way.fingerprints(texts[:16])
    count = max(1, min(len(texts), round(16 * 0.02 / max(time.process_time() - started, 1e-6))))
    rates: list[float] = []
    spent, at = 0.0, 0
    while spent < seconds or len(rates) < 3:
        chosen = [texts[(at + i) % len(texts)] for i in range(count)]
        at += count
        started = time.process_time()
        way.fingerprints(chosen)
        taken = time.process_time() - started
        spent += taken
        rates.append(sum(map(len, chosen)) / taken / 1e6)
    return {"best_mb_per_second": max(rates), "median_mb_per_second": sorted(rates)[len(rates) // 2]}


def estimation_error(way: Way, texts: list[bytes], pairs: list[tuple[int, int, float]]) -> float | None:
    """Return the mean absolute error of the estimates, over some pairs; None where it cannot be measured."""
    some = pairs[:: max(1, len(pairs) // 200)]
    if not some or isinstance(way, (Gaoya, Datatrove, PlainPython)):
        return None
    wanted = sorted({document for i, j, _ in some for document in (i, j)})
    made = (
        way.rows([texts[i] for i in wanted])
        if isinstance(way, RensaReadme)
        else way.fingerprints([texts[i] for i in wanted])
    )
    row = {document: made[i] for i, document in enumerate(wanted)}
    return sum(abs(way.estimate(row[i], row[j]) - exact) for i, j, exact in some) / len(some)


def peak_memory() -> float:
    """Return the peak memory of this process in MB; getrusage may include the peak of its parent process."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=WAYS)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("pairs", type=Path)
    options = parser.parse_args()
    texts = [line.rstrip(b"\n").split(b"\t")[1] for line in options.corpus.read_bytes().splitlines(keepends=True)]
    pairs = [
        (int(i), int(j), float(s)) for i, j, s in (line.split("\t") for line in options.pairs.read_text().splitlines())
    ]
    way = WAYS[options.name]()
    some = texts[: way.documents]
    pairs = way.pairs(some, pairs)
    error = estimation_error(way, texts, pairs)
    if error is not None and way.largest_error is not None and error > way.largest_error:
        raise SystemExit(f"wrong answer, benchmark stopped: mean error of estimates is {error:.3f}")
    result: dict[str, Any] = {
        "package": way.package,
        "version": importlib.metadata.version(way.package),
        "shingles": way.shingles,
        "estimation_error": error,
        "fingerprints": slices(way, some, 1.0),
    }
    before = peak_memory()
    started = time.process_time()
    found = way.near(some)
    taken = time.process_time() - started
    if found is not None:
        expected = {x for i, j, s in pairs if s >= THRESHOLD for x in (i, j)}
        result["near"] = {
            "how": way.indexed,
            "documents": len(some),
            "cpu_seconds": taken,
            "mb_per_second": sum(map(len, some)) / taken / 1e6,
            "recall": len(found & expected) / max(len(expected), 1),
            "precision": len(found & expected) / max(len(found), 1),
            "memory_growth_mb": peak_memory() - before,
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
