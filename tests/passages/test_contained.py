"""Items are found in texts as the definition says: the twin is in reference.py.

Items and texts are random, over few words and characters, so that windows overlap, repeat and tie; with characters that
change their length in lower case or depend on their neighbours, normal forms, and bytes that are no UTF-8.
"""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import reference
import strategies

import lsh

SEEDS = range(max(1, round(40 * strategies.SCALE)))  # 100 corpora each
WORDS = ["a", "b", "cc", "don't", "É", "ΟΔΟΣ", "İx", "x_y", "語", "Ⱥ"]
BETWEEN = [" ", " ", " ", "  ", ", ", " - ", "\n", "\u2003", " ! "]
CHARACTERS = "aab\u00c9 \u03a3\u0130e\u0301.\u1100\u1161\u11a8\ufb01 "


def random_case(draw: random.Random) -> tuple[list[str | bytes], list[str | bytes], dict[str, Any]]:
    """Items, texts and parameters."""
    unit = draw.choice(["word", "word", "char", "byte"])
    normalisation: dict[str, Any] = {
        name: True for name in ("lowercase", "strip_punctuation", "collapse_whitespace") if draw.random() < 0.5
    }
    if draw.random() < 0.3:
        normalisation["normalize"] = draw.choice(["NFC", "NFKC"])
    few = draw.random() < 0.7  # plain ASCII

    def text(least: int, most: int) -> str | bytes:
        size = draw.randint(least, most)
        if unit == "word":
            words = draw.choices(WORDS[:4] if few else WORDS, k=size)
            made = "".join(word + draw.choice(BETWEEN) for word in words)
        else:
            made = "".join(draw.choices("aab ." if few else CHARACTERS, k=size))
        if draw.random() < 0.1:
            return made.encode() + draw.choice([b"\xff", b"\xc3", b" \xe2\x82 a b cc"])
        return made.encode() if draw.random() < 0.2 else made

    items = [text(0, 12) for _ in range(draw.randint(1, 6))]
    texts = [text(0, 40) for _ in range(draw.randint(1, 6))]
    texts += [draw.choice(texts)[3:] for _ in range(draw.randint(0, 2))]
    given: dict[str, Any] = {
        "n": draw.randint(1, 4),
        "unit": unit,
        "window": draw.choice([1.0, 1.3, 2.0, 2.0, 5.0, math.inf]),
        "min_shared": draw.choice([None, None, 1, 2, 5]),
        "max_share": draw.choice([None, None, 0.0, 0.4, 0.9]),
        **normalisation,
    }
    return items, texts, given


@pytest.mark.parametrize("seed", SEEDS)
def test_items_are_found_as_defined(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(100):
        items, texts, given = random_case(draw)
        threshold = draw.choice([0.3, 0.5, 2 / 3, 0.8, 1.0])
        hits, skipped = reference.contained(items, texts, threshold, **given)
        names = ("window", "min_shared", "max_share")
        shingles = lsh.Shingles(**{name: value for name, value in given.items() if name not in names})
        options = {name: given[name] for name in names}
        found = lsh.find_contained(items, texts, threshold, shingles=shingles, num_threads=1, **options)
        assert found.hits.tolist() == hits, (items, texts, threshold, given)
        assert dict(found.skipped.tolist()) == skipped


@pytest.mark.parametrize("seed", range(4))
def test_texts_are_looked_for_in_each_other_and_decided_in_order(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(50):
        _, texts, _ = random_case(draw)
        texts += [text for text in texts if draw.random() < 0.3]
        hits, _ = reference.contained(texts, texts, 0.5, n=2, unit="char", max_share=0.9)
        hits = [hit for hit in hits if hit[0] != hit[1]]
        found = lsh.find_contained(lambda: texts, None, 0.5, shingles=lsh.Shingles(2), max_share=0.9)
        assert found.hits.tolist() == hits
        sizes = [len(reference.as_bytes(text)) for text in texts]
        for keep in ("first", "last", "longest", sizes):
            result = found.deduplicate(keep)
            order = reference.priority(texts, keep)
            kept: list[int] = []
            removed: dict[int, tuple[int, float]] = {}
            for document in order:
                own = [hit for hit in hits if hit[0] == document and hit[1] in kept]
                if own:
                    best = min(own, key=lambda hit: (-hit[2], kept.index(hit[1])))
                    removed[document] = (best[1], best[2])
                else:
                    kept.append(document)
            assert result.kept.tolist() == sorted(kept)
            rows = result.removed
            assert dict(zip(rows["document"].tolist(), zip(rows["kept"].tolist(), rows["similarity"].tolist()))) == removed
            same = [reference.as_bytes(texts[a]) == reference.as_bytes(texts[b]) for a, b in zip(rows["document"], rows["kept"])]
            assert rows["identical"].tolist() == same
