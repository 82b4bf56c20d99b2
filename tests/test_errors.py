"""Errors as data: parameters in messages, and no code that looks into the text of a message."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import lsh
from lsh.base.errors import Message, Parameter, bad_type, bad_value, saying, words_of
from lsh.command.console import worded

PACKAGE = Path(lsh.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z]")
NAMES_OPTIONS = {"__init__.py", "store/screen.py"}  # a command to type: of setup.py, and lsh index create --screen
# Errors of other libraries, which have no data beside their text.
NOTES = ("note", "message", "warning")  # names of texts for users
OTHERS = {"files/tables.py", "files/text_formats.py", "spark/_stages.py", "storage/remote.py"}


def test_a_message_names_parameters_for_python_and_options_for_the_command():
    message = "use " + Parameter("missing", "empty") + " or " + Parameter("on_bad_line", "skip") + "; see "
    message += Parameter("header", False) + ", " + Parameter("delimiter", "\t") + ", " + Parameter("pattern", "*.x")
    assert str(message) == "use missing='empty' or on_bad_line='skip'; see header=False, delimiter='\\t', pattern='*.x'"
    assert (
        worded(message)
        == "use --missing empty or --on-bad-line skip; see --no-header, --delimiter tab, --pattern '*.x'"
    )
    assert worded(Parameter("threshold", 0.30000000000000004) + " and " + Parameter("hasher")) == (
        "--threshold 0.3 and hasher"
    )
    assert str(message.renamed("missing", "absent")).startswith("use absent='empty' or on_bad_line")
    assert worded("a text with num_seeds=5 and a threshold") == "a text with num_seeds=5 and a threshold"


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
@pytest.mark.parametrize("make", [bad_value, bad_type])
def test_an_error_knows_its_parameter(make, again):
    error = again(make(Parameter("recall", 0.5), "is too low; use " + Parameter("bands")))
    assert (str(error), error.parameter, error.reason) == (
        "recall=0.5 is too low; use bands",
        "recall",
        "is too low; use bands",
    )
    assert type(error) in (ValueError, TypeError)
    assert worded(words_of(error)) == "--recall 0.5 is too low; use --bands"


def test_the_words_of_an_error():
    assert words_of(ValueError("recall must be")) == "recall must be"
    assert words_of(OSError(2, "no such file", "a")) == "no such file"
    message = Message(("text",))
    assert words_of(saying(OSError(2, "text", "a"), message)) is message


@pytest.mark.parametrize(
    ("parameter", "run"),
    [
        ("num_seeds", lambda: lsh.plan(0.1, 0.999, 1)),
        ("seeds", lambda: lsh.MinHasher(0)),
        ("bands", lambda: lsh.Bands.from_string("x")),
        ("n", lambda: lsh.Shingles(0)),
        ("unit", lambda: lsh.Shingles(3, unit="line")),
    ],
)
def test_errors_of_values_have_their_parameter(parameter, run):
    """Those of functions are in `test_values.py`."""
    with pytest.raises((ValueError, TypeError)) as caught:
        run()
    assert caught.value.parameter == parameter
    assert str(caught.value).startswith(parameter)
    assert str(caught.value).endswith(caught.value.reason)


# ---- no code looks into the text of a message ----


def test_no_code_looks_into_the_text_of_a_message():
    found = {name: faults for name, tree in modules() if (faults := list(looks_into_messages(tree)))}
    assert set(found) <= OTHERS, found


def test_only_the_command_names_its_options():
    found = {
        name: texts
        for name, tree in modules()
        if not name.startswith("command/") and (texts := [text for text in literals(tree) if OPTION.search(text)])
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
