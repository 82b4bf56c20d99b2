"""Notebooks as pages of the site: `markdown` runs the cells, and shows what they print, return and draw.

Notebooks are stored without outputs. Those that are shown are computed when the site is built, from the sample in
examples/, in this process, so nothing of Jupyter is needed.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import logging
import os
import sys
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import figures
from matplotlib import pyplot

logging.getLogger("matplotlib").setLevel(logging.WARNING)


def markdown(path: Path) -> str:
    """Return a notebook as Markdown."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {"__name__": "__main__"}
    without_corpora = {name: value for name, value in os.environ.items() if name != "LSH_DATA"}
    parts = []
    pyplot.close("all")
    with contextlib.ExitStack() as stack:
        stack.callback(os.chdir, os.getcwd())
        os.chdir(path.parent)
        stack.enter_context(mock.patch.dict(os.environ, without_corpora, clear=True))
        stack.enter_context(mock.patch.object(sys, "path", [str(path.parent), *sys.path]))
        stack.enter_context(pyplot.rc_context(figures.STYLE))
        for cell in cells:
            source = "".join(cell["source"])
            parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
            if cell["cell_type"] == "code":
                parts += outputs(source, names)
    return "\n\n".join(parts) + "\n"


def outputs(source: str, names: dict[str, Any]) -> list[str]:
    """Run a cell; return what it prints with the value of a last expression, and its figures."""
    tree = ast.parse(source)
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*non-interactive")  # of pyplot.show
        exec(compile(tree, "<cell>", "exec"), names)
        value = None if last is None else eval(compile(last, "<cell>", "eval"), names)
    shown = printed.getvalue() + ("" if value is None else f"{value!r}\n")
    return ([f"```text\n{shown}```"] if shown else []) + [image(number) for number in pyplot.get_fignums()]


def image(number: int) -> str:
    """Return an open figure as HTML, and close it: Markdown has no images within the text."""
    file = io.BytesIO()
    figure = pyplot.figure(number)
    figure.savefig(file, format="svg", bbox_inches="tight")
    pyplot.close(figure)
    data = base64.b64encode(file.getvalue()).decode()
    return f'<p><img alt="Figure {number} of the cell" src="data:image/svg+xml;base64,{data}"></p>'
