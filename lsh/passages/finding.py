"""Repeated passages of a whole corpus: `find_passages`.

The steps: keys of all texts, the keys that occur more than once, the runs of text around these, and a decision about
each run, in the order of the documents. Only keys and runs are held, within a limit of memory; the texts are read
twice. The compiled modules do the steps; this module defines the order and the result.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import NamedTuple, get_args

import numpy as np

from lsh.base import checks, errors
from lsh.base.arrays import Array
from lsh.base.budget import MAX_DOCUMENTS, bound_error
from lsh.base.progress import Progress
from lsh.base.threads import map_in_order
from lsh.engine.collection import Collection, expected_documents
from lsh.engine.corpus import MAX_READ
from lsh.engine.dedup import Running, collections_of
from lsh.engine.index_source import IndexSource
from lsh.engine.matching import check_length, checked_keep, rank_by_priority
from lsh.engine.placing import PartitionedRows
from lsh.links.linking import positions_of
from lsh.passages.cutting import ROW, RUN, Cutter
from lsh.passages.repeats import AnchorFinder, KeyTable, passage_keys, passage_runs, unit_keys, unit_runs, units_of
from lsh.passages.result import Passages, cuts_of
from lsh.text.batch import Batch, content_keys, num_bytes
from lsh.text.collections import extents
from lsh.text.shingling import Shingles, ascii_flags, normalizer
from lsh.typing import Keep, Missing, PassageUnit, Piece, SupportsArray, TextsOrCallable

__all__ = ["find_passages"]

MIN_WINDOW = 8  # bytes of the shortest passage
MAX_WINDOW = 1 << 24
BATCH_TEXTS = 1 << 12  # texts in a batch for a thread, at most,
BATCH_BYTES = 1 << 20  # and about so many bytes
CHUNK_BYTES = 1 << 22  # of stored text that are put together; a limit counts pieces of memory that are so large
DOCUMENTS_STEP = 1 << 12  # documents whose keys are looked up at once
DECIDED = 1 << 16  # runs that are decided at once
SORT_BYTES = 24  # per key that is sorted: itself, a copy, and flags
MAX_PARTS = 1 << 12
SCANNED_PARTS = 8  # where parts are more, keys are copied by part; else each part reads all, which takes less time
DOCUMENT_BYTES = 24  # per document, always in memory: flags and positions of those that are read again
ORDERED_BYTES = 40  # the same, if documents have priorities: these, and their order, too
RUN_ORDER_BYTES = 24  # per run, if they are not decided as they come: their order while it is made
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: a product has its best bits at the top
HALF = np.uint64(32)  # of its bits
SIDES = np.array(["new", "old"])
#: The time of each stage relative to the first one, for the progress.
STAGE_SHARES = {"passages": 1.0, "texts": 0.8, "deciding": 0.2}


@dataclass(frozen=True)
class Cutting:
    """What a repeated passage is, and which one is kept. Immutable.

    Parameters
    ----------
    min_bytes, unit, keep, shingles, missing
        As for `find_passages`.
    """

    min_bytes: int = 200
    unit: PassageUnit = "bytes"
    keep: Keep | Array = "first"
    shingles: Shingles | None = None
    missing: Missing = "error"

    def __post_init__(self) -> None:
        unit = checks.choice("unit", self.unit, get_args(PassageUnit))
        size = checks.whole_number("min_bytes", self.min_bytes, 1, MAX_WINDOW)
        if unit == "bytes" and size < MIN_WINDOW:
            given = errors.Parameter("unit", unit)
            raise errors.bad_value("min_bytes", f"must be {MIN_WINDOW} or more with " + given + f", got {size}")
        object.__setattr__(self, "keep", checked_keep(self.keep))
        checks.choice("missing", self.missing, get_args(Missing))
        if self.shingles is not None:
            checks.instance("shingles", self.shingles, Shingles, "a Shingles", "; use lsh.Shingles(lowercase=True)")
            if unit == "bytes" and normalizer(self.shingles) is not None:
                asked, others = errors.Parameter("unit", "bytes"), errors.Parameter("unit", "line")
                reason = "normalises, and cannot be combined with " + asked + ", which compares bytes as they are; use "
                raise errors.bad_value("shingles", reason + others + ", or leave it out")


def find_passages(
    texts: TextsOrCallable,
    min_bytes: int = 200,
    *,
    unit: PassageUnit = "bytes",
    keep: Keep | Sequence[float] | SupportsArray = "first",
    against: TextsOrCallable | None = None,
    shingles: Shingles | None = None,
    missing: Missing = "error",
    max_memory: int | str | None = None,
    temp_dir: str | os.PathLike[str] | None = None,
    num_threads: int | None = None,
    progress: Progress | bool | None = None,
) -> Passages:
    """Find the passages of a corpus that occur again, and decide which one of them to keep.

    A passage is a run of `min_bytes` or more that is equal, byte for byte, to a run that is kept elsewhere; a line or
    paragraph goes with the line ends behind it, which are not compared. One of several equal passages is kept, so
    nothing is cut without a witness, and no passage goes with all of its copies.

    Parameters
    ----------
    texts : iterable of str or bytes, numpy array, Arrow column, or callable
        ``n`` documents, as for `deduplicate`. A callable must return an iterable of the same texts at each call. It is
        called twice, and only the parts of the texts that may be repeated are held in memory.
    min_bytes : int, optional
        The least length of a passage in bytes of UTF-8, from 8 (1 for lines and paragraphs) to 16,777,216. Shorter
        lines and paragraphs are never cut.
    unit : {"bytes", "line", "paragraph"}, optional
        What is compared. ``"bytes"``: every run of text, wherever it begins. ``"line"`` and ``"paragraph"``: whole
        lines, or whole paragraphs, which blank lines separate.
    keep : {"first", "last", "longest"} or array_like, optional
        The order of the documents: a passage is kept in the first document, the last, the one with the most bytes, or
        the one with the highest priority, if one priority is given for each text; see `deduplicate`. Within a document
        the first passage is kept.
    against : iterable of str or bytes, numpy array, Arrow column, or callable, optional
        Old documents: they come before all of `texts`, and nothing is cut from them.
    shingles : Shingles, optional
        How lines and paragraphs are normalised before they are compared, for instance
        ``lsh.Shingles(lowercase=True)``; the other values of a `Shingles` do not matter here. Default: not at all.
    missing : {"error", "empty"}, optional
        What to do with ``None``: raise a ValueError, or treat it as an empty text.
    max_memory : int or str, optional
        Limit of memory in bytes for the data of the documents, or text such as ``"2GB"``; at least 100 KB, and 24
        bytes for each document (40, if `keep` is ``"longest"`` or an array). Data beyond the limit is in temporary
        files. Not counted are texts that the caller holds, the result, and up to 120 MB for the interpreter, numpy and
        the texts that are being read. Default: no limit.
    temp_dir : str or os.PathLike, optional
        The folder for temporary files, as for `deduplicate`.
    num_threads : int, optional
        Number of threads. Default: one for each core that this process may use. The result does not depend on it.
    progress : callable or bool, optional
        Called as ``progress(stage, done, total)``. The stages are ``"passages"``, counted in texts that are read first;
        ``"texts"``, in texts that are read again; and ``"deciding"``, in runs of text that may be repeated. ``True``
        shows a bar for each stage if tqdm is installed, else a line on standard error.

    Returns
    -------
    Passages
        Where the passages are, where each is kept, and the shortened texts.

    Raises
    ------
    TypeError, ValueError
        If a text or a parameter is wrong; the message names it.
    OSError
        If the folder for temporary files cannot be written to, or has too little space.

    Notes
    -----
    Documents are decided in the order of `keep`, and each from its beginning to its end. With ``unit="bytes"`` a window
    is a run of whole characters with `min_bytes` bytes, or up to three more where a character needs them. A window is
    cut if an equal run lies in what is kept of an earlier document, or in what is kept of the same document before the
    window begins. What is left of a document is kept, run by run. So no two windows that do not overlap are equal in
    what is kept.

    Windows with equal bytes are found by winnowing (Schleimer, Wilkerson and Aiken, *Winnowing: local algorithms for
    document fingerprinting*, 2003): of each window one place is chosen that its bytes determine. All that is cut is
    compared byte for byte.

    Examples
    --------
    >>> import lsh
    >>> texts = ["One. This is at the end of every page.", "Two! This is at the end of every page. More."]
    >>> found = lsh.find_passages(texts, min_bytes=20)
    >>> found.spans["document"], found.spans["start"], found.spans["kept"]
    (array([1]), array([4]), array([0]))
    >>> list(found.cut(texts))
    ['One. This is at the end of every page.', 'Two! More.']
    """
    for name, value in (("texts", texts), ("against", against)):
        if isinstance(value, IndexSource):
            raise errors.bad_type(name, "must be a collection of texts, got an index, in which passages are not found")
    cutting = Cutting(min_bytes, unit, keep, shingles, missing)  # type: ignore[arg-type]
    return find(cutting, texts, against, Running.checked(max_memory, temp_dir, num_threads, progress))


def find(
    cutting: Cutting,
    texts: TextsOrCallable,
    against: TextsOrCallable | None,
    run: Running,
    priorities: Callable[[], Array] | None = None,
) -> Passages:
    """Do the work of `find_passages`, whose parameters are checked.

    `priorities` returns the priority of each document once the texts were read, in place of the `keep` of `cutting`.
    """
    collections = collections_of({"texts": texts, "against": against}, cutting.missing, "min_bytes")
    if collections[0].size is not None and priorities is None:
        check_length(cutting.keep, collections[0].size)  # an error before any work
    return _Finding(collections, cutting, run, priorities).result()


@dataclass(eq=False)
class _Finding:
    """A corpus whose passages are found; documents are numbered through both collections."""

    collections: list[Collection]
    cutting: Cutting
    run: Running
    priorities: Callable[[], Array] | None
    offsets: list[int] = field(default_factory=lambda: [0])
    num_missing: int = 0
    num_runs: list[int] = field(default_factory=list)  # of the first collection, and of both

    def __post_init__(self) -> None:
        self.secret = os.urandom(16)  # so that texts with equal keys cannot be constructed
        self.budget = self.run.budget
        self.compare = _Windows(self) if self.cutting.unit == "bytes" else _Units(self)
        self.seconds: dict[str, float] = {}
        self.keys = self.budget.column(np.uint64)
        self.counts, self.sizes = self.budget.column(np.int64), self.budget.column(np.int64)
        self.content = self.budget.column(np.uint64)
        self.runs = self.budget.column(RUN)
        self.texts: list[Array] = []

    def result(self) -> Passages:
        """Find the passages."""
        started = time.perf_counter()
        self._read_keys()
        table = self._repeated()
        self.seconds["passages"], started = time.perf_counter() - started, time.perf_counter()
        with self.budget.released():
            self._read_runs(table)
            self.seconds["texts"], started = time.perf_counter() - started, time.perf_counter()
            spans = self._decide(table)
        self.seconds["deciding"] = time.perf_counter() - started
        return self._result(spans)

    # ---- keys ----

    def _read_keys(self) -> None:
        """Read all texts, and note their keys, sizes and hashes."""
        known = [collection.size for collection in self.collections]
        total = None if None in known else sum(filter(None, known))
        self._check_bound(total or 0, False)  # an error before any work, where the number is known

        def values_of(lazy: _LazyBatch) -> tuple[list[Array], int]:
            batch = lazy.make_batch()
            content = np.empty(len(batch), np.uint64)
            content_keys(batch, self.secret, content)
            return [*self.compare.keys(batch), batch.sizes(), content], batch.num_missing

        for collection in self.collections:
            done = self.offsets[-1]
            batches = self._batches(collection, collection.pieces())
            for values, missing in map_in_order(values_of, batches, self.run.num_threads, SIZE_OF, MAX_READ):
                for column, more in zip((self.keys, self.counts, self.sizes, self.content), values):
                    column.append(more)
                self.num_missing += missing
                done += len(values[1])
                self._check_bound(done, total is None)
                self.run.report("passages", done, total)
            self.offsets.append(done)

    def _check_bound(self, count: int, growing: bool) -> None:
        """Raise ValueError if the bound is too small for so many documents, or there are too many."""
        if count > MAX_DOCUMENTS:
            raise ValueError(f"a corpus can have at most {MAX_DOCUMENTS:,} documents")
        keep = self.cutting.keep
        by_position = self.priorities is None and isinstance(keep, str) and keep in ("first", "last")
        each = DOCUMENT_BYTES if by_position else ORDERED_BYTES
        if self.budget.bound is not None and count * each > self.budget.bound:
            expected = expected_documents(self.collections)
            raise bound_error(self.budget.bound, count, each, expected, growing)
        self.budget.reserve(count * each)

    def _batches(self, collection: Collection, pieces: Iterator[tuple[int, Piece]]) -> Iterator[_LazyBatch]:
        """Yield the batches of some pieces."""
        counted = self.budget.is_bounded and not collection.is_held
        for first, piece in pieces:
            for start, stop in extents(piece, BATCH_TEXTS, BATCH_BYTES):
                size = num_bytes(piece, start, stop) if counted else 0
                yield _LazyBatch(partial(collection.batch, first, piece, start, stop), size)

    def _repeated(self) -> KeyTable:
        """Return a table of the keys that occur more than once."""
        needed, threads = SORT_BYTES * len(self.keys), self.run.num_threads
        parts = threads
        if self.budget.is_bounded:
            self.budget.release_columns()
            parts = max(min(needed * threads // max(self.budget.room, 1), MAX_PARTS), threads)
        found = self.budget.column(np.uint64)
        with self.budget.reserved(needed // parts * threads):
            for keys in map_in_order(self._repeated_by_part(parts), range(parts), threads):
                found.append(keys)
        table = KeyTable(self.budget.array, len(found))
        for _, keys in found.chunks():
            table.add(keys)
        self.budget.trim()
        return table

    def _repeated_by_part(self, parts: int) -> Callable[[int], Array]:
        """Return `_repeated_of` for the keys of a part."""

        def part_of(keys: Array) -> Array:
            numbers: Array = (keys * SPREAD >> HALF) * np.uint64(parts) >> HALF
            return numbers.astype(np.uint16)

        if parts <= SCANNED_PARTS:
            return lambda part: _repeated_of(keys[part_of(keys) == part] for _, keys in self.keys.chunks())
        by_part = PartitionedRows(self.budget, parts, np.uint64)
        for _, keys in self.keys.chunks():
            by_part.append(part_of(keys), keys)
        by_part.finish()
        return lambda part: _repeated_of(by_part.read(part))

    # ---- runs ----

    def _read_runs(self, table: KeyTable) -> None:
        """Read the texts that have a key that occurs more than once again, and store the runs around these keys."""
        at = key_at = 0
        stored = _Stored(self)
        for collection, offset, end in zip(self.collections, self.offsets, self.offsets[1:]):
            flags = np.zeros(end - offset, np.bool_)
            while at < end:
                counts = self.counts.read(at, min(at + DOCUMENTS_STEP, end))
                keys = self.keys.read(key_at, key_at + int(counts.sum()))
                flags[at - offset : at - offset + len(counts)] = table.has_any(keys, counts)
                at, key_at = at + len(counts), key_at + len(keys)
            needed = positions_of(flags)
            del flags

            def content_of(positions: Array, offset: int = offset) -> Array:
                return self.content.take(positions + np.int32(offset))

            batches = collection.needed_texts(needed, content_of, self.secret, self.run.report)
            divided = self._divided(collection, batches)
            for lazy, (runs, data) in map_in_order(
                lambda lazy: (lazy, self.compare.runs(lazy.make_batch(), table)),
                divided,
                self.run.num_threads,
                SIZE_OF,
                MAX_READ,
            ):
                stored.append(lazy.positions[runs[:, 0]].astype(np.int64) + offset, runs, data)
            self.num_runs.append(len(self.runs))
        stored.flush()
        for column in (self.keys, self.counts, self.content):
            column.free()

    def _divided(self, collection: Collection, batches: Iterator[tuple[Array, Batch]]) -> Iterator[_LazyBatch]:
        """Divide batches into those for threads, with the positions of their texts."""
        counted = self.budget.is_bounded and not collection.is_held
        for positions, batch in batches:
            for start, stop in extents(batch, BATCH_TEXTS, BATCH_BYTES):
                size = num_bytes(batch, start, stop) if counted else 0
                make_batch = partial(Batch, batch, start=start, stop=stop)
                yield _LazyBatch(make_batch, size, positions[start:stop])

    # ---- decisions ----

    def _decide(self, table: KeyTable) -> Array:
        """Return the passages that are cut, in the order of their documents."""
        new, total = self.num_runs[0], len(self.runs)
        runs = self.budget.array(total, RUN)
        self.runs.read(out=runs)
        self.runs.free()
        cutter = Cutter(self.compare.finder(), table, self.budget.array, self.secret)
        for text in self.texts:
            cutter.add_text(text)
        order, found, done = self._order(runs[:new]), list[Array](), 0
        for start, stop, is_old in ((new, total, True), (0, new, False)):
            for at in range(start, stop, DECIDED):
                end = min(at + DECIDED, stop)
                some = runs[at:end] if is_old or order is None else runs[order[at:end]]
                found.append(cutter.decide(some, is_old))
                done += len(some)
                self.run.report("deciding", done, total)
        spans = self._named(found)
        return spans if order is None else spans[np.argsort(spans["document"], kind="stable")]

    def _order(self, runs: Array) -> Array | None:
        """Return the order in which these runs are decided; ``None``: as they are."""
        keep = self.cutting.keep if self.priorities is None else self.priorities()
        check_length(keep, self.offsets[1])
        if isinstance(keep, str) and keep == "first":
            return None
        with self.budget.reserved(RUN_ORDER_BYTES * len(runs)):
            if isinstance(keep, str) and keep == "last":
                return np.argsort(-runs["document"], kind="stable")
            return np.argsort(self._ranks(keep)[runs["document"]], kind="stable")

    def _ranks(self, keep: Keep | Array) -> Array:
        """Return the place of each document in the order of priorities."""
        order = np.empty(self.offsets[1], np.int32)
        rank_by_priority(self.sizes.read(0, len(order)) if isinstance(keep, str) else keep, order)
        ranks = np.empty_like(order)
        ranks[order] = np.arange(len(order), dtype=np.int32)
        return ranks

    # ---- the result ----

    def _named(self, found: list[Array]) -> Array:
        """Return rows as spans, in which kept documents are named by their side."""
        new, at = self.offsets[1], 0
        sides = len(self.collections) == 2
        spans = np.empty(sum(map(len, found)), [*ROW.descr, ("side", SIDES.dtype)] if sides else ROW)
        while found:
            rows = found.pop(0)
            part = spans[at : at + len(rows)]
            at += len(rows)
            for name in ROW.names or ():
                part[name] = rows[name]
            if sides:
                is_old = rows["kept"] >= new
                part["side"], part["kept"] = SIDES[is_old.astype(np.intp)], rows["kept"] - np.where(is_old, new, 0)
        return spans

    def _result(self, spans: Array) -> Passages:
        """Return the result, with counts."""
        new = self.offsets[1]
        cuts = cuts_of(spans)
        documents, starts = np.unique(cuts["document"], return_index=True)
        lengths = cuts["end"] - cuts["start"]
        cut = np.add.reduceat(lengths, starts) if len(starts) else lengths
        emptied = documents[cut == self.sizes.take(documents)]
        counts = {
            "documents": new,
            "old": self.offsets[-1] - new,
            "missing": self.num_missing,
            "bytes": sum(int(chunk.sum()) for _, chunk in self.sizes.chunks(0, new)),
            "spans": len(spans),
            "cut_documents": len(documents),
            "emptied": len(emptied),
            "cut_bytes": int(cut.sum()),
            "seconds": self.seconds,
        }
        self.sizes.free()
        cutting = self.cutting
        parameters = {"min_bytes": cutting.min_bytes, "unit": cutting.unit, "shingles": cutting.shingles}
        return Passages(spans, emptied, new, counts, parameters)


class _LazyBatch(NamedTuple):
    """Texts that a thread works on: a function that makes their batch, their size, and their positions."""

    make_batch: Callable[[], Batch]
    size: int
    positions: Array = np.empty(0, np.int32)


SIZE_OF = attrgetter("size")  # of a batch


def _repeated_of(keys: Iterator[Array]) -> Array:
    """Return the keys that occur more than once, ascending."""
    own = np.concatenate([np.empty(0, np.uint64), *keys])
    own.sort()
    again = own[1:][own[1:] == own[:-1]]
    del own
    first = np.ones(len(again), np.bool_)
    np.not_equal(again[1:], again[:-1], out=first[1:])
    return np.asarray(again[first])


class _Stored:
    """Collects runs and their text, so that pieces of memory are large."""

    def __init__(self, finding: _Finding) -> None:
        self._finding = finding
        self._data: list[Array] = []
        self._size = 0

    def append(self, documents: Array, runs: Array, data: Array) -> None:
        """Append the runs of some documents."""
        rows = np.empty(len(runs), RUN)
        rows["chunk"], rows["document"] = len(self._finding.texts), documents
        rows["start"], rows["stop"], rows["length"] = runs[:, 1], runs[:, 2], runs[:, 3]
        rows["at"] = self._size + np.cumsum(runs[:, 3]) - runs[:, 3]
        self._finding.runs.append(rows)
        self._data.append(data)
        self._size += len(data)
        if self._size >= CHUNK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Store the text that was appended."""
        text, write = self._finding.budget.bytes_to_fill(self._size)
        at = 0
        for data in self._data:
            write(at, data)
            at += len(data)
        self._finding.texts.append(text)
        self._data, self._size = [], 0


class _Windows:
    """Passages are runs of text, wherever they begin."""

    def __init__(self, finding: _Finding) -> None:
        self._window, self._secret = finding.cutting.min_bytes, finding.secret

    def keys(self, batch: Batch) -> tuple[Array, Array]:
        """Return the keys of some texts, and how many each text has."""
        return passage_keys(batch, self._window, self._secret)

    def runs(self, batch: Batch, table: KeyTable) -> tuple[Array, Array]:
        """Return the runs that have a key of the table, and their bytes; see `passage_runs`."""
        return passage_runs(batch, self._window, self._secret, table)

    def finder(self) -> AnchorFinder | None:
        """Return what finds the anchors of runs; ``None`` for units."""
        return AnchorFinder(self._window, self._secret)


class _Units:
    """Passages are lines or paragraphs; the methods are those of `_Windows`."""

    def __init__(self, finding: _Finding) -> None:
        cutting = finding.cutting
        self._paragraphs, self._least, self._secret = cutting.unit == "paragraph", cutting.min_bytes, finding.secret
        shingles = Shingles() if cutting.shingles is None else cutting.shingles
        self._transform, self._flags = normalizer(shingles), ascii_flags(shingles)

    def _units(self, batch: Batch) -> tuple[Array, Batch, Array]:
        units, contents = units_of(batch, self._paragraphs, self._least)
        if self._transform is not None:
            contents = Batch(contents, transform=self._transform)
        return units, contents, unit_keys(contents, self._flags, self._secret)

    def keys(self, batch: Batch) -> tuple[Array, Array]:
        units, _, keys = self._units(batch)
        return keys, np.bincount(units[:, 0], minlength=len(batch)).astype(np.int64)

    def runs(self, batch: Batch, table: KeyTable) -> tuple[Array, Array]:
        units, contents, keys = self._units(batch)
        return unit_runs(units, contents, keys, self._flags, table)

    def finder(self) -> AnchorFinder | None:
        return None
