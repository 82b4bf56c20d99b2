"""The compiled modules: one file has them all, and Python is told so when this module is imported.

An extension file may have any number of modules, each with its own entry point and its own name (PEP 489), but Python
looks only for the one that is called like the file: `lsh._lsh_cython`, which is imported first. In one file they take
three quarters of the space of thirteen files, whose symbols and helper functions are mostly the same.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from types import ModuleType

FILE = "lsh._lsh_cython"
MODULES = {
    "lsh._minhash",
    "lsh.engine.deciding",
    "lsh.files._fields",
    "lsh.links.comparing",
    "lsh.links.families",
    "lsh.links.grouping",
    "lsh.passages.cutting",
    "lsh.passages.item_search",
    "lsh.passages.items",
    "lsh.passages.repeats",
    "lsh.passages.walks",
    "lsh.segments.searching",
    "lsh.text.batch",
    "lsh.text.columns",
    "lsh.text.sets",
}


class Finder:
    """Finds the compiled modules for Python's import."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Say where a module is and how it is loaded; None if it is not one of these."""
        spec = find_spec(FILE) if name in MODULES else None
        if spec is None or spec.origin is None:
            return None
        return spec_from_file_location(name, spec.origin, loader=ExtensionFileLoader(name, spec.origin))


# Before the other finders: these would find the files that an older build left beside the sources.
sys.meta_path.insert(0, Finder)
