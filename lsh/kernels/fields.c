/* Where the fields of records are: objects of JSON, one a line, and the cells of separated lines and of CSV. See kernels.h.
 *
 * Only what nobody could read in two ways is taken. Whatever is odd ends the reading, and is left to a reader that can say
 * what is wrong with it. A field that stands in the block as it is means is not copied; one with escapes is written anew.
 */
#include <string.h>

#include "kernels.h"
#include "utf8.h"

enum {
    COUNTED = 128,    /* bytes a block of the count of newlines, at most 255 */
    MOST_DEPTH = 64,  /* objects and lists within each other */
    MOST_NUMBER = 256, /* characters of a number */
    MOST_INTEGER = 18 /* digits that fit into 64 bits whatever they are */
};

#define ONES (UINT64_MAX / 0xFF)
#define HIGHS (ONES << 7)

static uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return word;
}

/* The high bits of a word of which one at least is set if a byte of ASCII is below `limit`; it is that of the first such
 * byte or, where the word is read from its other end, maybe that of its neighbour, too. */
static uint64_t below(uint64_t word, uint64_t limit) { return (word - ONES * limit) & ~word & HIGHS; }

size_t lsh_count_lines(const uint8_t *block, size_t size)
{
    size_t lines = size && block[size - 1] != '\n', i = 0, j;
    for (; size - i >= COUNTED; i += COUNTED) {
        uint8_t newlines = 0; /* in a byte, so that vectors count many at once */
        for (j = i; j < i + COUNTED; j++)
            newlines = (uint8_t)(newlines + (block[j] == '\n'));
        lines += newlines;
    }
    for (; i < size; i++)
        lines += block[i] == '\n';
    return lines;
}

/* Whether bytes are UTF-8 as Python takes it, without surrogates. */
static int is_utf8(const uint8_t *at, const uint8_t *end)
{
    uint32_t c;
    while (at < end) {
        if (end - at >= 8 && !(word_at(at) & HIGHS)) {
            at += 8;
        } else if (*at < 0x80) {
            at++;
        } else {
            at += decode_utf8(at, (size_t)(end - at), &c);
            if (c == NOT_A_CHARACTER || (c >= 0xD800 && c < 0xE000))
                return 0;
        }
    }
    return 1;
}

/* ---- JSON (RFC 8259) ---- */

/* A line that is being read. What reads a part of it begins at `at` and returns where the part ends, NULL if it is odd. */
typedef struct {
    const uint8_t *end;
    int not_ascii; /* seen so far */
    int escapes;   /* seen in the last string */
} line;

static const uint8_t *skip_space(const line *l, const uint8_t *at)
{
    while (at < l->end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    return at;
}

/* One more than the value of a digit, 0 of what is none. */
static const uint8_t hex[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

/* The value of four digits, -1 if they are not there. */
static int32_t four_digits(const uint8_t *at, const uint8_t *end)
{
    uint32_t a, b, c, d;
    if (end - at < 4)
        return -1;
    a = hex[at[0]];
    b = hex[at[1]];
    c = hex[at[2]];
    d = hex[at[3]];
    return a && b && c && d ? (int32_t)((a - 1) << 12 | (b - 1) << 8 | (c - 1) << 4 | (d - 1)) : -1;
}

static const uint8_t *skip_escape(const line *l, const uint8_t *at)
{
    if (l->end - at < 2)
        return NULL;
    if (at[1] == 'u')
        return four_digits(at + 2, l->end) < 0 ? NULL : at + 6;
    return at[1] && strchr("\"\\/bfnrt", at[1]) ? at + 2 : NULL;
}

/* From behind the quote that begins a string to the one that ends it. */
static const uint8_t *string_end(line *l, const uint8_t *at)
{
    uint64_t word, high = 0;
    l->escapes = 0;
    while (at < l->end) {
        if (l->end - at >= 8) {
            word = word_at(at);
            high |= word;
            if (!(below(word ^ ONES * '"', 1) | below(word ^ ONES * '\\', 1) | below(word, 0x20))) {
                at += 8;
                continue;
            }
        }
        if (*at == '"') {
            l->not_ascii |= (high & HIGHS) != 0;
            return at;
        }
        if (*at < 0x20)
            return NULL;
        if (*at != '\\') {
            high |= *at++;
            continue;
        }
        l->escapes = 1;
        do { /* in scripts that are escaped one follows the other */
            at = skip_escape(l, at);
            if (!at)
                return NULL;
        } while (at < l->end && *at == '\\');
    }
    return NULL;
}

static const uint8_t *digits(const line *l, const uint8_t *at)
{
    const uint8_t *start = at;
    while (at < l->end && *at >= '0' && *at <= '9')
        at++;
    return at == start ? NULL : at;
}

static const uint8_t *number_end(const line *l, const uint8_t *at, int *is_integer)
{
    const uint8_t *start = at, *first;
    int negative = *at == '-';
    first = at += negative;
    at = digits(l, at);
    if (!at || (*first == '0' && at - first > 1))
        return NULL;
    *is_integer = at - first <= MOST_INTEGER && !(negative && *first == '0');
    if (at < l->end && *at == '.') {
        *is_integer = 0;
        at = digits(l, at + 1);
        if (!at)
            return NULL;
    }
    if (at < l->end && (*at == 'e' || *at == 'E')) {
        *is_integer = 0;
        at++;
        at += at < l->end && (*at == '+' || *at == '-');
        at = digits(l, at);
    }
    return !at || at - start > MOST_NUMBER ? NULL : at;
}

static const uint8_t *word_end(const line *l, const uint8_t *at, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(l->end - at) >= length && !memcmp(at, word, length) ? at + length : NULL;
}

static const uint8_t *value_end(line *l, const uint8_t *at, int depth);

/* From behind the bracket that begins an object or a list to behind the one that ends it. */
static const uint8_t *inner_end(line *l, const uint8_t *at, int depth, uint8_t last)
{
    at = skip_space(l, at);
    if (at < l->end && *at == last)
        return at + 1;
    while (depth && at < l->end) {
        if (last == '}') {
            if (*at != '"' || !(at = string_end(l, at + 1)))
                return NULL;
            at = skip_space(l, at + 1);
            if (at == l->end || *at != ':')
                return NULL;
            at = skip_space(l, at + 1);
        }
        at = value_end(l, at, depth);
        if (!at)
            return NULL;
        at = skip_space(l, at);
        if (at == l->end)
            return NULL;
        if (*at == last)
            return at + 1;
        if (*at != ',')
            return NULL;
        at = skip_space(l, at + 1);
    }
    return NULL;
}

static const uint8_t *value_end(line *l, const uint8_t *at, int depth)
{
    int ignored;
    if (at == l->end)
        return NULL;
    switch (*at) {
    case '"':
        at = string_end(l, at + 1);
        return at ? at + 1 : NULL;
    case '{':
        return inner_end(l, at + 1, depth - 1, '}');
    case '[':
        return inner_end(l, at + 1, depth - 1, ']');
    case 't':
        return word_end(l, at, "true");
    case 'f':
        return word_end(l, at, "false");
    case 'n':
        return word_end(l, at, "null");
    case 'N':
        return word_end(l, at, "NaN");
    case 'I':
        return word_end(l, at, "Infinity");
    case '-':
        if (l->end - at > 1 && at[1] == 'I')
            return word_end(l, at + 1, "Infinity");
        return number_end(l, at, &ignored);
    default:
        return number_end(l, at, &ignored);
    }
}

/* Write what a string with escapes means, none of which is damaged; returns its length, SIZE_MAX for half a pair. */
static size_t unescape(const uint8_t *at, const uint8_t *end, uint8_t *out)
{
    static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
    const uint8_t *const start = out, *next;
    while (at < end) {
        if (*at != '\\') {
            next = memchr(at, '\\', (size_t)(end - at));
            next = next ? next : end;
            memcpy(out, at, (size_t)(next - at));
            out += next - at;
            at = next;
        } else if (at[1] == 'u') {
            uint32_t c = (uint32_t)four_digits(at + 2, end);
            at += 6;
            if (c >= 0xD800 && c < 0xE000) {
                int32_t low = end - at >= 6 && at[0] == '\\' && at[1] == 'u' ? four_digits(at + 2, end) : -1;
                if (c >= 0xDC00 || low < 0xDC00 || low >= 0xE000)
                    return SIZE_MAX;
                c = 0x10000 + ((c - 0xD800) << 10) + (uint32_t)(low - 0xDC00);
                at += 6;
            }
            out = put_utf8(c, out);
        } else {
            const char *letter = strchr(letters, at[1]);
            *out++ = letter ? (uint8_t)meanings[letter - letters] : at[1];
            at += 2;
        }
    }
    return (size_t)(out - start);
}

/* What is looked for in a record, and what was found so far, with a string's escapes as they are. */
typedef struct {
    const lsh_text *names;
    size_t num_names;
    size_t entered[LSH_MOST_NAMES]; /* bytes of each name that lead to the object that is being read, with their dots */
    unsigned whole;                 /* names that were found as they are, with their dots: that comes before a path */
    lsh_field *found;
    int has_escapes;
} search;

/* Tell which of some names a key is, and into which of them it leads. */
static void match(const search *s, unsigned names, const uint8_t *key, size_t length, unsigned *is, unsigned *leads)
{
    const int has_dot = memchr(key, '.', length) != NULL;
    size_t i;
    *is = *leads = 0;
    for (i = 0; i < s->num_names; i++) {
        const uint8_t *rest = s->names[i].bytes + s->entered[i];
        const size_t left = s->names[i].length - s->entered[i];
        if (!(names >> i & 1) || length > left || memcmp(rest, key, length) || (has_dot && s->entered[i]))
            continue;
        if (length == left)
            *is |= 1u << i;
        else if (rest[length] == '.' && !has_dot && !(s->whole >> i & 1))
            *leads |= 1u << i;
    }
}

/* Read a value that is some names. */
static const uint8_t *read_value(line *l, const uint8_t *at, search *s, unsigned names)
{
    const uint8_t *const start = at;
    lsh_field field = {LSH_OTHER, {at, 0}};
    int is_integer = 0;
    size_t i;
    if (*at == '"') {
        at = string_end(l, at + 1);
        if (!at)
            return NULL;
        field.kind = l->escapes ? LSH_ESCAPED : LSH_STRING;
        field.text.bytes = start + 1;
        field.text.length = (size_t)(at++ - start - 1);
        s->has_escapes |= l->escapes;
    } else {
        if ((*at >= '0' && *at <= '9') || (*at == '-' && l->end - at > 1 && at[1] != 'I'))
            at = number_end(l, at, &is_integer);
        else
            at = value_end(l, at, MOST_DEPTH);
        if (!at)
            return NULL;
        if (is_integer) {
            field.kind = LSH_INTEGER;
            field.text.length = (size_t)(at - start);
        }
    }
    for (i = 0; i < s->num_names; i++)
        if (names >> i & 1)
            s->found[i] = field;
    return at;
}

/* From behind the brace that begins an object to behind the one that ends it; `out` is for a key with escapes. */
static const uint8_t *read_object(line *l, const uint8_t *at, search *s, unsigned names, int depth, uint8_t *out)
{
    const uint8_t *key;
    size_t length, i;
    unsigned is, leads;
    at = skip_space(l, at);
    if (at < l->end && *at == '}')
        return at + 1;
    while (depth && at < l->end) {
        if (*at != '"')
            return NULL;
        key = at + 1;
        at = string_end(l, key);
        if (!at)
            return NULL;
        length = (size_t)(at - key);
        if (l->escapes) {
            length = unescape(key, at, out);
            if (length == SIZE_MAX)
                return NULL;
            key = out;
        }
        match(s, names, key, length, &is, &leads);
        at = skip_space(l, at + 1);
        if (at == l->end || *at != ':')
            return NULL;
        at = skip_space(l, at + 1);
        if (at == l->end)
            return NULL;
        for (i = 0; i < s->num_names; i++) {
            if (leads >> i & 1) {
                s->found[i].kind = LSH_ABSENT; /* the last one of several counts, whatever is in it */
                s->entered[i] += length + 1;
            } else if ((is >> i & 1) && !s->entered[i]) {
                s->whole |= 1u << i;
            }
        }
        if (leads && !is && *at == '{')
            at = read_object(l, at + 1, s, leads, depth - 1, out);
        else if (is && !(leads && *at == '{'))
            at = read_value(l, at, s, is);
        else if (is) /* an object within which another name is looked for */
            return NULL;
        else
            at = value_end(l, at, depth);
        for (i = 0; i < s->num_names; i++)
            if (leads >> i & 1)
                s->entered[i] -= length + 1;
        if (!at)
            return NULL;
        at = skip_space(l, at);
        if (at == l->end)
            return NULL;
        if (*at == '}')
            return at + 1;
        if (*at != ',')
            return NULL;
        at = skip_space(l, at + 1);
    }
    return NULL;
}

size_t lsh_read_json(const uint8_t *block, size_t size, const lsh_text *names, size_t num_names, uint8_t *out,
                     lsh_field *found)
{
    const uint8_t *at = block, *const end = block + size, *newline;
    size_t rows = 0, i, length;
    if (num_names > LSH_MOST_NAMES)
        return SIZE_MAX;
    while (at < end) {
        line l = {NULL, 0, 0};
        lsh_field *row = found + rows * num_names;
        search s = {names, num_names, {0}, 0, row, 0};
        const uint8_t *stop;
        newline = memchr(at, '\n', (size_t)(end - at));
        l.end = newline ? newline : end;
        memset(row, 0, num_names * sizeof(*row));
        stop = skip_space(&l, at);
        if (stop == l.end || *stop != '{')
            return SIZE_MAX;
        stop = read_object(&l, stop + 1, &s, (1u << num_names) - 1, MOST_DEPTH, out);
        if (!stop || skip_space(&l, stop) != l.end || (l.not_ascii && !is_utf8(at, l.end)))
            return SIZE_MAX;
        for (i = 0; s.has_escapes && i < num_names; i++) {
            if (row[i].kind != LSH_ESCAPED)
                continue;
            length = unescape(row[i].text.bytes, row[i].text.bytes + row[i].text.length, out);
            if (length == SIZE_MAX)
                return SIZE_MAX;
            row[i].kind = LSH_STRING;
            row[i].text.bytes = out;
            row[i].text.length = length;
            out += length;
        }
        rows++;
        at = newline ? newline + 1 : end;
    }
    return rows;
}

/* ---- cells ---- */

/* What is done with each cell of a row in turn. */
typedef struct {
    const size_t *places;
    size_t num_places;
    size_t count; /* of this row so far */
    lsh_field *found;
} row;

static void take_cell(row *r, const uint8_t *bytes, size_t length)
{
    size_t i;
    for (i = 0; i < r->num_places; i++) {
        if (r->places[i] == r->count) {
            r->found[i].kind = LSH_STRING;
            r->found[i].text.bytes = bytes;
            r->found[i].text.length = length;
        }
    }
    r->count++;
}

size_t lsh_read_lines(const uint8_t *block, size_t size, uint8_t separator, const size_t *places, size_t num_places,
                      size_t least, size_t most, lsh_field *found)
{
    const uint8_t *at = block, *const end = block + size, *stop, *newline, *cell;
    size_t rows = 0;
    while (at < end) {
        row r = {places, num_places, 0, found + rows * num_places};
        newline = memchr(at, '\n', (size_t)(end - at));
        stop = newline ? newline : end;
        stop -= stop > at && stop[-1] == '\r';
        while ((cell = memchr(at, separator, (size_t)(stop - at)))) {
            take_cell(&r, at, (size_t)(cell - at));
            at = cell + 1;
        }
        take_cell(&r, at, (size_t)(stop - at));
        if (r.count < least || r.count > most)
            return SIZE_MAX;
        rows++;
        at = newline ? newline + 1 : end;
    }
    return rows;
}

/* The end of a cell without quotes: a comma, a newline or the end of the block; NULL if it is odd. A carriage return
 * counts as part of the end of its line. */
static const uint8_t *plain_end(const uint8_t *at, const uint8_t *end)
{
    for (; at < end; at++) {
        if (*at == ',' || *at == '\n')
            return at;
        if (*at == '\r')
            return end - at > 1 && at[1] == '\n' ? at : NULL;
        if (*at == '"')
            return NULL;
    }
    return end;
}

/* The quote that ends a cell, from behind the one that begins it; NULL if it is not in the block. */
static const uint8_t *quoted_end(const uint8_t *at, const uint8_t *end, int *is_doubled)
{
    *is_doubled = 0;
    while ((at = memchr(at, '"', (size_t)(end - at)))) {
        if (end - at < 2 || at[1] != '"')
            return at;
        *is_doubled = 1;
        at += 2;
    }
    return NULL;
}

/* Copy a cell with each two quotes as one; returns its length. */
static size_t undouble(const uint8_t *at, const uint8_t *end, uint8_t *out)
{
    const uint8_t *const start = out, *quote;
    while ((quote = memchr(at, '"', (size_t)(end - at)))) {
        memcpy(out, at, (size_t)(quote + 1 - at));
        out += quote + 1 - at;
        at = quote + 2;
    }
    memcpy(out, at, (size_t)(end - at));
    return (size_t)(out - start) + (size_t)(end - at);
}

size_t lsh_read_csv(const uint8_t *block, size_t size, const size_t *places, size_t num_places, size_t least, size_t most,
                    uint8_t *out, lsh_field *found, size_t *used)
{
    const uint8_t *at = block, *const end = block + size, *stop;
    size_t rows = 0, length;
    int is_doubled;
    *used = 0;
    if (memchr(block, 0, size))
        return SIZE_MAX;
    while (at < end) {
        row r = {places, num_places, 0, found + rows * num_places};
        if (*at == '\n' || (*at == '\r' && end - at > 1 && at[1] == '\n')) { /* no record */
            at += 1 + (*at == '\r');
            *used = (size_t)(at - block);
            continue;
        }
        for (;;) {
            if (at < end && *at == '"') {
                stop = quoted_end(at + 1, end, &is_doubled);
                if (!stop)
                    return rows;
                if (is_doubled) {
                    length = undouble(at + 1, stop, out);
                    take_cell(&r, out, length);
                    out += length;
                } else {
                    take_cell(&r, at + 1, (size_t)(stop - at - 1));
                }
                at = stop + 1;
                if (plain_end(at, end) != at) /* something behind the quote */
                    return SIZE_MAX;
            } else {
                stop = plain_end(at, end);
                if (!stop)
                    return SIZE_MAX;
                take_cell(&r, at, (size_t)(stop - at));
                at = stop;
            }
            if (at == end || *at != ',')
                break;
            at++;
        }
        if (at < end)
            at += 1 + (*at == '\r');
        if (r.count < least || r.count > most)
            return SIZE_MAX;
        rows++;
        *used = (size_t)(at - block);
    }
    return rows;
}
