"""`lsh passages`: texts are shortened as `find_passages` says, in every format, and all other bytes stay."""

import bz2
import csv
import gzip
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
from reading import read_table, write_records, write_table
from running import SAMPLE, contents, done, json_lines, process, rows

import lsh as package

NOTE = 'This notice — "fair use", 语言 😀 — is at the end of every page of our site, whatever it says. '
TEXTS = [f"{number} pages. {NOTE}{number * 7919} words." for number in (12, 345, 6789)] + [NOTE, "", "Short."]
MIN_BYTES = ("--min-bytes", "40")


def left(texts: list[Any], **options: Any) -> list[Any]:
    return list(package.find_passages(texts, 40, **options).cut(texts))


LEFT = left(TEXTS)


def cleaned(folder: Path, name: str, *options: str, output: str = "out.") -> bytes:
    done(folder, "passages", name, "-o", f"{output}{name}", *MIN_BYTES, "-q", *options)
    return (folder / f"{output}{name}").read_bytes()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("field", ["text", "a.b", "a.text"])
def test_lines_of_json(tmp_path, end, field):
    """Every byte but those of the string of the text stays, and that is written as the string was."""
    strings = [json.dumps(text, ensure_ascii=i % 2 == 0) for i, text in enumerate(TEXTS)]
    around = {
        "text": ('{"n": 1.50 ,"text" :\t%s , "z": [1,{"text":"x"}] }', ' {"text":"old","q":"\\u00e9","text":%s}'),
        "a.b": ('{"id":1e2,"a": {"c":"\\/", "b":%s}}', '{"a.b": %s, "a":{"b":"other"}}'),
        "a.text": ('{"a": {"text": %s, "n": null}, "text":"x"}', '{"text":"\\n", "a" : {"text":%s}}'),
    }[field]
    data = end.join(around[i % 2] % string for i, string in enumerate(strings))
    (tmp_path / "a.jsonl").write_bytes(data.encode())
    expected = [
        around[i % 2] % json.dumps(text, ensure_ascii=i % 2 == 0) for i, text in enumerate(LEFT) if text or not TEXTS[i]
    ]
    assert cleaned(tmp_path, "a.jsonl", "--field", field) == end.join(expected).encode()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
@pytest.mark.parametrize("form", ["csv", "tsv", "txt"])
def test_cells_and_lines(tmp_path, form, encoding):
    texts = [text if encoding != "cp1252" else text.replace("语言 😀", "é") for text in TEXTS]
    texts = texts if form != "txt" else [text for text in texts if text]
    wanted = [(i, text) for i, text in enumerate(left(texts)) if text or not texts[i]]
    rows_of = {
        "csv": lambda i, text: [f"d,{i}", 'a "b";', text + ("\r\nmore" if i == 1 else ""), ""],
        "tsv": lambda i, text: [f"d{i}", "a", text, '"'],
        "txt": lambda i, text: [text],
    }[form]

    def written(texts: list[tuple[int, str]]) -> bytes:
        if form != "csv":
            return "".join("\t".join(rows_of(i, text)) + "\r\n" for i, text in texts).encode(encoding)
        target = io.StringIO()
        quoting = csv.writer(target, delimiter=";", quoting=csv.QUOTE_ALL)
        quoting.writerows([["id", "more", "text", "end"], *(rows_of(i, text) for i, text in texts)])
        return target.getvalue().encode(encoding)

    options = {"csv": ["--delimiter", ";"], "tsv": ["--field", "3", "--id-field", "1"], "txt": []}[form]
    (tmp_path / f"a.{form}").write_bytes(written(list(enumerate(texts))))
    found = cleaned(tmp_path, f"a.{form}", "--encoding", encoding, *options)
    if form == "csv":  # the line that text 1 has more is a part of it
        rest = [text + ("\r\nmore" if i == 1 else "") for i, text in enumerate(texts)]
        wanted = [(i, text.removesuffix("\r\nmore")) for i, text in enumerate(left(rest)) if text or not texts[i]]
    assert found == written(wanted)


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_tables(tmp_path, form):
    """The type of a column stays, also within structs and dictionaries."""
    pyarrow = pytest.importorskip("pyarrow")
    texts = [*TEXTS, None]
    columns = {
        "id": pyarrow.array(range(len(texts)), pyarrow.int16()),
        "text": pyarrow.array(texts, pyarrow.large_string()),
        "coded": pyarrow.array(texts).dictionary_encode(),
        "view": pyarrow.array(texts).cast(pyarrow.string_view() if hasattr(pyarrow, "string_view") else "string"),
        "deep": pyarrow.array([None if i == 5 else {"k": i, "text": text} for i, text in enumerate(texts)]),
        "bytes": pyarrow.array([text and text.encode() for text in texts]),
    }
    write_table(tmp_path / f"a.{form}", pyarrow.table(columns))
    before = read_table(tmp_path / f"a.{form}")
    for field in ("text", "coded", "view", "deep.text", "bytes"):
        cleaned(tmp_path, f"a.{form}", "--field", field, "--missing", "empty")
        found = read_table(tmp_path / f"out.a.{form}")
        assert found.schema == before.schema
        kept = [i for i, text in enumerate(texts) if not text or LEFT[i]]
        assert found["id"].to_pylist() == kept
        for name in columns:
            wanted = [before[name][i].as_py() for i in kept]
            if name == field.partition(".")[0]:
                new = [None if texts[i] is None else LEFT[i] for i in kept]
                if name == "deep":
                    new = [old and {"k": old["k"], "text": text} for old, text in zip(wanted, new)]
                wanted = [text and text.encode() if name == "bytes" else text for text in new]
                wanted = [b"" if name == "bytes" and text == "" else text for text in wanted]
            assert found[name].to_pylist() == wanted, (field, name)


def test_a_folder_of_texts(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"\xef\xbb\xbf" + TEXTS[0].encode())
    (folder / "b.txt.gz").write_bytes(gzip.compress(TEXTS[1].encode()))
    (folder / "c.md").write_text("Nothing is repeated here.")
    (folder / "d.txt").write_text(TEXTS[3])
    done(tmp_path, "passages", "in", "-o", "out/", *MIN_BYTES)
    found = contents(tmp_path / "out")
    assert gzip.decompress(found.pop("b.txt.gz") or b"").decode() == LEFT[1]
    assert found == {"a.txt": b"\xef\xbb\xbf" + TEXTS[0].encode(), "c.md": b"Nothing is repeated here."}


def test_shards_spans_and_marks(tmp_path):
    """Where passages are, by ids, bytes and characters; documents of several files, in a bound of memory."""
    draw = random.Random(0)
    pool = ["".join(draw.choices("abcdé ", k=90)) for _ in range(20)]
    texts = ["".join(draw.choices(pool, k=draw.randint(1, 6))) + f"{i}" for i in range(400)]
    for shard in range(4):
        own = [{"id": f"d{i}", "text": texts[i]} for i in range(100 * shard, 100 * shard + 100)]
        write_records(tmp_path / f"{shard}.jsonl.gz", own)
    old = [pool[0] + "!", pool[1]]
    (tmp_path / "old.txt").write_text("\n".join(old))
    found = package.find_passages(texts, 60, against=old, keep="last")
    options = ["--min-bytes", "60", "--keep", "last", "--against", "old.txt", "--spans", "s.tsv", "--max-memory", "1MB"]
    inputs = [f"{shard}.jsonl.gz" for shard in range(4)]
    printed = done(tmp_path, "passages", *inputs, "-o", "out/", "--json", *options)
    table = []
    for one in found.spans:
        kept = f"d{one['kept']}" if one["side"] == "new" else one["kept"] + 1
        row = [f"d{one['document']}", one["start"], one["end"], kept, one["kept_start"], one["side"]]
        table.append(list(map(str, row)))
    assert [[cell.decode() for cell in row] for row in rows((tmp_path / "s.tsv").read_bytes())] == table
    data = b"".join(gzip.decompress((tmp_path / "out" / name).read_bytes()) for name in inputs)
    assert [record["text"] for record in json_lines(data)] == [text for text in found.cut(texts) if text]
    counts, summary = json.loads(printed), found.summary()
    del summary["seconds"]
    assert {name: counts[name] for name in summary} == summary
    done(tmp_path, "passages", *inputs, "-o", "all.jsonl.bz2", "--mark", "cuts", *options)
    marked = json_lines(bz2.decompress((tmp_path / "all.jsonl.bz2").read_bytes()))
    for i, (record, text) in enumerate(zip(marked, texts, strict=True)):
        assert record["text"] == text
        own = found.cuts[found.cuts["document"] == i]
        assert [text[start:end].encode() for start, end in record["cuts"]] == [
            text.encode()[start:end] for start, end in zip(own["start"], own["end"])
        ]


def test_marks_of_other_formats(tmp_path):
    for name in ("a.parquet", "a.csv"):
        write_records(tmp_path / name, [{"text": text} for text in TEXTS])
    cleaned(tmp_path, "a.parquet", "--mark", "cuts")
    cuts = read_table(tmp_path / "out.a.parquet")["cuts"].to_pylist()
    found = list(csv.DictReader(io.StringIO(cleaned(tmp_path, "a.csv", "--mark", "cuts").decode())))
    assert [json.loads(row["cuts"]) for row in found] == cuts
    assert [row["text"] for row in found] == TEXTS
    assert [bool(cut) for cut in cuts] == [False, True, True, True, False, False]


def test_lines_that_are_normalised(tmp_path):
    (tmp_path / "a.txt").write_text("One line, as it is\none LINE as it is\n")
    options = ["--unit", "line", "--min-bytes", "5", "--lowercase", "--strip-punctuation"]
    done(tmp_path, "passages", "a.txt", "-o", "b.txt", *options)
    assert (tmp_path / "b.txt").read_text() == "One line, as it is\n"


def test_the_report(tmp_path):
    (tmp_path / "old.txt").write_text(NOTE)
    (tmp_path / "a.txt").write_text("\n".join(text for text in TEXTS if text))
    done(tmp_path, "passages", "a.txt", "--against", "old.txt", "--dry-run", "--report", "r.html", *MIN_BYTES)
    page = (tmp_path / "r.html").read_text()
    assert "fair use" in page
    assert "4 passages" in page or ">4<" in page
    assert set(contents(tmp_path)) == {"a.txt", "old.txt", "r.html"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "passages a.tsv -o b.tsv --max-memory 100KB",
        "passages few.tsv -o b.tsv --report r.html",  # the report is larger than the documents
        "dedup few.tsv -o b.tsv --report r.html",
        "contained few.tsv a.tsv -o c.tsv --hits h.tsv",
    ],
)
def test_a_full_disk_leaves_nothing(tmp_path, line):
    """The sample, many times; writing ends at a limit of the size of files. No file appears where one is missing."""
    (tmp_path / "a.tsv").write_bytes(SAMPLE.read_bytes() * 20)
    (tmp_path / "few.tsv").write_bytes(b"".join(SAMPLE.read_bytes().splitlines(True)[:20]))
    (tmp_path / "b.tsv").write_bytes(b"yesterday\n")
    before = contents(tmp_path)
    program = "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    program += "resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000)); from lsh.command.main import main; "
    program += f"sys.exit(main({[*line.split(), '-q']}))"
    result = process(tmp_path, python=["-c", program])
    assert result.returncode == 2
    assert result.stderr.startswith(b"lsh: error: ")
    assert contents(tmp_path) == before
