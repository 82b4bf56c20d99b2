#!/usr/bin/env python3
"""Check the program `examples/spark_dedup.py` and the examples of docs/spark.md. Needs the extra `spark` and Java."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import checks
import pyarrow
from pyarrow import parquet
from pyspark.sql import SparkSession

import lsh
import lsh.spark

sys.path.insert(0, str(checks.ROOT / "tests"))

from spark_texts import TEXTS

PROGRAM = checks.ROOT / "examples" / "spark_dedup.py"
REFUSED = {  # arguments, where {} is a folder, and the error
    "-o {}": "exists already; delete it, or name a folder that does not exist",
    "-o {}/kept --removed {}": "exists already",
    "-o {}/kept --removed file:{}/kept/": "must be two folders, neither in the other, got file:.*/kept/ and file:",
    "-o {}/all/kept --removed {}/all": "must be two folders",
    "-o {}/kept --removed {}/kept": "must be two folders",
    "-o {}/in.parquet/kept": "in.parquet/kept must not lie in .*/in.parquet, which is read; name another folder",
    "-o {}/kept --removed {}/old.jsonl/removed --against {}/old.jsonl": "removed must not lie in",
    "-o {}/old.jsonl/kept": "cannot create .*old.jsonl/kept",
    "-o {}/kept --format jsonl": "in.parquet has lines that are not JSON objects; .* pass --format parquet if",
    "-o {}/kept --against {}/old.jsonl": "cannot read .*/old.jsonl: .*; if these are not parquet files, pass",
    "-o {}/kept --checkpoint {}/in.parquet/tables": "--checkpoint: cannot create a folder: .*in.parquet",
    "-o {}/kept --partition-by year": "the documents have no column 'year'; they have id, text",
    "-o {}/kept --report {}/none/report.html": "there is no folder '.*/none'; create it",
}
OPTIONS = (
    "--field body --id-field doc --partition-by part --threshold 0.7 --ngram 3 --unit word --lowercase --sample 100"
)


@cache
def session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    return builder.config("spark.sql.shuffle.partitions", "3").config("spark.log.level", "ERROR").getOrCreate()


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as temp:
        yield Path(temp).resolve()


def collected(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()))


def check_program() -> None:
    """The program writes what the library finds, in folders by a column, with checkpoints and a report."""
    texts = TEXTS[:300]
    rows = [{"doc": f"{i:04}", "body": text, "part": i % 2} for i, text in enumerate(texts)]
    expected = lsh.deduplicate(texts, 0.7, shingles=lsh.Shingles(3, unit="word", lowercase=True))
    gone = expected.removed
    for kind in ("jsonl", "parquet"):
        with folder() as temp:
            if kind == "jsonl":
                (temp / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            else:
                parquet.write_table(pyarrow.Table.from_pylist(rows), temp / "in.parquet")
            given = f"in.{kind} -o kept --removed removed --checkpoint tables --format {kind} --report report.html"
            settings = "--master local[2] --conf spark.sql.shuffle.partitions=2 --conf spark.ui.enabled=false"
            variables = {"PYSPARK_SUBMIT_ARGS": f"{settings} pyspark-shell", "PYSPARK_PYTHON": sys.executable}
            command = [sys.executable, str(PROGRAM), *given.split(), *OPTIONS.split()]
            ran = subprocess.run(command, env=os.environ | variables, cwd=temp, capture_output=True, text=True)
            assert ran.returncode == 0, ran.stderr
            assert ran.stdout == f"300 documents, {300 - len(gone)} kept, {len(gone)} removed\n"
            read = session().read.json if kind == "jsonl" else session().read.parquet
            kept, removed = (read(str(temp / name)) for name in ("kept", "removed"))
            rows_kept = [(f"{i:04}", texts[i], i % 2) for i in expected.kept.tolist()]
            assert collected(kept.select("doc", "body", "part")) == rows_kept
            assert {path.name for path in (temp / "kept").iterdir() if path.is_dir()} == {"part=0", "part=1"}
            pairs = [(f"{i:04}", f"{j:04}") for i, j in zip(gone["document"], gone["kept"])]
            assert collected(removed.select("id", "kept_id")) == pairs
            page = (temp / "report.html").read_text(encoding="utf-8")
            assert "100 of 300, at random: a sample has fewer near duplicates than all documents" in page
            if kind == "parquet":
                stored = json.loads(kept.schema["doc"].metadata["lsh"])
                assert (stored["threshold"], stored["recall"]) == (0.7, 0.99)


def check_the_program_checks_before_the_job() -> None:
    """What cannot be written is an error before the documents are compared."""
    session()
    program = checks.script(PROGRAM)
    started = mock.Mock(side_effect=AssertionError("the job started"))
    for given, message in REFUSED.items():
        with folder() as temp, mock.patch.object(lsh.spark, "removed", started):
            parquet.write_table(pyarrow.table({"id": [1], "text": ["a text"]}), temp / "in.parquet")
            (temp / "old.jsonl").write_text('{"id": 1, "text": "a text"}\n', encoding="utf-8")
            arguments = [str(temp / "in.parquet"), *given.replace("{}", str(temp)).split()]
            checks.raises(ValueError, message, program.main, arguments)


def check_the_examples_of_the_page() -> None:
    """They run as printed, with other folders."""
    sample = str(checks.ROOT / "examples" / "sample.tsv")
    page = (checks.ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    with folder() as temp, contextlib.redirect_stdout(io.StringIO()) as stdout:
        rows = [(i, text, 5) for i, text in enumerate(TEXTS)]
        frame = session().createDataFrame(rows, "id long, text string, stars int")
        frame.write.parquet(str(temp / "reviews"))
        for block in re.findall("```python\n(.*?)```", page, re.DOTALL):
            exec(block.replace("s3a://bucket", str(temp)).replace("sample.tsv", sample), names)
        expected = [(i, TEXTS[i], 5) for i in lsh.deduplicate(TEXTS, 0.8).kept.tolist()]
        assert collected(session().read.parquet(str(temp / "unique"))) == expected
        assert collected(names["kept"]) == expected
    printed, _, table = stdout.getvalue().partition("\n")
    assert f"# {printed}\n" in page
    assert "|s003|s002|0.941747572815534|false|" in table.replace(" ", "")


if __name__ == "__main__":
    sys.exit(checks.main(globals()))
