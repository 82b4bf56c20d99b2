# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""The exact Jaccard similarity of texts: sets of their shingles, made on demand, in bounded memory."""

from cython cimport final
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from lsh cimport _kernels as c
from lsh._batch cimport Batch
from lsh._memory cimport acquire, resize
from lsh._minhash cimport (
    begin_shingles,
    check_signals,
    chosen_kernels,
    need_word_table,
    next_shingles,
    prepare_document,
    reserve_words,
)

import os
import threading

import numpy as np

cdef enum:
    TILE = 256  # shingles whose positions are found at a time: 4 KB, which fit into the first-level cache
    BUCKET = 64  # bytes: LSH_SET_LANES tokens, a cache line
    MAX_IN_BUCKET = 4  # tokens a bucket on average: then one in fifty overflows
    SPAN_WORK = 16  # bytes that take as long to read as it takes to find a shingle of any length
    FILTER_ASKED = 2  # a set that is compared with so many others gets a filter
    SPANS_ASKED = 8  # comparisons before shingles are looked up without a set: the first texts mostly are similar
    FILTER_COUNT = 2048  # if it has more tokens: the table of fewer fits into the second-level cache beside others
    SMALL_SET = 65536  # initial capacity of the set of a long text, in shingles
    PIECE = 4194304  # bytes of a text that are read at once
    CHECKED = 33554432  # bytes of texts that are read between two checks for signals: a tenth of a second at most
    MAX_SHINGLES = 1048576  # of a set in memory: 24 MB, as one with spans has half as many
    MAX_CACHED = 33554432  # bytes of the cache of sets

cdef const c.lsh_kernels *_kernels = chosen_kernels()


cdef c.lsh_set_secret _draw_secret(bytes drawn) except *:
    """The secret in `drawn`: the words of lsh_set_secret, of which the last is the mask of long hashes."""
    cdef c.lsh_set_secret secret
    if len(drawn) != sizeof(secret):
        raise ValueError(f"a secret has {sizeof(secret)} bytes, got {len(drawn)}")
    memcpy(&secret, PyBytes_AS_STRING(drawn), sizeof(secret))
    secret.odd[0] |= 1
    secret.odd[1] |= 1
    return secret


cdef c.lsh_set_secret _secret = _draw_secret(os.urandom(sizeof(c.lsh_set_secret) - 8) + b"\xff" * 8)  # of this process


cdef int _free_workspace(Workspace *work) except -1:
    free(work.words.bytes)
    free(work.memory)
    free(work.set.tokens)
    free(work.spans)
    free(work.entries)
    free(work.bits)
    return 0


cdef int _reserve_set(Workspace *work, size_t shingles, bint spans, uint32_t part_bits) except -1 nogil:
    """Allocate a set and an empty table; only the tokens and spans of the old set remain."""
    cdef size_t buckets = 2
    while MAX_IN_BUCKET * buckets < shingles:
        buckets *= 2
    if buckets > work.buckets:
        free(work.memory)
        work.memory = NULL
        work.buckets = 0
        work.memory = resize(NULL, buckets * (BUCKET + 1) + BUCKET, 1)
        work.set.tokens = <uint64_t *> resize(work.set.tokens, buckets * MAX_IN_BUCKET, sizeof(uint64_t))
        work.buckets = buckets
    if spans and buckets > work.span_buckets:
        work.spans = <c.lsh_span *> resize(work.spans, buckets * MAX_IN_BUCKET, sizeof(c.lsh_span))
        work.entries = <uint32_t *> resize(work.entries, buckets * c.LSH_SET_LANES, sizeof(uint32_t))
        work.span_buckets = buckets
    work.set.spans = work.spans if spans else NULL
    work.set.capacity = buckets * MAX_IN_BUCKET
    work.table.lanes = <uint64_t *> ((<size_t> work.memory + BUCKET - 1) // BUCKET * BUCKET)
    work.table.filled = <uint8_t *> work.table.lanes + buckets * BUCKET
    work.table.entries = work.entries if spans else NULL
    work.table.buckets = (buckets - 1) * c.LSH_SET_LANES
    work.table.bits = NULL
    work.asked = 0
    work.table.part_bits = part_bits
    work.table.shift = 64 - part_bits
    memset(work.table.lanes, 0, buckets * (BUCKET + 1))
    buckets *= c.LSH_SET_LANES
    while buckets > 1:
        buckets //= 2
        work.table.shift -= 1
    return 0


cdef size_t _size(const c.lsh_set *shingles) noexcept nogil:
    """Count the shingles of a set."""
    cdef uint32_t zero = shingles.zero
    cdef size_t size = shingles.count
    while zero:
        zero &= zero - 1
        size += 1
    return size


cdef double _jaccard(size_t shared, size_t a, size_t b) noexcept nogil:
    return <double> shared / <double> (a + b - shared)


cdef size_t _least_shared(double least, size_t a, size_t b) noexcept nogil:
    """The fewest shared shingles that make sets of sizes a and b `least` similar; more than they have if none do.

    More shared shingles are never a smaller quotient, and rounding keeps that order, so the test of the caller turns at
    one point; the closed form is only where the search for it begins.
    """
    cdef size_t most = min(a, b), shared
    if not _jaccard(most, a, b) >= least:
        return most + 1
    if least <= 0.0:
        return 0
    shared = min(most, <size_t> (least / (1.0 + least) * <double> (a + b)))
    while shared > 0 and _jaccard(shared - 1, a, b) >= least:
        shared -= 1
    while not _jaccard(shared, a, b) >= least:
        shared += 1
    return shared


# ---- the set of one text, or of one part of it, in a workspace ----

cdef int _open(ShingleSets sets, Workspace *work, Py_ssize_t i) except -1 nogil:
    """Prepare text i for shingling."""
    if work.prepared == i:
        return 0
    work.prepared = work.whole = -1
    work.document = c.lsh_document(sets.batch.texts[i], sets.batch.lengths[i], sets.unit, sets.n)
    prepare_document(&work.document, sets.flags, True, &work.words)
    work.prepared = i
    return 0


cdef bint _fill(ShingleSets sets, Workspace *work, uint32_t part_bits, uint64_t part) except -1 nogil:
    """Make the set of one part of the text that is open, and its table; returns whether it is small enough."""
    cdef c.lsh_document *document = &work.document
    cdef bint spans = document.unit != c.LSH_BYTE or document.n > c.LSH_SET_KEY
    cdef size_t shingles = document.length  # at most
    work.whole = -1
    if document.unit == c.LSH_BYTE and document.n <= document.length:
        shingles = document.length - document.n + 1
    elif document.unit == c.LSH_WORD:
        shingles = document.length // 2 + 1
    shingles = min(shingles, <size_t> SMALL_SET if part_bits == 0 else _most(sets, spans))
    _reserve_set(work, max(shingles, <size_t> c.LSH_SET_ROOM), spans, part_bits)
    work.set.text = document.text
    work.set.count = work.set.zero = 0
    work.set.width = 0 if spans else min(document.n, document.length)
    if document.length == 0:
        return True
    return _fill_spans(sets, work, part) if spans else _fill_keys(sets, work, part)


cdef int _make_filter(Workspace *work) except -1 nogil:
    """Make the filter of a table: 8 to 16 bits a token, which fit into a nearer cache than the table."""
    cdef size_t words = 2, i
    cdef uint32_t shift = 57
    cdef uint64_t bit
    while 8 * words < work.set.count:
        words *= 2
        shift -= 1
    if words > work.bits_size:
        work.bits = <uint64_t *> resize(work.bits, words, sizeof(uint64_t))
        work.bits_size = words
    memset(work.bits, 0, words * sizeof(uint64_t))
    work.bits[0] = 1
    for i in range(work.set.count):
        bit = work.set.tokens[i] >> shift
        work.bits[bit >> 6] |= <uint64_t> 1 << (bit & 63)
    work.table.bits, work.table.bits_shift = work.bits, shift
    return 0


cdef bint _fill_keys(ShingleSets sets, Workspace *work, uint64_t part) except -1 nogil:
    cdef size_t at = 0, end, read, shingles = work.document.length - work.set.width + 1
    while True:
        end = min(shingles, at + PIECE)
        read = _kernels.set_add_keys(&work.set, &work.table, &sets.secret, part, end + work.set.width - 1, at)
        _worked(sets, read - at)
        at = read
        if at == shingles:
            return True
        if at < end and not _enlarge(sets, work):
            return False


cdef bint _fill_spans(ShingleSets sets, Workspace *work, uint64_t part) except -1 nogil:
    cdef c.lsh_shingler walk
    cdef c.lsh_span spans[TILE]
    cdef size_t count
    begin_shingles(&walk, &work.document)
    work.places = 0
    while True:
        count = next_shingles(&walk, spans, TILE)
        if count == 0:
            return True
        work.places += count
        while work.set.capacity - work.set.count < count:
            if not _enlarge(sets, work):
                return False
        _kernels.set_add_spans(&work.set, &work.table, &sets.secret, part, spans, count)
        _worked(sets, count * (spans[0].length + SPAN_WORK))


cdef inline int _worked(ShingleSets sets, size_t read) except -1 nogil:
    """Count the bytes of texts that were read, and handle signals now and then."""
    sets.unchecked += read
    if sets.unchecked > CHECKED:
        sets.unchecked = 0
        check_signals()
    return 0


cdef size_t _most(ShingleSets sets, bint spans) noexcept nogil:
    """The shingles that a set may have in memory."""
    return sets.max_shingles // 2 if spans else sets.max_shingles


cdef bint _enlarge(ShingleSets sets, Workspace *work) except -1 nogil:
    """Double the capacity of a set and rebuild its table; returns False if it would be too large."""
    if 2 * work.set.capacity > _most(sets, work.set.spans != NULL):
        return False
    _reserve_set(work, 2 * work.set.capacity, work.set.spans != NULL, work.table.part_bits)
    _kernels.set_enter(&work.set, &work.table)
    return True


cdef int _make(ShingleSets sets, Workspace *work, Py_ssize_t i) except -1 nogil:
    """Make the set of text i: whole, or else only count it, part by part.

    It enters the cache when it is made for the second time: many texts are compared once only, and copying their sets
    would cost a good part of the time that making them takes.
    """
    cdef Text *text = &sets.texts[i]
    cdef bint again = text.size >= 0
    cdef uint64_t part
    cdef int64_t size
    _open(sets, work, i)
    while True:
        size = 0
        for part in range(<uint64_t> 1 << text.part_bits):
            if not _fill(sets, work, text.part_bits, part):
                break
            size += _size(&work.set)
        else:
            break
        text.part_bits += 1
    text.size, text.places = size, work.places
    if text.part_bits == 0:
        work.whole = i
        if again:
            _keep(sets, work, i)
    return 0


# ---- the cache: a ring of sets, of which the oldest are overwritten ----

cdef int _keep(ShingleSets sets, Workspace *work, Py_ssize_t i) except -1 nogil:
    """Copy the whole set of text i into the cache, if it fits."""
    cdef c.lsh_set *shingles = &work.set
    cdef bint own_text = shingles.spans != NULL and work.document.text == work.words.bytes
    cdef size_t tokens = shingles.count * sizeof(uint64_t)
    cdef size_t spans = shingles.count * sizeof(c.lsh_span) if shingles.spans != NULL else 0
    cdef size_t size = sizeof(CachedSet) + tokens + spans + (work.document.length if own_text else 0)
    cdef CachedSet *cached
    cdef uint8_t *at
    size = (size + 7) // 8 * 8
    if size > sets.ring_size or sets.texts[i].cached != NULL:
        return 0
    if sets.ring == NULL:
        sets.ring = <uint8_t *> resize(NULL, sets.ring_size, 1)
    cached = <CachedSet *> (sets.ring + _make_room(sets, size))
    cached.size, cached.text, cached.set = size, i, shingles[0]
    at = <uint8_t *> cached + sizeof(CachedSet)
    cached.set.tokens = <uint64_t *> at
    memcpy(at, shingles.tokens, tokens)
    if spans:
        cached.set.spans = <c.lsh_span *> (at + tokens)
        memcpy(cached.set.spans, shingles.spans, spans)
    if own_text:
        cached.set.text = at + tokens + spans
        memcpy(at + tokens + spans, work.document.text, work.document.length)
    sets.texts[i].cached = cached
    return 0


cdef size_t _make_room(ShingleSets sets, size_t size) noexcept nogil:
    """Return the position of `size` free bytes in the ring, after removing older sets if necessary."""
    cdef CachedSet *oldest
    cdef size_t place
    while True:
        if sets.num_cached == 0:
            sets.newest_end = sets.oldest = 0
            sets.wrapped = False
        if not sets.wrapped:
            if sets.newest_end + size <= sets.ring_size:
                break
            sets.ring_end, sets.newest_end, sets.wrapped = sets.newest_end, 0, True
        if sets.newest_end + size <= sets.oldest:
            break
        oldest = <CachedSet *> (sets.ring + sets.oldest)
        sets.texts[oldest.text].cached = NULL
        sets.oldest += oldest.size
        sets.num_cached -= 1
        if sets.oldest == sets.ring_end:
            sets.oldest, sets.wrapped = 0, False
    place = sets.newest_end
    sets.newest_end += size
    sets.num_cached += 1
    return place


cdef int _load(ShingleSets sets, Workspace *work, const CachedSet *cached) except -1 nogil:
    """Copy a set out of the cache, where it may be overwritten, and make its table."""
    cdef bint spans = cached.set.spans != NULL
    cdef size_t count = cached.set.count
    cdef const uint8_t *own_text = <const uint8_t *> cached + sizeof(CachedSet) + count * (
        sizeof(uint64_t) + (sizeof(c.lsh_span) if spans else 0))
    work.prepared = work.whole = -1
    _reserve_set(work, max(count, <size_t> c.LSH_SET_ROOM), spans, 0)
    work.set.text, work.set.count, work.set.zero = cached.set.text, count, cached.set.zero
    work.set.width = cached.set.width
    memcpy(work.set.tokens, cached.set.tokens, count * sizeof(uint64_t))
    if spans:
        memcpy(work.set.spans, cached.set.spans, count * sizeof(c.lsh_span))
        if cached.set.text == own_text:
            reserve_words(&work.words, cached.size)
            memcpy(work.words.bytes, own_text, cached.size - (own_text - <const uint8_t *> cached))
            work.set.text = work.words.bytes
    _kernels.set_enter(&work.set, &work.table)
    work.whole = cached.text
    return 0


# ---- comparing ----

cdef const c.lsh_set *_whole(ShingleSets sets, Py_ssize_t j) except NULL nogil:
    """The set of a text that is not compared in parts."""
    if sets.texts[j].cached != NULL:
        return &sets.texts[j].cached.set
    if sets.chosen_work.whole == j:
        return &sets.chosen_work.set
    if sets.other_work.whole != j:
        _make(sets, &sets.other_work, j)
    return &sets.other_work.set


cdef size_t _most_shared(ShingleSets sets, Py_ssize_t j, size_t needed) except? 0 nogil:
    """An upper bound of the shingles that text j shares with the chosen one, found without making its set.

    Making a set costs several times as much as looking up the shingles in another set.
    """
    cdef Workspace *work = &sets.other_work
    cdef const c.lsh_set *chosen = &sets.chosen_work.set
    cdef size_t at = 0, count, places, others, shared = 0
    if needed == 0 or sets.texts[j].cached != NULL or sets.chosen_work.whole == j or work.whole == j:
        return needed
    if chosen.spans != NULL and sets.chosen_work.asked < SPANS_ASKED:
        return needed
    _open(sets, work, j)
    if chosen.spans != NULL or work.document.unit != c.LSH_BYTE or work.document.n > c.LSH_SET_KEY:
        return _most_spans(sets, j, needed)
    if min(work.document.n, work.document.length) != chosen.width:
        return needed
    places = work.document.length - chosen.width + 1
    while at < places and shared + (places - at) >= needed:
        count = min(places - at, <size_t> PIECE)
        others = shared + (places - at - count)  # at most, besides those of this piece
        shared += _kernels.set_most_shared(chosen, &sets.chosen_work.table, &sets.secret, work.document.text + at,
                                           count + chosen.width - 1, needed - min(needed, others))
        at += count
        _worked(sets, count)
    return shared


cdef size_t _most_spans(ShingleSets sets, Py_ssize_t j, size_t needed) except? 0 nogil:
    """The same for shingles of any length, of the text that is open."""
    cdef Workspace *work = &sets.other_work
    cdef c.lsh_shingler walk
    cdef c.lsh_span spans[TILE]
    cdef size_t count, shared = 0, left = sets.texts[j].places
    if work.document.unit == c.LSH_BYTE:
        left = max(work.document.length, work.document.n) - work.document.n + 1
    begin_shingles(&walk, &work.document)
    while shared + left >= needed:
        count = next_shingles(&walk, spans, TILE)
        if count == 0:
            break
        shared += _kernels.set_most_spans(&sets.chosen_work.table, &sets.secret, work.document.text, spans, count)
        left -= min(left, count)
        _worked(sets, count * (spans[0].length + SPAN_WORK))
    return shared


cdef size_t _count_by_parts(ShingleSets sets, Py_ssize_t i, Py_ssize_t j, size_t needed) except? 0 nogil:
    """Count the shared shingles of two texts, at least one of which is too large to be in memory as a whole."""
    cdef uint32_t part_bits = max(sets.texts[i].part_bits, sets.texts[j].part_bits)
    cdef size_t shared = 0, left = <size_t> sets.texts[i].size
    cdef uint64_t part
    cdef const c.lsh_set *other = NULL
    for part in range(<uint64_t> 1 << part_bits):
        if sets.texts[i].part_bits:
            _open(sets, &sets.chosen_work, i)
            _fill(sets, &sets.chosen_work, part_bits, part)
            left -= _size(&sets.chosen_work.set)
        if sets.texts[j].part_bits == 0:
            other = _whole(sets, j)
        elif i == j:
            other = &sets.chosen_work.set
        else:
            _open(sets, &sets.other_work, j)
            _fill(sets, &sets.other_work, part_bits, part)
            other = &sets.other_work.set
        shared += _kernels.set_count_shared(&sets.chosen_work.set, &sets.chosen_work.table, other, 0)
        if shared + left < needed:
            break
    return shared


@final
cdef class ShingleSets:
    """The exact shingle sets of a batch, made on demand and kept in a bounded cache.

    Choose a text, then compare others with it. The memory is bounded whatever the texts are, and no bound changes
    a result. Not safe to share between threads.

    Parameters
    ----------
    batch : Batch
        The texts.
    unit : int
        A value of `UNIT_CODES`.
    n : int
        Units per shingle, 1 or more.
    flags : int, optional
        How ASCII texts are normalised: a sum of values of `NORMALISATIONS`.
    max_cached : int, optional
        Bytes of the cache.
    max_shingles : int, optional
        Distinct shingles of a text that are in memory at once, a power of two from 1,024 on; half of that for those
        that are no words of up to eight bytes. A text of more is compared part by part of the hash space, with a pass
        over it for each part.
    secret : bytes, optional
        Replaces the secret of the process, so that tests can make hashes collide: 128 bytes, see `lsh_set_secret`.

    Notes
    -----
    A set and its table take 24 bytes a shingle, or 48 where the bytes of a shingle have to be compared; two are there
    at once, besides the cache, which takes 8 or 24.
    """

    def __cinit__(self, Batch batch not None, int unit, size_t n, int flags=0, *, size_t max_cached=MAX_CACHED,
                  size_t max_shingles=MAX_SHINGLES, bytes secret=None):
        cdef Py_ssize_t i
        cdef size_t needed = 0
        if not 1 <= n <= <size_t> -1 // 2 or unit not in (c.LSH_BYTE, c.LSH_CHAR, c.LSH_WORD):
            raise ValueError("n must be 1 or more, and unit a value of UNIT_CODES")
        if not 4 * TILE <= max_shingles <= MAX_SHINGLES:
            raise ValueError(f"max_shingles must be {4 * TILE} to {MAX_SHINGLES}, got {max_shingles}")
        if unit == c.LSH_WORD:
            need_word_table()
        self.lock = threading.Lock()
        self.batch, self.unit, self.n, self.flags, self.max_shingles = batch, <c.lsh_unit> unit, n, flags, max_shingles
        self.secret = _secret if secret is None else _draw_secret(secret)
        self.chosen = self.chosen_work.prepared = self.other_work.prepared = -1
        self.chosen_work.whole = self.other_work.whole = -1
        self.texts = <Text *> resize(NULL, batch.count, sizeof(Text))
        for i in range(batch.count):
            self.texts[i] = Text(-1, 0, NULL, 0)
            if needed < max_cached:  # the most that the text can take there
                needed += sizeof(CachedSet) + (sizeof(uint64_t) + sizeof(c.lsh_span) + 1) * batch.lengths[i]
        if batch.count > 2:  # two have a workspace each
            self.ring_size = min(needed, max_cached)

    def __dealloc__(self):
        free(self.texts)
        free(self.ring)
        _free_workspace(&self.chosen_work)
        _free_workspace(&self.other_work)

    cdef int choose(self, Py_ssize_t i) except -1 nogil:
        """Make text i the one that others are compared with."""
        cdef Workspace *work = &self.chosen_work
        cdef CachedSet *cached = self.texts[i].cached
        self.chosen = -1
        if work.whole != i and self.texts[i].part_bits == 0:
            if cached == NULL:
                _make(self, work, i)
            else:
                _load(self, work, cached)
        self.chosen = i
        return 0

    cdef double similarity(self, Py_ssize_t j, double least) except -1.0 nogil:
        """The Jaccard similarity of the chosen text and text j where that is at least `least`, else 0.0, which
        takes less time; 0.0 where either has no shingles.
        """
        cdef size_t a, b, needed, shared
        cdef Py_ssize_t i = self.chosen
        if self.texts[j].size < 0:
            _make(self, &self.other_work, j)
        a, b = self.texts[i].size, self.texts[j].size
        if a == 0 or b == 0:
            return 0.0
        needed = _least_shared(least, a, b)
        if needed > min(a, b):
            return 0.0
        self.chosen_work.asked += 1
        if self.chosen_work.asked == FILTER_ASKED and self.chosen_work.set.count > FILTER_COUNT:
            _make_filter(&self.chosen_work)
        if self.texts[i].part_bits or self.texts[j].part_bits:
            shared = _count_by_parts(self, i, j, needed)
        elif _most_shared(self, j, needed) < needed:
            return 0.0
        else:
            shared = _kernels.set_count_shared(&self.chosen_work.set, &self.chosen_work.table, _whole(self, j), needed)
        return _jaccard(shared, a, b) if shared >= needed else 0.0

    def matrix(self, Py_ssize_t rows, Py_ssize_t first_column):
        """Return the similarities of texts 0 .. rows - 1 to texts first_column .. count - 1, float64."""
        cdef Py_ssize_t i, j, columns = self.batch.count - first_column
        if not 0 <= first_column <= self.batch.count or not 0 <= rows <= self.batch.count:
            raise ValueError("rows and first_column must lie within the batch")
        out = np.empty((rows, columns))
        cdef double[:, ::1] view = out
        acquire(self.lock)
        try:
            for i in range(rows):
                with nogil:
                    self.choose(i)
                    for j in range(columns):
                        view[i, j] = self.similarity(first_column + j, 0.0)
                PyErr_CheckSignals()
        finally:
            self.lock.release()
        return out
