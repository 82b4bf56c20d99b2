/* Shingles that are looked up among those of items: their hashes, and a filter that most of them do not pass.
 *
 * Floor 0: no Python, no allocation, no state. Nothing outside the given bytes is read.
 */
#ifndef LSH_CONTAINED_H
#define LSH_CONTAINED_H

#include "../_murmur3.h"
#include "target.h"

/* The first `length` bytes (1 to 8) as a number. */
static inline uint64_t lsh_few_bytes(const uint8_t *bytes, size_t length)
{
    uint64_t value = 0;
    if (length == 8)
        return lsh_load64(bytes);
    for (size_t i = 0; i < length; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

/* A hash of `length` (1 or more) bytes. Of more than 32 it reads 32: where two hashes are equal, the bytes are compared. */
static inline uint64_t lsh_shingle_hash(const uint8_t *bytes, size_t length)
{
    uint64_t hash = length * 0x9E3779B97F4A7C15u, last;
    if (length <= 8) {
        last = lsh_few_bytes(bytes, length);
    } else {
        hash = (hash ^ lsh_load64(bytes)) * 0xD6E8FEB86659FD93u;
        hash ^= hash >> 32;
        last = lsh_load64(bytes + length - 8);
    }
    if (length > 16) {
        const size_t step = (length - 8) / 3;
        hash = (hash ^ lsh_load64(bytes + step)) * 0xA0761D6478BD642Fu;
        hash ^= hash >> 32;
        hash = (hash ^ lsh_load64(bytes + 2 * step)) * 0xE7037ED1A0B428DBu;
        hash ^= hash >> 32;
    }
    hash = (hash ^ last) * 0x8EBC6AF09C88C6E3u;
    hash ^= hash >> 32;
    hash *= 0x589965CC75374CC3u;
    return hash ^ hash >> 29;
}

/* Write the hashes of `count` shingles of n units. `starts` has where their units begin and, at the end, where the last unit ends,
 * `gap` bytes (0 or 1) before the next one would begin; NULL if units are bytes. */
void lsh_shingle_hashes(const uint8_t *text, const size_t *starts, size_t count, size_t n, size_t gap, uint64_t *hashes);

/* A filter: words of 64 bits, a power of two of them, in each of which a hash has three bits. */
typedef struct {
    uint64_t *words;
    uint64_t mask; /* their number minus 1 */
} lsh_filter;

void lsh_filter_add(const lsh_filter *filter, uint64_t hash);

/* Write the positions of the hashes that pass, LSH_SCANNED or fewer; returns how many do. All that were added do. */
enum { LSH_SCANNED = 256 };
size_t lsh_filter_pass(const lsh_filter *filter, const uint64_t *hashes, size_t count, uint32_t *passed);

#endif
