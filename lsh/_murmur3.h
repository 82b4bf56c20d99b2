/* MurmurHash3: the three published variants, and the steps they are made of.
 *
 * MurmurHash3 is by Austin Appleby, who placed it in the public domain; this implementation is written
 * from the algorithm. Words are read byte by byte in little-endian order, so the result depends
 * neither on alignment nor on the byte order of the machine (compilers turn the reads into one load).
 * All arithmetic on unsigned words wraps; every wrap-around here is intended.
 *
 * The steps are inline because the kernels apply the seed-independent ones (the mixing of a block)
 * once for many seeds. Floor 0: no Python, no allocation, no state.
 */
#ifndef LSH_MURMUR3_H
#define LSH_MURMUR3_H

#include <stddef.h>
#include <stdint.h>

/* x86_32 */
#define LSH_M32_C1 0xcc9e2d51u
#define LSH_M32_C2 0x1b873593u
#define LSH_M32_ADD 0xe6546b64u
/* x64_128 */
#define LSH_M64_C1 0x87c37b91114253d5u
#define LSH_M64_C2 0x4cf5ad432745937fu
#define LSH_M64_ADD1 0x52dce729u
#define LSH_M64_ADD2 0x38495ab5u

static inline uint32_t lsh_rotl32(uint32_t x, int r) { return (x << r) | (x >> (32 - r)); }
static inline uint64_t lsh_rotl64(uint64_t x, int r) { return (x << r) | (x >> (64 - r)); }

static inline uint32_t lsh_load32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t lsh_load64(const uint8_t *p)
{
    return (uint64_t)lsh_load32(p) | (uint64_t)lsh_load32(p + 4) << 32;
}

/* The `count` (0 to 8) bytes at p as the low bytes of a word; nothing is read past them. */
static inline uint64_t lsh_load_partial(const uint8_t *p, size_t count)
{
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++)
        word |= (uint64_t)p[i] << (8 * i);
    return word;
}

static inline uint32_t lsh_fmix32(uint32_t h)
{
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    return h ^ h >> 16;
}

static inline uint64_t lsh_fmix64(uint64_t h)
{
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdu;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

static inline uint32_t lsh_m32_mix(uint32_t k) { return lsh_rotl32(k * LSH_M32_C1, 15) * LSH_M32_C2; }
static inline uint64_t lsh_m64_mix1(uint64_t k) { return lsh_rotl64(k * LSH_M64_C1, 31) * LSH_M64_C2; }
static inline uint64_t lsh_m64_mix2(uint64_t k) { return lsh_rotl64(k * LSH_M64_C2, 33) * LSH_M64_C1; }

/* The whole hashes: `length` bytes at `data`; data may be NULL where length is 0. */
uint32_t lsh_murmur3_x86_32(const uint8_t *data, size_t length, uint32_t seed);
void lsh_murmur3_x86_128(const uint8_t *data, size_t length, uint32_t seed, uint32_t out[4]);
void lsh_murmur3_x64_128(const uint8_t *data, size_t length, uint32_t seed, uint64_t out[2]);

#endif
