# An inverted index of some texts, in which others are looked up, for all pairs. Included by sets.pyx.

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
    if not sets.texts[i].known:
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
    whole, a = _is_whole(sets, i), sets.texts[i].size
    for k in range(count):
        if whole and _is_whole(sets, index.first + k):
            b, shared = sets.texts[index.first + k].size, index.shared[k]
            out[<Py_ssize_t> k * stride] = <double> shared / <double> max(a + b - shared, <size_t> 1)
        else:
            if sets.chosen != i:
                sets.choose(i)
            out[<Py_ssize_t> k * stride] = sets.similarity(index.first + k, 0.0)
    return 0
