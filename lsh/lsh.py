"""The first form of the cache: ``from lsh import lsh``, ``lsh.Cache(bands=20, hasher=hasher)``, ``update``.

Names only: everything is done by `lsh.cache.Cache`.
"""

from __future__ import annotations

from collections.abc import Hashable

from lsh import cache
from lsh._fingerprints import Fingerprint
from lsh.bands import Bands
from lsh.minhash import MinHasher, checked_fingerprint
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

    def update(self, fingerprint: Fingerprint, meta: Hashable = None) -> None:
        """Add a fingerprint, an array or a sequence in order; its id is ``(tuple(fingerprint), meta)``."""
        row = checked_fingerprint(self.hasher, "fingerprint", fingerprint)
        self.add_fingerprint(row, (tuple(row.tolist()), meta))
