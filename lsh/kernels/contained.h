/* Shingles that are looked up among those of items: their hashes, and filters that most of them do not pass.
 *
 * Floor 0: no Python, no allocation, no state. Nothing outside the given bytes is read.
 */
#ifndef LSH_CONTAINED_H
#define LSH_CONTAINED_H

#include "../_murmur3.h"
#include "target.h"

/* A hash of the first 16 bytes of 16 or more, else of the first eight, or of all: cheap, and good in its high bits only. */
LSH_INLINE uint64_t lsh_begin_hash(const uint8_t *bytes, size_t length)
{
    uint64_t value = 0;
    if (length >= 8)
        value = lsh_load64(bytes);
    else
        for (size_t i = 0; i < length; i++)
            value |= (uint64_t)bytes[i] << 8 * i;
    if (length >= 16)
        value += lsh_rotl64(lsh_load64(bytes + 8) * 0xD6E8FEB86659FD93u, 32);
    return value * 0x9E3779B97F4A7C15u;
}

/* A hash of `length` (1 or more) bytes. Of more than 40 it reads 40: where two hashes are equal, the bytes are compared. */
LSH_INLINE uint64_t lsh_shingle_hash(const uint8_t *bytes, size_t length)
{
    uint64_t hash = lsh_begin_hash(bytes, length) + length;
    if (length > 8) /* the products do not wait for each other */
        hash ^= lsh_rotl64(lsh_load64(bytes + length - 8) * 0xD6E8FEB86659FD93u, 29);
    if (length > 24) {
        const size_t step = (length - 16) / 3;
        hash ^= lsh_rotl64(lsh_load64(bytes + 8 + step) * 0xA0761D6478BD642Fu, 43);
        hash ^= lsh_rotl64(lsh_load64(bytes + 8 + 2 * step) * 0xE7037ED1A0B428DBu, 11);
    }
    hash = (hash ^ hash >> 32) * 0x8EBC6AF09C88C6E3u;
    return hash ^ hash >> 32;
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

/* A filter: words of 64 bits, a power of two of them. In it a hash has three bits of a word, and the hash of a beginning one bit. */
typedef struct {
    uint64_t *words;
    uint64_t mask; /* their number minus 1 */
} lsh_filter;

void lsh_filter_add(const lsh_filter *hashes, uint64_t hash);
void lsh_filter_add_begin(const lsh_filter *begins, uint64_t begin_hash);

/* What is looked for: shingles whose first bytes have a hash of `limit` or less, or one in the filter `begins`, and whose own hash
 * is in `hashes`. Without words, `hashes` has all. */
typedef struct {
    uint64_t limit;
    lsh_filter begins, hashes;
} lsh_wanted;

/* Write the positions and the hashes of the wanted shingles, of LSH_SCANNED or fewer; returns how many are. */
enum { LSH_SCANNED = 256 };
size_t lsh_find_wanted(const lsh_wanted *wanted, const lsh_shingles *shingles, uint32_t *found, uint64_t *hashes);

#endif
