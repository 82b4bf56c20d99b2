"""Write the small indexes of a format version, which every later release must read.

``python tests/store/make_golden.py FOLDER`` writes them into a new folder. Those of version 2 are in
``golden/2``; they are never written again.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lsh
from lsh.store import writer
from lsh.store.index import Index

TEXTS = [
    "The ferry to the outer islands was two hours late on Monday.",
    "The ferry to the outer islands was two hours late on Tuesday.",
    "Onions dear this week; growers blame wet fields.",
    "Hopan silta suljettiin keskipäivällä, koska sen kolmas pultti oli puuta.",
    "",
    "A seal had fallen asleep on the slipway \U0001f9ad and would not be woken.",
]
KINDS: dict[str, dict[str, Any]] = {
    "texts": {"texts": "stored", "period": 10.0},
    "8bit": {"texts": None},
    "full": {"sketch": "full", "texts": None},
}
IDENTITY = "0123456789abcdef"  # else it is random
IDS = ["a", b"\xff", 3, -(2**63), "empty", "\ud800"]


def write(folder: Path, kind: str) -> dict[str, Any]:
    """Write an index with two segments, removed documents and a log, and return what it must answer."""
    hasher = lsh.MinHasher(12, scheme="fss" if kind != "full" else "murmur3", shingles=lsh.Shingles(3))
    with Index.create(folder, hasher, threshold=0.8, recall=0.9, **KINDS[kind]) as index:
        index.add_docs(TEXTS, IDS, times=[float(i) if i != 2 else None for i in range(6)])
        index.compact()
        index.add_docs(TEXTS[:3], [100, 101, 102])
        index.remove(-(2**63))
        index._writer._state.needs_manifest = True  # type: ignore[union-attr]
        index.commit()
        index.add(TEXTS[1], "in the log", time=1.5)
        index.remove(101)
        index.commit()
        return answers(index)


def answers(index: Index) -> dict[str, Any]:
    """Return the answers of an index as values of JSON."""
    stored = index.info()["texts"]
    return {
        "ids": [repr(doc_id) for doc_id in index],
        "times": [index.time_of(doc_id) for doc_id in index],
        "texts": [index.text_of(doc_id).decode() for doc_id in index] if stored else None,
        "queries": [
            [[repr(match.id), match.similarity, list(match.interval), match.verified] for match in matches]
            for matches in index.query_docs([*TEXTS, TEXTS[0] + "!"])
        ],
        "by_id": [repr([match.id for match in index.query(id=doc_id)]) for doc_id in index],
    }


def main(folder: Path, tell: Callable[[str], None]) -> None:
    writer.new_identity = lambda: IDENTITY
    expected = {kind: write(folder / kind, kind) for kind in KINDS}
    for kind in KINDS:
        (folder / kind / "lock").unlink()
    (folder / "expected.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n", encoding="utf-8")
    tell(f"{sum(path.stat().st_size for path in folder.rglob('*') if path.is_file())} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), print)
