"""The cache with the older interface of mattilyra/LSH: ``lsh.Cache(bands=20, hasher=hasher)`` and ``update``.

It is imported by ``from lsh import lsh``. `lsh.cache.Cache` does the work.
"""

from __future__ import annotations

from collections.abc import Hashable

from lsh.sketch.bands import Bands
from lsh.sketch.hasher import MinHasher
from lsh.sketch.planning import Plan
from lsh.sketch.rows import one_fingerprint
from lsh.store import cache
from lsh.typing import Fingerprint

__all__ = ["Cache"]


class Cache(cache.Cache):
    """A cache in which the id of a document may be ``(fingerprint, meta)``.

    Parameters
    ----------
    bands : int, Bands or Plan
        The number of bands of equal width, which must divide the number of seeds; or bands of any widths.
    hasher : MinHasher
        Computes the fingerprints.
    """

    def __init__(self, bands: int | Bands | Plan, hasher: MinHasher) -> None:
        if isinstance(bands, (Bands, Plan)):
            super().__init__(hasher, bands=bands)
        else:
            super().__init__(hasher, bands)

    def update(self, fingerprint: Fingerprint, meta: Hashable = None) -> None:
        """Add a fingerprint.

        Parameters
        ----------
        fingerprint : numpy.ndarray or sequence of int
            Shape ``(num_seeds,)``.
        meta : hashable, optional
            The document is stored under the id ``(tuple(fingerprint), meta)``.

        Raises
        ------
        TypeError, ValueError
            If the fingerprint has another shape or other values, or `meta` is not hashable.
        """
        row = one_fingerprint("fingerprint", fingerprint, self.hasher.num_seeds, self.hasher.dtype)
        self.add_fingerprint(row, (tuple(row.tolist()), meta))
