/* The kernel of scheme fss: part of body.h.
 *
 * Positions in lanes for the hash; one table of minima a bin, written in turn with a second one, for round 0; for the bins that
 * stay empty, the fallback with components in lanes (or positions, where few are empty). A minimum over shingles of a function of
 * (shingle, component), whatever the order of the work: docs/schemes.md has the definition.
 */

enum { FALL_BACK = 6, FEW = 4, FEW_IN_LANES = 8 };

static const uint32_t first_lanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* ---- the base hash ---- */

LSH_INLINE V fmix_32(V h)
{
    h = v_mul(v_xor(h, v_shr(h, 16)), v_one(0x85ebca6bu));
    h = v_mul(v_xor(h, v_shr(h, 13)), v_one(0xc2b2ae35u));
    return v_xor(h, v_shr(h, 16));
}

/* The end of MurmurHash3_x86_128: from its four lanes to its first two words. Lanes that no word of the shingle went into, those
 * behind the first `words`, are equal. */
LSH_INLINE void finish_128(const size_t words, V a, V b, V c, V d, uint32_t *h1, uint32_t *h2)
{
    a = v_add(v_add(a, b), v_add(c, d));
    b = fmix_32(v_add(b, a));
    c = words > 1 ? fmix_32(v_add(c, a)) : b;
    d = words > 2 ? fmix_32(v_add(d, a)) : c;
    a = v_add(v_add(fmix_32(a), b), v_add(c, d));
    v_store(h1, a);
    v_store(h2, v_add(a, b));
}

/* One lane of MurmurHash3_x86_128 before the finaliser: the seed, one mixed word of a shingle without a body, the length. */
#define LANE_128(j, c, r, next)                                                                                        \
    v_xor(base, v_mul(v_rotl(v_mul(v_and(v_words(bytes + 4 * j), v_one(mask[j])), v_one(c)), r), v_one(next)))

/* The first two words of MurmurHash3_x86_128 of `count` shingles of n <= 15 bytes; whole vectors are written. */
LSH_INLINE void hash_tile(const size_t words, const uint8_t *text, size_t n, size_t count, uint32_t seed, uint32_t *h1,
                          uint32_t *h2)
{
    uint32_t mask[4];
    const V base = v_one(seed ^ (uint32_t)n);
    LSH_UNROLL for (size_t j = 0; j < 4; j++)
        mask[j] = n >= 4 * (j + 1) ? UINT32_MAX : n > 4 * j ? ((uint32_t)1 << (8 * (n - 4 * j))) - 1 : 0;
    for (size_t i = 0; i < count; i += LANES_32) {
        const uint8_t *bytes = text + i;
        const V a = LANE_128(0, 0x239b961bu, 15, 0xab0e9789u);
        const V b = words > 1 ? LANE_128(1, 0xab0e9789u, 16, 0x38b34ae5u) : base;
        const V c = words > 2 ? LANE_128(2, 0x38b34ae5u, 17, 0xa1e38b93u) : base;
        const V d = words > 3 ? LANE_128(3, 0xa1e38b93u, 18, 0x239b961bu) : base;
        finish_128(words, a, b, c, d, h1 + i, h2 + i);
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
LSH_INLINE void block_128(V h[4], V one, V two, V three, V four)
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
LSH_INLINE void tail_128(V h[4], V one, V two, V three, V four, V length, uint32_t *h1, uint32_t *h2)
{
    const V c1 = v_one(0x239b961bu), c2 = v_one(0xab0e9789u), c3 = v_one(0x38b34ae5u), c4 = v_one(0xa1e38b93u);
    h[0] = v_xor(v_xor(h[0], v_mul(v_rotl(v_mul(one, c1), 15), c2)), length);
    h[1] = v_xor(v_xor(h[1], v_mul(v_rotl(v_mul(two, c2), 16), c3)), length);
    h[2] = v_xor(v_xor(h[2], v_mul(v_rotl(v_mul(three, c3), 17), c4)), length);
    h[3] = v_xor(v_xor(h[3], v_mul(v_rotl(v_mul(four, c4), 18), c1)), length);
    finish_128(4, h[0], h[1], h[2], h[3], h1, h2);
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
            LSH_UNROLL for (size_t w = 0; w < 4; w++)
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
            LSH_UNROLL for (size_t j = 0; j < 4; j++)
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

/* ---- round 0 ---- */

/* table[bin] = min(table[bin], value). Above SSE2 gcc would turn this into vectors through memory: five times slower. */
LSH_INLINE void lower(uint32_t *table, uint32_t bin, uint32_t value)
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

/* The same when few shingles can still change a minimum: those below `most`, the largest minimum of a bin. */
static void fill_bins_below(const uint32_t *h1, const uint32_t *h2, size_t count, uint32_t k, uint32_t most,
                            lsh_scratch *scratch)
{
    const V bound = v_one(most);
    for (size_t first = 0; first < count; first += 64) { /* 64 at once, as each loop over bits ends with a mispredicted branch */
        uint64_t less = 0;
        LSH_UNROLL for (size_t i = 0; i < 64; i += LANES_32)
            less |= (uint64_t)v_less(v_load(h2 + first + i), bound) << i;
        if (count - first < 64)
            less &= ((uint64_t)1 << (count - first)) - 1;
        for (; less; less &= less - 1) {
            const size_t at = first + lsh_lowest_bit(less);
            lower(scratch->table[0], ((h1[at] >> 16) * k) >> 16, h2[at]);
        }
    }
}

/* The largest minimum of a bin so far: only shingles below it can change a minimum. */
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

/* ---- the fallback ---- */

/* least[j] = min(least[j], factor * rank[j] + shift) over a tile of shingles, components in lanes; as many as FALL_BACK vectors of
 * them, so that ranks and minima fit into sixteen registers. */
LSH_INLINE void fall_back(const lsh_scratch *scratch, size_t count, const size_t vectors, const uint32_t *rank,
                          uint32_t *least)
{
    V ranks[FALL_BACK], best[FALL_BACK];
    LSH_UNROLL for (size_t v = 0; v < vectors; v++) {
        ranks[v] = v_load(rank + v * LANES_32);
        best[v] = v_load(least + v * LANES_32);
    }
    for (size_t i = 0; i < count; i++) {
        const V factor = v_one(scratch->factor[i]), shift = v_one(scratch->shift[i]);
        LSH_UNROLL for (size_t v = 0; v < vectors; v++)
            best[v] = v_min_u(best[v], v_add(v_mul16(factor, ranks[v]), shift));
    }
    LSH_UNROLL for (size_t v = 0; v < vectors; v++)
        v_store(least + v * LANES_32, best[v]);
}

/* The same for up to FEW components, positions in lanes; factor and shift are padded to whole vectors with copies. */
LSH_INLINE void fall_back_few(const lsh_scratch *scratch, size_t count, const size_t few, const uint32_t *rank,
                              uint32_t *least)
{
    V ranks[FEW], best[FEW];
    uint32_t lanes[LANES_32];
    LSH_UNROLL for (size_t j = 0; j < few; j++) {
        ranks[j] = v_one(rank[j]);
        best[j] = v_one(UINT32_MAX);
    }
    for (size_t i = 0; i < count; i += LANES_32) {
        const V factor = v_load(scratch->factor + i), shift = v_load(scratch->shift + i);
        LSH_UNROLL for (size_t j = 0; j < few; j++)
            best[j] = v_min_u(best[j], v_add(v_mul16(factor, ranks[j]), shift));
    }
    LSH_UNROLL for (size_t j = 0; j < few; j++) {
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

/* Write what round 0 found to the fingerprint; list the bins that no shingle fell into, and their ranks, padded to whole
 * vectors, and begin their minima. Returns how many they are. */
static size_t close_bins(const uint32_t *ranks, size_t k, lsh_scratch *restrict scratch, uint32_t *restrict fingerprint)
{
    const V full = v_one(UINT32_MAX), step = v_one(LANES_32);
    V bins = v_load(first_lanes);
    size_t empties = 0, j = 0;
    for (; j + LANES_32 <= k; j += LANES_32, bins = v_add(bins, step)) {
        const V least = v_min_u(v_load(scratch->table[0] + j), v_load(scratch->table[1] + j));
        const uint32_t empty = v_less(least, full) ^ (uint32_t)(((uint64_t)1 << LANES_32) - 1);
        v_store(fingerprint + j, v_shr(least, 1));
        v_pack(scratch->empty + empties, bins, empty);
        v_pack(scratch->rank + empties, v_load(ranks + j), empty);
        empties += lsh_count_ones(empty);
    }
    for (; j < k; j++) {
        const uint32_t a = scratch->table[0][j], b = scratch->table[1][j], least = a < b ? a : b;
        fingerprint[j] = least >> 1;
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
                                lsh_scratch *scratch, uint32_t *fingerprint)
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
        memset(fingerprint, 0xFF, k * sizeof(uint32_t));
        return;
    }
    empties = close_bins(ranks, k, scratch, fingerprint);
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
        fingerprint[scratch->empty[j]] = scratch->least[j] >> 1 | 0x80000000u;
}
