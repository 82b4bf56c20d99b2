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
        cells = [f"{found['documents']:,}{old}", figure(found["seconds"]["total"]), figure(finding)]
        cells += [figure(found["cpu"] / size * 1e9), figure(found["user"] / size * 1e9)]
        cells += [f"{found['peak_memory'] / 1e9:.2f} GB", f"{found['temporary_bytes'] / size:.2f}"]
        cells += [f"{found['planted'] - found['missing']:,} of {found['planted']:,}", f"{found['beside']:.3%}"]
        rows.append([f"{size / 1e9:.1f} GB, {found['max_memory']}", *cells])
    head = [
        "text, bound",
        "pages",
        "seconds",
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
