"""A corpus of pages with planted passages, and what a tool that cuts repeated passages does to it.

The pages have sentences of Reuters-21578 in random order, each of at most 120 bytes, so that few runs of 200 bytes
recur by themselves. Passages are planted: runs of articles2500 and of random words, 200 to 5,000 bytes long, each in 2
to 1,000 pages (both log-uniform). Half of them are paragraphs of their own; the others stand inside a paragraph,
between any two words. A footer of 300 bytes ends every page. The corpus is the same on each machine.

What recurs is found by hashing all windows of 200 bytes, without the library.
"""

from __future__ import annotations

import math
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import corpora
import harness

Array = NDArray[Any]
WINDOW = 200
LENGTHS, COPIES, PAGE, FOOTER = (200, 5000), (2, 1000), (1000, 8000), 300
PASSAGES_PER_MB = 1.2
LONGEST_SENTENCE = 120
KINDS = ("inside", "paragraph", "footer")


@dataclass(frozen=True)
class Pages:
    """The corpus: its pages one after the other, where each begins, and the planted copies."""

    data: bytes
    starts: Array  # of each page, and the end of the last one
    planted: Array  # rows of passage, start and end in `data`
    kinds: list[str]  # of each passage

    def texts(self) -> Iterator[str]:
        """Yield the text of each page."""
        for start, end in pairwise(self.starts.tolist()):
            yield self.data[start:end].decode("ascii")


def log_uniform(draw: random.Random, bounds: tuple[int, int]) -> int:
    return round(math.exp(math.log(bounds[0]) + draw.random() * math.log(bounds[1] / bounds[0])))


def below(draw: random.Random, bound: int) -> int:
    return int(draw.random() * bound)


def random_words(draw: random.Random, size: int) -> bytes:
    """Return sentences of random words, `size` bytes."""
    words, made = corpora.vocabulary(), b""
    while len(made) < size:
        sentence = b" ".join(words[below(draw, len(words))] for _ in range(6 + below(draw, 12)))
        made += sentence.capitalize() + b". "
    return made[: size - 1] + b"."


def passages(draw: random.Random, count: int) -> list[bytes]:
    """Return the passages to plant and the footer; no window of 200 bytes occurs twice in them."""
    articles, at = b" ".join(b" ".join(corpora.news_texts("articles2500.tsv.gz")).split()), 0
    articles = articles.decode("utf-8").encode("ascii", "replace")
    again = repeated(articles, np.array([0, len(articles)]))
    made: list[bytes] = []
    for i in range(count):
        size = log_uniform(draw, LENGTHS)
        if i % 2:
            made.append(random_words(draw, size))
        else:
            while again[at : at + size].any():
                at += size
            made.append(articles[at : at + size].strip().ljust(size, b"."))
            at += size + below(draw, len(articles) // count)
    made.append(random_words(draw, FOOTER))
    starts = np.cumsum([0, *map(len, made)])
    harness.must(not repeated(b"".join(made), starts).any(), "planted passages have common windows")
    return made


def page(draw: random.Random, sentences: list[bytes], inside: list[tuple[int, bytes]]) -> list[list[tuple[int, bytes]]]:
    """Return the paragraphs of a page as pieces, with the number of the passage or -1, and plant passages in them."""
    size, paragraphs, total = log_uniform(draw, PAGE), [], 0
    while total < size:
        text = b" ".join(sentences[below(draw, len(sentences))] for _ in range(3 + below(draw, 5)))
        paragraphs.append([(-1, text)])
        total += len(text)
    for passage in inside:
        pieces = paragraphs[below(draw, len(paragraphs))]
        number = max((i for i, piece in enumerate(pieces) if piece[0] < 0), key=lambda i: len(pieces[i][1]))
        text = pieces[number][1]
        spaces = [found.start() for found in re.finditer(rb"(?<=\S) (?=\S)", text)]
        cut = spaces[below(draw, len(spaces))]
        pieces[number : number + 1] = [(-1, text[: cut + 1]), passage, (-1, text[cut:])]
    return paragraphs


def make_pages(size: int) -> Pages:
    """Make a corpus of about `size` bytes."""
    draw = random.Random(20250301)
    sentences = list(dict.fromkeys(s for s in corpora.sentences() if 20 <= len(s) <= LONGEST_SENTENCE and s.isascii()))
    sentences = [s for s in (b" ".join(s.split()) for s in sentences) if b" " in s]
    planted = passages(draw, round(size / 1e6 * PASSAGES_PER_MB))
    kinds = [KINDS[i // 2 % 2] for i in range(len(planted) - 1)] + ["footer"]
    copies = [log_uniform(draw, COPIES) for _ in planted[:-1]]
    mean = (PAGE[1] - PAGE[0]) / math.log(PAGE[1] / PAGE[0]) + FOOTER + 200  # a page ends with its last paragraph
    count = round((size - sum(n * len(text) for n, text in zip(copies, planted))) / mean)
    of_page: list[list[int]] = [[] for _ in range(count)]
    for number, most in enumerate(copies):
        chosen: set[int] = set()
        while len(chosen) < min(most, count):
            chosen.add(below(draw, count))
        for i in sorted(chosen):
            of_page[i].append(number)
    data, starts, rows = bytearray(), [0], []
    for numbers in of_page:
        paragraphs = page(draw, sentences, [(i, planted[i]) for i in numbers if kinds[i] == "inside"])
        for i in numbers:
            if kinds[i] == "paragraph":
                paragraphs.insert(below(draw, len(paragraphs) + 1), [(i, planted[i])])
        paragraphs.append([(len(planted) - 1, planted[-1])])
        for number, pieces in enumerate(paragraphs):
            data += b"\n\n" if number else b""
            for passage, text in pieces:
                if passage >= 0:
                    rows.append((passage, len(data), len(data) + len(text)))
                data += text
        starts.append(len(data))
    return Pages(bytes(data), np.array(starts), np.array(rows), kinds)


def window_hashes(values: Array) -> Array:
    """Return a hash of each run of WINDOW bytes: a polynomial modulo 2^64 over random numbers for the bytes."""
    table = np.frombuffer(random.Random(1).randbytes(2048), np.uint64)
    base, width, hashes, total, done = 0x9E3779B97F4A7C15, 1, table[values], None, 0
    while True:  # hashes of 1, 2, 4, ... bytes; those whose bit is set in WINDOW are put one after the other
        if WINDOW & width:
            size = len(values) - done - width + 1
            part = hashes[done : done + size]
            total = part if total is None else total[:size] * np.uint64(pow(base, width, 1 << 64)) + part
            done += width
        if width * 2 > WINDOW:
            break
        hashes = hashes[:-width] * np.uint64(pow(base, width, 1 << 64)) + hashes[width:]
        width *= 2
    assert total is not None
    return total * np.uint64(0xD6E8FEB86659FD93)


def repeated(data: bytes, starts: Array) -> Array:
    """Return which bytes lie in a run of WINDOW bytes, within one of the texts, that occurs more than once."""
    values = np.frombuffer(data, np.uint8)
    count, step = len(values) - WINDOW + 1, 1 << 23
    hashes = np.empty(count, np.uint64)
    for at in range(0, count, step):
        hashes[at : at + step] = window_hashes(values[at : at + step + WINDOW - 1])
    valid = np.ones(len(values) + 1, bool)
    for back in range(1, WINDOW):
        valid[np.maximum(starts[1:] - back, starts[:-1])] = False
    changes = np.zeros(len(values) + 1, np.int32)
    for part in range(16):
        chosen = np.flatnonzero((hashes >> np.uint64(60) == part) & valid[:count])
        chosen = chosen[np.argsort(hashes[chosen])]
        same = hashes[chosen[1:]] == hashes[chosen[:-1]]
        again = chosen[np.append(same, False) | np.append(False, same)]
        np.add.at(changes, again, 1)
        np.add.at(changes, again + WINDOW, -1)
    return np.cumsum(changes[:-1]) > 0


def judged(pages: Pages, cut: Array, recurs: Array) -> dict[str, Any]:
    """Compare what was cut with the planted copies and with all that recurs."""
    sums = np.append(0, np.cumsum(cut))
    extra, gone = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
    lost = lost_bytes = 0
    for number, kind in enumerate(pages.kinds):
        rows = pages.planted[pages.planted[:, 0] == number]
        sizes, of_row = rows[:, 2] - rows[:, 1], sums[rows[:, 2]] - sums[rows[:, 1]]
        extra[kind] += int(sizes[0]) * (len(rows) - 1)
        gone[kind] += int(of_row.sum() - of_row.min())  # one copy may stay: the one of which most is left
        nowhere = np.ones(sizes[0], bool)
        for _, start, end in rows.tolist():
            nowhere &= cut[start:end]
        lost += bool(nowhere.all())
        lost_bytes += int(nowhere.sum())
    space = np.isin(np.frombuffer(pages.data, np.uint8), np.frombuffer(b" \n", np.uint8))
    wrong = int((cut & ~recurs & ~space).sum())
    return {
        "cut_bytes": int(cut.sum()),
        "share_of_extra_copies_cut": {kind: gone[kind] / max(extra[kind], 1) for kind in KINDS},
        "passages_lost": lost,
        "passage_bytes_left_nowhere": lost_bytes,
        "wrongly_cut_bytes": wrong,
    }
