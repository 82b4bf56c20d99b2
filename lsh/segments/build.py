"""Writing segments: of documents in memory, or merged from other segments.

A merge copies sections in steps, without hashing or sorting anything again, and texts as compressed blocks where no
document of a block is removed. `segments.segment` reads what is written here.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsh.base.arrays import Array
from lsh.segments import file_format
from lsh.segments.disk import Disk, DiskFile
from lsh.segments.file_format import BLOCK, FOOTER, NO_TIME, SECTION, SEGMENT_HEADER, TEXT_PLACE
from lsh.segments.searching import block_sums, merged, sorted_keys
from lsh.segments.segment import (
    DOCUMENTS_STEP,
    KEY_SECTIONS,
    Chunk,
    DocumentBatch,
    Kept,
    Segment,
    SegmentInfo,
    arrival_ranks,
    arrival_steps,
    ends_dtype,
    items_in_order,
    values_in_order,
)

TEXT_BLOCK = 1 << 13  # bytes of texts that are compressed together
LEVEL = 1  # of zlib
TEXTS_STEP = 1 << 13  # documents whose texts are merged at once


class SegmentWriter:
    """Writes the sections of a segment one after the other."""

    def __init__(self, disk: Disk, folder: str, name: str) -> None:
        self._name = name
        self._file: DiskFile = disk.create(os.path.join(folder, name))
        self._rest = bytearray()
        self._sums: list[Array] = []
        self._table: list[tuple[bytes, int, int]] = []
        self._size = 0
        self._arrivals = 0, 0
        self._write(file_format.structure(SEGMENT_HEADER, magic=file_format.SEGMENT_MAGIC, version=file_format.VERSION))

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
        self._write(bytes(file_format.padding(self._size)))
        begin = self._size
        for part in parts:
            if part.nbytes:
                self._write(np.ascontiguousarray(part).view(np.uint8).reshape(-1))
        self._table.append((name.encode(), begin, self._size - begin))

    def keys(self, label: str, pair: tuple[Array, Array]) -> None:
        """Write the two sections of sorted keys."""
        for (name, _), array in zip(KEY_SECTIONS, pair):
            self.section(f"{name}.{label}", [array])

    def arrivals(self, count: int, first: int, last: int, parts: Iterable[Array]) -> None:
        """Write the numbers of arrival, unless they follow one another."""
        self._arrivals = first, last
        if last - first != count - 1:
            self.section("arrivals", parts)

    def finish(self, documents: int, keyed: int, times: tuple[int, int, int] | None) -> SegmentInfo:
        """Write the checksums and the footer, and sync the file."""
        self._write(bytes(file_format.padding(self._size)))
        if self._rest:
            self._write_blocks(memoryview(bytes(self._rest)))
        table = np.array(self._table, SECTION)
        footer = file_format.structure(
            FOOTER,
            magic=file_format.SEGMENT_MAGIC,
            version=file_format.VERSION,
            sections=len(table),
            documents=documents,
            keyed=keyed,
            sums=self._size,
        )
        end = np.concatenate(self._sums).astype("<u8").tobytes() + table.tobytes() + footer[:-8]
        checksum = file_format.checksum(end)
        self._file.write(end + checksum.to_bytes(8, "little"))
        self._file.sync()
        return SegmentInfo(self._name, documents, self._file.size, checksum, times, self._arrivals)

    def close(self) -> None:
        self._file.close()


def write_segment(
    disk: Disk, folder: str, name: str, documents: DocumentBatch, arrivals: NDArray[np.int64]
) -> SegmentInfo:
    """Write documents, whose ids differ from each other, as a segment; `arrivals` ascend."""
    writer = SegmentWriter(disk, folder, name)
    try:
        numbers = np.arange(len(documents), dtype=np.uint32)
        keyed = numbers[documents.keyed]
        for band, keys in enumerate(documents.keys.T):
            chosen = keys if len(keyed) == len(keys) else keys[keyed]  # the first is much faster
            writer.keys(str(band), sorted_keys(np.ascontiguousarray(chosen), keyed))
        writer.keys("ids", sorted_keys(file_format.hashed_ids(documents.codes), numbers))
        writer.section("sketches", [documents.sketches])
        _write_ids(writer, documents.codes)
        known = documents.times[documents.times != NO_TIME]
        if len(known):
            writer.section("times", [documents.times.astype("<i8")])
        writer.arrivals(len(documents), int(arrivals[0]), int(arrivals[-1]), [arrivals.astype("<i8")])
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
    ends, data = file_format.joined(codes)
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
        self.copied: tuple[Segment, int] | None = None  # the last block that was copied from a segment
        self._end = 0
        self._open: list[bytes] = []  # texts of the block that is not full yet
        self._open_size = 0

    def packed(self, texts: Iterable[bytes]) -> Iterator[Array]:
        """Yield the blocks of texts, and remember where each text is."""
        self.copied = None
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
    disk: Disk,
    folder: str,
    name: str,
    parts: list[Segment],
    kept: Kept,
    arrivals: NDArray[np.int64] | range | None = None,
) -> SegmentInfo:
    """Write the documents of several segments, in order of arrival, as one segment: of each those that are kept.

    `arrivals` are new numbers of arrival of the documents that are written, for documents of another index.
    """
    count = sum(part.documents if keep is None else int(keep.sum()) for part, keep in zip(parts, kept))
    writer = SegmentWriter(disk, folder, name)
    try:
        keyed = _merge_keys(writer, parts, arrival_ranks(parts, kept, np.uint32))
        writer.section("sketches", _kept_items(parts, kept, "sketches", parts[0].layout.components))
        _merge_ids(writer, parts, kept)
        times = _merge_times(writer, parts, kept)
        _merge_arrivals(writer, parts, kept, count, arrivals)
        if parts[0].layout.texts:
            blocks = _TextBlocks()
            writer.section("texts", _merged_texts(blocks, parts, kept))
            blocks.write_tables(writer)
        return writer.finish(count, keyed, times)
    finally:
        writer.close()


def _merge_keys(writer: SegmentWriter, parts: list[Segment], renumbered: list[Array | range]) -> int:
    """Write the merged keys, and return how many documents have some."""
    keyed, pair = 0, None
    for band in range(parts[0].layout.bands):
        pair = merged([part.bands[band] for part in parts], renumbered, pair)
        keyed = len(pair[1])
        writer.keys(str(band), pair)
    writer.keys("ids", merged([part.id_keys for part in parts], renumbered, pair))
    return keyed


def _kept_items(parts: list[Segment], kept: Kept, name: str, width: int) -> Iterator[Array]:
    """Yield the items of a section that are of documents which are kept, in order, as rows."""

    def read(part: int, start: int, stop: int) -> Array:
        items = parts[part].checked(name, parts[part].layout.dtype, start * width, stop * width)
        return items.reshape(stop - start, width)

    return _ordered(parts, kept, read)


def _ordered(parts: list[Segment], kept: Kept, read: Callable[[int, int, int], Array]) -> Iterator[Array]:
    """Yield the items of documents which are kept, in order; `read` returns those of a range of a segment."""
    return (items_in_order(chunks, read) for chunks in arrival_steps(parts, kept, DOCUMENTS_STEP))


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
    return _ordered(parts, kept, lambda part, start, stop: parts[part].checked("ids", "<i8", start, stop))


def _kept_codes(parts: list[Segment], kept: Kept, sizes: list[Array]) -> Iterator[Array]:
    """Yield the bytes of the encoded ids that are kept, in order, and note their sizes."""

    def read(part: int, numbers: NDArray[np.int64]) -> list[bytes]:
        start = int(numbers[0])
        codes = parts[part].codes_between(start, int(numbers[-1]) + 1)
        return codes if len(codes) == len(numbers) else [codes[i] for i in (numbers - start).tolist()]

    for chunks in arrival_steps(parts, kept, DOCUMENTS_STEP):
        codes = values_in_order(chunks, read)
        sizes.append(np.fromiter(map(len, codes), np.uint64, len(codes)))
        yield np.frombuffer(b"".join(codes), np.uint8)


def _merge_arrivals(
    writer: SegmentWriter, parts: list[Segment], kept: Kept, count: int, new: NDArray[np.int64] | range | None
) -> None:
    """Write the numbers of arrival: those of the parts, or new ones."""
    if new is not None:
        writer.arrivals(count, int(new[0]), int(new[-1]), [np.asarray(new, "<i8")] if len(new) else [])
        return
    bounds = list[int]()
    for part, keep in zip(parts, kept):
        numbers = np.array([0, part.documents - 1]) if keep is None else np.flatnonzero(keep)
        bounds += [part.arrival(int(number)) for number in (numbers[:1].tolist() + numbers[-1:].tolist())]
    found = _ordered(parts, kept, lambda part, start, stop: parts[part].arrivals(start, stop))
    writer.arrivals(count, min(bounds), max(bounds), (own.astype("<i8") for own in found))


def _merge_times(writer: SegmentWriter, parts: list[Segment], kept: Kept) -> tuple[int, int, int] | None:
    """Write the times, if some document has one, and return the earliest, the latest and their number."""
    if all(part.written.times is None for part in parts):
        return None
    earliest, latest, count = 2**63 - 1, NO_TIME, 0

    def each() -> Iterator[Array]:
        nonlocal earliest, latest, count
        for times in _ordered(parts, kept, lambda part, start, stop: parts[part].times(start, stop)):
            known = times[times != NO_TIME]
            if len(known):
                earliest, latest, count = (
                    min(earliest, int(known.min())),
                    max(latest, int(known.max())),
                    count + len(known),
                )
            yield times

    writer.section("times", each())
    return (earliest, latest, count) if count else None


def _merged_texts(blocks: _TextBlocks, parts: list[Segment], kept: Kept) -> Iterator[Array]:
    """Yield the blocks of texts; blocks of one part without removed documents are copied as they are."""
    for chunks in arrival_steps(parts, kept, TEXTS_STEP):
        if len(chunks) == 1 and chunks[0].chosen is None:
            yield from _copied_blocks(blocks, parts[chunks[0].segment], chunks[0])
        else:
            yield from blocks.packed(values_in_order(chunks, lambda part, numbers: parts[part].texts(numbers)))


def _copied_blocks(blocks: _TextBlocks, part: Segment, chunk: Chunk) -> Iterator[Array]:
    """Yield the blocks that have the texts of a chunk, each once, and remember where each text is."""
    places = part.checked("text_places", TEXT_PLACE, chunk.start, chunk.stop).copy()
    named, own = np.unique(places["block"], return_inverse=True)
    if int(named[-1]) >= len(part.section("text_sizes", "<u4")):
        raise part.damage("a text is in no block")
    first = len(blocks.ends)
    new = named.tolist()
    if blocks.copied == (part, new[0]):  # by the chunk before, as the last one
        first, new = first - 1, new[1:]
    places["block"] = first + own.reshape(-1)
    blocks.places.append(places)
    for block in new:
        yield blocks.append(*part.stored_block(block))
        blocks.copied = part, block
