"""The banded cache, as mattilyra/LSH names it: ``from lsh.cache import Cache``. See `lsh.Cache`."""

from lsh.store.cache import Cache
from lsh.store.matches import Match, Matches

__all__ = ["Cache", "Match", "Matches"]
