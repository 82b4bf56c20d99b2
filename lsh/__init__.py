"""Near-duplicate detection of documents, by MinHash fingerprints and locality sensitive hashing.

Start with `deduplicate` for a whole corpus, `MinHasher` for fingerprints, and `Cache` for documents that arrive one at
a time; `Index` keeps them in files, and `Screen` decides about new ones. The core is compiled, and the package requires
numpy only. `Index`, `Screen`, `Verdict` and the modules `index`, `lsh`, `plot`, `presets`, `report` and `spark` are
loaded when they are first used, as `find_contained`, `find_passages` and their results are.
"""

from lsh.base import signals as _signals

try:
    from lsh import _lsh_cython  # type: ignore[attr-defined]  # noqa: F401 - are the compiled modules there?
except ImportError as _error:
    if _error.name != "lsh":  # they are, but cannot be loaded
        raise
    raise ImportError(
        "the compiled modules of lsh are missing: this is a source tree that is not built; "
        "start Python in another folder to use the installed package, or run 'python setup.py build_ext --inplace' here"
    ) from _error

from lsh.base import compiled as _compiled  # noqa: F401 - from here on, Python finds them
from lsh.text import batch as _batch  # noqa: F401 - an error of its own if numpy is missing

try:
    from lsh import _minhash  # noqa: F401 - selects the kernels; an error if LSH_SIMD is wrong
except ImportError as _error:
    if _signals.is_command():  # which cannot catch what its own package raises
        import sys

        print(f"lsh: error: {_error}", file=sys.stderr)
        raise SystemExit(2) from None
    raise

from typing import TYPE_CHECKING

from lsh import cache, minhash
from lsh import typing as typing
from lsh.base.version import __version__
from lsh.engine.dedup import deduplicate, find_pairs
from lsh.engine.result import Deduplication, Duplicate
from lsh.sketch.bands import BandError, Bands
from lsh.sketch.hasher import MinHasher, simd_level
from lsh.sketch.planning import Cost, Plan, plan
from lsh.store.cache import Cache
from lsh.store.matches import Match, Matches
from lsh.text.shingling import Shingles, jaccard, jaccard_matrix

__all__ = [
    "BandError",
    "Bands",
    "Cache",
    "Contained",
    "Cost",
    "Deduplication",
    "Duplicate",
    "Index",
    "Match",
    "Matches",
    "MinHasher",
    "Passages",
    "Plan",
    "Screen",
    "Shingles",
    "Verdict",
    "__version__",
    "cache",
    "deduplicate",
    "deduplicate_contained",
    "find_contained",
    "find_pairs",
    "find_passages",
    "jaccard",
    "jaccard_matrix",
    "minhash",
    "plan",
    "simd_level",
]

_LOADED_WHEN_USED = ("index", "lsh", "plot", "presets", "report", "spark")
_NAMES_WHEN_USED = {
    "Contained": "lsh.passages.contained_result",
    "Index": "lsh.store.index",
    "Passages": "lsh.passages.result",
    "Screen": "lsh.store.screen",
    "Verdict": "lsh.store.screen",
    "deduplicate_contained": "lsh.passages.removing",
    "find_contained": "lsh.passages.contained",
    "find_passages": "lsh.passages.finding",
}

if TYPE_CHECKING:
    from lsh import index as index
    from lsh import lsh as lsh
    from lsh import plot as plot
    from lsh import presets as presets
    from lsh import report as report
    from lsh import spark as spark
    from lsh.passages.contained import find_contained as find_contained
    from lsh.passages.contained_result import Contained as Contained
    from lsh.passages.finding import find_passages as find_passages
    from lsh.passages.removing import deduplicate_contained as deduplicate_contained
    from lsh.passages.result import Passages as Passages
    from lsh.store.index import Index as Index
    from lsh.store.screen import Screen as Screen
    from lsh.store.screen import Verdict as Verdict
else:

    def __getattr__(name):
        """Load a module of the package, or a name of one, when it is first used."""
        if name in (*_LOADED_WHEN_USED, *_NAMES_WHEN_USED):
            from importlib import import_module

            if name in _LOADED_WHEN_USED:
                return import_module(f"lsh.{name}")
            return getattr(import_module(_NAMES_WHEN_USED[name]), name)
        raise AttributeError(f"module 'lsh' has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *_LOADED_WHEN_USED, *_NAMES_WHEN_USED} - {"TYPE_CHECKING"})


_signals.restore()
