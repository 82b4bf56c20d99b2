"""`lsh dedup 'shards/*' -o folder/`: a file of kept documents for each input, under its name and in its order."""

import gzip
import os
from pathlib import Path

import pytest
from full_disk import full_disk
from reading import COMPRESSIONS, pack, unpack, write_records
from running import CLOSE, OTHER, STORY, THIRD, contents, done, lsh, refused

SHARDS = {  # by format, for each file: its header, its records, the positions of the kept ones
    "txt": [(b"", [STORY, b"one"], [0, 1]), (b"", [], []), (b"", [OTHER, CLOSE, THIRD], [0, 2]), (b"", [OTHER], [])],
    "csv": [
        (b"id,text\n", [b'1,"' + STORY + b'"', b"2,one"], [0, 1]),
        (b"id,text\n", [], []),
        (b"id,text\n", [b"3," + CLOSE, b'4,"two\nlines"'], [1]),
    ],
    "jsonl": [
        (b"", [b'{"text": "' + STORY + b'"}', b'{"text": "one"}'], [0, 1]),
        (b"", [b'{"text": "' + CLOSE + b'"}'], []),
        (b"", [b'{"text": "' + OTHER + b'"}'], [0]),
    ],
}


def shard(head: bytes, records: list[bytes], chosen: list[int] | None = None) -> bytes:
    return head + b"".join(records[i] + b"\n" for i in (range(len(records)) if chosen is None else chosen))


def make(folder: Path, form: str, packed: str) -> dict[str, bytes]:
    """Write the shards into a folder; return what the output must hold by name, unpacked."""
    folder.mkdir()
    expected = {}
    for number, (head, records, kept) in enumerate(SHARDS[form]):
        name = f"part-{number}.{form}.{packed}".rstrip(".")
        (folder / name).write_bytes(pack(shard(head, records), packed))
        expected[name] = shard(head, records, kept)
    return expected


@pytest.mark.few(6)
@pytest.mark.parametrize("form", SHARDS)
@pytest.mark.parametrize("packed", COMPRESSIONS)
def test_an_output_a_shard(tmp_path, form, packed):
    expected = make(tmp_path / "in", form, packed)
    done(tmp_path, "dedup", f"in/part-*.{form}*", "-o", "out/", "--removed", "removed.tsv")
    assert {name: unpack(data, packed) for name, data in contents(tmp_path / "out").items()} == expected
    assert (tmp_path / "removed.tsv").read_bytes()
    one = f"one.{form}"
    done(tmp_path, "dedup", f"in/part-*.{form}*", "-o", one)
    head = SHARDS[form][0][0]
    assert (tmp_path / one).read_bytes() == head + b"".join(data.removeprefix(head) for data in expected.values())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["in"], ["a/x.txt", "b/c/x.txt", "b/y.txt"]),
        (["in/a"], ["x.txt"]),
        (["in/a*"], ["x.txt"]),  # the pattern matches the folder
        (["in/b"], ["c/x.txt", "y.txt"]),
        (["in/b/y*"], ["y.txt"]),  # a pattern may match a single file
        (["in/a", "in/b"], ["a/x.txt", "b/c/x.txt", "b/y.txt"]),
        (["in/a", "in/b/y.txt"], ["a/x.txt", "b/y.txt"]),
        (["in/a/x.txt", "in/b/y.txt"], ["a/x.txt", "b/y.txt"]),  # also where the names differ
        (["in/b/y.txt", "in/b/c/x.txt"], ["y.txt", "c/x.txt"]),
        (["in/**/x.txt"], ["a/x.txt", "b/c/x.txt"]),
        (["in/b/../a/x.txt", "in/b/y.txt"], ["a/x.txt", "b/y.txt"]),
    ],
)
def test_the_paths_of_the_outputs(tmp_path, arguments, expected):
    """Output paths are relative to the deepest folder that holds all inputs, whatever the names are."""
    for name, text in (("a/x", STORY), ("b/c/x", OTHER), ("b/y", THIRD)):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / f"{name}.txt").write_bytes(text + b"\n")
    done(tmp_path, "dedup", *arguments, "-o", "out/", "--format", "txt")
    found = {name for name, data in contents(tmp_path / "out").items() if data is not None}
    assert found == {os.path.join(*name.split("/")) for name in expected}


def test_bad_lines_and_marks_stay_where_they_belong(tmp_path):
    """Each shard keeps its byte order mark; a skipped line does not move documents to another shard."""
    mark = b"\xef\xbb\xbf"
    (tmp_path / "a.tsv").write_bytes(mark + b"1\t" + STORY + b"\nbad\n2\tone\n")
    (tmp_path / "b.tsv").write_bytes(b"bad\n3\t" + CLOSE + b"\n4\ttwo")
    done(tmp_path, "dedup", "a.tsv", "b.tsv", "-o", "out/", "--on-bad-line", "skip")
    assert contents(tmp_path / "out") == {"a.tsv": mark + b"1\t" + STORY + b"\n2\tone\n", "b.tsv": b"4\ttwo"}


def test_shards_of_tables(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import ipc, parquet

    texts = [[STORY, b"one"], [], [CLOSE], [OTHER]]
    tables = [
        pyarrow.table({"n": pyarrow.array(range(len(part)), "int32"), "text": pyarrow.array(part, "binary")})
        for part in texts
    ]
    for number, table in enumerate(tables):
        parquet.write_table(table, tmp_path / f"{number}.parquet", compression="gzip")
        with ipc.new_file(str(tmp_path / f"{number}.arrow"), table.schema) as writer:
            writer.write_table(table)
    kept = [[0, 1], [], [], [0]]
    for form in ("parquet", "arrow"):
        done(tmp_path, "dedup", f"*.{form}", "-o", f"{form}/")
        assert len(contents(tmp_path / form)) == 4
        for number, (table, rows) in enumerate(zip(tables, kept, strict=True)):
            path = tmp_path / form / f"{number}.{form}"
            found = parquet.read_table(path) if form == "parquet" else ipc.open_file(path).read_all()
            assert found.equals(table.take(pyarrow.array(rows, "int64")))
    column = parquet.ParquetFile(tmp_path / "parquet" / "0.parquet").metadata.row_group(0).column(0)
    assert column.compression == "GZIP"


@pytest.mark.parametrize("form", ["txt", "csv"])
def test_an_error_leaves_no_folder(tmp_path, monkeypatch, form):
    """Neither a full disk nor a bad line of the last shard leaves one. The message names the shard that failed."""
    make(tmp_path / "in", form, "")
    before = contents(tmp_path)
    with monkeypatch.context() as patch:
        full_disk(patch, 90)
        result = lsh(tmp_path, "dedup", f"in/part-*.{form}", "-o", "out/")
    assert result.returncode == 2
    assert f"lsh: error: out/part-0.{form}: No space left on device in the folder " in result.stderr.decode()
    assert contents(tmp_path) == before
    (tmp_path / "in" / f"part-9.{form}.gz").write_bytes(gzip.compress(STORY)[:-4])
    assert lsh(tmp_path, "dedup", f"in/part-*.{form}*", "-o", "out/").returncode == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["tsv", "parquet"])
def test_the_table_of_removals_names_the_files(tmp_path, form):
    """Ids may repeat in several files. Similarity 1 is that of equal shingles; whether texts are equal is said, too."""
    texts = [[STORY, OTHER], [b""], [THIRD, STORY], [OTHER.upper()]]
    for number, part in enumerate(texts):
        rows = [{"id": f"r{i}", "text": text.decode()} for i, text in enumerate(part)]
        write_records(tmp_path / f"{number}.{form}", rows, header=False)
    done(tmp_path, "dedup", f"*.{form}", "-o", "out/", "--removed", "removed.txt", "--lowercase")
    assert [line.split("\t") for line in (tmp_path / "removed.txt").read_text().splitlines()] == [
        ["r1", "r0", "1.0", f"2.{form}", f"0.{form}", "identical"],
        ["r0", "r1", "1.0", f"3.{form}", f"0.{form}", "similar"],
    ]


def test_the_table_of_removals_names_files_of_reference_documents(tmp_path):
    """A folder of texts counts as one file: its ids are paths. Two files have the table of one."""
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.md").write_bytes(STORY)
    (tmp_path / "old.txt").write_bytes(OTHER + b"\n")
    (tmp_path / "in.txt").write_bytes(STORY + b"\n" + OTHER + b"\n")
    line = ["in.txt", "-o", "out.txt", "--removed", "removed.txt"]
    done(tmp_path, "dedup", *line, "--against", "old", "--against", "old.txt")
    assert (tmp_path / "removed.txt").read_text() == (
        "1\ta.md\t1.0\told\tin.txt\told\tidentical\n2\t1\t1.0\told\tin.txt\told.txt\tidentical\n"
    )
    done(tmp_path, "dedup", *line, "--against", "old")
    assert (tmp_path / "removed.txt").read_text() == "1\ta.md\t1.0\told\n"


def test_a_table_in_a_new_output_folder(tmp_path):
    """The folder appears when it is complete, so the table cannot be written beside the documents before that."""
    make(tmp_path / "in", "txt", "")
    for source, output, option in (
        ("in/*", "out/", "--removed"),
        ("in/*", "out/", "--report"),
        ("in", "out", "--removed"),
    ):
        assert refused(tmp_path, "dedup", source, "-o", output, option, "out/a/b") == (
            f"lsh: error: {option} lies in OUTPUT, a folder that appears when it is complete, got out/a/b; "
            f"make the folder first (mkdir {output}), or name a place elsewhere"
        )
    done(tmp_path, "dedup", "in/*", "-o", "new/", "--report", "other/x")
    assert (tmp_path / "other" / "x").exists()
    (tmp_path / "out").mkdir()  # into an empty one, the table and the documents are written together
    done(tmp_path, "dedup", "in/*", "-o", "out/", "--removed", "out/removed.tsv", "--format", "txt")
    assert sorted(os.listdir(tmp_path / "out")) == [*(f"part-{number}.txt" for number in range(4)), "removed.tsv"]
