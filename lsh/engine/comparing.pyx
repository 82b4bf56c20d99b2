# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Documents that share a bucket, compared, and the pairs of `find_pairs`.

A bucket is a chain of documents (`grouping.Linker`), which `keep_similar` divides into groups. `Similarity` compares
two documents, also for `deciding`, and `Pairs` finds every pair. Documents are numbers from 0 here; `lsh.engine.dedup`
maps them to positions.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove

from lsh cimport _kernels as c
from lsh.base.components cimport find
from lsh.base.memory cimport acquire, resize
from lsh._minhash cimport check_signals, chosen_kernels
from lsh.text.sets cimport ShingleSets

import threading

import numpy as np

cdef enum:
    CHECKED = 1 << 26  # bytes of texts compared between two checks for signals: a tenth of a second at most
    AHEAD = 8  # candidates that are prefetched while one is compared
    CHECKED_SKETCHES = 1 << 24  # sketches compared between two checks for signals: a tenth of a second
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
        Shape ``(n, k)``, C-contiguous, k 1 or more: the sketches, low bytes of the components (uint8), by which the
        filter goes, or the fingerprints themselves (uint32 or uint64), whose equal components are the estimate.
    sets : ShingleSets or None
        The exact sets; None: the estimate.
    texts : numpy.ndarray or None
        int32, shape ``(n,)``: the place of each document in the batch of `sets`; -1 of one that is never compared.
    least_equal : int
        A pair with fewer equal bytes, or components, is not compared further.
    """

    def __cinit__(self, matrix not None, ShingleSets sets, texts, size_t least_equal):
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
        self.count = len(own)
        if self.count > _MAX_DOCUMENTS:
            raise ValueError(f"matrix must have at most {_MAX_DOCUMENTS} rows, got {self.count}")
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
        return self.first_row + <size_t> document * self.k * self.width

    cdef double value(self, Py_ssize_t i, Py_ssize_t j, double least) except -4.0 nogil:
        """The similarity of two documents; FILTERED or LEFT_OUT where it was found not to be needed."""
        self._worked(SKETCH_WORK)
        return self.exact(i, j, least) if self.passes(i, j) else FILTERED

    cdef bint passes(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """Whether two documents get past the filter."""
        return self._equal(i, j) >= self.least_equal

    cdef Py_ssize_t pass_filter(self, Py_ssize_t document, int32_t *others, int32_t *along,
                                Py_ssize_t count) except -1 nogil:
        """Move the documents that get past the filter with one to the front, in their order; return how many they are.

        The numbers in `along` move with them. What `exact` needs of these documents is prefetched.
        """
        cdef Py_ssize_t i, passed = 0
        self._worked(count * SKETCH_WORK)
        if self.sets is None:
            for i in range(count):
                self.expect(others + i, count - i)
                others[passed], along[passed] = others[i], along[i]
                passed += self.passes(document, others[passed])
            return passed
        passed = self.kernels.filter_8(self.first_row, self.k, self.least_equal, document, others, along, count)
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
            return <double> self._equal(i, j) / <double> self.k
        if self.texts[i] < 0 or self.texts[j] < 0:
            with gil:
                raise ValueError(f"documents {i} and {j} are compared, and one of them has no text")
        before = self.sets.read
        self.sets.choose(self.texts[i])
        found = self.sets.similarity(self.texts[j], least)
        self.work += self.sets.read - before
        return found if found >= least else LEFT_OUT

    cdef size_t _equal(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """How many components of two documents are equal, in what is known of them."""
        cdef const uint8_t *a = self._row(i)
        cdef const uint8_t *b = self._row(j)
        if self.width == 8:
            return self.kernels.count_equal_64(<const uint64_t *> a, <const uint64_t *> b, self.k)
        if self.width == 4:
            return self.kernels.count_equal_32(<const uint32_t *> a, <const uint32_t *> b, self.k)
        return self.kernels.count_equal_8(a, b, self.k)


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


# ---- links that pass the filter ----

cdef Py_ssize_t _place(const int32_t *ascending, Py_ssize_t count, int32_t document) noexcept nogil:
    """How many of some documents come before one."""
    cdef Py_ssize_t first = 0, middle
    while first < count:
        middle = (first + count) // 2
        if ascending[middle] < document:
            first = middle + 1
        else:
            count = middle
    return first


cdef void _add_chain(Bucket *bucket, int32_t head) noexcept nogil:
    """Note that a group has a second document."""
    cdef Py_ssize_t k = _place(bucket.chains, bucket.chained, head)
    memmove(bucket.chains + k + 1, bucket.chains + k, (bucket.chained - k) * sizeof(int32_t))
    bucket.chains[k] = head
    bucket.chained += 1


cdef class _Filter:
    """Compares documents by the low bits of their components."""

    cdef const lsh_kernels *kernels
    cdef const uint64_t *rows
    cdef size_t words, bits
    cdef size_t most                 # components that may differ
    cdef Py_ssize_t settled, entered, limit
    cdef int64_t left_out
    cdef int64_t compared
    cdef uint64_t *heads             # the rows of the first documents of groups side by side, of `limit` at most
    cdef Py_ssize_t room             # for so many

    def __dealloc__(self):
        free(self.heads)

    cdef inline const uint64_t *row(self, int32_t document) noexcept nogil:
        return self.rows + <size_t> document * self.words * self.bits

    cdef inline void expect(self, int32_t document) noexcept nogil:
        """Prefetch the row of a document that is compared soon."""
        c.lsh_prefetch(self.row(document))
        c.lsh_prefetch(self.row(document) + self.words * self.bits - 1)

    cdef inline bint similar(self, int32_t document, int32_t other) noexcept nogil:
        """Whether two documents are similar."""
        return self.kernels.find_similar(self.row(document), self.row(other), self.words, self.bits, self.most, 1) == 0

    cdef inline Py_ssize_t similar_head(self, int32_t document, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
        """The place among some groups, from `first` on, of the first whose first document is similar, or `count`."""
        cdef const uint64_t *heads = self.heads + <size_t> first * self.words * self.bits
        return <Py_ssize_t> self.kernels.find_similar(self.row(document), heads, self.words, self.bits, self.most,
                                                      <size_t> count)

    cdef int _open(self, Bucket *bucket, int32_t document) except -1 nogil:
        """Make a new group of a document."""
        if bucket.groups == self.room and self.room < self.limit:
            self.room = min(2 * self.room + 64, self.limit)
            self.heads = <uint64_t *> resize(self.heads, self.room * self.words * self.bits, sizeof(uint64_t))
        if bucket.groups < self.room:
            self._hold(bucket.groups, document)
        bucket.heads[bucket.groups] = document
        bucket.groups += 1
        return 0

    cdef inline void _hold(self, Py_ssize_t group, int32_t document) noexcept nogil:
        cdef size_t size = self.words * self.bits
        memcpy(self.heads + group * size, self.row(document), size * sizeof(uint64_t))

    cdef int divide(self, Bucket *bucket, int32_t *links) except -1 nogil:
        """Find the groups of a bucket, and link each document to the one before it in its group."""
        cdef Py_ssize_t i
        cdef int32_t document, group
        if bucket.count == 2 and self.limit > 0:  # most buckets
            document, group = bucket.members[1], bucket.members[0]
            if document < self.settled or group >= self.entered or not self.similar(document, group):
                links[document] = -1
            return 0
        bucket.groups = bucket.chained = 0
        for i in range(bucket.count):
            document = bucket.members[i]
            bucket.parents[document] = document
            bucket.following[document] = -1
            group = self._join(bucket, document) if document >= self.settled else -1
            if group >= 0:
                bucket.parents[document] = group
            if document < self.entered:
                if group < 0:
                    self._open(bucket, document)
                    group = document
                else:
                    if bucket.following[group] < 0:
                        _add_chain(bucket, group)
                    bucket.following[bucket.last[group]] = document
                bucket.last[group] = document
        for i in range(bucket.count):
            bucket.last[bucket.members[i]] = -1
        for i in range(bucket.count):
            document = bucket.members[i]
            group = find(bucket.parents, document)
            links[document] = bucket.last[group]
            if document < self.entered:
                bucket.last[group] = document
        return 0

    cdef int32_t _join(self, Bucket *bucket, int32_t document) except -2 nogil:
        """Make one group of those that a document is similar to; return its first document, -1 if there is none.

        It is compared with the first document of each group, and then with the others of those not found to be similar.
        """
        cdef Py_ssize_t i = 0, k = 0, seen, some, joined = -1, left = self.limit
        cdef int32_t head, other, stop = <int32_t> 0x7fffffff
        while i < bucket.groups and left > 0:
            some = min(bucket.groups - i, left)
            seen = self.similar_head(document, i, some)
            left -= min(seen + 1, some)
            i += seen
            if seen < some and joined < 0:
                joined = i
                i += 1
            elif seen < some:
                self._merge(bucket, joined, i)
        self.left_out += bucket.groups - i
        if i < bucket.groups:
            stop = bucket.heads[i]
        while k < bucket.chained and bucket.chains[k] < stop:
            head = bucket.chains[k]
            k += 1
            if joined >= 0 and bucket.heads[joined] == head:
                continue
            other = bucket.following[head]
            while other >= 0 and left > 0 and not self.similar(document, other):
                left -= 1
                other = bucket.following[other]
            if other < 0 or left == 0:
                self.left_out += other >= 0
                continue
            left -= 1
            i = _place(bucket.heads, bucket.groups, head)
            if joined >= 0:
                self._merge(bucket, min(i, joined), max(i, joined))
                k = _place(bucket.chains, bucket.chained, head + 1)
                i = min(i, joined)
            joined = i
        self.compared += self.limit - left
        if self.compared > CHECKED_SKETCHES:
            self.compared = 0
            check_signals()
        return bucket.heads[joined] if joined >= 0 else -1

    cdef void _merge(self, Bucket *bucket, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """Append group j to group i, which is an earlier one."""
        cdef size_t size = self.words * self.bits
        cdef Py_ssize_t k
        cdef int32_t head = bucket.heads[i], other = bucket.heads[j]
        if bucket.following[other] >= 0:
            bucket.chained -= 1
            k = _place(bucket.chains, bucket.chained, other)
            memmove(bucket.chains + k, bucket.chains + k + 1, (bucket.chained - k) * sizeof(int32_t))
        if bucket.following[head] < 0:
            _add_chain(bucket, head)
        bucket.parents[other] = head
        bucket.following[bucket.last[head]] = other
        bucket.last[head] = bucket.last[other]
        bucket.groups -= 1
        memmove(bucket.heads + j, bucket.heads + j + 1, (bucket.groups - j) * sizeof(int32_t))
        if j < self.room:
            memmove(self.heads + j * size, self.heads + (j + 1) * size, (self.room - j - 1) * size * sizeof(uint64_t))
            if bucket.groups >= self.room:
                self._hold(self.room - 1, bucket.heads[self.room - 1])


def keep_similar(int32_t[::1] links not None, const uint64_t[:, ::1] low_bits not None, size_t bits, size_t most,
                 Py_ssize_t settled, Py_ssize_t entered, Py_ssize_t limit):
    """Divide the buckets of a band into groups, in which pairs of documents with similar low bits connect all.

    Parameters
    ----------
    links : numpy.ndarray
        int32, shape ``(n,)``: for each document, in the order in which they are decided, the last one before it in the
        same bucket, or -1. It is overwritten by the last one before it in the same group, or -1.
    low_bits : numpy.ndarray
        uint64, shape ``(n, words)``: the low bits of the components of each document; see `grouping.pack_low_bits`.
    bits : int
        How many of each component, 1 to 8; 0: all documents of a bucket are one group.
    most : int
        A pair is similar if at most so many components differ in them.
    settled, entered : int
        Two documents are compared unless both are among the first `settled`, or neither is among the first `entered`.
    limit : int
        A document is compared with so many others of its bucket at most, group by group.

    Returns
    -------
    pairs : int
        How many pairs of such documents share a bucket.
    left_out : int
        For how many documents and groups `limit` left out a comparison.
    """
    cdef _Filter among = _Filter()
    cdef Bucket bucket
    cdef Py_ssize_t i, k, found, n = links.shape[0]
    cdef int64_t pairs = 0
    cdef int32_t j, at = 0
    cdef bint inside = True
    if low_bits.shape[0] != n or n > _MAX_DOCUMENTS or bits > 8 or (bits and low_bits.shape[1] % bits):
        raise ValueError(f"low_bits must have {bits} words, or a multiple, for each of {n} documents")
    among.kernels, among.rows = chosen_kernels(), &low_bits[0, 0]
    among.words, among.bits, among.most = low_bits.shape[1] // bits if bits else 0, bits, most
    among.settled, among.entered, among.limit = settled, entered, limit
    cdef int32_t[::1] scratch = np.zeros(8 * n, np.int32)
    cdef int32_t *firsts = &scratch[0]  # by document: the first one of its bucket
    cdef int32_t *sizes = firsts + n    # by that one
    cdef int32_t *places = sizes + n    # likewise, where the next member of the bucket goes
    cdef int32_t *members = places + n
    bucket.heads, bucket.chains = members + n, members + 2 * n
    bucket.following, bucket.last = members + 3 * n, members + 4 * n
    with nogil:
        for i in range(n):
            j = links[i]
            inside = -1 <= j < i
            if not inside:
                break
            firsts[i] = <int32_t> i if j < 0 else firsts[j]
            sizes[firsts[i]] += 1
        for i in range(n if inside else 0):
            if firsts[i] == i:
                places[i] = at
                at += sizes[i]
            members[places[firsts[i]]] = <int32_t> i
            places[firsts[i]] += 1
        bucket.parents = firsts  # which is no longer needed once the members are known
        for i in range(n if inside else 0):
            bucket.count, found = sizes[i], 0
            bucket.members = members + places[i] - bucket.count
            for k in range(places[i] - bucket.count + AHEAD, min(places[i] + AHEAD, n) if bits and bucket.count else 0):
                among.expect(members[k])
            for k in range(bucket.count):
                pairs += found if bucket.members[k] >= settled else 0
                found += bucket.members[k] < entered
            if bits and bucket.count > 1:
                among.divide(&bucket, &links[0])
    if not inside:
        raise ValueError("links must lead to earlier documents")
    return pairs, among.left_out
