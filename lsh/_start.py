"""The start of the command: whether this process is the command, its environment, and signals while its modules load.

In a process of the command, Ctrl-C and other signals that ask it to end do so at once, without a traceback, while `lsh`
is imported and from the import of `lsh.command` until `lsh.command.main.main` handles signals. A program that imports
`lsh` keeps its handlers.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import Any

WORDS: dict[int, str] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
if hasattr(signal, "SIGHUP"):  # not on Windows
    WORDS[signal.SIGHUP] = "hangup"
DEFAULTS: dict[int, Any] = {  # the handlers of a new process
    number: signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL for number in WORDS
}


def is_command() -> bool:
    """Tell whether this process is the command; of ``python -m lsh`` the name is ``-m``, then the path of a file."""
    path = sys.argv[0] if getattr(sys, "argv", None) else ""
    name = os.path.splitext(os.path.basename(path))[0]
    if name == "__main__":
        name = os.path.basename(os.path.dirname(path))
    return name in ("lsh", "lsh-dedup") or (name == "-m" and "lsh" in sys.orig_argv)


def ended(number: int, frame: object) -> None:
    """End the process as a command ends that a signal ended; nothing is written yet."""
    with suppress(OSError):
        os.write(2, f"lsh: error: {WORDS[number]}\n".encode())
    os._exit(128 + number)


def end_on_signals() -> None:
    """Let signals end the process at once, if it is the command; those that something else handles are left alone."""
    with suppress(ValueError):  # in another thread than the main one
        for number, default in DEFAULTS.items() if is_command() else ():
            if signal.getsignal(number) is default:
                signal.signal(number, ended)


def restore() -> None:
    """Undo `end_on_signals`."""
    with suppress(ValueError):
        for number, default in DEFAULTS.items():
            if signal.getsignal(number) is ended:
                signal.signal(number, default)


if is_command():  # the BLAS of numpy would start a thread for each core, which the command does not need
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
end_on_signals()  # while `lsh` is imported; its last line restores
