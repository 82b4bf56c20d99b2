"""The compiled modules: each C file is linked into exactly one, and each module exports only its entry point."""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SETUP = REPOSITORY / "setup.py"


def sources() -> dict[str, list[str]]:
    """The table of setup.py: the C files of each extension."""
    for statement in ast.parse(SETUP.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "SOURCES":
            return ast.literal_eval(statement.value)
    raise AssertionError("setup.py has no table SOURCES")


def test_each_c_file_is_a_source_of_one_extension():
    linked = sorted(source for files in sources().values() for source in files)
    assert linked == sorted(path.relative_to(REPOSITORY / "lsh").as_posix() for path in REPOSITORY.glob("lsh/**/*.c"))
    assert len(linked) >= 10
    assert not [name for name in linked if (REPOSITORY / "lsh" / name).with_suffix(".pyx").exists()]  # of Cython


def test_each_cython_module_is_an_extension_that_needs_no_gil():
    paths = list(REPOSITORY.glob("lsh/**/*.pyx"))
    modules = {path.relative_to(REPOSITORY / "lsh").with_suffix("") for path in paths}
    assert sorted(sources()) == sorted(".".join(module.parts) for module in modules)
    assert [path.name for path in paths if "freethreading_compatible=True" not in path.read_text("utf-8")] == []


def symbols(library: Path, which: str) -> set[str]:
    """The symbols that a shared object exports (``--defined-only``) or imports (``--undefined-only``)."""
    listed = subprocess.run(["nm", "-D", which, library], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in listed.stdout.splitlines()}


def exported(library: Path) -> set[str]:
    return symbols(library, "--defined-only")


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("nm") is None, reason="needs nm and ELF")
@pytest.mark.parametrize("name", [*sources(), "_lsh_cython"])
def test_symbols_of_an_extension(name):
    """It exports the entry point only, and imports no ``stat``.

    glibc 2.33 has new symbols for ``stat`` and ``fstat``: a wheel built with it would not load with glibc 2.28.
    """
    library = Path(importlib.util.find_spec(f"lsh.{name}").origin)
    imported, names = symbols(library, "--undefined-only"), exported(library)
    assert len(imported) > 10
    assert not [one for one in imported if re.match(r"(_*[fl]?x?stat(at)?(64)?)(@|$)", one)]
    if any("asan" in symbol for symbol in names):
        pytest.skip("a build with sanitizers exports more")
    assert names == {f"PyInit_{name.rpartition('.')[2]}"}
