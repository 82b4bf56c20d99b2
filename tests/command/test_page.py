"""The commands of pages of docs/ run and print what the page says: standard output, then standard error.

The commands of a page run one after another in a copy of the folder `examples/`. In the output, `...` stands for any
text, as in doctest. Commands other than `lsh` run in a shell; a page that has some is skipped on Windows.
"""

import doctest
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from running import lsh

REPOSITORY = Path(__file__).parents[2]
PAGES = {  # the least number of commands on each page
    "command-line": 8,
    "crawls": 15,
    "decontamination": 4,
    "files": 8,
    "one-machine": 8,
    "passages": 4,
    "scale": 1,
    "start": 5,
}
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("page", "least"), PAGES.items())
def test_the_page_shows_what_the_commands_print(tmp_path, page, least):
    folder = tmp_path / "examples"
    shutil.copytree(REPOSITORY / "examples", folder)
    count = 0
    for block in BLOCK.findall((REPOSITORY / "docs" / f"{page}.md").read_text(encoding="utf-8")):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = step.partition("\n")
            words = shlex.split(command)
            if words[0] == "lsh":
                ran = lsh(folder, *words[1:])
            elif sys.platform == "win32":
                pytest.skip(f"{words[0]} needs a shell")
            else:
                ran = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, check=False)
            got = (ran.stdout + ran.stderr).decode()
            same = doctest.OutputChecker().check_output(printed, got, doctest.ELLIPSIS)
            assert same, f"$ {command}\nexpected:\n{printed}got:\n{got}"
            assert ran.returncode == (2 if "error: " in printed else 0), command
            count += 1
    assert count >= least


JSON_COMMANDS = {
    "lsh dedup": ["sample.tsv", "--dry-run", "-q"],
    "lsh passages": ["sample.tsv", "--dry-run", "-q"],
    "lsh contained": ["questions.tsv", "sample.tsv", "--dry-run", "-q"],
    "lsh pairs": ["sample.tsv", "-q"],
    "lsh show": ["sample.tsv", "s001", "s002"],
    "lsh compare": ["sample.tsv", "sample.tsv"],
    "lsh stats": ["sample.tsv"],
    "lsh plan": [],
    "lsh index add": ["an.index", "sample.tsv", "-q"],
    "lsh index info": ["an.index"],
    "lsh version": [],
}


def test_the_page_has_the_keys_of_json(tmp_path):
    """The table lists the keys that each command prints with --json, in their order."""
    shutil.copytree(REPOSITORY / "examples", tmp_path, dirs_exist_ok=True)
    assert lsh(tmp_path, "index", "create", "an.index").returncode == 0
    page = (REPOSITORY / "docs" / "command-line.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(lsh [a-z ]+)` \| (`.*`) \|$", page.partition("## JSON")[2], re.MULTILINE))
    assert rows.keys() == JSON_COMMANDS.keys()
    for command, arguments in JSON_COMMANDS.items():
        printed = lsh(tmp_path, *command.split()[1:], *arguments, "--json").stdout.decode().splitlines()[0]
        assert list(json.loads(printed)) == re.findall("`([^`]+)`", rows[command])
