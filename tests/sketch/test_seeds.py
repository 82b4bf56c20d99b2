"""The steps of the documents that this library reproduces: a news wire (two), advertisements, uploads, a lecture.

Rewritten for the sample of the repository and, where the corpora are found, for Reuters-21578 and
advertisements for flats. Statistical tests state ALPHA and draw with fixed seeds, so the result is always the same.
"""

from __future__ import annotations

import gzip
import itertools
import math
import random
from pathlib import Path

import numpy
import pytest
import reference

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


@pytest.fixture(scope="module")
def advertisements(data_folder) -> list[str]:
    """Title and description of the first 500 advertisements."""
    with gzip.open(data_folder / "ads_rome_it.tsv.gz", "rb") as file:
        return [row[1] for row in read_rows(file.read())[:500]]


def all_pairs(texts: list[str], threshold: float, n: int, unit: str, **options) -> dict[tuple[int, int], float]:
    """Brute force: every pair at the threshold with its exact similarity."""
    sets = [frozenset(reference.shingles(text, n, unit, **options)) for text in texts]
    pairs = {}
    for (i, a), (j, b) in itertools.combinations(enumerate(sets), 2):
        if min(len(a), len(b)) < threshold * max(len(a), len(b)) or not a or not b:
            continue
        shared = len(a & b)
        if shared / (len(a) + len(b) - shared) >= threshold:
            pairs[i, j] = shared / (len(a) + len(b) - shared)
    return pairs


def binomial_p_value(found: int, trials: int, p: float) -> float:
    """Two-sided: twice the lesser tail, summed term by term."""
    if p in (0.0, 1.0):
        return float(found == trials * p)

    def term(x: int) -> float:
        ways = math.lgamma(trials + 1) - math.lgamma(x + 1) - math.lgamma(trials - x + 1)
        return math.exp(ways + x * math.log(p) + (trials - x) * math.log1p(-p))

    below = math.fsum(term(x) for x in range(found + 1))
    above = math.fsum(term(x) for x in range(found, trials + 1))
    return min(1.0, 2 * min(below, above))


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


def test_candidates_are_those_of_the_reference(sample):
    """The first 60 texts, the first 20 seeds: bins of the compiled tables against bins of the slow reference code."""
    documents = sample[:60]
    seeds = reference.seed_values(20, 0)
    rows = [reference.fingerprint(text[:150], seeds, hashbytes=4, n=5, unit="byte") for _, text in documents]
    cache = lsh.cache.Cache(MinHasher(20, char_ngram=5, hashbytes=4), 10)
    cache.add_docs([text[:150] for _, text in documents], range(60))
    expected = reference.candidate_pairs(rows, [2] * 10, 4)
    assert pairs_in_bins(cache.bins) == cache.get_all_duplicates() == expected
    assert 5 < len(expected) < 1000


def test_bins_without_meta():
    """`update(fingerprint)` alone: bins contain (fingerprint, None), and a copy adds no element."""
    hasher = MinHasher(seeds=100, char_ngram=5, hashbytes=4)
    cache = lsh.lsh.Cache(bands=10, hasher=hasher)
    texts = [b"a line of the wire", b"another line of the wire, longer", b"a line of the wire"]
    for line in texts:
        cache.update(hasher.fingerprint(line))
    ids = {(tuple(hasher.fingerprint(line).tolist()), None) for line in texts}
    assert len(ids) == len(cache) == 2
    assert set(itertools.chain.from_iterable(ids for band in cache.bins for ids in band.values())) == ids


def test_estimates_with_fresh_seeds():
    """The two short texts: exact 22/47; five estimates of 100 seeds and five of 1,000, within the binomial error.

    The notebook draws new seeds in each iteration; here its draws are fixed. Each estimate is tested at ALPHA / 10.
    """
    a, b = "Lorem Ipsum dolor sit amet", "Lorem Ipsum dolor sit amet is how dummy text starts"
    exact = reference.jaccard(a, b, 5, "byte")
    assert exact == 22 / 47
    assert reference.jaccard(a[:-1], b[:-1], 5, "byte") == 0.45652173913043476  # without the last shingle of each
    draw = random.Random(3)
    spread = {}
    for seeds in (100, 1000):
        estimates = []
        for hasher in [MinHasher(draw.sample(range(2**32), seeds), char_ngram=5) for _ in range(5)]:
            one, other = hasher.fingerprint(a.encode("utf8")), hasher.fingerprint(b.encode("utf8"))
            assert hasher.seeds == seeds
            by_hand = sum(one[i] == other[i] for i in range(hasher.seeds)) / hasher.seeds
            assert hasher.jaccard(one, other) == hasher.jaccard(a, b) == by_hand
            assert binomial_p_value(round(by_hand * seeds), seeds, exact) >= ALPHA / 10
            estimates.append(by_hand)
        spread[seeds] = numpy.mean([(estimate - exact) ** 2 for estimate in estimates])
    assert spread[1000] < spread[100]  # five estimates each, a tenth of the variance: fails with probability .01


def test_fresh_seeds_are_fresh():
    """In a loop `random_state=None` makes another hasher each time; the default makes the same one."""
    drawn = {tuple(MinHasher(20, 5, random_state=None).seed_values.tolist()) for _ in range(5)}
    assert len(drawn) == 5
    assert len({tuple(MinHasher(20, 5).seed_values.tolist()) for _ in range(5)}) == 1


def test_collision_of_two_fifths():
    """Sets of three and four elements with two of five in common: equal minima in 2/5 of 1,000 seeds."""
    hasher = MinHasher(random.Random(5).sample(range(2**32), 1000), shingles=Shingles(1, "word"))
    matches = round(hasher.jaccard("b d e", "a b c d") * 1000)
    assert lsh.jaccard("b d e", "a b c d", shingles=Shingles(1, "word")) == 2 / 5
    assert binomial_p_value(matches, 1000, 2 / 5) >= ALPHA


# The advertisements: 10-shingles, lower-cased, white space collapsed; 50 hashes in 10 bands; threshold .8.

TUTORIAL = {"lowercase": True, "collapse_whitespace": True}
BLOCKS = 40


def check_advertisements(texts: list[str]) -> None:
    """Verified candidates are pairs of brute force, and each pair is missed as often as the S-curve predicts.

    40 groups of 50 hashes are 40 independent runs. The number of runs in which a pair was found is binomial; the
    tests of all pairs share ALPHA. Pairs of equal sets are found in every run.
    """
    shingles = Shingles(10, **TUTORIAL)
    exact = all_pairs(texts, 0.8, 10, "char", **TUTORIAL)
    assert len(exact) > 20
    draw = random.Random(50)
    bands = Bands(10, 5)
    times: dict[tuple[int, int], int] = dict.fromkeys(exact, 0)
    for _ in range(BLOCKS):
        hasher = MinHasher(draw.sample(range(2**32), 50), hashbytes=4, shingles=shingles)
        cache = Cache(hasher, num_bands=10)
        cache.add_docs(texts, range(len(texts)))
        assert cache.bands == bands
        for pair in cache.iter_duplicates():
            if pair in times:
                times[pair] += 1
    curve = {pair: float(bands.probability(similarity)) for pair, similarity in exact.items()}
    assert all(times[pair] == BLOCKS for pair in exact if exact[pair] == 1)
    tested = {pair: binomial_p_value(times[pair], BLOCKS, curve[pair]) for pair in exact if exact[pair] < 1}
    assert len(tested) > 10
    assert min(tested.values()) >= ALPHA / len(tested)
    verified = list(lsh.find_pairs(texts, threshold=0.8, hasher=hasher, bands=bands))
    assert {(i, j): s for i, j, s in verified}.items() <= exact.items()
    last_run = {pair for pair in cache.iter_duplicates() if pair in exact}
    assert {(i, j) for i, j, _ in verified} == last_run


def test_advertisements_on_the_sample(sample):
    check_advertisements([text for _, text in sample])


@pytest.mark.slow
def test_advertisements_of_rome(advertisements):
    check_advertisements(advertisements)


def test_advertisements_deduplicated(sample):
    """Deduplicate the sample: brute force confirms each removal, and at least 95 % of the exact removals are made."""
    texts = [text for _, text in sample]
    result = lsh.deduplicate(texts, 0.8, shingles=Shingles(10, **TUTORIAL))
    exact = all_pairs(texts, 0.8, 10, "char", **TUTORIAL)
    for document, kept, similarity, _ in result.removed:
        assert exact[min(document, kept), max(document, kept)] == similarity
    expected = reference.deduplicate_exact(texts, 0.8, n=10, unit="char", **TUTORIAL)
    assert len(result.removed) >= 0.95 * len(expected.removed) > 30


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
    assert binomial_p_value(round(hasher.jaccard(*LOREM_PAIR) * 100), 100, 0.8285077951002228) >= ALPHA
    found = list(lsh.find_pairs(LOREM_PAIR, threshold=0.7, hasher=hasher, bands=Bands(10, 10)))
    assert found == [(0, 1, 0.8285077951002228)]


# The uploads: word shingles, 400 hashes, one signature ranked against many.


def test_upload_ranked_against_the_library(sample):
    """An edited copy ranks its original first; estimates lie within the binomial error of the exact similarities.

    400 hashes have a standard error of at most .025, so 5 % is two of them. Each of the 200 comparisons is tested at
    ALPHA / 200.
    """
    shingles = Shingles(2, unit="word", lowercase=True)
    texts = [text for _, text in sample]
    words = texts[17].split()
    upload = " ".join([*words[:6], "hastily", *words[6:]])
    hasher = MinHasher(random.Random(400).sample(range(2**32), 400), shingles=shingles)
    estimated = hasher.similarities(hasher.fingerprint(upload), hasher.fingerprints(texts))
    assert estimated.shape == (200,)
    exact = [reference.jaccard(upload, text, 2, "word", lowercase=True) for text in texts]
    assert lsh.jaccard_matrix([upload], texts, shingles=shingles).tolist() == [exact]
    assert all(binomial_p_value(round(e * 400), 400, x) >= ALPHA / 200 for e, x in zip(estimated, exact, strict=True))
    ranking = numpy.argsort(-estimated, kind="stable")
    assert exact[ranking[0]] == max(exact) > 0.85
    assert exact[17] == max(exact)
    assert numpy.std(estimated - exact) < 0.025
    reject = {i for i in range(200) if estimated[i] >= 0.8}
    assert 17 in reject
    assert all(exact[i] > 0.6 for i in reject)


def test_upload_by_the_cache(sample):
    """The same decision (reject, recommend or keep) without comparing all texts."""
    texts = [text for _, text in sample]
    hasher = MinHasher(400, shingles=Shingles(2, unit="word", lowercase=True))
    library = Cache(hasher, num_bands=100)
    library.add_docs(texts, range(200))
    words = texts[17].split()
    same, moderate = texts[17].upper(), " ".join(words[: len(words) * 3 // 5])
    assert 17 in library.get_duplicates_of(same, min_jaccard=0.99)
    assert 17 in library.get_duplicates_of(moderate, min_jaccard=0.3)
    assert 17 not in library.get_duplicates_of(moderate, min_jaccard=0.9)
    assert not library.is_duplicate("A text that no one has sent in before.")


# The lecture: 3-character shingles, 100 hashes, matrices side by side, 25 bands of 4.


def test_matrices_of_exact_and_estimated_similarity(sample):
    """20 texts. Each of the 190 estimates is tested at ALPHA / 190."""
    texts = [text for _, text in sample[:20]]
    hasher = MinHasher(random.Random(34).sample(range(2**32), 100), shingles=Shingles(3))
    exact = lsh.jaccard_matrix(texts, shingles=Shingles(3))
    estimated = hasher.similarities(hasher.fingerprints(texts))
    assert exact.shape == estimated.shape == (20, 20)
    for matrix in (exact, estimated):
        assert (matrix == matrix.T).all()
        assert (numpy.diag(matrix) == 1).all()
    pairs = list(itertools.combinations(range(20), 2))
    assert [exact[i, j] for i, j in pairs] == [reference.jaccard(texts[i], texts[j], 3, "char") for i, j in pairs]
    p_values = [binomial_p_value(round(estimated[i, j] * 100), 100, exact[i, j]) for i, j in pairs]
    assert min(p_values) >= ALPHA / len(pairs)


def test_25_bands_of_4(sample):
    """Threshold .447: candidates whose estimate is above it, against buckets of the components themselves."""
    texts = [text for _, text in sample]
    hasher = MinHasher(100, shingles=Shingles(3))
    threshold = (1 / 25) ** (1 / 4)
    assert round(threshold, 3) == 0.447
    cache = Cache(hasher, bands=Bands(25, 4))
    cache.add_docs(texts, range(200))
    rows = hasher.fingerprints(texts)
    estimated = hasher.similarities(rows)
    by_hand: set[tuple[int, int]] = set()
    for band in range(25):
        buckets: dict[bytes, list[int]] = {}
        for i, row in enumerate(rows):
            buckets.setdefault(row[4 * band : 4 * band + 4].tobytes(), []).append(i)
        for members in buckets.values():
            by_hand.update(pair for pair in itertools.combinations(members, 2) if estimated[pair] >= threshold)
    assert cache.get_all_duplicates(min_jaccard=threshold) == by_hand
    exact = all_pairs(texts, 0.9, 3, "char")
    assert exact.keys() <= by_hand  # a pair at .9 is missed with probability 4e-12
    assert len(by_hand) < len(cache.get_all_duplicates())
