"""The note of an index: a few plain values that are stored with it, such as the thresholds of a screen.

It is a small file, replaced in one step and checked before it is used.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from lsh.index import _format
from lsh.index._disk import Disk, write_file
from lsh.index._format import HEADER, DamageError

NOTE, NEW_NOTE, MAGIC = "note", "note.new", b"lsh-note"
MAX_BYTES = 1 << 16


def read(folder: str) -> dict[str, dict[str, Any]]:
    """Return the note of an index, empty if it has none: for each use of it, values by name."""
    path = os.path.join(folder, NOTE)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return {}
    size = HEADER.itemsize
    if len(data) < size + 8 or data[-8:] != _format.checksum(data[:-8]).to_bytes(8, "little"):
        raise DamageError(f"{path} is damaged: its checksum is wrong")
    head = _format.parsed(HEADER, data)
    try:
        note = json.loads(data[size:-8])
    except (ValueError, RecursionError) as error:
        raise DamageError(f"{path} is damaged: {error}") from None
    is_note = isinstance(note, dict) and all(isinstance(value, dict) for value in note.values())
    if (head["magic"], head["version"]) != (MAGIC, _format.VERSION) or not is_note:
        raise DamageError(f"{path} is not the note of an index of format version {_format.VERSION}")
    return dict(note)


def replace(folder: str, note: dict[str, dict[str, Any]] | None) -> None:
    """Make this the note of an index, ``None`` for no note; the caller holds the lock of the writer."""
    if note is None:
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(folder, NOTE))
        return
    body = json.dumps(note, sort_keys=True, separators=(",", ":")).encode()
    if len(body) > MAX_BYTES:
        raise ValueError(f"note must have at most {MAX_BYTES} bytes as JSON, got {len(body)}")
    head = _format.structure(HEADER, magic=MAGIC, version=_format.VERSION, size=len(body))
    disk, new = Disk(), os.path.join(folder, NEW_NOTE)
    with contextlib.suppress(FileNotFoundError):
        disk.remove(new)
    content = head + body
    write_file(disk, new, content + _format.checksum(content).to_bytes(8, "little"))
    disk.rename(new, os.path.join(folder, NOTE))
    disk.sync_folder(folder)
