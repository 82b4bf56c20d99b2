/* Shingles, fingerprints and sets of any bytes, at every level of the CPU: a target of libFuzzer, which `.ci/fuzz` builds
 * and runs.
 *
 * The first bytes of an input choose the unit, the length of the shingles and the number of components; the others are
 * the text. It is cut by the plain functions below. The kernels must find the same units, shingles and words, and each
 * level must give the fingerprints and sets of the formulas of tests/kernels/harness.c, which is part of this file.
 */
#define main harness_main /* the checks without the loop that makes random documents */
#include "../kernels/harness.c"
#undef main

#include "../kernels/check.h"
#include "kernels/utf8.h"

enum { MOST_BYTES = 400, HEAD = 4 };

/* ---- units by their definition ---- */

/* The size of the character at a place and its code point, by table 3-7 of the Unicode standard, with surrogates; 1 and
 * UINT32_MAX for a byte that begins none. */
static size_t character(const uint8_t *at, size_t left, uint32_t *code_point)
{
    static const uint8_t rows[7][5] = {/* first byte from, to; second byte from, to; how many follow */
                                       {0xC2, 0xDF, 0x80, 0xBF, 1}, {0xE0, 0xE0, 0xA0, 0xBF, 2},
                                       {0xE1, 0xEF, 0x80, 0xBF, 2}, {0xF0, 0xF0, 0x90, 0xBF, 3},
                                       {0xF1, 0xF3, 0x80, 0xBF, 3}, {0xF4, 0xF4, 0x80, 0x8F, 3}};
    *code_point = *at;
    if (*at < 0x80)
        return 1;
    for (size_t i = 0; i < 6; i++) {
        const uint8_t *row = rows[i];
        const size_t more = row[4];
        size_t fits = *at >= row[0] && *at <= row[1] && left > more && at[1] >= row[2] && at[1] <= row[3];
        for (size_t j = 2; j <= more && fits; j++)
            fits = at[j] >= 0x80 && at[j] < 0xC0;
        if (!fits)
            continue;
        *code_point = *at & (0x3F >> more);
        for (size_t j = 1; j <= more; j++)
            *code_point = *code_point << 6 | (at[j] & 0x3F);
        return 1 + more;
    }
    *code_point = UINT32_MAX;
    return 1;
}

static void cut_bytes(void)
{
    for (units = 0; units < length; units++) {
        begins[units] = units;
        ends[units] = units + 1;
    }
}

static void cut_characters(void)
{
    uint32_t ignored;
    units = 0;
    for (size_t at = 0; at < length; units++) {
        begins[units] = at;
        ends[units] = at += character(text + at, length - at, &ignored);
    }
}

static void cut_words(void)
{
    int in_word = 0;
    units = joined_length = 0;
    for (size_t at = 0; at < length;) {
        uint32_t c;
        const size_t size = character(text + at, length - at, &c);
        const int belongs = c != UINT32_MAX && word_table[c / 8] >> c % 8 & 1;
        if (belongs && !in_word) {
            if (units)
                joined[joined_length++] = ' ';
            begins[units] = at;
            joined_begins[units++] = joined_length;
        }
        for (size_t i = at; belongs && i < at + size; i++)
            joined[joined_length++] = text[i];
        if (belongs) {
            ends[units - 1] = at + size;
            joined_ends[units - 1] = joined_length;
        }
        in_word = belongs;
        at += size;
    }
}

/* ---- the comparison ---- */

static void check_words(void)
{
    uint8_t *copy = memcpy(at_edge(text_room, length), text, length), *out = at_end(out_room, length);
    size_t at = 0, count = 0, found;
    const size_t capacity = 1 + below(70);
    lsh_span *spans = at_end(span_room[0], capacity * sizeof *spans);
    CHECK(lsh_join_words(copy, length, word_table, out) == joined_length && !memcmp(out, joined, joined_length));
    do {
        found = lsh_next_words(copy, length, word_table, &at, spans, capacity);
        CHECK(found <= capacity && count + found <= units);
        for (size_t i = 0; i < found; i++, count++)
            CHECK(spans[i].start == begins[count] && spans[i].start + spans[i].length == ends[count]);
    } while (found == capacity);
    CHECK(count == units);
    CHECK(lsh_join_words(copy, length, word_table, copy) == joined_length && !memcmp(copy, joined, joined_length));
}

static void check_shingler(const parameters *p, size_t shingles)
{
    const int words = p->unit == LSH_WORD;
    const size_t size = words ? joined_length : length, capacity = 1 + below(MAX_PIECES);
    uint8_t *copy = memcpy(at_edge(text_room, size), words ? joined : text, size);
    lsh_span *spans = at_end(span_room[0], capacity * sizeof *spans);
    lsh_shingler walk;
    size_t count = 0, found, expected;
    lsh_shingler_begin(&walk, copy, size, p->unit, p->n);
    while ((found = lsh_shingler_next(&walk, spans, capacity)) > 0)
        for (size_t i = 0; i < found; i++, count++) {
            CHECK(count < shingles);
            const uint8_t *bytes = shingle(p, count, &expected);
            CHECK(spans[i].start == (size_t)(bytes - (words ? joined : text)) && spans[i].length == expected);
        }
    CHECK(count == shingles);
}

static int is_one_of(uint8_t c, const char *members) { return c && strchr(members, c) != NULL; }

/* Lower case, punctuation and white space as docs/schemes.md and Python define them for ASCII. */
static void check_normalisation(int flags)
{
    uint8_t *copy = memcpy(at_edge(text_room, length), text, length), *out = at_end(out_room, length);
    static uint8_t expected[MOST_BYTES];
    size_t size = 0;
    int is_ascii = 1, in_space = 0;
    for (size_t i = 0; i < length; i++)
        is_ascii &= copy[i] < 0x80;
    CHECK(lsh_is_ascii(copy, length) == is_ascii);
    if (!is_ascii)
        return;
    for (size_t i = 0; i < length; i++) {
        uint8_t c = copy[i];
        if (flags & LSH_LOWER && c >= 'A' && c <= 'Z')
            c = (uint8_t)(c - 'A' + 'a');
        if (flags & LSH_STRIP && is_one_of(c, "!\"#%&'()*,-./:;?@[\\]_{}"))
            continue;
        const int is_space = flags & LSH_COLLAPSE && is_one_of(c, "\t\n\v\f\r\x1c\x1d\x1e\x1f ");
        if (!is_space || !in_space)
            expected[size++] = is_space ? ' ' : c;
        in_space = is_space;
    }
    CHECK(lsh_normalise_ascii(copy, length, flags, out) == size && !memcmp(out, expected, size));
}

/* A text in units of 1, 2 or 4 bytes becomes its UTF-8, which has those code points. */
static void check_encoding(size_t width)
{
    const size_t count = length / width;
    uint8_t *units_of = at_end(state_room, count * width), *out;
    size_t at = 0;
    uint32_t c, found;
    memcpy(units_of, text, count * width);
    for (size_t i = 0; i < count && width == 4; i++) {
        memcpy(&c, units_of + 4 * i, 4);
        c %= 0x110000;
        memcpy(units_of + 4 * i, &c, 4);
    }
    const size_t size = lsh_utf8_size(units_of, count, width);
    CHECK(size <= 4 * count);
    out = at_end(out_room, size);
    lsh_utf8_encode(units_of, count, width, out);
    for (size_t i = 0; i < count; i++) {
        uint16_t two;
        memcpy(&two, units_of + i * width, width == 2 ? 2 : 0);
        memcpy(&c, units_of + i * width, width == 4 ? 4 : 0);
        c = width == 1 ? units_of[i] : width == 2 ? two : c;
        CHECK(at < size);
        at += character(out + at, size - at, &found);
        CHECK(found == c);
    }
    CHECK(at == size);
}

static void fill_words(void)
{
    for (uint32_t c = 0; c < 0x110000; c++) {
        const int ascii = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z');
        if (c < 0x80 ? ascii : c % 5 < 3) /* beyond ASCII: any */
            word_table[c / 8] |= (uint8_t)(1 << c % 8);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int is_ready;
    if (size < HEAD || size - HEAD > MOST_BYTES)
        return 0;
    if (!is_ready) {
        prepare();
        fill_words();
        is_ready = 1;
    }
    length = size - HEAD;
    memcpy(text, data + HEAD, length);
    state = (uint64_t)data[3] * 2 + 1;
    const parameters p = {(enum lsh_unit)(data[0] % 3), 1 + data[1] % 20, 1 + data[2] % 40, (uint32_t)draw()};
    if (p.unit == LSH_BYTE)
        cut_bytes();
    else if (p.unit == LSH_CHAR)
        cut_characters();
    else
        cut_words();
    const size_t shingles = units == 0 ? 0 : units > p.n ? units - p.n + 1 : 1;
    if (p.unit == LSH_WORD)
        check_words();
    check_shingler(&p, shingles);
    check_normalisation(data[0] / 3 % 8);
    check_encoding((size_t)1 << data[0] / 24 % 3);
    for (size_t s = 0; s < p.k; s++)
        seeds[s] = (uint32_t)draw();
    if (data[0] / 72 % 2)
        check_murmur3(&p, shingles);
    else
        check_fss(&p, shingles);
    check_sets(&p, shingles);
    CHECK(!failures);
    return 0;
}
