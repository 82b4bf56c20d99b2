"""Near duplicates in datatrove's pipelines: steps for its executors, on one machine, Slurm or Ray.

Each step is run by an executor of its own, after the one before it has ended, with the same `LshRun`:

1. a reader and `LshSketch`: each task writes the keys of its documents;
2. `LshLink`: the tasks, of any number, connect documents that share a key and whose sketches are similar;
3. `LshComponents`: one task numbers the connected components;
4. the reader and `LshMembers`: each task writes the texts of its documents that are in a component;
5. `LshDecide`: the tasks, of any number, decide which documents to keep;
6. the reader, `LshFilter` and a writer: each task leaves out the others.

The result is that of `lsh.deduplicate` for the documents in the order of their files. A file is written beside its
place and renamed, so a task that was killed is run again.

Requires datatrove and pyarrow: ``pip install datatrove pyarrow``.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from lsh.base import checks
from lsh.base.version import __version__
from lsh.engine.matching import Matching

if TYPE_CHECKING:
    import pyarrow as pa

    from lsh.base.arrays import Array

__all__ = ["LshComponents", "LshDecide", "LshFilter", "LshIndexFilter", "LshLink", "LshMembers", "LshRun", "LshSketch"]

BATCH = 1 << 10  # documents that are held at once
MAX_PARTS = 1 << 12
RANGE_BITS = 4  # of a key, after those of its part: keys of a range are linked at once
TASK_BITS = 40  # of the number of a document within its task
MIXER = np.uint64(0x9E3779B97F4A7C15)


class LshRun:
    """A deduplication of the documents of a pipeline: its parameters, and the folder of the files between its steps.

    Parameters
    ----------
    folder : str
        A folder that all tasks reach, a path or a URL; empty at first. It is needed until the last step has ended.
    threshold : float, optional
        As for `lsh.deduplicate`.
    keep : {"first", "last", "longest"} or str, optional
        Which one of several near duplicates to keep: the first or the last in the order of the files (``file_path`` of
        the metadata, as readers set it) and within a file, the longest, or the one with the highest number in the
        metadata, by its name.
    parts : int, optional
        A power of two: into how many parts keys and components are divided, so how many tasks can link and decide. A
        task needs memory for a part of them: 24 bytes for each document and band, and the texts of the components,
        divided by this.
    documents : int, optional
        About how many documents there are: bands are planned for them. Default: as for a million.
    **options
        Of `lsh.deduplicate`: ``recall``, ``bands``, ``shingles``, ``hasher``, ``num_seeds``, ``random_state``,
        ``verify`` and ``clusters``.

    Raises
    ------
    TypeError, ValueError
        If a parameter is wrong; the message names it.
    """

    def __init__(
        self,
        folder: str,
        threshold: float | None = None,
        *,
        keep: str = "first",
        parts: int = 64,
        documents: int | None = None,
        **options: Any,
    ) -> None:
        self.path = str(folder)
        self.matching = Matching(threshold, **options)
        if documents is not None:
            self.matching = self.matching.for_documents(checks.whole_number("documents", documents, 1))
        self.keep = checks.instance("keep", keep, str, "a str")
        self.parts = checks.whole_number("parts", parts, 1, MAX_PARTS)
        if self.parts & (self.parts - 1):
            raise ValueError(f"parts must be a power of two, such as 64, got {parts}")

    @property
    def _part_bits(self) -> int:
        """Bits of a key, or of the number of a component, that choose its part."""
        return self.parts.bit_length() - 1

    @property
    def _folder(self) -> Any:
        """The folder, as datatrove opens it."""
        try:
            from datatrove.io import get_datafolder
        except ImportError as error:
            raise ImportError("lsh.adapters.datatrove requires datatrove: run pip install datatrove pyarrow") from error
        return get_datafolder(self.path)

    def _own_parts(self, rank: int, world_size: int) -> Iterable[int]:
        """Return the parts of a task."""
        return range(rank, self.parts, world_size)

    def _check(self, num_shards: int | None = None) -> None:
        """Store the parameters, and how many tasks read documents, or check that they are those that are stored."""
        matching, folder = self.matching, self._folder
        plan = {"hasher": matching.hasher.to_dict(), "bands": matching.bands.to_dict(), "sketch": matching.low_bits}
        values = {"lsh": __version__, "threshold": matching.threshold, "keep": self.keep, "parts": self.parts, **plan}
        values = json.loads(json.dumps(values | {"tasks": num_shards}))
        if num_shards is not None and not folder.isfile("run.json"):
            self._write_bytes("run.json", json.dumps(values).encode())
        stored = json.loads(folder.cat_file("run.json"))
        for name, value in values.items():
            if value != stored[name] and not (name == "tasks" and value is None):
                raise ValueError(
                    f"the folder {self.path} is of a run with {name}={stored[name]}, this step has {value}; give "
                    "all steps the same parameters, and those with a reader the same number of tasks, or use an "
                    "empty folder"
                )

    def _write_bytes(self, name: str, data: Any) -> None:
        """Write a file: on a disk beside its place, to be renamed; an object store has it when it is whole."""
        folder = self._folder
        if not folder.is_local():
            folder.pipe_file(name, bytes(data))
            return
        folder.makedirs(name.rpartition("/")[0], exist_ok=True)
        beside = f"{name}.{os.urandom(8).hex()}.part"  # another task may write the same
        folder.pipe_file(beside, bytes(data))
        folder.mv(beside, name)

    def _write(self, name: str, rows: pa.Table) -> None:
        """Write a table."""
        import pyarrow as pa

        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
        self._write_bytes(f"{name}.arrow", sink.getvalue())

    def _read(self, name: str) -> Iterator[pa.Table]:
        """Yield the tables of a folder, or the one of this name, in order."""
        import pyarrow as pa

        folder = self._folder
        names = folder.list_files(name, glob_pattern="*.arrow") if folder.isdir(name) else [f"{name}.arrow"]
        for one in names:
            if folder.isfile(one):
                yield pa.ipc.open_file(pa.BufferReader(folder.cat_file(one))).read_all()

    def _write_divided(self, name: str, rank: int, tables: Iterable[tuple[Array, pa.Table]]) -> None:
        """Write the rows of a task to a file for each part; `tables` has the part of each row beside the rows."""
        import pyarrow as pa

        held: dict[int, list[pa.Table]] = {}
        for parts, rows in tables:
            for part in np.unique(parts).tolist():
                held.setdefault(part, []).append(rows.filter(pa.array(parts == part)))
        for part, found in held.items():
            self._write(f"{name}/{part:04d}/{rank:06d}", pa.concat_tables(found))


class _Step:
    """A step of a pipeline: called with documents, the number of a task, and how many there are.

    Parameters
    ----------
    run : LshRun
        The parameters of all steps.
    """

    def __init__(self, run: LshRun) -> None:
        self.run = checks.instance("run", run, LshRun, "an LshRun")

    def __repr__(self) -> str:
        return type(self).__name__


def _numbered(data: Any) -> Iterator[tuple[int, list[Any]]]:
    """Yield documents in batches, with the number of the first one."""
    first, documents = 0, iter(data)
    while batch := list(islice(documents, BATCH)):
        yield first, batch
        first += len(batch)


class LshSketch(_Step):
    """The first step, after a reader: write the keys of documents."""

    def __call__(self, data: Any, rank: int = 0, world_size: int = 1) -> None:
        """Run the step on the documents of a task."""
        import pyarrow as pa

        from lsh.stages import tasks

        run, bits, count = self.run, self.run._part_bits + RANGE_BITS, 0
        run._check(world_size)

        def texts() -> Iterator[pa.RecordBatch]:
            nonlocal count
            for _, batch in _numbered(data):
                count += len(batch)
                yield pa.record_batch({"text": pa.array([one.text for one in batch], pa.string())})

        def divided() -> Iterator[tuple[Array, pa.Table]]:
            for rows in tasks.fingerprint(run.matching, bits, texts()):
                ranges = np.maximum(rows.column(0).to_numpy(), 0) & ((1 << bits) - 1)
                yield ranges >> RANGE_BITS, pa.Table.from_batches([rows])

        run._write_divided("keys", rank, divided())
        run._write(f"counts/{rank:06d}", pa.table({"count": [count]}))


class LshLink(_Step):
    """The second step: connect documents that share a key and whose sketches are similar."""

    def __call__(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        """Run the step on the parts of a task."""
        import pyarrow as pa

        from lsh.stages import tasks

        run, bits = self.run, self.run._part_bits + RANGE_BITS
        run._check()
        for part in run._own_parts(rank, world_size):
            rows = list(run._read(f"keys/{part:04d}"))
            if rows:
                ordered = pa.concat_tables(rows).sort_by("range")
                links = list(tasks.link(run.matching, bits, iter(ordered.to_batches())))
                if links:
                    run._write(f"links/{part:04d}", pa.Table.from_batches(links))


class LshComponents(_Step):
    """The third step, of one task: number the components, with some 32 bytes of memory for each document in one."""

    def __call__(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        """Run the step."""
        import pyarrow as pa

        from lsh.stages import tasks

        if world_size != 1:
            raise ValueError(f"LshComponents must be run with tasks=1, got {world_size}")
        self.run._check()
        nodes = np.empty(0, np.int64)
        for a, b in self._links():
            nodes = np.union1d(nodes, np.concatenate([a, b]))
        numbered = (np.stack([np.searchsorted(nodes, a), np.searchsorted(nodes, b)], 1) for a, b in self._links())
        least = tasks.least_numbers(len(nodes), (pairs.astype(np.int32) for pairs in numbered))
        self.run._write("components", pa.table({"node": nodes, "component": nodes[least]}))

    def _links(self) -> Iterator[tuple[Array, Array]]:
        for rows in self.run._read("links"):
            rows = rows.filter(rows["b"].is_valid())  # others are counts
            yield rows["a"].to_numpy(), rows["b"].to_numpy()


class LshMembers(_Step):
    """The fourth step, after the reader: write the documents that are in a component."""

    def __call__(self, data: Any, rank: int = 0, world_size: int = 1) -> None:
        """Run the step on the documents of a task."""
        import pyarrow as pa

        from lsh.stages import tasks

        run = self.run
        run._check(world_size)
        (table,) = run._read("components")
        nodes, components = (table[name].to_numpy() for name in ("node", "component"))
        shift = np.uint64(63 - run._part_bits)

        def members() -> Iterator[tuple[Array, pa.Table]]:
            for first, batch in _numbered(data if len(nodes) else ()):
                texts = pa.array([one.text for one in batch], pa.large_string())
                own = np.concatenate([tasks.nodes_of(one) for one in tasks.batches_of(texts, run.matching)])
                at = np.minimum(np.searchsorted(nodes, own), len(nodes) - 1)
                columns = {
                    "component": components[at],
                    "place": np.arange(first, first + len(batch)) + (rank << TASK_BITS),
                    "path": pa.array([str(one.metadata.get("file_path", "")) for one in batch], pa.string()),
                    "priority": pa.array([self._priority(one) for one in batch], pa.float64()),
                    "id": pa.array([str(one.id) for one in batch], pa.string()),
                    "text": texts,
                }
                rows = pa.table(columns).filter(pa.array(nodes[at] == own))
                mixed = rows["component"].to_numpy().view(np.uint64) * MIXER  # least numbers are not spread evenly
                yield (mixed >> np.uint64(1) >> shift).astype(np.int64), rows

        run._write_divided("members", rank, members())

    def _priority(self, document: Any) -> float | None:
        """Return the number by which a document is kept, if not by its place."""
        keep = self.run.keep
        if keep in ("first", "last"):
            return None
        if keep == "longest":
            return len(document.text.encode("utf-8", "surrogatepass"))
        value = document.metadata.get(keep)
        if value is not None and not isinstance(value, (int, float)):
            raise TypeError(f"metadata[{keep!r}] must be a number, got {value!r} in document {document.id}")
        return None if value is None or math.isnan(value) else float(value)


class LshDecide(_Step):
    """The fifth step: decide which documents to keep."""

    def __call__(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        """Run the step on the parts of a task."""
        import pyarrow as pa

        from lsh.stages import tasks

        run = self.run
        run._check()
        by_place = "descending" if run.keep == "last" else "ascending"
        order = [("component", "ascending"), ("priority", "descending"), ("path", by_place), ("place", by_place)]
        for part in run._own_parts(rank, world_size):
            tables = list(run._read(f"members/{part:04d}"))
            if not tables:
                continue
            rows = pa.concat_tables(tables).sort_by(order)
            numbers, old = pa.array(np.arange(len(rows))), pa.array(np.zeros(len(rows), np.bool_))
            given = pa.table({"component": rows["component"], "old": old, "id": numbers, "text": rows["text"]})
            found = list(tasks.decide(run.matching, None, False, iter(given.to_batches())))
            if found:
                self._write(part, rows, pa.Table.from_batches(found))

    def _write(self, part: int, rows: pa.Table, found: pa.Table) -> None:
        """Write for each task of readers which of its documents are removed, and for how many the others stand."""
        import pyarrow as pa

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
                self.run._write(f"{name}/{owner:06d}/{part:04d}", table.filter(pa.array(owners == owner)))


class LshFilter(_Step):
    """The last step, after the reader: leave out near duplicates.

    Parameters
    ----------
    run : LshRun
        The parameters of all steps.
    exclusion_writer : datatrove.pipeline.writers.disk_base.DiskWriter, optional
        Writes the documents that are left out, with ``lsh_kept_id`` and ``lsh_similarity`` in their metadata.
    add_copies : bool, optional
        Add ``lsh_copies`` to the metadata: for how many documents each stands, itself included.
    """

    def __init__(self, run: LshRun, exclusion_writer: Any = None, *, add_copies: bool = False) -> None:
        super().__init__(run)
        self.exclusion_writer, self.add_copies = exclusion_writer, add_copies

    def __call__(self, data: Any, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Yield the documents of a task that are kept."""
        run, count = self.run, 0
        run._check(world_size)
        gone = {row.pop("place"): row for rows in run._read(f"removed/{rank:06d}") for row in rows.to_pylist()}
        counts = (zip(*rows.to_pydict().values()) for rows in run._read(f"copies/{rank:06d}"))
        copies = {place: number for rows in counts for place, number in rows}
        with self.exclusion_writer or nullcontext() as writer:
            for place, document in enumerate(data, rank << TASK_BITS):
                count += 1
                if place in gone:
                    document.metadata.update({f"lsh_{name}": value for name, value in gone[place].items()})
                    if writer is not None:
                        writer.write(document, rank)
                    continue
                if self.add_copies:
                    document.metadata["lsh_copies"] = copies.get(place, 1)
                yield document
        (expected,) = next(run._read(f"counts/{rank:06d}"))["count"].to_pylist()
        if count != expected:
            raise ValueError(
                f"task {rank} read {expected:,} documents in LshSketch, {count:,} now; leave the input as it is"
            )


class LshIndexFilter:
    """A step that leaves out documents that are similar to one of an index, such as that of a `Screen`.

    Parameters
    ----------
    path : str
        The folder of the index, which each task opens for reading.
    threshold : float, optional
        The similarity from which a document is left out. Default: as stored with the index by a screen, else 0.9.
    exclusion_writer : datatrove.pipeline.writers.disk_base.DiskWriter, optional
        Writes the documents that are left out, with ``lsh_kept_id`` and ``lsh_similarity`` in their metadata.
    """

    def __init__(self, path: str, threshold: float | None = None, exclusion_writer: Any = None) -> None:
        self.path, self.threshold, self.exclusion_writer = path, threshold, exclusion_writer

    def __call__(self, data: Any, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Yield the documents of a task that are not similar to one of the index."""
        from lsh.store.index import Index
        from lsh.store.screen import Screen

        with Index.open(self.path) as index, self.exclusion_writer or nullcontext() as writer:
            screen = Screen(index, self.threshold, self.threshold, top=1)
            for _, batch in _numbered(data):
                for document, verdict in zip(batch, screen.check_docs([one.text for one in batch])):
                    if verdict.decision != "reject":
                        yield document
                    elif writer is not None:
                        (match,) = verdict.matches
                        document.metadata.update(lsh_kept_id=match.id, lsh_similarity=match.similarity)
                        writer.write(document, rank)
