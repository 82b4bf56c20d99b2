"""The examples in docstrings, in the README and in docs/ run and print the stated output; links lead to files.

The pages are read from the checkout beside the tests; the docstrings are read from the imported package.
"""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import lsh

REPOSITORY = Path(__file__).parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NEEDS = {"lsh.plot": "matplotlib", "lsh.spark._tasks": "pyarrow"}  # modules whose examples require an optional package
PAGES = [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md"), *REPOSITORY.glob("benchmarks/*.md")]
EXAMPLES = {  # the least number of examples on each page
    "README.md": 15,
    "docs/guide.md": 30,
    "docs/lasting-index.md": 30,
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


def test_docstrings_have_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    for public in (
        lsh.Bands,
        lsh.Cache,
        lsh.Index,
        lsh.MinHasher,
        lsh.Screen,
        lsh.Shingles,
        lsh.jaccard,
        lsh.jaccard_matrix,
        lsh.deduplicate,
        lsh.find_pairs,
        lsh.plan,
    ):
        assert any(test.examples for test in finder.find(public, public.__name__)), public


@pytest.mark.parametrize(("name", "least"), EXAMPLES.items())
def test_examples_of_a_page(name, least, monkeypatch):
    monkeypatch.chdir(REPOSITORY / "examples")
    monkeypatch.syspath_prepend(REPOSITORY / "examples")
    result = doctest.testfile(str(REPOSITORY / name), module_relative=False, optionflags=FLAGS)
    assert result.attempted >= least
    assert result.failed == 0


def test_the_readme_is_short():
    assert len((REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


def test_the_versions_agree():
    declared = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8").split('\nversion = "')[1].split('"')[0]
    assert lsh.__version__ == declared
