"""deduplicate and find_pairs with an index and within one: equal to the same run with the texts as a list."""

import pickle
import random
from pathlib import Path
from typing import Any

import indexing
import numpy as np
import pytest
from indexing import FERRY

import lsh
import lsh.engine.corpus
import lsh.engine.index_candidates
import lsh.store.view
from lsh.store.index import Index, IndexDamagedError

WORDS = [f"{a}{b}{c}" for a in "bdfk" for b in "aeiou" for c in "lmrt"]
HASHER = lsh.MinHasher(64, scheme="fss", shingles=lsh.Shingles(3))
PLAN = lsh.plan(0.7, 0.95, 64)
Texts = list[str]


def corpus(seed: int, count: int, originals: int = 40) -> Texts:
    """Copies and near copies of a few originals, with some texts that have no shingles."""
    rng = random.Random(seed)
    bases = [random.Random(i).choices(WORDS, k=14) for i in range(originals)]

    def text() -> str:
        if rng.random() < 0.02:
            return rng.choice(["", "a"])
        words = list(rng.choice(bases))
        for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
            words[rng.randrange(len(words))] = rng.choice(WORDS)
        return " ".join(words)

    return [text() for _ in range(count)]


def filled(folder: Path, texts: Texts, **settings: Any) -> Index:
    """An index of three segments and a log, with ids of each kind, and removed documents in each part."""
    index = Index.create(folder, HASHER, bands=PLAN, **{"texts": "stored", **settings})
    ids = [i if i % 3 else f"id {i}" if i % 2 else b"%d" % i for i in range(len(texts))]
    quarter = len(texts) // 4
    for part in range(4):
        some = slice(part * quarter, (part + 1) * quarter if part < 3 else None)
        days = [i * 7919 % 5 for i in range(len(texts))[some]]  # so that the documents of segments arrive by turns
        index.add_docs(texts[some], ids[some], times=[day * 86400 for day in days])
        if part < 3:
            with pytest.MonkeyPatch.context() as patch:
                indexing.small_limits(patch)
                index.commit()
    for doc_id in ids[3::7]:
        index.remove(doc_id)
    index.commit()
    return index


def texts_of(index: Index) -> dict[Any, str]:
    return {doc_id: index.text_of(doc_id).decode() for doc_id in index}


@pytest.mark.parametrize("move", [None, Index.commit, Index.compact])
def test_equal_documents_are_in_the_order_of_arrival(tmp_path, move):
    """Also where a later document has an earlier time, so that it is in another segment."""
    with Index.create(tmp_path / "index", texts="stored") as index:
        for i, day in ((0, 5), (1, 0), (2, 9), (3, 5), (4, 0), (0, 1)):  # the last one in place of the first
            index.add(FERRY, i, time=day * 86400)
            if move is Index.commit:
                index.compact()
        if move is not None:
            move(index)
        assert list(index) == [1, 2, 3, 4, 0]
        assert [match.id for match in index.query(FERRY)] == [1, 2, 3, 4, 0]
        assert [match.id for match in index.query(FERRY, top=1)] == [1]
        with Index.create(tmp_path / "other", texts="stored") as other:
            other.add_docs(["five", "six", "seven"], [5, 6, 7], times=[99 * 86400, 0, 99 * 86400])
            other.compact()
            index.merge(other)
        index.add("eight", 8)
        index.expire(before=1.0)
        if move is not None:
            move(index)
        assert list(index) == [2, 3, 0, 5, 7, 8]
    with Index.open(tmp_path / "index") as index:
        assert list(index) == [2, 3, 0, 5, 7, 8]


def rows(result: lsh.Deduplication, ids: list[Any]) -> list[list[tuple[Any, ...]]]:
    """The two tables, with the ids of the old documents."""
    tables = []
    for table, name in ((result.removed, "kept"), (result.near, "j")):
        assert table.dtype.names is not None
        columns = {column: table[column].tolist() for column in table.dtype.names}
        named = ids if result.old_ids is None else result.old_ids
        columns[name] = [named[i] if side == "old" else i for i, side in zip(columns[name], columns["side"])]
        tables.append(list(zip(*columns.values())))
    return tables


def counts(result: lsh.Deduplication) -> dict[str, Any]:
    """The counts of the result; an index connects old documents only with new ones."""
    return {name: count for name, count in result.summary().items() if name not in ("seconds", "connected")}


def check_against(new: Texts, index: Index, old: dict[Any, str], **named: Any) -> lsh.Deduplication:
    """Compare both functions with an index and with the list of its texts; return the result of `deduplicate`."""
    ids, listed, same = list(old), list(old.values()), {"hasher": HASHER, "bands": PLAN.bands, "threshold": 0.7}
    result = lsh.deduplicate(new, against=index, **named)
    expected = lsh.deduplicate(new, against=listed, **{**same, **named})
    assert rows(result, []) == rows(expected, ids)
    assert counts(result) == counts(expected)
    assert result.keep.tolist() == expected.keep.tolist()
    assert result.labels.tolist() == expected.labels.tolist()
    named_copies = [(result.old_ids[kept], number) for kept, number in result.old_copies.tolist()]
    assert named_copies == [(ids[kept], number) for kept, number in expected.old_copies.tolist()]
    own = {name: value for name, value in named.items() if name not in ("keep", "clusters")}
    pairs = [(i, ids[j], value) for i, j, value in lsh.find_pairs(new, others=listed, **{**same, **own})]
    assert list(lsh.find_pairs(new, others=index, **own)) == pairs
    assert result.old_ids is not None
    assert [doc_id for doc_id in old if doc_id in set(result.old_ids)] == list(result.old_ids)
    return result


def check_inside(index: Index, old: dict[Any, str], **named: Any) -> int:
    """Compare removals and pairs of an index with those of the list of its texts; return how many are removed."""
    ids, listed, same = list(old), list(old.values()), {"hasher": HASHER, "bands": PLAN.bands, "threshold": 0.7}
    removed = lsh.deduplicate(listed, **{**same, **named}).removed
    expected = [(ids[row[0]], ids[row[1]], *row[2:]) for row in removed.tolist()]
    assert list(map(tuple, index.deduplicate(**named))) == expected
    own = {name: value for name, value in named.items() if name not in ("keep", "clusters")}
    pairs = [(ids[i], ids[j], similarity) for i, j, similarity in lsh.find_pairs(listed, **{**same, **own})]
    assert list(index.find_pairs(**own)) == pairs
    return len(expected)


WAYS: list[dict[str, Any]] = [
    {},
    {"threshold": 0.6},
    {"threshold": 0.9},
    {"num_threads": 3},
    {"max_memory": "100KB"},
    {"max_memory": "100KB", "num_threads": 2, "verify": "sketch"},
    {"keep": "last"},
    {"clusters": "components"},
    {"verify": "sketch"},
    {"verify": None},
]


@pytest.mark.few(2)
@pytest.mark.parametrize("threshold", [0.7, 0.8, 0.9, 1.0])
@pytest.mark.parametrize("originals", [40, 3, 1])
@pytest.mark.parametrize("seed", range(4))
def test_dumps_one_after_another_equal_all_at_once(tmp_path, originals, threshold, seed):
    """Twelve dumps through an index. With few originals the texts are families, most of them near the threshold."""
    texts, step = corpus(10 + seed, 480, originals), 40
    together = lsh.deduplicate(texts, threshold, hasher=HASHER, bands=PLAN.bands)
    expected = {row[0]: row[1:] for row in together.removed.tolist()}
    found, copies = dict[int, Any](), np.zeros(len(texts), np.int64)
    with Index.create(tmp_path / "index", HASHER, bands=PLAN) as index:
        for start in range(0, len(texts), step):
            result = lsh.deduplicate(texts[start : start + step], threshold, against=index)
            assert result.old_ids is not None
            for document, kept, *others, side in result.removed.tolist():
                witness = start + kept if side == "new" else result.old_ids[kept]
                found[start + document] = (witness, *others)
            copies[start : start + step] += result.copies
            copies[[result.old_ids[kept] for kept in result.old_copies["kept"]]] += result.old_copies["copies"]
            index.add_docs([texts[start + i] for i in result.kept], (start + result.kept).tolist())
            index.commit()
    assert found == expected
    assert copies.tolist() == together.copies.tolist()


@pytest.mark.few(1)
@pytest.mark.parametrize("sketch", ["8bit", "full"])
@pytest.mark.parametrize(("num_old", "num_new"), [(160, 80), pytest.param(900, 500, marks=pytest.mark.slow)])
def test_equals_the_list(tmp_path, sketch, num_old, num_new):
    """8 bits give other estimates, so they are tested separately."""
    index = filled(tmp_path / "index", corpus(1, num_old), sketch=sketch)
    old, new = texts_of(index), corpus(2, num_new)
    for named in WAYS:
        if sketch != "8bit" or named.get("verify", "exact") == "exact":
            assert len(check_against(new, index, old, **named).removed) > num_new / 5
            assert check_inside(index, old, **named) > num_new / 5
    if sketch == "8bit":
        check_against(new, index, old, keep="longest")
        check_against(new, index, old, keep=np.arange(num_new) % 17)
        listed = lsh.find_pairs(list(old.values()), 0.7, hasher=HASHER, bands=PLAN.bands, verify=None)
        pairs = {(list(old)[i], list(old)[j]) for i, j, _ in listed}
        assert {pair[:2] for pair in index.find_pairs(verify=None)} == pairs
    assert len(list(index)) == len(old)


def test_buckets_of_very_many_documents(tmp_path, monkeypatch):
    """More members of a bucket than are compared, copies among them.

    All texts share the words of one base, so most bands have one large bucket.
    """
    rng = random.Random(5)
    base = random.Random(0).choices(WORDS, k=40)

    def near() -> str:
        words = list(base)
        words[rng.randrange(3)] = rng.choice(WORDS[:8])
        return " ".join(words)

    monkeypatch.setattr(lsh.engine.dedup, "LIMIT", 100)
    old, new = [near() for _ in range(200)], [f"{near()} {-i}" for i in range(30)]
    old += [f"{text} {i}" for i, text in enumerate(old)]
    index = filled(tmp_path / "index", old)
    assert counts(check_against(new, index, texts_of(index)))["capped"] > 0


def test_small_steps(tmp_path, monkeypatch):
    """Members, texts and buckets in many pieces, and keys of a stream whose length is unknown."""
    index = filled(tmp_path / "index", corpus(3, 300))
    for module, name, value in (
        (lsh.engine.index_candidates, "SKETCHES_STEP", 7),
        (lsh.engine.index_candidates, "TEXTS_STEP", 5),
        (lsh.engine.index_candidates, "SPARE", 1),
        (lsh.store.view, "KEYS_STEP", 2),
    ):
        monkeypatch.setattr(module, name, value)
    old, new = texts_of(index), corpus(4, 200)
    result = check_against(new, index, old)
    again = lsh.deduplicate(lambda: iter(new), against=index)
    assert rows(again, []) == rows(result, [])
    check_inside(index, old)


def test_a_collision_reads_everything_again(tmp_path, monkeypatch):
    """Content keys of three values in the first reading: the second has another secret and the right result."""
    index = filled(tmp_path / "index", corpus(3, 200))
    new, real, readings = corpus(4, 100), lsh.engine.corpus.content_keys, []

    def colliding(batch: Any, secret: bytes, out: Any) -> None:
        if secret not in readings:
            readings.append(secret)
        real(batch, secret, out)
        if secret == readings[0]:
            out %= 3

    expected = lsh.deduplicate(new, against=index)
    for module in (lsh.engine.corpus, lsh.engine.index_candidates):
        monkeypatch.setattr(module, "content_keys", colliding)
    result = lsh.deduplicate(new, against=index)
    assert len(readings) == 2
    assert rows(result, []) == rows(expected, [])
    assert counts(result) == counts(expected)


def test_unknown_texts(tmp_path):
    old = [text for text in corpus(1, 100) if len(text) > 5]
    with Index.create(tmp_path / "index", HASHER, bands=PLAN, texts=None, sketch="full") as index:
        index.add_docs(old, range(len(old)))
    index = Index.open(tmp_path / "index")
    for run in (
        lambda **named: lsh.deduplicate(old, against=index, **named),
        lambda **named: list(lsh.find_pairs(old, others=index, **named)),
        index.deduplicate,
        lambda **named: list(index.find_pairs(**named)),
    ):
        with pytest.raises(ValueError, match=r"^verify='exact' compares texts, and the index stores none: open it"):
            run()
        assert len(run(verify="sketch"))
    result = lsh.deduplicate(old, against=index, verify="sketch")
    assert not result.keep.any()
    assert (result.removed["similarity"] == 1).all()
    assert not result.removed["identical"].any()
    check_against(corpus(2, 200), Index.open(tmp_path / "index", texts=dict(enumerate(old)).get), dict(enumerate(old)))
    known = Index.open(tmp_path / "index", texts={0: old[0]}.get)
    with pytest.raises(ValueError, match=r"^the function texts of the index has no text for id \d+$"):
        lsh.deduplicate(old, against=known)
    result = lsh.deduplicate(old, against=known, verify="sketch")
    assert not result.keep.any()
    identical = result.removed["document"][result.removed["identical"]]
    assert set(identical) == {i for i, text in enumerate(old) if text == old[0]}


def test_estimates_from_eight_bits(tmp_path):
    """They are corrected for equal bytes of different components: unbiased, and 0 at the least."""
    old, new = corpus(1, 300, 20), corpus(2, 300, 20)
    with Index.create(tmp_path / "index", HASHER, bands=PLAN, texts=None) as index:
        index.add_docs(old, range(300))
    low = HASHER.fingerprints(old).astype(np.uint8), HASHER.fingerprints(new).astype(np.uint8)
    pairs = list(lsh.find_pairs(new, others=Index.open(tmp_path / "index"), verify="sketch"))
    assert len(pairs) > 500
    for i, j, similarity in pairs:
        share = float((low[0][j] == low[1][i]).mean())
        assert similarity == pytest.approx((share - 1 / 256) / (1 - 1 / 256))
        assert similarity >= 0.7
    every = {(i, j) for i, j, _ in lsh.find_pairs(new, others=Index.open(tmp_path / "index"), verify=None)}
    assert {(i, j) for i, j, _ in pairs} == {
        (i, j) for i, j in every if ((low[0][j] == low[1][i]).mean() - 1 / 256) / (1 - 1 / 256) >= 0.7
    }
    result = lsh.deduplicate(new, against=Index.open(tmp_path / "index"), verify="sketch")
    assert result.removed["similarity"].min() >= 0.7 > result.near["similarity"].max() > 0


def test_other_parameters_are_an_error(tmp_path):
    index = filled(tmp_path / "index", corpus(1, 40))
    same = {"hasher": HASHER, "bands": PLAN.bands, "shingles": lsh.Shingles(3), "num_seeds": 64, "recall": 0.95}
    for name, other in (
        ("hasher", lsh.MinHasher(64, scheme="fss")),
        ("bands", lsh.Bands(4, 4)),
        ("shingles", lsh.Shingles(4)),
        ("num_seeds", 128),
        ("recall", 0.5),
    ):
        for function, second in ((lsh.deduplicate, "against"), (lsh.find_pairs, "others")):
            function(["a text"], **{second: index, name: same[name]})
            with pytest.raises(ValueError, match=rf"^{name} must be that of the index given as {second} \(") as caught:
                function(["a text"], **{second: index, name: other})
            assert repr(other) in str(caught.value)
    lsh.deduplicate(["a text"], against=index, bands=PLAN)


def test_errors(tmp_path):
    index = filled(tmp_path / "index", corpus(1, 40))
    with pytest.raises(ValueError, match=r"^random_state and against, an index, cannot be combined"):
        lsh.deduplicate(["a text"], against=index, random_state=1)
    for run in (lambda **named: lsh.deduplicate(["a text"], against=index, **named), index.deduplicate):
        message = r"^threshold=0\.2 has a recall of 0\.\d+ with the bands .* for 0\.7; create"
        with pytest.raises(ValueError, match=message):
            run(threshold=0.2)
    result = lsh.deduplicate(corpus(2, 100), 0.8, against=index)
    assert result.parameters["recall"] == index.recall_at(0.8, min_similarity=0.8) > index.recall_at(0.7)
    assert result.parameters["plan"] == PLAN
    copied = pickle.loads(pickle.dumps(result))
    assert (copied.old_ids, copied.removed.tolist()) == (result.old_ids, result.removed.tolist())
    assert (lsh.deduplicate(["a"]).old_ids, "recall" in lsh.deduplicate(["a"]).parameters) == (None, False)
    index.close()
    with pytest.raises(ValueError, match=r"^the index is closed; open it again"):
        lsh.deduplicate(["a text"], against=index)


def test_later_changes_of_the_index_have_no_effect(tmp_path):
    """The pairs are those of the moment of the call, also where the index is changed before they are read."""
    index = filled(tmp_path / "index", corpus(1, 200))
    old, new = texts_of(index), corpus(2, 100)
    expected, inside = list(lsh.find_pairs(new, others=index)), list(index.find_pairs(max_memory="10MB", num_threads=1))
    found, within = lsh.find_pairs(new, others=index), index.find_pairs()
    for doc_id in old:
        index.remove(doc_id)
    assert (index.deduplicate(), list(index.find_pairs()), index.deduplicate()) == ([], [], [])
    result = lsh.deduplicate(["one text", "one text"], against=index)
    assert (result.keep.tolist(), result.old_ids, counts(result)["old"]) == ([True, False], (), 0)
    index.add_docs(new, range(10_000, 10_100))
    index.compact()
    assert (list(found), list(within)) == (expected, inside)
    assert list(lsh.find_pairs([], others=index)) == []
    assert len(lsh.deduplicate([], against=index)) == 0


def test_damage_is_an_error(tmp_path):
    """A byte of every block of a segment in turn is flipped: an IndexDamagedError, or the block is not read."""
    with filled(tmp_path / "index", corpus(1, 2000)) as index:
        index.compact()
    path = next((tmp_path / "index").glob("segment-*"))
    whole, new = path.read_bytes(), corpus(2, 300)
    with Index.open(tmp_path / "index") as index:
        expected, inside = rows(lsh.deduplicate(new, against=index), []), index.deduplicate()
    found = list[str]()
    for at in range(1000, len(whole), 1 << 16):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        for run in (
            lambda index: rows(lsh.deduplicate(new, against=index), []) == expected,
            lambda index: index.deduplicate() == inside,
        ):
            try:
                assert run(Index.open(tmp_path / "index"))
            except IndexDamagedError as error:
                found.append(str(error))
    assert len(found) > len(whole) >> 16
    assert all(path.name in message for message in found)
