/* The bodies of the kernels, written once and compiled for each instruction set.
 *
 * A level's file defines LSH_LEVEL, selects its target and includes this file; the last word of each symbol
 * is the level. Plain C that compilers vectorise: the seeds are in lanes, so there is no reduction over a
 * vector, no tail over positions, and a shingle of any length takes the same path. What does not depend on the
 * seed (mixing a block of the shingle) is done once a shingle:
 *
 *     x86_32:   h = rotl(h ^ mix(block), 13) * 5 + c   for each block of 4 bytes, then the tail, then fmix32
 *     x64_128:  the same over two halves of 16-byte blocks that feed each other
 *
 * The state of all seeds is k words (2 k for 64 bits), which stay in the first-level cache.
 */
#include "../_murmur3.h"
#include "kernels.h"

#define LSH_JOIN_(stem, level) stem##_##level
#define LSH_JOIN(stem, level) LSH_JOIN_(stem, level)
#define LSH_SYMBOL(stem) LSH_JOIN(stem, LSH_LEVEL)
#define LSH_TEXT_(word) #word
#define LSH_TEXT(word) LSH_TEXT_(word)

/* The hash of one shingle for every seed, up to the last xor of the tail and the length, then finished into minima. */
static void murmur3_32(const uint8_t *shingle, size_t length, const uint32_t *restrict seeds, uint32_t *restrict state,
                       size_t k, int32_t *restrict minima)
{
    size_t at = 0;
    const uint32_t *before = seeds;
    for (; length - at >= 4; at += 4) {
        const uint32_t block = lsh_m32_mix(lsh_load32(shingle + at));
        for (size_t s = 0; s < k; s++)
            state[s] = lsh_rotl32(before[s] ^ block, 13) * 5 + LSH_M32_ADD;
        before = state;
    }
    const uint32_t rest = lsh_m32_mix((uint32_t)lsh_load_partial(shingle + at, length - at)) ^ (uint32_t)length;
    for (size_t s = 0; s < k; s++) {
        int32_t hash = (int32_t)lsh_fmix32(before[s] ^ rest);
        minima[s] = hash < minima[s] ? hash : minima[s];
    }
}

static void LSH_SYMBOL(lsh_min_murmur3_32)(const uint8_t *text, const lsh_span *spans, size_t count,
                                           const uint32_t *seeds, uint32_t *state, size_t k, int32_t *minima)
{
    for (size_t i = 0; i < count; i++)
        murmur3_32(text + spans[i].start, spans[i].length, seeds, state, k, minima);
}

static void murmur3_64(const uint8_t *shingle, size_t length, const uint32_t *restrict seeds,
                       uint64_t *restrict state, size_t k, uint64_t *restrict minima)
{
    uint64_t *restrict one = state, *restrict two = state + k;
    size_t at = 0;
    for (size_t s = 0; s < k; s++)
        one[s] = two[s] = seeds[s];
    for (; length - at >= 16; at += 16) {
        const uint64_t low = lsh_m64_mix1(lsh_load64(shingle + at));
        const uint64_t high = lsh_m64_mix2(lsh_load64(shingle + at + 8));
        for (size_t s = 0; s < k; s++) {
            one[s] = (lsh_rotl64(one[s] ^ low, 27) + two[s]) * 5 + LSH_M64_ADD1;
            two[s] = (lsh_rotl64(two[s] ^ high, 31) + one[s]) * 5 + LSH_M64_ADD2;
        }
    }
    const size_t left = length - at;
    const uint64_t low = lsh_m64_mix1(lsh_load_partial(shingle + at, left < 8 ? left : 8)) ^ (uint64_t)length;
    const uint64_t high = (left > 8 ? lsh_m64_mix2(lsh_load_partial(shingle + at + 8, left - 8)) : 0) ^ (uint64_t)length;
    for (size_t s = 0; s < k; s++) {
        uint64_t h1 = (one[s] ^ low) + (two[s] ^ high);
        uint64_t h2 = (two[s] ^ high) + h1;
        uint64_t hash = lsh_fmix64(h1) + lsh_fmix64(h2);
        minima[s] = hash < minima[s] ? hash : minima[s];
    }
}

static void LSH_SYMBOL(lsh_min_murmur3_64)(const uint8_t *text, const lsh_span *spans, size_t count,
                                           const uint32_t *seeds, uint64_t *state, size_t k, uint64_t *minima)
{
    for (size_t i = 0; i < count; i++)
        murmur3_64(text + spans[i].start, spans[i].length, seeds, state, k, minima);
}

static size_t LSH_SYMBOL(lsh_count_equal_32)(const uint32_t *a, const uint32_t *b, size_t k)
{
    uint32_t equal = 0;
    for (size_t s = 0; s < k; s++)
        equal += a[s] == b[s];
    return equal;
}

static size_t LSH_SYMBOL(lsh_count_equal_64)(const uint64_t *a, const uint64_t *b, size_t k)
{
    uint64_t equal = 0;
    for (size_t s = 0; s < k; s++)
        equal += a[s] == b[s];
    return (size_t)equal;
}

const struct lsh_kernels LSH_SYMBOL(lsh_kernels) = {
    .level = LSH_TEXT(LSH_LEVEL),
    .min_murmur3_32 = LSH_SYMBOL(lsh_min_murmur3_32),
    .min_murmur3_64 = LSH_SYMBOL(lsh_min_murmur3_64),
    .count_equal_32 = LSH_SYMBOL(lsh_count_equal_32),
    .count_equal_64 = LSH_SYMBOL(lsh_count_equal_64),
};
