# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Items that are looked for in texts: a table of their shingles.

An item is in a text if a window of the text has `need` of its shingles. Of `m` shingles, a window with `need` has
at least `c` of any `m - need + c`; so only that many are in the table, those that the fewest items have. Where texts
are bytes, most of these are chosen by the hash of how they begin, so that few shingles of a text have to be looked up.
"""

from cython cimport final
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memcmp, memcpy, memset

from lsh cimport _kernels as c
from lsh._minhash cimport check_signals
from lsh.base.memory cimport resize
from lsh.passages.walks cimport ShingleTable, Walk
from lsh.text.batch cimport Batch

import numpy as np

cdef enum:
    SCANNED = c.LSH_SCANNED  # shingles that are hashed at once
    MAX_COUNTERS = 1 << 26
    CHECKED = 1 << 12  # items between two checks for signals, or as many times SCANNED shingles
    RARE = 32  # items that have a shingle, in twos, so that it is looked for only where the text begins as wanted
    BAR = 16  # of this many shingles that a window needs, one is needed of those in the table
    BITS = 8  # of a filter for each of its hashes, at least
    GOOD = 0
    SHORT = 1
    FEW = 2
    COMMON = 3

cdef double SPARE = 1.25  # times the shingles that an item needs in the table are to begin as wanted
cdef uint32_t _NOTHING = 0xFFFFFFFF
cdef size_t _MAX = <size_t> -1

#: Why an item is not searched for, by its state; see `find_contained`.
REASONS = ("", "short", "few", "common")


cdef size_t power_of_two(size_t least) noexcept nogil:
    """The smallest power of two that is not smaller."""
    cdef size_t power = 1
    while power < least:
        power *= 2
    return power


cdef int _by_rank(const void *a, const void *b) noexcept nogil:
    cdef uint64_t x = (<const Ranked *> a).rank, y = (<const Ranked *> b).rank
    return (x > y) - (x < y)


def _words(size_t count, size_t bits):
    """Return empty words of a filter for so many hashes, with so many bits or more for each."""
    return np.zeros(power_of_two(max(count * bits // 64, <size_t> 1)), np.uint64)


# ---- items ----

@final
cdef class ItemTable:
    """Items, and a table of their shingles.

    Parameters
    ----------
    unit, n, flags : int
        The shingles, as the compiled modules have them.
    is_regular : bool
        Whether the flags say all of the normalisation.
    apply : callable
        Normalises the bytes of a text.
    window : float
        Units of the longest window for each unit of an item.
    threshold : float
        The least containment, if `min_shared` is 0.
    min_shared : int
        The least number of shared shingles.
    """

    def __cinit__(self, int unit, size_t n, int flags, bint is_regular, apply not None, double window,
                  double threshold, uint32_t min_shared):
        self.unit, self.n, self.flags, self.is_regular, self.apply = unit, n, flags, is_regular, apply
        self.window, self.threshold, self.min_shared = window, threshold, min_shared
        self.bounds = <size_t *> resize(NULL, 1, sizeof(size_t))
        self.bounds[0] = 0

    def __dealloc__(self):
        free(self.data)
        free(self.bounds)
        free(self.items)
        free(self.ignored)

    cdef Walk walk(self):
        return Walk(self.unit, self.n, self.flags, self.is_regular, self.apply)

    def add(self, Batch batch not None):
        """Append items."""
        cdef Walk walk = self.walk()
        cdef Py_ssize_t i
        if self.count + batch.count > self.room:
            self.room = 2 * self.room + batch.count
            self.items = <Item *> resize(self.items, self.room, sizeof(Item))
            self.bounds = <size_t *> resize(self.bounds, self.room + 1, sizeof(size_t))
        if self.count + batch.count >= _NOTHING:
            raise OverflowError("there can be at most 2**32 - 2 items")
        with nogil:
            for i in range(batch.count):
                walk.read(batch.texts[i], batch.lengths[i])
                if walk.text_length >= _NOTHING:
                    with gil:
                        raise OverflowError("an item can have at most 2**32 - 2 bytes")
                if walk.text_length > self.max_size - self.size:
                    self.max_size = 2 * self.max_size + walk.text_length
                    self.data = <uint8_t *> resize(self.data, self.max_size, 1)
                if walk.text_length:
                    memcpy(self.data + self.size, walk.text, walk.text_length)
                self.size += walk.text_length
                self.count += 1
                self.bounds[self.count] = self.size

    cdef size_t begin_item(self, Walk walk, size_t i) noexcept nogil:
        """Begin to walk over the shingles of an item; return the number of its bytes."""
        cdef const uint8_t *text = self.data + self.bounds[i]
        cdef size_t length = self.bounds[i + 1] - self.bounds[i]
        walk.begin(text, length, walk.unit == c.LSH_CHAR and c.lsh_is_ascii(text, length))
        return length

    cdef bint counts(self, const uint8_t *shingle) noexcept nogil:
        """Tell whether a shingle of an item is not ignored, at the first place where the item has it."""
        cdef size_t place = shingle - self.data
        return self.ignored == NULL or not self.ignored[place >> 3] >> (place & 7) & 1

    def index(self, bint all_shingles):
        """Make the table: of as many shingles of each item as are needed to find it, or of all."""
        cdef Walk walk = self.walk()
        cdef ShingleTable own = ShingleTable()
        cdef uint8_t[::1] counters
        cdef double share = 1.0
        cdef size_t i, total = 0, counted = min(max(2 * self.size, <size_t> 64), <size_t> MAX_COUNTERS)
        counters = np.zeros(power_of_two(counted), np.uint8)
        with nogil:
            for i in range(self.count):
                self._check(i)
                self._measure(i, walk, own, counters)
                if all_shingles:
                    total += self.items[i].shingles
                elif self.items[i].state == GOOD:
                    total += self.items[i].shingles - self.items[i].need + self.items[i].bar
        if not (all_shingles or self.min_shared or self.unit == c.LSH_WORD):
            share = SPARE * (1 - self.threshold + 1.0 / BAR)
        self.wanted.limit = <uint64_t> -1 if share >= 1 else <uint64_t> (share * 2.0 ** 64)
        self._fill(walk, own, counters, total, all_shingles)

    cdef int _check(self, size_t i) except -1 nogil:
        """Handle signals from time to time, before work on an item."""
        self.done += 1 + (self.bounds[i + 1] - self.bounds[i]) // SCANNED
        if self.done > CHECKED:
            self.done = 0
            check_signals()
        return 0

    cdef int _measure(self, size_t i, Walk walk, ShingleTable own, uint8_t[::1] counters) except -1 nogil:
        """Count the units and shingles of an item, and count its shingles in `counters` by their hash."""
        cdef Item *item = &self.items[i]
        cdef uint64_t hashes[SCANNED]
        cdef size_t j, count, slot, units = 0, length = 0, mask = counters.shape[0] - 1
        cdef const uint8_t *bytes
        cdef bint is_new = False
        cdef double longest
        own.begin(self.begin_item(walk, i))
        item.shingles = item.need = 0
        count = walk.more()
        while count:
            c.lsh_hash_shingles(&walk.shingles, hashes)
            for j in range(count):
                bytes = walk.shingle(j, &length)
                own.enter(hashes[j], bytes, length, &is_new)
                if is_new and self.counts(bytes):
                    item.shingles += 1
                    slot = hashes[j] & mask
                    counters[slot] += counters[slot] < 255
            units = walk.first + count + self.n - 1
            count = walk.more()
        item.different = own.count
        longest = self.window * units
        item.longest = _MAX if longest >= 9e18 else max(units, <size_t> longest)
        item.need = self.min_shared if self.min_shared else self._least(item.shingles)
        item.bar = 1 + (item.need - 1) // BAR
        item.state = GOOD
        if units == 0:
            item.state = SHORT
        elif own.count < item.need:
            item.state = FEW
        elif item.shingles < max(item.need, <uint32_t> 1):
            item.state = COMMON
        return 0

    cdef uint32_t _least(self, uint32_t shingles) noexcept nogil:
        """The least number of shared shingles, 1 or more, whose share of `shingles` is the threshold or more."""
        cdef uint32_t least = <uint32_t> (self.threshold * shingles)
        while least > 1 and (<double> (least - 1)) / shingles >= self.threshold:
            least -= 1
        while least < shingles and (least == 0 or (<double> least) / shingles < self.threshold):
            least += 1
        return max(least, <uint32_t> 1)

    cdef int _fill(self, Walk walk, ShingleTable own, const uint8_t[::1] counters, size_t total,
                   bint all_shingles) except -1:
        """Make the entries, the directory and the filters, of at most `total` shingles."""
        cdef size_t i, j, at = 0, taken, num_begins = 0
        cdef Item *item
        cdef uint64_t[::1] hashes, begins
        cdef uint32_t[:, ::1] rows, places
        cdef Ranked *ranked = NULL
        cdef size_t capacity = 0
        if total >= _NOTHING:
            raise OverflowError("the items have more than 2**32 shingles; search for them in parts")
        found, made = np.empty(total, np.uint64), np.empty((total, 2), np.uint32)
        where, rare = np.empty((total if all_shingles else 0, 2), np.uint32), np.empty(total, np.uint64)
        hashes, rows, places, begins = found, made, where, rare
        try:
            with nogil:
                for i in range(self.count):
                    item = &self.items[i]
                    if item.state != GOOD and not all_shingles:
                        continue
                    self._check(i)
                    if item.shingles > capacity:
                        capacity = 2 * item.shingles
                        ranked = <Ranked *> resize(ranked, capacity, sizeof(Ranked))
                    self._rank(i, walk, own, counters, ranked)
                    taken = item.shingles
                    if not all_shingles:
                        taken = item.shingles - item.need + item.bar
                        if not self._choose(ranked, item.shingles, taken):
                            for j in range(taken):
                                begins[num_begins + j] = ranked[j].begin
                            num_begins += taken
                    for j in range(taken):
                        hashes[at] = ranked[j].hash
                        rows[at, 0], rows[at, 1] = <uint32_t> ranked[j].hash, <uint32_t> i
                        if all_shingles:
                            places[at, 0], places[at, 1] = <uint32_t> ranked[j].place, <uint32_t> ranked[j].length
                        at += 1
        finally:
            free(ranked)
        order = np.argsort(found[:at])
        found = found[:at][order]
        self.entries = np.ascontiguousarray(made[:at][order])
        self.places = np.ascontiguousarray(where[order]) if all_shingles else where
        self.shift = 63
        while self.shift > 33 and (<size_t> 1 << (64 - self.shift)) < at:
            self.shift -= 1
        bounds = np.arange(1 << (64 - self.shift), dtype=np.uint64) << np.uint64(self.shift)
        self.directory = np.append(np.searchsorted(found, bounds), at).astype(np.uint32)
        hashes = found
        self.hash_words, self.begin_words = _words(at, BITS), _words(num_begins, BITS)
        self.wanted.hashes = c.lsh_filter(&self.hash_words[0], self.hash_words.shape[0] - 1)
        for i in range(at):
            c.lsh_filter_add(&self.wanted.hashes, hashes[i])
        self.wanted.begins = c.lsh_filter(&self.begin_words[0], self.begin_words.shape[0] - 1)
        for i in range(num_begins):
            c.lsh_filter_add_begin(&self.wanted.begins, begins[i])
        return 0

    cdef bint _choose(self, Ranked *ranked, size_t count, size_t taken) noexcept nogil:
        """Let `taken` shingles come first that begin as wanted.

        Leaves all as they are, and returns False, where these are too few, or many items have them but not the others.
        """
        cdef size_t i, chosen = 0
        cdef uint64_t rarest = ranked[taken - 1].rank >> 56
        for i in range(count):
            if ranked[i].begin <= self.wanted.limit:
                chosen += 1
                if chosen == taken:
                    break
        if chosen < taken or ranked[i].rank >> 56 > max(2 * rarest, <uint64_t> RARE):
            return False
        chosen = 0
        for i in range(count):
            if ranked[i].begin <= self.wanted.limit:
                ranked[chosen] = ranked[i]
                chosen += 1
        return True

    cdef int _rank(self, size_t i, Walk walk, ShingleTable own, const uint8_t[::1] counters,
                   Ranked *ranked) except -1 nogil:
        """List the shingles of an item that count, those first that few items have."""
        cdef uint64_t hashes[SCANNED]
        cdef size_t j, count, length = 0, at = 0, mask = counters.shape[0] - 1
        cdef const uint8_t *bytes
        cdef const uint8_t *text = self.data + self.bounds[i]
        cdef uint64_t others
        cdef bint is_new = False
        own.begin(self.begin_item(walk, i))
        count = walk.more()
        while count:
            c.lsh_hash_shingles(&walk.shingles, hashes)
            for j in range(count):
                bytes = walk.shingle(j, &length)
                own.enter(hashes[j], bytes, length, &is_new)
                if is_new and self.counts(bytes):
                    others = counters[hashes[j] & mask] >> 1
                    ranked[at] = Ranked(others << 56 | hashes[j] >> 8, hashes[j], c.lsh_begin_hash(bytes, length),
                                        bytes - text, length)
                    at += 1
            count = walk.more()
        if at:
            qsort(ranked, at, sizeof(Ranked), _by_rank)
        return 0

    cdef size_t start(self, uint64_t hash) noexcept nogil:
        """The first entry that may have a hash; it is one of those before `stop`."""
        return self.directory[hash >> self.shift]

    cdef size_t stop(self, uint64_t hash) noexcept nogil:
        return self.directory[(hash >> self.shift) + 1]

    cdef size_t first_equal(self, uint64_t hash, const uint8_t *bytes, size_t length) noexcept nogil:
        """The first entry of a shingle in a table of all shingles; the number of entries if there is none."""
        cdef size_t at
        for at in range(self.start(hash), self.stop(hash)):
            if (self.entries[at, 0] == <uint32_t> hash and self.places[at, 1] == length
                    and memcmp(self._bytes_at(at), bytes, length) == 0):
                return at
        return self.entries.shape[0]

    cdef const uint8_t *_bytes_at(self, size_t entry) noexcept nogil:
        """Where the shingle of an entry is, in a table of all shingles."""
        return self.data + self.bounds[self.entries[entry, 1]] + self.places[entry, 0]

    def ignore(self, const int64_t[::1] counts not None, double most):
        """Let shingles not count whose number in `counts`, by first entry, is above `most`; `index` all before."""
        cdef size_t i, place, length, first = 0, size = self.size // 8 + 1
        cdef const uint8_t *bytes
        self.ignored = <uint8_t *> resize(self.ignored, size, 1)
        memset(self.ignored, 0, size)
        for i in range(<size_t> counts.shape[0]):
            bytes, length = self._bytes_at(i), self.places[i, 1]
            if length != self.places[first, 1] or memcmp(bytes, self._bytes_at(first), length):
                first = self.first_equal(c.lsh_shingle_hash(bytes, length), bytes, length)  # others may be between
            if counts[first] > most:
                place = bytes - self.data
                self.ignored[place >> 3] |= <uint8_t> (1 << (place & 7))

    @property
    def num_entries(self):
        """The number of shingles in the table."""
        return self.entries.shape[0]

    def states(self):
        """Return the state of each item, a place in `REASONS`: uint8."""
        cdef size_t i
        result = np.empty(self.count, np.uint8)
        cdef uint8_t[::1] out = result
        for i in range(self.count):
            out[i] = self.items[i].state
        return result
