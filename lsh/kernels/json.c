/* Fields of JSON objects (RFC 8259), one object a line. See kernels.h.
 *
 * Accepts unambiguous input only: input that is malformed, nested too deeply or not UTF-8 ends the reading, and is left to a
 * reader that can report the error. A string without escapes is not copied; one with escapes is decoded into
 * `out`. A field is a key of the object itself; nested values are checked and skipped.
 */
#include <string.h>

#include "kernels.h"
#include "target.h"
#include "utf8.h"

enum {
    MAX_DEPTH = 64,         /* objects and lists within each other */
    MAX_NUMBER_LENGTH = 256, /* characters */
    WIDTH = 16               /* bytes of a vector */
};

#define ONES (UINT64_MAX / 0xFF)
#define HIGHS (ONES << 7)

/* Which byte of a word, in the order of memory, is the first one that is not 0, and the word without it and those behind it. */
#if LSH_BIG_ENDIAN
static unsigned first_byte(uint64_t word) { return 7 - lsh_highest_bit(word) / 8; }
static uint64_t bytes_before(uint64_t word, unsigned first) { return first ? word & ~(UINT64_MAX >> 8 * first) : 0; }
#else
static unsigned first_byte(uint64_t word) { return lsh_lowest_bit(word) / 8; }
static uint64_t bytes_before(uint64_t word, unsigned first) { return word & (((uint64_t)1 << 8 * first) - 1); }
#endif

/* Whether bytes are UTF-8 (RFC 3629): without surrogates, as Python decodes it. */
static int is_utf8(const uint8_t *at, const uint8_t *end)
{
    uint32_t c;
    while (at < end) {
        if (end - at >= 8 && !(lsh_word_at(at) & HIGHS)) {
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

/* A line that is being read; `end` is that of the block. What reads a part of it begins at `at` and returns where the part ends,
 * NULL if it is malformed. */
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

/* One more than the value of a hexadecimal digit, 0 for other characters. */
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

/* What a letter behind a backslash means, 0 for one that has no meaning; `u` is followed by digits. */
static const uint8_t meaning[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
};

static const uint8_t *skip_escape(const line *l, const uint8_t *at)
{
    if (l->end - at < 2)
        return NULL;
    if (at[1] == 'u')
        return four_digits(at + 2, l->end) < 0 ? NULL : at + 6;
    return meaning[at[1]] ? at + 2 : NULL;
}

/* skip_plain: skip bytes of a string up to the first special one, or, if there is none, until less than a vector (or a
 * word) is left; `seen` gets the bits of all bytes skipped. */
#if LSH_VECTORS
/* Not 0 in the bytes that are a quote, a backslash or a control character. */
static inline lsh_words_2 special_bytes(lsh_bytes_16 bytes)
{
    return (lsh_words_2)((bytes == '"') | (bytes == '\\') | (bytes < 0x20));
}

static inline const uint8_t *skip_plain(const uint8_t *at, const uint8_t *end, uint64_t *seen)
{
    lsh_bytes_16 bits = {0};
    lsh_words_2 special;
    for (; end - at >= 4 * WIDTH; at += 4 * WIDTH) {
        const lsh_bytes_anywhere *four = (const lsh_bytes_anywhere *)at;
        special = special_bytes(four[0]) | special_bytes(four[1]) | special_bytes(four[2]) | special_bytes(four[3]);
        if (special[0] | special[1])
            break;
        bits |= (four[0] | four[1]) | (four[2] | four[3]);
    }
    for (; end - at >= WIDTH; at += WIDTH) {
        const lsh_bytes_16 bytes = *(const lsh_bytes_anywhere *)at;
        special = special_bytes(bytes);
        if (special[0] | special[1]) {
            const unsigned half = !special[0];
            const unsigned first = first_byte(special[half]);
            *seen |= bytes_before(((lsh_words_2)bytes)[half], first) | (half ? ((lsh_words_2)bytes)[0] : 0);
            at += 8 * half + first;
            break;
        }
        bits |= bytes;
    }
    *seen |= ((lsh_words_2)bits)[0] | ((lsh_words_2)bits)[1];
    return at;
}
#else
/* The top bit of each byte of a word that is 0. */
static inline uint64_t zero_bytes(uint64_t word) { return ~(((word & ~HIGHS) + ~HIGHS) | word) & HIGHS; }

/* The same for the bytes that are a quote, a backslash or a control character, of which the upper three bits are 0. */
static inline uint64_t special_bytes(uint64_t word)
{
    return zero_bytes(word ^ '"' * ONES) | zero_bytes(word ^ '\\' * ONES) | zero_bytes(word & 0xE0 * ONES);
}

static inline const uint8_t *skip_plain(const uint8_t *at, const uint8_t *end, uint64_t *seen)
{
    for (; end - at >= 8; at += 8) {
        const uint64_t bytes = lsh_word_at(at), special = special_bytes(bytes);
        if (special) {
            const unsigned first = first_byte(special);
            *seen |= bytes_before(bytes, first);
            return at + first;
        }
        *seen |= bytes;
    }
    return at;
}
#endif

/* From behind the quote that begins a string to the one that ends it. */
static const uint8_t *string_end(line *l, const uint8_t *at)
{
    uint64_t seen = 0;
    l->escapes = 0;
    while ((at = skip_plain(at, l->end, &seen)) < l->end) {
        if (*at == '"') {
            l->not_ascii |= (seen & HIGHS) != 0;
            return at;
        }
        if (*at < 0x20)
            return NULL;
        if (*at != '\\') {
            seen |= *at++;
            continue;
        }
        l->escapes = 1;
        do { /* in an escaped script one escape follows the other */
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

static const uint8_t *number_end(const line *l, const uint8_t *at)
{
    const uint8_t *start = at, *first;
    first = at += *at == '-';
    at = digits(l, at);
    if (!at || (*first == '0' && at - first > 1))
        return NULL;
    if (at < l->end && *at == '.') {
        at = digits(l, at + 1);
        if (!at)
            return NULL;
    }
    if (at < l->end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < l->end && (*at == '+' || *at == '-');
        at = digits(l, at);
    }
    return !at || at - start > MAX_NUMBER_LENGTH ? NULL : at;
}

static const uint8_t *word_end(const line *l, const uint8_t *at, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(l->end - at) >= length && !memcmp(at, word, length) ? at + length : NULL;
}

/* The fields that are searched in a record. */
typedef struct {
    const lsh_text *names;
    size_t num_names;
    lsh_field *found; /* one for each name */
    uint8_t *out;     /* where a key with escapes is decoded */
} search;

/* Decode a string whose escapes are well-formed; returns its length, SIZE_MAX for half of a surrogate pair. */
static size_t unescape(const uint8_t *at, const uint8_t *end, uint8_t *out)
{
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
            *out++ = meaning[at[1]];
            at += 2;
        }
    }
    return (size_t)(out - start);
}

/* The field of a key, NULL if the key is not wanted. */
static lsh_field *field_of(const search *s, const uint8_t *key, size_t length)
{
    size_t i;
    for (i = 0; i < s->num_names; i++)
        if (s->names[i].length == length && !memcmp(s->names[i].bytes, key, length))
            return s->found + i;
    return NULL;
}

static const uint8_t *value_end(line *l, const uint8_t *at, int depth);

/* Read a value that is wanted, with its escapes as they are. */
static const uint8_t *read_value(line *l, const uint8_t *at, lsh_field *field)
{
    const uint8_t *const start = at;
    int is_number;
    field->kind = LSH_OTHER;
    if (at == l->end)
        return NULL;
    if (*at == '"') {
        at = string_end(l, at + 1);
        if (!at)
            return NULL;
        *field = (lsh_field){l->escapes ? LSH_ESCAPED : LSH_STRING, {start + 1, (size_t)(at - start - 1)}};
        return at + 1;
    }
    is_number = (*at >= '0' && *at <= '9') || (*at == '-' && l->end - at > 1 && at[1] != 'I');
    at = is_number ? number_end(l, at) : value_end(l, at, MAX_DEPTH);
    if (at && is_number)
        *field = (lsh_field){LSH_NUMBER, {start, (size_t)(at - start)}};
    return at;
}

/* From a key to its value; sets the field that `s`, if there is one, has for the key. */
LSH_INLINE const uint8_t *key_end(line *l, const uint8_t *at, const search *s, lsh_field **field)
{
    const uint8_t *key = at + 1, *quote;
    if (*at != '"')
        return NULL;
    quote = string_end(l, key);
    if (!quote)
        return NULL;
    if (s) {
        size_t length = (size_t)(quote - key);
        if (l->escapes) {
            length = unescape(key, quote, s->out);
            if (length == SIZE_MAX)
                return NULL;
            key = s->out;
        }
        *field = field_of(s, key, length);
    }
    at = skip_space(l, quote + 1);
    return at == l->end || *at != ':' ? NULL : skip_space(l, at + 1);
}

/* From behind the bracket that begins an object or a list to behind the one that ends it. `s`: the fields that are wanted of
 * an object, NULL for none; inline, so that nested values are skipped without searching them. */
LSH_INLINE const uint8_t *members_end(line *l, const uint8_t *at, int depth, uint8_t last, const search *s)
{
    at = skip_space(l, at);
    if (at < l->end && *at == last)
        return at + 1;
    while (depth && at < l->end) {
        lsh_field *field = NULL;
        if (last == '}')
            at = key_end(l, at, s, &field);
        if (at)
            at = field ? read_value(l, at, field) : value_end(l, at, depth);
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

static const uint8_t *inner_end(line *l, const uint8_t *at, int depth, uint8_t last)
{
    return members_end(l, at, depth, last, NULL);
}

static const uint8_t *value_end(line *l, const uint8_t *at, int depth)
{
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
        return number_end(l, at);
    default:
        return number_end(l, at);
    }
}

/* Decode the fields of a record that have escapes; returns the end of the decoded text, NULL for half of a surrogate pair. */
static uint8_t *unescape_fields(lsh_field *row, size_t num_names, uint8_t *out)
{
    size_t i, length;
    for (i = 0; i < num_names; i++) {
        if (row[i].kind != LSH_ESCAPED)
            continue;
        length = unescape(row[i].text.bytes, row[i].text.bytes + row[i].text.length, out);
        if (length == SIZE_MAX)
            return NULL;
        row[i] = (lsh_field){LSH_STRING, {out, length}};
        out += length;
    }
    return out;
}

size_t lsh_read_json(const uint8_t *block, size_t size, const lsh_text *names, size_t num_names, uint8_t *out,
                     lsh_field *found, lsh_span *spans)
{
    const uint8_t *at = block, *const end = block + size;
    size_t rows = 0;
    while (at < end) {
        line l = {end, 0, 0}; /* no token contains a newline, so a record that goes on behind it is malformed */
        const search s = {names, num_names, found + rows * num_names, out};
        const uint8_t *const start = at;
        at = skip_space(&l, at);
        if (at < end && *at != '\n') {
            memset(s.found, 0, num_names * sizeof(*s.found));
            at = *at == '{' ? members_end(&l, at + 1, MAX_DEPTH, '}', &s) : NULL;
            at = at ? skip_space(&l, at) : NULL;
            if (!at || (at < end && *at != '\n') || (l.not_ascii && !is_utf8(start, at)))
                return SIZE_MAX;
            out = unescape_fields(s.found, num_names, out);
            if (!out)
                return SIZE_MAX;
            spans[rows++] = (lsh_span){(size_t)(start - block), (size_t)(at - start) + (at < end)};
        }
        at += at < end;
    }
    return rows;
}
