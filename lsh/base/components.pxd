# Connected components of documents, by union-find: inline functions, for the module that cimports them.
#
# The parent of a document is never a later one, so that the root of a component is its smallest member, whatever the
# order in which pairs come. Two components are joined by Rem's algorithm (Dijkstra 1976), which walks up from both
# documents at once, gives each document that it passes the smaller parent of the other side, and stops where the two
# meet; it needs no ranks, and most pairs of a large component meet at once. It was the fastest of the variants that
# Patwary, Blair and Manne measured: Experiments on union-find algorithms for the disjoint-set data structure, SEA 2010.

from libc.stdint cimport int32_t


cdef inline int32_t find(int32_t *parents, int32_t member) noexcept nogil:
    """The smallest member of the component; the path to it is halved."""
    while parents[member] != member:
        parents[member] = parents[parents[member]]
        member = parents[member]
    return member


cdef inline int32_t root_of(const int32_t *parents, int32_t member) noexcept nogil:
    """The smallest member of the component; nothing is changed, so threads may ask at the same time."""
    while parents[member] != member:
        member = parents[member]
    return member


cdef inline void unite(int32_t *parents, int32_t a, int32_t b) noexcept nogil:
    """Make one component of those of a and b."""
    cdef int32_t above
    while parents[a] != parents[b]:
        if parents[a] < parents[b]:
            a, b = b, a
        above = parents[a]
        parents[a] = parents[b]
        if above == a:
            return
        a = above


cdef inline void flatten(int32_t *parents, int32_t count) noexcept nogil:
    """Make the parent of each of `count` documents the smallest member of its component."""
    cdef int32_t i
    for i in range(count):  # a parent comes before its child, and has its root by then
        parents[i] = parents[parents[i]]
