"""`lsh dedup --resume`: a killed run goes on, writes the same bytes, and reads and computes nothing twice."""

import bz2
import csv
import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from reading import write_records
from running import OTHER, STORY, contents, done, environment, lsh, refused

import lsh.engine.corpus as lsh_corpus
from lsh.files import blocks, lines, records, text_formats
from lsh.storage.journal import Journal
from lsh.terminal import resuming

KILLS = 100 if os.environ.get("LSH_TEST_FULL") else 4
MOST = 40 if KILLS == 100 else 9  # of a run, before it is left to end
FOLDER = "kept.resume"
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
# Of Python, if another library has threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


def texts(count: int) -> list[str]:
    draw = random.Random(count)
    words = [f"w\u00f6rd{number}" for number in range(200)] + ['q"uote', "a,b"]
    found = [" ".join(draw.choices(words, k=draw.randint(0, 30))) for _ in range(count // 2)]
    return found + [draw.choice(found) + draw.choice(["", " more"]) for _ in range(count - count // 2)]


def jsonl(path: Path, count: int) -> None:
    made = [json.dumps({"text": text, "id": f"{path.stem}-{i}", "v": i % 7}) for i, text in enumerate(texts(count))]
    path.write_bytes(gzip.compress("\n".join([*made[:3], "{bad", "", *made[3:], "[1]", "[2]"]).encode()))


def separated(path: Path, count: int) -> None:
    target = io.StringIO()
    rows = [[i, text.replace(" w", "\nw", 1), i % 5] for i, text in enumerate(texts(count))]
    csv.writer(target, lineterminator="\r\n").writerows([["id", "text", "v"], *rows])
    path.write_bytes(target.getvalue().encode()[: -2 if path.stem == "b" else None])


def wide(path: Path, count: int) -> None:
    path.write_bytes(bz2.compress("".join(f"{i}\t{text}\n" for i, text in enumerate(texts(count))).encode("utf-16")))


def table(path: Path, count: int) -> None:
    write_records(path, [{"id": i, "text": text or None} for i, text in enumerate(texts(count))], group=20)


def separate(path: Path, count: int) -> None:
    path.mkdir()
    for i, text in enumerate(texts(count)):
        (path / f"{i}.txt").write_text(text)


FORMS: dict[str, tuple[Any, str, str]] = {
    "jsonl.gz": (
        jsonl,
        "kept.jsonl.gz",
        "--on-bad-line skip --rejects bad.txt --add-copies --keep-field v --report report.html --source-field v",
    ),
    "csv": (separated, "kept/", "--keep-field v --mark --clusters clusters.tsv --max-memory 100KB"),
    "tsv.bz2": (wide, "kept.tsv.bz2", "--encoding utf-16 --keep longest"),
    "parquet": (table, "kept.parquet", "--missing empty --removed-documents removed.parquet"),
    "files": (separate, "kept/", "--format files --keep last"),
}


def corpus(folder: Path, form: str) -> list[str]:
    """Write files of a format; return the command."""
    write, output, options = FORMS[form]
    if form == "files":
        write(folder / "in", 60)
        return f"dedup in -o {output} {options}".split()
    for name, count in (("a", 40), ("b", 60), ("old", 30)):
        write(folder / f"{name}.{form}", count)
    return f"dedup [ab].{form} -o {output} --removed gone.tsv {options} --against old.{form}".split()


def written(folder: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    page = found.pop("report.html", b"")  # has the seconds and the memory of the run
    return {name: data for name, data in found.items() if FOLDER not in name} | {"size": b"%d" % (len(page) // 1000)}


def killed(folder: Path, command: list[str], count: int, owner: Any = None, name: str = "") -> bool:
    """Run the command in a process that ends in the middle of a record, after so many; return whether it was killed.

    With the name of a function of some owner, it ends in place of a call of that one, in which `.lsh-` is named.
    """
    if (child := os.fork()) == 0:
        left, append = [count], Journal.append

        def ending(self: Journal, value: Any, arrays: Any = ()) -> None:
            append(self, value, arrays)
            left[0] -= 1
            if left[0] <= 0:
                os.ftruncate(self._file, self._size - 3)
                os._exit(9)

        real = getattr(owner, name, None)

        def ending_before(*given: Any) -> None:
            left[0] -= name != "rename" or ".lsh-" in str(given)
            return real(*given) if left[0] else os._exit(9)

        setattr(owner or Journal, name or "append", ending_before if owner else ending)
        code = 1
        try:
            code = lsh(folder, *command, "--resume", "-q").returncode
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 9)
    return code == 9


@needs_fork
@pytest.mark.few(1)
@pytest.mark.parametrize("form", FORMS)
def test_a_killed_run_goes_on(tmp_path, monkeypatch, form):
    """Killed after each number of records, in the middle of the next one, it writes what a run writes that is not.

    Sometimes a journal loses its last records, as in a loss of power.
    """
    for module, name, value in (
        (blocks, "READ_SIZE", 900),
        (lines, "READ_SIZE", 900),
        (records, "BLOCK_DOCUMENTS", 9),
        (lsh_corpus, "MAX_BATCH", 8),
    ):
        monkeypatch.setattr(module, name, value)
    command = corpus(tmp_path, form)
    before = set(os.listdir(tmp_path))
    notes = [line for line in lsh(tmp_path, *command).stderr.splitlines() if b"ids repeat" in line]
    expected, draw = written(tmp_path), random.Random(1)
    kills, step = 0, 1
    while step:
        for name in set(os.listdir(tmp_path)) - before:
            subprocess.run(["rm", "-r", name], cwd=tmp_path, check=True)
        count = 0
        while count < MOST and killed(tmp_path, command, step):
            count += 1
            for path in (path for name in resuming.JOURNALS for path in tmp_path.glob(f"*.resume/{name}")):
                os.truncate(path, max(path.stat().st_size - draw.choice([0, 0, 3, 4000]), 0))
        if count == MOST:
            said = lsh(tmp_path, *command, "--resume").stderr
            assert [line for line in said.splitlines() if b"ids repeat" in line] == notes
        assert written(tmp_path) == expected
        assert not any(name.startswith(".lsh-") or name.endswith(".resume") for name in os.listdir(tmp_path))
        kills, step = kills + count, 3 * step if count else 0
    assert kills > MOST


@needs_fork
def test_nothing_is_read_or_computed_twice(tmp_path, monkeypatch):
    """The texts that are hashed, and the records that are parsed, are those that no journal has."""
    monkeypatch.setattr(blocks, "READ_SIZE", 900)
    write_records(tmp_path / "in.jsonl", [{"text": f"{i} {text}"} for i, text in enumerate(texts(200))])
    command = ["dedup", "in.jsonl", "-o", "kept.jsonl"]
    assert killed(tmp_path, command, 14)
    with Journal(str(tmp_path / "kept.jsonl.resume" / "run")) as run:
        own, _ = next(run.records())
    with Journal(str(tmp_path / "kept.jsonl.resume" / "rows"), f"{own} rows") as rows:
        computed = [value[0] for value, _ in rows.records()][-1]
    hashed, parsed = [], []
    for module, name, counts in (
        (lsh_corpus, "batch_fingerprints", hashed),
        (text_formats.JsonLines, "one", parsed),
    ):
        real = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *given, real=real, counts=counts: (counts.append(given[1]), real(*given))[1]
        )
    assert 20 < computed < 180
    done(tmp_path, *command, "--resume", "-q")
    assert sum(map(len, hashed)) == 200 - computed
    assert len(parsed) <= 1 + sum(map(len, hashed))


@needs_fork
@pytest.mark.parametrize("exists", [False, True])
def test_killed_while_outputs_are_put_in_place(tmp_path, exists):
    """A run that has not put all files in place is never taken for one that has, nor one with other options."""
    for name in "ab":
        (tmp_path / f"{name}.tsv").write_text("".join(f"{i}\t{text}\n" for i, text in enumerate(texts(60))))
    command = ["dedup", "[ab].tsv", "-o", "kept/"]
    done(tmp_path, *command, "-q")
    (tmp_path / "kept").rename(tmp_path / "expected")
    for owner, name, count in ((os, "rename", 1), (os, "rename", 2), (resuming.Resumption, "end", 1)):
        subprocess.run(["rm", "-rf", "kept", FOLDER], cwd=tmp_path, check=True)
        if exists:
            (tmp_path / "kept").mkdir()
        assert killed(tmp_path, command, count, owner, name) == (exists or count == 1)
        moved = [path.name for path in (tmp_path / "kept").glob("*.tsv")]
        if moved and (count == 2 or (exists and name == "rename")):
            assert "must be a new or an empty folder" in refused(tmp_path, *command, "--resume")
        else:
            if moved:
                assert "must be a new" in refused(tmp_path, *command, "--resume", "--threshold", "0.7")
            done(tmp_path, *command, "--resume", "-q")
            assert sorted(os.listdir(tmp_path)) == ["a.tsv", "b.tsv", "expected", "kept"]
            assert contents(tmp_path / "kept") == contents(tmp_path / "expected")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills processes")
def test_sigkill(tmp_path):
    """Processes that are killed at random moments."""
    (tmp_path / "in.tsv").write_text("".join(f"{i}\t{text}\n" for i, text in enumerate(texts(40000))))
    command = ["dedup", "in.tsv", "-o", "kept/", "--removed", "gone.tsv"]
    begun = time.monotonic()
    done(tmp_path, *command, "-q")
    seconds, draw = time.monotonic() - begun, random.Random(0)
    (tmp_path / "kept").rename(tmp_path / "whole")
    expected = (tmp_path / "gone.tsv").read_bytes()
    (tmp_path / "gone.tsv").unlink()
    for _ in range(KILLS):
        started = [sys.executable, "-m", "lsh", *command, "--resume", "-q"]
        process = subprocess.Popen(started, cwd=tmp_path, env=environment())
        time.sleep(draw.uniform(0.2, 1.2) * max(seconds, 0.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if (tmp_path / "kept").exists() and not (tmp_path / "kept.resume").exists():
            subprocess.run(["rm", "-r", "kept"], cwd=tmp_path, check=True)  # it had ended
    done(tmp_path, *command, "--resume", "-q")
    assert (tmp_path / "gone.tsv").read_bytes() == expected
    assert (tmp_path / "kept" / "in.tsv").read_bytes() == (tmp_path / "whole" / "in.tsv").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["gone.tsv", "in.tsv", "kept", "whole"]


def test_what_cannot_go_on(tmp_path, monkeypatch):
    (tmp_path / "in.txt").write_bytes(STORY + b"\n" + OTHER + b"\n")
    command = ["dedup", "in.txt", "-o", "kept.txt"]

    def fails(self: Journal, value: object, arrays: object = ()) -> None:
        raise OSError(28, "No space left on device", "kept.txt.resume/rows")

    with monkeypatch.context() as patched:
        patched.setattr("lsh.engine.saving.SavedRows.append", fails)
        note, error = lsh(tmp_path, *command, "--resume").stderr.splitlines()[-2:]
        assert note == b"kept.txt.resume has what was read: the same command goes on from there"
        assert b"No space left on device" in error
    folder = "kept.txt.resume"
    problem = f"{folder} is of a run with no --threshold, and this one has --threshold 0.7; give the same options, or "
    assert problem in refused(tmp_path, *command, "--resume", "--threshold", "0.7")
    allowing = "--on-bad-line", "skip", "--rejects", "bad.txt"
    with monkeypatch.context() as patched:
        patched.setattr("lsh.terminal.outputs.put_in_place", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            lsh(tmp_path, *command, "--resume", *allowing)
    assert "with --rejects bad.txt, and this one has no --rejects; give" in refused(tmp_path, *command, "--resume")
    command += allowing
    with Journal(str(tmp_path / folder / "run")):
        assert "another process uses it; wait until that one has ended" in refused(tmp_path, *command, "--resume")
    (tmp_path / "in.txt").write_bytes(STORY + b"\n")
    problem = f"in.txt has changed since the run of {folder} began; restore it, or delete the folder"
    assert problem in refused(tmp_path, *command, "--resume")
    (tmp_path / "other.txt").write_bytes(STORY)
    problem = f"{folder} is of a run that does not read other.txt; give the same files, or delete"
    assert problem in refused(tmp_path, "dedup", "other.txt", *command[1:], "--resume")
    with Journal(str(tmp_path / folder / "run")) as run:
        run.clear()  # as if the file was lost
        for journal in ("input", "rows"):
            (tmp_path / folder / journal).write_bytes(b"of another run")
    done(tmp_path, *command, "--resume", "-q")
    assert (tmp_path / "kept.txt").read_bytes() == STORY + b"\n"
