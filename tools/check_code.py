#!/usr/bin/env python3
"""Check sources and pages of docs/: messages, docstrings, names in signatures, links, and extensions of C.

`python tools/check_code.py`. It imports the installed package, and runs no example: tests/test_docs.py does.
"""

from __future__ import annotations

import ast
import builtins
import doctest
import importlib
import inspect
import re
import sys
import types
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import checks

import lsh

PACKAGE = Path(lsh.__file__).parent
FOLDERS = (checks.ROOT, *(checks.ROOT / name for name in ("docs", "docs/api", "benchmarks")))
PAGES = [page for folder in FOLDERS for page in folder.glob("*.md")]
MODULES = ["cache", "index", "lsh", "minhash", "plot", "presets", "report", "typing"]
ADAPTERS = [f"adapters.{name}" for name in ("datasets", "datatrove", "dolma", "nemo")]
PUBLIC = ["lsh", *(f"lsh.{name}" for name in [*MODULES, "spark", *ADAPTERS])]


# ---- messages ----

OPTION = re.compile(r"(?<![\w-])--[a-z]")
NAMES_OPTIONS = {"__init__.py", "store/screen.py"}  # a command to type: of setup.py, and lsh index create --screen
NOTES = ("note", "message", "warning")  # names of texts for users
# Errors of other libraries, which have no data beside their text.
OTHERS = {"files/tables.py", "files/text_formats.py", "spark/_stages.py", "storage/remote.py"}


def check_no_code_looks_into_the_text_of_a_message() -> None:
    for faulty in ("str(error).replace('a', 'b')", "'text' in str(error)", "error.args = ()", "'a' in note"):
        assert list(looks_into_messages(ast.parse(f"try: pass\nexcept ValueError as error: {faulty}"))), faulty
    found = {name: faults for name, tree in modules() if (faults := list(looks_into_messages(tree)))}
    assert set(found) <= OTHERS, found


def check_only_the_command_names_its_options() -> None:
    found = {
        name: texts
        for name, tree in modules()
        if not name.startswith(("command/", "terminal/"))
        and (texts := [text for text in literals(tree) if OPTION.search(text)])
    }
    assert set(found) <= NAMES_OPTIONS, found


@cache
def modules() -> list[tuple[str, ast.Module]]:
    paths = sorted(PACKAGE.rglob("*.py"))
    return [(path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text("utf-8"))) for path in paths]


def looks_into_messages(tree: ast.AST) -> Iterator[str]:
    """Yield code that takes a decision by the text of an error, a warning, a note or a help text."""
    errors = {handler.name for handler in ast.walk(tree) if isinstance(handler, ast.ExceptHandler)} - {None}
    for node in ast.walk(tree):
        inside: list[ast.AST] = []
        if isinstance(node, ast.Attribute | ast.Subscript):
            inside = [node.value]
        elif isinstance(node, ast.Compare):
            inside = list(node.comparators)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("search", "match", "fullmatch", "sub"):
            inside = list(node.args)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "filterwarnings" and len(node.args) > 1:
            yield ast.unparse(node)
        for one in inside:
            is_text = isinstance(one, ast.Call) and getattr(one.func, "id", "") == "str" and len(one.args) == 1
            text = getattr(one.args[0], "id", None) if is_text else None
            if text in errors or (isinstance(node, ast.Compare) and getattr(one, "id", "") in NOTES):
                yield ast.unparse(node)
        if isinstance(node, ast.Attribute) and node.attr == "args" and getattr(node.value, "id", None) in errors:
            yield ast.unparse(node)


def literals(tree: ast.AST) -> Iterator[str]:
    """Yield the texts in a module that are not docstrings."""
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


# ---- docstrings and the reference ----


def public_names():
    """What the `__all__` of each public module names, without modules: pairs of a name and an object."""
    for module in map(importlib.import_module, PUBLIC):
        for name in module.__all__:
            if not inspect.ismodule(getattr(module, name)):
                yield f"{module.__name__}.{name}", getattr(module, name)


def check_the_reference_has_each_public_name_once() -> None:
    """The directives of docs/api/ document each public object once, whichever of the public modules they name."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for public in (lsh.Bands, lsh.Cache, lsh.Index, lsh.MinHasher, lsh.Screen, lsh.Shingles, lsh.deduplicate, lsh.plan):
        assert any(test.examples for test in finder.find(public, public.__name__)), public
    names = {id(public): name for name, public in public_names()}
    found, module = Counter(), ""
    for page in sorted(checks.ROOT.glob("docs/api/*.md")):
        for directive, name in re.findall(r"^\.\. (\w+):: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE):
            if directive.endswith("module"):
                module = name
            elif directive != "literalinclude":
                found[id(getattr(importlib.import_module(module), name))] += 1
    assert [name for one, name in names.items() if found[one] != 1] == []
    assert found.keys() == names.keys()


def members_of(public):
    """The members of a class by name, with those of its bases in the package."""
    bases = [base for base in reversed(public.__mro__) if base.__module__.startswith("lsh.")]
    return {name: value for base in bases for name, value in vars(base).items()}


def check_members_of_public_classes_have_docstrings() -> None:
    """The reference leaves out those that have none."""
    members = [
        (f"{name}.{member}", value)
        for name, public in public_names()
        if inspect.isclass(public) and not isinstance(public, types.GenericAlias)  # Python 3.10 takes these for classes
        for member, value in members_of(public).items()
        if not member.startswith("_") and (hasattr(value, "__get__") or callable(value))
    ]
    assert len(members) > 100
    assert [name for name, value in members if not (value.__doc__ or "").strip()] == []


def public_functions():
    """The public functions and methods, as pairs of a name and a function; classes themselves are not among them."""
    for name, public in public_names():
        members = members_of(public).items() if inspect.isclass(public) else [("", public)]
        for member, value in members:
            function = getattr(value, "__func__", value)  # of class methods, too
            if not member.startswith("_") and inspect.isfunction(function):
                yield f"{name}.{member}".rstrip("."), function


def sections(docstring):
    """The sections of a numpydoc docstring: a dict from the heading to the text."""
    parts = re.split(r"^(\w+)\n-+$", inspect.cleandoc(docstring), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def check_docstrings_have_their_sections() -> None:
    """Each parameter is described, and so are what is returned and, where there are parameters, the errors."""
    for name, function in public_functions():
        signature, found = inspect.signature(function), sections(function.__doc__ or "")
        headings = re.findall(r"^(\S[^:\n]*?)(?: :.*)?$", found.get("Parameters", ""), re.MULTILINE)
        described = [one.lstrip("*") for heading in headings for one in heading.split(", ")]
        given = [one for one in signature.parameters if one not in ("self", "cls")]
        assert sorted(described) == sorted(given), name
        assert ("Returns" in found or "Yields" in found) == (signature.return_annotation != "None"), name
        assert "Raises" in found or not given, name


def check_links_and_names_of_files_lead_to_files() -> None:
    missing = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link]
        missing += [(page.name, link) for link in links if not (page.parent / link).exists()]
        if page.name in ("extending.md", "DEVELOPING.md"):
            named = re.findall(r"`((?:benchmarks|docs|lsh|tests|tools|\.ci)/[\w./-]*)`", text)
            assert len(named) > 30
            missing += [(page.name, name) for name in named if "NAME" not in name and not (checks.ROOT / name).exists()]
    assert missing == []


def check_the_page_of_presets_says_what_differs() -> None:
    words = " ".join((checks.ROOT / "docs" / "presets.md").read_text(encoding="utf-8").split())
    published = [*map(lsh.presets.preset, lsh.presets.NAMES), *map(lsh.presets.rule, lsh.presets.RULES)]
    for preset in published:
        assert preset.differs
        assert [said for said in (f"`{preset.name}`", *preset.differs) if said not in words] == []
        assert [said for said in (preset.source, *preset.differs) if said not in str(preset)] == []


# ---- names and types ----


def is_protocol(value):
    return getattr(value, "_is_protocol", False)


def names_of(module):
    """Yield the public names of a module, and those that its classes define, except of errors and results."""
    for name in module.__all__:
        value = getattr(module, name)
        yield name
        if isinstance(value, types.GenericAlias):  # an alias, which Python 3.10 takes for a class
            continue
        if inspect.isclass(value) and not issubclass(value, (tuple, Exception)) and not is_protocol(value):
            yield from (own for own in vars(value) if not own.startswith("_"))


def check_each_public_name_is_used() -> None:
    """In `tests/typed/ordinary.py`, which mypy checks."""
    program = checks.ROOT / "tests" / "typed" / "ordinary.py"
    words = set(re.findall(r"\w+", program.read_text(encoding="utf-8")))
    for name in ["lsh", *(f"lsh.{module}" for module in MODULES)]:
        assert [one for one in names_of(importlib.import_module(name)) if one not in words] == [], name


# Not in `lsh.typing`: an index as `deduplicate` sees it, the options of `Screen.create`, and types of other packages.
OTHER_NAMES = {
    "IndexSource",
    "Axes",
    "Column",
    "DataFrame",
    "ArrayLike",
    "NDArray",
    "Dataset",
    "DatasetDict",
    "IterableDataset",
    *("FileGroupTask", "ProcessingStage", "WorkflowRunResult"),
}
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


def check_each_name_of_a_signature_is_public() -> None:
    """What a signature names is a public class, an alias of `lsh.typing`, or of the standard library or numpy."""
    for name in PUBLIC:
        module = importlib.import_module(name)
        known = {*lsh.__all__, *lsh.typing.__all__, *module.__all__, *OTHER_NAMES, *STANDARD, *dir(builtins)}
        known |= {"lsh", "np", "os", "pandas", "pyarrow", "MeasuredRecall", "Pair", "Verdict", "Duplicate"}
        assert {one for function in signatures(module) for one in annotated(function)} - known == set(), name


def check_the_aliases_are_those_of_the_signatures() -> None:
    """An alias that no public signature names is not worth a public name; the parts of other aliases are."""
    parts = {"ArrowArray", "ArrowStream", "Decision", "DocId", "FoundId"}
    modules = [lsh, *(importlib.import_module(f"lsh.{one}") for one in MODULES)]
    named = {one for module in modules for function in signatures(module) for one in annotated(function)}
    assert set(lsh.typing.__all__) - named - parts == set()


# ---- C ----

# How gcc and clang extend C. Microsoft's compiler has none of these.
EXTENSIONS = re.compile(
    r"__builtin_\w+|__attribute__|__int128|vector_size|__asm__|__atomic_\w+|__extension__|\btypeof\b"
)


def check_extensions_of_c_are_in_two_files() -> None:
    paths = [path for ending in ("*.c", "*.h") for path in (checks.ROOT / "lsh").rglob(ending)]
    found = {path.name: names for path in paths if (names := EXTENSIONS.findall(path.read_text("utf-8")))}
    assert set(found) == {"dispatch.c", "target.h"}, found
    assert found["dispatch.c"] == ["__asm__"], found
    assert len(paths) > 20


if __name__ == "__main__":
    sys.exit(checks.main(globals()))
