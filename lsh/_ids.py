"""Checks of the ids under which a cache stores documents."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sized
from itertools import islice

from lsh.typing import FoundId


def checked_id(name: str, doc_id: Hashable, position: int | None = None) -> Hashable:
    """Return an id if it is hashable; a message names it by `name` and `position`."""
    try:
        hash(doc_id)
    except TypeError as error:
        inside = "" if type(doc_id).__hash__ is None else f" ({error})"
        raise TypeError(f"{_place(name, position)} must be hashable, got {type(doc_id).__name__}{inside}") from None
    return doc_id


def new_id(name: str, doc_id: Hashable, position: int | None = None) -> Hashable:
    """Return an id under which a document is to be stored: hashable, and not ``None``."""
    if doc_id is None:
        raise TypeError(f"{_place(name, position)} must not be None: in a query, None means that no id is given")
    return checked_id(name, doc_id, position)


def _place(name: str, position: int | None) -> str:
    """Return how a message names an argument, or one element of it."""
    return name if position is None else f"{name}[{position}]"


def in_order(given: Iterable[Hashable]) -> Iterator[Hashable]:
    """Return an iterator over ids; a set is an error, because it has no definite order."""
    if isinstance(given, (set, frozenset)):
        raise TypeError(f"ids must be in the order of the documents, got {type(given).__name__}; pass a list")
    try:
        return iter(given)
    except TypeError:
        raise TypeError(f"ids must be an iterable of ids, got {type(given).__name__}; pass a list") from None


def listed_ids(ids: Iterator[Hashable], given: Iterable[Hashable], count: int) -> list[Hashable]:
    """Return the ids of `count` documents, checked; at most one more is read, so an endless iterator is an error."""
    listed = list(islice(ids, count + 1))
    if len(listed) != count:
        found = len(given) if isinstance(given, Sized) else len(listed)
        got = str(found) if isinstance(given, Sized) or found < count else f"more than {count}"
        raise ValueError(f"ids must have one id for each document ({count}), got {got}")
    return [new_id("ids", doc_id, i) for i, doc_id in enumerate(listed)]


def pairs_of_ids(pairs: Iterable[tuple[FoundId, FoundId]]) -> Iterator[tuple[FoundId, FoundId]]:
    """Yield the pairs of ids that are given, each checked."""
    try:
        iterator = iter(pairs)
    except TypeError:
        raise TypeError(f"pairs must be an iterable of pairs of ids, got {type(pairs).__name__}") from None
    for i, pair in enumerate(iterator):
        try:
            a, b = pair
        except (TypeError, ValueError):
            raise TypeError(f"pairs[{i}] must be a pair of ids, got {pair!r:.80}") from None
        yield checked_id("each id in pairs", a), checked_id("each id in pairs", b)
