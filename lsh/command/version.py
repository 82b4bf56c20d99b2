"""``lsh version``: the versions of lsh, numpy and Python, and the instruction set of the kernels."""

from __future__ import annotations

import argparse
import json
import platform
import sys

import numpy as np

import lsh
from lsh.command import console, options

EPILOG = f"""\
example:
  lsh version --json

{console.EXITS}"""


def add_parser(commands: argparse._SubParsersAction[console.Parser]) -> None:
    """Add the command to the parsers of the command line."""
    parser = commands.add_parser(
        "version",
        help="print the versions of lsh, numpy and Python, and the instruction set in use",
        description="Print the versions of lsh, numpy and Python, and the instruction set that the kernels use.",
        epilog=EPILOG,
    )
    options.add(parser, "--json")
    parser.set_defaults(run=run)


def run(namespace: argparse.Namespace) -> None:
    """Run ``lsh version``."""
    parts = {
        "lsh-dedup": lsh.__version__,
        "level": lsh.simd_level(),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "system": f"{sys.platform} {platform.machine()}",
    }
    table = "".join(f"{name:<10}  {value}\n" for name, value in parts.items())
    console.write_data(json.dumps(parts) + "\n" if namespace.json else table)
