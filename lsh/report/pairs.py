"""The pairs nearest to the threshold, side by side, with the words that differ marked."""

from __future__ import annotations

import re
from bisect import bisect_left
from difflib import SequenceMatcher

from lsh._words import counted
from lsh.report.choice import Choice, Pair
from lsh.report.measures import DeduplicationRun
from lsh.report.page import Html, element, joined

PAIR_LENGTH = 700  # characters of each text
CONTEXT = 120  # characters before the first difference

# A word, a character of a script that is written without spaces, white space, or any other character.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+|\s+|.")


def around_the_threshold(run: DeduplicationRun, choice: Choice) -> Html:
    """Show the pairs nearest to the threshold on both sides; where nothing is verified, the removals."""
    removed = [_article(run, pair, was_removed=True) for pair in choice.removed]
    near = [_article(run, pair, was_removed=False) for pair in choice.near]
    none = element("p", "None.", class_="note")
    excerpts = "from a little before their first difference, each document once. Words that differ are marked."
    above = element("div", *(removed or [none]), id="above")
    if run.verify is None:
        words = f"Nothing is verified here. The removals nearest to {run.threshold:g}, {excerpts}"
        return joined([element("h2", "Some removals"), element("p", words), above])
    words = f"Where the line is drawn: the pairs nearest to {run.threshold:g} on both sides, {excerpts}"
    return joined(
        [
            element("h2", "Around the threshold"),
            element("p", words),
            element("h3", "Nearest from above: removed"),
            above,
            element("h3", "Nearest from below: no reason to remove"),
            element("div", *(near or [none]), id="below"),
        ]
    )


def _article(run: DeduplicationRun, pair: Pair, was_removed: bool) -> Html:
    """Show two documents side by side; the kept one of a removal is on the left."""
    if was_removed:
        documents = [(pair.side, pair.second, "kept"), ("new", pair.first, "removed")]
    else:
        documents = [("new", pair.first, ""), (pair.side, pair.second, "")]
    texts = [run.side(side).readable(position) for side, position, _ in documents]
    columns = []
    for (side, position, fate), words in zip(documents, marked(*texts)):
        notes = ", ".join(filter(None, ["old" if side == "old" else "", fate]))
        who = element("span", run.side(side).shown_id(position), f" {notes}" if notes else "", class_="who")
        columns.append(element("div", who, element("bdi", words, class_="words", dir="auto")))
    return element(
        "article",
        element("header", element("span", "similarity ", element("b", f"{pair.similarity:.4f}"))),
        element("div", *columns, class_="sides"),
        class_="pair",
    )


def marked(a: str, b: str) -> tuple[Html, Html]:
    """Return excerpts of two texts from a little before their first difference on, with what differs marked."""
    same = bisect_left(range(1, min(len(a), len(b)) + 1), True, key=lambda length: a[:length] != b[:length])
    start = max(same - CONTEXT, 0)
    while 0 < start < same and not a[start - 1].isspace() and start > same - CONTEXT - 20:
        start -= 1
    first, second = (_WORD.findall(text[start : start + PAIR_LENGTH]) for text in (a, b))
    codes = SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
    shown = []
    for words, text, right in ((first, a, False), (second, b, True)):
        parts: list[object] = ["… "] if start else []
        for tag, i, i_end, j, j_end in codes:
            piece = "".join(words[j:j_end] if right else words[i:i_end])
            parts += [piece] if tag == "equal" else _mark(piece)
        more = len(text) - start - PAIR_LENGTH
        parts.append(element("span", f" … {counted(more, 'character')} more", class_="note") if more > 0 else "")
        shown.append(joined(parts))
    return shown[0], shown[1]


def _mark(piece: str) -> list[object]:
    """Mark what differs, without the white space around it, unless that is all."""
    words = piece.strip() or piece
    before, _, after = piece.partition(words) if words else ("", "", "")
    return [before, element("mark", words), after] if words else []
