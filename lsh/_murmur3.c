/* MurmurHash3 x86_32, x86_128 and x64_128 over one run of bytes; see _murmur3.h.
 *
 * These are the plain, whole hashes: for content hashes, for vectors, and as the truth the kernels
 * are compared with. The published code reads the length as a signed 32-bit int; here the length enters the
 * last step modulo 2**32 (x86) and 2**64 (x64), which is the same below 2 GiB.
 */
#include "_murmur3.h"

uint32_t lsh_murmur3_x86_32(const uint8_t *data, size_t length, uint32_t seed)
{
    uint32_t h = seed;
    size_t at = 0;
    for (; length - at >= 4; at += 4)
        h = lsh_rotl32(h ^ lsh_m32_mix(lsh_load32(data + at)), 13) * 5 + LSH_M32_ADD;
    h ^= lsh_m32_mix((uint32_t)lsh_load_partial(data + at, length - at));
    return lsh_fmix32(h ^ (uint32_t)length);
}

void lsh_murmur3_x86_128(const uint8_t *data, size_t length, uint32_t seed, uint32_t out[4])
{
    static const uint32_t c[4] = {0x239b961bu, 0xab0e9789u, 0x38b34ae5u, 0xa1e38b93u};
    static const uint32_t add[4] = {0x561ccd1bu, 0x0bcaa747u, 0x96cd1c35u, 0x32ac3b17u};
    static const int turn_block[4] = {15, 16, 17, 18}, turn_state[4] = {19, 17, 15, 13};
    uint32_t h[4] = {seed, seed, seed, seed};
    size_t at = 0;

    for (; length - at >= 16; at += 16)
        for (int lane = 0; lane < 4; lane++) {
            uint32_t k = lsh_load32(data + at + 4 * lane) * c[lane];
            h[lane] ^= lsh_rotl32(k, turn_block[lane]) * c[(lane + 1) % 4];
            h[lane] = (lsh_rotl32(h[lane], turn_state[lane]) + h[(lane + 1) % 4]) * 5 + add[lane];
        }
    for (int lane = 0; lane < 4; lane++) {
        size_t first = at + 4 * (size_t)lane;
        size_t left = first < length ? length - first : 0;
        uint32_t k = left ? (uint32_t)lsh_load_partial(data + first, left < 4 ? left : 4) : 0;
        h[lane] ^= lsh_rotl32(k * c[lane], turn_block[lane]) * c[(lane + 1) % 4];
        h[lane] ^= (uint32_t)length;
    }
    h[0] += h[1] + h[2] + h[3];
    for (int lane = 1; lane < 4; lane++)
        h[lane] += h[0];
    for (int lane = 0; lane < 4; lane++)
        h[lane] = lsh_fmix32(h[lane]);
    h[0] += h[1] + h[2] + h[3];
    out[0] = h[0];
    for (int lane = 1; lane < 4; lane++)
        out[lane] = h[lane] + h[0];
}

void lsh_murmur3_x64_128(const uint8_t *data, size_t length, uint32_t seed, uint64_t out[2])
{
    uint64_t h1 = seed, h2 = seed;
    size_t at = 0;
    for (; length - at >= 16; at += 16) {
        h1 = lsh_rotl64(h1 ^ lsh_m64_mix1(lsh_load64(data + at)), 27) + h2;
        h1 = h1 * 5 + LSH_M64_ADD1;
        h2 = lsh_rotl64(h2 ^ lsh_m64_mix2(lsh_load64(data + at + 8)), 31) + h1;
        h2 = h2 * 5 + LSH_M64_ADD2;
    }
    size_t left = length - at;
    h1 ^= lsh_m64_mix1(lsh_load_partial(data + at, left < 8 ? left : 8));
    if (left > 8)
        h2 ^= lsh_m64_mix2(lsh_load_partial(data + at + 8, left - 8));
    h1 ^= (uint64_t)length;
    h2 ^= (uint64_t)length;
    h1 += h2;
    h2 += h1;
    h1 = lsh_fmix64(h1);
    h2 = lsh_fmix64(h2);
    out[0] = h1 + h2;
    out[1] = h2 + out[0];
}
