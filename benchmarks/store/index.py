"""Measure `lsh.Index` at ten million documents: building, opening, queries from raw text, size and memory.

Texts have 100 bytes of random letters, so a query finds one document or none. The index has 16 bands of 8 and sketches
of 8 bits, and stores no texts. It is measured with ids of both kinds, as it is after building and after `compact`.
Beside it: sorted arrays in plain numpy (files that are mapped), a table with an index in SQLite, and datasketch with
its tables in Redis (index_redis.py, in an environment of its own). SQLite and datasketch hold fewer documents, because
they are slow. All have the same bands. Each must find every planted near duplicate, and nothing for other texts, before
it is measured.

Every step runs in its own process, on one core (the Redis server uses another). Rates are per second of CPU time, that
of the Redis server included, the median of five runs with different texts. Everything is warm: the files are in the
page cache, and the queries that check the answers come first. Memory is the anonymous memory of the process (Linux),
without mapped files.

    python benchmarks/store/index.py [FOLDER] [--documents 10000000]
    python benchmarks/store/index.py --only "lsh, int ids:build" --keep     # one step; the data stay for the next one
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import lsh

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import corpora
import harness
import peers

DOCUMENTS = 10_000_000
SLOW = {"SQLite": 100_000, "datasketch, Redis": 10_000}  # documents
BATCH, COMMIT = 10_000, 1_000_000  # documents
BANDS, SHINGLES, COMPONENTS = lsh.Bands(16, 8), lsh.Shingles(8), 128
PLAN = lsh.Plan(BANDS, 0.8, 0.94, COMPONENTS)
LEAST_EQUAL = 103  # components with equal low bytes from an estimate of 0.8 on
SIZE, WORDS = 100, 13  # bytes of a text; 64-bit random numbers that make it
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz     e", np.uint8)
EDIT = b"123"  # replaces the last bytes of a near duplicate: 90 of 96 shingles are common
NEW = 1 << 40  # number of the first text that no index holds
NEWER = 100_000  # texts that are deduplicated against an index
RUNS = 5
BUCKET = 1_000_000  # documents
STEPS = ("build", "ask", "deduplicate", "compact", "ask_compacted", "deduplicate_compacted")


def documents(numbers: Any) -> list[bytes]:
    """Return the texts with these numbers."""
    drawn = corpora.drawn(corpora.key_of("index", 0), np.asarray(numbers), WORDS)
    raw = LETTERS[np.ascontiguousarray(drawn).view(np.uint8)[:, :SIZE] & 31].tobytes()
    return [raw[start : start + SIZE] for start in range(0, len(raw), SIZE)]


def near(numbers: Any) -> list[bytes]:
    """Return near duplicates of the texts with these numbers."""
    return [text[: -len(EDIT)] + EDIT for text in documents(numbers)]


# ---- ways to hold the documents ----


class Way(Protocol):
    """Documents that are found by similarity; ids are numbers."""

    def add(self, texts: list[bytes], first: int) -> None: ...
    def commit(self) -> None: ...
    def finish(self) -> None: ...
    def query(self, text: bytes) -> list[int]: ...
    def query_docs(self, texts: list[bytes]) -> list[list[int]]: ...


class Lasting:
    """`lsh.Index`."""

    def __init__(self, folder: Path, kind: type, create: bool = False) -> None:
        path = folder / "index"
        self.kind = kind
        self.index = (
            lsh.Index.create(path, bands=PLAN, shingles=SHINGLES, texts=None) if create else lsh.Index.open(path)
        )

    def add(self, texts: list[bytes], first: int) -> None:
        ids: Iterable[Any] = range(first, first + len(texts))
        self.index.add_docs(texts, ids if self.kind is int else [f"{number:010d}" for number in ids])

    def commit(self) -> None:
        self.index.commit()

    def finish(self) -> None:
        self.index.close()

    def query(self, text: bytes) -> list[int]:
        return [int(match.id) for match in self.index.query(text)]

    def query_docs(self, texts: list[bytes]) -> list[list[int]]:
        return [[int(match.id) for match in matches] for matches in self.index.query_docs(texts)]


class SortedArrays:
    """Keys of each band in order with the numbers of their documents, and sketches, in files that numpy maps."""

    def __init__(self, folder: Path, create: bool = False) -> None:
        self.folder, self.hasher = folder, lsh.MinHasher(COMPONENTS, scheme="fss", shingles=SHINGLES, random_state=0)
        self.held: list[tuple[Any, Any]] = []
        if not create:
            loaded = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in self.names()]
            # np.memmap is slower than an array of the same memory
            *arrays, self.sketches = (array.view(np.ndarray) for array in loaded)
            self.bands = list(zip(arrays[::2], arrays[1::2]))

    def names(self) -> Iterator[str]:
        for band in range(len(BANDS.widths)):
            yield from (f"keys{band}", f"numbers{band}")
        yield "sketches"

    def hashed(self, texts: list[bytes]) -> tuple[Any, Any]:
        rows = self.hasher.fingerprints(texts, num_threads=1)
        return BANDS.keys(rows), rows.astype(np.uint8)

    def add(self, texts: list[bytes], first: int) -> None:
        self.held.append(self.hashed(texts))

    def commit(self) -> None:
        """Arrays are written at the end only."""

    def finish(self) -> None:
        for band in range(len(BANDS.widths)):
            keys = np.concatenate([keys[band] for keys, _ in self.held])
            order = np.argsort(keys)
            np.save(self.folder / f"keys{band}.npy", keys[order])
            np.save(self.folder / f"numbers{band}.npy", order.astype(np.uint32))
        np.save(self.folder / "sketches.npy", np.concatenate([sketches for _, sketches in self.held]))

    def query(self, text: bytes) -> list[int]:
        return self.query_docs([text])[0]

    def query_docs(self, texts: list[bytes]) -> list[list[int]]:
        asked, sketches = self.hashed(texts)
        pairs = []
        for column, (keys, numbers) in zip(asked, self.bands):
            starts = np.searchsorted(keys, column)
            hits = np.flatnonzero(keys[np.minimum(starts, len(keys) - 1)] == column)
            if len(hits):
                stops = np.searchsorted(keys, column[hits], side="right")
                pairs += [(i, numbers[start:stop]) for i, start, stop in zip(hits, starts[hits], stops)]
        found: list[list[int]] = [[] for _ in texts]
        if pairs:
            queries = np.repeat([i for i, _ in pairs], [len(members) for _, members in pairs])
            both = np.unique(queries << 32 | np.concatenate([members for _, members in pairs]).astype(np.int64))
            queries, members = both >> 32, both & 0xFFFFFFFF
            equal = (sketches[queries] == self.sketches[members]).sum(axis=1)
            for i, member in zip(queries[equal >= LEAST_EQUAL], members[equal >= LEAST_EQUAL].tolist()):
                found[i].append(member)
        return found


class Table:
    """One table of band, key and id in SQLite, with an index; another table has the sketches."""

    def __init__(self, folder: Path, create: bool = False) -> None:
        self.hasher = lsh.MinHasher(COMPONENTS, scheme="fss", shingles=SHINGLES, random_state=0)
        self.base = sqlite3.connect(folder / "index.sqlite")
        self.base.execute("PRAGMA journal_mode = WAL")
        self.base.execute("PRAGMA cache_size = -2000000")  # 2 GB
        if create:
            self.base.execute("CREATE TABLE bands (band INTEGER, key INTEGER, id INTEGER)")
            self.base.execute("CREATE INDEX by_key ON bands (band, key)")
            self.base.execute("CREATE TABLE documents (id INTEGER PRIMARY KEY, sketch BLOB)")
        self.select = (
            f"WITH asked(band, key) AS (VALUES {', '.join(f'({band}, ?)' for band in range(len(BANDS.widths)))}) "
            "SELECT DISTINCT documents.id, sketch FROM asked "
            "CROSS JOIN bands USING (band, key) JOIN documents USING (id)"
        )

    def hashed(self, texts: list[bytes]) -> tuple[list[list[int]], Any]:
        rows = self.hasher.fingerprints(texts, num_threads=1)
        return BANDS.keys(rows).T.astype(np.int64).tolist(), rows.astype(np.uint8)

    def add(self, texts: list[bytes], first: int) -> None:
        keys, sketches = self.hashed(texts)
        rows = ((band, key, number) for number, own in enumerate(keys, first) for band, key in enumerate(own))
        with self.base:
            self.base.executemany("INSERT INTO bands VALUES (?, ?, ?)", rows)
            self.base.executemany(
                "INSERT INTO documents VALUES (?, ?)", ((i, row.tobytes()) for i, row in enumerate(sketches, first))
            )

    def commit(self) -> None:
        """Every batch is committed."""

    def finish(self) -> None:
        self.base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.base.close()

    def query(self, text: bytes) -> list[int]:
        return self.query_docs([text])[0]

    def query_docs(self, texts: list[bytes]) -> list[list[int]]:
        return [self.found(keys, sketch) for keys, sketch in zip(*self.hashed(texts))]

    def found(self, keys: list[int], sketch: Any) -> list[int]:
        candidates = self.base.execute(self.select, keys).fetchall()
        return [i for i, own in candidates if (np.frombuffer(own, np.uint8) == sketch).sum() >= LEAST_EQUAL]


WAYS: dict[str, Callable[..., Way]] = {
    "lsh, int ids": lambda folder, create=False: Lasting(folder, int, create),
    "lsh, str ids": lambda folder, create=False: Lasting(folder, str, create),
    "sorted arrays, numpy": SortedArrays,
    "SQLite": Table,
}


# ---- steps, each in a process of its own ----


@contextmanager
def memory(every: float = 0.02) -> Iterator[dict[str, int]]:
    """Note by how much the anonymous memory of the process grows: sampled `every` so many seconds."""
    found, stopped = {"more_memory_bytes": 0}, threading.Event()

    def now() -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))

    def sample() -> None:
        while not stopped.wait(every):
            found["more_memory_bytes"] = max(found["more_memory_bytes"], now() - before)

    before = now()
    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield found
    finally:
        stopped.set()
        thread.join()


def size_of(folder: Path) -> int:
    """Return the bytes of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def written() -> int:
    """Return how many bytes this process has written (Linux)."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def writing(path: Path, size: int, count: int) -> float:
    """Return the seconds of CPU time in which so many bytes are merely written, to files of this size."""
    data = bytes(1 << 20)
    started = time.process_time()
    for begin in range(0, count, size):
        with path.open("wb", buffering=0) as file:
            for _ in range(0, min(size, count - begin), len(data)):
                file.write(data)
            os.fsync(file.fileno())
        path.unlink()
    return time.process_time() - started


def build(name: str, count: int, folder: Path) -> dict[str, Any]:
    """Add all documents in batches; what makes their texts is not counted."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    cpu = wall = 0.0
    way = WAYS[name](folder, create=True)

    def timed(work: Callable[..., None], *arguments: Any) -> None:
        nonlocal cpu, wall
        started = time.process_time(), time.perf_counter()
        work(*arguments)
        cpu += time.process_time() - started[0]
        wall += time.perf_counter() - started[1]

    before = written()
    with memory() as more:
        for start in range(0, count, BATCH):
            timed(way.add, documents(np.arange(start, min(start + BATCH, count))), start)
            if (start + BATCH) % COMMIT == 0:
                timed(way.commit)
        timed(way.finish)
    rates = {"documents_per_second": count / wall, "documents_per_cpu_second": count / cpu}
    size, wrote = size_of(folder), written() - before
    files = {"written_bytes": wrote, "writing_seconds": writing(folder / "plain", size, wrote)}
    return {"documents": count, **rates, "bytes_per_document": size / count, **files, **more}


def compact(name: str, count: int, folder: Path) -> dict[str, Any]:
    """Merge all segments of an index."""
    index = lsh.Index.open(folder / "index", "a")
    with memory() as more:
        started = time.process_time()
        index.compact()
        seconds = time.process_time() - started
    index.close()
    return {"seconds": seconds, "bytes_per_document": size_of(folder) / count, **more}


def ask(name: str, count: int, folder: Path) -> dict[str, Any]:
    """Open; check the answers, which warms up; then measure queries, one at a time and in batches."""
    if name.startswith("lsh"):
        lsh.Index  # noqa: B018  its modules are loaded when first used; opening does not include that
    opening = []
    for _ in range(5):
        started = time.perf_counter()
        way = WAYS[name](folder)
        opening.append(time.perf_counter() - started)
    fast = name not in SLOW
    many, single = (100_000, 10_000) if fast else (2_000, 1_000)
    return {"opening_seconds": opening[0], "opening_again_seconds": min(opening[1:]), **asked(way, count, many, single)}


def asked(way: Way, count: int, many: int, single: int) -> dict[str, Any]:
    """Check and measure the queries of an open index."""
    random, new = np.random.default_rng(0), NEW
    numbers = random.integers(0, count, many)
    copies = near(numbers)
    started = time.process_time()
    found = way.query_docs(copies)
    first = many / (time.process_time() - started)
    harness.must(found == [[number] for number in numbers.tolist()], "a planted near duplicate was not found")
    found = way.query_docs(documents(np.arange(new, new + many)))
    harness.must(not any(found), "a new text has a match")
    harness.must([way.query(text) for text in near(numbers[:100])] == [[i] for i in numbers[:100].tolist()], "single")
    runs: dict[str, list[float]] = {"single": [], "single_match": [], "batch": [], "batch_match": []}
    for _ in range(RUNS):
        new += many
        fresh, copies = documents(np.arange(new, new + many)), near(random.integers(0, count, many))
        for kind, texts in (("", fresh), ("_match", copies)):
            runs["single" + kind].append(rate(lambda texts: [way.query(text) for text in texts], texts[:single]))
            runs["batch" + kind].append(rate(way.query_docs, texts))
    rates = {kind: {"per_second": statistics.median(rates), "runs": rates} for kind, rates in runs.items()}
    return {"checked": many, "first_batch_per_second": first, "queries": rates}


def rate(work: Callable[[list[bytes]], Any], texts: list[bytes]) -> float:
    started = time.process_time()
    work(texts)
    return len(texts) / (time.process_time() - started)


def bucket(folder: Path) -> dict[str, Any]:
    """Measure queries that share a band with a million equal documents: one that none passes, and one for the best."""
    shutil.rmtree(folder, ignore_errors=True)
    index = lsh.Index.create(folder, bands=PLAN, shingles=SHINGLES, texts=None)
    text = documents([NEW])[0]
    for start in range(0, BUCKET, BATCH):
        index.add_docs([text] * BATCH, range(start, start + BATCH))
    index.commit()
    index.compact()
    own = BANDS.keys(index.hasher.fingerprint(text)[None])
    edited = [text[:cut] + other[cut:] for cut in range(70, 85) for other in documents(np.arange(NEW + 1, NEW + 50))]
    shared = (BANDS.keys(index.hasher.fingerprints(edited)) == own).sum(axis=0)
    other = edited[int(np.flatnonzero(shared > 0)[0])]
    asked = {
        "none_passes": lambda: index.query(other),
        "best_ten": lambda: index.query(text, top=10),
        "all": lambda: index.query(text),
    }
    found: dict[str, Any] = {"documents": BUCKET}
    for name, work in asked.items():
        answer = len(work())  # warm
        harness.must(answer == {"none_passes": 0, "best_ten": 10, "all": BUCKET}[name], f"{answer} matches")
        repeats = 1 if name == "all" else 20
        with memory(0.001) as more:
            started = time.process_time()
            for _ in range(repeats):
                work()
            seconds = (time.process_time() - started) / repeats
        found[name] = {"seconds": seconds, "answer": answer, **more}
    return found


def deduplicate(name: str, count: int, folder: Path) -> dict[str, Any]:
    """Measure `lsh.deduplicate` of new texts against an index, in the time that their fingerprints take."""
    index = lsh.Index.open(folder / "index")
    runs: dict[str, list[float]] = {"fingerprints_seconds": [], "deduplicate_seconds": []}
    for run in range(RUNS + 1):
        texts = documents(np.arange(NEW + run * NEWER, NEW + (run + 1) * NEWER))
        started = time.process_time()
        index.hasher.fingerprints(texts, num_threads=1)
        hashed = time.process_time()
        found = lsh.deduplicate(texts, against=index, verify="sketch", num_threads=1)
        times = hashed - started, time.process_time() - hashed
        harness.must(len(found.removed) == 0, "a new text has a duplicate")
        if run:  # the first one warms up
            for kind, seconds in zip(runs.values(), times):
                kind.append(seconds)
    ratio = statistics.median(whole / hashing for hashing, whole in zip(*runs.values()))
    return {"new": NEWER, "times_fingerprints": ratio, **runs}


def redis(count: int, folder: Path) -> dict[str, Any]:
    """Run index_redis.py in an environment of its own; a reason if that is not possible."""
    shutil.rmtree(folder / "appendonlydir", ignore_errors=True)  # of a run that was interrupted
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.which("redis-server") is None:
        return {"not_measured": "there is no redis-server"}
    python, reason = peers.environment(folder / "environments", "datasketch-redis")
    if python is None:
        return {"not_measured": reason}
    many = 500
    random = np.random.default_rng(0)
    numbers = random.integers(0, count, many * (RUNS + 1))
    given = {"documents": documents(np.arange(count)), "near": near(numbers)}
    given["new"] = documents(np.arange(NEW, NEW + many * (RUNS + 1)))
    for name, texts in given.items():
        (folder / name).write_bytes(b"".join(texts))
    np.save(folder / "numbers.npy", numbers)
    worker = Path(__file__).with_name("index_redis.py")
    command = [python, worker, folder, len(BANDS.widths), BANDS.widths[0], SIZE, SHINGLES.n, RUNS]
    ran = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True)
    return {"documents": count, **json.loads(ran.stdout)}


def steps(count: int) -> dict[str, tuple[str, Callable[[Path], dict[str, Any]]]]:
    """Return each step by its name, with the folder of its data."""
    found: dict[str, tuple[str, Callable[[Path], dict[str, Any]]]] = {}
    work = {"build": build, "ask": ask, "deduplicate": deduplicate, "compact": compact}
    work |= {"ask_compacted": ask, "deduplicate_compacted": deduplicate}
    for name in WAYS:
        for step in STEPS if name.startswith("lsh") else STEPS[:2]:
            most = min(count, SLOW.get(name, count))
            found[f"{name}:{step}"] = name, lambda folder, n=name, s=step, c=most: work[s](n, c, folder)  # type: ignore[misc]
    slow = min(count, SLOW["datasketch, Redis"])
    found["datasketch, Redis:all"] = "redis", lambda folder: redis(slow, folder)
    found["bucket:all"] = "bucket", bucket
    return found


def run(step: str, count: int, data: Path) -> dict[str, Any]:
    """Run a step in a process of its own, on one core."""
    command = [sys.executable, __file__, "--step", step, "--documents", count, "--data", data]
    with tempfile.TemporaryFile("w+") as out:
        subprocess.run(list(map(str, command)), stdout=out, check=True, env=os.environ | peers.ONE_THREAD)
        out.seek(0)
        found: dict[str, Any] = json.loads(out.read())
    return found


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--documents", type=int, default=DOCUMENTS, help=f"default: {DOCUMENTS}")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "lsh-index-benchmark")
    parser.add_argument("--only", action="append", metavar="STEP", help="run this step, and update the result")
    parser.add_argument("--keep", action="store_true", help="do not delete the data (up to 15 GB) at the end")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    options = parser.parse_args()
    known = steps(options.documents)
    if options.step:
        name, work = known[options.step]
        if name != "redis":
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        print(json.dumps(work(options.data / name)))
        return
    if unknown := set(options.only or ()) - set(known):
        parser.error(f"unknown step in --only: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    path = options.folder / "index.json"
    ways: dict[str, Any] = json.loads(path.read_text())["ways"] if options.only and path.exists() else {}
    try:
        for step in options.only or known:
            print(f"{step} ...", flush=True)
            way, _, part = step.partition(":")
            ways[way] = {**ways.get(way, {}), part: run(step, options.documents, options.data)}
            content = {
                "about": f"texts of {SIZE} bytes, {len(BANDS.widths)} bands of {BANDS.widths[0]}, 8 bits a component; "
                "one core, CPU time",
                "data": {"documents": options.documents, "bytes": SIZE * options.documents},
                "ways": ways,
            }
            harness.write("index", content, options.folder)
            done = part in ("all", STEPS[-1]) or (part == "ask" and not way.startswith("lsh"))
            if done and not options.keep:
                shutil.rmtree(options.data / known[step][0], ignore_errors=True)
    finally:
        if not options.keep:
            shutil.rmtree(options.data, ignore_errors=True)


if __name__ == "__main__":
    main()
