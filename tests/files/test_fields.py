"""Fields of many records at once: the compiled readers find what Python's readers find, in all plain records."""

import io
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
import reference
import strategies
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from lsh import files
from lsh.files import blocks, lines, text_formats
from lsh.files._fields import count_lines, delimited_cells, json_fields

MANY = sys.maxsize
TEXTS = st.one_of(st.text(max_size=40), st.text('ab"\\,\n\r\t é\u2028\U0001f600', max_size=40))
PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**80), 2**80), st.floats(), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("abc", max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


def columns(found: Any) -> Any:
    """The columns that `json_fields` returns, texts and names in one list."""
    if found is None:
        return None
    return [None if column is None else column.tolist() for part in found[:2] for column in part]


def lines_at(block: bytes, spans: Any) -> list[bytes]:
    """The records at some places of a block."""
    return [block[begin : begin + size] for begin, size in spans.tolist()]


@st.composite
def json_lines(draw: st.DrawFn) -> tuple[list[dict[str, Any]], bytes]:
    """Records as programs write them, one a line, with blank lines between."""
    records, written = [], []
    for _ in range(draw(st.integers(0, 5))):
        record: dict[str, Any] = draw(
            st.dictionaries(st.sampled_from(["a", "texts", "tex", "id2", "", "é"]), PLAIN, max_size=3)
        )
        record["text"] = draw(TEXTS)
        record["id"] = draw(st.one_of(TEXTS, st.integers(-(10**80), 10**80), st.floats(allow_nan=False)))
        record["id"] = "inf" if record["id"] in (math.inf, -math.inf) else record["id"]
        record = dict(draw(st.permutations(list(record.items()))))
        separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")]))
        line = json.dumps(record, ensure_ascii=draw(st.booleans()), separators=separators).encode()
        records.append(record)
        written.append(draw(st.sampled_from([b"", b" ", b"\n", b" \t\r\n\n"])) + line)
        written.append(draw(st.sampled_from([b"\n", b"\r\n", b" \n", b"\n \n"])))
    return records, b"".join(written)


@given(json_lines(), st.booleans())
@strategies.examples(20)
def test_plain_json_is_found(written, cut):
    records, block = written
    if cut:
        block = block.removesuffix(b"\n")
    found = json_fields(block, (b"text",), (b"id", b"none"))
    assert found is not None
    text, identity, none = columns(found)
    assert lines_at(block, found[2]) == [line for line in io.BytesIO(block).readlines() if line.strip()]
    assert text == [record["text"].encode() for record in records]
    assert (identity or []) == [str(record["id"]).encode() for record in records]
    assert none is None
    assert count_lines(block) == len(block.split(b"\n")) - (block[-1:] in (b"\n", b""))


STRUCTURE = [bytes([code]) for code in b'\x01\x1f\x7f"\\\x08{}[]:,tfn0-.eE+/']  # bytes that JSON reads, or forbids


@given(json_lines(), st.integers(0, 2**32), st.binary(min_size=1, max_size=3) | st.sampled_from(STRUCTURE))
@example(({}, b'{"text": "abc", "id": 1}\n'), 11, b"\x01")  # a control character in a string
@strategies.examples(250)
def test_what_is_found_in_damaged_json_is_what_python_finds(written, place, odd):
    block = written[1]
    place %= len(block) + 1
    for damaged in (block[:place], block[:place] + odd + block[place:], block[:place] + odd + block[place + 1 :]):
        found = columns(json_fields(damaged, (b"text",), (b"id",)))
        if found is None:
            continue
        rows = reference.json_fields(damaged, ["text", "id"])
        assert rows is not None
        assert found[0] == [row[0].encode() for row in rows]
        if found[1] is None:
            assert not any("id" in json.loads(line) for line in damaged.splitlines() if line.strip())
        else:
            assert found[1] == [str(row[1]).encode() for row in rows]


@pytest.mark.parametrize(
    ("block", "texts", "names", "expected"),
    [
        (b'{"text": 5, "text": "\\n", "text": "b\\u00e9"}', [b"text"], [b"id"], [["b\xe9".encode()], None]),
        (b'{"text": "b", "text": 5}', [b"text"], [], None),  # the last of several fields counts
        (b'{"text": "b", "id": %s}' % (b"9" * 256), [b"text"], [b"id"], [[b"b"], [b"9" * 256]]),
        (b'{"text": "b", "x": %s}' % (b"9" * 257), [b"text"], [b"id"], None),  # left to Python, as what follows
        (b'{"text": "b", "id": NaN}', [b"text"], [b"id"], None),
        (b'{"text": "b", "id": null}', [b"text"], [b"id"], None),
        (b'{"text": "b", "\\ud800": 1}', [b"text"], [b"id"], None),
        (
            b'{"title": "A", "text": "b"}\n{"text": "d", "title": "C"}\n',
            [b"title", b"text"],
            [],
            [[b"A", b"C"], [b"b", b"d"]],
        ),
        (b'{"title": "A", "text": "b"}\n{"title": "C"}\n', [b"title", b"text"], [], None),
        (b'{"a": {"b": "no"}, "a.b": "yes"}', [b"a.b"], [], [[b"yes"]]),  # a name with a dot is a key
        (b'{"a": {"b": "no"}}', [], [b"a.b"], [None]),
        (b'{"t\\u0065xt": "a", "\\u00e9\\n": "b"}', [b"text"], [b"id"], [[b"a"], None]),
        (b'{"x": {"text": "no", "id": 7}, "text": "yes"}\n', [b"text"], [b"id"], [[b"yes"], None]),
    ],
)
def test_which_fields_of_json_are_found(block, texts, names, expected):
    assert columns(json_fields(block, tuple(texts), tuple(names))) == expected


def test_many_names_and_many_escapes():
    """Decoded fields and names fit into the output, however many fields there are."""
    names = tuple(b"%d" % i for i in range(40))
    block = b"{" + b",".join(b'"\\u003%s": "\\n\\u00e9"' % name for name in names) + b"}\n"
    assert columns(json_fields(block * 9, names, ())) == [["\né".encode()] * 9] * 40


@given(st.lists(st.binary(max_size=20)), st.sampled_from([b"\n", b"\r\n"]), st.integers(1, 3), st.booleans())
def test_cells_of_lines(made, end, cells, separated):
    block = end.join(made)
    separator = b"\t" if separated else b"\n"
    rows = reference.line_cells(block, separator)
    fits = all(len(row) >= cells for row in rows)
    found = delimited_cells(block, separator, tuple(range(cells)), cells, MANY, False)
    assert (found is not None) == fits
    if found is not None:
        assert list(zip(*[column.tolist() for column in found[0]])) == [tuple(row[:cells]) for row in rows]
        assert lines_at(block, found[1]) == io.BytesIO(block).readlines()
    exact = delimited_cells(block, separator, (0,), cells, cells, False)
    assert (exact is not None) == all(len(row) == cells for row in rows)


CELLS = st.lists(st.text('ab,;"\n\r é', max_size=12).map(str.encode), min_size=1, max_size=3)
SEPARATORS = (b",", b";", b"\t", b"a")


def quoted(cell: bytes) -> bytes:
    return b'"' + cell.replace(b'"', b'""') + b'"'


@given(
    st.lists(st.tuples(CELLS, st.sampled_from([b"\n", b"\r\n", b"\n\n"]))),
    st.booleans(),
    st.integers(0, 2**32),
    st.sampled_from(SEPARATORS),
)
def test_cells_of_csv(made, sparing, place, by):
    """All cells of complete records are found, also in cut blocks. In changed blocks: as Python's, or nothing."""
    block = b""
    for cells, end in made:
        plain = [sparing and not set(cell) & set(by + b'"\r\n') and cells != [b""] for cell in cells]
        block += by.join(cell if bare else quoted(cell) for cell, bare in zip(cells, plain)) + end
    expected = [cells for cells, _ in made]
    assert reference.csv_cells(block, by) == expected
    found = delimited_cells(block, by, (0,), 1, MANY, True)
    assert found is not None
    assert found[0][0].tolist() == [cells[0] for cells in expected]
    assert found[2] == len(block)
    assert [reference.csv_cells(one, by) for one in lines_at(block, found[1])] == [[cells] for cells in expected]
    place %= len(block) + 1
    newline = block.rfind(b"\n", 0, place) + 1  # where a file is cut
    begun = delimited_cells(block[:newline], by, (0,), 1, MANY, True)
    assert begun is not None
    count = len(begun[0][0])
    assert begun[0][0].tolist() == [cells[0] for cells in expected[:count]]
    rest = delimited_cells(block[begun[2] :], by, (0,), 1, MANY, True)
    assert rest is not None
    assert rest[0][0].tolist() == [cells[0] for cells in expected[count:]]
    for odd in (b"", b'"', b"\r", b"\0", by, b"\n"):
        damaged = block[:place] + odd + block[place + 1 :]
        again = delimited_cells(damaged, by, (0,), 1, MANY, True)
        if again is not None and again[2] == len(damaged):
            rows = reference.csv_cells(damaged, by)
            assert rows is not None
            assert again[0][0].tolist() == [row[0] for row in rows]


@pytest.mark.parametrize("block", [b'a"b\n', b'"a"b\n', b'"a" ,b\n', b"a\rb\n", b"a\r", b"a\0b\n", b'"a"\rb\n'])
def test_odd_csv_is_left_to_a_reader_that_can_judge(block):
    assert delimited_cells(b"x\n" + block, b",", (0,), 1, MANY, True) is None


# Whole files: blocks of any size give the same documents as reading one record at a time.


def written(format: str, rows: list[tuple[Any, str, str]], odd: dict[int, bytes], by: str = "") -> bytes:
    """Documents of an id, a text and a source as a file of the format, with a line of `odd` before a few of them."""
    by = by or {"csv": ",", "tsv": "\t"}.get(format, "")
    heads = {"csv": f"id{by}text{by}from\r\n", "tsv": f"text{by}from{by}id\n"}
    made = [heads.get(format, "").encode()]
    for number, (identity, text, source) in enumerate(rows):
        made.append(odd.get(number, b""))
        flat = " ".join(text.replace(by, " ").split()) if by else " ".join(text.split())
        made.append(
            {
                "jsonl": json.dumps(
                    {"id": identity, "text": text, "from": source, "meta": {"text": text, "id": {"n": number}}},
                    ensure_ascii=number % 2 > 0,
                ).encode(),
                "csv": by.encode().join(quoted(cell.encode()) for cell in (str(identity), text, source)),
                "tsv": f"{flat}{by}{source}{by}{identity}".encode(),
                "txt": flat.encode(),
            }[format]
            + (b"\r\n" if number % 3 == 0 else b"\n")
        )
    return b"".join(made)


ODD_LINES = {
    "jsonl": [
        b"\n",
        b" \t\r\n \n",
        b'{"text": "a", "id": 1e400}\n',
        b"nonsense\n",
        b'{"text": 5}\n',
        b'{"text": "\\ud800", "from": ""}\n',
        b'{"text": "a", "from": null}\n',
    ],
    "csv": [b'a"b,c,d\n', b"a,b\n", b"a;b;c\n", b"\n", b'"a" ,b,c\n'],
    "tsv": [b"a\n", b"a\tb\tc\td\n", b"a;b;c;d\n", b"\n"],
    "txt": [b"\n", b"\xff\n"],
}


@given(data=st.data(), format=st.sampled_from(sorted(ODD_LINES)), size=st.integers(1, 200))
@strategies.examples(70, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_blocks_are_what_is_read_one_by_one(tmp_path, data, format, size):
    text = st.text('ab"\\,\n\r\t é\U0001f600', max_size=30)
    name = st.text("abc", max_size=3)
    rows = data.draw(st.lists(st.tuples(st.one_of(st.integers(0, 99), st.text("xyz", min_size=1)), text, name)))
    places = st.integers(0, max(len(rows) - 1, 0))
    odd = data.draw(st.dictionaries(places, st.sampled_from(ODD_LINES[format]), max_size=2))
    path = tmp_path / f"in.{format}"
    by = data.draw(st.sampled_from([";", "\t", "|", ""])) if format in ("csv", "tsv") else ""
    path.write_bytes(written(format, rows, odd if rows else {}, by))
    options: dict[str, Any] = {"on_bad_line": "skip", "delimiter": by or None}
    if format == "csv" and data.draw(st.booleans()):
        options |= {"header": False, "field": "3", "id_field": data.draw(st.sampled_from(["2", "none"]))}
    elif format != "txt":
        fields = ["text", "text,id", "id,text", "from,text"] if format != "tsv" else ["text"]
        options |= {"source_field": "from", "field": data.draw(st.sampled_from(fields))}
    if format == "jsonl" and data.draw(st.booleans()):
        options |= {"field": data.draw(st.sampled_from(["meta.text", "text,meta.text"])), "id_field": "meta.id.n"}
    if format == "tsv":
        options["header"] = True

    def documents() -> tuple[list[Any], int]:
        with files.Documents(str(path), **options) as source:
            return list(source.records()), source.counts.skipped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "READ_SIZE", size)
        in_blocks = documents()
        for reader in (text_formats.JsonLines, text_formats.Csv, text_formats.Tsv, text_formats.PlainText):
            patch.setattr(reader, "many", lambda self, block: None)
        assert in_blocks == documents()
    kept = len(rows) if format != "csv" else len(in_blocks[0])
    assert len(in_blocks[0]) >= kept - in_blocks[1]


def test_a_record_longer_than_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "READ_SIZE", 64)
    for most in (1 << 24, 256):  # found in whole blocks, or left to the record reader
        monkeypatch.setattr(lines, "MAX_GROWN_BLOCK", most)
        text = "a line\n" * 500
        path = tmp_path / "in.csv"
        path.write_text(f'id,text\n1,"{text}"\n2,b\n', newline="")
        with files.Documents(str(path)) as source:
            assert [record.text for record in source.records()] == [text.encode(), b"b"]
