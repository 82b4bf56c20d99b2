"""The rooms of the package: a folder each, on numbered floors; imports point to the same room or to lower floors only.

The folder of a file determines its floor; the few modules beside the folders have a floor each. Includes follow the
same rule.
The sources are read as text, so the checks find errors that have no effect at run time. Each check also gets
invalid sources, to prove that it can fail. A new process lists the modules that `import lsh` loads.
"""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from running import environment

import lsh

PACKAGE = Path(__file__).resolve().parents[1] / "lsh"

# The floor of each folder. Two rooms of one floor do not import each other.
ROOMS = {
    "kernels": 0,
    "base": 1,
    "storage": 2,
    "text": 2,
    "files": 3,
    "links": 4,
    "sketch": 4,
    "engine": 5,
    "segments": 5,
    "passages": 6,
    "store": 6,
    "report": 7,
    "adapters": 7,
    "spark": 7,
    "stages": 6,
    "terminal": 9,
    "command": 10,
}
# The floor of each module beside the folders. `lsh` itself is for the commands only; `lsh.__main__` runs them.
BESIDE = {
    "lsh._kernels": 0,
    "lsh._minhash": 2,
    "lsh.typing": 2,
    "lsh.minhash": 4,
    "lsh.cache": 6,
    "lsh.index": 6,
    "lsh.lsh": 6,
    "lsh.presets": 6,
    "lsh.plot": 7,
    "lsh": 8,
    "lsh.__main__": 10,
}

STANDARD_HEADERS = {
    *("assert.h", "ctype.h", "float.h", "inttypes.h", "iso646.h", "limits.h", "math.h", "stdalign.h", "stdarg.h"),
    *("arm_neon.h", "cpuid.h", "immintrin.h", "intrin.h"),  # compiler headers, for the levels
    *("stdatomic.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "stdnoreturn.h", "string.h"),
}
ONLY_EXTERN = "_kernels.pxd"
WHEN_USED = {"lsh.index", "lsh.lsh", "lsh.plot", "lsh.presets", "lsh.report", "lsh.spark"}  # on first use
LAZY = {"argparse", "json", "gzip", "concurrent.futures", "statistics", "tempfile"}  # slow to import, rarely used

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b[ \t]*(.*?)[ \t]*$", re.MULTILINE)
ALLOCATION = re.compile(r"\b(malloc|calloc|realloc|aligned_alloc|free)\s*\(")
C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
CYTHON_TEXT = re.compile(r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*', re.DOTALL)
CYTHON_FROM = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+c?import[ \t]*(\([^)]*\)|[^\n]*)", re.MULTILINE)
CYTHON_IMPORT = re.compile(r"^[ \t]*c?import[ \t]+([^\n]+)", re.MULTILINE)
EXTERN = re.compile(r"\bcdef[ \t]+extern\b")


@cache
def sources(*endings: str) -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*") if path.suffix in endings)


def place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


# The checks. Each takes the path of a file in the package and its text, and returns the errors.


def faults_of_c(name: str, source: str) -> list[str]:
    """Floor 0 includes only the C standard library and its own headers, and allocates no memory."""
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
    """Only one file declares C functions, and numpy is used through buffers only."""
    source = CYTHON_TEXT.sub(" ", source)
    faults = [f"{name} has a cdef extern"] if name != ONLY_EXTERN and EXTERN.search(source) else []
    numpy = re.search(r"\bcimport[ \t]+numpy\b|\bfrom[ \t]+numpy[\w.]*[ \t]+cimport\b", source)
    return [*faults, f"{name} cimports numpy"] if numpy else faults


def module_of(name: str) -> str:
    """The module of a file of the package: `lsh.files` of files/__init__.py, `lsh.files.lines` of files/lines.py."""
    return ".".join(["lsh", *Path(name).with_suffix("").parts]).removesuffix(".__init__")


MODULES = {module_of(place(path)) for path in sources(".py", ".pyx", ".pxd")}


def floor_of(module: str) -> tuple[int, str]:
    """The floor of a module and its room: the folder, or the module itself if it lies beside the folders."""
    if module in BESIDE:
        return BESIDE[module], module
    room = module.split(".")[1]
    return ROOMS[room], room


def is_allowed(module: str, other: str) -> bool:
    """Whether a module may import another one: of its own room or of a lower floor.

    Beside the folders, modules of a floor may also import the rooms of that floor, and these may import them.
    """
    (floor, room), (below, other_room) = floor_of(module), floor_of(other)
    return below < floor or (below == floor and (room == other_room or module in BESIDE or other in BESIDE))


def faults_of_imports(name: str, source: str) -> list[str]:
    """A module imports from its own room or from lower floors, also where it imports within a function."""
    module = module_of(name)
    faults = [f"{name} imports {other}" for other in sorted(imports(name, source)) if not is_allowed(module, other)]
    by_name = re.findall(r"import_module\([^)]*", source) if name.endswith(".py") and name != "__init__.py" else []
    return faults + [f"{name} calls {call})" for call in by_name]


@cache
def imports(name: str, source: str) -> set[str]:
    """The modules of the package that a file imports, anywhere in the file."""
    package = module_of(name) if Path(name).stem == "__init__" else module_of(name).rpartition(".")[0]
    if not name.endswith((".py", ".pyi")):
        return cython_imports(source, package)
    return python_imports(source, package, for_types=name != "__init__.py")


def modules(module: str, names: list[str]) -> set[str]:
    """The modules of the package that `from module import names` imports: the named modules, or the package itself."""
    if module.split(".")[0] != "lsh":
        return set()
    inside = {f"{module}.{name}" for name in names}
    return {name if name in MODULES else module for name in inside}


def absolute(dots: int, module: str, package: str) -> str:
    """The module that a relative import refers to."""
    base = package.rsplit(".", dots - 1)[0] if dots else ""
    return ".".join(filter(None, [base, module]))


def nodes(node: ast.AST, for_types: bool) -> Iterator[ast.AST]:
    """A node and its descendants, with or without those under `if TYPE_CHECKING:`."""
    yield node
    typing_only = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    for child in node.orelse if typing_only and not for_types else ast.iter_child_nodes(node):
        yield from nodes(child, for_types)


def python_imports(source: str, package: str = "lsh", for_types: bool = True) -> set[str]:
    """The imports of a Python file.

    Without `for_types`, imports under `if TYPE_CHECKING:` are omitted. This is for lsh/__init__.py only: it loads
    modules of floor 3 on first use, and declares their names to type checkers under `if TYPE_CHECKING:`. In other files
    an import for types counts as an import.
    """
    found = set()
    for node in nodes(ast.parse(source), for_types):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found |= modules(alias.name, [""])
        elif isinstance(node, ast.ImportFrom):
            module = absolute(node.level, node.module or "", package)
            found |= modules(module, [alias.name for alias in node.names])
    return found


def cython_imports(source: str, package: str = "lsh") -> set[str]:
    source = CYTHON_TEXT.sub(" ", source)
    found = set()
    for module, names in CYTHON_FROM.findall(source):
        inside = absolute(len(module) - len(module.lstrip(".")), module.lstrip("."), package)
        found |= modules(inside, re.findall(r"(?:^|,)\s*(\w+)", names.strip("()")))
    for names in CYTHON_IMPORT.findall(source):
        for module in re.findall(r"(?:^|,)\s*([\w.]+)", names):
            found |= modules(module, [""])
    return found


def circles(graph: dict[str, set[str]]) -> list[str]:
    """The rest of an import graph after repeatedly removing modules that import no remaining module."""
    left = {module: others - {module} for module, others in graph.items()}
    while free := {module for module, others in left.items() if not others & left.keys()}:
        left = {module: others for module, others in left.items() if module not in free}
    return sorted(left)


# The checks applied to the package.


def test_every_folder_is_a_room():
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == ROOMS.keys()
    assert {module for module in MODULES if module.count(".") < 2} - BESIDE.keys() == {
        f"lsh.{room}" for room in ROOMS
    } - {"lsh.kernels"}


def test_no_file_has_a_fault():
    cython = (".pyx", ".pxd", ".pxi")
    checks = {faults_of_c: (".c", ".h"), faults_of_cython: cython, faults_of_imports: (".py", ".pyi", *cython)}
    for check, endings in checks.items():
        found = sources(*endings)
        assert len(found) > 20
        assert [fault for path in found for fault in check(place(path), path.read_text(encoding="utf-8"))] == []


def test_there_is_no_circle():
    graph: dict[str, set[str]] = {}
    for path in sources(".py", ".pyx", ".pxd", ".pxi"):
        others = imports(place(path), path.read_text(encoding="utf-8"))
        graph.setdefault(module_of(place(path)), set()).update(others)
    assert circles(graph) == []


# Invalid sources, which the checks must reject.


def test_bad_kernels_and_bindings_are_found():
    source = "#include <stdint.h>\n#include <Python.h>\nvoid *lsh_room(void) { return malloc (8); }\n"
    found = faults_of_c("kernels/made_up.c", source)
    assert found == ["kernels/made_up.c includes <Python.h>", "kernels/made_up.c calls malloc"]
    source = 'cdef extern from "zlib.h":\n    int crc32()\nfrom numpy cimport ndarray\n'
    assert len(faults_of_cython("_minhash.pyx", source)) == 2


@pytest.mark.parametrize(
    ("name", "source", "imported"),
    [
        ("_minhash.pyx", "from lsh import (\n    typing,\n    cache,\n)\n", "lsh.cache"),
        ("text/batch.pxd", "from ..store.cache cimport Cache\n", "lsh.store.cache"),
        ("sketch/hasher.py", "def f():\n    from lsh.engine.corpus import Corpus\n", "lsh.engine.corpus"),
        ("links/linking.py", "from lsh.engine import layout\n", "lsh.engine.layout"),
        ("engine/dedup.py", "import lsh.store.index\n", "lsh.store.index"),
        ("report/page.py", "from lsh.spark import deduplicate\n", "lsh.spark"),
        ("terminal/rows.py", "from lsh.command.main import main\n", "lsh.command.main"),
        ("sketch/hasher.py", "if TYPE_CHECKING:\n    from lsh import report\n", "lsh.report"),
    ],
)
def test_bad_imports_are_found(name, source, imported):
    assert faults_of_imports(name, source) == [f"{name} imports {imported}"]


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["a", "b", "c", "d"]


# The modules that an import loads.


def loaded(folder: Path, first: str, then: str) -> set[str]:
    """The modules that a statement loads in a new process, without those of an earlier statement."""
    script = f"import sys; {first}; before = set(sys.modules); {then}; print(*(set(sys.modules) - before))"
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=environment(), check=True, capture_output=True, text=True
    )
    return set(result.stdout.split())


def test_import_loads_numpy_and_the_standard_library(tmp_path):
    """And nothing that few need."""
    names = loaded(tmp_path, "import numpy", "import lsh")
    first = {name.partition(".")[0] for name in names}
    assert {name for name in first if "cython" not in name} <= {"lsh", "numpy", *sys.stdlib_module_names}
    assert names & LAZY == set()
    assert names & {module for module in MODULES if floor_of(module)[0] > BESIDE["lsh"]} == set()
    assert names & WHEN_USED == set()


def test_modules_are_loaded_when_they_are_first_used(tmp_path):
    """The modules are used in sequence; one that is loaded before its first use is not counted."""
    names = sorted(WHEN_USED, key=lambda name: (name == "lsh.plot", name))  # which loads `lsh.report`
    uses = "; ".join(f"before |= {{{name!r}}} & set(sys.modules); {name}" for name in names)
    found = loaded(tmp_path, "import lsh", uses)
    assert found & WHEN_USED == WHEN_USED
    for name in names:
        short = name.removeprefix("lsh.")
        assert short in dir(lsh)
        assert getattr(lsh, short) is importlib.import_module(name)


def test_a_report_and_plots_load_no_reader_and_no_command(tmp_path):
    names = loaded(tmp_path, "import numpy", "import lsh.report, lsh.plot, lsh.presets")
    assert "lsh.report.page" in names
    assert names & {"argparse", "csv", "json", "gzip", "matplotlib"} == set()
    assert {name for name in names if name.startswith(("lsh.files", "lsh.terminal", "lsh.command"))} == set()
