"""`lsh show`: two documents by their ids, their shingles in common, and the words in which they differ."""

import gzip
import json
import random
import re

import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st
from running import done

import lsh as package
from lsh.command import show

A = "the old observatory dome turns once more after nineteen years, and the ferry waits"
B = "the old observatory dome turns once more after seventeen years, and the ferry sails"
NEWS = f"a1\t{A}\nb2\t{B}\nc3\tbakers walked out on wednesday\na1\tanother text with the id of the first\n"


@pytest.fixture
def news(tmp_path):
    (tmp_path / "news.tsv").write_text(NEWS, "utf-8")
    return tmp_path


def test_figures(news):
    """The shingles are those of reference.py, and the similarity is their quotient; the page has the same figures."""
    found = json.loads(done(news, "show", "news.tsv", "a1", "b2", "--ngram", 5, "--json"))
    a, b = (set(reference.shingles(text.encode(), 5, "char")) for text in (A, B))
    assert found == {
        "a": {"id": "a1", "source": "news.tsv", "bytes": len(A), "num_shingles": len(a)},
        "b": {"id": "b2", "source": "news.tsv", "bytes": len(B), "num_shingles": len(b)},
        "similarity": len(a & b) / len(a | b),
        "identical": False,
        "common": len(a & b),
        "union": len(a | b),
        "shingles": package.Shingles(5).to_dict(),
        "differences": [{"a": "nineteen", "b": "seventeen"}, {"a": "waits", "b": "sails"}],
    }
    assert done(news, "show", "news.tsv", "a1", "b2", "--ngram", 5).decode() == (
        f"similarity  {found['similarity']:.6f}, exact, by shingles of 5 characters\n"
        f"shingles    {len(a & b)} in both, {len(a - b)} only in the first, {len(b - a)} only in the second, "
        f"{len(a | b)} in all\n"
        f"first       a1 (news.tsv), {len(A)} bytes\n"
        f"second      b2 (news.tsv), {len(B)} bytes\n"
        "\n"
        "the old observatory dome turns once more after [-nineteen-]{+seventeen+} years, and the ferry "
        "[-waits-]{+sails+}\n"
    )
    (news / "in.txt").write_text("The Old Dome\nthe old   dome!\n", "utf-8")
    options = ["--unit", "word", "--ngram", 1, "--lowercase"]
    assert json.loads(done(news, "show", "in.txt", "1", "2", *options, "--json"))["similarity"] == 1.0
    assert "shingles of 1 word\n" in done(news, "show", "in.txt", "1", "2", *options).decode()


def test_what_a_removal_names_can_be_shown(tmp_path):
    """Ids that tables write with escapes, compressed files, and several files."""
    lines = [{"id": "x\ty", "text": A}, {"id": "z", "text": "other"}, {"id": "\u00e9\\n", "text": A}]
    for number, line in enumerate(lines):
        (tmp_path / f"{number}.jsonl.gz").write_bytes(gzip.compress(json.dumps(line).encode() + b"\n"))
    done(tmp_path, "dedup", "?.jsonl.gz", "-o", "out.jsonl", "--removed", "removed.tsv")
    removed, kept, *_ = (tmp_path / "removed.tsv").read_text("utf-8").split("\t")
    found = json.loads(done(tmp_path, "show", "?.jsonl.gz", removed, kept, "--json"))
    assert (found["a"]["id"], found["b"]["id"]) == ("\u00e9\\n", "x\ty")
    assert (found["a"]["source"], found["b"]["source"]) == ("2.jsonl.gz", "0.jsonl.gz")
    assert (found["similarity"], found["identical"], found["differences"]) == (1.0, True, [])
    assert done(tmp_path, "show", "?.jsonl.gz", removed, kept).endswith(b"\n\nThe texts are identical.\n")


def test_texts_without_words_and_with_controls(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(b'{"text": ""}\n{"text": null}\n{"text": "words"}\n')
    printed = done(tmp_path, "show", "in.jsonl", "1", "3").decode()
    assert printed.startswith("similarity  0.000000, exact")
    assert printed.endswith("\n\n{+words+}\n")
    assert done(tmp_path, "show", "in.jsonl", "1", "2").endswith(b"The texts are identical.\n")
    (tmp_path / "in.txt").write_bytes(b"a \x1b[31mred text\n\xff\x9b2J blue text\n")
    printed = done(tmp_path, "show", "in.txt", "1", "2").decode()
    assert "\x1b" not in printed  # a terminal would obey it
    assert "\\x1b[31mred" in printed.replace("[-", "").replace("-]", "")


def test_only_the_differences_of_long_texts_are_shown(tmp_path):
    words = [f"word{i}" for i in range(6_000)]
    other = [*words[:1_990], "one", *words[1_991:4_000], *("more",) * 700, *words[4_000:]]
    (tmp_path / "in.txt").write_text(" ".join(words) + "\n" + " ".join(other) + "\n", "utf-8")
    printed = done(tmp_path, "show", "in.txt", "1", "2").decode()
    assert len(printed) < 3000
    assert "word1989 [-word1990-]{+one+} word1991" in printed
    assert re.search(r"\{\+( ?more)+.*\[\.\.\. 2,500 characters \.\.\.\].*more ?\+\}", printed, re.DOTALL)
    assert len(re.findall(r"^\[\.\.\. [\d,]+ characters \.\.\.\]$", printed, re.MULTILINE)) == 4
    found = json.loads(done(tmp_path, "show", "in.txt", "1", "2", "--json"))
    assert [one["a"] for one in found["differences"]] == ["word1990", ""]
    drawn = show._drawn(show._changes("one two", "three four"), colours=True)  # around the marks
    assert drawn == "\x1b[31m[-one two-]\x1b[0m\x1b[32m{+three four+}\x1b[0m"


@strategies.examples(200)
@given(st.integers(0, 2**32), st.sampled_from([3, 8, 20]), st.sampled_from([1, 4, 10_000]))
def test_changes_give_both_texts(seed, kinds, window):
    """With any window, the pieces joined give the texts, and common pieces are in both texts."""
    draw = random.Random(seed)
    words = ["a", "b", "c", "é", "駅", ", ", " ", "\n", "long words", "d", "e", "f", "-", "\U0001f600", "g", "h"] * 2
    a, b = ("".join(draw.choices(words[:kinds], k=draw.randrange(40))) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(show, "WINDOW", window)
        changes = show._changes(a, b)
    assert "".join(change.common + change.removed for change in changes) == a
    assert "".join(change.common + change.added for change in changes) == b
    assert all(change.removed or change.added for change in changes[:-1])
    assert all(re.search(r"\w", change.common) for change in changes[1:-1])
    assert (len(changes) == 1) == (a == b)


def test_ids(news):
    """An id twice is the next one. One with a backslash is that id, though an earlier one looks the same in a table."""
    found = json.loads(done(news, "show", "news.tsv", "a1", "a1", "--json"))
    assert (found["a"]["bytes"], found["b"]["bytes"]) == (len(A), len("another text with the id of the first"))
    (news / "old.tsv").write_text(f"a1\t{B}\n", "utf-8")
    found = json.loads(done(news, "show", "news.tsv", "a1", "a1", "--against", "old.tsv", "--json"))
    assert found["differences"] == [{"a": "nineteen", "b": "seventeen"}, {"a": "waits", "b": "sails"}]
    assert found["b"]["source"] == "old.tsv"
    rows = [{"id": "a\tb", "text": A}, {"id": "a\\tb", "text": B}, {"id": "c\nforged", "text": A}]
    for some, expected in ((rows, "a\\tb"), (rows[::2], "a\tb")):
        (news / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some), "utf-8")
        assert json.loads(done(news, "show", "in.jsonl", "a\\tb", "c\nforged", "--json"))["a"]["id"] == expected
    assert b"second      c\\nforged (in.jsonl)" in done(news, "show", "in.jsonl", "a\\tb", "c\nforged")
    (news / "txt" / "more").mkdir(parents=True)
    for name in ("1.txt", "more/2.txt"):
        (news / "txt" / name).write_text(A, "utf-8")
    lines = done(news, "show", "txt", "1.txt", "more/2.txt").decode().splitlines()
    assert lines[2:4] == [f"first       1.txt, {len(A)} bytes", f"second      more/2.txt (more), {len(A)} bytes"]


def test_long_texts_are_compared_in_a_bounded_number_of_windows(monkeypatch):
    """Equal windows are not counted; what follows the last window that is compared is one difference."""
    monkeypatch.setattr(show, "WINDOW", 10)
    monkeypatch.setattr(show, "MAX_WINDOWS", 3)
    same = "".join(f"same{i} " for i in range(500))
    changes = show._changes(same + "one " + same, same + "two " + same)
    assert [(one.removed, one.added) for one in changes] == [("one", "two"), ("", "")]
    first, second = ("".join(f"{name}{i} " for i in range(1000)) for name in "ab")
    (only, rest) = show._changes(first + "end", second + "end")
    assert (only.removed, only.added, rest.common) == (first + "end", second + "end", "")
