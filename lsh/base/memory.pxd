# Memory for the compiled modules, and the alignment of callers' arrays: inline functions.

from libc.stdlib cimport realloc


cdef inline void *resize(void *memory, size_t count, size_t size) except NULL nogil:
    """Resize memory to `count` items of `size` bytes; NULL is memory of size 0, and free() accepts the result.

    Raises MemoryError if there is not enough memory, also where the number of bytes does not fit into a size_t.
    """
    cdef size_t most = <size_t> -1 // 2
    cdef void *resized = NULL
    if count <= most // max(size, <size_t> 1):
        resized = realloc(memory, max(count * size, <size_t> 1))
    if resized == NULL:
        with gil:
            raise MemoryError()
    return resized


cdef inline int check_aligned(const void *first, size_t size) except -1:
    """Check that the elements of an array, of `size` bytes each, lie at multiples of their size, as C expects."""
    if <size_t> first % size:
        raise ValueError("arrays must be aligned; numpy.require(array, requirements='A') gives an aligned copy")
    return 0
