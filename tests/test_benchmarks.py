"""What is shown of the benchmarks is what their results say."""

import importlib.util
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
RESULTS = FOLDER / "results"


@pytest.fixture(scope="module")
def everything():
    spec = importlib.util.spec_from_file_location("benchmarks_all", FOLDER / "all.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_those_of_the_results(everything):
    found = everything.results()
    assert len(everything.TABLES) == 2
    for path, tables in everything.TABLES.items():
        readme = path.read_text(encoding="utf-8")
        assert everything.rendered(path, found) == readme
        for name in tables:
            begin, end = (readme.index(f"<!-- {word}: {name} -->") for word in ("begin", "end"))
            assert readme.count("\n| ", begin, end) >= 5


def test_the_chart_has_a_bar_for_each_library(everything):
    found = everything.results()["peers"]
    chart = (FOLDER / "peers.svg").read_text(encoding="utf-8")
    assert everything.chart(found) == chart
    root = ElementTree.fromstring(chart)
    bars = [element for element in root.iter() if element.get("class", "").startswith("bar")]
    measured = [way for way, one in found["ways"].items() if "not_measured" not in one]
    assert len(bars) == len(measured) >= 2
    widths = [float(bar.get("width")) for bar in bars]
    assert widths == sorted(widths, reverse=True)
    assert {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")} >= set(measured)


@pytest.mark.parametrize("name", ["kernels", "grouping", "peers", "pure_python"])
def test_a_result_names_machine_and_data(name):
    result = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    assert {"system", "cpu", "python", "numpy", "lsh", "compiler", "simd"} <= set(result["machine"])
    assert result["data"]["bytes"] > 0


def test_counts_are_kept_for_every_kernel():
    result = json.loads((RESULTS / "counts.json").read_text(encoding="utf-8"))
    names = list(result["instructions"])
    for word in ("avx2", "baseline"):
        for scheme in ("32", "64", "fss"):
            assert any(name.split()[:2] == [word, scheme] for name in names)
    assert all(value > 0 for value in result["instructions"].values())
