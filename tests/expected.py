"""Checksums of results on many corpora in many modes, as an earlier engine computed them.

`expected.json` holds them: results must stay the same bit for bit, whatever becomes faster. `python tests/expected.py`
writes the file again; do that only where a change of results is wanted, and say so in the changelog. The corpora are
those of LSH_DATA, and others that are generated here from fixed seeds.
"""

import hashlib
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import lsh

FILE = Path(__file__).with_suffix(".json")
FILES = (
    "reuters21578.tsv.gz",
    "articles2500.tsv.gz",
    "ads_rome_it.tsv.gz",
    "win32docs.tsv.gz",
    "multilingual.jsonl.gz",
    "plagiarised_answers.jsonl.gz",
    "refs_respiratory.jsonl.gz",
)
BYTES = lsh.Shingles(5, "byte")
WORDS = lsh.Shingles(3, "word", lowercase=True)
MODES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "at 0.5": {"threshold": 0.5},
    "at 0.7, bytes": {"threshold": 0.7, "shingles": BYTES},
    "at 0.95, the last": {"threshold": 0.95, "keep": "last"},
    "at 1": {"threshold": 1.0},
    "words, the longest": {"threshold": 0.6, "shingles": WORDS, "keep": "longest"},
    "components": {"clusters": "components"},
    "components at 0.5": {"clusters": "components", "threshold": 0.5},
    "estimates": {"verify": "sketch"},
    "estimates, components": {"verify": "sketch", "clusters": "components", "threshold": 0.6},
    "buckets": {"verify": None},
    "bands": {"bands": lsh.Bands(30, 4)},
    "murmur3": {"hasher": lsh.MinHasher(64, random_state=3, shingles=BYTES), "recall": 0.9},
}
EFFORT = ("seconds", "connected", "compared")  # counts of a summary that say how the result was found
CROWDED = {"bands": lsh.Bands(6, 1), "threshold": 0.95, "shingles": BYTES, "num_seeds": 8}


def words_of(draw: random.Random, size: int) -> list[str]:
    return [f"{draw.choice('bcdfghklmnprst')}{draw.choice('aeiou')}{i:x}" for i in range(size)]


def edited() -> list[str]:
    """Return texts of 1 to 60 words, of which three in ten are copies of an earlier one with 0 to 3 words replaced."""
    draw = random.Random(1)
    words, texts = words_of(draw, 2000), list[str]()
    for _ in range(3000):
        if texts and draw.random() < 0.3:
            text = draw.choice(texts).split()
            for _ in range(draw.randrange(4)):
                text[draw.randrange(len(text))] = draw.choice(words)
        else:
            text = draw.choices(words, k=draw.randint(1, 60))
        texts.append(" ".join(text))
    return texts


def template() -> list[str]:
    """Return texts of one template, each about 0.6 similar to each other."""
    draw = random.Random(2)
    words = words_of(draw, 400)
    form = [" ".join(draw.choices(words, k=3)) for _ in range(20)]
    return [" ".join(f"{part} {draw.choice(words)}" for part in form[: draw.randint(12, 20)]) for _ in range(1500)]


def copies() -> list[str]:
    """Return copies of one text, each with one to three words replaced."""
    draw = random.Random(4)
    words = words_of(draw, 300)
    form, texts = draw.choices(words, k=60), list[str]()
    for _ in range(1500):
        text = form.copy()
        for _ in range(draw.randint(1, 3)):
            text[draw.randrange(len(text))] = draw.choice(words)
        texts.append(" ".join(text))
    return texts


def tiny() -> list[str]:
    """Return texts of up to 12 characters, many of them identical."""
    draw = random.Random(5)
    return ["".join(draw.choices("abé", k=draw.randint(0, 12))) for _ in range(2500)]


GENERATED: dict[str, Callable[[], list[str]]] = {made.__name__: made for made in (edited, template, copies, tiny)}


def checksum(*values: object) -> str:
    """Return a checksum of arrays and of other values."""
    found = hashlib.sha256()
    for value in values:
        found.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
    return found.hexdigest()[:16]


def of_result(result: lsh.Deduplication) -> str:
    """Return the checksum of a result: decisions, witnesses, similarities, pairs just below, and counts.

    How much was compared is not among these: with a bound there may be no memory to compare many at once.
    """
    tables = [result.removed[name] for name in result.removed.dtype.names or ()]
    tables += [result.near[name] for name in result.near.dtype.names or ()]
    counts = {name: count for name, count in result.summary().items() if name not in EFFORT}
    return checksum(result.keep, result.labels, *map(np.ascontiguousarray, tables), counts)


def cases(texts: list[Any]) -> Iterator[tuple[str, Callable[..., str]]]:
    """Yield the name of each case, and a function that computes its checksum; it may be given a bound and threads."""
    half = len(texts) // 2
    for name, mode in MODES.items():
        yield name, lambda mode=mode, **more: of_result(lsh.deduplicate(texts, **mode, **more))
    for name in ("defaults", "components at 0.5", "estimates"):
        mode = MODES[name]
        yield (
            f"against, {name}",
            lambda mode=mode, **more: of_result(lsh.deduplicate(texts[half:], against=texts[:half], **mode, **more)),
        )
    for name, mode in {"0.8": {}, "0.5": {"threshold": 0.5}, "estimates": {"verify": "sketch"}}.items():
        some = texts[: 8000 if name == "0.8" else 3000]
        yield f"pairs {name}", lambda some=some, mode=mode, **more: checksum(list(lsh.find_pairs(some, **mode, **more)))
    yield "pairs of two", lambda **more: checksum(list(lsh.find_pairs(texts[:half], others=texts[half:], **more)))


def generated(name: str) -> Iterator[tuple[str, Callable[..., str]]]:
    """Yield the cases of a generated corpus."""
    texts = GENERATED[name]()
    yield from cases(texts)
    if name == "template":
        yield "crowded buckets", lambda **more: of_result(lsh.deduplicate(texts, **CROWDED, **more))


def main() -> None:
    """Write the checksums of the present engine."""
    import harness

    found = {name: {case: compute() for case, compute in generated(name)} for name in GENERATED}
    for name in FILES:
        corpus = harness.corpus(name)
        if corpus is None:
            sys.exit(f"{name} is not in the folder of corpora; set LSH_DATA")
        found[name] = {case: compute() for case, compute in cases(corpus.texts)}
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
    main()
