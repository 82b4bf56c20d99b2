# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""The exact Jaccard similarity of texts: sets of their shingles, made on demand, in bounded memory.

Sizes of sets are remembered, and sets and bitmaps of texts that are compared again are kept in two caches of a bounded
size, where new entries take the place of the oldest ones. Each thread has its own.

The shingles of a text whose set is larger than `max_shingles` are divided into parts by the top bits of their hashes,
as in a radix sort (counted, then written side by side), and the parts of two texts are compared one by one: the table
of a part stays in the cache, so the time grows in proportion to the texts.
"""

from cython cimport final
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport UINT32_MAX, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from lsh cimport _kernels as c
from lsh.text.batch cimport Batch
from lsh.base.memory cimport resize
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

import numpy as np

cdef enum:
    TILE = 256  # shingles whose positions are found at a time: 4 KB, which fit into the first-level cache
    BUCKET = 64  # bytes: LSH_SET_LANES tokens, a cache line
    MAX_IN_BUCKET = 4  # tokens a bucket on average: then one in fifty overflows
    SPAN_WORK = 16  # bytes that take as long to read as it takes to find a shingle of any length
    BITMAP_ASKED = 2  # a set that is compared with so many others gets bitmaps
    SPANS_ASKED = 8  # comparisons before shingles are looked up without a set: the first texts mostly are similar
    BITS = 4  # a shingle at least in the bitmap of a set, and less than twice as many
    FILTER_COUNT = 2048  # tokens: a table of more is larger than the second-level cache, so a bitmap before it pays
    SMALL_SET = 65536  # initial capacity of the set of a long text, in shingles
    PIECE = 4194304  # bytes of a text that are read at once
    CHECKED = 33554432  # bytes of texts that are read between two checks for signals: a tenth of a second at most
    PART = 32768  # shingles of a part of a long text, whose table should stay in the second-level cache
    MAX_SHINGLES = 1048576  # of a set in memory: 24 MB, as one with spans has half as many
    CACHE_UNIT = 16  # bytes
    LINE = 64  # bytes of a cache line
    EXPECTED = 5  # lines of a bitmap that are prefetched: the processor goes on from there by itself
    INDEXED = 128  # an index has 1/128 as many texts as shingles: 8,192, whose counters fit into the first cache
    POSTINGS = 2  # and twice as many postings, as most shingles are of one text
    INDEX_TEXT = 64  # and so many bytes of text for each, more than words take

MAX_CACHED = 1 << 25  # bytes of the caches
MAX_SPLIT = 1 << 28  # shingles, with repeats, of a long text that are divided at once: 2 GB, or 4 GB as spans

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


include "set_workspace.pxi"
include "set_cache.pxi"


# ---- comparing ----

cdef const c.lsh_set *_whole(ShingleSets sets, Py_ssize_t j) except NULL nogil:
    """The set of a text that is not compared in parts."""
    cdef CachedSet *cached = <CachedSet *> _cached(sets, SETS, j)
    if cached != NULL:
        return &cached.set
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
    if _cached(sets, SETS, j) != NULL or sets.chosen_work.whole == j or work.whole == j:
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
    cdef size_t shared = 0, left = sets.texts[i].size
    cdef uint64_t part
    cdef const c.lsh_set *other = NULL
    for part in range(<uint64_t> 1 << part_bits):
        if not _is_whole(sets, i):
            _open(sets, &sets.chosen_work, i)
            _fill(sets, &sets.chosen_work, part_bits, part)
            left -= _size(&sets.chosen_work.set)
        if i == j:
            other = &sets.chosen_work.set
        else:
            _open(sets, &sets.other_work, j)
            _fill(sets, &sets.other_work, part_bits, part)
            other = &sets.other_work.set
        shared += _kernels.set_count_shared(&sets.chosen_work.set, &sets.chosen_work.table, other, 0)
        if shared + left < needed:
            break
    return shared


include "set_index.pxi"


@final
cdef class ShingleSets:
    """The exact shingle sets of a batch, made on demand and kept in a bounded cache.

    Choose a text, then compare others with it. The memory is bounded whatever the texts are, and no bound changes
    a result. For one thread at a time: threads that compare together need one each.

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
        Bytes of the caches: a quarter for sets, the rest for bitmaps.
    max_shingles : int, optional
        Distinct shingles of a text that are in memory at once, a power of two from 1,024 on; half of that for those
        that are no words of up to eight bytes. A text of more is divided into parts of the hash space, which are
        compared one by one: the time grows with the length of the text.
    max_split : int, optional
        Shingles, with repeats, of a text that are divided at once, 8 or 16 bytes each. A text of more is read again
        for the next ones.
    secret : bytes, optional
        Replaces the secret of the process, so that tests can make hashes collide: 128 bytes, see `lsh_set_secret`.

    Notes
    -----
    A set and its table take 24 bytes a shingle, or 48 where the bytes of a shingle have to be compared; two are there
    at once, and bitmaps of one of them, 2 to 4 bytes a shingle. In the caches, a shingle takes 8 or 24 bytes in a set
    and up to 1 in a bitmap. A matrix has an index besides, of at most `max_shingles` distinct
    shingles: 70 bytes each, and their texts.
    """

    def __cinit__(self, Batch batch not None, int unit, size_t n, int flags=0, *, size_t max_cached=MAX_CACHED,
                  size_t max_shingles=MAX_SHINGLES, size_t max_split=MAX_SPLIT, bytes secret=None):
        if unit == c.LSH_WORD:
            need_word_table()
        self.max_split = max_split
        self.batch, self.unit, self.n, self.flags, self.max_shingles = batch, <c.lsh_unit> unit, n, flags, max_shingles
        self.secret = _secret if secret is None else _draw_secret(secret)
        self.chosen = self.chosen_work.prepared = self.other_work.prepared = -1
        self.chosen_work.whole = self.other_work.whole = -1
        self.chosen_work.split = self.other_work.split = -1
        self.texts = <Text *> calloc(max(batch.count, 1), sizeof(Text))
        if self.texts == NULL:
            raise MemoryError
        if batch.count > 2:  # two have a workspace each
            self._reserve_caches(min(max_cached, CACHE_UNIT * <size_t> UINT32_MAX))

    cdef int _reserve_caches(self, size_t max_cached) except -1:
        """Allocate the caches, no larger than what the texts can take there."""
        cdef Py_ssize_t i
        cdef int kind
        cdef size_t needed = 0
        for i in range(self.batch.count):
            if needed < max_cached:
                needed += sizeof(CachedSet) + CACHE_UNIT
                needed += (sizeof(uint64_t) + sizeof(c.lsh_span) + 1) * self.batch.lengths[i]
        self.rings[SETS].size = min(needed, max_cached // 4)
        self.rings[BITMAPS].size = min(needed, max_cached - max_cached // 4)
        for kind in range(2):
            self.rings[kind].size -= self.rings[kind].size % CACHE_UNIT
            self.rings[kind].bytes = <uint8_t *> resize(NULL, self.rings[kind].size, 1)
        return 0

    def __dealloc__(self):
        free(self.texts)
        free(self.rings[SETS].bytes)
        free(self.rings[BITMAPS].bytes)
        _free_workspace(&self.chosen_work)
        _free_workspace(&self.other_work)

    cdef void expect(self, Py_ssize_t j, bint bitmap) noexcept nogil:
        """Prefetch the record of a text that is compared soon; in a second call, its bitmap. Negative j: no text."""
        cdef const CachedBitmap *cached
        cdef size_t line
        if j < 0:
            return
        if not bitmap:
            c.lsh_prefetch(&self.texts[j])
            return
        cached = <const CachedBitmap *> _cached(self, BITMAPS, j)
        if cached != NULL:
            for line in range(EXPECTED):
                c.lsh_prefetch(<const uint8_t *> cached + LINE * line)

    cdef void expect_text(self, Py_ssize_t j) noexcept nogil:
        """Prefetch a text whose set is made soon: its begin and its end; the processor fetches the rest."""
        cdef const uint8_t *text = self.batch.texts[j]
        c.lsh_prefetch(text)
        c.lsh_prefetch(text + LINE)
        c.lsh_prefetch(text + self.batch.lengths[j] - 1)

    cdef int choose(self, Py_ssize_t i) except -1 nogil:
        """Make text i the one that others are compared with."""
        cdef Workspace *work = &self.chosen_work
        cdef CachedSet *cached
        self.chosen = -1
        if work.whole != i and _is_whole(self, i):
            cached = <CachedSet *> _cached(self, SETS, i)
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
        cdef Workspace *work = &self.chosen_work
        cdef size_t a, b, needed, shared
        cdef Py_ssize_t i = self.chosen
        if not self.texts[j].known:
            _make(self, &self.other_work, j)
        a, b = self.texts[i].size, self.texts[j].size
        if a == 0 or b == 0:
            return 0.0
        needed = least_shared(least, a, b)
        if needed > min(a, b):
            return 0.0
        work.asked += 1
        _worked(self, a + b)  # an upper bound
        if not (_is_whole(self, i) and _is_whole(self, j)):
            shared = _count_by_parts(self, i, j, needed)
        else:
            if work.num_bitmaps == 0 and work.asked >= BITMAP_ASKED and (needed > 0 or work.set.count > FILTER_COUNT):
                _make_bitmaps(work)
                _keep_bitmap(self, work, i)
            if needed and (_most_by_bitmaps(self, j, a, b) < needed or _most_shared(self, j, needed) < needed):
                return 0.0
            shared = _kernels.set_count_shared(&work.set, &work.table, _whole(self, j), needed)
        return _jaccard(shared, a, b) if shared >= needed else 0.0

    def matrix(self, Py_ssize_t rows, Py_ssize_t first_column):
        """Return the similarities of texts 0 .. rows - 1 to texts first_column .. count - 1, float64.

        Blocks of the fewer texts are indexed, and all others are looked up in each block. In a matrix of all pairs of
        texts only those of a block and later ones are, and each similarity is written twice.
        """
        cdef Py_ssize_t columns = self.batch.count - first_column
        out = np.empty((rows, columns))
        if rows < columns:
            self._fill_matrix(out.T, 0, rows, first_column)
        else:
            self._fill_matrix(out, first_column, self.batch.count, 0)
        return out

    cdef int _fill_matrix(self, double[:, :] out, Py_ssize_t first, Py_ssize_t stop, Py_ssize_t first_row) except -1:
        """Write the similarities of the texts from `first_row` on, as many as rows, to texts first .. stop - 1."""
        cdef Index index
        cdef Py_ssize_t i
        memset(&index, 0, sizeof(index))
        if stop - first == 1:
            with nogil:
                self.choose(first)
                for i in range(out.shape[0]):
                    out[i, 0] = self.similarity(first_row + i, 0.0)
            return 0
        try:
            _reserve_index(&index, self.max_shingles)
            index.first = first
            with nogil:
                while index.first + <Py_ssize_t> index.count < stop:
                    _index_texts(self, &index, index.first + index.count, stop)
                    self._fill_block(out, &index, first, first_row)
        finally:
            _free_index(&index)
        return 0

    cdef int _fill_block(self, double[:, :] out, Index *index, Py_ssize_t first,
                         Py_ssize_t first_row) except -1 nogil:
        """Write the columns of the texts of an index; the first column is that of text `first`."""
        cdef Py_ssize_t i, k, column = index.first - first, count = index.count, rows = out.shape[0]
        cdef Py_ssize_t stride = out.strides[1] // <Py_ssize_t> sizeof(double)
        cdef bint same = first == first_row and rows == out.shape[1]
        for k in range(count):
            _post(index, k)
            if same:
                _compare_with(self, index, index.first + k, k + 1, &out[column + k, column], stride)
        for i in range(column + count if same else 0, rows):
            _compare_with(self, index, first_row + i, count, &out[i, column], stride)
        for i in range(column if same else rows, rows):
            for k in range(min(count, i - column)):
                out[column + k, i] = out[i, column + k]
        return 0
