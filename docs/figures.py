"""Draw the plots of docs/idea.md and docs/plots.md with matplotlib: `python docs/figures.py [FOLDER]`.

They are SVG files in docs/figures/. All values are computed by the library, from two sentences and from the 200 texts
of examples/sample.tsv. The same version of matplotlib writes the same bytes. The background is transparent; axes and
texts are grey, so that they can be read on light and dark pages.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes

import lsh
from lsh import plot
from lsh.sketch import sketch_filter

matplotlib.use("svg")
from matplotlib import pyplot

DOCS = Path(__file__).resolve().parent
A, B = "The cat sat on the mat.", "The red cat sat on the mat."
THRESHOLD = 0.8
BANDS = tuple(lsh.Bands(number, 100 // number) for number in (2, 5, 10, 20, 50))
SIZES = 100, 1000  # components of the estimates
VERSION = f"matplotlib {matplotlib.__version__}"
DRAWS = 1000  # estimates, each with other hash functions
BLUE, ORANGE, GREY = "#3d86d6", "#d9772b", "#808890"
STYLE = {
    "svg.fonttype": "none",  # text stays text, in a font of the reader
    "svg.hashsalt": "lsh",
    "font.family": "sans-serif",
    "font.size": 11,
    "figure.figsize": (7.2, 3.6),
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.framealpha": 0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": matplotlib.cycler(color=[BLUE, ORANGE, "#2f9e7a", "#a868c8", "#b08a1e"]),
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "legend.labelcolor"), GREY
    ),
}


def news() -> list[str]:
    """Return the texts of the sample."""
    lines = (DOCS.parent / "examples" / "sample.tsv").read_bytes().decode("utf-8").split("\n")[:-1]
    return [line.split("\t")[1] for line in lines]


def all_pairs(texts: list[str]) -> dict[tuple[int, int], float]:
    """Return the exact similarity of all pairs."""
    matrix = lsh.jaccard_matrix(texts)
    first, second = np.triu_indices(len(texts), 1)
    return dict(zip(zip(first.tolist(), second.tolist()), matrix[first, second].tolist()))


def shingles(ax: Axes) -> None:
    """Draw the similarity of two sentences by the length of the shingles."""
    lengths = range(1, 13)
    bars = ax.bar(lengths, [lsh.jaccard(A, B, shingles=lsh.Shingles(n)) for n in lengths])
    ax.bar_label(bars, fmt="%.2f", fontsize=9)
    ax.set(xlabel="characters of a shingle", ylabel="Jaccard similarity", xticks=lengths, ylim=(0, 1))


def estimates(ax: Axes) -> None:
    """Draw how estimates of one similarity scatter, with few and many components."""
    cut = lsh.Shingles(4)
    edges = (np.arange(41, 98) - 0.5) / 100
    for size in SIZES:
        found = [lsh.MinHasher(size, shingles=cut, random_state=state).jaccard(A, B) for state in range(DRAWS)]
        ax.hist(
            found,
            bins=edges,
            weights=[100 / DRAWS] * DRAWS,
            alpha=0.65,
            histtype="stepfilled",
            label=f"{size} components",
        )
    exact = lsh.jaccard(A, B, shingles=cut)
    ax.axvline(exact, color=GREY, linestyle=":", label=f"exact: {exact:.2f}")
    ax.set(xlabel="estimated similarity", ylabel="% of the estimates", xlim=(0.5, 0.88))
    ax.legend()


def similarities(ax: Axes) -> None:
    """Draw how many pairs of the sample have which similarity, on a logarithmic scale."""
    plot.similarity_histogram(list(all_pairs(news()).values()), threshold=THRESHOLD, bins=25, ax=ax)
    ax.set(yscale="log", ylim=(0.7, 60_000))


def bands(ax: Axes) -> None:
    """Draw the probability that a pair shares a band, for 100 components in several bands."""
    for one in BANDS:
        similarity = np.arange(201) / 200
        ax.plot(
            similarity,
            one.probability(similarity),
            label=f"{one.num_bands} bands of {one.num_components // one.num_bands}",
        )
    ax.set(xlabel="Jaccard similarity", ylabel="probability of a shared band", xlim=(0, 1), ylim=(0, 1.02))
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def candidates(ax: Axes) -> None:
    """Draw how many pairs of the sample share a band, similar ones and others, beside the number of similar pairs."""
    texts, hasher = news(), lsh.MinHasher(100, shingles=lsh.Shingles(8))
    similarity = all_pairs(texts)
    found = [
        [similarity[i, j] for i, j, _ in lsh.find_pairs(texts, hasher=hasher, bands=b, verify=None)] for b in BANDS
    ]
    right = np.array([sum(value >= THRESHOLD for value in values) for values in found])
    names = [f"{one.num_bands}" for one in BANDS]
    ax.bar_label(ax.bar(names, right, label=f"similarity {THRESHOLD} or more"), label_type="center", color="white")
    others = np.array([len(values) for values in found]) - right
    bars = ax.bar(names, others, bottom=right, label="false candidates")
    ax.bar_label(bars, [str(count) if count else "" for count in others.tolist()], padding=2)
    total = sum(value >= THRESHOLD for value in similarity.values())
    ax.axhline(total, color=GREY, linestyle=":", label=f"all {total} similar pairs")
    ax.set(xlabel="bands of 100 components", ylabel="candidate pairs", ylim=(0, 275))
    ax.legend(loc="upper left")


def links(ax: Axes) -> None:
    """Draw the probability that a pair has the same low bits in enough components to be connected."""
    k, least = 128, sketch_filter.min_equal(128, THRESHOLD, lsh.plan(THRESHOLD).loss)
    similarity = np.arange(1, 200) / 200
    for bits in (1, 2, 4, 8):
        found = [sketch_filter.passing(k, least, one, bits) for one in similarity.tolist()]
        ax.plot(similarity, found, label=f"{bits} bit{'s' if bits > 1 else ''}, {k * bits // 8} bytes")
    ax.axvline(THRESHOLD, color=GREY, linestyle=":", label=f"threshold {THRESHOLD}")
    ax.set(xlabel="Jaccard similarity", ylabel="probability of a link", xlim=(0, 1), ylim=(0, 1.02))
    ax.legend(loc="upper left")


def plan(ax: Axes) -> None:
    """Draw the curve of the default plan, and where its false candidates are."""
    chosen = lsh.plan(THRESHOLD, 0.99)
    similarity = np.arange(201) / 200
    found = chosen.probability(similarity)
    ax.plot(
        similarity,
        found,
        color=BLUE,
        label=f"{chosen.bands.num_bands} bands of {chosen.bands.num_components} components",
    )
    below = similarity <= THRESHOLD
    ax.fill_between(similarity[below], found[below], color=ORANGE, alpha=0.35, linewidth=0, label="false candidates")
    ax.axvline(THRESHOLD, color=GREY, linestyle=":", label=f"threshold {THRESHOLD}")
    ax.set(xlabel="Jaccard similarity", ylabel="probability of a shared band", xlim=(0, 1), ylim=(0, 1.02))
    ax.legend(loc="upper left")


def curves(ax: Axes) -> None:
    """Draw the curves of two sets of bands and of a plan with the function of the library."""
    plot.s_curve(lsh.Bands(20, 5), lsh.Bands(5, 20), lsh.plan(THRESHOLD, 0.99), threshold=THRESHOLD, ax=ax)


def around(ax: Axes) -> None:
    """Draw the similarities of the removed documents of the sample, and of the pairs just below the threshold."""
    result = lsh.deduplicate(news(), THRESHOLD)
    plot.similarity_histogram([*result.removed["similarity"], *result.near["similarity"]], threshold=THRESHOLD, ax=ax)


FIGURES: dict[str, Callable[[Axes], None]] = {
    drawn.__name__: drawn
    for drawn in (shingles, estimates, similarities, bands, candidates, links, plan, curves, around)
}


def draw(name: str) -> str:
    """Return a figure as SVG, with coordinates of two decimals and without what a browser does not need."""
    with matplotlib.rc_context(STYLE):
        figure, ax = pyplot.subplots(layout="constrained")
        FIGURES[name](ax)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    svg = re.sub(r"<!DOCTYPE[^>]*>\s*|\s*<metadata>.*?</metadata>", "", buffer.getvalue(), flags=re.DOTALL)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{(FIGURES[name].__doc__ or "").strip()}" ', 1)
    svg = svg.replace("<svg ", f"<!-- docs/figures.py, {VERSION} -->\n<svg ", 1)
    svg = re.sub(r"<[^>]*>", rounded, svg)  # not the texts between
    return re.sub(r" *\n", "\n", svg)


def rounded(tag: re.Match[str]) -> str:
    """Return a tag with coordinates of two decimals."""
    return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), tag[0])


def main() -> None:
    """Write all figures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for name in FIGURES:
        (folder / f"{name}.svg").write_text(draw(name), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
