"""The picture at the top of the README: its script writes the committed file, with the figures of the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from running import environment

import lsh

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def picture() -> str:
    return (DOCS / "report.svg").read_bytes().decode("utf-8")


def test_the_script_writes_the_committed_file(tmp_path, picture):
    made = tmp_path / "made.svg"
    script = [sys.executable, str(DOCS / "picture.py"), str(made)]
    subprocess.run(script, check=True, cwd=tmp_path, env=environment())
    assert made.read_bytes().decode("utf-8") == picture


def test_it_has_the_figures_of_the_run(picture):
    lines = (REPOSITORY / "examples" / "sample.tsv").read_bytes().decode("utf-8").split("\n")[:-1]
    counts = lsh.deduplicate([line.split("\t")[1] for line in lines], 0.8).summary()
    words = ["".join(text.itertext()) for text in ElementTree.fromstring(picture).iter(f"{SVG}text")]
    assert f"{counts['removed']} of {counts['documents']} documents are duplicates" in words
    assert words[words.index("Documents kept") + 1] == f"{counts['kept']}"
    assert words[words.index("Recall promised") + 1] == f"{lsh.plan(0.8, 0.99).recall_at(0.8):.3f}"
