"""Texts of many megabytes: hashed in pieces, with the same fingerprints, and interrupted soon after a signal."""

import random
import signal
import threading
import time
from collections.abc import Callable

import numpy
import pytest

import lsh
from lsh import MinHasher, Shingles
from lsh.base.threads import Stopped, end_if_stopped, map_in_order

PIECE = 1 << 23  # bytes: PIECE in _minhash.pyx, which fss reads at once


def mixed(size: int, seed: int) -> bytes:
    """Words of ASCII and others, punctuation, white space and undecodable bytes, with a space at the end."""
    draw = random.Random(seed)
    characters = ["é".encode(), "\U0001f600".encode(), b" ", b"  ", b", ", b"abc", b"x"]
    parts = [*characters, b"\x80\x80\x80\x80\x80", b"\xff", b"\xe2\x82"]
    made = b"".join(draw.choices(parts, k=size // 2))
    return made[: size - 1] + b" "


SHINGLES = [Shingles(n, unit) for unit in ("word", "char", "byte") for n in (3, 9, 1)]


@pytest.mark.few(1)
@pytest.mark.parametrize("shingles", SHINGLES, ids=str)
def test_fss_in_pieces(shingles):
    """A text repeated many times has the same shingles, and so the same fingerprint, as one repeated twice."""
    hasher = MinHasher(64, scheme="fss", shingles=shingles)
    for seed, size in enumerate((50_001, 70_003, 99_999)):
        text = mixed(size, seed)
        times = PIECE // size + 1 + seed * (PIECE // size)
        assert numpy.array_equal(hasher.fingerprint(text * times), hasher.fingerprint(text * 2))


@pytest.mark.few(1)
@pytest.mark.parametrize("gap", [", ", " ", "\u3000"])
def test_fss_of_words_far_apart(gap):
    """Whole pieces without a word, and the end of a text too short for another shingle."""
    for n in (1, 3):
        hasher = MinHasher(32, scheme="fss", shingles=Shingles(n, "word"))
        for words in (["a", "b", "c", "d", "e"], ["a", "b"], ["a"]):
            far = gap * (2 * PIECE // len(gap.encode()) + 5)
            for at in range(len(words) + 1):
                text = " ".join(words[:at]) + far + " ".join(words[at:])
                assert numpy.array_equal(hasher.fingerprint(text), hasher.fingerprint(" ".join(words)))


@pytest.mark.few(4)
@pytest.mark.parametrize("hashbytes", [4, 8])
@pytest.mark.parametrize(
    "shingles", [*SHINGLES, Shingles(40, "byte"), Shingles(3000, "char"), Shingles(90_000)], ids=str
)
def test_murmur3_in_pieces(shingles, hashbytes):
    """With many seeds a text is cut into small pieces; with one it is not cut."""
    seeds = list(range(2000))
    many = MinHasher(seeds, hashbytes=hashbytes, shingles=shingles)
    text = mixed(150_000 if shingles.n < 20 else 90_200, 5)
    if shingles.n > 100:
        text = text.replace(b"\x80", b"")[: 90_200 if shingles.n > 10_000 else 6000]
    found = many.fingerprint(text)
    for seed in (0, 777, 1999):
        assert found[seed] == MinHasher([seed], hashbytes=hashbytes, shingles=shingles).fingerprint(text)[0]


@pytest.mark.parametrize(
    "options",
    [
        {"normalize": "NFKC"},
        {"lowercase": True, "collapse_whitespace": True},
        {"strip_punctuation": True, "collapse_whitespace": True, "normalize": "NFC", "lowercase": True},
    ],
)
def test_normalisation_in_pieces(options, monkeypatch):
    draw = random.Random(3)
    parts = ["Σ", "ΑΣ", "e\u0301", "\u0301", " ", "  ", ". ", " .", "İ", "ﬁ", "A", "9", "\u3000", "\n", "ß"]
    parts += ["한", "ᄒ", "ᅡ", "⑴", "か", "\u3099", "ก"]
    texts = ["".join(draw.choices(parts, k=400)).encode() for _ in range(60)] + [mixed(3000, 4)]
    shingles = Shingles(5, **options)
    whole = [shingles.apply(text) for text in texts]
    for size in (1, 7, 100):
        monkeypatch.setattr("lsh.text.shingling.PIECE", size)
        assert [shingles.apply(text) for text in texts] == whole


def seconds_to_end(after: float, work: Callable[[], object]) -> float:
    """Repeat the work until a signal interrupts it; return the seconds from the signal to the end of the work."""

    def repeat() -> None:
        signal.setitimer(signal.ITIMER_REAL, after)
        while True:
            work()

    before, begun = signal.signal(signal.SIGALRM, signal.default_int_handler), time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            repeat()
        return time.monotonic() - begun - after
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


WORK: dict[str, Callable[[list[str]], object]] = {
    "compare bytes": lambda texts: lsh.jaccard(*texts),
    "compare words": lambda texts: lsh.jaccard(*texts, shingles=Shingles(5, "word")),
    "murmur3": lambda texts: MinHasher(1000, char_ngram=8).fingerprints(texts, num_threads=2),
    "murmur3 of one text": lambda texts: MinHasher(1000, char_ngram=8).fingerprint(texts[0]),
    "deduplicate": lambda texts: lsh.deduplicate(
        texts, shingles=Shingles(8, lowercase=True, normalize="NFKC"), num_threads=2
    ),
    "find_contained": lambda texts: lsh.find_contained(texts, num_threads=2),
}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("beyond_ascii", [False, True])
def test_a_signal_ends_the_work_on_huge_texts(work, beyond_ascii):
    """Of two near duplicates of 20 MB, whose words are drawn from a large vocabulary."""
    draw = numpy.random.default_rng(1)
    words = ["".join(map(chr, draw.integers(97, 123, 6))) for _ in range(50_000)]
    text = " ".join([words[i] for i in draw.integers(0, len(words), 20_000_000 // 7)])
    texts = [text + (" é" if beyond_ascii else " e"), text[:9_000_000] + " changed " + text[9_000_000:]]
    for after in (0.1, 0.6):
        assert seconds_to_end(after, lambda: WORK[work](texts)) < 1.5


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")
@pytest.mark.parametrize("what", ["fingerprints", "matrix"])
def test_a_signal_ends_the_work_on_large_texts(what):
    """Some seconds of hashing that need little memory, and a minute of comparisons."""
    if what == "fingerprints":
        text, hasher = "a text that is hashed 4,096 times for each shingle" * 80_000, MinHasher(4096, char_ngram=5)
        assert seconds_to_end(0.05, lambda: hasher.fingerprints([text] * 50, num_threads=1)) < 5
    else:
        same = " ".join(map(str, range(1000)))
        texts = [f"{i} {same}" for i in range(6000)]
        assert seconds_to_end(0.2, lambda: lsh.jaccard_matrix(texts, shingles=Shingles(5))) < 20


def test_helpers_end_when_their_results_are_not_wanted():
    """A helper thread that is still working is stopped; the caller's exception is raised."""
    begun, ended = threading.Event(), threading.Event()

    def work(item: int) -> None:
        if threading.current_thread() is threading.main_thread():
            begun.wait(60)
            raise KeyboardInterrupt
        begun.set()
        try:
            while True:
                end_if_stopped()
                time.sleep(0.001)
        except Stopped:
            ended.set()
            raise

    with pytest.raises(KeyboardInterrupt):
        list(map_in_order(work, range(9), 2))
    assert ended.is_set()
