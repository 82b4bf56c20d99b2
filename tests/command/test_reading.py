"""Input of the commands: folders of shards, several inputs, columns, and options that would be ignored."""

import gzip
import itertools
import json
from pathlib import Path

import pytest
from running import OTHER as B
from running import STORY as A
from running import done, lsh, refused

from lsh.storage import disk
from lsh.terminal.inputs import TextStream


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """A folder with the folder shards, of three files of tab-separated lines, and two such files beside it."""
    (tmp_path / "shards" / "deep").mkdir(parents=True)
    (tmp_path / "shards" / "1.tsv").write_bytes(b"a\t" + A + b"\nb\t" + B + b"\n")
    (tmp_path / "shards" / "2.tsv.gz").write_bytes(gzip.compress(b"c\t" + A + b"\n"))
    (tmp_path / "shards" / "deep" / "3.tsv").write_bytes(b"d\t" + B + b" and once more\n")
    (tmp_path / "new.tsv").write_bytes(b"e\t" + A + b"\nf\twords of another kind\n")
    (tmp_path / "old.tsv").write_bytes(b"g\t" + A + b"\n")
    return tmp_path


def test_several_inputs(shards):
    """Each may be a file, a folder or a pattern; --pattern is for the folders among them."""
    everything = ["new.tsv", "shards", "old*.tsv"]
    assert json.loads(done(shards, "stats", *everything, "--json"))["documents"] == 7
    assert json.loads(done(shards, "plan", "--sample", *everything, "--json"))["documents"] == 7
    between = done(shards, "pairs", "shards", "new.tsv").splitlines()
    assert between == [b"a\te\t1.0", b"c\te\t1.0"]
    within = done(shards, "pairs", "--within", *everything).splitlines()
    assert len(within) == 7
    assert set(within) > {b"e\ta\t1.0", b"e\tg\t1.0", b"a\tc\t1.0"}
    assert done(shards, "pairs", "--within", "new.tsv") == done(shards, "pairs", "new.tsv") == b""
    arguments = ["dedup", "shards", "--pattern", "*.tsv", "--against", "old.tsv", "-o", "out.tsv"]
    assert b"3 documents, 1 reference document, 2 removed, 1 of them for a reference" in lsh(shards, *arguments).stderr
    assert done(shards, "pairs", "new.tsv", "shards", "--pattern", "*.gz") == b"e\tc\t1.0\n"


def test_references_before_and_after_the_input(shards):
    """The last name after --against is INPUT where nothing else is."""
    for line in (
        "new.tsv -o out.tsv --against old.tsv shards",
        "-o out.tsv --against old.tsv shards new.tsv",
        "--against old.tsv --against shards new.tsv -o out.tsv",
        "--against old.tsv shards -o out.tsv new.tsv",
    ):
        result = lsh(shards, "dedup", *line.split())
        assert b"2 documents, 5 reference documents, 1 removed, 1 of them for a reference document" in result.stderr
        assert (shards / "out.tsv").read_bytes() == b"f\twords of another kind\n"


def test_notes_about_the_input(tmp_path):
    """Which column is the text, and bytes that are not UTF-8: once, before anything else, and not with -q."""
    (tmp_path / "in.csv").write_bytes(b"id,section,text\n1,news," + A + b"\n2,news," + B + b"\n")
    note = b"text: column 3 'text'; id: column 1 'id'\n"
    for command in (["dedup", "in.csv", "--dry-run"], ["pairs", "in.csv"], ["stats", "in.csv"]):
        assert lsh(tmp_path, *command).stderr.startswith(note)
        assert lsh(tmp_path, *command, "-q").stderr == b""
    assert lsh(tmp_path, "plan", "--sample", "in.csv").stderr == note
    (tmp_path / "copy.csv").write_bytes((tmp_path / "in.csv").read_bytes())
    two = lsh(tmp_path, "pairs", "in.csv", "copy.csv").stderr
    assert two.startswith(b"in.csv: " + note + b"copy.csv: " + note)
    said = lsh(tmp_path, "stats", "in.csv", "--field", "2", "--id-field", "1").stderr
    assert said == b"text: column 2 'section'; id: column 1 'id'\n"
    (tmp_path / "in.txt").write_bytes(b"one\ncaf\xe9\n")
    note = b"in.txt, line 2: byte 0xe9 is not UTF-8; if the file has another encoding, name it with --encoding\n"
    assert lsh(tmp_path, "stats", "in.txt").stderr == note
    assert lsh(tmp_path, "stats", "in.txt", "--encoding", "cp1252").stderr == b""
    (tmp_path / "in.jsonl").write_bytes(b'{"text": "a"}\nbad\n')
    message = refused(tmp_path, "dedup", "in.jsonl", "-o", "out.jsonl")
    problem = "not JSON (Expecting value at character 1); fix the line or use --on-bad-line skip"
    assert message == f"lsh: error: in.jsonl, line 2: {problem}"
    result = lsh(tmp_path, "dedup", "in.jsonl", "-o", "out.jsonl", "--on-bad-line", "skip")
    assert b"1 document, 0 removed, 0 clusters, 1 bad line skipped" in result.stderr


def test_ids_that_repeat_are_noticed_once(tmp_path):
    """Record numbers start at 1 in each file after --against, and continue through the files of a pattern."""
    lines = [b"x\t" + A, b"y\t" + B, b"z\twords of another kind", b"y\t" + A, b"y\t" + B, b"x\t" + B]
    (tmp_path / "in.tsv").write_bytes(b"\n".join(lines))
    arguments = ["dedup", "in.tsv", "-o", "out.tsv", "--removed", "removed.tsv"]
    message = b"ids repeat: records 2 and 4 have the id 'y'; use --id-field none for record numbers as ids\n6 documents"
    assert lsh(tmp_path, *arguments).stderr.startswith(b"text: column 2; id: column 1\n" + message)
    assert lsh(tmp_path, *arguments, "-q").stderr == b""
    assert b"repeat" not in lsh(tmp_path, "dedup", "in.tsv", "-o", "out.tsv").stderr
    numbered = lsh(tmp_path, *arguments, "--id-field", "none")
    assert numbered.stderr.startswith(b"text: column 2; id: record number\n6 documents")
    assert (tmp_path / "removed.tsv").read_bytes() == b"4\t1\t1.0\n5\t2\t1.0\n6\t2\t1.0\n"
    for name in ("a.tsv", "b.tsv", "a.txt", "b.txt"):
        (tmp_path / name).write_bytes(b"x\t%s has a text\n" % name.encode())
    message = b"ids repeat: records 1 (a.tsv) and 2 (b.tsv) have the id 'x'; use --id-field none for record numbers"
    assert message in lsh(tmp_path, "pairs", "a.tsv", "b.tsv", "--within").stderr
    arguments = ["dedup", "in.tsv", "--format", "txt", "-o", "out.txt", "--removed", "removed.tsv", "--against"]
    message = b"--against: ids repeat: records 1 (a.txt) and 2 (b.txt) have the id '1'; name the files by one"
    assert message in lsh(tmp_path, *arguments, "a.txt", "b.txt").stderr
    assert b"repeat" not in lsh(tmp_path, *arguments, "[ab].txt").stderr


def test_names_of_outputs_that_are_accepted(tmp_path):
    """Endings that say nothing against the format; a slash marks a folder, and where one exists it is clear."""
    (tmp_path / "in").mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / "in" / name).write_bytes(b'{"text": "%s"}\n' % name.encode())
    both = b'{"text": "a.jsonl"}\n{"text": "b.jsonl"}\n'
    done(tmp_path, "dedup", "in", "-o", "out.jsonl")
    done(tmp_path, "dedup", "in/*", "-o", "pattern")
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "pattern").read_bytes() == both
    done(tmp_path, "dedup", "in", "-o", "pattern")  # replaces the file
    (tmp_path / "out").mkdir()
    done(tmp_path, "dedup", "in", "-o", "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.jsonl", "b.jsonl"]
    (tmp_path / "in.data").write_bytes(both)
    for name in ("x", "x.2025", "x.gz"):
        done(tmp_path, "dedup", "out.jsonl", "-o", name)
    assert gzip.decompress((tmp_path / "x.gz").read_bytes()) == (tmp_path / "x.2025").read_bytes() == both
    done(tmp_path, "dedup", "in.data", "--format", "jsonl", "-o", "x.data")
    assert (tmp_path / "x.data").read_bytes() == both
    (tmp_path / "texts").mkdir()
    for name in ("a.txt", "b.md"):
        (tmp_path / "texts" / name).write_bytes(A)
    for place in ("texts.tsv.gz/", "new", "new.2"):
        done(tmp_path, "dedup", "texts", "-o", place)
        assert [path.name for path in (tmp_path / place).iterdir()] == ["a.txt"]
    for good in ("t.TSV", "t.txt.gz", "t.out", "t"):
        done(tmp_path, "dedup", "in.data", "--format", "jsonl", "-o", "x.data", "--removed", good, "-q")
        done(tmp_path, "pairs", "out.jsonl", "-o", good)
    for good in ("p.jsonl", "p.ndjson.gz", "p.txt", "p"):
        done(tmp_path, "pairs", "out.jsonl", "--json", "-o", good)


def test_options_count_for_the_files_that_have_a_use_for_them(tmp_path):
    """An option is an error only if neither INPUT nor the reference files have a use for it."""
    (tmp_path / "in.jsonl").write_bytes(b'{"id": "a", "text": "%s"}\n{"id": "b", "text": "two"}\n' % A)
    (tmp_path / "old.csv").write_bytes(b"id;text\nx;" + A + b"\n")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "y.txt").write_bytes(A)
    semicolon = ["--delimiter", ";", "--header", "--field", "text"]
    runs = [
        ("in.jsonl", "old.csv", b'{"id": "b", "text": "two"}\n', b"a\tx"),
        ("old.csv", "in.jsonl", b"id;text\n", b"x\ta"),
        ("old", "old.csv", None, b"y.txt\tx"),
        ("old.csv", "old", b"id;text\n", b"x\ty.txt"),
    ]
    for number, (new, old, kept, ids) in enumerate(runs):
        output = tmp_path / f"{number}-{new}"
        done(tmp_path, "dedup", new, "--against", old, "-o", output.name, "--removed", "removed.tsv", *semicolon)
        assert (tmp_path / "removed.tsv").read_bytes() == ids + b"\t1.0\told\n"
        assert list(output.iterdir()) == [] if kept is None else output.read_bytes() == kept
    assert done(tmp_path, "pairs", "in.jsonl", "old.csv", *semicolon) == b"a\tx\t1.0\n"
    for command in (["dedup", "--dry-run", "in.jsonl", "--against", "old"], ["pairs", "in.jsonl", "old"]):
        message = refused(tmp_path, *command, *semicolon)
        assert "--header is for .csv and .tsv, and this is .jsonl; leave it out" in message
    from_field = ["--report", "report.html", "--source-field", "from"]
    message = refused(tmp_path, "dedup", "old", "--dry-run", "--against", "in.jsonl", *from_field)
    assert "--source-field is for .jsonl" in message  # it applies to INPUT only


@pytest.mark.parametrize("place", ["nowhere", "file", "closed"])
def test_a_bad_folder_for_temporary_files(tmp_path, monkeypatch, place):
    """`tempfile` would silently use another folder."""
    (tmp_path / "in.txt").write_bytes(A + b"\n")
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "closed").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / place))
    if place == "closed":
        monkeypatch.setattr("lsh.base.budget.os.access", lambda path, mode: path != str(tmp_path / place))
    message = f"{tmp_path / place}: TMPDIR must name a folder that can be written to; correct it or unset it"
    for arguments in (["in.txt", "--max-memory", "1GB"], ["-", "--format", "txt"]):
        assert message in refused(tmp_path, "dedup", *arguments, "-o", "out.txt", stdin=A + b"\n")
    done(tmp_path, "dedup", "in.txt", "-o", "out.txt")  # needs no temporary folder
    monkeypatch.setenv("TMPDIR", "")  # counts as unset
    done(tmp_path, "dedup", "-", "--format", "txt", "-o", "out.txt", "--max-memory", "1GB", stdin=A + b"\n")


@pytest.mark.parametrize("change", ["text", "number"])
def test_a_file_whose_change_nothing_shows(tmp_path, monkeypatch, change):
    """As at a URL without a tag: texts that are read again are compared with the first reading; the file is named."""
    take = TextStream.take

    def changed(stream, positions):
        if change == "text":
            (tmp_path / "b.txt").write_bytes(b"A cat sat on the mat todax.\n")
            return take(stream, positions)
        return itertools.islice(take(stream, positions), 0)

    for name, text in (
        ("a", "A dog ran in the park."),
        ("b", "A cat sat on the mat today!"),
        ("c", "A cat sat on the mat"),
    ):
        (tmp_path / f"{name}.txt").write_text(f"{text}\n")
    monkeypatch.setattr(disk.LocalState, "of", classmethod(lambda cls, found: cls(found.st_size, 0, 0)))
    monkeypatch.setattr(TextStream, "take", changed)
    result = lsh(tmp_path, "pairs", "--within", "a.txt", "c.txt", "b.txt", "--threshold", "0.5", "-q")
    named = "b.txt" if change == "text" else "c.txt"
    message = f"lsh: error: {named}: it changed while it was read; run again when nothing writes to it\n"
    assert (result.returncode, result.stdout, result.stderr.decode()) == (2, b"", message)
