# The C face of a batch, for the modules of this floor.

from libc.stdint cimport uint8_t


cdef class Batch:
    cdef readonly Py_ssize_t count        # texts
    cdef readonly Py_ssize_t num_missing  # of them None
    cdef const uint8_t **texts            # count pointers, into objects that `owners` keeps alive
    cdef Py_ssize_t *lengths              # bytes each
    cdef list owners

    cdef int _take(self, Py_ssize_t i, Py_ssize_t first, bint missing, transform, str name) except -1
