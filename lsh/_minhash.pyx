# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Shingles, hashes and minima over batches of raw bytes.

Sizes are checked here, scratch memory is allocated and freed, and the GIL is released while the kernels run. Defaults
and the meaning of parameters are defined in `lsh.text.shingling` and `lsh.sketch.hasher`. The kernels are linked into
this module; others reach them through its .pxd. Band keys are here, too: they are hashes of components.
"""

from cython cimport final
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.unicode cimport Py_UNICODE_ISALNUM, Py_UNICODE_ISSPACE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcpy, memset

from lsh cimport _kernels as c
from lsh.text.batch cimport Batch
from lsh.base.memory cimport check_aligned, resize

from lsh.base.threads import end_if_stopped

import os
import threading

import numpy as np

cdef enum:
    MURMUR3_32 = 0
    MURMUR3_64 = 1
    FSS = 2
    ALIGNMENT = 64
    SHORT = 256  # bytes of a text for which the GIL is not released: to release it costs as much as the work
    MAX_KEPT = 4194304  # bytes of a text, or of its words' hashes, that scratch holds on to
    PIECE = 8388608  # bytes of a text that are hashed between two checks for signals
    PIECE_WORK = 134217728  # the same for murmur3, times the components
    SMALLEST_PIECE = 4096
    WORD_TABLE_SIZE = 139264  # a bit for each of 0x110000 code points

ctypedef fused unsigned_component:
    uint32_t
    uint64_t

ctypedef fused component:
    int32_t
    uint32_t
    uint64_t

UNIT_CODES = {"byte": c.LSH_BYTE, "char": c.LSH_CHAR, "word": c.LSH_WORD}
NORMALISATIONS = {"lowercase": c.LSH_LOWER, "strip_punctuation": c.LSH_STRIP, "collapse_whitespace": c.LSH_COLLAPSE}
SCHEME_CODES = {"murmur3_32": MURMUR3_32, "murmur3_64": MURMUR3_64, "fss": FSS}
LEVELS = ("avx512", "avx2", "neon", "baseline")
LEVEL_VARIABLE = "LSH_SIMD"


# ---- the level ----

def simd_levels():
    """Return the names of the levels that this build and this CPU have, the fastest first."""
    return tuple(level for level in LEVELS if c.lsh_kernels_find(level.encode()) != NULL)


def simd_level():
    """Return the level of the kernels; see `lsh.simd_level`."""
    return _kernels.level.decode()


cdef const c.lsh_kernels *_choose_kernels() except NULL:
    level = os.environ.get(LEVEL_VARIABLE) or None
    cdef const c.lsh_kernels *found
    found = c.lsh_kernels_find(NULL) if level is None else c.lsh_kernels_find(<bytes> os.fsencode(level))
    if found == NULL:
        raise ImportError(
            f"{LEVEL_VARIABLE} must name a level that this CPU has ({', '.join(simd_levels())}), got {level!r}; "
            "set one of them or unset the variable"
        )
    return found


cdef const c.lsh_kernels *_kernels = _choose_kernels()


cdef const c.lsh_kernels *chosen_kernels() noexcept nogil:
    return _kernels


# ---- signals ----

cdef int check_signals() except -1 nogil:
    """Handle pending signals; to be called several times a second while the GIL is released."""
    with gil:
        PyErr_CheckSignals()
        end_if_stopped()
    return 0


# ---- the hashes themselves ----

def murmur3_x86_32(const uint8_t[::1] data not None, uint32_t seed):
    """Return MurmurHash3_x86_32 of the bytes."""
    return c.lsh_murmur3_x86_32(&data[0] if data.shape[0] else NULL, data.shape[0], seed)


def murmur3_x86_128(const uint8_t[::1] data not None, uint32_t seed):
    """Return MurmurHash3_x86_128 of the bytes: four 32-bit words."""
    cdef uint32_t out[4]
    c.lsh_murmur3_x86_128(&data[0] if data.shape[0] else NULL, data.shape[0], seed, out)
    return out[0], out[1], out[2], out[3]


def murmur3_x64_128(const uint8_t[::1] data not None, uint32_t seed):
    """Return MurmurHash3_x64_128 of the bytes: two 64-bit words."""
    cdef uint64_t out[2]
    c.lsh_murmur3_x64_128(&data[0] if data.shape[0] else NULL, data.shape[0], seed, out)
    return out[0], out[1]


cdef void hash_x64_128(const uint8_t *data, size_t length, uint32_t seed, uint64_t *out) noexcept nogil:
    """The same for compiled callers."""
    c.lsh_murmur3_x64_128(data, length, seed, out)


# ---- words ----

cdef object _making = threading.Lock()
cdef uint8_t *_word_table = NULL  # a bit for each code point that belongs to a word; made once, kept for good


cdef int need_word_table() except -1:
    """Make the table of word characters: what `\\w` matches, str.isalnum and the underscore."""
    global _word_table
    cdef uint32_t code_point
    cdef uint8_t *table
    with _making:
        if _word_table != NULL:
            return 0
        table = <uint8_t *> resize(NULL, WORD_TABLE_SIZE, 1)
        memset(table, 0, WORD_TABLE_SIZE)
        for code_point in range(0x110000):
            if code_point == 95 or Py_UNICODE_ISALNUM(<Py_UCS4> code_point):
                table[code_point >> 3] |= <uint8_t> (1 << (code_point & 7))
        _word_table = table
    return 0


cdef uint32_t *_characters = NULL  # what lsh_normalise reads about each code point; made once, kept for good
cdef uint32_t _num_characters = 0  # code points that are in it: 0, those of ASCII, or all


cdef int need_character_table(bint beyond_ascii) except -1 nogil:
    """Make the table of characters that `normalise` needs: of ASCII, which is fast, or of all."""
    if _num_characters < (0x110000 if beyond_ascii else 0x80):
        with gil:
            _make_character_table(0x110000 if beyond_ascii else 0x80)
    return 0


def _make_character_table(uint32_t count):
    global _characters, _num_characters
    cdef uint32_t code_point, entry
    import unicodedata
    need_word_table()
    with _making:
        if _characters == NULL:
            _characters = <uint32_t *> resize(NULL, 0x110000, sizeof(uint32_t))
        category = unicodedata.category
        for code_point in range(_num_characters, count):
            text = chr(code_point)
            entry = c.LSH_IN_WORD if _word_table[code_point >> 3] >> (code_point & 7) & 1 else 0
            if category(text)[0] == "P":
                entry |= c.LSH_PUNCTUATION
            if Py_UNICODE_ISSPACE(<Py_UCS4> code_point):
                entry |= c.LSH_SPACE
            lower = text.lower()
            if len(lower) > 1 or lower == "\u03c3":  # a sigma has another form at the end of a word
                entry |= c.LSH_IRREGULAR
            _characters[code_point] = entry | <uint32_t> ord(lower[0])
        _num_characters = max(_num_characters, count)


cdef size_t normalise(const uint8_t *text, size_t length, int flags, uint8_t *out, size_t *marks,
                      size_t num_marks) noexcept nogil:
    """lsh_normalise for the other modules; needs the table of characters."""
    return c.lsh_normalise(text, length, flags, _characters, out, marks, num_marks)


cdef size_t normalise_ascii(const uint8_t *text, size_t length, int flags, uint8_t *out) noexcept nogil:
    """lsh_normalise_ascii for the other modules."""
    return c.lsh_normalise_ascii(text, length, flags, out)


cdef size_t unit_starts(const uint8_t *text, size_t length, c.lsh_unit unit, size_t *at, size_t *starts,
                        size_t capacity) noexcept nogil:
    """lsh_unit_starts for the other modules."""
    return c.lsh_unit_starts(text, length, unit, at, starts, capacity)


cdef int reserve_words(Words *words, size_t size) except -1 nogil:
    if size > words.capacity:
        words.bytes = <uint8_t *> resize(words.bytes, size, 1)
        words.capacity = size
    return 0


cdef int prepare_document(c.lsh_document *document, int flags, bint join, Words *words) except -1 nogil:
    """Prepare a document for shingling: normalise it if it is ASCII (batches hold other texts normalised) and join its
    words if `join`. The result is in `words` if it differs from the text. A character of an ASCII text is a byte.
    """
    cdef bint ascii = (flags or document.unit == c.LSH_CHAR) and c.lsh_is_ascii(document.text, document.length)
    if document.length == 0:
        return 0
    if ascii and document.unit == c.LSH_CHAR:
        document.unit = c.LSH_BYTE
    if ascii and flags:
        reserve_words(words, document.length)
        document.length = c.lsh_normalise_ascii(document.text, document.length, flags, words.bytes)
        document.text = words.bytes
    if join and document.unit == c.LSH_WORD and document.length:
        reserve_words(words, document.length)
        document.length = c.lsh_join_words(document.text, document.length, _word_table, words.bytes)
        document.text = words.bytes
    return 0


cdef void begin_shingles(c.lsh_shingler *walk, const c.lsh_document *document) noexcept nogil:
    """Begin the walk over the shingles of a document that is prepared."""
    c.lsh_shingler_begin(walk, document.text, document.length, document.unit, document.n)


cdef size_t next_shingles(c.lsh_shingler *walk, c.lsh_span *spans, size_t capacity) noexcept nogil:
    """Write the places of the next shingles, at most `capacity`, to `spans`; returns how many, 0 at the end."""
    return c.lsh_shingler_next(walk, spans, capacity)


def shingles(Batch batch not None, int unit, size_t n, int flags=0):
    """Return the shingles of each text: a list of lists of bytes, in order, with repeats."""
    cdef c.lsh_shingler walk
    cdef c.lsh_span span
    cdef c.lsh_document document
    cdef Words words = Words(NULL, 0)
    cdef Py_ssize_t i
    result = []
    need_word_table()
    try:
        for i in range(batch.count):
            found = []
            document = c.lsh_document(batch.texts[i], batch.lengths[i], <c.lsh_unit> unit, n)
            prepare_document(&document, flags, True, &words)
            begin_shingles(&walk, &document)
            while next_shingles(&walk, &span, 1):
                found.append(document.text[span.start:span.start + span.length])
            result.append(found)
    finally:
        free(words.bytes)
    return result


# ---- pieces of a long text, between which signals are handled ----

cdef size_t _char_from(const c.lsh_document *document, size_t at) noexcept nogil:
    """The first position from `at` on where a character begins: a character has at most three continuation bytes."""
    cdef size_t run = 0
    while at < document.length and (document.text[at] & 0xC0) == 0x80:
        run = 0
        while run < 3 and run < at and (document.text[at - 1 - run] & 0xC0) == 0x80:
            run += 1
        if run == 3:
            break
        at += 1
    return at


cdef size_t _space_from(const c.lsh_document *document, size_t at) noexcept nogil:
    """The position of the first space from `at` on; the length of the text if there is no space."""
    cdef const void *found = NULL
    if at < document.length:
        found = memchr(document.text + at, 32, document.length - at)
    return document.length if found == NULL else <const uint8_t *> found - document.text


cdef size_t _words_end(const c.lsh_document *document, size_t at, size_t words, const uint8_t *table) noexcept nogil:
    """Where the first `words` words from `at` on end; the length of the text if no other word follows."""
    cdef c.lsh_span spans[64]
    cdef size_t wanted, end
    while words:
        wanted = min(words, <size_t> 64)
        if c.lsh_next_words(document.text, document.length, table, &at, spans, wanted) < wanted:
            return document.length
        words -= wanted
    end = at
    return end if c.lsh_next_words(document.text, document.length, table, &at, spans, 1) else document.length


cdef bint _has_word(const c.lsh_document *document, size_t at, size_t stop, const uint8_t *table) noexcept nogil:
    """Tell whether a word begins from `at` on and before `stop`."""
    cdef c.lsh_span span
    return c.lsh_next_words(document.text, document.length, table, &at, &span, 1) and span.start < stop


cdef size_t _piece_end(const c.lsh_document *document, bint joined, size_t start, size_t size, const uint8_t *table,
                       size_t *following) noexcept nogil:
    """Where a piece of about `size` bytes from `start` on ends, so that its shingles are those that begin in it.

    The next piece begins at `following`, which is before that end. With the length of the text the piece is the last.
    """
    cdef uint32_t ignored
    cdef size_t at = start + size, units = document.n - 1, i = 0
    if document.length - start <= size or units >= document.length:
        return document.length
    if document.unit == c.LSH_BYTE:
        following[0] = at
        return min(at + units, document.length)
    if document.unit == c.LSH_CHAR:
        at = following[0] = _char_from(document, at)
        while i < units and at < document.length:
            at += c.decode_utf8(document.text + at, document.length - at, &ignored)
            i += 1
        return at
    at = _space_from(document, at)
    if not joined:
        following[0] = at
        return _words_end(document, at, units, table)
    following[0] = at + 1
    while i < units and at < document.length:
        at = _space_from(document, at + 1)
        i += 1
    return at


# ---- fingerprints ----

@final
cdef class _Scratch:
    """The memory of one thread at work: the scratch of the kernels, and rows and words of any size."""

    cdef void *memory
    cdef c.lsh_scratch *kernel
    cdef size_t state_size, word_size
    cdef uint64_t *row
    cdef Words words

    def __cinit__(self):
        self.memory = resize(NULL, sizeof(c.lsh_scratch) + ALIGNMENT, 1)
        self.kernel = <c.lsh_scratch *> ((<size_t> self.memory + ALIGNMENT) // ALIGNMENT * ALIGNMENT)
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
        """Allocate memory for `seeds` components and `words` hashes of words."""
        if 2 * seeds > self.state_size:
            self.kernel.state = <uint64_t *> resize(self.kernel.state, seeds, 2 * sizeof(uint64_t))
            self.row = <uint64_t *> resize(self.row, seeds, sizeof(uint64_t))
            self.state_size = 2 * seeds
        if words > self.word_size:
            for i in range(2):
                self.kernel.word_hashes[i] = <uint32_t *> resize(self.kernel.word_hashes[i], words, sizeof(uint32_t))
            self.word_size = words
        self.kernel.word_table = _word_table
        return 0


cdef object _frombuffer = np.frombuffer
cdef list _idle = []  # scratch that no thread uses; pop and append of a list are atomic


cdef _Scratch _take_scratch():
    try:
        return <_Scratch> _idle.pop()
    except IndexError:
        return _Scratch()


cdef int _give_back(_Scratch scratch) except -1:
    """Keep scratch for the next call, without the memory that a very long text needed."""
    if scratch.words.capacity > MAX_KEPT:
        free(scratch.words.bytes)
        scratch.words = Words(NULL, 0)
    if scratch.word_size * sizeof(uint32_t) > MAX_KEPT:
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
    cdef c.lsh_unit unit
    cdef size_t n, k, padded, itemsize
    cdef object dtype
    cdef uint32_t seed
    cdef uint32_t *words  # seeds or ranks, padded to whole vectors

    def __cinit__(self, int scheme, int unit, size_t n, const uint32_t[::1] seeds not None, size_t k,
                  int flags=0):
        cdef size_t i
        cdef uint32_t *permutation
        if unit == c.LSH_WORD:
            need_word_table()
        self.scheme, self.unit, self.n, self.k, self.seed = scheme, <c.lsh_unit> unit, n, k, seeds[0]
        self.flags = flags
        self.dtype = np.dtype(np.uint64 if scheme == MURMUR3_64 else np.uint32)
        self.itemsize = self.dtype.itemsize
        self.padded = (k + c.LSH_LANES - 1) // c.LSH_LANES * c.LSH_LANES
        self.words = <uint32_t *> resize(NULL, self.padded, sizeof(uint32_t))
        if scheme == FSS:
            permutation = <uint32_t *> resize(NULL, c.LSH_MAX_FSS, sizeof(uint32_t))
            c.lsh_fss_ranks(k, permutation, self.words)
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
        if self.scheme == MURMUR3_32:
            self._fill[int32_t](batch, out)
        elif self.scheme == MURMUR3_64:
            self._fill[uint64_t](batch, out)
        else:
            self._fill[uint32_t](batch, out)

    def one(self, text, transform=None):
        """Return the fingerprint of one text, shape ``(k,)``, uint32 or uint64, read-only; `transform`: see Batch."""
        cdef PyObject *held = <PyObject *> text
        cdef const uint8_t *ascii
        cdef Batch batch
        row = PyBytes_FromStringAndSize(NULL, self.k * self.itemsize)
        if c.PyUnicode_Check(held) and c.PyUnicode_IS_ASCII(held):  # no batch: it costs 100 ns
            ascii = <const uint8_t *> c.PyUnicode_DATA(held)
            self._fill_row(ascii, c.PyUnicode_GET_LENGTH(held), PyBytes_AS_STRING(row))
        elif isinstance(text, (str, bytes, bytearray, memoryview)):
            batch = Batch((text,), 0, False, transform)
            self._fill_row(batch.texts[0], batch.lengths[0], PyBytes_AS_STRING(row))
        else:
            remedy = "; for several texts, use fingerprints" if hasattr(type(text), "__len__") else ""
            raise TypeError(f"text must be str, bytes, bytearray or memoryview, got {type(text).__name__}{remedy}")
        return _frombuffer(row, self.dtype)

    cdef int _fill_row(self, const uint8_t *text, size_t length, void *row) except -1:
        cdef _Scratch scratch = self._scratch(length)
        if length <= SHORT:
            self._one(text, length, scratch, row)
        else:
            with nogil:
                self._one(text, length, scratch, row)
        _give_back(scratch)
        return 0

    cdef _Scratch _scratch(self, size_t longest):
        """Take scratch for texts of at most `longest` bytes."""
        cdef _Scratch scratch = _take_scratch()
        cdef size_t words = 0
        if self.scheme == FSS and self.unit == c.LSH_WORD and longest:
            words = min(self.n, longest) + c.LSH_TILE + c.LSH_LANES  # enough even if another thread changes the text
        scratch.reserve(self.padded, words)
        return scratch

    cdef int _fill(self, Batch batch, component[:, ::1] out) except -1:
        cdef _Scratch scratch
        cdef Py_ssize_t i
        cdef size_t longest = 0
        for i in range(batch.count):
            longest = max(longest, <size_t> batch.lengths[i])
        scratch = self._scratch(longest)
        with nogil:
            for i in range(batch.count):
                self._one(batch.texts[i], batch.lengths[i], scratch, &out[i, 0])
        _give_back(scratch)
        return 0

    cdef int _one(self, const uint8_t *text, size_t length, _Scratch scratch, void *out) except -1 nogil:
        cdef c.lsh_document document = c.lsh_document(text, length, self.unit, self.n)
        cdef int32_t *narrow = <int32_t *> scratch.row
        cdef size_t s
        prepare_document(&document, self.flags, self.scheme != FSS, &scratch.words)
        if self.scheme == FSS and document.length <= PIECE:
            _kernels.fss(&document, self.seed, self.words, self.k, scratch.kernel, <uint32_t *> out)
            return 0
        if self.scheme == MURMUR3_32:
            for s in range(self.padded):
                narrow[s] = 0x7FFFFFFF
        else:
            memset(scratch.row, 0xFF, self.padded * sizeof(uint64_t))
        self._add_pieces(&document, scratch, <uint32_t *> out)
        if self.scheme != FSS:
            memcpy(out, scratch.row, self.k * self.itemsize)
        return 0

    cdef int _add_pieces(self, c.lsh_document *document, _Scratch scratch, uint32_t *out) except -1 nogil:
        """Take the minima over the shingles of a text piece by piece: those of fss into `out`, others into the row."""
        cdef c.lsh_document piece = document[0]
        cdef size_t start = 0, following = 0, end = 0, s, size = PIECE
        cdef uint32_t *minima = <uint32_t *> scratch.row
        cdef bint first = True, skipped
        if self.scheme != FSS:
            size = max(<size_t> SMALLEST_PIECE, PIECE_WORK // self.k // (1 + min(self.n, document.length) // 16))
        while True:
            end = _piece_end(document, self.scheme != FSS, start, size, _word_table, &following)
            piece.text, piece.length = document.text + start, end - start
            if self.scheme == MURMUR3_32:
                _kernels.min_murmur3_32(&piece, self.words, self.padded, scratch.kernel, <int32_t *> minima)
            elif self.scheme == MURMUR3_64:
                _kernels.min_murmur3_64(&piece, self.words, self.padded, scratch.kernel, scratch.row)
            else:
                skipped = (piece.unit == c.LSH_WORD and end < document.length
                           and not _has_word(document, start, following, _word_table))
                if not skipped:
                    _kernels.fss(&piece, self.seed, self.words, self.k, scratch.kernel, out if first else minima)
                if not (first or skipped):
                    for s in range(self.k):
                        out[s] = min(out[s], minima[s])
                first = first and skipped
            if end == document.length:
                return 0
            start = following
            check_signals()


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
    cdef Py_ssize_t i, j
    cdef size_t width = a.itemsize
    found = np.zeros((len(a), len(b)), np.int64)
    cdef int64_t[:, ::1] out = found
    cdef const uint8_t[:, ::1] rows = a.view(np.uint8), others = b.view(np.uint8)
    cdef size_t k = rows.shape[1] // width
    check_aligned(&rows[0, 0], width)
    check_aligned(&others[0, 0], width)
    with nogil:
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                if width == 8:
                    out[i, j] = _kernels.count_equal_64(<const uint64_t *> &rows[i, 0],
                                                        <const uint64_t *> &others[j, 0], k)
                else:
                    out[i, j] = _kernels.count_equal_32(<const uint32_t *> &rows[i, 0],
                                                        <const uint32_t *> &others[j, 0], k)
    return found


# ---- band keys ----

def band_keys(rows not None, const size_t[::1] bounds not None, uint64_t[:, ::1] out not None):
    """Compute the key of each band of each fingerprint, as kernels.h defines it.

    Parameters
    ----------
    rows : numpy.ndarray
        Fingerprints, shape ``(n, k)``, uint32 or uint64; the components of a row lie side by side, the rows at any
        distance of k components or more, so that they may be the first columns of a wider matrix.
    bounds : numpy.ndarray
        uintp, shape ``(bands + 1,)``, ascending, at most k: band b covers components bounds[b] to bounds[b + 1] - 1.
    out : numpy.ndarray
        Receives the keys: uint64, shape ``(bands, n)``.
    """
    if rows.dtype == np.uint32:
        _band_keys[uint32_t](rows, bounds, out)
    else:
        _band_keys[uint64_t](rows, bounds, out)


cdef int _band_keys(const unsigned_component[:, :] rows, const size_t[::1] bounds, uint64_t[:, ::1] out) except -1:
    cdef size_t count = rows.shape[0], step = <size_t> rows.strides[0] // sizeof(unsigned_component)
    if count == 0:
        return 0
    check_aligned(&rows[0, 0], sizeof(unsigned_component))
    with nogil:
        if unsigned_component is uint64_t:
            chosen_kernels().band_keys_64(&rows[0, 0], count, step, &bounds[0], out.shape[0], &out[0, 0], count)
        else:
            chosen_kernels().band_keys_32(&rows[0, 0], count, step, &bounds[0], out.shape[0], &out[0, 0], count)
    return 0
