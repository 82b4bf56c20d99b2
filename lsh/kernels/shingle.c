/* Where the shingles of a text are: by byte, by character, by word. See kernels.h.
 *
 * A shingle is a range of the text's bytes, found by two ends that move on one unit at a time; nothing is
 * copied and no list of all shingles is made. A character is a valid UTF-8 sequence (encoded surrogates count
 * as valid), or else one byte; a word ends at a space, as lsh_join_words has left only single ones.
 */
#include "kernels.h"

#define NOT_A_CHARACTER UINT32_MAX

static int is_continuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

/* The length of the character at p, of which `left` (1 or more) bytes can be read, and its code point. The bounds on
 * the second byte exclude overlong forms and what lies above U+10FFFF (Unicode, table 3-7; surrogates let through). */
static size_t decode(const uint8_t *p, size_t left, uint32_t *code_point)
{
    uint8_t lead = p[0];
    *code_point = lead;
    if (lead < 0x80)
        return 1;
    if (lead >= 0xC2 && lead < 0xE0 && left >= 2 && is_continuation(p[1])) {
        *code_point = (uint32_t)(lead & 0x1F) << 6 | (p[1] & 0x3F);
        return 2;
    }
    if (lead >= 0xE0 && lead < 0xF0 && left >= 3 && is_continuation(p[1]) && is_continuation(p[2]) &&
        (lead != 0xE0 || p[1] >= 0xA0)) {
        *code_point = (uint32_t)(lead & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F);
        return 3;
    }
    if (lead >= 0xF0 && lead < 0xF5 && left >= 4 && is_continuation(p[1]) && is_continuation(p[2]) &&
        is_continuation(p[3]) && (lead != 0xF0 || p[1] >= 0x90) && (lead != 0xF4 || p[1] < 0x90)) {
        *code_point = (uint32_t)(lead & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12 | (uint32_t)(p[2] & 0x3F) << 6 |
                      (p[3] & 0x3F);
        return 4;
    }
    *code_point = NOT_A_CHARACTER;
    return 1;
}

/* The end of the unit that starts at `at` (before the end of the text). A word's end is the space behind it. */
static size_t unit_end(const lsh_shingler *walk, size_t at)
{
    uint32_t ignored;
    switch (walk->unit) {
    case LSH_CHAR:
        return at + decode(walk->text + at, walk->length - at, &ignored);
    case LSH_WORD:
        while (at < walk->length && walk->text[at] != ' ')
            at++;
        return at;
    default:
        return at + 1;
    }
}

static size_t separator(const lsh_shingler *walk) { return walk->unit == LSH_WORD ? 1 : 0; }

void lsh_shingler_begin(lsh_shingler *walk, const uint8_t *text, size_t length, enum lsh_unit unit, size_t n)
{
    *walk = (lsh_shingler){.text = text, .length = length, .unit = unit, .start = 0, .end = 0, .done = length == 0};
    if (walk->done)
        return;
    if (unit == LSH_BYTE) {
        walk->end = n < length ? n : length;
        return;
    }
    walk->end = unit_end(walk, 0);
    for (size_t taken = 1; taken < n && walk->end < length; taken++)
        walk->end = unit_end(walk, walk->end + separator(walk));
}

size_t lsh_shingler_next(lsh_shingler *walk, lsh_span *spans, size_t capacity)
{
    size_t count = 0;
    while (count < capacity && !walk->done) {
        spans[count++] = (lsh_span){.start = walk->start, .length = walk->end - walk->start};
        walk->done = walk->end == walk->length;
        if (walk->done)
            break;
        walk->start = unit_end(walk, walk->start) + separator(walk);
        walk->end = unit_end(walk, walk->end + separator(walk));
    }
    return count;
}

size_t lsh_join_words(const uint8_t *text, size_t length, const uint8_t *word_table, uint8_t *out)
{
    size_t written = 0;
    int inside = 0;
    for (size_t at = 0; at < length;) {
        uint32_t code_point;
        size_t size = decode(text + at, length - at, &code_point);
        int is_word = code_point != NOT_A_CHARACTER && (word_table[code_point >> 3] >> (code_point & 7) & 1);
        if (is_word) {
            if (!inside && written > 0)
                out[written++] = ' ';
            for (size_t i = 0; i < size; i++)
                out[written++] = text[at + i];
        }
        inside = is_word;
        at += size;
    }
    return written;
}
