"""The notebooks of examples/ run, on the sample and on real corpora, and are stored without outputs.

The cells run as they are, one after another, in a new process; those with `assert` check the figures of the text.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from running import environment

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOKS = sorted(path.name for path in EXAMPLES.glob("*.ipynb"))
NEEDS = {"news": ["matplotlib"], "estimates": ["matplotlib"], "lecture": ["matplotlib", "pandas"]}
RUN = """
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    cells = json.load(file)["cells"]
for cell in cells:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), cell["id"], "exec"), globals())
"""


def notebook(name):
    return json.loads((EXAMPLES / name).read_text(encoding="utf-8"))


def source(cell):
    return "".join(cell["source"])


def test_there_is_one_for_each_subject():
    assert NOTEBOOKS == ["ads.ipynb", "estimates.ipynb", "lecture.ipynb", "news.ipynb", "uploads.ipynb"]
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in readme for name in NOTEBOOKS)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_stored_without_outputs(name):
    stored = notebook(name)
    cells = stored["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert all(cell["metadata"] == {} for cell in cells)
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert set(stored["metadata"]) == {"kernelspec", "language_info"}
    assert (EXAMPLES / name).read_text(encoding="utf-8") == json.dumps(stored, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_explains_and_checks_itself(name):
    cells = notebook(name)["cells"]
    assert re.match("# [A-Z]", source(cells[0]))
    assert sum(cell["cell_type"] == "markdown" for cell in cells) >= 5
    assert sum("assert " in source(cell) for cell in cells) >= 3
    used = re.findall(r"\b(?:lsh|plot)(?:\.\w+)*\._\w+|^[%!].*", "\n".join(map(source, cells)), re.MULTILINE)
    assert used == []  # private names, and commands of Jupyter only


@pytest.mark.slow
@pytest.mark.parametrize("real", [False, True], ids=["sample", "corpora"])
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs(name, real, request):
    for module in NEEDS.get(Path(name).stem, []):
        pytest.importorskip(module, reason=f"{module} is not installed; the extra `test` has it")
    folder = str(request.getfixturevalue("data_folder")) if real else ""
    variables = {**environment(), "MPLBACKEND": "Agg", "LSH_DATA": folder, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", RUN, str(EXAMPLES / name)]
    ran = subprocess.run(command, cwd=EXAMPLES, env=variables, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    if name == "ads.ipynb" and "pyspark is not installed" not in ran.stdout:
        assert "kept by Spark" in ran.stdout
