"""Measure datasketch with its tables in Redis; index.py runs this in an environment of its own.

The folder holds `documents`, `near` and `new`, texts of one size without separators, and `numbers.npy`: the document of
which each text of `near` is a near duplicate. A server is started with its files in the folder, reached by a socket,
and stopped at the end. It writes an append-only file, which it syncs each second (its default).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 1000


def texts_of(path: Path, size: int) -> list[bytes]:
    raw = path.read_bytes()
    return [raw[start : start + size] for start in range(0, len(raw), size)]


class Server:
    """A Redis server with its files in a folder."""

    def __init__(self, folder: Path) -> None:
        import redis

        self.folder, self.socket = folder, folder / "socket"
        self.client = redis.Redis(unix_socket_path=str(self.socket))

    def start(self) -> float:
        """Start the server; return the seconds until it answers, with all data loaded."""
        from redis.exceptions import ConnectionError

        options = {"port": 0, "unixsocket": self.socket, "dir": self.folder, "save": "", "appendonly": "yes"}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        started = time.perf_counter()
        self.process = subprocess.Popen(["redis-server", *words], stdout=subprocess.DEVNULL)
        while time.perf_counter() - started < 60:
            try:
                if self.client.ping():
                    return time.perf_counter() - started
            except ConnectionError:  # also while it loads
                time.sleep(0.001)
        raise SystemExit("redis-server does not answer")

    def stop(self) -> None:
        """Stop the server; its data are in the folder."""
        self.client.shutdown(nosave=True)
        self.process.wait()

    def cpu(self) -> float:
        """Return the CPU seconds of this process and of the server."""
        used = self.client.info("cpu")
        return float(time.process_time() + used["used_cpu_user"] + used["used_cpu_sys"])

    def rate(self, work: Callable[[list[bytes]], Any], texts: list[bytes]) -> float:
        started = self.cpu()
        work(texts)
        return len(texts) / (self.cpu() - started)


class Tables:
    """`datasketch.MinHashLSH` in Redis."""

    def __init__(self, server: Server, bands: int, width: int, n: int) -> None:
        import datasketch

        where = {"type": "redis", "basename": b"benchmark", "redis": {"unix_socket_path": str(server.socket)}}
        self.lsh = datasketch.MinHashLSH(num_perm=bands * width, params=(bands, width), storage_config=where)
        self.num_perm, self.n = bands * width, n

    def hashed(self, texts: list[bytes]) -> list[Any]:
        import datasketch

        n = self.n
        sets = [{text[i : i + n] for i in range(len(text) - n + 1)} for text in texts]
        return list(datasketch.MinHash.bulk(sets, num_perm=self.num_perm))

    def add(self, texts: list[bytes], first: int) -> None:
        with self.lsh.insertion_session() as session:
            for number, made in enumerate(self.hashed(texts), first):
                session.insert(number, made)

    def query(self, text: bytes) -> list[int]:
        return self.query_docs([text])[0]

    def query_docs(self, texts: list[bytes]) -> list[list[int]]:
        return [sorted(self.lsh.query(made)) for made in self.hashed(texts)]


def measure(folder: Path, bands: int, width: int, size: int, n: int, runs: int) -> dict[str, Any]:
    documents, near, new = (texts_of(folder / name, size) for name in ("documents", "near", "new"))
    numbers = np.load(folder / "numbers.npy").tolist()
    many = len(new) // (runs + 1)
    server = Server(folder)
    server.start()
    try:
        tables = Tables(server, bands, width, n)
        before = server.client.info("memory")["used_memory"]
        started = server.cpu()
        for start in range(0, len(documents), BATCH):
            tables.add(documents[start : start + BATCH], start)
        seconds = server.cpu() - started
        used = server.client.info("memory")["used_memory"] - before
        server.stop()
        loading = server.start()
        started = time.perf_counter()
        tables = Tables(server, bands, width, n)
        opening = loading + time.perf_counter() - started
        found = tables.query_docs(near[:many])
        if found != [[number] for number in numbers[:many]] or any(tables.query_docs(new[:many])):
            raise SystemExit("wrong answer, benchmark stopped: datasketch with Redis")
        rates: dict[str, list[float]] = {"single": [], "single_match": [], "batch": [], "batch_match": []}
        for first in range(many, len(new), many):
            for kind, texts in (("", new), ("_match", near)):
                one = texts[first : first + many]
                rates["single" + kind].append(server.rate(lambda own: [tables.query(text) for text in own], one))
                rates["batch" + kind].append(server.rate(tables.query_docs, one))
    finally:
        server.stop()
    return {
        "versions": {name: importlib.metadata.version(name) for name in ("datasketch", "redis")},
        "documents_per_cpu_second": len(documents) / seconds,
        "bytes_per_document": used / len(documents),
        "opening_seconds": opening,
        "checked": many,
        "queries": {kind: {"per_second": statistics.median(found), "runs": found} for kind, found in rates.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    for name in ("bands", "width", "size", "n", "runs"):
        parser.add_argument(name, type=int)
    print(json.dumps(measure(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
