"""The command line: `lsh.command.main.main` runs it; each command is a module."""

from lsh import _start

_start.end_on_signals()
