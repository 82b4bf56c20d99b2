"""``lsh plan``: the cheapest bands for a threshold and a recall, with their recall and cost."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
from functools import partial
from io import BytesIO
from typing import Any

import numpy as np

import lsh
from lsh import files
from lsh.base import checks
from lsh.base.wording import counted
from lsh.files import ReadOptions
from lsh.sketch.background import SAMPLE_TEXTS
from lsh.sketch.hasher import MAX_FSS_SEEDS
from lsh.terminal import console, inputs, options

PLOTS = (".svg", ".png")

EPILOG = f"""\
examples:
  lsh plan --threshold 0.7 --recall 0.95
  lsh plan --documents 5e9 --bytes 1200
  lsh plan --threshold 0.6 --documents 5e9
  lsh plan --sample news.tsv.gz --documents 1e9 --plot curve.svg

{options.FORMATS}
{console.EXITS}"""


def add_parser(commands: argparse._SubParsersAction[console.Parser]) -> None:
    """Add the command to the parsers of the command line."""
    parser = commands.add_parser(
        "plan",
        help="choose bands, and print their recall and cost",
        description="Print the cheapest bands that find a pair at the threshold with the recall, their recall at other "
        "similarities, and their cost. With a number of documents, they are those that lsh dedup uses for so many; "
        "with --sample it prints the options for them, if it would use others.",
        epilog=EPILOG,
    )
    options.add(parser, "--threshold", "--recall", "--num-seeds")
    parser.add_argument(
        "--documents",
        type=options.whole,
        metavar="N",
        help="number of documents of the whole corpus (default: those of --sample)",
    )
    parser.add_argument(
        "--bytes",
        type=options.whole,
        metavar="N",
        help="size of a text on average (default: that of --sample); with --documents, print what a run costs",
    )
    parser.add_argument(
        "--sample",
        metavar="FILE",
        nargs="+",
        help="files of documents of the corpus, or folders: the bands are those for pairs of these documents",
    )
    parser.add_argument("--plot", metavar="FILE", help="draw the curve to a .svg or .png file (extra plot)")
    options.add(parser, "--json")
    options.add_shingles(parser.add_argument_group("shingles of --sample"))
    options.add_reading(parser)
    parser.set_defaults(run=run)


def run(namespace: argparse.Namespace) -> None:
    """Run ``lsh plan``."""
    console.check_standard_output()
    documents, sample, text_bytes = namespace.documents, namespace.sample, namespace.bytes
    if documents is not None:
        documents = checks.whole_number("documents", documents, 1, 2**63)
    if text_bytes is not None:
        text_bytes = checks.whole_number("bytes", text_bytes, 0, 2**63)
    if sample is None and documents is None and text_bytes is not None:
        raise ValueError("--bytes requires --documents, or --sample")
    options.refuse(namespace, options.SHINGLE_OPTIONS if sample is None else (), "{0} requires --sample")
    for name in options.reading_given(namespace) if sample is None else ():
        raise ValueError(f"{name} requires --sample")
    if namespace.num_seeds is not None:
        checks.whole_number("num_seeds", namespace.num_seeds, 1, MAX_FSS_SEEDS)
    goal = {name: getattr(namespace, name) for name in ("threshold", "recall", "num_seeds")}
    shingles, reading = options.shingles(namespace), options.reading(namespace)
    places = files.expanded(sample) if sample is not None else []
    inputs.check_files(inputs.named("--sample", places), [("--plot", namespace.plot)], reading)
    _check_plot(namespace.plot)
    inputs.note_memory([namespace.plot], quiet=False)
    make_plan, own = partial(lsh.plan, **{name: value for name, value in goal.items() if value is not None}), None
    planned = make_plan(documents=documents)  # an error if no bands have the recall, before the sample is read
    if sample is not None:
        count, texts = _sample(inputs.find(reading, places), reading)
        if not count:
            raise ValueError(f"--sample must have documents, {' '.join(map(files.shown, sample))} has none")
        documents = documents or count
        if count < min(SAMPLE_TEXTS, documents):
            remedy = f"name files of {SAMPLE_TEXTS:,} documents or more"
            console.say(f"--sample has {counted(count, 'document')}: rare false candidates are not seen; {remedy}")
        usual = planned if namespace.documents is not None else make_plan(documents=documents)
        make_plan = partial(make_plan, shingles=shingles, background=texts)
        planned = make_plan(documents=documents)
        if planned.bands != usual.bands:
            given = lsh.plan(planned.threshold, planned.recall, planned.num_seeds)
            needed = "" if given.bands == planned.bands else f" --bands {planned.bands.to_string()}"
            own = f"--num-seeds {planned.num_seeds}{needed}"
        if text_bytes is None:
            text_bytes = round(sum(len(text or b"") for text in texts) / len(texts))
    cost = None if text_bytes is None or documents is None else planned.cost(documents, text_bytes=text_bytes)
    if namespace.json:
        console.write_data(json.dumps(_as_dict(planned, cost)) + "\n")
    else:
        by_size = documents is not None and namespace.num_seeds is None
        larger = make_plan(documents=4 * documents) if by_size else None
        console.write_data(_table(planned, larger, cost, own))
    if namespace.plot is not None:
        _draw(planned, namespace.plot)


def _check_plot(path: str | None) -> None:
    """Check that a plot can be drawn, before any work."""
    if path is None:
        return
    if os.path.splitext(path)[1].lower() not in PLOTS:
        raise ValueError(f"--plot must be a file with the ending {' or '.join(PLOTS)}, got {path}")
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError('--plot needs matplotlib: run pip install "lsh-dedup[plot]"')


def _sample(sources: files.Sources, reading: ReadOptions) -> tuple[int, list[bytes | None]]:
    """Return the number of texts of a corpus, and the texts or, of many, the same sample each time."""
    with inputs.open_documents(reading, sources) as documents:
        texts = inputs.TextStream([documents], with_ids=False, notes="")
        count = sum(map(len, texts().pieces))
        wanted = np.random.RandomState(0).permutation(count)[:SAMPLE_TEXTS]
        return count, [record.text for _, record in texts.at(wanted.tolist())]


def _table(planned: lsh.Plan, larger: lsh.Plan | None, cost: lsh.Cost | None, own: str | None) -> str:
    """Return the table and the cost.

    `larger` is the plan for four times as many documents, where their number decides about it, `own` the options with
    which ``lsh dedup`` uses these bands, if it would use others.
    """
    table = str(planned) + ("" if own is None else f"\nlsh dedup uses these bands with {own}")
    if larger is not None and larger.bands == planned.bands:
        table += "\nfour times as many documents need the same bands"
    elif larger is not None:
        table += f"\nfour times as many documents need {larger.num_seeds} seeds: {larger.bands.to_string()}"
    return "\n\n".join([table, *([] if cost is None else [str(cost)])]) + "\n"


def _as_dict(planned: lsh.Plan, cost: lsh.Cost | None) -> dict[str, Any]:
    """Return the figures of the table, for ``--json``."""
    similarities = [s / 10 for s in range(3, 11)]
    return {
        "threshold": planned.threshold,
        "recall": planned.recall,
        "num_seeds": planned.num_seeds,
        "bands": planned.bands.to_string(),
        "num_components": planned.bands.num_components,
        "found": {f"{s:.1f}": planned.probability(s) for s in similarities},
        "half_found_at": planned.similarity_at(0.5),
        "most_found_at": planned.similarity_at(0.95),
        "key_bytes": 8 * planned.bands.num_bands,
        "found_at_threshold": planned.probability(planned.threshold),
        "verified_at_threshold": planned.recall_at(planned.threshold),
        "background": planned.background,
        "false_candidates": planned.false_candidates,
        "documents": planned.documents,
        "cost": None if cost is None else cost.to_dict(),
    }


def _draw(planned: lsh.Plan, path: str) -> None:
    """Draw the curve of the bands to a file; equal plans give equal bytes."""
    import matplotlib
    from matplotlib.figure import Figure

    from lsh.report import plot

    with matplotlib.rc_context(), files.Target(path, "") as target:
        matplotlib.rcdefaults()  # without the user's matplotlibrc
        matplotlib.rcParams["svg.hashsalt"] = "lsh"
        figure = Figure()
        plot.s_curve(planned, threshold=planned.threshold, ax=figure.subplots())
        drawn = BytesIO()
        ending = os.path.splitext(path)[1][1:].lower()
        figure.savefig(drawn, format=ending, metadata={"Date": None} if ending == "svg" else None)
        target.write(drawn.getvalue())
        target.commit()
