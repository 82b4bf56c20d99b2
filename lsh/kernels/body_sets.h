/* The kernels of exact sets of shingles: part of body.h.
 *
 * A set is an array of the tokens of its distinct shingles, and a table finds a token: buckets of eight tokens, a
 * cache line each, that fill from their first lane on. The top bits of a token are its bucket; a full one overflows into
 * the next. All eight lanes are compared at once, so neither lookup nor insertion has a branch that depends on the text, except
 * for the rare full bucket: a mispredicted branch costs more than the rest.
 *
 * A shingle of at most eight bytes is a word, which two secret odd factors turn into its token one to one: with the same
 * length, the same token is the same bytes. Whatever two words are chosen without the secret, the last factor sends them to
 * the same of 2**d buckets with probability at most 2 / 2**d (multiply-shift, Dietzfelbinger et al. 1997), so a shingle
 * expects at most twice its share of others in its bucket; the first factor and the fold spread the structure that texts
 * have. Up to 32 bytes, four words at most and the length are multiplied by secret factors of 128 bits and summed, of
 * which the upper half is the token: any two shingles get any two tokens with the same probability (multilinear hashing,
 * Lemire and Kaser 2014). A longer shingle, or one on a machine without such products, has its SipHash for a token. Where a
 * token is such a hash, the bytes are compared.
 *
 * A free lane is 0. Shingles with that token are kept apart, as a bit for each of the lengths 1 to 8.
 */
#include "siphash.h"

static inline uint64_t key_token(const lsh_set_secret *secret, uint64_t key)
{
    const uint64_t mixed = (key ^ secret->word) * secret->odd[0];
    return (mixed ^ mixed >> 32) * secret->odd[1];
}

/* The words may overlap: together with the length they are the shingle. */
static inline uint64_t long_hash(const lsh_set_secret *secret, const uint8_t *shingle, size_t length)
{
    if (length > 32)
        return lsh_siphash13(shingle, length, secret->sip);
    lsh_wide sum = lsh_wide_product(secret->factors[0], length);
    sum = lsh_wide_sum(sum, lsh_wide_product(secret->factors[1], lsh_load64(shingle)));
    sum = lsh_wide_sum(sum, lsh_wide_product(secret->factors[2], lsh_load64(shingle + length - 8)));
    if (length > 16) {
        sum = lsh_wide_sum(sum, lsh_wide_product(secret->factors[3], lsh_load64(shingle + 8)));
        sum = lsh_wide_sum(sum, lsh_wide_product(secret->factors[4], lsh_load64(shingle + length - 16)));
    }
    return lsh_wide_top(sum);
}

static inline uint64_t span_token(const lsh_set_secret *secret, const uint8_t *shingle, size_t length)
{
    if (length <= LSH_SET_KEY)
        return key_token(secret, lsh_load_partial(shingle, length));
    const uint64_t hash = long_hash(secret, shingle, length) & secret->kept;
    return hash + (hash == 0);
}

static inline uint64_t *home_of(const lsh_set_table *table, uint64_t token)
{
    return table->lanes + ((size_t)(token >> table->shift) & table->buckets);
}

static inline uint64_t *next_bucket(const lsh_set_table *table, const uint64_t *bucket)
{
    return table->lanes + (((size_t)(bucket - table->lanes) + LSH_SET_LANES) & table->buckets);
}

static inline int in_part(const lsh_set_table *table, uint64_t token, uint64_t part)
{
    return token >> 1 >> (63 - table->part_bits) == part;
}

static inline uint8_t *filled_of(const lsh_set_table *table, const uint64_t *bucket)
{
    return table->filled + (size_t)(bucket - table->lanes) / LSH_SET_LANES;
}

/* Add a token whose bucket is full; returns whether it was in none. */
LSH_NOINLINE size_t add_behind(const lsh_set_table *table, uint64_t token)
{
    uint64_t *bucket = home_of(table, token);
    for (;; bucket = next_bucket(table, bucket)) {
        uint8_t *filled = filled_of(table, bucket);
        if (equal_lanes(bucket, token))
            return 0;
        if (*filled < LSH_SET_LANES) {
            bucket[(*filled)++] = token;
            return 1;
        }
    }
}

/* ---- shingles of one length that are words ---- */

/* The tokens of `count` shingles from `bytes` on; eight bytes can be read at each. Returns whether one of them is 0. */
static inline int take_tokens(const lsh_set_secret *secret, uint64_t mask, const uint8_t *bytes, size_t count,
                              uint64_t *restrict tokens)
{
    const uint64_t odd[2] = {secret->odd[0], secret->odd[1]};
    const W masks = w_one(mask), word = w_one(secret->word);
    uint32_t zero = 0;
    size_t i = 0;
    for (; i + 9 <= count; i += LANES_64) { /* w_words reads sixteen bytes */
        const W mixed = w_mul(w_xor(w_and(w_words(bytes + i), masks), word), odd[0]);
        w_store(tokens + i, w_mul(w_xor(mixed, w_shr(mixed, 32)), odd[1]));
    }
    for (; i < count; i++)
        tokens[i] = key_token(secret, lsh_load64(bytes + i) & mask);
    for (i = 0; i < count; i++)
        zero |= tokens[i] == 0;
    return (int)zero;
}

/* Add `count` tokens. Each is written after those of its bucket, and counted if it is new: an address that depended on
 * the comparison would delay the loads after it. A free lane may so hold a token that the bucket already has. */
static inline void add_tokens(lsh_set *set, const lsh_set_table *table, const uint64_t *tokens, size_t count)
{
    const lsh_set_table place = *table;
    uint64_t *end = set->tokens + set->count;
    for (size_t i = 0; i < count; i++) {
        const uint64_t token = tokens[i];
        const size_t at = (size_t)(token >> place.shift) & place.buckets;
        uint64_t *bucket = place.lanes + at;
        uint8_t *filled = place.filled + at / LSH_SET_LANES;
        const size_t used = *filled;
        size_t fresh;
        *end = token;
        if (used < LSH_SET_LANES) {
            fresh = equal_lanes(bucket, token) == 0;
            HIDE_WORD(fresh); /* keeps the compiler from making a branch of it */
            bucket[used] = token;
            *filled = (uint8_t)(used + fresh);
        } else {
            fresh = add_behind(&place, token);
        }
        end += fresh;
    }
    set->count = (size_t)(end - set->tokens);
}

/* Move the tokens that fall in a part and are not 0 to the front; returns how many. */
static size_t take_part(const lsh_set_table *table, uint64_t part, uint64_t *tokens, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t token = tokens[i];
        tokens[kept] = token;
        kept += in_part(table, token, part) && token != 0;
    }
    return kept;
}

static void add_run(lsh_set *set, const lsh_set_table *table, const lsh_set_secret *secret, uint64_t part,
                    const uint8_t *bytes, size_t count)
{
    enum { RUN = 256 };
    uint64_t tokens[RUN];
    const uint64_t mask = UINT64_MAX >> (64 - 8 * set->width);
    for (size_t at = 0; at < count; at += RUN) {
        size_t taken = count - at < RUN ? count - at : RUN;
        const int zero = take_tokens(secret, mask, bytes + at, taken, tokens);
        if (zero && part == 0)
            set->zero |= (uint32_t)1 << set->width;
        if (zero || table->part_bits)
            taken = take_part(table, part, tokens, taken);
        add_tokens(set, table, tokens, taken);
    }
}

static size_t LSH_SYMBOL(lsh_set_add_keys)(lsh_set *set, const lsh_set_table *table, const lsh_set_secret *secret,
                                           uint64_t part, size_t length, size_t first)
{
    const size_t shingles = length - set->width + 1, inside = length >= 8 ? length - 7 : 0;
    uint8_t end[16] = {0}; /* the last bytes of the text, from `inside` on, and zeros behind them */
    while (first < shingles) {
        const size_t stop = first < inside && inside < shingles ? inside : shingles, room = set->capacity - set->count;
        size_t count = stop - first;
        if (count > room) {
            if (room < LSH_SET_ROOM)
                break;
            count = room;
        }
        if (first >= inside) /* not sooner: the end of a long text is not in the cache before the rest was read */
            memcpy(end, set->text + inside, length - inside);
        const uint8_t *bytes = first < inside ? set->text + first : end + (first - inside);
        add_run(set, table, secret, part, bytes, count);
        first += count;
    }
    return first;
}

/* ---- shingles of any length ---- */

/* Whether entry i of a and entry j of b, which have the same token, are the same bytes. */
static inline int same_shingle(const lsh_set *a, size_t i, const lsh_set *b, size_t j)
{
    const size_t length = a->spans ? a->spans[i].length : a->width;
    if (length != (b->spans ? b->spans[j].length : b->width))
        return 0;
    return length <= LSH_SET_KEY || memcmp(a->text + a->spans[i].start, b->text + b->spans[j].start, length) == 0;
}

static inline size_t entry_of(const lsh_set_table *table, const uint64_t *lane)
{
    return table->entries ? table->entries[lane - table->lanes] : 0; /* without spans the entry is not used */
}

/* The lane, in the table of the set, of entry j of `other`; NULL if the set does not have it. */
static const uint64_t *lane_of(const lsh_set_table *table, const lsh_set *set, const lsh_set *other, size_t j)
{
    for (const uint64_t *bucket = home_of(table, other->tokens[j]);; bucket = next_bucket(table, bucket)) {
        for (uint32_t found = equal_lanes(bucket, other->tokens[j]); found; found &= found - 1)
            if (same_shingle(set, entry_of(table, bucket + lsh_lowest_bit(found)), other, j))
                return bucket + lsh_lowest_bit(found);
        if (bucket[LSH_SET_LANES - 1] == 0 || *filled_of(table, bucket) < LSH_SET_LANES)
            return NULL;
    }
}

static inline int has_shingle(const lsh_set_table *table, const lsh_set *set, const lsh_set *other, size_t j)
{
    return lane_of(table, set, other, j) != NULL;
}

/* Put the token of an entry, which is not there, into the table. */
static void enter(const lsh_set_table *table, uint64_t token, size_t entry)
{
    uint64_t *bucket = home_of(table, token);
    while (*filled_of(table, bucket) == LSH_SET_LANES)
        bucket = next_bucket(table, bucket);
    uint64_t *lane = bucket + (*filled_of(table, bucket))++;
    *lane = token;
    if (table->entries)
        table->entries[lane - table->lanes] = (uint32_t)entry;
}

static void LSH_SYMBOL(lsh_set_add_spans)(lsh_set *set, const lsh_set_table *table, const lsh_set_secret *secret,
                                          uint64_t part, const lsh_span *spans, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const size_t length = spans[i].length;
        const uint64_t token = span_token(secret, set->text + spans[i].start, length);
        if (!in_part(table, token, part))
            continue;
        if (token == 0) {
            set->zero |= (uint32_t)1 << length;
            continue;
        }
        set->tokens[set->count] = token;
        set->spans[set->count] = spans[i];
        if (has_shingle(table, set, set, set->count))
            continue;
        enter(table, token, set->count);
        set->count++;
    }
}

/* ---- the shingles of a text by parts of the hash space: a radix partition ---- */

static inline uint64_t part_of(uint64_t token, uint32_t part_bits)
{
    return token >> 1 >> (63 - part_bits);
}

static int LSH_SYMBOL(lsh_set_split_keys)(const lsh_set_secret *secret, size_t width, const uint8_t *text, size_t length,
                                          uint32_t part_bits, uint64_t first, uint64_t parts, size_t *at,
                                          uint64_t *tokens)
{
    enum { RUN = 256 };
    uint64_t run[RUN];
    const uint64_t mask = UINT64_MAX >> (64 - 8 * width);
    const size_t shingles = length - width + 1, inside = length >= 8 ? length - 7 : 0;
    uint8_t end[16] = {0}; /* as in lsh_set_add_keys, but seven shingles at most */
    memcpy(end, text + inside, length - inside);
    int zero = 0;
    for (size_t from = 0; from < shingles;) {
        const size_t stop = from < inside && inside < shingles ? inside : shingles;
        const size_t count = stop - from < RUN ? stop - from : RUN;
        zero |= take_tokens(secret, mask, from < inside ? text + from : end, count, run);
        size_t kept = 0; /* moved to the front without a branch, which would be mispredicted for half of the parts */
        for (size_t i = 0; i < count; i++) {
            const uint64_t token = run[i];
            run[kept] = token;
            kept += part_of(token, part_bits) - first < parts && token != 0;
        }
        for (size_t i = 0; i < kept; i++) {
            const size_t place = at[part_of(run[i], part_bits) - first]++;
            if (tokens)
                tokens[place] = run[i];
        }
        from += count;
    }
    return zero;
}

static void LSH_SYMBOL(lsh_set_split_spans)(const lsh_set_secret *secret, const uint8_t *text, const lsh_span *spans,
                                            size_t count, uint32_t part_bits, uint64_t first, uint64_t parts, size_t *at,
                                            lsh_span *out)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t part = part_of(span_token(secret, text + spans[i].start, spans[i].length), part_bits) - first;
        if (part >= parts)
            continue;
        if (out)
            out[at[part]] = spans[i];
        at[part]++;
    }
}

static void LSH_SYMBOL(lsh_set_add_tokens)(lsh_set *set, const lsh_set_table *table, const uint64_t *tokens, size_t count)
{
    add_tokens(set, table, tokens, count);
}

/* ---- bitmaps of sets ---- */

static inline size_t bit_of(uint64_t token, size_t mask)
{
    return (size_t)(token >> LSH_SET_BIT) & mask;
}

static inline size_t is_marked(const lsh_set_table *table, uint64_t token)
{
    const size_t bit = bit_of(token, table->bits_mask);
    return table->bits[bit / 64] >> bit % 64 & 1;
}

static void LSH_SYMBOL(lsh_set_mark)(const lsh_set *set, uint64_t *bits, size_t words)
{
    bits[0] |= 1; /* of the shingles whose token is 0, and so that none has to be looked for */
    for (size_t i = 0; i < set->count; i++) {
        const size_t bit = bit_of(set->tokens[i], 64 * words - 1);
        bits[bit / 64] |= (uint64_t)1 << bit % 64;
    }
}

/* How many bits of each byte are 1. */
static inline uint64_t ones_by_byte(uint64_t word)
{
    word -= word >> 1 & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
    return (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
}

/* The bytes of a sum can count the bits of so many words. */
enum { COUNTED = 16 };

static size_t LSH_SYMBOL(lsh_count_common)(const uint64_t *a, const uint64_t *b, size_t words)
{
    size_t ones = 0;
    for (size_t first = 0; first < words; first += COUNTED) {
        const size_t count = words - first < COUNTED ? words - first : COUNTED;
        uint64_t sum = 0;
        for (size_t i = first; i < first + count; i++)
            sum += ones_by_byte(a[i] & b[i]);
        sum = (sum & 0x00FF00FF00FF00FFu) + (sum >> 8 & 0x00FF00FF00FF00FFu);
        ones += (size_t)(sum * 0x0001000100010001u >> 48);
    }
    return ones;
}

/* ---- tables of existing sets, and lookups ---- */

static void LSH_SYMBOL(lsh_set_enter)(const lsh_set *set, const lsh_set_table *table, size_t first)
{
    for (size_t i = first; i < set->count; i++)
        enter(table, set->tokens[i], i);
}

static void LSH_SYMBOL(lsh_set_find)(const lsh_set *set, const lsh_set_table *table, const lsh_set *other, uint32_t *entries)
{
    enum { AHEAD = 16 };
    for (size_t j = 0; j < other->count; j++) {
        if (j + AHEAD < other->count)
            lsh_prefetch(home_of(table, other->tokens[j + AHEAD]));
        const uint64_t *lane = lane_of(table, set, other, j);
        entries[j] = lane ? table->entries[lane - table->lanes] : LSH_SET_NONE;
    }
}

/* Whether a bucket holds the token that a full one may have sent there. */
LSH_NOINLINE int is_behind(const lsh_set_table *table, const uint64_t *bucket, uint64_t token)
{
    uint32_t found = 0;
    while (found == 0 && bucket[LSH_SET_LANES - 1] != 0) {
        bucket = next_bucket(table, bucket);
        found = equal_lanes(bucket, token);
    }
    return found != 0;
}

/* How many of `count` tokens the table holds. */
static inline size_t count_tokens(const lsh_set_table *table, const uint64_t *tokens, size_t count)
{
    const lsh_set_table place = *table;
    size_t shared = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t *bucket = home_of(&place, tokens[i]);
        size_t found = equal_lanes(bucket, tokens[i]) != 0;
        HIDE_WORD(found);
        shared += found;
        if (bucket[LSH_SET_LANES - 1] != 0) /* full, or nearly */
            shared += found ? 0 : (size_t)is_behind(table, bucket, tokens[i]);
    }
    return shared;
}

enum { ASKED = 64 }; /* tokens that are looked up in one go */

/* How many of `count` tokens, at most ASKED, the table holds. Where the table lies outside the nearest caches, its bitmap spares most
 * of the lookups of tokens that it does not hold. */
LSH_NOINLINE size_t count_filtered(const lsh_set_table *table, const uint64_t *restrict tokens, size_t count)
{
    const lsh_set_table place = *table;
    uint64_t likely[ASKED];
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        likely[found] = tokens[i];
        found += is_marked(&place, tokens[i]);
    }
    return count_tokens(table, likely, found);
}

static inline size_t count_possible(const lsh_set_table *table, const uint64_t *tokens, size_t count)
{
    return table->bits ? count_filtered(table, tokens, count) : count_tokens(table, tokens, count);
}

static size_t LSH_SYMBOL(lsh_set_most_shared)(const lsh_set *set, const lsh_set_table *table, const lsh_set_secret *secret,
                                              const uint8_t *text, size_t length, size_t least)
{
    uint64_t tokens[ASKED];
    const uint64_t mask = UINT64_MAX >> (64 - 8 * set->width);
    const size_t shingles = length - set->width + 1, inside = length >= 8 ? length - 7 : 0;
    uint8_t end[16] = {0}; /* as above, but seven shingles at most */
    memcpy(end, text + inside, length - inside);
    size_t shared = 0;
    for (size_t at = 0; at < shingles && shared + (shingles - at) >= least;) {
        const size_t stop = at < inside && inside < shingles ? inside : shingles;
        const size_t count = stop - at < ASKED ? stop - at : ASKED;
        /* a token of 0 is found in a free lane: counting one too many is allowed here */
        (void)take_tokens(secret, mask, at < inside ? text + at : end, count, tokens);
        shared += count_possible(table, tokens, count);
        at += count;
    }
    return shared;
}

static size_t LSH_SYMBOL(lsh_set_most_spans)(const lsh_set_table *table, const lsh_set_secret *secret, const uint8_t *text,
                                             const lsh_span *spans, size_t count)
{
    uint64_t tokens[ASKED];
    size_t shared = 0;
    for (size_t at = 0; at < count; at += ASKED) {
        const size_t taken = count - at < ASKED ? count - at : ASKED;
        for (size_t i = 0; i < taken; i++)
            tokens[i] = span_token(secret, text + spans[at + i].start, spans[at + i].length);
        shared += count_possible(table, tokens, taken);
    }
    return shared;
}

static inline size_t count_spans(const lsh_set_table *table, const lsh_set *set, const lsh_set *other, size_t first,
                                 size_t count)
{
    size_t shared = 0;
    for (size_t j = first; j < first + count; j++)
        if (table->bits == NULL || is_marked(table, other->tokens[j]))
            shared += (size_t)has_shingle(table, set, other, j);
    return shared;
}

static size_t LSH_SYMBOL(lsh_set_count_shared)(const lsh_set *set, const lsh_set_table *table, const lsh_set *other,
                                               size_t least)
{
    const int keys = set->spans == NULL && other->spans == NULL;
    size_t shared = 0;
    if (keys && set->width != other->width)
        return 0;
    for (uint32_t zero = set->zero & other->zero; zero; zero &= zero - 1)
        shared++;
    for (size_t i = 0; i < other->count && shared + (other->count - i) >= least; i += ASKED) {
        const size_t count = other->count - i < ASKED ? other->count - i : ASKED;
        shared += keys ? count_possible(table, other->tokens + i, count) : count_spans(table, set, other, i, count);
    }
    return shared;
}
