/* Find the kernels that this CPU can run, by CPUID and by the registers that the operating system saves. */
#include <string.h>

#include "kernels.h"
#include "target.h"

#if LSH_BUILD_AVX2
#include <cpuid.h>

/* Bits of XCR0: the state that the operating system saves. */
enum { XMM_YMM = 0x06, OPMASK_ZMM = 0xE0 };

static uint32_t saved_state(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static int has(uint32_t features, int bit) { return features >> bit & 1; }

static int cpu_has_x86(int wide)
{
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, 27) || !has(c, 28) || (saved_state() & XMM_YMM) != XMM_YMM)
        return 0; /* no OSXSAVE, or no AVX */
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has(b, 5))
        return 0; /* no AVX2 */
    return !wide || ((saved_state() & OPMASK_ZMM) == OPMASK_ZMM && has(b, 16) && has(b, 17) && has(b, 30) && has(b, 31));
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
