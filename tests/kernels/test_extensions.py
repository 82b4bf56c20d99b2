"""The compiled modules: all are in one file, which exports their entry points only, and Python finds them there."""

import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lsh.base import compiled

REPOSITORY = Path(__file__).resolve().parents[2]


def test_each_cython_module_is_listed_and_needs_no_gil():
    paths = list(REPOSITORY.glob("lsh/**/*.pyx"))
    modules = {".".join(path.relative_to(REPOSITORY).with_suffix("").parts) for path in paths}
    assert modules == compiled.MODULES
    assert len({name.rpartition(".")[2] for name in modules}) == len(modules)  # the names of the entry points
    assert [path.name for path in paths if "freethreading_compatible=True" not in path.read_text("utf-8")] == []
    assert not [path.name for path in paths if path.with_suffix(".c").exists()]  # Cython writes a file of this name


@pytest.mark.parametrize("name", sorted(compiled.MODULES))
def test_python_finds_a_module_in_the_file(name):
    file = importlib.util.find_spec(compiled.FILE).origin
    assert importlib.util.find_spec(name).origin == importlib.import_module(name).__file__ == file


def test_other_modules_are_not_found_in_the_file():
    assert importlib.util.find_spec("lsh.text.nothing") is None
    assert compiled.Finder.find_spec("batch") is None


def symbols(library: Path, which: str) -> set[str]:
    """The symbols that a shared object exports (``--defined-only``) or imports (``--undefined-only``)."""
    listed = subprocess.run(["nm", "-D", which, library], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in listed.stdout.splitlines()}


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("nm") is None, reason="needs nm and ELF")
def test_symbols_of_the_file():
    """It exports the entry points only, and imports no ``stat``.

    glibc 2.33 has new symbols for ``stat`` and ``fstat``: a wheel built with it would not load with glibc 2.28.
    """
    library = Path(importlib.util.find_spec(compiled.FILE).origin)
    imported, names = symbols(library, "--undefined-only"), symbols(library, "--defined-only")
    assert len(imported) > 10
    assert not [one for one in imported if re.match(r"(_*[fl]?x?stat(at)?(64)?)(@|$)", one)]
    if any("asan" in symbol for symbol in names):
        pytest.skip("a build with sanitizers exports more")
    assert names == {f"PyInit_{name.rpartition('.')[2]}" for name in (compiled.FILE, *compiled.MODULES)}
