# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""The search for items in texts, and for the best window of each.

A text goes by once: the hashes of its shingles are tested by filters, and those that pass are looked up in the table of
the items. Items of which the text has as many shingles as a window would are searched for with all of their shingles,
in a second walk over the text, in which shingles are compared byte for byte.
"""

from cython cimport final
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memcpy, memset

from lsh cimport _kernels as c
from lsh._minhash cimport check_signals, chosen_kernels
from lsh.base.memory cimport resize
from lsh.passages.items cimport Item, ItemTable, power_of_two
from lsh.passages.walks cimport Known, ShingleTable, Walk
from lsh.text.batch cimport Batch

import numpy as np

from lsh.passages.items import cleared

cdef enum:
    SCANNED = c.LSH_SCANNED  # shingles that are hashed at once
    CHECKED = 1 << 22  # shingles, each for all items that have it, between two checks for signals
    TOGETHER = 1 << 18  # shingles of items that are searched for in one walk
    AHEAD = 16  # meetings whose items are prefetched
    MAX_BAR = 0xFF
    MEETINGS = 1 << 10  # meetings of items in a text that are held back
    SLOTS = 1 << 13  # of counters, by the low bits of an item
    IS_FOUND = 0x80
    BITS = 8  # of a filter for each of its hashes, at least

cdef uint32_t _NOTHING = 0xFFFFFFFF
cdef size_t _MAX = <size_t> -1

HIT = np.dtype([
    ("item", np.int64), ("text", np.int64), ("containment", np.float64),
    ("start", np.int64), ("end", np.int64), ("shared", np.int64),
])


cdef struct Hit:
    int64_t item, text
    double containment
    int64_t start, end, shared


cdef struct Units:
    # The units of a hit in the normalised text, for texts that Python normalised.
    size_t first, last


cdef struct Seen:
    # An item in the text at work: the text, the end of the entry by which it was met last (0: none), and in which part
    # of the text. A part has 2**shift units, as many as the longest window or more, so that a window is in two of them.
    # It has 16 bytes, so that one line of the cache has all of it.
    uint32_t stamp, entry, part
    uint8_t here, before             # how often it was met in this part, and in the one before it
    uint8_t bar                      # how often it must be, in both
    uint8_t shift                    # and IS_FOUND where it was met so often, or is not looked for


cdef struct Meeting:
    # A shingle of an item in the text at work.
    uint32_t item, entry             # of the table, plus 1
    size_t unit                      # where it is in the text


cdef struct Owner:
    # A shingle of an item at work. Those in the window are linked by the order in which the text had them last.
    uint32_t work, other             # whose it is; the next owner of the same shingle
    uint32_t before, behind          # in the window
    size_t unit, start               # where the text had it last; unit is _MAX if it is not in the window


cdef struct Work:
    # An item at work: its window, and the best one so far.
    uint32_t item, head, tail, shared
    uint32_t most
    size_t longest, units, first, start, end


cdef int _by_number(const void *a, const void *b) noexcept nogil:
    cdef uint32_t x = (<const uint32_t *> a)[0], y = (<const uint32_t *> b)[0]
    return (x > y) - (x < y)


cdef int _by_place(const void *a, const void *b) noexcept nogil:
    cdef size_t x = (<const size_t *> a)[0], y = (<const size_t *> b)[0]
    return (x > y) - (x < y)


@final
cdef class ItemSearch:
    """Searches texts for items, in one thread.

    Parameters
    ----------
    table : ItemTable
        The items.
    locate : callable
        Called with the bytes of a text that Python normalised, and a list of pairs of unit numbers; returns where the
        units from the first one to the one before the second begin and end in the text, in bytes.
    """

    cdef ItemTable table
    cdef object locate
    cdef const c.lsh_kernels *kernels
    cdef Walk walk, own
    cdef ShingleTable known
    cdef uint8_t[::1] seen_bytes     # of numpy, which asks for large pages
    cdef Seen *seen                  # of each item, there
    cdef uint32_t *stamps            # of each shingle: the text that was the last one to have it
    cdef size_t num_stamps
    cdef uint32_t stamp, counted     # of the text at work, in a search and in a count
    cdef Meeting meetings[MEETINGS]  # of the text at work, held back
    cdef size_t num_meetings
    cdef bint all_held               # all of the text so far are
    cdef uint16_t kept[MEETINGS]     # the numbers of those that are counted
    cdef uint8_t slots[SLOTS]        # by the low bits of their items: 1 for one of these meetings, 2 for more
    cdef uint32_t *found             # items that may be in the text
    cdef size_t num_found, found_room
    cdef Owner *owners
    cdef size_t num_owners, owner_room
    cdef Work *works
    cdef size_t work_room
    cdef uint32_t *words
    cdef size_t word_room
    cdef c.lsh_wanted wanted         # the shingles of the items at work
    cdef Hit *hits
    cdef Units *units
    cdef size_t num_hits, hit_room
    cdef size_t *places
    cdef size_t place_room, done
    cdef uint32_t passed[SCANNED + c.LSH_LANES]
    cdef uint64_t hashes[SCANNED]
    cdef uint32_t entries[SCANNED]

    def __cinit__(self, ItemTable table not None, locate not None):
        self.table, self.locate, self.kernels = table, locate, chosen_kernels()
        self.walk, self.own, self.known = table.walk(), table.walk(), ShingleTable()

    def __dealloc__(self):
        free(self.stamps)
        free(self.found)
        free(self.owners)
        free(self.works)
        free(self.words)
        free(self.hits)
        free(self.units)
        free(self.places)

    cdef int _begin(self) except -1:
        """Make `seen`, or begin it again before stamps are used up."""
        if self.seen != NULL and self.stamp < _NOTHING // 2:
            return 0
        self.seen_bytes = cleared((self.table.count + 1) * sizeof(Seen), np.uint8)
        self.seen = <Seen *> &self.seen_bytes[0]
        self.stamp = 0
        return 0

    cdef void _begin_seen(self, Seen *seen, const Item *item) noexcept nogil:
        """Begin to count the shingles of an item in the text at work."""
        if seen.stamp == 0:
            seen.bar = min(item.bar, <uint32_t> MAX_BAR)
            while seen.shift < 63 and (<size_t> 1 << seen.shift) < item.longest:
                seen.shift += 1
        seen.stamp, seen.entry, seen.part, seen.here, seen.before = self.stamp, 0, 0, 0, 0
        seen.shift &= <uint8_t> ~IS_FOUND

    cdef int _check(self, size_t work) except -1 nogil:
        """Handle signals from time to time."""
        self.done += work
        if self.done > CHECKED:
            self.done = 0
            check_signals()
        return 0

    def count(self, Batch batch not None, int64_t[::1] counts not None):
        """Count for each shingle of a table of all, by its first entry, the texts that have it; add to `counts`."""
        cdef ItemTable table = self.table
        cdef size_t j, count, at, length = 0
        cdef Py_ssize_t i
        cdef const uint8_t *bytes
        if self.num_stamps != <size_t> table.entries.shape[0] + 1 or self.counted > _NOTHING // 2:
            self.num_stamps, self.counted = table.entries.shape[0] + 1, 0
            self.stamps = <uint32_t *> resize(self.stamps, self.num_stamps, sizeof(uint32_t))
            memset(self.stamps, 0, self.num_stamps * sizeof(uint32_t))
        with nogil:
            for i in range(batch.count):
                self.counted += 1
                self.walk.read(batch.texts[i], batch.lengths[i])
                while self.walk.more():
                    count = c.lsh_find_wanted(self.kernels, &table.wanted, &self.walk.shingles, self.passed,
                                              self.hashes)
                    for j in range(count):
                        bytes = self.walk.shingle(self.passed[j], &length)
                        at = table.first_equal(self.hashes[j], bytes, length)
                        if at < <size_t> counts.shape[0] and self.stamps[at] != self.counted:
                            self.stamps[at] = self.counted
                            counts[at] += 1
                    self._check(self.walk.shingles.count)

    def search(self, Batch batch not None, int64_t first, bint among_themselves):
        """Return the hits in texts, of which the first has the number `first`: an array of HIT, by text and item.

        If the items are the texts, `among_themselves`, a text is not searched for itself.
        """
        cdef Py_ssize_t i
        cdef size_t before
        self._begin()
        self.num_hits = 0
        with nogil:
            for i in range(batch.count):
                self.walk.read(batch.texts[i], batch.lengths[i])
                self._find_items(first + i if among_themselves else _NOTHING, NULL)
                if self.num_found:
                    before = self.num_hits
                    self._find_windows(first + i)
                    if self.num_hits > before:
                        self._name_places(before)
        return self._array()

    def search_items(self, const int64_t[::1] numbers not None, const int64_t[::1] ranks not None):
        """Return the hits in some items of those whose rank is above theirs; places are those in normalised texts."""
        cdef Py_ssize_t i
        self._begin()
        self.num_hits = 0
        with nogil:
            for i in range(numbers.shape[0]):
                self.table.begin_item(self.walk, numbers[i])
                self._find_items(numbers[i], &ranks[0])
                if self.num_found:
                    self._find_windows(numbers[i])
        return self._array()

    cdef object _array(self):
        """Return a copy of the hits."""
        result = np.empty(self.num_hits, HIT)
        cdef uint8_t[::1] out = result.view(np.uint8)
        if self.num_hits:
            memcpy(&out[0], self.hits, self.num_hits * sizeof(Hit))
        return result

    cdef int _find_items(self, int64_t own, const int64_t *ranks) except -1 nogil:
        """List the items but number `own` of whose shingles in the table the text has enough close together, in order.

        With `ranks`, only those whose rank is above that of item `own`, which is the text.

        Shingles are equal here if their hashes are; the windows decide by bytes.
        """
        cdef size_t j, count, met
        self.stamp += 1
        self.num_found = 0
        self.all_held = True
        while self.walk.more():
            count = c.lsh_find_wanted(self.kernels, &self.table.wanted, &self.walk.shingles, self.passed, self.hashes)
            count = c.lsh_keep_known(&self.table.by_hash, self.passed, self.hashes, self.entries, count)
            met = self.walk.shingles.count
            for j in range(count):
                met += self._hold(self.entries[j], self.walk.first + self.passed[j], own, ranks)
            self._check(met)
        self._meet_held(own, ranks)
        if self.num_found:
            qsort(self.found, self.num_found, sizeof(uint32_t), _by_number)
        return 0

    cdef size_t _hold(self, size_t first, size_t unit, int64_t own, const int64_t *ranks) except? 0 nogil:
        """Hold back the meetings of a shingle, at a unit of the text, with the items that have it; return how many.

        Where a text has too many, all are counted at once from then on.
        """
        cdef const uint32_t *entries = self.table.by_hash.entries
        cdef uint32_t item, low = entries[2 * first]
        cdef size_t at = first, slot, stop = self.table.entries.shape[0]
        while at < stop and entries[2 * at] == low:
            item = entries[2 * at + 1]
            at += 1
            if self.all_held and self.num_meetings == MEETINGS:
                self.all_held = False
                self._meet_held(own, ranks)
            if not self.all_held:
                c.lsh_prefetch(&self.seen[entries[2 * min(at + AHEAD, stop - 1) + 1]])
                self._meet(item, <uint32_t> at, unit, own, ranks)
                continue
            self.meetings[self.num_meetings] = Meeting(item, <uint32_t> at, unit)
            self.num_meetings += 1
            slot = item & (SLOTS - 1)
            self.slots[slot] += self.slots[slot] < 2
        return at - first

    cdef int _meet_held(self, int64_t own, const int64_t *ranks) except -1 nogil:
        """Count the meetings held back; if they are all of the text, only those of items that may be met often enough.

        Most items are met once, and what is known of them is not in the caches of the processor.
        """
        cdef const uint8_t *single = &self.table.single[0]
        cdef size_t j, start, stop = 0, count = 0
        cdef uint32_t item
        cdef const Meeting *held
        for j in range(self.num_meetings):
            item = self.meetings[j].item
            self.kept[count] = <uint16_t> j
            count += (not self.all_held or self.slots[item & (SLOTS - 1)] > 1
                      or (single[item >> 3] >> (item & 7) & 1) != 0)
        for j in range(self.num_meetings):
            self.slots[self.meetings[j].item & (SLOTS - 1)] = 0
        self.num_meetings = 0
        while stop < count:
            start, stop = stop, min(stop + AHEAD, count)
            for j in range(start, stop):
                c.lsh_prefetch(&self.seen[self.meetings[self.kept[j]].item])
            for j in range(start, stop):
                held = &self.meetings[self.kept[j]]
                self._meet(held.item, held.entry, held.unit, own, ranks)
        return 0

    cdef inline int _meet(self, uint32_t item, uint32_t entry, size_t unit, int64_t own,
                          const int64_t *ranks) except -1 nogil:
        """Count a meeting."""
        cdef uint32_t part
        cdef Seen *seen = &self.seen[item]
        if seen.stamp != self.stamp:
            self._begin_seen(seen, &self.table.items[item])
            if item == own or (ranks != NULL and ranks[item] <= ranks[own]):
                seen.shift |= IS_FOUND
        if seen.shift & IS_FOUND:
            return 0
        part = <uint32_t> (unit >> seen.shift)
        if seen.part != part:
            seen.before = seen.here if part == seen.part + 1 else 0
            seen.part, seen.here, seen.entry = part, 0, 0
        if seen.entry == entry:
            return 0
        seen.entry = entry
        seen.here += seen.here < MAX_BAR
        if <uint32_t> seen.here + seen.before >= seen.bar:
            seen.shift |= IS_FOUND
            self._append_found(item)
        return 0

    cdef int _append_found(self, uint32_t item) except -1 nogil:
        if self.num_found == self.found_room:
            self.found_room = 2 * self.found_room + 64
            self.found = <uint32_t *> resize(self.found, self.found_room, sizeof(uint32_t))
        self.found[self.num_found] = item
        self.num_found += 1
        return 0

    cdef int _find_windows(self, int64_t text) except -1 nogil:
        """Find the best windows of the listed items, so many at once that their shingles take little memory."""
        cdef size_t start = 0, stop = 0, total
        while start < self.num_found:
            total = 0
            while stop < self.num_found and (stop == start or total < TOGETHER):
                total += self.table.items[self.found[stop]].different
                stop += 1
            self._check(total)
            self._enter_items(start, stop, total)
            self._walk_windows()
            self._append_hits(start, stop, text)
            start = stop
        return 0

    cdef int _enter_items(self, size_t start, size_t stop, size_t total) except -1 nogil:
        """Make the works of some of the listed items, and a table and a filter of their shingles."""
        cdef size_t i, j, length = 0, words = power_of_two(max(total * BITS // 32, <size_t> 1))
        cdef const uint8_t *bytes
        cdef Known *known
        cdef Work *work
        cdef bint is_new = False
        self.known.begin(total)
        if total > self.owner_room:
            self.owners = <Owner *> resize(self.owners, total, sizeof(Owner))
            self.owner_room = total
        if stop - start > self.work_room:
            self.works = <Work *> resize(self.works, stop - start, sizeof(Work))
            self.work_room = stop - start
        if words > self.word_room:
            self.words = <uint32_t *> resize(self.words, words, sizeof(uint32_t))
            self.word_room = words
        memset(self.words, 0, words * sizeof(uint32_t))
        self.wanted = c.lsh_wanted(0, c.lsh_make_begins(self.words, words), c.lsh_filter(NULL, 0), NULL)
        self.num_owners = 0
        for i in range(stop - start):
            work = &self.works[i]
            work[0] = Work(self.found[start + i], _NOTHING, _NOTHING, 0, 0, 0, _MAX, 0, 0, 0)
            work.longest = self.table.items[work.item].longest
            self.table.begin_item(self.own, work.item)
            while self.own.more():
                c.lsh_hash_shingles(&self.own.shingles, self.hashes)
                for j in range(self.own.shingles.count):
                    bytes = self.own.shingle(j, &length)
                    known = self.known.enter(self.hashes[j], bytes, length, &is_new)
                    if is_new:
                        known.counts = self.table.counts(bytes)
                        c.lsh_begins_add(&self.wanted.begins, c.lsh_begin_value(bytes, length))
                    if not known.counts or (known.owner != _NOTHING and self.owners[known.owner].work == i):
                        continue
                    self.owners[self.num_owners] = Owner(i, known.owner, _NOTHING, _NOTHING, _MAX, 0)
                    known.owner = self.num_owners
                    self.num_owners += 1
        return 0

    cdef int _walk_windows(self) except -1 nogil:
        """Walk over the text once more, with the windows of all works."""
        cdef size_t j, count, length = 0, start, moved
        cdef const uint8_t *bytes
        cdef const Known *known
        cdef uint32_t owner
        self.walk.begin(self.walk.text, self.walk.text_length, self.walk.is_ascii)
        while self.walk.more():
            count = c.lsh_find_wanted(self.kernels, &self.wanted, &self.walk.shingles, self.passed, self.hashes)
            moved = self.walk.shingles.count
            for j in range(count):
                bytes = self.walk.shingle(self.passed[j], &length)
                known = self.known.find(self.hashes[j], bytes, length)
                if known == NULL:
                    continue
                start = bytes - self.walk.text
                owner = known.owner
                while owner != _NOTHING:
                    self._move(owner, self.walk.first + self.passed[j], start, start + length)
                    owner = self.owners[owner].other
                    moved += 1
            self._check(moved)
        return 0

    cdef void _unlink(self, Work *work, uint32_t number) noexcept nogil:
        """Take a shingle out of the window."""
        cdef Owner *owner = &self.owners[number]
        if owner.before == _NOTHING:
            work.head = owner.behind
        else:
            self.owners[owner.before].behind = owner.behind
        if owner.behind == _NOTHING:
            work.tail = owner.before
        else:
            self.owners[owner.behind].before = owner.before
        owner.unit = _MAX
        work.shared -= 1

    cdef void _move(self, uint32_t number, size_t unit, size_t start, size_t end) noexcept nogil:
        """Move the window of a work to its shingle at a unit of the text, from byte `start` to `end`.

        Of each shingle the window has the last place only: the first of these is where the shortest window begins that
        ends here and has all of them.
        """
        cdef Owner *owner = &self.owners[number]
        cdef Work *work = &self.works[owner.work]
        cdef size_t units
        if owner.unit != _MAX:
            self._unlink(work, number)
        owner.unit, owner.start, owner.before, owner.behind = unit, start, work.tail, _NOTHING
        if work.tail == _NOTHING:
            work.head = number
        else:
            self.owners[work.tail].behind = number
        work.tail = number
        work.shared += 1
        units = unit + self.table.n - self.owners[work.head].unit
        while units > work.longest:
            self._unlink(work, work.head)
            units = unit + self.table.n - self.owners[work.head].unit
        if work.shared > work.most or (work.shared == work.most and units < work.units):
            work.most, work.units, work.first = work.shared, units, self.owners[work.head].unit
            work.start, work.end = self.owners[work.head].start, end

    cdef int _append_hits(self, size_t start, size_t stop, int64_t text) except -1 nogil:
        """Append the best windows that have enough of the items; their places are those in the normalised text."""
        cdef size_t i
        cdef const Work *work
        cdef const Item *item
        for i in range(stop - start):
            work = &self.works[i]
            item = &self.table.items[work.item]
            if work.most < item.need:
                continue
            if self.num_hits == self.hit_room:
                self.hit_room = 2 * self.hit_room + 64
                self.hits = <Hit *> resize(self.hits, self.hit_room, sizeof(Hit))
                self.units = <Units *> resize(self.units, self.hit_room, sizeof(Units))
            self.hits[self.num_hits] = Hit(work.item, text, (<double> work.most) / item.shingles, work.start, work.end,
                                           work.most)
            self.units[self.num_hits] = Units(work.first, work.first + work.units)
            self.num_hits += 1
        return 0

    cdef int _name_places(self, size_t first) except -1 nogil:
        """Let hits from number `first` on have their places in the text as it was given, at ends of characters."""
        cdef size_t i, count = 2 * (self.num_hits - first)
        cdef size_t *originals
        cdef Hit *hit
        if self.walk.by_python:
            with gil:
                self._locate(first)
            return 0
        if count > self.place_room:
            self.places = <size_t *> resize(self.places, 2 * count, sizeof(size_t))
            self.place_room = count
        originals = self.places + count
        for i in range(count // 2):
            hit = &self.hits[first + i]
            self.places[2 * i], self.places[2 * i + 1] = hit.start, hit.end - 1
        qsort(self.places, count, sizeof(size_t), _by_place)
        memcpy(originals, self.places, count * sizeof(size_t))
        self.walk.originals(originals, count)
        for i in range(count // 2):
            hit = &self.hits[first + i]
            hit.start = self.walk.begin_of(originals[_position(self.places, count, hit.start)])
            hit.end = self.walk.end_of(self.walk.begin_of(originals[_position(self.places, count, hit.end - 1)]))
        return 0

    def _locate(self, size_t first):
        """The same for a text that Python normalised."""
        cdef size_t i
        spans = [(self.units[i].first, self.units[i].last) for i in range(first, self.num_hits)]
        text = self.walk.source[:self.walk.length]
        for i, (start, end) in enumerate(self.locate(text, spans)):
            self.hits[first + i].start, self.hits[first + i].end = start, end


cdef size_t _position(const size_t *ascending, size_t count, size_t value) noexcept nogil:
    """Where a value is in an array that has it."""
    cdef size_t low = 0, middle
    while count > 1:
        middle = count // 2
        if ascending[low + middle] <= value:
            low += middle
        count -= middle
    return low
