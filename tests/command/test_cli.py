"""`lsh dedup` on files: kept documents, output files and errors.

Expected results come from reference.py or are computed here. How files are read and written in detail is tested in
tests/files, behaviour that all commands share in test_main.py.
"""

from __future__ import annotations

import bz2
import gzip
import json
import os
import re
import sys
from pathlib import Path

import pytest
import reference
from answers import read_table, removals
from running import contents, done, lsh, process, refused

import lsh as package
from lsh.command import console

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sample.tsv"

STORY = b"the ferry left the harbour at nine with two hundred passengers and a brass band on board"
OTHER = b"growers in the valley expect a poor year for pears since the frost came late in the spring"
THIRD = b"a tortoise laid an egg on sunday and was given another name by everyone but the accountant"
CLOSE = STORY.replace(b"nine", b"nina")
DOCUMENTS = b"\n".join([STORY, OTHER, CLOSE, THIRD, OTHER]) + b"\n"
KEPT = b"\n".join([STORY, OTHER, THIRD]) + b"\n"


@pytest.fixture
def news(tmp_path: Path) -> Path:
    """A folder with news.txt of five lines, two of them near duplicates."""
    (tmp_path / "news.txt").write_bytes(DOCUMENTS)
    return tmp_path


def columns(data: bytes) -> list[list[bytes]]:
    lines = data.split(b"\n")
    assert lines.pop() == b""
    return [line.split(b"\t") for line in lines]


# The help.


def test_help_names_every_option_and_has_an_example(tmp_path):
    assert b"dedup" in done(tmp_path, "--help")
    text = done(tmp_path, "dedup", "--help").decode()
    for option in [
        "INPUT",
        "-o",
        "--threshold",
        "--ngram",
        "--unit",
        "--num-seeds",
        "--bands",
        "--field",
        "--removed",
        "--format",
        "--keep",
        "--clusters-mode",
        "--clusters",
        "--verify",
        "--against",
        "--missing",
        "--max-memory",
        "--num-threads",
        "--dry-run",
        "--quiet",
        "--verbose",
        "--json",
    ]:
        assert option in text
    assert re.search(r"^ *(\$ )?lsh dedup \S+ -o \S+", text, re.MULTILINE)


# The result.


def test_first_form(news):
    assert done(news, "dedup", "news.txt", "-o", "unique.txt", "--removed", "removed.tsv") == b""
    assert (news / "unique.txt").read_bytes() == KEPT
    similarity = repr(reference.jaccard(STORY, CLOSE, 8, "char")).encode()
    assert (news / "removed.tsv").read_bytes() == b"3\t1\t" + similarity + b"\n5\t2\t1.0\n"
    assert (news / "news.txt").read_bytes() == DOCUMENTS


def test_summary_is_one_line_on_stderr(news, monkeypatch):
    monkeypatch.setattr(console, "MIN_SECONDS", 0.0)  # shorter runs have no speed
    result = lsh(news, "dedup", "news.txt", "-o", "unique.txt")
    line = result.stderr.decode()
    assert line.count("\n") == 1
    assert line.endswith("\n")
    assert re.search(r"\b5 documents\b", line)
    assert re.search(r"\b2 removed\b", line)
    assert re.search(r"\b2 clusters\b", line)
    assert re.search(r"\b\d+(\.\d+)? seconds\b", line)
    assert re.search(r"\b\d+\.\d MB/s of text without writing\b", line)
    if sys.platform == "linux":
        assert re.search(r"\bpeak memory \d+(\.\d+)? [MG]B\b", line)


@pytest.mark.parametrize("more", [[], ["--report", "report.html"]])
def test_the_speed_leaves_out_report_and_writing(tmp_path, more, monkeypatch):
    """The speed counts only the seconds of reading, grouping and comparing."""
    monkeypatch.setattr(console, "MIN_SECONDS", 0.0)
    result = lsh(tmp_path, "dedup", SAMPLE, "-o", "out.tsv", "--json", *more)
    counts = json.loads(result.stdout)
    seconds = counts["seconds"]
    left = seconds["total"] - seconds["writing"] - seconds.get("report", 0.0)
    assert ("report" in seconds) == bool(more)
    without = "report and writing" if more else "writing"
    rate = f"{counts['bytes'] / 1e6 / left:.1f}"
    parts = ", ".join(f"{stage} {seconds[stage]:.1f}" for stage in ("report", "writing") if stage in seconds)
    expected = f", {seconds['total']:.1f} seconds ({parts}), {rate} MB/s of text without {without}"
    assert expected in result.stderr.decode()


def test_a_short_run_has_no_speed(news, monkeypatch):
    monkeypatch.setattr(console, "MIN_SECONDS", 1e9)
    assert b"MB/s" not in lsh(news, "dedup", "news.txt", "-o", "unique.txt").stderr


def test_cluster_of_several_counts_once(tmp_path):
    (tmp_path / "in.txt").write_bytes((STORY + b"\n") * 4 + OTHER + b"\n")
    line = lsh(tmp_path, "dedup", "in.txt", "-o", "out.txt").stderr.decode()
    assert re.search(r"\b3 removed\b", line)
    assert re.search(r"\b1 cluster\b|\b1 clusters\b", line)


def test_sample(tmp_path):
    """On the sample of the repository no near duplicate is missed, and no other text is touched."""
    rows = columns(SAMPLE.read_bytes())
    done(tmp_path, "dedup", SAMPLE, "-o", "unique.tsv", "--removed", "removed.tsv")
    expected = reference.deduplicate_exact([text for _, text in rows], 0.8, n=8, unit="char")
    kept = [b"\t".join(row) + b"\n" for row, stays in zip(rows, expected.kept, strict=True) if stays]
    assert (tmp_path / "unique.tsv").read_bytes() == b"".join(kept)
    removed = [
        [rows[i][0], rows[j][0], repr(similarity).encode()]
        for i, (j, similarity, _) in sorted(expected.removed.items())
    ]
    assert columns((tmp_path / "removed.tsv").read_bytes()) == removed


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("options", "n", "unit", "threshold", "num_seeds", "widths"),
    [
        ([], 8, "char", 0.8, 128, [6] * 6 + [7] * 13),
        (["--recall", "0.3", "--num-seeds", "24"], 8, "char", 0.8, 24, [7] * 2),
        (["--threshold", "0.5", "--num-seeds", "24", "--bands", "4x3"], 8, "char", 0.5, 24, [3] * 4),
        (
            ["--threshold", "0.6", "--num-seeds", "30", "--bands", "2x4+3x7", "--ngram", "3", "--unit", "byte"],
            3,
            "byte",
            0.6,
            30,
            [4, 4, 7, 7, 7],
        ),
        (
            ["--threshold", "0.4", "--num-seeds", "16", "--bands", "8x2", "--ngram", "2", "--unit", "word"],
            2,
            "word",
            0.4,
            16,
            [2] * 8,
        ),
    ],
)
def test_options_mean_what_they_say(tmp_path, options, n, unit, threshold, num_seeds, widths):
    """There are few bands, so that they miss pairs. These must be the pairs that the reference misses."""
    count = 24 if num_seeds == 128 else 60
    rows = [row for row in columns(SAMPLE.read_bytes()) if b"crowns" in row[1]][:count]
    texts = [text[:160].rstrip() for _, text in rows]
    (tmp_path / "in.txt").write_bytes(b"".join(text + b"\n" for text in texts))
    done(tmp_path, "dedup", "in.txt", "-o", "out.txt", "--removed", "removed.tsv", *options)
    expected = reference.deduplicate(
        texts, threshold, widths=widths, seeds=(num_seeds, 0), hashbytes=None, n=n, unit=unit
    )
    removed = [
        [b"%d" % (i + 1), b"%d" % (j + 1), repr(similarity).encode()]
        for i, (j, similarity, _) in sorted(expected.removed.items())
    ]
    assert removed
    assert columns((tmp_path / "removed.tsv").read_bytes()) == removed


def test_unit_counts_characters_not_bytes(tmp_path):
    """Seven Japanese letters are 21 bytes, and one shingle of 8 characters."""
    lines = ["駅から徒歩五分\n", "駅から徒歩三分\n"]
    (tmp_path / "in.txt").write_text("".join(lines), encoding="utf-8", newline="\n")
    done(tmp_path, "dedup", "in.txt", "-o", "char.txt", "--threshold", "0.1")
    done(tmp_path, "dedup", "in.txt", "-o", "byte.txt", "--threshold", "0.1", "--unit", "byte", "--bands", "128x1")
    assert (tmp_path / "char.txt").read_text(encoding="utf-8") == "".join(lines)
    assert (tmp_path / "byte.txt").read_text(encoding="utf-8") == lines[0]


def test_threshold_of_one_removes_equal_sets_only(news):
    done(news, "dedup", "news.txt", "-o", "unique.txt", "--threshold", "1")
    assert (news / "unique.txt").read_bytes() == b"\n".join([STORY, OTHER, CLOSE, THIRD]) + b"\n"


def test_same_bytes_each_time(tmp_path):
    for name in ["one", "two"]:
        done(tmp_path, "dedup", SAMPLE, "-o", f"{name}.tsv.gz", "--removed", f"{name}.removed")
    assert (tmp_path / "one.tsv.gz").read_bytes() == (tmp_path / "two.tsv.gz").read_bytes()
    assert (tmp_path / "one.removed").read_bytes() == (tmp_path / "two.removed").read_bytes()


# Which documents are kept.


def test_keep(tmp_path):
    lines = [STORY, OTHER, CLOSE + b"!", THIRD, OTHER]
    (tmp_path / "in.txt").write_bytes(b"\n".join(lines) + b"\n")
    for keep, places in {"first": [0, 1, 3], "last": [2, 3, 4], "longest": [1, 2, 3]}.items():
        assert done(tmp_path, "dedup", "in.txt", "-o", "-", "--keep", keep).splitlines() == [lines[i] for i in places]


def test_clusters_mode_and_clusters(tmp_path):
    """The third text is like the second, which is a duplicate of the first, but not like the first."""
    words = [b"w%d" % i for i in range(40)]
    texts = [b" ".join(words[start : start + 20]) for start in (0, 2, 4)] + [b"alone", b" ".join(words[:20])]
    (tmp_path / "in.tsv").write_bytes(b"".join(b"d%d\t%s\n" % (i, text) for i, text in enumerate(texts)))
    options = ["--ngram", "1", "--unit", "word", "--bands", "128x1", "--clusters", "clusters.tsv"]
    near, far = (reference.jaccard(texts[0], texts[i], 1, "word") for i in (1, 2))
    assert near > 0.8 > far
    expected = {"representative": [b"d0", b"d1", b"d4"], "components": [b"d0", b"d1", b"d2", b"d4"]}
    for mode, members in expected.items():
        done(tmp_path, "dedup", "in.tsv", "-o", "out.tsv", "--clusters-mode", mode, *options)
        kept = [doc_id for doc_id, _ in columns((tmp_path / "out.tsv").read_bytes())]
        assert kept == [doc_id for doc_id in (b"d0", b"d1", b"d2", b"d3", b"d4") if doc_id not in members[1:]]
        assert columns((tmp_path / "clusters.tsv").read_bytes()) == [[b"1", doc_id] for doc_id in members]


def test_several_clusters_are_numbered(news):
    done(news, "dedup", "news.txt", "-o", "out.txt", "--clusters", "clusters.tsv.gz")
    table = gzip.decompress((news / "clusters.tsv.gz").read_bytes())
    assert table == b"1\t1\n1\t3\n2\t2\n2\t5\n"


def test_keep_last_names_the_kept_one_first(news):
    done(news, "dedup", "news.txt", "-o", "out.txt", "--clusters", "clusters.tsv", "--keep", "last")
    assert (news / "clusters.tsv").read_bytes() == b"1\t3\n1\t1\n2\t5\n2\t2\n"


@pytest.mark.parametrize("verify", ["sketch", "none"])
def test_verify(tmp_path, verify):
    """The similarities are estimates; without verification a shared band is enough."""
    rows = columns(SAMPLE.read_bytes())
    hasher = package.MinHasher(128, scheme="fss", shingles=package.Shingles(8))
    texts = dict(rows)
    options = ["--verify", verify, "--bands", "20x6", "--threshold", "0.9"]
    done(tmp_path, "dedup", SAMPLE, "-o", "out.tsv", "--removed", "removed.tsv", *options)
    removed = columns((tmp_path / "removed.tsv").read_bytes())
    for doc_id, witness, similarity in removed:
        assert float(similarity) == hasher.jaccard(texts[doc_id], texts[witness])
    least = min(float(similarity) for _, _, similarity in removed)
    assert (least >= 0.9) == (verify == "sketch")


def test_against(tmp_path):
    """All old documents are kept. A new document is removed if it is like an old one or an earlier new one."""
    (tmp_path / "in.tsv").write_bytes(b"".join(b"n%d\t%s\n" % pair for pair in enumerate([STORY, OTHER, THIRD, THIRD])))
    (tmp_path / "old1.tsv").write_bytes(
        b"a\t" + STORY + b" and then once more with the band on the upper deck\nb\t" + CLOSE + b"\n"
    )
    (tmp_path / "old2.tsv").write_bytes(b"c\t" + STORY[:20] + b"\nd\t" + OTHER + b"\n")
    options = ["--against", "old1.tsv", "old2.tsv", "--removed", "removed.tsv", "--clusters", "clusters.tsv"]
    result = lsh(tmp_path, "dedup", "in.tsv", "-o", "out.tsv", *options)
    notes, last = result.stderr.split(b"\n")[:-2], result.stderr.split(b"\n")[-2]
    note = b"text: column 2; id: column 1"
    assert notes == [note, b"--against: " + note]  # once for both files
    assert last.startswith(
        b"4 documents, 4 reference documents, 3 removed, 2 of them for a reference document, 1 cluster, "
    )
    assert columns((tmp_path / "out.tsv").read_bytes()) == [[b"n2", THIRD]]
    similarity = repr(reference.jaccard(STORY, CLOSE, 8, "char")).encode()
    assert columns((tmp_path / "removed.tsv").read_bytes()) == [
        [b"n0", b"b", similarity, b"old", b"in.tsv", b"old1.tsv", b"similar"],
        [b"n1", b"d", b"1.0", b"old", b"in.tsv", b"old2.tsv", b"identical"],
        [b"n3", b"n2", b"1.0", b"new", b"in.tsv", b"in.tsv", b"identical"],
    ]
    assert columns((tmp_path / "clusters.tsv").read_bytes()) == [[b"1", b"n2"], [b"1", b"n3"]]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["-o", "out.txt", "--against", "absent.txt"], "absent.txt"),
        (["-o", "old.txt", "--against", "old.txt"], "--against"),
        (["-o", "out.txt", "--removed", "old.txt", "--against", "old.txt"], "--against"),
        (["-o", "out.txt", "--clusters", "out.txt"], "--clusters"),
        (["-o", "out.txt", "--removed", "a.tsv", "--clusters", "a.tsv"], "--clusters"),
        (["-o", "-", "--json"], "--json"),
    ],
)
def test_files_in_each_others_way(news, arguments, word):
    (news / "old.txt").write_bytes(STORY + b"\n")
    assert word in refused(news, "dedup", "news.txt", *arguments)


def test_a_file_that_is_named_twice_is_read_once(news):
    (news / "folder").mkdir()
    (news / "folder" / "part.jsonl").write_bytes(b'{"text": "%s"}\n' % STORY)
    (news / "link.txt").symlink_to("news.txt")
    for names, count in (
        (["news.txt", "news.txt"], b"5 documents, "),
        (["news.txt", "./news.txt"], b"5 documents, "),
        (["news.txt", "link.txt"], b"5 documents, "),
        (["folder", "folder/part.jsonl"], b"1 document, "),
    ):
        result = lsh(news, "dedup", *names, "--dry-run")
        assert result.stderr.startswith(f"{names[1]}: named twice, read once\n".encode())
        assert count in result.stderr
        assert lsh(news, "dedup", *names, "--dry-run", "-q").stderr == b""


@pytest.mark.parametrize("against", ["news.txt", "./news.txt", "link.txt"])
def test_input_must_not_be_its_own_reference(news, against):
    (news / "link.txt").symlink_to("news.txt")
    message = refused(news, "dedup", "news.txt", "-o", "out.txt", "--against", against)
    assert f"{against} is INPUT and --against: a file compared with itself loses every document" in message


def test_standard_input_twice(news):
    message = refused(news, "dedup", "-", "--against", "-", "-o", "out.txt", "--format", "txt", stdin=DOCUMENTS)
    assert "standard input" in message


@pytest.mark.few(1)
@pytest.mark.skipif(sys.platform == "win32", reason="needs /dev/stdin")
@pytest.mark.parametrize(
    ("arguments", "shell", "problem"),
    [
        (["news.txt", "-o", "-"], ">>news.txt", "standard output must not be INPUT (news.txt)"),
        (["-", "/dev/stdin", "-o", "out.txt", "--format", "txt"], "", "a pipe can be read only once"),
        (["news.txt", "-o", "-", "--removed", "/dev/stdout"], "", "--removed must not be OUTPUT"),
        (["news.txt", "-o", "/dev/stdout", "--removed", "-"], "", "--removed must not be OUTPUT"),
        (["news.txt", "-o", "-", "--removed", "/dev/null"], ">/dev/null", ""),
        (["news.txt", "-o", "out.txt"], ">>news.txt", ""),
        (["-", "-o", "out.txt", "--format", "txt"], "0>other", "standard input: Bad file descriptor"),
    ],
)
def test_standard_streams_by_two_names(news, arguments, shell, problem):
    """Nothing is read, written or appended to where a stream is a file of the run, or is there twice."""
    before = (news / "news.txt").read_bytes()
    result = process(news, "dedup", *arguments, "-q", stdin=DOCUMENTS, shell=shell)
    assert (result.returncode, result.stdout) == (2 if problem else 0, b"")
    assert problem in result.stderr.decode()
    assert (news / "news.txt").read_bytes() == before


def test_missing(tmp_path):
    lines = [b'{"text": null}\n', b'{"id": 5}\n', b'{"text": "%s"}\n' % STORY, b'{"text": "%s"}\n' % STORY]
    (tmp_path / "in.jsonl").write_bytes(b"".join(lines))
    assert "line 1" in refused(tmp_path, "dedup", "in.jsonl", "-o", "out.jsonl")
    result = lsh(tmp_path, "dedup", "in.jsonl", "-o", "out.jsonl", "--missing", "empty")
    assert (tmp_path / "out.jsonl").read_bytes() == b"".join(lines[:3])
    assert re.search(rb"\b1 removed, 1 cluster, 2 missing\b", result.stderr)


# The run.


def test_memory_and_threads_change_nothing(tmp_path):
    names = []
    for number, options in enumerate([[], ["--num-threads", "1"], ["--num-threads", "3", "--max-memory", "200KB"]]):
        files = [f"{name}{number}.tsv" for name in ("out", "removed", "clusters")]
        done(tmp_path, "dedup", SAMPLE, "-o", files[0], "--removed", files[1], "--clusters", files[2], *options)
        names.append(files)
    for files in zip(*names, strict=True):
        first, *others = [(tmp_path / name).read_bytes() for name in files]
        assert first
        assert others == [first, first]


def test_a_dry_run_writes_the_tables_only(news):
    tables = ["--removed", "removed.tsv", "--clusters", "clusters.tsv"]
    done(news, "dedup", "news.txt", "-o", "out.txt", *tables)
    expected = contents(news)
    for name in ("out.txt", "removed.tsv", "clusters.tsv"):
        (news / name).unlink()
    done(news, "dedup", "news.txt", "-o", "out.txt", "--dry-run", *tables)
    assert "out.txt" in expected
    assert contents(news) == {name: data for name, data in expected.items() if name != "out.txt"}


def test_lone_surrogates_in_ids_are_escapes_in_a_table(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(
        b'{"id": "a\\ud800", "text": "%b"}\n{"id": "b\\udfff", "text": "%b"}\n' % (A, A)
    )
    done(tmp_path, "dedup", "in.jsonl", "-o", "out.jsonl", "--removed", "removed.tsv")
    assert (tmp_path / "removed.tsv").read_bytes().decode("utf-8") == "b\\udfff\ta\\ud800\t1.0\n"


def test_dry_run_writes_nothing(news):
    before = contents(news)
    for more in [[], ["-o", "out.txt"], ["-o", "-"]]:
        result = lsh(news, "dedup", "news.txt", "--dry-run", *more)
        assert result.returncode == 0
        assert result.stdout == b""
        assert result.stderr.startswith(b"5 documents, 2 removed, 2 clusters, ")
        assert contents(news) == before


def test_quiet_and_verbose(news):
    assert lsh(news, "dedup", "news.txt", "-o", "out.txt", "-q").stderr == b""
    assert refused(news, "dedup", "absent.txt", "-o", "out.txt", "-q")
    said = lsh(news, "dedup", "news.txt", "-o", "out.txt", "-v").stderr.decode()
    assert said.startswith("MinHasher(128, random_state=0, scheme='fss', shingles=Shingles(8, unit='char'))\n")
    assert str(package.plan()) in said
    assert re.search(r"^seconds: preparing \d.*, fingerprints \d.*, total \d", said, re.MULTILINE)
    assert said.splitlines()[-1].startswith("5 documents, 2 removed, ")
    assert lsh(news, "dedup", "news.txt", "-o", "out.txt", "-q", "-v").returncode == 2


def test_the_last_line_counts_documents_without_shingles(tmp_path):
    """A column of empty cells is most likely the wrong one."""
    (tmp_path / "in.csv").write_text("id;text;note\n1;one two three;\n2;four five six;\n3;;\n", encoding="utf-8")
    by_field = {"text": b", 0 clusters, 1 without shingles, ", "note": b", 0 clusters, 3 without shingles, "}
    for field, expected in by_field.items():
        assert expected in lsh(tmp_path, "dedup", "in.csv", "--delimiter", ";", "--field", field, "--dry-run").stderr
    (tmp_path / "in.jsonl").write_text('{"text": "one two three"}\n{"text": null}\n', encoding="utf-8")
    result = lsh(tmp_path, "dedup", "in.jsonl", "--missing", "empty", "--dry-run")
    assert b", 0 clusters, 1 missing, 0." in result.stderr  # which has no shingles either


def test_counts_for_machines(news):
    result = lsh(news, "dedup", "news.txt", "-o", "out.txt", "--json", "--threshold", "0.7")
    assert (news / "out.txt").read_bytes() == KEPT
    assert result.stderr.startswith(b"5 documents, ")
    found = json.loads(result.stdout)
    expected = {"documents": 5, "old": 0, "kept": 3, "removed": 2, "identical": 1, "clusters": 2, "missing": 0}
    assert expected.items() <= found.items()
    assert found["bytes"] == len(DOCUMENTS) - 5
    assert found["threshold"] == 0.7
    assert package.Bands.from_string(found["bands"]) == package.plan(0.7).bands
    assert list(found["seconds"]) == ["preparing", "fingerprints", "grouping", "comparing", "writing", "total"]
    dry = done(news, "dedup", "news.txt", "--dry-run", "--json", "-q", "--threshold", "0.7")
    assert expected.items() <= json.loads(dry).items()


def test_the_stages_sum_to_the_whole(news):
    """Each stage, the report included, has its seconds; together they cover the whole run."""
    import time

    started = time.perf_counter()
    options = ["-o", "out.txt", "--report", "report.html", "--json", "-q"]
    seconds = json.loads(done(news, "dedup", "news.txt", *options))["seconds"]
    whole = time.perf_counter() - started
    total = seconds.pop("total")
    assert list(seconds) == ["preparing", "fingerprints", "grouping", "comparing", "report", "writing"]
    assert all(value > 0 for value in seconds.values())
    assert sum(seconds.values()) == pytest.approx(total, rel=1e-9)
    assert 0.5 * whole < total <= whole


def test_skipped_comparisons_are_reported(tmp_path):
    """A word in all texts fills a bucket of each band with more than a thousand texts."""
    (tmp_path / "in.txt").write_bytes(b"".join(b"shared a%d b%d\n" % (i, i) for i in range(4500)))
    options = ["--ngram", "1", "--unit", "word", "--num-seeds", "4", "--bands", "4x1", "--threshold", "0.9"]
    result = lsh(tmp_path, "dedup", "in.txt", "-o", "out.txt", "--json", *options)
    counts = json.loads(result.stdout)
    capped = counts["capped"]
    assert capped > 1000
    assert counts["recall"] is None
    left_out = f"{capped:,} comparisons left out in buckets of more than 1,000 documents: similar documents may remain"
    recall = 1 - (1 - 0.9) ** 4
    assert f"{left_out} there, and the recall of {recall:.3f} does not hold; " in result.stderr.decode()
    result = lsh(tmp_path, "dedup", "in.txt", "-o", "out2.txt", "--json", "--ngram", "1", "--unit", "word")
    assert json.loads(result.stdout)["capped"] == 0
    assert json.loads(result.stdout)["recall"] == package.plan(0.8).recall_at(0.8)
    assert "left out" not in result.stderr.decode()


# Pipes.


def test_stdin_to_stdout(tmp_path):
    assert done(tmp_path, "dedup", "-", "-o", "-", "--format", "txt", stdin=DOCUMENTS) == KEPT
    assert contents(tmp_path) == {}


def test_stdin_to_file_and_file_to_stdout(news):
    assert done(news, "dedup", "-", "-o", "unique.txt", "--format", "txt", stdin=DOCUMENTS) == b""
    assert (news / "unique.txt").read_bytes() == KEPT
    assert done(news, "dedup", "news.txt", "-o", "-") == KEPT


def test_compressed_stdin(tmp_path):
    assert done(tmp_path, "dedup", "-", "-o", "-", "--format", "txt.gz", stdin=gzip.compress(DOCUMENTS)) == KEPT


def test_stdin_needs_a_format(tmp_path):
    assert "--format" in refused(tmp_path, "dedup", "-", "-o", "out.txt", stdin=DOCUMENTS)


def test_error_on_stdin_leaves_stdout_empty(tmp_path):
    message = refused(tmp_path, "dedup", "-", "-o", "-", "--format", "tsv", stdin=b"1\tone\n2\ttwo\nthree\n")
    assert "line 3" in message


# Bad options.


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--threshold", "0"),
        ("--threshold", "-0.5"),
        ("--threshold", "1.01"),
        ("--threshold", "nan"),
        ("--threshold", "inf"),
        ("--threshold", "high"),
        ("--threshold", ""),
        ("--ngram", "0"),
        ("--ngram", "-3"),
        ("--ngram", "2.5"),
        ("--ngram", "five"),
        ("--num-seeds", "0"),
        ("--num-seeds", "-1"),
        ("--num-seeds", "many"),
        ("--num-seeds", "1000000000000"),
        ("--num-seeds", "99999999999999999999"),
        ("--bands", "20"),
        ("--bands", "x"),
        ("--bands", "20x"),
        ("--bands", "x6"),
        ("--bands", "0x6"),
        ("--bands", "20x0"),
        ("--bands", "-2x6"),
        ("--bands", "2x3x4"),
        ("--bands", "2x7+"),
        ("--bands", "2x7,3x8"),
        ("--bands", ""),
        ("--bands", "wide"),
        ("--bands", "9999999999999x9999999999999"),
        ("--recall", "0"),
        ("--recall", "1"),
        ("--recall", "1.5"),
        ("--recall", "-0.5"),
        ("--recall", "nan"),
        ("--recall", "most"),
        ("--recall", ""),
        ("--unit", "line"),
        ("--verify", "no"),
        ("--keep", "best"),
        ("--clusters-mode", "all"),
        ("--missing", "skip"),
        ("--max-memory", "0"),
        ("--max-memory", "2"),
        ("--max-memory", "0.1"),
        ("--max-memory", "2 elephants"),
        ("--num-threads", "0"),
        ("--num-threads", "5000"),
        ("--num-threads", "two"),
        ("--format", "xml"),
        ("--format", "gz"),
        ("--format", "a/b.tsv"),
        ("--format", ""),
    ],
)
def test_bad_options(news, option, value):
    before = contents(news)
    result = lsh(news, "dedup", "news.txt", "-o", "out.txt", f"{option}={value}")
    message = result.stderr.decode()
    assert result.returncode == 2, message
    assert result.stdout == b""
    assert contents(news) == before
    assert "Traceback" not in message
    last = message.splitlines()[-1]
    assert re.match(r"lsh( dedup)?: error: ", last), message
    assert option.rpartition("-")[2] in last, message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--threshold", "0"], "--threshold must be more than 0 and at most 1, got 0.0"),
        (["--recall", "1"], "--recall must be more than 0 and less than 1, got 1.0"),
        (["--ngram", "0"], "--ngram must be 1 or more, got 0"),
        (["--num-seeds", "9999"], "--num-seeds must be at most 4096, got 9999"),
        (["--bands", "x"], "--bands must look like 20x6 or 2x7+14x8 (bands x width), got 'x'"),
        (["--bands", "20x7"], "--bands take 140 components, a fingerprint has 128; "),
        (["--encoding", "nope"], "--encoding must be one that Python knows, such as utf-8 or cp1252, got 'nope'"),
        (["--num-threads", "0"], "--num-threads must be 1 or more, got 0"),
        (["--max-memory", "2"], "--max-memory must be 100KB or more, got '2'; give a size such as '500MB' or '2GB'"),
        (["--num-seeds", "2"], "--num-seeds 2 is too few to find pairs of similarity 0.8 with a recall of 0.99; "),
        (["--ngram", "1e-2"], "argument --ngram: expected a whole number, got '1e-2'; see lsh dedup --help"),
    ],
)
def test_an_error_names_the_option(news, options, message):
    """The library's message names a parameter; the command's names the option."""
    assert refused(news, "dedup", "news.txt", "-o", "out.txt", *options).startswith(f"lsh: error: {message}")


@pytest.mark.parametrize("path", ["n must be.txt", "max_memory.txt", "threshold=0.5.txt", "recall must be/num_seeds"])
def test_the_name_of_a_file_stays_as_it_is(news, path):
    assert path in refused(news, "dedup", path, "-o", "out.txt", "--format", "txt")


def test_whole_numbers_as_people_write_them(news):
    for number in ("1e1", "10", "10.0", "1_0"):
        done(news, "dedup", "news.txt", "-o", f"{number}.txt", "--ngram", number, "--threshold", "0.7", "-q")
        assert (news / f"{number}.txt").read_bytes() == (news / "1e1.txt").read_bytes()


@pytest.mark.parametrize("name", ["report.pdf", "report.json", "report.pdf.gz", "report.PNG"])
def test_a_report_is_html(news, name):
    message = refused(news, "dedup", "news.txt", "-o", "out.txt", "--report", name)
    assert message == f"lsh: error: --report is a page of HTML; its name must end in .html, got {name}"


@pytest.mark.parametrize(
    "options",
    [
        ["--bands", "20x7"],
        ["--num-seeds", "100", "--bands", "20x6"],
        ["--num-seeds", "2"],
        ["--bands", "10x8+7x7"],
        ["--num-seeds", "64", "--bands", "65x1"],
    ],
)
def test_bands_need_as_many_seeds(news, options):
    message = refused(news, "dedup", "news.txt", "-o", "out.txt", *options)
    assert "seeds" in message


def test_recall_or_bands_but_not_both(news):
    message = refused(news, "dedup", "news.txt", "-o", "out.txt", "--recall", "0.9", "--bands", "20x6")
    assert "--recall" in message
    assert "--bands" in message


def test_a_recall_that_is_not_to_be_had(news):
    message = refused(news, "dedup", "news.txt", "-o", "out.txt", "--threshold", "0.02")
    assert "possible: --num-seeds 239 or more, or --threshold 0.038 or more" in message


def test_bands_may_leave_seeds_unused(news):
    done(news, "dedup", "news.txt", "-o", "out.txt", "--bands", "2x7+14x8")
    assert (news / "out.txt").read_bytes() == KEPT


# Bad files.


def test_missing_input(tmp_path):
    assert "absent.txt" in refused(tmp_path, "dedup", "absent.txt", "-o", "out.txt")


A = b"The ferry to the islands sails again on Monday, after two days of storm."
B = b"A piano teacher has moved to the old mill and takes pupils from May on."


def test_folder_as_input(tmp_path):
    (tmp_path / "in" / "more").mkdir(parents=True)
    texts = {"a.txt": A, "b.txt": B, "more/c.txt": A}
    for name, text in texts.items():
        (tmp_path / "in" / name).write_bytes(text)
    done(tmp_path, "dedup", "in", "-o", "out", "--removed", "removed.tsv")
    assert (tmp_path / "removed.tsv").read_bytes() == b"more/c.txt\ta.txt\t1.0\n"
    kept = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.txt")}
    assert kept == {"a.txt", "b.txt"}
    assert "out" in refused(tmp_path, "dedup", "in", "-o", "out")


def test_several_inputs_and_what_is_skipped(tmp_path):
    """Files of one format are one source; a pattern means the files that match it."""
    for name, text in {"1.jsonl": A, "2.jsonl": B, "3.jsonl": A}.items():
        (tmp_path / name).write_bytes(b'{"body": "%s"}\n{"body"\n' % text)
    run = ["dedup", "1.jsonl", "[23].jsonl", "-o", "out.jsonl.bz2", "--on-bad-line", "skip", "--rejects", "bad"]
    done(tmp_path, *run)
    assert bz2.decompress((tmp_path / "out.jsonl.bz2").read_bytes()) == b'{"body": "%s"}\n{"body": "%s"}\n' % (A, B)
    assert (tmp_path / "bad").read_bytes() == b'{"body"\n' * 3
    done(tmp_path, "dedup", "1.jsonl", "--dry-run", "--on-bad-line", "skip", "--rejects", "other")
    assert (tmp_path / "other").read_bytes() == b'{"body"\n'
    assert "one format" in refused(tmp_path, "dedup", "1.jsonl", "x.tsv", "-o", "out.jsonl")


def test_the_name_of_the_output_tells_the_truth(tmp_path):
    (tmp_path / "in.csv").write_bytes(b"text\n" + A + b"\n")
    assert "out.tsv" in refused(tmp_path, "dedup", "in.csv", "-o", "out.tsv")


@pytest.mark.parametrize("name", ["news", "news.xml", "news.gz", "news.txt.lz4", "txt", ".txt.zip"])
def test_unknown_extension(news, name):
    (news / "news.txt").rename(news / name)
    message = refused(news, "dedup", name, "-o", "out.txt")
    assert name in message
    assert "--format" in message


@pytest.mark.parametrize("output", ["out.tsv", "out.jsonl", "out.tsv.gz", "out.jsonl.gz"])
def test_output_of_another_format(news, output):
    assert output in refused(news, "dedup", "news.txt", "-o", output)


@pytest.mark.parametrize("output", ["news.txt", "./news.txt", "folder/../news.txt", "symbolic.txt", "hard.txt"])
def test_output_must_not_be_input(news, output):
    (news / "folder").mkdir()
    (news / "symbolic.txt").symlink_to("news.txt")
    os.link(news / "news.txt", news / "hard.txt")
    assert "INPUT" in refused(news, "dedup", "news.txt", "-o", output)
    refused(news, "dedup", "symbolic.txt", "-o", output)
    refused(news, "dedup", news / "news.txt", "-o", output)


@pytest.mark.parametrize(
    "removed", ["news.txt", "./news.txt", "out.txt", "folder/../out.txt", "symbolic.txt", "hard.txt"]
)
@pytest.mark.parametrize("exists", [False, True])
def test_removed_must_be_a_third_file(news, removed, exists):
    (news / "folder").mkdir()
    (news / "symbolic.txt").symlink_to("news.txt")
    os.link(news / "news.txt", news / "hard.txt")
    if exists:
        (news / "out.txt").write_bytes(b"yesterday\n")
    message = refused(news, "dedup", "news.txt", "-o", "out.txt", "--removed", removed)
    assert "--removed" in message


@pytest.mark.parametrize(
    "arguments",
    [
        ["-o", "news.txt/out.txt"],
        ["-o", "folder.txt"],
        ["-o", ""],
        ["-o", "out.txt", "--removed", "news.txt/removed.tsv"],
        ["-o", "out.txt", "--removed", "folder.txt"],
    ],
)
def test_output_that_cannot_be_written(news, arguments):
    (news / "folder.txt").mkdir()
    refused(news, "dedup", "news.txt", *arguments)


def test_removed_documents(news):
    done(news, "dedup", "news.txt", "-o", "out.txt", "--removed-documents", "gone.txt")
    assert (news / "gone.txt").read_bytes() == b"\n".join([CLOSE, OTHER]) + b"\n"
    assert (news / "out.txt").read_bytes() == KEPT
    assert "the output has the format of the input" in refused(
        news, "dedup", "news.txt", "--dry-run", "--removed-documents", "gone.csv"
    )
    assert "OUTPUT" in refused(news, "dedup", "news.txt", "-o", "x.txt", "--removed-documents", "x.txt")


def test_missing_folders_are_made(news):
    done(news, "dedup", "news.txt", "-o", "a/b/out.txt", "--removed", "c/removed.tsv", "--clusters", "c/d/clusters.tsv")
    assert (news / "a" / "b" / "out.txt").read_bytes() == KEPT
    assert (news / "c" / "removed.tsv").exists()
    assert (news / "c" / "d" / "clusters.tsv").exists()
    done(news, "dedup", "news.txt", "-o", "e/out.txt", "--dry-run")
    (news / "bad.tsv").write_bytes(b"1\tone\n2 two\n")
    refused(news, "dedup", "bad.tsv", "-o", "e/f/out.tsv", "--removed", "g/removed.tsv")
    assert not (news / "e").exists()
    assert not (news / "g").exists()


def test_error_leaves_both_outputs_as_they_were(tmp_path):
    (tmp_path / "in.tsv").write_bytes(b"1\tone\n2 two\n")
    (tmp_path / "out.tsv").write_bytes(b"yesterday\n")
    (tmp_path / "removed.tsv").write_bytes(b"yesterday too\n")
    message = refused(tmp_path, "dedup", "in.tsv", "-o", "out.tsv", "--removed", "removed.tsv")
    assert message.startswith("lsh: error: in.tsv, line 2: ")


# A real corpus.


@pytest.mark.slow
def test_reuters(tmp_path, data_folder):
    """At least 99.5 % of the exact answer's removals are made, and none without a kept story at J >= .8."""
    corpus = data_folder / "reuters21578.tsv.gz"
    done(
        tmp_path,
        "dedup",
        corpus,
        "-o",
        "unique.tsv.gz",
        "--ngram",
        "5",
        "--unit",
        "byte",
        "--threshold",
        "0.8",
        "--removed",
        "removed.tsv",
    )
    rows = columns(gzip.decompress(corpus.read_bytes()))
    ids = [doc_id for doc_id, _ in rows]
    texts = dict(rows)
    assert min(map(len, texts.values())) >= 5

    removed = columns((tmp_path / "removed.tsv").read_bytes())
    kept = [row[0] for row in columns(gzip.decompress((tmp_path / "unique.tsv.gz").read_bytes()))]
    made = {doc_id for doc_id, _, _ in removed}
    assert kept == [doc_id for doc_id in ids if doc_id not in made]
    stays = set(kept)
    for doc_id, witness, similarity in removed:
        exact = reference.jaccard(texts[doc_id], texts[witness], 5, "byte")
        assert witness in stays
        assert exact >= 0.8
        assert float(similarity) == exact

    pairs = read_table(data_folder / "reuters_pairs.tsv.gz")
    # To 6 decimals; in this corpus none lies within 1e-6 below .8.
    expected = removals(ids, [(a, b) for a, b, j in pairs if float(j) >= 0.8])
    assert len(made & expected) >= 0.995 * len(expected)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("dedup", ["part*.txt", "-o", "part2.txt"]),
        ("dedup", ["news.txt", "--against", "part*", "-o", "x.txt", "--removed", "part1.txt"]),
        ("dedup", ["part*.txt", "-o", "x.txt", "--report", "part2.txt"]),
        ("pairs", ["part1*", "-o", "part1.txt"]),
    ],
)
def test_what_a_pattern_names_is_not_written_to(news, command, arguments):
    for number in (1, 2):
        (news / f"part{number}.txt").write_bytes(DOCUMENTS)
    assert "must not be" in refused(news, command, *arguments)


@pytest.mark.parametrize(
    ("command", "place"),
    [("dedup", ""), ("pairs", "folder/"), ("pairs", "folder")],
)
def test_names_that_are_no_file(news, command, place):
    (news / "folder").mkdir()
    assert "OUTPUT must" in refused(news, command, "news.txt", "-o", place)


def test_a_folder_is_refused_before_the_work(news):
    for name in ("in", "full"):
        (news / name).mkdir()
        (news / name / "a.txt").write_bytes(STORY)
    assert "OUTPUT must be a new or an empty folder, got full; name another" in refused(
        news, "dedup", "in", "-o", "full"
    )
    assert "OUTPUT must not lie in INPUT" in refused(news, "dedup", "in", "-o", "in/out")
    (news / "empty").mkdir()
    done(news, "dedup", "in", "-o", "empty")
    assert contents(news / "empty") == {"a.txt": STORY}


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no /dev/shm")
def test_a_file_in_memory_is_a_file(news):
    """Only streams such as /dev/stdout are written to directly, not every file below /dev."""
    place = Path("/dev/shm") / f"lsh-test-{os.getpid()}.txt"
    try:
        for _ in range(2):
            done(news, "dedup", "news.txt", "-o", place)
            assert place.read_bytes() == KEPT
    finally:
        place.unlink()


def test_rejects_of_wide_characters(news):
    lines = ["text,id\n", "abc,1\n", "bad\n", "wrong,2,3\n", "x,4\n"]
    (news / "in.csv").write_bytes("".join(lines).encode("utf-16-le"))
    options = ["--encoding", "utf-16-le", "--on-bad-line", "skip"]
    done(news, "dedup", "in.csv", "-o", "out.csv", *options, "--rejects", "bad.csv")
    assert (news / "bad.csv").read_bytes() == "bad\nwrong,2,3\n".encode("utf-16-le")
    assert (news / "out.csv").read_bytes() == "text,id\nabc,1\nx,4\n".encode("utf-16-le")
