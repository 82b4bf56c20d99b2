"""The plots of docs/idea.md and docs/plots.md are those that docs/figures.py draws, and need nothing from elsewhere."""

import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("idea.md", "plots.md"))
FIGURES = sorted(path.stem for path in (DOCS / "figures").glob("*.svg"))
TEXT = "{http://www.w3.org/2000/svg}text"


def committed(name):
    return (DOCS / "figures" / f"{name}.svg").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra `test` has it")
    spec = importlib.util.spec_from_file_location("figures", DOCS / "figures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_show_each_figure_and_say_what_is_seen():
    shown = re.findall(r"!\[([^\]]+)\]\(figures/(\w+)\.svg\)\n\n\*", PAGES)  # and a caption begins
    assert sorted(name for _, name in shown) == FIGURES
    assert all(len(seen) > 60 for seen, _ in shown)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_needs_nothing_from_elsewhere(name):
    svg = committed(name)
    root = ElementTree.fromstring(svg)
    assert len(list(root.iter(TEXT))) > 5
    assert not re.search(r"<(script|image|foreignObject)\b|(href|src)=\"(?!#)|url\((?!#)|@import|<!DOCTYPE", svg)
    assert not re.search(r"fill: #(000|fff)|stroke: #000", svg.replace("fill: #ffffff", ""))  # white: numbers in bars
    assert len(svg) < 40_000


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_the_script_draws_the_committed_figure(name, script):
    if script.VERSION not in committed(name):
        pytest.skip(f"the figure was drawn with another version than {script.VERSION}; other versions draw other lines")
    assert script.draw(name) == committed(name)
