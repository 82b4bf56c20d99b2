"""The picture at the top of the README: its script writes the committed file, which is small, simple and complete."""

from __future__ import annotations

import re
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
MAX_BYTES = 60_000


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


def test_it_asks_for_nothing(picture):
    parsed = ElementTree.fromstring(picture)
    assert {element.tag.removeprefix(SVG) for element in parsed.iter()} == {
        *("svg", "title", "style", "rect", "line", "text", "tspan", "path", "circle")
    }
    assert not re.search(r"href|url\(|@import|@font-face|base64|//(?!www\.w3\.org/2000/svg)", picture)
    assert len(picture.encode()) < MAX_BYTES


def test_it_suits_light_and_dark_backgrounds(picture):
    """Every colour is a name, and each name has a value for both."""
    light, _, dark = picture.partition("prefers-color-scheme: dark")
    names = set(re.findall(r"var\((--[a-z]+)\)", picture))
    assert {"--paper", "--card", "--ink", "--quiet"} <= names
    for name in names:
        assert f"{name}: #" in light
        assert f"{name}: #" in dark
    drawn = picture.partition("</style>")[2]
    assert not re.search("fill=|stroke=|style=|#[0-9a-f]{3}", drawn)


def test_texts_end_within_the_picture(picture):
    parsed = ElementTree.fromstring(picture)
    width = float(parsed.get("width"))
    assert width == 830
    for text in parsed.iter(f"{SVG}text"):
        end = float(text.get("x")) + float(text.get("textLength", 0))
        assert end <= width - 24
    marks = [element for element in parsed.iter(f"{SVG}rect") if element.get("class") == "marked"]
    assert len(marks) >= 2
