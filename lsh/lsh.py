"""The first form of the cache: ``from lsh import lsh``, ``lsh.Cache(bands=20, hasher=hasher)``, ``update``.

Names only: everything is done by `lsh.cache.Cache`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from lsh import cache
from lsh.bands import Bands
from lsh.minhash import MinHasher
from lsh.planning import Plan

__all__ = ["Cache"]


class Cache(cache.Cache):
    """A cache whose bins hold ``(fingerprint, meta)``.

    Parameters
    ----------
    bands : int, Bands or Plan
        Bands of equal width, whose number must divide the number of seeds; or any that fit.
    hasher : MinHasher
        Makes the fingerprints.
    """

    def __init__(self, bands: int | Bands | Plan, hasher: MinHasher) -> None:
        if isinstance(bands, (Bands, Plan)):
            super().__init__(hasher, bands=bands)
        else:
            super().__init__(hasher, bands)

    def update(self, fingerprint: Any, meta: Hashable = None) -> None:
        """Add a fingerprint; its id is ``(tuple(fingerprint), meta)``."""
        row = self.hasher.as_fingerprint("fingerprint", fingerprint)
        self.add_fingerprint(row, (tuple(row.tolist()), meta))
