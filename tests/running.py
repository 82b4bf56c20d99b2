"""Functions that run the command in this process or in a new one, in a separate folder.

`lsh` calls `main` with its own streams and then restores the state that `main` changed. `process` runs
``python -m lsh`` to test signals, pipes and the environment at start. Both return the exit code and the output as
bytes. `done` requires success; `refused` requires an error on one line. The expected output is in the tests.
"""

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

import lsh as package

SAMPLE = Path(__file__).resolve().parents[1] / "examples" / "sample.tsv"
STORY = b"the ferry left the harbour at nine with two hundred passengers and a brass band on board"
OTHER = b"growers in the valley expect a poor year for pears since the frost came late in the spring"
THIRD = b"a tortoise laid an egg on sunday and was given another name by everyone but the accountant"
CLOSE = STORY.replace(b"nine", b"nina")
DOCUMENTS = b"\n".join([STORY, OTHER, CLOSE, THIRD, OTHER]) + b"\n"
KEPT = b"\n".join([STORY, OTHER, THIRD]) + b"\n"
TIMEOUT = 120.0
# A process inherits the signals that are ignored: SIGINT in background jobs of a shell, SIGHUP under nohup.
DEFAULT_SIGNALS = (
    "signal.signal(signal.SIGINT, signal.default_int_handler); "
    "[signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)]"
)
IGNORED_WARNINGS = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)  # Python's own

Completed = subprocess.CompletedProcess[bytes]


def environment(**more: str) -> dict[str, str]:
    """The environment with the folder of the imported package first on the path."""
    path = [str(Path(package.__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), **more}


def process(
    folder: Path,
    *arguments: object,
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
    python: Sequence[object] = ("-m", "lsh"),
    shell: str | None = None,
) -> Completed:
    """Run the command in `folder` as a process; `shell` is appended to the command line, such as ``">&-"``."""
    command = [sys.executable, *map(str, python), *map(str, arguments)]
    if shell is not None:
        command = ["sh", "-c", f'exec "$@" {shell}', "sh", *command]
    return subprocess.run(
        command, cwd=folder, input=stdin, capture_output=True, timeout=TIMEOUT, env=environment(**(env or {}))
    )


def lsh(
    folder: Path,
    *arguments: object,
    stdin: bytes = b"",
    stdout: IO[bytes] | None = None,
    encoding: str = "utf-8",
) -> Completed:
    """Run the command in `folder` in this process.

    `stdout` replaces the file whose content is returned. `encoding` is the encoding of standard output.
    """
    from lsh.command.main import main

    line = [str(argument) for argument in arguments]
    with tempfile.TemporaryFile() as written, io.BytesIO() as stderr:
        with _like_a_process(folder, stdin, stdout or written, stderr, encoding):
            try:
                code = main(line)
            except SystemExit as end:  # after the help
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            sys.stdout.flush()
            sys.stderr.flush()
        written.seek(0)
        return subprocess.CompletedProcess(["lsh", *line], code, written.read(), stderr.getvalue())


@contextmanager
def _like_a_process(folder: Path, stdin: bytes, stdout: IO[bytes], stderr: IO[bytes], encoding: str) -> Iterator[None]:
    """Set the folder, streams and warnings of a new process; restore them and the signals at the end."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    streams = {
        "stdin": io.TextIOWrapper(io.BytesIO(stdin), "utf-8"),
        "stdout": io.TextIOWrapper(stdout, encoding),
        "stderr": io.TextIOWrapper(stderr, "utf-8", "backslashreplace"),
    }
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.resetwarnings()
        for category in IGNORED_WARNINGS:
            warnings.simplefilter("ignore", category)
        patch.setattr(warnings, "showwarning", _print_warning)
        patch.chdir(folder)
        for name, stream in streams.items():
            patch.setattr(sys, name, stream)
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            for name in ("stdout", "stderr"):
                streams[name].detach()  # otherwise it closes the file


def _print_warning(message: object, category: type[Warning], filename: str, lineno: int, *_: object) -> None:
    sys.stderr.write(warnings.formatwarning(str(message), category, filename, lineno))


def done(folder: Path, *arguments: object, run: Callable[..., Completed] = lsh, **options: object) -> bytes:
    """Run a command that must succeed and return its standard output."""
    result = run(folder, *arguments, **options)
    assert result.returncode == 0, result.stderr.decode()
    assert b"Traceback" not in result.stderr
    return result.stdout


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every name in the folder with the content of the file, except the lock of an index, which has a time."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and path.name != "lock" else None
        for path in sorted(folder.rglob("*"))
    }


def refused(folder: Path, *arguments: object, run: Callable[..., Completed] = lsh, **options: object) -> str:
    """Run a command that must end with code 2, leave the folder as it is and print one line of error.

    Before the error, there may be one line per group of files that names the text column, and one about memory://.
    """
    before = contents(folder)
    result = run(folder, *arguments, **options)
    message = result.stderr.decode("utf-8")
    assert result.returncode == 2, (result.returncode, message)
    assert result.stdout == b""
    assert contents(folder) == before
    assert message.endswith("\n"), message
    *notes, error = message.removesuffix("\n").split("\n")
    assert all("text: " in note or "disappears with it" in note for note in notes), message
    assert error.startswith("lsh: error: "), message
    return error


def rows(data: bytes) -> list[list[bytes]]:
    """The cells of a table."""
    *lines, end = data.split(b"\n")
    assert end == b""
    return [line.split(b"\t") for line in lines]


def sample() -> list[list[bytes]]:
    """The ids and texts of the sample of the repository."""
    return rows(SAMPLE.read_bytes())


def json_lines(data: bytes) -> list[dict[str, Any]]:
    """The objects of lines of JSON."""
    return [json.loads(line) for line in data.splitlines()]
