"""The start of the command: whether this process is the command, and Ctrl-C while its modules load.

It is imported before every other module of the package. Only in a process of the command does it change anything:
there Ctrl-C ends the process at once, without a traceback, until `lsh.command.main.main` handles signals.
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


if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    with suppress(ValueError):  # in another thread than the main one
        signal.signal(signal.SIGINT, interrupted)
