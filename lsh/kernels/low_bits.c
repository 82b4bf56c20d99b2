/* The low bits of sketches, side by side. See kernels.h. */
#include <string.h>
#ifdef __SSE2__ /* each x86-64 has it */
#include <immintrin.h>
#endif

#include "kernels.h"

/* Pack 64 bytes. A product brings the lowest bits of eight bytes together in the top byte; SSE2 has an instruction for 16. */
static void pack_word(const uint8_t bytes[64], size_t bits, uint64_t *packed)
{
#ifdef __SSE2__
    for (size_t j = 0; j < bits; j++) {
        packed[j] = 0;
        for (size_t i = 0; i < 64; i += 16) {
            const __m128i up = _mm_sll_epi16(_mm_loadu_si128((const __m128i *)(bytes + i)), _mm_cvtsi32_si128(7 - (int)j));
            packed[j] |= (uint64_t)(uint32_t)_mm_movemask_epi8(up) << i;
        }
    }
#else
    uint64_t eights[8];
    memcpy(eights, bytes, sizeof eights);
    for (size_t j = 0; j < bits; j++) {
        uint64_t word = 0;
        for (size_t i = 0; i < 8; i++)
            word |= ((eights[i] >> j & 0x0101010101010101u) * 0x0102040810204080u >> 56) << 8 * i;
        packed[j] = word;
    }
#endif
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
