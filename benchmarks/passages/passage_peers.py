"""Compare `lsh.find_passages` with other tools that cut repeated passages, each in its own process and environment.

The corpus and the truth are those of planted_pages.py. A cut is read from the spans that a tool writes, or from a
comparison of its output with the corpus. White space that a tool cuts is never counted as wrong.

All tools read JSON lines, write the shortened texts, and use one thread; each is measured once, as a whole process.
Memory is the largest sum of resident memory of its processes, sampled every 20 ms; "written" are the bytes that the
kernel counts as written to the disk. pip creates the environments once, outside the repository (`--environments DIR`).

    python benchmarks/passages/passage_peers.py [FOLDER] [--megabytes 200] [--only "lsh, bytes; dolma, paragraphs"]
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import harness
import passage_peer_worker
import peers
from planted_pages import WINDOW, Array, Pages, judged, make_pages, repeated

WORKER = Path(passage_peer_worker.__file__)
BLOOM = ("--bloom_filter.desired_false_positive_rate", "0.0001")
WAYS = {
    "lsh, bytes": "lsh",
    "lsh, bytes, within 100 MB": "lsh",
    "lsh, lines": "lsh",
    "lsh, paragraphs": "lsh",
    "dolma, paragraphs": "dolma",
    "text-dedup, ccnet": "text-dedup",
    "datatrove, lines": "datatrove",
    "datatrove, 3 sentences": "datatrove",
}
# Why a tool is not measured on the machine of the stored result, which reaches PyPI, but neither crates nor Git.
RUST = "needs deduplicate-text-datasets, whose crates cargo could not fetch: could not resolve host"
NOT_MEASURED = {
    "deduplicate-text-datasets": "not on PyPI; cargo could not fetch its crates: could not resolve host",
    "text-dedup, suffix array": RUST,
    "datatrove, exact substrings": RUST,
    "cc_net": "cannot be installed: version 1.0.0 depends on kenlm from a Git repository, which pip refuses",
}


def without_lines(text: str, left: list[str]) -> Iterator[tuple[int, int]]:
    """Yield the lines of a text, as start and end, that are not in `left`, its other lines in order."""
    at = number = 0
    for line in text.split("\n"):
        if number < len(left) and left[number] == line:
            number += 1
        else:
            yield at, at + len(line)
        at += len(line) + 1
    harness.must(number == len(left), "the lines that are left are not those of the text")


def between_marks(text: str, marked: str, by_lines: bool) -> Iterator[tuple[int, int]]:
    """Yield what datatrove put between >>> and <<<; its marks are lines of their own if it splits by lines."""
    parts = re.split(r"(>>>\n?|\n?<<<\n?)" if by_lines else "(>>>|<<<)", marked)
    at, inside = 0, False
    for part in parts:
        if part.strip("\n") in (">>>", "<<<"):
            inside = part.strip("\n") == ">>>"
        elif part:
            at = text.index(part, at)
            if inside:
                yield at, at + len(part)
            at += len(part)


def spans(way: str, folder: Path, pages: Pages) -> Iterable[tuple[int, int, int]]:
    """Return what a tool cut, as page, start and end, from the files that it left in `folder`."""
    if way.startswith("lsh"):
        yield from np.load(folder / "cuts.npy").tolist()
        return
    texts = list(pages.texts())
    if way.startswith("dolma"):
        for number, line in enumerate((folder / "attributes" / "d" / "pages.jsonl").read_text().splitlines()):
            yield from ((number, start, end) for start, end, _ in json.loads(line)["attributes"]["d"])
    elif way.startswith("text-dedup"):
        left = {row["id"]: row["text"].split("\n") for row in map(json.loads, (folder / "left.jsonl").open())}
        for number, text in enumerate(texts):
            yield from ((number, start, end) for start, end in without_lines(text, left.get(str(number), [])))
    else:
        for file in (folder / "marked").glob("*.jsonl"):
            for row in map(json.loads, file.open()):
                number = int(row["id"])
                found = between_marks(texts[number], row["text"], way.endswith("lines"))
                yield from ((number, start, end) for start, end in found)


def commands(way: str, python: Path, corpus: Path, folder: Path, lines: int) -> list[list[str]]:
    """Return the commands of a way, one after the other."""
    if way in passage_peer_worker.WAYS:
        return [[str(python), str(WORKER), way, str(corpus), str(folder)]]
    if way.startswith("text-dedup"):
        options = f"--path json --data_files {corpus} --split train --column text --num_proc 1"
        options += f" --cache_dir {folder}/cache --output {folder}/left"
        return [[str(python), "-m", "text_dedup.ccnet", *options.split()]]
    dolma, link = str(python.parent / "dolma"), folder / "documents"
    link.mkdir()
    os.link(corpus, link / corpus.name)
    dedupe = f"dedupe --documents {link}/{corpus.name} --dedupe.name d --dedupe.paragraphs.attribute_name d"
    dedupe += f" --dedupe.skip_empty --dedupe.min_length {WINDOW} --processes 1"
    dedupe += f" --no-bloom_filter.read_only --bloom_filter.file {folder}/bloom"
    dedupe += f" --bloom_filter.estimated_doc_count {lines}"
    replacing = {"span": "$.attributes.d", "min_score": 0.5, "replacement": ""}
    output = {"path": str(folder / "left"), "max_size_in_bytes": 1 << 40}
    stream = {"name": "d", "documents": [f"{link}/{corpus.name}"], "attributes": ["d"]}
    config = {"streams": [{**stream, "output": output, "span_replacement": [replacing]}], "processes": 1}
    (folder / "mix.json").write_text(json.dumps(config))
    return [[dolma, *dedupe.split(), *BLOOM], [dolma, "-c", str(folder / "mix.json"), "mix"]]


def resident(session: int) -> int:
    """Return the resident memory of all processes of a session."""
    total = 0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        total += int(fields[21]) * resource.getpagesize() if int(fields[3]) == session else 0
    return total


def written() -> int:
    """Return the bytes that this process and its ended children wrote to the disk."""
    return int(re.findall(r"^write_bytes: (\d+)", Path("/proc/self/io").read_text(), re.M)[0])


def measured(steps: list[list[str]], variables: dict[str, str], folder: Path) -> dict[str, Any]:
    """Run commands; return their times, memory and disk, or the last line of the log of the one that failed."""
    found = {"wall_seconds": 0.0, "cpu_seconds": 0.0, "peak_bytes": 0, "written_bytes": 0}
    for step in steps:
        before, disk, started = resource.getrusage(resource.RUSAGE_CHILDREN), written(), time.perf_counter()
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(
                step, env=variables, cwd=folder, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
            while process.poll() is None:
                found["peak_bytes"] = max(found["peak_bytes"], resident(process.pid))
                time.sleep(0.02)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found["wall_seconds"] += time.perf_counter() - started
        found["cpu_seconds"] += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        found["written_bytes"] += written() - disk
        if process.returncode:
            return {"not_measured": ((folder / "log").read_text().strip().splitlines() or ["no message"])[-1]}
    return found


def version(python: Path, package: str) -> str:
    """Return the version of a package in an environment."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def write_left(python: Path, folder: Path) -> None:
    """Write the output of text-dedup, a folder of Arrow files, as JSON lines."""
    code = "import sys, datasets; datasets.load_from_disk(sys.argv[1]).to_json(sys.argv[2])"
    subprocess.run([python, "-c", code, folder / "left", folder / "left.jsonl"], check=True, capture_output=True)


def compared(way: str, python: Path, pages: Pages, corpus: Path, recurs: Array) -> dict[str, Any]:
    """Measure a way, and compare what it cut with the truth."""
    variables = {key: value for key, value in os.environ.items() if way.startswith("lsh") or key[:6] != "PYTHON"}
    lines = pages.data.count(b"\n\n") + len(pages.starts)
    with tempfile.TemporaryDirectory(dir=corpus.parent) as name:
        folder = Path(name)
        steps = commands(way, python, corpus, folder, lines)
        found = measured(steps, {**variables, **peers.ONE_THREAD, "HF_HUB_OFFLINE": "1"}, folder)
        if "not_measured" in found:
            return found
        if way.startswith("text-dedup"):
            write_left(python, folder)
        cut = np.zeros(len(pages.data), bool)
        for number, start, end in spans(way, folder, pages):
            cut[pages.starts[number] + start : pages.starts[number] + end] = True
    found |= judged(pages, cut, recurs)
    if way.startswith("lsh"):
        name = "wrongly_cut_bytes"
        harness.must(not found[name] and not found["passage_bytes_left_nowhere"], f"{way}: {found}")
    if way.startswith("lsh, bytes"):  # no window is left twice in the runs that are left
        edges = np.union1d(pages.starts, np.flatnonzero(np.diff(cut)) + 1)
        runs = edges - np.append(0, np.cumsum(cut))[edges]
        left = repeated(np.frombuffer(pages.data, np.uint8)[~cut].tobytes(), np.unique(runs))
        harness.must(not left.any(), f"{way}: {int(left.sum())} bytes are left twice")
    return found


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--environments", type=Path, default=Path(tempfile.gettempdir()) / "lsh-benchmark-environments")
    parser.add_argument("--megabytes", type=int, default=200, help="size of the corpus; default: 200")
    parser.add_argument("--only", metavar="NAMES", help=f"measure only these, separated by ';': {'; '.join(WAYS)}")
    options = parser.parse_args()
    wanted = [name.strip() for name in options.only.split(";")] if options.only else list(WAYS)
    if unknown := set(wanted) - set(WAYS):
        parser.error(f"unknown name in --only: {', '.join(sorted(unknown))}; known: {'; '.join(WAYS)}")
    if harness.data_folder() is None:
        raise SystemExit("this benchmark needs Reuters-21578; set LSH_DATA to the folder that holds it")
    pages = make_pages(options.megabytes * 1_000_000)
    recurs = repeated(pages.data, pages.starts)
    planted = np.zeros(len(pages.data), bool)
    for _, start, end in pages.planted.tolist():
        planted[start:end] = True
    harness.must(bool(recurs[planted].all()), "planted copies recur")
    data = {
        "pages": len(pages.starts) - 1,
        "bytes": len(pages.data),
        "sha256": hashlib.sha256(pages.data).hexdigest(),
        "passages": len(pages.kinds) - 1,
        "copies": len(pages.planted) - (len(pages.starts) - 1),
        "planted_bytes": int(planted.sum()),
        "other_bytes_that_recur": int((recurs & ~planted).sum()),
    }
    ways: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as work:
        corpus = Path(work) / "pages.jsonl"
        with corpus.open("w", encoding="utf-8") as file:
            for number, text in enumerate(pages.texts()):
                file.write(json.dumps({"id": str(number), "text": text, "source": "planted"}) + "\n")
        for way in wanted:
            name = WAYS[way]
            python, reason = (
                peers.environment(options.environments, name) if name != "lsh" else (Path(sys.executable), "")
            )
            if python is None:
                ways[way] = {"not_measured": reason}
            else:
                package = "lsh-dedup" if name == "lsh" else name
                ways[way] = {"version": version(python, package), **compared(way, python, pages, corpus, recurs)}
            print(f"{way}: {json.dumps(harness.rounded(ways[way]))}", file=sys.stderr, flush=True)
    unmeasured = {way: {"not_measured": reason} for way, reason in NOT_MEASURED.items()}
    harness.write("passage_peers", {"data": data, "window": WINDOW, "ways": ways | unmeasured}, options.folder)


if __name__ == "__main__":
    main()
