/* The hashes of the shingles of a text, and which of them pass filters. See contained.h. */
#include "contained.h"

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

void lsh_filter_add_begin(const lsh_filter *begins, uint64_t begin_hash)
{
    begins->words[begin_hash >> 30 & begins->mask] |= (uint64_t)1 << (begin_hash >> 24 & 63);
}

static inline size_t has_begin(const lsh_filter *begins, uint64_t begin_hash)
{
    return begins->words[begin_hash >> 30 & begins->mask] >> (begin_hash >> 24 & 63) & 1;
}

/* Write the positions of the shingles that begin as wanted. Each is written, and kept if it does: a branch would often be
 * mispredicted. */
LSH_INLINE size_t find_begins(const lsh_wanted *wanted, const lsh_shingles *shingles, int of_bytes, uint32_t *found)
{
    const lsh_shingles own = *shingles;
    const lsh_filter begins = wanted->begins;
    const uint64_t limit = wanted->limit;
    size_t count = 0, length = own.n;
    for (size_t i = 0; i < own.count; i++) {
        const uint8_t *bytes = of_bytes ? own.text + i : shingle_at(&own, i, &length);
        const uint64_t hash = lsh_begin_hash(bytes, length);
        found[count] = (uint32_t)i;
        count += (size_t)(hash <= limit) | has_begin(&begins, hash);
    }
    return count;
}

static size_t begins(const lsh_wanted *wanted, const lsh_shingles *shingles, uint32_t *found)
{
    if (wanted->limit < UINT64_MAX)
        return shingles->starts == NULL ? find_begins(wanted, shingles, 1, found) : find_begins(wanted, shingles, 0, found);
    for (size_t i = 0; i < shingles->count; i++)
        found[i] = (uint32_t)i;
    return shingles->count;
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

size_t lsh_find_wanted(const lsh_wanted *wanted, const lsh_shingles *shingles, uint32_t *found, uint64_t *hashes)
{
    static const uint64_t none = 0;
    const lsh_filter filter = wanted->hashes.words == NULL ? (lsh_filter){(uint64_t *)&none, 0} : wanted->hashes;
    const size_t begun = begins(wanted, shingles, found);
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
