"""Which documents a report shows: pairs at the threshold, random removals, clusters, and the sample for the recall.

A choice is made from the result and the sizes of the documents, without their texts, so that a caller has to read the
texts of the chosen documents only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsh.base import checks, errors
from lsh.engine.result import Deduplication
from lsh.report import recall
from lsh.report.lookup import checked_length
from lsh.typing import Indexed

MAX_PAIRS = 12  # on each side of the threshold
MAX_RANDOM = 12  # random removals
MAX_CLUSTERS = 20
MEMBER_CLUSTERS = 5  # the largest ones, of which members are shown
SEED = 0  # of the random removals

Records = NDArray[np.void]  # a structured array


class Pair(NamedTuple):
    """Two documents side by side.

    Attributes
    ----------
    first : int
        The position of a new document.
    second : int
        The position of the other document.
    similarity : float
        Their similarity.
    side : {"new", "old"}
        The collection of the second document.
    """

    first: int
    second: int
    similarity: float
    side: str

    @property
    def documents(self) -> set[tuple[str, int]]:
        """Side and position of both."""
        return {("new", self.first), (self.side, self.second)}


@dataclass(frozen=True)
class Choice:
    """The documents that a report shows. Immutable; made by `choose`.

    Attributes
    ----------
    clusters : tuple of int
        Positions of the kept documents of the largest clusters, the largest cluster first.
    members : tuple of Pair
        Two removed documents of each of the five largest clusters, with the kept one: the least similar one and one of
        median similarity. None of clusters with fewer.
    removed : tuple of Pair
        Pairs of a removed document and the kept one, the nearest to the threshold first.
    near : tuple of Pair
        Pairs just below the threshold, the most similar first. Either document may have been removed, but not for the
        other one.
    random : tuple of Pair
        A random sample of the removals (with a fixed seed), by position. Empty where `members` and `removed` have all
        of it.
    sample : tuple of tuple of int
        Positions of the documents that are compared to measure the recall: all pairs within each tuple.
    spread : tuple of int
        Positions of random documents, of which the first ones are compared with all of them to measure the recall.

    Notes
    -----
    Byte-identical copies are in none of the pairs.
    """

    clusters: tuple[int, ...]
    members: tuple[Pair, ...]
    removed: tuple[Pair, ...]
    near: tuple[Pair, ...]
    random: tuple[Pair, ...]
    sample: tuple[tuple[int, ...], ...]
    spread: tuple[int, ...]

    @property
    def positions(self) -> list[int]:
        """Positions of the new documents whose texts are needed, ascending."""
        in_sample = (position for run in self.sample for position in run)
        return sorted({*self.clusters, *in_sample, *self.spread, *self._in_pairs("new")})

    @property
    def against_positions(self) -> list[int]:
        """Positions of the old documents whose texts are needed, ascending."""
        return sorted(set(self._in_pairs("old")))

    def _in_pairs(self, wanted: str) -> Iterator[int]:
        pairs = (*self.members, *self.removed, *self.near, *self.random)
        return (position for pair in pairs for side, position in pair.documents if side == wanted)


def choose(result: Deduplication, *, sizes: Indexed, sample_pairs: int = recall.SAMPLE_PAIRS) -> Choice:
    """Choose the documents that the report of a deduplication shows.

    Parameters
    ----------
    result : Deduplication
        As `lsh.deduplicate` returned it.
    sizes : array_like of int
        UTF-8 bytes of each document, shape ``(n,)``.
    sample_pairs : int, optional
        Approximate number of pairs of documents to compare exactly to measure the recall, at most 20,000,000; 0 for no
        measurement. Default 500,000.

    Returns
    -------
    Choice
        To be passed to `html`, which reads the texts at its `Choice.positions` and `Choice.against_positions` only.

    Raises
    ------
    TypeError, ValueError
        If a parameter has a wrong type or length.

    Examples
    --------
    >>> import lsh
    >>> result = lsh.deduplicate(["a cat sat here", "", "a cat sat here", "rain"], 0.8)
    >>> choice = lsh.report.choose(result, sizes=[14, 0, 14, 4])
    >>> choice.positions, choice.against_positions
    ([0, 1, 3], [])
    """
    checked_result(result)
    lengths = checked_sizes(sizes, len(result.keep))
    limit = checks.whole_number("sample_pairs", sample_pairs, 0, recall.MAX_SAMPLE_PAIRS)
    removed, threshold = result.removed, result.parameters["threshold"]
    first, number = cluster_sizes(removed)
    largest = first[np.argsort(-number, kind="stable")[:MAX_CLUSTERS]]
    different = removed[~removed["identical"]]
    nearest = different[np.lexsort((different["document"], np.abs(different["similarity"] - threshold)))]
    copies = removed["document"][removed["identical"]]
    sample, spread = recall.choose_sample(lengths, copies, limit), recall.choose_random(lengths, copies, limit)
    if len(sample) == 1 and set(spread.tolist()).issubset(sample[0].tolist()):
        spread = spread[:0]  # all pairs are compared
    members = tuple(_pairs(_members(different, largest[:MEMBER_CLUSTERS].tolist())))
    at_threshold = _each_document_once(_pairs(nearest))
    drawn = tuple(_pairs(different[_random_places(len(different))]))
    return Choice(
        tuple(largest.tolist()),
        members,
        at_threshold,
        _each_document_once(pair for pair in _pairs(result.near, "i", "j") if not _is_removal(result, pair)),
        drawn if set(drawn).difference(members, at_threshold) else (),
        tuple(map(tuple, sample.tolist())),
        tuple(spread.tolist()),
    )


def _members(removed: Records, kept: Iterable[int]) -> Records:
    """Return, for each kept document of two removals or more, the least similar one and one of median similarity."""
    removed = removed[sides(removed) == "new"]
    chosen = [removed[:0]]
    for document in kept:
        members = removed[removed["kept"] == document]
        members = members[np.lexsort((members["document"], members["similarity"]))]
        if len(members) > 1:
            chosen.append(members[[0, len(members) // 2]])
    return np.concatenate(chosen)


def _random_places(number: int) -> list[int]:
    """Return up to MAX_RANDOM different numbers below `number`, ascending."""
    draw = np.random.RandomState(SEED)  # gives the same numbers in every version of numpy
    places: set[int] = set()
    while len(places) < min(number, MAX_RANDOM):
        places.add(int(draw.randint(number, dtype=np.int64)))
    return sorted(places)


def _pairs(rows: Records, first: str = "document", second: str = "kept") -> Iterator[Pair]:
    for row, side in zip(rows, sides(rows)):
        yield Pair(int(row[first]), int(row[second]), float(row["similarity"]), str(side))


def _is_removal(result: Deduplication, pair: Pair) -> bool:
    """Return whether one of two documents was removed for the other, which connected components allow for any pair."""
    first, second = ("new", pair.first), (pair.side, pair.second)
    return removed_for(result, *first) == second or removed_for(result, *second) == first


def _each_document_once(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """Return the first MAX_PAIRS pairs, without those that repeat a document of an earlier one."""
    chosen: list[Pair] = []
    seen: set[tuple[str, int]] = set()
    for pair in pairs:
        if not pair.documents & seen:
            chosen.append(pair)
            seen |= pair.documents
        if len(chosen) == MAX_PAIRS:
            break
    return tuple(chosen)


def sides(pairs: Records) -> NDArray[np.str_]:
    """Return the collection of the second document of each pair: "new" or "old"."""
    return pairs["side"] if "side" in (pairs.dtype.names or ()) else np.full(len(pairs), "new")


def removed_for(result: Deduplication, side: str, position: int) -> tuple[str, int] | None:
    """Return side and position of the document for which a document was removed, ``None`` if it was kept."""
    if side == "old" or result.keep[position]:
        return None
    documents = result.removed["document"]
    row = bisect_left(range(len(documents)), position, key=documents.__getitem__)
    return str(sides(result.removed[row : row + 1])[0]), int(result.removed["kept"][row])


def cluster_sizes(removed: Records) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the kept new documents of the clusters, ascending, and the sizes of the clusters."""
    first, number = np.unique(removed["kept"][sides(removed) == "new"], return_counts=True)
    return first, number + 1


def checked_result(result: object) -> Deduplication:
    """Return `result` if it is a Deduplication."""
    return checks.instance("result", result, Deduplication, "what lsh.deduplicate returns")


def checked_sizes(sizes: Indexed, number: int) -> NDArray[np.int64]:
    """Return `sizes` as an array, checked."""
    checked_length("sizes", sizes, number)
    array = np.asarray(sizes)
    if array.ndim != 1 or (number and array.dtype.kind not in "iu") or (array < 0).any():
        raise errors.bad_value("sizes", "must be whole numbers of 0 or more, one for each document")
    return array.astype(np.int64, copy=False)
