/* Documents that share a band key. See kernels.h.
 *
 * One table of a million keys does not fit into the cache, and each lookup waits for memory. So the documents of a band are first
 * distributed to partitions by bits of their key, in their order, and each partition is divided into buckets with a table that
 * fits into the cache (the partitioned hash join: Shatdal, Kant and Naughton 1994).
 *
 * A cache, which grows and shrinks, has a table of bins a band instead, which probes linearly from the low bits of the key.
 */
#include <string.h>

#include "kernels.h"
#include "target.h"

/* Odd numbers, of which two are 2**64 and 2**32 / golden ratio. A product has its best bits at the top, whatever the key. */
#define SPREAD 0x9E3779B97F4A7C15u
#define SPREAD_32 0x9E3779B1u
#define PART 0xD6E8FEB86659FD93u
#define PART_32 0xC2B2AE35u

/* With 2048 documents a partition, records and table take 64 KB, a part of any second-level cache. Dealing to more than 1024
 * partitions costs more, as each has a line of the first-level cache under way, than larger tables do. */
enum { PARTITION = 2048, MAX_BITS = 10, SMALLEST_LG = 3 };

/* A table has 4 slots a document, so that a slot is mostly free; in a partition much above the mean, 1. */
size_t lsh_bucket_slots(size_t entered)
{
    size_t slots = (size_t)1 << SMALLEST_LG;
    while (slots < entered || (slots < 4 * entered && slots < 4 * PARTITION))
        slots *= 2;
    return slots;
}

/* A record of a document is one word, its spread key in the upper half, where keys have 4 bytes; else two, the key and the document. */
LSH_INLINE uint64_t spread_key(const void *keys, size_t document, const size_t words)
{
    return words == 1 ? (uint64_t)(((const uint32_t *)keys)[document] * SPREAD_32) << 32
                      : ((const uint64_t *)keys)[document] * SPREAD;
}

LSH_INLINE uint64_t key_of(const uint64_t *records, size_t i, const size_t words)
{
    return words == 1 ? records[i] >> 32 << 32 : records[2 * i];
}

LSH_INLINE int32_t document_of(const uint64_t *records, size_t i, const size_t words)
{
    return (int32_t)(uint32_t)records[words * i + words - 1];
}

static size_t partition_of(uint64_t spread, unsigned bits) { return (size_t)(spread >> 1 >> (63 - bits)); }

#define FOLLOWS ((uint32_t)1 << 31) /* the place of a later document of a bucket: the number of its first record, with this bit */

/* Give each record of a partition its place. A slot is the head of a chain of first records, one for each key. The place of a
 * first record is the size of its bucket, to begin with. Returns the first record of a chain of all later ones, plus 1; or 0. */
LSH_INLINE uint32_t divide_partition(const uint64_t *restrict records, const size_t words, size_t count, size_t entered,
                                     unsigned bits, size_t slots, uint32_t *restrict table, uint32_t *restrict next,
                                     uint32_t *restrict places)
{
    unsigned lg = SMALLEST_LG;
    uint32_t later = 0, *last = &later;
    while ((size_t)1 << lg < slots && (size_t)1 << lg < 4 * entered)
        lg++;
    memset(table, 0, sizeof *table << lg);
    for (size_t i = 0; i < count; i++) {
        const uint64_t key = key_of(records, i, words);
        uint32_t *at = table + (key << bits >> (64 - lg));
        while (*at && key_of(records, *at - 1, words) != key)
            at = &next[*at - 1];
        places[i] = *at ? FOLLOWS | (*at - 1) : 1;
        if (*at) {
            places[*at - 1]++;
            *last = (uint32_t)i + 1;
            last = &next[i];
        } else if (i < entered) {
            next[i] = 0;
            *at = (uint32_t)i + 1;
        }
    }
    *last = 0;
    return later;
}

/* Write the members of the buckets of a partition from members[*total] on, and where each bucket ends; `ends` may be `places` or
 * lie before it, as a bucket has its first record before its end is written. `firsts` has room for a number a bucket. */
LSH_INLINE void write_buckets(const uint64_t *records, const size_t words, size_t count, uint32_t later, uint32_t *firsts,
                              const uint32_t *next, uint32_t *places, int32_t *members, uint32_t *total, uint32_t *ends,
                              size_t *buckets)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t size = places[i];
        if (size < 2 || size & FOLLOWS)
            continue;
        firsts[found++] = (uint32_t)i;
        members[*total] = document_of(records, i, words);
        places[i] = *total + 1;
        *total += size;
    }
    for (; later; later = next[later - 1])
        members[places[places[later - 1] ^ FOLLOWS]++] = document_of(records, later - 1, words);
    for (size_t k = 0; k < found; k++)
        ends[(*buckets)++] = places[firsts[k]];
}

LSH_INLINE size_t find_buckets(void *keys, const size_t words, size_t documents, const int32_t *order, size_t count,
                               size_t entered, uint64_t *records, uint32_t *table)
{
    const int all_enter = entered == documents; /* then they can be counted in any order; that of the keys is the fastest */
    const size_t slots = lsh_bucket_slots(entered);
    uint32_t ends[1 << MAX_BITS] = {0}, last[1 << MAX_BITS], entering[1 << MAX_BITS], sum = 0, total = 0;
    int32_t *members = keys;
    uint32_t *places = (uint32_t *)keys + documents, *next = table + slots;
    size_t buckets = 0;
    unsigned bits = 0;
    while (bits < MAX_BITS && count >> bits > PARTITION)
        bits++;
    for (size_t i = 0; i < entered; i++)
        ends[partition_of(spread_key(keys, all_enter ? i : (size_t)order[i], words), bits)]++;
    memcpy(entering, ends, sizeof ends);
    for (size_t i = entered; i < count; i++)
        ends[partition_of(spread_key(keys, (size_t)order[i], words), bits)]++;
    for (size_t p = 0; p < (size_t)1 << bits; p++) { /* from sizes to where each begins */
        const uint32_t size = ends[p];
        ends[p] = sum;
        sum += size;
        last[p] = sum;
    }
    for (size_t i = 0; i < count; i++) { /* and on to where each ends */
        const uint64_t spread = spread_key(keys, (size_t)order[i], words);
        const size_t p = partition_of(spread, bits);
        if (ends[p] == last[p])
            return LSH_CHANGED;
        records[words * ends[p]] = words == 1 ? spread | (uint32_t)order[i] : spread;
        if (words == 2)
            records[2 * ends[p] + 1] = (uint32_t)order[i];
        ends[p]++;
    }
    for (size_t p = 0, begin = 0; p < (size_t)1 << bits; begin = ends[p++]) {
        const uint64_t *own = records + words * begin;
        const size_t size = ends[p] - begin;
        const uint32_t later = divide_partition(own, words, size, entering[p], bits, slots, table, next, places + begin);
        write_buckets(own, words, size, later, table, next, places + begin, members, &total, places, &buckets);
    }
    return buckets;
}

size_t lsh_find_buckets(void *keys, size_t key_bytes, size_t documents, const int32_t *order, size_t count, size_t entered,
                        uint64_t *records, uint32_t *table)
{
    if (key_bytes == 4)
        return find_buckets(keys, 1, documents, order, count, entered, records, table);
    return find_buckets(keys, 2, documents, order, count, entered, records, table);
}

/* The part comes of another product than the partition: the keys of a part have any top bits of that. */
size_t lsh_select_part(const void *keys, size_t key_bytes, const uint8_t *chosen, size_t count, uint32_t part, uint32_t parts,
                       void *restrict selected, int32_t *restrict documents)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t mixed;
        documents[found] = (int32_t)i;
        if (key_bytes == 4) {
            const uint32_t key = ((uint32_t *)selected)[found] = ((const uint32_t *)keys)[i];
            mixed = (uint32_t)(key * PART_32);
        } else {
            const uint64_t key = ((uint64_t *)selected)[found] = ((const uint64_t *)keys)[i];
            mixed = key * PART >> 32;
        }
        found += chosen[i] & (mixed * parts >> 32 == part);
    }
    return found;
}

size_t lsh_bins_find(const uint64_t *keys, const uint32_t *heads, size_t mask, uint64_t key)
{
    size_t at = (size_t)key & mask;
    while (heads[at] != LSH_NOTHING && keys[at] != key)
        at = (at + 1) & mask;
    return at;
}

void lsh_bins_free(uint64_t *keys, uint32_t *heads, size_t mask, size_t slot)
{
    size_t gap = slot;
    heads[gap] = LSH_NOTHING;
    for (size_t at = (gap + 1) & mask; heads[at] != LSH_NOTHING; at = (at + 1) & mask) {
        size_t home = (size_t)keys[at] & mask;
        if (((at - home) & mask) < ((at - gap) & mask))
            continue; /* its home is after the gap, so it is still found */
        keys[gap] = keys[at];
        heads[gap] = heads[at];
        heads[at] = LSH_NOTHING;
        gap = at;
    }
}
