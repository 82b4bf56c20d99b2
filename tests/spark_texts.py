"""A corpus for the tests of `lsh.spark` and of pipelines: planted chains, stars, copies and texts of a template."""

import random


def words(draw: random.Random, count: int) -> str:
    return " ".join(f"{draw.randrange(600):x}{draw.choice('aeiou')}{draw.randrange(40)}" for _ in range(count))


def edited(draw: random.Random, text: str, changes: int) -> str:
    parts = text.split(" ")
    for _ in range(changes):
        parts[draw.randrange(len(parts))] = words(draw, 1)
    return " ".join(parts)


def corpus(count: int = 700, seed: int = 0) -> list[str]:
    """Chains of edits, stars around one text, copies, texts of a template, short and empty texts, and others."""
    draw = random.Random(seed)
    texts = ["", "", "a", "a", "ab", "\N{CAT FACE} cat", "\N{CAT FACE} cat"]
    chain, star, copied = words(draw, 40), words(draw, 60), words(draw, 30)
    template = words(draw, 50)
    while len(texts) < count:
        kind = draw.randrange(8)
        if kind == 0:
            chain = edited(draw, chain, 2)
            texts.append(chain)
        elif kind == 1:
            texts.append(edited(draw, star, draw.randrange(1, 5)))
        elif kind == 2:
            texts.append(copied)
        elif kind == 3:
            texts.append(f"{template} {draw.randrange(100)} {words(draw, 3)}")
        elif kind == 4:
            texts.append(edited(draw, draw.choice(texts), draw.randrange(3)))
        else:
            texts.append(words(draw, draw.randrange(20, 60)))
    draw.shuffle(texts)
    return texts


TEXTS = corpus()
