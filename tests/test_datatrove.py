"""`lsh.adapters.datatrove`: its steps, and whole pipelines of datatrove's executor, against `lsh.deduplicate`."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running import done, environment, json_lines
from spark_texts import corpus, words

import lsh
from lsh.adapters import datatrove as adapter

pytest.importorskip("datatrove", reason="datatrove is not installed; see .ci/requirements-remote.txt")

from datatrove.data import Document

KILLS = 50 if os.environ.get("LSH_TEST_FULL") else 5
PAGE = Path(__file__).resolve().parents[1] / "docs" / "datatrove.md"


def stars(number: int) -> float:
    return number * 7919 % 97


def shards(documents: list[str], count: int) -> list[list[Document]]:
    """Documents of files that are read by several tasks, each every so many files."""
    names = [f"{number % 7}.jsonl" for number in range(len(documents))]
    made = [
        Document(text, f"d{number}", metadata={"file_path": names[number], "stars": stars(number)})
        for number, text in enumerate(documents)
    ]
    return [[one for one in made if int(one.metadata["file_path"][0]) % count == rank] for rank in range(count)]


def filtered(run: adapter.LshRun, parts: list[list[Document]], others: int, **options) -> list[list[Document]]:
    """What the steps keep of each task."""
    count = len(parts)
    for step in (adapter.LshSketch, adapter.LshLink, adapter.LshComponents, adapter.LshMembers, adapter.LshDecide):
        with_reader = step in (adapter.LshSketch, adapter.LshMembers)
        total = count if with_reader else 1 if step is adapter.LshComponents else others
        for rank in reversed(range(total)):
            step(run)(iter(parts[rank]) if with_reader else None, rank, total)
    return [list(adapter.LshFilter(run, **options)(iter(part), rank, count)) for rank, part in enumerate(parts)]


@pytest.mark.parametrize("keep", ["first", "last", "longest", "stars"])
@pytest.mark.parametrize(("count", "others", "parts"), [(1, 1, 1), (3, 2, 8), (7, 20, 16)])
def test_the_documents_of_the_library_stay(tmp_path, monkeypatch, keep, count, others, parts):
    """In the order of the files, whatever the number of tasks and parts, and how often a task writes."""
    for name, size in (("shared.HELD_BYTES", others << 14), ("tasks.RECORD_BYTES", others << 5)):
        monkeypatch.setattr(f"lsh.stages.{name}", size)
    documents = corpus(400)
    order = sorted(range(400), key=lambda number: (number % 7, number))
    priority = [stars(number) for number in order] if keep == "stars" else keep
    result = lsh.deduplicate([documents[number] for number in order], 0.7, keep=priority)
    run = adapter.LshRun(str(tmp_path / "work"), 0.7, keep=keep, parts=parts)
    split = shards(documents, count)
    found = {one.id: one for part in filtered(run, split, others, add_copies=True) for one in part}
    names = [f"d{number}" for number in order]
    assert sorted(found) == sorted(names[number] for number in result.kept)
    assert [found[names[one]].metadata["lsh_copies"] for one in result.kept] == result.copies[result.keep].tolist()
    for document, kept, similarity, _ in result.removed.tolist():
        (gone,) = [one for part in split for one in part if one.id == names[document]]
        assert (gone.metadata["lsh_kept_id"], gone.metadata["lsh_similarity"]) == (names[kept], similarity)


def test_an_object_store_has_the_folder_of_a_run():
    import fsspec

    documents = corpus(200)
    order = sorted(range(200), key=lambda number: (number % 7, number))
    result = lsh.deduplicate([documents[number] for number in order], 0.7)
    kept = filtered(adapter.LshRun("memory://bucket/run", 0.7, parts=4), shards(documents, 2), 3)
    assert {one.id for part in kept for one in part} == {f"d{order[number]}" for number in result.kept}
    store = fsspec.filesystem("memory")
    assert {name.split("/")[3] for name in store.find("/bucket")} >= {"keys", "removed"}
    assert not [name for name in store.find("/bucket") if name.endswith(".part")]  # nothing is renamed there
    store.rm("/bucket", recursive=True)


def written(folder: Path) -> list[tuple[str, int]]:
    """The ids of the kept documents, and for how many they stand."""
    kept = b"".join(path.read_bytes() for path in sorted((folder / "kept").glob("*.jsonl")))
    return [(record["id"], record["metadata"]["lsh_copies"]) for record in json_lines(kept)]


def started(folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    if not (folder / "in").exists():
        (folder / "in").symlink_to(folder.parent / "in")
    command = [sys.executable, str(folder.parent / "program.py")]
    with (folder / "log.txt").open("wb") as log:
        return subprocess.Popen(command, cwd=folder, env=environment(), start_new_session=True, stdout=log, stderr=log)


@pytest.mark.skipif(sys.platform == "win32", reason="kills groups of processes")
def test_killed_pipelines_go_on(tmp_path):
    """The program of the page, and one that is killed again and again, write what `lsh dedup` keeps."""
    program = PAGE.read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    (tmp_path / "program.py").write_text(program)
    (tmp_path / "in").mkdir()
    documents = filter(None, corpus(640))  # datatrove's readers drop empty ones
    lines = [json.dumps({"id": f"d{number}", "text": text}) for number, text in enumerate(documents)][:600]
    assert len(lines) == 600
    for number in range(3):
        (tmp_path / "in" / f"{number}.jsonl").write_text("\n".join(lines[200 * number : 200 * number + 200]) + "\n")
    begun = time.monotonic()
    assert started(tmp_path / "whole").wait(120) == 0, (tmp_path / "whole" / "log.txt").read_text()[-2000:]
    seconds, expected = time.monotonic() - begun, written(tmp_path / "whole")
    draw, folder = random.Random(0), tmp_path / "killed"
    for _ in range(KILLS):
        process = started(folder)
        try:
            process.wait(draw.uniform(0.2, 1.0) * seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert started(folder).wait(120) == 0
    assert written(folder) == expected
    done(tmp_path, "dedup", "in", "-o", "out.jsonl", "--threshold", "0.8", "--add-copies", "-q")
    kept = json_lines((tmp_path / "out.jsonl").read_bytes())
    assert [(record["id"], record["copies"]) for record in kept] == expected


def test_a_step_that_is_left_out_is_an_error(tmp_path):
    documents = [Document(text, str(number)) for number, text in enumerate(corpus(20))]
    run = adapter.LshRun(tmp_path / "work", parts=4)
    with pytest.raises(ValueError, match="is of no run: the step 'sketch' comes first"):
        adapter.LshLink(run)()
    adapter.LshSketch(run)(iter(documents))
    adapter.LshLink(run)(None, 1, 2)
    for step, before in (
        (adapter.LshComponents, "'link' must have ended before this one begins, got 1 of 2"),
        (adapter.LshMembers, "'components' must have ended before this one begins, got none"),
        (adapter.LshDecide, "'members' must have ended"),
        (adapter.LshFilter, "'decide' must have ended"),
    ):
        with pytest.raises(ValueError, match=before):
            list(step(run)(iter(documents)) or ())
    with pytest.raises(ValueError, match="this step needs documents; put a reader before it"):
        adapter.LshSketch(run)(None)
    with pytest.raises(TypeError, match="LshRun has no parameter 'max_memory'; it takes bands, clusters, hasher,"):
        adapter.LshRun("work", max_memory="1GB")


def test_documents_that_are_like_those_of_an_index(tmp_path):
    known = [words(random.Random(number), 10) for number in range(50)]
    with lsh.Index.create(tmp_path / "known", threshold=0.8) as index:
        index.add_docs(known, [f"k{number}" for number in range(50)])
    near = known[3] + " and more"
    documents = [Document(text, str(number)) for number, text in enumerate([near, "a text of its own", known[7]])]

    def stay(*options):
        return [one.id for one in adapter.LshIndexFilter(*options)(iter(documents))]

    assert stay(str(tmp_path / "known"), 0.8) == ["1"]
    assert stay(str(tmp_path / "known")) == ["0", "1"]
    with pytest.raises(ValueError, match=r"threshold=0.5 has a recall of .*, which are for 0.8; use threshold=0.8 or"):
        stay(str(tmp_path / "known"), 0.5)
    with lsh.Screen.create(tmp_path / "screen", reject=1.0) as screen:
        screen.submit_docs(known, range(50))
    assert stay(str(tmp_path / "screen")) == ["0", "1"]
    assert stay(str(tmp_path / "screen"), 0.5) == ["1"]


def test_what_does_not_fit_together(tmp_path):
    def run(**options):
        return adapter.LshRun(str(tmp_path / "work"), **options)

    with pytest.raises(ValueError, match="parts must be a power of two, such as 64, got 6"):
        run(parts=6)
    with pytest.raises(TypeError, match="run must be an LshRun, got str"):
        adapter.LshLink("work")
    documents = [Document(text, str(number)) for number, text in enumerate(["one text of five words"] * 3)]
    adapter.LshSketch(run())(iter(documents), 0, 1)
    with pytest.raises(ValueError, match=r"a run with threshold=0.8, this step has 0.7; give all steps the same"):
        adapter.LshLink(run(threshold=0.7))()
    with pytest.raises(ValueError, match="a run with tasks=1, this step has 2; "):
        adapter.LshSketch(run())(iter(documents), 1, 2)
    with pytest.raises(ValueError, match="LshComponents must be run with tasks=1, got 2"):
        adapter.LshComponents(run())(None, 1, 2)
    filtered(run(), [documents], 1)
    other = [*documents[:2], Document("another text", "2")]
    for step in (adapter.LshFilter, adapter.LshMembers, adapter.LshSketch):
        with pytest.raises(ValueError, match="task 0 read other documents than in the first step; leave the input"):
            list(step(run())(iter(other), 0, 1) or ())
    with pytest.raises(ValueError, match=r"all tasks of the step 'sketch' must have ended before .*, got none; run it"):
        adapter.LshLink(run())()
    bad = adapter.LshRun(str(tmp_path / "other"), keep="stars")
    with pytest.raises(ValueError, match=r"metadata\['stars'\] must be a number of .*, got 'five' in document 1"):
        filtered(bad, [[Document("one text of five words", "1", metadata={"stars": "five"})] * 2], 1)
