# The C declarations of walks over shingles, for the search for items.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from lsh cimport _kernels as c
from lsh._minhash cimport Words


cdef class Walk:
    cdef c.lsh_unit unit
    cdef int flags
    cdef bint is_regular             # whether `flags` say all of the normalisation
    cdef object apply                # normalises a text by Python
    cdef const uint8_t *source       # the text as it was given, and its bytes
    cdef size_t length
    cdef const uint8_t *text         # normalised, in which words are joined by single spaces
    cdef size_t text_length
    cdef bint by_python              # whether Python normalised it
    cdef bint is_ascii               # a character is a byte
    cdef Words words
    cdef size_t *starts              # of the units from number `first` on
    cdef size_t capacity, held, at, first
    cdef c.lsh_shingles shingles     # those at work; the first begins at unit number `first`

    cdef int read(self, const uint8_t *text, size_t length) except -1 nogil
    cdef size_t _normalise(self, const uint8_t *text, size_t length) except? 0
    cdef void begin(self, const uint8_t *text, size_t length, bint is_ascii) noexcept nogil
    cdef size_t more(self) except? 0 nogil
    cdef const uint8_t *shingle(self, size_t i, size_t *length) noexcept nogil
    cdef int originals(self, size_t *places, size_t count) except -1 nogil
    cdef size_t begin_of(self, size_t place) noexcept nogil
    cdef size_t end_of(self, size_t place) noexcept nogil


cdef struct Known:
    # One of several different shingles.
    uint64_t hash
    const uint8_t *bytes
    size_t length
    bint counts                      # for the module that entered it, as `owner` is
    uint32_t owner


cdef class ShingleTable:
    cdef Known *known
    cdef uint32_t *slots             # places in `known`; open addressing
    cdef size_t count, capacity, num_slots

    cdef int begin(self, size_t most) except -1 nogil
    cdef size_t _slot(self, uint64_t hash, const uint8_t *bytes, size_t length) noexcept nogil
    cdef Known *find(self, uint64_t hash, const uint8_t *bytes, size_t length) noexcept nogil
    cdef Known *enter(self, uint64_t hash, const uint8_t *bytes, size_t length, bint *is_new) noexcept nogil
