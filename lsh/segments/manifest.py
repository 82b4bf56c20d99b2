"""The manifest: the parameters of an index, and the files that make up its last commit.

It is replaced in one step, by renaming a new file that was synced. Nothing in it is used before it is checked.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lsh.base import checks, errors
from lsh.base.arrays import Array
from lsh.segments import file_format
from lsh.segments.disk import Disk, write_file
from lsh.segments.file_format import HEADER, MANIFEST_MAGIC, REMOVED_HEADER, REMOVED_MAGIC, IndexDamagedError
from lsh.segments.segment import SegmentInfo, SegmentLayout
from lsh.sketch import sketch_filter
from lsh.sketch.bands import Bands
from lsh.sketch.hasher import MinHasher
from lsh.sketch.planning import Plan, chosen_hasher, chosen_plan
from lsh.text.shingling import Shingles
from lsh.typing import Lookup

DAY = 86400.0  # seconds
MAX_COMPONENTS = 2**16 - 1  # of a fingerprint: the number of equal ones is uint16
SKETCHES = ("8bit", "full")
COLLISIONS = 2.0**-sketch_filter.BITS  # the probability that 8 bits of different components are equal
MAX_PERIOD = 2**62  # microseconds
MAX_ARRIVALS = 2**62  # the greatest number of arrival


@dataclass(frozen=True)
class Parameters:
    """What an index is created with. Immutable."""

    hasher: MinHasher
    plan: Plan
    sketch: str
    texts: bool  # whether they are stored
    period: int  # microseconds

    @property
    def layout(self) -> SegmentLayout:
        """What all segments have in common."""
        components = self.hasher.num_seeds
        dtype = self.hasher.dtype.newbyteorder("<") if self.sketch == "full" else np.dtype(np.uint8)
        return SegmentLayout(self.plan.bands.num_bands, components, dtype, self.texts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for the manifest."""
        digest = file_format.checksum(self.hasher.seed_values.astype("<u4"))
        return {
            "hasher": self.hasher.to_dict(),
            "seeds_digest": f"{digest:016x}",
            "plan": self.plan.to_dict(),
            "sketch": self.sketch,
            "texts": self.texts,
            "period": self.period,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Parameters:
        """Return the parameters of plain values, checked."""
        checks.keys("parameters", values, {"hasher", "seeds_digest", "plan", "sketch", "texts", "period"})
        hasher, plan = MinHasher.from_dict(values["hasher"]), Plan.from_dict(values["plan"])
        sketch = checks.choice("sketch", values["sketch"], SKETCHES)
        texts = checks.instance("texts", values["texts"], bool, "true or false")
        found = cls(hasher, plan, sketch, texts, checks.whole_number("period", values["period"], 1, MAX_PERIOD))
        if found.to_dict()["seeds_digest"] != values["seeds_digest"] or plan.num_seeds != hasher.num_seeds:
            raise ValueError("the seeds are not those that it was created with")
        return found


@dataclass(frozen=True)
class Removed:
    """The file that says which documents of a segment are removed."""

    name: str
    count: int
    checksum: int


@dataclass(frozen=True)
class ManifestEntry:
    """A segment of a manifest."""

    written: SegmentInfo
    removed: Removed | None = None

    def to_dict(self) -> dict[str, Any]:
        one, removed = self.written, self.removed
        return {
            "name": one.name,
            "documents": one.documents,
            "bytes": one.size,
            "checksum": f"{one.checksum:016x}",
            "times": None if one.times is None else list(one.times),
            "arrivals": list(one.arrivals),
            "removed": None if removed is None else [removed.name, removed.count, f"{removed.checksum:016x}"],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ManifestEntry:
        checks.keys("segment", values, {"name", "documents", "bytes", "checksum", "times", "arrivals", "removed"})
        documents = checks.whole_number("documents", values["documents"], 1, file_format.NUMBERS)
        size = checks.whole_number("bytes", values["bytes"], 1, 2**62)
        times = None
        if values["times"] is not None:
            earliest, latest, count = values["times"]
            earliest = checks.whole_number("times", earliest, file_format.NO_TIME + 1, 2**63 - 1)
            times = earliest, checks.whole_number("times", latest, earliest, 2**63 - 1), _count(count, documents)
        first, last = values["arrivals"]
        first = checks.whole_number("arrivals", first, 0, MAX_ARRIVALS)
        arrivals = first, checks.whole_number("arrivals", last, first + documents - 1, MAX_ARRIVALS)
        removed = None
        if values["removed"] is not None:
            name, count, checksum = values["removed"]
            removed = Removed(_name("removed", name), _count(count, documents), _hex(checksum))
        name = _name("segment", values["name"])
        return cls(SegmentInfo(name, documents, size, _hex(values["checksum"]), times, arrivals), removed)


def _count(value: Any, max_count: int) -> int:
    return checks.whole_number("count", value, 1, max_count)


def _name(kind: str, value: Any) -> str:
    if file_format.file_number(kind, value) is None:
        raise ValueError(f"{value!r:.40} is not the name of a {kind} file")
    return str(value)


def _hex(value: Any) -> int:
    if not isinstance(value, str) or len(value) != 16:
        raise ValueError("a checksum must have 16 digits")
    return int(value, 16)


Note = dict[str, dict[str, Any]]  # values that are stored with an index, such as the thresholds of a screen, by use


@dataclass(frozen=True)
class Manifest:
    """A commit: the parameters, the segments and the log. Immutable."""

    parameters: Parameters
    generation: int = 0  # counts the manifests
    entries: tuple[ManifestEntry, ...] = ()
    log: str = ""
    next_number: int = 1  # of the next file
    arrived: int = 0  # the number of arrival of the first document of the log
    identity: str = ""  # random: tells the index from one that was made in its place
    note: Note = field(default_factory=dict)
    source: bytes = field(default=b"", compare=False, repr=False)  # the content of the file that it was read from

    def files(self) -> set[str]:
        """Return the names of all files that belong to it."""
        removed = {entry.removed.name for entry in self.entries if entry.removed is not None}
        return {self.log, *(entry.written.name for entry in self.entries), *removed}

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        values = {
            "parameters": self.parameters.to_dict(),
            "generation": self.generation,
            "segments": [entry.to_dict() for entry in self.entries],
            "log": self.log,
            "next": self.next_number,
            "arrived": self.arrived,
        }
        values |= {name: value for name in ("identity", "note") if (value := getattr(self, name))}
        body = json.dumps(values, sort_keys=True, separators=(",", ":")).encode()
        head = file_format.structure(HEADER, magic=MANIFEST_MAGIC, version=file_format.VERSION, size=len(body))
        return head + body + file_format.checksum(head + body).to_bytes(8, "little")

    @classmethod
    def from_bytes(cls, path: str, data: bytes) -> Manifest:
        """Return the manifest of the content of a file, checked."""
        size = HEADER.itemsize
        if len(data) < size + 8:
            raise file_format.damaged(path, "it is too short")
        head = file_format.parsed(HEADER, data)
        if head["magic"] != MANIFEST_MAGIC:
            raise file_format.damaged(path, "it does not begin as the manifest of an index")
        if head["size"] != len(data) - size - 8 or data[-8:] != file_format.checksum(data[:-8]).to_bytes(8, "little"):
            raise file_format.damaged(path, "its checksum is wrong")
        if head["version"] != file_format.VERSION:
            remedy = "create the index again" if head["version"] < file_format.VERSION else "use a newer release"
            raise IndexDamagedError(
                f"{path} has format version {head['version']}, this release reads version {file_format.VERSION}; "
                f"{remedy}"
            )
        try:
            return replace(cls._from_dict(json.loads(data[size:-8])), source=data)
        except (TypeError, ValueError, KeyError, OverflowError, RecursionError) as error:
            raise file_format.damaged(path, str(error)) from None

    @classmethod
    def _from_dict(cls, values: Any) -> Manifest:
        identity, note = (values.pop(name, None) if isinstance(values, dict) else None for name in ("identity", "note"))
        checks.keys("a manifest", values, {"parameters", "generation", "segments", "log", "next", "arrived"})
        entries = tuple(
            ManifestEntry.from_dict(one) for one in checks.instance("segments", values["segments"], list, "a list")
        )
        manifest = cls(
            Parameters.from_dict(values["parameters"]),
            checks.whole_number("generation", values["generation"], 1, 2**62),
            entries,
            _name("log", values["log"]),
            checks.whole_number("next", values["next"], 1, 2**50),
            checks.whole_number("arrived", values["arrived"], 0, MAX_ARRIVALS),
            "" if identity is None else f"{_hex(identity):016x}",
            {} if note is None else checks.instance("note", note, dict, "an object"),
        )
        for name, used in manifest.note.items():
            stored = checks.instance(name, used, dict, "an object").values()
            if any(isinstance(value, (dict, list)) for value in stored):
                raise ValueError(f"{name} must be an object of numbers and texts")
        names = [entry.written.name for entry in entries]
        names += [entry.removed.name for entry in entries if entry.removed is not None]
        if len(set(names)) != len(names):
            raise ValueError("a file is named twice")
        if any(entry.written.arrivals[1] >= manifest.arrived for entry in entries):
            raise ValueError("a segment has documents that arrived after those of the log")
        return manifest


def read_manifest(folder: str, known: Manifest | None = None) -> Manifest:
    """Read the manifest of a folder; `known` is returned if it was read from the same content."""
    path = os.path.join(folder, file_format.MANIFEST)
    try:
        with open(path, "rb") as file:
            content = file.read()
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"no index at {folder}: {path} does not exist") from None
    return known if known is not None and content == known.source else Manifest.from_bytes(path, content)


def write_new_manifest(disk: Disk, folder: str, manifest: Manifest) -> None:
    """Write a manifest that is not yet that of the folder. The files that it names must have been synced."""
    new = os.path.join(folder, file_format.NEW_MANIFEST)
    with contextlib.suppress(FileNotFoundError):
        disk.remove(new)
    write_file(disk, new, manifest.to_bytes())
    disk.sync_folder(folder)  # the names of the files before the manifest that has them


def replace_manifest(disk: Disk, folder: str) -> None:
    """Make the manifest of `write_new` that of the folder."""
    disk.rename(os.path.join(folder, file_format.NEW_MANIFEST), os.path.join(folder, file_format.MANIFEST))
    disk.sync_folder(folder)


def write_removed(disk: Disk, folder: str, name: str, bitmap: Array, documents: int, count: int) -> Removed:
    """Write which documents of a segment are removed: one bit each, the lowest bit of a byte first."""
    head = file_format.structure(
        REMOVED_HEADER, magic=REMOVED_MAGIC, version=file_format.VERSION, documents=documents, removed=count
    )
    content = head + bitmap.tobytes()
    checksum = file_format.checksum(content)
    write_file(disk, os.path.join(folder, name), content + checksum.to_bytes(8, "little"))
    return Removed(name, count, checksum)


def read_removed(folder: str, removed: Removed, documents: int) -> Array:
    """Return the bitmap of the removed documents of a segment, checked, in memory of its own."""
    path = os.path.join(folder, removed.name)
    with open(path, "rb") as file:
        content = file.read()
    size = REMOVED_HEADER.itemsize
    if len(content) != size + (documents + 7) // 8 + 8:
        raise file_format.damaged(path, f"it has {len(content)} bytes")
    head = file_format.parsed(REMOVED_HEADER, content)
    checksum = file_format.checksum(content[:-8])
    bitmap: Array = np.frombuffer(content[size:-8], np.uint8).copy()
    count = int(np.unpackbits(bitmap, count=documents, bitorder="little").sum())
    facts = head["magic"], head["version"], head["documents"], head["removed"], count
    wanted = REMOVED_MAGIC, file_format.VERSION, documents, removed.count, removed.count
    if facts != wanted or checksum != removed.checksum or content[-8:] != checksum.to_bytes(8, "little"):
        raise file_format.damaged(path, "its checksum is wrong, or it is not the file that the manifest names")
    return bitmap


def microseconds(name: str, seconds: object) -> int:
    """Return a period in seconds as microseconds."""
    if isinstance(seconds, (bool, np.timedelta64)) or not isinstance(seconds, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number of seconds, got {type(seconds).__name__}")
    if not math.isfinite(seconds) or not 1e-6 <= seconds <= MAX_PERIOD / 1e6:
        raise ValueError(f"{name} must be a number of seconds, 0.000001 or more, got {seconds}")
    return round(float(seconds) * 1e6)


# ---- the parameters of a new index ----


def chosen_parameters(
    hasher: MinHasher | None,
    bands: Bands | Plan | None,
    threshold: float | None,
    recall: float | None,
    shingles: Shingles | None,
    num_seeds: int | None,
    random_state: int | None,
    sketch: object,
    texts: object,
    period: object,
) -> tuple[Parameters, Lookup | None]:
    """Return the parameters of a new index, and the function that returns its texts."""
    stored, lookup = where_texts_are(texts)
    chosen = chosen_hasher(hasher, shingles, num_seeds, random_state, bands)
    parameters = Parameters(
        chosen,
        chosen_plan(chosen, bands, threshold, recall, filtered=True),
        checks.choice("sketch", sketch, SKETCHES),
        stored,
        microseconds("period", period),
    )
    if chosen.num_seeds > MAX_COMPONENTS:
        raise errors.bad_value("num_seeds", f"must be at most {MAX_COMPONENTS} for an index, got {chosen.num_seeds}")
    return parameters, lookup


def where_texts_are(texts: object) -> tuple[bool, Lookup | None]:
    """Return whether texts are stored, and the function that returns them."""
    if texts is None or texts == "stored":
        return texts == "stored", None
    if not callable(texts):
        raise TypeError(f"texts must be None, 'stored' or a function id -> text, got {texts!r:.80}")
    return False, texts


def checked_lookup(texts: object, parameters: Parameters) -> Lookup | None:
    if texts is None:
        return None
    if not callable(texts):
        raise TypeError(f"texts must be a function id -> text, got {type(texts).__name__}")
    if parameters.texts:
        raise ValueError("texts must not be given: the index stores its texts")
    return texts


def check_same(own: Parameters, other: Parameters) -> None:
    """Check that another index has the same parameters, so that it can be merged."""
    for name in ("hasher", "plan", "sketch", "texts"):
        if getattr(own, name) != getattr(other, name):
            shown = [_shown(one, name) for one in (other, own)]
            raise errors.bad_value("other", f"must have the same {name}, got {shown[0]}, this index has {shown[1]}")


def _shown(parameters: Parameters, name: str) -> str:
    """Return a parameter for a message."""
    if name == "texts":
        return "stored texts" if parameters.texts else "no texts"
    plan = parameters.plan
    if name == "plan":
        return f"threshold {plan.threshold:g}, recall {plan.recall:g}, bands {plan.bands.to_string()}"
    return repr(getattr(parameters, name))
