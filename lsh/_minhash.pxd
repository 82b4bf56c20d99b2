# The C face of the exact sets and of the chosen kernels, for _grouping.

from libc.stdint cimport int64_t, uint8_t, uint64_t

from lsh._batch cimport Batch
from lsh._kernels cimport lsh_kernels, lsh_set_slot, lsh_unit


cdef const lsh_kernels *chosen_kernels() noexcept nogil


cdef struct Words:
    # Scratch for one text whose words are joined.
    uint8_t *bytes
    size_t capacity


cdef class ShingleSets:
    cdef Batch batch
    cdef lsh_unit unit
    cdef size_t n
    cdef int flags                   # of enum lsh_normalisation
    cdef int64_t *sizes              # distinct shingles a text, -1 while unknown
    cdef Py_ssize_t chosen           # the text whose set is in the table, -1 for none
    cdef const uint8_t *chosen_text
    cdef Words chosen_words
    cdef Words other_words
    cdef lsh_set_slot *slots
    cdef size_t capacity             # slots, a power of two
    cdef size_t used                 # of them taken
    cdef uint64_t mark

    cdef int choose(self, Py_ssize_t i) except -1 nogil
    cdef double similarity(self, Py_ssize_t j) except -1.0 nogil
    cdef int _count_sizes(self, Py_ssize_t i, Py_ssize_t j) except -1 nogil
    cdef int _reserve(self, size_t count) except -1 nogil
