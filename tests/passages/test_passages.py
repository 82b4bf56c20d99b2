"""Repeated passages are those of the definition, whatever runs at the same time, and within whatever memory.

The promises: what is cut has a witness that is kept; of windows that do not overlap, none is left twice; and the answer
depends on the texts and their order only. The twin is in reference.py. Corpora are random, over small alphabets, with
periods, overlaps and characters of several bytes.
"""

import gzip
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
import strategies
from running import process

import lsh
from lsh.base.budget import memory_size
from lsh.passages.cutting import LIMIT, RUN, Cutter
from lsh.passages.repeats import AnchorFinder, KeyTable, passage_keys, passage_runs
from lsh.text.batch import Batch

SECRET = bytes(range(16))
SEEDS = range(max(1, round(40 * strategies.SCALE)))  # 200 corpora each
WIDE = str.maketrans({"b": "é", "c": "語", "d": "😀"})


def random_corpus(draw: random.Random) -> tuple[list[bytes], int]:
    """Texts that repeat each other, and a window."""
    alphabet = draw.choice(["a", "ab", "abc", "abcdefgh", "abcd"])

    def word(least: int, most: int) -> str:
        return "".join(draw.choices(alphabet, k=draw.randint(least, most)))

    pool, texts = [word(1, 40) for _ in range(draw.randint(1, 4))], list[str]()
    for _ in range(draw.randint(1, 8)):
        kind = draw.randint(0, 3)
        if kind == 0:
            text = word(0, 80)
        elif kind == 1:
            text = "".join(
                draw.choice(pool)[draw.randint(0, 5) : draw.randint(5, 40)] for _ in range(draw.randint(1, 5))
            )
        elif kind == 2 and texts:
            other = draw.choice(texts)
            text = other[draw.randint(0, 20) :] + other[: draw.randint(0, 40)]
        else:
            text = word(1, 9) * draw.randint(1, 12)
        texts.append(text[:120])
    if alphabet == "abcd":
        texts = [text.translate(WIDE) for text in texts]
    data = [text.encode() for text in texts]
    if alphabet == "abc" and draw.random() < 0.3:  # bytes that are not UTF-8
        data = [text.replace(b"b", b"\x80").replace(b"c", b"\xe2") for text in data]
    return data, draw.randint(8, 14)


def check(spans: np.ndarray[Any, Any], texts: list[bytes], window: int, order: list[int], old: int = 0) -> None:
    """Compare spans with the twin, in which the texts come in this order, and check the witness of each."""
    cut = [bytearray(len(text)) for text in texts]
    rows = [(d, s, e, k + (old if side != ["old"] else 0), ks) for d, s, e, k, ks, *side in spans.tolist()]
    for document, start, end, kept, kept_start in rows:
        document += old
        assert end - start >= window
        assert texts[document][start:end] == texts[kept][kept_start : kept_start + end - start]
        cut[document][start:end] = b"\1" * (end - start)
    for _, start, end, kept, kept_start in rows:
        assert not any(cut[kept][kept_start : kept_start + end - start])
    wanted = reference.passages([texts[i] for i in order], window, old)
    assert [bytes(cut[i]) for i in order] == wanted


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_corpora(seed):
    draw = random.Random(seed)
    for _ in range(200):
        texts, window = random_corpus(draw)
        old = draw.choice([0, 0, 0, 1, 2])
        keep: Any = draw.choice(["first", "last", "longest", "array"])
        new = texts[old:]
        order = list(range(len(new)))
        if keep == "array":
            keep = [draw.randint(0, 2) for _ in new]
        ranks = {"first": [0] * len(new), "last": list(order), "longest": list(map(len, new))}.get(str(keep), keep)
        order.sort(key=lambda i: -ranks[i])
        given = texts[:old] if old else None
        found = lsh.find_passages(new, window, keep=keep, against=given, num_threads=draw.randint(1, 2))
        check(found.spans, texts, window, [*range(old), *(old + i for i in order)][: len(texts)], min(old, len(texts)))


@pytest.mark.parametrize("limit", [1, 2, LIMIT])
def test_lists_of_longer_runs(limit):
    """A short list of anchors leads to keys of longer runs; what is cut is the same."""
    draw = random.Random(limit)
    for _ in range(round(800 * strategies.SCALE)):
        texts, window = random_corpus(draw)
        batch, old = Batch(texts), draw.choice([0, 0, 1, 2, 4])
        keys, counts = passage_keys(batch, window, SECRET)
        assert counts.sum() == len(keys)
        again, times = np.unique(keys, return_counts=True)
        table = KeyTable(np.empty, 0)
        table.add(again[times > 1])
        found, data = passage_runs(batch, window, SECRET, table)
        runs = np.zeros(len(found), RUN)
        runs["document"], runs["start"], runs["stop"], runs["length"] = found.T
        runs["at"] = np.cumsum(runs["length"]) - runs["length"]
        cutter = Cutter(AnchorFinder(window, SECRET), table, np.empty, SECRET, limit)
        cutter.add_text(data)
        assert len(cutter.decide(runs[runs["document"] < old], True)) == 0
        spans = cutter.decide(runs[runs["document"] >= old], False)
        for name in ("document", "kept"):
            spans[name] -= old
        check(spans, texts, window, list(range(len(texts))), old)


def test_a_phrase_in_every_text_takes_linear_time():
    """Anchors with the same surroundings, which differ further away, are compared with few others."""
    draw = random.Random(1)
    phrase = "The same words are in the middle of every one of these texts, and more of the same."
    texts = [f"{draw.random()} {phrase} {draw.random()}" for _ in range(30_000)]
    assert len(phrase) < 90
    assert len(lsh.find_passages(texts, 100).spans) == 0  # a list of all anchors takes minutes
    pages = [text + phrase + phrase[::-1] for text in texts[:6000]]
    found = lsh.find_passages(pages[3000:], 100, against=pages[:3000])  # likewise a list of all old windows
    assert found.summary()["cut_documents"] == 3000


@pytest.mark.parametrize("name", ["reuters21578.tsv.gz", "win32docs.tsv.gz"])
def test_real_texts(name, data_folder):
    """On real texts, in which passages of up to a whole text are repeated, all are found, and no more."""
    path = data_folder / name
    if not path.exists():
        pytest.skip(f"{name} is not here")
    with gzip.open(path, "rb") as file:
        lines = [line for line in file.read(6_000_000).split(b"\n")[:-1] if line.isascii()]
    texts = [max(line.split(b"\t"), key=len) for line in lines]
    total = np.cumsum([len(text) for text in texts])
    texts = texts[: int(np.searchsorted(total, 500_000))]
    check_long(texts, 60)


def check_long(texts: list[bytes], window: int) -> None:
    """Compare what is cut of longer texts with the twin for these."""
    found, cut = lsh.find_passages(texts, window), [bytearray(len(text)) for text in texts]
    for document, start, end in found.cuts.tolist():
        cut[document][start:end] = b"\1" * (end - start)
    assert list(map(bytes, cut)) == reference.passages_of_ascii(texts, window)
    assert found.summary()["cut_bytes"] == sum(map(sum, cut)) > 10_000


@pytest.fixture(scope="module")
def quotations() -> list[str]:
    """Messages that quote earlier ones, with a footer; 2 MB."""
    draw = random.Random(7)
    words = ["".join(draw.choices("abcdefghiklmnoprstuvwy", k=draw.randint(1, 9))) for _ in range(5000)]
    messages: list[str] = []
    for _ in range(3000):
        text = " ".join(draw.choices(words, k=draw.randint(20, 100))) + "\n"
        if messages and draw.random() < 0.6:
            quoted = draw.choice(messages[-200:])
            start = draw.randint(0, len(quoted) // 2)
            text = quoted[start : start + draw.randint(50, 900)] + "\n" + text
        messages.append(text + "-- \nSent by the list of lists; write to the owner to leave it. Größe: ½\n")
    return messages


@pytest.mark.parametrize("max_memory", [None, "100KB", "3MB", "40MB"])
def test_bounds_threads_and_pieces_do_not_matter(quotations, max_memory):
    expected = lsh.find_passages(quotations, 70).spans
    assert len(expected) > 3000
    bound = {"max_memory": max_memory if max_memory != "100KB" else "110KB"}
    for threads in (1, 2, 5):
        given: Any = (lambda: iter(quotations)) if threads == 2 else quotations
        assert lsh.find_passages(given, 70, num_threads=threads, **bound).spans.tolist() == expected.tolist()
    data = [text.encode() for text in quotations]
    assert lsh.find_passages(iter(data), 70, **bound).spans.tolist() == expected.tolist()


def test_what_is_left(quotations):
    check_long([text.encode("ascii", "ignore") for text in quotations[:500]], 70)
    found = lsh.find_passages(quotations, 70)
    left = list(found.cut(quotations))
    summary = found.summary()
    assert summary["bytes"] - summary["cut_bytes"] == sum(len(text.encode()) for text in left)
    assert summary["cut_documents"] == sum(map(str.__ne__, left, quotations))
    assert summary["emptied"] == left.count("")
    assert len(lsh.find_passages(left, 70).spans) < 20  # where two runs that are left meet, a new one may begin
    data = [text.encode() for text in quotations]
    assert [text.decode() for text in found.cut(data)] == left
    for document in (0, 17, 2999):
        for row, own in zip(found.text_spans(document, quotations[document]), spans_of(found, document)):
            assert quotations[document][row["start"] : row["end"]].encode() == data[document][own["start"] : own["end"]]


def spans_of(found: lsh.Passages, document: int) -> np.ndarray[Any, Any]:
    return found.spans[found.spans["document"] == document]


@pytest.mark.few(1)
@pytest.mark.parametrize("unit", ["line", "paragraph"])
def test_units(unit):
    """Lines and paragraphs are cut where an equal one was kept."""
    draw = random.Random(unit)
    lines = ["", " ", "\t", "One line", "one LINE", "A. B", "a b", "Größe", "größe", "x", "A  line", "a line\r"]
    shingles = lsh.Shingles(lowercase=True, strip_punctuation=True, collapse_whitespace=True)
    for _ in range(round(2000 * strategies.SCALE)):
        texts = ["\n".join(draw.choices(lines, k=draw.randint(0, 7))) for _ in range(draw.randint(1, 5))]
        least, own = draw.randint(1, 6), draw.choice([None, shingles])
        found = lsh.find_passages(texts, least, unit=unit, shingles=own)
        rows = [[tuple(row)[1:] for row in spans_of(found, i).tolist()] for i in range(len(texts))]
        normal: Any = str if own is None else own.apply
        assert rows == reference.repeated_units(texts, unit == "paragraph", least, normal), texts


TWICE = ["abcdefgh" * 10] * 2
BAD = [
    ({"texts": "one text"}, TypeError, "texts must be a collection of texts, got one str"),
    ({"min_bytes": 7}, ValueError, "min_bytes must be 8 or more with unit='bytes', got 7"),
    ({"min_bytes": 0, "unit": "line"}, ValueError, "min_bytes must be 1 or more, got 0"),
    ({"min_bytes": 2**30}, ValueError, "min_bytes must be at most 16777216"),
    ({"unit": "word"}, ValueError, "unit must be one of 'bytes', 'line', 'paragraph', got 'word'"),
    ({"keep": [1]}, ValueError, "keep must have one number or date for each text (2), got 1"),
    ({"against": 50}, TypeError, "against must be a collection of texts, got the number 50; to set min_bytes, write"),
    ({"texts": [None, "x"]}, ValueError, "texts[0] is None"),
    ({"shingles": lsh.Shingles(lowercase=True)}, ValueError, "shingles normalises, and cannot be combined with unit="),
    ({"shingles": 4, "unit": "line"}, TypeError, "shingles must be a Shingles, got int"),
    ({"max_memory": 99_999}, ValueError, "max_memory must be 100KB or more"),
    ({"texts": lambda: iter([TWICE[0], random.random().hex()] * 2)}, ValueError, "differs between the first and the"),
]


@pytest.mark.parametrize(("given", "error", "message"), BAD, ids=[message for _, _, message in BAD])
def test_misuse(given, error, message):
    with pytest.raises(error) as raised:
        lsh.find_passages(**{"texts": TWICE, "min_bytes": 8, **given})
    assert str(raised.value).startswith(message) or message in str(raised.value)


def test_an_index_has_no_passages(folder):
    with lsh.Index.create(folder, threshold=0.8) as index, pytest.raises(TypeError, match="got an index"):
        lsh.find_passages(TWICE, against=index)


def test_other_texts_cannot_be_cut():
    found = lsh.find_passages(TWICE, 8)
    for texts, message in ((TWICE[:1], "got 1"), (TWICE * 2, "got more"), (["x", "y"], "it has 1 byte as")):
        with pytest.raises(ValueError, match=message):
            list(found.cut(texts))
    with pytest.raises(IndexError):
        found.text_spans(2, "")
    with pytest.raises(AttributeError, match="immutable"):
        found.spans = None
    assert pickle.loads(pickle.dumps(found)).cuts.tolist() == found.cuts.tolist()
    assert repr(found) == "<Passages: 19 passages cut from 2 of 2 documents>"


@pytest.mark.parametrize("kind", ["list", "bytes", "numpy", "arrow", "pandas", "callable", "bytearray"])
def test_texts_of_every_type(kind):
    texts: Any = ["größer als " + "xyz" * 5] * 2
    if kind == "numpy":
        texts = np.array(texts)
    elif kind == "arrow":
        texts = pytest.importorskip("pyarrow").chunked_array([texts[:1], texts[1:]])
    elif kind == "pandas":
        texts = pytest.importorskip("pandas").Series(texts)
    elif kind != "list" and kind != "callable":
        texts = [(bytes if kind == "bytes" else bytearray)(text.encode()) for text in texts]
    found = lsh.find_passages((lambda: iter(texts)) if kind == "callable" else texts, 20)
    first = texts[0].as_py() if kind == "arrow" else texts[0]
    left = list(found.cut(texts))
    assert left == [first, first[:0]]
    assert type(left[1]) is type(first) or kind == "numpy"


@pytest.mark.slow
@pytest.mark.parametrize("max_memory", ["200KB", "5MB", "20MB"])
def test_the_peak_of_a_process(max_memory):
    """60 MB of texts, of which a third is repeated: within the bound and what the documentation says beside it."""
    program = f"""
import random, lsh
def read():
    draw = random.Random(0)
    pool = [draw.randbytes(400).hex() for _ in range(2000)]
    for i in range(8000):
        yield draw.randbytes(2500).hex() + draw.choice(pool) + draw.choice(pool) + draw.choice(pool)
def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) * 1024
list(zip(read(), range(10)))
before = peak()
found = lsh.find_passages(read, max_memory={max_memory!r}, num_threads=2)
assert len(found) > 10000
print(peak() - before - found.spans.nbytes)
"""
    result = process(Path(), python=["-c", program])
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) < memory_size(max_memory) + 70_000_000


@pytest.mark.parametrize("keep", ["last", "longest"])
def test_the_bound_that_an_error_names_is_enough(keep):
    """For a list at once; a callable that does not tell its length is read until the bound is too small."""
    texts, each = ["x"] * 20_000, 24 if keep == "last" else 40
    message = rf"must be {20 * each}KB or more for 20,000 documents, {each} bytes each, got 100,000 bytes"
    with pytest.raises(ValueError, match=message):
        lsh.find_passages(texts, keep=keep, max_memory="100KB")
    assert len(lsh.find_passages(texts, keep=keep, max_memory=20_000 * each)) == 0
    with pytest.raises(ValueError, match="documents read so far"):
        lsh.find_passages(lambda: iter(texts), keep=keep, max_memory="100KB")
