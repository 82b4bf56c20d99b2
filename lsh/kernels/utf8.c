/* UTF-8 of text that an interpreter holds in units of 1, 2 or 4 bytes (Latin-1, UCS-2, UCS-4). See kernels.h.
 *
 * One body for the three widths. Sizes are counted in blocks short enough that a counter as wide as a unit does not
 * overflow, and runs of ASCII are copied a block at a time; compilers turn both into vector code. A surrogate
 * becomes three bytes like its neighbours, which is what Python calls surrogatepass.
 */
#include <string.h>

#include "kernels.h"
#include "utf8.h"

enum {
    COUNTED = 64, /* units a block of the count, which is kept in one unit: uint8_t adds 1 each, uint16_t 2 */
    COPIED = 8    /* units of ASCII copied at a time */
};

/* What a unit adds to its first byte; compared in its own width, in which vectors compare many at once. */
#define MORE(unit, c) \
    ((unit)(((c) >= 0x80) + (sizeof(unit) > 1 && (c) >= 0x800) + (sizeof(unit) > 2 && (c) >= 0x10000)))

/* The bits of a word of units that are set where one is not ASCII. */
#define BEYOND_ASCII(unit) (UINT64_MAX / (unit)-1 * ((unit)-1 - 0x7F))

#define FOR_WIDTH(unit)                                                                 \
    static size_t size_##unit(const unit *text, size_t length)                          \
    {                                                                                   \
        size_t total = length, i = 0, j;                                                \
        for (; length - i >= COUNTED; i += COUNTED) {                                   \
            unit more = 0;                                                              \
            for (j = i; j < i + COUNTED; j++)                                           \
                more = (unit)(more + MORE(unit, text[j]));                              \
            total += more;                                                              \
        }                                                                               \
        for (; i < length; i++)                                                         \
            total += MORE(unit, text[i]);                                               \
        return total;                                                                   \
    }                                                                                   \
                                                                                        \
    static void encode_##unit(const unit *text, size_t length, uint8_t *out)            \
    {                                                                                   \
        uint64_t words[COPIED * sizeof(unit) / 8], seen;                                \
        size_t i = 0, j;                                                                \
        for (; length - i >= COPIED; i += COPIED) {                                     \
            memcpy(words, text + i, sizeof(words));                                     \
            for (seen = 0, j = 0; j < sizeof(words) / 8; j++)                           \
                seen |= words[j];                                                       \
            if (seen & BEYOND_ASCII(unit)) {                                            \
                for (j = i; j < i + COPIED; j++)                                        \
                    out = put_utf8(text[j], out);                                            \
            } else {                                                                    \
                for (j = 0; j < COPIED; j++)                                            \
                    out[j] = (uint8_t)text[i + j];                                      \
                out += COPIED;                                                          \
            }                                                                           \
        }                                                                               \
        for (; i < length; i++)                                                         \
            out = put_utf8(text[i], out);                                                    \
    }

FOR_WIDTH(uint8_t)
FOR_WIDTH(uint16_t)
FOR_WIDTH(uint32_t)

size_t lsh_utf8_size(const void *text, size_t length, size_t width)
{
    if (width == 1)
        return size_uint8_t(text, length);
    return width == 2 ? size_uint16_t(text, length) : size_uint32_t(text, length);
}

void lsh_utf8_encode(const void *text, size_t length, size_t width, uint8_t *out)
{
    if (width == 1)
        encode_uint8_t(text, length, out);
    else if (width == 2)
        encode_uint16_t(text, length, out);
    else
        encode_uint32_t(text, length, out);
}

int lsh_is_ascii(const uint8_t *text, size_t length)
{
    uint64_t high = 0;
    size_t at = 0;
    for (; length - at >= 64; at += 64) { /* a block at a time, so that a text that is not ASCII is left early */
        for (size_t i = 0; i < 64; i += 8)
            high |= lsh_load64(text + at + i);
        if (high & 0x8080808080808080u)
            return 0;
    }
    for (; at < length; at++)
        high |= text[at];
    return (high & 0x8080808080808080u) == 0;
}
