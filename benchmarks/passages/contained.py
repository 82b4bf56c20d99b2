"""Measure `find_contained`: what is found of planted items, speed and memory by number of items, and other rules.

The corpus is that of planted_items.py. All hits are compared with the definition, which that module computes in plain
Python for all items and pages: the same pairs, containments and windows. Hits that are no planted copy are in the
result, one by one.

Speed is measured on 30 MB of the pages without items, with 10,000 items that are runs of words of real texts, and with
10,000 and 1,000,000 that are made from such texts; they are 8 to 300 words long. The best of several runs counts;
tables of different size take turns.

Other rules and tools look for the planted items in the same pages (contained_worker.py), each in its own process and
environment (`--environments DIR`; the bindings of decon need Python 3.12, which is looked for), with one thread, from
JSON lines to pairs of a page and an item. Slow ones get a part of the pages.

    python benchmarks/passages/contained.py [FOLDER] [--pages 100000] [--items 1000] [--most 1000000] [--only PARTS]
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import lsh

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import contained_worker
import harness
import peers
from passage_peers import version
from planted_items import (
    CHANGED,
    WORDS,
    Planted,
    best_window,
    made_items,
    make_corpus,
    real_items,
    runs,
    truth_of,
    units,
)

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
SHINGLES = ((3, "word"), (20, "char"), (20, "byte"), (8, "char"))
FEW = 10_000  # items
SHORT = 13  # words: fewer than those that the best-known rule asks for
WORKER = Path(contained_worker.__file__)
PARTS = ("quality", "speed", "peers")
WAYS = {way: way.partition(",")[0] for way in contained_worker.WAYS}
PACKAGES = {"lsh": "lsh-dedup", "sets of Python": "", "decontaminate": "decontaminate", "datatrove": "datatrove"}
SLOW = {"datatrove": (250, 1000)}  # a slow tool gets the pages with so many of the items, and so many of the others
# datatrove 0.10 calls lighteval as the versions up to 0.10 want it, but its extra installs the newest one.
LIGHTEVAL = "lighteval==0.10.0"
EXCERPT = 160


# ---- what is found ----


def excerpt(planted: Planted, hit: Any) -> str:
    text = planted.pages[hit["text"]][hit["start"] : hit["end"]].decode("ascii")
    return text if len(text) <= EXCERPT else text[:EXCERPT] + "..."


def windows(planted: Planted, found: Any) -> dict[str, float]:
    """Return what the windows of planted copies have of the copies, and beside them."""
    place = {(page, item): (start, end) for page, item, _, start, end in planted.copies.tolist()}
    covered, beside = [], []
    for hit in found.hits:
        if (copy := place.get((int(hit["text"]), int(hit["item"])))) is not None:
            start, end = max(copy[0], int(hit["start"])), min(copy[1], int(hit["end"]))
            covered.append(max(end - start, 0) / (copy[1] - copy[0]))
            beside.append(int(hit["end"] - hit["start"]) - max(end - start, 0))
    result = {"least_covered": min(covered), "mean_covered": float(np.mean(covered)), "most_bytes_beside": max(beside)}
    return {**result, "with_bytes_beside": sum(size > 0 for size in beside)}


def quality(planted: Planted) -> dict[str, Any]:
    """Compare all hits with the definition, and count what is found of the copies by what was changed."""
    truth = truth_of(planted, min(THRESHOLDS))
    of_copy = {(page, item): version for page, item, version, _, _ in planted.copies.tolist()}
    rows: list[dict[str, Any]] = []
    elsewhere: list[dict[str, Any]] = []
    of_windows: dict[str, float] = {}
    for threshold in THRESHOLDS:
        found = lsh.find_contained(planted.items, planted.pages, threshold)
        fields = ("containment", "start", "end", "shared")
        hits = {(int(one["text"]), int(one["item"])): tuple(one[name].item() for name in fields) for one in found.hits}
        expected = truth.hits(threshold)
        for what, pairs in (("missing", expected.keys() - hits), ("too many", hits.keys() - expected)):
            harness.must(not pairs, f"threshold {threshold}: {len(pairs)} hits {what}, such as {sorted(pairs)[:3]}")
        wrong = [pair for pair, hit in hits.items() if hit != expected[pair]]
        harness.must(not wrong, f"threshold {threshold}: {len(wrong)} hits differ, such as {wrong[:3]}")
        for hit in found.hits:  # the window alone has what the hit says
            text = planted.pages[hit["text"]][hit["start"] : hit["end"]].decode("ascii")
            shared = len(set(runs(planted.items[hit["item"]])) & set(runs(text)))
            harness.must(shared == hit["shared"], f"the window of {hit} has {shared} shingles of the item")
        counts = Counter(of_copy[pair] for pair in hits if pair in of_copy)
        other = [hit for hit in found.hits if (int(hit["text"]), int(hit["item"])) not in of_copy]
        holds = sum(pair in of_copy for pair in expected)
        of_versions = [counts[version] for version in range(len(CHANGED))]
        rows.append({"threshold": threshold, "found": of_versions, "holds": holds, "elsewhere": len(other)})
        if threshold == 0.8:
            of_windows = windows(planted, found)
        if threshold == min(THRESHOLDS):  # the others have a part of these
            elsewhere = [
                {
                    **{name: hit[name].item() for name in ("item", "text", "containment")},
                    "item_text": planted.items[hit["item"]][:EXCERPT],
                    "excerpt": excerpt(planted, hit),
                }
                for hit in other
            ]
    harness.must(of_windows["least_covered"] > 0.7, f"a window has {of_windows['least_covered']:.2f} of its copy")
    return {"copies": len(planted.items), "rows": rows, "windows": of_windows, "elsewhere": elsewhere}


# ---- speed ----


def write_lines(texts: Any, path: Path, **more: Any) -> None:
    with path.open("w", encoding="utf-8") as file:
        for number, text in enumerate(texts):
            extra = {"metadata": {"task": str(number), "query": ""}} if more else {}
            file.write(json.dumps({"id": str(number), "text": text, **extra}) + "\n")


def write_corpus(planted: Planted, folder: Path) -> None:
    """Write the pages and the items as JSON lines, with what datatrove needs to know of an item."""
    for name in ("pages", "items"):
        (folder / name).mkdir(parents=True)
    write_lines((page.decode("ascii") for page in planted.pages), folder / "pages" / "pages.jsonl")
    write_lines(planted.items, folder / "items" / "items.jsonl", task=True)


def speed(planted: Planted, folder: Path, most: int) -> list[dict[str, Any]]:
    """Measure `find_contained` with few and with many items, in a process for each kind of shingles."""
    pages = np.delete(np.arange(len(planted.pages)), planted.copies[:, 0]).tolist()
    folder.mkdir()
    write_lines((planted.pages[i].decode("ascii") for i in pages), folder / "pages.jsonl")
    few = min(FEW, most)
    for name, items in (("real", real_items(few)), ("made", islice(made_items(most), few)), ("many", made_items(most))):
        with (folder / f"{name}.items").open("w", encoding="ascii") as file:
            file.writelines(item + "\n" for item in items)
    found = []
    for n, unit in SHINGLES:
        command = [sys.executable, WORKER, "speed", str(n), unit, str(folder)]
        found.append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
        for name, one in found[-1]["tables"].items():
            one["mb_per_second"] = found[-1]["bytes"] / min(one["cpu_seconds"]) / 1e6
            one["mb_per_second_of_two_threads"] = found[-1]["bytes"] / min(one["wall_seconds_of_two_threads"]) / 1e6
            one["times_few"] = min(one["cpu_seconds"]) / min(found[-1]["tables"]["made"]["cpu_seconds"])
            text = f"{n} {unit}, {name}: {one['mb_per_second']:.0f} MB/s, index {one['index_seconds']:.1f} s"
            print(f"{text}, {one['growth_bytes'] / 1e9:.2f} GB", file=sys.stderr, flush=True)
    return found


# ---- other rules and tools ----


def newer_python() -> Path | None:
    """Return an interpreter of Python 3.12 or newer, if there is one in PATH or by pyenv."""
    if sys.version_info >= (3, 12):
        return Path(sys.executable)
    places = [shutil.which(f"python3.{minor}") for minor in (12, 13, 14)]
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for place in [*filter(None, places), *sorted(map(str, root.glob("versions/3.1[2-9].*/bin/python")))]:
        if subprocess.run([place, "-c", ""], capture_output=True, check=False).returncode == 0:
            return Path(place)
    return None


def environment(folder: Path, name: str) -> tuple[Path | None, str]:
    """Return the interpreter for a tool, or None and why it cannot be measured."""
    if name in ("lsh", "sets of Python"):
        return Path(sys.executable), ""
    folder.mkdir(parents=True, exist_ok=True)
    if name == "decontaminate" and not (folder / name / "bin" / "python").exists():
        python = newer_python()
        if python is None:
            return None, "needs Python 3.12"
        subprocess.run([python, "-m", "venv", folder / name], check=True)
    python, reason = peers.environment(folder, "datatrove-decont" if name == "datatrove" else name)
    if python is not None and name == "datatrove":
        options = ["--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([python, "-m", "pip", "install", *options, LIGHTEVAL], check=True, stderr=subprocess.DEVNULL)
    return python, reason


def compared(way: str, python: Path, planted: Planted, corpus: Path) -> dict[str, Any]:
    """Run a way in a copy of the folder of the corpus; return what it finds and takes."""
    name = WAYS[way]
    keeps = name in ("lsh", "sets of Python")
    variables = {key: value for key, value in os.environ.items() if keeps or key[:6] != "PYTHON"}
    with tempfile.TemporaryDirectory(dir=corpus.parent) as place:
        folder = Path(place) / "corpus"
        shutil.copytree(corpus, folder, copy_function=os.link)
        ran = subprocess.run(
            [python, WORKER, "peer", way, folder],
            env={**variables, **peers.ONE_THREAD, "HF_HUB_OFFLINE": "1"},
            cwd=place,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
        )
        if ran.returncode:
            return {"not_measured": (ran.stderr.strip().splitlines() or ["no message"])[-1]}
        found = json.loads((folder / "pairs.json").read_text())
    pairs = {(page, item) for page, item in found.pop("pairs")}
    copies = planted.copies.tolist()
    of_copy = {(page, item): version for page, item, version, _, _ in copies}
    counts = Counter(of_copy[pair] for pair in pairs if pair in of_copy)
    sizes = [len(units(item)) for item in planted.items]
    short = [(page, item) for page, item, *_ in copies if sizes[item] < SHORT]
    other = sorted(pair for pair in pairs if pair not in of_copy)
    return {
        "version": version(python, PACKAGES[name]) if PACKAGES[name] else "",
        "bytes": len(planted.data),
        "pages": len(planted.pages),
        "mb_per_second": len(planted.data) / found["cpu_seconds"] / 1e6,
        **found,
        "copies": len(copies) // len(CHANGED),
        "found": [counts[number] for number in range(len(CHANGED))],
        "found_of_short": sum(pair in pairs for pair in short) / max(len(short), 1),
        "elsewhere": len(other),
        "such_as": [
            {
                "page": page,
                "item": item,
                "shared": best_window(set(runs(planted.items[item])), 10**9, planted.pages[page].decode())[0],
            }
            for page, item in other[:20]
        ],
        "_pairs": pairs,
    }


def compare(planted: Planted, folder: Path, environments: Path, wanted: list[str]) -> dict[str, Any]:
    """Compare all ways; the same rule must find the same pairs, whoever applies it."""
    corpora = {"": planted, **{name: planted.subset(*counts) for name, counts in SLOW.items()}}
    for name, part in corpora.items():
        write_corpus(part, folder / f"corpus {name}")
    ways: dict[str, Any] = {}
    for way in wanted:
        part = WAYS[way] if WAYS[way] in corpora else ""
        python, reason = environment(environments, WAYS[way])
        if python is None:
            ways[way] = {"not_measured": reason}
        else:
            ways[way] = compared(way, python, corpora[part], folder / f"corpus {part}")
        short = {key: value for key, value in ways[way].items() if key not in ("such_as", "_pairs")}
        print(f"{way}: {json.dumps(harness.rounded(short))}", file=sys.stderr, flush=True)
    for way, found in ways.items():
        own = ways.get(way.replace("sets of Python", "lsh"), found)
        if "_pairs" in found and "_pairs" in own:
            harness.must(found["_pairs"] == own["_pairs"], f"{way} and lsh find different pairs")
    return {way: {key: one for key, one in found.items() if key != "_pairs"} for way, found in ways.items()}


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--environments", type=Path, default=Path(tempfile.gettempdir()) / "lsh-benchmark-environments")
    parser.add_argument("--pages", type=int, default=100_000, help="pages without an item; default: 100,000")
    parser.add_argument("--items", type=int, default=1000, help="planted items; default: 1,000")
    parser.add_argument("--most", type=int, default=1_000_000, help="items for speed; default: 1,000,000")
    parser.add_argument(
        "--only", default=",".join(PARTS), metavar="PARTS", help="of quality, speed, peers; others stay"
    )
    parser.add_argument("--ways", help=f"of the peers only these, separated by ';': {'; '.join(WAYS)}")
    options = parser.parse_args()
    parts = options.only.split(",")
    wanted = [name.strip() for name in options.ways.split(";")] if options.ways else list(WAYS)
    if unknown := [*(set(parts) - set(PARTS)), *(set(wanted) - set(WAYS))]:
        parser.error(f"unknown: {', '.join(unknown)}")
    if harness.data_folder() is None:
        raise SystemExit("this benchmark needs Reuters-21578 and others; set LSH_DATA to the folder that holds them")
    path = options.folder / "contained.json"
    content: dict[str, Any] = json.loads(path.read_text()) if path.exists() and set(parts) != set(PARTS) else {}
    content.pop("machine", None)
    content["machines"] = {**content.get("machines", {}), **dict.fromkeys(parts, harness.machine())}
    planted = make_corpus(options.pages, options.items)
    content["data"] = {
        "name": "sentences of Reuters-21578 with planted runs of articles2500",
        "pages": len(planted.pages),
        "bytes": len(planted.data),
        "sha256": hashlib.sha256(planted.data).hexdigest(),
        "items": len(planted.items),
        "words": WORDS,
        "changed": CHANGED,
        "copies": len(planted.copies),
        "short_items": sum(len(units(item)) < SHORT for item in planted.items),
    }
    with tempfile.TemporaryDirectory() as work:
        if "quality" in parts:
            content["quality"] = quality(planted)
            print(json.dumps(harness.rounded(content["quality"]["rows"])), file=sys.stderr, flush=True)
        if "speed" in parts:
            content["speed"] = speed(planted, Path(work) / "speed", options.most)
        if "peers" in parts:
            before = content.get("peers", {}) if options.ways else {}
            found = {**before, **compare(planted, Path(work), options.environments, wanted)}
            content["peers"] = {way: found[way] for way in WAYS if way in found}
    harness.write("contained", content, options.folder)


if __name__ == "__main__":
    main()
