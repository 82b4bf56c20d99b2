# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Walks over the shingles of texts that are normalised here, and tables of different shingles."""

from cython cimport final
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memmove, memset

from lsh cimport _kernels as c
from lsh._minhash cimport need_character_table, normalise, normalise_ascii, reserve_words, unit_starts
from lsh.base.memory cimport resize

cdef enum:
    SCANNED = c.LSH_SCANNED  # shingles at work at once

cdef uint32_t _NOTHING = 0xFFFFFFFF
cdef size_t _MAX = <size_t> -1


@final
cdef class Walk:
    """Normalises texts, one after another, and walks over their shingles of `n` units.

    Parameters
    ----------
    unit, n, flags : int
        The shingles, as the compiled modules have them.
    is_regular : bool
        Whether the flags say all of the normalisation.
    apply : callable
        Normalises the bytes of a text by Python.
    """

    def __cinit__(self, int unit, size_t n, int flags, bint is_regular, apply not None):
        self.unit, self.is_regular, self.apply = <c.lsh_unit> unit, is_regular, apply
        self.flags = flags | (c.LSH_JOIN if unit == c.LSH_WORD else 0)
        self.shingles.n, self.shingles.gap = n, unit == c.LSH_WORD
        if self.flags:
            need_character_table(False)

    def __dealloc__(self):
        free(self.words.bytes)
        free(self.starts)

    cdef int read(self, const uint8_t *text, size_t length) except -1 nogil:
        """Begin a walk over a text, which must stay in memory."""
        cdef bint is_asked = self.flags or not self.is_regular or self.unit == c.LSH_CHAR
        cdef bint is_ascii = is_asked and c.lsh_is_ascii(text, length)
        cdef size_t written = _MAX
        self.source, self.length, self.by_python = text, length, False
        if self.flags and not is_ascii:
            need_character_table(True)
        if length and (self.flags or not (self.is_regular or is_ascii)):
            reserve_words(&self.words, length + length // 2 + 4)
            if is_ascii:  # no normal form changes it
                written = normalise_ascii(text, length, self.flags, self.words.bytes)
            elif self.is_regular:
                written = normalise(text, length, self.flags, self.words.bytes, NULL, 0)
            if written == _MAX:
                with gil:
                    written = self._normalise(text, length)
            text, length = self.words.bytes, written
        self.begin(text, length, is_ascii)
        return 0

    cdef size_t _normalise(self, const uint8_t *text, size_t length) except? 0:
        """Normalise a text by Python; return its length."""
        cdef bytes changed = self.apply(text[:length])
        self.by_python = True
        length = len(changed)
        reserve_words(&self.words, length + 4)
        if self.unit == c.LSH_WORD:
            return normalise(<const uint8_t *> <const char *> changed, length, c.LSH_JOIN, self.words.bytes, NULL, 0)
        memcpy(self.words.bytes, <const char *> changed, length)
        return length

    cdef void begin(self, const uint8_t *text, size_t length, bint is_ascii) noexcept nogil:
        """Begin a walk over a text that is normalised."""
        self.text = self.shingles.text = text
        self.text_length, self.is_ascii = length, is_ascii
        self.held = self.at = self.first = self.shingles.count = 0

    cdef size_t more(self) except? 0 nogil:
        """Go on to the next shingles, SCANNED or fewer; return how many: 0 at the end."""
        cdef c.lsh_shingles *shingles = &self.shingles
        cdef size_t room = min(shingles.n, self.text_length) + SCANNED
        self.first += shingles.count
        if self.unit == c.LSH_BYTE or (self.unit == c.LSH_CHAR and self.is_ascii):
            shingles.text, shingles.length = self.text + self.first, self.text_length - self.first
            shingles.starts, shingles.count = NULL, 0
            if self.text_length >= shingles.n and self.first <= self.text_length - shingles.n:
                shingles.count = min(self.text_length - shingles.n + 1 - self.first, <size_t> SCANNED)
            return shingles.count
        if self.capacity < room:
            self.starts = <size_t *> resize(self.starts, room + 1, sizeof(size_t))
            self.capacity = room
        self.held -= shingles.count
        memmove(self.starts, self.starts + shingles.count, self.held * sizeof(size_t))
        room = room - 1 - self.held  # so that at most SCANNED shingles are complete
        self.held += unit_starts(self.text, self.text_length, self.unit, &self.at, self.starts + self.held, room)
        self.starts[self.held] = self.at if self.at < self.text_length else self.text_length + shingles.gap
        shingles.starts, shingles.count = self.starts, self.held - shingles.n + 1 if self.held >= shingles.n else 0
        return shingles.count

    cdef const uint8_t *shingle(self, size_t i, size_t *length) noexcept nogil:
        """Where shingle number i of those at work begins; sets its length."""
        cdef const c.lsh_shingles *shingles = &self.shingles
        if shingles.starts == NULL:
            length[0] = shingles.n
            return shingles.text + i
        length[0] = shingles.starts[i + shingles.n] - shingles.gap - shingles.starts[i]
        return shingles.text + shingles.starts[i]

    cdef int originals(self, size_t *places, size_t count) except -1 nogil:
        """Replace places in the normalised text, which ascend, by those of the characters that wrote them."""
        if self.text == self.words.bytes:
            normalise(self.source, self.length, self.flags, self.words.bytes, places, count)
        return 0

    cdef size_t begin_of(self, size_t place) noexcept nogil:
        """Where the character of the original text begins that has the byte at a place."""
        cdef size_t back, length
        cdef uint32_t ignored
        for back in range(min(place + 1, <size_t> 4)):
            if self.source[place - back] & 0xC0 != 0x80:  # no character has such a byte but as its first
                length = c.decode_utf8(self.source + place - back, self.length - place + back, &ignored)
                return place - back if length > back else place
        return place

    cdef size_t end_of(self, size_t place) noexcept nogil:
        """Where the character of the original text ends that begins at a place."""
        cdef uint32_t ignored
        return place + c.decode_utf8(self.source + place, self.length - place, &ignored)


@final
cdef class ShingleTable:
    """Different shingles: a table by their hash, whose bytes must stay in memory."""

    def __dealloc__(self):
        free(self.known)
        free(self.slots)

    cdef int begin(self, size_t most) except -1 nogil:
        """Forget all, and make room for `most` of them."""
        cdef size_t slots = 1
        while slots <= 2 * most:
            slots *= 2
        if most > self.capacity or self.slots == NULL:
            self.known = <Known *> resize(self.known, most, sizeof(Known))
            self.slots = <uint32_t *> resize(self.slots, slots, sizeof(uint32_t))
            self.capacity = most
        self.count, self.num_slots = 0, slots
        memset(self.slots, 0xFF, slots * sizeof(uint32_t))
        return 0

    cdef size_t _slot(self, uint64_t hash, const uint8_t *bytes, size_t length) noexcept nogil:
        """The slot of a shingle, or the free one where it belongs."""
        cdef size_t at = hash >> 16 & (self.num_slots - 1)
        cdef const Known *known
        while self.slots[at] != _NOTHING:
            known = &self.known[self.slots[at]]
            if known.hash == hash and known.length == length and memcmp(known.bytes, bytes, length) == 0:
                break
            at = at + 1 & (self.num_slots - 1)
        return at

    cdef Known *find(self, uint64_t hash, const uint8_t *bytes, size_t length) noexcept nogil:
        """The record of a shingle; NULL if there is none."""
        cdef size_t at = self._slot(hash, bytes, length)
        return NULL if self.slots[at] == _NOTHING else &self.known[self.slots[at]]

    cdef Known *enter(self, uint64_t hash, const uint8_t *bytes, size_t length, bint *is_new) noexcept nogil:
        """The record of a shingle, which is entered if it is new."""
        cdef size_t at = self._slot(hash, bytes, length)
        is_new[0] = self.slots[at] == _NOTHING
        if is_new[0]:
            self.slots[at] = self.count
            self.known[self.count] = Known(hash, bytes, length, True, _NOTHING)
            self.count += 1
        return &self.known[self.slots[at]]
