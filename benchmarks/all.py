"""Run all benchmarks, then write the chart and the tables of the READMEs and of the pages in docs/ that have some.

`--only kernels,peers` runs these two only. `--render` runs none and writes tables and chart from the stored results.
`--quick` checks the headline figures in under five minutes on a quiet machine: it measures them again, prints them
beside those of the READMEs, and writes nothing.
A table stands between two comments that name it. tools/check_benchmarks.py checks that each table matches its result.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from adapters import datatrove_minhash
from harness import figure, table, where
from passages import stages
from passages.tables import contained_table, passage_peer_table, passages_table
from spark import scale
from store import crawls
from text import choosing

FOLDER = Path(__file__).resolve().parent
PARTS = {
    Path(script).stem: FOLDER / script
    for script in (
        "engine/pure_python.py",
        "kernels/kernels.py",
        "links/grouping.py",
        "text/exact.py",
        "peers.py",
        "kernels/counts.py",
        "engine/quality.py",
        "sketch/tiny_sets.py",
        "text/choosing.py",
        "engine/engine.py",
        "engine/sizes.py",
        "passages/passages.py",
        "passages/passage_peers.py",
        "passages/stages.py",
        "passages/contained.py",
        "files/files.py",
        "store/index.py",
        "store/crawls.py",
        "spark/spark.py",
        "spark/flat.py",
        "adapters/datatrove_minhash.py",
    )
}
QUICK = {
    "pure_python": (),
    "peers": ("--rounds", "1", "--only", "rensa, flat; rensa, README; datasketch; text-dedup"),
    "quality": ("--only", "reuters21578.tsv.gz"),
}
UPDATED = dict.fromkeys(("engine", "spark"), ("--update",))  # their larger cases are measured one by one, and stay
PLAIN_SETS = "sets of Python"
LONG_TIMES = ("seconds", "first_seconds")
README, CHART = FOLDER / "README.md", FOLDER / "peers.svg"
Result = dict[str, Any]


def size_name(size: int) -> str:
    return f"{size} B" if size < 1000 else f"{size // 1000} KB"


def kernel_tables(result: Result) -> str:
    """Return two tables by level: rates by size of the text; ratios, and rates of other units."""
    levels = result["levels"]
    names = list(levels)
    first = levels[names[0]]
    rates = []
    for i, row in enumerate(first["by_size"]):
        cells = [f"{row['scheme']}, n={row['n']}, k={row['k']}", size_name(row["size"])]
        for name in names:
            found = levels[name]["by_size"][i]
            cells.append(f"{figure(found['best_mb_per_second'])} ({figure(found['median_mb_per_second'])})")
        best = max(levels[name]["by_size"][i]["best_documents_per_second"] for name in names)
        rates.append([*cells, f"{best:,.0f}"])
    ratios = []
    for key, label in (("against_plain", "times the plain algorithm"), ("without_repeats", "100 B to 2 KB")):
        for i, row in enumerate(first[key]):
            of = f"{row['text']}, {row['distinct_share']:.0%} distinct" if key == "against_plain" else row["scheme"]
            ratios.append([f"{label}: {of}, n={row['n']}", *[f"{levels[x][key][i]['best_ratio']:.2f}" for x in names]])
    for i, row in enumerate(first["against_plain"]):
        label = f"MB/s of murmur3, 64 bits: {row['text']}, n={row['n']}, 2 KB"
        ratios.append([label, *[figure(levels[x]["against_plain"][i]["64 bits"]["best_mb_per_second"]) for x in names]])
    for i, row in enumerate(first["two_threads"]):
        label = f"two threads to one: {row['scheme']}, {size_name(row['size'])}"
        ratios.append([label, *[f"{levels[x]['two_threads'][i]['best_ratio']:.2f}" for x in names]])
    for i, row in enumerate(first["units"]):
        label = f"MB/s of fss by {row['n']} {row['unit']}s, 1 KB" + "".join(f", {option}" for option in row["options"])
        ratios.append([label, *[figure(levels[x]["units"][i]["best_mb_per_second"]) for x in names]])
    return "\n\n".join(
        [
            f"{where(result)}. MB of text a second: the best slice, and the median one in brackets; documents a second "
            "at the best level.",
            table(["kernel", "text", *names, "documents/s"], rates),
            table(["ratio or rate", *names], ratios),
        ]
    )


def peer_table(result: Result) -> str:
    """Return the rates and times of each library, with recall and precision."""
    rows = []
    for way, found in result["ways"].items():
        if "not_measured" in found:
            rows.append([way, f"not measured: {found['not_measured']}", *[""] * 8])
            continue
        near = found.get("near")
        rows.append(
            [
                f"{way} ({found['package']} {found['version']})",
                found["shingles"],
                figure(found["mb_per_second"]),
                f"{found['lsh_is_faster']:,.1f}",
                *(
                    [
                        f"{near['documents']:,}",
                        figure(near["cpu_seconds"]),
                        f"{near['lsh_is_faster']:,.1f}",
                        f"{near['recall']:.4f}",
                        f"{near['precision']:.4f}",
                        figure(near["memory_growth_mb"]),
                    ]
                    if near
                    else [""] * 6
                ),
            ]
        )
    head = ["library", "shingles", "fingerprints MB/s", "lsh is x faster", "documents", "near-duplicates, s"]
    head += ["lsh is x faster", "recall", "precision", "MB more memory"]
    return f"{where(result)}. {result['data']['name']}, {result['about']}.\n\n{table(head, rows)}"


def count_table(result: Result) -> str:
    """Return the instructions per shingle of the kernels that have AVX2 counts."""
    kept = result["instructions"]
    wanted = [name for name in kept if name.startswith("avx2 ")]
    rows = [[name.partition(" ")[2], figure(kept[name]), figure(kept["baseline " + name[5:]])] for name in wanted]
    head = ["scheme, unit, n, k, bytes of text", "avx2", "baseline"]
    return f"{result['compiler']}, {' '.join(result['flags'])}.\n\n{table(head, rows)}"


def grouping_table(result: Result) -> str:
    """Return the seconds for band keys and for links, by case."""
    rows = []
    for case, found in result["cases"].items():
        for step, times in found["steps"].items():
            cells = [times["seconds"], times["median_seconds"], times["ns_per_document_and_band"]]
            rows.append([f"{case}: {step}", *map(figure, cells)])
    data = result["data"]
    about = f"{data['documents']:,} fingerprints, {data['bands']} bands of {data['width']}; {result['about']}"
    return f"{where(result)}. {about}.\n\n{table(['step', 's', 'median s', 'ns a document and band'], rows)}"


def pure_python_table(result: Result) -> str:
    """Return the rates against pure Python, and the time and answer of `deduplicate`."""
    rows = [
        [
            f"`{found['parameters']['scheme']}`, {8 * found['parameters']['hashbytes']} bits",
            f"{found['pure_python']['median_mb_per_second']:.4f}",
            figure(found["lsh"]["median_mb_per_second"]),
            f"{round(found['ratio'], -3):,.0f}",
        ]
        for found in result["fingerprints"]
    ]
    data, found = result["data"], result["deduplicate"]
    head = [f"MB of text a second, {result['machine']['simd']}", "pure Python", "`lsh`", "times faster"]
    made, seconds = found["removals"], found["median_cpu_seconds"]
    about = f"{data['documents']:,} texts of {data['name']}, {data['bytes'] / 1e6:.1f} MB"
    job = (
        f"`deduplicate` at {found['parameters']['threshold']} with "
        f"{found['parameters']['bands'].partition(' components')[0]} takes {seconds:.2f} s of CPU time"
    )
    answer = (
        f"The exact answer has {made['exact']}; {made['others']} are not among those, and none is without a witness."
    )
    return "\n\n".join(
        [
            f"{where(result)}. {about}; medians of CPU time on a shared machine.",
            table(head, rows),
            f"{job} for all of them and makes {made['made']} removals. {answer}",
        ]
    )


def quality_table(result: Result) -> str:
    """Return precision and recall of pairs and of removals, by corpus."""
    rows = []
    for found in result["corpora"]:
        pairs, removals = found["pairs"], found["removals"]
        rows.append(
            [
                found["data"]["name"].partition(".")[0],
                f"{found['data']['documents']:,}",
                f"{pairs['exact']:,}",
                f"{pairs['least_precision']:.4f}",
                f"{pairs['mean_recall']:.4f} ({pairs['least_recall']:.4f})",
                figure(pairs["median_cpu_seconds"]),
                f"{removals['exact']:,}",
                f"{removals['mean_recall']:.4f} ({removals['least_recall']:.4f})",
                f"{removals['mean_others']:.1f}",
                f"{removals['without_witness']:,}",
                figure(removals["median_cpu_seconds"]),
                " ".join(f"{promise['mean_recall']:.3f}" for promise in found["promises"]),
            ]
        )
    promises = [f"{promise['recall']:g}" for promise in result["corpora"][0]["promises"]]
    head = ["corpus", "documents", "pairs", "precision", "recall", "`find_pairs`, s", "removals", "of them made"]
    head += ["others", "without witness", "`deduplicate`, s", f"recall at {' '.join(promises)}"]
    return f"{where(result)}. {result['about']}.\n\n{table(head, rows)}"


def tiny_table(result: Result) -> str:
    """The share of the pairs just at the threshold that is missed: the most of all thresholds, by union and recall."""
    found: dict[tuple[float, int, int], tuple[float, float]] = {}
    for cell in result["cells"]:
        key = cell["recall"], cell["num_seeds"], cell["union"]
        found[key] = max(found.get(key, (0.0, 0.0)), (cell["missed"], cell["missed_by_bands"]))
    recalls, seeds, unions = (sorted({key[i] for key in found}) for i in range(3))
    rows = [
        [f"{1 - recall:.3g} allowed, {count} components"]
        + ["{:.4f} ({:.4f})".format(*found[recall, count, union]) for union in unions]
        for recall in recalls
        for count in seeds
    ]
    head = ["missed (by the bands)", *(f"union of {union}" for union in unions)]
    about = f"{result['data']['pairs_of_a_cell']:,} pairs for each threshold, fss; the worst threshold of .2 to .75"
    return f"{where(result)}. {about}.\n\n{table(head, rows)}"


def exact_table(result: Result) -> str:
    """Return exact similarities per second, of the library and of Python sets."""
    rows = []
    for found in result["pairs"]:
        cells = [found[way][by]["best_pairs_per_second"] for way in ("raw", "prepared") for by in ("lsh", PLAIN_SETS)]
        of = f"{size_name(found['size'])}, {found['n']} {found['unit']}s"
        rows.append([of, *(f"{cell:,.0f}" for cell in cells)])
    head = ["texts", "raw text", "sets of Python", "prepared", "sets of Python"]
    pairs = f"{where(result)}. {result['about']}; {result['data']['name']}.\n\n{table(head, rows)}"
    rows = [[f"{one['megabytes']} MB", *(f"{one[name]:.2f}" for name in LONG_TIMES)] for one in result["long"]]
    return f"{pairs}\n\n{table(['two texts of random digits, each', 'seconds, the least of three', 'at first'], rows)}"


def engine_table(result: Result) -> str:
    """Return time and memory of `deduplicate`, by case."""
    rows = []
    for name, found in result["cases"].items():
        summary = found["summary"]
        kept = {True: ", kept", False: ", exceeded"}.get(found.get("bound_kept"), "")
        bound = f", max_memory {found['max_memory']}{kept}" if found["max_memory"] else ""
        kind = "streamed" if found["streamed"] else "in memory"
        threads = f"{found['threads']} thread{'s' if found['threads'] > 1 else ''}"
        planted = found["planted_found"]
        rows.append(
            [
                f"{name.partition('_')[0]}, {kind}, {threads}{bound}",
                f"{summary['documents']:,}",
                figure(found["megabytes"]),
                figure(found["best_cpu_seconds"] - found["cpu_seconds_of_reading"]),
                figure(found["first_cpu_seconds"] - found["cpu_seconds_of_reading"]),
                figure(found["best_wall_seconds"]),
                figure(found["cpu_us_per_document"]),
                figure(found["more_memory_bytes"] / 1e6),
                f"{summary['removed']:,}",
                f"{summary['compared']:,}",
                f"{summary['capped']:,}",
                "" if planted is None else f"{planted:.4f}",
            ]
        )
    head = ["corpus", "documents", "MB", "s", "first s", "s on the wall", "us a document", "MB more memory"]
    head += ["removed", "compared", "capped", "planted found"]
    text = f"{where(result)}. {result['about']}.\n\n{table(head, rows)}"
    for name, found in result["cases"].items():
        machine = found.get("machine", result["machine"])
        if machine != result["machine"]:
            text += f"\n\n{name}: lsh {machine['lsh']}, {machine['cpu']} ({machine['simd']})."
    rows = [
        [
            f"{name}, {stage}",
            f"{found['documents']:,}",
            figure(found[f"{stage}_1"]),
            figure(found[f"{stage}_2"]),
            f"{found[f'{stage}_1'] / found[f'{stage}_2']:.2f}",
        ]
        for name, found in result.get("threads", {}).items()
        for stage in ("comparing", "all")
    ]
    head = ["in memory", "documents", "s of one thread, on the wall", "s of two threads", "times faster"]
    return f"{text}\n\n{table(head, rows)}" if rows else text


def files_table(result: Result) -> str:
    """Return time and memory of the command by format, and the rates with and without reading ahead."""
    rows = []
    for form, found in result["formats"].items():
        rows.append(
            [
                f".{form}",
                f"{found['file_bytes'] / 1e9:.2f}",
                f"{found['documents']:,}",
                f"{found['removed']:,}",
                figure(found["seconds"]["total"]),
                figure(found["mb_per_second"]),
                figure(found["peak_bytes"] / 1e6),
                figure(found["unbounded_seconds"]["total"]),
                figure(found["unbounded_peak_bytes"] / 1e6),
            ]
        )
    head = ["format", "GB", "documents", "removed", "s on the wall", "MB/s", "MB at the peak"]
    head += ["s without a bound", "MB at the peak without it"]
    ways = ["reading", "hashing", "in turn", "ahead"]
    read = []
    for form, rates in result["reading_ahead"].items():
        slower = min(rates["reading"], rates["hashing"])
        read.append([f".{form}", *(figure(rates[way]) for way in ways), f"{rates['ahead'] / slower:.2f}"])
    text = f"{result['data']['bytes'] / 1e9:.2f} GB of text"
    ahead = table(["MB/s", *ways, "ahead / the slower"], read)
    return f"{where(result)}. {result['about']}; {text}.\n\n{table(head, rows)}\n\n{ahead}{overhead_table(result)}"


QUERIES = ("single", "single_match", "batch", "batch_match")


def index_table(result: Result) -> str:
    """Return rates and size of the lasting index and of its peers."""
    rows = []
    for name, found in result["ways"].items():
        for step in ("ask", "ask_compacted"):
            one = found.get("all", found.get(step))
            if name == "bucket" or one is None or (step == "ask_compacted" and "all" in found):
                continue
            if "not_measured" in one:
                rows.append([f"{name}: {one['not_measured']}", *[""] * 8])
                continue
            built = found.get("build", one)
            if step == "ask_compacted":
                built = found["compact"] if "ask" in found else {**built, **found["compact"]}
            cells = [f"{built[key]:,.0f}" if key in built else "" for key in ("documents", "documents_per_cpu_second")]
            cells += [figure(built["bytes_per_document"]), figure(1e3 * one["opening_seconds"])]
            for kind in QUERIES:
                cells.append(f"{one['queries'][kind]['per_second']:,.0f} ({max(one['queries'][kind]['runs']):,.0f})")
            rows.append([name + ", compacted" * (step == "ask_compacted"), *cells])
    head = ["", "documents", "added a second", "bytes a document", "ms to open", "single queries/s"]
    head += ["single with a match", "in batches", "in batches with a match"]
    more = filter(None, (index_deduplicate_table(result["ways"]), index_memory_table(result["ways"])))
    return "\n\n".join([f"{where(result)}. {result['about']}.", table(head, rows), *more])


def index_deduplicate_table(ways: Result) -> str:
    """Return the time of `deduplicate` of new texts against an index, and of their fingerprints alone."""
    rows = []
    for name, found in ways.items():
        for step, state in (("deduplicate", ""), ("deduplicate_compacted", ", compacted")):
            if one := found.get(step):
                seconds = [statistics.median(one[kind]) for kind in ("deduplicate_seconds", "fingerprints_seconds")]
                cells = [f"{second:.3f}" for second in seconds]
                rows.append([name + state, f"{one['new']:,}", *cells, f"{one['times_fingerprints']:.1f}"])
    head = ["`deduplicate(new, against=index)`", "new texts", "s", "s for their fingerprints", "ratio"]
    return table(head, rows) if rows else ""


def index_memory_table(ways: Result) -> str:
    """Return time and memory of building, of compacting, and of queries that share a band with many documents."""
    rows = []
    for name, found in ways.items():
        if "seconds" in found.get("compact", {}):
            built, compacted = found["build"], found["compact"]
            seconds = built["documents"] / built["documents_per_cpu_second"], compacted["seconds"]
            for about, time, one in zip(("building", "`compact()`"), seconds, (built, compacted)):
                rows.append([f"{name}: {about}", "", figure(time), figure(one["more_memory_bytes"] / 1e6)])
            if "writing_seconds" in built:
                label = f"{name}: merely writing {built['written_bytes'] / 1e9:.1f} GB, as building does"
                rows.insert(-1, [label, "", figure(built["writing_seconds"]), ""])
    many = ways["bucket"]["all"]
    for name, about in BUCKET_QUERIES.items():
        one, label = many[name], f"a bucket of {many['documents']:,}: {about}"
        rows.append([label, f"{one['answer']:,}", f"{one['seconds']:.4f}", figure(one["more_memory_bytes"] / 1e6)])
    return table(["", "matches", "s", "MB more memory"], rows)


BUCKET_QUERIES = {"none_passes": "no member is similar", "best_ten": "`top=10`", "all": "all members"}
CLOCKS = ("CPU", "wall")


def overhead_table(result: Result) -> str:
    """Return the times of the command, of `lsh.deduplicate` on the same texts in memory, and of copying the file.

    The ratios are those of the command and of `lsh.deduplicate`; "without copying" leaves out that of copying.
    """
    if "overhead" not in result:
        return ""
    rows = []
    for form, found in result["overhead"]["formats"].items():
        times = [figure(found[way][clock.lower()]) for clock in CLOCKS for way in ("memory", "command", "copy")]
        ratios = [f"{found['ratio'][clock.lower()]:.2f}" for clock in CLOCKS]
        memory, command, copy = (found[way] for way in ("memory", "command", "copy"))
        ratios += [f"{(command[clock] - copy[clock]) / memory[clock]:.2f}" for clock in map(str.lower, CLOCKS)]
        rows.append([f".{form}", *times, *ratios, f"{found['load']:.1f}"])
    ways = ("in memory", "of the command", "of copying the file alone")
    overhead = result["overhead"]
    head = [f"{overhead['documents']:,} documents ({overhead['simd']})"]
    head += [f"{clock} s {way}" for clock in CLOCKS for way in ways]
    head += [f"{clock} ratio{less}" for less in ("", " without copying") for clock in CLOCKS]
    head.append("load of the machine, by other programs, too")
    return f"\n\n{table(head, rows)}"


def short_peer_table(result: Result) -> str:
    """Return the table of the main README: rates, recall and precision of the best-known libraries."""
    rows = []
    for way, found in result["ways"].items():
        if way in FRONT_WAYS and "near" in found:
            near = found["near"]
            cells = [found["shingles"], figure(found["mb_per_second"]), f"{near['lsh_is_faster']:,.1f}"]
            cells += [f"{near['recall']:.3f}", f"{near['precision']:.3f}"]
            rows.append([f"{way} ({found['version']})", *cells])
    head = ["library", "shingles", "fingerprints, MB/s", "times slower", "recall", "precision"]
    machine = result["machine"]
    where = f"{machine['cpu']} ({machine['simd']}), Python {machine['python']}, numpy {machine['numpy']}"
    how = "one thread, CPU time, 128 components in 16 bands of 8. More libraries: [benchmarks](benchmarks/README.md)."
    return f"{table(head, rows)}\n\n{where}; {how}"


def spark_table(result: Result) -> str:
    """Return time and shuffle by stage, the sums beside the command, and the join of Spark ML."""
    stages, sums = [], []
    for row in result["rows"].values():
        count, spark, alone = row["documents"], row["spark"], row["command"]
        name = f"{row['corpus']}, {count:,}"
        every = {
            **spark["stages"],
            "(kept rows, all shuffled)": spark["kept_shuffled"],
            "(star algorithm)": spark["star"],
        }
        for stage, cost in every.items():
            wall = cost["wall_seconds"]
            cells = [figure(wall), f"{count / wall:,.0f}", figure(1e6 * cost["cpu_seconds"] / count)]
            cells += [figure(cost["shuffle_bytes"] / count), figure(cost["spilled_bytes"] / count)]
            stages.append([f"{name}: {stage}", *cells])
        costs = [cost for stage, cost in spark["stages"].items() if stage != "look at the workers"]
        wall, cpu, shuffled = (
            sum(cost[key] for cost in costs) for key in ("wall_seconds", "cpu_seconds", "shuffle_bytes")
        )
        cells = [figure(wall), f"{count / wall:,.0f}", figure(1e6 * cpu / count), figure(shuffled / count)]
        cells += [figure(spark[f"{process}_peak_bytes"] / 1e6) for process in ("worker", "java")]
        cells += [figure(alone["wall_seconds"]), figure(1e6 * alone["cpu_seconds"] / count)]
        cells += [figure(alone["peak_bytes"] / 1e6), f"{cpu / alone['cpu_seconds']:.1f}"]
        loads = f"{row['load_before']:.0f} to {row['load_after']:.0f}"
        sums.append([f"{name} ({row['machine']['simd']})", *cells, f"{row['removed']:,}", loads])
    head = ["documents: stage", "s on the wall", "documents/s", "CPU us a document"]
    head += ["bytes shuffled a document", "bytes spilled a document"]
    sums_head = ["documents", "s on the wall", "documents/s", "CPU us a document", "bytes shuffled a document"]
    sums_head += ["MB of a worker at the peak", "MB of Java", "`lsh dedup`: s", "CPU us a document", "MB at the peak"]
    sums_head += ["CPU of Spark, times", "removed by both", "load, by other programs, too"]
    versions = next(iter(result["rows"].values()))["spark"]["versions"]
    about = f"{where(result)}, pyspark {versions['pyspark']}, Java {versions['java']}. {result['about']}."
    return "\n\n".join([about, table(sums_head, sums), table(head, stages), join_table(result["joins"])])


def join_table(joins: list[Result]) -> str:
    """Return time, recall and precision of MinHashLSH and of `lsh.spark.find_pairs`."""
    rows = []
    for found in joins:
        for way in ("lsh.spark", "MinHashLSH"):
            one = found[way]
            precision = "" if one["precision"] is None else f"{one['precision']:.4f}"
            cells = [figure(one["wall_seconds"]), figure(one["cpu_seconds"]), f"{one['recall']:.4f}", precision]
            rows.append([f"{found['documents']:,}: {way}", f"{found['pairs']:,}", *cells, f"{found['load']:.0f}"])
    head = ["documents: pairs by", "similar pairs", "s on the wall", "CPU s", "recall", "precision", "load"]
    return table(head, rows)


def sizes_table(result: Result) -> str:
    """Return what a document costs by size, threshold and number of components."""
    rows = []
    for found in result["cases"]:
        by = "the plan for the size" if found["planned"] else "given"
        about = f"{found['corpus']}, {found['documents']:,}, {found['threshold']}"
        cells = [figure(found["first_cpu_us"]), figure(found["cpu_us"])]
        cells += [figure(found["shared"]), f"{found['recall']:.4f}"]
        rows.append([about, str(found["num_seeds"]), by, found["bands"], *cells])
    fit = {name: f"{value * 1e9:.3g} ns" for name, value in result["fit"].items()}
    about = f"Fitted: {fit['seed']} for each hash of a component (k ln k of them), {fit['band']} for each band, "
    about += f"{fit['shared']} for each document in a shared bucket of a band"
    head = ["corpus, documents, threshold", "components", "chosen by", "bands", "CPU us a document, new process"]
    head += ["again", "others in shared buckets", "recall of planted copies"]
    return f"{where(result)}. One thread, texts in memory. {about}.\n\n{table(head, rows)}"


def flat_table(result: Result) -> str:
    """Return the longest task and all tasks of `lsh.spark`."""
    rows = []
    for found in result["cases"]:
        about = f"{found['corpus']}, {found['documents']:,}, {found['threshold']}"
        way = "in rounds" if found["in_rounds"] else "whole"
        times = [found["task_us"], found["longest_seconds"]]
        rows.append([about, way, str(found["tasks"]), *map(figure, times), f"{100 * found['longest_share']:.1f} %"])
    head = ["corpus, documents, threshold", "largest component", "tasks", "us of all tasks, a document"]
    head += ["longest task, s", "of all tasks"]
    return f"{where(result)}. `local[2]`, 32 partitions; rows equal to those of `deduplicate`.\n\n{table(head, rows)}"


FRONT_WAYS = ("lsh, fss", "lsh, fss, by word", "rensa, flat", "rensa, README", "datasketch", "text-dedup")
FRONT = FOLDER.parent / "README.md"
TABLES = {
    README: {
        "pure_python": pure_python_table,
        "kernels": kernel_tables,
        "grouping": grouping_table,
        "peers": peer_table,
        "counts": count_table,
        "quality": quality_table,
        "tiny_sets": tiny_table,
        "exact": exact_table,
        "engine": engine_table,
        "sizes": sizes_table,
        "passages": passages_table,
        "passage_peers": passage_peer_table,
        "contained": contained_table,
        "files": files_table,
        "index": index_table,
        "spark": spark_table,
        "flat": flat_table,
    },
    FRONT: {"peers": short_peer_table},
    FOLDER.parent / "docs" / "scale.md": scale.TABLES,
    FOLDER.parent / "docs" / "choosing.md": choosing.TABLES,
    FOLDER.parent / "docs" / "passages.md": stages.TABLES,
    FOLDER.parent / "docs" / "crawls.md": crawls.TABLES,
    FOLDER.parent / "docs" / "datatrove.md": {"datatrove_minhash": datatrove_minhash.minhash_table},
}


def chart(result: Result) -> str:
    """Draw the fingerprint rate of each library as a bar on a logarithmic axis; return SVG."""
    measured = {way: found for way, found in result["ways"].items() if "not_measured" not in found}
    rates = sorted(((found["mb_per_second"], way) for way, found in measured.items()), reverse=True)
    low, high = math.floor(math.log10(rates[-1][0])), math.ceil(math.log10(rates[0][0]))
    left, width, step, top = 190, 470, 26, 54

    def place(rate: float) -> float:
        return left + width * (math.log10(rate) - low) / (high - low)

    height = top + step * len(rates) + 62
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" width="760" height="{height}" role="img" '
        'aria-label="Fingerprints, megabytes of text a second, by library">',
        "<style>text{font:13px sans-serif;fill:#24292f}.faint{fill:#57606a;font-size:11px}.line{stroke:#d0d7de}"
        ".bar{fill:#8c959f}.ours{fill:#0969da}@media(prefers-color-scheme:dark){text{fill:#e6edf3}"
        ".faint{fill:#9da7b1}.line{stroke:#30363d}.bar{fill:#6e7681}.ours{fill:#58a6ff}}</style>",
        f'<text x="{left}" y="20">Raw text to fingerprints of 128 components, one thread</text>',
    ]
    for power in range(low, high + 1):
        x = place(10**power)
        parts.append(f'<line class="line" x1="{x:.1f}" y1="{top - 8}" x2="{x:.1f}" y2="{top + step * len(rates)}"/>')
        parts.append(f'<text class="faint" x="{x:.1f}" y="{top - 14}" text-anchor="middle">{10.0**power:g}</text>')
    for i, (rate, way) in enumerate(rates):
        y = top + step * i
        kind = "bar ours" if way.startswith("lsh") else "bar"
        parts.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{escape(way)}</text>')
        length = max(place(rate) - left, 1)
        parts.append(f'<rect class="{kind}" x="{left}" y="{y + 2}" width="{length:.1f}" height="{step - 9}" rx="2"/>')
        parts.append(f'<text class="faint" x="{left + length + 6:.1f}" y="{y + 14}">{figure(rate)}</text>')
    machine, y = result["machine"], top + step * len(rates)
    caption = f"{machine['cpu']}, Python {machine['python']}; {result['data']['name']}, 5-byte or 5-character shingles"
    parts.append(f'<text class="faint" x="{left}" y="{y + 18}">MB of text a CPU second, logarithmic</text>')
    parts.append(f'<text class="faint" x="{left}" y="{y + 36}">{escape(caption)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def results() -> dict[str, Result]:
    """Load the stored results, by name."""
    paths = {name: FOLDER / "results" / f"{name}.json" for name in PARTS}
    found = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in paths.items() if path.exists()}
    modules = {"choosing": choosing, "stages": stages}
    shared = {table: found[name] for name, module in modules.items() if name in found for table in module.TABLES}
    return {**found, **shared, **dict.fromkeys(scale.TABLES, scale.results())}


def rendered(path: Path, found: dict[str, Result]) -> str:
    """Return the text of a README with its tables replaced by those of the results."""
    readme = path.read_text(encoding="utf-8")
    for name, make in TABLES[path].items():
        begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
        if name in found:
            before, _, rest = readme.partition(begin)
            _, _, after = rest.partition(end)
            readme = f"{before}{begin}\n{make(found[name])}\n{end}{after}"
    return readme


def headlines(found: dict[str, Result]) -> dict[str, str]:
    """Return the headline figures of results, by name."""
    figures = {}
    for row in found["pure_python"]["fingerprints"]:
        scheme = f"{row['parameters']['scheme']}, {8 * row['parameters']['hashbytes']} bits"
        figures[f"{scheme}: times faster than plain Python"] = f"{row['ratio']:,.0f}"
    for way, row in found["peers"]["ways"].items():
        if "not_measured" in row:
            figures[f"{way}: not measured"] = row["not_measured"]
            continue
        figures[f"{way}: fingerprints, MB/s"] = figure(row["mb_per_second"])
        if near := row.get("near"):
            if way != "lsh, fss":
                figures[f"{way}: lsh finds near duplicates x times faster"] = figure(near["lsh_is_faster"])
            figures[f"{way}: recall and precision"] = f"{near['recall']:.3f} {near['precision']:.3f}"
    for corpus in found["quality"]["corpora"]:
        name, of_pairs = corpus["data"]["name"].partition(".")[0], corpus["pairs"]
        figures[f"{name}: precision and recall of find_pairs, recall 0.995 asked for"] = (
            f"{of_pairs['least_precision']:.4f} {of_pairs['mean_recall']:.4f}"
        )
        figures[f"{name}: removals without a witness"] = str(corpus["removals"]["without_witness"])
    return figures


def quick() -> None:
    """Measure the headline figures again and print them beside the stored ones."""
    with tempfile.TemporaryDirectory() as folder:
        for name, options in QUICK.items():
            print(f"== {name}", flush=True)
            subprocess.run([sys.executable, PARTS[name], folder, *options], check=True)
        measured = {name: json.loads(Path(folder, f"{name}.json").read_text(encoding="utf-8")) for name in QUICK}
    stored = headlines(results())
    machine = measured["peers"]["machine"]
    print(f"\nhere: {where(measured['peers'])}, {machine['simd']}\nstored: {where(results()['peers'])}\n")
    print(
        table(
            ["figure", "here", "stored"],
            [[name, here, stored.get(name, "")] for name, here in headlines(measured).items()],
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), metavar="NAMES", help=f"run these only: {', '.join(PARTS)}")
    parser.add_argument("--render", action="store_true", help="run no benchmark")
    parser.add_argument("--quick", action="store_true", help="measure the headline figures again; write nothing")
    options = parser.parse_args()
    if options.quick:
        quick()
        return
    wanted = options.only.split(",")
    if unknown := set(wanted) - set(PARTS):
        parser.error(f"unknown benchmark in --only: {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
    for name in () if options.render else wanted:
        print(f"== {name}", flush=True)
        subprocess.run([sys.executable, PARTS[name], *UPDATED.get(name, ())], check=True)
    found = results()
    for path in TABLES:
        path.write_text(rendered(path, found), encoding="utf-8")
    if "peers" in found:
        CHART.write_text(chart(found["peers"]), encoding="utf-8")
    print("wrote the tables and the chart")


if __name__ == "__main__":
    main()
