/* Sorted keys of a segment of an index: checksums of blocks, sorting, merging. See kernels.h. */
#include <string.h>

#include "../_murmur3.h"
#include "kernels.h"
#include "sorted.h"
#include "target.h"

/* COUNTED: the keys of one call; between two calls the caller handles signals. */
enum { COUNTED = 1 << 18 };
enum { DIGIT = 8, DIGITS = 64 / DIGIT, VALUES = 1 << DIGIT, SPARE = 6, FEW = 64, AHEAD = 8 };

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


void lsh_block_sums(const uint8_t *data, size_t size, lsh_hash hash, uint8_t *sums)
{
    const lsh_blocks blocks = {.file = data, .size = size, .hash = hash};
    for (size_t block = 0; block * LSH_BLOCK < size; block++)
        store64(sums + 8 * block, block_sum(&blocks, block));
}


size_t lsh_check_blocks(const lsh_blocks *blocks, const uint8_t *start, size_t length)
{
    return check_blocks(blocks, start, length);
}

/* ---- sorted keys ---- */

static inline uint64_t key_of(lsh_numbered_key record) { return (uint64_t)record.high << 32 | record.low; }

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
