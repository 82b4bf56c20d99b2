"""The published benchmark tables and figures agree with the stored results."""

import hashlib
import importlib
import json
import random
import statistics
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from lsh.sketch import costs

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
RESULTS = FOLDER / "results"


def module(name):
    """A module of the benchmarks; they import each other by name."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


truth, corpora, harness, quality, scale = map(module, ("truth", "corpora", "harness", "quality", "scale"))


@pytest.fixture(scope="module")
def everything():
    return module("all")


def test_the_tables_are_those_of_the_results(everything):
    found = everything.results()
    assert len(everything.TABLES) == 4
    for path, tables in everything.TABLES.items():
        readme = path.read_text(encoding="utf-8")
        assert everything.rendered(path, found) == readme
        for name in tables:
            begin, end = (readme.index(f"<!-- {word}: {name} -->") for word in ("begin", "end"))
            assert readme.count("\n| ", begin, end) >= 4


def test_the_cost_of_a_plan_is_that_of_the_results():
    """The numbers of `lsh.sketch.costs` are lines through the largest rows of the two corpora, as its head says."""
    rows = scale.largest_rows(scale.results()["spark"])
    small, large = rows["reviews"], rows["stories"]
    sizes = [row["bytes"] / row["documents"] for row in (small, large)]

    def line(value):
        each = [value(row) / row["documents"] for row in (small, large)]
        slope = (each[1] - each[0]) / (sizes[1] - sizes[0])
        return each[0] - slope * sizes[0], slope

    def stages(row, key):
        found = {name: one[key] for name, one in row["spark"]["stages"].items() if name != scale.FIXED}
        return found | {"kept rows": row["spark"]["kept_shuffled"][key]}  # as for large results

    def others(key):
        return lambda row: sum(value for name, value in stages(row, key).items() if name != "keys and links")

    assert pytest.approx(line(lambda row: row["command"]["cpu_seconds"]), rel=1e-3) == costs.MACHINE_SECONDS
    keys = line(lambda row: stages(row, "cpu_seconds")["keys and links"])
    assert pytest.approx(keys, rel=1e-3) == costs.KEYS_SECONDS
    assert pytest.approx(line(others("cpu_seconds")), rel=1e-3) == costs.OTHER_SECONDS
    assert pytest.approx(line(others("shuffle_bytes")), rel=1e-3) == costs.OTHER_SHUFFLED
    for row in (small, large):
        shuffled = stages(row, "shuffle_bytes")["keys and links"] / row["documents"]
        assert pytest.approx(shuffled, rel=2e-3) == costs.KEY_SHUFFLED * costs.MEASURED_BANDS
    template = scale.results()["engine"]["cases"]["template"]["summary"]
    assert template["seconds"]["comparing"] / template["candidates"] == pytest.approx(costs.CANDIDATE_SECONDS, rel=1e-3)


def test_the_chart_has_a_bar_for_each_library(everything):
    found = everything.results()["peers"]
    chart = (FOLDER / "peers.svg").read_text(encoding="utf-8")
    assert everything.chart(found) == chart
    root = ElementTree.fromstring(chart)
    bars = [element for element in root.iter() if element.get("class", "").startswith("bar")]
    measured = [way for way, one in found["ways"].items() if "not_measured" not in one]
    assert len(bars) == len(measured) >= 2
    widths = [float(bar.get("width")) for bar in bars]
    assert widths == sorted(widths, reverse=True)
    assert {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")} >= set(measured)


@pytest.mark.parametrize("name", sorted({path.stem for path in RESULTS.glob("*.json")} - {"counts"}))
def test_a_result_names_machine_and_data(name):
    result = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    assert {"system", "cpu", "python", "numpy", "lsh", "compiler", "simd"} <= set(result["machine"])
    assert result["data"]["bytes"] > 0


def test_tiny_sets_miss_no_more_than_the_documentation_says():
    cells = json.loads((RESULTS / "tiny_sets.json").read_text(encoding="utf-8"))["cells"]
    for recall, most in ((0.95, 0.05), (0.99, 0.018), (0.999, 0.0102)):
        assert max(cell["missed"] for cell in cells if cell["recall"] == recall) <= most
    defaults = [cell for cell in cells if cell["recall"] == 0.99 and cell["num_seeds"] == 128]
    assert max(cell["missed"] for cell in defaults) <= 0.015
    assert max(cell["missed"] for cell in defaults if cell["union"] > 5) <= 0.01


def test_the_text_of_choosing_has_the_measured_figures():
    result = json.loads((RESULTS / "choosing.json").read_text(encoding="utf-8"))
    page = " ".join((FOLDER.parent / "docs" / "choosing.md").read_text(encoding="utf-8").split())
    of = {name.partition(" (")[0]: one["shingles"] for name, one in result["corpora"].items()}
    rows = {(name, row["shingles"]): row for name, found in of.items() for row in found}
    assert all(row["recall"] >= 0.99 for row in rows.values())
    between, above, equal = rows["classified ads", "8 characters"]["counts"][3:]
    assert f"{between} pairs are between 0.8 and 0.9, and {above} between 0.9 and 1" in page
    assert f"The {equal:,} pairs at 1" in page
    less = [rows["web pages of one site", name]["removed"] for name in ("8 characters", "24 characters", "5 words")]
    assert "{} removals become {} with 24 characters and {} with 5 words".format(*less) in page
    poems = next(row for row in result["scripts"] if row["script"] == "Chinese, poems")
    assert f"leaves a similarity of {poems['medians']['5 words']:.2f}" in page
    assert result["vowel_marks"]["medians"] == {"as they are": 0, "marks removed": 1}
    edits = {(row["size"], row["edit"]): row["medians"]["8 characters"] for row in result["edits"]}
    for threshold, size, edit in (
        (0.95, 500, "one word replaced"),
        (0.9, 1500, "five words replaced"),
        (0.9, 1500, "a headline in front"),
        (0.8, 500, "a headline in front"),
        (0.8, 150, "one word replaced"),
        (0.75, 500, "five words replaced"),
        (0.7, 150, "a headline in front"),
    ):
        assert edits[size, edit] >= threshold


def test_counts_are_kept_for_every_kernel():
    result = json.loads((RESULTS / "counts.json").read_text(encoding="utf-8"))
    names = list(result["instructions"])
    for word in ("avx2", "baseline"):
        for scheme in ("32", "64", "fss"):
            assert any(name.split()[:2] == [word, scheme] for name in names)
    assert all(value > 0 for value in result["instructions"].values())


# The exact answers that the quality benchmark compares with.


def plain_pairs(texts, threshold):
    sets = [set(reference.shingles(text, 5, "byte")) for text in texts]
    some = [i for i in range(len(texts)) if sets[i]]
    found = ((i, j, len(sets[i] & sets[j]) / len(sets[i] | sets[j])) for i in some for j in some if i < j)
    return [pair for pair in found if pair[2] >= threshold]


few_letters = st.lists(st.text("ab ", max_size=14).map(str.encode), max_size=14)


@given(few_letters, st.sampled_from([0.1, 0.5, 2 / 3, 0.8, 1.0]))
def test_the_join_gives_literally_all_pairs(texts, threshold):
    expected = plain_pairs(texts, threshold)
    assert truth.join(texts, threshold) == expected
    assert truth.all_pairs(texts, threshold) == expected


@given(few_letters, st.sampled_from([0.3, 0.5, 0.8]))
def test_the_exact_removals_are_those_of_the_definition(texts, threshold):
    expected = reference.deduplicate_exact(texts, threshold, n=5, unit="byte")
    removed = truth.removals(texts, plain_pairs(texts, threshold))
    assert {i: (one.kept, one.similarity, one.identical) for i, one in removed.items()} == expected.removed


@pytest.mark.few(1)
@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize("name", truth.EXPECTED)
@pytest.mark.parametrize("size", [25, pytest.param(100, marks=pytest.mark.slow)])
def test_the_truth_of_a_subsample_of_each_corpus(name, size):
    corpus = harness.corpus(name).texts
    texts = [text[:600] for text in corpus[:size] + random.Random(name).sample(corpus, size)]
    for threshold in (0.15, truth.THRESHOLD):
        assert truth.join(texts, threshold) == plain_pairs(texts, threshold)
    assert truth.join(texts, 0.15)


def test_the_truth_is_kept_under_a_checksum_of_the_texts(tmp_path, monkeypatch):
    texts = [b"a cat sat on the mat", b"a dog", b"a cat sat on the mat.", b"", b"a dog"]
    found = truth.pairs(harness.Corpus("some", [], texts, None), tmp_path)
    assert found == plain_pairs(texts, truth.THRESHOLD) == [(0, 2, 16 / 17), (1, 4, 1.0)]
    monkeypatch.setattr(truth, "join", lambda texts, threshold: [])
    assert truth.pairs(harness.Corpus("some", [], texts, None), tmp_path) == found
    assert truth.pairs(harness.Corpus("some", [], texts[::-1], None), tmp_path) == []
    with pytest.raises(SystemExit, match="has 20 pairs, 2 were found"):
        truth.pairs(harness.Corpus("articles2500.tsv.gz", [], texts, None), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ads_rome_it.tsv.gz", "win32docs.tsv.gz"])
@pytest.mark.parametrize("recall", [0.8, 0.9, 0.99])
@pytest.mark.usefixtures("data_folder")
def test_promised_recall(name, recall, tmp_path_factory):
    """All pairs at .8 or more, over 20 random states; texts without such a pair are omitted."""
    cache = tmp_path_factory.getbasetemp() / "truth"
    texts = harness.corpus(name).texts
    known = {(i, j): similarity for i, j, similarity in truth.pairs(harness.corpus(name), cache)}
    chosen = sorted({document for pair in known for document in pair})
    place = {document: at for at, document in enumerate(chosen)}
    known = {(place[i], place[j]): similarity for (i, j), similarity in known.items()}
    texts = [texts[document] for document in chosen]
    found = [quality.pairs(texts, known, state, recall) for state in range(20)]
    assert all(one["precision"] == 1.0 for one in found)
    assert statistics.mean(one["recall"] for one in found) >= recall


def test_quality_says_what_does_not_hold():
    right = {
        "data": {"name": "some"},
        "pairs": {"least_precision": 1.0, "mean_recall": 0.995},
        "removals": {"mean_recall": 1.0, "without_witness": 0},
        "promises": [{"recall": 0.9, "mean_recall": 0.9}],
    }
    assert quality.faults(right) == []
    for part, key, value in [
        ("pairs", "least_precision", 0.999),
        ("pairs", "mean_recall", 0.9949),
        ("removals", "mean_recall", 0.9949),
        ("removals", "without_witness", 1),
    ]:
        assert len(quality.faults({**right, part: {**right[part], key: value}})) == 1
    assert len(quality.faults({**right, "promises": [{"recall": 0.9, "mean_recall": 0.899}]})) == 1


# Synthetic corpora. The checksums are of the first 5,000 texts, joined by newlines.

SYNTHETIC = {
    # name: count, checksum, bytes of the shortest and the longest text, share of planted copies
    "short_texts": (300_000, "5c41ed6f07a0429a", 60, 160, 0.1),
    "stories": (806_791, "e03c1c2335472481", 200, 4000, 0.05),
    "reviews": (10_000_000, "0f41914d271af265", 100, 500, 0.05),
    "one_template": (100_000, "091d10199914b707", 100, 1000, 0),
    "edited_copies": (1_000_000, "3634fe2bfc4b5b4d", 900, 1000, 1),
    "articles": (4500, "0b5f0606f2e64f6e", 1000, 2000, 2000 / 4500),
    "news_and_articles": (26_077, "a915735945fde8e3", 32, 10_000, 2000 / 26_077),
}
FROM_NEWS = {"short_texts", "stories", "articles", "news_and_articles"}
SMALL = 5000


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=() if name == "short_texts" else pytest.mark.slow) for name in SYNTHETIC],
)
def synthetic(request):
    if request.param in FROM_NEWS:
        request.getfixturevalue("data_folder")
    make = corpora.MAKERS[request.param]
    return make(SYNTHETIC[request.param][0]) if request.param == "reviews" else make()


def similarities(corpus, pairs):
    left, right = (corpus.at([pair[side] for pair in pairs]) for side in (0, 1))
    return [reference.jaccard(a, b, 5, "byte") for a, b in zip(left, right)]


def test_a_synthetic_corpus_has_the_same_bytes_everywhere(synthetic):
    count, checksum, least, most, _ = SYNTHETIC[synthetic.name]
    texts = list(synthetic.texts(0, SMALL))
    assert len(synthetic) == count
    assert hashlib.sha256(b"\n".join(texts)).hexdigest()[:16] == checksum
    assert least <= min(map(len, texts)) <= max(map(len, texts)) <= most
    assert not any(b"\t" in text or b"\n" in text for text in texts)
    assert list(synthetic.texts(2000, 2100)) == texts[2000:2100]
    assert synthetic.at([4000, 7]) == [texts[4000], texts[7]]
    last = list(synthetic.texts(count - 2, count + 5))
    assert last == synthetic.at([count - 2, count - 1])


def test_planted_copies_are_similar_and_others_are_not(synthetic):
    count, _, _, _, share = SYNTHETIC[synthetic.name]
    start = max(0, count - 20_000)
    planted = synthetic.planted(start)
    if synthetic.name == "news_and_articles":  # all its copies are at the end
        share *= count / (count - start)
    assert len(planted) / (count - start) == pytest.approx(share, abs=0.01)
    draw = random.Random(0)
    chosen = draw.sample(planted.tolist(), min(200, len(planted)))
    assert all(source < document for document, source in chosen)
    found = similarities(synthetic, chosen)
    if found:
        assert 0.85 < statistics.mean(found) < 0.95
        assert sum(similarity >= 0.8 for similarity in found) >= 0.95 * len(found)
    others = similarities(synthetic, [draw.sample(range(start, count), 2) for _ in range(200)])
    low, high = {"one_template": (0.45, 0.55), "edited_copies": (0.78, 0.83)}.get(synthetic.name, (0, 0.08))
    assert low <= statistics.mean(others) <= high


def test_long_texts():
    corpus = corpora.long_texts(20)
    texts = list(corpus)
    assert [len(text) for text in texts] == [200_000] * 20
    assert hashlib.sha256(texts[0]).hexdigest()[:16] == "760e2d266fe228a8"
    assert corpus.at([7, 8]) == texts[7:9]
    assert corpus.planted().tolist() == [[i, i - 1] for i in range(2, 20, 3)]
    assert (
        reference.jaccard(texts[7], texts[8], 5, "byte") > 0.95 > 0.2 > reference.jaccard(texts[6], texts[8], 5, "byte")
    )


@pytest.mark.slow
def test_a_seed_gives_another_corpus():
    for name in set(SYNTHETIC) - FROM_NEWS:
        make = corpora.MAKERS[name]
        assert list(make(10, seed=1)) != list(make(10)) == list(make(20).texts(0, 10))


def test_news_and_articles_have_the_size_of_a_collection(data_folder):
    corpus = corpora.news_and_articles()
    texts = list(corpus)
    assert (len(texts), sum(map(len, texts)) // 1_000_000) == (26_077, 23)
    assert texts[:21_577] == harness.corpus("reuters21578.tsv.gz").texts
    assert texts[21_577:24_077] == harness.corpus("articles2500.tsv.gz").texts
    copies, sources = corpus.planted().T.tolist()
    assert copies == list(range(24_077, 26_077))
    assert len(set(sources)) == 2000
    assert set(sources) <= set(range(21_577, 24_077))


# The plan of docs/scale.md.


def test_the_largest_component_of_a_random_graph():
    """With one probability for all pairs the model is that of Erdos and Renyi: rho = 1 - exp(-c rho)."""
    shared = np.full((50, 50), 2e-6)
    assert scale.growth(shared) == pytest.approx(50 * 2e-6)
    assert scale.largest_share(shared, 1_000_000) == pytest.approx(0.796812, abs=1e-6)  # c = 2
    assert scale.largest_share(shared, 400_000) == 0.0  # c = 0.8
    assert scale.growth(np.zeros((5, 5))) == scale.largest_share(np.zeros((5, 5)), 10**9) == 0.0


def test_the_counted_component_is_that_of_the_shared_buckets():
    texts = [b"a long text about one cat and a dog"] * 3 + [b"quite another story, told by somebody else"] * 2 + [b""]
    assert scale.actual_share(texts, scale.SHINGLES["5 bytes"], scale.lsh.Bands(16, 8)) == 3 / 5


@pytest.mark.parametrize("members", [50, 3000, 200_000])
def test_the_share_that_passes_the_filter_of_members(members, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    from lsh.spark import _tasks

    rng = np.random.default_rng(members)
    nodes = rng.integers(-(2**63), 2**63, members + 200_000)
    words = _tasks.filter_words(members, 1 << 16)
    monkeypatch.setattr(scale, "FILTER_BITS", 8 << 16)
    rows = pyarrow.RecordBatch.from_arrays([pyarrow.array(nodes[:members])], names=["node"])
    (filled,) = _tasks.fill_filter(words, iter([rows]))
    data = np.frombuffer(filled.column(0)[0].as_py(), np.uint64)
    places, bits = _tasks._probes(nodes[members:], words)
    passed = int((data[places] & bits == bits).sum())
    expected = 200_000 * scale.passing_share(members)
    assert abs(passed - expected) <= 0.06 * expected + 5 * expected**0.5 + 5
