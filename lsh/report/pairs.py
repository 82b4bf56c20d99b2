"""Pairs of documents side by side, with the words that differ marked.

Texts are compared before they are cut to excerpts, so that a word beyond the end of one excerpt still counts as common.
The common words are a longest common subsequence, computed with bit vectors (Hyyro 2004), whose time depends on the
lengths alone. Which pairs are shown is decided in `lsh.report.choice`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from lsh.base import checks
from lsh.base.wording import counted
from lsh.report.choice import Choice, Pair, removed_for
from lsh.report.measures import DeduplicationRun
from lsh.report.page import Html, element, joined, section

PAIR_LENGTH = 700  # characters of each text that are shown
CONTEXT = 120  # characters before the first difference
AROUND = 150  # characters on both sides of a run of a text
MAX_COMPARED = 5_000  # characters from there on that are compared, beside the common end of both texts
MAX_WORD = 20  # characters to go at most to the start or the end of a word

# A word, a character of a script that is written without spaces, white space, or any other character.
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+|\s+|.")


def around_the_threshold(run: DeduplicationRun, choice: Choice) -> Html:
    """Show the pairs nearest to the threshold on both sides; where nothing is verified, the removals."""
    above = _articles(run, choice.removed, "above")
    if run.verify is None:
        words = (
            f"Candidate pairs were not verified. These are the removals with the estimated similarity nearest to "
            f"{run.threshold:g}. Words that differ are marked."
        )
        return section("Removals near the threshold", element("p", words), above)
    words = (
        f"The pairs nearest to the threshold of {run.threshold:g}, each document once. Words that differ are marked; "
        "excerpts start shortly before the first difference."
    )
    return section(
        "Around the threshold",
        element("p", words),
        element("h3", "Just above the threshold: removed"),
        above,
        element("h3", "Just below the threshold: not removed for each other"),
        _articles(run, choice.near, "below", are_removals=False),
    )


def random_removals(run: DeduplicationRun, choice: Choice) -> Html:
    """Show a random sample of all removals."""
    if not choice.random:
        return Html()
    different = int((~run.result.removed["identical"]).sum())
    words = (
        f"{len(choice.random):,} of the {counted(different, 'removal')} that are not byte-identical copies, drawn at "
        "random with a fixed seed."
    )
    return section("Random removals", element("p", words), _articles(run, choice.random, "random"))


def cluster_members(run: DeduplicationRun, choice: Choice) -> Html:
    """Show members of the largest clusters beside their kept documents."""
    if not choice.members:
        return Html()
    words = "Of each cluster the least similar member and one of median similarity, beside the kept document."
    heading = element("h3", "Members of the largest clusters")
    return joined([heading, element("p", words), _articles(run, choice.members, "members")])


def _articles(run: DeduplicationRun, pairs: Iterable[Pair], name: str, are_removals: bool = True) -> Html:
    articles = [_article(run, pair, are_removals) for pair in pairs]
    return element("div", *(articles or [element("p", "None.", class_="note")]), id=name)


def _article(run: DeduplicationRun, pair: Pair, is_removal: bool) -> Html:
    """Show two documents side by side; the kept one of a removal is on the left."""
    documents = [("new", pair.first), (pair.side, pair.second)]
    if is_removal:
        documents.reverse()
    columns = []
    for (side, position), words in zip(documents, marked(*(run.side(side).readable(at) for side, at in documents))):
        fate = "removed" if is_removal and (side, position) == documents[1] else _fate(run, side, position)
        who = element("span", run.side(side).shown_id(position), " old, " if side == "old" else " ", fate, class_="who")
        columns.append((who, words))
    return side_by_side(element("span", "similarity ", element("b", f"{pair.similarity:.4f}")), columns)


def side_by_side(about: Html, sides: Iterable[tuple[Html, Html]]) -> Html:
    """Return two texts side by side, each with its name, below what is said of them."""
    columns = [element("div", who, element("bdi", words, class_="words", dir="auto")) for who, words in sides]
    return element("article", element("header", about), element("div", *columns, class_="sides"), class_="pair")


def in_groups(words: str, groups: Mapping[str, tuple[str, Sequence[Html]]]) -> Html:
    """Return pairs side by side in groups, by their titles with names and pairs; nothing if there are no pairs."""
    parts = [
        joined([element("h3", title), element("div", *pairs, id=f"pairs-{name}")])
        for title, (name, pairs) in groups.items()
        if pairs
    ]
    return section("Side by side", element("p", words), *parts) if parts else Html()


def surrounded(data: bytes, start: int, end: int, inner: Html) -> Html:
    """Return a run of a text, as `inner` shows it, with the text around it."""
    before, after = decoded_part(data[max(start - 4 * AROUND, 0) : start]), decoded_part(data[end : end + 4 * AROUND])
    parts: list[object] = ["… "] if len(before) > AROUND or start > 4 * AROUND else []
    parts += [before[-AROUND:], inner, after[:AROUND]]
    parts += [" …"] if len(after) > AROUND or end + 4 * AROUND < len(data) else []
    return joined(parts)


def decoded_part(data: bytes) -> str:
    """Return a part of a text, from the first whole character on."""
    while data and data[0] & 0xC0 == 0x80:
        data = data[1:]
    return data.decode("utf-8", "ignore")


def _fate(run: DeduplicationRun, side: str, position: int) -> Html:
    """Return whether a document was kept, or for which one it was removed."""
    kept = removed_for(run.result, side, position)
    if kept is None:
        return Html("kept")
    return joined(["removed for ", "old " if kept[0] == "old" else "", run.side(kept[0]).shown_id(kept[1])])


# ---- what differs ----


class Excerpt(NamedTuple):
    """A part of a text beside another text; see `lsh.report.excerpts`.

    Attributes
    ----------
    pieces : list of tuple
        ``(piece, differs)``: pieces of the text in order, by turns common to both texts and different.
    before : int
        The number of characters of the text before the excerpt.
    after : int
        The number of characters after it.
    """

    pieces: list[tuple[str, bool]]
    before: int
    after: int


def common_marked(a: str, b: str) -> tuple[Html, Html]:
    """Return the beginnings of two texts with the words marked that both have in the same order, in either case."""
    texts = a[:MAX_COMPARED], b[:MAX_COMPARED]
    first, second = map(WORD.findall, texts)
    found = common_words([word.lower() for word in first], [word.lower() for word in second])
    shown = []
    for text, words, common in zip((a, b), (first, second), found):
        flags = (is_common and any(map(str.isalnum, word)) for word, is_common in zip(words, common))
        pieces = _pieces([*zip(words, flags)], PAIR_LENGTH)
        shown.append(_drawn(Excerpt(pieces, 0, max(len(text) - PAIR_LENGTH, 0))))
    return shown[0], shown[1]


def marked(a: str, b: str) -> tuple[Html, Html]:
    """Return excerpts of two texts from shortly before their first difference on, with what differs marked."""
    first, second = (_drawn(excerpt) for excerpt in excerpts(a, b, PAIR_LENGTH))
    return first, second


def _drawn(excerpt: Excerpt) -> Html:
    parts: list[object] = ["… "] if excerpt.before else []
    for piece, differs in excerpt.pieces:
        parts += _mark(piece) if differs else [piece]
    if excerpt.after:
        parts.append(element("span", f" … {counted(excerpt.after, 'character')} more", class_="note"))
    return joined(parts)


def _mark(piece: str) -> list[object]:
    """Mark what differs, without the white space around it, unless that is all."""
    words = piece.strip() or piece
    before, _, after = piece.partition(words)
    return [before, element("mark", words), after]


def excerpts(a: str, b: str, length: int = PAIR_LENGTH) -> tuple[Excerpt, Excerpt]:
    """Return excerpts of two texts from shortly before their first difference on, with the words that differ.

    Parameters
    ----------
    a, b : str
        The texts.
    length : int, optional
        The most characters of an excerpt. Default 700.

    Returns
    -------
    tuple of Excerpt
        One for each text. Words are common if they are in a longest common subsequence of 5,000 characters from the
        beginning of the excerpts on, or in the common end of the texts.

    Raises
    ------
    TypeError, ValueError
        If a text is not a str, or `length` is not a whole number of 1 or more.

    Examples
    --------
    >>> import lsh
    >>> for excerpt in lsh.report.excerpts("sails on Monday. Reuter", "sails on Monday in fog. Reuter"):
    ...     print("".join(f"[{piece}]" if differs else piece for piece, differs in excerpt.pieces))
    sails on Monday. Reuter
    sails on Monday[ in fog]. Reuter
    """
    for name, text in (("a", a), ("b", b)):
        checks.instance(name, text, str, "a str")
    length = checks.whole_number("length", length, 1)
    start, end = _common_ends(a, b)
    windows = [text[start : min(len(text) - end, start + MAX_COMPARED)] for text in (a, b)]
    first, second = map(WORD.findall, windows)
    cut = []
    for text, window, words, common in zip((a, b), windows, (first, second), common_words(first, second)):
        rest = text[start + len(window) : start + length]
        pieces = _pieces([*zip(words, (not one for one in common)), (rest, False)], length)
        cut.append(Excerpt(pieces, start, max(len(text) - start - length, 0)))
    return cut[0], cut[1]


def _common_ends(a: str, b: str) -> tuple[int, int]:
    """Return where excerpts start, and how many characters at the end of both texts are the same."""
    if a == b:
        return 0, 0
    shorter = min(len(a), len(b))
    same = bisect_left(range(1, shorter + 1), True, key=lambda size: a[:size] != b[:size])
    left = range(1, shorter - same + 1)
    same_end = bisect_left(left, True, key=lambda size: a[len(a) - size :] != b[len(b) - size :])
    start, end = max(same - CONTEXT, 0), same_end
    while max(same - CONTEXT - MAX_WORD, 0) < start and not a[start - 1].isspace():
        start -= 1
    while same_end - MAX_WORD < end and (_in_word(a, len(a) - end) or _in_word(b, len(b) - end)):
        end -= 1
    return start, end


def _in_word(text: str, at: int) -> bool:
    """Return whether the characters before and after a place are of one word."""
    return 0 < at < len(text) and text[at - 1 : at + 1].isalnum()


def common_words(first: Sequence[str], second: Sequence[str]) -> tuple[list[bool], list[bool]]:
    """Return which words are in a longest common subsequence, of both texts."""
    places: defaultdict[str, int] = defaultdict(int)
    for i, word in enumerate(first):
        places[word] |= 1 << i
    row = ones = (1 << len(first)) - 1
    rows = []  # by word of `second`: bit i is 0 where word i of `first` makes the common subsequence longer
    for word in second:
        both = row & places.get(word, 0)
        row = ((row + both) | (row - both)) & ones
        rows.append(row)
    common = [False] * len(first), [False] * len(second)
    i, j = len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            i, j = i - 1, j - 1
            common[0][i] = common[1][j] = True
        elif rows[j - 1] >> (i - 1) & 1:
            i -= 1
        else:
            j -= 1
    return common


def _pieces(words: Iterable[tuple[str, bool]], length: int) -> list[tuple[str, bool]]:
    """Join words that differ, and those that do not, and cut them off at a length.

    What is common to both texts but stands between two differences and has no letter or digit counts as different.
    """
    runs = [("".join(word for word, _ in run), differs) for differs, run in groupby(words, lambda word: word[1])]
    inner = (differs or (0 < i < len(runs) - 1 and not re.search(r"\w", run)) for i, (run, differs) in enumerate(runs))
    pieces = []
    for differs, joint in groupby(zip(runs, inner), lambda run: run[1]):
        piece = "".join(run for (run, _), _ in joint)[:length]
        length -= len(piece)
        if piece:
            pieces.append((piece, differs))
    return pieces
