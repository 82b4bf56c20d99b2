"""The command line: ``lsh COMMAND``. It parses the arguments, runs a command and returns the exit code.

`COMMANDS` lists the commands, each with the function that adds its parser. Data goes to files or standard output,
messages to standard error. Exit codes: 0 done; 2 bad usage or bad input, or a file that cannot be read or written;
129 hangup; 130 interrupted; 141 broken pipe; 143 terminated.
"""

from __future__ import annotations

import argparse
import json
import platform
import signal
import sys
from collections.abc import Sequence

import numpy as np

import lsh
from lsh.base import errors, signals
from lsh.command import contained, dedup, index, pairs, passages, plan, screen, show
from lsh.terminal import console, options

SIZE_UNITS = ("K", "KB", "KIB", "M", "MB", "MIB", "G", "GB", "GIB", "T", "TB", "TIB")  # after a space, an argument
EPILOG = f"""\
example:
  lsh dedup news.tsv.gz -o unique.tsv

"lsh COMMAND --help" describes a command, with examples.

{console.EXITS}"""
VERSION = f"""\
example:
  lsh version --json

{console.EXITS}"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        with signals.ended_by_signals():
            return _run(arguments)
    except BrokenPipeError:
        return console.EXIT_PIPE  # nothing is left to flush; see console.write_data
    except signals.EndedError as ended:
        return console.fail(ended.word, ended.code)
    except KeyboardInterrupt:  # from a handler of the program that calls this function
        return console.fail("interrupted", 128 + signal.SIGINT)
    except errors.HeldMemoryError as error:
        return console.fail(error, console.EXIT_BAD)
    except MemoryError:
        return console.fail("not enough memory; set --max-memory to less than the machine has", console.EXIT_BAD)
    except (ValueError, OSError, ImportError) as error:
        return console.fail(error, console.EXIT_BAD)


def _run(arguments: Sequence[str] | None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = _parser(arguments[0] if arguments else "")
    namespace, unknown = parser.parse_known_args(arguments)
    if unknown:
        raise ValueError(_unrecognized(unknown[0], namespace.parser))
    if namespace.version:
        console.write_data(f"lsh-dedup {lsh.__version__}\n")
    elif namespace.command is None:
        parser.print_help(sys.stderr)
        return console.EXIT_BAD
    else:
        namespace.run(namespace)
    return console.EXIT_OK


def _unrecognized(argument: str, parser: argparse.ArgumentParser) -> str:
    """Return the message for an argument that the parser does not know."""
    if not argument.startswith("-"):
        remedy = "quote patterns such as 'shards/*.tsv'"
        if argument.upper() in SIZE_UNITS:
            remedy = f"write a size without a space, such as 500{argument}"
        if "--sample" in parser._option_string_actions:
            remedy = "name the files of a sample after --sample"
        return f"unexpected argument {argument!r}; {remedy}"
    name = argument.partition("=")[0]
    known = [option for action in parser._actions for option in action.option_strings]
    similar = console.closest(name, known) if name.startswith("--") else None
    return f"unrecognized option {name}; " + (f"did you mean {similar}?" if similar else f"see {parser.prog} --help")


def _parser(command: str = "") -> argparse.ArgumentParser:
    """Return the parser: with one command, if that is its name, else with all of them."""
    parser = console.Parser(
        prog="lsh",
        description="Find near-duplicate documents, repeated passages, and items within documents.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=console.Parser)
    for add_parser in [COMMANDS[command]] if command in COMMANDS else COMMANDS.values():
        add_parser(commands)
    for one in (parser, *commands.choices.values()):
        one.set_defaults(parser=one)
    return parser


def _add_version(commands: argparse._SubParsersAction[console.Parser]) -> None:
    parser = commands.add_parser(
        "version",
        help="print the versions of lsh, numpy and Python, and the instruction set in use",
        description="Print the versions of lsh, numpy and Python, and the instruction set that the kernels use.",
        epilog=VERSION,
    )
    options.add(parser, "--json")
    parser.set_defaults(run=_version)


def _version(namespace: argparse.Namespace) -> None:
    parts = {
        "lsh-dedup": lsh.__version__,
        "level": lsh.simd_level(),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "system": f"{sys.platform} {platform.machine()}",
    }
    table = "".join(f"{name:<10}  {value}\n" for name, value in parts.items())
    console.write_data(json.dumps(parts) + "\n" if namespace.json else table)


COMMANDS = {
    "dedup": dedup.add_parser,
    "pairs": pairs.add_parser,
    "passages": passages.add_parser,
    "contained": contained.add_parser,
    "show": show.add_show,
    "compare": show.add_compare,
    "plan": plan.add_parser,
    "stats": show.add_stats,
    "index": index.add_parser,
    "screen": screen.add_parser,
    "version": _add_version,
}
