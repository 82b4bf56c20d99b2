"""Writing: changes that are pending, and the commit that makes them durable in one step.

A small commit is appended to the log. A larger one writes segments, a new log and a new manifest. Files that no
manifest names belong to nothing and are removed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from lsh.segments import file_format
from lsh.segments.build import merge_segments, write_segment
from lsh.segments.disk import Disk, WriterLock
from lsh.segments.file_format import IN_LOG, NO_TIME, REMOVAL
from lsh.segments.log import LogChange, LogReader, LogWriter, create_log
from lsh.segments.manifest import Manifest, ManifestEntry, Note, replace_manifest, write_new_manifest, write_removed
from lsh.segments.segment import DocumentBatch, SegmentInfo, arrival_ranks
from lsh.store.memtable import MemTable
from lsh.store.view import OpenSegment, StoredPlace, View, open_manifest

MAX_RECENT = 1 << 17  # documents in memory, with those of the log
MAX_RECENT_BYTES = 1 << 26
MAX_LOGGED = 1 << 15  # documents, and removals, in a log
MAX_COMMITS = 512  # in a log: a reader makes each of their changes when it opens the index
MAX_LOG_BYTES = 1 << 24
MAX_SEGMENTS = 256  # each takes a file descriptor of every process that has the index open
MAX_PERIODS = 16  # segments into which the documents in memory are divided by time
MAX_SIMILAR = 4  # segments of similar size; a commit merges more of them
MAX_PENDING = 16  # the same before a commit: merging many small ones once takes less time
SMALLEST = 1 << 12  # documents: segments of fewer have the same size class


@dataclass
class CommitState:
    """The last commit, and the changes since.

    A commit or a rollback replaces all of it by one assignment, which no signal divides.
    """

    manifest: Manifest
    log: LogWriter | None  # None: the next commit writes a manifest
    committed: int  # bytes of the log
    commits: int  # of the log
    removals: int  # of the log
    changes: list[LogChange] = field(default_factory=list)
    pending_removals: int = 0
    needs_manifest: bool = False
    note: Note | None = None  # that the next commit stores, if it is another one


class Writer:
    """The changes of one process to an index. The caller holds a lock of threads, and the lock of the index.

    `view` has the pending changes. If a change fails half way, `needs_repair` is true until `rollback`.
    """

    def __init__(self, disk: Disk, folder: str, view: View, log: LogReader, lock: WriterLock) -> None:
        self.disk, self.folder = disk, folder
        self.view = view
        self.needs_repair = False
        self._lock = lock
        numbers = [file_format.file_number(None, name) or 0 for name in os.listdir(folder)]
        self._next = max(view.manifest.next_number, *(number + 1 for number in numbers), 1)
        appended = LogWriter(disk, folder, view.manifest.log, log.committed)
        self._state = CommitState(view.manifest, appended, log.committed, log.commits, log.removals)
        self._attempted: set[str] = set()  # files of manifests that may be on the disk, after an error
        self._remove_orphans()

    @property
    def committed(self) -> int:
        """How many bytes of the log are committed."""
        return self._state.committed

    @property
    def is_pending(self) -> bool:
        """Whether there are changes that are not committed, or a commit has failed."""
        return bool(self._state.changes) or self._state.needs_manifest or self._state.log is None

    def _check_place(self) -> None:
        """Raise an error if the folder is no longer that of the index."""
        if not self._lock.is_in_place():
            raise OSError(
                f"the folder {self.folder} was removed, moved or replaced while this writer had it open; nothing was "
                "written; open the index again"
            )

    @contextmanager
    def _writing_files(self) -> Iterator[None]:
        """Remove the files that belong to nothing if an operation fails."""
        self._check_place()
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError):
                self._remove_orphans()
            raise

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Note it if a change is interrupted."""
        if self.needs_repair:
            raise RuntimeError("a change of the index was interrupted; call rollback() first")
        self.needs_repair = True
        yield
        self.needs_repair = False

    def _new_name(self, kind: str) -> str:
        return file_format.file_name(kind, self._new_number())

    # ---- changes ----

    def add(self, documents: DocumentBatch) -> None:
        """Add documents, whose ids differ from each other, in place of those with the same ids."""
        places = list(filter(None, self.view.find(documents.codes)))
        with self._changing():
            removed = self._remove(places)
            self.view.recent.add(documents)
            self._note(LogChange(documents, removed))
        recent = self.view.recent
        if recent.count >= MAX_RECENT or recent.size >= MAX_RECENT_BYTES:
            with self._writing_files():
                self._flush()
                self._merge_similar(MAX_PENDING)

    def remove(self, places: list[StoredPlace]) -> None:
        """Remove documents."""
        with self._changing():
            self._note(LogChange(None, self._remove(places)))

    def _note(self, change: LogChange) -> None:
        """Keep a change for the log, unless the next commit writes a manifest."""
        state = self._state
        if state.pending_removals >= MAX_LOGGED:  # too many for the log
            state.needs_manifest, state.changes = True, []
        if not state.needs_manifest:
            state.changes.append(change)

    def _remove(self, places: list[StoredPlace]) -> np.ndarray[tuple[int], np.dtype[np.void]]:
        for place in places:
            self.view.remove(place)
        self._state.pending_removals += len(places)
        return np.array(places, REMOVAL) if places else np.empty(0, REMOVAL)

    def expire(self, before: int) -> int:
        """Remove the documents with a time before the given one, and return their number."""
        count = len(self.view)
        expired = [(IN_LOG, self.view.recent.before(before))]
        dropped = []
        for part, held in enumerate(self.view.held):
            times = held.segment.written.times
            if times is None or times[0] >= before:
                continue
            if times[1] < before and times[2] == held.segment.documents:
                dropped.append(held)
                continue
            own, alive = held.segment.times(), held.alive()
            expired.append((part, alive[(own[alive] != NO_TIME) & (own[alive] < before)]))
        with self._changing():
            self._mark_removed([(part, numbers) for part, numbers in expired if len(numbers)])
        if dropped:
            with self._changing():
                self.view.held = [held for held in self.view.held if held not in dropped]
                self._state.needs_manifest = True
        return count - len(self.view)

    def _mark_removed(self, gone: list[tuple[int, NDArray[np.int64]]]) -> None:
        for part, numbers in gone:
            if part == IN_LOG:
                for number in numbers.tolist():
                    self.view.recent.remove(number)
            else:
                self.view.held[part].remove_many(numbers)
            removed = np.empty(len(numbers), REMOVAL)
            removed["segment"], removed["number"] = part, numbers
            self._state.pending_removals += len(numbers)
            self._note(LogChange(None, removed))

    def _flush(self) -> None:
        """Write the documents in memory as segments, which no manifest names yet."""
        recent = self.view.recent
        held = [
            self._opened(write_segment(self.disk, self.folder, self._new_name("segment"), documents, arrivals))
            for documents, arrivals in self._parts(recent.documents(), recent.arrivals())
        ]
        with self._changing():
            self.view.held = [*self.view.held, *held]
            self._renew_recent(recent.next_arrival)

    def _renew_recent(self, first: int) -> None:
        """Begin to collect documents; those before are in segments, so the log is not enough."""
        self.view.recent = MemTable(self._state.manifest.parameters.layout, first, self.view.recent.capacity)
        self._state.needs_manifest = True
        self._state.changes = []

    def _parts(
        self, documents: DocumentBatch, arrivals: NDArray[np.int64]
    ) -> list[tuple[DocumentBatch, NDArray[np.int64]]]:
        """Divide documents by the period of their times, if there are few periods."""
        if not len(documents):
            return []
        timed = documents.times != NO_TIME
        periods = np.where(timed, documents.times // self._period_length(), NO_TIME)
        values = np.unique(periods)
        if not 1 < len(values) <= MAX_PERIODS:
            return [(documents, arrivals)]
        return [(documents.take(periods == value), arrivals[periods == value]) for value in values]

    def _opened(self, written: SegmentInfo) -> OpenSegment:
        return OpenSegment.opened(self.folder, ManifestEntry(written), self._state.manifest)

    # ---- commit ----

    def commit(self, note: Note | None = None) -> None:
        """Make the changes durable, and visible to others, with a note if one is given."""
        if self.needs_repair:
            raise RuntimeError("a change of the index was interrupted; call rollback() first")
        if note not in (None, self._state.manifest.note):
            self._state.needs_manifest, self._state.note = True, note
        if not self.is_pending:
            return
        with self._writing_files():
            log = self._state.log
            if log is not None and not self._state.needs_manifest and self._fits_log(log):
                self._commit_log(log)
            else:
                self._commit_manifest()

    def _commit_log(self, log: LogWriter) -> None:
        """Append the changes to the log."""
        before = self._state
        removals = before.removals + before.pending_removals
        try:
            log.commit(before.changes)
            self._state = CommitState(before.manifest, log, log.size, before.commits + 1, removals)
        except BaseException:
            if self._state is before:
                before.log = None  # the next commit does not use this log again
                log.abandon(before.committed)
            raise
        log.note_size()

    def _fits_log(self, log: LogWriter) -> bool:
        recent = self.view.recent
        few = recent.count < MAX_LOGGED and self._state.removals + self._state.pending_removals < MAX_LOGGED
        return few and self._state.commits < MAX_COMMITS and log.size + recent.size < MAX_LOG_BYTES

    def _commit_manifest(self) -> None:
        """Write everything that is not in a segment into segments, and then a manifest."""
        self._state.needs_manifest = True  # also if this fails: the parts are no longer those of the log
        if len(self.view.recent) or self.view.recent.count:
            self._flush()
        self._merge_similar(MAX_SIMILAR)
        self.view.held = [held for held in self.view.held if len(held)]
        entries = tuple(self._entry(held) for held in self.view.held)
        log = create_log(self.disk, self.folder, self._new_number())
        before, note = self._state.manifest, self._state.note
        manifest = replace(
            before,
            generation=before.generation + 1,
            entries=entries,
            log=log,
            next_number=self._next,
            arrived=self.view.recent.next_arrival,
            note=before.note if note is None else note,
            source=b"",
        )
        write_new_manifest(self.disk, self.folder, manifest)
        self.close()  # if the next step fails, it is not known which manifest is on the disk
        self._attempted |= manifest.files()
        replace_manifest(self.disk, self.folder)
        self._committed_manifest(manifest)

    def _committed_manifest(self, manifest: Manifest) -> None:
        """Go on from a manifest that is on the disk."""
        for held, entry in zip(self.view.held, manifest.entries):
            held.entry = entry
        self.view.manifest = manifest
        self._state = CommitState(manifest, None, file_format.LOG_HEADER.itemsize, 0, 0)
        self._attempted = set()
        with contextlib.suppress(OSError):  # the next commit writes a manifest again
            self._state.log = LogWriter(self.disk, self.folder, manifest.log, self._state.committed)
        self._remove_orphans()

    def _new_number(self) -> int:
        self._next += 1
        return self._next - 1

    def _entry(self, held: OpenSegment) -> ManifestEntry:
        """Return what a manifest says about a segment, and write which documents are removed, if that changed."""
        known = 0 if held.entry.removed is None else held.entry.removed.count
        if held.removed is None or held.removed_count == known:
            return held.entry
        name, count = self._new_name("removed"), held.removed_count
        removed = write_removed(self.disk, self.folder, name, held.removed, held.segment.documents, count)
        return ManifestEntry(held.entry.written, removed)

    def _remove_orphans(self) -> None:
        """Remove the files that belong to nothing."""
        if not self._lock.is_in_place():
            return  # they may belong to another index
        known = self._state.manifest.files() | self._attempted | {held.segment.written.name for held in self.view.held}
        for name in os.listdir(self.folder):
            orphan = file_format.file_number(None, name) is not None and name not in known
            if orphan or name == file_format.NEW_MANIFEST:
                with contextlib.suppress(OSError):  # a file that is mapped cannot be removed on Windows
                    self.disk.remove(os.path.join(self.folder, name))

    def rollback(self) -> None:
        """Return to the last commit."""
        self._check_place()
        before = self._state
        view, _ = open_manifest(self.folder, before.manifest, before.committed)
        self.needs_repair = True  # until all of this is done
        self.view = view
        self._state = CommitState(before.manifest, before.log, before.committed, before.commits, before.removals)
        self.needs_repair = False
        self._remove_orphans()

    def close(self) -> None:
        """Close the log."""
        log, self._state.log = self._state.log, None  # a closed one is never used again
        if log is not None:
            log.close()

    # ---- merging ----

    def _merge_similar(self, max_similar: int) -> None:
        """Merge segments if more than `max_similar` have a similar size, and rewrite those that are mostly removed."""
        while (group := self._next_to_merge(max_similar)) is not None and sum(map(len, group)) <= file_format.NUMBERS:
            self._merge(group)

    def _next_to_merge(self, max_similar: int) -> list[OpenSegment] | None:
        """Return the segments that should be merged next, ``None`` if none should."""
        periods = self._by_period()
        for group in periods:
            classes: dict[int, list[OpenSegment]] = {}
            for held in group:
                classes.setdefault(_size_class(len(held)), []).append(held)
            similar = max(classes.values(), key=len)
            if len(similar) > max_similar:
                return similar
        if len(self.view.held) > MAX_SEGMENTS and len(largest := max(periods, key=len)) > 1:
            return largest
        return next(([held] for held in self.view.held if 0 < 2 * len(held) < held.segment.documents), None)

    def _period_length(self) -> int:
        """Return the length of a period: that of the index, doubled until the segments have few periods."""
        times = [held.segment.written.times for held in self.view.held]
        known = [time for one in times if one is not None for time in one[:2]]
        length = self._state.manifest.parameters.period
        while known and (max(known) - min(known)) // length >= MAX_SEGMENTS // 2:
            length *= 2
        return length

    def _by_period(self) -> list[list[OpenSegment]]:
        """Return the segments by the period of their documents; those of several periods are a group, too."""
        length, groups = self._period_length(), dict[object, list[OpenSegment]]()
        for held in self.view.held:
            period: object = None  # without times
            if (times := held.segment.written.times) is not None:
                first, last, timed = times[0] // length, times[1] // length, times[2]
                period = first if first == last and timed == held.segment.documents else "several"
            groups.setdefault(period, []).append(held)
        return list(groups.values())

    def _merge(self, group: list[OpenSegment]) -> None:
        """Replace segments by one with their documents."""
        parts, masks = [held.segment for held in group], [held.kept_mask() for held in group]
        if not sum(map(len, group)):
            merged = []
        else:
            name = self._new_name("segment")
            merged = [self._opened(merge_segments(self.disk, self.folder, name, parts, masks))]
        with self._changing():
            at = self.view.held.index(group[0])
            held = [one for one in self.view.held[:at] if one not in group]
            self.view.held = [*held, *merged, *(one for one in self.view.held[at:] if one not in group)]
            self._state.needs_manifest = True

    def compact(self) -> None:
        """Merge the segments of each period into one without removed documents, and commit."""
        with self._writing_files():
            if self.view.recent.count:
                self._flush()
            for group in self._by_period():
                if len(group) > 1 or any(held.removed_count for held in group):
                    self._merge(group)
        self.commit()

    def merge(self, other: View) -> None:
        """Add all documents of another index with the same parameters, in its order; they replace equal ids."""
        replaced, opened = [np.empty(0, REMOVAL)], []
        recent = other.recent.documents() if len(other.recent) else None
        others = [held for held in other.held if len(held)]
        count = sum(map(len, others))
        if not count and recent is None:
            return
        masks = [held.kept_mask() for held in others]
        ranks = arrival_ranks([held.segment for held in others], masks, np.int64)
        with self._writing_files():
            if self.view.recent.count:
                self._flush()
            first = self.view.recent.first
            for held, mask, own in zip(others, masks, ranks):
                for start, codes in held.segment.all_codes():
                    replaced.append(self._places([code for i, code in enumerate(codes) if held.is_alive(start + i)]))
                name = self._new_name("segment")
                arrivals = _moved(own, first) if isinstance(own, range) else own[held.alive()] + first
                opened.append(
                    self._opened(merge_segments(self.disk, self.folder, name, [held.segment], [mask], arrivals))
                )
        if recent is not None:
            replaced.append(self._places(recent.codes))
        places = np.concatenate(replaced)
        parts = [(part, places["number"][places["segment"] == part]) for part in np.unique(places["segment"]).tolist()]
        with self._changing():  # nothing is changed before all is written
            self._mark_removed([(part, numbers.astype(np.int64)) for part, numbers in parts])
            self.view.held = [*self.view.held, *opened]
            self._renew_recent(first + count)
            if recent is not None:
                self.view.recent.add(recent)

    def _places(self, codes: list[bytes]) -> np.ndarray[tuple[int], np.dtype[np.void]]:
        """Return the places of the documents that are there, of some encoded ids."""
        return np.array([place for place in self.view.find(codes) if place is not None], REMOVAL)


def _moved(numbers: range, by: int) -> range:
    return range(numbers.start + by, numbers.stop + by)


def _size_class(documents: int) -> int:
    """Return the size class of a segment: each is for 8 times as many documents as the one before."""
    return max((documents // SMALLEST).bit_length() - 1, 0) // 3


def create_index(disk: Disk, folder: str, manifest: Manifest) -> None:
    """Write the first manifest of a folder."""
    numbers = [file_format.file_number(None, name) or 0 for name in os.listdir(folder)]
    number = max(numbers, default=0) + 1
    log = create_log(disk, folder, number)
    first = replace(manifest, generation=1, log=log, next_number=number + 1, identity=new_identity())
    write_new_manifest(disk, folder, first)
    replace_manifest(disk, folder)


def new_identity() -> str:
    """Return 16 random hexadecimal digits."""
    return os.urandom(8).hex()
