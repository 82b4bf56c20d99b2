"""The examples in docstrings, in the README and in docs/ run and print the stated output; links lead to files.

The pages are read from the checkout beside the tests; the docstrings are read from the imported package.
"""

import doctest
import importlib
import inspect
import pkgutil
import re
import types
from collections import Counter
from pathlib import Path

import pytest

import lsh

REPOSITORY = Path(__file__).parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NEEDS = {  # modules whose examples require an optional package
    "lsh.engine.result": "pandas",
    "lsh.report.plot": "matplotlib",
    "lsh.spark._tasks": "pyarrow",
}
FOLDERS = (REPOSITORY, *(REPOSITORY / name for name in ("docs", "docs/api", "benchmarks")))
PAGES = [page for folder in FOLDERS for page in folder.glob("*.md")]
EXAMPLES = {  # the least number of examples on each page
    "README.md": 15,
    "docs/choosing.md": 8,
    "docs/decontamination.md": 25,
    "docs/guide.md": 30,
    "docs/idea.md": 20,
    "docs/index.md": 5,
    "docs/lasting-index.md": 30,
    "docs/one-machine.md": 10,
    "docs/plots.md": 15,
    "docs/promises.md": 8,
    "docs/start.md": 10,
    "docs/uploads.md": 15,
}
PUBLIC = [
    "lsh",
    *(f"lsh.{name}" for name in ("cache", "index", "lsh", "minhash", "plot", "presets", "report", "spark", "typing")),
]
MODULES = sorted(module.name for module in pkgutil.walk_packages(lsh.__path__, "lsh.") if module.name != "lsh.__main__")


@pytest.mark.parametrize("name", ["lsh", *MODULES])
def test_examples_of_docstrings(name, monkeypatch):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"{NEEDS[name]} is not installed; the extra `test` has it")
        monkeypatch.setenv("MPLBACKEND", "Agg")
    result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert result.failed == 0


def public_names():
    """What the `__all__` of each public module names, without modules: pairs of a name and an object."""
    for module in map(importlib.import_module, PUBLIC):
        for name in module.__all__:
            if not inspect.ismodule(getattr(module, name)):
                yield f"{module.__name__}.{name}", getattr(module, name)


def test_the_reference_has_each_public_name_once():
    """The directives of docs/api/ document each public object once, whichever of the public modules they name."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for public in (lsh.Bands, lsh.Cache, lsh.Index, lsh.MinHasher, lsh.Screen, lsh.Shingles, lsh.deduplicate, lsh.plan):
        assert any(test.examples for test in finder.find(public, public.__name__)), public
    names = {id(public): name for name, public in public_names()}
    found, module = Counter(), ""
    for page in sorted(REPOSITORY.glob("docs/api/*.md")):
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


def test_members_of_public_classes_have_docstrings():
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


@pytest.mark.parametrize(("name", "function"), [pytest.param(*one, id=one[0]) for one in public_functions()])
def test_docstrings_have_their_sections(name, function):
    """Each parameter is described, and so are what is returned and, where there are parameters, the errors."""
    signature, found = inspect.signature(function), sections(function.__doc__)
    headings = re.findall(r"^(\S[^:\n]*?)(?: :.*)?$", found.get("Parameters", ""), re.MULTILINE)
    described = [one.lstrip("*") for heading in headings for one in heading.split(", ")]
    given = [one for one in signature.parameters if one not in ("self", "cls")]
    assert sorted(described) == sorted(given)
    assert ("Returns" in found or "Yields" in found) == (signature.return_annotation != "None")
    assert "Raises" in found or not given


@pytest.mark.parametrize(("name", "least"), EXAMPLES.items())
def test_examples_of_a_page(name, least, monkeypatch):
    if name == "docs/plots.md":
        pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra `test` has it")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(REPOSITORY / "examples")
    monkeypatch.syspath_prepend(REPOSITORY / "examples")
    result = doctest.testfile(str(REPOSITORY / name), module_relative=False, optionflags=FLAGS)
    assert result.attempted >= least
    assert result.failed == 0


def test_links_and_names_of_files_lead_to_files():
    missing = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link]
        missing += [(page.name, link) for link in links if not (page.parent / link).exists()]
        if page.name in ("extending.md", "DEVELOPING.md"):
            named = re.findall(r"`((?:benchmarks|docs|lsh|tests|tools|\.ci)/[\w./-]*)`", text)
            assert len(named) > 30
            missing += [(page.name, name) for name in named if "NAME" not in name and not (REPOSITORY / name).exists()]
    assert missing == []
