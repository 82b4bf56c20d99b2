"""Every command refuses bad usage with one line that names the option or the file, before it writes anything.

Which values a parameter may have is tested where the parameter is; here, that each command checks each of its options
(a table made from the parsers), and the messages of the command itself. Errors in files are tested in tests/files.
"""

import argparse
import os
import re
import shlex
import sys

import pytest
from running import DOCUMENTS, OTHER, SAMPLE, STORY, done, process, refused

from lsh.command import main
from lsh.store.index import Index


@pytest.fixture(scope="module")
def news(tmp_path_factory):
    """A folder with files, folders and indexes, which refused commands leave as it is."""
    folder = tmp_path_factory.mktemp("news")
    files = {
        **dict.fromkeys(("news.txt", "part1.txt", "part2.txt", "news.xml", "news.gz", "txt"), DOCUMENTS),
        "old.txt": STORY + b"\n",
        "one.txt": STORY + b"\n",
        "new.tsv": b"a1\t" + STORY + b"\nb2\t" + OTHER + b"\n",
        "old.tsv": b"g\t" + STORY + b"\n",
        "in.csv": b"id;section;text\n1;news;" + STORY + b"\n",
        "in.jsonl": b'{"text": "a"}\n',
        "in.parquet": b"",
        "bad.jsonl": b'{"text": "x"}\n{"text"\n',
        "texts/a.md": STORY,
        "full/old.txt": b"yesterday\n",
        "folder/deep/3.tsv": b"d\t" + OTHER + b"\n",
    }
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "empty").mkdir()
    (folder / "link.txt").symlink_to("news.txt")
    os.link(folder / "news.txt", folder / "hard.txt")
    done(folder, "index", "create", "a.index", "-q")
    done(folder, "index", "create", "b.index", "--texts", "none", "-q")
    done(folder, "index", "create", "c.index", "--threshold", "0.7", "-q")
    done(folder, "index", "create", "s.index", "--screen", "--reject", "0.8", "-q")
    done(folder, "index", "add", "a.index", "new.tsv", "-q")
    return folder


BAD_VALUES = {  # such as the command refuses, or the library
    "--threshold": "0",
    "--recall": "nan",
    "--ngram": "2.5",
    "--num-seeds": "99999999999999999999",
    "--bands": "20",
    "--random-state": "-1",
    "--max-memory": "0",
    "--num-threads": "two",
    "--temp-dir": "",
    "--format": "xml",
    "--encoding": "nope",
    "--delimiter": "::",
    "--confidence": "0",
    "--documents": "1.5",
    "--bytes": "1.5",
    "--top": "0",
    "--min-similarity": "1.5",
    "--reject": "0",
    "--recommend": "0",
    "--period": "400000d",
    "--min-bytes": "7",
    "--min-shared": "0",
    "--max-share": "2",
    "--window": "0.5",
    "--item-delimiter": ";;",
}
FREE = {  # any text is a value: names of files, columns and documents
    *("--output", "--removed", "--removed-documents", "--clusters", "--rejects", "--report", "--source-field"),
    *("--field", "--id-field", "--keep-field", "--time-field", "--id-prefix", "--pattern", "--against", "--plot"),
    *("--against-index", "--sample", "--text", "--id", "--ids", "--before", "--older-than", "--spans", "--mark"),
    *("--hits", "--skipped", "--items", "--item-field", "--item-id-field", "--copies"),
}
DOORS = {
    "dedup": "news.txt -o out.txt",
    "passages": "news.txt --dry-run",
    "contained": "one.txt news.txt --dry-run",
    "pairs": "news.txt",
    "show": "new.tsv a1 b2",
    "compare": "news.txt one.txt",
    "plan": "--sample news.txt",
    "stats": "news.txt",
    "screen": "s.index new.tsv",
    "index create": "new.index --screen",
    "index add": "a.index new.tsv",
    "index query": "a.index new.tsv",
    "index dedup": "a.index",
    "index pairs": "a.index",
}


def actions(door: str) -> list[argparse.Action]:
    """The options of a command that have a value."""
    parser = main._parser()
    for word in door.split():
        (commands,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
        parser = commands.choices[word]
    return [one for one in parser._actions if one.option_strings and one.nargs != 0]


@pytest.mark.parametrize("door", DOORS)
def test_each_command_checks_each_of_its_options(news, door):
    """One bad value of each option. An option that is new must have bad values here, choices, or be free text."""
    arguments = shlex.split(DOORS[door])
    for action in actions(door):
        option = action.option_strings[-1]
        if option in FREE:
            continue
        bad = "nonsense" if action.choices is not None else BAD_VALUES[option]
        given = [one for one in arguments if one != "--screen" or option not in ("--threshold",)]
        message = refused(news, *door.split(), *given, f"{option}={bad}")
        assert re.search(rf"(?<!\S){option}(?![\w-])", message), (option, message)


# ---- the messages of the command ----

OVERLAP = "a file compared with itself loses everything"
MISUSE = [
    # usage
    ("dedup", "are required: INPUT; see lsh dedup --help"),
    ("nonsense", "invalid choice 'nonsense'; choose from dedup, pairs"),
    ("dedpu news.txt", "invalid choice 'dedpu'; did you mean dedup?"),
    ("dedup news.txt -o x --unit wrod", "argument --unit: invalid choice 'wrod'; did you mean word?"),
    ("dedup news.txt -o x --threshold 0,8", "expected a number, got '0,8'; write 0.8"),
    ("dedup news.txt -o x --max-memory -4GB", "--max-memory must be a number of bytes"),
    ("dedup news.txt -o x --max-memory 2 GB", "write a size without a space, such as 500GB"),
    ("dedup news.txt", "give -o OUTPUT, or --dry-run to write no documents, only tables such as --removed; see lsh de"),
    ("dedup news.txt --nonsense 1", "unrecognized option --nonsense; see lsh dedup --help"),
    ("dedup news.txt -o x --treshold=.9", "option --treshold; did you mean --threshold?"),
    ("compare news.txt news.txt b.txt", "unexpected argument 'b.txt'; quote patterns such as 'shards/*.tsv'"),
    ("plan b.txt", "unexpected argument 'b.txt'; name the files of a sample after --sample"),
    ("--nonsense", "unrecognized option --nonsense; see lsh --help"),
    ("index", "the following arguments are required: COMMAND; see lsh index --help"),
    ("index add a.index", "the following arguments are required: INPUT; see lsh index add --help"),
    ("index query a.index", "give one of INPUT, --text and --id; see lsh index query --help"),
    ("index remove a.index", "give an ID, or --ids FILE"),
    ("index expire a.index", "one of the arguments"),
    ("screen s.index new.tsv --store --check", "argument --check: not allowed with argument --store"),
    # options that name a parameter of the library
    ("dedup news.txt -o x --bands x", "--bands must look like 20x6 or 2x7+14x8 (bands x width), got 'x'"),
    ("dedup news.txt -o x --bands 20x6 --recall 0.9", "--recall cannot be combined with --bands"),
    ("dedup news.txt -o x --threshold 0.02", "possible: --num-seeds 239 or more, or --threshold 0.038 or more"),
    ("index query a.index --text x --min-similarity 0.1", "--min-similarity 0.1 has a recall of "),
    ("screen s.index new.tsv --reject 0.4", "--recommend 0.5 must be at most --reject 0.4; give both"),
    ("screen s.index --store --recommend 0.85", "--recommend 0.85 must be at most --reject 0.8; give both"),
    ("screen s.index new.tsv --recommend 0.1", "; use --recommend 0.5 or more, or create an index for --recommend"),
    # options that exclude or require each other
    ("dedup news.txt -o x --rejects r", "--rejects requires --on-bad-line skip"),
    ("dedup news.txt -o x --source-field s", "--source-field requires --report or --copies"),
    ("dedup news.txt -o x --measure containment --report r.html", "--report cannot be combined with --measure cont"),
    ("dedup news.txt -o x --measure containment --recall 0.9", "--recall cannot be combined with --measure cont"),
    ("dedup in.jsonl -o x --keep lowest", "--keep lowest requires --keep-field"),
    ("dedup in.jsonl -o x --keep last --keep-field when", "--keep last cannot be combined"),
    ("dedup in.jsonl -o x --keep-field then", "name the right one with --keep-field"),
    ("dedup news.txt -o x --keep-field when", "--keep-field is for .jsonl"),
    ("dedup news.txt -o - --json", "--json and OUTPUT both write to standard output; name a file as OUTPUT"),
    ("pairs news.txt old.txt news.txt", "two INPUTs can be compared, got 3; use --within"),
    ("plan --bytes 100", "--bytes requires --documents, or --sample"),
    ("plan --ngram 5", "--ngram requires --sample"),
    ("plan --sample one.txt", "two or more texts"),
    ("index create x.index --reject 0.9", "--reject requires --screen"),
    ("index create x.index --screen --threshold 0.9", "--threshold cannot be combined with --screen; use --reject and"),
    ("index expire a.index --older-than 9999999w", "--older-than must be 0s to 365,000d, got '9999999w'"),
    ("index expire a.index --before now", "got 'now'"),
    ("index query a.index --text x --header", "--header is for INPUT, and there is none; leave it out"),
    ("dedup new.tsv -o x --against-index a.index --against old.tsv", "cannot be combined with --against; add"),
    ("dedup new.tsv -o x --against-index a.index --ngram 5", "--ngram cannot be combined with --against-index, which"),
    ("dedup new.tsv -o x --against-index a.index --threshold 0.2", "--threshold 0.2 has a recall of 0.0"),
    ("dedup new.tsv -o x --preset nemo --lowercase", "--lowercase cannot be combined with --preset"),
    # --resume
    ("dedup news.txt --resume --dry-run", "--resume requires -o OUTPUT, beside which it keeps what was read"),
    ("dedup news.txt --resume -o -", "--resume requires OUTPUT to be a file or a folder of this computer, got -"),
    ("dedup news.txt --resume -o memory://kept.txt", "of this computer, got memory://kept.txt"),
    ("dedup news.txt --resume -o x.txt --against -", "--resume requires files that can be read again, got -"),
    ("dedup news.txt --resume -o x --measure containment", "--resume cannot be combined with --measure containment"),
    ("dedup './*.txt*' --resume -o x.txt", "./*.txt* would match x.txt.resume, where --resume keeps what was read; wr"),
    # options that would be ignored
    ("dedup news.txt -o x --pattern '*'", "--pattern chooses files of a folder, and no folder is read"),
    ("dedup news.txt -o x --delimiter ';'", "--delimiter is for .csv and .tsv, and this is .txt"),
    ("stats texts --header", "--header is for .csv and .tsv, and this is a folder of texts"),
    ("stats in.jsonl --field a --field b", "--field is given twice; for several columns use commas"),
    # files that are read
    ("stats ''", "the name of an input file is empty"),
    ("dedup absent.txt -o x", "absent.txt: No such file or directory"),
    ("compare news.txt absent", "absent: no such file; to compare two texts, use --texts"),
    ("compare news.txt .", "B must be a file, got the folder ."),
    ("dedup - -o x", "its format is unknown; give --format"),
    ("dedup - --against - -o x --format txt", "standard input can be read only once"),
    ("pairs - - --format txt", "standard input"),
    ("dedup news.xml -o x.txt", "the ending of its name must say its format: "),
    ("dedup news.gz -o x.txt", "rename it or give --format"),
    ("dedup news.txt new.tsv -o x.txt", "name files of one format"),
    ("dedup news.txt -o x --against news.txt", f"news.txt is INPUT and --against: {OVERLAP}"),
    ("show new.tsv a1 x9", "new.tsv: expected a document with the id 'x9', got none; ids are those of the id"),
    ("show new.tsv b2 b2", "expected another document with the id 'b2', got none"),
    ("show new.tsv a1 b2 --against old.tsv", "old.tsv: expected a document with the id 'b2'"),
    # files that are written
    ("dedup news.txt -o news.txt", "OUTPUT must not be INPUT (news.txt); write to another file"),
    ("dedup news.txt -o link.txt", "OUTPUT must not be INPUT"),
    ("dedup news.txt --against 'part*' -o x.txt --removed part1.txt", "--removed must not be --against (part1.txt)"),
    ("pairs news.txt old.txt -o old.txt", "OUTPUT must not be INPUT (old.txt)"),
    ("screen s.index new.tsv -o new.tsv", "-o: the output is lines of JSON, got the name new.tsv"),
    ("dedup news.txt -o old.txt --against old.txt", "OUTPUT must not be --against (old.txt)"),
    ("dedup news.txt -o x.txt --removed a.tsv --clusters a.tsv", "--clusters must not be --removed (a.tsv)"),
    ("dedup news.txt -o x.txt --removed folder/../x.txt", "--removed must not be OUTPUT"),
    ("dedup news.txt -o x.txt --removed hard.txt", "--removed must not be INPUT"),
    ("dedup news.txt -o x.txt --removed-documents x.txt", "--removed-documents must not be OUTPUT"),
    ("dedup news.txt -o news.txt/out.txt", "OUTPUT must be in a folder that exists"),
    ("dedup news.txt -o empty", "OUTPUT must be a file, got the folder empty"),
    ("dedup news.txt -o ''", "OUTPUT must name a file, got an empty name"),
    ("dedup news.txt -o x --removed empty", "--removed must be a file, got the folder empty"),
    ("pairs news.txt -o absent/out.tsv", "OUTPUT must be in a folder that exists, got absent/out.tsv; make it first"),
    ("dedup one.txt part1.txt -o full/", "OUTPUT must be a new or an empty folder, got full/; name another"),
    ("dedup one.txt part1.txt -o news.txt/", "OUTPUT must be a new or an empty folder, got news.txt/; name another"),
    ("dedup texts -o full", "OUTPUT must be a new or an empty folder, got full; name another"),
    ("dedup texts -o texts/out", "OUTPUT must not lie in INPUT (texts)"),
    ("dedup folder -o folder/out.tsv", "OUTPUT must not lie in INPUT (folder)"),
    ("dedup new.tsv --against folder -o folder/1.tsv", "OUTPUT must not lie in --against (folder)"),
    ("dedup - -o out/ --format txt", "OUTPUT must be a file where INPUT is standard input"),
    # names that say another format
    ("dedup news.txt -o x --report report.pdf", "--report is a page of HTML; its name must end in .html, got report"),
    ("dedup in.jsonl -o x.csv", "x.csv: the output has the format of the input, .jsonl; give it a name that ends in ."),
    ("dedup in.jsonl -o x.tar.gz", "x.tar.gz: no file is written as .tar.gz; give it a name that ends in .jsonl, .jso"),
    ("dedup in.parquet -o x.csv.gz", "x.csv.gz: the output has the format of the input, .parquet; give it a name that"),
    ("dedup in.parquet -o x.parquet.gz", "no file is written as .parquet.gz; give it a name that ends in .parquet"),
    ("dedup in.parquet -o x.gz", "x.gz: no file is written as .gz; give it a name that ends in .parquet"),
    ("dedup texts --dry-run -o out.md", "INPUT is a folder of texts, so OUTPUT is a new folder; write -o out/"),
    ("dedup folder -o out", "out: INPUT is a folder of files; write -o out/ for as many files, or -o out.tsv for one"),
    ("dedup new.tsv -o x.tsv --removed x.csv", "--removed: tables are tab-separated, got the name x.csv; give it a "),
    ("pairs new.tsv --json -o x.tsv", "-o: the pairs are lines of JSON, got the name x.tsv; give it a name that ends "),
    ("plan --plot x.gif", "--plot must be a file with the ending .svg or .png, got x.gif"),
    ("dedup news.txt -o x --mark", "--mark adds fields to records, and INPUT has none; use --removed"),
    # indexes
    ("index create a.index", "a.index; name another folder, or add to it with lsh index add"),
    ("index create news.txt", "news.txt is a file; name a new folder"),
    ("index create s3://bucket/a", "must be a folder on this machine"),
    ("index add '' new.tsv", "the name of the index is empty; name its folder"),
    ("index add a.index b.index", "b.index is an index, not a folder of documents; use lsh index merge, query"),
    ("index add a.index .", "INPUT must not lie in INDEX or hold it"),
    ("screen s.index s.index", "INPUT must not lie in INDEX or hold it"),
    ("index dedup a.index -o a.index/x", "OUTPUT must not lie in INDEX"),
    (
        "index add a.index - --format txt",
        "its documents have no ids; name their column with --id-field, or give --id-p",
    ),
    ("index add a.index in.jsonl", "no field 'id' among 'text'; name the right one with --id-field, or use --id-f"),
    ("index add a.index new.tsv --id-prefix x", "its documents have ids, and --id-prefix is for record numbers; leav"),
    ("index add a.index new.tsv --time-field hour", "--time-field is 'hour', and there is no header"),
    ("index add a.index in.csv --delimiter ';' --field text --time-field hour", "no column 'hour' among 'id', 'sectio"),
    ("index remove a.index a1 x0 x1 x2 x3 x4 x5", "6 ids not in the index: 'x0', 'x1', 'x2', 'x3', 'x4', ...; noth"),
    ("index query a.index --id nope", "no document of the index has the id 'nope'"),
    ("index list b.index --texts", "b.index stores no texts; leave --texts out"),
    ("index merge a.index c.index", "c.index: OTHER must have the same plan, got threshold 0.7, recall 0.99, bands"),
    ("index merge a.index ./a.index", "OTHER must not be INDEX"),
    ("index merge a.index d.index", "no index at d.index"),
    ("dedup new.tsv -o x --against-index none", "no index at none; create one with: lsh index create none"),
    ("dedup new.tsv -o x --against-index b.index", "b.index stores no texts to compare; give --verify sketch"),
    ("dedup new.tsv -o x --against-index b.index --verify sketch --report r.html", "and b.index stores none"),
    ("dedup new.tsv -o x --against-index a.index --removed a.index/removed.tsv", "must not lie in the index"),
    ("dedup a.index -o x --against-index a.index --format txt", "INPUT must not lie in"),
    # passages, and items
    ("passages news.txt", "give -o OUTPUT, or --dry-run"),
    ("passages in.jsonl -o x.jsonl --mark=", "without quotes, backslashes and control characters, got ''"),
    ("passages in.jsonl -o x.jsonl --mark 'a\"b'", "--mark must be the name of a field, without quotes"),
    ("passages news.txt -o x.txt --min-bytes 7", "--min-bytes must be 8 or more with --unit bytes, got 7"),
    ("passages news.txt -o x.txt --lowercase", "--lowercase requires --unit line or --unit paragraph"),
    ("passages news.txt -o x.txt --unit word", "invalid choice 'word'; choose from bytes, line, paragraph"),
    ("passages news.txt -o x.txt --mark cuts", "--mark adds a field to records, and INPUT has none; use --spans"),
    ("passages in.jsonl -o x.jsonl --field text,id", "--field must be one column"),
    ("contained", "the following arguments are required: ITEMS"),
    ("contained old.tsv", "the following arguments are required: INPUT; see lsh contained --help"),
    ("contained old.tsv in.jsonl", "give -o OUTPUT, or --dry-run to write no documents, only tables such as --hits"),
    ("contained old.tsv in.jsonl -o x --min-shared 5 --threshold 1", "--threshold: not allowed with argument --min"),
    ("contained old.tsv in.jsonl --dry-run --preset gpt3 --ngram 5", "--ngram cannot be combined with --preset"),
    ("contained old.tsv in.jsonl -o x.jsonl --cut --mark x", "--mark: not allowed with argument --cut"),
    ("contained old.tsv in.jsonl -o x.jsonl --mark text", "it has a field 'text', which --mark adds"),
    ("contained hard.txt news.txt -o x", "hard.txt is INPUT and ITEMS: each item would be found in its own text; name"),
    ("contained old.tsv --items in.jsonl in.jsonl --dry-run", "in.jsonl is INPUT and --items: "),
    ("contained old.tsv --items old.tsv in.jsonl -o x", "old.tsv is given twice: its items would be counted twice; na"),
    ("contained old.tsv in.jsonl -o old.tsv", "OUTPUT must not be ITEMS (old.tsv)"),
    ("contained old.tsv in.jsonl -o x.jsonl --hits h.csv", "--hits: tables are tab-separated, got the name h.csv"),
    ("contained in.jsonl old.tsv -o x --item-field nope", "'nope' among 'text'; name the text's field with --item-"),
    ("contained old.tsv in.jsonl -o x --item-field nope", "old.tsv: --item-field is 'nope', and there is no header"),
    ("contained one.txt in.jsonl -o x --item-field nope", "--item-field is for .jsonl, .csv, .tsv, .parquet and .a"),
    ("contained one.txt in.jsonl --dry-run --items absent.txt", "absent.txt: No such file"),
    ("contained bad.jsonl in.jsonl --dry-run", "bad.jsonl, line 2: "),
]


@pytest.mark.parametrize(("line", "message"), MISUSE, ids=[line for line, _ in MISUSE])
def test_misuse(news, line, message):
    if line.startswith("dedup in.parquet"):
        pytest.importorskip("pyarrow", reason="pyarrow is not installed; the extra `test` has it")
    assert message in refused(news, *shlex.split(line), stdin=DOCUMENTS)


@pytest.mark.parametrize(
    "action", ["add", "query", "dedup", "pairs", "list", "remove", "expire", "info", "verify", "compact", "merge"]
)
def test_an_index_must_exist(news, action):
    more = {"add": [SAMPLE], "query": [SAMPLE], "remove": ["a"], "expire": ["--before", "0"], "merge": ["b"]}
    message = refused(news, "index", action, "x.index", *more.get(action, []))
    assert message.endswith("no index at x.index; create one with: lsh index create x.index")
    message = refused(news, "index", action, "empty", *more.get(action, []))
    assert message.endswith("empty is not an index; name the folder of one")


def test_another_writer_is_named(news, monkeypatch):
    with Index.open(news / "a.index", "a"):
        monkeypatch.setattr("lsh.segments.disk.socket.gethostname", lambda: "another machine")
        for more in (["add", "a.index", SAMPLE], ["remove", "a.index", "a1"], ["compact", "a.index"]):
            message = refused(news, "index", *more)
            assert f"another writer has the index {news / 'a.index'} open: process {os.getpid()} on " in message
            assert message.endswith("); run this again when it has ended")
        assert done(news, "index", "query", "a.index", "--id", "a1")


def test_the_name_of_a_file_stays_as_it_is(news):
    for path in ("n must be.txt", "max_memory.txt", "threshold=0.5.txt", "recall must be/num_seeds"):
        assert path in refused(news, "dedup", path, "-o", "out.txt", "--format", "txt")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs /dev/stdin")
@pytest.mark.parametrize(
    ("arguments", "shell", "problem"),
    [
        ("news.txt -o -", ">>news.txt", "standard output must not be INPUT (news.txt)"),
        ("- /dev/stdin -o out.txt --format txt", "", "a pipe can be read only once"),
        ("news.txt -o - --removed /dev/stdout", "", "--removed must not be OUTPUT"),
        ("news.txt -o /dev/stdout --removed -", "", "--removed must not be OUTPUT"),
        ("news.txt -o - --removed /dev/null", ">/dev/null", ""),
        ("news.txt -o out.txt", ">>news.txt", ""),
        ("- -o out.txt --format txt", "0>other", "standard input: Bad file descriptor"),
    ],
)
def test_standard_streams_by_two_names(tmp_path, arguments, shell, problem):
    """Nothing is read, written or appended to where a stream is a file of the run, or is there twice."""
    (tmp_path / "news.txt").write_bytes(DOCUMENTS)
    result = process(tmp_path, "dedup", *arguments.split(), "-q", stdin=DOCUMENTS, shell=shell)
    assert (result.returncode, result.stdout) == (2 if problem else 0, b"")
    assert problem in result.stderr.decode()
    assert (tmp_path / "news.txt").read_bytes() == DOCUMENTS
