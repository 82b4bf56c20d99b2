/* The bodies of the kernels, written once and compiled for each instruction set.
 *
 * A level's file selects its target, defines LSH_LEVEL and the vectors below, and includes this file; the last word of
 * each symbol is the level, and every level gives the same bits.
 *
 *   V   LANES_32 words of 32 bits: v_load v_store v_one v_add v_xor v_xor3 v_and v_mul v_shr v_rotl v_min_s
 *       v_min_u; v_mul16, the product of the high halves, modulo 2**16, in the high half, for operands whose low halves are 0;
 *       v_words(p), the words at p, p + 1, p + 2 ..., which reads at most 32 bytes behind the last; v_less(a, b), a bit a lane
 *       where a < b, unsigned; v_pack(p, a, mask), which stores the lanes of a whose bit is set at p, p + 1 ..., and may write
 *       a whole vector
 *   W   LANES_64 words of 64 bits: w_widen (of uint32) w_load w_store w_one w_add w_xor w_and w_shr w_mul (by a constant)
 *       w_words(p), like v_words, within 16 bytes; w_min, in an order that W_FLIP (a constant to xor with) turns into that of uint64
 *
 * murmur3. Seeds in lanes, up to four vectors of them in lockstep; their minima stay in registers while a tile of shingles
 * goes by, and a shingle's words are broadcast. What does not depend on the seed is done once a shingle: mixing the
 * blocks; rotating the first of them, since rotl(h ^ m, 13) = rotl(h, 13) ^ rotl(m, 13); folding the tail into the first step
 * of the finaliser, since (h ^ t) ^ (h ^ t) >> 16 = h ^ h >> 16 ^ (t ^ t >> 16). There is no reduction over a vector and no
 * tail over positions, so short texts run as fast as long ones. Repeated shingles are dropped by a table that remembers the last
 * shingle of each slot: it may miss a repeat, which costs time and changes nothing, as a minimum does not mind repeats.
 *
 * fss. Positions in lanes for the hash; one table of minima a bin, written in turn with a second one, for round 0; for the bins that
 * stay empty, the fallback with components in lanes (or positions, where few are empty). A minimum over shingles of a function of
 * (shingle, component), whatever the order of the work: docs/schemes.md has the definition.
 */
#include <string.h>

#include "../_murmur3.h"
#include "kernels.h"

#define LSH_JOIN_(stem, level) stem##_##level
#define LSH_JOIN(stem, level) LSH_JOIN_(stem, level)
#define LSH_SYMBOL(stem) LSH_JOIN(stem, LSH_LEVEL)
#define LSH_TEXT_(word) #word
#define LSH_TEXT(word) LSH_TEXT_(word)

enum { LOCKSTEP = 4, WORTH_DROPPING = 256, READ_ON = 64, FALL_BACK = 6, FEW = 4, FEW_IN_LANES = 8 };

static const uint32_t first_lanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* Store `word` `count` times or more, in whole vectors. */
static void fill(uint32_t *to, size_t count, uint32_t word)
{
    for (size_t i = 0; i < count; i += LANES_32)
        v_store(to + i, v_one(word));
}

/* ---- the shingles of a tile as words ---- */

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

/* Drop the keys that the table of seen ones holds; returns how many are left. Two loops: were the table asked in the loop that
 * compacts, each question would wait for the place of the key before. */
static inline __attribute__((always_inline)) size_t drop_seen(const int wide, size_t count, lsh_scratch *restrict scratch)
{
    uint64_t *low = scratch->low, *high = scratch->high;
    uint8_t *fresh = scratch->fresh;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t mixed = wide ? low[i] ^ high[i] * 0xc2b2ae3d27d4eb4fu : low[i];
        const size_t slot = (mixed * 0x9E3779B97F4A7C15u) >> 53; /* 11 bits: LSH_SEEN */
        fresh[i] = scratch->seen_low[slot] != low[i];
        scratch->seen_low[slot] = low[i];
        if (wide) {
            fresh[i] |= scratch->seen_high[slot] != high[i];
            scratch->seen_high[slot] = high[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        low[kept] = low[i];
        if (wide)
            high[kept] = high[i];
        kept += fresh[i];
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
            walk->drop = 0; /* hardly a repeat: the table costs more than it saves */
        walk->next += count;
    }
    return kept;
}

/* ---- murmur3, 32 bits ---- */

static inline __attribute__((always_inline)) void min_32(const lsh_scratch *scratch, size_t count, const size_t blocks,
                                                         const size_t vectors, const uint32_t *seeds, int32_t *minima)
{
    const V c1 = v_one(0x85ebca6bu), c2 = v_one(0xc2b2ae35u), add = v_one(LSH_M32_ADD);
    V five = v_one(5); /* hidden, or compilers make a shift and an addition of it */
    V seed[LOCKSTEP], best[LOCKSTEP], h[LOCKSTEP];
    HIDE(five);
    for (size_t v = 0; v < vectors; v++) {
        seed[v] = v_load(seeds + v * LANES_32);
        if (blocks > 0)
            seed[v] = v_rotl(seed[v], 13);
        best[v] = v_load((const uint32_t *)minima + v * LANES_32);
    }
    for (size_t i = 0; i < count; i++) {
        const V tail = v_one(scratch->words[blocks][i]);
        const V first = v_one(scratch->words[0][i]);
        for (size_t v = 0; v < vectors; v++)
            h[v] = blocks > 0 ? v_add(v_mul(v_xor(seed[v], first), five), add) : seed[v];
        for (size_t v = 0; v < vectors; v++)
            h[v] = v_mul(v_xor3(h[v], v_shr(h[v], 16), tail), c1);
        for (size_t v = 0; v < vectors; v++)
            h[v] = v_mul(v_xor(h[v], v_shr(h[v], 13)), c2);
        for (size_t v = 0; v < vectors; v++)
            best[v] = v_min_s(best[v], v_xor(h[v], v_shr(h[v], 16)));
    }
    for (size_t v = 0; v < vectors; v++)
        v_store((uint32_t *)minima + v * LANES_32, best[v]);
}

/* The same for two and three blocks: the body of a shingle goes along with the finaliser of the one before, step by step (HIDE
 * holds compilers to it), as one alone leaves multipliers or shifters idle. Reads the words behind the last, without effect. */
static inline __attribute__((always_inline)) void min_long_32(const lsh_scratch *scratch, size_t count,
                                                              const size_t blocks, const size_t vectors,
                                                              const uint32_t *seeds, int32_t *minima)
{
    const V c1 = v_one(0x85ebca6bu), c2 = v_one(0xc2b2ae35u), add = v_one(LSH_M32_ADD);
    V five = v_one(5);
    V seed[LOCKSTEP], best[LOCKSTEP], h[LOCKSTEP], g[LOCKSTEP];
    HIDE(five);
    for (size_t v = 0; v < vectors; v++) {
        seed[v] = v_rotl(v_load(seeds + v * LANES_32), 13);
        best[v] = v_load((const uint32_t *)minima + v * LANES_32);
        g[v] = v_add(v_mul(v_xor(seed[v], v_one(scratch->words[0][0])), five), add);
        for (size_t b = 1; b < blocks; b++)
            g[v] = v_add(v_mul(v_rotl(v_xor(g[v], v_one(scratch->words[b][0])), 13), five), add);
    }
    for (size_t i = 1; i <= count; i++) {
        const V tail = v_one(scratch->words[blocks][i - 1]);
        const V first = v_one(scratch->words[0][i]), second = v_one(scratch->words[1][i]);
        for (size_t v = 0; v < vectors; v++) {
            h[v] = v_xor(seed[v], first);
            g[v] = v_xor3(g[v], v_shr(g[v], 16), tail);
            HIDE(h[v]);
            HIDE(g[v]);
        }
        for (size_t v = 0; v < vectors; v++) {
            h[v] = v_mul(h[v], five);
            g[v] = v_mul(g[v], c1);
            HIDE(h[v]);
            HIDE(g[v]);
        }
        for (size_t v = 0; v < vectors; v++) {
            h[v] = v_add(h[v], add);
            g[v] = v_xor(g[v], v_shr(g[v], 13));
            HIDE(h[v]);
            HIDE(g[v]);
        }
        for (size_t v = 0; v < vectors; v++) {
            h[v] = v_xor(h[v], second);
            g[v] = v_mul(g[v], c2);
            HIDE(h[v]);
            HIDE(g[v]);
        }
        for (size_t v = 0; v < vectors; v++) {
            h[v] = v_rotl(h[v], 13);
            HIDE(h[v]);
        }
        for (size_t v = 0; v < vectors; v++) {
            h[v] = v_mul(h[v], five);
            g[v] = v_xor(g[v], v_shr(g[v], 16));
            HIDE(h[v]);
            HIDE(g[v]);
        }
        for (size_t v = 0; v < vectors; v++) {
            best[v] = v_min_s(best[v], g[v]);
            g[v] = v_add(h[v], add);
            HIDE(best[v]);
            HIDE(g[v]);
        }
        for (size_t b = 2; b < blocks; b++) {
            const V block = v_one(scratch->words[b][i]);
            for (size_t v = 0; v < vectors; v++)
                g[v] = v_add(v_mul(v_rotl(v_xor(g[v], block), 13), five), add);
        }
    }
    for (size_t v = 0; v < vectors; v++)
        v_store((uint32_t *)minima + v * LANES_32, best[v]);
}

#define MIN_32(blocks, vectors) min_32(scratch, count, blocks, vectors, seeds + s, minima + s)
#define MIN_LONG_32(blocks, vectors) min_long_32(scratch, count, blocks, vectors, seeds + s, minima + s)
#define MIN_32_BLOCKS(vectors)                                                                                         \
    switch (blocks) {                                                                                                  \
    case 0: MIN_32(0, vectors); break;                                                                                 \
    case 1: MIN_32(1, vectors); break;                                                                                 \
    case 2: MIN_LONG_32(2, vectors); break;                                                                                 \
    default: MIN_LONG_32(3, vectors); break;                                                                                \
    }

static void min_tile_32(const lsh_scratch *scratch, size_t count, size_t blocks, const uint32_t *seeds, size_t k,
                        int32_t *minima)
{
    for (size_t s = 0; s < k;) {
        size_t vectors = (k - s) / LANES_32;
        if (vectors >= 4) {
            MIN_32_BLOCKS(4) s += 4 * LANES_32;
        } else if (vectors == 3) {
            MIN_32_BLOCKS(3) s += 3 * LANES_32;
        } else if (vectors == 2) {
            MIN_32_BLOCKS(2) s += 2 * LANES_32;
        } else {
            MIN_32_BLOCKS(1) s += LANES_32;
        }
    }
}

/* Mix the words of a tile: blocks, of which the first is rotated, then the folded tail. */
static void mix_tile_32(size_t n, size_t count, lsh_scratch *restrict scratch)
{
    const size_t blocks = n / 4;
    for (size_t b = 0; b <= blocks; b++) {
        const uint64_t *restrict key = b < 2 ? scratch->low : scratch->high;
        const int shift = b & 1 ? 32 : 0;
        uint32_t *restrict words = scratch->words[b];
        if (b == blocks)
            for (size_t i = 0; i < count; i++) {
                uint32_t tail = lsh_m32_mix((uint32_t)(key[i] >> shift)) ^ (uint32_t)n;
                words[i] = tail ^ tail >> 16;
            }
        else
            for (size_t i = 0; i < count; i++) {
                uint32_t block = lsh_m32_mix((uint32_t)(key[i] >> shift));
                words[i] = b == 0 ? lsh_rotl32(block, 13) : block;
            }
    }
}

/* The hash of one shingle of any length for every seed. */
static void min_any_32(const uint8_t *shingle, size_t length, const uint32_t *restrict seeds,
                       uint32_t *restrict state, size_t k, int32_t *restrict minima)
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

static int is_fixed(const lsh_document *document)
{
    return document->unit == LSH_BYTE && document->n <= LSH_FIXED_MOST && document->length >= document->n;
}

static void LSH_SYMBOL(lsh_min_murmur3_32)(const lsh_document *document, const uint32_t *seeds, size_t k,
                                           lsh_scratch *scratch, int32_t *minima)
{
    size_t count;
    if (is_fixed(document)) {
        tiles walk = begin_tiles(document, scratch);
        while ((count = next_tile(document, &walk, scratch)) > 0) {
            mix_tile_32(document->n, count, scratch);
            min_tile_32(scratch, count, document->n / 4, seeds, k, minima);
        }
        return;
    }
    lsh_shingler walk;
    lsh_shingler_begin(&walk, document->text, document->length, document->unit, document->n);
    while ((count = lsh_shingler_next(&walk, scratch->spans, LSH_TILE)) > 0)
        for (size_t i = 0; i < count; i++)
            min_any_32(document->text + scratch->spans[i].start, scratch->spans[i].length, seeds,
                       (uint32_t *)scratch->state, k, minima);
}

/* ---- murmur3, 64 bits ---- */

static inline __attribute__((always_inline)) W fmix_64(W h)
{
    h = w_mul(w_xor(h, w_shr(h, 33)), 0xff51afd7ed558ccdu);
    h = w_mul(w_xor(h, w_shr(h, 33)), 0xc4ceb9fe1a85ec53u);
    return w_xor(h, w_shr(h, 33));
}

static inline __attribute__((always_inline)) void min_64(const lsh_scratch *scratch, size_t count, const size_t vectors,
                                                         const uint32_t *seeds, uint64_t *minima)
{
    const W flip = w_one(W_FLIP);
    W seed[LOCKSTEP], best[LOCKSTEP], h1[LOCKSTEP], h2[LOCKSTEP];
    for (size_t v = 0; v < vectors; v++) {
        seed[v] = w_widen(seeds + v * LANES_64);
        best[v] = w_xor(w_load(minima + v * LANES_64), flip);
    }
    for (size_t i = 0; i < count; i++) {
        const W low = w_one(scratch->wide[0][i]), high = w_one(scratch->wide[1][i]);
        for (size_t v = 0; v < vectors; v++) {
            h2[v] = w_xor(seed[v], high);
            h1[v] = w_add(w_xor(seed[v], low), h2[v]);
            h2[v] = w_add(h2[v], h1[v]);
        }
        for (size_t v = 0; v < vectors; v++)
            h1[v] = fmix_64(h1[v]);
        for (size_t v = 0; v < vectors; v++)
            h2[v] = fmix_64(h2[v]);
        for (size_t v = 0; v < vectors; v++)
            best[v] = w_min(best[v], w_xor(w_add(h1[v], h2[v]), flip));
    }
    for (size_t v = 0; v < vectors; v++)
        w_store(minima + v * LANES_64, w_xor(best[v], flip));
}

static void min_tile_64(const lsh_scratch *scratch, size_t count, const uint32_t *seeds, size_t k, uint64_t *minima)
{
    size_t s = 0;
    for (; k - s >= LOCKSTEP * LANES_64; s += LOCKSTEP * LANES_64)
        min_64(scratch, count, LOCKSTEP, seeds + s, minima + s);
    for (; s < k; s += LANES_64)
        min_64(scratch, count, 1, seeds + s, minima + s);
}

static void mix_tile_64(size_t n, size_t count, lsh_scratch *restrict scratch)
{
    for (size_t i = 0; i < count; i++) {
        scratch->wide[0][i] = lsh_m64_mix1(scratch->low[i]) ^ (uint64_t)n;
        scratch->wide[1][i] = lsh_m64_mix2(scratch->high[i]) ^ (uint64_t)n;
    }
}

static void min_any_64(const uint8_t *shingle, size_t length, const uint32_t *restrict seeds, uint64_t *restrict one,
                       uint64_t *restrict two, size_t k, uint64_t *restrict minima)
{
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
    const uint64_t high =
        (left > 8 ? lsh_m64_mix2(lsh_load_partial(shingle + at + 8, left - 8)) : 0) ^ (uint64_t)length;
    for (size_t s = 0; s < k; s++) {
        uint64_t h1 = (one[s] ^ low) + (two[s] ^ high);
        uint64_t h2 = (two[s] ^ high) + h1;
        uint64_t hash = lsh_fmix64(h1) + lsh_fmix64(h2);
        minima[s] = hash < minima[s] ? hash : minima[s];
    }
}

static void LSH_SYMBOL(lsh_min_murmur3_64)(const lsh_document *document, const uint32_t *seeds, size_t k,
                                           lsh_scratch *scratch, uint64_t *minima)
{
    size_t count;
    if (is_fixed(document)) {
        tiles walk = begin_tiles(document, scratch);
        while ((count = next_tile(document, &walk, scratch)) > 0) {
            mix_tile_64(document->n, count, scratch);
            min_tile_64(scratch, count, seeds, k, minima);
        }
        return;
    }
    lsh_shingler walk;
    lsh_shingler_begin(&walk, document->text, document->length, document->unit, document->n);
    while ((count = lsh_shingler_next(&walk, scratch->spans, LSH_TILE)) > 0)
        for (size_t i = 0; i < count; i++)
            min_any_64(document->text + scratch->spans[i].start, scratch->spans[i].length, seeds, scratch->state,
                       scratch->state + k, k, minima);
}

/* ---- fss: the base hash ---- */

static inline __attribute__((always_inline)) V fmix_32(V h)
{
    h = v_mul(v_xor(h, v_shr(h, 16)), v_one(0x85ebca6bu));
    h = v_mul(v_xor(h, v_shr(h, 13)), v_one(0xc2b2ae35u));
    return v_xor(h, v_shr(h, 16));
}

/* The end of MurmurHash3_x86_128: from its four lanes to its first two words. */
static inline __attribute__((always_inline)) void finish_128(V a, V b, V c, V d, uint32_t *h1, uint32_t *h2)
{
    a = v_add(v_add(a, b), v_add(c, d));
    b = fmix_32(v_add(b, a));
    c = fmix_32(v_add(c, a));
    d = fmix_32(v_add(d, a));
    a = v_add(v_add(fmix_32(a), b), v_add(c, d));
    v_store(h1, a);
    v_store(h2, v_add(a, b));
}

/* One lane of MurmurHash3_x86_128 before the finaliser: the seed, one mixed word of a shingle without a body, the length. */
#define LANE_128(j, c, r, next)                                                                                        \
    v_xor(base, v_mul(v_rotl(v_mul(v_and(v_words(bytes + 4 * j), v_one(mask[j])), v_one(c)), r), v_one(next)))

/* The first two words of MurmurHash3_x86_128 of `count` shingles of n <= 15 bytes; whole vectors are written. */
static inline __attribute__((always_inline)) void hash_tile(const size_t words, const uint8_t *text, size_t n, size_t count,
                                                            uint32_t seed, uint32_t *h1, uint32_t *h2)
{
    uint32_t mask[4];
    const V base = v_one(seed ^ (uint32_t)n);
    for (size_t j = 0; j < 4; j++)
        mask[j] = n >= 4 * (j + 1) ? UINT32_MAX : n > 4 * j ? ((uint32_t)1 << (8 * (n - 4 * j))) - 1 : 0;
    for (size_t i = 0; i < count; i += LANES_32) {
        const uint8_t *bytes = text + i;
        V a = LANE_128(0, 0x239b961bu, 15, 0xab0e9789u);
        V b = words > 1 ? LANE_128(1, 0xab0e9789u, 16, 0x38b34ae5u) : base;
        V c = words > 2 ? LANE_128(2, 0x38b34ae5u, 17, 0xa1e38b93u) : base;
        V d = words > 3 ? LANE_128(3, 0xa1e38b93u, 18, 0x239b961bu) : base;
        a = v_add(v_add(a, b), v_add(c, d));
        b = fmix_32(v_add(b, a));
        c = words > 1 ? fmix_32(v_add(c, a)) : b; /* lanes without a word of their own are equal */
        d = words > 2 ? fmix_32(v_add(d, a)) : c;
        a = v_add(v_add(fmix_32(a), b), v_add(c, d));
        v_store(h1 + i, a);
        v_store(h2 + i, v_add(a, b));
    }
}

static void hash_fixed(const uint8_t *text, size_t n, size_t count, uint32_t seed, uint32_t *h1, uint32_t *h2)
{
    switch ((n + 3) / 4) {
    case 1: hash_tile(1, text, n, count, seed, h1, h2); break;
    case 2: hash_tile(2, text, n, count, seed, h1, h2); break;
    case 3: hash_tile(3, text, n, count, seed, h1, h2); break;
    default: hash_tile(4, text, n, count, seed, h1, h2); break;
    }
}

/* A walk over the hashes of a document's shingles, a tile at a time; it can be begun again. */
typedef struct {
    size_t at;      /* of fixed shingles the next one, of words the place in the text */
    size_t held;    /* words in scratch->word_hashes */
    size_t emitted; /* shingles so far, for words */
    int fixed;
    lsh_shingler shingler;
} hashes;

static void begin_hashes(const lsh_document *document, hashes *walk)
{
    memset(walk, 0, sizeof *walk);
    walk->fixed = is_fixed(document);
    if (!walk->fixed && document->unit != LSH_WORD)
        lsh_shingler_begin(&walk->shingler, document->text, document->length, document->unit, document->n);
}

static void hash_one(const uint8_t *bytes, size_t length, uint32_t seed, uint32_t *h1, uint32_t *h2)
{
    uint32_t out[4];
    lsh_murmur3_x86_128(bytes, length, seed, out);
    *h1 = out[0];
    *h2 = out[1];
}

/* Let a block of 16 bytes, as four words, into the lanes of MurmurHash3_x86_128. */
static inline __attribute__((always_inline)) void block_128(V h[4], V one, V two, V three, V four)
{
    const V c1 = v_one(0x239b961bu), c2 = v_one(0xab0e9789u), c3 = v_one(0x38b34ae5u), c4 = v_one(0xa1e38b93u);
    const V five = v_one(5);
    h[0] = v_xor(h[0], v_mul(v_rotl(v_mul(one, c1), 15), c2));
    h[0] = v_add(v_mul(v_add(v_rotl(h[0], 19), h[1]), five), v_one(0x561ccd1bu));
    h[1] = v_xor(h[1], v_mul(v_rotl(v_mul(two, c2), 16), c3));
    h[1] = v_add(v_mul(v_add(v_rotl(h[1], 17), h[2]), five), v_one(0x0bcaa747u));
    h[2] = v_xor(h[2], v_mul(v_rotl(v_mul(three, c3), 17), c4));
    h[2] = v_add(v_mul(v_add(v_rotl(h[2], 15), h[3]), five), v_one(0x96cd1c35u));
    h[3] = v_xor(h[3], v_mul(v_rotl(v_mul(four, c4), 18), c1));
    h[3] = v_add(v_mul(v_add(v_rotl(h[3], 13), h[0]), five), v_one(0x32ac3b17u));
}

/* Let the last bytes, fewer than 16 with zeros behind them, and the length into the lanes, and finish. */
static inline __attribute__((always_inline)) void tail_128(V h[4], V one, V two, V three, V four, V length, uint32_t *h1,
                                                           uint32_t *h2)
{
    const V c1 = v_one(0x239b961bu), c2 = v_one(0xab0e9789u), c3 = v_one(0x38b34ae5u), c4 = v_one(0xa1e38b93u);
    h[0] = v_xor(v_xor(h[0], v_mul(v_rotl(v_mul(one, c1), 15), c2)), length);
    h[1] = v_xor(v_xor(h[1], v_mul(v_rotl(v_mul(two, c2), 16), c3)), length);
    h[2] = v_xor(v_xor(h[2], v_mul(v_rotl(v_mul(three, c3), 17), c4)), length);
    h[3] = v_xor(v_xor(h[3], v_mul(v_rotl(v_mul(four, c4), 18), c1)), length);
    finish_128(h[0], h[1], h[2], h[3], h1, h2);
}

/* The next bytes of a text, at most 15 of them as four words with zeros behind; `left` bytes can be read. */
static inline void take_words(const uint8_t *bytes, size_t size, size_t left, uint32_t (*words)[LSH_TILE + LSH_LANES], size_t i)
{
    uint64_t low, high;
    if (left >= 16) {
        low = size ? lsh_load64(bytes) & UINT64_MAX >> (size < 8 ? 64 - 8 * size : 0) : 0;
        high = size > 8 ? lsh_load64(bytes + 8) & UINT64_MAX >> (128 - 8 * size) : 0;
    } else {
        low = lsh_load_partial(bytes, size < 8 ? size : 8);
        high = size > 8 ? lsh_load_partial(bytes + 8, size - 8) : 0;
    }
    words[0][i] = (uint32_t)low;
    words[1][i] = (uint32_t)(low >> 32);
    words[2][i] = (uint32_t)high;
    words[3][i] = (uint32_t)(high >> 32);
}

/* The first two words of MurmurHash3_x86_128 of each of `count` spans of a text (scratch->spans, at most LSH_TILE): in lanes where they
 * have fewer than 32 bytes. Whole vectors are written. */
static void hash_spans(const lsh_document *document, size_t count, uint32_t seed, lsh_scratch *scratch, uint32_t *h1,
                       uint32_t *h2)
{
    size_t blocks = 0, longs = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t start = scratch->spans[i].start, size = scratch->spans[i].length;
        const uint8_t *bytes = document->text + start;
        size_t body = 0;
        if (size >= 32) {
            scratch->bins[longs++] = (uint32_t)i;
        } else if (size >= 16) {
            for (size_t w = 0; w < 4; w++)
                scratch->body[w][i] = lsh_load32(bytes + 4 * w);
            blocks++;
            body = 16;
        }
        if (size < 32)
            take_words(bytes + body, size - body, document->length - start - body, scratch->words, i);
        scratch->has_body[i] = body ? UINT32_MAX : 0;
        scratch->sizes[i] = (uint32_t)size;
    }
    for (size_t i = 0; i < count; i += LANES_32) {
        V h[4] = {v_one(seed), v_one(seed), v_one(seed), v_one(seed)};
        if (blocks > 0) {
            const V old = v_one(seed), has = v_load(scratch->has_body + i);
            block_128(h, v_load(scratch->body[0] + i), v_load(scratch->body[1] + i), v_load(scratch->body[2] + i),
                      v_load(scratch->body[3] + i));
            for (size_t j = 0; j < 4; j++)
                h[j] = v_xor(old, v_and(v_xor(old, h[j]), has));
        }
        tail_128(h, v_load(scratch->words[0] + i), v_load(scratch->words[1] + i), v_load(scratch->words[2] + i),
                 v_load(scratch->words[3] + i), v_load(scratch->sizes + i), h1 + i, h2 + i);
    }
    for (size_t i = 0; i < longs; i++) {
        const lsh_span *span = scratch->spans + scratch->bins[i];
        hash_one(document->text + span->start, span->length, seed, h1 + scratch->bins[i], h2 + scratch->bins[i]);
    }
}

/* The first two words of MurmurHash3_x86_128 of `count` shingles of n words: shingle i is the hashes of words i to i + n - 1, 8 bytes
 * each, so that its 32-bit words lie in two arrays. Shingles in lanes; whole vectors are written. */
static void hash_words(size_t n, size_t count, uint32_t seed, const lsh_scratch *scratch, uint32_t *h1, uint32_t *h2)
{
    const uint32_t *one = scratch->word_hashes[0], *two = scratch->word_hashes[1];
    const V zero = v_one(0), length = v_one((uint32_t)(8 * n));
    for (size_t i = 0; i < count; i += LANES_32) {
        V h[4] = {v_one(seed), v_one(seed), v_one(seed), v_one(seed)};
        size_t w = 0;
        for (; w + 2 <= n; w += 2)
            block_128(h, v_load(one + i + w), v_load(two + i + w), v_load(one + i + w + 1), v_load(two + i + w + 1));
        if (w < n)
            tail_128(h, v_load(one + i + w), v_load(two + i + w), zero, zero, length, h1 + i, h2 + i);
        else
            tail_128(h, zero, zero, zero, zero, length, h1 + i, h2 + i);
    }
}

/* The next tile of word shingles: each the hash of its words' hashes. */
static size_t next_word_hashes(const lsh_document *document, hashes *walk, uint32_t seed, lsh_scratch *scratch,
                               uint32_t *h1, uint32_t *h2)
{
    const size_t n = document->n;
    uint32_t *one = scratch->word_hashes[0], *two = scratch->word_hashes[1];
    size_t count;
    if (walk->held >= n) { /* keep the last n - 1 words of the tile before */
        memmove(one, one + walk->held - n + 1, (n - 1) * sizeof *one);
        memmove(two, two + walk->held - n + 1, (n - 1) * sizeof *two);
        walk->held = n - 1;
    }
    while (walk->held < n - 1 + LSH_TILE) {
        const size_t wanted = n - 1 + LSH_TILE - walk->held, most = wanted < LSH_TILE ? wanted : LSH_TILE;
        count = lsh_next_words(document->text, document->length, scratch->word_table, &walk->at, scratch->spans, most);
        hash_spans(document, count, seed, scratch, one + walk->held, two + walk->held);
        walk->held += count;
        if (count < most)
            break;
    }
    if (walk->held == 0 || (walk->held < n && walk->emitted > 0))
        return 0;
    count = walk->held < n ? 1 : walk->held - n + 1; /* fewer words than n are one shingle */
    hash_words(walk->held < n ? walk->held : n, count, seed, scratch, h1, h2);
    walk->emitted += count;
    return count;
}

/* The hashes of the next tile; returns how many, 0 at the end. */
static size_t next_hashes(const lsh_document *document, hashes *walk, uint32_t seed, lsh_scratch *scratch, uint32_t *h1,
                          uint32_t *h2)
{
    size_t count;
    if (walk->fixed) {
        count = document->length - document->n + 1 - walk->at;
        count = count < LSH_TILE ? count : LSH_TILE;
        if (count > 0)
            hash_fixed(take_bytes(document, walk->at, count, scratch), document->n, count, seed, h1, h2);
        walk->at += count;
        return count;
    }
    if (document->unit == LSH_WORD)
        return next_word_hashes(document, walk, seed, scratch, h1, h2);
    count = lsh_shingler_next(&walk->shingler, scratch->spans, LSH_TILE);
    hash_spans(document, count, seed, scratch, h1, h2);
    return count;
}

/* ---- fss: round 0 ---- */

/* table[bin] = min(table[bin], value). Above SSE2 gcc would turn this into vectors through memory: five times slower. */
static inline __attribute__((always_inline)) void lower(uint32_t *table, uint32_t bin, uint32_t value)
{
    uint32_t least = table[bin];
    HIDE_WORD(value);
    least = value < least ? value : least;
    HIDE_WORD(least);
    table[bin] = least;
}

static void fill_bins(const uint32_t *restrict h1, const uint32_t *restrict h2, size_t count, uint32_t k,
                      lsh_scratch *restrict scratch)
{
    uint32_t *bins = scratch->bins, *even = scratch->table[0], *odd = scratch->table[1];
    const V size = v_one(k);
    size_t i = 0;
    for (; i < count; i += LANES_32)
        v_store(bins + i, v_shr(v_mul(v_shr(v_load(h1 + i), 16), size), 16));
    for (i = 0; i + 2 <= count; i += 2) {
        lower(even, bins[i], h2[i]);
        lower(odd, bins[i + 1], h2[i + 1]);
    }
    if (i < count)
        lower(even, bins[i], h2[i]);
}

/* The same where few shingles can still change anything: those below `most`, the largest minimum of a bin. */
static void fill_bins_below(const uint32_t *h1, const uint32_t *h2, size_t count, uint32_t k, uint32_t most,
                            lsh_scratch *scratch)
{
    const V bound = v_one(most);
    for (size_t first = 0; first < count; first += 64) { /* at once, as each loop over bits ends with a wrong guess */
        uint64_t less = 0;
        for (size_t i = 0; i < 64; i += LANES_32)
            less |= (uint64_t)v_less(v_load(h2 + first + i), bound) << i;
        if (count - first < 64)
            less &= ((uint64_t)1 << (count - first)) - 1;
        for (; less; less &= less - 1) {
            const size_t at = first + (size_t)__builtin_ctzll(less);
            lower(scratch->table[0], ((h1[at] >> 16) * k) >> 16, h2[at]);
        }
    }
}

/* The largest minimum of a bin so far: no shingle that is not below it changes anything. */
static uint32_t largest_minimum(size_t k, const lsh_scratch *scratch)
{
    uint32_t most = 0;
    for (size_t j = 0; j < k; j++) {
        uint32_t a = scratch->table[0][j], b = scratch->table[1][j];
        a = a < b ? a : b;
        most = a > most ? a : most;
    }
    return most;
}

/* ---- fss: the fallback ---- */

/* least[j] = min(least[j], factor * rank[j] + shift) over a tile of shingles, components in lanes; as many as FALL_BACK vectors of
 * them, so that ranks and minima fit into sixteen registers. */
static inline __attribute__((always_inline)) void fall_back(const lsh_scratch *scratch, size_t count,
                                                            const size_t vectors, const uint32_t *rank, uint32_t *least)
{
    V ranks[FALL_BACK], best[FALL_BACK];
    for (size_t v = 0; v < vectors; v++) {
        ranks[v] = v_load(rank + v * LANES_32);
        best[v] = v_load(least + v * LANES_32);
    }
    for (size_t i = 0; i < count; i++) {
        const V factor = v_one(scratch->factor[i]), shift = v_one(scratch->shift[i]);
        for (size_t v = 0; v < vectors; v++)
            best[v] = v_min_u(best[v], v_add(v_mul16(factor, ranks[v]), shift));
    }
    for (size_t v = 0; v < vectors; v++)
        v_store(least + v * LANES_32, best[v]);
}

/* The same for up to FEW components, positions in lanes; factor and shift are padded to whole vectors with copies. */
static inline __attribute__((always_inline)) void fall_back_few(const lsh_scratch *scratch, size_t count, const size_t few,
                                                                const uint32_t *rank, uint32_t *least)
{
    V ranks[FEW], best[FEW];
    uint32_t lanes[LANES_32];
    for (size_t j = 0; j < few; j++) {
        ranks[j] = v_one(rank[j]);
        best[j] = v_one(UINT32_MAX);
    }
    for (size_t i = 0; i < count; i += LANES_32) {
        const V factor = v_load(scratch->factor + i), shift = v_load(scratch->shift + i);
        for (size_t j = 0; j < few; j++)
            best[j] = v_min_u(best[j], v_add(v_mul16(factor, ranks[j]), shift));
    }
    for (size_t j = 0; j < few; j++) {
        v_store(lanes, best[j]);
        for (size_t i = 0; i < LANES_32; i++)
            least[j] = lanes[i] < least[j] ? lanes[i] : least[j];
    }
}

/* Let a tile of hashes into the minima of `empties` components. Both ways cost the same for each pair of shingle and component, but for
 * what their last vectors leave empty: long tiles waste little of positions, and short ones would spend their time on reducing vectors. */
static void fall_back_tile(const uint32_t *restrict h1, const uint32_t *restrict h2, size_t count, int lg,
                           const uint32_t *rank, size_t empties, lsh_scratch *restrict scratch)
{
    const size_t whole = (count + LANES_32 - 1) / LANES_32 * LANES_32;
    size_t vectors = empties / LANES_32, j = 0;
    for (size_t i = 0; i < count; i++) {
        scratch->factor[i] = (h2[i] | 1) << (32 - lg);
        scratch->shift[i] = lsh_rotl32(h1[i], 16);
    }
    for (size_t i = count; i < whole; i++) {
        scratch->factor[i] = scratch->factor[count - 1];
        scratch->shift[i] = scratch->shift[count - 1];
    }
    if (vectors * LANES_32 < empties && count < FEW_IN_LANES * LANES_32 && empties % LANES_32 > FEW)
        vectors++;
    for (; vectors >= FALL_BACK; vectors -= FALL_BACK, j += FALL_BACK * LANES_32)
        fall_back(scratch, count, FALL_BACK, rank + j, scratch->least + j);
    switch (vectors) {
    case 5: fall_back(scratch, count, 5, rank + j, scratch->least + j); break;
    case 4: fall_back(scratch, count, 4, rank + j, scratch->least + j); break;
    case 3: fall_back(scratch, count, 3, rank + j, scratch->least + j); break;
    case 2: fall_back(scratch, count, 2, rank + j, scratch->least + j); break;
    case 1: fall_back(scratch, count, 1, rank + j, scratch->least + j); break;
    default: break;
    }
    for (j += vectors * LANES_32; j + FEW <= empties; j += FEW)
        fall_back_few(scratch, count, FEW, rank + j, scratch->least + j);
    for (; j < empties; j++)
        fall_back_few(scratch, count, 1, rank + j, scratch->least + j);
}

/* Write what round 0 found to the sketch; list the bins that no shingle fell into, and their ranks, padded to whole vectors, and
 * begin their minima. Returns how many they are. */
static size_t close_bins(const uint32_t *ranks, size_t k, lsh_scratch *restrict scratch, uint32_t *restrict sketch)
{
    const V full = v_one(UINT32_MAX), step = v_one(LANES_32);
    V bins = v_load(first_lanes);
    size_t empties = 0, j = 0;
    for (; j + LANES_32 <= k; j += LANES_32, bins = v_add(bins, step)) {
        const V least = v_min_u(v_load(scratch->table[0] + j), v_load(scratch->table[1] + j));
        const uint32_t empty = v_less(least, full) ^ (uint32_t)(((uint64_t)1 << LANES_32) - 1);
        v_store(sketch + j, v_shr(least, 1));
        v_pack(scratch->empty + empties, bins, empty);
        v_pack(scratch->rank + empties, v_load(ranks + j), empty);
        empties += (size_t)__builtin_popcount(empty);
    }
    for (; j < k; j++) {
        const uint32_t a = scratch->table[0][j], b = scratch->table[1][j], least = a < b ? a : b;
        sketch[j] = least >> 1;
        scratch->empty[empties] = (uint32_t)j;
        scratch->rank[empties] = ranks[j];
        empties += least == UINT32_MAX;
    }
    v_store(scratch->rank + empties, v_one(0));
    fill(scratch->least, empties + LANES_32, UINT32_MAX);
    return empties;
}

/* Drop the pairs of scratch->h1 and h2 that were seen; returns how many are left. */
static size_t drop_hashes(size_t count, lsh_scratch *restrict scratch)
{
    for (size_t i = 0; i < count; i++)
        scratch->low[i] = (uint64_t)scratch->h2[i] << 32 | scratch->h1[i];
    count = drop_seen(0, count, scratch);
    for (size_t i = 0; i < count; i++) {
        scratch->h1[i] = (uint32_t)scratch->low[i];
        scratch->h2[i] = (uint32_t)(scratch->low[i] >> 32);
    }
    return count;
}

static void LSH_SYMBOL(lsh_fss)(const lsh_document *document, uint32_t seed, const uint32_t *ranks, size_t k,
                                lsh_scratch *scratch, uint32_t *sketch)
{
    hashes walk;
    size_t count, total = 0, empties;
    uint32_t most = UINT32_MAX;
    int lg = 1;
    while ((size_t)1 << lg < k)
        lg++;
    fill(scratch->table[0], k, UINT32_MAX);
    fill(scratch->table[1], k, UINT32_MAX);
    begin_hashes(document, &walk);
    for (;; total += count) {
        const size_t at = total < LSH_FSS_KEPT ? total : LSH_FSS_KEPT - LSH_TILE; /* later tiles share the last place */
        count = next_hashes(document, &walk, seed, scratch, scratch->h1 + at, scratch->h2 + at);
        if (count == 0)
            break;
        if (most < UINT32_MAX / 4)
            fill_bins_below(scratch->h1 + at, scratch->h2 + at, count, (uint32_t)k, most, scratch);
        else
            fill_bins(scratch->h1 + at, scratch->h2 + at, count, (uint32_t)k, scratch);
        if (total % 2048 == 1536)
            most = largest_minimum(k, scratch);
    }
    if (total == 0) {
        memset(sketch, 0xFF, k * sizeof(uint32_t));
        return;
    }
    empties = close_bins(ranks, k, scratch, sketch);
    if (empties == 0)
        return;
    if (total <= LSH_FSS_KEPT) {
        for (size_t at = 0; at < total; at += LSH_TILE)
            fall_back_tile(scratch->h1 + at, scratch->h2 + at, total - at < LSH_TILE ? total - at : LSH_TILE, lg,
                           scratch->rank, empties, scratch);
    } else {
        const int drop = empties >= k / 8; /* so many after thousands: the text has few distinct shingles, often repeated */
        begin_hashes(document, &walk);
        if (drop)
            forget_seen(1, scratch);
        while ((count = next_hashes(document, &walk, seed, scratch, scratch->h1, scratch->h2)) > 0) {
            if (drop)
                count = drop_hashes(count, scratch);
            if (count > 0)
                fall_back_tile(scratch->h1, scratch->h2, count, lg, scratch->rank, empties, scratch);
        }
    }
    for (size_t j = 0; j < empties; j++)
        sketch[scratch->empty[j]] = scratch->least[j] >> 1 | 0x80000000u;
}

/* ---- comparing ---- */

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
    .fss = LSH_SYMBOL(lsh_fss),
    .count_equal_32 = LSH_SYMBOL(lsh_count_equal_32),
    .count_equal_64 = LSH_SYMBOL(lsh_count_equal_64),
};
