/* Sorted keys of a segment of an index: search. See kernels.h, and sorted.c for sorting and merging.
 *
 * Search. Keys are hashes, so the place of a key in the sorted array follows from its value (interpolation search:
 * Peterson 1957; Perl, Itai and Avni 1978). With n keys the first guess is wrong by about sqrt(n)/2 places, and each next
 * one, made from the key at the last guess, by about the square root of the error before. After GUESSES of them a binary
 * search among the keys near the last guess finds the key; if it is not among them, a binary search of the whole array
 * does. A lookup mostly waits for memory, so lookups are made in groups: the kernel prefetches the keys of a group for
 * each guess, then its documents. Sought keys in ascending order find more of these in the cache.
 *
 * Documents. Each band has a run of documents for a query, ascending. A bitmap of 2**16 documents removes repetitions,
 * and a second bitmap tells which words of the first are not 0. Time is in proportion to the runs; memory is constant.
 *
 * Checksums. A block is checked after it was searched and before the result is used. That is safe because a search
 * stays within the arrays whatever they hold.
 */
#include <string.h>

#include "../_murmur3.h"
#include "kernels.h"
#include "sorted.h"
#include "target.h"

/* The work of one call, in units of about a nanosecond; between two calls the caller handles signals. */
enum { WORK = 1 << 24, LOOKUP_WORK = 64, COMPARISON_WORK = 16 };
enum { AHEAD = 8, NEAR = 64 };
enum { GUESSES = 3, STEPS = 6 }; /* 2**STEPS - 1 keys around the last guess are searched */
enum { LOOKUPS = 64 }; /* made together: the keys that they prefetch fit into the first-level cache */
enum { SOON = 4, LATER = 8 }; /* queries ahead of the one that is answered, whose documents are prefetched */

/* ---- lookups ---- */

/* The steps of the binary search around a guess. */
static inline unsigned steps_of(const lsh_sorted *s)
{
    const unsigned most = length_of(s->count + 1) - 1;
    return most < STEPS ? most : STEPS;
}

/* How many keys lie between two keys with this difference, on average. */
static inline size_t expected(const lsh_sorted *s, uint64_t difference) { return (size_t)((difference >> 32) * s->count >> 32); }

/* The next guess for the place of a key. */
static inline uint32_t next_guess(const lsh_sorted *s, uint64_t key, size_t guess)
{
    if (!s->count)
        return 0;
    const uint64_t other = key_at(s, guess);
    const size_t behind = expected(s, key - other), before = expected(s, other - key), last = s->count - 1;
    if (key >= other)
        return (uint32_t)(behind < last - guess ? guess + behind : last);
    return (uint32_t)(before < guess ? guess - before : 0);
}

/* The first of the keys that are searched around a guess; they are prefetched. */
static inline uint32_t begin_steps(const lsh_sorted *s, size_t guess, unsigned steps)
{
    const size_t window = ((size_t)1 << steps) - 1, last = s->count - window;
    const size_t low = guess > window / 2 ? guess - window / 2 : 0, first = low < last ? low : last;
    const size_t half = window * 8 / 2, near = half < NEAR ? half : NEAR;
    const uint8_t *middle = s->keys + 8 * first + half;
    lsh_prefetch(middle);
    lsh_prefetch(middle - near);
    lsh_prefetch(middle + near);
    return (uint32_t)first;
}

/* The first of places low .. high - 1 whose key is not less (`after`: is greater); `high` if there is none. */
static size_t bound(const lsh_sorted *s, uint64_t key, int after, size_t low, size_t high)
{
    for (size_t left = high - low; left; left /= 2) {
        const size_t half = (left + 1) / 2;
        const uint64_t other = key_at(s, low + half - 1);
        low += half & -(size_t)(after ? other <= key : other < key);
    }
    return low;
}

/* The end of the run of equal keys that begins at `start`, found in doubling steps. */
static size_t run_end(const lsh_sorted *s, uint64_t key, size_t start)
{
    size_t low = start + 1, step = 1;
    for (; s->count - low > step && key_at(s, low + step) == key; step *= 2)
        low += step + 1;
    return bound(s, key, 1, low, s->count - low > step ? low + step : s->count);
}

/* Set the run of a key from the place that was found, and prefetch its documents. The place is right if the keys before
 * and behind it say so, else the whole array is searched. */
static inline enum lsh_fault end_lookup(const lsh_sorted *s, uint64_t key, size_t low, lsh_run *run, size_t *block)
{
    size_t start = low;
    if ((start && key_at(s, start - 1) >= key) || (start < s->count && key_at(s, start) < key))
        start = bound(s, key, 0, 0, s->count);
    size_t stop = start;
    if (start < s->count && key_at(s, start) == key) {
        stop = run_end(s, key, start);
        lsh_prefetch(s->numbers + 4 * start);
    }
    *run = (lsh_run){(uint32_t)start, (uint32_t)stop};
    const size_t first = start - (start > 0), end = stop + (stop < s->count);
    *block = check_blocks(s->blocks, s->keys + 8 * first, 8 * (end - first));
    return *block == SIZE_MAX ? LSH_SOUND : LSH_BAD_BLOCK;
}

/* Search `count` keys in a band, LOOKUPS at most. All lookups of a band take a step before the next one, because the step
 * of a lookup waits for the one before it. */
static inline void first_guesses(const lsh_sorted *s, const uint64_t *keys, size_t count, uint32_t *places)
{
    for (size_t i = 0; i < count; i++) {
        places[i] = (uint32_t)expected(s, keys[i]);
        lsh_prefetch(s->keys + 8 * (size_t)places[i]);
    }
}

static inline void next_guesses(const lsh_sorted *s, const uint64_t *keys, size_t count, uint32_t *places)
{
    for (size_t i = 0; i < count; i++) {
        places[i] = next_guess(s, keys[i], places[i]);
        lsh_prefetch(s->keys + 8 * (size_t)places[i]);
    }
}

static inline void last_guesses(const lsh_sorted *s, const uint64_t *keys, size_t count, uint32_t *places)
{
    const unsigned steps = steps_of(s);
    for (size_t i = 0; i < count; i++)
        places[i] = begin_steps(s, next_guess(s, keys[i], places[i]), steps);
}

static inline void take_steps(const lsh_sorted *s, const uint64_t *keys, size_t count, uint32_t *places)
{
    const uint8_t *const first = s->keys;
    for (size_t half = (size_t)1 << steps_of(s) >> 1; half; half /= 2)
        for (size_t i = 0; i < count; i++) {
            const uint64_t other = lsh_load64(first + (places[i] + half - 1) * 8);
            places[i] += (uint32_t)half & -(uint32_t)(other < keys[i]);
        }
}

/* Find the keys of `count` queries in each band, LOOKUPS at most: that of query q and band b is keys[b * stride + q],
 * and its run is runs[b * runs_stride + q]. */
static enum lsh_fault find_some(const lsh_sorted *bands, size_t num_bands, const uint64_t *keys, size_t stride,
                                size_t count, lsh_run *runs, size_t runs_stride, size_t *block)
{
    uint32_t places[LOOKUPS];
    enum lsh_fault fault;
    for (size_t b = 0; b < num_bands; b++)
        first_guesses(bands + b, keys + b * stride, count, places + b * count);
    for (int guess = 2; guess < GUESSES; guess++)
        for (size_t b = 0; b < num_bands; b++)
            next_guesses(bands + b, keys + b * stride, count, places + b * count);
    for (size_t b = 0; b < num_bands; b++)
        last_guesses(bands + b, keys + b * stride, count, places + b * count);
    for (size_t b = 0; b < num_bands; b++)
        take_steps(bands + b, keys + b * stride, count, places + b * count);
    for (size_t b = 0; b < num_bands; b++)
        for (size_t q = 0; q < count; q++)
            if ((fault = end_lookup(bands + b, keys[b * stride + q], places[b * count + q],
                                    runs + b * runs_stride + q, block)))
                return fault;
    return LSH_SOUND;
}

/* The same for any number of queries, with runs_stride = count. Of many queries, a band is searched for all before the
 * next one, as its keys and those of the next one displace each other in the cache. */
static enum lsh_fault find_keys(const lsh_sorted *bands, size_t num_bands, const uint64_t *keys, size_t stride,
                                size_t count, lsh_run *runs, size_t *block)
{
    const size_t wide = count < LOOKUPS ? count : LOOKUPS, high = wide ? LOOKUPS / wide : 1;
    enum lsh_fault fault;
    for (size_t b = 0; b < num_bands; b += high)
        for (size_t q = 0; q < count; q += wide) {
            const size_t some = num_bands - b < high ? num_bands - b : high, left = count - q;
            fault = find_some(bands + b, some, keys + b * stride + q, stride, left < wide ? left : wide,
                              runs + b * count + q, count, block);
            if (fault)
                return fault;
        }
    return LSH_SOUND;
}

enum lsh_fault lsh_find_keys(const lsh_sorted *sorted, const uint64_t *keys, size_t count, lsh_run *runs, size_t *block)
{
    return find_keys(sorted, 1, keys, count, count, runs, block);
}

/* ---- search ---- */

static const uint8_t *row_of(const lsh_segment *segment, size_t document)
{
    return segment->sketches + document * segment->k * segment->width;
}

static void prefetch_row(const lsh_segment *segment, size_t document)
{
    const uint8_t *row = row_of(segment, document), *const end = row + segment->k * segment->width;
    for (int i = 0; i < 4 && row < end; i++, row += 64) /* the hardware follows long rows by itself */
        lsh_prefetch(row);
}

static size_t count_equal(const lsh_segment *segment, const uint8_t *a, const uint8_t *b)
{
    const struct lsh_kernels *kernels = segment->kernels;
    if (segment->width == 1)
        return kernels->count_equal_8(a, b, segment->k);
    if (segment->width == 4)
        return kernels->count_equal_32((const void *)a, (const void *)b, segment->k);
    return kernels->count_equal_64((const void *)a, (const void *)b, segment->k);
}

/* Find the runs of the next queries. */
static enum lsh_fault begin_group(const lsh_segment *segment, lsh_search *search)
{
    const size_t bands = segment->num_bands, left = search->queries - search->query;
    size_t size = bands < LSH_LOOKUPS ? LSH_LOOKUPS / bands : 1;
    size = size < left ? size : left;
    search->group = search->query;
    search->stop = search->query + size;
    return find_keys(segment->bands, bands, search->keys + search->query, search->queries, size, search->runs,
                     &search->block);
}

/* The run of a query in a band; those of the next queries follow it. */
static inline lsh_run *run_of(const lsh_search *search, size_t query, size_t band)
{
    return search->runs + band * (search->stop - search->group) + (query - search->group);
}

/* Prefetch the numbers of the documents of a query that comes later, and the sketch of the first one of an earlier one,
 * whose numbers were prefetched. */
static void look_ahead_of(const lsh_segment *segment, const lsh_search *search)
{
    const size_t soon = search->query + SOON, later = search->query + LATER;
    for (size_t b = 0; later < search->stop && b < segment->num_bands; b++) {
        const lsh_run run = *run_of(search, later, b);
        if (run.start < run.stop)
            lsh_prefetch(segment->bands[b].numbers + 4 * (size_t)run.start);
    }
    for (size_t b = 0; soon < search->stop && b < segment->num_bands; b++) {
        const lsh_run run = *run_of(search, soon, b);
        const size_t number = run.start < run.stop ? number_at(segment->bands + b, run.start) : SIZE_MAX;
        if (number < segment->documents) {
            prefetch_row(segment, number);
            break; /* mostly, the document of the other bands is the same */
        }
    }
}

/* Begin to walk the runs of a query. */
static enum lsh_fault begin_query(const lsh_segment *segment, lsh_search *search, size_t matches)
{
    look_ahead_of(segment, search);
    search->first = matches;
    search->bar = search->least;
    search->active = 0;
    search->is_begun = 1;
    for (size_t b = 0; b < segment->num_bands; b++) {
        const lsh_sorted *band = segment->bands + b;
        const lsh_run run = *run_of(search, search->query, b);
        if (run.start == run.stop)
            continue;
        search->active++;
        search->block = check_blocks(band->blocks, band->numbers + 4 * (size_t)run.start,
                                     4 * (size_t)(run.stop - run.start));
        if (search->block != SIZE_MAX)
            return LSH_BAD_BLOCK;
    }
    return LSH_SOUND;
}

/* Mark the documents of the next window in the bitmap. */
static enum lsh_fault next_window(const lsh_segment *segment, lsh_search *search)
{
    size_t window = SIZE_MAX;
    for (size_t b = 0; b < segment->num_bands; b++) {
        const lsh_run run = *run_of(search, search->query, b);
        if (run.start < run.stop) {
            const size_t number = number_at(segment->bands + b, run.start);
            window = number < window ? number : window;
        }
    }
    window = window / LSH_WINDOW * LSH_WINDOW;
    search->window = window;
    search->active = 0;
    for (size_t b = 0; b < segment->num_bands; b++) {
        const lsh_sorted *band = segment->bands + b;
        lsh_run *run = run_of(search, search->query, b);
        size_t at = run->start;
        for (; at < run->stop; at++) {
            const size_t number = number_at(band, at), place = number - window;
            if (number < window)
                return LSH_BAD_ORDER;
            if (number >= segment->documents)
                return LSH_BAD_NUMBER;
            if (place >= LSH_WINDOW)
                break;
            search->marks[place / 64] |= (uint64_t)1 << place % 64;
            search->marked[place / 64 / 64] |= (uint64_t)1 << place / 64 % 64;
        }
        search->work += at - run->start;
        run->start = (uint32_t)at;
        search->active += at < run->stop;
    }
    return LSH_SOUND;
}

/* Take documents from the bitmap, ascending, that are not removed, LSH_PIECE at most. */
static size_t take_marked(const lsh_segment *segment, lsh_search *search, uint32_t *numbers)
{
    size_t count = 0;
    for (size_t i = 0; i < LSH_WINDOW / 64 / 64; i++)
        while (search->marked[i]) {
            const size_t word = i * 64 + lsh_lowest_bit(search->marked[i]);
            for (uint64_t bits = search->marks[word]; bits; bits &= bits - 1) {
                const size_t number = search->window + word * 64 + lsh_lowest_bit(bits);
                if (count == LSH_PIECE) {
                    search->marks[word] = bits;
                    return count;
                }
                numbers[count] = (uint32_t)number;
                count += !segment->removed || !(segment->removed[number / 8] >> number % 8 & 1);
            }
            search->marks[word] = 0;
            search->marked[i] &= search->marked[i] - 1;
        }
    return count;
}

/* Reduce the matches of a query to the best `most`, and raise the bar. */
static void reduce(const lsh_segment *segment, lsh_search *search, lsh_matches *matches)
{
    size_t better = 0, kept = search->first, level = segment->k;
    memset(search->tallies, 0, (segment->k + 1) * sizeof *search->tallies);
    for (size_t i = search->first; i < matches->count; i++)
        search->tallies[matches->equal[i]]++;
    while (better + search->tallies[level] < search->most)
        better += search->tallies[level--];
    for (size_t i = search->first, left = search->most - better; i < matches->count; i++) {
        if (matches->equal[i] < level || (matches->equal[i] == level && !left))
            continue;
        left -= matches->equal[i] == level;
        matches->numbers[kept] = matches->numbers[i];
        matches->equal[kept++] = matches->equal[i];
    }
    matches->count = kept;
    search->bar = level + 1;
}

/* Compare documents with the query, and append those that match. */
static enum lsh_fault compare(const lsh_segment *segment, lsh_search *search, const uint32_t *numbers, size_t count,
                              lsh_matches *matches)
{
    const size_t size = segment->k * segment->width;
    const uint8_t *row = search->rows + search->query * size;
    for (size_t i = 0; i < count && i < AHEAD; i++)
        prefetch_row(segment, numbers[i]);
    for (size_t i = 0; i < count; i++) {
        if (i + AHEAD < count)
            prefetch_row(segment, numbers[i + AHEAD]);
        search->block = check_blocks(segment->blocks, row_of(segment, numbers[i]), size);
        if (search->block != SIZE_MAX)
            return LSH_BAD_BLOCK;
        const size_t equal = count_equal(segment, row_of(segment, numbers[i]), row);
        matches->numbers[matches->count] = numbers[i];
        matches->equal[matches->count] = (uint16_t)equal;
        matches->count += equal >= search->bar;
    }
    return LSH_SOUND;
}

/* After documents were compared: drop the worst of many matches, and stop the walk where no better ones can follow. */
static void limit(const lsh_segment *segment, lsh_search *search, lsh_matches *matches)
{
    const size_t found = matches->count - search->first;
    if (found < LSH_PIECE || found / 2 < search->most)
        return;
    reduce(segment, search, matches);
    if (search->bar <= segment->k)
        return;
    memset(search->marks, 0, sizeof search->marks);
    memset(search->marked, 0, sizeof search->marked);
    search->active = 0;
}

static void end_query(const lsh_segment *segment, lsh_search *search, lsh_matches *matches)
{
    if (matches->count - search->first > search->most)
        reduce(segment, search, matches);
    search->query++;
    search->is_begun = 0;
    search->work += LOOKUP_WORK * segment->num_bands;
    matches->bounds[search->query] = (int64_t)matches->count;
}

enum lsh_fault lsh_search_next(const lsh_segment *segment, lsh_search *search, lsh_matches *matches)
{
    uint32_t numbers[LSH_PIECE];
    enum lsh_fault fault = LSH_SOUND;
    search->work = 0;
    while (search->query < search->queries && search->work < WORK && matches->capacity - matches->count >= LSH_PIECE) {
        if (search->query == search->stop && (fault = begin_group(segment, search)))
            return fault;
        if (!search->is_begun && (fault = begin_query(segment, search, matches->count)))
            return fault;
        const size_t count = take_marked(segment, search, numbers);
        if (count) {
            if ((fault = compare(segment, search, numbers, count, matches)))
                return fault;
            search->work += COMPARISON_WORK * count;
            limit(segment, search, matches);
        } else if (!search->active) {
            end_query(segment, search, matches);
        } else if ((fault = next_window(segment, search))) {
            return fault;
        }
    }
    return LSH_SOUND;
}
