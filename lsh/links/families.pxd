# The C declarations of families, for `engine.deciding`.

cimport cython
from libc.stdint cimport int32_t, uint32_t, uint64_t

from lsh.links.comparing cimport Similarity


cdef struct Kept:
    # A document of a family.
    int32_t document
    uint32_t rare                    # how many of its rare shingles it shares with the one that it is compared with
    double size                      # its shingles
    size_t common                    # how many of them are bits


cdef enum:
    BLOCK = 64                       # documents
    SIZES = 128                      # classes of sizes, four for each power of two


cdef struct Block:
    # Some documents of a family whose sizes are about the same.
    double min_size
    size_t max_common
    uint32_t count
    uint32_t[BLOCK] members


cdef struct Token:
    # A slot of a table: a shingle, and what is known of it. Free while `value` is 0.
    uint64_t token
    uint32_t value
    uint32_t count                   # of a rare shingle: its postings


cdef struct TokenTable:
    Token *slots
    size_t mask
    size_t used


cdef struct List:
    uint32_t head                    # the next posting that is read, plus 1
    uint32_t count                   # how many there are in all


cdef struct Posting:
    uint32_t kept                    # a document of a family that has a rare shingle
    uint32_t following               # the next posting of this shingle plus 1, 0 at the end


@cython.final
cdef class Family:
    cdef Similarity similarity
    cdef readonly bint is_dense      # whether most that are kept get past the filter
    cdef size_t asked                # how many documents were compared
    cdef size_t bits                 # of each component
    cdef size_t low_words            # words for one bit of each
    cdef uint64_t *low_bits          # of those that are kept, and of the document that is compared
    cdef Py_ssize_t first, stop      # from here on, all for dense families
    cdef size_t most_bytes
    cdef size_t num_mapped           # how many of those that are kept have bitmaps
    cdef size_t room_mapped
    cdef TokenTable common           # 1 + the bit of a shingle that many have
    cdef TokenTable rare             # 1 + the first posting of another one
    cdef uint64_t *seen              # by hash of a rare shingle: whether one document has it, and whether several do
    cdef size_t seen_mask
    cdef size_t words                # of the bitmap of a document
    cdef uint64_t *bitmaps
    cdef Kept *kept
    cdef Block *blocks
    cdef size_t num_blocks
    cdef uint32_t[SIZES] last_blocks  # by class of sizes: 1 + the block that is filled, 0 if there is none
    cdef Posting *postings
    cdef size_t num_kept, num_postings, room_kept, room_postings
    cdef Py_ssize_t loaded           # the document whose shingles are here
    cdef double size
    cdef size_t num_common           # how many of them are bits
    cdef uint32_t zeros              # how many of them are of zeros only, which are in no table
    cdef uint64_t *bitmap
    cdef uint64_t *tokens            # the rare ones that several documents have
    cdef List *lists                 # of those that others have, too
    cdef uint32_t *begun             # by number of lists that are left out: how many blocks have to be looked at then
    cdef size_t num_tokens, room_tokens

    cdef int add(self, int32_t document) except -1 nogil
    cdef Py_ssize_t most_similar(self, int32_t document, double least, int32_t *found) except -1 nogil
    cdef void _pack(self, int32_t document) noexcept nogil
    cdef void _look(self, Py_ssize_t passed, size_t first) noexcept nogil
    cdef Py_ssize_t _passing(self, int32_t document, size_t first, int32_t *found) except -1 nogil
    cdef int _map(self, int32_t document, size_t i) except -1 nogil
    cdef void _put_into_block(self, uint32_t i) noexcept nogil
    cdef int _map_all(self) except -1 nogil
    cdef Py_ssize_t _by_shingles(self, int32_t document, double least, int32_t *found) except -1 nogil
    cdef double _lacking(self, double size, size_t common, double share) noexcept nogil
    cdef bint _has_enough(self, const Kept *one, size_t more, double share, double min_similarity) noexcept nogil
    cdef size_t _find_lists(self, size_t *num_long) noexcept nogil
    cdef size_t _num_left_out(self, size_t num_long, double share) noexcept nogil
    cdef int _load(self, int32_t document) except -1 nogil
    cdef int _sample(self, Py_ssize_t first, Py_ssize_t stop) except -1 nogil
    cdef size_t num_bytes(self) noexcept nogil
    cdef int _see(self, Py_ssize_t first, Py_ssize_t stop, size_t most_bytes) except -1 nogil
    cdef const uint64_t *_tokens_of(self, Py_ssize_t document, size_t *count) except? NULL nogil
