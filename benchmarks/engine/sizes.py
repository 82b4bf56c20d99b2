"""Measure what a document costs as a corpus grows, with 128 to 1,024 components, and the constants of its plan.

Each case runs in a process of its own, with one thread and the texts in memory, and counts the CPU time of two rounds.
The first one is what a new process takes: it loads the modules, and the system gives it memory that no process has
used, which may take longer than all else on a virtual machine. The planted copies that are similar enough are known, so
the recall stands beside each cost. The constants of `lsh.sketch.costs` are fitted to the second rounds of all cases at
once: what a document costs for each hash of a component, for each band, and for each document with which it shares a
bucket of a band.

    python benchmarks/engine/sizes.py            # all cases, some minutes; writes results/sizes.json
    python benchmarks/engine/sizes.py --only stories 0.6 100000 0
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import lsh

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import corpora
import harness

CORPORA = {"stories": corpora.stories, "reviews": corpora.reviews}
PLANNED = 0  # in place of a number of components: those of the plan for the size
COUNTS = (100_000, 400_000, 1_600_000)
CASES = [
    *(("stories", threshold, count, PLANNED) for threshold in (0.5, 0.6, 0.8) for count in COUNTS),
    *(("stories", 0.6, count, 128) for count in COUNTS[1:]),
    *(("stories", threshold, 400_000, seeds) for threshold in (0.6, 0.8) for seeds in (512, 1024)),
    *(("reviews", threshold, 400_000, seeds) for threshold in (0.6, 0.8) for seeds in (128, 512, 1024)),
]
ROUNDS = 2
N, SAMPLE = 5, 5000  # bytes of a shingle, and planted copies that are looked at


def measured(corpus: str, threshold: float, count: int, num_seeds: int) -> dict[str, Any]:
    """Measure one case."""
    made = CORPORA[corpus](count)
    texts = list(made.texts())
    parameters = {"num_seeds": num_seeds} if num_seeds else {}
    seconds = []
    for _ in range(ROUNDS):
        started = time.process_time()
        result = lsh.deduplicate(texts, threshold, shingles=lsh.Shingles(N, "byte"), num_threads=1, **parameters)
        seconds.append(time.process_time() - started)
    summary, used = result.summary(), result.parameters
    removed = np.flatnonzero(~result.keep)
    similar, found = 0, 0
    pairs = made.planted()
    for copy, original in pairs[:: len(pairs) // SAMPLE + 1].tolist():
        if lsh.jaccard(texts[copy], texts[original], shingles=lsh.Shingles(N, "byte")) >= threshold:
            similar, found = similar + 1, found + (not result.keep[copy] or not result.keep[original])
    return {
        "corpus": corpus,
        "threshold": threshold,
        "documents": count,
        "bytes": sum(map(len, texts)),
        "planned": not num_seeds,
        "num_seeds": used["hasher"].num_seeds,
        "bands": used["bands"].to_string(),
        "num_bands": used["bands"].num_bands,
        "first_cpu_us": seconds[0] / count * 1e6,
        "cpu_us": seconds[1] / count * 1e6,
        "shared": summary["candidates"] / count,
        "compared": summary["compared"] / count,
        "removed": len(removed) / count,
        "planted": similar,
        "recall": found / max(similar, 1),
        "capped": summary["capped"],
    }


def fitted(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the seconds for each component, each band and each shared bucket that fit the rows best."""
    names = sorted({row["corpus"] for row in rows})
    factors = [
        [
            row["num_seeds"] * np.log(row["num_seeds"]),  # hashes until each component has one
            row["num_bands"],
            row["shared"],
            *(row["corpus"] == name for name in names),
        ]
        for row in rows
    ]
    found, *_ = np.linalg.lstsq(np.array(factors, float), np.array([row["cpu_us"] for row in rows]), rcond=None)
    return dict(zip(("seed", "band", "shared"), (found[:3] * 1e-6).tolist()))


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--only", nargs=4, metavar=("CORPUS", "THRESHOLD", "DOCUMENTS", "SEEDS"), help="print one case")
    options = parser.parse_args()
    if (one := options.only) is not None:
        print(json.dumps(measured(one[0], float(one[1]), int(one[2]), int(one[3]))))
        return
    rows = list[dict[str, Any]]()
    for case in CASES:
        command = [sys.executable, __file__, "--only", *map(str, case)]
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # its threads would be counted
        run = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        rows.append(json.loads(run.stdout))
        print(json.dumps(harness.rounded(rows[-1])), flush=True)
        harness.must(rows[-1]["recall"] >= 0.99 and not rows[-1]["capped"], "the recall that was asked")
    data = {"bytes": max(row["bytes"] for row in rows)}
    harness.write("sizes", {"data": data, "cases": rows, "fit": fitted(rows)}, options.folder)


if __name__ == "__main__":
    main()
