"""The report: its figures are those of the run, texts are escaped, and nothing is loaded from elsewhere.

The page is parsed by Python's html.parser, its figures are counted again here in the simplest way, and a real Chromium
shows it without a screen, if it is installed.
"""

import base64
import hashlib
import random
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from pages import Page, dumped

import lsh
from lsh import report
from lsh.report import choice, drawing, measures, pairs, recall
from lsh.report.lookup import TextLookup

MAX_BYTES = 2_000_000
SHINGLES = lsh.Shingles(4)
HASHER = lsh.MinHasher(64, scheme="fss", shingles=SHINGLES)
PLAN = lsh.plan(0.7, 0.95, 64)
BANDS = PLAN.bands
WORDS = ["ferry", "island", "storm", "piano", "mill", "letter", "garden", "winter", "river", "bridge", "rain", "market"]
HOSTILE = [
    "<script>document.title = 'taken'</script>",
    "</script></style></title><img src=x onerror=alert(1)>",
    "\"'><svg onload=alert(1)> &amp; &lt; <!-- ]]>",
    "\u202eright to left\u202c שלום עולם \u200f<b>",
    "nul \x00 bell \x07 return \r escape \x1b[31m delete \x7f \x85 \ud800 \ufffe",
]


def corpus(number: int, seed: int = 0) -> list[str]:
    """Texts of words. Many are copies of an earlier text, with a few words changed or none."""
    draw = random.Random(seed)
    texts: list[str] = []
    while len(texts) < number:
        words = draw.choice(texts).split() if texts and draw.random() < 0.6 else draw.choices(WORDS, k=40)
        for _ in range(draw.choice([0, 1, 2, 4, 8])):
            words[draw.randrange(len(words))] = draw.choice(WORDS) + str(draw.randrange(100))
        texts.append(" ".join(words))
    return texts


def made(texts: list, **more: object) -> tuple[lsh.Deduplication, str]:
    """Deduplicate texts and report it."""
    given = {name: more.pop(name) for name in ("against", "clusters", "verify", "missing") if name in more}
    threshold = more.pop("threshold", 0.7)
    bands = more.pop("bands", PLAN if threshold == PLAN.threshold else BANDS)
    result = lsh.deduplicate(texts, threshold, hasher=HASHER, bands=bands, **given)
    return result, report.html(result, **{"texts": texts, "against": given.get("against"), **more})


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return corpus(240)


@pytest.fixture(scope="module")
def run(texts) -> tuple[lsh.Deduplication, str]:
    sources = [f"site {i % 7}" if i % 7 else 'a <quoted> "source"' for i in range(len(texts))]
    parameters = {"input": "news.tsv", "keep": "first"}
    return made(texts, ids=[f"doc{i}" for i in range(len(texts))], sources=sources, parameters=parameters)


@pytest.fixture(scope="module")
def parsed(run) -> Page:
    return Page(run[1])


# ---- the figures ----


def test_the_counts_are_those_of_the_run(run, parsed, texts):
    result = run[0]
    counts = result.summary()
    saved, size = sum(len(texts[i]) for i in result.removed["document"]), sum(map(len, texts))
    assert counts["removed"] > 50
    assert counts["identical"] > 5
    assert f"{counts['removed']} of 240 documents are duplicates" in "".join(parsed.text)
    assert parsed.figures["Documents kept"] == (f"{counts['kept']}", f"{counts['kept'] / 2.4:.1f} % of 240")
    share = f"{100 * saved / size:.1f} % of {size / 1000:.1f} KB"
    assert parsed.figures["Text removed"] == (f"{saved / 1000:.1f} KB", share)
    assert parsed.figures["Identical copies"] == (f"{counts['identical']}", "identical to the kept document")
    assert parsed.figures["Clusters"][0] == f"{counts['clusters']}"
    assert parsed.figures["Candidate pairs"] == (f"{counts['candidates']:,}", "share a band; once for each")
    assert parsed.figures["Compared exactly"] == (f"{counts['compared']:,}", "passed the sketch filter")
    assert parsed.figures["Recall promised"][0] == f"{PLAN.recall_at(0.7):.3f}"
    expected = {"threshold": "0.7", "shingles": repr(SHINGLES), "fingerprints": repr(HASHER), "input": "news.tsv"}
    expected |= {"version": f"lsh-dedup {lsh.__version__}", "bands": str(BANDS).splitlines()[0], "keep": "first"}
    assert expected.items() <= {row[0]: row[1] for row in parsed.rows["run"]}.items()


@pytest.mark.parametrize("verify", ["exact", "sketch", None])
def test_the_promised_recall_of_bands(texts, verify):
    """The recall of a plan or of plain bands includes the filter; without verification it is that of banding."""
    losing = {True: PLAN.recall_at(0.7), False: BANDS.probability(0.7) * 0.999}
    for bands in (PLAN, BANDS):
        _, source = made(texts[:40], bands=bands, verify=verify)
        expected = losing[bands is PLAN] if verify == "exact" else BANDS.probability(0.7)
        said = {row[0]: row[1] for row in Page(source).rows["run"]}
        assert said["promised recall"].startswith(f"{expected:.6f}")


def test_the_histogram_counts_every_removal_once(run, parsed):
    removed = run[0].removed
    rows = parsed.rows["similarities"][1:]
    assert rows[-1] == ["identical", f"{removed['identical'].sum()}"]
    values = removed["similarity"][~removed["identical"]]
    for name, count in rows[:-1]:
        low, high = map(float, name.split(" to "))
        assert int(count) == sum(low <= value < high or value == high == 1.0 for value in values.tolist()), name
    assert sum(int(count) for _, count in rows) == len(removed)
    titles = re.findall(r"<rect[^>]*><title>[^<]*: ([0-9,]+) documents?</title>", run[1])
    assert [int(number) for number in titles] == [int(count) for _, count in rows]


def test_the_recall_is_measured_on_all_pairs(run, parsed, texts):
    """The slow reference: the sets of every pair, and whether it shares a key."""
    result = run[0]
    same = set(result.removed["document"][result.removed["identical"]].tolist())
    keys = BANDS.keys(HASHER.fingerprints(texts)).T.tolist()
    intervals: dict[str, list[tuple[float, bool]]] = {}
    reached = found_there = left = 0
    chosen = [i for i in range(len(texts)) if i not in same]
    sets = [SHINGLES.of(text) for text in texts]
    for i, j in combinations(chosen, 2):
        similarity = len(sets[i] & sets[j]) / len(sets[i] | sets[j])
        if similarity == 1.0:
            continue
        found = any(one == other for one, other in zip(keys[i], keys[j]))
        low = int(similarity * 20 + 1e-9) / 20
        intervals.setdefault(f"{low:.2f} to {low + 0.05:.2f}", []).append((similarity, found))
        if similarity >= 0.7:
            reached, left = reached + 1, left + bool(result.keep[i] and result.keep[j])
    found_there = reached - left
    assert reached > 100
    expected = []
    for name, counted in sorted(intervals.items()):
        similarities, found = map(np.array, zip(*counted))
        shares = found.mean(), BANDS.probability(similarities).mean()
        expected.append([name, f"{len(found):,}", f"{found.sum():,}", *(f"{share:.3f}" for share in shares)])
    assert parsed.rows["recall"][1:] == expected
    figure, more = parsed.figures["Recall measured"]
    assert figure == f"{found_there / reached:.3f}"
    low, high = recall.confidence_interval(found_there, reached)
    assert more == f"{reached} pairs, 95 %: {low:.3f} to {high:.3f}"
    words, missed = "".join(parsed.text), reached - found_there or "none"
    assert f"the threshold: the run found {found_there:,} (they are not both kept) and missed {missed}." in words
    assert f"among {len(chosen)} sampled documents" in words


def test_pairs_of_one_cluster_are_told():
    """Pairs of one template are found or missed together. A low recall is then expected, and the page says so.

    There are 30 texts of one template, and 40 others: 20 texts and a near copy of each.
    """
    draw = random.Random(3)
    form = " ".join(draw.choices(WORDS, k=60))
    others = [" ".join(draw.choices(WORDS, k=60)) for _ in range(40)]
    others[1::2] = [f"{text} {i}" for i, text in enumerate(others[::2])]
    texts = [*(f"{form} {draw.choice(WORDS)} {i * i}" for i in range(30)), *others]
    bands = lsh.Bands(1, 45)  # these miss many pairs at .7
    result, source = made(texts, bands=bands)
    sets = [SHINGLES.of(text) for text in texts]
    keys = bands.keys(HASHER.fingerprints(texts))[0]
    pairs_there = [
        (i, j)
        for i, j in combinations(range(len(texts)), 2)
        if 0.7 <= len(sets[i] & sets[j]) / len(sets[i] | sets[j]) < 1
    ]
    inside = [(i, j) for i, j in pairs_there if i < j < 30]
    outside = [(i, j) for i, j in pairs_there if i >= 30]
    assert len(inside) > 400 > 20 >= len(outside) > 5
    assert len(inside) + len(outside) == len(pairs_there)
    found = [(i, j) for i, j in pairs_there if not (result.keep[i] and result.keep[j])]
    assert {(i, j) for i, j in pairs_there if keys[i] == keys[j]} < set(found) < set(pairs_there)
    parsed = Page(source)
    figure, more = parsed.figures["Recall measured"]
    assert figure == f"{len(found) / len(pairs_there):.3f}"
    assert more == f"{len(pairs_there)} pairs, {len(inside)} in one cluster"
    words = "".join(parsed.text)
    share = f"{100 * len(inside) / len(pairs_there):.1f} %"
    assert f"{len(inside)} of these pairs ({share}) are in one cluster of similar texts" in words
    found_outside = len([i for i, _ in found if i >= 30])
    assert f"Of the {len(outside)} pairs outside that cluster the run finds {found_outside}." in words
    is_found = measured_run(result, texts).is_found
    for sample, spread in ((np.arange(70)[None], []), (np.arange(20)[None], np.arange(70))):
        spread = np.array(spread, np.int64)
        measured = recall.measure(sample, spread, texts.__getitem__, is_found, 0.7, HASHER, bands)
        assert measured.positions.tolist() == [list(pair) for pair in pairs_there]
        assert measured.is_found.tolist() == [pair in found for pair in pairs_there]


def measured_run(result: lsh.Deduplication, texts: list[str]) -> measures.DeduplicationRun:
    """The run of a result, as `report.html` makes it."""
    return report._checked_run(result, TextLookup("texts", texts, "ids", None, len(texts)), None, None)


@pytest.fixture(scope="module")
def copies() -> tuple[list[str], set[tuple[int, int]]]:
    """Texts of one template, less similar than .8, at the end near copies of some of them, and all pairs at .8."""
    draw = random.Random(7)

    def letters(length: int) -> str:
        return "".join(draw.choices("abcdefghijklmnopqrstuvwxyz ", k=length))

    form = letters(300)
    texts = [form + letters(45) for _ in range(200)]
    texts += [text[:312] + letters(33) for text in texts[:60]]
    sets = [lsh.Shingles(5, "byte").of(text) for text in texts]
    pairs_there = combinations(range(len(texts)), 2)
    sets_of_pairs = ((i, j, len(sets[i] & sets[j]), len(sets[i]) + len(sets[j])) for i, j in pairs_there)
    return texts, {(i, j) for i, j, shared, both in sets_of_pairs if shared >= 0.8 * (both - shared)}


@pytest.mark.few(1)
@pytest.mark.parametrize(("limit", "clusters"), [(20, "representative"), (5, "components"), (1000, "representative")])
def test_the_measured_recall_counts_comparisons_that_were_left_out(monkeypatch, copies, limit, clusters):
    """The copies share bands with their originals, but with a limit of 20 or 5 many are never compared with them."""
    monkeypatch.setattr("lsh.engine.dedup.LIMIT", limit)
    monkeypatch.setattr(drawing, "LIMIT", limit)
    texts, similar = copies
    result = lsh.deduplicate(texts, 0.8, shingles=lsh.Shingles(5, "byte"), clusters=clusters)
    capped, plan = result.summary()["capped"], result.parameters["plan"]
    missed = {(i, j) for i, j in similar if result.keep[i] and result.keep[j]}
    share = 1 - len(missed) / len(similar)
    planned = f"{plan.recall_at(0.8):.3f}"
    for pairs_wanted in (None, 20_000):  # all pairs are compared, and a sample
        parsed = Page(report.html(result, texts=texts, sample_pairs=pairs_wanted))
        figure, more = parsed.figures["Recall measured"]
        low, high = map(float, more.partition(": ")[2].split(" to "))
        assert low <= share <= high
        if limit == 1000:
            assert (capped, missed) == (0, set())
            assert parsed.figures["Recall promised"][0] == planned
            assert "left-out" not in parsed.sections
            assert low < float(planned) <= high
            continue
        assert capped > 1000
        assert share < 0.8
        assert float(figure) <= high < float(planned)
        assert "Recall promised" not in parsed.figures
        assert parsed.figures["Comparisons left out"] == (f"{capped:,}", f"the recall of {planned} does not hold")
        said = parsed.sections["left-out"]
        assert f"The run left out {capped:,} comparisons in buckets of more than {limit} documents." in said
        assert f"The planned recall of {planned} does not hold there: similar documents may remain." in said
        assert re.search(r"Measured: of [0-9]+ similar pairs of random documents the run found [0-9]+, [0-9.]+ %", said)
        if pairs_wanted is None:
            assert figure == f"{share:.3f}"


def test_pairs_whose_estimate_is_below_the_threshold_are_found(texts):
    """With estimates, a similar pair that shares a band may be kept because of its estimate: it was compared."""
    result = lsh.deduplicate(texts, 0.7, hasher=HASHER, bands=BANDS, verify="sketch")
    fingerprints = HASHER.fingerprints(texts)
    keys = BANDS.keys(fingerprints)
    pairs_there = np.array(list(combinations(range(240), 2)))
    first, second = pairs_there.T
    shared = (keys[:, first] == keys[:, second]).any(axis=0)
    estimates = (fingerprints[first] == fingerprints[second]).mean(axis=1)
    expected = ~result.keep[pairs_there].all(axis=1) | (shared & (estimates < 0.7))
    assert expected.sum() > (~result.keep[pairs_there].all(axis=1)).sum()
    assert measured_run(result, texts).is_found(pairs_there).tolist() == expected.tolist()


def test_the_clusters_are_those_of_the_run(run, parsed, texts):
    result = run[0]
    clusters = sorted(result.clusters(), key=lambda cluster: (-len(cluster), cluster[0]))
    similarity = dict(zip(result.removed["document"].tolist(), result.removed["similarity"].tolist()))
    expected = [
        [
            f"{len(cluster)}",
            f"{min(similarity[i] for i in cluster[1:].tolist()):.3f}",
            f"doc{cluster[0]}",
            texts[cluster[0]][: drawing.EXCERPT_LENGTH - 1],
        ]
        for cluster in clusters[: choice.MAX_CLUSTERS]
    ]
    rows = [[*row[:3], row[3].removesuffix("…")] for row in parsed.rows["clusters"][1:]]
    assert rows == expected
    assert sum(map(int, parsed.column("sizes", 1))) == len(clusters)
    assert sum(map(int, parsed.column("sizes", 2))) == sum(map(len, clusters))
    assert parsed.rows["sizes"][0] == ["cluster size", "clusters", "documents", "share of the documents in clusters"]
    assert parsed.rows["sizes"][1][0] == "2"
    assert int(parsed.rows["sizes"][1][1]) == sum(len(cluster) == 2 for cluster in clusters)


def test_the_pairs_nearest_to_the_threshold_are_shown(run, parsed):
    result = run[0]
    distinct = result.removed[~result.removed["identical"]]
    nearest = distinct[np.lexsort((distinct["document"], distinct["similarity"]))][0]
    above, below = (parsed.sections[name] for name in ("above", "below"))
    header = re.fullmatch("similarity ([0-9.]{6})doc([0-9]+) kept(.*?)doc([0-9]+) removed.*", above)
    assert header is not None
    assert header[1] == f"{nearest['similarity']:.4f}"
    assert (int(header[2]), int(header[4])) == (nearest["kept"], nearest["document"])
    first = result.near[0]
    assert below.startswith(f"similarity {first['similarity']:.4f}doc{first['i']} ")
    shown = [float(value) for value in re.findall(r"similarity ([0-9.]{6})", above)]
    assert len(shown) == choice.MAX_PAIRS
    assert shown == sorted(shown)
    assert min(shown) >= 0.7
    shown = [float(value) for value in re.findall(r"similarity ([0-9.]{6})", below)]
    assert shown == sorted(shown, reverse=True)
    assert max(shown) < 0.7
    names = re.findall(r"doc[0-9]+", above)
    assert len(names) == len(set(names)) == 2 * choice.MAX_PAIRS


def test_both_sides_below_the_threshold_say_whether_they_are_kept():
    """A document may be removed as a duplicate of another document than the one shown beside it."""
    words = " ".join(WORDS)
    texts = [f"{words} one two", f"{words} six ten one", f"{words} six ten one two"]
    result, source = made(texts, threshold=0.9, bands=lsh.Bands(32, 2), ids=["a", "b", "c"])
    assert result.labels.tolist() == [0, 1, 1]
    assert result.near[["i", "j"]].tolist() == [(0, 2), (0, 1)]
    parsed = Page(source)
    similarity = lsh.jaccard(texts[0], texts[2], shingles=SHINGLES)
    assert parsed.sections["below"] == f"similarity {similarity:.4f}a kept{texts[0]}c removed for b{texts[2]}"
    assert "Just below the threshold: not removed for each other" in parsed.text


def test_a_removal_by_connected_components_is_not_below_the_threshold():
    """The ends of a chain are below the threshold, but `components` removes one as a duplicate of the other."""
    words = " ".join(WORDS)
    texts = [f"{words} one two", f"{words} six ten", f"{words} two six"]
    ends = lsh.jaccard(texts[0], texts[1], shingles=SHINGLES)
    for clusters, labels in [("components", [0, 0, 0]), ("representative", [0, 1, 0])]:
        result, _ = made(texts, threshold=0.85, bands=lsh.Bands(32, 2), clusters=clusters)
        assert result.labels.tolist() == labels
        assert result.near.tolist() == [(0, 1, ends)]
        shown = report.choose(result, sizes=[9] * 3).near
        assert shown == (() if clusters == "components" else ((0, 1, ends, "new"),))


def test_a_late_difference_is_found_in_a_long_text():
    same = " ".join(corpus(200, seed=9))
    a, b = pairs.marked(f"{same} early {same}", f"{same} later {same}")
    assert (re.findall("<mark>(.*?)</mark>", a), re.findall("<mark>(.*?)</mark>", b)) == (["early"], ["later"])
    assert a.startswith("… ")
    assert f"{len(same) + 7 - pairs.PAIR_LENGTH + pairs.CONTEXT:,}"[:2] in a
    assert max(len(a), len(b)) < 2 * pairs.PAIR_LENGTH
    # Compared before it is cut: the last word of both is outside one excerpt. A paragraph in only one text is marked.
    start, more = " ".join(f"start{i}" for i in range(60)), " ".join(f"more{i}" for i in range(40))
    a, b = pairs.marked(f"Monday {start} Reuter", f"Tuesday {start} {more} Reuter")
    assert re.findall("<mark>(.*?)</mark>", a) == ["Monday"]
    assert a.endswith("Reuter")
    assert re.findall("<mark>(.*?)</mark>", b) == ["Tuesday", re.search("more0.*?(?=</mark>)", b)[0]]
    assert "Reuter" not in b  # it ends before that word
    long = " ".join(f"word{i}" for i in range(3 * pairs.MAX_COMPARED // 8))  # too long to compare word by word
    a, b = pairs.marked("one two Reuter", f"one {long} two Reuter")
    assert re.findall("<mark>", a) == []


def common_length(first: list[str], second: list[str]) -> int:
    """The length of a longest common subsequence, by the table of all lengths."""
    above = [0] * (len(second) + 1)
    for word in first:
        row = [0]
        for j, other in enumerate(second):
            row.append(above[j] + 1 if word == other else max(above[j + 1], row[j]))
        above = row
    return above[-1]


@strategies.examples(150)
@given(st.lists(st.sampled_from("abcd"), max_size=90), st.lists(st.sampled_from("abcd"), max_size=90))
def test_the_common_words_are_a_longest_common_subsequence(first, second):
    common = pairs.common_words(first, second)
    kept = [[word for word, one in zip(words, ones) if one] for words, ones in zip((first, second), common)]
    assert kept[0] == kept[1]
    assert len(kept[0]) == common_length(first, second)


def test_excerpts_of_other_values_are_refused():
    with pytest.raises(TypeError, match=r"^b must be a str, got bytes$"):
        lsh.report.excerpts("a text", b"bytes")
    with pytest.raises(ValueError, match=r"^length must be 1 or more, got 0$"):
        lsh.report.excerpts("a text", "another", 0)


@strategies.examples(150)
@given(st.text("ab, \n\u732b\U0001f600", max_size=60), st.text("ab, \n\u732b", max_size=60), st.text("a b", max_size=9))
def test_excerpts_are_parts_of_the_texts(a, b, end):
    """With any marks; unmarked words are the same in both, except punctuation between two differences."""
    a, b = a + end, b + end
    for length in (5, 1000):
        both = pairs.excerpts(a, b, length)
        for excerpt, text in zip(both, (a, b)):
            shown = "".join(piece for piece, _ in excerpt.pieces)
            assert shown == text[excerpt.before : excerpt.before + length]
            assert excerpt.after == len(text) - excerpt.before - len(shown)
        assert both[0].before == both[1].before
    if a != b:
        assert any(differs for excerpt in both for _, differs in excerpt.pieces)
    letters = [re.sub(r"\W", "", "".join(piece for piece, differs in one.pieces if not differs)) for one in both]
    assert letters[0] == letters[1]


def test_what_is_left_of_each_source(texts, run, parsed):
    keep = run[0].keep
    rows = {row[0]: row[1:] for row in parsed.rows["survival"][1:]}
    assert len(rows) == 7
    for k in range(7):
        name = f"site {k}" if k else 'a <quoted> "source"'
        here = keep[k::7]
        lost = 100 * (~here).mean()
        expected = [f"{len(here)}", f"{here.sum()}", f"{(~here).sum()}", f"{'▲ ' if lost > 30 else ''}{lost:.1f} %"]
        assert rows[name] == expected
    lost = [float(cell.strip("▲ %")) for cell in parsed.column("survival", 4)]
    assert lost == sorted(lost, reverse=True)
    alarming = sum(value > 30 for value in lost)
    assert alarming
    assert f"{alarming} of 7 sources" in parsed.sections["alarm"]


# ---- accepted arguments ----


@pytest.mark.parametrize("number", [0, 1])
def test_hardly_a_document(number):
    parsed = Page(made(["a text about ferries"][:number], sources=["x"][:number])[1])
    assert f"0 of {'1 document' if number else '0 documents'} are duplicates" in "".join(parsed.text)
    assert parsed.figures["Recall measured"] == ("not measured", "0 sampled pairs, 20 needed")
    assert "No duplicates among the new documents." in parsed.text


def test_missing_texts_and_sizes_in_bytes_of_utf8():
    parsed = Page(made([None, "", "naïve ferries", "naïve ferries"], missing="empty")[1])
    said = {row[0]: row[1] for row in parsed.rows["run"]}
    assert said["missing texts, kept"] == "1"
    assert said["documents without shingles, kept"] == "2"
    assert parsed.figures["Text removed"] == ("14 bytes", "50.0 % of 28 bytes")


class Recorded(dict):
    """Texts by position, of which it has those that were requested."""

    def __init__(self, texts: list) -> None:
        self.texts = texts

    def __missing__(self, position: int) -> object:
        return self.setdefault(position, self.texts[position])


def test_texts_of_any_form_give_the_same_page(texts):
    """Also of bytes, by position in a column with other labels, missing, and as a stream, which a callable returns."""
    texts = [None, *texts, "été"]
    result = lsh.deduplicate(texts, 0.7, missing="empty")
    expected, sizes = report.html(result, texts=texts), np.array([len((text or "").encode()) for text in texts])

    def check(form: object, ids: object = None) -> None:
        assert report.html(result, texts=form) == expected
        assert report.html(result, texts=form, sizes=sizes, ids=range(242) if ids is None else ids) == expected

    check([text and text.encode() for text in texts])
    check(dict(enumerate(texts)))
    check(lambda: iter(texts))
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed; the extra `test` has it")
    check(lambda: pyarrow.table({"text": texts}).to_reader(7))
    pandas = pytest.importorskip("pandas", reason="pandas is not installed; the extra `test` has it")
    labels = range(242, 0, -1)
    check(pandas.Series(texts, index=labels, dtype=object), pandas.Series(range(242), index=labels))


def test_bytes_that_are_no_utf8_are_compared_as_they_are():
    texts = [bytes([0x80 + 8 * i + k // 20 for k in range(100)]) + b" ferry" for i in range(2)]  # equal if decoded
    _, source = made(texts)
    assert "by exact comparison of 1 pair among 2 sampled documents" in source
    assert "No two different texts among them reach the threshold." in source


def test_old_documents_are_shown_from_their_side(texts):
    old = [f"{text} old" for text in texts[:60]]
    result, source = made(texts, against=old, against_ids=[f"old{i}" for i in range(60)])
    assert (result.removed["side"] == "old").any()
    assert (result.near["side"] == "old").any()
    parsed = Page(source)
    assert "also compared with 60 old documents" in "".join(parsed.text)
    assert re.search(r"old[0-9]+ old, kept", parsed.sections["above"])
    assert re.search(r"old[0-9]+ old, kept", parsed.sections["below"])
    with pytest.raises(ValueError, match="against must be given"):
        report.html(result, texts=texts)


@pytest.mark.parametrize(
    "more", [{"clusters": "components"}, {"verify": None}, {"verify": "sketch"}, {"threshold": 1.0}]
)
def test_every_kind_of_run_is_reported(texts, more):
    result, source = made(texts, **more, bands=lsh.plan(more.get("threshold", 0.7), 0.95, 64))
    parsed = Page(source)
    counts = [int(count) for count in parsed.column("similarities", 1)]
    assert sum(counts) == len(result.removed) > 0
    assert ("Estimated similarity" in source) == ("verify" in more)
    tiles = {True: ("Estimated", "from fingerprints"), False: ("Compared exactly", "passed the sketch filter")}
    name, what = tiles["verify" in more]
    assert parsed.figures[name] == (f"{result.summary()['compared']:,}", what)
    assert ("each removed document is compared with the kept one" in source) == ("clusters" in more)
    assert "A candidate pair is two documents that share a band, without identical copies." in source


THREE = ["a ferry text", "a ferry text", "another"]
BAD = [
    ({"texts": "one text"}, TypeError, "texts must be a sequence of texts, a dict {position: text}, or a"),
    ({"texts": iter(THREE)}, TypeError, r"texts must be a sequence of texts, .* or a function that returns the texts"),
    ({"texts": ["a"]}, ValueError, r"texts must have one value for each document \(3\), got 1"),
    ({"texts": [*THREE[:2], 3]}, TypeError, r"texts\[2\] must be str, bytes, bytearray or memoryview, got int"),
    ({"ids": {2: "c"}}, ValueError, "ids must have an id at position 0, and has none"),
    ({"ids": {"a", "b", "c"}}, TypeError, "ids must be a sequence with one value for each document, got set"),
    ({"sizes": [1, 2]}, ValueError, r"sizes must have one value for each document \(3\), got 2"),
    ({"sources": "abc"}, TypeError, "sources must be a sequence with one value for each document, got str"),
    ({"sample_pairs": -1}, ValueError, "sample_pairs must be 0 or more, got -1"),
    ({"sample_pairs": 10**9}, ValueError, "sample_pairs must be at most"),
    ({"choice": []}, TypeError, r"choice must be what lsh\.report\.choose returns, got list"),
    ({"result": []}, TypeError, r"result must be what lsh\.deduplicate returns, got list"),
]


@pytest.mark.parametrize(("more", "error", "words"), BAD)
def test_bad_parameters_are_refused(more, error, words):
    result = lsh.deduplicate(THREE, 0.7, hasher=HASHER, bands=BANDS)
    with pytest.raises(error, match=words):
        report.html(**{"result": result, "texts": THREE, **more})
    if more.keys() <= {"sizes", "sample_pairs", "result"}:
        with pytest.raises(error, match=words):
            report.choose(**{"result": result, "sizes": [9] * 3, **more})


# ---- the choice of pairs ----


@pytest.mark.parametrize("sample_pairs", [0, 40, 500_000])
def test_a_choice_names_every_text_that_is_read(texts, sample_pairs):
    old = [f"{text} old" for text in texts[:60]]
    result = lsh.deduplicate(texts, 0.7, hasher=HASHER, bands=BANDS, against=old)
    sizes = [len(text) for text in texts]
    choice = report.choose(result, sizes=sizes, sample_pairs=sample_pairs)
    page = report.html(result, texts=texts, against=old, sample_pairs=sample_pairs)
    new, against = Recorded(texts), Recorded(old)
    assert report.html(result, texts=new, choice=choice, sizes=sizes, against=against) == page
    assert sorted(new) == choice.positions
    assert sorted(against) == choice.against_positions != []
    assert choice.against_positions == sorted(set(choice.against_positions))


def test_a_choice_is_a_value_of_its_result(texts, run):
    sizes = np.array([len(text) for text in texts])
    choice = report.choose(run[0], sizes=sizes)
    assert choice == report.choose(run[0], sizes=sizes.tolist())
    few = lsh.deduplicate(texts[:20], 0.7, hasher=HASHER, bands=BANDS)
    with pytest.raises(ValueError, match=r"choice must be made for this result, which has 20 documents, got one with"):
        report.html(few, texts=texts[:20], choice=choice)
    with pytest.raises(ValueError, match="sample_pairs cannot be combined with choice; pass sample_pairs to"):
        report.html(run[0], texts=texts, choice=choice, sample_pairs=500_000)
    for pairs_of_a_side in (choice.removed, choice.near):  # no document is in two pairs
        documents = [document for pair in pairs_of_a_side for document in pair.documents]
        assert len(documents) == len(set(documents)) == 24


def test_random_removals_are_drawn_from_all(texts, run, parsed):
    removed = run[0].removed
    chosen = report.choose(run[0], sizes=[len(text) for text in texts]).random
    different = removed[~removed["identical"]]
    assert len(chosen) == choice.MAX_RANDOM < len(different)
    at = [different["document"].tolist().index(pair.first) for pair in chosen]
    assert at == sorted(set(at))
    assert [pair.second for pair in chosen] == different["kept"][at].tolist()
    assert max(at) > len(different) // 2 > min(at)
    above = np.sort(different["similarity"])[choice.MAX_PAIRS]
    assert max(pair.similarity for pair in chosen) > above  # not the pairs nearest to the threshold
    assert f"12 of the {len(different)} removals that are not byte-identical copies" in "".join(parsed.text)
    names = re.findall("doc([0-9]+) removed", parsed.sections["random"])
    assert [int(name) for name in names] == [pair.first for pair in chosen]


def test_members_of_the_largest_clusters_are_shown(texts, run, parsed):
    result = run[0]
    chosen = report.choose(result, sizes=[len(text) for text in texts])
    expected = []
    for kept in chosen.clusters[: choice.MEMBER_CLUSTERS]:
        rows = [row for row in result.removed.tolist() if row[1] == kept and not row[3]]
        rows.sort(key=lambda row: (row[2], row[0]))
        expected += [(rows[i][0], kept, rows[i][2]) for i in (0, len(rows) // 2) if len(rows) > 1]
    assert len(expected) == 2 * choice.MEMBER_CLUSTERS
    assert [(pair.first, pair.second, pair.similarity) for pair in chosen.members] == expected
    names = re.findall("doc([0-9]+) kept.*?doc([0-9]+) removed", parsed.sections["members"])
    assert [(int(removed), int(kept)) for kept, removed in names] == [pair[:2] for pair in expected]


# ---- security and reproducibility ----


def hostile() -> str:
    """A page made from hostile values for every argument."""
    filler = " ".join(WORDS * 3)
    texts = [f"{bad} {end} {filler}" for bad in HOSTILE for end in ("one", "two", "two", "three four five six seven")]
    return made(
        texts,
        ids=[HOSTILE[i // 4] for i in range(20)],
        sources=[HOSTILE[i % 5] for i in range(20)],
        parameters=dict(zip(HOSTILE, HOSTILE[::-1])),
    )[1]


def test_hostile_texts_stay_text(run):
    source = hostile()
    source.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", source)
    assert "nul ␀ bell ␇ return ␍ escape ␛[31m delete ␡ � � �" in source
    parsed = Page(source)
    harmless = Page(run[1])
    assert {tag for tag, _ in parsed.elements} <= {tag for tag, _ in harmless.elements}
    assert [tag for tag, _ in parsed.elements].count("script") == 1
    names = {name for _, attributes in parsed.elements for name in attributes}
    assert names <= {name for _, attributes in harmless.elements for name in attributes}
    assert not any(name.startswith("on") or name in ("src", "style", "srcset") for name in names)
    told = {row[0] for row in parsed.rows["run"]}
    for bad in HOSTILE[:4]:
        assert bad in told
        assert bad in parsed.column("survival", 0)
        assert any(text.startswith(bad) for text in parsed.pairs["above"])


def test_no_address_and_no_way_out(run):
    source = run[1]
    assert not re.search(r"https?:|//[a-z]|\burl\(|@import|\bsrc=|fetch|XMLHttp|WebSocket|sendBeacon", source)
    parsed = Page(source)
    links = [attributes for tag, attributes in parsed.elements if tag == "link"]
    assert links == [{"rel": "icon", "href": "data:,"}]
    parts = [attributes["id"] for tag, attributes in parsed.elements if tag == "section"]
    leading = [attributes["href"] for tag, attributes in parsed.elements if tag != "link" and "href" in attributes]
    assert leading == [f"#{part}" for part in parts]  # the table of contents, in the order of the page
    assert parts[0] == "part-around-the-threshold"  # pairs before tables


def test_the_policy_lets_the_page_alone_run(run):
    (policy,) = [a["content"] for tag, a in Page(run[1]).elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        ((_, content),) = re.findall(rf"<({tag})>(.*?)</{tag}>", run[1], re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


@pytest.mark.few(1)
@pytest.mark.parametrize("unit", ['"', "a ' ", "<&> "])
def test_huge_texts_and_names_make_no_huge_page(unit):
    megabyte = unit * (1_000_000 // len(unit))
    texts = [f"{megabyte}{i}{unit * (i * 200)}" for i in range(8)] + [f"{unit * 2000}{i} {i}" for i in range(60)]
    names = [f"{megabyte}{i}" for i in range(len(texts))]
    result = lsh.deduplicate(texts, 0.9, hasher=HASHER, bands=lsh.plan(0.9, 0.95, 64), verify=None)
    source = report.html(
        result,
        texts=texts,
        ids=names,
        sources=names,
        parameters={f"{megabyte}{i}": megabyte for i in range(200)},
    )
    assert len(source.encode()) < MAX_BYTES
    assert len(Page(source).rows["run"]) <= drawing.MAX_VALUES + 10


def shown_by_browser(folder: Path, source: str) -> Page:
    (folder / "report.html").write_text(source, "utf-8")
    found = dumped(folder, "report.html", "--window-size=1200,900")
    return Page(re.sub("^<!DOCTYPE", "<!doctype", found))


def test_a_browser_shows_the_figures(tmp_path):
    """Hostile texts do nothing."""
    source = hostile()
    expected, shown = Page(source), shown_by_browser(tmp_path, source)
    assert (shown.figures, shown.rows) == (expected.figures, expected.rows)
    assert "taken" not in [data for data in shown.text if "script" not in data]
    tags, shown_tags = ([tag for tag, _ in one.elements].count("title") for one in (expected, shown))
    assert tags == shown_tags


@pytest.mark.slow
def test_a_click_sorts(tmp_path, run, parsed):
    click = 'document.querySelectorAll("#{} th button")[{}].click();'
    script = click.format("clusters", 1) + click.format("survival", 0) + 2 * click.format("sizes", 2)
    copy = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", run[1])  # without the policy, a script runs
    assert copy != run[1]
    shown = shown_by_browser(tmp_path, copy.replace("</body>", f"<script>{script}</script></body>"))
    similarities = [float(value) for value in shown.column("clusters", 1)]
    assert similarities == sorted(similarities, reverse=True)
    assert similarities != [float(value) for value in parsed.column("clusters", 1)]
    assert sorted(shown.rows["clusters"]) == sorted(parsed.rows["clusters"])
    names = shown.column("survival", 0)
    assert names == ['a <quoted> "source"', *(f"site {k}" for k in range(1, 7))]
    documents = [int(value) for value in shown.column("sizes", 2)]
    assert documents == sorted(documents)
    ways = [attributes["aria-sort"] for tag, attributes in shown.elements if attributes.get("aria-sort")]
    assert sorted(ways) == ["ascending", "ascending", "descending"]
