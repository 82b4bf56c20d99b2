"""`lsh.adapters.dolma`: its attributes against the library, and what dolma's mixer makes of them."""

import gzip
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from running import SAMPLE, done, environment, json_lines

import lsh
from lsh.adapters.dolma import tag_duplicates, tag_passages

PAGE = Path(__file__).resolve().parents[1] / "docs" / "dolma.md"
DOLMA = shutil.which("dolma", path=str(Path(sys.executable).parent))
FOOT = " — „Alle Rechte“ an façade, naïveté и тексты 😀 vorbehalten." * 5


def write(path: Path, records: list[dict[str, object]]) -> list[dict[str, object]]:
    """Write the lines of a shard, some with escapes for what is not ASCII."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(one, ensure_ascii=bool(number % 2)) + "\n" for number, one in enumerate(records)]
    data = "".join(lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return records


@pytest.fixture
def records(tmp_path, monkeypatch):
    """The documents of a corpus of several shards, in the order of their paths."""
    monkeypatch.chdir(tmp_path)
    rows = [line.split("\t") for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    made = [
        {"id": name, "text": "é" * (number % 3) + text + FOOT * (number % 4 == 0), "source": "news"}
        for number, (name, text) in enumerate(rows)
    ]
    shards = {"a/0.jsonl.gz": made[:80], "a/1.json.gz": made[80:81], "a/2.jsonl.gz": [], "b/0.jsonl.gz": made[81:]}
    for name, part in shards.items():
        write(tmp_path / "corpus" / "documents" / name, part)
    return made


def lines(folder: str) -> list[dict]:
    """The records in the files of a folder, in the order of their paths."""
    paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    texts = [gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes() for path in paths]
    return json_lines(b"".join(texts))


@pytest.mark.skipif(DOLMA is None, reason="dolma is not installed; see .ci/requirements-pipelines.txt")
def test_the_page(records):
    """Its programs and configurations: the mixer keeps what `lsh dedup` keeps, and cuts what `Passages.cut` cuts."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = [re.findall(f"```{kind}\n(.*?)```", text, re.DOTALL) for kind in ("python", "yaml", "console")]
    named = zip(("tag.py", "passages.py", "unique.yaml", "cut.yaml"), blocks[0] + blocks[1], strict=True)
    for name, content in named:
        Path(name).write_text(content, encoding="utf-8")
    for command in [line.removeprefix("$ ").split() for line in "".join(blocks[2]).splitlines()]:
        program = sys.executable if command[0] == "python" else str(DOLMA)
        result = subprocess.run([program, *command[1:]], env=environment(), capture_output=True, timeout=100)
        assert result.returncode == 0, result.stderr.decode()
    dedup = ["corpus/documents", "-o", "kept.jsonl", "--threshold", "0.8", "-q", "--format", "jsonl"]
    done(Path(), "dedup", *dedup)
    kept = json_lines(Path("kept.jsonl").read_bytes())
    unique = {one["id"]: one["text"] for one in lines("unique/documents")}
    assert unique == {one["id"]: one["text"] for one in kept}
    assert len(unique) < len(records)
    found = lsh.find_passages(list(unique.values()))
    assert len(found) > 20
    assert {one["id"]: one["text"] for one in lines("cut/documents")} == dict(zip(unique, found.cut(unique.values())))


def test_attributes_are_those_of_the_library(records):
    more = write(Path("web/documents/0.jsonl"), [{"id": f"w{i}", "text": records[i]["text"] + "."} for i in range(9)])
    folders = ["corpus/documents", Path("web/documents")]
    result = tag_duplicates(folders, 0.9, keep="last", max_memory="1MB")
    everything = records + more
    texts = [one["text"] for one in everything]
    expected = lsh.deduplicate(texts, 0.9, keep="last")
    assert np.array_equal(result.removed, expected.removed)
    wanted = [{"id": one["id"], "attributes": {"lsh_duplicate": []}} for one in everything]
    for document, kept, similarity, _ in expected.removed.tolist():
        wanted[document]["attributes"]["lsh_duplicate"] = [[0, len(texts[document]), similarity]]
        wanted[document]["kept_id"] = everything[kept]["id"]
    assert lines("corpus/attributes/lsh_duplicate") + lines("web/attributes/lsh_duplicate") == wanted
    tops = (Path("corpus/documents"), Path("corpus/attributes/lsh_duplicate"))
    documents, attributes = ({path.relative_to(top) for path in top.rglob("*")} for top in tops)
    assert documents == attributes
    tag_duplicates("web/documents", 0.9, name="seen", against=texts[:4])
    assert [bool(one["attributes"]["seen"]) for one in lines("web/attributes/seen")] == [True] * 4 + [False] * 5
    assert tag_passages(folders, name="cuts").spans.tolist() == lsh.find_passages(texts).spans.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"documents": "corpus/documents/a/0.jsonl.gz"}, "documents must be a folder of .jsonl.gz files, got corpus"),
        ({"documents": "shards"}, "documents must lie in a folder such as corpus/documents, got shards/0.jsonl; move"),
        ({"name": "lsh-duplicate"}, "name must consist of letters, digits and underscores, got 'lsh-duplicate'"),
        ({"name": "old"}, "name must be that of a new attribute, got 'old'; remove corpus/attributes/old or name"),
        ({"documents": "bad/documents"}, "line 1"),
    ],
)
def test_bad_arguments(records, options, message):
    write(Path("shards/0.jsonl"), records[:3])
    write(Path("corpus/attributes/old/0.jsonl"), records[:3])
    write(Path("bad/documents/0.jsonl"), [{"text": "a document without an id"}])
    with pytest.raises(ValueError, match=message):
        tag_duplicates(**{"documents": "corpus/documents", **options})
    assert not Path("corpus/attributes/lsh_duplicate").exists()
