"""Generate synthetic corpora of any size, with near duplicates at known positions.

Name, count and seed define a corpus. It has the same bytes on every run, platform and version of Python: every choice
is integer arithmetic on splitmix64 (Steele, Lea, Flood 2014). Each text has its own random numbers. So texts can be
streamed in constant memory, any text can be generated alone, and a copy is generated without storing its source.
`reviews`, `one_template` and `edited_copies` use a model of words, `near_misses` random letters, `long_texts` random
digits. The others recombine Reuters-21578 or extend articles2500; they need LSH_DATA to name the folder of these
corpora, which README.md describes.

    python benchmarks/corpora.py stories --output stories.tsv
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import harness
import numpy as np

GOLDEN = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio, odd
M64 = 2**64 - 1
BATCH = 2048  # texts generated at a time
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Synthetic:
    """A corpus that is generated while it is read. Immutable."""

    name: str
    count: int
    make: Callable[[Array], list[bytes]]  # the texts at these positions
    sources: Callable[[Array], Array]  # for each position, the position of the text it copies, else -1
    batch: int = BATCH  # texts generated at a time

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[bytes]:
        return self.texts()

    def texts(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Generate the texts from `start` to before `stop`; one batch is in memory at a time."""
        stop = self.count if stop is None else min(stop, self.count)
        for first in range(start, stop, self.batch):
            yield from self.make(np.arange(first, min(first + self.batch, stop)))

    def at(self, positions: Sequence[int]) -> list[bytes]:
        """Return the texts at the given positions."""
        return self.make(np.array(positions, np.int64)) if len(positions) else []

    def planted(self, start: int = 0, stop: int | None = None) -> Array:
        """Return the planted pairs (copy, source) in order of the copies: int64 of shape (m, 2)."""
        stop = self.count if stop is None else min(stop, self.count)
        found = [np.empty((0, 2), np.int64)]
        for first in range(start, stop, BATCH):
            positions = np.arange(first, min(first + BATCH, stop))
            source = self.sources(positions)
            found.append(np.stack([positions, source], axis=1)[source >= 0])
        return np.concatenate(found)


# Random numbers. 64-bit products and sums wrap around.


def key_of(name: str, seed: int) -> int:
    """Return the 64-bit key of a corpus, from which its random numbers are drawn."""
    return int.from_bytes(hashlib.sha256(f"{name} {seed}".encode()).digest()[:8], "little")


def drawn(key: int, positions: Array, width: int, first: int | None = None) -> Array:
    """Return the first `first` of `width` 64-bit numbers of each position: splitmix64 from the state `key`."""
    columns = np.arange(1, (first or width) + 1, dtype=np.uint64)
    counters = positions.astype(np.uint64)[:, None] * np.uint64(width) + columns
    z = counters * np.uint64(GOLDEN) + np.uint64(key)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return z ^ z >> np.uint64(31)


def numbers(state: int) -> Iterator[int]:
    """Generate the numbers of splitmix64, each reduced to its high 32 bits."""
    while True:
        state = (state + GOLDEN) & M64
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & M64
        z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
        yield (z ^ z >> 31) >> 32


def below(draws: Array, bounds: Any) -> Array:
    """Map each draw to a number from 0 to before its bound; bounds have at most 32 bits."""
    high = draws >> np.uint64(32)
    return (high * np.asarray(bounds).astype(np.uint64) >> np.uint64(32)).astype(np.int64)


def chosen_sources(key: int, positions: Array, width: int, share: int) -> Array:
    """Return the source of each copy, and -1 for originals.

    About `share` of 65,536 texts are chosen as copies: the first number of a position decides this, the second selects
    the earlier text to copy. If that text is chosen too, the text stays an original. So no copy has a copy as source,
    and each can be generated from its source alone.
    """
    draws = drawn(key, positions, width, 2)
    wanted = below(draws[:, 1], positions)
    chosen = (draws[:, 0] & np.uint64(0xFFFF)).astype(np.int64) < share
    rows = np.flatnonzero(chosen & (positions > 0))
    other = (drawn(key, wanted[rows], width, 1)[:, 0] & np.uint64(0xFFFF)).astype(np.int64) < share
    source = np.full(len(positions), -1)
    source[rows[~other]] = wanted[rows[~other]]
    return source


def share_of(planted: float) -> int:
    """Return the `share` to choose so that the fraction `planted` remains: c (1 - c) = planted."""
    return round(65536 * (1 - math.sqrt(1 - 4 * planted)) / 2)


# The model of words.


@cache
def vocabulary() -> list[bytes]:
    """Return 4,096 words of one to four syllables, the shortest first; `skewed` chooses these most often."""
    draw = numbers(key_of("vocabulary", 0))
    starts = b"b c d f g h l m n p r s t v w br ch cl cr dr fl gr pl pr sh sl sp st th tr".split()
    middles = b"a e i o u ai ea ee io ou".split()
    ends = [b"", b"", b"", *b"d l m n r s t x ck ll nd ng nt rd rt ss st".split()]
    words: dict[bytes, None] = {}

    def pick(parts: list[bytes]) -> bytes:
        return parts[next(draw) * len(parts) >> 32]

    while len(words) < 4096:
        syllables = 1 + ((next(draw) & 7) * (next(draw) & 7) >> 4)
        words[b"".join(pick(starts) + pick(middles) + pick(ends) for _ in range(syllables))] = None
    return sorted(words, key=len)


def skewed(draw: Iterator[int], size: int) -> int:
    """Draw a rank below `size`, small ranks more often: the product of two uniform numbers."""
    return (next(draw) * next(draw) >> 32) * size >> 32


def other_ending(draw: Iterator[int], phrase: bytes) -> bytes:
    """Replace the second word of a phrase of two words; the result has 11 to 15 bytes."""
    words, first = vocabulary(), phrase.partition(b" ")[0]
    while True:
        found = first + b" " + words[skewed(draw, len(words))]
        if 11 <= len(found) <= 15 and found != phrase:
            return found


@cache
def phrases() -> list[bytes]:
    """Return 65,536 phrases of two words, 11 to 15 bytes; then each of them with another second word."""
    draw, words = numbers(key_of("phrases", 0)), [word for word in vocabulary() if len(word) <= 8]
    first = [other_ending(draw, words[skewed(draw, len(words))]) for _ in range(65536)]
    return first + [other_ending(draw, phrase) for phrase in first]


@cache
def long_phrases() -> list[bytes]:
    """Return 65,536 phrases of four words, 23 to 31 bytes; then each of them with another last word."""
    draw, short = numbers(key_of("long phrases", 0)), phrases()
    chosen = [(next(draw) >> 16, next(draw) >> 16) for _ in range(65536)]
    first = [short[a] + b" " + short[b] for a, b in chosen]
    return first + [short[a] + b" " + short[65536 + b] for a, b in chosen]


def joined_rows(joint: bytes, pool: list[bytes], rows: Array, sizes: Array) -> list[bytes]:
    """Join, for each row, the parts of the pool that its first `size` numbers select."""
    parts = list(map(pool.__getitem__, rows[np.arange(rows.shape[1]) < sizes[:, None]].tolist()))
    ends = np.cumsum(sizes).tolist()
    return [joint.join(parts[start:end]) for start, end in zip([0, *ends], ends)]


# Sentences of Reuters-21578, and edits of texts.


def news_texts(name: str) -> list[bytes]:
    corpus = harness.corpus(name)
    if corpus is None:
        raise FileNotFoundError(f"this corpus needs {name}; set LSH_DATA to the folder that holds it")
    return corpus.texts


@cache
def sentences() -> list[bytes]:
    """Return the sentences of Reuters-21578 in order, split after a full stop and a space."""
    return [s for text in news_texts("reuters21578.tsv.gz") for s in re.split(rb"(?<=[a-z0-9][.]) +(?=[A-Z])", text)]


def edited(text: bytes, state: int, edits: int) -> bytes:
    """Edit a text `edits` times: replace, delete or insert a word, or change one letter."""
    draw, words, known = numbers(state), text.split(b" "), vocabulary()
    for _ in range(edits):
        kind, place = next(draw) & 3, next(draw) * len(words) >> 32
        word = known[skewed(draw, len(known))]
        if kind == 0:
            words[place] = word
        elif kind == 1 and len(words) > 1:
            del words[place]
        elif kind == 2:
            words.insert(place, word)
        else:
            at = next(draw) * (len(words[place]) or 1) >> 32
            words[place] = words[place][:at] + word[:1] + words[place][at + 1 :]
    return b" ".join(words)


def with_copies(
    make: Callable[[Array], list[bytes]], positions: Array, source: Array, states: Array, spread: int
) -> list[bytes]:
    """Generate texts; those with a source are copies of it with one edit, and up to one more per `spread` bytes."""
    made = make(np.where(source >= 0, source, positions))
    for row in np.flatnonzero(source >= 0).tolist():
        state = int(states[row])
        made[row] = edited(made[row], state, 1 + ((state & 0xFFFF) * (1 + len(made[row]) // spread) >> 16))
    return made


# The corpora.


def short_texts(count: int = 300_000, seed: int = 0) -> Synthetic:
    """Return texts of about 110 bytes: sentences of Reuters-21578, and halves of two sentences joined.

    Each sentence occurs at most once as a whole. 10 % of the texts are copies with one edit, most of them at a
    similarity of 0.8 to 0.95.
    """
    key, width, share = key_of("short_texts", seed), 4, share_of(0.1)
    whole = list(dict.fromkeys(s for s in sentences() if 80 <= len(s) <= 145))
    cuts = [s.find(b" ", len(s) // 2 - 3) for s in whole]
    heads = [s[:cut] for s, cut in zip(whole, cuts)]
    tails = [s[cut:] for s, cut in zip(whole, cuts)]
    size = len(whole)
    step = next(k for k in range(int(size * 0.618), size) if math.gcd(k, size) == 1)

    def originals(positions: Array) -> list[bytes]:
        draws = drawn(key, positions, width)
        head = positions * step % size
        alone = (positions < size) & ((draws[:, 0] >> np.uint64(16) & np.uint64(3)) == 0)
        tail = np.where(alone, head, below(draws[:, 2], size))
        return [heads[i] + tails[j] for i, j in zip(head.tolist(), tail.tolist())]

    def sources(positions: Array) -> Array:
        return chosen_sources(key, positions, width, share)

    def make(positions: Array) -> list[bytes]:
        return with_copies(originals, positions, sources(positions), drawn(key, positions, width)[:, 3], 1000)

    return Synthetic("short_texts", count, make, sources)


def stories(count: int = 806_791, seed: int = 0) -> Synthetic:
    """Return as many stories as RCV1 has (1.2 GB): two to four runs of two to five sentences of Reuters-21578.

    5 % are edited copies, most of them at a similarity of 0.82 to 0.99.
    """
    key, width, share = key_of("stories", seed), 8, share_of(0.05)
    news = [s for s in sentences() if 20 <= len(s) <= 240]  # without tables and abbreviations
    joined = b" ".join(news)
    starts = np.append(0, np.cumsum([len(s) + 1 for s in news]))

    def originals(positions: Array) -> list[bytes]:
        draws = drawn(key, positions, width)
        runs = 2 + below(draws[:, 1], 3)
        first = below(draws[:, 2:7], len(news) - 6)
        last = first + 2 + (draws[:, 2:7] & np.uint64(3)).astype(np.int64)
        begin, end = starts[first].tolist(), (starts[last] - 1).tolist()
        return [b" ".join([joined[a:b] for a, b in zip(begin[i][:r], end[i][:r])]) for i, r in enumerate(runs.tolist())]

    def sources(positions: Array) -> Array:
        return chosen_sources(key, positions, width, share)

    def make(positions: Array) -> list[bytes]:
        return with_copies(originals, positions, sources(positions), drawn(key, positions, width)[:, 7], 80)

    return Synthetic("stories", count, make, sources)


def reviews(count: int, seed: int = 0) -> Synthetic:
    """Return texts of 119 to 479 bytes, 5 to 15 phrases of four words; for tens and hundreds of millions of texts.

    5 % are copies. One copy in 8 is identical; the others have one or two words replaced.
    """
    key, width, share = key_of("reviews", seed), 7, share_of(0.05)
    pool = long_phrases()

    def sources(positions: Array) -> Array:
        return chosen_sources(key, positions, width, share)

    def make(positions: Array) -> list[bytes]:
        source = sources(positions)
        draws = drawn(key, np.where(source >= 0, source, positions), width)
        sizes = 5 + below(draws[:, 0], 11)
        number = draws[:, 2:6].astype("<u8").view("<u2").astype(np.int32)
        rows = np.flatnonzero(source >= 0)
        edits, size = drawn(key, positions[rows], width)[:, 6], sizes[rows]
        most = np.where((size >= 8) & (edits & np.uint64(1) == 1), 2, 1)
        most[edits >> np.uint64(61) == 0] = 0
        for k in range(2):
            place = (edits >> np.uint64(8 + 16 * k) & np.uint64(0xFFFF)).astype(np.int64) * size >> 16
            number[rows[k < most], place[k < most]] |= 65536
        return joined_rows(b" ", pool, number, sizes)

    return Synthetic("reviews", count, make, sources)


def one_template(count: int = 100_000, seed: int = 0) -> Synthetic:
    """Return texts of 100 bytes to 1 KB from one template with different values; none is a copy.

    Two texts have a similarity of about 0.5. A unit is about 31 bytes of the template and a value of 5 bytes. A text
    has the first 3 to 26 units, most often 12 to 18.
    """
    key, width, units, values = key_of("one_template", seed), 8, 26, 1024
    draw = numbers(key_of("one_template units", 0))
    consonants, vowels = b"bdfglmnprstvkz", b"aeiou"
    made: dict[bytes, None] = {}
    while len(made) < values:
        letters = [vowels if k % 2 else consonants for k in range(5)]
        made[bytes(chosen[next(draw) * len(chosen) >> 32] for chosen in letters)] = None
    pool = []
    for _ in range(units):
        fixed = b" ".join(phrases()[next(draw) >> 16] for _ in (1, 2, 3))[:31].strip()
        pool += [b"%s %s " % (fixed, value) for value in made]

    def make(positions: Array) -> list[bytes]:
        draws = drawn(key, positions, width)
        parts = draws.astype("<u8").view("<u2").astype(np.int64)
        sizes = 3 + (parts[:, :4].sum(axis=1) * (units - 2) >> 18)
        number = parts[:, 4 : 4 + units] % values + np.arange(units) * values
        return [text[:-1] for text in joined_rows(b"", pool, number, sizes)]

    return Synthetic("one_template", count, make, lambda positions: np.full(len(positions), -1))


def near_misses(count: int = 20_000, seed: int = 0) -> Synthetic:
    """Return texts of one template, unrelated and 0.77 similar; 1 % are copies of another one, 0.82 similar to it.

    A threshold of 0.8 lies between the two, so each text has to be compared with all others.
    """
    key, width, share, own = key_of("near_misses", seed), 21, share_of(0.01), 150
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz ", np.uint8)

    def written(draws: Array) -> Array:
        chosen = draws.astype("<u8").view(np.uint8).astype(np.int64)
        found: Array = letters[chosen * len(letters) >> 8]
        return found

    form = written(drawn(key_of("near_misses template", 0), np.zeros(1, np.int64), 125))[0].tobytes()

    def sources(positions: Array) -> Array:
        return chosen_sources(key, positions, width, share)

    def make(positions: Array) -> list[bytes]:
        source = sources(positions)
        copies, rows = source >= 0, written(drawn(key, positions, width)[:, 2:])
        rows[copies, :40] = written(drawn(key, source[copies], width)[:, 2:])[:, :40]
        return [form + row[:own].tobytes() for row in rows]

    return Synthetic("near_misses", count, make, sources)


def edited_copies(count: int = 1_000_000, seed: int = 0) -> Synthetic:
    """Return a text of about 1 KB, then copies with four to six words replaced, each about 0.9 similar to the first."""
    key, width, units, values = key_of("edited_copies", seed), 4, 72, 256
    draw = numbers(key_of("edited_copies text", seed))
    original = [phrases()[next(draw) >> 16] for _ in range(units)]
    pool = [other_ending(draw, phrase) for phrase in original for _ in range(values)]

    def make(positions: Array) -> list[bytes]:
        draws = drawn(key, positions, width)
        edits = np.where(positions > 0, 4 + below(draws[:, 0], 3), 0).tolist()
        parts = draws[:, 1:].astype("<u8").view("<u2").astype(np.int64)
        places = (parts[:, :6] * units >> 16).tolist()
        variants = (parts[:, 6:] >> 8).tolist()
        texts = []
        for most, place, variant in zip(edits, places, variants):
            text = original.copy()
            for at, v in zip(place[:most], variant):
                text[at] = pool[at * values + v]
            texts.append(b" ".join(text))
        return texts

    return Synthetic("edited_copies", count, make, lambda positions: np.where(positions > 0, 0, -1))


def long_texts(count: int = 3000, seed: int = 0, size: int = 200_000) -> Synthetic:
    """Return texts of 200 KB of random digits; every third is a copy of the text before it with another end."""
    key = key_of("long_texts", seed)

    def sources(positions: Array) -> Array:
        return np.where(positions % 3 == 2, positions - 1, -1)

    def make(positions: Array) -> list[bytes]:
        source = sources(positions)
        made = []
        for position, other in zip(positions.tolist(), source.tolist()):
            text = random.Random(key + (position if other < 0 else other)).randbytes(size // 2).hex()
            made.append((text[: size - size // 100] + f"{position:0{size // 100}}").encode())
        return made

    return Synthetic("long_texts", count, make, sources, 16)


def listed(name: str, originals: list[bytes], copied: list[int], seed: int) -> Synthetic:
    """Return a corpus of the given texts, followed by an edited copy of each text in `copied`."""
    key, source_of, first = key_of(name, seed), np.array(copied, np.int64), len(originals)

    def sources(positions: Array) -> Array:
        copies = positions >= first
        return np.where(copies, source_of[np.where(copies, positions - first, 0)], -1)

    def make(positions: Array) -> list[bytes]:
        states = drawn(key, positions, 1)[:, 0]
        return with_copies(lambda at: [originals[i] for i in at.tolist()], positions, sources(positions), states, 80)

    return Synthetic(name, first + len(copied), make, sources)


def copied_articles(seed: int = 0, copies: int = 2000, before: int = 0) -> list[int]:
    """Choose the articles to copy out of 2,500, each at most once; the first article is at position `before`."""
    order, draw = list(range(2500)), numbers(key_of("copied articles", seed))
    for j in range(len(order) - 1, 0, -1):
        other = next(draw) * (j + 1) >> 32
        order[j], order[other] = order[other], order[j]
    return [before + i for i in order[:copies]]


def articles(seed: int = 0) -> Synthetic:
    """Return articles2500, then edited copies of 2,000 of them, at a similarity of about 0.82 to 0.99."""
    return listed("articles", news_texts("articles2500.tsv.gz"), copied_articles(seed), seed)


def news_and_articles(seed: int = 0) -> Synthetic:
    """Return Reuters-21578, then `articles` with its edited copies: 26,077 texts, 23 MB."""
    news = news_texts("reuters21578.tsv.gz")
    texts = [*news, *news_texts("articles2500.tsv.gz")]
    return listed("news_and_articles", texts, copied_articles(seed, before=len(news)), seed)


MAKERS: dict[str, Callable[..., Synthetic]] = {
    make.__name__: make
    for make in (
        short_texts,
        stories,
        reviews,
        one_template,
        near_misses,
        edited_copies,
        long_texts,
        articles,
        news_and_articles,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=MAKERS)
    parser.add_argument("--count", type=int, help="number of texts, for a corpus of variable size")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="write lines here: position, tab, text")
    options = parser.parse_args()
    counts = {} if options.count is None else {"count": options.count}
    corpus = MAKERS[options.name](seed=options.seed, **counts)
    total, size, started = hashlib.sha256(), 0, time.process_time()
    with open(options.output or os.devnull, "wb") as file:
        for i, text in enumerate(corpus):
            line = b"%d\t%s\n" % (i, text)
            total.update(line)
            size += len(text)
            file.write(line)
    seconds = time.process_time() - started
    print(f"{len(corpus):,} texts, {size:,} bytes, {len(corpus.planted()):,} planted, {seconds:.1f} s of CPU time")
    print(f"sha256 of the lines: {total.hexdigest()}")


if __name__ == "__main__":
    main()
