"""Small indexes for tests: their settings, texts and contents, and limits that make few documents fill files."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import lsh
import lsh.store.view
import lsh.store.writer
from lsh.segments import file_format
from lsh.store.index import Index

FERRY = (
    "The ferry to the outer islands was two hours late on Monday because a seal had fallen asleep on the slipway "
    "and the harbour master would not have it woken. Passengers were served soup."
)
FERRY_LESS = FERRY.replace("outer ", "")  # one word removed
HASHER = lsh.MinHasher(16, scheme="fss", shingles=lsh.Shingles(4))
SETTINGS: dict[str, Any] = {"hasher": HASHER, "threshold": 0.8, "recall": 0.9, "texts": "stored"}
LIMITS = {"MAX_RECENT": 12, "MAX_LOGGED": 7, "MAX_SIMILAR": 2, "MAX_PENDING": 3, "SMALLEST": 4}


def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few documents fill the log, and few segments be merged."""
    for name, value in LIMITS.items():
        monkeypatch.setattr(lsh.store.writer, name, value)


def patch_read_manifest(monkeypatch: pytest.MonkeyPatch, function: Any) -> None:
    """Replace the function that reads manifests, where it is used."""
    for module in (lsh.store.index, lsh.store.view):
        monkeypatch.setattr(module, "read_manifest", function)


def text(number: int) -> str:
    """A text that is similar to no other one."""
    rng = random.Random(number)
    return f"{number} " + "".join(rng.choice("abcdefghijklmnopqrstuvwxyz ") for _ in range(30 + number % 50))


def contents(index: Index) -> dict[Any, tuple[str, float | None]]:
    """All documents of an index; each must be found by its text, and the index must say the same in all ways."""
    ids = list(index)
    found = {}
    for doc_id, matches in zip(ids, index.query_docs([index.text_of(doc_id) for doc_id in ids])):
        stored = index.text_of(doc_id).decode()
        assert doc_id in [match.id for match in matches if match.similarity == 1.0 and match.verified] or not stored
        assert doc_id in index
        found[doc_id] = (stored, index.time_of(doc_id))
    assert len(found) == len(ids) == len(index)
    return found


def reopened(folder: Path) -> dict[Any, tuple[str, float | None]]:
    """The contents of an index as another process sees it."""
    with Index.open(folder) as index:
        index.verify()
        return contents(index)


def seal_manifest(folder: Path, change: Any) -> None:
    """Change the values of the manifest."""
    path = folder / "manifest"
    data = path.read_bytes()
    values = json.loads(data[file_format.HEADER.itemsize : -8])
    change(values)
    body = json.dumps(values).encode()
    head = file_format.structure(
        file_format.HEADER, magic=file_format.MANIFEST_MAGIC, version=file_format.VERSION, size=len(body)
    )
    path.write_bytes(head + body + file_format.checksum(head + body).to_bytes(8, "little"))
