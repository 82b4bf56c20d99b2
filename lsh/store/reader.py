"""Reading an index: its parameters, the documents of one moment, and queries.

`IndexReader` is the part of `lsh.Index` that changes nothing; `lsh.store.index` opens, refreshes and changes an index.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lsh._minhash import band_keys
from lsh.base import checks, threads
from lsh.engine.dedup import Running, duplicates_in, pairs_in
from lsh.engine.index_source import IndexSource
from lsh.engine.result import Duplicate
from lsh.segments import file_format
from lsh.segments.disk import Disk
from lsh.segments.file_format import NO_TIME
from lsh.segments.log import LogReader
from lsh.segments.manifest import Note
from lsh.segments.segment import DocumentBatch
from lsh.sketch.bands import Bands
from lsh.sketch.hasher import MinHasher, batch_fingerprints
from lsh.sketch.planning import Plan
from lsh.store import arguments
from lsh.store.matches import Matches
from lsh.store.query import QueryBatch, Search, estimator_of, recall_at, recalls
from lsh.store.view import StoredPlace, View, ViewSnapshot
from lsh.store.writer import Writer
from lsh.text.batch import Batch
from lsh.text.collections import allows_missing, each_piece
from lsh.typing import Array, Clusters, DocId, FoundId, Lookup, Missing, Progress, Text, Texts, Verify

MAX_SEARCHES = 64  # of which the parameters are kept


_indexes: weakref.WeakSet[IndexReader] = weakref.WeakSet()


def _renew_locks() -> None:
    """Make new locks in a forked process, where a lock may be held by a thread that does not exist."""
    for index in list(_indexes):
        index._lock = threading.RLock()
        index._view.recent.forget_tables()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


class IndexReader(IndexSource):
    """What is read of an index: its parameters, its documents, and queries."""

    def _set_up(self, path: str, lookup: Lookup | None, view: View, log: LogReader, disk: Disk) -> None:
        """Hold the files of an index, open for reading."""
        parameters = view.manifest.parameters
        self._path, self._disk = path, disk
        self._parameters, self._lookup = parameters, lookup
        self._view: View = view
        self._log = log
        self._writer: Writer | None = None
        self._process = os.getpid()
        self._closed = False
        self._needs_refresh = False  # a refresh was interrupted
        self._estimator = estimator_of(parameters)
        self._layout, self._bounds = parameters.layout, parameters.plan.bands.bounds
        self._empty = parameters.hasher.empty.tobytes()
        self._searches: dict[tuple[object, ...], Search] = {}
        self._lock = threading.RLock()
        _indexes.add(self)

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
        asked_for = self.threshold
        if min_similarity is not None:
            asked_for = checks.fraction("min_similarity", min_similarity, zero=True)
        asked = checks.fraction("similarity", similarity, zero=True)
        return recall_at(self._parameters, asked, self._verifies, asked_for)

    def _recalls(self, similarity: float, verify: str | None) -> tuple[float, float]:
        return recalls(self._parameters, similarity, verify)

    @property
    def _verifies(self) -> bool:
        """Whether queries compare texts."""
        return self._parameters.texts or self._lookup is not None

    def __repr__(self) -> str:
        mode = "closed" if self._closed else "open for writing" if self._writer is not None else "open for reading"
        return f"<Index {self._path!r}, {mode}, bands {self.bands.to_string()}, {self.hasher!r}>"

    # ---- states ----

    @contextmanager
    def _reading(self) -> Iterator[View]:
        """Hold the lock, and return the documents of this moment."""
        with self._lock:
            yield self._current()

    def _current(self) -> View:
        """Return the documents of this moment; the caller has the lock."""
        self._check_open()
        if self._needs_refresh:
            raise RuntimeError("a refresh of the index was interrupted; call refresh() again")
        if self._writer is not None:
            if self._writer.needs_repair:
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

    def _snapshot(self) -> ViewSnapshot:
        """Return the documents of this moment, for `lsh.deduplicate` and `lsh.find_pairs`."""
        with self._reading() as view:
            return ViewSnapshot(view, self._lookup, partial(recalls, self._parameters))

    # ---- documents ----

    def _parts(
        self, codes: list[bytes], times: NDArray[np.int64], batch: Batch, num_threads: int | None
    ) -> Iterator[tuple[DocumentBatch, Array, Batch]]:
        """Yield the documents of a batch in parts, with the fingerprints and the texts of each part."""
        for start in range(0, len(codes), arguments.BATCH):
            stop = min(start + arguments.BATCH, len(codes))
            part = Batch(batch, start=start, stop=stop)
            one = stop - start == 1  # much faster than with threads
            if one:
                rows = batch_fingerprints(self.hasher, part)
            else:
                rows = self.hasher.fingerprints(part, missing="empty", num_threads=num_threads)
            yield self._documents(codes[start:stop], rows, times[start:stop], part), rows, part

    def _documents(self, codes: list[bytes], rows: Array, times: NDArray[np.int64], batch: Batch) -> DocumentBatch:
        """Return documents with their keys and sketches."""
        texts = [text or b"" for text in batch.tolist()] if self._parameters.texts else None
        keys = self._keys(rows).T
        return DocumentBatch(codes, keys, ~self.hasher.is_empty(rows), self._sketches(rows), times, texts)

    def _sketches(self, rows: Array) -> Array:
        return rows[:, : self._layout.components].astype(self._layout.dtype)

    def _keys(self, rows: Array) -> NDArray[np.uint64]:
        """Return the band keys of fingerprints; `Bands.keys` computes the bounds of the bands at each call."""
        keys = np.empty((len(self._bounds) - 1, len(rows)), np.uint64)
        band_keys(rows, self._bounds, keys)
        return keys

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
                time = view.time(StoredPlace(part, number))
                yield doc_id, None if time is None else time / 1e6, text

        if ids is None:
            yield from view.in_order(read)
        for part, number in listed:
            yield from read(part, np.array([number]))

    def _place(self, view: View, id: DocId) -> StoredPlace:
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
        checks.text_or_id(text, id)
        if text is not None:
            row = self._parameters.hasher.fingerprint(checks.text("text", text))
            if row.tobytes() == self._empty:  # much faster than `MinHasher.is_empty`
                return search.none
            return self._keyed_answers(search, row[None], lambda: Batch([text]).tolist())[0]
        own = search.looked_up(id) if self._lookup is not None and id in self else None  # type: ignore[arg-type]
        return self._found(search, lambda view: self._asked(view, id, own))[0]  # type: ignore[arg-type]

    def _asked(self, view: View, id: DocId, own: bytes | None) -> QueryBatch | None:
        """Return the query for a stored document with a known text, ``None`` if it has no keys."""
        place = self._place(view, id)
        stored = self._stored_document(view, id, place, NO_TIME)
        if not stored.keyed[0]:
            return None
        texts = [own] if stored.texts is None else stored.texts
        return QueryBatch(stored.keys.T, stored.sketches, texts, place)

    def _stored_document(self, view: View, id: DocId, place: StoredPlace, time: int) -> DocumentBatch:
        """Return a stored document with another time; from its text where it is stored, which is faster."""
        codes, times = [file_format.encoded_id("id", id)], np.array([time], np.int64)
        if self._parameters.texts:
            batch = Batch(view.texts(place.part, np.array([place.number])))
            return self._documents(codes, self.hasher.fingerprints(batch), times, batch)
        keys, sketch = view.keys_and_sketch(place)
        found = np.zeros((1, self._layout.bands), np.uint64) if keys is None else keys[None]
        return DocumentBatch(codes, found, np.array([keys is not None]), sketch[None], times, None)

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
        for piece in each_piece("texts", texts, arguments.BATCH):
            batch = Batch(piece, len(answers), allowed)
            for start in range(0, len(batch), arguments.BATCH):
                part = Batch(batch, start=start, stop=min(start + arguments.BATCH, len(batch)))
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
        sketches = self._sketches(rows)
        own = texts() if search.verifies else [None] * len(rows)
        asked = QueryBatch(self._keys(rows), sketches, own)
        return self._found(search, lambda _: asked)

    def _found(self, search: Search, ask: Callable[[View], QueryBatch | None]) -> list[Matches]:
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
        run = Running.checked(max_memory, temp_dir, num_threads, progress)
        return duplicates_in(self._snapshot(), threshold, keep, clusters, verify, run)

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
        run = Running.checked(max_memory, temp_dir, num_threads, progress)
        return pairs_in(self._snapshot(), threshold, verify, run)

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
            known += [time for earliest, latest, _ in times for time in (earliest, latest)]
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
