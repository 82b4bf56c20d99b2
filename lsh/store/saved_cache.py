"""Caches in the files of an index: `lsh.Cache.save` and `lsh.Cache.load`."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile

import numpy as np

from lsh.segments import file_format, manifest
from lsh.segments.disk import Disk, folder_of, made_folders
from lsh.segments.file_format import NO_TIME
from lsh.segments.manifest import Parameters
from lsh.segments.segment import DocumentBatch
from lsh.sketch.hasher import MinHasher
from lsh.sketch.planning import Plan
from lsh.store.index import Index
from lsh.typing import Array, DocId

DOCUMENTS_STEP = 1 << 13  # documents that are written or read at once


def save(path: str, hasher: MinHasher, plan: Plan, ids: list[DocId], rows: Array) -> None:
    """Write documents as a new index, in a folder beside `path` that takes its place when all are on the disk."""
    codes = file_format.encoded_ids("the ids of the cache", ids)
    folder, disk = os.path.realpath(folder_of(path)), Disk()
    made = made_folders(folder)
    beside = tempfile.mkdtemp(prefix=f"{os.path.basename(folder)}.", dir=os.path.dirname(folder))
    try:
        os.chmod(beside, stat.S_IMODE(os.stat(folder).st_mode))
        parameters = Parameters(hasher, plan, "full", False, manifest.microseconds("period", manifest.DAY))
        with Index._made(beside, parameters, None, {}) as index, index._writing() as writer:
            for start in range(0, len(codes), DOCUMENTS_STEP):
                some = rows[start : start + DOCUMENTS_STEP]
                times = np.full(len(some), NO_TIME, np.int64)
                keyed = ~hasher.is_empty(some)
                documents = DocumentBatch(
                    codes[start : start + DOCUMENTS_STEP], plan.bands.keys(some).T, keyed, some, times, None
                )
                writer.add(documents)
        if os.name == "nt":  # elsewhere renaming replaces an empty folder
            os.rmdir(folder)
        os.rename(beside, folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    for parent in {os.path.dirname(folder), *made}:
        disk.sync_folder(parent)


def load(path: str) -> tuple[MinHasher, Plan, list[DocId], Array]:
    """Return the hasher, the plan, the ids and the fingerprints of an index, in its order."""
    with Index.open(path) as index:
        if index._parameters.sketch != "full":
            raise ValueError(
                f"the index in {path} has no whole fingerprints (sketch={index._parameters.sketch!r}), which a cache "
                "needs; create it with sketch='full'"
            )
        snapshot = index._snapshot()
        rows = np.empty((len(snapshot), index.hasher.num_seeds), index.hasher.dtype)
        ids, done = list[DocId](), 0
        for places in snapshot.all_places(DOCUMENTS_STEP):
            rows[done : done + len(places)] = snapshot.sketches(places)
            ids += snapshot.ids(places)
            done += len(places)
        return index.hasher, index.plan, ids, rows
