"""Checks of arguments. Each error says what was expected, what was given, and what to do.

The compiled modules rely on these checks. The meaning of a parameter is not known here.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Mapping
from numbers import Number
from typing import Any, TypeVar

import numpy as np

from lsh.base import errors

TEXT_TYPES = (str, bytes, bytearray, memoryview)
BOOLS = (bool, np.bool_)  # what takes numbers takes these, too

Option = TypeVar("Option")
Kind = TypeVar("Kind")


def instance(name: str, value: object, kind: type[Kind], what: str, remedy: str = "") -> Kind:
    """Return `value` if it is an instance of `kind`; `what` names the class in the message, and `remedy` ends it."""
    if not isinstance(value, kind):
        raise errors.bad_type(name, f"must be {what}, got {type(value).__name__}{remedy}")
    return value


def text_or_id(text: object, id: object) -> None:
    """Check that exactly one of two arguments is given."""
    if (text is None) == (id is None):
        raise ValueError("text or id must be given, got " + ("neither" if text is None else "both"))


def whole_number(name: str, value: Any, minimum: int | None, maximum: int | None = None) -> int:
    """Return `value` as an int from `minimum` to `maximum`; ``None`` for no limit."""
    try:
        if isinstance(value, BOOLS):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise errors.bad_type(name, f"must be a whole number, got {type(value).__name__}") from None
    if minimum is not None and number < minimum:
        raise errors.bad_value(name, f"must be {minimum} or more, got {number}")
    if maximum is not None and number > maximum:
        raise errors.bad_value(name, f"must be at most {maximum}, got {number}")
    return number


def fraction(name: str, value: Any, *, zero: bool, one: bool = True) -> float:
    """Return `value` as a float from 0 to 1; `zero` and `one` say whether 0 and 1 themselves are allowed."""
    span = "0 to 1" if zero else f"more than 0 and {'at most' if one else 'less than'} 1"
    number = _real(name, value, span)
    if not (0.0 <= number <= 1.0) or (number == 0.0 and not zero) or (number == 1.0 and not one):
        raise errors.bad_value(name, f"must be {span}, got {value}")
    return number


def number(name: str, value: Any, minimum: float) -> float:
    """Return `value` as a float that is `minimum` or more; it may be infinite."""
    span = f"{minimum:g} or more"
    real = _real(name, value, span)
    if not real >= minimum:
        raise errors.bad_value(name, f"must be {span}, got {value}")
    return real


def _real(name: str, value: Any, span: str) -> float:
    """Return `value`, a number, as a float."""
    kind = type(value)
    is_number = hasattr(kind, "__float__") or hasattr(kind, "__index__")  # not text, of which float() makes a number
    if is_number and hasattr(value, "dtype"):
        is_number = getattr(value, "ndim", 0) == 0 and value.dtype.kind in "iuf"
    try:
        if not is_number or isinstance(value, BOOLS):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise errors.bad_type(name, f"must be a number ({span}), got {kind.__name__}") from None
    except OverflowError:
        raise errors.bad_value(name, f"must be {span}, got a number that is too large") from None


def fractions(name: str, value: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return `value`, a number from 0 to 1 or several, as an array."""
    unmasked(name, value)
    wanted = errors.bad_type(name, f"must be a number (0 to 1) or several, got {type(value).__name__}")
    if isinstance(value, TEXT_TYPES):
        raise wanted
    try:
        given = np.asarray(value)
    except ValueError:  # lists of different lengths
        raise wanted from None
    if given.dtype.kind == "O":
        given = np.array([fraction(name, one, zero=True) for one in given.flat]).reshape(given.shape)
    if given.dtype.kind not in "iuf":
        raise wanted
    numbers = given.astype(np.float64)
    if not ((numbers >= 0) & (numbers <= 1)).all():
        raise errors.bad_value(name, f"must be 0 to 1, got {value}")
    return numbers


def optional_fraction(name: str, value: object) -> float | None:
    """Return `value` as a float from 0 to 1, or ``None`` if it is ``None``."""
    return None if value is None else fraction(name, value, zero=True)


def choice(name: str, value: object, options: tuple[Option, ...]) -> Option:
    """Return the one of `options` that `value` is equal to."""
    for option in options:
        if value is option or (isinstance(value, str) and value == option):
            return option
    raise errors.bad_value(name, f"must be one of {', '.join(map(repr, options))}, got {value!r}")


def keys(name: str, value: object, expected: set[str]) -> dict[str, Any]:
    """Return `value` if it is a dict with exactly these keys."""
    values = instance(name, value, dict, "a dict that to_dict returned")
    for problem, found in (("missing", expected - set(values)), ("unknown", set(values) - expected)):
        if found:
            raise errors.bad_value(
                name, f"must have the keys that to_dict returns; {problem}: {', '.join(sorted(map(str, found)))}"
            )
    return values


def is_missing(value: object) -> bool:
    """Tell whether a value stands for a missing one: None, NaN, or NA and NaT of pandas."""
    if isinstance(value, float):
        return value != value
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def unmasked(name: str, value: object) -> None:
    """Raise an error for a masked array of numpy, because the mask would be ignored."""
    if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray):  # to load it takes 20 ms
        raise errors.bad_type(
            name, "must be an array without a mask, got a masked array; fill or drop the masked values"
        )


def text(name: str, value: object) -> str | bytes | bytearray | memoryview:
    """Return `value` if it is a text: str, bytes, bytearray or memoryview."""
    if not isinstance(value, TEXT_TYPES):
        raise errors.bad_type(name, f"must be str, bytes, bytearray or memoryview, got {type(value).__name__}")
    return value


def not_called(name: str, value: object) -> None:
    """Raise an error for a function in place of the texts that it returns."""
    if callable(value) and not hasattr(type(value), "__iter__"):
        got = type(value).__name__
        raise errors.bad_type(name, f"must be a collection of texts, got a {got}; call it, and pass what it returns")


def collection(name: str, value: Any) -> None:
    """Check that `value` is an iterable of texts in a definite order."""
    if isinstance(value, TEXT_TYPES):
        raise errors.bad_type(
            name, f"must be a collection of texts, got one {type(value).__name__}; put it in a list, or open the file"
        )
    if not isinstance(value, bool) and isinstance(value, Number):
        raise errors.bad_type(name, f"must be a collection of texts, got the number {value}; pass a list or a column")
    not_called(name, value)
    if isinstance(value, os.PathLike):
        got = type(value).__name__
        raise errors.bad_type(
            name, f"must be a collection of texts, got a path ({got}); open the file, and pass its texts"
        )
    if isinstance(value, dict) and hasattr(type(value), "column_names"):  # a DatasetDict
        got = type(value).__name__
        raise errors.bad_type(name, f"must be one column of texts, got a whole {got}; pass table['train']['text']")
    if hasattr(type(value), "query_docs"):  # a Cache or an Index: its elements are ids
        raise errors.bad_type(
            name, f"must be a collection of texts, got the ids of a stored {type(value).__name__}; pass the texts"
        )
    if isinstance(value, (Mapping, set, frozenset)):
        raise errors.bad_type(
            name, f"must be in a definite order, got {type(value).__name__}; pass a list of its texts"
        )
    if hasattr(type(value), "columns") or hasattr(type(value), "column_names"):
        how = "collect it and pass table['text']" if hasattr(value, "collect") else "pass table['text']"
        raise errors.bad_type(name, f"must be one column of texts, got a whole {type(value).__name__}; {how}")
    dimensions = getattr(value, "ndim", 1)
    if not hasattr(value, "__iter__") or dimensions == 0:
        raise errors.bad_type(
            name, f"must be a collection of texts, got {type(value).__name__}; pass a list or a column"
        )
    if dimensions != 1:
        raise errors.bad_value(name, f"must have one dimension, got {dimensions}; pick a column or flatten it")
