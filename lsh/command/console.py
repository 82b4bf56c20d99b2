"""What the commands print, and how they end: help, errors, progress, the cost of a run, exit codes.

Messages go to standard error, data to standard output. Nothing here knows a command or a file of documents.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from lsh import _start, files
from lsh._progress import Drawing, drawing
from lsh._words import size

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

EXIT_OK, EXIT_BAD, EXIT_PIPE = 0, 2, 141  # 128 and its number after a signal
EXITS = """\
exit codes: 0 done; 2 bad usage, bad input, or a file that cannot be read or written; 129 hangup; 130 interrupted;
141 broken pipe; 143 terminated
"""
WORDS: dict[int, str] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hangup"}
# What a person types for the parameters of the library: for those that are spelt as no other word is, and for those
# that are words of English, too, which are named as the subject of a message or with a value.
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in ("num_seeds", "num_threads", "max_memory", "on_bad_line")}
OPTIONS |= {name: f"--{name.replace('_', '-')}" for name in ("id_field", "source_field")}
WORDS_TOO = ["threshold", "recall", "bands", "encoding", "documents", "unit", "normalize", "verify", "keep", "missing"]
WORDS_TOO += ["confidence", "pattern", "field", "format"]
SUBJECTS = {"n": "--ngram", "seeds": "--num-seeds", **{name: f"--{name}" for name in WORDS_TOO}}
_NAMES = re.compile(rf"(?<![^\s(])({'|'.join(OPTIONS)})(?![\w./-])")
_SUBJECTS = re.compile(rf"^({'|'.join(SUBJECTS)})(?= (must|take|requires|are planned)\b)")
_WITH_VALUES = re.compile(rf"(?<![^\s(])({'|'.join([*OPTIONS, *SUBJECTS])})=(?=[\d.]+(?![\w./-]))")
READ_STAGES = ("fingerprints", "texts")  # of `lsh.deduplicate`, in which files are read
HELP_WIDTH = 100  # of a description


class EndedError(KeyboardInterrupt):
    """A signal asked the process to end; what cleans up after Ctrl-C does so after others, too."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number
        self.word = WORDS[number]


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise `EndedError` at the first signal that asks the process to end; the second ends it at once.

    Signals that are ignored, or handled by a program that calls `main`, are left alone. At the end the handlers are
    what they were.
    """
    previous: dict[int, Any] = {}

    def end(number: int, frame: object) -> None:
        for each in previous:
            signal.signal(each, signal.SIG_DFL)
        raise EndedError(number)

    defaults = (signal.SIG_DFL, signal.default_int_handler, _start.interrupted)
    with suppress(ValueError):  # in another thread than the main one
        for number in WORDS:
            if signal.getsignal(number) in defaults:
                previous[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class Parser(argparse.ArgumentParser):
    """Takes options by their whole names only, keeps the lines of an epilog, and prints help as data."""

    def __init__(self, *, description: str, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(description=textwrap.fill(description, HELP_WIDTH), allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Raise a ValueError, which `main` prints on one line."""
        raise ValueError(f"{message}; see {self.prog} --help")

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help, by default where data goes, so that a closed pipe is met as everywhere."""
        if file is None:
            write_data(self.format_help())
        else:
            super().print_help(file)


def check_standard_output() -> None:
    """Check that standard output is open, before any work is done for it."""
    if sys.stdout is None:
        raise OSError("standard output is closed; redirect it to a file")


def write_data(text: str) -> None:
    """Write text to standard output, through a descriptor of its own: nothing is left to flush at the end."""
    with files.Target(files.STANDARD) as target:
        target.write(text.encode("utf-8", "surrogatepass"))
        target.commit()


def decoded(identity: bytes) -> str:
    """Return an id as text: surrogates as they came in JSON, other bytes that are no UTF-8 as Python has them."""
    try:
        return identity.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return identity.decode("utf-8", "surrogateescape")


def say(line: str) -> None:
    """Write a message to standard error, over the progress line where there is one."""
    with suppress(OSError):  # a message that cannot be written is no reason to fail
        if sys.stderr is None:
            return
        sys.stderr.write(f"\r\x1b[K{line}\n" if sys.stderr.isatty() else f"{line}\n")  # in one piece
        sys.stderr.flush()


def fail(error: BaseException | str, code: int) -> int:
    """Write an error on one line and return the exit code."""
    message = _message(error)
    printable = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in message)
    say(f"lsh: error: {printable}")
    return code


def _message(error: BaseException | str) -> str:
    """Return what an error says, with options in place of the parameters of the library; names of files stay."""
    if isinstance(error, files.InputError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return (f"{error.filename}: " if error.filename else "") + _with_options(error.strerror)
    return _with_options(str(error))


def _with_options(message: str) -> str:
    options = OPTIONS | SUBJECTS
    message = _WITH_VALUES.sub(lambda match: f"{options[match[1]]} ", message)
    return _NAMES.sub(lambda match: options[match[1]], _SUBJECTS.sub(lambda match: options[match[1]], message))


# ---- progress ----


class Stream(Protocol):
    """What `Meter` asks of the files that are read; `lsh.command.inputs.TextStream` has it."""

    num_passes: int
    position: int

    @property
    def size(self) -> int: ...


class Meter:
    """Shows the progress of a run; by the bytes of its files, packed where they are, where files are read.

    Parameters
    ----------
    draw : callable or None
        Draws a stage, what is done, the total and the unit; ``None`` where nothing is shown.
    streams : sequence of Stream
        What is read, one after another.
    """

    def __init__(self, draw: Drawing | None, streams: Sequence[Stream] = ()) -> None:
        self._draw, self._streams = draw, streams
        self._state = ("", -1)

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Show what `lsh.deduplicate` reports."""
        if stage in READ_STAGES:
            self.reading(stage)
        elif self._draw is not None:
            self._draw(stage, done, total)

    def reading(self, stage: str) -> None:
        """Show how much of all files has been read in the pass over them that began last."""
        if self._draw is not None:
            latest = max(stream.num_passes for stream in self._streams)
            position = sum(stream.position for stream in self._streams if stream.num_passes == latest)
            self.bytes(stage, position, sum(stream.size for stream in self._streams))

    def bytes(self, stage: str, done: int, total: int) -> None:
        """Show how many bytes are done; what goes back, or is shown already, is passed over."""
        before, most = self._state
        if self._draw is not None and (stage != before or most < done <= total):
            self._state = stage, done
            self._draw(stage, done, total, "byte")


def progress(quiet: bool, output: str | None, streams: Sequence[Stream] = ()) -> Meter:
    """Return what shows progress: on a terminal, nowhere else.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    output : str or None
        Where the data goes: a terminal that shows data shows no progress.
    streams : sequence of Stream
        What is read.
    """
    is_shown = not quiet and sys.stderr is not None and sys.stderr.isatty()
    is_shown &= not (output == files.STANDARD and sys.stdout is not None and sys.stdout.isatty())
    return Meter(drawing() if is_shown else None, streams)


# ---- what a run cost ----


def peak_memory() -> int | None:
    """Return the most bytes of memory that the process held at once, ``None`` where the system does not tell."""
    with suppress(OSError), open("/proc/self/status", "rb") as status:  # Linux; getrusage counts its parent, too
        for line in status:
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def cost(seconds: float, num_bytes: int) -> list[str]:
    """Return the parts of the closing line that every run has: its time, its speed, its memory."""
    peak = peak_memory()
    parts = [f"{seconds:.1f} seconds", f"{num_bytes / 1e6 / max(seconds, 1e-9):.1f} MB/s"]
    return parts if peak is None else [*parts, f"peak memory {size(peak)}"]
