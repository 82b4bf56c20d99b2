# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Fields of many records at once, out of a block of bytes: batches of texts that lie in it, without the GIL.

What is odd about any record of a block ends the reading of that block with ``None``: a reader that takes record by
record can then say what, and where. The formats themselves are known to the kernels alone.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t
from libc.stdlib cimport free, malloc

from lsh._batch cimport Batch
from lsh._kernels cimport (
    LSH_ABSENT,
    LSH_INTEGER,
    LSH_STRING,
    lsh_count_lines,
    lsh_field,
    lsh_read_csv,
    lsh_read_json,
    lsh_read_lines,
    lsh_text,
)

cdef size_t _ODD = <size_t> -1


cdef class _Block:
    """A block, what is found in it, and room for what has to be written anew."""

    cdef bytes data
    cdef bytes out
    cdef lsh_field *found
    cdef lsh_text *names
    cdef size_t *places
    cdef Py_ssize_t columns
    cdef size_t rows

    def __cinit__(self, bytes data not None, tuple wanted not None, bint writes):
        cdef const uint8_t *at = <const uint8_t *> PyBytes_AS_STRING(data)
        cdef size_t size = PyBytes_GET_SIZE(data), lines
        self.data, self.columns = data, len(wanted)
        if writes:
            self.out = PyBytes_FromStringAndSize(NULL, max(size, 1))
        with nogil:
            lines = lsh_count_lines(at, size) + 1
        self.found = <lsh_field *> malloc(lines * max(self.columns, 1) * sizeof(lsh_field))
        self.names = <lsh_text *> malloc(max(self.columns, 1) * sizeof(lsh_text))
        self.places = <size_t *> malloc(max(self.columns, 1) * sizeof(size_t))
        if self.found == NULL or self.names == NULL or self.places == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.found)
        free(self.names)
        free(self.places)

    cdef const uint8_t *start(self) noexcept:
        return <const uint8_t *> PyBytes_AS_STRING(self.data)

    cdef size_t size(self) noexcept:
        return <size_t> PyBytes_GET_SIZE(self.data)

    cdef uint8_t *room(self) noexcept:
        return <uint8_t *> PyBytes_AS_STRING(self.out)

    cdef Batch column(self, Py_ssize_t place, bint integers):
        """Return a field of all records; ``None`` if one has another value there than a string (or an integer)."""
        cdef Batch batch = Batch(())
        cdef const lsh_field *field = self.found + place
        cdef Py_ssize_t i
        batch.source, batch.count = (self.data, self.out), <Py_ssize_t> self.rows
        batch._reserve()
        for i in range(batch.count):
            if field.kind != LSH_STRING and not (integers and field.kind == LSH_INTEGER):
                return None
            batch.texts[i], batch.lengths[i] = field.text.bytes, <Py_ssize_t> field.text.length
            field += self.columns
        return batch

    cdef bint is_absent(self, Py_ssize_t place) noexcept:
        """Tell whether no record has a field."""
        cdef size_t i
        for i in range(self.rows):
            if self.found[i * self.columns + place].kind != LSH_ABSENT:
                return False
        return True


def count_lines(bytes block not None):
    """Return the number of lines in a block; the last one may have no newline."""
    cdef const uint8_t *at = <const uint8_t *> PyBytes_AS_STRING(block)
    cdef size_t size = PyBytes_GET_SIZE(block), lines
    with nogil:
        lines = lsh_count_lines(at, size)
    return lines


def json_fields(bytes block not None, tuple texts not None, tuple names not None):
    """Find texts, and some ids, in JSON objects, one a line.

    Parameters
    ----------
    block : bytes
        Whole lines.
    texts : tuple of bytes
        Fields that are strings in every record; in UTF-8.
    names : tuple of bytes
        Fields that are strings or integers in every record, or in none.

    Returns
    -------
    list of (Batch or None), or None
        Each of `texts`, and of `names`, ``None`` for what no record has; ``None`` if anything is odd.
    """
    cdef tuple wanted = (*texts, *names)
    cdef _Block read = _Block(block, wanted, True)
    cdef Py_ssize_t i, required = len(texts)
    for i in range(read.columns):
        read.names[i].bytes = <const uint8_t *> PyBytes_AS_STRING(<bytes?> wanted[i])
        read.names[i].length = <size_t> PyBytes_GET_SIZE(wanted[i])
    cdef const uint8_t *start = read.start()
    cdef size_t size = read.size()
    cdef uint8_t *room = read.room()
    with nogil:
        read.rows = lsh_read_json(start, size, read.names, read.columns, room, read.found)
    if read.rows == _ODD:
        return None
    found = []
    for i in range(read.columns):
        if i >= required and read.is_absent(i):
            found.append(None)
            continue
        found.append(read.column(i, i >= required))
        if found[i] is None:
            return None
    return found


def line_cells(bytes block not None, bytes separator not None, tuple places not None, size_t least, size_t most):
    r"""Find cells of lines.

    Parameters
    ----------
    block : bytes
        Whole lines.
    separator : bytes
        One byte between cells; a newline for lines of one cell.
    places : tuple of int
        Which cells, counted from 0, less than `least`.
    least, most : int
        How many cells a line may have.

    Returns
    -------
    list of Batch, or None
        For each place the cells there; ``None`` if a line has fewer or more.
    """
    cdef _Block read = _Block(block, _checked(places, least), False)
    cdef uint8_t by = separator[0]
    cdef const uint8_t *start = read.start()
    cdef size_t size = read.size()
    _set_places(read, places)
    with nogil:
        read.rows = lsh_read_lines(start, size, by, read.places, read.columns, least, most, read.found)
    return None if read.rows == _ODD else [read.column(i, False) for i in range(read.columns)]


def csv_cells(bytes block not None, tuple places not None, size_t least, size_t most):
    """Find cells of records of CSV, as `line_cells` does.

    Returns
    -------
    list of Batch, int, or None
        The cells, and how many bytes of the block are whole records; ``None`` if a record is odd.
    """
    cdef _Block read = _Block(block, _checked(places, least), True)
    cdef size_t used = 0
    cdef const uint8_t *start = read.start()
    cdef size_t size = read.size()
    cdef uint8_t *room = read.room()
    _set_places(read, places)
    with nogil:
        read.rows = lsh_read_csv(start, size, read.places, read.columns, least, most, room, read.found, &used)
    return None if read.rows == _ODD else ([read.column(i, False) for i in range(read.columns)], used)


cdef tuple _checked(tuple places, size_t least):
    """Return the places, which every record has."""
    for place in places:
        if not 0 <= place < least:
            raise ValueError(f"places must be from 0 to {least} - 1, got {place}")
    return places


cdef int _set_places(_Block read, tuple places) except -1:
    cdef Py_ssize_t i
    for i in range(read.columns):
        read.places[i] = places[i]
    return 0
