/* The low bits of sketches, side by side. See kernels.h. */
#include <string.h>

#include "kernels.h"

/* Pack 64 bytes. A product brings the lowest bits of eight bytes together in the top byte. */
static void pack_word(const uint8_t bytes[64], size_t bits, uint64_t *packed)
{
    uint64_t eights[8];
    memcpy(eights, bytes, sizeof eights);
    for (size_t j = 0; j < bits; j++) {
        uint64_t word = 0;
        for (size_t i = 0; i < 8; i++)
            word |= ((eights[i] >> j & 0x0101010101010101u) * 0x0102040810204080u >> 56) << 8 * i;
        packed[j] = word;
    }
}

void lsh_pack_low_bits(const uint8_t *bytes, size_t k, size_t bits, uint64_t *packed)
{
    size_t first = 0;
    for (; first + 64 <= k; first += 64, packed += bits)
        pack_word(bytes + first, bits, packed);
    if (first < k) {
        uint8_t padded[64] = {0};
        memcpy(padded, bytes + first, k - first);
        pack_word(padded, bits, packed);
    }
}
