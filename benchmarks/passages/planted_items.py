"""A corpus of pages with planted items, and which item is in which page by the definition, in plain Python.

The pages have sentences of Reuters-21578 in random order, as those of planted_pages.py. The items are runs of words of
articles2500, 8 to 300 words long (log-uniform); no two have eight words in a row in common. Each is planted in four
pages of its own: whole, and with 3, 6 and 10 % of its words replaced by words of the sentences, at least one. Such a
page is 1 to 100 times as long as its item (log-uniform). In every second page the item is a paragraph of its own; in
the others it stands between any two words. All is ASCII. The corpus is the same on each machine.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import corpora
import harness
from planted_pages import LONGEST_SENTENCE, Array, below, log_uniform

CHANGED = (0.0, 0.03, 0.06, 0.1)  # shares of the words
WORDS, TIMES, PAGE = (8, 300), (1, 100), (500, 4000)  # of an item; of a page by its item; bytes of other pages
COMMON = 8  # words that no two items have in common, in a row

# The definition: shingles of three words in lower case without punctuation, windows of twice the length.
N, WINDOW = 3, 2
PUNCTUATION = "!\"#%&'()*,-./:;?@[\\]_{}"  # the ASCII characters of the categories P
WORD = re.compile(f"[a-z0-9](?:[a-z0-9{re.escape(PUNCTUATION)}]*[a-z0-9])?")
NO_PUNCTUATION = str.maketrans("", "", PUNCTUATION)
Run = tuple[str, ...]


@dataclass(frozen=True)
class Planted:
    """The corpus: its items, its pages one after the other, where each begins, and the planted copies."""

    items: list[str]
    data: bytes
    starts: Array  # of each page, and the end of the last one
    copies: Array  # rows of page, item, place in CHANGED, start and end in the page; by page

    @cached_property
    def pages(self) -> list[bytes]:
        return [self.data[start:end] for start, end in pairwise(self.starts.tolist())]

    def subset(self, num_items: int, num_others: int) -> Planted:
        """Return the pages of the first items, and the first of the pages that have no item; and all items."""
        copies = self.copies[self.copies[:, 1] < num_items].copy()
        others = np.setdiff1d(np.arange(len(self.starts) - 1), self.copies[:, 0])
        chosen = np.union1d(copies[:, 0], others[:num_others])
        copies[:, 0] = np.searchsorted(chosen, copies[:, 0])
        pages = [self.pages[i] for i in chosen.tolist()]
        return Planted(self.items, b"".join(pages), np.cumsum([0, *map(len, pages)]), copies)


def sentences() -> list[str]:
    """Return the sentences of the pages."""
    found = dict.fromkeys(b" ".join(s.split()) for s in corpora.sentences() if s.isascii())
    return [s.decode("ascii") for s in found if 20 <= len(s) <= LONGEST_SENTENCE and b" " in s]


def article_words() -> list[str]:
    """Return the words of the articles, without those that are an edited copy of another one, in their order."""
    folder, found = harness.data_folder(), harness.corpus("articles2500.tsv.gz")
    if folder is None or found is None:
        raise FileNotFoundError("this corpus needs articles2500.tsv.gz; set LSH_DATA to the folder that holds it")
    copies = {pair[1].decode() for pair in harness.rows(folder / "articles2500_pairs.tsv.gz")}
    texts = [text for name, text in zip(found.ids, found.texts) if name not in copies and text.isascii()]
    return b" ".join(texts).decode("ascii").split()


def other_word(draw: random.Random, word: str, known: Sequence[str]) -> str:
    """Return another word of the sentences, with letters or digits."""
    while True:
        words = known[below(draw, len(known))].split()
        found = words[below(draw, len(words))]
        if units(found) and [one for one, _, _ in units(found)] != [one for one, _, _ in units(word)]:
            return found


def changed(draw: random.Random, words: list[str], share: float, known: Sequence[str]) -> list[str]:
    """Replace a share of the words, at least one."""
    made, places = list(words), set[int]()
    while len(places) < max(1, round(share * len(words))):
        places.add(below(draw, len(words)))
    for place in sorted(places):
        made[place] = other_word(draw, made[place], known)
    return made


def page_words(draw: random.Random, count: int, known: Sequence[str]) -> list[str]:
    """Return `count` words of random sentences."""
    words: list[str] = []
    while len(words) < count:
        words += known[below(draw, len(known))].split()
    return words[:count]


def make_corpus(num_pages: int = 100_000, num_items: int = 1000) -> Planted:
    """Make a corpus with so many pages that have no item."""
    draw = random.Random(20260601)
    known, words = sentences(), article_words()
    items, planted, seen = [], [], set[Run]()
    for i in range(num_items):
        size = log_uniform(draw, WORDS)
        while True:
            begin = below(draw, len(words) - size + 1)
            item = words[begin : begin + size]
            if seen.isdisjoint(found := runs(" ".join(item), COMMON)):
                break
        seen.update(found)
        items.append(" ".join(item))
        for version, share in enumerate(CHANGED):
            text = " ".join(changed(draw, item, share, known) if share else item)
            around = page_words(draw, round(size * (TIMES[1] ** draw.random() - 1)), known)
            cut = below(draw, len(around) + 1)
            between = "\n\n" if (i + version) % 2 else " "
            before = " ".join(around[:cut]) + between if cut else ""
            after = between + " ".join(around[cut:]) if cut < len(around) else ""
            planted.append((before + text + after, i, version, len(before), len(before) + len(text)))
    places = set[int]()
    while len(places) < len(planted):
        places.add(below(draw, num_pages + len(planted)))
    draw.shuffle(planted)
    of_page = dict(zip(sorted(places), planted))
    data, starts, copies = bytearray(), [0], []
    for number in range(num_pages + len(planted)):
        if number in of_page:
            text, *row = of_page[number]
            copies.append((number, *row))
        else:
            text, size = "", log_uniform(draw, PAGE)
            while len(text) < size:
                text += known[below(draw, len(known))] + ("\n\n" if below(draw, 5) == 0 else " ")
        data += text.encode("ascii")
        starts.append(len(data))
    return Planted(items, bytes(data), np.array(starts), np.array(copies))


# ---- the definition in plain Python ----


def units(text: str) -> list[tuple[str, int, int]]:
    """Return the words of an ASCII text in lower case without punctuation, and where they begin and end."""
    return [(f.group().translate(NO_PUNCTUATION), f.start(), f.end()) for f in WORD.finditer(text.lower())]


def runs(text: str, n: int = N) -> list[Run]:
    """Return the shingles of an ASCII text in order."""
    words = [word for word, _, _ in units(text)]
    return list(zip(*(words[i:] for i in range(n))))


def best_window(own: set[Run], longest: int, text: str) -> tuple[int, int, int]:
    """Return how many shingles of `own` the best window of a text has, and where it begins and ends.

    Of the windows of at most `longest` words: one with most shingles, of these the shortest, of these the first.
    """
    words = units(text)
    found = runs(text)
    there = [i for i, run in enumerate(found) if run in own]
    best, place = (0, 0), (0, 0)
    for number, first in enumerate(there):
        seen: set[Run] = set()
        for last in there[number:]:
            length = last + N - first
            if length > longest:
                break
            seen.add(found[last])
            if (len(seen), -length) > best:
                best, place = (len(seen), -length), (words[first][1], words[last + N - 1][2])
    return best[0], *place


@dataclass(frozen=True)
class Truth:
    """What items are in what pages with a containment of `least` or more: (shared, start, end) by page and item."""

    sizes: list[int]  # the different shingles of each item
    least: float
    found: dict[tuple[int, int], tuple[int, int, int]]

    def hits(self, threshold: float) -> dict[tuple[int, int], tuple[float, int, int, int]]:
        """Return the containment, start, end and shared shingles of all hits."""
        assert threshold >= self.least
        hits = {}
        for pair, (shared, start, end) in self.found.items():
            containment = shared / self.sizes[pair[1]]
            if containment >= threshold:
                hits[pair] = (containment, start, end, shared)
        return hits


def truth_of(planted: Planted, least: float) -> Truth:
    """Look for all items in all pages."""
    own = [set(runs(item)) for item in planted.items]
    longest = [WINDOW * len(units(item)) for item in planted.items]
    owners: dict[Run, list[int]] = {}
    for number, some in enumerate(own):
        for run in some:
            owners.setdefault(run, []).append(number)
    found = {}
    for number, page in enumerate(planted.pages):
        text = page.decode("ascii")
        words = [word for part in WORD.findall(text.lower()) if (word := part.translate(NO_PUNCTUATION))]
        common = owners.keys() & set(zip(*(words[i:] for i in range(N))))
        counts = Counter(item for run in common for item in owners[run])
        for item, count in counts.items():
            if count / len(own[item]) >= least:  # else no window has enough
                best = best_window(own[item], longest[item], text)
                if best[0] / len(own[item]) >= least:
                    found[number, item] = best
    return Truth(list(map(len, own)), least, found)


# ---- items for measuring speed ----


def source_words() -> list[str]:
    """Return the words of the articles and of the reference pages."""
    pages = harness.pages()
    assert pages is not None
    return article_words() + b" ".join(text for text in pages.texts if text.isascii()).decode("ascii").split()


def real_items(count: int) -> Iterator[str]:
    """Yield random runs of words of the articles and of the reference pages, 8 to 300 words long."""
    draw, words = random.Random(20260602), source_words()
    for _ in range(count):
        size = log_uniform(draw, WORDS)
        begin = below(draw, len(words) - size)
        yield " ".join(words[begin : begin + size])


def made_items(count: int) -> Iterator[str]:
    """Yield texts that are like real ones: each word follows the one before it in the articles or reference pages."""
    words = source_words()
    place: dict[str, int] = {}
    numbers = np.array([place.setdefault(word, len(place)) for word in words])
    known = np.array(list(place), dtype=object)
    by_word = np.argsort(numbers, kind="stable")  # the places of each word, one word after the other
    bounds = np.searchsorted(numbers[by_word], np.arange(len(known) + 1))
    draw = np.random.default_rng(20260603)
    while count > 0:
        some = min(count, 20_000)
        sizes = np.exp(draw.uniform(np.log(WORDS[0]), np.log(WORDS[1]), some)).round().astype(np.int64)
        order = np.argsort(-sizes)
        places, rows = draw.integers(0, len(words), some), np.empty((some, WORDS[1]), np.int64)
        for column in range(WORDS[1]):
            active = int(np.searchsorted(-sizes[order], -column))  # those with more words come first
            rows[order[:active], column] = now = numbers[places[:active]]
            chosen = bounds[now] + (draw.random(active) * (bounds[now + 1] - bounds[now])).astype(np.int64)
            places = (by_word[chosen] + 1) % len(words)
        for row, size in zip(rows, sizes.tolist()):
            yield " ".join(known[row[:size]].tolist())
        count -= some
