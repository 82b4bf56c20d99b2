# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Shingles, hashes and minima over batches of raw bytes, and the exact Jaccard similarity.

This floor answers for memory: sizes are checked, scratch is allocated and freed, the GIL is released while the kernels
run. It decides nothing about meaning; `lsh.shingling` and `lsh.minhash` do.
"""

from cpython.unicode cimport Py_UNICODE_ISALNUM
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc

from lsh._batch cimport Batch
from lsh._kernels cimport (
    LSH_BYTE,
    LSH_CHAR,
    LSH_WORD,
    lsh_join_words,
    lsh_kernels,
    lsh_kernels_chosen,
    lsh_murmur3_x64_128,
    lsh_murmur3_x86_32,
    lsh_murmur3_x86_128,
    lsh_set_add,
    lsh_set_hits,
    lsh_set_move,
    lsh_set_slot,
    lsh_shingler,
    lsh_shingler_begin,
    lsh_shingler_next,
    lsh_span,
    lsh_unit,
)

import numpy as np

UNIT_CODES = {"byte": LSH_BYTE, "char": LSH_CHAR, "word": LSH_WORD}

cdef enum:
    TILE = 256  # shingles whose places are found at a time: 4 KB, which stay in the first-level cache
    WORD_TABLE_SIZE = 139264  # a bit for each of 0x110000 code points

cdef const lsh_kernels *_kernels = lsh_kernels_chosen()


# ---- the hashes themselves ----

def murmur3_x86_32(const uint8_t[::1] data not None, uint32_t seed):
    """Return MurmurHash3_x86_32 of the bytes."""
    return lsh_murmur3_x86_32(&data[0] if data.shape[0] else NULL, data.shape[0], seed)


def murmur3_x86_128(const uint8_t[::1] data not None, uint32_t seed):
    """Return MurmurHash3_x86_128 of the bytes: four 32-bit words."""
    cdef uint32_t out[4]
    lsh_murmur3_x86_128(&data[0] if data.shape[0] else NULL, data.shape[0], seed, out)
    return out[0], out[1], out[2], out[3]


def murmur3_x64_128(const uint8_t[::1] data not None, uint32_t seed):
    """Return MurmurHash3_x64_128 of the bytes: two 64-bit words."""
    cdef uint64_t out[2]
    lsh_murmur3_x64_128(&data[0] if data.shape[0] else NULL, data.shape[0], seed, out)
    return out[0], out[1]


# ---- words ----

cdef uint8_t *_word_table = NULL  # a bit for each code point that belongs to a word; made once, kept for good


cdef int _need_word_table() except -1:
    """Make the table of word characters: what `\\w` matches, str.isalnum and the underscore."""
    global _word_table
    cdef uint32_t c
    cdef uint8_t *table
    if _word_table != NULL:
        return 0
    table = <uint8_t *> calloc(WORD_TABLE_SIZE, 1)
    if table == NULL:
        raise MemoryError()
    for c in range(0x110000):
        if c == 95 or Py_UNICODE_ISALNUM(<Py_UCS4> c):
            table[c >> 3] |= <uint8_t> (1 << (c & 7))
    _word_table = table
    return 0


cdef int _reserve_words(Words *words, size_t size) except -1 nogil:
    cdef uint8_t *grown
    if size > words.capacity:
        grown = <uint8_t *> realloc(words.bytes, size)
        if grown == NULL:
            with gil:
                raise MemoryError()
        words.bytes = grown
        words.capacity = size
    return 0


cdef int _begin(lsh_shingler *walk, const uint8_t **text, Py_ssize_t length, lsh_unit unit, size_t n,
                Words *words) except -1 nogil:
    """Begin the walk over a text; for words, over its words joined in `words`, to which `text` is set."""
    cdef size_t size = length
    if unit == LSH_WORD:
        _reserve_words(words, size)
        size = lsh_join_words(text[0], size, _word_table, words.bytes) if size else 0
        text[0] = words.bytes
    lsh_shingler_begin(walk, text[0], size, unit, n)
    return 0


def shingles(Batch batch not None, int unit, size_t n):
    """Return the shingles of each text: a list of lists of bytes, in order, with repeats."""
    cdef lsh_shingler walk
    cdef lsh_span span
    cdef Words words = Words(NULL, 0)
    cdef const uint8_t *text
    cdef Py_ssize_t i
    result = []
    _need_word_table()
    try:
        for i in range(batch.count):
            found = []
            text = batch.texts[i]
            _begin(&walk, &text, batch.lengths[i], <lsh_unit> unit, n, &words)
            while lsh_shingler_next(&walk, &span, 1):
                found.append(text[span.start:span.start + span.length])
            result.append(found)
    finally:
        free(words.bytes)
    return result


# ---- fingerprints ----

def murmur3_fingerprints(Batch batch not None, int unit, size_t n, const uint32_t[::1] seeds not None, out not None):
    """Compute the minima of each seeded hash over the shingles of each text.

    Parameters
    ----------
    batch : Batch
        ``n`` texts.
    unit : int
        A value of `UNIT_CODES`.
    n : int
        Units per shingle, 1 or more.
    seeds : numpy.ndarray
        uint32, shape ``(k,)``, k >= 1.
    out : numpy.ndarray
        Receives the result: shape ``(n, k)``, C-contiguous; int32 takes MurmurHash3_x86_32, uint64 the first half of
        x64_128. A text without shingles gets the largest value of the type throughout.
    """
    if n < 1 or seeds.shape[0] < 1 or unit not in (LSH_BYTE, LSH_CHAR, LSH_WORD):
        raise ValueError("n and the number of seeds must be 1 or more, and unit a value of UNIT_CODES")
    if unit == LSH_WORD:
        _need_word_table()
    cdef int32_t[:, ::1] narrow
    cdef uint64_t[:, ::1] wide
    if out.dtype == np.int32:
        narrow = out
        _check_shape(narrow.shape[0], narrow.shape[1], batch.count, seeds.shape[0])
        narrow[...] = 0x7FFFFFFF
    else:
        wide = out
        _check_shape(wide.shape[0], wide.shape[1], batch.count, seeds.shape[0])
        wide[...] = <uint64_t> -1
    if batch.count == 0:
        return
    if out.dtype == np.int32:
        _minima(batch, <lsh_unit> unit, n, seeds, &narrow[0, 0], NULL)
    else:
        _minima(batch, <lsh_unit> unit, n, seeds, NULL, &wide[0, 0])


cdef int _check_shape(Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t n, Py_ssize_t k) except -1:
    if rows != n or columns != k:
        raise ValueError(f"out must have shape ({n}, {k}), got ({rows}, {columns})")
    return 0


cdef int _minima(Batch batch, lsh_unit unit, size_t n, const uint32_t[::1] seeds, int32_t *narrow,
                 uint64_t *wide) except -1:
    """Take the minima of every text into its row, of whichever of the two outputs is given."""
    cdef lsh_shingler walk
    cdef lsh_span spans[TILE]
    cdef size_t count, k = seeds.shape[0]
    cdef Words words = Words(NULL, 0)
    cdef const uint8_t *text
    cdef Py_ssize_t i
    cdef uint64_t *state = <uint64_t *> malloc(2 * k * sizeof(uint64_t))  # scratch for either kernel
    if state == NULL:
        raise MemoryError()
    try:
        with nogil:
            for i in range(batch.count):
                text = batch.texts[i]
                _begin(&walk, &text, batch.lengths[i], unit, n, &words)
                while True:
                    count = lsh_shingler_next(&walk, spans, TILE)
                    if count == 0:
                        break
                    if narrow != NULL:
                        _kernels.min_murmur3_32(text, spans, count, &seeds[0], <uint32_t *> state, k, narrow + i * k)
                    else:
                        _kernels.min_murmur3_64(text, spans, count, &seeds[0], state, k, wide + i * k)
    finally:
        free(state)
        free(words.bytes)
    return 0


def count_equal(a not None, b not None):
    """Count the equal components of every row of `a` with every row of `b`.

    Parameters
    ----------
    a, b : numpy.ndarray
        Shapes ``(n, k)`` and ``(m, k)``, both uint32 or both uint64, C-contiguous.

    Returns
    -------
    numpy.ndarray
        Shape ``(n, m)``, int64.
    """
    out = np.zeros((len(a), len(b)), np.int64)
    if out.size:
        if a.dtype == np.uint32:
            _count_equal_32(a, b, out)
        else:
            _count_equal_64(a, b, out)
    return out


cdef int _check_rows(Py_ssize_t a, Py_ssize_t b, Py_ssize_t k, Py_ssize_t k_of_b, Py_ssize_t n, Py_ssize_t m) except -1:
    if k != k_of_b or k == 0 or a != n or b != m:
        raise ValueError(f"rows must have the same number of components, 1 or more, got {k} and {k_of_b}")
    return 0


cdef int _count_equal_32(const uint32_t[:, ::1] a, const uint32_t[:, ::1] b, int64_t[:, ::1] out) except -1:
    cdef Py_ssize_t i, j
    _check_rows(a.shape[0], b.shape[0], a.shape[1], b.shape[1], out.shape[0], out.shape[1])
    with nogil:
        for i in range(a.shape[0]):
            for j in range(b.shape[0]):
                out[i, j] = _kernels.count_equal_32(&a[i, 0], &b[j, 0], a.shape[1])
    return 0


cdef int _count_equal_64(const uint64_t[:, ::1] a, const uint64_t[:, ::1] b, int64_t[:, ::1] out) except -1:
    cdef Py_ssize_t i, j
    _check_rows(a.shape[0], b.shape[0], a.shape[1], b.shape[1], out.shape[0], out.shape[1])
    with nogil:
        for i in range(a.shape[0]):
            for j in range(b.shape[0]):
                out[i, j] = _kernels.count_equal_64(&a[i, 0], &b[j, 0], a.shape[1])
    return 0


# ---- exact Jaccard ----

cdef class ShingleSets:
    """The exact shingle sets of a batch, one of them in a table at a time.

    Choose a text, then ask its similarity to others: the chosen set is built once. Not safe to share
    between threads.

    Parameters
    ----------
    batch : Batch
        The texts.
    unit : int
        A value of `UNIT_CODES`.
    n : int
        Units per shingle, 1 or more.
    """

    def __cinit__(self, Batch batch not None, int unit, size_t n):
        cdef Py_ssize_t i
        if n < 1 or unit not in (LSH_BYTE, LSH_CHAR, LSH_WORD):
            raise ValueError("n must be 1 or more, and unit a value of UNIT_CODES")
        if unit == LSH_WORD:
            _need_word_table()
        self.batch = batch
        self.unit = <lsh_unit> unit
        self.n = n
        self.chosen = -1
        self.capacity = 2 * TILE
        self.sizes = <int64_t *> malloc(max(batch.count, 1) * sizeof(int64_t))
        self.slots = <lsh_set_slot *> calloc(self.capacity, sizeof(lsh_set_slot))
        if self.sizes == NULL or self.slots == NULL:
            raise MemoryError()
        for i in range(batch.count):
            self.sizes[i] = -1

    def __dealloc__(self):
        free(self.sizes)
        free(self.slots)
        free(self.chosen_words.bytes)
        free(self.other_words.bytes)

    cdef int _reserve(self, size_t count) except -1 nogil:
        """Make room for `count` more entries: at most half of the slots are taken."""
        cdef lsh_set_slot *grown
        cdef size_t capacity = self.capacity
        while 2 * (self.used + count) > capacity:
            capacity *= 2
        if capacity == self.capacity:
            return 0
        grown = <lsh_set_slot *> calloc(capacity, sizeof(lsh_set_slot))
        if grown == NULL:
            with gil:
                raise MemoryError()
        lsh_set_move(self.slots, self.capacity - 1, grown, capacity - 1)
        free(self.slots)
        self.slots = grown
        self.capacity = capacity
        return 0

    cdef int choose(self, Py_ssize_t i) except -1 nogil:
        """Put the set of text i into the table."""
        cdef lsh_shingler walk
        cdef lsh_span spans[TILE]
        cdef lsh_set_slot *fresh
        cdef size_t count, at
        if self.chosen == i:
            return 0
        self.chosen = -1
        if self.capacity > 64 * TILE and self.capacity > 16 * self.used:  # a long text came before: start small again
            fresh = <lsh_set_slot *> calloc(2 * TILE, sizeof(lsh_set_slot))
            if fresh == NULL:
                with gil:
                    raise MemoryError()
            free(self.slots)
            self.slots = fresh
            self.capacity = 2 * TILE
        else:
            for at in range(self.capacity):
                self.slots[at].length = 0
        self.used = 0
        self.mark = 0
        self.chosen_text = self.batch.texts[i]
        _begin(&walk, &self.chosen_text, self.batch.lengths[i], self.unit, self.n, &self.chosen_words)
        while True:
            count = lsh_shingler_next(&walk, spans, TILE)
            if count == 0:
                break
            self._reserve(count)
            self.used += lsh_set_add(self.slots, self.capacity - 1, self.chosen_text, spans, count)
        self.sizes[i] = self.used
        self.chosen = i
        return 0

    cdef int _count_sizes(self, Py_ssize_t i, Py_ssize_t j) except -1 nogil:
        """Learn the size of set j, and leave set i in the table."""
        if self.sizes[j] < 0:
            self.choose(j)
            self.choose(i)
        return 0

    cdef double similarity(self, Py_ssize_t j) except -1.0 nogil:
        """The Jaccard similarity of the chosen text and text j; 0.0 where either has no shingles."""
        cdef lsh_shingler walk
        cdef lsh_span spans[TILE]
        cdef const uint8_t *text = self.batch.texts[j]
        cdef size_t count, shared = 0
        self._count_sizes(self.chosen, j)
        if self.used == 0 or self.sizes[j] == 0:
            return 0.0
        self.mark += 1
        _begin(&walk, &text, self.batch.lengths[j], self.unit, self.n, &self.other_words)
        while True:
            count = lsh_shingler_next(&walk, spans, TILE)
            if count == 0:
                break
            shared += lsh_set_hits(self.slots, self.capacity - 1, self.chosen_text, self.mark, text, spans, count)
        return <double> shared / <double> (self.used + <size_t> self.sizes[j] - shared)

    def matrix(self, Py_ssize_t rows, Py_ssize_t first_column):
        """Return the similarities of texts 0 .. rows - 1 to texts first_column .. count - 1, float64."""
        cdef Py_ssize_t i, j, columns = self.batch.count - first_column
        if not 0 <= first_column <= self.batch.count or not 0 <= rows <= self.batch.count:
            raise ValueError("rows and first_column must lie within the batch")
        out = np.empty((rows, columns))
        cdef double[:, ::1] view = out
        with nogil:
            for i in range(rows):
                self.choose(i)
                for j in range(columns):
                    view[i, j] = self.similarity(first_column + j)
        return out
