"""One process of datatrove_minhash.py: `datatrove_worker.py COMMAND FOLDER [WAY THRESHOLD STEP]`.

`step` runs one step of a pipeline over FOLDER/in/*.jsonl, by datatrove's own steps or by those of `lsh`, and prints
what it takes. `shingles` writes the sets of datatrove's shingles. `pairs` and `components` are for the memory of the
step that has one task: many documents, each similar to one other.
"""

from __future__ import annotations

import json
import re
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup.minhash import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.hashing import HashConfig
from datatrove.utils.text import simplify_text
from datatrove.utils.typeshelper import Languages

from lsh import presets
from lsh.adapters import datatrove as adapter

# The published example, huggingface/datatrove, examples/minhash_deduplication.py. Its executors are those of Slurm, and
# it counts tokens, for which it needs a model of a server.
CONFIG = MinhashConfig(hash_config=HashConfig(precision=64), num_buckets=14, hashes_per_bucket=8)
PARTS = 8
COUNT = 2_000_000  # documents in pairs
Step = tuple[list[Any], int]


def peak() -> int:
    """Return the peak of the resident memory of this process, in bytes."""
    return 1024 * int(re.findall(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)[0])


def theirs(folder: Path, shards: int) -> dict[str, Step]:
    """Return the steps of the published example, each with its number of tasks."""
    work, reader = folder / "work", JsonlReader(str(folder / "in"))
    signatures, buckets, remove = (str(work / name) for name in ("signatures", "buckets", "remove_ids"))
    exclusions = JsonlWriter(str(folder / "removed"))
    return {
        "signatures": ([reader, MinhashDedupSignature(signatures, CONFIG, Languages.english)], shards),
        "buckets": ([MinhashDedupBuckets(signatures, buckets, config=CONFIG)], CONFIG.num_buckets),
        "cluster": ([MinhashDedupCluster(buckets, remove, CONFIG)], 1),
        "filter": (
            [reader, MinhashDedupFilter(remove, exclusions), JsonlWriter(str(folder / "kept"), compression=None)],
            shards,
        ),
    }


def simplified(data: Iterator[Document], rank: int = 0, world_size: int = 1) -> Iterator[Document]:
    """Give each document the text of which datatrove makes shingles."""
    for document in data:
        document.metadata["original"] = document.text
        document.text = simplify_text(document.text, CONFIG.norm_config)
        yield document


def restored(data: Iterator[Document], rank: int = 0, world_size: int = 1) -> Iterator[Document]:
    """Give each document its own text again."""
    for document in data:
        document.text = document.metadata.pop("original")
        yield document


def ours(folder: Path, shards: int, threshold: float, first: list[Any], last: list[Any]) -> dict[str, Step]:
    """Return the same with the steps of `lsh` in place, after other steps that read, and before others that write."""
    run = adapter.LshRun(str(folder / "work"), threshold, shingles=presets.fineweb.shingles, parts=PARTS)
    reading, exclusions = [JsonlReader(str(folder / "in")), *first], JsonlWriter(str(folder / "removed"))
    writing = [*last, JsonlWriter(str(folder / "kept"), compression=None)]
    return {
        "sketch": ([*reading, adapter.LshSketch(run)], shards),
        "link": ([adapter.LshLink(run)], PARTS),
        "components": ([adapter.LshComponents(run)], 1),
        "members": ([*reading, adapter.LshMembers(run)], shards),
        "decide": ([adapter.LshDecide(run)], PARTS),
        "filter": ([*reading, adapter.LshFilter(run, exclusions), *writing], shards),
    }


def measured(work: Callable[[], Any]) -> dict[str, Any]:
    """Return the times of some work, and by how much the peak of the memory grows."""
    before, wall, cpu = peak(), time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"wall_seconds": wall, "cpu_seconds": cpu, "growth_bytes": peak() - before}


def step(folder: Path, way: str, threshold: float, name: str) -> dict[str, Any]:
    """Run a step, all its tasks one after the other in this process."""
    shards = len(list((folder / "in").glob("*.jsonl")))
    if way == "datatrove":
        steps = theirs(folder, shards)
    elif way == "simplified":
        steps = ours(folder, shards, threshold, [simplified], [restored])
    else:
        steps = ours(folder, shards, threshold, [], [])
    pipeline, tasks = steps[name]
    logs = str(folder / "logs" / name)
    return measured(LocalPipelineExecutor(pipeline, tasks=tasks, workers=1, logging_dir=logs).run)


def shingles(folder: Path) -> None:
    """Write the distinct shingles of each document, as datatrove hashes them, with the number of the document."""
    signature = MinhashDedupSignature(str(folder / "unused"), CONFIG, Languages.english)
    owners, keys = [], []
    for path in sorted((folder / "in").glob("*.jsonl")):
        for line in path.open(encoding="utf-8"):
            record = json.loads(line)
            own = np.unique(signature.get_shingles(record["text"]))
            owners.append(np.full(len(own), int(record["id"]), np.int64))
            keys.append(own)
    np.savez(folder / "shingles.npz", owner=np.concatenate(owners), keys=np.concatenate(keys))


def in_pairs() -> Iterator[Document]:
    """Yield documents of six words; every second one has the words of the one before it, and a full stop."""
    for number in range(COUNT):
        words = np.random.default_rng(number // 2).integers(1 << 40, size=6)
        yield Document(" ".join(map(str, words)) + "." * (number % 2), str(number))


def pairs(folder: Path) -> None:
    """Write what the step of one task reads: datatrove's pairs, and our links of the same documents."""
    (folder / "buckets").mkdir(parents=True)
    for bucket in range(CONFIG.num_buckets):
        with (folder / "buckets" / f"{bucket:05d}_00.dups").open("wb") as file:
            for number in range(2 * bucket, COUNT, 2 * CONFIG.num_buckets):
                file.write(struct.pack("<4I", 0, number, 0, number + 1))
    run = adapter.LshRun(str(folder / "work"), 0.8, shingles=presets.fineweb.shingles)
    adapter.LshSketch(run)(in_pairs())
    adapter.LshLink(run)()


def components(folder: Path, way: str) -> dict[str, Any]:
    """Run the step of one task on what `pairs` wrote."""
    if way == "datatrove":
        one = MinhashDedupCluster(str(folder / "buckets"), str(folder / "remove_ids"), CONFIG)
        found = measured(lambda: one.run(None, 0, 1))
        removed = (folder / "remove_ids" / "000000.remove").stat().st_size // 4
    else:
        run = adapter.LshRun(str(folder / "work"), 0.8, shingles=presets.fineweb.shingles)
        opened = run._opened()  # imports what it needs
        found = measured(adapter.LshComponents(run))
        (table,) = opened._read("components")
        removed = len(table) - len(table["component"].unique())
    return {**found, "documents": COUNT, "removed": removed}


def main() -> None:
    command, folder, *rest = sys.argv[1:]
    if command == "step":
        found: Any = step(Path(folder), rest[0], float(rest[1]), rest[2])
    elif command == "components":
        found = components(Path(folder), rest[0])
    else:
        found = {"shingles": shingles, "pairs": pairs}[command](Path(folder))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
