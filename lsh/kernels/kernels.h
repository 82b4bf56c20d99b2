/* Every prototype of the kernels, and the contract each keeps.
 *
 * Floor 0: pure functions over memory that the caller owns. No Python, no allocation, no errno, no state. Sizes are size_t,
 * values have fixed widths. Nothing is read past the `length` bytes of a text, and a text may be at any alignment.
 *
 * There are two kinds of function. Those in `struct lsh_kernels` are written once, in body.h, and compiled for each
 * instruction set; they give the same bits at every level. The others are compiled once. Functions that several files
 * call for each element are `static inline` in a header.
 */
#ifndef LSH_KERNELS_H
#define LSH_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "contained.h"

/* ---- utf8.c: text as an interpreter holds it, to UTF-8 ---- */

/* The bytes of the UTF-8 of a text of `length` units of `width` bytes (1, 2 or 4), each a code point up to 0x10FFFF.
 * A surrogate has three bytes, like any other unit between 0x800 and 0xFFFF. */
size_t lsh_utf8_size(const void *text, size_t length, size_t width);

/* Write that UTF-8 to `out`, which is large enough and does not overlap `text`. The text is aligned to its units. */
void lsh_utf8_encode(const void *text, size_t length, size_t width, uint8_t *out);

/* ---- json.c and cells.c: fields of records, one record after another in a block of bytes ---- */

typedef struct {
    const uint8_t *bytes;
    size_t length;
} lsh_text;

enum lsh_kind {
    LSH_ABSENT = 0,
    LSH_STRING,
    LSH_NUMBER,  /* as it is written, up to 256 characters; not NaN or Infinity */
    LSH_OTHER,   /* another value of JSON */
    LSH_ESCAPED  /* within json.c only */
};

/* A part of a block or of a text: `length` bytes from `start`. */
typedef struct {
    size_t start;
    size_t length;
} lsh_span;

/* A field of a record: what kind of value it is, and its text in the block, or in `out`. */
typedef struct {
    enum lsh_kind kind;
    lsh_text text;
} lsh_field;

/* The lines of a block; the last one may have no newline. */
size_t lsh_count_lines(const uint8_t *block, size_t size);

/* All three find fields of the records in a block of whole lines, of which the last may have no newline. They return
 * the number of records, SIZE_MAX if any of them is malformed or ambiguous. Field i of record r is found[r * n + i] for n names or
 * places, and spans[r] is the record itself with its line end; `found` and `spans` hold as many records as there are lines. `out` holds `size` bytes: strings that are decoded are
 * written there, and never need more, whatever the names are.
 *
 * JSON objects, one a line; blank lines are not records: the fields of those names; of equal names the first has the field.
 * Where a record has several fields of a name, the last. Accepted is what RFC 8259 and UTF-8 allow, and NaN and Infinity;
 * but no half of a surrogate pair in a key or in a field that is found, no number longer than 256 characters, and nothing
 * that is nested deeper than 64. */
size_t lsh_read_json(const uint8_t *block, size_t size, const lsh_text *names, size_t num_names, uint8_t *out,
                     lsh_field *found, lsh_span *spans);

/* Lines of cells with a separator between, which end at "\n" or "\r\n": the cells at those places, counted from 0, of rows
 * that have from `min_cells` to `max_cells` cells. */
size_t lsh_read_lines(const uint8_t *block, size_t size, uint8_t separator, const size_t *places, size_t num_places,
                      size_t min_cells, size_t max_cells, lsh_field *found, lsh_span *spans);

/* Records of CSV (RFC 4180) with a separator between cells, without quotes in cells that are not quoted; empty lines are
 * not records. `used` is set to the bytes of whole records: after them a record may begin that does not end in the block. */
size_t lsh_read_csv(const uint8_t *block, size_t size, uint8_t separator, const size_t *places, size_t num_places,
                    size_t min_cells, size_t max_cells, uint8_t *out, lsh_field *found, lsh_span *spans, size_t *used);

/* ---- shingle.c: where the shingles of a text are ---- */

enum lsh_unit { LSH_BYTE = 0, LSH_CHAR = 1, LSH_WORD = 2 };

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
 * undecodable byte belongs to none. `out` holds `length` bytes; it may be `text` itself. */
size_t lsh_join_words(const uint8_t *text, size_t length, const uint8_t *word_table, uint8_t *out);

/* The places of the next words of a UTF-8 text, at most `capacity` (1 or more) of them; moves *at on and returns how many,
 * fewer only at the end. Of ASCII `word_table`, which is as for lsh_join_words, has to hold the letters, the digits and the
 * underscore. */
size_t lsh_next_words(const uint8_t *text, size_t length, const uint8_t *word_table, size_t *at, lsh_span *spans,
                      size_t capacity);

/* LSH_JOIN: each run of characters that are in no word becomes one space, none at the start and the end. */
enum lsh_normalisation { LSH_LOWER = 1, LSH_STRIP = 2, LSH_COLLAPSE = 4, LSH_JOIN = 8 };

/* Normalise an ASCII text: lower case, without punctuation (categories P*), each run of white space one space, as the flags of
 * enum lsh_normalisation ask. Returns the length written to `out`, which holds `length` bytes and does not overlap `text`. */
size_t lsh_normalise_ascii(const uint8_t *text, size_t length, int flags, uint8_t *out);

/* What a table has for each of 0x110000 code points: the one that it becomes in lower case, and what it is. */
#define LSH_CODE_POINT 0x1FFFFFu
#define LSH_IN_WORD 0x200000u
#define LSH_PUNCTUATION 0x400000u
#define LSH_SPACE 0x800000u
#define LSH_IRREGULAR 0x1000000u /* becomes several in lower case, or depends on its neighbours there */

/* The same for any UTF-8 text, with such a table; a byte that is part of no character is in no word, and stays. `out` holds
 * `length` bytes, and half of that more. `marks` are places in what is written, which ascend, and become the places of the
 * characters in `text` that wrote the bytes there; if there are any, it ends behind the last one. Returns the length written, and
 * SIZE_MAX where a character is irregular that is to become lower case. */
size_t lsh_normalise(const uint8_t *text, size_t length, int flags, const uint32_t *table, uint8_t *out, size_t *marks,
                     size_t num_marks);

/* The places where the next units of a text begin, at most `capacity` of them, from *at on, which moves behind them; returns how
 * many, fewer only at the end. For LSH_WORD the text is words joined by single spaces. */
size_t lsh_unit_starts(const uint8_t *text, size_t length, enum lsh_unit unit, size_t *at, size_t *starts, size_t capacity);

/* ---- the kernels chosen by instruction set: body.h, one file a level, dispatch.c ---- */

enum {
    LSH_LANES = 16,          /* seeds and components are padded to a multiple of this: the widest vector of words */
    LSH_TILE = 512,          /* shingles in flight */
    LSH_MAX_FIXED = 15,      /* bytes of the longest shingle that is hashed as words, many at a time */
    LSH_MAX_FSS = 4096,      /* components of a fingerprint of scheme fss */
    LSH_FSS_KEPT = 8 * LSH_TILE, /* hashes of a text that are kept for the fallback; a longer text is hashed again */
    LSH_SEEN = 2048          /* slots of the table that drops repeated shingles */
};

/* A text and how it is cut. For LSH_WORD, murmur3 takes joined words (lsh_join_words) and fss the text itself. */
typedef struct {
    const uint8_t *text;
    size_t length;
    enum lsh_unit unit;
    size_t n; /* units a shingle, 1 or more */
} lsh_document;

/* The memory of one thread at work, 64-byte aligned. Its content means nothing between calls. */
typedef struct {
    uint8_t bytes[LSH_TILE + 128]; /* a piece of text, padded so that vectors may read on */
    uint64_t low[LSH_TILE], high[LSH_TILE];
    uint8_t fresh[LSH_TILE / 8]; /* a bit a shingle */
    uint32_t words[4][LSH_TILE + LSH_LANES];
    uint64_t wide[2][LSH_TILE];
    uint64_t seen_low[LSH_SEEN], seen_high[LSH_SEEN];
    uint32_t h1[LSH_FSS_KEPT], h2[LSH_FSS_KEPT];
    uint32_t factor[LSH_TILE + LSH_LANES], shift[LSH_TILE + LSH_LANES];
    uint32_t bins[LSH_TILE], sizes[LSH_TILE + LSH_LANES];
    uint32_t body[4][LSH_TILE + LSH_LANES], has_body[LSH_TILE + LSH_LANES];
    uint32_t table[2][LSH_MAX_FSS + LSH_LANES];
    uint32_t empty[LSH_MAX_FSS + LSH_LANES], rank[LSH_MAX_FSS + LSH_LANES], least[LSH_MAX_FSS + LSH_LANES];
    lsh_span spans[LSH_TILE];
    uint64_t *state;           /* 2 k words, for murmur3 */
    uint32_t *word_hashes[2];  /* n + LSH_TILE + LSH_LANES words each, for fss by word */
    const uint8_t *word_table; /* for fss by word */
} lsh_scratch;

/* ---- exact sets of shingles: body_sets.h ---- */

enum {
    LSH_SET_KEY = 8,   /* bytes of the longest shingle that is a word */
    LSH_SET_LANES = 8, /* tokens a bucket */
    LSH_SET_ROOM = 64, /* free places that lsh_set_add_keys needs: it adds shingles in runs */
    LSH_SET_BIT = 40   /* the bits of a token from this one on are the number of its bit in a bitmap */
};

#define LSH_SET_NONE UINT32_MAX

/* The secret that maps shingles to tokens. Each process draws it at random, so that nobody can choose texts that fill one bucket.
 * No result depends on it. */
typedef struct {
    uint64_t word, odd[2];  /* of a shingle that is a word; the factors are odd */
    uint64_t sip[2];        /* of a longer one: the key of its SipHash, */
    uint64_t factors[5][2]; /* or the factors of its words and its length, the lower half first */
    uint64_t kept;          /* the bits of that hash that are used: all, except in tests of collisions */
} lsh_set_secret;

/* The distinct shingles of a text, or of a part of the hash space, in order of their first occurrence. */
typedef struct {
    const uint8_t *text;
    uint64_t *tokens;       /* `count` of them, allocated for `capacity`; none is 0 */
    lsh_span *spans;        /* where each is in the text; NULL where all are words of `width` (1 to 8) bytes */
    size_t width;
    size_t count, capacity;
    uint32_t zero;          /* bit L: whether there is a shingle of L bytes whose token is 0; not counted above */
} lsh_set;

/* A table of the tokens of a set: buckets of LSH_SET_LANES, at least two of them and a power of two, aligned to their
 * size; more lanes than tokens. */
typedef struct {
    uint64_t *lanes;    /* all 0 to begin with */
    uint8_t *filled;    /* the number of used lanes of each bucket, from its first on */
    uint32_t *entries;  /* the place in the set of the token in each lane; NULL for a set without spans */
    size_t buckets;     /* (buckets - 1) * LSH_SET_LANES: the bits of the place of one */
    uint32_t shift;     /* how far down a token they are, times LSH_SET_LANES: right behind those of the part */
    uint32_t part_bits; /* the hash space has 2**part_bits parts, by the top bits of a token */
    const uint64_t *bits; /* NULL, or the set's bitmap, which spares lookups in a large table */
    size_t bits_mask;     /* its bits - 1 */
} lsh_set_table;

/* ---- anchors of passages: body_anchors.h ---- */

enum { LSH_GRAM = 4 }; /* bytes of a gram, whose value chooses the anchors */

/* An anchor: the gram at `place` is that of the windows from `first` on, up to the one before the next anchor's first. */
typedef struct {
    size_t place, first;
} lsh_anchor;

/* A walk over the anchors of a text. To begin, `next` and `tie` are 0. */
typedef struct {
    const uint8_t *text;
    size_t length;
    size_t window; /* bytes, LSH_GRAM or more */
    size_t place, next, tie; /* private: the anchor, the first gram that was not looked at, and one with the same value */
    uint32_t value;
} lsh_anchor_walk;

struct lsh_kernels {
    const char *level;
    /* minima[s] = min(minima[s], MurmurHash3_x86_32(shingle, seeds[s])) over the shingles, compared as int32.
     * k is a multiple of LSH_LANES (pad with any seed). seeds, scratch and minima do not overlap. */
    void (*min_murmur3_32)(const lsh_document *document, const uint32_t *seeds, size_t k, lsh_scratch *scratch,
                           int32_t *minima);
    /* The same with the first half of MurmurHash3_x64_128, compared as uint64. */
    void (*min_murmur3_64)(const lsh_document *document, const uint32_t *seeds, size_t k, lsh_scratch *scratch,
                           uint64_t *minima);
    /* The fingerprint of scheme fss (docs/schemes.md): k (1 to LSH_MAX_FSS) components, all UINT32_MAX where there is no
     * shingle. ranks: of lsh_fss_ranks. */
    void (*fss)(const lsh_document *document, uint32_t seed, const uint32_t *ranks, size_t k, lsh_scratch *scratch,
                uint32_t *fingerprint);
    /* How many of the k components of a and b are equal. */
    size_t (*count_equal_8)(const uint8_t *a, const uint8_t *b, size_t k);
    size_t (*count_equal_32)(const uint32_t *a, const uint32_t *b, size_t k);
    size_t (*count_equal_64)(const uint64_t *a, const uint64_t *b, size_t k);
    /* Take the `bits` (1 to 8) lowest bits of each of k bytes apart: bit j of the bytes from 64 * w on is packed[w * bits + j], one
     * bit a byte, in an order of this machine. What is missing in the last word is 0. */
    void (*pack_low_bits)(const uint8_t *bytes, size_t k, size_t bits, uint64_t *packed);
    /* The place of the first of `count` rows, words * bits words each as pack_low_bits writes them, that differs from `row` in at
     * most `most` components; `count` if there is none. */
    size_t (*find_similar)(const uint64_t *row, const uint64_t *rows, size_t words, size_t bits, size_t most, size_t count);
    /* Compare the row of `document` with those of `count` others. Move the others that have at least `least` of k bytes
     * equal to the front, in their order, and the numbers in `along` with them; return how many they are. The row of
     * document d begins at matrix + d * k. */
    size_t (*filter_8)(const uint8_t *matrix, size_t k, size_t least, size_t document, int32_t *others, int32_t *along,
                       size_t count);
    /* Band b covers components bounds[b] to bounds[b + 1] - 1 of a row (bounds ascend); rows begin `row_stride` components
     * apart. keys[b * stride + row] =
     *     mix(mix((b + 1) G) + sum over c of mix(value_c ^ ((c + 1) G))),   G = 0x9E3779B97F4A7C15,
     * mix being the 64-bit finaliser of MurmurHash3 and the sums modulo 2**64. The values of a row may be far from
     * uniform, so each is mixed with its component before they meet. Part of the stored format. */
    void (*band_keys_32)(const uint32_t *rows, size_t count, size_t row_stride, const size_t *bounds, size_t num_bands,
                         uint64_t *keys, size_t stride);
    void (*band_keys_64)(const uint64_t *rows, size_t count, size_t row_stride, const size_t *bounds, size_t num_bands,
                         uint64_t *keys, size_t stride);
    /* Add the shingles of set->width bytes from place `first` on to a set without spans and to its table, as far as they
     * fall in the part. The text has `length` bytes, at least the width. Returns the place of the first shingle that it did
     * not look at, as the set has fewer than LSH_SET_ROOM places left; length - width + 1 at the end. */
    size_t (*set_add_keys)(lsh_set *set, const lsh_set_table *table, const lsh_set_secret *secret, uint64_t part,
                           size_t length, size_t first);
    /* Add the shingles of these spans to a set with spans and to its table; the set is large enough for all of them. */
    void (*set_add_spans)(lsh_set *set, const lsh_set_table *table, const lsh_set_secret *secret, uint64_t part,
                          const lsh_span *spans, size_t count);
    /* Count the shingles of `width` bytes of a text by part of the hash space: at[p] += 1 for those of part first + p, p < parts.
     * With `tokens`, each is also stored at the place that at[p] had. Shingles whose token is 0 are not counted; returns whether
     * there are any. The text has `length` bytes, at least the width. */
    int (*set_split_keys)(const lsh_set_secret *secret, size_t width, const uint8_t *text, size_t length, uint32_t part_bits,
                          uint64_t first, uint64_t parts, size_t *at, uint64_t *tokens);
    /* The same for spans of a text, which are stored as they are; token 0 is one of part 0. */
    void (*set_split_spans)(const lsh_set_secret *secret, const uint8_t *text, const lsh_span *spans, size_t count,
                            uint32_t part_bits, uint64_t first, uint64_t parts, size_t *at, lsh_span *out);
    /* Add tokens that are not 0 to a set without spans and to its table; the set is large enough for all of them. */
    void (*set_add_tokens)(lsh_set *set, const lsh_set_table *table, const uint64_t *tokens, size_t count);
    /* Enter the shingles of a set from number `first` on, which its table does not have. */
    void (*set_enter)(const lsh_set *set, const lsh_set_table *table, size_t first);
    /* entries[j] = the number, in the set, of shingle j of `other`; LSH_SET_NONE if it does not have it. The set has
     * spans. */
    void (*set_find)(const lsh_set *set, const lsh_set_table *table, const lsh_set *other, uint32_t *entries);
    /* How many shingles of `other` are in the set, whose table this is. May stop where they cannot be `least` any more,
     * and returns fewer than that then. */
    size_t (*set_count_shared)(const lsh_set *set, const lsh_set_table *table, const lsh_set *other, size_t least);
    /* An upper bound of the same, from a text of `length` bytes (set->width or more) instead of its set: the number of
     * places of the text whose shingle is in the set, which has no spans. May stop early, too. */
    size_t (*set_most_shared)(const lsh_set *set, const lsh_set_table *table, const lsh_set_secret *secret,
                              const uint8_t *text, size_t length, size_t least);
    /* How many of these spans of a text have a token that is in the table: no shingle of the set is missed, others may be
     * counted. */
    size_t (*set_most_spans)(const lsh_set_table *table, const lsh_set_secret *secret, const uint8_t *text,
                             const lsh_span *spans, size_t count);
    /* Make a bitmap of a set, of all 0: its bit (token >> LSH_SET_BIT) % bits is 1 for each token, and bit 0, too. There
     * are 64 * words bits, a power of two. */
    void (*set_mark)(const lsh_set *set, uint64_t *bits, size_t words);
    /* How many bits are 1 in both bitmaps. */
    size_t (*count_common)(const uint64_t *a, const uint64_t *b, size_t words);
    /* The next anchors of a text in order, at most `capacity` (1 or more); returns how many, 0 at the end. The anchor of a
     * window of `window` bytes is the leftmost of its grams with the least value, a mixture of its bytes. So it
     * depends on these bytes only: windows that are equal have the same one. A text shorter than a window has none. */
    size_t (*next_anchors)(lsh_anchor_walk *walk, lsh_anchor *found, size_t capacity);
    /* Write the positions of the shingles that begin as wanted, in order; returns how many. Units are bytes, 4 or more of them,
     * and `found` has room for LSH_LANES more than there are shingles. */
    size_t (*find_begins)(const lsh_wanted *wanted, const lsh_shingles *shingles, uint32_t *found);
};

/* low_bits.c, the same at every level: more would be larger, not faster. */
void lsh_pack_low_bits(const uint8_t *bytes, size_t k, size_t bits, uint64_t *packed);

extern const struct lsh_kernels lsh_kernels_baseline, lsh_kernels_avx2, lsh_kernels_avx512, lsh_kernels_neon;

/* The kernels of a level by its name; NULL where this build or this CPU lacks it. NULL asks for the best level. */
const struct lsh_kernels *lsh_kernels_find(const char *level);

/* The rank of each component in the permutations of the fallback of fss, shifted to the high half of the word: k words,
 * padded with zeros to a multiple of LSH_LANES. `permutation` is scratch of 2**lg words, lg = max(1, ceil(log2 k)). */
void lsh_fss_ranks(size_t k, uint32_t *permutation, uint32_t *ranks);

/* ---- content.c: keys of whole texts, by which equal ones are found ---- */

/* Write a hash of each of `count` texts under a secret key. Without it, nobody can choose texts with the same one. It is a sum for
 * each block, several times as fast as SipHash, and SipHash of the sums. */
void lsh_content_keys(const uint8_t *const *texts, const ptrdiff_t *lengths, size_t count, const uint64_t key[2], uint64_t *out);

/* ---- grouping.c: documents that share a band key ---- */

/* The slots of the table that lsh_find_buckets needs: a power of two, `entered` or more. */
size_t lsh_bucket_slots(size_t entered);

/* Find the documents of order[0 .. count) that share a key, and write them over the keys: as int32_t, bucket by bucket, each in the
 * given order; and from (uint32_t *)keys + documents on, where each bucket ends. Returns how many buckets there are. The memory of
 * the keys has 8 bytes a document, of which keys of 4 bytes take the first half.
 * A document after the first `entered` is in a bucket only if one of these has its key. documents < 2**31, and order has none of
 * them twice. Scratch of any content: 8 bytes of records for each of `count` and each 4 bytes of a key; a table of
 * lsh_bucket_slots(entered) words, and `count` more. Together 16 to 28 bytes a document.
 * Returns LSH_CHANGED where keys change meanwhile, which leaves everything unspecified. */
size_t lsh_find_buckets(void *keys, size_t key_bytes, size_t documents, const int32_t *order, size_t count, size_t entered,
                        uint64_t *records, uint32_t *table);
#define LSH_CHANGED SIZE_MAX

/* Select the keys of a part, 0 to parts - 1, by their hashes: of `count` documents, those that are chosen (0 or 1 each). Writes the
 * keys and their numbers, 0 to count - 1; both arrays have room for `count`. Returns how many they are. */
size_t lsh_select_part(const void *keys, size_t key_bytes, const uint8_t *chosen, size_t count, uint32_t part, uint32_t parts,
                       void *selected, int32_t *documents);

/* The bins of one band of a cache: an open-addressing table from key to the first document of the bin. A slot is
 * free while its head is LSH_NOTHING. mask + 1 slots, a power of two, at least one of them free. */
#define LSH_NOTHING UINT32_MAX

/* The slot that holds the key, or the free slot where it belongs. */
size_t lsh_bins_find(const uint64_t *keys, const uint32_t *heads, size_t mask, uint64_t key);

/* Free a slot, and close the gap so that every other key is still found. */
void lsh_bins_free(uint64_t *keys, uint32_t *heads, size_t mask, size_t slot);

/* ---- search.c: the sorted keys of a segment of an index ----
 *
 * The content of a mapped file may be wrong in any way. Every function reads within the arrays it is given, whatever is in
 * them, and returns a fault where it finds one. Integers of a file are little-endian, at any alignment. */

enum lsh_fault {
    LSH_SOUND = 0,
    LSH_BAD_BLOCK,     /* a block does not have its checksum */
    LSH_BAD_NUMBER,    /* a document outside the segment */
    LSH_BAD_ORDER      /* keys, or the documents of a key, do not ascend */
};

enum {
    LSH_BLOCK = 1 << 16,   /* bytes that share a checksum */
    LSH_FOUND = 256,       /* keys of one band that SortedKeys.find looks up in one call */
    LSH_LOOKUPS = 1 << 16, /* lookups of a group of queries; their runs fit into a second-level cache */
    LSH_WINDOW = 1 << 16,  /* documents whose occurrences are marked in a bitmap */
    LSH_PIECE = 256        /* documents compared at a time */
};

typedef void (*lsh_hash)(const uint8_t *data, size_t length, uint32_t seed, uint64_t *out); /* lsh_murmur3_x64_128 */

/* A file in blocks, of which the last may be shorter. */
typedef struct {
    const uint8_t *file;
    size_t size;
    const uint8_t *sums; /* 8 bytes a block: the first half of its MurmurHash3_x64_128 with seed 0 */
    uint8_t *checked;    /* a byte a block: 1 once its checksum was compared; threads may share it */
    lsh_hash hash;
} lsh_blocks;

/* Write the checksum of each block of `size` bytes to `sums`. */
void lsh_block_sums(const uint8_t *data, size_t size, lsh_hash hash, uint8_t *sums);

/* Compare the checksums of the blocks that hold `length` bytes at `start`, which are within the file, unless they are
 * marked as checked. Returns the number of the first wrong one; SIZE_MAX if there is none. */
size_t lsh_check_blocks(const lsh_blocks *blocks, const uint8_t *start, size_t length);

/* Keys (uint64) and the numbers of their documents (uint32), ascending by key, then number. */
typedef struct {
    const uint8_t *keys, *numbers;
    size_t count;             /* less than 2**32 */
    const lsh_blocks *blocks; /* the arrays lie within its file; NULL where there is nothing to check */
} lsh_sorted;

typedef struct {
    uint32_t low, high; /* of the key */
    uint32_t number;
} lsh_numbered_key;

/* Sort keys, whose numbers ascend, by key, then number. `records` and `other` hold `count` each; returns the one that has
 * the result. */
lsh_numbered_key *lsh_sort_keys(const uint64_t *keys, const uint32_t *numbers, size_t count, lsh_numbered_key *records,
                                lsh_numbered_key *other);

/* Where sorted keys are written: arrays as in lsh_sorted, for `capacity` keys, of which there are `count`. */
typedef struct {
    uint8_t *keys, *numbers;
    size_t capacity, count;
} lsh_sorted_output;

/* Append `count` sorted records, for which there is memory. */
void lsh_put_keys(lsh_sorted_output *out, const lsh_numbered_key *records, size_t count);

/* Part of an array of sorted keys. */
typedef struct {
    uint32_t start, stop;
} lsh_run;

/* Find the places of each key, LSH_LOOKUPS keys or fewer. With LSH_BAD_BLOCK, *block is set to its number. */
enum lsh_fault lsh_find_keys(const lsh_sorted *sorted, const uint64_t *keys, size_t count, lsh_run *runs,
                             size_t *block);

/* Check that keys number first .. first + count - 1, and the key before them, ascend with their documents, which are
 * below `documents`. */
enum lsh_fault lsh_check_keys(const lsh_sorted *sorted, size_t documents, size_t first, size_t count, size_t *block);

/* A segment that is searched. */
typedef struct {
    const lsh_sorted *bands;
    size_t num_bands, documents;
    const uint8_t *removed;  /* a bit a document, the low one of a byte first; NULL if none is removed */
    const uint8_t *sketches; /* rows of k components of `width` bytes (1, 4 or 8), aligned to it */
    size_t k, width;
    const lsh_blocks *blocks; /* of the file that has the sketches; NULL where there is nothing to check */
    const struct lsh_kernels *kernels;
} lsh_segment;

/* A search: for each query the documents that share a bucket with it and have at least `least` components equal, each
 * once, ascending; of more than `most` documents, those with most equal components, and of equal ones the first.
 * To begin, all fields that are not set are 0. It takes no more memory than this and its answer. */
typedef struct {
    const uint64_t *keys; /* of band b and query q: keys[b * queries + q] */
    const uint8_t *rows;  /* a row of k components each query, aligned */
    size_t queries, least, most;
    lsh_run *runs;         /* scratch: max(LSH_LOOKUPS, num_bands) of them, or queries * num_bands if that is less */
    uint32_t *tallies;     /* scratch: k + 1 of them, where `most` is less than SIZE_MAX */
    size_t block;          /* set with LSH_BAD_BLOCK */
    size_t query;          /* the first that is not finished; `queries` at the end */
    size_t group, stop;    /* private from here on: the queries whose runs are known, */
    size_t active, window; /* runs of this query that are not walked to the end; the first document of the window */
    size_t first;          /* where the matches of this query begin */
    size_t bar;            /* fewer equal components are too few for it */
    size_t work;           /* of this call, in about a nanosecond each */
    int is_begun;
    uint64_t marks[LSH_WINDOW / 64]; /* a bit a document of the window */
    uint64_t marked[LSH_WINDOW / 64 / 64]; /* a bit a word of these */
} lsh_search;

/* The matches found so far. */
typedef struct {
    int64_t *bounds;    /* where the matches of each query end, behind a first entry of 0 */
    uint32_t *numbers;
    uint16_t *equal;    /* equal components */
    size_t count, capacity;
} lsh_matches;

/* Continue a search for as long as there is memory for LSH_PIECE more matches, or for about ten milliseconds. */
enum lsh_fault lsh_search_next(const lsh_segment *segment, lsh_search *search, lsh_matches *matches);

/* One of the sorted arrays that are merged, and where the merge is in it. */
typedef struct {
    const lsh_sorted *sorted;
    const uint32_t *renumbered; /* the new number of each document, ascending; LSH_NOTHING of one that is dropped */
    uint32_t first;             /* where that is NULL: the new number of document 0; the others follow it */
    size_t documents;
    size_t at, checked;       /* private, 0 to begin with */
} lsh_merge_part;

/* A merge. All new numbers differ. */
typedef struct {
    lsh_merge_part *parts;
    size_t num_parts, share;           /* share: keys of a part that are taken at a time, 1 or more */
    lsh_numbered_key *records, *other; /* scratch: num_parts * share of each */
    size_t left;                       /* keys of all parts that are not read yet */
    size_t part, block;                /* set with a fault: the part that has it */
    size_t taken;                      /* private, 0 */
} lsh_merge;

/* Count the next keys of a part whose documents are not dropped, and add their number to *kept; at the end part->at is
 * the number of all keys. */
enum lsh_fault lsh_merge_count(lsh_merge_part *part, size_t *kept, size_t *block);

/* Append some of the next keys to `out`, in order. More keys than there is memory for are LSH_BAD_ORDER. */
enum lsh_fault lsh_merge_next(lsh_merge *merge, lsh_sorted_output *out);

#endif
