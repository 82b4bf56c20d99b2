# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Keys of passages, and the runs of text that may occur again.

A window is a run of `window` bytes. Its anchor is a place that its bytes alone determine (winnowing, see
`lsh.kernels`), so equal windows have their anchors at the same distance. The windows of an anchor are divided by this
distance into two sides: all windows of a side contain the same half of a window, before or after the anchor. A key is
a hash of these bytes. A window can only be equal to another one if its key occurs twice.
"""

from cython cimport final
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcpy, memmove, memset

from lsh cimport _kernels as c
from lsh.base.memory cimport resize
from lsh._minhash cimport Words, check_signals, chosen_kernels, prepare_document
from lsh.text.batch cimport Batch

import numpy as np

cdef enum:
    FOUND = 4096  # anchors that are found at once
    RECENT = 256  # keys of a text of which a third occurrence is not written
    CHECKED = 1 << 24  # bytes between two checks for signals


@final
cdef class KeyTable:
    """A table of keys, each with a number: open addressing, grown by need.

    Parameters
    ----------
    make : callable
        Called as ``make(length, dtype)``; returns an array.
    count : int
        How many keys to expect.
    """

    def __cinit__(self, make not None, size_t count):
        self.make = make
        self._allocate(max(count + count // 2, <size_t> 64))

    cdef int _allocate(self, size_t slots) except -1:
        """Make empty arrays."""
        cdef uint64_t[::1] keys
        cdef uint32_t[::1] heads
        if slots >> 32:
            raise OverflowError("there are more than 2**32 different keys; process the texts in parts")
        self.arrays = self.make(slots, np.uint64), self.make(slots, np.uint32)
        for array in self.arrays:
            array.fill(0)
        keys, heads = self.arrays
        self.keys, self.heads, self.slots, self.used = &keys[0], &heads[0], slots, 0
        return 0

    cdef size_t find(self, uint64_t key) noexcept nogil:
        """The slot of a key, or the free one where it belongs."""
        cdef size_t at = ((key >> 32) * self.slots) >> 32
        while self.keys[at] and self.keys[at] != key:
            at = at + 1 if at + 1 < self.slots else 0
        return at

    cdef bint has(self, uint64_t key) noexcept nogil:
        """Tell whether the table has a key."""
        return self.keys[self.find(key)] != 0

    cdef uint32_t *enter(self, uint64_t key) except NULL nogil:
        """The number of a key, which is entered if it is new. Valid until the next call."""
        cdef size_t at = self.find(key)
        if self.keys[at] == 0:
            if self.used + self.used // 4 >= self.slots:
                with gil:
                    self._grow()
                at = self.find(key)
            self.keys[at] = key
            self.used += 1
        return &self.heads[at]

    def _grow(self):
        cdef size_t slots = self.slots, i, at
        cdef uint64_t *keys = self.keys
        cdef uint32_t *heads = self.heads
        _old = self.arrays  # until its keys are copied
        self._allocate(2 * slots)
        for i in range(slots):
            if keys[i]:
                at = self.find(keys[i])
                self.keys[at], self.heads[at] = keys[i], heads[i]
                self.used += 1

    def add(self, const uint64_t[::1] keys not None):
        """Enter keys."""
        cdef Py_ssize_t i
        with nogil:
            for i in range(keys.shape[0]):
                self.enter(keys[i])

    def has_any(self, const uint64_t[::1] keys not None, const int64_t[::1] counts not None):
        """Return for each text whether the table has any of its keys, of which it has `counts`, in order."""
        cdef Py_ssize_t i, j, at = 0
        result = np.zeros(counts.shape[0], np.uint8)
        cdef uint8_t[::1] found = result
        with nogil:
            for i in range(counts.shape[0]):
                for j in range(at, at + counts[i]):
                    if self.has(keys[j]):
                        found[i] = 1
                        break
                at += counts[i]
        return result.view(np.bool_)


@final
cdef class AnchorFinder:
    """Finds the anchors of texts, one text after another.

    Parameters
    ----------
    window : int
        Bytes, LSH_GRAM or more.
    secret : bytes
        Of 16 bytes: for the keys.
    """

    def __cinit__(self, size_t window, bytes secret not None):
        cdef size_t half = (window + c.LSH_GRAM + 1) // 2
        memcpy(self.secret, <const char *> secret, sizeof(self.secret))
        self.kernels, self.window = chosen_kernels(), window
        self.sides[0] = Side(window - half + 1, window - c.LSH_GRAM)
        self.sides[1] = Side(0, window - half)

    def __dealloc__(self):
        free(self.anchors)

    cdef void begin(self, const uint8_t *text, size_t length) noexcept nogil:
        """Begin with another text."""
        memset(&self.walk, 0, sizeof(self.walk))
        memset(self.known, 0, sizeof(self.known))
        self.walk.text, self.walk.length, self.walk.window = text, length, self.window
        self.count, self.is_complete = 0, False

    cdef size_t more(self, size_t done) except? 0 nogil:
        """Forget the first `done` anchors and find more; return how many are there whose last windows are known."""
        cdef size_t found
        if done:
            memmove(self.anchors, self.anchors + done, (self.count - done) * sizeof(c.lsh_anchor))
            self.count -= done
        if not self.is_complete:
            if self.capacity - self.count < FOUND:
                self.capacity = self.count + self.count // 2 + FOUND
                self.anchors = <c.lsh_anchor *> resize(self.anchors, self.capacity, sizeof(c.lsh_anchor))
            found = self.kernels.next_anchors(&self.walk, self.anchors + self.count, FOUND)
            self.count += found
            self.is_complete = found < FOUND
        return self.count - (not self.is_complete)

    cdef bint windows(self, size_t i, Side side, size_t *first, size_t *last) noexcept nogil:
        """Set the first and the last window of a side of anchor i; return whether there is any."""
        cdef const c.lsh_anchor *anchor = &self.anchors[i]
        cdef size_t most = self.walk.length - self.window if i + 1 == self.count else anchor[1].first - 1
        if anchor.place < side.low:
            return False
        first[0] = max(anchor.first, anchor.place - side.high if anchor.place > side.high else 0)
        last[0] = min(most, anchor.place - side.low)
        return first[0] <= last[0]

    cdef uint64_t key(self, size_t place, Side side) noexcept nogil:
        """The key of the bytes that all windows of a side contain, for an anchor that has any."""
        cdef size_t length = self.window - (side.high - side.low)
        return c.lsh_context_key(self.walk.text + (place - side.low), length, side.low << 32 | side.high, self.secret)

    cdef uint64_t key_of_side(self, size_t place, size_t side) noexcept nogil:
        """The same for a whole side. A text that repeats a few characters has the key of the anchor before."""
        cdef KnownKey *last = &self.known[side]
        cdef size_t step = place - last.place, start = last.place - self.sides[side].low
        cdef size_t length = self.window - (self.sides[side].high - self.sides[side].low)
        if not (last.key and step < length // 4
                and is_shifted(&last.shift, self.walk.text, step, start + step, start + step + length)):
            last.key = self.key(place, self.sides[side])
        last.place = place
        return last.key


cdef bint is_shifted(Shift *known, const uint8_t *text, size_t step, size_t start, size_t stop) noexcept nogil:
    """Tell whether bytes are equal to those `step` before them; calls for places that ascend compare each byte once."""
    if step != known.step or start < known.start or start > known.stop:
        known.step, known.start, known.stop = step, start, start
    if known.stop < stop:
        known.stop += c.lsh_common_after(text + known.stop - step, text + known.stop, stop - known.stop)
    return known.stop >= stop


@final
cdef class _Keys:
    """A growing array of keys of texts."""

    cdef uint64_t *keys
    cdef size_t count, capacity
    cdef uint64_t once[RECENT]
    cdef uint64_t twice[RECENT]

    def __dealloc__(self):
        free(self.keys)

    cdef void begin(self) noexcept nogil:
        """Begin with another text."""
        memset(self.once, 0, sizeof(self.once))
        memset(self.twice, 0, sizeof(self.twice))

    cdef int append(self, uint64_t key) except -1 nogil:
        """Append a key; not where the text had it twice recently: a text of equal characters has one for each byte."""
        cdef size_t slot = key % RECENT
        if self.twice[slot] == key:
            return 0
        if self.once[slot] == key:
            self.twice[slot] = key
        self.once[slot] = key
        if self.count == self.capacity:
            self.capacity = 2 * self.capacity + FOUND
            self.keys = <uint64_t *> resize(self.keys, self.capacity, sizeof(uint64_t))
        self.keys[self.count] = key
        self.count += 1
        return 0

    cdef object array(self):
        """Return a copy of the keys."""
        result = np.empty(self.count, np.uint64)
        cdef uint64_t[::1] out = result
        if self.count:
            memcpy(&out[0], self.keys, self.count * sizeof(uint64_t))
        return result


def passage_keys(Batch batch not None, size_t window, bytes secret not None):
    """Return the keys of texts, and how many each has: uint64 and int64.

    A key that occurs more than once in a text is there at least twice.
    """
    cdef AnchorFinder finder = AnchorFinder(window, secret)
    cdef _Keys keys = _Keys()
    cdef size_t i, before, known, first = 0, last = 0, side, done = 0
    cdef Py_ssize_t text
    counts = np.empty(batch.count, np.int64)
    cdef int64_t[::1] out = counts
    with nogil:
        for text in range(batch.count):
            before = keys.count
            keys.begin()
            finder.begin(batch.texts[text], batch.lengths[text])
            known = finder.more(0)
            while known:
                for i in range(known):
                    for side in range(2):
                        if finder.windows(i, finder.sides[side], &first, &last):
                            keys.append(finder.key_of_side(finder.anchors[i].place, side))
                done += known * window
                if done > CHECKED:
                    check_signals()
                    done = 0
                known = finder.more(known)
            out[text] = keys.count - before
    return keys.array(), counts


cdef uint64_t context_key(const uint8_t *text, size_t length, uint64_t salt, const uint64_t *secret) noexcept nogil:
    """The key of some bytes, for the other modules; see `lsh.kernels`."""
    return c.lsh_context_key(text, length, salt, secret)


cdef bint is_begin(const uint8_t *text, size_t at) noexcept nogil:
    """Tell whether a character begins at a place: its byte is no continuation byte of UTF-8."""
    return (text[at] & 0xC0) != 0x80


cdef size_t begin_from(const uint8_t *text, size_t at, size_t stop) noexcept nogil:
    """The first place from `at` on and before `stop` where a character begins; `stop` if there is none."""
    while at < stop and not is_begin(text, at):
        at += 1
    return at


cdef size_t end_from(const uint8_t *text, size_t at, size_t length) noexcept nogil:
    """Where the character ends that has the byte before `at`: at most three continuation bytes later."""
    cdef size_t stop = min(at + 3, length)
    return begin_from(text, at, stop)


@final
cdef class _Runs:
    """A growing array of runs, and of their bytes: the text in a batch, where the run starts and stops, its bytes."""

    cdef int64_t *runs
    cdef uint8_t *data
    cdef size_t count, capacity, size, max_size

    def __dealloc__(self):
        free(self.runs)
        free(self.data)

    cdef int append(self, size_t text, size_t start, size_t stop, const uint8_t *data, size_t size) except -1 nogil:
        cdef int64_t *run
        if self.count == self.capacity:
            self.capacity = 2 * self.capacity + 64
            self.runs = <int64_t *> resize(self.runs, self.capacity, 4 * sizeof(int64_t))
        if size > self.max_size - self.size:
            self.max_size = 2 * self.max_size + size
            self.data = <uint8_t *> resize(self.data, self.max_size, 1)
        run = self.runs + 4 * self.count
        run[0], run[1], run[2], run[3] = text, start, stop, size
        if size:
            memcpy(self.data + self.size, data, size)
        self.count += 1
        self.size += size
        return 0

    cdef tuple arrays(self):
        """Return copies of the runs, int64 of shape ``(r, 4)``, and of their bytes."""
        runs, data = np.empty((self.count, 4), np.int64), np.empty(self.size, np.uint8)
        cdef int64_t[:, ::1] rows = runs
        cdef uint8_t[::1] out = data
        if self.count:
            memcpy(&rows[0, 0], self.runs, self.count * 4 * sizeof(int64_t))
        if self.size:
            memcpy(&out[0], self.data, self.size)
        return runs, data


def passage_runs(Batch batch not None, size_t window, bytes secret not None, KeyTable table not None):
    """Return the runs of texts in which all windows lie whose keys the table has.

    Returns
    -------
    runs : numpy.ndarray
        int64, shape ``(r, 4)``: the place of the text in the batch, where the run begins and ends, and its bytes.
    data : numpy.ndarray
        uint8: the runs, one after another.
    """
    cdef AnchorFinder finder = AnchorFinder(window, secret)
    cdef _Runs runs = _Runs()
    cdef size_t i, known, length, first = 0, last = 0, side, begin, end, done = 0
    cdef const uint8_t *bytes
    cdef Py_ssize_t text
    with nogil:
        for text in range(batch.count):
            bytes, length = batch.texts[text], batch.lengths[text]
            finder.begin(bytes, length)
            begin = end = 0  # of the open run
            known = finder.more(0)
            while known:
                for i in range(known):
                    for side in range(2):
                        if (not finder.windows(i, finder.sides[side], &first, &last)
                                or not table.has(finder.key_of_side(finder.anchors[i].place, side))):
                            continue
                        if end and first > end:
                            runs.append(text, begin, end, bytes + begin, end - begin)
                        if first > end or end == 0:
                            begin = first
                        end = end_from(bytes, last + window, length)
                done += known * window
                if done > CHECKED:
                    check_signals()
                    done = 0
                known = finder.more(known)
            if end:
                runs.append(text, begin, end, bytes + begin, end - begin)
    return runs.arrays()


# ---- lines and paragraphs ----

cdef bint _is_blank(const uint8_t *text, size_t start, size_t stop) noexcept nogil:
    """Tell whether a line has ASCII white space only."""
    while start < stop and (text[start] == 32 or 9 <= text[start] <= 13):
        start += 1
    return start == stop


cdef size_t _line_end(const uint8_t *text, size_t at, size_t length) noexcept nogil:
    """Where the line that begins at a place ends, before its line feed."""
    cdef const void *found = memchr(text + at, 10, length - at)
    return length if found == NULL else <const uint8_t *> found - text


cdef size_t _skip_blank(const uint8_t *text, size_t at, size_t length) noexcept nogil:
    """The first place from a line on where a line begins that is not blank, or the end."""
    cdef size_t stop
    while at < length:
        stop = _line_end(text, at, length)
        if not _is_blank(text, at, stop):
            break
        at = min(stop + 1, length)
    return at


cdef size_t _without_return(const uint8_t *text, size_t start, size_t stop) noexcept nogil:
    """Where a line ends without a carriage return before its line feed."""
    return stop - (stop > start and text[stop - 1] == 13)


cdef bint _next_unit(const uint8_t *text, size_t length, bint paragraphs, size_t *at, size_t *start,
                     size_t *end) noexcept nogil:
    """Set where the next line or paragraph starts and ends, and where the one after it starts; False at the end."""
    cdef size_t stop
    if paragraphs:
        at[0] = _skip_blank(text, at[0], length)
    start[0] = end[0] = at[0]
    while at[0] < length:
        stop = _line_end(text, at[0], length)
        if paragraphs and _is_blank(text, at[0], stop):
            at[0] = _skip_blank(text, at[0], length)
            break
        end[0] = _without_return(text, at[0], stop)
        at[0] = min(stop + 1, length)
        if not paragraphs:
            break
    return at[0] > start[0]


def units_of(Batch batch not None, bint paragraphs, size_t least):
    """Return the lines or paragraphs of texts that have `least` bytes or more.

    Returns
    -------
    units : numpy.ndarray
        int64, shape ``(u, 3)``: the text, where the unit starts, and where the next one does.
    contents : Batch
        The units without line ends, and without the blank lines behind a paragraph.
    """
    cdef size_t length, at, start = 0, end = 0, i
    cdef _Runs runs = _Runs()
    cdef Batch contents = Batch(())
    cdef Py_ssize_t text
    with nogil:
        for text in range(batch.count):
            length, at = batch.lengths[text], 0
            while _next_unit(batch.texts[text], length, paragraphs, &at, &start, &end):
                if end - start >= max(least, <size_t> 1):
                    runs.append(text, start, at, NULL, 0)
                    runs.runs[4 * (runs.count - 1) + 3] = end
    units, _ = runs.arrays()
    contents._reserve(batch, runs.count)
    for i in range(runs.count):
        contents.texts[i] = batch.texts[runs.runs[4 * i]] + runs.runs[4 * i + 1]
        contents.lengths[i] = runs.runs[4 * i + 3] - runs.runs[4 * i + 1]
    return np.ascontiguousarray(units[:, :3]), contents


def unit_keys(Batch contents not None, int flags, bytes secret not None):
    """Return the key of each unit, uint64; `flags` say how ASCII is normalised, other texts are normalised already."""
    cdef uint64_t own[2]
    cdef Words words
    cdef c.lsh_document document
    cdef Py_ssize_t i
    keys = np.empty(contents.count, np.uint64)
    cdef uint64_t[::1] out = keys
    memcpy(own, <const char *> secret, sizeof(own))
    words.bytes, words.capacity = NULL, 0
    try:
        with nogil:
            for i in range(contents.count):
                document = c.lsh_document(contents.texts[i], contents.lengths[i], c.LSH_BYTE, 1)
                prepare_document(&document, flags, False, &words)
                out[i] = c.lsh_context_key(document.text, document.length, 0, own)
    finally:
        free(words.bytes)
    return keys


def unit_runs(const int64_t[:, ::1] units not None, Batch contents not None, const uint64_t[::1] keys not None,
              int flags, KeyTable table not None):
    """Return the units whose keys the table has, as `passage_runs` does: where they are, and their normalised bytes."""
    cdef _Runs runs = _Runs()
    cdef Words words
    cdef c.lsh_document document
    cdef Py_ssize_t i
    words.bytes, words.capacity = NULL, 0
    try:
        with nogil:
            for i in range(contents.count):
                if table.has(keys[i]):
                    document = c.lsh_document(contents.texts[i], contents.lengths[i], c.LSH_BYTE, 1)
                    prepare_document(&document, flags, False, &words)
                    runs.append(units[i, 0], units[i, 1], units[i, 2], document.text, document.length)
    finally:
        free(words.bytes)
    return runs.arrays()
