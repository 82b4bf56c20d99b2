"""The examples in docstrings and in the README run, and say what they print.

The README of the checkout beside the tests is read; the docstrings are those of the package that is imported.
"""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import lsh

REPOSITORY = Path(__file__).parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NEEDS = {"lsh.plot": "matplotlib"}  # modules whose examples want an optional package
MODULES = sorted(module.name for module in pkgutil.walk_packages(lsh.__path__, "lsh.") if module.name != "lsh.__main__")


@pytest.mark.parametrize("name", ["lsh", *MODULES])
def test_examples_of_docstrings(name, monkeypatch):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"{NEEDS[name]} is not installed; the extra `test` has it")
        monkeypatch.setenv("MPLBACKEND", "Agg")
    result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert result.failed == 0


def test_docstrings_have_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    for public in (
        lsh.Bands,
        lsh.Cache,
        lsh.MinHasher,
        lsh.Shingles,
        lsh.jaccard,
        lsh.jaccard_matrix,
        lsh.deduplicate,
        lsh.find_pairs,
        lsh.plan,
    ):
        assert any(test.examples for test in finder.find(public, public.__name__)), public


def test_examples_of_the_readme(monkeypatch):
    monkeypatch.chdir(REPOSITORY / "examples")
    result = doctest.testfile(str(REPOSITORY / "README.md"), module_relative=False, optionflags=FLAGS)
    assert result.attempted >= 3
    assert result.failed == 0


def test_the_versions_agree():
    declared = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8").split('\nversion = "')[1].split('"')[0]
    assert lsh.__version__ == declared
