/* Runs of bytes that are compared: keys of them, and how far two texts agree. Inline, as they are called for each anchor.
 *
 * Floor 0: no Python, no allocation, no state. Nothing outside the given bytes is read.
 */
#ifndef LSH_PASSAGES_H
#define LSH_PASSAGES_H

#include "../_murmur3.h"
#include "target.h"

static inline uint64_t lsh_folded(uint64_t a, uint64_t b)
{
    const uint64_t factor[2] = {a, 0};
    const lsh_wide product = lsh_wide_product(factor, b);
    return lsh_wide_top(product) ^ a * b;
}

/* A key of `length` bytes (1 or more) and a salt under a secret: never 0. Each word is multiplied with what came before, and both
 * halves of the product are used. Equal bytes have equal keys; where others do, too, their bytes are compared. */
static inline uint64_t lsh_context_key(const uint8_t *text, size_t length, uint64_t salt, const uint64_t secret[2])
{
    uint64_t key = lsh_folded(secret[0] ^ salt, secret[1] ^ length), a, b;
    size_t at = 0;
    for (; length - at > 16; at += 16)
        key = lsh_folded(lsh_load64(text + at) ^ secret[1], lsh_load64(text + at + 8) ^ key);
    if (length >= 16) {
        a = lsh_load64(text + length - 16);
        b = lsh_load64(text + length - 8);
    } else {
        a = length > 8 ? lsh_load64(text) : 0;
        b = length >= 8 ? lsh_load64(text + length - 8) : lsh_load_partial(text, length);
    }
    key = lsh_folded(a ^ secret[1], b ^ key);
    key = lsh_folded(key ^ secret[0], secret[1]);
    return key ? key : 1;
}

/* How many bytes from `a` and from `b` on are equal, at most `limit`. */
static inline size_t lsh_common_after(const uint8_t *a, const uint8_t *b, size_t limit)
{
    size_t at = 0;
    for (; limit - at >= 8; at += 8) {
        const uint64_t differs = lsh_load64(a + at) ^ lsh_load64(b + at);
        if (differs)
            return at + lsh_lowest_bit(differs) / 8;
    }
    while (at < limit && a[at] == b[at])
        at++;
    return at;
}

/* How many bytes before `a` and before `b` are equal, at most `limit`. */
static inline size_t lsh_common_before(const uint8_t *a, const uint8_t *b, size_t limit)
{
    size_t at = 0;
    for (; limit - at >= 8; at += 8) {
        const uint64_t differs = lsh_load64(a - at - 8) ^ lsh_load64(b - at - 8);
        if (differs)
            return at + (63 - lsh_highest_bit(differs)) / 8;
    }
    while (at < limit && *(a - at - 1) == *(b - at - 1))
        at++;
    return at;
}

#endif
