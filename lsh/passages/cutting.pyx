# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Which windows are cut, decided from the first text to the last, and the passages that this makes.

A window is cut if an equal one lies wholly in what is kept of earlier texts, or in what is kept before it of its own
text. Only what is kept is remembered: of equal windows one. For each key there is a list of anchors in kept text; the
windows of an anchor are compared with theirs, byte by byte. Where many anchors have one key and differ further away,
as around a phrase that is in every text, the list is divided by keys of longer runs, down to whole windows, so that an
anchor is compared with a few others only.
"""

from cython cimport final
from libc.stdint cimport UINT32_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memmove

from lsh cimport _kernels as c
from lsh.base.memory cimport resize
from lsh._minhash cimport check_signals
from lsh.passages.repeats cimport (
    AnchorFinder,
    KeyTable,
    Shift,
    Side,
    begin_from,
    context_key,
    end_from,
    is_begin,
    is_shifted,
)

import numpy as np

cdef enum:
    CHUNK = 1 << 16  # entries, or zones, that are allocated at once
    CHECKED = 1 << 24  # bytes between two checks for signals

LIMIT = 8  # anchors of a list; those that come later go to lists of longer runs

# A run of text: where it is in the stored text, and in its document. Of a unit, `stop` is the end of the unit.
RUN = np.dtype([("chunk", np.int64), ("at", np.int64), ("length", np.int64), ("document", np.int64),
                ("start", np.int64), ("stop", np.int64)])
ROW = np.dtype([("document", np.int64), ("start", np.int64), ("end", np.int64), ("kept", np.int64),
                ("kept_start", np.int64)])


cdef packed struct Run:
    int64_t chunk, at, length, document, start, stop


cdef packed struct Row:
    int64_t document, start, end, kept, kept_start


cdef struct Entry:
    # An anchor in kept text, in the list of a key.
    const uint8_t *place
    uint32_t zone
    uint32_t following               # the next entry, 0 at the end


cdef struct Zone:
    # A run of kept text. Its end is NULL while it may still grow.
    const uint8_t *start
    const uint8_t *end
    int64_t document, offset         # where it starts in its document


cdef struct Candidate:
    # An anchor in kept text that may have windows equal to those of the anchor at work.
    const uint8_t *place
    uint32_t zone
    size_t before, after             # how many bytes before and from the anchor on are equal


cdef struct Windows:
    size_t first, last


@final
cdef class _Chunks:
    """Items of a fixed size in arrays that are allocated by need and stay where they are."""

    cdef object make
    cdef list arrays
    cdef uint8_t **starts
    cdef size_t item, count

    def __cinit__(self, make, size_t item):
        self.make, self.item, self.arrays = make, item, []

    def __dealloc__(self):
        free(self.starts)

    cdef void *at(self, size_t i) noexcept nogil:
        return self.starts[i // CHUNK] + i % CHUNK * self.item

    cdef size_t add(self) except? 0 nogil:
        """Make room for another item, whose content may be anything; return its number."""
        if self.count % CHUNK == 0:
            with gil:
                self._grow()
        self.count += 1
        return self.count - 1

    def _grow(self):
        cdef uint8_t[::1] view
        if self.count >= UINT32_MAX - CHUNK:
            raise OverflowError("more than 2**32 passages are kept; process the texts in parts")
        array = self.make(CHUNK * self.item, np.uint8)
        view = array
        self.starts = <uint8_t **> resize(self.starts, len(self.arrays) + 1, sizeof(uint8_t *))
        self.starts[len(self.arrays)] = &view[0]
        self.arrays.append(array)


@final
cdef class Cutter:
    """Decides runs of text in the order in which they are given.

    Parameters
    ----------
    finder : AnchorFinder or None
        For windows; None: runs are units, which are equal as a whole or not at all.
    table : KeyTable
        The keys that occur more than once; their numbers are 0.
    make : callable
        Makes the arrays of what is kept; called as ``make(length, dtype)``.
    secret : bytes
        Of 16 bytes, as for the keys.
    limit : int, optional
        How many anchors a list has, except one of whole windows. It does not change what is cut.
    """

    cdef size_t limit
    cdef AnchorFinder finder
    cdef KeyTable table               # the first entry of the list of a key, counted from 1
    cdef KeyTable longer              # the same for keys of longer runs
    cdef _Chunks entries, zones
    cdef list texts                   # the chunks of stored text
    cdef const uint8_t **text_starts
    cdef uint64_t secret[2]
    # the rows that are found
    cdef Row *rows
    cdef size_t num_rows, max_rows, first_row  # first_row: of the run at work
    # the run at work
    cdef const uint8_t *text
    cdef size_t length, window
    cdef const Run *run
    cdef bint is_kept                 # nothing of the run is cut
    cdef size_t decided               # windows before this place are decided
    cdef Shift shift                  # of the windows that are entered
    cdef size_t work                  # since the last check for signals
    cdef size_t open_start            # behind the last cut: where kept text begins that has no end yet
    cdef size_t cut_start             # where the last cut begins
    cdef uint32_t open_zone           # its zone, counted from 1; 0 if it has none yet
    cdef uint32_t place_zone          # the zone of the anchor that was registered last, or the first of the run
    cdef uint32_t *lists              # of each anchor and side: the slot of its key, UINT32_MAX if nothing is kept
    cdef size_t max_lists
    cdef Candidate *candidates
    cdef size_t num_candidates, max_candidates
    cdef Windows *repeated            # windows of which nothing is cut that are equal to earlier ones, ascending
    cdef size_t num_repeated, max_repeated

    def __cinit__(self, finder, KeyTable table not None, make not None, bytes secret not None, size_t limit=LIMIT):
        self.finder, self.table, self.texts, self.limit = finder, table, [], limit
        self.longer = KeyTable(make, 0)
        self.entries, self.zones = _Chunks(make, sizeof(Entry)), _Chunks(make, sizeof(Zone))
        self.window = 0 if finder is None else self.finder.window
        self.secret[0], self.secret[1] = (<const uint64_t *> <const char *> secret)[:2]
        self.entries.add()  # entries and zones are counted from 1
        self.zones.add()

    def __dealloc__(self):
        free(self.rows)
        free(self.lists)
        free(self.candidates)
        free(self.repeated)
        free(self.text_starts)

    def add_text(self, const uint8_t[::1] data not None):
        """Add a chunk of text, which runs refer to by its number."""
        self.text_starts = <const uint8_t **> resize(self.text_starts, len(self.texts) + 1, sizeof(uint8_t *))
        self.text_starts[len(self.texts)] = &data[0] if data.shape[0] else NULL
        self.texts.append(data)

    def decide(self, const Run[::1] runs not None, bint kept):
        """Decide runs; return the passages that are cut, as an array of `ROW`. With `kept`, nothing is cut."""
        cdef Py_ssize_t i
        self.num_rows, self.is_kept = 0, kept
        with nogil:
            for i in range(runs.shape[0]):
                self.run, self.first_row = &runs[i], self.num_rows
                self.text, self.length = self.text_starts[self.run.chunk] + self.run.at, self.run.length
                if self.window:
                    self._decide_windows()
                else:
                    self._decide_unit()
                self._worked(self.length + 64)
        result = np.empty(self.num_rows, ROW)
        cdef Row[::1] out = result
        for i in range(out.shape[0]):
            out[i] = self.rows[i]
        return result

    # ---- units ----

    cdef int _decide_unit(self) except -1 nogil:
        """Decide a run that is a unit."""
        cdef uint32_t *head = self.table.enter(context_key(self.text, self.length, 0, self.secret))
        cdef uint32_t at = head[0]
        cdef const Entry *entry
        cdef const Zone *zone
        while at:
            entry = <const Entry *> self.entries.at(at)
            zone = <const Zone *> self.zones.at(entry.zone)
            if (<size_t> (zone.end - zone.start) == self.length
                    and c.lsh_common_after(zone.start, self.text, self.length) == self.length):
                if not self.is_kept:
                    self._add_row(self.run.start, self.run.stop, zone.document, zone.offset)
                return 0
            at = entry.following
        self.open_start, self.open_zone = 0, 0
        self._push(head, self.text, self._zone_of_open())
        (<Zone *> self.zones.at(self.open_zone)).end = self.text + self.length
        return 0

    # ---- windows ----

    cdef int _decide_windows(self) except -1 nogil:
        """Decide a run, anchor by anchor: first the windows with the bytes before it, then those after it."""
        cdef size_t i = 0, side, registered = 0, known
        self.finder.begin(self.text, self.length)
        self.decided = self.open_start = self.cut_start = 0
        self.open_zone = 0
        self.num_repeated = 0
        self.shift = Shift(0, 0, 0)
        self.place_zone = <uint32_t> self.zones.count
        known = self._more_anchors(0)
        while i < known:
            while self.finder.anchors[registered].place + self.window <= self.finder.anchors[i].place:
                self._register(registered)  # its windows may end before those of this anchor begin
                registered += 1
            for side in range(2):
                self.lists[2 * i + side] = self._decide_side(i, side)
            i += 1
            if i == known and not self.finder.is_complete:
                known = self._more_anchors(registered)
                i, registered = i - registered, 0
        self._end_zone(self.length)
        self.cut_start = self.open_start = self.length + 1  # all zones have ended
        while registered < known:
            self._register(registered)
            registered += 1
        return 0

    cdef size_t _more_anchors(self, size_t done) except? 0 nogil:
        """Forget the first `done` anchors and find more; return how many can be decided."""
        cdef size_t known = self.finder.more(done)
        if done:
            memmove(self.lists, self.lists + 2 * done, (self.max_lists - 2 * done) * sizeof(uint32_t))
        if self.max_lists < 2 * self.finder.capacity:
            self.max_lists = 2 * self.finder.capacity
            self.lists = <uint32_t *> resize(self.lists, self.max_lists, sizeof(uint32_t))
        self._worked(0)
        return known

    cdef int _worked(self, size_t work) except -1 nogil:
        """Count bytes that are compared or hashed, and handle signals now and then."""
        self.work += work
        if self.work > CHECKED:
            self.work = 0
            check_signals()
        return 0

    cdef uint32_t _decide_side(self, size_t i, size_t number) except? 0 nogil:
        """Decide the windows of a side of anchor i; return the slot of its key if some of them are kept."""
        cdef size_t first = 0, last = 0, place = self.finder.anchors[i].place, window, found, slot, at, j
        cdef uint32_t kept = UINT32_MAX
        cdef Side side = self.finder.sides[number]
        cdef const Candidate *best
        if not self.finder.windows(i, side, &first, &last) or last < self.decided:
            return UINT32_MAX
        at = begin_from(self.text, max(first, self.decided), last + 1)
        if at <= last and i and self._cut_shifted(place - self.finder.anchors[i - 1].place, at):
            at = begin_from(self.text, max(first, self.decided), last + 1)
        if at > last:
            return UINT32_MAX
        slot = self.table.find(self.finder.key_of_side(place, number))
        if self.table.keys[slot] == 0:
            return UINT32_MAX
        self.num_candidates = 0
        self._find_candidates(self.table.heads[slot], place, at, last, side)
        while at <= last:
            best, window = NULL, last + 1
            for j in range(self.num_candidates):
                found = self._next_equal(&self.candidates[j], place, at, window - 1)
                if found < window:
                    best, window = &self.candidates[j], found
                if window == at:
                    break
            if window > at:
                kept = <uint32_t> slot
            if best == NULL:
                break
            self._cut(best, place, window)
            at = begin_from(self.text, self.decided, last + 1)
        return kept

    cdef int _find_candidates(self, uint32_t head, size_t place, size_t first, size_t last, Side side) except -1 nogil:
        """Find the anchors in kept text that may have windows equal to some of windows first to last of a side."""
        cdef size_t count = 0, i, low = 0, high = 0
        cdef const Entry *entry
        cdef Side halves[2]
        while head:
            entry = <const Entry *> self.entries.at(head)
            self._add_candidate(entry, place, first)
            head = entry.following
            count += 1
        if count < self.limit or not _halve(side, halves):
            return 0
        for i in range(2):
            if _within(place, halves[i], first, last, &low, &high):
                head = self.longer.heads[self.longer.find(self.finder.key(place, halves[i]))]
                self._find_candidates(head, place, low, high, halves[i])
        return 0

    cdef int _add_candidate(self, const Entry *entry, size_t place, size_t first) except -1 nogil:
        """Compare the text around an anchor with that around `place`; add it if they have a window in common."""
        cdef const Zone *zone = <const Zone *> self.zones.at(entry.zone)
        cdef const uint8_t *own = self.text + place
        cdef size_t most = own - entry.place if zone.end == NULL else zone.end - entry.place
        cdef size_t after = c.lsh_common_after(own, entry.place, min(most, self.length - place)), before
        before = c.lsh_common_before(own, entry.place, min(<size_t> (entry.place - zone.start), place - first))
        self._worked(before + after + 64)
        if before + after < self.window:
            return 0
        if self.num_candidates == self.max_candidates:
            self.max_candidates = 2 * self.max_candidates + 64
            self.candidates = <Candidate *> resize(self.candidates, self.max_candidates, sizeof(Candidate))
        self.candidates[self.num_candidates] = Candidate(entry.place, entry.zone, before, after)
        self.num_candidates += 1
        return 0

    cdef size_t _next_equal(self, const Candidate *one, size_t place, size_t at, size_t last) noexcept nogil:
        """The first of windows `at` to `last` that is equal to one in kept text by a candidate; last + 1: none is."""
        at = begin_from(self.text, max(at, place - one.before), last + 1)
        if at > last or end_from(self.text, at + self.window, self.length) > self._equal_until(one, place):
            return last + 1
        return at  # what is equal within the run itself ends before `at`: anchors are a window apart

    cdef size_t _equal_until(self, const Candidate *one, size_t place) noexcept nogil:
        """Where the text that is equal by a candidate ends; its zone may have ended since it was compared."""
        cdef const Zone *zone = <const Zone *> self.zones.at(one.zone)
        return place + (one.after if zone.end == NULL else min(one.after, <size_t> (zone.end - one.place)))

    cdef int _cut(self, const Candidate *one, size_t place, size_t at) except -1 nogil:
        """Cut the window `at`, and those after it that are equal to kept text by the same candidate."""
        cdef const Zone *zone = <const Zone *> self.zones.at(one.zone)
        cdef size_t end = self._equal_until(one, place), distance = self.text + place - one.place, window
        if zone.end == NULL:
            end = min(end, at + distance)
        window = self._last_within(at, end)
        end = end_from(self.text, window + self.window, self.length)
        self.decided = window + 1
        if self.is_kept:
            return self._add_repeated(at, window)
        self._add_row(self.run.start + at, self.run.start + end, zone.document,
                      zone.offset + (one.place + at - place - zone.start))
        if at > self.open_start:
            self._end_zone(at)
            self.cut_start, self.open_start = at, end
        else:
            self.open_start = max(self.open_start, end)
        return 0

    cdef size_t _last_within(self, size_t at, size_t end) noexcept nogil:
        """The last window from `at` on that ends at `end` or before, as window `at` does."""
        cdef size_t window = end - self.window
        while window > at and not (is_begin(self.text, window)
                                   and end_from(self.text, window + self.window, self.length) <= end):
            window -= 1
        return window

    cdef bint _cut_shifted(self, size_t step, size_t at) except -1 nogil:
        """Decide windows from `at` on that are equal to those `step` before them, in cut text; return whether any is.

        They are decided like those, as no text is kept in between. So a text that repeats a few characters takes time
        in proportion to its length, whatever the window.
        """
        cdef size_t base = at - step, end, last, size, covered
        cdef const Row *row
        cdef const Windows *repeated
        cdef int64_t kept, document
        if step >= self.window // 4 or step > at:
            return False
        if self.is_kept:
            if self.num_repeated == 0:
                return False
            repeated = &self.repeated[self.num_repeated - 1]
            if repeated.first > base or begin_from(self.text, repeated.last + 1, at) < at:
                return False
        elif self.num_rows == self.first_row or base < self.cut_start or at > self.open_start:
            return False
        end = at + c.lsh_common_after(self.text + base, self.text + at, self.length - at)
        self._worked(end - at)
        if end_from(self.text, at + self.window, self.length) > end:
            return False
        if self.is_kept:
            last = self._last_within(at, end)
            self.decided = last + 1
            self._add_repeated(at, last)
            return True
        # From a window of the last row on, those whose distance is a multiple of the step have the same witness.
        row = &self.rows[self.num_rows - 1]
        base = begin_from(self.text, max(base, <size_t> (row.start - self.run.start)), at)
        size = end_from(self.text, base + self.window, self.length) - base
        covered = row.end - self.run.start
        if base + size > covered or base + step + size > end:
            return False
        last = base + (end - size - base) // step * step
        if end_from(self.text, last + self.window, self.length) > last + size:
            last -= step  # a longer character follows there
        if last < at:
            return False
        kept, document = row.kept_start + <int64_t> base - (row.start - self.run.start), row.kept
        while covered < last + size:  # each begins in what is covered, as far behind as it can
            at = min(base + (covered - base) // step * step, last)
            covered = at + size
            self._add_row(self.run.start + at, self.run.start + covered, document, kept)
        self.decided = last + 1
        self.open_start = max(self.open_start, covered)
        return True

    cdef int _add_repeated(self, size_t first, size_t last) except -1 nogil:
        """Note windows that are equal to earlier ones but are not cut; they come in ascending order."""
        cdef size_t count = self.num_repeated
        if count and begin_from(self.text, self.repeated[count - 1].last + 1, first) == first:
            self.repeated[count - 1].last = last
            return 0
        if self.num_repeated == self.max_repeated:
            self.max_repeated = 2 * self.max_repeated + 64
            self.repeated = <Windows *> resize(self.repeated, self.max_repeated, sizeof(Windows))
        self.repeated[self.num_repeated] = Windows(first, last)
        self.num_repeated += 1
        return 0

    cdef size_t _new_from(self, size_t first, size_t stop) noexcept nogil:
        """The first window from `first` on that is not equal to an earlier one; `stop` or more if there is none."""
        cdef size_t low = 0, high = self.num_repeated, middle
        while low < high:  # the first of those that end at `first` or behind it
            middle = (low + high) // 2
            if self.repeated[middle].last < first:
                low = middle + 1
            else:
                high = middle
        if low < self.num_repeated and self.repeated[low].first <= first:
            first = begin_from(self.text, min(self.repeated[low].last + 1, stop), stop)
        return first

    # ---- what is kept ----

    cdef uint32_t _zone_of_open(self) except 0 nogil:
        """The zone of the kept text that may still grow."""
        cdef Zone *zone
        if self.open_zone == 0:
            self.open_zone = <uint32_t> self.zones.add()
            zone = <Zone *> self.zones.at(self.open_zone)
            zone.start, zone.end = self.text + self.open_start, NULL
            zone.document, zone.offset = self.run.document, self.run.start + self.open_start
        return self.open_zone

    cdef int _end_zone(self, size_t end) except -1 nogil:
        """End the kept text that may still grow."""
        if self.open_zone or end - self.open_start >= self.window:
            (<Zone *> self.zones.at(self._zone_of_open())).end = self.text + end
        self.open_zone = 0
        return 0

    cdef int _register(self, size_t i) except -1 nogil:
        """Enter anchor i into the lists of its keys, if windows of it may be kept."""
        cdef size_t place = self.finder.anchors[i].place, first = 0, last = 0, at
        cdef size_t step = place - self.finder.anchors[i - 1].place if i else self.window
        cdef uint32_t zone_number, slot
        cdef const Zone *zone
        cdef size_t side
        if self.lists[2 * i] == UINT32_MAX and self.lists[2 * i + 1] == UINT32_MAX:
            return 0
        zone_number = self._zone_at(place)
        if zone_number == 0:
            return 0
        zone = <const Zone *> self.zones.at(zone_number)
        for side in range(2):
            slot = self.lists[2 * i + side]
            if slot == UINT32_MAX:
                continue
            self.finder.windows(i, self.finder.sides[side], &first, &last)
            at = begin_from(self.text, max(first, <size_t> max(zone.start - self.text, 0)), last + 1)
            if (at <= last and (zone.end == NULL or
                                self.text + end_from(self.text, at + self.window, self.length) <= zone.end)
                    and not self._is_entered(zone, step, at, last)):
                self._enter(&self.table.heads[slot], place, zone_number, self.finder.sides[side], at, last)
        return 0

    cdef bint _is_entered(self, const Zone *zone, size_t step, size_t first, size_t last) noexcept nogil:
        """Tell whether windows are equal to those `step` before them in the same kept text, which are in the lists."""
        return (step < self.window // 4 and step <= first and self.text + first - step >= zone.start
                and is_shifted(&self.shift, self.text, step, first, min(last + self.window + 3, self.length)))

    cdef uint32_t _zone_at(self, size_t place) except? 0 nogil:
        """The zone that has a place of the run at work; 0 if none has. Places ascend from call to call."""
        cdef const Zone *zone
        if self.open_start <= place:
            return self._zone_of_open()
        while self.place_zone < self.zones.count and place < self.cut_start:
            zone = <const Zone *> self.zones.at(self.place_zone)
            if zone.end == NULL or zone.start > self.text + place:
                break
            if zone.end > self.text + place:
                return self.place_zone
            self.place_zone += 1
        return 0

    cdef int _enter(self, uint32_t *head, size_t place, uint32_t zone, Side side, size_t first,
                    size_t last) except -1 nogil:
        """Enter an anchor with windows first to last into a list; where that is full, into lists of longer runs.

        Where all of its windows are equal to earlier ones, it is not entered: those are in the lists.
        """
        cdef uint32_t at = head[0]
        cdef size_t count = 0, i, low = 0, high = 0
        cdef Side halves[2]
        self._worked(self.window)
        first = self._new_from(begin_from(self.text, first, last + 1), last + 1)
        if first > last:
            return 0
        while at and count < self.limit:
            at = (<const Entry *> self.entries.at(at)).following
            count += 1
        if count < self.limit or not _halve(side, halves):
            return self._push(head, self.text + place, zone)
        for i in range(2):
            if _within(place, halves[i], first, last, &low, &high):
                self._enter(self.longer.enter(self.finder.key(place, halves[i])), place, zone, halves[i],
                            low, high)
        return 0

    cdef int _push(self, uint32_t *head, const uint8_t *place, uint32_t zone) except -1 nogil:
        """Put an entry before those of a list."""
        cdef size_t number = self.entries.add()
        cdef Entry *entry = <Entry *> self.entries.at(number)
        entry.place, entry.zone, entry.following = place, zone, head[0]
        head[0] = <uint32_t> number
        return 0

    cdef int _add_row(self, int64_t start, int64_t end, int64_t kept, int64_t kept_start) except -1 nogil:
        """Add a passage of the run at work; in place of the last one where it covers that, with the one before."""
        if self.num_rows >= self.first_row + 2 and start <= self.rows[self.num_rows - 2].end:
            self.num_rows -= 1
        if self.num_rows == self.max_rows:
            self.max_rows = 2 * self.max_rows + 64
            self.rows = <Row *> resize(self.rows, self.max_rows, sizeof(Row))
        self.rows[self.num_rows] = Row(self.run.document, start, end, kept, kept_start)
        self.num_rows += 1
        return 0


cdef bint _halve(Side side, Side *halves) noexcept nogil:
    """Divide the windows of a side; return whether there is more than one."""
    cdef size_t middle = (side.low + side.high) // 2
    halves[0], halves[1] = Side(middle + 1, side.high), Side(side.low, middle)
    return side.low < side.high


cdef bint _within(size_t place, Side side, size_t first, size_t last, size_t *low, size_t *high) noexcept nogil:
    """Set the first and the last window of a side, of windows first to last; return whether there is any."""
    if place < side.low:
        return False
    low[0] = max(first, place - side.high if place > side.high else 0)
    high[0] = min(last, place - side.low)
    return low[0] <= high[0]
