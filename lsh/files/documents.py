"""Documents in files: records in, kept records out.

`Documents` are one or more files of one format, or a folder of text files. They are read as often as needed, once for
ids and texts and once more for the records to keep, which are written as they were read; nothing is held meanwhile.
The formats are in `jsonl`, `separated`, `tables` and `folder`, files themselves in `storage`. Nothing here hashes,
groups or compares.
"""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np
import numpy.typing as npt

from lsh import _checks
from lsh.files.folder import EVERY, Folder
from lsh.files.jsonl import JsonLines
from lsh.files.lines import Lines, Reader
from lsh.files.records import (
    FOLDER,
    FORMATS,
    KNOWN,
    TABLES,
    Block,
    Format,
    InputError,
    ReadCounts,
    ReadOptions,
    Record,
    checked_encoding,
)
from lsh.files.separated import Csv, PlainText, Tsv
from lsh.files.storage import STANDARD, FolderTarget, Input, ShardTarget, Target
from lsh.files.tables import Tables

REPORT_EACH = 256  # records between two reports of the position while they are written
READERS: dict[str, type[Reader]] = {reader.format: reader for reader in (JsonLines, Csv, Tsv, PlainText)}


class Documents:
    """Files of documents that can be read more than once; standard input or a pipe is copied to a temporary file.

    Use it as a context manager: at the end the copies are gone.

    Parameters
    ----------
    path : str or sequence of str
        A file, a folder, ``"-"``, or several files of one format; a pattern such as ``"part-*.jsonl"`` stands for the
        files that match it, in the order of their names.
    format : Format, optional
        Of every file. Default: by the ending of each path.
    field : str, optional
        The column, or field of a JSON record, that holds the text; dots lead into nested ones, and several names with
        commas between are joined by a space. Default: the only one but the id, or ``text``, ``content``, ``body``.
    id_field : str, optional
        The column that holds the id. Default ``id``, where there is one; without an id the running number is the id.
    source_field : str, optional
        The column that says where a document is from. Default: its file is.
    header : bool, optional
        Whether the first record names the columns. Default: in ``csv``, not in ``tsv``. Without names a lone column
        is the text, else the first is the id and the second the text.
    encoding : str, optional
        Of text files. UTF-8 is not checked where nothing has to understand it.
    on_bad_line : {"error", "skip"}, optional
        What a line that is not of the format is, or a file of a folder that cannot be decoded: an error, or skipped and
        counted in `skipped`.
    missing : {"error", "empty"}, optional
        What a record without a text is, or with null for one: bad, or one whose text is ``None`` and that is counted in
        `missing`.
    pattern : str, optional
        Which files of a folder are read, such as ``"*.txt"``. Hidden ones are where it begins with a dot; else they are
        counted in `hidden`.
    rejects : Target, optional
        Receives what is skipped: the lines, or the paths of files.

    Raises
    ------
    InputError
        If the format cannot be told, differs between files, or has no use for an option.
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
        path: str | Sequence[str],
        format: Format | None = None,
        field: str | None = None,
        *,
        id_field: str | None = None,
        source_field: str | None = None,
        header: bool | None = None,
        encoding: str = "utf-8",
        on_bad_line: str = "error",
        missing: str = "error",
        pattern: str = EVERY,
        rejects: Target | None = None,
    ) -> None:
        paths = expanded([path] if isinstance(path, str) else path)
        shown = "standard input" if paths[0] == STANDARD else paths[0]
        self.name = shown if len(paths) == 1 else f"{shown} and {len(paths) - 1} more"
        self.path = paths[0]
        formats = _formats(paths, format)
        self.format = formats[0]
        name = self.format.name
        options = ReadOptions(
            field,
            id_field,
            source_field,
            name == "csv" if header is None else header,
            checked_encoding(encoding),
            _checks.choice("on_bad_line", on_bad_line, ("error", "skip")) == "skip",
            _checks.choice("missing", missing, ("error", "empty")) == "empty",
        )
        self._check_use(options, header is not None)
        self._counts = ReadCounts(None if rejects is None else rejects.write)
        self._inputs: list[Input] = []
        self._place = 0, 0  # of the file that was open when `position` was asked last, and of its first byte
        self._reader: Lines | Tables | Folder
        if name == FOLDER:
            self._reader = Folder(paths[0], pattern, options, self._counts)
            return
        self._inputs = [Input(path, found.compression) for path, found in zip(paths, formats)]
        if name in TABLES.values():
            self._reader = Tables(self._inputs, name, options, self._counts)
        else:
            self._reader = Lines(self._inputs, READERS[name], options, self._counts)

    def _check_use(self, options: ReadOptions, header_is_given: bool) -> None:
        """Refuse options that the format has no use for."""
        name = self.format.name
        described, has_cells = "a folder" if name == FOLDER else f".{name}", name in ("csv", "tsv")
        fields = {"--field": options.field, "--id-field": options.id_field, "--source-field": options.source_field}
        naming = next((option for option, given in fields.items() if given is not None), None)
        problem = None
        if naming and name in ("txt", FOLDER):
            known = ".jsonl, .csv, .tsv, .parquet and .arrow"
            problem = f"a field is for {known}, this is {described}; leave {naming} out"
        elif header_is_given and not has_cells:
            problem = f"a header is for .csv and .tsv, this is {described}; leave it out"
        elif options.skip_bad and name in TABLES.values():
            problem = f"bad lines are of text, this is {described}; leave --on-bad-line out"
        elif naming and has_cells and not options.header:
            problem = f"a field is named by a header, and there is none; leave {naming} out, or name the columns"
        if problem is not None:
            raise InputError(self.name, problem)

    def __enter__(self) -> Documents:
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._inputs:
            file.close()

    @property
    def skipped(self) -> int:
        """How many bad lines, or files of a folder, were skipped when the documents were read last."""
        return self._counts.skipped

    @property
    def hidden(self) -> int:
        """How many hidden files of a folder were passed over when it was read last."""
        return self._counts.hidden

    @property
    def missing(self) -> int:
        """How many documents had no text when they were read last."""
        return self._counts.missing

    @property
    def size(self) -> int:
        """The bytes of the files, packed where they are."""
        return self._reader.size if isinstance(self._reader, Folder) else sum(file.size for file in self._inputs)

    @property
    def position(self) -> int:
        """How many of these bytes have been read; of use between two blocks, to the thread that reads."""
        if isinstance(self._reader, Folder):
            return self._reader.position
        for first, before in (self._place, (0, 0)):  # most often the file that was open the last time, or the next one
            for number, file in enumerate(self._inputs[first:], first):
                if (position := file.position) is not None:
                    self._place = number, before
                    return before + position
                before += file.size
        return 0

    def records(self) -> Iterator[Record]:
        """Yield the documents; each call reads them anew, and those of a pipe must be read one call after another.

        Raises
        ------
        InputError
            If a line is not of the format; the message has its number.
        """
        return chain.from_iterable(block.records() for block in self.blocks())

    def blocks(self) -> Iterator[Block]:
        """Yield the documents as `records` does, but many together; `prefetched` reads them in a thread."""
        return self._reader.blocks()


def expanded(paths: Sequence[str]) -> list[str]:
    """Return the paths, with those that match a pattern in its place."""
    found: list[str] = []
    for path in paths:
        if path == STANDARD or os.path.lexists(path) or not glob.has_magic(path):
            found.append(path)
            continue
        matches = sorted(glob.glob(path, recursive=True))
        if not matches:
            raise InputError(path, "no file matches this pattern; correct it")
        found += matches
    if not found:
        raise ValueError("expected the name of a file, a folder or -, got none")
    if found.count(STANDARD) > 1:
        raise ValueError("- can be read once, got it twice; name it once")
    return found


def _formats(paths: Sequence[str], given: Format | None) -> list[Format]:
    """Return the format of each path; they differ in compression at most."""
    formats = [_format_of(path, given) for path in paths]
    expected = formats[0].name
    for path, found in zip(paths, formats):
        if found.name != expected:
            raise InputError(path, f"expected {expected}, as {paths[0]}, got {found.name}; read files of one format")
    if expected == FOLDER and len(paths) > 1:
        raise InputError(paths[1], "a folder is read by itself; name one folder, or files")
    return formats


def _format_of(path: str, given: Format | None) -> Format:
    """Return the format of a path: a folder's, the one that is given, or that of its ending."""
    if path != STANDARD and os.path.isdir(path):
        return Format(FOLDER, "")
    if given is None and path == STANDARD:
        raise InputError("standard input", f"its format cannot be told; give --format {', '.join(FORMATS)}")
    found = given or Format.of_path(path)
    if found is None and not os.path.lexists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if found is None:
        raise InputError(path, f"the ending of its name must say its format: {KNOWN}; rename it or give --format")
    return found


def target(documents: Documents, path: str) -> Target | FolderTarget | ShardTarget:
    """Return the target of the kept documents, for `write_kept`.

    Parameters
    ----------
    documents : Documents
        The documents. Files are written to one file, or each to a file in a new folder; a folder of texts is written
        to a new folder.
    path : str
        Where to: a new or an empty folder, if it ends in a slash or, for several files, is a folder. The ending of the
        name of one file says how it is compressed; files in a folder are compressed as their inputs are.

    Raises
    ------
    ValueError
        If the folder has files, or would lie within the folder of the documents.
    """
    if documents.format.name == FOLDER and path == STANDARD:
        raise ValueError("OUTPUT must be a new folder where INPUT is a folder, got - for standard output")
    inner, outer = os.path.realpath(path), os.path.realpath(documents.path)
    if documents.format.name != FOLDER and not path.endswith(os.sep):
        several = len(documents._inputs) > 1 or os.path.isdir(outer)
        if not (several and path != STANDARD and os.path.isdir(path)):
            return Target(path, "" if documents.format.name in TABLES.values() else None)
    if os.path.isdir(outer) and os.path.commonpath([inner, outer]) == outer:
        raise ValueError(f"OUTPUT must not lie in INPUT ({documents.path}), got {path}; name a folder elsewhere")
    return FolderTarget(path) if documents.format.name == FOLDER else ShardTarget(path, documents._inputs)


def write_kept(
    documents: Documents,
    keep: Iterable[bool],
    target: Target | FolderTarget,
    report: Callable[[int], object] = lambda position: None,
) -> None:
    """Write the kept documents unchanged.

    Lines are written byte for byte, records of CSV whole and after their header, rows with all columns, files of a
    folder under their relative paths.

    Parameters
    ----------
    documents : Documents
        All documents.
    keep : iterable of bool
        Whether each document is kept.
    target : Target or FolderTarget
        What `target` returns for them.
    report : callable, optional
        Called with the position in the input files, from time to time.

    Raises
    ------
    InputError
        If the number of documents has changed since they were read first.
    """
    flags, reader = _reporting(keep, lambda: report(documents.position)), documents._reader

    def is_kept() -> bool:
        flag = next(flags, None)
        if flag is None:
            raise InputError(documents.name, "it grew while it was read; run again when nothing writes to it")
        return bool(flag)

    if isinstance(reader, Folder):
        if not isinstance(target, FolderTarget):
            raise TypeError(f"the files of a folder go to a FolderTarget, got {type(target).__name__}")
        reader.write_kept(is_kept, target)
    elif isinstance(target, (Target, ShardTarget)):
        reader.write_kept(is_kept, target)
    else:
        raise TypeError(f"records go to a Target or a ShardTarget, got {type(target).__name__}")
    if next(flags, None) is not None:
        raise InputError(documents.name, "it shrank while it was read; run again when nothing writes to it")


def _reporting(keep: Iterable[bool], report: Callable[[], object]) -> Iterator[bool]:
    """Yield the flags, and report the position from time to time."""
    flags = iter(keep)
    while some := tuple(islice(flags, REPORT_EACH)):
        report()
        yield from some


def write_removed(
    ids: Sequence[bytes], removed: npt.NDArray[np.void], target: Target, old: Sequence[bytes] = ()
) -> None:
    """Write removed id, kept id and similarity, tab-separated, one removed document per line.

    Where there are old documents, whose ids are `old`, a fourth cell says ``new`` or ``old`` of the kept one.
    """
    for document, kept, similarity, _, *sides in removed.tolist():
        witness = old[kept] if sides == ["old"] else ids[kept]
        target.write(table_row(ids[document], witness, repr(similarity).encode(), *(side.encode() for side in sides)))


def table_row(*cells: bytes) -> bytes:
    """Return a line of a table: tab-separated, with a newline."""
    return b"\t".join(map(_cell, cells)) + b"\n"


def _cell(identity: bytes) -> bytes:
    """Return an id as one cell of a table: a tab or a line end in it is written as an escape."""
    for raw, escaped in ((b"\t", rb"\t"), (b"\n", rb"\n"), (b"\r", rb"\r")):
        identity = identity.replace(raw, escaped)
    return identity
