/* The UTF-8 of one code point, for utf8.c and fields.c. */
#ifndef LSH_UTF8_H
#define LSH_UTF8_H

#include <stdint.h>

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

#endif
