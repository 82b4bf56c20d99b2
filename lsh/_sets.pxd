# The C declarations of the exact sets, for _comparing.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from lsh._batch cimport Batch
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


cdef struct Cached:
    # What is cached of a text begins with this.
    size_t size                      # bytes, of all of it
    Py_ssize_t text


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
    # A cache. The oldest entries are overwritten.
    uint8_t *bytes
    size_t size
    size_t oldest                    # where the oldest entry is
    size_t newest_end                # where the newest one ends
    size_t end                       # where the oldest ones end, if the newest begin at 0 again
    bint wrapped                     # whether they do
    size_t count                     # entries


cdef struct Text:
    # A text and its set; all 0 while nothing is known.
    int64_t size                     # distinct shingles
    size_t places                    # shingles with repeats, where they are spans
    uint32_t cached[2]               # by cache: where its entry begins, in words of 64 bits, plus 1; 0 for none
    uint32_t part_bits               # its set is made in 2**part_bits parts, as it is large; 0 if it fits into memory
    bint known                       # whether size and places are


cdef class ShingleSets:
    cdef Batch batch
    cdef lsh_unit unit
    cdef size_t n
    cdef int flags                   # of enum lsh_normalisation
    cdef size_t max_shingles
    cdef lsh_set_secret secret
    cdef Text *texts
    cdef Py_ssize_t chosen           # -1 for none
    cdef Workspace chosen_work
    cdef Workspace other_work
    cdef Ring[2] rings               # by cache
    cdef object lock                 # held while a thread compares
    cdef size_t read                 # bytes of texts read so far, or what takes as long
    cdef size_t checked              # the same when signals were handled

    cdef void expect(self, Py_ssize_t j, bint bitmap) noexcept nogil
    cdef int choose(self, Py_ssize_t i) except -1 nogil
    cdef double similarity(self, Py_ssize_t j, double least) except -1.0 nogil
