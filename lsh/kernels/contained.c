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

/* The hashes of the shingles at some positions; the words of the filter that they need are prefetched. */
LSH_INLINE void hash_found(const lsh_shingles *shingles, int of_bytes, const lsh_filter *filter, const uint32_t *found,
                           size_t count, uint64_t *hashes)
{
    const lsh_shingles own = *shingles;
    const lsh_filter into = *filter;
    for (size_t i = 0; i < count; i++) {
        size_t length = own.n;
        const uint8_t *bytes = of_bytes ? own.text + found[i] : shingle_at(&own, found[i], &length);
        const uint64_t hash = lsh_shingle_hash(bytes, length);
        hashes[i] = hash;
        lsh_prefetch(&into.words[hash >> 20 & into.mask]);
    }
}

size_t lsh_find_wanted(const struct lsh_kernels *kernels, const lsh_wanted *wanted, const lsh_shingles *shingles, uint32_t *found,
                       uint64_t *hashes)
{
    static const uint64_t none = 0;
    const lsh_filter filter = wanted->hashes.words == NULL ? (lsh_filter){(uint64_t *)&none, 0} : wanted->hashes;
    const size_t begun = find_begins(kernels, wanted, shingles, found);
    size_t count = 0;
    if (shingles->starts == NULL)
        hash_found(shingles, 1, &filter, found, begun, hashes);
    else
        hash_found(shingles, 0, &filter, found, begun, hashes);
    if (wanted->hashes.words == NULL)
        return begun;
    for (size_t i = 0; i < begun; i++) {
        const uint64_t hash = hashes[i];
        hashes[count] = hash;
        found[count] = found[i];
        count += (size_t)passes(&filter, hash);
    }
    return count;
}

size_t lsh_keep_known(const lsh_entries *table, uint32_t *found, const uint64_t *hashes, uint32_t *entries, size_t count)
{
    const lsh_entries own = *table;
    uint32_t stops[LSH_SCANNED];
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        lsh_prefetch(&own.directory[hashes[i] >> own.shift]);
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
