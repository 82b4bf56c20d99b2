/* SipHash-1-3: a 64-bit hash of bytes under a secret key of 128 bits.
 *
 * Aumasson and Bernstein, SipHash: a fast short-input PRF, 2012, with one round a block and three at the end, as the
 * hash tables of Python and Rust have it; written from the paper. Without the key, which each process draws at random,
 * nobody can choose bytes that collide. No result depends on it: the hash finds candidates, and their bytes are compared.
 *
 * Words are read in little-endian order; all arithmetic wraps, as intended. Floor 0: no Python, no allocation, no state.
 */
#ifndef LSH_SIPHASH_H
#define LSH_SIPHASH_H

#include "../_murmur3.h"

#define LSH_SIP_ROUND(a, b, c, d)                                                                                      \
    do {                                                                                                               \
        a += b;                                                                                                        \
        c += d;                                                                                                        \
        b = lsh_rotl64(b, 13) ^ a;                                                                                     \
        d = lsh_rotl64(d, 16) ^ c;                                                                                     \
        a = lsh_rotl64(a, 32) + d;                                                                                     \
        c += b;                                                                                                        \
        b = lsh_rotl64(b, 17) ^ c;                                                                                     \
        d = lsh_rotl64(d, 21) ^ a;                                                                                     \
        c = lsh_rotl64(c, 32);                                                                                         \
    } while (0)

/* The hash of `length` bytes at `data`, which may be NULL where length is 0. */
static inline uint64_t lsh_siphash13(const uint8_t *data, size_t length, const uint64_t key[2])
{
    uint64_t a = key[0] ^ 0x736f6d6570736575u, b = key[1] ^ 0x646f72616e646f6du;
    uint64_t c = key[0] ^ 0x6c7967656e657261u, d = key[1] ^ 0x7465646279746573u;
    size_t at = 0;
    for (; length - at >= 8; at += 8) {
        const uint64_t block = lsh_load64(data + at);
        d ^= block;
        LSH_SIP_ROUND(a, b, c, d);
        a ^= block;
    }
    uint64_t last = (uint64_t)length << 56;
    if (at < length) /* the upper part of the last eight bytes is the rest: a load, where a loop would guess its length */
        last |= length >= 8 ? lsh_load64(data + length - 8) >> 8 * (8 - (length - at)) : lsh_load_partial(data, length);
    d ^= last;
    LSH_SIP_ROUND(a, b, c, d);
    a ^= last;
    c ^= 0xff;
    LSH_SIP_ROUND(a, b, c, d);
    LSH_SIP_ROUND(a, b, c, d);
    LSH_SIP_ROUND(a, b, c, d);
    return a ^ b ^ c ^ d;
}

#endif
