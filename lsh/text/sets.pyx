# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""The exact Jaccard similarity of texts: sets of their shingles, made on demand, in bounded memory.

Threads that compare the same texts share a cache of sizes, sets and bitmaps. They read it without a lock. One thread at
a time adds an entry; if another thread is adding one, the entry is not added. The memory of a removed entry is used
again when no thread can still read it: each thread stores the time (the number of removals so far) when it begins with
another text, and reads only entries that existed at that time. This is epoch-based reclamation: Fraser, Practical
lock-freedom, 2004, section 5.2.3.

The shingles of a text whose set is larger than `max_shingles` are divided into parts by the top bits of their hashes,
as in a radix sort (counted, then written side by side), and the parts of two texts are compared one by one: the table
of a part stays in the cache, so the time grows in proportion to the texts.
"""

from cython cimport final
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport UINT32_MAX, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from lsh cimport _kernels as c
from lsh.text.batch cimport Batch
from lsh.base.memory cimport acquire, resize
from lsh._minhash cimport (
    begin_shingles,
    check_signals,
    chosen_kernels,
    need_word_table,
    next_shingles,
    prepare_document,
    reserve_words,
)

import os
import threading

import numpy as np

cdef enum:
    TILE = 256  # shingles whose positions are found at a time: 4 KB, which fit into the first-level cache
    BUCKET = 64  # bytes: LSH_SET_LANES tokens, a cache line
    MAX_IN_BUCKET = 4  # tokens a bucket on average: then one in fifty overflows
    SPAN_WORK = 16  # bytes that take as long to read as it takes to find a shingle of any length
    BITMAP_ASKED = 2  # a set that is compared with so many others gets bitmaps
    SPANS_ASKED = 8  # comparisons before shingles are looked up without a set: the first texts mostly are similar
    BITS = 4  # a shingle at least in the bitmap of a set, and less than twice as many
    FILTER_COUNT = 2048  # tokens: a table of more is larger than the second-level cache, so a bitmap before it pays
    SMALL_SET = 65536  # initial capacity of the set of a long text, in shingles
    PIECE = 4194304  # bytes of a text that are read at once
    CHECKED = 33554432  # bytes of texts that are read between two checks for signals: a tenth of a second at most
    PART = 32768  # shingles of a part of a long text, whose table should stay in the second-level cache
    MIN_SPLIT = 1024
    MAX_SHINGLES = 1048576  # of a set in memory: 24 MB, as one with spans has half as many
    CACHE_UNIT = 16  # bytes
    REMOVED_AT_ONCE = 8  # this part of a cache, or more where an entry needs it
    LINE = 64  # bytes of a cache line
    EXPECTED = 5  # lines of a bitmap that are prefetched: the processor goes on from there by itself
    INDEXED = 128  # an index has 1/128 as many texts as shingles: 8,192, whose counters fit into the first cache
    POSTINGS = 2  # and twice as many postings, as most shingles are of one text
    INDEX_TEXT = 64  # and so many bytes of text for each, more than words take

MAX_CACHED = 1 << 25  # bytes of the caches
MAX_SPLIT = 1 << 28  # shingles, with repeats, of a long text that are divided at once: 2 GB, or 4 GB as spans

cdef size_t ABSENT = <size_t> -1

cdef const c.lsh_kernels *_kernels = chosen_kernels()


cdef c.lsh_set_secret _draw_secret(bytes drawn) except *:
    """The secret in `drawn`: the words of lsh_set_secret, of which the last is the mask of long hashes."""
    cdef c.lsh_set_secret secret
    if len(drawn) != sizeof(secret):
        raise ValueError(f"a secret has {sizeof(secret)} bytes, got {len(drawn)}")
    memcpy(&secret, PyBytes_AS_STRING(drawn), sizeof(secret))
    secret.odd[0] |= 1
    secret.odd[1] |= 1
    return secret


cdef c.lsh_set_secret _secret = _draw_secret(os.urandom(sizeof(c.lsh_set_secret) - 8) + b"\xff" * 8)  # of this process


cdef int _free_workspace(Workspace *work) except -1:
    free(work.words.bytes)
    free(work.memory)
    free(work.set.tokens)
    free(work.spans)
    free(work.entries)
    free(work.bits)
    free(work.split_counts)
    free(work.split_ends)
    free(work.split_tokens)
    free(work.split_spans)
    return 0


cdef int _reserve_set(Workspace *work, size_t shingles, bint spans, uint32_t part_bits) except -1 nogil:
    """Allocate a set and an empty table; only the tokens and spans of the old set remain."""
    cdef size_t buckets = 2
    while MAX_IN_BUCKET * buckets < shingles:
        buckets *= 2
    if buckets > work.buckets:
        free(work.memory)
        work.memory = NULL
        work.buckets = 0
        work.memory = resize(NULL, buckets * (BUCKET + 1) + BUCKET, 1)
        work.set.tokens = <uint64_t *> resize(work.set.tokens, buckets * MAX_IN_BUCKET, sizeof(uint64_t))
        work.buckets = buckets
    if spans and buckets > work.span_buckets:
        work.spans = <c.lsh_span *> resize(work.spans, buckets * MAX_IN_BUCKET, sizeof(c.lsh_span))
        work.entries = <uint32_t *> resize(work.entries, buckets * c.LSH_SET_LANES, sizeof(uint32_t))
        work.span_buckets = buckets
    work.set.spans = work.spans if spans else NULL
    work.set.capacity = buckets * MAX_IN_BUCKET
    work.table.lanes = <uint64_t *> ((<size_t> work.memory + BUCKET - 1) // BUCKET * BUCKET)
    work.table.filled = <uint8_t *> work.table.lanes + buckets * BUCKET
    work.table.entries = work.entries if spans else NULL
    work.table.buckets = (buckets - 1) * c.LSH_SET_LANES
    work.table.bits = NULL
    work.asked = work.num_bitmaps = 0
    work.table.part_bits = part_bits
    work.table.shift = 64 - part_bits
    memset(work.table.lanes, 0, buckets * (BUCKET + 1))
    buckets *= c.LSH_SET_LANES
    while buckets > 1:
        buckets //= 2
        work.table.shift -= 1
    return 0


cdef inline size_t _ones(uint32_t bits) noexcept nogil:
    cdef size_t ones = 0
    while bits:
        bits &= bits - 1
        ones += 1
    return ones


cdef size_t _size(const c.lsh_set *shingles) noexcept nogil:
    """Count the shingles of a set."""
    return shingles.count + _ones(shingles.zero)


cdef double _jaccard(size_t shared, size_t a, size_t b) noexcept nogil:
    return <double> shared / <double> (a + b - shared)


cdef size_t _least_shared(double least, size_t a, size_t b) noexcept nogil:
    """The fewest shared shingles that make sets of sizes a and b `least` similar; more than they have if none do.

    More shared shingles are never a smaller quotient, and rounding keeps that order, so the test of the caller turns at
    one point; the closed form is only where the search for it begins.
    """
    cdef size_t most = min(a, b), shared
    if not _jaccard(most, a, b) >= least:
        return most + 1
    if least <= 0.0:
        return 0
    shared = min(most, <size_t> (least / (1.0 + least) * <double> (a + b)))
    while shared > 0 and _jaccard(shared - 1, a, b) >= least:
        shared -= 1
    while not _jaccard(shared, a, b) >= least:
        shared += 1
    return shared


# ---- the set of one text, or of one part of it, in a workspace ----

cdef int _open(ShingleSets sets, Workspace *work, Py_ssize_t i) except -1 nogil:
    """Prepare text i for shingling."""
    if work.prepared == i:
        return 0
    work.prepared = work.whole = -1
    work.document = c.lsh_document(sets.batch.texts[i], sets.batch.lengths[i], sets.unit, sets.n)
    prepare_document(&work.document, sets.flags, True, &work.words)
    work.prepared = i
    return 0


cdef bint _fill(ShingleSets sets, Workspace *work, uint32_t part_bits, uint64_t part) except -1 nogil:
    """Make the set of one part of the text that is open, and its table; returns whether it is small enough."""
    cdef c.lsh_document *document = &work.document
    cdef bint spans = document.unit != c.LSH_BYTE or document.n > c.LSH_SET_KEY
    cdef size_t shingles = document.length  # at most
    work.whole = -1
    if part_bits:
        return _fill_part(sets, work, spans, part_bits, part)
    if document.unit == c.LSH_BYTE and document.n <= document.length:
        shingles = document.length - document.n + 1
    elif document.unit == c.LSH_WORD:
        shingles = document.length // 2 + 1
    _empty(work, max(min(shingles, <size_t> SMALL_SET, _most(sets, spans)), <size_t> c.LSH_SET_ROOM), spans, 0)
    if document.length == 0:
        return True
    return _fill_spans(sets, work) if spans else _fill_keys(sets, work)


cdef int _empty(Workspace *work, size_t shingles, bint spans, uint32_t part_bits) except -1 nogil:
    """Make an empty set of the text that is open."""
    _reserve_set(work, shingles, spans, part_bits)
    work.set.text = work.document.text
    work.set.count = work.set.zero = 0
    work.set.width = 0 if spans else min(work.document.n, work.document.length)
    return 0


cdef bint _fill_part(ShingleSets sets, Workspace *work, bint spans, uint32_t part_bits, uint64_t part) except -1 nogil:
    """Make the set of one part of the text that is open from its shingles, which are here part by part."""
    cdef size_t at, end, count
    if (work.split != work.prepared or work.split_bits != part_bits
            or not work.split_first <= part < work.split_stop):
        _split(sets, work, spans, part_bits, part)
    end = work.split_ends[part - work.split_first]
    at = end - work.split_counts[part]
    _empty(work, max(min(end - at, _most(sets, spans)), <size_t> c.LSH_SET_ROOM), spans, part_bits)
    if part == 0:
        work.set.zero = work.split_zero
    while at < end:
        count = min(end - at, <size_t> TILE)
        while work.set.capacity - work.set.count < count:
            if not _enlarge(sets, work):
                return False
        if spans:
            _kernels.set_add_spans(&work.set, &work.table, &sets.secret, part, work.split_spans + at, count)
        else:
            _kernels.set_add_tokens(&work.set, &work.table, work.split_tokens + at, count)
        _worked(sets, count * SPAN_WORK)
        at += count
    return True


cdef int _split(ShingleSets sets, Workspace *work, bint spans, uint32_t part_bits, uint64_t part) except -1 nogil:
    """Divide the shingles of the text that is open by parts of the hash space: of `part`, and of the next ones.

    They are counted first, so that each part has its place, as in a radix sort.
    """
    cdef uint64_t parts = <uint64_t> 1 << part_bits, stop
    cdef size_t total = 0
    if work.split != work.prepared or work.split_bits != part_bits:
        work.split = -1
        work.split_counts = <size_t *> resize(work.split_counts, parts, sizeof(size_t))
        work.split_ends = <size_t *> resize(work.split_ends, parts, sizeof(size_t))
        memset(work.split_counts, 0, parts * sizeof(size_t))
        work.split_zero = 0
        _pass(sets, work, spans, part_bits, 0, parts, work.split_counts, False)
        work.split, work.split_bits = work.prepared, part_bits
    work.split_first = work.split_stop = stop = part
    while stop < parts and (stop == part or total + work.split_counts[stop] <= sets.max_split):
        work.split_ends[stop - part] = total
        total += work.split_counts[stop]
        stop += 1
    if total > work.split_capacity[spans]:
        if spans:
            free(work.split_spans)
            work.split_spans = NULL
            work.split_capacity[True] = 0
            work.split_spans = <c.lsh_span *> resize(NULL, total, sizeof(c.lsh_span))
        else:
            free(work.split_tokens)
            work.split_tokens = NULL
            work.split_capacity[False] = 0
            work.split_tokens = <uint64_t *> resize(NULL, total, sizeof(uint64_t))
        work.split_capacity[spans] = total
    if total:
        _pass(sets, work, spans, part_bits, part, stop - part, work.split_ends, True)
    work.split_stop = stop
    return 0


cdef int _pass(ShingleSets sets, Workspace *work, bint spans, uint32_t part_bits, uint64_t first, uint64_t parts,
               size_t *at, bint store) except -1 nogil:
    """Count the shingles of the text that is open in each of some parts, and store them, if they are to be."""
    cdef c.lsh_document *document = &work.document
    cdef c.lsh_shingler walk
    cdef c.lsh_span tile[TILE]
    cdef size_t count, place = 0, width = min(document.n, document.length), shingles = document.length - width + 1
    if not spans:
        while place < shingles:
            count = min(shingles - place, <size_t> PIECE)
            if _kernels.set_split_keys(&sets.secret, width, document.text + place, count + width - 1, part_bits, first,
                                       parts, at, work.split_tokens if store else NULL):
                work.split_zero = <uint32_t> 1 << width
            place += count
            _worked(sets, count)
        return 0
    begin_shingles(&walk, document)
    work.places = 0
    while True:
        count = next_shingles(&walk, tile, TILE)
        if count == 0:
            return 0
        work.places += count
        _kernels.set_split_spans(&sets.secret, document.text, tile, count, part_bits, first, parts, at,
                                 work.split_spans if store else NULL)
        _worked(sets, count * (tile[0].length + SPAN_WORK))


cdef bint _fill_keys(ShingleSets sets, Workspace *work) except -1 nogil:
    cdef size_t at = 0, end, read, shingles = work.document.length - work.set.width + 1
    while True:
        end = min(shingles, at + PIECE)
        read = _kernels.set_add_keys(&work.set, &work.table, &sets.secret, 0, end + work.set.width - 1, at)
        _worked(sets, read - at)
        at = read
        if at == shingles:
            return True
        if at < end and not _enlarge(sets, work):
            return False


cdef bint _fill_spans(ShingleSets sets, Workspace *work) except -1 nogil:
    cdef c.lsh_shingler walk
    cdef c.lsh_span spans[TILE]
    cdef size_t count
    begin_shingles(&walk, &work.document)
    work.places = 0
    while True:
        count = next_shingles(&walk, spans, TILE)
        if count == 0:
            return True
        work.places += count
        while work.set.capacity - work.set.count < count:
            if not _enlarge(sets, work):
                return False
        _kernels.set_add_spans(&work.set, &work.table, &sets.secret, 0, spans, count)
        _worked(sets, count * (spans[0].length + SPAN_WORK))


cdef inline int _worked(ShingleSets sets, size_t read) except -1 nogil:
    """Count the bytes of texts that were read, and handle signals now and then."""
    sets.read += read
    if sets.read - sets.checked > CHECKED:
        sets.checked = sets.read
        check_signals()
    return 0


cdef size_t _most(ShingleSets sets, bint spans) noexcept nogil:
    """The shingles that a set may have in memory."""
    return sets.max_shingles // 2 if spans else sets.max_shingles


cdef bint _enlarge(ShingleSets sets, Workspace *work) except -1 nogil:
    """Double the capacity of a set and rebuild its table; returns False if it would be too large."""
    if 2 * work.set.capacity > _most(sets, work.set.spans != NULL):
        return False
    _reserve_set(work, 2 * work.set.capacity, work.set.spans != NULL, work.table.part_bits)
    _kernels.set_enter(&work.set, &work.table, 0)
    return True


cdef int _make(ShingleSets sets, Workspace *work, Py_ssize_t i) except -1 nogil:
    """Make the set of text i: whole, or else only count it, part by part.

    It enters the cache when it is made for the second time: many texts are compared once only, and copying their sets
    would cost a good part of the time that making them takes. Its bitmap enters the cache if the chosen text has one.
    """
    cdef Text *text = &sets.texts[i]
    cdef bint again = c.lsh_load_32(&text.known)
    cdef uint32_t part_bits = c.lsh_load_32(&text.part_bits)
    cdef uint64_t part
    cdef size_t size
    _open(sets, work, i)
    while True:
        size = 0
        for part in range(<uint64_t> 1 << part_bits):
            if not _fill(sets, work, part_bits, part):
                break
            size += _size(&work.set)
        else:
            break
        part_bits += 1
        while work.document.length >> part_bits > PART:
            part_bits += 1
    c.lsh_store_size(&text.size, size)
    c.lsh_store_size(&text.places, work.places)
    c.lsh_store_32(&text.part_bits, part_bits)
    c.lsh_store_32(&text.known, True)
    if part_bits == 0:
        work.whole = i
        if again:
            _keep_set(sets, work, i)
        if sets.chosen_work.num_bitmaps:
            _keep_bitmap(sets, work, i)
    return 0


cdef inline bint _is_whole(ShingleSets sets, Py_ssize_t i) noexcept nogil:
    """Whether no part of the set of a text is known to be too large for memory."""
    return c.lsh_load_32(&sets.texts[i].part_bits) == 0


# ---- bitmaps: an upper bound of the shared shingles, found in a fraction of the time ----

cdef uint32_t _bitmap_log(size_t size) noexcept nogil:
    """The logarithm of the words of the bitmap of a set."""
    cdef uint32_t log = 0
    while <size_t> 64 << log < BITS * size:
        log += 1
    return log


cdef int _make_bitmaps(Workspace *work) except -1 nogil:
    """Make the bitmaps of a whole set: of the usual size, of twice that, and of all smaller sizes.

    The two halves of a bitmap, united, are the bitmap of half the size.
    """
    cdef uint32_t last = _bitmap_log(work.set.count) + 1, log
    cdef size_t words = <size_t> 1 << last, i
    if 2 * words > work.bits_size:
        work.bits = <uint64_t *> resize(work.bits, 2 * words, sizeof(uint64_t))
        work.bits_size = 2 * words
    memset(work.bits + words, 0, words * sizeof(uint64_t))
    _kernels.set_mark(&work.set, work.bits + words, words)
    if work.set.count > FILTER_COUNT:
        work.table.bits, work.table.bits_mask = work.bits + words, 64 * words - 1
    work.num_bitmaps = last + 1
    for log in range(last + 1):
        words = <size_t> 1 << last - log
        if log:
            for i in range(words, 2 * words):
                work.bits[i] = work.bits[i + words] | work.bits[i + 2 * words]
        work.ones[last - log] = _kernels.count_common(work.bits + words, work.bits + words, words)
    return 0


cdef int _keep_bitmap(ShingleSets sets, Workspace *work, Py_ssize_t i) except -1 nogil:
    """Make the bitmap of text i, whose whole set is here, in the cache, if it fits."""
    cdef uint32_t log = _bitmap_log(work.set.count)
    cdef size_t words = <size_t> 1 << log, size = words * sizeof(uint64_t)
    cdef CachedBitmap *bitmap = <CachedBitmap *> _enter(sets, BITMAPS, i, sizeof(CachedBitmap) + size)
    cdef uint64_t *bits
    if bitmap != NULL:
        bits = <uint64_t *> (bitmap + 1)
        memset(bits, 0, size)
        _kernels.set_mark(&work.set, bits, words)
        bitmap.log, bitmap.ones = log, <uint32_t> _kernels.count_common(bits, bits, words)
        _publish(sets, BITMAPS, &bitmap.head)
    return 0


cdef size_t _most_by_bitmaps(ShingleSets sets, Py_ssize_t j, size_t a, size_t b) noexcept nogil:
    """An upper bound of the shingles that text j, which has b of them, shares with the chosen text, which has a.

    For each bit that is 1 in one bitmap only, that set has a shingle that the other set does not have.
    """
    cdef const Workspace *work = &sets.chosen_work
    cdef const CachedBitmap *other = <const CachedBitmap *> _cached(sets, BITMAPS, j)
    cdef size_t words, common
    if other == NULL or other.log >= work.num_bitmaps:
        return min(a, b)
    words = <size_t> 1 << other.log
    common = _kernels.count_common(work.bits + words, <const uint64_t *> (other + 1), words)
    return min(a + common - work.ones[other.log], b + common - other.ones)


# ---- the caches: rings of entries, of which the oldest are removed ----

cdef inline Cached *_cached(ShingleSets sets, int kind, Py_ssize_t i) noexcept nogil:
    """What is cached of text i, or NULL; to be read before the next text is chosen."""
    cdef size_t unit = c.lsh_load_32(&sets.texts[i].cached[kind])
    return <Cached *> (sets.cache.rings[kind].bytes + (unit - 1) * CACHE_UNIT) if unit else NULL


cdef Cached *_enter(ShingleSets sets, int kind, Py_ssize_t i, size_t size) noexcept nogil:
    """Return the memory of a new entry of `size` bytes for text i, for `_publish`.

    NULL if there is one, if it does not fit, or if another thread changes the caches at the moment.
    """
    cdef Ring *ring = &sets.cache.rings[kind]
    cdef Cached *entry = NULL
    size = (size + CACHE_UNIT - 1) // CACHE_UNIT * CACHE_UNIT
    if size > ring.size or c.lsh_load_32(&sets.texts[i].cached[kind]) or c.lsh_exchange_32(&sets.cache.busy, True):
        return NULL
    if ring.size - ring.newest_end % ring.size < size:  # go on from the beginning
        _add(sets, kind, -1, ring.size - ring.newest_end % ring.size)
    if ring.size - ring.newest_end % ring.size >= size:
        entry = _add(sets, kind, i, size)
    c.lsh_store_32(&sets.cache.busy, False)
    return entry


cdef Cached *_add(ShingleSets sets, int kind, Py_ssize_t i, size_t size) noexcept nogil:
    """Add an entry, for which there is room before the end of the ring; NULL if older ones there may still be read."""
    cdef Ring *ring = &sets.cache.rings[kind]
    cdef Cached *entry
    if ring.newest_end + size > ring.reusable + ring.size:
        if ring.newest_end + size > ring.oldest + ring.size:
            _remove(sets.cache, kind, ring.newest_end + size - ring.size)
        if _is_over(sets, ring.removed):
            ring.reusable = ring.oldest
        if ring.newest_end + size > ring.reusable + ring.size:
            return NULL
    entry = <Cached *> (ring.bytes + ring.newest_end % ring.size)
    entry.units, entry.text = <uint32_t> (size // CACHE_UNIT), i
    c.lsh_store_32(&entry.ready, i < 0)
    ring.newest_end += size
    return entry


cdef void _publish(ShingleSets sets, int kind, Cached *entry) noexcept nogil:
    """Let all threads read an entry, which is written."""
    cdef size_t place = <uint8_t *> entry - sets.cache.rings[kind].bytes
    c.lsh_store_32(&sets.texts[entry.text].cached[kind], <uint32_t> (place // CACHE_UNIT + 1))
    c.lsh_store_32(&entry.ready, True)


cdef void _remove(SetCache cache, int kind, uint64_t least) noexcept nogil:
    """Remove the oldest entries up to place `least` and some more, but none that is being written."""
    cdef Ring *ring = &cache.rings[kind]
    cdef uint64_t end = min(max(least, ring.oldest + ring.size // REMOVED_AT_ONCE), ring.newest_end)
    cdef Cached *entry
    cdef size_t place
    while ring.oldest < end:
        place = ring.oldest % ring.size
        entry = <Cached *> (ring.bytes + place)
        if not c.lsh_load_32(&entry.ready):
            break
        if entry.text >= 0:  # another thread may have published a later entry of the text
            c.lsh_replace_32(&cache.texts[entry.text].cached[kind], <uint32_t> (place // CACHE_UNIT + 1), 0)
        ring.oldest += <uint64_t> entry.units * CACHE_UNIT
    ring.removed = cache.time + 1
    c.lsh_store_size(&cache.time, ring.removed)
    c.lsh_fence()


cdef bint _is_over(ShingleSets sets, size_t removed) noexcept nogil:
    """Whether all other threads have chosen another text, or ended, after entries were removed."""
    cdef Reader *reader = sets.cache.readers
    while reader != NULL:
        if reader != sets.reader and c.lsh_load_size(&reader.since) < removed:
            return False
        reader = reader.next
    return True


cdef int _keep_set(ShingleSets sets, Workspace *work, Py_ssize_t i) except -1 nogil:
    """Copy the whole set of text i into the cache, if it fits."""
    cdef c.lsh_set *shingles = &work.set
    cdef bint own_text = shingles.spans != NULL and work.document.text == work.words.bytes
    cdef size_t tokens = shingles.count * sizeof(uint64_t)
    cdef size_t spans = shingles.count * sizeof(c.lsh_span) if shingles.spans != NULL else 0
    cdef size_t size = sizeof(CachedSet) + tokens + spans + (work.document.length if own_text else 0)
    cdef CachedSet *cached = <CachedSet *> _enter(sets, SETS, i, size)
    cdef uint8_t *at
    if cached == NULL:
        return 0
    at = <uint8_t *> (cached + 1)
    cached.set = shingles[0]
    cached.set.tokens = <uint64_t *> at
    memcpy(at, shingles.tokens, tokens)
    if spans:
        cached.set.spans = <c.lsh_span *> (at + tokens)
        memcpy(cached.set.spans, shingles.spans, spans)
    if own_text:
        cached.set.text = at + tokens + spans
        memcpy(at + tokens + spans, work.document.text, work.document.length)
    _publish(sets, SETS, &cached.head)
    return 0


cdef int _load(ShingleSets sets, Workspace *work, const CachedSet *cached) except -1 nogil:
    """Copy a set out of the cache, where it may be overwritten, and make its table."""
    cdef bint spans = cached.set.spans != NULL
    cdef size_t count = cached.set.count, size
    cdef const uint8_t *own_text = <const uint8_t *> cached + sizeof(CachedSet) + count * (
        sizeof(uint64_t) + (sizeof(c.lsh_span) if spans else 0))
    work.prepared = work.whole = -1
    _reserve_set(work, max(count, <size_t> c.LSH_SET_ROOM), spans, 0)
    work.set.text, work.set.count, work.set.zero = cached.set.text, count, cached.set.zero
    work.set.width = cached.set.width
    memcpy(work.set.tokens, cached.set.tokens, count * sizeof(uint64_t))
    if spans:
        memcpy(work.set.spans, cached.set.spans, count * sizeof(c.lsh_span))
        if cached.set.text == own_text:
            size = <size_t> cached.head.units * CACHE_UNIT - (own_text - <const uint8_t *> cached)
            reserve_words(&work.words, size)
            memcpy(work.words.bytes, own_text, size)
            work.set.text = work.words.bytes
    _kernels.set_enter(&work.set, &work.table, 0)
    work.whole = cached.head.text
    return 0


# ---- comparing ----

cdef const c.lsh_set *_whole(ShingleSets sets, Py_ssize_t j) except NULL nogil:
    """The set of a text that is not compared in parts."""
    cdef CachedSet *cached = <CachedSet *> _cached(sets, SETS, j)
    if cached != NULL:
        return &cached.set
    if sets.chosen_work.whole == j:
        return &sets.chosen_work.set
    if sets.other_work.whole != j:
        _make(sets, &sets.other_work, j)
    return &sets.other_work.set


cdef size_t _most_shared(ShingleSets sets, Py_ssize_t j, size_t needed) except? 0 nogil:
    """An upper bound of the shingles that text j shares with the chosen one, found without making its set.

    Making a set costs several times as much as looking up the shingles in another set.
    """
    cdef Workspace *work = &sets.other_work
    cdef const c.lsh_set *chosen = &sets.chosen_work.set
    cdef size_t at = 0, count, places, others, shared = 0
    if _cached(sets, SETS, j) != NULL or sets.chosen_work.whole == j or work.whole == j:
        return needed
    if chosen.spans != NULL and sets.chosen_work.asked < SPANS_ASKED:
        return needed
    _open(sets, work, j)
    if chosen.spans != NULL or work.document.unit != c.LSH_BYTE or work.document.n > c.LSH_SET_KEY:
        return _most_spans(sets, j, needed)
    if min(work.document.n, work.document.length) != chosen.width:
        return needed
    places = work.document.length - chosen.width + 1
    while at < places and shared + (places - at) >= needed:
        count = min(places - at, <size_t> PIECE)
        others = shared + (places - at - count)  # at most, besides those of this piece
        shared += _kernels.set_most_shared(chosen, &sets.chosen_work.table, &sets.secret, work.document.text + at,
                                           count + chosen.width - 1, needed - min(needed, others))
        at += count
        _worked(sets, count)
    return shared


cdef size_t _most_spans(ShingleSets sets, Py_ssize_t j, size_t needed) except? 0 nogil:
    """The same for shingles of any length, of the text that is open."""
    cdef Workspace *work = &sets.other_work
    cdef c.lsh_shingler walk
    cdef c.lsh_span spans[TILE]
    cdef size_t count, shared = 0, left = c.lsh_load_size(&sets.texts[j].places)
    if work.document.unit == c.LSH_BYTE:
        left = max(work.document.length, work.document.n) - work.document.n + 1
    begin_shingles(&walk, &work.document)
    while shared + left >= needed:
        count = next_shingles(&walk, spans, TILE)
        if count == 0:
            break
        shared += _kernels.set_most_spans(&sets.chosen_work.table, &sets.secret, work.document.text, spans, count)
        left -= min(left, count)
        _worked(sets, count * (spans[0].length + SPAN_WORK))
    return shared


cdef size_t _count_by_parts(ShingleSets sets, Py_ssize_t i, Py_ssize_t j, size_t needed) except? 0 nogil:
    """Count the shared shingles of two texts, at least one of which is too large to be in memory as a whole."""
    cdef uint32_t part_bits = max(c.lsh_load_32(&sets.texts[i].part_bits), c.lsh_load_32(&sets.texts[j].part_bits))
    cdef size_t shared = 0, left = c.lsh_load_size(&sets.texts[i].size)
    cdef uint64_t part
    cdef const c.lsh_set *other = NULL
    for part in range(<uint64_t> 1 << part_bits):
        if not _is_whole(sets, i):
            _open(sets, &sets.chosen_work, i)
            _fill(sets, &sets.chosen_work, part_bits, part)
            left -= _size(&sets.chosen_work.set)
        if i == j:
            other = &sets.chosen_work.set
        else:
            _open(sets, &sets.other_work, j)
            _fill(sets, &sets.other_work, part_bits, part)
            other = &sets.other_work.set
        shared += _kernels.set_count_shared(&sets.chosen_work.set, &sets.chosen_work.table, other, 0)
        if shared + left < needed:
            break
    return shared


# ---- all pairs: an inverted index of some texts, in which others are looked up ----

cdef int _reserve_index(Index *index, size_t max_shingles) except -1:
    """Allocate an index for a matrix, for one set at least; memory that is not used is not touched."""
    cdef size_t texts = max_shingles // INDEXED, shingles = max(max_shingles, <size_t> SMALL_SET)
    index.max_shingles, index.max_texts = max_shingles, texts
    index.numbers = <uint32_t *> resize(NULL, POSTINGS * shingles, sizeof(uint32_t))
    index.columns = <uint32_t *> resize(NULL, POSTINGS * shingles, sizeof(uint32_t))
    index.postings = <Postings *> resize(NULL, shingles, sizeof(Postings))
    index.ends = <size_t *> resize(NULL, texts + 1, sizeof(size_t))
    index.zeros = <uint32_t *> resize(NULL, texts, sizeof(uint32_t))
    index.shared = <uint32_t *> resize(NULL, texts, sizeof(uint32_t))
    index.found = <uint32_t *> resize(NULL, shingles, sizeof(uint32_t))
    return 0


cdef int _free_index(Index *index) except -1:
    _free_workspace(&index.work)
    free(index.numbers)
    free(index.columns)
    free(index.postings)
    free(index.ends)
    free(index.zeros)
    free(index.shared)
    free(index.found)
    return 0


cdef int _index_texts(ShingleSets sets, Index *index, Py_ssize_t first, Py_ssize_t stop) except -1 nogil:
    """Number the shingles of the texts from `first` on, of as many as fit: one at least. Their postings are empty.

    A text that is too large to be in memory as a whole has no shingles here.
    """
    cdef size_t i, start = 0
    index.first, index.count, index.used, index.ends[0] = first, 0, 0, 0
    index.work.set.count = 0
    _reserve_set(&index.work, 4 * TILE, True, 0)
    while first + <Py_ssize_t> index.count < stop and index.count < index.max_texts:
        if not _number(sets, index, first + index.count):
            break
        index.count += 1
    for i in range(index.work.set.count):
        index.postings[i].end = 0
    for i in range(index.ends[index.count]):
        index.postings[index.numbers[i]].end += 1
    for i in range(index.work.set.count):
        start += index.postings[i].end
        index.postings[i].start = index.postings[i].end = <uint32_t> (start - index.postings[i].end)
    return 0


cdef bint _number(ShingleSets sets, Index *index, Py_ssize_t i) except -1 nogil:
    """Number the shingles of text i, the next one, by their places in the set of the index, which gets the new ones.

    Returns whether they fit.
    """
    cdef Workspace *work = &index.work
    cdef const c.lsh_set *other = _known(sets, i)
    cdef size_t at = index.ends[index.count], fresh = 0, before = work.set.count, copied = 0, j
    cdef uint32_t *numbers = index.numbers + at
    index.ends[index.count + 1], index.zeros[index.count] = at, 0
    if other == NULL:
        return True
    if index.count and (at + other.count > POSTINGS * index.max_shingles
                        or index.used > INDEX_TEXT * index.max_shingles):
        return False
    _kernels.set_find(&work.set, &work.table, other, numbers)
    for j in range(other.count):
        fresh += numbers[j] == c.LSH_SET_NONE
    if index.count and before + fresh > index.max_shingles:
        return False
    while before + fresh > work.set.capacity:
        _reserve_set(work, 2 * work.set.capacity, True, 0)
        _kernels.set_enter(&work.set, &work.table, 0)
    for j in range(other.count):
        if numbers[j] == c.LSH_SET_NONE:
            numbers[j] = <uint32_t> work.set.count
            _append(index, other, j, &copied)
    _kernels.set_enter(&work.set, &work.table, before)
    index.ends[index.count + 1] = at + other.count
    index.zeros[index.count] = other.zero
    return True


cdef const c.lsh_set *_known(ShingleSets sets, Py_ssize_t i) except? NULL nogil:
    """The set of a text; NULL if it is too large to be in memory as a whole."""
    if not c.lsh_load_32(&sets.texts[i].known):
        _make(sets, &sets.other_work, i)
    return _whole(sets, i) if _is_whole(sets, i) else NULL


cdef int _append(Index *index, const c.lsh_set *other, size_t j, size_t *copied) except -1 nogil:
    """Append shingle j of a set to that of the index, and those of its bytes that are not among the `copied` ones.

    The bytes of shingles of one text may overlap: what has been copied of it last ends at `copied`.
    """
    cdef c.lsh_set *own = &index.work.set
    cdef c.lsh_span span = c.lsh_span(0, other.width)
    cdef size_t start, end
    if other.spans != NULL:
        span = other.spans[j]
    if span.length > c.LSH_SET_KEY:  # the token of a shorter one is enough
        start, end = span.start, span.start + span.length
        if copied[0] < start or copied[0] > end:
            copied[0] = start
        if index.used + (end - copied[0]) > index.work.words.capacity:
            reserve_words(&index.work.words, 2 * (index.used + span.length))
        memcpy(index.work.words.bytes + index.used, other.text + copied[0], end - copied[0])
        index.used += end - copied[0]
        copied[0] = end
        span.start = index.used - span.length
    own.text = index.work.words.bytes
    own.tokens[own.count], own.spans[own.count] = other.tokens[j], span
    own.count += 1
    return 0


cdef void _post(Index *index, size_t k) noexcept nogil:
    """Add text k of the index to the postings of its shingles."""
    cdef size_t i
    cdef Postings *postings
    for i in range(index.ends[k], index.ends[k + 1]):
        postings = &index.postings[index.numbers[i]]
        index.columns[postings.end] = <uint32_t> k
        postings.end += 1


cdef int _count_with(ShingleSets sets, Index *index, Py_ssize_t i, size_t count) except -1 nogil:
    """Count the shingles that text i shares with each of the first `count` texts of the index, which are posted."""
    cdef const uint32_t *numbers = index.found
    cdef const c.lsh_set *other
    cdef const Postings *postings
    cdef size_t k = i - index.first, size, at, place, work = count
    cdef uint32_t zero
    memset(index.shared, 0, count * sizeof(uint32_t))
    if i >= index.first and k < index.count:
        numbers, size, zero = index.numbers + index.ends[k], index.ends[k + 1] - index.ends[k], index.zeros[k]
    else:
        other = _known(sets, i)
        if other == NULL:
            return 0
        size, zero = other.count, other.zero
        _kernels.set_find(&index.work.set, &index.work.table, other, index.found)
    for at in range(size):
        if numbers[at] != c.LSH_SET_NONE:
            postings = &index.postings[numbers[at]]
            work += postings.end - postings.start
            for place in range(postings.start, postings.end):
                index.shared[index.columns[place]] += 1
    for k in range(count if zero else 0):
        index.shared[k] += <uint32_t> _ones(zero & index.zeros[k])
    return _worked(sets, work)


cdef int _compare_with(ShingleSets sets, Index *index, Py_ssize_t i, size_t count, double *out,
                       Py_ssize_t stride) except -1 nogil:
    """Write the similarities of text i to the first `count` texts of the index."""
    cdef size_t a, b, k, shared
    cdef bint whole
    _count_with(sets, index, i, count)
    whole, a = _is_whole(sets, i), c.lsh_load_size(&sets.texts[i].size)
    for k in range(count):
        if whole and _is_whole(sets, index.first + k):
            b, shared = c.lsh_load_size(&sets.texts[index.first + k].size), index.shared[k]
            out[<Py_ssize_t> k * stride] = <double> shared / <double> max(a + b - shared, <size_t> 1)
        else:
            if sets.chosen != i:
                sets.choose(i)
            out[<Py_ssize_t> k * stride] = sets.similarity(index.first + k, 0.0)
    return 0


@final
cdef class SetCache:
    """What several `ShingleSets` know about the texts of a batch, and have cached of them; safe to share.

    Parameters
    ----------
    batch : Batch
        The texts.
    max_cached : int
        As of `ShingleSets`.
    """

    def __cinit__(self, Batch batch not None, size_t max_cached):
        cdef Py_ssize_t i
        cdef int kind
        cdef size_t needed = 0
        self.batch = batch
        self.texts = <Text *> calloc(max(batch.count, 1), sizeof(Text))
        if self.texts == NULL:
            raise MemoryError
        for i in range(batch.count):
            if needed < max_cached:  # the most that the text can take there
                needed += sizeof(CachedSet) + CACHE_UNIT
                needed += (sizeof(uint64_t) + sizeof(c.lsh_span) + 1) * batch.lengths[i]
        if batch.count > 2:  # two have a workspace each
            max_cached = min(max_cached, CACHE_UNIT * <size_t> UINT32_MAX)
            self.rings[SETS].size = min(needed, max_cached // 4)
            self.rings[BITMAPS].size = min(needed, max_cached - max_cached // 4)
        for kind in range(2):
            self.rings[kind].size -= self.rings[kind].size % CACHE_UNIT
            self.rings[kind].bytes = <uint8_t *> resize(NULL, self.rings[kind].size, 1)

    def __dealloc__(self):
        cdef Reader *reader
        free(self.texts)
        free(self.rings[SETS].bytes)
        free(self.rings[BITMAPS].bytes)
        while self.readers != NULL:
            reader = self.readers
            self.readers = reader.next
            free(reader)

    cdef Reader *_new_reader(self) except NULL:
        cdef Reader *reader = <Reader *> calloc(1, sizeof(Reader))
        if reader == NULL:
            raise MemoryError
        reader.since = ABSENT
        while c.lsh_exchange_32(&self.busy, True):  # for less than a millisecond
            pass
        reader.next = self.readers
        self.readers = reader
        c.lsh_store_32(&self.busy, False)
        return reader


@final
cdef class ShingleSets:
    """The exact shingle sets of a batch, made on demand and kept in a bounded cache.

    Choose a text, then compare others with it. The memory is bounded whatever the texts are, and no bound changes
    a result. Not safe to share between threads, each of which has its own (`sharing`).

    Parameters
    ----------
    batch : Batch
        The texts.
    unit : int
        A value of `UNIT_CODES`.
    n : int
        Units per shingle, 1 or more.
    flags : int, optional
        How ASCII texts are normalised: a sum of values of `NORMALISATIONS`.
    max_cached : int, optional
        Bytes of the caches: a quarter for sets, the rest for bitmaps.
    max_shingles : int, optional
        Distinct shingles of a text that are in memory at once, a power of two from 1,024 on; half of that for those
        that are no words of up to eight bytes. A text of more is divided into parts of the hash space, which are
        compared one by one: the time grows with the length of the text.
    max_split : int, optional
        Shingles, with repeats, of a text that are divided at once, 8 or 16 bytes each. A text of more is read again
        for the next ones.
    secret : bytes, optional
        Replaces the secret of the process, so that tests can make hashes collide: 128 bytes, see `lsh_set_secret`.
    like : ShingleSets, optional
        Shares its cache; it has the same parameters. See `sharing`.

    Notes
    -----
    A set and its table take 24 bytes a shingle, or 48 where the bytes of a shingle have to be compared; two are there
    at once, and bitmaps of one of them, 2 to 4 bytes a shingle. In the caches, a shingle takes 8 or 24 bytes in a set
    and up to 1 in a bitmap. A matrix has an index besides, of at most `max_shingles` distinct
    shingles: 70 bytes each, and their texts.
    """

    def __cinit__(self, Batch batch not None, int unit, size_t n, int flags=0, *, size_t max_cached=MAX_CACHED,
                  size_t max_shingles=MAX_SHINGLES, size_t max_split=MAX_SPLIT, bytes secret=None,
                  ShingleSets like=None):
        if not 1 <= n <= <size_t> -1 // 2 or unit not in (c.LSH_BYTE, c.LSH_CHAR, c.LSH_WORD):
            raise ValueError("n must be 1 or more, and unit a value of UNIT_CODES")
        if not 4 * TILE <= max_shingles <= MAX_SHINGLES:
            raise ValueError(f"max_shingles must be {4 * TILE} to {MAX_SHINGLES}, got {max_shingles}")
        if max_split < MIN_SPLIT:
            raise ValueError(f"max_split must be {MIN_SPLIT} or more, got {max_split}")
        if unit == c.LSH_WORD:
            need_word_table()
        self.max_split = max_split
        self.lock = threading.Lock()
        self.batch, self.unit, self.n, self.flags, self.max_shingles = batch, <c.lsh_unit> unit, n, flags, max_shingles
        self.secret = _secret if secret is None else _draw_secret(secret)
        self.chosen = self.chosen_work.prepared = self.other_work.prepared = -1
        self.chosen_work.whole = self.other_work.whole = -1
        self.chosen_work.split = self.other_work.split = -1
        if like is not None and not self._is_like(like):
            raise ValueError("like must have the same parameters")
        self.cache = SetCache(batch, max_cached) if like is None else like.cache
        self.texts, self.reader = self.cache.texts, self.cache._new_reader()

    def __dealloc__(self):
        _free_workspace(&self.chosen_work)
        _free_workspace(&self.other_work)

    cdef bint _is_like(self, ShingleSets other):
        return (other.batch is self.batch and other.unit == self.unit and other.n == self.n
                and other.flags == self.flags and other.max_shingles == self.max_shingles
                and memcmp(&other.secret, &self.secret, sizeof(self.secret)) == 0)

    def sharing(self):
        """Return an object for another thread: with the same parameters, over the same cache."""
        secret = PyBytes_FromStringAndSize(<const char *> &self.secret, sizeof(self.secret))
        return ShingleSets(self.batch, self.unit, self.n, self.flags, max_shingles=self.max_shingles,
                           max_split=self.max_split, secret=secret, like=self)

    cdef int begin(self) except -1:
        """Acquire this object for some comparisons."""
        acquire(self.lock)
        c.lsh_store_size(&self.reader.since, c.lsh_load_size(&self.cache.time))
        c.lsh_fence()
        return 0

    cdef int end(self) except -1:
        c.lsh_store_size(&self.reader.since, ABSENT)
        self.lock.release()
        return 0

    cdef void expect(self, Py_ssize_t j, bint bitmap) noexcept nogil:
        """Prefetch the record of a text that is compared soon; in a second call, its bitmap. Negative j: no text."""
        cdef const CachedBitmap *cached
        cdef size_t line
        if j < 0:
            return
        if not bitmap:
            c.lsh_prefetch(&self.texts[j])
            return
        cached = <const CachedBitmap *> _cached(self, BITMAPS, j)
        if cached != NULL:
            for line in range(EXPECTED):
                c.lsh_prefetch(<const uint8_t *> cached + LINE * line)

    cdef int choose(self, Py_ssize_t i) except -1 nogil:
        """Make text i the one that others are compared with."""
        cdef Workspace *work = &self.chosen_work
        cdef CachedSet *cached
        cdef size_t now = c.lsh_load_size(&self.cache.time)
        self.chosen = -1
        if self.reader.since != now:
            c.lsh_store_size(&self.reader.since, now)
        if work.whole != i and _is_whole(self, i):
            cached = <CachedSet *> _cached(self, SETS, i)
            if cached == NULL:
                _make(self, work, i)
            else:
                _load(self, work, cached)
        self.chosen = i
        return 0

    cdef double similarity(self, Py_ssize_t j, double least) except -1.0 nogil:
        """The Jaccard similarity of the chosen text and text j where that is at least `least`, else 0.0, which
        takes less time; 0.0 where either has no shingles.
        """
        cdef Workspace *work = &self.chosen_work
        cdef size_t a, b, needed, shared
        cdef Py_ssize_t i = self.chosen
        if not c.lsh_load_32(&self.texts[j].known):
            _make(self, &self.other_work, j)
        a, b = c.lsh_load_size(&self.texts[i].size), c.lsh_load_size(&self.texts[j].size)
        if a == 0 or b == 0:
            return 0.0
        needed = _least_shared(least, a, b)
        if needed > min(a, b):
            return 0.0
        work.asked += 1
        _worked(self, a + b)  # an upper bound
        if not (_is_whole(self, i) and _is_whole(self, j)):
            shared = _count_by_parts(self, i, j, needed)
        else:
            if work.num_bitmaps == 0 and work.asked >= BITMAP_ASKED and (needed > 0 or work.set.count > FILTER_COUNT):
                _make_bitmaps(work)
                _keep_bitmap(self, work, i)
            if needed and (_most_by_bitmaps(self, j, a, b) < needed or _most_shared(self, j, needed) < needed):
                return 0.0
            shared = _kernels.set_count_shared(&work.set, &work.table, _whole(self, j), needed)
        return _jaccard(shared, a, b) if shared >= needed else 0.0

    def matrix(self, Py_ssize_t rows, Py_ssize_t first_column):
        """Return the similarities of texts 0 .. rows - 1 to texts first_column .. count - 1, float64.

        Blocks of the fewer texts are indexed, and all others are looked up in each block. In a matrix of all pairs of
        texts only those of a block and later ones are, and each similarity is written twice.
        """
        cdef Py_ssize_t columns = self.batch.count - first_column
        if not 0 <= first_column <= self.batch.count or not 0 <= rows <= self.batch.count:
            raise ValueError("rows and first_column must lie within the batch")
        out = np.empty((rows, columns))
        if rows < columns:
            self._fill_matrix(out.T, 0, rows, first_column)
        else:
            self._fill_matrix(out, first_column, self.batch.count, 0)
        return out

    cdef int _fill_matrix(self, double[:, :] out, Py_ssize_t first, Py_ssize_t stop, Py_ssize_t first_row) except -1:
        """Write the similarities of the texts from `first_row` on, as many as rows, to texts first .. stop - 1."""
        cdef Index index
        cdef Py_ssize_t i
        memset(&index, 0, sizeof(index))
        self.begin()
        try:
            if stop - first == 1:
                with nogil:
                    self.choose(first)
                    for i in range(out.shape[0]):
                        out[i, 0] = self.similarity(first_row + i, 0.0)
                return 0
            _reserve_index(&index, self.max_shingles)
            index.first = first
            with nogil:
                while index.first + <Py_ssize_t> index.count < stop:
                    _index_texts(self, &index, index.first + index.count, stop)
                    self._fill_block(out, &index, first, first_row)
        finally:
            self.end()
            _free_index(&index)
        return 0

    cdef int _fill_block(self, double[:, :] out, Index *index, Py_ssize_t first,
                         Py_ssize_t first_row) except -1 nogil:
        """Write the columns of the texts of an index; the first column is that of text `first`."""
        cdef Py_ssize_t i, k, column = index.first - first, count = index.count, rows = out.shape[0]
        cdef Py_ssize_t stride = out.strides[1] // <Py_ssize_t> sizeof(double)
        cdef bint same = first == first_row and rows == out.shape[1]
        for k in range(count):
            _post(index, k)
            if same:
                _compare_with(self, index, index.first + k, k + 1, &out[column + k, column], stride)
        for i in range(column + count if same else 0, rows):
            _compare_with(self, index, first_row + i, count, &out[i, column], stride)
        for i in range(column if same else rows, rows):
            for k in range(min(count, i - column)):
                out[column + k, i] = out[i, column + k]
        return 0
