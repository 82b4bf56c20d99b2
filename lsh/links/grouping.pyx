# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Band keys to buckets, and links to components.

For a corpus, `BucketFinder` finds the documents that share a key, one band at a time, and `Components` connects those
that are linked. For a cache, which grows and shrinks, `BucketTables` holds one hash table a band. `lsh.links.linking`,
`lsh.engine.layout` and `lsh.store.cache` give them their meaning.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memset

from lsh cimport _kernels as c
from lsh._minhash cimport chosen_kernels
from lsh.base.components cimport flatten, unite
from lsh.base.memory cimport resize

import numpy as np

cdef enum:
    SMALLEST_TABLE = 8


# ---- the buckets of a corpus ----

def pack_low_bits(rows not None, size_t bits):
    """Take the low bits of the components of sketches together, so that two are compared in a few instructions.

    Parameters
    ----------
    rows : numpy.ndarray
        uint8, shape ``(n, k)``, C-contiguous: the lowest byte of each component.
    bits : int
        How many bits of each, 1 to 8.

    Returns
    -------
    numpy.ndarray
        uint64, shape ``(n, bits * ceil(k / 64))``.
    """
    cdef size_t i, count = rows.shape[0], k = rows.shape[1]
    cdef size_t words = bits * ((k + 63) // 64)
    cdef const c.lsh_kernels *kernels = chosen_kernels()
    cdef const uint8_t[::1] given = rows.reshape(-1)
    packed = np.empty(count * words, np.uint64)
    cdef uint64_t[::1] out = packed
    with nogil:
        for i in range(count):
            kernels.pack_low_bits(&given[i * k], k, bits, &out[i * words])
    return packed.reshape(count, words)


def rows_by_range(const uint64_t[:, ::1] keys not None, const uint64_t[::1] numbers not None,
                  const uint64_t[:, ::1] low_bits not None, const int64_t[::1] chosen not None, int bits):
    """Write a row for each band key of some documents, range by range.

    Parameters
    ----------
    keys : numpy.ndarray
        uint64, shape ``(bands, n)``.
    numbers : numpy.ndarray
        uint64, shape ``(n,)``: the second value of each row of a document.
    low_bits : numpy.ndarray
        uint64, shape ``(n, words)``: the values after it.
    chosen : numpy.ndarray
        int64: the documents, 0 to n - 1.
    bits : int
        The highest bits of a key are its range, 1 to 16 of them.

    Returns
    -------
    rows : numpy.ndarray
        uint64, shape ``(bands * len(chosen), 2 + words)``; those of a range by band, and in the order of `chosen`.
    ends : numpy.ndarray
        int64, shape ``(2 ** bits,)``: where the rows of each range end.
    """
    cdef Py_ssize_t bands = keys.shape[0], count = chosen.shape[0], words = low_bits.shape[1]
    cdef Py_ssize_t band, i, word, shift = 64 - bits
    cdef uint64_t *row
    rows, ends = np.empty((bands * count, 2 + words), np.uint64), np.zeros(1 << bits, np.int64)
    cdef uint64_t[:, ::1] out = rows
    cdef int64_t[::1] sizes = np.zeros(1 << bits, np.int64), places = ends
    with nogil:
        for band in range(bands):
            for i in range(count):
                sizes[keys[band, chosen[i]] >> shift] += 1
        for i in range(1, places.shape[0]):  # where each range begins, and then where it ends
            places[i] = places[i - 1] + sizes[i - 1]
        for band in range(bands):
            for i in range(count):
                row = &out[places[keys[band, chosen[i]] >> shift], 0]
                places[keys[band, chosen[i]] >> shift] += 1
                row[0], row[1] = keys[band, chosen[i]], numbers[chosen[i]]
                for word in range(words):
                    row[2 + word] = low_bits[chosen[i], word]
    return rows, ends


def select_part(keys not None, const uint8_t[::1] chosen not None, uint32_t part, uint32_t parts):
    """Select the keys of a part, by their hashes, of some documents.

    Parameters
    ----------
    keys : numpy.ndarray
        uint32 or uint64, shape ``(n,)``, C-contiguous.
    chosen : numpy.ndarray
        uint8, shape ``(n,)``: 1 for each document that takes part, else 0.
    part : int
        0 to ``parts - 1``.
    parts : int
        How many parts there are.

    Returns
    -------
    selected, documents : numpy.ndarray
        The keys, and their numbers from 0 to n - 1 (int32), both in this order.
    """
    cdef size_t found, count = chosen.shape[0], key_bytes = 4 if keys.dtype == np.uint32 else 8
    selected, documents = np.empty(count, keys.dtype), np.empty(count, np.int32)
    cdef const uint8_t[::1] given = keys.view(np.uint8)
    cdef uint8_t[::1] out = selected.view(np.uint8)
    cdef int32_t[::1] numbers = documents
    if <size_t> given.shape[0] != count * key_bytes:
        raise ValueError("keys must be uint32 or uint64, one for each document")
    if count == 0:
        return selected, documents
    with nogil:
        found = c.lsh_select_part(&given[0], key_bytes, &chosen[0], count, part, parts, &out[0], &numbers[0])
    return selected[:found].copy(), documents[:found].copy()


cdef class _Scratch:
    """The memory for the documents of one band."""

    cdef uint64_t[::1] records  # an array of numpy, which asks for huge pages
    cdef uint32_t[::1] table

    def __cinit__(self, size_t count, size_t entered):
        self.records = np.empty(2 * count, np.uint64)
        self.table = np.empty(c.lsh_bucket_slots(entered) + count, np.uint32)


cdef class BucketFinder:
    """Find the documents that share a key, one band at a time.

    Bands are independent of one another: threads may share this object, each with another array of keys. It holds on
    to 16 to 28 bytes of scratch a document and thread.

    Parameters
    ----------
    count : int
        The number of documents that have a key.
    order : numpy.ndarray or None
        int32: the documents that take part, in the order in which they are seen. None: `count` or fewer, by number.
    entered : int
        A bucket has at least one of the first `entered` of them.
    """

    cdef readonly Py_ssize_t count
    cdef Py_ssize_t entered
    cdef bint by_number
    cdef const int32_t[::1] order
    cdef list idle  # scratch that no thread uses; pop and append of a list are atomic

    def __cinit__(self, Py_ssize_t count, order, Py_ssize_t entered):
        self.by_number = order is None
        self.order = np.arange(count, dtype=np.int32) if order is None else np.ascontiguousarray(order, np.int32)
        self.count, self.entered, self.idle = count, entered, []

    def find(self, uint64_t[::1] keys not None, Py_ssize_t entered=-1, bint short=False):
        """Find the documents of one band; the GIL is released.

        Parameters
        ----------
        keys : numpy.ndarray
            The keys of the band: uint64, shape ``(count,)``, or of the documents that take part, where they do so by
            number. They are overwritten: the result lies in their memory.
        entered : int, optional
            In place of that of the class, and not more.
        short : bool, optional
            Keys of 4 bytes, which take the first half of the memory of `keys`.

        Returns
        -------
        members, ends : numpy.ndarray
            The documents of each bucket of two or more, bucket by bucket, each in the order (int32), and where each
            bucket ends (uint32).
        """
        cdef _Scratch scratch
        cdef Py_ssize_t count = keys.shape[0], taking_part = count if self.by_number else self.order.shape[0]
        cdef size_t found
        entered = self.entered if entered < 0 else entered
        if taking_part == 0:
            return np.empty(0, np.int32), np.empty(0, np.uint32)
        try:
            scratch = <_Scratch> self.idle.pop()
        except IndexError:
            scratch = _Scratch(self.order.shape[0], self.entered)
        with nogil:
            found = c.lsh_find_buckets(&keys[0], 4 if short else 8, count, &self.order[0], taking_part, entered,
                                       &scratch.records[0], &scratch.table[0])
        self.idle.append(scratch)
        if found == c.LSH_CHANGED:
            raise ValueError("keys must not change while their buckets are found")
        both = np.asarray(keys).view(np.int32)
        ends = both[count:count + <Py_ssize_t> found].view(np.uint32)
        return both[:ends.max(initial=0)], ends


# ---- the components of a corpus ----

cdef class Components:
    """The connected components of documents.

    Parameters
    ----------
    count : int
        The number of documents, which are numbers from 0 in the order of the walk.
    """

    cdef int32_t[::1] parents  # of each document an earlier member of its component, or itself

    def __cinit__(self, Py_ssize_t count):
        self.parents = np.arange(count, dtype=np.int32)

    def connect(self, const int32_t[:, ::1] pairs not None, const int32_t[::1] numbers not None):
        """Connect documents pair by pair.

        Parameters
        ----------
        pairs : numpy.ndarray
            int32, shape ``(n, 2)``: of documents by other numbers.
        numbers : numpy.ndarray
            int32: the number of each document by these numbers.
        """
        cdef Py_ssize_t i
        with nogil:
            for i in range(pairs.shape[0]):
                unite(&self.parents[0], numbers[pairs[i, 0]], numbers[pairs[i, 1]])

    def firsts(self):
        """Return the first document of the component of each one: int32, the memory of this object."""
        if self.parents.shape[0]:
            flatten(&self.parents[0], <int32_t> self.parents.shape[0])
        return np.asarray(self.parents)

    def order(self):
        """Return the documents component by component; those of a component, and the components, by first number.

        Returns
        -------
        documents : numpy.ndarray
            int32, shape ``(n,)``.
        starts : numpy.ndarray
            int64, shape ``(components + 1,)``: where each component begins in `documents`, and n.
        """
        cdef int32_t i, root, count = <int32_t> self.parents.shape[0]
        cdef int64_t at = 0
        documents, ends = np.empty(count, np.int32), np.zeros(count, np.int64)
        cdef int32_t[::1] placed = documents
        cdef int64_t[::1] places = ends
        with nogil:
            if count:
                flatten(&self.parents[0], count)
            for i in range(count):
                places[self.parents[i]] += 1
            for i in range(count):  # from sizes to where each component begins, at its root
                if self.parents[i] == i:
                    at += places[i]
                    places[i] = at - places[i]
            for i in range(count):
                root = self.parents[i]
                placed[places[root]] = i
                places[root] += 1
        roots = np.flatnonzero(np.asarray(self.parents) == np.arange(count, dtype=np.int32))
        return documents, np.concatenate([np.zeros(1, np.int64), ends[roots]])


def write_links(const int32_t[:, ::1] pairs not None, const int32_t[::1] numbers not None,
                int32_t[::1] links not None):
    """Write the links of a band: to `links`, at the number of the first document of each pair, that of the second.

    `pairs` and `numbers` are as for `Components.connect`.
    """
    cdef Py_ssize_t i
    with nogil:
        for i in range(pairs.shape[0]):
            links[numbers[pairs[i, 0]]] = numbers[pairs[i, 1]]


# ---- the bins of a cache ----

cdef struct Band:
    uint64_t *keys      # a slot: the key of a bin; the heads follow the keys in the same memory
    uint32_t *heads     # its first document, LSH_NOTHING where the slot is free
    size_t size         # slots, a power of two
    size_t used
    uint32_t *next      # a document: the next of its bin, the last one's the first; LSH_NOTHING outside any bin
    uint32_t *previous


cdef class _Found:
    """Documents that were found in bins."""

    cdef uint32_t *documents
    cdef size_t count, room

    def __dealloc__(self):
        free(self.documents)

    cdef int append_bin(self, Band *band, uint64_t key) except -1 nogil:
        """Append the documents of a bin in order of insertion."""
        cdef uint32_t head = band.heads[c.lsh_bins_find(band.keys, band.heads, band.size - 1, key)], document = head
        while head != c.LSH_NOTHING:
            if self.count == self.room:
                self.documents = <uint32_t *> resize(self.documents, 2 * self.room + 16, sizeof(uint32_t))
                self.room = 2 * self.room + 16
            self.documents[self.count] = document
            self.count += 1
            document = band.next[document]
            if document == head:
                break
        return 0

    cdef void sort(self, size_t start) noexcept nogil:
        """Sort the documents from `start` on, and keep each once."""
        cdef size_t i, kept = start
        if self.count > start:
            qsort(self.documents + start, self.count - start, sizeof(uint32_t), _order)
        for i in range(start, self.count):
            if kept == start or self.documents[kept - 1] != self.documents[i]:
                self.documents[kept] = self.documents[i]
                kept += 1
        self.count = kept

    cdef object array(self):
        cdef size_t i
        result = np.empty(self.count, np.uint32)
        cdef uint32_t[::1] view = result
        for i in range(self.count):
            view[i] = self.documents[i]
        return result


cdef int _order(const void *a, const void *b) noexcept nogil:
    cdef uint32_t first = (<const uint32_t *> a)[0], second = (<const uint32_t *> b)[0]
    return (first > second) - (first < second)


cdef class BucketTables:
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
    cdef size_t capacity  # documents that fit into the arrays

    def __cinit__(self, Py_ssize_t num_bands):
        cdef Py_ssize_t i
        self.bands = <Band *> resize(NULL, num_bands, sizeof(Band))
        memset(self.bands, 0, num_bands * sizeof(Band))
        self.num_bands = num_bands
        for i in range(num_bands):
            _resize_band(&self.bands[i], SMALLEST_TABLE)

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.bands != NULL:
            for i in range(self.num_bands):
                free(self.bands[i].keys)
                free(self.bands[i].next)
                free(self.bands[i].previous)
        free(self.bands)

    def reserve(self, size_t documents, size_t binned):
        """Allocate memory for documents with numbers below `documents`, of which `binned` are in the tables at once."""
        cdef Py_ssize_t i
        cdef size_t capacity
        if documents >= c.LSH_NOTHING:
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
        for band in range(self.num_bands):  # memory first, so that no error leaves a half-finished change
            _resize_band(&self.bands[band], self.bands[band].used + keys.shape[1])
        with nogil:
            for band in range(self.num_bands):
                for i in range(keys.shape[1]):
                    _enter(&self.bands[band], keys[band, i], documents[i])

    def remove(self, const uint64_t[:, ::1] keys not None, const uint32_t[::1] documents not None):
        """Remove documents that were added with these keys."""
        cdef Py_ssize_t i, band
        with nogil:
            for band in range(self.num_bands):
                for i in range(keys.shape[1]):
                    _leave(&self.bands[band], keys[band, i], documents[i])

    def members(self, Py_ssize_t band, uint64_t key):
        """Return the documents of a bin in order of insertion, uint32; empty if the bin does not exist."""
        cdef _Found found = _Found()
        found.append_bin(&self.bands[band], key)
        return found.array()

    def candidates(self, const uint64_t[:, ::1] keys not None, Py_ssize_t first=0, size_t enough=<size_t> -1):
        """Find the documents that share a bin with queries.

        Parameters
        ----------
        keys : numpy.ndarray
            uint64, shape ``(bands, q)``: the keys of each query.
        first : int, optional
            The query to begin with.
        enough : int, optional
            No further query is looked up once so many documents were found.

        Returns
        -------
        bounds : numpy.ndarray
            int64: query first + i has the documents from bounds[i] to bounds[i + 1] - 1.
        documents : numpy.ndarray
            uint32, each once and ascending within a query.
        """
        cdef Py_ssize_t query = first, band
        cdef size_t start
        cdef _Found found = _Found()
        cdef int64_t[::1] bounds = np.zeros(keys.shape[1] - first + 1, np.int64)
        with nogil:
            while query < keys.shape[1] and found.count < enough:
                start = found.count
                for band in range(self.num_bands):
                    found.append_bin(&self.bands[band], keys[band, query])
                found.sort(start)
                query += 1
                bounds[query - first] = found.count
        return np.asarray(bounds)[:query - first + 1], found.array()

    def bins(self, Py_ssize_t band):
        """Return the bins of a band, ordered by the first document of each.

        Returns
        -------
        keys : numpy.ndarray
            uint64, shape ``(n,)``.
        documents : numpy.ndarray
            uint32: the members of bin 0 in order of insertion, then those of bin 1, and so on.
        bounds : numpy.ndarray
            intp, shape ``(n + 1,)``: the members of bin i are documents[bounds[i]] to documents[bounds[i + 1] - 1].
        """
        cdef size_t i, at = 0
        cdef uint32_t document
        cdef Band *table = &self.bands[band]
        keys, heads = np.empty(table.used, np.uint64), np.empty(table.used, np.uint32)
        documents, bounds = np.empty(self.capacity, np.uint32), np.zeros(table.used + 1, np.intp)
        cdef uint64_t[::1] keys_view = keys
        cdef uint32_t[::1] heads_view = heads, documents_view = documents
        cdef Py_ssize_t[::1] bounds_view = bounds
        for i in range(table.size):
            if table.heads[i] != c.LSH_NOTHING:
                keys_view[at], heads_view[at] = table.keys[i], table.heads[i]
                at += 1
        by_document = np.argsort(heads)
        keys, heads_view, at = keys[by_document], heads[by_document], 0
        for i in range(table.used):
            document = heads_view[i]
            while True:
                documents_view[at] = document
                at += 1
                document = table.next[document]
                if document == heads_view[i]:
                    break
            bounds_view[i + 1] = at
        return keys, documents[:at].copy(), bounds

    def num_bins(self, Py_ssize_t band):
        """Return the number of bins of a band."""
        return self.bands[band].used


cdef class BucketSets:
    """Yield the members of each bin of a band as a set: the keys of a dict, in order of insertion.

    Parameters
    ----------
    objects : list
        The object that stands for each document in the sets; copied.
    documents, bounds : numpy.ndarray
        What `BucketTables.bins` returned; not to be changed.
    """

    cdef list objects
    cdef const uint32_t[::1] documents
    cdef const Py_ssize_t[::1] bounds
    cdef Py_ssize_t bin

    def __cinit__(self, list objects not None, documents not None, bounds not None):
        self.objects, self.documents, self.bounds = list(objects), documents, bounds

    def __iter__(self):
        return self

    def __next__(self):
        cdef Py_ssize_t i, bin = self.bin
        cdef dict members = {}
        if bin + 1 >= self.bounds.shape[0]:
            raise StopIteration
        self.bin = bin + 1
        for i in range(self.bounds[bin], self.bounds[bin + 1]):
            members[self.objects[self.documents[i]]] = None
        return members.keys()


cdef uint32_t *_grow(uint32_t *values, size_t old, size_t new) except NULL:
    """Enlarge an array from `old` to `new` values; the added values are LSH_NOTHING."""
    cdef uint32_t *grown = <uint32_t *> resize(values, new, sizeof(uint32_t))
    memset(grown + old, 0xFF, (new - old) * sizeof(uint32_t))
    return grown


cdef int _resize_band(Band *band, size_t entries) except -1:
    """Enlarge the table so that `entries` bins take at most three quarters of the slots."""
    cdef size_t i, at, size = max(band.size, SMALLEST_TABLE)
    cdef uint64_t *keys
    cdef uint32_t *heads
    while 3 * size < 4 * entries:
        size *= 2
    if size == band.size:
        return 0
    keys = <uint64_t *> resize(NULL, size, sizeof(uint64_t) + sizeof(uint32_t))
    heads = <uint32_t *> (keys + size)
    memset(heads, 0xFF, size * sizeof(uint32_t))
    for i in range(band.size):
        if band.heads[i] != c.LSH_NOTHING:
            at = c.lsh_bins_find(keys, heads, size - 1, band.keys[i])
            keys[at], heads[at] = band.keys[i], band.heads[i]
    free(band.keys)
    band.keys, band.heads, band.size = keys, heads, size
    return 0


cdef void _enter(Band *band, uint64_t key, uint32_t document) noexcept nogil:
    cdef size_t at = c.lsh_bins_find(band.keys, band.heads, band.size - 1, key)
    cdef uint32_t head = band.heads[at], last
    if head == c.LSH_NOTHING:
        band.keys[at], band.heads[at] = key, document
        band.next[document] = band.previous[document] = document
        band.used += 1
        return
    last = band.previous[head]
    band.next[last], band.previous[document] = document, last
    band.next[document], band.previous[head] = head, document


cdef void _leave(Band *band, uint64_t key, uint32_t document) noexcept nogil:
    cdef size_t at = c.lsh_bins_find(band.keys, band.heads, band.size - 1, key)
    cdef uint32_t head = band.heads[at], after = band.next[document], before = band.previous[document]
    band.next[document] = c.LSH_NOTHING
    if after == document:
        c.lsh_bins_free(band.keys, band.heads, band.size - 1, at)
        band.used -= 1
        return
    band.next[before], band.previous[after] = after, before
    if head == document:
        band.heads[at] = after
