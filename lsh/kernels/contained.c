/* The hashes of the shingles of a text, and which of them pass filters. See contained.h. */
#include "kernels.h"

static inline const uint8_t *shingle_at(const lsh_shingles *shingles, size_t i, size_t *length)
{
    if (shingles->starts == NULL) {
        *length = shingles->n;
        return shingles->text + i;
    }
    *length = shingles->starts[i + shingles->n] - shingles->gap - shingles->starts[i];
    return shingles->text + shingles->starts[i];
}

void lsh_hash_shingles(const lsh_shingles *shingles, uint64_t *hashes)
{
    for (size_t i = 0; i < shingles->count; i++) {
        size_t length;
        const uint8_t *bytes = shingle_at(shingles, i, &length);
        hashes[i] = lsh_shingle_hash(bytes, length);
    }
}

static inline uint64_t bits_of(uint64_t hash)
{
    return (uint64_t)1 << (hash & 63) | (uint64_t)1 << (hash >> 6 & 63) | (uint64_t)1 << (hash >> 12 & 63);
}

static inline int passes(const lsh_filter *filter, uint64_t hash)
{
    return (filter->words[hash >> 20 & filter->mask] & bits_of(hash)) == bits_of(hash);
}

void lsh_filter_add(const lsh_filter *filter, uint64_t hash)
{
    filter->words[hash >> 20 & filter->mask] |= bits_of(hash);
}

lsh_begins lsh_make_begins(uint32_t *words, size_t count)
{
    lsh_begins begins = {words, 27};
    for (; count > 1; count /= 2)
        begins.shift--;
    return begins;
}

void lsh_begins_add(const lsh_begins *begins, uint32_t value)
{
    const uint32_t bit = value >> begins->shift;
    begins->words[bit >> 5] |= (uint32_t)1 << (bit & 31);
}

static size_t find_begins(const struct lsh_kernels *kernels, const lsh_wanted *wanted, const lsh_shingles *shingles, uint32_t *found)
{
    const lsh_begins begins = wanted->begins;
    size_t count = 0;
    if (wanted->limit < UINT32_MAX && shingles->starts == NULL && shingles->n >= 4)
        return kernels->find_begins(wanted, shingles, found);
    for (size_t i = 0; i < shingles->count; i++) {
        found[count] = (uint32_t)i; /* it is kept or not: a branch would often be mispredicted */
        if (wanted->limit < UINT32_MAX) {
            size_t length;
            const uint8_t *bytes = shingle_at(shingles, i, &length);
            const uint32_t value = lsh_begin_value(bytes, length);
            count += (size_t)(value < wanted->limit) | lsh_has_begin(&begins, value);
        } else {
            count++;
        }
    }
    return count;
}

enum { AHEAD = 64 }; /* shingles whose words of the filter are prefetched before they are tested */

LSH_INLINE uint64_t hash_found(const lsh_shingles *shingles, int of_bytes, uint32_t i)
{
    size_t length = shingles->n;
    const uint8_t *bytes = of_bytes ? shingles->text + i : shingle_at(shingles, i, &length);
    return lsh_shingle_hash(bytes, length);
}

/* Keep those of some positions whose hashes pass the filter, and write these; prefetch what the table has of them. Each of these
 * waits for memory, so they are done for later and later shingles in turn. */
LSH_INLINE size_t keep_wanted(const lsh_shingles *shingles, int of_bytes, const lsh_wanted *wanted, uint32_t *found, size_t begun,
                              uint64_t *hashes)
{
    const lsh_shingles own = *shingles;
    const lsh_filter into = wanted->hashes;
    const lsh_entries *table = wanted->table;
    size_t count = 0, before = 0;
    for (size_t first = 0; first < begun + AHEAD; first += AHEAD) {
        const size_t stop = first + AHEAD < begun ? first + AHEAD : begun, tested = first < AHEAD ? 0 : first - AHEAD;
        for (size_t i = first; i < stop; i++) {
            hashes[i] = hash_found(&own, of_bytes, found[i]);
            lsh_prefetch(&into.words[hashes[i] >> 20 & into.mask]);
        }
        if (table)
            for (size_t i = before; i < count; i++)
                lsh_prefetch(table->entries + 2 * (size_t)table->directory[hashes[i] >> table->shift]);
        before = count;
        for (size_t i = tested; i < first && i < begun; i++) {
            const uint64_t earlier = hashes[i];
            found[count] = found[i];
            hashes[count] = earlier;
            count += (size_t)passes(&into, earlier);
        }
        if (table)
            for (size_t i = before; i < count; i++)
                lsh_prefetch(&table->directory[hashes[i] >> table->shift]);
    }
    return count;
}

size_t lsh_find_wanted(const struct lsh_kernels *kernels, const lsh_wanted *wanted, const lsh_shingles *shingles, uint32_t *found,
                       uint64_t *hashes)
{
    const size_t begun = find_begins(kernels, wanted, shingles, found);
    if (wanted->hashes.words == NULL) {
        for (size_t i = 0; i < begun; i++)
            hashes[i] = hash_found(shingles, shingles->starts == NULL, found[i]);
        return begun;
    }
    if (shingles->starts == NULL)
        return keep_wanted(shingles, 1, wanted, found, begun, hashes);
    return keep_wanted(shingles, 0, wanted, found, begun, hashes);
}

size_t lsh_keep_known(const lsh_entries *table, uint32_t *found, const uint64_t *hashes, uint32_t *entries, size_t count)
{
    const lsh_entries own = *table;
    uint32_t stops[LSH_SCANNED];
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        entries[i] = own.directory[hashes[i] >> own.shift];
        stops[i] = own.directory[(hashes[i] >> own.shift) + 1];
        lsh_prefetch(own.entries + 2 * (size_t)entries[i]);
    }
    for (size_t i = 0; i < count; i++) {
        const uint32_t low = (uint32_t)hashes[i];
        size_t at = entries[i], stop = stops[i];
        while (stop - at > 8) { /* the first one that is not below is before or at the place where `at` ends */
            const size_t middle = at + (stop - at) / 2;
            if (own.entries[2 * middle] < low)
                at = middle + 1;
            else
                stop = middle;
        }
        while (at < stops[i] && own.entries[2 * at] < low)
            at++;
        entries[known] = (uint32_t)at;
        found[known] = found[i];
        known += at < stops[i] && own.entries[2 * at] == low;
    }
    return known;
}
