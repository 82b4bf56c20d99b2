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
    uint64_t *bits                   # the filter of the table, if it is made
    size_t bits_size                 # words allocated
    size_t places                    # shingles with repeats of the set, where they are spans
    size_t asked                     # comparisons with this set
    Words words
    lsh_document document            # text `prepared`, as it is shingled
    Py_ssize_t prepared              # -1 for none
    Py_ssize_t whole                 # the text all of whose set is here, -1 for none


cdef struct CachedSet:
    # A set in the cache; its tokens and spans follow, and the text if it is not part of a batch.
    size_t size                      # bytes, of all of it
    Py_ssize_t text
    lsh_set set


cdef struct Text:
    # A text and its set.
    int64_t size                     # distinct shingles, -1 while unknown
    size_t places                    # shingles with repeats, where they are spans and `size` is known
    CachedSet *cached                # NULL for none
    uint32_t part_bits               # its set is made in 2**part_bits parts, as it is large; 0 if it fits into memory


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
    cdef uint8_t *ring               # the cache
    cdef size_t ring_size
    cdef size_t oldest               # where the oldest set is
    cdef size_t newest_end           # where the newest one ends
    cdef size_t ring_end             # where the oldest ones end, if the newest begin at 0 again
    cdef bint wrapped                # whether they do
    cdef size_t num_cached           # sets there
    cdef object lock                 # held while a thread compares
    cdef size_t unchecked            # bytes of texts read since signals were handled

    cdef int choose(self, Py_ssize_t i) except -1 nogil
    cdef double similarity(self, Py_ssize_t j, double least) except -1.0 nogil
