"""The command line: `lsh.command.main.main` runs it; each command is a module."""

from lsh.base import signals

signals.end_on_signals()
