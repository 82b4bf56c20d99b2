"""A string of a JSON line is shortened where it stands, whatever escapes it is written with."""

from __future__ import annotations

import json
import random

import numpy as np
import strategies

from lsh.files.json_strings import shortened

LETTERS = 'ab"\\/\n\té語😀 {}[]:,text\ud83d'
BEFORE = (
    "",
    '"id": 1, ',
    '"q": "\\"text", ',
    '"m": {"text": "z"}, ',
    '"a": ["x"], ',
    '"text": 5, ',
    f'"n": {"9" * 5000}, ',
)
BEHIND = ("", ', "b": "text"', ', "z": {"text": 1}', ', "w": "\\n"')


def written(letter: str, draw: random.Random) -> str:
    """A character of a string as JSON may have it."""
    units = letter.encode("utf-16-be", "surrogatepass")
    escaped = "".join(f"\\u{units[i]:02x}{units[i + 1]:02X}" for i in range(0, len(units), 2))
    plain = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "/": draw.choice(["/", "\\/"]), "\ud83d": escaped}
    return draw.choice([escaped, plain.get(letter, letter), plain.get(letter, letter)])


def test_the_text_without_runs():
    draw = random.Random(1)
    for _ in range(round(4000 * strategies.SCALE)):
        letters = draw.choices(LETTERS, k=draw.randint(0, 30))
        ends = np.cumsum([0, *(len(letter.encode("utf-8", "surrogatepass")) for letter in letters)])
        places = sorted(draw.choices(range(len(letters) + 1), k=2 * draw.randint(1, 3)))
        runs = list(zip(places[::2], places[1::2]))
        strings = [written(letter, draw) for letter in letters]
        around = [draw.choice(BEFORE), draw.choice(['"text"', '"text"', '"t\\u0065xt"']), draw.choice(BEHIND)]
        line = f'{{ {around[0]}{around[1]} :  "%s"{around[2]} }}\n'
        left = [string for i, string in enumerate(strings) if not any(start <= i < end for start, end in runs)]
        found = shortened((line % "".join(strings)).encode(), "text", ends[np.array(runs)])
        assert found == (line % "".join(left)).encode()
        kept = [letter for i, letter in enumerate(letters) if not any(start <= i < end for start, end in runs)]
        assert json.loads(found, parse_int=str)["text"] == json.loads(json.dumps("".join(kept)))
