"""A news wire: the steps of an article and of a notebook that this library reproduces, in their two forms."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import reference

import lsh
import lsh.cache
import lsh.lsh
from lsh import MinHasher

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sample.tsv"
BANDS = [2, 5, 10, 20]


@pytest.fixture(scope="module")
def documents() -> list[tuple[str, str]]:
    lines = SAMPLE.read_bytes().decode("utf-8").split("\n")[:-1]
    return [(doc_id, text) for doc_id, text in (line.split("\t") for line in lines)]


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


def test_a_news_wire(documents):
    """Candidates grow with the bands; both forms agree; at 20 bands all similar pairs are among them."""
    found = [candidates(documents, num_bands) for num_bands in BANDS]
    for fewer, more in itertools.pairwise(map(len, found)):
        assert fewer < more
    for num_bands, pairs in zip(BANDS, found, strict=True):
        older = candidates_of_the_older_form(documents, num_bands)
        assert {(a, b) for (_, a), (_, b) in older} == pairs
        fingerprints = {meta: values for pair in older for values, meta in pair}
        for (line, _), values in itertools.islice(fingerprints.items(), 5):
            assert list(values) == MinHasher(100, 5, hashbytes=4).fingerprint(documents[line][1]).tolist()
    sets = [frozenset(reference.shingles(text, 5, "byte")) for _, text in documents]
    pairs = set(itertools.combinations(range(len(sets)), 2))
    similar = {(i, j) for i, j in pairs if len(sets[i] & sets[j]) >= 0.9 * len(sets[i] | sets[j])}
    at_20 = {(a, b) for (a, _), (b, _) in found[-1]}
    assert similar
    assert similar <= at_20 <= pairs  # a pair of J = .9 is missed with probability 2e-8
    assert len(at_20) < len(pairs) / 20
