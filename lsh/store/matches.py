"""What a query of a cache or of an index returns: the similar documents, the most similar first."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

from lsh.sketch.planning import below_one
from lsh.typing import FoundId

__all__ = ["Match", "Matches"]


class Match(NamedTuple):
    """A stored document that a query of a `Cache` or an `Index` found.

    Attributes
    ----------
    id : hashable
        The id of the document.
    similarity : float
        The Jaccard similarity: exact if `verified` is true, else an estimate.
    interval : tuple of float
        The similarity twice if `verified` is true, else Wilson's 95 % confidence interval for it.
    verified : bool
        Whether the texts were compared. A cache has no texts, so it is False there.
    """

    id: FoundId
    similarity: float
    interval: tuple[float, float]
    verified: bool


class Matches(tuple[Match, ...]):
    """The matches of a query, the most similar first; equally similar ones in the order of addition.

    Attributes
    ----------
    recall : float
        The probability with which a document of similarity `min_similarity` is found: see `Cache.recall_at` and
        `Index.recall_at`. Without texts it is about half of what the bands find, as the estimates of the other half are
        lower.
    min_similarity : float
        The least similarity of a match: as the query asked for; else the threshold of an `Index`, and 0 for a `Cache`.
    """

    recall: float
    min_similarity: float

    def __new__(cls, matches: Iterable[Match], recall: float, min_similarity: float) -> Matches:
        made = tuple.__new__(cls, matches)
        made.recall = recall
        made.min_similarity = min_similarity
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Matches, (tuple(self), self.recall, self.min_similarity)

    def __repr__(self) -> str:
        recall, least = below_one(self.recall, ".4g"), below_one(self.min_similarity, "g")
        return f"Matches({list(self)!r}, recall={recall}, min_similarity={least})"


as_match = partial(tuple.__new__, Match)
