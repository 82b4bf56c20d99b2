"""Values: what `Shingles`, `MinHasher`, `Bands`, `Plan` and `Preset` have in common.

Each has ``==``, a hash, a ``repr`` that evaluates back, ``to_dict`` and ``from_dict``, and can be pickled and copied;
equal values behave alike, however they were made.
"""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

from lsh import Bands, MinHasher, Plan, Shingles, plan, presets
from lsh.sketch.presets import Preset

NAMES = {"Bands": Bands, "MinHasher": MinHasher, "Plan": Plan, "Preset": Preset, "Shingles": Shingles}
TEXTS = ["The cat sat on the mat.", "the CAT sat  on\tthe mat!", "a \xe9t\xe9 in Uccle", "", "a"]
RENEWALS: dict[str, Callable[[Any], Any]] = {
    "repr": lambda value: eval(repr(value), dict(NAMES)),
    "dict": lambda value: type(value).from_dict(value.to_dict()),
    "json": lambda value: type(value).from_dict(json.loads(json.dumps(value.to_dict()))),
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}

some_shingles = st.builds(Shingles, st.integers(1, 40), strategies.units) | st.builds(
    lambda n, unit, options: Shingles(n, unit, **options),
    st.integers(1, 9),
    strategies.units,
    strategies.normalisations,
)
some_bands = st.builds(Bands, st.integers(1, 30), st.integers(1, 12)) | st.builds(
    lambda widths: Bands(widths=widths), st.lists(st.integers(1, 12), min_size=1, max_size=12)
)
some_hashers = st.one_of(
    st.builds(
        lambda seeds, shingles, state, size: MinHasher(seeds, shingles=shingles, random_state=state, hashbytes=size),
        st.integers(1, 40) | st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=5),
        some_shingles,
        st.integers(0, 2**32 - 1) | st.none(),
        st.sampled_from([4, 8]),
    ),
    st.builds(
        lambda seeds, shingles, state: MinHasher(seeds, shingles=shingles, random_state=state, scheme="fss"),
        st.integers(1, 40),
        some_shingles,
        st.integers(0, 2**32 - 1) | st.none(),
    ),
)


@st.composite
def some_plans(draw) -> Plan:
    """Plans without a background, with similarities, or with texts; with a filter, or with bands of a cache."""
    threshold, recall = draw(st.floats(0.3, 1)), draw(st.floats(0.01, 0.95))
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return Plan(Bands(50, 1), threshold, recall, draw(st.integers(50, 60)))
    options: dict[str, Any] = {}
    if kind == 2:
        options = {"background": draw(st.lists(st.floats(0, 1), min_size=1, max_size=5))}
    elif kind == 3:
        options = {"background": TEXTS[:3], "shingles": draw(st.none() | some_shingles)}
    if kind > 1 and draw(st.booleans()):
        options["documents"] = draw(st.integers(1, 10**12))
    return plan(threshold, recall, draw(st.integers(20, 200)), **options)


some_presets = st.sampled_from([presets.preset(name) for name in presets.NAMES])
values = st.one_of(some_shingles, some_bands, some_hashers, some_plans(), some_presets)


def plain(result: Any) -> Any:
    """A form of the value that can be compared by ``==``."""
    return result.tolist() if isinstance(result, (numpy.ndarray, numpy.generic)) else result


def called(value: Any) -> dict[str, Any]:
    """The printed forms of a value, and every public property, attribute and method."""
    rows = numpy.arange(4 * 400, dtype=numpy.uint64).reshape(4, 400) % 3
    arguments: dict[str, tuple[Any, ...]] = {
        "probability": ([0.0, 0.3, 0.8, 1.0],),
        "recall_at": ([0.0, 0.3, 0.8, 1.0],),
        "similarity_at": (0.5,),
        "keys": (rows,),
        "of": (TEXTS[1],),
        "normalised": (TEXTS[1],),
        "fingerprint": (TEXTS[0],),
        "fingerprints": (TEXTS,),
        "jaccard": (TEXTS[0], TEXTS[1]),
        "interval": (TEXTS[0], TEXTS[1]),
    }
    found = {"hash": hash(value), "type": type(value), "repr": repr(value), "str": str(value)}
    if isinstance(value, MinHasher):
        texts = value.fingerprints(TEXTS)
        arguments |= {"similarities": (texts,), "merge": (texts[0], texts[1]), "is_empty": (texts,)}
    for name in dir(value):
        if name.startswith("_"):
            continue
        attribute = getattr(value, name)
        if not callable(attribute):
            found[name] = plain(attribute)
        elif name in arguments:
            found[name] = plain(attribute(*arguments[name]))
        elif not inspect.signature(attribute).parameters:
            found[name] = plain(attribute())
    return found


@given(value=values)
@pytest.mark.parametrize("how", RENEWALS)
def test_a_value_survives_every_form(value, how):
    other = RENEWALS[how](value)
    assert type(other) is type(value)
    assert other == value
    assert (other != value) is False
    assert hash(other) == hash(value)
    assert other.to_dict() == value.to_dict()


@given(value=values, how=st.sampled_from(sorted(RENEWALS)))
def test_equal_values_behave_alike(value, how):
    other = RENEWALS[how](value)
    assert called(other) == called(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Bands(3, 4), Bands(widths=[4, 4, 4])),
        (Bands.from_string("2x7+1x8"), Bands(widths=(7, 7, 8))),
        (plan(0.8, 0.99).bands, Bands.from_string("6x6+13x7")),
        (plan(), plan(0.8, recall=0.99, num_seeds=128)),
        (plan(1), plan(1.0)),
        (plan(background=[0.1, 0.2]), plan(background=numpy.array([0.1, 0.2]))),
        (plan(background=TEXTS), plan(background=TEXTS, shingles=Shingles())),
        (Shingles(), Shingles(8, "char")),
        (Shingles(numpy.int64(3), "byte"), Shingles(n=3, unit="byte")),
        (MinHasher(5, 4), MinHasher(5, shingles=Shingles(4, "byte"))),
        (MinHasher(5), MinHasher(MinHasher(5).seed_values.tolist())),
        (MinHasher(5), MinHasher(numpy.int64(5), random_state=0, hashbytes=8)),
        (MinHasher(5, scheme="fss"), MinHasher(5, 8, scheme="fss", random_state=0)),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_two_ways_to_make_the_same(one, other):
    """Two values are equal and behave the same, or they are not equal."""
    if one != other:
        assert repr(one) != repr(other)
        return
    assert hash(one) == hash(other)
    assert called(one) == called(other)


@given(one=values, other=values)
def test_values_of_other_parameters_are_not_equal(one, other):
    """Two values are equal if and only if they have the same type and the same `to_dict`."""
    assert (one == other) == (type(one) is type(other) and one.to_dict() == other.to_dict())


@given(value=values)
def test_a_value_is_nothing_else(value):
    assert value != value.to_dict()
    assert value != repr(value)
    assert value not in (None, 0, ())
    with pytest.raises(AttributeError):
        value.another = 1
    with pytest.raises((TypeError, ValueError)):
        type(value).from_dict(value.to_dict() | {"another": 1})
