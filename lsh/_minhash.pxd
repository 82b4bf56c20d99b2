# The C declarations of the chosen kernels and of the preparation of texts for shingling.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from lsh._kernels cimport lsh_document, lsh_kernels, lsh_shingler, lsh_span, lsh_unit


cdef const lsh_kernels *chosen_kernels() noexcept nogil


cdef struct Words:
    # Scratch for one text whose words are joined.
    uint8_t *bytes
    size_t capacity


cdef int check_signals() except -1 nogil
cdef void hash_x64_128(const uint8_t *data, size_t length, uint32_t seed, uint64_t *out) noexcept nogil
cdef int need_word_table() except -1
cdef int need_character_table(bint beyond_ascii) except -1 nogil
cdef size_t normalise(const uint8_t *text, size_t length, int flags, uint8_t *out, size_t *marks,
                      size_t num_marks) noexcept nogil
cdef size_t normalise_ascii(const uint8_t *text, size_t length, int flags, uint8_t *out) noexcept nogil
cdef size_t unit_starts(const uint8_t *text, size_t length, lsh_unit unit, size_t *at, size_t *starts,
                        size_t capacity) noexcept nogil
cdef int reserve_words(Words *words, size_t size) except -1 nogil
cdef void begin_shingles(lsh_shingler *walk, const lsh_document *document) noexcept nogil
cdef size_t next_shingles(lsh_shingler *walk, lsh_span *spans, size_t capacity) noexcept nogil
cdef int prepare_document(lsh_document *document, int flags, bint join, Words *words) except -1 nogil
