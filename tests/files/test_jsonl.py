"""JSON lines: accepted values, their meaning, and the field that is read.

The verdicts on values are in json_verdicts.py. Each line is read in a block, by the compiled reader, and
alone, by Python's, with the same result. test_fields.py compares the readers themselves. At the end: a string that is
shortened where it stands, whatever escapes it is written with.
"""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import strategies
from json_verdicts import ACCEPTED, IDS, REFUSED, REFUSED_IDS, REFUSED_STRINGS, STRINGS
from reading import file_of, kept, read, refusal, texts

from lsh import files
from lsh.files.json_strings import shortened
from lsh.files.text_formats import JsonLines

FIRST = b'{"text": "first", "id": "f"}\n'  # which shows the reader where the text is


def read_line(folder: Path, line: bytes) -> tuple[bytes, bytes | None] | None:
    """The document of a line after another, None if it is refused; the result is the same in a block and alone."""
    path = file_of(folder, "in.jsonl", FIRST + line + b"\n")
    found = []
    for alone in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            if alone:
                patch.setattr(JsonLines, "many", lambda self, block: None)
            try:
                found.append(read(path)[1])
            except files.InputError as error:
                assert "in.jsonl, line 2: " in str(error)  # noqa: PT017
                found.append(None)
    assert found[0] == found[1]
    return found[0]


def short(value: Any) -> str:
    return repr(value[:40]) if isinstance(value, bytes) else ""


@pytest.mark.parametrize(("values", "accepted"), [(ACCEPTED, True), (REFUSED, False)], ids=["accepted", "refused"])
@pytest.mark.parametrize(
    "record",
    [
        b'{"x":%s,"text":"a"}',
        pytest.param(b'{"text": "a", "x": %s}', marks=pytest.mark.slow),
        pytest.param(b'{"text":"a","x":[%s]}', marks=pytest.mark.slow),
    ],
)
def test_values_that_are_not_read(tmp_path, values, accepted, record):
    for value in values:
        line = record % value
        if not value.strip() and b"[" in line:
            continue  # an empty list
        found = read_line(tmp_path, line)
        assert found == ((b"2", b"a") if accepted else None), line[:99]


@pytest.mark.parametrize(("value", "text"), [*STRINGS, *((value, None) for value in REFUSED_STRINGS)], ids=short)
def test_strings(tmp_path, value, text):
    line = b'{"text": %s, "id": 7}' % value
    assert read_line(tmp_path, line) == (None if text is None else (b"7", text.encode("utf-8", "surrogatepass")))


@pytest.mark.parametrize(("value", "identity"), [*IDS, *((value, None) for value in REFUSED_IDS)], ids=short)
def test_ids(tmp_path, value, identity):
    line = b'{"text": "a", "id": %s}' % value
    assert read_line(tmp_path, line) == (None if identity is None else (identity, b"a"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"plain words", "not JSON"),
        (b'["text"]', "not a JSON object but a list"),
        (b'{"Text": "a"}', "no field 'text' among 'Text'"),
        (b'{"text": null}', "field 'text' is null; use --missing empty or "),
        (b'{"text": 5}', "field 'text' must be a string, got a number"),
        (b'{"id": true, "text": "a"}', "field 'id' must be a string or a number, got true or false"),
        (b'{"text": "caf\xe9"}', "byte 0xe9 is not UTF-8"),
    ],
    ids=short,
)
def test_bad_lines(tmp_path, line, words):
    good = b'{"id": 1, "text": "good"}\n'
    path = file_of(tmp_path, "in.jsonl", good + good + line + b"\n" + good)
    message = refusal(path)
    assert f"in.jsonl, line 3: {words}" in message
    assert message.endswith(" --on-bad-line skip")
    assert len(message) < 500
    assert texts(path, on_bad_line="skip") == [b"good"] * 3


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_blank_lines_are_no_records(tmp_path, encoding):
    """Blank lines are not written and not counted as records, but they count in the line numbers of messages."""
    lines = ["", '{"text": "a"}', " ", "\t\r", '{"text": "b"}\r', "", '{"text": "c"}', " "]
    path = file_of(tmp_path, "in.jsonl", "\n".join(lines).encode(encoding))
    assert read(path, encoding=encoding) == [(b"1", b"a"), (b"2", b"b"), (b"3", b"c")]
    place = tmp_path / "out.jsonl"
    expected = "\n".join([lines[1], lines[6], ""]).encode(encoding)
    assert kept(path, [True, False, True], place, encoding=encoding) == expected
    assert kept(path, [True, False, True], place, encoding=encoding, on_bad_line="skip") == expected
    path = file_of(tmp_path, "in.jsonl", "\n".join([*lines, "bad"]).encode(encoding))
    assert "line 9: not JSON" in refusal(path, encoding=encoding)
    path = file_of(tmp_path, "in.jsonl", " \n\n".encode(encoding))
    assert read(path, encoding=encoding) == []
    assert kept(path, [], place, encoding=encoding) in (b"", "".encode(encoding))


def test_an_array_is_named_as_such(tmp_path):
    for data in (b'[\n{"text": "a"}\n]\n', b' [{"text": "a"}, {"text": "b"}]', b'\n[ \r\n  {"text": "a"}]\n'):
        line = 2 if data.startswith(b"\n") else 1
        for options in ({}, {"encoding": "latin-1"}, {"on_bad_line": "skip"}):
            message = refusal(file_of(tmp_path, "in.jsonl", data), **options)
            assert f"line {line}: a JSON array, not JSON lines; write one object a line" in message
    assert "line 2: a JSON array, not JSON lines" in refusal(file_of(tmp_path, "in.jsonl", b"\n[1]\n"))


@pytest.mark.parametrize("line", [b"[1]", b'["one", "two"]', b"[[]]"])
@pytest.mark.parametrize("lines", [b'%s\n{"text": "a"}\n', b'{"text": "a"}\n%s\n'])
def test_a_line_that_is_a_list_is_skipped_as_any_other(tmp_path, line, lines):
    path = file_of(tmp_path, "in.jsonl", lines % line)
    assert "use --on-bad-line skip" in refusal(path)
    with files.Documents(path, on_bad_line="skip") as documents:
        assert [record.text for record in documents.records()] == [b"a"]
        assert documents.counts.skipped == 1


def test_how_deep_a_line_may_be_nested_does_not_depend_on_the_calls(tmp_path):
    """Two readings of a file, one of them from deep within other calls, accept the same lines."""
    depths = [*range(490, 510), *range(900, 1000, 10)]
    lines = [b'{"text": "of %d", "x": %s%s}\n' % (depth, b"[" * depth, b"]" * depth) for depth in depths]
    path = file_of(tmp_path, "in.jsonl", FIRST + b"".join(lines))
    expected = [b"first", *(b"of %d" % depth for depth in depths if depth < 500)]

    def deep(calls):
        return deep(calls - 1) if calls else texts(path, on_bad_line="skip")

    assert texts(path, on_bad_line="skip") == deep(300) == expected
    assert "nested more than 500 deep" in refusal(path)


def test_nested_fields(tmp_path):
    lines = [
        b'{"meta": {"title": "One", "key": 7}, "text": "first"}\n',
        b'{"meta.title": "Two", "meta": {"title": "no", "key": "k"}, "text": "second"}\n',
    ]
    path = file_of(tmp_path, "in.jsonl", b"".join(lines))
    assert read(path, field="meta.title", id_field="meta.key") == [(b"7", b"One"), (b"k", b"Two")]
    assert texts(path, field="meta.title,text") == [b"One first", b"Two second"]
    assert "'meta.body'" in refusal(path, field="meta.body")
    assert "'text.more'" in refusal(path, field="text.more")
    assert "--id-field" in refusal(path, id_field="key")
    values = [b"1e400", b"1E2", b"0.10", b"9" * 5000]  # ids keep their digits
    lines = [b'{"meta": {"id": %s}, "id": {}, "n": %s, "text": "a"}\n' % (value, value) for value in values]
    path = file_of(tmp_path, "in.jsonl", b"".join(lines))
    assert [identity for identity, _ in read(path, id_field="meta.id")] == values
    with files.Documents(path, id_field="n", source_field="n") as documents:
        assert [(record.id, record.source) for record in documents.records()] == [(value, value) for value in values]


def test_default_field_of_json(tmp_path):
    for name in ["text", "content", "body", "headline"]:
        path = file_of(
            tmp_path, "in.jsonl", b'{"id": 1, "%s": "one"}\n{"%s": "two", "x": 1}\n' % ((name.encode(),) * 2)
        )
        assert read(path) == [(b"1", b"one"), (b"2", b"two")]
    message = refusal(file_of(tmp_path, "in.jsonl", b'{"title": "a", "date": "b"}\n'))
    assert "--field" in message
    assert "'title', 'date'" in message


def test_missing_texts(tmp_path):
    data = b'{"id": 0}\n{"text": "a", "note": ""}\n{"text": null}\n{"note": "b"}\n'
    path = file_of(tmp_path, "in.jsonl", data)
    with files.Documents(path, missing="empty") as documents:
        assert [record.text for record in documents.records()] == [None, b"a", None, None]
        assert documents.counts.missing == 3
    assert texts(path, field="text,note", missing="empty") == [None, b"a ", None, b"b"]
    assert "line 1" in refusal(path)
    file_of(tmp_path, "in.jsonl", FIRST + b'{"text": null, "id": []}\n{"text": null, "id": 3}\n')
    with files.Documents(path, on_bad_line="skip", missing="empty") as documents:  # a skipped line is not one without
        assert [record.text for record in documents.records()] == [b"first", None]
        assert (documents.counts.skipped, documents.counts.missing) == (1, 1)
    file_of(tmp_path, "in.jsonl", FIRST)
    message = refusal(path, field="body", missing="empty")  # a field that is missing everywhere is a wrong name
    assert "line 1: no field 'body' among 'text', 'id'; name the text's field with --field" in message
    assert "--missing" not in message
    file_of(tmp_path, "in.jsonl", FIRST + b'{"id": "b", "body": null}\n')
    assert read(path, field="body", missing="empty") == [(b"f", None), (b"b", None)]


LETTERS = 'ab"\\/\n\té語😀 {}[]:,text\ud83d'
BEFORE = (
    "",
    '"id": 1, ',
    '"q": "\\"text", ',
    '"m": {"text": "z"}, ',
    '"a": ["x"], ',
    '"text": 5, ',
    f'"n": {"9" * 5000}, ',
)
BEHIND = ("", ', "b": "text"', ', "z": {"text": 1}', ', "w": "\\n"')


def written(letter: str, draw: random.Random) -> str:
    """A character of a string as JSON may have it."""
    units = letter.encode("utf-16-be", "surrogatepass")
    escaped = "".join(f"\\u{units[i]:02x}{units[i + 1]:02X}" for i in range(0, len(units), 2))
    plain = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "/": draw.choice(["/", "\\/"]), "\ud83d": escaped}
    return draw.choice([escaped, plain.get(letter, letter), plain.get(letter, letter)])


def test_the_text_without_runs():
    draw = random.Random(1)
    for _ in range(round(4000 * strategies.SCALE)):
        letters = draw.choices(LETTERS, k=draw.randint(0, 30))
        ends = np.cumsum([0, *(len(letter.encode("utf-8", "surrogatepass")) for letter in letters)])
        places = sorted(draw.choices(range(len(letters) + 1), k=2 * draw.randint(1, 3)))
        runs = list(zip(places[::2], places[1::2]))
        strings = [written(letter, draw) for letter in letters]
        around = [draw.choice(BEFORE), draw.choice(['"text"', '"text"', '"t\\u0065xt"']), draw.choice(BEHIND)]
        line = f'{{ {around[0]}{around[1]} :  "%s"{around[2]} }}\n'
        left = [string for i, string in enumerate(strings) if not any(start <= i < end for start, end in runs)]
        found = shortened((line % "".join(strings)).encode(), "text", ends[np.array(runs)])
        assert found == (line % "".join(left)).encode()
        kept = [letter for i, letter in enumerate(letters) if not any(start <= i < end for start, end in runs)]
        assert json.loads(found, parse_int=str)["text"] == json.loads(json.dumps("".join(kept)))
