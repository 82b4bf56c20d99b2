"""The tables of a `Deduplication`, with positions or with the ids and texts of the caller.

`Tables` returns columns, as arrays or lists; `to_pandas` and `to_arrow` make a frame or a table of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from lsh.base import checks

Array = np.ndarray[Any, Any]


class Named(NamedTuple):
    """Values of the new and of the old documents, such as ids; ``None`` where they are unknown."""

    new: Any
    old: Any

    def at(self, positions: Array, is_old: Array) -> Array | list[Any]:
        """Return the values of documents; ``None`` for old ones that are unknown."""
        if not is_old.any():
            return _values_at(self.new, positions)
        new = iter(_values_at(self.new, positions[~is_old]))
        places = positions[is_old]
        old = iter([None] * len(places) if self.old is None else _values_at(self.old, places))
        return [next(old) if one else next(new) for one in is_old.tolist()]


def checked(name: str, values: Any, number: int) -> Any:
    """Return a sequence with one value for each document, checked."""
    kinds = (*checks.TEXT_TYPES, Mapping, set, frozenset)
    if isinstance(values, kinds) or not (hasattr(values, "__len__") and hasattr(values, "__getitem__")):
        raise TypeError(
            f"{name} must be a list, an array or a column with one value for each document, got {type(values).__name__}"
        )
    if len(values) != number:
        raise ValueError(f"{name} must have one value for each document ({number}), got {len(values)}")
    return values


def _values_at(values: Any, positions: Array) -> Array | list[Any]:
    """Return the values at positions, in the type of an array, else as a list."""
    if hasattr(values, "iloc"):  # pandas, whose columns have labels
        values = values.to_numpy()
    if isinstance(values, np.ndarray):
        found: Array = values[positions]
        return found
    if hasattr(values, "to_pylist"):  # Arrow
        return list(values.take(positions).to_pylist())
    return [values[position] for position in positions.tolist()]


def columns(table: str, result: Any, ids: Named | None, texts: Named | None) -> dict[str, Array | list[Any]]:
    """Return the columns of a table of a `Deduplication`."""
    if table == "documents":
        return _documents(result, ids, texts)
    found: dict[str, Array | list[Any]] = {}
    names = {"removed": ("document", "kept"), "near": ("i", "j"), "clusters": ("document", "kept")}[table]
    source = _clusters(result) if table == "clusters" else _fields(getattr(result, table))
    none = np.zeros(len(source[names[0]]), np.bool_)
    is_old = {names[0]: none, names[1]: source["side"] == "old" if "side" in source else none}
    for name, column in source.items():
        found[name] = column if ids is None or name not in is_old else ids.at(column, is_old[name])
    if texts is not None:
        titles = {"removed": ("text", "kept_text"), "near": ("text_i", "text_j"), "clusters": ("text",)}[table]
        for title, name in zip(titles, names):
            found[title] = texts.at(source[name], is_old[name])
    return found


def _fields(array: Array) -> dict[str, Array]:
    return {name: np.ascontiguousarray(array[name]) for name in array.dtype.names or ()}


def _clusters(result: Any) -> dict[str, Array]:
    clusters = result.clusters()
    sizes = np.array([len(members) for members in clusters], np.int64)
    return {
        "cluster": np.repeat(np.arange(len(clusters)), sizes),
        "document": np.concatenate([np.empty(0, np.int64), *clusters]),
        "kept": np.repeat(np.array([members[0] for members in clusters], np.int64), sizes),
    }


def _documents(result: Any, ids: Named | None, texts: Named | None) -> dict[str, Array | list[Any]]:
    """Return a row for every document: what is kept in its place, ``None`` and NaN for a kept one."""
    removed, number = _fields(result.removed), len(result)
    places, every, none = removed["document"], np.arange(number, dtype=np.int64), np.zeros(number, np.bool_)
    is_old = removed["side"] == "old" if "side" in removed else np.zeros(len(places), np.bool_)
    kept, similarity = np.full(number, None, object), np.full(number, np.nan)
    kept[places] = _objects(removed["kept"] if ids is None else ids.at(removed["kept"], is_old))
    similarity[places] = removed["similarity"]
    found: dict[str, Array | list[Any]] = {"id": every if ids is None else ids.at(every, none)}
    found |= {"kept_id": kept, "similarity": similarity}
    if "side" in removed:
        side = np.full(number, None, object)
        side[places] = removed["side"].astype(object)
        found["side"] = side
    return found if texts is None else {**found, "text": texts.at(every, none)}


def _objects(values: Array | list[Any]) -> Array:
    """Return values as an array of objects of one dimension, whatever they are."""
    made = np.empty(len(values), object)
    for i, value in enumerate(values):
        made[i] = value.item() if isinstance(value, np.integer) else value
    return made
