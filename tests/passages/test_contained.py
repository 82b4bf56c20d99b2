"""Items are found in texts as the definition says: the twin is in reference.py.

Items and texts are random, over few words and characters, so that windows overlap, repeat and tie; with characters that
change their length in lower case or depend on their neighbours, normal forms, and bytes that are no UTF-8.
"""

import math
import pickle
import random
from typing import Any

import numpy as np
import pytest
import reference
import strategies

import lsh

SEEDS = range(max(1, round(40 * strategies.SCALE)))  # 40 corpora each
WORDS = ["a", "b", "cc", "don't", "É", "ΟΔΟΣ", "İx", "x_y", "語", "Ⱥ"]
BETWEEN = [" ", " ", " ", "  ", ", ", " - ", "\n", "\u2003", " ! "]
CHARACTERS = "aab\u00c9 \u03a3\u0130e\u0301.\u1100\u1161\u11a8\ufb01 \u8a9e\u304b\u3099"


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
        "window": draw.choice([1.0, 1.4, 2.0, 2.3, 5.0, math.inf]),
        "min_shared": draw.choice([None, None, 1, 2, 5]),
        "max_share": draw.choice([None, None, 0.0, 0.4, 2 / 3, 0.9]),
        **normalisation,
    }
    return items, texts, given


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_items_are_found_as_defined(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    monkeypatch.setattr("lsh.text.shingling.LOCATED", draw.choice([1, 256]))
    for _ in range(40):
        items, texts, given = random_case(draw)
        threshold = draw.choice([0.3, 0.5, 2 / 3, 0.8, 1.0])
        hits, skipped = reference.contained(items, texts, threshold, **given)
        options = {name: given.pop(name) for name in ("window", "min_shared", "max_share")}
        found = lsh.find_contained(items, texts, threshold, shingles=lsh.Shingles(**given), num_threads=1, **options)
        assert found.hits.tolist() == hits, (items, texts, threshold, given, options)
        assert dict(found.skipped.tolist()) == skipped


def test_texts_are_looked_for_in_each_other_and_decided_in_order() -> None:
    draw = random.Random(0)
    for _ in range(40):
        texts = ["".join(draw.choices("abc ", k=draw.randint(0, 12))) for _ in range(draw.randint(1, 8))]
        texts += [draw.choice(texts) + draw.choice(texts) for _ in range(3)] + texts[:2]
        hits, skipped = reference.contained(texts, texts, 0.5, n=2, unit="char")
        hits = [hit for hit in hits if hit[0] != hit[1]]
        found = lsh.find_contained(lambda own=texts: own, None, 0.5, shingles=lsh.Shingles(2))
        assert pickle.loads(pickle.dumps(found)).hits.tolist() == hits
        for keep in ("first", "last", "longest", [len(text) % 3 for text in texts]):
            kept: list[int] = []
            removed: list[tuple[int, int, float, bool]] = []
            for document in reference.priority(texts, keep):
                own = [(-hit[2], kept.index(hit[1]), hit[1]) for hit in hits if hit[0] == document and hit[1] in kept]
                if own:
                    removed.append((document, min(own)[2], -min(own)[0], texts[document] == texts[min(own)[2]]))
                else:
                    kept.append(document)
            threads = draw.randint(1, 3)
            result = lsh.deduplicate_contained(texts, 0.5, shingles=lsh.Shingles(2), keep=keep, num_threads=threads)
            assert result.removed.tolist() == sorted(removed)
            assert result.kept.tolist() == sorted(kept)
            assert result.summary()["without_shingles"] == len(skipped)
    copies = [f"{'all of this is here more often than once ' * 3}{i}" for i in range(20_000)]  # all pairs are many
    assert len(lsh.deduplicate_contained(copies).kept) == 1


@pytest.mark.few(2)
@pytest.mark.parametrize("codes", [range(0x20000), pytest.param(range(0x20000, 0x110000), marks=pytest.mark.slow)])
@pytest.mark.parametrize("unit", ["word", "char"])
@pytest.mark.parametrize("flags", [{"lowercase": True, "collapse_whitespace": True}, {"strip_punctuation": True}])
def test_every_character_is_normalised_as_python_does(codes: range, unit: Any, flags: dict[str, bool]) -> None:
    shingles = lsh.Shingles(2, unit, **flags)
    for start in codes[:: 1 << 12]:
        text = " ".join(f"{chr(code)} a{chr(code)}b" for code in range(start, start + (1 << 12)))
        normal = str(shingles.apply(text))
        for item, other in ((text, normal), (normal, text)):
            found = lsh.find_contained([item], [other], 1.0, shingles=shingles, window=math.inf)
            assert found["containment"].tolist() == [1.0], hex(start)


def test_the_result_depends_on_the_texts_only() -> None:
    draw = random.Random(1)
    vocabulary = [f"w{i}" for i in range(300)]
    texts = [" ".join(draw.choices(vocabulary, k=draw.randint(0, 400))) for _ in range(3000)]
    items = [" ".join(text.split()[5 : draw.randint(8, 60)]) for text in texts[:300]] + [" ".join(vocabulary[:4])]
    expected = lsh.find_contained(items, texts, num_threads=1, max_share=0.5)
    assert len(expected) > 200
    for given, threads in ((texts, 2), (lambda: iter(texts), 5), (np.array(texts, object), 3)):
        found = lsh.find_contained(iter(items), given, num_threads=threads, max_share=0.5)
        assert found.hits.tolist() == expected.hits.tolist()
    assert lsh.find_contained(items, iter(texts)).hits.tolist() == expected.hits.tolist()
    left = list(expected.cut(iter(texts)))
    hit, number = expected.hits[0], int(expected["text"][0])
    text, row = texts[number], expected.text_spans(number, texts[number])[0]
    assert text[row["start"] : row["end"]] == text.encode()[hit["start"] : hit["end"]].decode()
    assert len("".join(left)) == len("".join(texts)) - expected.summary()["window_bytes"]
    assert np.asarray(expected).tolist() == expected.hits.tolist()


def test_shingles_with_equal_hashes_are_counted_apart() -> None:
    """Of a long shingle the hash reads some bytes only. Others with the same hash may be between two equal ones."""
    item = "0123456789" * 10
    others = [f"{item[:place]}x{item[place + 1 :]}" for place in range(17, 24)]
    items, texts = [item, *others, item], [item, item, others[0]]
    given: dict[str, Any] = {"n": 100, "unit": "byte", "max_share": 0.5}
    hits, skipped = reference.contained(items, texts, 1.0, **given)
    found = lsh.find_contained(items, texts, 1.0, shingles=lsh.Shingles(100, "byte"), max_share=0.5)
    assert (found.hits.tolist(), dict(found.skipped.tolist())) == (hits, skipped)
    assert skipped == {0: "common", 8: "common"}


def test_windows_of_bytes_are_whole_characters() -> None:
    shingles = lsh.Shingles(2, "byte")
    for item, text in (("ст", "ǁт"), ("тс", "тѡ"), (b"\x81\xd1", b"\xc7\x81\xd1")):  # only two bytes of a character
        found = lsh.find_contained([item], [text * 2], 0.6, shingles=shingles, window=1)
        assert found.hits[["start", "end"]].tolist() == [(0, len(text.encode()) if isinstance(text, str) else 3)]
        assert list(found.cut([text * 2])) == [text]


def test_a_callable_must_give_as_many_items_again() -> None:
    for max_share in (None, 0.5):
        calls = iter([["a b c", "a b c d"], ["a b c"]])
        with pytest.raises(ValueError, match="items gave 2 texts at one call and 1 at the next; a callable must give"):
            lsh.find_contained(lambda calls=calls: next(calls), max_share=max_share)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"window": 0.5}, r"window must be 1 or more, got 0\.5"),
        ({"window": math.nan}, "window must be 1 or more, got nan"),
        ({"window": "2"}, r"window must be a number \(1 or more\), got str"),
        ({"min_shared": 0}, "min_shared must be 1 or more, got 0"),
        ({"max_share": 1.5}, "max_share must be 0 to 1, got 1.5"),
        ({"threshold": 0}, "threshold must be more than 0 and at most 1, got 0"),
        ({"shingles": 3}, "shingles must be a Shingles, got int"),
        ({"items": "a text"}, "items must be a collection of texts"),
        ({"items": [None]}, r"items\[0\] is None"),
        ({"texts": ["a", 5]}, r"texts\[1\] must be str"),
        ({"texts": 0.7}, "to set threshold, write threshold=0.7"),
        ({"texts": iter(["a"]), "max_share": 0.5}, "texts is read twice, and must not be an iterator"),
        ({"items": iter(["a"]), "texts": None}, "items is read twice, and must not be an iterator"),
    ],
)
def test_bad_values(given: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        lsh.find_contained(**{"items": ["a b c"], "texts": ["a b c"], **given})
