# Bitmaps of sets, and the caches of sets and bitmaps. Included by sets.pyx.

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
    """What is cached of text i, or NULL; to be read before something else enters that cache."""
    cdef size_t unit = sets.texts[i].cached[kind]
    return <Cached *> (sets.rings[kind].bytes + (unit - 1) * CACHE_UNIT) if unit else NULL


cdef Cached *_enter(ShingleSets sets, int kind, Py_ssize_t i, size_t size) noexcept nogil:
    """Return the memory of a new entry of `size` bytes for text i; NULL if there is one, or if it does not fit."""
    cdef Ring *ring = &sets.rings[kind]
    size = (size + CACHE_UNIT - 1) // CACHE_UNIT * CACHE_UNIT
    if size > ring.size or sets.texts[i].cached[kind]:
        return NULL
    if ring.size - ring.newest_end % ring.size < size:  # go on from the beginning
        _add(sets, kind, -1, ring.size - ring.newest_end % ring.size)
    return _add(sets, kind, i, size)


cdef Cached *_add(ShingleSets sets, int kind, Py_ssize_t i, size_t size) noexcept nogil:
    """Add an entry, for which there is room before the end of the ring, in place of the oldest ones."""
    cdef Ring *ring = &sets.rings[kind]
    cdef Cached *entry
    while ring.newest_end + size > ring.oldest + ring.size:
        entry = <Cached *> (ring.bytes + ring.oldest % ring.size)
        if entry.text >= 0:
            sets.texts[entry.text].cached[kind] = 0
        ring.oldest += entry.units * CACHE_UNIT
    entry = <Cached *> (ring.bytes + ring.newest_end % ring.size)
    entry.units, entry.text = size // CACHE_UNIT, i
    if i >= 0:
        sets.texts[i].cached[kind] = <uint32_t> (ring.newest_end % ring.size // CACHE_UNIT + 1)
    ring.newest_end += size
    return entry


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
            size = cached.head.units * CACHE_UNIT - (own_text - <const uint8_t *> cached)
            reserve_words(&work.words, size)
            memcpy(work.words.bytes, own_text, size)
            work.set.text = work.words.bytes
    _kernels.set_enter(&work.set, &work.table, 0)
    work.whole = cached.head.text
    return 0
