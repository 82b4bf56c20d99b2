"""The steps of the documents that this library reproduces: a news wire (in two forms), a tutorial, uploads.

Rewritten for the sample of the repository and, where the corpus is found, for Reuters-21578. Statistical tests state
ALPHA and draw with fixed seeds, so the result is always the same.
"""

from __future__ import annotations

import gzip
import itertools
import random
from pathlib import Path

import numpy
import pytest
import reference
from estimates import binomial_test

import lsh
import lsh.cache
import lsh.lsh
from lsh import Bands, Cache, MinHasher, Shingles

ALPHA = 1e-4  # probability that ideal hash functions would fail a statistical test
SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sample.tsv"


def read_rows(data: bytes) -> list[list[str]]:
    lines = data.decode("utf-8").split("\n")
    assert lines.pop() == ""
    return [line.split("\t") for line in lines]


@pytest.fixture(scope="module")
def sample() -> list[tuple[str, str]]:
    return [(doc_id, text) for doc_id, text in read_rows(SAMPLE.read_bytes())]


@pytest.fixture(scope="module")
def stories(data_folder) -> list[tuple[str, str]]:
    """The first 1,000 stories of Reuters-21578."""
    with gzip.open(data_folder / "reuters21578.tsv.gz", "rb") as file:
        return [(doc_id, text) for doc_id, text in read_rows(file.read())[:1000]]


def all_pairs(texts: list[str], threshold: float, n: int, unit: str) -> dict[tuple[int, int], float]:
    """Brute force: every pair at the threshold with its exact similarity."""
    sets = [frozenset(reference.shingles(text, n, unit)) for text in texts]
    pairs = {}
    for (i, a), (j, b) in itertools.combinations(enumerate(sets), 2):
        if min(len(a), len(b)) < threshold * max(len(a), len(b)) or not a or not b:
            continue
        shared = len(a & b)
        if shared / (len(a) + len(b) - shared) >= threshold:
            pairs[i, j] = shared / (len(a) + len(b) - shared)
    return pairs


# The news wire: candidates by bins, as in the article and as in the notebook.


def pairs_in_bins(bins) -> set[tuple]:
    """All pairs that share a bin, gathered by going through the bins as the documents do."""
    pairs = set()
    for band in bins:
        for key in band:
            if len(band[key]) > 1:
                pairs.update(itertools.combinations(band[key], r=2))
    return pairs


def candidates(documents: list[tuple[str, str]], num_bands: int) -> set[tuple]:
    """Pairs of (line number, id)."""
    hasher = lsh.minhash.MinHasher(seeds=100, char_ngram=5, hashbytes=4)
    cache = lsh.cache.Cache(num_bands=num_bands, hasher=hasher)
    for line, (doc_id, text) in enumerate(documents):
        cache.add_fingerprint(hasher.fingerprint(text.encode("utf8")), doc_id=(line, doc_id))
    pairs = pairs_in_bins(cache.bins)
    assert pairs == cache.get_all_duplicates()
    return pairs


def candidates_of_the_older_form(documents: list[tuple[str, str]], num_bands: int) -> set[tuple]:
    """Pairs of (fingerprint, (line number, id))."""
    from lsh import lsh, minhash

    hasher = minhash.MinHasher(seeds=100, char_ngram=5, hashbytes=4)
    cache = lsh.Cache(bands=num_bands, hasher=hasher)
    for line, (doc_id, text) in enumerate(documents):
        cache.update(hasher.fingerprint(text.encode("utf8")), meta=(line, doc_id))
    return pairs_in_bins(cache.bins)


BANDS = [2, 5, 10, 20]


def check_news_wire(documents: list[tuple[str, str]], similar: dict[tuple[int, int], float]) -> None:
    """Candidates grow with the bands; both forms agree; at 20 bands all `similar` pairs are among them."""
    found = [candidates(documents, num_bands) for num_bands in BANDS]
    for fewer, more in itertools.pairwise(map(len, found)):
        assert fewer < more
    for num_bands, pairs in zip(BANDS, found, strict=True):
        older = candidates_of_the_older_form(documents, num_bands)
        assert {(a, b) for (_, a), (_, b) in older} == pairs
        fingerprints = {meta: values for pair in older for values, meta in pair}
        for (line, _), values in itertools.islice(fingerprints.items(), 5):
            assert list(values) == MinHasher(100, 5, hashbytes=4).fingerprint(documents[line][1]).tolist()
    at_20 = {(a, b) for (a, _), (b, _) in found[-1]}
    assert all(a < b for a, b in at_20)
    assert len(similar) > 0
    assert similar.keys() <= at_20  # a pair of J = .9 is missed with probability 2e-8
    assert len(at_20) < len(documents) ** 2 / 40  # and the candidates are few: 5 % of all pairs at most


def test_news_wire_on_the_sample(sample):
    check_news_wire(sample, all_pairs([text for _, text in sample], 0.9, 5, "byte"))


@pytest.mark.slow
def test_news_wire_on_reuters(stories, data_folder):
    lines = {doc_id: line for line, (doc_id, _) in enumerate(stories)}
    with gzip.open(data_folder / "reuters_pairs.tsv.gz", "rb") as file:
        truth = {
            (lines[a], lines[b]): float(value)
            for a, b, value in read_rows(file.read())
            if a in lines and b in lines and float(value) >= 0.9
        }
    assert len(truth) >= 10
    check_news_wire(stories, truth)


# The tutorial: 10-shingles, lower-cased, white space collapsed.

TUTORIAL = {"lowercase": True, "collapse_whitespace": True}
LOREM = (
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore "
    "magna aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo "
    "consequat. Duis aute irure dolor in reprehenderit in voluptate velit esse cillum dolore eu fugiat nulla "
    "pariatur. Excepteur sint occaecat cupidatat non proident"
)
LOREM_PAIR = [LOREM + ", sunt in culpa qui officia deserunt mollit anim id est laborum.", LOREM + " bla bla bla."]


@pytest.mark.parametrize("hashbytes", [4, 8])
def test_two_texts_of_the_tutorial(hashbytes):
    """Similarity .8285: the pair is found by 100 seeds in 10 bands, and its estimate is above .7."""
    shingles = Shingles(10, **TUTORIAL)
    assert lsh.jaccard(*LOREM_PAIR, shingles=shingles) == 0.8285077951002228
    hasher = MinHasher(seeds=100, hashbytes=hashbytes, shingles=shingles)
    cache = Cache(hasher, num_bands=10)
    cache.add_docs(LOREM_PAIR, range(2))
    assert cache.get_all_duplicates(min_jaccard=0.7) == {(0, 1)}
    assert binomial_test(round(hasher.jaccard(*LOREM_PAIR) * 100), 100, 0.8285077951002228) >= ALPHA
    found = list(lsh.find_pairs(LOREM_PAIR, threshold=0.7, hasher=hasher, bands=Bands(10, 10)))
    assert found == [(0, 1, 0.8285077951002228)]


# The uploads: word shingles, 400 hashes, one signature ranked against many.


def test_upload_ranked_against_the_library(sample):
    """An edited copy ranks its original first; estimates lie within the binomial error of the exact similarities.

    Each of the 200 comparisons is tested at ALPHA / 200.
    """
    shingles = Shingles(2, unit="word", lowercase=True)
    texts = [text for _, text in sample]
    words = texts[17].split()
    upload = " ".join([*words[:6], "hastily", *words[6:]])
    hasher = MinHasher(random.Random(400).sample(range(2**32), 400), shingles=shingles)
    estimated = hasher.similarities(hasher.fingerprint(upload), hasher.fingerprints(texts))
    exact = [reference.jaccard(upload, text, 2, "word", lowercase=True) for text in texts]
    assert lsh.jaccard_matrix([upload], texts, shingles=shingles).tolist() == [exact]
    assert all(binomial_test(round(e * 400), 400, x) >= ALPHA / 200 for e, x in zip(estimated, exact, strict=True))
    assert exact[numpy.argmax(estimated)] == exact[17] == max(exact) > 0.85
    reject = {i for i in range(200) if estimated[i] >= 0.8}
    assert 17 in reject
    assert all(exact[i] > 0.6 for i in reject)
