"""The commands of docs/command-line.md and docs/start.md run and print what the page says: output, then errors.

Those of a page run one after another in a copy of the folder `examples/`. In the output, `...` stands for any text, as
in doctest.
"""

import doctest
import re
import shlex
import shutil
from pathlib import Path

import pytest
from running import lsh

REPOSITORY = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def steps(block):
    """The commands of a block, each with its output."""
    for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, printed = step.partition("\n")
        yield command, printed


@pytest.mark.parametrize(("page", "least"), [("command-line", 8), ("start", 5)])
def test_the_page_shows_what_the_commands_print(tmp_path, page, least):
    folder = tmp_path / "examples"
    shutil.copytree(REPOSITORY / "examples", folder)
    count = 0
    for block in BLOCK.findall((REPOSITORY / "docs" / f"{page}.md").read_text(encoding="utf-8")):
        for command, printed in steps(block):
            words = shlex.split(command)
            assert words[0] == "lsh", command
            ran = lsh(folder, *words[1:])
            got = (ran.stdout + ran.stderr).decode()
            same = doctest.OutputChecker().check_output(printed, got, doctest.ELLIPSIS)
            assert same, f"$ {command}\nexpected:\n{printed}got:\n{got}"
            count += 1
    assert count >= least
