"""Print a command of the README: `python readme_command.py README.md 1`.

The commands are the two `sh` blocks of one line each under the heading "Two commands". .ci/run reads them here, so
that it tests exactly the commands that users are told to run.
"""

import re
import sys
from pathlib import Path

HEADING = re.compile(r"^#+ +Two commands *$", re.MULTILINE)
NEXT_HEADING = re.compile(r"^#+ ", re.MULTILINE)
FENCE = re.compile(r"^```(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(readme: str) -> list[str]:
    start = HEADING.search(readme)
    if start is None:
        raise SystemExit('the README has no heading "Two commands"')
    rest = readme[start.end() :]
    blocks = FENCE.sub(lambda block: block[0].replace("\n#", "\n "), rest)  # a comment in a block is not a heading
    end = NEXT_HEADING.search(blocks)
    found = [body.strip() for kind, body in FENCE.findall(rest[: end.start()] if end else rest) if kind.strip() == "sh"]
    if len(found) != 2 or any(len(command.splitlines()) != 1 for command in found):
        raise SystemExit(f'expected two sh blocks of one line each under "Two commands", got {found}')
    return found


if __name__ == "__main__":
    path, number = sys.argv[1:]
    print(commands(Path(path).read_text(encoding="utf-8"))[int(number) - 1])
