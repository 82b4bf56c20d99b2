"""Plan `lsh.spark` for a billion and for ten billion documents: the tables of docs/scale.md.

`scale.py` prints the plans, computed from results/spark.json, results/engine.json, results/scale.json and the
assumptions below; `--price` and the other options replace an assumption. `all.py --render` writes the same tables into
docs/scale.md.

`scale.py --measure` plans for samples of real corpora (LSH_DATA) and writes results/scale.json. Every document of the
large corpus is taken to be like one of the sample: a pair of the large corpus is as similar as one of the sample.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

import lsh
from lsh.base.budget import MAX_DOCUMENTS
from lsh.links.linking import LIMIT

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import corpora
import harness
from harness import table

Result = dict[str, Any]
SIZES = (10**9, 10**10)
THRESHOLD, RECALL = 0.8, 0.99
FIXED = "look at the workers"  # the stage whose time does not depend on the documents
CHECKED = "stories"  # the corpus whose largest run is predicted from the one before

# Of the measurement.
SAMPLE = 1000  # documents of a corpus
GENERATED = 1_000_000  # documents of a generated corpus, of which the sample is taken
TEXT_BYTES = 8000  # of a sampled document, from its start
MAKE = {"reviews (generated)": corpora.reviews, "stories (generated)": corpora.stories}
FILES = {
    "news": "reuters21578.tsv.gz",
    "articles": "articles2500.tsv.gz",
    "advertisements": "ads_rome_it.tsv.gz",
    "API pages": "win32docs.tsv.gz",
    "395 languages": "multilingual.jsonl.gz",
}
SHINGLES = {
    "5 bytes": lsh.Shingles(5, "byte"),
    "8 characters": lsh.Shingles(8),
    "5 words": lsh.Shingles(5, "word"),
}


@dataclass(frozen=True)
class Assumptions:
    """What the plan assumes beside the measurements."""

    price: float = 0.0408  # USD for an hour of a core with its memory: an EC2 m7g.4xlarge in June 2026
    cores: int = 16  # of a machine
    memory_gb: int = 64  # of a machine
    busy: float = 0.6  # share of the time in which a core of a cluster works
    machines: int = 40
    partition: int = 1_000_000  # documents of a partition
    task_minutes: float = 15.0  # of a partition, at most: else there are more of them


# ---- plans for samples of corpora ----


def sample(name: str) -> list[bytes]:
    """Return documents of a corpus at even distances, cut to their first bytes."""
    if name in MAKE:
        made = MAKE[name](GENERATED)
        return [text[:TEXT_BYTES] for at in range(0, GENERATED, GENERATED // SAMPLE) for text in made.texts(at, at + 1)]
    found = harness.corpus(FILES[name])
    if found is None:
        raise SystemExit(f"no file {FILES[name]}; set LSH_DATA to the folder that holds it")
    texts = [text for text in found.texts if text]
    positions = np.linspace(0, len(texts) - 1, SAMPLE).astype(int).tolist()
    return [texts[i][:TEXT_BYTES].decode(errors="ignore").encode() for i in positions]


def planned(texts: list[bytes], shingles: lsh.Shingles, documents: int) -> Result:
    """Return the plan for so many documents like those of the sample, and the largest bucket."""
    plan = lsh.plan(THRESHOLD, RECALL, documents=documents, background=texts, shingles=shingles)
    similar = lsh.jaccard_matrix(texts, shingles=shingles)
    np.fill_diagonal(similar, 0.0)
    below = np.where(similar < THRESHOLD, similar, 0.0)
    bucket = documents * float((below ** min(plan.bands.widths)).mean(axis=1).max())
    return {"plan": plan.to_dict(), "bucket": bucket}


def measure() -> Result:
    """Plan for all corpora."""
    rows, total = list[Result](), 0
    for name in [*MAKE, *FILES]:
        texts = sample(name)
        total += sum(map(len, texts))
        for unit, shingles in SHINGLES.items():
            print(f"{name}, {unit} ...", flush=True)
            plans = [planned(texts, shingles, size) for size in SIZES]
            text_bytes = round(sum(map(len, texts)) / len(texts))
            rows.append({"corpus": name, "shingles": unit, "text_bytes": text_bytes, "plans": plans})
    return {"data": {"bytes": total, "sample": SAMPLE, "text_bytes": TEXT_BYTES}, "rows": rows}


# ---- what was measured ----


def rows_of(spark: Result, corpus: str) -> list[Result]:
    """Return the rows of a corpus, from few to many documents."""
    found = [row for row in spark["rows"].values() if row["corpus"] == corpus]
    return sorted(found, key=lambda row: row["documents"])


def largest_rows(spark: Result) -> dict[str, Result]:
    """Return the row with the most documents, by corpus."""
    return {row["corpus"]: rows_of(spark, row["corpus"])[-1] for row in spark["rows"].values()}


def stages_of(row: Result) -> dict[str, Result]:
    """Return the stages whose time depends on the documents."""
    return {name: stage for name, stage in row["spark"]["stages"].items() if name != FIXED}


def largest_case(engine: Result) -> Result:
    """Return the largest measured case of one machine."""
    cases = [case for name, case in engine["cases"].items() if name.startswith("reviews")]
    return dict(max(cases, key=lambda case: case["documents"]))


# ---- tables ----


def power(value: float) -> str:
    """Format a number of documents, such as 4.8e6."""
    return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")


def measured_table(found: Result) -> str:
    """Return what was measured in local[2], as far as the plan uses it."""
    rows = []
    for row in found["spark"]["rows"].values():
        stages = stages_of(row).values()
        cpu = 1e6 * sum(stage["cpu_seconds"] for stage in stages) / row["documents"]
        alone = 1e6 * row["command"]["cpu_seconds"] / row["documents"]
        longest = max(stage["longest_task_seconds"] for stage in stages)
        share = longest / sum(stage["task_seconds"] for stage in stages)
        cells = [f"{row['documents']:,}", f"{row['bytes'] / row['documents']:,.0f}", f"{cpu:.1f}", f"{alone:.1f}"]
        cells += [f"{cpu / alone:.1f}", f"{share:.3f}", f"{row['removed'] / row['documents']:.3f}"]
        cells += [f"{row['spark']['nodes'] / row['documents']:.3f}"]
        rows.append([row["corpus"], *cells, f"{row['load_before']:.0f} to {row['load_after']:.0f}"])
    large = largest_case(found["engine"])
    head = ["corpus", "documents", "bytes each", "CPU us of Spark", "CPU us of lsh dedup", "ratio", "longest task"]
    text = (
        f"One machine, largest case: {large['documents']:,} documents in {large['best_wall_seconds']:,.0f} s on "
        f"{large['threads']} cores with {large['peak_bytes'] / 1e9:.2f} GB of memory at the peak."
    )
    return f"{table([*head, 'removed', 'in a similar pair', 'load of the machine'], rows)}\n\n{text}"


def check_table(found: Result) -> str:
    """Return the costs of the largest run as the one before it predicts them, and those that were measured."""
    before, row = rows_of(found["spark"], CHECKED)[-2:]
    factor, rows = row["documents"] / before["documents"], []
    kinds = {"CPU seconds": ("cpu_seconds", 1.0), "GB shuffled": ("shuffle_bytes", 1e9)}
    for kind, (key, unit) in kinds.items():
        stages = {name: (stages_of(before)[name][key], stage[key]) for name, stage in stages_of(row).items()}
        stages["all"] = tuple(map(sum, zip(*stages.values(), strict=True)))  # type: ignore[assignment]
        for name, (one, other) in stages.items():
            if max(one, other) / unit >= 0.1:
                error = factor * one / other - 1 if other else float("inf")
                rows.append([f"{name}, {kind}", f"{factor * one / unit:,.1f}", f"{other / unit:,.1f}", f"{error:+.0%}"])
    about = f"{row['documents']:,} {CHECKED}, predicted from {before['documents']:,} in proportion to the documents."
    return f"{about}\n\n{table(['', 'predicted', 'in fact', 'error'], rows)}"


def plan_lines(row: Result, one: Result, given: Assumptions) -> list[str]:
    """Return the cells of a corpus and a number of documents."""
    plan = lsh.Plan.from_dict(one["plan"])
    documents = plan.documents or 0
    spent = plan.cost(text_bytes=row["text_bytes"])
    hours = spent.spark_core_hours / given.busy
    partitions = max(documents / given.partition, spent.spark_core_hours * 60 / given.task_minutes)
    each = (plan.false_candidates or 0.0) * documents
    return [
        f"{row['corpus']}, {row['shingles']}",
        f"{row['text_bytes']:,}",
        f"{plan.num_seeds:,}",
        plan.bands.to_string(),
        f"{each:,.0f}" if each >= 1 else f"{each:.1g}",
        f"{one['bucket']:,.0f}{' *' if one['bucket'] > LIMIT else ''}",
        f"{spent.spark_core_hours:,.0f}",
        f"{spent.spark_core_hours * 60 / partitions:,.1f}",
        f"{partitions:,.0f}",
        f"{hours * 60 / given.machines / given.cores:,.0f}",
        f"{spent.spark_shuffled_bytes / given.machines / 1e9:,.0f}",
        f"{hours * given.price:,.2f}",
    ]


def plan_table(found: Result, given: Assumptions = Assumptions()) -> str:
    """Return the plan on Spark, for each number of documents."""
    text = (
        f"Assumptions: {given.machines} machines with {given.cores} cores and {given.memory_gb} GB of memory; a core "
        f"works {given.busy:.0%} of the time; an hour of a core costs USD {given.price:g} with its memory, without "
        "disk. USD 0.0408 is the price of an Amazon EC2 m7g.4xlarge on demand in us-east-1 in June 2026 (16 cores and "
        "64 GB for USD 0.6528 an hour). Prices change: replace it by yours."
    )
    head = ["bytes each", "components", "bands", "false candidates of a document", "largest bucket", "core hours"]
    head += ["minutes of a task", "partitions", "minutes in all", "disk of a machine, GB", "USD"]
    tables = [text]
    for number, size in enumerate(SIZES):
        rows = [plan_lines(row, row["plans"][number], given) for row in found["scale"]["rows"]]
        tables.append(table([f"{power(size)} documents", *head], rows))
    return "\n\n".join(tables)


def single_table(found: Result, given: Assumptions = Assumptions()) -> str:
    """Return the plan for one machine that runs `lsh dedup`."""
    large = largest_case(found["engine"])
    tables = [f"At most {MAX_DOCUMENTS:,} documents in one run."]
    for row in (row for row in found["scale"]["rows"] if row["corpus"] in MAKE and row["shingles"] == "5 bytes"):
        lines: dict[str, list[str]] = {}
        sizes = (10**8, 10**9, MAX_DOCUMENTS)
        for size in sizes:
            spent = lsh.Plan.from_dict(row["plans"][0]["plan"]).cost(size, text_bytes=row["text_bytes"])
            memory = large["peak_bytes"] / large["documents"] * size
            money = spent.core_hours / 2 * given.cores * given.price
            cells = {
                "memory at least, GB": f"{(spent.max_memory or 0) / 1e9:,.0f}",
                "memory as at the largest measured size, GB": f"{memory / 1e9:,.0f}",
                "temporary files, GB": f"{spent.temporary_bytes / 1e9:,.0f}",
                "core hours": f"{spent.core_hours:,.1f}",
                "hours, if two cores work": f"{spent.core_hours / 2:,.1f}",
                "money for a whole machine in this time, USD": f"{money:,.2f}",
                "core hours of Spark, times these": f"{spent.spark_core_hours / spent.core_hours:,.1f}",
            }
            for name, cell in cells.items():
                lines.setdefault(name, [name]).append(cell)
        tables.append(f"**{row['corpus']}, {row['text_bytes']:,} bytes each**")
        tables.append(table(["documents", *map(power, sizes)], lines.values()))
    return "\n\n".join(tables)


TABLES = {"measured": measured_table, "checks": check_table, "plan": plan_table, "single": single_table}


def results() -> Result:
    """Return the stored results that the tables are made of."""
    names = ("spark", "engine", "scale")
    return {name: json.loads((harness.RESULTS / f"{name}.json").read_text(encoding="utf-8")) for name in names}


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--measure", action="store_true", help="plan for the samples again, write results/scale.json")
    for one in fields(Assumptions):
        kind: Any = type(one.default)
        parser.add_argument(f"--{one.name}".replace("_", "-"), type=kind, default=one.default, help="%(default)s")
    options = parser.parse_args()
    if options.measure:
        harness.write("scale", measure(), options.folder)
        return
    given = Assumptions(**{one.name: getattr(options, one.name) for one in fields(Assumptions)})
    found = results()
    print(measured_table(found), check_table(found), plan_table(found, given), single_table(found, given), sep="\n\n")


if __name__ == "__main__":
    main()
