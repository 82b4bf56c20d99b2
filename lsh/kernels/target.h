/* What differs between compilers: gcc and clang, Microsoft's compiler, and others for C11.
 *
 * Extensions of C are used here and in dispatch.c (CPUID) only, and each has a version in plain C. gcc and clang build
 * all levels. Microsoft's compiler builds the baseline, on single words, and AVX2, whose intrinsics it
 * accepts without flags. LSH_PLAIN_C selects plain C: the tests run it, as they cannot run Microsoft's compiler.
 *
 * No per-file flags are needed: gcc takes a pragma, clang an attribute pushed on every function. */
#ifndef LSH_TARGET_H
#define LSH_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if (defined(__GNUC__) || defined(__clang__)) && !defined(LSH_PLAIN_C)
#define LSH_GNU_C 1
#elif defined(_MSC_VER) && !defined(LSH_PLAIN_C)
#define LSH_MICROSOFT_C 1
#include <intrin.h>
#endif

#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__)
#define LSH_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#else
#define LSH_BIG_ENDIAN 0 /* Windows */
#endif

/* ---- levels ---- */

#if LSH_GNU_C && defined(__x86_64__)
#define LSH_BUILD_AVX2 1
#define LSH_BUILD_AVX512 1
#endif
#if LSH_MICROSOFT_C && defined(_M_X64) && !defined(_M_ARM64EC)
#define LSH_BUILD_AVX2 1
#endif
#if LSH_GNU_C && defined(__aarch64__) && !LSH_BIG_ENDIAN
#define LSH_BUILD_NEON 1
#endif

#define LSH_PRAGMA(text) _Pragma(#text)
#if LSH_GNU_C && defined(__clang__)
#define LSH_BEGIN_TARGET(names) \
    LSH_PRAGMA(clang attribute push(__attribute__((target(names))), apply_to = function))
#define LSH_END_TARGET LSH_PRAGMA(clang attribute pop)
#elif LSH_GNU_C
#define LSH_BEGIN_TARGET(names) LSH_PRAGMA(GCC push_options) LSH_PRAGMA(GCC target(names))
#define LSH_END_TARGET LSH_PRAGMA(GCC pop_options)
#else
#define LSH_BEGIN_TARGET(names)
#define LSH_END_TARGET
#endif

/* ---- functions and values ---- */

/* LSH_INLINE: a function that is always inlined, as its callers pass constants. LSH_HIDE keeps a compiler from
 * using what it knows about a value in such registers. */
#if LSH_GNU_C
#define LSH_INLINE static inline __attribute__((always_inline))
#define LSH_NOINLINE static __attribute__((noinline))
#define LSH_HIDE(registers, value) __asm__("" : "+" registers(value))
#elif LSH_MICROSOFT_C
#define LSH_INLINE static __forceinline
#define LSH_NOINLINE static __declspec(noinline)
#define LSH_HIDE(registers, value) ((void)(value))
#else
#define LSH_INLINE static inline
#define LSH_NOINLINE static
#define LSH_HIDE(registers, value) ((void)(value))
#endif
/* Before a loop whose bounds the compiler knows where the function is inlined: unroll it whole, so that arrays become registers. */
#if LSH_GNU_C
#define LSH_UNROLL LSH_PRAGMA(GCC unroll 16)
#else
#define LSH_UNROLL
#endif
#define HIDE_WORD(word) LSH_HIDE("r", word)

/* ---- memory ---- */

/* Prefetch the cache line of `place`, which is read soon. */
static inline void lsh_prefetch(const void *place)
{
#if LSH_GNU_C
    __builtin_prefetch(place);
#elif LSH_MICROSOFT_C && defined(_M_X64)
    _mm_prefetch((const char *)place, _MM_HINT_T0);
#else
    (void)place;
#endif
}

/* Eight bytes in the order of this machine; lsh_load64 of _murmur3.h reads them in little-endian order. */
static inline uint64_t lsh_word_at(const uint8_t *place)
{
    uint64_t word;
    memcpy(&word, place, sizeof word);
    return word;
}

/* ---- bits ---- */

/* How many bits of a word are 1. */
static inline uint32_t lsh_count_ones(uint32_t word)
{
#if LSH_GNU_C
    return (uint32_t)__builtin_popcount(word);
#else
    word -= word >> 1 & 0x55555555u;
    word = (word & 0x33333333u) + (word >> 2 & 0x33333333u);
    return ((word + (word >> 4)) & 0x0F0F0F0Fu) * 0x01010101u >> 24;
#endif
}

/* The same of a word of 64 bits; without an instruction for it, as a baseline has none, a call would take longer. */
static inline uint32_t lsh_count_ones_64(uint64_t word)
{
#if LSH_GNU_C && (defined __POPCNT__ || defined __aarch64__)
    return (uint32_t)__builtin_popcountll(word);
#else
    word -= word >> 1 & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
    return (uint32_t)(((word + (word >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u >> 56);
#endif
}

/* The number of the lowest bit that is 1, of a word that is not 0. */
static inline uint32_t lsh_lowest_bit(uint64_t word)
{
#if LSH_GNU_C
    return (uint32_t)__builtin_ctzll(word);
#elif LSH_MICROSOFT_C && defined(_WIN64)
    unsigned long bit;
    _BitScanForward64(&bit, word);
    return (uint32_t)bit;
#else
    const uint64_t below = (word & (~word + 1)) - 1;
    return lsh_count_ones((uint32_t)below) + lsh_count_ones((uint32_t)(below >> 32));
#endif
}

/* The number of the highest bit that is 1, of a word that is not 0. */
static inline uint32_t lsh_highest_bit(uint64_t word)
{
#if LSH_GNU_C
    return 63 - (uint32_t)__builtin_clzll(word);
#elif LSH_MICROSOFT_C && defined(_WIN64)
    unsigned long bit;
    _BitScanReverse64(&bit, word);
    return (uint32_t)bit;
#else
    for (uint32_t shift = 1; shift < 64; shift *= 2)
        word |= word >> shift;
    return lsh_count_ones((uint32_t)word) + lsh_count_ones((uint32_t)(word >> 32)) - 1;
#endif
}

/* ---- words of 128 bits ---- */

/* lsh_wide_product(factor, word): a factor, the lower half first, times a word, modulo 2**128; lsh_wide_sum adds two,
 * lsh_wide_top is the upper half. */
#if LSH_GNU_C && defined(__SIZEOF_INT128__)
__extension__ typedef unsigned __int128 lsh_wide;

static inline lsh_wide lsh_wide_product(const uint64_t factor[2], uint64_t word)
{
    return (lsh_wide)factor[0] * word + ((lsh_wide)(factor[1] * word) << 64);
}

static inline lsh_wide lsh_wide_sum(lsh_wide a, lsh_wide b) { return a + b; }
static inline uint64_t lsh_wide_top(lsh_wide a) { return (uint64_t)(a >> 64); }
#else
typedef struct {
    uint64_t low, high;
} lsh_wide;

/* The upper half of the product of two words. */
static inline uint64_t lsh_top_of_product(uint64_t a, uint64_t b)
{
#if LSH_MICROSOFT_C && defined(_WIN64)
    return __umulh(a, b);
#else
    const uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    const uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
    return a_high * b_high + (middle >> 32) + ((a_low * b_high + (uint32_t)middle) >> 32);
#endif
}

static inline lsh_wide lsh_wide_product(const uint64_t factor[2], uint64_t word)
{
    const lsh_wide product = {factor[0] * word, lsh_top_of_product(factor[0], word) + factor[1] * word};
    return product;
}

static inline lsh_wide lsh_wide_sum(lsh_wide a, lsh_wide b)
{
    const uint64_t low = a.low + b.low;
    const lsh_wide sum = {low, a.high + b.high + (low < a.low)};
    return sum;
}

static inline uint64_t lsh_wide_top(lsh_wide a) { return a.high; }
#endif

/* ---- flags that threads share without a lock, whose order does not matter ---- */

#if LSH_GNU_C
static inline uint8_t lsh_load_8(const uint8_t *from) { return __atomic_load_n(from, __ATOMIC_RELAXED); }
static inline void lsh_store_8(uint8_t *to, uint8_t value) { __atomic_store_n(to, value, __ATOMIC_RELAXED); }
#else
static inline uint8_t lsh_load_8(const uint8_t *from) { return *(const volatile uint8_t *)from; }
static inline void lsh_store_8(uint8_t *to, uint8_t value) { *(volatile uint8_t *)to = value; }
#endif

/* ---- vectors of 16 bytes ---- */

#if LSH_GNU_C
#define LSH_VECTORS 1
typedef uint8_t lsh_bytes_16 __attribute__((vector_size(16)));
typedef uint8_t lsh_bytes_anywhere __attribute__((vector_size(16), aligned(1), may_alias)); /* in memory */
typedef uint16_t lsh_halves_8 __attribute__((vector_size(16)));
typedef uint32_t lsh_words_4 __attribute__((vector_size(16)));
typedef int32_t lsh_signed_4 __attribute__((vector_size(16)));
typedef uint64_t lsh_words_2 __attribute__((vector_size(16)));
#endif

#endif
