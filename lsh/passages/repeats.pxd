# The C declarations of tables of keys and of runs of text.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from lsh._kernels cimport lsh_anchor, lsh_anchor_walk, lsh_kernels


cdef uint64_t context_key(const uint8_t *text, size_t length, uint64_t salt, const uint64_t *secret) noexcept nogil
cdef bint is_begin(const uint8_t *text, size_t at) noexcept nogil
cdef size_t begin_from(const uint8_t *text, size_t at, size_t stop) noexcept nogil
cdef size_t end_from(const uint8_t *text, size_t at, size_t length) noexcept nogil


cdef class KeyTable:
    cdef object make                  # returns an array of a length and a dtype, of any content
    cdef object arrays                # keeps both alive
    cdef uint64_t *keys               # of each slot; 0: free
    cdef uint32_t *heads              # a number for each key, 0 to begin with
    cdef size_t slots, used

    cdef int _allocate(self, size_t slots) except -1
    cdef size_t find(self, uint64_t key) noexcept nogil
    cdef bint has(self, uint64_t key) noexcept nogil
    cdef uint32_t *enter(self, uint64_t key) except NULL nogil


cdef struct Side:
    # The windows of an anchor by how far before it they begin, and what all of these contain.
    size_t low, high


cdef struct Shift:
    # Bytes that are equal to those `step` before them: from `start` to `stop`.
    size_t step, start, stop


cdef struct KnownKey:
    size_t place                      # of the anchor
    uint64_t key                      # 0: none
    Shift shift


cdef bint is_shifted(Shift *known, const uint8_t *text, size_t step, size_t start, size_t stop) noexcept nogil


cdef class AnchorFinder:
    cdef const lsh_kernels *kernels
    cdef lsh_anchor_walk walk
    cdef lsh_anchor *anchors          # those of the text that are at hand
    cdef size_t count, capacity
    cdef bint is_complete             # and they are the last ones
    cdef KnownKey known[2]            # by side: of the last anchor
    cdef readonly size_t window
    cdef uint64_t secret[2]
    cdef Side sides[2]                # the windows with the bytes before an anchor, and those with the bytes after it

    cdef void begin(self, const uint8_t *text, size_t length) noexcept nogil
    cdef size_t more(self, size_t done) except? 0 nogil
    cdef bint windows(self, size_t i, Side side, size_t *first, size_t *last) noexcept nogil
    cdef uint64_t key(self, size_t place, Side side) noexcept nogil
    cdef uint64_t key_of_side(self, size_t place, size_t side) noexcept nogil
