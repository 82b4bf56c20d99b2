"""`lsh contained`: what `find_contained` finds is in the tables, and is left out, cut or marked in the documents."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reading import write_records
from running import SAMPLE, contents, done, json_lines, refused, rows, sample
from running import lsh as run

import lsh as package
from lsh import report

draw = random.Random(0)
WORDS = ["the", "größer", "語", "isle", "Ferry", "“seven”", "😀", *(f"word{i}" for i in range(90))]
ITEMS = [" ".join(draw.choices(WORDS, k=12)) for _ in range(30)] + ["Too short"]
EDITED = [item.replace("the", "a").upper() + "!" for item in ITEMS]
TEXTS = [
    " ".join(draw.choices(WORDS, k=30) + draw.choices(EDITED, k=i % 3) + draw.choices(WORDS, k=9)) for i in range(80)
]
TEXTS += [ITEMS[0], ""]
SHARDS = ("0.jsonl.gz", "1.jsonl.gz")
NAMES = [("q.tsv", f"q{i}") if i < 20 else ("more.jsonl", f"{i - 20}") for i in range(31)]


@pytest.fixture
def corpus(tmp_path):
    """Two shards, whose ids are record numbers, and two files of items."""
    lines = [json.dumps({"n": 1.50, "text": text}, ensure_ascii=i % 2 == 0) for i, text in enumerate(TEXTS)]
    for name, own in zip(SHARDS, (lines[:50], lines[50:])):
        (tmp_path / name).write_bytes(gzip.compress("".join(f" {line}\n" for line in own).encode()))
    (tmp_path / "q.tsv").write_text("".join(f"q{i}\t{item}\n" for i, item in enumerate(ITEMS[:20])))
    write_records(tmp_path / "more.jsonl", [{"id": i, "text": one} for i, one in enumerate(ITEMS[20:])])
    return tmp_path


def written(folder: Path, *options: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The records of OUTPUT, and the counts."""
    names = [f"o/{name}" for name in SHARDS]
    for name in names:
        (folder / name).unlink(missing_ok=True)
    printed = done(folder, "contained", "q.tsv", "--items", "more.jsonl", *SHARDS, "-o", "o/", "--json", *options)
    records = [one for name in names for one in json_lines(gzip.decompress((folder / name).read_bytes()))]
    return records, json.loads(printed)


@pytest.mark.parametrize(
    "given",
    [{}, {"max_share": 0.15, "window": 3.0, "threshold": 0.3}, {"min_shared": 4}, {"preset": "deepseekmath"}],
    ids=str,
)
def test_a_corpus(corpus, given):
    """The tables, the counts and the documents of each way to write them are those of the library."""
    rule = package.presets.rule(given["preset"]).options() if "preset" in given else given
    found = package.find_contained(ITEMS, TEXTS, **rule)
    options = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    kept, counts = written(corpus, "--hits", "h.tsv", "--skipped", "s.tsv", *options)
    summary = {**found.summary(), "seconds": counts["seconds"]}
    assert len(found) > 20
    assert {name: counts[name] for name in summary} == summary
    table = [[str(hit["text"] + 1), *NAMES[hit["item"]], *map(str, hit.tolist()[2:])] for hit in found.hits]
    assert [[cell.decode() for cell in row] for row in rows((corpus / "h.tsv").read_bytes())] == table
    skipped = [row[:2] for row in rows((corpus / "s.tsv").read_bytes())]
    assert skipped == [[name.encode() for name in NAMES[one]] for one in found.skipped["item"]]
    assert kept == [{"n": 1.5, "text": text} for i, text in enumerate(TEXTS) if i not in found.hits["text"]]
    shortened, counts = written(corpus, "--cut", *options)
    left = list(found.cut(TEXTS))
    assert [one["text"] for one in shortened] == [new for new, text in zip(left, TEXTS) if new or not text]
    assert counts["emptied"] == 1 == len(TEXTS) - len(shortened)
    marked, _ = written(corpus, "--mark", "cuts", *options)
    for i, (record, text) in enumerate(zip(marked, TEXTS)):
        own = found.cuts[found.cuts["document"] == i]
        spans = [text.encode()[start:end].decode() for _, start, end in own.tolist()]
        assert (record["text"], [text[start:end] for start, end in record["cuts"]]) == (text, spans)


def test_standard_input_and_columns(tmp_path):
    """Items have columns of their own; those of INPUT count for them where their format has such columns."""
    texts = [text.decode() for _, text in sample()]
    items = [" ".join(text.split()[2:20]) for text in texts[:9]]
    for name, records in (
        ("a.jsonl", [{"name": f"n{i}", "question": item, "text": "x"} for i, item in enumerate(items)]),
        ("a.txt", items),
    ):
        (tmp_path / name).write_text("\n".join(one if name == "a.txt" else json.dumps(one) for one in records))
        own = ["--item-field", "question", "--item-id-field", "name"] if name == "a.jsonl" else []
        options = ["--field", "2", "--id-field", "1", "--format", "tsv", "--ngram", "9", "--unit", "char"]
        options += ["--no-lowercase", "--no-strip-punctuation", "--hits", "h.tsv", "-v", *own]
        result = run(tmp_path, "contained", name, "-", "-o", "-", *options, stdin=SAMPLE.read_bytes())
        found = package.find_contained(items, texts, shingles=package.Shingles(9))
        kept = np.setdiff1d(np.arange(len(texts)), found.hits["text"])
        assert result.stdout.splitlines() == [SAMPLE.read_bytes().splitlines()[i] for i in kept]
        shown = [row[:2] for row in rows((tmp_path / "h.tsv").read_bytes())]
        ids = [f"n{i}" if own else f"{i + 1}" for i in range(9)]
        assert shown == [[sample()[hit["text"]][0], ids[hit["item"]].encode()] for hit in found.hits]
        assert f", {len(found)} hits: 9 items in {200 - len(kept)} documents, ".encode() in result.stderr


def test_the_page_is_that_of_the_function(corpus):
    written(corpus, "--report", "r.html", "--threshold", "0.5", "--cut")
    given = {"ITEMS": "q.tsv more.jsonl", "INPUT": " ".join(SHARDS), "--output": "o/", "--cut": "yes"}
    files, ids = zip(*NAMES)
    assert (corpus / "r.html").read_text("utf-8") == report.contained(
        package.find_contained(ITEMS, TEXTS, 0.5),
        ITEMS,
        TEXTS,
        parameters={**given, "--missing": "error", "--on-bad-line": "error"},
        item_ids=ids,
        ids=range(1, len(TEXTS) + 1),
        item_sources=files,
        sources=[SHARDS[i >= 50] for i in range(len(TEXTS))],
    )


def test_a_dry_run_writes_tables_only(corpus):
    (corpus / "bad.jsonl").write_bytes(b"{bad\n")
    before = set(contents(corpus))
    tables = "--skipped", "s.tsv", "--items", "bad.jsonl", "--on-bad-line", "skip", "--rejects", "bad"
    printed = run(corpus, "contained", "q.tsv", *SHARDS, "--dry-run", "--cut", "-o", "o/", *tables)
    assert (printed.returncode, b"%) would be cut, 1 emptied, 1 bad line skipped" in printed.stderr) == (0, True)
    assert set(contents(corpus)) - before == {"s.tsv", "bad"}
    assert (corpus / "bad").read_bytes() == b"{bad\n"


@pytest.mark.parametrize("keep", [None, "first", "last", "--keep-field"])
def test_documents_that_others_contain_are_removed(tmp_path, keep):
    texts = [*TEXTS[:30], *(" ".join(text.split()[4:30]) for text in TEXTS[:20]), TEXTS[0]]
    priorities = [i % 7 for i in range(len(texts))]
    lines = [f"{i}\t{priority}\t{text}\n" for i, (priority, text) in enumerate(zip(priorities, texts))]
    (tmp_path / "in.tsv").write_text("".join(lines))
    how = ["--keep-field", "2"] if keep == "--keep-field" else ["--keep", keep] if keep else []
    options = ["--field", "3", "--threshold", "0.9", "--measure", "containment", *how, "--json", "--removed", "r.tsv"]
    counts = json.loads(done(tmp_path, "dedup", "in.tsv", "-o", "out.tsv", *options))
    result = package.deduplicate_contained(texts, 0.9, keep=priorities if keep == "--keep-field" else keep or "longest")
    assert (tmp_path / "out.tsv").read_text() == "".join(lines[i] for i in result.kept)
    removed = [[str(value).encode() for value in row[:3]] for row in result.removed.tolist()]
    assert rows((tmp_path / "r.tsv").read_bytes()) == removed
    assert (counts["removed"], counts["measure"]) == (len(removed), "containment")


def test_too_little_memory(tmp_path, monkeypatch):
    """The remedy is not --max-memory, which these commands do not have."""

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr("lsh.passages.removing.ItemSearch", fail)
    shown = refused(tmp_path, "dedup", SAMPLE, "--dry-run", "--measure", "containment", "-q")
    assert shown.startswith("lsh: error: not enough memory; the items and the hits are held in memory: remove ")
