# The C declarations of similarities, for `engine.deciding` and `families`, and of buckets.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from lsh._kernels cimport lsh_kernels
from lsh.text.sets cimport ShingleSets


cdef enum:
    RUN = 1 << 28  # bytes of work after which a walk returns, so that progress can be reported
    FILTERED = -1  # the value of a pair whose sketches differ too much
    LEFT_OUT = -2  # the value of a pair that is less similar than was asked for


cdef class Similarity:
    cdef int64_t work                      # bytes of the texts that were compared, or what took as long
    cdef int64_t checked                   # the work at the last check for signals
    cdef const lsh_kernels *kernels
    cdef ShingleSets sets
    cdef const uint8_t[:, ::1] matrix      # the bytes of sketches or fingerprints, kept alive
    cdef const uint8_t *first_row          # where they are
    cdef size_t width                      # bytes of a component
    cdef size_t k
    cdef const int32_t[::1] texts
    cdef size_t min_equal
    cdef readonly Py_ssize_t count

    cdef const uint8_t *_row(self, Py_ssize_t document) noexcept nogil
    cdef size_t _equal(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil
    cdef double value(self, Py_ssize_t i, Py_ssize_t j, double least) except -4.0 nogil
    cdef Py_ssize_t pass_filter(self, Py_ssize_t document, int32_t *others, int32_t *along,
                                Py_ssize_t count) except -1 nogil
    cdef void expect(self, const int32_t *others, Py_ssize_t count) noexcept nogil
    cdef void expect_text(self, Py_ssize_t document) noexcept nogil
    cdef bint passes(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil
    cdef int _worked(self, int64_t work) except -1 nogil
    cdef double exact(self, Py_ssize_t i, Py_ssize_t j, double least) except -4.0 nogil


cdef struct Bucket:
    # The groups that the documents of a bucket are divided into. A document is its place in the bucket.
    int32_t *heads                   # the first document of each group, if others are compared with it, ascending
    Py_ssize_t groups                # how many they are
    int32_t *chains                  # those of groups of more than one document, ascending
    Py_ssize_t chained               # how many these are
    int32_t *following               # by document: the next one of its group, -1 at the end
    int32_t *last                    # by the first document of a group: the last one
    int32_t *parents                 # by document: another one of its group, or itself; see base/components.pxd
