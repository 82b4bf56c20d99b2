/* The kernels against plain formulas, without Python: harness [CASES [SEED]].
 *
 * Every level of this build and this CPU gets the same random documents, seeds and sizes. Its results must equal those of
 * the formulas below. The formulas are written from the published MurmurHash3 and from docs/schemes.md, share no code with
 * the kernels and process one shingle at a time. The memory of the kernels lies directly before or after an inaccessible
 * page, so an access one byte outside ends the program. The generator of a document records where its shingles begin.
 *
 * Prints the levels that ran; the exit status is 0 if all results agree.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "_murmur3.h"
#include "kernels/kernels.h"

enum { MAX_TEXT = 64000, MAX_UNITS = MAX_TEXT, MAX_K = 4096 };

/* ---- random numbers ---- */

static uint64_t state = 1;

static uint64_t draw(void) /* xorshift64*, Vigna 2016 */
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545F4914F6CDD1Du;
}

static size_t below(size_t limit) { return (size_t)((draw() >> 32) % limit); }
static size_t between(size_t low, size_t high) { return low + below(high - low + 1); }

/* ---- memory between two inaccessible pages ---- */

typedef struct {
    uint8_t *first, *end;
} room;

static room make_room(size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t whole = (size + page - 1) / page * page;
    uint8_t *memory = mmap(NULL, whole + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, page, PROT_NONE) || mprotect(memory + page + whole, page, PROT_NONE)) {
        perror("harness: no memory");
        exit(2);
    }
    return (room){memory + page, memory + page + whole};
}

static void drop_room(room place)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    munmap(place.first - page, (size_t)(place.end - place.first) + 2 * page);
}

/* `size` bytes at the end of the memory, or at its beginning. */
static void *at_end(room place, size_t size) { return place.end - size; }
static void *at_edge(room place, size_t size) { return below(4) ? place.end - size : place.first; }

/* ---- the formulas: MurmurHash3 ---- */

static uint32_t turn32(uint32_t x, int r) { return x << r | x >> (32 - r); }
static uint64_t turn64(uint64_t x, int r) { return x << r | x >> (64 - r); }

static uint32_t finish32(uint32_t h)
{
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

static uint64_t finish64(uint64_t h)
{
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

/* The bytes from..to-1 of data as a little-endian number; bytes after `length` count as 0. */
static uint64_t number(const uint8_t *data, size_t length, size_t from, size_t to)
{
    uint64_t x = 0;
    while (to > from)
        if (--to < length)
            x |= (uint64_t)data[to] << (8 * (to - from));
    return x;
}

static uint32_t plain_x86_32(const uint8_t *data, size_t length, uint32_t seed)
{
    uint32_t h = seed;
    for (size_t at = 0; at <= length / 4 * 4; at += 4) {
        h ^= turn32((uint32_t)number(data, length, at, at + 4) * 0xcc9e2d51u, 15) * 0x1b873593u;
        if (at + 4 <= length)
            h = turn32(h, 13) * 5 + 0xe6546b64u;
    }
    return finish32(h ^ (uint32_t)length);
}

static void plain_x86_128(const uint8_t *data, size_t length, uint32_t seed, uint32_t h[4])
{
    static const uint32_t c[5] = {0x239b961bu, 0xab0e9789u, 0x38b34ae5u, 0xa1e38b93u, 0x239b961bu};
    static const uint32_t add[4] = {0x561ccd1bu, 0x0bcaa747u, 0x96cd1c35u, 0x32ac3b17u};
    static const int turn[4] = {19, 17, 15, 13};
    for (int i = 0; i < 4; i++)
        h[i] = seed;
    for (size_t at = 0; at <= length / 16 * 16; at += 16)
        for (size_t i = 0; i < 4; i++) {
            uint32_t k = (uint32_t)number(data, length, at + 4 * i, at + 4 * i + 4);
            h[i] ^= turn32(k * c[i], 15 + (int)i) * c[i + 1];
            if (at + 16 <= length)
                h[i] = (turn32(h[i], turn[i]) + h[(i + 1) % 4]) * 5 + add[i];
        }
    for (int i = 0; i < 4; i++)
        h[i] ^= (uint32_t)length;
    for (int again = 0; again < 2; again++) {
        h[0] += h[1] + h[2] + h[3];
        for (int i = 1; i < 4; i++)
            h[i] += h[0];
        for (int i = 0; i < 4 && again == 0; i++)
            h[i] = finish32(h[i]);
    }
}

static void plain_x64_128(const uint8_t *data, size_t length, uint32_t seed, uint64_t h[2])
{
    const uint64_t c1 = 0x87c37b91114253d5u, c2 = 0x4cf5ad432745937fu;
    h[0] = h[1] = seed;
    for (size_t at = 0; at <= length / 16 * 16; at += 16) {
        h[0] ^= turn64(number(data, length, at, at + 8) * c1, 31) * c2;
        if (at + 16 <= length)
            h[0] = (turn64(h[0], 27) + h[1]) * 5 + 0x52dce729u;
        h[1] ^= turn64(number(data, length, at + 8, at + 16) * c2, 33) * c1;
        if (at + 16 <= length)
            h[1] = (turn64(h[1], 31) + h[0]) * 5 + 0x38495ab5u;
    }
    h[0] ^= length;
    h[1] ^= length;
    h[0] += h[1];
    h[1] += h[0];
    h[0] = finish64(h[0]);
    h[1] = finish64(h[1]);
    h[0] += h[1];
    h[1] += h[0];
}

/* ---- the formulas: the values of a shingle for the components of a fingerprint ---- */

static uint32_t bits_of(uint32_t k)
{
    uint32_t bits = 1;
    while (((uint32_t)1 << bits) < k)
        bits++;
    return bits;
}

static uint32_t ranks_of_fss[MAX_K];

static void shuffle_ranks(uint32_t k)
{
    uint64_t position = 0;
    for (uint32_t j = 0; j >> bits_of(k) == 0; j++)
        ranks_of_fss[j] = j;
    for (uint32_t j = ((uint32_t)1 << bits_of(k)) - 1; j > 0; j--) {
        uint64_t z = position += 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        z ^= z >> 31;
        const uint32_t other = (uint32_t)((z >> 32) * (j + 1) >> 32), held = ranks_of_fss[other];
        ranks_of_fss[other] = ranks_of_fss[j];
        ranks_of_fss[j] = held;
    }
}

static uint32_t offer(uint32_t h1, uint32_t h2, uint32_t j, uint32_t k)
{
    if (j == (h1 >> 16) * k >> 16 && h2 != 0xFFFFFFFFu)
        return h2 >> 1;
    const uint32_t factor = (h2 | 1) << (32 - bits_of(k));
    return (factor * ranks_of_fss[j] + turn32(h1, 16)) >> 1 | 0x80000000u;
}

/* ---- documents, built from known units ---- */

static uint8_t text[MAX_TEXT];
static size_t length, units, begins[MAX_UNITS], ends[MAX_UNITS]; /* of each unit */
static uint8_t joined[MAX_TEXT];                                  /* the words, for murmur3 */
static size_t joined_length, joined_begins[MAX_UNITS], joined_ends[MAX_UNITS];

static void put(const char *piece)
{
    const size_t size = strlen(piece);
    if (size > MAX_TEXT - length) {
        fprintf(stderr, "harness: a text of more than %d bytes\n", MAX_TEXT);
        exit(2);
    }
    memcpy(text + length, piece, size);
    length += size;
}

static void make_bytes(size_t size)
{
    const size_t kind = below(6), period = between(1, 40), tail = size - (size < 50 ? size : between(1, 50));
    for (size_t i = 0; i < size; i++)
        text[i] = kind == 0   ? (uint8_t)draw()
                  : kind == 1 ? (uint8_t) "aabcdeeee t"[below(11)]
                  : kind == 2 ? 0x80
                  : kind == 3 ? (uint8_t)(i < period ? draw() : text[i - period])
                  : kind == 4 ? (uint8_t)(below(50) ? 0 : draw())
                              : (uint8_t)(i < tail ? 'x' : draw()); /* new shingles at the end only */
    length = units = size;
    for (size_t i = 0; i < size; i++) {
        begins[i] = i;
        ends[i] = i + 1;
    }
}

static void make_characters(size_t count)
{
    /* 0xFF and 0xC0 are never part of a character */
    static const char *const pieces[] = {"a",        "b",        " ",        "\x7f",     "\xc3\xa9", "\xdf\xbf", "\xe0\xa0\x80",
                                         "\xef\xbf\xbf", "\xed\xa0\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "\xff", "\xc0"};
    const size_t used = below(3) ? sizeof pieces / sizeof *pieces : 4;
    length = 0;
    for (units = 0; units < count; units++) {
        begins[units] = length;
        put(pieces[below(used)]);
        ends[units] = length;
    }
}

static uint8_t word_table[0x110000 / 8];

static void make_words(size_t count)
{
    static const char *const letters[] = {"a", "e", "t", "Z", "7", "_", "\xc3\xa9", "\xe6\xbc\xa2", "\xf0\x90\x80\x80"};
    static const char *const gaps[] = {" ", ", ", "-", "\xff", "\xc3", "\n\n", "\xe2\x80\x94", "\xed\xa0\x80 "};
    const size_t sparse = below(3);
    length = joined_length = 0;
    while (sparse && below(2))
        put(gaps[below(8)]);
    for (units = 0; units < count; units++) {
        begins[units] = length;
        for (size_t size = between(1, below(40) ? 5 : 60); size > 0; size--)
            put(letters[below(sparse == 2 ? 2 : 9)]);
        ends[units] = length;
        if (units > 0)
            joined[joined_length++] = ' ';
        joined_begins[units] = joined_length;
        memcpy(joined + joined_length, text + begins[units], length - begins[units]);
        joined_length += length - begins[units];
        joined_ends[units] = joined_length;
        if (units + 1 < count || below(2))
            put(gaps[below(8)]);
    }
}

static void fill_word_table(void)
{
    static const uint32_t members[] = {'a', 'e', 't', 'Z', '7', '_', 0xE9, 0x6F22, 0x10000};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        word_table[members[i] >> 3] |= (uint8_t)(1 << (members[i] & 7));
}

/* ---- the comparison ---- */

typedef struct {
    enum lsh_unit unit;
    size_t n, k;
    uint32_t seed;
} parameters;

static const char *const level_names[] = {"baseline", "avx2", "avx512", "neon"};
static const struct lsh_kernels *levels[4];
static size_t level_count;
static unsigned long failures;

static void failed(const char *level, const char *what, const parameters *p, size_t component)
{
    fprintf(stderr, "%s: %s differs in component %zu: unit %d, n %zu, k %zu, seed %u, %zu bytes, %zu units\n", level, what,
            component, (int)p->unit, p->n, p->k, (unsigned)p->seed, length, units);
    if (++failures == 10)
        exit(1);
}

static uint32_t plain_narrow[MAX_K], plain_fingerprint[MAX_K];
static uint64_t plain_wide[MAX_K];
static uint32_t seeds[MAX_K];

/* The bytes of the shingle that begins at unit i. */
static const uint8_t *shingle(const parameters *p, size_t i, size_t *size)
{
    const int words = p->unit == LSH_WORD;
    const size_t last = i + p->n < units ? i + p->n - 1 : units - 1;
    *size = words ? joined_ends[last] - joined_begins[i] : ends[last] - begins[i];
    return words ? joined + joined_begins[i] : text + begins[i];
}

static void plain_murmur3(const parameters *p, size_t shingles)
{
    for (size_t s = 0; s < p->k; s++) {
        plain_narrow[s] = 0x7FFFFFFF;
        plain_wide[s] = UINT64_MAX;
    }
    for (size_t i = 0; i < shingles; i++) {
        size_t size;
        const uint8_t *bytes = shingle(p, i, &size);
        for (size_t s = 0; s < p->k; s++) {
            uint64_t wide[2];
            const uint32_t narrow = plain_x86_32(bytes, size, seeds[s]);
            plain_x64_128(bytes, size, seeds[s], wide);
            if ((narrow ^ 0x80000000u) < (plain_narrow[s] ^ 0x80000000u))
                plain_narrow[s] = narrow;
            if (wide[0] < plain_wide[s])
                plain_wide[s] = wide[0];
        }
    }
}

static void plain_fss(const parameters *p, size_t shingles)
{
    static uint8_t hashes[8 * MAX_UNITS]; /* of the words */
    for (size_t i = 0; p->unit == LSH_WORD && i < units; i++) {
        uint32_t h[4];
        plain_x86_128(text + begins[i], ends[i] - begins[i], p->seed, h);
        for (size_t b = 0; b < 8; b++)
            hashes[8 * i + b] = (uint8_t)(h[b / 4] >> (8 * (b % 4)));
    }
    shuffle_ranks((uint32_t)p->k);
    for (size_t j = 0; j < p->k; j++)
        plain_fingerprint[j] = UINT32_MAX;
    for (size_t i = 0; i < shingles; i++) {
        uint32_t h[4];
        size_t size;
        const uint8_t *bytes = shingle(p, i, &size);
        if (p->unit == LSH_WORD) {
            bytes = hashes + 8 * i;
            size = 8 * (p->n < units ? p->n : units);
        }
        plain_x86_128(bytes, size, p->seed, h);
        for (uint32_t j = 0; j < p->k; j++) {
            const uint32_t value = offer(h[0], h[1], j, (uint32_t)p->k);
            if (value < plain_fingerprint[j])
                plain_fingerprint[j] = value;
        }
    }
}

static room text_room, seed_room, rank_room, out_room, state_room, place_room, hash_room[2];
static lsh_scratch *scratch;

/* Give the scratch memory another content; under libFuzzer rarely, as it is larger than a text. */
static void disturb_scratch(void)
{
#ifdef LSH_FUZZ
    static unsigned calls;
    if (calls++ % 256)
        return;
#endif
    memset(scratch, (int)draw(), sizeof *scratch);
}

static lsh_document placed(const parameters *p, const uint8_t *bytes, size_t size)
{
    uint8_t *place = at_edge(text_room, size);
    if (size > 0)
        memcpy(place, bytes, size);
    return (lsh_document){place, size, p->unit, p->n};
}

static void check_murmur3(const parameters *p, size_t shingles)
{
    const size_t padded = (p->k + LSH_LANES - 1) / LSH_LANES * LSH_LANES;
    const int words = p->unit == LSH_WORD;
    uint32_t *padded_seeds = at_end(seed_room, padded * sizeof *padded_seeds);
    for (size_t s = 0; s < padded; s++)
        padded_seeds[s] = seeds[s < p->k ? s : p->k - 1];
    plain_murmur3(p, shingles);
    for (size_t l = 0; l < level_count; l++) {
        lsh_document document = placed(p, words ? joined : text, words ? joined_length : length);
        disturb_scratch();
        scratch->state = at_end(state_room, 2 * padded * sizeof(uint64_t));
        int32_t *narrow = at_end(out_room, padded * sizeof *narrow);
        for (size_t s = 0; s < padded; s++)
            narrow[s] = INT32_MAX;
        levels[l]->min_murmur3_32(&document, padded_seeds, padded, scratch, narrow);
        for (size_t s = 0; s < p->k; s++)
            if ((uint32_t)narrow[s] != plain_narrow[s]) {
                failed(levels[l]->level, "min_murmur3_32", p, s);
                break;
            }
        uint64_t *wide = at_end(out_room, padded * sizeof *wide);
        for (size_t s = 0; s < padded; s++)
            wide[s] = UINT64_MAX;
        levels[l]->min_murmur3_64(&document, padded_seeds, padded, scratch, wide);
        for (size_t s = 0; s < p->k; s++)
            if (wide[s] != plain_wide[s]) {
                failed(levels[l]->level, "min_murmur3_64", p, s);
                break;
            }
    }
}

static void check_fss(const parameters *p, size_t shingles)
{
    static uint32_t permutation[LSH_MAX_FSS];
    const size_t padded = (p->k + LSH_LANES - 1) / LSH_LANES * LSH_LANES;
    uint32_t *ranks = at_end(rank_room, padded * sizeof *ranks);
    lsh_fss_ranks(p->k, permutation, ranks);
    plain_fss(p, shingles);
    for (size_t l = 0; l < level_count; l++) {
        lsh_document document = placed(p, text, length);
        uint32_t *fingerprint = at_end(out_room, p->k * sizeof *fingerprint);
        disturb_scratch();
        for (size_t i = 0; i < 2; i++)
            scratch->word_hashes[i] = at_end(hash_room[i], (p->n + LSH_TILE + LSH_LANES) * sizeof(uint32_t));
        scratch->word_table = word_table;
        levels[l]->fss(&document, p->seed, ranks, p->k, scratch, fingerprint);
        for (size_t j = 0; j < p->k; j++)
            if (fingerprint[j] != plain_fingerprint[j]) {
                failed(levels[l]->level, "fss", p, j);
                break;
            }
    }
}

/* ---- sets of shingles: of the first units of a document, and of its last units ---- */

typedef struct {
    const uint8_t *bytes;
    size_t size;
} piece;

enum { MAX_PIECES = 700, MAX_SET = 1024 };

/* Keep the first of equal pieces; returns the number of remaining pieces. */
static size_t distinct(piece *pieces, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        size_t j = 0;
        while (j < kept &&
               (pieces[j].size != pieces[i].size || memcmp(pieces[j].bytes, pieces[i].bytes, pieces[i].size)))
            j++;
        if (j == kept)
            pieces[kept++] = pieces[i];
    }
    return kept;
}

/* Whether shingle i of the text is one of `count` pieces. */
static size_t shares(const parameters *p, size_t i, const piece *pieces, size_t count)
{
    size_t size, j = 0;
    const uint8_t *bytes = shingle(p, i, &size);
    while (j < count && (pieces[j].size != size || memcmp(pieces[j].bytes, bytes, size)))
        j++;
    return j < count;
}

static room matrix_room, bitmap_room[2], token_room[2], span_room[2], lane_room[2], filled_room[2], entry_room[2], set_text_room[2];

typedef struct {
    lsh_set set;
    lsh_set_table table;
} whole_set;

/* An empty table of 2**lg buckets. */
static lsh_set_table make_table(size_t which, uint32_t lg, uint32_t part_bits, int spans)
{
    const size_t buckets = (size_t)1 << lg, lanes = buckets * LSH_SET_LANES;
    uint32_t *entries = spans ? at_end(entry_room[which], lanes * 4) : NULL;
    lsh_set_table table = {at_end(lane_room[which], lanes * 8), at_end(filled_room[which], buckets), entries,
                           lanes - LSH_SET_LANES, 61 - part_bits - lg, part_bits, NULL, 0};
    memset(table.lanes, 0, lanes * 8);
    memset(table.filled, 0, buckets);
    return table;
}

static size_t size_of(const lsh_set *set)
{
    size_t size = set->count;
    for (uint32_t zero = set->zero; zero; zero &= zero - 1)
        size++;
    return size;
}

/* The set of the shingles first .. first + count - 1, as words of equal length or as spans. */
static void make_set(const struct lsh_kernels *level, const parameters *p, size_t which, size_t first, size_t count,
                     int spans, const lsh_set_secret *secret, uint32_t part_bits, uint64_t part, whole_set *made)
{
    const uint8_t *base = p->unit == LSH_WORD ? joined : text;
    size_t last_size, ignored;
    const uint8_t *begin = shingle(p, first, &ignored), *end = shingle(p, first + count - 1, &last_size) + last_size;
    const size_t size = (size_t)(end - begin), tight = between(LSH_SET_ROOM, LSH_SET_ROOM + count);
    size_t capacity = spans ? count : tight;
    uint8_t *copy = at_edge(set_text_room[which], size);
    memcpy(copy, begin, size);
    made->set = (lsh_set){copy, at_end(token_room[which], capacity * 8), NULL, spans ? 0 : last_size, 0, capacity, 0};
    made->table = make_table(which, 8, part_bits, spans);
    if (spans) {
        static lsh_span found[MAX_PIECES];
        made->set.spans = at_end(span_room[which], capacity * sizeof(lsh_span));
        for (size_t i = 0; i < count; i++)
            found[i].start = (size_t)(shingle(p, first + i, &found[i].length) - base) - (size_t)(begin - base);
        const size_t half = below(count + 1);
        level->set_add_spans(&made->set, &made->table, secret, part, found, half);
        level->set_add_spans(&made->set, &made->table, secret, part, found + half, count - half);
        return;
    }
    size_t at = level->set_add_keys(&made->set, &made->table, secret, part, size, 0);
    if (at < count) { /* the set was full: make a larger set and a new table */
        uint64_t *larger = at_end(token_room[which], MAX_SET * 8);
        memmove(larger, made->set.tokens, made->set.count * 8);
        made->set.tokens = larger;
        made->set.capacity = MAX_SET;
        made->table = make_table(which, 9, part_bits, 0);
        level->set_enter(&made->set, &made->table, 0);
        at = level->set_add_keys(&made->set, &made->table, secret, part, size, at);
    }
    failures += at != count;
}

/* Make bitmaps of two sets, and give the table of the first one its bitmap; returns whether they bound what is shared. */
static int check_bitmaps(const struct lsh_kernels *level, whole_set made[2], size_t shared)
{
    static uint64_t expected[1 << 6];
    const size_t words = (size_t)1 << below(7), bytes = words * 8;
    uint64_t *bits[2];
    size_t common = 0, ones[2] = {0, 0};
    for (size_t w = 0; w < 2; w++) {
        bits[w] = at_end(bitmap_room[w], bytes);
        memset(bits[w], 0, bytes);
        memset(expected, 0, bytes);
        expected[0] = 1;
        for (size_t i = 0; i < made[w].set.count; i++) {
            const uint64_t bit = (made[w].set.tokens[i] >> 40) % (64 * words);
            expected[bit / 64] |= (uint64_t)1 << bit % 64;
        }
        level->set_mark(&made[w].set, bits[w], words);
        if (memcmp(bits[w], expected, bytes))
            return 0;
    }
    for (size_t bit = 0; bit < 64 * words; bit++) {
        const uint64_t a = bits[0][bit / 64] >> bit % 64 & 1, b = bits[1][bit / 64] >> bit % 64 & 1;
        common += a & b;
        ones[0] += a;
        ones[1] += b;
    }
    made[0].table.bits = bits[0];
    made[0].table.bits_mask = 64 * words - 1;
    return level->count_common(bits[0], bits[1], words) == common &&
           size_of(&made[0].set) + common >= shared + ones[0] && size_of(&made[1].set) + common >= shared + ones[1];
}

/* The number of places of the second text with a token of the first set; at least the number of shared places. */
static void check_spans(const struct lsh_kernels *level, const parameters *p, size_t first, size_t count, size_t common, int exact,
                        const lsh_set_secret *secret, whole_set made[2])
{
    static lsh_span found[MAX_PIECES];
    const uint8_t *base = p->unit == LSH_WORD ? joined : text;
    size_t ignored;
    const size_t begin = (size_t)(shingle(p, first, &ignored) - base);
    for (size_t i = 0; i < count; i++)
        found[i].start = (size_t)(shingle(p, first + i, &found[i].length) - base) - begin;
    const size_t places = level->set_most_spans(&made[0].table, secret, made[1].set.text, found, count);
    if (places < common || places > count || (exact && places != common))
        failed(level->level, "the spans of a set's shingles", p, count);
}

/* How many shingles of the second set are found in the first one; more than there are if one has a wrong number. */
static size_t find_all(const struct lsh_kernels *level, const whole_set made[2])
{
    static uint32_t entries[MAX_PIECES];
    size_t found = 0;
    for (uint32_t zero = made[0].set.zero & made[1].set.zero; zero; zero &= zero - 1)
        found++;
    level->set_find(&made[0].set, &made[0].table, &made[1].set, entries);
    for (size_t i = 0; i < made[1].set.count; i++) {
        if (entries[i] == LSH_SET_NONE)
            continue;
        if (entries[i] >= made[0].set.count || made[0].set.tokens[entries[i]] != made[1].set.tokens[i])
            return SIZE_MAX;
        found++;
    }
    return found;
}

static void check_sets(const parameters *p, size_t shingles)
{
    static piece pieces[2][MAX_PIECES], both[2 * MAX_PIECES];
    static whole_set made[2];
    if (shingles == 0 || shingles > MAX_PIECES)
        return;
    const size_t firsts[2] = {0, below(shingles)}, counts[2] = {between(1, shingles), shingles - firsts[1]};
    const int words = p->unit == LSH_BYTE && p->n <= LSH_SET_KEY;
    const int spans[2] = {!words || below(2), !words || below(2)};
    const uint32_t part_bits = (uint32_t)below(3);
    size_t sizes[2], ignored;
    int collides = 0;
    lsh_set_secret secret = {draw(), {draw() | 1, draw() | 1}, {draw(), draw()}, {{0}}, UINT64_MAX};
    for (size_t f = 0; f < 10; f++)
        secret.factors[f / 2][f % 2] = draw();
    if (below(3) == 0 && (collides = 1)) /* all tokens collide */
        secret = (lsh_set_secret){0, {1, 1}, {0, 0}, {{0}}, below(2)};
    if (below(3) == 0) /* a token is 0 */
        secret.word = number(shingle(p, below(shingles), &ignored), p->n < 8 ? p->n : 8, 0, 8);
    for (size_t w = 0; w < 2; w++) {
        for (size_t i = 0; i < counts[w]; i++)
            pieces[w][i].bytes = shingle(p, firsts[w] + i, &pieces[w][i].size);
        sizes[w] = distinct(pieces[w], counts[w]);
        memcpy(both + (w ? sizes[0] : 0), pieces[w], sizes[w] * sizeof(piece));
    }
    const size_t expected = sizes[0] + sizes[1] - distinct(both, sizes[0] + sizes[1]);
    for (size_t l = 0; l < level_count; l++) {
        size_t found[2] = {0, 0}, shared = 0, pruned = 0;
        const size_t least = below(sizes[0] + 2);
        for (uint64_t part = 0; part >> part_bits == 0; part++) {
            for (size_t w = 0; w < 2; w++) {
                make_set(levels[l], p, w, firsts[w], counts[w], spans[w], &secret, part_bits, part, &made[w]);
                found[w] += size_of(&made[w].set);
            }
            const size_t here = levels[l]->set_count_shared(&made[0].set, &made[0].table, &made[1].set, 0);
            if (below(2) && (!check_bitmaps(levels[l], made, here) ||
                             levels[l]->set_count_shared(&made[0].set, &made[0].table, &made[1].set, 0) != here))
                failed(levels[l]->level, "a bitmap", p, l);
            if (spans[0] && find_all(levels[l], made) != here)
                failed(levels[l]->level, "the numbers of a set's shingles", p, l);
            const size_t bounded = levels[l]->set_count_shared(&made[0].set, &made[0].table, &made[1].set, least);
            shared += here;
            pruned += here >= least ? bounded != here : bounded >= least;
        }
        if (found[0] != sizes[0] || found[1] != sizes[1] || shared != expected || pruned)
            failed(levels[l]->level, "a set", p, l);
        if (part_bits == 0) {
            size_t common = 0;
            for (size_t i = 0; i < counts[1]; i++)
                common += shares(p, firsts[1] + i, both, sizes[0]);
            check_spans(levels[l], p, firsts[1], counts[1], common, !collides && !made[0].set.zero && !made[1].set.zero, &secret,
                        made);
        }
        if (!spans[0] && !spans[1] && part_bits == 0 && made[0].set.width == made[1].set.width) {
            const size_t length = counts[1] + made[1].set.width - 1;
            const size_t places = levels[l]->set_most_shared(&made[0].set, &made[0].table, &secret, made[1].set.text,
                                                             length, 0);
            const size_t bounded = levels[l]->set_most_shared(&made[0].set, &made[0].table, &secret, made[1].set.text,
                                                              length, least);
            size_t common = 0; /* its places whose shingle is in the other text; a token of 0 always counts */
            for (size_t i = 0; i < counts[1]; i++)
                common += shares(p, firsts[1] + i, both, sizes[0]);
            if (places < common || (!made[1].set.zero && places != common) ||
                (places >= least ? bounded != places : bounded >= least))
                failed(levels[l]->level, "the places of a set's shingles", p, l);
        }
    }
}

static void make(enum lsh_unit unit, size_t count)
{
    if (unit == LSH_BYTE)
        make_bytes(count);
    else if (unit == LSH_CHAR)
        make_characters(count);
    else
        make_words(count);
}

static void check_document(enum lsh_unit unit, size_t count, size_t n, size_t k, int murmur3)
{
    parameters p = {unit, n, k, (uint32_t)draw()};
    make(unit, count);
    for (size_t s = 0; s < k; s++)
        seeds[s] = below(20) ? (uint32_t)draw() : below(2) ? 0 : UINT32_MAX;
    const size_t shingles = units == 0 ? 0 : units > n ? units - n + 1 : 1;
    if (murmur3)
        check_murmur3(&p, shingles);
    check_fss(&p, shingles);
    check_sets(&p, shingles);
}

static size_t some_k(void)
{
    static const size_t edges[] = {1, 2, 3, 4, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257};
    return below(2) ? edges[below(sizeof edges / sizeof *edges)] : between(1, 300);
}

static void check_counts(void)
{
    const size_t k = between(1, 400), odds = between(1, 6);
    uint32_t *a = at_end(text_room, k * sizeof *a), *b = at_end(out_room, k * sizeof *b);
    uint64_t *c = at_end(seed_room, k * sizeof *c), *d = at_end(rank_room, k * sizeof *d);
    size_t equal_narrow = 0, equal_wide = 0;
    for (size_t s = 0; s < k; s++) {
        a[s] = (uint32_t)draw();
        b[s] = below(odds) ? a[s] ^ (uint32_t)1 << below(32) : a[s];
        c[s] = draw();
        d[s] = below(odds) ? c[s] ^ (uint64_t)1 << below(64) : c[s];
        equal_narrow += a[s] == b[s];
        equal_wide += c[s] == d[s];
    }
    for (size_t l = 0; l < level_count; l++)
        if (levels[l]->count_equal_32(a, b, k) != equal_narrow || levels[l]->count_equal_64(c, d, k) != equal_wide) {
            fprintf(stderr, "%s: count_equal differs, k %zu\n", levels[l]->level, k);
            failures++;
        }
}

/* Rows with many equal bytes, at the end of a page, filtered by how many they have in common with one of them. */
static void check_filter(void)
{
    enum { DOCUMENTS = 20, OTHERS = 60 };
    const size_t k = below(2) ? 128 : some_k(), least = below(k + 2), count = below(OTHERS + 1);
    uint8_t *matrix = at_end(matrix_room, DOCUMENTS * k);
    int32_t others[OTHERS], expected[OTHERS], expected_along[OTHERS], left[OTHERS], along[OTHERS];
    const size_t document = below(DOCUMENTS);
    size_t kept = 0;
    int differs = 0;
    for (size_t i = 0; i < DOCUMENTS * k; i++)
        matrix[i] = (uint8_t)below(2 + i / k / 4);
    for (size_t i = 0; i < count; i++) {
        others[i] = (int32_t)below(DOCUMENTS);
        const uint8_t *a = matrix + document * k, *b = matrix + (size_t)others[i] * k;
        size_t equal = 0;
        for (size_t s = 0; s < k; s++)
            equal += a[s] == b[s];
        for (size_t l = 0; l < level_count; l++)
            differs |= levels[l]->count_equal_8(a, b, k) != equal;
        expected[kept] = others[i];
        expected_along[kept] = (int32_t)i;
        kept += equal >= least;
    }
    for (size_t l = 0; l < level_count; l++) {
        for (size_t i = 0; i < count; i++) {
            left[i] = others[i];
            along[i] = (int32_t)i;
        }
        differs |= levels[l]->filter_8(matrix, k, least, document, left, along, count) != kept ||
                   memcmp(left, expected, kept * sizeof *left) || memcmp(along, expected_along, kept * sizeof *along);
    }
    if (differs) {
        fprintf(stderr, "equal bytes of rows differ, k %zu\n", k);
        failures++;
    }
}

/* Low bits of rows with many equal bytes, at the end of a page: the first row that is similar enough to one of them. */
static void check_similar(void)
{
    enum { DOCUMENTS = 12, MOST_K = 400 };
    const size_t k = below(2) ? (size_t)128 << below(2) : some_k() % MOST_K + 1, bits = between(1, 8), words = (k + 63) / 64;
    const size_t most = below(k + 1), row = below(DOCUMENTS), first = below(DOCUMENTS), count = below(DOCUMENTS - first + 1);
    uint64_t *packed = at_end(matrix_room, DOCUMENTS * words * bits * sizeof *packed);
    static uint8_t bytes[DOCUMENTS][MOST_K];
    size_t expected = 0;
    int differs = 0;
    for (size_t i = 0; i < DOCUMENTS; i++) {
        uint8_t *own = at_end(text_room, k);
        for (size_t s = 0; s < k; s++)
            bytes[i][s] = (uint8_t)(below(2 + i) << below(2 + i / 2));
        memcpy(own, bytes[i], k);
        for (size_t l = 0; l < level_count; l++) {
            static uint64_t again[MOST_K / 64 + 1][8];
            uint64_t *to = packed + i * words * bits;
            levels[l]->pack_low_bits(own, k, bits, to);
            differs |= l && memcmp(again, to, words * bits * sizeof *to);
            memcpy(again, to, words * bits * sizeof *to);
        }
    }
    for (; expected < count; expected++) {
        size_t differing = 0;
        for (size_t s = 0; s < k; s++)
            differing += ((bytes[row][s] ^ bytes[first + expected][s]) & ((1u << bits) - 1)) != 0;
        if (differing <= most)
            break;
    }
    for (size_t l = 0; l < level_count; l++)
        differs |= levels[l]->find_similar(packed + row * words * bits, packed + first * words * bits, words, bits, most,
                                           count) != expected;
    if (differs) {
        fprintf(stderr, "the first similar row differs, k %zu, %zu bits\n", k, bits);
        failures++;
    }
}

/* The whole hashes of _murmur3.c: compiled once, for any level. */
/* The anchors of a text of few letters, at the end or the beginning of a page: of each window the leftmost least value. */
static void check_anchors(void)
{
    enum { MOST = 400 };
    const size_t length = below(MOST + 1), window = between(LSH_GRAM, 120), letters = between(1, 5), capacity = between(1, 9);
    uint8_t *text = below(2) ? at_end(text_room, length) : text_room.first;
    lsh_anchor expected[MOST + 1], found[MOST + 16];
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        text[i] = (uint8_t)('a' + below(below(8) ? letters : 26));
    for (size_t first = 0; first + window <= length; first++) {
        size_t place = first;
        uint32_t least = 0;
        for (size_t i = first; i + LSH_GRAM <= first + window; i++) {
            const uint32_t value = (uint32_t)(text[i] | text[i + 1] << 8 | text[i + 2] << 16 | (uint32_t)text[i + 3] << 24) * 0x9E3779B1u;
            if (i == first || value < least) {
                least = value;
                place = i;
            }
        }
        if (count == 0 || expected[count - 1].place != place)
            expected[count++] = (lsh_anchor){place, first};
    }
    for (size_t l = 0; l < level_count; l++) {
        lsh_anchor_walk walk = {text, length, window, 0, 0, 0, 0};
        size_t at = 0, more;
        while ((more = levels[l]->next_anchors(&walk, found + at, capacity)) && at + more <= MOST)
            at += more;
        if (at != count || memcmp(found, expected, count * sizeof *found)) {
            fprintf(stderr, "%s: anchors differ, length %zu, window %zu\n", levels[l]->level, length, window);
            failures++;
        }
    }
}

/* The shingles of bytes that begin as wanted, by a limit or by a filter. */
static void check_begins(void)
{
    enum { MOST = 300, WORDS = 64 };
    const size_t n = between(4, 40), count = below(MOST + 1), length = count ? count + n - 1 : below(n);
    uint8_t *text = at_edge(text_room, length);
    uint32_t words[WORDS] = {0}, expected[MOST], found[MOST + LSH_LANES];
    const uint32_t limit = below(4) ? (uint32_t)draw() & ~1u : 0;
    const size_t num_words = (size_t)1 << below(7);
    size_t total = 0;
    lsh_wanted wanted = {limit, {NULL, 0}, {NULL, 0}, NULL};
    const lsh_shingles shingles = {text, NULL, length, count, n, 0};
    for (size_t i = 0; i < length; i++)
        text[i] = (uint8_t)draw();
    if (below(2)) {
        wanted.begins = lsh_make_begins(words, num_words);
        for (size_t i = below(40); i-- > 0;)
            lsh_begins_add(&wanted.begins, (uint32_t)draw());
    }
    for (size_t i = 0; i < count; i++) {
        const uint32_t odd[4] = {0x9E3779B1u, 0x85EBCA77u, 0xC2B2AE3Du, 0x27D4EB2Fu};
        const size_t bytes = n >= 16 ? 16 : n >= 8 ? 8 : 4;
        uint32_t value = 0;
        for (size_t j = 0; j < bytes; j++)
            value += ((uint32_t)text[i + j] << 8 * (j % 4)) * odd[j / 4];
        const size_t bit = (size_t)((uint64_t)value * (32 * num_words) >> 32);
        if (value < limit || (wanted.begins.words && words[bit / 32] >> bit % 32 & 1))
            expected[total++] = (uint32_t)i;
    }
    for (size_t l = 0; l < level_count; l++)
        if (levels[l]->find_begins(&wanted, &shingles, found) != total || memcmp(found, expected, total * sizeof *found)) {
            fprintf(stderr, "%s: beginnings differ, %zu shingles of %zu\n", levels[l]->level, count, n);
            failures++;
        }
}

/* The starts of words, some at a time. */
static void check_word_starts(void)
{
    enum { MOST = 300 };
    const size_t length = below(MOST + 1), most = between(1, 40), letters = between(1, 12);
    uint8_t *text = at_edge(text_room, length);
    size_t at = 0, next = 0, starts[MOST], count;
    for (size_t i = 0; i < length; i++)
        text[i] = below(letters) ? (uint8_t)draw() : ' ';
    do {
        count = lsh_unit_starts(text, length, LSH_WORD, &at, starts, most);
        int differs = count > most || (count < most && next < length && count == 0);
        for (size_t i = 0; i < count; i++) {
            differs |= starts[i] != next;
            while (next < length && text[next] != ' ')
                next++;
            next += next < length;
        }
        if (differs || at != next) {
            fprintf(stderr, "starts of words differ, length %zu\n", length);
            failures++;
            return;
        }
    } while (count);
}

static void check_whole_hashes(void)
{
    const size_t size = below(200);
    const uint32_t seed = (uint32_t)draw();
    uint8_t *bytes = at_edge(text_room, size);
    uint32_t four[4], plain_four[4];
    uint64_t two[2], plain_two[2];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)draw();
    lsh_murmur3_x86_128(bytes, size, seed, four);
    lsh_murmur3_x64_128(bytes, size, seed, two);
    plain_x86_128(bytes, size, seed, plain_four);
    plain_x64_128(bytes, size, seed, plain_two);
    if (lsh_murmur3_x86_32(bytes, size, seed) != plain_x86_32(bytes, size, seed) || memcmp(four, plain_four, sizeof four) ||
        memcmp(two, plain_two, sizeof two)) {
        fprintf(stderr, "a whole hash differs, %zu bytes, seed %u\n", size, (unsigned)seed);
        failures++;
    }
}

/* The keys of bands of any widths, of rows with gaps: the memory ends after the last component of the last row. */
static void check_band_keys(const struct lsh_kernels *kernels)
{
    const uint64_t golden = 0x9E3779B97F4A7C15u;
    const size_t num_bands = between(1, 40), width = below(20), most = below(8) ? 12 : 600, count = below(140);
    size_t bounds[41] = {0};
    for (size_t b = 0; b < num_bands; b++)
        bounds[b + 1] = bounds[b] + (below(4) ? width : below(most));
    const size_t k = bounds[num_bands], stride = k + below(5) + !k, size = count ? (count - 1) * stride + k : 0;
    const size_t height = count + below(3);
    uint32_t *rows = malloc(size * sizeof *rows + 1);
    uint64_t *wide = malloc(size * sizeof *wide + 1), *wanted = malloc(num_bands * height * sizeof *wanted + 1);
    for (size_t i = 0; i < size; i++)
        wide[i] = rows[i] = (uint32_t)draw();
    const size_t key_bytes = (num_bands * height - (height - count)) * sizeof(uint64_t);
    room rows_room = make_room(size * sizeof *rows), wide_room = make_room(size * sizeof *wide), keys_room = make_room(key_bytes);
    memcpy(at_end(rows_room, size * sizeof *rows), rows, size * sizeof *rows);
    memcpy(at_end(wide_room, size * sizeof *wide), wide, size * sizeof *wide);
    for (size_t b = 0; b < num_bands; b++)
        for (size_t row = 0; row < count; row++) {
            uint64_t sum = finish64((b + 1) * golden);
            for (size_t c = bounds[b]; c < bounds[b + 1]; c++)
                sum += finish64(rows[row * stride + c] ^ (c + 1) * golden);
            wanted[b * height + row] = finish64(sum);
        }
    uint64_t *keys = at_end(keys_room, key_bytes);
    for (int is_wide = 0; is_wide < 2; is_wide++) {
        memset(keys, 0, key_bytes);
        if (is_wide)
            kernels->band_keys_64(at_end(wide_room, size * sizeof *wide), count, stride, bounds, num_bands, keys, height);
        else
            kernels->band_keys_32(at_end(rows_room, size * sizeof *rows), count, stride, bounds, num_bands, keys, height);
        for (size_t b = 0; b < num_bands; b++)
            if (memcmp(keys + b * height, wanted + b * height, count * sizeof *keys)) {
                fprintf(stderr, "%s: keys of band %zu differ, %zu rows of %zu components\n", kernels->level, b, count, k);
                failures++;
            }
    }
    free(rows);
    free(wide);
    free(wanted);
    drop_room(rows_room);
    drop_room(wide_room);
    drop_room(keys_room);
}

/* Compare the buckets with a backward search through the order: each member follows the latest one before it with its key. */
static void check_buckets(void)
{
    const size_t documents = below(8) ? between(1, 300) : between(2000, 6000), values = between(1, 2 * documents);
    const size_t count = below(2) ? documents : below(documents + 1), entered = below(2) ? count : below(count + 1);
    const size_t slots = lsh_bucket_slots(entered), key_bytes = below(2) ? 4 : 8;
    const int shift = below(2) ? 0 : (int)below(8 * key_bytes);
    room keys_room = make_room(documents * sizeof(uint64_t)), order_room = make_room(count * sizeof(int32_t));
    room record_room = make_room(count * 2 * key_bytes), table_room = make_room((slots + count) * sizeof(uint32_t));
    uint64_t *given = malloc(documents * sizeof *given), *keys = at_end(keys_room, documents * sizeof *keys);
    int32_t *order = at_end(order_room, count * sizeof *order);
    uint64_t *records = at_end(record_room, count * 2 * key_bytes);
    uint32_t *table = at_end(table_room, (slots + count) * sizeof *table);
    size_t *ranks = malloc(documents * sizeof *ranks), *before = malloc((count + 1) * sizeof *before), sharing = 0;
    int32_t *shuffled = malloc(documents * sizeof *shuffled);
    for (size_t d = 0; d < documents; d++) {
        const size_t other = below(d + 1);
        given[d] = (uint64_t)below(values) << shift;
        given[d] = shift % 2 ? finish64(given[d]) : given[d];
        given[d] = key_bytes == 4 ? (uint32_t)given[d] : given[d];
        shuffled[d] = shuffled[other];
        shuffled[other] = (int32_t)d;
    }
    for (size_t i = 0; i < documents; i++)
        ranks[shuffled[i]] = i;
    for (size_t i = 0; i < count; i++) { /* 1 + the rank of the latest one with this key that is first, or follows one; 0: none */
        size_t j = i;
        while (j && given[shuffled[j - 1]] != given[shuffled[i]])
            j--;
        if (j > entered && !before[j - 1]) /* which did not enter, and has nothing before it */
            j = 0;
        before[i] = j;
        sharing += j != 0;
    }
    for (size_t d = 0; d < documents; d++)
        if (key_bytes == 4)
            ((uint32_t *)keys)[d] = (uint32_t)given[d];
        else
            keys[d] = given[d];
    memcpy(order, shuffled, count * sizeof *order);
    memset(records, 0xA5, count * 2 * key_bytes); /* scratch with arbitrary content */
    memset(table, 0xA5, (slots + count) * sizeof *table);
    const size_t buckets = lsh_find_buckets(keys, key_bytes, documents, order, count, entered, records, table);
    const int32_t *members = (const int32_t *)keys;
    const uint32_t *ends = (const uint32_t *)keys + documents;
    int differs = buckets == LSH_CHANGED || (buckets ? ends[buckets - 1] : 0) != sharing + buckets;
    for (size_t b = 0, i = 0; b < buckets && !differs; b++) {
        differs = ranks[members[i]] >= entered || before[ranks[members[i]]] || ends[b] < i + 2;
        for (i++; i < ends[b] && !differs; i++)
            differs = before[ranks[members[i]]] != ranks[members[i - 1]] + 1;
    }
    if (differs) {
        fprintf(stderr, "buckets differ, %zu documents, %zu in order, %zu enter\n", documents, count, entered);
        failures++;
    }
    free(given);
    free(ranks);
    free(before);
    free(shuffled);
    drop_room(keys_room);
    drop_room(order_room);
    drop_room(record_room);
    drop_room(table_room);
}

static void prepare(void)
{
    text_room = make_room(MAX_TEXT);
    seed_room = make_room((MAX_K + LSH_LANES) * sizeof(uint64_t));
    rank_room = make_room((MAX_K + LSH_LANES) * sizeof(uint64_t));
    out_room = make_room((MAX_K + LSH_LANES) * sizeof(uint64_t));
    state_room = make_room(2 * (MAX_K + LSH_LANES) * sizeof(uint64_t));
    place_room = make_room(2 * (MAX_K + LSH_LANES) * sizeof(uint64_t));
    for (size_t i = 0; i < 2; i++)
        hash_room[i] = make_room((MAX_UNITS + LSH_TILE + LSH_LANES) * sizeof(uint32_t));
    matrix_room = make_room((size_t)1 << 13);
    for (size_t w = 0; w < 2; w++) {
        bitmap_room[w] = make_room((size_t)1 << 9);
        token_room[w] = make_room(MAX_SET * sizeof(uint64_t));
        span_room[w] = make_room(MAX_PIECES * sizeof(lsh_span));
        lane_room[w] = make_room(((size_t)LSH_SET_LANES << 9) * sizeof(uint64_t));
        filled_room[w] = make_room((size_t)1 << 9);
        entry_room[w] = make_room(((size_t)LSH_SET_LANES << 9) * sizeof(uint32_t));
        set_text_room[w] = make_room(MAX_TEXT);
    }
    scratch = at_end(make_room(sizeof *scratch), (sizeof *scratch + 63) / 64 * 64);
    fill_word_table();
    for (size_t i = 0; i < sizeof level_names / sizeof *level_names; i++)
        if ((levels[level_count] = lsh_kernels_find(level_names[i])) != NULL)
            level_count++;
}

/* ---- fields of records ---- */

enum { MOST_RECORDS = 20, MOST_VALUE = 60 };

static uint8_t record_values[MOST_RECORDS][MOST_VALUE];
static size_t record_lengths[MOST_RECORDS];

/* A byte of a value, or the first byte of a two-byte character; `plain` omits bytes that end an unquoted cell. */
static uint8_t value_byte(int plain)
{
    static const char odd[] = "\"\\,\n\t\r/{}[]:";
    const uint8_t c = below(3) ? (uint8_t)between(' ', '~') : below(3) ? (uint8_t)odd[below(sizeof odd - 1)] : 0xC3;
    return plain && c < ' ' ? ' ' : c;
}

static size_t put_escaped(uint8_t *out, uint8_t c)
{
    static const char letters[] = "\"\"\\\\//\bb\ff\nn\rr\tt"; /* the byte, and its escape letter */
    for (size_t i = 0; i < sizeof letters - 1; i += 2)
        if ((uint8_t)letters[i] == c && (c < ' ' || c == '"' || c == '\\' || below(2)) && below(3)) {
            out[0] = '\\';
            out[1] = (uint8_t)letters[i + 1];
            return 2;
        }
    if (c < ' ' || c == '"' || c == '\\' || (c < 0x80 && !below(8)))
        return (size_t)sprintf((char *)out, below(2) ? "\\u%04x" : "\\u%04X", (unsigned)c);
    out[0] = c;
    return 1;
}

/* Write records of a number and a value as `form`: 0 JSON, 1 lines, 2 CSV; returns their size. */
static size_t put_records(uint8_t *out, int form, size_t records)
{
    uint8_t *const start = out;
    for (size_t r = 0; r < records; r++) {
        const size_t most = below(MOST_VALUE);
        uint8_t *value = record_values[r];
        size_t size = 0;
        while (size + 2 <= most) {
            value[size] = value_byte(form == 1);
            if (value[size++] == 0xC3)
                value[size++] = (uint8_t)between(0x80, 0xBF);
        }
        record_lengths[r] = size;
        if (form == 0)
            out += sprintf((char *)out, below(2) ? "{\"id\":%zu,\"x\" : [-1.5e3, {\"text\":null}, true],\"text\":\""
                                                 : " {\"text\":\"\",\"y\":{},\"id\": %zu , \"text\": \"", r);
        else
            out += sprintf((char *)out, form == 1 ? "%zu\t" : below(2) ? "\r\n\"%zu\",\"" : "%zu,\"", r);
        for (size_t i = 0; i < size; i++) {
            if (form == 0) {
                out += put_escaped(out, value[i]);
            } else {
                *out++ = value[i];
                if (form == 2 && value[i] == '"')
                    *out++ = '"';
            }
        }
        out += sprintf((char *)out, form == 0 ? "\" } " : form == 1 ? "" : "\"");
        if (r + 1 < records || below(2))
            out += sprintf((char *)out, below(2) ? "\r\n" : form == 0 && !below(3) ? "\n \t\r\n" : "\n");
    }
    return (size_t)(out - start);
}

static size_t read_records(const uint8_t *block, size_t size, int form, uint8_t *out, lsh_field *found,
                           lsh_span *spans, size_t *used)
{
    static const uint8_t id[] = "id", text[] = "text";
    static const size_t places[] = {0, 1};
    const lsh_text names[] = {{id, 2}, {text, 4}};
    *used = size;
    if (form == 0)
        return lsh_read_json(block, size, names, 2, out, found, spans);
    if (form == 1)
        return lsh_read_lines(block, size, '\t', places, 2, 2, 2, found, spans);
    return lsh_read_csv(block, size, ',', places, 2, 2, 2, out, found, spans, used);
}

/* The kernels find the written values; with any bytes changed, they access no memory outside the buffers. */
static void check_fields(void)
{
    const int form = (int)below(3);
    const size_t records = below(MOST_RECORDS), size = put_records(text_room.first, form, records);
    uint8_t *block = at_end(out_room, size), *out = at_end(seed_room, size);
    size_t lines = 0, used, rows;
    memcpy(block, text_room.first, size);
    for (size_t i = 0; i < size; i++)
        lines += block[i] == '\n' || i + 1 == size;
    lsh_field *found = at_end(state_room, lines * 2 * sizeof *found);
    lsh_span *spans = at_end(place_room, lines * sizeof *spans);
    rows = read_records(block, size, form, out, found, spans, &used);
    int differs = rows != records || used != size || lsh_count_lines(block, size) != lines;
    for (size_t r = 0; r < records && !differs; r++) {
        char number[24];
        const size_t digits = (size_t)sprintf(number, "%zu", r);
        const lsh_field *id = found + 2 * r, *text = id + 1;
        const lsh_span *before = spans + r - 1;
        differs |= spans[r].start + spans[r].length > size || (r && spans[r].start < before->start + before->length);
        differs |= !spans[r].length || id->text.bytes < block + spans[r].start;
        differs |= spans[r].start + spans[r].length < size && block[spans[r].start + spans[r].length - 1] != '\n';
        differs |= id->kind != (form ? LSH_STRING : LSH_NUMBER) || id->text.length != digits ||
                   memcmp(id->text.bytes, number, digits) != 0;
        differs |= text->kind != LSH_STRING || text->text.length != record_lengths[r] ||
                   (record_lengths[r] && memcmp(text->text.bytes, record_values[r], record_lengths[r]) != 0);
    }
    if (differs) {
        fprintf(stderr, "fields differ, form %d, %zu records\n", form, records);
        failures++;
    }
    for (int again = 0; again < 8 && size; again++) {
        const size_t cut = between(1, size);
        for (size_t changes = between(1, 3); changes--;)
            block[below(size)] = below(2) ? (uint8_t)draw() : (uint8_t)"\"\\\n,\t{}u"[below(8)];
        lines = lsh_count_lines(block, cut);
        memmove(text_room.end - cut, block, cut);
        rows = read_records(text_room.end - cut, cut, form, at_end(seed_room, cut),
                            at_end(state_room, lines * 2 * sizeof *found), at_end(place_room, lines * sizeof *spans), &used);
        if (rows != SIZE_MAX && (rows > lines || used > cut)) {
            fprintf(stderr, "too many records, form %d\n", form);
            failures++;
        }
    }
}

/* Equal names: the first gets the field, and `out` needs at most `size` bytes for any number of names. */
static void check_equal_names(void)
{
    enum { NAMES = 16, ESCAPES = 20000 };
    static const uint8_t a[] = "a";
    const size_t size = 6 * ESCAPES + 8;
    room block_room = make_room(size), bytes_room = make_room(size), found_room = make_room(NAMES * sizeof(lsh_field));
    uint8_t *block = at_end(block_room, size), *end = block, *out = at_end(bytes_room, size);
    lsh_field *found = at_end(found_room, NAMES * sizeof *found);
    lsh_text names[NAMES];
    int differs;
    memcpy(end, "{\"a\":\"", 6);
    end += 6;
    for (size_t i = 0; i < ESCAPES; i++, end += 6)
        memcpy(end, "\\u0041", 6);
    memcpy(end, "\"}", 2);
    for (size_t i = 0; i < NAMES; i++)
        names[i] = (lsh_text){a, 1};
    lsh_span span;
    differs = lsh_read_json(block, size, names, NAMES, out, found, &span) != 1 || span.start || span.length != size;
    differs |= found[0].kind != LSH_STRING || found[0].text.length != ESCAPES || found[0].text.bytes != out;
    for (size_t i = 1; i < NAMES; i++)
        differs |= found[i].kind != LSH_ABSENT;
    if (differs) {
        fprintf(stderr, "fields of equal names differ\n");
        failures++;
    }
    drop_room(block_room);
    drop_room(bytes_room);
    drop_room(found_room);
}

int main(int argc, char **argv)
{
    const size_t cases = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
    state = (argc > 2 ? strtoull(argv[2], NULL, 10) : 0) * 2 + 1;
    prepare();
    check_equal_names();
    for (size_t i = 0; i < cases; i++) {
        const enum lsh_unit unit = (enum lsh_unit)below(3);
        for (size_t size = 0; size <= 64; size++) /* every short length, with n near the length or arbitrary */
            check_document(i % 2 ? unit : LSH_BYTE, size, below(3) ? between(1, 20) : between(size, size + 2) + !size, some_k(), 1);
        check_document(LSH_BYTE, between(65, 3000), between(1, 20), some_k(), 1);
        check_document(unit, between(65, 600), between(1, 12), some_k(), 1);
        check_counts();
        for (int again = 0; again < 16; again++)
            check_filter();
        for (int again = 0; again < 16; again++)
            check_similar();
        for (int again = 0; again < 64; again++)
            check_anchors();
        for (int again = 0; again < 64; again++)
            check_begins();
        check_whole_hashes();
        for (int again = 0; again < 16; again++)
            check_word_starts();
        check_buckets();
        for (int again = 0; again < 16; again++)
            check_fields();
        for (size_t l = 0; l < level_count; l++)
            check_band_keys(levels[l]);
        if (i % 4)
            continue;
        /* near the limits of tiles, joins of the two tables and stored hashes; then much longer */
        const size_t edge = (size_t)LSH_TILE << below(4), n = between(1, 16);
        check_document(LSH_BYTE, edge + n - 3 + below(5), n, some_k(), i % 8 == 0);
        check_document(LSH_BYTE, between(4090, 4130), between(1, 16), some_k(), 0);
        check_document(LSH_BYTE, between(4097, 20000), between(1, 16), between(1, 130), 0);
        check_document(LSH_BYTE, between(1, 9000), between(1, 16), between(301, MAX_K), 0);
        check_document(LSH_CHAR, between(1, 5000), between(1, 16), between(1, 130), 0);
        check_document(LSH_WORD, between(1, 1500), between(1, 600), between(1, 130), 0);
        check_document(LSH_BYTE, between(5000, 5020), 5000, between(1, 40), 1);
        check_document(LSH_BYTE, between(9990, 10005), 10000, MAX_K, 0);
    }
    printf("%zu rounds:", cases);
    for (size_t l = 0; l < level_count; l++)
        printf(" %s", levels[l]->level);
    printf("%s\n", failures ? ": DIFFERENT" : ": the same as the formulas");
    return failures != 0;
}
