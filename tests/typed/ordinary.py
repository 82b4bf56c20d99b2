"""Every public name in its ordinary uses, with the types of the results; `tests/test_types.py` checks and runs it."""

import datetime
from collections.abc import Callable, Iterator, KeysView, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import lsh
from lsh import cache as cache_module
from lsh import minhash, plot, presets, report, typing
from lsh.index import IndexDamagedError, IndexLockedError, IndexReplacedError
from lsh.lsh import Cache as OlderCache

TEXTS = ["A cat sat on the mat today.", "A dog ran in the park, and back.", "A cat sat on the mat today!"]
IDS = ["cat", "dog", "copy"]


def stream() -> Iterator[str]:
    """Yield the texts, each time the same."""
    yield from TEXTS


def collections() -> None:
    """Use `deduplicate`, `Deduplication` and `find_pairs`."""
    result = assert_type(lsh.deduplicate(TEXTS, shingles=lsh.Shingles(4)), lsh.Deduplication)
    lsh.deduplicate(TEXTS, 0.8, recall=0.95, against=TEXTS, keep="longest", clusters="components", verify=None)
    lsh.deduplicate(stream, 0.8, max_memory="2GB", temp_dir=Path(), missing="empty", num_threads=1)
    lsh.deduplicate(np.array(TEXTS), keep=np.array(["2024-01-01", "2024-01-02", "2024-01-03"], "M8[D]"))
    lsh.deduplicate([b"bytes", "str", None], missing="empty", keep=[3, 1.5, 2])
    lsh.deduplicate(iter(TEXTS), keep=(1, 2, 3))
    lsh.deduplicate(stream(), keep="last")
    lsh.deduplicate(TEXTS, progress=lambda stage, done, total: None)
    lsh.deduplicate(TEXTS, bands=lsh.Bands(20, 6), verify="sketch", hasher=lsh.MinHasher(128, char_ngram=5))
    lsh.deduplicate(TEXTS, bands=lsh.plan(0.8, num_seeds=64), num_seeds=64, random_state=None)
    assert_type(result.keep, NDArray[np.bool_])
    assert_type(result.kept, NDArray[np.int64])
    assert_type(result.labels, NDArray[np.int64])
    assert_type(result.copies, NDArray[np.int64])
    assert_type(result.old_copies, NDArray[np.void])
    assert_type(result.clusters(), list[NDArray[np.int64]])
    assert_type(len(result), int)
    assert_type(result.summary(), dict[str, Any])
    assert_type(result.parameters, dict[str, Any])
    assert_type(result.removed, NDArray[np.void])
    assert_type(result.near, NDArray[np.void])
    unique: list[str] = [TEXTS[position] for position in result.kept.tolist()]
    assert unique == TEXTS[:2]
    for i, j, similarity in lsh.find_pairs(TEXTS, 0.8, others=stream, shingles=lsh.Shingles(2, unit="word")):
        assert_type(i, int)
        assert_type(similarity, float)
        assert TEXTS[i][:5] == TEXTS[j][:5]


def passages() -> None:
    """Use `find_passages`, `Passages` and their report."""
    found = assert_type(lsh.find_passages(stream, 8, max_memory="2GB", num_threads=1), lsh.Passages)
    lsh.find_passages(TEXTS, 5, unit="line", shingles=lsh.Shingles(lowercase=True), against=TEXTS, keep=[3, 1.5, 2])
    assert_type(found.spans, NDArray[np.void])
    assert_type(found.cuts, NDArray[np.void])
    assert_type(found.emptied, NDArray[np.int64])
    assert_type(found.summary(), dict[str, Any])
    assert_type(found.parameters, dict[str, Any])
    assert_type(len(found), int)
    assert_type(found.text_spans(2, TEXTS[2]), NDArray[np.void])
    left: list[typing.Text | None] = list(found.cut(TEXTS))
    assert left[0] == TEXTS[0]
    choice = assert_type(report.choose_passages(found), report.PassageChoice)
    assert_type(report.passages(found, texts=TEXTS, choice=choice, ids=IDS), str)


def contained() -> None:
    """Use the report of `find_contained`."""
    assert_type(lsh.deduplicate_contained(TEXTS, 0.5, keep="first", num_threads=1), lsh.Deduplication)
    found = lsh.find_contained(TEXTS, stream, 0.5)
    choice = assert_type(report.choose_contained(found), report.ContainedChoice)
    assert_type(report.contained(found, TEXTS, stream, choice=choice, item_ids=IDS, sources=["a", "b", "a"]), str)


def tables(result: lsh.Deduplication) -> None:
    """Make tables, which require pandas and pyarrow."""
    result.to_pandas()
    result.to_pandas("clusters")
    result.to_pandas("documents", ids=["a", "b"], texts=TEXTS)
    result.to_arrow("near")  # pyright: ignore[reportUnknownMemberType] - pyarrow has no types


def texts_and_fingerprints() -> None:
    """Use `Shingles`, `jaccard`, `jaccard_matrix`, `MinHasher` and `simd_level`."""
    shingles = lsh.Shingles(4, "char", lowercase=True, collapse_whitespace=True, normalize="NFKC")
    assert_type(shingles.of(TEXTS[0]), "set[str | bytes]")
    assert_type(lsh.jaccard(TEXTS[0], b"bytes", shingles=shingles), float)
    assert_type(lsh.jaccard_matrix(TEXTS, np.array(TEXTS), shingles=shingles), NDArray[np.float64])
    assert lsh.Shingles.from_dict(shingles.to_dict()) == shingles
    hasher = lsh.MinHasher(seeds=100, shingles=shingles, scheme="fss", random_state=7)
    minhash.MinHasher([1, 2, 3], char_ngram=5, hashbytes=4)
    assert lsh.MinHasher.from_dict(hasher.to_dict()) == hasher
    one, many = hasher.fingerprint(TEXTS[0]), hasher.fingerprints(stream())
    assert_type(hasher.jaccard(one, TEXTS[1]), float)
    assert_type(hasher.interval(one, many[1], confidence=0.9), tuple[float, float])
    assert_type(hasher.similarities(one, many), NDArray[np.float64])
    assert_type(hasher.similarities(many), NDArray[np.float64])
    assert_type(hasher.is_empty(many), NDArray[np.bool_])
    assert hasher.jaccard(hasher.merge(one, TEXTS[1]), hasher.empty) == 0
    for position, rows in hasher.chunks(stream(), missing="empty"):
        assert_type(position, int)
        assert rows.shape[1] == hasher.num_seeds == hasher.seeds
    assert_type(hasher.shingles, lsh.Shingles)
    assert_type(shingles.depends_on_unicode, bool)
    assert shingles.apply(TEXTS[0]), (shingles.n, shingles.unit, shingles.strip_punctuation)
    assert hasher.seed_values.tolist() == [hasher.random_state]
    assert hasher.dtype == np.uint32
    assert (hasher.hashbytes, hasher.char_ngram, hasher.scheme) == (4, 4, "fss")
    assert_type(lsh.simd_level(), str)


def bands_and_plans() -> None:
    """Use `plan`, `Plan` and `Bands`."""
    plan = assert_type(lsh.plan(0.8, 0.99, background=TEXTS, shingles=lsh.Shingles(5), documents=10**6), lsh.Plan)
    lsh.plan(background=[0.1, 0.2])
    lsh.plan(background=np.array([0.1, 0.2]))
    assert_type(plan.recall_at(0.8), float)
    assert_type(plan.recall_at([0.1, 0.2]), NDArray[np.float64])
    assert_type(plan.probability(0.8), float)
    assert_type(plan.similarity_at(0.5), float)
    assert_type(plan.bands, lsh.Bands)
    assert_type((plan.loss, plan.documents, plan.false_candidates), "tuple[float, int | None, float | None]")
    assert_type((plan.background, plan.shingles), "tuple[str | None, lsh.Shingles | None]")
    assert_type((plan.threshold, plan.recall, plan.num_seeds), tuple[float, float, int])
    assert lsh.Plan.from_dict(plan.to_dict()) == plan
    cost = assert_type(plan.cost(10**9, text_bytes=1200), lsh.Cost)
    assert_type((cost.core_hours, cost.max_memory, cost.false_candidates), "tuple[float, int | None, float | None]")
    assert cost.to_dict()
    bands = lsh.Bands(20, 5)
    assert bands == lsh.Bands(widths=[5] * 20) == lsh.Bands.from_string(bands.to_string())
    assert lsh.Bands.from_dict(bands.to_dict()) == bands
    assert_type(bands.probability(np.linspace(0, 1, 3)), NDArray[np.float64])
    assert_type(bands.band_width, "int | tuple[int, ...]")
    assert_type(bands.widths, tuple[int, ...])
    assert_type((bands.num_bands, bands.num_components), tuple[int, int])
    assert bands.bounds.tolist() == list(range(0, 101, 5))
    assert_type(bands.keys(lsh.MinHasher(100).fingerprints(TEXTS)), NDArray[np.uint64])
    try:
        lsh.Cache(lsh.MinHasher(100), num_bands=7)
    except lsh.BandError as error:
        assert_type(error, lsh.BandError)


def caches(folder: Path) -> None:
    """Use `Cache`, `Match` and `Matches`."""
    hasher = lsh.MinHasher(128, char_ngram=4)
    lsh.Cache(hasher, 16)
    lsh.Cache(hasher, bands=lsh.plan(0.8, num_seeds=128))
    lsh.Cache.create(bands=lsh.Bands(20, 6), threshold=0.8, shingles=lsh.Shingles(5), random_state=None)
    cache = assert_type(lsh.Cache.create(hasher, threshold=0.7, recall=0.9), cache_module.Cache)
    cache.add_doc(TEXTS[0], "cat")
    cache.add(TEXTS[1], id="dog")
    cache.add_docs(texts=stream(), ids=IDS)
    cache.add_fingerprint(hasher.fingerprint(TEXTS[0]), ("any", "hashable"))
    cache.add_fingerprints(hasher.fingerprints(TEXTS), range(3))
    assert_type(cache.query(TEXTS[0], top=2, min_similarity=0.5), lsh.Matches)
    assert_type(cache.query(id="cat").recall, float)
    assert_type(cache.query_docs(TEXTS, top=1), list[lsh.Matches])
    assert_type(cache.is_duplicate(TEXTS[0]), bool)
    found: set[str] = cache.get_duplicates_of(doc_id="cat", min_jaccard=0.5)
    pairs: set[tuple[str, str]] = cache.get_all_duplicates(min_jaccard=0.5)
    first: Iterator[tuple[str, str]] = cache.iter_duplicates()
    rows: Mapping[str, NDArray[np.uint32 | np.uint64]] = cache.fingerprints
    buckets: tuple[Mapping[int, KeysView[str]], ...] = cache.bins
    assert found, (pairs, next(first), rows, buckets)
    assert cache.filter_candidates({("cat", "copy")}, 0.1)
    assert_type((cache.hasher, cache.plan, cache.bands), tuple[lsh.MinHasher, lsh.Plan, lsh.Bands])
    assert_type((cache.num_bands, len(cache), "cat" in cache), tuple[int, int, bool])
    assert_type((cache.recall_at(0.8, min_similarity=0.7), cache.query(TEXTS[0]).min_similarity), tuple[float, float])
    for number, row in cache.bins_(TEXTS[0]):
        assert number + len(row) > 0
    cache.remove("dog")
    cache.remove_id(("any", "hashable"))
    cache.remove_doc(TEXTS[1])
    lsh.Cache(hasher).save(folder / "cache")
    assert_type(lsh.Cache.load(str(folder / "cache")), lsh.Cache)
    cache.clear()
    OlderCache(bands=16, hasher=hasher).update(hasher.fingerprint(TEXTS[0]), "cat")


def indexes(folder: Path) -> None:
    """Use `Index` and the classes of `lsh.index`."""
    known = dict(zip(IDS, TEXTS))
    text_of: Callable[[str], str | None] = known.get
    lsh.Index.create(folder / "function", texts=text_of).close()
    lsh.Index.open(folder / "function", texts=text_of).close()
    shingles = lsh.Shingles(4)
    lsh.Index.create(folder / "planned", bands=lsh.plan(0.7, 0.9), shingles=shingles, sketch="full").close()
    lsh.Index.create(folder / "bands", bands=lsh.Bands(20, 6), threshold=0.8, random_state=None).close()
    with lsh.Index.create(folder / "index", threshold=0.7, recall=0.9, shingles=shingles, texts="stored") as index:
        index.add(TEXTS[0], "cat", time=datetime.datetime.now(datetime.timezone.utc))
        index.add_docs(texts=TEXTS, ids=IDS, times=[None, 5, np.datetime64("2024-01-01")])
        index.set_time("cat", None)
        assert_type(index.query(TEXTS[0], top=2, min_similarity=0.8), lsh.Matches)
        assert_type(index.query(id="cat").recall, float)
        assert_type(index.query_docs(TEXTS), list[lsh.Matches])
        names: list[str] = [match.id for match in index.query(TEXTS[0]) if match.verified]
        stored: list[str] = list(index)
        assert names, stored
        assert_type(index.query(TEXTS[0])[0], lsh.Match)
        assert_type(index.text_of("cat"), bytes)
        assert_type(index.time_of("cat"), "float | None")
        assert_type(index.expire(before=3), int)
        assert_type(index.deduplicate(0.8, keep="last"), list[lsh.Duplicate])
        assert_type(next(index.find_pairs(verify="exact")), tuple[Any, Any, float])
        assert_type(index.info(), dict[str, Any])
        assert_type((index.plan, index.bands, index.hasher), tuple[lsh.Plan, lsh.Bands, lsh.MinHasher])
        assert_type((index.threshold, index.recall, index.recall_at(0.9)), tuple[float, float, float])
        assert_type((index.path, len(index), "cat" in index), tuple[str, int, bool])
        index.commit()
        index.compact()
        index.verify()
        index.remove("cat")
        index.remove_ids(iter(["dog"]))
        index.rollback()
        result = lsh.deduplicate(TEXTS, against=index)
        assert_type(result.old_ids, "tuple[Any, ...] | None")
        for i, stored_id, similarity in lsh.find_pairs(TEXTS, others=index):
            assert TEXTS[i], (known[stored_id], similarity)
        with lsh.Index.open(folder / "index") as reader:
            assert_type(reader.refresh(), bool)
        try:
            lsh.Index.open(folder / "index", "a")
        except (IndexReplacedError, IndexDamagedError) as error:
            raise AssertionError from error
        except IndexLockedError as error:
            assert_type(error, IndexLockedError)


def screens(folder: Path) -> None:
    """Use `Screen` and `lsh.Verdict`."""
    with lsh.Screen.create(folder / "screen", reject=0.9, recommend=0.6, texts="stored", num_seeds=256) as screen:
        assert_type(screen.submit(TEXTS[0], "cat", time=5.0), lsh.Verdict)
        assert_type(screen.submit_docs(TEXTS[1:], IDS[1:]), list[lsh.Verdict])
        assert_type(screen.check_docs(TEXTS), list[lsh.Verdict])
        decision, matches = screen.check(TEXTS[0])
        if decision == "reject":
            assert_type(matches, lsh.Matches)
        assert_type((screen.reject, screen.recommend, screen.top), tuple[float, float, int])
        assert_type(lsh.Screen(screen.index, 0.95, top=3), lsh.Screen)
        screen.store_thresholds()
        screen.commit()
    lsh.Screen.open(folder / "screen", "a", top=5).close()
    lsh.Screen.create(folder / "screen of bands", bands=lsh.Bands(80, 3)).close()


def reports_and_presets() -> None:
    """Use `lsh.report` and `lsh.presets`."""
    result = lsh.deduplicate(TEXTS, shingles=lsh.Shingles(4))
    choice = assert_type(report.choose(result, sizes=[len(text) for text in TEXTS]), report.Choice)
    assert_type((choice.positions, choice.against_positions), tuple[list[int], list[int]])
    assert_type(choice.removed, tuple[report.Pair, ...])
    assert_type(report.html(result, texts=TEXTS, ids=IDS, sources=["a", "b", "a"]), str)
    assert_type(report.html(result, texts=lambda: stream()), str)
    for excerpt in report.excerpts(TEXTS[0], TEXTS[2], length=100):
        assert_type(excerpt, report.Excerpt)
        assert_type(excerpt.pieces, list[tuple[str, bool]])
    assert_type(presets.preset("nemo"), presets.Preset)
    assert_type(presets.fineweb.bands, lsh.Bands)
    assert_type((presets.fineweb.source, presets.fineweb.differs), tuple[str, tuple[str, ...]])
    assert presets.NAMES, presets.bigcode.to_dict()
    lsh.deduplicate(TEXTS, **presets.fineweb.options())
    palm = presets.rule("palm")
    assert_type(palm, presets.Rule)
    assert_type((palm.window, palm.min_shared), tuple[float, int | None])
    assert_type(lsh.find_contained(TEXTS, TEXTS, **palm.options()), lsh.Contained)
    assert presets.RULES, presets.Rule.from_dict(palm.to_dict())
    assert_type(lsh.__version__, str)


def aliases(
    texts: typing.Texts,
    read: typing.TextsOrCallable,
    lookup: typing.Lookup,
    progress: typing.Progress,
    similarities: typing.Numbers = (0.5, 0.9),
    verify: typing.Verify = None,
    clusters: typing.Clusters = "components",
    missing: typing.Missing = "empty",
    keep: typing.Keep = "longest",
    name: typing.PresetName = "nemo",
    rule: typing.RuleName = "gpt3",
) -> typing.Floats:
    """Use the types of `lsh.typing` for what a program passes on."""
    scheme: typing.Scheme = "fss"
    unit: typing.Unit = "char"
    form: typing.NormalForm = "NFC"
    hasher = lsh.MinHasher(16, scheme=scheme, shingles=lsh.Shingles(3, unit, normalize=form))
    width: typing.HashBytes = hasher.hashbytes
    rows: typing.Array = hasher.fingerprints(texts, missing=missing)
    one: typing.Fingerprint = rows[0]
    many: typing.Fingerprints = [rows[0], rows[1]]
    array: typing.SupportsArray = hasher.similarities(one, many)
    assert width == np.asarray(array).ndim * 4
    result = lsh.deduplicate(read, clusters=clusters, verify=verify, keep=keep, progress=progress)
    ids: typing.TextsByPosition = {position: str(position) for position in range(len(result))}
    sizes: typing.Indexed = [len(text) for text in TEXTS]
    again: typing.TextStream = stream
    assert report.html(result, texts=again, ids=ids, sizes=sizes), (presets.preset(name), presets.rule(rule))
    table: typing.Table = "near"
    part: typing.PassageUnit = "paragraph"
    assert len(lsh.find_passages(TEXTS, unit=part)) == 0
    sketch: typing.Sketch = "full"
    decision: typing.Decision = "accept"
    doc_id: typing.DocId = "cat"
    found: typing.FoundId = doc_id
    text: typing.Text | None = lookup(found)
    time: typing.Time = 5.0
    arrow: list[typing.ArrowArray | typing.ArrowStream] = []
    print(table, sketch, decision, text, time, arrow)
    return lsh.plan().recall_at(similarities)


def figures(similarities: NDArray[np.float64]) -> None:
    """Use `lsh.plot`, which requires matplotlib."""
    plot.s_curve(lsh.Bands(20, 5), lsh.plan(), threshold=0.8)
    plot.similarity_histogram(similarities, threshold=0.8)
    plot.similarity_matrix(lsh.jaccard_matrix(TEXTS))


def main(folder: Path) -> None:
    """Run what numpy is enough for."""
    collections()
    passages()
    contained()
    texts_and_fingerprints()
    bands_and_plans()
    caches(folder)
    indexes(folder)
    screens(folder)
    reports_and_presets()
    aliases(TEXTS, stream, dict(zip(IDS, TEXTS)).get, lambda stage, done, total: None)
