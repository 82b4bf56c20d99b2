"""Cache.save and Cache.load: the same cache again, in the files of an index."""

import errno
import random
from pathlib import Path
from unittest.mock import Mock

import indexing
import pytest

import lsh
from lsh.segments.disk import DiskFile
from lsh.store.index import Index, IndexDamagedError

HASHERS = [
    lsh.MinHasher(seeds=100, char_ngram=4),
    lsh.MinHasher(20, hashbytes=4, shingles=lsh.Shingles(2, "word", lowercase=True)),
    lsh.MinHasher(64, scheme="fss", random_state=7, shingles=lsh.Shingles(3)),
    lsh.MinHasher(3, scheme="fss", random_state=17341179),
]


def equal(cache: lsh.Cache, other: lsh.Cache) -> None:
    """The same parameters, documents, order of addition and buckets."""
    assert (cache.hasher, cache.bands, cache.plan) == (other.hasher, other.bands, other.plan)
    assert list(cache) == list(other)
    for (doc_id, row), (same_id, same) in zip(cache.fingerprints.items(), other.fingerprints.items(), strict=True):
        assert (doc_id, type(doc_id), row.tolist(), row.dtype) == (same_id, type(same_id), same.tolist(), same.dtype)
    for bins, others in zip(cache.bins, other.bins, strict=True):
        assert {key: list(ids) for key, ids in bins.items()} == {key: list(ids) for key, ids in others.items()}


@pytest.mark.few(2)
@pytest.mark.parametrize("hasher", HASHERS, ids=repr)
def test_load_what_was_saved(tmp_path, hasher, monkeypatch):
    """Documents that were replaced and removed, ids of each kind, texts without shingles, and several segments."""
    indexing.small_limits(monkeypatch)
    rng = random.Random(1)
    texts = ["".join(rng.choices("abc de", k=rng.randrange(60))) for _ in range(300)]
    cache = lsh.Cache(hasher)
    cache.add_docs(texts, [i if i % 3 else f"id {i} \ud800" if i % 2 else b"%d" % i for i in range(300)])
    for i in range(0, 300, 5):
        if i % 3:
            cache.remove_id(i)
    cache.add_docs(texts[:10], [1, 2, *"abcdefgh"])
    cache.save(tmp_path / "saved")
    loaded = lsh.Cache.load(str(tmp_path / "saved"))
    equal(cache, loaded)
    assert [loaded.query(text) for text in texts] == [cache.query(text) for text in texts]
    loaded.add_doc("another text", "x")
    loaded.remove_id(1)
    loaded.save(tmp_path / "again")
    equal(loaded, lsh.Cache.load(tmp_path / "again"))


def test_a_saved_cache_is_an_index(tmp_path):
    cache = lsh.Cache(HASHERS[2], bands=lsh.Bands(8, 8))
    cache.add_doc("the ferry to the islands was late on monday", "a")
    cache.save(tmp_path / "saved")
    with Index.open(tmp_path / "saved", "a") as index:
        assert index.bands == cache.bands
        assert index._recalls(index.threshold, None)[0] >= 0.99 > 0.6 > index.recall_at(index.threshold) > 0.45
        assert index.threshold < 1
        match = index.query("the ferry to the islands was late on monday")[0]
        assert (match.id, match.similarity, match.verified) == ("a", 1.0, False)
        index.verify()
        index.add("the ferry to the islands was late on sunday", "b")
    assert list(lsh.Cache.load(tmp_path / "saved")) == ["a", "b"]


@pytest.mark.parametrize("exists", [False, True])
def test_a_failed_save_leaves_no_cache(tmp_path, monkeypatch, exists):
    cache = lsh.Cache(HASHERS[0])
    cache.add_docs(["one text", "another text"], ["a", "b"])
    path = tmp_path / "of" / "saved"
    if exists:
        path.mkdir(parents=True, mode=0o750)
    with monkeypatch.context() as patch:
        patch.setattr(DiskFile, "sync", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
        with pytest.raises(OSError, match="No space left"):
            cache.save(path)
    assert [folder.name for folder in path.parent.iterdir()] == ["saved"]
    assert list(path.iterdir()) == []
    with pytest.raises(FileNotFoundError, match="no index at"):
        lsh.Cache.load(path)
    mode = path.stat().st_mode
    cache.save(path)
    assert list(lsh.Cache.load(path)) == ["a", "b"]
    assert path.stat().st_mode == mode


def test_errors(tmp_path):
    cache = lsh.Cache(HASHERS[0])
    cache.save(tmp_path / "saved")
    with pytest.raises(FileExistsError, match=r"^there is an index in "):
        cache.save(tmp_path / "saved")
    for doc_id in (1.5, (1, 2), True, 2**63, frozenset()):
        other = lsh.Cache(HASHERS[0])
        other.add_docs(["one text", "another text"], ["a", doc_id])
        with pytest.raises((TypeError, ValueError), match=r"^the ids of the cache\[1\] must be"):
            other.save(tmp_path / "none")
    Index.create(tmp_path / "low").close()
    with pytest.raises(ValueError, match=r"low has no whole fingerprints \(sketch='8bit'\), .* sketch='full'$"):
        lsh.Cache.load(tmp_path / "low")
    manifest: Path = tmp_path / "saved" / "manifest"
    manifest.write_bytes(manifest.read_bytes()[:-1])
    with pytest.raises(IndexDamagedError, match="manifest"):
        lsh.Cache.load(tmp_path / "saved")
