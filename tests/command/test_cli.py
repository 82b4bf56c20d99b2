"""`lsh dedup` on files: kept documents, output files and errors.

Expected results come from reference.py or are computed here. How files are read and written in detail is tested in
tests/files, behaviour that all commands share in test_main.py.
"""

import bz2
import gzip
import itertools
import json
import re
import time

import pytest
import reference
from running import CLOSE, DOCUMENTS, KEPT, OTHER, STORY, THIRD, contents, done, lsh, refused, rows

import lsh as package
from lsh.command import dedup
from lsh.command.main import main
from lsh.terminal import outputs


def test_first_form(news):
    tables = ["--removed", "removed.tsv", "--clusters", "clusters.tsv.gz", "--removed-documents", "gone.txt"]
    assert done(news, "dedup", "news.txt", "-o", "unique.txt", *tables) == b""
    assert (news / "unique.txt").read_bytes() == KEPT
    assert (news / "gone.txt").read_bytes() == b"\n".join([CLOSE, OTHER]) + b"\n"
    similarity = repr(reference.jaccard(STORY, CLOSE, 8, "char")).encode()
    assert (news / "removed.tsv").read_bytes() == b"3\t1\t" + similarity + b"\n5\t2\t1.0\n"
    assert gzip.decompress((news / "clusters.tsv.gz").read_bytes()) == b"1\t1\n1\t3\n2\t2\n2\t5\n"
    assert (news / "news.txt").read_bytes() == DOCUMENTS
    written = contents(news)
    for name in written.keys() - {"news.txt"}:
        (news / name).unlink()
    for output in ("unique.txt", "-"):  # a dry run writes the tables only
        assert done(news, "dedup", "news.txt", "--dry-run", "-o", output, *tables[:4]) == b""
        assert contents(news) == {name: written[name] for name in ("news.txt", "removed.tsv", "clusters.tsv.gz")}
    done(news, "dedup", "news.txt", "-o", "out.txt", "--clusters", "clusters.tsv", "--keep", "last", "--ngram", "8.0")
    assert (news / "clusters.tsv").read_bytes() == b"1\t3\n1\t1\n2\t5\n2\t2\n"  # the kept one first
    assert (news / "out.txt").read_bytes() == b"\n".join([CLOSE, THIRD, OTHER]) + b"\n"


@pytest.mark.parametrize("more", [[], ["--report", "report.html"]])
def test_the_summary_is_one_line_on_stderr(news, more, monkeypatch):
    """Each stage has its seconds, without a gap, on a clock that goes on by one at each reading and at both ends."""
    clock, take, work = itertools.count(), outputs.take_input, dedup._deduplicate
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(outputs, "take_input", lambda namespace: (next(clock), take(namespace)))
    monkeypatch.setattr(dedup, "_deduplicate", lambda *given: (work(*given), next(clock))[0])
    result = lsh(news, "dedup", "news.txt", "-o", "out.txt", "--json", *more)
    seconds = json.loads(result.stdout)["seconds"]
    assert result.stderr.startswith(b"5 documents, 2 removed, 2 clusters, ")
    assert result.stderr.count(b"\n") == 1
    total = seconds.pop("total")
    stages = ["preparing", "fingerprints", "grouping", "comparing", *(["report"] if more else []), "writing"]
    assert list(seconds) == stages
    assert all(value > 0 for value in seconds.values())
    assert sum(seconds.values()) == total == next(clock) - 1


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
        kept = [doc_id for doc_id, _ in rows((tmp_path / "out.tsv").read_bytes())]
        assert kept == [doc_id for doc_id in (b"d0", b"d1", b"d2", b"d3", b"d4") if doc_id not in members[1:]]
        assert rows((tmp_path / "clusters.tsv").read_bytes()) == [[b"1", doc_id] for doc_id in members]


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
    counts = b"4 documents, 4 reference documents, 3 removed, 2 of them for a reference document, 1 cluster, "
    assert last.startswith(counts)
    assert rows((tmp_path / "out.tsv").read_bytes()) == [[b"n2", THIRD]]
    similarity = repr(reference.jaccard(STORY, CLOSE, 8, "char")).encode()
    assert rows((tmp_path / "removed.tsv").read_bytes()) == [
        [b"n0", b"b", similarity, b"old", b"in.tsv", b"old1.tsv", b"similar"],
        [b"n1", b"d", b"1.0", b"old", b"in.tsv", b"old2.tsv", b"identical"],
        [b"n3", b"n2", b"1.0", b"new", b"in.tsv", b"in.tsv", b"identical"],
    ]
    assert rows((tmp_path / "clusters.tsv").read_bytes()) == [[b"1", b"n2"], [b"1", b"n3"]]
    for source, seen in (([], b"in.tsv"), (["--source-field", "1"], b"n2")):
        done(tmp_path, "dedup", "in.tsv", *options[:3], "--dry-run", "--copies", "copies.tsv", *source)
        assert rows((tmp_path / "copies.tsv").read_bytes()) == [
            [b"n2", b"2", seen],
            [b"b", b"1", b"old1.tsv"],
            [b"d", b"1", b"old2.tsv"],
        ]


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


def test_missing_texts_and_texts_without_shingles_are_counted(tmp_path):
    """A column of empty cells is most likely the wrong one."""
    lines = [b'{"text": null}\n', b'{"id": 5}\n', b'{"text": "%s"}\n' % STORY, b'{"text": "%s"}\n' % STORY]
    (tmp_path / "in.jsonl").write_bytes(b"".join(lines))
    assert "line 1" in refused(tmp_path, "dedup", "in.jsonl", "-o", "out.jsonl")
    result = lsh(tmp_path, "dedup", "in.jsonl", "-o", "out.jsonl", "--missing", "empty")
    assert (tmp_path / "out.jsonl").read_bytes() == b"".join(lines[:3])
    assert re.search(rb"\b1 removed, 1 cluster, 2 missing, 0\.", result.stderr)  # which have no shingles either
    (tmp_path / "in.csv").write_text("id;text;note\n1;one two three;\n2;four five six;\n3;;\n", encoding="utf-8")
    by_field = {"text": b", 0 clusters, 1 without shingles, ", "note": b", 0 clusters, 3 without shingles, "}
    for field, expected in by_field.items():
        assert expected in lsh(tmp_path, "dedup", "in.csv", "--delimiter", ";", "--field", field, "--dry-run").stderr


def test_quiet_and_verbose(news):
    assert lsh(news, "dedup", "news.txt", "-o", "out.txt", "-q").stderr == b""
    assert refused(news, "dedup", "absent.txt", "-o", "out.txt", "-q")
    said = lsh(news, "dedup", "news.txt", "-o", "out.txt", "-v").stderr.decode()
    assert said.startswith("MinHasher(128, random_state=0, scheme='fss', shingles=Shingles(8, unit='char'))\n")
    assert str(package.plan()) in said
    assert re.search(r"^seconds: preparing \d.*, fingerprints \d.*, total \d", said, re.MULTILINE)
    assert said.splitlines()[-1].startswith("5 documents, 2 removed, ")
    assert lsh(news, "dedup", "news.txt", "-o", "out.txt", "-q", "-v").returncode == 2


def test_comparisons_that_are_left_out_are_reported(tmp_path, monkeypatch, capsys):
    """A word in all texts fills a bucket of each band."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_bytes(b"".join(b"shared a%d b%d\n" % (i, i) for i in range(450)))
    options = ["--ngram", "1", "--unit", "word", "--json", "--num-seeds", "4", "--bands", "4x1", "--threshold", "0.9"]
    for limit in (1 << 16, 20):
        for module in ("links.linking", "engine.dedup", "command.dedup"):
            monkeypatch.setattr(f"lsh.{module}.LIMIT", limit)
        assert main(["dedup", "in.txt", "-o", f"out{limit}.txt", *options]) == 0
        out, said = capsys.readouterr()
        counts, recall = json.loads(out), 1 - (1 - 0.9) ** 4
        if limit == 20:
            assert counts["capped"] > 1000
            assert counts["recall"] is None
            left_out = f"{counts['capped']:,} comparisons left out in buckets of more than 20 documents: similar"
            assert f"{left_out} documents may remain there, and the recall of {recall:.3f} does not hold; " in said
        else:
            assert (counts["capped"], counts["recall"]) == (0, pytest.approx(recall))
            assert "left out" not in said


def test_standard_streams(tmp_path):
    for form, data in (("txt", DOCUMENTS), ("txt.gz", gzip.compress(DOCUMENTS))):
        assert done(tmp_path, "dedup", "-", "-o", "-", "--format", form, stdin=data) == KEPT
    assert contents(tmp_path) == {}
    assert done(tmp_path, "dedup", "-", "-o", "unique.txt", "--format", "txt", stdin=DOCUMENTS) == b""
    assert (tmp_path / "unique.txt").read_bytes() == KEPT
    assert done(tmp_path, "dedup", "unique.txt", "-o", "-") == KEPT
    bad = b"1\tone\n2\ttwo\nthree\n"
    assert "line 3" in refused(tmp_path, "dedup", "-", "-o", "-", "--format", "tsv", stdin=bad)


def test_several_inputs_and_what_is_skipped(tmp_path):
    """Files of one format are one source; a pattern means the files that match it."""
    for name, text in {"1.jsonl": STORY, "2.jsonl": OTHER, "3.jsonl": STORY}.items():
        (tmp_path / name).write_bytes(b'{"id": "%s\\ud800", "body": "%s"}\n{"body"\n' % (name.encode(), text))
    run = ["dedup", "1.jsonl", "[23].jsonl", "-o", "out.jsonl.bz2", "--on-bad-line", "skip", "--rejects", "bad"]
    done(tmp_path, *run, "--removed", "removed.tsv")
    kept = b"".join(b'{"id": "%d.jsonl\\ud800", "body": "%s"}\n' % pair for pair in ((1, STORY), (2, OTHER)))
    assert bz2.decompress((tmp_path / "out.jsonl.bz2").read_bytes()) == kept
    assert (tmp_path / "bad").read_bytes() == b'{"body"\n' * 3
    row = (tmp_path / "removed.tsv").read_text("utf-8").split("\t")
    assert row[:3] == ["3.jsonl\\ud800", "1.jsonl\\ud800", "1.0"]  # lone surrogates are escapes in a table
    done(tmp_path, "dedup", "1.jsonl", "--dry-run", "--on-bad-line", "skip", "--rejects", "other")
    assert (tmp_path / "other").read_bytes() == b'{"body"\n'
    lines = ["text,id\n", "abc,1\n", "bad\n", "wrong,2,3\n", "x,4\n"]
    (tmp_path / "in.csv").write_bytes("".join(lines).encode("utf-16-le"))
    options = ["--encoding", "utf-16-le", "--on-bad-line", "skip", "--rejects", "bad.csv"]
    done(tmp_path, "dedup", "in.csv", "-o", "out.csv", *options)
    assert (tmp_path / "bad.csv").read_bytes() == "bad\nwrong,2,3\n".encode("utf-16-le")
    assert (tmp_path / "out.csv").read_bytes() == "text,id\nabc,1\nx,4\n".encode("utf-16-le")


def test_missing_folders_are_made_unless_the_run_fails(news):
    done(news, "dedup", "news.txt", "-o", "a/b/out.txt", "--removed", "c/removed.tsv", "--clusters", "c/d/clusters.tsv")
    assert (news / "a" / "b" / "out.txt").read_bytes() == KEPT
    assert (news / "c" / "removed.tsv").exists()
    assert (news / "c" / "d" / "clusters.tsv").exists()
    done(news, "dedup", "news.txt", "-o", "e/out.txt", "--dry-run")
    assert not (news / "e").exists()
    (news / "bad.tsv").write_bytes(b"1\tone\n2 two\n")
    refused(news, "dedup", "bad.tsv", "-o", "e/f/out.tsv", "--removed", "g/removed.tsv")
    for name in ("out.tsv", "removed.tsv"):
        (news / name).write_bytes(b"yesterday\n")
    message = refused(news, "dedup", "bad.tsv", "-o", "out.tsv", "--removed", "removed.tsv")
    assert message.startswith("lsh: error: bad.tsv, line 2: ")
