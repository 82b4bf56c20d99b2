"""The examples of pages whose sections need optional packages: each section runs after the beginning of its page.

A section is skipped if its packages are not installed, or are older than the page says.
"""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.version import Version

import lsh

REPOSITORY = Path(__file__).parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PACKAGES: dict[tuple[str, str], dict[str, str | None]] = {  # page and section: packages, and their least versions
    ("etl", "pandas"): {"pandas": None},
    ("etl", "Polars"): {"polars": None},
    ("etl", "Arrow"): {"pyarrow": None},
    ("etl", "DuckDB"): {"duckdb": None, "pyarrow": None},
    ("etl", "Hugging Face"): {"datasets": None},
    ("etl", "New rows each day"): {},
    ("migrating", "mattilyra/LSH"): {},
    ("migrating", "datasketch"): {"datasketch": "2.0.0"},
    ("migrating", "text-dedup"): {},
    ("migrating", "rensa"): {"rensa": "0.5.0"},
}
WHERE = dict.fromkeys(["pandas", "polars", "duckdb", "pyarrow"], "the extra `test` has it")
WHERE["datasets"] = "see .ci/requirements-remote.txt"
OTHER = "see .ci/requirements-peers.txt"


def sections(page: str) -> tuple[str, dict[str, str]]:
    """Return the beginning of a page, and its sections by their titles."""
    text = (REPOSITORY / "docs" / f"{page}.md").read_text(encoding="utf-8")
    beginning, *parts = re.split(r"(?m)^(?=## )", text)
    return beginning, {part.splitlines()[0].removeprefix("## "): part for part in parts}


def need(package: str, least: str | None) -> None:
    """Skip the test if a package is not installed, or is older than the version that the page is about."""
    try:
        if Version(version(package)) >= Version(least or "0"):
            return
    except PackageNotFoundError:
        pass
    pytest.skip(f"{package} {least or ''} is not installed; {WHERE.get(package, OTHER)}")


@pytest.mark.filterwarnings("ignore")  # of the packages
@pytest.mark.parametrize(("page", "section"), PACKAGES)
def test_the_examples_of_a_section(page, section, monkeypatch):
    for package, least in PACKAGES[page, section].items():
        need(package, least)
    monkeypatch.chdir(REPOSITORY / "examples")
    beginning, found = sections(page)
    examples = doctest.DocTestParser().get_doctest(beginning + found[section], {"__name__": "__main__"}, page, "", 0)
    result = doctest.DocTestRunner(optionflags=FLAGS).run(examples)
    assert result.attempted >= 5
    assert result.failed == 0


@pytest.mark.parametrize("page", sorted({page for page, _ in PACKAGES}))
def test_every_section_with_examples_is_run(page):
    with_examples = [title for title, section in sections(page)[1].items() if ">>>" in section]
    assert with_examples == [section for one, section in PACKAGES if one == page]


# ---- what docs/migrating.md says about other libraries ----

ROWS = [line.split("\t") for line in (REPOSITORY / "examples/sample.tsv").read_text(encoding="utf-8").split("\n")[:-1]]
TEXTS = [row[1] for row in ROWS]


def pairs_of_sets(similarity: float, count: int = 1000) -> list[tuple[list[str], list[str]]]:
    """Return pairs of lists of tokens with exactly this Jaccard similarity, a multiple of 0.05."""
    twentieths = round(20 * similarity)
    shared, each = 50 * twentieths, 25 * (20 + twentieths)  # 2 * each - shared = 1000
    draw = np.random.default_rng(0)
    made = []
    for _ in range(count):
        tokens = draw.integers(0, 1 << 60, 1000).astype(str).tolist()
        made.append((tokens[:each], tokens[each - shared :]))
    return made


def found_by_lsh(a: list[str], b: list[str], seed: int) -> bool:
    options: dict[str, Any] = {"shingles": lsh.Shingles(1, "word"), "random_state": seed, "num_threads": 1}
    return bool(list(lsh.find_pairs([" ".join(a)], 0.8, others=[" ".join(b)], **options)))


@cache
def bands_of_datasketch() -> tuple[int, int]:
    from datasketch import MinHashLSH

    index = MinHashLSH(threshold=0.8, num_perm=128)
    return index.b, index.r


def found_by_datasketch(a: list[str], b: list[str], seed: int) -> bool:
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(num_perm=128, params=bands_of_datasketch())  # choosing them takes long
    one, other = MinHash.bulk([[token.encode() for token in tokens] for tokens in (a, b)], num_perm=128, seed=seed + 1)
    index.insert("a", one)
    return bool(index.query(other))


def found_by_rensa(a: list[str], b: list[str], seed: int) -> bool:
    from rensa import RMinHash, RMinHashDeduplicator

    dedup = RMinHashDeduplicator(threshold=0.8, num_perm=128, use_lsh=True, seed=seed)
    one, other = RMinHash.from_token_sets([a, b], num_perm=128, seed=seed)
    dedup.add("a", one)
    return dedup.is_duplicate("b", other)


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize(
    ("row", "found_by", "package", "least"),
    [
        ("`lsh.find_pairs`", found_by_lsh, "numpy", None),
        ("datasketch, `MinHashLSH", found_by_datasketch, "datasketch", "2.0.0"),
        ("rensa, `RMinHashDeduplicator", found_by_rensa, "rensa", "0.5.0"),
    ],
)
def test_the_table_of_pairs_that_are_found(row, found_by, package, least):
    need(package, least)
    counts = []
    for similarity in (0.8, 0.85, 0.9, 0.95):
        pairs = pairs_of_sets(similarity)
        a, b = map(set, pairs[0])
        assert len(a & b) / len(a | b) == pytest.approx(similarity)
        counts.append(sum(found_by(*pair, seed) for seed, pair in enumerate(pairs)))
    (line,) = [line for line in sections("migrating")[0].splitlines() if line.startswith(f"| {row}")]
    assert line.split(" | ")[1:] == [*map(str, counts[:-1]), f"{counts[-1]} |"]


def test_what_the_page_says_of_datasketch():
    need("datasketch", "2.0.0")
    from datasketch import MinHash, MinHashLSH

    empty, other_empty, full = MinHash(128), MinHash(128), MinHash(128)
    full.update(b"token")
    index = MinHashLSH(threshold=0.8, num_perm=128)
    index.insert("empty", empty)
    assert empty.jaccard(other_empty) == 1.0
    assert index.query(other_empty) == ["empty"]
    with pytest.raises(ValueError, match="already exists"):
        index.insert("empty", full)
    with pytest.raises(ValueError, match="does not exist"):
        index.remove("unknown")
    with pytest.raises(ValueError, match="different seeds"):
        full.jaccard(MinHash(128, seed=2))
    with pytest.raises(TypeError):
        full.update("token")


def test_what_the_page_says_of_rensa():
    need("rensa", "0.5.0")
    import pickle

    from rensa import RMinHash, RMinHashDeduplicator, RMinHashLSH

    one, other, empty, empty_too = RMinHash.from_token_sets([["a"], ["b"], [], []], num_perm=128, seed=42)
    index = RMinHashLSH(0.8, 128, 16)
    with pytest.raises(TypeError):
        index.insert("a", one)
    with pytest.raises(ValueError, match="divisible"):
        RMinHashLSH(0.8, 128, 20)
    index.insert(0, one)
    index.insert(0, other)
    assert (index.query(one), index.query(other)) == ([], [0])
    assert empty.jaccard(empty_too) == 1.0
    dedup = RMinHashDeduplicator(threshold=0.8, num_perm=128, use_lsh=True)
    assert dedup.add_pairs([("a", []), ("b", []), ("c", ["x"])]) == [True, False, True]
    assert not dedup.add("a", other)
    assert dedup.len() == 2
    with pytest.raises(UnicodeEncodeError):
        RMinHash.from_token_sets([["a"], ["a\ud800"]], num_perm=128, seed=42)
    assert pickle.loads(pickle.dumps(one)).digest() == one.digest()
    assert pickle.loads(pickle.dumps(index)).query(other) == [0]
    with pytest.raises(TypeError):
        pickle.dumps(dedup)


@pytest.mark.slow
def test_what_the_page_says_of_text_dedup(tmp_path):
    need("text-dedup", "0.4.0")
    import datasets

    short = ["one two three four", "alpha beta gamma delta epsilon"]
    rows = {"id": [row[0] for row in ROWS] + ["short", "long"], "text": [*TEXTS, *short]}
    datasets.Dataset.from_dict(rows).save_to_disk(str(tmp_path / "sample"))
    command = ["text_dedup.minhash", "--path", "sample", "--local", "--column", "text", "--output", "unique"]
    line = [sys.executable, "-m", *command, "--threshold", "0.8", "--num_proc", "1"]
    subprocess.run(line, cwd=tmp_path, check=True, capture_output=True)
    kept = set(datasets.load_from_disk(str(tmp_path / "unique"))["id"])
    assert "long" in kept
    assert "short" not in kept  # a text of fewer than five words is removed
    assert len(kept) - 1 == 137
    page = sections("migrating")[1]["text-dedup"]
    assert "# keeps 137 of 200" in page
    words = lsh.Shingles(5, "word", lowercase=True)
    result = lsh.deduplicate(TEXTS, 0.8, shingles=words)
    assert f"# keeps {len(result.kept)} of 200" in page
    groups = [[ROWS[i][0] in kept for i in group] for group in result.clusters()]
    alone = [group.index(True) for group in groups if sum(group) == 1]
    several, none = sum(sum(group) > 1 for group in groups), sum(not any(group) for group in groups)
    assert (len(groups), alone.count(0), len(alone), several, none) == (47, 0, 38, 8, 1)
    assert "In none of the 47 groups that `lsh` finds does text-dedup keep the first document\nalone: in 38" in page
    assert "in 8 several documents, and in one no document" in page
