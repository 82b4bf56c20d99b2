# The C declarations of a column, for the batches, and the structs of the Arrow C data interface and C stream interface
# (https://arrow.apache.org/docs/format/CDataInterface.html), by which producers export their buffers.

from libc.stdint cimport int64_t, uint8_t


cdef struct ArrowSchema:
    const char *format
    const char *name
    const char *metadata
    int64_t flags
    int64_t n_children
    ArrowSchema **children
    ArrowSchema *dictionary
    void (*release)(ArrowSchema *) noexcept
    void *private_data


cdef struct ArrowArray:
    int64_t length
    int64_t null_count
    int64_t offset
    int64_t n_buffers
    int64_t n_children
    const void **buffers
    ArrowArray **children
    ArrowArray *dictionary
    void (*release)(ArrowArray *) noexcept
    void *private_data


cdef struct ArrowArrayStream:
    int (*get_schema)(ArrowArrayStream *, ArrowSchema *) noexcept nogil
    int (*get_next)(ArrowArrayStream *, ArrowArray *) noexcept nogil
    const char *(*get_last_error)(ArrowArrayStream *) noexcept
    void (*release)(ArrowArrayStream *) noexcept
    void *private_data


cdef enum Kind:
    NOTHING         # every text is missing
    OFFSETS_32      # offsets into one buffer
    OFFSETS_64
    VIEWS           # 16 bytes a text: short ones inside, others in one of several buffers
    FIXED           # all of one width
    PADDED          # the same, with NULs at the end that do not count


cdef enum Fault:
    NO_FAULT
    MISSING
    BAD_OFFSETS     # negative or descending
    BAD_VIEW        # outside its buffer
    BAD_INDEX       # outside the dictionary
    BAD_RUN         # after the last run


cdef struct Layout:
    # What a schema says.
    bint table      # the texts are the one column of a table
    char run        # Arrow's letter for the type of run ends, 0 where the texts are not run-end encoded
    char index      # Arrow's letter for the type of a dictionary's indices, 0 where there is no dictionary
    bint is_bytes   # the texts are bytes, not strings
    Kind kind
    Py_ssize_t width


cdef struct TextArray:
    # Where the texts of one array are; text i has place first + i in its buffers.
    Kind kind
    Py_ssize_t count
    Py_ssize_t first
    const uint8_t *validity     # a bit a place, NULL where none is missing
    const uint8_t *places       # offsets, views, indices, or the texts of one width themselves
    const uint8_t *bytes
    const void **buffers        # of views
    const uint8_t *sizes        # of these buffers
    Py_ssize_t num_buffers
    Py_ssize_t width
    Py_ssize_t stride


cdef class Column:
    cdef readonly bint is_bytes
    cdef readonly Py_ssize_t count
    cdef ArrowArray array       # ours to release
    cdef Py_buffer view         # or this one
    cdef const uint8_t *rows    # validity of the table's rows
    cdef Py_ssize_t first_row
    cdef char run
    cdef TextArray ends
    cdef Py_ssize_t first_place  # of the first text, among those that the run ends count
    cdef char index
    cdef TextArray indices
    cdef TextArray texts

    cdef Fault find(self, Py_ssize_t i, const uint8_t **text, Py_ssize_t *length) noexcept nogil
    cdef ArrowArray *_take_runs(self, ArrowArray *array, str name) except NULL
    cdef int _take(self, ArrowArray *array, Layout *layout, str name) except -1
