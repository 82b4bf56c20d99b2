"""Checks of fingerprints that are passed as arrays or sequences, and the interval of an estimate.

The caller says how many components a fingerprint has, and of which dtype. `lsh.minhash` computes fingerprints.
"""

from __future__ import annotations

from collections.abc import Mapping, Set, Sized
from math import sqrt
from operator import index
from typing import Any

import numpy as np

from lsh.base import checks, errors
from lsh.typing import Array, Fingerprint, Fingerprints

CONFIDENCE = 0.95  # of an interval, by default

Dtype = np.dtype[np.uint32 | np.uint64]


def one_fingerprint(
    name: str, value: Fingerprint, components: int, dtype: Dtype, what: str = "an array or a sequence"
) -> Array:
    """Return a fingerprint, shape ``(components,)``, checked; `name` is its parameter, and `what` what it must be."""
    array = one_or_many(name, value, components, dtype, what)
    if array.ndim != 1:
        raise errors.bad_value(name, f"must be one text or fingerprint, got an array of shape {array.shape}")
    return array


def many_fingerprints(name: str, value: Fingerprints, components: int, dtype: Dtype) -> Array:
    """Return fingerprints, shape ``(n, components)``, checked; an empty sequence gives n = 0."""
    _check_order(name, value)
    if isinstance(value, Sized) and len(value) == 0 and getattr(value, "ndim", 1) == 1:
        return np.empty((0, components), dtype)
    array = one_or_many(name, value, components, dtype, "an array or a sequence of fingerprints")
    if array.ndim != 2:
        raise errors.bad_value(name, f"must be a matrix of fingerprints, got an array of shape {array.shape}")
    return array


def one_or_many(
    name: str, value: Fingerprint | Fingerprints, components: int, dtype: Dtype, what: str = "fingerprints"
) -> Array:
    """Return one fingerprint or many as a C-contiguous array of this dtype, checked; `what` is what they must be."""
    kind = type(value)
    if isinstance(value, checks.TEXT_TYPES):
        raise errors.bad_type(name, f"must be {what}, got {kind.__name__}; compute them with fingerprints")
    if not hasattr(kind, "__iter__") and not hasattr(value, "__array__"):
        raise errors.bad_type(name, f"must be {what}, got {kind.__name__}")
    array = _array(name, value)
    if array.dtype.kind not in "iu" and (array.dtype != object or array.ndim == 0):
        elements: Any = value if hasattr(kind, "__iter__") else ()
        if texts := {type(one).__name__ for one in elements if isinstance(one, checks.TEXT_TYPES)}:
            raise errors.bad_type(
                name, f"must be {what}, got texts ({kind.__name__} of {min(texts)}); compute them with fingerprints"
            )
        got = f"{array.dtype} ({kind.__name__})"
        raise errors.bad_type(name, f"must hold {dtype} components, got {got}; compute them with fingerprints")
    if array.ndim not in (1, 2) or array.shape[-1] != components:
        raise errors.bad_value(name, f"must have {components} components per fingerprint, got shape {array.shape}")
    if array.dtype != dtype:
        if isinstance(value, np.ndarray):
            raise errors.bad_type(name, f"must hold {dtype} components, as this hasher makes, got {array.dtype}")
        if array.size and (array.min() < 0 or array.max() > np.iinfo(dtype).max):
            raise errors.bad_value(name, f"must hold {dtype} components, got values out of their range")
    return np.ascontiguousarray(array, dtype)


def _array(name: str, value: Any) -> np.ndarray[Any, Any]:
    """Return a sequence as an array; of dimension 0 if it is not a sequence of whole numbers or of rows of them."""
    _check_order(name, value)
    if hasattr(value, "__array__"):
        array: np.ndarray[Any, Any] = np.asarray(value)
        if array.dtype != object or array.ndim != 1:
            return array
    rows = list(value) if hasattr(type(value), "__iter__") else None
    for i, row in enumerate(rows or ()):
        _check_order(f"{name}[{i}]", row)
    try:
        if rows and all(isinstance(row, np.ndarray) for row in rows):  # such as a column of fingerprints
            return np.stack(rows)
        whole: np.ndarray[Any, Any] = np.vectorize(_component, otypes=[object])(np.array(rows, dtype=object))
    except (TypeError, ValueError):  # no whole numbers, or rows of different lengths
        return np.asarray(None)
    return whole


def _component(value: Any) -> int:
    """Return a whole number; a bool is an error."""
    if isinstance(value, checks.BOOLS):
        raise TypeError
    return index(value)


def _check_order(name: str, value: object) -> None:
    """Raise an error for a set, a dict or an iterator: they are not sequences in a definite order."""
    kind = type(value)
    in_order = hasattr(kind, "__getitem__") and hasattr(kind, "__len__") and not isinstance(value, (Set, Mapping))
    if hasattr(kind, "__iter__") and not in_order:
        why = "a set does not keep the order of the components; " if isinstance(value, Set) else ""
        raise errors.bad_type(
            name,
            f"must be an array or a sequence in order, got {kind.__name__}; "
            f"{why}pass the array that fingerprint returns",
        )


def wilson_interval(p: float, k: int, confidence: float) -> tuple[float, float]:
    """Return Wilson's interval (1927) for a proportion `p` of `k` independent trials."""
    from statistics import NormalDist

    z = NormalDist().inv_cdf((1 + confidence) / 2)
    centre, half = p + z * z / (2 * k), z * sqrt(p * (1 - p) / k + z * z / (4 * k * k))
    low, high = (centre - half) / (1 + z * z / k), (centre + half) / (1 + z * z / k)
    return 0.0 if p == 0.0 else low, 1.0 if p == 1.0 else high
