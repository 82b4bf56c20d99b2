"""An index as a source of documents: the value that it gives to `lsh.deduplicate` and `lsh.find_pairs`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

from lsh.base.arrays import Array
from lsh.sketch.hasher import MinHasher
from lsh.sketch.planning import Plan
from lsh.typing import DocId

# Of a similarity and a `verify`: the probabilities that a pair is a candidate, and that it is one and found.
Recalls: TypeAlias = Callable[[float, "str | None"], tuple[float, float]]


class IndexSnapshot(ABC):
    """The documents of an index at one moment. Each has a place, a number that ascends in the order of the index."""

    hasher: MinHasher  # that computed the keys
    plan: Plan  # the bands, and the threshold and recall for which they were chosen
    recalls: Recalls
    has_texts: bool  # whether texts can be read
    collisions: (
        float  # the probability that a component of two sketches is equal although the fingerprints differ there
    )

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of documents."""

    @abstractmethod
    def buckets(self, band: int, keys: Array) -> tuple[Array, Array]:
        """Return the documents whose key in a band is one of some keys: their keys (uint64) and places (int64)."""

    @abstractmethod
    def shared(self, band: int) -> tuple[Array, Array]:
        """Return the documents whose key in a band is that of another one: their keys and places."""

    @abstractmethod
    def sketches(self, places: Array) -> Array:
        """Return the sketches of the documents at some places, which ascend, as rows."""

    @abstractmethod
    def texts(self, places: Array) -> list[bytes | None]:
        """Return the texts of the documents at some places, which ascend; ``None`` where it is unknown."""

    @abstractmethod
    def ids(self, places: Array) -> list[DocId]:
        """Return the ids of the documents at some places, which ascend."""


class IndexSource(ABC):
    """An index, as `lsh.deduplicate` and `lsh.find_pairs` take it."""

    @abstractmethod
    def _snapshot(self) -> IndexSnapshot:
        """Return the documents of this moment."""
