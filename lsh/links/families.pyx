# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Many documents that are kept and share their buckets with others, such as the texts of one template: families.

A document is compared with all of a family at once; most are told apart in a nanosecond each, or many together.
Documents are numbers from 0 here, as in `comparing`.
"""

cimport cython
from libc.math cimport ceil, fmax, log2
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memcpy, memmove, memset

from lsh cimport _kernels as c
from lsh.links.comparing cimport Similarity
from lsh.base.memory cimport resize
from lsh.text.sets cimport least_shared

cdef enum:
    SAMPLE = 512  # documents in which common shingles are looked for
    MOST_SAMPLED = 1 << 21  # different shingles of these
    COMMON = 32  # a shingle of more than this part, 1 / COMMON, of them is common
    MOST_COMMON = 1 << 13  # common shingles
    MOST_SEEN = 1 << 28  # of two bits each
    TOKEN_WORK = 4  # bytes of work that a shingle of a family counts for
    LOW_BITS_WORK = 16  # likewise, a comparison of low bits
    DENSE = 8  # a family is dense if one of so many, 1 / DENSE, passes the filter, and they are MIN_DENSE or more
    MIN_DENSE = 32
    DENSE_AGAIN = 64  # documents between two looks at this
    LOOKED_AT = 1 << 12  # of a dense family, the latest documents
    LONG_LIST = 16  # documents; longer lists may be left out
    LIST_STEP = 2  # times the work for a document of a block

cdef uint64_t SPREAD = 0x9E3779B97F4A7C15  # 2**64 / golden ratio
cdef double UNKNOWN_SIZE = -1e18  # of a text whose shingles are not all in memory: it may be similar to any other one


cdef inline size_t _home(const TokenTable *table, uint64_t token) noexcept nogil:
    """The slot at which the search for a shingle begins."""
    return <size_t> (token * SPREAD >> 20) & table.mask


cdef size_t _slot(const TokenTable *table, uint64_t token) noexcept nogil:
    """The slot of a shingle, or the free one where it belongs."""
    cdef size_t at = _home(table, token)
    while table.slots[at].value and table.slots[at].token != token:
        at = (at + 1) & table.mask
    return at


cdef int _resize_table(TokenTable *table, size_t count) except -1 nogil:
    """Make room for `count` shingles, so that half of the slots are free."""
    cdef TokenTable old = table[0]
    cdef size_t slots = 1 << 10, i
    while slots < 2 * count:
        slots *= 2
    if old.slots != NULL and slots <= old.mask + 1:
        return 0
    table.slots = <Token *> resize(NULL, slots, sizeof(Token))
    table.mask = slots - 1
    memset(table.slots, 0, slots * sizeof(Token))
    for i in range(old.mask + 1 if old.slots != NULL else 0):
        if old.slots[i].value:
            table.slots[_slot(table, old.slots[i].token)] = old.slots[i]
    free(old.slots)
    return 0


cdef int _by_count(const void *a, const void *b) noexcept nogil:
    cdef const Token *first = <const Token *> a
    cdef const Token *second = <const Token *> b
    if first.value != second.value:
        return -1 if first.value > second.value else 1
    return (first.token > second.token) - (first.token < second.token)


cdef int _by_length(const void *a, const void *b) noexcept nogil:
    cdef uint32_t first = (<const List *> a).count, second = (<const List *> b).count
    return (first < second) - (first > second)


@cython.final
cdef class Family:
    """Documents that are kept, with which many others are compared, such as the texts of one template.

    Low bits of the sketches of those that are kept lie side by side, so that a document is compared with all in little
    time. Where most of them pass, as those of one template that is nearly as long as the texts, their shingles are
    mostly common to many. The common ones are bits, so that an AND and a count of bits tell how many of them two
    documents share. The others are rare: the documents that have one are listed. Both together are how many shingles
    two documents share, or a little more, as hashes tell them apart. Two documents without a common rare shingle share
    no more than the common ones of either, which is mostly too few for their sizes: those that are listed with no rare
    shingle of a document are passed over by blocks of about the same size.

    Parameters
    ----------
    similarity : Similarity
        Of the documents, by sets.
    first, stop : int
        The documents that are kept or compared here lie between.
    bits : int
        The low bits of each component that are compared, 1 to 8.
    most_bytes : int
        Of memory; the caller drops it where `num_bytes` is more.
    """

    def __cinit__(self, Similarity similarity not None, Py_ssize_t first, Py_ssize_t stop, size_t bits,
                  size_t most_bytes):
        self.similarity, self.first, self.stop, self.most_bytes = similarity, first, stop, most_bytes
        self.loaded, self.bits, self.low_words = -1, bits, (similarity.k + 63) // 64

    def __dealloc__(self):
        free(self.common.slots)
        free(self.rare.slots)
        free(self.seen)
        free(self.bitmaps)
        free(self.low_bits)
        free(self.kept)
        free(self.blocks)
        free(self.postings)
        free(self.bitmap)
        free(self.tokens)
        free(self.lists)
        free(self.begun)

    cdef size_t num_bytes(self) noexcept nogil:
        """The memory that it takes."""
        return ((self.seen_mask + 1) // 4 + (self.common.mask + self.rare.mask + 2) * sizeof(Token)
                + self.room_kept * (sizeof(Kept) + sizeof(Block) // BLOCK + sizeof(int32_t)
                                    + (self.words + self.low_words * self.bits) * sizeof(uint64_t))
                + self.room_postings * sizeof(Posting))

    cdef const uint64_t *_tokens_of(self, Py_ssize_t document, size_t *count) except? NULL nogil:
        """The hashes of the shingles of a document; NULL if they are not all in memory."""
        cdef Py_ssize_t text = self.similarity.texts[document]
        count[0] = 0
        if text < 0:
            return NULL
        self.similarity.sets.choose(text)
        if self.similarity.sets.chosen_work.whole != text:
            return NULL
        count[0] = self.similarity.sets.chosen_work.set.count
        self.similarity._worked(TOKEN_WORK * count[0])
        return self.similarity.sets.chosen_work.set.tokens

    cdef int _sample(self, Py_ssize_t first, Py_ssize_t stop) except -1 nogil:
        """Find the shingles that are common, by some of the documents, and give each a bit."""
        cdef TokenTable counts
        cdef const uint64_t *tokens
        cdef Py_ssize_t step = (stop - first) // SAMPLE + 1, document = first, sampled = 0
        cdef size_t i, count, at, found = 0
        memset(&counts, 0, sizeof(counts))
        _resize_table(&counts, 0)
        try:
            while document < stop:
                tokens = self._tokens_of(document, &count)
                if counts.used + count > MOST_SAMPLED:
                    break
                _resize_table(&counts, counts.used + count)
                for i in range(count):
                    at = _slot(&counts, tokens[i])
                    counts.used += counts.slots[at].value == 0
                    counts.slots[at] = Token(tokens[i], counts.slots[at].value + 1, 0)
                sampled += 1
                document += step
            for i in range(counts.mask + 1):
                if counts.slots[i].value > max(sampled // COMMON, <Py_ssize_t> 1):
                    counts.slots[found] = counts.slots[i]
                    found += 1
            qsort(counts.slots, found, sizeof(Token), _by_count)
            found = min(found, <size_t> MOST_COMMON)
            self.words = max((found + 63) // 64, <size_t> 1)
            _resize_table(&self.common, found)
            for i in range(found):
                self.common.slots[_slot(&self.common, counts.slots[i].token)] = Token(counts.slots[i].token,
                                                                                      <uint32_t> i + 1, 0)
        finally:
            free(counts.slots)
        return 0

    cdef int _see(self, Py_ssize_t first, Py_ssize_t stop, size_t most_bytes) except -1 nogil:
        """Find the rare shingles that only one document has, which need not be listed; some are taken for others."""
        cdef const uint64_t *tokens
        cdef size_t i, count, total = 0, at
        cdef Py_ssize_t document
        cdef uint64_t bit
        for document in range(first, stop):
            if self.similarity.texts[document] >= 0:
                total += self.similarity.sets.batch.lengths[self.similarity.texts[document]]
        self.seen_mask = (1 << 10) - 1
        while self.seen_mask < 4 * total and self.seen_mask < MOST_SEEN and 2 * self.seen_mask < most_bytes:
            self.seen_mask = 2 * self.seen_mask + 1
        self.seen = <uint64_t *> resize(NULL, (self.seen_mask + 1) // 32, sizeof(uint64_t))
        memset(self.seen, 0, (self.seen_mask + 1) // 4)
        for document in range(first, stop):
            tokens = self._tokens_of(document, &count)
            for i in range(count):
                if self.common.slots[_slot(&self.common, tokens[i])].value == 0:
                    at = <size_t> (tokens[i] * SPREAD >> 16) & self.seen_mask
                    bit = <uint64_t> 1 << 2 * (at % 32)
                    self.seen[at // 32] |= bit if not self.seen[at // 32] & bit else 2 * bit
        return 0

    cdef int _load(self, int32_t document) except -1 nogil:
        """Make the bitmap of a document, and list its rare shingles."""
        cdef const uint64_t *tokens
        cdef size_t i, count, at
        cdef uint32_t bit
        if self.loaded == document:
            return 0
        self.loaded = -1
        tokens = self._tokens_of(document, &count)
        if count >= self.room_tokens:
            self.tokens = <uint64_t *> resize(self.tokens, count + 1, sizeof(uint64_t))
            self.lists = <List *> resize(self.lists, count + 1, sizeof(List))
            self.begun = <uint32_t *> resize(self.begun, count + 2, sizeof(uint32_t))
            self.room_tokens = count + 1
        memset(self.bitmap, 0, self.words * sizeof(uint64_t))
        self.num_tokens = self.num_common = self.zeros = 0
        self.size = UNKNOWN_SIZE
        if tokens != NULL:
            self.size = <double> count
            at = self.similarity.sets.chosen_work.set.zero
            while at:
                at &= at - 1
                self.zeros += 1
                self.size += 1.0
        for i in range(count):
            bit = self.common.slots[_slot(&self.common, tokens[i])].value
            if bit and not self.bitmap[(bit - 1) // 64] >> (bit - 1) % 64 & 1:
                self.bitmap[(bit - 1) // 64] |= <uint64_t> 1 << (bit - 1) % 64
                self.num_common += 1
                continue
            at = <size_t> (tokens[i] * SPREAD >> 16) & self.seen_mask
            if bit or self.seen[at // 32] >> 2 * (at % 32) & 2:  # or it has a common hash for the second time
                self.tokens[self.num_tokens] = tokens[i]
                self.num_tokens += 1
        self.loaded = document
        return 0

    cdef void _pack(self, int32_t document) noexcept nogil:
        """Put the low bits of a document behind those of the documents that are kept."""
        self.similarity.kernels.pack_low_bits(self.similarity._row(document), self.similarity.k, self.bits,
                                              self.low_bits + self.num_kept * self.low_words * self.bits)

    cdef int add(self, int32_t document) except -1 nogil:
        """Keep a document, so that others are compared with it."""
        if self.num_kept + 1 >= self.room_kept:
            self.room_kept = 2 * self.room_kept + 256
            self.kept = <Kept *> resize(self.kept, self.room_kept, sizeof(Kept))
            self.blocks = <Block *> resize(self.blocks, self.room_kept // BLOCK + SIZES + 1, sizeof(Block))
            self.low_bits = <uint64_t *> resize(self.low_bits, self.room_kept * self.low_words * self.bits,
                                                sizeof(uint64_t))
        self._pack(document)
        self.kept[self.num_kept] = Kept(document, 0, 0.0, 0)
        self.num_kept += 1
        return self._map_all() if self.is_dense else 0  # mostly its shingles are here, as it was compared by them

    cdef Py_ssize_t most_similar(self, int32_t document, double min_similarity, int32_t *found) except -1 nogil:
        """Find those that may be as similar to a document as `min_similarity`, or more; returns how many they are.

        `is_dense` tells afterwards whether they were found by shingles; if not, they passed the filter.
        """
        cdef Py_ssize_t count = 0
        cdef size_t first = 0
        self.asked += 1
        if self.is_dense and self.asked % DENSE_AGAIN == 0:
            first = self.num_kept - min(self.num_kept, <size_t> LOOKED_AT)
            self._look(self._passing(document, first, found), first)
        if not self.is_dense:
            count = self._passing(document, 0, found)
            self._look(count, 0)
        return self._by_shingles(document, min_similarity, found) if self.is_dense else count

    cdef void _look(self, Py_ssize_t passed, size_t first) noexcept nogil:
        """Note whether the family is dense, by how many from `first` on passed the filter."""
        self.is_dense = <size_t> passed * DENSE >= self.num_kept - first and passed >= MIN_DENSE

    cdef Py_ssize_t _passing(self, int32_t document, size_t first, int32_t *found) except -1 nogil:
        """Find those from `first` on that get past the filter."""
        cdef size_t i = first, size = self.low_words * self.bits
        cdef Py_ssize_t count = 0
        cdef size_t max_different = self.similarity.k - min(self.similarity.min_equal, self.similarity.k)
        self._pack(document)
        while i < self.num_kept:
            i += self.similarity.kernels.find_similar(self.low_bits + self.num_kept * size, self.low_bits + i * size,
                                                      self.low_words, self.bits, max_different, self.num_kept - i)
            if i < self.num_kept:
                found[count] = self.kept[i].document
                count += self.similarity.passes(document, found[count])
                i += 1
        self.similarity._worked((self.num_kept - first) * LOW_BITS_WORK)
        return count

    cdef int _map(self, int32_t document, size_t i) except -1 nogil:
        """Make the bitmap of a document that is kept, and list it at its rare shingles."""
        cdef size_t at, room, k
        self._load(document)
        if self.num_postings + self.num_tokens > self.room_postings:
            room = 2 * (self.num_postings + self.num_tokens)
            self.postings = <Posting *> resize(self.postings, room, sizeof(Posting))
            self.room_postings = room
        _resize_table(&self.rare, self.rare.used + self.num_tokens)
        for k in range(self.num_tokens):
            at = _slot(&self.rare, self.tokens[k])
            self.rare.used += self.rare.slots[at].value == 0
            self.postings[self.num_postings] = Posting(<uint32_t> i, self.rare.slots[at].value)
            self.num_postings += 1
            self.rare.slots[at] = Token(self.tokens[k], <uint32_t> self.num_postings, self.rare.slots[at].count + 1)
        memcpy(self.bitmaps + i * self.words, self.bitmap, self.words * sizeof(uint64_t))
        self.kept[i].size, self.kept[i].common = self.size, self.num_common
        self._put_into_block(<uint32_t> i)
        return 0

    cdef void _put_into_block(self, uint32_t i) noexcept nogil:
        """Put a document that is kept into the last block of its size."""
        cdef uint32_t *last = &self.last_blocks[min(<size_t> (4.0 * log2(fmax(self.size, 1.0))), <size_t> SIZES - 1)]
        cdef Block *block
        if last[0] == 0 or self.blocks[last[0] - 1].count == BLOCK:
            self.num_blocks += 1
            last[0] = <uint32_t> self.num_blocks
            self.blocks[last[0] - 1].min_size = self.size
            self.blocks[last[0] - 1].max_common = self.blocks[last[0] - 1].count = 0
        block = self.blocks + last[0] - 1
        block.members[block.count] = i
        block.count += 1
        block.min_size, block.max_common = min(block.min_size, self.size), max(block.max_common, self.num_common)

    cdef int _map_all(self) except -1 nogil:
        """Make the bitmaps of all that are kept and have none."""
        if self.words == 0:
            self._sample(self.first, self.stop)
            self._see(self.first, self.stop, self.most_bytes)
            self.bitmap = <uint64_t *> resize(NULL, self.words, sizeof(uint64_t))
            _resize_table(&self.rare, 0)
        if self.room_mapped < self.room_kept:
            self.bitmaps = <uint64_t *> resize(self.bitmaps, self.room_kept * self.words, sizeof(uint64_t))
            self.room_mapped = self.room_kept
        while self.num_mapped < self.num_kept:
            self._map(self.kept[self.num_mapped].document, self.num_mapped)
            self.num_mapped += 1
        return 0

    cdef double _lacking(self, double size, size_t common, double share) noexcept nogil:
        """How many rare shingles the loaded document and one of these shingles have to share for that part of all."""
        return share * (self.size + size) - <double> (min(self.num_common, common) + self.zeros) - 1.0

    cdef bint _has_enough(self, const Kept *one, size_t more, double share, double min_similarity) noexcept nogil:
        """Whether the loaded document and another one may be so similar, by their bits; `share` is that of `_lacking`.
        """
        cdef double lacking = self._lacking(one.size, one.common, share)
        cdef size_t common
        if <double> (one.rare + more) < lacking:
            return False
        common = self.similarity.kernels.count_common(self.bitmap, self.bitmaps + (one - self.kept) * self.words,
                                                      self.words)
        if <double> (one.rare + more) < self._lacking(one.size, common, share):
            return False
        if self.size < 0.0 or one.size < 0.0:
            return True
        return one.rare + more + common + self.zeros >= least_shared(min_similarity, <size_t> self.size,
                                                                     <size_t> one.size)

    cdef size_t _find_lists(self, size_t *num_long) noexcept nogil:
        """Find the lists of the rare shingles of the loaded document, the long ones first; returns how many there are.
        """
        cdef size_t i, count = 0
        cdef const Token *slot
        num_long[0] = 0
        for i in range(self.num_tokens):  # what is read next waits for memory, so all of it is asked for first
            c.lsh_prefetch(&self.rare.slots[_home(&self.rare, self.tokens[i])])
        for i in range(self.num_tokens):
            slot = &self.rare.slots[_slot(&self.rare, self.tokens[i])]
            if slot.value:
                c.lsh_prefetch(&self.postings[slot.value - 1])
                self.lists[count] = List(slot.value, slot.count)
                if slot.count > LONG_LIST:
                    self.lists[count], self.lists[num_long[0]] = self.lists[num_long[0]], self.lists[count]
                    num_long[0] += 1
                count += 1
        qsort(self.lists, num_long[0], sizeof(List), _by_length)
        return count

    cdef size_t _num_left_out(self, size_t num_long, double share) noexcept nogil:
        """How many of the longest lists need not be read, as documents that share no other shingle have too few then.

        Some blocks have a document that may share enough all the same. They are looked at, so that more lists are left
        out where that takes longer.
        """
        cdef size_t i, best = 0
        cdef double lacking, work = 0.0, least = 0.0
        memset(self.begun, 0, (num_long + 1) * sizeof(uint32_t))
        for i in range(self.num_blocks):
            lacking = self._lacking(self.blocks[i].min_size, self.blocks[i].max_common, share)
            if lacking <= <double> num_long:
                self.begun[<size_t> ceil(fmax(lacking, 0.0))] += 1
        for i in range(1, num_long + 1):
            work += <double> BLOCK * self.begun[i] - LIST_STEP * <double> self.lists[i - 1].count
            if work < least:
                best, least = i, work
        return best

    cdef Py_ssize_t _by_shingles(self, int32_t document, double min_similarity, int32_t *found) except -1 nogil:
        """The same, by bounds for the shingles that they share."""
        cdef size_t i, k, lists, num_long, going_on, left_out, listed = 0, asked = 0, touched = 0, total
        cdef Posting posting
        cdef Py_ssize_t count = 0
        cdef double share = min_similarity / (1.0 + min_similarity)  # of the shingles of both, which both have then
        cdef Kept *one
        self._map_all()
        self._load(document)
        lists = self._find_lists(&num_long)
        left_out = self._num_left_out(num_long, share)
        lists -= left_out
        memmove(self.lists, self.lists + left_out, lists * sizeof(List))
        while lists:
            listed += lists
            going_on = 0
            for i in range(lists):
                posting = self.postings[self.lists[i].head - 1]
                one = self.kept + posting.kept
                if one.rare == 0:
                    found[touched] = <int32_t> posting.kept
                    touched += 1
                one.rare += 1
                if posting.following:
                    self.lists[going_on].head = posting.following
                    c.lsh_prefetch(&self.postings[posting.following - 1])
                    going_on += 1
            lists = going_on
        total = touched
        for i in range(self.num_blocks):
            if self._lacking(self.blocks[i].min_size, self.blocks[i].max_common, share) <= <double> left_out:
                asked += BLOCK
                for k in range(self.blocks[i].count):
                    one = self.kept + self.blocks[i].members[k]
                    if one.rare == 0 and self._has_enough(one, left_out, share, min_similarity):
                        found[total] = one.document
                        total += 1
        for i in range(touched):
            one = self.kept + found[i]
            found[count] = one.document
            count += self._has_enough(one, left_out, share, min_similarity)
            one.rare = 0
        memmove(found + count, found + touched, (total - touched) * sizeof(int32_t))
        self.similarity._worked(8 * ((asked + touched) * self.words + listed + self.num_blocks))
        return count + total - touched
