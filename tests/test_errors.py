"""Errors as data: parameters in messages, which the command words as its options."""

import copy
import pickle

import pytest

from lsh.base.errors import Parameter, bad_type, bad_value, words_of
from lsh.terminal.console import worded


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
