# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Shingles, hashes and minima over batches of raw bytes, and the exact Jaccard similarity.

This floor answers for memory: sizes are checked, scratch is allocated and freed, the GIL is released while the kernels
run. It decides nothing about meaning; `lsh.shingling` and `lsh.minhash` do.
"""

from cython cimport final
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.unicode cimport Py_UNICODE_ISALNUM
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from lsh._batch cimport Batch
from lsh._kernels cimport (
    LSH_BYTE,
    LSH_CHAR,
    LSH_COLLAPSE,
    LSH_LOWER,
    LSH_STRIP,
    LSH_WORD,
    LSH_FSS_MOST,
    LSH_LANES,
    LSH_SET_KEY,
    LSH_SET_LANES,
    LSH_SET_ROOM,
    LSH_TILE,
    PyUnicode_CheckExact,
    PyUnicode_DATA,
    PyUnicode_GET_LENGTH,
    PyUnicode_IS_ASCII,
    lsh_document,
    lsh_fss_ranks,
    lsh_is_ascii,
    lsh_join_words,
    lsh_kernels,
    lsh_kernels_find,
    lsh_murmur3_x64_128,
    lsh_murmur3_x86_32,
    lsh_murmur3_x86_128,
    lsh_normalise_ascii,
    lsh_scratch,
    lsh_set,
    lsh_set_secret,
    lsh_shingler,
    lsh_shingler_begin,
    lsh_shingler_next,
    lsh_siphash13,
    lsh_span,
    lsh_unit,
)

import os
import threading

import numpy as np

cdef enum:
    MURMUR3_32 = 0
    MURMUR3_64 = 1
    FSS = 2
    ALIGNMENT = 64
    TILE = 256  # shingles whose places are found at a time: 4 KB, which stay in the first-level cache
    SHORT = 256  # bytes of a text for which the GIL is not released: to release it costs as much as the work
    MOST_KEPT = 4194304  # bytes of a text, or of its words' hashes, that scratch holds on to
    WORD_TABLE_SIZE = 139264  # a bit for each of 0x110000 code points
    BUCKET = 64  # bytes: LSH_SET_LANES tokens, a cache line
    MOST_IN_BUCKET = 4  # tokens a bucket on average: then one in fifty overflows
    SMALL_SET = 65536  # shingles that a set has room for at once, if the text is that long; it grows from there
    MOST_SHINGLES = 1048576  # of a set in memory: 24 MB, as one with spans has half as many
    MOST_CACHED = 33554432  # bytes of the cache of sets

UNIT_CODES = {"byte": LSH_BYTE, "char": LSH_CHAR, "word": LSH_WORD}
NORMALISATIONS = {"lowercase": LSH_LOWER, "strip_punctuation": LSH_STRIP, "collapse_whitespace": LSH_COLLAPSE}
SCHEME_CODES = {"murmur3_32": MURMUR3_32, "murmur3_64": MURMUR3_64, "fss": FSS}
LEVELS = ("avx512", "avx2", "neon", "baseline")
LEVEL_VARIABLE = "LSH_SIMD"


# ---- the level ----

def simd_levels():
    """Return the names of the levels that this build and this CPU have, the fastest first."""
    return tuple(level for level in LEVELS if lsh_kernels_find(level.encode()) != NULL)


def simd_level():
    """Return the instruction set that the kernels use: "avx512", "avx2", "neon" or "baseline".

    It is the fastest that this CPU has, or the one that the environment variable ``LSH_SIMD`` names when `lsh` is
    imported first. Every level gives the same bits.
    """
    return _kernels.level.decode()


cdef const lsh_kernels *_choose_kernels() except NULL:
    level = os.environ.get(LEVEL_VARIABLE) or None
    cdef const lsh_kernels *found
    found = lsh_kernels_find(NULL) if level is None else lsh_kernels_find(<bytes> os.fsencode(level))
    if found == NULL:
        raise ImportError(
            f"{LEVEL_VARIABLE} must name a level that this CPU has ({', '.join(simd_levels())}), got {level!r}; "
            "set one of them or unset the variable"
        )
    return found


cdef const lsh_kernels *_kernels = _choose_kernels()


cdef const lsh_kernels *chosen_kernels() noexcept nogil:
    return _kernels


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


def siphash13(const uint8_t[::1] data not None, uint64_t k0, uint64_t k1):
    """Return SipHash-1-3 of the bytes under the key of two words."""
    cdef uint64_t key[2]
    key[0], key[1] = k0, k1
    return lsh_siphash13(&data[0] if data.shape[0] else NULL, data.shape[0], key)


# ---- words ----

cdef object _making = threading.Lock()
cdef uint8_t *_word_table = NULL  # a bit for each code point that belongs to a word; made once, kept for good


cdef int _need_word_table() except -1:
    """Make the table of word characters: what `\\w` matches, str.isalnum and the underscore."""
    global _word_table
    cdef uint32_t c
    cdef uint8_t *table
    with _making:
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


cdef int _prepare(lsh_document *document, int flags, bint join, Words *words) except -1 nogil:
    """Bring a document into the form that is shingled: normalised where it is ASCII (a batch holds other texts
    normalised), its words joined if `join`; what is made lies in `words`. A character of an ASCII text is a byte.
    """
    cdef bint ascii = (flags or document.unit == LSH_CHAR) and lsh_is_ascii(document.text, document.length)
    if document.length == 0:
        return 0
    if ascii and document.unit == LSH_CHAR:
        document.unit = LSH_BYTE
    if ascii and flags:
        _reserve_words(words, document.length)
        document.length = lsh_normalise_ascii(document.text, document.length, flags, words.bytes)
        document.text = words.bytes
    if join and document.unit == LSH_WORD and document.length:
        _reserve_words(words, document.length)
        document.length = lsh_join_words(document.text, document.length, _word_table, words.bytes)
        document.text = words.bytes
    return 0


cdef int _begin(lsh_shingler *walk, lsh_document *document, int flags, Words *words) except -1 nogil:
    """Begin the walk over the shingles of a document, which is prepared for it."""
    _prepare(document, flags, True, words)
    lsh_shingler_begin(walk, document.text, document.length, document.unit, document.n)
    return 0


def shingles(Batch batch not None, int unit, size_t n, int flags=0):
    """Return the shingles of each text: a list of lists of bytes, in order, with repeats."""
    cdef lsh_shingler walk
    cdef lsh_span span
    cdef lsh_document document
    cdef Words words = Words(NULL, 0)
    cdef Py_ssize_t i
    result = []
    _need_word_table()
    try:
        for i in range(batch.count):
            found = []
            document = lsh_document(batch.texts[i], batch.lengths[i], <lsh_unit> unit, n)
            _begin(&walk, &document, flags, &words)
            while lsh_shingler_next(&walk, &span, 1):
                found.append(document.text[span.start:span.start + span.length])
            result.append(found)
    finally:
        free(words.bytes)
    return result


# ---- fingerprints ----

@final
cdef class Scratch:
    """The memory of one thread at work: what the kernels ask for, and rows and words of any size."""

    cdef void *memory
    cdef lsh_scratch *kernel
    cdef size_t state_size, word_size, row_size
    cdef uint64_t *row
    cdef Words words

    def __cinit__(self):
        self.memory = malloc(sizeof(lsh_scratch) + ALIGNMENT)
        if self.memory == NULL:
            raise MemoryError()
        self.kernel = <lsh_scratch *> ((<size_t> self.memory + ALIGNMENT) // ALIGNMENT * ALIGNMENT)
        self.kernel.state = NULL
        self.kernel.word_hashes[0] = self.kernel.word_hashes[1] = NULL

    def __dealloc__(self):
        if self.memory != NULL:
            free(self.kernel.state)
            free(self.kernel.word_hashes[0])
            free(self.kernel.word_hashes[1])
        free(self.memory)
        free(self.row)
        free(self.words.bytes)

    cdef int reserve(self, size_t seeds, size_t words) except -1:
        """Make room for `seeds` components and `words` hashes of words."""
        if 2 * seeds > self.state_size:
            self.kernel.state = <uint64_t *> _grow(self.kernel.state, 2 * seeds * sizeof(uint64_t))
            self.row = <uint64_t *> _grow(self.row, seeds * sizeof(uint64_t))
            self.state_size = 2 * seeds
        if words > self.word_size:
            for i in range(2):
                self.kernel.word_hashes[i] = <uint32_t *> _grow(self.kernel.word_hashes[i], words * sizeof(uint32_t))
            self.word_size = words
        self.kernel.word_table = _word_table
        return 0


cdef void *_grow(void *memory, size_t size) except NULL:
    cdef void *grown = realloc(memory, size)
    if grown == NULL:
        raise MemoryError()
    return grown


cdef object _frombuffer = np.frombuffer
cdef list _idle = []  # scratch of no thread at the moment; taking from a list and adding to it are atomic


cdef Scratch _take_scratch():
    try:
        return <Scratch> _idle.pop()
    except IndexError:
        return Scratch()


cdef int _give_back(Scratch scratch) except -1:
    """Keep scratch for the next work, without what a very long text made of it."""
    if scratch.words.capacity > MOST_KEPT:
        free(scratch.words.bytes)
        scratch.words = Words(NULL, 0)
    if scratch.word_size * sizeof(uint32_t) > MOST_KEPT:
        for i in range(2):
            free(scratch.kernel.word_hashes[i])
            scratch.kernel.word_hashes[i] = NULL
        scratch.word_size = 0
    _idle.append(scratch)
    return 0


@final
cdef class Fingerprinter:
    """The minima of seeded hashes over the shingles of texts, for one scheme and its parameters. Immutable.

    Parameters
    ----------
    scheme : int
        A value of `SCHEME_CODES`: MurmurHash3_x86_32 as int32, the first half of x64_128 as uint64, or fss.
    unit : int
        A value of `UNIT_CODES`.
    n : int
        Units per shingle, 1 or more.
    seeds : numpy.ndarray
        uint32, shape ``(k,)``; for fss the one seed.
    k : int
        Components; for murmur3 the number of seeds.
    flags : int, optional
        How ASCII texts are normalised: a sum of values of `NORMALISATIONS`.
    """

    cdef int scheme, flags
    cdef lsh_unit unit
    cdef size_t n, k, padded, itemsize
    cdef object dtype
    cdef uint32_t seed
    cdef uint32_t *words  # seeds or ranks, padded to whole vectors

    def __cinit__(self, int scheme, int unit, size_t n, const uint32_t[::1] seeds not None, size_t k,
                  int flags=0):
        cdef size_t i
        cdef uint32_t *permutation
        if n < 1 or k < 1 or unit not in UNIT_CODES.values() or scheme not in SCHEME_CODES.values():
            raise ValueError("n and k must be 1 or more, unit and scheme values of UNIT_CODES and SCHEME_CODES")
        if <size_t> seeds.shape[0] != (1 if scheme == FSS else k) or (scheme == FSS and k > LSH_FSS_MOST):
            raise ValueError("fss takes one seed and at most 4,096 components, murmur3 as many seeds as components")
        if unit == LSH_WORD:
            _need_word_table()
        self.scheme, self.unit, self.n, self.k, self.seed = scheme, <lsh_unit> unit, n, k, seeds[0]
        self.flags = flags
        self.dtype = np.dtype(np.uint64 if scheme == MURMUR3_64 else np.uint32)
        self.itemsize = self.dtype.itemsize
        self.padded = (k + LSH_LANES - 1) // LSH_LANES * LSH_LANES
        self.words = <uint32_t *> malloc(self.padded * sizeof(uint32_t))
        if self.words == NULL:
            raise MemoryError()
        if scheme == FSS:
            permutation = <uint32_t *> malloc(LSH_FSS_MOST * sizeof(uint32_t))
            if permutation == NULL:
                raise MemoryError()
            lsh_fss_ranks(k, permutation, self.words)
            free(permutation)
        else:
            for i in range(self.padded):
                self.words[i] = seeds[min(i, k - 1)]

    def __dealloc__(self):
        free(self.words)

    def fill(self, Batch batch not None, out not None):
        """Compute the fingerprint of each text of a batch; the GIL is released meanwhile.

        Parameters
        ----------
        batch : Batch
            ``n`` texts.
        out : numpy.ndarray
            Receives the result: shape ``(n, k)``, C-contiguous; int32, uint64 or uint32, by the scheme. A text without
            shingles gets the largest value of the type throughout.
        """
        cdef int32_t[:, ::1] narrow
        cdef uint64_t[:, ::1] wide
        cdef uint32_t[:, ::1] sketches
        cdef void *rows = NULL
        if self.scheme == MURMUR3_32:
            narrow = out
            _check_shape(narrow.shape[0], narrow.shape[1], batch.count, self.k)
            rows = <void *> &narrow[0, 0] if batch.count else NULL
        elif self.scheme == MURMUR3_64:
            wide = out
            _check_shape(wide.shape[0], wide.shape[1], batch.count, self.k)
            rows = <void *> &wide[0, 0] if batch.count else NULL
        else:
            sketches = out
            _check_shape(sketches.shape[0], sketches.shape[1], batch.count, self.k)
            rows = <void *> &sketches[0, 0] if batch.count else NULL
        self._fill(batch, rows)

    def one(self, text, transform=None):
        """Return the fingerprint of one text, shape ``(k,)``, uint32 or uint64, read-only; `transform`: see Batch."""
        cdef PyObject *held = <PyObject *> text
        cdef Batch batch
        row = PyBytes_FromStringAndSize(NULL, self.k * self.itemsize)
        if PyUnicode_CheckExact(held) and PyUnicode_IS_ASCII(held):  # no batch: it costs 100 ns
            self._fill_row(<const uint8_t *> PyUnicode_DATA(held), PyUnicode_GET_LENGTH(held), PyBytes_AS_STRING(row))
        elif isinstance(text, (str, bytes, bytearray, memoryview)):
            batch = Batch((text,), 0, False, transform)
            self._fill_row(batch.texts[0], batch.lengths[0], PyBytes_AS_STRING(row))
        else:
            raise TypeError(f"text must be str, bytes, bytearray or memoryview, got {type(text).__name__}")
        return _frombuffer(row, self.dtype)

    cdef int _fill_row(self, const uint8_t *text, size_t length, void *row) except -1:
        cdef Scratch scratch = self._scratch(length)
        if length <= SHORT:
            self._one(text, length, scratch, row, 0)
        else:
            with nogil:
                self._one(text, length, scratch, row, 0)
        _give_back(scratch)
        return 0

    cdef Scratch _scratch(self, size_t longest):
        """Take scratch for texts of at most `longest` bytes."""
        cdef Scratch scratch = _take_scratch()
        cdef size_t words = 0
        if self.scheme == FSS and self.unit == LSH_WORD and longest:
            words = min(self.n, longest // 2 + 2) + LSH_TILE + LSH_LANES
        scratch.reserve(self.padded, words)
        return scratch

    cdef int _fill(self, Batch batch, void *rows) except -1:
        cdef Scratch scratch
        cdef Py_ssize_t i
        cdef size_t longest = 0
        for i in range(batch.count):
            longest = max(longest, <size_t> batch.lengths[i])
        scratch = self._scratch(longest)
        with nogil:
            for i in range(batch.count):
                self._one(batch.texts[i], batch.lengths[i], scratch, rows, i)
        _give_back(scratch)
        return 0

    cdef int _one(self, const uint8_t *text, size_t length, Scratch scratch, void *rows, Py_ssize_t i) except -1 nogil:
        cdef lsh_document document = lsh_document(text, length, self.unit, self.n)
        cdef int32_t *narrow
        cdef uint64_t *wide
        cdef size_t s
        _prepare(&document, self.flags, self.scheme != FSS, &scratch.words)
        if self.scheme == FSS:
            _kernels.fss(&document, self.seed, self.words, self.k, scratch.kernel, <uint32_t *> rows + i * self.k)
            return 0
        if self.scheme == MURMUR3_32:
            narrow = <int32_t *> scratch.row
            for s in range(self.padded):
                narrow[s] = 0x7FFFFFFF
            _kernels.min_murmur3_32(&document, self.words, self.padded, scratch.kernel, narrow)
            memcpy(<int32_t *> rows + i * self.k, narrow, self.k * sizeof(int32_t))
        else:
            wide = scratch.row
            for s in range(self.padded):
                wide[s] = <uint64_t> -1
            _kernels.min_murmur3_64(&document, self.words, self.padded, scratch.kernel, wide)
            memcpy(<uint64_t *> rows + i * self.k, wide, self.k * sizeof(uint64_t))
        return 0


cdef int _check_shape(Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t n, Py_ssize_t k) except -1:
    if rows != n or columns != k:
        raise ValueError(f"out must have shape ({n}, {k}), got ({rows}, {columns})")
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

cdef lsh_set_secret _draw_secret(bytes drawn) except *:
    """The secret that `drawn` makes: the words of lsh_set_secret, whose last tells which bits of long hashes count."""
    cdef lsh_set_secret secret
    if len(drawn) != sizeof(secret):
        raise ValueError(f"a secret has {sizeof(secret)} bytes, got {len(drawn)}")
    memcpy(&secret, PyBytes_AS_STRING(drawn), sizeof(secret))
    secret.odd[0] |= 1
    secret.odd[1] |= 1
    return secret


cdef lsh_set_secret _secret = _draw_secret(os.urandom(sizeof(lsh_set_secret) - 8) + b"\xff" * 8)  # of this process


cdef void *_resize(void *memory, size_t size) except NULL nogil:
    cdef void *resized = realloc(memory, size)
    if resized == NULL:
        with gil:
            raise MemoryError()
    return resized


cdef int _free_workspace(Workspace *work) except -1:
    free(work.words.bytes)
    free(work.memory)
    free(work.set.tokens)
    free(work.spans)
    free(work.entries)
    return 0


cdef int _reserve_set(Workspace *work, size_t shingles, bint spans, uint32_t part_bits) except -1 nogil:
    """Make room for a set and a table that is free; what is there is lost but the tokens and spans."""
    cdef size_t buckets = 2
    while MOST_IN_BUCKET * buckets < shingles:
        buckets *= 2
    if buckets > work.buckets:
        free(work.memory)
        work.memory = NULL
        work.buckets = 0
        work.memory = _resize(NULL, buckets * (BUCKET + 1) + BUCKET)
        work.set.tokens = <uint64_t *> _resize(work.set.tokens, buckets * MOST_IN_BUCKET * sizeof(uint64_t))
        work.buckets = buckets
    if spans and buckets > work.span_buckets:
        work.spans = <lsh_span *> _resize(work.spans, buckets * MOST_IN_BUCKET * sizeof(lsh_span))
        work.entries = <uint32_t *> _resize(work.entries, buckets * LSH_SET_LANES * sizeof(uint32_t))
        work.span_buckets = buckets
    work.set.spans = work.spans if spans else NULL
    work.set.capacity = buckets * MOST_IN_BUCKET
    work.table.lanes = <uint64_t *> ((<size_t> work.memory + BUCKET - 1) // BUCKET * BUCKET)
    work.table.filled = <uint8_t *> work.table.lanes + buckets * BUCKET
    work.table.entries = work.entries if spans else NULL
    work.table.buckets = (buckets - 1) * LSH_SET_LANES
    work.table.part_bits = part_bits
    work.table.shift = 64 - part_bits
    memset(work.table.lanes, 0, buckets * (BUCKET + 1))
    buckets *= LSH_SET_LANES
    while buckets > 1:
        buckets //= 2
        work.table.shift -= 1
    return 0


cdef size_t _size(const lsh_set *shingles) noexcept nogil:
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


@final
cdef class ShingleSets:
    """The exact shingle sets of a batch, made as they are asked for and kept in a bounded cache.

    Choose a text, then ask its similarity to others. The memory is bounded whatever the texts are, and no bound changes
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
    most_cached : int, optional
        Bytes of the cache.
    most_shingles : int, optional
        Distinct shingles of a text that are in memory at once, a power of two from 1,024 on; half of that for those
        that are no words of up to eight bytes. A text of more is compared part by part of the hash space, with a pass
        over it for each part.
    secret : bytes, optional
        In place of that of the process, to make a test's hashes collide: 128 bytes, see `lsh_set_secret`.

    Notes
    -----
    A set and its table take 24 bytes a shingle, or 48 where the bytes of a shingle have to be compared; two are there
    at once, besides the cache, which takes 8 or 24.
    """

    def __cinit__(self, Batch batch not None, int unit, size_t n, int flags=0, *, size_t most_cached=MOST_CACHED,
                  size_t most_shingles=MOST_SHINGLES, bytes secret=None):
        cdef Py_ssize_t i
        cdef size_t needed = 0
        if n < 1 or unit not in (LSH_BYTE, LSH_CHAR, LSH_WORD):
            raise ValueError("n must be 1 or more, and unit a value of UNIT_CODES")
        if not 4 * TILE <= most_shingles <= MOST_SHINGLES:
            raise ValueError(f"most_shingles must be {4 * TILE} to {MOST_SHINGLES}, got {most_shingles}")
        if unit == LSH_WORD:
            _need_word_table()
        self.batch, self.unit, self.n, self.flags, self.most_shingles = batch, <lsh_unit> unit, n, flags, most_shingles
        self.secret = _secret if secret is None else _draw_secret(secret)
        self.chosen = self.chosen_work.prepared = self.other_work.prepared = -1
        self.chosen_work.whole = self.other_work.whole = -1
        self.texts = <Text *> malloc(max(batch.count, 1) * sizeof(Text))
        if self.texts == NULL:
            raise MemoryError()
        for i in range(batch.count):
            self.texts[i] = Text(-1, NULL, 0)
            if needed < most_cached:  # the most that the text can take there
                needed += sizeof(Block) + (sizeof(uint64_t) + sizeof(lsh_span) + 1) * batch.lengths[i]
        if batch.count > 2:  # two have a workspace each
            self.ring_size = min(needed, most_cached)

    def __dealloc__(self):
        free(self.texts)
        free(self.ring)
        _free_workspace(&self.chosen_work)
        _free_workspace(&self.other_work)

    # The set of one text, or of one part of it, in a workspace.

    cdef int _open(self, Workspace *work, Py_ssize_t i) except -1 nogil:
        """Bring text i into the form that is shingled."""
        if work.prepared == i:
            return 0
        work.prepared = work.whole = -1
        work.document = lsh_document(self.batch.texts[i], self.batch.lengths[i], self.unit, self.n)
        _prepare(&work.document, self.flags, True, &work.words)
        work.prepared = i
        return 0

    cdef bint _fill(self, Workspace *work, uint32_t part_bits, uint64_t part) except -1 nogil:
        """Make the set of one part of the text that is open, and its table; returns whether it is small enough."""
        cdef lsh_document *document = &work.document
        cdef bint spans = document.unit != LSH_BYTE or document.n > LSH_SET_KEY
        cdef size_t shingles = document.length  # at most
        work.whole = -1
        if document.unit == LSH_BYTE and document.n <= document.length:
            shingles = document.length - document.n + 1
        elif document.unit == LSH_WORD:
            shingles = document.length // 2 + 1
        shingles = min(shingles, <size_t> SMALL_SET if part_bits == 0 else self._most(spans))
        _reserve_set(work, max(shingles, <size_t> LSH_SET_ROOM), spans, part_bits)
        work.set.text = document.text
        work.set.count = work.set.zero = 0
        work.set.width = 0 if spans else min(document.n, document.length)
        if document.length == 0:
            return True
        return self._fill_spans(work, part) if spans else self._fill_keys(work, part)

    cdef bint _fill_keys(self, Workspace *work, uint64_t part) except -1 nogil:
        cdef size_t at = 0, shingles = work.document.length - work.set.width + 1
        while True:
            at = _kernels.set_add_keys(&work.set, &work.table, &self.secret, part, work.document.length, at)
            if at == shingles:
                return True
            if not self._enlarge(work):
                return False

    cdef bint _fill_spans(self, Workspace *work, uint64_t part) except -1 nogil:
        cdef lsh_shingler walk
        cdef lsh_span spans[TILE]
        cdef size_t count
        cdef lsh_document *document = &work.document
        lsh_shingler_begin(&walk, document.text, document.length, document.unit, document.n)
        while True:
            count = lsh_shingler_next(&walk, spans, TILE)
            if count == 0:
                return True
            while work.set.capacity - work.set.count < count:
                if not self._enlarge(work):
                    return False
            _kernels.set_add_spans(&work.set, &work.table, &self.secret, part, spans, count)

    cdef size_t _most(self, bint spans) noexcept nogil:
        """The shingles that a set may have in memory."""
        return self.most_shingles // 2 if spans else self.most_shingles

    cdef bint _enlarge(self, Workspace *work) except -1 nogil:
        """Double the room of a set and make its table anew; returns whether that is allowed."""
        if 2 * work.set.capacity > self._most(work.set.spans != NULL):
            return False
        _reserve_set(work, 2 * work.set.capacity, work.set.spans != NULL, work.table.part_bits)
        _kernels.set_enter(&work.set, &work.table)
        return True

    cdef int _make(self, Workspace *work, Py_ssize_t i) except -1 nogil:
        """Make the set of text i: whole, or else only count it, part by part.

        It enters the cache when it is made for the second time: many texts are compared once, and to keep those would
        cost a good part of what it costs to make them.
        """
        cdef Text *text = &self.texts[i]
        cdef bint again = text.size >= 0
        cdef uint64_t part
        cdef int64_t size
        self._open(work, i)
        while True:
            size = 0
            for part in range(<uint64_t> 1 << text.part_bits):
                if not self._fill(work, text.part_bits, part):
                    break
                size += _size(&work.set)
            else:
                break
            text.part_bits += 1
        text.size = size
        if text.part_bits == 0:
            work.whole = i
            if again:
                self._keep(work, i)
        return 0

    # The cache: a ring of blocks, of which the oldest give way.

    cdef int _keep(self, Workspace *work, Py_ssize_t i) except -1 nogil:
        """Copy the whole set of text i into the cache, if it has room for it."""
        cdef lsh_set *shingles = &work.set
        cdef bint own_text = shingles.spans != NULL and work.document.text == work.words.bytes
        cdef size_t tokens = shingles.count * sizeof(uint64_t)
        cdef size_t spans = shingles.count * sizeof(lsh_span) if shingles.spans != NULL else 0
        cdef size_t size = sizeof(Block) + tokens + spans + (work.document.length if own_text else 0)
        cdef Block *block
        cdef uint8_t *at
        size = (size + 7) // 8 * 8
        if size > self.ring_size or self.texts[i].block != NULL:
            return 0
        if self.ring == NULL:
            self.ring = <uint8_t *> _resize(NULL, self.ring_size)
        block = <Block *> (self.ring + self._make_room(size))
        block.size, block.text, block.set = size, i, shingles[0]
        at = <uint8_t *> block + sizeof(Block)
        block.set.tokens = <uint64_t *> at
        memcpy(at, shingles.tokens, tokens)
        if spans:
            block.set.spans = <lsh_span *> (at + tokens)
            memcpy(block.set.spans, shingles.spans, spans)
        if own_text:
            block.set.text = at + tokens + spans
            memcpy(at + tokens + spans, work.document.text, work.document.length)
        self.texts[i].block = block
        return 0

    cdef size_t _make_room(self, size_t size) noexcept nogil:
        """Return a place for `size` bytes, at most all of them, from which older blocks have given way."""
        cdef Block *oldest
        cdef size_t place
        while True:
            if self.blocks == 0:
                self.newest_end = self.oldest = 0
                self.wrapped = False
            if not self.wrapped:
                if self.newest_end + size <= self.ring_size:
                    break
                self.ring_end, self.newest_end, self.wrapped = self.newest_end, 0, True
            if self.newest_end + size <= self.oldest:
                break
            oldest = <Block *> (self.ring + self.oldest)
            self.texts[oldest.text].block = NULL
            self.oldest += oldest.size
            self.blocks -= 1
            if self.oldest == self.ring_end:
                self.oldest, self.wrapped = 0, False
        place = self.newest_end
        self.newest_end += size
        self.blocks += 1
        return place

    # Comparing.

    cdef int choose(self, Py_ssize_t i) except -1 nogil:
        """Make text i the one that others are compared with."""
        cdef Workspace *work = &self.chosen_work
        cdef Block *block = self.texts[i].block
        self.chosen = -1
        if work.whole != i and self.texts[i].part_bits == 0:
            if block == NULL:
                self._make(work, i)
            else:
                self._load(work, block)
        self.chosen = i
        return 0

    cdef int _load(self, Workspace *work, const Block *block) except -1 nogil:
        """Copy a set out of the cache, where it may have to give way, and make its table."""
        cdef bint spans = block.set.spans != NULL
        cdef size_t count = block.set.count
        cdef const uint8_t *own_text = <const uint8_t *> block + sizeof(Block) + count * (
            sizeof(uint64_t) + (sizeof(lsh_span) if spans else 0))
        work.prepared = work.whole = -1
        _reserve_set(work, max(count, <size_t> LSH_SET_ROOM), spans, 0)
        work.set.text, work.set.count, work.set.zero = block.set.text, count, block.set.zero
        work.set.width = block.set.width
        memcpy(work.set.tokens, block.set.tokens, count * sizeof(uint64_t))
        if spans:
            memcpy(work.set.spans, block.set.spans, count * sizeof(lsh_span))
            if block.set.text == own_text:
                _reserve_words(&work.words, block.size)
                memcpy(work.words.bytes, own_text, block.size - (own_text - <const uint8_t *> block))
                work.set.text = work.words.bytes
        _kernels.set_enter(&work.set, &work.table)
        work.whole = block.text
        return 0

    cdef const lsh_set *_whole(self, Py_ssize_t j) except NULL nogil:
        """The set of a text that is not compared in parts."""
        if self.texts[j].block != NULL:
            return &self.texts[j].block.set
        if self.chosen_work.whole == j:
            return &self.chosen_work.set
        if self.other_work.whole != j:
            self._make(&self.other_work, j)
        return &self.other_work.set

    cdef double similarity(self, Py_ssize_t j) except -1.0 nogil:
        """The Jaccard similarity of the chosen text and text j; 0.0 where either has no shingles."""
        return self.similarity_from(j, 0.0)

    cdef double similarity_from(self, Py_ssize_t j, double least) except -1.0 nogil:
        """What `similarity` returns where that is at least `least`, else 0.0, which then costs less to find out."""
        cdef size_t a, b, needed, shared
        cdef Py_ssize_t i = self.chosen
        if self.texts[j].size < 0:
            self._make(&self.other_work, j)
        a, b = self.texts[i].size, self.texts[j].size
        if a == 0 or b == 0:
            return 0.0
        needed = _least_shared(least, a, b)
        if needed > min(a, b):
            return 0.0
        if self.texts[i].part_bits or self.texts[j].part_bits:
            shared = self._count_by_parts(i, j, needed)
        else:
            shared = _kernels.set_count_shared(&self.chosen_work.set, &self.chosen_work.table, self._whole(j), needed)
        return _jaccard(shared, a, b) if shared >= needed else 0.0

    cdef size_t _count_by_parts(self, Py_ssize_t i, Py_ssize_t j, size_t needed) except? 0 nogil:
        """Count the shared shingles of two texts, at least one of which is too large to be in memory as a whole."""
        cdef uint32_t part_bits = max(self.texts[i].part_bits, self.texts[j].part_bits)
        cdef size_t shared = 0, left = <size_t> self.texts[i].size
        cdef uint64_t part
        cdef const lsh_set *other = NULL
        for part in range(<uint64_t> 1 << part_bits):
            if self.texts[i].part_bits:
                self._open(&self.chosen_work, i)
                self._fill(&self.chosen_work, part_bits, part)
                left -= _size(&self.chosen_work.set)
            if self.texts[j].part_bits == 0:
                other = self._whole(j)
            elif i == j:
                other = &self.chosen_work.set
            else:
                self._open(&self.other_work, j)
                self._fill(&self.other_work, part_bits, part)
                other = &self.other_work.set
            shared += _kernels.set_count_shared(&self.chosen_work.set, &self.chosen_work.table, other, 0)
            if shared + left < needed:
                break
        return shared

    def similarities(self, const int64_t[::1] firsts not None, const int64_t[::1] seconds not None, double least=0.0):
        """Return the similarity of text firsts[p] to seconds[p] for each p, float64; 0.0 where less than `least`."""
        cdef Py_ssize_t p, count = firsts.shape[0]
        if seconds.shape[0] != count:
            raise ValueError("firsts and seconds must be of the same length")
        for p in range(count):
            if not (0 <= firsts[p] < self.batch.count and 0 <= seconds[p] < self.batch.count):
                raise ValueError("firsts and seconds must lie within the batch")
        out = np.empty(count)
        cdef double[::1] view = out
        with nogil:
            for p in range(count):
                self.choose(firsts[p])
                view[p] = self.similarity_from(seconds[p], least)
        return out

    def matrix(self, Py_ssize_t rows, Py_ssize_t first_column):
        """Return the similarities of texts 0 .. rows - 1 to texts first_column .. count - 1, float64."""
        cdef Py_ssize_t i, j, columns = self.batch.count - first_column
        if not 0 <= first_column <= self.batch.count or not 0 <= rows <= self.batch.count:
            raise ValueError("rows and first_column must lie within the batch")
        out = np.empty((rows, columns))
        cdef double[:, ::1] view = out
        for i in range(rows):
            with nogil:
                self.choose(i)
                for j in range(columns):
                    view[i, j] = self.similarity(first_column + j)
            PyErr_CheckSignals()
        return out
