#!/usr/bin/env python3
"""Check what `docs/` shows beside words: the picture of the README, the figures, and the outputs of notebooks.

Needs matplotlib. `.ci/run` builds the site itself.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import checks

import lsh

DOCS = checks.ROOT / "docs"
FIGURES = sorted(path.stem for path in (DOCS / "figures").glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"
PICTURE = (DOCS / "report.svg").read_bytes().decode("utf-8")
NOTEBOOK = [
    ("markdown", "# A title"),
    ("code", "import os\nfrom beside import NUMBER\nprint(os.getcwd())\nNUMBER"),
    ("code", "assert 'LSH_DATA' not in os.environ"),
    ("code", "from matplotlib import pyplot\nax = pyplot.subplots()[1]\npyplot.show()"),
    ("code", "print(pyplot.get_fignums())"),
]

sys.path.insert(0, str(DOCS))


def figure(name: str) -> str:
    return (DOCS / "figures" / f"{name}.svg").read_text(encoding="utf-8")


# The picture of the README.


def check_the_picture_asks_for_nothing() -> None:
    names = {element.tag.removeprefix(SVG) for element in ElementTree.fromstring(PICTURE).iter()}
    assert names == {"svg", "title", "style", "rect", "line", "text", "tspan", "path", "circle"}
    assert not re.search(r"href|url\(|@import|@font-face|base64|//(?!www\.w3\.org/2000/svg)", PICTURE)
    assert len(PICTURE.encode()) < 60_000


def check_the_picture_suits_light_and_dark_backgrounds() -> None:
    """Every colour is a name, and each name has a value for both."""
    light, _, dark = PICTURE.partition("prefers-color-scheme: dark")
    names = set(re.findall(r"var\((--[a-z]+)\)", PICTURE))
    assert {"--paper", "--card", "--ink", "--quiet"} <= names
    for name in names:
        assert f"{name}: #" in light
        assert f"{name}: #" in dark
    assert not re.search("fill=|stroke=|style=|#[0-9a-f]{3}", PICTURE.partition("</style>")[2])


def check_texts_end_within_the_picture() -> None:
    parsed = ElementTree.fromstring(PICTURE)
    assert parsed.get("width") == "830"
    for text in parsed.iter(f"{SVG}text"):
        assert float(text.get("x", "")) + float(text.get("textLength", 0)) <= 830 - 24
    assert sum(element.get("class") == "marked" for element in parsed.iter(f"{SVG}rect")) >= 2


def check_the_script_draws_the_picture_with_the_figures_of_the_run() -> None:
    with tempfile.TemporaryDirectory() as temp:
        made = Path(temp) / "made.svg"
        subprocess.run([sys.executable, str(DOCS / "picture.py"), str(made)], check=True)
        assert made.read_bytes().decode("utf-8") == PICTURE
    sample = (checks.ROOT / "examples" / "sample.tsv").read_text(encoding="utf-8")
    counts = lsh.deduplicate([line.split("\t")[1] for line in sample.splitlines()], 0.8).summary()
    words = ["".join(text.itertext()) for text in ElementTree.fromstring(PICTURE).iter(f"{SVG}text")]
    assert f"{counts['removed']} of {counts['documents']} documents are duplicates" in words
    assert words[words.index("Documents kept") + 1] == f"{counts['kept']}"
    assert words[words.index("Recall promised") + 1] == f"{lsh.plan(0.8, 0.99).recall_at(0.8):.3f}"


# The figures.


def check_the_pages_show_each_figure_and_say_what_is_seen() -> None:
    pages = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("idea.md", "plots.md"))
    shown = re.findall(r"!\[([^\]]+)\]\(figures/(\w+)\.svg\)\n\n\*", pages)  # and a caption begins
    assert sorted(name for _, name in shown) == FIGURES
    assert all(len(seen) > 60 for seen, _ in shown)


def check_the_figures_need_nothing_from_elsewhere() -> None:
    for name in FIGURES:
        svg = figure(name)
        assert len(list(ElementTree.fromstring(svg).iter(f"{SVG}text"))) > 5
        assert not re.search(r"<(script|image|foreignObject)\b|(href|src)=\"(?!#)|url\((?!#)|@import|<!DOCTYPE", svg)
        white = "fill: #ffffff"  # numbers in bars
        assert not re.search(r"fill: #(000|fff)|stroke: #000", svg.replace(white, ""))
        assert len(svg) < 40_000


def check_the_script_draws_the_figures() -> None:
    """Those that were drawn with another version of matplotlib have other lines."""
    import figures

    for name in FIGURES:
        if figures.VERSION in figure(name):
            assert figures.draw(name) == figure(name), name
        else:
            print(f"not compared: {name}.svg was drawn with another version than {figures.VERSION}")


# The notebooks, as the site shows them.


def check_a_notebook_is_shown_with_its_outputs() -> None:
    import notebooks

    os.environ["LSH_DATA"] = "/corpora"
    cells = [{"cell_type": kind, "source": source.splitlines(keepends=True)} for kind, source in NOTEBOOK]
    with tempfile.TemporaryDirectory() as temp:
        folder = Path(temp).resolve()
        (folder / "beside.py").write_text("NUMBER = 7")
        (folder / "some.ipynb").write_text(json.dumps({"cells": cells}))
        before = Path.cwd()
        notebooks.pyplot.figure()  # of other code
        *parts, last, printed = notebooks.markdown(folder / "some.ipynb").split("\n\n")
        assert Path.cwd() == before
        code = [f"```python\n{source}\n```" for _, source in NOTEBOOK]
        assert parts[:5] == ["# A title", code[1], f"```text\n{folder}\n7\n```", code[2], code[3]]
        image = r'<p><img alt="Figure 1 of the cell" src="data:image/svg\+xml;base64,([^"]+)"></p>'
        (found,) = re.findall(image, parts[5])
        assert b"<svg" in base64.b64decode(found)
        assert (last, printed) == (code[4], "```text\n[]\n```\n")
        cells = [{"cell_type": "code", "source": ["1 // 0"]}]
        (folder / "some.ipynb").write_text(json.dumps({"cells": cells}))
        checks.raises(ZeroDivisionError, "", notebooks.markdown, folder / "some.ipynb")


if __name__ == "__main__":
    sys.exit(checks.main(globals()))
