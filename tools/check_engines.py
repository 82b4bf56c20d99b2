#!/usr/bin/env python3
"""Run the recipes of docs/engines.md, and check that they decide as `lsh.deduplicate` does for all texts.

Each section of the page is run after the beginning of the page, and is skipped, with a line, if its packages are not
installed. The function `unique` of a section is then given other documents: nulls, copies, no rows, any order and
partitions. Ray warns about its own code and takes seconds for each step.
"""

from __future__ import annotations

import doctest
import gzip
import importlib
import os
import random
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import checks
import numpy as np

import lsh

PAGE = (checks.ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
BEGINNING, *SECTIONS = re.split(r"(?m)^(?=## )", PAGE)
SECTION = {section.splitlines()[0].removeprefix("## "): section for section in SECTIONS}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PACKAGES = {
    "Polars": ["polars"],
    "DuckDB": ["duckdb", "pyarrow"],
    "Dask": ["dask.dataframe"],
    "Ray Data": ["ray.data", "pyarrow"],
    "Daft": ["daft", "pyarrow"],
    "datatrove": ["datatrove.executor"],
    "Fill an index": ["pyarrow"],
    "Store fingerprints": [],
}
STORY = "the ferry left the harbour at nine with two hundred passengers and a brass band on board"

Rows = list[tuple[int, str | None]]
Recipe = dict[str, Any]


@contextmanager
def recipe(name: str) -> Iterator[Recipe]:
    """Run the examples of a section, and yield what they define."""
    for package in PACKAGES[name]:
        try:
            importlib.import_module(package)
        except ImportError:
            raise checks.MissingError(f"{package} is not installed; see .ci/requirements-engines.txt") from None
    warnings.simplefilter("ignore")
    os.chdir(checks.ROOT / "examples")
    if name == "Ray Data":
        os.environ["PYTHONPATH"] = str(Path(lsh.__file__).parent.parent)  # for its workers
        ray = importlib.import_module("ray")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
        ray.data.DataContext.get_current().enable_progress_bars = False
    examples = doctest.DocTestParser().get_doctest(BEGINNING + SECTION[name], {"__name__": "__main__"}, name, "", 0)
    result = doctest.DocTestRunner(optionflags=FLAGS).run(examples, clear_globs=False)
    assert result.attempted > 8
    assert result.failed == 0
    try:
        yield examples.globs
    finally:
        if name == "Ray Data":
            ray.shutdown()
        examples.globs.clear()  # else a connection of DuckDB and its functions hold each other until the process ends


# ---- documents ----


def written(count: int, seed: int = 0) -> Rows:
    """Return documents with ids that are neither dense nor in order: near duplicates, copies, nulls, empty texts."""
    draw = random.Random(seed)
    ids = draw.sample(range(10 * count), count)
    texts: list[str | None] = []
    for _ in range(count):
        kind = draw.random()
        if kind < 0.1:
            texts.append(None if kind < 0.05 else "")
        elif kind < 0.3 and texts:
            texts.append(draw.choice(texts))  # a copy, also of a null
        elif kind < 0.6:
            texts.append(f"{STORY} {draw.randrange(count // 4)} {draw.randrange(10**6)}")
        else:
            texts.append(" ".join(str(draw.randrange(10**9)) for _ in range(12)) + " ä🦀")
    return list(zip(ids, texts))


CASES = {
    "no rows": [],
    "one row": [(7, "a single text")],
    "nulls only": [(3, None), (1, None), (2, "")],
    "copies only": [(number, STORY) for number in (5, 2, 9, 4)],
    "no two alike": [(3, "a story of a ferry"), (1, "the price of herring"), (2, None)],
    "two": [(9, STORY), (1, STORY + "!")],
    "many": written(400),
}
SLOW_CASES = {case: CASES[case] for case in ("no rows", "no two alike", "many")}  # of an engine that starts slowly


def expected(rows: Rows) -> list[int]:
    """Return the ids that `lsh.deduplicate` keeps of all texts."""
    ordered = sorted(rows)
    keep = lsh.deduplicate([text for _, text in ordered], missing="empty").keep
    return [number for (number, _), kept in zip(ordered, keep) if kept]


def columns(rows: Rows) -> dict[str, list[Any]]:
    return {"id": [number for number, _ in rows], "text": [text for _, text in rows]}


def arrow(rows: Rows) -> Any:
    pa = importlib.import_module("pyarrow")
    return pa.table(columns(rows), pa.schema([("id", pa.int64()), ("text", pa.string())]))


# ---- the recipes of each engine for other documents ----


def kept_by_polars(recipe: Recipe, rows: Rows, partitions: int) -> list[int]:
    pl = recipe["pl"]
    frame = pl.DataFrame(columns(rows), {"id": pl.Int64, "text": pl.String})
    size = max(1, -(-len(rows) // partitions))
    parts = [frame.slice(start, size) for start in range(0, max(len(rows), 1), size)]
    kept = recipe["unique"](pl.concat(parts, rechunk=False).lazy())
    found, other = (kept.collect(engine=engine)["id"] for engine in ("streaming", "in-memory"))
    assert found.sort().equals(other.sort())
    return found.to_list()


def kept_by_duckdb(recipe: Recipe, rows: Rows, partitions: int) -> list[int]:
    con, source = recipe["con"], arrow(rows)
    con.execute(f"set threads = {min(partitions, 8)}")
    con.register("source", source)
    con.execute("create or replace table docs as from source")
    return [number for number, _ in recipe["unique"](con).fetchall()]


def kept_by_dask(recipe: Recipe, rows: Rows, partitions: int) -> list[int]:
    frame = recipe["pd"].DataFrame(columns(rows)).astype({"id": "int64", "text": "str"})
    docs = recipe["dd"].from_pandas(frame, npartitions=partitions, sort=False)
    return recipe["unique"](docs).compute()["id"].tolist()


def kept_by_ray(recipe: Recipe, rows: Rows, partitions: int) -> list[int]:
    docs = recipe["ray"].data.from_arrow(arrow(rows)).repartition(partitions).materialize()
    return [row["id"] for row in recipe["unique"](docs, num_blocks=2).take_all()]


def kept_by_daft(recipe: Recipe, rows: Rows, partitions: int) -> list[int]:
    daft, table = recipe["daft"], arrow(rows)
    size = max(1, -(-len(rows) // partitions))
    docs = daft.from_arrow([table.slice(start, size) for start in range(0, max(len(rows), 1), size)])
    return recipe["unique"](docs).to_pydict()["id"]


KEPT_BY = {
    "Polars": kept_by_polars,
    "DuckDB": kept_by_duckdb,
    "Dask": kept_by_dask,
    "Ray Data": kept_by_ray,
    "Daft": kept_by_daft,
}
PARTITIONS = {"Polars": (1, 2, 40), "DuckDB": (1, 4), "Dask": (1, 2, 7), "Ray Data": (3,), "Daft": (1, 2, 40)}


# ---- the checks ----


def decides_like_deduplicate(engine: str) -> None:
    with recipe(engine) as found, tempfile.TemporaryDirectory() as temp:
        for case, rows in (SLOW_CASES if engine == "Ray Data" else CASES).items():
            for partitions in PARTITIONS[engine]:
                assert sorted(KEPT_BY[engine](found, rows, partitions)) == expected(rows), (case, partitions)
        rows = sorted(written(300))
        with lsh.Index.create(Path(temp) / "index", found["hasher"], bands=found["plan"], texts="stored") as index:
            for texts, ids in batches_of(engine, found, rows):
                index.add_docs(texts, ids, missing="empty")
            removed = {duplicate.id for duplicate in index.deduplicate()}
        assert sorted(number for number, _ in rows if number not in removed) == expected(rows)


def check_polars() -> None:
    decides_like_deduplicate("Polars")
    with recipe("Polars") as found, tempfile.TemporaryDirectory() as temp:
        pl, folder = found["pl"], Path(temp)
        many_documents(found, "Polars")
        fingerprints = found["hasher"].fingerprints([text for _, text in written(200)], missing="empty")
        column = pl.Series("fingerprint", fingerprints, pl.Array(pl.UInt32, 128))
        assert np.array_equal(column.to_numpy(), fingerprints)
        frame = pl.DataFrame(columns(written(500)))
        for part in range(5):
            frame.slice(100 * part, 100).write_parquet(folder / f"{part}.parquet", row_group_size=30)
        keys = pl.col("text").map_batches(found["keys_of"], found["KEYS"], is_elementwise=True)
        pl.scan_parquet(folder / "*.parquet").select("id", key=keys).sink_parquet(folder / "keys")
        stored = pl.read_parquet(folder / "keys")
        assert stored["id"].equals(frame["id"])
        assert np.array_equal(stored["key"].to_numpy(), found["band_keys"](frame["text"]))
        empty = frame.clear().select(key=keys)
        assert (empty.height, empty.schema["key"]) == (0, found["KEYS"])


def check_duckdb() -> None:
    decides_like_deduplicate("DuckDB")
    with recipe("DuckDB") as found:
        pa = found["pa"]
        many_documents(found, "DuckDB")
        fingerprints = found["hasher"].fingerprints([text for _, text in written(200)], missing="empty")
        column = pa.chunked_array([pa.FixedSizeListArray.from_arrays(fingerprints.ravel(), 128)])
        assert np.array_equal(column.combine_chunks().flatten().to_numpy().reshape(-1, 128), fingerprints)


def check_dask() -> None:
    decides_like_deduplicate("Dask")


def check_ray() -> None:
    decides_like_deduplicate("Ray Data")


def check_daft() -> None:
    decides_like_deduplicate("Daft")


def check_the_other_sections() -> None:
    assert [name for name, section in SECTION.items() if ">>>" in section] == list(PACKAGES)
    for name in ("Fill an index", "Store fingerprints"):
        with recipe(name):
            pass


def check_datatrove() -> None:
    with recipe("datatrove"):
        pass


def check_the_candidates_decide_like_all_texts() -> None:
    """Documents that share no key are kept; of the others the witnesses and similarities are the same."""
    lines = gzip.decompress((checks.data_folder() / "reuters21578.tsv.gz").read_bytes()).decode().split("\n")[:-1]
    made = [text or "" for _, text in written(3000)]
    with recipe("Store fingerprints") as found:
        for texts, share in ((made, 0.8), ([line.split("\t")[-1] for line in lines], 0.1)):
            keys = found["band_keys"](texts)
            assert keys.shape == (len(texts), 19)
            some = np.array([text != "" for text in texts])
            values, counts = np.unique(keys[some], return_counts=True)
            candidates = np.flatnonzero(np.isin(keys, values[counts > 1]).any(axis=1) & some)
            assert len(candidates) < share * len(texts)
            removed = found["decide"]([texts[i] for i in candidates]).removed.copy()
            for column in ("document", "kept"):
                removed[column] = candidates[removed[column]]
            everything = lsh.deduplicate(texts).removed
            assert len(everything) > 200
            assert np.array_equal(removed, everything)


def many_documents(found: Recipe, name: str) -> None:
    """More than a batch of either engine, by their candidates, and as a stream of all texts."""
    rows = written(5000)
    kept = expected(rows)
    assert sorted(KEPT_BY[name](found, rows, 2)) == kept
    if name == "Polars":
        lazy = found["pl"].LazyFrame(columns(rows)).sort("id").select("text")
        result = lsh.deduplicate(lambda: lazy.collect_batches(lazy=True, chunk_size=2000), missing="empty")
    else:
        result = lsh.deduplicate(found["stream"], missing="empty", max_memory="2MB")
    assert np.array_equal(np.array(sorted(number for number, _ in rows))[result.keep], kept)


def batches_of(name: str, recipe: Recipe, rows: Rows) -> Iterator[tuple[Any, list[int]]]:
    """Yield the batches of texts and ids that the page names for an index."""
    if name == "Polars":
        docs = recipe["pl"].DataFrame(columns(rows))
        return ((batch["text"], batch["id"].to_list()) for batch in docs.lazy().collect_batches(lazy=True))
    if name == "Dask":
        docs = recipe["dd"].from_pandas(recipe["pd"].DataFrame(columns(rows)), npartitions=3, sort=False)
        return ((batch["text"], batch["id"].tolist()) for batch in (part.compute() for part in docs.partitions))
    if name == "DuckDB":
        recipe["con"].register("source", arrow(rows))
        batches = recipe["pa"].RecordBatchReader.from_stream(recipe["con"].sql("select id, text from source"))
    elif name == "Ray Data":
        docs = recipe["ray"].data.from_arrow(arrow(rows))
        batches = docs.iter_batches(batch_size=10_000, batch_format="pyarrow")
    else:
        batches = recipe["daft"].from_arrow(arrow(rows)).to_arrow_iter()
    return ((batch["text"], batch["id"].to_pylist()) for batch in batches)


if __name__ == "__main__":
    sys.exit(checks.main(globals()))
