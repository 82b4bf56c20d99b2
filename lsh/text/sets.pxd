# The C declarations of the exact sets, for _comparing.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from lsh.text.batch cimport Batch
from lsh._kernels cimport lsh_document, lsh_set, lsh_set_secret, lsh_set_table, lsh_span, lsh_unit
from lsh._minhash cimport Words


cdef struct Workspace:
    # The memory of one set and its table.
    lsh_set set
    lsh_set_table table
    lsh_span *spans                  # of the set, if it has any
    uint32_t *entries                # of the table, likewise
    void *memory                     # of the table, not yet aligned
    size_t buckets                   # allocated
    size_t span_buckets              # likewise, for spans and entries
    uint64_t *bits                   # the bitmaps of the set: that of 1 << log words begins at bits + (1 << log)
    size_t bits_size                 # words allocated
    uint32_t num_bitmaps             # their log is 0 to num_bitmaps - 1
    size_t ones[32]                  # by log: how many bits of a bitmap are 1
    size_t places                    # shingles with repeats of the set, where they are spans
    size_t asked                     # comparisons with this set
    Words words
    lsh_document document            # text `prepared`, as it is shingled
    Py_ssize_t prepared              # -1 for none
    Py_ssize_t whole                 # the text all of whose set is here, -1 for none
    Py_ssize_t split                 # the text whose shingles are counted by parts, -1 for none
    uint32_t split_bits              # there are 2**split_bits parts
    uint32_t split_zero              # as `zero` of a set
    uint64_t split_first, split_stop  # the parts whose shingles are here
    size_t *split_counts             # by part: the shingles, with repeats
    size_t *split_ends               # of those that are here: where each part ends
    uint64_t *split_tokens           # the shingles part by part: tokens, or else spans
    lsh_span *split_spans
    size_t split_capacity[2]         # places allocated for tokens and for spans


cdef struct Cached:
    # What is cached of a text begins with this, at a multiple of CACHE_UNIT bytes.
    size_t units                     # of CACHE_UNIT bytes, of all of it
    Py_ssize_t text                  # -1 of none


cdef struct CachedSet:
    # A set. Its tokens and spans follow, and the text if it is not part of a batch.
    Cached head
    lsh_set set


cdef struct CachedBitmap:
    # A bitmap of a set. Its words follow.
    Cached head
    uint32_t log                     # it has 1 << log words
    uint32_t ones                    # how many bits are 1


cdef enum:
    SETS, BITMAPS  # the two caches


cdef struct Ring:
    # A cache, in which new entries take the place of the oldest ones. Places go on from round to round: place p is at
    # byte p % size, and newest_end - size <= oldest <= newest_end.
    uint8_t *bytes
    size_t size                      # a multiple of CACHE_UNIT
    uint64_t oldest                  # where the oldest entry is
    uint64_t newest_end              # where the newest one ends


cdef struct Text:
    # A text and its set; all 0 while nothing is known.
    size_t size                      # distinct shingles
    size_t places                    # shingles with repeats, where they are spans
    uint32_t[2] cached               # by cache: where its entry begins, in units, plus 1; 0 for none
    uint32_t part_bits               # its set is made in 2**part_bits parts, as it is large; 0 if it fits into memory
    uint32_t known                   # whether size, places and part_bits are


cdef struct Postings:
    # The texts of an index that have a shingle: columns[start] to columns[end - 1].
    uint32_t start, end


cdef struct Index:
    # An inverted index of some texts: which of them have a shingle.
    Py_ssize_t first                 # these are texts first .. first + count - 1
    size_t count
    Workspace work                   # the set of all their shingles, in order of number; its text is in work.words
    size_t used                      # bytes of that text
    size_t *ends                     # those of text k of the index are numbers[ends[k]] to numbers[ends[k + 1] - 1]
    uint32_t *numbers
    Postings *postings               # by number
    uint32_t *columns                # less `first`
    uint32_t *zeros                  # by text: as `zero` of its set
    uint32_t *shared                 # by text: the shingles that it shares with the text that it is compared with
    uint32_t *found                  # the numbers of that text's shingles
    size_t max_shingles              # distinct ones
    size_t max_texts


cdef size_t least_shared(double least, size_t a, size_t b) noexcept nogil


cdef class ShingleSets:
    cdef Batch batch
    cdef lsh_unit unit
    cdef size_t n
    cdef int flags                   # of enum lsh_normalisation
    cdef size_t max_shingles
    cdef size_t max_split
    cdef lsh_set_secret secret
    cdef Text *texts
    cdef Ring[2] rings               # by cache
    cdef Py_ssize_t chosen           # -1 for none
    cdef Workspace chosen_work
    cdef Workspace other_work
    cdef size_t read                 # bytes of texts read so far, or what takes as long
    cdef size_t checked              # the same when signals were handled

    cdef int _reserve_caches(self, size_t max_cached) except -1
    cdef void expect(self, Py_ssize_t j, bint bitmap) noexcept nogil
    cdef void expect_text(self, Py_ssize_t j) noexcept nogil
    cdef int choose(self, Py_ssize_t i) except -1 nogil
    cdef double similarity(self, Py_ssize_t j, double least) except -1.0 nogil
    cdef int _fill_matrix(self, double[:, :] out, Py_ssize_t first, Py_ssize_t stop, Py_ssize_t first_row) except -1
    cdef int _fill_block(self, double[:, :] out, Index *index, Py_ssize_t first, Py_ssize_t first_row) except -1 nogil
