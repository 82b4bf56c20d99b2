"""Wrong uses, each marked with the error of mypy: without the error, the mark is an error itself. Never run."""

import numpy as np

import lsh
from lsh import plot, presets, report

TEXTS = ["one text", "another text"]


def collections() -> None:
    """Misuse `deduplicate`, `Deduplication` and `find_pairs`."""
    lsh.deduplicate(TEXTS, keep="newest")  # type: ignore[arg-type]
    lsh.deduplicate(5)  # type: ignore[arg-type]
    lsh.deduplicate([1, 2])  # type: ignore[arg-type]
    lsh.deduplicate(TEXTS, TEXTS)  # type: ignore[arg-type]
    lsh.deduplicate(TEXTS, "0.8")  # type: ignore[arg-type]
    lsh.deduplicate(TEXTS, 0.8, 0.99)  # type: ignore[call-arg]
    lsh.deduplicate(TEXTS, clusters="chains")  # type: ignore[arg-type]
    lsh.deduplicate(TEXTS, verify="hash")  # type: ignore[arg-type]
    lsh.deduplicate(TEXTS, missing=None)  # type: ignore[arg-type]
    lsh.deduplicate(TEXTS, against=0.8)  # type: ignore[arg-type]
    lsh.deduplicate(TEXTS, others=TEXTS)  # type: ignore[call-arg]
    lsh.deduplicate(TEXTS, bands="20x6")  # type: ignore[arg-type]
    lsh.deduplicate(TEXTS, shingles=5)  # type: ignore[arg-type]
    lsh.deduplicate(TEXTS, progress=5)  # type: ignore[arg-type]
    lsh.deduplicate(TEXTS).to_pandas("kept")  # type: ignore[arg-type]
    lsh.deduplicate(TEXTS).kept = np.zeros(2, np.int64)  # type: ignore[misc]
    lsh.find_pairs(TEXTS, TEXTS)  # type: ignore[arg-type]
    lsh.find_pairs(TEXTS, others=0.8)  # type: ignore[arg-type]
    lsh.find_pairs(TEXTS, against=TEXTS)  # type: ignore[call-arg]
    lsh.find_pairs(TEXTS, verify=True)  # type: ignore[arg-type]


def texts_and_fingerprints() -> None:
    """Misuse `Shingles`, `jaccard`, `jaccard_matrix` and `MinHasher`."""
    hasher = lsh.MinHasher(64)
    lsh.Shingles(4, "line")  # type: ignore[arg-type]
    lsh.Shingles(4, normalize="nfc")  # type: ignore[arg-type]
    lsh.Shingles(4).n = 5  # type: ignore[misc]
    lsh.jaccard("a", 5)  # type: ignore[arg-type]
    lsh.jaccard("a", "b", lsh.Shingles(4))  # type: ignore[call-arg]
    lsh.MinHasher()  # type: ignore[call-arg]
    lsh.MinHasher(64, hashbytes=3)  # type: ignore[arg-type]
    lsh.MinHasher(64, scheme="sha1")  # type: ignore[arg-type]
    hasher.fingerprint(["a"])  # type: ignore[arg-type]
    hasher.fingerprints(lambda: TEXTS)  # type: ignore[arg-type]
    hasher.similarities(TEXTS)  # type: ignore[arg-type]
    hasher.scheme = "fss"  # type: ignore[misc]


def bands_and_plans() -> None:
    """Misuse `plan`, `Plan` and `Bands`."""
    lsh.plan("0.8")  # type: ignore[arg-type]
    lsh.plan(shingles=5)  # type: ignore[arg-type]
    lsh.plan().probability(["0.5"])  # type: ignore[list-item]
    lsh.plan().bands.keys([[1, 2]])  # type: ignore[arg-type]
    lsh.plan().threshold = 0.5  # type: ignore[misc]
    lsh.Bands(20, 5).recall_at(0.8)  # type: ignore[attr-defined]
    lsh.Bands(widths=5)  # type: ignore[arg-type]
    lsh.Bands([5, 5])  # type: ignore[arg-type]


def caches() -> None:
    """Misuse `Cache`."""
    cache = lsh.Cache(lsh.MinHasher(64))
    lsh.Cache(64)  # type: ignore[arg-type]
    lsh.Cache(lsh.MinHasher(64), bands=4)  # type: ignore[arg-type]
    lsh.Cache.create(bands=lsh.plan(), threshold="0.8")  # type: ignore[arg-type]
    lsh.Cache(lsh.MinHasher(64), lsh.Bands(4, 5))  # type: ignore[arg-type]
    cache.add("one text")  # type: ignore[call-arg]
    cache.add_doc("one text", ["not hashable"])  # type: ignore[arg-type]
    cache.add_docs(TEXTS, 5)  # type: ignore[arg-type]
    cache.query(5)  # type: ignore[arg-type]
    cache.query(doc_id="a")  # type: ignore[call-arg]
    cache.query("one text", 0.8)  # type: ignore[call-arg]
    print(cache.query("one text")[0].score)  # type: ignore[attr-defined]


def indexes(index: lsh.Index, screen: lsh.Screen) -> None:
    """Misuse `Index` and `Screen`."""
    lsh.Index("folder")  # type: ignore[arg-type]
    lsh.Index.create("folder", texts="all")  # type: ignore[arg-type]
    lsh.Index.create("folder", sketch="4bit")  # type: ignore[arg-type]
    lsh.Index.create("folder", bands="20x6")  # type: ignore[arg-type]
    lsh.Index.open("folder", "w")  # type: ignore[arg-type]
    index.add("one text", 1.5)  # type: ignore[arg-type]
    index.add("one text", ("a", 1))  # type: ignore[arg-type]
    index.query("one text", threshold=0.8)  # type: ignore[call-arg]
    index.deduplicate(keep="longest")  # type: ignore[arg-type]
    index.expire("2024-01-01")  # type: ignore[arg-type]
    index.threshold = 0.5  # type: ignore[misc]
    lsh.Screen("folder")  # type: ignore[arg-type]
    lsh.Screen.create("folder", threshold=0.8)  # type: ignore[call-arg]
    screen.submit("one text")  # type: ignore[call-arg]
    if screen.check("one text").decision == "rejected":  # type: ignore[comparison-overlap]
        screen.reject = 0.8  # type: ignore[misc]


def reports_presets_and_plots() -> None:
    """Misuse `lsh.report`, `lsh.presets` and `lsh.plot`."""
    result = lsh.deduplicate(TEXTS)
    report.html(result)  # type: ignore[call-arg]
    report.html(TEXTS, texts=TEXTS)  # type: ignore[arg-type]
    report.choose(result, [8, 12])  # type: ignore[call-arg]
    report.excerpts(b"bytes", "str")  # type: ignore[arg-type]
    presets.preset("llama")  # type: ignore[arg-type]
    plot.s_curve(5)  # type: ignore[arg-type]
