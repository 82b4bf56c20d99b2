/* The kernels for NEON, which every AArch64 CPU has: vectors of four words. There is no 64-bit vector multiplication, so 64-bit
 * words go one by one. */
#include "target.h"
#if LSH_BUILD_NEON

#include <arm_neon.h>
#include <stdint.h>

#define LSH_LEVEL neon
#define HIDE(vector)

typedef uint32x4_t V;
#define LANES_32 4
#define v_load(p) vld1q_u32(p)
#define v_store(p, a) vst1q_u32(p, a)
#define v_one(x) vdupq_n_u32(x)
#define v_add(a, b) vaddq_u32(a, b)
#define v_xor(a, b) veorq_u32(a, b)
#define v_xor3(a, b, c) v_xor(v_xor(a, b), c)
#define v_and(a, b) vandq_u32(a, b)
#define v_mul(a, b) vmulq_u32(a, b)
#define v_mul16(a, b) vreinterpretq_u32_u16(vmulq_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b)))
#define v_shr(a, r) vshrq_n_u32(a, r)
#define v_rotl(a, r) vsriq_n_u32(vshlq_n_u32(a, r), a, 32 - (r))
#define v_min_s(a, b) vreinterpretq_u32_s32(vminq_s32(vreinterpretq_s32_u32(a), vreinterpretq_s32_u32(b)))
#define v_min_u(a, b) vminq_u32(a, b)

static inline V v_words(const uint8_t *p)
{
    static const uint8_t places[16] = {0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6};
    return vreinterpretq_u32_u8(vqtbl1q_u8(vld1q_u8(p), vld1q_u8(places)));
}

static inline uint32_t v_less(V a, V b)
{
    static const uint32_t bits[4] = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(vcltq_u32(a, b), vld1q_u32(bits)));
}

static inline void v_pack(uint32_t *p, V a, uint32_t mask)
{
    uint32_t words[4];
    vst1q_u32(words, a);
    for (uint32_t i = 0; i < 4; i++) {
        *p = words[i];
        p += mask >> i & 1;
    }
}

#include "single_words.h"
#define GRAMS_IN_VECTORS 1
#include "body.h"

#else
typedef int lsh_no_neon; /* a translation unit must not be empty */
#endif
