/* Every prototype of the kernels, and the contract each keeps.
 *
 * Floor 0 of the house: pure functions over memory that the caller owns. No Python, no allocation,
 * no errno, no state but the table of kernels chosen for this CPU. Sizes are size_t, values have fixed
 * widths. Nothing is read past the `length` bytes of a text, and a text may be at any alignment.
 *
 * Two kinds of function live here. Those in `struct lsh_kernels` are written once, in body.h, and
 * compiled for each instruction set; they give the same bits at every level. The others (shingle.c,
 * sets.c, grouping.c) are compiled once.
 */
#ifndef LSH_KERNELS_H
#define LSH_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* ---- shingle.c: where the shingles of a text are ---- */

enum lsh_unit { LSH_BYTE = 0, LSH_CHAR = 1, LSH_WORD = 2 };

/* One shingle: `length` (1 or more) bytes from `start` of its text. */
typedef struct {
    size_t start;
    size_t length;
} lsh_span;

/* A walk over the shingles of one text, begun by lsh_shingler_begin; its fields are private. */
typedef struct {
    const uint8_t *text;
    size_t length;
    enum lsh_unit unit;
    size_t start; /* of the next shingle */
    size_t end;
    int done;
} lsh_shingler;

/* Begin the walk over the shingles of n units (n >= 1). A text shorter than n units is one shingle, itself;
 * an empty one has none. For LSH_WORD the text is words joined by single spaces (lsh_join_words). */
void lsh_shingler_begin(lsh_shingler *walk, const uint8_t *text, size_t length, enum lsh_unit unit, size_t n);

/* The next shingles in order of position, at most `capacity` of them; returns how many, 0 at the end. */
size_t lsh_shingler_next(lsh_shingler *walk, lsh_span *spans, size_t capacity);

/* Copy the words of a UTF-8 text to `out`, joined by single spaces; returns the length written, at most `length`.
 * Bit c of `word_table` (0x110000 bits, the low bit of a byte first) tells whether code point c belongs to a word; an
 * undecodable byte belongs to none. `out` holds `length` bytes and does not overlap `text`. */
size_t lsh_join_words(const uint8_t *text, size_t length, const uint8_t *word_table, uint8_t *out);

/* ---- the kernels chosen by instruction set: body.h, one file a level, dispatch.c ---- */

struct lsh_kernels {
    const char *level;
    /* minima[s] = min(minima[s], MurmurHash3_x86_32(shingle, seeds[s])) over the shingles, compared as int32.
     * state: k words of scratch. seeds, state and minima do not overlap. */
    void (*min_murmur3_32)(const uint8_t *text, const lsh_span *spans, size_t count, const uint32_t *seeds,
                           uint32_t *state, size_t k, int32_t *minima);
    /* The same with the first half of MurmurHash3_x64_128, compared as uint64. state: 2 k words of scratch. */
    void (*min_murmur3_64)(const uint8_t *text, const lsh_span *spans, size_t count, const uint32_t *seeds,
                           uint64_t *state, size_t k, uint64_t *minima);
    /* How many of the k components of a and b are equal. */
    size_t (*count_equal_32)(const uint32_t *a, const uint32_t *b, size_t k);
    size_t (*count_equal_64)(const uint64_t *a, const uint64_t *b, size_t k);
};

extern const struct lsh_kernels lsh_kernels_baseline;

/* The kernels for this CPU. */
const struct lsh_kernels *lsh_kernels_chosen(void);

/* ---- sets.c: exact sets of shingles ---- */

/* A slot of an open-addressing table of distinct shingles of one text; free while length is 0. */
typedef struct {
    uint64_t hash;
    size_t start;
    size_t length;
    uint64_t mark; /* the last probe that hit it, see lsh_set_hits */
} lsh_set_slot;

/* Add the spans of `text` to the table; returns how many were new. Shingles are equal when their bytes are.
 * mask + 1 slots, a power of two; more than the entries there plus `count`. */
size_t lsh_set_add(lsh_set_slot *slots, size_t mask, const uint8_t *text, const lsh_span *spans, size_t count);

/* Move every entry of `from` into the empty, larger table `to`. */
void lsh_set_move(const lsh_set_slot *from, size_t from_mask, lsh_set_slot *to, size_t to_mask);

/* How many distinct shingles of the table (over `text`) the spans of `other` hit that no earlier call with the
 * same `mark` has hit. A mark is used for one other text; marks start at 1. */
size_t lsh_set_hits(lsh_set_slot *slots, size_t mask, const uint8_t *text, uint64_t mark, const uint8_t *other,
                    const lsh_span *spans, size_t count);

/* ---- grouping.c: band keys, and documents that share one ---- */

/* Band b covers components bounds[b] to bounds[b + 1] - 1 of a row of k components. keys[b * stride + row] =
 *     mix(mix((b + 1) G) + sum over c of mix(value_c ^ ((c + 1) G))),   G = 0x9E3779B97F4A7C15,
 * mix being the 64-bit finaliser of MurmurHash3 and the sums modulo 2**64. The values of a row may be far from
 * uniform, so each is mixed with its component before they meet. Part of the stored format. */
void lsh_band_keys_32(const uint32_t *rows, size_t count, size_t k, const size_t *bounds, size_t num_bands,
                      uint64_t *keys, size_t stride);
void lsh_band_keys_64(const uint64_t *rows, size_t count, size_t k, const size_t *bounds, size_t num_bands,
                      uint64_t *keys, size_t stride);

/* A slot of the table that links documents; free while document is -1. */
typedef struct {
    uint64_t key;
    int32_t document;
} lsh_link_slot;

/* For each document d of order[0 .. count): links[d] = the latest one before it in that order with keys[.] == keys[d],
 * -1 where there is none. Only the first `entered` enter the table, the rest only ask it. `slots` is free
 * throughout on entry; mask + 1 slots, a power of two, more than `entered`. */
void lsh_link_equal(const uint64_t *keys, const int32_t *order, size_t count, size_t entered, lsh_link_slot *slots,
                    size_t mask, int32_t *links);

/* The bins of one band of a cache: an open-addressing table from key to the first document of the bin. A slot is
 * free while its head is LSH_NOTHING. mask + 1 slots, a power of two, at least one of them free. */
#define LSH_NOTHING UINT32_MAX

/* The slot that holds the key, or the free slot where it belongs. */
size_t lsh_bins_find(const uint64_t *keys, const uint32_t *heads, size_t mask, uint64_t key);

/* Free a slot, and close the gap so that every other key is still found. */
void lsh_bins_free(uint64_t *keys, uint32_t *heads, size_t mask, size_t slot);

#endif
