"""The measured recall: the documents in the sample."""

import numpy as np
import pytest

from lsh.report import recall


@pytest.mark.parametrize("pairs", [1, 5, 1000, 30_000, 10**6])
@pytest.mark.parametrize("number", [2, 3, 100, 900, 30_000])
def test_a_sample_has_no_more_pairs_than_wanted(number, pairs):
    skipped = np.arange(0, number - 2, 3)
    chosen = recall.choose_sample(np.full(number, 500), skipped, pairs)
    length = chosen.shape[1]
    assert 1 <= len(chosen) * length * (length - 1) // 2 <= pairs
    assert len(np.unique(chosen)) == chosen.size <= recall.MAX_SAMPLE_DOCUMENTS
    assert set(chosen.ravel().tolist()).isdisjoint(skipped.tolist())
    assert (np.diff(chosen, axis=1) <= 2).all()  # neighbours, except for skipped documents
    if len(chosen) > 1:
        assert chosen[0, 0] <= 1
        assert chosen[-1, -1] == number - 1  # the sample reaches the last document


def test_a_sample_is_as_large_as_it_may_be():
    """Bounded by pairs and bytes; of long texts it is smaller, and without two texts there is none."""
    none = np.array([], int)
    assert recall.choose_sample(np.full(50_000, 500), none, 500_000).shape == (100, 100)
    sizes = np.full(1000, 50_000)
    sizes[::2] = recall.MAX_TEXT_SIZE + 1
    chosen = recall.choose_sample(sizes, none, 10**6)
    assert (sizes[chosen] == 50_000).all()
    assert recall.MAX_COMPARED_BYTES / 2 <= chosen.shape[1] * sizes[chosen].sum() <= recall.MAX_COMPARED_BYTES
    for few, pairs in (([], 1000), ([5], 1000), ([5, recall.MAX_TEXT_SIZE + 1], 1000), ([5] * 9, 0)):
        assert recall.choose_sample(np.array(few, int), none, pairs).size == 0


@pytest.mark.parametrize("number", [0, 3, 500, 30_000])
def test_random_documents(number):
    sizes = np.full(number, 500)
    sizes[1:3] = recall.MAX_TEXT_SIZE + 1
    chosen = recall.choose_random(sizes, np.arange(3, number, 10), 1000)
    allowed = set(range(number)) - {1, 2, *range(3, number, 10)}
    assert len(set(chosen.tolist())) == len(chosen) == min(len(allowed), recall.MAX_RANDOM_DOCUMENTS)
    assert set(chosen.tolist()) <= allowed
    if number > 100:
        assert abs(chosen[:200].mean() / number - 0.5) < 0.1  # the first ones are from everywhere, too
    assert recall.choose_random(sizes, np.arange(0), 0).size == 0
    chosen = recall.choose_random(np.full(9_000, 50_000), np.arange(0), 1000)
    assert len(chosen) == recall.MAX_RANDOM_BYTES // 50_000
