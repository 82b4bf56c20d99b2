"""Near-duplicate detection of documents, by MinHash fingerprints and locality sensitive hashing.

Start with `deduplicate` for a whole corpus, `MinHasher` for fingerprints, and `Cache` for documents that arrive one at
a time; `Index` keeps them in files, and `Screen` decides about new ones. The core is compiled, and the package requires
numpy only. `Index`, `Screen`, `Verdict` and the modules `index`, `lsh`, `plot`, `presets`, `report`, `spark` and
`text_plot` are loaded when they are first used.
"""

from lsh import _start

try:
    from lsh import _batch  # noqa: F401 - are the compiled modules there?
except ImportError as _error:
    if _error.name != "lsh":  # numpy is missing, or its own import was interrupted
        raise
    raise ImportError(
        "the compiled modules of lsh are missing: this is a source tree that is not built; "
        "start Python in another folder to use the installed package, or run 'python setup.py build_ext --inplace' here"
    ) from _error

try:
    from lsh import _minhash  # noqa: F401 - selects the kernels; an error if LSH_SIMD is wrong
except ImportError as _error:
    if _start.is_command():  # which cannot catch what its own package raises
        import sys

        print(f"lsh: error: {_error}", file=sys.stderr)
        raise SystemExit(2) from None
    raise

from typing import TYPE_CHECKING

from lsh import cache, minhash
from lsh import typing as typing
from lsh.bands import BandError, Bands
from lsh.cache import Cache, Match, Matches
from lsh.dedup import Deduplication, Duplicate, deduplicate, find_pairs
from lsh.minhash import MinHasher, simd_level
from lsh.planning import Cost, Plan, plan
from lsh.shingling import Shingles, jaccard, jaccard_matrix

#: The version of the package.
__version__ = "1.0.0rc1"

__all__ = [
    "BandError",
    "Bands",
    "Cache",
    "Cost",
    "Deduplication",
    "Duplicate",
    "Index",
    "Match",
    "Matches",
    "MinHasher",
    "Plan",
    "Screen",
    "Shingles",
    "Verdict",
    "__version__",
    "cache",
    "deduplicate",
    "find_pairs",
    "jaccard",
    "jaccard_matrix",
    "minhash",
    "plan",
    "simd_level",
]

_LOADED_WHEN_USED = ("index", "lsh", "plot", "presets", "report", "spark", "text_plot")
_CLASSES_WHEN_USED = {"Index": "lsh.index", "Screen": "lsh.index.screen", "Verdict": "lsh.index.screen"}

if TYPE_CHECKING:
    from lsh import index as index
    from lsh import lsh as lsh
    from lsh import plot as plot
    from lsh import presets as presets
    from lsh import report as report
    from lsh import spark as spark
    from lsh import text_plot as text_plot
    from lsh.index import Index as Index
    from lsh.index.screen import Screen as Screen
    from lsh.index.screen import Verdict as Verdict
else:

    def __getattr__(name):
        """Load a module of the package, or a class of one, when it is first used."""
        if name in (*_LOADED_WHEN_USED, *_CLASSES_WHEN_USED):
            from importlib import import_module

            if name in _LOADED_WHEN_USED:
                return import_module(f"lsh.{name}")
            return getattr(import_module(_CLASSES_WHEN_USED[name]), name)
        raise AttributeError(f"module 'lsh' has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *_LOADED_WHEN_USED, *_CLASSES_WHEN_USED} - {"TYPE_CHECKING"})


_start.restore()
