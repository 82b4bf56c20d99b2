# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Decide which documents are kept, component by component.

Documents that are linked through shared buckets are one component. What is decided about a document depends on its
component only, so components can be decided in any order and in threads. `Components` finds them. `Decisions` holds the
buckets of the documents and what is decided about them, and each thread has a `Walk` over it. Documents are numbers
from 0 here: component by component, and in the order of the walk within each. `lsh.engine.parts` shares the work among
threads.
"""

from libc.math cimport fmax, fmin
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from lsh.engine.comparing cimport FILTERED, RUN, Similarity
from lsh.base.components cimport find, flatten, root_of, unite
from lsh.base.memory cimport acquire, check_aligned, resize

import threading

import numpy as np

cdef enum:
    NEAR = 100  # pairs just below the threshold that are remembered
    WINDOW = 1 << 14  # documents in a window at most
    BLOCK = 1 << 7  # documents whose candidates are counted band by band

MAX_NEAR = NEAR

cdef Py_ssize_t _MAX_DOCUMENTS = 2**31 - 1  # their numbers are int32


cdef class Components:
    """The connected components of documents.

    Parameters
    ----------
    count : int
        The number of documents, which are numbers from 0 in the order of the walk.
    """

    cdef int32_t[::1] parents  # of each document an earlier member of its component, or itself
    cdef object lock

    def __cinit__(self, Py_ssize_t count):
        if not 0 <= count <= _MAX_DOCUMENTS:
            raise ValueError(f"count must be 0 to {_MAX_DOCUMENTS} documents, got {count}")
        self.parents = np.arange(count, dtype=np.int32)
        self.lock = threading.Lock()

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
        cdef int32_t pair[2]
        cdef uint32_t count = <uint32_t> self.parents.shape[0]
        cdef bint inside = True
        _check_pairs(pairs, numbers)
        acquire(self.lock)
        try:
            with nogil:
                for i in range(pairs.shape[0]):
                    inside = renumber(pairs, i, numbers, count, pair)
                    if not inside:
                        break
                    unite(&self.parents[0], pair[0], pair[1])
        finally:
            self.lock.release()
        if not inside:
            raise ValueError(f"documents must be from 0 to {<Py_ssize_t> count - 1}")

    def order(self):
        """Return the documents component by component; those of a component, and the components, by first number.

        Returns
        -------
        documents : numpy.ndarray
            int32, shape ``(n,)``.
        starts : numpy.ndarray
            int64, shape ``(components + 1,)``: where each component begins in `documents`, and n.
        """
        cdef int32_t i, root, found = 0, count = <int32_t> self.parents.shape[0]
        cdef int64_t at = 0
        documents, ends = np.empty(count, np.int32), np.zeros(count, np.int64)
        cdef int32_t[::1] placed = documents
        cdef int64_t[::1] places = ends
        acquire(self.lock)
        try:
            with nogil:
                if count:
                    flatten(&self.parents[0], count)
                for i in range(count):
                    places[self.parents[i]] += 1
                for i in range(count):  # from sizes to where each component begins, at its root
                    if self.parents[i] == i:
                        at += places[i]
                        places[i] = at - places[i]
                        found += 1
                for i in range(count):
                    root = self.parents[i]
                    placed[places[root]] = i
                    places[root] += 1
            roots = np.flatnonzero(np.asarray(self.parents) == np.arange(count, dtype=np.int32))
        finally:
            self.lock.release()
        return documents, np.concatenate([np.zeros(1, np.int64), ends[roots]])


cdef int _check_pairs(const int32_t[:, ::1] pairs, const int32_t[::1] numbers) except -1:
    if pairs.shape[1] != 2:
        raise ValueError(f"pairs must have two columns, got {pairs.shape[1]}")
    check_aligned(&pairs[0, 0], sizeof(int32_t))
    return check_aligned(&numbers[0], sizeof(int32_t))


cdef inline bint renumber(const int32_t[:, ::1] pairs, Py_ssize_t i, const int32_t[::1] numbers, uint32_t count,
                          int32_t *pair) noexcept nogil:
    """Look up the numbers of a pair; returns whether both are there, and less than `count`."""
    cdef uint32_t a = <uint32_t> pairs[i, 0], b = <uint32_t> pairs[i, 1], known = <uint32_t> numbers.shape[0]
    if a >= known or b >= known:
        return False
    a, b = <uint32_t> numbers[a], <uint32_t> numbers[b]
    pair[0], pair[1] = <int32_t> a, <int32_t> b
    return a < count and b < count


def write_links(const int32_t[:, ::1] pairs not None, const int32_t[::1] numbers not None,
                int32_t[::1] links not None):
    """Write the links of a band: to `links`, at the number of the first document of each pair, that of the second.

    `pairs` and `numbers` are as for `Components.connect`.
    """
    cdef Py_ssize_t i
    cdef int32_t pair[2]
    cdef bint inside = True
    _check_pairs(pairs, numbers)
    check_aligned(&links[0], sizeof(int32_t))
    with nogil:
        for i in range(pairs.shape[0]):
            inside = renumber(pairs, i, numbers, <uint32_t> links.shape[0], pair)
            if not inside:
                break
            links[pair[0]] = pair[1]
    if not inside:
        raise ValueError(f"documents must be from 0 to {links.shape[0] - 1}")


cdef class Decisions:
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
    settled : int
        Documents of a rank below this one are kept without being compared with each other.
    threshold : float
        Least similarity of a duplicate.
    cap : int
        In a bucket only the latest `cap` members are compared with.
    components : bool
        Walk over components; see `Walk`.
    floor : float, optional
        Pairs below the threshold that are less similar than this are not remembered: other components have enough.
    map : callable, optional
        Like the function of this name, but may make calls in threads; for the bands.

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
    cdef int32_t[:, ::1] before        # by band, for each document of the window, how many members it is scored with
    cdef int32_t[::1] most_before      # the largest of these
    cdef Py_ssize_t window             # where the window begins
    cdef Py_ssize_t window_end
    cdef bint as_kept                  # whether these members may be documents of the window
    cdef Py_ssize_t settled
    cdef Py_ssize_t cap
    cdef double threshold
    cdef object lock                   # of `floor` and the window

    def __cinit__(self, int32_t[:, ::1] links not None, int32_t[:, ::1] members not None, ranks not None,
                  Py_ssize_t settled, double threshold, Py_ssize_t cap, bint components, double floor=0.0, map=map):
        cdef Py_ssize_t count = links.shape[1]
        if count > _MAX_DOCUMENTS or settled < 0 or cap < 0:
            raise ValueError("settled and cap must be 0 or more, and links of less than 2**31 documents")
        if members.shape[0] != links.shape[0] or members.shape[1] != count:
            raise ValueError("members must be as large as links")
        check_aligned(&links[0, 0], sizeof(int32_t))
        check_aligned(&members[0, 0], sizeof(int32_t))
        own = np.array(ranks, np.int32).reshape(-1)
        if len(own) != count:
            raise ValueError(f"ranks must be of {count} documents, got {len(own)}")
        self.buckets, self.members, self.ranks = links, members, own
        self.count, self.settled, self.threshold, self.cap, self.floor = count, settled, threshold, cap, floor
        self.parents = np.arange(count, dtype=np.int32) if components else None
        self.before = np.empty((links.shape[0], min(<Py_ssize_t> WINDOW, count)), np.int32)
        self.most_before = np.zeros(self.before.shape[1], np.int32)
        self.witness = np.full(count, -1, np.int32)
        self.value = np.zeros(count)
        self.lock = threading.Lock()
        if not all(map(self._make_buckets, range(links.shape[0] if count else 0))):
            raise ValueError("links must lead to earlier documents")

    def _make_buckets(self, Py_ssize_t band):
        with nogil:
            right = self._buckets_of(band)
        return right

    cdef bint _buckets_of(self, Py_ssize_t band) noexcept nogil:
        """Turn the links of a band into places of buckets, all of which are empty; returns whether they were right."""
        cdef int32_t i, root, above, place, number, at = 0, count = <int32_t> self.count
        cdef int32_t *buckets = &self.buckets[band, 0]
        cdef int32_t *members = &self.members[band, 0]
        cdef bint linked, right = True
        memset(members, 0, count * sizeof(int32_t))
        for i in range(count):  # the first document of each bucket, and how many others there are; without branches
            root = buckets[i]
            linked = 0 <= root < i
            right &= linked | (root == -1)
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
        return right

    def outcome(self):
        """Return by document its witness (int32, -1 of a kept one) and the similarity to it (float64)."""
        return np.array(self.witness), np.array(self.value)

    def begin_window(self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t most, bint as_kept):
        """Prepare a window of documents from `start` on, for `Walk.score`. Those before it are decided.

        Parameters
        ----------
        start, stop : int
            The documents that may be in it.
        most : int
            It ends where its documents have more candidates than this.
        as_kept : bool
            Score the documents of the window with each other, too, as if they were all kept.

        Returns
        -------
        numpy.ndarray
            int64, shape ``(m,)``: how many candidates each document of the window has at most.
        """
        cdef Py_ssize_t band, i, done = 0, end, found = 0
        if not 0 <= start < stop <= self.count:
            raise ValueError("start and stop must lie within the documents")
        stop = end = min(stop, start + WINDOW)
        counts = np.zeros(end - start, np.int64)
        cdef int64_t[::1] ahead = counts
        with nogil:
            while start + done < stop and found <= most:
                i, done = done, min(done + BLOCK, stop - start)
                self.most_before[i:done] = 0
                for band in range(self.buckets.shape[0]):
                    self._count_ahead(band, start, i, done, as_kept, ahead)
                while i < done and found <= most:
                    found += ahead[i]
                    i += 1
                end = start + i
            for band in range(self.buckets.shape[0] if as_kept else 0):
                self._restore(band, start, done)
        with self.lock:
            self.window, self.window_end, self.as_kept = start, end, as_kept
        return counts[:end - start]

    cdef void _count_ahead(self, Py_ssize_t band, Py_ssize_t start, Py_ssize_t first, Py_ssize_t end, bint as_kept,
                           int64_t[::1] ahead) noexcept nogil:
        """Count the members of a band that documents `first` to `end` - 1 of the window from `start` on have."""
        cdef Py_ssize_t i
        cdef int32_t number, cap = <int32_t> min(self.cap, self.count)
        cdef int32_t *before = &self.before[band, 0]
        cdef int32_t *most = &self.most_before[0]
        cdef int64_t *sums = &ahead[0]
        cdef const int32_t *ranks = &self.ranks[start]
        cdef const int32_t *buckets = &self.buckets[band, start]
        cdef int32_t *members = &self.members[band, 0]
        for i in range(first, end):
            number = number_of(members, self.count, place_of(buckets[i]))
            before[i] = number
            most[i] = max(most[i], number)
            sums[i] += min(number, cap) if ranks[i] >= self.settled else 0
            if as_kept:
                enter(members, self.count, buckets[i], <int32_t> (start + i))

    cdef void _restore(self, Py_ssize_t band, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
        """Remove the documents of the window that were entered into the buckets of a band."""
        cdef Py_ssize_t i
        cdef int32_t place
        for i in range(end - 1, -1, -1):
            place = place_of(self.buckets[band, start + i])
            if 0 <= place < self.count:
                self.members[band, place] = self.before[band, i]


cdef inline int32_t place_of(int32_t bucket) noexcept nogil:
    """Where the members of a bucket are, or -1: `Decisions.buckets` tells the last document apart."""
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


cdef struct Score:
    int32_t other
    int32_t band                       # the first one that the two share
    double value


cdef class Scores:
    """The similarities of some documents to members before them; made by `Walk.score`."""

    cdef Decisions all
    cdef Py_ssize_t window
    cdef bint as_kept                  # see Decisions.begin_window
    cdef Py_ssize_t start
    cdef const int64_t[::1] bounds     # those of document start + i are bounds[i] to bounds[i + 1] - 1
    cdef Score *scores                 # with as_kept first all of the window as FILTERED, then those past the filter
    cdef Py_ssize_t capacity
    cdef const int64_t[::1] candidates  # of each document: how many others there were, also those that were filtered

    def __dealloc__(self):
        free(self.scores)

    cdef int _reserve(self, Py_ssize_t count) except -1 nogil:
        """Allocate memory for so many scores or more."""
        if count > self.capacity:
            count = max(count, 2 * self.capacity)
            self.scores = <Score *> resize(self.scores, count, sizeof(Score))
            self.capacity = count
        return 0


cdef class Walk:
    """Decide document by document which are kept.

    The representative walk: a document is removed if an earlier kept one shares a bucket in any band with it and has a
    similarity of at least `threshold`; its witness is the most similar such document, the earliest on a tie. Only kept
    documents are members of their buckets, so a bucket of a million copies costs one step a copy.

    The walk over components: documents that are similar through others belong together, and the earliest is kept. A
    document is compared with all of its bucket, but for those it is connected with already.

    Several walks may go on at the same time over one object of decisions, each in a thread and over other components.
    In a large component, several walks first score the documents of a window (`Decisions.begin_window`, `score`), and
    then one of them decides the window.

    Parameters
    ----------
    similarity : Similarity
        Of the documents; for this walk only.
    decisions : Decisions
        What is decided, of all walks.
    """

    cdef readonly int64_t capped       # bucket members that the cap passed over, over all documents and bands
    cdef readonly int64_t candidates   # pairs that share a bucket
    cdef readonly int64_t compared     # pairs that got past the filter
    cdef readonly int64_t kept         # documents
    cdef Similarity similarity
    cdef Decisions all
    cdef int32_t[:, ::1] buckets       # from here to `before`: the arrays of the decisions
    cdef int32_t[:, ::1] members
    cdef const int32_t[::1] ranks
    cdef int32_t[::1] witness
    cdef double[::1] value
    cdef int32_t[::1] parents
    cdef int32_t[:, ::1] before
    cdef int32_t[::1] most_before
    cdef Py_ssize_t window
    cdef int64_t entered               # documents of the window that have become members
    cdef Py_ssize_t settled
    cdef Py_ssize_t cap
    cdef double threshold
    cdef int32_t[::1] stamp            # the last document that found this one; -2 less it, if it was scored with it
    cdef int32_t[::1] found
    cdef int32_t[::1] found_in         # the first band that they share
    cdef int32_t[::1] joined           # the last document that was scored as similar to this component; None at first
    cdef int32_t[::1] scored_for       # the last document that has a score with this one; None before any scores
    cdef double[::1] score_with
    cdef int32_t[NEAR] near_document
    cdef int32_t[NEAR] near_other
    cdef double[NEAR] near_value
    cdef int32_t[NEAR] near_band       # the first band that the two share
    cdef Py_ssize_t num_near
    cdef Py_ssize_t least_near         # the least of them, once they are NEAR
    cdef double floor                  # of the decisions when `run` or `score` began

    def __cinit__(self, Similarity similarity not None, Decisions decisions not None):
        cdef Py_ssize_t count = decisions.count
        if similarity.count != count:
            raise ValueError("similarity and decisions must be of the same documents")
        self.similarity, self.all = similarity, decisions
        self.buckets, self.members, self.ranks = decisions.buckets, decisions.members, decisions.ranks
        self.witness, self.value = decisions.witness, decisions.value
        self.before, self.most_before = decisions.before, decisions.most_before
        self.parents, self.settled, self.cap = decisions.parents, decisions.settled, decisions.cap
        self.threshold = decisions.threshold
        self.joined = self.scored_for = self.score_with = None
        self.stamp = np.full(count, -1, np.int32)
        most = min(count, self.buckets.shape[0] * min(self.cap, count))
        self.found, self.found_in = np.empty(most, np.int32), np.empty(most, np.int32)

    def run(self, Py_ssize_t start, Py_ssize_t stop, Scores scores=None):
        """Decide documents from `start` on, but not from `stop` on; to be called over all of a component in turn.

        Parameters
        ----------
        start, stop : int
            The documents.
        scores : Scores, optional
            Of these documents.

        Returns
        -------
        int
            The document to continue with; earlier than `stop` after a certain amount of work.
        """
        cdef Py_ssize_t document = start
        cdef int64_t before = self.similarity.work
        if scores is not None and not (scores.all is self.all and scores.start <= start
                                       and stop <= scores.start + scores.candidates.shape[0]):
            raise ValueError("scores must be of these documents")
        self._begin(start, stop)
        try:
            if scores is not None:
                self._prepare(scores, start)
            with nogil:
                while document < stop and self.similarity.work - before <= RUN:
                    self._decide(<int32_t> document, scores)
                    document += 1
        finally:
            self._end()
        return document

    def score(self, Py_ssize_t start, Py_ssize_t stop):
        """Compare documents of the window with the members before it; return their `Scores` for `run`."""
        cdef Scores scores = Scores()
        self._begin(start, stop)
        try:
            with self.all.lock:
                if not self.all.window <= start <= stop <= self.all.window_end:
                    raise ValueError("start and stop must lie within the window")
                self.window, scores.as_kept = self.all.window, self.all.as_kept
            if self.parents is not None and self.joined is None:
                self.joined = np.full(self.all.count, -1, np.int32)
            scores.all, scores.window, scores.start = self.all, self.window, start
            self._score(scores, np.zeros(stop - start + 1, np.int64), np.empty(stop - start, np.int64))
        finally:
            self._end()
        return scores

    def attach(self, Py_ssize_t start, Py_ssize_t stop):
        """End the walk over components for documents from `start` to `stop`, whose components have been decided.

        Each gets the earliest of its component as its witness.
        """
        cdef int32_t document, root
        if self.parents is None:
            raise ValueError("attach is for the walk over components")
        self._begin(start, stop)
        try:
            with nogil:
                for document in range(<int32_t> start, <int32_t> stop):
                    root = root_of(&self.parents[0], document)
                    if root != document and self.ranks[document] >= self.settled:
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
        count = self.num_near
        documents = np.array(<int32_t[:NEAR]> self.near_document)[:count]
        others = np.array(<int32_t[:NEAR]> self.near_other)[:count]
        values = np.array(<double[:NEAR]> self.near_value)[:count]
        bands = np.array(<int32_t[:NEAR]> self.near_band)[:count]
        order = np.lexsort((-others, bands, np.asarray(self.ranks)[documents], -values))
        return documents[order], others[order], values[order]

    cdef int _begin(self, Py_ssize_t start, Py_ssize_t stop) except -1:
        if not 0 <= start <= stop <= self.all.count:
            raise ValueError("start and stop must lie within the documents")
        with self.all.lock:
            self.floor = self.all.floor
        self.similarity.begin()
        return 0

    cdef int _end(self) except -1:
        self.similarity.end()
        if self.num_near == NEAR:
            with self.all.lock:
                self.all.floor = max(self.all.floor, self.near_value[self.least_near])
        return 0

    cdef inline int32_t _number(self, Py_ssize_t band, int32_t document) noexcept nogil:
        """How many members a bucket of a document has."""
        return number_of(&self.members[band, 0], self.members.shape[1], place_of(self.buckets[band, document]))

    cdef Py_ssize_t _gather(self, int32_t document, bint scored) noexcept nogil:
        """Collect the members that share a bucket with a document, the latest of each bucket first.

        With `scored`, only those that are not before the window; else those that the cap passes over are counted.
        """
        cdef Py_ssize_t band, found = 0
        cdef int32_t number
        for band in range(self.buckets.shape[0]):
            number = self._number(band, document)
            if number == 0:
                continue
            if not scored:
                self.capped += max(0, number - self.cap)
            found = self._find(band, place_of(self.buckets[band, document]), number,
                               self.before[band, document - self.window] if scored else 0, document, document, found)
        return found

    cdef Py_ssize_t _gather_ahead(self, int32_t document, Scores scores, Py_ssize_t *end) except -1 nogil:
        """Collect the members that a document of the window is scored with.

        If they are scored as if all were kept, those of the window are added to the scores, which end at `end`.
        """
        cdef Py_ssize_t band, found = 0, i
        cdef int32_t place, number
        for band in range(self.buckets.shape[0] if self.ranks[document] >= self.settled else 0):
            place = place_of(self.buckets[band, document])
            number = self.before[band, document - self.window]
            if 0 <= place <= self.members.shape[1] - 1 - number:
                i = found
                found = self._find(band, place, number, 0, document, -2 - document, found)
                if not scores.as_kept or self.parents is not None:
                    continue
                scores._reserve(end[0] + found - i)
                while i < found and self.found[i] >= self.window:  # the latest come first
                    scores.scores[end[0]] = Score(self.found[i], <int32_t> band, FILTERED)
                    end[0] += 1
                    i += 1
        return found

    cdef inline Py_ssize_t _find(self, Py_ssize_t band, int32_t place, int32_t number, int32_t least, int32_t document,
                                 int32_t mark, Py_ssize_t found) noexcept nogil:
        """Add members of a bucket that do not have this mark to those that were found; return how many these are.

        They are the latest ones of the first `number` members, but not of the first `least`; the cap counts all.
        """
        cdef int32_t at
        cdef uint32_t other
        least = <int32_t> max(<Py_ssize_t> least, number - self.cap)
        for at in range(place + number, place + least, -1):
            other = <uint32_t> self.members[band, at]
            if other < <uint32_t> document and self.stamp[other] != mark and found < self.found.shape[0]:
                self.stamp[other] = mark
                self.found[found], self.found_in[found] = <int32_t> other, <int32_t> band
                found += 1
        return found

    cdef int _decide(self, int32_t document, Scores scores) except -1 nogil:
        cdef Py_ssize_t band, found
        cdef bint partly_scored = scores is not None
        cdef bint crowded = not partly_scored or self._may_be_cut(document)
        cdef int32_t best = -1
        cdef double most = 0.0
        if self.ranks[document] >= self.settled:
            if scores is None or self.parents is not None or (crowded and self._is_cut(document)):
                found = self._gather(document, False)
                if scores is not None:
                    self._spread(document, scores)
            else:
                for band in range(self.buckets.shape[0] if crowded else 0):
                    self.capped += max(0, self._number(band, document) - self.cap)
                found = 0 if scores.as_kept or self.entered == 0 else self._gather(document, True)
                self._judge_scored(document, scores, &best, &most)
                partly_scored = False
            self.candidates += found
            self._compare(document, found, partly_scored, &best, &most)
        if best >= 0:
            self.witness[document], self.value[document] = best, most
        else:  # from now on, documents are compared with it
            self.kept += 1
            self.entered += 1
            for band in range(self.buckets.shape[0]):
                enter(&self.members[band, 0], self.members.shape[1], self.buckets[band, document], document)
        return 0

    cdef inline bint _may_be_cut(self, int32_t document) noexcept nogil:
        """Tell whether a bucket of a document that was scored may be longer than the cap."""
        return self.most_before[document - self.window] + self.entered > self.cap

    cdef bint _is_cut(self, int32_t document) noexcept nogil:
        """Tell whether a document was scored with other members than it is compared with, because of the cap.

        In a bucket that is longer than the cap, the members of the window take the places of the earliest ones, and
        where one of them was removed after all, an earlier one takes its place.
        """
        cdef Py_ssize_t band
        cdef int32_t number, before
        cdef bint cut = False
        for band in range(self.buckets.shape[0]):
            number = self._number(band, document)
            before = self.before[band, document - self.window]
            cut |= number != before and max(number, before) > self.cap
        return cut

    cdef void _judge_scored(self, int32_t document, Scores scores, int32_t *best, double *most) noexcept nogil:
        """Take all scores of a document into account, but those with removed documents of the window."""
        cdef Py_ssize_t i, at = document - scores.start
        cdef Score score
        self.candidates += scores.candidates[at]
        for i in range(scores.bounds[at], scores.bounds[at + 1]):
            score = scores.scores[i]
            if score.other >= scores.window and self.witness[score.other] >= 0:
                self.candidates -= score.value == FILTERED
            elif score.value != FILTERED:
                self._judge(document, score.other, score.band, score.value, best, most)

    cdef int _compare(self, int32_t document, Py_ssize_t found, bint scored, int32_t *best,
                      double *most) except -1 nogil:
        """Compare a document with the members that were found."""
        cdef Py_ssize_t i
        cdef int32_t *parents = NULL if self.parents is None else &self.parents[0]
        cdef int32_t other
        cdef double value
        if found and parents == NULL and not scored:
            found = self.similarity.pass_filter(document, &self.found[0], &self.found_in[0], found)
        for i in range(found):
            other = self.found[i]
            if parents != NULL and find(parents, document) == find(parents, other):
                continue
            if parents == NULL and not scored:
                self.similarity.expect(&self.found[i], found - i)
                value = self.similarity.exact(document, other, self._least())
            elif scored and self.scored_for[other] == document:
                value = self.score_with[other]
            else:
                value = self.similarity.value(document, other, self._least())
            if value != FILTERED:
                self._judge(document, other, self.found_in[i], value, best, most)
        return 0

    cdef void _judge(self, int32_t document, int32_t other, int32_t band, double value, int32_t *best,
                     double *most) noexcept nogil:
        """Take the similarity of a pair that got past the filter into account."""
        self.compared += 1
        if value >= self.threshold:
            if self.parents is not None:
                unite(&self.parents[0], document, other)
            elif best[0] < 0 or value > most[0] or (value == most[0] and other < best[0]):
                best[0], most[0] = other, value
        elif value >= 0.0:
            self._remember(document, other, band, value)

    # ---- windows ----

    cdef int _prepare(self, Scores scores, Py_ssize_t start) except -1:
        """Prepare the use of scores for documents from `start` on."""
        cdef Py_ssize_t i
        if self.scored_for is None:
            self.score_with = np.empty(self.all.count)
            self.scored_for = np.full(self.all.count, -1, np.int32)
        with self.all.lock:
            if scores.window != self.all.window:
                raise ValueError("scores must be of the present window")
        self.window, self.entered = scores.window, 0
        for i in range(self.window, start):
            self.entered += self.witness[i] < 0
        return 0

    cdef int _score(self, Scores scores, int64_t[::1] bounds, int64_t[::1] candidates) except -1:
        """Compare documents with the members before the window; nothing that other walks read is changed."""
        cdef Py_ssize_t document, i, found, end = 0
        cdef int32_t *parents = NULL if self.parents is None else &self.parents[0]
        cdef int32_t root = 0
        cdef double value
        with nogil:
            for document in range(scores.start, scores.start + candidates.shape[0]):
                found = self._gather_ahead(<int32_t> document, scores, &end)
                candidates[document - scores.start] = found
                if found and parents == NULL:
                    found = self.similarity.pass_filter(<int32_t> document, &self.found[0], &self.found_in[0], found)
                scores._reserve(end + found)
                for i in range(found):
                    if parents == NULL:
                        self.similarity.expect(&self.found[i], found - i)
                        value = self.similarity.exact(document, self.found[i], self._least())
                    else:
                        root = root_of(parents, self.found[i])
                        if self.joined[root] == document:
                            continue
                        value = self.similarity.value(document, self.found[i], self._least())
                        if value >= self.threshold:
                            self.joined[root] = <int32_t> document
                    scores.scores[end] = Score(self.found[i], self.found_in[i], value)
                    end += 1
                bounds[document - scores.start + 1] = end
        scores.bounds, scores.candidates = bounds, candidates
        return 0

    cdef void _spread(self, int32_t document, Scores scores) noexcept nogil:
        """Note the scores of a document at the members that it was compared with."""
        cdef Py_ssize_t i, at = document - scores.start
        for i in range(scores.bounds[at], scores.bounds[at + 1]):
            self.scored_for[scores.scores[i].other] = document
            self.score_with[scores.scores[i].other] = scores.scores[i].value

    # ---- the pairs just below the threshold ----

    cdef double _least(self) noexcept nogil:
        """Similarities below this value change nothing."""
        cdef double least = self.floor
        if self.num_near == NEAR:
            least = fmax(least, self.near_value[self.least_near])
        return fmin(self.threshold, least)

    cdef void _remember(self, int32_t document, int32_t other, int32_t band, double value) noexcept nogil:
        """Add a pair to the nearest pairs below the threshold, if it is one."""
        cdef Py_ssize_t i, at = self.num_near
        if at == NEAR:
            at = self.least_near
            if not self._is_nearer(value, document, band, other, at):
                return
        else:
            self.num_near += 1
        self.near_document[at], self.near_other[at] = document, other
        self.near_value[at], self.near_band[at] = value, band
        if self.num_near < NEAR:
            return
        at = 0
        for i in range(1, NEAR):
            if self._is_nearer(self.near_value[at], self.near_document[at], self.near_band[at], self.near_other[at], i):
                at = i
        self.least_near = at

    cdef bint _is_nearer(self, double value, int32_t document, int32_t band, int32_t other,
                         Py_ssize_t at) noexcept nogil:
        """Tell whether a pair comes before the one that is remembered at `at`; see `near`."""
        cdef int32_t rank = self.ranks[document], rank_there = self.ranks[self.near_document[at]]
        if value != self.near_value[at]:
            return value > self.near_value[at]
        if rank != rank_there:
            return rank < rank_there
        if band != self.near_band[at]:
            return band < self.near_band[at]
        return other > self.near_other[at]
