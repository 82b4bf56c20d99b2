/* Keys of a segment, sorted, in blocks with checksums: what their sorting and merging, and their search, share. */
#ifndef LSH_SORTED_H
#define LSH_SORTED_H

#include "../_murmur3.h"
#include "kernels.h"
#include "target.h"

static inline uint64_t block_sum(const lsh_blocks *blocks, size_t block)
{
    const size_t start = block * LSH_BLOCK, left = blocks->size - start;
    uint64_t sum[2];
    blocks->hash(blocks->file + start, left < LSH_BLOCK ? left : LSH_BLOCK, 0, sum);
    return sum[0];
}

/* The first bad block of some bytes, SIZE_MAX if there is none. */
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

static inline unsigned length_of(uint64_t value) { return lsh_highest_bit(value | 1) + 1; }
static inline uint64_t key_at(const lsh_sorted *s, size_t place) { return lsh_load64(s->keys + 8 * place); }
static inline uint32_t number_at(const lsh_sorted *s, size_t place) { return lsh_load32(s->numbers + 4 * place); }

#endif
