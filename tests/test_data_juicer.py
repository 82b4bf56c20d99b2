"""`lsh.adapters.data_juicer`: recipes, run by Data-Juicer's own program, against `lsh dedup` and `lsh.deduplicate`."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from reading import write_records
from running import SAMPLE, done, environment, json_lines

import lsh
from lsh.adapters import data_juicer

PAGE = Path(__file__).resolve().parents[1] / "docs" / "data_juicer.md"
PROGRAM = shutil.which("dj-process", path=str(Path(sys.executable).parent))
INPUT, OUTPUT = "demos/data/demo-dataset-deduplication.jsonl", "outputs/demo-dedup/demo-dedup-processed.jsonl"
needs_data_juicer = pytest.mark.skipif(
    PROGRAM is None, reason="py-data-juicer is not installed; see .ci/requirements-pipelines.txt"
)


def run(recipe: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    (folder / "dedup.yaml").write_text(recipe, encoding="utf-8")
    shutil.rmtree(folder / "outputs", ignore_errors=True)
    command = [str(PROGRAM), "--config", "dedup.yaml"]
    env = environment(HF_DATASETS_OFFLINE="1", HF_HOME=str(folder / "cache"))
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, timeout=200)


def ids(path: Path) -> list[str]:
    return [record["id"] for record in json_lines(path.read_bytes())]


@needs_data_juicer
def test_the_recipes_of_the_page(tmp_path):
    rows = [line.split("\t") for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    stars = [number * 7919 % 97 for number in range(len(rows))]
    records = [{"id": name, "text": text, "stars": star} for (name, text), star in zip(rows, stars)]
    (tmp_path / INPUT).parent.mkdir(parents=True)
    write_records(tmp_path / INPUT, records)
    example, parameters = re.findall("```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert f"$ {Path(str(PROGRAM)).name} --config dedup.yaml\n" in PAGE.read_text(encoding="utf-8")

    result = run(example, tmp_path)
    assert result.returncode == 0, result.stdout.decode()[-3000:] + result.stderr.decode()[-3000:]
    done(tmp_path, "dedup", INPUT, "-o", "kept.jsonl", "--threshold", "0.8", "-q")
    assert ids(tmp_path / OUTPUT) == ids(tmp_path / "kept.jsonl")
    (trace,) = tmp_path.glob("outputs/**/trace/duplicate-lsh_deduplicator.jsonl")
    texts = [text for _, text in rows]
    first, second = json_lines(trace.read_bytes())[0].values()
    assert first["id"] in ids(tmp_path / OUTPUT)
    assert lsh.jaccard(first["text"], second["text"]) >= 0.8

    shared = example.partition("process:")[0]
    assert run(shared + parameters, tmp_path).returncode == 0
    expected = lsh.deduplicate(texts, 0.7, keep=stars, shingles=lsh.Shingles(3, unit="word", lowercase=True))
    assert ids(tmp_path / OUTPUT) == [rows[number][0] for number in expected.kept]
    bad = run(shared + parameters.replace("0.7", "70"), tmp_path)
    assert b"ValueError: threshold must be more than 0 and at most 1, got 70" in bad.stdout + bad.stderr


@pytest.mark.skipif(PROGRAM is not None, reason="Data-Juicer is installed")
def test_without_data_juicer():
    with pytest.raises(ImportError, match="requires Data-Juicer: run pip install"):
        _ = data_juicer.LshDeduplicator
    with pytest.raises(AttributeError, match="has no attribute 'Deduplicator'"):
        _ = data_juicer.Deduplicator
