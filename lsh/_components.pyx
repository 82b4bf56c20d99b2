# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Connected components of documents, by union-find.

The parent of a document is never a later one, so that the root of a component is its smallest member, whatever the
order in which pairs come. Two components are joined by Rem's algorithm (Dijkstra 1976), which walks up from both
documents at once, gives each document that it passes the smaller parent of the other side, and stops where the two
meet; it needs no ranks, and most pairs of a large component meet at once. It was the fastest of the variants that
Patwary, Blair and Manne measured: Experiments on union-find algorithms for the disjoint-set data structure, SEA 2010.
"""

from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import threading

import numpy as np


cdef class Components:
    """The connected components of documents 0 to count - 1, which grow by links and by pairs.

    Safe to share between threads: they take turns.

    Parameters
    ----------
    count : int
        The number of documents, below 2**31; each is a component of its own at first.
    """

    def __cinit__(self, Py_ssize_t count):
        cdef int32_t i
        if not 0 <= count < 2**31:
            raise ValueError(f"count must be 0 to {2**31 - 1}, got {count}")
        self.count, self.lock = count, threading.Lock()
        self.parents = <int32_t *> malloc(max(count, 1) * sizeof(int32_t))
        if self.parents == NULL:
            raise MemoryError()
        for i in range(<int32_t> count):
            self.parents[i] = i

    def __dealloc__(self):
        free(self.parents)

    def add_links(self, const int32_t[::1] links not None):
        """Connect each document with the one it is linked to; the GIL is released.

        Parameters
        ----------
        links : numpy.ndarray
            int32, shape ``(count,)``: for each document another one, negative for none.
        """
        cdef int32_t i
        if links.shape[0] != self.count:
            raise ValueError(f"links must be of {self.count} documents, got {links.shape[0]}")
        with self.lock, nogil:
            for i in range(<int32_t> links.shape[0]):
                if links[i] >= self.count:
                    raise IndexError(f"document {i} is linked to {links[i]} of {self.count}")
                if links[i] >= 0:
                    unite(self.parents, i, links[i])

    def add_pairs(self, const int32_t[::1] firsts not None, const int32_t[::1] seconds not None):
        """Connect the documents of each pair; the GIL is released.

        Parameters
        ----------
        firsts, seconds : numpy.ndarray
            int32, of one length: the documents of each pair.

        Returns
        -------
        int
            How many of the pairs joined two components; `count` less the sum of these is the number of components.
        """
        cdef Py_ssize_t i, joined = 0
        if firsts.shape[0] != seconds.shape[0]:
            raise ValueError(
                f"firsts and seconds must have the same length, got {firsts.shape[0]} and {seconds.shape[0]}"
            )
        with self.lock, nogil:
            for i in range(firsts.shape[0]):
                if not (0 <= firsts[i] < self.count and 0 <= seconds[i] < self.count):
                    raise IndexError(f"pair {i} is ({firsts[i]}, {seconds[i]}) of {self.count} documents")
                joined += unite(self.parents, firsts[i], seconds[i])
        return joined

    def labels(self):
        """Return by document the smallest member of its component: int32, shape ``(count,)``."""
        cdef int32_t i
        labels = np.empty(self.count, np.int32)
        cdef int32_t[::1] view = labels
        with self.lock, nogil:
            for i in range(<int32_t> self.count):  # a parent comes before its child, and has its root by then
                self.parents[i] = self.parents[self.parents[i]]
            if self.count:
                memcpy(&view[0], self.parents, self.count * sizeof(int32_t))
        return labels
