#!/usr/bin/env python3
"""Check what docs/migrating.md says about other libraries, of .ci/requirements-peers.txt.

A check is skipped, with a line, if its library is not installed, or is older than the page says.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import checks
import numpy as np
from packaging.version import Version

import lsh

PAGE = (checks.ROOT / "docs" / "migrating.md").read_text(encoding="utf-8")
Found = Callable[[list[str], list[str], int], bool]


def need(package: str, least: str) -> None:
    try:
        if Version(version(package)) >= Version(least):
            return
    except PackageNotFoundError:
        pass
    raise checks.MissingError(f"{package} {least} is not installed; see .ci/requirements-peers.txt")


ROWS = [line.split("\t") for line in (checks.ROOT / "examples/sample.tsv").read_text(encoding="utf-8").split("\n")[:-1]]
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


def counts_are_those_of_the_table(row: str, found_by: Found) -> None:
    counts = []
    for similarity in (0.8, 0.85, 0.9, 0.95):
        pairs = pairs_of_sets(similarity)
        a, b = map(set, pairs[0])
        assert abs(len(a & b) / len(a | b) - similarity) < 1e-9
        counts.append(sum(found_by(*pair, seed) for seed, pair in enumerate(pairs)))
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {row}")]
    assert line.split(" | ")[1:] == [*map(str, counts[:-1]), f"{counts[-1]} |"]


def check_the_pairs_that_lsh_finds() -> None:
    counts_are_those_of_the_table("`lsh.find_pairs`", found_by_lsh)


def check_datasketch() -> None:
    need("datasketch", "2.0.0")
    counts_are_those_of_the_table("datasketch, `MinHashLSH", found_by_datasketch)
    from datasketch import MinHash, MinHashLSH

    empty, other_empty, full = MinHash(128), MinHash(128), MinHash(128)
    full.update(b"token")
    index = MinHashLSH(threshold=0.8, num_perm=128)
    index.insert("empty", empty)
    assert empty.jaccard(other_empty) == 1.0
    assert index.query(other_empty) == ["empty"]
    checks.raises(ValueError, "already exists", index.insert, "empty", full)
    checks.raises(ValueError, "does not exist", index.remove, "unknown")
    checks.raises(ValueError, "different seeds", full.jaccard, MinHash(128, seed=2))
    checks.raises(TypeError, "", full.update, "token")


def check_rensa() -> None:
    need("rensa", "0.5.0")
    counts_are_those_of_the_table("rensa, `RMinHashDeduplicator", found_by_rensa)
    from rensa import RMinHash, RMinHashDeduplicator, RMinHashLSH

    one, other, empty, empty_too = RMinHash.from_token_sets([["a"], ["b"], [], []], num_perm=128, seed=42)
    index = RMinHashLSH(0.8, 128, 16)
    checks.raises(TypeError, "", index.insert, "a", one)
    checks.raises(ValueError, "divisible", RMinHashLSH, 0.8, 128, 20)
    index.insert(0, one)
    index.insert(0, other)
    assert (index.query(one), index.query(other)) == ([], [0])
    assert empty.jaccard(empty_too) == 1.0
    dedup = RMinHashDeduplicator(threshold=0.8, num_perm=128, use_lsh=True)
    assert dedup.add_pairs([("a", []), ("b", []), ("c", ["x"])]) == [True, False, True]
    assert not dedup.add("a", other)
    assert dedup.len() == 2
    damaged = [["a"], ["a\ud800"]]
    checks.raises(UnicodeEncodeError, "", lambda: RMinHash.from_token_sets(damaged, num_perm=128, seed=42))
    assert pickle.loads(pickle.dumps(one)).digest() == one.digest()
    assert pickle.loads(pickle.dumps(index)).query(other) == [0]
    checks.raises(TypeError, "", pickle.dumps, dedup)


def check_text_dedup() -> None:
    need("text-dedup", "0.4.0")
    import datasets

    short = ["one two three four", "alpha beta gamma delta epsilon"]
    rows = {"id": [row[0] for row in ROWS] + ["short", "long"], "text": [*TEXTS, *short]}
    with tempfile.TemporaryDirectory() as temp:
        datasets.Dataset.from_dict(rows).save_to_disk(str(Path(temp, "sample")))
        command = ["text_dedup.minhash", "--path", "sample", "--local", "--column", "text", "--output", "unique"]
        line = [sys.executable, "-m", *command, "--threshold", "0.8", "--num_proc", "1"]
        subprocess.run(line, cwd=temp, check=True, capture_output=True)
        kept = set(datasets.load_from_disk(str(Path(temp, "unique")))["id"])
    assert "long" in kept
    assert "short" not in kept  # a text of fewer than five words is removed
    assert len(kept) - 1 == 137
    assert "# keeps 137 of 200" in PAGE
    words = lsh.Shingles(5, "word", lowercase=True)
    result = lsh.deduplicate(TEXTS, 0.8, shingles=words)
    assert f"# keeps {len(result.kept)} of 200" in PAGE
    groups = [[ROWS[i][0] in kept for i in group] for group in result.clusters()]
    alone = [group.index(True) for group in groups if sum(group) == 1]
    several, none = sum(sum(group) > 1 for group in groups), sum(not any(group) for group in groups)
    assert (len(groups), alone.count(0), len(alone), several, none) == (47, 0, 38, 8, 1)
    assert "In none of the 47 groups that `lsh` finds does text-dedup keep the first document\nalone: in 38" in PAGE
    assert "in 8 several documents, and in one no document" in PAGE


if __name__ == "__main__":
    sys.exit(checks.main(globals()))
