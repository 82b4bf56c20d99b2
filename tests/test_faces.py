"""The import forms that users write: each gives the same object, wherever the module behind it lies."""

from __future__ import annotations

import importlib

import pytest

import lsh

FORMS = [
    ("lsh.minhash", "MinHasher", "lsh.sketch.hasher"),
    ("lsh.cache", "Cache", "lsh.store.cache"),
    ("lsh.cache", "Matches", "lsh.store.matches"),
    ("lsh.index", "Index", "lsh.store.index"),
    ("lsh.index", "IndexDamagedError", "lsh.segments.file_format"),
    ("lsh.index", "IndexLockedError", "lsh.segments.disk"),
    ("lsh.presets", "preset", "lsh.sketch.presets"),
    ("lsh.plot", "s_curve", "lsh.report.plot"),
]


@pytest.mark.parametrize(("face", "name", "behind"), FORMS)
def test_a_face_has_the_objects_of_the_module_behind_it(face, name, behind):
    found = getattr(importlib.import_module(face), name)
    assert found is getattr(importlib.import_module(behind), name)
    assert found is getattr(lsh, name, found)


def test_the_import_forms_of_upstream():
    from lsh import cache, minhash
    from lsh import lsh as first

    assert (cache.Cache, minhash.MinHasher) == (lsh.Cache, lsh.MinHasher)
    assert issubclass(first.Cache, lsh.Cache)
    assert first.Cache is not lsh.Cache
