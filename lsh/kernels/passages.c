/* Keys of runs of bytes; the contract is in passages.h.
 *
 * Each word is multiplied with what came before, and both halves of the product are used, as in many hashes of short keys. The
 * secret is random, so that nobody can choose texts of one key.
 */
#include "passages.h"

static inline uint64_t lsh_folded(uint64_t a, uint64_t b)
{
    const uint64_t factor[2] = {a, 0};
    const lsh_wide product = lsh_wide_product(factor, b);
    return lsh_wide_top(product) ^ a * b;
}

uint64_t lsh_context_key(const uint8_t *text, size_t length, uint64_t salt, const uint64_t secret[2])
{
    const uint64_t odd = 0x9E3779B97F4A7C15u; /* so that a secret of zeros gives keys, too */
    uint64_t key = lsh_folded(secret[0] ^ salt ^ odd, secret[1] ^ length ^ odd), a, b;
    size_t at = 0;
    for (; length - at > 16; at += 16)
        key = lsh_folded(lsh_load64(text + at) ^ secret[1], lsh_load64(text + at + 8) ^ key);
    if (length >= 16) {
        a = lsh_load64(text + length - 16);
        b = lsh_load64(text + length - 8);
    } else {
        a = length > 8 ? lsh_load64(text) : 0;
        b = length >= 8 ? lsh_load64(text + length - 8) : lsh_load_partial(text, length);
    }
    key = lsh_folded(a ^ secret[1], b ^ key);
    key = lsh_folded(key ^ secret[0], secret[1] ^ odd);
    return key ? key : 1;
}
