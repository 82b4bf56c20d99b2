/* The fixed permutation of the scheme fss; see docs/schemes.md. It belongs to the definition and depends on k alone. */
#include "../_murmur3.h"
#include "kernels.h"

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

void lsh_fss_ranks(size_t k, uint32_t *permutation, uint32_t *ranks)
{
    uint64_t state = 0;
    uint32_t size = 2;
    while (size < k)
        size *= 2;
    for (uint32_t j = 0; j < size; j++)
        permutation[j] = j;
    for (uint32_t j = size - 1; j > 0; j--) {
        uint32_t other = (uint32_t)(((splitmix64(&state) >> 32) * (j + 1)) >> 32), held = permutation[j];
        permutation[j] = permutation[other];
        permutation[other] = held;
    }
    for (size_t j = 0; j < k; j++)
        ranks[j] = permutation[j] << 16;
    for (size_t j = k; j % LSH_LANES != 0; j++)
        ranks[j] = 0;
}
