"""The seeds of a hasher: those that are given, checked, or drawn at random where their number is given."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsh.base import checks, errors

MAX_SEEDS = 2**20  # components of a fingerprint: more than is useful, and a fingerprint still fits into memory
MAX_FSS_SEEDS = 4096  # components of scheme fss
MAX_RANDOM_STATE = 1000  # the repr of a hasher shows a random_state that is less than this


def fss_seed(seeds: object, random_state: int | None) -> tuple[NDArray[np.uint32], int]:
    """Return the seed of scheme fss, and the number of components."""
    if not _is_number(seeds):
        raise errors.bad_value(
            "seeds",
            f"must be the number of components for scheme 'fss', got {type(seeds).__name__}; "
            "pass its seed as random_state",
        )
    count = checks.whole_number("seeds", seeds, 1, MAX_FSS_SEEDS)
    seed = np.random.RandomState().randint(0, 2**32, dtype=np.uint32) if random_state is None else random_state
    return np.array([seed], np.uint32), count


def murmur3_seeds(seeds: Any, random_state: int | None) -> NDArray[np.uint32]:
    """Return the seeds of scheme murmur3, one a component."""
    if isinstance(seeds, (*checks.TEXT_TYPES, Set, Mapping)):
        raise errors.bad_type("seeds", f"must be a number of seeds or a sequence of uint32, got {type(seeds).__name__}")
    if _is_number(seeds):
        count = checks.whole_number("seeds", seeds, 1, MAX_SEEDS)
        return _drawn(np.random.RandomState(random_state), count)
    values = [checks.whole_number(f"seeds[{i}]", value, 0, 2**32 - 1) for i, value in enumerate(seeds)]
    if not values:
        raise errors.bad_value(
            "seeds", "must be a number of seeds or a sequence of one or more uint32, got an empty sequence"
        )
    if len(values) > MAX_SEEDS:
        raise errors.bad_value("seeds", f"must be at most {MAX_SEEDS} numbers, got {len(values)}")
    return np.array(values, np.uint32)


def _is_number(seeds: object) -> bool:
    """Tell whether `seeds` is meant as a number of seeds, rather than a collection of them."""
    return not hasattr(seeds, "__iter__") or getattr(seeds, "ndim", 1) == 0


def _drawn(draw: np.random.RandomState, count: int) -> NDArray[np.uint32]:
    """Draw seeds in the way of mattilyra/LSH."""
    return draw.randint(0, 1_000_000, count, np.int64).astype(np.uint32)


@lru_cache(maxsize=64)
def least_random_state(seeds: bytes) -> int | None:
    """Return the smallest random state below `MAX_RANDOM_STATE` that draws these uint32 seeds, else ``None``."""
    values, draw = np.frombuffer(seeds, np.uint32), np.random.RandomState(0)
    for random_state in range(MAX_RANDOM_STATE):
        draw.seed(random_state)
        if _drawn(draw, 1)[0] == values[0]:
            draw.seed(random_state)
            if np.array_equal(_drawn(draw, len(values)), values):
                return random_state
    return None
