# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""The sorted keys of a segment of an index: sorting, searching and merging them, and the checksums of its file.

Arrays may be parts of a mapped file, whose content is not trusted: what depends on it is checked here, and the kernels
check numbers before they use them. A fault in the content is an `IndexDamagedError`. Shapes, types and alignment of
arrays are those that the modules of this folder pass; they are not checked again. Objects are immutable, so threads may
share them; the GIL is released. Integers of a file are little-endian. What a segment is, `lsh.index` defines.
"""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from lsh cimport _kernels as c
from lsh.base.memory cimport resize
from lsh._minhash cimport check_signals, chosen_kernels, hash_x64_128

import numpy as np

cdef enum:
    CHECKED = 1 << 26       # bytes whose checksums are compared between two checks for signals
    PLACES = 1 << 18        # keys that are verified between two checks for signals
    MERGED = 1 << 14        # keys that are merged at once
    MIN_MERGED = 64       # of each part
    SIGNAL_WORK = 1 << 20   # nanoseconds of a search after which signals are checked

cdef object _INT64 = np.dtype(np.int64), _UINT32 = np.dtype(np.uint32), _UINT16 = np.dtype(np.uint16), _empty = np.empty
cdef dict _NONE = {dtype: _empty(0, dtype) for dtype in (_UINT32, _UINT16)}
cdef Py_ssize_t _MAX_KEYS = 2**32 - 2
_FAULTS = {
    c.LSH_BAD_NUMBER: "a document number is out of range",
    c.LSH_BAD_ORDER: "the sorted keys are not in order",
}


class IndexDamagedError(ValueError):
    """A file of an index is damaged."""

    __module__ = "lsh.index"  # where it is public


cdef object _flat(name, array, dtype):
    """Return an array as bytes, after checking that it is one-dimensional, contiguous and of that type."""
    own = np.asarray(array)
    if own.ndim != 1 or own.dtype != np.dtype(dtype) or not own.flags.c_contiguous:
        raise ValueError(f"{name} must be a contiguous array of {np.dtype(dtype).name}")
    return own.view(np.uint8)


# ---- checksums ----

def block_sums(const uint8_t[::1] data not None):
    """Return the checksum of each block of 64 KiB of a file, of which the last may be shorter.

    Parameters
    ----------
    data : buffer of uint8
        The file, or a part of it from a multiple of 64 KiB on.

    Returns
    -------
    numpy.ndarray
        Little-endian uint64: the first half of MurmurHash3_x64_128 of the block, with seed 0.
    """
    sums = np.empty((data.shape[0] + c.LSH_BLOCK - 1) // c.LSH_BLOCK, "<u8")
    cdef uint8_t[::1] out = sums.view(np.uint8)
    if data.shape[0]:
        with nogil:
            c.lsh_block_sums(&data[0], data.shape[0], hash_x64_128, &out[0])
    return sums


cdef class Blocks:
    """A file whose blocks are compared with their checksums when they are first used.

    Immutable but for the map of the blocks that were checked, which threads share: a block may be checked twice.

    Parameters
    ----------
    file : buffer of uint8
        The part of the file that has checksums.
    sums : numpy.ndarray
        What `block_sums` returned for it.
    name : str
        The name of the file, for errors.
    """

    cdef readonly str name
    cdef const uint8_t[::1] file
    cdef const uint8_t[::1] sums
    cdef uint8_t[::1] checked
    cdef c.lsh_blocks blocks

    def __cinit__(self, const uint8_t[::1] file not None, sums not None, str name not None):
        cdef Py_ssize_t count = (file.shape[0] + c.LSH_BLOCK - 1) // c.LSH_BLOCK
        self.file, self.sums, self.name = file, _flat("sums", sums, "<u8"), name
        self.checked = np.zeros(max(count, 1), np.uint8)
        self.blocks = c.lsh_blocks(
            &self.file[0], self.file.shape[0], &self.sums[0], &self.checked[0], hash_x64_128
        )

    def check(self, Py_ssize_t start, Py_ssize_t stop):
        """Raise `IndexDamagedError` if a block that holds the bytes from `start` to `stop` - 1 is damaged.

        A block that was checked before is not read again.
        """
        if not 0 <= start <= stop <= self.file.shape[0]:
            raise ValueError(f"start and stop must ascend from 0 to {self.file.shape[0]}, got {start} and {stop}")
        with nogil:
            self._check(&self.blocks, start, stop)

    def verify(self):
        """Raise `IndexDamagedError` if any block is damaged; all are read, also those that were checked before."""
        cdef uint8_t[::1] checked = np.zeros(self.checked.shape[0], np.uint8)
        cdef c.lsh_blocks blocks = self.blocks
        blocks.checked = &checked[0]
        with nogil:
            self._check(&blocks, 0, self.file.shape[0])

    cdef int _check(self, c.lsh_blocks *blocks, Py_ssize_t start, Py_ssize_t stop) except -1 nogil:
        cdef Py_ssize_t more
        cdef size_t block
        while start < stop:
            more = min(stop - start, <Py_ssize_t> CHECKED)
            block = c.lsh_check_blocks(blocks, &self.file[start], more)
            if block != <size_t> -1:
                with gil:
                    raise self._damage(block)
            start += more
            if start < stop:
                check_signals()
        return 0

    cdef object _damage(self, size_t block):
        first = block * c.LSH_BLOCK
        last = min(first + c.LSH_BLOCK, self.file.shape[0]) - 1
        return IndexDamagedError(
            f"{self.name} is damaged: bytes {first} to {last} do not have their checksum; restore the index from a "
            "backup, or create it again"
        )


cdef object _fault(Blocks blocks, c.lsh_fault fault, size_t block):
    """The error for a fault that a kernel has found."""
    if fault == c.LSH_BAD_BLOCK:
        return blocks._damage(block)
    name = "the index" if blocks is None else blocks.name
    what = f"{name} is damaged: {_FAULTS[fault]}"
    return IndexDamagedError(f"{what}; restore the index from a backup, or create it again")


# ---- sorted keys ----

cdef class _Output:
    """The arrays of sorted keys that are being written."""

    cdef object arrays
    cdef uint8_t[::1] keys
    cdef uint8_t[::1] numbers
    cdef c.lsh_sorted_output out

    def __cinit__(self, Py_ssize_t count, tuple reused=None):
        if count > _MAX_KEYS:
            raise OverflowError(f"a segment holds at most {_MAX_KEYS} keys, got {count}")
        if reused is not None and len(reused[1]) == count:
            self.arrays = reused
        else:
            self.arrays = np.empty(count, "<u8"), np.empty(count, "<u4")
        self.keys, self.numbers = (array.view(np.uint8) for array in self.arrays)
        self.out = c.lsh_sorted_output(&self.keys[0], &self.numbers[0], count, 0)


cdef class _Records:
    """Memory for sorting."""

    cdef c.lsh_numbered_key *records
    cdef c.lsh_numbered_key *other

    def __cinit__(self, size_t count):
        self.records = <c.lsh_numbered_key *> resize(NULL, count, sizeof(c.lsh_numbered_key))
        self.other = <c.lsh_numbered_key *> resize(NULL, count, sizeof(c.lsh_numbered_key))

    def __dealloc__(self):
        free(self.records)
        free(self.other)


def sorted_keys(const uint64_t[::1] keys not None, const uint32_t[::1] numbers not None):
    """Sort keys, and write them in the form of a segment.

    Parameters
    ----------
    keys : numpy.ndarray
        uint64, shape ``(m,)``.
    numbers : numpy.ndarray
        uint32, shape ``(m,)``: the documents of the keys, ascending.

    Returns
    -------
    tuple
        The arrays for `SortedKeys`: the keys (uint64) and their documents (uint32), ascending by key, then document.
    """
    cdef Py_ssize_t count = keys.shape[0]
    cdef _Output output
    cdef _Records memory
    cdef c.lsh_numbered_key *done
    output, memory = _Output(count), _Records(count)
    with nogil:
        done = c.lsh_sort_keys(&keys[0], &numbers[0], count, memory.records, memory.other)
        c.lsh_put_keys(&output.out, done, count)
    return output.arrays


cdef class SortedKeys:
    """The keys of a band with the documents that have them, or the hashes of ids.

    Parameters
    ----------
    keys, numbers : numpy.ndarray
        What `sorted_keys` returned; possibly parts of a mapped file.
    blocks : Blocks or None
        The file that has the arrays; None: they are not checked. The arrays must be views of its memory.
    """

    cdef const uint8_t[::1] keys
    cdef const uint8_t[::1] numbers
    cdef Blocks blocks
    cdef c.lsh_sorted sorted

    def __cinit__(self, keys not None, numbers not None, Blocks blocks=None):
        cdef size_t count
        self.keys, self.numbers, self.blocks = _flat("keys", keys, "<u8"), _flat("numbers", numbers, "<u4"), blocks
        count = self.numbers.shape[0] // 4
        if count > <size_t> _MAX_KEYS or <size_t> self.keys.shape[0] != 8 * count:
            raise IndexDamagedError(f"there are {self.keys.shape[0] // 8} keys and {count} documents")
        self.sorted = c.lsh_sorted(&self.keys[0], &self.numbers[0], count, NULL)
        if blocks is not None:
            self.sorted.blocks = &blocks.blocks

    def __len__(self):
        return self.sorted.count

    def find(self, const uint64_t[::1] keys not None):
        """Find keys.

        Parameters
        ----------
        keys : numpy.ndarray
            uint64, shape ``(q,)``.

        Returns
        -------
        tuple
            Where the documents of each key begin and end (int64, shape ``(q,)``), for `members`; equal where there is
            none.
        """
        cdef Py_ssize_t i, at = 0, more, count = keys.shape[0]
        cdef c.lsh_run runs[c.LSH_FOUND]
        cdef c.lsh_fault fault = c.LSH_SOUND
        cdef size_t block = 0
        cdef int64_t[::1] starts = np.empty(count, np.int64), stops = np.empty(count, np.int64)
        with nogil:
            while at < count and fault == c.LSH_SOUND:
                more = min(count - at, <Py_ssize_t> c.LSH_FOUND)
                fault = c.lsh_find_keys(&self.sorted, &keys[at], more, runs, &block)
                if fault == c.LSH_SOUND:
                    for i in range(more):
                        starts[at + i], stops[at + i] = runs[i].start, runs[i].stop
                at += more
        if fault != c.LSH_SOUND:
            raise _fault(self.blocks, fault, block)
        return np.asarray(starts), np.asarray(stops)

    def members(self, Py_ssize_t start, Py_ssize_t stop):
        """Return the documents from place `start` to `stop` - 1: uint32. Their numbers are not checked."""
        if not 0 <= start <= stop <= <Py_ssize_t> self.sorted.count:
            raise ValueError(f"start and stop must ascend from 0 to {self.sorted.count}, got {start} and {stop}")
        if self.blocks is not None and start < stop:
            with nogil:
                self.blocks._check(&self.blocks.blocks, self.sorted.numbers + 4 * start - self.blocks.blocks.file,
                                   self.sorted.numbers + 4 * stop - self.blocks.blocks.file)
        return np.asarray(self.numbers[4 * start:4 * stop]).view("<u4").astype(np.uint32)

    def verify(self, size_t documents):
        """Raise `IndexDamagedError` if keys or documents do not ascend, or a document is not below `documents`."""
        cdef size_t at = 0, more, block = 0, count = self.sorted.count
        cdef c.lsh_fault fault
        with nogil:
            while True:
                more = min(count - at, <size_t> PLACES)
                fault = c.lsh_check_keys(&self.sorted, documents, at, more, &block)
                at += more
                if fault != c.LSH_SOUND or at == count:
                    break
                check_signals()
        if fault != c.LSH_SOUND:
            raise _fault(self.blocks, fault, block)


# ---- search ----

cdef class _Search:
    """A search under way, its memory and its matches; segments of one index are searched in turn."""

    cdef c.lsh_search *search
    cdef c.lsh_matches matches
    cdef const uint64_t[:, ::1] keys
    cdef Py_buffer rows
    cdef size_t queries, min_equal, max_matches
    cdef c.lsh_run *runs
    cdef uint32_t *tallies

    def __cinit__(self, Searcher searcher, const uint64_t[:, ::1] keys not None, rows, size_t min_equal, top):
        cdef size_t bands = searcher.segment.num_bands, count = keys.shape[1] * bands
        self.keys, self.queries, self.min_equal = keys, keys.shape[1], min_equal
        self.max_matches = <size_t> -1 if top is None else top
        self.search = <c.lsh_search *> resize(NULL, 1, sizeof(c.lsh_search))
        self.runs = <c.lsh_run *> resize(NULL, min(count, max(bands, <size_t> c.LSH_LOOKUPS)), sizeof(c.lsh_run))
        self.tallies = <uint32_t *> resize(NULL, 0 if top is None else searcher.segment.k + 1, sizeof(uint32_t))
        self.matches.bounds = <int64_t *> resize(NULL, self.queries + 1, sizeof(int64_t))
        self.matches.bounds[0] = 0
        PyObject_GetBuffer(rows, &self.rows, PyBUF_C_CONTIGUOUS)

    def __dealloc__(self):
        PyBuffer_Release(&self.rows)
        free(self.search)
        free(self.runs)
        free(self.tallies)
        free(self.matches.bounds)
        free(self.matches.numbers)
        free(self.matches.equal)

    cdef int reserve(self) except -1:
        """Make room for LSH_PIECE more matches."""
        cdef size_t count = self.matches.count
        if self.matches.capacity - count < c.LSH_PIECE:
            count = 2 * count + 2 * c.LSH_PIECE
            self.matches.numbers = <uint32_t *> resize(self.matches.numbers, count, sizeof(uint32_t))
            self.matches.equal = <uint16_t *> resize(self.matches.equal, count, sizeof(uint16_t))
            self.matches.capacity = count
        return 0

    cdef int run(self, Searcher searcher) except -1:
        """Search a segment."""
        cdef c.lsh_search *search = self.search
        cdef c.lsh_fault fault
        memset(search, 0, sizeof(c.lsh_search))
        search.keys, search.rows = &self.keys[0, 0], <const uint8_t *> self.rows.buf
        search.queries, search.least, search.most = self.queries, self.min_equal, self.max_matches
        search.runs, search.tallies, self.matches.count = self.runs, self.tallies, 0
        while search.query < search.queries:
            self.reserve()
            with nogil:
                fault = c.lsh_search_next(&searcher.segment, search, &self.matches)
            if fault != c.LSH_SOUND:
                raise _fault(searcher.blocks, fault, search.block)
            if search.work >= SIGNAL_WORK:
                check_signals()
        return 0

    cdef object result(self):
        cdef size_t count = self.matches.count
        return (
            _array(self.matches.bounds, self.queries + 1, _INT64),
            _array(self.matches.numbers, count, _UINT32),
            _array(self.matches.equal, count, _UINT16),
        )


cdef object _array(const void *values, size_t count, dtype):
    """An array with these values."""
    cdef Py_buffer view
    if not count:
        return _NONE[dtype]
    array = _empty(count, dtype)
    PyObject_GetBuffer(array, &view, PyBUF_WRITABLE)
    memcpy(view.buf, values, view.len)
    PyBuffer_Release(&view)
    return array


cdef class Searcher:
    """The bands of a segment, searched together.

    Parameters
    ----------
    bands : list of SortedKeys
        One or more.
    documents : int
        The number n of documents of the segment.
    sketches : numpy.ndarray
        Shape ``(n, k)``, uint8, or little-endian uint32 or uint64; contiguous.
    removed : numpy.ndarray, optional
        uint8, shape ``((n + 7) // 8,)``: a bit a document, the low bit of a byte first; 1: it is never found.

    The bands are parts of one file, with the same `Blocks`, and the sketches of the same, or no band has any.
    """

    cdef object bands  # holds the memory
    cdef c.lsh_sorted *sorted
    cdef c.lsh_segment segment
    cdef const uint8_t[::1] sketches
    cdef const uint8_t[::1] removed
    cdef Blocks blocks

    def __cinit__(self, list bands not None, Py_ssize_t documents, sketches not None, removed=None):
        cdef Py_ssize_t i
        self.bands = tuple(bands)
        if not 0 <= documents <= _MAX_KEYS:
            raise ValueError(f"documents must be from 0 to {_MAX_KEYS}, got {documents}")
        self.sorted = <c.lsh_sorted *> resize(NULL, len(self.bands), sizeof(c.lsh_sorted))
        self.blocks = (<SortedKeys?> self.bands[0]).blocks
        for i in range(len(self.bands)):
            self.sorted[i] = (<SortedKeys?> self.bands[i]).sorted
        self.segment = c.lsh_segment(self.sorted, len(self.bands), documents, NULL, NULL, 0, 1, NULL, chosen_kernels())
        if removed is not None:
            self.removed = _flat("removed", removed, np.uint8)
            self.segment.removed = &self.removed[0]
        if not 1 <= sketches.shape[1] < 1 << 16:  # as the manifest has it
            raise ValueError(f"sketches must have 1 to 65535 components, got {sketches.shape[1]}")
        self.segment.k, self.segment.width = sketches.shape[1], sketches.itemsize
        self.sketches = sketches.reshape(-1).view(np.uint8)
        self.segment.sketches = &self.sketches[0]
        if self.blocks is not None:
            self.segment.blocks = &self.blocks.blocks

    def __dealloc__(self):
        free(self.sorted)

    def search(self, keys not None, rows not None, size_t min_equal=0, top=None):
        """Find the documents that share a bucket with a query and have enough components in common with it.

        Parameters
        ----------
        keys : numpy.ndarray
            uint64, shape ``(bands, q)``: the keys of each query.
        rows : numpy.ndarray
            Shape ``(q, k)``, of the type of the sketches: the sketches of the queries.
        min_equal : int, optional
            A document with fewer equal components is not a match.
        top : int, optional
            1 or more: of more matches, only those with most equal components; of equal ones, the first.

        Returns
        -------
        bounds : numpy.ndarray
            int64, shape ``(q + 1,)``: the matches of query i are those from bounds[i] to bounds[i + 1] - 1.
        numbers : numpy.ndarray
            uint32: the documents, each once, ascending within a query.
        equal : numpy.ndarray
            uint16: how many components are equal.

        Notes
        -----
        Takes memory in proportion to the result, whatever the size of the buckets.
        """
        cdef _Search search = _Search(self, keys, rows, min_equal, top)
        search.run(self)
        return search.result()


def search_all(list searchers not None, keys not None, rows not None, size_t min_equal=0, top=None):
    """Search the segments of an index, which have the same bands and the same kind of sketches.

    Parameters
    ----------
    searchers : list of Searcher
        The segments; without any, nothing is checked.
    keys, rows, min_equal, top
        As for `Searcher.search`.

    Returns
    -------
    list of tuple
        Of each segment with matches: its position, and what `Searcher.search` returns.
    """
    cdef Searcher searcher
    cdef _Search search = None
    found = []
    for i, one in enumerate(searchers):
        searcher = <Searcher?> one
        if search is None:
            search = _Search(searcher, keys, rows, min_equal, top)
        search.run(searcher)
        if search.matches.count:
            found.append((i, *search.result()))
    return found


# ---- merge ----

cdef class _Merge:
    """A merge under way, and its memory."""

    cdef list parts
    cdef list renumbered  # holds the memory of the arrays
    cdef _Records memory
    cdef c.lsh_merge merge

    def __cinit__(self, list parts not None, list renumbered not None):
        cdef Py_ssize_t i, count = len(parts)
        cdef const uint32_t[::1] numbers
        cdef c.lsh_merge_part *part
        self.parts, self.renumbered = list(parts), []
        self.merge.num_parts, self.merge.share = count, max(MERGED // max(count, 1), MIN_MERGED)
        self.memory = _Records(count * self.merge.share)
        self.merge.records, self.merge.other = self.memory.records, self.memory.other
        self.merge.parts = <c.lsh_merge_part *> resize(NULL, count, sizeof(c.lsh_merge_part))
        memset(self.merge.parts, 0, count * sizeof(c.lsh_merge_part))
        for i in range(count):
            part = self.merge.parts + i
            part.sorted, part.documents = &(<SortedKeys?> self.parts[i]).sorted, len(renumbered[i])
            if isinstance(renumbered[i], range):
                part.first = renumbered[i].start
            else:
                numbers = renumbered[i]
                self.renumbered.append(numbers)
                part.renumbered = &numbers[0]
            self.merge.left += part.sorted.count

    def __dealloc__(self):
        free(self.merge.parts)

    cdef Py_ssize_t count(self) except -1:
        """Count the keys that are not dropped."""
        cdef size_t kept = 0
        cdef c.lsh_merge_part *part
        cdef c.lsh_fault fault = c.LSH_SOUND
        for self.merge.part in range(self.merge.num_parts):
            part = self.merge.parts + self.merge.part
            while part.at < part.sorted.count:
                with nogil:
                    fault = c.lsh_merge_count(part, &kept, &self.merge.block)
                self.check(fault)
                check_signals()
            part.at = 0
        return kept

    cdef int run(self, c.lsh_sorted_output *out) except -1:
        cdef c.lsh_fault fault
        while self.merge.left:
            with nogil:
                fault = c.lsh_merge_next(&self.merge, out)
            self.check(fault)
            check_signals()
        return 0

    cdef int check(self, c.lsh_fault fault) except -1:
        if fault != c.LSH_SOUND:
            raise _fault((<SortedKeys> self.parts[self.merge.part]).blocks, fault, self.merge.block)
        return 0


def merged(list parts not None, list renumbered not None, tuple reused=None):
    """Merge sorted keys.

    Parameters
    ----------
    parts : list of SortedKeys
        Of the same band.
    renumbered : list of numpy.ndarray or range
        For each part the new number of each of its documents (uint32), ascending, 4294967295 of one that is dropped; a
        range of step 1 where none is. All numbers differ.
    reused : tuple, optional
        An earlier result that is not needed any more, whose memory the new one takes if it has as many keys.

    Returns
    -------
    tuple
        The arrays that `sorted_keys` returns for the keys of all parts.

    Notes
    -----
    The parts are read as streams: beside the result it takes less than a megabyte, and 1.5 kB for each part.
    """
    cdef _Merge merge = _Merge(parts, renumbered)
    cdef _Output output = _Output(merge.count(), reused)
    merge.run(&output.out)
    return output.arrays
