"""Real corpora through the commands; the large ones need minutes, and LSH_TEST_FULL, which `.ci/run --full` sets.

The expected pairs are those of benchmarks/truth.py, from a join without lsh. Reuters is in tests/engine.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path

import pytest
import reference
from running import done, rows

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import harness
import truth

OPTIONS = ["--ngram", "5", "--unit", "byte", "--threshold", "0.8"]
PAIRS = {  # at .8 and above, by 5 bytes: shared/data/README.md
    "articles2500.tsv.gz": 20,  # planted copies
    "ads_rome_it.tsv.gz": 10_526,  # many copies of few advertisements, almost no pair near the threshold
    "win32docs.tsv.gz": 1_118,
    "multilingual.jsonl.gz": 1_591,
    "plagiarised_answers.jsonl.gz": 6,
    "refs_respiratory.jsonl.gz": 147,
}
LARGE = pytest.mark.skipif("LSH_TEST_FULL" not in os.environ, reason="takes minutes: LSH_TEST_FULL=1 runs it")
MARKS = {"articles2500.tsv.gz": (), "ads_rome_it.tsv.gz": pytest.mark.slow}


def ids_of(data: bytes, name: str) -> list[bytes]:
    lines = data.split(b"\n")
    assert lines.pop() == b""
    if ".jsonl" in name:
        return [json.loads(line)["id"].encode() for line in lines]
    return [line.partition(b"\t")[0] for line in lines]


def read_table(path: Path) -> list[list[bytes]]:
    return rows(gzip.decompress(path.read_bytes()))


def similar_pairs(found: harness.Corpus, folder: Path) -> list[tuple[int, int, float]]:
    """All pairs at .8. Those of the articles are the planted copies: the join would take long."""
    if found.name != "articles2500.tsv.gz":
        return truth.join(found.texts)
    planted = read_table(folder / "articles2500_pairs.tsv.gz")
    places = [sorted(found.ids.index(identity.decode()) for identity in row) for row in planted]
    return [(i, j, reference.jaccard(found.texts[i], found.texts[j], 5, "byte")) for i, j in places]


@pytest.fixture(scope="module", params=[pytest.param(name, marks=MARKS.get(name, LARGE)) for name in PAIRS])
def corpus(request, data_folder):
    """The path, all pairs by id, and the ids that are removed if none of them is missed."""
    found = harness.corpus(request.param)
    pairs = similar_pairs(found, data_folder)
    assert len(pairs) == PAIRS[request.param]
    ids = [identity.encode() for identity in found.ids]
    removed = {ids[i] for i in truth.removals(found.texts, pairs)}
    return data_folder / request.param, {(ids[i], ids[j]): similarity for i, j, similarity in pairs}, removed


def test_pairs(tmp_path, corpus):
    path, expected, _ = corpus
    done(tmp_path, "pairs", path, *OPTIONS, "-o", "pairs.tsv.gz")
    table = read_table(tmp_path / "pairs.tsv.gz")
    found = {(a, b): float(similarity) for a, b, similarity in table}
    assert len(found) == len(table)
    assert found.items() <= expected.items()
    assert len(found) >= 0.99 * len(expected)


def test_dedup(tmp_path, corpus):
    path, expected, exact = corpus
    out = f"out{''.join(path.suffixes)}"
    page = ["--report", "report.html"]
    done(tmp_path, "dedup", path, *OPTIONS, "-o", out, "--removed", "removed.tsv.gz", "--max-memory", "20MB", *page)
    ids = ids_of(gzip.decompress(path.read_bytes()), path.name)
    removed = read_table(tmp_path / "removed.tsv.gz")
    gone = {row[0] for row in removed}
    assert ids_of(gzip.decompress((tmp_path / out).read_bytes()), path.name) == [i for i in ids if i not in gone]
    for identity, witness, similarity in removed:
        assert witness not in gone
        pair = (witness, identity) if (witness, identity) in expected else (identity, witness)
        assert expected[pair] == float(similarity)
    assert len(exact - gone) <= 0.005 * len(gone)
    assert f"{len(gone):,} of {len(ids):,} documents" in (tmp_path / "report.html").read_text("utf-8")
