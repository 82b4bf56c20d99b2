"""How the tests run the command: as a real process, in a folder of its own, on the lsh that the tests import.

`lsh` runs `python -m lsh` and returns what came of it, bytes throughout; `refused` runs a command that must fail and
returns its one line of error. Nothing here knows what the command should answer.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import lsh as package

TIMEOUT = 300.0


def environment(**more: str) -> dict[str, str]:
    """The environment with the folder of the imported package first on the path."""
    path = [str(Path(package.__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), **more}


def lsh(
    folder: Path,
    *arguments: object,
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run the command in `folder`; `stdin` is what it can read."""
    return subprocess.run(
        [sys.executable, "-m", "lsh", *map(str, arguments)],
        cwd=folder,
        input=stdin,
        capture_output=True,
        timeout=TIMEOUT,
        env=environment(**(env or {})),
    )


def done(folder: Path, *arguments: object, stdin: bytes = b"", env: dict[str, str] | None = None) -> bytes:
    """Run a command that must succeed and return its standard output."""
    result = lsh(folder, *arguments, stdin=stdin, env=env)
    assert result.returncode == 0, result.stderr.decode()
    assert b"Traceback" not in result.stderr
    return result.stdout


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every name in the folder with what the file holds."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def refused(folder: Path, *arguments: object, stdin: bytes = b"", env: dict[str, str] | None = None) -> str:
    """Run a command that must end with code 2, leave the folder as it is and print nothing but one line of error."""
    before = contents(folder)
    result = lsh(folder, *arguments, stdin=stdin, env=env)
    message = result.stderr.decode("utf-8")
    assert result.returncode == 2, (result.returncode, message)
    assert result.stdout == b""
    assert contents(folder) == before
    assert message.count("\n") == 1, message
    assert message.endswith("\n"), message
    assert message.startswith("lsh: error: "), message
    return message.rstrip("\n")
