# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Fields of many records at once: batches whose texts point into a block of bytes, found without the GIL.

If any record of a block is malformed or ambiguous, the result is ``None``: a reader of single records then decides and
reports the line. The formats are implemented in the kernels.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.errno cimport EFAULT, EINTR, errno
from libc.stdint cimport uint8_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove, strerror

from lsh cimport _kernels as c
from lsh.text.batch cimport Batch
from lsh.base.memory cimport resize

import mmap as _mmap

import numpy as np

cdef size_t _NOT_PLAIN = <size_t> -1
cdef long long _MAX_OFFSET = <long long> (<size_t> -1 // 4)
cdef Py_ssize_t _GAP = 1 << 12  # bytes between two ranges that are read at once
cdef long long _LEAST_MAPPED = 1 << 16  # bytes of ranges for which a file is mapped
cdef long long _PAGES = 1 << 16  # bytes, a multiple of the size of a page
cdef Py_ssize_t _AT_ONCE = 1 << 19  # bytes of a mapped file that are written at once
cdef int _POPULATE = getattr(_mmap, "MAP_POPULATE", 0)  # of Linux: map all pages at once

cdef enum:
    _PIECES = 512  # ranges that are written at once; POSIX allows 1024 on all usual systems


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


def read_ranges(int file, const long long[::1] begins not None, const long long[::1] ends not None,
                uint8_t[::1] buffer not None):
    """Return bytes `begins[i]` to `ends[i]` - 1 of a file, range after range; fewer if the file ends before them.

    Parameters
    ----------
    file : int
        The descriptor.
    begins, ends : numpy.ndarray
        Int64: where the ranges begin and end; they ascend. Those with a small gap between are read at once.
    buffer : numpy.ndarray
        Uint8: memory for ranges that are read at once.
    """
    cdef Py_ssize_t size = _size_of_ranges(begins, ends), done
    cdef bytes out = PyBytes_FromStringAndSize(NULL, size)
    cdef uint8_t *to = <uint8_t *> PyBytes_AS_STRING(out)
    if size == 0:
        return b""
    with nogil:
        done = _read_ranges(file, &begins[0], &ends[0], begins.shape[0], to, &buffer[0], buffer.shape[0])
    if done < 0:
        raise OSError(errno, strerror(errno).decode())
    return out if done == size else out[:done]


def copy_ranges(int file, int target, const long long[::1] begins not None, const long long[::1] ends not None,
                uint8_t[::1] buffer not None):
    """Write ranges of a file, given as for `read_ranges`, to another file; return how many bytes were written.

    Fewer than all are written if the file ends or cannot be read, if a signal arrives, or if the system writes less.
    Ranges that lie close together are written from the mapped file, so that they are copied once; the system reads
    the mapped bytes, and so a file that is cut meanwhile is an error of `writev` and no signal. Others, and those of
    a file that cannot be mapped, are copied through the buffer.

    Raises
    ------
    OSError
        If the other file cannot be written.
    """
    cdef Py_ssize_t size = _size_of_ranges(begins, ends), done = 0, count = begins.shape[0]
    cdef int failed = 0
    if size and buffer.shape[0]:
        with nogil:
            done = -1
            if size >= _LEAST_MAPPED and ends[count - 1] - begins[0] <= 2 * size:
                done = _write_mapped(file, target, &begins[0], &ends[0], count, &failed)
            if done < 0:
                done = _copy_ranges(file, target, &begins[0], &ends[0], count, &buffer[0], buffer.shape[0], &failed)
    if failed and failed != EINTR:
        raise OSError(failed, strerror(failed).decode())
    return done


cdef Py_ssize_t _size_of_ranges(const long long[::1] begins, const long long[::1] ends) except -1:
    """Return the bytes of ranges, which must ascend."""
    cdef Py_ssize_t count = begins.shape[0], i, size = 0
    if ends.shape[0] != count:
        raise ValueError(f"begins and ends must have the same length, got {count} and {ends.shape[0]}")
    for i in range(count):
        if not (ends[i - 1] if i else 0) <= begins[i] <= ends[i] <= _MAX_OFFSET - size:
            raise ValueError(f"ranges must ascend, got {begins[i]} to {ends[i]} at {i}")
        size += ends[i] - begins[i]
    return size


cdef Py_ssize_t _read_ranges(int file, const long long *begins, const long long *ends, Py_ssize_t count, uint8_t *out,
                             uint8_t *buffer, Py_ssize_t capacity) noexcept nogil:
    """Return how many bytes were read; -1 for an error of the system."""
    cdef Py_ssize_t i = 0, stop, size, found, done = 0
    cdef long long begin
    while i < count:
        begin, stop = begins[i], i + 1
        while stop < count and begins[stop] - ends[stop - 1] <= _GAP and ends[stop] - begin <= capacity:
            stop += 1
        size = <Py_ssize_t> (ends[stop - 1] - begin)
        found = _read_at(file, out + done if stop == i + 1 else buffer, size, begin)
        if found < 0:
            return -1
        if stop == i + 1:
            done += found
        else:
            for i in range(i, stop):
                if ends[i] - begin <= found:
                    memcpy(out + done, buffer + (begins[i] - begin), ends[i] - begins[i])
                    done += ends[i] - begins[i]
        if found < size:
            return done
        i = stop
    return done


cdef Py_ssize_t _copy_ranges(int file, int target, const long long *begins, const long long *ends, Py_ssize_t count,
                             uint8_t *buffer, Py_ssize_t capacity, int *failed) noexcept nogil:
    """Return how many bytes were written; `failed` is set to the error of a writing."""
    cdef Py_ssize_t i = 0, stop, size, found, used, some, done = 0
    cdef long long begin = begins[0], first, end
    while i < count:
        stop = i + 1
        while stop < count and begins[stop] - ends[stop - 1] <= _GAP and ends[stop] - begin <= capacity:
            stop += 1
        end = min(ends[stop - 1], begin + capacity)  # a part of a range that is larger
        size, used = <Py_ssize_t> (end - begin), 0
        found = _read_at(file, buffer, size, begin)
        for i in range(i, stop):  # the bytes of the ranges are moved together
            first = max(begins[i], begin)
            some = <Py_ssize_t> (min(ends[i], begin + found) - first)
            if some > 0:
                memmove(buffer + used, buffer + (first - begin), some)
                used += some
        size -= found
        i, begin = (stop - 1, end) if end < ends[stop - 1] else (stop, begins[stop] if stop < count else 0)
        found = 0
        if used:
            found = c.lsh_write_on(target, buffer, used)
        if found < 0:
            failed[0] = errno
            return done
        done += found
        if size or found < used:
            return done
    return done


cdef Py_ssize_t _write_mapped(int file, int target, const long long *begins, const long long *ends, Py_ssize_t count,
                              int *failed) noexcept nogil:
    """Return how many bytes were written, -1 for a file that cannot be mapped or ends before the ranges do."""
    cdef c.lsh_piece pieces[_PIECES]
    cdef long long start = begins[0] - begins[0] % _PAGES, begin = begins[0]
    cdef Py_ssize_t i = 0, some, size, found, done = 0, length = <Py_ssize_t> (ends[count - 1] - start)
    cdef int n
    cdef uint8_t *mapped
    mapped = c.lsh_map(file, start, length, _POPULATE)
    if mapped == NULL:
        return -1
    while i < count:
        size = n = 0
        while i < count and n < _PIECES and size < _AT_ONCE:
            some = min(<Py_ssize_t> (ends[i] - begin), _AT_ONCE - size)
            pieces[n] = c.lsh_piece(iov_base=mapped + (begin - start), iov_len=some)
            size, begin, n = size + some, begin + some, n + 1
            if begin == ends[i]:
                i += 1
                begin = begins[i] if i < count else 0
        found = c.lsh_write_pieces(target, pieces, n)
        if found < 0 and errno != EFAULT:  # that is the error of a file that was cut
            failed[0] = errno
        done += max(found, 0)
        if found < size:
            break
    c.lsh_unmap(mapped, length)
    return done


cdef Py_ssize_t _read_at(int file, uint8_t *out, Py_ssize_t size, long long begin) noexcept nogil:
    cdef Py_ssize_t done = 0, found
    while done < size:
        found = c.lsh_read_at(file, out + done, size - done, begin + done)
        if found < 0 and errno == EINTR:
            continue
        if found <= 0:
            return found if found < 0 else done
        done += found
    return done


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

    Raises
    ------
    ValueError
        If a key is named more than once.
    """
    cdef tuple wanted = (*texts, *names)
    if any([type(key) is not bytes for key in wanted]):
        raise TypeError(f"keys must be bytes, got {wanted}")
    if len(set(wanted)) < len(wanted):
        raise ValueError(f"keys must be all different, got {wanted}; name each key once")
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


def line_cells(bytes block not None, bytes separator not None, tuple places not None, size_t least, size_t most):
    r"""Find cells of lines.

    Parameters
    ----------
    block : bytes
        Whole lines.
    separator : bytes
        One byte between cells; a newline for lines of one cell.
    places : tuple of int
        Which cells, counted from 0; less than `least`.
    least, most : int
        The number of cells that a line may have.

    Returns
    -------
    (list of Batch, numpy.ndarray), or None
        For each place the cells there; where the lines are, as `json_fields` returns it. ``None`` if a line has fewer
        or more cells.
    """
    cdef _FieldTable table = _cell_table(block, places, least, False)
    if len(separator) != 1:
        raise ValueError(f"separator must be one byte, got {separator!r}")
    cdef uint8_t by = separator[0]
    with nogil:
        table.rows = c.lsh_read_lines(table.start, table.size, by, table.places, table.columns, least, most,
                                      table.found, table.spans)
    return _found_cells(table)


def csv_cells(bytes block not None, bytes separator not None, tuple places not None, size_t least, size_t most):
    """Find cells of records of CSV, as `line_cells` does.

    Returns
    -------
    (list of Batch, numpy.ndarray, int), or None
        The cells and the places of the records, and how many bytes of the block are whole records. ``None`` if a
        record is malformed or ambiguous.
    """
    cdef _FieldTable table = _cell_table(block, places, least, True)
    if len(separator) != 1:
        raise ValueError(f"separator must be one byte, got {separator!r}")
    cdef size_t used = 0
    cdef uint8_t by = separator[0]
    with nogil:
        table.rows = c.lsh_read_csv(table.start, table.size, by, table.places, table.columns, least, most,
                                    table.decoded, table.found, table.spans, &used)
    found = _found_cells(table)
    return None if found is None else (*found, used)


cdef tuple _found_cells(_FieldTable table):
    """Return the cells and the places of the records; ``None`` if a record is malformed or ambiguous."""
    if table.rows == _NOT_PLAIN:
        return None
    return [table.column(i, False) for i in range(table.columns)], table.found_spans()


cdef _FieldTable _cell_table(bytes block, tuple places, size_t least, bint decodes):
    """Return a table for the cells at these places, which every record must have."""
    cdef _FieldTable table = _FieldTable(block, places, decodes)
    cdef Py_ssize_t i, place
    for i in range(table.columns):
        place = places[i]  # converted once: the value that is checked is the one that is used
        if place < 0 or <size_t> place >= least:
            raise ValueError(f"places must be from 0 to {least} - 1, got {place}")
        table.places[i] = place
    return table
