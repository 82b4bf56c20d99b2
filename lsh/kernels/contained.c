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

/* A hash that is good in its low bits, too. */
static inline uint64_t mixed(uint64_t begin_hash)
{
    return (begin_hash ^ begin_hash >> 32) * 0xA0761D6478BD642Fu >> 16;
}

void lsh_filter_add(const lsh_filter *filter, uint64_t hash)
{
    filter->words[hash >> 20 & filter->mask] |= bits_of(hash);
}

void lsh_filter_add_begin(const lsh_filter *filter, uint64_t begin_hash) { lsh_filter_add(filter, mixed(begin_hash)); }

/* Write the positions of the shingles that begin as wanted. Each is written, and kept if it does: a branch would often be
 * mispredicted. */
LSH_INLINE size_t find_begins(const lsh_wanted *wanted, const lsh_shingles *shingles, int of_bytes, int has_filter,
                              uint32_t *found)
{
    const lsh_filter begins = wanted->begins;
    const uint64_t limit = wanted->limit;
    size_t count = 0, length;
    for (size_t i = 0; i < shingles->count; i++) {
        const uint8_t *bytes = of_bytes ? shingles->text + i : shingle_at(shingles, i, &length);
        const uint64_t hash = lsh_begin_hash(bytes, of_bytes ? shingles->n : length);
        found[count] = (uint32_t)i;
        count += (size_t)((hash <= limit) | (has_filter && passes(&begins, mixed(hash))));
    }
    return count;
}

static size_t begins(const lsh_wanted *wanted, const lsh_shingles *shingles, uint32_t *found)
{
    const int of_bytes = shingles->starts == NULL;
    if (wanted->limit == UINT64_MAX) {
        for (size_t i = 0; i < shingles->count; i++)
            found[i] = (uint32_t)i;
        return shingles->count;
    }
    if (wanted->begins.words == NULL)
        return of_bytes ? find_begins(wanted, shingles, 1, 0, found) : find_begins(wanted, shingles, 0, 0, found);
    return of_bytes ? find_begins(wanted, shingles, 1, 1, found) : find_begins(wanted, shingles, 0, 1, found);
}

size_t lsh_find_wanted(const lsh_wanted *wanted, const lsh_shingles *shingles, uint32_t *found, uint64_t *hashes)
{
    const lsh_filter filter = wanted->hashes;
    const size_t begun = begins(wanted, shingles, found);
    size_t count = 0;
    for (size_t i = 0; i < begun; i++) {
        size_t length;
        const uint8_t *bytes = shingle_at(shingles, found[i], &length);
        hashes[i] = lsh_shingle_hash(bytes, length);
        if (filter.words != NULL)
            lsh_prefetch(&filter.words[hashes[i] >> 20 & filter.mask]);
    }
    if (filter.words == NULL)
        return begun;
    for (size_t i = 0; i < begun; i++) {
        const uint64_t hash = hashes[i];
        hashes[count] = hash;
        found[count] = found[i];
        count += passes(&filter, hash);
    }
    return count;
}
