/* Find the kernels that this CPU can run, by CPUID and by the registers that the operating system saves. */
#include <string.h>

#include "kernels.h"
#include "target.h"

#if LSH_BUILD_AVX2
#if LSH_GNU_C
#include <cpuid.h>
#endif

/* Bits of XCR0: the state that the operating system saves. */
enum { XMM_YMM = 0x06, OPMASK_ZMM = 0xE0 };

static uint32_t saved_state(void)
{
#if LSH_GNU_C
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
#else
    return (uint32_t)_xgetbv(0);
#endif
}

/* CPUID: what registers a to d hold for a leaf; returns 0 if the CPU does not have the leaf. */
static int cpuid(uint32_t leaf, uint32_t found[4])
{
#if LSH_GNU_C
    return __get_cpuid_count(leaf, 0, found, found + 1, found + 2, found + 3);
#else
    int registers[4];
    __cpuid(registers, 0);
    if ((uint32_t)registers[0] < leaf)
        return 0;
    __cpuidex(registers, (int)leaf, 0);
    memcpy(found, registers, sizeof registers);
    return 1;
#endif
}

static int has(uint32_t features, int bit) { return features >> bit & 1; }

static int cpu_has_x86(int wide)
{
    uint32_t found[4]; /* a, b, c, d */
    if (!cpuid(1, found) || !has(found[2], 27) || !has(found[2], 28) || (saved_state() & XMM_YMM) != XMM_YMM)
        return 0; /* no OSXSAVE, or no AVX */
    if (!cpuid(7, found) || !has(found[1], 5))
        return 0; /* no AVX2 */
    if (!wide)
        return 1;
    return (saved_state() & OPMASK_ZMM) == OPMASK_ZMM && has(found[1], 16) && has(found[1], 17) && has(found[1], 30) &&
           has(found[1], 31);
}
#endif

const struct lsh_kernels *lsh_kernels_find(const char *level)
{
    const struct lsh_kernels *levels[4];
    size_t count = 0;
#if LSH_BUILD_AVX512
    if (cpu_has_x86(1))
        levels[count++] = &lsh_kernels_avx512;
#endif
#if LSH_BUILD_AVX2
    if (cpu_has_x86(0))
        levels[count++] = &lsh_kernels_avx2;
#endif
#if LSH_BUILD_NEON
    levels[count++] = &lsh_kernels_neon;
#endif
    levels[count++] = &lsh_kernels_baseline;
    for (size_t i = 0; i < count; i++)
        if (level == NULL || strcmp(level, levels[i]->level) == 0)
            return levels[i];
    return NULL;
}
