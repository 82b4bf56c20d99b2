"""One process of contained.py: `contained_worker.py peer WAY FOLDER` or `contained_worker.py speed N UNIT FOLDER`.

`peer` looks for the items of FOLDER/items/items.jsonl in the pages of FOLDER/pages/pages.jsonl with one library and
one thread, from reading these files to the pairs of a page and an item. It needs the measured library only, and writes
FOLDER/pairs.json. `speed` measures `find_contained` with several numbers of items, and prints its result.
"""

from __future__ import annotations

import json
import re
import string
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Pairs = list[tuple[int, int]]
RUNS = 5
LEAST_OF_MANY = 20  # characters of shingles for which many items are measured
MOST_BYTES = 30_000_000  # of the pages that are searched in one run


def peak() -> int:
    """Return the peak of the resident memory; rusage has that of the process that started this one, if it is larger."""
    return 1024 * int(re.findall(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)[0])


def texts_of(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)["text"]


def pages_of(folder: Path) -> Iterator[str]:
    return texts_of(folder / "pages" / "pages.jsonl")


def items_of(folder: Path) -> list[str]:
    return list(texts_of(folder / "items" / "items.jsonl"))


# ---- peers ----


def lsh_contained(folder: Path, threshold: float = 0.8, words: int | None = None) -> Pairs:
    """Find items with `find_contained`: those with a containment, or those that share any so many words."""
    import lsh

    rule: dict[str, Any] = {}
    if words:
        shingles = lsh.Shingles(words, "word", lowercase=True, strip_punctuation=True)
        rule = {"shingles": shingles, "min_shared": 1}
    found = lsh.find_contained(items_of(folder), pages_of(folder), threshold, num_threads=1, **rule)
    return list(zip(found["text"].tolist(), found["item"].tolist()))


def plain_sets(folder: Path, words: int) -> Pairs:
    """Find pages that have any so many words of an item in common, in lower case without punctuation."""
    none = str.maketrans("", "", string.punctuation)

    def runs(text: str) -> Iterator[tuple[str, ...]]:
        units = text.lower().translate(none).split()
        return zip(*(units[i:] for i in range(words)))

    owners: dict[tuple[str, ...], list[int]] = {}
    for number, item in enumerate(items_of(folder)):
        for run in set(runs(item)):
            owners.setdefault(run, []).append(number)
    known, pairs = owners.keys(), []
    for number, page in enumerate(pages_of(folder)):
        common = known & set(runs(page))
        pairs += [(number, item) for item in {item for run in common for item in owners[run]}]
    return pairs


def decontaminate(folder: Path, **options: Any) -> Pairs:
    """Run decon; an item is a question without an answer."""
    import decon

    (folder / "evals").mkdir()
    with (folder / "evals" / "items.jsonl").open("w", encoding="utf-8") as file:
        for number, item in enumerate(items_of(folder)):
            row = {"eval_key": "items", "doc_id": number, "eval_instance_index": number, "question": item}
            file.write(json.dumps({**row, "split": "test"}) + "\n")
    report = folder / "report"
    paths = {"training_dir": folder / "pages", "evals_dir": folder / "evals", "report_output_dir": report}
    decon.detect(decon.Config(**{name: str(path) for name, path in paths.items()}, worker_threads=1, **options))
    rows = [json.loads(line) for path in report.rglob("*.jsonl") for line in path.open(encoding="utf-8")]
    return [(row["training_line"], row["eval_instance_index"]) for row in rows]


def datatrove(folder: Path) -> Pairs:
    """Run its two steps: an index of n-grams, the filter; an item is an answer, and a task of its own."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.decont import NGramsDecontConfig, NGramsDecontFilter, NGramsDecontIndexer
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter

    config, index = NGramsDecontConfig(), str(folder / "index")
    out = JsonlWriter(str(folder / "out"), compression=None)  # texts that the filter removes
    items, pages = (JsonlReader(str(folder / name), compression=None) for name in ("items", "pages"))
    for number, steps in enumerate(
        (
            [items, NGramsDecontIndexer(index, lighteval_tasks=[], config=config)],
            [pages, NGramsDecontFilter(index, config=config, exclusion_writer=out)],
        )
    ):
        LocalPipelineExecutor(steps, tasks=1, workers=1, logging_dir=str(folder / f"logs{number}")).run()
    rows = [json.loads(line) for path in (folder / "out").glob("*.jsonl") for line in path.open(encoding="utf-8")]
    return [(int(row["id"]), int(row["metadata"]["contaminated_task"])) for row in rows]


WAYS: dict[str, Callable[[Path], Pairs]] = {
    "lsh, 0.8": lsh_contained,
    "lsh, 0.6": lambda folder: lsh_contained(folder, 0.6),
    "lsh, any 13 words": lambda folder: lsh_contained(folder, words=13),
    "lsh, any 10 words": lambda folder: lsh_contained(folder, words=10),
    "lsh, any 8 words": lambda folder: lsh_contained(folder, words=8),
    "sets of Python, any 13 words": lambda folder: plain_sets(folder, 13),
    "sets of Python, any 8 words": lambda folder: plain_sets(folder, 8),
    "decontaminate": decontaminate,
    "decontaminate, every token, short items": lambda folder: decontaminate(
        folder, sample_every_m_tokens=1, eval_min_token_length=0, eval_min_unique_word_count=0
    ),
    "decontaminate, every token, short items, 0.5": lambda folder: decontaminate(
        folder,
        sample_every_m_tokens=1,
        eval_min_token_length=0,
        eval_min_unique_word_count=0,
        contamination_score_threshold=0.5,
    ),
    "datatrove, any 12 words": datatrove,
}


def peer(way: str, folder: Path) -> None:
    """Run a way; write its pairs, CPU and wall time, without what importing takes, and the peak memory."""
    if way.startswith("lsh"):
        import lsh

        lsh.find_contained(["any three words"], ["any three words"])  # loads what is loaded at the first use
    elif way.startswith("decontaminate"):
        import decon  # noqa: F401
    elif way.startswith("datatrove"):
        import datatrove.executor
        import datatrove.pipeline.decont  # noqa: F401
    started = time.process_time(), time.perf_counter()
    pairs = sorted(set(WAYS[way](folder)))
    found = {"cpu_seconds": time.process_time() - started[0], "wall_seconds": time.perf_counter() - started[1]}
    found["peak_bytes"] = peak()
    (folder / "pairs.json").write_text(json.dumps({"pairs": pairs, **found}))


# ---- speed ----


def speed(n: int, unit: str, folder: Path) -> None:
    """Measure tables of the items in FOLDER/*.items, a line each, on the pages; print what each took."""
    import numpy as np

    import lsh
    from lsh.passages import contained

    shingles = lsh.Shingles(n, unit) if unit != "word" else contained.WORDS  # type: ignore[arg-type]
    pages: list[bytes] = []
    size = 0
    for page in texts_of(folder / "pages.jsonl"):
        if size > MOST_BYTES:
            break
        pages.append(page.encode())
        size += len(pages[-1])
    tables: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*.items"), key=lambda path: path.stat().st_size):
        if path.stem == "many" and unit == "char" and n < LEAST_OF_MANY:
            continue

        def items(path: Path = path) -> Iterator[bytes]:
            with path.open("rb") as file:
                yield from (line.rstrip(b"\n") for line in file)

        before = peak()
        containing = contained.Containing(0.8, shingles)
        table = contained._Finding(containing, items, pages, False, 1, lambda *_: None)
        started = time.process_time()
        table._read_items()
        table.table.index(False)
        taken = time.process_time() - started
        found[path.stem] = {
            "items": table.table.count,
            "item_bytes": path.stat().st_size - table.table.count,
            "entries": table.table.num_entries,
            "index_seconds": taken,
            "peak_bytes": peak(),
            "growth_bytes": peak() - before,
            "cpu_seconds": [],
            "wall_seconds_of_two_threads": [],
        }
        tables[path.stem] = table
    hits = {}
    for run in range(RUNS + 1):
        for name, table in tables.items():  # in turns
            for threads, clock, key in (
                (1, time.process_time, "cpu_seconds"),
                (2, time.perf_counter, "wall_seconds_of_two_threads"),
            ):
                table.num_threads = threads
                started = clock()
                rows = table._search()
                if run:
                    found[name][key].append(clock() - started)
                if not np.array_equal(hits.setdefault(name, rows), rows):
                    raise SystemExit("wrong answer, benchmark stopped: another run has other hits")
                found[name]["hits"] = len(rows)
    print(json.dumps({"n": n, "unit": unit, "bytes": size, "tables": found}))


if __name__ == "__main__":
    if sys.argv[1] == "peer":
        peer(sys.argv[2], Path(sys.argv[3]))
    else:
        speed(int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
