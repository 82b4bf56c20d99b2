/* Textbook MinHash, the baseline that the kernels are compared with: one seed and one shingle after the other.
 *
 * For each of k seeds: the minimum of MurmurHash3_x86_32, as int32, over all windows of n bytes. No work is hoisted out
 * of the loops and no vector instructions are used. kernels.py compiles it with -O2, checks that its result equals that
 * of the library, and measures the ratio of their speeds.
 */
#include <stddef.h>
#include <stdint.h>

static uint32_t turn(uint32_t word, int bits) { return word << bits | word >> (32 - bits); }

static uint32_t scramble(uint32_t word) { return turn(word * 0xcc9e2d51u, 15) * 0x1b873593u; }

static uint32_t hash(const uint8_t *bytes, size_t size, uint32_t seed)
{
    uint32_t state = seed, word = 0;
    size_t at = 0;
    for (; at + 4 <= size; at += 4) {
        word = (uint32_t)bytes[at] | (uint32_t)bytes[at + 1] << 8 | (uint32_t)bytes[at + 2] << 16 |
               (uint32_t)bytes[at + 3] << 24;
        state = turn(state ^ scramble(word), 13) * 5 + 0xe6546b64u;
    }
    if (at < size) {
        word = 0;
        for (size_t left = size; left > at; left--)
            word = word << 8 | bytes[left - 1];
        state ^= scramble(word);
    }
    state ^= (uint32_t)size;
    state = (state ^ state >> 16) * 0x85ebca6bu;
    state = (state ^ state >> 13) * 0xc2b2ae35u;
    return state ^ state >> 16;
}

void plain_minima(const uint8_t *text, size_t length, const uint32_t *seeds, size_t k, size_t n, uint32_t *minima)
{
    for (size_t s = 0; s < k; s++) {
        int32_t least = INT32_MAX;
        for (size_t at = 0; at + n <= length; at++) {
            int32_t value = (int32_t)hash(text + at, n, seeds[s]);
            least = value < least ? value : least;
        }
        minima[s] = (uint32_t)least;
    }
}
