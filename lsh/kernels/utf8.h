/* The UTF-8 of one code point, written and read, and whether a text is ASCII. */
#ifndef LSH_UTF8_H
#define LSH_UTF8_H

#include <stddef.h>
#include <stdint.h>

#include "../_murmur3.h"

/* Write the one to four bytes of a code point, surrogates like their neighbours; returns where they end. */
static inline uint8_t *put_utf8(uint32_t c, uint8_t *out)
{
    if (c < 0x80) {
        *out++ = (uint8_t)c;
        return out;
    }
    if (c < 0x800) {
        *out++ = (uint8_t)(0xC0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *out++ = (uint8_t)(0xE0 | c >> 12);
        } else {
            *out++ = (uint8_t)(0xF0 | c >> 18);
            *out++ = (uint8_t)(0x80 | (c >> 12 & 0x3F));
        }
        *out++ = (uint8_t)(0x80 | (c >> 6 & 0x3F));
    }
    *out++ = (uint8_t)(0x80 | (c & 0x3F));
    return out;
}

#define NOT_A_CHARACTER UINT32_MAX

static inline int is_continuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

/* The length of the character at p, of which `left` (1 or more) bytes can be read, and its code point. The bounds on
 * the second byte exclude overlong forms and what lies above U+10FFFF (Unicode, table 3-7; surrogates let through). */
static inline size_t decode_utf8(const uint8_t *p, size_t left, uint32_t *code_point)
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

/* Whether every byte is below 0x80. */
int lsh_is_ascii(const uint8_t *text, size_t length);

#endif
