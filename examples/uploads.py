"""Uploads to a library of papers: reject near copies, recommend what is similar, and report both to the editor.

    python uploads.py [FOLDER]

Members of the library upload papers, and others pay to read them. Nobody should pay twice for one text, so a paper that
is nearly the same as a stored one is rejected. A paper that is only similar to a stored one is welcome, and the readers
of that one are told about it. The papers are kept in an index in FOLDER, which a second run opens again; without FOLDER
the index is in a temporary folder. All papers and names are invented.
"""

from __future__ import annotations

import os
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

import lsh
from lsh.store.screen import Verdict

LENGTH = 500  # characters of a text in the report
WIDTH = 110  # characters of a line


class Paper(NamedTuple):
    """A paper as it is uploaded."""

    name: str
    member: str
    text: str


TIDES = (
    "The tides of the northern bay rise by nine metres in spring. We measured the water at eleven places along the "
    "coast for three years, and compared the measurements with a model of the sea bed. The model explains the height "
    "of the water within four centimetres, except in the two narrow sounds, where wind from the west holds the water "
    "back for up to an hour."
)
TIDES_COPIED = TIDES.replace("eleven places", "twelve places").replace("The tides of the", "THE TIDES OF THE")
SOUNDS = (
    "Wind changes the tides of the northern bay. We measured the water at eleven places along the coast for three "
    "years, and compared the measurements with a model of the sea bed. The model explains the height of the water "
    "within four centimetres, except in the two narrow sounds, where wind from the west holds the water back for up to "
    "an hour. A second model, with the wind of the day before, closes half of this gap."
)
BEES = (
    "Bees that leave their hive for the first time fly in widening circles. We followed ninety young bees with small "
    "transmitters, and found that a bee needs five such flights before it comes home from two kilometres away. Bees of "
    "hives that had been moved at night needed seven flights."
)
BREAD = (
    "Sourdough bread keeps for a week, bread with yeast for three days. We baked both from the same flour, and counted "
    "the moulds on a hundred slices each day. The acid of the dough explains the difference for white bread, but not "
    "for rye, which keeps as long with yeast."
)
PAPERS = [
    Paper("tides", "ada", TIDES),
    Paper("bees", "ben", BEES),
    Paper("tides-2", "cleo", TIDES_COPIED),
    Paper("sounds", "ada", SOUNDS),
    Paper("bread", "dai", BREAD),
    Paper("bees-final", "ben", BEES),
]
READERS = {"tides": ["eva", "finn"], "bees": ["gus"]}  # who paid to read a paper


def upload(screen: lsh.Screen, paper: Paper) -> Verdict:
    """Decide about a paper, and store it unless it is rejected."""
    verdict = screen.submit(paper.text, paper.name)
    screen.commit()  # the member is told only what is on the disk
    return verdict


def told(verdict: Verdict) -> dict[str, str]:
    """Return the readers who are told about a new paper, each with the most similar paper that they have read."""
    if verdict.decision != "similar":
        return {}
    found: dict[str, str] = {}
    for match in verdict.matches:  # the most similar first
        for reader in READERS.get(str(match.id), []):
            found.setdefault(reader, str(match.id))
    return found


# ---- the report ----

OUTCOMES = {
    "accept": "stored, nothing similar is in the library",
    "similar": "stored, and recommended to readers of similar papers",
    "reject": "rejected, as it is nearly the same as a stored paper",
}


def report(screen: lsh.Screen, paper: Paper, verdict: Verdict) -> Iterator[str]:
    """Yield the lines that the editor reads about a paper."""
    yield f"{paper.name}, uploaded by {paper.member}: {OUTCOMES[verdict.decision]}"
    for match in verdict.matches:
        low, high = match.interval
        share = f"{match.similarity:.0%}" if match.verified else f"{low:.0%} to {high:.0%} (estimated)"
        yield f"  {match.id!s}: {share} of all three-word phrases of the two papers are in both"
    for reader, name in told(verdict).items():
        yield f"  {reader}, who has read {name}, is told about {paper.name}"
    if verdict.decision == "reject":
        yield from compared(str(verdict.matches[0].id), screen.index.text_of(verdict.matches[0].id).decode(), paper)


def compared(name: str, stored: str, paper: Paper) -> Iterator[str]:
    """Yield two papers side by side, so that the editor can overrule the verdict."""
    if stored == paper.text:
        yield "  the texts are identical"
        return
    yield "  words that only one of them has are in brackets:"
    for title, excerpt in zip((name, paper.name), lsh.report.excerpts(stored, paper.text, LENGTH)):
        yield textwrap.fill(f"{title}: {marked(excerpt)}", WIDTH, initial_indent="  ", subsequent_indent="    ")


def marked(excerpt: lsh.report.Excerpt) -> str:
    """Return an excerpt with brackets around what differs."""
    parts = [f"[{piece.strip()}]" if differs and piece.strip() else piece for piece, differs in excerpt.pieces]
    return f"{'... ' if excerpt.before else ''}{''.join(parts)}{' ...' if excerpt.after else ''}"


def opened(folder: str) -> lsh.Screen:
    """Open the index of a folder, or create it."""
    if os.path.exists(os.path.join(folder, "manifest")):
        return lsh.Screen.open(folder, "a")
    return lsh.Screen.create(folder, texts="stored")


def main(folder: str) -> None:
    """Upload all papers, and print the report."""
    with opened(folder) as screen:
        for paper in PAPERS:
            for line in report(screen, paper, upload(screen, paper)):
                print(line)
        print(f"{len(screen.index)} papers in the library")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(os.path.join(temporary, "papers"))
