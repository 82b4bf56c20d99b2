/* The kernels for every CPU of an architecture: the compiler's default target.
 *
 * Vectors of four words by the vector extension of gcc and clang, which is SSE2 on x86-64; single words with other
 * compilers. There is no 64-bit vector multiplication, so 64-bit words go one by one.
 */
#define LSH_LEVEL baseline

#include <stdint.h>
#include <string.h>

#include "../_murmur3.h"
#include "target.h"

#define HIDE(vector)
#if LSH_VECTORS
typedef lsh_words_4 V;
#define LANES_32 4
#define v_one(x) ((V){(x), (x), (x), (x)})
#define v_mul16(a, b) ((V)((lsh_halves_8)(a) * (lsh_halves_8)(b)))
static inline V min_where(V a, V b, V a_less) { return (a & a_less) | (b & ~a_less); }
#define v_min_s(a, b) min_where((a), (b), (V)((lsh_signed_4)(a) < (lsh_signed_4)(b)))
#define v_min_u(a, b) min_where((a), (b), (V)((a) < (b)))
static inline V v_words(const uint8_t *p)
{
    return (V){lsh_load32(p), lsh_load32(p + 1), lsh_load32(p + 2), lsh_load32(p + 3)};
}
static inline uint32_t v_less(V a, V b)
{
    V less = (V)(a < b);
    return (less[0] & 1) | (less[1] & 2) | (less[2] & 4) | (less[3] & 8);
}
static inline void v_pack(uint32_t *p, V a, uint32_t mask)
{
    LSH_UNROLL for (uint32_t i = 0; i < 4; i++) {
        *p = a[i];
        p += mask >> i & 1;
    }
}
#else
typedef uint32_t V;
#define LANES_32 1
#define v_one(x) ((V)(x))
#define v_mul16(a, b) (((((a) >> 16) * ((b) >> 16)) & 0xFFFFu) << 16)
#define v_min_s(a, b) ((int32_t)(a) < (int32_t)(b) ? (a) : (b))
#define v_min_u(a, b) ((a) < (b) ? (a) : (b))
#define v_words(p) lsh_load32(p)
#define v_less(a, b) ((uint32_t)((a) < (b)))
#define v_pack(p, a, mask) (*(p) = (a))
#endif

static inline V v_load(const uint32_t *p)
{
    V words;
    memcpy(&words, p, sizeof words);
    return words;
}
static inline void v_store(uint32_t *p, V words) { memcpy(p, &words, sizeof words); }
#define v_add(a, b) ((a) + (b))
#define v_xor(a, b) ((a) ^ (b))
#define v_xor3(a, b, c) ((a) ^ (b) ^ (c))
#define v_and(a, b) ((a) & (b))
#define v_mul(a, b) ((a) * (b))
#define v_shr(a, r) ((a) >> (r))
#define v_rotl(a, r) ((a) << (r) | (a) >> (32 - (r)))

#include "single_words.h"
#define GRAMS_IN_VECTORS 0
#include "body.h"
