/* Compute TIMES fingerprints with one kernel; counts.py counts the instructions of this program.
 *
 * counts LEVEL SCHEME UNIT N K SIZE TIMES: scheme 32, 64 or fss; unit byte or word. The text consists of words from a
 * generated list. A fixed generator draws frequent words more often, so that shingles repeat about as often as in news.
 * Prints a check value.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

enum { TEXT = 400000, WORDS = 4000, LETTERS = 8 };

static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) * below >> 31);
}

static void make_text(uint8_t *text)
{
    static char words[WORDS][LETTERS + 1];
    size_t at = 0;
    for (size_t w = 0; w < WORDS; w++)
        for (uint32_t i = 0, length = 2 + draw(LETTERS - 1); i < length; i++)
            words[w][i] = (char)('a' + (draw(26) * draw(26) / 26));
    while (at + LETTERS + 1 < TEXT) {
        const uint32_t bound = 1 + draw(1 + draw(WORDS)), word = draw(1 + draw(bound)); /* skewed to the first words */
        const size_t length = strlen(words[word]);
        memcpy(text + at, words[word], length);
        text[at + length] = ' ';
        at += length + 1;
    }
    memset(text + at, ' ', TEXT - at);
}

int main(int count, char **arguments)
{
    static uint8_t text[TEXT], table[0x110000 / 8];
    static uint64_t minima[LSH_MAX_FSS + LSH_LANES];
    static uint32_t seeds[LSH_MAX_FSS + LSH_LANES], permutation[LSH_MAX_FSS];
    if (count != 8)
        return 2;
    const struct lsh_kernels *kernels = lsh_kernels_find(arguments[1]);
    const char *scheme = arguments[2];
    const size_t n = strtoul(arguments[4], NULL, 10), k = strtoul(arguments[5], NULL, 10);
    const size_t size = strtoul(arguments[6], NULL, 10), times = strtoul(arguments[7], NULL, 10);
    const enum lsh_unit unit = strcmp(arguments[3], "word") == 0 ? LSH_WORD : LSH_BYTE;
    const size_t room = (sizeof(lsh_scratch) + 63) / 64 * 64;
    lsh_scratch *scratch = aligned_alloc(64, room);
    uint64_t check = 0;
    if (kernels == NULL || scratch == NULL || k > LSH_MAX_FSS || size > TEXT)
        return 3;
    memset(scratch, 0, room);
    scratch->state = malloc(2 * sizeof(uint64_t) * (k + LSH_LANES));
    for (int i = 0; i < 2; i++)
        scratch->word_hashes[i] = malloc((n + LSH_TILE + LSH_LANES) * sizeof(uint32_t));
    for (int c = 0; c < 128; c++)
        table[c >> 3] |= (uint8_t)((c == '_' || isalnum(c)) << (c & 7));
    scratch->word_table = table;
    make_text(text);
    for (size_t s = 0; s < k + LSH_LANES; s++)
        seeds[s] = draw(1000000);
    if (strcmp(scheme, "fss") == 0)
        lsh_fss_ranks(k, permutation, seeds);
    for (size_t i = 0; i < times; i++) { /* each time from another position */
        const lsh_document document = {text + i * 37 % (TEXT - size + 1), size, unit, n};
        memset(minima, strcmp(scheme, "32") == 0 ? 0x7F : 0xFF, (k + LSH_LANES) * sizeof *minima);
        if (strcmp(scheme, "fss") == 0)
            kernels->fss(&document, 42, seeds, k, scratch, (uint32_t *)minima);
        else if (strcmp(scheme, "32") == 0)
            kernels->min_murmur3_32(&document, seeds, k, scratch, (int32_t *)minima);
        else
            kernels->min_murmur3_64(&document, seeds, k, scratch, minima);
        check = check * 31 + minima[0];
    }
    printf("%llx\n", (unsigned long long)check);
    return 0;
}
