"""`lsh index`: what it stores, finds, removes and prints; resuming after an interrupt; errors.

Expected matches come from reference.py and from the library, expected times are computed here.
"""

import json
import os
import re
import time
from datetime import datetime, timezone
from pathlib import Path

import pytest
import reference
from reading import write_records
from running import SAMPLE, done, json_lines, lsh, refused, sample

import lsh as package
from lsh.command import index as verbs
from lsh.segments import manifest
from lsh.store.index import Index
from lsh.terminal import indexing

TEXTS = {doc_id.decode(): text.decode() for doc_id, text in sample()}
DAYS = ["2024-01-01", "2024-01-02T06:00:00Z", "2024-01-03T01:00:00+01:00"]
SECONDS = [1704067200.0, 1704175200.0, 1704240000.0]


def text(number: int) -> str:
    return " ".join(f"word{number * i % 1009}" for i in range(1, 30))


def write_lines(path: Path, numbers: range) -> None:
    write_records(path, [{"id": f"d{i}", "text": text(i)} for i in numbers])


@pytest.fixture
def folder(tmp_path):
    """A folder with an index of the sample."""
    done(tmp_path, "index", "create", "a.index", "--texts", "stored", "-q")
    done(tmp_path, "index", "add", "a.index", SAMPLE, "-q")
    return tmp_path


def test_create(tmp_path):
    options = ["--threshold", 0.6, "--recall", 0.9, "--num-seeds", 64, "--ngram", 3, "--unit", "word", "--lowercase"]
    done(tmp_path, "index", "create", "a.index", *options, "--sketch", "full", "--period", "12h")
    with Index.open(tmp_path / "a.index") as index:
        shingles = package.Shingles(3, "word", lowercase=True)
        assert index.hasher == package.MinHasher(64, scheme="fss", shingles=shingles)
        assert index.plan == package.plan(0.6, 0.9, num_seeds=64)
        assert (index.info()["sketch"], index.info()["texts"], index.info()["period"]) == ("full", True, 43200.0)
    done(tmp_path, "index", "create", "b.index", "--bands", "20x6", "--threshold", "0.75")
    options = ["--bands", "80x3", "--screen", "--recommend", "0.4", "-q"]
    assert done(tmp_path, "index", "create", "c.index", *options) == b""
    with Index.open(tmp_path / "b.index") as index, Index.open(tmp_path / "c.index") as screen:
        assert (index.bands, index.threshold) == (package.Bands(20, 6), 0.75)
        assert (screen.bands, screen.threshold) == (package.Bands(80, 3), 0.4)
    done(tmp_path, "index", "create", "x.index")
    with Index.open(tmp_path / "x.index") as index:
        assert index.plan == package.plan(0.8, 0.99, num_seeds=128)


# Adding and asking.


def test_documents_are_added_and_found(folder):
    sets = {doc_id: set(reference.shingles(one, 8, "char")) for doc_id, one in TEXTS.items()}
    result = lsh(folder, "index", "query", "a.index", SAMPLE)
    assert b"200 documents asked, 200 with matches, " in result.stderr
    found = json_lines(result.stdout)
    assert [one["id"] for one in found] == list(TEXTS)
    for one in found[:20]:
        expected = {}
        for other, shingles in sets.items():
            similarity = len(sets[one["id"]] & shingles) / len(sets[one["id"]] | shingles)
            if similarity >= 0.8:
                expected[other] = similarity
        assert {match["id"]: match["similarity"] for match in one["matches"]} == expected
        assert [match["similarity"] for match in one["matches"]] == sorted(expected.values(), reverse=True)
        assert all(match["verified"] for match in one["matches"])
        assert all(match["interval"] == [match["similarity"]] * 2 for match in one["matches"])
    with Index.open(folder / "a.index") as index:
        assert {doc_id: index.text_of(doc_id).decode() for doc_id in index} == TEXTS
    assert lsh(folder, "index", "query", "a.index", SAMPLE, "-q", "-o", "found.jsonl").stderr == b""
    assert json_lines((folder / "found.jsonl").read_bytes()) == found
    result = lsh(folder, "index", "add", "a.index", SAMPLE)
    assert b"200 documents added, 200 of them in place of others, 200 in the index, " in result.stderr
    assert b"text: column 2; id: column 1\n" in result.stderr
    counts = json.loads(done(folder, "index", "add", "a.index", SAMPLE, "--json"))
    same = dict.fromkeys(("documents", "replaced", "stored"), 200)
    assert counts == {**same, "bytes": 59133, "skipped": 0, "hidden": 0}


def test_a_text_and_stored_documents_can_be_asked_for(folder):
    (found,) = json_lines(done(folder, "index", "query", "a.index", "--text", TEXTS["s002"], "--top", 2))
    assert list(found) == ["matches"]
    assert json_lines(done(folder, "index", "query", "a.index", "--text", "")) == [{"matches": []}]
    assert [match["id"] for match in found["matches"]] == ["s002", "s003"]
    for asked in (["--id", "s002", "--id", "s001"], ["--id", "s002", "s001"]):
        found = json_lines(done(folder, "index", "query", "a.index", *asked, "--min-similarity", 0.93))
        assert [(one["id"], one["matches"][0]["id"]) for one in found] == [("s002", "s003"), ("s001", "s166")]
        assert all(match["similarity"] >= 0.93 for one in found for match in one["matches"])
    with Index.open(folder / "a.index") as index:
        recall = index.recall_at(0.7, min_similarity=0.7)
        expected = f"--min-similarity 0.7: recall {recall:.4g} with the bands of the index\n".encode()
    for asked in ([SAMPLE], ["--text", "a text"], ["--id", "s001"]):
        command = ["index", "query", "a.index", *asked, "--min-similarity"]
        assert lsh(folder, *command, "0.7").stderr.startswith(expected)
        assert b"recall" not in lsh(folder, *command, "0.8").stderr
    assert lsh(folder, *command, "0.7", "-q").stderr == b""


def test_times_of_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import compute, parquet

    day = datetime(2024, 1, 2, 3, 4, 5, 678901)
    nanoseconds = pyarrow.array([day, None], pyarrow.timestamp("ns")).cast(pyarrow.int64())
    seconds = day.replace(tzinfo=timezone.utc).timestamp()
    days = {
        "number": (pyarrow.array([1.5, None]), 1.5),
        "us": (pyarrow.array([day, None], pyarrow.timestamp("us")), seconds),
        "ns": (compute.add(nanoseconds, 999).cast(pyarrow.timestamp("ns", "Europe/Rome")), seconds),
        "date": (pyarrow.array([day.date(), None]), 86400.0 * (seconds // 86400)),
    }
    table = {"id": [5, 6], "text": ["one text", "another text"], **{name: column for name, (column, _) in days.items()}}
    parquet.write_table(pyarrow.table(table), tmp_path / "x.parquet")
    done(tmp_path, "index", "create", "x.index")
    for name, (_, expected) in days.items():
        done(tmp_path, "index", "add", "x.index", "x.parquet", "--time-field", name)
        with Index.open(tmp_path / "x.index") as index:
            assert {doc_id: index.time_of(doc_id) for doc_id in index} == {"5": expected, "6": None}


def test_records_without_ids_are_named_by_file_and_number(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\n")
    (tmp_path / "b.txt").write_bytes(b"three\n")
    (tmp_path / "c.csv").write_bytes(b"text\nfour\n")
    (tmp_path / "d.jsonl").write_bytes(b'{"text": "five"}\n')
    done(tmp_path, "index", "create", "x.index", "--texts", "stored", "-q")
    done(tmp_path, "index", "add", "x.index", "a.txt", "b.txt")
    done(tmp_path, "index", "add", "x.index", "c.csv")
    done(tmp_path, "index", "add", "x.index", "d.jsonl", "--id-field", "none")
    done(tmp_path, "index", "add", "x.index", "-", "--format", "txt", "--id-prefix", "pipe/", stdin=b"six\n")
    with Index.open(tmp_path / "x.index") as index:
        expected = {"a.txt:1": "one", "a.txt:2": "two", "b.txt:1": "three", "c.csv:1": "four", "d.jsonl:1": "five"}
        assert {doc_id: index.text_of(doc_id).decode() for doc_id in index} == {**expected, "pipe/1": "six"}
    assert [one["id"] for one in json_lines(done(tmp_path, "index", "query", "x.index", "d.jsonl"))] == ["1"]
    found = json_lines(done(tmp_path, "index", "query", "x.index", "a.txt", "b.txt"))
    assert [one["id"] for one in found] == ["a.txt:1", "a.txt:2", "b.txt:1"]


def test_ids_of_other_types_are_printed(tmp_path):
    with Index.create(tmp_path / "x.index", texts="stored") as index:
        index.add_docs([text(0)] * 6, ["é", b"bytes\xff", -7, "7x", "\ud800", 8])
    (found,) = json_lines(done(tmp_path, "index", "query", "x.index", "--text", text(0)))
    assert [match["id"] for match in found["matches"]] == ["é", "bytes\udcff", -7, "7x", "\ud800", 8]
    done(tmp_path, "index", "remove", "x.index", os.fsdecode(b"bytes\xff"), "8")
    assert list(Index.open(tmp_path / "x.index")) == ["é", -7, "7x", "\ud800"]
    done(tmp_path, "index", "remove", "x.index", "--ids", "-", stdin=b"-7\n\xc3\xa9\n\xed\xa0\x80\n")
    assert list(Index.open(tmp_path / "x.index")) == ["7x"]
    message = refused(tmp_path, "index", "remove", "x.index", "--ids", "-", stdin=b"\xff\n\xed\xa0\x81\n")
    assert "2 ids not in the index: '\\udcff', '\\ud801'" in message


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_a_null_id_is_an_error(tmp_path, ending):
    """It must not become the number of the record, which may be the id of another one."""
    count, null = 3000, 2345
    rows = [{"id": str(i) if i != null else None, "text": f"text {i}"} for i in range(count)]
    write_records(tmp_path / f"x.{ending}", rows)
    done(tmp_path, "index", "create", "x.index", "-q")
    result = lsh(tmp_path, "index", "add", "x.index", f"x.{ending}")
    message = f"x.{ending}: the id of document {null + 1} is null or empty; give it one, or use --id-field none"
    assert result.returncode == 2
    assert message in result.stderr.decode()
    assert len(Index.open(tmp_path / "x.index")) == 0
    done(tmp_path, "index", "add", "x.index", f"x.{ending}", "--id-field", "none", "--field", "text")
    assert len(Index.open(tmp_path / "x.index")) == count


def write_days(folder: Path) -> None:
    rows = [f"d{i},{text(i)},{day}" for i, day in enumerate([*DAYS, ""])]
    (folder / "days.csv").write_text("\n".join(["id,text,day", *rows, ""]), encoding="utf-8")
    done(folder, "index", "create", "x.index", "-q")
    done(folder, "index", "add", "x.index", "days.csv", "--field", "text", "--time-field", "day")
    with Index.open(folder / "x.index") as index:
        assert [index.time_of(f"d{i}") for i in range(4)] == [*SECONDS, None]


def test_bad_times(tmp_path):
    unknown = "a time must be seconds since 1970 or ISO 8601"
    for value, message in {
        "1704067200000": "divide milliseconds by 1000",
        "20240229": "20240229 may be a date or seconds since 1970; write dates as 2024-02-29",
        "yesterday": f"{unknown}, such as 2024-02-29T12:30:00Z, got 'yesterday'",
        **dict.fromkeys(("nan", "1e300", "0000-01-01", "9999-12-31T23:00-05:00"), unknown),
    }.items():
        with pytest.raises(ValueError, match=re.escape(message)):
            indexing.parsed_time(value)
    done(tmp_path, "index", "create", "x.index", "-q")
    (tmp_path / "x.csv").write_text(f"id,text,day\na,{'some text' * 99},yesterday\n", encoding="utf-8")
    command = ["index", "add", "x.index"]
    got = refused(tmp_path, *command, "x.csv", "--field", "text", "--time-field", "day")
    assert f"x.csv: document 'a': {unknown}" in got
    assert got.endswith("got 'yesterday', or --on-bad-line skip")
    assert len(refused(tmp_path, *command, "x.csv", "--field", "text", "--time-field", "text")) < 200


def test_bad_times_and_empty_ids_are_skipped_like_bad_lines(tmp_path):
    done(tmp_path, "index", "create", "x.index", "-q")
    rows = ["id,text,day", "a,one text,2024-01-01", "b,two texts,yesterday", ",three texts,2024-01-03", ",four,never"]
    (tmp_path / "x.csv").write_text("\n".join([*rows, "e,five texts,2024-01-05", ""]), encoding="utf-8")
    options = ["--field", "text", "--time-field", "day", "--on-bad-line", "skip"]
    command = ["x.index", "x.csv", *options]
    result = lsh(tmp_path, "screen", *command, "--check", "--recommend", "0.8")
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["a", "e"]
    assert b"2 documents, 2 accepted" in result.stderr
    assert b"3 bad lines skipped" in result.stderr
    said = lsh(tmp_path, "index", "add", *command).stderr
    assert b"2 documents added, 2 in the index, 3 bad lines skipped, " in said
    counts = json.loads(done(tmp_path, "index", "add", *command, "--num-threads", "1", "--json"))
    assert (counts["documents"], counts["skipped"], counts["stored"]) == (2, 3, 2)
    with Index.open(tmp_path / "x.index") as index:
        assert [index.time_of(doc_id) for doc_id in ("a", "e")] == [1704067200, 1704412800]
        assert index.text_of("e") == b"five texts"


def test_old_documents_expire(tmp_path):
    write_days(tmp_path)
    for cut, message, left in (
        (["--before", "2024-01-02T06:00:00"], "1 document removed, 3 in the index", ["d1", "d2", "d3"]),
        (["--before", SECONDS[1]], "0 documents removed, 3 in the index", ["d1", "d2", "d3"]),
        (["--older-than", f"{round((time.time() - SECONDS[1]) / 3600) - 6}h"], "1 document removed", ["d2", "d3"]),
        (["--older-than", "1.5w"], "1 document removed, 1 in the index", ["d3"]),
    ):
        assert message in lsh(tmp_path, "index", "expire", "x.index", *cut).stderr.decode()
        assert list(Index.open(tmp_path / "x.index")) == left
    said = lsh(tmp_path, "index", "expire", "x.index", "--before", SECONDS[1]).stderr
    assert said == b"0 documents removed, 1 in the index, none of them with a time (--time-field of lsh index add)\n"
    lines = [{"id": f"d{i}", "text": text(i), "at": at} for i, at in enumerate([*SECONDS, None, "1704067200.25"])]
    write_records(tmp_path / "x.jsonl", lines)
    options = ["--time-field", "at", "--field", "text", "-v"]
    assert b"x.jsonl" not in lsh(tmp_path, "index", "add", "x.index", "x.jsonl", *options).stderr
    with Index.open(tmp_path / "x.index") as index:
        assert [index.time_of(f"d{i}") for i in range(5)] == [*SECONDS, None, 1704067200.25]


# Removing, merging, looking.


def test_documents_are_removed(folder):
    (folder / "ids.txt").write_bytes(b"s003\r\ns004\n\ns003\nunknown\n")
    message = refused(folder, "index", "remove", "a.index", "s001", "--ids", "ids.txt")
    assert "1 id not in the index: 'unknown'; nothing was removed, use --unknown skip" in message
    result = lsh(folder, "index", "remove", "a.index", "s001", "--ids", "ids.txt", "--unknown", "skip")
    assert result.stderr == b"3 documents removed, 1 unknown id skipped, 197 in the index\n"
    assert sorted(Index.open(folder / "a.index")) == sorted(set(TEXTS) - {"s001", "s003", "s004"})
    assert done(folder, "index", "remove", "a.index", "--ids", "-", "-q", stdin=b"s002\n") == b""
    assert "s002" not in Index.open(folder / "a.index")


def test_all_documents_whose_ids_are_printed_alike_are_removed(tmp_path):
    """Of a list, the text comes before the number, and the number before the bytes."""
    with Index.create(tmp_path / "x.index") as index:
        index.add_docs([f"text {i}" for i in range(7)], ["7", 7, b"7", 8, b"9", -(2**63), 10])
    ids = ["7", "8", "9", str(-(2**63))]
    for _ in range(2):
        assert f"'{2**63}'" in refused(tmp_path, "index", "remove", "x.index", str(2**63))
        assert "1 id not in the index" in refused(tmp_path, "index", "remove", "x.index", "8" * 5000)
        listed = json_lines(done(tmp_path, "index", "list", "x.index", "-o", "-", "7", "8", "9", "--texts"))
        assert [one["text"] for one in listed] == ["text 0", "text 3", "text 4"]
        with Index.open(tmp_path / "x.index", "a") as index:
            index.compact()
    result = lsh(tmp_path, "index", "remove", "x.index", "--ids", "-", stdin="\n".join(ids).encode())
    assert b"6 documents removed" in result.stderr
    assert list(Index.open(tmp_path / "x.index")) == [10]
    done(tmp_path, "index", "remove", "x.index", "--unknown", "skip", "10", "11")
    assert list(Index.open(tmp_path / "x.index")) == []


def test_an_index_is_compacted_and_verified(folder):
    done(folder, "index", "remove", "a.index", "s001")
    result = lsh(folder, "index", "compact", "a.index")
    assert result.stderr.endswith(b" KB in 1 segment after\n")
    assert lsh(folder, "index", "verify", "a.index").stderr.startswith(b"199 documents, ")
    (segment,) = (folder / "a.index").glob("segment-*")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(bytes(data))
    assert f"{segment.relative_to(folder)}" in refused(folder, "index", "verify", "a.index")


def test_indexes_are_merged(folder):
    write_lines(folder / "new.jsonl", range(5))
    done(folder, "index", "create", "b.index", "--texts", "stored")
    done(folder, "index", "add", "b.index", "new.jsonl")
    done(folder, "index", "add", "b.index", "-", "--format", "tsv", stdin=b"s001\tanother text\n")
    result = lsh(folder, "index", "merge", "a.index", "b.index")
    assert result.stderr == b"6 documents added, 1 of them in place of others, 205 in the index\n"
    with Index.open(folder / "a.index") as index:
        assert index.text_of("s001") == b"another text"
        assert index.text_of("d4").decode() == text(4)


def test_documents_are_listed(folder):
    with Index.open(folder / "a.index", "a") as index:
        odd = "bytes \udcff\ud800"
        index.add_docs(["in time", odd.encode("utf-8", "surrogatepass")], [7, b"\xff"], times=[1.5, None])
        index.remove("s001")
        new = {7: (1.5, "in time"), "\udcff": (None, odd)}
        expected = ["\udcff" if new_id == b"\xff" else new_id for new_id in index]
    found = json_lines(done(folder, "index", "list", "a.index"))
    assert found == [{"id": doc_id, "time": new.get(doc_id, (None,))[0]} for doc_id in expected]
    assert set(expected) == {*TEXTS, *new} - {"s001"}
    done(folder, "index", "list", "a.index", "--texts", "-o", "list.jsonl")
    with_texts = json_lines((folder / "list.jsonl").read_bytes())
    assert with_texts == [{**one, "text": new[one["id"]][1] if one["id"] in new else TEXTS[one["id"]]} for one in found]
    some = json_lines(done(folder, "index", "list", "a.index", "7", "s002", "--texts"))
    assert some == [{"id": 7, "time": 1.5, "text": "in time"}, {"id": "s002", "time": None, "text": TEXTS["s002"]}]
    assert "no document of the index has the id 's001'" in refused(folder, "index", "list", "a.index", "s002", "s001")
    done(folder, "index", "create", "b.index", "--texts", "none", "-q")  # the list makes another index
    done(folder, "index", "add", "b.index", "list.jsonl", "--time-field", "time", "-q")
    with Index.open(folder / "b.index") as index:
        assert list(index) == list(map(str, expected))
        assert (index.time_of("7"), index.time_of("s002")) == (1.5, None)


def test_info_is_printed(tmp_path):
    write_days(tmp_path)
    done(tmp_path, "index", "create", "y.index", "--screen", "--reject", "0.8", "-q")
    done(tmp_path, "index", "create", "z.index", "--texts", "none", "-q")
    days = "times       2024-01-01T00:00:00Z to 2024-01-03T00:00:00Z"
    screen = "screen      rejects from 0.8, recommends from 0.5"
    parts = {
        "x.index": ["documents   4", days, "periods     of 1 day", "texts       stored: matches are exact"],
        "y.index": ["documents   0", "shingles    3 words, lowercase", "threshold   0.5, recall 0.95", screen],
        "z.index": ["texts       not stored: similarities are estimated"],
    }
    for name, expected in parts.items():
        with Index.open(tmp_path / name) as index:
            facts = json.loads(json.dumps(index.info()))
            if name == "z.index":
                expected.append(f"threshold   0.8, recall 0.99, {index.recall_at(0.8):.2g} with estimates")
        assert facts["path"] == str(tmp_path / name)
        screened = {"reject": 0.8, "recommend": 0.5} if name == "y.index" else None
        assert json.loads(done(tmp_path, "index", "info", name, "--json")) == {**facts, "screen": screened}
        assert set(expected) <= set(done(tmp_path, "index", "info", name).decode().splitlines())


@pytest.fixture
def small_steps(monkeypatch):
    """Commit after each block; blocks have few documents."""
    monkeypatch.setattr(verbs, "COMMIT_DOCUMENTS", 1)


@pytest.fixture
def interrupted(tmp_path, monkeypatch):
    """A function that interrupts `lsh index add` on a new index after some commits, with more documents pending."""
    done(tmp_path, "index", "create", "x.index", "--num-seeds", "16", "--recall", "0.5", "-q")

    def run(commits: int, *names: str) -> bytes:
        real, calls = Index.add_docs, []

        def add_docs(self, *arguments, **options):
            real(self, *arguments, **options)
            calls.append(1)
            if len(calls) > commits:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Index, "add_docs", add_docs)
            result = lsh(tmp_path, "index", "add", "x.index", *names)
        assert result.returncode == 130
        return result.stderr

    return run


@pytest.mark.parametrize("by_time", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_interrupted_run_continues(tmp_path, monkeypatch, interrupted, by_time):
    monkeypatch.setattr(verbs, "COMMIT_SECONDS" if by_time else "COMMIT_DOCUMENTS", 0.0 if by_time else 1)
    for number in range(2):
        write_lines(tmp_path / f"{number}.jsonl", range(number * 10_000, number * 10_000 + 9_000))
    expected = {f"d{i}" for number in range(2) for i in range(number * 10_000, number * 10_000 + 9_000)}
    command = ["index", "add", "x.index", "0.jsonl", "1.jsonl"]
    stored, added = 0, []
    real = Index.add_docs
    for commits in (1, 0, 2):
        said = interrupted(commits, "0.jsonl", "1.jsonl")
        assert (b"continuing after an interrupt: after " in said) == (stored > 0)
        assert b"the index has changed" not in said
        assert (b" committed; the same command continues after them\n" in said) == (commits > 0)
        with Index.open(tmp_path / "x.index") as index:
            assert len(index) > stored or commits == 0
            stored = len(index)
    monkeypatch.setattr(
        Index, "add_docs", lambda self, texts, ids, **more: (added.extend(ids), real(self, texts, ids, **more))
    )
    counts = json.loads(done(tmp_path, *command, "--json"))
    assert counts["replaced"] == 0  # what was committed is not added twice
    assert counts["documents"] == len(added) == len(expected) - stored > 0
    with Index.open(tmp_path / "x.index") as index:
        assert len(index) == len(expected)
        assert set(index) == expected
    assert manifest.read_manifest(str(tmp_path / "x.index")).note == {}
    assert json.loads(done(tmp_path, *command, "--json"))["documents"] == len(expected)  # a finished run starts anew


@pytest.mark.few(1)
@pytest.mark.parametrize("is_written", [False, True])
def test_the_place_is_part_of_the_commit(tmp_path, monkeypatch, small_steps, is_written):
    """The run ends before or after the step that makes a commit durable: there are documents and place, or neither."""
    write_lines(tmp_path / "x.jsonl", range(9_000))
    done(tmp_path, "index", "create", "x.index", "--num-seeds", "16", "--recall", "0.5", "-q")
    real = manifest.replace_manifest

    def fail(*arguments):
        if is_written:
            real(*arguments)
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr("lsh.store.writer.replace_manifest", fail)
        assert lsh(tmp_path, "index", "add", "x.index", "x.jsonl").returncode == 2
    with Index.open(tmp_path / "x.index") as index:
        stored = len(index)
    assert (stored > 0) == (len(manifest.read_manifest(str(tmp_path / "x.index")).note) == 1) == is_written
    counts = json.loads(done(tmp_path, "index", "add", "x.index", "x.jsonl", "--json"))
    assert counts["documents"] == 9_000 - stored
    assert (counts["replaced"], counts["stored"]) == (0, 9_000)


@pytest.mark.slow
def test_an_interrupted_run_continues_after_other_commands(tmp_path, interrupted, small_steps):
    write_lines(tmp_path / "x.jsonl", range(9_000))
    write_lines(tmp_path / "y.jsonl", range(100_000, 109_000))
    for name in ("x.jsonl", "y.jsonl"):
        interrupted(2, name)
    done(tmp_path, "index", "remove", "x.index", "d0", "d100001", "-q")
    done(tmp_path, "index", "add", "x.index", "-", "--format", "tsv", "-q", stdin=b"d1\ta newer version")
    for name in ("x.jsonl", "y.jsonl"):
        result = lsh(tmp_path, "index", "add", "x.index", name)
        assert b"continuing after an interrupt" in result.stderr
        assert b"the index has changed since then: what was removed or replaced is not added again" in result.stderr
        assert b"in place of others" not in result.stderr
    assert manifest.read_manifest(str(tmp_path / "x.index")).note == {}
    with Index.open(tmp_path / "x.index") as index:
        assert len(index) == 17_998
        assert "d0" not in index
        assert "d100001" not in index
        assert index.text_of("d1") == b"a newer version"


@pytest.mark.few(1)
@pytest.mark.parametrize("change", ["renamed", "file", "order", "option"])
def test_another_run_starts_anew(tmp_path, interrupted, small_steps, change):
    """Also if the number of files, their size and their last time are as before, and the order is another one."""
    names, options = ["0.jsonl", "1.jsonl"], []
    if change == "renamed":
        (tmp_path / "texts").mkdir()
        for name in "abcd":
            (tmp_path / "texts" / f"{name}.txt").write_text(f"{name} text of a document" * 20_000)
        names = ["texts"]
    else:
        for number in range(2):
            write_lines(tmp_path / f"{number}.jsonl", range(number * 10_000, number * 10_000 + 9_000))
    interrupted(1 if change == "renamed" else 2, *names)
    if change == "renamed":
        (tmp_path / "texts" / "d.txt").rename(tmp_path / "texts" / "A.txt")
    if change == "file":
        os.utime(tmp_path / "1.jsonl", ns=(1, 1))
    if change == "order":
        names.reverse()
    if change == "option":
        options = ["--missing", "empty"]
    result = lsh(tmp_path, "index", "add", "x.index", *names, *options, "--json")
    assert b"continuing" not in result.stderr
    counts = json.loads(result.stdout)
    assert counts["documents"] == (4 if change == "renamed" else 18_000)
    assert counts["replaced"] > 0
