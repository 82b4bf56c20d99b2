"""The start of the command: whether this process is the command, its environment, and Ctrl-C while its modules load.

In a process of the command, Ctrl-C ends the process at once, without a traceback, while `lsh` is imported and from the
import of `lsh.command` until `lsh.command.main.main` handles signals. A program that imports `lsh` keeps its handlers.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress


def is_command() -> bool:
    """Tell whether this process is the command; while ``python -m`` looks for a program, its name is ``-m``."""
    name = os.path.splitext(os.path.basename(sys.argv[0] if getattr(sys, "argv", None) else ""))[0]
    return name in ("lsh", "lsh-dedup") or (name == "-m" and "lsh" in sys.orig_argv)


def interrupted(number: int, frame: object) -> None:
    """End the process as an interrupted command ends; nothing is written yet."""
    with suppress(OSError):
        os.write(2, b"lsh: error: interrupted\n")
    os._exit(130)


def end_on_interrupt() -> None:
    """Let Ctrl-C end the process at once, if it is the command and nothing else handles Ctrl-C."""
    if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        with suppress(ValueError):  # in another thread than the main one
            signal.signal(signal.SIGINT, interrupted)


def restore() -> None:
    """Undo `end_on_interrupt`."""
    if signal.getsignal(signal.SIGINT) is interrupted:
        with suppress(ValueError):
            signal.signal(signal.SIGINT, signal.default_int_handler)


if is_command():  # the BLAS of numpy would start a thread for each core, which the command does not need
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
end_on_interrupt()  # while `lsh` is imported; its last line restores
