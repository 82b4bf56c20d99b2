"""The filter of documents that are compared, against slow reference code; test_dedup.py tests results."""

from __future__ import annotations

import numpy
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st

from lsh.engine.comparing import passing


@strategies.examples(100)
@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.lists(st.integers(0, 2), min_size=3, max_size=3), st.booleans()), max_size=40
    ),
    st.integers(0, 4),
    st.integers(1, 9),
)
def test_passing_against_twin(documents, least_equal, most):
    links = reference.link([key for key, _, _ in documents], range(len(documents)), len(documents))
    sketches, settled = [sketch for _, sketch, _ in documents], [one for _, _, one in documents]
    found = passing(
        numpy.array(links, numpy.int32),
        numpy.array(sketches, numpy.uint8).reshape(-1, 3),
        numpy.array(settled, numpy.uint8),
        least_equal,
        most,
    )
    assert found.tolist() == reference.passing(links, sketches, settled, least_equal, most)
