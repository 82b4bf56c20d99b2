# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""Batches: texts in any form of Python or Arrow as pointers and lengths.

A batch keeps the memory that it points to alive, so that other compiled modules can read it without the GIL even if
the list that it was made from changes. ``bytes``, ASCII ``str``, Arrow columns and numpy's fixed-width bytes are not
copied. Other ``str`` are encoded as UTF-8 with ``surrogatepass`` into one piece of memory for the batch; nothing is
cached in the objects. A ``bytearray`` or ``memoryview``, which may change, is copied.
"""

from cpython.bytearray cimport PyByteArray_GET_SIZE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memmove

from lsh cimport _kernels as c
from lsh.text.columns cimport MISSING, NO_FAULT, Column, Fault
from lsh.base.memory cimport resize

import numpy as np

from lsh.text.columns import fault as _fault

cdef enum:
    AHEAD = 16  # texts between the one whose size is read and the one that is fetched from memory

cdef Py_ssize_t _MAX_SIZE = <Py_ssize_t> (<size_t> -1 // 2)
cdef uint8_t _missing = 0  # a missing text is an empty text at this address
cdef uint8_t _empty = 0  # the address of empty texts that are in no memory


cdef int _refuse_missing(Py_ssize_t position, str name, value=None) except -1:
    found = "None" if value is None else f"missing ({value})"
    raise ValueError(f"{name}[{position}] is {found}; drop it, or count it as an empty text with missing='empty'")


cdef bint _is_null(object value):
    """Tell whether a value stands for a missing text: None, NaN, or pandas' NA or NaT."""
    if isinstance(value, float):
        return value != value
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def extent(texts not None, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t size):
    """Return where a batch that begins at `start` should end to have about `size` bytes.

    The batch has at least one text and ends at `stop` at the latest.

    Parameters
    ----------
    texts : tuple, Column or Batch
        The texts, as for `Batch`.
    start, stop : int
        Positions, 0 <= start < stop <= the number of texts.
    size : int
        Bytes. A `str` counts by its size in memory, an element that is no text as 0.
    """
    cdef Py_ssize_t i = start, length, found = 0
    while i < stop and (found < size or i == start):
        if isinstance(texts, tuple) and i + AHEAD < len(<tuple> texts):  # the objects lie anywhere in memory
            c.lsh_prefetch(c.PyTuple_GET_ITEM(<PyObject *> texts, i + AHEAD))
        length = _size_at(texts, i)
        if i > start and length > size:
            break
        found += min(length, _MAX_SIZE - found)
        i += 1
    return i


def num_bytes(texts not None, Py_ssize_t start, Py_ssize_t stop):
    """Return the bytes of texts start to stop - 1, counted as `extent` counts them."""
    cdef Py_ssize_t i, found = 0
    for i in range(start, stop):
        found += min(_size_at(texts, i), _MAX_SIZE - found)
    return found


def gather(texts not None, Py_ssize_t most, Py_ssize_t size):
    """Return the next texts of an iterator, as a tuple: at most `most`, and none after the one that makes `size` bytes.

    Bytes are counted as `extent` counts them. The tuple is empty where the iterator has ended.
    """
    cdef Py_ssize_t found = 0
    cdef list gathered = []
    for text in texts:
        gathered.append(text)
        found += min(_size_of(<PyObject *> text), _MAX_SIZE - found)
        if len(gathered) >= most or found >= size:
            break
    return tuple(gathered)


cdef Py_ssize_t _size_at(texts, Py_ssize_t i) except -1:
    """The size of text i, which exists; 0 where a column is damaged."""
    cdef Py_ssize_t length = 0
    cdef const uint8_t *text = NULL
    if isinstance(texts, tuple):
        return _size_of(c.PyTuple_GET_ITEM(<PyObject *> texts, i))
    if isinstance(texts, Column):
        return length if (<Column> texts).find(i, &text, &length) == NO_FAULT else 0
    return (<Batch> texts).lengths[i]


cdef Py_ssize_t _count(texts) except -1:
    if isinstance(texts, tuple):
        return len(<tuple> texts)
    return (<Column> texts).count if isinstance(texts, Column) else (<Batch?> texts).count


cdef Py_ssize_t _size_of(PyObject *text) except -1:
    """The size of a text in memory in bytes; 0 for an element that is no text."""
    if c.PyBytes_Check(text):
        return c.PyBytes_GET_SIZE(text)
    if c.PyUnicode_Check(text):
        return c.PyUnicode_GET_LENGTH(text) * c.PyUnicode_KIND(text)
    if isinstance(<object> text, bytearray):
        return PyByteArray_GET_SIZE(<object> text)
    if isinstance(<object> text, memoryview):
        return (<object> text).nbytes
    return 0


cdef class Batch:
    """Texts held for the kernels. Immutable.

    Parameters
    ----------
    texts : tuple, list, Column or Batch
        Of a tuple or list: ``str``, ``bytes``, ``bytearray``, ``memoryview``, or a null (``None``, NaN, pandas' NA)
        where ``missing`` allows it.
    first : int, optional
        Position of the first of them, for messages.
    missing : bool, optional
        Treat ``None``, or a null of a column, as an empty text.
    transform : callable, optional
        Called with the ``bytes`` of each text that is not ASCII; returns the ``bytes`` to use instead.
    name : str, optional
        What the caller calls the texts, for messages.
    start, stop : int, optional
        Hold only texts start to stop - 1 of them; default: all.

    Raises
    ------
    TypeError
        If an element is no text; the message names its position.
    ValueError
        If an element is ``None`` and ``missing`` is false, or a column is damaged; the message names its position.
    """

    def __cinit__(self, texts not None, Py_ssize_t first=0, bint missing=False, transform=None,
                  str name not None="texts", Py_ssize_t start=0, stop=None):
        cdef Py_ssize_t total, end
        cdef Batch batch
        if isinstance(texts, (list, tuple)):
            texts = tuple(texts)  # a copy: other threads may change a list, subclasses lie
        elif not isinstance(texts, (Column, Batch)):
            raise TypeError(f"{name} must be a tuple, list, Column or Batch, got {type(texts).__name__}")
        total = _count(texts)
        end = total if stop is None else stop
        if not 0 <= start <= end <= total:
            raise ValueError(f"start and stop must lie within the {total} texts, got {start} and {end}")
        if isinstance(texts, tuple):
            self._reserve(texts, end - start)
            _take_tuple(self, <tuple> texts, start, first, missing, name)
        elif isinstance(texts, Column):
            self._reserve(texts, end - start)
            _take_column(self, <Column> texts, start, first, missing, name)
        else:
            batch = <Batch> texts
            self.source, self.count = batch, end - start
            self.texts, self.lengths = batch.texts + start, batch.lengths + start
        if transform is not None:
            _transform(self, transform)

    def __dealloc__(self):
        free(self.places)
        free(self.encoded)

    def __len__(self):
        return self.count

    @staticmethod
    def join(list batches not None):
        """Return a batch of the texts of several, one after the other; it keeps them alive."""
        cdef Batch batch, joined = Batch(())
        cdef Py_ssize_t at = 0, count = 0
        own = tuple(batches)
        for batch in own:
            count += batch.count
        joined._reserve(own, count)
        for batch in own:
            memcpy(joined.texts + at, batch.texts, batch.count * sizeof(uint8_t *))
            memcpy(joined.lengths + at, batch.lengths, batch.count * sizeof(Py_ssize_t))
            at += batch.count
        return joined

    @staticmethod
    def of_bytes(const uint8_t[::1] data not None, const long long[::1] offsets not None):
        """Return a batch of consecutive texts in one array: text i is data[offsets[i] : offsets[i + 1]]."""
        cdef Py_ssize_t i
        cdef Batch batch = Batch(())
        batch._reserve(data, offsets.shape[0] - 1)
        for i in range(batch.count):
            batch.texts[i] = &data[0] + offsets[i] if data.shape[0] else &_empty
            batch.lengths[i] = offsets[i + 1] - offsets[i]
        return batch

    def write(self, uint8_t[::1] out not None):
        """Copy the texts to `out`, one after the other; they must fill it."""
        cdef Py_ssize_t i, at = 0
        for i in range(self.count):
            if self.lengths[i] > out.shape[0] - at:
                raise ValueError(f"out must have as many bytes as the texts, got {out.shape[0]}, which is too few")
            memmove(&out[0] + at, self.texts[i], self.lengths[i])  # the texts may be in `out`
            at += self.lengths[i]
        if at != out.shape[0]:
            raise ValueError(f"out must have as many bytes as the texts, {at}, got {out.shape[0]}")

    def take(self, positions not None):
        """Return a batch of the texts at some positions (whole numbers); it keeps this batch alive."""
        cdef Py_ssize_t i, position
        cdef Batch taken = Batch(())
        cdef const long long[::1] view = np.asarray(positions, np.longlong)
        taken._reserve(self, view.shape[0])
        for i in range(taken.count):
            position = view[i]
            taken.texts[i], taken.lengths[i] = self.texts[position], self.lengths[position]
        return taken

    @property
    def num_missing(self):
        """The number of texts that are ``None`` or null."""
        cdef Py_ssize_t i, found = 0
        for i in range(self.count):
            found += self.texts[i] == &_missing
        return found

    def tolist(self, Py_ssize_t start=0, stop=None):
        """Return texts start to stop - 1 (default: all from `start` on) as ``bytes``, ``None`` for a missing text."""
        cdef Py_ssize_t i, end = self.count if stop is None else stop
        texts = []
        for i in range(start, end):
            texts.append(None if self.texts[i] == &_missing
                         else PyBytes_FromStringAndSize(<const char *> self.texts[i], self.lengths[i]))
        return texts

    def sizes(self, long long missing=0):
        """Return the length of each text in bytes, shape ``(count,)``, int64; `missing` of one that is missing."""
        cdef Py_ssize_t i
        result = np.empty(self.count, np.int64)
        cdef long long[::1] view = result
        for i in range(self.count):
            view[i] = missing if self.texts[i] == &_missing else self.lengths[i]
        return result

    cdef int _reserve(self, source, Py_ssize_t count) except -1:
        """Allocate the arrays for texts whose memory `source` keeps alive."""
        self.places = resize(self.places, count, sizeof(uint8_t *) + sizeof(Py_ssize_t))
        self.source, self.count, self.texts = source, count, <const uint8_t **> self.places
        self.lengths = <Py_ssize_t *> (self.texts + count)
        return 0


# ---- objects ----

cdef int _take_tuple(Batch batch, tuple texts, Py_ssize_t start, Py_ssize_t first, bint missing, str name) except -1:
    cdef Py_ssize_t i, size = 0, more
    cdef PyObject *text
    for i in range(batch.count):
        text = c.PyTuple_GET_ITEM(<PyObject *> texts, start + i)
        if c.PyUnicode_Check(text):
            more = _take_str(batch, i, text)
            if more > _MAX_SIZE - size:
                raise MemoryError()
            size += more
        elif c.PyBytes_Check(text):
            _take_bytes(batch, i, text)
        else:
            _take_other(batch, i, <object> text, first + start + i, missing, name)
    if size:
        _encode(batch, texts, start, size)
    return 0


cdef inline void _take_bytes(Batch batch, Py_ssize_t i, PyObject *text) noexcept:
    batch.texts[i] = <const uint8_t *> c.PyBytes_AS_STRING(text)
    batch.lengths[i] = c.PyBytes_GET_SIZE(text)


cdef inline Py_ssize_t _take_str(Batch batch, Py_ssize_t i, PyObject *text) noexcept:
    """Point to the text if it is ASCII; otherwise return the size of the UTF-8 that `_encode` will write."""
    cdef Py_ssize_t length = c.PyUnicode_GET_LENGTH(text)
    if c.PyUnicode_IS_ASCII(text):
        batch.texts[i] = <const uint8_t *> c.PyUnicode_DATA(text)
        batch.lengths[i] = length
        return 0
    batch.texts[i] = NULL
    batch.lengths[i] = c.lsh_utf8_size(c.PyUnicode_DATA(text), length, c.PyUnicode_KIND(text))
    return batch.lengths[i]


cdef int _take_other(Batch batch, Py_ssize_t i, text, Py_ssize_t position, bint missing, str name) except -1:
    if _is_null(text):
        if not missing:
            _refuse_missing(position, name, text)
        batch.texts[i] = &_missing
        batch.lengths[i] = 0
    elif isinstance(text, (bytearray, memoryview)):
        _own(batch, i, memoryview(text).tobytes())
    else:
        raise TypeError(
            f"{name}[{position}] must be str, bytes, bytearray or memoryview, got {type(text).__name__}"
        )
    return 0


cdef int _encode(Batch batch, tuple texts, Py_ssize_t start, Py_ssize_t size) except -1:
    """Encode every ``str`` that is not ASCII as UTF-8."""
    cdef PyObject *held = <PyObject *> texts
    cdef PyObject *text
    cdef uint8_t *out
    cdef Py_ssize_t i
    out = batch.encoded = <uint8_t *> resize(NULL, size, 1)
    with nogil:
        for i in range(batch.count):
            if batch.texts[i] == NULL:
                text = c.PyTuple_GET_ITEM(held, start + i)
                c.lsh_utf8_encode(c.PyUnicode_DATA(text), c.PyUnicode_GET_LENGTH(text), c.PyUnicode_KIND(text), out)
                batch.texts[i] = out
                out += batch.lengths[i]
    return 0


cdef int _own(Batch batch, Py_ssize_t i, bytes text) except -1:
    if batch.owners is None:
        batch.owners = []
    batch.owners.append(text)
    _take_bytes(batch, i, <PyObject *> text)
    return 0


# ---- columns ----

cdef int _take_column(Batch batch, Column column, Py_ssize_t start, Py_ssize_t first, bint missing, str name) except -1:
    cdef Py_ssize_t i = 0
    cdef Fault fault = NO_FAULT
    with nogil:
        while i < batch.count:
            fault = column.find(start + i, &batch.texts[i], &batch.lengths[i])
            if fault == MISSING and missing:
                batch.texts[i] = &_missing
                batch.lengths[i] = 0
            elif fault != NO_FAULT:
                break
            i += 1
    if i < batch.count and fault == MISSING:
        _refuse_missing(first + start + i, name)
    elif i < batch.count:
        raise ValueError(f"{name}[{first + start + i}] has {_fault(fault)}; create the Arrow column again")
    return 0


# ---- transforming texts ----

cdef int _transform(Batch batch, transform) except -1:
    cdef const uint8_t **texts = batch.texts
    cdef Py_ssize_t *lengths = batch.lengths
    cdef Py_ssize_t i
    if batch.places == NULL:
        batch._reserve(batch.source, batch.count)
    for i in range(batch.count):
        if c.lsh_is_ascii(texts[i], lengths[i]):
            batch.texts[i], batch.lengths[i] = texts[i], lengths[i]
        else:
            changed = transform(texts[i][:lengths[i]])
            if not isinstance(changed, bytes):
                raise TypeError(f"transform must return bytes, got {type(changed).__name__}")
            _own(batch, i, changed)
    return 0


# ---- byte-identical texts ----

def content_keys(Batch batch not None, bytes secret not None, uint64_t[::1] out not None):
    """Write a 64-bit hash of the bytes of each text to `out`, under a secret of 16 bytes."""
    cdef uint64_t key[2]
    memcpy(key, PyBytes_AS_STRING(secret), sizeof(key))
    with nogil:
        c.lsh_content_keys(batch.texts, batch.lengths, batch.count, key, &out[0] if batch.count else NULL)


def same_texts(Batch a not None, places_a not None, Batch b not None, places_b not None):
    """Tell whether the texts of `a` at `places_a` equal those of `b` at `places_b`, pair by pair."""
    cdef Py_ssize_t i, j, k
    cdef bint same = True
    cdef const long long[::1] ours = np.asarray(places_a, np.longlong), theirs = np.asarray(places_b, np.longlong)
    with nogil:
        for i in range(ours.shape[0]):
            j, k = ours[i], theirs[i]
            same = a.lengths[j] == b.lengths[k] and memcmp(a.texts[j], b.texts[k], a.lengths[j]) == 0
            if not same:
                break
    return same
