# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Documents that share a bucket, compared, and the pairs of `find_pairs`.

`keep_similar` divides the buckets of a band (`grouping.BucketFinder`) into groups, and links the documents of each.
`Similarity` compares two documents, also for `engine.deciding`, and `Pairs` finds every pair. Documents are numbers
from 0 here; `lsh.engine.dedup` maps them to positions.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove

from lsh cimport _kernels as c
from lsh.base.components cimport find
from lsh.base.memory cimport resize
from lsh._minhash cimport check_signals, chosen_kernels
from lsh.text.sets cimport ShingleSets

import numpy as np

cdef enum:
    CHECKED = 1 << 26  # bytes of texts compared between two checks for signals: a tenth of a second at most
    AHEAD = 8  # candidates that are prefetched while one is compared
    LINE = 8  # words of a line of the cache
    GATHERED = 1 << 13  # words of low bits that are brought together
    CHECKED_SKETCHES = 1 << 24  # sketches compared between two checks for signals: a tenth of a second
    SKETCH_WORK = 64  # bytes of work that a comparison of sketches counts for


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
    min_equal : int
        A pair with fewer equal bytes, or components, is not compared further.
    """

    def __cinit__(self, matrix not None, ShingleSets sets, texts, size_t min_equal):
        self.kernels, self.sets, self.min_equal = chosen_kernels(), sets, min_equal
        self.count, self.k, self.width = len(matrix), matrix.shape[1], matrix.itemsize
        self.matrix = matrix.view(np.uint8)
        self.first_row = &self.matrix[0, 0] if self.count else NULL
        if sets is not None:
            self.texts = np.ascontiguousarray(texts, np.int32)

    cdef const uint8_t *_row(self, Py_ssize_t document) noexcept nogil:
        return self.first_row + <size_t> document * self.k * self.width

    cdef double value(self, Py_ssize_t i, Py_ssize_t j, double min_similarity) except -4.0 nogil:
        """The similarity of two documents; FILTERED or LEFT_OUT where it was found not to be needed."""
        self._worked(SKETCH_WORK)
        return self.exact(i, j, min_similarity) if self.passes(i, j) else FILTERED

    cdef bint passes(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """Whether two documents get past the filter."""
        return self._equal(i, j) >= self.min_equal

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
        passed = self.kernels.filter_8(self.first_row, self.k, self.min_equal, document, others, along, count)
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

    cdef void expect_text(self, Py_ssize_t document) noexcept nogil:
        """Prefetch the text of a document that is compared soon, for the first time."""
        if self.sets is not None and document < self.count and self.texts[document] >= 0:
            self.sets.expect_text(self.texts[document])

    cdef int _worked(self, int64_t work) except -1 nogil:
        """Count work, and handle signals now and then."""
        self.work += work
        if self.work - self.checked > CHECKED:
            self.checked = self.work
            check_signals()
        return 0

    cdef double exact(self, Py_ssize_t i, Py_ssize_t j, double min_similarity) except -4.0 nogil:
        """The similarity of two documents without the filter; LEFT_OUT where it is below `min_similarity`."""
        cdef double found
        cdef size_t before
        if self.sets is None:
            return <double> self._equal(i, j) / <double> self.k
        if self.texts[i] < 0 or self.texts[j] < 0:
            with gil:
                raise ValueError(f"documents {i} and {j} are compared, and one of them has no text")
        before = self.sets.read
        self.sets.choose(self.texts[i])
        found = self.sets.similarity(self.texts[j], min_similarity)
        self.work += self.sets.read - before
        return found if found >= min_similarity else LEFT_OUT

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

    def __cinit__(self, Similarity similarity not None, const int32_t[:, ::1] links not None,
                  const int32_t[::1] firsts not None, double threshold):
        cdef Py_ssize_t count = links.shape[1]
        self.similarity, self.links, self.firsts, self.threshold = similarity, links, firsts, threshold
        self.stamp = np.full(count, -1, np.int32)
        self.compared = np.full(count, -1, np.int32)
        self.value = np.zeros(count)

    def run(self, Py_ssize_t document, Py_ssize_t stop, Py_ssize_t max_candidates):
        """Find the pairs of the documents from `document` downwards, but not of `stop`.

        Parameters
        ----------
        document, stop : int
            The documents.
        max_candidates : int
            No further document begins where this one and those before have more candidates.

        Returns
        -------
        tuple
            The document to go on from: `stop`, or an earlier one after some work. For each pair its document and its
            partner (int32) in descending order, and the similarity (float64).
        """
        cdef Py_ssize_t last = document, total = 0, found = 0
        cdef int64_t before = self.similarity.work
        while last > stop and (total <= max_candidates or last == document):
            total += self._count(last)
            last -= 1
        documents, partners, values = np.empty(total, np.int32), np.empty(total, np.int32), np.empty(total)
        while document > last and self.similarity.work - before <= RUN:
            found = self._verify(<int32_t> document, found, documents, partners, values)
            document -= 1
        order = np.lexsort((-partners[:found], -documents[:found]))
        return document, documents[order], partners[order], values[order]

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

    cdef Py_ssize_t _verify(self, int32_t document, Py_ssize_t found, int32_t[::1] documents, int32_t[::1] partners,
                            double[::1] values) except -1:
        """Write the pairs of a document from `found` on; return where they end."""
        cdef Py_ssize_t band
        cdef int32_t other, first
        with nogil:
            for band in range(self.links.shape[0]):
                other = self.links[band, document]
                while other >= 0:
                    if self.stamp[other] != document:
                        self.stamp[other] = document
                        first = self.firsts[other]
                        if self.compared[first] != document:
                            self.compared[first] = document
                            self.value[first] = self.similarity.value(self.firsts[document], first, self.threshold)
                        if self.value[first] >= self.threshold:
                            documents[found], partners[found], values[found] = document, other, self.value[first]
                            found += 1
                    other = self.links[band, other]
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
    """Compares the documents of a bucket by the low bits of their components. A document is its place in the bucket."""

    cdef const lsh_kernels *kernels
    cdef const uint64_t *low_bits
    cdef const int32_t *rows         # of each document of the bucket, in `low_bits`; NULL: they lie there in order
    cdef const int32_t *documents    # their numbers
    cdef size_t words, bits, size
    cdef size_t max_different        # components that may differ
    cdef int32_t old_from
    cdef bint only_old
    cdef Py_ssize_t limit
    cdef int64_t left_out
    cdef int64_t compared
    cdef uint64_t *gathered          # rows of some buckets side by side
    cdef uint64_t *heads             # the rows of the first documents of groups side by side, of `limit` at most
    cdef Py_ssize_t room             # for so many
    cdef int32_t *pairs              # the links: a document and the one before it in its group
    cdef Py_ssize_t found, most_found
    cdef int32_t *scratch            # for five numbers a document of the largest bucket so far
    cdef Py_ssize_t largest

    def __dealloc__(self):
        free(self.gathered)
        free(self.heads)
        free(self.pairs)
        free(self.scratch)

    cdef inline const uint64_t *row(self, Py_ssize_t document) noexcept nogil:
        return self.low_bits + <size_t> (document if self.rows == NULL else self.rows[document]) * self.size

    cdef int gather(self, const uint64_t *low_bits, const int32_t *rows, Py_ssize_t count) except -1 nogil:
        """Bring some rows together, as most of the time goes into waiting for memory; they are 0 to count - 1 then."""
        cdef Py_ssize_t i
        cdef size_t line, lines = (self.size + LINE - 1) // LINE
        if self.gathered == NULL:
            self.gathered = <uint64_t *> resize(NULL, GATHERED, sizeof(uint64_t))
        for i in range(count):
            if i + AHEAD < count:
                for line in range(lines):
                    c.lsh_prefetch(low_bits + <size_t> rows[i + AHEAD] * self.size + line * LINE)
            memcpy(self.gathered + <size_t> i * self.size, low_bits + <size_t> rows[i] * self.size,
                   self.size * sizeof(uint64_t))
        return 0

    cdef inline bint similar(self, Py_ssize_t document, Py_ssize_t other) noexcept nogil:
        """Whether two documents are similar."""
        return self.kernels.find_similar(self.row(document), self.row(other), self.words, self.bits,
                                         self.max_different, 1) == 0

    cdef inline Py_ssize_t similar_head(self, int32_t document, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
        """The place among some groups, from `first` on, of the first whose first document is similar, or `count`."""
        return <Py_ssize_t> self.kernels.find_similar(self.row(document), self.heads + <size_t> first * self.size,
                                                      self.words, self.bits, self.max_different, <size_t> count)

    cdef inline bint is_old(self, Py_ssize_t document) noexcept nogil:
        """Whether a document is not compared with those before it."""
        return self.documents[document] >= self.old_from

    cdef inline bint enters(self, Py_ssize_t document) noexcept nogil:
        """Whether later documents are compared with one."""
        return not self.only_old or self.is_old(document)

    cdef inline int link(self, Py_ssize_t document, Py_ssize_t other) except -1 nogil:
        if self.found == self.most_found:
            self.most_found = 2 * self.most_found + 64
            self.pairs = <int32_t *> resize(self.pairs, self.most_found, 2 * sizeof(int32_t))
        self.pairs[2 * self.found] = self.documents[document]
        self.pairs[2 * self.found + 1] = self.documents[other]
        self.found += 1
        return 0

    cdef int _open(self, Bucket *bucket, int32_t document) except -1 nogil:
        """Make a new group of a document."""
        if bucket.groups == self.room and self.room < self.limit:
            self.room = min(2 * self.room + 64, self.limit)
            self.heads = <uint64_t *> resize(self.heads, self.room * self.size, sizeof(uint64_t))
        if bucket.groups < self.room:
            self._hold(bucket.groups, document)
        bucket.heads[bucket.groups] = document
        bucket.groups += 1
        return 0

    cdef inline void _hold(self, Py_ssize_t group, int32_t document) noexcept nogil:
        memcpy(self.heads + group * self.size, self.row(document), self.size * sizeof(uint64_t))

    cdef int divide(self, Py_ssize_t count) except -1 nogil:
        """Find the groups of a bucket, and link each document to the one before it in its group."""
        cdef Bucket bucket
        cdef int32_t document, group
        if self.bits == 0:
            return self._link_all(count)
        if count == 2 and self.limit > 0:  # most buckets
            return self.link(1, 0) if not self.is_old(1) and self.enters(0) and self.similar(1, 0) else 0
        if count > self.largest:
            self.largest = 2 * count
            self.scratch = <int32_t *> resize(self.scratch, self.largest, 5 * sizeof(int32_t))
        bucket.heads, bucket.chains, bucket.following = self.scratch, self.scratch + count, self.scratch + 2 * count
        bucket.last, bucket.parents = self.scratch + 3 * count, self.scratch + 4 * count
        bucket.groups = bucket.chained = 0
        for document in range(<int32_t> count):
            bucket.parents[document] = document
            bucket.following[document] = -1
            group = self._join(&bucket, document) if not self.is_old(document) else -1
            if group >= 0:
                bucket.parents[document] = group
            if self.enters(document):
                if group < 0:
                    self._open(&bucket, document)
                    group = document
                else:
                    if bucket.following[group] < 0:
                        _add_chain(&bucket, group)
                    bucket.following[bucket.last[group]] = document
                bucket.last[group] = document
        for document in range(<int32_t> count):
            bucket.last[document] = -1
        for document in range(<int32_t> count):
            group = find(bucket.parents, document)
            if bucket.last[group] >= 0:
                self.link(document, bucket.last[group])
            if self.enters(document):
                bucket.last[group] = document
        return 0

    cdef int _link_all(self, Py_ssize_t count) except -1 nogil:
        """Link each document of a bucket to the one before it."""
        cdef Py_ssize_t document, before = 0
        for document in range(1, count):
            self.link(document, before)
            if self.enters(document):
                before = document
        return 0

    cdef int32_t _join(self, Bucket *bucket, int32_t document) except -2 nogil:
        """Make one group of those that a document is similar to; return its first document, -1 if there is none.

        It is compared with the first document of each group, and then with the others of those not found to be similar.
        """
        cdef Py_ssize_t i = 0, k = 0, seen, some, left = self.limit
        cdef int32_t head, other, joined = -1, stop = <int32_t> 0x7fffffff
        cdef bint is_merged = False
        while i < bucket.groups and left > 0:
            some = min(bucket.groups - i, left)
            seen = self.similar_head(document, i, some)
            left -= min(seen + 1, some)
            i += seen
            if seen == some:
                continue
            if joined < 0:
                joined = bucket.heads[i]
            else:
                self._append(bucket, joined, bucket.heads[i])
                is_merged = True
            i += 1
        self.left_out += bucket.groups - i
        if i < bucket.groups:
            stop = bucket.heads[i]
        while k < bucket.chained and bucket.chains[k] < stop:
            head = bucket.chains[k]
            k += 1
            if head == joined:
                continue
            other = bucket.following[head]
            while other >= 0 and left > 0 and not self.similar(document, other):
                left -= 1
                other = bucket.following[other]
            if other < 0 or left == 0:
                self.left_out += other >= 0
                continue
            left -= 1
            if joined < 0:
                joined = head
                continue
            self._append(bucket, min(joined, head), max(joined, head))
            k = _place(bucket.chains, bucket.chained, head + 1)
            joined, is_merged = min(joined, head), True
        if is_merged:
            self._close_gaps(bucket)
        self.compared += self.limit - left
        if self.compared > CHECKED_SKETCHES:
            self.compared = 0
            check_signals()
        return joined

    cdef void _close_gaps(self, Bucket *bucket) noexcept nogil:
        """Move the groups together that were not appended to another one."""
        cdef Py_ssize_t i, filled = 0
        cdef int32_t head
        for i in range(bucket.groups):
            head = bucket.heads[i]
            if bucket.parents[head] != head:
                continue
            if i > filled:
                bucket.heads[filled] = head
                if i < self.room:
                    memcpy(self.heads + filled * self.size, self.heads + i * self.size, self.size * sizeof(uint64_t))
                elif filled < self.room:
                    self._hold(filled, head)
            filled += 1
        bucket.groups = filled

    cdef void _append(self, Bucket *bucket, int32_t head, int32_t other) noexcept nogil:
        """Append the group of a first document to that of another one."""
        cdef Py_ssize_t k
        if bucket.following[other] >= 0:
            bucket.chained -= 1
            k = _place(bucket.chains, bucket.chained, other)
            memmove(bucket.chains + k, bucket.chains + k + 1, (bucket.chained - k) * sizeof(int32_t))
        if bucket.following[head] < 0:
            _add_chain(bucket, head)
        bucket.parents[other] = head
        bucket.following[bucket.last[head]] = other
        bucket.last[head] = bucket.last[other]


def keep_similar(const int32_t[::1] members not None, const uint32_t[::1] ends not None,
                 const uint64_t[:, ::1] low_bits not None, const int32_t[::1] rows not None, size_t bits,
                 size_t max_different, int32_t old_from, bint only_old, Py_ssize_t limit):
    """Divide the buckets of a band into groups, in which pairs of documents with similar low bits connect all.

    Parameters
    ----------
    members, ends : numpy.ndarray
        int32 and uint32: the documents of each bucket, in the order in which they are decided, and where it ends; see
        `grouping.BucketFinder`.
    low_bits : numpy.ndarray
        uint64, shape ``(n, words)``: the low bits of the components of documents; see `grouping.pack_low_bits`.
    rows : numpy.ndarray
        int32: of each member, its row of `low_bits`.
    bits : int
        How many of each component, 1 to 8; 0: all documents of a bucket are one group.
    max_different : int
        A pair is similar if at most so many components differ in them.
    old_from : int
        Documents from this one on come first in their buckets, and are not compared with each other.
    only_old : bool
        Whether documents are compared with those only.
    limit : int
        A document is compared with so many others of its bucket at most, group by group.

    Returns
    -------
    links : numpy.ndarray
        int32, shape ``(m, 2)``: documents, and the last one before it in the same group; those without one are left
        out.
    pairs : int
        How many pairs of documents that could be compared share a bucket.
    left_out : int
        For how many documents and groups `limit` left out a comparison.
    """
    cdef _Filter among = _Filter()
    cdef Py_ssize_t i, begin = 0, end = 0, first = 0, stop = 0, n = members.shape[0], count = low_bits.shape[0]
    cdef Py_ssize_t most_gathered
    cdef const uint64_t *given = NULL
    cdef int64_t pairs = 0, old
    among.kernels, among.size = chosen_kernels(), low_bits.shape[1]
    among.words, among.bits, among.max_different = low_bits.shape[1] // bits if bits else 0, bits, max_different
    among.old_from, among.only_old, among.limit = old_from, only_old, limit
    if count and among.size:
        given = &low_bits[0, 0]
    most_gathered = GATHERED // max(among.size, <size_t> 1)
    with nogil:
        for i in range(ends.shape[0]):
            end = ends[i]
            among.documents, old = &members[begin], 0
            if end - begin > most_gathered:
                among.low_bits, among.rows = given, &rows[begin]
            elif bits:
                if end > stop:
                    first, stop = begin, min(begin + most_gathered, n)
                    among.gather(given, &rows[first], stop - first)
                among.low_bits, among.rows = among.gathered + <size_t> (begin - first) * among.size, NULL
            while old < end - begin and among.is_old(old):
                old += 1
            pairs += (_pairs(end - begin - old) if not only_old else 0) + old * (end - begin - old)
            among.divide(end - begin)
            begin = end
    links = np.empty((among.found, 2), np.int32)
    cdef int32_t[:, ::1] out = links
    if among.found:
        memcpy(&out[0, 0], among.pairs, among.found * 2 * sizeof(int32_t))
    return links, pairs, among.left_out


cdef inline int64_t _pairs(int64_t count) noexcept nogil:
    """How many pairs so many documents have."""
    return count * (count - 1) // 2
