/* The bodies of the kernels, written once and compiled for each instruction set.
 *
 * A level's file selects its target, defines LSH_LEVEL and the vectors below, and includes this file; the last word of
 * each symbol is the level, and every level gives the same bits.
 *
 *   V   LANES_32 words of 32 bits: v_load v_store v_one v_add v_xor v_xor3 v_and v_mul v_shr v_rotl v_min_s
 *       v_min_u; v_mul16, the product of the high halves, modulo 2**16, in the high half, for operands whose low halves are 0;
 *       v_words(p), the words at p, p + 1, p + 2 ..., which reads at most 32 bytes behind the last; v_less(a, b), a bit a lane
 *       where a < b, unsigned; v_pack(p, a, mask), which stores the lanes of a whose bit is set at p, p + 1 ..., and may write
 *       a whole vector; v_bits(words, a, shift), a bit a lane: bit (a >> shift) of an array of words
 *   W   LANES_64 words of 64 bits: w_widen (of uint32) w_load w_store w_one w_add w_xor w_and w_shr w_mul (by a constant)
 *       w_words(p), like v_words, within 16 bytes; w_min, in an order that W_FLIP (a constant to xor with) turns into that of uint64;
 *       w_pack, like v_pack
 *   equal_lanes(p, a), a bit for each of the eight words of 64 bits at p (aligned) that is a
 *
 * This file has the parts that the schemes share: the bytes of a tile of shingles as words, and the table that drops the repeated ones. It remembers
 * the last shingle of each slot, so it may miss a repeat, which costs time and changes nothing, as a minimum does not mind repeats.
 * body_murmur3.h and body_fss.h, included below, have one scheme each, body_keys.h the band keys, body_sets.h the exact
 * sets and body_anchors.h the anchors of passages.
 */
#include <string.h>

#include "../_murmur3.h"
#include "kernels.h"
#include "target.h"

#define LSH_JOIN_(stem, level) stem##_##level
#define LSH_JOIN(stem, level) LSH_JOIN_(stem, level)
#define LSH_SYMBOL(stem) LSH_JOIN(stem, LSH_LEVEL)
#define LSH_TEXT_(word) #word
#define LSH_TEXT(word) LSH_TEXT_(word)

enum { WORTH_DROPPING = 256, READ_ON = 64 };

/* Store `word` `count` times or more, in whole vectors. */
static void fill(uint32_t *to, size_t count, uint32_t word)
{
    for (size_t i = 0; i < count; i += LANES_32)
        v_store(to + i, v_one(word));
}

/* ---- the shingles of a tile as words ---- */

/* Whether the shingles are byte ranges of one length that fits into two words. */
static int is_fixed(const lsh_document *document)
{
    return document->unit == LSH_BYTE && document->n <= LSH_MAX_FIXED && document->length >= document->n;
}

/* The bytes of `count` shingles of n bytes from `first` on, with READ_ON more that can be read: in the text itself, or at its end in
 * a copy with zeros behind it. */
static const uint8_t *take_bytes(const lsh_document *document, size_t first, size_t count, lsh_scratch *scratch)
{
    size_t size = count + document->n - 1;
    if (document->length - first >= size + READ_ON)
        return document->text + first;
    memcpy(scratch->bytes, document->text + first, size);
    memset(scratch->bytes + size, 0, READ_ON);
    return scratch->bytes;
}

/* The bytes of each shingle (n <= 15) as one or two little-endian words; whole vectors are written. */
static void take_keys(const uint8_t *bytes, size_t n, size_t count, lsh_scratch *restrict scratch)
{
    const W low_mask = w_one(n >= 8 ? UINT64_MAX : ((uint64_t)1 << (8 * n)) - 1);
    const W high_mask = w_one(n > 8 ? ((uint64_t)1 << (8 * (n - 8))) - 1 : 0);
    for (size_t i = 0; i < count; i += LANES_64)
        w_store(scratch->low + i, w_and(w_words(bytes + i), low_mask));
    for (size_t i = 0; i < count; i += LANES_64)
        w_store(scratch->high + i, w_and(w_words(bytes + i + 8), high_mask));
}

/* A bit for each of `count` (at most 8) keys from `first` on that the table of seen ones does not hold; it holds them then. */
LSH_INLINE uint8_t enter_seen(const int wide, const size_t count, size_t first, lsh_scratch *restrict scratch)
{
    const uint64_t *low = scratch->low + first, *high = scratch->high + first;
    uint32_t fresh = 0;
    LSH_UNROLL for (size_t i = 0; i < count; i++) {
        const uint64_t mixed = wide ? low[i] ^ high[i] * 0xc2b2ae3d27d4eb4fu : low[i];
        const size_t slot = (mixed * 0x9E3779B97F4A7C15u) >> 53; /* 11 bits: LSH_SEEN */
        uint32_t differs = scratch->seen_low[slot] != low[i];
        scratch->seen_low[slot] = low[i];
        if (wide) {
            differs |= scratch->seen_high[slot] != high[i];
            scratch->seen_high[slot] = high[i];
        }
        fresh |= differs << i;
    }
    return (uint8_t)fresh;
}

/* Drop the keys that the table of seen ones holds; returns how many are left. Two loops: if the loop that packs
 * also did the lookups, each lookup would wait for the position of the keys before it. */
LSH_INLINE size_t drop_seen(const int wide, size_t count, lsh_scratch *restrict scratch)
{
    uint64_t *low = scratch->low, *high = scratch->high;
    uint8_t *fresh = scratch->fresh;
    size_t kept = 0, i = 0;
    for (; i + 8 <= count; i += 8)
        fresh[i / 8] = enter_seen(wide, 8, i, scratch);
    if (i < count)
        fresh[i / 8] = 0;
    for (; i < count; i++)
        fresh[i / 8] |= (uint8_t)(enter_seen(wide, 1, i, scratch) << i % 8);
    for (i = 0; i < count; i += LANES_64) {
        const uint32_t mask = (uint32_t)fresh[i / 8] >> i % 8 & ((1u << LANES_64) - 1);
        w_pack(low + kept, w_load(low + i), mask);
        if (wide)
            w_pack(high + kept, w_load(high + i), mask);
        kept += LANES_64 == 1 ? mask : lsh_count_ones(mask); /* which not every CPU has */
    }
    return kept;
}

/* Fill the table of seen shingles with keys that belong to other slots: 0 belongs to slot 0, 1 to another. */
static void forget_seen(size_t n, lsh_scratch *scratch)
{
    memset(scratch->seen_low, 0, sizeof scratch->seen_low);
    if (n > 8)
        memset(scratch->seen_high, 0, sizeof scratch->seen_high);
    scratch->seen_low[0] = 1;
}

/* Walk over the tiles of a text of fixed-length shingles. */
typedef struct {
    size_t next, shingles;
    int drop;
} tiles;

static tiles begin_tiles(const lsh_document *document, lsh_scratch *scratch)
{
    tiles walk = {0, document->length - document->n + 1, 0};
    walk.drop = walk.shingles >= WORTH_DROPPING;
    if (walk.drop)
        forget_seen(document->n, scratch);
    return walk;
}

/* The keys of the next tile that brings any; returns how many, 0 at the end. */
static size_t next_tile(const lsh_document *document, tiles *walk, lsh_scratch *scratch)
{
    size_t kept = 0;
    while (kept == 0 && walk->next < walk->shingles) {
        size_t count = walk->shingles - walk->next;
        count = count < LSH_TILE ? count : LSH_TILE;
        take_keys(take_bytes(document, walk->next, count, scratch), document->n, count, scratch);
        kept = count;
        if (walk->drop)
            kept = document->n > 8 ? drop_seen(1, count, scratch) : drop_seen(0, count, scratch);
        if (walk->next == 0 && kept * 100 > count * 98)
            walk->drop = 0; /* few repeats: the table costs more than it saves */
        walk->next += count;
    }
    return kept;
}

#include "body_murmur3.h"
#include "body_fss.h"
#include "body_keys.h"
#include "body_sets.h"
#include "body_anchors.h"

/* ---- the beginnings of shingles: contained.h ---- */

static inline V begin_values(const uint8_t *text, size_t n)
{
    V value = v_mul(v_words(text), v_one(LSH_BEGIN_1));
    if (n >= 8)
        value = v_add(value, v_mul(v_words(text + 4), v_one(LSH_BEGIN_2)));
    if (n >= 16) {
        value = v_add(value, v_mul(v_words(text + 8), v_one(LSH_BEGIN_3)));
        value = v_add(value, v_mul(v_words(text + 12), v_one(LSH_BEGIN_4)));
    }
    return value;
}

static size_t LSH_SYMBOL(lsh_find_begins)(const lsh_wanted *wanted, const lsh_shingles *shingles, uint32_t *found)
{
    static const uint32_t lanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const lsh_shingles own = *shingles;
    const lsh_begins begins = wanted->begins;
    const uint32_t limit = wanted->limit;
    const size_t readable = own.length > READ_ON ? own.length - READ_ON : 0, end = readable < own.count ? readable : own.count;
    size_t i = 0, count = 0;
    for (; i < end / LANES_32 * LANES_32; i += LANES_32) {
        const V values = begin_values(own.text + i, own.n);
        uint32_t mask = v_less(values, v_one(limit));
        if (begins.words != NULL)
            mask |= v_bits(begins.words, values, begins.shift);
        v_pack(found + count, v_add(v_load(lanes), v_one((uint32_t)i)), mask);
        count += lsh_count_ones(mask);
    }
    for (; i < own.count; i++) {
        const uint32_t value = lsh_begin_value(own.text + i, own.n);
        found[count] = (uint32_t)i;
        count += (size_t)(value < limit) | lsh_has_begin(&begins, value);
    }
    return count;
}

/* ---- comparing ---- */

LSH_INLINE size_t count_equal_bytes(const uint8_t *a, const uint8_t *b, const size_t k)
{
    size_t equal = 0;
    for (size_t first = 0; first < k; first += 128) {
        const size_t count = k - first < 128 ? k - first : 128;
        uint8_t part = 0; /* as wide as the compared values, for no more of them than it can count */
        for (size_t s = first; s < first + count; s++)
            part = (uint8_t)(part + (a[s] == b[s]));
        equal += part;
    }
    return equal;
}

static size_t LSH_SYMBOL(lsh_count_equal_8)(const uint8_t *a, const uint8_t *b, size_t k)
{
    return count_equal_bytes(a, b, k);
}

static inline void prefetch_row(const uint8_t *row, size_t k)
{
    lsh_prefetch(row);
    lsh_prefetch(row + k - 1);
}

enum { AHEAD = 16 }; /* rows that are prefetched while one is compared */

LSH_INLINE size_t filter_bytes(const uint8_t *matrix, const size_t k, size_t least, size_t document, int32_t *others,
                               int32_t *along, size_t count)
{
    const uint8_t *row = matrix + document * k;
    size_t kept = 0;
    for (size_t i = 0; i < count && i < AHEAD; i++)
        prefetch_row(matrix + (size_t)others[i] * k, k);
    for (size_t i = 0; i < count; i++) {
        const int32_t other = others[i];
        if (i + AHEAD < count)
            prefetch_row(matrix + (size_t)others[i + AHEAD] * k, k);
        others[kept] = other;
        along[kept] = along[i];
        kept += count_equal_bytes(row, matrix + (size_t)other * k, k) >= least;
    }
    return kept;
}

static size_t LSH_SYMBOL(lsh_filter_8)(const uint8_t *matrix, size_t k, size_t least, size_t document, int32_t *others,
                                       int32_t *along, size_t count)
{
    if (k == 128) /* the usual size, for which the loops are unrolled */
        return filter_bytes(matrix, 128, least, document, others, along, count);
    return filter_bytes(matrix, k, least, document, others, along, count);
}

LSH_INLINE size_t find_similar(const uint64_t *row, const uint64_t *rows, const size_t words, const size_t bits,
                               size_t most, size_t count)
{
    for (size_t i = 0; i < count; i++, rows += words * bits) {
        size_t differing = 0;
        for (size_t w = 0; w < words; w++) {
            uint64_t differs = 0;
            for (size_t b = w * bits; b < (w + 1) * bits; b++)
                differs |= row[b] ^ rows[b];
            differing += lsh_count_ones_64(differs);
        }
        if (differing <= most)
            return i;
    }
    return count;
}

static size_t LSH_SYMBOL(lsh_find_similar)(const uint64_t *row, const uint64_t *rows, size_t words, size_t bits,
                                           size_t most, size_t count)
{
    if (words == 2 && bits == 2) /* the usual sizes, for which the loops are unrolled */
        return find_similar(row, rows, 2, 2, most, count);
    if (words == 2 && bits == 4)
        return find_similar(row, rows, 2, 4, most, count);
    if (words == 4 && bits == 4)
        return find_similar(row, rows, 4, 4, most, count);
    return find_similar(row, rows, words, bits, most, count);
}

/* The count is as wide as the compared values, so that a vector holds equally many of both. */
#define DEFINE_COUNT_EQUAL(name, value_type)                                                                           \
    static size_t name(const value_type *a, const value_type *b, size_t k)                                             \
    {                                                                                                                  \
        value_type equal = 0;                                                                                          \
        for (size_t s = 0; s < k; s++)                                                                                 \
            equal += a[s] == b[s];                                                                                     \
        return (size_t)equal;                                                                                          \
    }

DEFINE_COUNT_EQUAL(LSH_SYMBOL(lsh_count_equal_32), uint32_t)
DEFINE_COUNT_EQUAL(LSH_SYMBOL(lsh_count_equal_64), uint64_t)

const struct lsh_kernels LSH_SYMBOL(lsh_kernels) = {
    .level = LSH_TEXT(LSH_LEVEL),
    .min_murmur3_32 = LSH_SYMBOL(lsh_min_murmur3_32),
    .min_murmur3_64 = LSH_SYMBOL(lsh_min_murmur3_64),
    .fss = LSH_SYMBOL(lsh_fss),
    .count_equal_8 = LSH_SYMBOL(lsh_count_equal_8),
    .count_equal_32 = LSH_SYMBOL(lsh_count_equal_32),
    .count_equal_64 = LSH_SYMBOL(lsh_count_equal_64),
    .pack_low_bits = lsh_pack_low_bits,
    .find_similar = LSH_SYMBOL(lsh_find_similar),
    .filter_8 = LSH_SYMBOL(lsh_filter_8),
    .band_keys_32 = LSH_SYMBOL(lsh_band_keys_32),
    .band_keys_64 = LSH_SYMBOL(lsh_band_keys_64),
    .set_add_keys = LSH_SYMBOL(lsh_set_add_keys),
    .set_add_spans = LSH_SYMBOL(lsh_set_add_spans),
    .set_split_keys = LSH_SYMBOL(lsh_set_split_keys),
    .set_split_spans = LSH_SYMBOL(lsh_set_split_spans),
    .set_add_tokens = LSH_SYMBOL(lsh_set_add_tokens),
    .set_enter = LSH_SYMBOL(lsh_set_enter),
    .set_find = LSH_SYMBOL(lsh_set_find),
    .set_count_shared = LSH_SYMBOL(lsh_set_count_shared),
    .set_most_shared = LSH_SYMBOL(lsh_set_most_shared),
    .set_most_spans = LSH_SYMBOL(lsh_set_most_spans),
    .set_mark = LSH_SYMBOL(lsh_set_mark),
    .count_common = LSH_SYMBOL(lsh_count_common),
    .next_anchors = LSH_SYMBOL(lsh_next_anchors),
    .find_begins = LSH_SYMBOL(lsh_find_begins),
};
