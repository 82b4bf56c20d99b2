"""The types of the public functions: the programs of `tests/typed`, under `mypy --strict` and run; and import forms.

`.ci/run --full` checks them with basedpyright, too.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
import runpy
import types
from pathlib import Path

import pytest

import lsh

TYPED = Path(__file__).parent / "typed"
MODULES = ["cache", "index", "lsh", "minhash", "plot", "presets", "report", "typing"]


def is_protocol(value):
    return getattr(value, "_is_protocol", False)


def public_names(module):
    """Yield the public names of a module, and those that its classes define, except of errors and results."""
    for name in module.__all__:
        value = getattr(module, name)
        yield name
        if isinstance(value, types.GenericAlias):  # an alias, which Python 3.10 takes for a class
            continue
        if inspect.isclass(value) and not issubclass(value, (tuple, Exception)) and not is_protocol(value):
            yield from (own for own in vars(value) if not own.startswith("_"))


@pytest.mark.parametrize("name", ["lsh", *(f"lsh.{module}" for module in MODULES)])
def test_each_public_name_is_used(name):
    words = set(re.findall(r"\w+", (TYPED / "ordinary.py").read_text(encoding="utf-8")))
    assert [one for one in public_names(importlib.import_module(name)) if one not in words] == []


# Not in `lsh.typing`: an index as `deduplicate` sees it, the options of `Screen.create`, and types of other packages.
OTHER_NAMES = {"IndexSource", "Axes", "Column", "DataFrame", "ArrayLike", "NDArray"}
STANDARD = {
    *("Any", "Callable", "Literal", "NoReturn", "date"),
    *("Sequence", "Mapping", "KeysView", "Hashable", "Iterable", "Iterator"),
}


def annotated(function):
    """Yield the names in the annotations of a function, with its own name."""
    function = inspect.unwrap(function)
    for annotation in getattr(function, "__annotations__", {}).values():
        text = annotation if isinstance(annotation, str) else getattr(annotation, "__forward_arg__", "")
        yield from (node.id for node in ast.walk(ast.parse(text or "None", mode="eval")) if isinstance(node, ast.Name))


def signatures(module):
    """Yield the public functions of a module, and the methods and properties of its classes."""
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value):
            for own, member in vars(value).items():
                if not own.startswith("_") or own == "__init__":
                    inner = getattr(member, "fget", None) or getattr(member, "__func__", member)
                    yield getattr(inner, "func", inner)
        elif inspect.isfunction(value):
            yield value


@pytest.mark.parametrize("name", ["lsh", *(f"lsh.{module}" for module in [*MODULES, "spark"])])
def test_each_name_of_a_signature_is_public(name):
    """What a signature names is a public class, an alias of `lsh.typing`, or of the standard library or numpy."""
    if name == "lsh.spark":
        pytest.importorskip("pyspark", reason="pyspark is not installed")
    module = importlib.import_module(name)
    known = {*lsh.__all__, *lsh.typing.__all__, *module.__all__, *OTHER_NAMES, *STANDARD, *dir(builtins)}
    known |= {"lsh", "np", "os", "pandas", "pyarrow", "MeasuredRecall", "Pair", "Verdict", "Duplicate"}
    assert {one for function in signatures(module) for one in annotated(function)} - known == set()


def test_the_aliases_are_those_of_the_signatures():
    """An alias that no public signature names is not worth a public name; the parts of other aliases are."""
    parts = {"ArrowArray", "ArrowStream", "Decision", "DocId", "FoundId"}
    modules = [lsh, *(importlib.import_module(f"lsh.{one}") for one in MODULES)]
    named = {one for module in modules for function in signatures(module) for one in annotated(function)}
    assert set(lsh.typing.__all__) - named - parts == set()


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
    ("lsh.plot", "s_curve", "lsh.report.plot"),
]


@pytest.mark.parametrize(("face", "name", "behind"), FORMS)
def test_a_face_has_the_objects_of_the_module_behind_it(face, name, behind):
    found = getattr(importlib.import_module(face), name)
    assert found is getattr(importlib.import_module(behind), name)
    assert found is getattr(lsh, name, found)


def test_the_import_forms_of_upstream():
    from lsh import cache, minhash
    from lsh import lsh as first

    assert (cache.Cache, minhash.MinHasher) == (lsh.Cache, lsh.MinHasher)
    assert issubclass(first.Cache, lsh.Cache)
    assert first.Cache is not lsh.Cache
