"""The options that several commands share: they are added to a parser and turned into typed values.

A command calls `reading`, `matching` or `running` once and works with the values that these return; no other code sees
the `argparse.Namespace`. The library checks values; `console` puts the names of options into its messages.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, get_args

import lsh
from lsh import files
from lsh._minhash import NORMALISATIONS
from lsh.base import checks, threads
from lsh.base.budget import memory_size, temporary_folder
from lsh.base.wording import counted
from lsh.engine.matching import MIN_INDEX_RECALL, Matching
from lsh.files import ReadOptions
from lsh.passages.contained import WORDS
from lsh.sketch.planning import DEFAULT_RECALL, DEFAULT_SEEDS, DEFAULT_THRESHOLD, chosen_hasher
from lsh.text.shingling import NORMAL_FORMS, UNITS
from lsh.typing import Keep, Missing, PresetName

if TYPE_CHECKING:  # other commands do not need it
    from lsh.store.index import Index

MISSING = get_args(Missing)
PRESETS = get_args(PresetName)
CHARACTERS = 8  # of a shingle, or bytes, where no length is given and its unit is not the word


def whole(text: str) -> int:
    """Parse a whole number: ``1000000``, ``1_000_000`` or ``1e6``."""
    with suppress(ValueError):
        return int(text)
    with suppress(ValueError):
        number = float(text)
        if number.is_integer():
            return int(number)
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}")
    raise argparse.ArgumentTypeError(f"expected a whole number in digits, such as 12 or 3e6, got {text!r}")


def seed(text: str) -> int:
    """Parse the seed of --random-state: a whole number, or the word ``random`` for a drawn one."""
    return int.from_bytes(os.urandom(4), "big") if text == "random" else whole(text)


SHARED_OPTIONS: dict[str, dict[str, Any]] = {  # that `add` adds to a parser
    "--num-threads": {
        "type": whole,
        "metavar": "N",
        "help": "number of threads (default: all cores that the process may use)",
    },
    "--threshold": {"type": float, "help": "minimum similarity of near duplicates (default 0.8)"},
    "--ngram": {"type": whole, "help": "length of a shingle in units (default 8)"},
    "--unit": {"choices": UNITS, "help": "unit of --ngram (default char)"},
    "--normalize": {"choices": NORMAL_FORMS, "help": "convert texts to a Unicode normal form"},
    "--lowercase": {"action": "store_true", "default": None, "help": "ignore case"},
    "--strip-punctuation": {"action": "store_true", "default": None, "help": "ignore punctuation"},
    "--collapse-whitespace": {
        "action": "store_true",
        "default": None,
        "help": "count each run of white space as one space",
    },
    "--num-seeds": {
        "type": whole,
        "help": f"number of components of a fingerprint (default {DEFAULT_SEEDS}, more for very many documents)",
    },
    "--random-state": {
        "type": seed,
        "metavar": "N",
        "help": "seed of the fingerprints, or the word random for a drawn one: a secret one protects against texts "
        "made to collide (default 0)",
    },
    "--recall": {
        "type": float,
        "help": f"minimum probability that a pair at the threshold is found (default {DEFAULT_RECALL})",
    },
    "--bands": {"help": "bands x width, such as 20x6 or 2x7+14x8, instead of --recall"},
    "--json": {"action": "store_true", "help": "write one JSON object"},
}
READING = [value.name for value in fields(ReadOptions) if value.name not in ("null_ids", "added")]  # options

# Options of `shingles`, with the parameters of `lsh.Shingles`.
SHINGLE_OPTIONS = {"ngram": "n", **{name: name for name in ("unit", *NORMALISATIONS, "normalize")}}

FORMATS_AND_FIELDS = """\
formats (the ending of INPUT, or --format; lines of text also with .gz, .bz2, .xz or .zst):
  .jsonl    and .ndjson, and .json.gz: one JSON object per line; dots in --field lead into nested objects
  .csv      a header, unless --no-header; records as in RFC 4180
  .tsv      no header, unless --header: one column is the text; with more, the first is the id and the second the text
  .txt      one document per line
  .parquet  and .pq, .arrow, .feather: a row per document (extra io)
A folder of data files is read as these files. In a folder of texts (.txt, .md, .html, ...), and with --format files,
each file is a document, and its path within the folder is the id. Hidden files are not read, but counted.
With names of columns, the text is the column text, content or body, or the only one beside the id, unless --field names
it; the id is the column id, unless --id-field names it."""
FORMATS = f"{FORMATS_AND_FIELDS} Without an id the number of the record is the id.\n"


@dataclass(frozen=True)
class RunOptions:
    """Threads, memory and messages: values that do not change the result."""

    num_threads: int | None
    max_memory: int | None
    temp_dir: str | None
    quiet: bool
    verbose: bool

    def limits(self) -> dict[str, Any]:
        """Return the parameters of `lsh.deduplicate` among them."""
        return {"max_memory": self.max_memory, "temp_dir": self.temp_dir, "num_threads": self.num_threads}


# ---- adding options to a parser ----


class Once(argparse.Action):
    """Stores the value of an option that may be given once only."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Store the value."""
        if getattr(namespace, self.dest) is not None:
            several = "; for several columns use commas: --field title,text" if option == "--field" else ""
            raise argparse.ArgumentError(None, f"{option} is given twice{several}")
        setattr(namespace, self.dest, values)


def add(parser: argparse._ActionsContainer, *names: str) -> None:
    """Add shared options by name."""
    for name in names:
        parser.add_argument(name, **SHARED_OPTIONS[name])


def add_shingles(parser: argparse._ActionsContainer) -> None:
    """Add the options of `shingles`."""
    add(parser, "--ngram", "--unit", "--normalize", "--lowercase", "--strip-punctuation", "--collapse-whitespace")


def add_words(parser: argparse._ActionsContainer) -> None:
    """Add the options of `shingles_or` for three words in lower case without punctuation."""
    parser.add_argument("--ngram", type=whole, help="length of a shingle in units (default 3, of char and byte 8)")
    parser.add_argument("--unit", choices=UNITS, help="unit of --ngram (default word)")
    add(parser, "--normalize", "--collapse-whitespace")
    for name, ignored in (("--lowercase", "case"), ("--strip-punctuation", "punctuation")):
        parser.add_argument(name, action=argparse.BooleanOptionalAction, help=f"ignore {ignored} (default: yes)")


def add_input(parser: argparse.ArgumentParser, nargs: str = "+") -> argparse.Action:
    """Add the argument of the files that a command reads; `nargs` is ``"*"`` if it may be left out."""
    described = "files of documents of one format, or a folder; - for standard input"
    return parser.add_argument("input", metavar="INPUT", nargs=nargs, help=described)


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the option of the one file that a command writes."""
    parser.add_argument(
        "-o", "--output", metavar="OUTPUT", default=files.STANDARD, help="the file to write (default: standard output)"
    )


def add_reading(parser: argparse.ArgumentParser, missing: str = "error", *, several: bool = True) -> None:
    """Add the options of `reading`; `missing` is the default of ``--missing``, `several` allows several texts."""
    group = parser.add_argument_group("reading")
    more = "; several as title,text" if several else ""
    group.add_argument("--field", action=Once, help=f"column of the text, by name or number{more}")
    group.add_argument(
        "--id-field", action=Once, metavar="FIELD", help="column of the id, or none for record numbers as ids"
    )
    named = group.add_mutually_exclusive_group()
    named.add_argument("--header", action="store_true", default=None, help="the first line of a .tsv names the columns")
    named.add_argument(
        "--no-header", dest="header", action="store_false", default=None, help="the first line of a .csv is data"
    )
    group.add_argument(
        "--delimiter", action=Once, help="character between the columns of a .csv or .tsv, such as ';' or tab"
    )
    group.add_argument(
        "--format",
        action=Once,
        help="such as jsonl, csv.zst or parquet (default: by the file's name), or files for a folder of texts",
    )
    group.add_argument("--encoding", action=Once, help="encoding of text files (default utf-8)")
    group.add_argument(
        "--pattern", action=Once, help="files of a folder to read, such as '*.txt'; '.*' for hidden files"
    )
    group.add_argument(
        "--on-bad-line",
        choices=("error", "skip"),
        default="error",
        help="what to do with a malformed line: error or skip (default error)",
    )
    group.add_argument(
        "--missing",
        choices=MISSING,
        default=missing,
        help=f"what to do when a record has no text: error or treat as empty (default {missing})",
    )
    parser.set_defaults(source_field=None, keep_field=None)  # options of lsh dedup


def add_matching(parser: argparse.ArgumentParser) -> None:
    """Add the options of `matching`, except those that only `lsh dedup` has: ``--preset`` and ``--clusters-mode``."""
    group = parser.add_argument_group("near duplicates")
    add(group, "--threshold", "--num-seeds", "--random-state", "--recall", "--bands")
    group.add_argument(
        "--verify",
        choices=("exact", "sketch", "none"),
        help="how candidate pairs are verified: by their exact similarity, by its estimate from fingerprints, or not "
        "at all (default exact)",
    )
    add_shingles(parser.add_argument_group("shingles"))
    parser.set_defaults(preset=None, clusters_mode=None)


def add_running(parser: argparse.ArgumentParser, *, max_memory: bool = True) -> argparse._ArgumentGroup:
    """Add the options of `running`, and return their group.

    A command that holds no data of the documents has no ``--max-memory``.
    """
    group = parser.add_argument_group("running")
    add(group, "--num-threads")
    parser.set_defaults(max_memory=None)
    if max_memory:
        group.add_argument(
            "--max-memory",
            metavar="SIZE",
            help="memory for the data of the documents, such as 2GB; data beyond it goes to temporary files. At least "
            "24 bytes a document (up to 40 with --keep longest or --keep-field); the process needs up to 120 MB "
            "beside it, and more for Parquet and URLs",
        )
    group.add_argument(
        "--temp-dir", metavar="FOLDER", help="folder for temporary files (default: TMPDIR, or that of the system)"
    )
    loudness = group.add_mutually_exclusive_group()
    loudness.add_argument("-q", "--quiet", action="store_true", help="print errors only")
    loudness.add_argument(
        "-v", "--verbose", action="store_true", help="also print parameters, counts, times, and progress in logs"
    )
    return group


# ---- typed values ----


def reading(namespace: argparse.Namespace) -> ReadOptions:
    """Return how documents are read."""
    values = {name: getattr(namespace, name) for name in READING}
    if namespace.format is not None:
        values["format"] = files.Format.from_string(namespace.format)
        if values["format"] is None:
            known = f"{files.KNOWN}, or files (each file of a folder is a document)"
            raise ValueError(f"--format must be one of {known}, got {namespace.format!r}")
    return ReadOptions(**values)


def reading_given(namespace: argparse.Namespace) -> list[str]:
    """Return the names of the options of `reading` that differ from their defaults."""
    given = [name for name in READING if getattr(namespace, name) != namespace.parser.get_default(name)]
    return [typed("no_header" if name == "header" and not namespace.header else name) for name in given]


def typed(name: str) -> str:
    """Return an option as it is typed, by its name among the values."""
    return f"--{name.replace('_', '-')}"


def refuse(namespace: argparse.Namespace, names: Iterable[str], problem: str) -> None:
    """Raise ValueError if one of some options is given; in the message, ``{0}`` stands for the option."""
    for name in names:
        if getattr(namespace, name) is not None:
            raise ValueError(problem.format(typed(name)))


def threshold(namespace: argparse.Namespace) -> float:
    """Return the threshold."""
    given = namespace.threshold
    return checks.fraction("threshold", DEFAULT_THRESHOLD if given is None else given, zero=False)


def bands(namespace: argparse.Namespace) -> lsh.Bands | None:
    """Return the bands, ``None`` if they are to be planned."""
    if namespace.bands is None:
        return None
    refuse(namespace, ["recall"], "{0} cannot be combined with --bands")
    return lsh.Bands.from_string(namespace.bands)


def shingles(namespace: argparse.Namespace) -> lsh.Shingles:
    """Return the shingles."""
    return shingles_or(namespace, lsh.Shingles(CHARACTERS))


def shingles_or(namespace: argparse.Namespace, default: lsh.Shingles) -> lsh.Shingles:
    """Return shingles with the values that are given, and else those of others."""
    given = {own: getattr(namespace, name) for name, own in SHINGLE_OPTIONS.items()}
    return lsh.Shingles(**{**default.to_dict(), **{name: value for name, value in given.items() if value is not None}})


def shingles_of_items(namespace: argparse.Namespace) -> lsh.Shingles:
    """Return the shingles of items that are looked for within texts: words by default."""
    if namespace.unit in (None, WORDS.unit):
        return shingles_or(namespace, WORDS)
    return shingles_or(namespace, lsh.Shingles(**{**WORDS.to_dict(), "n": CHARACTERS}))


def hasher(namespace: argparse.Namespace) -> lsh.MinHasher:
    """Return the hasher."""
    return chosen_hasher(None, shingles(namespace), namespace.num_seeds, namespace.random_state or 0, None)


def matching(namespace: argparse.Namespace, keep: Keep = "first") -> Matching:
    """Return which documents are near duplicates, from the options or a preset.

    Raises
    ------
    ValueError
        If a value is bad; nothing has been read by then.
    """
    if namespace.preset is not None:
        shingling = ("ngram", "unit", "normalize", *NORMALISATIONS)
        others = ("num_seeds", "random_state", "verify", "clusters_mode", "bands")
        refuse(namespace, ("threshold", "recall", *shingling, *others), "{0} cannot be combined with --preset")
        from lsh.sketch import presets  # slow to import

        return Matching(**presets.preset(namespace.preset).options(), keep=keep, missing=namespace.missing)
    return Matching(
        namespace.threshold,
        recall=namespace.recall,
        bands=bands(namespace),
        shingles=shingles(namespace),
        num_seeds=namespace.num_seeds,
        random_state=namespace.random_state or 0,
        **_deciding(namespace, keep),
    )


def matching_of_index(namespace: argparse.Namespace, index: Index, name: str, keep: Keep = "first") -> Matching:
    """Return which documents are near duplicates where an index has the hasher and the plan; `name` is its place.

    Raises
    ------
    ValueError
        If an option that the index decides is given, or its documents cannot be compared so.
    """
    own = ("preset", "bands", "recall", "num_seeds", "random_state", *SHINGLE_OPTIONS)
    refuse(namespace, own, "{0} cannot be combined with --against-index, which has its own; leave {0} out")
    min_similarity = index.threshold if namespace.threshold is None else threshold(namespace)
    deciding = _deciding(namespace, keep)
    check_comparison(index, name, min_similarity, deciding["verify"])
    return Matching.of_index("against", index._snapshot(), min_similarity, **deciding)


def check_comparison(index: Index, name: str, threshold: float, verify: str | None) -> None:
    """Check that the documents of an index can be compared: from this similarity, and by their texts for "exact"."""
    recall = index._recalls(threshold, verify)[0]
    if recall < MIN_INDEX_RECALL:
        raise ValueError(
            f"--threshold {threshold:g} has a recall of {recall:.2g} with the bands of {name}, which "
            f"are for {index.threshold:g}; create an index with --threshold {threshold:g}"
        )
    if verify == "exact" and not index.info()["texts"]:
        raise ValueError(
            f"{name} stores no texts to compare; give --verify sketch to compare estimates, or create an "
            "index with the texts (without --texts none)"
        )


def _deciding(namespace: argparse.Namespace, keep: Keep) -> dict[str, Any]:
    """Return the parameters of `Matching` besides those that find candidates."""
    return {
        "verify": {None: "exact", "none": None}.get(namespace.verify, namespace.verify),
        "clusters": namespace.clusters_mode or "representative",
        "keep": keep,
        "missing": namespace.missing,
    }


def length(shingles: lsh.Shingles) -> str:
    """Return the length of a shingle in words.

    Examples
    --------
    >>> length(lsh.Shingles(5, "byte"))
    '5 bytes'
    """
    return counted(shingles.n, {"char": "character", "byte": "byte", "word": "word"}[shingles.unit])


def num_threads(namespace: argparse.Namespace) -> int | None:
    """Return the number of threads, ``None`` for all cores."""
    given = namespace.num_threads
    return None if given is None else checks.whole_number("num_threads", given, 1, threads.MAX_THREADS)


def running(namespace: argparse.Namespace) -> RunOptions:
    """Return threads, memory and messages."""
    max_memory, temp_dir = memory_size(namespace.max_memory), namespace.temp_dir
    if temp_dir is not None or max_memory is not None:
        temp_dir = temporary_folder(temp_dir)
    return RunOptions(num_threads(namespace), max_memory, temp_dir, namespace.quiet, namespace.verbose)
