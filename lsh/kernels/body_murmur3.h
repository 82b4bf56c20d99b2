/* The kernels of scheme murmur3: part of body.h.
 *
 * Seeds in lanes, up to four vectors of them in lockstep; their minima stay in registers during a tile of shingles,
 * and a shingle's words are broadcast. Work that does not depend on the seed is done once a shingle: mixing the
 * blocks; rotating the first of them, since rotl(h ^ m, 13) = rotl(h, 13) ^ rotl(m, 13); folding the tail into the first step
 * of the finaliser, since (h ^ t) ^ (h ^ t) >> 16 = h ^ h >> 16 ^ (t ^ t >> 16). There is no reduction over a vector and no
 * tail over positions, so short texts run as fast as long ones.
 */

/* ---- 32 bits ---- */

enum { LOCKSTEP = 4 };

LSH_INLINE void min_32(const lsh_scratch *scratch, size_t count, const size_t blocks, const size_t vectors,
                       const uint32_t *seeds, int32_t *minima)
{
    const V c1 = v_one(0x85ebca6bu), c2 = v_one(0xc2b2ae35u), add = v_one(LSH_M32_ADD);
    V five = v_one(5); /* hidden, or compilers make a shift and an addition of it */
    V seed[LOCKSTEP], best[LOCKSTEP], h[LOCKSTEP];
    HIDE(five);
    LSH_UNROLL for (size_t v = 0; v < vectors; v++) {
        seed[v] = v_load(seeds + v * LANES_32);
        if (blocks > 0)
            seed[v] = v_rotl(seed[v], 13);
        best[v] = v_load((const uint32_t *)minima + v * LANES_32);
    }
    for (size_t i = 0; i < count; i++) {
        const V tail = v_one(scratch->words[blocks][i]);
        const V first = v_one(scratch->words[0][i]);
        LSH_UNROLL for (size_t v = 0; v < vectors; v++)
            h[v] = blocks > 0 ? v_add(v_mul(v_xor(seed[v], first), five), add) : seed[v];
        LSH_UNROLL for (size_t v = 0; v < vectors; v++)
            h[v] = v_mul(v_xor3(h[v], v_shr(h[v], 16), tail), c1);
        LSH_UNROLL for (size_t v = 0; v < vectors; v++)
            h[v] = v_mul(v_xor(h[v], v_shr(h[v], 13)), c2);
        LSH_UNROLL for (size_t v = 0; v < vectors; v++)
            best[v] = v_min_s(best[v], v_xor(h[v], v_shr(h[v], 16)));
    }
    LSH_UNROLL for (size_t v = 0; v < vectors; v++)
        v_store((uint32_t *)minima + v * LANES_32, best[v]);
}

/* The same for two and three blocks: the body of a shingle goes along with the finaliser of the one before, step by step (HIDE
 * holds compilers to it), as one alone leaves multipliers or shifters idle. Reads the words behind the last, without effect. */
LSH_INLINE void min_long_32(const lsh_scratch *scratch, size_t count, const size_t blocks, const size_t vectors,
                            const uint32_t *seeds, int32_t *minima)
{
    const V c1 = v_one(0x85ebca6bu), c2 = v_one(0xc2b2ae35u), add = v_one(LSH_M32_ADD);
    V five = v_one(5);
    V seed[LOCKSTEP], best[LOCKSTEP], h[LOCKSTEP], g[LOCKSTEP];
    HIDE(five);
    LSH_UNROLL for (size_t v = 0; v < vectors; v++) {
        seed[v] = v_rotl(v_load(seeds + v * LANES_32), 13);
        best[v] = v_load((const uint32_t *)minima + v * LANES_32);
        g[v] = v_add(v_mul(v_xor(seed[v], v_one(scratch->words[0][0])), five), add);
        LSH_UNROLL for (size_t b = 1; b < blocks; b++)
            g[v] = v_add(v_mul(v_rotl(v_xor(g[v], v_one(scratch->words[b][0])), 13), five), add);
    }
    for (size_t i = 1; i <= count; i++) {
        const V tail = v_one(scratch->words[blocks][i - 1]);
        const V first = v_one(scratch->words[0][i]), second = v_one(scratch->words[1][i]);
        LSH_UNROLL for (size_t v = 0; v < vectors; v++) {
            h[v] = v_xor(seed[v], first);
            g[v] = v_xor3(g[v], v_shr(g[v], 16), tail);
            HIDE(h[v]);
            HIDE(g[v]);
        }
        LSH_UNROLL for (size_t v = 0; v < vectors; v++) {
            h[v] = v_mul(h[v], five);
            g[v] = v_mul(g[v], c1);
            HIDE(h[v]);
            HIDE(g[v]);
        }
        LSH_UNROLL for (size_t v = 0; v < vectors; v++) {
            h[v] = v_add(h[v], add);
            g[v] = v_xor(g[v], v_shr(g[v], 13));
            HIDE(h[v]);
            HIDE(g[v]);
        }
        LSH_UNROLL for (size_t v = 0; v < vectors; v++) {
            h[v] = v_xor(h[v], second);
            g[v] = v_mul(g[v], c2);
            HIDE(h[v]);
            HIDE(g[v]);
        }
        LSH_UNROLL for (size_t v = 0; v < vectors; v++) {
            h[v] = v_rotl(h[v], 13);
            HIDE(h[v]);
        }
        LSH_UNROLL for (size_t v = 0; v < vectors; v++) {
            h[v] = v_mul(h[v], five);
            g[v] = v_xor(g[v], v_shr(g[v], 16));
            HIDE(h[v]);
            HIDE(g[v]);
        }
        LSH_UNROLL for (size_t v = 0; v < vectors; v++) {
            best[v] = v_min_s(best[v], g[v]);
            g[v] = v_add(h[v], add);
            HIDE(best[v]);
            HIDE(g[v]);
        }
        LSH_UNROLL for (size_t b = 2; b < blocks; b++) {
            const V block = v_one(scratch->words[b][i]);
            LSH_UNROLL for (size_t v = 0; v < vectors; v++)
                g[v] = v_add(v_mul(v_rotl(v_xor(g[v], block), 13), five), add);
        }
    }
    LSH_UNROLL for (size_t v = 0; v < vectors; v++)
        v_store((uint32_t *)minima + v * LANES_32, best[v]);
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

#define MIN_32(blocks, vectors) min_32(scratch, count, blocks, vectors, seeds + s, minima + s)
#define MIN_LONG_32(blocks, vectors) min_long_32(scratch, count, blocks, vectors, seeds + s, minima + s)
#define MIN_32_BLOCKS(vectors)                                                                                         \
    switch (n / 4) {                                                                                                   \
    case 0: MIN_32(0, vectors); break;                                                                                 \
    case 1: MIN_32(1, vectors); break;                                                                                 \
    case 2: MIN_LONG_32(2, vectors); break;                                                                            \
    default: MIN_LONG_32(3, vectors); break;                                                                           \
    }

static void min_tile_32(size_t n, size_t count, const uint32_t *seeds, size_t k, lsh_scratch *scratch, int32_t *minima)
{
    mix_tile_32(n, count, scratch);
    for (size_t s = 0, vectors; s < k; s += vectors * LANES_32) {
        vectors = (k - s) / LANES_32;
        vectors = vectors < LOCKSTEP ? vectors : LOCKSTEP;
        switch (vectors) {
        case 1: MIN_32_BLOCKS(1) break;
        case 2: MIN_32_BLOCKS(2) break;
        case 3: MIN_32_BLOCKS(3) break;
        default: MIN_32_BLOCKS(4) break;
        }
    }
}

/* The hash of one shingle of any length for every seed. */
static void min_any_32(const uint8_t *shingle, size_t length, const uint32_t *restrict seeds,
                       size_t k, uint64_t *restrict words, int32_t *restrict minima)
{
    size_t at = 0;
    uint32_t *restrict state = (uint32_t *)words;
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

/* ---- 64 bits ---- */

LSH_INLINE W fmix_64(W h)
{
    h = w_mul(w_xor(h, w_shr(h, 33)), 0xff51afd7ed558ccdu);
    h = w_mul(w_xor(h, w_shr(h, 33)), 0xc4ceb9fe1a85ec53u);
    return w_xor(h, w_shr(h, 33));
}

LSH_INLINE void min_64(const lsh_scratch *scratch, size_t count, const size_t vectors, const uint32_t *seeds,
                       uint64_t *minima)
{
    const W flip = w_one(W_FLIP);
    W seed[LOCKSTEP], best[LOCKSTEP], h1[LOCKSTEP], h2[LOCKSTEP];
    LSH_UNROLL for (size_t v = 0; v < vectors; v++) {
        seed[v] = w_widen(seeds + v * LANES_64);
        best[v] = w_xor(w_load(minima + v * LANES_64), flip);
    }
    for (size_t i = 0; i < count; i++) {
        const W low = w_one(scratch->wide[0][i]), high = w_one(scratch->wide[1][i]);
        LSH_UNROLL for (size_t v = 0; v < vectors; v++) {
            h2[v] = w_xor(seed[v], high);
            h1[v] = w_add(w_xor(seed[v], low), h2[v]);
            h2[v] = w_add(h2[v], h1[v]);
        }
        LSH_UNROLL for (size_t v = 0; v < vectors; v++)
            h1[v] = fmix_64(h1[v]);
        LSH_UNROLL for (size_t v = 0; v < vectors; v++)
            h2[v] = fmix_64(h2[v]);
        LSH_UNROLL for (size_t v = 0; v < vectors; v++)
            best[v] = w_min(best[v], w_xor(w_add(h1[v], h2[v]), flip));
    }
    LSH_UNROLL for (size_t v = 0; v < vectors; v++)
        w_store(minima + v * LANES_64, w_xor(best[v], flip));
}

static void mix_tile_64(size_t n, size_t count, lsh_scratch *restrict scratch)
{
    for (size_t i = 0; i < count; i++) {
        scratch->wide[0][i] = lsh_m64_mix1(scratch->low[i]) ^ (uint64_t)n;
        scratch->wide[1][i] = lsh_m64_mix2(scratch->high[i]) ^ (uint64_t)n;
    }
}

static void min_tile_64(size_t n, size_t count, const uint32_t *seeds, size_t k, lsh_scratch *scratch, uint64_t *minima)
{
    size_t s = 0;
    mix_tile_64(n, count, scratch);
    for (; k - s >= LOCKSTEP * LANES_64; s += LOCKSTEP * LANES_64)
        min_64(scratch, count, LOCKSTEP, seeds + s, minima + s);
    for (; s < k; s += LANES_64)
        min_64(scratch, count, 1, seeds + s, minima + s);
}

static void min_any_64(const uint8_t *shingle, size_t length, const uint32_t *restrict seeds, size_t k,
                       uint64_t *restrict one, uint64_t *restrict minima)
{
    uint64_t *restrict two = one + k;
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

/* ---- both ---- */

#define DEFINE_MIN_MURMUR3(name, min_tile, min_any, value_type)                                                        \
    static void name(const lsh_document *document, const uint32_t *seeds, size_t k, lsh_scratch *scratch,              \
                     value_type *minima)                                                                               \
    {                                                                                                                  \
        size_t count;                                                                                                  \
        if (is_fixed(document)) {                                                                                      \
            tiles walk = begin_tiles(document, scratch);                                                               \
            while ((count = next_tile(document, &walk, scratch)) > 0)                                                  \
                min_tile(document->n, count, seeds, k, scratch, minima);                                               \
            return;                                                                                                    \
        }                                                                                                              \
        lsh_shingler walk;                                                                                             \
        lsh_shingler_begin(&walk, document->text, document->length, document->unit, document->n);                      \
        while ((count = lsh_shingler_next(&walk, scratch->spans, LSH_TILE)) > 0)                                       \
            for (size_t i = 0; i < count; i++)                                                                         \
                min_any(document->text + scratch->spans[i].start, scratch->spans[i].length, seeds, k, scratch->state,  \
                        minima);                                                                                       \
    }

DEFINE_MIN_MURMUR3(LSH_SYMBOL(lsh_min_murmur3_32), min_tile_32, min_any_32, int32_t)
DEFINE_MIN_MURMUR3(LSH_SYMBOL(lsh_min_murmur3_64), min_tile_64, min_any_64, uint64_t)
