# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Fields of many records at once: batches whose texts point into a block of bytes, found without the GIL.

If any record of a block is malformed or ambiguous, the result is ``None``: a reader of single records then decides and
reports the line. The formats are implemented in the kernels.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t
from libc.stdlib cimport free

from lsh cimport _kernels as c
from lsh.text.batch cimport Batch
from lsh.base.memory cimport resize

import numpy as np

cdef size_t _NOT_PLAIN = <size_t> -1


cdef class _FieldTable:
    """The fields found in a block, a row for each record, and memory for texts that are decoded."""

    cdef bytes data
    cdef bytes out
    cdef const uint8_t *start
    cdef size_t size
    cdef uint8_t *decoded
    cdef c.lsh_field *found
    cdef c.lsh_text *names
    cdef size_t *places
    cdef object records
    cdef c.lsh_span *spans
    cdef Py_ssize_t columns
    cdef size_t rows

    def __cinit__(self, bytes data not None, tuple wanted not None, bint decodes):
        cdef size_t lines
        cdef size_t[:, ::1] records
        self.data, self.columns = data, len(wanted)
        self.start, self.size = <const uint8_t *> PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data)
        if decodes:
            self.out = PyBytes_FromStringAndSize(NULL, max(self.size, 1))
            self.decoded = <uint8_t *> PyBytes_AS_STRING(self.out)
        with nogil:
            lines = c.lsh_count_lines(self.start, self.size) + 1
        self.records = np.empty((lines, 2), np.uintp)
        records = self.records
        self.spans = <c.lsh_span *> &records[0, 0]
        self.found = <c.lsh_field *> resize(NULL, lines, self.columns * sizeof(c.lsh_field))
        self.names = <c.lsh_text *> resize(NULL, self.columns, sizeof(c.lsh_text))
        self.places = <size_t *> resize(NULL, self.columns, sizeof(size_t))

    def __dealloc__(self):
        free(self.found)
        free(self.names)
        free(self.places)

    cdef Batch column(self, Py_ssize_t place, bint numbers):
        """Return a field of all records; ``None`` if one of them is not a string (or a number)."""
        cdef Batch batch = Batch(())
        cdef const c.lsh_field *field = self.found + place
        cdef Py_ssize_t i
        batch._reserve((self.data, self.out), <Py_ssize_t> self.rows)
        for i in range(batch.count):
            if field.kind != c.LSH_STRING and not (numbers and field.kind == c.LSH_NUMBER):
                return None
            batch.texts[i], batch.lengths[i] = field.text.bytes, <Py_ssize_t> field.text.length
            field += self.columns
        return batch

    cdef object found_spans(self):
        """Return where each record begins in the block, and its length, shape ``(rows, 2)``, int64."""
        return self.records[: self.rows].view(np.int64)

    cdef bint is_absent(self, Py_ssize_t place) noexcept:
        """Tell whether no record has a field."""
        cdef size_t i
        for i in range(self.rows):
            if self.found[i * self.columns + place].kind != c.LSH_ABSENT:
                return False
        return True


def count_lines(bytes block not None):
    """Return the number of lines in a block; the last one may have no newline."""
    cdef const uint8_t *at = <const uint8_t *> PyBytes_AS_STRING(block)
    cdef size_t size = PyBytes_GET_SIZE(block), lines
    with nogil:
        lines = c.lsh_count_lines(at, size)
    return lines


def json_fields(bytes block not None, tuple texts not None, tuple names not None):
    """Find texts, and ids or sources, in JSON objects, one a line; blank lines are not records.

    Parameters
    ----------
    block : bytes
        Whole lines.
    texts : tuple of bytes
        Keys, in UTF-8, whose values are strings in every record.
    names : tuple of bytes
        Keys whose values are strings, or numbers as they are written, in every record, or that no record has.

    Returns
    -------
    (list of Batch, list of (Batch or None), numpy.ndarray), or None
        Each of `texts`; each of `names`, ``None`` for one that no record has; where each record begins in the block,
        and its length with the line end, int64, shape ``(n, 2)``. ``None`` alone if any record is malformed or
        ambiguous.
    """
    cdef tuple wanted = (*texts, *names)
    cdef _FieldTable table = _FieldTable(block, wanted, True)
    cdef Py_ssize_t i, required = len(texts)
    for i in range(table.columns):
        table.names[i].bytes = <const uint8_t *> PyBytes_AS_STRING(<bytes?> wanted[i])
        table.names[i].length = <size_t> PyBytes_GET_SIZE(wanted[i])
    with nogil:
        table.rows = c.lsh_read_json(table.start, table.size, table.names, table.columns, table.decoded, table.found,
                                     table.spans)
    if table.rows == _NOT_PLAIN:
        return None
    found = []
    for i in range(table.columns):
        if i >= required and table.is_absent(i):
            found.append(None)
            continue
        found.append(table.column(i, i >= required))
        if found[i] is None:
            return None
    return found[:required], found[required:], table.found_spans()


def delimited_cells(bytes block not None, bytes separator not None, tuple places not None, size_t min_cells,
                    size_t max_cells, bint quotes):
    r"""Find cells of lines, or of records of CSV.

    Parameters
    ----------
    block : bytes
        Whole lines.
    separator : bytes
        One byte between cells; a newline for lines of one cell.
    places : tuple of int
        Which cells, counted from 0; less than `min_cells`.
    min_cells, max_cells : int
        The number of cells that a record may have.
    quotes : bool
        Whether the records are those of CSV, in which a quoted cell may hold separators and newlines.

    Returns
    -------
    (list of Batch, numpy.ndarray, int), or None
        For each place the cells there; where the records are, as `json_fields` returns it; and how many bytes of the
        block are whole records, fewer than all in CSV only. ``None`` if a record is malformed or ambiguous, or has
        fewer or more cells.
    """
    cdef _FieldTable table = _FieldTable(block, places, quotes)
    cdef size_t used = table.size
    cdef Py_ssize_t i
    cdef uint8_t by = separator[0]
    for i in range(table.columns):
        table.places[i] = places[i]
    with nogil:
        if quotes:
            table.rows = c.lsh_read_csv(table.start, table.size, by, table.places, table.columns, min_cells, max_cells,
                                        table.decoded, table.found, table.spans, &used)
        else:
            table.rows = c.lsh_read_lines(table.start, table.size, by, table.places, table.columns, min_cells,
                                          max_cells, table.found, table.spans)
    if table.rows == _NOT_PLAIN:
        return None
    return [table.column(i, False) for i in range(table.columns)], table.found_spans(), used
