"""The figures of a report: removals by similarity, clusters by size, losses by source, groups of similar pairs.

They are counted from a `lsh.Deduplication` and a `MeasuredRecall`. Nothing here reads a text or makes HTML.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsh.engine.result import Deduplication
from lsh.links.grouping import Components
from lsh.report.choice import cluster_sizes, sides
from lsh.report.lookup import TextLookup, checked_length, decoded
from lsh.report.recall import MeasuredRecall
from lsh.sketch.bands import Bands
from lsh.sketch.hasher import MinHasher
from lsh.sketch.planning import Plan
from lsh.sketch.sketch_filter import LOSS
from lsh.typing import Clusters, Indexed, Verify

MIN_PAIRS = 20  # to measure a recall
DOCUMENTS_STEP = 1 << 16  # documents that are counted at once
ALARMING_LOSS = 0.3  # share of a source's documents: sources that lose more are named
# Where classes of cluster sizes begin.
SIZE_CLASSES = (2, 3, 4, 5, 10, 20, 50, 100, 1000, 10_000, 100_000)


class DeduplicationRun(NamedTuple):
    """A deduplication, its documents and its parameters."""

    result: Deduplication
    new: TextLookup
    old: TextLookup | None
    sizes: NDArray[np.int64]
    # The parameters of `result`, see `Deduplication.parameters`.
    threshold: float
    hasher: MinHasher
    bands: Bands
    plan: Plan | None
    verify: Verify
    clusters: Clusters

    @property
    def promised_recall(self) -> float:
        """The probability that a pair at the threshold shares a band and, if there is a filter, passes it."""
        if self.plan is not None and self.verify == "exact":
            return self.plan.recall_at(self.threshold)
        passed = 1.0 - LOSS if self.verify == "exact" else 1.0
        return self.bands.probability(self.threshold) * passed

    @property
    def left_out(self) -> int:
        """The number of comparisons that were left out because a bucket is large; where there are any, recall is lost.

        The promised recall does not hold then.
        """
        return int(self.result.summary()["capped"])

    def is_found(self, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether the run found each pair of similar documents, by their positions, shape ``(pairs, 2)``.

        A pair is found if one of the two was removed; of connected components, if both are in one. Where similarities
        are estimates, it is also found if its documents share a band, and the estimate is below the threshold.
        """
        if self.clusters == "components":
            labels = self.result.labels[pairs]
            found: NDArray[np.bool_] = labels[:, 0] == labels[:, 1]
        else:
            found = ~(self.result.keep[pairs[:, 0]] & self.result.keep[pairs[:, 1]])
        missed = np.flatnonzero(~found)
        if self.verify == "sketch" and len(missed):
            documents, places = np.unique(pairs[missed], return_inverse=True)
            fingerprints = self.hasher.fingerprints([self.new.text(document) for document in documents.tolist()])
            first, second = places.reshape(-1, 2).T
            keys = self.bands.keys(fingerprints)
            shared = (keys[:, first] == keys[:, second]).any(axis=0)
            found[missed] = shared & ((fingerprints[first] == fingerprints[second]).mean(axis=1) < self.threshold)
        return found

    def side(self, name: str) -> TextLookup:
        """Return the new or the old documents."""
        return self.old if name == "old" and self.old is not None else self.new


class SimilarityHistogram(NamedTuple):
    """Removed documents by similarity; byte-identical copies are counted separately."""

    edges: list[float]
    counts: list[int]
    identical: int

    @property
    def step(self) -> float:
        """The width of an interval."""
        return (self.edges[-1] - self.edges[0]) / len(self.counts)

    @property
    def names(self) -> list[str]:
        """The intervals in words."""
        return [f"{low:g} to {high:g}" for low, high in zip(self.edges, self.edges[1:])]

    @property
    def cut_short(self) -> bool:
        """Whether the column of identical copies is cut short, because it is much higher than the others."""
        return self.identical > 1.6 * max(*self.counts, 1)


def similarity_histogram(run: DeduplicationRun) -> SimilarityHistogram:
    """Count the removed documents by their similarity to the kept one."""
    removed = run.result.removed
    values = removed["similarity"][~removed["identical"]]
    low = min(run.threshold, 0.95, float(values.min(initial=1.0)))
    step = next(step for step in (0.005, 0.01, 0.02, 0.05) if (1 - low) / step <= 25)
    edges = np.round(np.arange(int(low / step + 1e-9), round(1 / step) + 1) * step, 10)
    return SimilarityHistogram(edges.tolist(), np.histogram(values, edges)[0].tolist(), int(removed["identical"].sum()))


class SizeClass(NamedTuple):
    """The clusters in a class of sizes."""

    name: str
    low: int  # the smallest size of the class
    clusters: int
    documents: int
    share: float  # of the documents in all clusters


def clusters_by_size(result: Deduplication) -> list[SizeClass]:
    """Count clusters by their size, in classes."""
    sizes = cluster_sizes(result.removed)[1]
    classes = []
    for low, high in zip(SIZE_CLASSES, (*SIZE_CLASSES[1:], int(sizes.max(initial=0)) + SIZE_CLASSES[-1])):
        inside = sizes[(sizes >= low) & (sizes < high)]
        if len(inside):
            name = f"{low:,}" if high == low + 1 else f"{low:,} to {high - 1:,}"
            name = name if low < SIZE_CLASSES[-1] else f"{low:,} or more"
            documents = int(inside.sum())
            classes.append(SizeClass(name, low, len(inside), documents, float(documents / sizes.sum())))
    return classes


class ShownCluster(NamedTuple):
    """One of the largest clusters."""

    kept: int  # position of the kept document
    size: int
    lowest: float  # similarity of a removed document to the kept one


def shown_clusters(result: Deduplication, kept: Iterable[int]) -> list[ShownCluster]:
    """Return the clusters of some kept documents, in their order."""
    sizes, lowest = dict.fromkeys(kept, 1), dict.fromkeys(kept, 1.0)
    removed = result.removed[sides(result.removed) == "new"]
    removed = removed[np.isin(removed["kept"], list(sizes))]
    for document, similarity in zip(removed["kept"].tolist(), removed["similarity"].tolist()):
        sizes[document] += 1
        lowest[document] = min(lowest[document], similarity)
    return [ShownCluster(document, size, lowest[document]) for document, size in sizes.items()]


class PairGroup(NamedTuple):
    """The similar pairs of a sample that are in one group of documents."""

    pairs: int
    found: int


def dominant_group(measured: MeasuredRecall | None, labels: NDArray[np.int64]) -> PairGroup | None:
    """Return the group of documents with more than half of the pairs that the recall is measured on, if there is one.

    Documents are in one group if such pairs connect them, or if they are removed for the same kept document: texts from
    one template, for instance. Their pairs are not independent, and are mostly found or missed together.
    """
    if measured is None or measured.pairs < MIN_PAIRS:
        return None
    documents = np.unique(measured.positions)
    documents = documents[labels[documents] >= 0]
    edges = np.concatenate([measured.positions, np.column_stack([documents, labels[documents]])])
    numbers = np.unique(edges, return_inverse=True)[1].reshape(edges.shape).astype(np.int32)
    components = Components(edges.size)
    components.connect(numbers, np.arange(edges.size, dtype=np.int32))
    group = components.firsts()[numbers[: measured.pairs, 0]]
    inside = group == np.bincount(group).argmax()
    largest = PairGroup(int(inside.sum()), int(measured.is_found[inside].sum()))
    return largest if 2 * largest.pairs > measured.pairs else None


class SourceCount(NamedTuple):
    """The documents of a source, and how many of them are removed."""

    name: str
    documents: int
    removed: int

    @property
    def kept(self) -> int:
        """How many documents are kept."""
        return self.documents - self.removed

    @property
    def loss(self) -> float:
        """The share that is removed."""
        return self.removed / self.documents

    @property
    def alarming(self) -> bool:
        """Whether the source loses more than ALARMING_LOSS."""
        return self.loss > ALARMING_LOSS


def count_by_source(labels: Indexed, keep: NDArray[np.bool_]) -> list[SourceCount]:
    """Return the sources, ordered by the share that they lose, the largest first."""
    checked_length("sources", labels, len(keep))
    counts: dict[str, list[int]] = {}
    starts = range(0, len(keep), DOCUMENTS_STEP)
    flags = (kept for start in starts for kept in keep[start : start + DOCUMENTS_STEP].tolist())
    for label, kept in zip(labels, flags):
        count = counts.setdefault("" if label is None else decoded(label), [0, 0])
        count[0] += 1
        count[1] += not kept
    sources = [SourceCount(name, *count) for name, count in counts.items()]
    return sorted(sources, key=lambda source: (-source.loss, -source.documents, source.name))
