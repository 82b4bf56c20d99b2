/* The kernels for AVX2: vectors of eight words. There is no 64-bit multiplication (three 32-bit ones make it) and no unsigned
 * 64-bit minimum (the top bit is flipped and the comparison signed). */
#include "target.h"
#if LSH_BUILD_AVX2
LSH_BEGIN_TARGET("avx2")

#include <immintrin.h>
#include <stdint.h>

#define LSH_LEVEL avx2
#define HIDE(vector) LSH_HIDE("x", vector)

typedef __m256i V;
#define LANES_32 8
#define v_load(p) _mm256_loadu_si256((const __m256i *)(p))
#define v_store(p, a) _mm256_storeu_si256((__m256i *)(p), a)
#define v_one(x) _mm256_set1_epi32((int)(x))
#define v_add(a, b) _mm256_add_epi32(a, b)
#define v_xor(a, b) _mm256_xor_si256(a, b)
#define v_xor3(a, b, c) v_xor(v_xor(a, b), c)
#define v_and(a, b) _mm256_and_si256(a, b)
#define v_mul(a, b) _mm256_mullo_epi32(a, b)
#define v_mul16(a, b) _mm256_mullo_epi16(a, b)
#define v_shr(a, r) _mm256_srli_epi32(a, r)
#define v_rotl(a, r) _mm256_or_si256(_mm256_slli_epi32(a, r), _mm256_srli_epi32(a, 32 - (r)))
#define v_min_s(a, b) _mm256_min_epi32(a, b)
#define v_min_u(a, b) _mm256_min_epu32(a, b)

/* Bytes 0 to 15 in either half, then the words that start at bytes 0 to 3 and 4 to 7. */
static inline V v_words(const uint8_t *p)
{
    const V places = _mm256_setr_epi8(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6, 4, 5, 6, 7, 5, 6, 7, 8, 6, 7, 8, 9, 7,
                                      8, 9, 10);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p)), places);
}

static inline uint32_t v_less(V a, V b)
{
    V not_less = _mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a);
    return ~(uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(not_less)) & 0xFF;
}

static inline uint32_t v_bits(const uint32_t *words, V a, uint32_t shift)
{
    const V places = _mm256_srl_epi32(a, _mm_cvtsi32_si128((int)shift));
    const V found = _mm256_i32gather_epi32((const int *)words, _mm256_srli_epi32(places, 5), 4);
    const V at_the_top = _mm256_sllv_epi32(found, _mm256_andnot_si256(places, v_one(31)));
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(at_the_top));
}

/* Half a vector at a time: no instruction packs lanes, and four lanes have only sixteen masks. */
static inline void pack_four(uint32_t *p, __m128i a, uint32_t mask)
{
    static const uint32_t places[16] = {0,       0,       1,         0x0100,   2,         0x0200,   0x0201,   0x020100,
                                        3,       0x0300,  0x0301,    0x030100, 0x0302,    0x030200, 0x030201, 0x03020100};
    __m128i order = _mm_cvtepu8_epi32(_mm_cvtsi32_si128((int)places[mask]));
    _mm_storeu_si128((__m128i *)p, _mm_castps_si128(_mm_permutevar_ps(_mm_castsi128_ps(a), order)));
}

static inline void v_pack(uint32_t *p, V a, uint32_t mask)
{
    pack_four(p, _mm256_castsi256_si128(a), mask & 15);
    pack_four(p + lsh_count_ones(mask & 15), _mm256_extracti128_si256(a, 1), mask >> 4);
}

typedef __m256i W;
#define LANES_64 4
#define W_FLIP 0x8000000000000000u
#define w_widen(p) _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)(p)))
#define w_load(p) v_load(p)
#define w_store(p, a) v_store(p, a)
#define w_one(x) _mm256_set1_epi64x((long long)(x))
#define w_add(a, b) _mm256_add_epi64(a, b)
#define w_xor(a, b) v_xor(a, b)
#define w_and(a, b) v_and(a, b)
#define w_shr(a, r) _mm256_srli_epi64(a, r)
#define w_min(a, b) _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b))

static inline W w_words(const uint8_t *p)
{
    const W places = _mm256_setr_epi64x(0x0706050403020100, 0x0807060504030201, 0x0908070605040302, 0x0a09080706050403);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p)), places);
}

static inline void w_pack(uint64_t *p, W a, uint32_t mask)
{
    static const uint64_t places[16] = {
        0,      0x0100,     0x0302,     0x03020100,     0x0504,     0x05040100,     0x05040302,     0x050403020100,
        0x0706, 0x07060100, 0x07060302, 0x070603020100, 0x07060504, 0x070605040100, 0x070605040302, 0x0706050403020100};
    const __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(places + mask)));
    w_store(p, _mm256_permutevar8x32_epi32(a, order));
}

/* a * c = low(a) low(c) + (low(a) high(c) + high(a) low(c)) << 32 */
LSH_INLINE W w_mul(W a, uint64_t c)
{
    const W swapped = w_one(c << 32 | c >> 32);
    W cross = _mm256_mullo_epi32(a, swapped);
    cross = _mm256_add_epi64(_mm256_slli_epi64(cross, 32), _mm256_and_si256(cross, w_one(0xFFFFFFFF00000000u)));
    return _mm256_add_epi64(_mm256_mul_epu32(a, w_one(c)), cross);
}

static inline uint32_t four_equal_lanes(const uint64_t *p, uint64_t a)
{
    const W equal = _mm256_cmpeq_epi64(_mm256_load_si256((const __m256i *)p), w_one(a));
    return (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(equal));
}

static inline uint32_t equal_lanes(const uint64_t *p, uint64_t a)
{
    return four_equal_lanes(p, a) | four_equal_lanes(p + 4, a) << 4;
}

#define GRAMS_IN_VECTORS 1
#include "body.h"

LSH_END_TARGET
#else
typedef int lsh_no_avx2; /* a translation unit must not be empty */
#endif
