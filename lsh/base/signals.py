"""The start and the end of the command: whether this process is the command, its environment, and signals.

In a process of the command, Ctrl-C and other signals that ask it to end do so at once, without a traceback, while `lsh`
is imported and from the import of `lsh.command` until `lsh.command.main.main` handles signals. A program that imports
`lsh` keeps its handlers.

`ended_by_signals` handles them while a command runs. An exception of a handler can get lost: CPython drops what is
raised in a callback, such as those of its import locks. So the signal is noted, too, and `check_ended` raises the
exception again: between batches, before a file appears, and before the command ends.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # `signal` takes a millisecond, in which no handler is there
import os
import sys

TYPE_CHECKING = False  # `typing` takes longer
if TYPE_CHECKING:
    from collections.abc import Iterator
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
    try:
        os.write(2, f"lsh: error: {WORDS[number]}\n".encode())
    finally:  # also where standard error is closed
        os._exit(128 + number)


def end_on_signals() -> None:
    """Let signals end the process at once, if it is the command; those that something else handles are left alone."""
    for number, default in DEFAULTS.items() if is_command() else ():
        if signal.getsignal(number) is default:
            try:
                signal.signal(number, ended)
            except ValueError:  # in another thread than the main one
                return


if is_command():  # the BLAS of numpy would start a thread for each core, which the command does not need
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
end_on_signals()  # while `lsh` is imported; its last line restores

from contextlib import contextmanager, suppress  # noqa: E402

_noted: list[int] = []  # the signal that asked the command to end


class EndedError(KeyboardInterrupt):
    """A signal asked the process to end. It is a KeyboardInterrupt, so that files are cleaned up as after Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number
        self.word = WORDS[number]


def check_ended() -> None:
    """Raise `EndedError` if a signal has asked the command to end."""
    if _noted:
        raise EndedError(_noted[0])


def _end(number: int, frame: object) -> None:
    """Note the first signal and raise `EndedError`; at the second one end the process at once."""
    if _noted:
        os._exit(128 + number)
    _noted.append(number)
    raise EndedError(number)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise `EndedError` at the first signal that asks the process to end; the second ends it at once.

    Signals that are ignored, or that a program which calls `main` handles itself, keep their handlers. The previous
    handlers are restored at the end.
    """
    previous: dict[int, Any] = {}
    defaults = (signal.SIG_DFL, signal.default_int_handler, ended)
    shown = sys.unraisablehook
    with suppress(ValueError):  # not in the main thread
        for number in WORDS:
            if signal.getsignal(number) in defaults:
                previous[number] = signal.signal(number, _end)
    if not previous:
        yield
        return

    def show(lost: sys.UnraisableHookArgs) -> None:
        if not isinstance(lost.exc_value, EndedError):
            shown(lost)

    sys.unraisablehook = show
    try:
        yield
        check_ended()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        sys.unraisablehook = shown
        _noted.clear()


def restore() -> None:
    """Undo `end_on_signals`."""
    with suppress(ValueError):
        for number, default in DEFAULTS.items():
            if signal.getsignal(number) is ended:
                signal.signal(number, default)
