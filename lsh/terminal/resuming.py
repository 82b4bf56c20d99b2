"""``--resume``: the folder beside OUTPUT with what a run has read, so that the same command goes on if it is killed."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from fnmatch import fnmatch
from typing import Any

from lsh import files
from lsh.base.version import __version__
from lsh.base.wording import counted
from lsh.engine.saving import SavedRows
from lsh.storage import disk
from lsh.storage.journal import Journal, Record
from lsh.terminal import console, options

ENDING = ".resume"
# Values of the command line that do not change what is read and computed.
FREE = {"parser", "run", "resume", "num_threads", "max_memory", "temp_dir", "quiet", "verbose", "json"}
# What may replace the values of a run that ended at a malformed line or a missing text: nothing else was read so far.
ALLOWING = (("on_bad_line", "skip"), ("missing", "empty"))
NAMED = ("input", "against")  # such values that name files
JOURNALS = ("input", "against", "rows")
PLACING = "placing"  # the record of a run whose files are complete, and whose OUTPUT is a new folder, or has them

States = Mapping[str, "tuple[Any, ...] | None"]


class Resumption:
    """The state of a run.

    Parameters
    ----------
    output : str
        OUTPUT, a local file or folder.
    given : mapping
        The options that must be the same when the run goes on.

    Attributes
    ----------
    name : str
        The name of the run, once it has begun: hidden files begin with it, and records of other runs are ignored.
    input, against : Journal
        What was read of the files of both, once it is open.
    rows : SavedRows
        What was computed of their texts.
    """

    name: str
    input: Journal
    against: Journal
    rows: SavedRows

    def __init__(self, output: str, given: Mapping[str, Any]) -> None:
        self._output = os.path.normpath(files.local(output))
        self.folder, self._given = f"{self._output}{ENDING}", json.loads(json.dumps(given))
        self._run: Journal | None = None
        self._records: list[Record] = []
        self._is_open = False

    def is_placed(self) -> bool:
        """Tell whether a run of this command was killed after it had put OUTPUT, a new folder, in its place."""
        is_there = os.path.isdir(self._output) and files.has_files(self._output)
        if not is_there or not os.path.isfile(self._path("run")):
            return False
        with Journal(self._path("run")) as run:
            values = [value for value, _ in run.records()]
        return values[-1:] == [PLACING] and _begun(values)["options"] == self._given

    def begin(self, opened: ExitStack, folders: Iterable[str]) -> None:
        """Make the folder, or go on with that of a run that was killed; what that one left in `folders` is removed.

        Raises
        ------
        OSError
            If it cannot be written, or another process uses it.
        ValueError
            If it is a file.
        """
        if os.path.lexists(self.folder) and not os.path.isdir(self.folder):
            raise ValueError(f"--resume makes the folder {self.folder}, where a file or a broken link is; delete that")
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        self._run = opened.enter_context(Journal(self._path("run")))
        self._records = list(self._run.records())
        if not self._records:
            self._run.append(os.urandom(8).hex())
            self._records = list(self._run.records())
        self.name = str(self._records[0][0])
        disk.remove_hidden(self.name, {*folders, self._output})

    def open(self, opened: ExitStack, states: States) -> None:
        """Open the journals, which `opened` closes; `states` are those of all files that are read.

        Raises
        ------
        ValueError
            If the folder is of a run with other options or other files.
        """
        assert self._run is not None
        now = {"version": __version__, "options": self._given, "files": json.loads(json.dumps(dict(states)))}
        journals = [opened.enter_context(Journal(self._path(name), f"{self.name} {name}")) for name in JOURNALS]
        before = _begun([value for value, _ in self._records])
        if before:
            self._check(before, now)
        else:
            for journal in journals:  # of a run of which nothing is known
                journal.clear()
        if before != now:
            self._run.append(now)
        self.input, self.against, rows = journals
        self.rows, self._is_open = SavedRows(rows), True

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def _check(self, before: dict[str, Any], now: dict[str, Any]) -> None:
        """Check that a run of this folder can go on."""
        anew = f"or delete the folder to begin anew (rm -r {shlex.quote(self.folder)})"
        if before["version"] != now["version"]:
            versions = f"{before['version']}, and this is {now['version']}"
            raise ValueError(f"{self.folder} is of a run of lsh {versions}; use that version, {anew}")
        for name, value in now["options"].items():
            other = before["options"].get(name)
            is_new = (name, value) in ALLOWING or (name == "rejects" and before["options"]["on_bad_line"] == "error")
            if other != value and not is_new and name not in NAMED:
                shown = f"with {_option(name, other)}, and this one has {_option(name, value)}"
                raise ValueError(f"{self.folder} is of a run {shown}; give the same options, {anew}")
        for name in (*before["files"], *now["files"]):
            if name not in now["files"] or name not in before["files"]:
                what = "does not read" if name in now["files"] else "also reads"
                raise ValueError(
                    f"{self.folder} is of a run that {what} {files.shown(name)}; give the same files, {anew}"
                )
        if list(before["files"]) != list(now["files"]) or any(
            before["options"][name] != now["options"][name] for name in NAMED
        ):
            problem = f"{self.folder} is of a run whose files are named in another way or order"
            raise ValueError(f"{problem}; name them in the same way, {anew}")
        for name, state in now["files"].items():
            if before["files"][name] != state:
                problem = f"{files.shown(name)} has changed since the run of {self.folder} began"
                raise ValueError(f"{problem}; restore it, {anew}")

    def say(self, documents: int) -> None:
        """Print how many documents were read before."""
        if documents:
            console.say(f"going on with {self.folder}: {counted(documents, 'document')} read before")

    def say_kept(self) -> None:
        """Print that a run which has begun, and failed, can go on."""
        if self._is_open:
            console.say(f"{self.folder} has what was read: the same command goes on from there")

    @contextmanager
    def placing(self) -> Iterator[None]:
        """Note that all files are complete, and, at the end of the context, that they are in their places."""
        assert self._run is not None
        self._run.append(None if os.path.isdir(self._output) else PLACING)
        yield
        self._run.append(PLACING)

    def end(self) -> None:
        """Delete the folder, or what is in the one that a link leads to; the record of the run is the last to go."""
        for name in (*JOURNALS, "run"):
            with suppress(OSError):
                os.unlink(self._path(name))
        with suppress(OSError):
            os.rmdir(self.folder)


def checked(namespace: argparse.Namespace) -> Resumption | None:
    """Return the state of a run with --resume, ``None`` without this option.

    Raises
    ------
    ValueError
        If the run could not go on.
    """
    if not namespace.resume:
        return None
    output = namespace.output
    if output is None:
        raise ValueError("--resume requires -o OUTPUT, beside which it keeps what was read")
    if output == files.STANDARD or files.is_stream(output) or files.is_url(output):
        shown = files.shown(output)
        raise ValueError(f"--resume requires OUTPUT to be a file or a folder of this computer, got {shown}")
    for path in (*namespace.input, *(namespace.against or ())):
        if path == files.STANDARD or files.pipe_of(path) is not None:
            raise ValueError(f"--resume requires files that can be read again, got {files.shown(path)}")
    given = {name: value for name, value in vars(namespace).items() if name not in FREE}
    found = Resumption(output, given)
    for path in namespace.input:
        pattern = os.path.normpath(path)
        if fnmatch(found.folder, pattern) and pattern.count(os.sep) == found.folder.count(os.sep):
            problem = f"{files.shown(path)} would match {found.folder}, where --resume keeps what was read"
            raise ValueError(f"{problem}; write OUTPUT to another folder")
    return found


def _begun(values: Sequence[Any]) -> Any:
    """Return what the records of a run say of its options and files, empty if nothing."""
    return next((value for value in reversed(values) if isinstance(value, dict)), {})


def _option(name: str, value: Any) -> str:
    """Return an option as it is typed."""
    typed = options.typed(name)
    if value is None or value is False:
        return f"no {typed}"
    return typed if value is True else f"{typed} {files.shown(str(value))}"
