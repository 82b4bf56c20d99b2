"""The log: the changes that were committed since the manifest was written, as records with checksums.

A commit ends with a commit record; what follows the last one was never committed. After a commit was synced, its end is
also written into the header, without a sync: a log that is shorter, or damaged before this place, has lost a commit.
"""

from __future__ import annotations

import contextlib
import math
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lsh.base.arrays import Array
from lsh.segments import file_format
from lsh.segments.disk import Disk, DiskFile, write_file
from lsh.segments.file_format import ADD, COMMIT, LOG_HEADER, LOG_MAGIC, RECORD, REMOVAL, REMOVE, IndexDamagedError
from lsh.segments.segment import DocumentBatch, SegmentLayout

HINT = 32  # offset of `committed` in the header


@dataclass
class LogChange:
    """A change that a log records: documents that are added, or places of documents that are removed."""

    added: DocumentBatch | None = None
    removed: Array = field(default_factory=lambda: np.empty(0, REMOVAL))


def header(number: int) -> bytes:
    """Return the content of a new log."""
    fixed = file_format.structure(LOG_HEADER, magic=LOG_MAGIC, version=file_format.VERSION, number=number)[:24]
    return fixed + file_format.checksum(fixed).to_bytes(8, "little") + _hint(number, LOG_HEADER.itemsize) + bytes(16)


def _hint(number: int, committed: int) -> bytes:
    size = committed.to_bytes(8, "little")
    return size + file_format.checksum(size, number).to_bytes(8, "little")


def create_log(disk: Disk, folder: str, number: int) -> str:
    """Write an empty log, and return its name."""
    name = file_format.file_name("log", number)
    write_file(disk, os.path.join(folder, name), header(number))
    return name


def _record(number: int, offset: int, kind: int, payload: bytes) -> bytes:
    """Return a record for an offset of a log; its checksum covers its place, too."""
    payload += bytes(file_format.padding(len(payload), 8))
    head = file_format.structure(RECORD, size=len(payload), kind=kind)
    return head[:16] + _record_checksum(number, offset, head[:16], payload).to_bytes(8, "little") + payload


def _record_checksum(number: int, offset: int, head: Any, payload: Any) -> int:
    place = b"".join([number.to_bytes(8, "little"), offset.to_bytes(8, "little"), bytes(head)])
    return file_format.checksum(place + file_format.checksum(payload).to_bytes(8, "little"))


def _payload_of(documents: DocumentBatch) -> bytes:
    id_ends, id_bytes = file_format.joined(documents.codes)
    arrays = {
        "keys": documents.keys.astype("<u8"),
        "keyed": documents.keyed.astype(np.uint8),
        "sketches": documents.sketches,
        "times": documents.times.astype("<i8"),
        "id_ends": id_ends.astype("<u8"),
        "id_bytes": id_bytes,
    }
    if documents.texts is not None:
        ends, data = file_format.joined(documents.texts)
        arrays |= {"text_ends": ends.astype("<u8"), "text_bytes": data}
    return file_format.packed(arrays)


def _documents_of(payload: Array, layout: SegmentLayout) -> DocumentBatch:
    """Return the documents of a payload; a ValueError if something does not fit."""
    arrays = file_format.unpacked(payload)
    wanted = {"keys", "keyed", "sketches", "times", "id_ends", "id_bytes"}
    wanted |= {"text_ends", "text_bytes"} if layout.texts else set()
    if set(arrays) != wanted:
        raise ValueError("its arrays are not those of documents")
    codes = list(file_format.split(_items(arrays["id_ends"], "<u8"), arrays["id_bytes"]))
    for code in codes:
        file_format.decoded_id(code)
    n = len(codes)
    if len(set(codes)) != n:
        raise ValueError("an id occurs twice")
    texts = list(file_format.split(_items(arrays["text_ends"], "<u8"), arrays["text_bytes"])) if layout.texts else None
    if texts is not None and len(texts) != n:
        raise ValueError("the number of texts is wrong")
    return DocumentBatch(
        codes,
        _items(arrays["keys"], "<u8", n, layout.bands).astype(np.uint64),
        _items(arrays["keyed"], "u1", n, 1)[:, 0] != 0,
        _items(arrays["sketches"], layout.dtype, n, layout.components),
        _items(arrays["times"], "<i8", n, 1)[:, 0].astype(np.int64),
        texts,
    )


def _items(data: Array, dtype: Any, *shape: int) -> Array:
    """Return bytes as an array of this type, and, if it is given, of this shape."""
    wanted = np.dtype(dtype)
    if len(data) % wanted.itemsize or (shape and len(data) != math.prod(shape) * wanted.itemsize):
        raise ValueError("an array has a wrong size")
    items: Array = data.view(wanted).reshape(shape or (-1,))
    return items


class LogWriter:
    """Appends commits to a log. After an error, the log must not be used again."""

    def __init__(self, disk: Disk, folder: str, name: str, committed: int) -> None:
        self._number = file_format.file_number("log", name) or 0
        self._file: DiskFile = disk.open(os.path.join(folder, name))
        try:
            if self._file.size > committed:  # the rest was never committed
                self._file.cut(committed)
                self._file.sync()
        except BaseException:
            self._file.close()
            raise

    @property
    def size(self) -> int:
        """The size of the log in bytes."""
        return self._file.size

    def commit(self, changes: list[LogChange]) -> None:
        """Append the changes and a commit record, and return when they are on the disk.

        `note_size` follows when the caller knows of the commit: what the header names is never cut off.
        """
        parts: list[bytes] = []
        at = self._file.size
        for kind, payload in (*_payloads(changes), (COMMIT, b"")):
            parts.append(_record(self._number, at, kind, payload))
            at += len(parts[-1])
        self._file.write(b"".join(parts))
        self._file.sync()

    def note_size(self) -> None:
        """Write into the header how many bytes are committed."""
        with contextlib.suppress(OSError):  # the commit itself is complete
            self._file.overwrite(_hint(self._number, self._file.size), HINT)

    def abandon(self, committed: int) -> None:
        """Cut off a commit that failed, before `note_size`, if this is possible, and close the file."""
        with contextlib.suppress(OSError):
            self._file.cut(committed)
            self._file.sync()
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _payloads(changes: list[LogChange]) -> list[tuple[int, bytes]]:
    """Return the kind and the payload of a record for each change."""
    records = []
    for change in changes:
        if len(change.removed):
            count = len(change.removed).to_bytes(8, "little")
            records.append((REMOVE, count + change.removed.tobytes()))
        if change.added is not None:
            records.append((ADD, _payload_of(change.added)))
    return records


class LogReader:
    """Reads the commits of a log, from its beginning or from where the last reading ended."""

    def __init__(self, folder: str, name: str, layout: SegmentLayout) -> None:
        self.path = os.path.join(folder, name)
        self._number = file_format.file_number("log", name) or 0
        self._layout = layout
        self.committed = LOG_HEADER.itemsize  # where the last commit ends that was read
        self.commits = self.removals = 0  # that were read

    def damage(self, what: str) -> IndexDamagedError:
        """Return the error that the file is damaged."""
        return file_format.damaged(self.path, what)

    def read(self, limit: int | None = None) -> list[LogChange]:
        """Return the changes that were committed since the last call, before the place `limit` of the log."""
        with open(self.path, "rb", buffering=0) as file:
            head = file.read(LOG_HEADER.itemsize)  # before the rest: what it names as committed is there then
            known = self._known_size(head)
            if (size := file.seek(0, os.SEEK_END)) < self.committed:
                raise self.damage(f"it has {size} bytes, and {self.committed} were committed")
            file.seek(self.committed)
            data = file.readall() or b""
        data = data if limit is None else data[: max(limit - self.committed, 0)]
        first = self.committed
        if known > first + len(data):
            raise self.damage(f"it has {first + len(data)} bytes, and {known} were committed")
        changes: list[LogChange] = []
        pending: list[tuple[int, int, Array]] = []
        at, content = 0, np.frombuffer(data, np.uint8)
        while (record := self._record_at(content, first, at)) is not None:
            kind, payload = record
            if kind == COMMIT:
                changes += [self._change(*one) for one in pending]
                pending = []
                self.committed = first + at + RECORD.itemsize
                self.commits += 1
            else:
                pending.append((first + at, kind, payload))
            at += RECORD.itemsize + len(payload)
        if self.committed < known:
            raise self.damage(f"the record at byte {first + at} is not whole, and {known} bytes were committed")
        return changes

    def _known_size(self, head: bytes) -> int:
        """Check the header, and return how many bytes were committed at least."""
        if len(head) < LOG_HEADER.itemsize:
            raise self.damage("it is too short")
        fields = file_format.parsed(LOG_HEADER, head)
        if (fields["magic"], fields["version"], fields["number"]) != (LOG_MAGIC, file_format.VERSION, self._number):
            raise self.damage(f"it does not begin as this log of format version {file_format.VERSION}")
        if fields["checksum"] != file_format.checksum(head[:24]):
            raise self.damage("the checksum of its header is wrong")
        known: int = fields["committed"]
        return known if head[HINT : HINT + 16] == _hint(self._number, known) else 0

    def _record_at(self, content: Array, first: int, at: int) -> tuple[int, Array] | None:
        """Return the kind and the payload of a record, ``None`` where no whole one is."""
        end = at + RECORD.itemsize
        if end > len(content):
            return None
        ((size, kind, _, checksum),) = content[at:end].view(RECORD).tolist()
        if size > len(content) - end:
            return None
        payload = content[end : end + size]
        if checksum != _record_checksum(self._number, first + at, content[at : at + 16].tobytes(), payload):
            return None
        return kind, payload

    def _change(self, offset: int, kind: int, payload: Array) -> LogChange:
        try:
            if kind == ADD:
                return LogChange(_documents_of(payload, self._layout))
            if kind == REMOVE and len(payload) >= 8:
                count = int(payload[:8].view("<u8")[0])
                self.removals += count
                return LogChange(None, _items(payload[8:], REMOVAL, count))
        except ValueError as error:
            raise self.damage(f"record at byte {offset}: {error}") from None
        raise self.damage(f"record at byte {offset}: its kind is unknown")
