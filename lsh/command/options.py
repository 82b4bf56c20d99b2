"""What several commands share of their options: adding them to a parser, checking them, and opening the files named.

Values that mean something to the library are checked by it; here stand the names that a person typed. Nothing here
knows what a command does with its documents.
"""

from __future__ import annotations

import argparse
import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import lsh
from lsh import _checks, _threads, files, presets
from lsh._batch import Batch
from lsh._spill import memory_size
from lsh._texts import Pieces
from lsh.dedup import DEFAULT_SEEDS
from lsh.planning import DEFAULT_RECALL, chosen_bands
from lsh.shingling import UNITS

MISSING = ("error", "empty")
NO_TEXT = -1  # the size of a text that is missing
DEFAULTS = {  # of what a preset settles
    "threshold": 0.8,
    "ngram": 8,
    "unit": "char",
    "num_seeds": DEFAULT_SEEDS,
    "verify": "exact",
    "clusters_mode": "representative",
}

FORMATS = """\
formats (the ending of INPUT, or --format; lines of text also with .gz, .bz2, .xz or .zst):
  .jsonl    one JSON object per line; dots in --field lead into nested ones
  .csv      a header, unless --no-header; records as RFC 4180 has them
  .tsv      no header, unless --header: one column is the text; with more, the first is the id and the second the text
  .txt      one document per line
  .parquet  and .arrow, .feather: a row per document (extra io)
  a folder  one document per file, its path within the folder is the id; hidden files are passed over and counted
Named columns: the text is in the only one, or in text, content or body, unless --field names it; the id in id, unless
--id-field does. Without an id the running number is the id.
"""


# ---- adding ----


def add_reading(parser: argparse.ArgumentParser, missing: str = "error") -> None:
    """Add what says how documents are read."""
    group = parser.add_argument_group("reading")
    group.add_argument("--field", help="the column that holds the text, or several with commas between")
    group.add_argument("--id-field", metavar="FIELD", help="the column that holds the id")
    named = group.add_mutually_exclusive_group()
    named.add_argument("--header", action="store_true", default=None, help="the first record of a .tsv names columns")
    named.add_argument("--no-header", dest="header", action="store_false", help="that of a .csv does not")
    group.add_argument("--format", help="such as jsonl, csv.zst or parquet; for - or another ending of INPUT")
    group.add_argument("--encoding", default="utf-8", help="of text files (default utf-8)")
    group.add_argument(
        "--pattern", default="*", help="which files of a folder are read, such as '*.txt'; hidden ones by '.*' only"
    )
    group.add_argument(
        "--on-bad-line",
        choices=("error", "skip"),
        default="error",
        help="what a line of another form is (default error)",
    )
    group.add_argument(
        "--missing", choices=MISSING, default=missing, help=f"what a record without a text is (default {missing})"
    )


def add_shingles(parser: Any) -> None:
    """Add what says which shingles a text has."""
    parser.add_argument("--ngram", type=int, help="units per shingle (default 8)")
    parser.add_argument("--unit", choices=UNITS, help="what is shingled (default char)")


def add_num_seeds(parser: Any) -> None:
    """Add the number of components."""
    parser.add_argument("--num-seeds", type=int, help=f"components per fingerprint (default {DEFAULT_SEEDS})")


def add_threshold(parser: Any) -> None:
    """Add the least similarity."""
    parser.add_argument("--threshold", type=float, help="least similarity of near duplicates (default 0.8)")


def add_recall(parser: Any) -> None:
    """Add the promise."""
    parser.add_argument(
        "--recall",
        type=float,
        help=f"least probability to find a pair just at the threshold (default {DEFAULT_RECALL})",
    )


def add_finding(parser: argparse.ArgumentParser) -> None:
    """Add what says which documents are near duplicates."""
    group = parser.add_argument_group("near duplicates")
    add_threshold(group)
    add_shingles(group)
    add_num_seeds(group)
    add_recall(group)
    group.add_argument("--bands", help="bands x width, such as 20x6 or 2x7+14x8, in place of --recall")
    group.add_argument(
        "--verify",
        choices=("exact", "sketch", "none"),
        help="what makes a candidate a near duplicate: its exact similarity, the estimate, or a shared band alone "
        "(default exact)",
    )


def add_running(parser: argparse.ArgumentParser, max_memory: bool = True) -> None:
    """Add what changes the run, not its result."""
    group = parser.add_argument_group("running")
    group.add_argument("--num-threads", type=int, metavar="N", help="threads (default: every core)")
    if max_memory:
        group.add_argument(
            "--max-memory", metavar="SIZE", help="memory, such as 2GB; what does not fit goes to temporary files"
        )
    loudness = group.add_mutually_exclusive_group()
    loudness.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    loudness.add_argument("-v", "--verbose", action="store_true", help="say with what is worked and how long it took")


# ---- checking ----


def value(options: argparse.Namespace, name: str) -> Any:
    """Return what is given for an option that a preset may settle, or its default."""
    given = getattr(options, name)
    return DEFAULTS[name] if given is None else given


def threshold(options: argparse.Namespace) -> float:
    """Return the threshold that is asked for."""
    return _checks.fraction("--threshold", value(options, "threshold"), zero=False)


def num_seeds(options: argparse.Namespace) -> int:
    """Return the number of components that is asked for."""
    return _checks.whole_number("--num-seeds", value(options, "num_seeds"), 1)


def shingles(options: argparse.Namespace) -> lsh.Shingles:
    """Return the shingles that are asked for."""
    return lsh.Shingles(_checks.whole_number("--ngram", value(options, "ngram"), 1), value(options, "unit"))


def hasher(options: argparse.Namespace) -> lsh.MinHasher:
    """Return what makes the fingerprints that are asked for."""
    return lsh.MinHasher(num_seeds(options), scheme="fss", shingles=shingles(options))


def finding(options: argparse.Namespace) -> tuple[dict[str, Any], lsh.Bands | lsh.Plan]:
    """Return what `deduplicate` and `find_pairs` take of the options, and the bands or the plan that they will use.

    Raises
    ------
    ValueError
        If a value is bad, before any work is done.
    """
    if options.bands is not None and options.recall is not None:
        raise ValueError("--recall and --bands both say which pairs are found; give one of them")
    verify = value(options, "verify")
    parameters = {
        "threshold": threshold(options),
        "recall": options.recall,
        "bands": None if options.bands is None else lsh.Bands.from_string(options.bands),
        "hasher": hasher(options),
        "verify": None if verify == "none" else verify,
        **running(options),
    }
    return parameters, _used(parameters)


def by_preset(options: argparse.Namespace) -> tuple[dict[str, Any], lsh.Bands | lsh.Plan]:
    """Return what `deduplicate` takes of a preset, and of the options that it leaves open, as `finding` does."""
    for name in (*DEFAULTS, "recall", "bands"):
        if getattr(options, name) is not None:
            option = "--" + name.replace("_", "-")
            raise ValueError(f"--preset {options.preset} settles {option}; leave one of the two out")
    parameters = {"recall": None, **presets.options(options.preset), **running(options)}
    return parameters, _used(parameters)


def _used(parameters: dict[str, Any]) -> lsh.Bands | lsh.Plan:
    given = (parameters[name] for name in ("bands", "recall", "threshold", "hasher"))
    bands, plan = chosen_bands(*given, filtered=parameters["verify"] == "exact")
    return bands if plan is None else plan


def running(options: argparse.Namespace) -> dict[str, Any]:
    """Return what does not say which documents are near duplicates."""
    return {
        "missing": options.missing,
        "max_memory": memory_size("--max-memory", options.max_memory),
        "num_threads": num_threads(options),
    }


def num_threads(options: argparse.Namespace) -> int | None:
    """Return the number of threads that is asked for."""
    number: int | None = options.num_threads
    return None if number is None else _checks.whole_number("--num-threads", number, 1, _threads.MAX_THREADS)


def form(options: argparse.Namespace) -> files.Format | None:
    """Return the format that is asked for."""
    if options.format is None:
        return None
    found = files.Format.from_string(options.format)
    if found is None:
        raise ValueError(f"--format must be one of {files.KNOWN}, got {options.format!r}")
    return found


def check_files(
    read: Sequence[tuple[str, str]], written: Sequence[tuple[str, str | None]], folders: bool = True
) -> None:
    """Check that the files of a command do not get in each other's way and can be written.

    Parameters
    ----------
    read, written : sequence of tuple
        What the help calls a file, and its path; ``None`` for one that is not asked for.
    folders : bool, optional
        Whether a folder can be read.
    """
    read = [(name, one) for name, path in read for one in files.expanded([path])]
    if sum(path == files.STANDARD for _, path in read) > 1:
        raise ValueError("standard input can be read once; give - for one of the files only")
    targets = [(name, path) for name, path in written if path is not None]
    into_folder = any(path != files.STANDARD and os.path.isdir(path) for name, path in read if name == "INPUT")
    for place, (name, path) in enumerate(targets):
        for other, source in read:
            if files.same_file(source, path):
                raise ValueError(f"{name} must not be {other} ({path}); write to another file")
        _check_target(name, path, into_folder and name == "OUTPUT")
        for other, target in targets[:place]:
            if files.same_file(target, path) or target == path:
                raise ValueError(f"{name} must not be {other} ({path}); write to another file")
    for name, path in () if folders else read:
        if path != files.STANDARD and os.path.isdir(path):
            raise ValueError(f"{name} must be a file, got the folder {path}")


def _check_target(name: str, path: str, new_folder: bool) -> None:
    if new_folder and os.path.isdir(path) and not os.listdir(path):
        return  # an empty one will do
    if new_folder and path != files.STANDARD and os.path.lexists(path):
        raise ValueError(f"{name} must be a new folder, as INPUT is one, got {path}, which is there; name another")
    if not path:
        raise ValueError(f"{name} must name a file, got an empty name")
    if path != files.STANDARD and (os.path.isdir(path) or (path.endswith(os.sep) and not new_folder)):
        raise ValueError(f"{name} must be a file, got the folder {path}")
    folder = os.path.dirname(os.path.realpath(path))
    if path != files.STANDARD and not files.is_stream(path):
        if not os.path.isdir(folder):
            raise ValueError(f"{name} must be in a folder that exists, got {path}")
        if not os.access(folder, os.W_OK):
            raise ValueError(f"{name} must be in a folder that can be written to, got {path}")


# ---- opening ----


def source(
    options: argparse.Namespace,
    paths: str | Sequence[str],
    rejects: files.Target | None = None,
    source_field: str | None = None,
) -> files.Documents:
    """Return the documents of some files, read as the options say."""
    return files.Documents(
        paths,
        form(options),
        options.field,
        id_field=options.id_field,
        source_field=source_field,
        header=options.header,
        encoding=options.encoding,
        on_bad_line=options.on_bad_line,
        missing=options.missing,
        pattern=options.pattern,
        rejects=rejects,
    )


class Ids(Sequence[bytes]):
    """The ids of many documents, in little more memory than their bytes."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._ends = array("q", [0])

    def extend(self, identities: Iterable[bytes]) -> None:
        """Take some more."""
        for identity in identities:
            self._bytes += identity
            self._ends.append(len(self._bytes))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, position: Any) -> Any:
        if not 0 <= position < len(self):
            raise IndexError(f"there are {len(self)} ids, got position {position}")
        return bytes(self._bytes[self._ends[position] : self._ends[position + 1]])


class Names(Sequence[bytes]):
    """What many documents are called that share few names, such as those of their sources.

    Attributes
    ----------
    distinct : list of bytes
        The names, in the order of their first documents.
    """

    def __init__(self) -> None:
        self.distinct: list[bytes] = []
        self._known: dict[bytes, int] = {}
        self._numbers = array("i")

    def extend(self, names: Iterable[bytes]) -> None:
        """Take some more."""
        for name in names:
            number = self._known.get(name)
            if number is None:
                number = self._known[name] = len(self.distinct)
                self.distinct.append(name)
            self._numbers.append(number)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, position: Any) -> Any:
        return self.distinct[self._numbers[position]]


class TextStream:
    """The texts of some sources, anew each time they are called for; what is noted is noted the first time.

    Parameters
    ----------
    sources : sequence of Documents
        The files, one after the other.
    with_ids, with_sizes, with_names : bool
        Whether the ids will be wanted, the size of each text, and the names of where they are from.

    Attributes
    ----------
    ids : Ids
        By position; empty without `with_ids`.
    sizes : array of int
        The bytes of each text as UTF-8, -1 of a missing one; empty without `with_sizes`.
    names : Names
        Where each text is from; empty without `with_names`.
    count, num_bytes : int
        How many texts there are, and their bytes together.
    skipped, hidden : int
        How many lines or files were skipped, and hidden files passed over.
    """

    def __init__(
        self,
        sources: Sequence[files.Documents],
        with_ids: bool = True,
        with_sizes: bool = False,
        with_names: bool = False,
    ) -> None:
        self._sources, self._noted = sources, False
        self._with_ids, self._with_sizes, self._with_names = with_ids, with_sizes, with_names
        self.ids, self.sizes, self.names, self.num_bytes, self.count = Ids(), array("q"), Names(), 0, 0
        self.skipped = self.hidden = 0

    def __call__(self) -> Pieces:
        noting, self._noted = not self._noted, True
        return Pieces(files.prefetched(self._batches(noting)))

    def _batches(self, noting: bool) -> Iterator[Batch]:
        for block in self._blocks():
            if noting:
                self._note(block)
            yield block.texts
        if noting:
            self.skipped = sum(source.skipped for source in self._sources)
            self.hidden = sum(source.hidden for source in self._sources)

    def _blocks(self) -> Iterator[files.Block]:
        return chain.from_iterable(source.blocks() for source in self._sources)

    def _note(self, block: files.Block) -> None:
        self.count += len(block.texts)
        self.num_bytes += int(block.texts.sizes().sum())
        if self._with_ids:
            self.ids.extend(block.ids())
        if self._with_sizes:
            self.sizes.frombytes(block.texts.sizes(NO_TEXT).tobytes())
        if self._with_names:
            self.names.extend(block.sources())

    def at(self, positions: Iterable[int]) -> Iterator[tuple[int, bytes | None]]:
        """Yield some positions and the texts there, in ascending order."""
        wanted, first = sorted(set(positions), reverse=True), 0
        for block in self._blocks() if wanted else ():
            stop = first + len(block.texts)
            while wanted and wanted[-1] < stop:
                position = wanted.pop()
                yield position, block.texts.tolist(position - first, position - first + 1)[0]
            if not wanted:
                return
            first = stop
