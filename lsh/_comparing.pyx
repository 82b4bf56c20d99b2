# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Documents that share a bucket, compared and decided: the walks of `deduplicate` and `find_pairs`.

A bucket is a chain of documents (`lsh._grouping.Linker`). `Similarity` compares two documents, `Walk`
decides which documents are kept, `Pairs` finds every pair. Documents are numbers from 0 here, in the order of the walk;
`lsh.dedup` maps them to positions and builds the result.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport nextafter
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from lsh cimport _kernels as c
from lsh._batch cimport Batch
from lsh._components cimport find, flatten, unite
from lsh._memory cimport acquire, check_aligned
from lsh._minhash cimport chosen_kernels
from lsh._sets cimport ShingleSets

import threading

import numpy as np

cdef enum:
    CHECKED = 1 << 26  # bytes of texts compared between two checks for signals: a tenth of a second at most
    RUN = 1 << 28  # bytes after which a walk returns, so that progress can be reported
    FILTERED = 64  # bytes of work that a comparison of sketches counts for
    AHEAD = 8  # candidates whose sketches are prefetched while one is compared
    NEAR = 100  # pairs just below the threshold that are remembered

cdef Py_ssize_t _MAX_DOCUMENTS = 2**31 - 1  # their numbers are int32
cdef double LEFT_OUT = -1.0  # the value of a pair that was not compared to the end


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

    cdef readonly int64_t compared         # pairs that got past the filter
    cdef int64_t work                      # bytes of the texts that were compared, or what took as long
    cdef int64_t checked                   # the work at the last check for signals
    cdef const c.lsh_kernels *kernels
    cdef ShingleSets sets
    cdef object lock                       # of `sets`, or of this object
    cdef const uint8_t[:, ::1] matrix      # the bytes of sketches or fingerprints, kept alive
    cdef const uint8_t *first_row          # where they are
    cdef size_t width                      # bytes of a component
    cdef size_t k
    cdef const int32_t[::1] rows
    cdef const int32_t[::1] texts
    cdef size_t least_equal
    cdef readonly Py_ssize_t count

    def __cinit__(self, matrix not None, rows not None, ShingleSets sets, texts, size_t least_equal):
        own = np.asarray(matrix)  # a subclass may report another shape or type
        if (not isinstance(matrix, np.ndarray) or own.ndim != 2 or own.shape[1] < 1 or not own.flags.c_contiguous
                or not own.flags.aligned
                or own.dtype not in ((np.uint32, np.uint64) if sets is None else (np.uint8,))):
            raise ValueError("matrix must be C-contiguous: sketches (uint8) beside sets, whole fingerprints without")
        self.kernels, self.sets, self.least_equal = chosen_kernels(), sets, least_equal
        self.lock = threading.Lock() if sets is None else sets.lock
        self.k, self.width = own.shape[1], own.itemsize
        self.matrix = own.view(np.uint8)
        self.first_row = &self.matrix[0, 0] if len(own) else NULL
        self.count = len(rows)
        if self.count > _MAX_DOCUMENTS:
            raise ValueError(f"rows must name at most {_MAX_DOCUMENTS} documents, got {self.count}")
        self.rows = _checked_places("rows", rows, self.count, len(own))
        if sets is not None:
            self.texts = _checked_places("texts", texts, self.count, sets.batch.count, -1)

    cdef inline const uint8_t *_row(self, Py_ssize_t document) noexcept nogil:
        return self.first_row + <size_t> self.rows[document] * self.k * self.width

    cdef double value(self, Py_ssize_t i, Py_ssize_t j, double least) except -2.0 nogil:
        """The similarity of two documents; LEFT_OUT where the filter or the sets show that it is below `least`."""
        self.work += FILTERED
        if self.work - self.checked > CHECKED:
            self.checked = self.work
            with gil:
                PyErr_CheckSignals()
        if self.sets is None:
            self.compared += 1
            return self._estimate(i, j)
        if self.kernels.count_equal_8(self._row(i), self._row(j), self.k) < self.least_equal:
            return LEFT_OUT
        return self.exact(i, j, least)

    cdef inline void expect(self, Py_ssize_t document) noexcept nogil:
        """Prefetch the row of a document that is compared soon."""
        cdef const uint8_t *row = self._row(document)
        c.lsh_prefetch(row)
        c.lsh_prefetch(row + self.k * self.width - 1)

    cdef double exact(self, Py_ssize_t i, Py_ssize_t j, double least) except -2.0 nogil:
        """The same without the filter."""
        cdef double found
        cdef size_t before
        if self.sets is None:
            return self._estimate(i, j)
        if self.texts[i] < 0 or self.texts[j] < 0:
            with gil:
                raise ValueError(f"documents {i} and {j} are compared, and one of them has no text")
        self.compared += 1
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


cdef class Walk:
    """Decide document by document which are kept.

    The representative walk: a document is removed if an earlier kept one shares a bucket in any band with it and has a
    similarity of at least `threshold`; its witness is the most similar such document, the earliest on a tie. A chain is
    shortened as the walk goes, so that it passes over removed documents and a bucket of a million copies costs one step
    a copy.

    The walk over components: documents that are similar through others belong together, and the earliest is kept. A
    document is compared with all of its bucket, but for those it is connected with already.

    Parameters
    ----------
    similarity : Similarity
        Of the n documents.
    links : numpy.ndarray
        int32, shape ``(bands, n)``, of a `Linker` over all documents in their order; the walk changes it.
    depth : numpy.ndarray
        int32, as large: memory for the walk, of any content.
    settled : int
        The first `settled` documents are kept without being compared with each other.
    threshold : float
        Least similarity of a duplicate.
    cap : int
        In a bucket only the latest `cap` members are compared with.
    components : bool
        Walk over components.
    """

    cdef readonly int64_t capped       # bucket members that the cap passed over, over all documents and bands
    cdef readonly int64_t candidates   # pairs that share a bucket
    cdef Similarity similarity
    cdef int32_t[:, ::1] links
    cdef int32_t[:, ::1] depth         # members of the chain that ends here
    cdef uint8_t[::1] member           # whether later documents are compared with it
    cdef int32_t[::1] witness
    cdef double[::1] value
    cdef int32_t[::1] stamp
    cdef int32_t[::1] found
    cdef Py_ssize_t settled
    cdef double threshold
    cdef Py_ssize_t cap
    cdef int32_t[::1] parents          # of the walk over components: see _components.pxd; None of the other
    cdef int32_t[NEAR] near_document
    cdef int32_t[NEAR] near_other
    cdef double[NEAR] near_value
    cdef Py_ssize_t num_near
    cdef Py_ssize_t least_near         # which of them is the least similar, once they are NEAR

    def __cinit__(self, Similarity similarity not None, int32_t[:, ::1] links not None, int32_t[:, ::1] depth not None,
                  Py_ssize_t settled, double threshold, Py_ssize_t cap, bint components):
        cdef Py_ssize_t count = links.shape[1], band, i
        if similarity.count != count or not 0 <= settled <= count or cap < 0:
            raise ValueError("similarity, links and settled must be of the same documents")
        check_aligned(&links[0, 0], sizeof(int32_t))
        check_aligned(&depth[0, 0], sizeof(int32_t))
        for band in range(links.shape[0]):
            for i in range(count):
                if not -1 <= links[band, i] < i:
                    raise ValueError("links must lead to earlier documents")
        self.similarity, self.links, self.settled = similarity, links, settled
        self.threshold, self.cap = threshold, cap
        self.parents = np.arange(count, dtype=np.int32) if components else None
        if depth.shape[0] != links.shape[0] or depth.shape[1] != count:
            raise ValueError("depth must be as large as links")
        self.depth = depth
        self.member = np.zeros(count, np.uint8)
        self.witness = np.full(count, -1, np.int32)
        self.value = np.zeros(count)
        self.stamp = np.full(count, -1, np.int32)
        self.found = np.empty(min(count, links.shape[0] * min(cap, count)), np.int32)

    def run(self, Py_ssize_t start, Py_ssize_t stop):
        """Decide documents from `start` on, but not from `stop` on; to be called over all of them in turn.

        Returns
        -------
        int
            The document to continue with; earlier than `stop` after a certain amount of work.
        """
        cdef Py_ssize_t document = start
        cdef int64_t before = self.similarity.work
        if not 0 <= start <= stop <= self.links.shape[1]:
            raise ValueError("start and stop must lie within the documents")
        acquire(self.similarity.lock)
        try:
            with nogil:
                while document < stop and self.similarity.work - before <= RUN:
                    self._decide(document)
                    document += 1
        finally:
            self.similarity.lock.release()
        return document

    def outcome(self):
        """Return by document its witness (int32, -1 of a kept one) and the similarity to it (float64)."""
        cdef int32_t document, root, count = <int32_t> self.links.shape[1]
        if self.parents is not None and count:
            acquire(self.similarity.lock)
            try:
                with nogil:
                    flatten(&self.parents[0], count)
                    for document in range(self.settled, count):
                        root = self.parents[document]
                        if root != document:
                            self.witness[document] = root
                            self.value[document] = self.similarity.exact(document, root, 0.0)
            finally:
                self.similarity.lock.release()
        return np.array(self.witness), np.array(self.value)

    def near(self):
        """Return the most similar pairs below the threshold, as arrays: document, the other one, their similarity."""
        count = self.num_near
        documents = np.array(<int32_t[:NEAR]> self.near_document)[:count]
        others = np.array(<int32_t[:NEAR]> self.near_other)[:count]
        return documents, others, np.array(<double[:NEAR]> self.near_value)[:count]

    cdef Py_ssize_t _gather(self, int32_t document) noexcept nogil:
        """Collect the members that share a bucket; the chains of `document` are left shortened.

        A chain ends at the first link that does not lead to an earlier document, even if the array was changed. As an
        unsigned number, -1 is not less than any document.
        """
        cdef Py_ssize_t band, seen, found = 0
        cdef uint32_t other, later
        for band in range(self.links.shape[0]):
            self.depth[band, document] = 0
            later, other = document, self.links[band, document]
            if other >= later:
                continue
            if not self.member[other]:
                later, other = other, self.links[band, other]
                self.links[band, document] = <int32_t> other
                if other >= later:
                    continue
            self.depth[band, document] = self.depth[band, other]
            if document < self.settled:
                continue
            seen = 0
            while other < later and seen < self.cap:
                if self.stamp[other] != document:
                    self.stamp[other] = document
                    self.found[found] = <int32_t> other
                    found += 1
                later, other = other, self.links[band, other]
                seen += 1
            self.capped += self.depth[band, document] - seen
        self.candidates += found
        return found

    cdef void _join(self, int32_t document) noexcept nogil:
        """Make the document a member of its buckets, with which later documents are compared."""
        cdef Py_ssize_t band
        self.member[document] = 1
        for band in range(self.links.shape[0]):
            self.depth[band, document] += 1

    cdef int _decide(self, int32_t document) except -1 nogil:
        cdef Py_ssize_t i, found = self._gather(document)
        cdef int32_t *parents = NULL if self.parents is None else &self.parents[0]
        cdef int32_t other, best = -1
        cdef double value, most = 0.0
        for i in range(found):
            if i + AHEAD < found:
                self.similarity.expect(self.found[i + AHEAD])
            other = self.found[i]
            if parents != NULL and find(parents, document) == find(parents, other):
                continue
            value = self.similarity.value(document, other, self._least())
            if value >= self.threshold:
                if parents != NULL:
                    unite(parents, document, other)
                elif best < 0 or value > most or (value == most and other < best):
                    best, most = other, value
            elif value >= 0.0:
                self._remember(document, other, value)
        if best >= 0:
            self.witness[document], self.value[document] = best, most
        else:
            self._join(document)
        return 0

    cdef double _least(self) noexcept nogil:
        """Similarities below this value change nothing; nor does one equal to the lowest of the nearest pairs."""
        if self.num_near < NEAR:
            return 0.0
        return min(self.threshold, nextafter(self.near_value[self.least_near], 2.0))

    cdef void _remember(self, int32_t document, int32_t other, double value) noexcept nogil:
        """Add a pair to the nearest pairs below the threshold, if it is one; of equal pairs the first is kept."""
        cdef Py_ssize_t i, at = self.num_near
        if at == NEAR:
            at = self.least_near
            if value <= self.near_value[at]:
                return
        else:
            self.num_near += 1
        self.near_document[at], self.near_other[at], self.near_value[at] = document, other, value
        if self.num_near < NEAR:
            return
        self.least_near = 0
        for i in range(1, NEAR):
            if self.near_value[i] < self.near_value[self.least_near] or (
                    self.near_value[i] == self.near_value[self.least_near]
                    and self.near_document[i] >= self.near_document[self.least_near]):
                self.least_near = i


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

    def next(self, Py_ssize_t document, Py_ssize_t stop):
        """Go on from `document` downwards, but not to `stop`, to the first one with pairs.

        Returns
        -------
        tuple
            The document, its partners in descending order (int32) and the similarities (float64); or, without partners,
            the document to go on from: `stop`, or an earlier one after some work.
        """
        if not -1 <= stop <= document < self.links.shape[1]:
            raise ValueError("document and stop must lie within the documents")
        acquire(self.similarity.lock)
        try:
            return self._next(document, stop)
        finally:
            self.similarity.lock.release()

    cdef tuple _next(self, Py_ssize_t document, Py_ssize_t stop):
        cdef Py_ssize_t found = 0
        cdef int64_t before = self.similarity.work
        partners = np.empty(0, np.int32)
        while document > stop and self.similarity.work - before <= RUN:
            found = self._count(document)
            if found:
                partners = np.empty(found, np.int32)
                values = np.empty(found)
                found = self._verify(document, partners, values)
                if found:
                    by_number = np.argsort(-partners[:found])
                    return document, partners[:found][by_number], values[:found][by_number]
            document -= 1
        return document, partners[:0], np.empty(0)

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

    cdef Py_ssize_t _verify(self, Py_ssize_t document, int32_t[::1] partners, double[::1] values) except -1:
        cdef Py_ssize_t band, found = 0, left = partners.shape[0]
        cdef int32_t other, first
        with nogil:
            for band in range(self.links.shape[0]):
                other = self._link(band, document)
                while other >= 0 and left > 0:
                    left -= 1
                    if self.stamp[other] != document:
                        self.stamp[other] = <int32_t> document
                        first = self.firsts[other]
                        if self.compared[first] != document:
                            self.compared[first] = <int32_t> document
                            self.value[first] = self.similarity.value(self.firsts[document], first, self.threshold)
                        if self.value[first] >= self.threshold:
                            partners[found], values[found] = other, self.value[first]
                            found += 1
                    other = self._link(band, other)
        return found


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
