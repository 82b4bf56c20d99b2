"""Errors as data: parameters in messages, which the command words as its options."""

from __future__ import annotations

import copy
import pickle

import pytest

import lsh
from lsh.base.errors import Parameter, bad_type, bad_value, words_of
from lsh.command.console import worded


def test_a_message_names_parameters_for_python_and_options_for_the_command():
    message = "use " + Parameter("missing", "empty") + " or " + Parameter("on_bad_line", "skip") + "; see "
    message += Parameter("header", False) + ", " + Parameter("delimiter", "\t") + ", " + Parameter("pattern", "*.x")
    assert str(message) == "use missing='empty' or on_bad_line='skip'; see header=False, delimiter='\\t', pattern='*.x'"
    assert (
        worded(message)
        == "use --missing empty or --on-bad-line skip; see --no-header, --delimiter tab, --pattern '*.x'"
    )
    assert worded(Parameter("threshold", 0.30000000000000004) + " and " + Parameter("hasher")) == (
        "--threshold 0.3 and hasher"
    )
    assert str(message.renamed("missing", "absent")).startswith("use absent='empty' or on_bad_line")
    assert worded("a text with num_seeds=5 and a threshold") == "a text with num_seeds=5 and a threshold"


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
@pytest.mark.parametrize("make", [bad_value, bad_type])
def test_an_error_knows_its_parameter(make, again):
    error = again(make(Parameter("recall", 0.5), "is too low; use " + Parameter("bands")))
    assert (str(error), error.parameter, error.reason) == (
        "recall=0.5 is too low; use bands",
        "recall",
        "is too low; use bands",
    )
    assert type(error) in (ValueError, TypeError)
    assert worded(words_of(error)) == "--recall 0.5 is too low; use --bands"


@pytest.mark.parametrize(
    ("parameter", "run"),
    [
        ("num_seeds", lambda: lsh.plan(0.1, 0.999, 1)),
        ("seeds", lambda: lsh.MinHasher(0)),
        ("bands", lambda: lsh.Bands.from_string("x")),
        ("n", lambda: lsh.Shingles(0)),
        ("unit", lambda: lsh.Shingles(3, unit="line")),
    ],
)
def test_errors_of_values_have_their_parameter(parameter, run):
    """Those of functions are in `test_values.py`."""
    with pytest.raises((ValueError, TypeError)) as caught:
        run()
    assert caught.value.parameter == parameter
    assert str(caught.value).startswith(parameter)
    assert str(caught.value).endswith(caught.value.reason)
