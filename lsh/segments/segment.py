"""Segments: immutable files of documents, written once and then mapped into memory.

A segment has, for each band and for the hashes of the ids, sorted keys with the numbers of their documents, and for
each document its sketch, id, time and text. Every 64 KiB of the file have a checksum, which is compared at the first
use. Which documents of a segment are removed is known elsewhere, and so is what a query means.

The documents of several segments are listed and merged in the order of arrival. Each document has a number of arrival,
which ascends within a segment. Segments may be interleaved: documents of other periods are in other segments. So
several segments are read together, in steps, each up to the same number of arrival.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsh.base.arrays import Array
from lsh.segments import file_format
from lsh.segments.file_format import BLOCK, FOOTER, NO_TIME, SECTION, SEGMENT_HEADER, TEXT_PLACE, IndexDamagedError
from lsh.segments.searching import Blocks, SortedKeys
from lsh.typing import DocId

DOCUMENTS_STEP = 1 << 16  # documents that are read at once
KEY_SECTIONS = (("keys", "<u8"), ("numbers", "<u4"))  # of each band and of the ids


@dataclass(frozen=True)
class SegmentLayout:
    """What all segments of an index have in common: the number of bands, the sketch, and whether texts are stored."""

    bands: int
    components: int  # of a sketch; 0 where none is stored
    dtype: np.dtype[Any]  # of a component
    texts: bool


@dataclass
class DocumentBatch:
    """Documents in memory, by number."""

    codes: list[bytes]  # encoded ids
    keys: NDArray[np.uint64]  # (n, bands), those of a band best together; not defined where `keyed` is false
    keyed: NDArray[np.bool_]  # false for a document without shingles
    sketches: Array  # (n, components)
    times: NDArray[np.int64]  # NO_TIME for none
    texts: list[bytes] | None

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, chosen: Array) -> DocumentBatch:
        """Return some of the documents, by a mask or their numbers."""
        numbers = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        listed = numbers.tolist()
        texts = None if self.texts is None else [self.texts[i] for i in listed]
        codes = [self.codes[i] for i in listed]
        keys, sketches = self.keys[numbers], self.sketches[numbers]
        return DocumentBatch(codes, keys, self.keyed[numbers], sketches, self.times[numbers], texts)


@dataclass(frozen=True)
class SegmentInfo:
    """A segment that was written: what a manifest says about it."""

    name: str
    documents: int
    size: int
    checksum: int
    times: tuple[int, int, int] | None  # the earliest and the latest time, and how many documents have one
    arrivals: tuple[int, int]  # the numbers of arrival of the first and the last document

    @property
    def is_consecutive(self) -> bool:
        """Whether the numbers of arrival follow one another, so that they are not stored."""
        return self.arrivals[1] - self.arrivals[0] == self.documents - 1


def ends_dtype(size: int) -> np.dtype[Any]:
    """Return the type of the ends of ids, of which the last is `size`."""
    return np.dtype("<u4" if size < 2**32 else "<u8")


class Segment:
    """A segment that is mapped into memory. Immutable, and safe to share between threads.

    Parameters
    ----------
    folder : str
        The folder of the index.
    written : SegmentInfo
        What the manifest says about it.
    layout : SegmentLayout
        Of the index.
    """

    def __init__(self, folder: str, written: SegmentInfo, layout: SegmentLayout) -> None:
        self.written, self.layout = written, layout
        self.name = os.path.join(folder, written.name)
        self.documents = written.documents
        with open(self.name, "rb") as file:
            if os.fstat(file.fileno()).st_size != written.size:
                raise self.damage(f"it has {os.fstat(file.fileno()).st_size} bytes instead of {written.size}")
            try:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except OSError as error:  # such as too many open files: it knows only the descriptor
                error.filename = self.name
                raise
        self._file = np.frombuffer(mapped, np.uint8)
        self._sections, sums = self._read_footer()
        self._arrays: dict[str, Array] = {}  # of sections
        self.blocks = Blocks(self._file[: self._end], sums, self.name)
        self._check_sections()

    def damage(self, what: str) -> IndexDamagedError:
        """Return the error that the file is damaged."""
        return file_format.damaged(self.name, what)

    def _read_footer(self) -> tuple[dict[str, tuple[int, int]], Array]:
        size, end = len(self._file), FOOTER.itemsize
        if size < SEGMENT_HEADER.itemsize + end:
            raise self.damage("it is too short")
        footer = file_format.parsed(FOOTER, self._file[size - end :])
        head = file_format.parsed(SEGMENT_HEADER, self._file[: SEGMENT_HEADER.itemsize])
        for one in (footer, head):
            if (one["magic"], one["version"]) != (file_format.SEGMENT_MAGIC, file_format.VERSION):
                raise self.damage(f"it does not begin and end as a segment of format version {file_format.VERSION}")
        sums, sections = footer["sums"], footer["sections"]
        blocks = -(-sums // BLOCK)
        if sums % file_format.ALIGNMENT or sums + 8 * blocks + sections * SECTION.itemsize + end != size:
            raise self.damage("its footer does not fit its size")
        if (
            footer["checksum"] != self.written.checksum
            or file_format.checksum(self._file[sums:-8]) != footer["checksum"]
        ):
            raise self.damage("the checksum of its footer is wrong")
        if footer["documents"] != self.documents or footer["keyed"] > self.documents:
            raise self.damage("its number of documents is wrong")
        self._end, self.keyed = sums, footer["keyed"]
        table = self._file[sums + 8 * blocks : size - end].view(SECTION)
        found = {row["name"].decode("ascii", "replace"): (int(row["offset"]), int(row["size"])) for row in table}
        for offset, length in found.values():
            if offset % file_format.ALIGNMENT or offset > sums or length > sums - offset:
                raise self.damage("a section is outside of it")
        return found, self._file[sums : sums + 8 * blocks].view("<u8")

    def _check_sections(self) -> None:
        """Check that all sections are there and have the right sizes."""
        n, layout = self.documents, self.layout
        self.section("sketches", layout.dtype, n * layout.components)
        self.has_int_ids = "ids" in self._sections
        if self.has_int_ids:
            self.section("ids", "<i8", n)
        else:
            self._ends_dtype = ends_dtype(len(self.section("id_bytes", "u1")))
            self.section("id_ends", self._ends_dtype, n)
        if self.written.times is not None:
            self.section("times", "<i8", n)
        if not self.written.is_consecutive:
            self.section("arrivals", "<i8", n)
        if layout.texts:
            self.section("text_places", TEXT_PLACE, n)
            self.section("text_sizes", "<u4", len(self.section("text_ends", "<u8")))
            self.section("texts", "u1")

    def section(self, name: str, dtype: Any, count: int | None = None) -> Array:
        """Return a section, whose blocks have not been checked."""
        if (known := self._arrays.get(name)) is not None and count in (None, len(known)):
            return known
        if name not in self._sections:
            raise self.damage(f"section {name} is missing")
        offset, size = self._sections[name]
        wanted = np.dtype(dtype)
        if size % wanted.itemsize or count not in (None, size // wanted.itemsize):
            raise self.damage(f"section {name} has a wrong size")
        return self._arrays.setdefault(name, self._file[offset : offset + size].view(wanted))

    def checked(self, name: str, dtype: Any, start: int = 0, stop: int | None = None) -> Array:
        """Return items start to stop - 1 of a section, checked."""
        array = self.section(name, dtype)
        end = len(array) if stop is None else stop
        if not 0 <= start <= end <= len(array):
            raise self.damage(f"section {name} has {len(array)} items, item {end} is asked for")
        offset = self._sections[name][0]
        if end > start:
            self.blocks.check(offset + start * array.itemsize, offset + end * array.itemsize)
        return array[start:end]

    def _checked_at(self, name: str, dtype: Any, numbers: Array) -> Array:
        """Return some items of a section, checked."""
        array, offset = self.section(name, dtype), self._sections[name][0]
        if len(numbers) and int(numbers.max()) >= len(array):
            raise self.damage(f"it has {len(array)} documents, number {int(numbers.max())} is asked for")
        begins = offset + numbers.astype(np.int64) * array.itemsize
        self._check_ranges(begins, begins + array.itemsize)
        found: Array = array[numbers]
        return found

    def _check_ranges(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        """Check the blocks of ranges of the file; an empty one needs none."""
        if len(begins) > 8:  # the blocks, each once
            short = ends - begins <= BLOCK
            blocks = np.unique(np.concatenate([begins[short] // BLOCK, (ends[short] - 1) // BLOCK])) * BLOCK
            begins = np.concatenate([blocks, begins[~short]])
            ends = np.concatenate([np.minimum(blocks + BLOCK, self._end), ends[~short]])
        for begin, end in zip(begins.tolist(), ends.tolist()):
            if begin < end:
                self.blocks.check(begin, end)

    # ---- keys ----

    def _sorted_keys(self, label: str, count: int) -> SortedKeys:
        keys, numbers = (self.section(f"{name}.{label}", dtype, count) for name, dtype in KEY_SECTIONS)
        return SortedKeys(keys, numbers, self.blocks)

    @cached_property
    def bands(self) -> list[SortedKeys]:
        """The sorted keys of each band."""
        return [self._sorted_keys(str(band), self.keyed) for band in range(self.layout.bands)]

    @cached_property
    def id_keys(self) -> SortedKeys:
        """The sorted hashes of the ids."""
        return self._sorted_keys("ids", self.documents)

    @property
    def sketches(self) -> Array:
        """The sketches, (n, k), whose blocks have not been checked."""
        return self.section("sketches", self.layout.dtype).reshape(self.documents, self.layout.components)

    def sketch(self, number: int) -> Array:
        """Return the sketch of a document."""
        k = self.layout.components
        return self.checked("sketches", self.layout.dtype, number * k, (number + 1) * k)

    def keys_of(self, number: int) -> NDArray[np.uint64] | None:
        """Return the keys of a document, ``None`` if it has none. This reads the numbers of each band."""
        found = np.empty(self.layout.bands, np.uint64)
        for band in range(self.layout.bands):
            numbers = self.checked(f"numbers.{band}", "<u4")
            places = np.flatnonzero(numbers == number)
            if not len(places):
                return None
            found[band] = self.checked(f"keys.{band}", "<u8", int(places[0]), int(places[0]) + 1)[0]
        return found

    def band(self, band: int) -> SortedKeys:
        """Return the sorted keys of a band."""
        return self.bands[band]

    def numbers_at(self, band: int, places: Array) -> NDArray[np.uint32]:
        """Return the numbers of the documents at some places of the sorted keys of a band."""
        numbers: NDArray[np.uint32] = self._checked_at(f"numbers.{band}", "<u4", places)
        self._check_numbers(numbers)
        return numbers

    def all_keys(self, band: int) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Return all keys of a band, ascending, and the numbers of their documents."""
        for name, dtype in KEY_SECTIONS:
            self.section(f"{name}.{band}", dtype, self.keyed)
        keys, numbers = (self.checked(f"{name}.{band}", dtype) for name, dtype in KEY_SECTIONS)
        self._check_numbers(numbers)
        return keys, numbers

    def _check_numbers(self, numbers: Array) -> None:
        if len(numbers) and int(numbers.max()) >= self.documents:
            raise self.damage(f"it has {self.documents} documents, number {int(numbers.max())} is in a bucket")

    def sketches_of(self, numbers: Array) -> Array:
        """Return the sketches of some documents, as rows."""
        sketches, row = self.sketches, self.layout.components * self.layout.dtype.itemsize
        begins = self._sections["sketches"][0] + numbers.astype(np.int64) * row
        self._check_ranges(begins, begins + row)
        rows: Array = sketches[numbers]
        return rows

    # ---- documents ----

    def find(self, codes: list[bytes], hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the number of the document of each encoded id, -1 if there is none."""
        starts, stops = self.id_keys.find(hashes)
        result = np.full(len(codes), -1, np.int64)
        hits = np.flatnonzero(stops > starts)
        if len(hits):
            spans = zip(starts[hits].tolist(), stops[hits].tolist())
            numbers = np.concatenate([self.id_keys.members(start, stop) for start, stop in spans])
            owners = np.repeat(hits, stops[hits] - starts[hits])
            for i, number, code in zip(owners.tolist(), numbers.tolist(), self.codes(numbers)):
                if code == codes[i]:
                    result[i] = number
        return result

    def ids(self, numbers: Array) -> list[DocId]:
        """Return the ids of some documents."""
        if self.has_int_ids:
            ids: list[DocId] = self._checked_at("ids", "<i8", numbers).tolist()
            return ids
        try:
            return [file_format.decoded_id(code) for code in self.codes(numbers)]
        except ValueError:
            raise self.damage("an id is malformed") from None

    def id(self, number: int) -> DocId:
        """Return the id of a document; much faster than `ids` for one."""
        if self.has_int_ids:
            array, begin = self.section("ids", "<i8"), self._sections["ids"][0] + 8 * number
            if not 0 <= number < len(array):
                raise self.damage(f"section ids has {len(array)} items, item {number + 1} is asked for")
            self.blocks.check(begin, begin + 8)
            return int(array.item(number))
        ends = self.checked("id_ends", self._ends_dtype, max(number - 1, 0), number + 1).tolist()
        begin = ends[0] if number else 0
        if begin >= ends[-1]:
            raise self.damage("the ends of ids do not ascend")
        try:
            return file_format.decoded_id(self.checked("id_bytes", "u1", begin, ends[-1]).tobytes())
        except ValueError:
            raise self.damage("an id is malformed") from None

    def codes(self, numbers: Array) -> list[bytes]:
        """Return the encoded ids of some documents."""
        if self.has_int_ids:
            packed = self._checked_at("ids", "<i8", numbers).tobytes()
            return [b"i" + packed[at : at + 8] for at in range(0, len(packed), 8)]
        ends = self._checked_at("id_ends", self._ends_dtype, numbers).astype(np.int64)
        before = np.maximum(numbers.astype(np.int64) - 1, 0)
        begins = self._checked_at("id_ends", self._ends_dtype, before).astype(np.int64) * (numbers > 0)
        data, offset = self.section("id_bytes", "u1"), self._sections["id_bytes"][0]
        if (begins < 0).any() or (begins >= ends).any() or (ends > len(data)).any():
            raise self.damage("the ends of ids do not ascend")
        self._check_ranges(offset + begins, offset + ends)
        return [data[begin:end].tobytes() for begin, end in zip(begins.tolist(), ends.tolist())]

    def codes_between(self, start: int, stop: int) -> list[bytes]:
        """Return the encoded ids of documents start to stop - 1."""
        if self.has_int_ids:
            return self.codes(np.arange(start, stop))
        ends = self.checked("id_ends", self._ends_dtype, start, stop)
        begin = int(self.checked("id_ends", self._ends_dtype, start - 1, start)[0]) if start else 0
        try:
            return list(file_format.split(ends, self.checked("id_bytes", "u1", begin, int(ends[-1])), begin))
        except ValueError:
            raise self.damage("the ends of ids do not ascend") from None

    def all_codes(self) -> Iterator[tuple[int, list[bytes]]]:
        """Yield the number of the first document of a part, and the encoded ids of the part, in order."""
        for start in range(0, self.documents, DOCUMENTS_STEP):
            yield start, self.codes_between(start, min(start + DOCUMENTS_STEP, self.documents))

    def times(self, start: int = 0, stop: int | None = None) -> NDArray[np.int64]:
        """Return the times of documents, NO_TIME for none."""
        if self.written.times is None:
            return np.full((self.documents if stop is None else stop) - start, NO_TIME, np.int64)
        return self.checked("times", "<i8", start, stop)

    @cached_property
    def _arrivals(self) -> NDArray[np.int64]:
        """The numbers of arrival, where they are stored; all of them are checked."""
        stored = self.checked("arrivals", "<i8")
        if (stored[1:] <= stored[:-1]).any() or (int(stored[0]), int(stored[-1])) != self.written.arrivals:
            raise self.damage("its numbers of arrival are not in order")
        return stored

    def arrival(self, number: int) -> int:
        """Return the number of arrival of a document."""
        return self.written.arrivals[0] + number if self.written.is_consecutive else int(self._arrivals[number])

    def arrivals(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the numbers of arrival of documents start to stop - 1."""
        if self.written.is_consecutive:
            return np.arange(start, stop, dtype=np.int64) + self.written.arrivals[0]
        return self._arrivals[start:stop]

    def arrivals_of(self, numbers: Array) -> NDArray[np.int64]:
        """Return the numbers of arrival of some documents."""
        if self.written.is_consecutive:
            return numbers.astype(np.int64) + self.written.arrivals[0]
        return self._arrivals[numbers]

    def numbers_of(self, arrivals: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the document with each of some numbers of arrival, -1 where there is none."""
        first, last = self.written.arrivals
        if self.written.is_consecutive:
            return np.where((arrivals < first) | (arrivals > last), -1, arrivals - first)
        places = np.minimum(np.searchsorted(self._arrivals, arrivals), self.documents - 1)
        return np.where(self._arrivals[places] == arrivals, places, -1)

    def texts(self, numbers: Array) -> list[bytes]:
        """Return the texts of some documents."""
        places = self._checked_at("text_places", TEXT_PLACE, numbers)
        blocks = {block: self._text_block(block) for block in set(places["block"].tolist())}
        texts = []
        for block, offset, size in places.tolist():
            text = blocks[block][offset : offset + size]
            if len(text) != size:
                raise self.damage("a text is outside of its block")
            texts.append(text)
        return texts

    def stored_block(self, block: int) -> tuple[Array, int]:
        """Return a block of texts as it is stored, and the size of its texts."""
        size = int(self.checked("text_sizes", "<u4", block, block + 1)[0])
        begin = int(self.checked("text_ends", "<u8", block - 1, block)[0]) if block else 0
        end = int(self.checked("text_ends", "<u8", block, block + 1)[0])
        return self.checked("texts", "u1", begin, end), size

    def _text_block(self, block: int) -> bytes:
        stored, size = self.stored_block(block)
        if len(stored) == size:
            return stored.tobytes()
        unpacking = zlib.decompressobj()
        try:
            raw = unpacking.decompress(stored.data, size + 1)
        except zlib.error:
            raise self.damage("a block of texts cannot be decompressed") from None
        if len(raw) != size or not unpacking.eof:
            raise self.damage("a block of texts has a wrong size")
        return raw

    def verify(self) -> None:
        """Check the whole file."""
        self.blocks.verify()
        self.arrival(0)
        for keys in (*self.bands, self.id_keys):
            keys.verify(self.documents)
        for start, codes in self.all_codes():
            hashes = file_format.hashed_ids(codes)
            numbers = np.arange(start, start + len(codes))
            if not np.array_equal(self.find(codes, hashes), numbers):
                raise self.damage("an id is not found by its hash")
            self.ids(numbers)
        if self.layout.texts:
            for start in range(0, self.documents, DOCUMENTS_STEP):
                self.texts(np.arange(start, min(start + DOCUMENTS_STEP, self.documents)))


# ---- the order of arrival ----

MIN_STEP = 1 << 8  # documents of each segment that are read at once

Kept = Sequence[NDArray[np.bool_] | None]  # which documents of each segment are kept; None for all
Value = TypeVar("Value")


class Chunk(NamedTuple):
    """Documents start to stop - 1 of a segment, and where each one that is kept is in the order of its step."""

    segment: int
    start: int
    stop: int
    chosen: NDArray[np.bool_] | None  # which of them are kept; None for all
    positions: NDArray[np.int64]

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The numbers of the documents that are kept."""
        return np.arange(self.start, self.stop) if self.chosen is None else self.start + np.flatnonzero(self.chosen)


def arrival_steps(segments: Sequence[Segment], kept: Kept, step: int) -> Iterator[list[Chunk]]:
    """Yield the documents that are kept, in order of arrival: each time the chunks of about `step` of them."""
    at, step = [0] * len(segments), max(step // max(len(segments), 1), MIN_STEP)
    left = list(range(len(segments)))
    while left:
        ends = [min(at[i] + step, segments[i].documents) for i in left]
        limit = min(segments[i].arrival(end - 1) for i, end in zip(left, ends))
        found = list[tuple[int, int, int, NDArray[np.bool_] | None]]()
        for i, end in zip(left, ends):
            if segments[i].arrival(at[i]) <= limit:
                start = at[i]
                at[i] += int(np.searchsorted(segments[i].arrivals(start, end), limit, side="right"))
                keep = kept[i]
                chosen = None if keep is None or keep[start : at[i]].all() else keep[start : at[i]]
                if chosen is None or chosen.any():
                    found.append((i, start, at[i], chosen))
        if found:
            yield _positioned(segments, found)
        left = [i for i in left if at[i] < segments[i].documents]


def _positioned(
    segments: Sequence[Segment], found: list[tuple[int, int, int, NDArray[np.bool_] | None]]
) -> list[Chunk]:
    """Return chunks with the positions of their documents."""
    none = np.empty(0, np.int64)
    chunks = [Chunk(*one, none) for one in found]
    arrivals = [_cut(segments[one.segment].arrivals(one.start, one.stop), one.chosen) for one in chunks]
    positions = np.arange(sum(map(len, arrivals)))
    if len(chunks) > 1:
        positions[np.argsort(np.concatenate(arrivals), kind="stable")] = np.arange(len(positions))
    ends = np.cumsum([len(own) for own in arrivals])
    return [one._replace(positions=own) for one, own in zip(chunks, np.split(positions, ends[:-1]))]


def _cut(items: Array, chosen: NDArray[np.bool_] | None) -> Array:
    return items if chosen is None else items[chosen]


def items_in_order(chunks: list[Chunk], read: Callable[[int, int, int], Array]) -> Array:
    """Return the items of the documents of a step in order; `read` returns those of a range of a segment."""
    items = [_cut(read(one.segment, one.start, one.stop), one.chosen) for one in chunks]
    if len(items) == 1:
        return items[0]
    ordered: Array = np.empty((sum(map(len, items)), *items[0].shape[1:]), items[0].dtype)
    for one, own in zip(chunks, items):
        ordered[one.positions] = own
    return ordered


def values_in_order(chunks: list[Chunk], read: Callable[[int, NDArray[np.int64]], Iterable[Value]]) -> list[Value]:
    """Return the values of the documents of a step in order; `read` returns those of some documents of a segment."""
    values: list[Any] = [None] * sum(len(one.positions) for one in chunks)
    for one in chunks:
        for position, value in zip(one.positions.tolist(), read(one.segment, one.numbers)):
            values[position] = value
    return values


def arrival_ranks(segments: Sequence[Segment], kept: Kept, dtype: Any) -> list[Array | range]:
    """Return for each document of each segment how many that are kept arrived before it; a range where that is one.

    The rank of a document that is not kept is the greatest number of the type.
    """
    counts = [one.documents if keep is None else int(keep.sum()) for one, keep in zip(segments, kept)]
    spans = [one.written.arrivals for one in segments]
    result: list[Array | range] = []
    for i, (segment, (first, last)) in enumerate(zip(segments, spans)):
        if kept[i] is None and all(j == i or own[1] < first or own[0] > last for j, own in enumerate(spans)):
            before = sum(count for count, own in zip(counts, spans) if own[1] < first)
            result.append(range(before, before + segment.documents))
        else:
            result.append(np.full(segment.documents, np.iinfo(dtype).max, dtype))
    if all(isinstance(one, range) for one in result):
        return result
    first = 0
    for chunks in arrival_steps(segments, kept, DOCUMENTS_STEP):
        for one in chunks:
            if not isinstance(own := result[one.segment], range):
                own[one.numbers] = first + one.positions
        first += sum(len(one.positions) for one in chunks)
    return result
