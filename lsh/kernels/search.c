/* Sorted keys of a segment of an index: sort, search, merge. See kernels.h.
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
#include "atomic.h"
#include "kernels.h"
#include "target.h"

/* The work of one call, in units of about a nanosecond; between two calls the caller handles signals. */
enum { WORK = 1 << 24, LOOKUP_WORK = 64, COMPARISON_WORK = 16, COUNTED = 1 << 18 };
enum { DIGIT = 8, DIGITS = 64 / DIGIT, VALUES = 1 << DIGIT, SPARE = 6, FEW = 64, AHEAD = 8, NEAR = 64 };
enum { GUESSES = 3, STEPS = 6 }; /* 2**STEPS - 1 keys around the last guess are searched */
enum { LOOKUPS = 64 }; /* made together: the keys that they prefetch fit into the first-level cache */
enum { SOON = 4, LATER = 8 }; /* queries ahead of the one that is answered, whose documents are prefetched */

static void store32(uint8_t *p, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

static void store64(uint8_t *p, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

/* ---- blocks ---- */

static uint64_t block_sum(const lsh_blocks *blocks, size_t block)
{
    const size_t start = block * LSH_BLOCK, left = blocks->size - start;
    uint64_t sum[2];
    blocks->hash(blocks->file + start, left < LSH_BLOCK ? left : LSH_BLOCK, 0, sum);
    return sum[0];
}

void lsh_block_sums(const uint8_t *data, size_t size, lsh_hash hash, uint8_t *sums)
{
    const lsh_blocks blocks = {.file = data, .size = size, .hash = hash};
    for (size_t block = 0; block * LSH_BLOCK < size; block++)
        store64(sums + 8 * block, block_sum(&blocks, block));
}

static inline size_t check_blocks(const lsh_blocks *blocks, const uint8_t *start, size_t length)
{
    if (!blocks || !length)
        return SIZE_MAX;
    const size_t first = (size_t)(start - blocks->file), last = (first + length - 1) / LSH_BLOCK;
    for (size_t block = first / LSH_BLOCK; block <= last; block++) {
        if (lsh_load_8(blocks->checked + block))
            continue;
        if (block_sum(blocks, block) != lsh_load64(blocks->sums + 8 * block))
            return block;
        lsh_store_8(blocks->checked + block, 1);
    }
    return SIZE_MAX;
}

size_t lsh_check_blocks(const lsh_blocks *blocks, const uint8_t *start, size_t length)
{
    return check_blocks(blocks, start, length);
}

/* ---- sorted keys ---- */

static inline uint64_t key_at(const lsh_sorted *s, size_t place) { return lsh_load64(s->keys + 8 * place); }
static inline uint32_t number_at(const lsh_sorted *s, size_t place) { return lsh_load32(s->numbers + 4 * place); }

static inline uint64_t key_of(lsh_numbered_key record) { return (uint64_t)record.high << 32 | record.low; }
static inline unsigned length_of(uint64_t value) { return lsh_highest_bit(value | 1) + 1; }

static inline int precedes(lsh_numbered_key a, lsh_numbered_key b)
{
    return key_of(a) < key_of(b) || (key_of(a) == key_of(b) && a.number < b.number);
}

/* Sort by bits low .. top - 1 of the keys, or of the numbers, stably. Returns the array that has the result. */
static inline lsh_numbered_key *sort_bits(lsh_numbered_key *records, lsh_numbered_key *other, size_t count,
                                          unsigned low, unsigned top, int of_numbers)
{
    const unsigned digits = (top - low + DIGIT - 1) / DIGIT;
    size_t places[DIGITS][VALUES];
    memset(places, 0, digits * sizeof *places);
    for (size_t i = 0; i < count; i++) {
        const uint64_t value = of_numbers ? records[i].number : key_of(records[i]);
        for (unsigned digit = 0; digit < digits; digit++)
            places[digit][value >> (low + DIGIT * digit) & (VALUES - 1)]++;
    }
    for (unsigned digit = 0; digit < digits; digit++) {
        size_t sum = 0;
        for (size_t value = 0; value < VALUES; value++) {
            const size_t size = places[digit][value];
            places[digit][value] = sum;
            sum += size;
        }
        for (size_t i = 0; i < count; i++) {
            const uint64_t value = of_numbers ? records[i].number : key_of(records[i]);
            other[places[digit][value >> (low + DIGIT * digit) & (VALUES - 1)]++] = records[i];
        }
        lsh_numbered_key *swapped = records;
        records = other;
        other = swapped;
    }
    return records;
}

/* Sort by insertion. Returns 0 where that is slow, because the records are not nearly in order. */
static int sort_nearly_sorted(lsh_numbered_key *records, size_t count)
{
    for (size_t i = 1, steps = 0; i < count; i++) {
        const lsh_numbered_key record = records[i];
        size_t at = i;
        for (; at && precedes(record, records[at - 1]) && steps <= count; at--, steps++)
            records[at] = records[at - 1];
        records[at] = record;
        if (steps > count)
            return 0;
    }
    return 1;
}

/* Sort by keys, then numbers. Returns the array that has the result. Keys are hashes, so few that differ are equal in the
 * first bits. */
static lsh_numbered_key *sort_records(lsh_numbered_key *records, lsh_numbered_key *other, size_t count)
{
    uint64_t differ = 0;
    if (count < FEW && sort_nearly_sorted(records, count))
        return records;
    for (size_t i = 1; i < count; i++)
        differ |= key_of(records[i]) ^ key_of(records[0]);
    const unsigned top = length_of(differ), bits = length_of(count) + SPARE;
    lsh_numbered_key *sorted = sort_bits(records, other, count, top > bits ? top - bits : 0, top, 0);
    if (sort_nearly_sorted(sorted, count))
        return sorted;
    other = sorted == records ? other : records;
    sorted = sort_bits(sorted, other, count, 0, 32, 1); /* four digits: the result is where it was */
    return sort_bits(sorted, other, count, 0, top, 0);
}

lsh_numbered_key *lsh_sort_keys(const uint64_t *keys, const uint32_t *numbers, size_t count, lsh_numbered_key *records,
                                lsh_numbered_key *other)
{
    for (size_t i = 0; i < count; i++)
        records[i] = (lsh_numbered_key){(uint32_t)keys[i], (uint32_t)(keys[i] >> 32), numbers[i]};
    return sort_records(records, other, count);
}

void lsh_put_keys(lsh_sorted_output *out, const lsh_numbered_key *records, size_t count)
{
    for (size_t i = 0; i < count; i++, out->count++) {
        store64(out->keys + 8 * out->count, key_of(records[i]));
        store32(out->numbers + 4 * out->count, records[i].number);
    }
}

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

/* Check the blocks of the keys and numbers from a place on. */
static enum lsh_fault check_places(const lsh_sorted *s, size_t first, size_t count, size_t *block)
{
    if ((*block = check_blocks(s->blocks, s->keys + 8 * first, 8 * count)) == SIZE_MAX)
        *block = check_blocks(s->blocks, s->numbers + 4 * first, 4 * count);
    return *block == SIZE_MAX ? LSH_SOUND : LSH_BAD_BLOCK;
}

/* Whether a place has a greater key than the one before it, or the same key and a greater number. */
static inline int ascends(const lsh_sorted *s, size_t place)
{
    const uint64_t key = key_at(s, place), last = key_at(s, place - 1);
    return key > last || (key == last && number_at(s, place) > number_at(s, place - 1));
}

enum lsh_fault lsh_check_keys(const lsh_sorted *sorted, size_t documents, size_t first, size_t count, size_t *block)
{
    const size_t begin = first ? first - 1 : 0;
    const enum lsh_fault fault = check_places(sorted, begin, first + count - begin, block);
    if (fault)
        return fault;
    for (size_t i = first; i < first + count; i++) {
        if (number_at(sorted, i) >= documents)
            return LSH_BAD_NUMBER;
        if (i && !ascends(sorted, i))
            return LSH_BAD_ORDER;
    }
    return LSH_SOUND;
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
    for (size_t b = 0; search->rows && soon < search->stop && b < segment->num_bands; b++) {
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
    if (!search->rows) {
        matches->count = search->first + search->most;
        return;
    }
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
    if (!search->rows) {
        memcpy(matches->numbers + matches->count, numbers, count * sizeof *numbers);
        matches->count += count;
        return LSH_SOUND;
    }
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
    if (search->rows && search->bar <= segment->k)
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

/* ---- merge ---- */

enum lsh_fault lsh_merge_count(lsh_merge_part *part, size_t *kept, size_t *block)
{
    const lsh_sorted *s = part->sorted;
    const size_t left = s->count - part->at, end = part->at + (left < COUNTED ? left : COUNTED);
    *block = check_blocks(s->blocks, s->numbers + 4 * part->at, 4 * (end - part->at));
    if (*block != SIZE_MAX)
        return LSH_BAD_BLOCK;
    for (; part->at < end; part->at++) {
        const uint32_t number = number_at(s, part->at);
        if (number >= part->documents)
            return LSH_BAD_NUMBER;
        *kept += !part->renumbered || part->renumbered[number] != LSH_NOTHING;
    }
    return LSH_SOUND;
}

/* Where a part ends, or `share` keys further on. */
static size_t end_of(const lsh_merge *merge, const lsh_merge_part *part)
{
    return part->sorted->count - part->at < merge->share ? part->sorted->count : part->at + merge->share;
}

/* Whether the document of the key at a place is in the segment. */
static inline int is_inside(const lsh_merge_part *part, size_t place)
{
    return number_at(part->sorted, place) < part->documents;
}

/* The new number of the document at a place; LSH_NOTHING if it is dropped. */
static inline uint32_t renumbered_at(const lsh_merge_part *part, size_t place)
{
    const uint32_t number = number_at(part->sorted, place);
    return part->renumbered ? part->renumbered[number] : part->first + number;
}

/* The least that a key that is not dropped can be from `end` on, with its new number: of equal keys it is greater than
 * that of each key before `end`. */
static enum lsh_fault least_from(const lsh_merge_part *part, size_t end, lsh_numbered_key *least)
{
    const uint64_t key = key_at(part->sorted, end);
    *least = (lsh_numbered_key){(uint32_t)key, (uint32_t)(key >> 32), 0};
    for (size_t place = end; place-- > part->at && key_at(part->sorted, place) == key;) {
        if (!is_inside(part, place))
            return LSH_BAD_NUMBER;
        if (renumbered_at(part, place) != LSH_NOTHING) {
            least->number = renumbered_at(part, place) + 1;
            break;
        }
    }
    return LSH_SOUND;
}

/* Check the blocks of the next keys of a part. *limit becomes what follows these, if it is less; *is_limited tells
 * whether there is something. */
static enum lsh_fault look_ahead(lsh_merge *merge, lsh_merge_part *part, lsh_numbered_key *limit, int *is_limited)
{
    const lsh_sorted *s = part->sorted;
    const size_t end = end_of(merge, part), next = end + (end < s->count);
    enum lsh_fault fault = LSH_SOUND;
    lsh_numbered_key least;
    if (next > part->checked)
        fault = check_places(s, part->checked, next - part->checked, &merge->block);
    if (fault)
        return fault;
    part->checked = next;
    if (end == s->count)
        return LSH_SOUND;
    if ((fault = least_from(part, end, &least)))
        return fault;
    if (!*is_limited || precedes(least, *limit))
        *limit = least;
    *is_limited = 1;
    return LSH_SOUND;
}

/* Take the next keys of a part that are less than `limit`, where there is one; those that are dropped may be equal. */
static enum lsh_fault take_keys(lsh_merge *merge, lsh_merge_part *part, const lsh_numbered_key *limit)
{
    const lsh_sorted *s = part->sorted;
    const size_t first = part->at, end = end_of(merge, part);
    for (; part->at < end; part->at++) {
        const uint64_t key = key_at(s, part->at);
        if (limit && key > key_of(*limit))
            break;
        if (!is_inside(part, part->at))
            return LSH_BAD_NUMBER;
        if (part->at && !ascends(s, part->at))
            return LSH_BAD_ORDER;
        if (part->renumbered && part->at + AHEAD < end && is_inside(part, part->at + AHEAD))
            lsh_prefetch(part->renumbered + number_at(s, part->at + AHEAD));
        const uint32_t number = renumbered_at(part, part->at);
        const lsh_numbered_key record = {(uint32_t)key, (uint32_t)(key >> 32), number};
        if (number == LSH_NOTHING)
            continue;
        if (limit && !precedes(record, *limit))
            break;
        merge->records[merge->taken++] = record;
    }
    merge->left -= part->at - first;
    return LSH_SOUND;
}

enum lsh_fault lsh_merge_next(lsh_merge *merge, lsh_sorted_output *out)
{
    const size_t left = merge->left;
    lsh_numbered_key limit = {0, 0, 0};
    int is_limited = 0;
    enum lsh_fault fault;
    merge->taken = 0;
    for (merge->part = 0; merge->part < merge->num_parts; merge->part++)
        if ((fault = look_ahead(merge, merge->parts + merge->part, &limit, &is_limited)))
            return fault;
    for (merge->part = 0; merge->part < merge->num_parts; merge->part++)
        if ((fault = take_keys(merge, merge->parts + merge->part, is_limited ? &limit : NULL)))
            return fault;
    if ((merge->left == left && left) || merge->taken > out->capacity - out->count) {
        merge->part = 0;
        return LSH_BAD_ORDER;
    }
    lsh_put_keys(out, sort_records(merge->records, merge->other, merge->taken), merge->taken);
    return LSH_SOUND;
}
