"""The types of the public functions: the programs of `tests/typed`, under `mypy --strict` and run; and import forms.

That they use each public name is checked by tools/check_code.py. `.ci/run --full` checks them with basedpyright, too.
"""

import importlib
import runpy
from pathlib import Path

import pytest

import lsh

TYPED = Path(__file__).parent / "typed"


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


# The import forms that users write: each gives the same object, wherever the module behind it lies.

FORMS = [
    ("lsh.minhash", "MinHasher", "lsh.sketch.hasher"),
    ("lsh.cache", "Cache", "lsh.store.cache"),
    ("lsh.cache", "Matches", "lsh.store.matches"),
    ("lsh.index", "Index", "lsh.store.index"),
    ("lsh.index", "IndexDamagedError", "lsh.segments.file_format"),
    ("lsh.index", "IndexLockedError", "lsh.segments.disk"),
    ("lsh.presets", "preset", "lsh.sketch.presets"),
    ("lsh.presets", "rule", "lsh.passages.rules"),
    ("lsh.plot", "s_curve", "lsh.report.plot"),
]


@pytest.mark.parametrize(("face", "name", "behind"), FORMS)
def test_a_face_has_the_objects_of_the_module_behind_it(face, name, behind):
    found = getattr(importlib.import_module(face), name)
    assert found is getattr(importlib.import_module(behind), name)
    assert found is getattr(lsh, name, found)
