"""An index on disk: documents that are found by similarity, shared by one writer and many readers.

`Index` defines the operations. Its modules, from bottom to top: `disk` changes files, `file_format` declares their
structures, `segment` and `log` hold documents, `manifest` names the files of a commit, `view` has the documents of one
moment, `writer` changes them and `query` searches them.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from types import TracebackType
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from lsh.base import checks, threads
from lsh.segments import file_format
from lsh.segments.disk import Disk, IndexLockedError, WriterLock, folder_of, made_folders
from lsh.segments.file_format import NO_TIME, IndexDamagedError
from lsh.segments.manifest import (
    DAY,
    Manifest,
    Note,
    Parameters,
    check_same,
    checked_lookup,
    chosen_parameters,
    read_manifest,
)
from lsh.sketch.bands import Bands
from lsh.sketch.hasher import MinHasher
from lsh.sketch.planning import Plan
from lsh.store import arguments
from lsh.store.matches import Matches
from lsh.store.query import warn_without_texts
from lsh.store.reader import IndexReader
from lsh.store.view import View, open_view
from lsh.store.writer import Writer, create_index
from lsh.text.batch import Batch
from lsh.text.ids import several
from lsh.text.shingling import Shingles
from lsh.typing import DocId, Lookup, Missing, Sketch, Text, Texts, Time

__all__ = ["Index", "IndexDamagedError", "IndexLockedError", "IndexReplacedError"]


class IndexReplacedError(ValueError):
    """The folder has another index than the one that was opened; open it again."""


def _end_writing(writer: Writer, lock: WriterLock) -> None:
    """Close the files of a writer: of an index that was closed, or that is used no more."""
    try:
        writer.close()
    finally:
        lock.release()


class Index(IndexReader):
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

    _writing_ends: weakref.finalize[[Writer, WriterLock], Index] | None = None

    def __init__(self, path: NoReturn) -> None:
        raise TypeError("Index(...) opens nothing; use Index.open(path), or Index.create(path) for a new index")

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
        sketch : {"8bit", "full"}, optional
            What is stored to estimate similarities: 8 bits of each component, or all bits.
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
        parameters, lookup = chosen_parameters(
            hasher, bands, threshold, recall, shingles, num_seeds, random_state, sketch, texts, period
        )
        if texts is None:
            warn_without_texts(parameters)
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
        folder, disk = folder_of(path), Disk()
        made = made_folders(folder)
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
        folder, disk = folder_of(path), Disk()
        if os.path.isfile(folder):
            raise NotADirectoryError(f"{folder} is a file, not the folder of an index")
        if not os.path.lexists(file := os.path.join(folder, file_format.MANIFEST)):
            remedy = "correct the path, or make an index with create"
            raise FileNotFoundError(f"no index at {folder}: {file} does not exist; {remedy}")
        if mode == "a":
            manifest = read_manifest(folder)
            lookup = checked_lookup(texts, manifest.parameters)
            return cls._opened_to_write(folder, lookup, WriterLock(folder), disk)
        view, log = open_view(folder)
        lookup = checked_lookup(texts, view.manifest.parameters)
        index = cls.__new__(cls)
        index._set_up(folder, lookup, view, log, disk)
        return index

    @classmethod
    def _opened_to_write(cls, folder: str, lookup: Lookup | None, lock: WriterLock, disk: Disk) -> Index:
        try:
            view, log = open_view(folder)
            index = cls.__new__(cls)
            index._set_up(folder, lookup, view, log, disk)
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

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle an index that is open for reading as its path: the copy is opened when it is unpickled."""
        with self._reading():
            if self._writer is not None:
                raise TypeError("an index that is open for writing cannot be pickled; open it for reading elsewhere")
        return partial(Index.open, self._path, texts=self._lookup), ()

    # ---- moving to another commit ----

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

    def _commit(self, note: Note) -> None:
        """Commit, and replace the note in the same step."""
        with self._writing() as writer:
            writer.commit(note)

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
                    if manifest != view.manifest or self._needs_refresh:
                        newest, log = open_view(self._path)
                        self._check_identity(newest.manifest)
                        self._needs_refresh = True  # until both are replaced
                        self._view, self._log = newest, log
                        self._searches, self._needs_refresh = {}, False
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
        self._needs_refresh = True  # until all of this is done
        moved.apply(changes, log)
        self._view, self._log = moved, log
        self._needs_refresh = False
        return True

    def verify(self) -> None:
        """Read all files of the last commit and check them; an IndexDamagedError names the file that is damaged.

        An IndexReplacedError says that another index has taken the place of this one.
        """
        with self._reading():
            checked, _ = open_view(self._path)
            self._check_identity(checked.manifest)
        checked.verify()

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
        for codes, stamps, batch in arguments.document_batches(texts, ids, times, missing):
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
        with self._writing() as writer:
            writer.remove([self._place(writer.view, id)])

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
        check_same(self._parameters, other._parameters)
        first, second = sorted((self, other), key=id)  # else two threads could wait for each other
        with first._lock, second._lock, other._reading() as view, self._writing() as writer:
            writer.merge(view)
