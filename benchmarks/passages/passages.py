"""Measure `lsh passages` on gigabytes of pages with planted passages: what is found, time, memory and disk.

A page has 60 to 1,200 words drawn from a vocabulary, so that nothing of 200 bytes repeats by chance. In every page are
also a menu, whose parts are shorter than a passage, with the title of the page between them, and a footer of 300 bytes.
Passages of 200 to 5,000 bytes are planted in 2 to 10,000 pages each (both drawn with a density of 1 / x). The table of
`--spans` is compared with what was planted: of each passage and of the footer, all copies but one must be cut, and
nothing else. The command runs in its own process; the temporary files, which have no names, are those that it has open.
Of the smaller sizes, several parts of the same pages are run, some before the whole and some after it; the one with the
median time counts.
How fast one core finds the keys of real texts is measured for each level of the kernels.

    python benchmarks/passages/passages.py [FOLDER [PLACE]] [--gigabytes 1 10] [--max-memory 2GB]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import harness

from lsh._minhash import simd_levels

MIN_BYTES = 200
SHARD = 100_000_000  # bytes of text of a file, about
PAGES = 17_000  # of a file
WORDS = (60, 1200)  # of a page
SIZES, COUNTS = (200, 5000), (2, 10_000)  # of a passage: bytes, and pages that have it
PER_SHARD = 9  # passages that are new with each file
RUNS = 6  # of parts of the pages
MENU = "Home Products Prices Support Forum Contact Imprint Search our pages by name or by number {} Sign in Register "
MENU += "Your basket is empty Terms Privacy All prices with tax "


def vocabulary() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return 30,000 words of letters, each followed by a space, as rows of bytes, and their lengths."""
    draw = np.random.default_rng(0)
    sizes = draw.integers(2, 11, 30_000)
    letters = draw.integers(97, 123, (30_000, 12)).astype(np.uint8)
    letters[np.arange(12) >= sizes[:, None]] = 32
    return letters, sizes + 1


def words_of(count: int, draw: np.random.Generator) -> bytes:
    """Return random words; frequent ones have low numbers."""
    letters, sizes = VOCABULARY
    numbers = np.minimum(draw.pareto(0.9, count) * 40, len(letters) - 1).astype(np.int32)
    return bytes(letters[numbers][np.arange(12) < sizes[numbers][:, None]])


def log_uniform(draw: np.random.Generator, low: int, high: int, count: int) -> np.ndarray[Any, Any]:
    return np.exp(draw.uniform(np.log(low), np.log(high + 1), count)).astype(np.int64)


VOCABULARY = vocabulary()


class Planted:
    """Where passages are planted among some pages."""

    def __init__(self, shards: int) -> None:
        draw = np.random.default_rng(1)
        pages = shards * PAGES
        counts = np.minimum(log_uniform(draw, *COUNTS, shards * PER_SHARD), pages)
        sizes = log_uniform(draw, *SIZES, len(counts))
        self.passages = [words_of(int(size), draw)[:size] for size in sizes]
        where = [np.sort(draw.choice(pages, count, replace=False)) for count in counts]
        self.pages = np.concatenate(where)
        self.numbers = np.repeat(np.arange(len(counts)), counts)
        order = np.argsort(self.pages, kind="stable")
        self.pages, self.numbers = self.pages[order], self.numbers[order]
        self.footer = words_of(300, draw)[:300]

    def of(self, page: int) -> list[int]:
        return self.numbers[slice(*np.searchsorted(self.pages, [page, page + 1]))].tolist()


def write(folder: Path, shards: int) -> np.ndarray[Any, Any]:
    """Write the pages; return where passages are: page, start, end, and number of the passage (-1: the footer)."""
    planted = Planted(shards)
    places: list[tuple[int, int, int, int]] = []
    for shard in range(shards):
        draw = np.random.default_rng([2, shard])
        counts = draw.integers(*WORDS, PAGES)
        words, at = words_of(int(counts.sum()), draw), 0
        ends = np.flatnonzero(np.frombuffer(words, np.uint8) == 32)[np.cumsum(counts) - 1].tolist()
        with open(name_of(folder, shard), "wb") as file:
            for number, end in enumerate(ends):
                page = shard * PAGES + number
                parts = [MENU.format(f"{page * 2654435761 % 10**9:09}").encode()]
                body, at, passages = words[at:end], end, planted.of(page)
                cuts = sorted(draw.integers(0, len(body), len(passages)).tolist())
                for start, stop, passage in zip([0, *cuts], [*cuts, len(body)], [*passages, -1]):
                    parts.append(body[start:stop])
                    size = sum(map(len, parts))
                    parts.append(planted.passages[passage] if passage >= 0 else planted.footer)
                    places.append((page, size, size + len(parts[-1]), passage))
                text = b"".join(parts).decode()
                file.write(b'{"id": %d, "text": "%s"}\n' % (page, text.encode()))
    os.sync()  # else the pages would be written to the disk while they are read
    return np.array(places)


def name_of(folder: Path, shard: int) -> Path:
    return folder / f"part-{shard:04}.jsonl"


def copies_of(places: np.ndarray[Any, Any], shards: range) -> np.ndarray[Any, Any]:
    """Return the copies that must be cut from some files: page, start and end; the first of each passage stays."""
    here = places[(places[:, 0] >= shards.start * PAGES) & (places[:, 0] < shards.stop * PAGES)]
    stays = np.unique(here[:, 3], return_index=True)[1]
    return np.delete(here, stays, axis=0)[:, :3]


def open_files(process: int) -> int:
    """Return the bytes of the files without a name that a process has open."""
    total = 0
    try:
        for number in os.listdir(f"/proc/{process}/fd"):
            place = f"/proc/{process}/fd/{number}"
            if "/lsh-" in os.readlink(place) or "(deleted)" in os.readlink(place):
                total += os.stat(place).st_blocks * 512
    except OSError:
        pass
    return total


def run(folder: Path, files: range, max_memory: str | None, num_old: int = 0) -> dict[str, Any]:
    """Run the command on some files of a folder, of which the first `num_old` are old ones; return what it took."""
    shards = [str(name_of(folder, shard)) for shard in files]
    output = Path(tempfile.mkdtemp(dir=folder))
    bound = [] if max_memory is None else ["--max-memory", max_memory]
    command = [sys.executable, "-m", "lsh", "passages", *shards[num_old:], "-o", f"{output / 'out'}/"]
    command += ["--against", *shards[:num_old]] if num_old else []
    command += ["--min-bytes", str(MIN_BYTES), "--spans", str(output / "spans.tsv"), "--json", "-q", *bound]
    most = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        done = threading.Event()

        def watch() -> None:
            nonlocal most
            while not done.wait(0.2):
                most = max(most, open_files(process.pid))

        watching = threading.Thread(target=watch)
        watching.start()
        assert process.stdout is not None
        printed = process.stdout.read()
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        done.set()
        watching.join()
    counts = json.loads(printed)
    spans = np.loadtxt(output / "spans.tsv", np.int64, usecols=(0, 1, 2), ndmin=2)
    for path in sorted((output / "out").iterdir()):
        path.unlink()
    (output / "out").rmdir()
    (output / "spans.tsv").unlink()
    output.rmdir()
    return {
        "max_memory": max_memory,
        "old": counts["old"],
        "seconds": counts["seconds"],
        "cpu": usage.ru_utime + usage.ru_stime,
        "user": usage.ru_utime,
        "peak_memory": counts["peak_memory"],
        "temporary_bytes": most,
        "bytes": counts["bytes"],
        "documents": counts["documents"],
        "cut_bytes": counts["cut_bytes"],
        "spans": spans,
    }


def check(result: dict[str, Any], copies: np.ndarray[Any, Any]) -> None:
    """Compare the spans with the copies that were planted, and put what is missing or too much into the result."""
    spans = result.pop("spans")
    base = int(max(spans[:, 2].max(), copies[:, 2].max())) + 1
    starts, ends = spans[:, 0] * base + spans[:, 1], spans[:, 0] * base + spans[:, 2]
    ends = np.maximum.accumulate(ends)
    wanted = copies[np.lexsort((copies[:, 1], copies[:, 0]))]
    first, last = wanted[:, 0] * base + wanted[:, 1], wanted[:, 0] * base + wanted[:, 2]
    place = np.searchsorted(starts, first, side="right") - 1
    missing = (place < 0) | (first < starts[place])
    covered = ends[np.minimum(np.searchsorted(starts, last, side="left") - 1, len(ends) - 1)]
    missing |= covered < last
    result["planted"], result["missing"] = len(wanted), int(missing.sum())
    result["beside"] = (result["cut_bytes"] - int((last - first).sum())) / result["cut_bytes"]
    assert result["missing"] == 0, f"{result['missing']} of {len(wanted)} planted copies are left"
    most = 0.03 if result["old"] else 0.01  # all old copies stay: by chance, one of them has a few more bytes in common
    assert result["beside"] < most, f"{result['beside']:.2%} of what is cut was not planted"


def measured(folder: Path, places: np.ndarray[Any, Any], files: range, bound: str, num_old: int = 0) -> dict[str, Any]:
    """Run the command on some files, and check what it found."""
    copies = copies_of(places, files)
    result = run(folder, files, bound, num_old)
    check(result, copies[copies[:, 0] >= (files.start + num_old) * PAGES])
    result["parts"] = 1
    total = result["seconds"]["total"]
    print(
        f"{result['bytes'] / 1e9:.2f} GB: {total:.1f} s ({total / result['bytes'] * 1e9:.2f} ns a byte), "
        f"CPU {result['cpu']:.0f} s, {result['peak_memory'] / 1e9:.2f} GB of memory, "
        f"{result['temporary_bytes'] / result['bytes']:.3f} of the text in temporary files, "
        f"{result['planted']:,} planted copies found, {result['beside']:.4%} of what is cut is beside them",
        flush=True,
    )
    return result


def measure(folder: Path, gigabytes: list[float], bound: str) -> list[dict[str, Any]]:
    """Write pages, and run the command on all of them and on parts, and with a half of a part as old pages."""
    counts = sorted(max(round(size * 1e9 / SHARD), 1) for size in gigabytes)
    places = write(folder, counts[-1])
    parts: dict[int, list[dict[str, Any]]] = {count: [] for count in counts}
    for number in range(RUNS):
        if number == RUNS // 2:
            parts[counts[-1]].append(measured(folder, places, range(counts[-1]), bound))
        for count in counts[:-1]:
            first = number * (counts[-1] - count) // (RUNS - 1)
            parts[count].append(measured(folder, places, range(first, first + count), bound))
    cases = []
    for results in parts.values():
        results.sort(key=lambda result: result["seconds"]["total"] / result["bytes"])
        cases.append({**results[len(results) // 2], "parts": len(results)})
    return [*cases, measured(folder, places, range(counts[0]), bound, counts[0] // 2)]


RATE = """
import gzip, json, sys, time
sys.path.insert(0, sys.argv[1])
import harness
from lsh.passages.repeats import passage_keys
from lsh.text.batch import Batch
found = []
for corpus in filter(None, (harness.news(), harness.pages())):
    batch, size = Batch(tuple(corpus.texts)), sum(map(len, corpus.texts))
    times = []
    for run in range(7):
        started = time.process_time()
        keys, _ = passage_keys(batch, int(sys.argv[2]), bytes(range(16)))
        times.append(time.process_time() - started)
    found.append({"corpus": corpus.name, "mb_per_second": size / 1e6 / sorted(times)[3], "keys": len(keys) * 8 / size})
print(json.dumps(found))
"""


def rates() -> dict[str, Any]:
    """Return by level how fast one core finds the keys of passages, in MB of text a second; and their size by that."""
    found = {}
    for level in simd_levels():
        command = [sys.executable, "-c", RATE, str(Path(__file__).resolve().parents[1]), str(MIN_BYTES)]
        environment = {**os.environ, "LSH_SIMD": level}
        found[level] = json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout)
        for one in found[level]:
            print(f"{level}, {one['corpus']}: {one['mb_per_second']:.0f} MB/s, keys {one['keys']:.3f} of the text")
    return found


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("place", nargs="?", type=Path, help="folder for the pages and the output")
    parser.add_argument("--gigabytes", type=float, nargs="+", default=[1, 10])
    parser.add_argument("--max-memory", default="2GB")
    options = parser.parse_args()
    by_level = rates()
    with tempfile.TemporaryDirectory(dir=options.place) as place:
        cases = measure(Path(place), options.gigabytes, options.max_memory)
    data = {"name": "pages with planted passages", "bytes": max(case["bytes"] for case in cases)}
    harness.write("passages", {"min_bytes": MIN_BYTES, "data": data, "cases": cases, "rates": by_level}, options.folder)


if __name__ == "__main__":
    main()
