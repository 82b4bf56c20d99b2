"""An index on disk: documents that are found by similarity, shared by one writer and many readers.

`Index` defines the operations. Its modules, from bottom to top: `disk` changes files, `file_format` declares their
structures, `segment` and `log` hold documents, `manifest` names the files of a commit, `view` has the documents of one
moment, `writer` changes them and `query` searches them.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial
from types import TracebackType
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from lsh._minhash import band_keys
from lsh.base import checks, threads
from lsh.engine.dedup import duplicates_in, pairs_in
from lsh.engine.result import Duplicate
from lsh.engine.stored import Stored
from lsh.sketch.bands import Bands
from lsh.sketch.hasher import MinHasher, batch_fingerprints
from lsh.sketch.planning import Plan
from lsh.store import arguments, file_format
from lsh.store.arguments import DAY
from lsh.store.disk import Disk
from lsh.store.file_format import NO_TIME, IndexDamagedError
from lsh.store.lock import IndexLockedError, WriterLock
from lsh.store.log import LogReader
from lsh.store.manifest import Manifest, Note, Parameters, read_manifest
from lsh.store.matches import Matches
from lsh.store.query import Asked, Search, bands_recall, estimator_of, recall_at
from lsh.store.segment import Documents
from lsh.store.snapshot import IndexSnapshot
from lsh.store.view import Place, View, open_view
from lsh.store.writer import Writer, create_index
from lsh.text.batch import Batch
from lsh.text.collections import allows_missing, each_piece
from lsh.text.ids import several
from lsh.text.shingling import Shingles
from lsh.typing import Array, Clusters, DocId, FoundId, Lookup, Missing, Progress, Sketch, Text, Texts, Time, Verify

__all__ = ["Index", "IndexDamagedError", "IndexLockedError", "IndexReplacedError"]

MAX_SEARCHES = 64  # of which the parameters are kept

_indexes: weakref.WeakSet[Index] = weakref.WeakSet()


class IndexReplacedError(ValueError):
    """The folder has another index than the one that was opened; open it again."""


def _renew_locks() -> None:
    """Make new locks in a forked process, where a lock may be held by a thread that does not exist."""
    for index in list(_indexes):
        index._lock = threading.RLock()
        index._view.recent.forget_tables()


def _end_writing(writer: Writer, lock: WriterLock) -> None:
    """Close the files of a writer: of an index that was closed, or that is used no more."""
    try:
        writer.close()
    finally:
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


class Index(Stored):
    """Documents in a folder that are found by similarity.

    Use `Index.create` or `Index.open`; then `add`, `remove` and `commit` to write, and `query` to read.

    Notes
    -----
    One process can write an index at a time, and any number of processes can read it. A reader sees the last commit of
    the moment at which it was opened, until it calls `refresh`. A writer sees its own changes at once; others see them
    after `commit`, all of them or none. After `commit` has returned, they are on the disk.

    An id is a ``str``, ``bytes`` or a whole number of 64 bits; 1, "1" and b"1" are different ids. A document that is
    added under an id that is in use replaces the stored one. A text without shingles is stored, but no query finds it.

    The order of an index is that in which its documents were added, whatever was committed, merged or removed since. A
    document that is replaced is then the last one.

    Threads may share an index. After a fork, the child may use it to read; the child of a writer holds its lock until
    it ends.

    Examples
    --------
    >>> import lsh, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with lsh.Index.create(f"{folder}/stories") as index:
    ...     index.add("The quick brown fox jumps over the lazy dog, and runs away.", "a")
    ...     index.add("A slow red hen sits by the river, and sleeps.", "b")
    >>> with lsh.Index.open(f"{folder}/stories") as index:
    ...     for match in index.query("The quick brown fox jumps over the lazy dog, and runs off."):
    ...         print(match.id, round(match.similarity, 2), match.verified)
    a 0.84 True
    """

    _lock: threading.RLock

    def __init__(self, path: NoReturn) -> None:
        raise TypeError("Index(...) opens nothing; use Index.open(path), or Index.create(path) for a new index")

    def _set_up(self, path: str, lookup: Lookup | None, view: View, log: LogReader, disk: Disk) -> Index:
        """Hold the files of an index, open for reading."""
        parameters = view.manifest.parameters
        self._path, self._disk = path, disk
        self._parameters, self._lookup = parameters, lookup
        self._view: View = view
        self._log = log
        self._writer: Writer | None = None
        self._writing_ends: weakref.finalize[[Writer, WriterLock], Index] | None = None
        self._process = os.getpid()
        self._closed = False
        self._is_torn = False  # a refresh was interrupted
        self._estimator = estimator_of(parameters)
        self._layout, self._bounds = parameters.layout, parameters.plan.bands.bounds
        self._empty = parameters.hasher.empty.tobytes()
        self._searches: dict[tuple[object, ...], Search] = {}
        self._lock = threading.RLock()
        _indexes.add(self)
        return self

    # ---- opening ----

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        hasher: MinHasher | None = None,
        *,
        bands: Bands | Plan | None = None,
        threshold: float | None = None,
        recall: float | None = None,
        shingles: Shingles | None = None,
        num_seeds: int | None = None,
        random_state: int | None = 0,
        sketch: Sketch = "8bit",
        texts: Literal["stored"] | Lookup | None = "stored",
        period: float = DAY,
    ) -> Index:
        """Create an index in a new folder, and open it for writing.

        Parameters
        ----------
        path : str or path
            The folder. It must not exist, or be empty.
        hasher : MinHasher, optional
            Computes the fingerprints. Default: scheme ``"fss"`` with `num_seeds`, `random_state` and `shingles`.
        bands : Bands or Plan, optional
            The bands to use, in place of `recall`. `Bands` require a `threshold`. A plan must have the same number of
            seeds, and the same shingles and threshold if they are given. Default: planned for `threshold` and `recall`.
        threshold : float, optional
            The Jaccard similarity from which documents should be found, more than 0 and at most 1. Default: that of a
            plan that is given as `bands`, else 0.8.
        recall : float, optional
            The least probability with which the bands find a document at the threshold. Default 0.99. With
            ``texts=None`` matches have an estimate that reaches the threshold, which about half of these documents
            have; see `recall_at`.
        shingles : Shingles, optional
            How a text becomes a set of shingles. Default: the shingles of `hasher`, else those of a plan that is given
            as `bands`, else ``Shingles(8)``.
        num_seeds : int, optional
            The number of components of a fingerprint. Default: that of a plan that is given as `bands`, else 128. An
            error if `hasher` is given.
        random_state : int or None, optional
            The seed of the hasher; ``None`` draws a new one. An error if `hasher` is given.
        sketch : {"8bit", "full", "none"}, optional
            What is stored to estimate similarities: 8 bits of each component, all bits, or nothing, which requires
            texts.
        texts : "stored", callable or None, optional
            Where the texts are that verify a match. ``"stored"`` (default): in the index, compressed. A function that
            returns the text of an id, or ``None`` if it is not known. ``None``: nowhere, so similarities are estimated,
            and a warning says what that costs.
        period : float, optional
            Seconds. Documents of different periods are in different files if they have times, so that `expire` removes
            whole files. Default: a day.

        Returns
        -------
        Index
            Empty, open for writing.

        Raises
        ------
        FileExistsError
            If there is an index, or the folder has other files.
        TypeError, ValueError
            If a parameter is wrong, or no bands reach the recall.

        Warns
        -----
        UserWarning
            With ``texts=None``: which recall is left at the threshold, and which calls need texts.
        """
        parameters, lookup = arguments.chosen_parameters(
            hasher, bands, threshold, recall, shingles, num_seeds, random_state, sketch, texts, period
        )
        if texts is None:
            arguments.warn_without_texts(parameters)
        return cls._made(path, parameters, lookup, {})

    @classmethod
    def _made(
        cls,
        path: str | os.PathLike[str],
        parameters: Parameters,
        lookup: Lookup | None,
        note: Note,
    ) -> Index:
        """Create an index with a note, and open it for writing."""
        folder, disk = arguments.folder_of(path), Disk()
        made = arguments.made_folders(folder)
        lock = WriterLock(folder)
        try:
            if os.path.exists(os.path.join(folder, file_format.MANIFEST)):
                raise FileExistsError(f"there is an index in {folder}; use Index.open, or another folder")
            create_index(disk, folder, Manifest(parameters, note=note))
            for parent in made:
                disk.sync_folder(parent)
        except BaseException:
            lock.release()
            raise
        return cls._opened_to_write(folder, lookup, lock, disk)

    @classmethod
    def open(cls, path: str | os.PathLike[str], mode: Literal["r", "a"] = "r", *, texts: Lookup | None = None) -> Index:
        """Open an index.

        Parameters
        ----------
        path : str or path
            The folder.
        mode : {"r", "a"}, optional
            ``"r"``: to read. ``"a"``: to read and write; one process can do so at a time.
        texts : callable, optional
            A function that returns the text of an id, or ``None`` if it is not known, to verify matches. An error if
            the texts are stored in the index.

        Returns
        -------
        Index
            It has a lock, so threads can share it. Close it, or use it as a context manager.

        Raises
        ------
        FileNotFoundError, NotADirectoryError
            If there is no index.
        IndexLockedError
            If another writer has the index open.
        IndexDamagedError
            If a file is damaged; the message names it.
        """
        checks.choice("mode", mode, ("r", "a"))
        folder, disk = arguments.folder_of(path), Disk()
        if os.path.isfile(folder):
            raise NotADirectoryError(f"{folder} is a file, not the folder of an index")
        if not os.path.lexists(file := os.path.join(folder, file_format.MANIFEST)):
            remedy = "correct the path, or make an index with create"
            raise FileNotFoundError(f"no index at {folder}: {file} does not exist; {remedy}")
        if mode == "a":
            manifest = read_manifest(folder)
            lookup = arguments.checked_lookup(texts, manifest.parameters)
            return cls._opened_to_write(folder, lookup, WriterLock(folder), disk)
        view, log = open_view(folder)
        lookup = arguments.checked_lookup(texts, view.manifest.parameters)
        return cls.__new__(cls)._set_up(folder, lookup, view, log, disk)

    @classmethod
    def _opened_to_write(cls, folder: str, lookup: Lookup | None, lock: WriterLock, disk: Disk) -> Index:
        try:
            view, log = open_view(folder)
            index = cls.__new__(cls)._set_up(folder, lookup, view, log, disk)
            index._writer = Writer(disk, folder, view, log, lock)
            index._writing_ends = weakref.finalize(index, _end_writing, index._writer, lock)
            index._writing_ends.atexit = False  # the process ends, and the lock with it
        except BaseException:
            lock.release()
            raise
        return index

    def close(self) -> None:
        """Commit, and close the index. It may be closed already."""
        with self._lock:
            if not self._closed and self._writer is not None and os.getpid() == self._process:
                self._writer.commit()
            self._release()  # also what an interrupted call has left

    def _release(self) -> None:
        self._closed = True
        if self._writing_ends is not None and (left := self._writing_ends.peek()) is not None:
            _end_writing(*left[2])
            self._writing_ends.detach()  # last: the next call completes one that was interrupted
        self._writer = self._writing_ends = None
        self._view = View(Manifest(self._parameters), [])

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Close the index; after an exception without a commit, so that the pending changes are lost."""
        if kind is None:
            self.close()
        else:
            with self._lock:
                self._release()

    # ---- parameters ----

    @property
    def path(self) -> str:
        """The folder, as an absolute path."""
        return self._path

    @property
    def hasher(self) -> MinHasher:
        """The hasher that computes the fingerprints."""
        return self._parameters.hasher

    @property
    def plan(self) -> Plan:
        """The bands, and the threshold and recall for which they were chosen."""
        return self._parameters.plan

    @property
    def bands(self) -> Bands:
        """The bands."""
        return self._parameters.plan.bands

    @property
    def threshold(self) -> float:
        """The similarity from which a query finds documents, unless it is told another one."""
        return self._parameters.plan.threshold

    @property
    def recall(self) -> float:
        """The recall that the bands were planned for."""
        return self._parameters.plan.recall

    def recall_at(self, similarity: float, *, min_similarity: float | None = None) -> float:
        """Return the probability that a query finds a document of this similarity.

        Parameters
        ----------
        similarity : float
            Jaccard similarity, 0 to 1.
        min_similarity : float, optional
            That of the query. Default: `threshold`.

        Returns
        -------
        float
            The probability to share a band, times that to pass the sketch filter if matches are verified, and 0 below
            `min_similarity`. Without texts, times that of an estimate of `min_similarity` or more, which is about one
            half for a document of just this similarity: to find nearly all documents of a similarity by estimates, ask
            for a `min_similarity` below it.

        Raises
        ------
        TypeError, ValueError
            If a similarity is no number from 0 to 1.
        """
        least = self.threshold
        if min_similarity is not None:
            least = checks.fraction("min_similarity", min_similarity, zero=True)
        asked = checks.fraction("similarity", similarity, zero=True)
        return recall_at(self._parameters, asked, self._verifies, least)

    def _recalls(self, similarity: float, verify: str | None) -> tuple[float, float]:
        reached = bands_recall(self._parameters, similarity, verify == "exact")
        return reached, reached if verify is None else recall_at(self._parameters, similarity, verify == "exact")

    @property
    def _verifies(self) -> bool:
        """Whether queries compare texts."""
        return self._parameters.texts or self._lookup is not None

    def __repr__(self) -> str:
        mode = "closed" if self._closed else "open for writing" if self._writer is not None else "open for reading"
        return f"<Index {self._path!r}, {mode}, bands {self.bands.to_string()}, {self.hasher!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle an index that is open for reading as its path: the copy is opened when it is unpickled."""
        with self._reading():
            if self._writer is not None:
                raise TypeError("an index that is open for writing cannot be pickled; open it for reading elsewhere")
        return partial(Index.open, self._path, texts=self._lookup), ()

    # ---- states ----

    @contextmanager
    def _reading(self) -> Iterator[View]:
        """Hold the lock, and return the documents of this moment."""
        with self._lock:
            yield self._current()

    def _current(self) -> View:
        """Return the documents of this moment; the caller has the lock."""
        self._check_open()
        if self._is_torn:
            raise RuntimeError("a refresh of the index was interrupted; call refresh() again")
        if self._writer is not None:
            if self._writer.damaged:
                raise RuntimeError("a change of the index was interrupted; call rollback() first")
            self._view = self._writer.view
        return self._view

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the index is closed; open it again with Index.open")

    @property
    def _note(self) -> Note:
        """The note of the last commit."""
        with self._reading() as view:
            return view.manifest.note

    @property
    def _additions(self) -> str:
        """How many documents are stored, and how many were ever added: another text after each change of documents."""
        with self._reading() as view:
            return f"{len(view)} of {view.recent.next_arrival}"

    def _commit(self, note: Note) -> None:
        """Commit, and replace the note in the same step."""
        with self._writing() as writer:
            writer.commit(note)

    def _snapshot(self) -> IndexSnapshot:
        """Return the documents of this moment, for `lsh.deduplicate` and `lsh.find_pairs`."""
        with self._reading() as view:
            return IndexSnapshot(view, self._lookup)

    @contextmanager
    def _writing(self) -> Iterator[Writer]:
        """Hold the lock for a change."""
        with self._lock:
            self._check_open()
            if self._writer is None:
                raise ValueError("the index is open for reading; open it with Index.open(path, 'a') to change it")
            if os.getpid() != self._process:
                raise RuntimeError("the index was opened to write before a fork; the other process writes it")
            yield self._writer

    def commit(self) -> None:
        """Make all changes durable, and visible to other processes, as one step.

        When this returns, the changes are on the disk. If it raises an error, all of them are or none; after an
        OSError they are still pending, and a later commit tries again.
        """
        with self._writing() as writer:
            writer.commit()

    def rollback(self) -> None:
        """Undo all changes since the last commit."""
        with self._writing() as writer:
            writer.rollback()

    def refresh(self) -> bool:
        """Move to the last commit of the writer.

        An index that is open for writing is always up to date.

        Returns
        -------
        bool
            Whether there was a new commit.

        Raises
        ------
        IndexReplacedError
            If another index has taken the place of this one. Queries go on with the last commit that was read; open the
            index again to read the new one.
        """
        with self._lock:
            self._check_open()
            if self._writer is not None:
                return False
            view = self._view
            while True:
                manifest = read_manifest(self._path, view.manifest)
                self._check_identity(manifest)
                try:
                    if manifest != view.manifest or self._is_torn:
                        newest, log = open_view(self._path)
                        self._check_identity(newest.manifest)
                        self._is_torn = True  # until both are replaced
                        self._view, self._log = newest, log
                        self._searches, self._is_torn = {}, False
                        return True
                    return self._read_log(view)
                except FileNotFoundError:
                    if read_manifest(self._path, manifest) is manifest:
                        raise

    def _check_identity(self, manifest: Manifest) -> None:
        own = self._view.manifest
        if (manifest.parameters, manifest.identity) != (own.parameters, own.identity):
            raise IndexReplacedError(f"the index in {self._path} was replaced by another one; open it again")

    def _read_log(self, view: View) -> bool:
        """Apply the commits that were appended to the log."""
        log = copy(self._log)  # which notes what it has read: after an error it is read again
        try:
            changes = log.read()
        finally:  # it may be the log of another index that took the place of this one
            self._check_identity(read_manifest(self._path, view.manifest))
        if not changes:
            return False
        touched = {part for change in changes for part in change.removed["segment"].tolist()}
        held = [one.copy() if part in touched else one for part, one in enumerate(view.held)]
        moved = View(view.manifest, held)
        moved.recent = view.recent
        self._is_torn = True  # until all of this is done
        moved.apply(changes, log)
        self._view, self._log = moved, log
        self._is_torn = False
        return True

    # ---- changes ----

    def add(self, text: Text, id: DocId, *, time: Time | None = None) -> None:
        """Add a document under an id, in place of any document that is stored under this id.

        Parameters
        ----------
        text : str, bytes, bytearray or memoryview
            The text.
        id : str, bytes or int
            Its id.
        time : float, datetime or numpy.datetime64, optional
            The time of the document, for `expire`: seconds since 1970, a datetime with a time zone, or a
            numpy.datetime64.

        Raises
        ------
        TypeError, ValueError
            If an argument is wrong.
        """
        self._add_batch(*arguments.single(text, id, time))

    def add_docs(
        self,
        texts: Texts,
        ids: Iterable[DocId],
        *,
        times: Iterable[Time | None] | None = None,
        missing: Missing = "error",
        num_threads: int | None = None,
    ) -> None:
        """Add many documents; if there is an error in one of them, none is added.

        Parameters
        ----------
        texts : iterable of str or bytes, numpy array, or Arrow column
            The texts, as for `MinHasher.fingerprints`. An iterator, or another collection without a length, is read in
            pieces, and an error in a later piece does not undo the earlier ones; `rollback` does.
        ids : iterable of str, bytes or int, or Arrow column
            One id for each text, in the same order. If an id is repeated, its last text is stored.
        times : iterable of float, datetime or numpy.datetime64, or Arrow column, optional
            The time of each document, ``None`` for no time; see `add`.
        missing : {"error", "empty"}, optional
            What to do with ``None`` or a null in `texts`: raise a ValueError, or treat it as an empty text.
        num_threads : int, optional
            Number of threads, as for `MinHasher.fingerprints`. The result does not depend on it.

        Raises
        ------
        TypeError, ValueError
            If an argument is wrong, or the numbers of texts, ids and times differ.
        """
        workers = threads.number_of(num_threads)
        for codes, stamps, batch in arguments.documents_in_pieces(texts, ids, times, missing):
            self._add_batch(codes, stamps, batch, workers)

    def _add_batch(
        self, codes: list[bytes], times: NDArray[np.int64], batch: Batch, num_threads: int | None = None
    ) -> None:
        """Add the documents of a batch, which has been checked, in parts."""
        with self._writing() as writer:
            for documents, _, _ in self._parts(codes, times, batch, num_threads):
                if len(set(documents.codes)) < len(documents):
                    last = dict(zip(documents.codes, range(len(documents))))
                    documents = documents.take(np.array(sorted(last.values())))
                writer.add(documents)

    def _parts(
        self, codes: list[bytes], times: NDArray[np.int64], batch: Batch, num_threads: int | None
    ) -> Iterator[tuple[Documents, Array, Batch]]:
        """Yield the documents of a batch in parts, with the fingerprints and the texts of each part."""
        for start in range(0, len(codes), arguments.PIECE):
            stop = min(start + arguments.PIECE, len(codes))
            part = Batch(batch, start=start, stop=stop)
            one = stop - start == 1  # much faster than with threads
            if one:
                rows = batch_fingerprints(self.hasher, part)
            else:
                rows = self.hasher.fingerprints(part, missing="empty", num_threads=num_threads)
            yield self._documents(codes[start:stop], rows, times[start:stop], part), rows, part

    def _submit(
        self,
        codes: list[bytes],
        times: NDArray[np.int64],
        batch: Batch,
        top: int,
        min_similarity: float,
        is_added: Callable[[Matches], bool],
        num_threads: int | None,
    ) -> list[Matches]:
        """Add the documents of a batch whose matches allow it, one after the other; return the matches of each.

        Nothing else is added between the search for a document and its addition. The stored document of its own id is
        not a match. For `Screen`.
        """
        search, answers = self._search(min_similarity, top + 1), list[Matches]()
        for documents, rows, part in self._parts(codes, times, batch, num_threads):
            for i, code in enumerate(documents.codes):
                own, text = file_format.decoded_id(code), Batch(part, start=i, stop=i + 1)
                with self._writing() as writer:
                    found = self._answers(search, rows[i : i + 1], text.tolist)[0]
                    others = [match for match in found if match.id != own][:top]
                    answers.append(Matches(others, found.recall, found.min_similarity))
                    if is_added(answers[-1]):
                        writer.add(documents.take(np.array([i])))
        return answers

    def _documents(self, codes: list[bytes], rows: Array, times: NDArray[np.int64], batch: Batch) -> Documents:
        """Return documents with their keys and sketches."""
        texts = [text or b"" for text in batch.tolist()] if self._parameters.texts else None
        keys = self._keys(rows).T
        return Documents(codes, keys, ~self.hasher.is_empty(rows), self._sketches(rows), times, texts)

    def _sketches(self, rows: Array) -> Array:
        return rows[:, : self._layout.components].astype(self._layout.dtype)

    def _keys(self, rows: Array) -> NDArray[np.uint64]:
        """Return the band keys of fingerprints; `Bands.keys` computes the bounds of the bands at each call."""
        keys = np.empty((len(self._bounds) - 1, len(rows)), np.uint64)
        band_keys(rows, self._bounds, keys)
        return keys

    def remove(self, id: DocId) -> None:
        """Remove the document with this id.

        Parameters
        ----------
        id : str, bytes or int
            The id of the document.

        Raises
        ------
        KeyError
            If there is no such document.
        """
        code = file_format.encoded_id("id", id)
        with self._writing() as writer:
            place = writer.view.find([code])[0]
            if place is None:
                raise KeyError(id)
            writer.remove([place])

    def remove_ids(self, ids: Iterable[DocId]) -> None:
        """Remove the documents with these ids; if one of them is unknown, none is removed.

        Parameters
        ----------
        ids : iterable of str, bytes or int
            The ids. One that is repeated counts once.

        Raises
        ------
        KeyError
            If there is no document with one of the ids.
        """
        listed = several(ids)
        codes = file_format.encoded_ids("ids", listed)
        with self._writing() as writer:
            places = dict.fromkeys(writer.view.find(codes))
            if None in places:
                raise KeyError(next(one for one, place in zip(listed, writer.view.find(codes)) if place is None))
            writer.remove([place for place in places if place is not None])

    def set_time(self, id: DocId, time: Time | None) -> None:
        """Change the time of a document. It is then the last one in the order of the index.

        Parameters
        ----------
        id : str, bytes or int
            The id of the document.
        time : float, datetime, numpy.datetime64 or None
            Its new time, as for `add`; ``None`` for no time.

        Raises
        ------
        KeyError
            If there is no document with this id.

        Notes
        -----
        Without stored texts this reads the numbers of all documents.
        """
        stamp = arguments.as_time("time", time)
        with self._writing() as writer:
            writer.add(self._stored_document(writer.view, id, self._place(writer.view, id), stamp))

    def expire(self, before: Time) -> int:
        """Remove the documents whose time is before the given one.

        Files whose documents are all older are dropped as a whole. Documents without a time stay.

        Parameters
        ----------
        before : float, datetime or numpy.datetime64
            A time, as for `add`.

        Returns
        -------
        int
            The number of documents that were removed.

        Raises
        ------
        TypeError, ValueError
            If `before` is not a time.

        Examples
        --------
        >>> import lsh, tempfile
        >>> from datetime import datetime, timezone
        >>> index = lsh.Index.create(f"{tempfile.mkdtemp()}/cats")
        >>> index.add("A cat sat on the mat.", "old", time=datetime(2024, 2, 1, tzinfo=timezone.utc))
        >>> index.add("A dog ran in the park.", "new", time=datetime(2024, 3, 1, tzinfo=timezone.utc))
        >>> index.expire(before=datetime(2024, 2, 29, tzinfo=timezone.utc)), list(index)
        (1, ['new'])
        >>> index.close()
        """
        limit = arguments.as_time("before", before)
        if limit == NO_TIME:
            raise TypeError(f"before must be a time, got {before!r}")
        with self._writing() as writer:
            return writer.expire(limit)

    def compact(self) -> None:
        """Merge the files, without removed documents, and commit."""
        with self._writing() as writer:
            writer.compact()

    def merge(self, other: Index) -> None:
        """Add all documents of another index, in its order, in place of those with the same ids.

        Parameters
        ----------
        other : Index
            An index with the same hasher, plan, sketch and texts; its last commit, or its own pending changes.

        Raises
        ------
        ValueError
            If a parameter differs.
        """
        checks.instance("other", other, Index, "an Index")
        if other is self:
            return
        arguments.check_same(self._parameters, other._parameters)
        first, second = sorted((self, other), key=id)  # else two threads could wait for each other
        with first._lock, second._lock, other._reading() as view, self._writing() as writer:
            writer.merge(view)

    # ---- queries ----

    def __len__(self) -> int:
        with self._reading() as view:
            return len(view)

    def __contains__(self, id: object) -> bool:
        try:
            code = file_format.encoded_id("id", id)
        except (TypeError, ValueError):
            return False
        with self._reading() as view:
            return view.find([code])[0] is not None

    def _are_stored(self, ids: list[DocId]) -> list[bool]:
        """Return for each id whether there is a document."""
        codes = file_format.encoded_ids("ids", ids)
        with self._reading() as view:
            return [place is not None for place in view.find(codes)]

    def __iter__(self) -> Iterator[FoundId]:
        """Iterate over the ids, as they are when the iteration begins."""
        with self._reading() as view:
            fixed = View(view.manifest, [one.copy() for one in view.held])
            recent = [view.recent.codes[i] for i in view.recent.alive().tolist()]
        yield from fixed.in_order(fixed.ids)
        yield from map(file_format.decoded_id, recent)

    def _records(self, ids: list[DocId] | None, with_texts: bool) -> Iterator[tuple[DocId, float | None, bytes | None]]:
        """Yield the id, the time and the text of some documents of a reader, or of all in order."""
        with self._reading() as view:
            listed = [self._place(view, one) for one in ids or ()]

        def read(part: int, numbers: NDArray[np.int64]) -> Iterator[tuple[DocId, float | None, bytes | None]]:
            texts: Sequence[bytes | None] = view.texts(part, numbers) if with_texts else [None] * len(numbers)
            for number, doc_id, text in zip(numbers.tolist(), view.ids(part, numbers), texts):
                time = view.time(Place(part, number))
                yield doc_id, None if time is None else time / 1e6, text

        if ids is None:
            yield from view.in_order(read)
        for part, number in listed:
            yield from read(part, np.array([number]))

    def _place(self, view: View, id: DocId) -> Place:
        place = view.find([file_format.encoded_id("id", id)])[0]
        if place is None:
            raise KeyError(id)
        return place

    def time_of(self, id: DocId) -> float | None:
        """Return the time of a document.

        Parameters
        ----------
        id : str, bytes or int
            The id of the document.

        Returns
        -------
        float or None
            Seconds since 1970, UTC; ``None`` if the document has no time.

        Raises
        ------
        KeyError
            If there is no document with this id.
        """
        with self._reading() as view:
            time = view.time(self._place(view, id))
        return None if time is None else time / 1e6

    def text_of(self, id: DocId) -> bytes:
        """Return the stored text of a document.

        Parameters
        ----------
        id : str, bytes or int
            The id of the document.

        Returns
        -------
        bytes
            The text in UTF-8.

        Raises
        ------
        KeyError
            If there is no document with this id.
        ValueError
            If the index stores no texts.
        """
        if not self._parameters.texts:
            raise ValueError("the index stores no texts; create it with texts='stored'")
        with self._reading() as view:
            place = self._place(view, id)
            return view.texts(place.part, np.array([place.number]))[0]

    def query(
        self,
        text: Text | None = None,
        *,
        id: DocId | None = None,
        top: int | None = None,
        min_similarity: float | None = None,
    ) -> Matches:
        """Find the documents that are similar to a text, or to a stored document.

        Parameters
        ----------
        text : str, bytes, bytearray or memoryview, optional
            The text.
        id : str, bytes or int, optional
            In place of `text`: the id of a stored document, which is not among the matches. Without stored texts this
            reads the numbers of all documents.
        top : int, optional
            Return at most so many matches, 1 or more. Default: all.
        min_similarity : float, optional
            Return documents of this similarity or a higher one. Default: the threshold of the index.

        Returns
        -------
        Matches
            A tuple of `Match`, the most similar first, with its `recall`.

        Raises
        ------
        KeyError
            If there is no document with this id.
        TypeError, ValueError
            If an argument is wrong, or the bands find less than half of the documents at `min_similarity`.

        Examples
        --------
        >>> import lsh, tempfile
        >>> index = lsh.Index.create(f"{tempfile.mkdtemp()}/cats", shingles=lsh.Shingles(4))
        >>> index.add_docs(["A cat sat on the mat today.", "A dog ran in the park."], ["a", "b"])
        >>> matches = index.query("A cat sat on the mat today!")
        >>> [(match.id, match.similarity) for match in matches], round(matches.recall, 3)
        ([('a', 0.92)], 0.991)
        >>> index.close()
        """
        search = self._search(min_similarity, top)
        checks.one_of("text", text, "id", id)
        if text is not None:
            row = self._parameters.hasher.fingerprint(checks.text("text", text))
            if row.tobytes() == self._empty:  # much faster than `MinHasher.is_empty`
                return search.none
            return self._keyed_answers(search, row[None], lambda: Batch([text]).tolist())[0]
        own = search.looked_up(id) if self._lookup is not None and id in self else None  # type: ignore[arg-type]
        return self._found(search, lambda view: self._asked(view, id, own))[0]  # type: ignore[arg-type]

    def _asked(self, view: View, id: DocId, own: bytes | None) -> Asked | None:
        """Return the query for a stored document with a known text, ``None`` if it has no keys."""
        place = self._place(view, id)
        stored = self._stored_document(view, id, place, NO_TIME)
        if not stored.keyed[0]:
            return None
        texts = [own] if stored.texts is None else stored.texts
        return Asked(stored.keys.T, stored.sketches if self._layout.components else None, texts, place)

    def _stored_document(self, view: View, id: DocId, place: Place, time: int) -> Documents:
        """Return a stored document with another time; from its text where it is stored, which is faster."""
        codes, times = [file_format.encoded_id("id", id)], np.array([time], np.int64)
        if self._parameters.texts:
            batch = Batch(view.texts(place.part, np.array([place.number])))
            return self._documents(codes, self.hasher.fingerprints(batch), times, batch)
        keys, sketch = view.keys_and_sketch(place)
        found = np.zeros((1, self._layout.bands), np.uint64) if keys is None else keys[None]
        return Documents(codes, found, np.array([keys is not None]), sketch[None], times, None)

    def query_docs(
        self,
        texts: Texts,
        *,
        top: int | None = None,
        min_similarity: float | None = None,
        missing: Missing = "error",
        num_threads: int | None = None,
    ) -> list[Matches]:
        """Find the documents that are similar to each of many texts; see `query`.

        Parameters
        ----------
        texts : iterable of str or bytes, numpy array, or Arrow column
            The texts, as for `MinHasher.fingerprints`.
        top, min_similarity : optional
            As for `query`.
        missing : {"error", "empty"}, optional
            What to do with ``None`` or a null in `texts`: raise a ValueError, or treat it as an empty text.
        num_threads : int, optional
            Number of threads, as for `MinHasher.fingerprints`. The result does not depend on it.

        Returns
        -------
        list of Matches
            One for each text.

        Raises
        ------
        TypeError, ValueError
            If a text or a parameter is wrong, as for `query`.
        """
        search, allowed = self._search(min_similarity, top), allows_missing(missing)
        workers = threads.number_of(num_threads)
        answers: list[Matches] = []
        for piece in each_piece("texts", texts, arguments.PIECE):
            batch = Batch(piece, len(answers), allowed)
            for start in range(0, len(batch), arguments.PIECE):
                part = Batch(batch, start=start, stop=min(start + arguments.PIECE, len(batch)))
                rows = self.hasher.fingerprints(part, missing="empty", num_threads=workers)
                answers += self._answers(search, rows, part.tolist)
        return answers

    def _search(self, min_similarity: float | None, top: int | None) -> Search:
        """Return the search for these parameters."""
        key = min_similarity, top, type(min_similarity), type(top)  # as True == 1 == 1.0
        try:
            if (found := self._searches.get(key)) is not None:
                return found
        except TypeError:  # not hashable: an error says so
            pass
        made = Search(self._parameters, self._estimator, min_similarity, top, self._lookup)
        if len(self._searches) < MAX_SEARCHES:
            with suppress(TypeError):  # an array of no dimensions is a number, but not hashable
                self._searches[key] = made
        return made

    def _answers(self, search: Search, rows: Array, texts: Callable[[], list[bytes | None]]) -> list[Matches]:
        """Return the matches of each fingerprint."""
        if (empty := self.hasher.is_empty(rows)).any():
            chosen = np.flatnonzero(~empty)
            answers = [search.none] * len(rows)
            if len(chosen):
                some = self._answers(search, rows[chosen], lambda: [own[i] for own in (texts(),) for i in chosen])
                for i, found in zip(chosen.tolist(), some):
                    answers[i] = found
            return answers
        return self._keyed_answers(search, rows, texts)

    def _keyed_answers(self, search: Search, rows: Array, texts: Callable[[], list[bytes | None]]) -> list[Matches]:
        """Return the matches of each fingerprint; none is that of a text without shingles."""
        sketches = self._sketches(rows) if self._layout.components else None
        own = texts() if search.verifies else [None] * len(rows)
        asked = Asked(self._keys(rows), sketches, own)
        return self._found(search, lambda _: asked)

    def _found(self, search: Search, ask: Callable[[View], Asked | None]) -> list[Matches]:
        """Return the matches of queries in a view. A reader does not lock its segments, as they do not change."""
        with self._lock:
            view = self._current()
            if (asked := ask(view)) is None:
                return [search.none]
            recent = search.found(view, asked, True)
            if self._writer is not None:
                return search.matches(view, asked, search.found(view, asked, False) + recent)
        return search.matches(view, asked, search.found(view, asked, False) + recent)

    def deduplicate(
        self,
        threshold: float | None = None,
        *,
        keep: Literal["first", "last"] = "first",
        clusters: Clusters = "representative",
        verify: Verify = "exact",
        max_memory: int | str | None = None,
        temp_dir: str | os.PathLike[str] | None = None,
        num_threads: int | None = None,
        progress: Progress | bool | None = None,
    ) -> list[Duplicate]:
        """Find the near duplicates among the documents of the index; nothing is removed.

        Parameters
        ----------
        threshold : float, optional
            Documents with this Jaccard similarity or a higher one are near duplicates. Default: that of the index.
        keep : {"first", "last"}, optional
            Which one of several near duplicates to keep, in the order of the index.
        clusters, verify, max_memory, temp_dir, num_threads, progress
            As for `lsh.deduplicate`. ``verify="exact"`` requires texts.

        Returns
        -------
        list of Duplicate
            The documents to remove, in the order of the index: ``id``, ``kept`` (the id of the witness), their
            ``similarity``, and whether they are ``identical``.

        Raises
        ------
        TypeError, ValueError
            If a parameter is wrong, the recall at `threshold` is below 0.5, or the index cannot return texts.

        Examples
        --------
        >>> import lsh, tempfile
        >>> index = lsh.Index.create(f"{tempfile.mkdtemp()}/cats", shingles=lsh.Shingles(4))
        >>> index.add_docs(["A cat sat on the mat today.", "A cat sat on the mat today!"], ["a", "b"])
        >>> for duplicate in index.deduplicate():
        ...     print(duplicate.id, duplicate.kept, duplicate.similarity)
        ...     index.remove(duplicate.id)
        b a 0.92
        >>> index.close()
        """
        return duplicates_in(self, threshold, keep, clusters, verify, max_memory, temp_dir, num_threads, progress)

    def find_pairs(
        self,
        threshold: float | None = None,
        *,
        verify: Verify = "exact",
        max_memory: int | str | None = None,
        temp_dir: str | os.PathLike[str] | None = None,
        num_threads: int | None = None,
        progress: Progress | bool | None = None,
    ) -> Iterator[tuple[FoundId, FoundId, float]]:
        """Find the pairs of near duplicates among the documents of the index.

        Parameters
        ----------
        threshold : float, optional
            The least Jaccard similarity of a pair. Default: the threshold of the index.
        verify, max_memory, temp_dir, num_threads, progress
            As for `lsh.deduplicate`. ``verify="exact"`` requires texts.

        Returns
        -------
        iterator of tuple
            The ids of two documents and their similarity. Each pair is returned once, in the order of the index. The
            pairs are those of the documents at the time of the call.

        Raises
        ------
        TypeError, ValueError
            If a parameter is wrong, the recall at `threshold` is below 0.5, or the index cannot return texts.

        Examples
        --------
        >>> import lsh, tempfile
        >>> index = lsh.Index.create(f"{tempfile.mkdtemp()}/cats", shingles=lsh.Shingles(4))
        >>> index.add_docs(["A cat sat on the mat today.", "A cat sat on the mat today!"], ["a", "b"])
        >>> list(index.find_pairs())
        [('a', 'b', 0.92)]
        >>> index.close()
        """
        return pairs_in(self, threshold, verify, max_memory, temp_dir, num_threads, progress)

    def verify(self) -> None:
        """Read all files of the last commit and check them; an IndexDamagedError names the file that is damaged.

        An IndexReplacedError says that another index has taken the place of this one.
        """
        with self._reading():
            checked, _ = open_view(self._path)
            self._check_identity(checked.manifest)
        checked.verify()

    def info(self) -> dict[str, Any]:
        """Return facts about the index as plain values.

        Returns
        -------
        dict
            ``path``, and ``documents``, their number.
            ``segments`` and ``bytes``: the number of files of documents, and the size of these files and of the log.
            ``removed``: removed documents whose space is not yet free; ``in_log``: documents that are in the log only.
            ``earliest`` and ``latest`` time of a document in seconds since 1970, ``None`` if none has a time.
            ``format``: the version of the files; ``generation``: how often the manifest was written.
            ``threshold``, ``recall``, ``bands``, ``sketch``, ``texts``, ``period`` (seconds) and ``hasher``: the
            parameters.

        Examples
        --------
        >>> import lsh, tempfile
        >>> with lsh.Index.create(f"{tempfile.mkdtemp()}/cats") as index:
        ...     index.add("A cat sat on the mat today.", "a")
        ...     facts = index.info()
        >>> facts["documents"], facts["bands"], facts["texts"]
        (1, '6x6+13x7', True)
        """
        with self._reading() as view:
            held, recent = list(view.held), len(view.recent)
            size = sum(one.segment.written.size for one in held)
            times = [one.segment.written.times for one in held if one.segment.written.times is not None]
            known = [view.recent.time(i) for i in view.recent.alive().tolist()]
            known = [time for time in known if time != NO_TIME]
            known += [time for least, most, _ in times for time in (least, most)]
            return {
                "path": self._path,
                "documents": len(view),
                "segments": len(held),
                "bytes": size + (self._log.committed if self._writer is None else self._writer.committed),
                "removed": sum(one.removed_count for one in held),
                "in_log": recent,
                "earliest": min(known) / 1e6 if known else None,
                "latest": max(known) / 1e6 if known else None,
                "format": file_format.VERSION,
                "generation": view.manifest.generation,
                "threshold": self.threshold,
                "recall": self.recall,
                "bands": self.bands.to_string(),
                "sketch": self._parameters.sketch,
                "texts": self._parameters.texts,
                "period": self._parameters.period / 1e6,
                "hasher": self.hasher.to_dict(),
            }
