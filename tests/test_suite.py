"""How the tests run: the tests that a plain `pytest` leaves out, the number of examples, and the number of workers.

The settings of pytest in pyproject.toml are those of the checkout beside the tests.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import conftest
import pytest
import strategies
from hypothesis import settings

TESTS = Path(__file__).parent
CONFIGURATION = TESTS.parent / "pyproject.toml"


def test_every_number_of_examples_follows_the_profile():
    written = re.compile(r"max_examples=\w")
    assert [path.name for path in TESTS.rglob("*.py") if written.search(path.read_text("utf-8"))] == ["strategies.py"]
    assert settings.default.max_examples == strategies.examples(100).max_examples == round(100 * strategies.SCALE)
    assert strategies.examples(1).max_examples >= 1
    assert strategies.examples(40, stateful_step_count=7).stateful_step_count == 7
    assert strategies.examples(40).derandomize


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], {"plain"}),
        pytest.param(["-m", "slow"], {"slow"}, marks=pytest.mark.slow),
        pytest.param(["-m", ""], {"plain", "slow"}, marks=pytest.mark.slow),
    ],
    ids=["plain", "slow", "all"],
)
def test_slow_tests_are_run_when_asked_for(tmp_path, arguments, expected):
    code = "import pytest\ndef test_plain(): pass\n@pytest.mark.slow\ndef test_slow(): pass\n"
    (tmp_path / "test_two.py").write_text(code, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"]
    options = ["-c", str(CONFIGURATION), "--rootdir", str(tmp_path), *arguments, str(tmp_path)]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # no test here needs a plugin
    ran = subprocess.run([*command, *options], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert set(re.findall(r"::test_(\w+)", ran.stdout)) == expected


class Case(SimpleNamespace):
    """A case of a test, with its marks."""

    def get_closest_marker(self, name):
        return self.marks.get(name)

    def add_marker(self, mark):
        self.marks[mark.name] = mark


@pytest.mark.parametrize(
    ("count", "given", "fast"),
    [(1, 5, [0]), (2, 5, [0, 4]), (3, 6, [0, 2, 5]), (4, 3, [0, 1, 2]), (5, 1, [0]), (None, 4, [0, 1, 2, 3])],
)
def test_few_cases_of_a_test_are_fast(count, given, fast):
    marks = {} if count is None else {"few": pytest.mark.few(count).mark}
    cases = [Case(nodeid=f"test_a.py::test_it[{i}]", marks=dict(marks)) for i in range(given)]
    slow = Case(nodeid="test_a.py::test_it[slow]", marks=marks | {"slow": pytest.mark.slow})
    other = Case(nodeid="test_b.py::test_it[0]", marks=dict(marks))
    conftest.pytest_collection_modifyitems([slow, *cases, other])
    assert [i for i, case in enumerate(cases) if not case.get_closest_marker("slow")] == fast
    assert not other.get_closest_marker("slow")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ("auto", "worksteal")),
        ({"dist": "loadfile"}, ("auto", "loadfile")),
        ({"numprocesses": 0}, (0, "no")),
        ({"numprocesses": 3, "dist": "load"}, (3, "load")),
        ({"usepdb": True}, (None, "no")),
        ({"capture": "no"}, (None, "no")),
        ({"args": [__file__]}, (None, "no")),
        ({"args": [f"{__file__}::test_one"]}, (None, "no")),
        ({"plugin": False}, (None, "no")),
        ({"worker": True}, (None, "no")),
    ],
    ids=str,
)
def test_a_folder_is_spread_over_the_processors(given, expected):
    options = {"numprocesses": None, "maxprocesses": None, "dist": "no", "tx": [], "distload": False}
    options |= {"usepdb": False, "trace": False, "capture": "fd", "collectonly": False}
    option = Namespace(**options | {name: value for name, value in given.items() if name in options})
    plugins = Namespace(hasplugin=lambda name: given.get("plugin", True))
    config = Namespace(option=option, pluginmanager=plugins, args=given.get("args", [str(TESTS)]))
    if given.get("worker"):
        config.workerinput = {}
    conftest.pytest_cmdline_main(config)
    assert (option.numprocesses, option.dist) == expected


def test_the_version_of_the_citation_is_that_of_the_package():
    version = re.search(r'^version = "(.+)"$', CONFIGURATION.read_text("utf-8"), re.MULTILINE)[1]
    assert f"version: {version}\n" in (TESTS.parent / "CITATION.cff").read_text("utf-8")


@pytest.mark.parametrize(("count", "full"), [(conftest.MANY, []), (conftest.MANY + 2, [1, 3, 5, 7])])
def test_every_second_one_of_many_slow_cases_is_for_the_full_checks(count, full):
    cases = [Case(nodeid=f"test_a.py::test_it[{i}]", marks={"slow": pytest.mark.slow.mark}) for i in range(count)]
    conftest.pytest_collection_modifyitems(cases)
    assert [i for i, case in enumerate(cases) if case.get_closest_marker("full")] == full
