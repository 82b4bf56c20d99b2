"""What all formats of text share: opening files, marks, headers, blocks of lines, bad lines, numbers, kept records.

A file is cut into records: lines or, in CSV, one line or more. The first reading notes where each record is, so that it
can be parsed again without the others, and is written byte for byte. Lines end at a newline only. UTF-8 is checked only
if a format requires it; lines in other encodings become UTF-8 before a reader sees them.

The `Reader` of each format, in `text_formats`, parses the records in two ways: `many` parses a block of whole lines in
C, `one` a single record in Python. `many` returns ``None`` for a block that is not plain; `one` then reads about as
many bytes record by record, and names the line of an error. Both ways give the same documents.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, chain, tee
from typing import IO, Any, cast

import numpy as np

from lsh.base.arrays import Array
from lsh.base.errors import InputError, words_of
from lsh.base.file_io import read_at
from lsh.files.blocks import (
    BY_MARK,
    MARKS,
    READ_SIZE,
    LineStream,
    blocks,
    check_mark,
    chunks,
    file_blocks,
    mark_of,
    note_bytes,
    split,
)
from lsh.files.places import Flags, Located, Places
from lsh.files.reached import Reached, ReadingPass
from lsh.files.readers import FieldColumns, Fields, Reader, is_blank, line_records, recoded
from lsh.files.records import (
    AddedFieldError,
    Block,
    Edits,
    ReadCounts,
    Record,
    Values,
    block_of,
    gathered,
    numbered,
)
from lsh.storage import compression
from lsh.storage.disk import descriptor
from lsh.storage.inputs import Input, Report
from lsh.storage.targets import ShardTarget, Target
from lsh.text.batch import Batch

MAX_GROWN_BLOCK = 1 << 29  # bytes of a block that grows because a record is longer than the block
MAX_START = 1 << 16  # bytes of a file of which the first line is checked


@dataclass
class _LinesReached(Reached):
    # of each file: its byte order mark, its header, and, if its last record is a document without an end of line, the
    # end of the line before
    marks: list[bytes] = field(default_factory=list)
    headers: list[bytes] = field(default_factory=list)
    missing_ends: list[bytes] = field(default_factory=list)
    line_end: bytes = b""  # of the last record of the file that has one, or of its header
    number: int = 0  # of the record that was read last
    offset: int = 0  # of the next line in the last file
    line: int = 0  # the number of the line before


class LinePass(ReadingPass):
    """One pass over the text files of one format, from the first record to the last.

    Parameters
    ----------
    inputs : sequence of Input
        The files; all have the same header.
    reader : Reader
        The reader of their format, which has read nothing.
    counts : ReadCounts
        Receives the counts, the notes and the skipped lines.
    places : Places, optional
        Receives the places of the records, so that `at` and `write_kept` find them.
    """

    def __init__(self, inputs: Sequence[Input], reader: Reader, counts: ReadCounts, places: Places | None) -> None:
        self._inputs, self._reader, self._counts, self._places = inputs, reader, counts, places
        self._options = reader.options
        self._encoding = reader.options.codec  # with its byte order once a file is open
        self._lines: LineStream | None = None  # of the file that is open
        self.reached: _LinesReached = _LinesReached()
        if places is not None and counts.is_journaled:
            places.news = []

    @property
    def newline(self) -> bytes:
        """The bytes that end a line."""
        return b"\n" if self._encoding == "utf-8" else "\n".encode(self._encoding)

    def blocks(self) -> Generator[Block]:
        """Yield the documents."""
        reached = self.reached
        begun = len(reached.marks) - 1  # the number of the file to go on with
        self.prepare()
        for number, file in enumerate(self._inputs):
            if number < begun:
                continue
            if self._places is not None and number > begun:
                self._places.begin_file()
            with self._opened(file, number == 0, goes_on=number == begun) as (mark, header, lines):
                self._lines = lines
                if number > begun:
                    reached.marks.append(mark)
                    reached.headers.append(header)
                    reached.missing_ends.append(b"")
                    reached.line_end = self.newline
                    if header:
                        self._note_end(header, 0, len(header))
                for block in self._blocks_of(file, lines):
                    self._counts.note(self._reader.note())
                    yield block
        problem = self._reader.problem_at_end()
        if problem is not None:
            raise problem

    # ---- what another process needs to go on ----

    def taken(self) -> tuple[Any, list[Array]]:
        """Return what `restore` needs of this pass, as far as it has come: what is new since the last call."""
        assert self._lines is not None
        self.reached.offset, self.reached.line = self._lines.offset, self._lines.number
        places, entries = self._known_places.taken()
        return [self.reached.taken(), places, self._encoding, self._reader.flags()], [entries]

    def restore(self, state: Any, arrays: Sequence[Array]) -> None:
        """Go on from where `taken` was called in another process, call by call."""
        reached, places, self._encoding, flags = state
        self.reached.restore(reached)
        self._known_places.restore(places, arrays[0])
        self._reader.set_flags(flags)

    def prepare(self) -> None:
        """After `restore`, read the first documents again, as they show the columns."""
        if not self.reached.marks:
            return
        if not self._reader.is_ready:
            with closing(LinePass(self._inputs, self._reader, ReadCounts(), None).blocks()) as blocks:
                next(blocks, None)
        self._counts.note(self._reader.note())

    # ---- records by their places ----

    def at(self, positions: Array) -> Iterator[Block]:
        """Yield the documents at some positions, which ascend."""
        for number, file in enumerate(self._inputs[: len(self.reached.marks)]):
            here = positions[slice(*np.searchsorted(positions, self._known_places.extent(number)))]
            if not len(here):
                continue
            for records, data in self._read(number, file, here):
                yield self._parsed(file, records, data)

    def _read(self, number: int, file: Input, positions: Array) -> Iterator[tuple[Located, bytes]]:
        """Return the records of a file at some positions, which ascend, in blocks with their bytes."""
        found = chain.from_iterable(each.blocks(READ_SIZE) for each in self._known_places.find(number, positions))
        blocks, others = tee(found)
        return zip(blocks, file.parts(other.runs() for other in others))

    @property
    def count(self) -> int:
        """The number of documents that were read."""
        return self._known_places.count

    @property
    def starts(self) -> list[int]:
        """The position of the first document of each file."""
        return [self._known_places.extent(number)[0] for number in range(len(self._inputs))]

    @property
    def _known_places(self) -> Places:
        assert self._places is not None
        return self._places

    def _parsed(self, file: Input, records: Located, data: bytes) -> Block:
        """Parse the bytes of some records again, together or else one by one."""
        columns = self._many(data)
        if columns is not None and np.array_equal(columns.spans[:, 1], records.ends - records.begins):
            return self._block(columns, records.numbers.tolist(), os.fsencode(file.name))
        raws = zip(_raws(records, data), records.numbers.tolist())
        try:
            return block_of([self._single(file, raw, number) for raw, number in raws])
        except InputError as error:  # it was none at the first reading
            raise file.changed() from error

    def _single(self, file: Input, raw: bytes, number: int) -> Record:
        """Parse a record again."""
        found = list(self._reader.records(LineStream(iter([raw]), self.newline), file.name, self._encoding))
        if len(found) != 1 or found[0].problem:
            raise file.changed()
        return self._document(self._reader.one(found[0]), number, os.fsencode(file.name))

    def write_kept(self, keep: Flags, target: Target | ShardTarget, report: Report, edits: Edits) -> None:
        """Write the kept records, as they were read or changed, after the first mark and header of a part."""
        change = None if edits.values is None else self._with_values(edits.values)
        change = change if edits.cuts is None else self._with_cuts(edits.cuts)
        last: Target | None = None
        has_header, end = False, b""  # what the last line that was written lacks at its end
        heads = zip(self._inputs, self.reached.marks, self.reached.headers, self.reached.missing_ends)
        for number, (file, mark, header, missing_end) in enumerate(heads):
            first, stop = self._known_places.extent(number)
            with target.part(number) as part:
                if part is not last:
                    part.write(mark)
                    last, has_header, end = part, False, b""
                if header and not has_header:
                    part.write(
                        end + (header if edits.values is None else self._added(header, self._reader.added_names))
                    )
                    has_header, end = True, b"" if header.endswith(self.newline) else self.newline
                if keep[first:stop].any():
                    part.write(end)
                    if change is None:
                        file.copy(self._kept_parts(number, keep), part.write, report)
                    else:
                        for lines in self._changed(number, file, keep, change):
                            part.write(lines)
                            report(file, file.position)
                    end = missing_end if keep[stop - 1] else b""

    def _changed(self, number: int, file: Input, keep: Flags, change: Callable[[bytes], bytes]) -> Iterator[bytes]:
        """Yield the kept records of a file, each as a function returns it, many together."""
        first, stop = self._known_places.extent(number)
        for records, data in self._read(number, file, np.flatnonzero(keep[first:stop]) + first):
            lines = []
            for raw, place in zip(_raws(records, data), records.numbers.tolist()):
                try:
                    lines.append(change(raw))
                except ValueError as error:
                    raise InputError(file.name, f"record {place:,}: " + words_of(error)) from None
            yield b"".join(lines)

    def _with_values(self, values: Iterator[Values | None]) -> Callable[[bytes], bytes]:
        """Return a function that adds fields to one record after the other."""
        return lambda raw: self._added(raw, partial(self._reader.added_values, values=next(values)))

    def _with_cuts(self, cuts: Iterator[Array | None]) -> Callable[[bytes], bytes]:
        """Return a function that shortens the text of one record after the other."""

        def change(raw: bytes) -> bytes:
            own = next(cuts)
            if own is None:
                return raw
            if self._encoding == "utf-8":
                return self._reader.shortened(raw, own)
            line = raw.decode(self._encoding).encode("utf-8", "surrogatepass")
            return self._reader.shortened(line, own).decode("utf-8", "surrogatepass").encode(self._encoding)

        return change

    def _added(self, raw: bytes, add: Callable[[bytes], tuple[bytes, int]]) -> bytes:
        """Return a line with what a function adds to it; all other bytes stay."""
        line = raw if self._encoding == "utf-8" else raw.decode(self._encoding).encode()
        more, size = add(line)
        end = line[len(line) - size :]
        if line is not raw:
            try:
                more, end = (one.decode().encode(self._encoding) for one in (more, end))
            except UnicodeError:
                raise ValueError(f"an added field cannot be written in {self._encoding}") from None
        return raw[: len(raw) - len(end)] + more + end

    def _kept_parts(self, number: int, keep: Flags) -> Iterator[tuple[Array, Array]]:
        """Yield where the bytes of kept records of a file begin and end, in parts of about `READ_SIZE` bytes."""
        for first, records in self._known_places.located(number):
            kept = records.chosen(keep[first : first + len(records.begins)])
            if len(kept.begins):
                yield from (part.runs() for part in kept.blocks(READ_SIZE))

    # ---- records by reading ----

    @contextmanager
    def _opened(self, file: Input, is_first: bool, goes_on: bool) -> Iterator[tuple[bytes, bytes, LineStream]]:
        """Open a file; yields its byte order mark and its header, both may be empty, and the lines after them.

        If the pass goes on with the file, the lines are those from the place that was reached.
        """
        try:
            with file.opened() as opened:
                mark, lines = self._lines_of(file, opened, is_first)
                records = self._reader.records(lines, file.name, self._encoding)
                given = self._options.header
                header = next(records, None) if (self._reader.has_header if given is None else given) else None
                if header is not None:
                    if header.problem:
                        raise header.error(f"{header.problem}; correct the header")
                    self._reader.take_header(header)
                if goes_on:
                    lines = self._skipped(opened, lines)
                yield mark, b"" if header is None else header.raw, lines
        except compression.DamagedError as error:
            raise file.damaged(error, _complete_lines(file)) from error

    def _lines_of(self, file: Input, opened: IO[bytes], is_first: bool) -> tuple[bytes, LineStream]:
        """Return the byte order mark, or no bytes, and the lines; the encoding is known then."""
        encoding = self._options.codec
        number = descriptor(opened)
        read = iter(()) if number is not None else chunks(opened)
        start = next(read, b"") if number is None else read_at(number, MAX_START, 0)
        file.check_plain(start)
        if self._options.encoding is None:
            check_mark(start, file.name)
        if encoding in BY_MARK:
            encoding = mark_of(start, encoding) or f"{encoding}-le"
        mark = MARKS.get(encoding, b"")
        mark = mark if start.startswith(mark) else b""
        if not is_first and encoding != self._encoding:
            raise InputError(file.name, f"expected {self._encoding}, as in the first file, got {encoding}; convert it")
        self._encoding = encoding
        if number is None:
            found = blocks(chain([start[len(mark) :]], read), self.newline)
        else:
            found = file_blocks(number, self.newline, len(mark))
        lines = LineStream(found, self.newline, offset=len(mark))
        self._check_start(file, lines)
        return mark, lines

    def _skipped(self, opened: IO[bytes], lines: LineStream) -> LineStream:
        """Return the lines of a file from the place that was reached."""
        file, offset = descriptor(opened), self.reached.offset
        if file is None:  # compressed, or of a URL
            lines.skip_to(offset)
            return lines
        found = LineStream(file_blocks(file, self.newline, offset), self.newline, offset)
        found.number = self.reached.line
        return found

    def _check_start(self, file: Input, lines: LineStream) -> None:
        """Let the reader look at the first line that is not blank."""
        block = lines.block()
        start = LineStream(iter([block[:MAX_START]]), self.newline)
        for record in line_records(start, file.name, self._encoding):
            if record.cells and not is_blank(record.cells[0]):
                problem = self._reader.start_problem(record.cells[0].decode("utf-8", "replace"))
                if problem:
                    raise record.error(problem)
                break
        lines.give_back(block)

    def _blocks_of(self, file: Input, lines: LineStream) -> Iterator[Block]:
        """Yield the documents of a file."""
        notes_bytes = self._encoding == "utf-8" and not self._reader.checks_utf8
        is_first = not self._reader.is_ready  # the first record shows the columns, and is read by itself
        while block := lines.block():
            if notes_bytes and not block.isascii():
                note_bytes(self._counts, block, file.name, lines.number - lines.count(block) + 1)
            columns = None
            if self._reader.is_ready:
                block, columns = self._grown(block, lines)
            if columns is None:
                lines.give_back(block)
                yield from gathered(self._documents(file, lines, 1 if is_first else len(block)))
            else:
                offset = lines.offset - len(block)
                lines.give_back(block[columns.size :])
                yield self._numbered(columns, file, block, offset)
            is_first = False

    def _grown(self, block: bytes, lines: LineStream) -> tuple[bytes, FieldColumns | None]:
        """Read a block; add the next lines to it as long as its first record is not whole."""
        columns = self._many(block)
        while columns is not None and not columns.size:
            parts, size = [block], 0
            while size < len(block) <= MAX_GROWN_BLOCK and (more := lines.block()):  # until it is twice as long
                parts.append(more)
                size += len(more)
            block = b"".join(parts)
            columns = self._many(block) if size else None
        return block, columns

    def _many(self, block: bytes) -> FieldColumns | None:
        """Read the records of a block in the encoding of the file; ``None`` if any of them is not plain."""
        if self._encoding == "utf-8":
            return self._reader.many(block)
        raws = split(block, self.newline)
        try:
            own = [recoded(raw, self._encoding) for raw in raws]
        except UnicodeError:
            return None
        columns = self._reader.many(b"".join(own))
        if columns is None:
            return None
        places = np.array([[0, *accumulate(map(len, one))] for one in (own, raws)])  # records are whole lines
        ends = columns.spans[:, 0] + columns.spans[:, 1]
        at, stop, size = (
            places[1][np.searchsorted(places[0], one)] for one in (columns.spans[:, 0], ends, columns.size)
        )
        return columns._replace(size=int(size), spans=np.stack([at, stop - at], axis=1))

    def _numbered(self, columns: FieldColumns, file: Input, block: bytes, offset: int) -> Block:
        """Return the documents of a block that begins at some offset of its file."""
        count, first = len(columns.texts), self.reached.number + 1
        self.reached.number += count
        if self._places is not None and count:
            begins = columns.spans[:, 0] + offset
            self._places.add(begins, begins + columns.spans[:, 1])
            begin, size = columns.spans[-1].tolist()
            self._note_end(block, begin, begin + size)
        return self._block(columns, range(first, first + count), os.fsencode(file.name))

    def _note_end(self, block: bytes, begin: int, end: int) -> None:
        """Note the end of line of a record, the last of the file so far, in a block that begins with a record.

        If it has none, that of the record or header before it is noted as what the file lacks.
        """
        size = len(self.newline)
        is_whole = block.endswith(self.newline, 0, end)
        if stop := end if is_whole else begin:
            carriage = "\r".encode(self._encoding)
            self.reached.line_end = (carriage if block.endswith(carriage, 0, stop - size) else b"") + self.newline
        if not is_whole:
            self.reached.missing_ends[-1] = self.reached.line_end

    def _block(self, columns: FieldColumns, numbers: Sequence[int], name: bytes) -> Block:
        """Return documents; without ids the numbers are the ids, without sources the file is the source."""

        def ids() -> Batch:
            if columns.identities is None:
                return Batch([b"%d" % number for number in numbers])
            return numbered(columns.identities, numbers) if self._options.null_ids else columns.identities

        def sources() -> Sequence[bytes]:
            return [name] * len(numbers) if columns.sources is None else cast(list[bytes], columns.sources.tolist())

        return Block(columns.texts, ids, sources, columns.ranks)

    def _documents(self, file: Input, lines: LineStream, size: int) -> Iterator[Record]:
        """Yield the records that are documents, each read by itself; they end when `size` bytes or more are read."""
        name, stop = os.fsencode(file.name), lines.offset + size
        records = self._reader.records(lines, file.name, self._encoding)
        while lines.offset < stop and (record := next(records, None)) is not None:
            self.reached.number += 1
            begin = lines.offset - len(record.raw)
            try:
                if record.problem:
                    raise record.bad(record.problem)
                fields = self._reader.one(record)
            except InputError as error:
                if not self._options.skip_bad or isinstance(error, AddedFieldError):
                    file.check_unchanged()
                    raise
                self._counts.skip(record.raw if record.raw.endswith(self.newline) else record.raw + self.newline)
                if self._places is not None:
                    self._places.add_one(begin, lines.offset, False)
                continue
            self._counts.missing += fields.text is None
            if self._places is not None:
                self._places.add_one(begin, lines.offset)
                self._note_end(record.raw, 0, len(record.raw))
            yield self._document(fields, self.reached.number, name)

    def _document(self, fields: Fields, number: int, file: bytes) -> Record:
        """Return the document of a record; without an id its number is the id, without a source the file."""
        is_numbered = fields.identity is None or (self._options.null_ids and not fields.identity)
        identity = b"%d" % number if is_numbered else fields.identity or b""
        return Record(identity, fields.text, file if fields.source is None else fields.source, fields.rank)


def _raws(records: Located, data: bytes) -> Iterator[bytes]:
    """Return the bytes of each of some records, which follow one another in `data`."""
    ends = np.cumsum(records.ends - records.begins).tolist()
    return map(data.__getitem__, map(slice, [0, *ends], ends))


def _complete_lines(file: Input) -> int:
    """Return how many lines of a corrupt file can be read."""
    count = 0
    with suppress(compression.DamagedError), file.opened() as opened:
        for _ in opened:
            count += 1
    return count
