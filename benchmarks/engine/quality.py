"""Measure precision and recall of `find_pairs` and `deduplicate`, on five corpora with five random states.

Lower recalls, which would show a plan that promises too much, are measured with 20 random states.

The exact pairs come from truth.py, which does not use the library. No result is written unless every found pair is
an exact pair with its exact similarity, the mean recall of pairs and of removals is at least the requested one, and
each removed document has a kept witness of the reported similarity.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lsh
from lsh.base.threads import available_cores

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import harness
import truth

RECALL = 0.995
RANDOM_STATES = range(5)
PROMISES, PROMISE_STATES = (0.8, 0.9, 0.95, 0.99), range(20)
PARAMETERS: dict[str, Any] = {"threshold": truth.THRESHOLD, "shingles": lsh.Shingles(truth.N, "byte"), "recall": RECALL}


def cpu_seconds(work: Callable[[], Any]) -> tuple[Any, float]:
    """Call `work`; return its result and its CPU time."""
    started = time.process_time()
    result = work()
    return result, time.process_time() - started


def pairs(
    texts: list[bytes], known: dict[tuple[int, int], float], state: int, recall: float = RECALL
) -> dict[str, Any]:
    """Measure precision, recall and time of `find_pairs`; a pair that is repeated lowers the precision."""
    parameters = PARAMETERS | {"recall": recall, "random_state": state}
    found, seconds = cpu_seconds(lambda: list(lsh.find_pairs(texts, **parameters)))
    right = {(i, j) for i, j, similarity in found if known.get((i, j)) == similarity}
    return {
        "precision": len(right) / len(found) if found else 1.0,
        "recall": len(right) / len(known) if known else 1.0,
        "cpu_seconds": seconds,
    }


def removals(
    texts: list[bytes], known: dict[tuple[int, int], float], exact: dict[int, truth.Removal], state: int
) -> dict[str, Any]:
    """Compare the removals of `deduplicate` with the exact answer, and check the witness of each."""
    result, seconds = cpu_seconds(lambda: lsh.deduplicate(texts, random_state=state, **PARAMETERS))
    without_witness = 0
    for document, kept, similarity, identical in result.removed.tolist():
        true = known.get((min(document, kept), max(document, kept)))
        witnessed = result.keep[kept] and not result.keep[document] and true == similarity
        without_witness += not (witnessed and identical == (texts[document] == texts[kept]))
    removed = set(result.removed["document"].tolist())
    return {
        "recall": len(removed & exact.keys()) / len(exact) if exact else 1.0,
        "others": len(removed - exact.keys()),
        "without_witness": without_witness + abs(int((~result.keep).sum()) - len(removed)),
        "same_witness": sum(
            kept == exact[document].kept for document, kept, *_ in result.removed.tolist() if document in exact
        ),
        "cpu_seconds": seconds,
    }


def measured(corpus: harness.Corpus, cache: Path) -> dict[str, Any]:
    """Measure pairs, removals and promised recalls of one corpus."""
    true = truth.pairs(corpus, cache)
    known = {(i, j): similarity for i, j, similarity in true}
    exact = truth.removals(corpus.texts, true)
    of_pairs = [pairs(corpus.texts, known, state) for state in RANDOM_STATES]
    of_removals = [removals(corpus.texts, known, exact, state) for state in RANDOM_STATES]
    promised = [[pairs(corpus.texts, known, state, recall) for state in PROMISE_STATES] for recall in PROMISES]

    def each(runs: list[dict[str, Any]], key: str) -> list[Any]:
        return [run[key] for run in runs]

    return {
        "data": corpus.describe(),
        "promises": [
            {"recall": recall, "states": len(runs), "mean_recall": statistics.mean(each(runs, "recall"))}
            for recall, runs in zip(PROMISES, promised, strict=True)
        ],
        "pairs": {
            "exact": len(true),
            "least_precision": min(each(of_pairs, "precision")),
            "mean_recall": statistics.mean(each(of_pairs, "recall")),
            "least_recall": min(each(of_pairs, "recall")),
            "median_cpu_seconds": statistics.median(each(of_pairs, "cpu_seconds")),
            "runs": of_pairs,
        },
        "removals": {
            "exact": len(exact),
            "mean_recall": statistics.mean(each(of_removals, "recall")),
            "least_recall": min(each(of_removals, "recall")),
            "mean_others": statistics.mean(each(of_removals, "others")),
            "without_witness": sum(each(of_removals, "without_witness")),
            "median_cpu_seconds": statistics.median(each(of_removals, "cpu_seconds")),
            "runs": of_removals,
        },
    }


def faults(found: dict[str, Any]) -> list[str]:
    """Name each value of a corpus that does not meet its requirement."""
    name, of_pairs, of_removals = found["data"]["name"], found["pairs"], found["removals"]
    checks = {
        f"precision {of_pairs['least_precision']}": of_pairs["least_precision"] == 1,
        f"recall of pairs {of_pairs['mean_recall']}": of_pairs["mean_recall"] >= RECALL,
        f"recall of removals {of_removals['mean_recall']}": of_removals["mean_recall"] >= RECALL,
        f"{of_removals['without_witness']} removals without a witness": not of_removals["without_witness"],
    }
    for promise in found["promises"]:
        checks[f"recall of pairs {promise['mean_recall']} with recall={promise['recall']}"] = (
            promise["mean_recall"] >= promise["recall"]
        )
    return [f"{name}: {what}" for what, holds in checks.items() if not holds]


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--cache", type=Path, default=truth.CACHE, metavar="FOLDER", help="cache of the exact pairs")
    parser.add_argument("--only", metavar="CORPUS", choices=tuple(truth.EXPECTED), help="measure this corpus only")
    options = parser.parse_args()
    names = [options.only] if options.only else list(truth.EXPECTED)
    corpora = []
    for name in names:
        corpus = harness.corpus(name)
        if corpus is None:
            raise SystemExit(f"no file {name}; set LSH_DATA to the folder that holds it")
        found = measured(corpus, options.cache)
        corpora.append(found)
        print(
            f"{name}: precision {found['pairs']['least_precision']:.4f}, recall {found['pairs']['mean_recall']:.4f} of "
            f"{found['pairs']['exact']:,} pairs and {found['removals']['mean_recall']:.4f} of "
            f"{found['removals']['exact']:,} removals, {found['removals']['mean_others']:.1f} others",
            flush=True,
        )
    wrong = [fault for found in corpora for fault in faults(found)]
    harness.must(not wrong, "; ".join(wrong))
    content = {
        "about": f"Threshold {truth.THRESHOLD}, {truth.N}-byte shingles, recall {RECALL}, "
        f"{len(RANDOM_STATES)} random states, {available_cores()} threads; CPU time, medians of the states",
        "data": {
            "name": ", ".join(names),
            "documents": sum(found["data"]["documents"] for found in corpora),
            "bytes": sum(found["data"]["bytes"] for found in corpora),
        },
        "corpora": corpora,
    }
    harness.write("quality", content, options.folder)


if __name__ == "__main__":
    main()
