# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Decide which documents are kept, component by component.

Documents that are linked through shared buckets are one component. What is decided about a document depends on its
component only, so components can be decided in any order, and in threads: `lsh.engine.partitions` shares the work.
`ClusterState` holds the buckets of the documents and what is decided about them, and
each thread has a `GreedyClusterer` over it. Documents are numbers from 0 here: component by component, and in the order
of the walk within each.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.math cimport fmax, fmin, nextafter
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from lsh.links.comparing cimport FILTERED, RUN, Similarity
from lsh.links.families cimport Family
from lsh.base.components cimport find, root_of, unite
from lsh.base.memory cimport resize

import threading

import numpy as np

cdef enum:
    AHEAD = 8  # documents whose texts are prefetched while one is decided
    NEAR = 100  # pairs just below the threshold that are remembered
    FAMILY_SHARE = 2  # a document meets at least this part, 1 / FAMILY_SHARE, of all that it is compared with

MAX_NEAR = NEAR

cdef class ClusterState:
    """The buckets of the documents of some components, and what is decided about these documents.

    Parameters
    ----------
    links : numpy.ndarray
        int32, shape ``(bands, n)``: for each document and band the latest document before it in the same bucket, or -1.
        It is overwritten.
    members : numpy.ndarray
        int32, as large: memory for the members of the buckets, of any content.
    ranks : numpy.ndarray
        int32, shape ``(n,)``: the place of each document in the order of the walk over all components.
    num_references : int
        Documents of a rank below this one are kept without being compared with each other.
    threshold : float
        Least similarity of a duplicate.
    limit : int
        In a bucket only the first `limit` members are compared with.
    runs : numpy.ndarray or None
        int32, as large, of any content: walk over components; see `GreedyClusterer`.
    family : int
        A document is compared with all that are kept, if they are at least so many and it meets most of them.
    bits : int
        The low bits of each component that connected these documents; twice as many tell which may be similar.
    family_bytes : int
        The memory that this may take in each walk.
    floor : float, optional
        Pairs below the threshold that are less similar than this are not remembered: other components have enough.
    map : callable, optional
        Like the function of this name, but may make calls in threads; for the bands.
    references : numpy.ndarray, optional
        int32, shape ``(n,)``: 1 for the documents that others are compared with, which are kept without being compared,
        0 for those that are compared with these only. Default: all are compared with those that are kept.
    copied : numpy.ndarray, optional
        bool, shape ``(n,)``: the documents of which there are copies; see `GreedyClusterer.look_again`. Default: none.

    Notes
    -----
    The members of a bucket of m documents take m numbers side by side: how many there are, then the members in order.
    The last document of a bucket does not become a member, as no document comes after it.
    """

    cdef readonly Py_ssize_t count
    cdef readonly double floor         # the largest that a walk has reached; see the parameter
    cdef int32_t[:, ::1] buckets       # by band and document: where the members are, -2 less it for the last one; or -1
    cdef int32_t[:, ::1] members
    cdef const int32_t[::1] ranks
    cdef int32_t[::1] witness          # -1 of a kept document
    cdef double[::1] value             # the similarity to the witness
    cdef int32_t[::1] parents          # of the walk over components: see base/components.pxd; None of the other
    cdef int32_t[:, ::1] runs          # likewise: by band and member, how many up to it are known to be connected
    cdef const int32_t[::1] references
    cdef const uint8_t[::1] copied
    cdef Py_ssize_t num_references
    cdef Py_ssize_t limit
    cdef Py_ssize_t family
    cdef size_t bits
    cdef size_t family_bytes
    cdef double threshold
    cdef object lock                   # of `floor`

    def __cinit__(self, int32_t[:, ::1] links not None, int32_t[:, ::1] members not None, ranks not None,
                  Py_ssize_t num_references, double threshold, Py_ssize_t limit, int32_t[:, ::1] runs,
                  Py_ssize_t family, size_t bits, size_t family_bytes,
                  double floor=0.0, map=map, const int32_t[::1] references=None, copied=None):
        cdef Py_ssize_t count = links.shape[1]
        self.buckets, self.members, self.references = links, members, references
        self.copied = None if copied is None else copied.view(np.uint8)
        self.ranks = np.ascontiguousarray(ranks, np.int32)
        self.count, self.num_references, self.limit = count, num_references, limit
        self.threshold, self.floor = threshold, floor
        self.runs, self.family, self.bits, self.family_bytes, self.parents = runs, family, bits, family_bytes, None
        if runs is not None:
            runs[:] = 0
            self.parents = np.arange(count, dtype=np.int32)
        self.witness = np.full(count, -1, np.int32)
        self.value = np.zeros(count)
        self.lock = threading.Lock()
        for _ in map(self._make_buckets, range(links.shape[0] if count else 0)):
            pass

    def _make_buckets(self, Py_ssize_t band):
        with nogil:
            self._buckets_of(band)

    cdef void _buckets_of(self, Py_ssize_t band) noexcept nogil:
        """Turn the links of a band into places of buckets, all of which are empty."""
        cdef int32_t i, root, above, place, number, at = 0, count = <int32_t> self.count
        cdef int32_t *buckets = &self.buckets[band, 0]
        cdef int32_t *members = &self.members[band, 0]
        cdef bint linked
        memset(members, 0, count * sizeof(int32_t))
        for i in range(count):  # the first document of each bucket, and how many others there are; without branches
            root = buckets[i]
            linked = 0 <= root < i
            root = root if linked else i
            above = buckets[root]
            root = above if 0 <= above < root else root
            buckets[i] = root if linked else -1
            members[root] += linked
        for i in range(count):  # where each bucket begins and 1, at its first document
            number = members[i]
            members[i] = at + 1 if number > 0 else 0
            at += min(number, count - 1 - at) + 1 if number > 0 else 0
        for i in range(count - 1, -1, -1):  # and at each of its documents, of which the last one comes first
            root = buckets[i]
            root = root if 0 <= root < i else i
            place = members[root]
            buckets[i] = -1 - place
            members[root] = -place if place > 0 else place
        memset(members, 0, count * sizeof(int32_t))

    def outcome(self):
        """Return by document its witness (int32, -1 of a kept one) and the similarity to it (float64)."""
        return np.array(self.witness), np.array(self.value)


cdef inline int32_t place_of(int32_t bucket) noexcept nogil:
    """Where the members of a bucket are, or -1: `ClusterState.buckets` tells the last document apart."""
    return bucket if bucket >= -1 else -2 - bucket


cdef inline int32_t number_of(const int32_t *members, Py_ssize_t count, int32_t place) noexcept nogil:
    """How many members a bucket of a band of `count` documents has; 0 for no bucket."""
    return max(0, min(members[place], <int32_t> count - 1 - place)) if 0 <= place < count else 0


cdef inline void enter(int32_t *members, Py_ssize_t count, int32_t bucket, int32_t document) noexcept nogil:
    """Make a document a member of its bucket, if another one comes after it there."""
    cdef int32_t number = number_of(members, count, bucket)
    if bucket >= 0 and bucket + number + 1 < count:
        members[bucket] = number + 1
        members[bucket + number + 1] = document


cdef struct Near:
    # A pair just below the threshold, and the first band that the two share.
    int32_t document
    int32_t other
    int32_t band
    int32_t rank                       # of the document
    double value


_NEAR = np.dtype([("document", "i4"), ("other", "i4"), ("band", "i4"), ("rank", "i4"), ("value", "f8")])


cdef struct Better:
    # A document that is kept after a removed one, and more similar to it than its witness and all before.
    int32_t document
    int32_t kept
    double value


_BETTER = np.dtype([("document", "i4"), ("kept", "i4"), ("value", "f8")])


cdef class GreedyClusterer:
    """Decide document by document which are kept.

    The representative walk: a document is removed if an earlier kept one shares a bucket in any band with it and has a
    similarity of at least `threshold`; its witness is the most similar such document, the earliest on a tie. Only kept
    documents are members of their buckets, so a bucket of a million copies costs one step a copy.

    The walk over components: documents that are similar through others belong together, and the earliest is kept. A
    document is compared with all of its bucket, but for those it is connected with already.

    Several walks may go on at the same time over one state, each in a thread and over other components.

    Parameters
    ----------
    similarity : Similarity
        Of the documents; for this walk only.
    state : ClusterState
        What is decided, by all clusterers.
    """

    cdef readonly int64_t left_out     # comparisons that the limit left out, over all documents and buckets
    cdef readonly int64_t compared     # pairs that got past the filter
    cdef Similarity similarity
    cdef ClusterState all
    cdef int32_t[:, ::1] buckets       # from here to `limit`: those of the state
    cdef int32_t[:, ::1] members
    cdef const int32_t[::1] ranks
    cdef const int32_t[::1] references
    cdef int32_t[::1] witness
    cdef double[::1] value
    cdef int32_t[::1] parents
    cdef double threshold
    cdef Py_ssize_t num_references
    cdef Py_ssize_t limit
    cdef int32_t[::1] stamp            # the last document that found this one
    cdef int32_t[::1] found
    cdef int32_t[::1] found_in         # the first band that they share
    cdef Family family                 # the documents that are kept since `first`, where they are many; None of few
    cdef bint is_too_large             # for the memory that it may take
    cdef Py_ssize_t first
    cdef Py_ssize_t stop               # and it has no others than those before this one
    cdef Py_ssize_t next               # the document that `run` ended before
    cdef Py_ssize_t kept               # how many these documents are
    cdef Near[NEAR] nearest
    cdef Py_ssize_t num_near
    cdef Py_ssize_t least_near         # the least of them, once they are NEAR
    cdef double floor                  # of the state when `run` began
    cdef bint is_again                 # the members are those of `look_again`
    cdef Better *improved
    cdef Py_ssize_t num_improved, room_improved
    cdef int32_t[::1] latest           # by document the last one of `improved`, or -1; None before `look_again`

    def __dealloc__(self):
        free(self.improved)

    def __cinit__(self, Similarity similarity not None, ClusterState state not None):
        cdef Py_ssize_t count = state.count
        self.similarity, self.all = similarity, state
        self.buckets, self.members, self.ranks = state.buckets, state.members, state.ranks
        self.references = state.references
        self.witness, self.value, self.parents = state.witness, state.value, state.parents
        self.num_references, self.limit, self.threshold = state.num_references, state.limit, state.threshold
        self.stamp = np.full(count, -1, np.int32)
        self.found, self.found_in = np.empty(count, np.int32), np.empty(count, np.int32)
        self.next, self.latest = -1, None

    def run(self, Py_ssize_t start, Py_ssize_t stop):
        """Decide documents from `start` on, but not from `stop` on; to be called over all of a component in turn.

        Returns
        -------
        int
            The document to continue with; earlier than `stop` after a certain amount of work.
        """
        self.is_again = False
        if start != self.next:
            self._begin_members(start, stop)
        return self._run(start, stop)

    def look_again(self, Py_ssize_t start, Py_ssize_t stop):
        """Find better witnesses for later copies of removed documents; to be called as `run` is, after it.

        A copy of a document that is removed has as its witness the most similar document that is kept before the copy,
        which may come after the first copy. So here documents that are kept are compared with the removed ones before
        them that have copies, which are the members of the buckets now. `better` returns what was found.
        """
        if self.all.copied is None:
            return stop
        self.is_again = True
        if start != self.next:
            if not self._needs_look(start, stop):
                return stop
            if self.latest is None:
                self.latest = np.full(self.all.count, -1, np.int32)
            self._begin_members(start, stop)
        return self._run(start, stop)

    cdef bint _needs_look(self, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
        """Whether there are copies of removed documents from `start` on."""
        cdef Py_ssize_t document
        for document in range(start, stop):
            if self._is_member(document):
                return True
        return False

    def better(self):
        """Return documents, later ones that are kept, and their similarity: as arrays, for `look_again`.

        The rows of a document are in the order of the walk; each is more similar than those before and the witness.
        """
        size = self.num_improved * <Py_ssize_t> sizeof(Better)
        found = np.frombuffer(PyBytes_FromStringAndSize(<const char *> self.improved, size), _BETTER)
        return found["document"], found["kept"], found["value"]

    cdef int _begin_members(self, Py_ssize_t start, Py_ssize_t stop) except -1:
        """Begin with buckets that have no members, for documents from `start` to `stop`."""
        cdef Py_ssize_t band, document
        cdef int32_t place
        self.first, self.stop, self.kept, self.family, self.is_too_large = start, stop, 0, None, False
        with nogil:
            for band in range(self.buckets.shape[0] if self.is_again else 0):
                for document in range(start, stop):
                    place = place_of(self.buckets[band, document])
                    if 0 <= place < self.members.shape[1]:
                        self.members[band, place] = 0
        return 0

    cdef Py_ssize_t _run(self, Py_ssize_t start, Py_ssize_t stop) except -1:
        cdef Py_ssize_t document = start
        cdef int64_t before = self.similarity.work
        self._begin()
        try:
            with nogil:
                while document < stop and self.similarity.work - before <= RUN:
                    self.similarity.expect_text(document + AHEAD)
                    if self.is_again:
                        self._look_again(<int32_t> document)
                    else:
                        self._decide(<int32_t> document)
                    document += 1
        finally:
            self._end()
        self.next = document if document < stop else -1
        return document

    def attach(self, Py_ssize_t start, Py_ssize_t stop):
        """End the walk over components for documents from `start` to `stop`, whose components have been decided.

        Each gets the earliest of its component as its witness.
        """
        cdef int32_t document, root
        self._begin()
        try:
            with nogil:
                for document in range(<int32_t> start, <int32_t> stop):
                    root = root_of(&self.parents[0], document)
                    if root != document and self.ranks[document] >= self.num_references:
                        self.witness[document] = root
                        self.value[document] = self.similarity.exact(document, root, 0.0)
                        self.compared += self.similarity.sets is not None
        finally:
            self._end()

    def near(self):
        """Return the most similar pairs below the threshold, as arrays: document, the other one, their similarity.

        They are in descending order of similarity, then in the order in which the walk finds them: by document, by the
        first band that the two share, the latest other one first.
        """
        size = self.num_near * <Py_ssize_t> sizeof(Near)
        found = np.frombuffer(PyBytes_FromStringAndSize(<const char *> self.nearest, size), _NEAR)
        found = found[np.lexsort((-found["other"], found["band"], found["rank"], -found["value"]))]
        return found["document"], found["other"], found["value"]

    cdef int _begin(self) except -1:
        with self.all.lock:
            self.floor = self.all.floor
        return 0

    cdef int _end(self) except -1:
        if self.num_near == NEAR:
            with self.all.lock:
                self.all.floor = max(self.all.floor, self.nearest[self.least_near].value)
        return 0

    cdef inline int32_t _number(self, Py_ssize_t band, int32_t document) noexcept nogil:
        """How many members a bucket of a document has."""
        return number_of(&self.members[band, 0], self.members.shape[1], place_of(self.buckets[band, document]))

    cdef int _decide(self, int32_t document) except -1 nogil:
        cdef Py_ssize_t met, over
        cdef int32_t best = -1
        cdef double most = 0.0
        cdef bint is_reference = self.references is not None and self.references[document]
        if self.ranks[document] >= self.num_references and not is_reference:
            met = self._met(document, &over)
            if self.parents is not None:
                self._connect(document)
            elif self._is_in_family(document, met):
                over = max(<Py_ssize_t> 0, self.kept - self.limit)
                self._judge_all(document, self._gather_family(document, self._least(document)), &best, &most)
            elif met:
                self._judge_all(document, self._gather(document), &best, &most)
            self.left_out += over
        if best >= 0:
            self.witness[document], self.value[document] = best, most
            return 0
        if self.references is not None and not is_reference:
            return 0
        return self._enter(document)

    cdef Py_ssize_t _met(self, int32_t document, Py_ssize_t *over) noexcept nogil:
        """The size of the buckets of a document in all; in `over` how many members are beyond the limit."""
        cdef Py_ssize_t band, met = 0
        cdef int32_t number
        over[0] = 0
        for band in range(self.buckets.shape[0]):
            number = self._number(band, document)
            over[0] += max(<Py_ssize_t> 0, number - self.limit)
            met += number
        return met

    cdef int _enter(self, int32_t document) except -1 nogil:
        """Make a document a member of its buckets: from now on, documents are compared with it."""
        cdef Py_ssize_t band
        self.kept += 1
        for band in range(self.buckets.shape[0]):
            enter(&self.members[band, 0], self.members.shape[1], self.buckets[band, document], document)
        if self.family is not None:
            self._add(document)
        return 0

    cdef bint _is_member(self, Py_ssize_t document) noexcept nogil:
        """Whether others are compared with a document, which has been decided."""
        if self.is_again:
            return self.witness[document] >= 0 and self.all.copied[document]
        return self.witness[document] < 0 and (self.references is None or self.references[document])

    cdef int _look_again(self, int32_t document) except -1 nogil:
        """Compare a document that is kept with those before it that are removed and have copies."""
        cdef Py_ssize_t i, met, over, found
        cdef int32_t other
        cdef double value
        if self._is_member(document):
            return self._enter(document)
        met = self._met(document, &over) if self.witness[document] < 0 else 0
        if met == 0:
            return 0
        if self._is_in_family(document, met):
            found = self._gather_family(document, self.threshold)
        else:
            found = self._gather(document)
        self.left_out += over
        for i in range(found):
            other = self.found[i]
            value = self.value[other] if self.latest[other] < 0 else self.improved[self.latest[other]].value
            self.similarity.expect(&self.found[i], found - i)
            self._improve(other, document, value, self.similarity.exact(document, other, value))
        return 0

    cdef int _improve(self, int32_t document, int32_t kept, double before, double value) except -1 nogil:
        """Note that a later document is more similar than the witness, if it is."""
        if value <= before:
            return 0
        if self.num_improved == self.room_improved:
            self.room_improved = 2 * self.room_improved + 64
            self.improved = <Better *> resize(self.improved, self.room_improved, sizeof(Better))
        self.latest[document] = <int32_t> self.num_improved
        self.improved[self.num_improved] = Better(document, kept, value)
        self.num_improved += 1
        return 0

    cdef Py_ssize_t _gather(self, int32_t document) except -1 nogil:
        """Collect the members that share a bucket with a document and pass the filter."""
        cdef Py_ssize_t band, found = 0
        cdef int32_t place, at
        cdef uint32_t other
        for band in range(self.buckets.shape[0]):
            place = place_of(self.buckets[band, document])
            for at in range(place + 1, place + 1 + <int32_t> min(<Py_ssize_t> self._number(band, document),
                                                                 self.limit)):
                other = <uint32_t> self.members[band, at]
                if other < <uint32_t> document and self.stamp[other] != document and found < self.found.shape[0]:
                    self.stamp[other] = document
                    self.found[found], self.found_in[found] = <int32_t> other, <int32_t> band
                    found += 1
        found = self.similarity.pass_filter(document, &self.found[0], &self.found_in[0], found)
        self.compared += found
        return found

    cdef int _judge_all(self, int32_t document, Py_ssize_t found, int32_t *best, double *most) except -1 nogil:
        """Take the similarities to the documents that were found into account."""
        cdef Py_ssize_t i
        for i in range(found):
            self.similarity.expect(&self.found[i], found - i)
            self._judge(document, self.found[i], self.found_in[i],
                        self.similarity.exact(document, self.found[i], self._least(document)), best, most)
        return 0

    cdef void _judge(self, int32_t document, int32_t other, int32_t band, double value, int32_t *best,
                     double *most) noexcept nogil:
        """Take the similarity of a pair into account."""
        if value < self.threshold:
            if value >= 0.0:
                self._remember(document, other, band, value)
        elif best[0] < 0 or value > most[0] or (value == most[0] and other < best[0]):
            best[0], most[0] = other, value

    # ---- many documents that are kept, such as those of one template ----

    cdef bint _is_in_family(self, int32_t document, Py_ssize_t met) except -1 nogil:
        """Whether a document is best compared with all that are kept; `met` is the size of its buckets in all."""
        if (self.kept < self.all.family or FAMILY_SHARE * met < self.kept or self.similarity.sets is None
                or self.is_too_large):
            return False
        if self.family is None:
            self._begin_family(document)
        return self.family is not None

    cdef int _begin_family(self, int32_t document) except -1 nogil:
        cdef Py_ssize_t other
        with gil:
            self.family = Family(self.similarity, self.first, self.stop, max(min(2 * self.all.bits, 8), 1),
                                 self.all.family_bytes)
        for other in range(self.first, document):
            if self.family is not None and self._is_member(other):
                self._add(<int32_t> other)
        return 0

    cdef int _add(self, int32_t document) except -1 nogil:
        """Add a document to the family, up to the limit; a family that becomes too large for memory is given up."""
        if <Py_ssize_t> self.family.num_kept == self.limit:
            return 0
        self.family.add(document)
        if self.family.num_bytes() > self.all.family_bytes:
            self.is_too_large = True
            with gil:
                self.family = None
        return 0

    cdef Py_ssize_t _gather_family(self, int32_t document, double least) except -1 nogil:
        """Collect the same of all members by their family, but for those that are less similar than `least`."""
        cdef Py_ssize_t i, similar, found = 0
        cdef int32_t other, band
        similar = self.family.most_similar(document, least, &self.found[0])
        for i in range(similar):
            other = self.found[i]
            band = self._shared_band(document, other)
            if band >= 0 and (not self.family.is_dense or self.similarity.passes(document, other)):
                self.found[found], self.found_in[found] = other, band
                found += 1
        self.compared += self.family.num_kept if self.family.is_dense else found
        return found

    cdef int32_t _shared_band(self, int32_t document, int32_t other) noexcept nogil:
        """The first band in which two documents share a bucket, or -1."""
        cdef Py_ssize_t band
        cdef int32_t place
        for band in range(self.buckets.shape[0]):
            place = place_of(self.buckets[band, document])
            if place >= 0 and place == place_of(self.buckets[band, other]):
                return <int32_t> band
        return -1

    # ---- components ----

    cdef int _connect(self, int32_t document) except -1 nogil:
        """Connect a document with those of its buckets that are similar; not compared are those that are connected."""
        cdef Py_ssize_t band
        cdef int32_t place, at, other
        cdef int32_t *parents = &self.parents[0]
        cdef double value
        for band in range(self.buckets.shape[0]):
            place = place_of(self.buckets[band, document])
            at = place + <int32_t> min(<Py_ssize_t> self._number(band, document), self.limit)
            while at > place:
                other = self.members[band, at]
                if not 0 <= other < document or self.stamp[other] == document:
                    at -= 1
                    continue
                if find(parents, other) == find(parents, document):
                    at = self._before_connected(band, place, at, document)
                    continue
                at -= 1
                self.stamp[other] = document
                value = self.similarity.value(document, other, self._least(document))
                if value == FILTERED:
                    continue
                self.compared += 1
                if value >= self.threshold:
                    unite(parents, document, other)
                elif value >= 0.0:
                    self._remember(document, other, <int32_t> band, value)
        return 0

    cdef int32_t _before_connected(self, Py_ssize_t band, int32_t place, int32_t at, int32_t document) noexcept nogil:
        """The last member of a bucket before `at` that is not connected with a document, or `place`.

        Members next to each other that are connected stay so, and are passed over at once next time.
        """
        cdef int32_t before = at, other
        cdef int32_t *parents = &self.parents[0]
        while before > place:
            other = self.members[band, before]
            if not 0 <= other < document or find(parents, other) != find(parents, document):
                break
            before -= max(1, min(self.all.runs[band, before], before - place))
        self.all.runs[band, at] = at - before
        return before

    # ---- the pairs just below the threshold ----

    cdef double _least(self, int32_t document) noexcept nogil:
        """Similarities of a document below this value change nothing.

        The value of the least of the nearest pairs itself changes nothing for a document that comes after that pair's.
        """
        cdef double least = self.floor, value
        if self.num_near == NEAR:
            value = self.nearest[self.least_near].value
            if self.ranks[document] > self.nearest[self.least_near].rank:
                value = nextafter(value, 1.0)
            least = fmax(least, value)
        return fmin(self.threshold, least)

    cdef void _remember(self, int32_t document, int32_t other, int32_t band, double value) noexcept nogil:
        """Add a pair to the nearest pairs below the threshold, if it is one."""
        cdef Near one = Near(document, other, band, self.ranks[document], value)
        cdef Py_ssize_t i, at = self.num_near
        if at == NEAR:
            at = self.least_near
            if not _is_nearer(&one, &self.nearest[at]):
                return
        else:
            self.num_near += 1
        self.nearest[at] = one
        if self.num_near < NEAR:
            return
        at = 0
        for i in range(1, NEAR):
            if _is_nearer(&self.nearest[at], &self.nearest[i]):
                at = i
        self.least_near = at


cdef bint _is_nearer(const Near *one, const Near *other) noexcept nogil:
    """Tell whether a pair comes before another one; see `GreedyClusterer.near`."""
    if one.value != other.value:
        return one.value > other.value
    if one.rank != other.rank:
        return one.rank < other.rank
    if one.band != other.band:
        return one.band < other.band
    return one.other > other.other
