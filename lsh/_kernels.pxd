# The kernels as Cython sees them: the only `cdef extern` of the package. The contracts are in kernels/kernels.h. Of the
# interpreter's C API it declares the functions that read texts whose owner is alive, without a reference and the GIL.

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "_murmur3.h" nogil:
    uint32_t lsh_murmur3_x86_32(const uint8_t *data, size_t length, uint32_t seed)
    void lsh_murmur3_x86_128(const uint8_t *data, size_t length, uint32_t seed, uint32_t *out)
    void lsh_murmur3_x64_128(const uint8_t *data, size_t length, uint32_t seed, uint64_t *out)


cdef extern from "kernels/passages.h" nogil:
    uint64_t lsh_context_key(const uint8_t *text, size_t length, uint64_t salt, const uint64_t *secret)
    size_t lsh_common_after(const uint8_t *a, const uint8_t *b, size_t limit)
    size_t lsh_common_before(const uint8_t *a, const uint8_t *b, size_t limit)


cdef extern from "kernels/contained.h" nogil:
    enum:
        LSH_SCANNED

    ctypedef struct lsh_filter:
        uint64_t *words
        uint64_t mask

    ctypedef struct lsh_begins:
        uint32_t *words

    ctypedef struct lsh_entries:
        const uint32_t *directory
        const uint32_t *entries
        int shift

    ctypedef struct lsh_wanted:
        uint32_t limit
        lsh_begins begins
        lsh_filter hashes
        const lsh_entries *table

    ctypedef struct lsh_shingles:
        const uint8_t *text
        const size_t *starts
        size_t length
        size_t count
        size_t n
        size_t gap

    uint32_t lsh_begin_value(const uint8_t *bytes, size_t length)
    uint64_t lsh_shingle_hash(const uint8_t *bytes, size_t length)
    void lsh_hash_shingles(const lsh_shingles *shingles, uint64_t *hashes)
    void lsh_filter_add(const lsh_filter *filter, uint64_t hash)
    lsh_begins lsh_make_begins(uint32_t *words, size_t count)
    void lsh_begins_add(const lsh_begins *begins, uint32_t value)
    size_t lsh_keep_known(const lsh_entries *table, uint32_t *found, const uint64_t *hashes, uint32_t *entries,
                          size_t count)
    size_t lsh_find_wanted(const lsh_kernels *kernels, const lsh_wanted *wanted, const lsh_shingles *shingles,
                           uint32_t *found, uint64_t *hashes)


cdef extern from "kernels/target.h" nogil:
    void lsh_prefetch(const void *place)


cdef extern from "kernels/utf8.h" nogil:
    int lsh_is_ascii(const uint8_t *text, size_t length)
    size_t decode_utf8(const uint8_t *p, size_t left, uint32_t *code_point)


cdef extern from "Python.h" nogil:
    PyObject *PyTuple_GET_ITEM(PyObject *tuple, Py_ssize_t i)
    bint PyBytes_Check(PyObject *value)
    char *PyBytes_AS_STRING(PyObject *value)
    Py_ssize_t PyBytes_GET_SIZE(PyObject *value)
    bint PyUnicode_Check(PyObject *value)
    bint PyUnicode_IS_ASCII(PyObject *text)
    size_t PyUnicode_KIND(PyObject *text)
    void *PyUnicode_DATA(PyObject *text)
    Py_ssize_t PyUnicode_GET_LENGTH(PyObject *text)


cdef extern from "kernels/kernels.h" nogil:
    void lsh_prefetch(const void *place)
    size_t lsh_utf8_size(const void *text, size_t length, size_t width)
    void lsh_utf8_encode(const void *text, size_t length, size_t width, uint8_t *out)

    cdef enum lsh_kind:
        LSH_ABSENT
        LSH_STRING
        LSH_NUMBER

    ctypedef struct lsh_text:
        const uint8_t *bytes
        size_t length

    ctypedef struct lsh_span:
        size_t start
        size_t length

    ctypedef struct lsh_field:
        lsh_kind kind
        lsh_text text

    size_t lsh_count_lines(const uint8_t *block, size_t size)
    size_t lsh_read_json(const uint8_t *block, size_t size, const lsh_text *names, size_t num_names, uint8_t *out,
                         lsh_field *found, lsh_span *spans)
    size_t lsh_read_lines(const uint8_t *block, size_t size, uint8_t separator, const size_t *places, size_t num_places,
                          size_t min_cells, size_t max_cells, lsh_field *found, lsh_span *spans)
    size_t lsh_read_csv(const uint8_t *block, size_t size, uint8_t separator, const size_t *places, size_t num_places,
                        size_t min_cells, size_t max_cells, uint8_t *out, lsh_field *found, lsh_span *spans,
                        size_t *used)

    cdef enum lsh_unit:
        LSH_BYTE
        LSH_CHAR
        LSH_WORD

    ctypedef struct lsh_shingler:
        pass

    void lsh_shingler_begin(lsh_shingler *walk, const uint8_t *text, size_t length, lsh_unit unit, size_t n)
    size_t lsh_shingler_next(lsh_shingler *walk, lsh_span *spans, size_t capacity)
    size_t lsh_join_words(const uint8_t *text, size_t length, const uint8_t *word_table, uint8_t *out)

    size_t lsh_next_words(const uint8_t *text, size_t length, const uint8_t *word_table, size_t *at, lsh_span *spans,
                          size_t capacity)

    cdef enum lsh_normalisation:
        LSH_LOWER
        LSH_STRIP
        LSH_COLLAPSE
        LSH_JOIN

    const uint32_t LSH_IN_WORD
    const uint32_t LSH_PUNCTUATION
    const uint32_t LSH_SPACE
    const uint32_t LSH_IRREGULAR

    size_t lsh_normalise_ascii(const uint8_t *text, size_t length, int flags, uint8_t *out)
    size_t lsh_normalise(const uint8_t *text, size_t length, int flags, const uint32_t *table, uint8_t *out,
                         size_t *marks, size_t num_marks)
    size_t lsh_unit_starts(const uint8_t *text, size_t length, lsh_unit unit, size_t *at, size_t *starts,
                           size_t capacity)

    enum:
        LSH_LANES
        LSH_TILE
        LSH_MAX_FSS

    ctypedef struct lsh_document:
        const uint8_t *text
        size_t length
        lsh_unit unit
        size_t n

    ctypedef struct lsh_scratch:
        uint64_t *state
        uint32_t **word_hashes
        const uint8_t *word_table

    enum:
        LSH_SET_KEY
        LSH_SET_LANES
        LSH_SET_ROOM
    const uint32_t LSH_SET_NONE

    ctypedef struct lsh_set_secret:
        uint64_t odd[2]

    ctypedef struct lsh_set:
        const uint8_t *text
        uint64_t *tokens
        lsh_span *spans
        size_t width
        size_t count
        size_t capacity
        uint32_t zero

    ctypedef struct lsh_set_table:
        uint64_t *lanes
        uint8_t *filled
        uint32_t *entries
        size_t buckets
        uint32_t shift
        uint32_t part_bits
        const uint64_t *bits
        size_t bits_mask

    enum:
        LSH_GRAM

    ctypedef struct lsh_anchor:
        size_t place
        size_t first

    ctypedef struct lsh_anchor_walk:
        const uint8_t *text
        size_t length
        size_t window
        size_t next

    struct lsh_kernels:
        const char *level
        void (*min_murmur3_32)(const lsh_document *document, const uint32_t *seeds, size_t k, lsh_scratch *scratch,
                               int32_t *minima) noexcept nogil
        void (*min_murmur3_64)(const lsh_document *document, const uint32_t *seeds, size_t k, lsh_scratch *scratch,
                               uint64_t *minima) noexcept nogil
        void (*fss)(const lsh_document *document, uint32_t seed, const uint32_t *ranks, size_t k,
                    lsh_scratch *scratch, uint32_t *fingerprint) noexcept nogil
        size_t (*count_equal_8)(const uint8_t *a, const uint8_t *b, size_t k) noexcept nogil
        size_t (*count_equal_32)(const uint32_t *a, const uint32_t *b, size_t k) noexcept nogil
        size_t (*count_equal_64)(const uint64_t *a, const uint64_t *b, size_t k) noexcept nogil
        void (*pack_low_bits)(const uint8_t *bytes, size_t k, size_t bits, uint64_t *packed) noexcept nogil
        size_t (*find_similar)(const uint64_t *row, const uint64_t *rows, size_t words, size_t bits, size_t most,
                               size_t count) noexcept nogil
        size_t (*filter_8)(const uint8_t *matrix, size_t k, size_t least, size_t document, int32_t *others,
                           int32_t *along, size_t count) noexcept nogil
        void (*band_keys_32)(const uint32_t *rows, size_t count, size_t row_stride, const size_t *bounds,
                             size_t num_bands, uint64_t *keys, size_t stride) noexcept nogil
        void (*band_keys_64)(const uint64_t *rows, size_t count, size_t row_stride, const size_t *bounds,
                             size_t num_bands, uint64_t *keys, size_t stride) noexcept nogil
        size_t (*set_add_keys)(lsh_set *set, const lsh_set_table *table, const lsh_set_secret *secret, uint64_t part,
                               size_t length, size_t first) noexcept nogil
        void (*set_add_spans)(lsh_set *set, const lsh_set_table *table, const lsh_set_secret *secret, uint64_t part,
                              const lsh_span *spans, size_t count) noexcept nogil
        void (*set_enter)(const lsh_set *set, const lsh_set_table *table, size_t first) noexcept nogil
        void (*set_find)(const lsh_set *set, const lsh_set_table *table, const lsh_set *other,
                         uint32_t *entries) noexcept nogil
        size_t (*set_count_shared)(const lsh_set *set, const lsh_set_table *table, const lsh_set *other,
                                   size_t least) noexcept nogil
        size_t (*set_most_shared)(const lsh_set *set, const lsh_set_table *table, const lsh_set_secret *secret,
                                  const uint8_t *text, size_t length, size_t least) noexcept nogil
        size_t (*set_most_spans)(const lsh_set_table *table, const lsh_set_secret *secret, const uint8_t *text,
                                 const lsh_span *spans, size_t count) noexcept nogil
        int (*set_split_keys)(const lsh_set_secret *secret, size_t width, const uint8_t *text, size_t length,
                              uint32_t part_bits, uint64_t first, uint64_t parts, size_t *at,
                              uint64_t *tokens) noexcept nogil
        void (*set_split_spans)(const lsh_set_secret *secret, const uint8_t *text, const lsh_span *spans, size_t count,
                                uint32_t part_bits, uint64_t first, uint64_t parts, size_t *at,
                                lsh_span *out) noexcept nogil
        void (*set_add_tokens)(lsh_set *set, const lsh_set_table *table, const uint64_t *tokens,
                               size_t count) noexcept nogil
        void (*set_mark)(const lsh_set *set, uint64_t *bits, size_t words) noexcept nogil
        size_t (*count_common)(const uint64_t *a, const uint64_t *b, size_t words) noexcept nogil
        size_t (*next_anchors)(lsh_anchor_walk *walk, lsh_anchor *found, size_t capacity) noexcept nogil

    const lsh_kernels *lsh_kernels_find(const char *level)
    void lsh_fss_ranks(size_t k, uint32_t *permutation, uint32_t *ranks)

    void lsh_content_keys(const uint8_t *const *texts, const Py_ssize_t *lengths, size_t count, const uint64_t *key,
                          uint64_t *out)

    size_t lsh_bucket_slots(size_t entered)
    size_t lsh_find_buckets(void *keys, size_t key_bytes, size_t documents, const int32_t *order, size_t count,
                            size_t entered, uint64_t *records, uint32_t *table)

    const size_t LSH_CHANGED
    size_t lsh_select_part(const void *keys, size_t key_bytes, const uint8_t *chosen, size_t count, uint32_t part,
                           uint32_t parts, void *selected, int32_t *documents)

    enum:
        LSH_NOTHING

    size_t lsh_bins_find(const uint64_t *keys, const uint32_t *heads, size_t mask, uint64_t key)
    void lsh_bins_free(uint64_t *keys, uint32_t *heads, size_t mask, size_t slot)

    enum lsh_fault:
        LSH_SOUND
        LSH_BAD_BLOCK
        LSH_BAD_NUMBER
        LSH_BAD_ORDER

    enum:
        LSH_BLOCK
        LSH_FOUND
        LSH_LOOKUPS
        LSH_PIECE

    ctypedef void (*lsh_hash)(const uint8_t *data, size_t length, uint32_t seed, uint64_t *out) noexcept nogil

    ctypedef struct lsh_blocks:
        const uint8_t *file
        size_t size
        const uint8_t *sums
        uint8_t *checked
        lsh_hash hash

    void lsh_block_sums(const uint8_t *data, size_t size, lsh_hash hash, uint8_t *sums)
    size_t lsh_check_blocks(const lsh_blocks *blocks, const uint8_t *start, size_t length)

    ctypedef struct lsh_sorted:
        const uint8_t *keys
        const uint8_t *numbers
        size_t count
        const lsh_blocks *blocks

    ctypedef struct lsh_numbered_key:
        pass

    lsh_numbered_key *lsh_sort_keys(const uint64_t *keys, const uint32_t *numbers, size_t count,
                                    lsh_numbered_key *records, lsh_numbered_key *other)

    ctypedef struct lsh_sorted_output:
        uint8_t *keys
        uint8_t *numbers
        size_t capacity
        size_t count

    void lsh_put_keys(lsh_sorted_output *out, const lsh_numbered_key *records, size_t count)

    ctypedef struct lsh_run:
        uint32_t start
        uint32_t stop

    lsh_fault lsh_find_keys(const lsh_sorted *sorted, const uint64_t *keys, size_t count, lsh_run *runs, size_t *block)
    lsh_fault lsh_check_keys(const lsh_sorted *sorted, size_t documents, size_t first, size_t count, size_t *block)

    ctypedef struct lsh_segment:
        const lsh_sorted *bands
        size_t num_bands
        size_t documents
        const uint8_t *removed
        const uint8_t *sketches
        size_t k
        size_t width
        const lsh_blocks *blocks
        const lsh_kernels *kernels

    ctypedef struct lsh_search:
        const uint64_t *keys
        const uint8_t *rows
        size_t queries
        size_t least
        size_t most
        lsh_run *runs
        uint32_t *tallies
        size_t block
        size_t query
        size_t work

    ctypedef struct lsh_matches:
        int64_t *bounds
        uint32_t *numbers
        uint16_t *equal
        size_t count
        size_t capacity

    lsh_fault lsh_search_next(const lsh_segment *segment, lsh_search *search, lsh_matches *matches)

    ctypedef struct lsh_merge_part:
        const lsh_sorted *sorted
        const uint32_t *renumbered
        uint32_t first
        size_t documents
        size_t at

    ctypedef struct lsh_merge:
        lsh_merge_part *parts
        size_t num_parts
        size_t share
        lsh_numbered_key *records
        lsh_numbered_key *other
        size_t left
        size_t part
        size_t block

    lsh_fault lsh_merge_count(lsh_merge_part *part, size_t *kept, size_t *block)
    lsh_fault lsh_merge_next(lsh_merge *merge, lsh_sorted_output *out)
