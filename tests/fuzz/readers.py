"""The readers above the kernels with any input, under libFuzzer: `python readers.py TARGET [LIBFUZZER_ARGUMENT...]`.

Each target compares what the compiled modules read with a slow twin: Python's ``json`` and ``csv``, the definitions of
Arrow's layouts, and tests/reference.py. The target ``index`` changes the files of an index and makes their checksums
right again; then each use must end with an answer or with an error that names a file. `.ci/fuzz` builds the extensions
for it; it needs the package ``atheris``, which embeds libFuzzer in Python.
"""

import dataclasses
import random
import struct
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import atheris

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "store")]

with atheris.instrument_imports(include=["lsh"]):
    import lsh
    from lsh.files._fields import delimited_cells, json_fields
    from lsh.text.collections import as_batch

import producer  # noqa: E402
import reference  # noqa: E402

MANY = sys.maxsize


def check(holds: bool, *what: object) -> None:
    """Fail, with an error that no target expects."""
    if not holds:
        raise AssertionError(what)


def read_json(data: bytes) -> None:
    """What is found is what Python's json finds."""
    found = json_fields(data, (b"a",), (b"id", b""))
    if found is None:
        return
    (texts,), names, spans = found
    rows = reference.json_fields(data, ["a", "id", ""])
    check(rows is not None and len(rows) == len(spans), rows)
    assert rows is not None
    check(texts.tolist() == [row[0].encode() for row in rows], rows)
    for place, column in enumerate(names, 1):
        written = [row[place] for row in rows]
        if column is None:
            check(not any(written), rows)
        else:
            check(column.tolist() == [str(value).encode() for value in written], rows)
    lines = [data[begin : begin + size] for begin, size in spans.tolist()]
    check(lines == [line for line in data.splitlines(True) if line.strip(b" \t\r\n")] or b"\r" in data, lines)


def read_cells(data: bytes) -> None:
    """What is found is what Python's csv finds, and what `bytes.split` finds."""
    by, block = b",;\ta"[data[0] % 4 : data[0] % 4 + 1] if data else b",", data[1:]
    found = delimited_cells(block, by, (0,), 1, MANY, True)
    if found is not None:
        (cells,), spans, used = found
        rows = reference.csv_cells(block[:used], by)
        check(rows is not None and cells.tolist() == [row[0] for row in rows], rows)
        check(len(spans) == len(cells) and used <= len(block), used)
    rows = reference.line_cells(block, by)
    again = delimited_cells(block, by, (0, 1), 2, MANY, False)
    check((again is not None) == all(len(row) > 1 for row in rows), rows)
    if again is not None:
        check([column.tolist() for column in again[0]] == [[row[place] for row in rows] for place in (0, 1)], rows)


# ---- Arrow ----


def some_offsets(take: Any, code: str, count: int, size: int) -> list[int]:
    """Offsets that may descend or be negative, but not exceed their buffer, as that cannot be seen."""
    low = -(2**31) if code == "i" else -(2**63)
    return (
        [low if take.ConsumeBool() else take.ConsumeIntInRange(-2, size) for _ in range(count)]
        if (take.ConsumeProbability() < 0.2)
        else sorted(take.ConsumeIntInRange(0, size) for _ in range(count))
    )


Texts = list[Any]  # bytes, None for a missing text, or ValueError for one that must be refused


def some_array(take: Any, layout: str, rows: int) -> tuple[producer.Node, Texts]:
    """An array of `rows` elements behind its offset, and its texts."""
    first = take.ConsumeIntInRange(0, 3)
    count = first + rows
    has_validity = take.ConsumeBool()
    flags = [take.ConsumeBool() if has_validity else True for _ in range(count)]
    body = take.ConsumeBytes(take.ConsumeIntInRange(0, 60))
    texts: Texts
    if layout.startswith("w:"):
        width = int(layout[2:])
        body = body.ljust(width * count, b"x")
        texts = [body[width * i : width * i + width] for i in range(count)]
        buffers: tuple[bytes | None, ...] = (body,)
    elif layout in producer.OFFSETS:
        code = producer.OFFSETS[layout]
        ends = some_offsets(take, code, count + 1, len(body))
        texts = [body[begin:end] if 0 <= begin <= end else ValueError for begin, end in pairwise(ends)]
        buffers = producer.packed(code, ends), body
    else:
        views, texts = [], []
        for _ in range(count):
            view = take.ConsumeBytes(16).ljust(16, b"\0")
            size, _, buffer, offset = struct.unpack("<Iiii", view)
            if size <= 12:
                texts.append(view[4 : 4 + size])
            else:
                within = buffer == 0 and offset >= 0 and offset + size <= len(body)
                texts.append(body[offset : offset + size] if within else ValueError)
            views.append(view)
        buffers = b"".join(views), body, producer.packed("q", [len(body)])
    validity = producer.bitmap(flags) if has_validity else None
    nulls = -1 if has_validity else 0
    texts = [text if valid else None for text, valid in zip(texts, flags)]
    return producer.Node(layout, rows, (validity, *buffers), first, nulls), texts[first:]


def read_arrow(data: bytes) -> None:
    """Texts at valid places are read, and a place that is not valid is an error."""
    take = atheris.FuzzedDataProvider(data)
    layout = take.PickValueInList(["u", "z", "U", "Z", "vu", "vz", "w:0", "w:3"])
    rows = take.ConsumeIntInRange(0, 6)
    node, texts = some_array(take, layout, rows)
    if take.ConsumeBool():  # a dictionary
        index = take.PickValueInList(list(producer.INDICES))
        size = struct.calcsize(producer.INDICES[index])
        count = take.ConsumeIntInRange(0, 6)
        numbers = [
            int.from_bytes(take.ConsumeBytes(size).ljust(size, b"\0"), "little", signed=index.islower())
            if take.ConsumeProbability() < 0.2
            else take.ConsumeIntInRange(0, 6)
            for _ in range(count)
        ]
        body = producer.packed(producer.INDICES[index], numbers)
        texts = [texts[number] if 0 <= number < rows else ValueError for number in numbers]
        node = producer.Node(index, count, (None, body), dictionary=node)
    if take.ConsumeBool():  # a table of one column
        offset = take.ConsumeIntInRange(0, node.length)
        node, texts = producer.table(node, offset=offset), texts[offset:]
    wrong = take.ConsumeIntInRange(0, 9)  # one time out of five a structure that must be refused
    if wrong < 2:
        value = take.PickValueInList([-1, -(2**63), 2**63 - 1])
        node = dataclasses.replace(node, **({"length": value} if wrong else {"offset": value}))
    made = producer.Producer(node, stream=take.ConsumeBool())
    try:
        found: Any = as_batch("texts", made, True).tolist()
    except ValueError:
        found = ValueError
    refused = wrong < 2 or ValueError in texts
    check(found == (ValueError if refused else texts) or (refused and not texts), layout, found, texts)
    del found
    check(made.ledger.settled(), made.ledger)
    producer.ALIVE.clear()


# ---- shingles ----


def cut(data: bytes) -> None:
    """Similarities and fingerprints of any bytes, for all ways to shingle."""
    take = atheris.FuzzedDataProvider(data)
    how: dict[str, Any] = {
        "n": take.ConsumeIntInRange(1, 12),
        "unit": take.PickValueInList(["byte", "char", "word"]),
        "lowercase": take.ConsumeBool(),
        "collapse_whitespace": take.ConsumeBool(),
        "strip_punctuation": take.ConsumeBool(),
        "normalize": take.PickValueInList([None, "NFC", "NFKC"]),
    }
    shingles, hashbytes = lsh.Shingles(**how), take.PickValueInList([4, 8])
    scheme = take.PickValueInList(["murmur3", "fss"])
    half = take.ConsumeIntInRange(0, 40)
    first, second = take.ConsumeBytes(half), take.ConsumeBytes(80)
    check(lsh.jaccard(first, second, shingles=shingles) == reference.jaccard(first, second, **how), how)
    k = 1 + half % 7
    if scheme == "fss":
        hasher = lsh.MinHasher(k, scheme="fss", shingles=shingles)
        expected = reference.fss(second, k, 0, **how)
    else:
        hasher = lsh.MinHasher(k, hashbytes=hashbytes, shingles=shingles)
        expected = reference.fingerprint(second, hasher.seed_values.tolist(), hashbytes=hashbytes, **how)
    check(hasher.fingerprint(second).tolist() == list(expected), how)


# ---- index ----


class Drawn(random.Random):
    """Numbers that are drawn from the input."""

    take: Any

    def random(self) -> float:
        return float(self.take.ConsumeProbability())

    def getrandbits(self, k: int) -> int:
        return int(self.take.ConsumeIntInRange(0, (1 << k) - 1))


def prepared() -> Callable[[bytes], None]:
    """A target that changes the files of an index, as tests/store/test_hostile.py does."""
    import test_hostile as hostile

    made = hostile.make(Path(tempfile.mkdtemp()) / "made")

    def change(data: bytes) -> None:
        draw = Drawn()
        draw.take = atheris.FuzzedDataProvider(data)
        hostile.use_damaged(made, draw.choice(hostile.KINDS), draw)

    return change


def main() -> None:
    """Run a target; the other arguments are libFuzzer's."""
    name = sys.argv.pop(1)
    target = (
        prepared()
        if name == "index"
        else {"json": read_json, "cells": read_cells, "arrow": read_arrow, "cut": cut}[name]
    )
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
