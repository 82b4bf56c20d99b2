"""`lsh.adapters.nemo`: the programs of the page, with NeMo Curator's own removal, against `lsh dedup`."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from reading import write_records
from running import done, environment
from spark_texts import corpus

import lsh
from lsh.adapters import nemo as adapter

pytest.importorskip("nemo_curator", reason="nemo-curator is not installed; see .ci/requirements-pipelines.txt")
pandas = pytest.importorskip("pandas")

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "nemo.md").read_text(encoding="utf-8")
SIZES = {"b.{}": 100, "a/z.{}": 210, "a/b.{}": 90, "c.{}": 200}  # rows of the files, which are not grouped by name
# Arguments of NeMo Curator's own example that the page leaves out.
TUTORIAL = ("seed=42", "minhashes_per_band=13", "bands_per_iteration=10")
TUTORIAL += ("read_kwargs=None", "cache_kwargs=None", "write_kwargs=None")


def written(folder: Path, kind: str) -> None:
    rows = [{"id": f"d{number}", "text": text} for number, text in enumerate(corpus(600))]
    for name, size in SIZES.items():
        path, part = folder / name.format(kind), [rows.pop() for _ in range(size)]
        path.parent.mkdir(parents=True, exist_ok=True)
        write_records(path, part, group=64)


def run(folder: Path, program: str) -> None:
    """Run a program, which is interrupted if it does not end, so that it stops the processes of Ray."""
    (folder / "program.py").write_text(program)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with (folder / "log.txt").open("wb") as log:
        command = [sys.executable, "program.py"]
        more = {"PATH": path, "LOGURU_LEVEL": "ERROR", "RAY_AUTH_MODE": "disabled"}
        process = subprocess.Popen(command, cwd=folder, env=environment(**more), stdout=log, stderr=log)
        try:
            process.wait(200)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.wait(60)
    assert process.returncode == 0, (folder / "log.txt").read_text()[-3000:]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="NeMo Curator runs on Linux")
@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_their_removal_removes_what_the_command_does(tmp_path, kind):
    written(tmp_path / "in", kind)
    with lsh.Index.create(tmp_path / "known", threshold=0.8) as index:
        index.add_docs(corpus(600)[:50], [f"k{number}" for number in range(50)])
    blocks = [part.partition("```")[0] for part in PAGE.split("```python\n")[1:]]
    program, options = blocks[0] + textwrap.indent(blocks[1], " " * 8), ["--ngram", 24]
    if kind == "jsonl":
        program = program.replace('"parquet"', '"jsonl"').replace('"512MiB"', '"60KB"')
        program = program.replace("char_ngrams=24", ", ".join(["char_ngrams=24", *TUTORIAL]))
        options += ["--bands", "20x13", "--num-seeds", 260, "--random-state", 42]
    run(tmp_path, program)
    done(tmp_path, "dedup", "in", "-o", f"unique.{kind}", *options, "--removed", "removed.tsv", "--quiet")
    table = [line.split("\t") for line in (tmp_path / "removed.tsv").read_text().splitlines()]
    kept = [json.loads(line) for path in (tmp_path / "kept").iterdir() for line in path.read_text().splitlines()]
    assert len(list((tmp_path / "kept").iterdir())) == (1 if kind == "parquet" else 3)
    assert {row["id"] for row in kept} == {f"d{number}" for number in range(600)} - {row[0] for row in table}
    assert set(kept[0]) == {"id", "text"}

    ids = pandas.read_parquet(tmp_path / "work" / "FuzzyDuplicateIds")
    assert ids["_curator_dedup_id"].is_monotonic_increasing
    assert sorted(ids["similarity"]) == sorted(float(row[2]) for row in table)
    assert not set(ids["kept_id"]) & set(ids["_curator_dedup_id"])
    assert sorted(ids["kept_id"].value_counts()) == sorted(pandas.Series([row[1] for row in table]).value_counts())

    new = [json.loads(line) for path in (tmp_path / "new").iterdir() for line in path.read_text().splitlines()]
    with lsh.Index.open(tmp_path / "known") as index:
        found = lsh.Screen(index, 0.8, 0.8).check_docs([row["text"] for row in kept])
    passed = {row["id"] for row, verdict in zip(kept, found) if verdict.decision != "reject"}
    assert {row["id"] for row in new} == passed != {row["id"] for row in kept}


def test_what_does_not_fit_together(tmp_path):
    def workflow(**options):
        return adapter.FuzzyDeduplicationWorkflow(output_path=str(tmp_path / "work"), **options)

    written(tmp_path / "in", "jsonl")
    files = {"input_path": str(tmp_path / "in"), "input_filetype": "jsonl"}
    with pytest.raises(ValueError, match=r"read_kwargs must be None or left out, got \{'a': 1\}; run the removal by"):
        workflow(read_kwargs={"a": 1})
    with pytest.raises(TypeError, match="has no parameter 'num_band'; leave it out"):
        workflow(num_band=5)
    with pytest.raises(ValueError, match="input_path must have files of parquet, got none in"):
        workflow(input_path=str(tmp_path / "in")).run()
    with pytest.raises(ValueError, match="input_path must name each file once"):
        workflow(input_path=[str(tmp_path / "in"), str(tmp_path / "in" / "b.jsonl")], input_filetype="jsonl").run()
    (tmp_path / "in" / "0.jsonl").write_text('{"text": "a text", "_curator_dedup_id": 7}\n')
    with pytest.raises(ValueError, match=r"0.jsonl: has the column _curator_dedup_id, .*; drop it"):
        workflow(**files).run()
    assert not (tmp_path / "work").exists()
