"""How the tests run: the tests that a plain `pytest` leaves out, the number of examples, and the number of workers.

The settings of pytest in pyproject.toml are those of the checkout beside the tests.
"""

from __future__ import annotations

import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

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
    ran = subprocess.run([*command, *options], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert set(re.findall(r"::test_(\w+)", ran.stdout)) == expected


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
