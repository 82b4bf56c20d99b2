/* Runs of bytes that are compared: keys of them, and how far two texts agree.
 *
 * Floor 0: no Python, no allocation, no state. Nothing outside the given bytes is read.
 */
#ifndef LSH_PASSAGES_H
#define LSH_PASSAGES_H

#include "../_murmur3.h"
#include "target.h"

/* A key of `length` bytes (1 or more) and a salt under a secret: never 0. Equal bytes have equal keys; where others do, too, their
 * bytes are compared. In passages.c. */
uint64_t lsh_context_key(const uint8_t *text, size_t length, uint64_t salt, const uint64_t secret[2]);

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
