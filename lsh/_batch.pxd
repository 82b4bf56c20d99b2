# The C face of a batch, for the modules of this floor.

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t

from lsh._columns cimport Column


cdef class Batch:
    cdef readonly Py_ssize_t count        # texts
    cdef const uint8_t **texts            # count pointers, into memory that is kept alive by what follows
    cdef Py_ssize_t *lengths              # bytes each
    cdef void *places                     # both of these arrays, unless they are part of another batch's
    cdef uint8_t *encoded                 # UTF-8 made here
    cdef object source                    # what was handed in: a tuple, a Column, a Batch or a list of them
    cdef list owners                      # bytes made here

    cdef int _reserve(self, source, Py_ssize_t count) except -1
    cdef int _take_tuple(self, tuple texts, Py_ssize_t start, Py_ssize_t first, bint missing, str name) except -1
    cdef void _take_bytes(self, Py_ssize_t i, PyObject *text) noexcept
    cdef Py_ssize_t _take_str(self, Py_ssize_t i, PyObject *text) noexcept
    cdef int _take_other(self, Py_ssize_t i, text, Py_ssize_t position, bint missing, str name) except -1
    cdef int _encode(self, tuple texts, Py_ssize_t start, Py_ssize_t size) except -1
    cdef int _take_column(self, Column column, Py_ssize_t start, Py_ssize_t first, bint missing, str name) except -1
    cdef int _own(self, Py_ssize_t i, bytes text) except -1
    cdef int _transform(self, transform) except -1
