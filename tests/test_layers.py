"""The floors of the house: kernels (0), bindings (1), library (2), world (3); imports and includes point down only.

The sources are read as text, so a fault is found even where it does not show at run time. Each check is also
shown sources that are wrong, to prove that it can fail. What `import lsh` loads is looked at in a new process.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import environment

PACKAGE = Path(__file__).resolve().parents[1] / "lsh"

FACE = 2.5  # lsh/__init__.py stands on floor 2, and only the world may import it
# Every module has its place here; a new one is out of place until it gets one. C is on floor 0.
FLOORS = {
    "_kernels": 1,
    "_columns": 1,
    "_batch": 1,
    "_fields": 1,
    "_minhash": 1,
    "_sets": 1,
    "_grouping": 1,
    "_comparing": 1,
    "_components": 1,
    "checks": 2,
    "threads": 2,
    "edge": 2,
    "shingling": 2,
    "minhash": 2,
    "filtering": 2,
    "bands": 2,
    "planning": 2,
    "cache": 2,
    "corpus": 2,
    "spill": 2,
    "dedup": 2,
    "sample": 2,
    "lsh": 2,
    "__init__": FACE,
    "ahead": 3,
    "compression": 3,
    "files": 3,
    "folder": 3,
    "formats": 3,
    "io": 3,
    "page": 3,
    "report": 3,
    "lines": 3,
    "stream": 3,
    "tabular": 3,
    "console": 3,
    "options": 3,
    "commands": 3,
    "cli": 3,
    "plot": 3,
    "presets": 3,
    "terminal": 3,
    "__main__": 3,
}

STANDARD_HEADERS = {
    *("assert.h", "ctype.h", "float.h", "inttypes.h", "iso646.h", "limits.h", "math.h", "stdalign.h", "stdarg.h"),
    *("arm_neon.h", "cpuid.h", "immintrin.h"),  # the compiler's own, for the levels
    *("stdatomic.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "stdnoreturn.h", "string.h"),
}
ONLY_EXTERN = "_kernels.pxd"
LAZY = {"argparse", "json", "gzip", "concurrent.futures", "statistics"}  # costly, and needed by few

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b[ \t]*(.*?)[ \t]*$", re.MULTILINE)
ALLOCATION = re.compile(r"\b(malloc|calloc|realloc|aligned_alloc|free)\s*\(")
C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
CYTHON_TEXT = re.compile(r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*', re.DOTALL)
CYTHON_FROM = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+c?import[ \t]*(\([^)]*\)|[^\n]*)", re.MULTILINE)
CYTHON_IMPORT = re.compile(r"^[ \t]*c?import[ \t]+([^\n]+)", re.MULTILINE)
EXTERN = re.compile(r"\bcdef[ \t]+extern\b")


def sources(*endings: str) -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*") if path.suffix in endings)


def place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


# The checks: each takes the place of a file in the package and its text, and returns what is wrong with it.


def faults_of_c(name: str, source: str) -> list[str]:
    """Floor 0 includes the C standard library and itself, and allocates nothing."""
    source = C_COMMENT.sub(" ", source)
    faults = []
    for target in INCLUDE.findall(source):
        if target.startswith("<"):
            known = target.strip("<>") in STANDARD_HEADERS
        else:
            known = (PACKAGE / name).parent.joinpath(target.strip('"')).resolve() in sources(".h")
        if not known:
            faults.append(f"{name} includes {target}")
    return faults + [f"{name} calls {call}" for call in ALLOCATION.findall(source)]


def faults_of_cython(name: str, source: str) -> list[str]:
    """One file declares C, and numpy is used through buffers only."""
    source = CYTHON_TEXT.sub(" ", source)
    faults = [f"{name} has a cdef extern"] if name != ONLY_EXTERN and EXTERN.search(source) else []
    numpy = re.search(r"\bcimport[ \t]+numpy\b|\bfrom[ \t]+numpy[\w.]*[ \t]+cimport\b", source)
    return [*faults, f"{name} cimports numpy"] if numpy else faults


def faults_of_imports(name: str, source: str) -> list[str]:
    """A module imports from its own floor and those below."""
    floor = FLOORS[Path(name).stem]
    imported = python_imports(source) if name.endswith((".py", ".pyi")) else cython_imports(source)
    return [f"{name} imports {other}" for other in sorted(imported) if FLOORS.get(other, 0) > floor]


def modules(module: str, names: list[str]) -> set[str]:
    """The modules of the package that `from module import names` imports, `__init__` where it is the public face."""
    if module == "lsh":
        return {name if name in FLOORS else "__init__" for name in names}
    return {module.removeprefix("lsh.")} if module.startswith("lsh.") else set()


def python_imports(source: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found |= modules(alias.name, ["__init__"])
        elif isinstance(node, ast.ImportFrom):
            inside = ".".join(filter(None, ["lsh", node.module]))  # the package has no folders: one dot is lsh itself
            found |= modules(inside if node.level else node.module or "", [alias.name for alias in node.names])
    return found


def cython_imports(source: str) -> set[str]:
    source = CYTHON_TEXT.sub(" ", source)
    found = set()
    for module, names in CYTHON_FROM.findall(source):
        module = f"lsh{module}".rstrip(".") if module.startswith(".") else module
        found |= modules(module, re.findall(r"(?:^|,)\s*(\w+)", names.strip("()")))
    for names in CYTHON_IMPORT.findall(source):
        for module in re.findall(r"(?:^|,)\s*([\w.]+)", names):
            found |= modules(module, ["__init__"])
    return found


def is_generated(name: str, source: str) -> bool:
    """Whether a C file is one that Cython wrote, or has a name that it would write to."""
    return "Generated by Cython" in source[:200] or (PACKAGE / name).with_suffix(".pyx").exists()


# The house as it stands.


def test_every_module_has_a_floor():
    assert {path.stem for path in sources(".py", ".pyx", ".pxd", ".pyi")} == set(FLOORS)


@pytest.mark.parametrize("path", sources(".c", ".h"), ids=place)
def test_kernels(path):
    assert faults_of_c(place(path), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", sources(".pyx", ".pxd"), ids=place)
def test_bindings(path):
    assert faults_of_cython(place(path), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", sources(".py", ".pyx", ".pxd", ".pyi"), ids=place)
def test_imports_point_down(path):
    assert faults_of_imports(place(path), path.read_text(encoding="utf-8")) == []


def test_the_sources_are_read():
    """The checks see what is there: known includes and imports are found."""
    assert cython_imports((PACKAGE / "_minhash.pyx").read_text(encoding="utf-8")) == {"_batch", "_kernels"}
    assert cython_imports((PACKAGE / "_sets.pxd").read_text(encoding="utf-8")) == {"_batch", "_kernels", "_minhash"}
    assert python_imports((PACKAGE / "lsh.py").read_text(encoding="utf-8")) == {"bands", "cache", "minhash"}
    assert EXTERN.search((PACKAGE / ONLY_EXTERN).read_text(encoding="utf-8"))
    assert len(sources(".c")) >= 5


def test_no_generated_c():
    written = [path for path in sources(".c", ".cpp") if is_generated(place(path), path.read_text(encoding="utf-8"))]
    assert written == []


# The checks can fail.


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("#include <Python.h>\n", "<Python.h>"),
        ('#include "Python.h"\n', '"Python.h"'),
        ('  #  include "Python.h" /* why not */\n', '"Python.h"'),
        ("/* a comment */ int x;\n#include <unistd.h>\n", "<unistd.h>"),
        ('#include "../../setup.h"\n', '"../../setup.h"'),
        ("#include HEADER\n", "HEADER"),
        ("void *lsh_room(void) { return malloc (8); }\n", "malloc"),
    ],
)
def test_bad_kernels_are_found(source, fault):
    (found,) = faults_of_c("kernels/made_up.c", source)
    assert found.endswith(fault)


def test_good_kernels_pass():
    source = '#include <stdint.h>\n#include "kernels.h"\n#include "../_murmur3.h"\n/* #include <Python.h> malloc() */\n'
    assert faults_of_c("kernels/made_up.c", source) == []


@pytest.mark.parametrize(
    "source",
    [
        'cdef extern from "zlib.h":\n    int crc32()\n',
        "if True:\n    cdef  extern int x\n",
        "cimport numpy as np\n",
        "from numpy cimport ndarray\n",
    ],
)
@pytest.mark.parametrize("name", ["_minhash.pyx", "_minhash.pxd"])
def test_bad_bindings_are_found(name, source):
    assert len(faults_of_cython(name, source)) == 1


def test_good_bindings_pass():
    source = (
        '"""Has no cdef extern."""\n# cdef extern, cimport numpy\nimport numpy as np\nfrom libc.stdlib cimport free\n'
    )
    assert faults_of_cython("_minhash.pyx", source) == []
    assert faults_of_cython(ONLY_EXTERN, 'cdef extern from "_murmur3.h":\n    pass\n') == []


@pytest.mark.parametrize(
    ("name", "source", "imported"),
    [
        ("_minhash.pyx", "from lsh.shingling import Shingles\n", "shingling"),
        ("_minhash.pyx", "from lsh import (\n    _batch,\n    checks,\n)\n", "checks"),
        ("_minhash.pyx", "def f():\n    import numpy, lsh.minhash as m\n", "minhash"),
        ("_minhash.pyx", "from . import bands\n", "bands"),
        ("_minhash.pxd", "from .cache cimport Cache\n", "cache"),
        ("_minhash.pyi", "from lsh.minhash import MinHasher\n", "minhash"),
        ("minhash.py", "def f():\n    from lsh.io import Source\n", "io"),
        ("minhash.py", "from lsh import cli as c\n", "cli"),
        ("minhash.py", "import lsh.io\n", "io"),
        ("minhash.py", "from .cli import main\n", "cli"),
        ("minhash.py", "from . import io\n", "io"),
        ("minhash.py", "import lsh\n", "__init__"),
        ("minhash.py", "from lsh import Cache\n", "__init__"),
        ("__init__.py", "from lsh.io import read\n", "io"),
    ],
)
def test_bad_imports_are_found(name, source, imported):
    assert faults_of_imports(name, source) == [f"{name} imports {imported}"]


def test_good_imports_pass():
    assert faults_of_imports("cli.py", "import lsh\nfrom lsh import dedup, io\nfrom lsh._batch import Batch\n") == []
    assert (
        faults_of_imports("minhash.py", "import numpy\nfrom lsh import checks\nfrom .shingling import Shingles\n") == []
    )
    assert faults_of_imports("_grouping.pyx", '"""\nimport lsh.cli\n"""\nfrom lsh._sets cimport ShingleSets\n') == []
    assert faults_of_imports("__init__.py", "from lsh import cache\nfrom lsh.minhash import MinHasher\n") == []


def test_generated_c_is_found():
    assert is_generated("made_up.c", "/* Generated by Cython 3.1.0 */\n")
    assert is_generated("_minhash.c", "int x;\n")
    assert not is_generated("_murmur3.c", "int x;\n")


# What an import costs.


def loaded(folder: Path, first: str, then: str) -> set[str]:
    """The modules that a new process loads for a statement, beyond those of an earlier one."""
    script = f"import sys; {first}; before = set(sys.modules); {then}; print(*(set(sys.modules) - before))"
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=environment(), check=True, capture_output=True, text=True
    )
    return set(result.stdout.split())


def test_import_loads_numpy_and_the_standard_library(tmp_path):
    names = {name.partition(".")[0] for name in loaded(tmp_path, "import numpy", "import lsh")}
    assert {name for name in names if "cython" not in name} <= {"lsh", "numpy", *sys.stdlib_module_names}


def test_import_loads_nothing_that_few_need(tmp_path):
    names = loaded(tmp_path, "import numpy", "import lsh")
    assert names & LAZY == set()
    assert names & {f"lsh.{name}" for name, floor in FLOORS.items() if floor > FACE} == set()


def test_costly_imports_are_seen(tmp_path):
    assert "concurrent.futures" in loaded(tmp_path, "import numpy", "import concurrent.futures")
    assert "lsh.cli" in loaded(tmp_path, "import numpy", "import lsh.cli")
