/* The readers of JSON lines, of separated lines and of CSV (lsh/kernels/json.c, cells.c) with any input: a target of
 * libFuzzer, which `.ci/fuzz` builds and runs.
 *
 * The first byte of an input chooses the reader, the second its parameters; the others are the block that is read. What is
 * read must equal what the plain readers below find, which look at one byte after another and copy every value. Each array
 * is allocated for itself, as large as kernels.h says that it has to be.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kernels/check.h"
#include "kernels/kernels.h"

enum { MOST_LENGTH = 1024, DEEPEST = 64, LONGEST_NUMBER = 256, MOST_FIELDS = 4 };

static void *get(size_t size)
{
    void *memory = malloc(size ? size : 1);
    CHECK(memory);
    return memory;
}

/* A value that a plain reader found. */
typedef struct {
    enum lsh_kind kind;
    uint8_t bytes[MOST_LENGTH];
    size_t length;
} value;

typedef struct {
    value fields[MOST_FIELDS];
    lsh_span span;
} record;

static record records[MOST_LENGTH + 1];

/* ---- UTF-8, by table 3-7 of the Unicode standard ---- */

static int is_utf8(const uint8_t *at, size_t left)
{
    static const uint8_t rows[8][5] = {/* first byte from, to; second byte from, to; how many follow */
                                       {0xC2, 0xDF, 0x80, 0xBF, 1}, {0xE0, 0xE0, 0xA0, 0xBF, 2},
                                       {0xE1, 0xEC, 0x80, 0xBF, 2}, {0xED, 0xED, 0x80, 0x9F, 2},
                                       {0xEE, 0xEF, 0x80, 0xBF, 2}, {0xF0, 0xF0, 0x90, 0xBF, 3},
                                       {0xF1, 0xF3, 0x80, 0xBF, 3}, {0xF4, 0xF4, 0x80, 0x8F, 3}};
    while (left) {
        const uint8_t *row = NULL;
        for (size_t i = 0; i < 8; i++)
            row = *at >= rows[i][0] && *at <= rows[i][1] ? rows[i] : row;
        const size_t size = *at < 0x80 ? 1 : row ? 1 + (size_t)row[4] : 0;
        if (!size || size > left || (size > 1 && (at[1] < row[2] || at[1] > row[3])))
            return 0;
        for (size_t i = 2; i < size; i++)
            if (at[i] < 0x80 || at[i] > 0xBF)
                return 0;
        at += size;
        left -= size;
    }
    return 1;
}

/* ---- JSON: RFC 8259 by its grammar, one line ---- */

static const uint8_t *place, *stop;

static int next_is(uint8_t c) { return place < stop && *place == c; }
static int take(uint8_t c) { return next_is(c) ? place++, 1 : 0; }
static void space(void)
{
    while (next_is(' ') || next_is('\t') || next_is('\r'))
        place++;
}

static int take_word(const char *word)
{
    while (*word)
        if (!take((uint8_t)*word++))
            return 0;
    return 1;
}

static int take_hex(uint32_t *number)
{
    *number = 0;
    for (int i = 0; i < 4; i++) {
        const char *const digits = "0123456789abcdefABCDEF";
        const char *digit = place < stop && *place ? strchr(digits, *place) : NULL;
        if (!digit)
            return 0;
        *number = *number * 16 + (uint32_t)(digit - digits > 15 ? digit - digits - 6 : digit - digits);
        place++;
    }
    return 1;
}

static void put(value *out, uint32_t c)
{
    static const uint32_t ends[] = {0x80, 0x800, 0x10000, 0x110000};
    size_t more = 0;
    while (c >= ends[more])
        more++;
    out->bytes[out->length++] = (uint8_t)(more ? (0xFF00 >> (more + 1) & 0xFF) | c >> 6 * more : c);
    while (more--)
        out->bytes[out->length++] = (uint8_t)(0x80 | (c >> 6 * more & 0x3F));
}

/* A string; *is_broken is set if it has half of a surrogate pair. */
static int take_string(value *out, int *is_broken)
{
    uint32_t high = 0, c;
    out->kind = LSH_STRING;
    out->length = 0;
    if (!take('"'))
        return 0;
    while (!next_is('"')) {
        const char *const letters = "\"\\/bfnrt", *const meanings = "\"\\/\b\f\n\r\t";
        int is_low = 0;
        if (place == stop || *place < 0x20)
            return 0;
        if (take('\\')) {
            if (place == stop || !*place)
                return 0;
            const char *letter = strchr(letters, *place);
            if (letter) {
                c = (uint8_t)meanings[letter - letters];
                place++;
            } else if (!take('u') || !take_hex(&c)) {
                return 0;
            }
            is_low = c >= 0xDC00 && c < 0xE000;
            *is_broken |= is_low != (high != 0);
            if (is_low && high)
                c = 0x10000 + (high - 0xD800) * 0x400 + (c - 0xDC00);
            high = c >= 0xD800 && c < 0xDC00 ? c : 0;
            if (!high && !(c >= 0xDC00 && c < 0xE000))
                put(out, c);
        } else {
            *is_broken |= high != 0;
            high = 0;
            out->bytes[out->length++] = *place++;
        }
    }
    *is_broken |= high != 0;
    return take('"');
}

static int take_digits(void)
{
    const uint8_t *const start = place;
    while (place < stop && *place >= '0' && *place <= '9')
        place++;
    return place > start;
}

static int take_number(value *out)
{
    const uint8_t *const start = place;
    take('-');
    if (!take('0') && !take_digits())
        return 0;
    if (take('.') && !take_digits())
        return 0;
    if (take('e') || take('E')) {
        if (!take('+'))
            take('-');
        if (!take_digits())
            return 0;
    }
    out->kind = LSH_NUMBER;
    out->length = (size_t)(place - start);
    memcpy(out->bytes, start, out->length);
    return out->length <= LONGEST_NUMBER;
}

static int take_value(value *out, int *is_broken, int depth);

/* An object or a list; `fields`: where the fields of the record go, NULL within it. */
static int take_members(uint8_t last, int depth, const lsh_text *names, size_t num_names, value *fields, int *broken)
{
    static value ignored, key; /* no value is used after another one is read */
    space();
    if (take(last))
        return 1;
    while (depth > 0) {
        value *out = &ignored;
        int is_broken = 0, in_key = 0, *is_out = &is_broken;
        if (last == '}') {
            if (!take_string(&key, &in_key) || (fields && in_key))
                return 0;
            for (size_t i = num_names; fields && i--;)
                if (names[i].length == key.length && !memcmp(names[i].bytes, key.bytes, key.length)) {
                    out = fields + i;
                    is_out = broken + i;
                }
            space();
            if (!take(':'))
                return 0;
            space();
        }
        *is_out = 0;
        if (!take_value(out, is_out, out == &ignored ? depth : DEEPEST))
            return 0;
        space();
        if (take(last))
            return 1;
        if (!take(','))
            return 0;
        space();
    }
    return 0;
}

static int take_value(value *out, int *is_broken, int depth)
{
    if (next_is('"'))
        return take_string(out, is_broken);
    if (next_is('-') || (place < stop && *place >= '0' && *place <= '9')) {
        if (*place != '-' || stop - place < 2 || place[1] != 'I')
            return take_number(out);
        place++; /* -Infinity */
    }
    int well = take('{')       ? take_members('}', depth - 1, NULL, 0, NULL, NULL)
               : take('[')     ? take_members(']', depth - 1, NULL, 0, NULL, NULL)
               : next_is('t')  ? take_word("true")
               : next_is('f')  ? take_word("false")
               : next_is('n')  ? take_word("null")
               : next_is('N')  ? take_word("NaN")
                               : take_word("Infinity");
    out->kind = LSH_OTHER;
    out->length = 0;
    return well;
}

static size_t plain_json(const uint8_t *block, size_t size, const lsh_text *names, size_t num_names)
{
    size_t count = 0;
    for (size_t at = 0; at < size;) {
        const uint8_t *const newline = memchr(block + at, '\n', size - at);
        const size_t begin = at, end = newline ? (size_t)(newline - block) : size;
        record *r = records + count;
        int broken[MOST_FIELDS] = {0};
        at = end + (newline != NULL);
        place = block + begin;
        stop = block + end;
        space();
        if (place == stop)
            continue;
        for (size_t i = 0; i < num_names; i++)
            r->fields[i].kind = LSH_ABSENT;
        if (!take('{') || !take_members('}', DEEPEST, names, num_names, r->fields, broken))
            return SIZE_MAX;
        space();
        if (place < stop || !is_utf8(block + begin, end - begin))
            return SIZE_MAX;
        for (size_t i = 0; i < num_names; i++)
            if (broken[i])
                return SIZE_MAX;
        r->span = (lsh_span){begin, at - begin};
        count++;
    }
    return count;
}

/* ---- cells ---- */

static int add_byte(record *r, const size_t *places, size_t num_places, size_t cell, uint8_t c)
{
    for (size_t i = 0; i < num_places; i++)
        if (places[i] == cell)
            r->fields[i].bytes[r->fields[i].length++] = c;
    return 1;
}

static void begin_cell(record *r, const size_t *places, size_t num_places, size_t cell)
{
    for (size_t i = 0; i < num_places; i++)
        if (places[i] == cell) {
            r->fields[i].kind = LSH_STRING;
            r->fields[i].length = 0;
        }
}

static size_t plain_lines(const uint8_t *block, size_t size, uint8_t separator, const size_t *places, size_t num_places,
                          size_t least, size_t most)
{
    size_t count = 0;
    for (size_t at = 0; at < size; count++) {
        const size_t begin = at;
        size_t cell = 0;
        begin_cell(records + count, places, num_places, 0);
        for (; at < size && block[at] != '\n'; at++) {
            const int ends = block[at] == '\r' && (at + 1 == size || block[at + 1] == '\n');
            if (ends)
                continue;
            if (block[at] == separator)
                begin_cell(records + count, places, num_places, ++cell);
            else
                add_byte(records + count, places, num_places, cell, block[at]);
        }
        at += at < size;
        if (cell + 1 < least || cell + 1 > most)
            return SIZE_MAX;
        records[count].span = (lsh_span){begin, at - begin};
    }
    return count;
}

static size_t plain_csv(const uint8_t *block, size_t size, uint8_t separator, const size_t *places, size_t num_places,
                        size_t least, size_t most, size_t *used)
{
    enum { BEGIN, PLAIN, QUOTED, QUOTE } where = BEGIN; /* in a cell */
    size_t count = 0, cell = 0, begin = 0;
    *used = 0;
    for (size_t at = 0; at < size; at++)
        if (!block[at])
            return SIZE_MAX;
    for (size_t at = 0; at <= size; at++) {
        record *r = records + count;
        const int is_end = at == size, cr = !is_end && block[at] == '\r' && at + 1 < size && block[at + 1] == '\n';
        const int ends = is_end || cr || block[at] == '\n';
        if (where == QUOTED) {
            if (is_end)
                return count;
            if (block[at] == '"')
                where = QUOTE;
            else
                add_byte(r, places, num_places, cell, block[at]);
        } else if (where == BEGIN && cell == 0 && at == begin && ends) { /* an empty line */
            at += (size_t)cr;
            begin = is_end ? at : at + 1;
            *used = begin;
        } else if (ends) {
            if (where == BEGIN)
                begin_cell(r, places, num_places, cell);
            if (cell + 1 < least || cell + 1 > most)
                return SIZE_MAX;
            at += (size_t)cr;
            r->span = (lsh_span){begin, (is_end ? at : at + 1) - begin};
            begin = *used = is_end ? at : at + 1;
            count++;
            cell = 0;
            where = BEGIN;
        } else if (where == BEGIN && block[at] == '"') {
            begin_cell(r, places, num_places, cell);
            where = QUOTED;
        } else if (block[at] == separator) {
            if (where == BEGIN)
                begin_cell(r, places, num_places, cell);
            cell++;
            where = BEGIN;
        } else if (where == QUOTE && block[at] == '"') {
            add_byte(r, places, num_places, cell, '"');
            where = QUOTED;
        } else if (where == QUOTE || block[at] == '"' || block[at] == '\r') {
            return SIZE_MAX;
        } else {
            if (where == BEGIN)
                begin_cell(r, places, num_places, cell);
            add_byte(r, places, num_places, cell, block[at]);
            where = PLAIN;
        }
    }
    return count;
}

/* ---- the comparison ---- */

static void compare(const lsh_field *found, const lsh_span *spans, size_t rows, size_t num_fields)
{
    for (size_t r = 0; r < rows; r++) {
        CHECK(spans[r].start == records[r].span.start && spans[r].length == records[r].span.length);
        for (size_t i = 0; i < num_fields; i++) {
            const lsh_field *field = found + r * num_fields + i;
            const value *expected = records[r].fields + i;
            CHECK(field->kind == expected->kind);
            if (field->kind == LSH_STRING || field->kind == LSH_NUMBER)
                CHECK(field->text.length == expected->length &&
                      !memcmp(field->text.bytes, expected->bytes, expected->length));
        }
    }
}

static void read_json(uint8_t chosen, const uint8_t *block, size_t size, uint8_t *out, lsh_field *found, lsh_span *spans)
{
    static const lsh_text names[] = {{(const uint8_t *)"a", 1},         {(const uint8_t *)"", 0},
                                     {(const uint8_t *)"\xc3\xa9", 2}, {(const uint8_t *)"a", 1}};
    const size_t num_names = chosen % (MOST_FIELDS + 1);
    const size_t rows = lsh_read_json(block, size, names, num_names, out, found, spans);
    CHECK(rows == plain_json(block, size, names, num_names));
    if (rows != SIZE_MAX)
        compare(found, spans, rows, num_names);
}

static void read_cells(int is_csv, uint8_t chosen, const uint8_t *block, size_t size, uint8_t *out, lsh_field *found,
                       lsh_span *spans)
{
    static const size_t all_places[][MOST_FIELDS] = {{0}, {1}, {0, 1}, {2, 0}, {1, 1}};
    static const size_t counts[] = {1, 1, 2, 2, 2}, greatest[] = {0, 1, 1, 2, 1};
    const size_t which = chosen % 5, num_places = counts[which], least = greatest[which] + 1 + chosen / 5 % 2;
    const size_t most = chosen / 10 % 2 ? SIZE_MAX : least + chosen / 20 % 2;
    const uint8_t separator = (uint8_t) ",;\ta\n"[chosen / 40 % (is_csv ? 4 : 5)];
    size_t used = 0, plain_used = 0, rows, plain_rows;
    if (is_csv) {
        rows = lsh_read_csv(block, size, separator, all_places[which], num_places, least, most, out, found, spans, &used);
        plain_rows = plain_csv(block, size, separator, all_places[which], num_places, least, most, &plain_used);
    } else {
        rows = lsh_read_lines(block, size, separator, all_places[which], num_places, least, most, found, spans);
        plain_rows = plain_lines(block, size, separator, all_places[which], num_places, least, most);
    }
    CHECK(rows == plain_rows);
    CHECK(rows == SIZE_MAX || used == plain_used);
    if (rows != SIZE_MAX)
        compare(found, spans, rows, num_places);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size - 2 > MOST_LENGTH)
        return 0;
    const size_t length = size - 2, lines = lsh_count_lines(data + 2, length);
    size_t newlines = length > 0 && data[size - 1] != '\n';
    for (size_t i = 2; i < size; i++)
        newlines += data[i] == '\n';
    CHECK(lines == newlines);
    uint8_t *block = memcpy(get(length), data + 2, length), *out = get(length);
    lsh_field *found = get(lines * MOST_FIELDS * sizeof *found);
    lsh_span *spans = get(lines * sizeof *spans);
    if (data[0] % 4 < 2)
        read_json(data[1], block, length, out, found, spans);
    else
        read_cells(data[0] % 4 == 2, data[1], block, length, out, found, spans);
    free(block);
    free(out);
    free(found);
    free(spans);
    return 0;
}
