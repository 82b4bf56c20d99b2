"""Writing segments: of documents in memory, or merged from other segments.

A merge copies sections in steps, without hashing or sorting anything again, and texts as compressed blocks where no
document of a block is removed. `_segment` reads what is written here.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsh._searching import block_sums, merged, sorted_keys
from lsh.index import _format
from lsh.index._disk import Disk, DiskFile
from lsh.index._format import BLOCK, FOOTER, NO_TIME, SECTION, SEGMENT_HEADER, TEXT_PLACE, Array
from lsh.index._segment import STEP, Documents, Segment, Written, ends_dtype

TEXT_BLOCK = 1 << 13  # bytes of texts that are compressed together
LEVEL = 1  # of zlib
DROPPED = 0xFFFFFFFF  # in place of a number in a merged segment

Kept = list[NDArray[np.bool_] | None]  # which documents of each part are kept; None for all


class SegmentWriter:
    """Writes the sections of a segment one after the other."""

    def __init__(self, disk: Disk, folder: str, name: str) -> None:
        self._name = name
        self._file: DiskFile = disk.create(os.path.join(folder, name))
        self._rest = bytearray()
        self._sums: list[Array] = []
        self._table: list[tuple[bytes, int, int]] = []
        self._size = 0
        self._write(_format.structure(SEGMENT_HEADER, magic=_format.SEGMENT_MAGIC, version=_format.VERSION))

    def _write(self, data: Any) -> None:
        view = memoryview(data).cast("B")
        self._size += len(view)
        at = 0
        if self._rest:
            at = min(BLOCK - len(self._rest), len(view))
            self._rest += view[:at]
            if len(self._rest) < BLOCK:
                return
            self._write_blocks(memoryview(self._rest))
            self._rest = bytearray()
        whole = at + (len(view) - at) // BLOCK * BLOCK
        if whole > at:
            self._write_blocks(view[at:whole])
        self._rest += view[whole:]

    def _write_blocks(self, view: memoryview) -> None:
        self._sums.append(block_sums(view))
        self._file.write(view)

    def section(self, name: str, parts: Iterable[Array]) -> None:
        """Write a section, the parts one after the other."""
        self._write(bytes(_format.padding(self._size)))
        begin = self._size
        for part in parts:
            if part.nbytes:
                self._write(np.ascontiguousarray(part).view(np.uint8).reshape(-1))
        self._table.append((name.encode(), begin, self._size - begin))

    def keys(self, label: str, triple: tuple[Array, Array, Array]) -> None:
        """Write the three sections of sorted keys."""
        for name, array in zip(("keys", "numbers", "directory"), triple):
            self.section(f"{name}.{label}", [array])

    def finish(self, documents: int, keyed: int, times: tuple[int, int, int] | None) -> Written:
        """Write the checksums and the footer, and sync the file."""
        self._write(bytes(_format.padding(self._size)))
        if self._rest:
            self._write_blocks(memoryview(bytes(self._rest)))
        table = np.array(self._table, SECTION)
        footer = _format.structure(
            FOOTER,
            magic=_format.SEGMENT_MAGIC,
            version=_format.VERSION,
            sections=len(table),
            documents=documents,
            keyed=keyed,
            sums=self._size,
        )
        end = np.concatenate(self._sums).astype("<u8").tobytes() + table.tobytes() + footer[:-8]
        checksum = _format.checksum(end)
        self._file.write(end + checksum.to_bytes(8, "little"))
        self._file.sync()
        return Written(self._name, documents, self._file.size, checksum, times)

    def close(self) -> None:
        self._file.close()


def write_segment(disk: Disk, folder: str, name: str, documents: Documents) -> Written:
    """Write documents, whose ids differ from each other, as a segment."""
    writer = SegmentWriter(disk, folder, name)
    try:
        numbers = np.arange(len(documents), dtype=np.uint32)
        keyed = numbers[documents.keyed]
        for band, keys in enumerate(documents.keys.T):
            chosen = keys if len(keyed) == len(keys) else keys[keyed]  # the first is much faster
            writer.keys(str(band), sorted_keys(np.ascontiguousarray(chosen), keyed))
        writer.keys("ids", sorted_keys(_format.hashed_ids(documents.codes), numbers))
        writer.section("sketches", [documents.sketches])
        _write_ids(writer, documents.codes)
        known = documents.times[documents.times != NO_TIME]
        if len(known):
            writer.section("times", [documents.times.astype("<i8")])
        if documents.texts is not None:
            blocks = _TextBlocks()
            writer.section("texts", blocks.packed(documents.texts))
            blocks.write_tables(writer)
        times = (int(known.min()), int(known.max()), len(known)) if len(known) else None
        return writer.finish(len(documents), len(keyed), times)
    finally:
        writer.close()


def _write_ids(writer: SegmentWriter, codes: list[bytes]) -> None:
    """Write encoded ids, as int64 where all are numbers."""
    ends, data = _format.joined(codes)
    size = 9  # of an encoded number
    if np.array_equal(ends, np.arange(1, len(codes) + 1, dtype=np.uint64) * np.uint64(size)):
        rows = data.reshape(-1, size)
        if (rows[:, 0] == ord("i")).all():
            writer.section("ids", [rows[:, 1:]])
            return
    writer.section("id_ends", [ends.astype(ends_dtype(len(data)))])
    writer.section("id_bytes", [data])


class _TextBlocks:
    """Texts packed into compressed blocks, and the tables by which they are found."""

    def __init__(self) -> None:
        self.ends: list[int] = []  # of each block, in the section of texts
        self.sizes: list[int] = []  # of each block, not compressed
        self.places: list[Array] = []
        self._end = 0
        self._open: list[bytes] = []  # texts of the block that is not full yet
        self._open_size = 0

    def packed(self, texts: Iterable[bytes]) -> Iterator[Array]:
        """Yield the blocks of texts, and remember where each text is."""
        listed = list(texts)
        places = np.empty(len(listed), TEXT_PLACE)
        self.places.append(places)
        for i, text in enumerate(listed):
            if self._open and self._open_size + len(text) > TEXT_BLOCK:
                yield self._packed_block()
            places[i] = len(self.ends), self._open_size, len(text)
            self._open.append(text)
            self._open_size += len(text)
        if self._open:
            yield self._packed_block()

    def _packed_block(self) -> Array:
        raw = b"".join(self._open)
        small = zlib.compress(raw, LEVEL)
        stored = small if len(small) < len(raw) else raw
        self._open, self._open_size = [], 0
        return self.append(np.frombuffer(stored, np.uint8), len(raw))

    def append(self, stored: Array, size: int) -> Array:
        """Append a block as it is stored; `size` is that of its texts."""
        self._end += len(stored)
        self.ends.append(self._end)
        self.sizes.append(size)
        return stored

    def write_tables(self, writer: SegmentWriter) -> None:
        writer.section("text_ends", [np.array(self.ends, "<u8")])
        writer.section("text_sizes", [np.array(self.sizes, "<u4")])
        writer.section("text_places", self.places)


def merge_segments(
    disk: Disk, folder: str, name: str, parts: list[Segment], removed: list[NDArray[np.bool_] | None]
) -> Written:
    """Write the documents of several segments, in order, without those that are removed, as one segment."""
    kept = [None if mask is None else ~mask for mask in removed]
    counts = [part.documents if keep is None else int(keep.sum()) for part, keep in zip(parts, kept)]
    writer = SegmentWriter(disk, folder, name)
    try:
        keyed = _merge_keys(writer, parts, _renumbered(parts, kept))
        writer.section("sketches", _kept_items(parts, kept, "sketches", parts[0].layout.components))
        _merge_ids(writer, parts, kept)
        times = _merge_times(writer, parts, kept)
        if parts[0].layout.texts:
            blocks = _TextBlocks()
            writer.section("texts", _merged_texts(blocks, parts, kept))
            blocks.write_tables(writer)
        return writer.finish(sum(counts), keyed, times)
    finally:
        writer.close()


def _renumbered(parts: list[Segment], kept: Kept) -> list[NDArray[np.uint32] | range]:
    """Return for each document of each part its number in the merged segment, DROPPED if it is removed."""
    result, first = list[NDArray[np.uint32] | range](), 0
    for part, keep in zip(parts, kept):
        if keep is None:
            result.append(range(first, first + part.documents))
            first += part.documents
        else:
            result.append(np.where(keep, first + np.cumsum(keep) - 1, DROPPED).astype(np.uint32))
            first += int(keep.sum())
    return result


def _merge_keys(writer: SegmentWriter, parts: list[Segment], renumbered: list[NDArray[np.uint32] | range]) -> int:
    """Write the merged keys, and return how many documents have some."""
    keyed, triple = 0, None
    for band in range(parts[0].layout.bands):
        triple = merged([part.bands[band] for part in parts], renumbered, triple)
        keyed = len(triple[1])
        writer.keys(str(band), triple)
    writer.keys("ids", merged([part.id_keys for part in parts], renumbered, triple))
    return keyed


def _ranges(part: Segment, keep: NDArray[np.bool_] | None) -> Iterator[tuple[int, int, NDArray[np.bool_] | None]]:
    """Yield the documents of a segment in steps, and which of them are kept, ``None`` for all."""
    for start in range(0, part.documents, STEP):
        stop = min(start + STEP, part.documents)
        chosen = None if keep is None else keep[start:stop]
        yield start, stop, None if chosen is None or chosen.all() else chosen


def _kept_items(parts: list[Segment], kept: Kept, name: str, width: int) -> Iterator[Array]:
    """Yield the items of a section that are of documents which are kept."""
    dtype = parts[0].layout.dtype
    for part, keep in zip(parts, kept):
        for start, stop, chosen in _ranges(part, keep):
            items = part.checked(name, dtype, start * width, stop * width)
            yield items if chosen is None else items.reshape(stop - start, width)[chosen]


def _merge_ids(writer: SegmentWriter, parts: list[Segment], kept: Kept) -> None:
    if all(part.has_int_ids for part in parts):
        writer.section("ids", _kept_ids(parts, kept))
        return
    sizes: list[Array] = []
    writer.section("id_bytes", _kept_codes(parts, kept, sizes))
    ends, end = [], np.uint64(0)
    for part_sizes in sizes:
        ends.append(end + np.cumsum(part_sizes, dtype=np.uint64))
        end = ends[-1][-1]
    writer.section("id_ends", (part.astype(ends_dtype(int(end))) for part in ends))


def _kept_ids(parts: list[Segment], kept: Kept) -> Iterator[Array]:
    for part, keep in zip(parts, kept):
        for start, stop, chosen in _ranges(part, keep):
            ids = part.checked("ids", "<i8", start, stop)
            yield ids if chosen is None else ids[chosen]


def _kept_codes(parts: list[Segment], kept: Kept, sizes: list[Array]) -> Iterator[Array]:
    """Yield the bytes of the encoded ids that are kept, and note their sizes."""
    for part, keep in zip(parts, kept):
        for start, codes in part.all_codes():
            if keep is not None:
                codes = [codes[i] for i in np.flatnonzero(keep[start : start + len(codes)]).tolist()]
            if codes:
                sizes.append(np.fromiter(map(len, codes), np.uint64, len(codes)))
                yield np.frombuffer(b"".join(codes), np.uint8)


def _merge_times(writer: SegmentWriter, parts: list[Segment], kept: Kept) -> tuple[int, int, int] | None:
    """Write the times, if some document has one, and return the earliest, the latest and their number."""
    if all(part.written.times is None for part in parts):
        return None
    least, most, count = 2**63 - 1, NO_TIME, 0

    def each() -> Iterator[Array]:
        nonlocal least, most, count
        for part, keep in zip(parts, kept):
            for start, stop, chosen in _ranges(part, keep):
                times = part.times(start, stop)
                times = times if chosen is None else times[chosen]
                known = times[times != NO_TIME]
                if len(known):
                    least, most, count = min(least, int(known.min())), max(most, int(known.max())), count + len(known)
                yield times

    writer.section("times", each())
    return (least, most, count) if count else None


def _merged_texts(blocks: _TextBlocks, parts: list[Segment], kept: Kept) -> Iterator[Array]:
    """Yield the blocks of texts; a block without removed documents is copied as it is."""
    for part, keep in zip(parts, kept):
        for start, stop, chosen in _ranges(part, keep):
            places = part.checked("text_places", TEXT_PLACE, start, stop)
            if chosen is not None:
                places = places[chosen]
            yield from _merged_places(blocks, part, places, start, stop, chosen)


def _merged_places(
    blocks: _TextBlocks, part: Segment, places: Array, start: int, stop: int, chosen: NDArray[np.bool_] | None
) -> Iterator[Array]:
    numbers = np.arange(start, stop) if chosen is None else start + np.flatnonzero(chosen)
    if chosen is not None:
        yield from blocks.packed(part.texts(numbers))
        return
    own = places.copy()
    named = np.unique(places["block"])
    if len(named) and int(named[-1]) >= len(part.section("text_sizes", "<u4")):
        raise part.damage("a text is in no block")
    own["block"] = len(blocks.ends) + np.searchsorted(named, places["block"]).astype(np.uint32)
    blocks.places.append(own)
    for block in named.tolist():
        yield blocks.append(*part.stored_block(block))
