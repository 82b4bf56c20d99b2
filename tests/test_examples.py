"""The sample in the repository: its script reproduces it byte for byte, and the numbers in its README are correct.

The script is run as a user runs it. reference.py counts, not the library.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import reference

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture(scope="module")
def sample() -> list[tuple[str, str]]:
    lines = (EXAMPLES / "sample.tsv").read_bytes().decode("utf-8").split("\n")
    assert lines.pop() == ""
    rows = []
    for line in lines:
        doc_id, text = line.split("\t")
        rows.append((doc_id, text))
    return rows


def test_the_script_writes_the_committed_file(tmp_path):
    made = tmp_path / "made.tsv"
    subprocess.run([sys.executable, str(EXAMPLES / "make_sample.py"), str(made)], check=True, cwd=tmp_path)
    assert made.read_bytes() == (EXAMPLES / "sample.tsv").read_bytes()


def test_sample_is_plain(sample):
    ids = [doc_id for doc_id, _ in sample]
    assert len(set(ids)) == len(ids) == 200
    for _, text in sample:
        assert 150 <= len(text.encode("utf-8")) <= 600
        assert text == " ".join(text.split())


def test_readme_states_the_number_of_near_duplicates(sample):
    stated = re.search(r"(\d+) of them are near duplicates", (EXAMPLES / "README.md").read_text(encoding="utf-8"))
    texts = [text for _, text in sample]
    result = reference.deduplicate_exact(texts, 0.8, n=8, unit="char")
    assert stated
    assert int(stated[1]) == len(result.removed)


def test_what_stays_is_mostly_far_apart(sample):
    """The kept texts are dissimilar, except heavily edited copies and notices from one template."""
    texts = [text for _, text in sample]
    result = reference.deduplicate_exact(texts, 0.8, n=8, unit="char")
    kept = [text for text, stays in zip(texts, result.kept, strict=True) if stays]
    sets = [set(reference.shingles(text, 8, "char")) for text in kept]
    alike = sum(len(a & b) >= 0.5 * len(a | b) for i, a in enumerate(sets) for b in sets[:i])
    assert alike <= 20
