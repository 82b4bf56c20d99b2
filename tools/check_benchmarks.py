#!/usr/bin/env python3
"""Check `benchmarks/`: the published tables and figures agree with the stored results, and the exact answers are right.

The texts of the synthetic corpora are compared with checksums. The corpora of LSH_DATA are needed.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import random
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import checks
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lsh.sketch import costs

FOLDER = checks.ROOT / "benchmarks"
RESULTS = FOLDER / "results"
sys.path[:0] = [str(FOLDER), str(checks.ROOT / "tests")]

import reference  # noqa: E402
import strategies  # noqa: E402, F401  (loads the hypothesis profile)

truth, corpora, harness, quality, scale = map(
    importlib.import_module, ("truth", "corpora", "harness", "engine.quality", "spark.scale")
)
everything = importlib.import_module("all")


def result(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def near(found: Any, expected: Any, share: float = 1e-3) -> bool:
    """Whether numbers agree up to a share of the expected ones."""
    pairs = zip(np.ravel(found).tolist(), np.ravel(expected).tolist(), strict=True)
    return all(math.isclose(a, b, rel_tol=share) for a, b in pairs)


# Tables and figures.


def check_the_tables_are_those_of_the_results() -> None:
    found = everything.results()
    assert len(everything.TABLES) == 7
    for path, tables in everything.TABLES.items():
        readme = path.read_text(encoding="utf-8")
        assert everything.rendered(path, found) == readme
        for name in tables:
            begin, end = (readme.index(f"<!-- {word}: {name} -->") for word in ("begin", "end"))
            assert readme.count("\n| ", begin, end) >= 4


def check_the_cost_of_a_plan_is_that_of_the_results() -> None:
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

    assert near(line(lambda row: row["command"]["cpu_seconds"]), costs.MACHINE_SECONDS)
    keys = line(lambda row: stages(row, "cpu_seconds")["keys and links"])
    assert near(keys, costs.KEYS_SECONDS)
    assert near(line(others("cpu_seconds")), costs.OTHER_SECONDS)
    assert near(line(others("shuffle_bytes")), costs.OTHER_SHUFFLED)
    for row in (small, large):
        shuffled = stages(row, "shuffle_bytes")["keys and links"] / row["documents"]
        each = 16 + 8 * 4  # a key, a hash, and 2 bits of each of 128 components
        assert near(shuffled, costs.KEY_SHUFFLED * costs.MEASURED_BANDS * each, 2e-3)


def check_the_constants_of_a_plan_for_a_size_are_measured() -> None:
    fit = result("sizes")["fit"]
    constants = costs.SEED_SECONDS, costs.BAND_SECONDS, costs.SHARED_SECONDS
    assert near([fit["seed"], fit["band"], fit["shared"]], constants)


def check_the_chart_has_a_bar_for_each_library() -> None:
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


def check_a_result_names_machine_and_data() -> None:
    for name in {path.stem for path in RESULTS.glob("*.json")} - {"counts"}:
        found = result(name)
        assert {"system", "cpu", "python", "numpy", "lsh", "compiler", "simd"} <= set(found["machine"]), name
        assert found["data"]["bytes"] > 0, name


def check_tiny_sets_miss_no_more_than_the_documentation_says() -> None:
    cells = result("tiny_sets")["cells"]
    for recall, most in ((0.95, 0.05), (0.99, 0.018), (0.999, 0.0102)):
        assert max(cell["missed"] for cell in cells if cell["recall"] == recall) <= most
    defaults = [cell for cell in cells if cell["recall"] == 0.99 and cell["num_seeds"] == 128]
    assert max(cell["missed"] for cell in defaults) <= 0.015
    assert max(cell["missed"] for cell in defaults if cell["union"] > 5) <= 0.01


def check_the_text_of_choosing_has_the_measured_figures() -> None:
    choosing = result("choosing")
    page = " ".join((FOLDER.parent / "docs" / "choosing.md").read_text(encoding="utf-8").split())
    of = {name.partition(" (")[0]: one["shingles"] for name, one in choosing["corpora"].items()}
    rows = {(name, row["shingles"]): row for name, found in of.items() for row in found}
    assert all(row["recall"] >= 0.99 for row in rows.values())
    between, above, equal = rows["classified ads", "8 characters"]["counts"][3:]
    assert f"{between} pairs are between 0.8 and 0.9, and {above} between 0.9 and 1" in page
    assert f"The {equal:,} pairs at 1" in page
    less = [rows["web pages of one site", name]["removed"] for name in ("8 characters", "24 characters", "5 words")]
    assert "{} removals become {} with 24 characters and {} with 5 words".format(*less) in page
    poems = next(row for row in choosing["scripts"] if row["script"] == "Chinese, poems")
    assert f"leaves a similarity of {poems['medians']['5 words']:.2f}" in page
    assert choosing["vowel_marks"]["medians"] == {"as they are": 0, "marks removed": 1}
    edits = {(row["size"], row["edit"]): row["medians"]["8 characters"] for row in choosing["edits"]}
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


def check_counts_are_kept_for_every_kernel() -> None:
    counts = result("counts")["instructions"]
    for word in ("avx2", "baseline"):
        for scheme in ("32", "64", "fss"):
            assert any(name.split()[:2] == [word, scheme] for name in counts)
    assert all(value > 0 for value in counts.values())


# The exact answers that the quality benchmark compares with.

FEW_LETTERS = st.lists(st.text("ab ", max_size=14).map(str.encode), max_size=14)
Found = list[tuple[int, int, float]]


def plain_pairs(texts: list[bytes], threshold: float) -> Found:
    sets = [set(reference.shingles(text, 5, "byte")) for text in texts]
    some = [i for i in range(len(texts)) if sets[i]]
    found = ((i, j, len(sets[i] & sets[j]) / len(sets[i] | sets[j])) for i in some for j in some if i < j)
    return [pair for pair in found if pair[2] >= threshold]


@given(FEW_LETTERS, st.sampled_from([0.1, 0.3, 0.5, 2 / 3, 0.8, 1.0]))
def check_pairs_and_removals_are_those_of_the_definition(texts: list[bytes], threshold: float) -> None:
    pairs = plain_pairs(texts, threshold)
    assert truth.join(texts, threshold) == truth.all_pairs(texts, threshold) == pairs
    expected = reference.deduplicate_exact(texts, threshold, n=5, unit="byte")
    removed = truth.removals(texts, pairs)
    assert {i: (one.kept, one.similarity, one.identical) for i, one in removed.items()} == expected.removed


def check_the_truth_of_a_subsample_of_each_corpus() -> None:
    checks.data_folder()
    for name in truth.EXPECTED:
        corpus = harness.corpus(name).texts
        texts = [text[:600] for text in corpus[:25] + random.Random(name).sample(corpus, 25)]
        for threshold in (0.15, truth.THRESHOLD):
            assert truth.join(texts, threshold) == plain_pairs(texts, threshold), name
        assert truth.join(texts, 0.15), name


def check_the_truth_is_kept_under_a_checksum_of_the_texts() -> None:
    texts = [b"a cat sat on the mat", b"a dog", b"a cat sat on the mat.", b"", b"a dog"]
    join = truth.join
    with tempfile.TemporaryDirectory() as temp:

        def pairs(given: list[bytes], name: str = "some") -> Found:
            return truth.pairs(harness.Corpus(name, [], given, None), Path(temp))

        found = pairs(texts)
        assert found == plain_pairs(texts, truth.THRESHOLD) == [(0, 2, 16 / 17), (1, 4, 1.0)]
        truth.join = lambda texts, threshold: []
        try:
            assert pairs(texts) == found
            assert pairs(texts[::-1]) == []
        finally:
            truth.join = join
        checks.raises(SystemExit, "has 20 pairs, 2 were found", pairs, texts, "articles2500.tsv.gz")


def check_promised_recall() -> None:
    """All pairs at .8 or more, over 20 random states; texts without such a pair are omitted."""
    checks.data_folder()
    for name in ("ads_rome_it.tsv.gz", "win32docs.tsv.gz"):
        with tempfile.TemporaryDirectory() as temp:
            pairs = truth.pairs(harness.corpus(name), Path(temp))
        chosen = sorted({document for i, j, _ in pairs for document in (i, j)})
        place = {document: at for at, document in enumerate(chosen)}
        known = {(place[i], place[j]): similarity for i, j, similarity in pairs}
        texts = [harness.corpus(name).texts[document] for document in chosen]
        for recall in (0.8, 0.9, 0.99):
            found = [quality.pairs(texts, known, state, recall) for state in range(20)]
            assert all(one["precision"] == 1.0 for one in found), name
            assert statistics.mean(one["recall"] for one in found) >= recall, (name, recall)


def check_quality_says_what_does_not_hold() -> None:
    right: dict[str, Any] = {
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
SMALL = 5000


def similarities(corpus: Any, pairs: Any) -> list[float]:
    left, right = (corpus.at([pair[side] for pair in pairs]) for side in (0, 1))
    return [reference.jaccard(a, b, 5, "byte") for a, b in zip(left, right)]


def check_synthetic_corpora() -> None:
    checks.data_folder()  # some are made from news
    for name, (count, checksum, least, most, share) in SYNTHETIC.items():
        make = corpora.MAKERS[name]
        corpus = make(count) if name == "reviews" else make()
        same_bytes_everywhere(corpus, count, checksum, least, most)
        copies_are_similar_and_others_are_not(corpus, count, share)


def same_bytes_everywhere(corpus: Any, count: int, checksum: str, least: int, most: int) -> None:
    texts = list(corpus.texts(0, SMALL))
    assert len(corpus) == count
    assert hashlib.sha256(b"\n".join(texts)).hexdigest()[:16] == checksum, corpus.name
    assert least <= min(map(len, texts)) <= max(map(len, texts)) <= most
    assert not any(b"\t" in text or b"\n" in text for text in texts)
    assert list(corpus.texts(2000, 2100)) == texts[2000:2100]
    assert corpus.at([4000, 7]) == [texts[4000], texts[7]]
    assert list(corpus.texts(count - 2, count + 5)) == corpus.at([count - 2, count - 1])


def copies_are_similar_and_others_are_not(corpus: Any, count: int, share: float) -> None:
    start = max(0, count - 20_000)
    planted = corpus.planted(start)
    if corpus.name == "news_and_articles":  # all its copies are at the end
        share *= count / (count - start)
    assert abs(len(planted) / (count - start) - share) <= 0.01
    draw = random.Random(0)
    chosen = draw.sample(planted.tolist(), min(200, len(planted)))
    assert all(source < document for document, source in chosen)
    found = similarities(corpus, chosen)
    if found:
        assert 0.85 < statistics.mean(found) < 0.95
        assert sum(similarity >= 0.8 for similarity in found) >= 0.95 * len(found)
    others = similarities(corpus, [draw.sample(range(start, count), 2) for _ in range(200)])
    low, high = {"one_template": (0.45, 0.55), "edited_copies": (0.78, 0.83)}.get(corpus.name, (0, 0.08))
    assert low <= statistics.mean(others) <= high


def check_long_texts() -> None:
    corpus = corpora.long_texts(20)
    texts = list(corpus)
    assert [len(text) for text in texts] == [200_000] * 20
    assert hashlib.sha256(texts[0]).hexdigest()[:16] == "760e2d266fe228a8"
    assert corpus.at([7, 8]) == texts[7:9]
    assert corpus.planted().tolist() == [[i, i - 1] for i in range(2, 20, 3)]
    assert (
        reference.jaccard(texts[7], texts[8], 5, "byte") > 0.95 > 0.2 > reference.jaccard(texts[6], texts[8], 5, "byte")
    )


def check_a_seed_gives_another_corpus() -> None:
    for name in ("reviews", "one_template", "edited_copies"):
        make = corpora.MAKERS[name]
        assert list(make(10, seed=1)) != list(make(10)) == list(make(20).texts(0, 10))


def check_news_and_articles_have_the_size_of_a_collection() -> None:
    checks.data_folder()
    corpus = corpora.news_and_articles()
    texts = list(corpus)
    assert (len(texts), sum(map(len, texts)) // 1_000_000) == (26_077, 23)
    assert texts[:21_577] == harness.corpus("reuters21578.tsv.gz").texts
    assert texts[21_577:24_077] == harness.corpus("articles2500.tsv.gz").texts
    copies, sources = corpus.planted().T.tolist()
    assert copies == list(range(24_077, 26_077))
    assert len(set(sources)) == 2000
    assert set(sources) <= set(range(21_577, 24_077))


if __name__ == "__main__":
    sys.exit(checks.main(globals()))
