"""A run of several tasks that share a folder: what each stage reads there and writes there.

A stage that reads documents has a task for each shard; one that reads what a stage before it wrote has any number of
tasks, each with some of the parts into which keys and components are divided. Files are Arrow's; a file is written
beside its place and renamed, so a task that was killed is run again.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lsh.base.arrays import Array
from lsh.base.version import __version__
from lsh.engine.matching import Matching
from lsh.stages import tasks

STAGES = ("sketch", "link", "components", "members", "decide")
RANGE_BITS = 4  # of a key, after those of its part: keys of a range are linked at once
TASK_BITS = 40  # of the number of a document within its task
HELD_BYTES = 1 << 28  # of rows that a task holds before it writes them


def _ended(stage: str, rank: int, world_size: int) -> str:
    """Return the name of the file that says that a task of a stage has ended."""
    return f"ended/{stage}/{rank:06d}-of-{world_size:06d}"


@dataclass(frozen=True)
class SharedRun:
    """A deduplication whose tasks share a folder.

    Parameters
    ----------
    folder : fsspec filesystem
        The folder, with the methods of datatrove's ``DataFolder``.
    matching : Matching
        Which documents are near duplicates.
    keep : str
        Which one to keep: ``"first"`` and ``"last"`` by path and place, else the one of the highest priority.
    parts : int
        A power of two.
    """

    folder: Any
    matching: Matching
    keep: str
    parts: int

    @property
    def part_bits(self) -> int:
        """Bits of a key, or of the number of a component, that choose its part."""
        return self.parts.bit_length() - 1

    # ---- files ----

    def check(self, num_shards: int | None = None) -> None:
        """Store the parameters, and how many tasks read documents, or check that they are those that are stored."""
        matching = self.matching
        plan = {"hasher": matching.hasher.to_dict(), "bands": matching.bands.to_dict(), "sketch": matching.low_bits}
        values = {"lsh": __version__, "threshold": matching.threshold, "keep": self.keep, "parts": self.parts, **plan}
        values = json.loads(json.dumps(values | {"tasks": num_shards}))
        if num_shards is not None and not self.folder.isfile("run.json"):
            self._write_bytes("run.json", json.dumps(values).encode())
        if not self.folder.isfile("run.json"):
            raise ValueError(f"the folder {self.folder.path} is of no run: the step 'sketch' comes first")
        stored = json.loads(self.folder.cat_file("run.json"))
        for name, value in values.items():
            if value != stored[name] and not (name == "tasks" and value is None):
                raise ValueError(
                    f"the folder {self.folder.path} is of a run with {name}={stored[name]}, this step has {value}; "
                    "give all steps the same parameters, and those with a reader the same number of tasks, or use an "
                    "empty folder"
                )

    def _write_bytes(self, name: str, data: bytes) -> None:
        self._put(name, lambda file: file.write(data))

    def _write(self, name: str, rows: pa.Table) -> None:
        def write(file: Any) -> None:
            with pa.ipc.new_file(file, rows.schema) as writer:
                writer.write_table(rows)

        self._put(f"{name}.arrow", write)

    def _put(self, name: str, write: Callable[[Any], object]) -> None:
        """Write a file: on a disk beside its place, to be renamed; an object store gets it when it is whole."""
        if not self.folder.is_local():
            whole = io.BytesIO()
            write(whole)
            self.folder.pipe_file(name, whole.getvalue())
            return
        self.folder.makedirs(name.rpartition("/")[0], exist_ok=True)
        beside = f"{name}.{os.urandom(8).hex()}.part"  # another task may write the same
        with self.folder.open(beside, "wb") as file:
            write(file)
        self.folder.mv(beside, name)

    def _read(self, name: str) -> Iterator[pa.Table]:
        """Yield the tables of a folder, or the one of this name, in order."""
        folder = self.folder
        names = folder.list_files(name, glob_pattern="*.arrow") if folder.isdir(name) else [f"{name}.arrow"]
        for one in names:
            if folder.isfile(one):
                yield pa.ipc.open_file(pa.BufferReader(folder.cat_file(one))).read_all()

    def _write_divided(self, name: str, rank: int, tables: Iterable[tuple[Array, pa.Table]]) -> None:
        """Write the rows of a task to files for each part; `tables` has the part of each row beside the rows."""
        held: dict[int, list[pa.Table]] = {}
        size = count = 0
        for parts, rows in tables:
            for part in np.unique(parts).tolist():
                held.setdefault(part, []).append(rows.filter(pa.array(parts == part)))
            size += rows.nbytes
            if size > HELD_BYTES:
                self._write_parts(name, f"{rank:06d}-{count:04d}", held)
                size, count = 0, count + 1
        self._write_parts(name, f"{rank:06d}-{count:04d}", held)

    def _write_parts(self, name: str, file: str, held: dict[int, list[pa.Table]]) -> None:
        """Write the rows that are held of each part, and hold none."""
        for part, found in held.items():
            self._write(f"{name}/{part:04d}/{file}", pa.concat_tables(found))
        held.clear()

    def _begin(self, stage: str, rank: int, world_size: int) -> None:
        """Check that the stage before has ended, and forget that this task, and stages after it, have."""
        number = STAGES.index(stage)
        if number:
            self._need(STAGES[number - 1])
        for path in (_ended(stage, rank, world_size), *(f"ended/{later}" for later in STAGES[number + 1 :])):
            with suppress(FileNotFoundError):  # another task may remove it at the same time
                if self.folder.exists(path):
                    self.folder.rm(path, recursive=True)

    def _end(self, stage: str, rank: int, world_size: int) -> None:
        """Note that a task of a stage has ended."""
        self._write_bytes(_ended(stage, rank, world_size), b"")

    def _need(self, stage: str) -> None:
        """Check that all tasks of a stage have ended."""
        folder = f"ended/{stage}"
        names = self.folder.list_files(folder) if self.folder.isdir(folder) else []
        ended = Counter(name.rpartition("-of-")[2] for name in names if "-of-" in name and not name.endswith(".part"))
        if not any(number == int(of) for of, number in ended.items()):
            found = ", ".join(f"{number} of {int(of)}" for of, number in ended.items()) or "none"
            raise ValueError(
                f"all tasks of the step {stage!r} must have ended before this one begins, got {found}; run it with the "
                "same folder, and this one again"
            )

    # ---- stages ----

    def sketch(self, batches: Iterator[pa.RecordBatch], rank: int, world_size: int) -> None:
        """Write the keys of the documents of a task, given their column ``text``."""
        self.check(world_size)
        self._begin("sketch", rank, world_size)
        bits, digest = self.part_bits + RANGE_BITS, InputDigest(self.matching)

        def with_nodes() -> tasks.Batches:
            for rows in batches:
                nodes = pa.array(digest.add(rows.column(0)))
                yield pa.RecordBatch.from_arrays([rows.column(0), nodes], names=["text", "node"])

        def divided() -> Iterator[tuple[Array, pa.Table]]:
            for rows in tasks.fingerprint(self.matching, bits, with_nodes()):
                ranges = np.maximum(rows.column(0).to_numpy(), 0) & ((1 << bits) - 1)
                yield ranges >> RANGE_BITS, pa.Table.from_batches([rows])

        self._write_divided("keys", rank, divided())
        if self.folder.isfile(f"inputs/{rank:06d}"):
            self.check_input(digest, rank)
        self._write_bytes(f"inputs/{rank:06d}", digest.value())
        self._end("sketch", rank, world_size)

    def link(self, rank: int, world_size: int) -> None:
        """Connect the documents that share a key and whose sketches are similar."""
        self.check()
        self._begin("link", rank, world_size)
        for part in range(rank, self.parts, world_size):
            rows = list(self._read(f"keys/{part:04d}"))
            if rows:
                large = pa.schema([("range", pa.int32()), ("data", pa.large_binary())])  # a part may have 2 GB or more
                ordered = pa.concat_tables(rows).cast(large).sort_by("range")
                links = list(tasks.link(self.matching, self.part_bits + RANGE_BITS, 0, iter(ordered.to_batches())))
                if links:
                    self._write(f"links/{part:04d}", pa.Table.from_batches(links))
        self._end("link", rank, world_size)

    def connect(self) -> None:
        """Number the connected components."""
        self.check()
        self._begin("components", 0, 1)
        nodes = tasks.distinct_numbers(b for _, b in self._links())  # each node is the b of a link
        components = nodes[tasks.least_numbers(nodes, self._links())]
        self._write("components", pa.table({"node": nodes, "component": components}))
        self._end("components", 0, 1)

    def _links(self) -> Iterator[tuple[Array, Array]]:
        for table in self._read("links"):
            yield from tasks.links_in(table.to_batches())

    def members(self, tables: Iterable[pa.Table], rank: int, world_size: int) -> None:
        """Write the documents of a task that are in a component, of tables (text, path, priority, id)."""
        self.check(world_size)
        self._begin("members", rank, world_size)
        digest = InputDigest(self.matching)
        (table,) = self._read("components")
        nodes, components = (table[name].to_numpy() for name in ("node", "component"))
        shift = np.uint64(63 - self.part_bits)

        def chosen() -> Iterator[tuple[Array, pa.Table]]:
            first = rank << TASK_BITS
            for rows in tables:
                own = digest.add(rows["text"].combine_chunks())
                if not len(nodes):
                    continue
                at = np.minimum(np.searchsorted(nodes, own), len(nodes) - 1)
                places = pa.array(np.arange(first, first + len(rows)))
                rows = rows.append_column("component", pa.array(components[at])).append_column("place", places)
                first += len(at)
                rows = rows.filter(pa.array(nodes[at] == own))
                # least numbers are not spread evenly
                mixed = rows["component"].to_numpy().view(np.uint64) * tasks.MIXER
                yield (mixed >> np.uint64(1) >> shift).astype(np.int64), rows

        self._write_divided("members", rank, chosen())
        self.check_input(digest, rank)
        self._end("members", rank, world_size)

    def decide(self, rank: int, world_size: int) -> None:
        """Decide which of the documents in components to keep."""
        self.check()
        self._begin("decide", rank, world_size)
        by_place = "descending" if self.keep == "last" else "ascending"
        order = [("component", "ascending"), ("priority", "descending"), ("path", by_place), ("place", by_place)]
        for part in range(rank, self.parts, world_size):
            tables = list(self._read(f"members/{part:04d}"))
            if tables:
                rows = pa.concat_tables(tables).sort_by(order)
                numbers, old = pa.array(np.arange(len(rows))), pa.array(np.zeros(len(rows), np.bool_))
                given = pa.table({"component": rows["component"], "old": old, "id": numbers, "text": rows["text"]})
                found = list(tasks.decide(self.matching, None, False, iter(given.to_batches())))
                if found:
                    self._write_decisions(part, rows, pa.Table.from_batches(found))
        self._end("decide", rank, world_size)

    def _write_decisions(self, part: int, rows: pa.Table, found: pa.Table) -> None:
        """Write for each task of documents which of these are removed, and for how many the others stand."""
        places, kept = rows["place"].to_numpy(), found["kept_id"].to_numpy()
        kept_once, counts = np.unique(kept, return_counts=True)
        removed = {
            "place": places[found["id"].to_numpy()],
            "kept_id": rows["id"].take(pa.array(kept)),
            "similarity": found["similarity"],
        }
        for name, columns in (("removed", removed), ("copies", {"place": places[kept_once], "copies": counts + 1})):
            table = pa.table(columns)
            owners = table["place"].to_numpy() >> TASK_BITS
            for owner in np.unique(owners).tolist():
                self._write(f"{name}/{owner:06d}/{part:04d}", table.filter(pa.array(owners == owner)))

    # ---- what was decided ----

    def digest(self) -> InputDigest:
        """Return a digest of no documents, for `check_input`."""
        return InputDigest(self.matching)

    def check_input(self, digest: InputDigest, rank: int) -> None:
        """Check that a task read the documents that it read in the first stage."""
        if digest.value() != self.folder.cat_file(f"inputs/{rank:06d}"):
            raise ValueError(
                f"task {rank} read other documents than in the first step; leave the input and its order as they are, "
                "and begin again with an empty folder"
            )

    def decisions(self, rank: int, world_size: int) -> tuple[dict[int, dict[str, Any]], dict[int, int]]:
        """Return what was decided of the documents of a task, by their numbers within it.

        The first dict has ``kept_id`` and ``similarity`` of each removed one, the second for how many each other one
        stands, if it is more than one.
        """
        self.check(world_size)
        self._need("decide")
        mask = (1 << TASK_BITS) - 1
        gone = {row.pop("place") & mask: row for rows in self._read(f"removed/{rank:06d}") for row in rows.to_pylist()}
        counts = (zip(*rows.to_pydict().values()) for rows in self._read(f"copies/{rank:06d}"))
        return gone, {place & mask: number for rows in counts for place, number in rows}


class InputDigest:
    """A digest of the documents that a task reads, in their order."""

    def __init__(self, matching: Matching) -> None:
        self._matching, self._digest = matching, hashlib.blake2b(digest_size=16)

    def add(self, texts: pa.Array) -> Array:
        """Add texts, and return their nodes."""
        nodes = tasks.nodes_of_column(texts, self._matching)
        self.note(nodes)
        return nodes

    def note(self, nodes: Array) -> None:
        """Add texts by their nodes."""
        self._digest.update(nodes.tobytes())

    def value(self) -> bytes:
        """Return the digest of what was added."""
        return self._digest.digest()
