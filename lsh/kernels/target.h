/* Which levels this compiler can build, and how a file is compiled for another instruction set than the default.
 *
 * No per-file flags are needed: gcc takes a pragma, clang an attribute pushed on every function. */
#ifndef LSH_TARGET_H
#define LSH_TARGET_H

#if defined(__x86_64__) && defined(__GNUC__)
#define LSH_BUILD_AVX2 1
#define LSH_BUILD_AVX512 1
#endif
#if defined(__aarch64__) && defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LSH_BUILD_NEON 1
#endif

#define LSH_PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define LSH_BEGIN_TARGET(names) \
    LSH_PRAGMA(clang attribute push(__attribute__((target(names))), apply_to = function))
#define LSH_END_TARGET LSH_PRAGMA(clang attribute pop)
#else
#define LSH_BEGIN_TARGET(names) LSH_PRAGMA(GCC push_options) LSH_PRAGMA(GCC target(names))
#define LSH_END_TARGET LSH_PRAGMA(GCC pop_options)
#endif

#endif
