"""Help, errors, progress, signals, exit codes, time and memory of a run: what all commands have in common.

Messages go to standard error, data to standard output. This module knows neither commands nor formats of files.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from lsh import files
from lsh.base import signals
from lsh.base.errors import Parameter, Words, message, words_of
from lsh.base.progress import SHARES, Drawing, Line, drawing
from lsh.base.wording import counted, size

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

EXIT_OK, EXIT_BAD, EXIT_PIPE = 0, 2, 141  # after a signal: 128 + its number
EXITS = """\
exit codes: 0 done; 2 bad usage, bad input, or a file that cannot be read or written; 129 hangup; 130 interrupted;
141 broken pipe; 143 terminated
"""
# The parameters of the library that are options with the same names, those that have others, and arguments.
SAME_NAMES = ["bands", "bytes", "confidence", "delimiter", "documents", "encoding", "field", "format", "header", "keep"]
SAME_NAMES += ["id_field", "keep_field", "max_memory", "min_similarity", "missing", "normalize", "num_seeds", "pattern"]
SAME_NAMES += ["num_threads", "on_bad_line", "random_state", "recall", "recommend", "reject", "removed", "source_field"]
SAME_NAMES += ["item_delimiter", "item_field", "item_id_field", "max_share", "min_bytes", "min_shared", "temp_dir"]
SAME_NAMES += ["threshold", "time_field", "top", "unit", "verify", "window"]
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in SAME_NAMES}
OPTIONS |= {"n": "--ngram", "seeds": "--num-seeds", "added": "--mark", "copies": "--add-copies"}
OPTIONS |= {name: name.upper() for name in ("input", "other", "output")}
_PLAIN = re.compile(r"[\w./-]+")  # a value that needs no quotes in a shell
MIN_LIKENESS = 0.75  # difflib ratio of an unknown option, command or choice and the one that is suggested
_NEGATIVE = re.compile(r"-[.\d]")  # the start of a value, not of an option
MIN_SECONDS = 0.1  # of a run that has a speed
READ_STAGES = ("fingerprints", "passages", "texts", "counting", "searching")  # of the library, in which files are read
LOG_INTERVAL = 30.0  # seconds between two lines of progress that are not on a terminal
HELP_WIDTH = 100  # of a description


def _number(text: str) -> float:
    """Parse a number, for options with ``type=float``."""
    with suppress(ValueError):
        return float(text)
    with suppress(ValueError):
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}; write {float(text.replace(',', '.')):g}")
    raise argparse.ArgumentTypeError(f"expected a number, got {text!r}")


def closest(name: str, known: Sequence[str]) -> str | None:
    """Return the known name that is most similar to a misspelt one, ``None`` if none is."""
    return next(iter(difflib.get_close_matches(name, known, 1, MIN_LIKENESS)), None)


class Parser(argparse.ArgumentParser):
    """Accepts whole names of options only, keeps the line breaks of an epilog, and prints help to standard output."""

    def __init__(self, *, description: str, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(description=textwrap.fill(description, HELP_WIDTH), allow_abbrev=False, **options)
        self._negative_number_matcher = _NEGATIVE  # `--max-memory -4GB` has a value, and it is wrong
        self.register("type", float, _number)

    def error(self, message: str) -> NoReturn:
        """Raise a ValueError, which `main` prints on one line."""
        raise ValueError(f"{message}; see {self.prog} --help")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise ArgumentError for a choice that is unknown, with one that is similar."""
        if action.choices is not None and value not in action.choices:
            known = list(map(str, action.choices))
            close = closest(str(value), known)
            remedy = f"choose from {', '.join(known)}" if close is None else f"did you mean {close}?"
            raise argparse.ArgumentError(action, f"invalid choice {value!r}; {remedy}")

    def _match_arguments_partial(self, actions: Sequence[argparse.Action], arg_strings_pattern: str) -> list[int]:
        """Match arguments before the next option. As in Python 3.12.7 and later, one that may be missing can follow it:
        else ``lsh screen INDEX -o FILE INPUT`` is an error.
        """
        counts = super()._match_arguments_partial(actions, arg_strings_pattern)
        while counts and not counts[-1] and arg_strings_pattern[sum(counts) :].startswith("O"):
            del counts[-1]
        return counts

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help; by default as data, so that a broken pipe ends it as it ends other output."""
        if file is None:
            write_data(self.format_help())
        else:
            super().print_help(file)


def check_standard_output() -> None:
    """Raise OSError if standard output is closed; to be called before the work."""
    if sys.stdout is None:
        raise OSError("standard output is closed; redirect it to a file")


def write_data(text: str) -> None:
    """Write text to standard output through a duplicate of its descriptor, so that nothing is left to flush at exit.

    A stream without a descriptor, such as that of a notebook, is written to as it is; so is the console of Windows,
    which does not show UTF-8.
    """
    try:
        sys.stdout.fileno()
        is_stream_only = os.name == "nt" and sys.stdout.isatty()
    except (AttributeError, OSError):
        is_stream_only = True
    if is_stream_only:
        sys.stdout.write(text.encode("utf-8", "replace").decode() if os.name == "nt" else text)
        return
    with files.Target(files.STANDARD) as target:
        target.write(text.encode("utf-8", "surrogatepass"))
        target.commit()


def visible(text: str, allowed: str = "") -> str:
    """Return a text with escapes in place of control characters, which a terminal would obey; some may be allowed."""
    return "".join(c if c.isprintable() or c in allowed else ascii(c)[1:-1] for c in text)


def worded(words: Words) -> str:
    """Return words of the library with the options in place of its parameters."""
    return message(words).worded(_option)


def _option(parameter: Parameter) -> str:
    """Return an option and, if there is one, its value as it is typed in a shell."""
    name, value = OPTIONS.get(parameter.name), parameter.value
    if name is None:
        return str(parameter)
    if value is False:
        return f"--no-{name.removeprefix('--')}"
    if value is None or value is True:
        return name
    typed = f"{value:g}" if isinstance(value, float) else "tab" if value == "\t" else str(value)
    quoted = shlex.quote(typed) if "'" in typed else f"'{typed}'"
    return f"{name} {typed if _PLAIN.fullmatch(typed) else quoted}"


def say(words: Words) -> None:
    """Write a message to standard error, in place of the progress line if there is one."""
    with suppress(OSError):  # a run does not fail because a message cannot be written
        if sys.stderr is None:
            return
        line = files.shown_in(visible(worded(words), "\n"))
        sys.stderr.write(f"\r\x1b[K{line}\n" if sys.stderr.isatty() else f"{line}\n")  # in one piece
        sys.stderr.flush()


def fail(error: BaseException | str, code: int) -> int:
    """Write an error on one line, the last one, and return the exit code."""
    while _drawn:
        with suppress(Exception):  # a closed or full stream
            _drawn.pop().close()
    say(f"lsh: error: {visible(_message(error))}")
    return code


def _message(error: BaseException | str) -> str:
    """Return the message of an error, with options in place of parameters of the library."""
    if isinstance(error, str):
        return error
    words = words_of(error)
    if isinstance(error, OSError) and error.strerror:
        return (f"{error.filename}: " if error.filename else "") + worded(words)
    return worded(words)


# ---- progress ----


class Stream(Protocol):
    """Files that are read, for `Meter`; such as a `lsh.terminal.inputs.TextStream`."""

    num_passes: int
    position: int

    @property
    def size(self) -> int: ...


class Meter:
    """Shows the progress of a run. Stages that read files are measured in bytes of the files as they are on disk.

    Parameters
    ----------
    draw : callable or None
        Called with stage, done, total and unit; ``None`` to show nothing.
    streams : sequence of Stream
        The files, in the order in which they are read.
    """

    def __init__(self, draw: Drawing | None, streams: Sequence[Stream] = ()) -> None:
        self._draw, self._streams = draw, streams
        self._state = ("", -1)

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Show the progress that the library reports, unless a signal has asked the command to end."""
        signals.check_ended()
        if stage in READ_STAGES:
            self.reading(stage)
        elif self._draw is not None:
            self._draw(stage, done, total)

    def reading(self, stage: str) -> None:
        """Show how much of all files has been read in the latest pass over them."""
        if self._draw is not None and self._streams:
            latest = max(stream.num_passes for stream in self._streams)
            position = sum(stream.position for stream in self._streams if stream.num_passes == latest)
            self.bytes(stage, position, sum(stream.size for stream in self._streams))

    def bytes(self, stage: str, done: int, total: int) -> None:
        """Show how many bytes are done, unless as many or more were shown for the stage before."""
        signals.check_ended()
        before, furthest = self._state
        if self._draw is not None and (stage != before or furthest < done <= total):
            self._state = stage, done
            self._draw(stage, done, total, "byte")


_drawn: list[Drawing] = []  # what shows the progress of this run; it is closed before an error is printed


def progress(
    quiet: bool,
    output: str | None,
    streams: Sequence[Stream] = (),
    verbose: bool = False,
    later: Mapping[str, float] | None = None,
    shares: Mapping[str, float] = SHARES,
) -> Meter:
    """Return what shows progress: on a terminal, and elsewhere by a line from time to time if the run is verbose.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    output : str or None
        The output file; if it is standard output and a terminal, no progress is shown.
    streams : sequence of Stream
        The files that are read.
    verbose : bool, optional
        Print a line each `LOG_INTERVAL` seconds where standard error is not a terminal.
    later : mapping of str to float, optional
        The stages after those of the library, and their time relative to its first one.
    shares : mapping of str to float, optional
        The stages of the library, and their time. Default: those of `lsh.deduplicate`.
    """
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    is_shown = not quiet and not (output == files.STANDARD and sys.stdout is not None and sys.stdout.isatty())
    _drawn.clear()
    if is_shown and (is_terminal or verbose):
        shares = {**shares, **(later or {})}
        _drawn.append(drawing(shares) if is_terminal else Line(LOG_INTERVAL, shares))
    return Meter(_drawn[0] if _drawn else None, streams)


# ---- time and memory ----


def peak_memory() -> int | None:
    """Return the peak resident memory of the process in bytes, ``None`` where the system does not report it."""
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


def left_out(skipped: int, hidden: int = 0) -> list[str]:
    """Return for a summary line how many bad lines were skipped, and how many hidden files were not read."""
    parts = [f"{counted(skipped, 'bad line')} skipped"] if skipped else []
    return parts + ([f"{counted(hidden, 'hidden file')} not read"] if hidden else [])


def cost(seconds: float, num_bytes: int, counted_seconds: float | None = None, note: str = "") -> list[str]:
    """Return time, speed and peak memory of a run for its summary line; the speed may count a part of the time.

    A run of less than `MIN_SECONDS` has no speed.
    """
    peak = peak_memory()
    counted = seconds if counted_seconds is None else counted_seconds
    parts = [f"{seconds:.1f} seconds"]
    parts += [f"{num_bytes / 1e6 / counted:.1f} MB/s{note}"] if counted >= MIN_SECONDS else []
    return parts if peak is None else [*parts, f"peak memory {size(peak)}"]
