"""A news wire: the steps of an article and of a notebook that this library reproduces, in their two forms.

Rewritten for the sample of the repository and, where the corpus is found, for Reuters-21578.
"""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import pytest
import reference

import lsh
import lsh.cache
import lsh.lsh
from lsh import MinHasher

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


def all_pairs(texts: list[str], threshold: float, n: int, unit: str) -> set[tuple[int, int]]:
    """Brute force: every pair at the threshold."""
    sets = [frozenset(reference.shingles(text, n, unit)) for text in texts]
    pairs = itertools.combinations(range(len(sets)), 2)
    return {(i, j) for i, j in pairs if len(sets[i] & sets[j]) >= threshold * len(sets[i] | sets[j])}


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


def check_news_wire(documents: list[tuple[str, str]], similar: set[tuple[int, int]]) -> None:
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
    assert similar <= at_20  # a pair of J = .9 is missed with probability 2e-8
    assert len(at_20) < len(documents) ** 2 / 40  # and the candidates are few: 5 % of all pairs at most


def test_news_wire_on_the_sample(sample):
    check_news_wire(sample, all_pairs([text for _, text in sample], 0.9, 5, "byte"))


@pytest.mark.slow
def test_news_wire_on_reuters(stories, data_folder):
    lines = {doc_id: line for line, (doc_id, _) in enumerate(stories)}
    with gzip.open(data_folder / "reuters_pairs.tsv.gz", "rb") as file:
        truth = {
            (lines[a], lines[b])
            for a, b, value in read_rows(file.read())
            if a in lines and b in lines and float(value) >= 0.9
        }
    assert len(truth) >= 10
    check_news_wire(stories, truth)
