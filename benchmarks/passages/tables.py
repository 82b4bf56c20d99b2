"""The tables of the READMEs about repeated passages, from the stored results of the scripts of this folder."""

from __future__ import annotations

from typing import Any

from harness import figure, table, where

Result = dict[str, Any]


def passages_table(result: Result) -> str:
    """Return what `lsh passages` takes, and how fast the keys of passages are found."""
    rows = []
    for found in result["cases"]:
        size = found["bytes"]
        finding = found["seconds"]["total"] - found["seconds"]["writing"]
        old = f" and {found['old']:,} old ones" if found["old"] else ""
        cells = [f"{found['documents']:,}{old}", figure(found["seconds"]["total"])]
        cells += [figure(found["seconds"]["total"] / size * 1e9), figure(finding)]
        cells += [figure(found["cpu"] / size * 1e9), figure(found["user"] / size * 1e9)]
        cells += [f"{found['peak_memory'] / 1e9:.2f} GB", f"{found['temporary_bytes'] / size:.2f}"]
        cells += [f"{found['planted'] - found['missing']:,} of {found['planted']:,}", f"{found['beside']:.3%}"]
        parts = f", median of {found['parts']} parts" if found["parts"] > 1 else ""
        rows.append([f"{size / 1e9:.1f} GB, {found['max_memory']}{parts}", *cells])
    head = [
        "text, bound",
        "pages",
        "seconds",
        "ns a byte",
        "without writing",
        "CPU ns a byte",
        "user time",
        "peak memory",
        "temporary files to text",
    ]
    head += ["planted copies that are cut", "of what is cut, beside them"]
    levels = list(result["rates"])
    rates = []
    for i, first in enumerate(result["rates"][levels[0]]):
        cells = [figure(result["rates"][level][i]["mb_per_second"]) for level in levels]
        rates.append([first["corpus"], *cells, f"{first['keys']:.3f}"])
    return "\n\n".join(
        [
            f"{where(result)}. At least {result['min_bytes']} bytes, two threads; JSON lines are read and written.",
            table(head, rows),
            "Keys of passages, MB of text a second and core, and their size:",
            table(["corpus", *levels, "of the text"], rates),
        ]
    )


def passage_peer_table(result: Result) -> str:
    """Return what each tool takes to cut repeated passages, and what it leaves or cuts wrongly."""
    rows = []
    for way, found in result["ways"].items():
        if "not_measured" in found:
            rows.append([way, f"not measured: {found['not_measured']}", *[""] * 9])
            continue
        cells = [figure(found["wall_seconds"]), figure(found["cpu_seconds"])]
        cells += [figure(found[key] / 1e6) for key in ("peak_bytes", "written_bytes")]
        cells += [f"{100 * share:.2f} %" for share in found["share_of_extra_copies_cut"].values()]
        cells += [f"{found['passages_lost']:,}", f"{found['wrongly_cut_bytes']:,}", figure(found["cut_bytes"] / 1e6)]
        rows.append([f"{way} ({found['version']})", *cells])
    head = ["tool, unit", "seconds", "CPU s", "peak memory, MB", "written, MB"]
    head += ["cut of further copies inside a paragraph", "as a paragraph", "of the footer"]
    head += ["passages lost", "bytes cut that do not recur", "MB cut"]
    data = result["data"]
    about = f"{data['bytes'] / 1e6:.0f} MB in {data['pages']:,} pages; {data['passages']} passages in "
    about += f"{data['copies']:,} copies and a footer, {data['planted_bytes'] / 1e6:.0f} MB in all"
    return f"{where(result)}. {about}; one thread, each tool once.\n\n{table(head, rows)}"


def contained_table(result: Result) -> str:
    """Return what `find_contained` finds of planted items, how fast it is by number of items, and what others find."""
    data, quality = result["data"], result["quality"]
    levels = [f"{share:.0%} of the words changed".replace("%", " %") if share else "whole" for share in data["changed"]]
    about = f"{data['items']:,} items of {data['words'][0]} to {data['words'][1]} words, each planted in "
    about += f"{len(levels)} pages, among {data['pages']:,} pages, {data['bytes'] / 1e6:.0f} MB."

    def share(count: int) -> str:
        return f"{100 * count / quality['copies']:.1f} %"

    rows = []
    for row in quality["rows"]:
        found = sum(row["found"])
        cells = [*map(share, row["found"]), f"{found:,} of {row['holds']:,}", f"{row['elsewhere']:,}"]
        rows.append([f"{row['threshold']}", *cells])
    found_table = table(["threshold", *levels, "found of those that the definition has", "hits elsewhere"], rows)
    speed = []
    for one in result["speed"]:
        unit = {"word": "words", "char": "characters", "byte": "bytes"}[one["unit"]]
        for name, items in (("real", "of real texts"), ("made", "made"), ("many", "made")):
            found = one["tables"].get(name)
            if found is None:
                continue
            cells = [f"{found['items']:,} {items}", figure(found["mb_per_second"])]
            cells += [figure(found["mb_per_second_of_two_threads"]), f"{found['times_few']:.2f}"]
            cells += [f"{found['entries']:,}", figure(found["index_seconds"]), f"{found['peak_bytes'] / 1e9:.2f} GB"]
            speed.append([f"{one['n']} {unit}", *cells])
    head = ["shingles", "items", "MB/s, one thread", "two threads, wall time", "time to that for few made items"]
    head += ["shingles in the table", "seconds to build it", "peak memory"]
    on = {part: where({"machine": machine}) for part, machine in result["machines"].items()}
    return "\n\n".join(
        [
            f"{on['quality']}. {about}",
            found_table,
            f"{result['speed'][0]['bytes'] / 1e6:.0f} MB of pages without planted items; the best of several runs "
            f"({on['speed']}):",
            table(head, speed),
            "Other rules and tools, one thread, each once, from JSON lines to pairs of a page and an item "
            f"({on['peers']}):",
            _other_rules(result, levels),
        ]
    )


def _other_rules(result: Result, levels: list[str]) -> str:
    rows = []
    for way, found in result["peers"].items():
        if "not_measured" in found:
            rows.append([way, f"not measured: {found['not_measured']}", *[""] * (len(levels) + 5)])
            continue
        cells = [f"{100 * count / found['copies']:.1f} %" for count in found["found"]]
        total = sum(found["found"])
        cells += [f"{100 * found['found_of_short']:.1f} %", f"{found['elsewhere']:,}"]
        cells += [f"{total / max(total + found['elsewhere'], 1):.4f}", figure(found["mb_per_second"])]
        cells += [figure(found["peak_bytes"] / 1e6), f"{found['bytes'] / 1e6:.0f}"]
        rows.append([f"{way} ({found['version']})" if found["version"] else way, *cells])
    head = [
        "rule",
        *levels,
        "all copies of items of fewer than 13 words",
        "hits elsewhere",
        "precision",
        "MB/s, CPU time",
    ]
    return table([*head, "peak memory, MB", "MB of pages"], rows)
