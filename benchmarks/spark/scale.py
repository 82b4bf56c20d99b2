"""Plan `lsh.spark` for a billion and for ten billion documents: the tables of docs/scale.md.

`scale.py` prints the plan, computed from results/spark.json, results/engine.json and the assumptions below; `--price`
and the other options replace an assumption. `all.py --render` writes the same tables into docs/scale.md.

`scale.py --measure` measures the similarities of random pairs of real corpora (LSH_DATA) and extrapolates buckets and
components from them; it writes results/scale.json. The model is an inhomogeneous random graph (Bollobas, Janson,
Riordan 2007): every document of the large corpus is like one of a sample, and two documents share a bucket with the
probability that the bands give for the similarity of their two samples. The share of documents in the largest component
solves rho = 1 - exp(-T rho), where T is N / n times the matrix of these probabilities; the component exists from the N
at which the largest eigenvalue of T is 1.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

import lsh
from lsh.base.budget import LEAST_BYTES, MAX_DOCUMENTS

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import corpora
import harness
from harness import table

Array = np.ndarray[Any, Any]
Result = dict[str, Any]
SIZES = (10**9, 10**10)
N, THRESHOLD = 5, 0.8

# Of the plan: what lsh.spark does, see lsh/spark.
MAX_NODES = 50_000_000  # `max_nodes`: above it the star algorithm finds the components
NODE_BYTES = 30  # of memory for each node in the task that finds the components
FILTER_BITS = 8 << 26  # the largest filter of members
WORD = 64  # bits of a word of it
PROBES = 4  # bits of a member in a word
BROADCAST_BYTES = 10 << 20  # Spark sends tables up to this size to each executor, and shuffles both sides beyond it

FIXED = "look at the workers"  # the stage whose time does not depend on the documents

# Of the measurement.
SAMPLE = 1000  # documents of a corpus
TEXT_BYTES = 8000  # of a sampled document, from its start
RELATED = 0.3  # from this similarity on, two documents are related: of one template, one story, one law
NAMES = {
    "reviews (generated)": "",
    "stories (generated)": "",
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
ASKED = ((0.8, 128), (0.8, 512), (0.9, 128))  # threshold and components of a fingerprint
SHAPES = (
    ("5 bytes", 128),
    ("8 characters", 128),
    ("5 words", 512),
)  # of the plan: measured, default, for large corpora
CHECKED = (("news", 0.5), ("news", 0.6), ("API pages", 0.5), ("API pages", 0.6))


@dataclass(frozen=True)
class Assumptions:
    """What the plan assumes beside the measurements."""

    price: float = 0.0408  # USD for an hour of a core with its memory: an EC2 m7g.4xlarge in June 2026
    cores: int = 16  # of a machine
    memory_gb: int = 64  # of a machine
    busy: float = 0.6  # share of the time in which a core of a cluster works
    few: int = 4  # machines
    many: int = 40


# ---- similarities, buckets and components ----


def sample(name: str) -> list[bytes]:
    """Return documents of a corpus at even distances, cut to their first bytes."""
    if not NAMES[name]:
        make = {"reviews (generated)": corpora.reviews, "stories (generated)": corpora.stories}[name]
        return [text[:TEXT_BYTES] for text in make(SAMPLE).texts()]
    found = harness.corpus(NAMES[name])
    if found is None:
        raise SystemExit(f"no file {NAMES[name]}; set LSH_DATA to the folder that holds it")
    texts = [text for text in found.texts if text]
    positions = np.linspace(0, len(texts) - 1, SAMPLE).astype(int).tolist()
    return [texts[i][:TEXT_BYTES].decode(errors="ignore").encode() for i in positions]


def similarities(texts: list[bytes], shingles: lsh.Shingles) -> Array:
    """Return the similarities of all pairs of a sample, 0 for a text and itself."""
    found = lsh.jaccard_matrix(texts, shingles=shingles)
    np.fill_diagonal(found, 0.0)
    return found


def growth(shared: Array) -> float:
    """Return the largest eigenvalue of a symmetric matrix of probabilities, by power iteration."""
    vector, value = np.ones(len(shared)), 0.0
    for _ in range(200):
        vector = shared @ vector
        value = float(np.linalg.norm(vector))
        if value == 0.0:
            return 0.0
        vector /= value
    return value


def largest_share(shared: Array, documents: int) -> float:
    """Return the share of the documents in the largest component that grows with their number, 0 without one."""
    rates = shared * (documents / len(shared))
    share = np.ones(len(shared))
    for _ in range(5000):
        new = -np.expm1(-(rates @ share))
        if np.abs(new - share).max() < 1e-9:
            break
        share = new
    return float(new.mean()) if new.mean() > 1e-4 else 0.0


def extrapolated(similar: Array, threshold: float, bands: lsh.Bands) -> Result:
    """Extrapolate from the pairs of a sample to large corpora."""
    unrelated = np.where(similar < RELATED, similar, 0.0)
    shared = bands.probability(unrelated)
    count, width = len(similar), min(bands.widths)
    in_bucket = (unrelated**width).mean(axis=1)  # probability of sharing one bucket with a random document
    value = growth(shared)
    return {
        "threshold": threshold,
        "bands": bands.to_string(),
        "width": width,
        "false_pair_share": float(shared.sum() / (count * (count - 1))),
        "begins": count / value if value else None,
        "largest_share": {str(size): largest_share(shared, size) for size in SIZES},
        "bucket": {
            str(size): {"mean": size * float(in_bucket.mean()), "most": size * float(in_bucket.max())} for size in SIZES
        },
    }


def actual_share(texts: list[bytes], shingles: lsh.Shingles, bands: lsh.Bands) -> float:
    """Return the share of the documents in the largest component of shared buckets, from their fingerprints."""
    from lsh.engine.deciding import Components

    hasher = lsh.MinHasher(128, shingles=shingles)
    prints = hasher.fingerprints(texts)
    prints = prints[~hasher.is_empty(prints)]
    components, numbers = Components(len(prints)), np.arange(len(prints), dtype=np.int32)
    for keys in bands.keys(prints):
        order = np.argsort(keys, kind="stable").astype(np.int32)
        same = keys[order[1:]] == keys[order[:-1]]
        components.connect(np.ascontiguousarray(np.stack([order[:-1], order[1:]], axis=1)[same]), numbers)
    _, starts = components.order()
    return float(np.diff(starts).max() / len(prints))


def measure() -> Result:
    """Measure and extrapolate all corpora; check the model against real components at low thresholds."""
    found: Result = {"rows": [], "checks": []}
    total = 0
    for name in NAMES:
        texts = sample(name)
        total += sum(map(len, texts))
        for unit, shingles in SHINGLES.items():
            print(f"{name}, {unit} ...", flush=True)
            similar = similarities(texts, shingles)
            pairs = similar[np.triu_indices(len(similar), 1)]
            shapes = [(asked, lsh.plan(asked, 0.99, seeds).bands) for asked, seeds in ASKED]
            about = {"corpus": name, "shingles": unit, "pairs": len(pairs), "mean_similarity": float(pairs.mean())}
            related = float(((pairs >= RELATED) & (pairs < THRESHOLD)).mean())
            found["rows"].append({**about, "related_share": related})
            found["rows"][-1]["cases"] = [extrapolated(similar, *shape) for shape in shapes]
            if unit != "5 bytes":
                continue
            for threshold in [threshold for corpus, threshold in CHECKED if corpus == name]:
                bands = lsh.plan(threshold, 0.99, 128).bands
                whole = harness.corpus(NAMES[name])
                documents = [text[:TEXT_BYTES] for text in whole.texts if text] if whole else []
                check = {"corpus": name, "documents": len(documents), "threshold": threshold}
                check["predicted"] = largest_share(bands.probability(similar), len(documents))
                check["actual"] = actual_share(documents, shingles, bands)
                found["checks"].append({**check, "bands": bands.to_string()})
    found["data"] = {"bytes": total, "sample": SAMPLE, "text_bytes": TEXT_BYTES, "related": RELATED}
    return found


# ---- the plan ----


def largest_rows(spark: Result) -> dict[str, Result]:
    """Return the row with the most documents, by corpus."""
    return {row["corpus"]: row for row in sorted(spark["rows"].values(), key=lambda row: row["documents"])}


def passing_share(nodes: int) -> float:
    """Return the share of other documents that pass the filter of members.

    It is a Bloom filter with all bits of a member in one word of 64 bits, and the members of a word are Poisson
    distributed. See `lsh.spark._tasks.filter_words` for the number of words.
    """
    wanted = max(nodes * 16 // WORD, 1 << 10)
    mean = nodes / min(1 << wanted.bit_length(), FILTER_BITS // WORD)
    members = np.arange(int(mean + 20 * math.sqrt(mean) + 20))
    chances = np.exp(members * math.log(mean) - mean - np.cumsum(np.log(np.maximum(members, 1))))
    set_bits = 1 - (1 - 1 / WORD) ** (PROBES * members)
    return float((chances * set_bits**PROBES).sum())


@dataclass(frozen=True)
class Case:
    """A number of documents like those of a measured row, and the bands they are to be deduplicated with."""

    row: Result  # of spark.json
    documents: int
    bands: lsh.Bands
    false_pair_share: float  # of all pairs of unrelated documents, those that share a bucket
    largest_share: float  # of the documents, those in the component that false links make
    candidate_seconds: float  # of CPU for a false candidate, on one machine

    @property
    def factor(self) -> float:
        return float(self.documents / self.row["documents"])

    @property
    def nodes(self) -> float:
        """The documents that share a bucket: as many as measured, and those with a false link."""
        share: float = self.row["spark"]["nodes"] / self.row["documents"]
        return self.documents * (1 - (1 - share) * math.exp(-self.documents * self.false_pair_share))

    @property
    def alone_seconds(self) -> float:
        """CPU seconds of one machine, with the false candidates, which a small run does not have."""
        return float(self.row["command"]["cpu_seconds"] * self.factor + self.candidates * self.candidate_seconds)

    @property
    def candidates(self) -> float:
        return self.documents**2 / 2 * self.false_pair_share

    @property
    def task_seconds(self) -> float:
        """CPU seconds of the task for the largest component: its share of one machine's, and all false candidates."""
        if not self.largest_share:
            return 0.0
        decided: float = self.row["command"]["cpu_seconds"] * self.factor * self.largest_share
        return decided + self.candidates * self.candidate_seconds


def cases(found: Result, sizes: Iterable[int], shapes: Iterable[tuple[str, int]]) -> dict[str, dict[str, Case]]:
    """Return the cases of the plan: each corpus, size, shingles and bands, by the corpus, and the heads of columns."""
    template = found["engine"]["cases"]["template"]["summary"]
    seconds = template["seconds"]["comparing"] / template["candidates"]
    extrapolations = {
        (row["corpus"], row["shingles"], one["threshold"], one["bands"]): one
        for row in found["scale"]["rows"]
        for one in row["cases"]
    }
    planned = [(shingles, lsh.plan(THRESHOLD, 0.99, seeds).bands) for shingles, seeds in shapes]
    result: dict[str, dict[str, Case]] = {}
    for corpus, row in sorted(largest_rows(found["spark"]).items()):
        of = result[f"{corpus}, {row['bytes'] / row['documents']:,.0f} bytes each"] = {}
        for size in sizes:
            for shingles, bands in planned:
                one = extrapolations[f"{corpus} (generated)", shingles, THRESHOLD, bands.to_string()]
                largest = one["largest_share"].get(str(size), 0.0)
                case = Case(row, size, bands, one["false_pair_share"], largest, seconds)
                of[f"{power(size)}, {shingles}, {bands.to_string()}"] = case
    return result


def stage_costs(case: Case) -> dict[str, tuple[float, float]]:
    """Return CPU seconds and bytes of shuffle of each stage."""
    row, factor, spark = case.row, case.factor, case.row["spark"]
    measured = {name: (one["cpu_seconds"], one["shuffle_bytes"]) for name, one in spark["stages"].items()}
    measured |= {"star": (spark["star"]["cpu_seconds"], spark["star"]["shuffle_bytes"])}
    kept = spark["kept_shuffled"]["cpu_seconds"], spark["kept_shuffled"]["shuffle_bytes"]
    more_nodes = case.nodes / (spark["nodes"] * factor)
    more_bands = case.bands.num_bands / lsh.plan(THRESHOLD, 0.99, 128).bands.num_bands
    # Documents that pass the filter by chance are shuffled once with their texts, as in the join of the kept rows.
    passing = passing_share(round(case.nodes)) * (1 - case.nodes / case.documents)
    times = {
        "ids are unique": 1.0,
        "keys and links": more_bands,
        "components": more_nodes,
        "filter of members": more_nodes,
        "members and decisions": more_nodes,
        "kept rows": 1.0,
    }
    if case.nodes > MAX_NODES:
        measured["components"] = measured["star"]
        times["components"] *= math.log2(case.nodes) / math.log2(spark["nodes"])
    if row["removed"] * factor * 8 > BROADCAST_BYTES:
        measured["kept rows"] = kept
    costs = {name: (measured[name][0] * factor * by, measured[name][1] * factor * by) for name, by in times.items()}
    cpu, shuffled = costs["members and decisions"]
    costs["members and decisions"] = cpu + kept[0] * factor * passing, shuffled + kept[1] * factor * passing
    return costs


def plan_of(case: Case, given: Assumptions) -> dict[str, str]:
    """Return the lines of the plan on Spark."""
    costs = stage_costs(case)
    hours = {name: cpu / 3600 for name, (cpu, _) in costs.items()}
    possible = case.largest_share * case.documents <= MAX_DOCUMENTS
    tail = case.task_seconds / 3600
    paid = sum(hours.values()) / given.busy
    shuffled = sum(size for _, size in costs.values())
    text = case.row["bytes"] * case.factor
    lines = {
        "text, TB": f"{text / 1e12:,.2f}",
        "documents that share a bucket": f"{case.nodes / case.documents:.2f}",
        "components found by": "star algorithm" if case.nodes > MAX_NODES else "one task",
        "memory of one task for them instead, GB": f"{case.nodes * NODE_BYTES / 1e9:,.1f}",
        "other documents that pass the filter": f"{passing_share(round(case.nodes)):.2f}",
    }
    lines |= {f"core hours: {name}": f"{value:,.1f}" for name, value in hours.items()}
    lines |= {
        "core hours in all": f"{sum(hours.values()):,.1f}",
        "shuffled, TB": f"{shuffled / 1e12:,.2f}",
        "shuffled, bytes a document": f"{shuffled / case.documents:,.0f}",
        "largest component by false links, millions": f"{case.largest_share * case.documents / 1e6:,.0f}",
        "memory of its task at least, GB": f"{LEAST_BYTES * case.largest_share * case.documents / 1e9:,.1f}",
        "its texts in temporary files, TB": f"{case.largest_share * text / 1e12:,.2f}",
        "hours of its task": f"{tail:,.1f}" if possible else "impossible",
    }
    for machines in (given.few, given.many):
        hours_there = paid / machines / given.cores + tail
        lines[f"hours on {machines} machines"] = f"{hours_there:,.2f}" if possible else ""
        lines[f"disk of each of {machines}, GB"] = f"{shuffled / machines / 1e9:,.0f}"
    money = paid * given.price + tail * given.few * given.cores * given.price
    return {**lines, f"money on {given.few} machines, USD": f"{money:,.2f}" if possible else ""}


def single_of(case: Case, engine: Result, given: Assumptions) -> dict[str, str]:
    """Return the lines of the plan for one machine that runs `lsh dedup` on the same documents."""
    cpu, large = case.alone_seconds, largest_case(engine)
    spark = sum(cost for cost, _ in stage_costs(case).values())
    cost = lsh.plan(THRESHOLD, 0.99, 128).cost(
        case.documents, text_bytes=round(case.row["bytes"] / case.row["documents"])
    )
    memory = large["peak_bytes"] / large["documents"] * case.documents
    return {
        "memory at least, GB": f"{(cost.max_memory or 0) / 1e9:,.0f}",
        "memory as at the largest measured size, GB": f"{memory / 1e9:,.0f}",
        "temporary files, GB": f"{cost.temporary_bytes / 1e9:,.0f}",
        "core hours": f"{cpu / 3600:,.1f}",
        "of these for false candidates": f"{case.candidates * case.candidate_seconds / 3600:,.1f}",
        "hours, if two cores work": f"{cpu / 2 / 3600:,.1f}",
        "money for a whole machine in this time, USD": f"{cpu / 2 / 3600 * given.cores * given.price:,.2f}",
        "core hours of Spark without its longest task, times these": f"{spark / cpu:,.1f}",
    }


def largest_case(engine: Result) -> Result:
    """Return the largest measured case of one machine."""
    cases = [case for name, case in engine["cases"].items() if name.startswith("reviews")]
    return dict(max(cases, key=lambda case: case["documents"]))


# ---- tables ----


def columns_of(head: str, columns: dict[str, dict[str, str]]) -> str:
    """Return a table with a column for each plan."""
    names = list(dict.fromkeys(name for lines in columns.values() for name in lines))
    return table([head, *columns], ([name, *(lines.get(name, "") for lines in columns.values())] for name in names))


def power(value: float | None) -> str:
    """Format a number of documents, such as 4.8e6."""
    return "none" if value is None else f"{value:.1e}".replace("e+0", "e").replace("e+", "e")


def span(begins: float | None, share: float) -> str:
    """Format where a component begins: by the largest eigenvalue, and by one false link for each document on average.

    The first is too early if it depends on few documents of the sample, the second too late if documents differ.
    """
    return f"{power(begins)} to {power(1 / share)}" if share else "none"


def measured_table(found: Result) -> str:
    """Return what was measured in local[2], as far as the plan uses it."""
    rows = []
    for row in found["spark"]["rows"].values():
        costs = [cost for name, cost in row["spark"]["stages"].items() if name != FIXED]
        cpu = 1e6 * sum(cost["cpu_seconds"] for cost in costs) / row["documents"]
        alone = 1e6 * row["command"]["cpu_seconds"] / row["documents"]
        cells = [f"{row['documents']:,}", f"{row['bytes'] / row['documents']:,.0f}", f"{cpu:.1f}", f"{alone:.1f}"]
        cells += [f"{row['removed'] / row['documents']:.3f}", f"{row['spark']['nodes'] / row['documents']:.3f}"]
        rows.append([row["corpus"], *cells, f"{row['load_before']:.0f} to {row['load_after']:.0f}"])
    large = largest_case(found["engine"])
    head = ["corpus", "documents", "bytes each", "CPU us of Spark", "CPU us of lsh dedup", "share removed"]
    text = (
        f"One machine, largest case: {large['documents']:,} documents in {large['best_wall_seconds']:,.0f} s on "
        f"{large['threads']} cores with {large['peak_bytes'] / 1e9:.2f} GB of memory at the peak."
    )
    return f"{table([*head, 'share in shared buckets', 'load of the machine'], rows)}\n\n{text}"


def plan_table(found: Result, given: Assumptions = Assumptions()) -> str:
    """Return the plan on Spark."""
    text = (
        f"Assumptions: machines with {given.cores} cores and {given.memory_gb} GB of memory; a core works "
        f"{given.busy:.0%} of the time; an hour of a core costs USD {given.price:g} with its memory, without disk. "
        "USD 0.0408 is the price of an Amazon EC2 m7g.4xlarge on demand in us-east-1 in June 2026 (16 cores and 64 GB "
        "for USD 0.6528 an hour). Prices change: replace it by yours."
    )
    return f"{text}\n\n{corpus_tables(cases(found, SIZES, SHAPES), lambda case: plan_of(case, given))}"


def corpus_tables(chosen: dict[str, dict[str, Case]], lines: Callable[[Case], dict[str, str]]) -> str:
    """Return a table for each corpus and number of documents, with a column for each plan."""
    tables = []
    for corpus, columns in chosen.items():
        by_size: dict[str, dict[str, dict[str, str]]] = {}
        for name, case in columns.items():
            size, _, shape = name.partition(", ")
            by_size.setdefault(size, {})[shape] = lines(case)
        tables += [f"**{corpus}**\n\n{columns_of(f'{size} documents', plans)}" for size, plans in by_size.items()]
    return "\n\n".join(tables)


def single_table(found: Result, given: Assumptions = Assumptions()) -> str:
    """Return the plan for one machine."""
    chosen = cases(found, (10**8, 10**9, MAX_DOCUMENTS), SHAPES[:1])
    tables = []
    for corpus, columns in chosen.items():
        plans = {name.partition(",")[0]: single_of(case, found["engine"], given) for name, case in columns.items()}
        tables.append(f"**{corpus}**\n\n{columns_of('documents', plans)}")
    return "\n\n".join([f"At most {MAX_DOCUMENTS:,} documents in one run, shingles of 5 bytes.", *tables])


def component_table(found: Result) -> str:
    """Return from how many documents on a component grows with the corpus, and its share of the documents."""
    scale = found["scale"]
    shapes = [f"{case['threshold']}, {case['bands']}" for case in scale["rows"][0]["cases"]]
    begins, shares = [], []
    for row in scale["rows"]:
        name = f"{row['corpus']}, {row['shingles']}"
        cells = [span(case["begins"], case["false_pair_share"]) for case in row["cases"]]
        begins.append([name, f"{row['mean_similarity']:.4f}", *cells, f"{1e6 * row['related_share']:,.0f}"])
        shares.append(
            [name, *(" / ".join(f"{value:.2f}" for value in case["largest_share"].values()) for case in row["cases"])]
        )
    head = ["corpus, shingles", "mean similarity", *shapes]
    data = scale["data"]
    sizes = " / ".join(map(power, SIZES))
    return "\n\n".join(
        [
            f"Documents from which on a component grows with the corpus, by threshold and bands; {data['sample']:,} "
            f"documents of each corpus, the first {data['text_bytes']:,} bytes of each. From the largest eigenvalue, "
            "to one false link for each document on average. Pairs at a similarity of "
            f"{data['related']} or more and below {THRESHOLD} are related: they are counted in the last column only.",
            table([*head, "related pairs in a million"], begins),
            f"Share of the documents in that component at {sizes} documents, from pairs below {data['related']} only.",
            table(["corpus, shingles", *shapes], shares),
        ]
    )


def bucket_table(found: Result) -> str:
    """Return the sizes of buckets."""
    scale = found["scale"]
    shapes = [f"{case['threshold']}, {case['bands']}" for case in scale["rows"][0]["cases"]]
    head = ["corpus, shingles", *(f"{shape} at {power(size)}" for shape in shapes for size in SIZES)]
    rows = []
    for row in scale["rows"]:
        buckets = [bucket for case in row["cases"] for bucket in case["bucket"].values()]
        cells = [f"{bucket['mean']:,.1f} ({bucket['most']:,.0f})" for bucket in buckets]
        rows.append([f"{row['corpus']}, {row['shingles']}", *cells])
    return table(head, rows)


def check_table(found: Result) -> str:
    """Return components and false candidates that the model predicts, and those that are there."""
    rows = [
        [
            f"{check['corpus']}, {check['threshold']}, {check['bands']}: share in the largest component",
            f"{check['documents']:,}",
            f"{check['predicted']:.2f}",
            f"{check['actual']:.2f}",
        ]
        for check in found["scale"]["checks"]
    ]
    reviews = found["scale"]["rows"][0]
    case = reviews["cases"][0]
    cases = [one for name, one in found["engine"]["cases"].items() if name.startswith("reviews")]
    by_count = {one["documents"]: one["summary"] for one in cases}  # the same for every bound
    for count in sorted(count for count in by_count if count >= 10_000_000):
        predicted = case["false_pair_share"] * count**2 / 2 / 1e6
        actual = (by_count[count]["candidates"] - by_count[count]["compared"]) / 1e6
        label = f"{reviews['corpus']}, {case['threshold']}, {case['bands']}: millions of false candidates"
        rows.append([label, f"{count:,}", f"{predicted:,.2f}", f"{actual:,.2f}"])
    return table(["corpus, threshold, bands", "documents", "predicted", "in fact"], rows)


TABLES = {
    "measured": measured_table,
    "plan": plan_table,
    "single": single_table,
    "components": component_table,
    "buckets": bucket_table,
    "checks": check_table,
}


def results() -> Result:
    """Load the results that the tables need."""
    folder = harness.RESULTS
    return {name: json.loads((folder / f"{name}.json").read_text("utf-8")) for name in ("spark", "engine", "scale")}


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--measure", action="store_true", help="measure the similarities and write results/scale.json")
    for field in fields(Assumptions):
        kind: Any = type(field.default)
        parser.add_argument(f"--{field.name}".replace("_", "-"), type=kind, default=field.default)
    options = parser.parse_args()
    if options.measure:
        harness.write("scale", {"about": "pairs of a sample, extrapolated", **measure()}, options.folder)
        return
    given = Assumptions(**{field.name: getattr(options, field.name) for field in fields(Assumptions)})
    found = results()
    print(plan_table(found, given), single_table(found, given), sep="\n\n")
    print("", component_table(found), bucket_table(found), check_table(found), sep="\n\n")


if __name__ == "__main__":
    main()
