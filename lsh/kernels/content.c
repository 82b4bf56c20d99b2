/* Keys of whole texts, by which equal ones are found. See kernels.h. */
#include <string.h>

#include "kernels.h"
#include "siphash.h"
#include "target.h"

enum { BLOCK = 512, UNIT = 16 }; /* bytes */

/* NH of Black, Halevi, Krawczyk, Krovetz and Rogaway (UMAC, 1999): any two different blocks of one length have the same sum under
 * one in 2**64 choices of keys at most. The last unit, whose begin the one before may have, ends where the block ends: UNIT bytes or
 * more of the text end there. */
static lsh_wide sum_block(const uint8_t *bytes, size_t length, const uint64_t *keys)
{
    const uint64_t zeros[2] = {0, 0};
    lsh_wide sum = lsh_wide_product(zeros, 0);
    for (size_t at = 0; at < length; at += UNIT) {
        const uint8_t *unit = length - at < UNIT ? bytes + length - UNIT : bytes + at;
        const uint64_t factor[2] = {lsh_load64(unit) + keys[at / 8], 0};
        sum = lsh_wide_sum(sum, lsh_wide_product(factor, lsh_load64(unit + 8) + keys[at / 8 + 1]));
    }
    return sum;
}

static uint64_t content_key(const uint8_t *text, size_t length, const uint64_t key[2], const uint64_t *keys)
{
    uint64_t chain[3] = {length, 0, 0};
    if (length < UNIT)
        return lsh_siphash13(text, length, key);
    for (size_t at = 0; at < length; at += BLOCK) {
        const lsh_wide sum = sum_block(text + at, length - at < BLOCK ? length - at : BLOCK, keys);
        memcpy(chain + 1, &sum, sizeof sum);
        chain[0] = lsh_siphash13((const uint8_t *)chain, sizeof chain, key);
    }
    return chain[0];
}

void lsh_content_keys(const uint8_t *const *texts, const ptrdiff_t *lengths, size_t count, const uint64_t key[2], uint64_t *out)
{
    uint64_t keys[BLOCK / 8];
    for (uint64_t i = 0; i < BLOCK / 8; i++)
        keys[i] = lsh_siphash13((const uint8_t *)&i, sizeof i, key);
    for (size_t i = 0; i < count; i++)
        out[i] = content_key(texts[i], (size_t)lengths[i], key, keys);
}
