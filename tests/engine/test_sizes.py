"""The plan for the size of a corpus: the same one however the texts come in, and none where the caller chose."""

from collections.abc import Iterator

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsh
import lsh.engine.corpus
from lsh import deduplicate, find_pairs
from lsh.engine.matching import Matching
from lsh.sketch import costs, planning
from lsh.text.batch import Batch
from lsh.text.collections import Pieces, TextSource

FEW, STEP, PIECE = 16, 32, 8  # texts: up to so many have today's plan; between two looks at their number; in a piece


@pytest.fixture(autouse=True)
def small_sizes(monkeypatch):
    """Plans change from 17 documents on, and again from 257 on."""
    monkeypatch.setattr(planning, "FEW_DOCUMENTS", FEW)
    for name, seconds in (("SEED_SECONDS", 0.0), ("BAND_SECONDS", 1e-7), ("SHARED_SECONDS", 8e-5)):
        monkeypatch.setattr(costs, name, seconds)
    monkeypatch.setattr(lsh.engine.corpus, "DOCUMENTS_STEP", STEP)
    planning._of_standard_size.cache_clear()
    yield
    planning._of_standard_size.cache_clear()


class Source(TextSource):
    """Texts that are read in pieces. After the first piece, `told` says how many times as many texts there will be."""

    def __init__(self, texts: list[str], told: int | None = None) -> None:
        self.texts, self.told, self.readings, self.read = texts, told, 0, 0

    def __call__(self) -> Pieces:
        self.readings += 1
        return Pieces(self._pieces(self.readings == 1))

    def _pieces(self, first_time: bool) -> Iterator[Batch]:
        for start in range(0, len(self.texts), PIECE):
            piece = self.texts[start : start + PIECE]
            self.read += len(piece) if first_time else 0
            yield Batch(piece)

    def progress(self) -> tuple[int, int, int] | None:
        if self.told is None:
            return None
        return self.read, *((len(self.texts), len(self.texts)) if self.read > PIECE else (1, self.told))

    def take(self, positions):
        yield Batch([self.texts[i] for i in positions.tolist()])

    def changed(self, position):
        raise AssertionError(f"text {position} has not changed")


def texts_of(count: int) -> list[str]:
    draw = numpy.random.RandomState(count)
    texts = [" ".join(f"w{number}" for number in row) for row in draw.randint(0, 50, (count, 20))]
    texts[count // 2 :: 7] = [text + " end" for text in texts[: len(texts[count // 2 :: 7])]]
    return texts


@given(st.integers(1, 300), st.sampled_from([None, 1, 10, 100]))
def test_the_plan_is_that_of_the_number_of_texts(count, guessed):
    """Also where it is not known at first, or the texts are fewer or more than the first ones let expect."""
    texts = texts_of(count)
    expected = deduplicate(texts, 0.6)
    planned = lsh.plan(0.6, documents=count) if count > FEW else lsh.plan(0.6)
    assert expected.parameters["plan"] == planned
    assert expected.parameters["hasher"].num_seeds == planned.num_seeds
    calls = []

    def called():
        calls.append(1)
        return iter(texts)

    source = Source(texts, guessed)
    for given_texts in (called, source):
        result = deduplicate(given_texts, 0.6)
        assert result.parameters == expected.parameters
        assert numpy.array_equal(result.removed, expected.removed)
    right = lsh.plan(0.6, documents=max(PIECE * (guessed or 0), 1)).bands == lsh.plan(0.6, documents=count).bands
    assert source.readings <= 2
    assert source.readings == 1 or not right
    assert list(find_pairs(called, 0.6)) == list(find_pairs(texts, 0.6, bands=planned))
    if count <= FEW:
        assert len(calls) <= 4  # each of the two read them once, and compared texts once more


def test_the_documents_of_both_collections_count():
    texts, plan = texts_of(200), lsh.plan(0.6, documents=400)
    assert plan.num_seeds != lsh.plan(0.6, documents=200).num_seeds
    for against in (texts, lambda: iter(texts), Source(texts, 25)):
        result = deduplicate(texts, 0.6, against=against)
        assert result.parameters["plan"] == plan
        assert not result.keep.any()
        found = find_pairs(texts, 0.6, others=against)
        assert list(found) == list(find_pairs(texts, 0.6, others=texts, bands=plan))


@pytest.mark.parametrize(
    ("chosen", "same"),
    [
        ({"bands": lsh.plan(0.6, 0.9, 64)}, {"recall": 0.9, "num_seeds": 64}),
        ({"bands": lsh.Bands(20, 4)}, {"bands": lsh.Bands(20, 4), "num_seeds": 128}),
        ({"num_seeds": 128}, {"hasher": lsh.MinHasher(128, scheme="fss", shingles=lsh.Shingles(8))}),
    ],
)
def test_a_plan_that_is_given_stays(chosen, same):
    """However it is given: a plan gives the same result as its recall passed alone."""
    texts, matching = texts_of(300), Matching(0.6, **chosen)
    found, other = (deduplicate(texts, 0.6, **given) for given in (chosen, same))
    assert (found.parameters["bands"], found.parameters["hasher"]) == (matching.bands, matching.hasher)
    assert found.parameters == other.parameters
    assert (found.parameters["plan"] is None) == isinstance(chosen.get("bands"), lsh.Bands)
    assert found.removed.tolist() == other.removed.tolist() != []
    assert list(find_pairs(texts, 0.6, **chosen)) == list(find_pairs(texts, 0.6, **same))


def test_what_else_is_given_stays():
    """The recall, the shingles, the seed of the hashes, and whether the filter is used."""
    shingles = lsh.Shingles(3, "word")
    result = deduplicate(texts_of(300), 0.6, recall=0.9, shingles=shingles, random_state=7, verify="sketch")
    planned, hasher = result.parameters["plan"], result.parameters["hasher"]
    assert hasher == lsh.MinHasher(planned.num_seeds, random_state=7, scheme="fss", shingles=shingles)
    assert (planned.recall, planned.loss, planned.documents) == (0.9, 0.0, 300)
    drawn = {deduplicate(texts_of(20), 0.6, random_state=None).parameters["hasher"].random_state for _ in range(2)}
    assert len(drawn) == 2
