# The C declarations of a table of items, for the search.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from lsh cimport _kernels as c
from lsh.passages.walks cimport ShingleTable, Walk


cdef struct Item:
    size_t longest                   # units of the longest window
    uint32_t different, shingles     # its different shingles, and those of them that count
    uint32_t need, bar               # how many of these a window needs, and how many of those in the table
    uint32_t state                   # a place in REASONS


cdef struct Ranked:
    # A shingle of an item; those with a lower rank are looked up before others.
    uint64_t rank, hash
    size_t place, length
    uint32_t begin


cdef size_t power_of_two(size_t least) noexcept nogil


cdef class ItemTable:
    cdef int unit, flags
    cdef size_t n, size, max_size, room, done
    cdef bint is_regular
    cdef object apply
    cdef double window, threshold
    cdef uint32_t min_shared
    cdef uint8_t *data               # the normalised items
    cdef size_t *bounds              # where they begin, and where the last one ends
    cdef Item *items
    cdef readonly size_t count
    cdef uint8_t[::1] single         # a bit for each item: whether one shingle is enough
    cdef uint8_t *ignored            # a bit for each byte of `data`: a shingle that begins there does not count
    cdef uint32_t[:, ::1] entries    # low half of the hash, and item, by the high bits of the hash
    cdef uint32_t[:, ::1] places     # where each is in its item, and its length; for a table of all shingles
    cdef uint32_t[::1] directory     # where the entries with some high bits begin
    cdef c.lsh_entries by_hash
    cdef uint64_t[::1] hash_words
    cdef uint32_t[::1] begin_words
    cdef c.lsh_wanted wanted

    cdef Walk walk(self)
    cdef size_t begin_item(self, Walk walk, size_t i) noexcept nogil
    cdef bint counts(self, const uint8_t *shingle) noexcept nogil
    cdef int _check(self, size_t i) except -1 nogil
    cdef int _measure(self, size_t i, Walk walk, ShingleTable own, uint8_t[::1] counters) except -1 nogil
    cdef uint32_t _least(self, uint32_t shingles) noexcept nogil
    cdef int _fill(self, Walk walk, ShingleTable own, const uint8_t[::1] counters, size_t total,
                   bint all_shingles) except -1
    cdef int _distribute(self, const uint64_t[::1] hashes, const uint32_t[:, ::1] rows,
                         const uint32_t[:, ::1] places) except -1
    cdef size_t _choose(self, Item *item, Ranked *ranked) noexcept nogil
    cdef int _rank(self, size_t i, Walk walk, ShingleTable own, const uint8_t[::1] counters,
                   Ranked *ranked) except -1 nogil
    cdef size_t start(self, uint64_t hash) noexcept nogil
    cdef size_t stop(self, uint64_t hash) noexcept nogil
    cdef size_t first_equal(self, uint64_t hash, const uint8_t *bytes, size_t length) noexcept nogil
    cdef const uint8_t *_bytes_at(self, size_t entry) noexcept nogil
