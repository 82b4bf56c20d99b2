"""The examples of pages whose sections need optional packages: each section runs after the beginning of its page.

A section is skipped if its packages are not installed; on `docs/migrating.md` also if they are older than the page says.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PACKAGES: dict[tuple[str, str], dict[str, str | None]] = {  # page and section: packages, and their least versions
    ("etl", "pandas"): {"pandas": None},
    ("etl", "Polars"): {"polars": None},
    ("etl", "Arrow"): {"pyarrow": None},
    ("etl", "DuckDB"): {"duckdb": None, "pyarrow": None},
    ("etl", "Hugging Face"): {"datasets": None},
    ("etl", "New rows each day"): {},
}
WHERE = dict.fromkeys(["pandas", "polars", "duckdb", "pyarrow"], "the extra `test` has it")
WHERE["datasets"] = "see .ci/requirements-remote.txt"
OTHER = "see .ci/requirements-peers.txt"


def sections(page: str) -> tuple[str, dict[str, str]]:
    """Return the beginning of a page, and its sections by their titles."""
    text = (REPOSITORY / "docs" / f"{page}.md").read_text(encoding="utf-8")
    beginning, *parts = re.split(r"(?m)^(?=## )", text)
    return beginning, {part.splitlines()[0].removeprefix("## "): part for part in parts}


@pytest.mark.filterwarnings("ignore")  # of the packages
@pytest.mark.parametrize(("page", "section"), PACKAGES)
def test_the_examples_of_a_section(page, section, monkeypatch):
    for package, version in PACKAGES[page, section].items():
        pytest.importorskip(
            package, version, reason=f"{package} {version or ''} is not installed; {WHERE.get(package, OTHER)}"
        )
    monkeypatch.chdir(REPOSITORY / "examples")
    beginning, found = sections(page)
    examples = doctest.DocTestParser().get_doctest(beginning + found[section], {"__name__": "__main__"}, page, "", 0)
    result = doctest.DocTestRunner(optionflags=FLAGS).run(examples)
    assert result.attempted > 5
    assert result.failed == 0


@pytest.mark.parametrize("page", sorted({page for page, _ in PACKAGES}))
def test_every_section_with_examples_is_run(page):
    with_examples = [title for title, section in sections(page)[1].items() if ">>>" in section]
    assert with_examples == [section for one, section in PACKAGES if one == page]
