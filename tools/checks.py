"""Run the checks of a script of this folder: `python tools/check_NAME.py [WORD...]`.

A check is a function `check_*` that raises an error if something does not hold. With words, only the checks run whose
names contain one of them. The scripts check the repository (its release, its suite, its benchmarks, its examples), so
`.ci/run` runs them and `pytest` does not.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


class MissingError(Exception):
    """What a check needs is not here: the check is skipped, with a line."""


def main(names: dict[str, Any]) -> int:
    """Run the checks of a module, given its names; return the exit code."""
    checks = {name: one for name, one in names.items() if name.startswith("check_")}
    wanted = {name: one for name, one in checks.items() if not sys.argv[1:] or any(w in name for w in sys.argv[1:])}
    failed = 0 if wanted else 1
    for name, check in wanted.items():
        try:
            check()
        except MissingError as error:
            print(f"skipped {name}: {error}", flush=True)
        except (Exception, SystemExit):
            traceback.print_exc()
            failed += 1
            print(f"FAILED {name}", flush=True)
        else:
            print(f"passed {name}", flush=True)
    return 1 if failed else 0


def data_folder() -> Path:
    """Return the folder of corpora: LSH_DATA, else shared/data beside the repository."""
    folder = Path(os.environ.get("LSH_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        raise MissingError("no corpora: set LSH_DATA to their folder")
    return folder


def script(path: Path) -> ModuleType:
    """Return a script as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compare_table(page: str, name: str, rows: list[str]) -> None:
    """Check that a page has these rows, after two lines of a header, between the marks of a table."""
    (given,) = re.findall(rf"<!-- begin: {name} -->\n(.*?)<!-- end: {name} -->", page, re.DOTALL)
    measured = "".join(f"| {row} |\n" for row in rows)
    assert given.split("\n", 2)[2] == measured, f"the table {name} is\n{measured}"


def raises(kind: type[BaseException], message: str, function: Callable[..., object], *arguments: object) -> None:
    """Check that a call raises an error with a message, a regular expression."""
    try:
        function(*arguments)
    except kind as error:
        said = str(error)
    else:
        raise AssertionError(f"no {kind.__name__}: {message}")
    assert re.search(message, said), said
