"""Values: what `Shingles`, `MinHasher`, `Bands`, `Plan` and `Preset` have in common, and bad values of parameters.

Each value has ``==``, a hash, a ``repr`` that evaluates back, ``to_dict`` and ``from_dict``, and can be pickled and
copied; equal values behave alike, however they were made. The table `BAD` has values that a parameter must not have:
`deduplicate` is given each of them, and every other function one for each of its parameters.
"""

from __future__ import annotations

import copy
import inspect
import json
import math
import pickle
from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any

import numpy
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

import lsh
from lsh import Bands, MinHasher, Plan, Shingles, plan, presets
from lsh.engine.matching import Matching
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


# Bad values. The functions are given these texts.

TEN = ["text number one", "text number two"] * 5
HASHER = MinHasher(100, 5)
TOO_LOW = "^num_seeds=128 is too few .* possible: num_seeds=481 or more, or threshold=0.038"
PRIORITIES = "must be 'first', 'last', 'longest' or an array of numbers or datetime64"
BAD: dict[str, list[tuple[Any, type[Exception], str]]] = {  # by parameter: value, error, and what follows the name
    "threshold": [
        *((value, ValueError, f"must be more than 0 and at most 1, got {value}") for value in (0, -1, 80, math.nan)),
        (10**400, ValueError, "must be more than 0 and at most 1, got a number that is too large"),
        *((value, TypeError, r"must be a number \(more than 0 and at most 1\), got str") for value in ("x", "0.8")),
        *((value, TypeError, "must be a number .*, got bool") for value in (True, numpy.True_)),
        *((value, TypeError, "must be a number .*, got (ndarray|object)") for value in (numpy.array([0.8]), object())),
        (0.01, ValueError, None),  # too low for 128 seeds, see `TOO_LOW`
    ],
    "recall": [
        *((value, ValueError, f"must be more than 0 and less than 1, got {value}") for value in (0, 1, 1.5, math.nan)),
        ("0.9", TypeError, "must be a number .*, got str"),
    ],
    "bands": [
        ("20x6", TypeError, r"must be a Bands or a Plan, got str; use lsh.Bands\(num_bands, width\)"),
        ((20, 6), TypeError, "must be a Bands or a Plan, got tuple"),
        (Bands(20, 7), ValueError, "take 140 components, a fingerprint has 128; use fewer"),
    ],
    "shingles": [(5, TypeError, "must be a Shingles, got int; use lsh.Shingles")],
    "hasher": [(128, TypeError, r"must be a MinHasher, got int; use lsh.MinHasher\(seeds\)")],
    "num_seeds": [
        (0, ValueError, "must be 1 or more, got 0"),
        (128.0, TypeError, "must be a whole number, got float"),
        (
            2,
            ValueError,
            "=2 is too few to find pairs .* with a recall of 0.99; possible: num_seeds=[0-9]+",
        ),
    ],
    "random_state": [
        (-1, ValueError, "must be 0 or more, got -1"),
        ("0", TypeError, "must be a whole number, got str"),
    ],
    "verify": [(value, ValueError, f"must be one of .*, got {value!r}") for value in ("hash", False)],
    "clusters": [("chains", ValueError, "must be one of 'representative', 'components', got 'chains'")],
    "missing": [(value, ValueError, f"must be one of 'error', 'empty', got {value!r}") for value in ("keep", None)],
    "max_memory": [("2 apples", ValueError, "must be a number of bytes, or look like '2GB'")],
    "temp_dir": [("", ValueError, "must be the path of a folder, got an empty text")],
    "num_threads": [
        (0, ValueError, "must be 1 or more, got 0"),
        (2000, ValueError, "must be at most 1024, got 2000"),
        (1.5, TypeError, "must be a whole number, got float"),
    ],
    "progress": [("bar", TypeError, r"must be True, or callable as progress\(stage, done, total\), got str")],
    "top": [(0, ValueError, "must be 1 or more, got 0")],
    "keep": [
        ("shortest", ValueError, rf"{PRIORITIES}, got 'shortest'$"),
        ([1, 2], ValueError, r"must have one number or date for each text \(10\), got 2"),
        ([1.0] * 9 + [-math.inf], ValueError, r"\[9\] must be a finite number, got -inf; give one for each text$"),
        (numpy.array(["2024"] * 4 + ["NaT"] * 6, "M8[D]"), ValueError, r"\[4\] must be a date, got NaT"),
        ([[1.0] * 10], TypeError, rf"{PRIORITIES}, one value for each text, got list"),
        ([1] * 9 + [None], TypeError, ".*got list of NoneType, int; convert dates by .* and numbers by .*"),
        (["2024-01-01"] * 10, TypeError, r".*got list of str; convert dates by np.array\(keep, 'datetime64\[us\]'\)"),
        ([date(2024, 1, 1)] * 10, TypeError, ".*got list of date; convert dates by "),
        (numpy.array([1] * 10, "m8[s]"), TypeError, r".*got ndarray of timedelta64\[s\]; convert"),
        (numpy.ma.masked_array([1.0] * 10), TypeError, "must be an array without a mask, got a masked array"),
        *((value, TypeError, f"{PRIORITIES}, one value .*, got ") for value in (None, set(range(10)), len)),
        ([10**400] * 10, TypeError, "must be"),
    ],
}


@pytest.mark.parametrize(
    ("parameter", "value", "error", "reason"),
    [(name, *row) for name, rows in BAD.items() for row in rows if name != "top"],
)
def test_a_bad_value_is_an_error_that_names_the_parameter(parameter, value, error, reason):
    with pytest.raises(error, match=f"^{parameter} ?{reason}" if reason else TOO_LOW) as caught:
        lsh.deduplicate(TEN, **{parameter: value})
    assert getattr(caught.value, "reason", "") in str(caught.value)


@pytest.fixture(scope="module")
def doors(tmp_path_factory) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Functions, and what they are given beside the parameters of the table; those of stores are in test_verbs.py."""
    folder = tmp_path_factory.mktemp("doors")
    index = lsh.Index.create(folder / "index", texts="stored")
    index.add_docs(TEN, range(10))
    return {
        "Matching": (Matching, ()),
        "find_pairs": (lsh.find_pairs, (TEN,)),  # the call raises, before the first iteration
        "plan": (partial(plan, background=TEN), ()),
        "MinHasher": (MinHasher, (8,)),
        "fingerprints": (HASHER.fingerprints, (TEN,)),
        "jaccard": (lsh.jaccard, ("a", "b")),
        "jaccard_matrix": (lsh.jaccard_matrix, (TEN,)),
        "Cache": (lsh.Cache, (HASHER,)),
        "Cache.create": (lsh.Cache.create, ()),
        "Index.create": (lsh.Index.create, (folder / "new",)),
        "Index.find_pairs": (index.find_pairs, ()),
        "Index.deduplicate": (index.deduplicate, ()),
        "Screen.create": (lsh.Screen.create, (folder / "screen",)),
    }


def test_every_function_checks_each_of_its_parameters(doors):
    checked = 0
    for name, (function, positional) in doors.items():
        for parameter in [one for one in list(inspect.signature(function).parameters)[len(positional) :] if one in BAD]:
            value, error, _ = BAD[parameter][0]
            with pytest.raises(error, match=f"^{parameter} must be") as caught:
                function(*positional, **{parameter: value})
            assert parameter == "progress" or caught.value.parameter == parameter, name
            checked += 1
    assert checked > 60


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bands": Bands(20, 6), "recall": 0.9}, "recall and bands cannot be combined; give one"),
        ({"bands": Bands(20, 6), "num_seeds": 119}, "bands take 120 components, a fingerprint has 119"),
        ({"bands": Bands(1, 101), "hasher": HASHER}, "bands take 101 components, a fingerprint has 100"),
        ({"hasher": HASHER, "num_seeds": 100}, "num_seeds and hasher cannot be combined"),
        ({"hasher": HASHER, "random_state": 1}, "random_state and hasher cannot be combined"),
        (
            {"hasher": HASHER, "shingles": Shingles(5)},
            r"shingles must be the hasher's \(Shingles\(5, unit='byte'\)\) or left out, got Shingles\(5, unit='char'\)",
        ),
        ({"threshold": 0.001}, "possible: threshold=[.0-9]+ or more, or recall=[.0-9]+ or less$"),
    ],
)
def test_values_that_do_not_go_together(given, message):
    for find in (lsh.deduplicate, lsh.find_pairs):
        with pytest.raises(ValueError, match=message):
            find(TEN, **given)
