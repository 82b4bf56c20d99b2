/* The hashes of the shingles of a text, and which of them pass a filter. See contained.h. */
#include "contained.h"

static void hashes_of_bytes(const uint8_t *text, size_t count, size_t n, uint64_t *hashes)
{
    for (size_t i = 0; i < count; i++)
        hashes[i] = lsh_shingle_hash(text + i, n);
}

void lsh_shingle_hashes(const uint8_t *text, const size_t *starts, size_t count, size_t n, size_t gap, uint64_t *hashes)
{
    if (starts == NULL) {
        if (n == 8) /* known to the compiler, as this is the default */
            hashes_of_bytes(text, count, 8, hashes);
        else
            hashes_of_bytes(text, count, n, hashes);
        return;
    }
    for (size_t i = 0; i < count; i++)
        hashes[i] = lsh_shingle_hash(text + starts[i], starts[i + n] - gap - starts[i]);
}

static inline uint64_t bits_of(uint64_t hash)
{
    return (uint64_t)1 << (hash & 63) | (uint64_t)1 << (hash >> 6 & 63) | (uint64_t)1 << (hash >> 12 & 63);
}

void lsh_filter_add(const lsh_filter *filter, uint64_t hash)
{
    filter->words[hash >> 20 & filter->mask] |= bits_of(hash);
}

size_t lsh_filter_pass(const lsh_filter *filter, const uint64_t *hashes, size_t count, uint32_t *passed)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        lsh_prefetch(&filter->words[hashes[i] >> 20 & filter->mask]);
    for (size_t i = 0; i < count; i++) {
        const uint64_t bits = bits_of(hashes[i]);
        passed[found] = (uint32_t)i;
        found += (filter->words[hashes[i] >> 20 & filter->mask] & bits) == bits;
    }
    return found;
}
