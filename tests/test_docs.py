"""The examples in docstrings, in the README and in docs/ run and print the stated output.

The pages are those of the checkout beside the tests, the docstrings those of the imported package. tools/check_code.py
checks links and the reference.
"""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import lsh

REPOSITORY = Path(__file__).parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NEEDS = {  # modules whose examples require an optional package
    "lsh.engine.result": "pandas",
    "lsh.report.plot": "matplotlib",
    "lsh.files.table_files": "pyarrow",
    "lsh.files.tables": "pyarrow",
    "lsh.stages.shared": "pyarrow",
    "lsh.stages.tasks": "pyarrow",
}
EXAMPLES = {  # the least number of examples on each page
    "README.md": 15,
    "docs/choosing.md": 8,
    "docs/crawls.md": 12,
    "docs/decontamination.md": 25,
    "docs/guide.md": 30,
    "docs/idea.md": 20,
    "docs/index.md": 5,
    "docs/lasting-index.md": 30,
    "docs/one-machine.md": 10,
    "docs/passages.md": 12,
    "docs/plots.md": 15,
    "docs/presets.md": 10,
    "docs/promises.md": 8,
    "docs/quotations.md": 20,
    "docs/schemes.md": 16,
    "docs/start.md": 10,
    "docs/uploads.md": 15,
}
MODULES = sorted(module.name for module in pkgutil.walk_packages(lsh.__path__, "lsh.") if module.name != "lsh.__main__")


@pytest.mark.parametrize("name", ["lsh", *MODULES])
def test_examples_of_docstrings(name, monkeypatch):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"{NEEDS[name]} is not installed; the extra `test` has it")
        monkeypatch.setenv("MPLBACKEND", "Agg")
    result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert result.failed == 0


@pytest.mark.parametrize(("name", "least"), EXAMPLES.items())
def test_examples_of_a_page(name, least, monkeypatch):
    if name == "docs/plots.md":
        pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra `test` has it")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(REPOSITORY / "examples")
    monkeypatch.syspath_prepend(REPOSITORY / "examples")
    result = doctest.testfile(str(REPOSITORY / name), module_relative=False, optionflags=FLAGS)
    assert result.attempted >= least
    assert result.failed == 0
