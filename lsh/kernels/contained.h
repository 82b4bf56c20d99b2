/* Shingles that are looked up among those of items: their hashes, and filters that most of them do not pass.
 *
 * Floor 0: no Python, no allocation, no state. Nothing outside the given bytes is read.
 */
#ifndef LSH_CONTAINED_H
#define LSH_CONTAINED_H

#include "../_murmur3.h"
#include "target.h"

struct lsh_kernels;

/* Factors of the value of a beginning. */
#define LSH_BEGIN_1 0x9E3779B1u
#define LSH_BEGIN_2 0x85EBCA77u
#define LSH_BEGIN_3 0xC2B2AE3Du
#define LSH_BEGIN_4 0x27D4EB2Fu

/* A value of the first 16 bytes of 16 or more, else of the first eight, four, or of all: good in its high bits only. */
LSH_INLINE uint32_t lsh_begin_value(const uint8_t *bytes, size_t length)
{
    uint32_t value = 0;
    if (length < 4)
        for (size_t i = 0; i < length; i++)
            value |= (uint32_t)bytes[i] << 8 * i;
    else
        value = lsh_load32(bytes);
    value *= LSH_BEGIN_1;
    if (length >= 8)
        value += lsh_load32(bytes + 4) * LSH_BEGIN_2;
    if (length >= 16)
        value += lsh_load32(bytes + 8) * LSH_BEGIN_3 + lsh_load32(bytes + 12) * LSH_BEGIN_4;
    return value;
}

/* A hash of `length` (1 or more) bytes. Of more than 40 it reads 40: where two hashes are equal, the bytes are compared. */
LSH_INLINE uint64_t lsh_shingle_hash(const uint8_t *bytes, size_t length)
{
    uint64_t hash = 0;
    if (length >= 8)
        hash = lsh_load64(bytes);
    else
        for (size_t i = 0; i < length; i++)
            hash |= (uint64_t)bytes[i] << 8 * i;
    if (length >= 16)
        hash += lsh_rotl64(lsh_load64(bytes + 8) * 0xD6E8FEB86659FD93u, 32);
    hash = hash * 0x9E3779B97F4A7C15u + length;
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

/* Shingles of n units of a text of `length` bytes. `starts` has where their units begin and, at the end, where the last unit ends,
 * `gap` bytes (0 or 1) before the next one would begin; NULL if units are bytes. */
typedef struct {
    const uint8_t *text;
    const size_t *starts;
    size_t length, count, n, gap;
} lsh_shingles;

/* Write the hashes of all shingles. */
void lsh_hash_shingles(const lsh_shingles *shingles, uint64_t *hashes);

/* A filter of hashes: words of 64 bits, a power of two of them. A hash has three bits of a word. */
typedef struct {
    uint64_t *words;
    uint64_t mask; /* their number minus 1 */
} lsh_filter;

void lsh_filter_add(const lsh_filter *filter, uint64_t hash);

/* A filter of the values of beginnings: words of 32 bits, a power of two of them. A value has one bit. */
typedef struct {
    uint32_t *words;
    uint32_t shift; /* of a value, to the place of its bit */
} lsh_begins;

/* Make it of 2**27 words or fewer, which are all 0. */
lsh_begins lsh_make_begins(uint32_t *words, size_t count);
void lsh_begins_add(const lsh_begins *begins, uint32_t value);

LSH_INLINE size_t lsh_has_begin(const lsh_begins *begins, uint32_t value)
{
    const uint32_t bit = value >> begins->shift;
    return begins->words == NULL ? 0 : begins->words[bit >> 5] >> (bit & 31) & 1;
}

/* A table: of each hash the entries of two words, its low half and a number, in order of the high bits of the hash, then of the
 * low half. */
typedef struct {
    const uint32_t *directory; /* where the entries of each value of the high bits begin, and the end of all */
    const uint32_t *entries;
    int shift; /* of a hash, to its high bits */
} lsh_entries;

/* What is looked for: shingles whose beginning has a value below `limit`, or one in the filter `begins`, and whose hash is in
 * `hashes`. UINT32_MAX is no limit. Without words, `begins` has none, and `hashes` has all. What `table` has of the hashes that are
 * found is prefetched. */
typedef struct {
    uint32_t limit;
    lsh_begins begins;
    lsh_filter hashes;
    const lsh_entries *table; /* or NULL */
} lsh_wanted;

/* Write the positions and the hashes of the wanted shingles, of LSH_SCANNED or fewer; returns how many are. */
enum { LSH_SCANNED = 1024 };
size_t lsh_find_wanted(const struct lsh_kernels *kernels, const lsh_wanted *wanted, const lsh_shingles *shingles, uint32_t *found, uint64_t *hashes);

/* Write the first entry of each of LSH_SCANNED hashes or fewer that has one, and keep what was found with these; returns how many are. */
size_t lsh_keep_known(const lsh_entries *table, uint32_t *found, const uint64_t *hashes, uint32_t *entries, size_t count);

#endif
