"""What the site adds to the pages of docs/: the outputs of notebooks. `.ci/run` builds the site itself."""

import base64
import json
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture
def notebooks(monkeypatch):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra `test` has it")
    monkeypatch.syspath_prepend(DOCS)
    import notebooks

    yield notebooks
    for name in ("notebooks", "figures"):
        del sys.modules[name]


def test_a_notebook_is_shown_with_its_outputs(notebooks, tmp_path, monkeypatch):
    monkeypatch.setenv("LSH_DATA", "/corpora")
    (tmp_path / "beside.py").write_text("NUMBER = 7")
    sources = [
        ("markdown", "# A title"),
        ("code", "import os\nfrom beside import NUMBER\nprint(os.getcwd())\nNUMBER"),
        ("code", "assert 'LSH_DATA' not in os.environ"),
        ("code", "from matplotlib import pyplot\nax = pyplot.subplots()[1]\npyplot.show()"),
        ("code", "print(pyplot.get_fignums())"),
    ]
    cells = [{"cell_type": kind, "source": source.splitlines(keepends=True)} for kind, source in sources]
    path = tmp_path / "some.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    before = Path.cwd()
    notebooks.pyplot.figure()  # of another test
    parts = notebooks.markdown(path).split("\n\n")
    assert Path.cwd() == before
    assert parts[:4] == [
        "# A title",
        f"```python\n{sources[1][1]}\n```",
        f"```text\n{tmp_path}\n7\n```",
        f"```python\n{sources[2][1]}\n```",
    ]
    assert parts[4] == f"```python\n{sources[3][1]}\n```"
    found = re.fullmatch(r'<p><img alt="Figure 1 of the cell" src="data:image/svg\+xml;base64,([^"]+)"></p>', parts[5])
    assert b"<svg" in base64.b64decode(found[1])
    assert parts[6:] == [f"```python\n{sources[4][1]}\n```", "```text\n[]\n```\n"]


def test_an_error_in_a_notebook_is_an_error(notebooks, tmp_path):
    path = tmp_path / "some.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": ["1 // 0"]}]}))
    with pytest.raises(ZeroDivisionError):
        notebooks.markdown(path)


def test_each_notebook_has_a_page():
    names = {path.stem for path in (DOCS.parent / "examples").glob("*.ipynb")}
    assert names == {path.stem.removeprefix("notebook-") for path in DOCS.glob("notebook-*.md")}
