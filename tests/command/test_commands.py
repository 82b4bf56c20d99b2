"""The commands other than `lsh dedup`: pairs, compare, plan, stats, version.

Expected results come from reference.py, or are computed here. Where a command only prints the
result of a function, they come from that function. Behaviour that all commands share is in test_main.py.
"""

import bz2
import gzip
import json
import sys
from collections import Counter

import numpy as np
import pytest
import reference
from reading import write_records
from running import SAMPLE, done, lsh, process, refused, rows, sample

import lsh as package

A = b"the old observatory dome turns once more after nineteen years"
B = b"bakers walked out on wednesday and the shelves stayed empty"
NEAR = A.replace(b"nineteen", b"seventeen")


@pytest.mark.parametrize("run", [lsh, pytest.param(process, marks=pytest.mark.slow)])
def test_version(tmp_path, run):
    expected = {
        "lsh-dedup": package.__version__,
        "level": package.simd_level() if run is lsh else "baseline",
        "numpy": np.__version__,
        "python": sys.version.split()[0],
    }
    more = {} if run is lsh else {"env": {"LSH_SIMD": "baseline"}}
    found = json.loads(done(tmp_path, "version", "--json", run=run, **more))
    assert expected.items() <= found.items()
    assert found["system"].startswith(sys.platform)
    printed = done(tmp_path, "version", run=run, **more).decode()
    assert dict(line.split(maxsplit=1) for line in printed.splitlines()) == found


def test_pairs_between_two_files(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"a1\t" + A + b"\na2\t" + A + b"\na3\t" + B + b"\n")
    (tmp_path / "b.tsv").write_bytes(b"b1\t" + B + b"\nb2\t" + B + b"\nb3\t" + NEAR + b"\n")
    similarity = repr(reference.jaccard(A, NEAR, 8, "char")).encode()
    expected = [[b"a1", b"b3", similarity], [b"a2", b"b3", similarity], [b"a3", b"b1", b"1.0"], [b"a3", b"b2", b"1.0"]]
    assert rows(done(tmp_path, "pairs", "a.tsv", "b.tsv", "--threshold", "0.5")) == expected
    options = ["--num-threads", "1", "--max-memory", "2MB", "-o", "pairs.tsv.gz"]
    assert done(tmp_path, "pairs", "a.tsv", "b.tsv", "--threshold", "0.5", *options) == b""
    assert rows(gzip.decompress((tmp_path / "pairs.tsv.gz").read_bytes())) == expected
    stdin = (tmp_path / "a.tsv").read_bytes()
    assert done(tmp_path, "pairs", "-", "--format", "tsv", stdin=stdin) == b"a1\ta2\t1.0\n"
    for data in (b"", A + b"\n\n\n"):
        (tmp_path / "in.txt").write_bytes(data)
        assert done(tmp_path, "pairs", "in.txt") == b""
        assert done(tmp_path, "pairs", "in.txt", "-o", "out.tsv") == b""
        assert (tmp_path / "out.tsv").read_bytes() == b""


def test_ids_of_pairs(tmp_path):
    """Cells of a table; in lines of JSON, bytes that are no UTF-8 are lone surrogates, as in names of files."""
    (tmp_path / "in.jsonl").write_bytes(b'{"id": "a\\tb", "text": "%s"}\n{"id": "c\\nd\\r", "text": "%s"}\n' % (A, A))
    assert done(tmp_path, "pairs", "in.jsonl") == rb"a\tb" + b"\t" + rb"c\nd\r" + b"\t1.0\n"
    (tmp_path / "in.tsv").write_bytes(b"x\xff\t" + A + b"\ntab \\t\t" + A + b"\ny\t" + B + b"\n")
    lines = done(tmp_path, "pairs", "in.tsv", "--json").splitlines()
    assert [json.loads(line) for line in lines] == [{"a": "x\udcff", "b": "tab \\t", "similarity": 1.0}]


def test_compare_files(tmp_path):
    a, b = A + b"\n\xff\xfe", NEAR + b"\n\xff"
    (tmp_path / "a").write_bytes(a)
    (tmp_path / "b").write_bytes(b)
    options = ["--ngram", 5, "--unit", "byte", "--num-seeds", 400, "--confidence", 0.5]
    found = json.loads(done(tmp_path, "compare", "a", "b", *options, "--json"))
    hasher = package.MinHasher(400, scheme="fss", shingles=package.Shingles(5, "byte"))
    assert found["similarity"] == reference.jaccard(a, b, 5, "byte")
    assert found["estimate"] == hasher.jaccard(a, b)
    assert found["interval"] == pytest.approx(reference.wilson(round(found["estimate"] * 400), 400, 0.5))
    assert (found["confidence"], found["num_seeds"]) == (0.5, 400)
    assert package.Shingles.from_dict(found["shingles"]) == hasher.shingles
    for arguments, stdin in ((["a", "-"], b), (["-", "b"], a)):
        assert done(tmp_path, "compare", *arguments, *options, stdin=stdin).decode() == (
            f"exact     {found['similarity']:.6f}\n"
            f"estimate  {found['estimate']:.6f}, from 400 components\n"
            f"interval  {found['interval'][0]:.6f} to {found['interval'][1]:.6f}, at confidence 0.5\n"
        )


@pytest.mark.parametrize("run", [lsh, pytest.param(process, marks=pytest.mark.slow)])
def test_compare_texts(tmp_path, run):
    a, b = "駅から徒歩五分です", "駅から徒歩三分です"
    more = {} if run is lsh else {"env": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}}
    found = json.loads(done(tmp_path, "compare", "--texts", a, b, "--ngram", 2, "--json", run=run, **more))
    assert found["similarity"] == reference.jaccard(a, b, 2, "char")


def test_compare_unpacks(tmp_path):
    """Files are unpacked by the ending of the name, as in other commands; the error for a corrupt file names it."""
    packed = gzip.compress(NEAR)
    files = {
        "a.txt": A,
        "b.txt": NEAR,
        "b.txt.gz": packed,
        "b.BZ2": bz2.compress(NEAR),
        "c.gz": packed[:-3],
        "c": packed,
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    same = {done(tmp_path, "compare", "a.txt", name, "--json") for name in ("b.txt", "b.txt.gz", "b.BZ2")}
    assert len(same) == 1
    assert "c.gz: " in refused(tmp_path, "compare", "a.txt", "c.gz")
    assert "c: it is compressed by gzip; unpack it or name it *.gz" in refused(tmp_path, "compare", "a.txt", "c")


def test_plan_for_machines(tmp_path):
    found = json.loads(done(tmp_path, "plan", "--threshold", "0.7", "--recall", "0.9", "--num-seeds", "64", "--json"))
    planned = package.plan(0.7, 0.9, 64)
    bands = planned.bands
    expected = {"threshold": 0.7, "recall": 0.9, "num_seeds": 64, "num_components": bands.num_components}
    expected |= dict.fromkeys(("background", "false_candidates", "documents"))
    expected["found"] = {f"{s:.1f}": bands.probability(s) for s in np.arange(3, 11) / 10}
    expected["found_at_threshold"] = bands.probability(0.7)
    expected["verified_at_threshold"] = planned.recall_at(0.7)
    expected["key_bytes"] = 8 * bands.num_bands
    assert expected.items() <= found.items()
    assert package.Bands.from_string(found["bands"]) == bands
    assert bands.probability(found["half_found_at"]) == pytest.approx(0.5)
    assert bands.probability(found["most_found_at"]) == pytest.approx(0.95)


def test_plan_for_a_corpus(tmp_path):
    """The shingles say how similar the pairs of the sample are, and so how many candidates are false."""
    texts = [text for _, text in sample()]
    shares = set()
    for n, unit, documents in [(8, "char", 10**6), (2, "byte", 200), (1, "word", 200)]:
        options = ["--sample", SAMPLE, "--ngram", n, "--unit", unit, "--documents", documents]
        expected = package.plan(shingles=package.Shingles(n, unit), background=texts, documents=documents)
        own = "" if documents == 200 else f"lsh dedup uses these bands with --num-seeds {expected.num_seeds}\n"
        assert done(tmp_path, "plan", *options).decode().startswith(f"{expected}\n{own}four times as many ")
        shares.add(json.loads(done(tmp_path, "plan", *options, "--json"))["false_candidates"])
    assert len(shares) == 3


def test_plan_for_a_size(tmp_path):
    """It is the one that `deduplicate` has for so many documents."""
    assert (larger := package.plan(0.6, documents=10**6)).num_seeds == 256
    printed = done(tmp_path, "plan", "--threshold", "0.6", "--documents", "250e3").decode()
    assert printed.endswith(f"\nfour times as many documents need 256 seeds: {larger.bands.to_string()}\n")
    printed = done(tmp_path, "plan", "--threshold", "0.6", "--documents", "250e3", "--num-seeds", "64").decode()
    assert "four times" not in printed  # the seeds that are given stay


def test_plan_prints_what_a_run_costs(tmp_path):
    """Also for more documents than one run can have: a plan is for Spark, too, as docs/scale.md has it printed."""
    cost = package.plan(documents=5_000_000_000).cost(text_bytes=1200)
    assert cost.max_memory is None
    found = json.loads(done(tmp_path, "plan", "--documents", "5e9", "--bytes", "1200", "--json"))
    assert found["cost"] == cost.to_dict()
    texts = [text for _, text in sample()]
    planned = package.plan(background=texts, documents=10**6)
    cost = planned.cost(text_bytes=round(sum(map(len, texts)) / len(texts)))
    assert done(tmp_path, "plan", "--sample", SAMPLE, "--documents", "1e6").decode().endswith(f"\n\n{cost}\n")


def test_plan_for_a_large_corpus(tmp_path):
    """A large corpus is sampled: the same texts in each run, from all parts of it."""
    alike = A + b" in the year of the comet, as the almanac said"
    lines = [alike + b" %d\n" % i for i in range(9000)]
    lines[:4500] = [b"%d and nothing else that the others have, %d\n" % (i**3, i) for i in range(4500)]
    (tmp_path / "in.txt").write_bytes(b"".join(lines))
    arguments = ["plan", "--sample", "in.txt", "--threshold", "0.99", "--json"]
    printed = done(tmp_path, *arguments)
    assert done(tmp_path, *arguments) == printed
    found = json.loads(printed)
    assert found["documents"] == 9000
    planned = package.plan(0.99, background=[line[:-1] for line in lines])  # samples other texts
    assert found["false_candidates"] == pytest.approx(planned.false_candidates, rel=0.2)


def spread(numbers: list[int]) -> dict[str, float]:
    """Mean and quartiles: the least number that so large a part does not exceed."""
    ordered = sorted(numbers)
    places = [max(-(-len(ordered) * quarter // 4) - 1, 0) for quarter in range(5)]
    names = ["min", "q25", "median", "q75", "max"]
    return {"mean": sum(ordered) / len(ordered), **{n: ordered[place] for n, place in zip(names, places, strict=True)}}


def test_stats(tmp_path):
    texts = [text for _, text in sample()]
    for n, unit in ((8, "char"), (2, "word")):
        found = json.loads(done(tmp_path, "stats", SAMPLE, "--json", "--ngram", n, "--unit", unit))
        assert found == {
            "documents": 200,
            "bytes": sum(map(len, texts)),
            "lengths": pytest.approx(spread([len(text) for text in texts])),
            "shingles": pytest.approx(spread([len(set(reference.shingles(text, n, unit))) for text in texts])),
            "shingled": 200,
            "exact_duplicates": 200 - len(set(texts)),
            **dict.fromkeys(("without_shingles", "empty", "missing", "skipped", "hidden"), 0),
        }
        assert found["exact_duplicates"] > 0


def test_stats_of_odd_texts(tmp_path):
    """Equal shingle sets are no exact duplicates; empty texts are, missing ones are not."""
    texts = ["abababab", "ababababab", "abababab", "", "", None, "...", "...", "...!", "é", "e\u0301", "", None, "é"]
    write_records(tmp_path / "in.jsonl", [*({"text": text} for text in texts), {"id": 7}])
    found = json.loads(done(tmp_path, "stats", "in.jsonl", "--json", "--ngram", 2, "--unit", "word"))
    present = [text for text in texts if text is not None]
    expected = {"documents": 15, "missing": 3, "empty": 3, "without_shingles": 6, "shingled": len(present)}
    expected["exact_duplicates"] = sum(number - 1 for number in Counter(present).values())
    expected["bytes"] = sum(len(text.encode()) for text in present)
    assert expected.items() <= found.items()
    (tmp_path / "in.txt").write_bytes(b"")
    found = json.loads(done(tmp_path, "stats", "in.txt", "--json"))
    assert found["lengths"] is found["shingles"] is None
    assert found["documents"] == found["exact_duplicates"] == 0
    assert "documents" in done(tmp_path, "stats", "in.txt").decode()


def test_stats_count_the_shingles_of_some_of_many(tmp_path):
    """All texts without shingles are counted, not only those of the sample."""
    lines = [b"x" * (i % 100 + 8) + b"\n" if i < 12_000 else b"a text with more shingles\n" for i in range(24_000)]
    lines += [b"y" * 100_001 + b"\n", *[b"...!\n"] * 3000, b"\n"]
    (tmp_path / "in.txt").write_bytes(b"".join(lines))
    found = json.loads(done(tmp_path, "stats", "in.txt", "--json"))
    assert found["documents"] == 27_002
    assert found["lengths"]["max"] == 100_001
    assert (found["shingled"], found["without_shingles"]) == (10_000, 1)
    assert (found["shingles"]["min"], found["shingles"]["max"]) == (1, 18)
    assert found["shingles"]["mean"] == pytest.approx((12_000 + 18 * 12_000 + 3000) / 27_000, abs=0.01)
    by_word = json.loads(done(tmp_path, "stats", "in.txt", "--unit", "word", "--json"))
    assert by_word["without_shingles"] == 3001
