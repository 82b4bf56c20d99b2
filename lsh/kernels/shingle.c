/* Where the shingles of a text are: by byte, by character, by word. See kernels.h.
 *
 * A shingle is a range of the text's bytes, found by two ends that move on one unit at a time; nothing is
 * copied and no list of all shingles is made. A character is a valid UTF-8 sequence (encoded surrogates count
 * as valid), or else one byte; a word ends at a space, as lsh_join_words has left only single ones.
 */
#include <string.h>

#include "../_murmur3.h"
#include "kernels.h"
#include "target.h"
#include "utf8.h"

/* The end of the unit that starts at `at` (before the end of the text). A word's end is the space behind it. */
static size_t unit_end(const lsh_shingler *walk, size_t at)
{
    uint32_t ignored;
    switch (walk->unit) {
    case LSH_CHAR:
        return at + decode_utf8(walk->text + at, walk->length - at, &ignored);
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
    lsh_shingler at = *walk; /* in registers */
    size_t count = 0;
    while (count < capacity && !at.done) {
        spans[count++] = (lsh_span){.start = at.start, .length = at.end - at.start};
        if (at.end == at.length) {
            at.done = 1;
            break;
        }
        at.start = unit_end(&at, at.start) + separator(&at);
        at.end = unit_end(&at, at.end + separator(&at));
        if (at.start >= at.end) /* only if another thread changes the text */
            at.done = 1;
    }
    *walk = at;
    return count;
}

static int in_table(const uint8_t *word_table, uint32_t code_point)
{
    return word_table[code_point >> 3] >> (code_point & 7) & 1;
}

/* Whether the character at p belongs to a word; sets its size. */
static int is_word(const uint8_t *word_table, const uint8_t *p, size_t left, size_t *size)
{
    uint32_t code_point;
    if (*p < 0x80) {
        *size = 1;
        return in_table(word_table, *p);
    }
    *size = decode_utf8(p, left, &code_point);
    return code_point != NOT_A_CHARACTER && in_table(word_table, code_point);
}

/* Find the next word at or behind *at: sets where it starts and moves *at behind its end; returns its length, 0 at the end. */
static size_t next_word(const uint8_t *text, size_t length, const uint8_t *word_table, size_t *at, size_t *start)
{
    size_t place = *at, size;
    while (place < length && !is_word(word_table, text + place, length - place, &size))
        place += size;
    *start = place;
    while (place < length && is_word(word_table, text + place, length - place, &size))
        place += size;
    *at = place;
    return place - *start;
}

static int is_ascii_word(uint8_t c)
{
    const uint8_t letter = (uint8_t)((c | 0x20) - 'a'), digit = (uint8_t)(c - '0');
    return (letter < 26) | (digit < 10) | (c == '_');
}

/* A bit for each of 64 bytes that is an ASCII letter, digit or underscore; 0 and *ascii = 0 where a byte is not ASCII. */
static uint64_t word_bits(const uint8_t *text, int *ascii)
{
    uint8_t in_word[64];
    uint64_t bits = 0, high = 0;
    for (size_t i = 0; i < 64; i++)
        in_word[i] = (uint8_t)is_ascii_word(text[i]);
    LSH_UNROLL for (size_t i = 0; i < 64; i += 8) {
        high |= lsh_load64(text + i);
        bits |= (lsh_load64(in_word + i) * 0x0102040810204080u >> 56) << i; /* the low bits of eight bytes, side by side */
    }
    *ascii = (high & 0x8080808080808080u) == 0;
    return *ascii ? bits : 0;
}

size_t lsh_next_words(const uint8_t *text, size_t length, const uint8_t *word_table, size_t *at, lsh_span *spans,
                      size_t capacity)
{
    size_t count = 0;
    while (count < capacity && *at < length) {
        int ascii = 0;
        const size_t first = *at;
        uint64_t bits = length - first >= 64 ? word_bits(text + first, &ascii) : 0;
        /* A word that reaches the end of the block may go on behind it: the next block begins with that word. */
        const size_t block = ~bits ? (size_t)lsh_highest_bit(~bits) + 1 : 0;
        if (!ascii || block == 0) {
            spans[count].length = next_word(text, length, word_table, at, &spans[count].start);
            count += spans[count].length > 0;
            continue;
        }
        bits &= UINT64_MAX >> (64 - block);
        *at = first + block;
        while (bits && count < capacity) { /* one mispredicted branch a block; a loop over characters has two a word */
            const size_t begin = lsh_lowest_bit(bits), size = lsh_lowest_bit(~(bits >> begin));
            spans[count++] = (lsh_span){.start = first + begin, .length = size};
            bits &= ~(uint64_t)0 << (begin + size);
        }
        if (bits)
            *at = spans[count - 1].start + spans[count - 1].length;
    }
    return count;
}

size_t lsh_join_words(const uint8_t *text, size_t length, const uint8_t *word_table, uint8_t *out)
{
    size_t written = 0, at = 0, start, size;
    while ((size = next_word(text, length, word_table, &at, &start)) > 0) {
        if (written > 0) {
            if (length - written <= size) /* only if another thread changes the text */
                break;
            out[written++] = ' ';
        }
        memmove(out + written, text + start, size);
        written += size;
    }
    return written;
}

/* Bit c % 64 of word c / 64 tells whether Python's \s matches the ASCII character c: tab to carriage return, the four separators,
 * space; and whether its category is P*, which those of $ + < = > ^ ` | ~ are not. */
static const uint64_t spaces[2] = {0x1f0003e00u, 0};
static const uint64_t punctuation[2] = {0x8c00f7ee00000000u, 0x28000000b8000001u};

size_t lsh_normalise_ascii(const uint8_t *text, size_t length, int flags, uint8_t *restrict out)
{
    enum { GAP = 0x100, DROPPED = 0x200 };
    uint16_t becomes[256]; /* the character it becomes, and whether it is white space to collapse or to be dropped */
    size_t written = 0;
    uint32_t behind = flags & LSH_JOIN ? GAP : 0; /* GAP if a space was written last, ignoring dropped characters */
    for (size_t c = 128; c < 256; c++) /* not ASCII: only if another thread changes the text */
        becomes[c] = (uint16_t)c;
    for (uint8_t c = 0; c < 128; c++) {
        const int collapses = flags & LSH_JOIN ? !is_ascii_word(c) : flags & LSH_COLLAPSE && spaces[c / 64] >> c % 64 & 1;
        const int drop = flags & LSH_STRIP && punctuation[c / 64] >> c % 64 & 1;
        const int lower = flags & LSH_LOWER && c >= 'A' && c <= 'Z';
        becomes[c] = (uint16_t)(drop ? c | DROPPED : collapses ? ' ' | GAP : lower ? c + 32 : c);
    }
    for (size_t i = 0; i < length; i++) {
        const uint32_t found = becomes[text[i]];
        out[written] = (uint8_t)found; /* written <= i, so `out` is large enough even for dropped characters */
        written += !(found & (behind | DROPPED));
        behind = found & DROPPED ? behind : found & GAP;
    }
    return written - (flags & LSH_JOIN && written > 0 && behind);
}

size_t lsh_normalise(const uint8_t *text, size_t length, int flags, const uint32_t *table, uint8_t *restrict out,
                     size_t *marks, size_t num_marks)
{
    size_t written = 0, at = 0, left = num_marks, size;
    uint32_t gap = flags & LSH_JOIN ? 1 : 0; /* whether a space was written last, or nothing may be */
    for (; at < length; at += size) {
        uint32_t c, entry, becomes;
        size = decode_utf8(text + at, length - at, &c);
        entry = c == NOT_A_CHARACTER ? 0 : table[c];
        if (flags & LSH_LOWER && entry & LSH_IRREGULAR)
            return SIZE_MAX;
        if (flags & LSH_STRIP && entry & LSH_PUNCTUATION)
            continue;
        const uint32_t collapses = flags & LSH_JOIN ? !(entry & LSH_IN_WORD) : flags & LSH_COLLAPSE && entry & LSH_SPACE;
        if (collapses & gap)
            continue;
        gap = collapses;
        becomes = collapses ? ' ' : flags & LSH_LOWER ? entry & LSH_CODE_POINT : c;
        if (c == NOT_A_CHARACTER && !collapses)
            out[written++] = text[at];
        else
            written = (size_t)(put_utf8(becomes, out + written) - out);
        for (; left > 0 && *marks < written; marks++, left--)
            *marks = at;
        if (num_marks > 0 && left == 0)
            return written;
    }
    return written - (flags & LSH_JOIN && written > 0 && gap);
}

/* A bit for each of 64 bytes that is a space. */
static inline uint64_t spaces_of(const uint8_t *bytes)
{
    const uint64_t low_bits = 0x7F7F7F7F7F7F7F7Fu;
    uint64_t mask = 0;
    for (unsigned i = 0; i < 8; i++) {
        const uint64_t word = lsh_load64(bytes + 8 * i) ^ 0x2020202020202020u;
        const uint64_t high_bits = ~(((word & low_bits) + low_bits) | word | low_bits); /* of the bytes that are 0 */
        mask |= (high_bits >> 7) * 0x0102040810204080u >> 56 << 8 * i;              /* together */
    }
    return mask;
}

/* lsh_unit_starts for words. A branch for each word would be mispredicted too often, and a call takes longer than a word. */
static size_t word_starts(const uint8_t *text, size_t length, size_t *at, size_t *starts, size_t capacity)
{
    size_t count = 0, block = *at;
    if (capacity == 0 || block >= length)
        return 0;
    starts[count++] = block;
    for (; block < length; block += 64) {
        uint8_t rest[64] = {0};
        const uint8_t *bytes = text + block;
        if (length - block < 64)
            bytes = memcpy(rest, bytes, length - block);
        for (uint64_t spaces = spaces_of(bytes); spaces; spaces &= spaces - 1) {
            const size_t start = block + lsh_lowest_bit(spaces) + 1;
            if (count == capacity || start == length) {
                *at = start;
                return count;
            }
            starts[count++] = start;
        }
    }
    *at = length;
    return count;
}

size_t lsh_unit_starts(const uint8_t *text, size_t length, enum lsh_unit unit, size_t *at, size_t *starts, size_t capacity)
{
    size_t count = 0, place = *at;
    if (unit == LSH_WORD)
        return word_starts(text, length, at, starts, capacity);
    while (count < capacity && place < length) {
        uint32_t ignored;
        starts[count++] = place;
        place += unit == LSH_CHAR ? decode_utf8(text + place, length - place, &ignored) : 1;
    }
    *at = place;
    return count;
}
