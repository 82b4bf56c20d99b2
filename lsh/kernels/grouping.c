/* Band keys, and the documents that share one. See kernels.h.
 *
 * A corpus is grouped by links: for each document and band the latest earlier document in the same bucket, so that
 * a bucket is a chain and costs 4 bytes a member, whatever its size. A cache, which grows and shrinks, has a
 * table of bins a band instead. Both probe linearly from the low bits of the key, which is a finished mix.
 */
#include "../_murmur3.h"
#include "kernels.h"

#define GOLDEN 0x9E3779B97F4A7C15u /* 2**64 / golden ratio, odd: neighbouring numbers end far apart */

#define DEFINE_BAND_KEYS(name, value_type)                                                                             \
    void name(const value_type *rows, size_t count, size_t k, const size_t *bounds, size_t num_bands, uint64_t *keys,  \
              size_t stride)                                                                                           \
    {                                                                                                                  \
        for (size_t row = 0; row < count; row++)                                                                       \
            for (size_t band = 0; band < num_bands; band++) {                                                          \
                uint64_t sum = lsh_fmix64((band + 1) * GOLDEN);                                                        \
                for (size_t c = bounds[band]; c < bounds[band + 1]; c++)                                               \
                    sum += lsh_fmix64(rows[row * k + c] ^ ((c + 1) * GOLDEN));                                         \
                keys[band * stride + row] = lsh_fmix64(sum);                                                           \
            }                                                                                                          \
    }

DEFINE_BAND_KEYS(lsh_band_keys_32, uint32_t)
DEFINE_BAND_KEYS(lsh_band_keys_64, uint64_t)

void lsh_link_equal(const uint64_t *keys, const int32_t *order, size_t count, size_t entered, lsh_link_slot *slots,
                    size_t mask, int32_t *links)
{
    for (size_t i = 0; i < count; i++) {
        int32_t document = order[i];
        uint64_t key = keys[document];
        size_t at = (size_t)key & mask;
        while (slots[at].document != -1 && slots[at].key != key)
            at = (at + 1) & mask;
        links[document] = slots[at].document;
        if (i < entered)
            slots[at] = (lsh_link_slot){.key = key, .document = document};
    }
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
            continue; /* its home lies behind the gap, so it is still found */
        keys[gap] = keys[at];
        heads[gap] = heads[at];
        heads[at] = LSH_NOTHING;
        gap = at;
    }
}
