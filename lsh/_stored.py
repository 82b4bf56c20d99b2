"""Documents of an index in a corpus: those that share a bucket with another document.

An index has the sorted keys of its documents. The keys of the new texts are looked up there, and only the documents
that are found become members of the corpus, with the sketches of the index. A text is read only if it may be compared:
if its sketch passes the filter with that of a document of the same bucket, or is that of another member. In place of
other texts there are short unique ones, so that no two of them are taken for copies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from lsh import _threads
from lsh._batch import Batch
from lsh._comparing import content_keys
from lsh._corpus import Corpus, MoreDocuments
from lsh._placing import ends_of
from lsh._searching import Searcher, SortedKeys, sorted_keys
from lsh._spill import Array, Column, Spill
from lsh.bands import Bands
from lsh.minhash import MinHasher, batch_fingerprints
from lsh.planning import Plan

STEP = 1 << 16  # members whose sketches are read at once
TEXTS_STEP = 1 << 10  # members whose texts are read at once
QUERIES = 1 << 10  # documents that are looked up at once among the members
LARGE = 256  # members of a bucket; all texts of a larger one are read
SPARE = 1 << 20  # places of one band that are found repeatedly before each is kept once
MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, so that the products of different numbers differ

DocId = str | bytes | int


class Snapshot(ABC):
    """The documents of an index at one moment. Each has a place, a number that ascends in the order of the index."""

    has_texts: bool  # whether texts can be read
    has_sketches: bool
    collisions: (
        float  # the probability that a component of two sketches is equal although the fingerprints differ there
    )

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of documents."""

    @abstractmethod
    def buckets(self, band: int, keys: Array) -> tuple[Array, Array]:
        """Return the documents whose key in a band is one of some keys: their keys (uint64) and places (int64)."""

    @abstractmethod
    def shared(self, band: int) -> tuple[Array, Array]:
        """Return the documents whose key in a band is that of another one: their keys and places."""

    @abstractmethod
    def sketches(self, places: Array) -> Array:
        """Return the sketches of the documents at some places, which ascend, as rows."""

    @abstractmethod
    def texts(self, places: Array) -> list[bytes | None]:
        """Return the texts of the documents at some places, which ascend; ``None`` where it is unknown."""

    @abstractmethod
    def ids(self, places: Array) -> list[DocId]:
        """Return the ids of the documents at some places, which ascend."""


class Stored(ABC):
    """An index, as `lsh.deduplicate` and `lsh.find_pairs` take it."""

    @property
    @abstractmethod
    def hasher(self) -> MinHasher:
        """The hasher that computed the keys."""

    @property
    @abstractmethod
    def plan(self) -> Plan:
        """The bands, and the threshold and recall for which they were chosen."""

    @property
    def bands(self) -> Bands:
        """The bands."""
        return self.plan.bands

    @abstractmethod
    def recall_at(self, similarity: float) -> float:
        """Return the probability that a document of this similarity is found."""

    @abstractmethod
    def _recalls(self, similarity: float, verify: str | None) -> tuple[float, float]:
        """Return the probabilities that a pair of this similarity is a candidate, and that it is one and found."""

    @abstractmethod
    def _snapshot(self) -> Snapshot:
        """Return the documents of this moment."""


class Members(MoreDocuments):
    """The documents of an index that are members of a corpus.

    Parameters
    ----------
    snapshot : Snapshot
        The documents of the index.
    is_exact : bool
        Whether pairs are compared by their texts.
    least_equal : int
        The equal bytes of two sketches from which texts may be compared.

    Attributes
    ----------
    places : numpy.ndarray
        int64: the places of the members in the index, ascending.
    """

    def __init__(self, snapshot: Snapshot, is_exact: bool, least_equal: int) -> None:
        self.snapshot, self._is_exact, self._least_equal = snapshot, is_exact, least_equal
        self.low_bytes = snapshot.has_sketches and snapshot.collisions > 0.0
        self.places: Array = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self.places)

    def find(self, corpus: Corpus, keyed: Array) -> None:
        """Find the members: documents that share a bucket with a text of the corpus, or with each other if it has none.

        `keyed` says of each text whether it has shingles.
        """

        def of_band(band: int) -> tuple[Array, Array]:
            if not corpus.collections:
                return _each_once([self.snapshot.shared(band)])
            found, new = list[tuple[Array, Array]](), 0
            for start, keys in corpus.keys[band].parts():
                found.append(self.snapshot.buckets(band, keys[keyed[start : start + len(keys)]]))
                new += len(found[-1][0])
                if new > SPARE:
                    found, new = [_each_once(found)], 0
            return _each_once(found)

        bands = range(corpus.bands.num_bands)
        self._found = list(_threads.map_in_order(of_band, bands, corpus.num_threads))
        self.places = np.unique(np.concatenate([places for _, places in self._found]))

    def append(self, corpus: Corpus) -> Batch:
        """Append the members to the columns of a corpus, and return their texts."""
        count = len(self.places)
        entered = self._append_keys(corpus)
        if self.snapshot.has_sketches:
            low = self._append_sketches(corpus)
            needed = np.zeros(count, np.bool_)
            if self.snapshot.has_texts and count:
                self._mark_equal(low, needed, corpus.secret)
                self._mark_similar(low, needed, entered, corpus)
            return self._append_texts(corpus, needed)
        batch = self._append_texts(corpus, np.ones(count, np.bool_))
        for start in range(0, count, STEP):
            rows = batch_fingerprints(corpus.hasher, Batch(batch, start=start, stop=min(start + STEP, count)))
            corpus.sketches.append(rows.astype(corpus.sketches.dtype))
        return batch

    def _append_keys(self, corpus: Corpus) -> list[tuple[Array, Array]]:
        """Append the keys; in a band in which a member shares no bucket, one that no other document has.

        Returns for each band the keys and the numbers of the members in its buckets.
        """
        own = np.frombuffer(corpus.secret[:8], np.uint64) + np.arange(len(self.places), dtype=np.uint64) * MIX
        entered = []
        for (keys, places), column in zip(self._found, corpus.keys):
            numbers = np.searchsorted(self.places, places)
            all_keys = own.copy()
            all_keys[numbers] = keys
            column.append(all_keys)
            entered.append((keys, numbers.astype(np.uint32)))
        self._found.clear()
        return entered

    def _append_sketches(self, corpus: Corpus) -> Array:
        """Append the sketches, and return the low bytes of all."""
        count, k = len(self.places), corpus.hasher.num_seeds
        low = corpus.spill.array((count, k), np.uint8)
        for start in range(0, count, STEP):
            rows = self.snapshot.sketches(self.places[start : start + STEP])
            low[start : start + len(rows)] = rows.astype(np.uint8)
            corpus.sketches.append(rows.astype(corpus.sketches.dtype))
            corpus.spill.release()
        return low

    def _mark_equal(self, low: Array, needed: Array, secret: bytes) -> None:
        """Mark the members whose sketch is that of another one: the texts may be copies."""
        count, k = low.shape
        sketches = Batch.of_bytes(low.reshape(-1), np.arange(count + 1, dtype=np.int64) * k)
        hashes = np.empty(count, np.uint64)
        content_keys(sketches, secret, hashes)
        _, groups, sizes = np.unique(hashes, return_inverse=True, return_counts=True)
        needed[sizes[groups] > 1] = True

    def _mark_similar(self, low: Array, needed: Array, entered: list[tuple[Array, Array]], corpus: Corpus) -> None:
        """Mark the members whose sketch passes the filter with another document of the same bucket."""
        bands, total = [], len(corpus.keys[0])
        for keys, numbers in entered:
            _, buckets, sizes = np.unique(keys, return_inverse=True, return_counts=True)
            large = sizes[buckets] > LARGE
            needed[numbers[large]] = True
            bands.append(SortedKeys(*sorted_keys(keys[~large], numbers[~large])))
        searcher, alone = Searcher(bands, len(low), low), 0 if corpus.collections else 1  # each finds itself
        stop = total - len(low) if corpus.collections else total

        def found(start: int) -> Array:
            end = min(start + QUERIES, stop)
            keys = np.stack([column.read(start, end) for column in corpus.keys])
            rows = corpus.sketches.read(start, end).astype(np.uint8)
            bounds, numbers, _ = searcher.search(keys, rows, self._least_equal)
            return numbers[np.repeat(np.diff(bounds) > alone, np.diff(bounds))]

        for numbers in _threads.map_in_order(found, range(0, stop, QUERIES), corpus.num_threads):
            needed[numbers] = True

    def _append_texts(self, corpus: Corpus, needed: Array) -> Batch:
        """Append content keys and sizes, and return the texts that are needed, with unique ones in place of others."""
        data, sizes = corpus.spill.column(np.uint8), np.empty(len(needed), np.int64)
        for start in range(0, len(needed), TEXTS_STEP):
            some = self._texts(slice(start, start + TEXTS_STEP), needed, corpus.secret)
            lengths = np.fromiter(map(len, some), np.int64, len(some))
            joined = np.frombuffer(b"".join(some), np.uint8)
            content = np.empty(len(some), np.uint64)
            content_keys(Batch.of_bytes(joined, ends_of(lengths)), corpus.secret, content)
            for column, more in ((data, joined), (corpus.content, content), (corpus.sizes, lengths)):
                column.append(more)
            sizes[start : start + len(some)] = lengths
        return Batch.of_bytes(_filled(corpus.spill, data), ends_of(sizes))

    def _texts(self, here: slice, needed: Array, secret: bytes) -> list[bytes]:
        places, wanted = self.places[here], np.flatnonzero(needed[here])
        texts = [b"\xff" + secret + b"%d" % place for place in places.tolist()]  # which no document can have
        if len(wanted):
            for i, text in zip(wanted.tolist(), self.snapshot.texts(places[wanted])):
                if text is not None:
                    texts[i] = text
                elif self._is_exact or not self.snapshot.has_sketches:
                    unknown = self.snapshot.ids(places[i : i + 1])[0]
                    raise ValueError(f"the function texts of the index has no text for id {unknown!r}")
        return texts

    def ids(self, numbers: Array) -> list[DocId]:
        """Return the ids of some members, by number, in any order."""
        distinct, back = np.unique(numbers, return_inverse=True)
        ids = self.snapshot.ids(self.places[distinct])
        return [ids[i] for i in back.tolist()]


def _each_once(found: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return keys and places in order of place, each place once."""
    keys = np.concatenate([np.empty(0, np.uint64), *(some for some, _ in found)])
    places, first = np.unique(np.concatenate([np.empty(0, np.int64), *(some for _, some in found)]), return_index=True)
    return keys[first], places


def _filled(spill: Spill, data: Column) -> Array:
    """Return the bytes of a column as an array for random access; the column is freed."""
    array, write = spill.bytes_to_fill(len(data))
    for at, part in data.parts():
        write(at, part)
    data.free()
    return array
