"""The examples of pages whose sections need optional packages: each section runs after the beginning of its page.

A section is skipped if its packages are not installed, or are older than the page says.
"""

from __future__ import annotations

import doctest
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.version import Version

REPOSITORY = Path(__file__).parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
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
