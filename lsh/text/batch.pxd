# The C declarations of a batch, for the other compiled modules.

from libc.stdint cimport uint8_t


cdef class Batch:
    cdef readonly Py_ssize_t count        # texts
    cdef const uint8_t **texts            # count pointers, into memory that is kept alive by what follows
    cdef Py_ssize_t *lengths              # bytes each
    cdef void *places                     # both of these arrays, unless they are part of another batch's
    cdef uint8_t *encoded                 # UTF-8 made here
    cdef object source                    # the texts as given: a tuple, a Column, a Batch or a list of them
    cdef list owners                      # bytes made here

    cdef int _reserve(self, source, Py_ssize_t count) except -1
