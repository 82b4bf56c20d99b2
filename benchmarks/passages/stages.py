"""The figures of docs/passages.md: what exact copies, near-duplicate documents and passages are, in both orders.

Counts only, no times: the same on every machine. The corpora are those of LSH_DATA.

    python benchmarks/passages/stages.py [FOLDER]
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np

import lsh

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import harness
from harness import table

CORPORA = ("win32docs", "reuters21578")
THRESHOLD, MIN_BYTES = 0.8, 200  # the defaults of the commands
LENGTHS = (50, 100, 200, 400, 1000)
Texts = list[bytes]


def num_bytes(texts: Texts) -> int:
    return sum(map(len, texts))


def stages(texts: Texts) -> dict[str, Any]:
    """Count what each stage removes from a corpus, in both orders."""
    result = lsh.deduplicate(texts, THRESHOLD)
    exact = len(texts) - len(set(texts))
    unique = [text for text, keep in zip(texts, result.keep) if keep]
    exact_bytes = num_bytes(texts) - num_bytes(list(set(texts)))
    found = lsh.find_passages(unique, MIN_BYTES)
    cut = found.summary()
    left = num_bytes(list(found.cut(unique)))
    harness.must(left == num_bytes(unique) - cut["cut_bytes"], "what is left and what is cut is not the whole")
    other = lsh.find_passages(texts, MIN_BYTES)
    rests = list(other.cut(texts))
    there = np.array([bool(rest) for rest in rests])
    again = lsh.deduplicate([rest for rest in rests if rest], THRESHOLD)
    stays = there.copy()
    stays[there] = again.keep
    fragments = [len(rests[i]) for i in np.flatnonzero(stays & ~result.keep)]
    removed_again = num_bytes([rests[i] for i in np.flatnonzero(there & ~stays)])
    return {
        "documents": len(texts),
        "bytes": num_bytes(texts),
        "exact": [exact, exact_bytes],
        "near": [len(texts) - len(unique) - exact, num_bytes(texts) - exact_bytes - num_bytes(unique)],
        "passages": [cut["spans"], cut["cut_bytes"]],
        "left": [len(unique) - cut["emptied"], left],
        "passages_first": [other.summary()["spans"], other.summary()["cut_bytes"]],
        "emptied": other.summary()["emptied"],
        "near_then": [int(there.sum() - stays.sum()), removed_again],
        "left_then": [int(stays.sum()), num_bytes(rests) - removed_again],
        "fragments": [len(fragments), len(texts) - len(unique), statistics.median(fragments) if fragments else 0],
        "shares": [lsh.find_passages(unique, size).summary()["cut_bytes"] / num_bytes(unique) for size in LENGTHS],
    }


def stages_table(result: dict[str, Any]) -> str:
    """Return what each stage removes."""
    columns = list(result["corpora"].values())

    def amount(one: dict[str, Any], name: str) -> str:
        count, size = one[name]
        return "0" if count == 0 else f"{count:,}, {size / 1e6:.2f} MB ({size / one['bytes']:.1%})".replace("%", " %")

    def documents(one: dict[str, Any], name: str) -> str:
        count, size = one[name]
        return f"{count:,} documents, {size / 1e6:.2f} MB ({size / one['bytes']:.1%})".replace("%", " %")

    def fragments(one: dict[str, Any]) -> str:
        count, of, size = one["fragments"]
        return f"{count:,} of {of:,}, median {size:,.0f} bytes"

    rows = [
        ["the corpus", *(f"{one['documents']:,} documents, {one['bytes'] / 1e6:.2f} MB" for one in columns)],
        ["exact copies removed", *(amount(one, "exact") for one in columns)],
        ["near-duplicate documents removed", *(amount(one, "near") for one in columns)],
        ["then passages cut", *(amount(one, "passages") for one in columns)],
        ["left", *(documents(one, "left") for one in columns)],
        ["**the other order:** passages cut", *(amount(one, "passages_first") for one in columns)],
        ["documents emptied by that", *(f"{one['emptied']:,}" for one in columns)],
        ["then documents removed", *(amount(one, "near_then") for one in columns)],
        ["left", *(documents(one, "left_then") for one in columns)],
        ["near duplicates of which a fragment is left", *(fragments(one) for one in columns)],
    ]
    return table(["stage", *result["corpora"]], rows)


def lengths_table(result: dict[str, Any]) -> str:
    """Return the share that is cut by the least length of a passage."""
    rows = [
        [name, *(f"{share:.1%}".replace("%", " %") for share in one["shares"])]
        for name, one in result["corpora"].items()
    ]
    return table(["`min_bytes`", *(f"{size:,}" for size in LENGTHS)], rows)


TABLES = {"stages": stages_table, "lengths": lengths_table}


def main() -> None:
    options = harness.parser(__doc__).parse_args()
    corpora = {name: harness.corpus(f"{name}.tsv.gz") for name in CORPORA}
    if missing := [name for name, found in corpora.items() if found is None]:
        raise SystemExit(f"no file {missing[0]}.tsv.gz; set LSH_DATA to the folder that holds it")
    content = {"corpora": {name: stages(found.texts) for name, found in corpora.items() if found is not None}}
    data = {"name": "win32docs, reuters21578", "bytes": sum(one["bytes"] for one in content["corpora"].values())}
    harness.write("stages", {"data": data, **content}, options.folder)


if __name__ == "__main__":
    main()
