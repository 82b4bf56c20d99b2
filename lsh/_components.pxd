# The C face of the union-find, for walks that skip pairs already connected.

from libc.stdint cimport int32_t


cdef inline int32_t find(int32_t *parents, int32_t member) noexcept nogil:
    """The smallest member of the component; the path to it is halved."""
    while parents[member] != member:
        parents[member] = parents[parents[member]]
        member = parents[member]
    return member


cdef inline bint unite(int32_t *parents, int32_t a, int32_t b) noexcept nogil:
    """Make one component of those of a and b; whether they were two. Rem's algorithm: see _components.pyx."""
    cdef int32_t above
    while parents[a] != parents[b]:
        if parents[a] < parents[b]:
            a, b = b, a
        above = parents[a]
        parents[a] = parents[b]
        if above == a:
            return True
        a = above
    return False


cdef class Components:
    cdef readonly Py_ssize_t count
    cdef int32_t *parents            # never larger than the member itself
    cdef object lock                 # adding is for one thread at a time
