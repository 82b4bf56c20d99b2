"""What the commands print, and how they end: help, errors, progress, the cost of a run, exit codes.

Messages go to standard error, data to standard output. Nothing here knows a command or a file of documents.
"""

from __future__ import annotations

import argparse
import signal
import sys
import textwrap
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from lsh import files
from lsh._words import size

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

EXIT_OK, EXIT_BAD, EXIT_INTERRUPTED, EXIT_PIPE, EXIT_TERMINATED = 0, 2, 130, 141, 143
EXITS = """\
exit codes: 0 done; 2 bad usage, bad input, or a file that cannot be read or written; 130 interrupted; 141 broken pipe;
143 terminated
"""
HELP_WIDTH = 100  # of a description


class TerminatedError(KeyboardInterrupt):
    """SIGTERM came; whatever cleans up after Ctrl-C does so now."""


def end_on_signals() -> None:
    """Let SIGTERM do what Ctrl-C does, and each of them once: no half of a file is to be left."""

    def end(number: int, frame: object) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):  # a second signal must not disturb the cleaning up
            signal.signal(each, signal.SIG_IGN)
        raise TerminatedError if number == signal.SIGTERM else KeyboardInterrupt

    defaults = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    with suppress(ValueError):  # in another thread than the main one
        for number, default in defaults.items():
            if signal.getsignal(number) == default:
                signal.signal(number, end)


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


def write_data(text: str) -> None:
    """Write text to standard output, through a descriptor of its own: nothing is left to flush at the end."""
    with files.Target(files.STANDARD) as target:
        target.write(text.encode("utf-8", "surrogatepass"))
        target.commit()


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
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


# ---- progress ----


def progress(quiet: bool, output: str | None) -> bool:
    """Tell whether progress is shown: on a terminal, nowhere else.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    output : str or None
        Where the data goes: a terminal that shows data shows no progress.
    """
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        return False
    return not (output == files.STANDARD and sys.stdout is not None and sys.stdout.isatty())


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
