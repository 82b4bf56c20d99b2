"""Documents in files: reading them, and writing the kept ones.

`Documents` are files of one format, or a folder of texts. They are parsed once. Later, single documents are read by
their positions, and the kept records are copied by their places. A pass reads all of them once: `LinePass`,
`TablePass` or `FolderPass`; the first one knows where each is, and another process can go on with it. The formats of
text are in `text_formats`, places of records in `places`, files themselves in `storage`, and `finding` tells which
files are read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import numpy as np

from lsh.base.arrays import Array
from lsh.base.budget import MemoryBudget
from lsh.base.errors import InputError, Parameter, Words, bad_value, needing
from lsh.base.prefetch import prefetched
from lsh.base.wording import counted
from lsh.files.finding import Sources, expanded, find_sources
from lsh.files.folder import Folder, FolderPass
from lsh.files.lines import LinePass
from lsh.files.places import Flags, Places
from lsh.files.readers import Reader
from lsh.files.records import FOLDER, SKIP, TABLES, Block, Edits, ReadCounts, ReadOptions, Record, escaped, is_number
from lsh.files.text_formats import Csv, JsonLines, PlainText, Tsv
from lsh.storage import urls
from lsh.storage.disk import STANDARD, changed
from lsh.storage.inputs import Input
from lsh.storage.locations import INPUT, is_folder, lies_in, names_folder
from lsh.storage.remote import Place
from lsh.storage.targets import FolderTarget, ShardTarget, Target
from lsh.text.batch import Batch
from lsh.text.collections import TextSource
from lsh.typing import Pieces

if TYPE_CHECKING:  # it needs pyarrow
    from lsh.files.tables import TablePass

    AnyPass = LinePass | TablePass | FolderPass

FIELD_OPTIONS = ("field", "id_field", "source_field", "keep_field")
DEFAULTS = vars(ReadOptions())
OWN_FIELDS = ("source_field", "keep_field")  # that no other files are read with
READERS: dict[str, type[Reader]] = {reader.format: reader for reader in (JsonLines, Csv, Tsv, PlainText)}


class Documents(TextSource):
    """Files of documents that can be read more than once; standard input or a pipe is copied to a temporary file.

    Use it as a context manager, which deletes the copies at the end.

    Parameters
    ----------
    path : str, sequence of str, or Sources
        Files of one format, their URLs, ``"-"``, folders, or patterns; or what `find_sources` found, with its format
        and pattern. A pattern such as ``"part-*.jsonl"`` stands for the files that match it, and a folder of data files
        for these files, each in the order of their paths. In a folder of texts (``.txt``, ``.md``, ``.html``, source
        code, no ending, ...) each file is a document.
    options : ReadOptions, optional
        How the files are read; or its values by their names.
    rejects : Target, optional
        Receives the skipped lines, or the paths of skipped files.
    others : sequence of str, optional
        The formats of other files that are read with the same options. An option that this format has no use for is
        an error, unless one of these formats has a use for it; `source_field` and `keep_field` count for these
        documents only.
    budget : MemoryBudget, optional
        Allocates the memory for the places of the records, and has the folder for copies. Default: without a bound.

    Attributes
    ----------
    inputs : list of Input
        The files in the order in which they are read; empty for a folder of texts.
    named : list of Place
        The files and folders that were given, with the matches of patterns.
    format : Format
        The format of all files, and the compression of the first.
    name : str
        The inputs in words, for messages.
    counts : ReadCounts
        What was skipped and missing when the documents were read last, the hidden files, and notes on the reading.
    temporary : str or None
        The folder for temporary files; ``None``: TMPDIR, or the folder of the system.

    Raises
    ------
    InputError
        If the format is unknown or differs between files, or an option has no use.
    ImportError
        If a package of the extra ``io`` is needed.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "news.csv")
    >>> with open(path, "w", encoding="utf-8") as file:
    ...     _ = file.write('id,body\\na,"Bread, and roses"\\nb,Nothing new\\n')
    >>> with Documents(path) as documents:
    ...     [(record.id, record.text) for record in documents.records()]
    [(b'a', b'Bread, and roses'), (b'b', b'Nothing new')]
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | Sequence[str] | Sources,
        options: ReadOptions | None = None,
        *,
        rejects: Target | None = None,
        others: Sequence[str] = (),
        budget: MemoryBudget | None = None,
        **values: Any,
    ) -> None:
        options = ReadOptions(**values) if options is None else replace(options, **values)
        if not isinstance(path, Sources):
            path = find_sources(expanded([path] if isinstance(path, str) else path), options.format, options.pattern)
        sources, hidden, self.named, pattern, special = path[:5]
        self.path, self.format, _ = sources[0]
        shown = "standard input" if self.path == STANDARD else urls.shown(self.path)
        self.name = shown if len(sources) == 1 else f"{shown} and {len(sources) - 1} more"
        options = self._usable(options, others)
        self.counts = ReadCounts(None if rejects is None else rejects.write)
        self.counts.hidden = hidden
        if special:
            self.counts.note(f"{counted(special, 'special file')} not read: pipes, sockets or devices")
        self.inputs: list[Input] = []
        self._place = 0, 0  # of the file that was open when `position` was asked last, and of its first byte
        self._options, self._budget = options, MemoryBudget() if budget is None else budget
        self._known: AnyPass | None = None  # the first pass that read all documents
        self._begun: AnyPass | None = None  # the first pass, from when it begins until it ends, if it is journaled
        self.temporary = self._budget.folder
        self._folder: Folder | None = None
        if self.format.name == FOLDER:
            self._folder = Folder(self.path, pattern, options, self.counts)
            return
        self.inputs = [
            Input(source.path, source.format.compression, source.state, self.temporary, source.format.name)
            for source in sources
        ]
        if self.format.name in TABLES.values():
            packages = 'run pip install "lsh-dedup[io]", or use .jsonl or .csv'
            with needing(f".{self.format.name} files need pyarrow: {packages}"):
                import pyarrow  # noqa: F401

    def _usable(self, options: ReadOptions, others: Sequence[str]) -> ReadOptions:
        """Return the options without those that only the other formats have a use for."""
        useless = _useless(self.format.name, options)
        for name, problem in useless.items():
            if name in OWN_FIELDS or all(name in _useless(other, options) for other in others):
                raise InputError(self.name, problem)
        options = replace(options, **{name: DEFAULTS[name] for name in useless})
        has_columns = self.format.name in ("csv", "tsv")
        has_header = self.format.name == "csv" if options.header is None else options.header
        named = (options.field, options.named_id(), options.source_field, options.keep_field)
        for option, given in zip(FIELD_OPTIONS, named) if has_columns and not has_header else ():
            if given is not None and not all(is_number(name.strip()) for name in given.split(",")):
                problem = Parameter(option) + f" is {given!r}, and there is no header; use "
                raise InputError(self.name, problem + Parameter("header", True) + ", or the number of a column")
        return options

    def __enter__(self) -> Documents:
        return self

    def __exit__(self, *error: object) -> None:
        for file in self.inputs:
            file.close()

    @property
    def size(self) -> int:
        """The size of the files in bytes, as they are on disk."""
        return sum(file.size for file in self.inputs) if self._folder is None else self._folder.size

    @property
    def position(self) -> int:
        """How many of these bytes have been read; for the thread that reads, between two blocks."""
        if self._folder is not None:
            return self._folder.position
        for first, before in (self._place, (0, 0)):  # most often the same file as the last time, or the next one
            for number, file in enumerate(self.inputs[first:], first):
                if (position := file.position) is not None:
                    self._place = number, before
                    return before + position
                before += file.size
        return 0

    @property
    def count(self) -> int:
        """The number of documents, which are read if that has not been done."""
        return self._located().count

    @property
    def starts(self) -> list[int]:
        """The position of the first document of each file; of a folder of texts, which is no file, 0."""
        return self._located().starts

    def states(self) -> dict[str, tuple[Any, ...] | None]:
        """Return by the path of each file what another run compares to tell whether it changed.

        It is ``None`` for standard input and pipes, which only one run can read.
        """
        return {file.path: file.state() for file in self.inputs} if self._folder is None else self._folder.states()

    def taken(self) -> tuple[Any, list[Array]]:
        """Return what `restore` needs of the first reading, as far as it has come: what is new since the last call.

        The thread that reads calls it, between two blocks or at the end, if the counts are journaled.
        """
        one = self._begun or self._known
        assert one is not None
        state, arrays = one.taken()
        numbers, rejected = self.counts.taken()
        return [state, numbers], [rejected, *arrays]

    def restore(self, value: Any, arrays: Sequence[Array], ended: bool) -> None:
        """Add to the first reading what `taken` returned, call by call.

        `blocks` yields the documents after these then, unless the reading has `ended`: then it yields all again. `at`
        yields these.
        """
        (state, numbers), (rejected, *own) = value, arrays
        self._begun = self._begun or self._new_pass(self.counts)
        self._begun.restore(state, own)
        if ended:
            self._begun.prepare()
            self._known, self._begun = self._begun, None
        self.counts.restore(numbers, rejected)

    def records(self) -> Iterator[Record]:
        """Yield the documents; each call reads the files again. Do not read a pipe by two calls at the same time.

        Raises
        ------
        InputError
            If a line is malformed; the message has its number.
        """
        return chain.from_iterable(block.records() for block in self.blocks())

    def blocks(self) -> Iterator[Block]:
        """Yield the documents as `records` does, but many together; `prefetched` reads them in a thread."""
        if self._begun is None:
            self.counts.start()
        one = self._begun or self._new_pass(self.counts)
        if self.counts.is_journaled and not self._known:
            self._begun = one
        yield from one.blocks()
        self._known, self._begun = self._known or one, None

    def _new_pass(self, counts: ReadCounts) -> AnyPass:
        if self._folder is not None:
            return FolderPass(self._folder, counts)
        if self.format.name in TABLES.values():
            from lsh.files.tables import TablePass

            return TablePass(self.inputs, self.format.name, self._options, counts)
        reader = READERS[self.format.name](self._options)
        return LinePass(self.inputs, reader, counts, None if self._known else Places(self._budget))

    def _located(self) -> AnyPass:
        """Return the pass that knows where the documents are; they are read if that has not been done.

        After `restore` it is the first pass, as far as it has come.
        """
        if self._begun is not None:
            self._begun.prepare()
            return self._begun
        if self._known is None:
            one = self._new_pass(ReadCounts())
            if self.format.name not in TABLES.values():  # for which the metadata of the files say it
                deque(one.blocks(), 0)
            self._known = one
        return self._known

    def at(self, positions: Array) -> Iterator[Block]:
        """Yield the documents at some positions, which ascend, in blocks.

        The other documents are not parsed. All documents are read first if that has not been done.
        """
        return self._located().at(positions)

    def files_of(self, positions: Array) -> list[str]:
        """Return the name of the file, or of the folder of texts, that holds the document at each position."""
        if self._folder is not None:
            return [self.name] * len(positions)
        numbers = np.searchsorted(self.starts, positions, side="right") - 1
        return [self.inputs[number].name for number in numbers.tolist()]

    # ---- their texts, for `lsh.engine` ----

    def __call__(self, start: int = 0) -> Pieces:
        """Return all texts; `start` is 0."""
        return Pieces(block.texts for block in prefetched(self.blocks()))

    def take(self, positions: Array) -> Iterator[Batch]:
        """Yield the texts at some positions, which ascend."""
        return (block.texts for block in prefetched(self.at(positions.astype(np.int64))))

    def changed(self, position: int) -> Exception:
        """Return the error for a text that was another one when it was read again."""
        return changed(self.files_of(np.array([position]))[0])


def _useless(format: str, options: ReadOptions) -> dict[str, Words]:
    """Return the given options that a format has no use for, each with its error message."""
    described = "a folder of texts" if format == FOLDER else f".{format}"
    fields = {name: Parameter(name) for name in FIELD_OPTIONS}
    columns = {"header": Parameter("header", options.header), "delimiter": Parameter("delimiter")}
    uses: tuple[tuple[bool, str, dict[str, Parameter]], ...] = (
        (format not in ("txt", FOLDER), ".jsonl, .csv, .tsv, .parquet and .arrow", fields),
        (format in ("csv", "tsv"), ".csv and .tsv", columns),
        (format not in TABLES.values(), "files of text", {"on_bad_line": SKIP, "encoding": Parameter("encoding")}),
    )
    return {
        name: option + f" is for {kinds}, and this is {described}; leave it out"
        for has_use, kinds, names in uses
        for name, option in names.items()
        if not has_use and getattr(options, name) != DEFAULTS[name]
    }


def target(documents: Documents, path: str, run: str = "") -> Target | FolderTarget | ShardTarget:
    """Return the target of the kept documents, for `write_kept`.

    Parameters
    ----------
    documents : Documents
        The documents. Files are written to one file, or each to a file in a new folder; a folder of texts is written
        to a new folder.
    path : str
        Where to: a new or an empty folder, if it ends in a slash or, for several files, is a folder. The ending of the
        name of one file says how it is compressed; files in a folder are compressed as their inputs are.
    run : str, optional
        The name of a run; see `Target`.

    Raises
    ------
    ValueError
        If the folder has files, or would lie within the folder of the documents.
    """
    if documents.format.name == FOLDER and path == STANDARD:
        reason = "must be a new folder where " + INPUT + " is a folder, got - for standard output"
        raise bad_value("output", reason)
    if documents.format.name != FOLDER and not becomes_folder(documents.named, path):
        packed = "" if documents.format.name in TABLES.values() else None
        return Target(path, packed, folder=documents.temporary, run=run)
    if lies_in(path, documents.path):
        source, shown = urls.shown(documents.path), urls.shown(path)
        raise bad_value("output", "must not lie in " + INPUT + f" ({source}), got {shown}; name a folder elsewhere")
    if documents.format.name == FOLDER:
        return FolderTarget(path, documents.temporary, run)
    named = [(place.path, place.is_folder) for place in documents.named]
    return ShardTarget(path, documents.inputs, named, documents.temporary, run)


def becomes_folder(named: Sequence[Place], path: str) -> bool:
    """Tell whether an output is a folder with a file for each input: by its slash, or several go to a folder."""
    several = len(named) > 1 or any(place.is_folder for place in named)
    return names_folder(path) or (several and is_folder(path))


def write_kept(
    documents: Documents,
    keep: Sequence[bool] | Flags,
    target: Target | FolderTarget,
    report: Callable[[int], object] = lambda position: None,
    edits: Edits = Edits(),  # noqa: B008 - immutable
) -> None:
    """Write the kept documents unchanged, with fields that are added to each, or with shortened texts.

    Lines are written byte for byte, records of CSV whole and after their header, rows with all columns, files of a
    folder under their relative paths. Text files are copied by the places of their records, without being parsed.

    Parameters
    ----------
    documents : Documents
        All documents; they are read first if that has not been done.
    keep : sequence of bool
        Whether each document is kept.
    target : Target, FolderTarget or ShardTarget
        The one that `target` returns for the documents.
    report : callable, optional
        Called with the position in the input files, from time to time.
    edits : Edits, optional
        What changes in the kept records. Default: nothing.

    Raises
    ------
    InputError
        If the number of documents has changed since they were read first, or a record has an added field.
    """
    flags, located = np.asarray(keep, np.bool_), documents._located()
    if len(flags) != located.count:
        what = "grew" if len(flags) < located.count else "shrank"
        raise InputError(documents.name, f"it {what} while it was read; run again when nothing writes to it")
    starts = dict(zip(documents.inputs, accumulate((file.size for file in documents.inputs), initial=0)))

    def reported(file: Input, position: int | None) -> None:
        report(starts[file] + (position or 0))

    if isinstance(located, FolderPass):
        if not isinstance(target, FolderTarget):
            raise TypeError(f"the files of a folder go to a FolderTarget, got {type(target).__name__}")
        located.write_kept(flags, target, lambda: report(documents.position), edits)
    elif isinstance(target, (Target, ShardTarget)):
        located.write_kept(flags, target, reported, edits)
    else:
        raise TypeError(f"records go to a Target or a ShardTarget, got {type(target).__name__}")


def table_row(*cells: bytes) -> bytes:
    """Return a line of a table: tab-separated, with a newline."""
    return b"\t".join(map(escaped, cells)) + b"\n"
