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

import math
import os
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from typing import TYPE_CHECKING, Any

from lsh.base import checks, errors
from lsh.engine.matching import Matching

if TYPE_CHECKING:
    from lsh.stages.shared import SharedRun

__all__ = ["LshComponents", "LshDecide", "LshFilter", "LshIndexFilter", "LshLink", "LshMembers", "LshRun", "LshSketch"]

BATCH = 1 << 10  # documents that are held at once
MAX_PARTS = 1 << 12
MAX_WHOLE = 2**53  # above, floats are not exact
OPTIONS = {"recall", "bands", "shingles", "hasher", "num_seeds", "random_state", "verify", "clusters"}


class LshRun:
    """A deduplication of the documents of a pipeline: its parameters, and the folder of the files between its steps.

    Parameters
    ----------
    folder : str or path
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
        folder: str | os.PathLike[str],
        threshold: float | None = None,
        *,
        keep: str = "first",
        parts: int = 64,
        documents: int | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(folder, (str, os.PathLike)):
            raise errors.bad_type("folder", f"must be a path or a URL, got {type(folder).__name__}")
        self._path = os.fspath(folder)
        for name in options.keys() - OPTIONS:
            raise TypeError(f"LshRun has no parameter {name!r}; it takes {', '.join(sorted(OPTIONS))}")
        self._matching = Matching(threshold, **options)
        if documents is not None:
            self._matching = self._matching.for_documents(checks.whole_number("documents", documents, 1))
        self._keep = checks.instance("keep", keep, str, "a str")
        if not keep:
            raise ValueError("keep must be 'first', 'last', 'longest' or the name of a number in the metadata, got ''")
        self._parts = checks.whole_number("parts", parts, 1, MAX_PARTS)
        if self._parts & (self._parts - 1):
            raise ValueError(f"parts must be a power of two, such as 64, got {parts}")

    def _opened(self) -> SharedRun:
        """Return the run with its folder."""
        with errors.needing("lsh.adapters.datatrove requires datatrove: run pip install datatrove pyarrow"):
            from datatrove.io import get_datafolder

            from lsh.stages.shared import SharedRun
        return SharedRun(get_datafolder(self._path), self._matching, self._keep, self._parts)

    def _priority(self, document: Any) -> float | None:
        """Return the number by which a document is kept, if not by its place."""
        keep = self._keep
        if keep in ("first", "last"):
            return None
        if keep == "longest":
            return len(document.text.encode("utf-8", "surrogatepass"))
        value = document.metadata.get(keep)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or math.isnan(value) or abs(value) > MAX_WHOLE:
            wanted = "a number of at most 2**53, for keep"
            raise ValueError(f"metadata[{keep!r}] must be {wanted}, got {value!r} in document {document.id}")
        return float(value)


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


def _in_batches(data: Any) -> Iterator[list[Any]]:
    if data is None:
        raise ValueError("this step needs documents; put a reader before it")
    documents = iter(data)
    while batch := list(islice(documents, BATCH)):
        yield batch


def _texts(batch: list[Any]) -> Any:
    """Return the texts of documents as an Arrow array."""
    import pyarrow as pa

    try:
        return pa.array([one.text for one in batch], pa.large_string())
    except (TypeError, UnicodeEncodeError, pa.ArrowInvalid) as error:
        raise ValueError(f"the documents from {batch[0].id!r} to {batch[-1].id!r} have bad texts: {error}") from error


def _noted(data: Any, digest: Any) -> Iterator[Any]:
    """Yield documents, whose texts are added to a digest."""
    for batch in _in_batches(data):
        digest.add(_texts(batch))
        yield from batch


class LshSketch(_Step):
    """The first step, after a reader: write the keys of documents."""

    def __call__(self, data: Any, rank: int = 0, world_size: int = 1) -> None:
        """Run the step on the documents of a task."""
        opened = self.run._opened()
        import pyarrow as pa

        batches = (pa.record_batch({"text": _texts(batch)}) for batch in _in_batches(data))
        opened.sketch(batches, rank, world_size)


class LshLink(_Step):
    """The second step: connect documents that share a key and whose sketches are similar."""

    def __call__(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        """Run the step on the parts of a task."""
        self.run._opened().link(rank, world_size)


class LshComponents(_Step):
    """The third step, of one task: number the components, with 26 bytes of memory for each document in one."""

    def __call__(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        """Run the step."""
        if world_size != 1:
            raise ValueError(f"LshComponents must be run with tasks=1, got {world_size}")
        self.run._opened().connect()


class LshMembers(_Step):
    """The fourth step, after the reader: write the documents that are in a component."""

    def __call__(self, data: Any, rank: int = 0, world_size: int = 1) -> None:
        """Run the step on the documents of a task."""
        opened = self.run._opened()
        import pyarrow as pa

        def tables() -> Iterator[pa.Table]:
            for batch in _in_batches(data):
                columns = {
                    "text": _texts(batch),
                    "path": pa.array([str(one.metadata.get("file_path", "")) for one in batch], pa.string()),
                    "priority": pa.array([self.run._priority(one) for one in batch], pa.float64()),
                    "id": pa.array([str(one.id) for one in batch], pa.string()),
                }
                yield pa.table(columns)

        opened.members(tables(), rank, world_size)


class LshDecide(_Step):
    """The fifth step: decide which documents to keep."""

    def __call__(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        """Run the step on the parts of a task."""
        self.run._opened().decide(rank, world_size)


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
        opened = self.run._opened()
        gone, copies = opened.decisions(rank, world_size)
        digest = opened.digest()
        with self.exclusion_writer or nullcontext() as writer:
            for number, document in enumerate(_noted(data, digest)):
                if number in gone:
                    document.metadata.update({f"lsh_{name}": value for name, value in gone[number].items()})
                    if writer is not None:
                        writer.write(document, rank)
                    continue
                if self.add_copies:
                    document.metadata["lsh_copies"] = copies.get(number, 1)
                yield document
        opened.check_input(digest, rank)


class LshIndexFilter:
    """A step that leaves out documents that are similar to one of an index.

    Parameters
    ----------
    path : str
        The folder of the index, which each task opens for reading: of `Index.create` or `Screen.create`.
    threshold : float, optional
        The similarity from which a document is left out; the index must be made for it, or for a lower one. Default:
        the ``reject`` of the screen, if the index is that of one, else 0.9.
    exclusion_writer : datatrove.pipeline.writers.disk_base.DiskWriter, optional
        Writes the documents that are left out, with ``lsh_kept_id`` and ``lsh_similarity`` in their metadata.
    """

    def __init__(self, path: str, threshold: float | None = None, exclusion_writer: Any = None) -> None:
        self.path, self.threshold, self.exclusion_writer = path, threshold, exclusion_writer

    def __call__(self, data: Any, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Yield the documents of a task that are not similar to one of the index."""
        from lsh.store.index import Index
        from lsh.store.screen import rejecting

        with Index.open(self.path) as index, self.exclusion_writer or nullcontext() as writer:
            screen = rejecting(index, self.threshold)
            for batch in _in_batches(data):
                for document, verdict in zip(batch, screen.check_docs([one.text for one in batch])):
                    if verdict.decision != "reject":
                        yield document
                    elif writer is not None:
                        (match,) = verdict.matches
                        document.metadata.update(lsh_kept_id=match.id, lsh_similarity=match.similarity)
                        writer.write(document, rank)
