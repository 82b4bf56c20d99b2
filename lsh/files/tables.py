"""Parquet and Arrow IPC: documents are rows, of which one or more columns are read.

Kept rows are written with every column, the schema, its metadata, the row groups and, in Parquet, the compression of
each column. To read some rows again, only their row groups are read. No more than a row group, or `MAX_GATHERED` bytes,
is in memory. It needs pyarrow, of the extra ``io``.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import compute, types

from lsh.base.arrays import Array
from lsh.base.errors import InputError, Parameter, Words, words_of
from lsh.base.prefetch import prefetched
from lsh.files.places import Flags
from lsh.files.reached import Reached, ReadingPass
from lsh.files.records import (
    FIELD,
    ID_FIELD,
    KEEP_FIELD,
    MAX_WHOLE,
    SOURCE_FIELD,
    Block,
    Edits,
    Rank,
    Ranking,
    Ranks,
    ReadCounts,
    ReadOptions,
    Values,
    as_ranks,
    columns_note,
    decoded,
    listed,
    named_columns,
    numbered,
    place_of,
    utf8,
)
from lsh.files.table_files import ArrowTable, ParquetTable
from lsh.storage.inputs import Input, Report
from lsh.storage.targets import ShardTarget, Target
from lsh.text.batch import Batch
from lsh.text.collections import as_batch
from lsh.text.cuts import without

Value = TypeVar("Value")
MAX_GATHERED = 1 << 26  # bytes of rows that are gathered before they are written as a row group
TEXT_TYPES = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view", "null")


class _Columns(NamedTuple):
    """The columns that are read."""

    texts: Sequence[str]
    identity: str | None
    source: str | None
    rank: str | None

    def names(self) -> list[str]:
        """Return the columns, each once."""
        others = (self.identity, self.source, self.rank)
        return list(dict.fromkeys(name for name in (*self.texts, *others) if name is not None))

    def note(self, schema: Any, options: ReadOptions) -> Words:
        """Return the note that says which columns hold the text and the id."""

        def shown(name: str) -> str:
            place = f"{schema.names.index(name) + 1} " if name in schema.names else ""
            return f"column {place}{listed([name])}"

        identity = None if self.identity is None else shown(self.identity)
        return columns_note(list(map(shown, self.texts)), identity, schema.names if options.default_id() else ())


@dataclass
class _TablesReached(Reached):
    ends: list[int] = field(default_factory=list)  # the positions after the last row of each file that was read
    position: int = 0


class TablePass(ReadingPass):
    """One pass over Parquet or Arrow files, row by row.

    Parameters
    ----------
    inputs : sequence of Input
        The files; all have the same columns.
    format : str
        ``"parquet"`` or ``"arrow"``.
    options : ReadOptions
        How the documents are read.
    counts : ReadCounts
        Receives the counts and notes.
    """

    def __init__(self, inputs: Sequence[Input], format: str, options: ReadOptions, counts: ReadCounts) -> None:
        self._inputs, self._format, self._options, self._counts = inputs, format, options, counts
        self._schema: Any = None  # of the first file, once it is open
        self._ranking = Ranking("" if options.keep_field is None else options.keep_field)
        self.reached: _TablesReached = _TablesReached()

    def blocks(self) -> Iterator[Block]:
        """Yield the documents; after `restore`, the next ones."""
        reached = self.reached
        for number, file in enumerate(self._inputs):
            if number and number < len(reached.ends):
                continue
            with self._opened(file) as table:  # the first one shows the columns
                columns = self._columns(file.name, table.schema)
                self._counts.note(columns.note(table.schema, self._options))
                if number == len(reached.ends):
                    first = reached.ends[-1] if reached.ends else 0
                    for batch in table.rows(columns.names(), reached.position - first):
                        at, row = reached.position, reached.position - first
                        block = self._block(file.name, columns, batch, at, row, self._counts)
                        reached.position += len(batch)
                        yield block
                        file.share_read = table.share(reached.position - first)
                    reached.ends.append(reached.position)

    def prepare(self) -> None:
        """After `restore`, note the columns."""
        if self._schema is None:
            with self._opened(self._inputs[0]) as table:
                columns = self._columns(self._inputs[0].name, table.schema)
                self._counts.note(columns.note(table.schema, self._options))

    def _block(self, name: str, columns: _Columns, batch: Any, position: int, row: int, counts: ReadCounts) -> Block:
        """Return rows as a block; `row` is the number of rows of the file before them."""
        return Block(
            self._texts(name, row, columns.texts, [_column(batch, text) for text in columns.texts], counts),
            partial(_ids, batch, columns.identity, position, self._options.null_ids),
            partial(_sources, batch, columns.source, os.fsencode(name)),
            None if columns.rank is None else _ranks(name, batch, columns.rank, row, self._ranking),
        )

    def _extents(self) -> Iterator[tuple[int, Input, int, int]]:
        """Yield each file with its number, and the positions of its first row and after its last."""
        ends = self.reached.ends
        ends = ends if len(ends) == len(self._inputs) else self._metadata_ends
        return zip(range(len(ends)), self._inputs, [0, *ends], ends)

    @cached_property
    def _metadata_ends(self) -> list[int]:
        """The positions after the last row of each file, by its metadata."""
        return list(accumulate(map(self._num_rows, self._inputs)))

    def _num_rows(self, file: Input) -> int:
        with self._opened(file) as table:
            return sum(size for size, _ in table.groups())

    @property
    def count(self) -> int:
        """The number of rows of all files."""
        return max(stop for _, _, _, stop in self._extents())

    @property
    def starts(self) -> list[int]:
        """The position of the first row of each file."""
        return [position for _, _, position, _ in self._extents()]

    def at(self, positions: Array) -> Iterator[Block]:
        """Yield the documents at some positions, which ascend; row groups without any of them are not read."""
        for _, file, position, stop in self._extents():
            if not len(_between(positions, position, stop)):
                continue
            with self._opened(file) as table:
                columns, first = self._columns(file.name, table.schema), position
                for size, batches in table.groups(columns.names()):
                    if not len(_between(positions, position, position + size)):
                        position += size
                        continue
                    for batch in batches():
                        here = _between(positions, position, position + len(batch)) - position
                        if len(here):
                            block = self._block(file.name, columns, batch, position, position - first, ReadCounts())
                            yield block.chosen(here)
                        position += len(batch)
                    file.share_read = table.share(position - first)

    def write_kept(self, keep: Flags, target: Target | ShardTarget, report: Report, edits: Edits) -> None:
        """Write the rows that are kept, also with added columns or shortened texts; call `report` between parts."""
        writer: Any = None
        values, cuts = edits
        with ExitStack() as whole:
            for number, file, position, _ in self._extents():
                with self._opened(file) as table, target.part(number) as part, ExitStack() as shard:
                    if writer is None or part is not target:
                        opened = whole if part is target else shard
                        schema = self._schema if values is None else self._with_names(file.name)
                        writer = opened.enter_context(closing(table.writer(_Sink(part), schema)))
                    first = position
                    for size, batches in table.groups():
                        flags = keep[position : position + size]
                        rows = batches() if values is None else _with_values(batches(), schema, flags, values)
                        if cuts is not None:
                            rows = _with_cuts(rows, self._columns(file.name, schema).texts[0], flags, cuts)
                        _write_group(file.name, rows, schema, flags, writer)
                        position += size
                        file.share_read = table.share(position - first)
                        report(file, file.position)

    def _with_names(self, name: str) -> Any:
        """Return the schema with the added columns.

        An id has the type of the ids; beside text, as with references, which may have other ids, it is a string.
        """
        added, schema = self._options.added, self._schema
        kinds = {
            "number": pa.float64(),
            "count": pa.int64(),
            "text": pa.string(),
            "spans": pa.list_(pa.list_(pa.int64())),
        }
        if self._options.adds_ids:
            kinds["id"] = pa.string() if any(one.kind == "text" for one in added) else self._type_of_ids(name)
        for one in added:
            schema = schema.append(pa.field(one.name, kinds[one.kind]))
        return schema

    def _type_of_ids(self, name: str) -> Any:
        identity = self._columns(name, self._schema).identity
        if identity is None:
            return pa.int64()
        kind = _without_view(self._type(name, self._schema, identity, ID_FIELD))
        kind = kind.value_type if types.is_dictionary(kind) else kind
        if types.is_null(kind) or (types.is_integer(kind) and kind.bit_width < 64):  # row numbers are ids, too
            return pa.int64()
        return kind

    @contextmanager
    def _opened(self, file: Input) -> Iterator[ParquetTable | ArrowTable]:
        """Open a file with the schema of the first one; what pyarrow cannot read is an error of the input."""
        try:
            with file.opened() as opened:
                table = ParquetTable(opened) if self._format == "parquet" else ArrowTable(opened)
                self._schema = table.schema if self._schema is None else self._schema
                if not self._schema.equals(table.schema):
                    expected, got = _listed(self._schema), _listed(table.schema)
                    problem = f"expected the columns of the first file, {expected}, got {got}; make them alike"
                    raise InputError(file.name, problem)
                yield table
        except (pa.ArrowException, EOFError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # an error of the system, not of the data
            problem = str(error).partition("\n")[0]
            raise InputError(file.name, f"corrupt .{self._format} file ({problem}); create it anew") from error

    def _columns(self, name: str, schema: Any) -> _Columns:
        """Return the columns of the text and the other fields, after a check of their names and types."""
        if clash := self._options.clash(schema.names):
            raise InputError(name, clash)
        fields, named = named_columns(schema.names, self._options, partial(InputError, name))
        texts = [_by_number(schema, field) for field in fields]
        for text in texts:
            kind = self._type(name, schema, text, FIELD)
            if not _is_text(kind):
                problem = f"column {text!r} must hold strings, got {kind}"
                raise InputError(name, f"{problem}; name the text's column with " + FIELD)
        identity = None if named is None else _by_number(schema, named)
        source = None if self._options.source_field is None else _by_number(schema, self._options.source_field)
        rank = None if self._options.keep_field is None else _by_number(schema, self._options.keep_field)
        for column, option in ((identity, ID_FIELD), (source, SOURCE_FIELD), (rank, KEEP_FIELD)):
            kind = None if column is None else self._type(name, schema, column, option)
            is_known = kind is None or _is_identity(kind) or (option != ID_FIELD and _is_time(kind))
            is_known |= option == KEEP_FIELD and kind is not None and _is_rank(kind)
            if not is_known:
                or_dates = ", numbers or dates" if option == KEEP_FIELD else " or numbers"
                problem = f"column {column!r} must hold strings{or_dates}, got {kind}"
                raise InputError(name, f"{problem}; name another column with " + option)
        return _Columns(texts, identity, source, rank)

    def _type(self, name: str, schema: Any, column: str, option: Parameter) -> Any:
        """Return the type of a column, by its name or by dots."""
        first, *rest = _path_of(schema, column)
        kind: Any = schema.field(first).type if schema.names.count(first) == 1 else None
        for part in rest:
            inside = kind is not None and types.is_struct(kind) and kind.get_field_index(part) >= 0
            kind = kind.field(part).type if inside else None
        if kind is None:
            if column in schema.names:
                raise InputError(name, f"it has several columns {column!r}; rename them")
            problem = f"no column {column!r} among {_listed(schema)}; name the right one with " + option
            raise InputError(name, problem, lacks=option.name)
        return kind

    def _texts(self, name: str, row: int, texts: Sequence[str], columns: list[Any], counts: ReadCounts) -> Batch:
        """Return the texts of some rows: the column as it is, or of several ones those of each row joined."""
        nulls = [column.is_null().index(True).as_py() for column in columns if column.null_count]
        if nulls and not self._options.allow_missing:
            place = min(nulls)
            text = next(text for text, column in zip(texts, columns) if not column[place].is_valid)
            raise InputError(
                name, f"row {row + place + 1}: column {text!r} is null; use " + Parameter("missing", "empty")
            )
        if len(columns) == 1:
            counts.missing += columns[0].null_count
            return as_batch(texts[0], columns[0], missing=True)
        cells = zip(*[as_batch(text, column, missing=True).tolist() for text, column in zip(texts, columns)])
        found = [[cell for cell in row if cell is not None] for row in cells]
        counts.missing += found.count([])
        return Batch([b" ".join(row) if row else None for row in found], missing=True)


def _with_values(group: Iterator[Any], schema: Any, keep: Flags, values: Iterator[Values | None]) -> Iterator[Any]:
    """Yield batches of rows with the added columns, null for rows without values, and those that are not kept."""
    for batch, cells in _with_next(group, keep, values):
        fields = list(schema)[len(batch.schema) :]
        arrays = [
            _cells([None if one is None else one[number] for one in cells], field.type)
            for number, field in enumerate(fields)
        ]
        yield pa.RecordBatch.from_arrays([*batch.columns, *arrays], schema=schema)


def _with_cuts(group: Iterator[Any], column: str, keep: Flags, cuts: Iterator[Array | None]) -> Iterator[Any]:
    """Yield batches of rows with the texts of a column shortened, and those that are not kept."""
    for batch, own in _with_next(group, keep, cuts):
        changed = {place: one for place, one in enumerate(own) if one is not None}
        yield batch if not changed else _replaced(batch, _path_of(batch.schema, column), changed)


def _with_next(
    group: Iterator[Any], keep: Flags, values: Iterator[Value | None]
) -> Iterator[tuple[Any, list[Value | None]]]:
    """Yield batches of rows with what `values` has for each row that is kept, ``None`` for the others."""
    row = 0
    for batch in group:
        kept = keep[row : row + len(batch)]
        row += len(batch)
        yield batch, [next(values) if one else None for one in kept.tolist()]


def _path_of(schema: Any, column: str) -> list[str]:
    """Return the names that lead to a column, by its name or by dots."""
    return [column] if schema.names.count(column) == 1 else column.split(".")


def _replaced(rows: Any, path: list[str], cuts: dict[int, Array]) -> Any:
    """Return a batch, or an array of structs, with the texts at some places shortened."""
    is_batch = isinstance(rows, pa.RecordBatch)
    fields = list(rows.schema if is_batch else rows.type)
    columns = list(rows.columns) if is_batch else [rows.field(number) for number in range(len(fields))]
    number = [field.name for field in fields].index(path[0])
    columns[number] = _replaced(columns[number], path[1:], cuts) if path[1:] else _shortened(columns[number], cuts)
    fields[number] = fields[number].with_type(columns[number].type)
    if is_batch:
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, rows.schema.metadata))
    return pa.StructArray.from_arrays(columns, fields=fields, mask=rows.is_null())


def _shortened(texts: Any, cuts: dict[int, Array]) -> Any:
    """Return an array of texts in which some are shortened; one of views becomes one of large strings."""
    kind = _without_view(texts.type)
    plain = kind.value_type if types.is_dictionary(kind) else kind
    found = texts.cast(plain).cast(pa.large_binary())
    chosen = np.zeros(len(texts), np.bool_)
    chosen[list(cuts)] = True
    left = [without(found[place].as_py(), own) for place, own in cuts.items()]
    changed = compute.replace_with_mask(found, pa.array(chosen), pa.array(left, pa.large_binary())).cast(plain)
    return changed.dictionary_encode().cast(kind) if types.is_dictionary(kind) else changed


def _cells(values: Sequence[bytes | None], kind: Any) -> Any:
    """Return an array of ids or other values; bytes that a string cannot hold are written as escapes."""
    if types.is_list(kind):
        return pa.array([None if one is None else json.loads(one) for one in values], kind)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return pa.array(values, pa.binary()).cast(kind)
    texts = [None if one is None else decoded(one).encode("utf-8", "backslashreplace") for one in values]
    return pa.array(texts, pa.binary()).cast(pa.string()).cast(kind)


def _write_group(name: str, group: Iterator[Any], schema: Any, keep: Flags, writer: Any) -> None:
    """Write the kept rows of a row group as one, or as several where they are large."""
    plain = _without_views(schema)
    gathered: list[Any] = []
    size = row = 0
    for batch in prefetched(group) if keep.any() else ():
        with _writing(name):
            mask = pa.array(keep[row : row + len(batch)])
            gathered.append((batch if plain is schema else batch.cast(plain)).filter(mask))
            row += len(batch)
            size += gathered[-1].nbytes
            if size > MAX_GATHERED:
                _flush(gathered, plain, schema, writer)
                size = 0
    with _writing(name):
        _flush(gathered, plain, schema, writer)


@contextmanager
def _writing(name: str) -> Iterator[None]:
    """Turn what pyarrow cannot write into an error of its own: it is no corrupt input."""
    try:
        yield
    except pa.ArrowException as error:
        cause = str(error).partition("\n")[0]
        problem = f"pyarrow cannot write such rows ({cause}); convert the column, or leave it out"
        raise InputError(name, problem) from error


def _flush(gathered: list[Any], plain: Any, schema: Any, writer: Any) -> None:
    table = pa.Table.from_batches(gathered, plain)
    if len(table):
        table = table.combine_chunks()
        writer.write_table(table if plain is schema else table.cast(schema), len(table))
    gathered.clear()


def _without_views(schema: Any) -> Any:
    """Return a schema without types of views, the same one if it has none.

    pyarrow cannot choose rows of views, which Polars writes, and would write the bytes of rows that are left out, too.
    """
    fields = [field.with_type(_without_view(field.type)) for field in schema]
    found = pa.schema(fields, schema.metadata)
    return schema if found.equals(schema) else found


def _without_view(kind: Any) -> Any:
    """Return a type with the strings of a view, or of one within lists or structs, as large strings."""
    plain = {"string_view": pa.large_string(), "binary_view": pa.large_binary()}
    if types.is_struct(kind):
        return pa.struct([field.with_type(_without_view(field.type)) for field in kind])
    for is_list, make in (
        (types.is_list, pa.list_),
        (types.is_large_list, pa.large_list),
    ):
        if is_list(kind):
            return make(kind.value_field.with_type(_without_view(kind.value_type)))
    return plain.get(str(kind), kind)


class _Sink(io.RawIOBase):
    """A target as a file that pyarrow can write to."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._target.write(data)
        return len(data)


def _column(batch: Any, name: str) -> Any:
    """Return a column by its name or, within a nested one, by dots; one of numbered values with the values."""
    if name in batch.schema.names:
        column = batch.column(name)
    else:
        first, *rest = name.split(".")
        column = compute.struct_field(batch.column(first), rest)
    return column.dictionary_decode() if types.is_dictionary(column.type) else column


def _ids(batch: Any, name: str | None, position: int, null_ids: bool) -> Batch:
    """Return the ids of rows from some position of all rows on; where there is none, it is the number of the row.

    Without `null_ids`, a null in the column of the ids is an empty id.
    """
    column, numbers = None if name is None else _column(batch, name), range(position + 1, position + 1 + len(batch))
    if column is None:
        return Batch([b"%d" % number for number in numbers])
    is_plain = _is_text(column.type) and not column.null_count
    ids = as_batch(str(name), column) if is_plain else Batch([_as_bytes(value, b"") for value in column.to_pylist()])
    return numbered(ids, numbers) if null_ids else ids


def _sources(batch: Any, name: str | None, file: bytes) -> list[bytes]:
    """Return where the rows are from."""
    if name is None:
        return [file] * len(batch)
    column = _column(batch, name)
    if types.is_timestamp(column.type):  # Python has no nanoseconds
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    return [_as_bytes(value, b"") for value in column.to_pylist()]


def _ranks(name: str, batch: Any, column: str, row: int, ranking: Ranking) -> Ranks:
    """Return the values by which rows are ranked; `row` is the number of rows of the file before them."""
    values = _column(batch, column)
    problem = Parameter("keep_field", column) + ": expected a number or a date"
    if _is_text(values.type):
        found: list[Rank] = []
        for value in values.to_pylist():
            try:
                found.append(ranking.one(value))
            except ValueError as error:
                raise InputError(name, f"row {row + len(found) + 1}: " + words_of(error)) from None
        return as_ranks(found)
    if values.null_count:
        place = values.is_null().index(True).as_py()
        raise InputError(name, f"row {row + place + 1}: " + problem + ", got no value")
    if _is_time(values.type):
        zone = values.type.tz if types.is_timestamp(values.type) else None
        is_finer = types.is_timestamp(values.type) and values.type.unit == "ns"
        try:
            return np.asarray(values.cast(pa.timestamp("us", zone), safe=not is_finer).cast(pa.int64()))
        except pa.ArrowInvalid:
            raise InputError(name, problem + " within 290,000 years of 1970 in all rows, got one beyond") from None
    ranks = np.asarray(values if types.is_integer(values.type) else compute.cast(values, "float64", safe=False))
    if ranks.dtype == np.uint64:
        return ranks.astype(np.float64 if (ranks > MAX_WHOLE).any() else np.int64)
    unfit = np.flatnonzero(~np.isfinite(ranks))
    if len(unfit):
        raise InputError(name, f"row {row + int(unfit[0]) + 1}: " + problem + f", got {ranks[unfit[0]]}")
    return ranks


def _between(positions: Array, first: int, stop: int) -> Array:
    """Return the positions from `first` to `stop` - 1."""
    return positions[slice(*np.searchsorted(positions, [first, stop]).tolist())]


def _as_bytes(value: Any, default: bytes) -> bytes:
    """Return an id or a source."""
    if value is None:
        return default
    return utf8(value if isinstance(value, (str, bytes)) else str(value))


def _is_text(kind: Any) -> bool:
    return str(kind.value_type if types.is_dictionary(kind) else kind) in TEXT_TYPES


def _is_identity(kind: Any) -> bool:
    return _is_text(kind) or types.is_integer(kind) or types.is_floating(kind)


def _is_rank(kind: Any) -> bool:
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return _is_identity(kind) or _is_time(kind) or types.is_decimal(kind)


def _is_time(kind: Any) -> bool:
    return bool(types.is_timestamp(kind) or types.is_date(kind))


def _listed(schema: Any) -> str:
    return listed(schema.names) or "no columns at all"


def _by_number(schema: Any, column: str) -> str:
    """Return the name of a column that is named by its number, else what it is named."""
    place = None if column in schema.names else place_of(schema.names, column)
    return column if place is None else str(schema.names[place])
