"""Compare the MinHash of datatrove's published example with the same pipeline and the steps of `lsh` in place.

Both read the same shards with the same reader, and write with the same writer. The truth is all pairs with an exact
similarity, by datatrove's shingles and by ours, found without the library. Recall is the share of these pairs of which
at most one document is kept. A removed document is right if it is similar to one that is kept. datatrove simplifies a
text before it makes shingles; our steps are run on the texts themselves and on those that it has simplified.

Each step runs in a process of its own (`datatrove_worker.py`), all its tasks one after the other. pip creates the
environment once, in a folder outside the repository (`--environments DIR`).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lsh import presets

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import corpora
import harness
import peers
import truth

WORKER = Path(__file__).with_name("datatrove_worker.py")
SHARDS = 8
STORIES = 20_000
THRESHOLDS = (0.72, 0.75, 0.8)  # that of 14 bands of 8, (1/14)^(1/8); of FineWeb's paper; the default of `lsh`
OURS = ("sketch", "link", "components", "members", "decide", "filter")
STEPS = {"datatrove": ("signatures", "buckets", "cluster", "filter"), "lsh": OURS, "simplified": OURS}
LABELS = {"datatrove": "datatrove", "lsh": "`lsh`", "simplified": "`lsh`, texts simplified"}
Pair = tuple[int, int, float]
Result = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """The interpreter that has datatrove, and a folder for the files of all runs."""

    python: Path
    folder: Path

    def run(self, command: str, folder: str, *words: object) -> Any:
        """Run a command of the worker in a folder; return what it prints."""
        variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        ran = subprocess.run(
            [str(word) for word in (self.python, WORKER, command, self.folder / folder, *words)],
            env={**variables, **peers.ONE_THREAD, "HF_HUB_OFFLINE": "1"},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        harness.must(not ran.returncode, f"{command} {words}: {ran.stderr[-2000:]}")
        return json.loads(ran.stdout.splitlines()[-1])

    def versions(self) -> Result:
        """Return the versions of what is compared."""
        code = (
            "import json; from importlib.metadata import version as v; print(json.dumps([v('datatrove'), v('spacy')]))"
        )
        ran = subprocess.run([self.python, "-c", code], capture_output=True, text=True, check=True)
        return dict(zip(("datatrove", "spacy"), json.loads(ran.stdout)))


def write_shards(texts: Sequence[bytes], folder: Path) -> None:
    """Write the texts as JSON lines; the id of a document is its number."""
    folder.mkdir(parents=True)
    bounds = np.linspace(0, len(texts), SHARDS + 1).astype(int).tolist()
    for shard, (start, stop) in enumerate(itertools.pairwise(bounds)):
        records = ({"id": str(i), "text": texts[i].decode()} for i in range(start, stop))
        (folder / f"{shard:03d}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))


def our_sets(texts: Sequence[bytes]) -> truth.ShingleSets:
    """Return the sets of our shingles, by the definition in plain Python."""
    options = presets.fineweb.shingles.to_dict()
    options = {name: options[name] for name in ("n", "unit", "normalize", "lowercase", "strip_punctuation")}
    owners, keys = [], []
    for number, text in enumerate(texts):
        for shingle in set(harness.reference().shingles(text, **options)):
            owners.append(number)
            keys.append(int.from_bytes(hashlib.blake2b(shingle, digest_size=8).digest(), "little"))
    return truth.ranked(np.array(owners), np.array(keys, np.uint64))


def score(pairs: list[Pair], kept: np.ndarray[Any, Any], threshold: float) -> Result:
    """Return recall, and how many of the removed documents are similar to a kept one, or to none at all."""
    true = [(i, j) for i, j, similarity in pairs if similarity >= threshold]
    to_kept, to_any = set(), set()
    for i, j in true:
        to_any |= {i, j}
        if kept[i]:
            to_kept.add(j)
        if kept[j]:
            to_kept.add(i)
    removed = set(np.flatnonzero(~kept).tolist())
    return {
        "pairs": len(true),
        "recall": sum(not (kept[i] and kept[j]) for i, j in true) / max(len(true), 1),
        "precision": len(removed & to_kept) / max(len(removed), 1),
        "like_none": len(removed - to_any),
    }


def pipeline(place: Place, name: str, way: str, threshold: float, count: int) -> tuple[Result, Any]:
    """Run all steps of a pipeline on the shards of a corpus; return what they take, and which documents are kept."""
    folder = f"{name}-{way}-{threshold}"
    (place.folder / folder).mkdir()
    (place.folder / folder / "in").symlink_to(place.folder / name / "in")
    steps = {step: place.run("step", folder, way, threshold, step) for step in STEPS[way]}
    kept = np.zeros(count, np.bool_)
    for path in (place.folder / folder / "kept").glob("*.jsonl"):
        kept[[int(json.loads(line)["id"]) for line in path.open(encoding="utf-8")]] = True
    return {"way": way, "removed": int((~kept).sum()), "steps": steps}, kept


def compared(place: Place, name: str, texts: Sequence[bytes]) -> Result:
    """Run both ways on a corpus; ours at each threshold. datatrove's has none, and is judged by each."""
    write_shards(texts, place.folder / name / "in")
    place.run("shingles", name)
    with np.load(place.folder / name / "shingles.npz") as stored:
        sets = {"datatrove": truth.ranked(stored["owner"], stored["keys"]), "lsh": our_sets(texts)}
    pairs = {by: truth.similar(each, min(THRESHOLDS)) for by, each in sets.items()}
    rows = []
    for way in STEPS:
        for threshold in THRESHOLDS[:1] if way == "datatrove" else THRESHOLDS:
            run, kept = pipeline(place, name, way, threshold, len(texts))
            for judged in THRESHOLDS if way == "datatrove" else (threshold,):
                scores = {by: score(found, kept, judged) for by, found in pairs.items()}
                rows.append({**run, "threshold": judged, "scores": scores})
    for row in rows:
        by_ours = row["scores"]["lsh"]
        harness.must(row["way"] != "lsh" or by_ours["precision"] == 1, f"{name}: a removal without a witness")
    return {"name": name, "documents": len(texts), "bytes": sum(map(len, texts)), "rows": rows}


def minhash_table(result: Result) -> str:
    """Return recall, precision and times of both ways, and the memory of the step that has one task."""
    rows, times = [], []
    for corpus in result["corpora"]:
        for row in corpus["rows"]:
            name = f"{corpus['name']}, {corpus['documents']:,}: {LABELS[row['way']]}"
            scores = [row["scores"][by] for by in ("datatrove", "lsh")]
            cells = [f"{one[key]:.4f}" for key in ("recall", "precision") for one in scores]
            like_none = [f"{one['like_none']:,}" for one in scores]
            rows.append([name, f"{row['threshold']}", f"{row['removed']:,}", *cells, *like_none])
            if row["threshold"] == THRESHOLDS[0]:
                steps = [row["steps"][step] for step in STEPS[row["way"]]]
                cpu = [step["cpu_seconds"] for step in steps]
                cells = [cpu[0], sum(cpu[1:]), sum(cpu), sum(step["wall_seconds"] for step in steps)]
                times.append([name, *map(harness.figure, cells)])
    head = ["corpus, documents: steps of", "threshold", "removed", "recall, datatrove's shingles", "ours"]
    head += ["precision, datatrove's shingles", "ours", "removed, similar to none, datatrove's shingles", "ours"]
    one_task = result["components"]
    memory = {way: f"{found['growth_bytes'] / 1e6:,.0f} MB" for way, found in one_task.items()}
    versions = result["versions"]
    machine = f"{harness.where(result)}, datatrove {versions['datatrove']}, spacy {versions['spacy']}"
    seconds = ["corpus, documents: steps of", "CPU s of the first step", "of the others", "of all", "s on the wall"]
    count = one_task["lsh"]["documents"]
    return "\n\n".join(
        [
            f"{machine}. {SHARDS} shards, one process a step.",
            harness.table(head, rows),
            harness.table(seconds, times),
            f"Memory of the step that has one task, for {count:,} documents of which each is similar to one other: "
            f"`MinhashDedupCluster` {memory['datatrove']}, `LshComponents` {memory['lsh']}.",
        ]
    )


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--environments", type=Path, default=Path(tempfile.gettempdir()) / "lsh-benchmark-environments")
    parser.add_argument("--stories", type=int, default=STORIES, help=f"default: {STORIES}")
    options = parser.parse_args()
    news = harness.news()
    if news.pairs is None:
        raise SystemExit("this benchmark needs Reuters-21578; set LSH_DATA to the folder that holds it")
    options.environments.mkdir(parents=True, exist_ok=True)
    python, reason = peers.environment(options.environments, "datatrove-steps")
    if python is None:
        raise SystemExit(f"datatrove {reason}")
    texts = {"reuters21578": news.texts, "stories": list(corpora.stories().texts(0, options.stories))}
    with tempfile.TemporaryDirectory() as folder:
        place = Place(python, Path(folder))
        found = [compared(place, name, each) for name, each in texts.items()]
        place.run("pairs", "pairs")
        one_task = {way: place.run("components", "pairs", way) for way in ("datatrove", "lsh")}
    harness.must(len({one["removed"] for one in one_task.values()}) == 1, "the components differ")
    data = {"name": ", ".join(texts), "bytes": sum(one["bytes"] for one in found)}
    result = {"data": data, "versions": place.versions(), "corpora": found, "components": one_task}
    harness.write("datatrove_minhash", result, options.folder)


if __name__ == "__main__":
    main()
