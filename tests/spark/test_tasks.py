"""What the tasks of `lsh.spark` compute, without Spark."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import reference
from spark_texts import TEXTS, edited, words

import lsh
from lsh.engine.matching import Matching

pa = pytest.importorskip("pyarrow")

from lsh.stages import tasks  # noqa: E402


def batches(columns: dict[str, Any], size: int) -> Iterator[Any]:
    table = pa.table(columns)
    return iter(table.to_batches(max_chunksize=size) if len(table) else [])


def rows_of(used: Matching, texts: list[Any], ids: list[Any] | None = None, size: int = 40) -> Iterator[Any]:
    """Batches of texts, their nodes, and the hashes of ids."""
    nodes = tasks.nodes_of_column(pa.array(texts, pa.string()), used)
    hashes = {} if ids is None else {"id": pa.array(ids, pa.int64())}
    return batches({"text": pa.array(texts, pa.string()), "node": nodes, **hashes}, size)


def pairs_of(found: Iterator[Any]) -> list[tuple[int, int]]:
    return [pair for batch in found for pair in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist())]


def links_of(found: Iterator[Any]) -> list[tuple[int, int]]:
    return [pair for a, b in tasks.links_in(found) for pair in zip(a.tolist(), b.tolist())]


def components(links: list[tuple[int, int]]) -> dict[int, int]:
    """The least node of the component of each node."""
    nodes = sorted({node for pair in links for node in pair})
    number = {node: i for i, node in enumerate(nodes)}
    roots = reference.components(len(nodes), [(number[a], number[b]) for a, b in links])
    return {node: nodes[root] for node, root in zip(nodes, roots)}


def random_links(seed: int, nodes: int, count: int) -> list[tuple[int, int]]:
    draw = random.Random(seed)
    names = [draw.randrange(-(2**63), 2**63) for _ in range(nodes)]
    return [(draw.choice(names), draw.choice(names)) for _ in range(count)]


@pytest.mark.parametrize("held", [1, tasks.LINK_BYTES])
@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(("nodes", "count"), [(1, 1), (5, 3), (60, 30), (60, 100)])
def test_connect(monkeypatch, held, size, nodes, count):
    monkeypatch.setattr(tasks, "LINK_BYTES", held)
    links = random_links(nodes + count, nodes, count)
    expected = components(links)
    a, b = tasks.forest(*(np.array(values, np.int64) for values in zip(*links)))
    assert dict(zip(b.tolist(), a.tolist())) == expected
    every = np.array([*links, *((node, node) for node in expected)], np.int64).T
    packed = pa.Table.from_batches(tasks._packed_links(*every, 4))
    parts = [packed.filter(pa.compute.equal(packed["range"], part)) for part in range(16)]
    reduced = [row for part in parts for row in tasks.connect(2, iter(part.to_batches(max_chunksize=size)))]
    found = pairs_of(tasks.connect(None, iter(reduced)))
    assert [(b, a) for a, b in found] == sorted(expected.items())


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(("nodes", "count"), [(2, 1), (60, 40), (60, 100), (200, 190)])
def test_star_steps(size, nodes, count):
    """Large and small stars in turn end in stars with the least node of each component in the middle."""
    edges = {(min(pair), max(pair)) for pair in random_links(nodes * count, nodes, count) if pair[0] != pair[1]}
    expected = {(a, b) for b, a in components(list(edges)).items() if a != b}

    def step(task: Any, rows: list[tuple[int, int]]) -> set[tuple[int, int]]:
        return set(pairs_of(task(batches({"u": [u for u, _ in rows], "v": [v for _, v in rows]}, size))))

    for _ in range(40):
        before = edges
        both = sorted([*edges, *((b, a) for a, b in edges), *edges])  # some rows twice
        edges = step(tasks.large_star, both)
        edges = step(tasks.small_star, sorted((max(pair), min(pair)) for pair in edges))
        if edges == before:
            break
    assert edges == expected


@pytest.mark.parametrize("verify", ["exact", None])
@pytest.mark.parametrize("chunk", [50, 1000, 1 << 20])
def test_links_connect_similar_texts_that_share_a_bucket(monkeypatch, chunk, verify):
    """Of three tasks, with chunks of a few keys, as of the whole corpus."""
    monkeypatch.setattr(tasks, "CHUNK", chunk)
    monkeypatch.setattr(tasks, "CHUNK_BYTES", 48 * chunk)
    monkeypatch.setattr(tasks, "MOST_BYTES", 20 * chunk)
    monkeypatch.setattr(tasks, "RECORD_BYTES", 2 * chunk)
    used, bits = Matching(verify=verify), 4
    rows = [row for i in range(3) for row in tasks.fingerprint(used, bits, rows_of(used, TEXTS[i::3]))]
    table = pa.Table.from_batches(rows).sort_by("range")
    links = links_of(tasks.link(used, bits, 2, iter(table.to_batches(max_chunksize=5))))
    hasher, bands, (low_bits, most) = used.hasher, used.bands, used.low_bits
    fingerprints = hasher.fingerprints(TEXTS)
    nodes = tasks.nodes_of_column(pa.array(TEXTS), used)
    keyed = np.flatnonzero(~hasher.is_empty(fingerprints))
    keys = bands.keys(fingerprints).T
    shared = [
        (int(nodes[j]), int(nodes[i]))
        for i in keyed
        for j in keyed[(keyed < i) & (keys[keyed] == keys[i]).any(axis=1)]
        if (low_bits == 0 or np.count_nonzero((fingerprints[i] ^ fingerprints[j]) % 2**low_bits) <= most)
    ]
    assert components(links) == components(shared)
    assert (verify is None) == (low_bits == 0)


def row_size(used: Matching) -> int:
    """The bytes of a key, a node and low bits."""
    return 16 + 8 * used.low_bits[0] * -(-used.hasher.num_seeds // 64)


def test_comparisons_that_are_left_out_are_counted(monkeypatch):
    """In a row of a range of its own, beside that of the null texts and of ids to look at."""
    monkeypatch.setattr(tasks, "LIMIT", 1)
    used = Matching(0.3, bands=lsh.Bands(4, 1), shingles=lsh.Shingles(1, "word"))
    texts = [f"{i} {i} same {i + 100} {i + 200}" for i in range(30)]
    rows = tasks.fingerprint(used, 4, rows_of(used, [*texts, None, None], [*range(29), 28, None, 31]))
    table = pa.Table.from_batches(rows).sort_by("range")
    found = pa.Table.from_batches(list(tasks.link(used, 4, 0, iter(table.to_batches())))).to_pylist()
    counts = {row["range"]: row["count"] for row in found}
    assert counts.pop(tasks.LEFT_OUT) > 0
    assert counts == {tasks.NULLS: 2, tasks.DOUBTFUL: 2}


def test_links_of_a_large_component_are_small_rows(monkeypatch):
    """Spark sends thousands of rows at once to a task, which does not hold all links of a range either."""
    used, draw = Matching(), random.Random(0)
    base = words(draw, 40)
    texts = [edited(draw, base, 1) for _ in range(2000)] * 2
    rows = list(tasks.fingerprint(used, 4, rows_of(used, texts, size=1000)))
    sizes = [len(value.as_py()) for batch in rows for value in batch.column(1)]
    assert tasks.RECORD_BYTES - row_size(used) < max(sizes) <= tasks.RECORD_BYTES
    monkeypatch.setattr(tasks, "CHUNK", 500)
    table = pa.Table.from_batches([*rows, *rows]).sort_by("range")
    parts = tasks._ranges(4, row_size(used) // 8, iter(table.to_batches(max_chunksize=1)))
    assert max(len(pairs) for number, pairs in parts if number >> 4) <= tasks.RECORD_BYTES // 16
    links = links_of(tasks.link(used, 4, 0, iter(table.to_batches(max_chunksize=1))))
    assert len(set(components(links).values())) == 1


def test_too_many(monkeypatch):
    """What has more than 2^31 - 1 nodes or documents is an error that says what to do."""
    monkeypatch.setattr(tasks, "MAX_DOCUMENTS", 5)
    nodes = np.arange(6)
    with pytest.raises(ValueError, match=r"more than 5 texts share a bucket.* smaller max_nodes"):
        list(tasks.connect(None, tasks._packed_links(0 * nodes, nodes, 0)))
    assert len(pairs_of(tasks.connect(None, tasks._packed_links(0 * nodes[:5], nodes[:5], 0)))) == 5
    rows = {"component": [1] * 6, "old": [True, True, *[False] * 4], "id": list(range(6)), "text": ["a text"] * 6}
    with pytest.raises(ValueError, match="a component has more than 5 documents, too many to decide; use longer"):
        list(tasks.decide(Matching(), None, True, batches(rows, 4)))
    five = {name: values[:5] for name, values in rows.items()}
    assert sum(map(len, tasks.decide(Matching(), None, True, batches(five, 4)))) == 3


@pytest.mark.parametrize(("segment", "held"), [(1, 1), (1, 1 << 30), (2000, 3000), (1 << 30, 1), (1 << 30, 1 << 30)])
@pytest.mark.parametrize("with_old", [False, True])
def test_segments(monkeypatch, segment, held, with_old):
    """Components that are decided together or alone, in memory or from a file, give the same rows."""
    monkeypatch.setattr(tasks, "SEGMENT_BYTES", segment)
    monkeypatch.setattr(tasks, "HELD_BYTES", held)
    used = Matching()
    rows = []
    for component in range(20):
        draw = random.Random(component)
        base = words(draw, 40)
        some = [
            (component, with_old and draw.random() < 0.3, edited(draw, base, 1)) for _ in range(draw.randrange(2, 30))
        ]
        rows += sorted(some, key=lambda row: not row[1])
    columns = dict(zip(("component", "old", "text"), map(list, zip(*rows))))
    table = {**columns, "id": [f"{i:04}" for i in range(len(rows))]}
    given = {name: table[name] for name in ("component", "old", "id", "text")}
    decided = pa.Table.from_batches(tasks.decide(used, None, with_old, batches(given, 7))).to_pylist()
    found = [tuple(row.values()) for row in decided]
    new = [i for i, row in enumerate(rows) if not row[1]]
    old = [i for i, row in enumerate(rows) if row[1]]
    result = lsh.deduplicate([rows[i][2] for i in new], against=[rows[i][2] for i in old] if with_old else None)
    expected = []
    for row in result.removed:
        places = old if with_old and row["side"] == "old" else new
        named = (f"{new[row['document']]:04}", f"{places[row['kept']]:04}", row["similarity"].item())
        expected.append((*named, bool(row["identical"]), *([str(row["side"])] if with_old else [])))
    assert sorted(found) == sorted(expected)
    assert found


@pytest.mark.parametrize("task", [tasks.decide, tasks.pair])
def test_a_node_without_a_document(task):
    """The text of a node was there when the input was read first: its row has the component only."""
    rows = {"component": [1, 1, 2], "old": [False, False, None], "id": ["a", "b", None], "text": ["a b", "a b", None]}
    with pytest.raises(ValueError, match=r"had other texts when it was read again.*write it to a table first"):
        list(task(Matching(), None, False, batches(rows, 2)))
