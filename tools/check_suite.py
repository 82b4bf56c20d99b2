#!/usr/bin/env python3
"""Check how the tests run: what a plain `pytest` leaves out, the number of examples, and the number of workers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import checks
import pytest

TESTS = checks.ROOT / "tests"
sys.path.insert(0, str(TESTS))

import conftest  # noqa: E402
import strategies  # noqa: E402
from hypothesis import settings  # noqa: E402

TWO = "import pytest\ndef test_plain(): pass\n@pytest.mark.slow\ndef test_slow(): pass\n"


class Case(SimpleNamespace):
    """A case of a test, with its marks."""

    def get_closest_marker(self, name: str) -> Any:
        return self.marks.get(name)

    def add_marker(self, mark: Any) -> None:
        self.marks[mark.name] = mark


def cases(count: int, marks: dict[str, Any]) -> list[Case]:
    return [Case(nodeid=f"test_a.py::test_it[{i}]", marks=dict(marks)) for i in range(count)]


def check_every_number_of_examples_follows_the_profile() -> None:
    written = re.compile(r"max_examples=\w")
    assert [path.name for path in TESTS.rglob("*.py") if written.search(path.read_text("utf-8"))] == ["strategies.py"]
    assert settings.default is not None
    assert settings.default.max_examples == strategies.examples(100).max_examples == round(100 * strategies.SCALE)
    assert strategies.examples(1).max_examples >= 1
    assert strategies.examples(40, stateful_step_count=7).stateful_step_count == 7
    assert strategies.examples(40).derandomize


def check_slow_tests_are_run_when_asked_for() -> None:
    variables = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with tempfile.TemporaryDirectory() as temp:
        (Path(temp) / "test_two.py").write_text(TWO, encoding="utf-8")
        for arguments, expected in (([], {"plain"}), (["-m", "slow"], {"slow"}), (["-m", ""], {"plain", "slow"})):
            command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"]
            command += ["-c", str(checks.ROOT / "pyproject.toml"), "--rootdir", temp, *arguments, temp]
            ran = subprocess.run(command, capture_output=True, text=True, cwd=temp, env=variables)
            assert ran.returncode == 0, ran.stdout + ran.stderr
            assert set(re.findall(r"::test_(\w+)", ran.stdout)) == expected


def check_few_cases_of_a_test_are_fast() -> None:
    table = [(1, 5, [0]), (2, 5, [0, 4]), (3, 6, [0, 2, 5]), (4, 3, [0, 1, 2]), (5, 1, [0]), (None, 4, [0, 1, 2, 3])]
    for count, number, fast in table:
        marks = {} if count is None else {"few": pytest.mark.few(count).mark}
        some = cases(number, marks)
        slow = Case(nodeid="test_a.py::test_it[slow]", marks=marks | {"slow": pytest.mark.slow})
        other = Case(nodeid="test_b.py::test_it[0]", marks=dict(marks))
        conftest.pytest_collection_modifyitems([slow, *some, other])
        assert [i for i, case in enumerate(some) if not case.get_closest_marker("slow")] == fast
        assert not other.get_closest_marker("slow")


def check_every_second_one_of_many_slow_cases_is_for_the_full_checks() -> None:
    for count, full in ((conftest.MANY, []), (conftest.MANY + 2, [1, 3, 5, 7])):
        some = cases(count, {"slow": pytest.mark.slow.mark})
        conftest.pytest_collection_modifyitems(some)
        assert [i for i, case in enumerate(some) if case.get_closest_marker("full")] == full


def check_a_folder_is_spread_over_the_processors() -> None:
    table: list[tuple[dict[str, Any], tuple[object, str]]] = [
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
    ]
    for given, expected in table:
        options = {"numprocesses": None, "maxprocesses": None, "dist": "no", "tx": [], "distload": False}
        options |= {"usepdb": False, "trace": False, "capture": "fd", "collectonly": False}
        option = Namespace(**options | {name: value for name, value in given.items() if name in options})
        plugins = Namespace(hasplugin=lambda name, given=given: given.get("plugin", True))
        config = Namespace(option=option, pluginmanager=plugins, args=given.get("args", [str(TESTS)]))
        if given.get("worker"):
            config.workerinput = {}
        conftest.pytest_cmdline_main(config)
        assert (option.numprocesses, option.dist) == expected, given


if __name__ == "__main__":
    sys.exit(checks.main(globals()))
