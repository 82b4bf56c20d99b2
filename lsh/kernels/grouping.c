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

#define SPREAD 0x9E3779B97F4A7C15u /* 2**64 / golden ratio, odd: a product has its best bits at the top, whatever the key */

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

static size_t partition_of(uint64_t spread, unsigned bits) { return (size_t)(spread >> 1 >> (63 - bits)); }

#define FOLLOWS ((uint32_t)1 << 31) /* the place of a later document of a bucket: the number of its first record, with this bit */

/* Give each record of a partition its place. A slot is the head of a chain of first records, one for each key. The place of a
 * first record is the size of its bucket, to begin with. Returns the first record of a chain of all later ones, plus 1; or 0. */
static uint32_t divide_partition(lsh_bucket_record *restrict records, size_t count, size_t entered, unsigned bits, size_t slots,
                                 uint32_t *restrict table, uint32_t *restrict places)
{
    unsigned lg = SMALLEST_LG;
    uint32_t later = 0, *last = &later;
    while ((size_t)1 << lg < slots && (size_t)1 << lg < 4 * entered)
        lg++;
    memset(table, 0, sizeof *table << lg);
    for (size_t i = 0; i < count; i++) {
        const uint64_t key = records[i].key;
        uint32_t *at = table + (key << bits >> (64 - lg));
        while (*at && records[*at - 1].key != key)
            at = &records[*at - 1].next;
        places[i] = *at ? FOLLOWS | (*at - 1) : 1;
        if (*at) {
            places[*at - 1]++;
            *last = (uint32_t)i + 1;
            last = &records[i].next;
        } else if (i < entered) {
            records[i].next = 0;
            *at = (uint32_t)i + 1;
        }
    }
    *last = 0;
    return later;
}

/* Write the members of the buckets of a partition from members[*total] on, and where each bucket ends; `ends` may be `places` or
 * lie before it, as a bucket has its first record before its end is written. `firsts` has room for a number a bucket. */
static void write_buckets(const lsh_bucket_record *records, size_t count, uint32_t later, uint32_t *firsts, uint32_t *places,
                          int32_t *members, uint32_t *total, uint32_t *ends, size_t *buckets)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t size = places[i];
        if (size < 2 || size & FOLLOWS)
            continue;
        firsts[found++] = (uint32_t)i;
        members[*total] = records[i].document;
        places[i] = *total + 1;
        *total += size;
    }
    for (; later; later = records[later - 1].next)
        members[places[places[later - 1] ^ FOLLOWS]++] = records[later - 1].document;
    for (size_t k = 0; k < found; k++)
        ends[(*buckets)++] = places[firsts[k]];
}

size_t lsh_find_buckets(uint64_t *keys, size_t documents, const int32_t *order, size_t count, size_t entered,
                        lsh_bucket_record *records, uint32_t *table)
{
    const int all_enter = entered == documents; /* then they can be counted in any order; that of the keys is the fastest */
    uint32_t ends[1 << MAX_BITS] = {0}, last[1 << MAX_BITS], entering[1 << MAX_BITS], sum = 0, total = 0;
    int32_t *members = (int32_t *)keys;
    uint32_t *places = (uint32_t *)keys + documents;
    size_t buckets = 0;
    unsigned bits = 0;
    while (bits < MAX_BITS && count >> bits > PARTITION)
        bits++;
    for (size_t i = 0; i < entered; i++)
        ends[partition_of(keys[all_enter ? i : (size_t)order[i]] * SPREAD, bits)]++;
    memcpy(entering, ends, sizeof ends);
    for (size_t i = entered; i < count; i++)
        ends[partition_of(keys[order[i]] * SPREAD, bits)]++;
    for (size_t p = 0; p < (size_t)1 << bits; p++) { /* from sizes to where each begins */
        const uint32_t size = ends[p];
        ends[p] = sum;
        sum += size;
        last[p] = sum;
    }
    for (size_t i = 0; i < count; i++) { /* and on to where each ends */
        const uint64_t spread = keys[order[i]] * SPREAD;
        const size_t p = partition_of(spread, bits);
        if (ends[p] == last[p])
            return LSH_CHANGED;
        records[ends[p]++] = (lsh_bucket_record){.key = spread, .document = order[i]};
    }
    for (size_t p = 0, begin = 0; p < (size_t)1 << bits; begin = ends[p++]) {
        const uint32_t later = divide_partition(records + begin, ends[p] - begin, entering[p], bits, lsh_bucket_slots(entered),
                                                table, places + begin);
        write_buckets(records + begin, ends[p] - begin, later, table, places + begin, members, &total, places, &buckets);
    }
    return buckets;
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
