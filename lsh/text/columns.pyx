# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Columns of text, read in place: Arrow arrays by the PyCapsule interface, and numpy's fixed-width bytes.

Nothing is copied and no Arrow package is needed: producers export the C structs of the Arrow C data interface
(https://arrow.apache.org/docs/format/CDataInterface.html), which are read here and released exactly once. The
structure of an array is checked when a column is made, each offset, view and index when it is read. The interface does
not give the sizes of most buffers, so an offset beyond its buffer cannot be detected: the producer is trusted.
`lsh.text.batch` turns columns into batches.
"""

from cpython.buffer cimport PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_GetBuffer
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from cython cimport final
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

cdef enum:
    VIEW_SIZE = 16
    MAX_INLINE = 12      # bytes of the longest text that is inside its view
    NULLABLE = 2         # the flag of a schema; that of a table lacks it, that of a column of structs has it

cdef int64_t _MAX_SIZE = 2**63 - 1
cdef const uint8_t *_NO_BYTES = <const uint8_t *> b""  # where an empty text is whose buffer is not there

_KINDS = {
    b"n": NOTHING, b"u": OFFSETS_32, b"z": OFFSETS_32, b"U": OFFSETS_64, b"Z": OFFSETS_64, b"vu": VIEWS, b"vz": VIEWS,
}
_FAULTS = {
    BAD_OFFSETS: "offsets that are negative or descend",
    BAD_VIEW: "a view that reaches beyond its buffer",
    BAD_INDEX: "an index outside its dictionary",
    BAD_RUN: "a place after the last run",
}
_WORDS = {
    "b": "bool", "+r": "run-end encoded", "+": "nested", "t": "time", "d": "decimal", "e": "float", "f": "float",
    "g": "float",
}


def is_arrow(value):
    """Tell whether a value has the Arrow PyCapsule interface."""
    return hasattr(value, "__arrow_c_array__") or hasattr(value, "__arrow_c_stream__")


# ---- schemas ----

cdef int _read_schema(const ArrowSchema *schema, Layout *layout, str name) except -1:
    cdef const ArrowSchema *texts = schema
    if schema.release == NULL:
        raise ValueError(f"{name} exports an Arrow schema that is already released; create the column again")
    memset(layout, 0, sizeof(Layout))
    if schema.format != NULL and schema.format[0] == b"+" and schema.format[1] == b"s":
        if schema.n_children < 0 or (schema.n_children and not _all_there(schema.children, schema.n_children)):
            raise ValueError(f"{name} exports an Arrow schema without its {schema.n_children} columns; create it again")
        columns = ", ".join([repr(_decoded(schema.children[i].name)) for i in range(schema.n_children)])
        if schema.flags & NULLABLE:
            raise TypeError(
                f"{name} must be a column of strings or bytes, got a column of structs ({columns}); "
                "pick one of its fields"
            )
        if schema.n_children != 1:
            raise TypeError(
                f"{name} must be one column of texts, got a table of {schema.n_children} ({columns}); pick a column"
            )
        layout.table = True
        texts = schema.children[0]
    if texts.format != NULL and texts.format[0] == b"+" and texts.format[1] == b"r":
        if texts.n_children != 2 or not _all_there(texts.children, 2):
            raise ValueError(f"{name} exports an Arrow schema of runs without their ends or values; create it again")
        layout.run = texts.children[0].format[0] if texts.children[0].format != NULL else 0
        if layout.run == 0 or len(texts.children[0].format) != 1 or layout.run not in b"sil":
            raise ValueError(
                f"{name} has run ends of Arrow type {_decoded(texts.children[0].format)!r}, not of signed integers of "
                "16, 32 or 64 bits; create it again"
            )
        texts = texts.children[1]
    if texts.dictionary != NULL:
        layout.index = texts.format[0] if texts.format != NULL else 0
        if layout.index == 0 or len(texts.format) != 1 or layout.index not in b"cCsSiIlL":
            raise ValueError(
                f"{name} has dictionary indices of Arrow type {_decoded(texts.format)!r}, not integers; create it again"
            )
        texts = texts.dictionary
    written = _decoded(texts.format)
    if texts.dictionary == NULL and written.startswith("w:") and written[2:].isdecimal() and len(written) <= 12:
        layout.kind, layout.width = FIXED, int(written[2:])
    elif texts.dictionary == NULL and written.encode() in _KINDS:
        layout.kind = <Kind> <int> _KINDS[written.encode()]
    else:
        kind = "integer" if written[:1] in tuple("cCsSiIlL") else "unknown"
        kind = _WORDS.get(written) or _WORDS.get(written[:1], kind)
        raise TypeError(
            f"{name} must be a column of strings or bytes, got Arrow type {written!r} ({kind}); "
            "pick another column or cast it"
        )
    layout.is_bytes = layout.kind == FIXED or written in ("z", "Z", "vz")
    return 0


cdef bint _all_there(ArrowSchema **children, int64_t count) noexcept:
    """Tell whether there are as many schemas as a table says."""
    cdef int64_t i
    if children == NULL:
        return False
    for i in range(count):
        if children[i] == NULL:
            return False
    return True


cdef str _decoded(const char *words):
    return "" if words == NULL else (<bytes> words).decode("utf-8", "replace")


# ---- arrays ----

cdef int _check(bint holds, str name, str what) except -1:
    if not holds:
        raise ValueError(f"{name} exports an Arrow array with {what}; create the column again")
    return 0


cdef int _read_array(const ArrowArray *array, TextArray *texts, Kind kind, Py_ssize_t width, str name) except -1:
    """Describe an array of texts (or of indices, which are of one width), its structure checked."""
    cdef Py_ssize_t needed = 0 if kind == NOTHING else 2 if kind == FIXED else 3
    memset(texts, 0, sizeof(TextArray))
    _check(array.length >= 0 and array.offset >= 0
           and array.length <= _MAX_SIZE // max(width, VIEW_SIZE) - array.offset,
           name, f"length {array.length} and offset {array.offset}")
    _check(array.n_buffers == needed or (kind == VIEWS and array.n_buffers > needed)
           or (kind == NOTHING and array.n_buffers == 1),  # polars gives such an array a bitmap
           name, f"{array.n_buffers} buffers where {needed} are expected")
    texts.kind, texts.count, texts.first, texts.width, texts.stride = kind, array.length, array.offset, width, width
    if kind == NOTHING or array.length == 0:
        return 0
    _check(array.buffers != NULL, name, "no buffers")
    if array.null_count != 0:
        texts.validity = <const uint8_t *> array.buffers[0]
        _check(texts.validity != NULL or array.null_count < 0, name, f"{array.null_count} nulls and no validity bitmap")
    texts.places = <const uint8_t *> array.buffers[1]
    if kind == FIXED and width == 0 and texts.places == NULL:
        texts.places = _NO_BYTES
    _check(texts.places != NULL, name, "a missing buffer")
    if kind == VIEWS:
        texts.num_buffers = array.n_buffers - needed
        texts.buffers = array.buffers + 2
        texts.sizes = <const uint8_t *> array.buffers[array.n_buffers - 1]
        _check(texts.sizes != NULL or texts.num_buffers == 0, name, "no sizes of its buffers")
    elif kind != FIXED:
        texts.bytes = <const uint8_t *> array.buffers[2]
    return 0


cdef Py_ssize_t _index_width(char index) noexcept:
    return 1 if index in b"cC" else 2 if index in b"sS" else 4 if index in b"iI" else 8


cdef bint _is_valid(const uint8_t *validity, Py_ssize_t place) noexcept nogil:
    return validity == NULL or (validity[place >> 3] >> (place & 7)) & 1


cdef Py_ssize_t _index(const uint8_t *indices, char index, Py_ssize_t place) noexcept nogil:
    """Read an index of any width; -1 where it is beyond any dictionary."""
    cdef int16_t two
    cdef int32_t four
    cdef int64_t eight
    if index == b"c" or index == b"C":
        return (<const int8_t *> indices)[place] if index == b"c" else indices[place]
    if index == b"s" or index == b"S":
        memcpy(&two, indices + 2 * place, 2)
        return two if index == b"s" else <uint16_t> two
    if index == b"i" or index == b"I":
        memcpy(&four, indices + 4 * place, 4)
        return four if index == b"i" else <Py_ssize_t> <uint32_t> four
    memcpy(&eight, indices + 8 * place, 8)
    return eight if eight >= 0 else -1


cdef Fault _find_by_offsets(const TextArray *texts, Py_ssize_t place, const uint8_t **text,
                            Py_ssize_t *length) noexcept nogil:
    cdef int64_t wide[2]
    cdef int32_t narrow[2]
    if texts.kind == OFFSETS_32:
        memcpy(narrow, texts.places + 4 * place, 8)
        wide[0], wide[1] = narrow[0], narrow[1]
    else:
        memcpy(wide, texts.places + 8 * place, 16)
    if wide[0] < 0 or wide[1] < wide[0] or (wide[1] > wide[0] and texts.bytes == NULL):
        return BAD_OFFSETS
    text[0] = texts.bytes + wide[0] if texts.bytes != NULL else _NO_BYTES
    length[0] = wide[1] - wide[0]
    return NO_FAULT


cdef Fault _find_by_view(const TextArray *texts, Py_ssize_t place, const uint8_t **text,
                         Py_ssize_t *length) noexcept nogil:
    """A view is its length, then the text; or, if that is long, its first bytes, buffer number and offset there."""
    cdef const uint8_t *view = texts.places + VIEW_SIZE * place
    cdef uint32_t words[4]
    cdef int64_t size
    memcpy(words, view, VIEW_SIZE)
    length[0] = words[0]
    if words[0] <= MAX_INLINE:
        text[0] = view + 4
        return NO_FAULT
    if words[2] >= <uint64_t> texts.num_buffers:
        return BAD_VIEW
    memcpy(&size, texts.sizes + 8 * words[2], 8)
    if <int64_t> words[3] + <int64_t> words[0] > size or texts.buffers[words[2]] == NULL:
        return BAD_VIEW
    text[0] = <const uint8_t *> texts.buffers[words[2]] + words[3]
    return NO_FAULT


cdef Fault _find(const TextArray *texts, Py_ssize_t i, const uint8_t **text, Py_ssize_t *length) noexcept nogil:
    cdef Py_ssize_t place = texts.first + i
    if texts.kind == NOTHING or not _is_valid(texts.validity, place):
        return MISSING
    if texts.kind == OFFSETS_32 or texts.kind == OFFSETS_64:
        return _find_by_offsets(texts, place, text, length)
    if texts.kind == VIEWS:
        return _find_by_view(texts, place, text, length)
    text[0] = texts.places + texts.stride * place
    length[0] = texts.width
    if texts.kind == PADDED:
        while length[0] > 0 and text[0][length[0] - 1] == 0:
            length[0] -= 1
    return NO_FAULT


cdef Py_ssize_t _run_of(const TextArray *ends, char run, Py_ssize_t place) noexcept nogil:
    """Return the first run that ends after a place; their number if none does."""
    cdef Py_ssize_t low = 0, high = ends.count, middle
    while low < high:
        middle = low + (high - low) // 2
        if _index(ends.places, run, ends.first + middle) > place:
            high = middle
        else:
            low = middle + 1
    return low


# ---- columns ----

@final
cdef class Column:
    """Texts of one Arrow array, or of one numpy array of fixed-width bytes, which it keeps alive. Immutable.

    Made by `Columns` and `fixed_width`; a damaged text is found when a batch reads it.
    """

    def __dealloc__(self):
        if self.array.release != NULL:
            self.array.release(&self.array)
        PyBuffer_Release(&self.view)

    def __len__(self):
        return self.count

    cdef int _take(self, ArrowArray *array, Layout *layout, str name) except -1:
        """Move an array out of its producer's struct; from then on this object releases it."""
        cdef ArrowArray *texts = &self.array
        if array.release == NULL:
            raise ValueError(f"{name} exports an Arrow array that is already released; create the column again")
        self.array = array[0]
        array.release = NULL
        if layout.table:
            _check(texts.length >= 0 and texts.offset >= 0 and texts.length <= _MAX_SIZE - texts.offset
                   and texts.n_buffers == 1 and texts.n_children == 1 and texts.children != NULL
                   and texts.children[0] != NULL
                   and texts.children[0].length >= texts.offset + texts.length, name, "a column shorter than its table")
            if texts.null_count != 0 and texts.buffers != NULL:
                self.rows = <const uint8_t *> texts.buffers[0]
            self.first_row, self.count = texts.offset, texts.length
            texts = texts.children[0]
        if not layout.table:
            self.count = texts.length
        self.run, self.is_bytes = layout.run, layout.is_bytes
        if layout.run:
            texts = self._take_runs(texts, name)
        self.index = layout.index
        if layout.index:
            _read_array(texts, &self.indices, FIXED, _index_width(layout.index), name)
            _check(texts.dictionary != NULL, name, "no dictionary")
            _read_array(texts.dictionary, &self.texts, layout.kind, layout.width, name)
        else:
            _read_array(texts, &self.texts, layout.kind, layout.width, name)
        return 0

    cdef ArrowArray *_take_runs(self, ArrowArray *array, str name) except NULL:
        """Check the run ends of an array, and return the array of the values, one for each run."""
        cdef Py_ssize_t i, before = 0, end
        _check(array.length >= 0 and array.offset >= 0 and array.length <= _MAX_SIZE - array.offset,
               name, f"length {array.length} and offset {array.offset}")
        _check(array.n_buffers == 0 and array.null_count <= 0, name, "buffers or nulls beside its runs")
        _check(array.n_children == 2 and array.children != NULL and array.children[0] != NULL
               and array.children[1] != NULL, name, "runs without their ends or values")
        _read_array(array.children[0], &self.ends, FIXED, _index_width(self.run), name)
        _check(self.ends.validity == NULL, name, "null run ends")
        _check(array.children[1].length >= self.ends.count, name, "fewer values than runs")
        for i in range(self.ends.count):
            end = _index(self.ends.places, self.run, self.ends.first + i)
            _check(end > before, name, "run ends that are not positive and ascending")
            before = end
        self.first_place = array.offset
        _check(array.length == 0 or before >= array.offset + array.length, name, "runs that end before its length")
        return array.children[1]

    cdef Fault find(self, Py_ssize_t i, const uint8_t **text, Py_ssize_t *length) noexcept nogil:
        """Find text i (0 .. count - 1)."""
        cdef Py_ssize_t place
        if not _is_valid(self.rows, self.first_row + i):
            return MISSING
        i += self.first_row
        if self.run:
            i = _run_of(&self.ends, self.run, self.first_place + i)
            if i >= self.ends.count:
                return BAD_RUN
        if self.index:
            place = self.indices.first + i
            if not _is_valid(self.indices.validity, place):
                return MISSING
            i = _index(self.indices.places, self.index, place)
            if not 0 <= i < self.texts.count:
                return BAD_INDEX
        return _find(&self.texts, i, text, length)


def fault(int code):
    """Return a description of a fault that `Column.find` found."""
    return _FAULTS[code]


def fixed_width(array not None):
    """Make a column of a numpy array of dtype ``S``, shape ``(n,)``; trailing NULs do not count, as in numpy."""
    cdef Column column = Column()
    PyObject_GetBuffer(array, &column.view, PyBUF_STRIDED_RO)
    if array.dtype.kind != "S" or column.view.ndim != 1:
        raise ValueError("array must have dtype S and one dimension")
    column.count = column.texts.count = column.view.shape[0]
    column.texts.kind, column.is_bytes = PADDED, True
    column.texts.places = <const uint8_t *> column.view.buf
    column.texts.width, column.texts.stride = column.view.itemsize, column.view.strides[0]
    return column


@final
cdef class Columns:
    """An iterator over the columns of an object with the Arrow PyCapsule interface, one for each chunk.

    Not safe to share between threads.

    Parameters
    ----------
    source : object
        Has ``__arrow_c_array__`` or ``__arrow_c_stream__``: strings or bytes, or a table of one such column.
    name : str, optional
        What the caller calls it, for messages.

    Raises
    ------
    TypeError
        If the type of the column is another one, or a table has more columns.
    ValueError
        If the exported data are damaged or were already read.
    OSError
        If a stream fails; the message is the producer's.
    """

    cdef ArrowArrayStream stream
    cdef Layout layout
    cdef Column only      # of an array
    cdef str name
    cdef bint busy        # while the producer runs, which may release the GIL or call Python

    def __cinit__(self, source not None, str name not None="texts"):
        self.name = name
        is_array = hasattr(source, "__arrow_c_array__")
        handed = source.__arrow_c_array__() if is_array else source.__arrow_c_stream__()
        try:
            if is_array:
                self._take_array(handed)
            else:
                self._take_stream(handed)
        finally:
            handed = None  # no exception is pending here, so a producer written in Python can run

    def __dealloc__(self):
        if self.stream.release != NULL:
            self.stream.release(&self.stream)

    def __iter__(self):
        return self

    def __next__(self):
        cdef ArrowArray array
        cdef Column column = self.only
        cdef int code
        if column is not None:
            self.only = None
            return column
        if self.stream.release == NULL:
            raise StopIteration
        if self.busy:
            raise RuntimeError(f"the Arrow stream of {self.name} is being read already, maybe by another thread")
        column = Column()
        memset(&array, 0, sizeof(ArrowArray))
        self.busy = True
        with nogil:
            code = self.stream.get_next(&self.stream, &array)
        self.busy = False
        self._check(code)
        if array.release == NULL:
            self.stream.release(&self.stream)
            self.stream.release = NULL
            raise StopIteration
        column._take(&array, &self.layout, self.name)
        return column

    cdef int _take_array(self, handed) except -1:
        cdef Column column = Column()
        cdef tuple capsules = tuple(handed) if isinstance(handed, tuple) else ()  # held while they are read
        if (len(capsules) != 2 or not PyCapsule_IsValid(capsules[0], b"arrow_schema")
                or not PyCapsule_IsValid(capsules[1], b"arrow_array")):
            raise TypeError(f"__arrow_c_array__ of {self.name} must return the capsules of a schema and an array")
        _read_schema(<ArrowSchema *> PyCapsule_GetPointer(capsules[0], b"arrow_schema"), &self.layout, self.name)
        column._take(<ArrowArray *> PyCapsule_GetPointer(capsules[1], b"arrow_array"), &self.layout, self.name)
        self.only = column
        return 0

    cdef int _take_stream(self, capsule) except -1:
        cdef ArrowArrayStream *handed
        cdef ArrowSchema schema
        cdef int code
        if not PyCapsule_IsValid(capsule, b"arrow_array_stream"):
            raise TypeError(f"__arrow_c_stream__ of {self.name} must return the capsule of a stream")
        handed = <ArrowArrayStream *> PyCapsule_GetPointer(capsule, b"arrow_array_stream")
        if handed.release == NULL:
            raise ValueError(f"{self.name} exports an Arrow stream that is already released; create it again")
        if handed.get_schema == NULL or handed.get_next == NULL:
            raise ValueError(f"{self.name} exports an Arrow stream without its functions; create it again")
        self.stream = handed[0]
        handed.release = NULL
        memset(&schema, 0, sizeof(ArrowSchema))
        with nogil:
            code = self.stream.get_schema(&self.stream, &schema)
        self._check(code)
        try:
            _read_schema(&schema, &self.layout, self.name)
        finally:
            if schema.release != NULL:
                schema.release(&schema)
        return 0

    cdef int _check(self, int code) except -1:
        cdef const char *words = NULL
        if code == 0:
            return 0
        if self.stream.get_last_error != NULL:
            words = self.stream.get_last_error(&self.stream)
        raise OSError(code, f"the Arrow stream of {self.name} failed: {_decoded(words) or 'no reason given'}")
