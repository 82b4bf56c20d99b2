"""The typed values of the options, without a run of a command, and the words of errors: parameters become options."""

import argparse
import copy
import json
import pickle

import pytest
from running import done
from running import lsh as run

import lsh
from lsh import files
from lsh.base.errors import Parameter, bad_type, bad_value, words_of
from lsh.engine.matching import Matching
from lsh.files import ReadOptions
from lsh.terminal import options
from lsh.terminal.console import Parser, worded
from lsh.terminal.options import RunOptions


def parsed(line: str = "") -> argparse.Namespace:
    parser = Parser(description="of a test")
    options.add_matching(parser)
    options.add_reading(parser)
    options.add_running(parser)
    namespace = parser.parse_args(line.split())
    namespace.preset = None
    return namespace


def test_defaults():
    namespace = parsed()
    hasher = lsh.MinHasher(128, scheme="fss", shingles=lsh.Shingles(8))
    matching = options.matching(namespace)
    assert matching == Matching()
    assert matching.for_documents(1) == Matching(0.8, bands=lsh.plan(0.8, 0.99, 128), hasher=hasher)
    assert options.reading(namespace) == ReadOptions(*[None] * 8, "error", "error", None)
    assert options.running(namespace) == RunOptions(None, None, None, False, False)


def test_values_that_are_given():
    namespace = parsed(
        "--threshold 0.5 --ngram 3 --unit word --lowercase --normalize NFKC --num-seeds 64 --bands 8x4 --verify none "
        "--field a.b --id-field key --no-header --delimiter ; --format csv.gz --encoding latin-1 --on-bad-line skip "
        "--missing empty --pattern *.md --num-threads 3 --max-memory 2MB -v"
    )
    hasher = lsh.MinHasher(64, scheme="fss", shingles=lsh.Shingles(3, "word", lowercase=True, normalize="NFKC"))
    bands = lsh.Bands(8, 4)
    assert options.matching(namespace) == Matching(0.5, bands=bands, hasher=hasher, verify=None, missing="empty")
    csv = files.Format("csv", "gz")
    expected = ReadOptions(csv, "a.b", "key", None, None, False, ";", "latin-1", "skip", "empty", "*.md")
    assert options.reading(namespace) == expected
    assert options.running(namespace) == RunOptions(3, 2_000_000, None, False, True)
    for name in ("lowercase", "strip_punctuation", "collapse_whitespace"):
        assert options.shingles(parsed(f"--{name.replace('_', '-')}")) == lsh.Shingles(8, **{name: True})


def test_bands_are_given_or_planned():
    assert options.matching(parsed("--bands 20x6")).bands == lsh.Bands(20, 6)
    planned = options.matching(parsed("--recall 0.9 --threshold 0.7")).plan
    assert planned == lsh.plan(0.7, 0.9)
    unfiltered = options.matching(parsed("--recall 0.9 --threshold 0.7 --verify none")).plan
    assert unfiltered.recall_at(0.7) == unfiltered.probability(0.7) >= 0.9  # banding may use all of the allowed loss
    assert unfiltered.probability(0.7) < planned.probability(0.7)


@pytest.mark.parametrize("more", [[], ["--screen"]])
def test_the_seed_of_an_index(tmp_path, more):
    made = run(tmp_path, "index", "create", "an.index", "--random-state", "7", *more)
    assert b"; --random-state 7\n" in made.stderr
    with lsh.Index.open(tmp_path / "an.index") as index:
        assert index.hasher.random_state == 7


def test_a_run_with_a_drawn_seed_can_be_repeated(tmp_path):
    (tmp_path / "in.txt").write_bytes(b"one text of some length\nanother text of some length\n" * 2)
    command = ["in.txt", "--threshold", "0.5", "--verify", "sketch"]
    dedup = ["dedup", *command, "--dry-run", "--removed", "removed.tsv", "--json", "-q", "--random-state"]
    state, other = (json.loads(done(tmp_path, *dedup, "random"))["random_state"] for _ in range(2))
    assert state != other
    removed = []
    for _ in range(2):
        assert json.loads(done(tmp_path, *dedup, str(other)))["random_state"] == other
        removed.append((tmp_path / "removed.tsv").read_bytes())
    assert removed[0] == removed[1]
    said = run(tmp_path, "pairs", *command, "-v", "--random-state", str(state)).stderr
    assert f"random_state={state}".encode() in said


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
@pytest.mark.parametrize("make", [bad_value, bad_type])
def test_an_error_knows_its_parameter(make, again):
    error = again(make(Parameter("recall", 0.5), "is too low; use " + Parameter("bands")))
    assert (str(error), error.parameter, error.reason) == (
        "recall=0.5 is too low; use bands",
        "recall",
        "is too low; use bands",
    )
    assert type(error) in (ValueError, TypeError)
    assert worded(words_of(error)) == "--recall 0.5 is too low; use --bands"
