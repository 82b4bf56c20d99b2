"""Columns of Hugging Face's package ``datasets``, read by their Arrow table, and `lsh.adapters.datasets`."""

import doctest
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from running import environment

import lsh
from lsh.adapters import datasets as adapter
from lsh.text import collections

datasets = pytest.importorskip("datasets", reason="datasets is not installed; see .ci/requirements-remote.txt")

pytestmark = [
    pytest.mark.filterwarnings("ignore:Specifying null_placement:FutureWarning"),  # of datasets' own sort
    pytest.mark.filterwarnings("ignore:Discarding nonzero nanoseconds:UserWarning"),  # of streams of datasets 4.0
]

STORY = "the ferry left the harbour at nine with two hundred passengers and a brass band on board"


def texts(count: int = 300) -> list[str]:
    draw = random.Random(0)
    return [
        f"{STORY} {draw.randrange(count // 2)} {draw.randrange(10**6) * (draw.random() < 0.5)}" for _ in range(count)
    ]


def same(a: lsh.Deduplication, b: lsh.Deduplication) -> bool:
    return np.array_equal(a.keep, b.keep) and np.array_equal(a.removed, b.removed)


@pytest.fixture
def dataset():
    return datasets.Dataset.from_dict({"id": list(range(300)), "text": texts(), "other": texts()[::-1]})


@pytest.fixture
def on_disk(dataset, tmp_path):
    """The dataset in a file that is mapped into memory."""
    dataset.save_to_disk(str(tmp_path / "saved"), num_shards=2)
    return datasets.load_from_disk(str(tmp_path / "saved"))


@pytest.mark.parametrize("where", ["dataset", "on_disk"])
def test_a_column_is_read_in_place(request, where, monkeypatch):
    dataset = request.getfixturevalue(where)
    monkeypatch.setattr(type(dataset["text"]), "__iter__", lambda column: pytest.fail("it was read text by text"))
    assert same(lsh.deduplicate(dataset["text"], 0.8), lsh.deduplicate(texts(), 0.8))
    hasher = lsh.MinHasher(64, shingles=lsh.Shingles(5))
    assert np.array_equal(hasher.fingerprints(dataset["text"]), hasher.fingerprints(texts()))
    pairs = list(lsh.find_pairs(dataset["text"], 0.8, others=dataset["other"]))
    assert pairs == list(lsh.find_pairs(texts(), 0.8, others=texts()[::-1])) != []


VIEWS = {
    "select": lambda d: d.select([5, 3, 3, 200, 9, 100, *range(250, 300)]),
    "a range": lambda d: d.select(range(10, 120)),
    "shuffle": lambda d: d.shuffle(seed=1),
    "sort": lambda d: d.sort("other"),
    "filter": lambda d: d.filter(lambda row: row["id"] % 3),
    "numpy": lambda d: d.with_format("numpy"),
    "pandas": lambda d: d.with_format("pandas").select([7, 1, 30]),
    "arrow": lambda d: d.with_format("arrow", columns=["id"], output_all_columns=True),
    "concatenated": lambda d: datasets.concatenate_datasets([d, d.select([4, 2])]),
    "shard": lambda d: d.shard(4, 1, contiguous=False),
    "nothing": lambda d: d.select([]),
    "nothing left": lambda d: d.filter(lambda row: False),
    "transform": lambda d: d.with_transform(lambda rows: {**rows, "text": [t[:40] for t in rows["text"]]}),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("where", ["dataset", "on_disk"])
def test_any_view_of_a_dataset(request, where, view, monkeypatch):
    monkeypatch.setattr(collections, "MAX_DATASET_BATCH", 16)
    seen = VIEWS[view](request.getfixturevalue(where))
    expected = [str(text) for text in seen["text"]]
    assert same(lsh.deduplicate(seen["text"], 0.8), lsh.deduplicate(expected, 0.8))
    hasher = lsh.MinHasher(16)
    assert np.array_equal(hasher.fingerprints(seen["text"]), hasher.fingerprints(expected))


def test_missing_texts(dataset):
    holes = datasets.Dataset.from_dict({"text": ["a text", None, "a text", None]})
    for view in (holes, holes.select([3, 2, 1, 0])):
        with pytest.raises(ValueError, match=r"texts\[[01]\] is None|null"):
            lsh.deduplicate(view["text"])
        assert lsh.deduplicate(view["text"], missing="empty").keep.sum() == 3


@pytest.mark.parametrize("make", [lambda d: d, lambda d: d.to_iterable_dataset()])
def test_a_whole_dataset_is_an_error(dataset, make):
    with pytest.raises(TypeError, match=r"texts must be one column of texts, got a whole \w+; pass table\['text'\]"):
        lsh.deduplicate(make(dataset))


MEMORY = """
import re, sys, datasets, numpy, lsh
def own(): # memory that is not that of mapped files
    with open("/proc/self/status") as status:
        return int(re.search(r"RssAnon:\\s+(\\d+)", status.read())[1]) * 1024
dataset = datasets.Dataset.from_file(sys.argv[1])
hasher = lsh.MinHasher(4, scheme="fss")
hasher.fingerprints(dataset.select(range(10))["text"])
before = own()
hasher.fingerprints(dataset["text"])
result = lsh.deduplicate(dataset["text"], 0.8, num_seeds=16, recall=0.5)
print(own() - before, len(dataset), int(result.keep.sum()))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_does_not_grow_by_the_texts(tmp_path):
    from datasets.arrow_writer import ArrowWriter

    size, draw = 0, random.Random(0)
    with ArrowWriter(
        path=str(tmp_path / "big.arrow"), features=datasets.Features(text=datasets.Value("string"))
    ) as out:
        for number in range(3000):
            out.write({"text": f"{number} " + "".join(map(chr, draw.choices(range(97, 123), k=200))) * 200})
            size += 40_000
        out.finalize()
    line = [sys.executable, "-c", MEMORY, str(tmp_path / "big.arrow")]
    result = subprocess.run(line, capture_output=True, env=environment(), timeout=120)
    assert result.returncode == 0, result.stderr.decode()
    grown, count, num_kept = map(int, result.stdout.split())
    assert (count, num_kept) == (3000, 3000)
    assert grown < size / 4, f"{grown:,} of {size:,} bytes"


# ---- the adapter ----

VIEWS_OF_ROWS = ["select", "shuffle", "numpy", "nothing"]


@pytest.fixture
def rows(dataset):
    draw = random.Random(1)
    stars = [draw.randrange(1000) for _ in range(300)]
    dates = np.datetime64("2026-01-01", "ns") + np.array(stars, "timedelta64[ns]")
    return dataset.add_column("stars", stars).add_column("date", dates)


@pytest.mark.parametrize("view", VIEWS_OF_ROWS)
@pytest.mark.parametrize("keep", ["first", "longest", "stars", "date"])
def test_the_rows_of_the_library_stay(rows, view, keep):
    seen = VIEWS[view](rows)
    values = seen.with_format(None)["stars"][:] if keep in ("stars", "date") else keep
    result = lsh.deduplicate([str(text) for text in seen["text"]], 0.95, keep=values)
    unique = adapter.deduplicate(seen, "text", 0.95, keep=keep, add_copies=True)
    assert unique.with_format(None)["id"][:] == seen.select(result.kept).with_format(None)["id"][:]
    assert unique.with_format(None)["copies"][:] == result.copies[result.keep].tolist()
    pairs = adapter.find_pairs(seen, "text", 0.95)
    expected = lsh.find_pairs([str(text) for text in seen["text"]], 0.95)
    assert list(zip(*(pairs[name][:] for name in ("id1", "id2", "similarity")))) == list(expected)


def test_marks_name_the_kept_row(rows):
    new, old = rows.select(range(200)), rows.select(range(200, 300))
    marked = adapter.deduplicate(new, "text", 0.9, against=old, id="id", mark=True, add_copies=True)
    result = lsh.deduplicate(new["text"], 0.9, against=old["text"])
    expected = dict.fromkeys(range(200))
    for document, kept, similarity, _, side in result.removed.tolist():
        expected[document] = (kept + (200 if side == "old" else 0), similarity, side)
    found = list(zip(*(marked[name][:] for name in ("kept_id", "similarity", "side"))))
    assert found == [expected[i] or (None, None, None) for i in range(200)]
    assert marked["copies"][:] == [int(one) or None for one in result.copies]
    assert marked["text"][:] == new["text"][:]
    nothing = adapter.deduplicate(new.select([]), "text", 0.9, id="id", mark=True)
    assert nothing.features["kept_id"] == marked.features["kept_id"]
    pairs = adapter.find_pairs(new, "text", 0.9, others=old, id="id")
    assert min(pairs["id2"]) >= 200 > max(pairs["id1"])


def test_each_split_by_itself(rows):
    splits = rows.train_test_split(0.2, seed=0)
    unique = adapter.deduplicate(splits, "text", 0.9)
    assert type(unique) is type(splits)
    for name, split in splits.items():
        assert unique[name]["id"][:] == adapter.deduplicate(split, "text", 0.9)["id"][:]


@pytest.mark.parametrize("add", [False, True])
def test_a_stream_without_what_is_known(rows, tmp_path, add):
    with lsh.Screen.create(tmp_path / "known", 0.9) as known:
        known.submit(rows["text"][0], "old")
        stream = adapter.screen(rows.to_iterable_dataset(), known, id="id" if add else None)
        passed = [row["id"] for row in stream]
        assert 0 not in passed
        assert len(known.index) == 1 + (len(passed) if add else 0)
        if add:
            assert all(known.check(text).decision == "reject" for text in rows["text"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: adapter.deduplicate(d, "texts"), "dataset must have the column 'texts', got the columns id, text,"),
        (
            lambda d: adapter.deduplicate(d, keep="star"),
            "keep must be 'first', 'last', 'longest', numbers, or a column",
        ),
        (lambda d: adapter.deduplicate(d, against=[]), "against must be a datasets.Dataset, got list"),
        (lambda d: adapter.deduplicate(d.to_iterable_dataset()), "got IterableDataset; use screen for a stream"),
        (lambda d: adapter.deduplicate(d.rename_column("other", "copies"), add_copies=True), "has a column 'copies'"),
        (lambda d: adapter.find_pairs(d, id="key"), "dataset must have the column 'key'"),
        (lambda d: adapter.deduplicate(d, id="key"), "dataset must have the column 'key'"),
        (lambda d: adapter.screen(d, "known"), "screen must be a Screen, got str; for a path, use lsh.Screen.open"),
    ],
)
def test_bad_arguments(rows, call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(rows)


def test_the_page(monkeypatch):
    folder = Path(__file__).resolve().parents[1]
    monkeypatch.chdir(folder / "examples")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.testfile(str(folder / "docs" / "datasets.md"), module_relative=False, optionflags=flags).failed == 0
