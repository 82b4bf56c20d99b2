/* The kernels for AVX-512 (F, BW, DQ and VL): vectors of sixteen words, with rotations, three-way logic, a 64-bit multiplication and
 * an unsigned 64-bit minimum of its own. */
#include "target.h"
#if LSH_BUILD_AVX512
LSH_BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl")

#include <immintrin.h>
#include <stdint.h>

#define LSH_LEVEL avx512
#define HIDE(vector) LSH_HIDE("v", vector)

typedef __m512i V;
#define LANES_32 16
#define v_load(p) _mm512_loadu_si512(p)
#define v_store(p, a) _mm512_storeu_si512(p, a)
#define v_one(x) _mm512_set1_epi32((int)(x))
#define v_add(a, b) _mm512_add_epi32(a, b)
#define v_xor(a, b) _mm512_xor_si512(a, b)
#define v_xor3(a, b, c) _mm512_ternarylogic_epi32(a, b, c, 0x96)
#define v_and(a, b) _mm512_and_si512(a, b)
#define v_mul(a, b) _mm512_mullo_epi32(a, b)
#define v_mul16(a, b) _mm512_mullo_epi16(a, b)
#define v_shr(a, r) _mm512_srli_epi32(a, r)
#define v_rotl(a, r) _mm512_rol_epi32(a, r)
#define v_min_s(a, b) _mm512_min_epi32(a, b)
#define v_min_u(a, b) _mm512_min_epu32(a, b)
#define v_less(a, b) ((uint32_t)_mm512_cmplt_epu32_mask(a, b))
#define v_pack(p, a, mask) v_store(p, _mm512_maskz_compress_epi32((__mmask16)(mask), a))

static inline uint32_t v_bits(const uint32_t *words, V a, uint32_t shift)
{
    const V places = _mm512_srl_epi32(a, _mm_cvtsi32_si128((int)shift));
    const V found = _mm512_i32gather_epi32(_mm512_srli_epi32(places, 5), words, 4);
    return _mm512_test_epi32_mask(found, _mm512_sllv_epi32(v_one(1), v_and(places, v_one(31))));
}

/* Bytes 4 q to 4 q + 15 in quarter q, then the words that start at each byte of the first four. */
static inline V v_words(const uint8_t *p)
{
    const V quarters = _mm512_setr_epi32(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6);
    const V places = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6));
    const V bytes = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(quarters, bytes), places);
}

typedef __m512i W;
#define LANES_64 8
#define W_FLIP 0
#define w_widen(p) _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(p)))
#define w_load(p) v_load(p)
#define w_store(p, a) v_store(p, a)
#define w_one(x) _mm512_set1_epi64((long long)(x))
#define w_add(a, b) _mm512_add_epi64(a, b)
#define w_xor(a, b) v_xor(a, b)
#define w_and(a, b) v_and(a, b)
#define w_shr(a, r) _mm512_srli_epi64(a, r)
#define w_mul(a, c) _mm512_mullo_epi64(a, w_one(c))
#define w_min(a, b) _mm512_min_epu64(a, b)
#define w_pack(p, a, mask) w_store(p, _mm512_maskz_compress_epi64((__mmask8)(mask), a))

static inline W w_words(const uint8_t *p)
{
    const W places = _mm512_setr_epi64(0x0706050403020100, 0x0807060504030201, 0x0908070605040302, 0x0a09080706050403,
                                       0x0b0a090807060504, 0x0c0b0a0908070605, 0x0d0c0b0a09080706, 0x0e0d0c0b0a090807);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)p)), places);
}

static inline uint32_t equal_lanes(const uint64_t *p, uint64_t a)
{
    return (uint32_t)_mm512_cmpeq_epi64_mask(_mm512_load_si512(p), w_one(a));
}

#define GRAMS_IN_VECTORS 1
#include "body.h"

LSH_END_TARGET
#else
typedef int lsh_no_avx512; /* a translation unit must not be empty */
#endif
