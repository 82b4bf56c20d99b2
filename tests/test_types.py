"""The types of the public functions: the programs of `tests/typed`, under `mypy --strict` and run.

`.ci/run --full` checks them with basedpyright, too.
"""

from __future__ import annotations

import importlib
import inspect
import re
import runpy
from pathlib import Path

import pytest

import lsh

TYPED = Path(__file__).parent / "typed"
MODULES = [
    "cache",
    "bands",
    "index",
    "index.screen",
    "lsh",
    "minhash",
    "plot",
    "presets",
    "recall",
    "report",
    "text_plot",
]


def public_names(module):
    """Yield the public names of a module, and those that its classes define, except of errors and results."""
    for name in module.__all__:
        value = getattr(module, name)
        yield name
        if inspect.isclass(value) and not issubclass(value, (tuple, Exception)):
            yield from (own for own in vars(value) if not own.startswith("_"))


@pytest.mark.parametrize("name", ["lsh", *(f"lsh.{module}" for module in MODULES)])
def test_each_public_name_is_used(name):
    words = set(re.findall(r"\w+", (TYPED / "ordinary.py").read_text(encoding="utf-8")))
    assert [one for one in public_names(importlib.import_module(name)) if one not in words] == []


@pytest.mark.slow
def test_programs_against_the_types(tmp_path, monkeypatch):
    """mypy accepts the ordinary uses and, as it is strict about unused marks, rejects each of the wrong ones."""
    api = pytest.importorskip("mypy.api", reason="mypy is not installed")
    place = Path(lsh.__file__).parent.parent
    if place.name not in ("site-packages", "dist-packages"):
        monkeypatch.setenv("MYPYPATH", str(place))
    monkeypatch.chdir(TYPED)
    options = ["--strict", "--ignore-missing-imports", "--follow-imports=silent", "--config-file="]
    programs = sorted(path.name for path in TYPED.glob("*.py"))
    assert programs == ["ordinary.py", "spark_job.py", "wrong.py"]
    said, problems, status = api.run([*options, f"--cache-dir={tmp_path}", *programs])
    assert (problems, status) == ("", 0), said


@pytest.mark.slow
def test_the_ordinary_uses_run(tmp_path):
    pytest.importorskip("typing_extensions", reason="typing_extensions is not installed")
    runpy.run_path(str(TYPED / "ordinary.py"))["main"](tmp_path)
