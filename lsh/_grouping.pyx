# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Band keys to buckets, buckets to pairs, pairs to decisions.

For a corpus, a bucket is a chain: `Linker` gives each document, for each band, its latest predecessor in the same
bucket, and `Walk` and `Pairs` follow the chains. For a cache, which grows and shrinks, `BinTables` holds one hash
table a band. This floor answers for memory and leaves meaning to `lsh.dedup` and `lsh.cache`.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from lsh._batch cimport Batch
from lsh._kernels cimport (
    LSH_NOTHING,
    lsh_bins_find,
    lsh_bins_free,
    lsh_link_equal,
    lsh_link_record,
    lsh_link_slots,
    lsh_siphash13,
)
from lsh._minhash cimport ShingleSets, chosen_kernels

import os

import numpy as np

cdef enum:
    SMALLEST_TABLE = 8


cdef size_t _table_size(size_t entries) noexcept nogil:
    """A power of two of which `entries` take at most half."""
    cdef size_t size = SMALLEST_TABLE
    while size < 2 * entries:
        size *= 2
    return size


# ---- band keys ----

def band_keys(rows not None, const size_t[::1] bounds not None, uint64_t[:, ::1] out not None):
    """Compute the key of each band of each fingerprint, as kernels.h defines it.

    Parameters
    ----------
    rows : numpy.ndarray
        Fingerprints, shape ``(n, k)``, uint32 or uint64; the components of a row lie side by side, the rows at any
        distance of k components or more, so that they may be the first columns of a wider matrix.
    bounds : numpy.ndarray
        uintp, shape ``(bands + 1,)``, ascending, at most k: band b covers components bounds[b] to bounds[b + 1] - 1.
    out : numpy.ndarray
        Receives the keys: uint64, shape ``(bands, n)``.
    """
    if rows.dtype == np.uint32:
        _band_keys_32(rows, bounds, out)
    else:
        _band_keys_64(rows, bounds, out)


cdef size_t _checked_stride(
    Py_ssize_t step, size_t itemsize, size_t k, const size_t[::1] bounds, uint64_t[:, ::1] out, Py_ssize_t rows
) except 0:
    """Return the distance of the rows in components, after checking all that the kernel goes by."""
    cdef Py_ssize_t i
    if bounds.shape[0] < 2 or out.shape[0] != bounds.shape[0] - 1 or out.shape[1] != rows:
        raise ValueError("out must have shape (bands, rows)")
    for i in range(bounds.shape[0]):
        if bounds[i] > k or (i > 0 and bounds[i] < bounds[i - 1]):
            raise ValueError(f"bounds must ascend and be at most the {k} components of a row, got {bounds[i]}")
    if rows < 2:  # the distance is that of nothing
        return max(k, 1)
    if step < 0 or <size_t> step < k * itemsize or <size_t> step % itemsize:
        raise ValueError(f"rows must lie {k} components or more apart, got {step} bytes")
    return max(<size_t> step // itemsize, 1)


cdef int _band_keys_32(const uint32_t[:, :] rows, const size_t[::1] bounds, uint64_t[:, ::1] out) except -1:
    cdef size_t count = rows.shape[0], k = rows.shape[1], bands = out.shape[0]
    cdef size_t stride = _checked_stride(rows.strides[0], sizeof(uint32_t), k, bounds, out, count)
    if k > 1 and rows.strides[1] != sizeof(uint32_t):
        raise ValueError("the components of a row must lie side by side")
    if count and k:
        with nogil:
            chosen_kernels().band_keys_32(&rows[0, 0], count, stride, &bounds[0], bands, &out[0, 0], count)
    return 0


cdef int _band_keys_64(const uint64_t[:, :] rows, const size_t[::1] bounds, uint64_t[:, ::1] out) except -1:
    cdef size_t count = rows.shape[0], k = rows.shape[1], bands = out.shape[0]
    cdef size_t stride = _checked_stride(rows.strides[0], sizeof(uint64_t), k, bounds, out, count)
    if k > 1 and rows.strides[1] != sizeof(uint64_t):
        raise ValueError("the components of a row must lie side by side")
    if count and k:
        with nogil:
            chosen_kernels().band_keys_64(&rows[0, 0], count, stride, &bounds[0], bands, &out[0, 0], count)
    return 0


# ---- links ----

cdef object _checked_order(order, Py_ssize_t count):
    """Return a copy of our own of documents of `count`, after checking that each comes once at most."""
    own = np.array(order, np.int32).reshape(-1)
    if len(own) and (own.min() < 0 or own.max() >= count or np.bincount(own).max() > 1):
        raise ValueError(f"order must name documents from 0 to {count - 1}, each once at most")
    return own


cdef class LinkScratch:
    """The memory for linking the documents of one band."""

    cdef lsh_link_record *records
    cdef uint32_t *table

    def __cinit__(self, size_t count, size_t entered):
        self.records = <lsh_link_record *> malloc(max(count, 1) * sizeof(lsh_link_record))
        self.table = <uint32_t *> malloc(lsh_link_slots(entered) * sizeof(uint32_t))
        if self.records == NULL or self.table == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.records)
        free(self.table)


cdef class Linker:
    """Link each document to its latest predecessor with the same key, one band at a time.

    Bands are independent of one another: threads may share a linker, each with another row of links. It holds on to 20
    to 24 bytes of scratch a document and thread.

    Parameters
    ----------
    count : int
        The number of documents that have a key.
    order : numpy.ndarray
        int32: the documents that take part, in the order in which they are seen.
    entered : int
        Only the first `entered` of them can be predecessors; the rest only look for one.
    """

    cdef Py_ssize_t count, entered
    cdef const int32_t[::1] order
    cdef list idle  # scratch of no thread at the moment; taking from a list and adding to it are atomic

    def __cinit__(self, Py_ssize_t count, order not None, Py_ssize_t entered):
        self.order = _checked_order(order, count)
        if not 0 <= entered <= self.order.shape[0]:
            raise ValueError("entered must be at most the number of documents")
        self.count, self.entered, self.idle = count, entered, []

    def link(self, const uint64_t[::1] keys not None, int32_t[::1] links not None):
        """Link the documents of one band; the GIL is released.

        Parameters
        ----------
        keys : numpy.ndarray
            The keys of the band: uint64, shape ``(count,)``.
        links : numpy.ndarray
            Receives the links: int32, shape ``(count,)``; -1 where there is none.
        """
        cdef LinkScratch scratch
        cdef Py_ssize_t taking_part = self.order.shape[0]
        if keys.shape[0] != self.count or links.shape[0] != self.count:
            raise ValueError(
                f"keys and links must be of {self.count} documents, got {keys.shape[0]} and {links.shape[0]}"
            )
        if taking_part == 0:
            links[:] = -1
            return
        try:
            scratch = <LinkScratch> self.idle.pop()
        except IndexError:
            scratch = LinkScratch(taking_part, self.entered)
        with nogil:
            lsh_link_equal(&keys[0], self.count, &self.order[0], taking_part, self.entered, scratch.records,
                           scratch.table, &links[0])
        self.idle.append(scratch)


def link_documents(keys not None, documents not None, Py_ssize_t entered):
    """Link each document to its latest predecessor with the same key, band by band.

    Parameters
    ----------
    keys : numpy.ndarray
        uint64, shape ``(bands, n)``, C-contiguous.
    documents, entered
        The order and the number of `Linker`.

    Returns
    -------
    numpy.ndarray
        int32, shape ``(bands, n)``; -1 where there is none.
    """
    cdef const uint64_t[:, ::1] view = keys
    cdef Linker linker = Linker(view.shape[1], documents, entered)
    links = np.empty((view.shape[0], view.shape[1]), np.int32)
    cdef int32_t[:, ::1] out = links
    for band in range(view.shape[0]):
        linker.link(view[band], out[band])
    return links


def first_copies(Batch batch not None, documents not None):
    """Find the byte-identical texts: for each document of `documents` the first one there with the same bytes.

    Returns
    -------
    numpy.ndarray
        int32, shape ``(batch.count,)``; a document that is the first of its bytes, or not in `documents`, has itself.
    """
    cdef Py_ssize_t i, at, document, other
    cdef const int32_t[::1] order = _checked_order(documents, batch.count)
    cdef size_t size = _table_size(order.shape[0])
    cdef uint64_t key[2]          # secret, so that nobody can choose texts that crowd the table
    cdef uint64_t hashed
    cdef int32_t *table           # document a slot, -1 where free
    cdef uint64_t *hashes         # a document
    drawn = os.urandom(sizeof(key))
    memcpy(key, <const char *> drawn, sizeof(key))
    firsts = np.arange(batch.count, dtype=np.int32)
    cdef int32_t[::1] view = firsts
    table = <int32_t *> malloc(size * sizeof(int32_t))
    hashes = <uint64_t *> malloc(max(batch.count, 1) * sizeof(uint64_t))
    if table == NULL or hashes == NULL:
        free(table)
        free(hashes)
        raise MemoryError()
    with nogil:
        memset(table, 0xFF, size * sizeof(int32_t))
        for i in range(order.shape[0]):
            document = order[i]
            hashed = lsh_siphash13(batch.texts[document], batch.lengths[document], key)
            hashes[document] = hashed
            at = hashed & (size - 1)
            while table[at] != -1:
                other = table[at]
                if (hashes[other] == hashed and batch.lengths[other] == batch.lengths[document]
                        and memcmp(batch.texts[other], batch.texts[document], batch.lengths[document]) == 0):
                    break
                at = (at + 1) & (size - 1)
            if table[at] == -1:
                table[at] = document
            else:
                view[document] = table[at]
    free(table)
    free(hashes)
    return firsts


# ---- the two walks over a corpus ----

cdef class Walk:
    """Decide document by document whether it is kept: the representative walk.

    A document is removed if an earlier kept one shares a bucket in any band with it and has a similarity of at least
    `threshold`; its witness is the most similar such document, the earliest on a tie. A chain is shortened as the walk
    goes, so that it passes over removed documents and a bucket of a million copies costs one step a copy.

    Parameters
    ----------
    sets : ShingleSets
        The exact sets of the documents.
    keys : numpy.ndarray
        Their band keys: uint64, shape ``(bands, n)``.
    order : numpy.ndarray
        int32: the documents that take part, by priority.
    threshold : float
        Least similarity of a duplicate.
    cap : int
        In a bucket only the latest `cap` kept documents are compared with.
    """

    cdef readonly int64_t capped       # kept bucket members that the cap passed over, over all documents and bands
    cdef readonly int64_t compared     # pairs compared
    cdef uint8_t[::1] _kept
    cdef int32_t[::1] _witness
    cdef double[::1] _similarity
    cdef ShingleSets sets
    cdef int32_t[:, ::1] links
    cdef int32_t[:, ::1] depth         # kept documents of the chain that ends here
    cdef const int32_t[::1] order
    cdef int32_t[::1] rank
    cdef int32_t[::1] stamp
    cdef int32_t[::1] candidates
    cdef double threshold
    cdef Py_ssize_t cap

    def __cinit__(self, ShingleSets sets not None, const uint64_t[:, ::1] keys not None, order not None,
                  double threshold, Py_ssize_t cap):
        cdef Py_ssize_t i, count = keys.shape[1]
        if sets.batch.count != count:
            raise ValueError(f"keys are of {count} documents, sets of {sets.batch.count}")
        self.sets, self.threshold, self.cap = sets, threshold, cap
        self.order = _checked_order(order, count)
        self.links = link_documents(keys, self.order, len(self.order))
        self._kept = np.zeros(count, np.uint8)
        self._witness = np.full(count, -1, np.int32)
        self._similarity = np.zeros(count)
        self.depth = np.zeros((keys.shape[0], count), np.int32)
        self.stamp = np.zeros(count, np.int32)
        self.candidates = np.empty(count, np.int32)
        self.rank = np.zeros(count, np.int32)
        for i in range(self.order.shape[0]):
            self.rank[self.order[i]] = i

    def outcome(self):
        """Return by document: kept (bool), the witness (int32, -1 for none), the similarity to it (float64)."""
        return np.array(self._kept, np.bool_), np.array(self._witness), np.array(self._similarity)

    def run(self, Py_ssize_t start, Py_ssize_t stop):
        """Decide the documents order[start .. stop); to be called over the whole order in turn."""
        cdef Py_ssize_t i
        if not 0 <= start <= stop <= self.order.shape[0]:
            raise ValueError("start and stop must lie within the order")
        with nogil:
            for i in range(start, stop):
                self._decide(self.order[i], <int32_t> i + 1)

    cdef Py_ssize_t _gather(self, int32_t document, int32_t stamp) noexcept nogil:
        """Collect the kept documents that share a bucket; the chains of `document` are left shortened."""
        cdef Py_ssize_t band, seen, found = 0
        cdef int32_t other
        for band in range(self.links.shape[0]):
            other = self.links[band, document]
            if other >= 0 and not self._kept[other]:
                other = self.links[band, other]
                self.links[band, document] = other
            if other < 0:
                continue
            self.depth[band, document] = self.depth[band, other]
            seen = 0
            while other >= 0 and seen < self.cap:
                if self.stamp[other] != stamp:
                    self.stamp[other] = stamp
                    self.candidates[found] = other
                    found += 1
                other = self.links[band, other]
                seen += 1
            self.capped += self.depth[band, document] - seen
        return found

    cdef int _decide(self, int32_t document, int32_t stamp) except -1 nogil:
        cdef Py_ssize_t i, band, found = self._gather(document, stamp)
        cdef int32_t other, best = -1
        cdef double value, most = 0.0
        if found:
            self.sets.choose(document)
        for i in range(found):
            other = self.candidates[i]
            value = self.sets.similarity(other)
            if value >= self.threshold and (best < 0 or value > most
                                            or (value == most and self.rank[other] < self.rank[best])):
                best, most = other, value
        self.compared += found
        if best >= 0:
            self._witness[document], self._similarity[document] = best, most
            return 0
        self._kept[document] = 1
        for band in range(self.links.shape[0]):
            self.depth[band, document] += 1
        return 0


cdef class Pairs:
    """Find the verified pairs of each document: those in a chain of its with enough similarity.

    Parameters
    ----------
    sets : ShingleSets
        The exact sets of the documents.
    keys, order, entered
        As for `link_documents`: a chain leads from a document to the others that it is paired with.
    firsts : numpy.ndarray
        int32, shape ``(n,)``, of `first_copies`; copies are compared once.
    threshold : float
        Least similarity of a pair.
    """

    cdef ShingleSets sets
    cdef const int32_t[:, ::1] links
    cdef const int32_t[::1] firsts
    cdef int32_t[::1] stamp
    cdef int32_t[::1] compared         # stamp of the last comparison with the first copy
    cdef double[::1] value             # and its outcome
    cdef double threshold

    def __cinit__(self, ShingleSets sets not None, const uint64_t[:, ::1] keys not None, order not None,
                  Py_ssize_t entered, firsts not None, double threshold):
        cdef Py_ssize_t count = keys.shape[1]
        own = np.array(firsts, np.int32).reshape(-1)
        if sets.batch.count != count or len(own) != count or (count and (own.min() < 0 or own.max() >= count)):
            raise ValueError("sets, keys and firsts must be of the same documents")
        self.sets, self.firsts, self.threshold = sets, own, threshold
        self.links = link_documents(keys, order, entered)
        self.stamp = np.full(count, -1, np.int32)
        self.compared = np.full(count, -1, np.int32)
        self.value = np.zeros(count)

    def next(self, Py_ssize_t document, Py_ssize_t stop):
        """Go on from `document`, before `stop`, to the first one with pairs.

        Returns
        -------
        tuple
            The document (`stop` if there is none), its partners in ascending order (int32) and the
            similarities (float64).
        """
        cdef Py_ssize_t found = 0
        if not 0 <= document <= stop <= self.links.shape[1]:
            raise ValueError("document and stop must lie within the documents")
        partners = np.empty(0, np.int32)
        while document < stop:
            found = self._count(document)
            if found:
                partners = np.empty(found, np.int32)
                values = np.empty(found)
                found = self._verify(document, partners, values)
                if found:
                    by_number = np.argsort(partners[:found])
                    return document, partners[:found][by_number], values[:found][by_number]
            document += 1
        return stop, partners[:0], np.empty(0)

    cdef Py_ssize_t _count(self, Py_ssize_t document) noexcept nogil:
        """Count the members of the document's chains, with repeats."""
        cdef Py_ssize_t band, found = 0
        cdef int32_t other
        for band in range(self.links.shape[0]):
            other = self.links[band, document]
            while other >= 0:
                found += 1
                other = self.links[band, other]
        return found

    cdef Py_ssize_t _verify(self, Py_ssize_t document, int32_t[::1] partners, double[::1] values) except -1:
        cdef Py_ssize_t band, found = 0
        cdef int32_t other, first
        with nogil:
            for band in range(self.links.shape[0]):
                other = self.links[band, document]
                while other >= 0:
                    if self.stamp[other] != document:
                        self.stamp[other] = <int32_t> document
                        first = self.firsts[other]
                        if self.compared[first] != document:
                            self.compared[first] = <int32_t> document
                            self.sets.choose(document)
                            self.value[first] = self.sets.similarity(first)
                        if self.value[first] >= self.threshold:
                            partners[found], values[found] = other, self.value[first]
                            found += 1
                    other = self.links[band, other]
        return found


# ---- the bins of a cache ----

cdef struct Band:
    uint64_t *keys      # a slot: the key of a bin
    uint32_t *heads     # its first document, LSH_NOTHING where the slot is free
    size_t size         # slots, a power of two
    size_t used
    uint32_t *next      # a document: the next of its bin, the last one's the first; LSH_NOTHING outside any bin
    uint32_t *previous


cdef class BinTables:
    """The bins of a cache: for each band a hash table from key to the documents of the bin, in order of insertion.

    Documents are numbers from 0. The members of a bin are a ring through two arrays, so that adding and removing cost
    the same in a bin of one and of a million. Not safe to share between threads; `lsh.cache.Cache` locks.

    Parameters
    ----------
    num_bands : int
        1 or more.
    """

    cdef readonly Py_ssize_t num_bands
    cdef Band *bands
    cdef size_t capacity  # documents there is room for

    def __cinit__(self, Py_ssize_t num_bands):
        cdef Py_ssize_t i
        if num_bands < 1:
            raise ValueError("num_bands must be 1 or more")
        self.bands = <Band *> calloc(num_bands, sizeof(Band))
        if self.bands == NULL:
            raise MemoryError()
        self.num_bands = num_bands
        for i in range(num_bands):
            _resize_band(&self.bands[i], SMALLEST_TABLE)

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.bands != NULL:
            for i in range(self.num_bands):
                free(self.bands[i].keys)
                free(self.bands[i].heads)
                free(self.bands[i].next)
                free(self.bands[i].previous)
        free(self.bands)

    def reserve(self, size_t documents, size_t binned):
        """Make room for documents with numbers below `documents`, of which `binned` are in the tables at once."""
        cdef Py_ssize_t i
        cdef size_t capacity
        if documents >= LSH_NOTHING:
            raise OverflowError("a cache holds at most 4,294,967,294 documents")
        for i in range(self.num_bands):
            _resize_band(&self.bands[i], min(binned, documents))
        if documents <= self.capacity:
            return
        capacity = max(documents, self.capacity + self.capacity // 2, 16)
        for i in range(self.num_bands):
            self.bands[i].next = _grow(self.bands[i].next, self.capacity, capacity)
            self.bands[i].previous = _grow(self.bands[i].previous, self.capacity, capacity)
        self.capacity = capacity

    def insert(self, const uint64_t[:, ::1] keys not None, const uint32_t[::1] documents not None):
        """Add documents, none of which is in the tables: column i of `keys` belongs to documents[i]."""
        cdef Py_ssize_t i, band
        self._check(keys, documents)
        for band in range(self.num_bands):  # memory first, so that nothing fails half way
            _resize_band(&self.bands[band], self.bands[band].used + keys.shape[1])
        with nogil:
            for band in range(self.num_bands):
                for i in range(keys.shape[1]):
                    _enter(&self.bands[band], keys[band, i], documents[i])

    def remove(self, const uint64_t[:, ::1] keys not None, const uint32_t[::1] documents not None):
        """Remove documents that were added with these keys."""
        cdef Py_ssize_t i, band
        self._check(keys, documents)
        with nogil:
            for band in range(self.num_bands):
                for i in range(keys.shape[1]):
                    _leave(&self.bands[band], keys[band, i], documents[i])

    cdef int _check(self, const uint64_t[:, ::1] keys, const uint32_t[::1] documents) except -1:
        cdef Py_ssize_t i
        if keys.shape[0] != self.num_bands or keys.shape[1] != documents.shape[0]:
            raise ValueError("keys must have shape (bands, documents)")
        for i in range(documents.shape[0]):
            if documents[i] >= self.capacity:
                raise ValueError(f"document {documents[i]} is beyond the reserved {self.capacity}")
        return 0

    def members(self, Py_ssize_t band, uint64_t key):
        """Return the documents of a bin in order of insertion, uint32; none where there is no such bin."""
        if not 0 <= band < self.num_bands:
            raise IndexError(f"band {band} of {self.num_bands}")
        cdef Band *table = &self.bands[band]
        cdef uint32_t head = table.heads[lsh_bins_find(table.keys, table.heads, table.size - 1, key)]
        cdef uint32_t document = head
        cdef Py_ssize_t count = 0
        if head == LSH_NOTHING:
            return np.empty(0, np.uint32)
        while True:
            count += 1
            document = table.next[document]
            if document == head:
                break
            if document == LSH_NOTHING or <size_t> count > self.capacity:
                raise ValueError("the bin is broken: a document was removed with other keys than it was added with")
        document = head
        result = np.empty(count, np.uint32)
        cdef uint32_t[::1] view = result
        for i in range(count):
            view[i] = document
            document = table.next[document]
        return result

    def bins(self, Py_ssize_t band):
        """Return the keys of the bins of a band (uint64) and the first document of each (uint32), by that document."""
        if not 0 <= band < self.num_bands:
            raise IndexError(f"band {band} of {self.num_bands}")
        cdef Band *table = &self.bands[band]
        cdef size_t i, at = 0
        keys, heads = np.empty(table.used, np.uint64), np.empty(table.used, np.uint32)
        cdef uint64_t[::1] keys_view = keys
        cdef uint32_t[::1] heads_view = heads
        for i in range(table.size):
            if table.heads[i] != LSH_NOTHING:
                keys_view[at], heads_view[at] = table.keys[i], table.heads[i]
                at += 1
        by_document = np.argsort(heads)
        return keys[by_document], heads[by_document]

    def num_bins(self, Py_ssize_t band):
        """Return the number of bins of a band."""
        if not 0 <= band < self.num_bands:
            raise IndexError(f"band {band} of {self.num_bands}")
        return self.bands[band].used


cdef uint32_t *_grow(uint32_t *values, size_t old, size_t new) except NULL:
    """Give an array of `old` values room for `new`, the added ones LSH_NOTHING."""
    cdef uint32_t *grown = <uint32_t *> realloc(values, new * sizeof(uint32_t))
    if grown == NULL:
        raise MemoryError()
    memset(grown + old, 0xFF, (new - old) * sizeof(uint32_t))
    return grown


cdef int _resize_band(Band *band, size_t entries) except -1:
    """Give the table room for `entries` bins, at most three quarters of the slots."""
    cdef size_t i, at, size = max(band.size, SMALLEST_TABLE)
    cdef uint64_t *keys
    cdef uint32_t *heads
    while 3 * size < 4 * entries:
        size *= 2
    if size == band.size:
        return 0
    keys = <uint64_t *> malloc(size * sizeof(uint64_t))
    heads = <uint32_t *> malloc(size * sizeof(uint32_t))
    if keys == NULL or heads == NULL:
        free(keys)
        free(heads)
        raise MemoryError()
    memset(heads, 0xFF, size * sizeof(uint32_t))
    for i in range(band.size):
        if band.heads[i] != LSH_NOTHING:
            at = lsh_bins_find(keys, heads, size - 1, band.keys[i])
            keys[at], heads[at] = band.keys[i], band.heads[i]
    free(band.keys)
    free(band.heads)
    band.keys, band.heads, band.size = keys, heads, size
    return 0


cdef void _enter(Band *band, uint64_t key, uint32_t document) noexcept nogil:
    cdef size_t at = lsh_bins_find(band.keys, band.heads, band.size - 1, key)
    cdef uint32_t head = band.heads[at], last
    if band.next[document] != LSH_NOTHING:  # entered before: the caller is wrong, the memory stays right
        return
    if head == LSH_NOTHING:
        band.keys[at], band.heads[at] = key, document
        band.next[document] = band.previous[document] = document
        band.used += 1
        return
    last = band.previous[head]
    band.next[last], band.previous[document] = document, last
    band.next[document], band.previous[head] = head, document


cdef void _leave(Band *band, uint64_t key, uint32_t document) noexcept nogil:
    cdef size_t at = lsh_bins_find(band.keys, band.heads, band.size - 1, key)
    cdef uint32_t head = band.heads[at], after, before
    after, before = band.next[document], band.previous[document]
    if head == LSH_NOTHING or after == LSH_NOTHING:  # never entered: the caller is wrong, the memory stays right
        return
    band.next[document] = LSH_NOTHING
    if after == document:
        lsh_bins_free(band.keys, band.heads, band.size - 1, at)
        band.used -= 1
        return
    band.next[before], band.previous[after] = after, before
    if head == document:
        band.heads[at] = after
