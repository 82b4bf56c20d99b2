# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Items that are looked for in texts: a table of their shingles.

An item is in a text if a window of the text has `need` of its shingles. Of `m` shingles, a window with `need` has
at least `c` of any `m - need + c`; so only that many are in the table, those that the fewest items have. Where texts
are bytes, nearly all of these are chosen by how they begin, so that few shingles of a text have to be looked up.
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
    LONG = 12  # characters of shingles that are chosen by how they begin; shorter ones are in many texts
    BAR = 16  # shingles that a window needs for each, after the third, that it needs of those in the table
    WORD_BAR = 64  # the same where they are words: other texts have fewer of them
    COMMON_FROM = 32  # twice as many items, about, make a shingle a common one,
    FEW_ITEMS = 1 << 17  # of so many; of more, to look for beginnings takes longer than what it spares
    BITS = 8  # of a filter for each of its hashes, at least
    MAX_BEGINS = 1 << 29  # so that their filter has at most 2**27 words
    GOOD = 0
    SHORT = 1
    FEW = 2
    COMMON = 3

cdef double SPARE = 1.25  # times as many shingles begin as wanted as an item needs in the table
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


cdef size_t _longest(double window, size_t units) noexcept nogil:
    """The most units whose quotient by so many is `window` or less."""
    cdef double longest = window * <double> units
    cdef size_t found
    if units == 0 or longest >= 9e18:
        return _MAX if units else 0
    found = <size_t> longest + 1  # the product may be rounded
    while <double> found / <double> units > window:
        found -= 1
    return max(units, found)


cdef int _by_rank(const void *a, const void *b) noexcept nogil:
    cdef uint64_t x = (<const Ranked *> a).rank, y = (<const Ranked *> b).rank
    return (x > y) - (x < y)


cdef size_t _rarest(Ranked *ranked, size_t count, size_t most) noexcept nogil:
    """Let those come first, of `count`, that the fewest items have, and return how many they are: `most`, or fewer."""
    if count <= most:
        return count
    qsort(ranked, count, sizeof(Ranked), _by_rank)
    return most


cdef int _by_low_half(const void *a, const void *b) noexcept nogil:
    cdef const uint32_t *x = <const uint32_t *> a
    cdef const uint32_t *y = <const uint32_t *> b
    if x[0] != y[0]:
        return 1 if x[0] > y[0] else -1
    return (x[1] > y[1]) - (x[1] < y[1])


def cleared(size_t count, kind):
    """Return zeros. Unlike numpy.zeros, they are on large pages where they are many, so random access is faster."""
    result = np.empty(count, kind)
    result.fill(0)
    return result


def _words(size_t count, kind):
    """Return empty words of a filter for so many hashes, with BITS bits or more for each."""
    return cleared(power_of_two(max(count * BITS // (8 * np.dtype(kind).itemsize), <size_t> 1)), kind)


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
        counters = cleared(power_of_two(counted), np.uint8)
        with nogil:
            for i in range(self.count):
                self._check(i)
                self._measure(i, walk, own, counters)
                if all_shingles:
                    total += self.items[i].shingles
                elif self.items[i].state == GOOD:
                    total += self.items[i].shingles - self.items[i].need + self.items[i].bar
        if not (all_shingles or self.min_shared or self.unit == c.LSH_WORD or self.n < LONG):
            share = SPARE * (1 - self.threshold + 1.0 / BAR)
        self.wanted.limit = _NOTHING if share >= 1 else <uint32_t> (share * 2.0 ** 32)
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
        own.begin(self.begin_item(walk, i))
        item.shingles = item.need = 0
        count = walk.more()
        while count:
            c.lsh_hash_shingles(&walk.shingles, hashes)
            for j in range(count):
                c.lsh_prefetch(&counters[hashes[j] & mask])
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
        item.longest = _longest(self.window, units)
        item.need = self.min_shared if self.min_shared else self._least(item.shingles)
        item.bar = min(item.need, 3 + (item.need - 1) // (WORD_BAR if self.unit == c.LSH_WORD else BAR))
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
        cdef uint64_t[::1] hashes
        cdef uint32_t[:, ::1] rows, places
        cdef Ranked *ranked = NULL
        cdef uint32_t *begins = NULL
        cdef size_t capacity = 0, begin_room = 0
        if total >= _NOTHING:
            raise OverflowError("the items have more than 2**32 shingles; search for them in parts")
        found, made = np.empty(total, np.uint64), np.empty((total, 2), np.uint32)
        where = np.empty((total if all_shingles else 0, 2), np.uint32)
        hashes, rows, places = found, made, where
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
                        taken = self._choose(item, ranked)
                        if not taken:
                            taken = _rarest(ranked, item.shingles, item.shingles - item.need + item.bar)
                            if num_begins + taken > begin_room:
                                begin_room = 2 * begin_room + taken
                                begins = <uint32_t *> resize(begins, begin_room, sizeof(uint32_t))
                            for j in range(taken):
                                begins[num_begins + j] = ranked[j].begin
                            num_begins += taken
                    for j in range(taken):
                        hashes[at] = ranked[j].hash
                        rows[at, 0], rows[at, 1] = <uint32_t> ranked[j].hash, <uint32_t> i
                        if all_shingles:
                            places[at, 0], places[at, 1] = <uint32_t> ranked[j].place, <uint32_t> ranked[j].length
                        at += 1
            self.wanted.begins = c.lsh_make_begins(NULL, 0)
            if num_begins:
                self.begin_words = _words(min(num_begins, <size_t> MAX_BEGINS), np.uint32)
                self.wanted.begins = c.lsh_make_begins(&self.begin_words[0], self.begin_words.shape[0])
            for i in range(num_begins):
                c.lsh_begins_add(&self.wanted.begins, begins[i])
        finally:
            free(ranked)
            free(begins)
        self.single = np.zeros(self.count // 8 + 1, np.uint8)
        for i in range(self.count):
            if self.items[i].bar < 2:
                self.single[i >> 3] |= <uint8_t> (1 << (i & 7))
        self._distribute(hashes[:at], rows[:at], places[:at] if all_shingles else places)
        return 0

    cdef int _distribute(self, const uint64_t[::1] hashes, const uint32_t[:, ::1] rows,
                         const uint32_t[:, ::1] places) except -1:
        """Make the entries by the high bits of their hashes, the directory of these, and the filter of the hashes."""
        cdef size_t i, total = hashes.shape[0], buckets, at, begin, different = 0
        self.by_hash.shift = 63
        while self.by_hash.shift > 33 and (<size_t> 1 << (64 - self.by_hash.shift)) < total // 2:
            self.by_hash.shift -= 1
        buckets = <size_t> 1 << (64 - self.by_hash.shift)
        self.entries = np.empty((total, 2), np.uint32)
        self.places = np.empty((places.shape[0], 2), np.uint32)
        self.directory = cleared(buckets + 2, np.uint32)
        with nogil:
            for i in range(total):
                self.directory[(hashes[i] >> self.by_hash.shift) + 2] += 1
            for i in range(buckets + 1):
                self.directory[i + 1] += self.directory[i]
            for i in range(total):  # the places where buckets begin move to where they end, and the next ones begin
                at = self.directory[(hashes[i] >> self.by_hash.shift) + 1]
                self.directory[(hashes[i] >> self.by_hash.shift) + 1] += 1
                self.entries[at, 0], self.entries[at, 1] = rows[i, 0], rows[i, 1]
                if places.shape[0]:
                    self.places[at, 0], self.places[at, 1] = places[i, 0], places[i, 1]
            for i in range(buckets):
                begin = self.directory[i]
                if not places.shape[0] and self.directory[i + 1] > begin + 1:
                    qsort(&self.entries[begin, 0], self.directory[i + 1] - begin, 2 * sizeof(uint32_t), _by_low_half)
                for at in range(begin, self.directory[i + 1]):
                    different += at == begin or self.entries[at, 0] != self.entries[at - 1, 0]
        self.hash_words = _words(different, np.uint64)
        self.wanted.hashes = c.lsh_filter(&self.hash_words[0], self.hash_words.shape[0] - 1)
        with nogil:
            for i in range(total):
                c.lsh_filter_add(&self.wanted.hashes, hashes[i])
        self.by_hash.directory, self.by_hash.entries = &self.directory[0], NULL
        self.wanted.table = &self.by_hash
        if total:
            self.by_hash.entries = &self.entries[0, 0]
        return 0

    cdef size_t _choose(self, Item *item, Ranked *ranked) noexcept nogil:
        """Let shingles come first that begin as wanted; return how many. The item gets a lower bar if these are few.

        Leaves all as they are, and returns 0, where these are too few; of few items also where many others have
        those that would be needed, as questions of one template do, and enough others are rare.
        """
        cdef size_t i, wanted = 0, chosen = 0, missed = item.shingles - item.need, rare = 0, wanted_rare = 0
        cdef bint is_rare
        for i in range(item.shingles):
            is_rare = ranked[i].rank >> 56 < COMMON_FROM
            rare += is_rare
            if ranked[i].begin < self.wanted.limit:
                wanted += 1
                wanted_rare += is_rare
        if wanted <= missed or (self.count <= FEW_ITEMS and wanted_rare <= missed < rare):
            return 0
        for i in range(item.shingles if wanted < item.shingles else 0):
            if ranked[i].begin < self.wanted.limit:
                ranked[chosen] = ranked[i]
                chosen += 1
        wanted = _rarest(ranked, wanted, missed + item.bar)
        item.bar = wanted - missed
        return wanted

    cdef int _rank(self, size_t i, Walk walk, ShingleTable own, const uint8_t[::1] counters,
                   Ranked *ranked) except -1 nogil:
        """List the shingles of an item that count."""
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
                c.lsh_prefetch(&counters[hashes[j] & mask])
            for j in range(count):
                bytes = walk.shingle(j, &length)
                own.enter(hashes[j], bytes, length, &is_new)
                if is_new and self.counts(bytes):
                    others = counters[hashes[j] & mask] >> 1
                    ranked[at] = Ranked(others << 56 | hashes[j] >> 8, hashes[j], bytes - text, length,
                                        c.lsh_begin_value(bytes, length))
                    at += 1
            count = walk.more()
        return 0

    cdef size_t start(self, uint64_t hash) noexcept nogil:
        """The first entry that may have a hash; it is one of those before `stop`."""
        return self.directory[hash >> self.by_hash.shift]

    cdef size_t stop(self, uint64_t hash) noexcept nogil:
        return self.directory[(hash >> self.by_hash.shift) + 1]

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

    def ignore(self, const int64_t[::1] counts not None, int64_t most):
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
