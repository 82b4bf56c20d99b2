#!/usr/bin/env python3
"""Check `examples/`: the sample, the program of uploads and the notebooks, which are stored without outputs.

`check_notebooks.py` runs the notebooks. The scripts are run as a user runs them. reference.py counts, not the library.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import checks

sys.path.insert(0, str(checks.ROOT / "tests"))

import reference

EXAMPLES = checks.ROOT / "examples"
NOTEBOOKS = sorted(path.name for path in EXAMPLES.glob("*.ipynb"))
ROWS = [line.split("\t") for line in (EXAMPLES / "sample.tsv").read_bytes().decode("utf-8").split("\n")[:-1]]
TEXTS = [text for _, text in ROWS]


def check_the_script_writes_the_sample() -> None:
    with tempfile.TemporaryDirectory() as temp:
        made = Path(temp, "made.tsv")
        subprocess.run([sys.executable, str(EXAMPLES / "make_sample.py"), str(made)], check=True, cwd=temp)
        assert made.read_bytes() == (EXAMPLES / "sample.tsv").read_bytes()


def check_the_sample_is_plain() -> None:
    assert len({doc_id for doc_id, _ in ROWS}) == len(ROWS) == 200
    for text in TEXTS:
        assert 150 <= len(text.encode("utf-8")) <= 600
        assert text == " ".join(text.split())


def check_the_readme_states_the_number_of_near_duplicates() -> None:
    """And the kept texts are dissimilar, except heavily edited copies and notices from one template."""
    (stated,) = re.findall(r"(\d+) of them are near duplicates", (EXAMPLES / "README.md").read_text(encoding="utf-8"))
    result = reference.deduplicate_exact(TEXTS, 0.8, n=8, unit="char")
    assert int(stated) == len(result.removed)
    kept = [text for text, stays in zip(TEXTS, result.kept, strict=True) if stays]
    sets = [set(reference.shingles(text, 8, "char")) for text in kept]
    alike = sum(len(a & b) >= 0.5 * len(a | b) for i, a in enumerate(sets) for b in sets[:i])
    assert alike <= 20


def check_the_questions() -> None:
    """A test set of 300 questions, each once, with answers."""
    text = (EXAMPLES / "questions.tsv").read_bytes().decode("ascii")
    rows = [line.split("\t") for line in text.split("\n")[:-1]]
    assert [number for number, _, _ in rows] == [f"q{number:03}" for number in range(1, 301)]
    assert len({question for _, question, _ in rows}) == 300
    assert all(len(question.split()) >= 5 and answer for _, question, answer in rows)


def uploads(folder: str, *arguments: object) -> str:
    """Return what the program of uploads prints."""
    command = [sys.executable, str(EXAMPLES / "uploads.py"), *map(str, arguments)]
    ran = subprocess.run(command, check=True, cwd=folder, capture_output=True, text=True)
    assert ran.stderr == ""
    return ran.stdout


def check_uploads() -> None:
    """The program prints what the page says; a second run finds the papers of the first."""
    page = (checks.ROOT / "docs" / "uploads.md").read_text("utf-8")
    (block,) = re.findall(r"^```console\n\$ python uploads.py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    with tempfile.TemporaryDirectory() as temp:
        assert uploads(temp) == block
        assert list(Path(temp).iterdir()) == []
        first, second = (uploads(temp, Path(temp, "papers")).splitlines() for _ in range(2))
    assert "tides, uploaded by ada: stored, nothing similar is in the library" in first
    assert "tides, uploaded by ada: stored, and recommended to readers of similar papers" in second
    assert first[-1] == second[-1] == "4 papers in the library"


def check_notebooks_are_stored_without_outputs() -> None:
    assert NOTEBOOKS == [
        "ads.ipynb",
        "estimates.ipynb",
        "lecture.ipynb",
        "news.ipynb",
        "passages.ipynb",
        "uploads.ipynb",
    ]
    for name in NOTEBOOKS:
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        stored = json.loads(text)
        cells = stored["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code), name
        assert all(cell["metadata"] == {} for cell in cells), name
        assert len({cell["id"] for cell in cells}) == len(cells)
        assert set(stored["metadata"]) == {"kernelspec", "language_info"}
        assert text == json.dumps(stored, indent=1, ensure_ascii=False) + "\n"


def check_notebooks_explain_and_check_themselves() -> None:
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    pages = {path.stem.removeprefix("notebook-") for path in (checks.ROOT / "docs").glob("notebook-*.md")}
    assert pages == {name.removesuffix(".ipynb") for name in NOTEBOOKS}
    for name in NOTEBOOKS:
        assert f"`{name}`" in readme
        cells = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells]
        assert re.match("# [A-Z]", sources[0])
        assert sum(cell["cell_type"] == "markdown" for cell in cells) >= 5
        assert sum("assert " in source for source in sources) >= 3
        used = re.findall(r"\b(?:lsh|plot)(?:\.\w+)*\._\w+|^[%!].*", "\n".join(sources), re.MULTILINE)
        assert used == []  # private names, and commands of Jupyter only


if __name__ == "__main__":
    sys.exit(checks.main(globals()))
