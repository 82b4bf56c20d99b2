# The set of one text, or of one part of it, in a workspace. Included by sets.pyx.

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


cdef size_t least_shared(double least, size_t a, size_t b) noexcept nogil:
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
    cdef bint again = text.known
    cdef uint32_t part_bits = text.part_bits
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
    text.size = size
    text.places = work.places
    text.part_bits = part_bits
    text.known = True
    if part_bits == 0:
        work.whole = i
        if again:
            _keep_set(sets, work, i)
        if sets.chosen_work.num_bitmaps:
            _keep_bitmap(sets, work, i)
    return 0


cdef inline bint _is_whole(ShingleSets sets, Py_ssize_t i) noexcept nogil:
    """Whether no part of the set of a text is known to be too large for memory."""
    return sets.texts[i].part_bits == 0
