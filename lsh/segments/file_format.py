"""Format version 2 of an index: every structure of its files, declared once for reader and writer.

All numbers are little-endian. `docs/format.md` describes the files byte by byte. Reading and writing files is the work
of the other modules of this folder.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsh._minhash import SCHEME_CODES, UNIT_CODES, Fingerprinter, murmur3_x64_128
from lsh.base.arrays import Array
from lsh.segments.searching import IndexDamagedError as IndexDamagedError
from lsh.text.batch import Batch
from lsh.text.shingling import MAX_UNITS
from lsh.typing import DocId

VERSION = 2
ALIGNMENT = 64  # bytes: every section of a segment begins at a multiple of it
BLOCK = 1 << 16  # bytes of a segment that have one checksum
NO_TIME = -(2**63)  # the time of a document without one
NUMBERS = 2**32 - 1  # documents of a segment: their numbers are uint32

MANIFEST_MAGIC, SEGMENT_MAGIC, LOG_MAGIC, REMOVED_MAGIC = b"lsh-mani", b"lsh-segm", b"lsh-wlog", b"lsh-gone"
MANIFEST, NEW_MANIFEST, LOCK = "manifest", "manifest.new", "lock"
_NAME = re.compile(r"(segment|log|removed)-([0-9]{6,15})")

HEADER = np.dtype([("magic", "S8"), ("version", "<u4"), ("unused", "V4"), ("size", "<u8")])  # of a manifest; 24 bytes
SEGMENT_HEADER = np.dtype([("magic", "S8"), ("version", "<u4"), ("unused", "V52")])
SECTION = np.dtype([("name", "S24"), ("offset", "<u8"), ("size", "<u8")])
FOOTER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "<u4"),
        ("sections", "<u4"),
        ("documents", "<u8"),  # n
        ("keyed", "<u8"),  # m: documents that have keys
        ("sums", "<u8"),  # offset of the checksums of blocks
        ("unused", "V16"),
        ("checksum", "<u8"),  # of all from the checksums of blocks to here
    ]
)
REMOVED_HEADER = np.dtype(
    [("magic", "S8"), ("version", "<u4"), ("unused", "V4"), ("documents", "<u8"), ("removed", "<u8")]
)
LOG_HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "<u4"),
        ("unused", "V4"),
        ("number", "<u8"),  # of its name
        ("checksum", "<u8"),  # of the 24 bytes before
        ("committed", "<u8"),  # the size of the log up to a commit that was synced; written without a sync
        ("committed_checksum", "<u8"),  # of `committed`; where it is wrong, `committed` is not known
        ("reserved", "V16"),
    ]
)
RECORD = np.dtype([("size", "<u8"), ("kind", "<u4"), ("unused", "V4"), ("checksum", "<u8")])  # and `size` bytes
ADD, REMOVE, COMMIT = 1, 2, 3  # kinds of records
IN_LOG = 2**32 - 1  # the segment number of a removed document that is in the log itself
REMOVAL = np.dtype([("segment", "<u4"), ("number", "<u4")])
TEXT_PLACE = np.dtype([("block", "<u4"), ("offset", "<u4"), ("size", "<u4")])


def damaged(path: str, what: str) -> IndexDamagedError:
    """Return the error that a file is damaged."""
    return IndexDamagedError(f"{path} is damaged: {what}; restore the index from a backup, or create it again")


def checksum(data: Any, seed: int = 0) -> int:
    """Return the first half of MurmurHash3_x64_128 of the data."""
    return murmur3_x64_128(memoryview(data).cast("B") if memoryview(data).nbytes else b"", seed & 0xFFFFFFFF)[0]


def structure(dtype: np.dtype[Any], **values: Any) -> bytes:
    """Return the bytes of one structure; fields that are not given are 0."""
    array = np.zeros(1, dtype)
    for name, value in values.items():
        array[name] = value
    return array.tobytes()


def parsed(dtype: np.dtype[Any], data: Any) -> dict[str, Any]:
    """Return the fields of one structure as plain values."""
    one = np.frombuffer(data, dtype, 1)[0]
    return {name: one[name].item() for name in dtype.names or () if dtype[name].kind != "V"}


def file_name(kind: str, number: int) -> str:
    """Return the name of a file of an index."""
    return f"{kind}-{number:06d}"


def file_number(kind: str | None, name: object) -> int | None:
    """Return the number in the name of a file; ``None`` if it is not such a name."""
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    return None if match is None or kind not in (None, match[1]) else int(match[2])


def padding(size: int, alignment: int = ALIGNMENT) -> int:
    """Return how many bytes follow so that the next structure is aligned."""
    return -size % alignment


# ---- ids ----

_INT = struct.Struct("<cq").pack
_whole = Fingerprinter(SCHEME_CODES["murmur3_64"], UNIT_CODES["byte"], MAX_UNITS, np.zeros(1, np.uint32), 1)


def encoded_id(name: str, value: object) -> bytes:
    """Return an id as a tag and its bytes; `name` is its parameter."""
    if isinstance(value, str):
        return b"s" + value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return b"b" + value
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be str, bytes or a whole number, got {type(value).__name__}")
    try:
        return _INT(b"i", int(value))
    except struct.error:
        raise ValueError(f"{name} must be from -2^63 to 2^63 - 1 if it is a number, got {value}") from None


def encoded_ids(name: str, values: list[Any], first: int = 0) -> list[bytes]:
    """Return many ids, encoded; `first` is the position of the first one, for messages."""
    kinds = set(map(type, values))
    if kinds == {str}:
        return [b"s" + value.encode("utf-8", "surrogatepass") for value in values]
    if kinds == {int}:
        try:
            return [_INT(b"i", value) for value in values]
        except struct.error:
            pass
    return [encoded_id(f"{name}[{i}]", value) for i, value in enumerate(values, first)]


def decoded_id(code: bytes) -> DocId:
    """Return the id of an encoded one; a ValueError if it is not an encoded id."""
    mark, data = code[:1], code[1:]
    if mark == b"s":
        return data.decode("utf-8", "surrogatepass")
    if mark == b"b":
        return data
    if mark != b"i" or len(data) != 8:
        raise ValueError("malformed id")
    return int.from_bytes(data, "little", signed=True)


def hashed_ids(codes: list[bytes]) -> NDArray[np.uint64]:
    """Return the hash of each encoded id: the first half of MurmurHash3_x64_128, seed 0."""
    rows = np.empty((len(codes), 1), np.uint64)
    _whole.fill(Batch(codes), rows)
    return rows[:, 0]


# ---- packed arrays: the payload of a record ----


def packed(arrays: Mapping[str, Array]) -> bytes:
    """Return named arrays as a table of sections and their bytes."""
    table = np.zeros(len(arrays), SECTION)
    at = 8 + table.nbytes
    parts: list[Any] = []
    for row, (name, array) in zip(table, arrays.items()):
        row["name"], row["offset"], row["size"] = name.encode(), at, array.nbytes
        gap = padding(array.nbytes, 8)
        parts += [np.ascontiguousarray(array).tobytes(), bytes(gap)]
        at += array.nbytes + gap
    return b"".join([len(arrays).to_bytes(8, "little"), table.tobytes(), *parts])


def unpacked(payload: Any) -> dict[str, Array]:
    """Return the named arrays of a payload as bytes; a ValueError if they do not fit into it."""
    data: Array = np.frombuffer(payload, np.uint8)
    count = int.from_bytes(data[:8].tobytes(), "little")
    if len(data) < 8 or count > (len(data) - 8) // SECTION.itemsize:
        raise ValueError("the table of arrays is cut")
    arrays = {}
    for name, offset, size in data[8 : 8 + count * SECTION.itemsize].view(SECTION).tolist():
        if offset > len(data) or size > len(data) - offset:
            raise ValueError("an array is outside of its record")
        arrays[name.decode("ascii", "replace")] = data[offset : offset + size]
    return arrays


def joined(texts: Iterable[bytes]) -> tuple[Array, Array]:
    """Return texts as the end of each (uint64), and their bytes (uint8)."""
    listed = list(texts)
    ends = np.cumsum(np.fromiter(map(len, listed), np.uint64, len(listed)), dtype=np.uint64)
    return ends, np.frombuffer(b"".join(listed), np.uint8)


def split(ends: Array, data: Array, first: int = 0) -> Iterator[bytes]:
    """Yield the texts of which `joined` returned ends and bytes; a ValueError if the ends do not ascend."""
    own = ends.tolist()
    content = data.tobytes()
    begin = first
    for end in own:
        if not begin <= end <= first + len(content):
            raise ValueError("the ends of texts do not ascend")
        yield content[begin - first : end - first]
        begin = end
