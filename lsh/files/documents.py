"""Documents in files: records in, kept records out.

`Documents` are one or more files of one format, or a folder of text files. They are read as often as needed, once for
ids and texts and once more for the records to keep, which are written as they were read; nothing is held meanwhile.
The formats are in `jsonl`, `separated`, `tables` and `folder`, files themselves in `storage`. Nothing here hashes,
groups or compares.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from lsh import _checks
from lsh.files.finding import find_sources
from lsh.files.folder import Folder
from lsh.files.jsonl import JsonLines
from lsh.files.lines import Lines, Reader
from lsh.files.records import (
    FOLDER,
    TABLES,
    Block,
    Format,
    InputError,
    ReadCounts,
    ReadOptions,
    Record,
    checked_delimiter,
    checked_encoding,
    is_number,
)
from lsh.files.separated import Csv, PlainText, Tsv
from lsh.files.storage import STANDARD, FolderTarget, Input, Target
from lsh.files.tables import Tables

READERS: dict[str, type[Reader]] = {reader.format: reader for reader in (JsonLines, Csv, Tsv, PlainText)}


class Documents:
    """Files of documents that can be read more than once; standard input or a pipe is copied to a temporary file.

    Use it as a context manager: at the end the copies are gone.

    Parameters
    ----------
    path : str or sequence of str
        Files of one format, ``"-"``, folders, or patterns. A pattern such as ``"part-*.jsonl"`` stands for the files
        that match it, and a folder of data files for these files, each in the order of their paths. In a folder of
        texts (``.txt``, ``.md``, ``.html``, source code, no ending, ...) each file is a document.
    format : Format, optional
        The format of every file; ``Format("files", "")`` makes a document of each file of a folder. Default: by the
        ending of each path.
    field : str, optional
        The column, or field of a JSON record, that holds the text; dots lead into nested ones, and several names with
        commas between are joined by a space. A column has a number, too, from 1. Default: the only one but the id, or
        ``text``, ``content``, ``body``.
    id_field : str, optional
        The column that holds the id. Default ``id``, where there is one; without an id, and with ``"none"``, the number
        of the record is the id.
    source_field : str, optional
        The column that says where a document is from. Default: its file is.
    header : bool, optional
        Whether the first record names the columns. Default: in ``csv``, not in ``tsv``, where a first line that looks
        like a header is an error. Without names a lone column is the text, else the first is the id and the second the
        text.
    delimiter : str, optional
        The character between the columns of ``csv`` and ``tsv``. Default: a comma, and a tab.
    encoding : str, optional
        Of text files. Default: UTF-8, which is not checked where nothing has to understand it.
    on_bad_line : {"error", "skip"}, optional
        What to do with a line that is not of the format, or a file of a folder that cannot be decoded: raise an error,
        or skip it and count it in `skipped`.
    missing : {"error", "empty"}, optional
        What to do with a record without a text, or with null for one: raise an error, or let its text be ``None`` and
        count it in `missing`.
    pattern : str, optional
        Which files of a folder are read, such as ``"*.txt"``. Hidden files are read where it begins with a dot; else
        they are counted in `hidden`.
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
        delimiter: str | None = None,
        encoding: str | None = None,
        on_bad_line: str = "error",
        missing: str = "error",
        pattern: str | None = None,
        rejects: Target | None = None,
    ) -> None:
        sources, hidden = find_sources([path] if isinstance(path, str) else path, format, pattern)
        first = sources[0]
        shown = "standard input" if first.path == STANDARD else first.path
        self.name = shown if len(sources) == 1 else f"{shown} and {len(sources) - 1} more"
        self.path, self.format = first
        options = ReadOptions(
            field=field,
            id_field=id_field,
            source_field=source_field,
            header=header,
            delimiter=None if delimiter is None else checked_delimiter(delimiter),
            encoding=checked_encoding("utf-8" if encoding is None else encoding),
            encoding_given=encoding is not None,
            skip_bad=_checks.choice("on_bad_line", on_bad_line, ("error", "skip")) == "skip",
            allow_missing=_checks.choice("missing", missing, ("error", "empty")) == "empty",
        )
        problem = _misused(self.format.name, options)
        if problem is not None:
            raise InputError(self.name, problem)
        self._counts = ReadCounts(None if rejects is None else rejects.write)
        self._counts.hidden = hidden
        self.inputs: list[Input] = []
        self._reader: Lines | Tables | Folder
        if self.format.name == FOLDER:
            self._reader = Folder(self.path, pattern, options, self._counts)
            return
        self.inputs = [Input(source.path, source.format.compression) for source in sources]
        if self.format.name in TABLES.values():
            self._reader = Tables(self.inputs, self.format.name, options, self._counts)
        else:
            self._reader = Lines(self.inputs, READERS[self.format.name], options, self._counts)

    def __enter__(self) -> Documents:
        return self

    def __exit__(self, *error: object) -> None:
        for file in self.inputs:
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
    def notes(self) -> list[str]:
        """What a person should know of how the documents are read: which column is the text, and the like."""
        return self._counts.notes

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


def _misused(format: str, options: ReadOptions) -> str | None:
    """Return what is wrong where the format has no use for an option, ``None`` where all have one."""
    described, has_cells = "a folder of texts" if format == FOLDER else f".{format}", format in ("csv", "tsv")
    has_header = format == "csv" if options.header is None else options.header
    fields = {"--field": options.field, "--id-field": options.named_id(), "--source-field": options.source_field}
    named = {option: given for option, given in fields.items() if given is not None}
    if format in ("txt", FOLDER) and (named or options.id_field):
        option = next(iter(named), "--id-field")
        return f"{option} is for .jsonl, .csv, .tsv, .parquet and .arrow, and this is {described}; leave it out"
    if options.header is not None and not has_cells:
        option = "--header" if options.header else "--no-header"
        return f"{option} is for .csv and .tsv, and this is {described}; leave it out"
    if options.delimiter is not None and not has_cells:
        return f"--delimiter is for .csv and .tsv, and this is {described}; leave it out"
    if format in TABLES.values() and (options.skip_bad or options.encoding_given):
        option = "--on-bad-line skip" if options.skip_bad else "--encoding"
        return f"{option} is for files of text, and this is {described}; leave it out"
    for option, given in named.items() if has_cells and not has_header else ():
        if not all(is_number(name.strip()) for name in given.split(",")):
            return f"{option} is {given!r}, and there is no header; use --header, or the number of a column"
    return None


def target(documents: Documents, path: str) -> Target | FolderTarget:
    """Return what `write_kept` can write the kept ones of some documents to.

    Parameters
    ----------
    documents : Documents
        A folder goes into a new folder, anything else into a file.
    path : str
        Where to; the ending of a file's name says how it is compressed.

    Raises
    ------
    ValueError
        If the folder is there already, or would lie within the folder of the documents.
    """
    if documents.format.name != FOLDER:
        if path != STANDARD and os.path.isdir(path):
            raise ValueError(f"OUTPUT must be a file, got the folder {path}")
        return Target(path, "" if documents.format.name in TABLES.values() else None)
    if path == STANDARD:
        raise ValueError("OUTPUT must be a new folder where INPUT is a folder, got - for standard output")
    inner, outer = os.path.realpath(path), os.path.realpath(documents.path)
    if os.path.commonpath([inner, outer]) == outer:
        raise ValueError(f"OUTPUT must not lie in INPUT ({documents.path}), got {path}; name a folder elsewhere")
    return FolderTarget(path)


def write_kept(documents: Documents, keep: Iterable[bool], target: Target | FolderTarget) -> None:
    """Write the documents that are kept as they came in.

    Lines go out byte for byte, records of CSV whole and after their header, rows with every column, files of a folder
    under their paths.

    Parameters
    ----------
    documents : Documents
        All documents.
    keep : iterable of bool
        One for each of its records.
    target : Target or FolderTarget
        What `target` returns for them.

    Raises
    ------
    InputError
        If their number is not what it was when they were read first.
    """
    flags, reader = iter(keep), documents._reader

    def is_kept() -> bool:
        flag = next(flags, None)
        if flag is None:
            raise InputError(documents.name, "it grew while it was read; run again when nothing writes to it")
        return bool(flag)

    if isinstance(reader, Folder):
        if not isinstance(target, FolderTarget):
            raise TypeError(f"the files of a folder go to a FolderTarget, got {type(target).__name__}")
        reader.write_kept(is_kept, target)
    elif isinstance(target, FolderTarget):
        raise TypeError("records go to a Target, got FolderTarget")
    else:
        reader.write_kept(is_kept, target)
    if next(flags, None) is not None:
        raise InputError(documents.name, "it shrank while it was read; run again when nothing writes to it")


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
