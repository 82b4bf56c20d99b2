"""The examples in docstrings, in the README and in docs/ run and print the stated output.

The pages are those of the checkout beside the tests, the docstrings those of the imported package. A section that needs
optional packages runs after the beginning of its page, and is skipped if they are not installed, or are older than the
page says. tools/check_code.py checks links and the reference.
"""

import doctest
import importlib
import pkgutil
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.version import Version

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
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for found in doctest.DocTestFinder().find(importlib.import_module(name)):
        if found.examples:  # `doctest.testmod` makes a debugger for the others, too
            runner.run(found)
    assert runner.failures == 0


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


PACKAGES: dict[tuple[str, str], dict[str, str | None]] = {  # page and section: packages, and their least versions
    ("etl", "pandas"): {"pandas": None},
    ("etl", "Polars"): {"polars": None},
    ("etl", "Arrow"): {"pyarrow": None},
    ("etl", "DuckDB"): {"duckdb": None, "pyarrow": None},
    ("etl", "Hugging Face"): {"datasets": None},
    ("etl", "New rows each day"): {},
    ("migrating", "mattilyra/LSH"): {},
    ("migrating", "datasketch"): {"datasketch": "2.0.0"},
    ("migrating", "text-dedup"): {},
    ("migrating", "rensa"): {"rensa": "0.5.0"},
}
WHERE = dict.fromkeys(["pandas", "polars", "duckdb", "pyarrow"], "the extra `test` has it")
WHERE["datasets"] = "see .ci/requirements-remote.txt"
OTHER = "see .ci/requirements-peers.txt"


def sections(page: str) -> tuple[str, dict[str, str]]:
    """Return the beginning of a page, and its sections by their titles."""
    text = (REPOSITORY / "docs" / f"{page}.md").read_text(encoding="utf-8")
    beginning, *parts = re.split(r"(?m)^(?=## )", text)
    return beginning, {part.splitlines()[0].removeprefix("## "): part for part in parts}


def need(package: str, least: str | None) -> None:
    """Skip the test if a package is not installed, or is older than the version that the page is about."""
    try:
        if Version(version(package)) >= Version(least or "0"):
            return
    except PackageNotFoundError:
        pass
    pytest.skip(f"{package} {least or ''} is not installed; {WHERE.get(package, OTHER)}")


@pytest.mark.filterwarnings("ignore")  # of the packages
@pytest.mark.parametrize(("page", "section"), PACKAGES)
def test_the_examples_of_a_section(page, section, monkeypatch):
    for package, least in PACKAGES[page, section].items():
        need(package, least)
    monkeypatch.chdir(REPOSITORY / "examples")
    beginning, found = sections(page)
    examples = doctest.DocTestParser().get_doctest(beginning + found[section], {"__name__": "__main__"}, page, "", 0)
    result = doctest.DocTestRunner(optionflags=FLAGS).run(examples)
    assert result.attempted >= 5
    assert result.failed == 0


@pytest.mark.parametrize("page", sorted({page for page, _ in PACKAGES}))
def test_every_section_with_examples_is_run(page):
    with_examples = [title for title, section in sections(page)[1].items() if ">>>" in section]
    assert with_examples == [section for one, section in PACKAGES if one == page]
