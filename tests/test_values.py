"""Values: what `Shingles`, `MinHasher`, `Bands`, `Plan`, `Preset` and `Rule` have in common, and bad parameters.

Each value has ``==``, a hash, a ``repr`` that evaluates back, ``to_dict`` and ``from_dict``, and can be pickled and
copied; equal values behave alike, however they were made. The table `BAD` has values that a parameter must not have:
`deduplicate` is given each of them, and every other function one for each of its parameters.
"""

import copy
import dataclasses
import enum
import inspect
import json
import math
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st

import lsh
from lsh import Bands, MinHasher, Plan, Shingles, plan, presets
from lsh.engine.matching import Matching
from lsh.passages.rules import Rule
from lsh.sketch.presets import Preset

NAMES = {one.__name__: one for one in (Bands, MinHasher, Plan, Preset, Rule, Shingles)} | {"inf": math.inf}


Word = enum.Enum("Word", {"UNIT": "word", "FORM": "NFKC"}, type=str)
Number = enum.IntEnum("Number", {"FIVE": 5})
SEEDS = reference.seed_values(9, 4)
PLAN = plan(0.7, 0.9, 200, background=["a text", "a test", "more text"], shingles=Shingles(2), documents=500)
NFKC_WORDS = Shingles(5, "word", lowercase=True, normalize="NFKC")
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


some_presets = st.sampled_from([*map(presets.preset, presets.NAMES), *map(presets.rule, presets.RULES)])
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
    """The same value: of the same type, with the same hash and `to_dict`, and with methods that return the same."""
    other = RENEWALS[how](value)
    assert other == value
    assert (other != value) is False
    assert called(other) == called(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Bands(3, 4), Bands(widths=[4, 4, 4])),
        (plan(0.8, 0.99).bands, Bands.from_string("6x6+13x7")),
        (plan(background=[0.1, 0.2]), plan(background=numpy.array([0.1, 0.2]))),
        (PLAN, Plan(**vars(PLAN) | {"threshold": numpy.float64(0.7), "num_seeds": numpy.int64(200)})),
        (Shingles(numpy.int64(3), "byte"), Shingles(n=3, unit="byte")),
        (MinHasher(5, 4), MinHasher(5, shingles=Shingles(4, "byte"))),
        (MinHasher(5), MinHasher(MinHasher(5).seed_values.tolist())),
        (MinHasher(5, scheme="fss"), MinHasher(numpy.int8(5), random_state=numpy.int8(0), scheme=numpy.str_("fss"))),
        (MinHasher(9, random_state=4), MinHasher(numpy.int64(9), numpy.int64(8), numpy.int64(4), numpy.int8(8))),
        *((MinHasher(9, random_state=4), MinHasher(SEEDS, random_state=state)) for state in (0, 7, None)),
        (MinHasher(SEEDS), MinHasher(numpy.array(SEEDS, numpy.uint32))),
        (MinHasher(3, random_state=2**32 - 1), MinHasher(reference.seed_values(3, 2**32 - 1))),
        (NFKC_WORDS, Shingles(numpy.int64(5), numpy.str_("word"), numpy.bool_(True), normalize=numpy.str_("NFKC"))),
        (NFKC_WORDS, Shingles(Number.FIVE, Word.UNIT, True, numpy.False_, normalize=Word.FORM)),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_two_ways_to_make_the_same(one, other):
    """Equal values behave the same, and have the same pickle: numbers and words of other types become Python's."""
    assert one == other
    assert hash(one) == hash(other)
    assert pickle.dumps(one) == pickle.dumps(other)
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


FSS = {"scheme": "fss"}
GOOD_PLAN = {"bands": Bands(20, 5), "threshold": 0.8, "recall": 0.99, "num_seeds": 128}
MAKERS: dict[str, Callable[..., Any]] = {  # how a value is made of arguments
    "Bands": Bands,
    "MinHasher": lambda **given: MinHasher(**{"seeds": 10, **given}),
    "Plan": lambda **given: Plan(**{**GOOD_PLAN, **given}),
    "Preset": lambda **given: dataclasses.replace(presets.bigcode, **given),
    "Rule": lambda **given: dataclasses.replace(presets.rule("palm"), **given),
    "Shingles": Shingles,
    "plan": plan,
}
BAD_ARGUMENTS: dict[str, list[tuple[dict[str, Any], type[Exception], str]]] = {  # and what the message begins with
    "Bands": [
        ({}, ValueError, r"give num_bands and width, such as Bands\(20, 5\), or widths"),
        ({"num_bands": 3, "widths": (1, 2)}, ValueError, "give either num_bands and width, or widths"),
        ({"num_bands": 0, "width": 3}, ValueError, "num_bands must be 1 or more, got 0"),
        ({"num_bands": 2**40, "width": 1}, ValueError, "num_bands must be at most 1048576"),
        ({"num_bands": 3, "width": 0}, ValueError, "width must be 1 or more, got 0"),
        ({"widths": ()}, ValueError, "widths must have one element or more, got none"),
        ({"widths": (3, 0)}, ValueError, r"widths\[1\] must be 1 or more, got 0"),
        ({"widths": "20x5"}, TypeError, "widths must be a sequence of whole numbers, got str"),
    ],
    "MinHasher": [
        ({"seeds": 0}, ValueError, r"seeds.*got 0"),
        ({"seeds": []}, ValueError, r"seeds"),
        ({"seeds": [1, -1]}, ValueError, r"seeds\[1\].*-1"),
        ({"seeds": [2**32]}, ValueError, r"seeds\[0\].*4294967296"),
        ({"seeds": [1.5]}, TypeError, r"seeds\[0\].*float"),
        ({"seeds": {1, 2}}, TypeError, r"seeds must be .*sequence of uint32, got set"),
        ({"seeds": numpy.ones((2, 2), numpy.uint32)}, TypeError, r"seeds"),
        ({"char_ngram": 0}, ValueError, r"char_ngram.*got 0"),
        ({"hashbytes": 5}, ValueError, r"hashbytes must be 4 or 8, got 5"),
        ({"random_state": 2**32}, ValueError, r"random_state"),
        ({"scheme": "sha1"}, ValueError, r"scheme.*'sha1'"),
        ({"char_ngram": 5, "shingles": Shingles(5, "byte")}, ValueError, r"char_ngram.*shingles"),
        ({**FSS, "seeds": 4097}, ValueError, r"seeds.*4,?096.*4,?097"),
        ({**FSS, "seeds": [5]}, ValueError, r"seeds.*number of components.*list.*random_state"),
        ({**FSS, "hashbytes": 4}, ValueError, r"hashbytes.*4.*fss"),
    ],
    "Plan": [
        ({"bands": "20x5"}, TypeError, "bands of a Plan must be a Bands, got str"),
        ({"bands": Bands(20, 7)}, ValueError, "bands take 140 components, a fingerprint has 128"),
        ({"bands": Bands(5, 20)}, ValueError, "bands must reach a recall of 0.99 at 0.8, got 0.0.* with 5x20; use lsh"),
        ({"bands": Bands(20, 6), "loss": 0.01}, ValueError, "bands must reach a recall of 0.99 at 0.8, got 0.98"),
        ({"threshold": 0}, ValueError, "threshold must be more than 0 and at most 1, got 0"),
        ({"loss": 1}, ValueError, "loss must be 0 to 1, got 1"),
        ({"false_candidates": 0.5}, ValueError, "false_candidates requires background"),
        ({"shingles": Shingles(5)}, ValueError, "shingles requires background"),
        ({"documents": 5}, ValueError, "documents requires background"),
        ({"background": "pairs"}, TypeError, "false_candidates must be a number .* got NoneType"),
        ({"background": "pairs", "false_candidates": 2}, ValueError, "false_candidates must be 0 to 1, got 2"),
        ({"background": "pairs", "false_candidates": 0, "documents": 0}, ValueError, "documents must be 1 or more"),
    ],
    "Preset": [
        ({"hasher": 256}, TypeError, r"hasher must be a MinHasher, got int; use lsh.MinHasher\(seeds\)"),
        ({"bands": Bands(26, 10)}, ValueError, "bands take 260 components, a fingerprint has 256"),
        ({"threshold": 0}, ValueError, "threshold must be more than 0 and at most 1, got 0"),
        ({"verify": "none"}, ValueError, "verify must be one of 'exact', 'sketch', None, got 'none'"),
        ({"differs": "in one point"}, TypeError, "differs must be a tuple of str, got 'in one point'"),
    ],
    "Rule": [
        ({"shingles": None}, TypeError, r"shingles must be a Shingles, got NoneType; use lsh.Shingles\(n, unit="),
        ({"threshold": 0}, ValueError, "threshold must be more than 0 and at most 1, got 0"),
        ({"window": 0.5}, ValueError, "window must be 1 or more, got 0.5"),
        ({"min_shared": 0}, ValueError, "min_shared must be 1 or more, got 0"),
        ({"differs": "in one point"}, TypeError, "differs must be a tuple of str, got 'in one point'"),
    ],
    "Shingles": [
        ({"n": 0}, ValueError, r"n must be .*got 0"),
        ({"n": 2.0}, TypeError, r"n must be .*float"),
        ({"unit": "chars"}, ValueError, r"unit must be .*'chars'"),
        ({"normalize": "nfc"}, ValueError, r"normalize must be .*'nfc'"),
    ],
    "plan": [
        ({"recall": 1, "threshold": 1}, ValueError, "recall must be more than 0 and less than 1, got 1"),
        ({"num_seeds": 2**20 + 1}, ValueError, "num_seeds must be at most 1048576, got 1048577"),
        ({"shingles": Shingles(5)}, ValueError, "shingles requires texts as background"),
        ({"shingles": Shingles(5), "background": [0.1]}, ValueError, "shingles requires texts as background, got sim"),
        ({"documents": 0}, ValueError, "documents must be 1 or more, got 0"),
        ({"background": []}, ValueError, r"background must be one or more similarities, or texts, got shape \(0,\)"),
        ({"background": [[0.1, 0.2]]}, ValueError, r"background must be one or more .* got shape \(1, 2\)"),
        ({"background": [0.1, -0.1]}, ValueError, "background must be similarities from 0 to 1, got -0.1 among them"),
        ({"background": [0.1, math.nan]}, ValueError, "background must be similarities from 0 to 1, got nan among"),
        ({"background": numpy.ma.array([0.5])}, TypeError, "background must be an array without a mask, got a masked"),
        ({"background": [0.1, "x"]}, TypeError, "background must be similarities from 0 to 1 or .* texts, got list"),
        ({"background": ["one text"]}, ValueError, "background must have two or more texts with shingles, got 1"),
    ],
}


@pytest.mark.parametrize(
    ("name", "arguments", "error", "message"), [(name, *row) for name, rows in BAD_ARGUMENTS.items() for row in rows]
)
def test_no_value_is_made_of_bad_arguments(name, arguments, error, message):
    with pytest.raises(error, match=f"^{message}"):
        MAKERS[name](**arguments)


@pytest.mark.parametrize(
    ("scheme", "change", "message"),
    [
        ("murmur3", {"scheme": "other"}, "scheme other"),
        ("murmur3", {"version": 99}, "version 99"),
        ("murmur3", {"hashbytes": 3}, "hashbytes"),
        ("murmur3", {"seed_values": [-1]}, "seeds"),
        ("murmur3", {"num_seeds": 4}, "num_seeds must be 3"),
        ("fss", {"version": 2}, "version 2"),
        ("fss", {"num_seeds": 4097}, "seeds"),
        ("fss", {"seed_values": [-1]}, "random_state"),
        ("fss", {"seed_values": [1, 2]}, "seed_values.*one seed"),
        ("fss", {"seed_values": 5}, "seed_values.*one seed"),
        ("fss", {"hashbytes": 8}, "hashbytes"),
    ],
)
def test_from_dict_refuses_what_it_does_not_know(scheme, change, message):
    values = MinHasher(3, scheme=scheme).to_dict()
    with pytest.raises(ValueError, match=message):
        MinHasher.from_dict({**values, **change})
    del values["seed_values"]
    with pytest.raises(ValueError, match="seed_values"):
        MinHasher.from_dict(values)


# Bad values of parameters. The functions are given these texts.

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
    "max_memory": [
        ("2 apples", ValueError, "must be a number of bytes, or look like '2GB'"),
        *((value, ValueError, "must be ") for value in ("", "0", "-5", "2GBB", "GB", "two", "1e9")),
        *((value, TypeError, "must be a whole number, got") for value in (1.5, True, b"2GB")),
        *((one, ValueError, f"must be 100KB or more, got {one!r}") for one in (-1, "1", 99_999, "99 KB", "0.01MiB")),
    ],
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
        ([1] * 9 + [None], TypeError, ".*got list of NoneType, int; convert dates by .* and numbers by .*"),
        (["2024-01-01"] * 10, TypeError, r".*got list of str; convert dates by np.array\(keep, 'datetime64\[us\]'\)"),
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
        "chunks": (HASHER.chunks, (TEN,)),
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
