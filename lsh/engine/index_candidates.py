"""Documents of an index in a corpus: those that share a bucket with another document.

An index has the sorted keys of its documents. The keys of the new texts are looked up there, and only the documents
that are found become members of the corpus, with the sketches of the index. A text is read at first only if its sketch
is that of another document, as the two texts may be copies, and later if the corpus asks for it to compare it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from lsh.base import threads
from lsh.base.arrays import Array
from lsh.engine.corpus import CandidateSource, Corpus
from lsh.engine.index_source import IndexSnapshot
from lsh.engine.placing import ends_of
from lsh.text.batch import Batch, content_keys
from lsh.typing import DocId, Progress

SKETCHES_STEP = 1 << 16  # members whose sketches are read at once
TEXTS_STEP = 1 << 10  # members whose texts are read at once
SPARE = 1 << 20  # places of one band that are found repeatedly before each is kept once
MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, so that the products of different numbers differ


class IndexCandidates(CandidateSource):
    """The documents of an index that are members of a corpus.

    Parameters
    ----------
    snapshot : IndexSnapshot
        The documents of the index.
    is_exact : bool
        Whether pairs are compared by their texts.

    Attributes
    ----------
    places : numpy.ndarray
        int64: the places of the members in the index, ascending.
    """

    def __init__(self, snapshot: IndexSnapshot, is_exact: bool) -> None:
        self.snapshot, self._is_exact = snapshot, is_exact
        self.low_bytes = snapshot.collisions > 0.0
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
            for start, keys in corpus.keys[band].chunks():
                found.append(self.snapshot.buckets(band, keys[keyed[start : start + len(keys)]]))
                new += len(found[-1][0])
                if new > SPARE:
                    found, new = [_each_once(found)], 0
            return _each_once(found)

        bands = range(corpus.bands.num_bands)
        self._found = list(threads.map_in_order(of_band, bands, corpus.num_threads))
        self.places = np.unique(np.concatenate([places for _, places in self._found]))

    def append(self, corpus: Corpus) -> None:
        """Append the members to the columns of a corpus. Of their texts, only those that may be copies are read."""
        count, self._budget = len(self.places), corpus.budget
        self._texts, self._at = Batch(()), np.full(count, -1, np.int32)  # texts that were read, and where each one is
        own = np.frombuffer(corpus.secret, np.uint64)[:, None] + np.arange(count, dtype=np.uint64) * MIX
        for (keys, places), column in zip(self._found, corpus.keys):
            all_keys = own[0].copy()  # in a band in which a member shares no bucket, a key that no other document has
            all_keys[np.searchsorted(self.places, places)] = keys
            column.append(all_keys)
        self._found.clear()
        for start in range(0, count, SKETCHES_STEP):
            rows = self.snapshot.sketches(self.places[start : start + SKETCHES_STEP])
            corpus.append_sketches(rows.astype(corpus.sketches.dtype))
            corpus.budget.release()
        self._read(self._possible_copies(corpus) if self.snapshot.has_texts else np.empty(0, np.int64))
        content, sizes, known = np.empty(len(self._texts), np.uint64), np.zeros(count, np.int64), self._at >= 0
        content_keys(self._texts, corpus.secret, content)
        own[1, known], sizes[known] = content[self._at[known]], self._texts.sizes()[self._at[known]]
        corpus.content.append(own[1])
        corpus.sizes.append(sizes)

    def _possible_copies(self, corpus: Corpus) -> Array:
        """Return the members whose sketch is that of another document: their texts may be identical."""
        new, k = corpus.offsets[-1], corpus.hasher.num_seeds

        def hashes(rows: Array) -> Array:
            sketches = Batch.of_bytes(rows.astype(np.uint8).reshape(-1), np.arange(len(rows) + 1, dtype=np.int64) * k)
            hashed = np.empty(len(rows), np.uint64)
            content_keys(sketches, corpus.secret, hashed)
            return hashed

        own = np.concatenate([np.empty(0, np.uint64), *(hashes(rows) for _, rows in corpus.sketches.chunks(new))])
        values, groups, counts = np.unique(own, return_inverse=True, return_counts=True)
        for _, rows in corpus.sketches.chunks(0, new) if len(values) else ():
            found = hashes(rows)
            at = np.minimum(np.searchsorted(values, found), len(values) - 1)
            counts[at[values[at] == found]] += 1
        return np.flatnonzero(counts[groups] > 1)

    def _read(self, numbers: Array) -> None:
        """Read the texts of some members; they remain in memory, or in a mapped file."""
        data, sizes, at = self._budget.column(np.uint8), [np.empty(0, np.int64)], len(self._texts)
        for start in range(0, len(numbers), TEXTS_STEP):
            some = numbers[start : start + TEXTS_STEP]
            texts = self.snapshot.texts(self.places[some])
            is_known = np.array([text is not None for text in texts], np.bool_)
            if self._is_exact and not is_known.all():
                unknown = self.ids(some[~is_known][:1])[0]
                raise ValueError(f"the function texts of the index has no text for id {unknown!r}")
            found = [text for text in texts if text is not None]
            data.append(np.frombuffer(b"".join(found), np.uint8))
            sizes.append(np.fromiter(map(len, found), np.int64, len(found)))
            self._at[some[is_known]] = np.arange(at, at + len(found))
            at += len(found)
        array, write = self._budget.bytes_to_fill(len(data))
        for first, chunk in data.chunks():
            write(first, chunk)
        data.free()
        self._texts = Batch.join([self._texts, Batch.of_bytes(array, ends_of(np.concatenate(sizes)))])

    def needed_texts(
        self, needed: Array, content_of: Callable[[Array], Array], secret: bytes, report: Progress
    ) -> Iterator[tuple[Array, Batch]]:
        """Yield the texts of some members in batches, with their numbers; a text that was read is not read again."""
        self._read(needed[self._at[needed] < 0])
        for start in range(0, len(needed), TEXTS_STEP):
            some = needed[start : start + TEXTS_STEP]
            yield some, self._texts.take(self._at[some])

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
