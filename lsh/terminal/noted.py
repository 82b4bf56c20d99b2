"""What is noted of many documents when they are read: ids that repeat, names such as sources, values of a column."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from lsh.base.arrays import Array
from lsh.base.budget import MemoryBudget, SpilledColumn

MAX_SORTED = 1 << 23  # hashes of ids that are sorted at once

NO_KEYS = np.empty(0, np.uint64)


def first_repeated(keys: SpilledColumn, ids_at: Callable[[Array], list[bytes]]) -> tuple[int, int] | None:
    """Return two positions of the first id that repeats, ``None`` if all ids differ.

    Parameters
    ----------
    keys : SpilledColumn
        A 64-bit hash of each id.
    ids_at : callable
        Returns the ids at some positions, which ascend.
    """
    repeated, passes = [], len(keys) // MAX_SORTED + 1
    for number in range(passes):  # the keys that are sorted at once have the same rest
        own = np.sort(np.concatenate([chunk[chunk % passes == number] for _, chunk in keys.chunks()] or [NO_KEYS]))
        same = own[1:][own[1:] == own[:-1]]
        repeated.append(same[np.diff(same, prepend=~same[:1]) != 0])  # each once; np.unique imports all of np.ma
    wanted = np.sort(np.concatenate(repeated))
    if not len(wanted):
        return None
    last = np.full(len(wanted), -1)  # the position where each key was last
    for begin, chunk in keys.chunks():
        numbers = np.searchsorted(wanted[:-1], chunk)
        places = np.flatnonzero(wanted[numbers] == chunk)
        places = places[np.argsort(numbers[places], kind="stable")]
        numbers, positions = numbers[places], places + begin
        is_first = np.diff(numbers, prepend=-1) != 0
        before = np.where(is_first, last[numbers], np.roll(positions, 1))
        pairs = np.stack([before, positions], 1)[before >= 0]
        for pair in pairs[np.argsort(pairs[:, 1])]:
            first, second = ids_at(pair)
            if first == second:
                return int(pair[0]), int(pair[1])
        is_last = np.diff(numbers, append=-1) != 0
        last[numbers[is_last]] = positions[is_last]
    return None


class Names(Sequence[bytes]):
    """A name for each of many documents, such as the source; many documents have the same one.

    Parameters
    ----------
    budget : MemoryBudget
        Allocates the memory that grows with the number of documents.

    Attributes
    ----------
    distinct : list of bytes
        The names, in the order of their first documents.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self.distinct: list[bytes] = []
        self._number_of: dict[bytes, int] = {}
        self._numbers = budget.column(np.int32)

    def add(self, numbers: Array, names: Iterable[bytes]) -> None:
        """Add names by their numbers among all of `distinct`, to which some are added first."""
        for name in names:
            self._number_of[name] = len(self.distinct)
            self.distinct.append(name)
        self._numbers.append(numbers)

    def extend(self, names: Iterable[bytes]) -> Array:
        """Add names; return their numbers in `distinct`."""
        numbers = array("i")
        for name in names:
            number = self._number_of.get(name)
            if number is None:
                number = self._number_of[name] = len(self.distinct)
                self.distinct.append(name)
            numbers.append(number)
        added = np.frombuffer(numbers, np.int32)
        self._numbers.append(added)
        return added

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, position: Any) -> Any:
        return self.distinct[int(self._numbers.read(position, position + 1)[0])]

    def __iter__(self) -> Iterator[bytes]:
        for _, numbers in self._numbers.chunks():
            yield from map(self.distinct.__getitem__, numbers.tolist())


class Priorities:
    """The values of --keep-field of many documents, one each, as an array for `lsh.deduplicate`.

    Parameters
    ----------
    budget : MemoryBudget
        Allocates the memory that grows with the number of documents.
    reverse : bool
        Whether the lowest value has priority.
    """

    def __init__(self, budget: MemoryBudget, reverse: bool) -> None:
        self._budget, self._reverse = budget, reverse
        self._values = budget.column(np.int64)

    def extend(self, values: Array) -> None:
        """Add values; the first one with a fraction makes all of them floats."""
        if values.dtype == np.float64 and self._values.dtype != np.float64:
            before, self._values = self._values, self._budget.column(np.float64)
            for _, chunk in before.chunks():
                self._values.append(chunk.astype(np.float64))
            before.free()
        self._values.append(values.astype(self._values.dtype))

    def values(self) -> Array:
        """Return the values, such that the highest one has priority."""
        values = self._values.read()
        if self._reverse:  # the complement, as the least int64 has no negative
            (np.invert if values.dtype == np.int64 else np.negative)(values, out=values)
        return values
