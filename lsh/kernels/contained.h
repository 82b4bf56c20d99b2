/* Shingles that are looked up among those of items: their hashes, and filters that most of them do not pass.
 *
 * Floor 0: no Python, no allocation, no state. Nothing outside the given bytes is read.
 */
#ifndef LSH_CONTAINED_H
#define LSH_CONTAINED_H

#include "../_murmur3.h"
#include "target.h"

/* A hash of the first eight of `length` (1 or more) bytes, or of all: cheap, and good in its high bits only. */
static inline uint64_t lsh_begin_hash(const uint8_t *bytes, size_t length)
{
    uint64_t value = 0;
    if (length >= 8)
        value = lsh_load64(bytes);
    else
        for (size_t i = 0; i < length; i++)
            value |= (uint64_t)bytes[i] << 8 * i;
    return value * 0x9E3779B97F4A7C15u;
}

/* A hash of `length` (1 or more) bytes. Of more than 32 it reads 32: where two hashes are equal, the bytes are compared. */
static inline uint64_t lsh_shingle_hash(const uint8_t *bytes, size_t length)
{
    uint64_t hash = lsh_begin_hash(bytes, length) ^ length;
    hash = (hash ^ hash >> 32) * 0xD6E8FEB86659FD93u;
    if (length > 16) {
        const size_t step = (length - 8) / 3;
        hash = (hash ^ hash >> 32 ^ lsh_load64(bytes + step)) * 0xA0761D6478BD642Fu;
        hash = (hash ^ hash >> 32 ^ lsh_load64(bytes + 2 * step)) * 0xE7037ED1A0B428DBu;
    }
    if (length > 8)
        hash = (hash ^ hash >> 32 ^ lsh_load64(bytes + length - 8)) * 0x8EBC6AF09C88C6E3u;
    hash = (hash ^ hash >> 32) * 0x589965CC75374CC3u;
    return hash ^ hash >> 29;
}

/* Shingles of n units of a text. `starts` has where their units begin and, at the end, where the last unit ends, `gap` bytes (0 or
 * 1) before the next one would begin; NULL if units are bytes. */
typedef struct {
    const uint8_t *text;
    const size_t *starts;
    size_t count, n, gap;
} lsh_shingles;

/* Write the hashes of all shingles. */
void lsh_hash_shingles(const lsh_shingles *shingles, uint64_t *hashes);

/* A filter: words of 64 bits, a power of two of them, in each of which a hash has three bits. */
typedef struct {
    uint64_t *words;
    uint64_t mask; /* their number minus 1 */
} lsh_filter;

void lsh_filter_add(const lsh_filter *filter, uint64_t hash);
void lsh_filter_add_begin(const lsh_filter *filter, uint64_t begin_hash);

/* What is looked for: shingles whose first bytes have a hash of `limit` or less, or one that passes `begins`, and whose own hash
 * passes `hashes`. Either filter may be without words: none passes `begins` then, and all pass `hashes`. */
typedef struct {
    uint64_t limit;
    lsh_filter begins, hashes;
} lsh_wanted;

/* Write the positions and the hashes of the wanted shingles, of LSH_SCANNED or fewer; returns how many are. */
enum { LSH_SCANNED = 256 };
size_t lsh_find_wanted(const lsh_wanted *wanted, const lsh_shingles *shingles, uint32_t *found, uint64_t *hashes);

#endif
