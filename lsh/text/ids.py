"""Checks of the ids under which a cache or an index stores documents."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sized
from itertools import islice
from typing import Any

import numpy as np

from lsh.base import checks, errors
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
    """Return an id under which a document is to be stored: hashable, not ``None`` and not NaN."""
    if doc_id is None:
        raise TypeError(f"{_place(name, position)} must not be None: in a query, None means that no id is given")
    checked_id(name, doc_id, position)
    if checks.is_missing(doc_id) or _is_unequal(doc_id):
        got = f"a missing value ({doc_id!r:.40})"
        raise ValueError(f"{_place(name, position)} must be an id, got {got}; drop the document, or give it an id")
    return doc_id


def _is_unequal(doc_id: Hashable) -> bool:
    """Tell whether an id is not equal to itself, such as NaN and NaT of any type: it would not be found again."""
    try:
        return bool(doc_id != doc_id)
    except (TypeError, ValueError):
        return False


def _place(name: str, position: int | None) -> str:
    """Return how a message names an argument, or one element of it."""
    return name if position is None else f"{name}[{position}]"


def in_order(name: str, given: Any) -> Iterator[Any]:
    """Return an iterator over `ids` or `times`, which are in the order of the documents."""
    return _elements(name, given, "have one element for each document, in order", "pass a list", (set, frozenset))


def several(ids: Iterable[Hashable]) -> list[Any]:
    """Return the ids of stored documents, as a list."""
    return list(_elements("ids", ids, "be a collection of ids", "use remove for one document"))


def _elements(name: str, given: Any, wanted: str, remedy: str, refused: tuple[type, ...] = ()) -> Iterator[Any]:
    """Return an iterator over a column: over Python's values of an Arrow column, or of an array of text or integers."""
    kind = type(given)
    if hasattr(kind, "columns") or hasattr(kind, "column_names"):
        raise errors.bad_type(name, f"must be one column, got a whole {kind.__name__}; pass table['{name}']")
    if isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype.kind in "USiu":
        given = given.tolist()
    try:
        if isinstance(given, (*checks.TEXT_TYPES, *refused)):
            raise TypeError
        return iter(given.to_pylist() if hasattr(given, "to_pylist") else given)
    except TypeError:
        raise errors.bad_type(name, f"must {wanted}, got {kind.__name__}; {remedy}") from None


def listed_ids(ids: Iterator[Hashable], given: Iterable[Hashable], count: int) -> list[Hashable]:
    """Return the ids of `count` documents, checked; at most one more is read, so an endless iterator is an error."""
    listed = list(islice(ids, count + 1))
    if len(listed) != count:
        found = len(given) if isinstance(given, Sized) else len(listed)
        got = str(found) if isinstance(given, Sized) or found < count else f"more than {count}"
        raise errors.bad_value("ids", f"must have one id for each document ({count}), got {got}")
    return [new_id("ids", doc_id, i) for i, doc_id in enumerate(listed)]


def pairs_of_ids(pairs: Iterable[tuple[FoundId, FoundId]]) -> Iterator[tuple[FoundId, FoundId]]:
    """Yield the pairs of ids that are given, each checked."""
    try:
        iterator = iter(pairs)
    except TypeError:
        raise errors.bad_type("pairs", f"must be an iterable of pairs of ids, got {type(pairs).__name__}") from None
    for i, pair in enumerate(iterator):
        try:
            a, b = pair
        except (TypeError, ValueError):
            raise TypeError(f"pairs[{i}] must be a pair of ids, got {pair!r:.80}") from None
        yield checked_id("each id in pairs", a), checked_id("each id in pairs", b)
