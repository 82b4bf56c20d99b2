# cython: language_level=3, boundscheck=False, wraparound=False
"""The edge: texts as Python has them become one batch of pointers and lengths.

A batch owns what it points to: it holds a reference to every text (or to the bytes made of it), so that the other
modules of this floor can read it without the GIL whatever happens to the list it came from. ASCII ``str`` and ``bytes``
are not copied; other ``str`` are encoded as UTF-8 with ``surrogatepass``; a ``bytearray`` or ``memoryview``, which may
change, is copied.
"""

from cpython.bytes cimport PyBytes_AsStringAndSize
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport uint8_t
from libc.stdlib cimport free, malloc

import numpy as np


cdef class Batch:
    """Texts held for the kernels.

    Parameters
    ----------
    texts : list
        ``str``, ``bytes``, ``bytearray``, ``memoryview``, or ``None`` where ``missing`` allows it.
    first : int, optional
        Position of the first text, for messages.
    missing : bool, optional
        Take ``None`` as an empty text.
    transform : callable, optional
        Gives the ``bytes`` to hold for a text (a ``str`` or ``bytes``); default: its UTF-8.
    name : str, optional
        What the caller calls the texts, for messages.

    Raises
    ------
    TypeError
        If an element is no text; the message names its position.
    ValueError
        If an element is ``None`` and ``missing`` is false.
    """

    def __cinit__(self, list texts not None, Py_ssize_t first=0, bint missing=False, transform=None,
                  str name not None="texts"):
        cdef Py_ssize_t i
        self.owners = list(texts)  # ours alone: another thread may change the caller's list
        self.count = len(self.owners)
        self.texts = <const uint8_t **> malloc(max(self.count, 1) * sizeof(uint8_t *))
        self.lengths = <Py_ssize_t *> malloc(max(self.count, 1) * sizeof(Py_ssize_t))
        if self.texts == NULL or self.lengths == NULL:
            raise MemoryError()
        for i in range(self.count):
            self._take(i, first, missing, transform, name)

    def __dealloc__(self):
        free(self.texts)
        free(self.lengths)

    def __len__(self):
        return self.count

    cdef int _take(self, Py_ssize_t i, Py_ssize_t first, bint missing, transform, str name) except -1:
        text = self.owners[i]
        if text is None:
            if not missing:
                raise ValueError(
                    f"{name}[{first + i}] is None; drop it, or count it as an empty text with missing='empty'"
                )
            self.num_missing += 1
            text = b""
        elif isinstance(text, (bytearray, memoryview)):
            text = memoryview(text).tobytes()
        elif not isinstance(text, (str, bytes)):
            raise TypeError(
                f"{name}[{first + i}] must be str, bytes, bytearray or memoryview, got {type(text).__name__}"
            )
        if transform is not None:
            text = transform(text)
        self.owners[i] = text
        if isinstance(text, str):
            if str.isascii(text):  # methods of the type, as a subclass may have its own
                self.texts[i] = <const uint8_t *> PyUnicode_AsUTF8AndSize(text, &self.lengths[i])
                return 0
            text = self.owners[i] = str.encode(text, "utf-8", "surrogatepass")
        cdef char *start = NULL
        PyBytes_AsStringAndSize(text, &start, &self.lengths[i])
        self.texts[i] = <const uint8_t *> start
        return 0

    def sizes(self):
        """Return the length of each text in bytes, shape ``(count,)``, int64."""
        cdef Py_ssize_t i
        result = np.empty(self.count, np.int64)
        cdef long long[::1] view = result
        for i in range(self.count):
            view[i] = self.lengths[i]
        return result
