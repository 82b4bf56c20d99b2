"""The examples: the script of the sample reproduces it byte for byte, its README has the right numbers, and the program
of uploads prints what its page says.

The scripts are run as a user runs them. reference.py counts, not the library.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import reference
from running import environment

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
UPLOADS_PAGE = EXAMPLES.parent / "docs" / "uploads.md"


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


def uploads(folder: Path, *arguments: object) -> str:
    """What the program of uploads prints."""
    command = [sys.executable, str(EXAMPLES / "uploads.py"), *map(str, arguments)]
    ran = subprocess.run(command, check=True, cwd=folder, env=environment(), capture_output=True, text=True)
    assert ran.stderr == ""
    return ran.stdout


def test_uploads_print_what_the_page_says(tmp_path):
    block = re.search(r"^```console\n\$ python uploads.py\n(.*?)^```$", UPLOADS_PAGE.read_text("utf-8"), re.M | re.S)
    assert block
    assert uploads(tmp_path) == block[1]
    assert list(tmp_path.iterdir()) == []


def test_uploads_of_a_second_run_find_the_papers_of_the_first(tmp_path):
    first, second = (uploads(tmp_path, tmp_path / "papers").splitlines() for _ in range(2))
    assert "tides, uploaded by ada: stored, nothing similar is in the library" in first
    assert "tides, uploaded by ada: stored, and recommended to readers of similar papers" in second
    assert first[-1] == second[-1] == "4 papers in the library"
