"""The picture at the top of the README: its script writes the committed file, with the figures of the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from running import environment, sample

import lsh

REPOSITORY = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def test_the_script_writes_the_committed_file_with_the_figures_of_the_run(tmp_path):
    made = tmp_path / "made.svg"
    script = [sys.executable, str(REPOSITORY / "docs" / "picture.py"), str(made)]
    subprocess.run(script, check=True, cwd=tmp_path, env=environment())
    picture = made.read_bytes()
    assert picture == (REPOSITORY / "docs" / "report.svg").read_bytes()
    counts = lsh.deduplicate([text for _, text in sample()], 0.8).summary()
    words = ["".join(text.itertext()) for text in ElementTree.fromstring(picture).iter(f"{SVG}text")]
    assert f"{counts['removed']} of {counts['documents']} documents are duplicates" in words
    assert words[words.index("Documents kept") + 1] == f"{counts['kept']}"
    assert words[words.index("Recall promised") + 1] == f"{lsh.plan(0.8, 0.99).recall_at(0.8):.3f}"
