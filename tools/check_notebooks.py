#!/usr/bin/env python3
"""Run the notebooks of `examples/`: `python tools/check_notebooks.py [--corpora] [NAME...]`.

The cells run one after another in a new process, on the sample or, with `--corpora`, on the corpora of LSH_DATA; those
with `assert` check the figures of the text. The part of `ads` that runs Spark must run if pyspark is installed.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import checks

EXAMPLES = checks.ROOT / "examples"
RUN = """
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    cells = json.load(file)["cells"]
for cell in cells:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), cell["id"], "exec"), globals())
"""


def main(arguments: list[str]) -> int:
    """Run the notebooks that are named, or all; return the exit code."""
    wanted = [one for one in arguments if one != "--corpora"]
    folder = str(checks.data_folder()) if "--corpora" in arguments else ""
    variables = {**os.environ, "MPLBACKEND": "Agg", "LSH_DATA": folder, "PYSPARK_PYTHON": sys.executable}
    failed = 0
    for path in sorted(EXAMPLES.glob("*.ipynb")):
        if wanted and path.stem not in wanted:
            continue
        command = [sys.executable, "-c", RUN, str(path)]
        ran = subprocess.run(command, cwd=EXAMPLES, env=variables, capture_output=True, text=True, check=False)
        without_spark = path.stem == "ads" and "kept by Spark" not in ran.stdout
        if ran.returncode or (without_spark and importlib.util.find_spec("pyspark")):
            print(ran.stdout, ran.stderr, f"FAILED {path.name}", sep="\n", flush=True)
            failed += 1
        else:
            print(f"passed {path.name}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
