# Memory for the compiled modules: one inline function, which raises MemoryError where there is none left.

from libc.stdlib cimport realloc


cdef inline void *resize(void *memory, size_t size) except NULL nogil:
    """Give memory another size; NULL is memory of no size, and free() takes what is returned."""
    cdef void *resized = realloc(memory, max(size, <size_t> 1))
    if resized == NULL:
        with gil:
            raise MemoryError()
    return resized
