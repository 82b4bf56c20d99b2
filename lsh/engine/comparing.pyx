# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Documents that share a bucket, compared; the pairs of `find_pairs`, and identical texts.

A bucket is a chain of documents (`grouping.Linker`). `Similarity` compares two documents, also for `deciding`, and
`Pairs` finds every pair. Documents are numbers from 0 here; `lsh.engine.dedup` maps them to positions.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from lsh cimport _kernels as c
from lsh.text.batch cimport Batch
from lsh.base.memory cimport acquire, check_aligned
from lsh._minhash cimport check_signals, chosen_kernels
from lsh.text.sets cimport ShingleSets

import threading

import numpy as np

cdef enum:
    CHECKED = 1 << 26  # bytes of texts compared between two checks for signals: a tenth of a second at most
    AHEAD = 8  # candidates whose bitmaps are prefetched while one is compared
    SKETCH_WORK = 64  # bytes of work that a comparison of sketches counts for

cdef Py_ssize_t _MAX_DOCUMENTS = 2**31 - 1  # their numbers are int32


cdef object _checked_places(name, places, Py_ssize_t count, Py_ssize_t most, Py_ssize_t least=0):
    """Return a copy of `count` numbers, which must be from `least` to most - 1."""
    own = np.array(places, np.int32).reshape(-1)
    if len(own) != count or (count and (own.min() < least or own.max() >= most)):
        raise ValueError(f"{name} must be {count} numbers from {least} to {most - 1}")
    return own


cdef class Similarity:
    """The similarity of two documents: exact, after a filter, or estimated from their fingerprints.

    Parameters
    ----------
    matrix : numpy.ndarray
        Shape ``(m, k)``, C-contiguous, k 1 or more: the sketches, low bytes of the components (uint8), by which the
        filter goes, or the fingerprints themselves (uint32 or uint64), whose equal components are the estimate.
    rows : numpy.ndarray
        int32, shape ``(n,)``: the row of each document in `matrix`.
    sets : ShingleSets or None
        The exact sets; None: the estimate.
    texts : numpy.ndarray or None
        int32, shape ``(n,)``: the place of each document in the batch of `sets`; -1 of one that is never compared.
    least_equal : int
        A pair with fewer equal bytes is not compared exactly.
    """

    def __cinit__(self, matrix not None, rows not None, ShingleSets sets, texts, size_t least_equal):
        own = np.asarray(matrix)  # a subclass may report another shape or type
        if (not isinstance(matrix, np.ndarray) or own.ndim != 2 or own.shape[1] < 1 or not own.flags.c_contiguous
                or not own.flags.aligned
                or own.dtype not in ((np.uint32, np.uint64) if sets is None else (np.uint8,))):
            raise ValueError("matrix must be C-contiguous: sketches (uint8) beside sets, whole fingerprints without")
        self.kernels, self.sets, self.least_equal = chosen_kernels(), sets, least_equal
        self.lock = threading.Lock()
        self.k, self.width = own.shape[1], own.itemsize
        self.matrix = own.view(np.uint8)
        self.first_row = &self.matrix[0, 0] if len(own) else NULL
        self.count = len(rows)
        if self.count > _MAX_DOCUMENTS:
            raise ValueError(f"rows must name at most {_MAX_DOCUMENTS} documents, got {self.count}")
        self.rows = _checked_places("rows", rows, self.count, len(own))
        if sets is not None:
            self.texts = _checked_places("texts", texts, self.count, sets.batch.count, -1)

    cdef int begin(self) except -1:
        """Acquire this object, and its sets, for some comparisons."""
        if self.sets is None:
            return acquire(self.lock)
        return self.sets.begin()

    cdef int end(self) except -1:
        if self.sets is None:
            self.lock.release()
            return 0
        return self.sets.end()

    cdef const uint8_t *_row(self, Py_ssize_t document) noexcept nogil:
        return self.first_row + <size_t> self.rows[document] * self.k * self.width

    cdef double value(self, Py_ssize_t i, Py_ssize_t j, double least) except -4.0 nogil:
        """The similarity of two documents; FILTERED or LEFT_OUT where it was found not to be needed."""
        self._worked(SKETCH_WORK)
        if self.sets is None:
            return self._estimate(i, j)
        if self.kernels.count_equal_8(self._row(i), self._row(j), self.k) < self.least_equal:
            return FILTERED
        return self.exact(i, j, least)

    cdef Py_ssize_t pass_filter(self, Py_ssize_t document, int32_t *others, int32_t *along,
                                Py_ssize_t count) except -1 nogil:
        """Move the documents that get past the filter with one to the front, in their order; return how many they are.

        The numbers in `along` move with them. What `exact` needs of these documents is prefetched.
        """
        cdef Py_ssize_t i, passed
        self._worked(count * SKETCH_WORK)
        if self.sets is None:
            return count
        passed = self.kernels.filter_8(self.first_row, &self.rows[0], self.k, self.least_equal, document, others, along,
                                       count)
        for i in range(min(passed, 2 * AHEAD)):
            self.sets.expect(self.texts[others[i]], False)
        for i in range(min(passed, AHEAD)):
            self.sets.expect(self.texts[others[i]], True)
        return passed

    cdef void expect(self, const int32_t *others, Py_ssize_t count) noexcept nogil:
        """Prefetch what `exact` needs of documents that are compared soon after the first of these."""
        if count > AHEAD:
            if self.sets is None:
                c.lsh_prefetch(self._row(others[AHEAD]))
                return
            self.sets.expect(self.texts[others[AHEAD]], True)
        if count > 2 * AHEAD:
            self.sets.expect(self.texts[others[2 * AHEAD]], False)

    cdef int _worked(self, int64_t work) except -1 nogil:
        """Count work, and handle signals now and then."""
        self.work += work
        if self.work - self.checked > CHECKED:
            self.checked = self.work
            check_signals()
        return 0

    cdef double exact(self, Py_ssize_t i, Py_ssize_t j, double least) except -4.0 nogil:
        """The similarity of two documents without the filter; LEFT_OUT where it is below `least`."""
        cdef double found
        cdef size_t before
        if self.sets is None:
            return self._estimate(i, j)
        if self.texts[i] < 0 or self.texts[j] < 0:
            with gil:
                raise ValueError(f"documents {i} and {j} are compared, and one of them has no text")
        before = self.sets.read
        self.sets.choose(self.texts[i])
        found = self.sets.similarity(self.texts[j], least)
        self.work += self.sets.read - before
        return found if found >= least else LEFT_OUT

    cdef double _estimate(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        cdef const uint8_t *a = self._row(i)
        cdef const uint8_t *b = self._row(j)
        cdef size_t equal
        if self.width == 8:
            equal = self.kernels.count_equal_64(<const uint64_t *> a, <const uint64_t *> b, self.k)
        else:
            equal = self.kernels.count_equal_32(<const uint32_t *> a, <const uint32_t *> b, self.k)
        return <double> equal / <double> self.k


cdef class Pairs:
    """Find the pairs of each document: those in a chain of its with enough similarity.

    Parameters
    ----------
    similarity : Similarity
        Of the n documents.
    links : numpy.ndarray
        int32, shape ``(bands, n)``: a chain leads from a document to the others that it is paired with.
    firsts : numpy.ndarray
        int32, shape ``(n,)``: of each document the first one with the same bytes; copies are compared once.
    threshold : float
        Least similarity of a pair.
    """

    cdef Similarity similarity
    cdef const int32_t[:, ::1] links
    cdef const int32_t[::1] firsts
    cdef int32_t[::1] stamp
    cdef int32_t[::1] compared         # the last document that was compared with the first copy
    cdef double[::1] value             # and its outcome
    cdef double threshold

    def __cinit__(self, Similarity similarity not None, const int32_t[:, ::1] links not None, firsts not None,
                  double threshold):
        cdef Py_ssize_t count = links.shape[1]
        check_aligned(&links[0, 0], sizeof(int32_t))
        if count and not (-1 <= np.min(links) and np.max(links) < count):
            raise ValueError("links must lead to documents")
        self.similarity, self.links, self.threshold = similarity, links, threshold
        self.firsts = _checked_places("firsts", firsts, count, count)
        if similarity.count != count:
            raise ValueError("similarity and links must be of the same documents")
        self.stamp = np.full(count, -1, np.int32)
        self.compared = np.full(count, -1, np.int32)
        self.value = np.zeros(count)

    def run(self, Py_ssize_t document, Py_ssize_t stop, Py_ssize_t most):
        """Find the pairs of the documents from `document` downwards, but not of `stop`.

        Parameters
        ----------
        document, stop : int
            The documents.
        most : int
            No further document begins where this one and those before have more candidates.

        Returns
        -------
        tuple
            The document to go on from: `stop`, or an earlier one after some work. For each pair its document and its
            partner (int32) in descending order, and the similarity (float64).
        """
        cdef Py_ssize_t last = document, total = 0, found = 0
        cdef int64_t before = self.similarity.work
        if not -1 <= stop <= document < self.links.shape[1]:
            raise ValueError("document and stop must lie within the documents")
        self.similarity.begin()
        try:
            while last > stop and (total <= most or last == document):
                total += self._count(last)
                last -= 1
            documents, partners, values = np.empty(total, np.int32), np.empty(total, np.int32), np.empty(total)
            while document > last and self.similarity.work - before <= RUN:
                found = self._verify(<int32_t> document, found, documents, partners, values)
                document -= 1
        finally:
            self.similarity.end()
        order = np.lexsort((-partners[:found], -documents[:found]))
        return document, documents[order], partners[order], values[order]

    cdef Py_ssize_t _count(self, Py_ssize_t document) except -1 nogil:
        """Count the members of the document's chains, with repeats."""
        cdef Py_ssize_t band, found = 0, most = self.links.shape[0] * self.links.shape[1]
        cdef int32_t other
        for band in range(self.links.shape[0]):
            other = self._link(band, document)
            while other >= 0:
                found += 1
                other = self._link(band, other)
                if found > most:
                    with gil:
                        raise ValueError("links must not lead back to where they come from")
        return found

    cdef inline int32_t _link(self, Py_ssize_t band, Py_ssize_t document) noexcept nogil:
        """The document that `document` is linked to, -1 for none or for a number out of range."""
        cdef int32_t other = self.links[band, document]
        return other if other < self.links.shape[1] else -1

    cdef Py_ssize_t _verify(self, int32_t document, Py_ssize_t found, int32_t[::1] documents, int32_t[::1] partners,
                            double[::1] values) except -1:
        """Write the pairs of a document from `found` on; return where they end."""
        cdef Py_ssize_t band, seen, most = self.links.shape[1]
        cdef int32_t other, first
        with nogil:
            for band in range(self.links.shape[0]):
                other = self._link(band, document)
                seen = 0
                while other >= 0 and seen < most:
                    seen += 1
                    if self.stamp[other] != document:
                        self.stamp[other] = document
                        first = self.firsts[other]
                        if self.compared[first] != document:
                            self.compared[first] = document
                            self.value[first] = self.similarity.value(self.firsts[document], first, self.threshold)
                        if self.value[first] >= self.threshold and found < partners.shape[0]:
                            documents[found], partners[found], values[found] = document, other, self.value[first]
                            found += 1
                    other = self._link(band, other)
        return found


def passing(const int32_t[::1] links not None, const uint8_t[:, ::1] sketches not None,
            const uint8_t[::1] settled not None, size_t least_equal, Py_ssize_t most):
    """Tell which documents get past the filter with another one of their bucket in a band, so that both are compared.

    Parameters
    ----------
    links : numpy.ndarray
        int32, shape ``(n,)``: for each document the last one before it in the same bucket, or -1.
    sketches : numpy.ndarray
        uint8, shape ``(n, k)``, k 1 or more.
    settled : numpy.ndarray
        uint8, shape ``(n,)``: true for documents that are not compared with those before them.
    least_equal : int
        A pair with fewer equal bytes is filtered.
    most : int
        In a bucket of more documents than this, all are expected to get past it, unless all are settled.

    Returns
    -------
    numpy.ndarray
        bool, shape ``(n,)``.
    """
    cdef Py_ssize_t i, n = links.shape[0]
    cdef size_t k = sketches.shape[1]
    cdef int32_t j
    cdef bint inside = True
    cdef const lsh_kernels *kernels = chosen_kernels()
    if sketches.shape[0] != n or settled.shape[0] != n or k < 1:
        raise ValueError(f"sketches and settled must be of {n} documents, got {sketches.shape[0]}, {settled.shape[0]}")
    check_aligned(&links[0], sizeof(int32_t))
    found, bucket_of, bucket_sizes = np.zeros(n, np.uint8), np.arange(n, dtype=np.int32), np.ones(n, np.int32)
    cdef uint8_t[::1] flags = found
    cdef int32_t[::1] firsts = bucket_of
    cdef int32_t[::1] sizes = bucket_sizes
    with nogil:
        for i in range(n):
            j = links[i]
            if j == -1:
                continue
            if j < 0 or j >= i:
                inside = False
                break
            firsts[i] = firsts[j]
            sizes[firsts[i]] += 1
        for i in range(n if inside else 0):
            if i + AHEAD < n and links[i + AHEAD] >= 0:
                c.lsh_prefetch(&sketches[links[i + AHEAD], 0])
            if settled[i]:
                continue
            j = links[i]
            if sizes[firsts[i]] > most:
                flags[firsts[i]] = True
                continue
            while 0 <= j < i:
                if not (flags[i] and flags[j]) and kernels.count_equal_8(&sketches[i, 0], &sketches[j, 0],
                                                                         k) >= least_equal:
                    flags[i] = flags[j] = True
                j = links[j] if links[j] < j else -1
        for i in range(n if inside else 0):
            if sizes[firsts[i]] > most:
                flags[i] = flags[firsts[i]]
    if not inside:
        raise ValueError("links must lead to earlier documents")
    return found.view(np.bool_)


# ---- byte-identical texts ----

def content_keys(Batch batch not None, bytes secret not None, uint64_t[::1] out not None):
    """Write a 64-bit hash of the bytes of each text to `out`, under a secret of 16 bytes."""
    cdef Py_ssize_t i
    cdef uint64_t key[2]
    if out.shape[0] != batch.count or len(secret) != sizeof(key):
        raise ValueError("out must hold a number a text, and secret 16 bytes")
    check_aligned(&out[0], sizeof(uint64_t))
    memcpy(key, PyBytes_AS_STRING(secret), sizeof(key))
    with nogil:
        for i in range(batch.count):
            out[i] = c.lsh_siphash13(batch.texts[i], batch.lengths[i], key)


def first_copies(const int32_t[::1] links not None, order not None):
    """Return the first document of each chain of links for all that are on it.

    Parameters
    ----------
    links : numpy.ndarray
        int32, shape ``(n,)``: the latest document before it in the order with the same content key, or -1.
    order : numpy.ndarray
        int32: the documents that take part.

    Returns
    -------
    numpy.ndarray
        int32, shape ``(n,)``; -1 of a document that takes no part.
    """
    cdef Py_ssize_t i, count = links.shape[0]
    cdef int32_t document, other
    cdef const int32_t[::1] taking_part = _checked_places("order", order, len(order), count)
    cdef int32_t[::1] firsts = np.full(count, -1, np.int32)
    check_aligned(&links[0], sizeof(int32_t))
    if count and not (-1 <= np.min(links) and np.max(links) < count):
        raise ValueError("links must lead to documents")
    for i in range(taking_part.shape[0]):
        document = taking_part[i]
        other = links[document]  # read once: the array is the caller's
        if other < 0:
            firsts[document] = document
        elif other >= count or firsts[other] < 0:
            raise ValueError("links must lead to earlier documents")
        else:
            firsts[document] = firsts[other]
    return np.asarray(firsts)


def same_texts(Batch a not None, places_a not None, Batch b not None, places_b not None):
    """Tell whether the texts of `a` at `places_a` equal those of `b` at `places_b`, pair by pair."""
    cdef Py_ssize_t i
    cdef bint same = True
    cdef const int32_t[::1] ours = _checked_places("places_a", places_a, np.size(places_b), a.count)
    cdef const int32_t[::1] theirs = _checked_places("places_b", places_b, ours.shape[0], b.count)
    with nogil:
        for i in range(ours.shape[0]):
            if (a.lengths[ours[i]] != b.lengths[theirs[i]]
                    or memcmp(a.texts[ours[i]], b.texts[theirs[i]], a.lengths[ours[i]]) != 0):
                same = False
                break
    return same
